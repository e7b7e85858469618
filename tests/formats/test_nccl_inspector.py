"""What the nccl-inspector format promises, on records written for it and on any text at all."""

import json
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import nccl_inspector
from rdmalab.formats._json import documents
from rdmalab.model import Parsed
from rdmalab.sources import Text

TEXT = (Path(__file__).parent / "nccl_inspector" / "records.jsonl").read_text()
LINES = TEXT.splitlines(keepends=True)


def parsed(text: str) -> Parsed:
    return nccl_inspector.parse(Text.of(text))


def test_a_record_gives_time_and_bandwidths() -> None:
    """The device names collective, size and rank, so that like is compared with like; the stamp is UTC."""
    found = parsed(LINES[0]).readings
    assert [(r.metric, r.value, r.unit) for r in found] == [
        ("coll_exec_time_us", 150.0, "us"),
        ("coll_algobw_gbs", 27.96, "GB/s"),
        ("coll_busbw_gbs", 48.93, "GB/s"),
    ]
    assert {(r.device, r.host, r.line) for r in found} == {("AllReduce 4194304 bytes, rank 0 of 8", "node-1", 1)}
    assert {r.read_at for r in found} == {datetime(2026, 1, 1, 0, 0, 0, 250000, tzinfo=UTC)}


def test_records_of_other_kinds_are_left_alone() -> None:
    """Sends and receives are no collectives; what a record does not hold is not made up."""
    found = parsed(TEXT).readings
    assert [(r.line, r.metric, r.value, r.read_at) for r in found if r.line != 1] == [
        (3, "coll_exec_time_us", 30.5, None)
    ]


def test_times_of_the_cpu_are_said_to_be_so() -> None:
    """A collective timed by the CPU includes launch and waiting."""
    assert [(n.line, n.code) for n in parsed(TEXT + LINES[2]).notes] == [(3, "cpu_timed")]


def test_what_cannot_be_compared_is_refused() -> None:
    """A record without a size, and one that is torn, are noted and left out."""
    found = parsed(LINES[0].replace('"coll_msg_size_bytes":4194304,', "") + LINES[2][:-9] + "\n" + LINES[0])
    assert {r.line for r in found.readings} == {3}
    assert [(n.line, n.code) for n in found.notes] == [(1, "unknown_collective"), (2, "cut_document")]


def test_cutting_a_log_invents_nothing() -> None:
    """Cut behind any line, a log gives the beginning of its own readings, and no others."""
    whole = parsed(TEXT).readings
    for end in range(len(LINES)):
        part = parsed("".join(LINES[:end])).readings
        assert part == whole[: len(part)]


def test_the_signature_finds_the_log() -> None:
    """Records are recognised."""
    assert nccl_inspector.SIGNATURE.search(TEXT.encode())


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=40), max_size=10), st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(lines: list[str], cut: int) -> None:
    """No order of lines raises, wherever they are cut."""
    parsed("".join(lines)[cut:])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=4), st.sampled_from([None, 1, 4]))
@settings(max_examples=200, deadline=None)
def test_documents_among_other_lines_are_found(written: list[dict[str, object]], indent: int | None) -> None:
    """Whatever the documents hold and however they are indented, each is read whole, at its first line."""
    lines: list[str] = []
    starts: list[int] = []
    for document in written:
        lines.append("[1,0]<stdout>:loading {weights")
        starts.append(len(lines) + 1)
        lines += json.dumps(document | {"mark": 1}, indent=indent).split("\n")
    found = list(documents(enumerate(lines, 1), '"mark"'))
    assert found == [(start, document | {"mark": 1}) for start, document in zip(starts, written, strict=True)]
