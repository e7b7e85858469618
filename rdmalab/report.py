"""From a question to a delivered report: a notebook run by papermill, exported to HTML, printed to PDF.

Knows no metric. A report is written beside its final place and moved there whole; a failing cell fails the command.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


def parse_parameters(notebook: Path, given: Sequence[str]) -> dict[str, Any]:
    """
    ``key=value`` texts as the parameters of a notebook, in the types that it declares.

    Raises:
        UsageError: A text is no ``key=value``, a name is unknown, or a value does not fit the type.
    """
    with without_grammar():
        from papermill import inspect_notebook
    declared = inspect_notebook(str(notebook))
    out = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"-p wants key=value, not '{text}'")
        if key in out:
            raise UsageError(f"-p {key} is given twice")
        if key not in declared:
            names = ", ".join(declared)
            raise UsageError(
                f"{notebook.stem} has no parameter '{key}'; it has: {names}.{did_you_mean(key, list(declared))}"
            )
        out[key] = _typed(key, value, declared[key]["inferred_type_name"])
    return out


def _typed(key: str, value: str, kind: str) -> Any:
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
    parameters: Sequence[str] = (),
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
    notebook = find_notebook(name)
    for word in formats:
        if word not in ALL_FORMATS:
            raise UsageError(f"--to knows {', '.join(ALL_FORMATS)}, not '{word}'")
    values = {"lang": lang} | parse_parameters(notebook, parameters)
    lang = str(values["lang"])
    translator(lang)
    if not formats:
        raise UsageError(f"--to wants {', '.join(ALL_FORMATS[:-1])} or {ALL_FORMATS[-1]}")
    if not store.path.exists():
        raise StoreError(f"{store.path}: no store here; make one with 'rdmalab ingest PATH...'")
    executed = run_notebook(notebook, values, store, out)
    try:
        return _deliver(notebook.stem, executed, values, out, formats, lang, printer)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ReportError(
            f"{out}: the report cannot be written there ({reason}); name another folder with --out"
        ) from None


def run_notebook(notebook: Path, values: dict[str, Any], store: Store, out: Path) -> Any:
    """Executes a notebook in a kernel of its own; the user's mistakes come back as the errors they are."""
    with without_grammar():
        import papermill
        from papermill.exceptions import PapermillExecutionError
        from traitlets.config import Config
    with tempfile.TemporaryDirectory(prefix="rdmalab-") as folder, _environment(store, folder):
        partial = Path(folder) / "partial.ipynb"
        try:
            return papermill.execute_notebook(
                str(notebook), str(partial), values, kernel_name="python3", progress_bar=False, cwd=folder,
                start_timeout=120, config=Config({"KernelManager": {"transport": "ipc"}}),
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


def _deliver(
    stem: str,
    executed: Any,
    values: dict[str, Any],
    out: Path,
    formats: Sequence[str],
    lang: str,
    printer: "Printer | None",
) -> Delivered:
    from rdmalab import export

    found = export.records(executed)
    header = found.get("header", {})
    title = header.get("title") or stem
    if "pdf" in formats:
        header["pdf"] = f"{stem}.pdf"
    html = export.to_html(executed, lang=lang, title=title, header=header)
    summary = {
        "report": stem, "parameters": values, "rdmalab": rdmalab.__version__, "report_id": header.get("report_id"),
        "result": found.get("report", {}),
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    missing = None
    with tempfile.TemporaryDirectory(prefix=".rdmalab-", dir=out) as folder:
        made = []
        if "pdf" in formats:
            try:
                _print(html, Path(folder) / f"{stem}.pdf", title, lang, printer)
                made.append(f"{stem}.pdf")
            except MissingProgram as error:
                missing = error
        if "png" in formats and not missing:
            try:
                _shoot(html, Path(folder) / "screen.png", printer)
                made.append("screen.png")
            except MissingProgram as error:
                missing = error
        if "html" in formats or missing:
            (Path(folder) / f"{stem}.html").write_text(html, encoding="utf-8")
            made.insert(0, f"{stem}.html")
        (Path(folder) / "report.json").write_text(
            json.dumps(summary, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
        )
        (out / f"{stem}.failed.ipynb").unlink(missing_ok=True)
        for name in (*made, "report.json"):
            (Path(folder) / name).replace(out / name)
    return Delivered(tuple(out / n for n in (*made, "report.json")), title, missing)


def _print(html: str, path: Path, title: str, lang: str, printer: "Printer | None") -> None:
    from rdmalab import pdf

    (printer.print_pdf if printer else pdf.print_pdf)(html, path, title=title, lang=lang)


def _shoot(html: str, path: Path, printer: "Printer | None") -> None:
    """The first screen of the HTML as a picture."""
    from rdmalab import pdf

    if printer:
        printer.screenshot(html, path)
        return
    with pdf.Printer() as own:
        own.screenshot(html, path)
