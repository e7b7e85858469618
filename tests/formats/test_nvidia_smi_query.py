"""What the nvidia-smi-query format promises, on logs written for it and on any text at all."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import nvidia_smi_query
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "nvidia_smi_query"
ALL = sorted(LOGS.iterdir())


def parsed(text: str) -> Parsed:
    return nvidia_smi_query.parse(Text.of(text))


def values(found: Parsed, metric: str) -> list[float | None]:
    return [r.value for r in found.readings if r.metric == metric]


def codes(found: Parsed) -> list[str]:
    return [note.code for note in found.notes]


def test_columns_come_from_the_header() -> None:
    """Names and units are the header's; the stamp is kept as printed, because it names no zone."""
    first = parsed((LOGS / "units.csv").read_text()).readings[0]
    assert first == Reading(
        metric="utilization.gpu", value=100.0, unit="%", device="GPU-aaaa", line=2, stamp="2026/03/15 13:57:59.791"
    )


def test_every_interval_of_every_gpu() -> None:
    """Rows follow each other as they were printed."""
    found = parsed((LOGS / "units.csv").read_text())
    assert values(found, "utilization.gpu") == [100.0, 97.0, 99.0]
    assert values(found, "memory.used") == [1024.0, 0.0, 1024.0]
    assert [r.device for r in found.readings if r.metric == "temperature.gpu"] == ["GPU-aaaa", "GPU-bbbb", "GPU-aaaa"]


def test_what_was_not_measured_is_null() -> None:
    """N/A and [Not Supported] are null without a word; any other text in a column of numbers is null with a note."""
    found = parsed((LOGS / "units.csv").read_text())
    assert values(found, "temperature.memory") == [None, None, None]
    assert values(found, "power.draw") == [290.28, None, 291.0]
    assert [(n.line, n.code) for n in found.notes] == [(3, "not_a_number")]


def test_words_are_no_readings() -> None:
    """Names, states and versions are no measurements."""
    metrics = {r.metric for r in parsed((LOGS / "units.csv").read_text()).readings}
    assert metrics == {"utilization.gpu", "power.draw", "memory.used", "temperature.gpu", "temperature.memory"}


def test_nounits_keeps_the_units_of_the_header() -> None:
    """Bare numbers have the unit that stands in the header; without a uuid the index names the GPU."""
    found = parsed((LOGS / "nounits.csv").read_text())
    assert [(r.device, r.metric, r.value, r.unit) for r in found.readings] == [
        ("0", "utilization.gpu", 12.0, "%"),
        ("0", "clocks.current.sm", 1980.0, "MHz"),
        ("0", "pcie.link.width.current", 16.0, None),
        ("1", "utilization.gpu", None, "%"),
        ("1", "clocks.current.sm", 345.0, "MHz"),
        ("1", "pcie.link.width.current", 16.0, None),
    ]


def test_another_unit_than_the_headers_is_refused() -> None:
    """3 GiB under a header of MiB is not 3 MiB."""
    found = parsed("index, memory.used [MiB]\n0, 3 GiB\n")
    assert values(found, "memory.used") == [None]
    assert codes(found) == ["not_a_number"]


def test_without_a_header_nothing_is_known() -> None:
    """Rows without names are not recognised, and would give nothing."""
    rows = "".join((LOGS / "units.csv").read_text().splitlines(keepends=True)[1:])
    assert not nvidia_smi_query.SIGNATURE.search(rows.encode())
    assert parsed(rows) == Parsed()


def test_other_lines_in_the_file_are_no_rows() -> None:
    """What other programs print in between is left alone; a row that is cut is noted."""
    lines = (LOGS / "units.csv").read_text().splitlines(keepends=True)
    found = parsed("".join([*lines[:2], "step 7, loss 1.25\n", "2026/03/15 13:57:59.815, 1, GPU-bb\n", lines[3]]))
    assert values(found, "utilization.gpu") == [100.0, 99.0]
    assert [(n.line, n.code) for n in found.notes] == [(4, "torn_row")]


def test_a_last_line_without_its_end_is_refused() -> None:
    """16 may have been 160: a last line without a line end is left out."""
    found = parsed((LOGS / "nounits.csv").read_text().removesuffix("\n"))
    assert len(found.readings) == 3
    assert codes(found) == ["torn_row"]


def test_a_single_column() -> None:
    """One column needs its unit to be a header; lines that are no numbers end nothing and are no rows."""
    found = parsed("utilization.gpu [%]\n5 %\n\nready\n7 %\n")
    assert [(r.value, r.line) for r in found.readings] == [(5.0, 2), (7.0, 5)]


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_cutting_a_log_invents_nothing(path: Path) -> None:
    """Cut behind any line, a log gives the beginning of its own readings, and no others."""
    whole, lines = parsed(path.read_text()).readings, path.read_text().splitlines(keepends=True)
    for end in range(len(lines)):
        part = parsed("".join(lines[:end])).readings
        assert part == whole[: len(part)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_the_signature_finds_every_log(path: Path, end: str) -> None:
    """Every log here is recognised, and line ends change nothing."""
    text = path.read_text().replace("\n", end)
    assert nvidia_smi_query.SIGNATURE.search(text.encode())
    assert parsed(text) == parsed(path.read_text())


PIECES = st.sampled_from([line for path in ALL for line in path.read_text().splitlines()])


@given(st.lists(PIECES | st.text(max_size=40), max_size=25))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(lines: list[str]) -> None:
    """No order of lines raises, and every reading names a line with its number."""
    text = "\n".join(lines)
    for reading in parsed(text).readings:
        assert reading.line is not None
        assert reading.value is None or any(c.isdigit() for c in text.split("\n")[reading.line - 1])


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: utilization, power and memory are right."""
    if "RDMALAB_CORPUS" not in os.environ:
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    files = json.loads((folder / "truth.json").read_text())["files"]
    many = parsed((folder / "nvidia_smi_query_8xh100_nounits.csv").read_text())
    expected = files["nvidia_smi_query_8xh100_nounits.csv"]["expect"]
    assert values(many, "utilization.gpu") == expected["gpu_util_percent"]
    assert values(many, "power.draw.average") == expected["power_avg_w"]
    assert values(many, "memory.used") == expected["memory_used_mib"]
    assert many.readings[0].stamp == expected["first_timestamp"]
    assert [r.device for r in many.readings if r.metric == "memory.used"] == [str(n) for n in range(8)]
    one = parsed((folder / "nvidia_smi_query_units_1row.csv").read_text())
    expected = files["nvidia_smi_query_units_1row.csv"]["expect"]
    assert [r.value for r in one.readings] == [expected[k] for k in ("gpu_util_percent", "mem_util_percent", "power_w")]
    assert many.notes == one.notes == ()
