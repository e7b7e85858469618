"""Price and performance: cover with the answer, money per GPU hour and GB/s, steps of jobs, sensitivity, method."""

import math
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from rdmalab import figures
from rdmalab.display import Block
from rdmalab.pages._paper import Paper, bullets, explained, h3, p, shown_path
from rdmalab.price import DOES_NOT_PAY, HOURS_A_MONTH, NOT_DECIDED, PAYS
from rdmalab.tables import cell_html, decimals_for, fixed, number_text, table_html, th
from rdmalab.units import size_text
from rdmalab.wording import Words

if TYPE_CHECKING:
    from rdmalab.price import Interval, Offer, Premium, Prices

_ON_COVER = 4


class PricePerformance(Paper):
    """The report on the money of one campaign in one language; every method is a page."""

    def __init__(self, found: "Prices", lang: str = "en") -> None:
        self.found, c = found, found.comparison
        self.w = Words(c, lang)
        super().__init__(
            self.w, report=self.w._("Price and performance"), report_id=f"PP-{c.snapshot[:8]}", snapshot=c.snapshot,
            customer=c.campaign["customer"], synthetic=bool(c.campaign["synthetic"]),
        )  # fmt: skip

    # -- words ----------------------------------------------------------------------------------------------------

    def _label(self, fabric: str) -> str:
        return self.found.comparison.labels[fabric]

    def _money(self, value: float, currency: str) -> str:
        return f"{number_text(value, 4)}\u00a0{currency}"

    def _span(self, i: "Interval", unit: str = "") -> str:
        """``2.04 [1.98, 2.10]``; without the interval where there is none."""
        digits = decimals_for(i.value, i.low, i.high)
        text = fixed(i.value, digits)
        if i.low is not None and i.high is not None:
            text += f" [{fixed(i.low, digits)}, {fixed(i.high, digits)}]"
        return f"{text}\u00a0{unit}" if unit else text

    def _percent(self, share: float) -> str:
        return self.w.percent(number_text(100 * share, 3))

    def _word(self, answer: str) -> str:
        return {
            PAYS: self._("pays"), DOES_NOT_PAY: self._("does not pay"), NOT_DECIDED: self._("not decided"),
        }[answer]  # fmt: skip

    def _said(self, x: "Premium") -> str:
        """One sentence on one workload and the dearer fabric."""
        template = {
            PAYS: self._("{workload}: {dear} pays; it costs {premium} more than {cheap}, and a step is {times} times "
                "as fast or faster"),
            DOES_NOT_PAY: self._("{workload}: {dear} is not needed; it costs {premium} more than {cheap}, and a step "
                "is at most {times} times as fast"),
            NOT_DECIDED: self._("{workload}: whether {dear} pays is not decided; it costs {premium} more than {cheap}"),
        }[x.answer]  # fmt: skip
        ends = [e for s in x.scenarios for e in (s.speed_up.low, s.speed_up.high) if e is not None]
        times = min(ends, default=0.0) if x.answer == PAYS else max(ends, default=0.0)
        return template.format(
            workload=x.workload, dear=self._label(x.dear), cheap=self._label(x.cheap),
            premium=self._percent(x.premium), times=number_text(times, 3),
        )  # fmt: skip

    def _why(self, x: "Premium") -> str:
        """What would decide."""
        return {
            "compute_ms": self._("State compute_ms of the workload: without it computing may take any time."),
            "overlap": self._("Say how much of the communication hides behind computing: the two ends disagree."),
            "runs": self._("More runs: an interval holds what the premium asks for, or there are too few for one."),
        }.get(x.missing or "", "")  # fmt: skip

    def verdict(self) -> list[str]:
        """The clauses of the first page."""
        premiums = self.found.premiums
        if not premiums:
            return [self._("What a GPU hour and a delivered GB/s cost")]
        clauses = []
        for dear in dict.fromkeys(x.dear for x in premiums):
            of = [x for x in premiums if x.dear == dear]
            pays, not_needed = (sum(x.answer == a for x in of) for a in (PAYS, DOES_NOT_PAY))
            clauses.append(
                self._("{fabric}: pays for {n}, not needed for {k} of {m} workloads").format(
                    fabric=self._label(dear), n=pays, k=not_needed, m=len(of)
                )
            )
        return clauses

    # -- pages ----------------------------------------------------------------------------------------------------

    def cover(self) -> Block:
        """The answer, and what it rests on."""
        c = self.found.comparison
        lead = self._(
            "A dearer fabric pays when a step is faster by more than it costs. An answer holds with the whole interval "
            "of the measured times, whether communication hides behind computing or not; else it is not decided."
        )
        bars = "".join(
            f'<div class="{"check" if x.answer == NOT_DECIDED else "note"}"><b>'
            f"{escape(self.w.sentence(self._word(x.answer)))}</b> {escape(self._said(x))}</div>"
            for x in self.found.premiums[:_ON_COVER]
        )
        rows = self._margins()
        caption = self._("Speed-up of a step over what the premium asks for; right of the line it pays") if rows else ""
        charts = [figures.margin_chart(rows, limit=self._("the premium"), lang=self.lang)] if rows else []
        runs = self.phrasing.count(len(c.used_runs))
        html = self._cover(self.verdict(), lead, self._facts(c.campaign, runs), after=bars, caption=caption)
        return Block(html, charts, alts=[caption] if rows else [])

    def _margins(self) -> "list[figures.Margin]":
        """Every reading of every workload, by its number in the table of steps."""
        out = []
        for x in self.found.premiums:
            needed = 1 + x.premium
            for s in x.scenarios:
                value, low, high = (e / needed if e is not None else None for e in s.speed_up)
                outcome = "pass" if (low or 0.0) > 1 else "fail" if high is not None and high < 1 else "not decided"
                where = f"{self._numbered(x.workload)}, {self._reading(s.compute_ms, s.overlap)}"
                out.append(
                    figures.Margin(
                        label=f"{self._label(x.dear)} ({where})", value=value or 0.0, low=low, high=high,
                        outcome=outcome, words=f"{number_text(value or 0.0, 3)}\u00a0×",
                    )
                )  # fmt: skip
        return out

    def _numbered(self, workload: str) -> str:
        names = list(dict.fromkeys(x.workload for x in self.found.premiums))
        return f"W{names.index(workload) + 1}"

    def _reading(self, compute_ms: float, overlap: bool) -> str:
        if math.isinf(compute_ms):
            return self._("computing alone")
        if not compute_ms:
            return self._("communication alone")
        return self._("hidden") if overlap else self._("not hidden")

    def money(self) -> Block:
        """Per offer: price of a GPU hour and a node month, and of a delivered GB/s with its interval."""
        delivered = {id(d.offer): d for d in self.found.delivered}
        rows = [self._offer_row(o, delivered.get(id(o))) for o in self.found.offers]
        head = [
            th(self._("Fabric"), "text"), th(self._("Quote"), "text"), th(self._("GPU hour")), th(self._("Node month")),
            th(self._("Bus bandwidth, GB/s"), "text"), th(self._("1 GB/s, a GPU and hour"), "text"),
        ]  # fmt: skip
        sizes = {d.size_bytes for d in self.found.delivered}
        sub = self._("{test}, at {size}. Medians with 95 % intervals; a month has 730 hours.").format(
            test=self.w.subject_line(self.found.table.subject),
            size=", ".join(size_text(s) for s in sorted(sizes)) or "-",
        )
        body = table_html(head, rows)
        leases = [o for o in self.found.offers if o.lease_months]
        if leases:
            body += h3(self._("Leases")) + bullets(map(self._lease, leases))
        return Block(self._section(self._("Money"), self._money_title(), sub, body))

    def _money_title(self) -> str:
        plain = [d for d in self.found.delivered if d.offer.lease_months is None]
        if len({d.offer.currency for d in plain}) != 1 or len(plain) < 2:
            return self._("What a delivered GB/s costs")
        least, most = min(plain, key=lambda d: d.per_gbyte_s.value), max(plain, key=lambda d: d.per_gbyte_s.value)
        a, b = least.per_gbyte_s, most.per_gbyte_s
        if a.high is None or b.low is None or a.high >= b.low:
            return self._("No difference is shown in what a delivered GB/s costs")
        return self._("A delivered GB/s costs least on {fabric}: {value}, on {other} {more}").format(
            fabric=self._label(least.offer.fabric), other=self._label(most.offer.fabric),
            value=self._money(a.value, least.offer.currency), more=self._money(b.value, most.offer.currency),
        )  # fmt: skip

    def _offer_row(self, o: "Offer", d: Any) -> str:
        months = self._("lease of {n} months").format(n=o.lease_months) if o.lease_months else ""
        node = self._money(o.node_month, o.currency) if o.node_month is not None else ""
        bus, each = (self._span(d.busbw_gbyte_s), self._span(d.per_gbyte_s, o.currency)) if d else ("", "")
        stated = self.phrasing.clauses([o.stated, *([months] if months else [])])
        return (
            f"<tr>{cell_html(self._label(o.fabric), 'text')}{cell_html(stated, 'text')}"
            f"{cell_html(self._money(o.gpu_hour, o.currency))}{cell_html(node)}{cell_html(bus, 'text')}"
            f"{cell_html(each, 'text')}</tr>"
        )

    def _lease(self, o: "Offer") -> str:
        return self._(
            "{fabric}: {n} months with the discount cost as much as {months} months at the full price; who may leave "
            "earlier pays less without the lease."
        ).format(fabric=self._label(o.fabric), n=o.lease_months, months=number_text(o.break_even_months or 0.0, 3))

    def steps(self) -> Block:
        """Per workload and dearer fabric: times of a step, share of communication, premium, speed-up, answer."""
        if not self.found.premiums and not self.found.refused:
            body = p(self._("No [[workload]] is stated in the campaign file, so no step can be priced."))
            return Block(self._section(self._("Steps"), self._("No workload is stated"), "", body, "page flow"))
        head = [
            th(self._("Workload"), "text"), th(self._("Fabric"), "text"), th(self._("Collectives of a step"), "text"),
            th(self._("Share of the step"), "text"), th(self._("1000 steps of a GPU"), "text"),
            th(self._("Premium")), th(self._("Speed-up of a step"), "text"),
            th(self._("Answer"), "text"),
        ]  # fmt: skip
        rows = [row for x in self.found.premiums for row in self._rows(x)]
        body = table_html(head, rows)
        body += "".join(
            self._hatched(self._said(x), self._stop(x.because), self._why(x))
            for x in self.found.premiums
            if x.answer == NOT_DECIDED
        )
        body += self._noted(self._("Refused"), [self._stop(t) for t in self.found.refused])
        answers = [self._said(x) for x in self.found.premiums]
        title = answers[0] if answers else self._("No step could be priced")
        sub = self._("Speed-up over the cheapest fabric, communication not hidden and hidden behind computing.")
        return Block(self._section(self._("Steps"), title, sub, body))

    def _stop(self, text: str) -> str:
        return self.w.sentence(self.phrasing.stated(text)) + ("。" if self.lang == "zh" else ".")

    def _rows(self, x: "Premium") -> Iterator[str]:
        what = f"{x.count} x {x.operation}, {size_text(x.size_bytes)}"
        computing = self._("computing {ms} ms").format(ms=f"{x.compute_ms:g}") if x.compute_ms is not None else self._(
            "computing not stated"
        )  # fmt: skip
        first = f"<b>{self._numbered(x.workload)} {escape(x.workload)}</b><br>{escape(what)}<br>{escape(computing)}"
        speeds = "<br>".join(
            escape(f"{self._span(s.speed_up)} ({self._reading(s.compute_ms, s.overlap)})") for s in x.scenarios
        )
        mark = {PAYS: "proof full", DOES_NOT_PAY: "proof none", NOT_DECIDED: "checked"}[x.answer]
        word = f'<span class="keep"><span class="{mark}"></span> {escape(self._word(x.answer))}</span>'
        for fabric in (x.cheap, x.dear):
            dear, took = fabric == x.dear, self._span(x.collective_ms[fabric], "ms")
            share = ""
            if x.share:
                low, high = x.share[fabric]
                share = self._("{low} to {high}").format(low=self._percent(low), high=self._percent(high))
            cost = ""
            if x.thousand_steps:
                least, most = (number_text(v, 4) for v in x.thousand_steps[fabric])
                cost = self._("{low} to {high}").format(low=least, high=f"{most}\u00a0{x.currency}")
            yield (
                f"<tr>{f'<td class=text rowspan=2>{first}</td>' if not dear else ''}"
                f"{cell_html(self._label(fabric), 'text')}{cell_html(took, 'text')}"
                f"{cell_html(share, 'text')}{cell_html(cost, 'text')}"
                f"{cell_html(self._percent(x.premium) if dear else '')}"
                f'<td class="text">{speeds if dear else ""}</td><td class="text">{word if dear else ""}</td></tr>'
            )

    def evidence(self) -> Block:
        """The runs behind the curves, and the sources of prices."""
        c = self.found.comparison
        used = c.runs.filter(c.runs["run_id"].is_in(self.found.table.points["run_id"].unique().to_list()))
        rows = [
            f"<tr>{cell_html(shown_path(r['path'], c.campaign.get('root')), 'mono')}{cell_html(str(r['line'] or ''))}"
            f"{cell_html(self._label(r['fabric']), 'text')}{cell_html(r['sha256'][:12], 'mono')}</tr>"
            for r in used.iter_rows(named=True)
        ]
        head = [th(self._("Log"), "text"), th(self._("Line")), th(self._("Fabric"), "text"), th("sha256", "text")]
        body = table_html(head, rows) + h3(self._("Who quotes the prices"))
        body += bullets(
            f"{self._label(o.fabric)}: {o.stated}: {o.formula} = {self._money(o.gpu_hour, o.currency)} ({o.source})"
            for o in self.found.offers
        )
        title = self._("{runs} stand behind the curves").format(runs=self.phrasing.count(len(rows)))
        sub = self._("Data snapshot {id}. report.json holds every number.").format(id=self.snapshot[:12])
        return Block(self._section(self._("Evidence"), title, sub, body))

    def method(self) -> Block:
        """How an answer comes about."""
        items = [
            (self._("GPU hour"), self._("Price over hours and GPUs; a month has {n} hours; currencies are not "
                "converted.").format(n=f"{HOURS_A_MONTH:g}")),
            (self._("1 GB/s"), self._("Price of a GPU hour over the median bus bandwidth; its interval is that of the "
                "median.")),
            (self._("premium"), self._("Price of the dearer fabric over that of the cheapest, less 1.")),
            (self._("speed-up"), self._("Step of the cheapest over step of the dearer: computing plus communication "
                "where nothing is hidden, the longer of the two where all is. Its ends pair the slow end of one side "
                "with the fast end of the other.")),
            (self._("time of a collective"), self._("The median of the measured curve; between two sizes straight on "
                "logarithms; outside of what was measured it is refused.")),
            (self._("pays"), self._("The whole interval of the speed-up lies above 1 + premium, in every reading.")),
            (self._("does not pay"), self._("The whole interval lies below 1 + premium, in every reading: RDMA, or the "
                "faster fabric, is not needed for this job.")),
            (self._("lease"), self._("T months with discount d cost as much as T × (1 − d) months at the full price.")),
        ]  # fmt: skip
        title, sub = (
            self._("How an answer comes about"),
            self._("Fixed rules; what is not stated is varied, not guessed."),
        )
        return Block(self._section(self._("Method"), title, sub, explained(items)))

    def header(self) -> dict[str, Any]:
        """What the margins of the pages print."""
        return super().header() | {"title": self.phrasing.clauses(self.verdict())}

    def figures_for_machines(self) -> dict[str, Any]:
        """All numbers, for report.json."""

        def plain(record: Any) -> dict[str, Any]:
            return {k: v._asdict() if hasattr(v, "_asdict") else v for k, v in vars(record).items()}

        return {
            "verdict": self.verdict(), "snapshot": self.snapshot,
            "campaign": self.found.comparison.campaign["campaign"],
            "offers": [plain(o) for o in self.found.offers],
            "delivered": [plain(d) | {"offer": d.offer.stated, "fabric": d.offer.fabric} for d in self.found.delivered],
            "premiums": [
                plain(x) | {
                    "collective_ms": {f: t._asdict() for f, t in x.collective_ms.items()},
                    "scenarios": [
                        plain(s) | {"compute_ms": None if math.isinf(s.compute_ms) else s.compute_ms}
                        for s in x.scenarios
                    ],
                }
                for x in self.found.premiums
            ],
            "refused": list(self.found.refused),
        }  # fmt: skip
