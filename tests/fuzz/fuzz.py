"""Coverage-guided fuzzing of one log format: no exception, no hang. Not part of the test suite.

    pip install atheris
    python tests/fuzz/fuzz.py nccl-tests -max_total_time=600

Everything behind the name goes to libFuzzer; ten seconds are a hang (``-timeout``). Seeds are the fixtures of the
tests, the example logs, and the logs below ``RDMALAB_CORPUS`` if that is set. What crashes is written to the working
folder as ``crash-...``; ``python tests/fuzz/fuzz.py nccl-tests crash-...`` runs it again.
"""

import math
import os
import random
import re
import sys
import tempfile
from dataclasses import fields
from functools import partial
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["rdmalab"]):
    from rdmalab import formats
    from rdmalab.model import Samples
    from rdmalab.sources import Text

    KNOWN = {form.NAME: form for form in formats.known()}  # imported here, so that they are watched

ROOT = Path(__file__).parents[2]
LONGEST = 6000  # of a seed: lines of the middle of a long log are like those around them
_DIGITS = re.compile(rb"\d+")
_WORDS = (b"nan", b"inf", b"-1", b"0", b"1e+07", b"N/A", b"18446744073709551616", b"9" * 400, b"\xff", b"\x1b[31m", b"")


def seeds(form: formats.Format) -> list[bytes]:
    """The logs that the format reads, long ones cut in the middle."""
    folders = [ROOT / "tests" / "formats", ROOT / "data" / "examples"]
    if corpus := os.environ.get("RDMALAB_CORPUS"):
        folders.append(Path(corpus))
    found = [form.EXAMPLE.encode()]
    for path in sorted(p for folder in folders for p in folder.rglob("*") if p.is_file() and "fleet" not in p.parts):
        content = path.read_bytes()
        if form in formats.detect(Text.of(content)):
            half = LONGEST // 2
            found.append(content if len(content) <= LONGEST else content[:half] + content[-half:])
    return found


def mutated(data: bytes, largest: int, seed: int) -> bytes:
    """Half of the time what libFuzzer does with bytes, else what happens to lines and numbers of a log."""
    dice = random.Random(seed)
    if dice.random() < 0.5:
        return bytes(atheris.Mutate(data, largest))
    lines = data.split(b"\n")
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(8):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = lines[at][: dice.randrange(len(lines[at]) + 1)]
        case 4:
            lines[at:] = [b"".join(lines[at : at + 2]), *lines[at + 2 :]]
        case 5:
            lines = [dice.choice((b"0: ", b"[1,0]<stdout>:", b"> ", b"2026-01-02T03:04:05Z ")) + line for line in lines]
        case 6:
            words = lines[at].split(b" ")
            words[dice.randrange(len(words))] = dice.choice(_WORDS)
            lines[at] = b" ".join(words)
        case _:
            lines[at] = _DIGITS.sub(lambda _: dice.choice(_WORDS) or b"7", lines[at], count=1)
    return b"\n".join(lines)[:largest]


def check(form: formats.Format, data: bytes) -> None:
    """Reads *data*; what comes out must be what a store can hold."""
    parsed = form.parse(Text.of(data))
    for record in (*parsed.runs, *parsed.readings, *parsed.notes):
        items = record if isinstance(record, tuple) else (getattr(record, f.name) for f in fields(record))
        for value in items:
            if isinstance(value, str):
                value.encode()
            elif isinstance(value, int):
                assert -(2**63) <= value < 2**63, record
    for run in parsed.runs:
        for name, column in Samples.of(run.samples).columns.items():
            for value in column:
                if isinstance(value, int):
                    assert -(2**63) <= value < 2**63, (name, value)
                elif isinstance(value, float):
                    assert math.isfinite(value), (name, value)


def main() -> None:
    """Fuzzes the format that the command line names."""
    if len(sys.argv) < 2 or sys.argv[1] not in KNOWN:
        sys.exit(f"usage: fuzz.py FORMAT [libFuzzer options]; formats: {', '.join(KNOWN)}")
    form = KNOWN[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds(form)):
            Path(folder, f"{number:04}").write_bytes(seed)
        again = any(Path(argument).is_file() for argument in sys.argv[2:])
        options = sys.argv[2:] if again else ["-timeout=10", f"-max_len={LONGEST}", *sys.argv[2:], folder]
        atheris.Setup([sys.argv[0], *options], partial(check, form), custom_mutator=mutated)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
