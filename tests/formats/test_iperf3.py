"""What the iperf3 format promises, on logs of real runs, on logs written for it and on any text at all."""

import json
import os
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import iperf3
from rdmalab.model import Parsed, Run, Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "iperf3"
ALL = sorted(path.name for path in LOGS.iterdir())


def content(name: str) -> str:
    return (LOGS / name).read_text()


def parsed_text(text: str) -> Parsed:
    return iperf3.parse(Text.of(text))


@cache
def parsed(name: str) -> Parsed:
    return parsed_text(content(name))


def run(name: str) -> Run:
    (only,) = parsed(name).runs
    return only


def rates(found: Parsed) -> list[float | None]:
    return [sample.bw_avg_gbit_s for run in found.runs for sample in run.samples]


def codes(found: Parsed) -> list[str]:
    return [note.code for note in found.notes]


# JSON documents


def test_the_rate_is_what_the_receiver_got() -> None:
    """The sender's 150.7 Mbit/s still lie partly in its buffers; the receiver's 149.9 are stored, without a line."""
    assert run("tcp_one_stream.json").samples == (Sample(bw_avg_gbit_s=149919790.26614434 / 1e9),)


def test_the_facts_of_a_test() -> None:
    """Version, protocol, streams and duration come from the start of the document."""
    found = run("tcp_four_streams.json")
    assert (found.tool, found.kind, found.program, found.tool_version) == ("iperf3", "bandwidth", "iperf3", "3.12")
    assert (found.protocol, found.streams, found.duration_s, found.side) == ("TCP", 4, 5.0, "client")
    assert (found.status, found.bidirectional, found.fabric, found.operation) == ("complete", False, "tcp", None)


def test_several_streams_are_the_sum_of_the_document() -> None:
    """With -P the received sum is read, not one of its streams."""
    assert rates(parsed("tcp_four_streams.json")) == [323978979.918845 / 1e9]


def test_one_stream_carries_a_warning() -> None:
    """A single TCP stream is bound by a core, and the reader is told."""
    assert "single_stream" in codes(parsed("tcp_one_stream.json"))
    assert "single_stream" not in codes(parsed("tcp_four_streams.json"))


def test_udp_counts_what_arrived() -> None:
    """UDP is rated by what was delivered, its loss is noted, and no fabric is claimed for it."""
    found = run("udp.json")
    assert found.samples[0].bw_avg_gbit_s == pytest.approx(0.04641902037258207)
    assert (found.protocol, found.fabric) == ("UDP", None)
    assert [n.text for n in parsed("udp.json").notes] == ["UDP packets that did not arrive: 424 (5.68 %)."]


def test_the_reverse_direction_is_said() -> None:
    """With -R the client receives; the number is still the receiver's."""
    assert rates(parsed("tcp_reverse.json")) == [64128568.736586675 / 1e9]
    assert "reverse" in codes(parsed("tcp_reverse.json"))


def test_cpu_use_of_both_ends_becomes_readings() -> None:
    """What TCP costs is kept per end, in percent of one core."""
    host, remote = (r for r in parsed("tcp_one_stream.json").readings if r.metric.startswith("cpu_"))
    assert (host.metric, host.value, host.host) == ("cpu_host_total_pct", 78.6193124049994, "node-b")
    assert (remote.metric, remote.value, remote.host) == ("cpu_remote_total_pct", 40.257556805506866, "10.7.0.1")
    assert host.unit == "% of one core"


def test_intervals_become_readings_at_their_end() -> None:
    """The first interval ended 1.11341 s after 1796067005, the second of the start."""
    first = next(r for r in parsed("tcp_one_stream.json").readings if r.metric == "bw_interval_gbit_s")
    assert first.value == 104536456.844043 / 1e9
    assert first.read_at == datetime(2026, 11, 30, 19, 30, 6, 113410, tzinfo=UTC)


def test_both_directions_are_two_runs() -> None:
    """--bidir gives a run for each direction; the sum of 78 Gbit/s appears nowhere."""
    found = parsed("bidir.json")
    assert rates(found) == [40.0, 38.0]
    assert [r.bidirectional for r in found.runs] == [True, True]
    assert "bidirectional" in codes(found)


def test_the_warm_up_is_no_interval() -> None:
    """Omitted intervals are left out, and the clock goes on behind them: 2 s of warm-up, then 2.5 s."""
    found = [r for r in parsed("bidir.json").readings if r.metric == "bw_interval_gbit_s"]
    assert [(r.value, r.device) for r in found] == [(41.0, None), (39.0, "reverse")]
    assert {r.read_at for r in found} == {datetime(2027, 1, 15, 8, 0, 4, 500000, tzinfo=UTC)}


def test_events_are_one_document() -> None:
    """--json-stream writes an object a line; together they are one run."""
    assert rates(parsed("events.json")) == [20.8]
    assert [r.value for r in parsed("events.json").readings] == [20.0, 22.0]


def test_a_stream_of_events_without_its_end_is_truncated() -> None:
    """Without the end event nothing says what arrived; the intervals stay."""
    found = parsed_text("\n".join(content("events.json").splitlines()[:2]))
    assert (found.runs[0].status, rates(found), len(found.readings)) == ("truncated", [], 1)


def test_a_refused_connection_failed() -> None:
    """An error and an empty end are a failed run without a number."""
    assert (run("refused.json").status, run("refused.json").samples) == ("failed", ())
    assert parsed("refused.json").notes[0].text == "iperf3 failed: unable to connect to server: Connection refused"


def test_an_interrupted_client_has_no_received_rate() -> None:
    """The two ends could not exchange results: the 0 printed for the receiver was not measured."""
    assert (run("interrupted.json").status, run("interrupted.json").samples) == ("failed", ())


def test_a_rate_that_is_no_number_is_not_measured() -> None:
    """NaN in the document gives no sample, and a note."""
    text = content("tcp_one_stream.json").replace("149919790.26614434", "NaN")
    assert parsed_text(text).runs[0].status == "no_data"
    assert "not_measured" in codes(parsed_text(text))


def test_documents_after_each_other_are_runs_after_each_other() -> None:
    """A loop that appends to one file gives a run for each document, each with its first line."""
    found = parsed_text(content("refused.json") + content("udp.json"))
    assert [(r.line, r.status) for r in found.runs] == [(1, "failed"), (12, "complete")]


@pytest.mark.parametrize("prefix", ["0: ", "[1,0]<stdout>:", "2026-11-30T19:30:05Z "])
def test_a_launcher_prefix_changes_nothing(prefix: str) -> None:
    """A document behind launcher prefixes is read like the bare one."""
    text = "".join(prefix + line for line in content("tcp_one_stream.json").splitlines(keepends=True))
    assert rates(parsed_text(text)) == rates(parsed("tcp_one_stream.json"))


# text


def test_the_receiver_row_of_a_text() -> None:
    """76.5 Mbit/s were sent, 71.8 received on line 12."""
    assert run("tcp_text.log").samples == (Sample(line=12, bw_avg_gbit_s=0.0718),)
    assert (run("tcp_text.log").protocol, run("tcp_text.log").streams) == ("TCP", 1)


def test_both_directions_of_a_text() -> None:
    """The roles TX-C and RX-C are two runs."""
    assert rates(parsed("text_bidir.log")) == [39.9, 38.0]
    assert [r.tool_version for r in parsed("text_bidir.log").runs] == ["3.16", "3.16"]


def test_a_server_prints_a_session_for_each_client() -> None:
    """2.00 GBytes/sec are 2 x 2^30 byte/s; the second client broke off."""
    found = parsed("text_server.log")
    assert [(r.side, r.status) for r in found.runs] == [("server", "complete"), ("server", "failed")]
    assert found.runs[0].samples == (Sample(line=15, bw_avg_gbit_s=17.179869184),)


def test_streams_without_their_sum_are_not_added() -> None:
    """A text cut before [SUM] has no total, and none is made."""
    text = "".join(content("text_server.log").splitlines(keepends=True)[:14])
    assert (rates(parsed_text(text)), parsed_text(text).runs[0].status) == ([], "truncated")


def test_iperf2_is_another_tool() -> None:
    """The text of iperf 2 has no word that only iperf3 prints."""
    text = "Server listening on TCP port 5001\n[ ID] Interval       Transfer     Bandwidth\n"
    assert iperf3.SIGNATURE.search(text.encode()) is None


# any text


@pytest.mark.parametrize("name", ALL)
def test_the_signature_finds_every_log(name: str) -> None:
    """Every log here is recognised."""
    assert iperf3.SIGNATURE.search(content(name).encode())


@pytest.mark.parametrize("name", ALL)
def test_cutting_a_log_invents_nothing(name: str) -> None:
    """Cut behind any line, a log gives some of its own rates in their order, and no others."""
    lines, whole = content(name).splitlines(keepends=True), rates(parsed(name))
    for end in range(0, len(lines), 1 if len(lines) < 100 else 7):
        part = rates(parsed_text("".join(lines[:end])))
        assert part == whole[: len(part)]


@given(st.text(alphabet=st.sampled_from('{}[]":,\t\n 0159.-eE') | st.characters(), max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(text: str) -> None:
    """No text raises, and none without a word of iperf3 gives a run."""
    if not iperf3.SIGNATURE.search(text.encode("utf-8", "replace")):
        assert parsed_text(text.encode("utf-8", "replace").decode()).runs == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["start", "end", "intervals", "sum", "sum_received", "test_start", "bits_per_second", "bytes"]
            )
            | st.text(max_size=4),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON, JSON)
@settings(max_examples=200, deadline=None)
def test_any_document_is_read(end: object, start: object) -> None:
    """A document of any shape is one run or none, and its rate, if any, is a finite number."""
    begin = {"version": "iperf 3.12"} | (start if isinstance(start, dict) else {"timestamp": start})
    found = parsed_text(json.dumps({"start": begin, "intervals": [end], "end": end, "error": None}))
    assert all(rate is not None and abs(rate) < 1e300 for rate in rates(found))


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: the received rate of each document is right."""
    if not os.environ.get("RDMALAB_CORPUS"):
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    truth = json.loads((folder / "truth.json").read_text())["files"]
    for name, facts in truth.items():
        if expected := facts["expect"].get("bits_per_second_received"):
            assert rates(parsed_text((folder / name).read_text())) == [pytest.approx(expected / 1e9, rel=1e-9)]
