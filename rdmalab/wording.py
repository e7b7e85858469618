"""Sentences and titles, composed from results by rules that are true for any data.

"Faster" and "slower" are only said of an interval that excludes 1; everything else is "no difference shown" or "too few
runs". Every sentence goes through one message catalogue, so that a language is a file of translations.
"""

import copy
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rdmalab.compare import FASTER, MIN_RUNS, NO_DIFFERENCE, NOT_MEASURED, SLOWER, TOO_FEW
from rdmalab.language import translator
from rdmalab.phrases import translated
from rdmalab.series import TEST_KEY
from rdmalab.tables import NBSP, number_text, ratio_texts, time_unit, value_texts
from rdmalab.units import size_text

if TYPE_CHECKING:
    from rdmalab.compare import Cell, Comparison, Refusal, Table
    from rdmalab.findings import Findings, Undecided, Win
    from rdmalab.pairs import Pairs
    from rdmalab.series import Difference, Subject

ABOVE_PCT = 100.2  # rounding of the printed numbers reaches no further


class Phrasing:
    """How things are said in one language, whatever the report."""

    def __init__(self, lang: str = "en") -> None:
        self.lang = lang
        self._ = translator(lang)

    def join(self, words: Iterable[str]) -> str:
        """``A``, ``A and B``, ``A, B and C``."""
        *most, last = list(words) or [""]
        return self._("{most} and {last}").format(most=self.listed(most), last=last) if most else last

    def listed(self, words: Iterable[str]) -> str:
        """``A, B, C``: things of one kind."""
        return self._chain(self._("{first}, {next}"), words)

    def clauses(self, parts: Iterable[str]) -> str:
        """``A, B, C``: parts of a sentence, which Chinese sets apart by another comma than things."""
        return self._chain(self._("{part}, {next}"), parts)

    def series(self, parts: Iterable[str]) -> str:
        """``A; B; C``: parts that hold commas themselves."""
        return self._chain(self._("{part}; {next}"), parts)

    def text(self, sentences: Iterable[str]) -> str:
        """Whole sentences behind one another."""
        return self._chain(self._("{sentence} {next}"), sentences)

    @staticmethod
    def _chain(template: str, parts: Iterable[str]) -> str:
        """Joins by what stands between the two places of *template*."""
        return re.split(r"\{\w+\}", template)[1].join(parts)

    def stated(self, text: str) -> str:
        """A reason or a formula that a lower room put together, in the language of the report."""
        return text if self.lang == "en" else translated(text, self._)

    def sentence(self, text: str) -> str:
        """A text with a capital at its beginning."""
        return text[:1].upper() + text[1:] if self.lang == "en" else text

    def count(self, runs: int) -> str:
        """``1 run``, ``7 runs``."""
        return (self._("{n} run") if runs == 1 else self._("{n} runs")).format(n=runs)

    def collective(self, operation: str) -> str:
        """A collective as one says it."""
        return {
            "all_reduce": self._("all-reduce"), "all_gather": self._("all-gather"),
            "reduce_scatter": self._("reduce-scatter"), "broadcast": self._("broadcast"), "reduce": self._("reduce"),
            "gather": self._("gather"), "scatter": self._("scatter"), "alltoall": self._("all-to-all"),
            "alltoallv": self._("all-to-all-v"), "sendrecv": self._("send-receive"),
            "hypercube": self._("hypercube"),
        }.get(operation, operation)  # fmt: skip


class Words(Phrasing):
    """The wording of one comparison in one language."""

    def __init__(self, c: "Comparison", lang: str = "en") -> None:
        super().__init__(lang)
        self.c = c
        self._shown = dict(c.labels)

    # -- small parts ----------------------------------------------------------------------------------------------

    def label(self, fabric: str) -> str:
        """The name of a fabric in reports; its words stay on one line."""
        return self._shown[fabric].replace(" ", NBSP)

    @cached_property
    def brief(self) -> "Words":
        """The same words with names that end before their rate (``RoCEv2`` for ``RoCEv2 100G``) where none is lost."""
        other = copy.copy(self)
        short = {f: re.sub(r"(?: \S*\d\S*)+$", "", label) or label for f, label in self.c.labels.items()}
        if len(set(short.values())) == len(short):
            other._shown = short
        return other

    def sentence(self, text: str) -> str:
        """A text with a capital at its beginning, unless the name of a fabric stands there."""
        return text if any(text.startswith(self.label(f)) for f in self.c.labels) else super().sentence(text)

    def operation(self, s: "Subject") -> str:
        """The test as one says it: ``all-reduce``, ``ib_write_bw``, ``ib_write_lat against ucx_perftest tag_lat``."""
        if s.tests:
            return self.against.join(dict.fromkeys(t for _, t in s.tests))
        return self.collective(s.operation or "") if s.kind == "collective" else (s.test or "")

    @property
    def against(self) -> str:
        """What stands between two tests that are set against each other."""
        return self._(" against ")

    def quantity(self, s: "Subject") -> str:
        """What is measured, at the beginning of a sentence."""
        if s.kind == "collective":
            return self._("Time of one {operation}").format(operation=self.operation(s))
        if s.kind == "latency":
            return {"round_trip": self._("Round-trip latency"), "one_way": self._("One-way latency")}.get(
                s.latency_convention or "", self._("Latency")
            )
        return self._("Bandwidth, both directions added") if s.bidirectional else self._("Bandwidth in one direction")

    def subject_line(self, s: "Subject") -> str:
        """The conditions that all runs of a subject share."""
        if s.kind == "collective":
            name = self.sentence(self.operation(s)) if s.operation else self._("Unnamed collective")
            return self.clauses([name, *self._variant(s), *self._among(s)])
        return self.clauses([self.operation(s), *self._configuration(s)])

    def setting(self, s: "Subject") -> str:
        """How a test was run, without its name: the ranks of a collective, the configuration of another test."""
        return self.clauses(self._among(s) if s.kind == "collective" else self._configuration(s))

    def variant(self, s: "Subject") -> str:
        """What the rows of one collective differ in: type, reduction, root and placement. Other tests have none."""
        return self.clauses(self._variant(s)) if s.kind == "collective" else ""

    def _variant(self, s: "Subject") -> list[str]:
        words = [" ".join([s.dtype or self._("type not stated"), s.redop or ""]).strip()]
        if s.root is not None:
            words.append(self._("root {n}").format(n=s.root))
        if s.placement:
            words.append(self._("out of place") if s.placement == "out_of_place" else self._("in place"))
        return words

    def _among(self, s: "Subject") -> list[str]:
        where = self._("{n} ranks on {k} nodes") if s.nodes != 1 else self._("{n} ranks on {k} node")
        words = [
            where.format(n=s.ranks, k=s.nodes)
            if s.nodes
            else (
                self._("{n} ranks on unlike numbers of nodes")
                if s.across_nodes
                else self._("{n} ranks, nodes not stated")
            ).format(n=s.ranks)
        ]
        if s.communicator_ranks:
            words.append(self._("{n} ranks a communicator").format(n=s.communicator_ranks))
        if s.aggregated_iterations:
            words.append(self._("{n} operations an iteration").format(n=s.aggregated_iterations))
        return [*words, s.tool] if s.tool not in (None, "nccl-tests") else words

    def _configuration(self, s: "Subject") -> list[str]:
        """How a point-to-point test was run, as far as its log says."""
        words: list[str | None] = []
        if s.latency_convention:
            words.append(
                self._("one way (half the round trip)")
                if s.latency_convention == "one_way"
                else self._("full round trip")
            )
        if s.bidirectional:
            words.append(self._("both directions"))
        words += [s.connection, self._("{n} QP").format(n=s.queue_pairs) if s.queue_pairs else None]
        memory = self._("host memory") if s.memory == "host" else self._("{memory} memory").format(memory=s.memory)
        words += [memory if s.memory else None, s.protocol]
        if s.streams:
            words.append((self._("{n} stream") if s.streams == 1 else self._("{n} streams")).format(n=s.streams))
        if s.reverse:
            words.append(self._("sent by the server"))
        if s.side == "server":
            words.append(self._("printed by the server"))
        elif s.side and (s.test or "").startswith("ib_"):  # whose ends are told apart by addresses, if it prints them
            words.append(self._("printed by the client"))
        return [w for w in words if w]

    def size(self, size_bytes: int | None) -> str:
        """A message size; a byte stream has none."""
        return size_text(size_bytes) if size_bytes is not None else self._("a byte stream")

    def runs(self, table: "Table", sizes: "Sequence[int | None] | None" = None) -> str:
        """``7 runs``, ``7 runs (TCP: 5)`` where fabrics differ, ``1 to 8 runs`` where sizes (the common) do."""
        wanted = table.common_sizes if sizes is None else sizes
        spans = {}
        for fabric in table.fabrics:
            counts = [c.n for c in table.of(fabric) if c.size_bytes in wanted]
            spans[fabric] = (min(counts, default=0), max(counts, default=0))
        most = max(spans.values(), key=lambda span: (span[1], span[0]))
        less = [
            self._("{fabric}: {span}").format(fabric=self.label(f), span=self._span(*span))
            for f, span in spans.items()
            if span != most
        ]
        text = self.count(most[1]) if most[0] == most[1] else self._("{span} runs").format(span=self._span(*most))
        return self._("{text} ({more})").format(text=text, more=self.clauses(less)) if less else text

    def _span(self, low: int, high: int) -> str:
        return str(low) if low == high else self._("{low} to {high}").format(low=low, high=high)

    # -- verdicts -------------------------------------------------------------------------------------------------

    def at(self, table: "Table", size_bytes: int | None, *, again: bool = False) -> str:
        """
        What one size says about every fabric, as one clause without its full stop.

        A slower fabric is told from the baseline's side, so that every factor is above 1. *again* leaves out the
        baseline's name where the clause before has just said it.
        """
        parts: dict[str, list[Cell]] = defaultdict(list)
        for fabric in table.others:
            if cell := table.cell(fabric, size_bytes):
                parts[cell.verdict].append(cell)
        base, where = self.label(table.baseline), self.size(size_bytes)
        said = [self._factors(parts[FASTER], base, where, again=again)] if parts[FASTER] else []
        if slower := parts[SLOWER]:
            factors = self.join(ratio_texts(x, inverse=True)[0] for x in slower)
            template = (
                self._("{base} is {ratio} times as fast as {fabric} at {size}")
                if len(slower) == 1
                else self._("{base} is {ratios} times as fast as {fabrics} at {size}")
            )
            names = self._names(slower)
            said.append(
                template.format(base=base, ratio=factors, ratios=factors, fabric=names, fabrics=names, size=where)
            )
        short = bool(said and again)
        rest = {
            NO_DIFFERENCE: self._("no difference is shown for {fabrics}") if short else self._(
                "no difference is shown between {fabrics} and {base} at {size}"),
            TOO_FEW: self._("too few runs to rank {fabrics}") if short else self._("too few runs to rank {fabrics} "
                "against {base} at {size}"),
            NOT_MEASURED: self._("a value of 0 gives no ratio for {fabrics} at {size}"),
        }  # fmt: skip
        said += [t.format(base=base, fabrics=self._names(parts[v]), size=where) for v, t in rest.items() if parts[v]]
        if missing := [f for f in table.others if not table.cell(f, size_bytes)]:
            said.append(
                self._("{size} is not measured on {fabrics}").format(
                    size=where, fabrics=self.join(map(self.label, missing))
                )
            )
        return self.clauses(said) if again else self.series(said)

    def _names(self, cells: "Iterable[Cell]") -> str:
        return self.join(self.label(x.fabric) for x in cells)

    def _factors(self, found: "list[Cell]", base: str, where: str, *, again: bool) -> str:
        template = {
            (False, 1): self._("{fabrics} is {ratios} times as fast as {base} at {size}"),
            (False, 2): self._("{fabrics} are {ratios} times as fast as {base} at {size}"),
            (True, 1): self._("at {size} {fabrics} is {ratios} times as fast"),
            (True, 2): self._("at {size} {fabrics} are {ratios} times as fast"),
        }[again, min(2, len(found))]
        ratios = self.join(ratio_texts(x)[0] for x in found)
        return template.format(fabrics=self._names(found), ratios=ratios, base=base, size=where)

    @cached_property
    def verdict(self) -> list[str]:
        """
        The clauses of the cover: the headline's smallest and largest size, or its one size and the next test's.

        At most 22 words, or 34 Chinese characters: the first wording that is short enough. What it leaves out stands
        in the lead.
        """
        return next((clauses for clauses in self._verdicts() if self._is_short(clauses)), self._verdicts()[-1])

    def _is_short(self, clauses: list[str]) -> bool:
        """Whether a verdict can be read at a glance; a word of letters or digits counts as one Chinese character."""
        text = " ".join(clauses)
        return len(_SIGN.findall(text)) <= 34 if self.lang == "zh" else len(text.split()) <= 22

    def _verdicts(self) -> list[list[str]]:
        """The wordings of the verdict, the fullest first; the last one is short whatever the data."""
        table, brief = self.c.headline, self.brief
        first, last = table.common_sizes[0], table.common_sizes[-1]
        if first == last:
            second = [[self._of_both(self.second), brief._of_both(brief.second)], []][self.second is None]
            ways = [self._one_size(), *([x] for x in second if x), [self.at(table, first)], [brief.at(table, first)]]
        else:
            ways = [w._two_sizes(table, first, last) for w in (self, brief)]
            ways += [x for w in (self, brief) if (x := w._two_sizes_short(table, first, last))]
            ways += [[brief.counted(table, first), brief.counted(table, last, again=True)]]
        ways += [[brief.counted(table, first)], [self._changes(table)]]
        return [self._closed(way) for way in ways]

    def _closed(self, clauses: list[str]) -> list[str]:
        """Clauses as a sentence: a capital, semicolons, a full stop; clauses of unlike quantities are sentences."""
        clauses = [self.sentence(clauses[0]), *clauses[1:]]
        if len(self.c.headline.common_sizes) == 1:
            return [self._stop(x) for x in clauses]
        return [*(self._("{clause};").format(clause=x) for x in clauses[:-1]), self._stop(clauses[-1])]

    def _one_size(self) -> list[str]:
        """The headline's one size, and the largest of the next test's."""
        table, second = self.c.headline, self.second
        if second is None:
            return [self.at(table, table.common_sizes[0])]
        template = self._("{quantity}: {clause}")
        return [
            template.format(quantity=self.quantity(t.subject), clause=self.at(t, size))
            for t, size in ((table, table.common_sizes[0]), (second, second.common_sizes[-1]))
        ]

    def _of_both(self, second: "Table | None") -> str:
        """One fabric that is ahead, or behind, in both tests: one sentence; empty where they differ."""
        table = self.c.headline
        if second is None or (second.baseline, second.fabrics) != (table.baseline, table.fabrics):
            return ""
        sizes = table.common_sizes[0], second.common_sizes[-1]
        cells = [t.cell(t.others[0], size) for t, size in zip((table, second), sizes, strict=True)]
        verdicts = {x.verdict if x else "" for x in cells}
        if len(table.others) > 1 or verdicts not in ({FASTER}, {SLOWER}):
            return ""
        winner, loser = table.others[0], table.baseline
        if verdicts == {SLOWER}:
            winner, loser = loser, winner
        one, two = (ratio_texts(x, inverse=verdicts == {SLOWER})[0] for x in cells if x)
        names = {"latency": self._("latency"), "bandwidth": self._("bandwidth")}
        return self._(
            "{winner} is {ratio} times as fast as {loser} in {what} at {size}, {ratio2} times in {what2} at {size2}"
        ).format(
            winner=self.label(winner), loser=self.label(loser), ratio=one, ratio2=two, size=self.size(sizes[0]),
            size2=self.size(sizes[1]), what=names.get(table.subject.kind, ""), what2=names.get(second.subject.kind, ""),
        )  # fmt: skip

    def _two_sizes(self, table: "Table", first: int | None, last: int | None) -> list[str]:
        return [self.at(table, first), self.at(table, last, again=True)]

    def _two_sizes_short(self, table: "Table", first: int | None, last: int | None) -> list[str]:
        """All ahead, or all behind, at the first size; at the last one those that still are, in fewer words."""
        cells = [x for f in table.others if (x := table.cell(f, first))]
        ends = [x for f in table.others if (x := table.cell(f, last))]
        if {x.verdict for x in (*cells, *ends)} == {SLOWER} and len(cells) == len(ends):
            ratios = self.join(ratio_texts(x, inverse=True)[0] for x in ends)
            tail = self._("at {size} {ratios} times").format(size=self.size(last), ratios=ratios)
            return [self.at(table, first), tail]
        if {x.verdict for x in cells} != {FASTER} or not {x.verdict for x in ends} <= {FASTER, NO_DIFFERENCE}:
            return []
        still = [x for x in ends if x.verdict == FASTER]
        if not still:
            return [self.at(table, first), self._("at {size} no difference is shown").format(size=self.size(last))]
        template = (
            self._("at {size} {ratios} times") if len(still) == len(ends) else self._("at {size} only {fabrics}, "
                "{ratios} times")
        )  # fmt: skip
        ratios = self.join(ratio_texts(x)[0] for x in still)
        return [
            self.at(table, first),
            template.format(size=self.size(last), fabrics=self._names(still), ratios=ratios),
        ]

    def counted(self, table: "Table", size_bytes: int | None, *, again: bool = False) -> str:
        """How many fabrics one size shows faster, slower, neither; *again*: than the baseline that was just named."""
        words = {
            FASTER: self._("{n} faster"), SLOWER: self._("{n} slower"),
            NO_DIFFERENCE: self._("{n} not shown to differ"), TOO_FEW: self._("{n} with too few runs"),
        }  # fmt: skip
        counts = Counter(x.verdict for f in table.others if (x := table.cell(f, size_bytes)))
        parts = self.clauses(word.format(n=counts[v]) for v, word in words.items() if counts[v])
        template = self._("at {size} {parts}") if again else self._("Against {base} at {size}: {parts}")
        return template.format(
            base=self.label(table.baseline), size=self.size(size_bytes), parts=parts or self._("not measured")
        )

    def _changes(self, table: "Table") -> str:
        return self._("Which of {n} fabrics is faster depends on the test and the message size").format(
            n=len(table.fabrics)
        )

    def _stop(self, sentence: str) -> str:
        return self._("{sentence}.").format(sentence=sentence)

    @cached_property
    def second(self) -> "Table | None":
        """The best table of another kind than the headline's: a bandwidth beside a latency."""
        kinds = {"latency": "bandwidth", "bandwidth": "latency", "collective": "latency"}
        return self.c.first(kinds[self.c.headline.subject.kind])

    def lead(self) -> str:
        """The lines under the verdict: the exact conditions of its clauses, what it leaves out, what a factor is."""
        table, second = self.c.headline, self.second if len(self.c.headline.common_sizes) == 1 else None
        if table.subject.kind == "collective":
            factor = self._("A factor is a ratio of times of one {operation}, from {runs}.").format(
                operation=self.operation(table.subject), runs=self.runs(table)
            )
            parts = [self._stop(self.subject_line(table.subject)), *self._left_unsaid(second), factor]
            shown = [second] if second else []
        else:
            parts, shown = self._left_unsaid(second), [table, *([second] if second else [])]
        parts += [
            self._("{quantity}: {subject}, from {runs}.").format(
                quantity=self.quantity(t.subject), subject=self.subject_line(t.subject), runs=self.runs(t)
            )
            for t in shown
        ]
        if any(t.subject.tests for t in (table, *shown)):
            parts.append(self._("Unlike tools stand beside each other where the campaign file declares so."))
        return self.text([*parts, *dict.fromkeys(x for t in (table, *shown) for x in self._without_size(t))])

    def _left_unsaid(self, second: "Table | None") -> list[str]:
        """The clauses of the fullest verdict in which the verdict was shortened."""
        table = self.c.headline
        ends = [(table, table.common_sizes[0]), (table, table.common_sizes[-1])]
        if second is not None:
            ends[1] = second, second.common_sizes[-1]
        clauses = list(dict.fromkeys(self.reading(t, size) for t, size in ends))
        return [] if self.verdict == self._verdicts()[0] else clauses

    def named_tests(self, table: "Table") -> str:
        """Which test stands for which fabric, where they are not the same one."""
        pairs = [
            self._("{fabric}: {test}").format(fabric=self.label(f), test=self._test(table, f, t))
            for f, t in table.subject.tests
            if f in table.fabrics
        ]
        declared = self._("Unlike tools, declared to measure the same: {pairs}.").format(pairs=self.series(pairs))
        return self.text([declared, *self._without_size(table)])

    def _without_size(self, table: "Table") -> list[str]:
        """The fabrics whose test states no message size, and beside which size the campaign file sets it."""
        template = self._("{fabric}: the test states no message size; the campaign file sets it beside {size}.")
        return [template.format(fabric=self.label(f), size=self.size(table.of(f)[0].size_bytes)) for f in table.streams]

    def _test(self, table: "Table", fabric: str, test: str) -> str:
        """A test with the configuration that its runs share."""
        row = table.points.filter(table.points["fabric"] == fabric).row(0, named=True)
        subject = replace(table.subject, **{k: row[k] for k in TEST_KEY})
        how = self.clauses(self._configuration(subject))
        return self._("{test} ({how})").format(test=test, how=how) if how else test

    def title(self, table: "Table") -> str:
        """A finding over the range of sizes, with short names where it would not fit on two lines."""
        ways = [self._title(table), self.brief._title(table)]
        return next((x for x in ways if _columns(x) <= _TITLE_COLUMNS), self._counted_title(table))

    def _counted_title(self, table: "Table") -> str:
        """Many fabrics: how many of their ratios show what."""
        cells = [x for x in table.cells if x.ratio is not None]
        words = {
            FASTER: self._("{n} faster"), SLOWER: self._("{n} slower"),
            NO_DIFFERENCE: self._("{n} not shown to differ"), TOO_FEW: self._("{n} with too few runs"),
        }  # fmt: skip
        counts = Counter(x.verdict for x in cells)
        parts = self.clauses(word.format(n=counts[v]) for v, word in words.items() if counts[v])
        return self._("{all} ratios of {n} fabrics to {base}: {parts}").format(
            all=len(cells), n=len(table.others), base=self.label(table.baseline), parts=parts
        )

    def _title(self, table: "Table") -> str:
        """Where a fabric is faster, slower, or not shown to differ."""
        if not any(x.verdict in (FASTER, SLOWER, NO_DIFFERENCE) for x in table.cells):
            return self._("Too few runs to rank: {runs}, and an interval needs {least}").format(
                runs=self.runs(table), least=MIN_RUNS
            )
        base, groups = self.label(table.baseline), self._by_verdict(table)
        uniform = [
            self._uniform(verdict, cells, base, again=i > 0)
            for i, (verdict, cells) in enumerate(groups.items())
            if verdict
        ]
        changing = _by_fabric(groups.get("", []))
        if len(changing) > 2:
            names = self.join(self.label(f) for f in changing)
            told = self._("{fabrics} against {base}: the verdict changes with the size")
            return self.series([*uniform, told.format(fabrics=names, base=base)])
        mixed = [self._mixed_sentence(self.label(f), base, cells) for f, cells in changing.items()]
        return self.series([*uniform, *mixed])

    def _by_verdict(self, table: "Table") -> "dict[str, list[Cell]]":
        """Verdict → cells of the fabrics that have it at every size; "" → of those whose verdict changes."""
        out: dict[str, list[Cell]] = defaultdict(list)
        for fabric in table.others:
            cells = [x for x in table.of(fabric) if x.ratio is not None]
            kinds = {x.verdict for x in cells}
            out[kinds.pop() if len(kinds) == 1 else ""] += cells
        return {v: out[v] for v in (FASTER, SLOWER, NO_DIFFERENCE, TOO_FEW, "") if v in out}

    def _uniform(self, verdict: str, cells: "list[Cell]", base: str, *, again: bool) -> str:
        """Fabrics whose verdict is the same at all sizes; *again* leaves out the baseline that was just named."""
        fabrics = list(_by_fabric(cells))
        one = len(fabrics) == 1
        if verdict == FASTER:
            template = (
                self._("{fabrics} is {range} times as fast as {base}")
                if one
                else self._("{fabrics} are {range} times as fast as {base}")
            )
        else:
            template = {
                SLOWER: self._("{base} is faster: {range} times as fast as {fabrics}"),
                NO_DIFFERENCE: self._("no difference is shown for {fabrics}") if again else self._("no difference is "
                    "shown between {fabrics} and {base}"),
                TOO_FEW: self._("too few runs to rank {fabrics}"),
            }[verdict]  # fmt: skip
        told = self._range(cells, inverse=verdict == SLOWER) if verdict in (FASTER, SLOWER) else ""
        return template.format(fabrics=self.join(map(self.label, fabrics)), base=base, range=told)

    def _mixed_sentence(self, name: str, base: str, cells: "list[Cell]") -> str:
        """Verdicts change along the sizes: say up to where the first holds, and what comes behind it."""
        first = cells[0].verdict
        change = next(i for i, x in enumerate(cells) if x.verdict != first)
        head, tail = cells[:change], cells[change:]
        if len({x.verdict for x in tail}) > 1:
            return self._counted(name, base, cells)
        pairs = {
            (FASTER, SLOWER): self._("{fabric} is faster than {base} up to {size}, slower above"),
            (FASTER, NO_DIFFERENCE): self._("{fabric} is faster than {base} up to {size}, no difference shown above"),
            (FASTER, TOO_FEW): self._("{fabric} is faster than {base} up to {size}, too few runs above"),
            (SLOWER, FASTER): self._("{fabric} is slower than {base} up to {size}, faster above"),
            (SLOWER, NO_DIFFERENCE): self._("{fabric} is slower than {base} up to {size}, no difference shown above"),
            (SLOWER, TOO_FEW): self._("{fabric} is slower than {base} up to {size}, too few runs above"),
            (NO_DIFFERENCE, FASTER): self._("{fabric} is not shown to differ from {base} up to {size}, faster above"),
            (NO_DIFFERENCE, SLOWER): self._("{fabric} is not shown to differ from {base} up to {size}, slower above"),
            (NO_DIFFERENCE, TOO_FEW): self._(
                "{fabric} is not shown to differ from {base} up to {size}, too few runs above"
            ),
            (TOO_FEW, FASTER): self._("{fabric} against {base}: too few runs up to {size}, faster above"),
            (TOO_FEW, SLOWER): self._("{fabric} against {base}: too few runs up to {size}, slower above"),
            (TOO_FEW, NO_DIFFERENCE): self._(
                "{fabric} against {base}: too few runs up to {size}, no difference shown above"
            ),
        }
        return pairs[first, tail[0].verdict].format(fabric=name, base=base, size=self.size(head[-1].size_bytes))

    def _counted(self, name: str, base: str, cells: "list[Cell]") -> str:
        """A fabric whose verdict changes more than once: at how many sizes which one holds."""
        templates = {
            FASTER: self._("faster at {n}"), SLOWER: self._("slower at {n}"),
            NO_DIFFERENCE: self._("no difference shown at {n}"), TOO_FEW: self._("too few runs at {n}"),
        }  # fmt: skip
        counts = {v: sum(x.verdict == v for x in cells) for v in templates}
        parts = self.clauses(templates[v].format(n=n) for v, n in counts.items() if n)
        return self._("{fabric} against {base}, of {all} sizes: {parts}").format(
            fabric=name, base=base, all=len(cells), parts=parts
        )

    def _range(self, cells: "list[Cell]", *, inverse: bool = False) -> str:
        low, high = _extremes(cells)
        texts = [ratio_texts(x, inverse=inverse)[0] for x in ((high, low) if inverse else (low, high))]
        return texts[0] if texts[0] == texts[1] else self._("{low} to {high}").format(low=texts[0], high=texts[1])

    def time_title(self, table: "Table") -> str:
        """What each fabric takes at the smallest common size."""
        size = table.common_sizes[0]
        scale, unit = self.time_scale(table, size)
        cells = [x for f in table.fabrics if (x := table.cell(f, size))]
        shown = cells if len(cells) <= 3 else [min(cells, key=lambda x: x.median), max(cells, key=lambda x: x.median)]
        values = [
            self._("{fabric} {value}").format(
                fabric=self.label(x.fabric), value=f"{value_texts(x, scale)[0]}{NBSP}{unit}"
            )
            for x in shown
        ]
        template = (
            self._("{quantity} at {size}: {parts}")
            if shown == cells
            else self._("{quantity} at {size}, from the fastest to the slowest: {parts}")
        )
        return template.format(quantity=self.quantity(table.subject), size=self.size(size), parts=self.clauses(values))

    def time_scale(self, table: "Table", size_bytes: int | None) -> tuple[float, str]:
        """The unit in which one size of a table of times is printed: that which suits the baseline."""
        base = table.cell(table.baseline, size_bytes)
        return time_unit(base.median) if base else (1.0, "µs")

    def ratio_title(self, table: "Table") -> str:
        """The size at which each fabric is farthest ahead of the baseline, or behind it."""
        parts = []
        far = {f: self._farthest(table, f) for f in table.others}
        if all(x.ratio_low is None for x in table.cells):
            return self._("Too few runs for an interval of a ratio to {base}").format(base=self.label(table.baseline))
        if not any(far.values()):
            return self._("No interval of a ratio to {base} excludes 1").format(base=self.label(table.baseline))
        for fabric, x in self._outermost(far):
            words = {FASTER: self._("{fabric} {ratio} times at {size}"),
                     SLOWER: self._("{fabric} behind, 1/{inverse} at {size}")}  # fmt: skip
            template = words[x.verdict] if x else self._("{fabric}: no difference shown")
            if x is None and all(y.verdict != NO_DIFFERENCE for y in table.of(fabric)):
                template = self._("{fabric} not ranked")
            parts.append(
                template.format(
                    fabric=self.label(fabric), ratio=ratio_texts(x)[0] if x else "", size=self.size(x.size_bytes)
                    if x else "", inverse=ratio_texts(x, inverse=True)[0] if x else "",
                )
            )  # fmt: skip
        return self._("Farthest from {base}: {parts}").format(
            base=self.label(table.baseline), parts=self.clauses(parts)
        )

    @staticmethod
    def _outermost(far: "dict[str, Cell | None]") -> "list[tuple[str, Cell | None]]":
        """All fabrics, or of more than three the two that are farthest from the baseline."""
        if len(far) <= 3:
            return sorted(far.items(), key=lambda pair: pair[1] is None)
        return sorted(far.items(), key=lambda pair: -abs(math.log(pair[1].ratio or 1)) if pair[1] else 1.0)[:2]

    def _farthest(self, table: "Table", fabric: str) -> "Cell | None":
        """The cell of the largest ratio of those that are faster; where none is, of the smallest that are slower."""
        cells = [x for x in table.of(fabric) if x.ratio is not None]
        faster = [x for x in cells if x.verdict == FASTER]
        slower = [x for x in cells if x.verdict == SLOWER]
        if faster:
            return max(faster, key=lambda x: x.ratio or 0)
        return min(slower, key=lambda x: x.ratio or 0) if slower else None

    def follows(self, table: "Table") -> list[tuple[str, str]]:
        """(for whom, what follows) for small and for large messages, and what these runs do not speak for."""
        out = []
        small, large = parts_of(table)
        if small:
            head = self._("If your job moves small messages, up to {size}")
            out.append(
                (head.format(size=self.size(small.common_sizes[-1])), self._stop(self.sentence(self._title(small))))
            )
        if large:
            head = self._("If it moves large messages, from {size}")
            out.append(
                (head.format(size=self.size(large.common_sizes[0])), self._stop(self.sentence(self._title(large))))
            )
        silent = self._(
            "Other ranks, other operations, a network under other load: these runs speak only for the conditions above."
        )
        return [*out, (self._("What would change this"), silent)] if out else []

    def half_of_limit(self, table: "Table") -> str:
        """From which size on each fabric uses half of its limit."""
        parts = []
        if not any(x.utilization for x in table.cells):
            return self._("No limit is known, so there is no share of it.")
        for fabric in table.fabrics:
            shares = [(x.size_bytes, x.utilization) for x in table.of(fabric) if x.utilization]
            reached = next((s for s, y in shares if y.median >= 50), None)
            name = self.label(fabric)
            if not shares:
                parts.append(self._("{fabric}: no limit known").format(fabric=name))
            elif reached is None:
                most = max((y for _, y in shares), key=lambda y: y.median)
                parts.append(
                    self._("{fabric}: not reached, at most {percent}").format(
                        fabric=name, percent=self.percent(value_texts(most)[0])
                    )
                )
            else:
                parts.append(self._("{fabric}: {size}").format(fabric=name, size=self.size(reached)))
        return self._("Half of the limit is reached at: {parts}.").format(parts=self.series(parts))

    def left_out(self, table: "Table") -> str:
        """How many runs of the kind were left out, and why; the ends and directions that count elsewhere not."""
        nothing = ("other ", "no rows", "no_data")
        gone = [
            (r["fabric"], why)
            for r in self.c.runs.iter_rows(named=True)
            if r["kind"] in (table.subject.kind, None)
            and (why := r["excluded_because"])
            and not why.startswith(nothing)
        ]
        if not gone:
            return self._("No run was left out but those that count elsewhere or print no result.")
        words = {
            "failed": self._("the benchmark failed"), "truncated": self._("cut before its end"),
            "wrong data": self._("the benchmark found wrong data"),
        }  # fmt: skip
        parts = [
            self._("{fabric}: {runs} ({why})").format(
                fabric=self.label(f), runs=self.count(n), why=words.get(why, self.stated(why))
            )
            for (f, why), n in Counter(gone).items()
        ]
        return self._("Left out: {parts}.").format(parts=self.series(parts))

    def told_sizes(self, table: "Table") -> "list[int | None]":
        """The sizes that the title and the readings speak of: tables and charts beside them must print these."""
        sizes = [table.compared_sizes[0], table.compared_sizes[-1], table.common_sizes[0], table.common_sizes[-1]]
        for verdict, cells in self._by_verdict(table).items():
            if verdict in (FASTER, SLOWER):
                sizes += [x.size_bytes for x in _extremes(cells)]
            if not verdict:
                sizes += [c[-1].size_bytes for c in map(_head, _by_fabric(cells).values())]
        sizes += [x.size_bytes for f in table.others if (x := self._farthest(table, f))]
        if table is self.c.headline:
            sizes += [s for part in parts_of(table) if part for s in self.told_sizes(part)]
        return [s for s in table.compared_sizes if s in sizes]

    def throughput_title(self, table: "Table") -> str:
        """What each fabric moves at the largest size."""
        collective = table.subject.kind == "collective"
        size, unit = table.common_sizes[-1], "GB/s" if collective else "Gb/s"
        found = {f: x.busbw if collective else x for f in table.fabrics if (x := table.cell(f, size))}
        names, order = self._told(table, {f: x.median for f, x in found.items() if x})
        parts = []
        for fabric in names:
            shown = found.get(fabric)
            template = self._("{fabric} {value}") if shown else self._("{fabric} not measured")
            value = f"{value_texts(shown)[0]}{NBSP}{unit}" if shown else ""
            parts.append(template.format(fabric=self.label(fabric), value=value))
        template = self._("Bus bandwidth at {size}: {parts}") if collective else self._("Bandwidth at {size}: {parts}")
        return template.format(size=self.size(size), parts=order.format(parts=self.clauses(parts)))

    def _told(self, table: "Table", values: dict[str, float]) -> tuple[list[str], str]:
        """(the fabrics that a title names, how it says that these are not all): of more than three the two ends."""
        if len(table.fabrics) <= 3 or len(values) < 2:
            return list(table.fabrics)[:3], "{parts}"
        ends = [min(values, key=lambda f: values[f]), max(values, key=lambda f: values[f])]
        return ends, self._("of {n}, the lowest and the highest: ").format(n=len(values)) + "{parts}"

    def utilization_title(self, table: "Table") -> str:
        """The share of the own limit at the largest size."""
        size = table.common_sizes[-1]
        shares = {f: x.utilization.median for f in table.fabrics if (x := table.cell(f, size)) and x.utilization}
        names, order = self._told(table, shares)
        return self._("Of their own limits at {size}: {parts}").format(
            size=self.size(size), parts=order.format(parts=self.shares(table, size, names))
        )

    def shares(self, table: "Table", size_bytes: int | None, fabrics: "Sequence[str]" = ()) -> str:
        """``TCP 47 %, RoCEv2 50 %``: the use of each own limit at one size."""
        parts = []
        for fabric in fabrics or table.fabrics:
            cell = table.cell(fabric, size_bytes)
            value = self.percent(value_texts(cell.utilization)[0]) if cell and cell.utilization else ""
            template = self._("{fabric} {value}") if value else self._("{fabric} not known")
            parts.append(template.format(fabric=self.label(fabric), value=value))
        return self.clauses(parts)

    def percent(self, value: str) -> str:
        """``47 %``."""
        return self._("{value}\u00a0%").format(value=value)

    def reading(self, table: "Table", size_bytes: int | None) -> str:
        """One size in full sentences, for the columns under a chart."""
        return self._stop(self.sentence(self.at(table, size_bytes)))

    def short_reading(
        self, table: "Table", size_bytes: int | None, mark: "Callable[[str], str]" = lambda text: text
    ) -> str:
        """One size in few words, for a row of the summary; *mark* goes around the factors and the silence."""
        templates = {
            FASTER: self._("{fabric}: {ratio} times as fast."),
            SLOWER: self._("{base} is {inverse} times as fast as {fabric}."),
            NO_DIFFERENCE: self._("{fabric}: {nothing}."),
            NOT_MEASURED: self._("{fabric}: a value of 0 gives no ratio."),
            TOO_FEW: self._("{fabric}: {runs} against {others}, not ranked."),
        }  # fmt: skip
        base = table.cell(table.baseline, size_bytes)
        said = []
        for fabric in table.others:
            if (x := table.cell(fabric, size_bytes)) is None:
                said.append(self._("{fabric}: not measured.").format(fabric=self.label(fabric)))
                continue
            said.append(
                templates[x.verdict].format(
                    fabric=self.label(fabric), base=self.label(table.baseline), ratio=mark(ratio_texts(x)[0]),
                    inverse=mark(ratio_texts(x, inverse=True)[0]), runs=self.count(x.n), others=base.n if base else 0,
                    nothing=mark(self._("no difference shown")),
                )
            )  # fmt: skip
        return self.text(said)

    # -- what stands out ------------------------------------------------------------------------------------------

    def findings(self, f: "Findings") -> list[tuple[str, list[str]]]:
        """(heading, sentences) of what stands out; nothing where nothing is known."""
        parts = [
            (self._("Where a fabric wins"), [self._win(w) for w in f.wins]),
            (self._("Dips and steps"), [self._notch(n) for n in f.notches.iter_rows(named=True)]),
            (self._("Runs that stand out"), [self._odd(r) for r in f.odd_runs.iter_rows(named=True)]),
            (self._("Levels that changed"), [self._change(r) for r in f.changes.iter_rows(named=True)]),
            (self._("What more runs would decide"), [self._open_cell(u) for u in f.undecided]),
        ]
        return [(head, said) for head, said in parts if said]

    def _named(self, s: "Subject") -> str:
        """A measurand in few words: test and placement."""
        place = {"in_place": self._("in place"), "out_of_place": self._("out of place")}.get(s.placement or "")
        name = self.sentence(self.operation(s)) if s.kind == "collective" else self.operation(s)
        return self.clauses([name, *([place] if place else [])])

    def _of_row(self, r: dict[str, Any]) -> str:
        """The same from the fields of a row."""
        place = {"in_place": self._("in place"), "out_of_place": self._("out of place")}.get(r["placement"] or "")
        collective = r["kind"] == "collective"
        name = self.sentence(self.collective(r["operation"] or "")) if collective else str(r["test"])
        return self.clauses([name, *([place] if place else [])])

    def _win(self, w: "Win") -> str:
        template = self._("{test}: {fabric} is faster than {base} from {size} on.")
        if w.everywhere:
            template = self._("{test}: {fabric} is faster than {base} at every compared size.")
        return template.format(
            test=self._named(w.table.subject), fabric=self.label(w.fabric), base=self.label(w.table.baseline),
            size=self.size(w.size_bytes),
        )  # fmt: skip

    def _notch(self, n: dict[str, Any]) -> str:
        template = {
            "dip": self._(
                "{test}, {fabric}: at {size} {share} of the bandwidth between its neighbours is missing, in {k} of {n} "
                "runs."
            ),
            "step": self._(
                "{test}, {fabric}: at {size} the bandwidth is {share} below that of the next smaller size, in {k} of "
                "{n} runs."
            ),
        }[n["shape"]]
        return template.format(
            test=self._of_row(n), fabric=self.label(n["fabric"]), size=self.size(n["size_bytes"]),
            share=self.percent(number_text(n["missing_pct"], 2)), k=n["runs_with"], n=n["runs"],
        )  # fmt: skip

    def _odd(self, r: dict[str, Any]) -> str:
        path, root = str(r["path"]), self.c.campaign.get("root")
        return self._(
            "{path}, line {line}: {k} of {n} sizes of {test} lie more than 3.5 robust deviations and 2 % from the "
            "median of {fabric}; it is not left out."
        ).format(
            path=path.removeprefix(f"{root}/") if root else path.rpartition("/")[2], line=r["line"] or 1, k=r["sizes"],
            n=r["of"], test=self._of_row(r), fabric=self.label(r["fabric"]),
        )  # fmt: skip

    def _change(self, r: dict[str, Any]) -> str:
        unit = {"time_us": "µs", "lat_typical_us": "µs"}.get(r["metric"], "Gb/s")
        return self._(
            "{test}, {fabric} at {size}: the level changed from {before} to {after} {unit} in the order of time, p = "
            "{p}."
        ).format(
            test=self._of_row(r), fabric=self.label(r["fabric"]), size=self.size(r["size_bytes"]),
            before=number_text(r["median_before"], 3), after=number_text(r["median_after"], 3), unit=unit,
            p=number_text(r["p_value"], 2),
        )  # fmt: skip

    def _open_cell(self, u: "Undecided") -> str:
        return self._(
            "{test} at {size}, {fabric} against {base}: about {n} runs a side would decide, if ratio and scatter stay."
        ).format(
            test=self._named(u.table.subject), size=self.size(u.size_bytes), fabric=self.label(u.fabric),
            base=self.label(u.table.baseline), n=u.runs,
        )  # fmt: skip

    # -- transport, pairs, use ------------------------------------------------------------------------------------

    def proof(self, run: dict[str, Any]) -> str | None:
        """The path that a run's own log proves, in the words of the log; None without a proof."""
        verdict, family = run["transport_verdict"], run["fabric_printed"]
        paths = {
            "ib": self.clauses(["NET/IB", "InfiniBand"]), "roce": self.clauses(["NET/IB", "RoCE"]),
            "socket": "NET/Socket", "ofi": "NET/OFI",
            "intra_node": self._("inside the node"),
        }  # fmt: skip
        if run["kind"] == "collective" and verdict in paths:
            return paths[verdict]
        if family in (None, "unknown"):
            return None
        return (
            self._("verbs (perftest)")
            if run["tool"] == "perftest"
            else self._("kernel TCP")
            if family == "tcp"
            else str(run["tool"])
        )

    def gpudirect(self, found: set[str]) -> str:
        """What the channel lines say of GPUDirect RDMA."""
        if not found:
            return self._("not stated")
        words = {"all": "GDRDMA", "none": self._("not used"), "mixed": self._("some connections")}
        return words[found.pop()] if len(found) == 1 else words["mixed"]

    def fallback(self, fabric: str, reason: str, runs: int) -> str:
        """Runs that did not use what their fabric's name says."""
        template = (
            self._("One {fabric} run {reason}. It is not counted as {fabric}.") if runs == 1
            else self._("{n} {fabric} runs {reason}. They are not counted as {fabric}.")
        )  # fmt: skip
        return template.format(fabric=self.label(fabric), reason=self.stated(reason), n=runs)

    def pairs_title(self, pairs: "Pairs") -> str:
        """Who is slow, or that nobody stands out."""
        slow = pairs.slow_hosts
        if not slow:
            return self._("No host stands out among {n}").format(n=len(pairs.hosts))
        if len(slow) > 3:
            return self._("{k} of {n} hosts are slow with most of their partners").format(
                k=len(slow), n=len(pairs.hosts)
            )
        return self._("Slow with their partners: {hosts}").format(hosts=self.join(slow))

    def pairs_line(self, pairs: "Pairs") -> str:
        """The conditions of the matrix."""
        place = self._("out of place") if pairs.placement == "out_of_place" else self._("in place")
        return self._(
            "Bus bandwidth of {operation}, {dtype}, {place}, {ranks} ranks on 2 nodes at {size}, GB/s; {fabric}, "
            "{pairs} pairs, {runs} runs."
        ).format(
            operation=self.collective(pairs.test), dtype=pairs.dtype, place=place, ranks=pairs.ranks,
            size=self.size(pairs.size_bytes), fabric=self.label(pairs.fabric), pairs=len(pairs.values),
            runs=pairs.runs,
        )  # fmt: skip

    def slow_hosts(self, pairs: "Pairs") -> str:
        """The medians of the slow hosts against the others."""
        slow = pairs.slow_hosts
        medians = {h: m for h in pairs.hosts if (m := pairs.median_of(h)) is not None}
        rest = [m for h, m in medians.items() if h not in slow]
        if not slow or not rest:
            return self._("The medians of the hosts lie between {low} and {high} GB/s.").format(
                low=number_text(min(medians.values())), high=number_text(max(medians.values()))
            )
        return self._("{hosts}: {values} GB/s in the median of their pairs; the others {low} to {high}.").format(
            hosts=self.join(slow), values=self.join(number_text(medians[h]) for h in slow),
            low=number_text(min(rest)), high=number_text(max(rest)),
        )  # fmt: skip

    def unmeasured_pairs(self, pairs: "Pairs") -> str:
        """Pairs without a run, and that sender and receiver are not told apart."""
        text = self._("Which of the two hosts of a pair is the slow one in one direction: a collective loads both.")
        if not pairs.missing:
            return self.text([self._("Every pair was measured."), text])
        return self.text([self._("{n} pairs were not measured.").format(n=len(pairs.missing)), text])

    def use(self, kind: str) -> str:
        """What a share of use is a share of."""
        return {
            "gpu_busy": self._("GPU: time with a kernel resident"), "sm_active": self._("GPU: SM active"),
            "gpu_memory": self._("GPU memory: time busy"), "cpu_sender": self._("CPU of the sender, % of one core"),
            "cpu_receiver": self._("CPU of the receiver, % of one core"), "cpu_all": self._("CPU, % of all cores"),
        }[kind]  # fmt: skip

    def busiest(self, kind: str, fabric: str, median_pct: float) -> str:
        """The largest use of what was measured."""
        return self._("{what}: {value} in the median on {fabric}").format(
            what=self.use(kind), value=number_text(median_pct), fabric=self.label(fabric)
        )

    def remarks_on_use(self, kinds: set[str], *, costs: bool) -> list[str]:
        """What must stand beside the figures of use that are shown."""
        out = [self.spinning_kernels()] if kinds & {"gpu_busy", "sm_active", "gpu_memory"} else []
        if costs:
            out.append(
                self._(
                    "Core seconds per 10^9 bytes are the CPU use of one end, in cores, over the throughput in GB/s; "
                    "both as iperf3 prints them."
                )
            )
        return out

    def doubt(self, code: str) -> str:
        """What the code of a note says of numbers that disagree."""
        return {
            "size_time_mismatch": self._("Size, time and algbw of a row disagree"),
            "average_mismatch": self._("The mean of the rows is not the average that the tool printed"),
            "implied_ranks": self._("busbw / algbw implies another number of ranks than the log names"),
            "unit_conflict": self._("Size and message rate refute the unit of a header; the proved one was taken"),
        }[code]

    def spinning_kernels(self) -> str:
        """The sentence that stands under every figure of GPU use."""
        return self._(
            "GPU use counts the time in which any kernel is resident. NCCL kernels spin while they wait for the "
            "network, so a network-bound job shows 100 %: it is no proof of useful work."
        )

    def seconds(self, value: float | None) -> str:
        """Core seconds, or that they were not measured."""
        return self._("not measured") if value is None else number_text(value)

    # -- what limits, what differs, what is missing ----------------------------------------------------------------

    def limits(self, table: "Table") -> list[str]:
        """The limit of every fabric with its formula, or the fact that is missing."""
        out = []
        for fabric in table.fabrics:
            cells = table.of(fabric)
            formulas = {(x.limit_gbyte_s, x.limit_formula) for x in cells}
            if len(formulas) == 1 and (value := cells[0].limit_gbyte_s) is not None:
                shown = value if table.subject.kind == "collective" else value * 8
                unit = "GB/s" if table.subject.kind == "collective" else "Gb/s"
                out.append(
                    self._("{fabric}: {limit} = {formula}").format(
                        fabric=self.label(fabric), limit=f"{number_text(shown, 4)}{NBSP}{unit}",
                        formula=self.formula(str(cells[0].limit_formula)),
                    )
                )  # fmt: skip
            else:
                missing = next((x.limit_missing for x in cells if x.limit_missing), "the runs have different limits")
                out.append(
                    self._("{fabric}: no limit known ({missing})").format(
                        fabric=self.label(fabric), missing=self.stated(missing)
                    )
                )
        return out

    def formula(self, text: str) -> str:
        """A formula with the signs of mathematics."""
        return self.stated(text).replace(" x ", " × ").replace(" - ", " \u2212 ")

    def limit_sources(self, table: "Table") -> str:
        """What the limits rest on: what they share, then what is one fabric's; empty where no limit is known."""
        by_part: dict[str, list[str]] = defaultdict(list)
        for fabric in table.fabrics:
            told = {x.limit_source for x in table.of(fabric) if x.limit_source}
            for part in dict.fromkeys(p for source in sorted(told) for p in source.split("; ")):
                by_part[part].append(fabric)
        known = {f for fabrics in by_part.values() for f in fabrics}
        parts = [self.stated(p) for p, fabrics in by_part.items() if len(fabrics) == len(known)]
        parts += [
            self._("for {fabrics} {source}").format(
                fabrics=self.join(map(self.label, fabrics)), source=self.stated(part)
            )
            for part, fabrics in by_part.items()
            if len(fabrics) < len(known)
        ]
        return self._("Sources: {parts}").format(parts=self.series(parts)) if parts else ""

    def explained(self, table: "Table", fabric: str) -> str:
        """What the logs of a fabric state that lifts its limit: a switch or NVLink hardware that adds numbers up."""
        part = table.points.filter(table.points["fabric"] == fabric)
        stated = sorted({str(a) for a in part["algorithm"].drop_nulls() if _IN_NETWORK.search(str(a))})
        if not stated:
            return ""
        return self._("{algorithm} in use, as the logs state: this limit does not apply.").format(
            algorithm=self.listed(stated)
        )

    def above_limit(self, table: "Table") -> list[str]:
        """One warning for every fabric that exceeds its limit: it is never printed without a word."""
        out = []
        for fabric in table.fabrics:
            over = [
                (x.utilization, x.size_bytes)
                for x in table.of(fabric)
                if x.utilization and x.utilization.median > ABOVE_PCT
            ]
            if over:
                share, size = max(over, key=lambda pair: pair[0].median)
                cause = self.explained(table, fabric) or self._(
                    "the link rate, the ports or the domain in the campaign file are wrong, or part of the traffic did "
                    "not cross this link."
                )
                out.append(
                    self._("{fabric} stands above its limit in {operation} at {size} ({percent} %): {cause}").format(
                        fabric=self.label(fabric),
                        operation=self.operation(table.subject),
                        size=self.size(size),
                        percent=value_texts(share)[0],
                        cause=cause,
                    )
                )
        return out

    def residue(self, table: "Table") -> str:
        """What differs inside the selection besides the fabric."""
        names = {
            "nodes": self._("nodes"), "gpu_model": self._("GPU"), "library_version": self._("library version"),
            "tool_version": self._("tool version"),
            "device": self._("device"), "mtu_bytes": "MTU", "run_iterations": self._("iterations"),
            "hosts": self._("hosts"),
            "warmup_iterations": self._("warm-up iterations"), "connection": self._("connection"),
            "queue_pairs": self._("queue pairs"), "streams": self._("streams"),
            "iterations": self._("iterations per row"),
            "gid_index": self._("GID index"), "transport_gdr": self._("GPUDirect RDMA"),
            "duration_s": self._("duration in s"),
            "algorithm": self._("algorithm"), "nccl_protocol": self._("protocol of the collective"),
        }  # fmt: skip
        tests = dict(table.subject.tests)
        parts = []
        for name, stated in table.residue.items():
            ordered = {f: stated[f] for f in table.fabrics if f in stated}
            by_fabric = _comparable(ordered, tests) if tests else ordered
            if by_fabric:
                values = self.series(
                    self._("{fabric} {value}").format(fabric=self.label(f), value=self._values(name, v))
                    for f, v in by_fabric.items()
                )
                parts.append(self._("{test} ({how})").format(test=names[name], how=values))
        if not parts:
            return self._("Nothing else that the logs state.")
        return self._("Besides the fabric: {parts}.").format(parts=self.series(parts))

    def _values(self, name: str, values: list[Any]) -> str:
        """What runs state of one thing, the first three."""
        words = {"None": self._("not stated")}
        if name == "transport_gdr":
            words |= {"all": self._("all"), "none": self._("none"), "mixed": self._("mixed")}
        shown = ["+".join(v) if isinstance(v, tuple) else words.get(str(v), str(v)) for v in values]
        return self.listed(shown[:3]) + ("…" if len(shown) > 3 else "")

    def refusal(self, refusal: "Refusal", *, full: bool = False) -> tuple[str, str, str]:
        """(what, why, what closes it) of something that could not be compared; *full* names every configuration."""
        named = self.subject_line if full or len(refusal.subjects) < 4 else self.operation
        tests = list(dict.fromkeys(named(s) or self._("unnamed collective") for s in refusal.subjects))
        shown = self.series(
            tests if full or len(tests) <= 6 else [*tests[:5], self._("{n} more").format(n=len(tests) - 5)]
        )
        if refusal.reason in ("sizes", "unpaired"):
            shown = self._("{tests}: {sizes}").format(tests=shown, sizes=self._sizes(refusal.sizes))
        have, lack = self.join(map(self.label, refusal.fabrics)), self.join(map(self.label, refusal.missing))
        why, closes = self._reasons()[refusal.reason]
        because = [why.format(have=have, lack=lack), *([self._differs(refusal)] if refusal.differs else [])]
        return self._stop(shown), self.text(because), closes.format(n=MIN_RUNS, lack=lack)

    def difference(self, d: "Difference") -> str:
        """A field that must agree and does not, with its value on the other side: ``ranks 8``."""
        return f"{self._field(d)} {self._stated(d.there)}"

    def _field(self, d: "Difference") -> str:
        """The name of a field of the keys."""
        return {
            "dtype": self._("type"), "redop": self._("reduction"), "root": self._("root"), "ranks": self._("ranks"),
            "communicator_ranks": self._("ranks a communicator"), "nodes": self._("nodes"),
            "placement": self._("placement"), "aggregated_iterations": self._("operations an iteration"),
            "tool": self._("tool"), "test": self._("test"), "bidirectional": self._("both directions"),
            "memory": self._("memory"), "latency_convention": self._("latency"), "connection": self._("connection"),
            "queue_pairs": self._("QPs"), "streams": self._("streams"), "protocol": self._("protocol"),
            "side": self._("printed by"), "reverse": self._("sent by the server"),
        }[d.field]  # fmt: skip

    def _stated(self, value: Any) -> str:
        """A value of a field of the keys."""
        return {
            "in_place": self._("in place"), "out_of_place": self._("out of place"), "None": self._("not stated"),
            "one_way": self._("one way (half the round trip)"), "round_trip": self._("full round trip"),
            "True": self._("yes"), "False": self._("no"), "client": self._("client"), "server": self._("server"),
        }.get(str(value), str(value))  # fmt: skip

    def _differs(self, refusal: "Refusal") -> str:
        """In what the nearest measurand of the other fabrics is another one."""
        told = [
            self._("{field} {here} against {there}").format(
                field=self._field(d), here=self._stated(d.here), there=self._stated(d.there)
            )
            for d in refusal.differs
        ]
        return self._("The nearest test of the others differs: {fields}.").format(fields=self.clauses(told))

    def _sizes(self, sizes: "Sequence[int | None]") -> str:
        if len(sizes) == 1:
            return self.size(sizes[0])
        return self._("{n} sizes from {low} to {high}").format(
            n=len(sizes), low=self.size(sizes[0]), high=self.size(sizes[-1])
        )

    def _reasons(self) -> dict[str, tuple[str, str]]:
        """Reason → (why, what closes it)."""
        return {
            "one_fabric": (
                self._("In this configuration measured on {have} only."),
                self._("{n} runs on {lack} of the same test, or of one that [[same]] declares to measure the same."),
            ),
            "no_baseline": (
                self._("Compared among {have}, but not measured on {lack} in this configuration."),
                self._("{n} runs on {lack} of the same test, or of one that [[same]] declares to measure the same."),
            ),
            "no_common_size": (self._("No message size is shared by {have}."), self._("the same sizes on both.")),
            "sizes": (self._("At these sizes measured on {have} only."), self._("{n} runs at the same sizes on "
            "{lack}.")),
            "unpaired": (
                self._("The campaign file pairs the runs of {have}, and no pair is whole here."),
                self._("a run on each for every pair that 'pairs' of rdmalab.toml names."),
            ),
            "zero": (self._("A value of 0 was printed on {have}, which gives no ratio."), self._("longer runs, or "
            "more printed digits.")),
            "no_value": (
                self._("The logs of {have} print no value that is compared."),
                self._("logs that print the time, the median latency or the average bandwidth."),
            ),
            "operation": (self._("The logs of {have} do not say which collective it is."), self._("operation in "
            "[[facts]] of rdmalab.toml.")),
            "test": (self._("The logs of {have} do not say which test it is."), self._("program in [[facts]] of "
            "rdmalab.toml.")),
            "convention": (
                self._("The logs of {have} do not say whether one way or the round trip was measured."),
                self._("latency_convention in [[facts]] of rdmalab.toml."),
            ),
            "clash": (
                self._("Declared to measure the same, but one test prints one way, the other the round trip ({have})."),
                self._("tests of the same convention."),
            ),
        }  # fmt: skip

    @property
    def days(self) -> str:
        """When it was measured, as the campaign file says; empty where it does not."""
        first, last = self.c.campaign.get("first_day"), self.c.campaign.get("last_day")
        if first is None or last is None:
            return ""
        if first == last:
            return str(first.isoformat())
        return self._("{first} to {last}").format(first=first.isoformat(), last=last.isoformat())

    def pairing(self, table: "Table") -> list[str]:
        """How the runs of both sides were set against each other."""
        pairs = [x.pairs for x in table.cells if x.pairs is not None]
        if not pairs:
            return [self._("The runs are not paired: every run of one fabric is set against every run of the other.")]
        few, most = min(pairs), max(pairs)
        count = str(few) if few == most else self._("{low} to {high}").format(low=few, high=most)
        return [self._("The runs are paired as the campaign file says, {n} pairs a size.").format(n=count)]

    def corrected(self, table: "Table") -> list[str]:
        """What is left of the differences when all sizes of a fabric are tested together (Holm)."""
        out = []
        for fabric in table.others:
            cells = [x for x in table.of(fabric) if x.p_holm is not None]
            told = [x for x in cells if x.verdict in (FASTER, SLOWER)]
            if len(cells) < 2 or not told:
                continue
            left = sum(x.p_holm is not None and x.p_holm <= 0.05 for x in told)
            sentence = self._("{fabric}: of {told} sizes with a difference, {left} remain when all {n} are tested "
                "together (Holm).")  # fmt: skip
            out.append(sentence.format(fabric=self.label(fabric), told=len(told), left=left, n=len(cells)))
        return out

    def selection(self) -> list[str]:
        """What the parameters and the campaign left out of this comparison, one sentence each."""
        out = []
        if filters := self.c.selection.filters:
            told = self.listed(f"{k} = {v}" for k, v in filters.items())
            out.append(self._("Only measurements with {filters} were selected.").format(filters=told))
        for label, runs in self.c.elsewhere.items():
            template = (
                self._("{fabric}: {runs} of this campaign, not in this comparison.")
                if runs
                else self._("{fabric}: no run in this campaign.")
            )
            out.append(template.format(fabric=label, runs=self.count(runs)))
        return out


def _by_fabric(cells: "Iterable[Cell]") -> "dict[str, list[Cell]]":
    out: dict[str, list[Cell]] = defaultdict(list)
    for x in cells:
        out[x.fabric].append(x)
    return dict(out)


_IN_NETWORK = re.compile("NVLS|SHARP|COLLNET", re.IGNORECASE)
_HAN = re.compile("[\u4e00-\u9fff]")
_SIGN = re.compile(r"[\u4e00-\u9fff]|[\w.]+?(?=[\u4e00-\u9fff]|[^\w.]|$)")
_TITLE_COLUMNS = 122  # what two lines of a title hold
_SMALL, _LARGE = 64 << 10, 64 << 20


def _columns(text: str) -> int:
    """How wide a text is, in letters; a Chinese character is as wide as two."""
    return len(text) + len(_HAN.findall(text))


def parts_of(table: "Table") -> "tuple[Table | None, Table | None]":
    """The small and the large messages of a table, up to 64 KiB and from 64 MiB; None where it has no two sizes."""
    if len(table.common_sizes) < 2:
        return None, None

    def part(sizes: "list[int]") -> "Table | None":
        return replace(table, cells=tuple(x for x in table.cells if x.size_bytes in sizes)) if sizes else None

    sizes = [s for s in table.common_sizes if s is not None]
    return part([s for s in sizes if s <= _SMALL]), part([s for s in sizes if s >= _LARGE])


def _head(cells: "list[Cell]") -> "list[Cell]":
    """The cells before the verdict changes for the first time."""
    return cells[: next(i for i, x in enumerate(cells) if x.verdict != cells[0].verdict)]


def _extremes(cells: "list[Cell]") -> "tuple[Cell, Cell]":
    """The cells with the smallest and the largest ratio."""
    return min(cells, key=lambda x: x.ratio or 0), max(cells, key=lambda x: x.ratio or 0)


def _comparable(by_fabric: dict[str, list[Any]], tests: dict[str, str]) -> dict[str, list[Any]]:
    """Unlike tools state unlike things: only what varies on one side, or between fabrics with the same test, counts."""

    def differs(fabric: str) -> bool:
        same = [v for f, v in by_fabric.items() if tests.get(f) == tests.get(fabric)]
        return len(by_fabric[fabric]) > 1 or any(v != same[0] for v in same)

    return {f: v for f, v in by_fabric.items() if differs(f)}
