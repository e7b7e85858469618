"""Rules on the way from a GPU to its RDMA device, and on PCIe links below what they could be."""

import re
from typing import NamedTuple

from rdmalab.language import marked as _
from rdmalab.rules._base import CHECK, NOTE, WRONG, Facts, Hit, Line, Log, Read, Rule, rule, tested

RULES: list[Rule] = []
_TOPO = "nvidia-smi topo -m, legend; NVIDIA/nccl: src/graph/topo.h"
_PCIE = "torvalds/linux: drivers/pci/pci.h (PCIE_SPEED2MBS_ENC); nvidia-smi --help-query-gpu"
_NAMES = ("PIX", "PXB", "PHB", "NODE", "SYS")  # by rank, the nearest first
_FAR = 3  # NODE


class _Cell(NamedTuple):
    rank: int
    line: Line
    log: Log


def _matrices(facts: Facts) -> list[dict[tuple[str, str], _Cell]]:
    """The distances of each ``nvidia-smi topo -m``: (GPU number, device name) -> cell."""
    names = {
        note.log.log_id: dict(re.findall(r"(NIC\d+) is ([^\s,]+?)(?=,|\.$)", note.text))
        for note in facts.noted("nic_legend")
    }
    found: dict[str, dict[tuple[str, str], _Cell]] = {}
    for read in facts.readings:
        if read.metric == "gpu_nic_distance" and read.device:
            gpu, _dash, nic = read.device.partition("-")
            name = names.get(read.log.log_id, {}).get(nic, nic)
            rank = int(read.value)
            line = read.at._replace(text=f"{gpu} to {name}: {_NAMES[rank]}")
            found.setdefault(read.log.log_id, {})[gpu.removeprefix("GPU"), name] = _Cell(rank, line, read.log)
    return list(found.values())


@rule(
    RULES, "hca-far-from-gpu", CHECK,
    title=_("A GPU uses a device that is farther than its nearest"), source=_TOPO,
    needs=_(
        "a campaign file that puts nvidia-smi topo -m beside NCCL lines of the rank of each GPU (NCCL 2.18.3 or newer)"
    ),
    remedy=_("Let NCCL see the real topology (NCCL_TOPO_FILE in virtual machines, all devices in NCCL_IB_HCA), or bind "
             "ranks to the devices on their own PCIe switch."),
)  # fmt: skip
def _hca_far_from_gpu(facts: Facts) -> list[Hit] | None:
    """The matrix names no host: only a campaign file says that it is one of these machines, and all must agree."""
    matrices = _matrices(facts)
    used = [
        (note, m) for note in facts.noted("gpu_device") if (m := re.fullmatch(r".*: GPU (\d+) over (\S+)", note.text))
    ]
    what = _("GPU {gpu} sends over {device}, which is {distance} away; {nearest} would be {best}.")
    hits = []
    for note, (gpu, device) in ((note, m.groups()) for note, m in used):
        rows = [{name: cell for (g, name), cell in matrix.items() if g == gpu} for matrix in matrices]
        if not rows or not all(device in row for row in rows):
            continue
        nearest = {min(row, key=lambda name, row=row: (row[name].rank, name)) for row in rows}  # type: ignore[misc]
        ranks = {(row[device].rank, min(cell.rank for cell in row.values())) for row in rows}
        if len(nearest) == len(ranks) == 1 and (pair := ranks.pop())[0] > pair[1]:
            numbers = {
                "gpu": int(gpu), "device": device, "distance": _NAMES[pair[0]], "best": _NAMES[pair[1]],
                "nearest": nearest.pop(),
            }  # fmt: skip
            hits.append(Hit(what=what, numbers=numbers, lines=(note.at, rows[0][device].line), log=note.log))
    return tested(used if matrices and facts.fabrics else (), hits if facts.fabrics else ())


@rule(
    RULES, "gpu-without-near-hca", NOTE,
    title=_("A GPU without a device on its side of the machine"), source=_TOPO, needs="nvidia-smi topo -m",
    remedy=_("Expect less bandwidth from this GPU over the network; NCCL may go over the NVLink of a neighbour (PXN)."),
)  # fmt: skip
def _gpu_without_near_hca(facts: Facts) -> list[Hit] | None:
    what = _("The nearest RDMA device of GPU {gpu} is {device}, {distance} away.")
    hits = []
    matrices = _matrices(facts)
    for matrix in matrices:
        for gpu in dict.fromkeys(g for g, _name in matrix):
            row = {name: cell for (g, name), cell in matrix.items() if g == gpu}
            name = min(row, key=lambda n: (row[n].rank, n))
            if row[name].rank >= _FAR:
                numbers = {"gpu": int(gpu), "device": name, "distance": _NAMES[row[name].rank]}
                hits.append(Hit(what=what, numbers=numbers, lines=(row[name].line,), log=row[name].log))
    return tested(matrices, hits)


# --- PCIe -----------------------------------------------------------------------------------------------------------

_WIDTH = ("pcie.link.width.current", "pcie.link.width.max")
_GEN = ("pcie.link.gen.current", "pcie.link.gen.max")
_NIC = re.compile(r" (?:Ethernet|Infiniband|Network|Fabric) controller", re.IGNORECASE)  # of lspci


@rule(
    RULES, "pcie-width-below-slot", WRONG,
    title=_("A PCIe link with fewer lanes than it could have"), source=_PCIE,
    needs=_("lspci -vv as root, or nvidia-smi --query-gpu=index,utilization.gpu,pcie.link.gen.current,"
            "pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max --format=csv"),
    remedy=_("Seat the card and its riser anew, clean the contacts, check the bifurcation in the BIOS."),
)  # fmt: skip
def _pcie_width(facts: Facts) -> list[Hit] | None:
    rows = [row for row in _pcie_rows(facts) if all(metric in row for metric in _WIDTH)]
    what = _("The PCIe link of {device} runs at x{now}, it could run at x{most}.")
    return tested(rows, (_below(what, row, *_WIDTH) for row in rows if row[_WIDTH[0]].value < row[_WIDTH[1]].value))


@rule(
    RULES, "pcie-speed-below-slot", CHECK,
    title=_("A PCIe link slower than it could be"), source=_PCIE,
    needs=_("lspci -vv as root; for GPUs the same columns of nvidia-smi, taken under load"),
    remedy=_("Check the speed that the BIOS sets for the slot, riser and retimer; a link that trains down has errors."),
)  # fmt: skip
def _pcie_speed(facts: Facts) -> list[Hit] | None:
    """An idle GPU lowers the speed of its link, so only rows under load count; a NIC does not."""
    rows = [row for row in _pcie_rows(facts) if all(metric in row for metric in _GEN) and _loaded(row)]
    what = _("The PCIe link of {device} runs at generation {now}, it could run at {most}.")
    best: dict[tuple[str, str | None], float] = {}
    for row in rows:
        key = row[_GEN[0]].log.log_id, row[_GEN[0]].device
        best[key] = max(best.get(key, 0), row[_GEN[0]].value)
    slow = [row for row in rows if best[row[_GEN[0]].log.log_id, row[_GEN[0]].device] < row[_GEN[1]].value]
    return tested(rows, (_below(what, row, *_GEN) for row in slow))


def _pcie_rows(facts: Facts) -> list[dict[str, Read]]:
    """The readings of a line together; what a link could do stands on a line of its own in lspci."""
    rows: dict[tuple[str, int | None, str | None], dict[str, Read]] = {}
    could: dict[tuple[str, str | None, str], Read] = {}
    for read in facts.readings:
        if read.metric.startswith("pcie.") or read.metric == "utilization.gpu":
            rows.setdefault((read.log.log_id, read.line, read.device), {})[read.metric] = read
            could.setdefault((read.log.log_id, read.device, read.metric), read)
    for (log_id, _line, device), row in rows.items():
        for most in (_WIDTH[1], _GEN[1]):
            if cap := could.get((log_id, device, most)):
                row.setdefault(most, cap)
    return list(rows.values())


def _loaded(row: dict[str, Read]) -> bool:
    """Whether the link has no reason to rest: a NIC (lspci reads no use), or a GPU at work."""
    use = row.get("utilization.gpu")
    return use.value > 0 if use else bool(_NIC.search(row[_GEN[0]].device or ""))


def _below(what: str, row: dict[str, Read], now: str, most: str) -> Hit:
    read = row[now]
    numbers = {"device": _device(read), "now": int(read.value), "most": int(row[most].value)}
    lines = tuple(dict.fromkeys((read.at, row[most].at) if read.line != row[most].line else (read.at,)))
    severity = CHECK if _NIC.search(read.device or "") else None  # the slot may be a narrower one on purpose
    return Hit(what=what, numbers=numbers, lines=lines, log=read.log, severity=severity)


def _device(read: Read) -> str:
    if read.device is None:
        return "?"
    return f"GPU {read.device}" if read.device.isdigit() else read.device
