"""dcgmi-dmon: ``dcgmi dmon -e ...``, a row for each GPU (or MIG instance) and interval.

    #Entity   GRACT        TENSO        DRAMA
    ID
    GPU 0     0.998        0.885        0.305

The columns come from the header, which is printed again and again; rows carry no time. The activities (``GRACT``,
``SMACT``, ``TENSO`` ...) are shares between 0 and 1, the utilizations (``GPUTL``, ``MCUTL``) are percent.
"""

import re

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found, number
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "dcgmi-dmon"
EXAMPLE = "#Entity   GRACT        TENSO        DRAMA"
HINTS = (b"Entity",)
SIGNATURE = re.compile(rb"# ?Entity +[A-Z]")

_HEADER = re.compile(r"\s*# ?Entity((?: +[A-Z0-9_]+)+)\s*$")
_ROW = re.compile(r"\s*((?:GPU|GPU-I|GPU-CI|NvSwitch|Switch|CPU|Core|Link) \d+)\s+(\S.*)$")
# Short names and units of NVIDIA/DCGM dcgmlib/src/dcgm_fields.cpp; the header does not print them in every version.
_UNITS = (
    dict.fromkeys(("GRACT", "SMACT", "SMOCC", "TENSO", "DRAMA", "FP64A", "FP32A", "FP16A"), "ratio")
    | dict.fromkeys(("PCITX", "PCIRX", "NVLTX", "NVLRX"), "byte/s")
    | {"GPUTL": "%", "MCUTL": "%", "FBUSD": "MiB", "FBFRE": "MiB", "POWER": "W", "TMPTR": "C", "SMCLK": "MHz"}
)


def parse(text: Text) -> Parsed:
    """A reading for each value of a row; ``N/A`` was not measured."""
    found = Found()
    names: list[str] = []
    for line, content in clean(text):
        if header := _HEADER.match(content):
            names = header[1].split()
        elif names and (row := _ROW.match(content)):
            _row(found, names, line, row[1], row[2].split())
    return found.parsed(text)


def _row(found: Found, names: list[str], line: int, entity: str, cells: list[str]) -> None:
    if len(cells) != len(names):
        found.torn(line, f"{entity} {' '.join(cells)}")
        return
    for name, cell in zip(names, cells, strict=True):
        value = number(cell)
        if value is None and cell not in ("N/A", "-"):
            found.note(line, "not_a_number", f"{name} of {entity} is {cell!r}, which is no number; it is left out.")
        found.readings.append(Reading(metric=name, value=value, unit=_UNITS.get(name), device=entity, line=line))
