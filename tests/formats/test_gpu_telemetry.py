"""What the small formats of GPUs and NPUs promise: dmon, dcgmi, dcgm-exporter, topo, hccn_tool."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab import formats
from rdmalab.formats import Format
from rdmalab.model import Parsed
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "gpu_telemetry"
BY_NAME = {form.NAME: form for form in formats.known()}
FORM = {
    "dmon.txt": BY_NAME["nvidia-smi-dmon"],
    "dmon_dates.txt": BY_NAME["nvidia-smi-dmon"],
    "dcgmi.txt": BY_NAME["dcgmi-dmon"],
    "exporter.prom": BY_NAME["dcgm-exporter"],
    "topo.txt": BY_NAME["nvidia-smi-topo"],
    "hccn.txt": BY_NAME["hccn-tool"],
}


def content(name: str) -> str:
    return (LOGS / name).read_text()


def parsed(name: str, text: str | None = None) -> Parsed:
    return FORM[name].parse(Text.of(content(name) if text is None else text))


def values(found: Parsed, metric: str) -> list[float | None]:
    return [r.value for r in found.readings if r.metric == metric]


# nvidia-smi dmon


def test_dmon_reads_every_row_under_its_header() -> None:
    """Units come from the second header line; - is null; a repeated header changes nothing."""
    found = parsed("dmon.txt")
    assert values(found, "sm") == [25.0, 18.0, 26.0]
    assert values(found, "mtemp") == [None, None, None]
    assert [(r.device, r.metric, r.value, r.unit, r.line) for r in found.readings[:2]] == [
        ("0", "pwr", 111.0, "W", 3),
        ("0", "gtemp", 83.0, "C", 3),
    ]
    assert {r.unit for r in found.readings if r.metric == "rxpci"} == {"MB/s"}


def test_dmon_keeps_date_and_time_as_printed() -> None:
    """With -o DT the stamp of a row stands in front; it has no zone."""
    found = parsed("dmon_dates.txt")
    assert [(r.stamp, r.read_at) for r in found.readings if r.metric == "fb"] == [
        ("20260104 13:54:35", None),
        ("20260104 13:54:36", None),
    ]


def test_dmon_notes_a_row_with_too_few_values() -> None:
    """A row that lost a value is not shifted into other columns."""
    found = parsed("dmon.txt", content("dmon.txt") + "    1   112    84     -    18\n")
    assert [(n.line, n.code) for n in found.notes] == [(8, "torn_row")]


def test_pmon_is_not_dmon() -> None:
    """nvidia-smi pmon, with a row for each process, begins like dmon and is not read."""
    text = "# gpu   pid  type    sm   mem\n# Idx     #   C/G     %     %\n    0     -     -     -     -\n"
    assert parsed("dmon.txt", text) == Parsed()


# dcgmi dmon


def test_dcgmi_tells_shares_from_percent() -> None:
    """GRACT is a share of 1, GPUTL is percent, PCITX bytes a second; N/A is null."""
    found = parsed("dcgmi.txt")
    assert [(r.device, r.metric, r.value, r.unit) for r in found.readings] == [
        ("GPU 0", "GRACT", 0.998, "ratio"),
        ("GPU 0", "TENSO", 0.885, "ratio"),
        ("GPU 0", "PCITX", 123456789.0, "byte/s"),
        ("GPU 0", "GPUTL", 100.0, "%"),
        ("GPU 1", "GRACT", None, "ratio"),
        ("GPU 1", "TENSO", 0.0, "ratio"),
        ("GPU 1", "PCITX", 0.0, "byte/s"),
        ("GPU 1", "GPUTL", 3.0, "%"),
        ("GPU-I 0", "GRACT", 0.75, "ratio"),
        ("GPU-I 0", "TENSO", 0.02, "ratio"),
        ("GPU-I 0", "PCITX", 2500000.0, "byte/s"),
        ("GPU-I 0", "GPUTL", None, "%"),
    ]


def test_dcgmi_of_before_2022() -> None:
    """Older versions print the header with a blank and indent the rows."""
    found = parsed("dcgmi.txt", "    # Entity  GRACT  DRAMA\n          Id\n        GPU 0  0.552  0.031\n")
    assert values(found, "GRACT") == [0.552]


# dcgm-exporter


def test_exporter_reads_labels_and_values() -> None:
    """The UUID names the device, also where another label holds commas and braces; a MIG slice is its own device."""
    found = parsed("exporter.prom").readings
    assert [(r.device, r.metric.removeprefix("DCGM_FI_"), r.value, r.unit, r.host) for r in found] == [
        ("GPU-aaaa", "DEV_POWER_USAGE", 113.611, "W", "node-1"),
        ("GPU-aaaa/7", "PROF_SM_ACTIVE", 0.25, "ratio", "node-1"),
        ("1", "DEV_XID_ERRORS", None, None, "node-1"),
        ("GPU-bbbb", "PROF_NVLINK_TX_BYTES", 1500.0, "byte/s", "node-1"),
        ("GPU-bbbb", "DEV_GPU_TEMP", None, "C", "node-1"),
    ]


def test_exporter_has_a_time_only_where_it_is_printed() -> None:
    """1767225600500 ms is half a second into 2026."""
    times = [r.read_at for r in parsed("exporter.prom").readings]
    assert times == [None, None, None, datetime(2026, 1, 1, 0, 0, 0, 500000, tzinfo=UTC), None]


def test_exporter_notes_a_torn_line() -> None:
    """A line without its value is noted."""
    found = parsed("exporter.prom", 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a\n')
    assert (found.readings, [n.code for n in found.notes]) == ((), ["torn_row"])


# nvidia-smi topo -m


def test_topo_ranks_the_way_from_gpu_to_nic() -> None:
    """PIX is 0 and SYS is 4; notes say so, and how the NICs are called."""
    found = parsed("topo.txt")
    assert {r.device: r.value for r in found.readings} == {
        "GPU0-NIC0": 0.0,
        "GPU0-NIC1": 4.0,
        "GPU1-NIC0": 3.0,
        "GPU1-NIC1": 1.0,
    }
    assert [(n.code, n.text) for n in found.notes] == [
        ("distance_ranks", "gpu_nic_distance: PIX is 0, PXB is 1, PHB is 2, NODE is 3, SYS is 4."),
        ("nic_legend", "NIC0 is mlx5_0, NIC1 is mlx5_bond_0."),
    ]


def test_topo_of_older_drivers() -> None:
    """Where the header names the NIC itself, so does the device."""
    text = "\tGPU0\tmlx5_0\tCPU Affinity\nGPU0\t X \tPHB\t0-63\nmlx5_0\tPHB\t X \t\n"
    assert [(r.device, r.value) for r in parsed("topo.txt", text).readings] == [("GPU0-mlx5_0", 2.0)]


def test_topo_without_a_nic() -> None:
    """A matrix of GPUs alone says nothing about the way to a NIC."""
    found = parsed("topo.txt", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-63\nGPU1\tNV4\t X \t0-63\n")
    assert (found.readings, [n.code for n in found.notes]) == ((), ["no_nic"])


def test_topo_of_peer_access_is_another_matrix() -> None:
    """topo -p2p prints OK and NS in the same shape."""
    assert not FORM["topo.txt"].SIGNATURE.search(b"\tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n")


# hccn_tool


def test_hccn_counts_and_records() -> None:
    """Two ups, one down, and when: local time in whole seconds."""
    found = parsed("hccn.txt").readings
    assert [(r.metric, r.value, r.device, r.stamp) for r in found] == [
        ("link_up_count", 2.0, "3", None),
        ("link_down_count", 1.0, "3", None),
        ("link_up", 1.0, "3", "Mon Jan  5 10:13:51 2026"),
        ("link_up", 0.0, "3", "Mon Jan  5 10:13:50 2026"),
    ]


# all of them


@pytest.mark.parametrize("name", FORM)
def test_a_last_line_without_its_end_is_refused(name: str) -> None:
    """A value that may have lost digits is left out, with a note."""
    rows = {r.line for r in parsed(name).readings}
    last = max(rows, key=lambda line: line or 0)
    text = "".join(content(name).splitlines(keepends=True)[:last]).removesuffix("\n")
    found = parsed(name, text)
    assert {r.line for r in found.readings} == rows - {last}
    assert found.notes[-1].line == last


@pytest.mark.parametrize("name", FORM)
def test_cutting_a_log_invents_nothing(name: str) -> None:
    """Cut behind any line, a log gives the beginning of its own readings, and no others."""
    whole, lines = parsed(name).readings, content(name).splitlines(keepends=True)
    for end in range(len(lines)):
        part = parsed(name, "".join(lines[:end])).readings
        assert part == whole[: len(part)]


@pytest.mark.parametrize("name", FORM)
def test_line_ends_change_nothing(name: str) -> None:
    """Text of Windows is recognised by the same format alone, and read the same."""
    text = content(name).replace("\n", "\r\n")
    assert formats.read(Text.of(text)).formats == (FORM[name].NAME,)
    assert parsed(name, text) == parsed(name)


PIECES = st.sampled_from([line for name in FORM for line in content(name).splitlines()])


@given(st.sampled_from(list(FORM.values())), st.lists(PIECES | st.text(max_size=40), max_size=25))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read(form: Format, lines: list[str]) -> None:
    """No order of lines raises, and every reading names a line that there is."""
    found = form.parse(Text.of("\n".join(lines)))
    total = "\n".join(lines).count("\n") + 1
    assert all(r.line is not None and 1 <= r.line <= total for r in found.readings)


def test_the_collected_logs() -> None:
    """Logs of other people, where a folder of them is named."""
    if "RDMALAB_CORPUS" not in os.environ:
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    truth = json.loads((folder / "truth.json").read_text())["files"]

    def found(name: str, file: str) -> tuple[Parsed, dict[str, Any]]:
        return parsed(name, (folder / file).read_text()), truth[file]["expect"]

    read, expected = found("dmon.txt", "nvidia_smi_dmon_pucvmet.txt")
    assert values(read, "sm") == expected["sm_percent"]
    assert (values(read, "rxpci"), values(read, "txpci")) == (expected["rxpci_mb_s"], expected["txpci_mb_s"])
    read, expected = found("dcgmi.txt", "dcgmi_dmon_prof.txt")
    assert len(values(read, "GRACT")) == len(values(read, "DRAMA")) == expected["rows"]
    assert max(v for v in values(read, "GRACT") if v is not None) == expected["max_gract"]
    read, expected = found("exporter.prom", "dcgm_exporter_8xh100.prom")
    assert {m: len(values(read, m)) for m in expected["by_metric"]} == expected["by_metric"]
    assert values(read, "DCGM_FI_DEV_POWER_USAGE")[0] == expected["power_gpu0_w"]
    assert values(read, "DCGM_FI_DEV_GPU_UTIL") == expected["gpu_util"]
    read, expected = found("topo.txt", "nvidia_smi_topo_8xb200_8nic.txt")
    assert len(read.readings) == expected["gpus"] * expected["nics"]
    nearest = {(r.device or "").partition("-")[::2] for r in read.readings if r.value == 0}
    assert nearest == {(gpu, nic) for gpu, nics in expected["nearest_nics"].items() for nic in nics}
    legend = next(n.text for n in read.notes if n.code == "nic_legend")
    assert legend == ", ".join(f"{nic} is {name}" for nic, name in expected["nic_names"].items()) + "."
    read, expected = found("hccn.txt", "hccn_tool_link_stat.txt")
    assert values(read, "link_up_count") == [expected["link_up_count"]]
    assert values(read, "link_down_count") == [expected["link_down_count"]]


def test_a_table_of_dmon_without_a_value_has_no_reading() -> None:
    """Found by fuzzing: a header that ends in gpu."""
    assert not formats.read(Text.of("# Date Time gpu\n 20260102 03:04:05 0\n")).readings
