"""Times and bandwidths from the more precise of the printed numbers, beside what was printed and never instead of it.

nccl-tests prints three numbers that mean one thing: the time, algbw = size / time, and busbw = factor x algbw. Times
are printed with two decimals, above 100 us (until 2.17.3) with one, above 10 ms with none or one, and from ten seconds
on as ``1.7e+07``; bandwidths in steps of 0.01. The number with the smallest relative step tells the other two better
than they are printed. perftest prints bandwidths in steps of 0.01 and message rates in steps of 0.000001.

What is recomputed lies inside the step of what was printed, else it is None: a row that contradicts itself, and a tool
version that left a rank's own part out, recompute nothing. The rule stands here twice, as a function for one sample and
as SQL for the views of a store; a test holds the two against each other.

Source: NVIDIA/nccl-tests src/common.cu and src/util.cu (formats by version), linux-rdma/perftest
src/perftest_parameters.h.
"""

import math

from rdmalab.model import Run, Sample
from rdmalab.units import MIB_S_IN_GBIT_S

NAMES = ("time_us_recomputed", "algbw_gbyte_s_recomputed", "busbw_gbyte_s_recomputed", "bw_avg_gbit_s_recomputed")
_TOOLS = ("nccl-tests", "rccl-tests")
_PARTS = ("all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter")
_SLACK = 1 + 1e-9  # the numbers are no decimals in memory


def recomputed(run: Run, sample: Sample) -> dict[str, float]:
    """The recomputed values of a sample by name; those that no more precise number tells are left out."""
    if run.tool == "perftest":
        return _of_rate(run, sample)
    time, algbw, busbw = sample.time_us, sample.algbw_gbyte_s, sample.busbw_gbyte_s
    if run.tool not in _TOOLS or not _applies(run, sample) or not time or algbw is None:
        return {}
    size = (sample.size_bytes or 0) / 1e3
    factor = _factor(run.operation, run.communicator_ranks or run.ranks)
    old = sample.max_delta is not None
    sources = [(_coarse_time(time, old) / time, size / time)]  # relative step, algbw that it tells
    if algbw:
        sources.append((_coarse_bandwidth(algbw) / algbw, algbw))
    if busbw and factor:
        sources.append((_coarse_bandwidth(busbw) / busbw, busbw / factor))
    step, best = min(sources)
    found: dict[str, float] = {}
    if best:
        _keep(found, NAMES[0], time, size / best, _fine_time(time), step)
    _keep(found, NAMES[1], algbw, best, _fine_bandwidth(algbw), step)
    if busbw is not None and factor:
        _keep(found, NAMES[2], busbw, factor * best, _fine_bandwidth(busbw), step)
    return found


def _keep(found: dict[str, float], name: str, printed: float, value: float, half: float, step: float) -> None:
    """Keeps a value that is told more precisely than it is printed and that does not contradict what is printed."""
    if step * printed < half / _SLACK and abs(value - printed) <= half * _SLACK:
        found[name] = value


def _of_rate(run: Run, sample: Sample) -> dict[str, float]:
    """perftest: bandwidth = message rate x size, in every version and mode."""
    average, rate = sample.bw_avg_gbit_s, sample.msg_rate_mpps
    if not (average and rate and sample.size_bytes and run.kind == "bandwidth" and run.unit_printed):
        return {}
    unit = 1.0 if run.unit_printed == "Gb/sec" else MIB_S_IN_GBIT_S
    printed = average / unit
    half = (0.005 if abs(round(printed, 2) - printed) < 1e-7 else 5e-7) * unit
    value = rate * sample.size_bytes * 8 / 1000
    step = 5e-7 / rate
    if step * average < half and abs(value - average) <= half + step * value:
        return {NAMES[3]: value}
    return {}


def _applies(run: Run, sample: Sample) -> bool:
    """Whether algbw is size / time: hypercube, and two more before 2020-06, leave the rank's own part out."""
    if run.operation in (None, "hypercube") or sample.line is None or not sample.size_bytes:
        return False  # documents (JSON) have no lines and print six decimals
    return not (sample.max_delta is not None and run.operation in ("all_gather", "reduce_scatter"))


def _factor(operation: str | None, ranks: int | None) -> float:
    """busbw / algbw, 0 where it is not known."""
    if operation not in ("all_reduce", *_PARTS):
        return 1.0
    if not ranks:
        return 0.0
    return (2 if operation == "all_reduce" else 1) * (1 - 1 / ranks)


# Half of the last printed digit. Where versions differ, the coarse one is what a number surely tells as a source, and
# the fine one is how far from the printed number a recomputed one may be.


def _decimals(value: float) -> int:
    """0, 1, 2 or, for more, 6: as few as write *value*."""
    return next((n for n in (0, 1, 2) if round(value, n) == value), 6)


def _coarse_time(value: float, old: bool) -> float:
    decimals = _decimals(value)
    if decimals == 6:
        return 5e-7
    if value >= 1e7 and value % 1e5 == 0:
        return 0.5 * 10.0 ** (math.floor(math.log10(value)) - 1)
    if decimals == 0 and (value >= 1e4 or old):  # until 2019 milliseconds with three decimals
        return 0.5
    return 0.05 if value >= 100 and decimals < 2 else 0.005


def _fine_time(value: float) -> float:
    if _decimals(value) == 6:
        return 5e-7
    if value >= 1e7 and value % 1e5 == 0:
        return 0.5 * 10.0 ** (math.floor(math.log10(value)) - 1)
    return 0.5 if value >= 1e5 else 0.05 if value >= 1e4 else 0.005


def _coarse_bandwidth(value: float) -> float:
    decimals = _decimals(value)
    if decimals == 6:
        return 5e-7
    if value >= 1e6:
        return 0.5 * 10.0 ** math.floor(math.log10(value))
    if value >= 1e4 and decimals == 0:
        return 0.5
    return 0.05 if value >= 1e3 and decimals < 2 else 0.005


def _fine_bandwidth(value: float) -> float:
    if _decimals(value) == 6:
        return 5e-7
    return 0.5 * 10.0 ** math.floor(math.log10(value)) if value >= 1e6 else 0.005


# The same in SQL.


def _sql_half(column: str, *, coarse: bool) -> str:
    time = column == "time_us"
    more = f"CASE WHEN round({column}, 2) <> {column} THEN 5e-7"
    if time:
        more += f" WHEN {column} >= 1e7 AND {column} % 1e5 = 0 THEN 0.5 * pow(10, floor(log10({column})) - 1)"
    else:
        more += f" WHEN {column} >= 1e6 THEN 0.5 * pow(10, floor(log10({column})))"
    if coarse:
        old = " OR max_delta IS NOT NULL" if time else ""
        more += f" WHEN round({column}) = {column} AND ({column} >= 1e4{old}) THEN 0.5"
        more += f" WHEN {column} >= {100 if time else 1000} AND round({column}, 1) = {column} THEN 0.05"
    elif time:
        more += f" WHEN {column} >= 1e5 THEN 0.5 WHEN {column} >= 1e4 THEN 0.05"
    return f"{more} ELSE 0.005 END"


def _sql_kept(name: str, printed: str, value: str) -> str:
    half = _sql_half(printed, coarse=False)
    return (
        f"CASE WHEN applies_ AND step_ * {printed} < ({half}) / {_SLACK} "
        f"AND abs({value} - {printed}) <= ({half}) * {_SLACK} THEN {value} END AS {name}"
    )


_IN = ", ".join(f"'{name}'" for name in _PARTS)
_STEPS = [
    ("time_us", "size_ / time_us"),
    ("algbw_gbyte_s", "algbw_gbyte_s"),
    ("busbw_gbyte_s", "busbw_gbyte_s / factor_"),
]


def sql(samples: str, runs: str) -> str:
    """
    A query for all columns of *samples* and the recomputed ones.

    Args:
        samples: A table with the fields of Sample and ``run_id``.
        runs: A table with the fields of Run and ``run_id``.
    """
    steps = ", ".join(
        f"({_sql_half(column, coarse=True)}) / nullif({column}, 0) AS step_{at}_, {told} AS told_{at}_"
        for at, (column, told) in enumerate(_STEPS)
    )
    return f"""
        SELECT * EXCLUDE (tool_, kind_, unit_, size_, factor_, applies_, step_0_, step_1_, step_2_, told_0_, told_1_,
                          told_2_, operation_, step_, best_, half_, rate_),
               {_sql_kept(NAMES[0], "time_us", "size_ / nullif(best_, 0)")},
               {_sql_kept(NAMES[1], "algbw_gbyte_s", "best_")},
               {_sql_kept(NAMES[2], "busbw_gbyte_s", "factor_ * best_")},
               CASE WHEN 5e-7 / msg_rate_mpps * bw_avg_gbit_s < half_
                     AND abs(rate_ - bw_avg_gbit_s) <= half_ + 5e-7 / msg_rate_mpps * rate_ THEN rate_ END AS {NAMES[3]}
        FROM (SELECT *, least(step_0_, step_1_, step_2_) AS step_,
                     CASE least(step_0_, step_1_, step_2_) WHEN step_0_ THEN told_0_ WHEN step_1_ THEN told_1_
                          ELSE told_2_ END AS best_,
                     CASE WHEN tool_ = 'perftest' AND kind_ = 'bandwidth' AND bw_avg_gbit_s > 0 AND msg_rate_mpps > 0
                          THEN msg_rate_mpps * nullif(size_bytes, 0) * 8 / 1000 END AS rate_,
                     CASE WHEN abs(round(bw_avg_gbit_s / unit_, 2) - bw_avg_gbit_s / unit_) < 1e-7
                          THEN 0.005 ELSE 5e-7 END * unit_ AS half_
        FROM (SELECT *, tool_ IN ({", ".join(f"'{t}'" for t in _TOOLS)}) AND size_ > 0 AND line IS NOT NULL
                     AND time_us > 0 AND algbw_gbyte_s IS NOT NULL AND operation_ <> 'hypercube'
                     AND NOT (max_delta IS NOT NULL AND operation_ IN ('all_gather', 'reduce_scatter')) AS applies_,
                     {steps}
        FROM (SELECT s.*, r.operation AS operation_, r.tool AS tool_, r.kind AS kind_, s.size_bytes / 1e3 AS size_,
                     CASE r.unit_printed WHEN 'Gb/sec' THEN 1.0 WHEN 'MB/sec' THEN {MIB_S_IN_GBIT_S}
                          WHEN 'MiB/sec' THEN {MIB_S_IN_GBIT_S} END AS unit_,
                     nullif(CASE WHEN r.operation = 'all_reduce' THEN 2 * (1 - 1 / coalesce(communicator_ranks, ranks))
                                 WHEN r.operation IN ({_IN}) THEN 1 - 1 / coalesce(communicator_ranks, ranks)
                                 ELSE 1 END, 0) AS factor_
              FROM {samples} s LEFT JOIN {runs} r USING (run_id))))"""
