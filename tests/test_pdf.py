"""The printed report: fonts, tags, page numbers, vectors, and the same bytes every time."""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import pikepdf
import plotly.graph_objects as go
import pytest
from pypdf import PdfReader

from rdmalab import pdf
from rdmalab.display import Block
from rdmalab.errors import MissingProgram, ReportError
from rdmalab.export import to_html
from rdmalab.pages.fabric_comparison import FabricComparison
from rdmalab.pdf import Printer, find_browser, print_pdf
from tests._comparisons import COLLECTIVE, around, blocks, comparison

needs_browser = pytest.mark.skipif(
    find_browser() is None, reason="no Chromium on this machine (apt install chromium, or set RDMALAB_CHROME)"
)
HEADER = {
    "report": "Fabric comparison",
    "customer": "Example Data Centre",
    "status": "synthetic data",
    "report_id": "FC-1",
    "snapshot": "data snapshot 7c1e",
}
CREATED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
EVIL = '<img src=x onerror="document.title=1"></script><script>document.title=1</script>'


def document(*blocks: Block, lang: str = "en", title: str = "Fabric comparison") -> str:
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    cells = [new_code_cell("", outputs=[new_output("display_data", data=b.bundle())]) for b in blocks]
    return to_html(new_notebook(cells=cells), lang=lang, title=title, header=HEADER)


def chart(words: str = "InfiniBand") -> go.Figure:
    figure = go.Figure(layout={"template": None, "height": 200})
    figure.add_scattergl(x=[1, 10, 100], y=[1, 2, 3], name=words)
    figure.add_annotation(x=10, y=2, text=words, showarrow=False)
    return figure


def english() -> str:
    rows = "".join(f'<tr><td>run {n}</td><td class="num">{n}.5</td></tr>' for n in range(120))
    table = f'<table class="data"><thead><tr><th>Heading</th><th class="num">GB/s</th></tr></thead>{rows}</table>'
    return document(
        Block(
            '<section class="cover"><h1><span class="clause">RDMA is faster on small messages; </span>'
            '<span class="clause">on large ones, only the link helps.</span></h1><p class="lead">All-reduce.</p>'
            '<div class="coverfigure"><div data-figure="0"></div></div></section>',
            [chart()],
            alts=["Bus bandwidth by size"],
        ),
        Block(
            '<section class="page"><p class="kicker">1 Latency</p><h2>Latency falls</h2><p class="sub">Sub <i>line</i>'
            ' <code>path</code></p><div data-figure="0"></div>'
            '<p>See <a href="#evidence" data-print="page %">Evidence</a>. <span class="proof some">7 / 9</span></p>'
            '<div class="hatched"><b>Not comparable</b></div><div class="check"><b>Check</b> it</div></section>',
            [chart()],
        ),
        Block(f'<section class="page" id="evidence"><h2>Evidence</h2>{table}</section>'),
    )


@pytest.fixture(scope="module")
def printer() -> Iterator[Printer]:
    with Printer() as opened:
        yield opened


@pytest.fixture(scope="module")
def report(printer: Printer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pdf") / "report.pdf"
    printer.print_pdf(english(), out, title="Fabric comparison", lang="en", created=CREATED)
    return out


def texts(path: Path) -> list[str]:
    reader = PdfReader(path)
    found = [page.extract_text() for page in reader.pages]
    reader.close()
    return found


def objects(path: Path) -> list[Any]:
    """Every dictionary of the file, as plain values: (type, subtype, keys)."""
    with pikepdf.open(path) as opened:
        return [
            (str(o.get("/Type", "")), str(o.get("/Subtype", "")), set(o.keys()))
            for o in opened.objects
            if isinstance(o, pikepdf.Dictionary | pikepdf.Stream)
        ]


@needs_browser
def test_every_font_is_embedded_as_truetype(report: Path) -> None:
    """No Type 3, nothing left to the fonts of the reader's machine."""
    fonts = [(subtype, keys) for kind, subtype, keys in objects(report) if kind == "/Font"]
    descriptors = [keys for kind, _, keys in objects(report) if kind == "/FontDescriptor"]
    assert {subtype for subtype, _ in fonts} == {"/Type0", "/CIDFontType2"}
    assert len(descriptors) >= 4  # regular, italic, semibold, mono
    assert all("/FontFile2" in keys for keys in descriptors)
    assert all("/ToUnicode" in keys for subtype, keys in fonts if subtype == "/Type0")


@needs_browser
def test_charts_and_marks_are_vectors(report: Path) -> None:
    """WebGL traces too; there is not one bitmap in the file."""
    assert not [subtype for _, subtype, _ in objects(report) if subtype == "/Image"]


@needs_browser
def test_pages_are_numbered_after_the_cover(report: Path) -> None:
    """The cover counts and has no margin; every other page has header, footer and "page / pages"."""
    pages = texts(report)
    assert len(pages) >= 5
    assert "synthetic data" not in pages[0]
    assert f"1 / {len(pages)}" not in pages[0]
    for number, text in enumerate(pages[1:], 2):
        assert f"{number} / {len(pages)}" in text
        assert "Fabric comparison · Example Data Centre" in text
        assert "synthetic data" in text
        assert "FC-1 · data snapshot 7c1e" in text


@needs_browser
def test_the_head_of_a_table_is_on_each_of_its_pages(report: Path) -> None:
    """A column of numbers never stands without its name."""
    with_rows = [text for text in texts(report) if "run 1" in text or "run 50" in text or "run 119" in text]
    assert len(with_rows) >= 3
    assert all("Heading" in text for text in with_rows)


@needs_browser
def test_links_become_page_numbers(report: Path) -> None:
    """On paper nobody can click."""
    assert "See page 3." in texts(report)[1]


@needs_browser
def test_document_information(report: Path) -> None:
    """Title, language, tags, dates, and bookmarks with whole words."""
    reader = PdfReader(report)
    titles = [item.title for item in _flat(reader.outline)]
    reader.close()
    with pikepdf.open(report) as opened:
        assert str(opened.Root.Lang) == "en"
        assert bool(opened.Root.MarkInfo.Marked)
        assert bool(opened.Root.ViewerPreferences.DisplayDocTitle)
        assert str(opened.docinfo.Title) == "Fabric comparison"
        assert str(opened.docinfo.CreationDate) == "D:20261130120000Z"
        with opened.open_metadata() as xmp:
            assert xmp["dc:title"] == "Fabric comparison"
        assert [round(float(x)) for x in opened.pages[0].mediabox] == [0, 0, 595, 842]
    assert titles == [
        "RDMA is faster on small messages; on large ones, only the link helps.",
        "1 Latency: Latency falls",
        "Evidence",
    ]


def _flat(outline: Any) -> Iterator[Any]:
    for item in outline:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


@needs_browser
def test_each_chart_is_one_figure_with_a_description(report: Path) -> None:
    """For readers who listen to the document."""
    with pikepdf.open(report) as opened:
        figures = [
            str(o.get("/Alt", ""))
            for o in opened.objects
            if isinstance(o, pikepdf.Dictionary) and o.get("/S") == pikepdf.Name.Figure
        ]
    assert sorted(figures) == ["Bus bandwidth by size", "Chart"]


@needs_browser
def test_the_same_html_gives_the_same_bytes(report: Path, printer: Printer, tmp_path: Path) -> None:
    """In the same browser and in another one; nothing is left beside the file."""
    again, alone = tmp_path / "again.pdf", tmp_path / "alone.pdf"
    printer.print_pdf(english(), again, title="Fabric comparison", lang="en", created=CREATED)
    print_in_thread(english(), alone)
    assert again.read_bytes() == report.read_bytes()
    assert alone.read_bytes() == report.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again.pdf", "alone.pdf"]  # noqa: PTH208 - names are what is asked


def print_in_thread(html: str, out: Path) -> None:
    """`print_pdf` from under an event loop, as a notebook would call it."""

    async def cell() -> None:
        print_pdf(html, out, title="Fabric comparison", lang="en", created=CREATED)

    asyncio.run(cell())


@needs_browser
def test_the_file_is_small(report: Path) -> None:
    """It is mailed around."""
    assert 20_000 < report.stat().st_size < 400_000


@needs_browser
def test_chinese_is_embedded_and_can_be_searched(printer: Printer, tmp_path: Path) -> None:
    """Characters come back as typed, not as radicals that share their glyph, in text and in charts."""
    out = tmp_path / "zh.pdf"
    section = (
        '<section class="page"><p class="kicker">摘要</p><h2>网络比较：小消息靠 RDMA</h2><p>中心的网络延迟 3 µs，'
        '<b>心</b>与<em>小</em>；≤ 95%。</p><div data-figure="0"></div></section>'
    )
    html = document(Block(section, [chart("网络")]), lang="zh", title="互连网络对比")
    printer.print_pdf(html, out, title="互连网络对比", lang="zh")
    text = "".join(texts(out))
    assert text.count("网络") == 3
    assert "网络比较" in text
    assert not [c for c in text if "\u2e80" <= c <= "\u2fdf"]
    names = {subtype for kind, subtype, _ in objects(out) if kind == "/Font"}
    assert names == {"/Type0", "/CIDFontType2"}
    with pikepdf.open(out) as opened:
        assert str(opened.Root.Lang) == "zh"
        assert str(opened.docinfo.Title) == "互连网络对比"
        assert "/CreationDate" not in opened.docinfo
        found = {str(o.FontName).partition("+")[2] for o in opened.objects if _is(o, "/FontDescriptor")}
    assert {"NotoSansSC-Regular", "NotoSansSC-Bold"} <= found
    assert out.stat().st_size < 300_000


def _is(thing: Any, kind: str) -> bool:
    return isinstance(thing, pikepdf.Dictionary) and thing.get("/Type") == kind


@needs_browser
def test_strange_text_is_printed_and_never_run(printer: Printer, tmp_path: Path) -> None:
    """A script would have changed the title of the page; the text itself is there to read."""
    name = "gpu-" + "b" * 400
    html = document(
        Block(
            f'<section class="page"><h2>{escape(EVIL)}</h2><p>{EVIL} {name}</p><table class="data"><tr><td>{name}</td>'
            f'<td class="num">=1+1</td></tr></table><pre class="log">{name}</pre><div data-figure="0"></div></section>',
            [chart(EVIL)],
        ),
        title=EVIL,
    )
    out = tmp_path / "evil.pdf"
    printer.print_pdf(html, out, title=EVIL, lang="en")
    assert printer.with_page(html, lambda page: page.title()) == EVIL
    joined = "".join("".join(texts(out)).split())
    assert "".join(EVIL.split()) in joined
    assert joined.count("b" * 400) == 3
    assert "=1+1" in joined


@needs_browser
def test_a_script_without_the_nonce_does_not_run(printer: Printer) -> None:
    """The policy of the page holds even where something slips through the sanitizer."""
    page = document(Block("<p>x</p>"))
    attack = f'<script>document.title = "run"</script><img src="x" onerror="document.title = 1">{"</main>"}'
    title = printer.with_page(page.replace("</main>", attack), lambda tab: tab.title())
    assert title == "Fabric comparison"


@needs_browser
def test_the_page_is_offline_and_has_no_neighbours(printer: Printer, tmp_path: Path) -> None:
    """Even a page without any policy reaches neither the network nor the files of this machine."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    page = (
        '<html data-ready="1"><style>@font-face{font-family:x;src:local("DejaVu Sans")}</style><script>'
        f'window.got = fetch("{secret.as_uri()}").then(r => r.text(), () => "refused")</script></html>'
    )
    font = "document.fonts.add = 0; Object.defineProperty(document, 'fonts', {value: [{status: 'loaded'}]});"
    page = page.replace("window.got", font + "window.got")
    assert printer.with_page(page, lambda tab: tab.evaluate("window.got")) == "refused"


@needs_browser
def test_a_page_that_is_never_ready_is_an_error_with_its_words(tmp_path: Path) -> None:
    """The message holds what the page wrote to its console; no file appears."""
    out = tmp_path / "never.pdf"
    with Printer(ready_seconds=0.5) as impatient, pytest.raises(ReportError, match=r"not ready after 0\.5 s: .*broken"):
        impatient.print_pdf("<script>console.error('broken')</script>", out, title="t", lang="en")
    assert not out.exists()


@needs_browser
def test_a_chart_that_cannot_be_drawn_stops_the_report(printer: Printer, tmp_path: Path) -> None:
    """A report with a hole in it is worse than none."""
    html = document(Block('<div data-figure="0"></div>', [chart()]))
    broken = html.replace('class="chart-data">{', 'class="chart-data">{{')
    with pytest.raises(ReportError, match=r"could not be drawn: .*JSON"):
        printer.print_pdf(broken, tmp_path / "x.pdf", title="t", lang="en")


@needs_browser
def test_a_page_without_its_fonts_is_refused(printer: Printer, tmp_path: Path) -> None:
    """Otherwise the reader's machine would decide how the report looks."""
    with pytest.raises(ReportError, match="the page brings none"):
        printer.print_pdf('<html data-ready="1">x</html>', tmp_path / "x.pdf", title="t", lang="en")
    damaged = document(Block("<p>x</p>")).replace("font/woff2;base64,d09G", "font/woff2;base64,AAAA", 1)
    with pytest.raises(ReportError, match="could not be drawn"):
        printer.print_pdf(damaged, tmp_path / "x.pdf", title="t", lang="en")


@needs_browser
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_fits_the_screen(printer: Printer, width: int) -> None:
    """The bar is on top, the picture of the cover is left to paper, and only a chart scrolls, in its own frame."""
    look = """() => ({
      wide: document.documentElement.scrollWidth,
      bar: document.querySelector('.bar').offsetHeight,
      cover: document.querySelector('.coverfigure').offsetHeight,
      charts: [...document.querySelectorAll('section.page .plot')].map(p => p.offsetWidth)
    })"""
    found = printer.with_page(english(), lambda page: page.evaluate(look), width, 800, media="screen")
    assert found["wide"] <= width
    assert found["bar"] == 48
    assert found["cover"] == 0
    assert found["charts"] == [980 if width == 1280 else 560]


@needs_browser
def test_keys_of_the_rail_hide_a_series(printer: Printer) -> None:
    """In all charts at once, and show it again."""
    figure = go.Figure(layout={"template": None})
    figure.add_scatter(y=[1, 2], legendgroup="IB")
    figure.add_scatter(y=[2, 3], legendgroup="TCP")
    html = document(Block('<button data-series="IB">IB</button>', kind="rail"), Block("", [figure, figure]))
    states = """async () => {
      const seen = () => [...document.querySelectorAll('.plot')].map(p => p.data.map(t => t.visible !== false));
      const button = document.querySelector('button');
      const wait = () => new Promise(done => setTimeout(done, 200));
      button.click(); await wait(); const hidden = seen(); button.click(); await wait();
      return [hidden, seen()];
    }"""
    hidden, shown = printer.with_page(html, lambda page: page.evaluate(states), 1280, 800, media="screen")
    assert hidden == [[False, True], [False, True]]
    assert shown == [[True, True], [True, True]]


@needs_browser
def test_printing_from_the_browser_fits_the_paper(printer: Printer) -> None:
    """A reader who opens the HTML and prints it gets charts as wide as the paper, and the screen back afterwards."""
    widths = """async () => {
      const plot = document.querySelector('section.page .plot');
      const drawn = () => plot.querySelector('.main-svg').width.baseVal.value;
      const wait = () => new Promise(done => setTimeout(done, 400));
      const all = [drawn()];
      dispatchEvent(new Event('beforeprint')); all.push(drawn());
      dispatchEvent(new Event('afterprint')); await wait(); all.push(drawn());
      return all;
    }"""
    found = printer.with_page(english(), lambda page: page.evaluate(widths), 1280, 800, media="screen")
    assert found == [980, 658, 980]


@needs_browser
def test_a_screenshot_has_the_size_of_the_screen(printer: Printer, tmp_path: Path) -> None:
    """For pages that show what a report looks like."""
    out = tmp_path / "screen.png"
    printer.screenshot(document(Block("<p>x</p>")), out, width=640, height=480)
    assert out.read_bytes()[16:24] == (640).to_bytes(4, "big") + (480).to_bytes(4, "big")


@needs_browser
def test_six_fabrics_fit_the_paper(printer: Printer) -> None:
    """What is wider than the type area would shrink every page."""
    names = ("TCP 100G", "RoCEv2 100G", "RoCEv2 400G", "InfiniBand HDR200", "InfiniBand NDR400", "Cluster network")
    values = {
        (name, size): around(size / 100 / k, 7 if k < 6 else 1)
        for k, name in enumerate(names, 1)
        for size in (1 << p for p in range(10, 31, 2))
        if (name, size) != ("InfiniBand HDR200", 1024)
    }
    page = FabricComparison(comparison((COLLECTIVE, values), labels={n: n for n in names}, share=107.3, limit=12.0))
    html = document(*blocks(page))
    wide = "Math.max(...[...document.querySelectorAll('section.page')].map(s => s.scrollWidth))"
    assert printer.with_page(html, lambda p: p.evaluate(wide)) <= 658


@needs_browser
def test_two_half_pages_share_a_page(printer: Printer, tmp_path: Path) -> None:
    """As sections of class half, from two blocks, or inside a wrapper."""
    half = '<section class="page half"><h2>{}</h2><div data-figure="0"></div></section>'
    wrapped = f'<div class="halfpage">{half.format("Third")}{half.format("Fourth")}</div>'.replace(" half", "")
    blocks = [Block(half.format(word), [chart()]) for word in ("First", "Second")]
    out = tmp_path / "half.pdf"
    printer.print_pdf(document(*blocks, Block(wrapped, [chart(), chart()])), out, title="t", lang="en")
    first, second = texts(out)
    assert "First" in first
    assert "Second" in first
    assert "Third" in second
    assert "Fourth" in second


def test_no_browser_is_one_sentence_with_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says what to install; it is the one that exits with 3."""
    monkeypatch.delenv("RDMALAB_CHROME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(pdf, "_PLACES", ())
    assert find_browser() is None
    with pytest.raises(MissingProgram, match=r"apt install chromium.*RDMALAB_CHROME") as raised:
        print_pdf("<p>x</p>", tmp_path / "x.pdf", title="t", lang="en")
    assert raised.value.exit_code == 3


def test_the_browser_of_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A path that leads nowhere is told, not replaced by another browser."""
    program = tmp_path / "chrome"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("RDMALAB_CHROME", str(program))
    assert find_browser() == program
    monkeypatch.setenv("RDMALAB_CHROME", str(tmp_path / "none"))
    with pytest.raises(MissingProgram, match=r"RDMALAB_CHROME=.*none is no program"):
        print_pdf("<p>x</p>", tmp_path / "x.pdf", title="t", lang="en")


def test_a_browser_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With its name, and nothing left running."""
    program = tmp_path / "chrome"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("RDMALAB_CHROME", str(program))
    with pytest.raises(MissingProgram, match="chrome did not start"):
        print_pdf("<p>x</p>", tmp_path / "x.pdf", title="t", lang="en")


def test_source_date_epoch_is_the_default_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """As reproducible builds have it; without it there is no date rather than today's."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795996800")
    assert pdf._source_date() == datetime(2026, 11, 30, tzinfo=UTC)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert pdf._source_date() is None
