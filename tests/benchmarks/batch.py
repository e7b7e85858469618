"""What a batch of reports costs beside three commands a report; printed, never asserted. ``make bench``.

    python tests/benchmarks/batch.py [REPORTS [BY_HAND]]

Makes REPORTS fabric comparisons (4), HTML and PDF, with ``rdmalab report --batch``; BY_HAND of them (2) also with
papermill, jupyter nbconvert and chromium --print-to-pdf: once --to html, whose pages have no charts, and once
--to rdmalab_html, which gives the same page as the batch. And it makes one alone, beside its bare papermill execution.
Seconds are noisy, so everything is measured in one run, by hand before and after the batch, and CPU seconds stand
beside the seconds of the clock; those of Chromium's renderers are not among them, the system does not hand them on.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rdmalab.pdf import find_browser
from rdmalab.report import notebooks_folder

ROOT = Path(__file__).parents[2]
EXPORTERS = {"three commands": "html", "three commands, same page": "rdmalab_html"}
NOTEBOOK = notebooks_folder() / "fabric_comparison.ipynb"


def call(*command: str | Path, folder: Path) -> None:
    """Runs a command; its words are shown when it fails."""
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")


def papermill(folder: Path) -> None:
    """The bare execution of a fabric comparison."""
    call(
        sys.executable, "-m", "papermill", NOTEBOOK, "run.ipynb", "-p", "campaign", "synthetic", "-k", "python3",
        "--no-progress-bar", folder=folder,
    )  # fmt: skip


def by_hand(folder: Path, exporter: str) -> None:
    """Three commands a report."""
    papermill(folder)
    call(sys.executable, "-m", "nbconvert", "--to", exporter, "run.ipynb", folder=folder)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    call(
        find_browser() or "chromium", "--headless", *sandbox, "--disable-gpu", "--print-to-pdf=run.pdf",
        folder / "run.html", folder=folder,
    )  # fmt: skip


def batch(folder: Path, count: int) -> None:
    """All of them with one command."""
    record = '[[report]]\nnotebook = "fabric-comparison"\nparameters = {{ campaign = "synthetic" }}\nout = "out/{}"\n'
    (folder / "reports.toml").write_text("".join(record.format(n) for n in range(count)), encoding="utf-8")
    call(sys.executable, "-m", "rdmalab", "report", "--batch", "reports.toml", folder=folder)
    assert len(list(folder.glob("out/*/fabric_comparison.pdf"))) == count


class Clock:
    """Seconds, and CPU seconds of all children, since it was made."""

    def __init__(self) -> None:
        self.start, self.cpu = time.perf_counter(), self._cpu()

    @staticmethod
    def _cpu() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    def read(self) -> tuple[float, float]:
        """(seconds, CPU seconds)."""
        return time.perf_counter() - self.start, self._cpu() - self.cpu


def main() -> None:
    """Prints all figures."""
    count, hand = (int(word) for word in (*sys.argv[1:], *("4", "2")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory(prefix="rdmalab-bench-") as name:
        folder = Path(name)
        os.environ["RDMALAB_DB"] = str(folder / "example.duckdb")
        call(sys.executable, "-m", "rdmalab", "ingest", ROOT / "data" / "examples" / "synthetic", folder=folder)
        figures: dict[str, list[float]] = {}

        def measure(what: str, reports: int, work: Callable[[], object]) -> None:
            clock = Clock()
            work()
            seconds, cpu = clock.read()
            figures.setdefault(what, []).append(seconds / reports)
            print(
                f"{what}: {reports} reports, {seconds / reports:.2f} s each, {cpu / reports:.2f} cpu-s each", flush=True
            )

        def one_by_one(exporter: str) -> None:
            for _ in range(hand):
                by_hand(folder, exporter)

        def both_by_hand() -> None:
            for what, exporter in EXPORTERS.items():
                measure(what, hand, partial(one_by_one, exporter))

        both_by_hand()
        measure("batch", count, lambda: batch(folder, count))
        both_by_hand()
        measure("bare papermill", 1, lambda: papermill(folder))
        one = ["report", "fabric-comparison", "-p", "campaign=synthetic", "--out", "one"]
        measure("one report, cold", 1, lambda: call(sys.executable, "-m", "rdmalab", *one, folder=folder))
        for what in EXPORTERS:
            times = sum(figures[what]) / 2 / figures["batch"][0]
            print(f"throughput of the batch: {times:.1f} times that of {what} a report")
        print(f"one report, cold: {figures['one report, cold'][0] / figures['bare papermill'][0]:.1f} times papermill")


if __name__ == "__main__":
    main()
