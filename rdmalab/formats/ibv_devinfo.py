"""ibv_devinfo: what an RDMA port is set to, above all its active MTU, and with ``-v`` the version of each GID.

    hca_id: mlx5_0
                    port:   1
                            max_mtu:                4096 (5)
                            active_mtu:             1024 (3)
                            GID[  3]:               ::ffff:192.0.2.11, RoCE v2

The text names no host.
"""

import re

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "ibv-devinfo"
EXAMPLE = "\t\t\tactive_mtu:\t\t1024 (3)"
HINTS = (b"active_mtu:",)
SIGNATURE = re.compile(rb"active_mtu:\s+\d+ \(\d\)")

_DEVICE = re.compile(r"\s*hca_id:\s+(\S+)\s*$")
_PORT = re.compile(r"\s+port:\s+(\d{1,3})\s*$")
_MTU = re.compile(r"\s+(max|active)_mtu:\s+(256|512|1024|2048|4096) \(\d\)\s*$")
_GID = re.compile(r"\s+GID\[\s*(\d{1,3})\]:\s+\S+, (?:IB/)?RoCE v([12])\s*$")


def parse(text: Text) -> Parsed:
    """``active_mtu`` and ``max_mtu`` of each port, ``roce_version`` of each GID (device ``mlx5_0/1/gids/3``)."""
    found = Found()
    device = port = ""
    for line, content in clean(text):
        if opened := _DEVICE.match(content):
            device, port = opened[1], ""
        elif device and (opened := _PORT.match(content)):
            port = f"{device}/{opened[1]}"
        elif port and (mtu := _MTU.match(content)):
            reading = Reading(metric=f"{mtu[1]}_mtu", value=float(mtu[2]), unit="bytes", device=port, line=line)
            found.readings.append(reading)
        elif port and (gid := _GID.match(content)):
            name = f"{port}/gids/{gid[1]}"
            found.readings.append(Reading(metric="roce_version", value=float(gid[2]), device=name, line=line))
    return found.parsed(text)
