"""nvidia-smi-query: ``nvidia-smi --query-gpu=... --format=csv``, a row for each GPU and interval.

    timestamp, index, utilization.gpu [%], power.draw [W], memory.used [MiB]
    2026/03/15 13:57:59.791, 0, 100 %, 290.28 W, 1024 MiB

``utilization.gpu`` is the share of the last sample period in which at least one kernel was resident. NCCL kernels spin
while they wait for the network, so a job that only waits shows 100 %.
"""

import re
from dataclasses import dataclass

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found, number
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "nvidia-smi-query"
EXAMPLE = "timestamp, index, utilization.gpu [%], power.draw [W], memory.used [MiB]"
# Only the header of this CSV has units in brackets before a comma; parse() looks closer.
SIGNATURE = re.compile(rb"\[(?:%|W|MiB|MHz)\][,\s]|\.gpu(?<=temperature\.gpu)[,\s]")

_COLUMN = re.compile(r"([a-z][\w.]*)(?: \[([^\]]+)\])?")
_KNOWN = re.compile(r"(?:utilization|memory|power|clocks|temperature|fan|pcie|ecc|enforced)\.[\w.]+")
# Numbers that are names or versions, no measurements.
_LABELS = re.compile(
    r"timestamp|index|(?:gpu_)?(?:name|uuid|serial|bus_id)|count|driver_version|vbios_version|compute_cap|pstate"
    r"|pci\..*|inforom\..*|module_id"
)
_STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?")
_NOT_MEASURED = {"N/A", "[N/A]", "[Not Supported]", "Not Supported", "[Not Found]", ""}


@dataclass(frozen=True)
class _Table:
    """The columns of a header, by position."""

    columns: tuple[tuple[str, str | None], ...]  # name, unit

    def cell(self, cells: list[str], *names: str) -> str | None:
        """The cell of the first of these columns that there is."""
        columns = [name for name, _ in self.columns]
        return next((cells[columns.index(n)] for n in names if n in columns), None)


def parse(text: Text) -> Parsed:
    """A reading for each number of a row; the columns come from the header, without one nothing is read."""
    found = Found()
    table: _Table | None = None
    for line, content in clean(text):
        cells = [cell.strip() for cell in content.split(", ")]
        if header := _header(cells):
            table = header
        elif table:
            _row(found, table, line, content, cells)
    return found.parsed(text)


def _header(cells: list[str]) -> _Table | None:
    """The table that these names open, None where they are none or name nothing of a GPU's state."""
    columns: list[tuple[str, str | None]] = []
    for cell in cells:
        if not (column := _COLUMN.fullmatch(cell)):
            return None
        columns.append((column[1], column[2]))
    if not any(_KNOWN.fullmatch(name) for name, _ in columns) or (len(columns) == 1 and not columns[0][1]):
        return None  # one bare word is no header
    return _Table(tuple(columns))


def _row(found: Found, table: _Table, line: int, content: str, cells: list[str]) -> None:
    if not _begins_a_row(table, cells[0]):
        return
    if len(cells) != len(table.columns):
        if len(cells) > 1:
            found.torn(line, content)
        return
    device = table.cell(cells, "uuid", "gpu_uuid") or table.cell(cells, "index") or table.cell(cells, "pci.bus_id")
    stamp = table.cell(cells, "timestamp")
    for (name, unit), printed in zip(table.columns, cells, strict=True):
        if _LABELS.fullmatch(name):
            continue
        value = _value(printed, unit)
        measured = printed not in _NOT_MEASURED
        if value is None and measured and not unit:
            continue  # a column of words, such as persistence_mode
        if value is None and measured:
            found.note(line, "not_a_number", f"{name} is {printed!r}, which is no number of {unit}; it is left out.")
        found.readings.append(
            Reading(metric=name, value=value, unit=unit, device=device, line=line, stamp=stamp)
        )  # fmt: skip


def _begins_a_row(table: _Table, cell: str) -> bool:
    """Whether a line that begins so can be a row: other programs write into the same file."""
    name, unit = table.columns[0]
    if name == "timestamp":
        return bool(_STAMP.fullmatch(cell))
    if name == "index":
        return cell.isdigit()
    return not unit or cell in _NOT_MEASURED or cell.startswith("[") or _value(cell, unit) is not None


def _value(printed: str, unit: str | None) -> float | None:
    """The number, with the header's unit behind it or bare (``nounits``)."""
    return number(printed.removesuffix(f" {unit}") if unit else printed)
