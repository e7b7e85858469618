"""What the perftest formats promise, on logs written for it and on any text at all."""

import json
import math
import os
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import read
from rdmalab.model import Log, Run, Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "perftest"
MIB = 0.008388608  # 2^20 byte/s in Gb/s


def text_of(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


def log_of(text: str) -> Log:
    return read(Text.of(text))


@cache
def log(name: str) -> Log:
    return log_of(text_of(name))


def run(name: str) -> Run:
    (only,) = log(name).runs
    return only


def codes(found: Log) -> list[str]:
    return [n.code for n in found.notes]


def measured(sample: Sample) -> dict[str, object]:
    return {k: v for k, v in sample._asdict().items() if v is not None}


def records(found: Log) -> list[tuple[object, ...]]:
    """Everything but the line numbers, hosts and commands."""
    return [
        (r.program, r.status, r.side, r.device, r.local_address, [s._replace(line=None) for s in r.samples])
        for r in found.runs
    ]


# Bandwidth


def test_mebibytes_become_gigabits() -> None:
    """MiB/sec is 2^20 byte/s, and every row knows its line."""
    rows = [
        (s.line, s.size_bytes, s.bw_peak_gbit_s, s.bw_avg_gbit_s, s.msg_rate_mpps) for s in run("write_bw_mib").samples
    ]
    assert rows == [
        (24, 2, pytest.approx(10 * MIB), pytest.approx(0.08002732032), 5.0),
        (25, 4096, pytest.approx(84.7249408), pytest.approx(83.88608), 2.56),
        (26, 65536, pytest.approx(84.7249408), pytest.approx(83.88608), 0.16),
        (27, 8388608, pytest.approx(83.88608), pytest.approx(83.88608), 0.00125),
    ]


@pytest.mark.parametrize("old", ["MB/sec", "MiB/sec"])
def test_the_old_spelling_means_the_same(old: str) -> None:
    """MB/sec until 24.04 is the same number as MiB/sec since, kept as printed on the run."""
    found = log_of(text_of("write_bw_mib").replace("MiB/sec", old))
    assert found.runs[0].unit_printed == old
    assert found.runs[0].samples == run("write_bw_mib").samples


def test_the_banner_is_read_whole() -> None:
    """Banner, address and command lines fill the fields of the run."""
    found = run("write_bw_mib")
    assert (found.tool, found.program, found.operation, found.operation_evidence, found.kind) == (
        "perftest", "ib_write_bw", "write", "title line", "bandwidth",
    )  # fmt: skip
    assert (found.status, found.line, found.side, found.bidirectional, found.memory) == (
        "complete", 3, "client", False, "host",
    )  # fmt: skip
    assert (found.device, found.link_layer, found.transport, found.connection) == ("mlx5_0", "Ethernet", "IB", "RC")
    assert (found.mtu_bytes, found.queue_pairs, found.gid_index) == (4096, 1, 3)
    assert (found.fabric, found.fabric_evidence) == ("roce", "link type Ethernet")
    assert found.command == "ib_write_bw -d mlx5_0 -x 3 -a -F 192.0.2.2"
    assert found.local_address == (
        "LID 0000 QPN 0x0108 PSN 0xad9e39 GID 00:00:00:00:00:00:00:00:00:00:255:255:192:00:02:01"
    )


def test_an_unmeasured_peak_is_missing() -> None:
    """A peak of 0.00 was not measured in duration mode; CPU use and duration are taken."""
    found = run("duration_cpu")
    assert measured(found.samples[0]) == {
        "line": 25, "size_bytes": 65536, "iterations": 1059332, "bw_avg_gbit_s": 92.57, "msg_rate_mpps": 0.176557,
        "cpu_util_pct": 5.07,
    }  # fmt: skip
    assert found.duration_s == 10
    assert codes(log("duration_cpu")) == ["peak_not_measured"]


def test_ports_are_no_samples() -> None:
    """--report-per-port gives one sample, the total; what each port moved stands in columns of its own."""
    assert measured(run("per_port").samples[0]) == {
        "line": 23, "size_bytes": 65536, "iterations": 40000, "bw_avg_gbit_s": pytest.approx(1250 * MIB),
        "msg_rate_mpps": 0.02, "cpu_util_pct": 99.5, "bw_port1_gbit_s": pytest.approx(650 * MIB),
        "msg_rate_port1_mpps": 0.0104, "bw_port2_gbit_s": pytest.approx(600 * MIB), "msg_rate_port2_mpps": 0.0096,
    }  # fmt: skip


def test_a_service_level_column_moves_the_others() -> None:
    """Columns come from the header: with --raw_qos the second number is no iteration count."""
    found = run("qos")
    assert (found.program, found.fabric, found.side) == ("raw_ethernet_bw", "ethernet", None)
    assert (found.samples[0].iterations, found.samples[0].bw_avg_gbit_s) == (5000, 81.92)
    assert found.samples[0].service_level == 3


def test_directions_are_no_samples() -> None:
    """--report-both prints the sum and each direction; only the sum is a sample."""
    (sample,) = run("report_both").samples
    assert sample.bw_avg_gbit_s == pytest.approx(12500 * MIB)
    assert run("report_both").bidirectional is True
    assert codes(log("report_both")) == ["direction_rows"]


def test_a_sum_of_one_side_is_told() -> None:
    """600,000 writes at 0.2 Mpps fill all 3 s that -D 5 measures: nothing came back."""
    assert "one_sided_sum" in codes(log("one_sided"))
    both = text_of("one_sided").replace(" 600000 ", " 300000 ")
    assert "one_sided_sum" not in codes(log_of(both))


def test_endless_runs_keep_every_interval() -> None:
    """--run_infinitely: each row is a sample, CPU_Util 0.00 no value, a last row without line end is whole."""
    found = run("infinite_killed")
    assert [s.bw_avg_gbit_s for s in found.samples] == [58.87, 41.37, 23.74]
    assert {s.cpu_util_pct for s in found.samples} == {None}
    assert found.status == "truncated"


def test_errors_after_the_user_stopped_are_normal() -> None:
    """Socket errors after 'User stopped traffic' are notes, not a failure."""
    assert run("infinite_stopped").status == "complete"
    assert codes(log("infinite_stopped")) == ["peak_not_measured", "stopped", "teardown_error"]


def test_counters_behind_a_row_are_read_over() -> None:
    """--report-counters appends name=delta to a row, which stays whole."""
    assert run("counters").samples[0].bw_avg_gbit_s == 83.89
    assert not log("counters").notes


# Latency


def test_both_ends_of_a_latency_test() -> None:
    """Each end is a run of its own and carries the address of the other."""
    server, client = log("send_lat_pair").runs
    assert (server.side, client.side) == ("server", "client")
    assert server.local_address == client.remote_address == "LID 0x1a QPN 0x0108 PSN 0xad9e39"
    assert server.remote_address == client.local_address == "LID 0x2b QPN 0x0110 PSN 0x1b2c3"
    assert (client.fabric, client.fabric_evidence, client.link_layer) == ("infiniband", "LID 0x2b", "InfiniBand")
    assert measured(client.samples[0]) == {
        "line": 46, "size_bytes": 2, "iterations": 1000, "lat_min_us": 1.54, "lat_max_us": 7.2, "lat_typical_us": 1.59,
        "lat_avg_us": 1.6, "lat_stdev_us": 0.08, "lat_p99_us": 1.63, "lat_p999_us": 7.2,
    }  # fmt: skip
    assert codes(log("send_lat_pair")) == ["percentile_not_meaningful"] * 2


def test_a_read_latency_server_prints_no_table() -> None:
    """The server of a read latency test is complete without a row; reads are whole round trips, sends half ones."""
    server, client = log("read_lat_pair").runs
    assert (server.status, server.side, server.samples) == ("complete", "server", ())
    assert (client.status, len(client.samples)) == ("complete", 1)
    assert client.latency_convention == "round_trip"
    assert log("send_lat_pair").runs[0].latency_convention == "one_way"


def test_latency_in_duration_mode() -> None:
    """With -D there are an average and transactions a second, nothing else."""
    assert measured(run("lat_duration").samples[0]) == {
        "line": 22, "size_bytes": 2, "iterations": 86926, "lat_avg_us": 23.22, "tps": 43065.44,
    }  # fmt: skip


def test_cycles_are_no_microseconds() -> None:
    """A dump headed 'cycles' or -C on the command line tells that the table holds CPU cycles."""
    assert measured(run("cycles").samples[0]) == {"line": 28, "size_bytes": 2, "iterations": 5000}
    assert codes(log("cycles")) == ["cycles"]
    asked = log_of("$ ib_send_lat -C 192.0.2.2\n" + text_of("unsorted"))
    assert asked.runs[0].samples[0].lat_avg_us is None


def test_dumped_samples_are_no_rows() -> None:
    """-U lists single samples before the table; only the table counts."""
    (sample,) = run("unsorted").samples
    assert (sample.line, sample.lat_typical_us, sample.lat_stdev_us) == (28, 2.92, 0.0)


# Old, odd and damaged tables


def test_layouts_of_2011() -> None:
    """Until 2012 there was no message rate, until 2016 three latency columns."""
    bandwidth, latency = log("old_2011").runs
    assert measured(bandwidth.samples[0]) == {
        "line": 17, "size_bytes": 65536, "iterations": 5000, "bw_peak_gbit_s": pytest.approx(3250 * MIB),
        "bw_avg_gbit_s": pytest.approx(26.2144),
    }  # fmt: skip
    assert measured(latency.samples[0]) == {
        "line": 35, "size_bytes": 2, "iterations": 1000, "lat_min_us": 1.02, "lat_max_us": 16.44,
        "lat_typical_us": 1.06,
    }  # fmt: skip
    assert (bandwidth.device, bandwidth.mtu_bytes, bandwidth.fabric) == (None, 2048, "infiniband")


def test_a_server_under_the_wrong_header() -> None:
    """0.11802 Mpps of 64 KiB are 61.88 Gb/s: the header says MB/sec and is wrong by a factor of 119."""
    found = run("server_wrong_unit")
    assert (found.unit_printed, found.side) == ("MB/sec", "server")
    assert (found.samples[0].bw_avg_gbit_s, found.samples[0].bw_peak_gbit_s) == (61.88, 96.92)
    assert codes(log("server_wrong_unit")) == ["unit_conflict"]


def test_damaged_rows_are_refused() -> None:
    """Negative, nan, contradictory and torn rows leave a note; what does not fit in 64 bits is missing."""
    (sample,) = run("damaged_rows").samples
    assert measured(sample) == {"line": 26, "size_bytes": 65536, "bw_avg_gbit_s": 61.88, "msg_rate_mpps": 0.11802}
    assert [(n.code, n.line) for n in log("damaged_rows").notes] == [
        ("not_positive", 23), ("inconsistent_row", 25), ("iterations_overflow", 26), ("not_finite", 26),
        ("torn_row", 27),
    ]  # fmt: skip


def test_zeros_of_an_uncalibrated_clock_are_missing() -> None:
    """A warning inside header and rows is taken out, and the zeros that follow from it are no values."""
    found = run("clock_not_calibrated")
    assert [measured(s) for s in found.samples] == [
        {"line": 24, "size_bytes": 65536, "iterations": 350},
        {"line": 26, "size_bytes": 65536, "iterations": 612},
        {"line": 28, "size_bytes": 65536, "iterations": 124},
    ]
    assert [n.code for n in log("clock_not_calibrated").notes] == ["clock_not_calibrated"]


def test_rows_below_the_printed_decimals_are_refused() -> None:
    """Three of 23 rows print an average of 0.00 MB/sec, which is no number to quote."""
    found = log("coarse_decimals")
    assert len(found.runs[0].samples) == 20
    (note,) = found.notes
    assert note == (
        23,
        "not_positive",
        "The average is not a positive number, so the row was left out: 0.00 (first of 3).",
    )


def test_a_table_without_banner_has_no_operation() -> None:
    """A lone table is read, and what it measured is not guessed."""
    found = run("bare_table")
    assert (found.operation, found.program, found.side) == (None, None, None)
    assert found.operation_candidates == ("write", "read", "send", "atomic")
    assert found.samples[0].bw_avg_gbit_s == 83.89


def test_a_wrapped_terminal_is_unwrapped() -> None:
    """Lines broken at 80 columns are joined: the rule tells the width."""
    for name in ("write_bw_mib", "send_lat_pair", "per_port", "infinite_killed"):
        lines = text_of(name).expandtabs().split("\n")
        wrapped = "\n".join(line[at : at + 80] for line in lines for at in range(0, max(1, len(line)), 80))
        assert records(log_of(wrapped)) == records(log(name))


def test_two_programs_on_one_terminal() -> None:
    """Interleaved ends are two runs: sides unknown, differing facts null, two rows on one line both read."""
    one, two = log("interleaved").runs
    assert (one.side, two.side, one.device, one.connection) == (None, None, None, "UD")
    assert [len(r.samples) for r in (one, two)] == [1, 1]
    assert (one.samples[0].bw_peak_gbit_s, two.samples[0].bw_peak_gbit_s) == (None, 70.0)
    assert one.local_address == two.remote_address != one.remote_address == two.local_address
    assert "interleaved" in codes(log("interleaved"))


def test_a_row_without_its_table_is_told() -> None:
    """Rows behind a closed table or under an unknown header are not read and not forgotten."""
    row = " 65536      5000             84.00              83.89                 0.160000\n"
    assert codes(log_of(text_of("limit_missed").replace("Error: BW", row + "Error: BW"))) == [
        "stray_row",
        "limit_missed",
    ]
    unknown = log_of(text_of("limit_missed").replace("MsgRate[Mpps]", "Jitter[usec]"))
    assert (unknown.runs[0].samples, unknown.runs[0].status) == ((), "no_data")
    assert codes(unknown)[0] == "unknown_header"


def test_a_command_does_not_end_an_open_table() -> None:
    """A command echoed between rows leaves the rows below it in their table."""
    text = text_of("infinite_killed").replace(
        " 65536      79538", "+ ib_read_bw -d mlx5_1 192.0.2.2\n 65536      79538"
    )
    assert len(log_of(text).runs[0].samples) == 3


# Status and failures


def test_rows_before_a_failure_stay() -> None:
    """A failure text fails the run and leaves the rows printed before it."""
    assert (run("retry_exceeded").status, len(run("retry_exceeded").samples)) == ("failed", 1)


def test_a_failure_inside_the_banner() -> None:
    """stderr may be written into the banner, which goes on behind it."""
    found = run("failed_in_banner")
    assert (found.status, found.queue_pairs, found.unit_printed) == ("failed", 4, "Gb/sec")
    assert found.remote_address == (
        "LID 0000 QPN 0x0018 PSN 0x7b6ccf GID 00:00:00:00:00:00:00:00:00:00:255:255:10:07:00:01"
    )


def test_a_failure_before_its_banner() -> None:
    """In a file stderr may come before the banner; a text of the data path belongs to the test below."""
    assert (run("stderr_first").status, run("stderr_first").device) == ("failed", "mlx5_0")


def test_every_attempt_is_a_run() -> None:
    """What failed before its banner is a run without samples, apart from the next attempt."""
    assert [(r.program, r.status, r.line, len(r.samples)) for r in log("attempts").runs] == [
        ("ib_write_bw", "failed", 2, 0),
        ("ib_write_lat", "failed", 5, 0),
        ("ib_write_lat", "complete", 9, 1),
    ]


def test_a_missed_limit_is_no_failure() -> None:
    """A result below -w is valid and noted."""
    assert (run("limit_missed").status, codes(log("limit_missed"))) == ("complete", ["limit_missed"])


def test_a_server_nobody_came_to() -> None:
    """The star box alone is no run and not silence either."""
    assert (log("never_connected").runs, log("never_connected").status) == ((), "no_data")
    assert codes(log("never_connected")) == ["never_connected"]


def test_the_rule_of_the_next_banner_closes_nothing() -> None:
    """A killed test before another one is truncated, though a rule follows its row."""
    killed = text_of("report_both").split("\n")[:23]
    found = log_of("\n".join(killed) + "\n" + text_of("limit_missed"))
    assert [r.status for r in found.runs] == ["truncated", "complete"]


def test_the_fabric_is_shown_by_the_banner() -> None:
    """Device, connection, transport and LID tell the family; link type IB alone does not."""
    assert (run("efa").fabric, run("efa").link_layer, run("efa").transport) == ("efa", "InfiniBand", "unknown")
    assert run("coarse_decimals").fabric == "softroce"
    roce = text_of("limit_missed")
    for change, family in {
        ("Transport type : IB", "Transport type : IW"): "iwarp",
        ("Link type       : Ethernet", "Link type       : IB"): "roce",  # no LID: forced
        ("Link type       : Ethernet", "Link type       : Unknown"): None,
    }.items():
        assert log_of(roce.replace(*change)).runs[0].fabric == family


def test_masked_addresses_are_missing() -> None:
    """An address that its author masked is none."""
    found = log_of(re.sub("QPN 0x0108", "QPN 0xxxxx", text_of("limit_missed")))
    assert found.runs[0].local_address is None
    assert found.runs[0].remote_address is not None


def test_memory_is_where_the_log_says() -> None:
    """CUDA shows before the banner, ROCm in it; what stands behind a table speaks of the next test."""
    assert [(r.memory, r.gpu_model) for r in log("memories").runs] == [
        ("cuda", "NVIDIA H200"), ("rocm", "AMD Instinct MI300X"), ("host", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "side"),
    [
        ("ib_write_bw -b -d mlx5_0", "server"), ("ib_write_bw -d mlx5_0 -b", "server"), ("ib_write_bw", "server"),
        ("ib_write_bw --duration 10 -b --iters 500", "server"), ("ib_write_bw -b node-2", "client"),
        ("ib_write_bw -d mlx5_0 -b --report_gbits 192.0.2.2", "client"),
    ],
)  # fmt: skip
def test_the_host_tells_the_side_of_a_bidirectional_test(command: str, side: str) -> None:
    """Both ends print the same banner; only a client is given a host."""
    assert log_of(f"$ {command}\n" + text_of("report_both")).runs[0].side == side


def test_the_version_holds_for_what_follows() -> None:
    """The answer to --version is kept with the runs below it."""
    found = log_of("$ ib_write_bw --version\nVersion: 6.06\n" + text_of("write_bw_mib"))
    assert (found.runs[0].tool_version, found.runs[0].command) == ("6.06", run("write_bw_mib").command)


def test_lookalikes_are_left_alone() -> None:
    """Help texts, sentences and other tools give no run."""
    for text in (
        "Usage:\n  /usr/bin/ib_write_bw            start a server and wait for connection\n",
        "# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n1                       1.12\n",
        "The RDMA_Write BW Test prints BW average[Gb/sec]\n65536 5000 97.00 96.00 0.183100\n",
        "11561.695552\n",
    ):
        assert not [r for r in log_of(text).runs if r.tool == "perftest"]


# JSON

INFO = {
    "test": "RDMA_Write_BW_Test", "Device": "mlx5_0", "Number_of_qps": 1, "Transport_type": "IB",
    "Connection_type": "RC", "TX_depth": 128, "Mtu": 4096, "Link_type": "Ethernet", "GID_index": 3,
}  # fmt: skip
BANDWIDTH = {"MsgSize": 65536, "n_iterations": 5000, "BW_peak": 96.92, "BW_average": 32.32, "MsgRate": 0.061639}
LATENCY = {
    "MsgSize": 2, "n_iterations": 1000, "t_min": 2.82, "t_max": 26.41, "t_typical": 2.9, "t_avg": 2.95, "t_stdev": 0.52,
    "percentile_99": 3.16, "percentile_99.9": 26.41,
}  # fmt: skip


def report(results: dict[str, object], **info: object) -> str:
    return json.dumps({"test_info": INFO | info, "results": results}, indent=0)


def unquoted(text: str) -> str:
    """The dialect before 24.01: no quotes but those of the device, a comma after every item."""
    bare = re.sub(r'"(?!mlx5)([\w.]+)"', r"\1", text).replace("TX_depth:", "TX_depth :")
    return re.sub(r"(?<=[^{,])\n", ",\n", bare)


@pytest.mark.parametrize("dialect", [str, unquoted])
def test_the_unit_of_a_report_is_inferred(dialect: object) -> None:
    """0.061639 Mpps of 64 KiB are 32.317 Gb/s: printed 32.32, so Gb/sec; 32.32 x 119.2 would be MiB/sec."""
    assert callable(dialect)
    (found,) = log_of(dialect(report(BANDWIDTH))).runs
    assert (found.program, found.side, found.fabric, found.unit_printed) == ("ib_write_bw", "client", "roce", None)
    assert (found.status, found.line) == ("complete", 2)
    assert measured(found.samples[0]) == {
        "size_bytes": 65536, "iterations": 5000, "bw_peak_gbit_s": 96.92, "bw_avg_gbit_s": 32.32,
        "msg_rate_mpps": 0.061639,
    }  # fmt: skip
    mib = log_of(dialect(report(BANDWIDTH | {"BW_average": 3852.44, "BW_peak": 0.0})))
    assert mib.runs[0].samples[0].bw_avg_gbit_s == pytest.approx(3852.44 * MIB)
    assert mib.runs[0].samples[0].bw_peak_gbit_s is None
    assert sorted(codes(mib)) == ["peak_not_measured", "unit_inferred"]


@pytest.mark.parametrize("dialect", [str, unquoted])
def test_latency_reports(dialect: object) -> None:
    """The key with a dot is read in both dialects; reads are round trips."""
    assert callable(dialect)
    (found,) = log_of(dialect(report(LATENCY, test="RDMA_Read_Latency_Test"))).runs
    assert (found.operation, found.latency_convention) == ("read", "round_trip")
    assert (found.samples[0].lat_typical_us, found.samples[0].lat_p999_us) == (2.9, 26.41)


def test_bare_outputs_in_reports() -> None:
    """--output leaves stray commas; a bandwidth without size or rate has no unit and is not taken."""
    text = report({"bw_avg": 11561.695552}).replace("11561.695552", "11561.695552,\n")
    found = log_of(text)
    assert (found.runs[0].status, measured(found.runs[0].samples[0])) == ("complete", {})
    assert codes(found) == ["unit_unknown"]
    text = report({"msgRate_avg": 0.108213, "CPU_util": 100.0}).replace("0.108213,", "0.108213,\n,")
    assert measured(log_of(text).runs[0].samples[0]) == {"msg_rate_mpps": 0.108213, "cpu_util_pct": 100.0}


def test_contradictory_reports_are_refused() -> None:
    """An average that fits the rate in no unit is not taken."""
    found = log_of(report(BANDWIDTH | {"BW_average": 77.0}))
    assert (found.runs[0].samples, found.runs[0].status, codes(found)) == ((), "no_data", ["inconsistent_row"])


# Any text


@given(
    st.text(alphabet=st.sampled_from('#bytes iterations[MiB/sec]usecBW Test0123456789.-\n\t{}":,xnaif'), max_size=400)
)
def test_no_text_breaks_the_reading(text: str) -> None:
    """Any text is read without an exception, also inside a table and a report."""
    for found in (log_of(text), log_of(text_of("duration_cpu")[:1500] + text), log_of(report(BANDWIDTH)[:120] + text)):
        assert "parser_error" not in codes(found)
        for sample in (s for r in found.runs for s in r.samples):
            assert all(math.isfinite(v) for v in sample if isinstance(v, float))


@pytest.mark.parametrize(
    "name",
    ["write_bw_mib", "send_lat_pair", "per_port", "duration_cpu", "lat_duration", "old_2011", "clock_not_calibrated"],
)
def test_a_cut_log_gives_a_prefix(name: str) -> None:
    """Cut at any byte, the rows that are read are the first true rows, none shortened and none invented."""
    text = text_of(name)
    whole = [s for r in log(name).runs for s in r.samples]
    for cut in range(len(text)):
        found = [s for r in log_of(text[:cut]).runs for s in r.samples]
        assert found == whole[: len(found)]


@pytest.mark.parametrize("dialect", [str, unquoted])
def test_a_cut_report_gives_all_or_nothing(dialect: object) -> None:
    """A report cut anywhere gives its one row or none; values of an open object may be cut."""
    assert callable(dialect)
    text = dialect(report(BANDWIDTH))
    whole = log_of(text).runs[0].samples
    for cut in range(len(text)):
        runs = log_of(text[:cut]).runs
        assert [r.samples for r in runs if r.samples] in ([], [whole])


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["write_bw_mib", "send_lat_pair", "cycles", "report_both", "retry_exceeded", "attempts"]),
    st.sampled_from(["3: ", "[1,3]<stdout>:", "gpu-node-07: ", "node7:", "2026-03-04T05:06:07.123456Z ", "\x1b[1;32m"]),
    st.sampled_from(["\n", "\r\n", "\x1b[0m\n"]),
)
def test_dress_does_not_matter(name: str, prefix: str, end: str) -> None:
    """Behind srun -l, mpirun --tag-output, clush, time stamps, colours and CRLF stand the same records."""
    dressed = "".join(prefix + line + end for line in text_of(name).removesuffix("\n").split("\n"))
    assert records(log_of(dressed)) == records(log(name))


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_hosts_are_kept_apart(random: object) -> None:
    """Two logs mixed line by line under their host names are the two logs."""
    assert hasattr(random, "random")
    left, right = text_of("write_bw_mib").splitlines(), text_of("duration_cpu").splitlines()
    mixed = []
    while left or right:
        take_left = left and (not right or random.random() < 0.5)
        mixed.append("gpu-a: " + left.pop(0) if take_left else "gpu-b: " + right.pop(0))
    found = log_of("\n".join(mixed) + "\n")
    by_host = {r.hosts: r.samples for r in found.runs}
    assert [s._replace(line=None) for s in by_host["gpu-a",]] == [
        s._replace(line=None) for s in run("write_bw_mib").samples
    ]
    assert by_host["gpu-b",][0].bw_avg_gbit_s == 92.57


@pytest.mark.skipif(not os.environ.get("RDMALAB_CORPUS"), reason="RDMALAB_CORPUS is not set")
@pytest.mark.parametrize("folder", ["perftest", "nasty-perftest"])
def test_real_logs(folder: str) -> None:
    """Every real log gives the runs, rows and status that were read from it by hand."""
    corpus = Path(os.environ["RDMALAB_CORPUS"], folder)
    for truth in json.loads((corpus / "truth.json").read_text())["files"]:
        found = read(Text.of((corpus / truth["file"]).read_bytes()))
        runs = [r for r in found.runs if r.tool == "perftest"]
        allowed = [v if isinstance(v, list) else [v] for v in (truth["n_runs"], truth["n_rows"], truth["status"])]
        assert len(runs) in allowed[0], truth["file"]
        assert sum(len(r.samples) for r in runs) in allowed[1], truth["file"]
        assert not runs or found.status in allowed[2], truth["file"]
        assert "parser_error" not in codes(found), truth["file"]


@pytest.mark.parametrize(
    ("prompt", "command", "hosts", "peer"),
    [
        ("user@node-2:~$ ", "ib_write_bw -d mlx5_0 192.0.2.10", ("node-2",), "192.0.2.10"),
        ("[root@gpu-01 ~]# ", "ib_write_bw -d mlx5_0 -F gpu-02.lan", ("gpu-01",), "gpu-02.lan"),
        ("user@node-2:~$ sudo numactl -N 0 ", "ib_write_bw -d mlx5_0", ("node-2",), None),
        ("user@node-2:~$ ", "ib_write_bw -d mlx5_0 $SERVER", ("node-2",), None),
        ("user@login:~$ ssh node-7 ", "ib_write_bw -d mlx5_0 node-8", (), "node-8"),
        ("$ ", "ib_write_bw -d mlx5_0 node-8", (), "node-8"),
    ],
)
def test_the_prompt_names_the_host(prompt: str, command: str, hosts: tuple[str, ...], peer: str | None) -> None:
    """Where the command was typed, unless it takes the test elsewhere; the last word of a client is the other host."""
    below = text_of("write_bw_mib").partition("-----")
    (only,) = log_of(prompt + command + "\n" + below[1] + below[2]).runs
    assert (only.hosts, only.peer, only.command) == (hosts, peer, command)
