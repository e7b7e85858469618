"""The acceptance: cover with the verdict, limits with their values, proofs, what was not tested, evidence, method."""

from html import escape
from typing import TYPE_CHECKING, Any

from rdmalab import figures
from rdmalab.acceptance import (
    FAIL,
    NOT_COMPARABLE,
    NOT_DECIDED,
    NOT_TESTED,
    OUTCOMES,
    PASS,
    REFUSED,
    head_of,
    logs_of,
    observed,
    snapshot_of,
    to_dict,
    window_text,
)
from rdmalab.display import Block
from rdmalab.pages._paper import Paper, h3, p, shown_path
from rdmalab.tables import cell_html, decimals_for, fixed, number_text, table_html, th
from rdmalab.units import size_text
from rdmalab.wording import Phrasing

if TYPE_CHECKING:
    from rdmalab.acceptance import Acceptance, Line, Outcome, Threshold
    from rdmalab.lab import Lab

_ON_COVER = 6
_MOST_LOGS = 200
_MOST_BARS = 24
_BARS_ON_COVER = 8
_UNFIT = (REFUSED, FAIL, NOT_DECIDED)
_OPEN = (NOT_TESTED, NOT_COMPARABLE, NOT_DECIDED)
_BARS = {REFUSED: "refused", FAIL: "refused", NOT_DECIDED: "check", NOT_COMPARABLE: "check", NOT_TESTED: "note"}


class AcceptanceReport(Paper):
    """The report of one acceptance in one language; every method is a page."""

    def __init__(self, lab: "Lab", found: "Acceptance", lang: str = "en") -> None:
        self.found, self.head, words = found, head_of(lab, found.campaign), Phrasing(lang)
        self.logs, self.shown = logs_of(lab, found), observed(lab, found.campaign)
        snapshot = snapshot_of(lab, found)
        super().__init__(
            words, report=words._("Acceptance"), report_id=f"AC-{snapshot[:8]}", snapshot=snapshot,
            customer=self.head["customer"], synthetic=bool(self.head["synthetic"]),
        )  # fmt: skip

    # -- words ----------------------------------------------------------------------------------------------------

    def _word(self, outcome: str) -> str:
        return {
            PASS: self._("pass"), FAIL: self._("fail"), REFUSED: self._("refused"),
            NOT_DECIDED: self._("not decided"), NOT_TESTED: self._("not tested"),
            NOT_COMPARABLE: self._("not comparable"),
        }[outcome]  # fmt: skip

    def _counted(self, outcome: str) -> str:
        """``2 fail``; empty where there is none."""
        words = {
            FAIL: self._("{n} fail"), REFUSED: self._("{n} refused"), NOT_DECIDED: self._("{n} not decided"),
            NOT_TESTED: self._("{n} not tested"), NOT_COMPARABLE: self._("{n} not comparable"),
        }  # fmt: skip
        n = self.found.count(outcome)
        return words[outcome].format(n=n) if n else ""

    def verdict(self) -> list[str]:
        """The clauses of the first page."""
        n, of = self.found.passed, len(self.found.outcomes)
        if n == of:
            return [self._("Every limit passes: {n} of {m}").format(n=n, m=of)]
        rest = self.phrasing.listed(filter(None, map(self._counted, reversed(OUTCOMES[1:]))))
        return [self._("{n} of {m} limits pass:").format(n=n, m=of), rest]

    def _label(self, fabric: str) -> str:
        return str(self.head["labels"].get(fabric, fabric))

    def _asks(self, t: "Threshold") -> str:
        if t.one_of:
            return self._("one of {words}").format(words=self.phrasing.listed(t.one_of))
        if t.metric == "ranks":
            return self._("implied ranks as declared")
        word = self._("at least {value}") if t.at_least is not None else self._("at most {value}")
        value = t.at_least if t.at_least is not None else t.at_most or 0.0
        return word.format(value=self._with_unit(f"{value:g}", t))

    def _with_unit(self, text: str, t: "Threshold") -> str:
        unit = t.shown_unit.replace("us", "µs")
        space = "" if unit == "%" and self.lang == "zh" else "\u00a0"
        return f"{text}{space}{unit}" if unit else text

    def _what(self, t: "Threshold") -> str:
        """What is measured: quantity, test, statistic, sizes."""
        names = {
            "busbw_gbyte_s": self._("bus bandwidth"), "algbw_gbyte_s": self._("algorithm bandwidth"),
            "time_us": self._("time"), "bw_avg_gbit_s": self._("average bandwidth"),
            "line_pct": self._("share of the port rate"), "lat_typical_us": self._("typical latency"),
            "lat_avg_us": self._("average latency"), "lat_p99_us": self._("99 % latency"),
            "lat_p999_us": self._("99.9 % latency"), "utilization_pct": self._("share of the physical limit"),
            "pair_spread_pct": self._("spread between pairs"), "drop_pct": self._("drop below the golden value"),
            "transport": self._("transport"), "gdr": self._("GPUDirect RDMA"), "ranks": self._("ranks"),
        }  # fmt: skip
        many = {"mean": self._("mean over sizes"), "max": self._("best size"), "min": self._("worst size")}
        low, high = t.window
        words = [names[t.metric], t.operation or t.program, many.get(t.over_sizes)]
        words += [window_text(t).replace("..", "–") if low is not None or high is not None else None]
        return self.phrasing.listed(w for w in [*words, self._statistic(t)] if w)

    def _statistic(self, t: "Threshold") -> str:
        if not t.shown_unit:
            return ""
        return {
            "median": self._("median"), "min": self._("smallest run"), "max": self._("largest run"),
            "every_run": self._("every run"), "worst_pair": self._("worst pair"), "worst_node": self._("worst node"),
        }.get(t.statistic, t.statistic)  # fmt: skip

    def _value(self, t: "Threshold", line: "Line") -> tuple[str, str]:
        """(value, "[low, high]") in the same digits."""
        if line.value is None:
            return "", ""
        if t.metric == "ranks":
            return number_text(line.value, 4), ""
        decimals = decimals_for(line.value, line.low, line.high)
        ends = "" if line.low is None or line.high is None else (
            f"[{fixed(line.low, decimals)}, {fixed(line.high, decimals)}]"
        )  # fmt: skip
        return fixed(line.value, decimals), ends

    def _mark(self, outcome: str) -> str:
        kind = {
            PASS: "proof full", FAIL: "refuted", REFUSED: "refuted", NOT_DECIDED: "checked", NOT_COMPARABLE: "checked",
        }.get(outcome, "proof none")  # fmt: skip
        return f'<span class="keep"><span class="{kind}"></span> {escape(self._word(outcome))}</span>'

    def _reason(self, line: "Line") -> str:
        return self.phrasing.stated(line.because)

    # -- pages ----------------------------------------------------------------------------------------------------

    def cover(self) -> Block:
        """The verdict, what it rests on, and the limits that do not pass."""
        runs = len(self.logs)
        lead = self._(
            "{title}: {m} limits held against {runs} of campaign {campaign}. A median passes only where its 95 % "
            "interval lies wholly on the good side; a limit beyond physics is refused."
        ).format(
            title=self.found.spec.title or self.found.spec.name, m=len(self.found.outcomes),
            runs=self.phrasing.count(runs), campaign=self.found.campaign,
        )  # fmt: skip
        facts = [
            (self._("Prepared for"), self.customer or self._("not stated")),
            (self._("Campaign"), self.head["title"] or self.found.campaign),
            (self._("Spec"), f"{self.found.spec.name}, {self.found.spec.sha256[:8]}"),
            (self._("Report"), self.report_id),
        ]
        rows = self._margins()[:_BARS_ON_COVER]
        caption = (
            self._("Value over limit, nearest to failing first; right of the line is the good side") if rows else ""
        )
        html = self._cover(self.verdict(), lead, facts, after=self._at_a_glance(), caption=caption)
        chart = [figures.margin_chart(rows, limit=self._("the limit"), lang=self.lang)] if rows else []
        return Block(html, chart, alts=[caption] if rows else [])

    def _at_a_glance(self) -> str:
        unfit = sorted(
            (x for x in self.found.outcomes if x.outcome in _UNFIT), key=lambda x: _UNFIT.index(x.outcome)
        )  # fmt: skip
        bars = "".join(self._bar(x) for x in unfit[:_ON_COVER])
        more = len(unfit) - _ON_COVER
        return bars + (p(self._("{n} more on the next page.").format(n=more)) if more > 0 else "")

    def _bar(self, x: "Outcome") -> str:
        worst = x.worst
        said = self._("{limit}: {reason}").format(limit=x.limit.name, reason=self._reason(worst))
        if worst.fabric:
            said = self._("{limit}, {fabric}: {reason}").format(
                limit=x.limit.name, fabric=self._label(worst.fabric), reason=self._reason(worst)
            )
        word = escape(self.phrasing.sentence(self._word(x.outcome)))
        return f'<div class="{_BARS[x.outcome]}"><b>{word}</b> {escape(said)}</div>'

    def limits(self) -> Block:
        """Every limit with the measured value, its interval and the outcome, at the size nearest to failing."""
        rows = [row for x in self.found.outcomes for row in self._rows(x)]
        head = [
            th(self._("Limit"), "text"), th(self._("Fabric"), "text"), th(self._("Runs")), th(self._("Value")),
            th(self._("Interval"), "text"), th(self._("Outcome"), "text"),
        ]  # fmt: skip
        title = self.phrasing.text(self.verdict())
        sub = self._(
            "Of a limit on many sizes the size that is nearest to failing is shown; every size is in report.json."
        )
        return Block(self._section(self._("Limits of the spec"), title, sub, table_html(head, rows)))

    def _rows(self, x: "Outcome") -> "list[str]":
        t = x.limit
        lines = self._worst_lines(x)
        asked = f"<b>{escape(t.name)}</b><br>{escape(self._what(t))}: {escape(self._asks(t))}"
        first = f'<td class="text" rowspan="{len(lines)}">{asked}</td>'
        rows = []
        for i, line in enumerate(lines):
            value, interval = self._value(t, line)
            rows.append(
                f"<tr>{first if i == 0 else ''}{cell_html(self._place(t, line), 'text')}"
                f"{cell_html(str(line.n) if line.n else '')}{cell_html(self._with_unit(value, t) if value else '')}"
                f'{cell_html(interval, "interval")}<td class="text">{self._mark(line.outcome)}</td></tr>'
            )
        return rows

    def _worst_lines(self, x: "Outcome") -> "list[Line]":
        """One line a fabric and measurand: that of the size nearest to failing."""
        by_place: dict[tuple[str, str], list[Line]] = {}
        for line in x.lines:
            by_place.setdefault((line.fabric, line.measurand), []).append(line)
        return [x.worst_of(lines) for lines in by_place.values()]

    def _place(self, t: "Threshold", line: "Line") -> str:
        words = [self._label(line.fabric) if line.fabric else "", line.measurand, line.where]
        if line.size_bytes is not None and t.window[0] != t.window[1]:
            words.append(size_text(line.size_bytes))
        return self.phrasing.listed(w for w in words if w)

    def margins(self) -> Block:
        """Every value over its limit as a dot, with its interval; empty where no number was measured."""
        rows = self._margins()[:_MOST_BARS]
        if not rows:
            return Block("")
        title = self._("How far the values are from their limits")
        sub = self._(
            "Value over limit, of quantities that must stay small limit over value: right of the line is the good "
            "side. Bars: 95 % interval of the median, or smallest and largest run."
        )
        chart = figures.margin_chart(rows, limit=self._("the limit"), lang=self.lang)
        body = '<div data-figure="0"></div>' + p(self._("Nearest to failing first."))
        return Block(self._section(self._("Margins"), title, sub, body, "page flow whole"), [chart], alts=[title])

    def _margins(self) -> "list[figures.Margin]":
        """Nearest to failing first."""
        rows = [m for x in self.found.outcomes for line in self._worst_lines(x) if (m := self._margin(x.limit, line))]
        return sorted(rows, key=lambda m: m.value)

    def _margin(self, t: "Threshold", line: "Line") -> "figures.Margin | None":
        asked = (t.at_least if t.at_least is not None else t.at_most) or 0.0
        if not asked or not line.value or line.value <= 0 or line.outcome in (REFUSED, NOT_TESTED, NOT_COMPARABLE):
            return None

        def over(value: float) -> float:
            return value / asked if t.at_least is not None else asked / value if value else 0.0

        ends = [over(v) for v in (line.low, line.high) if v is not None]
        name = t.name if len(t.name) <= 34 else t.name[:33] + "…"
        return figures.Margin(
            label=name, value=over(line.value), low=min(ends, default=None), high=max(ends, default=None),
            outcome=line.outcome, words=self._label(line.fabric),
        )  # fmt: skip

    def proofs(self) -> Block:
        """What the logs prove of every fabric, whether a limit asks for it or not."""
        kinds = {
            "transport": self._("Transport proved"), "gdr": self._("GPUDirect RDMA"),
            "ranks": self._("Implied against declared ranks"), "worst_pair": self._("Worst pair"),
            "worst_node": self._("Worst node"),
        }  # fmt: skip
        rows = []
        for t, line in self.shown:
            key = t.statistic if t.statistic.startswith("worst") else t.metric
            what = f"{kinds[key]}, {self.phrasing.collective(t.operation)}" if t.operation else kinds[key]
            value = self._with_unit(self._value(t, line)[0], t) if key.startswith("worst") else ""
            said = self._reason(line)
            if value:
                said = self._("{value}; {reason}").format(value=value, reason=said)
            cells = [cell_html(text, "text") for text in (what, self._label(line.fabric), said)]
            rows.append(f"<tr>{''.join(cells)}</tr>")
        head = [th(self._("What"), "text"), th(self._("Fabric"), "text"), th(self._("What the logs show"), "text")]
        body = table_html(head, rows) if rows else p(self._("No collective of this campaign says it."))
        sub = self._(
            "Shown for every fabric, whether a limit asks for it or not. A run without NCCL lines proves nothing."
        )
        title = self._("Transport, ranks, worst pair and worst node")
        return Block(self._section(self._("Proofs"), title, sub, body, "page flow"))

    def untested(self) -> Block:
        """The limits without an answer, each with what would give one."""
        open_ones = [x for x in self.found.outcomes if x.outcome in _OPEN]
        body = "".join(
            self._hatched(
                f"{x.limit.name} ({self._word(x.outcome)})", self._stop(self._reason(x.worst)),
                x.closes or self._("more runs of the same test."),
            )
            for x in open_ones
        )  # fmt: skip
        title = self._("{n} of {m} limits have no answer yet").format(n=len(open_ones), m=len(self.found.outcomes))
        sub = self._("Not tested is not passed. Each gap names the command whose logs would close it.")
        body = body or p(self._("Every limit was tested."))
        return Block(self._section(self._("Not tested"), title, sub, body, "page flow"))

    def _stop(self, text: str) -> str:
        return text + ("。" if self.lang == "zh" else ".")

    def evidence(self) -> Block:
        """Every run behind a limit, with log, line and hash, and the sources of the limits."""
        root, used = self.head["root"], sorted(self.logs.items(), key=lambda item: item[1])
        rows = [
            f"<tr>{cell_html(shown_path(path, root), 'mono')}{cell_html(str(line))}{cell_html(run, 'mono')}"
            f"{cell_html(sha256[:12], 'mono')}</tr>"
            for run, (path, sha256, line) in used[:_MOST_LOGS]
        ]
        head = [th(self._("Log"), "text"), th(self._("Line")), th(self._("Run"), "text"), th("sha256", "text")]
        body = table_html(head, rows) if rows else p(self._("No run stands behind a limit."))
        if len(used) > _MOST_LOGS:
            body += p(self._("{n} more are in report.json.").format(n=len(used) - _MOST_LOGS))
        sources: dict[str, list[str]] = {}
        for x in self.found.outcomes:
            sources.setdefault(x.limit.source, []).append(x.limit.name)
        items = "".join(
            f"<li>{escape(source)}: {escape(self.phrasing.listed(names))}</li>" for source, names in sources.items()
        )
        body += h3(self._("Who asks for the limits")) + f'<ul class="evidence">{items}</ul>'
        title = self._("{runs} stand behind the limits").format(runs=self.phrasing.count(len(self.logs)))
        sub = self._("Data snapshot {id}. report.json holds a query for every value.").format(id=self.snapshot[:12])
        return Block(self._section(self._("Evidence"), title, sub, body))

    def method(self) -> Block:
        """How an outcome comes about."""
        items = [
            (self._("pass"), self._("The median's exact 95 % interval lies wholly on the good side, from 6 runs on; or "
                "every run does, where the limit asks for every run.")),
            (self._("fail"), self._("The interval lies wholly on the bad side, or a run does, or a log proves another "
                "transport, or printed bandwidths imply other ranks.")),
            (self._("not decided"), self._("The limit lies inside the interval, or there are too few runs. It does not "
                "count as passed.")),
            (self._("not tested"), self._("No run of the test, or none at these sizes.")),
            (self._("not comparable"), self._("The test was run, but with other ranks, type, placement, direction, "
                "latency convention or hardware than the limit is for.")),
            (self._("refused"), self._("The limit, or a measured run, lies beyond what ranks, domains and ports allow, "
                "by more than 0.2 %. What is not known is taken in its most favourable value first; recalled facts "
                "refuse nothing.")),
            (self._("ranks"), self._("All-reduce: 2 ÷ (2 − busbw ÷ algbw), with half a unit of the last printed digit "
                "of both either way.")),
            (self._("worst pair"), self._("The pair, or node, with the worst median of its runs; no interval, because "
                "a pair is seldom run six times.")),
        ]  # fmt: skip
        rows = "".join(f"<tr>{cell_html(k, 'text')}{cell_html(v, 'text')}</tr>" for k, v in items)
        body = f'<table class="words"><tbody>{rows}</tbody></table>'
        if bounds := self._bounds():
            body += h3(self._("Physical bounds")) + f'<ul class="evidence">{bounds}</ul>'
        title, sub = self._("How an outcome comes about"), self._("Fixed rules; no outcome is written by hand.")
        return Block(self._section(self._("Method"), title, sub, body))

    def _bounds(self) -> str:
        """The bound of every limit that has one, with its formula and sources."""
        found: dict[str, None] = {}
        for x in self.found.outcomes:
            for line in x.lines:
                if line.bound is not None:
                    value = self._with_unit(number_text(line.bound, 5), x.limit)
                    label = self._label(line.fabric) if line.fabric else x.limit.name
                    text = self._("{name}: {value} = {formula}").format(
                        name=f"{label}, {x.limit.test}", value=value, formula=self.phrasing.stated(line.bound_formula)
                    )
                    found.setdefault(f"<li>{escape(text)} ({escape(line.bound_source)})</li>")
        return "".join(found)

    def header(self) -> dict[str, Any]:
        """What the margins of the pages print."""
        return super().header() | {"title": self.phrasing.text(self.verdict())}

    def figures_for_machines(self) -> dict[str, Any]:
        """Verdict and all lines, for report.json."""
        return {"verdict": self.verdict(), "snapshot": self.snapshot, **to_dict(self.found)}
