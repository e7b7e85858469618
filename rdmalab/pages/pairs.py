"""The report on node pairs: who is slow as host, as sender, as receiver, on which rail; what failed and what lacks."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from rdmalab import figures
from rdmalab.display import Block
from rdmalab.pages._paper import Paper, explained, h3, kept, p, shown_path
from rdmalab.tables import NBSP, cell_html, fixed, number_text, table_html, th
from rdmalab.units import size_text
from rdmalab.wording import Phrasing

if TYPE_CHECKING:
    from rdmalab.pairs import Pair, Pairs, Ranked, Standing, Survey

_JOINER = "\u2060"  # forbids a line break
_NAMED = 3  # hosts that a title names; more are counted
_RANKED = 16  # rows of a table of hosts
_SLOWEST = 5
_EVIDENCE_ROWS = 60


class _Phrasing(Phrasing):
    """Phrasing that leaves the names of hosts as they are."""

    def __init__(self, lang: str, hosts: set[str]) -> None:
        super().__init__(lang)
        self.hosts = hosts

    def sentence(self, text: str) -> str:
        """A title: a capital at its beginning, unless the name of a host stands there; names of hosts never break."""
        return self.unbroken(text if any(text.startswith(h) for h in self.hosts) else super().sentence(text))

    def unbroken(self, text: str) -> str:
        """A text in whose names of hosts no line ends."""
        for host in sorted(self.hosts, key=len):
            text = text.replace(host, host.replace("-", f"{_JOINER}-{_JOINER}"))
        return text


class PairsReport(Paper):
    """The report of one survey in one language; every method is a page."""

    def __init__(self, survey: "Survey", lang: str = "en") -> None:
        self.s = survey
        self.w = _Phrasing(lang, {h for m in survey.measurements for h in m.hosts})
        super().__init__(
            self.w, report=self.w._("Node pairs"), report_id=f"NP-{survey.snapshot[:8]}", snapshot=survey.snapshot,
            customer=survey.campaign["customer"], synthetic=survey.campaign["synthetic"],
        )  # fmt: skip

    # -- sentences ------------------------------------------------------------------------------------------------

    @property
    def verdict(self) -> list[str]:
        """The clauses of the cover: slow hosts, else slow pairs; then what failed."""
        first = self.s.main[0]
        worst = next((m for m in self.s.main if m.slow_hosts), None)
        out = [self._slow_hosts(worst)] if worst else [self._none_stands_out(first)]
        pairs = next(((m, m.slow_pairs) for m in self.s.main if m.slow_pairs), None)
        if pairs:
            out.append(self._slow_pairs(*pairs))
        failed = {(f.pair, m.directed) for m in self.s.main for f in m.failed}
        if failed:
            one = self._("one pair gave no result") if len(failed) == 1 else self._("{n} pairs gave no result")
            out.append(one.format(n=len(failed)))
        return self._punctuated(out)

    def _punctuated(self, clauses: Sequence[str]) -> list[str]:
        """Clauses of one sentence, each but the last with what stands between them."""
        between = self.phrasing.clauses(["", ""]).rstrip()
        return [*(c + between for c in clauses[:-1]), clauses[-1]]

    def _none_stands_out(self, m: "Pairs") -> str:
        return self._("No host stands out among {n}").format(n=len(m.hosts))

    def _slow_hosts(self, m: "Pairs") -> str:
        slow = [s for s in m.standings if s.slow]
        names = list(dict.fromkeys(s.name for s in slow))
        ratios = [s.ratio for s in slow if s.ratio is not None]
        low, high = (fixed(100 * (1 - r), 1) for r in (max(ratios), min(ratios)))
        if len(names) > _NAMED:
            return self._("{k} of {n} hosts are {low} to {high}\u00a0% slower than the others").format(
                k=len(names), n=len(m.hosts), low=low, high=high
            )
        if len(names) > 1:
            return self._("{hosts} are {low} to {high}\u00a0% slower than the others").format(
                hosts=self.phrasing.join(names), low=low, high=high
            )
        template = {
            "both": self._("{host} is {high}\u00a0% slower than the others"),
            "sender": self._("{host} is {high}\u00a0% slower than the others as sender"),
            "receiver": self._("{host} is {high}\u00a0% slower than the others as receiver"),
        }[slow[0].role]
        if len(slow) > 1:
            template = self._("{host} is up to {high}\u00a0% slower than the others, as sender and as receiver")
        return template.format(host=names[0], high=high)

    def _slow_pairs(self, m: "Pairs", slow: "Sequence[Ranked]") -> str:
        if len(slow) == 1:
            return self._("the pair {pair} is slow although both hosts are not").format(
                pair=self._pair(m, slow[0].pair)
            )
        return self._("{n} pairs are slow although both hosts are not").format(n=len(slow))

    def _pair(self, m: "Pairs", pair: "Pair") -> str:
        """``a – b``, or ``a → b`` from sender to receiver; never broken."""
        return f"{NBSP}{'→' if m.directed else '–'}{NBSP}".join(pair)

    def _test(self, m: "Pairs") -> str:
        return self.phrasing.collective(m.test) if m.collective else m.test

    def _condition(self, m: "Pairs") -> str:
        """What was measured, in the words of a sub-line."""
        common = {
            "test": self._test(m), "size": size_text(m.size_bytes), "fabric": self.s.labels[m.fabric],
            "pairs": len(m.values), "runs": self.phrasing.count(m.runs), "dtype": m.dtype, "ranks": m.ranks,
        }  # fmt: skip
        if m.collective:
            place = self._("out of place") if m.placement == "out_of_place" else self._("in place")
            return self._(
                "Bus bandwidth of {test}, {dtype}, {place}, {ranks} ranks on 2 nodes at {size}, GB/s; {fabric}, "
                "{pairs} pairs, {runs}."
            ).format(place=place, **common)
        if m.directed:
            return self._(
                "Payload of {test} from sender to receiver at {size}, Gb/s; {fabric}, {pairs} pairs, {runs}."
            ).format(**common)
        return self._(
            "Payload of {test}, both directions added, at {size}, Gb/s; {fabric}, {pairs} pairs, {runs}."
        ).format(**common)

    def _standing_word(self, s: "Standing") -> str:
        """What a row of a table of hosts says."""
        if s.ratio is None:
            return self._("not decided: no partner is known to be fast with others")
        if not s.slow:
            return self._("does not stand out")
        if s.fast_with:
            return self._("slow, except with {hosts}").format(hosts=self.phrasing.join(s.fast_with))
        return self._("slow with every partner")

    # -- pages ----------------------------------------------------------------------------------------------------

    def cover(self) -> Block:
        """The verdict, the first matrix as its picture, and on what evidence."""
        first = next((m for m in self.s.main if m.slow_hosts), self.s.main[0])
        lead = self._(
            "{hosts} hosts, tested two by two: {lines} A host is called slow if it lies more than 2 % and 3.5 robust "
            "deviations below the others, with partners that are fast with somebody else."
        ).format(
            hosts=len(first.hosts), lines=self.phrasing.text(self._measured(m) for m in self.s.main)
        )  # fmt: skip
        facts = self._facts(self.s.campaign, self.phrasing.count(self.s.runs))
        caption = self._condition(first)
        lead = self.phrasing.text([lead, *self._among_themselves(first)])
        html = self._cover(map(self.w.unbroken, self.verdict), lead, facts, caption=caption)
        figure = self._matrix(first, cell=max(1, min(44, 350 // len(first.hosts))), left=176)
        return Block(html, [figure], alts=[caption])

    def _among_themselves(self, m: "Pairs") -> list[str]:
        """What the fast pairs of slow hosts point to."""
        slow = {s.name: s for s in m.standings if s.slow}
        fast = [x for x in m.values if any(b in slow[a].fast_with for a, b in (x, x[::-1]) if a in slow)]
        if not fast or len(fast) > _NAMED:
            return []
        pairs = self.phrasing.listed(self._pair(m, x) for x in fast)
        return [
            self._("Not slow: {pairs}. This points to the path to the others rather than to a host.").format(
                pairs=pairs
            )
        ]

    def _measured(self, m: "Pairs") -> str:
        possible = len(m.hosts) * (len(m.hosts) - 1) // (1 if m.directed else 2)
        return self._("{test}: {pairs} of {possible} pairs.").format(
            test=self._test(m), pairs=len(m.values), possible=possible
        )

    def _matrix(self, m: "Pairs", *, cell: int = 24, left: int = 120) -> Any:
        scale = (
            self._("% of the best pair; right: median of the sender, below: of the receiver, Gb/s") if m.directed
            else self._("% of the best pair; right: median of the host, GB/s") if m.collective
            else self._("% of the best pair; right: median of the host, Gb/s")
        )  # fmt: skip
        return figures.pair_matrix(m, of_best=scale, cell=cell, left=left, lang=self.lang)

    def matrices(self) -> list[Block]:
        """A page a measurement: its matrix, its slowest pairs, and how to read them."""
        return [self._matrix_page(m) for m in self.s.main]

    def _matrix_page(self, m: "Pairs") -> Block:
        title = self._slow_hosts(m) if m.slow_hosts else self._none_stands_out(m)
        if m.slow_pairs:
            title = " ".join(self._punctuated([title, self._slow_pairs(m, m.slow_pairs)]))
        both = self._("Every cell is the median of the runs of two hosts, both directions at once.")
        one = self._("Rows send, columns receive; every cell is the median of the runs of this direction.")
        read = self.phrasing.text([
            one if m.directed else both,
            self._("× is a pair whose runs gave no result; an empty cell was not measured."),
        ])  # fmt: skip
        body = '<div data-figure="0"></div>' + self._slowest(m) + self._unlike(m) + self._columns(
            (self._("How to read it"), read),
            (self._("What lacks"), self._lacks(m)),
            (self._("What it does not show"), self._open(m)),
        )  # fmt: skip
        return Block(
            self._section(self._("Node pairs"), title, self._condition(m), body),
            [self._matrix(m, cell=max(1, min(24, 440 // len(m.hosts))))],
            alts=[title],
        )

    def _slowest(self, m: "Pairs") -> str:
        """The five slowest pairs, and whom they owe it to."""
        head = [
            th(self._("Slowest pairs"), "text"), th(m.unit), th(self._("to the others, %")),
            th(self._("Reading"), "text"),
        ]  # fmt: skip
        rows = [
            f"<tr>{kept(self._pair(m, r.pair))}{cell_html(number_text(r.value, 4))}{cell_html(_percent(r.ratio))}"
            f"{cell_html(self._pair_word(r), 'text')}</tr>"
            for r in m.ranked()[:_SLOWEST]
        ]
        return table_html(head, rows)

    def _unlike(self, m: "Pairs") -> str:
        """What differs between the pairs besides the hosts: such pairs were not tested alike."""
        names = {
            "mtu_bytes": "MTU", "gpu_model": self._("GPU"), "library_version": self._("library version"),
            "tool_version": self._("tool version"),
        }  # fmt: skip
        word, out = escape(self._("Check")), ""
        for name, (usual, others) in m.residue.items():
            for value, pairs in others.items():
                shown = self.phrasing.listed(self._pair(m, x) for x in pairs[:_NAMED])
                if len(pairs) > _NAMED:
                    shown = self._("{n} pairs").format(n=len(pairs))
                text = self._("Not all pairs were tested alike: {what} {value} instead of {usual} in {pairs}.").format(
                    what=names[name], value=value, usual=usual, pairs=shown
                )
                out += f'<div class="check"><b>{word}</b> {escape(text)}</div>'
        return out

    def _pair_word(self, r: "Ranked") -> str:
        if r.slow_hosts:
            return self._("has a slow host: {hosts}").format(hosts=self.phrasing.join(r.slow_hosts))
        if r.slow:
            return self._("slow although both hosts are not: look at its path")
        return self._("does not stand out")

    def _lacks(self, m: "Pairs") -> str:
        missing, failed = len(m.missing), len({f.pair for f in m.failed})
        if not missing and not failed:
            return self._("Every pair was measured.")
        words = [self._("{n} pairs were not measured.").format(n=missing)] if missing else []
        if failed:
            words.append(self._("{n} pairs were tried and gave no result.").format(n=failed))
        return self.phrasing.text(words)

    def _open(self, m: "Pairs") -> str:
        if m.directed:
            return self._("Whether the adapter, the cable or the switch port of a slow host is the cause.")
        return self._("Which of the two hosts of a pair is the slow one in one direction: a collective loads both.")

    def hosts(self) -> Block:
        """Tables of hosts by role, of adapters and of rails, those furthest below the others first."""
        parts = dict.fromkeys(part for m in self.s.main for part in self._tables(m))
        slow = sorted({h for m in self.s.main for h in m.slow_hosts})
        title = (
            self._("Slow in at least one role: {hosts}").format(hosts=self.phrasing.join(slow))
            if slow and len(slow) <= _NAMED
            else self._("{k} hosts are slow in at least one role").format(k=len(slow))
            if slow
            else self._("No host stands out in any role")
        )
        sub = self._(
            "To the others: the median over partners that are fast with somebody else, against the same of all hosts. "
            "Deviations: robust standard deviations below it."
        )
        return Block(self._section(self._("Hosts"), title, sub, "".join([*parts, self._measurements()])))

    def _tables(self, m: "Pairs") -> Iterable[str]:
        test = self._test(m)
        heads = {
            "both": self._("{test}: hosts").format(test=test), "sender": self._("{test}: senders").format(test=test),
            "receiver": self._("{test}: receivers").format(test=test),
        }  # fmt: skip
        adapters = {
            "both": self._("{test}: adapters").format(test=test),
            "sender": self._("{test}: adapters that send").format(test=test),
            "receiver": self._("{test}: adapters that receive").format(test=test),
        }
        for role, head in heads.items():
            if rows := [s for s in m.standings if s.role == role]:
                yield self._standings(head, m, rows)
        for role, head in adapters.items():
            if rows := [s for s in m.adapters if s.role == role]:
                yield self._standings(head, m, rows)
        if m.rails:
            yield self._standings(self._("{test}: rails").format(test=test), m, m.rails)
        elif m.rows is not None and len(names := set(m.rows["device_a"]) | set(m.rows["device_b"])) == 1 and all(names):
            yield p(self._("Rails are not told apart: every test used {device}.").format(device=names.pop()))

    def _standings(self, head: str, m: "Pairs", rows: "Sequence[Standing]") -> str:
        names = [
            th(head, "text"), th(self._("pairs")), th(self._("median, {unit}").format(unit=m.unit)),
            th(self._("interval"), "interval"), th(self._("to the others, %")),
            th(self._("deviations")), th(self._("Reading"), "text"),
        ]  # fmt: skip
        body = [
            f"<tr>{kept(s.name)}{cell_html(str(s.pairs))}{cell_html(number_text(s.median, 4))}"
            f"{cell_html(_interval(s), 'interval')}{cell_html(_percent(s.ratio))}{cell_html(_deviations(s.deviations))}"
            f"{cell_html(self._standing_word(s), 'text')}</tr>"
            for s in rows[:_RANKED]
        ]
        more = len(rows) - _RANKED
        foot = escape(self._("{n} more, none further below.").format(n=more)) if more > 0 else ""
        return table_html(names, body, foot=foot)

    def _measurements(self) -> str:
        """Every measurement that was made in pairs, and whom it shows as slow."""
        head = [
            th(self._("Test"), "text"), th(self._("ranks")), th(self._("size")), th(self._("pairs")),
            th(self._("lowest")), th(self._("median")), th("", "unit"), th(self._("Slow hosts"), "text"),
            th(self._("Slow pairs")),
        ]  # fmt: skip
        rows = []
        for m in self.s.measurements:
            ranked = m.ranked()
            slow = self.phrasing.listed(m.slow_hosts) or "–"
            rows.append(
                f"<tr>{cell_html(self._measurement(m), 'text')}{cell_html(str(m.ranks or ''))}"
                f"{cell_html(size_text(m.size_bytes))}{cell_html(str(len(m.values)))}"
                f"{cell_html(number_text(ranked[0].value, 4))}{cell_html(number_text(_middle(m), 4))}"
                f"{cell_html(m.unit, 'unit')}{cell_html(slow, 'text')}"
                f"{cell_html(str(len(m.slow_pairs)))}</tr>"
            )
        some = sum(1 for m in self.s.measurements if m.slow_hosts)
        text = self._(
            "{k} of {n} measurements show a slow host. Each stands at the largest size that most of its pairs have; "
            "the median is that of all pairs."
        ).format(k=some, n=len(self.s.measurements))
        return h3(self._("All measurements")) + p(text) + table_html(head, rows)

    def _measurement(self, m: "Pairs") -> str:
        if not m.collective:
            return self._test(m)
        place = self._("out of place") if m.placement == "out_of_place" else self._("in place")
        return self.phrasing.clauses([self._test(m), place])

    def gaps(self) -> Block:
        """Pairs without a value: not measured, or failed with the reason and the line."""
        body = ""
        for m in self.s.main:
            if m.missing:
                names = self.phrasing.listed(self._pair(m, x) for x in m.missing[:_EVIDENCE_ROWS])
                body += h3(self._("{test}: not measured").format(test=self._test(m))) + p(names)
                if len(m.missing) > _EVIDENCE_ROWS:
                    body += p(self._("{n} more pairs.").format(n=len(m.missing) - _EVIDENCE_ROWS))
            if m.failures:
                body += h3(self._("{test}: runs without a result").format(test=self._test(m))) + self._failures(m)
        if not body:
            return Block("")
        missing, failed = (sum(len(x) for x in found) for found in self._lacking())
        title = self._("{missing} pairs were not measured, {failed} runs gave no result").format(
            missing=missing, failed=failed
        )
        sub = self._("A pair that was repeated with success has a value all the same.")
        return Block(self._section(self._("Gaps"), title, sub, body))

    def _lacking(self) -> tuple[list[list[Any]], list[list[Any]]]:
        return [list(m.missing) for m in self.s.main], [list(m.failures) for m in self.s.main]

    def _failures(self, m: "Pairs") -> str:
        head = [th(self._("Pair"), "text"), th(self._("Why"), "text"), th(self._("Log"), "text"), th(self._("line"))]
        rows = [
            f"<tr>{kept(self._pair(m, f.pair))}{cell_html(self._reason(f.reason), 'text')}"
            f"{cell_html(shown_path(f.path, self.s.campaign.get('root')), 'mono')}{cell_html(str(f.line or ''))}</tr>"
            for f in m.failures[:_EVIDENCE_ROWS]
        ]
        return table_html(head, rows)

    def _reason(self, reason: str) -> str:
        words = {
            "no_data": self._("no result was printed"), "failed": self._("the benchmark failed"),
            "truncated": self._("cut before its end"), "wrong data": self._("the benchmark found wrong data"),
        }  # fmt: skip
        return words.get(reason, self.phrasing.stated(reason))

    def evidence(self) -> Block:
        """The log and line behind each value that is called slow, slowest first."""
        rows = [row for m in self.s.main for row in self._evidence_rows(m)]
        if not rows:
            text = p(self._("Nothing is called slow. 'rdmalab pairs --format csv' lists every pair."))
            return Block(self._section(self._("Evidence"), self._("Nothing is called slow"), self._snapshot(), text))
        head = [
            th(self._("Test"), "text"), th(self._("Pair"), "text"), th(self._("value")), th("", "unit"),
            th(self._("Log"), "text"), th(self._("line")), th("sha256", "text"),
        ]  # fmt: skip
        title = self._("The lines behind {n} values that are called slow").format(n=len(rows))
        body = self._noted(self._("Note"), self.s.campaign["notes"] or ())
        body += table_html(head, rows[:_EVIDENCE_ROWS])
        if len(rows) > _EVIDENCE_ROWS:
            body += p(
                self._("{n} more; 'rdmalab pairs --format csv' lists every pair.").format(n=len(rows) - _EVIDENCE_ROWS)
            )
        return Block(self._section(self._("Evidence"), title, self._snapshot(), body))

    def _snapshot(self) -> str:
        return self._(
            "Data snapshot {id}. Line: where the value stands in its log. Hash: of the log's content."
        ).format(id=self.snapshot[:12])

    def _evidence_rows(self, m: "Pairs") -> list[str]:
        slow = {r.pair for r in m.ranked() if r.slow or r.slow_hosts}
        if m.rows is None:
            return []
        return [
            f"<tr>{cell_html(self._test(m), 'text')}{kept(self._pair(m, (r['a'], r['b'])))}"
            f"{cell_html(number_text(r['value'], 4))}{cell_html(m.unit, 'unit')}"
            f"{cell_html(shown_path(r['path'], self.s.campaign.get('root')), 'mono')}{cell_html(str(r['line'] or ''))}"
            f"{cell_html(r['sha256'][:12], 'mono')}</tr>"
            for r in m.rows.sort("value", "a", "b").iter_rows(named=True)
            if (r["a"], r["b"]) in slow
        ]

    def method(self) -> Block:
        """How hosts and pairs are ranked, in the order a doubter asks."""
        items = [
            (self._("Pairs"), self._("A collective counts if exactly two hosts took part, perftest if both hosts are "
                "known: by the prompt above the command, by the prefix of a launcher, or by the log of the other end. "
                "Domains are cut off where that leaves names apart. File names are no evidence.")),
            (self._("Value"), self._("The median over the runs of a pair, at the largest size that most pairs have. "
                "Every pair counts once, however often it was repeated.")),
            (self._("Slow host"), self._("A pair tells of a host only if its partner comes within 2 % of the usual "
                "level with somebody else. Over such partners the host's median must lie 2 % and 3.5 robust standard "
                "deviations (1.4826 × the median absolute deviation) below that of the hosts, and three of four pairs "
                "must be slow. With fewer than two such partners nothing is said.")),
            (self._("Slow pair"), self._("A pair of two hosts that are not slow, which lies 2 % and 3.5 deviations "
                "below the pairs of such hosts: what remains is its path.")),
            (self._("Sender and receiver"), self._("ib_write_bw and ib_send_bw send from client to server, ib_read_bw "
                "from server to client. A collective loads both directions at once and tells them not apart.")),
            (self._("Rails"), self._("Where tests used several devices, each device of each host is ranked like a "
                "host, and each device name against the other names of the same pairs.")),
            (self._("Units"), self._("GB/s is 10^9 byte/s of bus bandwidth, Gb/s is 10^9 bit/s of payload; KiB, MiB, "
                "GiB are powers of 1024.")),
        ]  # fmt: skip
        body = explained(items)
        title, sub = self._("How hosts are ranked"), self._("Fixed rules; no number is typed by hand.")
        return Block(self._section(self._("Method"), title, sub, body))

    def header(self) -> dict[str, Any]:
        """What the margins of the pages print."""
        return super().header() | {"title": " ".join(self.verdict)}

    def figures_for_machines(self) -> dict[str, Any]:
        """Verdict, rankings and gaps of every measurement, for report.json."""
        return {
            "campaign": self.s.campaign["campaign"], "snapshot": self.snapshot, "verdict": self.verdict,
            "measurements": [
                {
                    "fabric": m.fabric, "test": m.test, "ranks": m.ranks, "placement": m.placement,
                    "size_bytes": m.size_bytes, "unit": m.unit, "directed": m.directed, "slow_hosts": m.slow_hosts,
                    "hosts": [vars(s) for s in m.standings], "adapters": [vars(s) for s in m.adapters],
                    "rails": [vars(s) for s in m.rails], "pairs": [vars(r) for r in m.ranked()],
                    "missing": m.missing, "failed": [vars(f) for f in m.failed],
                }
                for m in self.s.measurements
            ],
        }  # fmt: skip


def _percent(ratio: float | None) -> str:
    """How far from 1, in per cent, with a sign that is a minus."""
    text = "" if ratio is None else f"{100 * (ratio - 1):+.1f}".replace("-", "−")
    return "0.0" if text in ("+0.0", "−0.0") else text


def _interval(s: "Standing") -> str:
    return "" if s.low is None or s.high is None else f"[{number_text(s.low, 4)}, {number_text(s.high, 4)}]"


def _deviations(value: float | None) -> str:
    text = "" if value is None else f"{value:.1f}".replace("-", "−")
    return "0.0" if text == "−0.0" else text


def _middle(m: "Pairs") -> float:
    ranked = [r.value for r in m.ranked()]
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2
