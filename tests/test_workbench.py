"""The explore notebook: what its widgets show is what the store holds, in Python and in a browser."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import TimeoutError as Late
from playwright.sync_api import sync_playwright

from rdmalab.cli import main
from rdmalab.explore import Exploration
from rdmalab.ingest import ingest
from rdmalab.jupyter import command
from rdmalab.lab import Lab
from rdmalab.orders import read_batch
from rdmalab.pdf import find_browser
from rdmalab.start import Start
from rdmalab.store import Store
from tests._comparisons import campaign, lab_of, latency, nccl, runs_of

ROOT = Path(__file__).parents[1]
MIB = 1 << 20

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of ipywidgets and its like


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """TCP at twice the time of RoCE, seven runs each, and NVLink among eight ranks; a latency of RoCE."""
    logs = runs_of("tcp", 2.0) | runs_of("roce", 1.0) | runs_of("nvlink", 0.1, ranks=8, nodes=1)
    logs |= {f"roce/lat.{i}.log": latency({8: 2.0 + i / 100, 64: 2.5}, qpn=100 + i) for i in range(2)}
    return lab_of(tmp_path, logs, campaign("tcp", "roce", "nvlink"))


def bench_of(lab: Lab, **how: Any) -> Any:
    from rdmalab.workbench import Workbench

    return Workbench(lab.store.path, **how)


def lines(bench: Any) -> dict[str, dict[int, float]]:
    """Name of a series → size → value, of the lines that are drawn."""
    drawn = [t for t in bench._live.data if t.mode == "lines" and t.hoverinfo != "skip"]
    return {t.name: dict(zip(t.x, t.y, strict=True)) for t in drawn}


def shown(text: str) -> str:
    return re.sub(r"<[^>]*>", " ", text)


def test_the_first_view_is_that_of_most_fabrics_and_a_fabric_of_other_ranks_says_so(lab: Lab) -> None:
    """All-reduce of 16 ranks: 249.72 us on TCP at 1 MiB, half of it on RoCE; NVLink has 8 ranks."""
    bench = bench_of(lab)
    assert (bench.operation.value, bench.setting.label) == ("all_reduce", "16 ranks on 2 nodes")
    assert {k: round(v[MIB], 2) for k, v in lines(bench).items()} == {"TCP": 249.72, "ROCE": 124.86}
    assert [box.disabled for box in bench._boxes.values()] == [False, False, True]
    assert "(ranks 8)" in bench.fabrics.children[2].children[1].value


def test_unchecking_a_fabric_takes_its_line_away(lab: Lab) -> None:
    """What is left is the baseline; and back again."""
    bench = bench_of(lab)
    bench._boxes["tcp"].value = False
    assert set(lines(bench)) == {"ROCE"}
    assert bench.baseline.value == "roce"
    bench._boxes["tcp"].value = True
    assert set(lines(bench)) == {"TCP", "ROCE"}


def test_every_tab_of_every_test_is_drawn_or_says_why_not(lab: Lab) -> None:
    """No tab raises; one without a chart has a sentence."""
    bench = bench_of(lab)
    for operation in [value for _, value in bench.operation.options]:
        bench.operation.value = operation
        for tab in bench.tabs.options:
            bench.tabs.value = tab
            hidden = bench.chart.layout.display == "none"
            assert not hidden or bench.no_chart.value or tab == "Runs", (operation, tab)
            assert "Error" not in bench.told.value


def test_the_numbers_are_those_of_the_printed_query(lab: Lab) -> None:
    """In the tab of bus bandwidth, through the command line."""
    bench = bench_of(lab)
    bench.tabs.value = "Bus bandwidth"
    labels = {v: k for k, v in bench.exploration.labels.items()}
    asked = CliRunner().invoke(main, ["query", bench.sql(), "--format", "json", "--db", str(lab.store.path)])
    rows = {(r["fabric"], r["size_bytes"]): r["busbw_gbyte_s"] for r in json.loads(asked.output)}
    assert len(rows) == 6
    assert {(labels[name], x): y for name, line in lines(bench).items() for x, y in line.items()} == pytest.approx(rows)


def test_ratios_are_those_of_a_comparison(lab: Lab) -> None:
    """RoCE is 2 times as fast at every size."""
    bench = bench_of(lab)
    bench.tabs.value = "Ratio"
    marks = [t for t in bench._live.data if t.error_x and t.error_x.array]
    assert [round(t.x[0], 2) for t in marks] == [2.0, 2.0, 2.0]


def test_a_click_shows_the_runs_of_its_size_and_the_lines_of_their_logs(lab: Lab) -> None:
    """The row of 1 KiB of the first TCP run, as it stands in the log."""
    bench = bench_of(lab)
    bench._clicked("TCP", 1024)
    text = shown(bench.told.value)
    assert "TCP at 1\xa0KiB" in text
    log = next(Path(lab.store.path).parent.glob("logs/tcp/*.0.log")).read_text(encoding="utf-8")
    row = next(line for line in log.splitlines() if line.split()[:1] == ["1024"])
    assert row.strip() in text


def test_each_run_the_interval_and_the_limit_come_and_go(lab: Lab) -> None:
    """Marks for 7 runs x 3 sizes x 2 fabrics; no band, no line of a limit without their boxes."""
    bench = bench_of(lab)
    bench.tabs.value = "Bus bandwidth"
    bench.each.value = True
    marks = [t for t in bench._live.data if t.marker.symbol == "circle-open"]
    assert sum(len(t.x) for t in marks) == 42
    assert [t for t in bench._live.data if t.fill == "toself" and t.legendgroup]
    bench.interval.value = False
    assert not [t for t in bench._live.data if t.fill == "toself" and t.legendgroup]
    assert any("limit" in (a.text or "") for a in bench._live.layout.annotations)
    bench.limit.value = False
    assert not any("limit" in (a.text or "") for a in bench._live.layout.annotations)


def test_a_view_becomes_a_batch_that_can_be_ordered(lab: Lab) -> None:
    """The file is read by the library that makes reports; the same view is the same file, another one another."""
    bench = bench_of(lab)
    path = bench.save_report()
    assert path.parent.name == "reports"
    (_, order), = read_batch(path, lab.store)  # fmt: skip
    assert order.values["baseline"] == "tcp"
    assert f"rdmalab report --batch {path}" in shown(bench.told.value)
    assert bench.save_report() == path
    bench.baseline.value = "roce"
    assert bench.save_report() != path


def test_refresh_shows_what_was_ingested_meanwhile(lab: Lab) -> None:
    """Until then the view is that of its snapshot; what was chosen stays chosen."""
    bench = bench_of(lab)
    bench._boxes["roce"].value = False
    folder = lab.store.path.parent / "logs"
    (folder / "tcp" / "late.log").write_text(nccl({8: 40.0, 4 * MIB: 900.0}, pid=99_000), encoding="utf-8")
    ingest([folder], Store(lab.store.path))
    assert max(lines(bench)["TCP"]) == MIB
    bench.refresh()
    assert {k: max(v) for k, v in lines(bench).items()} == {"TCP": 4 * MIB}


def test_the_fleet_comes_in_while_the_workbench_is_in_use(lab: Lab, tmp_path: Path) -> None:
    """An ingest of 205 logs in another process: no choice fails meanwhile, its campaign is there after a refresh."""
    corpus = Path(os.environ.get("RDMALAB_CORPUS", ""), "fleet")
    if not corpus.is_dir() or "RDMALAB_CORPUS" not in os.environ:
        pytest.skip("needs RDMALAB_CORPUS")
    bench = bench_of(lab)
    words = ["ingest", str(corpus), "--campaign", "fleet", "--db", str(lab.store.path)]
    code = f"import sys; sys.path[:] = {sys.path!r}; from rdmalab.cli import main; main({words!r})"
    going = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    choices = 0
    while going.poll() is None:
        bench._boxes["roce"].value = not bench._boxes["roce"].value
        bench.tabs.index = (bench.tabs.index + 1) % 6
        assert bench.exploration.lab.sql("SELECT count(*) AS n FROM logs")["n"][0] == 23
        choices += 1
    assert going.returncode == 0
    assert choices > 1
    bench.refresh()
    assert bench.campaign.options == ("fleet", "test")
    bench.campaign.value = "fleet"
    assert bench._live.data


def test_names_from_logs_are_shown_as_text(tmp_path: Path) -> None:
    """A fabric that is a script tag, in the page and in the chart."""
    toml = campaign("tcp", "roce").replace('"ROCE"', '"<script>evil()</script>"')
    bench = bench_of(lab_of(tmp_path, runs_of("tcp", 2.0) | runs_of("roce", 1.0), toml))
    bench._clicked("<script>evil()</script>", 1024)
    texts = [bench.told.value, bench.title.value, *(row.children[1].value for row in bench.fabrics.children)]
    texts += [a.text or "" for a in bench._live.layout.annotations] + [t.name or "" for t in bench._live.data]
    assert not any("<script>evil" in text for text in texts)


def test_the_workbench_speaks_chinese(lab: Lab) -> None:
    """Controls, titles and reasons."""
    bench = bench_of(lab, lang="zh")
    assert list(bench.tabs.options)[:3] == ["时间", "总线带宽", "利用率"]
    assert "随消息大小的变化" in bench.title.value


def test_the_start_page_lists_campaigns_fabrics_notebooks_and_the_last_ingest(lab: Lab) -> None:
    """23 logs of a new store; links to the notebooks beside it."""
    text = shown(Start(lab.store.path)._repr_html_())
    assert re.search(r"test\s+A test\s+3\s+23\s+23", text)
    assert re.search(r"UTC\s+test\s+23\s+0\s+23\s+23", text)
    assert 'href="explore.ipynb"' in Start(lab.store.path)._repr_html_()
    assert "rdmalab report fabric-comparison" in text


def test_the_start_page_of_no_store_says_how_to_make_one(tmp_path: Path) -> None:
    """No traceback; the notebooks are listed all the same."""
    text = shown(Start(tmp_path / "none.duckdb")._repr_html_())
    assert "make one with &#x27;rdmalab ingest PATH...&#x27;" in text
    assert "explore" in text


# -- in JupyterLab --------------------------------------------------------------------------------------------------


@pytest.fixture
def page(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The explore notebook in a headless browser, its first cell run."""
    browser_path = find_browser()
    if browser_path is None:
        pytest.skip("no browser on this machine")

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "explore.ipynb").write_bytes((ROOT / "notebooks" / "explore.ipynb").read_bytes())
    settings = str(ROOT / "rdmalab" / "jupyter_config")
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = os.environ | {
        "RDMALAB_DB": str(lab.store.path), "JUPYTER_CONFIG_PATH": settings, "PYTHONPATH": python_path,
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }  # fmt: skip
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))  # a long path: kernels are reached otherwise
    env["JUPYTER_DATA_DIR"] = str(tmp_path / "jupyter")
    options = ("--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token=test")
    log = (tmp_path / "lab.log").open("w")
    server = subprocess.Popen(command(folder, options), env=env, stdout=log, stderr=log)
    try:
        with sync_playwright() as playwright:
            flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
                     "--disable-sync", "--no-first-run"]  # fmt: skip
            browser = playwright.chromium.launch(executable_path=browser_path, args=flags)
            opened = browser.new_page(viewport={"width": 1500, "height": 1100})
            _open(opened, f"http://127.0.0.1:{port}/lab/tree/explore.ipynb?token=test&reset", server)
            yield opened
            browser.close()
    finally:
        server.terminate()
        server.wait(20)
        log.close()


def _open(page: Any, address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        assert server.poll() is None, "JupyterLab ended"
        try:
            page.goto(address)
            break
        except Exception:  # not listening yet
            time.sleep(0.25)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=120_000)
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=120_000)
    for _ in range(10):  # an editor that is not there yet takes no key
        page.locator(".jp-Notebook .jp-CodeCell").first.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        with contextlib.suppress(Late):
            page.wait_for_function(STARTED, timeout=3_000)
            break
    page.wait_for_selector(".rdmalab-bench .js-plotly-plot .scatterlayer .trace", timeout=120_000, state="attached")


STARTED = r"() => /[*\d]/.test(document.querySelector('.jp-CodeCell .jp-InputPrompt').innerText)"
DRAWN = """() => Object.fromEntries(document.querySelector(".rdmalab-bench .js-plotly-plot").data
    .filter(t => t.mode === "lines" && t.hoverinfo !== "skip")
    .map(t => [t.name, Array.from(t.x).map((x, i) => [x, t.y[i]])]))"""


def test_the_explore_notebook_in_a_browser(page: Any, lab: Lab) -> None:
    """
    A newcomer's first minutes in JupyterLab: the lines drawn equal ``rdmalab query``; unchecking a fabric takes its
    line away; a click shows the log's lines.
    """
    exploration = Exploration(lab)
    sql = exploration.sql(bench_of(lab).view)
    asked = CliRunner().invoke(main, ["query", sql, "--format", "json", "--db", str(lab.store.path)])
    expected: dict[str, list[list[float]]] = {}
    for row in json.loads(asked.output):
        expected.setdefault(exploration.labels[row["fabric"]], []).append([row["size_bytes"], row["time_us"]])
    drawn = page.evaluate(DRAWN)
    assert {k: sorted(v) for k, v in drawn.items()} == {k: sorted(v) for k, v in expected.items()}
    assert set(drawn) == {"TCP", "ROCE"}

    page.locator(".rdmalab-left input[type=checkbox]").nth(1).click()
    page.wait_for_function(f"() => Object.keys(({DRAWN})()).join() === 'TCP'", timeout=30_000)

    page.wait_for_selector(".rdmalab-bench .scatterlayer .point", timeout=30_000)
    point = page.locator(".rdmalab-bench .scatterlayer .point").first.bounding_box()
    page.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    page.wait_for_selector(".rdmalab-bench .hoverlayer .hovertext", timeout=30_000)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_selector(".rdmalab-told pre", timeout=30_000)
    assert "all_reduce.float.16.0.log:" in page.locator(".rdmalab-told pre").inner_text()
    assert page.locator(".rdmalab-right table.dataTable tbody tr").count() == 7
