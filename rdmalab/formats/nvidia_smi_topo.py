"""nvidia-smi-topo: ``nvidia-smi topo -m``, how far each GPU is from each NIC.

            GPU0    GPU1    NIC0    NIC1    CPU Affinity    NUMA Affinity
    GPU0     X      NV18    PIX     SYS     0-55            0

Only the cells between a GPU and a NIC are kept, as ranks: 0 is the nearest, and traffic of a GPU over a NIC that is
farther than its nearest one crosses more of the machine than it has to.
"""

import re

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "nvidia-smi-topo"
EXAMPLE = "        GPU0    GPU1    NIC0    NIC1    CPU Affinity    NUMA Affinity"
HINTS = (b"CPU Affinity",)
SIGNATURE = re.compile(rb"CPU Affinity")

_RANK = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4}
_CELL = re.compile(r"X|NV\d+|" + "|".join(_RANK))
_LEGEND = re.compile(r"\s*(NIC\d+): (\S+)\s*$")
_RANKS_TEXT = "gpu_nic_distance: " + ", ".join(f"{name} is {rank}" for name, rank in _RANK.items()) + "."


def parse(text: Text) -> Parsed:
    """``gpu_nic_distance`` for each GPU and NIC; notes say what the ranks and the names of the NICs mean."""
    found = Found()
    columns: list[str] = []
    legend: dict[str, str] = {}
    legend_line = 0
    for line, content in clean(text):
        if "CPU Affinity" in content and "GPU0" in content:
            columns = content.partition("CPU Affinity")[0].split()
            if any(_is_nic(column) for column in columns):
                found.note(line, "distance_ranks", _RANKS_TEXT)
            else:
                found.note(line, "no_nic", "The matrix names no NIC, so no distance is read from it.")
        elif columns and content.lstrip().startswith("GPU"):
            _row(found, columns, line, content)
        elif columns and (entry := _LEGEND.match(content)):
            legend_line = legend_line or line
            legend[entry[1]] = entry[2]
    if legend:
        found.note(legend_line, "nic_legend", ", ".join(f"{nic} is {name}" for nic, name in legend.items()) + ".")
    return found.parsed(text)


def _row(found: Found, columns: list[str], line: int, content: str) -> None:
    gpu, *cells = content.split()
    if gpu not in columns:
        return
    if len(cells) < len(columns) or not all(_CELL.fullmatch(cell) for cell in cells[: len(columns)]):
        found.torn(line, content)
        return
    for column, cell in zip(columns, cells, strict=False):  # behind the last column stand the affinities
        if _is_nic(column) and cell in _RANK:
            rank = float(_RANK[cell])
            found.readings.append(
                Reading(metric="gpu_nic_distance", value=rank, unit="rank", device=f"{gpu}-{column}", line=line)
            )


def _is_nic(column: str) -> bool:
    """``NIC0``; drivers before 515 print the name itself, ``mlx5_0``."""
    return not column.startswith("GPU")
