"""dcgm-exporter: the text that Prometheus scrapes, one value of one GPU a line.

    DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-...",device="nvidia0",modelName="...",Hostname="node-1"} 113.611000

The text carries no time unless a stamp in milliseconds stands behind the value.
"""

import re
from datetime import UTC, datetime

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found, number
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "dcgm-exporter"
EXAMPLE = 'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-...",Hostname="node-1"} 113.611000'
HINTS = (b"DCGM_FI_",)
SIGNATURE = re.compile(rb"DCGM_FI_[A-Z0-9_]+\{")

_SAMPLE = re.compile(r'(DCGM_FI_\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)(?: (\d{12,14}))?\s*$')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_BLANK = 2.0**63 - 1024  # DCGM_INT64_BLANK and its siblings: nothing was measured
# NVIDIA/dcgm-exporter etc/default-counters.csv
_UNITS = {
    "GPU_UTIL": "%", "MEM_COPY_UTIL": "%", "ENC_UTIL": "%", "DEC_UTIL": "%", "GPU_TEMP": "C", "MEMORY_TEMP": "C",
    "POWER_USAGE": "W", "TOTAL_ENERGY_CONSUMPTION": "mJ", "SM_CLOCK": "MHz", "MEM_CLOCK": "MHz", "FB_USED": "MiB",
    "FB_FREE": "MiB", "FB_RESERVED": "MiB", "PCIE_TX_BYTES": "byte/s", "PCIE_RX_BYTES": "byte/s",
    "NVLINK_TX_BYTES": "byte/s", "NVLINK_RX_BYTES": "byte/s", "SM_OCCUPANCY": "ratio",
}  # fmt: skip


def parse(text: Text) -> Parsed:
    """A reading for each sample, under its own name."""
    found = Found()
    for line, content in clean(text):
        start = content.find("DCGM_FI_")
        if start < 0 or "{" not in content:
            continue
        if sample := _SAMPLE.match(content, start):
            found.readings.append(_reading(line, *sample.groups()))
        elif start == 0:
            found.torn(line, content)
    return found.parsed(text)


def _reading(line: int, metric: str, labels: str, printed: str, stamp: str | None) -> Reading:
    label = dict(_LABEL.findall(labels))
    value = number(printed)
    device = label.get("UUID") or label.get("gpu") or label.get("device")
    if instance := label.get("GPU_I_ID"):  # a slice of a GPU (MIG) is a device of its own
        device = f"{device}/{instance}"
    return Reading(
        metric=metric, value=None if value is None or value >= _BLANK else value, unit=_unit(metric),
        read_at=datetime.fromtimestamp(int(stamp) / 1000, UTC) if stamp else None,
        host=label.get("Hostname"), device=device, line=line,
    )  # fmt: skip


def _unit(metric: str) -> str | None:
    name = re.sub(r"^DCGM_FI_(?:DEV|PROF)_", "", metric)
    return "ratio" if metric.startswith("DCGM_FI_PROF_") and name.endswith("_ACTIVE") else _UNITS.get(name)
