"""What was busy while the tests ran: GPU, CPU and link use from readings, per fabric, and the CPU cost of moving data.

``utilization.gpu`` counts the time in which any kernel is resident; NCCL kernels spin while they wait for the network,
so a network-bound job shows 100 %. It is never proof of useful work.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdmalab import stats

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

# metric in the store → what it is a share of; only these are shown, in this order
SHARES = {
    "utilization.gpu": "gpu_busy",
    "DCGM_FI_DEV_GPU_UTIL": "gpu_busy",
    "DCGM_FI_PROF_SM_ACTIVE": "sm_active",
    "utilization.memory": "gpu_memory",
    "cpu_host_total_pct": "cpu_sender",
    "cpu_remote_total_pct": "cpu_receiver",
    "cpu_util_pct": "cpu_all",
}
_RATIOS = ("DCGM_FI_PROF_SM_ACTIVE",)  # printed as 0 to 1


@dataclass(frozen=True, kw_only=True)
class Use:
    """Readings of one kind on one fabric: how many, over how many logs, and their spread, in per cent."""

    fabric: str
    kind: str
    readings: int
    logs: int
    median_pct: float
    low_pct: float
    high_pct: float


@dataclass(frozen=True, kw_only=True)
class CpuCost:
    """CPU seconds of one core that moving 10^9 bytes cost, sender and receiver, median over runs of iperf3."""

    fabric: str
    runs: int
    sender_s_per_gbyte: float | None
    receiver_s_per_gbyte: float | None


@dataclass(frozen=True, kw_only=True)
class Telemetry:
    """All that the readings of a campaign say about use; empty where there are none."""

    uses: tuple[Use, ...]
    costs: tuple[CpuCost, ...]
    series: "pl.DataFrame"  # fabric, kind, device, second, value_pct: only where stamps give the time

    def __bool__(self) -> bool:
        return bool(self.uses or self.costs)


def telemetry(lab: "Lab", campaign: str, fabrics: list[str]) -> Telemetry:
    """The use of GPUs, CPUs and memory while the tests of *fabrics* ran."""
    import polars as pl

    names = pl.DataFrame({"metric": list(SHARES), "kind": list(SHARES.values())})
    rows = lab.sql(
        """SELECT fabric, metric, value, device, log_id, line,
                  coalesce(
                      read_at, try_strptime(stamp, ['%Y/%m/%d %H:%M:%S.%g', '%Y-%m-%d %H:%M:%S'])::TIMESTAMPTZ
                  ) AS read_at
           FROM readings WHERE campaign = $c AND list_contains($f, fabric) AND value IS NOT NULL
           UNION ALL
           SELECT fabric, 'cpu_util_pct', cpu_util_pct, NULL, log_id, line, NULL
           FROM results WHERE campaign = $c AND list_contains($f, fabric) AND cpu_util_pct IS NOT NULL""",
        c=campaign,
        f=fabrics,
    ).join(names, on="metric", how="inner")
    rows = rows.with_columns(
        value=pl.when(pl.col("metric").is_in(_RATIOS)).then(100 * pl.col("value")).otherwise(pl.col("value"))
    )
    return Telemetry(
        uses=tuple(_uses(rows, fabrics)), costs=tuple(_costs(lab, campaign, fabrics)), series=_series(rows)
    )


def _uses(rows: "pl.DataFrame", fabrics: list[str]) -> list[Use]:
    import polars as pl

    out = []
    for fabric in fabrics:
        for kind in dict.fromkeys(SHARES.values()):
            part = rows.filter((pl.col("fabric") == fabric) & (pl.col("kind") == kind))
            if not part.is_empty():
                values = part["value"].to_list()
                out.append(
                    Use(
                        fabric=fabric,
                        kind=kind,
                        readings=len(values),
                        logs=part["log_id"].n_unique(),
                        median_pct=stats.median(values),
                        low_pct=min(values),
                        high_pct=max(values),
                    )
                )
    return out


def _costs(lab: "Lab", campaign: str, fabrics: list[str]) -> list[CpuCost]:
    """iperf3 prints both ends' CPU in per cent of one core: divided by the throughput it is core seconds a gigabyte."""
    rows = lab.sql(
        """SELECT r.fabric, r.run_id, any_value(r.bw_avg_gbit_s) / 8 AS gbyte_s,
                  any_value(d.value) FILTER (d.metric = 'cpu_host_total_pct') AS sender_pct,
                  any_value(d.value) FILTER (d.metric = 'cpu_remote_total_pct') AS receiver_pct
           FROM results r JOIN raw.readings d USING (log_id)
           WHERE r.campaign = $c AND list_contains($f, r.fabric) AND r.tool = 'iperf3'
             AND d.metric LIKE 'cpu_%_total_pct'
           GROUP BY r.fabric, r.run_id HAVING count(DISTINCT r.ordinal) = 1 AND any_value(r.bw_avg_gbit_s) > 0""",
        c=campaign,
        f=fabrics,
    )
    out = []
    for fabric in fabrics:
        part = rows.filter(rows["fabric"] == fabric)
        if not part.is_empty():
            sides = [
                [p / 100 / g for p, g in zip(part[name], part["gbyte_s"], strict=True) if p is not None]
                for name in ("sender_pct", "receiver_pct")
            ]
            sender, receiver = (stats.median(side) if side else None for side in sides)
            out.append(CpuCost(fabric=fabric, runs=len(part), sender_s_per_gbyte=sender, receiver_s_per_gbyte=receiver))
    return out


def _series(rows: "pl.DataFrame") -> "pl.DataFrame":
    """Values against seconds since the first reading of the log, where the readings are stamped."""
    import polars as pl

    return (
        rows.filter(pl.col("read_at").is_not_null())
        .with_columns(
            second=(pl.col("read_at") - pl.col("read_at").min().over("log_id")).dt.total_milliseconds() / 1000
        )
        .select("fabric", "kind", "device", "log_id", "second", pl.col("value").alias("value_pct"))
        .sort("fabric", "kind", "device", "second")
    )
