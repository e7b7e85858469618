"""The HTML of a report: whole, safe, and the same every time."""

import base64
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import plotly.graph_objects as go
import pytest

from rdmalab import display, export
from rdmalab.display import Block, record, show
from rdmalab.errors import UsageError
from rdmalab.export import css_string, records, to_html

LONG_NAME = "gpu-" + "a" * 400
HOSTILE = [
    '<img src=x onerror="window.evil=1">',
    "</script><script>window.evil=1</script>",
    "<svg onload=window.evil=1>",
    "<iframe src='file:///etc/passwd'></iframe>",
    '"><style>@import "http://evil.invalid/x.css"</style>',
    "=HYPERLINK(1)",
    LONG_NAME,
]
HEADER = {"report": "Fabric comparison", "customer": "Example", "report_id": "FC-1", "snapshot": "data 7c1e"}


def notebook(*cells: Any, **metadata: Any) -> Any:
    from nbformat.v4 import new_notebook

    return new_notebook(cells=list(cells), metadata=metadata)


def code(*outputs: Any, source: str = "secret_code()") -> Any:
    from nbformat.v4 import new_code_cell

    return new_code_cell(source, outputs=list(outputs), execution_count=41)


def data(mimes: dict[str, Any], **metadata: Any) -> Any:
    from nbformat.v4 import new_output

    return new_output("display_data", data=mimes, metadata=metadata)


def block(html: str, *figures: Any, **options: Any) -> Any:
    return code(data(Block(html, figures, **options).bundle()))


def markdown(source: str) -> Any:
    from nbformat.v4 import new_markdown_cell

    return new_markdown_cell(source)


def stream(text: str, name: str = "stdout") -> Any:
    from nbformat.v4 import new_output

    return code(new_output("stream", name=name, text=text))


def line(**layout: Any) -> go.Figure:
    return go.Figure(go.Scatter(x=[1, 2], y=[3, 4]), layout={"template": None, **layout})


class Audit(HTMLParser):
    """What a browser would run, load or follow, and what a reader would see."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[dict[str, str | None]] = []
        self.json: list[Any] = []
        self.handlers: list[str] = []
        self.loads: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._in: str = ""
        self._chart = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        self._in = tag
        self._chart = found.get("type") == "application/json"
        if tag == "script" and not self._chart:
            self.scripts.append(found)
        self.handlers += [name for name in found if name.startswith("on")]
        self.loads += [str(found[name]) for name in ("src", "srcset", "data", "poster") if name in found]
        self.links += [str(found["href"])] if "href" in found else []

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, text: str) -> None:
        if self._in == "script" and self._chart:
            self.json.append(json.loads(text))
        elif self._in not in ("script", "style"):
            self.text += text

    def classes(self) -> set[str]:
        return {name for _, found in self.tags for name in str(found.get("class") or "").split()}


def body(html: str) -> str:
    return html[html.index("<main>") : html.index("</main>")]


def assert_harmless(html: str) -> Audit:
    """Two scripts with the nonce of the policy, nothing else that runs or loads."""
    audit = Audit(html)
    policy = re.search(r"script-src 'nonce-(\w+)'", html)
    assert policy is not None
    assert audit.scripts
    assert all(found == {"nonce": policy[1]} for found in audit.scripts)
    assert not audit.handlers
    assert not [url for url in audit.loads if not url.startswith("data:image/")]
    assert not [url for url in audit.links if re.match(r"\s*(javascript|data|file|vbscript):", url, re.IGNORECASE)]
    assert not {tag for tag, _ in audit.tags} & {"iframe", "object", "embed", "link", "base", "form", "input", "use"}
    styles = html[html.index("<style>") : html.index("</style>")]
    assert not re.search(r"url\((?![\"']?data:)|@import", re.sub(r"/\*.*?\*/", "", styles, flags=re.DOTALL))
    return audit


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_strange_text_is_shown_and_never_run(text: str) -> None:
    """Whatever a log holds, wherever it comes through, is text."""
    from html import escape

    html = to_html(
        notebook(
            block(f'<section class="page"><p class="kicker">{escape(text)}</p><h2>{escape(text)}</h2></section>'),
            code(data({"text/html": f"<table><tr><td>{escape(text)}</td></tr></table>"})),
            code(data({"text/plain": text})),
            stream(text),
        ),
        title=text,
        header={"report": text, "customer": text, "status": text, "report_id": text, "snapshot": text, "pdf": text},
    )
    audit = assert_harmless(html)
    assert audit.text.count(text) >= 8  # title, bar (3), rail, kicker, h2, table, plain, stream


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_markup_that_was_not_escaped_loses_what_could_act(text: str) -> None:
    """Blocks, markdown, HTML and charts that carry raw markup cannot run or load anything."""
    figure = line(title=text, xaxis_title=text, annotations=[{"text": f'<a href="javascript:evil()">{text}</a>'}])
    html = to_html(
        notebook(
            block(f'<section class="page"><p class="kicker">{text}</p><div data-figure="0"></div></section>', figure),
            markdown(f"# {text}\n\n{text} [go](javascript:evil())\n\n`{text}`"),
            code(data({"text/html": f'<div onclick="evil()"><a href="javascript:evil()">x</a>{text}</div>'})),
            code(data({"text/markdown": text})),
            code(data({"application/vnd.plotly.v1+json": json.loads(figure.to_json())})),
            code(data({"image/svg+xml": f"<svg xmlns='http://www.w3.org/2000/svg'>{text}</svg>"})),
        ),
        title="t",
    )
    audit = assert_harmless(html)
    assert [chart["layout"]["title"]["text"] for chart in audit.json] == [text, text]


def test_nothing_of_the_notebook_but_its_results_is_in_the_page() -> None:
    """No code, stderr, traceback, counter, time, path or parameter leaves the house."""
    from nbformat.v4 import new_output

    failed = new_output("error", ename="ValueError", evalue="/root/secret", traceback=["/root/secret", "line 3"])
    html = to_html(
        notebook(
            code(failed, data({"text/plain": "kept"}), source="token = 'secret'"),
            stream("warning: secret", name="stderr"),
            papermill={"input_path": "/root/secret.ipynb", "start_time": "2026-11-30T10:00:00"},
        ),
        title="t",
    )
    page = re.sub(r"<script.*?</script>|<style>.*?</style>", "", html, flags=re.DOTALL)
    assert "kept" in page
    assert not re.search(r"secret|/root|\b41\b|2026|line 3", page)
    assert "A cell of this report failed (ValueError)" in page


def test_the_same_notebook_gives_the_same_bytes() -> None:
    """The nonce is made from the content, so it differs exactly when the content differs."""

    def page(text: str) -> str:
        return to_html(notebook(block(f"<p>{text}</p>", line())), title="t", header=HEADER)

    nonce = [re.search(r"nonce-(\w+)", page(text)) for text in ("a", "b")]
    assert page("a") == page("a")
    assert nonce[0] is not None
    assert nonce[1] is not None
    assert nonce[0][1] != nonce[1][1]


def test_the_notebook_is_left_as_it_was() -> None:
    """Exporting twice, or saving afterwards, is safe."""
    from copy import deepcopy

    original = notebook(block('<div data-figure="0"></div>', line()), markdown("text"))
    copy = deepcopy(original)
    to_html(original, title="t")
    assert original == copy


def test_plotly_is_in_the_page_once_and_only_for_charts() -> None:
    """One library for all charts; a page without charts is small."""
    with_charts = to_html(notebook(block("<p>a</p>", line(), line())), title="t")
    without = to_html(notebook(block("<p>a</p>")), title="t")
    assert with_charts.count("plotly.js v") == 1
    assert len(with_charts) > 4_000_000
    assert len(without) < 300_000


def test_charts_stand_in_their_places() -> None:
    """By number, with class and description; forgotten ones at the end, unknown places empty."""
    html = to_html(
        notebook(
            block(
                '<div data-figure="1"></div><hr><div class="wide" data-figure="0"></div><div data-figure="7"></div>',
                line(height=100),
                line(height=200),
                line(height=300),
                alts=["first <one>"],
            )
        ),
        title="t",
    )
    audit = Audit(body(html))
    order = [found.get("style") or tag for tag, found in audit.tags if tag == "hr" or found.get("class") == "plot"]
    assert order == ["height:200px", "hr", "height:100px", "height:300px"]
    figures = [found for tag, found in audit.tags if tag == "figure"]
    assert [f["aria-label"] for f in figures] == ["Chart", "first <one>", "Chart"]
    assert figures[1]["class"] == "chart wide"
    assert "data-figure" not in html[html.index("</style>") :]


def test_a_chart_is_made_printable() -> None:
    """Vectors only, as wide as its place, in the fonts of the page, with nothing fetched and no NaN."""
    figure = {
        "data": [{"type": "scattergl", "y": [1.0, float("nan"), float("inf")]}],
        "layout": {
            "width": 1280,
            "images": [{"source": "http://evil.invalid/a.png"}, {"source": "data:image/png;base64,AAAA"}],
        },
    }
    html = to_html(notebook(code(data({display.PLOTLY: figure}))), title="t")
    (chart,) = Audit(body(html)).json
    assert chart["data"] == [{"type": "scatter", "y": [1.0, None, None]}]
    assert chart["layout"]["images"] == [{"source": "data:image/png;base64,AAAA"}]
    assert chart["layout"]["font"]["family"].startswith('"Plex"')
    assert "width" not in chart["layout"]
    assert "evil" not in body(html)


def test_a_chart_shown_twice_for_the_notebook_is_printed_once() -> None:
    """In JupyterLab a block shows its charts again, as plain figures; the report has them already."""
    shown = code(
        data(Block('<div data-figure="0"></div>', [line()]).bundle()),
        data({display.PLOTLY: json.loads(line().to_json())}, **{display.ECHO: True}),
    )
    assert len(Audit(body(to_html(notebook(shown), title="t"))).json) == 1


def test_showing_a_block_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """One output in a report; in a notebook the charts follow, marked as already printed."""
    import IPython.display

    shown: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
    monkeypatch.setattr(IPython.display, "display", lambda bundle, raw, metadata=None: shown.append((bundle, metadata)))
    piece = Block('<p>a</p><div data-figure="0"></div>', [line()])
    monkeypatch.setenv("RDMALAB_REPORT", "1")
    show(piece)
    assert [list(bundle) for bundle, _ in shown] == [[display.BLOCK, "text/html"]]
    assert shown[0][0]["text/html"] == "<p>a</p>"
    monkeypatch.delenv("RDMALAB_REPORT")
    show(piece)
    record("n", 3)
    assert [next(iter(bundle)) for bundle, _ in shown[1:]] == [display.BLOCK, display.PLOTLY, display.RECORD]
    assert shown[2][1] == {display.ECHO: True}


def test_records_are_collected_and_not_printed() -> None:
    """A recorded value travels with the notebook, not with the page."""
    made = notebook(code(data({display.RECORD: {"ratio": 4.0}})), code(data({display.RECORD: {"who": "hidden"}})))
    assert records(made) == {"ratio": 4.0, "who": "hidden"}
    assert "hidden" not in body(to_html(made, title="t"))


def test_outputs_of_every_kind_are_printed() -> None:
    """What analysts put into a notebook of their own comes out too."""
    png = base64.b64encode(b"\x89PNG").decode()
    html = to_html(
        notebook(
            markdown("## Heading\n\n* item\n\n| a | b |\n|---|---|\n| 1 | 2 |"),
            stream("10 %\r100 %\n\x1b[31mred\x1b[0m\n"),
            code(data({"text/html": '<style>x</style><table class="dataframe"><thead><tr><th>h</th></tr></table>'})),
            code(data({"image/png": png + "\n"})),
            code(data({"image/svg+xml": ["<svg>", "</svg>"]})),
            code(data({"text/plain": "'value'", "text/latex": "$x$"})),
            code(data({"text/plain": "VBox()", "application/vnd.jupyter.widget-view+json": {}})),
        ),
        title="t",
    )
    page = body(html)
    audit = assert_harmless(html)
    assert "<h2>Heading</h2>" in page
    assert "<li>item</li>" in page
    assert "<td>1</td>" in page
    assert ">100 %\nred</pre>" in page
    assert '<div class="foreign"><table><thead><tr><th>h</th>' in page
    assert [url.partition(",")[0] for url in audit.loads] == ["data:image/png;base64", "data:image/svg+xml;base64"]
    assert "'value'" in page
    assert "VBox" not in page


def test_html_of_others_cannot_dress_up_as_ours() -> None:
    """A class or an anchor would let a table of somebody pose as a verdict."""
    posing = '<p class="lead" id="s-1" style="position:fixed">x</p>'
    html = to_html(notebook(code(data({"text/html": posing}))), title="t")
    assert '<div class="foreign"><p>x</p></div>' in html


def test_keys_and_marks_of_our_own_survive() -> None:
    """Small drawings, classes, anchors and column widths pass the sanitizer; what they could smuggle does not."""
    key = '<svg viewBox="0 0 24 10" width="24"><path d="M0 5h24" stroke="#D97A00" stroke-dasharray="9 2"></path></svg>'
    html = to_html(
        notebook(
            block(
                f'<section class="page" id="x"><span class="key">{key}</span><span class="proof some">7 / 9</span>'
                '<table class="data"><tr><td class="num" style="width:12%;color:red">1</td></tr></table>'
                '<svg><path fill="url(http://evil.invalid/a)"></path><foreignObject><p>y</p></foreignObject></svg>'
                "</section>"
            )
        ),
        title="t",
    )
    assert key in html
    assert '<span class="proof some">7 / 9</span>' in html
    assert '<td class="num" style="width:12%">1</td>' in html
    assert "evil" not in body(html)
    assert "<foreignObject" not in body(html)


def test_the_rail_lists_the_sections() -> None:
    """By kicker, else by title; a section without an anchor gets one; a rail block stands below and not in the text."""
    html = to_html(
        notebook(
            block('<button data-series="IB">IB</button>', kind="rail"),
            block('<section class="cover"><h1>Verdict</h1></section>'),
            block('<section class="page" id="sum"><p class="kicker">Summary</p><h2>Title</h2></section>'),
            block('<section class="page"><h2>A <b>b</b></h2></section>'),
        ),
        title="t",
    )
    links = re.findall(r'<li><a href="#([^"]*)">([^<]*)</a>', html)
    assert links == [("sum", "Summary"), ("s-3", "A  b")]
    assert '<section class="page" id="s-3">' in html
    assert 'data-series="IB"' not in body(html)
    assert 'data-series="IB"' in html


def test_names_of_collectives_stay_on_one_line() -> None:
    """In text, not in attributes, and the typed hyphen stays a hyphen."""
    html = to_html(notebook(block('<h2 title="all-reduce < x">All-reduce, reduce-scatter</h2>')), title="t")
    assert '<span class="keep">All-reduce</span>, <span class="keep">reduce-scatter</span></h2>' in html
    assert 'title="all-reduce &lt; x"' in html


def test_language_and_header_reach_the_page() -> None:
    """The language tag is what was asked for; margins and bar carry the header."""
    html = to_html(notebook(block("<p>x</p>")), lang="zh-CN", title="互连网络", header={**HEADER, "pdf": "a b.pdf"})
    assert '<html lang="zh-CN">' in html
    assert "<title>互连网络</title>" in html
    assert f"@top-left{{content:{css_string('Fabric comparison · Example')}}}" in html
    assert f"@bottom-left{{content:{css_string('FC-1 · data 7c1e')}}}" in html
    assert '<a href="a%20b.pdf">PDF ↓</a>' in html
    assert "章节" in html


def test_a_wrong_language_is_refused() -> None:
    """A language tag goes into the page as it is, so it has to be one."""
    with pytest.raises(UsageError, match="'en\"onload=x' is no language tag"):
        to_html(notebook(), lang='en"onload=x', title="t")


def test_margin_texts_cannot_leave_their_string() -> None:
    """Quotes, line ends, backslashes and braces are escaped; long ones are cut."""
    text = css_string('a"\n\\}</style>ü')
    assert text == r'"a\000022\00000a\00005c\00007d\00003c\00002fstyle\00003e\0000fc"'
    html = to_html(notebook(), title="t", header={"report_id": "x" * 400, "report": "网" * 80})
    assert "x" * 104 + r"\002026" in html
    assert "x" * 105 not in html.partition("</style>")[0]
    assert html.count("\\007f51") == 33


def test_chinese_fonts_come_only_with_chinese_text() -> None:
    """They are 2.7 MB; a Chinese label inside a chart is enough to need them."""
    english = to_html(notebook(block("<p>Latency ≤ 3 µs</p>", line())), title="t")
    label = to_html(notebook(block("<p>Latency</p>", line(title="网络"))), title="t")
    chinese = to_html(notebook(), lang="zh", title="t")
    pages = (english, label, chinese)
    assert [html.count("@font-face") for html in pages] == [4, 6, 6]
    assert [html.count("data:font/woff2;base64,") for html in pages] == [4, 6, 6]


def test_broken_text_cannot_break_the_file() -> None:
    """Half a surrogate, as file names with bad bytes have, becomes a question mark."""
    html = to_html(notebook(stream("host-\udcff\x00\x07")), title="t")
    assert "host-?" in html
    assert html.encode("utf-8")


def test_nbconvert_finds_the_exporter() -> None:
    """`jupyter nbconvert --to rdmalab_html` works, with title and header from the notebook's metadata."""
    from nbconvert import get_exporter

    assert get_exporter("rdmalab_html") is export.ReportExporter
    made = notebook(block("<p>x</p>"), title="From the notebook", rdmalab={"lang": "zh", "header": {"report": "R"}})
    html, _ = export.ReportExporter().from_notebook_node(made)
    assert "<title>From the notebook</title>" in html
    assert '<html lang="zh">' in html
    assert "<b>R</b>" in html


def test_a_template_of_the_working_folder_is_not_used(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """nbconvert looks into the working folder by default; a report looks only into the package."""
    (tmp_path / "rdmalab").mkdir()
    (tmp_path / "rdmalab" / "index.html.j2").write_text("stolen")
    (tmp_path / "rdmalab" / "conf.json").write_text('{"mimetypes": {"text/html": true}}')
    monkeypatch.chdir(tmp_path)
    assert "stolen" not in to_html(notebook(), title="t")


def test_importing_the_exporter_builds_no_grammar() -> None:
    """The grammar costs more than a second and nobody uses it; others can still import it."""
    check = "import sys, rdmalab.export; assert 'rfc3987_syntax' not in sys.modules; import rfc3987_syntax"
    subprocess.run([sys.executable, "-c", check], check=True)
