"""Sentences and titles, composed from results by rules that are true for any data.

"Faster" and "slower" are only said of an interval that excludes 1; everything else is "no difference shown" or "too few
runs". Every sentence goes through one message catalogue, so that a language is a file of translations.
"""

import gettext
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rdmalab.compare import FASTER, MIN_RUNS, NO_DIFFERENCE, SLOWER, TOO_FEW
from rdmalab.errors import UsageError
from rdmalab.tables import NBSP, fixed, number_text, ratio_texts, time_unit, value_texts
from rdmalab.units import size_text

if TYPE_CHECKING:
    from rdmalab.compare import Cell, Comparison, Refusal, Table
    from rdmalab.series import Subject

LANGUAGES = ("en",)

_OPERATIONS = {
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "alltoall": "all-to-all",
    "alltoallv": "all-to-all-v", "sendrecv": "send-receive",
}  # fmt: skip


class Words:
    """The wording of one comparison in one language."""

    def __init__(self, c: "Comparison", lang: str = "en") -> None:
        if lang not in LANGUAGES:
            raise UsageError(f"no report in language '{lang}'; there is: {', '.join(LANGUAGES)}")
        self.c, self.lang = c, lang
        self._ = gettext.NullTranslations().gettext

    # -- small parts ----------------------------------------------------------------------------------------------

    def label(self, fabric: str) -> str:
        """The name of a fabric in reports; its words stay on one line."""
        return self.c.labels[fabric].replace(" ", NBSP)

    def join(self, words: Iterable[str]) -> str:
        """``A``, ``A and B``, ``A, B and C``."""
        words = list(words)
        return words[0] if len(words) == 1 else self._("{most} and {last}").format(most=", ".join(words[:-1]), last=words[-1])

    def operation(self, s: "Subject") -> str:
        """The test as one says it: ``all-reduce``, ``ib_write_bw``, ``ib_write_lat against ucx_perftest tag_lat``."""
        if s.tests:
            return self._(" against ").join(dict.fromkeys(t for _, t in s.tests))
        return _OPERATIONS.get(s.operation or "", s.operation or "") if s.kind == "collective" else (s.test or "")

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
            words = [self.operation(s).capitalize(), f"{s.dtype} {s.redop}" if s.redop else str(s.dtype)]
            words.append(self._("out of place") if s.placement == "out_of_place" else self._("in place"))
            where = self._("{n} ranks on {k} nodes") if s.nodes != 1 else self._("{n} ranks on {k} node")
            words.append(where.format(n=s.ranks, k=s.nodes) if s.nodes else self._("{n} ranks").format(n=s.ranks))
            return ", ".join(words)
        words = [self.operation(s)]
        if s.latency_convention:
            words.append(self._("one way (half the round trip)") if s.latency_convention == "one_way" else self._("full round trip"))
        words += [w for w in (s.connection, f"{s.queue_pairs} QP" if s.queue_pairs else None, s.memory and f"{s.memory} memory") if w]
        return ", ".join(words)

    def size(self, size_bytes: int | None) -> str:
        """A message size; a byte stream has none."""
        return size_text(size_bytes) if size_bytes is not None else self._("a byte stream")

    def runs(self, table: "Table") -> str:
        """``7 runs``, or ``7 runs (TCP: 5)`` where fabrics differ."""
        counts = {f: max((c.n for c in table.of(f)), default=0) for f in table.fabrics}
        most = max(counts.values())
        less = [f"{self.label(f)}: {n}" for f, n in counts.items() if n != most]
        return self._("{n} runs").format(n=most) + (f" ({', '.join(less)})" if less else "")

    # -- verdicts -------------------------------------------------------------------------------------------------

    def at(self, table: "Table", size_bytes: int | None, *, again: bool = False) -> str:
        """
        What one size says about every fabric, as one clause without its full stop.

        A slower fabric is told from the baseline's side, so that every factor is above 1. *again* leaves out the
        baseline's name where the clause before has just said it.
        """
        parts: dict[str, list[Cell]] = {}
        for fabric in table.others:
            if cell := table.cell(fabric, size_bytes):
                parts.setdefault(cell.verdict, []).append(cell)
        base, where = self.label(table.baseline), self.size(size_bytes)
        said = [self._faster(found, base, where, again=again)] if (found := parts.get(FASTER)) else []
        said += [
            self._("{base} is {ratio} times as fast as {fabric} at {size}").format(
                base=base, ratio=ratio_texts(x, inverse=True)[0], fabric=self.label(x.fabric), size=where
            )
            for x in parts.get(SLOWER, ())
        ]
        if found := parts.get(NO_DIFFERENCE):
            names = self.join(self.label(x.fabric) for x in found)
            template = self._("no difference is shown for {fabrics}") if said and again else (
                self._("no difference is shown between {fabrics} and {base} at {size}")
            )  # fmt: skip
            said.append(template.format(base=base, fabrics=names, size=where))
        if (found := parts.get(TOO_FEW)) and not said:
            least = min([x.n for x in found] + [x.n for x in table.of(table.baseline) if x.size_bytes == size_bytes])
            template = self._("{n} runs at {size}: no interval, nothing is ranked") if least != 1 else (
                self._("one run at {size}: no interval, nothing is ranked")
            )  # fmt: skip
            said.append(template.format(n=least, size=where))
        return self._(", ").join(said) if again else "; ".join(said)

    def _faster(self, found: "list[Cell]", base: str, where: str, *, again: bool) -> str:
        if len(found) > 2:
            names, ratios = self._("{n} fabrics").format(n=len(found)), self._range(found)
        else:
            names, ratios = self.join(self.label(x.fabric) for x in found), self.join(ratio_texts(x)[0] for x in found)
        template = {
            (False, 1): self._("{fabrics} is {ratios} times as fast as {base} at {size}"),
            (False, 2): self._("{fabrics} are {ratios} times as fast as {base} at {size}"),
            (True, 1): self._("at {size} {fabrics} is {ratios} times as fast"),
            (True, 2): self._("at {size} {fabrics} are {ratios} times as fast"),
        }[again, min(2, len(found))]
        return template.format(fabrics=names, ratios=ratios, base=base, size=where)

    @cached_property
    def verdict(self) -> list[str]:
        """The clauses of the cover: the headline's smallest and largest size, or its one size and the next test's."""
        table = self.c.headline
        clauses = [self.at(table, table.common_sizes[0])]
        if len(table.common_sizes) > 1:
            clauses.append(self.at(table, table.common_sizes[-1], again=True))
        elif second := self.second:
            clauses.append(self.at(second, second.common_sizes[-1]))
        clauses = [x for x in clauses if x]
        clauses[0] = clauses[0][:1].upper() + clauses[0][1:]
        return [x + (";" if i < len(clauses) - 1 else ".") for i, x in enumerate(clauses)]

    @cached_property
    def second(self) -> "Table | None":
        """The best table of another kind than the headline's: a bandwidth beside a latency."""
        kinds = {"latency": "bandwidth", "bandwidth": "latency", "collective": "latency"}
        return self.c.first(kinds[self.c.headline.subject.kind])

    def lead(self) -> str:
        """The lines under the verdict: the exact conditions, and what the first number is."""
        table = self.c.headline
        text = f"{self.subject_line(table.subject)}. "
        if table.subject.kind == "collective":
            text += self._("A factor is the ratio of times of one {operation}: medians of {runs}.").format(
                operation=self.operation(table.subject), runs=self.runs(table)
            )
        else:
            text += self._("{quantity}; a factor above 1 is in favour of the first named; medians of {runs}.").format(
                quantity=self.quantity(table.subject), runs=self.runs(table)
            )
        if table.subject.tests:
            text += " " + self.named_tests(table)
        return text

    def named_tests(self, table: "Table") -> str:
        """Which test stands for which fabric, where they are not the same one."""
        pairs = [f"{self.label(f)}: {t}" for f, t in table.subject.tests]
        text = self._("Unlike tools, declared to measure the same: {pairs}.").format(pairs="; ".join(pairs))
        streams = [self.label(f) for f in table.streams]
        if streams:
            text += " " + self._("{fabrics}: a byte stream without a message size, set beside this size by declaration.").format(
                fabrics=self.join(streams)
            )
        return text

    def title(self, table: "Table") -> str:
        """A finding over the range of sizes: where a fabric is faster, slower, or not shown to differ."""
        if all(x.verdict in (TOO_FEW, "baseline", "not measured") for x in table.cells):
            return self._("Too few runs to rank: {runs}, and an interval needs {least}").format(runs=self.runs(table), least=MIN_RUNS)
        sentences: list[str] = []
        for fabric in table.others:
            if len(sentences) < 2 and (sentence := self._range_sentence(table, fabric, again=bool(sentences))):
                sentences.append(sentence)
        return self._("; ").join(sentences)

    def _range_sentence(self, table: "Table", fabric: str, *, again: bool = False) -> str:
        """One fabric against the baseline over all sizes; *again* leaves out the baseline that was just named."""
        cells = [x for x in table.of(fabric) if x.verdict in (FASTER, SLOWER, NO_DIFFERENCE)]
        if not cells:
            return ""
        name, base = self.label(fabric), self.label(table.baseline)
        kinds = {x.verdict for x in cells}
        if kinds == {NO_DIFFERENCE}:
            return self._("{fabric} and {base}: no difference shown").format(fabric=name, base=base)
        if kinds == {FASTER}:
            template = self._("{fabric} is {range} times as fast") if again else self._("{fabric} is {range} times as fast as {base}")
            return template.format(fabric=name, base=base, range=self._range(cells))
        if kinds == {SLOWER}:
            return self._("{base} is faster: {range} times as fast as {fabric}").format(
                fabric=name, base=base, range=self._range(cells, inverse=True)
            )
        return self._mixed_sentence(name, base, cells)

    def _mixed_sentence(self, name: str, base: str, cells: "list[Cell]") -> str:
        """Verdicts change along the sizes: say up to where the first holds, and what comes behind it."""
        first = cells[0].verdict
        change = next(i for i, x in enumerate(cells) if x.verdict != first)
        head, tail = cells[:change], cells[change:]
        if len({x.verdict for x in tail}) > 1:
            counts = {v: sum(x.verdict == v for x in cells) for v in (FASTER, SLOWER, NO_DIFFERENCE)}
            return self._("{fabric} against {base}, sizes: {faster} faster, {slower} slower, {none} with no difference shown").format(
                fabric=name, base=base, faster=counts[FASTER], slower=counts[SLOWER], none=counts[NO_DIFFERENCE]
            )
        size = self.size(head[-1].size_bytes)
        words = {
            FASTER: self._("{fabric} is faster than {base} up to {size}"),
            SLOWER: self._("{fabric} is slower than {base} up to {size}"),
            NO_DIFFERENCE: self._("{fabric} is not shown to differ from {base} up to {size}"),
        }[first].format(fabric=name, base=base, size=size)
        then = {
            FASTER: self._("faster above"), SLOWER: self._("slower above"), NO_DIFFERENCE: self._("no difference shown above")
        }[tail[-1].verdict]  # fmt: skip
        return f"{words}, {then}"

    def _range(self, cells: "list[Cell]", *, inverse: bool = False) -> str:
        ordered = sorted(cells, key=lambda x: x.ratio or 0, reverse=inverse)
        low, high = ratio_texts(ordered[0], inverse=inverse)[0], ratio_texts(ordered[-1], inverse=inverse)[0]
        return low if low == high else self._("{low} to {high}").format(low=low, high=high)

    def throughput_title(self, table: "Table") -> str:
        """What each fabric moves at the largest size."""
        size = table.common_sizes[-1]
        unit = "GB/s" if table.subject.kind == "collective" else "Gb/s"
        parts = []
        for fabric in table.fabrics:
            cell = table.cell(fabric, size)
            shown = (cell.busbw if table.subject.kind == "collective" else cell) if cell else None
            if shown:
                parts.append(f"{self.label(fabric)} {value_texts(shown)[0]}{NBSP}{unit}")
        what = self._("bus bandwidth") if table.subject.kind == "collective" else self._("bandwidth")
        return self._("{what} at {size}: {parts}").format(what=what.capitalize(), size=self.size(size), parts=", ".join(parts))

    def utilization_title(self, table: "Table") -> str:
        """The share of the own limit at the largest size."""
        size = table.common_sizes[-1]
        parts = [
            f"{self.label(f)} {fixed(x.utilization.median, 0)}{NBSP}%"
            for f in table.fabrics
            if (x := table.cell(f, size)) and x.utilization
        ]
        return self._("Of their own limits at {size}: {parts}").format(size=self.size(size), parts=", ".join(parts))

    def reading(self, table: "Table", size_bytes: int | None) -> str:
        """One size in full sentences, for the columns under a chart."""
        text = self.at(table, size_bytes)
        return text[:1].upper() + text[1:] + "."

    def short_reading(self, table: "Table", size_bytes: int | None) -> str:
        """One size in few words, for a row of the summary."""
        templates = {
            FASTER: self._("{fabric}: {ratio} times as fast."), SLOWER: self._("{base} is {inverse} times as fast as {fabric}."),
            NO_DIFFERENCE: self._("{fabric}: no difference shown."), TOO_FEW: self._("{fabric}: {n} runs, not ranked."),
        }  # fmt: skip
        cells = [x for f in table.others if (x := table.cell(f, size_bytes)) and x.verdict in templates]
        return " ".join(
            templates[x.verdict].format(
                fabric=self.label(x.fabric), base=self.label(table.baseline), ratio=ratio_texts(x)[0],
                inverse=ratio_texts(x, inverse=True)[0], n=x.n,
            )
            for x in cells
        )  # fmt: skip

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
                out.append(f"{self.label(fabric)}: {number_text(shown, 4)}{NBSP}{unit} = {cells[0].limit_formula}")
            else:
                missing = next((x.limit_missing for x in cells if x.limit_missing), self._("the runs have different limits"))
                out.append(self._("{fabric}: no limit known ({missing})").format(fabric=self.label(fabric), missing=missing))
        return out

    def above_limit(self, table: "Table") -> list[str]:
        """One warning for every fabric that exceeds its limit: it is never printed without a word."""
        out = []
        for fabric in table.fabrics:
            over = [x for x in table.of(fabric) if x.utilization and x.utilization.median > 100.2]
            if over:
                worst = max(over, key=lambda x: x.utilization.median if x.utilization else 0)
                out.append(
                    self._(
                        "{fabric} stands above its limit at {size} ({percent} %): the link rate, the ports or the domain in "
                        "the campaign file are wrong, or part of the traffic did not cross this link."
                    ).format(fabric=self.label(fabric), size=self.size(worst.size_bytes), percent=fixed(worst.utilization.median, 1))  # type: ignore[union-attr]
                )
        return out

    def residue(self, table: "Table") -> str:
        """What differs inside the selection besides the fabric."""
        names = {
            "gpu_model": self._("GPU"), "library_version": self._("library version"), "tool_version": self._("tool version"),
            "device": self._("device"), "mtu_bytes": "MTU", "run_iterations": self._("iterations"), "hosts": self._("hosts"),
            "warmup_iterations": self._("warm-up iterations"), "connection": self._("connection"),
            "queue_pairs": self._("queue pairs"), "streams": self._("streams"), "iterations": self._("iterations per row"),
        }  # fmt: skip
        parts = []
        for name, by_fabric in table.residue.items():
            if table.subject.tests:  # unlike tools state unlike things: only what varies on one side counts
                by_fabric = {f: v for f, v in by_fabric.items() if len(v) > 1}
                if not by_fabric:
                    continue
            values = "; ".join(f"{self.label(f)} {_values(v, self._('not stated'))}" for f, v in by_fabric.items())
            parts.append(f"{names[name]} ({values})")
        if not parts:
            return self._("Nothing else that the logs state.")
        return self._("Besides the fabric: {parts}.").format(parts="; ".join(parts))

    def refusal(self, refusal: "Refusal") -> tuple[str, str, str]:
        """(what, why, what closes it) of something that could not be compared."""
        tests = list(dict.fromkeys(self.operation(s) for s in refusal.subjects))
        shown = self.join(tests if len(tests) <= 6 else [*tests[:5], self._("{n} more").format(n=len(tests) - 5)])
        have = self.join(self.label(f) for f in refusal.fabrics)
        if refusal.reason == "no_common_size":
            return shown, self._("No message size is shared by {have}.").format(have=have), self._("the same sizes on both.")
        lack = self.join(self.label(f) for f in refusal.missing)
        why = self._("In this configuration measured on {have} only.").format(have=have)
        closes = self._("{n} runs of the same test on {lack}.").format(n=MIN_RUNS, lack=lack)
        return shown, why, closes


def _values(values: list[Any], none: str) -> str:
    shown = [none if v is None else "+".join(v) if isinstance(v, tuple) else str(v) for v in values]
    return ", ".join(shown[:3]) + ("…" if len(shown) > 3 else "")


__all__ = ["LANGUAGES", "Words", "time_unit"]
