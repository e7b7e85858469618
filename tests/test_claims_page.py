"""The report on claims: every claim with its numbers, what runs say, and what closes the open ones."""

import re
from pathlib import Path

import pytest

from rdmalab.claims import closing, judge, load
from rdmalab.ingest import ingest
from rdmalab.lab import Lab
from rdmalab.pages.claims_audit import ClaimsAudit
from rdmalab.store import Store

ROOT = Path(__file__).parents[1]
SYNTHETIC = ROOT / "data" / "examples" / "synthetic"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    db = tmp_path_factory.mktemp("db") / "store.duckdb"
    ingest([SYNTHETIC], Store(db))
    return Lab(db)


def page(lab: Lab, path: Path, lang: str = "en") -> ClaimsAudit:
    document = load(path)
    return ClaimsAudit(lab, document, judge(document, lab), lang)


def text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_the_verdict_counts_what_is_consistent_refuted_and_open(lab: Lab) -> None:
    """One holds by arithmetic, one is refuted by runs, two need a log by their text alone."""
    shown = page(lab, SYNTHETIC / "claims.toml")
    assert shown.verdict() == ["1 of 3 claims is consistent", "1 is refuted by runs", "2 need a log"]
    assert "Refuted synthetic-2: the same collective reaches 90 GB/s on NDR400; 47.4 [47.1, 47.6] GB/s, 7 runs" in text(
        shown.cover().html
    )


def test_every_claim_has_its_row_and_runs_their_interval(lab: Lab) -> None:
    """Three rows; the interval of 7 runs under the verdict."""
    rows = text(page(lab, SYNTHETIC / "claims.toml").claims().html)
    for id_, interval in (
        ("synthetic-1", "11.43 [11.37, 11.62] GB/s, 7 runs"), ("synthetic-3", "1.04 [0.99, 1.16] x, 7 runs"),
    ):  # fmt: skip
        assert id_ in rows
        assert interval in rows


def test_an_open_claim_names_the_command_that_closes_it(lab: Lab) -> None:
    """Settled ones are not listed; the inconclusive ratio asks for more runs of the same test."""
    shown = text(page(lab, SYNTHETIC / "claims.toml").open().html)
    assert "1 of 3 claims are open" in shown
    assert "synthetic-1" not in shown
    assert "NCCL_DEBUG=INFO mpirun -np 2 -N 1 all_reduce_perf -b 1GiB -e 1GiB -f 2 -g 8" in shown


def test_the_evidence_is_the_runs_with_their_logs(lab: Lab) -> None:
    """21 runs of three fabrics, each with the claims that it stands behind; no path above the campaign."""
    shown = text(page(lab, SYNTHETIC / "claims.toml").evidence().html)
    assert "21 runs stand behind the verdicts of runs" in shown
    assert "roce-100g/nccl/all_reduce.1.log" in shown
    assert "synthetic-1, synthetic-3" in shown
    assert str(ROOT) not in shown


@pytest.mark.parametrize("path", sorted((ROOT / "data" / "claims").glob("*.toml")), ids=lambda p: p.stem)
def test_every_shipped_document_has_its_report_in_both_languages(lab: Lab, path: Path) -> None:
    """Every id stands in the table; every open claim has a record that closes it; no hole in any sentence."""
    document = load(path)
    for lang in ("en", "zh"):
        shown = page(lab, path, lang)
        blocks = [
            shown.cover(), shown.summary(), shown.claims(), shown.contradictions(), shown.open(), shown.evidence(),
            shown.method(),
        ]  # fmt: skip
        whole = text("".join(b.html for b in blocks))
        assert all(c.id in whole for c in document.claims)
        assert "None" not in whole
        assert not re.search(r"\{[a-z_]+\}", whole)
    kinds = {closing(c).kind for c in document.claims}
    assert kinds


def test_the_chinese_report_has_chinese_titles(lab: Lab) -> None:
    """Verdict, headings and verdict words."""
    shown = page(lab, SYNTHETIC / "claims.toml", "zh")
    assert shown.verdict() == ["3条声明中1条一致", "1条被运行否定", "2条需要日志"]
    assert "无日志无法核实" in shown.claims().html
