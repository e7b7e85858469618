"""The report on node pairs says what the pairs say, in both languages."""

from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rdmalab.cli import main
from rdmalab.display import Block
from rdmalab.pages.pairs import PairsReport
from rdmalab.pairs import Failure, Pairs, Survey

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"


def pairs_of(speed: dict[str, float], **more: Any) -> Pairs:
    """Pairs of an all_reduce, each as fast as its slower host."""
    directed = more.get("directed", False)
    names = (permutations if directed else combinations)(sorted(speed), 2)
    facts: dict[str, Any] = {
        "fabric": "f", "test": "all_reduce", "dtype": "float", "ranks": 16, "placement": "out_of_place",
        "size_bytes": 1 << 30, "hosts": tuple(sorted(speed)), "runs": 10,
        "values": {(a, b): min(speed[a], speed[b]) for a, b in names},
    }  # fmt: skip
    return Pairs(**facts | more)


def report(*measurements: Pairs, lang: str = "en") -> PairsReport:
    head = {"campaign": "c", "title": "", "customer": None, "synthetic": False, "notes": []}
    return PairsReport(
        Survey(campaign=head, labels={"f": "RoCEv2"}, measurements=measurements, snapshot="0" * 64), lang
    )


def text_of(*blocks: Block) -> str:
    return "\n".join(b.html for b in blocks).replace("\u00a0", " ").replace("\u2060", "")


SAME = dict.fromkeys("abcdef", 9.0)


@pytest.mark.parametrize(
    ("measurement", "verdict"),
    [
        (pairs_of(SAME), ["No host stands out among 6"]),
        (pairs_of(SAME | {"f": 8.1}), ["f is 10.0\u00a0% slower than the others"]),
        (pairs_of(SAME | {"e": 8.1, "f": 4.5}), ["f and e are 10.0 to 50.0\u00a0% slower than the others"]),
        (
            pairs_of(dict.fromkeys("abcdefghijk", 9.0) | dict.fromkeys("wxyz", 4.5)),
            ["4 of 15 hosts are 50.0 to 50.0\u00a0% slower than the others"],
        ),
        (
            pairs_of(SAME | {"f": 8.1}, directed=True),
            ["f is up to 10.0\u00a0% slower than the others, as sender and as receiver"],
        ),
    ],
)
def test_the_verdict_names_host_number_and_role(measurement: Pairs, verdict: list[str]) -> None:
    """One slow host by name, several by name with a range, many by their count."""
    assert report(measurement).verdict == verdict


def test_a_slow_pair_and_a_failed_one_are_further_clauses() -> None:
    """9 everywhere but 4 between a and b, and c to d that failed."""
    m = pairs_of(SAME)
    values = m.values | {("a", "b"): 4.0}
    del values["c", "d"]
    failure = Failure(pair=("c", "d"), reason="failed", run_id="r", path="/logs/c-d.log", line=7)
    page = report(replace(m, values=values, failures=(failure,)))
    assert page.verdict == [
        "No host stands out among 6,",
        "the pair a\u00a0–\u00a0b is slow although both hosts are not,",
        "one pair gave no result",
    ]
    gaps = text_of(page.gaps())
    assert "0 pairs were not measured, 1 runs gave no result" in gaps
    assert "the benchmark failed" in gaps
    assert "c-d.log" in gaps
    assert "/logs" not in gaps


def test_missing_pairs_are_listed() -> None:
    """Not measured is neither failed nor 0."""
    m = pairs_of(SAME)
    page = report(replace(m, values={k: v for k, v in m.values.items() if k != ("a", "f")}))
    assert "a – f" in text_of(page.gaps())
    assert "1 pairs were not measured." in text_of(*page.matrices())
    assert text_of(report(m).gaps()) == ""


def test_hosts_that_are_fast_with_each_other_point_to_the_path() -> None:
    """x and y reach each other at 9 and everybody else at 8."""
    m = pairs_of(SAME | {"x": 8.0, "y": 8.0})
    page = report(replace(m, values=m.values | {("x", "y"): 9.0}))
    assert "Not slow: x – y. This points to the path" in text_of(page.cover())
    assert "slow, except with y" in text_of(page.hosts())


def test_above_sixteen_hosts_the_matrix_has_no_numbers() -> None:
    """17 hosts: colours, medians and the five slowest pairs."""
    page = report(pairs_of({f"h{i:02d}": 9.0 for i in range(16)} | {"h16": 6.0}))
    (block,) = page.matrices()
    matrix = block.figures[0].data[0]  # type: ignore[attr-defined]
    assert {t for row in matrix.text for t in row} <= {"", "–"}
    assert len(block.figures[0].layout.annotations) == 17  # type: ignore[attr-defined]
    assert text_of(block).count("has a slow host: h16") == 5


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_example_report(lang: str, tmp_path: Path) -> None:
    """Logs to HTML: the planted node and no other one, by the notebook that ships."""
    db = str(tmp_path / "lab.duckdb")
    run = CliRunner().invoke
    assert run(main, ["ingest", str(EXAMPLES / "synthetic-pairs"), "--db", db]).exit_code == 0
    done = run(main, ["report", "pairs", "--to", "html", "--lang", lang, "--out", str(tmp_path), "--db", db])
    assert done.exit_code == 0, done.output
    said = {"en": "synthetic-node-06 is 11.9\u00a0% slower than the others", "zh": "synthetic-node-06比其他主机慢11.9%"}
    assert done.output.splitlines()[0] == said[lang]
    html = (tmp_path / "pairs.html").read_text(encoding="utf-8")
    assert "ib_write_bw.06-01.log" in html
    assert html.count({"en": "MTU 1024 instead of 4096", "zh": "MTU为1024，其余为4096"}[lang]) == 1
    table = run(main, ["pairs", "--db", db, "--format", "csv"]).output.splitlines()
    assert len(table) == 1 + 28 + 28 + 56
    assert run(main, ["curves", "--db", db]).exit_code == 0
