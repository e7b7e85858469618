"""Values from the more precise of the printed numbers: exact cases, and the function against the views of the store."""

import os
from pathlib import Path

import pytest

from rdmalab import formats, sources
from rdmalab.model import Run, Sample
from rdmalab.recomputed import NAMES, recomputed
from rdmalab.sources import Text
from tests.conftest import Bench

FIXTURES = Path(__file__).parent / "formats"
EXAMPLES = Path(__file__).parents[1] / "data" / "examples"


def collective(operation: str = "all_reduce", *, ranks: int | None = 16, tool: str = "nccl-tests") -> Run:
    return Run(tool=tool, kind="collective", status="complete", line=1, operation=operation, ranks=ranks)


def sample(size: int, time: float, algbw: float, busbw: float, **more: float) -> Sample:
    return Sample(5, size, time_us=time, algbw_gbyte_s=algbw, busbw_gbyte_s=busbw, max_delta=more.get("max_delta"))


def test_a_time_of_two_digits_is_told_by_the_bandwidth() -> None:
    """64 GiB in 1.7e+07 us: busbw 7.48 of 16 ranks is finer: 7.48 / 1.875 = 3.98933 GB/s, so 17,225,899 us."""
    found = recomputed(collective(), sample(68719476736, 1.7e7, 3.99, 7.48))
    assert found["time_us_recomputed"] == pytest.approx(68719476.736 / (7.48 / 1.875))
    assert found["algbw_gbyte_s_recomputed"] == pytest.approx(7.48 / 1.875)
    assert "busbw_gbyte_s_recomputed" not in found


def test_bandwidths_of_two_decimals_are_told_by_the_time() -> None:
    """512 bytes in 12.34 us are 0.04149 GB/s, printed as 0.04; times 1.875 that is 0.0778, printed as 0.08."""
    found = recomputed(collective(), sample(512, 12.34, 0.04, 0.08))
    assert found == {
        "algbw_gbyte_s_recomputed": pytest.approx(0.512 / 12.34),
        "busbw_gbyte_s_recomputed": pytest.approx(1.875 * 0.512 / 12.34),
    }


def test_a_bandwidth_that_is_printed_as_zero_is_told() -> None:
    """8 bytes in 50 us are 0.00016 GB/s."""
    assert recomputed(collective(), sample(8, 50.0, 0.0, 0.0))["algbw_gbyte_s_recomputed"] == pytest.approx(0.00016)


@pytest.mark.parametrize(
    ("run", "row"),
    [
        (collective(), sample(512, 12.34, 0.4, 0.8)),  # edited by hand
        (collective("hypercube"), sample(512, 12.34, 0.04, 0.04)),
        (collective("all_gather"), sample(512, 12.34, 0.04, 0.04, max_delta=0.0)),  # before 2020-06
        (collective(tool="hccl-test"), sample(512, 12.34, 0.04, 0.08)),
        (collective(), Sample(None, 512, time_us=12.34, algbw_gbyte_s=0.04, busbw_gbyte_s=0.08)),  # a document
        (collective(), Sample(5, 512, cpu_time_us=12.34, algbw_gbyte_s=0.04, busbw_gbyte_s=0.08)),
        (collective(), Sample(5)),
    ],
)
def test_nothing_is_told_where_something_contradicts(run: Run, row: Sample) -> None:
    """What was printed stays, and stands alone."""
    assert recomputed(run, row) == {}


def test_without_ranks_busbw_is_not_told() -> None:
    """algbw is, it needs none."""
    assert recomputed(collective(ranks=None), sample(512, 12.34, 0.04, 0.08)).keys() == {"algbw_gbyte_s_recomputed"}


def test_a_message_rate_tells_a_small_bandwidth() -> None:
    """8 bytes at 0.009123 million a second are 0.000583872 Gb/s, printed as 0.07 MB/sec, which is 0.000587."""
    run = Run(tool="perftest", kind="bandwidth", status="complete", line=1, unit_printed="MB/sec")
    row = Sample(5, 8, bw_avg_gbit_s=0.07 * 0.008388608, msg_rate_mpps=0.009123)
    assert recomputed(run, row) == {"bw_avg_gbit_s_recomputed": pytest.approx(0.009123 * 8 * 8 / 1000)}


def test_a_message_rate_of_few_digits_tells_nothing() -> None:
    """1 MiB at 0.000012 million a second: the average of 12.58 is finer than a rate of two digits."""
    run = Run(tool="perftest", kind="bandwidth", status="complete", line=1, unit_printed="MB/sec")
    assert recomputed(run, Sample(5, 2**20, bw_avg_gbit_s=12.58 * 0.008388608, msg_rate_mpps=0.000013)) == {}


def paths() -> list[Path]:
    folders = [FIXTURES, EXAMPLES, *([Path(os.environ["RDMALAB_CORPUS"])] if "RDMALAB_CORPUS" in os.environ else [])]
    return [p for folder in folders for p in sorted(folder.rglob("*")) if p.is_file() and "fleet" not in p.parts]


def test_function_and_views_agree_on_every_log(bench: Bench) -> None:
    """The rule stands in Python and in SQL: the same values, to the last digits, for every sample there is."""
    bench.ingest(*paths())
    stored = {
        (log, ordinal, at): values
        for log, ordinal, at, *values in bench.rows(
            f"""SELECT r.log_id, r.ordinal AS run, s.ordinal, {", ".join(NAMES)}
                FROM samples s JOIN raw.runs r USING (run_id)"""
        )
    }
    log_of = dict(bench.rows("SELECT sha256, log_id FROM logs"))
    checked = told = 0
    for path in paths():
        for text in sources.texts(path):
            log = formats.read(text) if isinstance(text, Text) else None
            for ordinal, run in enumerate(log.runs if log else ()):
                for at, row in enumerate(run.samples):
                    found = recomputed(run, row)
                    values = zip(NAMES, stored[log_of[text.sha256], ordinal, at], strict=True)
                    assert found == pytest.approx({n: v for n, v in values if v is not None}, rel=1e-9), (path, row)
                    checked, told = checked + 1, told + len(found)
    assert checked >= len(stored) > 500
    assert told > 500
