"""What the port-counters format promises, on counters of real runs, on logs written for it and on any text at all."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import port_counters
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "port_counters"
OWN = Path(__file__).parents[2] / "data" / "examples" / "softroce" / "repeats" / "state"
ALL = sorted(LOGS.iterdir()) + sorted(OWN.iterdir())


def parsed(text: str) -> Parsed:
    return port_counters.parse(Text.of(text))


def readings(name: str) -> tuple[Reading, ...]:
    return parsed((LOGS / name).read_text()).readings


def facts(found: tuple[Reading, ...]) -> list[tuple[str | None, str, float | None]]:
    return [(r.device, r.metric, r.value) for r in found]


def codes(found: Parsed) -> list[str]:
    return [note.code for note in found.notes]


def test_two_snapshots_stay_two_in_order() -> None:
    """A counter read before and after is two readings with their lines; no difference is taken."""
    pauses = [r for r in readings("ethtool_two_snapshots.txt") if r.metric == "rx_prio3_pause"]
    assert [(r.value, r.line, r.device) for r in pauses] == [(7, 8, "ens1f0np0"), (19, 15, "ens1f0np0")]


def test_every_counter_of_a_list_is_read() -> None:
    """Names without meaning to us and names with brackets are kept like the others; other output is not."""
    found = readings("ethtool_two_snapshots.txt")
    assert len(found) == 11
    assert ("ens1f0np0", "[0]: rx_ucast_packets", 12.0) in facts(found)
    assert ("ens1f0np0", "module_bad_shorted", 0.0) in facts(found)


def test_units_come_from_names() -> None:
    """rx_64_bytes_phy counts packets of that size, rx_queue_0_bytes counts the bytes of queue 0."""
    units = {r.metric: r.unit for r in readings("ethtool_two_snapshots.txt")}
    assert units["rx_packets"] == "packets"
    assert units["rx_bytes"] == units["rx_queue_0_bytes"] == units["tx_vport_rdma_unicast_bytes"] == "bytes"
    assert units["rx_64_bytes_phy"] == "packets"
    assert units["rx_prio3_pause_duration"] == "us"
    assert units["rx_prio3_pause"] is None


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("rx_1024_to_1518_bytes_phy", "packets"),
        ("tx_65_127_bytes", "packets"),
        ("port.rx_bytes", "bytes"),
        ("rx_prio0_bytes", "bytes"),
        ("port_rcv_data", "4-byte words"),
        ("PortXmitData", "4-byte words"),
        ("XmtData", "4-byte words"),
        ("rx_corrected_bits_phy", "bits"),
        ("rcvd_pkts", "packets"),
        ("rx_errors_phy", None),
    ],
)
def test_the_unit_of_a_name(name: str, unit: str | None) -> None:
    """Each spelling of bytes, packets and words is told from the others."""
    assert port_counters.unit_of(name) == unit


def test_a_value_that_no_float_holds_is_noted() -> None:
    """9007199254740993 is 2^53 + 1; the nearest number is stored and the note keeps the printed one."""
    found = parsed((LOGS / "ethtool_two_snapshots.txt").read_text())
    assert [r.value for r in found.readings if r.metric.startswith("tx_vport")] == [9007199254740992.0]
    (note,) = found.notes
    assert (note.line, note.code) == (7, "precision")
    assert "9007199254740993" in note.text


def test_what_64_bits_cannot_hold_is_no_counter() -> None:
    """The largest counter is 2^64 - 1; anything above is refused."""
    found = parsed("NIC statistics:\n     a_bytes: 18446744073709551615\n     b_bytes: 18446744073709551616\n")
    assert [r.metric for r in found.readings] == ["a_bytes"]
    assert codes(found) == ["precision", "no_counter"]


def test_a_list_without_any_header() -> None:
    """One name of a NIC shows what a bare list is: its lines before and after it are read too, without a device."""
    assert facts(readings("bare.txt")) == [
        (None, "link_down_events_phy", 1.0),
        (None, "rx_vport_rdma_unicast_packets", 12.0),
        (None, "rx_discards_phy", 3.0),
        (None, "module_unplug", 2.0),
    ]


def test_lists_of_other_things_are_left_alone() -> None:
    """Names and numbers alone are no counters."""
    assert parsed("steps: 5\nwarmup: 3\nranks: 8\n") == Parsed()
    assert parsed("step 5\nloss 3\n") == Parsed()


def test_sysfs_paths_name_device_and_port() -> None:
    """grep over sysfs: device and port from the path; what the card does not count is null, never 0."""
    assert facts(readings("sysfs.txt")) == [
        ("mlx5_0/1", "VL15_dropped", None),
        ("mlx5_0/1", "port_xmit_data", 123456789.0),
        ("mlx5_0/1", "port_xmit_wait", 55.0),
        ("mlx5_0/1", "lifespan", 10.0),
        ("mlx5_0/1", "np_cnp_sent", 1333.0),
        ("mlx5_1/1", "np_cnp_sent", 4.0),
        ("mlx5_0/1", "rate", 400.0),
        ("ens1f0np0", "tx_bytes", 98765.0),
    ]


def test_words_are_not_bytes() -> None:
    """port_xmit_data is kept as printed and says that it counts 4-byte words; the link rate has its printed unit."""
    units = {r.metric: r.unit for r in readings("sysfs.txt")}
    assert units["port_xmit_data"] == "4-byte words"
    assert (units["rate"], units["lifespan"]) == ("Gb/sec", "ms")


def test_rdma_statistic_as_text() -> None:
    """A line for each port, or a line for each counter with -p; single queue pairs and link states are no port."""
    found = parsed((LOGS / "rdma.txt").read_text())
    assert [(r.device, r.value) for r in found.readings if r.metric == "rx_write_requests"] == [
        ("mlx5_0/1", 5.0),
        ("mlx5_1/1", 6.0),
        ("mlx5_1/1", 7.0),
    ]
    assert ("mlx5_1/1", "duplicate_request", 1.0) in facts(found.readings)
    assert [(n.line, n.code) for n in found.notes] == [(5, "object_counters")]


def test_rdma_statistic_as_json() -> None:
    """Documents after each other are snapshots after each other; what counts single queue pairs is left out."""
    found = parsed((LOGS / "rdma_pretty.json").read_text())
    assert [(r.device, r.metric, r.value, r.line) for r in found.readings] == [
        ("rxe0/1", "sent_pkts", 496446.0, 1),
        ("rxe0/1", "duplicate_request", 18729.0, 1),
        ("rxe0/1", "sent_pkts", 496450.0, 8),
        ("rxe0/1", "duplicate_request", 18730.0, 8),
    ]
    assert codes(found) == ["object_counters"]


def test_own_counters_before_and_after() -> None:
    """The counters of the Soft-RoCE runs, in the three shapes that were saved."""
    after = parsed((OWN / "rdmastat-after.json").read_text()).readings
    assert (len(after), after[0].metric, after[0].value, after[0].device) == (15, "sent_pkts", 496446.0, "rxe0/1")
    listed = parsed((OWN / "hw_counters-after.txt").read_text()).readings
    assert {(r.metric, r.value) for r in listed} - {(r.metric, r.value) for r in after} == {("lifespan", 12.0)}
    nic = parsed((OWN / "ethtool-before.txt").read_text()).readings
    assert (len(nic), nic[1].metric, nic[1].value, nic[1].unit) == (14, "rx_queue_0_bytes", 426.0, "bytes")


def test_perfquery() -> None:
    """Counters of a port by its Lid; selectors are no counters."""
    found = readings("perfquery.txt")
    assert {r.device for r in found} == {"Lid 17 port 1"}
    assert [(r.metric, r.value, r.unit) for r in found] == [
        ("PortXmitData", 9049592493976.0, "4-byte words"),
        ("PortRcvPkts", 33038722564.0, "packets"),
        ("PortUnicastRcvPkts", 29306563974.0, "packets"),
        ("LinkDownedCounter", 1.0, None),
        ("PortXmitWait", 0.0, None),
    ]


def test_hosts_of_a_parallel_shell() -> None:
    """pdsh puts the host before every line: two hosts stay apart."""
    lines = ["NIC statistics:", "     rx_bytes: 1", "     rx_prio3_pause: 2"]
    text = "".join(f"{host}: {line}\n" for line in lines for host in ("node-a", "node-b"))
    assert [(r.host, r.value) for r in parsed(text).readings] == [
        ("node-a", 1.0),
        ("node-b", 1.0),
        ("node-a", 2.0),
        ("node-b", 2.0),
    ]


def test_a_torn_row_is_noted() -> None:
    """A row without its value gives a note, and so does a last line that may have lost digits."""
    found = parsed("NIC statistics:\n     rx_bytes: 12\n     rx_pack\n     tx_bytes: 34")
    assert facts(found.readings) == [(None, "rx_bytes", 12.0)]
    assert [(n.line, n.code) for n in found.notes] == [(3, "torn_row"), (4, "torn_row")]


def test_a_torn_document_is_noted() -> None:
    """A JSON list that lost its end gives nothing, and the next one is read."""
    text = (LOGS / "rdma_pretty.json").read_text().splitlines(keepends=True)
    found = parsed("".join(text[:5] + text[7:]))
    assert [r.value for r in found.readings] == [496450.0, 18730.0]
    assert codes(found) == ["cut_document", "object_counters"]


@pytest.mark.parametrize("end", ["\r\n", "\x1b[0m\n"])
@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_line_ends_and_colours_change_nothing(path: Path, end: str) -> None:
    """Text from a terminal or from Windows gives the same counters."""
    text = path.read_text()
    assert parsed(text.replace("\n", end)).readings == parsed(text).readings


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_cutting_a_log_invents_nothing(path: Path) -> None:
    """Cut behind any line, a log gives the beginning of its own counters, and no others."""
    whole, lines = parsed(path.read_text()).readings, path.read_text().splitlines(keepends=True)
    for end in range(len(lines)):
        part = parsed("".join(lines[:end])).readings
        assert part == whole[: len(part)]


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_the_signature_finds_every_log(path: Path) -> None:
    """Every log here is recognised, also with the line ends of Windows."""
    assert port_counters.SIGNATURE.search(path.read_bytes())
    assert port_counters.SIGNATURE.search(path.read_bytes().replace(b"\n", b"\r\n"))


PIECES = st.sampled_from([line for path in ALL for line in path.read_text().splitlines()])


@given(st.lists(PIECES | st.text(max_size=40), max_size=25))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(lines: list[str]) -> None:
    """No order of lines raises, and every value stands in the line that it names."""
    text = "\n".join(lines)
    for reading in parsed(text).readings:
        assert reading.line is not None
        if reading.value is not None and not text.split("\n")[reading.line - 1].lstrip().startswith("["):
            assert reading.metric in text.split("\n")[reading.line - 1]


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: all counters and those that were checked by hand."""
    if "RDMALAB_CORPUS" not in os.environ:
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    for name, entry in json.loads((folder / "truth.json").read_text())["files"].items():
        if entry["format"].startswith("ethtool_S"):
            found = parsed((folder / name).read_text())
            values = {r.metric: r.value for r in found.readings}
            expected = entry["expect"]
            assert found.notes == ()
            assert len(found.readings) == expected.get("counters", 38)
            assert not any(re.fullmatch(r"[rt]x_prio\d_pause.*", metric) for metric in values)
            checked = {k: v for k, v in expected.items() if k in values}
            assert checked
            assert {k: values[k] for k in checked} == checked
