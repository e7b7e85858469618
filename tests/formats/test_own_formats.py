"""A format is one file: a toy from a temporary folder is listed, detected and stored, and nothing is edited for it."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab import formats, sources
from rdmalab.errors import UsageError
from rdmalab.sources import Text
from tests.conftest import ROCE, Bench, nccl_log, perftest_log, write

TOY = '''"""toy: ``toy: 64 bytes 1.5 us``."""

import re

from rdmalab.model import Parsed, Run, Sample

NAME = "toy"
EXAMPLE = "toy: 64 bytes 1.5 us"
SIGNATURE = re.compile(rb"^toy: ", re.M)
_ROW = re.compile(r"toy: ([0-9]{1,9}) bytes ([0-9.]+) us$")


def parse(text):
    rows = [(n, found) for n, line in text.lines() if (found := _ROW.match(line))]
    samples = tuple(Sample(n, int(row[1]), lat_avg_us=float(row[2])) for n, row in rows)
    run = Run(tool=NAME, kind="latency", status="complete", line=1, operation="write", samples=samples)
    return Parsed(runs=(run,))
'''


@pytest.fixture
def fresh() -> Iterator[None]:
    """Formats are looked for anew, before and after."""

    def forget() -> None:
        formats.known.cache_clear()
        formats._hints.cache_clear()
        formats._likely.cache_clear()
        for name in [n for n in sys.modules if n.startswith("rdmalab_formats")]:
            del sys.modules[name]

    forget()
    yield
    forget()


def test_a_toy_format_is_one_file(bench: Bench, tmp_path: Path) -> None:
    """Listed, detected among the others, and read by two processes into the store: the package is untouched."""
    write(tmp_path / "own" / "rdmalab_formats" / "toy.py", TOY)
    for n in range(4):
        bench.log(f"toy-{n}.log", f"toy: {64 * (n + 1)} bytes 1.5 us\n")
    bench.log("both.log", "toy: 8 bytes 1.25 us\n" + perftest_log("client"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path / "own"), str(Path.cwd())])}

    def rdmalab(*words: str | Path) -> str:
        command = [sys.executable, "-m", "rdmalab", *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert "toy              toy: 64 bytes 1.5 us" in rdmalab("formats").splitlines()
    rdmalab("ingest", bench.logs, "--db", bench.store.path, "--executor", "process:2")
    assert bench.rows("SELECT tool, count(*) FROM runs GROUP BY ALL ORDER BY ALL") == [("perftest", 1), ("toy", 5)]
    assert bench.one("SELECT formats FROM logs WHERE path LIKE '%both.log'") == ["perftest", "toy"]


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("change", "complaint"),
    [(("SIGNATURE", "SIGN"), "needs SIGNATURE"), (('NAME = "toy"', 'NAME = "perftest"'), "format 'perftest' already")],
)
def test_a_format_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], complaint: str
) -> None:
    """The complaint names the file and what it lacks."""
    write(tmp_path / "rdmalab_formats" / "toy.py", TOY.replace(*change))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=complaint):
        formats.known()


def _texts() -> list[Text]:
    fixtures = [p for p in sorted((Path(__file__).parent).rglob("*")) if p.is_file() and p.suffix != ".py"]
    mixed = nccl_log(info=ROCE) + perftest_log("client") + "     rx_prio3_pause: 42\n"
    texts = [t for p in fixtures for t in sources.texts(p) if isinstance(t, Text) and b"\0" not in (t.held or b"")]
    return [Text.of(mixed), *texts]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_the_order_of_formats_decides_nothing(seed: int) -> None:
    """Whatever order formats are found in: the same formats claim a text, and the same is read of it."""
    texts = random.Random(seed).sample(_texts(), 12)
    expected = [formats.read(text) for text in texts]
    shuffled = random.Random(seed).sample(formats.known(), len(formats.known()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "known", lambda: tuple(shuffled))
        formats._hints.cache_clear()
        formats._likely.cache_clear()
        found = [formats.read(text) for text in texts]
    formats._hints.cache_clear()
    formats._likely.cache_clear()
    assert found == expected
