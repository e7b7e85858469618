"""gid-table: ``show_gids``, or the types of GIDs in sysfs: which index of a port is RoCE v1 and which RoCE v2.

    mlx5_0  1       3       0000:0000:0000:0000:0000:ffff:c000:020b 192.0.2.11      v2      ens1
    /sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3:RoCE v2

A test or NCCL prints the index it used and never the version: this table is the proof.
"""

import re

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "gid-table"
EXAMPLE = "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3:RoCE v2"
HINTS = (b"gid_attrs/types/", b"INDEX")
SIGNATURE = re.compile(rb"/gid_attrs/types/\d+:(?:IB/)?RoCE v[12]|\bDEV\s+PORT\s+INDEX\s+GID\b")

_SYSFS = re.compile(r"(?:.*[/ ])?([\w.-]+)/ports/(\d+)/gid_attrs/types/(\d{1,3}):(?:IB/)?RoCE v([12])\s*$")
_ROW = re.compile(r"([\w.-]+)\s+(\d{1,3})\s+(\d{1,3})\s+[0-9a-f:]{39}\s+(?:[\d.]+\s+)?v([12])(?:\s+\S+)?\s*$")


def parse(text: Text) -> Parsed:
    """``roce_version`` of each GID, the device being ``mlx5_0/1/gids/3``."""
    found = Found()
    for line, content in clean(text):
        if row := _SYSFS.match(content) or _ROW.match(content):
            device = f"{row[1]}/{row[2]}/gids/{row[3]}"
            found.readings.append(Reading(metric="roce_version", value=float(row[4]), device=device, line=line))
    return found.parsed(text)
