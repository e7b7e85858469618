"""What stands out beside the ratios is said where it is known, and only there."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.cli import main
from rdmalab.compare import FASTER
from rdmalab.findings import findings
from rdmalab.lab import Lab
from rdmalab.pages.fabric_comparison import FabricComparison
from rdmalab.wording import Words
from tests._comparisons import LATENCY, SEVEN, around, campaign, comparison, iperf3, lab_of, nccl, runs_of, write_bw

SIZES = tuple(8 << n for n in range(6))


def lab(tmp_path: Path, factors: dict[int, float], logs: dict[str, str] | None = None) -> Lab:
    """TCP at 100 us per size; RoCE at *factors* of it, seven runs of +-0.6 % each."""
    made = {
        f"{f}/{i}.log": nccl(
            {s: 100 * (factors[s] if f == "roce" else 1.0) * SEVEN[i] for s in factors}, pid=1000 * k + 100 * i + 1
        )
        for k, f in enumerate(("tcp", "roce"))
        for i in range(7)
    }
    return lab_of(tmp_path, made | (logs or {}), campaign("tcp", "roce"))


def said(lab: Lab, lang: str = "en") -> dict[str, list[str]]:
    c = lab.compare()
    return {head: [s.replace("\xa0", " ") for s in texts] for head, texts in Words(c, lang).findings(findings(lab, c))}


def test_the_size_from_which_a_fabric_wins(tmp_path: Path) -> None:
    """Slower up to 32 B, half the time from 64 B on."""
    factors = {s: 2.0 if s <= 32 else 0.5 for s in SIZES}
    texts = said(lab(tmp_path, factors))["Where a fabric wins"]
    assert texts[0] == "All-reduce, out of place: ROCE is faster than TCP from 64 B on."


def test_faster_everywhere_is_said_so_and_one_size_is_no_range(tmp_path: Path) -> None:
    """Half the time at all six; and a win at the last size alone is none."""
    texts = said(lab(tmp_path, dict.fromkeys(SIZES, 0.5)))["Where a fabric wins"]
    assert texts[0] == "All-reduce, out of place: ROCE is faster than TCP at every compared size."
    factors = {s: 0.5 if s == SIZES[-1] else 2.0 for s in SIZES}
    assert "Where a fabric wins" not in said(lab(tmp_path / "one", factors))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.5, 0.9, 1.0, 1.001, 1.1, 2.0]), min_size=2, max_size=8))
def test_a_win_never_contradicts_the_table(factors: list[float]) -> None:
    """At the size it names and at every larger one the cell says faster."""
    from rdmalab.findings import _wins

    values = {("a", 8 << i): around(100) for i in range(len(factors))}
    values |= {("b", 8 << i): around(100 * f) for i, f in enumerate(factors)}
    table = comparison((LATENCY, values)).headline
    wins = {w.fabric: w for w in _wins(table)}
    cells = [x for x in table.of("b") if x.ratio]
    if "b" in wins:
        assert all(x.verdict == FASTER for x in cells if (x.size_bytes or 0) >= wins["b"].size_bytes)
        assert wins["b"].everywhere == all(x.verdict == FASTER for x in cells)
    else:
        assert not all(x.verdict == FASTER for x in cells[-2:])


def test_a_dip_is_named_by_its_size(tmp_path: Path) -> None:
    """Bandwidth doubles with the size but for 64 B, where the time doubles: half of it is missing there."""
    factors = {s: 2.0 if s == 64 else 1.0 for s in SIZES}
    texts = said(lab(tmp_path, factors))["Dips and steps"]
    assert texts[0] == (
        "All-reduce, out of place, ROCE: at 64 B 50 % of the bandwidth between its neighbours is missing, in 7 of 7 "
        "runs."
    )


def test_an_odd_run_is_named_with_its_log_and_stays_in(tmp_path: Path) -> None:
    """One run of eight at 1.5 times the time at every size."""
    odd = {"roce/odd.log": nccl(dict.fromkeys(SIZES, 150.0), pid=91)}
    texts = said(lab(tmp_path, dict.fromkeys(SIZES, 1.0), odd))["Runs that stand out"]
    assert texts == [
        f"roce/odd.log, line 25: 6 of 6 sizes of All-reduce, {place} lie more than 3.5 robust deviations and 2 % from "
        "the median of ROCE; it is not left out."
        for place in ("out of place", "in place")
    ]


def test_what_more_runs_would_decide(tmp_path: Path) -> None:
    """0.3 % apart with a scatter of 0.6 %: not shown with 7 runs, and a number of runs that would."""
    texts = said(lab(tmp_path, dict.fromkeys(SIZES, 0.997)))["What more runs would decide"]
    assert texts[0].startswith("All-reduce, out of place at 8 B, ROCE against TCP: about ")
    assert int(texts[0].split("about ")[1].split()[0]) > 7


def test_nothing_is_said_where_nothing_stands_out(tmp_path: Path) -> None:
    """Equal fabrics on a smooth curve have no section, in the page nor in the terminal."""
    equal = lab_of(tmp_path, runs_of("tcp", 1.0) | runs_of("roce", 1.0), campaign("tcp", "roce"))
    c = equal.compare()
    assert said(equal) == {}
    assert FabricComparison(c).findings(findings(equal, c)).html == ""


def test_unlike_tests_that_are_declared_the_same_have_no_curve(tmp_path: Path) -> None:
    """iperf3 against ib_write_bw at one size: no dip, no odd run, and no error."""
    same = '[[same]]\nmeasures = "bandwidth"\ntests = ["ib_write_bw", "iperf3"]\nsize_bytes = 65536\n'
    logs = {f"tcp/{i}.json": iperf3(50 + i / 100, cookie=f"c{i}") for i in range(7)}
    logs |= {f"roce/{i}.log": write_bw({65536: 96 + i / 100}, qpn=300 + i) for i in range(7)}
    assert said(lab_of(tmp_path, logs, campaign("tcp", "roce", more=same))) == {}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_and_the_terminal_say_the_same(tmp_path: Path, lang: str) -> None:
    """The section of the report holds every sentence; so does ``rdmalab compare``."""
    found = lab(tmp_path, {s: 2.0 if s <= 32 else 0.5 for s in SIZES})
    c = found.compare()
    html = FabricComparison(c, lang).findings(findings(found, c)).html
    for texts in said(found, lang).values():
        assert all(text in html.replace("\xa0", " ").replace("&nbsp;", " ") for text in texts)
    if lang == "en":
        done = CliRunner().invoke(main, ["compare", "--db", str(found.store.path)])
        assert "All-reduce, out of place: ROCE is faster than TCP from 64 B on." in done.output


def test_the_lines_that_prove_the_transport_are_quoted() -> None:
    """One line a fabric and transport of the synthetic campaign; the run that fell back is among them."""
    import tempfile

    from rdmalab.ingest import ingest
    from rdmalab.store import Store

    root = Path(__file__).parents[1] / "data" / "examples" / "synthetic"
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "s.duckdb")
        ingest([root], store)
        lab = Lab(store.path)
        c = lab.compare()
        page = FabricComparison(c).findings(findings(lab, c)).html
    found = {(p.fabric, p.transport): p for p in c.proofs}
    assert set(found) == {
        ("tcp-100g", "socket"), ("roce-100g", "roce"), ("roce-100g", "socket"), ("infiniband-ndr400", "ib"),
    }  # fmt: skip
    assert found["roce-100g", "socket"].runs == 1
    proof = found["infiniband-ndr400", "ib"]
    lines = Path(proof.path).read_text(encoding="utf-8").splitlines()
    assert lines[proof.line - 1].strip() == proof.text
    assert "via NET/IB" in proof.text
    assert proof.text.split(" -> ")[1][:20].replace("[", "[") in page
