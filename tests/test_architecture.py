"""The house stays in order: who may import whom, and what stays cheap."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rdmalab"

# Each module, with the modules of rdmalab that it may import. The order is that of the house: downwards only.
ALLOWED = {
    "errors": set(),
    "units": set(),
    "stats": set(),
    "_fast_imports": set(),
    "display": set(),
    "model": set(),
    "sources": {"wrapping"},
    "wrapping": set(),
    "limits": {"errors", "units"},
    "transport": {"model"},
    "formats": {"errors", "model", "sources", "units", "transport", "formats"},
    "export_json": {"model", "recomputed"},
    "recomputed": {"model", "units"},
    "toml_records": {"errors"},
    "campaign": {"errors", "model", "toml_records"},
    "store": {"rdmalab", "errors", "model", "recomputed"},
    "membership": {"campaign", "limits", "store"},
    "parts": {"rdmalab", "model", "store"},
    "ingest": {"rdmalab", "campaign", "errors", "formats", "membership", "model", "parts", "sources", "store"},
    "executors": {"errors", "ingest"},
    "shards": {"rdmalab", "errors", "ingest", "sources", "store"},
    "series": {"errors", "units", "lab"},
    "compare": {"errors", "pairs", "series", "stats", "telemetry", "lab"},
    "acceptance": {"errors", "lab", "limits", "model", "stats", "toml_records", "units"},
    "lab": {"errors", "store", "acceptance", "audit", "compare", "series"},
    "quotes": {"sources"},
    "show": {"errors", "quotes", "lab"},
    "counters": {"lab"},
    "rules": {"rules", "language"},
    "audit": {"errors", "counters", "quotes", "rules", "lab"},
    "expression": {"errors"},
    "claims": {"claims", "errors", "expression", "limits", "model", "stats", "units", "lab"},
    "language": {"errors"},
    "phrases": set(),
    "telemetry": {"stats", "lab"},
    "pairs": {"errors", "series", "stats", "lab"},
    "stability": {"series", "stats", "lab"},
    "explore": {"compare", "quotes", "series", "stats", "lab"},
    "typeface": set(),
    "start": {"errors", "lab", "language", "report"},
    "workbench": {
        "errors",
        "explore",
        "figures",
        "lab",
        "language",
        "pairs",
        "typeface",
        "units",
        "wording",
        "compare",
        "series",
    },
    "findings": {"compare", "curves", "stability", "stats", "lab"},
    "curves": {"compare", "series", "stats", "lab"},
    "tables": {"claims", "compare"},
    "figures": {"_fast_imports", "language", "tables", "units", "compare", "pairs"},
    "wording": {"findings", "compare", "language", "pairs", "phrases", "tables", "units", "series"},
    "price": {"compare", "errors", "lab"},
    "pages": {
        "findings",
        "acceptance",
        "price",
        "claims",
        "lab",
        "pages",
        "audit",
        "compare",
        "display",
        "errors",
        "figures",
        "pairs",
        "rules",
        "tables",
        "telemetry",
        "units",
        "wording",
    },
    "export": {"_fast_imports", "display", "errors", "typeface"},
    "pdf": {"rdmalab", "errors"},
    "__main__": {"cli"},
    "starter": {"campaign", "errors", "formats", "model", "sources"},
    "jupyter": {"report", "store"},
    "evidence": {"store"},
    "report": {"rdmalab", "_fast_imports", "errors", "evidence", "export", "language", "pdf", "store"},
    "verify": {"errors", "lab", "report", "sources", "store"},
    "kernels": set(),
    "worker": {"rdmalab", "_fast_imports", "errors", "export", "figures", "kernels", "pages", "report"},
    "orders": {"errors", "report", "store", "toml_records"},
    "schedule_file": {"errors", "orders", "store", "toml_records"},
    "schedule": {
        "batch",
        "errors",
        "evidence",
        "executors",
        "ingest",
        "report",
        "schedule_file",
        "store",
    },
    "batch": {"rdmalab", "errors", "pdf", "report"},
    "cli": {
        "rdmalab",
        "findings",
        "wording",
        "batch",
        "acceptance",
        "curves",
        "pairs",
        "series",
        "errors",
        "executors",
        "export_json",
        "formats",
        "ingest",
        "jupyter",
        "lab",
        "starter",
        "tables",
        "model",
        "orders",
        "report",
        "schedule",
        "schedule_file",
        "verify",
        "shards",
        "show",
        "sources",
        "store",
        "claims",
    },
}
# Packages of weight, and the only modules that may name them.
ONLY_HERE = {
    "duckdb": {"store"},
    "plotly": {"figures", "export"},
    "papermill": {"report"},
    "nbconvert": {"export"},
    "playwright": {"pdf"},
    "pikepdf": {"pdf"},
    "distributed": {"executors"},
    "scipy": {"stats"},
    "ipywidgets": {"workbench"},
    "anywidget": {"workbench"},
    "itables": {"workbench"},
}


def _modules() -> list[Path]:
    return [p for p in PACKAGE.rglob("*.py") if "fonts" not in p.parts]


def _name(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0].removesuffix(".py") if inside.name != "__init__.py" or len(inside.parts) > 1 else "rdmalab"


def _imports(path: Path) -> set[str]:
    """Dotted names imported anywhere in a module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{a.name}" for a in node.names}
    return found


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    """A module imports only modules of the rooms below it."""
    name = _name(path)
    if name == "rdmalab":
        return
    used = {i.split(".")[1] if "." in i else "rdmalab" for i in _imports(path) if i.split(".")[0] == "rdmalab"}
    used = {"rdmalab" if u == "__version__" else u for u in used} - {name}
    assert used <= ALLOWED[name], f"{name} must not import {used - ALLOWED[name]}"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_packages_of_weight_have_one_door(path: Path) -> None:
    """DuckDB, plotly, papermill and their like are imported only where the house says."""
    used = {i.split(".")[0] for i in _imports(path)}
    for package, doors in ONLY_HERE.items():
        if _name(path) not in doors:
            assert package not in used


def test_a_format_knows_no_other_format() -> None:
    """Formats share helpers whose names begin with an underscore, and nothing else."""
    for path in (PACKAGE / "formats").glob("[!_]*.py"):
        others = {i.split(".")[2] for i in _imports(path) if i.startswith("rdmalab.formats.")}
        assert all(o.startswith("_") for o in others), f"{path.name} imports {others}"


def test_help_imports_nothing_of_weight() -> None:
    """``rdmalab --help`` answers without a heavy package."""
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom rdmalab.cli import main\n"
        "result = CliRunner().invoke(main, ['--help'])\nassert result.exit_code == 0, result.output\n"
        "print([m for m in sys.modules if '.' not in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout))
    heavy = {
        "duckdb",
        "polars",
        "plotly",
        "papermill",
        "nbconvert",
        "nbformat",
        "numpy",
        "scipy",
        "jupyter_client",
        "playwright",
        "babel",
    }
    assert not loaded & heavy


def test_notebooks_are_clean_and_hold_no_logic() -> None:
    """Notebooks in git carry no output, no execution count, and no def, SQL, regex or prose."""
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        assert "papermill" not in notebook["metadata"]
        for cell in notebook["cells"]:
            assert cell["cell_type"] == "code", f"{path.name}: headings come from wording"
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            source = "".join(cell["source"])
            nodes = {type(n) for n in ast.walk(ast.parse(source))}
            assert not nodes & {ast.FunctionDef, ast.ClassDef, ast.Lambda}
            assert not re.search(r"\bselect\b.+\bfrom\b", source, re.IGNORECASE | re.DOTALL)
            assert "re" not in _imported(source)


def _imported(source: str) -> set[str]:
    return {a.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for a in node.names}


def test_hints_never_hide_a_log() -> None:
    """A text that a signature matches is found with the hints as without them."""
    from rdmalab import formats, sources

    files = [
        f for f in sources.find([ROOT / "data" / "examples", ROOT / "tests" / "formats"]) if isinstance(f, sources.File)
    ]
    for file in files:
        for text in sources.texts(file.path):
            if isinstance(text, sources.Text):
                plain = {f.NAME for f in formats.known() if any(f.SIGNATURE.search(c) for _, c in text.chunks())}
                assert {f.NAME for f in formats.detect(text)} == plain, file.path
