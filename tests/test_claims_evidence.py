"""What runs say of a claim: only runs that match, an interval from six on, and never synthetic ones by accident."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rdmalab.claims import ClaimsError, judge, load
from rdmalab.cli import main
from rdmalab.ingest import ingest
from rdmalab.lab import Lab
from rdmalab.store import Store
from tests._comparisons import campaign, lab_of, latency, runs_of, write_bw

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
MIB = 1 << 20
SYSTEM = 'system = { gpu = "H100-SXM5-80G", domains = 2, gpus_per_domain = 8 }\n'
# runs_of: 20 us + size / 1e4 bytes per us; at 1 MiB 124.86 us on RoCE, twice that on TCP, seven runs of +-0.6 %
BUSBW = 'metric = "busbw(op=all_reduce, size_min=1MiB)"\nunit = "GB/s"\n'


def document(claims: str, source: str = "") -> str:
    """A claims file; each claim is measured."""
    return f'schema = "rdmalab.claims/1"\n[source]\nid = "t"\n{source}' + claims


def claim(name: str, expectation: str, metric: str, *, family: str = "roce2", more: str = SYSTEM) -> str:
    fabric = f'fabric = {{ family = "{family}" }}\n' if family else ""
    return f'[[claim]]\nid = "{name}"\nkind = "measured"\ntext = "{name}"\n{more}{fabric}{metric}{expectation}\n'


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """RoCE twice as fast as TCP, seven runs each; five runs of InfiniBand; latencies and bandwidths of RoCE."""
    logs = runs_of("tcp", 2.0) | runs_of("roce", 1.0) | runs_of("infiniband", 0.5, runs=5)
    logs |= {f"roce/lat.{i}.log": latency({8: 2.0 + i / 100}, qpn=100 + i) for i in range(7)}
    return lab_of(tmp_path, logs, campaign("tcp", "roce", "infiniband"))


def found(lab: Lab, tmp_path: Path, text: str, source: str = "") -> list[dict[str, Any]]:
    """The evidence of every claim."""
    path = tmp_path / "claims.toml"
    path.write_text(document(text, source), encoding="utf-8")
    return [dict(j.evidence) for j in judge(load(path), lab)]


def test_an_interval_inside_apart_and_across(lab: Lab, tmp_path: Path) -> None:
    """busbw at 1 MiB is 1.875 x 1048576 / 124.86 us = 15.75 GB/s, [15.65, 15.84]: seven runs of +-0.6 %."""
    evidence = found(
        lab, tmp_path,
        claim("in", "range = [15, 16.5]", BUSBW) + claim("apart", "at_least = 20", BUSBW)
        + claim("across", "at_least = 15.75\ntolerance = { abs = 0 }", BUSBW),
    )  # fmt: skip
    assert [e["verdict"] for e in evidence] == ["confirmed", "refuted", "inconclusive"]
    assert {(e["n"], round(e["median"], 2), round(e["low"], 2), round(e["high"], 2)) for e in evidence} == {
        (7, 15.75, 15.65, 15.84)
    }


def test_runs_that_are_something_else_do_not_count(lab: Lab, tmp_path: Path) -> None:
    """Another GPU, other domains, another fabric: each is named with the number of runs that differ first in it."""
    evidence = found(
        lab, tmp_path,
        claim("gpu", "value = 1", BUSBW, more=SYSTEM.replace("H100-SXM5-80G", "A100-SXM4-80G"))
        + claim("nodes", "value = 1", BUSBW, more=SYSTEM.replace("domains = 2", "domains = 4"))
        + claim("fabric", "value = 1", BUSBW, family="efa"),
    )  # fmt: skip
    assert [e["verdict"] for e in evidence] == ["no evidence"] * 3
    assert [e["because"] for e in evidence] == ["no run matches, 6 are needed"] * 3
    assert [e["not_comparable"] for e in evidence] == [
        {"fabric family": 12, "GPU": 7}, {"fabric family": 12, "ranks": 7}, {"fabric family": 19},
    ]  # fmt: skip


def test_five_runs_prove_nothing(lab: Lab, tmp_path: Path) -> None:
    """Below six, or below what the claim asks for, there is no verdict."""
    (few,) = found(lab, tmp_path, claim("five", "at_least = 1", BUSBW, family="infiniband"))
    assert (few["verdict"], few["because"], few["n"]) == ("no evidence", "5 runs match, 6 are needed", 5)
    (more,) = found(lab, tmp_path, claim("eight", "at_least = 1", BUSBW + "evidence = { min_runs = 8 }\n"))
    assert more["because"] == "7 runs match, 8 are needed"


def test_a_ratio_of_two_fabrics_and_what_is_made_of_it(lab: Lab, tmp_path: Path) -> None:
    """Twice the busbw: a ratio of 2, a gain of 100 %; half the time: a reduction of 50 %."""
    base = 'baseline = { fabric = { family = "tcp" } }\n'
    evidence = found(
        lab, tmp_path,
        claim("r", "range = [1.9, 2.1]", 'metric = "ratio(busbw(op=all_reduce, size_min=1MiB))"\nunit = "x"\n' + base)
        + claim("g", "at_least = 150", 'metric = "gain(busbw(op=all_reduce, size_min=1MiB))"\nunit = "%"\n' + base)
        + claim("d", "value = 50", 'metric = "reduction(latency(op=all_reduce, size=1MiB))"\nunit = "%"\n' + base),
    )  # fmt: skip
    assert [(e["verdict"], round(e["median"])) for e in evidence] == [
        ("confirmed", 2), ("refuted", 100), ("confirmed", 50),
    ]  # fmt: skip


def test_point_to_point_claims_keep_their_convention(lab: Lab, tmp_path: Path) -> None:
    """2.03 us one way; the round trip was not measured."""
    metric = 'metric = "latency(tool=ib_write_lat, verb=write, size=8)"\nunit = "us"\n'
    evidence = found(
        lab, tmp_path,
        claim("one", "at_most = 2.1", metric, more="")
        + claim("trip", "at_most = 5", metric + 'convention = { latency = "round-trip" }\n', more=""),
    )  # fmt: skip
    assert [(e["verdict"], e.get("median")) for e in evidence] == [("confirmed", 2.03), ("no evidence", None)]


def test_bandwidth_in_bits_and_in_one_direction(tmp_path: Path) -> None:
    """96 Gb/s are 12 GB/s."""
    logs = {f"roce/w.{i}.log": write_bw({65536: 96.0 + i / 100}, qpn=300 + i) for i in range(7)}
    lab = lab_of(tmp_path, logs, campaign("roce"))
    metric = 'metric = "bw(tool=ib_write_bw, verb=write, size=64KiB)"\nunit = "GB/s"\n'
    (evidence,) = found(lab, tmp_path, claim("bits", "range = [11.9, 12.1]", metric, more=""))
    assert (evidence["verdict"], round(evidence["median"], 3)) == ("confirmed", 12.004)


def test_a_claim_that_states_nothing_matches_nothing(lab: Lab, tmp_path: Path) -> None:
    """Any run would do; and what no benchmark measures has no runs."""
    stall = 'metric = "stall(event=link_down)"\nunit = "ms"\n'
    evidence = found(
        lab, tmp_path,
        claim("bare", "at_least = 1", BUSBW, family="", more="") + claim("stall", "range = [14, 16]", stall),
    )  # fmt: skip
    assert [e["because"] for e in evidence] == [
        "the claim states neither system nor fabric, so that any run would match",
        "no run of a benchmark measures stall",
    ]


def test_where_narrows_and_an_attribute_that_runs_do_not_have_is_named(lab: Lab, tmp_path: Path) -> None:
    """``where`` takes a value or a list; quotes in it are no SQL."""
    evidence = found(
        lab, tmp_path,
        claim("f", "at_least = 15", BUSBW + 'evidence = { where = { fabric = ["roce", "x"] } }\n')
        + claim("q", "at_least = 15", BUSBW + "evidence = { where = { fabric = \"o'neill\" } }\n")
        + claim("e", "at_least = 15", BUSBW + 'evidence = { where = { event = "x" } }\n'),
    )  # fmt: skip
    assert [e["verdict"] for e in evidence] == ["confirmed", "no evidence", "no evidence"]
    assert evidence[2]["because"] == "runs have no attribute 'event'"


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("db") / "store.duckdb"
    ingest([EXAMPLES / "synthetic"], Store(db))
    return db


def rows(*words: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["claims", *words, "--json"])
    assert done.exit_code in (0, 1), done.output
    return [json.loads(line) for line in done.output.splitlines()]


def test_three_claims_change_with_the_synthetic_campaign(
    synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From no evidence to confirmed, refuted and inconclusive; each number comes back from ``rdmalab query``."""
    file = str(EXAMPLES / "synthetic" / "claims.toml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RDMALAB_DB", raising=False)
    assert {r["evidence_verdict"] for r in rows(file)} == {"no evidence"}
    judged = rows(file, "--db", str(synthetic))
    assert [r["evidence_verdict"] for r in judged] == ["confirmed", "refuted", "inconclusive"]
    for row in judged:
        asked = CliRunner().invoke(
            main, ["query", row["evidence"]["query"], "--format", "json", "--db", str(synthetic)]
        )
        (numbers,) = json.loads(asked.output)
        middle = numbers.get("median", numbers.get("ratio"))
        assert (middle, numbers["low"], numbers["high"]) == pytest.approx(
            tuple(row["evidence"][k] for k in ("median", "low", "high"))
        )


def test_synthetic_runs_are_no_evidence_for_real_claims(synthetic: Path, tmp_path: Path) -> None:
    """The same claims without ``synthetic = true`` find no run."""
    text = (EXAMPLES / "synthetic" / "claims.toml").read_text(encoding="utf-8")
    bare = tmp_path / "claims.toml"
    bare.write_text(text.replace("synthetic = true\n", ""), encoding="utf-8")
    judged = rows(str(bare), "--db", str(synthetic))
    assert {r["evidence_verdict"] for r in judged} == {"no evidence"}
    assert judged[0]["evidence"]["not_comparable"]["synthetic"] == 21


def test_a_refuted_claim_makes_the_command_fail(synthetic: Path) -> None:
    """Exit 1, and the terminal shows the interval under the verdict."""
    done = CliRunner().invoke(main, ["claims", str(EXAMPLES / "synthetic" / "claims.toml"), "--db", str(synthetic)])
    assert done.exit_code == 1
    assert "refuted                    47.43 [47.11, 47.64] GB/s in 7 runs" in done.output
    assert "3 claims: 1 confirmed, 1 refuted, 1 inconclusive" in done.output


def test_synthetic_wants_true_or_false(tmp_path: Path) -> None:
    """A word is refused with its line."""
    path = tmp_path / "claims.toml"
    path.write_text(document(claim("a", "value = 1", BUSBW), 'synthetic = "yes"\n'), encoding="utf-8")
    with pytest.raises(ClaimsError, match=r"claims.toml:4: synthetic wants true or false"):
        load(path)
