"""Charts. The only module that imports plotly; it draws cells of a comparison and decides nothing.

Hue tells the class of a fabric, dash and marker its family, a direct label its name: nothing is told by colour alone.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from rdmalab._fast_imports import without_grammar
from rdmalab.language import translator
from rdmalab.tables import duration_text, number_text, shown_ratio, time_unit, value_texts
from rdmalab.units import size_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from rdmalab.compare import Cell, Comparison, Table
    from rdmalab.pairs import Pairs

INK, INK2, INK3, RULE, GRID, WASH = "#1B2129", "#4A5360", "#737C88", "#C9CFD6", "#E4E8EC", "#F4F6F8"
CHECK, REFUSED = "#8A5A00", "#A3201D"
FONT = '"Plex","RSC",sans-serif'
LABEL_GAP_PX = 13
_LABELLED = 4  # curves whose labels have room for two lines


@dataclass(frozen=True, kw_only=True)
class Margin:
    """A value over its limit, above 1 on the good side; ``words`` stand beside it."""

    label: str
    value: float
    low: float | None
    high: float | None
    outcome: str
    words: str


@dataclass(frozen=True)
class Look:
    """How a family is drawn."""

    line: str
    text: str
    dash: str
    width: float
    symbol: str
    size: float
    hollow: bool = False


LOOKS = {
    "tcp": Look("#2F3742", "#2F3742", "6px,3px", 1.4, "square", 7, hollow=True),
    "iwarp": Look("#2F3742", "#2F3742", "2px,3px", 1.7, "square", 7),
    "roce": Look("#D97A00", "#9C5600", "9px,2px,2px,2px", 1.8, "diamond", 8),
    "softroce": Look("#D97A00", "#9C5600", "2px,3px", 1.4, "diamond", 8, hollow=True),
    "infiniband": Look("#1B74BE", "#145F9E", "solid", 2, "circle", 7),
    "infiniband-older": Look("#4F94CE", "#145F9E", "solid", 1.8, "circle", 7, hollow=True),
    "nvlink": Look("#0B6B50", "#0B6B50", "12px,3px", 1.7, "triangle-up", 9),
    "xgmi": Look("#0B6B50", "#0B6B50", "6px,3px", 1.7, "triangle-down", 9),
    "hccs": Look("#0B6B50", "#0B6B50", "2px,3px", 1.7, "pentagon", 9),
    "pcie": Look("#0B6B50", "#0B6B50", "9px,2px,2px,2px", 1.7, "hexagon", 9, hollow=True),
    "efa": Look("#C0508A", "#A03A70", "12px,3px,2px,3px", 1.7, "cross", 9),
    "slingshot": Look("#C0508A", "#A03A70", "2px,3px", 1.7, "x", 9),
    "ethernet": Look("#737C88", "#4A5360", "6px,3px", 1.4, "star", 9),
    "unknown": Look("#737C88", "#4A5360", "1px,3px", 1.4, "star", 9),
}
# For further fabrics of one hue: a tint of it, another dash, and a hollow marker.
_VARIANTS = (
    ("2px,2px", "circle"), ("10px,3px", "square"), ("4px,2px,1px,2px", "diamond"), ("1px,4px", "triangle-up"),
    ("14px,2px", "triangle-down"), ("5px,1px", "pentagon"), ("3px,5px", "hexagon"),
)  # fmt: skip
_TINT = 0.28  # how much white: #1B74BE becomes about #5B9BD0


def looks(c: "Comparison") -> dict[str, Look]:
    """
    Fabric → look. Of fabrics of one family the one with the fastest link has the look of the family, the others a tint
    of it and a hollow marker; fabrics of one hue stay distinguishable without colour.
    """
    out: dict[str, Look] = {}
    rates = dict.fromkeys(c.fabrics["fabric"], 0.0)
    if "link_rate_gbit_s" in c.fabrics.columns:
        rates |= {f: r or 0.0 for f, r in zip(c.fabrics["fabric"], c.fabrics["link_rate_gbit_s"], strict=True)}
    for fabric in sorted(c.fabrics["fabric"], key=lambda f: -rates[f]):
        base = LOOKS.get(c.families[fabric], LOOKS["unknown"])
        older = LOOKS.get(f"{c.families[fabric]}-older", replace(base, line=_tinted(base.line), hollow=True))
        variants = [replace(older, dash=d, symbol=s, size=7, hollow=True) for d, s in _VARIANTS]
        used = {k for x in out.values() for k in _distinct(x)}
        out[fabric] = next((x for x in (base, older, *variants) if not used & _distinct(x)), base)
    return {f: out[f] for f in c.fabrics["fabric"]}


def _tinted(colour: str) -> str:
    """A colour nearer to white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(x + (255 - x) * _TINT):02X}" for x in parts)


def _distinct(look: Look) -> set[tuple[str, ...]]:
    """What no two fabrics may share: a dash in one colour, a marker in one hue."""
    return {(look.line, look.dash), (look.text, look.symbol, str(look.hollow))}


@cache
def _figure_type() -> "type[go.Figure]":
    """A figure that takes its annotations in together: plotly checks all of them again whenever one is added."""
    import plotly.graph_objects as go

    class Figure(go.Figure):  # type: ignore[misc]
        _waiting: tuple[dict[str, Any], ...] = ()

        def add_annotation(self, **given: Any) -> "Figure":
            self._waiting = (*self._waiting, given)
            return self

        @property
        def layout(self) -> Any:
            """With what was waiting."""
            waiting, self._waiting = self._waiting, ()
            if waiting:
                super().layout.annotations = (*super().layout.annotations, *waiting)
            return super().layout

        @layout.setter
        def layout(self, new: Any) -> None:
            go.Figure.layout.fset(self, new)

        def to_dict(self) -> Any:
            """With what was waiting."""
            return self.layout and super().to_dict()

    return Figure


def _base(height: int, **margin: int) -> "go.Figure":
    figure = _figure_type()()
    figure.update_layout(
        template="none", paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", showlegend=False, height=height,
        font={"family": FONT, "size": 11, "color": INK}, autosize=True, hovermode="x unified",
        margin={"l": 52, "r": 126, "t": 12, "b": 40, "pad": 0} | margin,
        hoverlabel={"font": {"family": FONT, "size": 11}},
    )  # fmt: skip
    return figure


def warm_up() -> None:
    """Loads what plotly puts off until the first chart that needs it."""
    import plotly.graph_objects as go

    figure = _base(100)
    span = {"array": [1], "arrayminus": [1]}
    figure.add_trace(go.Scatter(x=[1, 2], y=[1, 2], error_x=span, error_y=span, text=["1", "2"], mode="lines+markers"))
    figure.add_heatmap(z=[[1]])
    figure.add_shape(type="rect", x0=0, x1=1, y0=0, y1=1)
    figure.add_annotation(x=1, y=1, text="1")
    figure.add_hline(y=1)
    figure.update_xaxes(tickvals=[1], ticktext=["1"])
    figure.to_json()


def live_chart() -> "go.FigureWidget":
    """An empty chart as a widget of Jupyter, as wide as its place; :func:`redraw` fills it."""
    import plotly.graph_objects as go

    with without_grammar():
        live = go.FigureWidget()
    live._config = {"responsive": True, "displayModeBar": False}  # plotly's own way to give a widget its options
    return live


def redraw(live: "go.FigureWidget", figure: "go.Figure", clicked: Callable[[str, int], None]) -> None:
    """
    Puts a chart of message sizes in the place of what a widget shows.

    Args:
        clicked: Called with the name of a series and the message size in bytes of the point that was clicked.
    """

    def pass_on(trace: Any, points: Any, _: Any) -> None:
        if points.xs and trace.legendgroup:
            clicked(trace.legendgroup, round(points.xs[0]))

    figure.update_layout(hovermode="closest", autosize=True)
    with live.batch_update():
        live.data = ()
        live.layout = figure.layout
        for name in ("shapes", "annotations"):  # what a chart does not have would stay from the one before it
            live.layout[name] = figure.layout[name] or [{"visible": False}]
        live.add_traces(figure.data)
    for trace in live.data:
        if trace.type == "scatter":
            trace.on_click(pass_on)


def without_bands(figure: "go.Figure") -> "go.Figure":
    """A chart without the bands of its intervals."""
    figure.data = tuple(t for t in figure.data if not (t.legendgroup and t.fill == "toself"))
    return figure


def with_runs(figure: "go.Figure", c: "Comparison", runs: Iterable[tuple[str, int, float]]) -> "go.Figure":
    """A chart with single runs as small marks: (fabric, message size in bytes, value in the unit of the chart)."""
    import plotly.graph_objects as go

    look = looks(c)
    by_fabric: dict[str, list[tuple[int, float]]] = {}
    for fabric, size, value in runs:
        by_fabric.setdefault(fabric, []).append((size, value))
    for fabric, points in by_fabric.items():
        figure.add_trace(
            go.Scatter(
                x=[size for size, _ in points], y=[value for _, value in points], mode="markers", hoverinfo="skip",
                name=_plain(c.labels[fabric]), legendgroup=c.labels[fabric],
                marker={"symbol": "circle-open", "size": 4, "color": look[fabric].line, "line": {"width": 0.8}},
            )
        )  # fmt: skip
    return figure


def _size_axis(figure: "go.Figure", sizes: Sequence[int]) -> None:
    """Message sizes on a logarithmic axis, ticks at powers that people say."""
    low, high = min(sizes), max(sizes)
    ticks = [2**k for k in ((12, 15, 20, 25, 30, 35) if low >= 4096 else (3, 10, 20, 30, 40))]
    ticks = [t for t in ticks if low <= t <= high]
    if len(ticks) < 2:
        ticks = list(sizes) if len(sizes) <= 6 else [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
    minor = [2**k for k in range(int(math.log2(max(1, low))), int(math.log2(high)) + 1)]
    pad = max(0.02 * math.log10(high / low), 0.03) if high > low else 0.3
    figure.update_xaxes(
        type="log", tickmode="array", tickvals=ticks, ticktext=[size_text(t) for t in ticks],
        minor={"tickmode": "array", "tickvals": minor, "ticklen": 3, "tickcolor": RULE, "ticks": "outside"},
        ticks="outside", ticklen=6, tickcolor=INK2, linecolor=INK2, linewidth=1, showline=True, gridcolor=GRID,
        gridwidth=1, zeroline=False, range=[math.log10(low) - pad, math.log10(high) + pad], tickangle=0,
    )  # fmt: skip


def _time_axis(figure: "go.Figure", values: Iterable[float]) -> tuple[float, float]:
    """Microseconds on a logarithmic axis with words; decades only."""
    values = [v for v in values if v > 0]
    low, high = math.log10(min(values)) - 0.12, math.log10(max(values)) + 0.12
    decades = list(range(math.floor(low), math.ceil(high) + 1))
    shown = [10.0**d for d in decades if low <= d <= high]
    if len(shown) < 2:  # a narrow range: 1-2-5 steps
        shown = [m * 10.0**d for d in decades for m in (1, 2, 5) if low <= math.log10(m * 10.0**d) <= high]
    figure.update_yaxes(
        type="log", tickmode="array", tickvals=shown, ticktext=[duration_text(t) for t in shown], range=[low, high],
        gridcolor=GRID, gridwidth=1, zeroline=False, showline=False, ticks="",
    )  # fmt: skip
    return low, high


def _step(span: float, most: float) -> float:
    """The distance of ticks, at most *most* of them over *span*: 1, 2, 2.5 or 5 times a power of ten."""
    exponent = math.floor(math.log10(span / most))
    return next(s * 10.0**exponent for s in (1, 2, 2.5, 5, 10, 20) if span / (s * 10.0**exponent) <= most)


def _linear_axis(
    figure: "go.Figure", top: float, unit: str, limits: Iterable[float] = (), height_px: float = 300
) -> None:
    """A linear axis from 0; the unit stands at the top tick; ticks too near a limit line give way to it."""
    step = _step(top, 5.2)
    ticks = [i * step for i in range(int(top / step + 1e-9) + 1)]
    near = 12 * top / height_px
    shown = [t for t in ticks if all(abs(t - limit) > near for limit in limits)] or ticks[:1]
    text = [f"{t:g}" for t in shown]
    text[-1] += f"\u00a0{unit}"
    figure.update_yaxes(
        tickmode="array", tickvals=shown, ticktext=text, range=[0, top], gridcolor=GRID, gridwidth=1, zeroline=False,
        showline=False, ticks="",
    )  # fmt: skip


def _series(
    figure: "go.Figure", cells: "Sequence[Cell]", look: Look, name: str, hover: str, *, sparse: bool = False
) -> None:
    """
    Three traces: the band of the intervals, the line of the medians, markers at every second size.

    Args:
        sparse: One marker in the middle: the picture of a cover.
    """
    import plotly.graph_objects as go

    x = [c.size_bytes for c in cells]
    y = [c.median for c in cells]
    for whole, group in groupby(cells, key=lambda c: c.low is not None and c.high is not None):
        band = list(group) if whole else []
        if len(band) > 1:
            around = [c.size_bytes for c in band]
            figure.add_trace(
                go.Scatter(
                    x=around + around[::-1], y=[c.high for c in band] + [c.low for c in band][::-1], fill="toself",
                    fillcolor=_alpha(look.line, 0.2), line={"width": 0}, mode="lines", hoverinfo="skip",
                    name=_plain(name), legendgroup=name,
                )
            )  # fmt: skip
    few = 2 * sum(c.low is None for c in cells) > len(cells)
    figure.add_trace(
        go.Scatter(
            x=x, y=y, mode="lines", name=_plain(name), legendgroup=name, connectgaps=False, hovertemplate=hover,
            line={"color": look.line, "width": 1.2 if few else look.width, "dash": "2px,2px" if few else look.dash},
        )
    )  # fmt: skip
    every = 2 if len(x) > 8 else 1
    marked = slice(len(x) // 2, len(x) // 2 + 1) if sparse else slice(None, None, every)
    figure.add_trace(
        go.Scatter(
            x=x[marked], y=y[marked], mode="markers", hoverinfo="skip", name=_plain(name), legendgroup=name,
            marker=_marker(look, look.size * (1.4 if sparse else 1), hollow=look.hollow or few),
        )
    )  # fmt: skip


def _marker(look: Look, size: float, *, hollow: bool) -> dict[str, Any]:
    """A marker; filled ones get a white edge so that crossings stay legible."""
    line = {"color": look.line if hollow else "#FFFFFF", "width": 1.4 if hollow else 0.8}
    return {"symbol": look.symbol, "size": size, "color": "#FFFFFF" if hollow else look.line, "line": line}


def _alpha(colour: str, alpha: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def _labels(
    figure: "go.Figure",
    ends: Sequence[tuple[float, float, str, str]],
    scale: Callable[[float], float],
    height_px: float,
    *,
    log_y: bool,
) -> None:
    """Names at the right ends of the curves, moved apart to 13 px, in the order of the values."""
    ordered = sorted(ends, key=lambda e: scale(e[1]))
    heights = [(LABEL_GAP_PX + 1) * (e[2].count("<br>") + 1) + 1 for e in ordered]
    middles: list[float] = []
    for i, (_, y, *_rest) in enumerate(ordered):
        floor = middles[-1] + (heights[i - 1] + heights[i]) / 2 if middles else -1e9
        middles.append(max(scale(y) * height_px, floor))
    ceiling = height_px + 8
    for i in reversed(range(len(middles))):  # what would leave the chart at its top pushes the others down
        middles[i] = min(middles[i], ceiling - heights[i] / 2)
        ceiling = middles[i] - heights[i] / 2
    for (x, y, text, colour), at in zip(ordered, middles, strict=True):
        figure.add_annotation(
            x=math.log10(x), y=math.log10(y) if log_y else y, xref="x", yref="y", text=text, showarrow=False,
            xanchor="left", xshift=9, yshift=at - scale(y) * height_px, font={"size": 11, "color": colour},
            align="left",
        )  # fmt: skip


def _wrapped(label: str, limit: int = 15) -> str:
    """A label on two lines when it is long; a Chinese character is as wide as two letters."""
    if sum(_width(x) for x in label) <= limit:
        return _plain(label)
    head, space, tail = label.rpartition(" ")
    if not space:
        middle = [i for i in range(1, len(label)) if _width(label[i]) == _width(label[i - 1]) == 2]
        cut = min(middle, key=lambda i: abs(i - len(label) / 2), default=len(label))
        head, tail = label[:cut], label[cut:]
    return f"{_plain(head)}<br>{_plain(tail)}" if tail else _plain(head)


def _width(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _name(label: str, limit: int = 15) -> str:
    """A name in bold, on two lines when it is long."""
    return "<br>".join(f"<b>{line}</b>" for line in _wrapped(label, limit).split("<br>"))


def _bold(text: str) -> str:
    return f"<b>{_plain(text)}</b>"


def _plain(text: str) -> str:
    """Text as text: plotly reads a subset of HTML in labels."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def has_curve(table: "Table") -> bool:
    """Whether there are bandwidths to draw: a latency has none, nor a collective whose tool prints no bus bandwidth."""
    if table.subject.kind == "collective":
        return any(x.busbw and x.busbw.median > 0 for x in table.cells)
    return table.subject.kind != "latency"


def time_chart(c: "Comparison", table: "Table", *, height: int = 430, lang: str = "en") -> "go.Figure":
    """Time or latency against message size, both axes logarithmic."""
    figure = _base(height)
    look = looks(c)
    drawn = [cell for cell in table.cells if cell.size_bytes and cell.median > 0]
    low, high = _time_axis(figure, [v for cell in drawn for v in (cell.median, cell.low, cell.high) if v])
    _size_axis(figure, sorted({cell.size_bytes for cell in drawn if cell.size_bytes}))
    ends = []
    for fabric in table.fabrics:
        cells = [x for x in drawn if x.fabric == fabric]
        if cells:
            _series(figure, cells, look[fabric], c.labels[fabric], "%{y:.4g} µs")
            name = _name(c.labels[fabric], 15 if len(table.fabrics) <= _LABELLED else 19) + _few_words(cells, lang)
            ends.append((cells[-1].size_bytes or 1, cells[-1].median, name, look[fabric].text))
    _labels(figure, ends, lambda v: (math.log10(v) - low) / (high - low), height - 52, log_y=True)
    _shade_no_difference(figure, c, table, lang)
    curves = {f: [x for x in drawn if x.fabric == f] for f in table.fabrics}
    _hatch_uncompared(figure, curves, lambda v: (math.log10(v) - low) / (high - low), (), lang)
    return figure


def _few_words(cells: "Sequence[Cell]", lang: str) -> str:
    """The state of a series without intervals, under its name."""
    most = max((x.n for x in cells), default=0)
    if not cells or any(x.low is not None for x in cells):
        return ""
    _ = translator(lang)
    runs = (_("{n} run") if most == 1 else _("{n} runs")).format(n=most)
    return "<br>" + _("{runs}: no interval,<br>wins nothing").format(runs=runs)


def _shade_no_difference(figure: "go.Figure", c: "Comparison", table: "Table", lang: str) -> None:
    """Washes the range of sizes, at its upper end, in which some fabric shows no difference to the baseline."""
    sizes = [s for s in table.common_sizes if s]
    open_at: dict[int, list[str]] = {
        s: [f for f in table.others if (x := table.cell(f, s)) and x.verdict == "no difference shown"] for s in sizes
    }
    run: list[int] = []
    for size in reversed(sizes):
        if not open_at[size]:
            break
        run.append(size)
    if len(run) < 2:
        return
    _ = translator(lang)
    figure.add_vrect(x0=run[-1] / 1.35, x1=run[0] * 1.35, fillcolor=WASH, line_width=0, layer="below")
    names = _(", ").join(_plain(c.labels[f]) for f in dict.fromkeys(f for s in run for f in open_at[s]))
    figure.add_annotation(
        xref="x", x=math.log10(run[0] * 1.25), yref="paper", y=0.01, xanchor="right", yanchor="bottom", align="left",
        showarrow=False, font={"size": 10, "color": INK2},
        text=_("from {size}:<br>no difference shown<br>for {names}").format(size=size_text(run[-1]), names=names),
    )  # fmt: skip


def _hatch_uncompared(
    figure: "go.Figure",
    drawn: "Mapping[str, Sequence[Cell]]",
    scale: Callable[[float], float],
    limits: Iterable[float],
    lang: str,
) -> None:
    """
    Hatches the sizes that only one fabric measured: what is drawn there stands beside nothing.

    Args:
        drawn: Fabric → the cells of its curve.
        scale: From a value to its height, 0 at the axis and 1 at the top.
        limits: Values whose lines are drawn.
    """
    import plotly.graph_objects as go

    if sum(map(bool, drawn.values())) < 2:
        return
    sizes = sorted({x.size_bytes for row in drawn.values() for x in row if x.size_bytes})
    left, right = figure.layout.xaxis.range
    ground = figure.layout.yaxis.range
    if figure.layout.yaxis.type == "log":
        ground = [10.0**v for v in ground]
    cells = [x for row in drawn.values() for x in row]
    points = [((math.log10(x.size_bytes or 1) - left) / (right - left), scale(x.median)) for x in cells]
    measured = Counter(x.size_bytes for x in cells)
    patterns = {"shape": "/", "size": 9, "solidity": 0.12, "fgcolor": RULE, "bgcolor": "rgba(0,0,0,0)"}
    for alone, group in groupby(sizes, key=lambda s: measured[s] < 2):
        run = list(group)
        if not alone or len(sizes) < 2:
            continue
        low, high = max(10.0**left, run[0] / 1.35), min(10.0**right, run[-1] * 1.35)
        hatch = go.Scatter(
            x=[low, high, high, low], y=[ground[0], ground[0], ground[1], ground[1]], fill="toself",
            fillpattern=patterns, fillcolor="rgba(0,0,0,0)", line={"width": 0}, mode="lines", hoverinfo="skip",
        )  # fmt: skip
        figure.add_trace(hatch)
        figure.data = (figure.data[-1], *figure.data[:-1])
        middle = (math.log10(low * high) / 2 - left) / (right - left)
        if math.log10(high / low) > 0.34 * (right - left):
            _say_in_hatch(figure, middle, points, [scale(v) for v in limits], lang)


def _say_in_hatch(
    figure: "go.Figure", middle: float, points: Sequence[tuple[float, float]], limits: Sequence[float], lang: str
) -> None:
    """Words on white at the height that is farthest from points, labels and lines of limits."""
    _ = translator(lang)
    near = [y for x, y in points if abs(x - middle) < 0.22] + [y for x, y in points if x < middle + 0.2 and x > middle]
    busy = [*near, *limits, *(v + 0.04 for v in limits)]
    at = max((0.93, 0.75, 0.6, 0.45, 0.3, 0.12), key=lambda y: min([1.0, *(abs(y - v) for v in busy)]))
    figure.add_annotation(
        x=middle, xref="paper", y=at, yref="paper", xanchor="center", yanchor="middle", showarrow=False,
        text=_("not comparable:<br>measured on one fabric only"), font={"size": 10, "color": INK2},
        bgcolor="#FFFFFF", borderpad=2,
    )  # fmt: skip


def bandwidth_chart(
    c: "Comparison", table: "Table", *, height: int = 390, lang: str = "en", cover: bool = False,
    lifted: Collection[str] = (),
) -> "go.Figure":  # fmt: skip
    """
    Bus bandwidth of a collective, or payload bandwidth of another test, against message size, with limits.

    Args:
        cover: Whether this is the picture of a cover: one marker a curve, and lines of limits from the paper's edge.
        lifted: Fabrics whose logs explain why they stand above their limit.
    """
    _ = translator(lang)
    collective = table.subject.kind == "collective"
    unit = "GB/s" if collective else "Gb/s"
    cells = {f: [y for x in table.of(f) if x.size_bytes and (y := x.busbw if collective else x)] for f in table.fabrics}
    limits = _limits(c, table, 1.0 if collective else 8.0)
    values = [v for row in cells.values() for x in row for v in (x.median, x.high) if v]
    drawn = {k: v for k, v in limits.items() if v < 2.2 * max(values, default=0.0)}
    top = max([*values, *drawn.values()], default=1.0) * 1.08
    figure = _base(height)
    _linear_axis(figure, top, unit, drawn.values(), height - 52)
    _size_axis(figure, sorted({x.size_bytes for row in cells.values() for x in row if x.size_bytes}))
    look = looks(c)
    ends = []
    for fabric, row in cells.items():
        if row:
            _series(figure, row, look[fabric], c.labels[fabric], f"%{{y:.4g}} {unit}", sparse=cover)
            value, interval = value_texts(row[-1])
            shown = (
                f"{value} {interval}" if interval and not cover and len(value + interval) < 20 else f"{value} {unit}"
            )
            text = f'{_name(c.labels[fabric])}<br><span style="color:{INK2}">{shown}</span>'
            if len(cells) > _LABELLED and not cover:  # no room for a second line; the table under the chart has it
                text = _name(c.labels[fabric], 19)
            text += _few_words(row, lang)
            if fabric in limits and row[-1].median > 1.002 * limits[fabric]:
                colour = CHECK if fabric in lifted else REFUSED
                text += f'<br><b><span style="color:{colour}">' + _("above the limit") + "</span></b>"
            ends.append((row[-1].size_bytes or 1, row[-1].median, text, look[fabric].text))
    curves = [[(x.size_bytes or 1, x.high or x.median) for x in row] for row in cells.values()]
    plot = (576 if cover else 658 - 52 - 126, height - 52)
    _limit_lines(figure, c, drawn, unit, lang, _Room(figure, curves, top, *plot), left=-68 / 576 if cover else 0.0)
    _labels(figure, ends, lambda v: v / top, height - 52, log_y=False)
    if not cover:
        _hatch_uncompared(figure, cells, lambda v: v / top, drawn.values(), lang)
    return figure


def cover_chart(c: "Comparison", table: "Table", height: int = 470, *, lang: str = "en") -> "go.Figure":
    """The picture of the cover: the bandwidth curves of the headline, its times, or the medians of its one size."""
    if len([s for s in table.common_sizes if s]) < 2:
        rows = [(f, x) for f in table.fabrics if (x := table.cell(f, table.common_sizes[0]))]
        scale, unit = time_unit(max(x.median for _, x in rows)) if table.subject.lower_is_better else (1.0, "Gb/s")
        shown = [(f, scaled(x, scale)) for f, x in rows]
        base = next((x.median for f, x in shown if f == table.baseline), None)
        figure = strip(c, shown, baseline=base, log=True, limits={}, unit=unit)
        figure.update_layout(height=90 * len(rows) + 60, margin={"l": 68, "r": 190, "t": 10, "b": 60})
        figure.update_xaxes(title={"text": unit, "standoff": 6}, tickfont={"size": 11})
        look = looks(c)
        for i, (f, x) in enumerate(shown):
            figure.add_annotation(
                x=1, y=i, xref="paper", yref="y", xanchor="left", xshift=12, showarrow=False, align="left",
                text=f"{_bold(c.labels[f])}<br>{value_texts(x)[0]} {unit}", font={"size": 12, "color": look[f].text},
            )  # fmt: skip
        return figure
    curve = has_curve(table)
    figure = (
        bandwidth_chart(c, table, height=height, lang=lang, cover=True)
        if curve
        else time_chart(c, table, height=height, lang=lang)
    )
    figure.update_layout(margin={"l": 68, "r": 150, "t": 20, "b": 40})
    if curve:
        figure.update_yaxes(showticklabels=False, showgrid=False)
    figure.update_xaxes(showgrid=False)
    return figure


def scaled(cell: "Cell", scale: float) -> "Cell":
    """A cell in another unit."""
    low, high = (v / scale if v is not None else None for v in (cell.low, cell.high))
    return replace(cell, median=cell.median / scale, low=low, high=high)


def _limits(c: "Comparison", table: "Table", factor: float) -> dict[str, float]:
    """Fabric → its limit in the chart's unit, where one limit rules all its cells."""
    out = {}
    for fabric in table.fabrics:
        found = {x.limit_gbyte_s for x in table.of(fabric)}
        if len(found) == 1 and (value := found.pop()) is not None:
            out[fabric] = value * factor
    return out


@dataclass(frozen=True)
class _Room:
    """Where a text can stand in a chart of sizes without touching a curve."""

    figure: "go.Figure"
    curves: Sequence[Sequence[tuple[int, float]]]
    top: float
    width_px: float
    height_px: float

    def free(self, text: str, value: float, side: str, place: str) -> bool:
        """Whether *text* fits at the ``left`` or ``right`` end of the line at *value*, ``above`` or ``below`` it."""
        letters = sum(map(_width, re.sub(r"<[^>]*>", "", text)))
        wide = (5.9 * letters + 8) / self.width_px
        start, stop = (0.0, wide) if side == "left" else (1 - wide, 1.0)
        per_px = self.top / self.height_px
        low, high = (value + 1 * per_px, value + 17 * per_px) if place == "above" else (value - 17 * per_px, value)
        return wide < 1 and high <= self.top * 1.02 and not any(
            low <= y <= high for curve in self.curves for y in self._within(curve, start, stop)
        )  # fmt: skip

    def _within(self, curve: Sequence[tuple[int, float]], start: float, stop: float) -> list[float]:
        """The values of a curve over a part of the axis, at every hundredth of it."""
        left, right = self.figure.layout.xaxis.range
        points = [((math.log10(x) - left) / (right - left), y) for x, y in curve]
        out = [y for x, y in points if start <= x <= stop]
        for (x0, y0), (x1, y1) in pairwise(points):
            out += [
                y0 + (y1 - y0) * (at / 100 - x0) / (x1 - x0) for at in range(101)
                if x0 <= at / 100 <= x1 and start <= at / 100 <= stop and x1 > x0
            ]  # fmt: skip
        return out


def _limit_lines(
    figure: "go.Figure", c: "Comparison", limits: dict[str, float], unit: str, lang: str, room: _Room, left: float
) -> None:
    """
    Dotted lines across the paper with their numbers, which stand where no curve runs.

    Of two limits that lie close together the lower one is named below its line; equal ones share a line and a name.
    """
    by_value: dict[float, list[str]] = {}
    for fabric, value in limits.items():
        near = next((v for v in by_value if number_text(v, 4) == number_text(value, 4)), value)
        by_value.setdefault(near, []).append(fabric)
    taken: list[float] = []
    for value, fabrics in sorted(by_value.items(), reverse=True):
        figure.add_shape(
            type="line", xref="paper", yref="y", x0=left, x1=1, y0=value, y1=value,
            line={"color": INK, "width": 1.1, "dash": "1px,2px"},
        )  # fmt: skip
        full, short = (_limit_words(c, fabrics, value, unit, lang, named=named) for named in (True, False))
        close = sum(abs(v - value) < 18 * room.top / room.height_px for v in taken)
        places = ["below"] if close else ["above", "below"]
        text, side, place = next(
            (
                (t, s, w) for t in (full, short) for w in places for s in ("left", "right") if room.free(t, value, s, w)
            ),
            (short, "left", places[0]),
        )  # fmt: skip
        taken.append(value)
        shift = 8 if place == "above" else 5 - 13 * max(1, close)
        figure.add_annotation(
            xref="paper", yref="y", x=0.004 if side == "left" else 0.996, y=value, yshift=shift,
            xanchor=side, showarrow=False, font={"size": 10.5, "color": INK}, text=text,
        )  # fmt: skip


def _limit_words(c: "Comparison", fabrics: list[str], value: float, unit: str, lang: str, *, named: bool) -> str:
    """``limit 93.16 GB/s InfiniBand``, the number once for the fabrics that share it; without names where too long."""
    _ = translator(lang)
    names = _(", ").join(_plain(c.labels[f]) for f in fabrics) if named else ""
    template = _("<b>limit {number} {unit}</b> {names}")
    return template.format(number=number_text(value, 4), unit=unit, names=names).rstrip()


def utilization_chart(c: "Comparison", table: "Table", *, height: int = 226, lang: str = "en") -> "go.Figure | None":
    """Share of each fabric's own limit against message size; None where no limit is known."""
    _ = translator(lang)
    rows = {f: [x for x in table.of(f) if x.size_bytes and x.utilization] for f in table.fabrics}
    rows = {f: r for f, r in rows.items() if r}
    if not rows:
        return None
    figure = _base(height, b=34, r=150)
    top = max(
        112.0, *(1.08 * (x.utilization.high or x.utilization.median) for r in rows.values() for x in r if x.utilization)
    )
    step = 25.0 if top < 150 else _step(top, 5)
    ticks = [i * step for i in range(int(top / step + 1e-9) + 1)]
    names = [_("{value}\u00a0%").format(value=f"{t:g}") if t in (100.0, ticks[-1]) else f"{t:g}" for t in ticks]
    figure.update_yaxes(
        tickmode="array", tickvals=ticks, ticktext=names, range=[0, top],
        gridcolor=GRID, zeroline=False, ticks="", showline=False,
    )  # fmt: skip
    _size_axis(figure, sorted({x.size_bytes for r in rows.values() for x in r if x.size_bytes}))
    look = looks(c)
    percent = _(" %")
    ends = []
    for fabric, row in rows.items():
        shares = [x.utilization for x in row if x.utilization]
        _series(figure, shares, look[fabric], c.labels[fabric], f"%{{y:.3g}}{percent}")
        text = f"{_bold(c.labels[fabric])} {value_texts(shares[-1])[0]}{percent}"
        ends.append((shares[-1].size_bytes or 1, shares[-1].median, text, look[fabric].text))
    figure.add_shape(
        type="line",
        xref="paper",
        yref="y",
        x0=0,
        x1=1,
        y0=100,
        y1=100,
        line={"color": INK, "width": 1.1, "dash": "1px,2px"},
    )
    figure.add_annotation(
        xref="paper", yref="y", x=0.004, y=100, yshift=8, xanchor="left", showarrow=False,
        font={"size": 10.5, "color": INK}, text=_("<b>limit of each fabric = 100 %</b>"),
    )  # fmt: skip
    _labels(figure, ends, lambda v: v / top, height - 46, log_y=False)
    return figure


def ratio_chart(
    c: "Comparison", rows: "Sequence[tuple[str, Table, int | None]]", *, no_difference: str, too_few: str = "",
    lang: str = "en", names: Mapping[str, str] | None = None,
) -> "go.Figure":  # fmt: skip
    """
    Speed-up over the baseline: a dot and a bar a fabric; right of the line is faster; values stand beside it.

    Args:
        rows: (label, table, size) from top to bottom; all tables have the same baseline. A label may have two lines.
        no_difference, too_few: The words for an interval that contains 1, and for a ratio without one.
        names: Fabric → the name over its column, where the label is too long for it.
    """
    first = rows[0][1]
    others = [f for f in c.fabrics["fabric"] if any(f in t.others for _, t, _ in rows)]
    cells = [(i, f, x) for i, (_, t, s) in enumerate(rows) for f in t.others if (x := t.cell(f, s)) and x.ratio]
    width = _column_width(others, [x for *_, x in cells])
    two_lines = any("\n" in label for label, *_ in rows)
    figure = _base(
        len(rows) * (34 if two_lines or len(others) > 2 else 26) + 66, l=84 if len(rows[0][0]) < 14 else 176,
        r=width * len(others) + 10, t=26, b=40,
    )  # fmt: skip
    figure.update_layout(hovermode="closest")
    bounds = [v for *_, x in cells for v in (x.ratio, x.ratio_low, x.ratio_high) if v]
    low, high = math.log10(min([*bounds, 0.94])) - 0.04, math.log10(max([*bounds, 1.06])) + 0.06
    look = looks(c)
    step = 0.36 if len(others) < 3 else 0.22
    offsets = {f: (i - (len(others) - 1) / 2) * step for i, f in enumerate(others)}
    _ratio_ground(figure, len(rows))
    for i, fabric, x in cells:
        figure.add_trace(_ratio_mark(i + offsets[fabric], x, look[fabric], c.labels[fabric]))
        if words := {"no difference shown": no_difference, "too few runs": too_few}.get(x.verdict):
            _say_beside(figure, x, i + offsets[fabric], low, high, words)
    _ratio_columns(figure, c, others, cells, look, width, lang, names)
    _ratio_axes(figure, low, high, [label for label, *_ in rows])
    figure.add_annotation(
        x=0, y=1, xref="x", yref="paper", yanchor="bottom", showarrow=False, yshift=4, xanchor="center",
        text=f"<b>1 = {_plain(c.labels[first.baseline])}</b>", font={"size": 10.5},
    )  # fmt: skip
    _link_ratios(figure, c, first.baseline, others, (low, high), len(rows), lang)
    return figure


def _link_ratios(
    figure: "go.Figure", c: "Comparison", baseline: str, others: list[str], axis: tuple[float, float], rows: int,
    lang: str,
) -> None:  # fmt: skip
    """Where a fabric would stand if it were as much faster as its link is, as dotted lines; where links are known."""
    if "link_rate_gbit_s" not in c.fabrics.columns:
        return
    rates = dict(zip(c.fabrics["fabric"], c.fabrics["link_rate_gbit_s"], strict=True))
    ports = dict(zip(c.fabrics["fabric"], c.fabrics["ports_per_node"], strict=True))
    base = (rates[baseline] or 0) * (ports[baseline] or 0)
    ratios = {(rates[f] or 0) * (ports[f] or 0) / base for f in others} if base else set()
    _ = translator(lang)
    for ratio in sorted(ratios):
        at = math.log10(ratio) if ratio else 0.0
        if not 0.08 * (axis[1] - axis[0]) < abs(at) or not axis[0] < at < axis[1]:
            continue
        figure.add_shape(
            type="line", x0=ratio, x1=ratio, xref="x", y0=-0.5, y1=rows - 0.5, yref="y", layer="below",
            line={"color": INK2, "width": 1.2, "dash": "1px,3px"},
        )  # fmt: skip
        if abs(at) > 0.3 * (axis[1] - axis[0]):
            figure.add_annotation(
                x=at, y=1, xref="x", yref="paper", yanchor="bottom", showarrow=False, yshift=4, xanchor="center",
                text=_("ratio of link rates {ratio}×").format(ratio=f"{ratio:g}" if ratio >= 1 else f"1/{1 / ratio:g}"),
                font={"size": 10.5, "color": INK2},
            )  # fmt: skip


def _column_width(others: list[str], cells: "list[Cell]") -> int:
    """Pixels of a column of ratios: with many fabrics there is no room for the intervals, which the bars show."""
    if len(others) > 2:
        return _NARROW
    return 132 if any(x.verdict == "slower" for x in cells) else 112


_NARROW = 76


def _ratio_ground(figure: "go.Figure", rows: int) -> None:
    """Every second row washed, and the line at 1."""
    for i in range(1, rows, 2):
        figure.add_shape(
            type="rect", xref="paper", yref="y", x0=-0.5, x1=2.5, y0=i - 0.5, y1=i + 0.5, fillcolor=WASH,
            line_width=0, layer="below",
        )  # fmt: skip
    figure.add_shape(
        type="line", x0=1, x1=1, xref="x", y0=-0.5, y1=rows - 0.5, yref="y", line={"color": INK, "width": 1.4},
        layer="below",
    )  # fmt: skip


def _say_beside(figure: "go.Figure", x: "Cell", y: float, low: float, high: float, words: str) -> None:
    """The words beside the bar, on the side where there is room."""
    right = math.log10(x.ratio_high or x.ratio or 1)
    fits = right < low + 0.6 * (high - low)
    figure.add_annotation(
        x=right if fits else math.log10(x.ratio_low or x.ratio or 1), y=y, xanchor="left" if fits else "right",
        xshift=8 if fits else -8,
        showarrow=False, text=words, font={"size": 10, "color": INK2},
    )  # fmt: skip


def _ratio_axes(figure: "go.Figure", low: float, high: float, labels: list[str]) -> None:
    ticks = [t for t in _RATIO_TICKS if low <= math.log10(t) <= high]
    if len(ticks) > 6:
        ticks = [t for t in ticks if math.log2(t) % 2 == 0]
    text = [f"{t:g}×" if t >= 1 else f"1/{1 / t:g}" for t in ticks]
    figure.update_xaxes(
        type="log", range=[low, high], tickmode="array", tickvals=ticks, ticktext=text, tickangle=0, gridcolor=GRID,
        zeroline=False, ticks="outside", ticklen=6, tickcolor=INK2, showline=False,
    )  # fmt: skip
    figure.update_yaxes(
        range=[len(labels) - 0.5, -0.5], tickmode="array", tickvals=list(range(len(labels))),
        ticktext=[_plain(t).replace("\n", "<br>") for t in labels],
        showgrid=False, zeroline=False, ticks="", showline=False,
    )  # fmt: skip


_RATIO_TICKS = (1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256)


def _ratio_mark(y: float, cell: "Cell", look: Look, name: str) -> "go.Scatter":
    import plotly.graph_objects as go

    decided = cell.verdict in ("faster", "slower")
    colour = look.line if decided else INK3
    error = None
    if cell.ratio_low is not None and cell.ratio_high is not None and cell.ratio:
        error = {
            "type": "data", "symmetric": False, "array": [cell.ratio_high - cell.ratio],
            "arrayminus": [cell.ratio - cell.ratio_low],
            "color": colour, "thickness": 2.2, "width": 3,
        }  # fmt: skip
    return go.Scatter(
        x=[cell.ratio], y=[y], mode="markers", error_x=error, name=_plain(name), legendgroup=name,
        hovertemplate="%{x:.3g}×",
        marker={
            "symbol": look.symbol, "size": 7.5, "color": colour if decided else "#FFFFFF",
            "line": {"color": "#FFFFFF" if decided else colour, "width": 0.8 if decided else 1.4},
        },
    )  # fmt: skip


def _ratio_columns(
    figure: "go.Figure", c: "Comparison", others: list[str], cells: "list[tuple[int, str, Cell]]",
    look: dict[str, Look], width: int, lang: str, names: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """The values of the ratios as text at the right, one column a fabric."""
    _ = translator(lang)
    for k, fabric in enumerate(others):
        shift = 14 + width * k
        head = _wrapped((names or c.labels)[fabric], 10 if width == _NARROW else 40)
        figure.add_annotation(
            xref="paper", yref="paper", x=1, y=1, xshift=shift, yshift=4, xanchor="left", yanchor="bottom",
            showarrow=False, align="left", text=_("<b>{fabric}, ×</b>").format(fabric=head),
            font={"size": 10.5, "color": look[fabric].text},
        )  # fmt: skip
        for i, f, x in cells:
            if f == fabric:
                figure.add_annotation(
                    xref="paper", yref="y", x=1, y=i, xshift=shift, xanchor="left", showarrow=False,
                    text=_ratio_words(x, with_interval=width != _NARROW, italic=lang == "en"),
                    font={"size": 10.5, "color": look[fabric].text if x.verdict in ("faster", "slower") else INK3},
                )  # fmt: skip


def _ratio_words(x: "Cell", *, with_interval: bool, italic: bool) -> str:
    """Bold where decided; else only grey in Chinese, which has no italics."""
    value, interval = shown_ratio(x)
    interval = f" {interval}" if with_interval and interval else ""
    if x.verdict in ("faster", "slower"):
        return f"<b>{value}</b>{interval}"
    return f"<i>{value}{interval}</i>" if italic else f"{value}{interval}"


def strip(
    c: "Comparison", rows: "Sequence[tuple[str, Cell]]", *, baseline: float | None, log: bool,
    limits: dict[str, float], unit: str, places: Mapping[str, int] | None = None,
) -> "go.Figure":  # fmt: skip
    """
    A small chart beside key figures: one row a fabric with its interval, the baseline as a line, limits dotted.

    Args:
        places: Fabric → its row, where some rows have no value to draw.
    """
    places = places or {f: i for i, (f, _) in enumerate(rows)}
    figure = _base(20 * len(places) + 24, l=16, r=8, t=0, b=24)  # a row is as high as the line of figures beside it
    figure.update_layout(hovermode="closest")
    values = [v for _, x in rows for v in (x.median, x.low, x.high) if v is not None] + list(limits.values())
    look = looks(c)
    for fabric, x in rows:
        i = places[fabric]
        figure.add_trace(_strip_mark(i, x, look[fabric], c.labels[fabric], unit))
        if fabric in limits:
            figure.add_shape(
                type="line", x0=limits[fabric], x1=limits[fabric], y0=i - 0.45, y1=i + 0.45,
                line={"color": INK, "width": 1.8, "dash": "2px,2px"},
            )  # fmt: skip
    if baseline:
        figure.add_shape(
            type="line", x0=baseline, x1=baseline, y0=-0.6, y1=len(places) - 0.4, line={"color": INK, "width": 1.4},
            layer="below",
        )  # fmt: skip
    _strip_axis(figure, values, log=log)
    figure.update_yaxes(range=[len(places) - 0.5, -0.5], visible=False)
    return figure


def _strip_mark(y: float, x: "Cell", look: Look, name: str, unit: str) -> "go.Scatter":
    import plotly.graph_objects as go

    error = None
    if x.low is not None and x.high is not None:
        error = {
            "type": "data", "symmetric": False, "array": [x.high - x.median], "arrayminus": [x.median - x.low],
            "color": look.line, "thickness": 2.5, "width": 0,
        }  # fmt: skip
    return go.Scatter(
        x=[x.median], y=[y], mode="markers", error_x=error, name=_plain(name), legendgroup=name,
        hovertemplate=f"%{{x:.4g}} {unit}",
        marker=_marker(look, look.size + 1, hollow=look.hollow or x.low is None),
    )  # fmt: skip


def _strip_axis(figure: "go.Figure", values: list[float], *, log: bool) -> None:
    low, high = min(values), max(values)
    if log and low > 0:
        low, high = math.log10(low) - 0.1, math.log10(high) + 0.1
        steps = [m * 10.0**e for e in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
        ticks = [t for t in steps if low <= math.log10(t) <= high]
        while len(ticks) > 4:
            ticks = ticks[::2]
        axis = {"type": "log", "range": [low, high], "tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]}
    else:
        start = 0.0 if low < 0.6 * high else low - (high - low) * 0.3
        span = high - start or 1.0
        step = _step(span, 4)
        first = math.ceil(start / step) * step
        ticks = [first + i * step for i in range(int((high + span * 0.05 - first) / step) + 1)]
        axis = {"range": [start, high + span * 0.08], "tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]}
    figure.update_xaxes(
        tickmode="array", showline=True, linecolor=RULE, linewidth=1, ticks="outside", ticklen=4, tickcolor=INK2,
        zeroline=False,
        showgrid=False, tickfont={"size": 9.5, "color": INK2}, **axis,
    )  # fmt: skip


NO_DIFFERENCE_LOOK = Look(INK3, INK3, "solid", 2.2, "diamond", 8, hollow=True)

# The keys of the strips: the interval, the line of the baseline, the dots of a limit.
STRIP_KEYS = tuple(
    f'<svg class="key" width="{width}" height="12" viewBox="0 0 {width} 12" aria-hidden="true">{drawing}</svg>'
    for width, drawing in (
        (16, f'<line x1="0" y1="6" x2="16" y2="6" stroke="{INK3}" stroke-width="3"></line>'),
        (3, f'<line x1="1.5" y1="1" x2="1.5" y2="11" stroke="{INK}" stroke-width="1.6"></line>'),
        (3, f'<line x1="1.5" y1="0" x2="1.5" y2="12" stroke="{INK}" stroke-width="1.8" stroke-dasharray="2 2"></line>'),
    )
)  # fmt: skip


def key_svg(look: Look) -> str:
    """The key of a family as a small drawing for tables: a piece of its line with its marker."""
    fill = "#FFFFFF" if look.hollow else look.line
    shapes = {
        "pentagon": '<path d="M12.5 1.5 L17 5 L15.3 10.3 L9.7 10.3 L8 5 Z" {a}></path>',
        "hexagon": '<path d="M12.5 1.5 L16.4 3.8 L16.4 8.2 L12.5 10.5 L8.6 8.2 L8.6 3.8 Z" {a}></path>',
        "star": '<path d="M12.5 1 L13.8 4.6 L17.5 4.6 L14.5 6.9 L15.6 10.5 L12.5 8.3 L9.4 10.5 L10.5 6.9 L7.5 4.6 '
        'L11.2 4.6 Z" {a}></path>',
        "x": '<path d="M9 2.5 L12.5 5 L16 2.5 L16.5 3.5 L13.6 6 L16.5 8.5 L16 9.5 L12.5 7 L9 9.5 L8.5 8.5 L11.4 6 '
        'L8.5 3.5 Z" {a}></path>',
        "square": '<rect x="9" y="2.5" width="7" height="7" {a}></rect>',
        "diamond": '<path d="M12.5 1.5 L17 6 L12.5 10.5 L8 6 Z" {a}></path>',
        "circle": '<circle cx="12.5" cy="6" r="3.8" {a}></circle>',
        "triangle-up": '<path d="M12.5 1.5 L17 9.5 L8 9.5 Z" {a}></path>',
        "triangle-down": '<path d="M12.5 10.5 L17 2.5 L8 2.5 Z" {a}></path>',
        "cross": '<path d="M11 2 h3 v2.5 h2.5 v3 h-2.5 v2.5 h-3 v-2.5 h-2.5 v-3 h2.5 Z" {a}></path>',
    }
    shape = shapes.get(look.symbol, shapes["circle"])
    dash = "" if look.dash == "solid" else f' stroke-dasharray="{look.dash.replace("px", "")}"'
    attributes = f'fill="{fill}" stroke="{look.line}" stroke-width="1.2"'
    return (
        '<svg class="key" width="25" height="12" viewBox="0 0 25 12" aria-hidden="true">'
        f'<line x1="0" y1="6" x2="25" y2="6" stroke="{look.line}" stroke-width="{look.width}"{dash}></line>'
        f"{shape.format(a=attributes)}</svg>"
    )


_SHORT_OF_LIMIT = [[0, "#08306B"], [0.25, "#2F6FA8"], [0.5, "#7FB0D3"], [0.75, "#C6DDEC"], [1, "#F2F7FB"]]
_CELL_TEXT_UP_TO = 16  # hosts
_LABEL_NEEDS, _ABOVE_UP_TO = 11, 20  # px of a row; hosts whose names fit above their columns


def pair_matrix(pairs: "Pairs", *, of_best: str, cell: int = 24, left: int = 120, lang: str = "en") -> "go.Figure":
    """
    Node pairs as a matrix, dark where short of the best pair; hosts by name, not by value. Above 16 hosts no numbers.

    Directed pairs have the sender at the left and the receiver above. A pair without a value shows ``×`` where its runs
    failed, and stays empty where there was none. The medians of the hosts stand at the right, those of receivers below.

    Args:
        of_best: Title of the scale: what 100 per cent is.
        cell: Height of a row in px.
        left: Room for the names in px.
    """
    import plotly.graph_objects as go

    hosts = list(pairs.hosts)
    best = max(pairs.values.values())
    share = [[_share(pairs, a, b, best) for b in hosts] for a in hosts]
    shown = len(hosts) <= _CELL_TEXT_UP_TO
    failed = {f.pair for f in pairs.failed}
    text = [[_pair_text(pairs, a, b, failed) if shown else "" for b in hosts] for a in hosts]
    low = min(92.0, 2 * math.floor(min(v for row in share for v in row if v is not None) / 2))
    figure = _base(70 + cell * len(hosts) + (76 if pairs.directed else 60), l=left, r=120, t=46, b=52)
    figure.update_layout(hovermode="closest")
    figure.add_trace(
        go.Heatmap(
            z=share, x=hosts, y=hosts, zmin=low, zmax=100, colorscale=_SHORT_OF_LIMIT, xgap=2, ygap=2, text=text,
            hovertemplate="%{y}, %{x}: %{text}", hoverongaps=False,
            colorbar={
                "orientation": "h", "thickness": 9, "len": 0.6, "y": -0.07 if pairs.directed else -0.02,
                "yanchor": "top", "outlinewidth": 0,
                "title": {"text": of_best, "side": "bottom", "font": {"size": 10}},
                "ticksuffix": translator(lang)(" %"),
            },
        )
    )  # fmt: skip
    medians = {(s.name, s.role): (number_text(s.median), "#A3201D" if s.slow else INK) for s in pairs.standings}
    slow = set(pairs.slow_hosts)
    named = [h for h in hosts if h in slow or cell >= _LABEL_NEEDS]  # where rows are too thin, only the slow ones
    above = [h for h in hosts if h in slow or len(hosts) <= _ABOVE_UP_TO]
    short = {h: _plain(_short_host(h, 18)) for h in named}
    labels = [f"<b>{text}</b>" if h in slow else text for h, text in short.items()]
    common = next((i for i, seen in enumerate(zip(*hosts, strict=False)) if len(set(seen)) > 1), len(min(hosts)))
    ends = [_plain(_short_host(h[common:] or h, 6)) for h in above]
    figure.update_xaxes(
        type="category", side="top", tickvals=above, ticktext=ends, showgrid=False, ticks="", tickangle=0,
        tickfont={"size": 10}, showline=False,
    )  # fmt: skip
    figure.update_yaxes(
        type="category", autorange="reversed", tickvals=named, ticktext=labels, showgrid=False, ticks="",
        tickfont={"size": 10}, showline=False,
    )  # fmt: skip
    for a, row, texts in zip(hosts, share, text, strict=True):
        for b, part, words in zip(hosts, row, texts, strict=True):
            if shown:
                _pair_cell(figure, a, b, words, part)
    for (host, role), (value, colour) in medians.items():
        if host not in named or (role == "receiver" and not shown):
            continue
        place: dict[str, Any] = {"xref": "paper", "x": 1, "y": host, "xanchor": "left", "xshift": 10}
        if role == "receiver":
            place = {"yref": "paper", "x": host, "y": 0, "yanchor": "top", "yshift": -3}
        figure.add_annotation(text=value, showarrow=False, font={"size": 10.5, "color": colour}, **place)
    return figure


def _pair_cell(figure: "go.Figure", a: str, b: str, text: str, share: float | None) -> None:
    """The number of a pair, white where the ground is dark; a pair without a run is an empty dashed cell."""
    if text:
        colour = "#FFFFFF" if share is not None and share < 95.2 else INK
        figure.add_annotation(x=b, y=a, text=text, showarrow=False, font={"size": 10.5, "color": colour})
        return
    hosts = list(figure.data[0].x)
    x, y = hosts.index(b), hosts.index(a)
    figure.add_shape(
        type="rect", x0=x - 0.46, x1=x + 0.46, y0=y - 0.44, y1=y + 0.44,
        line={"color": INK3, "width": 0.8, "dash": "2px,2px"},
    )  # fmt: skip


def _share(pairs: "Pairs", a: str, b: str, best: float) -> float | None:
    value = pairs.of(a, b) if a != b else None
    return None if value is None else 100 * value / best


def _pair_text(pairs: "Pairs", a: str, b: str, failed: set[tuple[str, str]]) -> str:
    if a == b:
        return "–"
    value = pairs.of(a, b)
    if value is not None:
        return number_text(value)
    return "×" if (a, b) in failed or (not pairs.directed and (b, a) in failed) else ""


def _short_host(host: str, most: int = 14) -> str:
    """The end of a long host name, where names differ."""
    return host if len(host) <= most else "…" + host[-most + 1 :]


def use_chart(c: "Comparison", kind: str, *, lang: str = "en") -> "go.Figure | None":
    """Use over time of one kind, one line a device, coloured by fabric; None without stamped readings."""
    import plotly.graph_objects as go

    _ = translator(lang)
    if c.telemetry is None or c.telemetry.series.is_empty():
        return None
    rows = c.telemetry.series.filter(c.telemetry.series["kind"] == kind)
    if rows.is_empty():
        return None
    figure = _base(226, b=34)
    look = looks(c)
    for (fabric, *_rest), part in rows.group_by(["fabric", "log_id", "device"], maintain_order=True):
        colour = look[str(fabric)]
        figure.add_trace(
            go.Scatter(
                x=part["second"].to_list(),
                y=part["value_pct"].to_list(),
                mode="lines",
                name=c.labels[str(fabric)],
                line={"color": colour.line, "width": 1.2, "dash": colour.dash},
                hovertemplate="%{y:.3g}" + _(" %"),
            )
        )
    figure.update_yaxes(range=[0, 105], ticksuffix=_(" %"), gridcolor=GRID, zeroline=False)
    figure.update_xaxes(ticksuffix=" s", gridcolor=GRID, zeroline=False, showline=True, linecolor=INK2)
    return figure


def margin_chart(rows: "Sequence[Margin]", *, limit: str, lang: str = "en") -> "go.Figure":
    """
    How far values are from their limits: right of the line is the good side, whatever the quantity.

    Args:
        rows: From top to bottom.
        limit: The words over the line.
    """
    figure = _base(len(rows) * 26 + 62, l=196, r=118, t=26, b=34)
    figure.update_layout(hovermode="closest")
    values = [v for m in rows for v in (m.value, m.low, m.high) if v is not None]
    pad = 0.05 * max(max(values) - min(values), 0.1)
    ends = min([*values, 1.0]) - pad, max([*values, 1.0]) + pad
    _ratio_ground(figure, len(rows))
    for y, m in enumerate(rows):
        _margin_mark(figure, y, m)
    figure.add_annotation(
        x=1, y=1, xref="x", yref="paper", yanchor="bottom", showarrow=False, yshift=4, xanchor="center",
        text=f"<b>{_plain(limit)}</b>", font={"size": 10.5},
    )  # fmt: skip
    step = _step(100 * (ends[1] - ends[0]), 6) / 100
    ticks = [k * step for k in range(math.ceil(ends[0] / step), math.floor(ends[1] / step) + 1)]
    space = "" if lang == "zh" else "\u00a0"
    figure.update_xaxes(
        range=ends, tickmode="array", tickvals=ticks, ticktext=[f"{100 * t:.4g}{space}%" for t in ticks], tickangle=0,
        gridcolor=GRID, zeroline=False, ticks="outside", ticklen=6, tickcolor=INK2, showline=False,
    )  # fmt: skip
    figure.update_yaxes(
        range=[len(rows) - 0.5, -0.5], tickmode="array", tickvals=list(range(len(rows))),
        ticktext=[_plain(m.label) for m in rows], showgrid=False, zeroline=False, ticks="", showline=False,
    )  # fmt: skip
    return figure


def _margin_mark(figure: "go.Figure", y: int, m: Margin) -> None:
    """A dot, its interval as a bar, and the words at the right."""
    import plotly.graph_objects as go

    colour = {"fail": REFUSED, "refused": REFUSED, "not decided": CHECK}.get(m.outcome, INK)
    if m.low is not None and m.high is not None:
        bar = {"symbol": "line-ns-open", "size": 6, "color": colour}
        figure.add_trace(
            go.Scatter(
                x=[m.low, m.high], y=[y, y], mode="lines+markers", line={"color": colour, "width": 2.2}, marker=bar,
                hoverinfo="skip",
            )
        )  # fmt: skip
    dot = {"symbol": "circle" if m.outcome == "pass" else "circle-open", "size": 7, "color": colour}
    words = f"{_plain(m.label)}: {_plain(m.words)}<extra></extra>"
    figure.add_trace(go.Scatter(x=[m.value], y=[y], mode="markers", name=m.label, hovertemplate=words, marker=dot))
    figure.add_annotation(
        x=1, xref="paper", y=y, yref="y", xanchor="left", xshift=8, showarrow=False, text=_plain(m.words),
        font={"size": 10.5, "color": colour},
    )  # fmt: skip
