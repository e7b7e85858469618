"""lspci: ``lspci -vv`` as root, how fast and how wide the PCIe links of NICs and GPUs run, and how they could.

    17:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]
            LnkCap: Port #0, Speed 32GT/s, Width x16, ASPM not supported
            LnkSta: Speed 16GT/s (downgraded), Width x8 (downgraded)

What a link could do is what its device says; a narrower slot may be on purpose. The text names no host.
"""

import re

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "lspci"
EXAMPLE = "\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)"
HINTS = (b"LnkSta:",)
SIGNATURE = re.compile(rb"LnkSta:\s+Speed ")

_DEVICE = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (\S.*)")
_WANTED = re.compile(
    r"(?:Ethernet|Infiniband|Network|Fabric|3D|VGA compatible) controller|Processing accelerators", re.IGNORECASE
)
_LINK = re.compile(r"\s+Lnk(Cap|Sta):\s+(?:Port #\d+, )?Speed ([\d.]+)GT/s(?: \(\w+\))?, Width x(\d{1,2})(?!\d)")
# PCI_EXP_LNKCAP_SPEED of pciutils; the generation of a speed in GT/s
_GENERATION = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6}


def parse(text: Text) -> Parsed:
    """``pcie.link.gen`` and ``pcie.link.width``, ``.current`` and ``.max``, of each NIC and GPU."""
    found = Found()
    device: str | None = None
    for line, content in clean(text):
        if opened := _DEVICE.match(content):
            device = f"{opened[1]} {opened[2]}"[:120] if _WANTED.match(opened[2]) else None
        elif device and "Lnk" in content and (link := _LINK.match(content)):
            which = "max" if link[1] == "Cap" else "current"
            generation = _GENERATION.get(link[2])
            for name, value in (("gen", generation), ("width", int(link[3]))):
                if value is not None:
                    metric = f"pcie.link.{name}.{which}"
                    found.readings.append(Reading(metric=metric, value=float(value), device=device, line=line))
    return found.parsed(text)
