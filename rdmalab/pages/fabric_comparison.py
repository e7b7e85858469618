"""The fabric comparison: cover, summary, latency, throughput, utilization and ratio, pairs, use, evidence, method."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from rdmalab import figures
from rdmalab.compare import FASTER, MIN_RUNS, NO_DIFFERENCE, SLOWER
from rdmalab.display import Block
from rdmalab.errors import UsageError
from rdmalab.pages._paper import Paper, bullets, explained, h3, kept, lines, p, powers, shown_path
from rdmalab.pages.curves import curve_table
from rdmalab.tables import aligned, cell_html, number_text, shown_ratio, table_html, th, time_unit, value_texts
from rdmalab.wording import Words

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.compare import Cell, Comparison, Table
    from rdmalab.findings import Findings

_TABLE_SIZES = 9  # rows of a table that stands beside a chart
_MOST_FINDINGS = 12  # of one kind
_EVIDENCE_ROWS = 400
_MOST_FABRICS = 6  # more curves in one chart are told apart by nobody
_CELL_FIELDS = (
    "fabric", "size_bytes", "n", "median", "low", "high", "verdict", "ratio", "ratio_low", "ratio_high",
    "limit_gbyte_s",
)  # fmt: skip


class FabricComparison(Paper):
    """The report of one comparison in one language; every method is a page."""

    def __init__(self, c: "Comparison", lang: str = "en") -> None:
        if len(c.fabrics) > _MOST_FABRICS:
            raise UsageError(
                f"a report compares at most {_MOST_FABRICS} fabrics, here are {len(c.fabrics)}; choose with "
                f"-p fabrics=a,b,c: {', '.join(c.fabrics['fabric'])}"
            )
        self.c, self.w = c, Words(c, lang)
        self._flowing = self._short_names = False
        super().__init__(
            self.w, report=self.w._("Fabric comparison"), report_id=f"FC-{c.snapshot[:8]}", snapshot=c.snapshot,
            customer=c.campaign["customer"], synthetic=c.campaign["synthetic"],
        )  # fmt: skip

    # -- parts ----------------------------------------------------------------------------------------------------

    def _plot(self, index: int = 0) -> str:
        """The place of a chart over message sizes, and the title of its axis."""
        axis = escape(self._("Message size"))
        return f'<div data-figure="{index}"></div><p class="axis">{axis}</p>'

    def _keys(self, fabrics: Sequence[str]) -> str:
        look = figures.looks(self.c)
        silent = figures.key_svg(figures.NO_DIFFERENCE_LOOK), self._("hollow grey: no difference shown")
        return self._keyed([*((figures.key_svg(look[f]), self.c.labels[f]) for f in fabrics), silent])

    def _lifted(self, table: "Table") -> list[str]:
        """The fabrics whose logs state what lifts their limit."""
        return [f for f in table.fabrics if self.w.explained(table, f)]

    def _above(self, *tables: "Table") -> str:
        """A limit that is exceeded is never shown without a word."""
        lifted = [self.w.label(f) for t in tables for f in self._lifted(t)]
        out = ""
        for text in dict.fromkeys(text for t in tables for text in self.w.above_limit(t)):
            kind, word = ("check", self._("Above the limit")) if any(text.startswith(f) for f in lifted) else (
                "refused", self._("Physically impossible"))  # fmt: skip
            out += f'<div class="{kind}"><b>{escape(word)}</b> {escape(text)}</div>'
        return out

    def _differs(self, table: "Table") -> str:
        """What differs besides the fabric, and which test stands for which."""
        return self.w.text([self.w.residue(table), *([self.w.named_tests(table)] if table.subject.tests else [])])

    def _table(self, *kinds: str) -> "Table | None":
        """The headline where it is of one of these kinds, else the first table that is."""
        return next((t for t in self.c.tables if t.subject.kind in kinds), None)

    def _moving(self) -> "Table | None":
        """The first table with bandwidths: a collective whose tool prints no bus bandwidth has none."""
        return next((t for t in self.c.tables if figures.has_curve(t)), None)

    # -- pages ----------------------------------------------------------------------------------------------------

    def cover(self) -> Block:
        """The verdict, the curve of this very report, and who, when, on what evidence."""
        c, w, table = self.c, self.w, self.c.headline
        used = len(c.used_runs)
        evidence = self._("{used} of {all} runs used").format(used=used, all=len(c.runs))
        facts = self._facts(c.campaign, evidence, measured=w.days)
        html = self._cover(w.verdict, w.lead(), facts, after=self._fallen(), caption=self._cover_caption(table))
        return Block(
            html,
            [figures.cover_chart(c, table, self._cover_height(), lang=self.lang)],
            alts=[self._cover_caption(table)],
        )

    def rail(self) -> Block:
        """The left column of the screen: keys of the fabrics, which hide and show them in all charts; the baseline."""
        look = figures.looks(self.c)
        keys = "".join(
            f'<button data-series="{escape(self.c.labels[f])}">{figures.key_svg(look[f])} '
            f"{escape(self.c.labels[f])}</button>"
            for f in self.c.fabrics["fabric"]
        )
        heads = escape(self._("Fabrics (click to hide)")), escape(self._("Baseline"))
        base = escape(self.c.labels[self.c.headline.baseline])
        return Block(f"<h4>{heads[0]}</h4>{keys}<h4>{heads[1]}</h4><p>{base}</p>", kind="rail")

    def _cover_height(self) -> int:
        """What the text of the cover leaves to its picture, in px."""
        high = {"h1": 51, "lead": 25} if self.lang == "zh" else {"h1": 44, "lead": 22}
        title = sum(lines(x, 36) for x in self.w.verdict)
        lead = lines(self.w.lead(), 70) + (3 if self._fallen() else 0)
        return max(250, min(470, 712 - high["h1"] * title - high["lead"] * lead))

    def _chart_height(self, most: int, title: str, sub: str, rows: float, below_pt: float) -> int:
        """
        What the text of a page leaves to its chart, in px, at most *most*: one line too many makes a near-empty page.

        Args:
            rows: Of the table under the chart, without its two head rows.
            below_pt: Height of what stands under the table.
        """
        high = {"h2": 23, "sub": 12.5} if self.lang == "zh" else {"h2": 21, "sub": 11.25}
        head = 33 + high["h2"] * lines(title, 50) + high["sub"] * lines(sub, 110)
        return round(min(most, max(200, 963 - (head + 21 + 38 + 16.6 * rows + below_pt) / 0.75)))

    def _column_pt(self, texts: Sequence[str], per_line: int, line_pt: float) -> float:
        """The height of columns with a head, in pt; *line_pt* is that of an English line."""
        line = line_pt * (1.1 if self.lang == "zh" else 1)
        return 31 + line * max(lines(t, per_line) for t in texts)

    def _fallbacks(self) -> Counter[tuple[str, str]]:
        """(fabric, reason) → the runs that fell back to another transport."""
        fallen = self.c.runs.filter(self.c.runs["excluded_because"].str.starts_with("fell back").fill_null(False))
        return Counter((r["fabric"], r["excluded_because"]) for r in fallen.iter_rows(named=True))

    def _fallen(self) -> str:
        """The runs that fell back: said on the first page, and not counted."""
        word = escape(self._("Check"))
        return "".join(
            f'<div class="check"><b>{word}</b> {escape(self.w.fallback(fabric, reason, n))}</div>'
            for (fabric, reason), n in self._fallbacks().items()
        )

    def _cover_caption(self, table: "Table") -> str:
        if table.subject.kind == "collective" and figures.has_curve(table):
            return self._("Bus bandwidth of {operation} by message size: median and interval of the runs").format(
                operation=self.w.operation(table.subject)
            )
        return self._("{quantity}: median and interval of the runs").format(quantity=self.w.quantity(table.subject))

    def summary(self) -> Block:
        """The page an executive reads: questions as rows, what could not be compared, what it rests on."""
        rows: list[str] = []
        charts: list[Any] = []
        alts: list[str] = []
        follows, questions = self.w.follows(self.c.headline), self._questions()
        fitting = self._fitting_rows(Words(self.c).follows(self.c.headline))
        if fitting < min(3, len(questions)):
            follows, fitting = [], self._fitting_rows([])
        asked = [
            (*q, [(f, x) for f in q[2].fabrics if (cell := q[2].cell(f, q[3])) and (x := _column(cell, q[4]))])
            for q in questions[: max(2, fitting)]
        ]
        self._short_names = not all(self._roomy(t, self._value_texts(t, cells, col)) for *_, t, _, col, cells in asked)
        for question, note, table, size, column, cells in asked:
            rows.append(
                self._summary_row(table, question, note, cells, len(charts), self._reading(table, size, column), column)
            )
            charts.append(self._strip(table, size, cells, column))
            alts.append(question)
        words = self._("Interval"), self._("baseline"), self._("limit")
        strip = " ".join(f"{escape(w)} {svg}" for w, svg in zip(words, figures.STRIP_KEYS, strict=True))
        names = [escape(n) for n in (self._("Question"), self._("Median [95 % interval]"), self._("Reading"))]
        spans = "".join(f"<span>{n}</span>" for n in (*names[:2], strip, names[2]))
        head = f'<div class="head">{spans}</div>'
        title = self.w.title(self.c.headline)
        sub = self._(
            "{subject}. Baseline: {base}. An interval needs {n} runs a side; without one nothing is ranked."
        ).format(
            subject=self.w.subject_line(self.c.headline.subject),
            base=self.w.label(self.c.headline.baseline),
            n=MIN_RUNS,
        )
        body = f'<div class="summary">{head}{"".join(rows)}</div>' + self._summary_foot()
        if follows:
            body += self._columns(*follows, kind="strong")
        return Block(self._section(self._("Summary"), title, sub, body, counted=False), charts, alts=alts)

    def _fitting_rows(self, follows: Sequence[tuple[str, str]]) -> int:
        """
        How many rows the summary has room for over its foot, in px of the page.

        Measured on the English words: both languages show the same rows.
        """
        w, fabrics = Words(self.c), len(self.c.fabrics)
        head = 94 + 28 * lines(w.title(self.c.headline), 60)
        told = [w.refusal(r) for r in self.c.refusals[:4]]
        right = sum(26 + 16 * (lines(what, 46) + lines(why + closes, 50)) for what, why, closes in told)
        left = 46 + 36 * fabrics + 22 + 60 * len({text for t in self.c.tables for text in w.above_limit(t)})
        left += sum(12 + 16 * lines(w.fallback(f, why, n), 50) for (f, why), n in self._fallbacks().items())
        below = 58 + 16 * max((lines(t, 36) for _, t in follows), default=0) if follows else 0
        return min(5, int((963 - head - max(left, right) - 36 - below) // (20 * fabrics + 44)))

    def _questions(self) -> "list[tuple[str, str, Table, int | None, str]]":
        """(question, small print, table, size, column) of the summary's rows, from what was measured."""
        table, w = self.c.headline, self.w
        small, large = table.common_sizes[0], table.common_sizes[-1]
        out = [
            (
                self._quantity_at(table, small),
                w.operation(table.subject) if table.subject.tests else "",
                table,
                small,
                "main",
            )
        ]
        if figures.has_curve(table) and table.subject.kind == "collective":
            limit = (
                self._("Limit: the largest value that ranks, domains and ports allow.")
                if _has_limit(table)
                else self._("No limit known.")
            )
            out.append(
                (self._("Bus bandwidth at {size}, GB/s").format(size=w.size(large)), limit, table, large, "busbw")
            )
            if any(x.utilization for x in table.cells if x.size_bytes == large):
                out.append(
                    (
                        self._("Use of the limit at {size}, %").format(size=w.size(large)),
                        self._("Bus bandwidth ÷ limit."),
                        table,
                        large,
                        "utilization",
                    )
                )
        for kind in ("latency", "bandwidth"):
            other = next((t for t in self.c.tables if t.subject.kind == kind and t is not table), None)
            if other and len(out) < 5:
                size = other.common_sizes[0] if kind == "latency" else other.common_sizes[-1]
                out.append((self._quantity_at(other, size), w.operation(other.subject), other, size, "main"))
        asked = {id(t) for _, _, t, _, _ in out}
        for other in self.c.tables:
            if len(out) < 4 and id(other) not in asked and other.subject.kind != "collective":
                size = other.common_sizes[0] if other.subject.kind == "latency" else other.common_sizes[-1]
                out.append((self._quantity_at(other, size), w.operation(other.subject), other, size, "main"))
        return out

    def _quantity_at(self, table: "Table", size: int | None) -> str:
        return self._("{quantity}, {size}").format(quantity=self.w.quantity(table.subject), size=self.w.size(size))

    def _summary_row(
        self,
        table: "Table",
        question: str,
        note: str,
        cells: "list[tuple[str, Cell]]",
        figure: int,
        reading: str,
        column: str,
    ) -> str:
        look = figures.looks(self.c)
        _, unit = _scale(table, cells, column)
        values = ""
        texts = self._value_texts(table, cells, column)
        padded = dict(zip(texts, aligned([v for v, _ in texts.values()]), strict=True))
        brief = {f: self.w.brief.label(f) for f in table.fabrics}
        names = brief if self._short_names else self.c.labels
        for fabric in table.fabrics:
            key = f'<span class="key">{figures.key_svg(look[fabric])} {escape(names[fabric])}</span>'
            if fabric not in texts:
                missing = self._("limit not known") if column == "utilization" else self._("not measured")
                values += f'<div class="value">{key}<span></span><span class="interval">{escape(missing)}</span></div>'
                continue
            interval = texts[fabric][1] or self._("{runs}: no interval").format(
                runs=self.w.count(dict(cells)[fabric].n)
            )
            values += (
                f'<div class="value">{key}<b class="median">{padded[fabric]}</b>'
                f'<span class="interval">{escape(interval)}</span></div>'
            )
        tight = "" if self._roomy(table, texts, brief=True) else " tight"
        template = self._("{question}, Gb/s") if unit == "Gb/s" else self._("{question}, {unit}")
        head = template.format(question=question, unit=unit) if unit else question
        return (
            f'<div class="row"><div class="question"><b>{escape(head)}</b><small>{escape(note)}</small></div>'
            f'<div class="values{tight}">{values}</div><div data-figure="{figure}"></div>'
            f'<p class="reading">{reading}</p></div>'
        )

    def _value_texts(self, table: "Table", cells: "list[tuple[str, Cell]]", column: str) -> dict[str, tuple[str, str]]:
        scale, _ = _scale(table, cells, column)
        return {f: value_texts(x, scale) for f, x in cells}

    def _roomy(self, table: "Table", texts: dict[str, tuple[str, str]], *, brief: bool = False) -> bool:
        """Whether names, medians and intervals fit side by side into a row of the summary, in letters."""
        names = [self.w.brief.label(f) if brief else self.c.labels[f] for f in table.fabrics]
        width = 1.75 * max(len(v) for v, _ in texts.values()) + max(len(i) for _, i in texts.values())
        return max(sum(2 if x > "\u2e7f" else 1 for x in n) for n in names) + width < 38

    def _reading(self, table: "Table", size: int | None, column: str) -> str:
        if column == "utilization":
            return escape(self._("{shares} of their own limits.").format(shares=self.w.shares(table, size)))
        text = escape(self.w.short_reading(table, size, lambda found: f"\ue000{found}\ue001"))
        return text.replace("\ue000", "<b>").replace("\ue001", "</b>")

    def _strip(self, table: "Table", size: int | None, cells: "list[tuple[str, Cell]]", column: str) -> Any:
        scale, unit = _scale(table, cells, column)
        scaled = [(f, figures.scaled(x, scale)) for f, x in cells]
        rows = {f: i for i, f in enumerate(table.fabrics)}
        base = next((x.median for f, x in scaled if f == table.baseline), None)
        limits = {}
        if (
            column in ("busbw", "main")
            and table.subject.metric != "lat_typical_us"
            and not (column == "main" and table.subject.kind == "collective")
        ):
            factor = 1.0 if column == "busbw" else 8.0
            limits = {
                f: x.limit_gbyte_s * factor for f in table.fabrics if (x := table.cell(f, size)) and x.limit_gbyte_s
            }
        if column == "utilization":
            limits = {f: 100.0 for f, _ in scaled}
        spread = max(x.median for _, x in scaled) / max(1e-12, min(x.median for _, x in scaled))
        return figures.strip(
            self.c, scaled, baseline=base, log=column == "main" and spread > 4, limits=limits, unit=unit, places=rows
        )

    def _summary_foot(self) -> str:
        refusals = "".join(self._hatched(*self.w.refusal(r)) for r in self.c.refusals[:4])
        if len(self.c.refusals) > 4:
            refusals += p(self._("{n} more on the evidence page.").format(n=len(self.c.refusals) - 4))
        none = p(self._("Every measurement of this selection has a counterpart."))
        transport, alone = self._("Transport: what the logs prove"), self._("What could not be compared")
        left = (
            f"<div>{h3(transport)}{self._runs_table()}{self._warnings()}</div><div>{h3(alone)}{refusals or none}</div>"
        )
        return f'<div class="cols2">{left}</div>'

    def _runs_table(self) -> str:
        """What the logs prove: per fabric the path in use and GPUDirect, and how many of the used runs prove it."""
        rows = []
        for fabric in self.c.fabrics["fabric"]:
            part = self.c.runs.filter(
                (self.c.runs["fabric"] == fabric) & self.c.runs["run_id"].is_in(list(self.c.used_runs))
            )
            proofs = [self.w.proof(r) for r in part.iter_rows(named=True)]
            proved = sum(p is not None for p in proofs)
            paths = self.w.listed(dict.fromkeys(p for p in proofs if p)) or self._("not proved")
            direct = set(part["transport_gdr"].drop_nulls())
            rows.append(
                f"<tr>{kept(self.w.brief.label(fabric))}"
                f"<td>{_dot(proved, len(proofs))}{escape(paths)}</td>"
                f"<td>{escape(self.w.gpudirect(direct))}</td>{cell_html(f'{proved} / {len(proofs)}')}</tr>"
            )
        head = [
            th(self._("Fabric"), "text"),
            th(self._("Path in use"), "text"),
            th("GPUDirect", "text"),
            th(self._("Runs proved")),
        ]
        note = self._("Dot: every run, some, none. Proof is a line of the run's own log.")
        return table_html(head, rows) + f'<p class="small">{escape(note)}</p>'

    def _warnings(self) -> str:
        return self._fallen() + self._above(*self.c.tables)

    def latency(self, table: "Table | None" = None) -> Block:
        """Time against message size, the table of medians, and what differs besides the fabric."""
        table = table or self._table("collective", "latency")
        if table is None:
            return Block("")
        w = self.w
        sub = self._(
            "{quantity} against message size, both axes logarithmic. {subject}. Line: median of {runs}; band: its "
            "interval."
        ).format(
            quantity=w.quantity(table.subject), subject=w.subject_line(table.subject), runs=w.runs(table, table.sizes)
        )
        several = len([s for s in table.sizes if s]) > 1
        chart = self._plot() if several else ""
        columns = (
            (self._("What it shows"), w.reading(table, table.common_sizes[0])),
            (
                self._("What limits it"),
                self._("No bandwidth limit applies to a time; at the largest sizes it follows the throughput."),
            ),
            (self._("What differs besides the fabric"), self._differs(table)),
        )
        body = chart + self._time_table(table) + self._columns(*columns)
        title = w.time_title(table)
        below = 15 + self._column_pt([text for _, text in columns], 31, 11.5)
        height = self._chart_height(430, title, sub, self._lines(table, self._rows(table, table.compared_sizes)), below)
        figure = [figures.time_chart(self.c, table, height=height, lang=self.lang)] if several else []
        return Block(self._section(self._("Latency"), title, sub, body), figure, alts=[title] * len(figure))

    def _time_table(self, table: "Table") -> str:
        over = '<th colspan="3"></th>' + self._over(table, [self.c.labels[f] for f in table.fabrics])
        head = [th(self._("Size"), "num", 2), th(self._("Unit"), "text"), *self._heads(table)]
        sizes = self._rows(table, table.compared_sizes)
        scales = [self.w.time_scale(table, s) for s in sizes]
        units = [k for k, _ in scales]
        columns = [self._values_of(table, f, [table.cell(f, s) for s in sizes], units) for f in table.fabrics]
        if not _is_stacked(table):
            columns += [self._ratios([table.cell(f, s) for s in sizes]) for f in table.others]
        rows, before = [], scales[0][1] if scales else ""
        for size, (_, unit), *cells in zip(sizes, scales, *columns, strict=True):
            kind = "" if unit == before else ' class="change"'
            before = unit
            rows.append(f"<tr{kind}>{self._size_cells(size)}{cell_html(unit, 'unit')}{''.join(cells)}</tr>")
        foot = self._(
            "Grey italic: no difference shown (the interval of the ratio contains 1), or too few runs for an interval."
        )
        return table_html(head, rows, over=over) + f'<p class="small">{escape(foot)}</p>'

    def _over(self, table: "Table", names: Sequence[str], *, ratios: bool = True) -> str:
        """The first head row: the fabrics over their medians and intervals, and what the ratios are to."""
        stacked = _is_stacked(table)
        over = "".join(th(name, "group", 1 if stacked else 2) for name in names)
        times = self._("Times as fast as {base}").format(base=self.c.labels[table.baseline])
        return over + (th(times, "group", len(table.others)) if ratios and not stacked else "")

    def _heads(self, table: "Table", *, ratios: bool = True) -> list[str]:
        """The second head row under `_over`."""
        names = self._("median"), self._("95 % interval"), self._("times as fast")
        if _is_stacked(table):
            under = "".join(f'<span class="under">{escape(n)}</span>' for n in names[1 : 3 if ratios else 2])
            return [f'<th class="num" scope="col">{escape(names[0])}{under}</th>'] * len(table.fabrics)
        pair = [th(names[0]), th(names[1], "interval")]
        return pair * len(table.fabrics) + ([th(self.w.brief.label(f)) for f in table.others] if ratios else [])

    def _size_cells(self, size: int | None) -> str:
        """A size: the number right, its unit left."""
        number, _, unit = self.w.size(size).rpartition("\u00a0")
        return cell_html(number) + cell_html(unit, "unit")

    def _lines(self, table: "Table", sizes: "Sequence[int | None]") -> float:
        """How many single lines the rows of these sizes take, and the third line of the head over stacked ones."""
        return 2.3 * len(sizes) + 2 if _is_stacked(table) else len(sizes)

    def _rows(self, table: "Table", sizes: "Sequence[int | None]") -> "list[int | None]":
        """The sizes that a table prints: those that its sentences speak of, and others between them."""
        most = 5 if _is_stacked(table) else _TABLE_SIZES
        shown = _pick(sizes, most)
        told = [s for s in self.w.told_sizes(table) if s in sizes]
        for size in (s for s in told if s not in shown):
            spare = [s for s in shown if s not in told]
            if len(shown) >= most and spare:
                shown.remove(min(spare, key=lambda s: abs(sizes.index(s) - sizes.index(size))))
            shown.append(size)
        return [s for s in sizes if s in shown]

    def _values_of(
        self,
        table: "Table",
        fabric: str,
        cells: "Sequence[Cell | None]",
        scales: Sequence[float],
        *,
        ratios: bool = True,
    ) -> list[str]:
        """
        Medians and intervals of a column; words where nothing was measured, never 0 and never blank.

        With more than three fabrics the interval and the ratio stand under the median: there is no room beside it.
        """
        texts = [value_texts(x, scale) if x else ("", "") for x, scale in zip(cells, scales, strict=True)]
        compared = [table.cell(fabric, x.size_bytes) if x else None for x in cells]
        out = []
        for x, y, value, (_, interval) in zip(cells, compared, aligned([v for v, _ in texts]), texts, strict=True):
            told = escape(interval or self.w.count(x.n)) if x else escape(self._("not measured"))
            if not _is_stacked(table):
                missing = "" if x else " missing"
                out.append(f'<td class="num">{value}</td><td class="interval{missing}">{told}</td>')
                continue
            ratio = ""
            if ratios and y and y.ratio is not None:
                kind = "" if y.verdict in (FASTER, SLOWER) else " none"
                ratio = f'<span class="under ratio{kind}">{shown_ratio(y)[0]}</span>'
            out.append(f'<td class="num">{value}<span class="interval under">{told}</span>{ratio}</td>')
        return out

    def _ratios(self, cells: "Sequence[Cell | None]") -> list[str]:
        """A column of ratios; hatched where there is nothing to compare with."""
        texts = [shown_ratio(x)[0] if x and x.ratio is not None else "" for x in cells]
        out, nothing = [], escape(self._("not comparable"))
        for x, text in zip(cells, aligned(texts), strict=True):
            if x is None or x.ratio is None:
                out.append(f'<td class="num hatch"><span>{nothing}</span></td>')
            else:
                out.append(f'<td class="{"num" if x.verdict in (FASTER, SLOWER) else "num none"}">{text}</td>')
        return out

    def throughput(self, table: "Table | None" = None) -> Block:
        """Bandwidth against message size with the limits drawn and named."""
        table = table or self._moving()
        if table is None:
            return Block("")
        w = self.w
        collective = table.subject.kind == "collective"
        sub = self._("{what} against message size, {unit}. {subject}. Line: median of {runs}; band: its "
            "interval.").format(
            what=self._("Bus bandwidth") if collective else w.quantity(table.subject),
            unit="GB/s" if collective else "Gb/s",
            subject=w.subject_line(table.subject), runs=w.runs(table, table.sizes),
        )  # fmt: skip
        several = len([s for s in table.sizes if s]) > 1
        chart = self._plot() if several else ""
        limits = self._limits_of(table)
        columns = (
            (self._("What it shows"), w.half_of_limit(table)),
            (self._("What differs besides the fabric"), self._differs(table)),
            (self._("Note"), w.left_out(table)),
        )
        body = chart + self._bandwidth_table(table) + self._above(table) + self._columns(*columns)
        body += f'<h4 class="limits">{escape(self._("What limits it"))}</h4>' + bullets(limits)
        title = w.throughput_title(table)
        below = self._column_pt([text for _, text in columns], 31, 11.5) + 24
        below += sum(3 + 10.5 * lines(t, 118) for t in limits)
        below += sum(12 + 13 * lines(t, 110) for t in w.above_limit(table))
        height = self._chart_height(
            390, title, sub, 1 + self._lines(table, self._rows(table, self._carrying(table))), below
        )
        chart_of = figures.bandwidth_chart
        figure = [chart_of(self.c, table, height=height, lang=self.lang, lifted=self._lifted(table))] if several else []
        return Block(self._section(self._("Throughput"), title, sub, body), figure, alts=[title] * len(figure))

    def _limits_of(self, table: "Table") -> list[str]:
        """The limit of every fabric with its formula, and what the formulas rest on."""
        sources = self.w.limit_sources(table)
        return [*self.w.limits(table), *([sources] if sources else [])]

    def _bandwidth_table(self, table: "Table") -> str:
        collective = table.subject.kind == "collective"
        unit = "GB/s" if collective else "Gb/s"
        names = [self._("{fabric}, {unit}").format(fabric=self.c.labels[f], unit=unit) for f in table.fabrics]
        over = '<th colspan="2"></th>' + self._over(table, names, ratios=not collective)
        head = [th(self._("Size"), "num", 2), *self._heads(table, ratios=not collective)]
        sizes = self._rows(table, self._carrying(table))
        columns = []
        for fabric in table.fabrics:
            cells = [table.cell(fabric, s) for s in sizes]
            shown = [x and (x.busbw if collective else x) for x in cells]
            columns.append(self._values_of(table, fabric, shown, [1.0] * len(sizes), ratios=not collective))
        if not (collective or _is_stacked(table)):
            columns += [self._ratios([table.cell(f, s) for s in sizes]) for f in table.others]
        rows = [
            f"<tr>{self._size_cells(size)}{''.join(cells)}</tr>" for size, *cells in zip(sizes, *columns, strict=True)
        ]
        return table_html(head, [*rows, *self._limit_row(table)], over=over)

    def _limit_row(self, table: "Table") -> list[str]:
        """The last row of a bandwidth table: the limit of every fabric, if any is known, and its formula if short."""
        collective = table.subject.kind == "collective"
        last = [table.of(f)[-1] for f in table.fabrics]
        if not any(x.limit_gbyte_s for x in last):
            return []
        cells, stacked = "", _is_stacked(table)
        for x in last:
            formula = self.w.formula(x.limit_formula or "")
            value = number_text(x.limit_gbyte_s * (1.0 if collective else 8.0), 4) if x.limit_gbyte_s else ""
            if stacked:
                cells += cell_html(value or self._("not known"))
            elif value:
                cells += cell_html(value) + cell_html(formula if len(formula) < 34 else "", "interval")
            else:
                cells += cell_html("") + cell_html(self._("not known"), "interval missing")
        blank = "" if collective or stacked else "<td></td>" * len(table.others)
        head = f'<td class="text" colspan="2">{escape(self._("limit"))}</td>'
        return [f'<tr class="limit">{head}{cells}{blank}</tr>']

    def _carrying(self, table: "Table") -> "list[int | None]":
        """
        The compared sizes at which some fabric moves at least 1 % of the largest bandwidth; below, times tell more.

        The largest size is always among them, since the title tells it.
        """
        collective = table.subject.kind == "collective"
        best = {
            s: max(
                (y.median for f in table.fabrics if (x := table.cell(f, s)) and (y := x.busbw if collective else x)),
                default=0.0,
            )
            for s in table.compared_sizes
        }
        return [s for s, v in best.items() if v >= 0.01 * max(best.values()) or s == table.common_sizes[-1]]

    def utilization_and_ratio(self, table: "Table | None" = None) -> Block:
        """Share of the own limit, and the ratio to the baseline with its interval."""
        other, table = table, table or self._moving() or self.c.headline
        share = figures.utilization_chart(self.c, table, lang=self.lang)
        charts, alts = ([share], [self.w.utilization_title(table)]) if share is not None else ([], [])
        html = self._utilization(table, drawn=share is not None)
        head = other or self.c.headline
        rows = self._ratio_rows(head)
        html += self._ratio_section(head, len(charts))
        silent, few = self._("no difference shown"), self._("too few runs")
        brief = {f: self.w.brief.label(f).replace("\u00a0", " ") for f in self.c.fabrics["fabric"]}
        charts.append(figures.ratio_chart(self.c, rows, no_difference=silent, too_few=few, lang=self.lang, names=brief))
        return Block(html, charts, alts=[*alts, self.w.ratio_title(head)])

    def _utilization(self, table: "Table", *, drawn: bool) -> str:
        kicker = self._("Utilization")
        if drawn:
            sub = self._("Bandwidth as a share of each fabric's own limit, % (median and interval).")
            body = self._plot() + self._above(table)
            return self._section(kicker, self.w.utilization_title(table), sub, body, "page half")
        missing = "".join(f"<p>{escape(t)}</p>" for t in self.w.limits(table))
        title = self._("Utilization is not measured: no limit is known")
        sub = self._(
            "A share needs the link rate, the ports and the domain of each fabric; the campaign file states them."
        )
        return self._section(kicker, title, sub, f'<div class="hatched">{missing}</div>', "page half")

    def _ratio_section(self, head: "Table", figure: int) -> str:
        base = self.w.label(head.baseline)
        how = self._("Right of the line is faster than {base}.").format(base=base)
        silent = self._(
            "\u201cNo difference shown\u201d is not \u201cequal\u201d: the interval says which ratios the runs do not "
            "exclude."
        )
        body = self._keys(head.others) + f'<div data-figure="{figure}"></div>' + self._columns(
            (self._("How to read it"), self.w.text([how, *self.w.pairing(head)])),
            (self._("What it shows"), self.w.reading(head, head.common_sizes[-1])),
            (self._("What it does not show"), silent),
        )  # fmt: skip
        if together := self.w.corrected(head):
            body += f'<p class="small">{escape(self.w.text(together))}</p>'
        sub = self._("Times as fast as {base}, logarithmic. Dot: Hodges-Lehmann ratio; bar: its 95 % interval.").format(
            base=base
        )
        return self._section(self._("Ratio to the baseline"), self.w.ratio_title(head), sub, body, "page half")

    def _ratio_rows(self, head: "Table") -> "list[tuple[str, Table, int | None]]":
        """The sizes of the headline; where it has one only, every measurand with the same baseline."""
        if len(head.common_sizes) > 1:
            return [(self.w.size(s), head, s) for s in self._rows(head, head.compared_sizes)]
        tables = [t for t in self.c.tables if t.baseline == head.baseline and len(t.common_sizes) < 4]
        return [(self._row_label(t, s), t, s) for t in tables[:6] for s in _pick(t.common_sizes, 3)]

    def _row_label(self, table: "Table", size: int | None) -> str:
        """A measurand beside its bar: two tests stand on two lines."""
        lines = self.w.operation(table.subject).replace(self.w.against, f"\n{self.w.against.lstrip()}")
        return self._("{operation}, {size}").format(operation=lines, size=self.w.size(size))

    def others(self) -> Block:
        """Every other measurand in short: ratios at small, middle and large sizes."""
        tables = [t for t in self.c.tables if t is not self.c.headline]
        shown = [t for _, t, _ in self._ratio_rows(self.c.headline)]
        if all(t in shown for t in tables):
            return Block("")
        rows = []
        for table in tables:
            what = escape(self.w.subject_line(table.subject))
            rows.append(f'<tr class="change"><th class="text" colspan="7">{what}</th></tr>')
            for size in _pick(table.common_sizes, 3):
                for fabric in table.others:
                    if (x := table.cell(fabric, size)) and x.ratio is not None:
                        rows.append(self._other_row(table, size, fabric, x))
        head = [th(self._("Size")), th(self._("Fabric"), "text"), th(self._("against"), "text"), th(self._("runs"))]
        head += [th(self._("times as fast")), th(self._("interval"), "interval"), th(self._("verdict"), "text")]
        title = _decided_title(self.w, tables)
        sub = self._(
            "Ratio at the smallest, a middle and the largest common size; times and bandwidths alike, above 1 is "
            "faster."
        )
        return Block(self._section(self._("All measurands"), title, sub, table_html(head, rows), self._kind()))

    def sweeps(self, found: "pl.DataFrame") -> Block:
        """
        Floor, half-bandwidth size and asymptote of every sweep; empty where no run has five sizes.

        Args:
            found: Of :func:`rdmalab.curves.summary`.
        """
        if found.is_empty():
            return Block("")
        title = self._("{described} of {runs} sweeps follow a latency floor and an asymptote").format(
            described=found["described"].sum(), runs=found["runs"].sum()
        )
        sub = self._(
            "Medians over the runs with five sizes or more. Fitted: time = floor + size ÷ asymptote, which is an algbw "
            "for collectives. Where that does not describe a curve, what was measured at its smallest and largest size "
            "stands."
        )
        table = curve_table(found, self.c.labels, self.w)
        return Block(self._section(self._("Sweeps"), title, sub, table, self._kind()))

    def findings(self, found: "Findings") -> Block:
        """
        What stands out beside the ratios, and the lines that prove the transport; empty where there is neither.

        Args:
            found: Of :func:`rdmalab.findings.findings`.
        """
        body = "".join(h3(head) + self._bullets(said) for head, said in self.w.findings(found))
        if self.c.proofs:
            body += h3(self._("The lines that prove the transport")) + self._proof_lines()
        if not body:
            return Block("")
        title = self._("What else the runs show")
        sub = self._("By fixed rules, for every measurand of this report; no run is left out for it.")
        return Block(self._section(self._("Findings"), title, sub, body, "page flow"))

    def _other_row(self, table: "Table", size: int | None, fabric: str, x: "Cell") -> str:
        value, interval = shown_ratio(x)
        base = table.cell(table.baseline, size)
        decided = x.verdict in (FASTER, SLOWER)
        words = {FASTER: self._("faster"), SLOWER: self._("slower"), NO_DIFFERENCE: self._("no difference shown")}
        verdict = words.get(x.verdict) or self._("too few runs")
        return (
            f"<tr>{cell_html(self.w.size(size))}{kept(self.c.labels[fabric])}"
            f"{kept(self.c.labels[table.baseline])}{cell_html(f'{x.n} / {base.n if base else 0}')}"
            f"{cell_html(value, 'num' if decided else 'num none')}{cell_html(interval, 'interval')}"
            f"{kept(verdict, 'text' if decided else 'text none')}</tr>"
        )

    def point_to_point(self) -> list[Block]:
        """Latency and bandwidth pages of the point-to-point tests that stand on no earlier page."""
        before = (self._table("collective", "latency"), self._moving())
        out = []
        for kind, page in (("latency", self.latency), ("bandwidth", self.throughput)):
            tables = [
                t for t in self.c.tables if t.subject.kind == kind and t not in before and len(t.common_sizes) > 1
            ]
            out += [page(t) for t in tables[:1]]
            if kind == "bandwidth":
                out += [self.utilization_and_ratio(t) for t in tables[:1] if _has_limit(t)]
        return out

    def node_pairs(self) -> Block:
        """Who is slow, as a matrix of host pairs; empty where fewer than three hosts were paired."""
        pairs = self.c.pairs
        if pairs is None:
            return Block("")
        w = self.w
        rows = [
            f"<tr>{cell_html(f'{a} – {b}', 'text')}{cell_html(number_text(v))}"
            f"{cell_html(f'{100 * v / max(pairs.values.values()):.1f}')}</tr>"
            for (a, b), v in pairs.slowest(5)
        ]
        head = [
            th(self._("Slowest pairs"), "text"),
            th(self._("bus bandwidth, GB/s")),
            th(self._("% of the best pair")),
        ]
        body = '<div data-figure="0"></div>' + table_html(head, rows) + self._columns(
            (self._("What it shows"), w.slow_hosts(pairs)),
            (self._("How to read it"), self._("Every cell is the median of the runs of two hosts, both directions at "
                "once; a host is slow if its median lies more than 3.5 robust deviations and 2 % below the others.")),
            (self._("What it does not show"), w.unmeasured_pairs(pairs)),
        )  # fmt: skip
        scale = self._("% of the best pair; right: median of the host, GB/s")
        cell = max(24, min(44, 460 // len(pairs.hosts)))
        figure = figures.pair_matrix(pairs, of_best=scale, cell=cell, lang=self.lang)
        title = w.pairs_title(pairs)
        return Block(self._section(self._("Node pairs"), title, w.pairs_line(pairs), body), [figure], alts=[title])

    def use_over_time(self) -> Block:
        """GPU, CPU and memory use where readings exist, and the CPU time that a gigabyte costs."""
        found = self.c.telemetry
        if not found:
            return Block("")
        w = self.w
        uses = [
            f"<tr>{cell_html(self.c.labels[u.fabric], 'text')}{cell_html(w.use(u.kind), 'text')}"
            f"{cell_html(str(u.readings))}{cell_html(number_text(u.median_pct))}"
            f"{cell_html(f'[{number_text(u.low_pct)}, {number_text(u.high_pct)}]', 'interval')}</tr>"
            for u in found.uses
        ]
        head = [
            th(self._("Fabric"), "text"),
            th(self._("What"), "text"),
            th(self._("readings")),
            th(self._("median, %")),
            th(self._("lowest, highest"), "interval"),
        ]
        costs = [
            f"<tr>{cell_html(self.c.labels[x.fabric], 'text')}{cell_html(str(x.runs))}"
            f"{cell_html(w.seconds(x.sender_s_per_gbyte))}{cell_html(w.seconds(x.receiver_s_per_gbyte))}</tr>"
            for x in found.costs
        ]
        cost_head = [
            th(self._("CPU time per 10^9 bytes moved"), "text"),
            th(self._("runs")),
            th(self._("sender, core seconds")),
            th(self._("receiver, core seconds")),
        ]
        kinds = dict.fromkeys(u.kind for u in found.uses)
        charts = [(k, f) for k in kinds if (f := figures.use_chart(self.c, k, lang=self.lang))]
        html = table_html(head, uses) if uses else ""
        html += "".join(
            f'<p class="axis over">{escape(w.use(k))}</p><div data-figure="{i}"></div>'
            for i, (k, _) in enumerate(charts)
        )
        html += table_html(cost_head, costs) if costs else ""
        html += self._noted(self._("Note"), w.remarks_on_use({u.kind for u in found.uses}, costs=bool(costs)))
        most = max(found.uses, key=lambda u: u.median_pct, default=None)
        title, sub = (
            w.busiest(most.kind, most.fabric, most.median_pct) if most else self._("What was busy while the tests ran"),
            self._("Readings of the logs of each fabric; what was not measured is not shown."),
        )
        section = self._section(self._("Use"), title, sub, powers(html), "page" if charts else "page short")
        self._flowing = not charts
        return Block(section, [f for _, f in charts], alts=[w.use(k) for k, _ in charts])

    def _kind(self) -> str:
        """The class of the next section: it follows on the same page where the one before is too short for its own."""
        kind, self._flowing = "page flow" if self._flowing else "page", False
        return kind

    def evidence(self) -> Block:
        """Every run behind the numbers with its log, line and hash; what was left out, and why."""
        used = self.c.runs.filter(self.c.runs["run_id"].is_in(list(self.c.used_runs)))
        left = self.c.runs.filter(self.c.runs["excluded_because"].is_not_null())
        body = self._noted(self._("Note"), self.c.campaign["notes"] or ())
        body += self._noted(self._("Selection"), self.w.selection()) + self._stated() + self._run_list(used)
        if self.c.doubts:
            body += h3(self._("Numbers that disagree")) + self._noted(self._("Note"), self._doubts())
        body += h3(self._("Runs that were left out")) + self._left_out(left)
        body += h3(self._("What could not be compared")) + self._unmatched()
        title = self._(
            "{used} of {all} runs stand behind the numbers, {left} were left out, {alone} have no counterpart"
        ).format(used=len(used), all=len(self.c.runs), left=len(left), alone=len(self.c.unmatched))
        sub = self._("Data snapshot {id}. Line: where the run begins in its log. Hash: of the log's content.").format(
            id=self.c.snapshot[:12]
        )
        return Block(self._section(self._("Evidence"), title, sub, body, self._kind()))

    def _bullets(self, said: Sequence[str]) -> str:
        """The first of many sentences, and how many more there are."""
        more = len(said) - _MOST_FINDINGS
        rest = [self._("{n} more; 'rdmalab compare' lists them all.").format(n=more)] if more > 0 else []
        return bullets([*said[:_MOST_FINDINGS], *rest])

    def _proof_lines(self) -> str:
        """Per fabric and transport the line of one log, as it stands there."""
        rows = []
        for x in self.c.proofs:
            where = f"{shown_path(x.path, self.c.campaign.get('root'))}:{x.line}"
            told = self.w.clauses([self._transport(x.transport), self.w.count(x.runs)])
            rows.append(
                f"<tr>{kept(self.c.labels[x.fabric])}{cell_html(told, 'text')}"
                f"{cell_html(where, 'mono')}{cell_html(x.text[:160], 'mono')}</tr>"
            )
        head = [
            th(self._("Fabric"), "text"), th(self._("Transport"), "text"), th(self._("Log"), "text"),
            th(self._("Line"), "text"),
        ]  # fmt: skip
        return table_html(head, rows)

    def _transport(self, verdict: str) -> str:
        """A verdict in the words of NCCL."""
        return {
            "ib": "NET/IB", "roce": self.w.clauses(["NET/IB", "RoCE"]), "socket": "NET/Socket", "ofi": "NET/OFI",
            "intra_node": self._("inside the node"), "rdma_unspecified": self._("RDMA, kind not printed"),
        }.get(verdict, self._("no channel line"))  # fmt: skip

    def _doubts(self) -> list[str]:
        """Where numbers of the logs contradict each other; they are shown as printed."""
        return [
            self._("{what}: in {logs} of the logs, first in {path}, line {line}.").format(
                what=self.w.doubt(d.code), logs=d.logs, path=shown_path(d.path, self.c.campaign.get("root")),
                line=d.line or 1,
            )
            for d in self.c.doubts
        ]  # fmt: skip

    def _run_list(self, runs: Any) -> str:
        """One row a run, and how many more there are."""
        out = table_html(
            self._evidence_head(), [self._evidence_row(r) for r in runs.head(_EVIDENCE_ROWS).iter_rows(named=True)]
        )
        if len(runs) > _EVIDENCE_ROWS:
            more = self._("{runs} more; 'rdmalab runs' lists them all.").format(
                runs=self.w.count(len(runs) - _EVIDENCE_ROWS)
            )
            out += p(more)
        return out

    def _stated(self) -> str:
        """What the campaign file says of the fabrics: the inputs of every limit."""
        rows = []
        for f in self.c.fabrics.iter_rows(named=True):
            texts = [f.get("nic"), *(_plain(f.get(k)) for k in ("link_rate_gbit_s", "ports_per_node", "mtu_bytes"))]
            cells = "".join(cell_html(t or self._("not stated"), "num" if i else "text") for i, t in enumerate(texts))
            rows.append(f"<tr>{kept(self.c.labels[f['fabric']])}{cells}</tr>")
        head = [
            th(self._("Fabric, as the campaign file states it"), "text"), th(self._("NIC"), "text"),
            th(self._("link rate, Gb/s")), th(self._("ports a node")), th(self._("MTU, bytes")),
        ]  # fmt: skip
        return table_html(head, rows)

    def _unmatched(self) -> str:
        """Every refusal with all its configurations, and the logs of the runs that stand behind no number."""
        out = "".join(self._hatched(*self.w.refusal(r, full=True)) for r in self.c.refusals)
        if len(self.c.unmatched):
            out += h3(self._("Runs without a counterpart")) + self._run_list(self.c.unmatched)
        return out or p(self._("Nothing."))

    def _evidence_head(self) -> list[str]:
        return [
            th(self._("Fabric"), "text"),
            th(self._("Test"), "text"),
            th(self._("Log"), "text"),
            th(self._("line")),
            th("sha256", "text"),
        ]

    def _evidence_row(self, r: dict[str, Any]) -> str:
        test = r["program"] or r["operation"] or r["tool"]
        if r["kind"] == "collective":
            test = self._("{tool} {operation}").format(tool=r["tool"], operation=r["operation"] or "")
        return (
            f"<tr>{cell_html(self.c.labels[r['fabric']], 'text')}{cell_html(test, 'text')}"
            f"{cell_html(shown_path(r['path'], self.c.campaign.get('root')), 'mono')}"
            f"{cell_html(str(r['line']) if r['line'] else '')}{cell_html(r['sha256'][:12], 'mono')}</tr>"
        )

    def _left_out(self, left: Any) -> str:
        if left.is_empty():
            return p(self._("None."))
        counts: Counter[tuple[str, str]] = Counter()
        rows = []
        for r in left.iter_rows(named=True):
            label, (why, counted) = self.c.labels[r["fabric"]], self._why_out(r["excluded_because"])
            if counted:
                counts[label, why] += 1
                continue
            path = shown_path(r["path"], self.c.campaign.get("root"))
            rows.append(
                f"<tr>{cell_html(label, 'text')}{cell_html(path, 'mono')}{cell_html(str(r['line'] or ''))}"
                f"{cell_html(why, 'text')}</tr>"
            )
        rows += [
            f"<tr>{cell_html(f, 'text')}{cell_html(self.w.count(n), 'text')}<td></td>{cell_html(why, 'text')}</tr>"
            for (f, why), n in counts.items()
        ]
        names = (self._("Fabric"), "text"), (self._("Log"), "text"), (self._("line"), "num"), (self._("Why"), "text")
        return table_html([th(*name) for name in names], rows)

    def _why_out(self, reason: str) -> tuple[str, bool]:
        """(the words for what excludes a run, whether such runs are only counted)."""
        if reason.startswith("other end of"):
            return self._("the other end of a test that is counted already"), True
        if reason.startswith("other direction of"):
            return self._("the other direction of a test that is counted already"), True
        words = {
            "no_data": (self._("no result was printed"), True),
            "no rows": (self._("prints no table (the server of this test)"), True),
            "failed": (self._("the benchmark failed"), False), "truncated": (self._("cut before its end"), False),
            "wrong data": (self._("the benchmark found wrong data"), False),
        }  # fmt: skip
        return words.get(reason, (self.w.stated(reason), False))

    def method(self) -> Block:
        """How the numbers were made, in the order a doubter asks."""
        items = [
            (self._("Unit"), self._("The unit is the run. A run that measured a size several times counts once. The "
                "tool's own average over sizes is never used.")),
            (self._("Median and interval"), self._("Exact order-statistic interval of the median, at least 95 %, "
                "from {n} runs on: 96.9 % at 6 runs, 96.1 % at 9. Below {n} runs there is no such interval, and "
                "nothing is ranked.").format(n=MIN_RUNS)),
            (self._("Ratio"), self._("Hodges-Lehmann estimate on logarithms with the exact interval of the "
                "Mann-Whitney test (Moses), of the signed-rank test of Wilcoxon where the campaign file pairs "
                "the runs. For times it is baseline over fabric, for bandwidths fabric over "
                "baseline: above 1 is faster. Faster and slower are said only if the interval excludes 1. Tables "
                "print a slower fabric as 1/x, where x is how many times as fast the baseline is.")),
            (self._("Like with like"), self._("A collective is compared in the same tool at the same operation, "
                "type, reduction, root, ranks, nodes, placement and size; a point-to-point test in the same "
                "configuration. Unlike tools stand beside each other only where the campaign file declares that they "
                "measure the same, and are named.")),
            (self._("Limits"), self._("busbw is held against the largest value that ranks, scale-up domains and "
                "ports allow (n ranks in k domains, R the payload rate of a domain's ports: all-reduce R (n-1) k / "
                "(n (k-1))). Payload rate is the link rate less the headers at the MTU. A fact that is not stated "
                "makes the limit unknown, never a guess.")),
            (self._("Units"), self._("GB/s is 10^9 byte/s, Gb/s is 10^9 bit/s, KiB, MiB, GiB are powers of 1024. "
                "perftest MB/sec and MiB/sec are 2^20 byte/s and are converted.")),
            (self._("Left out"), self._("Runs that failed, were cut, found wrong data, had one rank or an unknown "
                "number of ranks, or show another fabric than the campaign file says. Messages of 0 bytes move "
                "nothing. Both ends of one point-to-point test count once.")),
        ]  # fmt: skip
        body = explained(items) + self._limit_list()
        return Block(
            self._section(
                self._("Method"),
                self._("How the numbers were made"),
                self._("Fixed rules; no number is typed by hand."),
                body,
                "page flow whole",
            )
        )

    def _limit_list(self) -> str:
        seen = dict.fromkeys(t for x in self.c.tables if x.subject.kind != "latency" for t in self._limits_of(x))
        return h3(self._("Limits used")) + bullets(seen) if seen else ""

    def header(self) -> dict[str, Any]:
        """What the margins of the pages print."""
        return super().header() | {"title": self.w.text(self.w.verdict)}

    def figures_for_machines(self) -> dict[str, Any]:
        """Verdicts and numbers of the report, for report.json."""
        return {
            "campaign": self.c.campaign["campaign"], "baseline": self.c.baseline, "snapshot": self.c.snapshot,
            "verdict": self.w.verdict,
            "tables": [
                {
                    "subject": self.w.subject_line(t.subject), "baseline": t.baseline,
                    "cells": [
                        {k: getattr(x, k) for k in _CELL_FIELDS} for x in t.cells
                    ],
                }
                for t in self.c.tables
            ],
        }  # fmt: skip


def _column(cell: "Cell", column: str) -> "Cell | None":
    return cell if column == "main" else getattr(cell, column)


def _scale(table: "Table", cells: "list[tuple[str, Cell]]", column: str) -> tuple[float, str]:
    """(divisor, unit word) of a row of key figures; a unit that the question already names is empty."""
    if column != "main":
        return 1.0, ""
    return time_unit(max(x.median for _, x in cells)) if table.subject.lower_is_better else (1.0, "Gb/s")


def _plain(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _decided_title(w: Words, tables: "Sequence[Table]") -> str:
    """How many of the ratios of further measurands exclude 1."""
    cells = [x for t in tables for x in t.cells if x.ratio is not None]
    decided = sum(x.verdict in (FASTER, SLOWER) for x in cells)
    return w._("Of {n} further comparisons, {decided} show a difference").format(n=len(cells), decided=decided)


def _is_stacked(table: "Table") -> bool:
    """Whether a table has too many columns for intervals beside the medians."""
    return len(table.fabrics) > 3


def _has_limit(table: "Table") -> bool:
    return any(x.utilization for x in table.cells)


def _pick(sizes: "Sequence[int | None]", most: int) -> "list[int | None]":
    """At most *most* sizes, evenly spread, both ends included."""
    if len(sizes) <= most:
        return list(sizes)
    if most < 2:
        return list(sizes[:most])
    return [sizes[round(i * (len(sizes) - 1) / (most - 1))] for i in range(most)]


def _dot(proved: int, of: int) -> str:
    """The dot of a proof: every run, some, none."""
    kind = "full" if of and proved == of else "some" if proved else "none"
    return f'<span class="proof {kind}"></span> '
