"""One number of a log made impossible costs at most what stands around it: no exception, nothing no store can hold."""

import random
import re
from dataclasses import fields
from pathlib import Path

from rdmalab import formats, sources
from rdmalab.model import Log, Run, Samples
from rdmalab.sources import Text

FIXTURES = Path(__file__).parent
FILES = [p for p in sorted(FIXTURES.rglob("*")) if p.is_file() and p.suffix not in (".py", ".pyc", ".gz")]
IMPOSSIBLE = ("9" * 400, "9" * 5000, "18446744073709551616", "-1", "nan", "inf", "1e999", "0", "1_0", "٣")


def test_impossible_numbers_end_no_parser() -> None:
    """Every fixture, forty of its numbers, each made impossible in one of ten ways."""
    dice = random.Random(4)
    for path in FILES:
        for text in sources.texts(path):
            assert isinstance(text, Text)
            content = (text.held or b"").decode("utf-8", "replace")
            numbers = list(re.finditer(r"\d+(?:\.\d+)?", content))
            for found in dice.sample(numbers, min(40, len(numbers))):
                changed = content[: found.start()] + dice.choice(IMPOSSIBLE) + content[found.end() :]
                log = formats.read(Text.of(changed))
                assert [n for n in log.notes if n.code == "parser_error"] == [], (path, found)
                assert _too_great(log) == [], (path, found)


def _too_great(log: Log) -> list[object]:
    """Whole numbers beyond 64 bits; no column takes them."""
    runs = [getattr(run, f.name) for run in log.runs for f in fields(Run)]
    rows = [v for run in log.runs for column in Samples.of(run.samples).columns.values() for v in column]
    lines = [record.line for records in (log.readings, log.notes) for record in records]
    return [v for v in (*runs, *rows, *lines) if isinstance(v, int) and not -(2**63) <= v < 2**63]
