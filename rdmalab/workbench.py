"""
The widgets of the explore notebook: a campaign on one screen, from charts down to the lines of logs.

Thin over :mod:`rdmalab.explore`, which asks the store, and :mod:`rdmalab.figures`, which draws. What reaches the
browser is a chart of medians and a table of at most 1,000 rows.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets as ui

from rdmalab import figures
from rdmalab.errors import RdmalabError
from rdmalab.explore import MOST_ROWS, MOST_VALUES, Exploration, View
from rdmalab.lab import Lab
from rdmalab.language import translator
from rdmalab.pairs import node_pairs
from rdmalab.typeface import font_css
from rdmalab.units import size_text
from rdmalab.wording import Words

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.compare import Table
    from rdmalab.series import Subject

_HEIGHT_PX = 350
_RUNS_DRAWN = 3_000  # marks of single runs in one chart; more are a cloud, and slow

_STYLE = """
.rdmalab-bench { font-family: "Plex","RSC",sans-serif; color: #1B2129; background: #FFFFFF; align-items: stretch;
  --jp-widgets-font-size: 13px; --jp-ui-font-color1: #1B2129; font-variant-numeric: tabular-nums }
.rdmalab-bench .widget-html-content, .rdmalab-bench select, .rdmalab-bench button, .rdmalab-bench label,
.rdmalab-bench .dt-container { font-family: "Plex","RSC",sans-serif; font-size: 13px; line-height: 1.4 }
.rdmalab-left { background: #F4F6F8; border-right: 1px solid #C9CFD6; padding: 10px 16px; width: 232px; flex: none }
.rdmalab-left > * { margin: 2px 0 }
.rdmalab-left h4 { margin: 9px 0 1px; font-size: 12.5px; font-weight: 600; color: #4A5360 }
.rdmalab-left select { background-color: #FFFFFF; border: 1px solid #C9CFD6; border-radius: 0; color: #1B2129 }
.rdmalab-left .widget-checkbox { width: 22px; height: 22px }
.rdmalab-left .widget-hbox { height: 24px; align-items: center }
.rdmalab-left button { background: #FFFFFF; border: 1px solid #C9CFD6; border-radius: 0; color: #1B2129; width: 199px }
.rdmalab-absent { color: #737C88 }
.rdmalab-right { padding: 0 20px 12px; flex: 1 1 auto; min-width: 560px; overflow: hidden }
.rdmalab-tabs { border-bottom: 1px solid #C9CFD6; margin: 0 -20px 8px; padding: 0 20px }
.rdmalab-tabs button { background: none; box-shadow: none !important; border: 0; border-bottom: 2px solid transparent;
  width: auto; padding: 4px 0; margin: 0 22px 0 0 !important; color: #4A5360; height: 36px }
.rdmalab-tabs button.mod-active { border-bottom-color: #1B2129; color: #1B2129; font-weight: 600; background: none }
.rdmalab-title { font-size: 18px; font-weight: 600; line-height: 1.3 }
.rdmalab-sub { color: #4A5360 }
.rdmalab-told pre, .rdmalab-hint pre { font-family: "Plex Mono","RSC",monospace; font-size: 12px; background: #F4F6F8;
  border-left: 3px solid #1B2129; padding: 6px 10px; margin: 4px 0; white-space: pre-wrap; overflow-wrap: anywhere }
.rdmalab-bench table.dataTable td, .rdmalab-bench table.dataTable th { font-size: 12px; padding: 3px 8px;
  white-space: nowrap }
.rdmalab-check { color: #8A5A00 }
"""


class _Fit(anywidget.AnyWidget):
    """Tells charts that their column has another width: plotly only hears of the window's."""

    _esm = """
    export default { render({ el }) {
      const seen = new ResizeObserver(() => window.dispatchEvent(new Event("resize")));
      const find = () => {
        const column = el.closest(".rdmalab-right");
        if (column) seen.observe(column); else requestAnimationFrame(find);
      };
      find();
      return () => seen.disconnect();
    } };
    """


class Workbench(ui.HBox):  # type: ignore[misc]
    """
    A view of a store that follows its controls: show it as the last line of a cell.

    Args:
        db: The store; default as in :func:`rdmalab.open`.
        campaign: The campaign to begin with; default the one with most fabrics.
        lang: ``en`` or ``zh``.

    Raises:
        StoreError: There is no store, or it cannot be used.
        UsageError: The store holds no run, or has no such campaign or language.
    """

    def __init__(self, db: str | Path | None = None, campaign: str | None = None, lang: str = "en") -> None:
        self._ = translator(lang)
        self.lang = lang
        self.lab = Lab(db)
        names = self.lab.campaigns()
        begin = campaign or (_broadest(self.lab) if names else None)
        if begin not in names:
            self.lab.the_campaign(begin)
        self._quiet = False
        self._size: int | None = None  # that was clicked
        self._make_controls()
        self._make_screen()
        left = ui.VBox(self._left())
        left.add_class("rdmalab-left")
        right = ui.VBox([_Fit(), self.tabs, self.title, self.chart, self.no_chart, self.table, self.told, self.hint])
        right.add_class("rdmalab-right")
        super().__init__([left, right])
        self.add_class("rdmalab-bench")
        with self._silence():
            self.campaign.options = names
            self.campaign.value = begin
            self._campaign_chosen()

    # -- what the analyst takes with him -------------------------------------------------------------------------------

    @property
    def view(self) -> View:
        """What is looked at."""
        low, high = self.sizes.value if self.sizes.options else (None, None)
        everything = self.sizes.options and (low, high) == (self.sizes.options[0][1], self.sizes.options[-1][1])
        return View(
            subject=self.variant.value, fabrics=tuple(f for f, box in self._boxes.items() if box.value),
            baseline=self.baseline.value, size_min=None if everything else low, size_max=None if everything else high,
        )  # fmt: skip

    def frame(self) -> "pl.DataFrame":
        """What is shown, one row a fabric and size: runs and median."""
        return self.lab.sql(self.sql())

    def sql(self) -> str:
        """The query over ``results`` that gives the medians of the chart."""
        return self.exploration.sql(self.view, self._column())

    def refresh(self, *_: object) -> None:
        """Opens the store as it is now; what was chosen stays chosen where it is still there."""
        try:
            self.lab.refresh()
        except RdmalabError as error:
            self._say(str(error))
            return
        with self._silence():
            chosen = self.campaign.value
            self.campaign.options = self.lab.campaigns()
            self.campaign.value = chosen if chosen in self.campaign.options else self.campaign.options[-1]
            self._campaign_chosen()
            self._say(self._("The store as it is now."))

    def save_report(self, *_: object) -> Path:
        """
        Writes the view as a batch of one report beside the store's reports, and shows the command that makes it.

        Returns:
            The file; the same view is written to the same file.
        """
        parameters = self.view.parameters(self.exploration.campaign)
        text = _batch(parameters, self.lang)
        path = _free_file(_reports_of(self.lab.store.path), self._file_name(), text)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        command = f"rdmalab report --batch {path} --db {self.lab.store.path}"
        more = [] if self.variant.value.kind == "collective" else [
            self._("A report is on all point-to-point tests of these fabrics and sizes.")
        ]  # fmt: skip
        self._say(*more, command=command)
        return path

    # -- the controls --------------------------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        wide = {"layout": ui.Layout(width="199px")}
        self.campaign = ui.Dropdown(**wide)
        self.operation = ui.Dropdown(**wide)
        self.setting = ui.Dropdown(**wide)
        self.variant = ui.Dropdown(**wide)
        self.baseline = ui.Dropdown(**wide)
        self.sizes = ui.SelectionRangeSlider(options=[("", 0)], readout=False, layout=ui.Layout(width="186px"))
        self.sizes_text = ui.HTML()
        self.fabrics = ui.VBox()
        self._boxes: dict[str, Any] = {}
        self.interval = ui.Checkbox(value=True, indent=False)
        self.limit = ui.Checkbox(value=True, indent=False)
        self.each = ui.Checkbox(value=False, indent=False)
        self.counts = ui.HTML()
        self.again = ui.Button(description=self._("Refresh"), tooltip=self._("Sees what was ingested since"))
        self.report = ui.Button(description=self._("Make this view a report"))
        self.again.on_click(self.refresh)
        self.report.on_click(self.save_report)
        for control, chosen in (
            (self.campaign, self._campaign_chosen), (self.operation, self._operation_chosen),
            (self.setting, self._setting_chosen), (self.variant, self._variant_chosen), (self.baseline, self._draw),
            (self.sizes, self._draw), (self.interval, self._draw), (self.limit, self._draw), (self.each, self._draw),
        ):  # fmt: skip
            control.observe(self._follow(chosen), names="value")

    def _make_screen(self) -> None:
        self._drawers: dict[str, Callable[[], None]] = {
            self._("Time"): self._draw_time, self._("Bus bandwidth"): self._draw_bandwidth,
            self._("Utilization"): self._draw_utilization, self._("Ratio"): self._draw_ratio,
            self._("Node pairs"): self._draw_pairs, self._("Runs"): self._draw_runs,
        }  # fmt: skip
        self.tabs = ui.ToggleButtons(options=list(self._drawers))
        self.tabs.observe(self._follow(self._draw), names="value")
        self.tabs.add_class("rdmalab-tabs")
        self._live = figures.live_chart()
        self.title, self.chart, self.no_chart, self.table = ui.HTML(), ui.VBox([self._live]), ui.HTML(), ui.VBox()
        self.told, self.hint = ui.HTML(), ui.HTML()
        self.told.add_class("rdmalab-told")
        self.hint.add_class("rdmalab-hint")

    def _left(self) -> list[Any]:
        def head(text: str) -> Any:
            return ui.HTML(f"<h4>{escape(text)}</h4>")

        shown = [
            (self.interval, self._("95 % interval")), (self.limit, self._("limit")), (self.each, self._("each run")),
        ]  # fmt: skip
        style = ui.HTML(f"<style>{font_css(self.lang == 'zh', '')}{_STYLE}</style>", layout=ui.Layout(height="0px"))
        return [
            style,
            head(self._("Data")), ui.HTML(escape("/".join(self.lab.store.path.parts[-2:]))), self.campaign,
            head(self._("Operation")), self.operation, self.setting, self.variant,
            head(self._("Fabrics")), self.fabrics,
            head(self._("Baseline")), self.baseline,
            head(self._("Sizes")), self.sizes_text, self.sizes,
            head(self._("Show")), *(ui.HBox([box, ui.HTML(escape(text))]) for box, text in shown),
            head(self._("Runs")), self.counts, self.again, self.report,
        ]  # fmt: skip

    @contextlib.contextmanager
    def _silence(self) -> Iterator[None]:
        """While controls are filled, their changes are no choices of the analyst."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def _follow(self, chosen: Callable[[], None]) -> Callable[[object], None]:
        def changed(_: object) -> None:
            if self._quiet:
                return
            with self._silence():
                self._say()
                try:
                    chosen()
                except RdmalabError as error:
                    self._say(str(error))

        return changed

    # -- from campaign to variant: each choice fills the next control --------------------------------------------------

    def _campaign_chosen(self) -> None:
        self.exploration = Exploration(self.lab, self.campaign.value)
        self._words = Words(self.exploration.drawing(None), self.lang)
        names: dict[str, list[Subject]] = {}
        for test in self.exploration.tests:
            names.setdefault(self._test_name(test), []).append(test)
        self._tests = names
        _fill(self.operation, [(name, name) for name in names])
        if not names:
            self._nothing(self._("No run of this campaign can be quoted; the tab of runs has the reasons."))
            return
        self._operation_chosen()

    def _test_name(self, test: "Subject") -> str:
        name = test.operation if test.kind == "collective" else test.test
        return f"{name} ({test.tool})" if test.kind == "collective" and test.tool != "nccl-tests" else str(name)

    def _operation_chosen(self) -> None:
        _fill(self.setting, _distinct((self._words.setting(t), t) for t in self._tests[self.operation.value]))
        self._setting_chosen()

    def _setting_chosen(self) -> None:
        found = self.exploration.subjects(self.setting.value)
        _fill(self.variant, _distinct((self._words.variant(s) or self._("all rows"), s) for s in found))
        if not found:
            self._nothing(self._("Its logs print no value that could be drawn."))
            return
        self._variant_chosen()

    def _variant_chosen(self) -> None:
        subject = self.variant.value
        counts = self.exploration.measured(subject)
        kept = {f for f, box in self._boxes.items() if box.value} & {f for f, n in counts.items() if n}
        look = figures.looks(self.exploration.drawing(None))
        self._boxes, rows = {}, []
        for fabric, runs in counts.items():
            box = ui.Checkbox(value=bool(runs) and (not kept or fabric in kept), indent=False, disabled=not runs)
            box.observe(self._follow(self._fabrics_chosen), names="value")
            self._boxes[fabric] = box
            label = f"{figures.key_svg(look[fabric])} {escape(self.exploration.labels[fabric])} "
            reason = (
                f"<span class='rdmalab-absent'>{escape(str(runs) if runs else self._absent(subject, fabric))}</span>"
            )
            rows.append(ui.HBox([box, ui.HTML(label + reason)]))
        self.fabrics.children = rows
        sizes = self.exploration.sizes(subject)
        self.sizes.disabled = len(sizes) < 2
        self.sizes.options = [(size_text(s), s) for s in sizes] or [("", 0)]
        self.sizes.index = (0, max(0, len(sizes) - 1))
        self._size = None
        self._fabrics_chosen()

    def _absent(self, subject: "Subject", fabric: str) -> str:
        """Why a fabric is not in the picture: it was measured otherwise, or not at all."""
        differs = self.exploration.instead(subject, fabric)
        return "(" + (self._words.difference(differs) if differs else self._("not measured")) + ")"

    def _fabrics_chosen(self) -> None:
        chosen = [f for f, box in self._boxes.items() if box.value]
        _fill(self.baseline, [(self.exploration.labels[f], f) for f in chosen])
        self._draw()

    # -- the screen ----------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        if self.variant.value is None or self.baseline.value is None:
            self._nothing(self._("No fabric is chosen."))
            return
        low, high = self.sizes.value
        self.sizes_text.value = f"{size_text(low)} – {size_text(high)}" if low else ""
        self._count()
        self._drawers[self.tabs.value]()
        self._hint()

    def _nothing(self, why: str) -> None:
        self.title.value, self.no_chart.value, self.table.children, self.hint.value = "", "", (), ""
        self.chart.layout.display, self.counts.value = "none", ""
        self._say(why)

    def _say(self, *sentences: str, command: str = "") -> None:
        text = "".join(f"<p>{escape(s)}</p>" for s in sentences)
        self.told.value = text + (f"<pre>{escape(command)}</pre>" if command else "")

    def _column(self) -> str:
        """The column that the chart draws."""
        subject = self.variant.value
        if self.tabs.index == 1 and subject.kind == "collective":
            return "busbw_gbyte_s"
        return "utilization_pct" if self.tabs.index == 2 and subject.kind != "latency" else str(subject.metric)

    def _head(self, title: str, table: "Table | None" = None) -> None:
        sub = "" if table is None else self._words.residue(table)
        mark = ""
        if self.exploration.synthetic:
            said = escape(self._("SYNTHETIC DATA"))
            mark = f"<div class='rdmalab-check' style='float:right'>{said}</div>"
        self.title.value = (
            f"{mark}<div class='rdmalab-title'>{escape(title)}</div><div class='rdmalab-sub'>{escape(sub)}</div>"
        )

    def _draw_time(self) -> None:
        table = self.exploration.table(self.view)
        subject = table.subject
        drawn = [x for x in table.cells if x.size_bytes and x.median > 0]
        if subject.kind == "bandwidth":
            self._draw_bandwidth()
            return
        self._head(self._("{quantity} against message size").format(quantity=self._words.quantity(subject)), table)
        if not drawn:
            self._no_chart(self._("Nothing was measured at a size above 0."))
            return
        self._show(figures.time_chart(self.exploration.drawing(table), table, height=_HEIGHT_PX, lang=self.lang))

    def _draw_bandwidth(self) -> None:
        table = self.exploration.table(self.view, "busbw_gbyte_s")
        collective = table.subject.kind == "collective"
        title = self._("Bus bandwidth against message size, GB/s") if collective else self._(
            "Bandwidth against message size, Gb/s"
        )  # fmt: skip
        self._head(title, table)
        if table.subject.kind == "latency" or not figures.has_curve(table):
            self._no_chart(self._("This test prints no bandwidth."))
            return
        if not any(x.size_bytes for x in table.cells):
            self._no_chart(self._("A byte stream has no message size to draw it against; the table has its values."))
            return
        if not self.limit.value:
            table = _without_limits(table)
        chart = figures.bandwidth_chart(self.exploration.drawing(table), table, height=_HEIGHT_PX, lang=self.lang)
        self._show(chart)

    def _draw_utilization(self) -> None:
        table = self.exploration.table(self.view, "utilization_pct")
        self._head(self._("Share of each fabric's own limit against message size, %"), table)
        drawing = self.exploration.drawing(table)
        chart = figures.utilization_chart(drawing, table, height=_HEIGHT_PX, lang=self.lang)
        if chart is None:
            missing = {x.limit_missing for x in table.cells if x.limit_missing}
            why = self._("No limit is known for these runs.")
            self._no_chart(why + "".join(f" {self._words.formula(m)}." for m in sorted(missing)))
            return
        self._show(chart)

    def _draw_ratio(self) -> None:
        view = self.view
        table = self.exploration.compared(view)
        name = self.exploration.labels[view.baseline]
        self._head(self._("Speed-up over {baseline}; above 1 is faster").format(baseline=name), table)
        if table is None:
            count = self.exploration.count(view)
            self._no_chart(
                self._("Too many values for ratios ({n}, at most {most}): narrow the sizes.").format(
                    n=count, most=MOST_VALUES)
                if count > MOST_VALUES
                else self._("No other chosen fabric shares a size with the baseline.")
            )  # fmt: skip
            return
        rows = [(self._words.size(s), table, s) for s in table.compared_sizes]
        drawing = self.exploration.drawing(table)
        equal, few = self._("no difference shown"), self._("too few runs")
        self._place(figures.ratio_chart(drawing, rows, no_difference=equal, too_few=few, lang=self.lang))
        self._values_table()

    def _draw_pairs(self) -> None:
        found = node_pairs(self.lab, self.exploration.campaign, list(self.view.fabrics))
        self._head(self._words.pairs_title(found) if found else self._("Node pairs"))
        if found is None:
            self._no_chart(self._("No tests of two hosts at a time were found."))
            return
        scale = self._("% of the best pair")
        self._place(figures.pair_matrix(found, of_best=scale, cell=28, lang=self.lang))
        self.table.children = ()

    def _draw_runs(self) -> None:
        found = self.exploration.runs(self.view)
        title = self._("Runs of {test}, used or left out").format(test=self.operation.value)
        self._head(title)
        self.chart.layout.display, self.no_chart.value = "none", ""
        self.table.children = self._table_of(found)

    def _show(self, chart: Any) -> None:
        """A chart of sizes with what the boxes ask for, and the values under it."""
        if not self.interval.value:
            chart = figures.without_bands(chart)
        if self.each.value:
            runs = self.exploration.each(self.view, self._column(), _RUNS_DRAWN)
            if runs is None:
                self._say(self._("More than {most} values: single runs are not drawn.").format(most=_RUNS_DRAWN))
            else:
                figures.with_runs(chart, self.exploration.drawing(None), runs)
        self._place(chart)
        self._values_table()

    def _place(self, chart: Any) -> None:
        figures.redraw(self._live, chart, self._clicked)
        self.chart.layout.display, self.no_chart.value = None, ""

    def _no_chart(self, why: str) -> None:
        """Says why there is none; the chart stays, unseen: a widget taken out of the page loses what it was sent."""
        self.chart.layout.display = "none"
        self.no_chart.value = f"<p class='rdmalab-sub'>{escape(why)}</p>"
        self._values_table()

    def _clicked(self, label: str, size_bytes: int) -> None:
        """A point was clicked: its runs into the table, and the lines of their logs under it."""
        fabric = next((f for f, name in self.exploration.labels.items() if name == label), None)
        self._size = size_bytes
        self._values_table()
        if fabric is None:
            return
        values = self.exploration.values(self.view, size_bytes)
        runs = values.filter(values["fabric"] == fabric)["run_id"].to_list()[:_RUNS_QUOTED]
        lines = [line for run in runs for line in self.exploration.lines(run, size_bytes)]
        heading = self._("{fabric} at {size}").format(fabric=label, size=size_text(size_bytes))
        self._say(heading, command="\n".join(lines))

    def _values_table(self) -> None:
        """The runs behind the medians of one size: the one that was clicked, else the largest."""
        sizes = [s for s in self.exploration.sizes(self.variant.value) if self._in_view(s)]
        size = self._size if self._size in sizes else (sizes[-1] if sizes else None)
        self.table.children = self._table_of(self.exploration.values(self.view, size))

    def _in_view(self, size: int) -> bool:
        view = self.view
        return (view.size_min or 0) <= size <= (view.size_max or size)

    def _table_of(self, frame: "pl.DataFrame") -> tuple[Any, ...]:
        from itables.widget import ITable

        names = {"path": self._("Log"), "fabric": self._("Fabric"), "line": self._("Line")}
        labels = self.exploration.labels
        shown = frame.drop("run_id", strict=False)
        shown = shown.with_columns(shown["fabric"].replace_strict(labels, default=None).fill_null(shown["fabric"]))
        shown = shown.with_columns(column.round_sig_figs(5) for column in shown if column.dtype.is_float())
        shown = shown.with_columns(shown["path"].map_elements(_short, return_dtype=shown["path"].dtype))
        table = ITable(
            shown.rename({k: v for k, v in names.items() if k in shown.columns}), classes="compact", showIndex=False,
            show_dtypes=False, lengthMenu=[10, 25, 100], maxBytes=0, style="width:100%",
        )  # fmt: skip
        if frame.height < MOST_ROWS:
            return (table,)
        return (ui.HTML(escape(self._("The first {n} rows.").format(n=MOST_ROWS))), table)

    def _count(self) -> None:
        """How many runs are used, and how many are left out and why."""
        view = self.view
        measured = self.exploration.measured(view.subject)
        lines = [self._("{n} used").format(n=sum(measured[f] for f in view.fabrics))]
        left_out = self._("{n} {reason} (left out)")
        lines += [
            left_out.format(n=n, reason=self._words.formula(reason))
            for reason, n in self.exploration.left_out(view).items()
        ]
        if unproved := self.exploration.unproved(view):
            lines.append(self._("{n} without proof of the transport").format(n=unproved))
        self.counts.value = "<br>".join(escape(line) for line in lines)

    def _hint(self) -> None:
        self.hint.value = (
            "<pre>"
            + escape(self._("bench.frame()  # what is shown, as a polars frame; bench.sql() is the query for it"))
            + "</pre>"
        )

    def _file_name(self) -> str:
        words = [self.exploration.campaign, self.variant.value.operation or self.variant.value.test or "view"]
        return "-".join("".join(c if c.isalnum() or c in "._-" else "_" for c in w).lstrip(".") for w in words)


_RUNS_QUOTED = 5  # whose lines are shown for a point


def _broadest(lab: Lab) -> str:
    """The campaign with most fabrics."""
    return str(
        lab.sql(
            """SELECT campaign FROM raw.members GROUP BY campaign
               ORDER BY count(DISTINCT fabric) DESC, campaign LIMIT 1"""
        )["campaign"][0]
    )


def _fill(control: Any, options: list[tuple[str, Any]]) -> None:
    """New options; what was chosen stays chosen where it is among them."""
    before = control.value
    control.options = options
    values = [value for _, value in options]
    control.value = before if before in values else (values[0] if values else None)


def _distinct(options: Iterator[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Options of a list, whose texts must not be alike."""
    found: dict[str, Any] = {}
    for text, value in options:
        name, number = text, 2
        while name in found:
            name, number = f"{text} ({number})", number + 1
        found[name] = value
    return list(found.items())


def _short(path: str | Path) -> str:
    """The end of a path, as far as it has room."""
    parts = str(path).split("/")
    return "/".join(parts[-3:])


def _reports_of(store: Path) -> Path:
    """The folder of reports that belongs to a store: beside its ``data`` folder, else beside itself."""
    folder = store.absolute().parent
    return (folder.parent if folder.name == "data" else folder) / "reports"


def _free_file(folder: Path, name: str, text: str) -> Path:
    """The file of this name, with a number where another view has it."""
    number = 1
    while True:
        path = folder / (f"{name}.toml" if number == 1 else f"{name}-{number}.toml")
        if not path.exists() or path.read_text(encoding="utf-8") == text:
            return path
        number += 1


def _batch(parameters: dict[str, Any], lang: str) -> str:
    """The file for ``rdmalab report --batch``; JSON's strings, numbers and lists are TOML's."""
    values = ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in parameters.items())
    return (
        "# rdmalab report --batch makes this report; the names are those of -p.\n"
        "[[report]]\n"
        'notebook = "fabric-comparison"\n'
        f"parameters = {{ {values} }}\n"
        f'lang = "{lang}"\n'
        'to = ["html", "pdf"]\n'
        'out = "{notebook}-{campaign}-{lang}"\n'
    )


def _without_limits(table: "Table") -> "Table":
    return replace(table, cells=tuple(replace(x, limit_gbyte_s=None) for x in table.cells))
