"""What the NCCL log format promises, on logs written for it and on any text at all."""

import json
import os
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import nccl_info
from rdmalab.model import Parsed, Transport
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "nccl_info"
ALL = sorted(path.stem for path in LOGS.iterdir())


def content(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


def parsed_text(text: str) -> Parsed:
    return nccl_info.parse(Text.of(text))


@cache
def parsed(name: str) -> Parsed:
    return parsed_text(content(name))


def transport_of(found: Parsed) -> Transport:
    assert found.transport is not None
    return found.transport


def transport(name: str) -> Transport:
    return transport_of(parsed(name))


def texts(found: Parsed, code: str) -> list[str]:
    return [note.text for note in found.notes if note.code == code]


# the transport


def test_the_device_of_the_connection_decides() -> None:
    """IB and RoCE ports are listed together; the connections use the RoCE ones, so the verdict is RoCE."""
    found = transport("roce_beside_ib")
    assert (found.verdict, found.gdr, found.fallback) == ("roce", "all", False)
    assert [e.line for e in found.evidence] == [14, 6]


def test_the_list_of_the_same_process_decides() -> None:
    """Device 0 is InfiniBand on node-a and RoCE on node-b, where a connection uses it."""
    text = "\n".join(line for line in content("roce_beside_ib").splitlines() if "IB/0/" in line or "Using [" in line)
    assert transport_of(parsed_text(text + "\n")).verdict == "roce"
    other = text.replace("node-b:300:400 [0] NCCL INFO Channel", "node-a:100:200 [0] NCCL INFO Channel")
    assert transport_of(parsed_text(other + "\n")).verdict == "ib"


def test_the_list_of_a_ring_is_no_connection() -> None:
    """`Channel 00/02 :    0   1` lists the order of a ring: 4 connections, not 5."""
    assert texts(parsed("roce_beside_ib"), "net_connections") == ["Connections via NET/IB with GPUDirect RDMA: 4."]


def test_the_roce_version_is_not_claimed() -> None:
    """Version 1 or 2 is never printed; the GID index is noted for those who can look it up."""
    assert texts(parsed("roce_beside_ib"), "gid_index") == [
        "GID index 3 is used; whether it is RoCE v1 or v2 is not printed."
    ]


def test_tcp_without_a_device_is_a_fallback() -> None:
    """Connections via Socket between two nodes, and NET/IB found nothing: a fallback with its reason."""
    found = transport("socket_fallback")
    assert (found.verdict, found.gdr, found.fallback) == ("socket", "none", True)
    assert found.fallback_reason == "NET/IB found no device"


def test_tcp_on_purpose_names_the_setting() -> None:
    """NCCL_IB_DISABLE=1 is the reason that stands first; =0 disables nothing."""
    setting = "0: node-a:10:11 [0] NCCL INFO NCCL_IB_DISABLE set by environment to {}.\n"
    found = transport_of(parsed_text(setting.format(1) + content("socket_fallback")))
    assert found.fallback_reason == "NCCL_IB_DISABLE=1; NET/IB found no device"
    found = transport_of(parsed_text(setting.format(0) + content("socket_fallback")))
    assert found.fallback_reason == "NET/IB found no device"


def test_tcp_without_a_reason_is_no_fallback() -> None:
    """Where nothing says why, TCP is what was wanted."""
    text = "\n".join(line for line in content("socket_fallback").splitlines() if "No device" not in line)
    assert (transport_of(parsed_text(text + "\n")).verdict, transport_of(parsed_text(text + "\n")).fallback) == (
        "socket",
        False,
    )


def test_a_device_that_cannot_be_opened_is_a_fallback() -> None:
    """Lines of 2.7 without host or process are enough."""
    found = transport("open_device_failed")
    assert (found.verdict, found.fallback, found.gdr) == ("socket", True, None)
    assert found.fallback_reason == "ibv_open_device failed; NET/IB found no device"


def test_one_node_uses_no_network() -> None:
    """`Using network Socket` and `No device found` on one node are neither TCP nor a fallback."""
    found = transport("one_node")
    assert (found.verdict, found.gdr, found.fallback) == ("intra_node", None, False)
    assert [e.line for e in found.evidence] == [3, 4]


def test_one_node_is_seen_without_being_said() -> None:
    """Before 2.20 no line counts the nodes: all ranks of one host show it, some of them do not."""
    assert transport("one_node_before_2_20").verdict == "intra_node"
    some = content("one_node_before_2_20").replace("nranks 2", "nranks 4")
    assert transport_of(parsed_text(some)).verdict == "unknown"


def test_libfabric_is_named_with_its_provider() -> None:
    """The net is Libfabric, the provider behind it EFA."""
    found = transport("efa")
    assert (found.verdict, found.provider, found.gdr) == ("ofi", "efa", "all")


def test_communicators_that_differ_are_listed() -> None:
    """GPUDirect RDMA on the 16 ranks only, none on 8 of them, and a communicator inside the node."""
    found = transport("gdr_by_communicator")
    assert (found.verdict, found.gdr) == ("ib", "mixed")
    assert [(c["ranks"], c["nodes"], c["verdict"], c["gdr"], c["connections"]) for c in found.communicators] == [
        (16, 2, "ib", "all", 2),
        (8, 2, "ib", "none", 1),
        (8, 1, "intra_node", None, 0),
    ]


def test_communicators_that_are_alike_are_not_listed() -> None:
    """One kind of communicator needs no list."""
    assert transport("roce_beside_ib").communicators == ()


def test_rccl_names_the_communicator_behind_the_connection() -> None:
    """RCCL prints its version and appends the communicator to a connection."""
    found = transport("rccl")
    assert (found.verdict, found.gdr, found.fallback) == ("socket", "none", True)
    assert texts(parsed("rccl"), "library_version") == ["RCCL 2.22.3-HEAD:271856d"]


def test_a_log_of_warnings_proves_nothing() -> None:
    """Without a line on the transport the verdict is unknown."""
    found = transport_of(parsed_text("node-a:10:11 [0] init.cc:1 NCCL WARN Cuda failure 'x'\n"))
    assert (found.verdict, found.evidence) == ("unknown", ())


def test_this_makes_no_run() -> None:
    """A debug log explains runs, it is none."""
    assert all(parsed(name).runs == () for name in ALL)


# damage


def test_torn_connections_are_not_counted() -> None:
    """Of five connections two are whole; a torn one would have said nothing of GPUDirect RDMA."""
    found = parsed("torn")
    assert texts(found, "net_connections") == ["Connections via NET/IB with GPUDirect RDMA: 2."]
    assert [note.line for note in found.notes if note.code == "torn_row"] == [3, 4, 5]
    assert transport("torn").gdr == "all"


def test_an_unended_line_may_be_torn() -> None:
    """A log that ends in mid-line may have lost `/GDRDMA`: its last connection is not counted."""
    text = (
        content("torn").splitlines()[0] + "\nnode-a:10:11 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [send] via NET/IB/0"
    )
    assert transport_of(parsed_text(text)).verdict == "unknown"


def test_a_host_in_mid_line_is_not_glued() -> None:
    """What stands before a name in mid-line is not part of the name of a host."""
    first, second = "node-a:10:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/C", content("one_node")
    assert texts(parsed_text(second + first + second), "hosts") == ["node-a"]


# failures


def test_the_first_status_of_a_process_is_the_cause() -> None:
    """Three generations of the line; the flush (5) that follows in the first process is not told."""
    assert texts(parsed("status_12"), "ib_completion_error") == [
        "status 12 (IBV_WC_RETRY_EXC_ERR): transport retries exhausted: link, GID, PFC or a dead peer; "
        "vendor error 129; peer 10.0.0.2<53249>",
        "2026-03-03 12:11:38 status 4 (IBV_WC_LOC_PROT_ERR): local protection: memory registration, GPUDirect RDMA; "
        "vendor error 81; peer 10.0.0.1<51161>; Send; device mlx5_1",
        "2026-03-03 12:11:39 status 13 (IBV_WC_RNR_RETRY_EXC_ERR): the receiver was not ready; "
        "vendor error 135; peer 10.0.0.1<51161>; device mlx5_2",
    ]


def test_addresses_in_an_error_show_roce() -> None:
    """GIDs are printed with an error on Ethernet only; without them an error shows verbs and no more."""
    assert transport("status_12").verdict == "roce"
    assert transport("status_12").evidence[0].line == 3
    assert transport_of(parsed_text(content("status_12").splitlines()[0] + "\n")).verdict == "rdma_unspecified"


def test_the_device_of_an_error_is_looked_up() -> None:
    """Without connections, the device that failed is found in the list of devices."""
    text = "node-c:30:31 [1] NCCL INFO NET/IB : Using [0]mlx5_2:1/IB [RO]; OOB eth0:10.0.0.3<0>\n"
    assert transport_of(parsed_text(text + content("status_12").splitlines()[3] + "\n")).verdict == "ib"


def test_other_failures_are_told_once_each() -> None:
    """Fail-over with its stamp, link event, call, bootstrap, hang; the same warning of two processes once."""
    found = parsed("failures")
    assert texts(found, "port_failover")[0].startswith("2026-05-04 19:55:27 NET/IB: Device 0 marked as failed.")
    assert texts(found, "link_event") == ["node-a:10: async event : port error"]
    assert texts(found, "ib_call_failed") == ["Call to ibv_modify_qp failed with 110 Connection timed out"]
    assert texts(found, "bootstrap_failed") == ["socketStartConnect: exceeded retries (20000)"]
    assert texts(found, "nccl_warning") == ["Cuda failure 'out of memory'"]
    assert [text.split(":")[0] for text in texts(found, "watchdog_timeout")] == ["rank 7"]
    assert transport("failures").verdict == "rdma_unspecified"


def test_the_noise_of_a_tear_down_is_summed_up() -> None:
    """Warnings that every successful run of some versions ends with are one note, and no failure."""
    found = parsed("one_node")
    assert texts(found, "benign_warnings") == ["Warnings of a normal tear-down, alone no sign of failure: 3."]
    assert texts(found, "nccl_warning") == []


def test_settings_versions_and_hosts_are_noted_once() -> None:
    """Numbers lose the dot that NCCL puts behind them, texts keep theirs."""
    found = parsed_text(content("roce_beside_ib") * 2)
    assert texts(found, "nccl_setting") == ["NCCL_IB_GID_INDEX=3", "NCCL_SOCKET_IFNAME=eth0"]
    assert texts(found, "library_version") == ["NCCL 2.27.3+cuda12.9"]
    assert texts(found, "hosts") == ["node-a, node-b"]


def test_the_devices_of_a_host_are_noted_and_those_in_use() -> None:
    """Found, used by the host, used by the process of a GPU; the device of another rank tells nothing of a GPU."""
    a, b = "node-a:10:11 [0] NCCL INFO ", "node-a:12:13 [1] NCCL INFO "
    found = parsed_text(
        f"{a}NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:192.0.2.1<0>\n"
        f"{a}comm 0xa rank 0 nranks 4 cudaDev 0 nvmlDev 4 busId 1b000 commId 0xc - Init START\n"
        f"{a}comm 0xa rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n"
        f"{b}comm 0xa rank 1 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0\n"
        f"{a}Channel 00/0 : 2[4] -> 0[4] [receive] via NET/IB/1/GDRDMA\n"
        f"{a}Channel 01/0 : 0[4] -> 3[5] [send] via NET/IB/0(1)/GDRDMA\n"
        f"{a}NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 77 mtu 3 GID 3 (0/FF)\n"
    )
    assert texts(found, "rdma_devices") == ["node-a: mlx5_0/IB, mlx5_1/IB"]
    assert texts(found, "rdma_devices_used") == ["node-a: 2 of 2 local ranks, over mlx5_1, mlx5_0"]
    assert texts(found, "gpu_device") == ["node-a: GPU 4 over mlx5_1"]
    assert texts(found, "path_mtu") == ["node-a: 1024"]
    assert [n.line for n in found.notes if n.code == "gpu_device"] == [5]


def test_each_host_says_why_it_uses_no_rdma() -> None:
    """Once a host and reason; a line without a frame is that of a host without a name."""
    lines = [f"node-{x}:1:1 [0] NCCL INFO NET/IB : No device found.\n" for x in "aab"]
    found = parsed_text("".join(lines) + "NCCL INFO NET/IB : No device found.\n")
    assert texts(found, "rdma_not_used") == [f"{x}: NET/IB found no device" for x in ("node-a", "node-b", "a host")]


def test_many_notes_of_a_kind_are_cut_short() -> None:
    """Twenty are listed, the number of all is told."""
    line = "node-a:{0}:{0} [0] net_ib.cc:1 NCCL WARN NET/IB : Got async event : port error\n"
    found = texts(parsed_text("".join(line.format(pid) for pid in range(50))), "link_event")
    assert len(found) == 21
    assert "There are 50 of these; the first 20 are listed." in found


# any text


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("prefix", ["12: ", "[1,0]<stdout>:", "(RayWorkerWrapper pid=9, ip=10.0.0.1) ", "\x1b[32m"])
def test_dress_changes_nothing(name: str, prefix: str) -> None:
    """Launcher prefixes, colours and carriage returns leave verdict and connections as they are."""
    ending = "\x1b[0m\r\n" if prefix == "\x1b[32m" else "\r\n"
    found = parsed_text("".join(prefix + line + ending for line in content(name).splitlines()))
    bare, dressed = transport(name), transport_of(found)
    assert (dressed.verdict, dressed.gdr, dressed.fallback) == (bare.verdict, bare.gdr, bare.fallback)
    assert texts(found, "net_connections") == texts(parsed(name), "net_connections")


@pytest.mark.parametrize("name", ALL)
def test_evidence_is_quoted_from_the_log(name: str) -> None:
    """Every verdict but unknown has evidence, and each piece stands in the log where it says."""
    lines = content(name).splitlines()
    assert transport(name).evidence
    assert all(lines[e.line - 1].strip() == e.text for e in transport(name).evidence)


@pytest.mark.parametrize("name", ALL)
def test_cutting_a_log_invents_nothing(name: str) -> None:
    """Cut behind any line, a log proves no network that the whole one does not prove; only what it lacks is open."""
    lines = content(name).splitlines(keepends=True)
    allowed = {transport(name).verdict, "unknown", "rdma_unspecified", "intra_node"}
    for end in range(len(lines)):
        found = transport_of(parsed_text("".join(lines[:end])))
        told_only = found.verdict == "socket" and found.gdr is None  # by two lines, before any connection
        assert told_only or found.verdict in allowed


PIECES = st.sampled_from([line for name in ALL for line in (LOGS / f"{name}.log").read_text().splitlines()])


@given(st.lists(PIECES | st.text(max_size=40), max_size=25), st.sampled_from(["\n", "", " "]))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(pieces: list[str], glue: str) -> None:
    """No order of lines, whole or glued together, raises; evidence stays within the text."""
    text = glue.join(pieces).encode("utf-8", "replace").decode()
    found = parsed_text(text)
    assert all(1 <= e.line <= text.count("\n") + 1 for e in transport_of(found).evidence)


def test_a_hostile_line_takes_no_time() -> None:
    """A line without end of characters that names are made of is read in well under a second."""
    begin = time.perf_counter()
    parsed_text("NCCL WARN " + "a.-" * 1_000_000 + "NCCL INFO via NET/" + "x-" * 1_000_000 + "\n")
    assert time.perf_counter() - begin < 2


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named: verdict, GPUDirect RDMA and fallback are right."""
    if not os.environ.get("RDMALAB_CORPUS"):
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    checked = 0
    for name, facts in json.loads((folder / "truth.json").read_text())["files"].items():
        expected = facts["expect"]
        if "verdict" in expected:
            checked += 1
            found = transport_of(parsed_text((folder / name).read_text()))
            assert found.verdict == expected["verdict"], name
            assert expected.get("gdr") not in ("all", "none", "mixed") or found.gdr == expected["gdr"], name
            assert found.fallback is expected.get("fallback", False), name
            assert found.provider == expected.get("provider"), name
    assert checked == 14
