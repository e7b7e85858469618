"""What the fi_pingpong format promises, on logs written for it and on any text at all."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rdmalab.formats import fi_pingpong
from rdmalab.model import Parsed, Run, Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "fi_pingpong"
EXAMPLES = Path(__file__).parents[2] / "data" / "examples" / "softroce"


def content(name: str) -> str:
    return next(LOGS.glob(f"{name}.*")).read_text()


def parsed_text(text: str) -> Parsed:
    return fi_pingpong.parse(Text.of(text))


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


def test_a_row_has_a_size_and_a_latency() -> None:
    """Letters of a size have base 1024, those of a count cut it; MB/sec are 10^6 byte/s; the latency is one way."""
    assert run("table").samples == (
        Sample(line=2, size_bytes=64, iterations=500, lat_avg_us=2.0, bw_avg_gbit_s=0.256),
        Sample(line=3, size_bytes=1024, iterations=500, lat_avg_us=2.5, bw_avg_gbit_s=3.2768),
        Sample(line=4, size_bytes=65536, iterations=500, lat_avg_us=10.0, bw_avg_gbit_s=52.4288),
        Sample(line=5, size_bytes=1048576, lat_avg_us=100.0, bw_avg_gbit_s=83.88608),
    )
    found = run("table")
    assert (found.kind, found.program, found.latency_convention) == ("latency", "fi_pingpong", "one_way")
    assert (found.status, found.fabric, found.side, codes(parsed("table"))) == ("complete", None, None, ["ping_pong"])


def test_all_sizes_are_powers_of_two_and_their_halves() -> None:
    """1.5k is 1536 where the tool chose the sizes."""
    assert [s.size_bytes for s in run("all_sizes").samples] == [0, 1, 1536, 6144]


def test_a_single_size_of_the_users_own_may_be_rounded() -> None:
    """63k of 65000 bytes: the size is null, unless the command states it or the other columns leave no other."""
    assert (run("single").samples[0].size_bytes, codes(parsed("single"))) == (None, ["size_rounded", "ping_pong"])
    assert run("single_command").samples[0].size_bytes == 65000
    assert run("single_small").samples[0].size_bytes == 1024


def test_the_provider_shows_the_fabric() -> None:
    """The command or the debug output names it; efa and tcp have one wire only."""
    assert (run("single_command").fabric, run("single_command").fabric_evidence) == ("efa", "-p efa")
    assert (run("debug").fabric, run("debug").fabric_evidence) == ("tcp", "provider tcp")
    assert parsed_text(content("single_command").replace("-p efa", "-p verbs")).runs[0].fabric is None


def test_missing_answers_are_told() -> None:
    """A plus before the acknowledged count says how many are missing."""
    assert "lost_acks" in codes(parsed("lost_acks"))


def test_a_failure_keeps_the_rows_before_it() -> None:
    """An error in the table fails the run."""
    assert (run("failed_late").status, len(run("failed_late").samples)) == ("failed", 1)
    assert (run("no_provider").status, codes(parsed("no_provider"))) == ("failed", ["fi_pingpong_failure"])


def test_a_row_that_contradicts_itself_is_refused() -> None:
    """64k at 10 us cannot be 655.36 MB/sec."""
    found = parsed_text(content("table").replace("6553.60", " 655.36"))
    assert [s.size_bytes for s in samples(found)] == [64, 1024, 1048576]
    assert "contradiction" in codes(found)


@pytest.mark.parametrize("missing", [1, 3, 8, 20, 40])
def test_a_torn_row_is_refused(missing: int) -> None:
    """A row that has lost its end becomes a note."""
    found = parsed_text(content("table").rstrip("\n")[:-missing])
    assert len(samples(found)) == 3
    assert (found.runs[0].status, "torn_row" in codes(found)) == ("truncated", True)


def test_the_measured_logs_are_read() -> None:
    """Both ends of the example run print a table; the run over verbs failed on both."""
    for path in ("client/tcp-fi_pingpong.log", "server/tcp-fi_pingpong.server.log"):
        found = parsed_text((EXAMPLES / "single" / path).read_text())
        assert [s.size_bytes for s in samples(found)] == [64, 256, 1024, 4096, 65536, 1048576]
    for path in ("client/rocev2-fi_pingpong.log", "server/rocev2-fi_pingpong.server.log"):
        assert parsed_text((EXAMPLES / "single" / path).read_text()).runs[0].status == "failed"


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
    assert not fi_pingpong.SIGNATURE.search(OTHERS)
    assert parsed_text(OTHERS.decode()) == Parsed()
    assert parsed_text("") == Parsed()


def check(found: Parsed, expected: dict[str, Any]) -> None:
    """What is known of a collected log."""
    if "error" in expected:
        assert (found.runs[0].status, found.notes[0].text) == ("failed", expected["error"])
        return
    units = {"k": 1024, "m": 1024**2}
    rows = [(int(s.rstrip("km")) * units.get(s[-1], 1), float(rate), float(us)) for s, rate, us in expected["rows"]]
    for sample, (size, rate, latency) in zip(samples(found), rows, strict=True):
        assert (sample.size_bytes, sample.lat_avg_us) == (size, latency)
        assert sample.bw_avg_gbit_s == pytest.approx(rate * 8 / 1000)


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: rows and failures are right."""
    if not os.environ.get("RDMALAB_CORPUS"):
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    for name, facts in json.loads((folder / "truth.json").read_text())["files"].items():
        if facts["format"] in ("fi_pingpong",):
            check(parsed_text((folder / name).read_text()), facts["expect"])
