"""What the sockperf format promises, on logs written for it and on any text at all."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdmalab.formats import sockperf
from rdmalab.model import Parsed, Run, Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "sockperf"


def content(name: str) -> str:
    return next(LOGS.glob(f"{name}.*")).read_text()


def parsed_text(text: str) -> Parsed:
    return sockperf.parse(Text.of(text))


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


def test_a_latency_is_half_of_the_round_trip() -> None:
    """avg-latency is one way; percentiles, extremes and deviation are read by name."""
    found = run("ping_pong_tcp")
    assert found.samples == (
        Sample(
            line=12, iterations=100000, lat_avg_us=10.0, lat_stdev_us=2.5, lat_min_us=8.125, lat_max_us=500.0,
            lat_typical_us=9.75, lat_p99_us=15.25, lat_p999_us=30.5,
        ),
    )  # fmt: skip
    assert (found.latency_convention, found.protocol, found.side, found.tool_version) == (
        "one_way", "TCP", "client", "3.7-no.git",
    )  # fmt: skip
    assert (found.fabric, found.fabric_evidence) == ("tcp", "sockperf --tcp measures the TCP stack of the kernel")


def test_full_rtt_is_a_round_trip() -> None:
    """avg-rtt is the whole round trip; UDP sockets show no fabric; the command has the size."""
    found = run("full_rtt_udp")
    assert (found.latency_convention, found.protocol, found.fabric) == ("round_trip", "UDP", None)
    assert (found.samples[0].lat_avg_us, found.samples[0].size_bytes) == (20.0, 14)
    assert (found.program, codes(parsed("full_rtt_udp"))) == ("sockperf ping-pong", [])


def test_a_saturated_ping_pong_is_inferred() -> None:
    """100000 round trips of 20 us fill 2.000 of 2.010 seconds."""
    assert run("ping_pong_tcp").program == "sockperf ping-pong"
    assert "99.5%" in parsed("ping_pong_tcp").notes[1].text
    assert codes(parsed("ping_pong_tcp")) == ["size_unknown", "mode_inferred"]


def test_a_paced_run_names_no_mode() -> None:
    """2000 round trips of 20 us in 2 seconds may be a paced ping-pong or a load with a reply to each message."""
    assert run("paced").program == "sockperf"
    assert run("ping_pong_command").program == "sockperf ping-pong"


def test_lost_messages_are_told() -> None:
    """With drops nothing is inferred from the counts."""
    assert (run("under_load_udp").program, codes(parsed("under_load_udp"))) == (
        "sockperf",
        ["message_loss", "size_unknown"],
    )
    without = parsed_text(content("under_load_udp").replace("dropped messages = 3", "dropped messages = 0"))
    assert (without.runs[0].program, codes(without)) == ("sockperf under-load", ["size_unknown", "mode_inferred"])


def test_bursts_are_told() -> None:
    """The latency of a message within a burst is not that of a single one."""
    assert "burst" in codes(parsed("burst"))
    assert run("burst").program == "sockperf"


def test_each_server_has_a_sample() -> None:
    """Two servers of one client are two rows of one run."""
    assert [(s.line, s.lat_avg_us) for s in run("two_servers").samples] == [(12, 10.0), (28, 12.5)]


def test_throughput_is_in_powers_of_two() -> None:
    """200000 messages of 1000 bytes are 1.6 Gbit/s, which the tool prints as 190.735 MBps."""
    (sample,) = run("throughput_tcp").samples
    assert sample.bw_avg_gbit_s == pytest.approx(1.6, rel=1e-6)
    assert sample._replace(bw_avg_gbit_s=None) == Sample(line=10, size_bytes=1000, msg_rate_mpps=0.2)
    assert (run("throughput_tcp").program, run("throughput_tcp").kind) == ("sockperf throughput", "bandwidth")
    assert codes(parsed("throughput_tcp")) == ["size_computed"]


def test_giga_is_a_thousand_of_these() -> None:
    """Three million messages of 4096 bytes are 98.304 Gbit/s, printed as 93.750 Gbps."""
    (sample,) = run("throughput_giga").samples
    assert (sample.bw_avg_gbit_s, sample.size_bytes, sample.msg_rate_mpps) == (98.304, 4096, 3.0)
    assert (run("throughput_giga").unit_printed, codes(parsed("throughput_giga"))) == ("GBps", [])


def test_what_udp_sent_is_no_throughput() -> None:
    """What arrived is not printed: the sender's rate is a reading, not a sample."""
    found = parsed("throughput_udp")
    assert (samples(found), found.runs[0].status) == ([], "complete")
    assert [(r.metric, r.line) for r in found.readings] == [("bw_sent_gbit_s", 11), ("msg_rate_sent_mpps", 10)]
    assert found.readings[0].value == pytest.approx(200000 * 1472 * 8 / 1e9, rel=1e-6)
    assert codes(found) == ["size_computed", "sent_not_received"]


def test_a_bandwidth_that_is_no_whole_size_is_refused() -> None:
    """1525.879 Mbps of 10^6 bit over 200000 messages would be messages of 953.67 bytes: so would a lost digit."""
    found = parsed_text(content("throughput_tcp").replace("is 200000 [", "is 20001 ["))
    assert (samples(found), codes(found)) == ([], ["contradiction"])


def test_failures() -> None:
    """No reply and no connection are failures."""
    for name in ("no_reply", "refused"):
        assert (run(name).status, codes(parsed(name))) == ("failed", ["sockperf_failure"])


def test_the_server_prints_no_result() -> None:
    """A server's log is a run without samples."""
    assert (run("server").status, run("server").side, codes(parsed("server"))) == ("no_data", "server", ["server_log"])


def test_a_full_log_gives_its_longest_wait() -> None:
    """Sent at 1.999999000 s and received at 2.015999500 s: 16000.5 us, the longest of three packets."""
    found = parsed("full_log")
    assert [(r.metric, r.value, r.unit, r.line) for r in found.readings] == [
        ("full_log_packets", 3.0, "packets", 2),
        ("full_log_longest_rtt_us", 16000.5, "us", 24),
    ]
    assert (found.runs[0].samples[0].size_bytes, found.runs[0].fabric) == (128, None)
    assert codes(found) == ["full_log"]


def test_kernel_bypass_shows_no_fabric() -> None:
    """Sockets of VMA do not pass the TCP stack of the kernel."""
    assert (run("bypass").protocol, run("bypass").fabric) == ("TCP", None)
    assert "kernel_bypass" in codes(parsed("bypass"))


def test_the_last_line_closes_a_result() -> None:
    """Without its minimum a result is truncated, and what was printed of it stays."""
    found = parsed_text(content("ping_pong_tcp").rsplit("sockperf: ---> <MIN>", 1)[0])
    assert (found.runs[0].status, found.runs[0].samples[0].lat_min_us) == ("truncated", None)
    assert found.runs[0].samples[0].lat_p99_us == 15.25


@pytest.mark.parametrize("missing", [1, 2, 3, 5])
def test_a_torn_line_is_refused(missing: int) -> None:
    """A number with fewer than three decimals has lost some."""
    found = parsed_text(content("ping_pong_tcp").rstrip("\n")[:-missing])
    assert samples(found)[0].lat_min_us is None
    assert (found.runs[0].status, "torn_row" in codes(found)) == ("truncated", True)
    assert samples(parsed_text(content("throughput_tcp").rstrip("\n")[:-missing])) == []


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
    assert not sockperf.SIGNATURE.search(OTHERS)
    assert parsed_text(OTHERS.decode()) == Parsed()
    assert parsed_text("") == Parsed()


def check(found: Parsed, expected: dict[str, Any]) -> None:
    """What is known of a collected log."""
    (only,) = found.runs
    assert only.status == "complete"
    (sample,) = only.samples
    if "avg_us" in expected:
        assert (sample.lat_avg_us, sample.iterations) == (expected["avg_us"], expected["observations"])
        assert sample.lat_p999_us == expected.get("percentile_99_9", sample.lat_p999_us)
    if "percentiles" in expected:
        known = expected["percentiles"]
        assert (sample.lat_typical_us, sample.lat_p99_us, sample.lat_p999_us, sample.lat_max_us) == (
            known["50.000"], known["99.000"], known["99.900"], expected["max_us"],
        )  # fmt: skip
    if "mbps" in expected:
        assert sample.msg_rate_mpps == expected["msgs_per_sec"] / 1e6
        assert sample.bw_avg_gbit_s == pytest.approx(expected["mbps"] * 2**20 / 1e9)
    if "rows" in expected:
        packets, longest = found.readings
        assert packets.value == expected["rows"]
        assert longest.value == pytest.approx(
            1000 * max(ms for _, ms in expected["gaps_over_5ms_packet_and_ms"]), abs=1
        )


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: averages, percentiles and rates are right."""
    if not os.environ.get("RDMALAB_CORPUS"):
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    for name, facts in json.loads((folder / "truth.json").read_text())["files"].items():
        if facts["format"] in ("sockperf", "sockperf_full_log"):
            check(parsed_text((folder / name).read_text()), facts["expect"])
