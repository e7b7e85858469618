"""The promise to a reader: a command, and whole files or one clear sentence."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rdmalab.cli import main
from rdmalab.pdf import find_browser

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
needs_browser = pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
needs_poppler = pytest.mark.skipif(shutil.which("pdffonts") is None, reason="poppler-utils not installed")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def store(folder: Path, *paths: Path) -> str:
    db = str(folder / "lab.duckdb")
    assert run("ingest", *map(str, paths), "--db", db).exit_code == 0
    return db


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    return store(tmp_path_factory.mktemp("store"), EXAMPLES / "synthetic", EXAMPLES / "softroce" / "repeats")


@pytest.fixture(scope="module")
def synthetic(db: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the synthetic campaign, HTML and PDF where there is a browser."""
    out = tmp_path_factory.mktemp("synthetic")
    done = run(
        "report",
        "fabric-comparison",
        "-p",
        "campaign=synthetic",
        "--db",
        db,
        "--out",
        str(out),
        "--to",
        "html,pdf" if find_browser() else "html",
    )
    assert done.exit_code == 0, done.output
    return out


def test_the_html_is_self_contained_and_names_nobody(synthetic: Path) -> None:
    """No outside address, no absolute path, no code cell; synthetic data says so."""
    html = (synthetic / "fabric_comparison.html").read_text(encoding="utf-8")
    for word in ('src="http', 'href="http://', str(EXAMPLES), str(Path.home()) + "/", "rdmalab.open", "import rdmalab"):
        assert word not in html, word
    assert "SYNTHETIC DATA: nothing was measured" in html
    assert html.count("application/json") >= 6  # charts


@needs_browser
@needs_poppler
def test_the_pdf_is_fit_to_be_signed(synthetic: Path) -> None:
    """Fonts embedded and none of Type 3, bookmarks, page numbers, vector charts, selectable text."""
    from pypdf import PdfReader

    file = synthetic / "fabric_comparison.pdf"
    reader = PdfReader(file)
    pages = len(reader.pages)
    assert f"2 / {pages}" in reader.pages[1].extract_text()
    assert len(_flat(reader.outline)) >= 8
    fonts = subprocess.run(["pdffonts", file], capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    assert fonts
    for line in fonts:
        assert "Type 3" not in line
        assert line.split()[-5] == "yes", line
    images = subprocess.run(
        ["pdfimages", "-list", file], capture_output=True, text=True, check=True
    ).stdout.splitlines()[2:]
    assert images == []
    assert (
        "TCP\u00a0100G" in "".join(p.extract_text() for p in reader.pages)
        or "TCP 100G" in reader.pages[1].extract_text()
    )


def _flat(outline: list[object]) -> list[object]:
    return [x for item in outline for x in (_flat(item) if isinstance(item, list) else [item])]


@needs_browser
def test_the_same_data_gives_the_same_bytes(db: str, synthetic: Path, tmp_path: Path) -> None:
    """Running a report again changes no byte of HTML, PDF and report.json."""
    done = run("report", "fabric_comparison", "-p", "campaign=synthetic", "--db", db, "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    for name in ("fabric_comparison.html", "fabric_comparison.pdf", "report.json"):
        assert (tmp_path / name).read_bytes() == (synthetic / name).read_bytes(), name


def test_report_json_holds_the_verdict_and_its_numbers(synthetic: Path) -> None:
    """report.json says what the cover says, with the parameters and the numbers of every table."""
    content = json.loads((synthetic / "report.json").read_text(encoding="utf-8"))
    assert content["parameters"] == {"campaign": "synthetic", "lang": "en"}
    cells = content["result"]["tables"][0]["cells"]
    assert {c["fabric"] for c in cells} == {"tcp-100g", "roce-100g", "infiniband-ndr400"}
    fastest = next(c for c in cells if c["fabric"] == "infiniband-ndr400" and c["size_bytes"] == 8)
    assert fastest["verdict"] == "faster"
    assert fastest["ratio_low"] > 1


def test_measured_tcp_is_faster_than_soft_roce_and_the_report_says_so(db: str, tmp_path: Path) -> None:
    """The measured logs: TCP beats RDMA done by the processor."""
    done = run(
        "report", "fabric-comparison", "-p", "campaign=softroce", "--to", "html", "--db", db, "--out", str(tmp_path)
    )
    assert done.exit_code == 0, done.output
    verdict = done.stdout.splitlines()[0].replace("\u00a0", " ")
    assert verdict.startswith("TCP is ")
    assert "times as fast as Soft-RoCE in latency at 64 B" in verdict


@needs_browser
@needs_poppler
@pytest.mark.parametrize("campaign", ["synthetic", "softroce"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_page_is_nearly_empty(db: str, tmp_path: Path, campaign: str, lang: str) -> None:
    """The ink of every page reaches over at least 20 % of its type area; one line too many makes a near-empty page."""
    done = run(
        "report", "fabric-comparison", "-p", f"campaign={campaign}", "--lang", lang, "--to", "pdf,png", "--db", db,
        "--out", str(tmp_path),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert (tmp_path / "screen.png").read_bytes()[16:24] == (1280).to_bytes(4, "big") + (800).to_bytes(4, "big")
    pdf = tmp_path / "fabric_comparison.pdf"
    subprocess.run(["pdftoppm", "-gray", "-r", "20", pdf, tmp_path / "page"], check=True)
    heights = [_ink_share(p) for p in sorted(tmp_path.glob("page-*.pgm"))]
    assert len(heights) > 8
    assert min(heights) >= 0.2, heights
    if lang == "zh":
        text = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, check=True).stdout.decode()
        assert "网络" in text


def _ink_share(path: Path) -> float:
    """From the top of the type area to its last row with ink, as a share of its height: 22 to 277 of 297 mm."""
    head, size, _, pixels = path.read_bytes().split(b"\n", 3)
    assert head == b"P5"
    width, height = map(int, size.split())
    top, bottom = round(22 / 297 * height), round(277 / 297 * height)
    inked = [y for y in range(top, bottom) if min(pixels[y * width : (y + 1) * width]) < 200]
    return (max(inked, default=top) - top) / (bottom - top)


def test_only_the_formats_asked_for(db: str, tmp_path: Path) -> None:
    """``--to html`` writes no PDF."""
    run("report", "fabric-comparison", "-p", "campaign=softroce", "--to", "html", "--db", db, "--out", str(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fabric_comparison.html", "report.json"]


def _refused(tmp_path: Path, db: str, *args: str) -> tuple[int, str]:
    out = tmp_path / "out"
    done = run("report", *args, "--db", db, "--out", str(out))
    assert "Traceback" not in done.output
    assert not out.exists() or not list(out.iterdir())
    assert done.stderr.count("\n") == 1
    return done.exit_code, done.stderr


def test_unknown_fabric(db: str, tmp_path: Path) -> None:
    """A fabric that the campaign does not have is refused with those it has."""
    code, text = _refused(
        tmp_path, db, "fabric-comparison", "-p", "campaign=synthetic", "-p", "fabrics=tcp-100g,roce-100"
    )
    assert code == 2
    assert (
        "no run of a fabric 'roce-100' in campaign 'synthetic'; it has: tcp-100g, roce-100g, infiniband-ndr400. "
        "Did you mean 'roce-100g'?" in text
    )


def test_misspelt_parameter(db: str, tmp_path: Path) -> None:
    """A parameter that the notebook does not have is refused before a kernel starts."""
    code, text = _refused(tmp_path, db, "fabric-comparison", "-p", "campain=synthetic")
    assert code == 2
    assert "has no parameter 'campain'" in text
    assert "Did you mean 'campaign'?" in text


def test_wrong_type_of_parameter(db: str, tmp_path: Path) -> None:
    """A number that is none is refused."""
    code, text = _refused(tmp_path, db, "fabric-comparison", "-p", "ranks=many")
    assert (code, text) == (2, "rdmalab: -p ranks wants a whole number, not 'many'\n")


def test_misspelt_report(db: str, tmp_path: Path) -> None:
    """A report that does not exist is refused with those that do."""
    code, text = _refused(tmp_path, db, "fabric-comparision")
    assert code == 2
    assert "Did you mean 'fabric-comparison'?" in text


def test_several_campaigns_and_none_named(db: str, tmp_path: Path) -> None:
    """Where a store has several campaigns, one must be named."""
    code, text = _refused(tmp_path, db, "fabric-comparison")
    assert code == 2
    assert "softroce, synthetic" in text


def test_one_fabric(tmp_path: Path) -> None:
    """A store with one fabric cannot be compared: exit 1."""
    db = store(tmp_path, EXAMPLES / "synthetic" / "tcp-100g" / "iperf3")
    code, text = _refused(tmp_path, db, "fabric-comparison")
    assert code == 1
    assert "has runs of one fabric only (tcp-100g)" in text


def test_empty_store(tmp_path: Path) -> None:
    """A store without a run says how to fill it."""
    (tmp_path / "none.txt").write_text("nothing here\n", encoding="utf-8")
    db = store(tmp_path, tmp_path / "none.txt")
    code, text = _refused(tmp_path, db, "fabric-comparison")
    assert code == 2
    assert "the store holds no run yet" in text


def test_no_store(tmp_path: Path) -> None:
    """A store that is not there says how to make one."""
    code, text = _refused(tmp_path, str(tmp_path / "no.duckdb"), "fabric-comparison")
    assert code == 2
    assert "no store here; make one with 'rdmalab ingest PATH...'" in text


def test_a_failing_cell_fails_the_command(db: str, tmp_path: Path) -> None:
    """A notebook of the user that raises: exit 1, the partial notebook kept under another name, no half report."""
    notebook = {
        "cells": [
            {
                "cell_type": "code",
                "id": "a",
                "metadata": {"tags": ["parameters"]},
                "execution_count": None,
                "outputs": [],
                "source": "lang: str = 'en'",
            },
            {"cell_type": "code", "id": "b", "metadata": {}, "execution_count": None, "outputs": [], "source": "1 / 0"},
        ],
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (tmp_path / "mine.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    out = tmp_path / "out"
    done = run("report", str(tmp_path / "mine.ipynb"), "--db", db, "--out", str(out))
    assert done.exit_code == 1
    assert "mine.ipynb: cell 2 failed: ZeroDivisionError: division by zero" in done.stderr
    assert [p.name for p in out.iterdir()] == ["mine.failed.ipynb"]
    assert str(tmp_path) not in (out / "mine.failed.ipynb").read_text(encoding="utf-8")


def test_without_a_browser_the_html_is_there_and_exit_is_3(
    db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The HTML is delivered, one sentence says what to install, exit 3."""
    monkeypatch.setattr("rdmalab.pdf.find_browser", lambda: None)
    done = run("report", "fabric-comparison", "-p", "campaign=softroce", "--db", db, "--out", str(tmp_path))
    assert done.exit_code == 3
    assert (tmp_path / "fabric_comparison.html").exists()
    assert not (tmp_path / "fabric_comparison.pdf").exists()
    assert "chromium" in done.stderr.lower()


@pytest.mark.skipif(shutil.which("pip") is None and not os.environ.get("VIRTUAL_ENV"), reason="no pip")
def test_the_wheel_makes_a_report_in_an_empty_folder(tmp_path: Path) -> None:
    """What a user installs holds notebooks, templates, fonts and tables: a report from the wheel alone."""
    root = EXAMPLES.parents[1]
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(root)],
        check=True,
        capture_output=True,
    )
    wheel = next(tmp_path.glob("*.whl"))
    site = tmp_path / "site"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--target",
            str(site),
            str(wheel),
        ],
        check=True,
        capture_output=True,
    )
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site)}
    environment.pop("RDMALAB_DB", None)
    script = "from rdmalab.cli import main; main()"
    for args in (
        ["ingest", str(EXAMPLES / "softroce" / "repeats")],
        ["report", "fabric-comparison", "--to", "html"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, *args],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["data", "reports"]
    assert (folder / "reports" / "fabric_comparison.html").stat().st_size > 1_000_000
    where = subprocess.run(
        [sys.executable, "-c", "import rdmalab; print(rdmalab.__file__)"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(site) in where.stdout


def test_two_reports_in_one_folder_keep_both_records(db: str, tmp_path: Path) -> None:
    """The record of the first gets its name, and can still be verified."""
    for name in ("fabric-comparison", "configuration-audit"):
        done = run("report", name, "-p", "campaign=synthetic", "--db", db, "--out", str(tmp_path), "--to", "html")
        assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["report"] == "configuration_audit"
    kept = tmp_path / "fabric_comparison.report.json"
    assert json.loads(kept.read_text(encoding="utf-8"))["report"] == "fabric_comparison"
    assert run("report", "--verify", str(kept), "--db", db).exit_code == 0
