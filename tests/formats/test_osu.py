"""What the osu format promises, on logs written for it and on any text at all."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdmalab.formats import osu
from rdmalab.model import Parsed, Run, Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "osu"


def content(name: str) -> str:
    return next(LOGS.glob(f"{name}.*")).read_text()


def parsed_text(text: str) -> Parsed:
    return osu.parse(Text.of(text))


@cache
def parsed(name: str) -> Parsed:
    return parsed_text(content(name))


def run(name: str) -> Run:
    (only,) = parsed(name).runs
    return only


def samples(found: Parsed) -> list[Sample]:
    return [sample for run in found.runs for sample in run.samples]


def codes(found: Parsed) -> list[str]:
    return [note.code for note in found.notes]


def test_latency_is_one_way() -> None:
    """osu_latency prints half of the round trip; the transport is not printed."""
    found = run("latency_v5")
    assert (found.program, found.tool_version, found.kind) == ("osu_latency", "5.6.2", "latency")
    assert (found.latency_convention, found.operation, found.fabric, found.memory) == ("one_way", "send", None, "host")
    assert found.samples == (
        Sample(line=4, size_bytes=0, lat_avg_us=1.2),
        Sample(line=5, size_bytes=1, lat_avg_us=1.25),
        Sample(line=6, size_bytes=4194304, lat_avg_us=350.75),
    )
    assert (found.status, codes(parsed("latency_v5"))) == ("complete", [])


def test_bandwidth_is_in_powers_of_ten() -> None:
    """12000 MB/s of 10^6 byte are 96 Gbit/s; Pass means that no value was wrong."""
    found = run("bw_cuda_v7")
    assert found.samples[1] == Sample(line=7, size_bytes=65536, dtype="MPI_CHAR", bw_avg_gbit_s=96.0, wrong=0)
    assert (found.program, found.bidirectional, found.validation, found.unit_printed) == ("osu_bw", False, 1, "MB/s")


def test_the_command_says_where_the_buffers_lie() -> None:
    """A title of CUDA with H D in the command has one buffer on the host."""
    assert run("bw_cuda_v7").memory == "host + cuda"
    assert run("bw_cuda_v7").command == "mpirun -np 2 -H node-a,node-b ./osu_bw -m 4194304 -c -d cuda H D"
    title_only = parsed_text(content("bw_cuda_v7").split("\n", 1)[1])
    assert title_only.runs[0].memory == "cuda"


def test_printed_buffers_say_where_the_memory_is() -> None:
    """HOST and DEVICE below a title of ROCM are host and rocm; both directions are summed."""
    found = run("buffers_v5")
    assert (found.program, found.memory, found.bidirectional) == ("osu_bibw", "host + rocm", True)
    assert found.samples[-1] == Sample(line=6, size_bytes=4194304, bw_avg_gbit_s=384.004)


def test_message_rates_are_sums_over_pairs() -> None:
    """Ten million messages of 8 bytes a second over four pairs."""
    found = run("mbw_mr")
    assert (found.program, found.kind, found.streams) == ("osu_mbw_mr", "bandwidth", 4)
    assert found.samples[0]._replace(dtype=None) == Sample(line=6, size_bytes=8, bw_avg_gbit_s=0.64, msg_rate_mpps=10.0)
    assert codes(parsed("mbw_mr")) == ["sum_of_pairs"]


def test_a_collective_has_the_mean_of_its_ranks() -> None:
    """time_us is the average; bus bandwidth is not printed and stays null."""
    found = run("allreduce_full")
    assert (found.kind, found.operation, found.ranks, found.ranks_evidence) == (
        "collective", "all_reduce", 16, "command line",
    )  # fmt: skip
    assert found.samples == (
        Sample(line=5, size_bytes=4, time_us=12.5, lat_min_us=10.25, lat_max_us=14.75, iterations=1000),
        Sample(line=6, size_bytes=1048576, time_us=900.1, lat_min_us=850.0, lat_max_us=950.2, iterations=100),
    )
    assert codes(parsed("allreduce_full")) == ["extremes_of_ranks"]


def test_percentiles_and_sizes_of_an_allgather() -> None:
    """P50 and P99 columns are read by name; the size of one rank and an early end are said."""
    found = run("allgather_tail")
    assert found.operation == "all_gather"
    assert found.samples[1] == Sample(
        line=6, size_bytes=65536, dtype="MPI_CHAR", time_us=250.0, lat_typical_us=240.0, lat_p99_us=400.0
    )
    assert codes(parsed("allgather_tail")) == ["size_of_one_rank", "short_table"]


def test_a_barrier_has_no_size() -> None:
    """One number without a size."""
    assert run("barrier").samples == (Sample(line=4, time_us=3.31),)
    assert (run("barrier").program, run("barrier").operation) == ("osu_barrier", None)


def test_non_blocking_collectives_are_refused() -> None:
    """Overall, compute and communication times are no latency of a collective."""
    assert (run("iallreduce").samples, run("iallreduce").status) == ((), "no_data")
    assert codes(parsed("iallreduce")) == ["test_unknown"]


def test_one_sided_tests_claim_no_convention() -> None:
    """A put is a write; whether its latency is half of anything is not known."""
    assert (run("put_bw").program, run("put_bw").operation, run("put_bw").latency_convention) == (
        "osu_put_bw", "write", None,
    )  # fmt: skip
    assert run("put_bw").samples[0].bw_avg_gbit_s == 88.0


def test_a_killed_run_is_truncated() -> None:
    """The launcher tells of the end; its words are a note, the rows before them stay."""
    found = run("killed")
    assert (found.status, [s.size_bytes for s in found.samples]) == ("truncated", [1, 2])
    assert codes(parsed("killed")) == ["launcher"]


def test_an_error_of_mpi_is_a_failure() -> None:
    """Rows before the error are kept."""
    assert (run("mpi_error").status, len(run("mpi_error").samples)) == ("failed", 1)
    assert codes(parsed("mpi_error")) == ["osu_failure"]


def test_wrong_data_fails_the_run() -> None:
    """One row with Fail, and no row of the run is to be quoted."""
    assert (run("wrong_data").status, codes(parsed("wrong_data"))) == ("failed", ["validation_failed"])


def test_two_tests_behind_a_launcher_prefix() -> None:
    """Each title begins a run."""
    assert [r.program for r in parsed("srun_two_tests").runs] == ["osu_latency", "osu_bw"]
    assert samples(parsed("srun_two_tests"))[2].bw_avg_gbit_s == 192.0


@pytest.mark.parametrize("missing", [1, 2, 4, 8])
@pytest.mark.parametrize("name", ["latency_v5", "bw_cuda_v7", "allreduce_full"])
def test_a_torn_row_is_refused(name: str, missing: int) -> None:
    """A row that has lost characters becomes a note, whatever its last column is."""
    found = parsed_text(content(name).rstrip("\n")[:-missing])
    assert samples(found) == samples(parsed(name))[:-1]
    assert ("torn_row" in codes(found), found.runs[0].status) == (True, "truncated")


def test_numbers_of_other_programs_are_no_rows() -> None:
    """Sizes only grow within a table, and another tool's header closes it."""
    found = parsed_text(
        content("latency_v5") + "42                     17.00\n# out-of-place\n8388608            12.00\n"
    )
    assert samples(found) == samples(parsed("latency_v5"))


def test_unknown_columns_are_refused() -> None:
    """A header with a word that is not known gives no row."""
    found = parsed_text(content("latency_v5").replace("Latency (us)", "Latency (ms)"))
    assert (samples(found), codes(found)) == ([], ["columns_unknown"])


OTHERS = (
    b"bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec\n"
    b"64k     2k      125m        0.02s   6189.06      10.59       0.09\n"
    b"[  5]   0.00-5.11   sec  43.7 MBytes  71.8 Mbits/sec                  receiver\n"
    b"Final:                 20000      4.798    41.639    48.530        0.18       0.16       24016       20606\n"
    b"#bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
    b"tcp_lat: the latency of TCP in /etc/hosts\nsockperf and OSU were not run\n"
)


def test_other_tools_are_left_alone() -> None:
    """The signature does not fire on lines of other tools, on prose or on nothing."""
    assert not osu.SIGNATURE.search(OTHERS)
    assert parsed_text(OTHERS.decode()) == Parsed()
    assert parsed_text("") == Parsed()


def check(found: Parsed, expected: dict[str, Any]) -> None:
    """The title, the number of rows, and the first and last row of a collected log."""
    (only,) = found.runs
    assert (only.status, len(only.samples)) == ("complete", expected["rows"])
    for sample, row in ((only.samples[0], expected["first"]), (only.samples[-1], expected["last"])):
        value = {"collective": sample.time_us, "latency": sample.lat_avg_us}.get(only.kind)
        printed = sample.bw_avg_gbit_s * 125 if sample.bw_avg_gbit_s is not None else value
        assert sample.size_bytes == int(row[0])
        assert printed == pytest.approx(float(row[1]))
        if len(row) == 5:
            assert (sample.lat_min_us, sample.lat_max_us, sample.iterations) == (
                float(row[2]), float(row[3]), int(row[4]),
            )  # fmt: skip


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: first and last rows are right."""
    if not os.environ.get("RDMALAB_CORPUS"):
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    for name, facts in json.loads((folder / "truth.json").read_text())["files"].items():
        if facts["format"] in ("osu",):
            check(parsed_text((folder / name).read_text()), facts["expect"])
