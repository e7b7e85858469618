"""nvidia-smi-dmon: ``nvidia-smi dmon``, a row for each GPU and interval.

    # gpu   pwr gtemp    sm   mem rxpci txpci
    # Idx     W     C     %     %  MB/s  MB/s
        0   111    83    25     7    41     8

Names and units come from the two header lines, which are printed again and again. ``-`` is a value that this GPU does
not have. With ``-o DT`` date and time stand in front.
"""

import re
from dataclasses import dataclass, replace

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found, number
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "nvidia-smi-dmon"
EXAMPLE = "# gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk"
HINTS = (b"# gpu", b"#gpu", b"# Date", b"#Date", b"# Time", b"#Time")
SIGNATURE = re.compile(rb"# ?(?:Date +)?(?:Time +)?gpu +\w")

_CELL = re.compile(r"-|-?\d[\d.:/]*")


@dataclass(frozen=True)
class _Table:
    """The columns, by position; those before ``gpu`` are date and time."""

    names: list[str]
    units: list[str | None]
    gpu: int


def parse(text: Text) -> Parsed:
    """A reading for each value of a row, in the unit of the header."""
    found = Found()
    table: _Table | None = None
    for line, content in clean(text):
        if content.lstrip().startswith("#"):
            table = _header(content, table)
        elif table:
            _row(found, table, line, content)
    return found.parsed(text)


def _header(content: str, table: _Table | None) -> _Table | None:
    """The table that a line of names opens, or with the units that a line below it adds."""
    words = content.replace("#", "", 1).split()
    gpu = words.index("gpu") if "gpu" in words[:3] else 3
    if gpu < 3 and set(words[:gpu]) <= {"Date", "Time"}:
        # nvidia-smi pmon, with a row for each process, begins like it.
        return _Table(words, [None] * len(words), gpu) if "pid" not in words else None
    if table and len(words) == len(table.names) and words[table.gpu] == "Idx":
        return replace(table, units=list(words))
    return table


def _row(found: Found, table: _Table, line: int, content: str) -> None:
    cells = content.split()
    if len(cells) < 3 or not all(_CELL.fullmatch(cell) for cell in cells):
        return
    values = [number(cell) for cell in cells[table.gpu + 1 :]]
    whole = len(cells) == len(table.names) and cells[table.gpu].isdigit() and bool(values)
    if not whole or any(v is None and c != "-" for v, c in zip(values, cells[table.gpu + 1 :], strict=True)):
        found.torn(line, content)
        return
    device, stamp = cells[table.gpu], " ".join(cells[: table.gpu]) or None
    for name, unit, value in zip(table.names[-len(values) :], table.units[-len(values) :], values, strict=True):
        found.readings.append(Reading(metric=name, value=value, unit=unit, device=device, line=line, stamp=stamp))
