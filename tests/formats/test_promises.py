"""What formats of one kind promise alike, held against each one's own logs: nothing invented, nothing hidden."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import Format, known
from rdmalab.model import Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent
NAMES = {"fi_pingpong": "fi-pingpong", "osu": "osu", "qperf": "qperf", "sockperf": "sockperf"}  # folder: format
FORMATS: dict[str, Format] = {folder: next(f for f in known() if name == f.NAME) for folder, name in NAMES.items()}
CASES = [(folder, log) for folder in FORMATS for log in sorted((LOGS / folder).iterdir()) if log.is_file()]
cases = pytest.mark.parametrize(("folder", "log"), CASES, ids=[f"{folder}-{log.name}" for folder, log in CASES])


def samples(folder: str, text: str) -> list[Sample]:
    """All samples of a text, in order."""
    return [sample for run in FORMATS[folder].parse(Text.of(text)).runs for sample in run.samples]


@cases
def test_the_signature_finds_every_log(folder: str, log: Path) -> None:
    """Every log here is recognised, by its hints too."""
    data = log.read_bytes()
    assert FORMATS[folder].SIGNATURE.search(data)
    assert any(hint in data for hint in FORMATS[folder].HINTS)  # type: ignore[attr-defined]


@cases
@pytest.mark.parametrize("prefix", ["0: ", "[1,0]<stdout>:"])
def test_a_launcher_prefix_changes_nothing(folder: str, log: Path, prefix: str) -> None:
    """Lines behind launcher prefixes are read like bare ones."""
    lines = log.read_text(encoding="utf-8").splitlines()
    dressed = "".join(f"{prefix}{line}\n" for line in lines)
    assert samples(folder, dressed) == samples(folder, log.read_text(encoding="utf-8"))


@cases
def test_cutting_a_log_invents_nothing(folder: str, log: Path) -> None:
    """Cut behind any line, a log gives no number that the whole log does not give at the same place."""
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = samples(folder, "".join(lines))
    for end in range(len(lines)):
        part = samples(folder, "".join(lines[:end]))
        assert len(part) <= len(whole)
        for got, full in zip(part, whole, strict=False):
            assert all(a in (None, b) for a, b in zip(got, full, strict=True))


@pytest.mark.parametrize("folder", FORMATS)
def test_any_text_is_read(folder: str) -> None:
    """No order of lines raises, and every sample names a line with a digit."""
    pieces = [line for f, log in CASES if f == folder for line in log.read_text(encoding="utf-8").splitlines()]

    @given(st.lists(st.sampled_from(pieces) | st.text(max_size=40), max_size=25))
    @settings(max_examples=200, deadline=None)
    def read(lines: list[str]) -> None:
        text = "\n".join(lines)
        for sample in samples(folder, text):
            assert sample.line is not None
            assert any(c.isdigit() for c in text.split("\n")[sample.line - 1])

    read()
