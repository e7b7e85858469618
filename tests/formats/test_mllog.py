"""What the mllog format promises, on a log written for it and on any text at all."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import mllog
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

TEXT = (Path(__file__).parent / "mllog" / "two_runs.log").read_text()
LINES = TEXT.splitlines(keepends=True)


def parsed(text: str) -> Parsed:
    return mllog.parse(Text.of(text))


def codes(found: Parsed) -> list[tuple[int | None, str]]:
    return [(note.line, note.code) for note in found.notes]


def test_time_to_train_is_from_start_to_stop() -> None:
    """1767225722250 ms minus 1767225601500 ms are 120.75 s, and the stamps are UTC."""
    found = [r for r in parsed(TEXT).readings if r.metric == "time_to_train_s"]
    stop = datetime(2026, 1, 1, 0, 2, 2, 250000, tzinfo=UTC)
    assert found == [Reading(metric="time_to_train_s", value=120.75, unit="s", read_at=stop, line=6)]


def test_throughput_on_the_way() -> None:
    """The tracked throughput is kept with its time; its unit is not printed."""
    at = datetime(2026, 1, 1, 0, 1, 1, 500000, tzinfo=UTC)
    assert parsed(TEXT).readings[0] == Reading(metric="throughput", value=28.75, read_at=at, line=5)


def test_only_a_success_has_a_time_to_train() -> None:
    """The aborted run and the one without an end have none; notes say how each ended."""
    found = parsed(TEXT)
    assert [(n.line, n.code, n.text) for n in found.notes] == [
        (6, "run_status", "llama2_70b_lora: run_stop with status success."),
        (8, "run_status", "llama2_70b_lora: run_stop with status aborted after 100 s, which is no time to train."),
        (9, "start_without_stop", "llama2_70b_lora: run_start without a run_stop; no time to train."),
    ]


def test_a_stop_without_its_start() -> None:
    """A log that begins in the middle of a run has no time to train."""
    found = parsed("".join(LINES[3:6]))
    assert [r.metric for r in found.readings] == ["throughput"]
    assert codes(found) == [(3, "stop_without_start")]


def test_times_that_run_backwards_are_refused() -> None:
    """A stop that is not later than its start gives no time."""
    found = parsed("".join(LINES[1:3]) + LINES[5].replace("1767225722250", "1767225601500"))
    assert (found.readings, codes(found)) == ((), [(3, "times_disagree")])


def test_ranks_that_all_print_are_kept_apart() -> None:
    """Behind the marks of srun every rank has its own start and stop."""
    found = parsed("".join(f"{rank:2d}: {LINES[n]}" for n in (1, 2, 5) for rank in (0, 1)))
    assert [(r.value, r.line) for r in found.readings] == [(120.75, 5), (120.75, 6)]


def test_a_torn_line_is_noted() -> None:
    """An event that lost its end is no event."""
    found = parsed(LINES[1] + LINES[2][:90] + "\n")
    assert (found.readings, codes(found)) == ((), [(2, "torn_row")])


def test_cutting_a_log_invents_nothing() -> None:
    """Cut behind any line, a log gives the beginning of its own readings, and no others."""
    whole = parsed(TEXT).readings
    for end in range(len(LINES)):
        part = parsed("".join(LINES[:end])).readings
        assert part == whole[: len(part)]


def test_the_signature_finds_the_log() -> None:
    """The mark is found anywhere in a line."""
    assert mllog.SIGNATURE.search(b"[1,0]<stdout>:" + LINES[1].encode())


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=40), max_size=25), st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(lines: list[str], cut: int) -> None:
    """No order of lines raises, wherever they are cut, and every time to train is positive."""
    for reading in parsed("".join(lines)[cut:]).readings:
        assert reading.value is not None
        assert reading.metric != "time_to_train_s" or reading.value > 0


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: three successes and a run that is cut off."""
    if "RDMALAB_CORPUS" not in os.environ:
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    times = {
        "nccl_benign_teardown_warn_16x8h100_v2.22.3.log": [174.691],
        "nccl_singlenode_socket_named_8xh200_v2.22.3.log": [2030.561],
        "rccl_socket_2x8mi300x_v2.22.3.log": [914.256],
        "nccl_ib_sharp_plugin_2x8h100_v2.19.3.log": [],
    }
    for name, expected in times.items():
        found = parsed((folder / name).read_text())
        assert [r.value for r in found.readings if r.metric == "time_to_train_s"] == expected
        assert [n.code for n in found.notes] == ["run_status" if expected else "start_without_stop"]
