"""A log reads the same however it was carried: launchers, containers, loggers, web pages, notebooks, terminals."""

import html
import json
import re
from collections.abc import Callable

import pytest

from rdmalab import formats
from rdmalab.model import Log
from rdmalab.sources import Text
from tests.conftest import nccl_log, perftest_log


def _prefix(prefix: str) -> Callable[[str], str]:
    """Every line with a prefix; ``%02d`` in it counts seconds."""

    def dress(text: str) -> str:
        lines = text.split("\n")[:-1]
        return "".join((prefix % (n % 60) if "%" in prefix else prefix) + line + "\n" for n, line in enumerate(lines))

    return dress


def _each(change: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(n, line) + "\n" for n, line in enumerate(text.split("\n")[:-1], 1))


PREFIXES = {
    "Open MPI": "[1,0]<stdout>:", "Open MPI 5": "[prterun-node01-712@1,0]<stdout>: ", "srun -l": " 0: ",
    "Open MPI with date": "Fri Jan  2 03:04:05 2026[1,0]<stdout>:", "pdsh": "node-01: ", "MPICH": "[0] ",
    "torchrun": "[rank0]: ", "torchrun before 2.4": "[default0]:", "Ray": "(Worker pid=712, ip=192.0.2.1) ",
    "kubectl --prefix": "[pod/nccl-launcher-x7f2c/launcher] ", "stern": "nccl-launcher-x7f2c launcher ",
    "CRI": "2026-01-02T03:04:%02d.678901234Z stdout F ", "GitHub": "2026-01-02T03:04:%02d.6789012Z ",
    "GitLab": "2026-01-02T03:04:%02d.678901Z 01O ", "docker compose": "nccl-test-1  | ",
    "docker compose, coloured": "\x1b[36mnccl-test-1  |\x1b[0m ", "logging": "2026-01-02 03:04:%02d,678 - INFO - ",
    "logging with name": "2026-01-02 03:04:%02d,678 - bench.run - INFO - ", "logging, basic": "INFO:root:",
    "DeepSpeed": "[2026-01-02 03:04:%02d,678] [INFO] [runner.py:12:main] ",
    "glog": "I0102 03:04:%02d.678901 4120 main.cc:12] ", "journal": "Jan 02 03:04:%02d node01 bench[4120]: ",
    "journal -o short-iso": "2026-01-02T03:04:%02d+0100 node01 bench[4120]: ", "CloudWatch": "1767323045678 ",
    "time of day": "03:04:%02d ", "time in brackets": "[03:04:%02d.678] ",
    "stamp in brackets": "[2026-01-02 03:04:%02d] ",
    "mail": "> ", "list": "- ", "compose around mpirun": "nccl-test-1  | [1,0]<stdout>:", "grep -H": "run_01.log:",
}  # fmt: skip
CHANGES: dict[str, Callable[[str], str]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "returns of a terminal": _each(lambda _, line: f"\r{line}\r"),
    "colours": _each(lambda _, line: f"\x1b[32m{line}\x1b[0m"),
    "byte order mark": lambda text: "\ufeff" + text,
    "HTML": _each(lambda _, line: html.escape(f"[1,0]<stdout>:{line}")),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "single spaces": _each(lambda _, line: re.sub(r"[ \t]+", " ", line)),
    "tabs": _each(lambda _, line: re.sub(r" {2,}", "\t", line)),
    "a table of Markdown": _each(lambda _, line: f"| {line} |"),
    "grep -n": _each(lambda number, line: f"{number}:{line}"),
    "grep -Hn": _each(lambda number, line: f"logs/run_01.log:{number}:{line}"),
    "cat -n": _each(lambda number, line: f"{number:6}\t{line}"),
    "Docker's log file": _each(lambda _, line: json.dumps({"log": line + "\n", "stream": "stdout", "time": "-"})),
    "a notebook": lambda text: (
        '{"cells": [\n{"cell_type": "code",\n"outputs": [{"text": [\n'
        + ",\n".join(f"  {json.dumps(line)}" for line in text.splitlines(keepends=True)) + "\n]}]}]}\n"
    ),
}  # fmt: skip
LOGS = {
    "nccl-tests": nccl_log(info="[node01:712] 15 more processes have sent help message\n"),
    "perftest": perftest_log("client"),
}


def facts(log: Log) -> list[object]:
    """What was read, without numbers of lines."""
    runs = [
        (r.tool, r.operation, r.status, r.ranks, r.nodes, r.average_busbw_gbyte_s, r.device, r.local_address, r.side)
        for r in log.runs
    ]
    return [*runs, *(s._replace(line=None) for r in log.runs for s in r.samples)]


@pytest.mark.parametrize("tool", LOGS)
@pytest.mark.parametrize("dress", [*PREFIXES, *CHANGES])
def test_a_log_reads_the_same_however_it_was_carried(tool: str, dress: str) -> None:
    """Same runs, same rows, same verdict; the lines are those of the file."""
    plain = formats.read(Text.of(LOGS[tool]))
    assert len(facts(plain)) >= 3
    text = (_prefix(PREFIXES[dress]) if dress in PREFIXES else CHANGES[dress])(LOGS[tool])
    found = formats.read(Text.of(text))
    assert facts(found) == facts(plain)
    for run in found.runs:
        for sample in run.samples:
            assert str(sample.size_bytes) in text.split("\n")[(sample.line or 0) - 1]


def test_words_before_one_line_are_no_prefix() -> None:
    """What another process wrote in front of the head costs that line nothing, and no other line."""
    text = LOGS["nccl-tests"].replace("# nThread", "warning: no route # nThread", 1)
    assert facts(formats.read(Text.of(text))) == facts(formats.read(Text.of(LOGS["nccl-tests"])))


def test_one_column_too_many_is_no_prefix() -> None:
    """A stray digit before one row must not become a prefix that eats the sizes of the others."""
    plain = formats.read(Text.of(LOGS["nccl-tests"]))
    rows = [s.size_bytes for s in plain.runs[0].samples]
    damaged = LOGS["nccl-tests"].replace("     1048576        262144", "  8  1048576        262144")
    lines = [line for line in damaged.splitlines(keepends=True) if not line.startswith("#")]
    found = formats.read(Text.of("".join(lines)))
    assert {s.size_bytes for run in found.runs for s in run.samples} == {max(rows)}
    assert "torn_row" in [note.code for note in found.notes]


def test_a_row_behind_other_text_is_a_note() -> None:
    """A row whose first characters are damaged is left out and said."""
    for before in ("[", "x ", "[1,0]<st6out>:", "1 "):
        damaged = LOGS["nccl-tests"].replace("     1048576", before + "    1048576")
        found = formats.read(Text.of(damaged))
        assert {s.size_bytes for run in found.runs for s in run.samples} == {67108864}
        assert {"torn_row", "not_understood"} & {note.code for note in found.notes}, before
