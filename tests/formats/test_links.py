"""lspci, ibv_devinfo and tables of GIDs: what was printed, for the devices that matter, with the line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab import formats
from rdmalab.sources import Text

LSPCI = """\
17:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]
\tSubsystem: Mellanox Technologies Device [15b3:0053]
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, Disabled- CommClk+
\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)
\t\tLnkCap2: Supported Link Speeds: 2.5-32GT/s, Crosslink- Retimer+ 2Retimers+ DRS-
\t\tLnkSta2: Current De-emphasis Level: -6dB, EqualizationComplete+
00:1c.0 PCI bridge: Intel Corporation Device 7a38
\t\tLnkCap:\tPort #1, Speed 8GT/s, Width x4, ASPM L1
\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x1 (downgraded)
0000:1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB]
\t\tLnkCap:\tPort #0, Speed unknown, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 32GT/s, Width x16
"""
NIC = "17:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]"
GPU = "0000:1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB]"
GIDS = """\
$ show_gids
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
mlx5_0\t1\t0\tfe80:0000:0000:0000:0e42:a1ff:fead:479a\t\t\tv1\tens1
mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c000:020b\t192.0.2.11  \tv2\tens1
n_gids_found=2
/sys/class/infiniband/mlx5_bond_0/ports/1/gid_attrs/types/0:IB/RoCE v1
/sys/class/infiniband/mlx5_bond_0/ports/1/gid_attrs/types/1:RoCE v2
grep: /sys/class/infiniband/mlx5_bond_0/ports/1/gid_attrs/types/2: Invalid argument
"""

DEVINFO = """\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t1024 (3)
\t\t\tlink_layer:\t\tEthernet
\t\t\tGID[  0]:\t\tfe80::5054:ff:fe00:b, IB/RoCE v1
\t\t\tGID[  1]:\t\t::ffff:192.0.2.11, RoCE v2
hca_id:\tmlx5_1
\t\tport:\t1
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\tinvalid MTU (0)
\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:0e42:a1ff:fead:479a
"""


def readings(text: str) -> list[tuple[int | None, str | None, str, float | None]]:
    return [(r.line, r.device, r.metric, r.value) for r in formats.read(Text.of(text)).readings]


def test_links_of_nics_and_gpus_are_read_and_those_of_bridges_are_not() -> None:
    """GT/s as generations; an unknown speed leaves the line out; the second registers are none of these."""
    assert readings(LSPCI) == [
        (4, NIC, "pcie.link.gen.max", 5.0),
        (4, NIC, "pcie.link.width.max", 16.0),
        (6, NIC, "pcie.link.gen.current", 4.0),
        (6, NIC, "pcie.link.width.current", 8.0),
        (14, GPU, "pcie.link.gen.current", 5.0),
        (14, GPU, "pcie.link.width.current", 16.0),
    ]


def test_both_tables_of_gids_are_read() -> None:
    """The version of each index of each port; an empty index has none."""
    assert readings(GIDS) == [
        (4, "mlx5_0/1/gids/0", "roce_version", 1.0),
        (5, "mlx5_0/1/gids/3", "roce_version", 2.0),
        (7, "mlx5_bond_0/1/gids/0", "roce_version", 1.0),
        (8, "mlx5_bond_0/1/gids/1", "roce_version", 2.0),
    ]


def test_the_mtu_of_ports_and_the_version_of_gids_are_read() -> None:
    """An MTU that is none and a GID of InfiniBand are left out."""
    assert readings(DEVINFO) == [
        (5, "mlx5_0/1", "max_mtu", 4096.0),
        (6, "mlx5_0/1", "active_mtu", 1024.0),
        (8, "mlx5_0/1/gids/0", "roce_version", 1.0),
        (9, "mlx5_0/1/gids/1", "roce_version", 2.0),
        (12, "mlx5_1/1", "max_mtu", 4096.0),
    ]


@pytest.mark.parametrize("text", [LSPCI, GIDS, DEVINFO])
def test_a_prefix_of_a_log_invents_nothing(text: str) -> None:
    """Cut anywhere, what is read was there in the whole log."""
    whole = readings(text)
    for end in range(len(text)):
        assert all(found in whole for found in readings(text[:end]))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from([*LSPCI.splitlines(), *GIDS.splitlines(), *DEVINFO.splitlines(), "", "\x00", "v2"]), max_size=12
    )
)
def test_any_order_of_lines_is_read(lines: list[str]) -> None:
    """No line makes a reader fall."""
    found = formats.read(Text.of("\n".join(lines) + "\n"))
    assert "parser_error" not in [note.code for note in found.notes]
