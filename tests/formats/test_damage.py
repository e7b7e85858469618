"""Logs that are cut, spliced, shuffled, corrupted: no exception, no value that is not in the text, no silent loss."""

import random
import re
from pathlib import Path

import pytest

from rdmalab import formats
from rdmalab.model import Log
from rdmalab.sources import Text
from rdmalab.units import MIB_S_IN_GBIT_S
from tests.conftest import ROCE, nccl_log, perftest_log

FOLDER = Path(__file__).parent
FILES = [p for tool in ("nccl", "perftest") for p in sorted((FOLDER / tool).glob("*.log"))]
LOGS = [*(p.read_text(encoding="utf-8", errors="replace") for p in FILES), nccl_log(info=ROCE), perftest_log("client")]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_ROW = re.compile(
    r"(?:^|\s)\d+\s+\d+\s+(?:float|double|half|bfloat16|u?int\d*|f8e\w+)\s+(?:sum|max|min|prod|avg|none|-?\d+)"
    r"(?:\s+(?:-?[\d.e+-]+|N/A)){8,9}\s*$"
)
_PRINTED = (
    "size_bytes", "count", "time_us", "cpu_time_us", "algbw_gbyte_s", "busbw_gbyte_s", "iterations", "msg_rate_mpps",
    "lat_min_us", "lat_max_us", "lat_typical_us", "lat_avg_us", "lat_p99_us", "lat_p999_us",
)  # fmt: skip


def damaged(dice: random.Random) -> str:
    """One log after an accident."""
    text, other = dice.choice(LOGS), dice.choice(LOGS)
    lines = text.split("\n")
    at = dice.randrange(len(lines))
    match dice.randrange(5):
        case 0:
            return text[: dice.randrange(len(text))]
        case 1:
            return text[: dice.randrange(len(text))] + other[dice.randrange(len(other)) :]
        case 2:
            some = lines[at : at + 8]
            dice.shuffle(some)
            return "\n".join([*lines[:at], *some, *lines[at + 8 :]])
        case 3:
            return "\n".join(lines[:at] + lines[at + dice.randrange(1, 4) :])
        case _:
            letters = list(text)
            for _ in range(dice.randrange(1, 10)):
                letters[dice.randrange(len(letters))] = dice.choice(" 0123456789.,-#eNan\n\t:[]<>x")
            return "".join(letters)


def strange(log: Log, text: str) -> list[object]:
    """Values of *log* that do not stand in *text*, in the unit of the tool or a thousandth of it (2017: ms)."""
    numbers = {float(n) for n in _NUMBER.findall(text)} | {float(n.lstrip("-")) for n in _NUMBER.findall(text)}
    numbers |= {round(n * 1000, 6) for n in numbers}
    rates = sorted({n * unit for n in numbers for unit in (1.0, MIB_S_IN_GBIT_S)})
    found: list[object] = []
    for sample in (s for run in log.runs for s in run.samples):
        values = [getattr(sample, name) for name in _PRINTED]
        found += [(sample.line, v) for v in values if v is not None and float(v) not in numbers]
        average = sample.bw_avg_gbit_s
        if average is not None and not any(abs(average - rate) <= 1e-9 * average for rate in rates):
            found.append((sample.line, average))
    return found


def silently_lost(log: Log, text: str) -> list[int]:
    """Lines that look like whole rows of nccl-tests and are neither a sample nor a note."""
    known = {s.line for run in log.runs for s in run.samples} | {n.line for n in log.notes}
    refused = {"lookalike_refused", "unknown_unit", "interleaved"} & {n.code for n in log.notes}
    if refused or "nccl-tests" not in log.formats:
        return []
    lines = enumerate(text.split("\n"), 1)
    return [n for n, line in lines if n not in known and _ROW.search(line) and "nThread" not in line]


@pytest.mark.parametrize("seed", range(8))
def test_damage_invents_nothing_and_hides_nothing(seed: int) -> None:
    """A hundred accidents a seed."""
    dice = random.Random(seed)
    for _ in range(100):
        text = damaged(dice)
        log = formats.read(Text.of(text))
        assert [n.text for n in log.notes if n.code == "parser_error"] == [], text
        assert strange(log, text) == [], text
        assert silently_lost(log, text) == [], text
