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
HINTS = (b"[%]", b"[W]", b"[MiB]", b"[MHz]", b"temperature.gpu")
SIGNATURE = re.compile(rb"\[(?:%|W|MiB|MHz)\][,\s]|\.gpu(?<=temperature\.gpu)[,\s]")

_COLUMN = re.compile(r"([a-z][\w.]*)(?: \[([^\]]+)\])?")
_KNOWN = re.compile(r"(?:utilization|memory|power|clocks|temperature|fan|pcie|ecc|enforced)\.[\w.]+")
# Numbers that are names or versions, no measurements.
_LABELS = re.compile(
    r"timestamp|index|(?:gpu_)?(?:name|uuid|serial|bus_id)|count|driver_version|vbios_version|compute_cap|pstate"
    r"|pci\..*|inforom\..*|module_id"
)
_COUNTED = re.compile(r"temperature\..*|pcie\.link\..*|ecc\.errors\..*|retired_pages\..*\.count")  # numbers, no unit
_STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?")
_STAMP_BEGINS = re.compile(r"\d{4}/\d\d/\d\d ")
_NOT_MEASURED = {"N/A", "[N/A]", "[Not Supported]", "Not Supported", "[Not Found]"}
_EXCUSE = re.compile(r"\[[\w ]+\]")  # [Unknown Error], [GPU requires reset]


@dataclass(frozen=True)
class _Table:
    """The columns of a header, by position: which are read, and which say when and of which GPU."""

    columns: tuple[tuple[str, str | None], ...]  # name, unit
    read: tuple[tuple[int, str, str | None], ...]  # position, name, unit
    device: int | None
    stamp: int | None

    @classmethod
    def of(cls, columns: tuple[tuple[str, str | None], ...]) -> "_Table":
        at = {name: position for position, (name, _) in reversed(list(enumerate(columns)))}
        return cls(
            columns=columns,
            read=tuple((n, name, unit) for n, (name, unit) in enumerate(columns) if not _LABELS.fullmatch(name)),
            device=next((at[name] for name in ("uuid", "gpu_uuid", "index", "pci.bus_id") if name in at), None),
            stamp=at.get("timestamp"),
        )


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
    return _Table.of(tuple(columns))


def _row(found: Found, table: _Table, line: int, content: str, cells: list[str]) -> None:
    if not _begins_a_row(table, cells[0]):
        return
    whole = len(cells) == len(table.columns)
    stamp = cells[table.stamp] if whole and table.stamp is not None else None
    if not whole or (stamp and not _STAMP.fullmatch(stamp)):
        if len(cells) > 1:
            found.torn(line, content)
        return
    device = None if table.device is None else cells[table.device]
    for position, name, unit in table.read:
        printed = cells[position]
        value = _value(printed, unit)
        if value is None and printed not in _NOT_MEASURED:
            if not unit and not _COUNTED.fullmatch(name):
                continue  # a column of words, such as persistence_mode
            found.note(line, "not_a_number", f"{name} is {printed!r}, which is no number; it is left out.")
        found.readings.append(Reading(metric=name, value=value, unit=unit, device=device, line=line, stamp=stamp))


def _begins_a_row(table: _Table, cell: str) -> bool:
    """Whether a line that begins so can be a row: other programs write into the same file."""
    name, unit = table.columns[0]
    if name == "timestamp":
        return bool(_STAMP_BEGINS.match(cell))
    if name == "index":
        return cell.isdigit()
    return not unit or cell in _NOT_MEASURED or _value(cell, unit) is not None or bool(_EXCUSE.fullmatch(cell))


def _value(printed: str, unit: str | None) -> float | None:
    """The number, with the header's unit behind it or bare (``nounits``)."""
    return number(printed.removesuffix(f" {unit}") if unit else printed)
