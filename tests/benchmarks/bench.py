"""What an ingest and a report cost; printed, never asserted. ``make bench``.

Seconds are noisy, so every figure stands beside what it is compared with, measured in the same run on one core:
CPU seconds of reading logs into a store beside read + sha256 of the same files.
"""

import hashlib
import importlib.util
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import ModuleType

from rdmalab.ingest import ingest
from rdmalab.report import make_report
from rdmalab.store import Store

ROOT = Path(__file__).parents[2]
COUNT = int(os.environ.get("RDMALAB_BENCH_LOGS", "2000"))


def generator() -> ModuleType:
    """The generator of the example logs, loaded from its file."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "data" / "examples" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module
    spec.loader.exec_module(module)
    return module


def logs(kind: str, count: int) -> Iterator[str]:
    """Clean logs of one test each, all different."""
    generate = generator()
    for number in range(count):
        rng = Random(f"bench/{kind}/{number}")
        if kind == "nccl":
            lines = generate.nccl_log(generate.NDR, "all_reduce", rng).partition("# nccl-tests")[2].splitlines(True)
            yield "# nccl-tests" + "".join(line for line in lines if " NCCL INFO " not in line)
        else:
            yield generate.perftest_logs(generate.NDR, "ib_write_bw", number, rng)[0]


def cpu_seconds(work: Callable[[], object]) -> float:
    """User and system seconds of this process and its children."""
    before = sum(
        resource.getrusage(w).ru_utime + resource.getrusage(w).ru_stime
        for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    work()
    after = sum(
        resource.getrusage(w).ru_utime + resource.getrusage(w).ru_stime
        for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return after - before


def hash_all(files: list[Path]) -> None:
    """The least that any reader does: read each file and hash it."""
    for file in files:
        hashlib.sha256(file.read_bytes()).hexdigest()


def bench_ingest(kind: str, folder: Path) -> None:
    """CPU seconds of COUNT logs into a store, fixed cost and marginal cost a log."""
    (folder / kind).mkdir()
    files = []
    for number, text in enumerate(logs(kind, COUNT)):
        files.append(folder / kind / f"{number:05d}.log")
        files[-1].write_text(text, encoding="utf-8")
    size = sum(f.stat().st_size for f in files)
    hash_all(files)
    ingest(files[:5], Store(folder / f"{kind}-first.duckdb"))  # imports are no cost of a log
    floor = min(cpu_seconds(lambda: hash_all(files)) for _ in range(3))
    tenth = cpu_seconds(lambda: ingest(files[: COUNT // 10], Store(folder / f"{kind}-tenth.duckdb")))
    whole = cpu_seconds(lambda: ingest(files, Store(folder / f"{kind}.duckdb")))
    again = cpu_seconds(lambda: ingest(files, Store(folder / f"{kind}.duckdb")))
    marginal = (whole - tenth) / (COUNT - COUNT // 10)
    print(
        f"{kind}: {COUNT} logs, {size / 1e6:.1f} MB: into the store {whole:.2f} cpu-s ({1e6 * marginal:.0f} us a log), "
        f"read + sha256 {floor:.3f} cpu-s ({1e6 * floor / COUNT:.0f} us a log): "
        f"ratio {marginal / (floor / COUNT):.1f}; "
        f"again, all known: {again:.2f} cpu-s"
    )


def bench_report(folder: Path) -> None:
    """Wall seconds of a report on the example data, cold and warm, HTML alone and with the PDF."""
    store = Store(folder / "example.duckdb")
    ingest([ROOT / "data" / "examples" / "synthetic"], store)
    for name, formats in (("cold, html", ["html"]), ("warm, html", ["html"]), ("warm, html and pdf", ["html", "pdf"])):
        start = time.perf_counter()
        done = make_report("fabric-comparison", store, folder / "out", formats=formats)
        note = " (no Chromium: no PDF)" if done.missing else ""
        print(f"report {name}: {time.perf_counter() - start:.1f} s{note}")


def main() -> None:
    """Prints all figures."""
    with tempfile.TemporaryDirectory(prefix="rdmalab-bench-") as name:
        bench_ingest("nccl", Path(name))
        bench_ingest("perftest", Path(name))
        bench_report(Path(name))


if __name__ == "__main__":
    main()
