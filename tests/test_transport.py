"""What the judgement of transports promises, on facts without any log."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdmalab import transport
from rdmalab.model import Evidence
from rdmalab.transport import Communicator, Device, Facts, Failure, Hop, judge

HERE = "node-a:10"
LINE = Evidence(1, "a line")


def hop(net: str = "IB", device: int = 0, gdr: bool = True, communicator: str | None = None) -> Hop:
    return Hop(HERE, communicator, net, device, gdr)


def facts(*hops: Hop, devices: dict[int, Device] | None = None, **others: object) -> Facts:
    found = Facts(hops=Counter(hops), hop_lines=dict.fromkeys(hops, LINE))
    if devices is not None:
        found.devices[HERE] = devices
        found.device_lines[HERE] = LINE
    for name, value in others.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("net", "verdict"),
    [
        ("IB", "roce"),
        ("IBext", "roce"),
        ("IBext_v8", "roce"),
        ("gIB", "roce"),
        ("NCCL RDMA Plugin v9", "roce"),
        ("UCX", "roce"),
        ("AWS Libfabric", "ofi"),
        ("Libfabric", "ofi"),
        ("Socket", "socket"),
        ("FastSocket", "socket"),
        ("FasTrak", "socket"),
        ("Something new", "rdma_unspecified"),
    ],
)
def test_every_net_has_its_kind(net: str, verdict: str) -> None:
    """Verbs nets take the link layer of their device; a net that is not known but has GPUDirect RDMA is RDMA."""
    assert judge(facts(hop(net), devices={0: Device("mlx5_0", "RoCE")})).verdict == verdict


def test_an_unknown_net_without_gdr_is_unknown() -> None:
    """Nothing is guessed of a net without a name that is known."""
    assert judge(facts(hop("Something new", gdr=False))).verdict == "unknown"


def test_without_a_list_the_link_layer_is_not_known() -> None:
    """NET/IB alone is InfiniBand or RoCE."""
    assert judge(facts(hop())).verdict == "rdma_unspecified"


def test_omni_path_is_not_infiniband() -> None:
    """hfi1 devices print /IB and are Omni-Path."""
    assert judge(facts(hop(), devices={0: Device("hfi1_0", "IB")})).verdict == "rdma_unspecified"


def test_a_merged_device_takes_the_layer_of_all() -> None:
    """Device 8 was made of ports later: clear where all ports are alike, open where they are not."""
    alike = {0: Device("mlx5_0", "IB"), 1: Device("mlx5_1", "IB")}
    assert judge(facts(hop(device=8), devices=alike)).verdict == "ib"
    assert judge(facts(hop(device=8), devices=alike | {2: Device("mlx5_2", "RoCE")})).verdict == "rdma_unspecified"


def test_another_process_lends_its_list_only_where_all_agree() -> None:
    """A process without a list of its own takes that of the others, if they are the same."""
    found = facts(hop())
    found.devices = {"node-b:1": {0: Device("mlx5_0", "IB")}, "node-c:1": {0: Device("mlx5_0", "IB")}}
    found.device_lines = dict.fromkeys(found.devices, LINE)
    assert judge(found).verdict == "ib"
    found.devices["node-d:1"] = {0: Device("mlx5_0", "RoCE")}
    assert judge(found).verdict == "rdma_unspecified"


def test_the_larger_number_of_connections_wins() -> None:
    """Two kinds of connections: the larger one is the verdict, both are shown."""
    found = facts(hop("Socket", gdr=False), hop(), hop(), devices={0: Device("mlx5_0", "IB")})
    found.hop_lines[hop()] = Evidence(2, "ib")
    assert judge(found).verdict == "ib"
    assert judge(found).gdr == "mixed"
    assert {e.line for e in judge(found).evidence} == {1, 2}


def test_the_root_cause_of_a_fallback_stands_first() -> None:
    """Reasons are told in the order of cause and effect, not of the log."""
    found = facts(hop("Socket", gdr=False), fallbacks={"no_device": LINE, "open_failed": LINE, "disabled": LINE})
    reasons = "NCCL_IB_DISABLE=1; ibv_open_device failed; NET/IB found no device"
    assert (judge(found).fallback, judge(found).fallback_reason) == (True, reasons)


def test_tcp_offload_is_no_fallback() -> None:
    """GPUDirect-TCPXO (FasTrak) is TCP on purpose, though NET/IB found no device."""
    assert judge(facts(hop("FasTrak"), fallbacks={"no_device": LINE})).fallback is False


def test_tcp_inside_a_node_is_no_fallback() -> None:
    """Sockets between ranks of one node say nothing of the network."""
    found = facts(hop("Socket", gdr=False), fallbacks={"no_device": LINE}, communicators={"c": Communicator(8, 1)})
    assert judge(found).fallback is False


def test_one_node_must_hold_for_every_communicator() -> None:
    """One communicator over two nodes without a connection leaves the verdict open."""
    assert judge(facts(communicators={"a": Communicator(8, 1)})).verdict == "intra_node"
    assert judge(facts(communicators={"a": Communicator(8, 1), "b": Communicator(16, 2)})).verdict == "unknown"
    assert judge(facts(communicators={"a": Communicator(8, None, {0, 1}, {"node-a"})})).verdict == "unknown"


def test_queue_pairs_prove_the_link_layer() -> None:
    """Without connections a queue pair with a GID is RoCE, with a LID InfiniBand, with both it is open."""
    assert judge(facts(queue_pairs={"roce": LINE})).verdict == "roce"
    assert judge(facts(queue_pairs={"ib": LINE})).verdict == "ib"
    assert judge(facts(queue_pairs={"ib": LINE, "roce": LINE})).verdict == "rdma_unspecified"


def test_a_failed_device_is_found_by_name_or_index() -> None:
    """An error names a device by either; its link layer is that of the list."""
    for device in ("mlx5_3", 3):
        found = facts(failures={Failure(HERE, device, False): LINE}, devices={3: Device("mlx5_3", "IB")})
        assert judge(found).verdict == "ib"


def test_evidence_is_a_handful() -> None:
    """However many reasons there are, at most six lines are quoted."""
    many = {Failure(f"node:{n}", None, False): Evidence(n, "x") for n in range(1, 100)}
    assert len(judge(facts(failures=many)).evidence) == 6


@given(
    st.lists(
        st.builds(
            Hop,
            st.sampled_from(["a:1", "b:2", ""]),
            st.sampled_from(["c1", "c2", None]),
            st.sampled_from(["IB", "Socket", "Libfabric", "?"]),
            st.integers(0, 3),
            st.booleans(),
        )
    ),
    st.dictionaries(
        st.sampled_from(["a:1", "b:2"]),
        st.dictionaries(
            st.integers(0, 3), st.builds(Device, st.text(), st.sampled_from(["IB", "RoCE", "UNSPECIFIED"]))
        ),
    ),
    st.dictionaries(
        st.sampled_from(["c1", "c2"]),
        st.builds(Communicator, st.none() | st.integers(1, 9), st.none() | st.integers(1, 3)),
    ),
)
def test_any_facts_are_judged(
    hops: list[Hop], devices: dict[str, dict[int, Device]], communicators: dict[str, Communicator]
) -> None:
    """Every set of facts gets a verdict; one on connections has evidence and says what GPUDirect RDMA was."""
    found = facts(*hops)
    found.devices, found.communicators = devices, communicators
    verdict = judge(found)
    assert verdict.verdict in ("ib", "roce", "ofi", "socket", "intra_node", "rdma_unspecified", "unknown")
    assert (verdict.gdr is None) == (not hops)
    assert not hops or verdict.evidence


def test_the_judgement_knows_only_the_model() -> None:
    """Of this package only the model is imported."""
    tree = ast.parse(Path(transport.__file__).read_text())
    own = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("rdmalab")}
    assert own == {"rdmalab.model"}
