"""
The HTML of a report printed by the Chromium of this machine.

    with Printer() as printer:
        printer.print_pdf(html, Path("report.pdf"), title="Fabric comparison", lang="en", created=None)

The page is opened as a file that lies alone in a folder; it forbids itself to load anything, and the browser is
offline. One tab shows one document after the other: each has a world of its own, but the library of the charts is
compiled once. What Chromium writes is then made reproducible: dates, identifier and compression are ours, so the same
HTML gives the same bytes.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from rdmalab import __version__
from rdmalab.errors import MissingProgram, ReportError

if TYPE_CHECKING:
    import pikepdf
    from playwright.sync_api import Browser, Page, Playwright

CONTENT_WIDTH = 658  # CSS pixels between the side margins of 18 mm of an A4 page
CONTENT_HEIGHT = 964
READY_SECONDS = 60.0

_NAMES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge",
    "microsoft-edge-stable", "brave-browser", "vivaldi",
)  # fmt: skip
_PLACES = (
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/snap/bin/chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_FLAGS = (
    "--font-render-hinting=none",  # without it letters are spaced unevenly where no fontconfig is set up
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-gpu",
)
_T = TypeVar("_T")


def find_browser() -> Path | None:
    """The Chromium to print with: ``RDMALAB_CHROME``, else the first of the usual names on PATH, else of the places."""
    wanted = os.environ.get("RDMALAB_CHROME")
    if wanted:
        found = shutil.which(wanted)
        return Path(found) if found else None
    for candidate in (*_NAMES, *_PLACES):
        if found := shutil.which(candidate):
            return Path(found)
    return None


def _browser_or_raise() -> Path:
    found = find_browser()
    if found:
        return found
    wanted = os.environ.get("RDMALAB_CHROME")
    if wanted:
        raise MissingProgram(f"RDMALAB_CHROME={wanted} is no program; set it to the path of Chromium or Chrome.")
    raise MissingProgram(
        "A PDF needs Chromium, and none was found; install it (Debian, Ubuntu: apt install chromium) "
        "or set RDMALAB_CHROME to its path."
    )


def print_pdf(html: str, out: Path, *, title: str, lang: str, created: datetime | None = None) -> None:
    """
    Prints one document; `Printer` is quicker for several.

    Args:
        html: A page of `rdmalab.export.to_html`.
        out: The file to write; it is replaced as a whole or not at all.
        title: Title in the document information.
        lang: Language tag of the document.
        created: Date in the document information. Default: ``SOURCE_DATE_EPOCH``, else no date.

    Raises:
        rdmalab.errors.MissingProgram: No Chromium was found.
        rdmalab.errors.ReportError: The page could not be drawn; the message holds what the page complained about.
    """
    with Printer() as printer:
        printer.print_pdf(html, out, title=title, lang=lang, created=created)


class Printer:
    """
    One running browser for several documents; a context manager.

    The browser is driven from a thread of its own: playwright's plain interface refuses to run under an event loop,
    which every notebook has, and its objects belong to the thread that made them.
    """

    def __init__(self, ready_seconds: float = READY_SECONDS) -> None:
        self.ready_seconds = ready_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="printer")
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._page: Page | None = None
        self._heard: list[str] = []
        self._home: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> "Printer":
        path = _browser_or_raise()
        try:
            self._thread.submit(self._start, path).result()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser; called by the context manager."""
        self._thread.submit(self._stop).result()
        self._thread.shutdown()

    @property
    def version(self) -> str:
        """The version of the browser, for example 156.0.7251.0."""
        return self._thread.submit(lambda: self._browser.version if self._browser else "").result()

    def print_pdf(self, html: str, out: Path, *, title: str, lang: str, created: datetime | None = None) -> None:
        """See `print_pdf` of this module."""
        raw, headings = self.with_page(html, _print)
        _replace(out, _finish(raw, headings, title, lang, created or _source_date()))

    def screenshot(self, html: str, out: Path, *, width: int = 1280, height: int = 800) -> None:
        """The first screen of the HTML as PNG."""
        _replace(out, self.with_page(html, lambda page: page.screenshot(), width, height, media="screen"))

    def with_page(
        self,
        html: str,
        use: "Callable[[Page], _T]",
        width: int = CONTENT_WIDTH,
        height: int = CONTENT_HEIGHT,
        media: str = "print",
    ) -> _T:
        """
        What *use* makes of the drawn page.

        Raises:
            rdmalab.errors.ReportError: The page could not be drawn.
        """
        return self._thread.submit(self._with_page, html, use, width, height, media).result()

    def _start(self, path: Path) -> None:
        from playwright.sync_api import Error, sync_playwright

        self._playwright = sync_playwright().start()
        self._home = tempfile.TemporaryDirectory(prefix="rdmalab-")  # Chromium writes into its home, not the user's
        names = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
        home: dict[str, str | float | bool] = {**os.environ, **dict.fromkeys(names, self._home.name)}
        try:
            self._browser = self._playwright.chromium.launch(
                executable_path=str(path), args=list(_FLAGS), chromium_sandbox=not _is_root(), env=home
            )
        except Error as error:
            self._stop()
            raise MissingProgram(
                f"{path} did not start ({_first_line(error)}); install another Chromium (Debian, Ubuntu: apt install "
                "chromium) or name one in RDMALAB_CHROME"
            ) from error

    def _stop(self) -> None:
        self._page = None
        if self._browser:
            self._browser.close()
            self._browser = None
        if self._playwright:
            self._playwright.stop()
            self._playwright = None
        if self._home:
            self._home.cleanup()
            self._home = None

    def _with_page(self, html: str, use: "Callable[[Page], _T]", width: int, height: int, media: str) -> _T:
        """Shows *html* in the tab and waits until it says it is ready; a tab that failed is not used again."""
        from playwright.sync_api import Error

        if self._browser is None or self._home is None:
            raise ReportError("The printer is not open; use it in a with statement.")
        file = Path(self._home.name, "page", "report.html")
        file.parent.mkdir(exist_ok=True)
        file.write_text(html, encoding="utf-8")
        try:
            page = self._page = self._page or self._tab(self._browser)
            self._heard.clear()
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(media=media)  # type: ignore[arg-type]
            page.goto(file.as_uri(), wait_until="commit", timeout=self.ready_seconds * 1000)
            self._wait(page, self._heard)
            return use(page)
        except BaseException as error:
            self._drop_tab()
            if isinstance(error, Error):
                raise ReportError(f"The page could not be printed: {_first_line(error)}") from error
            raise

    def _tab(self, browser: "Browser") -> "Page":
        """An offline tab; what its pages write as errors is collected for the message of a failure."""
        page = browser.new_context(offline=True, accept_downloads=False).new_page()
        page.on("console", lambda message: self._heard.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self._heard.append(str(error)))
        return page

    def _drop_tab(self) -> None:
        from playwright.sync_api import Error

        page, self._page = self._page, None
        if page:
            with suppress(Error):  # its process may have died
                page.context.close()

    def _wait(self, page: "Page", complaints: list[str]) -> None:
        from playwright.sync_api import TimeoutError as NotReady

        try:
            page.wait_for_selector(_SETTLED, state="attached", timeout=self.ready_seconds * 1000)
        except NotReady:
            raise ReportError(f"The page was not ready after {self.ready_seconds:g} s: {_said(complaints)}") from None
        if failure := page.evaluate("document.documentElement.dataset.failed || ''"):
            raise ReportError(f"The page could not be drawn: {failure} ({_said(complaints)})")
        faces = page.evaluate("[...document.fonts].map(f => [f.family, f.weight, f.style, f.status].join(' '))")
        lost = [f for f in faces if not f.endswith(" loaded")]
        if not faces or lost:
            raise ReportError(f"A font of the page did not load: {', '.join(lost) or 'the page brings none'}")


_SETTLED = "html[data-ready], html[data-failed]"  # a selector: the page forbids the eval that a function would need


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _said(complaints: list[str]) -> str:
    return "; ".join(complaints) or "the page wrote no error"


# Every heading in order, with its section's kicker ("1 Latency") before it: two pages may have the same finding.
_HEADINGS = """[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => {
    const before = h.previousElementSibling;
    const kicker = before?.classList.contains('kicker') ? `${before.textContent}: ` : '';
    return [h.textContent, kicker + h.textContent];
})"""


def _print(page: "Page") -> tuple[bytes, list[tuple[str, str]]]:
    """The PDF and the headings of the page. Printed twice when the text refers to pages by number."""
    raw = _once(page)
    if page.locator("a[data-print]").count():
        page.evaluate(_FILL, _pages_of_anchors(raw))
        raw = _once(page)
    return raw, page.evaluate(_HEADINGS)


def _once(page: "Page") -> bytes:
    return page.pdf(prefer_css_page_size=True, print_background=True, tagged=True, outline=True)


_FILL = """pages => {
  for (const a of document.querySelectorAll('a[data-print]')) {
    const number = pages[decodeURIComponent(a.hash.slice(1))];
    if (number) a.textContent = a.dataset.print.replace('%', number);
  }
}"""


def _pages_of_anchors(raw: bytes) -> dict[str, int]:
    """Page numbers, from 1, of the anchors that links of the document lead to."""
    import pikepdf

    with pikepdf.open(BytesIO(raw)) as pdf:
        numbers = {page.obj.objgen: index for index, page in enumerate(pdf.pages, 1)}
        named = pdf.Root.get("/Dests", pikepdf.Dictionary())
        return {name[1:]: numbers[target[0].objgen] for name, target in named.items()}


def _source_date() -> datetime | None:
    """The date that reproducible builds set for everything they make."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else None


def _finish(raw: bytes, headings: list[tuple[str, str]], title: str, lang: str, created: datetime | None) -> bytes:
    """Title, language, bookmarks, dates and identifier of our own, packed."""
    import pikepdf

    with pikepdf.open(BytesIO(raw)) as pdf:
        pdf.Root.Lang = pikepdf.String(lang)
        _bookmarks(pdf, headings)
        if "/StructTreeRoot" in pdf.Root:
            _tidy_structure(pdf.Root.StructTreeRoot)
        _information(pdf, title, created)
        buffer = BytesIO()
        pdf.save(
            buffer, deterministic_id=True, object_stream_mode=pikepdf.ObjectStreamMode.generate, compress_streams=True
        )
    return buffer.getvalue()


def _bookmarks(pdf: "pikepdf.Pdf", headings: list[tuple[str, str]]) -> None:
    """
    Names the bookmarks, which Chromium makes of the headings without the space at every line end.

    Args:
        headings: (text, words for the bookmark) in the order of the document, which is that of the outline.
    """
    import pikepdf

    waiting = list(headings)
    level: list[pikepdf.Object] = [pdf.Root.Outlines] if "/Outlines" in pdf.Root else []
    while level:
        node = level.pop()
        level += [node[key] for key in ("/Next", "/First") if key in node]  # the first child comes before the next
        squeezed = "".join(str(node.get("/Title", "")).split())
        at = next((i for i, (text, _) in enumerate(waiting) if "".join(text.split()) == squeezed), None)
        if squeezed and at is not None:
            node.Title = pikepdf.String(" ".join(waiting[at][1].split()))
            del waiting[: at + 1]


def _tidy_structure(root: "pikepdf.Object") -> None:
    """
    Makes the tags of a document depend on the document alone.

    A chart is one figure with one description; Chromium also tags each drawing inside it, without a word. And it names
    the heads of tables by a number that counts on from one document to the next: here they are counted from 1.
    """
    import pikepdf

    names = sorted(str(name) for name in _names(root.get("/IDTree", pikepdf.Dictionary())))
    numbers = {name: pikepdf.String(f"node{number:08d}") for number, name in enumerate(names, 1)}
    _rename(root.get("/IDTree", pikepdf.Dictionary()), numbers)
    waiting = [(root, False)]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, pikepdf.Array):
            waiting += [(child, inside) for child in node]
        elif isinstance(node, pikepdf.Dictionary) and "/K" in node:
            figure = node.get("/S") == pikepdf.Name.Figure
            if figure and inside:
                node.S = pikepdf.Name.NonStruct
            if "/ID" in node:
                node.ID = numbers[str(node.ID)]
            for attributes in node.get("/A", ()):
                if isinstance(attributes, pikepdf.Dictionary) and "/Headers" in attributes:
                    attributes.Headers = pikepdf.Array([numbers[str(name)] for name in attributes.Headers])
            waiting.append((node.K, inside or figure))


def _names(tree: "pikepdf.Object") -> "Iterator[pikepdf.Object]":
    """The keys of a name tree (ISO 32000-1, 7.9.6)."""
    yield from list(tree.get("/Names", ()))[::2]
    for kid in tree.get("/Kids", ()):
        yield from _names(kid)


def _rename(tree: "pikepdf.Object", names: "Mapping[str, pikepdf.Object]") -> None:
    """Gives the keys of a name tree new names, which stand in the same order."""
    for key, step in (("/Names", 2), ("/Limits", 1)):
        for at in range(0, len(tree.get(key, ())), step):
            tree[key][at] = names[str(tree[key][at])]
    for kid in tree.get("/Kids", ()):
        _rename(kid, names)


def _information(pdf: "pikepdf.Pdf", title: str, created: datetime | None) -> None:
    """Document information and its XMP twin."""
    import pikepdf

    program = f"rdmalab {__version__}"
    info: dict[str, Any] = {"/Title": title, "/Creator": program, "/Producer": program}
    if created:
        moment = created.astimezone(UTC) if created.tzinfo else created.replace(tzinfo=UTC)
        info["/CreationDate"] = info["/ModDate"] = moment.strftime("D:%Y%m%d%H%M%SZ")
    for key in list(pdf.docinfo.keys()):
        del pdf.docinfo[key]
    for key, value in info.items():
        pdf.docinfo[key] = pikepdf.String(value)
    with pdf.open_metadata(set_pikepdf_as_editor=False, update_docinfo=False) as xmp:
        xmp["dc:title"] = title
        xmp["xmp:CreatorTool"] = xmp["pdf:Producer"] = program
        if created:
            xmp["xmp:CreateDate"] = xmp["xmp:ModifyDate"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _replace(out: Path, content: bytes) -> None:
    """Writes beside *out* and renames, so that nobody ever sees half a file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(out)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
