"""Differences of port counters: two snapshots of the same port, or none."""

import pytest

from rdmalab import counters
from rdmalab.lab import Lab
from tests.conftest import Bench

CAMPAIGN = '[campaign]\nname = "lab"\n\n[[fabric]]\nname = "roce"\nfamily = "roce"\nlogs = ["*"]\n'


def ethtool(device: str, **values: int) -> str:
    return f"$ ethtool -S {device}\nNIC statistics:\n" + "".join(f"     {k}: {v}\n" for k, v in values.items())


def sysfs(**values: int) -> str:
    port = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters"
    return "".join(f"{port}/{name}:{value}\n" for name, value in values.items())


def deltas(bench: Bench, campaign: str | None = None) -> dict[str, int | None]:
    """The difference of each counter."""
    with Lab(bench.store.path) as lab:
        frame = counters.differences(lab, campaign)
    return dict(zip(frame["counter"], frame["delta"], strict=True))


def remark(bench: Bench, counter: str) -> str | None:
    with Lab(bench.store.path) as lab:
        frame = counters.differences(lab)
    return str(frame.filter(frame["counter"] == counter)["remark"].item())


def test_two_snapshots_in_one_log(bench: Bench) -> None:
    """Both lines are named, and what the rise means."""
    bench.log("nic.txt", ethtool("ens1", rx_packets=100, rx_prio3_pause=7) + ethtool("ens1", rx_prio3_pause=19))
    bench.ingest()
    with Lab(bench.store.path) as lab:
        (row,) = counters.differences(lab).rows(named=True)
    assert (row["device"], row["counter"], row["first"], row["last"], row["delta"]) == (
        "ens1",
        "rx_prio3_pause",
        7,
        19,
        12,
    )
    assert (row["first_line"], row["last_line"], row["kind"]) == (4, 7, "pressure")
    assert row["first_at"] is None


def test_two_logs_whose_names_say_before_and_after(bench: Bench) -> None:
    """The order is that of the words, not of the alphabet; the fabric is that of the campaign file."""
    bench.campaign(CAMPAIGN)
    bench.log("node-a/before.txt", ethtool("ens1", rx_discards_phy=3, rx_bytes=1000))
    bench.log("node-a/after.txt", ethtool("ens1", rx_discards_phy=5, rx_bytes=4000))
    bench.log("node-b/after.txt", ethtool("ens1", rx_discards_phy=900))
    bench.ingest()
    assert deltas(bench, "lab") == {"rx_discards_phy": 2, "rx_bytes": 3000}
    assert deltas(bench, None) == deltas(bench, "lab")


def test_snapshots_that_are_equal_differ_by_nothing(bench: Bench) -> None:
    """One content at two paths is two snapshots: nothing was lost in between, which is worth knowing."""
    for name in ("hca_before.txt", "hca_after.txt"):
        bench.log(name, sysfs(out_of_sequence=4))
    bench.ingest()
    assert deltas(bench) == {"out_of_sequence": 0}


def test_other_names_and_other_ports_are_not_put_together(bench: Bench) -> None:
    """Which of two logs came first is not guessed, nor is a list without a device that of the same one."""
    bench.log("one.txt", sysfs(out_of_sequence=4))
    bench.log("two.txt", sysfs(out_of_sequence=9))
    bench.log("lists.txt", "NIC statistics:\n     rx_discards_phy: 1\nNIC statistics:\n     rx_discards_phy: 4\n")
    bench.log(
        "hosts.txt",
        "root@node-a:~# "
        + ethtool("ens1", rx_discards_phy=1)[2:]
        + "root@node-b:~# "
        + ethtool("ens1", rx_discards_phy=4)[2:],
    )
    bench.ingest()
    assert deltas(bench) == {}


def test_a_counter_that_fell_was_set_back(bench: Bench) -> None:
    """No counter of that port has a difference then, and none is negative."""
    bench.log(
        "nic.txt", ethtool("ens1", rx_bytes=5000, rx_discards_phy=2) + ethtool("ens1", rx_bytes=100, rx_discards_phy=3)
    )
    bench.ingest()
    assert deltas(bench) == {"rx_bytes": None, "rx_discards_phy": None}
    assert remark(bench, "rx_discards_phy") == "set back, or another port: rx_bytes fell between the snapshots"


def test_a_gauge_that_fell_costs_itself_alone(bench: Bench) -> None:
    """A value of which nothing says that it only rises may fall."""
    bench.log(
        "nic.txt",
        ethtool("ens1", rx_bytes=1, fan=9, mood_dropped=3) + ethtool("ens1", rx_bytes=2, fan=8, mood_dropped=3),
    )
    bench.ingest()
    assert deltas(bench) == {"rx_bytes": 1, "fan": None, "mood_dropped": 0}


@pytest.mark.parametrize(("beside", "expected"), [({"packet_seq_err": (5, 5)}, 20), ({}, None)])
def test_queue_counters_begin_again_at_32_bits(
    bench: Bench, beside: dict[str, tuple[int, int]], expected: int | None
) -> None:
    """From 10 below 2^32 to 10 is a rise by 20 where another counter shows that the port was not set back."""
    first = {"rx_write_requests": 2**32 - 10} | {k: v[0] for k, v in beside.items()}
    last = {"rx_write_requests": 10} | {k: v[1] for k, v in beside.items()}
    bench.log("hca.txt", sysfs(**first) + sysfs(**last))
    bench.ingest()
    assert deltas(bench)["rx_write_requests"] == expected


def test_a_counter_at_its_largest_value_may_have_risen_more(bench: Bench) -> None:
    """link_downed has 8 bits and stops at 255."""
    bench.log("hca.txt", sysfs(link_downed=250) + sysfs(link_downed=255))
    bench.ingest()
    assert deltas(bench) == {"link_downed": 5}
    assert remark(bench, "link_downed") == "stands at its largest value, 255: the rise may be larger"


def test_what_several_counters_say_together(bench: Bench) -> None:
    """Pauses without a mark: flow control alone; notices that nobody handled: DCQCN is off at the sender."""
    names = ("rx_prio3_pause", "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled")
    bench.log(
        "nic.txt",
        ethtool("ens1", **dict.fromkeys(names, 0)) + ethtool("ens1", **dict(zip(names, (9, 0, 4, 0), strict=True))),
    )
    bench.ingest()
    with Lab(bench.store.path) as lab:
        found = counters.findings(counters.differences(lab))
    assert [kind for kind, _ in found] == ["warn", "alarm"]
    assert found[0][1] == "9 pause frames and no ECN mark: flow control was the only brake"


def test_readings_of_other_tools_are_no_counters(bench: Bench) -> None:
    """An empty store answers with no row, and the columns are there."""
    bench.log("gpu.csv", "index, utilization.gpu [%]\n0, 10 %\n0, 90 %\n")
    bench.ingest()
    with Lab(bench.store.path) as lab:
        frame = counters.differences(lab)
    assert frame.is_empty()
    assert frame.columns == list(counters.Difference.__annotations__)
