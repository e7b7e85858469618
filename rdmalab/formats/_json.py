"""JSON documents that stand in a log, one after another, among other lines."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

_BEGIN = re.compile(r"\s*(?:\{|\[\s*(?:[\[{]|$))")  # not the mark of a launcher, [1,0]<stdout>
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?$)|[\[\]{}]')  # a torn string reaches to the end of its line
_STEP = {"[": 1, "{": 1, "]": -1, "}": -1}
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)  # NaN and Infinity were not measured


def documents(lines: Iterable[tuple[int, str]], marker: str) -> Iterator[tuple[int, Any]]:
    """
    The documents that begin at the start of a line, end at the end of one and hold the text *marker*.

    Yields the number of the first line and the decoded document, or None where it is torn: documents of several lines
    are indented, so one that is still open at a line at the left margin has lost its end.
    """
    first, parts, depth = 0, list[str](), 0
    for number, line in lines:
        if parts and line[:1] not in (" ", "\t", "}", "]", ""):
            yield from _decoded(first, parts, marker)
            parts, depth = [], 0
        if parts or _BEGIN.match(line):
            first = first if parts else number
            parts.append(line)
            depth += sum(_STEP.get(token[0], 0) for token in _TOKEN.finditer(line))
            if depth <= 0:
                yield from _decoded(first, parts, marker)
                parts, depth = [], 0
    if parts:
        yield from _decoded(first, parts, marker)


def decoded(text: str, at: int = 0) -> Any:
    """The document that begins at *at*, whatever follows it, or None where there is none."""
    try:
        return _DECODER.raw_decode(text, at)[0]
    except (ValueError, RecursionError):
        return None


def finite(value: Any) -> float | None:
    """A JSON number as float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _decoded(first: int, parts: list[str], marker: str) -> Iterator[tuple[int, Any]]:
    if any(marker in part for part in parts):
        yield first, decoded("\n".join(parts).lstrip())
