"""What the readers of nccl-tests and its relatives promise, on logs written for it and on any text at all."""

import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import hccl_test, nccl_json, nccl_tests, nccom_test
from rdmalab.model import Parsed, Run, Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "nccl"
HEADED = ("all_reduce", "milliseconds", "deviation_2020", "blank_redop", "three_runs", "all_columns")


def text_of(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


ROW = text_of("all_reduce").splitlines()[13]


def parsed(text: str | bytes) -> Parsed:
    return nccl_tests.parse(Text.of(text))


@cache
def log(name: str) -> Parsed:
    return parsed(text_of(name))


def run(name: str) -> Run:
    (only,) = log(name).runs
    return only


def codes(found: Parsed) -> list[str]:
    return [n.code for n in found.notes]


def measured(sample: Sample) -> dict[str, object]:
    return {k: v for k, v in sample._asdict().items() if v is not None}


def samples(found: Parsed) -> list[Sample]:
    return [s for r in found.runs for s in r.samples]


def records(found: Parsed) -> list[tuple[object, ...]]:
    """Everything but the line numbers."""
    return [
        (
            r.operation,
            r.status,
            r.ranks,
            r.nodes,
            r.hosts,
            r.average_busbw_gbyte_s,
            r.out_of_bounds,
            [s._replace(line=None) for s in r.samples],
        )
        for r in found.runs
    ]


# What a run says of itself


def test_head_and_footer_of_a_run() -> None:
    """Program, versions, ranks, machines, parameters and footer come from the lines that print them."""
    r = run("all_reduce")
    assert (r.tool, r.kind, r.status, r.line, r.program) == (
        "nccl-tests",
        "collective",
        "complete",
        1,
        "all_reduce_perf",
    )
    assert (r.operation, r.operation_evidence) == ("all_reduce", "program line")
    assert (r.tool_version, r.library_version) == ("2.18.2", "2.29.7")
    assert (r.ranks, r.ranks_evidence, r.nodes, r.hosts) == (4, "device lines", 2, ("alpha1", "alpha2"))
    assert r.gpu_model == "NVIDIA H100 80GB HBM3"
    assert (r.iterations, r.warmup_iterations, r.aggregated_iterations, r.validation) == (20, 3, 2, 1)
    assert (r.average_busbw_gbyte_s, r.out_of_bounds) == (32.075, 0)
    assert log("all_reduce").notes == ()


def test_row_becomes_two_samples() -> None:
    """A row is a sample out of place and a sample in place, both with the line of the row; -1 is no root."""
    out, into = run("all_reduce").samples[2:4]
    assert measured(out) == {
        "line": 15, "size_bytes": 2097152, "count": 524288, "dtype": "float", "redop": "sum",
        "placement": "out_of_place", "time_us": 100.0, "algbw_gbyte_s": 20.97, "busbw_gbyte_s": 31.46, "wrong": 0,
    }  # fmt: skip
    assert (into.line, into.placement, into.time_us, into.busbw_gbyte_s) == (15, "in_place", 98.0, 32.1)


def test_three_runs_of_one_log() -> None:
    """Runs follow each other; a failure text makes a run failed and keeps its rows, a missing footer truncates."""
    first, second, third = log("three_runs").runs
    assert [r.status for r in (first, second, third)] == ["complete", "failed", "truncated"]
    assert [r.operation for r in (first, second, third)] == ["broadcast", "alltoall", "sendrecv"]
    assert [r.operation_evidence for r in (first, second, third)] == ["command line"] * 3
    assert [len(r.samples) for r in (first, second, third)] == [2, 2, 2]
    assert first.command == "mpirun -np 2 ./build/broadcast_perf -b 1M -e 1M -g 1"
    assert first.gpu_model == "NVIDIA H100 80GB HBM3 + NVIDIA H200"
    assert first.samples[0].root == 0
    assert first.samples[0].redop is None
    assert (third.ranks, third.ranks_evidence, third.nodes) == (2, "command line", 1)
    assert codes(log("three_runs")) == ["torn_row", "failure", "no_footer"]
    assert "3 such lines" in log("three_runs").notes[1].text


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("mpirun -np 4 ./all_reduce_perf -t 2 -g 3", 24),
        ("srun -N2 --ntasks-per-node=4 ./all_reduce_perf -b 8 -g 1", 8),
        ("NCCL_DEBUG=INFO ./all_reduce_perf -b 8 -n 100", 1),
        ("mpirun --hostfile hosts ./all_reduce_perf -b 8", 4),  # from the numbers
    ],
)
def test_ranks_of_a_command(command: str, ranks: int) -> None:
    """Without device lines, ranks are processes x threads x GPUs, and where those are not told the numbers' own."""
    header = "".join(text_of("all_reduce").splitlines(keepends=True)[10:13])
    (only,) = parsed(f"$ {command}\n{header}{ROW}\n# Avg bus bandwidth    : 24.875 \n").runs
    assert only.ranks == ranks


def test_prose_is_no_command() -> None:
    """A sentence that names a program says nothing of the table below it."""
    table = text_of("all_reduce").replace("Collective test", "")
    (only,) = parsed("We compared all_gather_perf with others.\n" + table).runs
    assert (only.operation, only.operation_evidence) == ("all_reduce", "columns")


def test_command_of_another_table() -> None:
    """Columns overrule a command that cannot have printed them, and a command serves the one run below it."""
    table = text_of("all_reduce").replace("Collective test", "")
    first, second = parsed("$ ./all_gather_perf -g 4\n" + table + table).runs
    assert [(r.operation, r.operation_evidence) for r in (first, second)] == [("all_reduce", "columns")] * 2


# Layouts of all ages


def test_milliseconds() -> None:
    """Tables until 2019 print milliseconds and the largest deviation, without a line that says so."""
    r = run("milliseconds")
    assert [s.time_us for s in r.samples] == [32.0, 30.0, 131.0, 128.0]
    assert [s.max_delta for s in r.samples] == [0.0, 0.0, 2e-07, None]
    assert {s.wrong for s in r.samples} == {None}
    assert (r.operation, r.operation_evidence, r.ranks, r.status) == ("all_reduce", "columns", 2, "complete")
    assert (r.average_busbw_gbyte_s, r.out_of_bounds) == (4.115, 0)
    assert log("milliseconds").notes == ()


def test_deviation_layout_without_operator() -> None:
    """Columns are those of the header: this one has a root and no operator."""
    r = run("deviation_2020")
    assert (r.operation, r.samples[0].root, r.samples[0].redop, r.samples[0].max_delta) == ("broadcast", 0, None, 5e-07)


def test_blank_operator() -> None:
    """In 2022 an absent operator was a blank, so that rows have a cell less than their header."""
    r = run("blank_redop")
    assert r.operation == "all_gather"
    assert measured(r.samples[1]) == {
        "line": 12, "size_bytes": 1048576, "count": 65536, "dtype": "float", "placement": "in_place",
        "time_us": 49.0, "algbw_gbyte_s": 21.4, "busbw_gbyte_s": 16.05, "wrong": 0,
    }  # fmt: skip


def test_every_extra_column() -> None:
    """CPU time is never a time, and per-iteration, timestamp and algorithm columns land in their fields."""
    r = run("all_columns")
    out, into = r.samples
    assert (r.tool, r.program, r.operation) == ("rccl-tests", "reduce_scatter_perf_mpi", "reduce_scatter")
    assert (r.tool_version, r.gpu_model, r.out_of_bounds) == ("2.17.9-0a1b2c3", None, 1)
    assert measured(out) == {
        "line": 10, "size_bytes": 1048576, "count": 131072, "dtype": "float", "redop": "max",
        "placement": "out_of_place", "cpu_time_us": 3.5, "algbw_gbyte_s": 16.38, "busbw_gbyte_s": 8.19, "wrong": 2,
        "iter_min_us": 60.0, "iter_max_us": 71.0, "iter_p99_us": 70.5, "iter_cv_pct": 4.1, "algorithm": "ring",
        "protocol": "Simple", "channels": 56, "printed_at": "2026-03-04 05:06:07",
    }  # fmt: skip
    assert (into.cpu_time_us, into.time_us, into.iter_p99_us) == (3.4, None, 68.0)
    assert codes(log("all_columns")) == ["wrong_data"]


def test_one_placement() -> None:
    """A table of one placement is that which the line above its header names."""
    rows = text_of("all_reduce").splitlines()
    head = [rows[10].replace("out-of-place", " " * 12), "# size count type redop root time algbw busbw #wrong"]
    (only,) = parsed("\n".join([*rows[:10], *head, "1048576 262144 float sum -1 64.00 16.38 24.58 0", ""])).runs
    assert [(s.placement, s.busbw_gbyte_s) for s in only.samples] == [("in_place", 24.58)]


def test_nccl_1() -> None:
    """The test programs of NCCL 1.x print milliseconds, devices without ranks, and no footer."""
    r = run("nccl1")
    assert (r.tool, r.operation, r.ranks, r.nodes, r.status) == ("nccl1-test", "all_reduce", 2, 1, "complete")
    assert r.gpu_model == "GeForce GTX TITAN X"
    assert [(s.time_us, s.redop, s.max_delta) for s in r.samples[2:]] == [(160.0, "min", 5e-07), (125.0, "min", 0.0)]


def test_unknown_unit_is_refused() -> None:
    """A table in units that are not known gives no number."""
    found = parsed(text_of("all_reduce").replace("(GB/s)", "(GiB/s)"))
    assert (samples(found), codes(found)) == ([], ["no_rows", "unknown_unit"])


def test_lookalike_is_refused() -> None:
    """A table with in-place first and neither type nor root is not read with the columns of nccl-tests."""
    assert (log("lookalike").runs, codes(log("lookalike"))) == ((), ["lookalike_refused"])


# Cells


def test_values_that_were_not_measured() -> None:
    """N/A, nan and inf are null, a printed 0.00 stays 0, and %g counts and times keep their printed value."""
    text = text_of("all_reduce").replace(ROW, (
        "           0             0     float     sum      -1     0.00    -nan     inf     N/A  1.1e+07    0.00    0.00"
        "  1.67772e+07"
    ))  # fmt: skip
    out, into = samples(parsed(text))[:2]
    assert (out.time_us, out.algbw_gbyte_s, out.busbw_gbyte_s, out.wrong) == (0.0, None, None, None)
    assert (into.time_us, into.algbw_gbyte_s, into.wrong) == (1.1e7, 0.0, 16777200)


@pytest.mark.parametrize(
    ("true", "printed", "code"),
    [
        ("24.58", "XX.XX", "not_understood"),  # a template
        ("24.58       0 ", "24.58    0.00 ", "torn_row"),  # a neighbour's cell where a count must stand
        (" -1 ", "-17 ", "not_understood"),  # no root, with a digit of somebody else
    ],
)
def test_cell_that_cannot_be(true: str, printed: str, code: str) -> None:
    """A row with a cell that the tool never prints is left out whole, with a note."""
    found = parsed(text_of("all_reduce").replace(ROW, ROW.replace(true, printed, 1)))
    assert (len(samples(found)), codes(found)[0]) == (4, code)


def test_elided_rows_and_comment_marks() -> None:
    """Rows behind a comment mark are read, and an ellipsis is reported."""
    found = parsed(text_of("all_reduce").replace(ROW, f"...\n#{ROW}"))
    assert (records(found), codes(found)) == (records(log("all_reduce")), ["rows_elided"])


def test_cycles() -> None:
    """Sizes that come again under one header are numbered; without repeats there is no cycle."""
    found = samples(parsed(text_of("all_reduce").replace(ROW, f"{ROW}\n{ROW}")))
    assert [s.cycle for s in found] == [1, 1, 2, 2, 1, 1, 1, 1]
    assert {s.cycle for s in run("all_reduce").samples} == {None}


# Operation and ranks from the numbers


def test_undecidable_operation() -> None:
    """Without checks, two ranks and no name, all_reduce and sendrecv look the same: both are candidates."""
    row = "1048576 262144 float sum -1 64.00 16.38 16.38 N/A 62.50 16.78 16.78 N/A\n"
    (only,) = parsed(row + "# Avg bus bandwidth    : 16.58 \n").runs
    assert (only.operation, only.operation_candidates, only.ranks) == (None, ("all_reduce", "sendrecv"), None)


@pytest.mark.parametrize(
    ("row", "operation", "ranks"),
    [
        ("float sum -1 64.00 16.38 16.38 0 62.50 16.78 16.78 N/A", "sendrecv", None),
        ("float sum -1 64.00 16.38 24.58 0 62.50 16.78 25.17 0", "all_reduce", 4),
        ("float max 2 64.00 16.38 16.38 0 62.50 16.78 16.78 0", "reduce", None),
        ("double sum -1 64.00 16.38 8.19 0 62.50 16.78 8.39 0", "reduce_scatter", 2),
        ("double none -1 64.00 16.38 8.19 0 62.50 16.78 8.39 0", "all_gather", 2),
        ("double none -1 64.00 16.38 8.19 0 62.50 16.78 8.39 N/A", "alltoall", 2),
        ("double none -1 128.00 4.10 4.10 0 125.00 4.19 4.19 0", "hypercube", 2),
    ],
)
def test_operation_from_columns(row: str, operation: str, ranks: int | None) -> None:
    """Operator, root, size, ratio and checks decide the collective where nothing names it."""
    count = {"float": 262144, "double": 65536}[row.split()[0]]
    (only,) = parsed(f"1048576 {count} {row}\n# Avg bus bandwidth    : 1 \n").runs
    assert (only.operation, only.operation_evidence, only.ranks) == (operation, "columns", ranks)


def test_split_communicators() -> None:
    """With NCCL_TESTS_SPLIT the ratio is that of one communicator, ranks are those of all processes."""
    text = text_of("all_reduce")
    for rank in range(4, 8):
        line = (
            text.splitlines()[5 + rank % 4]
            .replace(f"Rank  {rank % 4}", f"Rank  {rank}")
            .replace("Group  0", "Group  1")
        )
        text = text.replace("#\n#     ", f"{line.replace('alpha', 'omega')}\n#\n#     ", 1)
    found = parsed(text)
    (only,) = found.runs
    assert (only.ranks, only.communicator_ranks, only.nodes, codes(found)) == (8, 4, 4, [])


# Sanity


def test_numbers_that_contradict_each_other() -> None:
    """A wrong time, a ratio of other ranks and an average of other rows are each noted once, values untouched."""
    text = text_of("all_reduce").replace("100.00", "200.00").replace("24.58", "30.72").replace("32.075", "55.5")
    found = parsed(text)
    assert [(n.line, n.code) for n in found.notes] == [
        (14, "average_mismatch"), (14, "implied_ranks"), (15, "size_time_mismatch"),
    ]  # fmt: skip
    assert (samples(found)[2].time_us, samples(found)[0].busbw_gbyte_s) == (200.0, 30.72)


def test_shortened_device_list() -> None:
    """The highest rank counts where lines were cut out; machines are then not known."""
    lines = text_of("all_reduce").splitlines(keepends=True)
    (only,) = parsed("".join(lines[:5] + lines[8:])).runs
    assert (only.ranks, only.nodes) == (4, None)


# Damage


def test_torn_rows() -> None:
    """Pieces of a row that other processes tore apart are joined where they fit exactly, else noted."""
    found = log("torn")
    (r,) = found.runs
    assert [(s.line, s.size_bytes, s.time_us, s.busbw_gbyte_s) for s in r.samples] == [
        (9, 1048576, 64.0, 16.38), (9, 1048576, 62.5, 16.78), (12, 2097152, 100.0, 20.97), (12, 2097152, 98.0, 21.4),
    ]  # fmt: skip
    assert [(n.line, n.code) for n in found.notes] == [
        (9, "average_mismatch"), (14, "torn_row"), (15, "not_understood"), (16, "torn_row"),
    ]  # fmt: skip


def test_every_process_prints() -> None:
    """A program without MPI prints one table a process: runs of one rank each, never one run of two."""
    found = log("every_process")
    assert [(r.ranks, r.nodes, r.status, len(r.samples)) for r in found.runs] == [(1, 1, "complete", 4)] * 2
    assert codes(found).count("interleaved") == 2
    assert sorted(s.line or 0 for s in samples(found)) == [13, 13, 14, 14, 15, 15, 16, 16]


def test_failure_outside_a_run() -> None:
    """Failure text of an earlier attempt is a run of its own."""
    found = parsed("alpha1: Test NCCL failure common.cu:9 'unhandled CUDA error'\n\n" + text_of("all_reduce"))
    assert [(r.status, r.operation, r.ranks) for r in found.runs] == [
        ("failed", None, None),
        ("complete", "all_reduce", 4),
    ]


def test_launcher_text_is_no_failure() -> None:
    """What srun says of a task does not make the benchmark failed."""
    found = parsed(text_of("all_reduce") + "srun: error: alpha2: task 3: Exited with exit code 1\n")
    assert (found.runs[0].status, codes(found)) == ("complete", ["launcher_message"])


def test_head_without_rows() -> None:
    """A log that ends behind the head holds no data."""
    found = parsed("".join(text_of("all_reduce").splitlines(keepends=True)[:13]))
    assert [(r.status, r.ranks, r.samples) for r in found.runs] == [("no_data", 4, ())]


@pytest.mark.parametrize("name", HEADED)
def test_cut_at_every_byte(name: str) -> None:
    """However a log ends, the rows read are the first of the true rows, and a row that began is noted."""
    whole = text_of(name)
    true = [s._replace(cycle=None) for s in samples(log(name))]
    averages = {r.average_busbw_gbyte_s for r in log(name).runs} | {None}
    for end in range(len(whole)):
        found = parsed(whole[:end])
        read = samples(found)
        assert read == true[: len(read)], end
        assert {r.average_busbw_gbyte_s for r in found.runs} <= averages, end
        last = whole.count("\n", 0, end) + 1
        begun = whole[:end].rsplit("\n", 1)[-1].strip()[:1].isdigit()
        if begun and last in {s.line for s in true} and found.runs:
            assert last in {s.line for s in read} | {n.line for n in found.notes}, end


DRESSES = {
    "crlf": lambda n, line: line + "\r",
    "colour": lambda n, line: f"\x1b[1;32m{line}\x1b[0m" if n % 3 else line,
    "srun": lambda n, line: f" 0: {line}",
    "openmpi": lambda n, line: f"[1,0]<stdout>:{line}",
    "bracket": lambda n, line: f"[0] {line}",
    "pod": lambda n, line: f"[pod/launcher-x7k2p/main] 2026-01-02 03:04:{n % 60:02d},120 | {line}",
    "stamp": lambda n, line: f"2026-01-02T03:04:{n % 60:02d}.000001Z {line}",
    "container": lambda n, line: f"2026-01-02T03:04:{n % 60:02d}.000001Z stdout F {line}",
    "quote": lambda n, line: f"> {line}",
    "indent": lambda n, line: f"    {line}",
    "other ranks": lambda n, line: f"[1,0]<stdout>:{line}\n[1,1]<stderr>:alpha2:1:1 [1] NCCL INFO Channel {n}",
}


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("name", ["all_reduce", "milliseconds", "blank_redop", "all_columns"])
def test_dressed_by_launchers(name: str, dress: str) -> None:
    """Launcher marks, stamps, colours and line ends of other systems change nothing that is read."""
    lines = enumerate(text_of(name).splitlines())
    found = parsed("\n".join(DRESSES[dress](n, line) for n, line in lines) + "\n")
    assert records(found) == records(log(name))


def test_library_chatter_anywhere() -> None:
    """NCCL INFO lines between the rows change nothing but line numbers."""
    chatter = "alpha1:5001:5100 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/1/GDRDMA\n"
    found = parsed("".join(chatter + line for line in text_of("all_reduce").splitlines(keepends=True)))
    assert (records(found), found.notes) == (records(log("all_reduce")), ())


@pytest.mark.parametrize("text", ["", "\n", "2026 was good 12 13 14 15 16 17 18 19 20\n  1024  256  float  sum  -1\n"])
def test_nothing_is_invented(text: str) -> None:
    """A text without a table gives no run and no note."""
    assert parsed(text) == Parsed()


PIECES = [*text_of("all_reduce").splitlines(), *text_of("torn").splitlines(), *text_of("every_process").splitlines()]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=30))
def test_any_text_at_all(lines: list[str]) -> None:
    """No text raises, and every row read stands in a line of the log with the numbers of that line."""
    text = "\n".join(lines)
    for form in (nccl_tests, nccl_json, hccl_test, nccom_test):
        found = form.parse(Text.of(text))
        for sample in samples(found):
            assert sample.line is None or str(sample.size_bytes) in text.split("\n")[sample.line - 1]


# JSON documents


def document() -> str:
    return (LOGS / "document.json").read_text()


def test_json_document() -> None:
    """A document gives the run and its rows; inf, nan and null are null, slashes and padded roots are read."""
    (r,) = nccl_json.parse(Text.of(document())).runs
    assert (r.tool, r.status, r.program, r.operation, r.operation_evidence) == (
        "nccl-tests", "complete", "sendrecv_perf", "sendrecv", "args",
    )  # fmt: skip
    assert (r.ranks, r.nodes, r.hosts, r.gpu_model) == (4, 2, ("alpha1", "alpha2"), "NVIDIA H100 80GB HBM3")
    assert (r.average_busbw_gbyte_s, r.out_of_bounds, r.library_version) == (19.58501, 0, "2.29.7")
    assert measured(r.samples[0]) == {
        "size_bytes": 1048576, "count": 262144, "dtype": "float", "redop": "sum", "placement": "out_of_place",
        "time_us": 64.0, "algbw_gbyte_s": 16.384, "busbw_gbyte_s": 16.384, "wrong": 0, "iter_min_us": 50.0,
        "iter_max_us": 61.0, "iter_p99_us": 60.5, "iter_cv_pct": 3.8,
    }  # fmt: skip
    assert (r.samples[1].time_us, r.samples[1].algbw_gbyte_s, r.samples[1].busbw_gbyte_s) == (62.5, None, None)
    assert r.samples[1].wrong is None


def test_json_environment_is_never_kept() -> None:
    """The environment with its secrets stands in no record, wherever the document ends."""
    for end in range(len(document())):
        assert "do-not-keep-me" not in repr(nccl_json.parse(Text.of(document()[:end])))


def test_json_cut_at_every_byte() -> None:
    """Of a document that is not closed, the results that are whole are read and the cut is noted."""
    true = nccl_json.parse(Text.of(document())).runs[0].samples
    for end in range(60, document().rindex("}")):
        found = nccl_json.parse(Text.of(document()[:end]))
        read = samples(found)
        assert read == list(true[: len(read)]), end
        assert {"cut_row", "cut_document"} & set(codes(found)), end
        assert {r.average_busbw_gbyte_s for r in found.runs} <= {19.58501, None}, end


def test_json_of_rccl() -> None:
    """Event times of HIP show that RCCL wrote the document."""
    (r,) = nccl_json.parse(Text.of(document().replace('"time":64', '"hip_event_time":1.0,"time":64'))).runs
    assert (r.tool, r.samples[0].time_us) == ("rccl-tests", 64.0)


# Relatives


def test_hccl() -> None:
    """HCCL test: collective and ranks from the command, the last size makes it complete, busbw is not computed."""
    found = hccl_test.parse(Text.of(text_of("hccl")))
    (r,) = found.runs
    assert (r.tool, r.status, r.operation, r.ranks) == ("hccl-test", "complete", "all_reduce", 8)
    assert [(s.size_bytes, s.time_us, s.algbw_gbyte_s, s.wrong) for s in r.samples] == [
        (8192, 20.0, 0.4096, 0), (16384, 32.0, 0.512, None), (32768, 40.0, 0.8192, None),
    ]  # fmt: skip
    assert {(s.placement, s.busbw_gbyte_s) for s in r.samples} == {("out_of_place", None)}
    assert (r.out_of_bounds, codes(found)) == (1, ["wrong_data"])


def test_hccl_failure_and_cut() -> None:
    """A failure text fails the run, a table that ends early is truncated, half a row is noted."""
    lines = text_of("hccl").splitlines(keepends=True)
    failed = hccl_test.parse(Text.of(lines[1] + "hccl interface return err a.cc:5, retcode: 7\n" * 2))
    assert ([r.status for r in failed.runs], codes(failed)) == (["failed"], ["failure"])
    cut = hccl_test.parse(Text.of("".join(lines[:4]) + "16384         | 32.0"))
    assert ([(r.status, len(r.samples)) for r in cut.runs], codes(cut)) == (
        [("truncated", 1)],
        ["no_footer", "torn_row"],
    )


def test_hccl_binary_gigabyte() -> None:
    """Where size / time shows that GB means 2**30 bytes, the printed value is kept and the reader told."""
    table = "data_size(Bytes): | avg_time(us): | alg_bandwidth(GB/s): | check_result:\n"
    table += "1048576 | 100.00 | 9.76562 | success\n"
    found = hccl_test.parse(Text.of(table))
    assert (samples(found)[0].algbw_gbyte_s, codes(found)) == (9.76562, ["no_footer", "binary_gigabyte"])


def test_nccom() -> None:
    """nccom-test: columns by name, percentiles and average with their units."""
    found = nccom_test.parse(Text.of(text_of("nccom")))
    (r,) = found.runs
    assert (r.tool, r.status, r.operation, r.ranks) == ("nccom-test", "complete", "all_gather", 8)
    assert (r.average_busbw_gbyte_s, found.notes) == (14.685, ())
    assert measured(r.samples[1]) == {
        "line": 4, "size_bytes": 1048576, "count": 262144, "dtype": "fp32", "placement": "out_of_place",
        "time_us": 32.0, "algbw_gbyte_s": 32.77, "busbw_gbyte_s": 28.67, "iter_p99_us": 35.0,
    }  # fmt: skip


def test_nccom_binary_gigabyte() -> None:
    """Where size / time shows that GB means 2**30 bytes, bandwidths are converted; where it shows nothing, left out."""
    old = text_of("nccom").replace("0.80           0.70", "0.75           0.65").replace("32.77", "30.52")
    found = nccom_test.parse(Text.of(old))
    assert codes(found)[0] == "binary_gigabyte"
    assert samples(found)[1].algbw_gbyte_s == pytest.approx(32.771, abs=1e-3)
    odd = nccom_test.parse(Text.of(text_of("nccom").replace("32.77", "12.34")))
    assert codes(odd)[0] == "size_time_mismatch"
    assert {s.algbw_gbyte_s for s in samples(odd)} == {None}


def test_nccom_cut_at_every_byte() -> None:
    """However the table ends, no number is read shorter than it was printed."""
    whole = text_of("nccom")
    true = samples(nccom_test.parse(Text.of(whole)))
    for end in range(len(whole)):
        read = samples(nccom_test.parse(Text.of(whole[:end])))
        assert read == true[: len(read)], end


# Real logs


@pytest.mark.skipif(not os.environ.get("RDMALAB_CORPUS"), reason="RDMALAB_CORPUS names no folder of real logs")
def test_corpus_is_read_without_contradiction() -> None:
    """Real logs: no sample contradicts its own size and time, and each torn row is noted."""
    for path in sorted((Path(os.environ["RDMALAB_CORPUS"]) / "nccl").glob("*.[tl]*")):
        found = nccl_tests.parse(Text.of(path.read_bytes()))
        assert not {"size_time_mismatch", "implied_ranks", "average_mismatch"} & set(codes(found)), path
        if any(r.status == "truncated" and not r.samples for r in found.runs):
            assert "torn_row" in codes(found), path


def test_a_size_beyond_64_bits_costs_its_row_alone() -> None:
    """The row becomes a note with its line; the rows around it are read."""
    good = " 1048576 262144 float sum -1 61.13 17.15 25.73 0 60.02 17.47 26.21 0"
    bad = good.replace(" 1048576 ", "99999999999999999999999 ")
    header = (
        "# nThread 1 nGpus 4 minBytes 1 maxBytes 2 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
        "validation: 1 graph: 0\n"
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n"
    )
    parsed = nccl_tests.parse(Text.of(header + "\n".join([good, bad, good]) + "\n"))
    assert [s.size_bytes for s in parsed.runs[0].samples] == [1048576] * 4
    assert [n.line for n in parsed.notes if n.code == "torn_row"] == [5]


def test_a_footer_between_the_pieces_of_a_row_ends_the_run() -> None:
    """The rest of the row then begins another run; found by fuzzing."""
    text = (
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 1 iters: 20 validation: 1\n"
        "     1048576        262144     float     sum      -1 node01:1:1 [0] NCCL INFO x\n"
        "# Avg bus bandwidth    : 8.29 \n"
        "    61.13   17.15   32.16      0    60.94   17.21   32.26      0\n"
    )
    found = nccl_tests.parse(Text.of(text))
    assert not any(run.samples for run in found.runs)
    assert "torn_row" in [note.code for note in found.notes]


@pytest.mark.parametrize("damaged", [".15", "61.", "61.e1", "6_1.13", "-.15"])
def test_a_number_that_no_version_prints_is_damage(damaged: str) -> None:
    """Python would read it; the row is left out with a note, and the row below it stays."""
    rows = "1048576 262144 float sum -1 61.13 17.15 32.16 0 60.94 17.21 32.26 0\n"
    rows += "2097152 524288 float sum -1 80.00 26.21 49.15 0 80.00 26.21 49.15 0\n"
    head = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    found = nccl_tests.parse(Text.of(head + rows.replace("61.13", damaged) + "# Avg bus bandwidth    : 40.0 \n"))
    assert {s.size_bytes for run in found.runs for s in run.samples} == {2097152}
    assert {note.code for note in found.notes} & {"torn_row", "not_understood"}
