"""Every limit against the runs of a campaign."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rdmalab import limits, stats
from rdmalab.acceptance._bound import beyond, beyond_all, beyond_text, bound_of_runs, stated_bound
from rdmalab.acceptance._result import (
    FAIL,
    NOT_COMPARABLE,
    NOT_DECIDED,
    NOT_TESTED,
    PASS,
    REFUSED,
    Acceptance,
    Line,
    Outcome,
)
from rdmalab.acceptance._spec import NUMBERS, WORDS, Spec, SpecError, Threshold, plain_size, window_text
from rdmalab.errors import did_you_mean
from rdmalab.units import parse_size

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

_ASKED = (
    "ranks", "nodes", "dtype", "placement", "bidirectional", "latency_convention", "memory", "connection",
    "queue_pairs",
)  # fmt: skip
_APART = {  # what never stands in one median
    "collective": ("tool", "operation", "dtype", "redop", "root", "ranks", "nodes", "placement"),
    "": ("program", "bidirectional", "memory", "latency_convention", "connection", "queue_pairs"),
}
# Runs that show a transport: one that fell back to sockets counts in no comparison, but here it is what is looked for.
_SHOWN = "(excluded_because IS NULL OR (transport_fallback AND status = 'complete'))"
_QUANTILE_RUNS = 10  # runs beyond a quantile, below which it says nothing


def check(lab: "Lab", spec: Spec, campaign: str | None = None) -> Acceptance:
    """
    Holds every limit of *spec* against the runs of a campaign; without a name that of the spec, or the only one.

    Raises:
        UsageError: The campaign, or a fabric that a limit names, does not exist.
    """
    name = lab.the_campaign(campaign or spec.campaign)
    known = lab.sql("SELECT DISTINCT fabric FROM runs WHERE campaign = $c ORDER BY 1", c=name)["fabric"].to_list()
    for t in spec.limits:
        for fabric in t.fabrics:
            if fabric not in known:
                raise SpecError(
                    f"{spec.path}:{t.line}: campaign '{name}' has no run of a fabric '{fabric}'; it has: "
                    f"{', '.join(known)}.{did_you_mean(fabric, known)}"
                )
    outcomes = [_judged(lab, name, t, known) for t in spec.limits]
    return Acceptance(spec=spec, campaign=name, outcomes=tuple(outcomes))


def _judged(lab: "Lab", campaign: str, t: Threshold, fabrics: list[str]) -> Outcome:
    """The lines of one limit: refused as it stands, or one a fabric, measurand and size."""
    if (refused := _refused(t)) is not None:
        return Outcome(limit=t, lines=(refused,))
    if t.metric == "drop_pct" and t.golden is None:
        why = f"a drop of {t.of} is held against a golden value: state golden in the limit"
        return Outcome(limit=t, lines=(Line(outcome=NOT_TESTED, because=why),), closes=_command(t))
    lines = [line for fabric in t.fabrics or fabrics for line in lines_of(lab, campaign, t, fabric)]
    if not t.fabrics:  # then the fabrics that measured it count, and the others only where none did
        tested = [x for x in lines if x.outcome not in (NOT_TESTED, NOT_COMPARABLE)]
        lines = tested or [x for x in lines if x.outcome == NOT_COMPARABLE] or lines[:1]
        if lines and lines[0].outcome == NOT_TESTED:
            lines = [replace(lines[0], fabric="")]
    untested = any(x.outcome in (NOT_TESTED, NOT_COMPARABLE, NOT_DECIDED) for x in lines)
    return Outcome(limit=t, lines=tuple(lines), closes=_command(t) if untested else "")


def _refused(t: Threshold) -> Line | None:
    """A limit that the hardware it names cannot keep; what it leaves open is varied, so only certainty refuses."""
    found = stated_bound(t)
    if found is None or not beyond(t, found[0]):
        return None
    bound, formula, source = found
    return Line(
        outcome=REFUSED, because=beyond_text(t, bound, formula), bound=bound, bound_formula=formula,
        bound_source=source,
    )  # fmt: skip


def lines_of(lab: "Lab", campaign: str, t: Threshold, fabric: str) -> Iterator[Line]:
    """The lines of a limit on one fabric; one without runs where it has none, which says why."""
    core = _where(campaign, fabric, t)
    asked = _asked(t)
    stated = [f"{k} IS NOT DISTINCT FROM {_literal(v)}" for k, v in asked.items()]
    matching = " AND ".join([core, *stated])
    if unlike := _other_hardware(lab, campaign, t, fabric, core):
        yield Line(outcome=NOT_COMPARABLE, because="; ".join(unlike), fabric=fabric)
        return
    rows = _rows(lab, t, " AND ".join([matching, *_in_window(t)]))
    if not rows.is_empty():
        yield from _measurands(t, fabric, rows, " AND ".join([matching, *_in_window(t)]))
        return
    outcome, why = _why_not(lab, t, core, matching, asked)
    yield Line(outcome=outcome, because=why, fabric=fabric)


def _other_hardware(lab: "Lab", campaign: str, t: Threshold, fabric: str, core: str) -> list[str]:
    """In what the fabric, as its campaign file and its logs state it, is not what the limit is for."""
    has = lab.sql(
        "SELECT link_rate_gbit_s, fabric_family AS family, ports_per_node, gpus_per_node, gpus_per_domain, gpu "
        "FROM fabrics WHERE campaign = $c AND fabric = $f", c=campaign, f=fabric,
    )  # fmt: skip
    row = has.row(0, named=True) if has.height else {}
    out = [
        f"{key} {_plain(asked)} is asked, that of the fabric is {_plain(row[key])}"
        for key in ("link_rate_gbit_s", "family")
        if (asked := getattr(t, key)) is not None and row.get(key) not in (None, asked)
    ]
    whole = row.get("gpus_per_domain") in (None, row.get("gpus_per_node"))  # then the ports of a node are the domain's
    if t.ports_per_domain and whole and row.get("ports_per_node") not in (None, t.ports_per_domain):
        out.append(f"ports_per_domain {t.ports_per_domain} is asked, that of the fabric is {row['ports_per_node']}")
    return [*out, *_other_gpu(lab, t, core, row.get("gpu"))]


def _other_gpu(lab: "Lab", t: Threshold, core: str, stated: str | None) -> list[str]:
    seen = lab.sql(f"SELECT DISTINCT gpu_model FROM runs WHERE {core}")["gpu_model"].drop_nulls().sort().to_list()
    seen = seen or [stated] if stated else seen
    mine = limits.accelerator(t.gpu or "")
    if t.gpu is None or not seen or any(g == t.gpu or (mine and limits.accelerator(g) == mine) for g in seen):
        return []
    return [f"gpu {t.gpu} is asked, measured is {', '.join(seen)}"]


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _where(campaign: str, fabric: str, t: Threshold) -> str:
    parts = [f"campaign = {_literal(campaign)}", f"fabric = {_literal(fabric)}"]
    parts += [f"kind = {_literal(t.kind)}"] if t.kind else []
    parts += [f"operation = {_literal(t.operation)}"] if t.operation else []
    parts += [f"program = {_literal(t.program)}"] if t.program else []
    return " AND ".join(parts)


def _asked(t: Threshold) -> dict[str, Any]:
    """The fields that a run must have; out of place and one direction are meant where nothing is said."""
    asked = {k: v for k in _ASKED if (v := getattr(t, k)) is not None}
    if t.kind == "collective" and t.metric not in WORDS:
        asked.setdefault("placement", "out_of_place")
    if t.kind == "bandwidth" and t.program != "iperf3":
        asked.setdefault("bidirectional", False)
    return asked


def _in_window(t: Threshold) -> list[str]:
    if t.metric in WORDS:
        return []
    if t.sizes:
        return [f"size_bytes IN ({', '.join(str(parse_size(s)) for s in t.sizes)})"]
    low, high = t.window
    out = ["coalesce(size_bytes, 1) > 0"]
    out += [f"size_bytes >= {low}"] if low is not None else []
    return [*out, *([f"size_bytes <= {high}"] if high is not None else [])]


def _literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value).lower()


def _column(t: Threshold) -> str:
    """SQL for the value of a row."""
    if t.metric == "ranks":
        return "busbw_gbyte_s"
    if t.metric in WORDS:
        return WORDS[t.metric]
    return NUMBERS[t.of or t.metric][1]


def _sql(t: Threshold, where: str) -> str:
    """The values of the runs, as ``rdmalab query`` gives them again."""
    if t.metric in WORDS:
        return f"SELECT run_id, {_column(t)} AS word FROM runs WHERE {where} AND {_SHOWN} ORDER BY ALL"
    return (
        f"SELECT run_id, size_bytes, median({_filled(t)}) AS value FROM results WHERE {where} GROUP BY ALL ORDER BY ALL"
    )


def _filled(t: Threshold) -> str:
    """The column with the link rate of the fabric, which stands in another view."""
    rate = "(SELECT link_rate_gbit_s FROM fabrics f WHERE f.campaign = results.campaign AND f.fabric = results.fabric)"
    return _column(t).replace("fabric_rate", rate)


def _rows(lab: "Lab", t: Threshold, where: str) -> "pl.DataFrame":
    """One row a run, measurand and size, with the value and the limit of the run."""
    if t.metric in WORDS:
        return lab.sql(f"SELECT run_id, {_column(t)} AS word FROM runs WHERE {where} AND {_SHOWN} ORDER BY run_id")
    apart = ", ".join(dict.fromkeys([*_APART["collective"], *_APART[""]]))
    return lab.sql(
        f"""SELECT run_id, size_bytes, {apart}, median({_filled(t)}) AS value, median(algbw_gbyte_s) AS algbw,
                   list_sort(any_value(hosts)) AS hosts, any_value(limit_gbyte_s) AS limit_gbyte_s,
                   any_value(limit_formula) AS limit_formula, any_value(limit_source) AS limit_source,
                   any_value(limit_flag) AS limit_flag
            FROM results WHERE {where} GROUP BY ALL ORDER BY run_id, size_bytes"""
    )


def _why_not(lab: "Lab", t: Threshold, core: str, matching: str, asked: dict[str, Any]) -> tuple[str, str]:
    """Why no row stands behind a limit: nothing measured, something else measured, or at other sizes."""
    near = lab.sql(f"SELECT * FROM results WHERE {core}")
    if near.is_empty():
        out = lab.sql(f"SELECT DISTINCT excluded_because AS why FROM runs WHERE {core}")["why"].drop_nulls().sort()
        said = f"; what is there cannot be quoted: {', '.join(out)}" if len(out) else ""
        return NOT_TESTED, f"no run of {t.test or 'a collective'}{said}"
    unlike = []
    for key, value in asked.items():
        seen = sorted({str(v).lower() if isinstance(v, bool) else str(v) for v in near[key].unique()})
        word = str(value).lower() if isinstance(value, bool) else str(value)
        if word not in seen:
            unlike.append(f"{key} {word} is asked, measured is {', '.join(_said(v) for v in seen)}")
    if unlike:
        return NOT_COMPARABLE, "; ".join(unlike)
    sizes = lab.sql(f"SELECT min(size_bytes) AS low, max(size_bytes) AS high FROM results WHERE {matching}").row(0)
    if sizes[0] is not None:
        return NOT_TESTED, f"measured from {plain_size(sizes[0])} to {plain_size(sizes[1])}, asked is {window_text(t)}"
    told = ", ".join(f"{k} {v}" for k, v in asked.items())
    return NOT_COMPARABLE, f"no run has {told} together"


def _said(word: str) -> str:
    return "not stated" if word == "None" else word


def _measurands(t: Threshold, fabric: str, rows: "pl.DataFrame", where: str) -> Iterator[Line]:
    """The lines of one fabric: measurands apart, sizes apart unless the limit joins them."""
    keys = [k for k in _APART["collective" if t.kind == "collective" else ""] if k in rows.columns]
    groups = list(rows.group_by(keys, maintain_order=True)) if t.metric not in WORDS else [((), rows)]
    varied = [k for i, k in enumerate(keys) if len({key[i] for key, _ in groups}) > 1] if len(groups) > 1 else []
    for key, group in groups:
        stated = dict(zip(keys, key, strict=True)) if key else {}
        told = ", ".join(f"{k} {_said(str(stated[k]))}" for k in varied)
        clause = " AND ".join([where, *(f"{k} IS NOT DISTINCT FROM {_null(stated[k])}" for k in varied)])
        base = Line(outcome=PASS, because="", fabric=fabric, measurand=told, sql=_sql(t, clause))
        if t.metric in WORDS:
            yield _proof(t, group, base)
        elif group["value"].is_null().all():
            yield replace(base, outcome=NOT_COMPARABLE, because=f"the logs print no {t.of or t.metric}", sql="")
        elif t.metric == "ranks":
            yield _declared_ranks(t, group, base)
        else:
            yield from _sizes_of(t, group, base, clause)


def _null(value: Any) -> str:
    return "NULL" if value is None else _literal(value)


def _sizes_of(t: Threshold, group: "pl.DataFrame", base: Line, where: str) -> Iterator[Line]:
    """One line a size, or one over the window: the mean, the best or the worst size of every run."""
    import polars as pl

    group = group.filter(pl.col("value").is_not_null())
    if t.over_sizes == "every":
        for (size,), part in sorted(group.group_by(["size_bytes"]), key=lambda x: -1 if x[0][0] is None else x[0][0]):
            at = f"{where} AND size_bytes IS NOT DISTINCT FROM {'NULL' if size is None else size}"
            yield _valued(t, part.sort("run_id"), replace(base, size_bytes=size, sql=_sql(t, at)))
        return
    how = {"mean": pl.col("value").mean(), "max": pl.col("value").max(), "min": pl.col("value").min()}[t.over_sizes]
    others = [pl.first(c) for c in group.columns if c not in ("run_id", "value")]
    joined = group.group_by("run_id", maintain_order=True).agg(how, *others)
    yield _valued(t, joined, replace(base, measurand=f"{base.measurand} {t.over_sizes} over sizes".strip()))


def _valued(t: Threshold, rows: "pl.DataFrame", base: Line) -> Line:
    """The outcome of one value: refused, decided by interval, by every run, by the worst pair or node."""
    values = rows["value"].to_list()
    if t.metric == "drop_pct":
        values = [100 * (1 - v / (t.golden or math.nan)) for v in values]
        values = [-v for v in values] if NUMBERS[t.of or ""][2] == "us" else values
    line = replace(base, n=len(values), runs=tuple(rows["run_id"]))
    if (bound := bound_of_runs(t, rows)) is not None:
        line = replace(line, bound=bound[0], bound_formula=bound[1], bound_source=bound[2])
        if beyond(t, bound[0]):
            return replace(line, outcome=REFUSED, because=beyond_text(t, bound[0], bound[1]))
    if impossible := beyond_all(t, rows, bound):
        return replace(line, **_summary(t, values), outcome=REFUSED, because=impossible)
    if t.metric == "pair_spread_pct" or t.statistic.startswith("worst_"):
        return _worst(t, rows, line)
    if len(values) < t.runs_at_least:
        return replace(line, **_summary(t, values), outcome=NOT_DECIDED,
            because=f"{_runs(len(values))}, {t.runs_at_least} are asked")  # fmt: skip
    return replace(line, **_summary(t, values), **_decided(t, values))


def _summary(t: Threshold, values: list[float]) -> dict[str, Any]:
    """The statistic of the runs with its interval, or with the extremes where it has none."""
    if t.statistic == "median":
        found = stats.median_interval(values)
        return {"value": stats.median(values), **({"low": found.low, "high": found.high} if found else {})}
    ends = {"low": min(values), "high": max(values)}
    if t.statistic.startswith("p"):
        return {"value": _quantile(t, values), **ends}
    worst = min(values) if t.at_least is not None else max(values)
    return {"value": {"min": min(values), "max": max(values)}.get(t.statistic, worst), **ends}


def _quantile(t: Threshold, values: list[float]) -> float:
    """By order statistic, on the side that is harder to pass."""
    share, ordered = int(t.statistic[1:]) / 100, sorted(values)
    position = share * (len(values) - 1)
    return ordered[math.floor(position) if t.at_least is not None else math.ceil(position)]


def _decided(t: Threshold, values: list[float]) -> dict[str, Any]:
    """Outcome and reason; a median passes or fails by its whole interval."""
    runs, said = _runs(len(values)), _summary(t, values)
    if t.statistic == "median":
        if "low" not in said:
            return {"outcome": NOT_DECIDED, "because": f"{runs}: no interval, {stats.LEAST_RUNS} runs give one"}
        bad, good = (said["low"], said["high"]) if t.at_least is not None else (said["high"], said["low"])
        between = f"median of {runs}, interval [{said['low']:.6g}, {said['high']:.6g}] {t.shown_unit}"
        if t.good(bad):
            return {"outcome": PASS, "because": between}
        if t.good(good):
            return {"outcome": NOT_DECIDED, "because": f"{between} holds the limit"}
        return {"outcome": FAIL, "because": between}
    if t.statistic.startswith("p"):
        share = int(t.statistic[1:]) / 100
        needed = math.ceil(_QUANTILE_RUNS / min(share, 1 - share))
        if len(values) < needed:
            return {"outcome": NOT_DECIDED, "because": f"{runs}: {t.statistic} wants {needed}"}
    kept = sum(map(t.good, values))
    told = f"{kept} of {runs} keep it" if t.statistic == "every_run" else f"{t.statistic} of {runs}"
    return {"outcome": PASS if t.good(said["value"]) else FAIL, "because": told}


def _runs(n: int) -> str:
    return f"{n} run{'s' if n != 1 else ''}"


def _worst(t: Threshold, rows: "pl.DataFrame", line: Line) -> Line:
    """The worst pair or node by the median of its runs, or how far pairs lie apart."""
    import polars as pl

    alone = t.statistic == "worst_node"  # then a run inside one node says it too
    two = rows.filter((pl.col("hosts").list.len() == 2) | (pl.lit(alone) & (pl.col("hosts").list.len() == 1)))
    if two.is_empty():
        return replace(line, outcome=NOT_TESTED, because="no run of a pair of hosts that its log names")
    pairs: dict[tuple[str, ...], list[float]] = {}
    for hosts, value in two.select("hosts", "value").iter_rows():
        names: list[tuple[str, ...]] = [(h,) for h in hosts] if t.statistic == "worst_node" else [tuple(hosts)]
        for name in names:
            pairs.setdefault(name, []).append(value)
    medians: dict[tuple[str, ...], float] = {name: stats.median(v) for name, v in pairs.items()}
    line = replace(line, n=two["run_id"].n_unique(), runs=tuple(dict.fromkeys(two["run_id"])))
    if t.metric == "pair_spread_pct":
        if len(medians) < 2:
            return replace(line, outcome=NOT_TESTED, because="one pair of hosts: there is nothing between pairs")
        low, high = min(medians.values()), max(medians.values())
        spread = 100 * (high - low) / stats.median(medians.values())
        told = f"{len(medians)} pairs from {low:.6g} to {high:.6g} GB/s"
        where = " - ".join(min(medians.items(), key=lambda item: item[1])[0])
        return replace(line, value=spread, where=where, because=told, outcome=PASS if t.good(spread) else FAIL)
    sign = 1 if t.at_least is not None else -1
    worst = min(medians, key=lambda k: (sign * medians[k], k))
    what = "nodes" if t.statistic == "worst_node" else "pairs"
    return replace(
        line, value=medians[worst], low=min(medians.values()), high=max(medians.values()), where=" - ".join(worst),
        because=f"worst of {len(medians)} {what}: {' - '.join(worst)}, median of {_runs(len(pairs[worst]))}",
        outcome=PASS if t.good(medians[worst]) else FAIL,
    )  # fmt: skip


def _proof(t: Threshold, rows: "pl.DataFrame", line: Line) -> Line:
    """Words that NCCL lines prove: every run must show one of those asked for."""
    words: dict[str, int] = {}
    for word in rows["word"].to_list():
        words[word or "not proved"] = words.get(word or "not proved", 0) + 1
    told = ", ".join(f"{w}: {_runs(n)}" for w, n in sorted(words.items()))
    line = replace(line, n=rows.height, runs=tuple(rows["run_id"]), because=told)
    shown = set(words) - {"not proved", "unknown"}
    if not shown:
        return replace(line, outcome=NOT_TESTED)
    if shown - set(t.one_of):
        return replace(line, outcome=FAIL)
    enough = rows.height >= t.runs_at_least
    return replace(line, outcome=PASS if set(words) == shown and enough else NOT_DECIDED)


def _declared_ranks(t: Threshold, rows: "pl.DataFrame", line: Line) -> Line:
    """Whether bus and algorithm bandwidth of every row allow the declared ranks."""
    runs, seen = tuple(dict.fromkeys(rows["run_id"])), 0
    line = replace(line, n=len(runs), runs=runs)
    for row in rows.iter_rows(named=True):
        busbw, algbw, n = row["value"], row["algbw"], row["ranks"]
        if not (busbw and algbw and n) or (fit := limits.ranks_that_fit(busbw, algbw, row["operation"])) is None:
            continue
        seen += 1
        if not fit[0] <= n <= fit[1]:
            implied = limits.implied_ranks(busbw, algbw, row["operation"]) or math.nan
            told = f"{busbw:g} over {algbw:g} GB/s implies {implied:.4g} ranks, declared are {n} ({row['run_id']})"
            return replace(line, outcome=FAIL, because=told, value=implied, size_bytes=row["size_bytes"])
    if not seen:
        return replace(line, outcome=NOT_COMPARABLE, because="bus and algorithm bandwidth do not say the ranks")
    told = f"{seen} rows of {_runs(len(runs))} agree"
    return replace(line, outcome=PASS, value=float(rows["ranks"][0]), because=told)


def _command(t: Threshold) -> str:
    """The command whose log would test a limit; a median wants six logs of it."""
    low, high = (None if s is None else _short(s) for s in t.window)
    if t.kind == "collective":
        ranks = t.ranks or (t.domains or 0) * (t.gpus_per_domain or 0)
        size = f" -b {low or 8} -e {high or '4G'} -f 2"
        line = f"{t.operation or 'all_reduce'}_perf{size} -g 1{f', {ranks} ranks' if ranks else ''}"
        return line + (", NCCL_DEBUG=INFO" if t.metric in WORDS else "")
    if not (t.program or "").startswith("ib_"):
        return str(t.program)
    size = f" -s {t.window[0]}" if t.window[0] and t.window[0] == t.window[1] else " -a"
    words = [" -b" if t.bidirectional else "", " --report_gbits" if t.kind == "bandwidth" else ""]
    words += [f" --use_{t.memory}=0" if t.memory not in (None, "host") else ""]
    return f"{t.program}{size}{''.join(words)} SERVER"


def _short(size_bytes: int) -> str:
    """A size as nccl-tests reads it: 1G."""
    return plain_size(size_bytes).removesuffix("B").removesuffix("i").replace(" ", "")
