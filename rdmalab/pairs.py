"""
Node pairs: who is slow among hosts that were tested two by two, as sender, as receiver, or on one rail.

A collective of two nodes loads both directions at once, so its pairs have no order; perftest writes from one host to
the other, so its pairs are directed. A host is slow when it is slow with partners that are fast with others; a pair is
slow when both of its hosts are fine. perftest names no host: the prompt above its command or the prefix of a launcher
does, and the log of the other end.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

from rdmalab import series, stats
from rdmalab.errors import NothingToCompare

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

MIN_HOSTS = 3  # below, there is nothing to set a pair against
MIN_PARTNERS = 2  # that are known to be fast with others, before a host is called slow
FINE = 0.98  # of what the others reach: less than 2 % below is not called slow
FAR = 3.5  # robust standard deviations, as for outliers
MOST = 0.75  # of its partners, with which a slow host is slow

Pair = tuple[str, str]  # of hosts: sorted by name, or sender and receiver


@dataclass(frozen=True, kw_only=True)
class Standing:
    """
    One host, HCA or rail among its like.

    Attributes:
        role: ``both``, ``sender`` or ``receiver``.
        pairs: Partners that it was measured with (of a rail: the tests).
        median: Over these pairs, in the unit of the pairs.
        low, high: Interval of this median; None below 6 pairs.
        ratio: To the others: its median over partners that reach the usual level with somebody else, divided by the
            same of all. None where no such partner was measured with it: who is the slow one is not known.
        deviations: How many robust standard deviations it lies below the others (negative: above); None without a
            scale, because most of the others are equal.
        fast_with: Of a slow host, the partners with which it is not.
    """

    name: str
    role: str
    pairs: int
    median: float
    ratio: float | None
    deviations: float | None
    slow: bool
    fast_with: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """
    A run between two hosts that gave no result: its status, or why it is not used.

    What its log does not tell (test, ranks) is None: then it stands with every measurement of its kind.
    """

    pair: Pair
    reason: str
    run_id: str
    path: str
    line: int | None
    fabric: str | None = None
    test: str | None = None
    ranks: int | None = None

    def of(self, fabric: str, test: str, ranks: int | None) -> bool:
        """Whether it may have been a run of this measurement."""
        wanted = ((self.fabric, fabric), (self.test, test), (self.ranks, ranks))
        return all(own is None or own == value for own, value in wanted)


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One pair in the order of :meth:`Pairs.ranked`; ``ratio`` is to the median of all pairs of fine hosts."""

    pair: Pair
    value: float
    ratio: float
    deviations: float | None
    slow: bool  # although both hosts are fine
    slow_hosts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """
    One measurement at one size for every pair of hosts that made it.

    ``values`` maps pairs to the median over runs, in GB/s of busbw for collectives, in Gb/s for perftest; a pair
    without a run is not in it. ``rows`` has a row a run: a, b, device_a, device_b, value, run_id, path, sha256, line,
    and the fields of RESIDUE.
    """

    fabric: str
    test: str  # all_reduce, ib_write_bw
    size_bytes: int
    hosts: tuple[str, ...]
    values: dict[Pair, float]
    runs: int
    dtype: str | None = None
    ranks: int | None = None
    placement: str | None = None
    directed: bool = False
    bidirectional: bool = False
    limit_gbyte_s: float | None = None
    failures: tuple[Failure, ...] = ()
    rows: "pl.DataFrame | None" = field(default=None, repr=False)

    @property
    def collective(self) -> bool:
        """Whether NCCL or its like made the pairs; else a point-to-point test."""
        return self.ranks is not None

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return "GB/s" if self.collective else "Gb/s"

    def of(self, a: str, b: str) -> float | None:
        """The value of a pair, in either order unless pairs are directed; None where it was not measured."""
        return self.values.get((a, b) if self.directed or a < b else (b, a))

    def median_of(self, host: str) -> float | None:
        """The median over all pairs of a host; None where it has none."""
        found = [v for pair, v in self.values.items() if host in pair]
        return stats.median(found) if found else None

    @property
    def missing(self) -> list[Pair]:
        """Pairs of these hosts of which no run was made: neither a value nor a failure."""
        wanted = permutations(self.hosts, 2) if self.directed else combinations(self.hosts, 2)
        failed = {f.pair for f in self.failures}
        return [p for p in wanted if p not in self.values and p not in failed]

    @property
    def failed(self) -> list[Failure]:
        """Failures of pairs that have no value; a pair that was repeated with success is none."""
        return [f for f in self.failures if f.pair not in self.values]

    @cached_property
    def standings(self) -> list[Standing]:
        """Every host in every role, those furthest below the others first."""
        if not self.directed:
            return standings("both", [(x, y, v) for (a, b), v in self.values.items() for x, y in ((a, b), (b, a))])
        sent = standings("sender", [(a, b, v) for (a, b), v in self.values.items()])
        return sent + standings("receiver", [(b, a, v) for (a, b), v in self.values.items()])

    @property
    def slow_hosts(self) -> list[str]:
        """Hosts that are slow in a role, in the order of the names."""
        return sorted({s.name for s in self.standings if s.slow})

    @cached_property
    def adapters(self) -> list[Standing]:
        """Every HCA (host and device) in its roles, where a host used more than one; else none."""
        cells = self._cells()
        devices = defaultdict(set)
        for a, b, x, y, _ in cells:
            devices[a].add(x)
            devices[b].add(y)
        if not any(len(d) > 1 for d in devices.values()):
            return []
        ends = [(f"{a} {x}", f"{b} {y}", v) for a, b, x, y, v in cells]
        if not self.directed:
            return standings("both", ends + [(y, x, v) for x, y, v in ends])
        return standings("sender", ends) + standings("receiver", [(y, x, v) for x, y, v in ends])

    @cached_property
    def rails(self) -> list[Standing]:
        """Every device name that both ends used, against the other names: a rail; none where there is only one."""
        cells = [(x, (a, b), v) for a, b, x, y, v in self._cells() if x == y]
        by_pair = defaultdict(list)
        for _, pair, v in cells:
            by_pair[pair].append(v)
        usual = stats.median([v for *_, v in cells]) if cells else 0.0
        ratios, plain = defaultdict(list), defaultdict(list)
        for rail, pair, v in cells:  # against the other rails of the pair: a slow host slows all of its rails
            ratios[rail].append(v / (stats.median(by_pair[pair]) if len(by_pair[pair]) > 1 else usual))
            plain[rail].append(v)
        return _ranked("both", {r: stats.median(x) for r, x in ratios.items()}, plain, {}) if len(ratios) > 1 else []

    def ranked(self) -> list[Ranked]:
        """All pairs, slowest first. Slow is a pair 2 % and 3.5 robust deviations below the pairs of fine hosts."""
        slow = {(s.name, s.role) for s in self.standings if s.slow}
        roles = ("sender", "receiver") if self.directed else ("both", "both")
        blamed = {p: tuple(h for h, r in zip(p, roles, strict=True) if (h, r) in slow) for p in self.values}
        fine = [v for p, v in self.values.items() if not blamed[p]] or list(self.values.values())
        usual, scale = stats.median(fine), stats.spread(fine)
        return [
            Ranked(
                pair=p, value=v, ratio=v / usual, deviations=(usual - v) / scale if scale else None,
                slow=not blamed[p] and _below(v, usual, scale), slow_hosts=blamed[p],
            )
            for p, v in sorted(self.values.items(), key=lambda i: (i[1], i[0]))
        ]  # fmt: skip

    @property
    def slow_pairs(self) -> list[Ranked]:
        """Pairs that are slow although both hosts are fine, slowest first."""
        return [r for r in self.ranked() if r.slow]

    @cached_property
    def residue(self) -> dict[str, tuple[Any, dict[Any, list[Pair]]]]:
        """Field of RESIDUE → what most runs state of it, and what others state instead, with their pairs."""
        out: dict[str, tuple[Any, dict[Any, list[Pair]]]] = {}
        if self.rows is None:
            return out
        for name in (n for n in RESIDUE if n in self.rows.columns):
            stated = self.rows.select(name, "a", "b").drop_nulls().rows()
            counts = Counter(value for value, *_ in stated)
            if len(counts) > 1:
                usual = counts.most_common(1)[0][0]
                others = {v: sorted({(a, b) for w, a, b in stated if w == v}) for v in counts if v != usual}
                out[name] = usual, others
        return out

    def slowest(self, count: int) -> list[tuple[Pair, float]]:
        """The slowest pairs, slowest first."""
        return [(r.pair, r.value) for r in self.ranked()[:count]]

    def _cells(self) -> list[tuple[str, str, str, str, float]]:
        """(host, host, device, device, median over runs) where the log tells both devices."""
        if self.rows is None:
            return []
        cells = defaultdict(list)
        for a, b, x, y, v in self.rows.select("a", "b", "device_a", "device_b", "value").iter_rows():
            if x and y:
                cells[a, b, x, y].append(v)
        return [(*key, stats.median(values)) for key, values in sorted(cells.items())]


def standings(role: str, ends: Iterable[tuple[str, str, float]]) -> list[Standing]:
    """
    Ranks everybody by the pairs with partners that are known to be fast.

    A pair tells of a host only if the partner reaches the usual level with somebody else: so a partner's fault is never
    blamed on a host, whatever pairs are missing. The usual level is the median over hosts of what each reaches at best.

    Args:
        role: Written into the result.
        ends: (host, partner, value) of every pair that the host takes part in, in this role.
    """
    own: dict[str, dict[str, float]] = defaultdict(dict)
    of_partner: dict[str, dict[str, float]] = defaultdict(dict)
    for host, partner, value in ends:
        own[host][partner] = of_partner[partner][host] = value
    if not own:
        return []
    usual = stats.median(max(pairs.values()) for pairs in own.values())
    scores: dict[str, float] = {}
    decided: dict[str, int] = {}
    for host, pairs in own.items():
        able = {p for p in pairs if any(v >= FINE * usual for h, v in of_partner[p].items() if h != host)}
        decided[host] = len(able)
        if able:
            scores[host] = stats.median(pairs[p] for p in able)
        elif max(pairs.values()) >= FINE * usual:  # nobody proves its partners, but it reaches the level with them
            scores[host] = usual
    plain = {host: list(pairs.values()) for host, pairs in own.items()}
    found = _ranked(role, scores, plain, {h for h in own if decided[h] < MIN_PARTNERS})
    return [_with_fast_partners(s, own[s.name], FINE * usual) if s.slow else s for s in found]


def _with_fast_partners(s: Standing, pairs: Mapping[str, float], fine: float) -> Standing:
    """The partners with which a host is not slow; with too many of them it is no slow host."""
    fast = tuple(p for p, v in sorted(pairs.items()) if v >= fine)
    return replace(s, fast_with=fast, slow=len(fast) <= (1 - MOST) * len(pairs))


def _ranked(
    role: str, scores: Mapping[str, float], plain: Mapping[str, list[float]], undecided: Iterable[str]
) -> list[Standing]:
    """Everybody by score, lowest first; those without a score last. Of two, the faster one is the measure."""
    usual, scale = (stats.median(scores.values()), stats.spread(scores.values())) if scores else (1.0, 0.0)
    if len(scores) == 2:
        usual, scale = max(scores.values()), 0.0
    exempt = set(undecided)
    out = [
        Standing(
            name=name, role=role, pairs=len(values), median=stats.median(values),
            ratio=scores[name] / usual if name in scores else None,
            deviations=(usual - scores[name]) / scale if name in scores and scale else None,
            slow=name in scores and name not in exempt and _below(scores[name], usual, scale),
            low=interval.low if interval else None, high=interval.high if interval else None,
        )
        for name, values in plain.items()
        for interval in [stats.median_interval(values)]
    ]  # fmt: skip
    return sorted(out, key=lambda s: (s.ratio is None, s.ratio or 0.0, s.median, s.name))


def _below(value: float, usual: float, scale: float) -> bool:
    """2 % and 3.5 deviations below; where most are equal there is no deviation to measure by, and any step counts."""
    return value < FINE * usual and (scale == 0 or usual - value > FAR * scale)


def all_pairs(lab: "Lab", campaign: str, fabrics: list[str]) -> list[Pairs]:
    """
    Every measurement that at least three hosts made two by two; collectives first, then by the number of pairs, by
    ranks, out-of-place before in-place, all_reduce and sendrecv before the others.

    The size is the largest of those that most pairs measured.
    """
    found = []
    for frame, failures, directed in _sources(lab, campaign, fabrics):
        key = ["fabric", "test", "dtype", "ranks", "placement", "bidirectional", "setting"]
        for _, group in frame.group_by(key, maintain_order=True):
            made = _pairs(group, failures, directed=directed)
            found += [made] if made else []
    return sorted(found, key=_order)


def of_campaign(lab: "Lab", campaign: str) -> list[Pairs]:
    """
    :func:`all_pairs` of every fabric of a campaign.

    Raises:
        NothingToCompare: Nothing was measured two by two among at least three hosts.
    """
    fabrics = lab.sql("SELECT DISTINCT fabric FROM runs WHERE campaign = $c ORDER BY fabric", c=campaign)
    found = all_pairs(lab, campaign, fabrics["fabric"].to_list())
    if not found:
        raise NothingToCompare(_WHY_NOTHING.format(campaign))
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Survey:
    """All measurements of a campaign that were made two by two, and what a report says around them."""

    campaign: dict[str, Any]
    labels: dict[str, str]  # fabric → words
    measurements: tuple[Pairs, ...]
    snapshot: str

    @property
    def main(self) -> tuple[Pairs, ...]:
        """The measurements that get a page: the first collective, and the first test of each direction."""
        kinds: dict[tuple[bool, bool], Pairs] = {}
        for p in self.measurements:
            kinds.setdefault((p.collective, p.directed), p)
        return tuple(kinds.values())

    @cached_property
    def runs(self) -> int:
        """Runs behind the values of all measurements; one that gave several counts once."""
        return len({r for p in self.measurements if p.rows is not None for r in p.rows["run_id"]})


def survey(lab: "Lab", campaign: str | None = None, fabrics: list[str] | None = None) -> Survey:
    """
    Everything that the report on pairs tells.

    Raises:
        UsageError: There is no such campaign or fabric.
        NothingToCompare: Nothing was measured two by two among at least three hosts.
    """
    name = lab.the_campaign(campaign)
    known = series.fabrics_of(lab, series.Selection(campaign=name, fabrics=fabrics or None))
    found = all_pairs(lab, name, known["fabric"].to_list())
    if not found:
        raise NothingToCompare(_WHY_NOTHING.format(name))
    head = lab.sql("SELECT * FROM raw.campaigns WHERE campaign = $c", c=name).to_dicts()
    empty: dict[str, Any] = {"campaign": name, "title": "", "customer": None, "synthetic": False, "notes": []}
    logs = sorted({h for p in found if p.rows is not None for h in p.rows["sha256"]})
    stated = head[0]["file_sha256"] if head else ""
    return Survey(
        campaign=head[0] if head else empty, measurements=tuple(found),
        labels=dict(zip(known["fabric"], known["label"], strict=True)),
        snapshot=hashlib.sha256(" ".join([*logs, stated]).encode()).hexdigest(),
    )  # fmt: skip


_WHY_NOTHING = (
    "campaign '{}' has no test of three hosts or more in pairs: nccl-tests on two nodes at a time, or perftest below "
    "the prompt or the prefix that names its host"
)


def node_pairs(lab: "Lab", campaign: str, fabrics: list[str]) -> Pairs | None:
    """The first collective of :func:`all_pairs`; None where fewer than three hosts were paired by one."""
    return next((p for p in all_pairs(lab, campaign, fabrics) if p.collective), None)


def _order(p: Pairs) -> tuple[Any, ...]:
    return (
        not p.collective, -len(p.values), -(p.ranks or 0), p.placement != "out_of_place", p.test != "all_reduce",
        p.test != "sendrecv", p.bidirectional, p.fabric, p.test,
    )  # fmt: skip


def _sources(lab: "Lab", campaign: str, fabrics: list[str]) -> "list[tuple[pl.DataFrame, list[Failure], bool]]":
    """Rows and failures of collectives, of perftest in one direction, and of perftest in both."""
    import polars as pl

    values = {"c": campaign, "f": fabrics}
    rails = lab.sql(_SINGLE_DEVICES)
    collective = lab.sql(_COLLECTIVES, **values)
    for end in ("a", "b"):
        own = rails.rename({"host": end, "device": f"device_{end}"})
        collective = collective.join(own, on=["log_id", end], how="left")
    point = lab.sql(_POINT_TO_POINT, **values)
    failed = lab.sql(_FAILED, **values)
    names = _names(lab, **values)
    aliases = dict(
        point.filter(pl.col("peer").is_not_null() & pl.col("other").is_not_null()).select("peer", "other").rows()
    )
    collective = _named(collective, names, {})
    point = _named(point.with_columns(b=pl.coalesce("other", "peer")), names, aliases)
    one_way = point.filter(~pl.col("bidirectional"))
    # a read moves the bytes from the server to the client
    swap = (pl.col("operation") == "read") != (pl.col("side") == "server")
    turned = {
        "a": pl.when(swap).then("b").otherwise("a"), "b": pl.when(swap).then("a").otherwise("b"),
        "device_a": pl.when(swap).then("device_b").otherwise("device_a"),
        "device_b": pl.when(swap).then("device_a").otherwise("device_b"),
    }  # fmt: skip
    failures = _failures(failed, names, aliases)
    return [
        (_sorted_ends(collective), failures["collective"], False),
        (one_way.with_columns(**turned), failures["one_way"], True),
        (_sorted_ends(point.filter("bidirectional")), failures["both_ways"], False),
    ]


RESIDUE = ("mtu_bytes", "gpu_model", "library_version", "tool_version")  # differs between pairs, and is said
_SHARED = f"""fabric, run_id, path, sha256, size_bytes, {", ".join(RESIDUE)}, min(line) AS line,
    any_value(limit_gbyte_s) AS limit_gbyte_s"""
_COLLECTIVES = f"""
    SELECT operation AS test, dtype, ranks, placement, false AS bidirectional, '' AS setting, hosts[1] AS a,
           hosts[2] AS b, log_id,
           median(busbw_gbyte_s) AS value, {_SHARED}
    FROM results
    WHERE campaign = $c AND list_contains($f, fabric) AND kind = 'collective' AND len(hosts) = 2
          AND busbw_gbyte_s > 0 AND size_bytes > 0 AND operation IS NOT NULL
    GROUP BY ALL ORDER BY path, line"""
_SINGLE_DEVICES = """
    SELECT DISTINCT log_id, regexp_extract(text, '^All connections of (.*) use (.*)[.]$', 1) AS host,
           regexp_extract(text, '^All connections of (.*) use (.*)[.]$', 2) AS device
    FROM notes WHERE code = 'single_device'"""
_POINT_TO_POINT = f"""
    SELECT program AS test, NULL::VARCHAR AS dtype, NULL::BIGINT AS ranks, NULL::VARCHAR AS placement,
           coalesce(bidirectional, false) AS bidirectional, operation, side,
           concat_ws(', ', connection, queue_pairs, memory) AS setting, hosts[1] AS a, peer, other, device AS device_a,
           coalesce(other_device, device) AS device_b, median(bw_avg_gbit_s) AS value, {_SHARED}
    FROM results
    LEFT JOIN (SELECT pair_run_id AS run_id, any_value(hosts[1]) AS other, any_value(device) AS other_device FROM runs
               WHERE campaign = $c AND pair_run_id <> run_id GROUP BY pair_run_id) USING (run_id)
    WHERE campaign = $c AND list_contains($f, fabric) AND tool = 'perftest' AND kind = 'bandwidth' AND len(hosts) = 1
          AND bw_avg_gbit_s > 0 AND size_bytes > 0 AND operation IN ('write', 'read', 'send') AND side IS NOT NULL
    GROUP BY ALL ORDER BY path, line"""
_FAILED = """
    SELECT kind, fabric, CASE WHEN kind = 'collective' THEN operation ELSE program END AS test,
           CASE WHEN kind = 'collective' THEN ranks END AS ranks, coalesce(bidirectional, false) AS bidirectional,
           operation, side, hosts[1] AS a,
           coalesce(hosts[2], peer) AS b, excluded_because AS reason, run_id, path, line
    FROM runs
    WHERE campaign = $c AND list_contains($f, fabric) AND excluded_because IS NOT NULL
          AND coalesce(pair_run_id, run_id) = run_id AND (len(hosts) = 2 OR (len(hosts) = 1 AND peer IS NOT NULL))
          AND kind IN ('collective', 'bandwidth')
    ORDER BY path, line"""


def _names(lab: "Lab", **values: Any) -> dict[str, str]:
    """
    Host as printed → host as shown: without its domain, where no two hosts of different domains share the name.

    ``node1`` and ``node1.cluster.local`` are one host; an address stays as it is.
    """
    printed = lab.sql(
        """SELECT DISTINCT unnest(list_append(hosts, peer)) AS host FROM runs
           WHERE campaign = $c AND list_contains($f, fabric)""",
        **values,
    )
    full = {h for h in printed["host"].drop_nulls() if re.search(r"[A-Za-z]", h) and ":" not in h}
    domains: dict[str, set[str]] = defaultdict(set)
    for host in full:
        short, _, domain = host.partition(".")
        domains[short] |= {domain} - {""}
    return {h: h.partition(".")[0] for h in full if len(domains[h.partition(".")[0]]) < 2}


def _named(frame: "pl.DataFrame", names: dict[str, str], aliases: dict[str, str]) -> "pl.DataFrame":
    """Both hosts as they are shown, devices likewise; rows without two different hosts left out."""
    import polars as pl

    def shown(host: str | None) -> str | None:
        host = aliases.get(host or "", host or "")
        return names.get(host, host) or None

    ends = {c: pl.Series(c, [shown(h) for h in frame[c]], pl.String) for c in ("a", "b")}
    return frame.with_columns(**ends).filter(
        pl.col("a").is_not_null() & pl.col("b").is_not_null() & (pl.col("a") != pl.col("b"))
    )


def _sorted_ends(frame: "pl.DataFrame") -> "pl.DataFrame":
    """The two hosts of every row in the order of their names."""
    import polars as pl

    swap = pl.col("a") > pl.col("b")
    return frame.with_columns(
        a=pl.when(swap).then("b").otherwise("a"), b=pl.when(swap).then("a").otherwise("b"),
        device_a=pl.when(swap).then("device_b").otherwise("device_a"),
        device_b=pl.when(swap).then("device_a").otherwise("device_b"),
    )  # fmt: skip


def _failures(frame: "pl.DataFrame", names: dict[str, str], aliases: dict[str, str]) -> dict[str, list[Failure]]:
    """Runs between two hosts that are not used, by what they would have been."""
    found: dict[str, list[Failure]] = {"collective": [], "one_way": [], "both_ways": []}
    for row in _named(frame, names, aliases).iter_rows(named=True):
        kind = "collective" if row["kind"] == "collective" else "both_ways" if row["bidirectional"] else "one_way"
        a, b = row["a"], row["b"]
        if kind != "one_way":
            a, b = sorted((a, b))
        elif (row["operation"] == "read") != (row["side"] == "server"):
            a, b = b, a
        entry = {k: row[k] for k in ("reason", "run_id", "path", "line", "fabric", "test", "ranks")}
        found[kind].append(Failure(pair=(a, b), **entry))
    return found


def _pairs(group: "pl.DataFrame", failures: list[Failure], *, directed: bool) -> Pairs | None:
    """One measurement's pairs at the largest size that most of them have."""
    import polars as pl

    sizes = group.group_by("size_bytes").agg(pl.struct("a", "b").n_unique().alias("pairs"))
    size = sizes.sort("pairs", "size_bytes")["size_bytes"][-1]
    at = group.filter(pl.col("size_bytes") == size)
    by_devices = at.group_by("a", "b", "device_a", "device_b").agg(pl.col("value").median())
    medians = by_devices.group_by("a", "b").agg(pl.col("value").median()).sort("a", "b")
    values = {(a, b): v for a, b, v in medians.rows()}
    first, limits = at.row(0, named=True), set(at["limit_gbyte_s"].to_list())
    failures = [f for f in failures if f.of(first["fabric"], first["test"], first["ranks"])]
    hosts = tuple(sorted({h for pair in values for h in pair} | {h for f in failures for h in f.pair}))
    if len(hosts) < MIN_HOSTS:
        return None
    return Pairs(
        fabric=first["fabric"], test=first["test"], dtype=first["dtype"], ranks=first["ranks"],
        placement=first["placement"], size_bytes=size, hosts=hosts, values=values, runs=at["run_id"].n_unique(),
        directed=directed, bidirectional=first["bidirectional"], failures=tuple(failures),
        limit_gbyte_s=limits.pop() if len(limits) == 1 else None,
        rows=at.select("a", "b", "device_a", "device_b", "value", "run_id", "path", "sha256", "line", *RESIDUE),
    )  # fmt: skip


def standings_frame(found: Iterable[Pairs]) -> "pl.DataFrame":
    """One row a host and role of every measurement, those furthest below the others first."""
    import polars as pl

    rows = [
        {
            "fabric": p.fabric, "test": p.test, "ranks": p.ranks, "placement": p.placement, "size_bytes": p.size_bytes,
            "host": s.name, "role": s.role, "pairs": s.pairs, "median": s.median, "unit": p.unit, "ratio": s.ratio,
            "deviations": s.deviations, "slow": s.slow, "fast_with": ", ".join(s.fast_with),
        }
        for p in found
        for s in p.standings
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def frame(found: Iterable[Pairs]) -> "pl.DataFrame":
    """One row a pair of every measurement, slowest first: what the ranking rests on."""
    import polars as pl

    rows = [
        {
            "fabric": p.fabric, "test": p.test, "ranks": p.ranks, "placement": p.placement, "size_bytes": p.size_bytes,
            "directed": p.directed, "rank": i, "a": r.pair[0], "b": r.pair[1], "median": r.value, "unit": p.unit,
            "ratio": r.ratio, "deviations": r.deviations, "slow_pair": r.slow, "slow_hosts": ", ".join(r.slow_hosts),
        }
        for p in found
        for i, r in enumerate(p.ranked(), 1)
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)
