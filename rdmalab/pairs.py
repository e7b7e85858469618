"""Node pairs: every pair of hosts that ran the same two-node collective, who is slow, and by how much."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from rdmalab import stats

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

MIN_HOSTS = 3  # below, there is nothing to set a pair against


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """
    Bus bandwidth of one two-node collective at one size, for every pair of hosts that measured it.

    ``busbw_gbyte_s`` maps sorted host names to the median over runs; a pair without a run is not in it.
    """

    fabric: str
    operation: str
    dtype: str
    ranks: int
    placement: str
    size_bytes: int
    hosts: tuple[str, ...]
    busbw_gbyte_s: dict[tuple[str, str], float]
    runs: int
    limit_gbyte_s: float | None

    def of(self, a: str, b: str) -> float | None:
        """The value of a pair in either order; None where it was not measured."""
        return self.busbw_gbyte_s.get((a, b) if a < b else (b, a))

    def median_of(self, host: str) -> float:
        """The median over all pairs of a host, in GB/s."""
        return stats.median([v for pair, v in self.busbw_gbyte_s.items() if host in pair])

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Pairs of these hosts that were not measured."""
        return [p for p in combinations(self.hosts, 2) if p not in self.busbw_gbyte_s]

    @property
    def slow_hosts(self) -> list[str]:
        """Hosts whose median lies below the middle by more than 2 % and by more than 3.5 robust deviations, if any."""
        medians = [self.median_of(h) for h in self.hosts]
        middle = stats.median(medians)
        level = stats.median([abs(m - middle) for m in medians]) == 0  # most hosts are equal: any step counts
        marks = stats.outliers(medians)
        return [h for h, m, far in zip(self.hosts, medians, marks, strict=True) if m < 0.98 * middle and (far or level)]

    def slowest(self, count: int) -> list[tuple[tuple[str, str], float]]:
        """The slowest pairs, slowest first."""
        return sorted(self.busbw_gbyte_s.items(), key=lambda i: (i[1], i[0]))[:count]


def node_pairs(lab: "Lab", campaign: str, fabrics: list[str]) -> Pairs | None:
    """
    The measurement that most pairs of hosts share; None where fewer than three hosts were paired.

    Most pairs first, then most ranks, then out-of-place; the size is the largest that all of these pairs measured.
    """
    rows = lab.sql(
        """SELECT fabric, operation, dtype, ranks, placement, size_bytes, list_sort(hosts) AS hosts, run_id,
                  median(busbw_gbyte_s) AS busbw_gbyte_s, any_value(limit_gbyte_s) AS limit_gbyte_s
           FROM results
           WHERE campaign = $c AND list_contains($f, fabric) AND len(hosts) = 2 AND busbw_gbyte_s > 0 AND size_bytes > 0
             AND operation IS NOT NULL
           GROUP BY ALL""",
        c=campaign,
        f=fabrics,
    )
    best: tuple[tuple[int, int, bool, str], Pairs] | None = None
    for _, group in rows.group_by("fabric", "operation", "dtype", "ranks", "placement", maintain_order=False):
        found = _pairs(group.sort("run_id", "size_bytes"))
        if found is not None:
            rank = (len(found.busbw_gbyte_s), found.ranks, found.placement == "out_of_place", found.operation)
            if best is None or rank > best[0]:
                best = rank, found
    return best[1] if best else None


def _pairs(group: "pl.DataFrame") -> Pairs | None:
    """One measurement's pairs at the largest size that they share."""
    import polars as pl

    keyed = group.with_columns(a=pl.col("hosts").list.get(0), b=pl.col("hosts").list.get(1))
    pairs = keyed.select("a", "b").unique().sort("a", "b").rows()
    hosts = tuple(sorted({h for pair in pairs for h in pair}))
    if len(hosts) < MIN_HOSTS:
        return None
    counts = (
        keyed.group_by("size_bytes")
        .agg(pl.struct("a", "b").n_unique().alias("pairs"))
        .filter(pl.col("pairs") == len(pairs))
    )
    if counts.is_empty():
        return None
    size = int(counts["size_bytes"].max())  # type: ignore[arg-type]
    at = keyed.filter(pl.col("size_bytes") == size)
    values = {
        (a, b): stats.median(at.filter((pl.col("a") == a) & (pl.col("b") == b))["busbw_gbyte_s"].to_list())
        for a, b in pairs
    }
    first = at.row(0, named=True)
    limits = set(at["limit_gbyte_s"].to_list())
    return Pairs(
        fabric=first["fabric"], operation=first["operation"], dtype=first["dtype"], ranks=first["ranks"],
        placement=first["placement"], size_bytes=size, hosts=hosts, busbw_gbyte_s=values, runs=at["run_id"].n_unique(),
        limit_gbyte_s=limits.pop() if len(limits) == 1 else None,
    )  # fmt: skip
