"""Which run belongs to which fabric, what excludes it there, and how much physics allows it."""

from datetime import date

import pytest

from rdmalab.errors import CampaignError
from tests.conftest import FALLBACK, INFINIBAND, ONE_NODE, ROCE, Bench, channels, nccl_log, perftest_log

CAMPAIGN = """\
[campaign]
name = "spring"
[[fabric]]
name = "ndr"
family = "infiniband"
link_rate_gbit_s = 400
ports_per_node = 1
mtu_bytes = 4096
logs = ["ib/**"]
[[fabric]]
name = "roce-100g"
label = "RoCE 100G"
family = "roce"
logs = ["roce/**"]
"""
REFUSED = "SELECT excluded_because FROM runs"


# Limits


def test_the_limit_of_a_collective(bench: Bench) -> None:
    """2 nodes of 8 on one port of 400 Gb/s InfiniBand: 1.875 x 50 GB/s x 4096 / 4122 = 93.16 GB/s."""
    bench.campaign(CAMPAIGN)
    bench.log("ib/1.log", nccl_log(info=INFINIBAND))
    bench.ingest()
    limit = 1.875 * 400 / 8 * 4096 / 4122
    assert limit == pytest.approx(93.1587, abs=1e-4)
    rows = bench.rows("SELECT busbw_gbyte_s, limit_gbyte_s, utilization_pct FROM results ORDER BY ordinal")
    assert [row[0] for row in rows] == [32.16, 32.26, 62.91, 62.93]
    for busbw, found, utilization in rows:
        assert found == pytest.approx(limit)
        assert utilization == pytest.approx(100 * float(str(busbw)) / limit)
    assert rows[2][2] == pytest.approx(67.53, abs=5e-3)
    ((formula, missing),) = bench.rows("SELECT DISTINCT limit_formula, limit_missing FROM results")
    assert "400 Gb/s x 4096 / (4096 + 26)" in str(formula)
    assert missing is None


def test_the_limit_of_a_point_to_point_test(bench: Bench) -> None:
    """One port of 400 Gb/s carries 400 x 4096 / 4122 Gb/s of payload; the limit is in GB/s."""
    bench.campaign(CAMPAIGN)
    bench.log("ib/1.log", perftest_log("client"))
    bench.ingest()
    limit = 400 / 8 * 4096 / 4122
    for average, found, utilization in bench.rows("SELECT bw_avg_gbit_s, limit_gbyte_s, utilization_pct FROM results"):
        assert found == pytest.approx(limit) == pytest.approx(49.6846, abs=1e-4)
        assert utilization == pytest.approx(100 * float(str(average)) / 8 / limit)


def test_without_a_link_rate_there_is_no_limit(bench: Bench) -> None:
    """What is missing is named, limit and utilization stay empty."""
    bench.campaign(CAMPAIGN)
    bench.log("roce/1.log", nccl_log(info=ROCE))
    bench.ingest()
    columns = "limit_gbyte_s, utilization_pct, limit_missing"
    assert bench.rows(f"SELECT DISTINCT {columns} FROM results") == [(None, None, "link_rate_gbit_s")]


# Without a campaign file


@pytest.mark.parametrize(
    ("content", "family", "evidence"),
    [
        (nccl_log(), "unknown", None),
        (nccl_log(info=ROCE), "roce", "NCCL channel lines: roce"),
        (nccl_log(info=INFINIBAND), "infiniband", "NCCL channel lines: ib"),
        (nccl_log(info=FALLBACK), "tcp", "NCCL channel lines: socket"),
        (nccl_log(nodes=1, info=ONE_NODE), "nvlink", "NCCL channel lines: intra_node"),
        (nccl_log(nodes=1, info=ONE_NODE, gpu="NVIDIA A40"), "unknown", None),
        (perftest_log("client"), "infiniband", "LID 0x1a"),
        (perftest_log("client", link="Ethernet"), "roce", "link type Ethernet"),
    ],
    ids=["nothing", "roce", "infiniband", "fallback", "nvlink", "other-gpu", "perftest-ib", "perftest-roce"],
)
def test_the_fabric_is_the_family_that_the_log_shows(
    bench: Bench, content: str, family: str, evidence: str | None
) -> None:
    """Without a campaign file the family stands for the fabric; limits are null and say what they lack."""
    bench.log("1.log", content)
    receipt = bench.ingest()
    assert receipt.campaigns == {"default": 1}
    ((fabric, found, shown, excluded, missing),) = bench.rows(
        "SELECT fabric, fabric_family, fabric_evidence, excluded_because, limit_missing FROM runs"
    )
    assert (fabric, found, shown, excluded) == (family, family, evidence, None)
    if family != "nvlink" and "NVIDIA A40" not in content:
        assert missing == "link_rate_gbit_s"
        assert bench.rows("SELECT DISTINCT limit_gbyte_s, utilization_pct FROM results") == [(None, None)]
    assert bench.rows("FROM fabrics") == []


def test_logs_without_a_file_take_the_name_that_is_given(bench: Bench) -> None:
    """A given name stands until a campaign file rules; an ingest without a name does not add a second place."""
    bench.log("1.log", nccl_log())
    bench.ingest(name="night")
    assert bench.rows("SELECT campaign FROM runs") == [("night",)]
    bench.ingest()
    assert bench.rows("SELECT campaign FROM runs") == [("night",)]
    bench.campaign(CAMPAIGN)
    bench.ingest()
    assert bench.rows("SELECT campaign FROM runs") == [("spring",)]


def test_a_log_may_stand_in_two_named_campaigns(bench: Bench) -> None:
    """Places are rows of their own: two names given, two places, one log."""
    bench.log("1.log", nccl_log())
    bench.ingest(name="day")
    bench.ingest(name="night")
    assert bench.rows("SELECT campaign FROM runs ORDER BY ALL") == [("day",), ("night",)]
    assert bench.rows("SELECT campaigns FROM logs") == [(["day", "night"],)]


def test_a_new_campaign_file_moves_logs_out_of_the_default(bench: Bench) -> None:
    """Writing the file after the first ingest leaves every run in one campaign only."""
    bench.log("ib/1.log", nccl_log(info=INFINIBAND))
    bench.ingest()
    assert bench.rows("SELECT campaign, fabric FROM runs") == [("default", "infiniband")]
    bench.campaign(CAMPAIGN)
    bench.ingest()
    assert bench.rows("SELECT campaign, fabric FROM runs") == [("spring", "ndr")]


def test_a_new_inner_file_takes_its_logs(bench: Bench) -> None:
    """A file written in a folder below moves the logs there, also when only that folder is ingested."""
    bench.campaign('[campaign]\nname = "outer"\n')
    bench.log("inner/1.log", nccl_log(pid=1))
    bench.log("2.log", nccl_log(pid=2))
    bench.ingest()
    bench.campaign('[campaign]\nname = "inner"\n', "inner")
    bench.ingest(bench.logs / "inner")
    assert bench.rows("SELECT campaign, parse_filename(path) FROM runs ORDER BY ALL") == [
        ("inner", "1.log"),
        ("outer", "2.log"),
    ]


# Corrections


def test_a_corrected_file_takes_effect(bench: Bench) -> None:
    """Family, label, limit and list of fabrics follow the file at the next ingest although no log has changed."""
    bench.log("x/1.log", nccl_log())
    fabric = '[campaign]\nname = "{}"\n[[fabric]]\nname = "{}"\nlabel = "{}"\nfamily = "{}"\nlogs = ["x/*"]\n'
    bench.campaign(fabric.format("spring", "new", "New", "tcp"))
    bench.ingest()
    columns = "SELECT campaign, fabric, fabric_family, limit_missing FROM runs"
    assert bench.rows(columns) == [("spring", "new", "tcp", "link_rate_gbit_s")]
    rate = "link_rate_gbit_s = 100\nports_per_node = 1\n"
    bench.campaign(fabric.format("spring", "roce", "RoCE", "roce") + rate)
    receipt = bench.ingest()
    assert (receipt.read, receipt.already_known) == (0, 1)
    assert bench.rows(columns) == [("spring", "roce", "roce", None)]
    assert bench.rows("SELECT fabric, label, runs, runs_used FROM fabrics") == [("roce", "RoCE", 1, 1)]
    assert bench.one("SELECT DISTINCT limit_gbyte_s FROM results") == pytest.approx(1.875 * 12.5 * 4096 / 4178)
    bench.campaign(fabric.format("summer", "roce", "RoCE", "roce") + rate)
    bench.ingest()
    assert bench.rows(columns) == [("summer", "roce", "roce", None)]
    assert bench.rows("SELECT campaign FROM fabrics") == [("summer",)]


FACTS = """
[[facts]]
logs = ["roce/*"]
ranks = 4
operation = "alltoall"
program = "ib_read_bw"
size_bytes = 64
latency_convention = "round_trip"
"""
SILENT = """\
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float    none      -1    61.13   17.15   16.08    N/A    60.94   17.21   16.13    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 16.105
#
"""


def test_facts_fill_only_what_a_log_leaves_out(bench: Bench) -> None:
    """A fact never replaces what a log prints: neither operation, ranks, program nor size."""
    bench.campaign(CAMPAIGN + FACTS)
    bench.log("roce/1.log", nccl_log())
    bench.log("roce/2.log", SILENT)
    bench.log("roce/3.log", perftest_log("client", link="Ethernet"))
    bench.ingest()
    rows = bench.rows("SELECT operation, ranks, program, latency_convention FROM runs ORDER BY path")
    assert rows[0][:3] == ("all_reduce", 16, "all_reduce_perf")
    assert rows[1] == ("alltoall", 4, "ib_read_bw", "round_trip")
    assert rows[2][::2] == ("write", "ib_write_bw")
    sizes = bench.rows("SELECT DISTINCT parse_filename(path), size_bytes FROM results ORDER BY ALL")
    assert sizes == [("1.log", 1 << 20), ("1.log", 1 << 26), ("2.log", 1 << 20), ("3.log", 4096), ("3.log", 65536)]


def test_a_fact_may_complete_the_name_of_a_program(bench: Bench) -> None:
    """The client of ucx_perftest does not print its test: the fact that begins with the printed name is more of it."""
    bench.campaign(
        '[campaign]\nname = "c"\n[[fabric]]\nname = "t"\nfamily = "tcp"\nlogs = ["*"]\n'
        '[[facts]]\nlogs = ["1.log"]\nprogram = "ucx_perftest tag_lat"\nsize_bytes = 8\n'
        'latency_convention = "one_way"\n'
    )
    bench.log(
        "1.log",
        "+--------------+--------------+------------------------------+---------------------+-----------------------+\n"
        "|              |              |       overhead (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |\n"
        "+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+\n"
        "|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |\n"
        "+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+\n"
        "Final:                 10000      1.500     1.520     1.520        5.02       5.02      657895      657895\n",
    )
    bench.ingest()
    assert bench.rows("SELECT program, latency_convention FROM runs") == [("ucx_perftest tag_lat", "one_way")]
    assert bench.rows("SELECT size_bytes FROM results") == [(8,)]


# What does not belong


def test_a_socket_fallback_is_excluded_with_its_reason(bench: Bench) -> None:
    """A run in the RoCE folder whose lines prove sockets is not quoted as RoCE."""
    bench.campaign(CAMPAIGN)
    bench.log("roce/good.log", nccl_log(info=ROCE))
    bench.log("roce/fallback.log", nccl_log(info=FALLBACK))
    bench.ingest()
    assert bench.rows("SELECT fabric, excluded_because FROM runs ORDER BY path") == [
        ("roce-100g", "fell back to sockets: NET/IB found no device"),
        ("roce-100g", None),
    ]
    assert bench.one("SELECT count(DISTINCT run_id) FROM results") == 1


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("ib/1.log", nccl_log(info=ROCE), "the log shows roce, the campaign file says infiniband"),
        ("roce/1.log", nccl_log(info=INFINIBAND), "the log shows infiniband, the campaign file says roce"),
        ("roce/1.log", nccl_log(info=channels("Socket/0")), "the log shows tcp, the campaign file says roce"),
        ("roce/1.log", perftest_log("client"), "the log shows infiniband, the campaign file says roce"),
        ("roce/1.log", nccl_log(nodes=1, info=ONE_NODE), "the log shows nvlink, the campaign file says roce"),
        (
            "roce/1.log",
            nccl_log(nodes=1, info=ONE_NODE, gpu="NVIDIA A40"),
            "the log shows that all ranks share a node, the campaign file says roce",
        ),
        ("roce/1.log", nccl_log(), None),
        ("roce/1.log", nccl_log(info=ROCE), None),
    ],
    ids=["roce-in-ib", "ib-in-roce", "tcp-in-roce", "perftest", "nvlink", "one-node", "silent", "right"],
)
def test_a_log_that_shows_another_fabric_is_refused(bench: Bench, name: str, content: str, reason: str | None) -> None:
    """What the lines prove goes before what the campaign file says; a log that shows nothing is believed."""
    bench.campaign(CAMPAIGN)
    bench.log(name, content)
    bench.ingest()
    assert bench.one(REFUSED) == reason


def test_a_log_that_two_fabrics_claim_is_refused_and_said(bench: Bench) -> None:
    """Overlapping globs put a log nowhere; the remark names both fabrics."""
    path = bench.campaign(CAMPAIGN.replace('"ib/**"', '"**/*.log"'))
    bench.log("roce/1.log", nccl_log())
    receipt = bench.ingest()
    assert bench.one(REFUSED) == "claimed by several fabrics: ndr, roce-100g"
    assert receipt.remarks == [
        f"{bench.logs}/roce/1.log: claimed by several fabrics: ndr, roce-100g; mend the globs of {path}, lines 9 and 14"
    ]


def test_a_content_in_two_fabrics_is_refused_and_said(bench: Bench) -> None:
    """The same content in the folders of two fabrics cannot have been measured on both."""
    bench.campaign(CAMPAIGN)
    for name in ("ib/1.log", "roce/1.log", "roce/2.log", "other/3.log"):
        bench.log(name, nccl_log())
    receipt = bench.ingest()
    assert bench.rows("SELECT path, excluded_because FROM runs") == [
        (f"{bench.logs}/ib/1.log", "claimed by several fabrics: ndr, roce-100g")
    ]
    assert len(receipt.remarks) == 1


def test_a_copy_outside_the_globs_changes_nothing(bench: Bench) -> None:
    """A copy that no fabric claims leaves the log in the fabric of the other path."""
    bench.campaign(CAMPAIGN)
    bench.log("a/1.log", nccl_log(info=ROCE))
    bench.log("roce/1.log", nccl_log(info=ROCE))
    bench.ingest()
    assert bench.rows("SELECT path, fabric, excluded_because FROM runs") == [
        (f"{bench.logs}/roce/1.log", "roce-100g", None)
    ]


def test_remarks_name_globs_and_logs_that_do_not_meet(bench: Bench) -> None:
    """A glob that matches nothing and a log that nothing claims are remarks; the log keeps its family."""
    path = bench.campaign(CAMPAIGN)
    bench.log("ib/1.log", nccl_log(info=INFINIBAND, pid=1))
    bench.log("rose/1.log", nccl_log(info=ROCE, pid=2))
    receipt = bench.ingest()
    assert receipt.remarks == [
        f"{bench.logs}/rose/1.log: no fabric of {path} claims this log; its family is 'roce'",
        f"{path}:14: the glob 'roce/**' of roce-100g matches no log",
    ]
    assert bench.rows("SELECT fabric, excluded_because FROM runs ORDER BY path") == [("ndr", None), ("roce", None)]
    assert bench.rows("SELECT fabric, runs FROM fabrics") == [("ndr", 1), ("roce-100g", 0)]


def test_the_campaign_file_pairs_runs_by_a_place_in_their_paths(bench: Bench) -> None:
    """The text at {pair} is what two runs share; a log that does not match is in no pair."""
    paired = 'dates = [2026-11-03, 2026-11-07]\npairs = "*/run-{pair}.log"'
    bench.campaign(CAMPAIGN.replace('name = "spring"', 'name = "spring"\n' + paired))
    for name, info in (("ib/run-01.log", INFINIBAND), ("roce/run-01.log", ROCE), ("roce/again.log", ROCE)):
        bench.log(name, nccl_log(info=info, pid=len(name)))
    bench.ingest()
    found = bench.rows("SELECT fabric, paired_as FROM runs ORDER BY fabric, paired_as NULLS LAST")
    assert found == [("ndr", "01"), ("roce-100g", "01"), ("roce-100g", None)]
    assert bench.rows("SELECT first_day, last_day, pairs FROM raw.campaigns") == [
        (date(2026, 11, 3), date(2026, 11, 7), "*/run-{pair}.log")
    ]


def test_slot_and_gpu_of_the_campaign_file_count(bench: Bench) -> None:
    """A slot narrower than its port caps the limit, a GPU stands in where a log prints none."""
    fabric = (
        '[campaign]\nname = "spring"\n[[fabric]]\nname = "ndr"\nfamily = "infiniband"\nlogs = ["x/*"]\n'
        'link_rate_gbit_s = 400\nports_per_node = 1\nmtu_bytes = 4096\ngpu = "NVIDIA H100 80GB HBM3"\n'
    )
    bench.log("x/1.log", nccl_log(gpu="NVIDIA A40"))
    bench.log("x/2.log", perftest_log("client"))
    bench.campaign(fabric + 'pcie = "Gen4 x16"\n')
    bench.ingest()
    columns = "SELECT limit_formula, limit_flag, contains(limit_source, 'pci.h') FROM runs ORDER BY kind"
    slot = "PCIe Gen4 x16, 252.062 Gb/s"
    collective = f"R (n - 1) k / (n (k - 1)) = 31.508 GB/s x 15 x 2 / (16 x 1); R = {slot}"
    assert bench.rows(columns) == [(slot, "V", True), (collective, "D", True)]
    bench.campaign(fabric)
    bench.ingest()
    assert bench.rows(columns)[0] == ("400 Gb/s x 4096 / (4096 + 26)", "D", False)
    assert bench.rows("SELECT gpu, pcie FROM fabrics") == [("NVIDIA H100 80GB HBM3", None)]
    bench.campaign(fabric + 'pcie = "5.0 x16"\n')
    with pytest.raises(CampaignError, match=r"rdmalab\.toml:11: pcie is a generation and a width like 'Gen5 x16', not"):
        bench.ingest()
