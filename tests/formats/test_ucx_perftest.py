"""What the ucx_perftest format promises, on logs of real runs, on logs written for it and on any text at all."""

import json
import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import ucx_perftest
from rdmalab.model import Parsed, Run, Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "ucx_perftest"
ALL = sorted(path.name for path in LOGS.iterdir())
MIB = 0.008388608  # 2^20 byte/s in Gbit/s


def content(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


def parsed_text(text: str) -> Parsed:
    return ucx_perftest.parse(Text.of(text))


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


def test_bandwidth_is_the_overall_column() -> None:
    """8.26 MB/s of 2^20 byte over the run, not the 5.67 since the last progress row; 132 messages/s; no size."""
    (sample,) = samples(parsed("tag_bw_client"))
    assert sample.bw_avg_gbit_s == pytest.approx(8.26 * MIB)
    assert sample._replace(bw_avg_gbit_s=None) == Sample(line=12, iterations=1000, msg_rate_mpps=132 / 1e6)
    assert (run("tag_bw_client").kind, run("tag_bw_client").side) == ("bandwidth", "client")


def test_latency_is_the_median_and_the_overall_mean() -> None:
    """The 50 %ile is the typical latency, overall its mean."""
    assert samples(parsed("tag_lat_client")) == [
        Sample(line=14, iterations=2000, lat_typical_us=340.5, lat_avg_us=2207.265)
    ]


def test_what_the_client_does_not_print_is_null() -> None:
    """A client names neither test nor size nor transport: size, operation, convention and fabric stay null."""
    found = run("tag_lat_client")
    assert (found.operation, found.latency_convention, found.fabric) == (None, None, None)
    assert codes(parsed("tag_lat_client")) == ["size_unknown", "convention_unknown"]


def test_the_server_names_the_test_and_the_size() -> None:
    """The server's box has no numbers; it is kept as a run without samples."""
    found = run("tag_bw_server")
    assert (found.side, found.operation, found.kind, found.memory) == ("server", "send", "bandwidth", "host")
    assert (found.status, found.samples) == ("no_data", ())
    assert "Message size: 65536" in parsed("tag_bw_server").notes[0].text


def test_both_ends_in_one_text_complete_each_other() -> None:
    """A box followed by its table gives the size and the operation of the row."""
    found = parsed_text(content("tag_bw_server") + content("tag_bw_client"))
    assert [(r.operation, r.side, r.samples[0].size_bytes) for r in found.runs] == [("send", None, 65536)]


def test_a_command_line_names_test_size_and_transport() -> None:
    """UCX_TLS=tcp,self can only be TCP between hosts; get waits for its answer and so prints a round trip."""
    found = run("get_final_only")
    assert (found.operation, found.operation_evidence) == ("read", "-t ucp_get")
    assert (found.fabric, found.fabric_evidence) == ("tcp", "UCX_TLS=tcp,self")
    assert found.latency_convention == "round_trip"
    assert found.samples == (Sample(line=7, size_bytes=4096, iterations=10000, lat_typical_us=25.0, lat_avg_us=25.6),)


def test_rc_shows_no_fabric() -> None:
    """UCX_TLS=rc_x is InfiniBand or RoCE: null."""
    assert run("p99").fabric is None


def test_another_percentile_is_not_the_typical_latency() -> None:
    """With -R 99 the percentile column is the 99th; the median was not measured."""
    (sample,) = run("p99").samples
    assert (sample.lat_p99_us, sample.lat_typical_us, sample.lat_avg_us) == (3.5, None, 1.75)
    assert run("p99").latency_convention == "one_way"


def test_csv_is_read_when_the_test_is_known() -> None:
    """CSV has latency columns for every test; the command says that they are latencies."""
    (sample,) = run("tag_lat_csv").samples
    assert sample == Sample(line=4, size_bytes=64, iterations=20000, lat_typical_us=1.92, lat_avg_us=2.05)


def test_csv_of_an_unknown_test_is_refused() -> None:
    """Without the command nothing says whether the columns are latencies or overheads."""
    found = parsed_text("".join(content("tag_lat_csv").splitlines(keepends=True)[1:]))
    assert samples(found) == []
    assert codes(found) == ["test_unknown"]


def test_several_threads_print_four_columns() -> None:
    """The final row of -T has only overall values: 12500 MB/s and 200000 messages/s."""
    (sample,) = run("threads").samples
    assert sample.bw_avg_gbit_s == pytest.approx(104.8576)
    assert (sample.line, sample.msg_rate_mpps) == (9, 0.2)


def test_an_abort_is_a_failure() -> None:
    """A fatal error before the final row fails the run on both ends."""
    for name in ("put_bw_aborted", "put_bw_aborted_server"):
        assert (run(name).status, run(name).samples) == ("failed", ())
        assert "ucx_failure" in codes(parsed(name))


def test_a_failure_at_the_tear_down_is_a_note() -> None:
    """What goes wrong after the final row does not take the result back."""
    found = parsed_text(content("tag_bw_client") + "[1.2] [node-b:1:0] sock.c:344 UCX  ERROR recv(fd=16) failed\n")
    assert found.runs[0].status == "complete"
    assert "ucx_failure" in codes(found)


def test_progress_is_no_result() -> None:
    """A table cut before its final row is truncated, however many progress rows it has."""
    found = parsed_text("".join(content("tag_bw_client").splitlines(keepends=True)[:-1]))
    assert (found.runs[0].status, found.runs[0].samples) == ("truncated", ())
    assert codes(found) == ["no_final_row"]


def test_rows_without_a_mark_under_stage_are_progress() -> None:
    """A build without threads marks no row: none of them is known to be the result."""
    text = content("tag_bw_client").replace("[thread 0]", " " * 10).replace("Final:    ", " " * 10)
    assert samples(parsed_text(text)) == []


@pytest.mark.parametrize("missing", [1, 2, 12, 40])
def test_a_torn_result_row_is_refused(missing: int) -> None:
    """A row that is shorter than its table says so by its width."""
    found = parsed_text(content("tag_lat_client").rstrip("\n")[:-missing] + "\n")
    assert samples(found) == []
    assert "torn_row" in codes(found)


def test_a_torn_csv_row_is_refused() -> None:
    """48780 messages/s do not fit 2.05 us a message: the last digit is missing."""
    found = parsed_text(content("tag_lat_csv").replace("487805", "48780"))
    assert samples(found) == []
    assert "torn_row" in codes(found)


def test_a_batch_file_is_refused() -> None:
    """The rows of -b carry free names; none is read as a test of a known kind."""
    lines = content("tag_bw_client").splitlines(keepends=True)
    name_row = "+put_8-bytes---+---------+---------+---------+----------+----------+-----------+-----------+\n"
    found = parsed_text("".join([*lines[:5], name_row, lines[-1]]))
    assert samples(found) == []
    assert "batch_mode" in codes(found)


@pytest.mark.parametrize("prefix", ["0: ", "[1,0]<stdout>:"])
def test_a_launcher_prefix_changes_nothing(prefix: str) -> None:
    """Tables behind launcher prefixes are read like bare ones."""
    text = "".join(prefix + line for line in content("tag_lat_client").splitlines(keepends=True))
    assert samples(parsed_text(text)) == samples(parsed("tag_lat_client"))


@pytest.mark.parametrize("name", [name.removesuffix(".log") for name in ALL])
def test_cutting_a_log_invents_nothing(name: str) -> None:
    """Cut behind any line, a log gives some of its own samples, and no others."""
    lines = content(name).splitlines(keepends=True)
    for end in range(len(lines)):
        part = samples(parsed_text("".join(lines[:end])))
        assert part == samples(parsed(name))[: len(part)]


@pytest.mark.parametrize("name", [name.removesuffix(".log") for name in ALL])
def test_the_signature_finds_every_log(name: str) -> None:
    """Every log here is recognised."""
    assert ucx_perftest.SIGNATURE.search(content(name).encode())


PIECES = st.sampled_from([line for name in ALL for line in (LOGS / name).read_text().splitlines()])


@given(st.lists(PIECES | st.text(max_size=40), max_size=25))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(lines: list[str]) -> None:
    """No order of lines raises, and every sample names a line that ends in its rate."""
    text = "\n".join(lines)
    found = parsed_text(text)
    for sample in samples(found):
        assert sample.line is not None
        assert text.split("\n")[sample.line - 1].rstrip()[-1].isdigit()


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: overall values and medians are right."""
    if not os.environ.get("RDMALAB_CORPUS"):
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    for name, facts in json.loads((folder / "truth.json").read_text())["files"].items():
        expected = facts["expect"]
        if facts["format"] == "ucx_perftest" and "overall_us" in expected:
            (sample,) = samples(parsed_text((folder / name).read_text()))
            assert sample.iterations == expected["iterations"]
            if sample.lat_avg_us is not None:
                assert (sample.lat_avg_us, sample.lat_typical_us) == (expected["overall_us"], expected["p50_us"])
            else:
                assert sample.bw_avg_gbit_s == pytest.approx(expected["bw_overall_mib_s"] * MIB)
