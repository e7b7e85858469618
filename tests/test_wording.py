"""Every sentence is true for any data: it claims what the intervals show and names every fabric."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rdmalab import compare, figures, series, wording
from rdmalab.compare import FASTER, NO_DIFFERENCE, SLOWER, TOO_FEW, Comparison, Refusal, Table
from rdmalab.errors import UsageError
from rdmalab.series import Selection, Subject
from rdmalab.tables import NBSP, ratio_texts
from rdmalab.wording import Words
from tests._comparisons import BANDWIDTH, COLLECTIVE, LATENCY, around, comparison, points_of

FABRICS = ("f1", "f2", "f3", "f4", "f5")
SIZE = r"\d+\xa0\w+"
SIZES = (8, 64, 4096, 1 << 20, 1 << 30)


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    """Two to five fabrics with any medians, scatters, counts and gaps, in one or two measurands."""
    names = FABRICS[: draw(st.integers(2, 5))]
    sizes = sorted(draw(st.sets(st.sampled_from(SIZES), min_size=1, max_size=4)))
    parts = []
    for subject in draw(
        st.lists(st.sampled_from([COLLECTIVE, LATENCY, BANDWIDTH]), min_size=1, max_size=2, unique=True)
    ):
        values = {}
        for fabric in names:
            scale = draw(st.sampled_from([0.5, 1.0, 1.0, 1.005, 3.0, 97.0]))
            for size in sizes:
                n = draw(st.sampled_from([0, 1, 5, 7, 7, 7, 7, 8]))
                values[fabric, size] = around(
                    20 * scale * draw(st.sampled_from([1, 1, 1, 1.1, 0.2])), n, draw(st.sampled_from([0, 0.01, 0.3]))
                )
        parts.append((subject, {k: v for k, v in values.items() if v}))
    parts = [p for p in parts if p[1]]
    assume(parts)
    share = draw(st.sampled_from([None, 47.13, 107.31]))
    return comparison(*parts, order=names, share=share, limit=12.2547 if share else None)


def some(c: Comparison) -> bool:
    return bool(c.tables)


def sentences(c: Comparison) -> Iterator[str]:
    """Everything that the words of a comparison say."""
    w = Words(c)
    yield from w.verdict
    yield w.lead()
    for t in c.tables:
        yield from (
            w.title(t),
            w.subject_line(t.subject),
            w.quantity(t.subject),
            w.residue(t),
            w.runs(t),
            w.named_tests(t),
        )
        yield from (w.time_title(t), w.ratio_title(t), w.half_of_limit(t), w.left_out(t))
        yield from (text for pair in w.follows(t) for text in pair)
        yield from w.limits(t)
        yield from w.above_limit(t)
        if figures.has_curve(t):
            yield from (w.throughput_title(t), w.utilization_title(t))
        for size in t.compared_sizes:
            yield from (w.at(t, size), w.at(t, size, again=True), w.reading(t, size), w.short_reading(t, size))
    for r in c.refusals:
        yield from w.refusal(r)
        yield from w.refusal(r, full=True)
    yield from w.selection()


many = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@many
@given(comparisons().filter(some))
def test_no_sentence_has_a_hole(c: Comparison) -> None:
    """No None, nan, brace, empty clause or doubled mark, and a capital or a name at every beginning of a reading."""
    for text in sentences(c):
        assert text.strip() == text
        assert text
        assert not re.search(
            r"None|\bnan\b|\binf\b|[{}]|  |, ,|; ;|: ;|, \.|;;|\.\.|\b1 runs\b|^[;,.]|[;,] ?\.$|\be[+-]\d", text
        ), text
        assert not re.search(r"(?<![\d.])1 (sizes|streams|nodes)\b", text), text
    assert 1 <= len(Words(c).verdict) <= 3


@many
@given(comparisons().filter(some))
def test_a_verdict_is_short_and_claims_no_more_than_the_cells(c: Comparison) -> None:
    """At most 22 words, 34 Chinese characters; "times" is only said of fabrics whose interval excludes 1."""
    w = Words(c)
    assert len(" ".join(w.verdict).split()) <= 22
    assert len(wording._SIGN.findall("".join(Words(c, "zh").verdict))) <= 34
    told = "".join(w.verdict)
    ranked = {x.fabric for t in c.tables for x in t.cells if x.verdict in (FASTER, SLOWER)}
    if " times" in told:
        assert ranked & {f for f in c.headline.others if w.brief.label(f) in told or w.label(f) in told}
    for t in c.tables:
        for clause in w.ratio_title(t).partition(": ")[2].split(", F"):
            if m := re.search(r"(\d) ([\d.]+) times at", clause):
                shown = [x for x in t.of(f"f{m[1]}") if x.verdict == FASTER]
                assert ratio_texts(max(shown, key=lambda x: x.ratio or 0))[0] == m[2]


@many
@given(comparisons().filter(some))
def test_the_titles_of_the_pages_are_not_the_same(c: Comparison) -> None:
    """Each page has its own finding, whatever the data."""
    w, t = Words(c), c.headline
    titles = [w.title(t), w.time_title(t), w.ratio_title(t)]
    if figures.has_curve(t):
        titles = [w.title(t), w.ratio_title(t), w.throughput_title(t), w.utilization_title(t)]
    assert len(set(titles)) == len(titles)


def claims(text: str) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """(faster, slower, told apart by nothing) names of every clause of an ``at`` sentence."""
    for clause in re.split(rf"; |(?<=times as fast), |, (?=no difference|too few|a value|{SIZE} is not)", text):
        if m := re.fullmatch(
            rf"(?:at {SIZE} )?(.+) (?:is|are) [\d., and]+ times as fast(?: as (.+?))?(?: at {SIZE})?", clause
        ):
            yield re.findall(r"F\d", m[1]), re.findall(r"F\d", m[2] or ""), []
        else:
            assert re.match(rf"no difference is shown|too few runs|a value of 0|{SIZE} is not measured on", clause), (
                clause
            )
            yield [], [], re.findall(r"F\d", clause)


@many
@given(comparisons().filter(some), st.booleans())
def test_a_clause_claims_what_the_intervals_show(c: Comparison, again: bool) -> None:
    """Faster is said of intervals above 1, a slower fabric from the baseline's side, of others nothing."""
    w = Words(c)
    for t in c.tables:
        base = w.label(t.baseline)
        for size in t.compared_sizes:
            named = {base}
            for ahead, behind, rest in claims(w.at(t, size, again=again)):
                named |= {*ahead, *behind, *rest}
                for fabric in t.others:
                    name, cell = w.label(fabric), t.cell(fabric, size)
                    if name in ahead:
                        assert cell
                        assert cell.verdict == FASTER
                    if name in behind:
                        assert ahead == [base]
                        assert cell
                        assert cell.verdict == SLOWER
                    if name in rest:
                        assert cell is None or cell.verdict not in (FASTER, SLOWER)
            assert named == {w.label(f) for f in t.fabrics}


@many
@given(comparisons().filter(some))
def test_a_title_names_every_fabric_and_claims_no_more_than_the_cells(c: Comparison) -> None:
    """A range of factors is said only where every compared size of these fabrics has the verdict."""
    w = Words(c)
    for t in c.tables:
        title = w.title(t)
        if m := re.match(r"(\d+) ratios of \d fabrics to F\d: (.+)", title):
            verdicts = [x.verdict for x in t.cells if x.ratio is not None]
            assert int(m[1]) == len(verdicts) == sum(map(int, re.findall(r"\d+", m[2])))
            assert (f"{verdicts.count(FASTER)} faster" in m[2]) == (FASTER in verdicts)
            continue
        if not title.startswith("Too few runs to rank: "):
            assert {w.label(f) for f in t.others} <= set(re.findall(r"F\d", title)), title
        for clause in title.split("; "):
            kinds = {f: {x.verdict for x in t.of(f) if x.ratio is not None} for f in t.others}
            if m := re.fullmatch(r"(.+) (?:is|are) [\d. to]+ times as fast as \S+", clause):
                assert all(kinds[n.lower()] == {FASTER} for n in re.findall(r"F\d", m[1])), (clause, kinds)
            elif m := re.fullmatch(r"\S+ is faster: [\d. to]+ times as fast as (.+)", clause):
                assert all(kinds[n.lower()] == {SLOWER} for n in re.findall(r"F\d", m[1])), (clause, kinds)
            elif m := re.fullmatch(rf"(F\d) is (faster|slower) than F\d up to ({SIZE}), (.+) above", clause):
                verdict = {"faster": FASTER, "slower": SLOWER}[m[2]]
                cells = [x for x in t.of(m[1].lower()) if x.ratio is not None]
                at = next(i for i, x in enumerate(cells) if w.size(x.size_bytes) == m[3])
                assert {x.verdict for x in cells[: at + 1]} == {verdict}
                assert len({x.verdict for x in cells[at + 1 :]} - {verdict}) == 1
            else:
                assert re.search(
                    r"no difference|not shown to differ|[Tt]oo few|of \d+ sizes|changes with the size", clause
                ), clause


@many
@given(comparisons().filter(some))
def test_the_sizes_of_a_title_are_told_to_the_tables(c: Comparison) -> None:
    """The extremes of a range, the size of a change, and the ends."""
    w = Words(c)
    for t in c.tables:
        told = w.told_sizes(t)
        assert {t.compared_sizes[0], t.compared_sizes[-1], t.common_sizes[0], t.common_sizes[-1]} <= set(told)
        texts = {
            ratio_texts(x, inverse=i)[0] for s in told for f in t.others if (x := t.cell(f, s)) for i in (False, True)
        }
        for clause in re.findall(r"(?:is|are|faster:) ([\d. to]+) times", w.title(t)):
            assert set(clause.split(" to ")) <= texts


@many
@given(st.integers(1, 12), st.integers(1, 12))
def test_counts_of_runs_are_told_as_they_are(n: int, m: int) -> None:
    """One run is 1 run; a side with fewer is named."""
    c = comparison((LATENCY, {("f1", 8): around(4, n), ("f2", 8): around(2, m)}))
    text = Words(c).runs(c.headline)
    most, less, name = (n, m, "F2") if n >= m else (m, n, "F1")
    assert text == (f"{most} run" if most == 1 else f"{most} runs") + ("" if n == m else f" ({name}: {less})")


def test_counts_that_vary_along_the_sizes_are_a_span() -> None:
    """ "Medians of 8 runs" would be untrue where most sizes have one."""
    c = comparison(
        (LATENCY, {("f1", 8): around(4, 8), ("f1", 64): around(4, 1), ("f2", 8): around(2), ("f2", 64): around(2)})
    )
    assert Words(c).runs(c.headline) == "1 to 8 runs (F2: 7)"


def table(values: dict[str, dict[int, float]], subject: Subject = LATENCY, n: int = 7) -> tuple[Words, Table]:
    """Words and headline of fabric → size → median."""
    c = comparison((subject, {(f, s): around(v, n) for f, row in values.items() for s, v in row.items()}))
    return Words(c), c.headline


@pytest.mark.parametrize(
    ("values", "title"),
    [
        ({"f1": {8: 10, 64: 20}, "f2": {8: 5, 64: 4}}, "F2 is 2.00 to 5.00 times as fast as F1"),
        ({"f1": {8: 10}, "f2": {8: 20}}, "F1 is faster: 2.00 times as fast as F2"),
        ({"f1": {8: 10}, "f2": {8: 10}}, "no difference is shown between F2 and F1"),
        (
            {"f1": {8: 10, 64: 20}, "f2": {8: 5, 64: 20}},
            f"F2 is faster than F1 up to 8{NBSP}B, no difference shown above",
        ),
        ({"f1": {8: 10, 64: 20}, "f2": {8: 20, 64: 10}}, f"F2 is slower than F1 up to 8{NBSP}B, faster above"),
        (
            {"f1": {8: 10, 64: 20, 512: 9}, "f2": {8: 5, 64: 40, 512: 3}},
            "F2 against F1, of 3 sizes: faster at 2, slower at 1",
        ),
        ({"f1": {8: 10}, "f2": {8: 5}, "f3": {8: 2}}, "F2 and F3 are 2.00 to 5.0 times as fast as F1"),
        (
            {"f1": {8: 10}, "f2": {8: 5}, "f3": {8: 20}, "f4": {8: 10}},
            "F2 is 2.00 times as fast as F1; F1 is faster: 2.00 times as fast as F3; no difference is shown for F4",
        ),
    ],
)
def test_titles(values: dict[str, dict[int, float]], title: str) -> None:
    """One clause for the fabrics with one verdict, and one for each whose verdict changes."""
    w, t = table(values)
    assert re.sub(r"5\.00?", "5.0", w.title(t)) == re.sub(r"5\.00?", "5.0", title)


def test_a_size_without_enough_runs_is_not_swallowed_by_a_range() -> None:
    """Faster at 8 B and 4 KiB, too few runs at 64 B between them: not "faster at all sizes"."""
    c = comparison(
        (LATENCY, {(f, s): around(k, 5 if s == 64 else 7) for f, k in (("f1", 10), ("f2", 5)) for s in (8, 64, 4096)})
    )
    assert Words(c).title(c.headline) == "F2 against F1, of 3 sizes: faster at 2, too few runs at 1"


def test_too_few_runs_everywhere_is_the_title() -> None:
    """With the counts, and what an interval needs."""
    w, t = table({"f1": {8: 10}, "f2": {8: 5}}, n=5)
    assert w.title(t) == "Too few runs to rank: 5 runs, and an interval needs 6"
    assert w.verdict == [f"Too few runs to rank F2 against F1 at 8{NBSP}B."]
    assert w.short_reading(t, 8) == "F2: 5 runs against 5, not ranked."


def test_the_cover_tells_the_smallest_and_the_largest_size() -> None:
    """The baseline is named once."""
    w, t = table({"f1": {8: 10, 64: 20}, "f2": {8: 5, 64: 4}, "f3": {8: 10, 64: 40}})
    assert w._closed(w._two_sizes(t, 8, 64)) == [
        f"F2 is 2.00 times as fast as F1 at 8{NBSP}B; no difference is shown between F3 and F1 at 8{NBSP}B;",
        f"at 64{NBSP}B F2 is 5.00 times as fast, F1 is 2.00 times as fast as F3 at 64{NBSP}B.",
    ]


def test_two_measurands_on_the_cover_are_told_apart() -> None:
    """A factor of latency and one of bandwidth stand in sentences that name the quantity."""
    c = comparison(
        (LATENCY, {("f1", 8): around(4), ("f2", 8): around(2)}),
        (BANDWIDTH, {("f1", 65536): around(50), ("f2", 65536): around(90, 9)}),
    )
    w = Words(c)
    assert w.verdict == [
        f"F2 is 2.00 times as fast as F1 in latency at 8{NBSP}B, 1.80 times in bandwidth at 64{NBSP}KiB."
    ]
    assert "Bandwidth in one direction: ib_write_bw, RC, 1 QP, host memory, from 9 runs (F1: 7)." in w.lead()


def test_every_fabric_is_named_in_a_clause_of_four() -> None:
    """No "3 fabrics": names and factors in the same order."""
    w, t = table({"f1": {8: 60}, "f2": {8: 30}, "f3": {8: 20}, "f4": {8: 15}, "f5": {8: 180}})
    assert w.at(t, 8) == (
        f"F2, F3 and F4 are 2.00, 3.00 and 4.00 times as fast as F1 at 8{NBSP}B; "
        f"F1 is 3.00 times as fast as F5 at 8{NBSP}B"
    )


@pytest.mark.parametrize("label", ["<b>x</b> & co", "{fabric}", "%s {0}", "a\u202eb", "mlx5 café", "x" * 200])
def test_labels_are_text_whatever_they_hold(label: str) -> None:
    """A brace in a label is no placeholder, and its first letter is not changed."""
    c = comparison((LATENCY, {("f1", 8): around(4), ("f2", 8): around(2)}), labels={"f2": label})
    w = Words(c)
    assert w.verdict[0].startswith(label.replace(" ", NBSP) + " is 2.00 times as fast as F1 at")


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        (COLLECTIVE, "All-reduce, float sum, out of place, 16 ranks on 2 nodes"),
        (replace(COLLECTIVE, nodes=1, ranks=8), "All-reduce, float sum, out of place, 8 ranks on 1 node"),
        (replace(COLLECTIVE, nodes=None), "All-reduce, float sum, out of place, 16 ranks, nodes not stated"),
        (
            replace(COLLECTIVE, dtype=None, redop=None, placement=None),
            "All-reduce, type not stated, 16 ranks on 2 nodes",
        ),
        (
            replace(COLLECTIVE, operation="broadcast", redop=None, root=0, tool="rccl-tests"),
            "Broadcast, float, root 0, out of place, 16 ranks on 2 nodes, rccl-tests",
        ),
        (
            replace(COLLECTIVE, communicator_ranks=8, aggregated_iterations=10),
            "All-reduce, float sum, out of place, 16 ranks on 2 nodes, 8 ranks a communicator, "
            "10 operations an iteration",
        ),
        (LATENCY, "ib_write_lat, one way (half the round trip), RC, 1 QP, host memory"),
        (replace(LATENCY, latency_convention="round_trip"), "ib_write_lat, full round trip, RC, 1 QP, host memory"),
        (replace(BANDWIDTH, bidirectional=True), "ib_write_bw, both directions, RC, 1 QP, host memory"),
        (
            Subject(kind="bandwidth", test="iperf3", protocol="TCP", streams=4, reverse=True, side="server"),
            "iperf3, TCP, 4 streams, sent by the server, printed by the server",
        ),
    ],
)
def test_the_line_of_a_subject_states_all_its_conditions(subject: Subject, line: str) -> None:
    """What is not known is said or left out, never printed as None."""
    assert Words(comparison((LATENCY, {("a", 8): around(1), ("b", 8): around(1)}))).subject_line(subject) == line


def test_two_subjects_have_two_lines() -> None:
    """Whatever tells two measurands apart is told to the reader."""
    w = Words(comparison((LATENCY, {("a", 8): around(1), ("b", 8): around(1)})))
    other = {
        "tool": "x", "operation": "gather", "dtype": "half", "redop": "max", "root": 1, "ranks": 3,
        "communicator_ranks": 4, "nodes": 9, "placement": "in_place", "aggregated_iterations": 2,
        "test": "y", "bidirectional": True, "memory": "cuda",
        "latency_convention": "round_trip", "connection": "UC", "queue_pairs": 7, "streams": 2, "protocol": "UDP",
        "side": "server",
        "reverse": True,
    }  # fmt: skip
    for subject, key in ((COLLECTIVE, series.COLLECTIVE_KEY), (LATENCY, series.TEST_KEY)):
        assert set(key) <= set(other)
        for name in key:
            assert w.subject_line(replace(subject, **{name: other[name]})) != w.subject_line(subject), name


def test_unlike_tools_are_named_with_their_configuration() -> None:
    """Beside the ratio, in the lead; and where the size was declared."""
    streams = points_of(
        Subject(kind="bandwidth", test="iperf3", protocol="TCP", streams=1), {("f1", 65536): around(50)}
    )
    verbs = points_of(BANDWIDTH, {("f2", 65536): around(90)})
    import polars as pl

    frame = pl.concat([streams.with_columns(size_declared=True), verbs], how="vertical_relaxed")
    subject = Subject(kind="bandwidth", tests=(("f1", "iperf3"), ("f2", "ib_write_bw")))
    c = comparison((BANDWIDTH, {("f1", 8): around(1), ("f2", 8): around(1)}))
    c = replace(c, tables=tuple(compare.tables(subject, frame, ["f1", "f2"])))
    w = Words(c)
    assert w.named_tests(c.headline) == (
        "Unlike tools, declared to measure the same: F1: iperf3 (TCP, 1 stream); F2: ib_write_bw (RC, 1 QP, "
        "host memory). "
        f"F1: the test states no message size; the campaign file sets it beside 64{NBSP}KiB."
    )
    assert w.operation(subject) == "iperf3 against ib_write_bw"
    for sentence in (
        "iperf3 against ib_write_bw",
        "where the campaign file declares so",
        w._without_size(c.headline)[0],
    ):
        assert sentence in w.lead()


def test_what_unlike_tools_state_differs_only_where_it_can_be_compared() -> None:
    """Two fabrics with the same test are compared in its fields; those of another tool are not."""
    by_test = {"f1": [None], "f2": [1024], "f3": [4096]}
    w, t = table({"f1": {8: 1}, "f2": {8: 1}, "f3": {8: 1}})
    subject = replace(LATENCY, tests=(("f1", "iperf3"), ("f2", "ib"), ("f3", "ib")))
    assert (
        w.residue(replace(t, subject=subject, residue={"mtu_bytes": by_test}))
        == "Besides the fabric: MTU (F2 1024; F3 4096)."
    )
    assert w.residue(
        replace(t, subject=subject, residue={"mtu_bytes": {"f1": [9000], "f2": [4096], "f3": [4096]}})
    ) == ("Nothing else that the logs state.")


def test_every_field_of_the_residue_has_words() -> None:
    """A field that the comparison watches can be told."""
    w, t = table({"f1": {8: 1}, "f2": {8: 1}})
    for name in series.RESIDUE:
        text = w.residue(replace(t, residue={name: {"f1": [None, ("a", "b")], "f2": [1, 2, 3, 4]}}))
        assert text.startswith("Besides the fabric: ")
        assert text.endswith(" (F1 not stated, a+b; F2 1, 2, 3…).")


REASONS = (
    "one_fabric",
    "no_baseline",
    "no_common_size",
    "sizes",
    "unpaired",
    "zero",
    "no_value",
    "operation",
    "test",
    "convention",
    "clash",
)


@pytest.mark.parametrize("reason", REASONS)
def test_every_refusal_says_what_why_and_what_closes_it(reason: str) -> None:
    """For one subject and for many."""
    w, _ = table({"f1": {8: 1}, "f2": {8: 1}})
    for subjects in (
        (LATENCY,),
        tuple(replace(LATENCY, queue_pairs=n) for n in range(1, 9)),
        (Subject(kind="collective", ranks=8),),
    ):
        for full in (False, True):
            what, why, closes = w.refusal(
                Refusal(subjects=subjects, fabrics=("f1",), missing=("f2",), reason=reason, sizes=(8, 64)), full=full
            )
            assert what.endswith(".")
            assert why.endswith(".")
            assert why[0].isupper()
            assert closes.endswith(".")
            assert not re.search(r"None|[{}]|^[;,.]| \.|\.\.", what + why + closes)
            assert "F1" in why


def test_the_reasons_of_the_code_are_those_of_the_words() -> None:
    """No refusal without words."""
    w, _ = table({"f1": {8: 1}, "f2": {8: 1}})
    assert set(w._reasons()) == set(REASONS)
    assert all(f"``{r}``" in (Refusal.__doc__ or "") for r in REASONS)


def test_above_a_limit_is_told_with_the_measurand() -> None:
    """100.2 % is rounding; more is said, per fabric, at its worst size."""
    c = comparison((COLLECTIVE, {("f1", 8): around(9), ("f2", 8): around(3)}), share=107.31, limit=12.0)
    assert [t.split(":")[0] for t in Words(c).above_limit(c.headline)] == [
        f"{f} stands above its limit in all-reduce at 8{NBSP}B (107.31 %)" for f in ("F1", "F2")
    ]
    c = comparison((COLLECTIVE, {("f1", 8): around(9), ("f2", 8): around(3)}), share=100.2, limit=12.0)
    assert Words(c).above_limit(c.headline) == []


def test_a_missing_bandwidth_or_share_is_said_not_left_out() -> None:
    """In the titles every fabric is named."""
    c = comparison((COLLECTIVE, {("f1", 1 << 20): around(900), ("f2", 1 << 20): around(300)}))
    w, t = Words(c), c.headline
    bare = replace(t, cells=tuple(replace(x, busbw=None) if x.fabric == "f2" else x for x in t.cells))
    assert w.throughput_title(bare).endswith(f"F1 2.18{NBSP}GB/s, F2 not measured")
    assert w.utilization_title(t) == f"Of their own limits at 1{NBSP}MiB: F1 not known, F2 not known"


def test_what_was_selected_and_what_stands_elsewhere_is_told() -> None:
    """A filter and an unclaimed fabric are no silence."""
    c = comparison((LATENCY, {("f1", 8): around(9), ("f2", 8): around(3)}))
    assert Words(c).selection() == []
    c = replace(
        c, selection=Selection(operation="all_reduce", size_min="8"), elsewhere={"IB": 0, "Unknown fabric": 1, "TCP": 3}
    )
    assert Words(c).selection() == [
        "Only measurements with operation = all_reduce, size_min = 8 were selected.",
        "IB: no run in this campaign.",
        "Unknown fabric: 1 run of this campaign, not in this comparison.",
        "TCP: 3 runs of this campaign, not in this comparison.",
    ]


def test_a_language_that_is_not_there_is_a_usage_error() -> None:
    """With those that are."""
    c = comparison((LATENCY, {("f1", 8): around(9), ("f2", 8): around(3)}))
    with pytest.raises(UsageError, match="no report in language 'tlh'"):
        Words(c, "tlh")


def test_a_clause_per_verdict_has_its_words() -> None:
    """All verdicts at one size, in one sentence."""
    values = {
        ("f1", 8): around(10), ("f2", 8): around(5), ("f3", 8): around(20), ("f4", 8): around(10),
        ("f5", 8): around(5, 5),
        ("f1", 64): around(10), ("f6", 64): around(5),
    }  # fmt: skip
    c = comparison((LATENCY, values))
    w, t = Words(c), c.headline
    assert [x.verdict for x in t.cells if x.size_bytes == 8] == ["baseline", FASTER, SLOWER, NO_DIFFERENCE, TOO_FEW]
    assert w.at(t, 8) == (
        f"F2 is 2.00 times as fast as F1 at 8{NBSP}B; F1 is 2.00 times as fast as F3 at 8{NBSP}B; "
        "no difference is shown between F4 "
        f"and F1 at 8{NBSP}B; too few runs to rank F5 against F1 at 8{NBSP}B; 8{NBSP}B is not measured on F6"
    )
    assert w.short_reading(t, 8) == (
        "F2: 2.00 times as fast. F1 is 2.00 times as fast as F3. F4: no difference shown. "
        "F5: 5 runs against 7, not ranked. F6: not measured."
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("runs", "en", "zh"),
    [
        (1, "Too few runs for an interval of a ratio to A", "测试次数不足，与A的比值没有区间"),
        (7, "No interval of a ratio to A excludes 1", "与A的比值，没有区间不含1"),
    ],
)
def test_a_ratio_without_an_interval_is_not_one_that_contains_1(runs: int, en: str, zh: str, lang: str) -> None:
    """The title of the ratios says which of the two it is."""
    same = {(f, s): around(10, runs) for f in "ab" for s in (8, 64)}
    c = comparison((LATENCY, same))
    assert Words(c, lang).ratio_title(c.headline) == {"en": en, "zh": zh}[lang]
