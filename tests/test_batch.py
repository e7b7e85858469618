"""Batches: each report in processes of its own, one browser, and a failure that costs itself alone."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rdmalab.batch import Worker, make_reports
from rdmalab.cli import main
from rdmalab.errors import NothingToCompare, ReportError, UsageError
from rdmalab.orders import fill, read_batch
from rdmalab.pdf import find_browser
from rdmalab.report import Delivered, Order, make_report, prepare
from rdmalab.store import Store
from tests.conftest import Bench, nccl_log
from tests.test_schedule import notebook

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
BATCH = """\
[[report]]
notebook = "fabric-comparison"
parameters = { campaign = "synthetic", fabrics = ["tcp-100g", "roce-100g"] }
out = "out/{notebook}-{campaign}"
to = ["html"]
"""


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The synthetic examples."""
    store = Store(tmp_path_factory.mktemp("store") / "lab.duckdb")
    assert run("ingest", str(EXAMPLES / "synthetic"), "--db", str(store.path)).exit_code == 0
    return store


def test_a_batch_makes_what_single_commands_make(store: Store, tmp_path: Path) -> None:
    """Byte for byte, in HTML, PDF and report.json; the next report of the batch is not touched by one that fails."""
    formats = ("html", "pdf") if find_browser() else ("html",)
    wanted = [
        {"campaign": "synthetic", "ranks": 16},
        {"campaign": "synthetic", "fabrics": ["tcp-100g"]},
        {"campaign": "synthetic", "lang": "zh"},
    ]
    orders = [
        prepare("fabric-comparison", store, tmp_path / str(n), parameters=p, formats=formats)
        for n, p in enumerate(wanted)
    ]
    steps: list[tuple[int, int]] = []
    outcomes = make_reports(orders, progress=lambda *step: steps.append(step))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert isinstance(outcomes[1], NothingToCompare)
    assert not (tmp_path / "1").exists()
    single = tmp_path / "single"
    for number in (0, 2):
        assert isinstance(outcomes[number], Delivered)
        done = make_report("fabric-comparison", store, single, parameters=wanted[number], formats=formats)
        for file in done.files:
            assert file.read_bytes() == (tmp_path / str(number) / file.name).read_bytes(), file.name


def test_no_report_sees_what_another_left(store: Store, tmp_path: Path) -> None:
    """A report that changes a library, the environment and its folder, and one after it in the same worker."""
    notebook(
        tmp_path / "first.ipynb", "import json, os, rdmalab", "from rdmalab.display import record",
        "record('report', {'seen': [hasattr(json, 'mine'), os.environ.get('MINE'), 'mine' in globals()]})",
        "json.mine = mine = os.environ['MINE'] = 'customer A'", "open('mine', 'w').close()",
        "assert os.listdir('.').count('mine') == 1",
    )  # fmt: skip
    orders = [prepare(str(tmp_path / "first.ipynb"), store, tmp_path / str(n), formats=["html"]) for n in range(3)]
    assert all(isinstance(outcome, Delivered) for outcome in make_reports(orders, workers=1))
    for number in range(3):
        summary = json.loads((tmp_path / str(number) / "report.json").read_text())
        assert summary["result"] == {"seen": [False, None, False]}


def test_a_kernel_that_dies_and_a_worker_that_dies_cost_one_report(store: Store, tmp_path: Path) -> None:
    """Out of memory, or a crash in a library: said in a line, and the worker goes on."""
    notebook(tmp_path / "dies.ipynb", "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")
    notebook(tmp_path / "kills.ipynb", "import os, signal", "os.kill(os.getppid(), signal.SIGKILL)")
    notebook(tmp_path / "lives.ipynb", "print('alive', __import__('sys').stdin.read())")
    worker = Worker()

    def order(name: str) -> Order:
        return prepare(str(tmp_path / f"{name}.ipynb"), store, tmp_path / "out", formats=["html"])

    try:
        with pytest.raises(ReportError, match=r"dies\.ipynb: DeadKernelError"):
            worker.make(order("dies"))
        with pytest.raises(ReportError, match=r"the process of the report died \(SIGKILL\)"):
            worker.make(order("kills"))
        assert "alive" in worker.make(order("lives")).html
        worker._process.kill()
        worker._process.wait()
        assert "alive" in worker.make(order("lives")).html
    finally:
        worker.close()


def test_workers_are_fit_to_be_forked() -> None:
    """A process with threads must not be forked: what a worker imports beforehand starts none."""
    import subprocess
    import sys

    code = (
        "from pathlib import Path\nfrom rdmalab import worker\nworker.spare_threads()\nworker.import_before()\n"
        "print(len(list(Path('/proc/self/task').iterdir())))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_a_batch_from_the_shell(store: Store, tmp_path: Path) -> None:
    """A line for each report with where it stands in the file, a summary, exit 1."""
    failing = '[[report]]\nnotebook = "fabric-comparison"\nparameters = { fabrics = ["tcp-100g"] }\nto = ["html"]\n'
    file = tmp_path / "reports.toml"
    file.write_text(BATCH + failing, encoding="utf-8")
    done = run("report", "--batch", str(file), "--db", str(store.path))
    first, second, summary = done.stdout.splitlines()
    assert first.startswith(f"{file}:1: fabric_comparison: RoCEv2 is ")
    assert first.endswith(f" ({tmp_path}/out/fabric_comparison-synthetic)")
    assert second.startswith(f"{file}:6: fabric_comparison: ")
    assert "a comparison needs two fabrics" in second
    assert summary == "2 reports: 1 made, 1 failed"
    assert done.exit_code == 1
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["fabric_comparison-synthetic"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"fabric-comparison"', '"fabric-comparision"', ":1: no report 'fabric-comparision'"),
        ("fabrics =", "fabric =", ":1: fabric_comparison has no parameter 'fabric'"),
        ("{campaign}", "{customer}", ":1: 'out/{notebook}-{customer}' may name {campaign}, {notebook}, {lang}, not"),
        ('"synthetic"', '"../x"', ":1: '{campaign}' is '../x', which is no name of a folder"),
        ('["html"]', '["docx"]', ":1: --to knows"),
        ('["html"]', '"html"', ":5: to wants a list of texts"),
        ("parameters =", "parameter =", ":3: unknown key 'parameter' in [report]. Did you mean 'parameters'?"),
        ("[[report]]", "[[reports]]", ":1: unknown table 'reports'"),
        ("[[report]]", "[report]", ":1: write each report as a table of its own: [[report]]"),
        ('["tcp-100g", "roce-100g"]', '{ a = 1 }', ":1: -p fabrics wants a list"),
        (BATCH, BATCH + BATCH, ":9: the report of line 1 goes to the same folder"),
        (BATCH, "", ":1: no report; write [[report]]"),
    ],
)  # fmt: skip
def test_a_wrong_batch_is_refused_with_its_line(store: Store, tmp_path: Path, old: str, new: str, message: str) -> None:
    """Before the first report is made."""
    assert old in BATCH
    file = tmp_path / "reports.toml"
    file.write_text(BATCH.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_batch(file, store)
    assert str(caught.value).startswith(f"{file}{message}")


def test_a_pattern_stays_in_its_folder() -> None:
    """Words of users are names of folders, never ways out of one."""
    assert fill("a/{x}-{y}", {"x": "1", "y": "2.5"}) == "a/1-2.5"
    for word in ("", "..", ".hidden", "a/b"):
        with pytest.raises(UsageError):
            fill("a/{x}", {"x": word})


# --- report.json, and whether it still holds ------------------------------------------------------------------------


class Case:
    """Two fabrics of a few logs, and the report about them."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.folder = bench, folder
        bench.campaign('[campaign]\nname = "c"\n' + "".join(
            f'[[fabric]]\nname = "{n}"\nfamily = "{n}"\nlogs = ["{n}/**"]\n' for n in ("tcp", "roce")
        ))  # fmt: skip
        for number in range(6):
            for shift, fabric in enumerate(("tcp", "roce")):
                bench.log(f"{fabric}/all_reduce.{number}.log", self.text(number, shift))
        bench.ingest()
        assert self.call("fabric-comparison", "--to", "html", "--out", str(folder)).exit_code == 0

    @staticmethod
    def text(number: int, shift: int, time_us: str = "2000.0") -> str:
        """A log whose 64 MiB take *time_us*."""
        return nccl_log(pid=1000 * number + 100 * shift + 1).replace("2000.0", time_us)

    def call(self, *args: str) -> Result:
        return run("report", *args, "--db", str(self.bench.store.path))

    def verify(self) -> Result:
        """Runs the report of the folder again."""
        return self.call("--verify", str(self.folder / "report.json"))


@pytest.fixture
def case(bench: Bench, tmp_path: Path) -> Case:
    return Case(bench, tmp_path / "out")


def test_report_json_names_what_the_report_rests_on(case: Case) -> None:
    """Every log by its hash, the notebook, the versions; no path leads out of the campaign's folder."""
    import hashlib

    summary = json.loads((case.folder / "report.json").read_text())
    assert [log["path"] for log in summary["data"]["logs"]] == [
        f"{fabric}/all_reduce.{n}.log" for fabric in ("roce", "tcp") for n in range(6)
    ]
    for log in summary["data"]["logs"]:
        assert log["sha256"] == hashlib.sha256((case.bench.logs / log["path"]).read_bytes()).hexdigest()
    assert summary["notebook"]["name"] == "fabric_comparison.ipynb"
    assert set(summary["versions"]) == {"rdmalab", "python", "polars", "duckdb", "plotly", "scipy", "chromium"}
    assert summary["snapshot"] == summary["result"]["snapshot"]
    assert str(case.bench.logs) not in json.dumps(summary)


def test_a_report_that_still_holds(case: Case) -> None:
    """Exit 0, and how much was compared."""
    done = case.verify()
    assert done.exit_code == 0, done.output
    assert "numbers and verdicts compared, 0 changed\nlogs: all as they were\n" in done.stdout


def test_a_number_that_changed_is_named_with_its_place(case: Case) -> None:
    """Table, fabric, size, old and new: the slowest of six runs is slower, and with it one end of the interval."""
    case.bench.log("tcp/all_reduce.0.log", case.text(0, 0, "4000.0").replace("33.55   62.91", "16.78   31.46"))
    case.bench.ingest()
    done = case.verify()
    assert done.exit_code == 1
    assert ", 2 changed\n" in done.stdout
    assert "cells / tcp, 67108864 B / high: 2000.0 is now 4000.0\n" in done.stdout
    assert "cells / roce, 67108864 B / ratio_high: 1.0 is now 2.0\n" in done.stdout
    assert "  changed: tcp/all_reduce.0.log" in done.stdout


def test_logs_that_are_gone_or_changed_on_disk(case: Case) -> None:
    """The numbers are those of the store, and so the same; the evidence is not."""
    (case.bench.logs / "tcp" / "all_reduce.0.log").unlink()
    with (case.bench.logs / "roce" / "all_reduce.1.log").open("a") as log:
        log.write("# one more line\n")
    done = case.verify()
    assert done.exit_code == 1
    assert ", 0 changed\n" in done.stdout
    assert f"gone from disk: {case.bench.logs}/tcp/all_reduce.0.log" in done.stdout
    assert f"changed on disk since it was read: {case.bench.logs}/roce/all_reduce.1.log" in done.stdout


def test_data_that_are_gone(case: Case) -> None:
    """A report that cannot be made again is a change, not a wrong command."""
    assert run("forget", "--campaign", "c", "--db", str(case.bench.store.path)).exit_code == 0
    done = case.verify()
    assert done.exit_code == 1
    assert "the report cannot be made again: " in done.stdout
    assert "gone: tcp/all_reduce.5.log" in done.stdout


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"report": "fabric_comparison"}', "\xff"])
def test_a_file_that_is_no_report_json(case: Case, content: str) -> None:
    """Exit 2, one sentence."""
    (case.folder / "report.json").write_text(content, encoding="latin-1")
    done = case.verify()
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "no report.json that can be verified" in done.stderr
