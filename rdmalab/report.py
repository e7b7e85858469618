"""From a question to a delivered report: a notebook run by papermill, exported to HTML, printed to PDF.

Knows no metric. A report is written beside its final place and moved there whole; a failing cell fails the command.
"""

import contextlib
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rdmalab
from rdmalab import errors
from rdmalab._fast_imports import without_grammar
from rdmalab.errors import MissingProgram, ReportError, StoreError, UsageError, did_you_mean
from rdmalab.language import translator
from rdmalab.store import Store

if TYPE_CHECKING:
    from rdmalab.pdf import Printer

FORMATS = ("html", "pdf")  # what is made unless asked otherwise
ALL_FORMATS = (*FORMATS, "png")


@dataclass(frozen=True)
class Delivered:
    """The files of a report, and what it says in the words of its first page."""

    files: tuple[Path, ...]
    verdict: str
    missing: MissingProgram | None = None  # the PDF could not be printed; everything else is there


@dataclass(frozen=True)
class Order:
    """A report to make, with all that was left open decided."""

    notebook: Path
    values: dict[str, Any]  # parameters of the notebook
    db: Path
    formats: tuple[str, ...]
    out: Path

    @property
    def stem(self) -> str:
        """Name of the report and of its files."""
        return self.notebook.stem

    @property
    def lang(self) -> str:
        """Language of the report."""
        return str(self.values["lang"])

    @property
    def notebook_sha256(self) -> str:
        """Hash of the notebook's file."""
        return hashlib.sha256(self.notebook.read_bytes()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The order as JSON can say it."""
        paths = {key: str(getattr(self, key)) for key in ("notebook", "db", "out")}
        return {"values": self.values, "formats": list(self.formats)} | paths

    @classmethod
    def from_json(cls, order: dict[str, Any]) -> "Order":
        """The order that :meth:`to_json` wrote."""
        paths = {key: Path(order[key]) for key in ("notebook", "db", "out")}
        return cls(values=order["values"], formats=tuple(order["formats"]), **paths)


@dataclass(frozen=True)
class Made:
    """A report that is made and not delivered: its title, its page, and what ``report.json`` will say."""

    title: str
    html: str
    summary: dict[str, Any]

    def summary_text(self) -> str:
        """The content of ``report.json``."""
        return json.dumps(self.summary, indent=1, ensure_ascii=False, sort_keys=True) + "\n"

    def save(self, folder: Path) -> None:
        """Writes it where another process finds it."""
        (folder / "page.html").write_text(self.html, encoding="utf-8")
        (folder / "made.json").write_text(json.dumps({"title": self.title, "summary": self.summary}), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Made":
        """What :meth:`save` wrote."""
        html = (folder / "page.html").read_text(encoding="utf-8")
        return cls(html=html, **json.loads((folder / "made.json").read_text(encoding="utf-8")))


def notebooks_folder() -> Path:
    """The folder of the shipped notebooks: inside the installed package, or beside it in a checkout."""
    inside = Path(str(files("rdmalab"))) / "notebooks"
    return inside if inside.is_dir() else Path(__file__).parents[1] / "notebooks"


def find_notebook(name: str) -> Path:
    """
    The notebook of a report; ``fabric-comparison`` and ``fabric_comparison`` are the same, a path is taken as it is.

    Raises:
        UsageError: There is no such report.
    """
    if name.endswith(".ipynb"):
        if not Path(name).is_file():
            raise UsageError(f"{name}: no such notebook")
        return Path(name)
    known = {p.stem.replace("_", "-"): p for p in sorted(notebooks_folder().glob("*.ipynb")) if _is_report(p)}
    word = name.replace("_", "-")
    if word not in known:
        raise UsageError(
            f"no report '{name}'; there is: {', '.join(known) or 'none'}.{did_you_mean(word, list(known))}"
        )
    return known[word]


def _is_report(notebook: Path) -> bool:
    """Whether a notebook takes parameters; the others are for exploring."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return any("parameters" in cell["metadata"].get("tags", ()) for cell in cells)


def parse_parameters(notebook: Path, given: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    """
    ``key=value`` texts, or a mapping of names to values, as the parameters of a notebook in the types it declares.

    Raises:
        UsageError: A text is no ``key=value``, a name is unknown, or a value does not fit the type.
    """
    with without_grammar():
        from papermill import inspect_notebook
    try:
        declared = inspect_notebook(str(notebook))
    except ValueError:
        raise UsageError(f"{notebook}: the notebook names no kernel; save it once in JupyterLab") from None
    out: dict[str, Any] = {}
    for key, value in given.items() if isinstance(given, Mapping) else _split(given):
        if key not in declared:
            names = ", ".join(declared)
            raise UsageError(
                f"{notebook.stem} has no parameter '{key}'; it has: {names}.{did_you_mean(key, list(declared))}"
            )
        out[key] = _typed(key, value, declared[key]["inferred_type_name"])
    return out


def _split(texts: Sequence[str]) -> list[tuple[str, str]]:
    out: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"-p wants key=value, not '{text}'")
        if key in out:
            raise UsageError(f"-p {key} is given twice")
        out[key] = value
    return list(out.items())


def _typed(key: str, value: Any, kind: str) -> Any:
    if kind.lower().startswith("list") and isinstance(value, list):
        return value
    if isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, int | float):
        value = f"{value}"
    elif not isinstance(value, str):
        wanted = "a list" if kind.lower().startswith("list") else "a word"
        raise UsageError(f"-p {key} wants {wanted}, not {value!r}")
    try:
        if kind in ("int", "float"):
            return int(value) if kind == "int" else float(value)
        if kind == "bool":
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[value.lower()]
    except (ValueError, KeyError):
        wanted = {"int": "a whole number", "float": "a number", "bool": "true or false"}[kind]
        raise UsageError(f"-p {key} wants {wanted}, not '{value}'") from None
    if kind.lower().startswith("list"):
        return [v.strip() for v in value.split(",") if v.strip()]
    return value


def make_report(
    name: str,
    store: Store,
    out: Path,
    *,
    parameters: Sequence[str] | Mapping[str, Any] = (),
    formats: Sequence[str] = FORMATS,
    lang: str = "en",
    printer: "Printer | None" = None,
) -> Delivered:
    """
    Runs a report and delivers ``NAME.html``, ``NAME.pdf``, ``screen.png`` (1280 x 800) and ``report.json`` into *out*.

    Raises:
        UsageError: The report, a parameter or a format is unknown, or a parameter names what the store does not have.
        NothingToCompare: The data cannot answer the question.
        ReportError: A cell failed; the partial notebook is kept as ``NAME.failed.ipynb``.
        StoreError: There is no store.
    """
    order = prepare(name, store, out, parameters=parameters, formats=formats, lang=lang)
    return deliver(order, make(order), printer)


def prepare(
    name: str,
    store: Store,
    out: Path,
    *,
    parameters: Sequence[str] | Mapping[str, Any] = (),
    formats: Sequence[str] = FORMATS,
    lang: str = "en",
) -> Order:
    """The order of a report, checked as far as that goes without running it; raises as :func:`make_report`."""
    notebook = find_notebook(name)
    for word in formats:
        if word not in ALL_FORMATS:
            raise UsageError(f"--to knows {', '.join(ALL_FORMATS)}, not '{word}'")
    values = {"lang": lang} | parse_parameters(notebook, parameters)
    translator(str(values["lang"]))
    if not formats:
        raise UsageError(f"--to wants {', '.join(ALL_FORMATS[:-1])} or {ALL_FORMATS[-1]}")
    if not store.path.exists():
        raise StoreError(f"{store.path}: no store here; make one with 'rdmalab ingest PATH...'")
    return Order(notebook.absolute(), values, store.path.absolute(), tuple(formats), out)


def make(order: Order, kernel_manager: type | None = None) -> Made:
    """
    Runs the notebook of an order and exports it; nothing is delivered yet.

    Args:
        order: What to make.
        kernel_manager: Starts the kernel; default: jupyter_client's own.

    Raises:
        RdmalabError: As :func:`make_report`.
    """
    from rdmalab import export

    executed, evidence = _on_one_snapshot(order, kernel_manager)
    found = export.records(executed)
    header = found.get("header", {})
    title = header.get("title") or order.stem
    if "pdf" in order.formats:
        header["pdf"] = f"{order.stem}.pdf"
    html = export.to_html(executed, lang=order.lang, title=title, header=header)
    result = found.get("report", {})
    summary = {
        "report": order.stem, "lang": order.lang, "parameters": order.values, "report_id": header.get("report_id"),
        "snapshot": result.get("snapshot") if isinstance(result, dict) else None,
        "notebook": {"name": order.notebook.name, "sha256": order.notebook_sha256},
        "versions": versions(), "data": evidence, "result": result,
    }  # fmt: skip
    return Made(title, html, summary)


def run_again(order: Order) -> dict[str, Any]:
    """The ``report.json`` that the order would give now, without exporting anything."""
    from rdmalab import export

    executed, evidence = _on_one_snapshot(order, None)
    return {
        "data": evidence, "notebook": {"name": order.notebook.name, "sha256": order.notebook_sha256},
        "versions": versions(), "result": export.records(executed).get("report", {}),
    }  # fmt: skip


def _on_one_snapshot(order: Order, kernel_manager: type | None) -> tuple[Any, dict[str, Any]]:
    """The executed notebook and what it rests on; once more where an ingest published new data meanwhile."""
    from rdmalab import export
    from rdmalab.evidence import evidence

    for _ in range(3):
        before = _state(order.db)
        executed = run_notebook(order.notebook, order.values, Store(order.db), order.out, kernel_manager)
        result = export.records(executed).get("report", {})
        named = order.values.get("campaign") or (result.get("campaign") if isinstance(result, dict) else None)
        found = evidence(Store(order.db), named)
        if _state(order.db) == before:
            return executed, found
    raise ReportError(f"{order.db}: new data came in three times while the report was made; try again later")


def _state(db: Path) -> tuple[int, int]:
    """Changes whenever an ingest publishes a store."""
    status = db.stat()
    return status.st_ino, status.st_mtime_ns


def versions() -> dict[str, str | None]:
    """The versions that numbers and looks may depend on; that of Chromium is filled in when a PDF is printed."""
    packages = {name: metadata.version(name) for name in ("polars", "duckdb", "plotly", "scipy")}
    return {"rdmalab": rdmalab.__version__, "python": platform.python_version(), **packages, "chromium": None}


def run_notebook(
    notebook: Path, values: dict[str, Any], store: Store, out: Path, kernel_manager: type | None = None
) -> Any:
    """Executes a notebook in a kernel of its own; the user's mistakes come back as the errors they are."""
    given = {"kernel_manager_class": kernel_manager} if kernel_manager else {}
    with without_grammar():
        import papermill
        from papermill.exceptions import PapermillExecutionError
        from traitlets.config import Config
    with tempfile.TemporaryDirectory(prefix="rdmalab-") as folder, _environment(store, folder):
        partial = Path(folder) / "partial.ipynb"
        try:
            return papermill.execute_notebook(
                str(notebook), str(partial), values, kernel_name="python3", progress_bar=False, cwd=folder,
                start_timeout=120, request_save_on_cell_execute=False,
                config=Config({"KernelManager": {"transport": "ipc"}}), **given,
            )  # fmt: skip
        except PapermillExecutionError as error:
            kind = getattr(errors, str(error.ename), None)
            if isinstance(kind, type) and issubclass(kind, errors.RdmalabError):
                raise kind(error.evalue) from None
            out.mkdir(parents=True, exist_ok=True)
            kept = out / f"{notebook.stem}.failed.ipynb"
            _keep(partial, kept)
            raise ReportError(
                f"{notebook.name}: cell {(error.exec_count or 1) - 1} failed: {error.ename}: {error.evalue}; "
                f"the notebook up to there is kept as {kept}"
            ) from None


@contextlib.contextmanager
def _environment(store: Store, folder: str) -> Iterator[None]:
    """What the kernel is told by its environment; its own files go into *folder*, not into the user's home."""
    told = {
        "RDMALAB_DB": str(store.path.absolute()), "RDMALAB_REPORT": "1", "RDMALAB_FOLDER": str(Path.cwd()),
        "IPYTHONDIR": folder, "JUPYTER_RUNTIME_DIR": folder, "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }  # fmt: skip
    before = {k: os.environ.get(k) for k in told}
    os.environ.update(told)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def _keep(partial: Path, kept: Path) -> None:
    """Moves the partial notebook, without the block in which papermill writes paths and parameters."""
    document = json.loads(partial.read_text(encoding="utf-8"))
    document["metadata"].pop("papermill", None)
    kept.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")


def deliver(order: Order, made: Made, printer: "Printer | None" = None) -> Delivered:
    """
    Prints the PDF and puts all files of a report into its folder, whole or not at all.

    Raises:
        ReportError: The page cannot be printed, or the folder cannot be written.
    """
    try:
        return _deliver(order, made, printer)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ReportError(
            f"{order.out}: the report cannot be written there ({reason}); name another folder with --out"
        ) from None


def _deliver(order: Order, made: Made, printer: "Printer | None") -> Delivered:
    stem, out = order.stem, order.out
    out.mkdir(parents=True, exist_ok=True)
    missing = None
    with tempfile.TemporaryDirectory(prefix=".rdmalab-", dir=out) as folder:
        files = []
        if "pdf" in order.formats:
            try:
                made.summary["versions"]["chromium"] = _print(made, Path(folder) / f"{stem}.pdf", order.lang, printer)
                files.append(f"{stem}.pdf")
            except MissingProgram as error:
                missing = error
        if "png" in order.formats and not missing:
            try:
                _shoot(made.html, Path(folder) / "screen.png", printer)
                files.append("screen.png")
            except MissingProgram as error:
                missing = error
        if "html" in order.formats or missing:
            (Path(folder) / f"{stem}.html").write_text(made.html, encoding="utf-8")
            files.insert(0, f"{stem}.html")
        (Path(folder) / "report.json").write_text(made.summary_text(), encoding="utf-8")
        (out / f"{stem}.failed.ipynb").unlink(missing_ok=True)
        _keep_record(out, stem)
        for name in (*files, "report.json"):
            (Path(folder) / name).replace(out / name)
    return Delivered(tuple(out / n for n in (*files, "report.json")), made.title, missing)


def _keep_record(out: Path, stem: str) -> None:
    """The ``report.json`` of another report in this folder becomes ``NAME.report.json``: it can still be verified."""
    record = out / "report.json"
    try:
        other = json.loads(record.read_text(encoding="utf-8"))["report"]
    except (OSError, ValueError, KeyError, TypeError):  # none, or none of ours
        return
    if isinstance(other, str) and other != stem and other.isidentifier():
        record.replace(out / f"{other}.report.json")


def _print(made: Made, path: Path, lang: str, printer: "Printer | None") -> str:
    """Prints the PDF; returns the version of the browser."""
    if printer is None:
        from rdmalab.pdf import Printer

        with Printer() as printer:
            return _print(made, path, lang, printer)
    printer.print_pdf(made.html, path, title=made.title, lang=lang)
    return printer.version


def _shoot(html: str, path: Path, printer: "Printer | None") -> None:
    """The first screen of the HTML as a picture."""
    from rdmalab import pdf

    if printer:
        printer.screenshot(html, path)
        return
    with pdf.Printer() as own:
        own.screenshot(html, path)
