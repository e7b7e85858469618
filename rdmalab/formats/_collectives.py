"""Arithmetic of collectives: which operation, how many ranks, and whether the printed numbers agree.

Sources: ``doc/PERFORMANCE.md`` and ``*GetCollByteCount``, ``*GetBw`` in ``src/<program>.cu`` of nccl-tests. Nothing
here changes a value: a contradiction becomes a Note. A printed number stands for the interval of half a unit of its
last digit on both sides, so "agrees" has an exact meaning.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rdmalab.model import COLLECTIVES, Note, Sample, Samples

ELEMENT_BYTES = {
    "char": 1, "int8": 1, "uint8": 1, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "half": 2, "bfloat16": 2,
    "int": 4, "int32": 4, "uint32": 4, "float": 4, "int64": 8, "uint64": 8, "double": 8,
}  # fmt: skip
BINARY_GIGABYTE = 2**30 / 1e9
REDOPS = ("sum", "prod", "max", "min", "avg", "mulsum")
_PROGRAM = re.compile(rf"\b({'|'.join(sorted(COLLECTIVES, key=len, reverse=True))})_(?:perf|test)(?:_mpi)?\b")


# The time, algbw and busbw of a sample as they stand in the log.
Printed = tuple[str, str, str]


class _Shape(NamedTuple):
    """What the columns of an operation look like."""

    reduces: bool
    rooted: bool
    times_ranks: bool  # size = ranks x count x element size, not count x element size
    checks_in_place: bool = True


_SHAPES = {
    "all_reduce": _Shape(True, False, False),
    "reduce_scatter": _Shape(True, False, True),
    "reduce": _Shape(True, True, False),
    "broadcast": _Shape(False, True, False),
    "gather": _Shape(False, True, True),
    "scatter": _Shape(False, True, True),
    "all_gather": _Shape(False, False, True),
    "alltoall": _Shape(False, False, True, checks_in_place=False),
    "hypercube": _Shape(False, False, True),
    "sendrecv": _Shape(True, False, False, checks_in_place=False),  # prints a redop that means nothing
}
_PART = {"all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter"}


def operation_of(text: str) -> str | None:
    """The operation of a program name or path: ``build/all_reduce_perf_mpi`` is ``all_reduce``."""
    found = _PROGRAM.search(text)
    return found[1] if found else None


def library_version(code: int) -> str:
    """22907 is 2.29.7: major x 10000 + minor x 100 + patch; before 2.9 (2804) major x 1000."""
    if code < 10000:
        return f"{code // 1000}.{code // 100 % 10}.{code % 100}"
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"


def busbw_factor(operation: str, ranks: int) -> float:
    """busbw / algbw of *operation* among *ranks*."""
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if operation in _PART else 1.0


def whole(printed: str) -> int:
    """A whole number that fits 64 bits.

    Raises:
        ValueError: It is none.
    """
    if not re.fullmatch("[0-9]{1,19}", printed) or (value := int(printed)) >= 2**63:
        raise ValueError(printed)
    return value


def real(printed: str) -> float | None:
    """A number, None for ``nan`` and ``inf``.

    Raises:
        ValueError: It is none.
    """
    if not re.fullmatch(r"-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|nan|inf)", printed):
        raise ValueError(printed)
    value = float(printed)
    return value if math.isfinite(value) else None


def half_unit(printed: str) -> float:
    """Half a unit of the last printed digit: 0.005 of ``61.13``, 500000 of ``1.1e+07``."""
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa) - mantissa.index(".") - 1 if "." in mantissa else 0
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def is_finite(printed: str) -> bool:
    """Whether a printed number is one: ``nan`` and ``inf`` are not."""
    return math.isfinite(float(printed))


def has_factor(sample: Sample, printed: Printed, factor: float) -> bool:
    """Whether busbw = factor x algbw may be true of the numbers before they were rounded."""
    algbw, busbw = sample.algbw_gbyte_s, sample.busbw_gbyte_s
    if algbw is None or busbw is None:
        return True
    _, algbw_text, busbw_text = printed
    return abs(busbw - factor * algbw) <= (half_unit(busbw_text) + factor * half_unit(algbw_text)) * (1 + 1e-9) + 1e-9


def has_time(sample: Sample, printed: Printed, share: float = 1.0) -> bool:
    """Whether algbw = share x size / time may be true of the numbers before they were rounded."""
    size, time, algbw = sample.size_bytes, sample.time_us, sample.algbw_gbyte_s
    if size is None or time is None or algbw is None:
        return True
    time_text, algbw_text, _ = printed
    half_time = half_unit(time_text) * (time / float(time_text) if float(time_text) else 1.0)
    half_algbw = half_unit(algbw_text)
    slack = time * half_algbw + algbw * half_time + half_time * half_algbw
    return abs(share * size / 1e3 - time * algbw) <= slack * (1 + 1e-9) + 1e-9


def _doubtful(samples: Samples, printed: Sequence[Printed], factor: float | None) -> list[tuple[Sample, Printed]]:
    """
    The samples whose numbers are not seen at a glance to agree.

    Where every number is there and every bandwidth has two decimals, the most that is ever printed, half of the last
    digit is 0.005. That clears almost every row; the exact tests are for the rest.

    Args:
        factor: busbw / algbw, None where it is not known.
    """
    names = ("size_bytes", "time_us", "algbw_gbyte_s", "busbw_gbyte_s")
    rows = enumerate(zip(*map(samples.column, names), strict=True))
    slack = math.inf if factor is None else 0.005 * (1 + factor)
    share = factor or 0.0
    try:
        left: Iterable[int] = [
            at
            for at, (size, time, algbw, busbw) in rows
            if abs(size / 1e3 - time * algbw) > 0.005 * time or abs(busbw - share * algbw) > slack
        ]
    except TypeError:  # None: a number is missing
        left = range(len(samples))
    if not all(algbw[-3:-2] == "." == busbw[-3:-2] for _, algbw, busbw in printed):
        left = range(len(samples))
    return [(samples[at], printed[at]) for at in left]


def ranks_range(operation: str, samples: Sequence[Sample], printed: Sequence[Printed]) -> tuple[float, float]:
    """Least and most ranks that busbw / algbw of all samples allows; least > most where they contradict each other."""
    least, most = 1.0, math.inf
    top = 2.0 if operation == "all_reduce" else 1.0
    for sample, text in zip(samples, printed, strict=True):
        algbw, busbw = sample.algbw_gbyte_s, sample.busbw_gbyte_s
        if algbw is None or busbw is None or algbw <= (slack := half_unit(text[1])):
            continue
        half = half_unit(text[2])
        low, high = (busbw - half) / (algbw + slack), (busbw + half) / (algbw - slack)
        least = max(least, top / (top - low) if low < top else math.inf)
        most = min(most, top / (top - high) if high < top else math.inf)
    return _whole(math.ceil, least - 1e-6), _whole(math.floor, most + 1e-6)


def _whole(rounding: Callable[[float], int], value: float) -> float:
    return rounding(value) if math.isfinite(value) else value


def share_of(samples: Sequence[Sample]) -> float | None:
    """size / (count x element size), the same in every row that holds data, else None."""
    shares = {
        s.size_bytes / (s.count * ELEMENT_BYTES[s.dtype])
        for s in samples
        if s.size_bytes and s.count and s.dtype in ELEMENT_BYTES
    }
    return shares.pop() if len(shares) == 1 else None


def candidates(
    samples: Sequence[Sample], printed: Sequence[Printed], ranks: int | None, *, validated: bool, deviation: bool
) -> tuple[str, ...]:
    """
    The operations that could have printed these rows.

    Args:
        ranks: Of one communicator, None where the log does not say.
        validated: False where the header says ``validation: 0``.
        deviation: The last column is a largest deviation (before 2022): sendrecv had no redop then and was checked in
            place, all_gather and reduce_scatter printed algbw = busbw (before 2020).
    """
    filled = [s for s in samples if s.size_bytes and s.count and s.dtype in ELEMENT_BYTES]
    share = share_of(filled)
    if share is None:
        return ("alltoallv",) if filled and not any(s.redop or s.root is not None for s in filled) else ()
    reduces = {s.redop is not None for s in filled}
    rooted = {s.root is not None for s in filled}
    seen = {s.placement for s in samples if validated and (s.wrong is not None or s.max_delta is not None)}
    only_out = "out_of_place" in seen and "in_place" not in seen and any(s.placement == "in_place" for s in samples)

    def possible(operation: str, shape: _Shape) -> bool:
        if deviation and operation == "sendrecv":
            shape = _Shape(False, False, False)
        if reduces != {shape.reduces} or rooted != {shape.rooted}:
            return False
        if only_out if shape.checks_in_place else "in_place" in seen:
            return False
        n = share if shape.times_ranks else ranks
        if (ranks and n != ranks) or (not shape.times_ranks and share != 1) or (operation == "hypercube" and n == 1):
            return False
        if operation in _PART or operation == "all_reduce":
            if deviation and operation in ("all_gather", "reduce_scatter") and _all_equal(samples, printed):
                return share > 1
            least, most = ranks_range(operation, samples, printed)
            return least <= (n or least) <= most
        return _all_equal(samples, printed)

    return tuple(name for name, shape in _SHAPES.items() if possible(name, shape))


def _all_equal(samples: Sequence[Sample], printed: Sequence[Printed]) -> bool:
    return all(has_factor(s, p, 1.0) for s, p in zip(samples, printed, strict=True))


def infer_ranks(
    operations: Sequence[str], samples: Sequence[Sample], printed: Sequence[Printed]
) -> tuple[int | None, str | None]:
    """Ranks that the numbers prove, and from what: (None, None) where more than one number of ranks is possible."""
    share = share_of(samples)
    if operations and share and share.is_integer() and all(_SHAPES[o].times_ranks for o in operations if o in _SHAPES):
        return int(share), "inferred from size / (count x element size)"
    if len(operations) == 1 and (operations[0] in _PART or operations[0] == "all_reduce"):
        least, most = ranks_range(operations[0], samples, printed)
        if least == most < math.inf:
            return int(least), "inferred from busbw / algbw"
    return None, None


def check(
    samples: Sequence[Sample],
    printed: Sequence[Printed],
    *,
    operation: str | None,
    ranks: int | None,
    ranks_evidence: str | None,
    average: str | None,
) -> list[Note]:
    """
    Notes on numbers that contradict each other, one a kind, naming the first line and how many more there are.

    Args:
        ranks: Of one communicator.
        average: The tool's average of busbw as printed.
    """
    samples = Samples.of(samples)
    told = ranks_evidence if operation and ranks and not (ranks_evidence or "inferred").startswith("inferred") else None
    factor = busbw_factor(operation, ranks) if told and operation and ranks else None
    doubtful = _doubtful(samples, printed, factor)
    odd = [(s, p) for s, p in doubtful if not has_time(s, p)]
    notes = [_size_time(odd, operation, ranks), _average(samples, printed, average)]
    if operation and factor is not None:
        misfits = [s for s, p in doubtful if not has_factor(s, p, factor)]
        notes.append(_implied_ranks(samples, printed, misfits, operation, f"the {told} say {ranks}"))
    return [n for n in notes if n]


def _more(count: int) -> str:
    return f" ({count} rows in all)" if count > 1 else ""


def _size_time(odd: list[tuple[Sample, Printed]], operation: str | None, ranks: int | None) -> Note | None:
    # hypercube, and all_gather and reduce_scatter before 2020-06, leave the rank's own part out of algbw.
    if odd and ranks and operation in ("hypercube", "all_gather", "reduce_scatter"):
        odd = [(s, p) for s, p in odd if not (has_time(s, p, (ranks - 1) / ranks) and has_factor(s, p, 1.0))]
    if not odd:
        return None
    first, text = odd[0]
    return Note(
        first.line, "size_time_mismatch",
        f"{first.size_bytes} bytes in {text[0]} do not give the printed algbw of {text[1]} GB/s"
        f"{_more(len(odd))}; the row may be cut, glued or edited by hand.",
    )  # fmt: skip


def _average(samples: Samples, printed: Sequence[Printed], average: str | None) -> Note | None:
    values = samples.column("busbw_gbyte_s")
    if average is None or not values or None in values:
        return None
    mean = sum(values) / len(values)
    slack = half_unit(average) + 0.005
    if abs(mean - float(average)) > slack:
        slack = half_unit(average) + sum(half_unit(p[2]) for p in printed) / len(printed)
    if abs(mean - float(average)) <= slack * (1 + 1e-9):
        return None
    return Note(
        samples[0].line, "average_mismatch",
        f"The mean busbw of the {len(values)} values read is {mean:.6g} GB/s, the tool printed {average}; "
        "rows may have been left out.",
    )  # fmt: skip


def _implied_ranks(
    samples: Sequence[Sample], printed: Sequence[Printed], odd: list[Sample], operation: str, said: str
) -> Note | None:
    if not odd or (operation in ("all_gather", "reduce_scatter") and _all_equal(samples, printed)):
        return None
    implied, _ = infer_ranks([operation], samples, printed)
    found = f"busbw / algbw says {implied} ranks" if implied else "busbw / algbw does not fit"
    return Note(odd[0].line, "implied_ranks", f"{found}, {said}{_more(len(odd))}.")


def gigabyte(samples: Sequence[Sample], printed: Sequence[Printed]) -> float | None:
    """What GB means by size / time, in units of 1e9 bytes: 1, 2**30 / 1e9, or None where the table fits neither."""
    pairs = list(zip(samples, printed, strict=True))
    for meaning in (1.0, BINARY_GIGABYTE):
        if all(has_time(s, p, 1 / meaning) for s, p in pairs):
            return meaning
    return None
