"""mlnx-qos: whether priority flow control is on, for each priority of a port of a Mellanox NIC.

    PFC configuration:
            priority    0   1   2   3   4   5   6   7
            enabled     0   0   0   1   0   0   0   0

Mellanox/mlnx-tools python/mlnx_qos. The device stands in the command alone.
"""

import re

from rdmalab.formats._lines import Line, unprefixed
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "mlnx-qos"
EXAMPLE = "        enabled     0   0   0   1   0   0   0   0"
HINTS = (b"PFC configuration:", b"Priority trust state:")
SIGNATURE = re.compile(rb"PFC configuration:|Priority trust state:")
_ANCHOR = re.compile(r"PFC configuration:|Priority trust state:")
_ECHO = re.compile(r"(?:^|.*[\s/])mlnx_qos (?:.*\s)?(?:-i|--interface)[ =]*([\w.@-]+)")
_ROW = re.compile(r"\s*(priority|enabled|buffer)((?:\s+\d{1,3})+)\s*$")
_TRUST = re.compile(r"\s*Priority trust state: *(pcp|dscp)\b")
_BUFFERS = re.compile(r"\s*Receive buffer size \(bytes\): *((?:\d{1,10},?)+)\s*$")


def parse(text: Text) -> Parsed:
    """``pfc_enabled_prioN`` and ``buffer_of_prioN`` a priority, ``trust_dscp`` 1 or 0, and the buffers' sizes."""
    found = Found()
    device: str | None = None
    priorities: list[str] = []
    for line in unprefixed(text, _ANCHOR):
        if "mlnx_qos" in line.text and (echo := _ECHO.match(line.text)):
            device, priorities = echo[1], []
        elif row := _ROW.match(line.text):
            cells = row[2].split()
            if row[1] == "priority":
                priorities = cells
            elif len(cells) == len(priorities):
                name = "pfc_enabled_prio" if row[1] == "enabled" else "buffer_of_prio"
                for priority, cell in zip(priorities, cells, strict=True):
                    _add(found, line, f"{name}{priority}", float(cell), device)
            elif priorities:
                found.torn(line.number, line.text)
        elif trust := _TRUST.match(line.text):
            _add(found, line, "trust_dscp", float(trust[1] == "dscp"), device)
        elif buffers := _BUFFERS.match(line.text):
            for at, size in enumerate(filter(None, buffers[1].split(","))):
                _add(found, line, f"receive_buffer_{at}", float(size), device, "bytes")
    return found.parsed(text)


def _add(found: Found, line: Line, metric: str, value: float, device: str | None, unit: str | None = None) -> None:
    found.readings.append(Reading(metric=metric, value=value, unit=unit, device=device, line=line.number))
