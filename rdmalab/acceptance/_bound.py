"""What physics says of a limit itself: nobody should sign what no hardware can keep."""

import math
from typing import TYPE_CHECKING

from rdmalab import limits
from rdmalab.acceptance._spec import NUMBERS, Threshold

if TYPE_CHECKING:
    import polars as pl


_REACH = 1.002  # of clocks and rounding


def beyond(t: Threshold, bound: float) -> bool:
    """Whether the limit itself lies beyond what physics allows, by more than clocks and rounding reach."""
    if t.metric in ("time_us", *(m for m in NUMBERS if m.startswith("lat_"))):
        return t.at_most is not None and t.at_most * _REACH < bound
    return t.at_least is not None and t.at_least > bound * _REACH


def beyond_text(t: Threshold, bound: float, formula: str) -> str:
    """The limit and the bound that it passes."""
    word = "below" if t.at_most is not None else "above"
    return f"{t.asks} is {word} the physical bound of {bound:.6g} {t.shown_unit}: {formula}"


def beyond_all(t: Threshold, rows: "pl.DataFrame", bound: tuple[float, str, str] | None) -> str:
    """
    What no hardware of these runs can have measured, in words; empty where nothing is beyond the bound.

    A run above its bound proves no performance: the log, the campaign file or the fabric it was put into is wrong.
    Bounds that rest on recalled facts say nothing here.
    """
    if t.metric == "utilization_pct":
        bound = (100.0, "utilization is the share of the bound", "the definition")
    if bound is None or "R" in set(rows["limit_flag"].drop_nulls()):
        return ""
    small = t.metric == "time_us"
    values = [float(v) for v in rows["value"].drop_nulls()]
    worst = min(values, default=math.inf) if small else max(values, default=0.0)
    if not (worst * _REACH < bound[0] if small else worst > bound[0] * _REACH):
        return ""
    word = "below" if small else "above"
    return (
        f"measured {worst:.6g} {t.shown_unit} is {word} the physical bound of {bound[0]:.6g} {t.shown_unit}: {bound[1]}"
    )


def stated_bound(t: Threshold) -> tuple[float, str, str] | None:
    """(bound in the unit of the metric, formula, source) of what a limit says of its hardware; None if it says less."""
    if t.metric.startswith("lat_") and t.family not in ("nvlink", "xgmi", "hccs", "pcie"):
        floor = limits.traversal_us(t.latency_convention or "one_way")
        return floor, "one traversal of an adapter", limits.ADAPTER_SOURCE
    if t.metric in ("utilization_pct", "line_pct"):
        return 100.0, "no run is above its limit", "the definition"
    facts = {
        "ranks": t.ranks, "domains": t.domains, "gpus_per_domain": t.gpus_per_domain,
        "ports_per_domain": t.ports_per_domain, "link_rate_gbit_s": t.link_rate_gbit_s, "mtu_bytes": t.mtu_bytes,
        "family": t.family, "gpu_model": t.gpu, "nic": t.nic, "pcie": t.pcie, "in_network": t.in_network,
    }  # fmt: skip
    if t.metric == "bw_avg_gbit_s":
        found = limits.bounds("bandwidth", facts | {"ports": 1, "bidirectional": bool(t.bidirectional)})
        if found and _finite(found.high):
            return found.high.gbit_s or 0.0, found.high.formula, found.high.source
    if t.metric in ("busbw_gbyte_s", "algbw_gbyte_s", "time_us"):
        found = limits.bounds(t.operation, facts)
        if found and _finite(found.high):
            return _of_metric(t, found.high.gbyte_s or 0.0, found.high.formula, found.high.source, t.ranks)
    return None


def _finite(limit: limits.Limit) -> bool:
    return limit.gbyte_s is not None and math.isfinite(limit.gbyte_s) and limit.flag != "R"


def bound_of_runs(t: Threshold, rows: "pl.DataFrame") -> tuple[float, str, str] | None:
    """The bound of the runs that are held against the limit: the greatest, where they have several."""
    found = [r for r in rows.select("limit_gbyte_s", "limit_formula", "limit_source").iter_rows() if r[0]]
    if not found or t.metric not in ("busbw_gbyte_s", "algbw_gbyte_s", "time_us", "bw_avg_gbit_s"):
        return None
    gbyte_s, formula, source = max(found)
    if t.metric == "bw_avg_gbit_s":
        return gbyte_s * 8, formula, source
    size = rows["size_bytes"][0] if rows["size_bytes"].n_unique() == 1 else None
    return _of_metric(t, gbyte_s, formula, source, rows["ranks"][0], size)


def _of_metric(
    t: Threshold, busbw: float, formula: str, source: str, ranks: int | None, size: int | None = None
) -> tuple[float, str, str] | None:
    """A bound of busbw as one of algbw or of the time of one size: algbw = busbw / f, time = size / algbw."""
    if t.metric == "busbw_gbyte_s":
        return busbw, formula, source
    share = _bus_factor(t.operation or "", ranks)
    if share is None:
        return None
    if t.metric == "algbw_gbyte_s":
        return busbw / share, f"({formula}) / {share:.6g}", source
    size = size if size is not None else t.window[0] if t.window[0] == t.window[1] else None
    return None if size is None else (size * share / busbw / 1e3, f"{size} B x {share:.6g} / ({formula})", source)


def _bus_factor(operation: str, ranks: int | None) -> float | None:
    """busbw / algbw: NVIDIA/nccl-tests:doc/PERFORMANCE.md."""
    if operation in ("broadcast", "reduce", "sendrecv"):
        return 1.0
    passes = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1, "gather": 1, "scatter": 1}
    return passes[operation] * (ranks - 1) / ranks if ranks and operation in passes else None
