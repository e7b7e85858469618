"""A sentence of a vendor gets the verdict that arithmetic, physics and facts allow, and no other."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdmalab.claims import CHECKS, VERDICTS, Claim, ClaimsError, Document, Judgement, audit, load
from rdmalab.expression import evaluate
from rdmalab.limits import table

FILES = sorted((Path(__file__).parents[1] / "data" / "claims").glob("*.toml"))
HEAD = 'schema = "rdmalab.claims/1"\n[source]\nid = "test"\n'
RULED = ("physically impossible", "arithmetically wrong", "unit-confused")
# Where the checks and the person who audited by hand differ, and why.
SOFTER = "no check decides it: a person weighed the sentence, the checks have no number or fact for it"
RECALLED = "the fact is recalled, not read in a source, and reaches implausible at most"
DIFFERENCES = {
    "000-05": "the share it rests on is a lower bound, so twice as fast is not excluded",
    "002-05": RECALLED, "002-27": RECALLED, "004-147": RECALLED,
    "000-07": SOFTER, "004-006": "slower than public runs shows a slow network, not an error",
    "004-020": "slower than public tests stays open", "004-028": SOFTER, "004-035": SOFTER,
    "004-040": "as for every rate above one slot: implausible until a second slot is stated",
    "004-043": SOFTER, "004-055": "the difference is inside the rounding of the four latencies", "004-062": SOFTER,
    "004-070": SOFTER, "004-081": SOFTER, "004-083": SOFTER, "004-088": SOFTER, "004-092": SOFTER, "004-094": SOFTER,
    "004-106": SOFTER, "004-118": SOFTER, "004-123": SOFTER, "004-152": SOFTER,
    "004-157": "its scope is as unstated as that of its neighbours, which the person did mark",
    "004-168": "a rule read in the source decides it", "004-175": SOFTER, "004-176": SOFTER, "004-177": SOFTER,
    "004-182": SOFTER,
}  # fmt: skip

IMPOSSIBLE = """
[[claim]]
id = "scale-up"
kind = "measured"
text = "all-reduce in one host reaches 600 GB/s"
system = { gpu = "A100-SXM4-80G", domains = 1, gpus_per_domain = 8 }
fabric = { family = "nvlink", gen = 3 }
metric = "busbw(op=all_reduce, size_min=1GiB)"
value = 600
unit = "GB/s"
"""
ACROSS = """
[[claim]]
id = "across"
kind = "measured"
text = "all-reduce of two hosts gives 22.8 GB/s"
system = { gpu = "A100-SXM4-80G", domains = 2, gpus_per_domain = 8, nic_ports = 1 }
fabric = { family = "infiniband", rate_gbps = 400 }
metric = "busbw(op=all_reduce, size_min=1GiB)"
as_printed = "22.8"
unit = "GB/s"
evidence = { where = { tool = "nccl-tests", op = "all_reduce" } }
"""
LOSS = """
[[claim]]
id = "loss"
kind = "derived"
text = "RoCE loses 27 % of communication performance"
metric = "reduction(rate(comm_time()))"
baseline = "ib"
value = 27
unit = "%"
tolerance = { points = 1 }
derive = "(1 - {ib} / {roce}) * 100"
[[claim]]
id = "roce"
kind = "measured"
text = "communication takes 12 ms"
metric = "comm_time()"
value = 12
unit = "ms"
[[claim]]
id = "ib"
kind = "measured"
text = "communication takes 6 ms"
metric = "comm_time()"
value = 6
unit = "ms"
"""
RATIO = """
[[claim]]
id = "ratio"
kind = "derived"
text = "NVLink 4 has 18 times the bandwidth of NDR"
metric = "ratio(fact(gpus, H100-SXM5-80G, scaleup_per_direction_GBps), \
fact(links, infiniband/NDR/4, data_GBps_per_direction))"
value = 18
unit = "x"
"""
STALL = """
[[claim]]
id = "stall"
kind = "measured"
text = "a failed link is replaced in 14 to 16 ms"
metric = "stall(event=link_down)"
range = [14, 16]
unit = "ms"
evidence = { where = { event = "link_down" }, min_runs = 6 }
"""
ADVICE = """
[[claim]]
id = "advice"
kind = "advice"
text = "NCCL_NET must be set"
setting = { NCCL_NET = ["IB", "Socket"] }
asserts = "nccl.net.default == Socket"
"""


@cache
def _shipped() -> tuple[tuple[Document, Judgement], ...]:
    return tuple((d, j) for d in map(load, FILES) for j in audit(d))


def _read(tmp_path: Path, text: str, head: str = HEAD) -> Document:
    path = tmp_path / "claims.toml"
    path.write_text(head + text, encoding="utf-8")
    return load(path)


def _verdicts(tmp_path: Path, text: str) -> dict[str, str]:
    return {j.claim.id: j.verdict for j in audit(_read(tmp_path, text))}


def _again(document: Document, claim: Claim) -> str:
    """The verdict of a document in which one claim says something else."""
    claims = tuple(claim if c.id == claim.id else c for c in document.claims)
    return next(j.verdict for j in audit(replace(document, claims=claims)) if j.claim.id == claim.id)


def test_five_documents_are_shipped() -> None:
    """Every claim of the five documents is there once, with its text and its place."""
    assert len(FILES) == 5
    ids = [j.claim.id for _, j in _shipped()]
    assert len(ids) == len(set(ids)) == 273
    assert all(j.claim.text and j.claim.where for _, j in _shipped())


def test_every_formula_has_its_computed_value() -> None:
    """Formulas beside the claims evaluate to what is written beside them."""
    formulas = [j.claim for _, j in _shipped() if j.claim.formula]
    assert len(formulas) == 137
    for claim in formulas:
        assert evaluate(claim.formula) == pytest.approx(claim.computed, rel=1e-5), claim.id


def test_verdicts_are_those_of_the_hand_audit() -> None:
    """Impossible, wrong, unit-confused and settled claims agree with the person; the rest differs where listed."""
    differ = {
        j.claim.id: (j.verdict, j.claim.audit["verdict"])
        for _, j in _shipped()
        if j.claim.audit and j.verdict != j.claim.audit["verdict"]
    }
    assert differ.keys() == DIFFERENCES.keys()
    assert not [i for i, (_, hand) in differ.items() if hand in (*RULED, "consistent")]
    harsher = {i for i, (ours, hand) in differ.items() if VERDICTS.index(ours) < VERDICTS.index(hand)}
    assert harsher == {"004-040", "004-157", "004-168"}


def _settled() -> list[Any]:
    found = [(d, j) for d, j in _shipped() if j.verdict in (*RULED, "consistent")]
    return [pytest.param(d, j, id=j.claim.id) for d, j in found]


@pytest.mark.parametrize(("document", "judgement"), _settled())
def test_a_moved_number_moves_the_verdict(document: Document, judgement: Judgement) -> None:
    """No verdict hangs on the identity of a claim: another number, or another word, gets another verdict."""
    claim = judgement.claim
    if claim.asserts:
        name, sign, word = claim.asserts
        other = {"==": "!=", "<=": ">", ">=": "<"}[sign]
        moved = [replace(claim, asserts=(name, other, word))]
    else:
        low, high = claim.low or 0.0, claim.high or 0.0
        scales = (0.01, 0.05, 0.1, 0.3, 0.5, 0.6, 0.75, 1.5, 2.2, 3, 5, 8, 15, 30, 100)
        moved = [replace(claim, low=low * f, high=high * f, slack=claim.slack * f) for f in scales]
        truth = (judgement.decisive.computed if judgement.decisive else None) or 0.0
        moved += [replace(claim, low=v, high=v) for v in (low + 50, truth) if math.isfinite(v)]
    assert any(_again(document, claim) != judgement.verdict for claim in moved)


@pytest.mark.parametrize(("document", "judgement"), _settled())
def test_the_ruling_of_a_person_decides_nothing(document: Document, judgement: Judgement) -> None:
    """Without ``audit``, and under another id, the verdict is the same."""
    bare = tuple(replace(c, audit={}) for c in document.claims)
    again = {j.claim.id: j.verdict for j in audit(replace(document, claims=bare))}
    assert again[judgement.claim.id] == judgement.verdict


def test_no_rule_names_a_claim() -> None:
    """The code of the checks holds no id of a claim."""
    source = "".join(
        p.read_text(encoding="utf-8") for p in (Path(__file__).parents[1] / "rdmalab" / "claims").glob("*.py")
    )
    assert not [j.claim.id for _, j in _shipped() if j.claim.id in source]


def test_facts_have_their_source() -> None:
    """Every packaged fact says what it rests on, and how well."""
    rows = table("facts")
    assert len({row["name"] for row in rows}) == len(rows)
    assert all(row["value"] and row["says"] and row["source"] and row["flag"] in ("V", "D", "R") for row in rows)


def test_worked_examples(tmp_path: Path) -> None:
    """The examples of the format get their verdicts."""
    verdicts = _verdicts(tmp_path, IMPOSSIBLE + ACROSS + LOSS + RATIO + STALL + ADVICE)
    assert verdicts == {
        "scale-up": "physically impossible", "across": "misleading", "loss": "arithmetically wrong",
        "roce": "unverifiable without a log", "ib": "unverifiable without a log", "ratio": "unit-confused",
        "stall": "unverifiable without a log", "advice": "contradicted by spec",
    }  # fmt: skip


def test_a_missing_port_count_is_asked_for(tmp_path: Path) -> None:
    """Without the ports nothing is impossible, whatever the number, and the row names the field."""
    text = ACROSS.replace(", nic_ports = 1", "")
    for number in ("22.8", "2280"):
        (judgement,) = audit(_read(tmp_path, text.replace("22.8", number)))
        assert judgement.verdict == "unverifiable without a log"
        assert judgement.row()["missing"] == ["nic_ports"]
        assert "nic_ports" in judgement.row()["because"]


@pytest.mark.parametrize("field", ["domains = 2, ", "gpus_per_domain = 8, ", "rate_gbps = 400"])
def test_other_missing_facts_are_asked_for(tmp_path: Path, field: str) -> None:
    """Each fact that the bound needs is named when it is not there."""
    text = ACROSS.replace("22.8", "2280").replace(", " + field if field.startswith("rate") else field, "")
    (judgement,) = audit(_read(tmp_path, text))
    assert judgement.verdict == "unverifiable without a log"
    assert judgement.row()["missing"] == [field.split()[0]]


def test_the_bound_across_domains_counts_shared_traffic(tmp_path: Path) -> None:
    """Two hosts may print 1.875 times the rate of their ports, and not more."""
    assert _verdicts(tmp_path, ACROSS.replace("22.8", "92.0"))["across"] == "consistent"
    assert _verdicts(tmp_path, ACROSS.replace("22.8", "95.0"))["across"] == "physically impossible"
    unknown = ACROSS.replace("22.8", "95.0").replace("op=all_reduce, size", "op=broadcast, size")
    assert _verdicts(tmp_path, unknown)["across"] == "physically impossible"


LINK = """
[[claim]]
id = "link"
kind = "measured"
text = "one port carries 50 GB/s"
fabric = { family = "infiniband", rate_gbps = 400 }
metric = "bw(verb=write)"
value = 50
unit = "GB/s"
convention = { direction = "one" }
"""


def test_a_port_carries_its_payload_rate(tmp_path: Path) -> None:
    """Above all readings is impossible; the line rate in bits is a slip of the unit; unknown ports are asked for."""
    known = LINK + "system = { nic_ports = 1 }\n"
    assert _verdicts(tmp_path, known.replace("= 50", "= 48"))["link"] == "unverifiable without a log"
    assert _verdicts(tmp_path, known.replace("= 50", "= 60"))["link"] == "physically impossible"
    assert _verdicts(tmp_path, known.replace("= 50", "= 400"))["link"] == "unit-confused"
    assert (
        _verdicts(tmp_path, known.replace("= 50", "= 60").replace('"one"', '"unstated"'))["link"]
        != "physically impossible"
    )
    (judgement,) = audit(_read(tmp_path, LINK.replace("= 50", "= 60")))
    assert (judgement.verdict, judgement.row()["missing"]) == ("unverifiable without a log", ["nic_ports"])


def test_public_runs_inside_a_domain(tmp_path: Path) -> None:
    """Below the bound but above what anybody measured is implausible."""
    assert _verdicts(tmp_path, IMPOSSIBLE.replace("600", "290"))["scale-up"] == "implausible"
    assert _verdicts(tmp_path, IMPOSSIBLE.replace("600", "232"))["scale-up"] == "unverifiable without a log"
    hopper = IMPOSSIBLE.replace("A100-SXM4-80G", "H100-SXM5-80G")
    assert _verdicts(tmp_path, hopper.replace("600", "480"))["scale-up"] == "unverifiable without a log"
    assert _verdicts(tmp_path, hopper.replace("600", "720"))["scale-up"] == "physically impossible"
    assert _verdicts(tmp_path, IMPOSSIBLE.replace("A100-SXM4-80G", "Z9"))["scale-up"] == "unverifiable without a log"


@pytest.mark.parametrize(
    ("fabric", "metric", "value", "verdict"),
    [
        ('family = "infiniband"', "latency()", "0.3", "physically impossible"),
        ("", "latency()", "0.3", "unverifiable without a log"),
        ('family = "infiniband"', "latency(of=switch)", "0.3", "unverifiable without a log"),
        ('family = "nvlink"', "latency()", "0.3", "unverifiable without a log"),
        ('family = "infiniband"', "latency()", "1.2", "consistent"),
        ('family = "infiniband"', "latency()", "9", "unverifiable without a log"),
        ('family = "tcp"', "latency()", "0.8", "implausible"),
    ],
)
def test_a_message_crosses_an_adapter(tmp_path: Path, fabric: str, metric: str, value: str, verdict: str) -> None:
    """Below one traversal is impossible on a network that is named, and only there."""
    text = '[[claim]]\nid = "m"\nkind = "measured"\ntext = "t"\nunit = "us"\nconvention = { scope = "message" }\n'
    text += f'fabric = {{ {fabric} }}\nmetric = "{metric}"\nvalue = {value}\n'
    assert _verdicts(tmp_path, text)["m"] == verdict


def test_a_quote_is_given_per_gpu_hour() -> None:
    """A price by the month is shown by the GPU hour, and settles nothing by itself."""
    row = next(j.row() for _, j in _shipped() if j.claim.unit == "CNY/node-month" and not j.claim.derive)
    check = next(c for c in row["checks"] if c["check"] == "C8")
    assert row["verdict"] == "unverifiable without a log"
    assert check["computed"] == pytest.approx(80000 / 8 / 730)


def test_readings_are_named(tmp_path: Path) -> None:
    """A number that fits in another reading only is told apart from a wrong one, with the reading."""
    (judgement,) = audit(_read(tmp_path, RATIO))
    assert judgement.row()["reading"] == "both directions summed"
    assert (judgement.row()["formula"], judgement.row()["computed"]) == ("450 / 50", 9)
    assert _verdicts(tmp_path, RATIO.replace("18\n", "9\n"))["ratio"] == "consistent"
    assert _verdicts(tmp_path, RATIO.replace("18\n", "13\n"))["ratio"] == "contradicted by spec"


def test_one_sided_inputs_condemn_nothing(tmp_path: Path) -> None:
    """What follows from "at least" is wrong only if it is so for all that the words allow."""
    loose = LOSS.replace('kind = "measured"\ntext = "communication takes 12 ms"', 'kind = "measured"\ntext = "slow"')
    at_most = loose.replace("value = 6\n", "at_least = 6\n")
    assert _verdicts(tmp_path, at_most)["loss"] == "unverifiable without a log"
    at_least = loose.replace("value = 12\n", "at_least = 12\n")
    assert _verdicts(tmp_path, at_least)["loss"] == "arithmetically wrong"


def test_evidence_stands_beside_the_verdict(tmp_path: Path) -> None:
    """What logs say never changes the first verdict; a refuted claim stops the reader."""

    def logs(claim: Claim) -> Mapping[str, Any] | None:
        return {"verdict": "refuted", "median": 31.0, "runs": 7} if claim.id == "stall" else None

    judged = {j.claim.id: j for j in audit(_read(tmp_path, STALL + RATIO), evidence=logs)}
    assert judged["stall"].row()["evidence_verdict"] == "refuted"
    assert judged["stall"].verdict == "unverifiable without a log"
    assert judged["stall"].bad
    assert judged["ratio"].row()["evidence_verdict"] == "no evidence"
    assert not judged["ratio"].bad


def test_every_row_is_json() -> None:
    """Each row is plain JSON, its verdict one of the eight words."""
    for _, judgement in _shipped():
        row = json.loads(json.dumps(judgement.row(), allow_nan=False, default=str))
        assert row["verdict"] in VERDICTS
        assert row["reading"]
    assert len(CHECKS) == len(set(CHECKS))


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        (STALL.replace('unit = "ms"', 'unti = "ms"'), 11, "unknown key 'unti'.*Did you mean 'unit'"),
        (STALL.replace('"ms"', '"msec"'), 11, "unknown unit 'msec'"),
        (STALL.replace("stall(", "stal("), 9, "unknown metric 'stal'.*Did you mean 'stall'"),
        (STALL.replace("measured", "measure"), 7, "unknown kind 'measure'.*Did you mean 'measured'"),
        (STALL.replace("[14, 16]", "[16, 14]"), 10, "the smaller first"),
        (STALL.replace('"stall"', '"a b"'), 6, "may hold letters"),
        (STALL + "value = 15\n", 5, "needs exactly one of|[Uu]nknown"),
        (STALL.replace('unit = "ms"\n', ""), 10, "needs a unit"),
        (STALL + 'derive = "{other}"\n', 13, "unknown name 'other'"),
        (STALL + 'derive = "__import__(1)"\n', 13, "unknown function"),
        (STALL + f'derive = "{"(" * 400}1{")" * 400}"\n', 13, "nested deeper than 100"),
        (STALL + f'derive = "{"9" * 900000}"\n', 13, "characters, more than"),
        (STALL + 'formula = "1 + 1"\ncomputed = 3\n', 14, "the formula gives 2, not 3"),
        (STALL + STALL, 15, "used twice"),
        (STALL + 'baseline = "stal"\n', 13, "no claim. Did you mean 'stall'"),
        (STALL + 'derive = "max({stall})"\n', 13, "derived from each other"),
        (ACROSS.replace("gpu =", "gpus ="), 9, "unknown key 'gpus' in system"),
        (ACROSS.replace("nic_ports = 1", "nic_ports = 0"), 9, "greater than 0"),
        (ACROSS.replace("all_reduce, size", "allreduce, size"), 11, "Did you mean 'all_reduce'"),
        (ADVICE.replace("==", "is"), 10, "asserts wants a fact"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, text: str, line: int, complaint: str) -> None:
    """What is wrong in a file is said in one sentence with the line and the nearest word."""
    with pytest.raises(ClaimsError, match=complaint) as error:
        _read(tmp_path, text)
    assert "\n" not in str(error.value)
    if "exactly one" not in complaint:
        assert f"claims.toml:{line}:" in str(error.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("value = " + "9" * 900_000, "too many digits"), ("value = " + "[" * 50_000, "nested too deeply"),
        ("#" * 1_100_000, "larger than 1 MB"), ("value = = 1", "not valid TOML"),
        ("[x]\nvalue" + " . a" * 200_000 + " = 1", "a key of more than 20 parts"), ("claim = 3", "wants a list"),
        ("claim = [1]", "a table of its own"), ("", "needs 'claim'"), ("[vendor]", "unknown key 'vendor'"),
    ],
)  # fmt: skip
def test_hostile_files_are_refused_at_once(tmp_path: Path, text: str, complaint: str) -> None:
    """Numbers of a million digits, deep nesting and large files cost no time."""
    head = "" if "digits" in complaint else HEAD
    head = head if "claim" not in text else 'schema = "rdmalab.claims/1"\n' + text + '\n[source]\nid = "test"\n'
    start = time.perf_counter()
    with pytest.raises(ClaimsError, match=complaint):
        _read(tmp_path, "" if "claim" in text else text, head)
    assert time.perf_counter() - start < 5


def _many(count: int, derive: str) -> str:
    one = '[[claim]]\nid="c{i}"\nkind="spec"\ntext="t"\nmetric="latency()"\nvalue={i}.5\nunit="us"\n'
    return "\n".join((one + derive).format(i=i, before=max(i - 1, 0)) for i in range(count))


def test_ten_thousand_claims_take_seconds(tmp_path: Path) -> None:
    """A large honest file is judged in bounded time."""
    start = time.perf_counter()
    assert len(audit(_read(tmp_path, _many(10_000, "")))) == 10_000
    assert time.perf_counter() - start < 30


def test_long_chains_and_long_cycles_are_refused(tmp_path: Path) -> None:
    """A chain of thousands of claims, and a claim that rests on itself through others, end in one sentence."""
    chain = _many(5_000, 'derive="{{c{before}}}"').replace('derive="{c0}"', "", 1)
    with pytest.raises(ClaimsError, match="a chain of more than 100 claims"):
        _read(tmp_path, chain)
    cycle = _many(50, 'derive="{{c{before}}}"').replace('derive="{c0}"', 'derive="{c49}"', 1)
    with pytest.raises(ClaimsError, match="derived from each other"):
        _read(tmp_path, cycle)


def test_numbers_of_a_claim() -> None:
    """The tolerance of printed digits is half a unit of the last one, else two percent."""
    printed = Claim(id="a", line=1, text="t", kind="spec", low=22.8, high=22.8, slack=0.05)
    assert printed.holds(22.84)
    assert not printed.holds(22.9)
    assert replace(printed, low=-math.inf).holds(-5)
    assert replace(printed, high=math.inf).number == 22.8
