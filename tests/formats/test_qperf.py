"""What the qperf format promises, on logs written for it and on any text at all."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdmalab.formats import qperf
from rdmalab.model import Parsed, Run, Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "qperf"
EXAMPLES = Path(__file__).parents[2] / "data" / "examples" / "softroce"


def content(name: str) -> str:
    return next(LOGS.glob(f"{name}.*")).read_text()


def parsed_text(text: str) -> Parsed:
    return qperf.parse(Text.of(text))


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


def test_every_block_is_a_run() -> None:
    """2.5 GB/sec of 10^9 byte are 20 Gbit/s; a latency is one way."""
    bandwidth, latency = parsed("tcp").runs
    assert bandwidth.samples == (Sample(line=2, bw_avg_gbit_s=20.0, msg_rate_mpps=0.0381),)
    assert latency.samples == (Sample(line=5, lat_avg_us=21.5, msg_rate_mpps=0.0465),)
    assert (bandwidth.program, bandwidth.kind, latency.program, latency.kind) == (
        "qperf tcp_bw", "bandwidth", "qperf tcp_lat", "latency",
    )  # fmt: skip
    assert (latency.latency_convention, latency.protocol, latency.fabric) == ("one_way", "TCP", "tcp")
    assert codes(parsed("tcp")) == ["size_unknown", "size_unknown"]


def test_a_loop_has_a_run_for_each_size() -> None:
    """A size is read where it stands in full; 1.47 KB is rounded and may be 1472 or 1468."""
    assert [(s.line, s.size_bytes, s.bw_avg_gbit_s) for s in samples(parsed("loop"))] == [
        (2, 1024, 2.0),
        (6, 65536, 12.0),
        (10, None, 2.4),
    ]
    assert codes(parsed("loop")) == ["size_rounded"]
    assert {r.duration_s for r in parsed("loop").runs} == {2.0}


def test_units_are_read_from_the_log() -> None:
    """The same numbers in bytes/sec and ns (-uu)."""
    assert samples(parsed("units")) == [
        Sample(line=2, size_bytes=65536, bw_avg_gbit_s=20.0, msg_rate_mpps=0.038147),
        Sample(line=7, size_bytes=1, lat_avg_us=21.5),
    ]


def test_rdma_tests_show_no_fabric() -> None:
    """RC may run on InfiniBand, RoCE or iWARP; a read waits for its answer, a write is timed as a ping-pong."""
    found = parsed("bits").runs
    assert [(r.operation, r.connection, r.fabric) for r in found] == [
        (operation, "RC", None) for operation in ("write", "send", "read", "write", "atomic")
    ]
    assert [r.bidirectional for r in found] == [False, True, None, None, None]
    assert [r.latency_convention for r in found] == [None, None, "round_trip", "one_way", None]
    assert [s.bw_avg_gbit_s for s in samples(parsed("bits"))] == [97.5, 186.0, None, None, None]
    assert (found[4].kind, found[4].samples[0].msg_rate_mpps) == ("message_rate", 2.5)


def test_the_bandwidth_is_what_arrived() -> None:
    """Of UDP the receiver's 1.2 GB/sec count, not the sender's 1.25; UDP is no TCP fabric."""
    bandwidth, _ = parsed("udp").runs
    assert bandwidth.samples == (Sample(line=3, bw_avg_gbit_s=9.6),)
    assert (bandwidth.protocol, bandwidth.fabric) == ("UDP", None)


def test_a_failure_belongs_to_the_empty_block() -> None:
    """The text of the failure may stand before the name of the test."""
    done, failed = parsed("no_device").runs
    assert (done.status, failed.status, failed.program, failed.samples) == ("complete", "failed", "qperf rc_lat", ())
    assert "qperf_failure" in codes(parsed("no_device"))


def test_nothing_received_is_no_latency() -> None:
    """A latency of 0 was not measured."""
    assert (run("nothing_received").status, run("nothing_received").samples) == ("no_data", ())
    assert codes(parsed("nothing_received")) == ["not_measured"]


@pytest.mark.parametrize("missing", range(1, 12))
def test_a_torn_value_is_refused(missing: int) -> None:
    """Without its whole unit a value is no value."""
    text = content("udp").rstrip("\n")[:-missing]
    found = parsed_text(text)
    assert len(samples(found)) == 1
    assert found.runs[1].status in ("truncated", "no_data")


def test_the_measured_logs_are_read() -> None:
    """The sweeps of the example data: 9 sizes of latency in us and ms, 9 of bandwidth in KB and MB a second."""
    text = (EXAMPLES / "repeats" / "client" / "tcp-qperf-sweep.txt").read_text()
    found = samples(parsed_text(text))
    assert [s.size_bytes for s in found] == [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536] * 2
    assert (found[0].lat_avg_us, found[7].lat_avg_us, found[8].lat_avg_us) == (240.0, 22000.0, 1780.0)
    assert (found[9].bw_avg_gbit_s, found[17].bw_avg_gbit_s) == (0.002264, 0.544)


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
    assert not qperf.SIGNATURE.search(OTHERS)
    assert parsed_text(OTHERS.decode()) == Parsed()
    assert parsed_text("") == Parsed()


def check(found: Parsed, expected: dict[str, Any]) -> None:
    """What is known of a collected log."""
    values = samples(found)
    if "error" in expected:
        assert found.runs[0].status == "failed"
        assert expected["error"] in found.notes[0].text
    if "tests" in expected:
        assert [r.program for r in found.runs] == [f"qperf {test}" for test in expected["tests"]]
        printed = [float(text.split()[0]) for _, text in expected["values"]]
        assert [s.lat_avg_us if s.bw_avg_gbit_s is None else s.bw_avg_gbit_s / 8 for s in values] == printed
    if "sizes" in expected:
        assert [s.size_bytes for s in values] == expected["sizes"]
        assert [s.lat_avg_us for s in values] == [float(text) for text in expected["points"][0][1]]
    if "tcp_bw_bytes_per_sec" in expected:
        assert values[0].bw_avg_gbit_s == expected["tcp_bw_bytes_per_sec"] * 8 / 1e9
        assert values[1].lat_avg_us == expected["tcp_lat_ns"] / 1e3


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: values, sizes and failures are right."""
    if not os.environ.get("RDMALAB_CORPUS"):
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    for name, facts in json.loads((folder / "truth.json").read_text())["files"].items():
        if facts["format"] in ("qperf",):
            check(parsed_text((folder / name).read_text()), facts["expect"])
