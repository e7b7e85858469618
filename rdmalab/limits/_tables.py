"""The packaged facts of ``physics/*.tsv``: every row names its source and says whether it was read or recalled."""

import csv
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

READ, DERIVED, RECALLED = "V", "D", "R"
_VENDORS = r"(?:(?:NVIDIA|Tesla|AMD|Instinct|Huawei|Mellanox) )*"


class Fact(NamedTuple):
    """A number or word of a table with its source; flag V (read there), D (derived by arithmetic) or R (recalled)."""

    value: float | str
    flag: str
    source: str


class Accelerator(NamedTuple):
    """What is known of a GPU: GB of 10^9 byte, GB/s, W, ``Gen5 x16``; None where no fact is packaged."""

    name: str
    memory_gbyte: Fact | None
    memory_bandwidth_gbyte_s: Fact | None
    tdp_w: Fact | None
    pcie: Fact | None


class Nic(NamedTuple):
    """A network card: the most that one port carries in Gb/s, and its host interface."""

    name: str
    port_gbit_s: Fact
    host_link: Fact


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """
    The rows of a packaged table; all values are text.

    ``links``, ``goodput``, ``pcie``, ``gpus`` (what joins them), ``accelerators`` (memory, power, slot), ``nics``,
    ``latency`` (constants of NCCL), ``facts``; ``measured`` and ``wire`` are public runs with their bounds.
    """
    file = Path(__file__).parents[1] / "physics" / f"{name}.tsv"
    with file.open(encoding="utf-8", newline="") as lines:
        return tuple(csv.DictReader(lines, delimiter="\t"))


def flag_of(confidence: str) -> str:
    """V, D or R; what only a secondary source says counts as recalled."""
    return RECALLED if "secondary" in confidence else confidence[:1]


def weakest(*flags: str) -> str:
    """The flag of what follows from facts of these flags: R before D before V."""
    return min(flags, key="RDV".index, default=DERIVED)


@cache
def link_row(family: str, name: str, lanes: int) -> dict[str, str] | None:
    """The row of a link, None for no known one."""
    key = (family, name, str(lanes))
    return next((r for r in table("links") if (r["family"], r["name"], r["lanes"]) == key), None)


def link_rate_gbit_s(family: str, name: str, lanes: int) -> float | None:
    """Data rate of a link per direction, coding taken off: infiniband NDR of 4 lanes is 400; None for no known link."""
    row = link_row(family, name, lanes)
    return float(lanes * Fraction(row["raw_gbit_s_per_lane"]) * Fraction(row["efficiency"])) if row else None


def slot_rate(slot: str) -> Fact | None:
    """What a slot like ``Gen4 x16`` carries per direction in Gb/s, coding taken off; None for no known slot."""
    found = re.fullmatch(r"(Gen\d) x(\d+)", slot)
    row = link_row("pcie", found[1], int(found[2])) if found else None
    rate = link_rate_gbit_s("pcie", found[1], int(found[2])) if found else None
    return Fact(rate, flag_of(row["confidence"]), row["source"]) if row and rate else None


def pcie_expected_gbyte_s(generation: str, lanes: int, max_payload_bytes: int) -> float | None:
    """What a device behind a slot can expect after TLP headers. An expectation, no limit: their 24 B are recalled."""
    rate = link_rate_gbit_s("pcie", generation, lanes)
    return None if rate is None else rate / 8 * max_payload_bytes / (max_payload_bytes + 24)


@cache
def gpu_row(printed: str) -> dict[str, str] | None:
    """The row of the GPU table whose pattern matches the whole printed name."""
    return _named("gpus", printed)


@cache
def accelerator(printed: str) -> Accelerator | None:
    """Memory, power and slot of a GPU by the name that a driver prints; None for an unknown one."""
    row = _named("accelerators", printed)
    if row is None:
        return None

    def fact(column: str) -> Fact | None:
        text = row[column]
        flag = RECALLED if column in row["recalled"].split() else flag_of(row["confidence"])
        return Fact(text if column == "pcie" else float(text), flag, row["source"]) if text else None

    return Accelerator(row["gpu"], fact("memory_gbyte"), fact("memory_bandwidth_gbyte_s"), fact("tdp_w"), fact("pcie"))


@cache
def nic(printed: str) -> Nic | None:
    """A network card by its name, ``ConnectX-7``; None for an unknown one."""
    row = _named("nics", printed)
    if row is None:
        return None
    port = Fact(float(row["port_gbit_s"]), flag_of(row["confidence"]), row["source"])
    return Nic(row["nic"], port, Fact(row["host_link"], row["host_link_confidence"], row["source"]))


def _named(name: str, printed: str) -> dict[str, str] | None:
    for row in table(name):
        if re.fullmatch(f"{_VENDORS}(?:{row['printed_as']})", printed.strip(), re.IGNORECASE):
            return row
    return None
