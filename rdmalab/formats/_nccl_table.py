"""The result table of nccl-tests: columns from the header that the log prints, rows as Samples.

::

    #   size    count   type  redop  root   time   algbw   busbw  #wrong   time   algbw   busbw  #wrong
    #    (B) (elements)                     (us)  (GB/s)  (GB/s)           (us)  (GB/s)  (GB/s)
     1048576   262144  float    sum    -1  61.13   17.15   25.73       0  60.02   17.47   26.21       0

Cells are told apart by white space, never by offsets: values overflow their columns.
"""

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, cast

from rdmalab.formats._collectives import ELEMENT_BYTES, REDOPS, Printed

OUT, IN = "out_of_place", "in_place"
_HEAD = {
    "size": "size", "bytes": "size", "count": "count", "n": "count", "type": "type", "redop": "redop", "op": "redop",
    "root": "root",
}  # fmt: skip
_EXTRAS = {"i_min": "iter_min_us", "i_max": "iter_max_us", "i_p99": "iter_p99_us", "i_cv%": "iter_cv_pct"}
_CHECKS = ("#wrong", "wrong", "error", "res")
_UNITS = {"(B)", "(elements)", "(us)", "(ms)", "(GB/s)", "(%)"}
_FULL = ("size", "count", "type", "redop", "root")
_NUMBER = r"(-?(?:nan|inf|\d+(?:\.\d+)?(?:e[+-]\d+)?))"
_CELLS = {
    "size": r"(\d+)", "count": r"\s+(\d+)", "type": rf"\s+({'|'.join(sorted(ELEMENT_BYTES, key=len, reverse=True))})",
    "redop": rf"(?:\s+({'|'.join(sorted(REDOPS, key=len, reverse=True))}|none))?", "root": r"\s+(-1|\d+)",
}  # fmt: skip


Columns = dict[str, list[Any]]  # of samples, by field


class Place(NamedTuple):
    """Where the cells of one placement stand; ``name`` is None where the log does not say which placement it is."""

    name: str | None
    time: int
    algbw: int
    busbw: int
    check: int | None
    extras: tuple[tuple[str, int], ...] = ()


class Layout(NamedTuple):
    """Columns of a table. Indices count the cells of a full row."""

    head: tuple[str, ...]  # names of the first columns, in order
    places: tuple[Place, ...]
    width: int
    cpu_time: bool = False  # -C 1: the time is CPU time of the calls
    to_us: float = 1.0
    deviation: bool = False  # the check is a largest deviation (error, res), not a count (#wrong)
    tail: tuple[tuple[str, int], ...] = ()  # timestamp, algo, proto, nchannels


@lru_cache(maxsize=64)
def placements(line: str) -> tuple[str, ...]:
    """The words above the header, in order of appearance."""
    return tuple(p.replace("-", "_") for p in re.findall(r"\b(out-of-place|in-place)\b", line))


@lru_cache(maxsize=64)
def header(line: str, placements: tuple[str, ...]) -> Layout | None:
    """
    Reads the line with the column names; None where it is not the header of this table.

    Args:
        placements: Of the line above, in order of appearance; empty where it is missing.
    """
    names = [w.lower() for w in line.lstrip("# \t").split()]
    head = []
    for name in names:
        if name not in _HEAD:
            break
        head.append(_HEAD[name])
    first = len(head)
    if head[:3] != ["size", "count", "type"] or "busbw" not in names:
        return None
    starts = [i for i in range(first, len(names)) if names[i] in ("time", "cputime")]
    if not starts or starts[0] != first or len(starts) > 2:
        return None
    titles = (OUT, IN) if len(starts) == 2 else placements if len(placements) == 1 else (None,)
    tails = [i for i in range(first, len(names)) if names[i] in ("timestamp", "algo")]
    end = min(tails, default=len(names))
    shift = 0
    tail = []
    for i in range(end, len(names)):
        tail.append((names[i], i + shift))
        shift += names[i] == "timestamp"  # a date and a time
    bounds = [*starts, end]
    places = [_place(t, names, a, b) for t, a, b in zip(titles, bounds, bounds[1:], strict=False)]
    if None in places:
        return None
    return Layout(
        head=tuple(head), places=tuple(p for p in places if p), width=len(names) + shift,
        cpu_time=names[first] == "cputime",
        to_us=1000.0 if names[0] == "bytes" else 1.0,  # until 2019-04 milliseconds, without a line of units
        deviation=bool({"error", "res"} & set(names)), tail=tuple(tail),
    )  # fmt: skip


def _place(title: str | None, names: list[str], start: int, end: int) -> Place | None:
    cells = {name: start + i for i, name in enumerate(names[start:end])}
    if "algbw" not in cells or "busbw" not in cells:
        return None
    check = next((cells[c] for c in _CHECKS if c in cells), None)
    extras = tuple((field, cells[name]) for name, field in _EXTRAS.items() if name in cells)
    return Place(title, start, cells["algbw"], cells["busbw"], check, extras)


@lru_cache(maxsize=64)
def with_units(layout: Layout, line: str) -> Layout | None:
    """The layout with the units of the line below the header; None where one of them is unknown."""
    units = re.findall(r"\([^)]*\)", line)
    if not set(units) <= _UNITS or {"(us)", "(ms)"} <= set(units):
        return None
    time = next((u for u in units if u in ("(us)", "(ms)")), None)
    return layout._replace(to_us={"(us)": 1.0, "(ms)": 1000.0}[time]) if time else layout


def without_header(cells: list[str]) -> Layout | None:
    """The layout of a row in a log that prints no header: the three of ``nccl-tests`` since 2019, else None."""
    if len(cells) < 4 or cells[2] not in ELEMENT_BYTES:
        return None
    redop = cells[3] in REDOPS or cells[3] == "none"
    heads = {11: _FULL[:3], 12: (*_FULL[:3], "redop" if redop else "root"), 13: _FULL}
    if len(cells) not in heads or redop == (len(cells) == 11) or (len(cells) == 13 and not redop):
        return None
    check = "error" if re.fullmatch(r"\de[+-]\d\d", cells[-1]) else "#wrong"
    return header(" ".join((*heads[len(cells)], *("time", "algbw", "busbw", check) * 2)), ())


def read(layout: Layout, cells: list[str], line: int) -> tuple[Columns, list[Printed]] | None:
    """
    Reads one full row.

    Returns:
        Its samples and what was printed, None where the number of cells is not that of a full row.

    Raises:
        ValueError: A cell is no number, or one beyond 64 bits.
    """
    if len(cells) == layout.width - 1 and "redop" in layout.head and not cells[3].isalpha():
        cells = [*cells[:3], "none", *cells[3:]]  # where there is none, versions until 2022-09 print a blank
    return read_columns(layout, [(cell,) for cell in cells], (line,)) if len(cells) == layout.width else None


def read_all(layout: Layout, text: str, lines: Sequence[int]) -> tuple[Columns, list[Printed]] | None:
    """The same for all rows of *lines* at once; None where one of them is no full row."""
    cells = text.split()
    width = layout.width
    if len(cells) != width * len(lines):
        return None
    columns = [tuple(cells[at::width]) for at in range(width)]
    # Where one row lends its last cell to the next, the first columns show it.
    if not ("".join(columns[0] + columns[1]).isdigit() and "".join(set(columns[2])).isidentifier()):
        return None
    return read_columns(layout, columns, lines)


def read_columns(layout: Layout, cells: list[tuple[str, ...]], lines: Sequence[int]) -> tuple[Columns, list[Printed]]:
    """
    Reads full rows, column by column: samples by row and placement, and what was printed of each.

    Raises:
        ValueError: A cell is no number, or one beyond 64 bits.
    """
    head: dict[str, Sequence[Any]] = {"line": lines, "dtype": cells[2]}
    head["size_bytes"], head["count"] = _whole(cells[0]), _whole(cells[1])
    for name, read_cell in (("redop", _redop), ("root", _root)):
        if name in layout.head:
            head[name] = _each(read_cell, cells[layout.head.index(name)])
    places = [_measured(layout, place, cells) for place in layout.places]
    columns = {name: _woven([column] * len(places)) for name, column in head.items()}
    columns["placement"] = [place.name for place in layout.places] * len(lines)
    columns |= {name: _woven([place[name] for place in places]) for name in places[0]}
    if layout.tail or any(place.extras for place in layout.places):
        rows = list(zip(*cells, strict=True))
        extras = [_extras(layout, place.extras, row) for row in rows for place in layout.places]
        columns |= {name: [e.get(name) for e in extras] for name in dict.fromkeys(chain.from_iterable(extras))}
    printed = [zip(cells[p.time], cells[p.algbw], cells[p.busbw], strict=True) for p in layout.places]
    return columns, _woven([list(column) for column in printed])


def _whole(cells: tuple[str, ...]) -> list[int]:
    """Whole numbers; one beyond 64 bits is no size that a tool printed, and no store could hold it."""
    values = list(map(int, cells))
    if max(values) >= 2**63:
        raise ValueError(max(values))
    return values


def _woven(columns: Sequence[Sequence[Any]]) -> list[Any]:
    """The columns of all placements as one, row by row."""
    woven: list[Any] = [None] * (len(columns) * len(columns[0]))
    for at, column in enumerate(columns):
        woven[at :: len(columns)] = column
    return woven


def _each(read_cell: Callable[[str], Any], column: tuple[str, ...]) -> list[Any]:
    """A column of few different cells, read."""
    known = {cell: read_cell(cell) for cell in set(column)}
    return [known[cell] for cell in column] if len(known) > 1 else [*known.values()] * len(column)


def _measured(layout: Layout, place: Place, cells: list[tuple[str, ...]]) -> Columns:
    """What stands in the columns of one placement."""
    for at in (place.time, place.algbw, place.busbw):
        _refuse_odd(cells[at])
    time, algbw, busbw = (list(map(float, cells[at])) for at in (place.time, place.algbw, place.busbw))
    if any(map((0.0).__gt__, time)):
        raise ValueError("a time below zero")
    if layout.to_us != 1.0:
        time = [round(t * layout.to_us, 6) for t in time]
    finite = math.isfinite(sum(time) + sum(algbw) + sum(busbw))
    checks = [None] * len(time)
    if place.check is not None:
        checks = _each(partial(_check, deviation=layout.deviation), cells[place.check])
    return {
        "cpu_time_us" if layout.cpu_time else "time_us": time if finite else _finite(time),
        "algbw_gbyte_s": algbw if finite else _finite(algbw),
        "busbw_gbyte_s": busbw if finite else _finite(busbw),
        "max_delta" if layout.deviation else "wrong": checks,
    }


_ODD = (" .", ". ", "-.", ".e", ".E", "_")


def _refuse_odd(cells: tuple[str, ...]) -> None:
    """Python reads ``.49``, ``69.e1`` and ``1_0`` as numbers; no version prints them, so that they are damage."""
    joined = f" {' '.join(cells)} "
    if any(mark in joined for mark in _ODD):
        raise ValueError(joined)


def _finite(values: list[float]) -> list[float | None]:
    return [v if math.isfinite(v) else None for v in values]


def _redop(cell: str) -> str | None:
    if not cell.isalpha():
        raise ValueError(cell)
    return None if cell == "none" else cell


def _root(cell: str) -> int | None:
    root = int(cell)
    if not -1 <= root < 2**31:
        raise ValueError(cell)
    return None if root == -1 else root


def _number(cell: str) -> float | None:
    """A finite number, None for ``nan`` and ``inf``."""
    value = float(cell)
    return value if math.isfinite(value) else None


def _check(cell: str, deviation: bool) -> float | None:
    """Wrong values, or the largest deviation; rccl-tests marks what is above the threshold with an asterisk."""
    if cell == "0" and not deviation:
        return 0
    if cell == "N/A":
        return None
    # A count is printed with %g, a deviation with %e: "0.00" is a neighbour's cell that slipped in.
    if "e" not in cell and (deviation or "." in cell) and "n" not in cell:
        raise ValueError(cell)
    value = _number(cell.rstrip("*"))
    if value is not None and abs(value) >= 2**63:
        raise ValueError(cell)
    return value if deviation or value is None else int(value)


def _extras(layout: Layout, extras: tuple[tuple[str, int], ...], cells: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {field: _number(cells[i]) for field, i in extras}
    for name, i in layout.tail:
        if name == "timestamp":
            if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", stamp := f"{cells[i]} {cells[i + 1]}"):
                raise ValueError(stamp)
            found["printed_at"] = stamp
        elif name == "nchannels":
            found["channels"] = int(cells[i])
        elif name in ("algo", "proto"):
            found["algorithm" if name == "algo" else "protocol"] = cells[i]
    return found


@lru_cache(maxsize=64)
def pieces(layout: Layout) -> tuple[re.Pattern[str], ...]:
    """
    Patterns of the pieces in which the tool prints a row: the first columns, then each placement.

    Other processes write between the pieces. A piece ends in a whole number, so a digit or a point behind it would
    belong to somebody else's text and the piece could not be told from it.
    """
    end = r"(?![\d.])"
    found = [re.compile(r"[# \t]*" + "".join(_CELLS[name] for name in layout.head) + end)]
    bounds = [*(p.time for p in layout.places), layout.tail[0][1] if layout.tail else layout.width]
    for place, start, stop in zip(layout.places, bounds, bounds[1:], strict=False):
        cells = [r"(N/A|\d+(?:\.\d+)?(?:e[+-]\d\d)?)" if i == place.check else _NUMBER for i in range(start, stop)]
        found.append(re.compile(r"\s*" + r"\s+".join(cells) + end))
    if layout.tail:
        found.append(re.compile(r"\s+" + r"\s+".join([r"(\S+)"] * (layout.width - layout.tail[0][1]))))
    return tuple(found)


def match(layout: Layout, stage: int, text: str) -> tuple[list[str], int, str]:
    """Reads as many pieces of a row as *text* begins with, from piece *stage* on: (cells, next stage, the rest)."""
    cells: list[str] = []
    at = 0
    for pattern in pieces(layout)[stage:]:
        found = pattern.match(text, at)
        if not found:
            break
        cells += [cell or "none" for cell in found.groups()]
        at, stage = found.end(), stage + 1
    return cells, stage, text[at:]


# The table since 2022-09, for a torn row in a log that prints no header.
DEFAULT = cast("Layout", header(" ".join((*_FULL, *("time", "algbw", "busbw", "#wrong") * 2)), ()))
