"""The configuration audit: each rule fires on its own lines and stays silent on their clean twin."""

import json
import os
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from rdmalab.audit import Audit, Finding
from rdmalab.cli import main
from rdmalab.ingest import ingest
from rdmalab.lab import Lab
from rdmalab.pages.configuration_audit import ConfigurationAudit
from rdmalab.rules import RULES
from rdmalab.rules._base import SEVERITIES
from rdmalab.store import Store
from tests.conftest import FALLBACK, INFINIBAND, ONE_NODE, ROCE, Bench, channels, nccl_log, perftest_log

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
CAMPAIGN = """\
[campaign]
name = "spring"
title = "Spring"
[[fabric]]
name = "roce-400g"
label = "RoCE 400G"
family = "roce"
link_rate_gbit_s = 400
ports_per_node = 1
mtu_bytes = 4096
logs = ["roce/**"]
[[fabric]]
name = "tcp"
label = "TCP"
family = "tcp"
logs = ["tcp/**"]
"""
NO_MTU = CAMPAIGN.replace("mtu_bytes = 4096\n", "").replace("ports_per_node = 1\n", "ports_per_node = 2\n")
A = "node-a:10:11 [0] NCCL INFO "
VERSION = f"{A}NCCL version 2.28.7+cuda12.9\n"
SOCKETS = channels("Socket/0")
TWO_HCAS = (
    f"{A}NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [2]mlx5_2:1/IB [RO]; OOB eth0:192.0.2.1<0>\n"
    f"{A}comm 0xa rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n"
    "node-a:12:13 [1] NCCL INFO comm 0xb rank 1 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0\n"
    f"{A}Channel 00/0 : 2[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"
)
TOPO = """\
\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV18\tPIX\tSYS\t0-55\t0
GPU1\tNV18\t X \tSYS\tPIX\t0-55\t0

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
GPU_0 = f"{A}comm 0xa rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xc - Init START\n"
SMI = (
    "index, utilization.gpu [%], pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, "
    "pcie.link.width.max\n"
)
EVENT = "node-a:10:11 [0] net_ib.cc:93 NCCL WARN NET/IB : Got async event : {0}\n"
LSPCI = """\
17:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed {speed}GT/s, Width x{width}
00:1c.0 PCI bridge: Intel Corporation Device 7a38
\t\tLnkCap:\tPort #1, Speed 8GT/s, Width x4, ASPM L1
\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x1 (downgraded)
"""
DEVINFO = "".join(
    f"hca_id:\t{name}\n\t\tport:\t1\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{mtu}\n"
    for name, mtu in (("mlx5_0", "{0}"), ("mlx5_mgmt", "1024 (3)"))
)
GIDS = """\
DEV	PORT	INDEX	GID					IPv4  		VER	DEV
---	----	-----	---					------------  	---	---
mlx5_0	1	1	fe80:0000:0000:0000:0e42:a1ff:fead:479a			v2	ens1
mlx5_0	1	2	0000:0000:0000:0000:0000:ffff:c000:020b	192.0.2.11  	v1	ens1
mlx5_0	1	3	0000:0000:0000:0000:0000:ffff:c000:020b	192.0.2.11  	v2	ens1
n_gids_found=3
"""


def setting(text: str) -> str:
    return nccl_log(info=f"{ROCE}{A}{text}\n")


def perftest(mtu: int, gid: int | None = None, device: str = "mlx5_0") -> str:
    text = perftest_log("client", link="Ethernet").replace("4096[B]", f"{mtu}[B]").replace("mlx5_0", device)
    return text.replace(" Max inline", f" GID index       : {gid}\n Max inline") if gid is not None else text


def counters(**values: int) -> dict[str, str]:
    """The counters of a port before and after, from 5 on."""
    head = "$ ethtool -S ens1\nNIC statistics:\n     rx_packets: {0}\n"
    before = head.format(1000) + "".join(f"     {name}: 5\n" for name in values)
    after = head.format(9000) + "".join(f"     {name}: {5 + rise}\n" for name, rise in values.items())
    return {"roce/before.txt": before, "roce/after.txt": after}


@dataclass
class Case:
    """Logs that make a rule fire, and their clean twin, which it must judge and find nothing in."""

    rule: str
    severity: str
    says: str  # a part of the sentence
    line: str  # a part of one of the quoted lines
    dirty: dict[str, str]
    clean: dict[str, str]
    campaign: str = CAMPAIGN
    more: set[str] = field(default_factory=set)  # other rules that the same lines make fire


CASES = [
    Case(
        "sockets-on-rdma-fabric",
        "wrong",
        "over TCP sockets (NET/IB found no device)",
        "via NET/Socket/0",
        {"roce/1.log": nccl_log(info=FALLBACK)},
        {"roce/1.log": nccl_log(info=ROCE), "tcp/1.log": nccl_log(info=FALLBACK)},
    ),
    Case(
        "sockets-beside-hcas",
        "wrong",
        "lists RDMA devices (mlx5_0/RoCE)",
        "NET/IB : Using [0]mlx5_0:1/RoCE",
        {"1.log": nccl_log(info=channels("Socket/0", "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:192.0.2.1<0>"))},
        {"1.log": nccl_log(info=SOCKETS)},
        campaign="",
    ),
    Case(
        "sockets-where-others-find-hcas",
        "check",
        "On node01 NCCL found no RDMA device",
        "NET/IB : No device found.",
        {"1.log": nccl_log(info=FALLBACK), "2.log": nccl_log(info=ROCE.replace("node02", "node03"))},
        {"1.log": nccl_log(info=FALLBACK), "2.log": nccl_log(info=ROCE.replace("node0", "other0"))},
        campaign="",
    ),
    Case(
        "hca-not-opened",
        "wrong",
        "could not open it",
        "Call to ibv_open_device failed",
        {
            "1.log": "NCCL WARN Call to ibv_open_device failed\nNCCL INFO NET/IB : No device found.\n"
            "NCCL INFO Using network Socket\n"
        },
        {"1.log": nccl_log(info=f"{ROCE}{A}Call to ibv_open_device failed\n")},
        campaign="",
    ),
    Case(
        "sockets-forced",
        "wrong",
        "NCCL_IB_DISABLE=1 is set",
        "NCCL_IB_DISABLE set by environment to 1.",
        {"roce/1.log": setting("NCCL_IB_DISABLE set by environment to 1.")},
        {
            "roce/1.log": setting("NCCL_IB_DISABLE set by environment to 0."),
            "tcp/1.log": nccl_log(info=f"{SOCKETS}{A}NCCL_IB_DISABLE set by environment to 1.\n"),
        },
    ),
    Case(
        "sockets-forced",
        "check",
        "NCCL_NET=Socket is set",
        "NCCL_NET set by environment to Socket",
        {"1.log": nccl_log(info=f"{SOCKETS}{A}NCCL_NET set by environment to Socket\n")},
        {
            "1.log": nccl_log(info=f"{ROCE}{A}NCCL_NET set by environment to IB\n"),
            "2.log": nccl_log(nodes=1, info=f"{ONE_NODE}{A}NCCL_NET set by environment to Socket\n"),
        },
        campaign="",
    ),
    Case(
        "algorithm-forced",
        "check",
        "NCCL_ALGO=Tree is forced",
        "NCCL_ALGO set by environment to Tree",
        {"roce/1.log": setting("NCCL_ALGO set by environment to Tree")},
        {"roce/1.log": setting("NCCL_NTHREADS set by environment to 512.")},
    ),
    Case(
        "local-path-off",
        "check",
        "NCCL_P2P_DISABLE=1 is set",
        "NCCL_P2P_DISABLE set",
        {"roce/1.log": setting("NCCL_P2P_DISABLE set by environment to 1.")},
        {"roce/1.log": setting("NCCL_P2P_DISABLE set by environment to 0.")},
    ),
    Case(
        "nvls-off",
        "note",
        "NCCL_NVLS_ENABLE=0 is set",
        "NCCL_NVLS_ENABLE set",
        {"roce/1.log": setting("NCCL_NVLS_ENABLE set by environment to 0.")},
        {"roce/1.log": setting("NCCL_NVLS_ENABLE set by environment to 1.")},
    ),
    Case(
        "no-gpudirect",
        "check",
        "No connection over NET/IB",
        "[receive] via NET/IB/0",
        {"roce/1.log": nccl_log(info=ROCE.replace("/GDRDMA", ""))},
        {"roce/1.log": nccl_log(info=ROCE)},
    ),
    Case(
        "mixed-gpudirect",
        "check",
        "others have not",
        "via NET/IB/0/GDRDMA",
        {"roce/1.log": nccl_log(info=ROCE + f"{A}Channel 01/0 : 15[7] -> 0[0] [receive] via NET/IB/0\n")},
        {"roce/1.log": nccl_log(info=ROCE)},
    ),
    Case(
        "one-of-several-hcas",
        "check",
        "All 2 ranks of a node use mlx5_0, and NCCL found 2 such",
        "Using [0]mlx5_0",
        {"roce/1.log": TWO_HCAS},
        {"roce/1.log": TWO_HCAS + f"{A}Channel 01/0 : 2[0] -> 0[0] [receive] via NET/IB/1/GDRDMA\n"},
    ),
    Case(
        "fewer-hcas-than-ports",
        "check",
        "NCCL found 1 RDMA ports on a node, the campaign file states 2",
        "Using [0]mlx5_0",
        {"roce/1.log": nccl_log(info=ROCE)},
        {"roce/1.log": TWO_HCAS.replace("NET/IB/0", "NET/IB/1") + TWO_HCAS},
        campaign=NO_MTU,
    ),
    Case(
        "versions-differ",
        "check",
        "roce-400g: 2.28.7; tcp: 2.27.3",
        "NCCL version 2.27.3",
        {"roce/1.log": nccl_log(info=VERSION), "tcp/1.log": nccl_log(info=VERSION.replace("28.7", "27.3"))},
        {"roce/1.log": nccl_log(info=VERSION), "tcp/1.log": nccl_log(info=VERSION, pid=7)},
    ),
    Case(
        "mtu-below-declared",
        "wrong",
        "an RDMA MTU of 1024 bytes, the campaign file states 4096",
        "Mtu             : 1024[B]",
        {"roce/1.log": perftest(1024), "tcp/2.log": perftest(512)},
        {"roce/1.log": perftest(4096)},
    ),
    Case(
        "mtu-below-declared",
        "wrong",
        "an RDMA MTU of 2048 bytes",
        "qpn 77 mtu 4 GID 3",
        {"roce/1.log": nccl_log(info=f"{ROCE}{A}NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 77 mtu 4 GID 3 (0/FF)\n")},
        {"roce/1.log": nccl_log(info=f"{ROCE}{A}NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 77 mtu 5 GID 3 (0/FF)\n")},
    ),
    Case(
        "mtu-below-others",
        "check",
        "The test over mlx5_0 ran at an RDMA MTU of 1024 bytes, others at 4096",
        "1024[B]",
        {"roce/1.log": perftest(1024), "roce/2.log": perftest(4096)},
        {
            "roce/1.log": perftest(4096),
            "roce/2.log": perftest(4096, gid=3),
            "roce/3.log": perftest(1024, device="mlx5_9"),
        },
        campaign=NO_MTU,
    ),
    Case(
        "active-mtu-below-max",
        "check",
        "The port mlx5_0/1 runs at an active MTU of 1024 bytes, it can do 4096",
        "active_mtu:\t\t1024 (3)",
        {"roce/1.log": perftest(4096), "devinfo.txt": DEVINFO.format("1024 (3)")},
        {"roce/1.log": perftest(4096), "devinfo.txt": DEVINFO.format("4096 (5)")},
    ),
    Case(
        "roce-v1",
        "wrong",
        "used GID index 2 of mlx5_0, which is RoCE v1",
        "GID index       : 2",
        {"roce/1.log": perftest(4096, gid=2), "gids.txt": GIDS},
        {"roce/1.log": perftest(4096, gid=3), "gids.txt": GIDS},
    ),
    Case(
        "roce-v1",
        "wrong",
        "NCCL_IB_ROCE_VERSION_NUM=1 is set",
        "NCCL_IB_ROCE_VERSION_NUM set",
        {"roce/1.log": setting("NCCL_IB_ROCE_VERSION_NUM set by environment to 1.")},
        {"roce/1.log": setting("NCCL_IB_ROCE_VERSION_NUM set by environment to 2.")},
    ),
    Case(
        "gid-index-pinned",
        "note",
        "NCCL_IB_GID_INDEX=3 is set, which NCCL 2.28 does not need",
        "NCCL_IB_GID_INDEX set",
        {"roce/1.log": VERSION + setting("NCCL_IB_GID_INDEX set by environment to 3.")},
        {"roce/1.log": VERSION.replace("2.28", "2.20") + setting("NCCL_IB_GID_INDEX set by environment to 3.")},
    ),
    Case(
        "hca-far-from-gpu",
        "check",
        "GPU 0 sends over mlx5_1, which is SYS away; mlx5_0 would be PIX",
        "GPU0\t X \tNV18\tPIX\tSYS",
        {"roce/1.log": GPU_0 + TWO_HCAS.replace("NET/IB/0", "NET/IB/1"), "topo.txt": TOPO},
        {"roce/1.log": GPU_0 + TWO_HCAS, "topo.txt": TOPO},
        more={"one-of-several-hcas"},
    ),
    Case(
        "gpu-without-near-hca",
        "note",
        "The nearest RDMA device of GPU 0 is mlx5_1, SYS away",
        "GPU0\t X \tNV18\tSYS\tSYS",
        {"topo.txt": TOPO.replace("PIX\tSYS", "SYS\tSYS").replace("mlx5_0", "mlx5_7")},
        {"topo.txt": TOPO},
    ),
    Case(
        "pcie-width-below-slot",
        "wrong",
        "The PCIe link of GPU 3 runs at x8, it could run at x16",
        "3, 0 %, 1, 5, 8, 16",
        {"gpu.csv": SMI + "3, 0 %, 1, 5, 8, 16\n"},
        {"gpu.csv": SMI + "3, 0 %, 1, 5, 16, 16\n"},
    ),
    Case(
        "pcie-width-below-slot",
        "check",
        "ConnectX-7] runs at x8, it could run at x16",
        "LnkSta:\tSpeed 32GT/s, Width x8",
        {"lspci.txt": LSPCI.format(speed=32, width=8)},
        {"lspci.txt": LSPCI.format(speed=32, width=16)},
    ),
    Case(
        "pcie-speed-below-slot",
        "check",
        "The PCIe link of GPU 3 runs at generation 4, it could run at 5",
        "3, 98 %, 4, 5",
        {"gpu.csv": SMI + "3, 98 %, 4, 5, 16, 16\n"},
        {"gpu.csv": SMI + "3, 0 %, 1, 5, 16, 16\n3, 98 %, 4, 5, 16, 16\n3, 99 %, 5, 5, 16, 16\n"},
    ),
    Case(
        "pcie-speed-below-slot",
        "check",
        "ConnectX-7] runs at generation 4, it could run at 5",
        "LnkSta:\tSpeed 16GT/s",
        {"lspci.txt": LSPCI.format(speed=16, width=16)},
        {"lspci.txt": LSPCI.format(speed=32, width=16)},
    ),
    Case(
        "packets-lost",
        "wrong",
        "Packets were lost at ens1 between the snapshots: rx_discards_phy +7.",
        "rx_discards_phy: 12",
        counters(rx_discards_phy=7),
        counters(rx_discards_phy=0),
    ),
    Case(
        "packets-lost",
        "check",
        "Packets were sent again at ens1 between the snapshots: out_of_sequence +3",
        "out_of_sequence: 8",
        counters(out_of_sequence=3, packet_seq_err=0),
        counters(out_of_sequence=0),
    ),
    Case(
        "pause-storm",
        "wrong",
        "tx_pause_storm_error_events +1",
        "tx_pause_storm_error_events: 6",
        counters(tx_pause_storm_error_events=1),
        counters(tx_pause_storm_error_events=0, rx_prio3_pause=40),
    ),
    Case(
        "congestion-control",
        "wrong",
        "no notice of congestion (np_cnp_sent) was sent: np_ecn_marked_roce_packets +9",
        "np_ecn_marked_roce_packets: 14",
        counters(np_ecn_marked_roce_packets=9, np_cnp_sent=0),
        counters(np_ecn_marked_roce_packets=9, np_cnp_sent=8),
    ),
    Case(
        "congestion-control",
        "check",
        "no packet had an ECN mark (np_ecn_marked_roce_packets): np_cnp_sent +9",
        "np_cnp_sent: 14",
        counters(np_ecn_marked_roce_packets=0, np_cnp_sent=9),
        counters(np_cnp_sent=9),
    ),
    Case(
        "congestion-control",
        "note",
        "flow control is the only brake: rx_prio3_pause +40",
        "rx_prio3_pause: 45",
        counters(np_ecn_marked_roce_packets=0, rx_prio3_pause=40),
        counters(np_ecn_marked_roce_packets=1, rx_prio3_pause=40),
    ),
    Case(
        "link-flaps",
        "wrong",
        "The link of ens1 went down or erred between the snapshots: link_down_events_phy +2",
        "link_down_events_phy: 7",
        counters(link_down_events_phy=2),
        counters(link_down_events_phy=0),
    ),
    Case(
        "link-flaps",
        "wrong",
        "an event of its RDMA port (port error)",
        "Got async event : port error",
        {"roce/1.log": nccl_log(info=ROCE + EVENT.format("port error"))},
        {"roce/1.log": nccl_log(info=ROCE + EVENT.format("GID table change"))},
    ),
    Case(
        "slow-receiver",
        "note",
        "rnr_nak_retry_err +4",
        "rnr_nak_retry_err: 9",
        counters(rnr_nak_retry_err=4),
        counters(rnr_nak_retry_err=0),
    ),
]


def audited(bench: Bench, logs: dict[str, str], campaign: str = CAMPAIGN) -> Audit:
    if campaign:
        bench.campaign(campaign)
    for name, text in logs.items():
        bench.log(name, text)
    bench.ingest()
    with Lab(bench.store.path) as lab:
        return lab.audit("spring" if campaign else "default")


def found(audit: Audit, rule: str) -> list[Finding]:
    return [f for f in audit.findings if f.rule.id == rule]


def ids(cases: list[Case]) -> list[str]:
    return [f"{n}-{case.rule}" for n, case in enumerate(cases)]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_rule_fires_on_its_lines_and_no_other_rule_does(bench: Bench, case: Case) -> None:
    """Severity, sentence and the literal line, at the number under which it stands in the log."""
    audit = audited(bench, case.dirty, case.campaign)
    others = {f.rule.id for f in audit.findings} - {case.rule} - case.more
    assert others == set()
    hits = [f for f in found(audit, case.rule) if case.says in f.sentence()]
    assert [f.severity for f in hits] == [case.severity], [f.sentence() for f in audit.findings]
    assert any(case.line in line.text for line in hits[0].lines), hits[0].lines
    for line in hits[0].lines:
        text = Path(line.path).read_text(encoding="utf-8").split("\n")[(line.line or 0) - 1]
        assert line.text == text.strip()


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_rule_is_silent_on_the_clean_twin(bench: Bench, case: Case) -> None:
    """It was tested there and has not fired."""
    audit = audited(bench, case.clean, case.campaign)
    assert case.rule in {rule.id for rule in audit.tested}
    assert [f.sentence() for f in found(audit, case.rule)] == []


def test_every_rule_has_its_case() -> None:
    """A new rule comes with lines that make it fire and lines that do not; ids are words and severities known."""
    assert {rule.id for rule in RULES} == {case.rule for case in CASES}
    assert len({rule.id for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.severity in SEVERITIES
        assert rule.source
        assert rule.remedy.endswith(".")


def test_without_logs_of_its_kind_no_rule_is_passed(bench: Bench) -> None:
    """A run alone tests nothing; each rule says what it needs."""
    audit = audited(bench, {"1.log": nccl_log()}, campaign="")
    assert audit.tested == ()
    assert [rule.id for rules in audit.missing().values() for rule in rules] != []
    assert {rule.id for rules in audit.missing().values() for rule in rules} == {rule.id for rule in RULES}


def test_one_snapshot_is_no_rise(bench: Bench) -> None:
    """A total since boot accuses nobody."""
    audit = audited(bench, {"roce/before.txt": counters(rx_discards_phy=7)["roce/before.txt"]})
    assert audit.findings == ()
    assert "packets-lost" in {rule.id for rule in audit.untested}


def test_the_same_in_many_logs_is_one_finding(bench: Bench) -> None:
    """The first is quoted, all are listed."""
    audit = audited(bench, {f"roce/{n}.log": perftest(1024, gid=n) for n in range(3)})
    (finding,) = audit.findings
    assert finding.numbers == {"mtu": 1024, "path": 4096}
    assert [Path(path).name for path in finding.logs] == ["0.log", "1.log", "2.log"]
    assert len(finding.lines) == 1


def test_a_matrix_without_a_campaign_file_accuses_no_gpu(bench: Bench) -> None:
    """nvidia-smi topo -m names no host, so that it may be of any machine."""
    logs = {"1.log": GPU_0 + TWO_HCAS.replace("NET/IB/0", "NET/IB/1"), "topo.txt": TOPO}
    assert found(audited(bench, logs, campaign=""), "hca-far-from-gpu") == []


def test_benign_warnings_are_listed_and_are_no_findings(bench: Bench) -> None:
    """With their number and their first line, and beside real failures with a word about these."""
    noise = "node-a:10:11 [0] proxy.cc:1458 NCCL WARN [Service thread] Accept failed Resource temporarily unavailable\n"
    audit = audited(bench, {"roce/1.log": nccl_log(info=ROCE + 3 * noise)})
    assert audit.findings == ()
    (benign,) = audit.benign
    assert (benign.text, benign.but) == ("Warnings of a normal tear-down, alone no sign of failure: 3.", 0)
    assert benign.line.text == noise.strip()
    bench.log("roce/1.log", nccl_log(info=ROCE + noise + EVENT.format("QP fatal")))
    bench.ingest()
    with Lab(bench.store.path) as lab:
        assert lab.audit("spring").benign[0].but == 1


def test_a_log_that_is_gone_is_quoted_from_the_store(bench: Bench) -> None:
    """What the store keeps of the line, under the same number."""
    audited(bench, {"roce/1.log": setting("NCCL_ALGO set by environment to Tree")})
    (bench.logs / "roce" / "1.log").unlink()
    with Lab(bench.store.path) as lab:
        (finding,) = lab.audit("spring").findings
    assert finding.lines[0].text == "NCCL_ALGO=Tree"


def test_numbers_can_be_asked_again(bench: Bench) -> None:
    """The store answers with the number that is printed."""
    (finding,) = audited(bench, counters(rx_discards_phy=7)).findings
    rise = bench.one(
        "SELECT max(value) - min(value) FROM readings WHERE metric = 'rx_discards_phy' AND device = 'ens1'"
    )
    assert finding.numbers["rises"] == f"rx_discards_phy +{rise:.0f}"


def test_planted_fallback_is_found_and_nothing_else(tmp_path: Path) -> None:
    """In the synthetic example one run of RoCE fell back to sockets."""
    db = str(tmp_path / "lab.duckdb")
    assert CliRunner().invoke(main, ["ingest", str(EXAMPLES / "synthetic"), "--db", db]).exit_code == 0
    done = CliRunner().invoke(main, ["audit", "--db", db, "--format", "json"])
    assert done.exit_code == 1
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["rule"], finding["fabric"]) == ("sockets-on-rdma-fabric", "roce-100g")
    assert next((Path(e["path"]).name, e["line"]) for e in finding["evidence"]) == ("all_reduce.fallback.log", 35)


@pytest.mark.skipif("RDMALAB_CORPUS" not in os.environ, reason="RDMALAB_CORPUS names no folder")
@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        (
            "companions",
            [
                ("hca-not-opened", "nccl_fallback_open_device_v2.7.log", 2),
                ("link-flaps", "nccl_port_error_then_status12_training.log", 4),
                ("link-flaps", "nccl_port_failover_v2.30.log", 1),
                ("sockets-where-others-find-hcas", "nccl_socket_fallback_2x4a100_v2.20.5.log", 128),
                ("local-path-off", "nccl_tuning_subsys_v2.29.7.log", 3),
                ("nvls-off", "nccl_singlenode_socket_named_8xh200_v2.22.3.log", 24),
                ("gid-index-pinned", "nccl_roce_plugin_2x8_v2.28.7.log", 206),
            ],
        ),
        ("fleet", []),
    ],
)
def test_the_collected_logs(tmp_path: Path, folder: str, expected: list[tuple[str, str, int]]) -> None:
    """Each finding was read by hand at its line; logs without NCCL lines accuse nobody."""
    store = Store(tmp_path / "lab.duckdb")
    ingest([Path(os.environ["RDMALAB_CORPUS"]) / folder], store)
    with Lab(store.path) as lab:
        audit = lab.audit()
    assert [(f.rule.id, Path(f.lines[0].path).name, f.lines[0].line) for f in audit.findings] == expected
    assert all(line.text for f in audit.findings for line in f.lines)


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_exit_code_is_the_verdict(bench: Bench) -> None:
    """1 when something is wrong, 0 when there are only things to check; 2 for a campaign that is not there."""
    db = ["--db", str(bench.store.path)]
    audited(bench, {"roce/1.log": setting("NCCL_ALGO set by environment to Tree")})
    done = CliRunner().invoke(main, ["audit", *db])
    assert done.exit_code == 0
    assert done.stdout.startswith("spring: 1 finding (1 check) in 1 log; ")
    assert "CHECK  algorithm-forced on roce-400g: NCCL_ALGO=Tree is forced." in done.stdout
    assert "not tested: packets-lost, pause-storm" in done.stdout
    bench.log("roce/2.log", perftest(1024))
    bench.ingest()
    assert CliRunner().invoke(main, ["audit", "--campaign", "spring", *db]).exit_code == 1
    done = CliRunner().invoke(main, ["audit", "--campaign", "sprng", *db])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "Did you mean 'spring'?" in done.stderr


def test_the_table_of_evidence(bench: Bench) -> None:
    """CSV has one row a line, JSON the findings whole."""
    audited(bench, counters(rx_discards_phy=7))
    db = ["--db", str(bench.store.path)]
    rows = CliRunner().invoke(main, ["audit", "--format", "csv", *db]).stdout.splitlines()
    assert rows[0] == "severity,rule,fabric,what,numbers,path,line,text,logs,remedy,source"
    assert len(rows) == 3
    document = json.loads(CliRunner().invoke(main, ["audit", "--format", "json", *db]).stdout)
    assert document["counts"] == {"wrong": 1, "check": 0, "note": 0}
    assert [e["line"] for e in document["findings"][0]["evidence"]] == [4, 4]


def test_a_store_of_nccl_lines_alone_can_be_audited(bench: Bench) -> None:
    """NCCL writes its lines to files of their own, which hold no run."""
    audit = audited(bench, {"nccl.node-a.10.log": f"{A}NCCL_ALGO set by environment to Tree\n{ROCE}"}, campaign="")
    assert [f.rule.id for f in audit.findings] == ["algorithm-forced"]


# --- the report -----------------------------------------------------------------------------------------------------


def pages(audit: Audit, lang: str) -> str:
    page = ConfigurationAudit(audit, lang)
    blocks = (page.cover(), page.findings(), page.untested(), page.benign(), page.evidence(), page.method())
    return "".join(block.html for block in blocks)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_report_holds_every_finding_with_its_line(bench: Bench, lang: str) -> None:
    """Verdict, line, remedy and source; what was not tested with the log that closes it."""
    audit = audited(bench, {"roce/1.log": perftest(1024), **counters(rx_discards_phy=7)})
    html = unescape(pages(audit, lang))
    for finding in audit.findings:
        assert finding.rule.source in html
        for line in finding.lines:
            assert line.text in html
    assert "1024" in html
    assert "rx_discards_phy +7" in html
    assert ("2 findings:" in html) == (lang == "en")
    assert ("2项发现：" in html) == (lang == "zh")
    if lang == "zh":
        for rule in RULES:
            assert rule.title not in html
            assert rule.remedy not in html


def test_the_evidence_names_each_log_with_its_hash(bench: Bench) -> None:
    """Up to sixty of a finding, then how many more there are."""
    audit = audited(bench, {f"roce/{n}.log": perftest(1024, gid=n) for n in range(62)})
    html = ConfigurationAudit(audit, "en").evidence().html
    shown = [path for path in audit.findings[0].logs if audit.hashes[path][:12] in html]
    assert len(shown) == 60
    assert "2 logs more" in html


def test_a_hostile_host_name_is_text(bench: Bench) -> None:
    """Markup in a log, a device or a path is shown, never obeyed."""
    evil = "<img src=x onerror=alert(1)>"
    logs = {f"roce/{evil.replace('/', '')}.log": perftest(1024, device=evil), "roce/2.log": perftest(4096, device=evil)}
    logs["roce/3.log"] = setting(f"NCCL_ALGO set by environment to {evil}")
    audit = audited(bench, logs, campaign=NO_MTU)
    assert {f.rule.id for f in audit.findings} >= {"algorithm-forced"}
    html = pages(audit, "en")
    assert "<img" not in html
    assert "&lt;img" in html
    words = CliRunner().invoke(main, ["audit", "--db", str(bench.store.path)])
    assert words.exit_code in (0, 1)


def test_braces_in_a_log_are_no_places(bench: Bench) -> None:
    """A value that looks like a place of a sentence stays what it is."""
    audit = audited(bench, {"roce/1.log": setting("NCCL_ALGO set by environment to {setting}{0}")})
    assert audit.findings[0].sentence() == "NCCL_ALGO={setting}{0} is forced."
    assert "NCCL_ALGO={setting}{0}" in unescape(pages(audit, "zh"))


def test_nothing_tested_is_no_praise(bench: Bench) -> None:
    """The cover says so."""
    page = ConfigurationAudit(audited(bench, {"1.log": nccl_log()}, campaign=""), "en")
    assert page.verdict() == ["Nothing could be tested: these logs do not show how the machines are set up"]
    assert page.header()["title"].startswith("Nothing could be tested")


def test_infiniband_has_no_finding(bench: Bench) -> None:
    """A clean log of a declared fabric: rules were tested and none fired."""
    campaign = CAMPAIGN.replace('family = "roce"', 'family = "infiniband"')
    audit = audited(bench, {"roce/1.log": nccl_log(info=INFINIBAND), "roce/2.log": perftest_log("client")}, campaign)
    assert audit.findings == ()
    assert ConfigurationAudit(audit, "en").verdict()[0] == "No finding,"
