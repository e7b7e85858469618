"""
From an executed notebook to one self-contained HTML page.

    executed notebook ─▶ Document (preprocessor) ─▶ template ─▶ one file: fonts, style, charts, plotly.js inside

Nothing of the notebook reaches the page unless it is listed here: no code, no stderr, no traceback, no counter, no
path, no time. Every HTML that a cell or a log could have written goes through a sanitizer, and the page forbids all
scripts but its own two and all connections (Content-Security-Policy). The same notebook gives the same bytes.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nh3

from rdmalab._fast_imports import without_grammar
from rdmalab.display import BLOCK, ECHO, PLACE, PLOTLY, RECORD
from rdmalab.errors import UsageError
from rdmalab.typeface import CJK, font_css

with without_grammar():
    from nbconvert.exporters.html import HTMLExporter
    from nbconvert.exporters.templateexporter import TemplateExporter
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
    from nbconvert.preprocessors import Preprocessor
    from nbformat import NotebookNode
from traitlets import Bool, default

PACKAGE = Path(__file__).parent
TEMPLATES = PACKAGE / "template"

FONT_STACK = '"Plex","RSC",sans-serif'  # for layout.font.family; the names are those of @font-face below
CHART_HEIGHT = 430

_WORDS = {
    "en": {"sections": "Sections", "chart": "Chart", "image": "Image", "failed": "Failed",
           "cell": "A cell of this report failed ({name}); its result is missing.",
           "noscript": "The charts of this page are drawn by a script inside it; scripts are switched off here."},
    "zh": {"sections": "章节", "chart": "图表", "image": "图", "failed": "失败",
           "cell": "本报告的一个单元执行失败（{name}），其结果缺失。",
           "noscript": "本页图表由页内脚本绘制；此处已禁用脚本。"},
}  # fmt: skip


def to_html(
    notebook: NotebookNode, *, lang: str = "en", title: str | None = None, header: Mapping[str, Any] | None = None
) -> str:
    """
    The document of an executed notebook, one self-contained HTML file.

    Args:
        notebook: An executed notebook; it is not changed.
        lang: Language tag of the text (``en``, ``zh``, ``zh-CN``).
        title: Title of the document. Default: ``title`` in the notebook's metadata.
        header: ``report, customer, status, report_id, snapshot`` for the page margins and the bar on top of the
            screen; None or absent leaves a place empty. ``pdf`` and ``csv`` may name files beside the HTML.

    Raises:
        rdmalab.errors.UsageError: *lang* is no language tag.
    """
    settings: dict[str, Any] = {"lang": lang, "header": dict(header or {})}
    if title is not None:
        settings["title"] = title
    exporter = ReportExporter()  # type: ignore[no-untyped-call]
    html, _ = exporter.from_notebook_node(notebook, {"settings": settings})
    return html


def records(notebook: NotebookNode) -> dict[str, Any]:
    """What the cells of an executed notebook recorded with `rdmalab.display.record`, in order of appearance."""
    found: dict[str, Any] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            found.update(output.get("data", {}).get(RECORD, {}))
    return found


# --- what may stand in a page ---------------------------------------------------------------------------------------

_TAGS = {
    "a", "abbr", "article", "aside", "b", "blockquote", "br", "caption", "cite", "code", "col", "colgroup",
    "dd", "del", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "footer", "h1", "h2", "h3",
    "h4", "h5", "h6", "header", "hr", "i", "img", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s",
    "samp", "section", "small", "span", "strong", "sub", "sup", "table", "tbody", "td", "tfoot",
    "th", "thead", "tr", "u", "ul", "var", "wbr",
}  # fmt: skip
_ATTRIBUTES: dict[str, set[str]] = {
    "*": {"title", "lang", "dir"},
    "a": {"href"},
    "col": {"span", "style"},
    "colgroup": {"span"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start"},
    "td": {"colspan", "rowspan", "headers", "style"},
    "th": {"colspan", "rowspan", "headers", "scope", "style"},
}
_SVG_TAGS = {"svg", "g", "path", "circle", "ellipse", "rect", "line", "polygon", "polyline"}
_SVG_ATTRIBUTES = {
    "viewBox", "width", "height", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray",
    "stroke-linecap", "stroke-linejoin", "stroke-opacity", "opacity", "d", "cx", "cy", "r", "rx", "ry", "x", "y", "x1",
    "y1", "x2", "y2", "points", "transform",
}  # fmt: skip
_STYLES = {"width", "text-align"}  # of columns and cells; everything else is a class
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp|svg\+xml)[;,]", re.IGNORECASE)


def _attribute(tag: str, name: str, value: str) -> str | None:
    """The last word on one attribute: links lead to the web or into the page, pictures are inside the page."""
    if name == "src":
        return value if _PICTURE.match(value) else None
    if name == "href":
        return None if value.strip().lower().startswith("data:") else value
    if tag in _SVG_TAGS and "url(" in value.lower():
        return None
    return value


def _cleaner(tags: set[str], attributes: dict[str, set[str]]) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=tags,
        clean_content_tags={"script", "style", "template", "noscript", "iframe", "object", "textarea", "title"},
        attributes=attributes,
        attribute_filter=_attribute,
        filter_style_properties=_STYLES,
        url_schemes={"http", "https", "mailto", "data"},
    )


@cache
def _stranger() -> nh3.Cleaner:
    """For HTML that is not of our making: no class, no id, so it cannot dress up as a part of the report."""
    return _cleaner(_TAGS, _ATTRIBUTES)


@cache
def _trusted() -> nh3.Cleaner:
    """For blocks: our classes, anchors, the places of charts and the small drawings of keys."""
    attributes = {**_ATTRIBUTES, **dict.fromkeys(_SVG_TAGS, _SVG_ATTRIBUTES)}
    attributes["*"] = _ATTRIBUTES["*"] | {"class", "id", "role", "aria-label", "aria-hidden"}
    attributes["div"] = {"data-figure"}
    attributes["a"] = {"href", "data-print"}
    attributes["button"] = {"data-series"}
    return _cleaner(_TAGS | _SVG_TAGS | {"button"}, attributes)


# --- charts ---------------------------------------------------------------------------------------------------------


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity; both are gaps in a chart."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def _script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _printable(figure: Mapping[str, Any]) -> dict[str, Any]:
    """
    The figure as it is drawn: as wide as its place, vectors only, no picture from outside, in the fonts of the page.
    """
    traces = [{**t, "type": str(t.get("type", "scatter")).removesuffix("gl")} for t in figure.get("data") or ()]
    layout = {k: v for k, v in (figure.get("layout") or {}).items() if k != "width"}
    layout["autosize"] = True
    layout["font"] = {"family": FONT_STACK, **(layout.get("font") or {})}
    if layout.get("images"):
        layout["images"] = [i for i in layout["images"] if _PICTURE.match(str(i.get("source", "")))]
    return {"data": traces, "layout": layout}


def _chart(figure: Mapping[str, Any], alt: str, classes: str = "") -> str:
    """The place of a chart and, beside it, what is drawn there."""
    printable = _printable(figure)
    height = printable["layout"].get("height")
    pixels = height if isinstance(height, int | float) else CHART_HEIGHT
    return (
        f'<figure class="{f"chart {classes}".strip()}" role="img" aria-label="{escape(alt)}">'
        f'<div class="plot" style="height:{pixels:g}px"></div>'
        f'<script type="application/json" class="chart-data">{_script_json(printable)}</script></figure>'
    )


# --- outputs --------------------------------------------------------------------------------------------------------

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]")
_REWRITTEN = re.compile(r"[^\n]*\r(?!\n)")  # progress bars: only what stood last is kept
_CLASS = re.compile(r' class="([^"]*)"')


def _text(value: Any) -> str:
    """The notebook format allows a list of lines wherever it allows a text."""
    return "".join(value) if isinstance(value, list) else str(value)


def _lines(text: str) -> str:
    """Text of a terminal as text of a page."""
    return _REWRITTEN.sub("", _ANSI.sub("", text).replace("\r\n", "\n")).rstrip()


def _pre(text: str) -> str:
    shown = escape(_lines(text), quote=False)
    return f'<pre class="log output">{shown}</pre>' if shown else ""


def _markdown(source: str) -> str:
    renderer = IPythonRenderer(escape=False, attachments={}, embed_images=False, path="", exclude_anchor_links=True)
    return f'<div class="prose">{_stranger().clean(MarkdownWithMath(renderer=renderer).render(source))}</div>'


def _foreign(html: str) -> str:
    cleaned = _stranger().clean(html).strip()
    return f'<div class="foreign">{cleaned}</div>' if cleaned else ""


def _picture(mime: str, content: str, alt: str) -> str:
    """An image as data URI; in an ``img`` an SVG can neither run a script nor load anything."""
    data = base64.b64encode(content.encode()).decode() if mime == "image/svg+xml" else re.sub(r"\s", "", content)
    if not re.fullmatch(r"[A-Za-z0-9+/=]+", data):
        return ""
    return f'<figure class="picture"><img src="data:{mime};base64,{data}" alt="{escape(alt)}"></figure>'


@dataclass
class _Builder:
    """Collects the parts of one document."""

    words: Mapping[str, str]
    body: list[str] = field(default_factory=list)
    rail: list[str] = field(default_factory=list)

    def cell(self, cell: NotebookNode) -> None:
        if "papermill-error-cell-tag" in cell.metadata.get("tags", ()):
            return
        if cell.cell_type == "markdown" and cell.source.strip():
            self.body.append(_markdown(cell.source))
        for output in cell.get("outputs", ()):
            self.output(output)

    def output(self, output: NotebookNode) -> None:
        kind = output.output_type
        if kind == "stream" and output.get("name") == "stdout":
            self.body.append(_pre(_text(output.text)))
        elif kind == "error":
            reason = self.words["cell"].format(name=output.get("ename", "?"))
            self.body.append(f'<div class="refused"><b>{self.words["failed"]}</b> {escape(reason)}</div>')
        elif kind in ("display_data", "execute_result") and not output.get("metadata", {}).get(ECHO):
            self.data(output.get("data", {}))

    def data(self, data: Mapping[str, Any]) -> None:
        """The richest form that can be printed; a record and a widget have none."""
        if BLOCK in data:
            self.block(data[BLOCK])
        elif PLOTLY in data:
            title = (data[PLOTLY].get("layout") or {}).get("title") or ""
            words = title.get("text") if isinstance(title, Mapping) else title
            self.body.append(_chart(data[PLOTLY], self.plain(str(words or "")) or self.words["chart"]))
        elif RECORD not in data and "application/vnd.jupyter.widget-view+json" not in data:
            self.body.append(self.simple(data))

    def simple(self, data: Mapping[str, Any]) -> str:
        if "text/html" in data:
            return _foreign(_text(data["text/html"]))
        if "text/markdown" in data:
            return _markdown(_text(data["text/markdown"]))
        for mime in ("image/svg+xml", "image/png", "image/jpeg"):
            if mime in data:
                return _picture(mime, _text(data[mime]), self.words["image"])
        return _pre(_text(data.get("text/plain", "")))

    def block(self, content: Mapping[str, Any]) -> None:
        """A block with its charts in their places; charts that the HTML forgot stand at its end."""
        figures = content.get("figures", [])
        alts = [*content.get("alts", []), *[""] * len(figures)]
        placed: set[int] = set()

        def fill(place: re.Match[str]) -> str:
            index = int(place["index"])
            if index >= len(figures) or index in placed:
                return ""
            placed.add(index)
            classes = _CLASS.search(place["before"] + place["after"])
            return _chart(figures[index], alts[index] or self.words["chart"], classes[1] if classes else "")

        html = PLACE.sub(fill, _unbroken(_trusted().clean(content.get("html", ""))))
        rest = [_chart(f, alts[i] or self.words["chart"]) for i, f in enumerate(figures) if i not in placed]
        (self.rail if content.get("kind") == "rail" else self.body).append(html + "".join(rest))

    @staticmethod
    def plain(html: str) -> str:
        return unescape(re.sub(r"<[^>]*>", " ", html)).strip()


# --- the document ---------------------------------------------------------------------------------------------------

_SECTION = re.compile(r'<section(?P<attributes>(?: [\w-]+="[^"]*")*)>')
_ID = re.compile(r' id="([^"]*)"')
_KICKER = re.compile(r'<p class="kicker">(.*?)</p>', re.DOTALL)
_H2 = re.compile(r"<h2[^>]*>(.*?)</h2>", re.DOTALL)


# A line may not end inside these names; a no-break hyphen would do, but nobody finds it with the hyphen they type.
_COMPOUND = re.compile(r"\b(?:all|reduce)-(?:reduce|gather|scatter|to-all)\b", re.IGNORECASE)
_TAG = re.compile(r'(<[^">]*(?:"[^"]*"[^">]*)*>)')  # of the sanitizer's output: attributes are always quoted so


def _unbroken(html: str) -> str:
    """Keeps the names of collectives on one line; only text is touched, no attribute."""
    pieces = _TAG.split(html)
    pieces[::2] = [_COMPOUND.sub(r'<span class="keep">\g<0></span>', text) for text in pieces[::2]]
    return "".join(pieces)


def _sections(body: str) -> tuple[str, list[tuple[str, str]]]:
    """Gives every section an anchor and returns the body with the list of (anchor, label)."""
    found: list[tuple[str, str]] = []
    parts: list[str] = []
    end = 0
    starts = list(_SECTION.finditer(body))
    for number, start in enumerate(starts):
        given = _ID.search(start["attributes"])
        anchor = given[1] if given else f"s-{number + 1}"
        extra = "" if given else f' id="{anchor}"'
        parts += [body[end : start.start()], f"<section{start['attributes']}{extra}>"]
        end = start.end()
        until = starts[number + 1].start() if number + 1 < len(starts) else len(body)
        label = _KICKER.search(body, end, until) or _H2.search(body, end, until)
        if label:
            found.append((anchor, re.sub(r"<[^>]*>", " ", label[1]).strip()))
    return "".join([*parts, body[end:]]), found


def css_string(text: str) -> str:
    """*text* as a quoted CSS string; only letters and digits stand for themselves."""
    return '"' + "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):06x}" for c in text) + '"'


def _shortened(text: str, room: int) -> str:
    """*text* cut to a width of *room* letters; a Chinese character is as wide as two."""
    for end, character in enumerate(text):
        room -= 2 if CJK.match(character) else 1
        if room < 0:
            return text[:end] + "…"
    return text


def _page_rules(header: Mapping[str, Any]) -> str:
    """The margin boxes of every page but the cover; a box that is too full would push the page number away."""
    places = {
        "top-left": (["report", "customer"], 66),
        "top-right": (["status"], 52),
        "bottom-left": (["report_id", "snapshot"], 104),
    }
    boxes = []
    for place, (keys, room) in places.items():
        text = " · ".join(str(header[key]) for key in keys if header.get(key))
        boxes.append(f"@{place}{{content:{css_string(_shortened(text, room))}}}")
    return f"@page{{{''.join(boxes)}}}"


@cache
def _asset(name: str) -> str:
    return (TEMPLATES / "rdmalab" / name).read_text(encoding="utf-8")


@cache
def _plotly_js() -> str:
    """The library that draws the charts, from the installed plotly, so that it always fits the figures."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _words(lang: str) -> Mapping[str, str]:
    return _WORDS.get(lang.partition("-")[0].lower(), _WORDS["en"])


def _links(header: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Files beside the HTML. A name with a colon could be taken for an address, so it is quoted like the rest."""
    return [(label, quote(str(header[key]))) for key, label in (("pdf", "PDF"), ("csv", "CSV")) if header.get(key)]


def build(cells: Iterable[NotebookNode], lang: str, title: str, header: Mapping[str, Any]) -> dict[str, Any]:
    """What the template needs, every text escaped, as one mapping."""
    if not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", lang):
        raise UsageError(f"{lang!r} is no language tag; use 'en' or 'zh'.")
    builder = _Builder(_words(lang))
    for cell in cells:
        builder.cell(cell)
    body, sections = _sections("\n".join(part for part in builder.body if part))
    texts = "".join([title, *(str(v) for v in header.values() if v), body, *builder.rail])
    document: dict[str, Any] = {
        "lang": lang,
        "title": escape(title),
        "header": {k: escape(str(v)) for k, v in header.items() if v is not None},
        "links": _links(header),
        "body": body,
        "sections": sections,
        "rail": "\n".join(builder.rail),
        "words": builder.words,
        "css": font_css(lang.lower().startswith("zh"), texts) + _asset("report.css") + _page_rules(header),
        "plotly": _plotly_js() if 'class="chart-data"' in body or builder.rail else "",
        "bootstrap": _asset("bootstrap.js"),
    }
    # A page cannot hold the nonce it is allowed to use unless it holds its own hash.
    document["nonce"] = hashlib.sha256(_script_json(document).encode("utf-8", "replace")).hexdigest()[:32]
    return document


def warm_up() -> None:
    """Reads into memory what every document needs."""
    font_css(True, "")
    _plotly_js()
    for name in ("report.css", "bootstrap.js"):
        _asset(name)


class Document(Preprocessor):
    """Turns the cells of an executed notebook into ``resources["document"]``, the only thing the template reads."""

    enabled = Bool(True).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        settings = {**nb.metadata.get("rdmalab", {}), **resources.pop("settings", {})}
        title = settings.get("title") or nb.metadata.get("title") or "Report"
        resources["document"] = build(nb.cells, settings.get("lang", "en"), title, settings.get("header") or {})
        return nb, resources


class ReportExporter(HTMLExporter):
    """
    ``jupyter nbconvert --to rdmalab_html``: the notebook as a report.

    Title, language and header come from ``title`` and ``rdmalab`` in the notebook's metadata when `to_html` does not
    give them.
    """

    export_from_notebook = "Report (HTML)"

    @default("template_name")
    def _template_name_default(self) -> str:
        return "rdmalab"

    @default("extra_template_basedirs")
    def _default_extra_template_basedirs(self) -> list[str]:
        """The package only: a folder of that name in the working folder is not ours."""
        return [str(TEMPLATES)]

    def _init_preprocessors(self) -> None:
        super()._init_preprocessors()  # type: ignore[no-untyped-call]
        self.register_preprocessor(Document, enabled=True)  # type: ignore[no-untyped-call]

    def from_notebook_node(  # type: ignore[override]  # the base class declares a notebook as result
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        """
        As in nbconvert, without its last step, which parses 5 MB of page again to look for images without ``alt``
        (ours have one) and writes the markup anew.
        """
        html, out = TemplateExporter.from_notebook_node(self, nb, resources, **kw)
        del out["document"]
        return html.encode("utf-8", "replace").decode("utf-8"), out
