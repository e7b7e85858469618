"""The campaign file: every mistake is said with its line, and globs mean what they say."""

from pathlib import Path
from typing import Any

import pytest

from rdmalab.campaign import Campaign, Fabric, load, nearest, unmatched_globs
from rdmalab.errors import CampaignError
from tests.conftest import Bench, nccl_log, write

GOOD = """\
# What the logs do not say.
[campaign]
name = "spring"
title = "Two fabrics"
synthetic = true
notes = ["A note."]

[[fabric]]  # the old one
name = "roce-100g"
family = "roce"
link_rate_gbit_s = 100
mtu_bytes = 4096
logs = [
    "roce/**",
]

[[fabric]]
name = "ib"
label = "InfiniBand NDR"
family = "infiniband"
in_network = false
logs = ["ib/*.log"]

[[same]]
measures = "latency"
tests = ["ib_write_lat", "ucx_perftest tag_lat"]

[[facts]]
logs = ["ucx/*"]
size_bytes = 64
latency_convention = "one_way"
"""


def complaint(folder: Path, text: str | bytes) -> str:
    """What is said about a campaign file, without its path."""
    path = write(folder / "rdmalab.toml", text)
    with pytest.raises(CampaignError) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(path))


def test_a_campaign_file_becomes_records(tmp_path: Path) -> None:
    """What is stated is taken over, what is not is None; a label is the name unless stated."""
    campaign = load(write(tmp_path / "rdmalab.toml", GOOD))
    assert (campaign.name, campaign.title, campaign.synthetic, campaign.notes) == (
        "spring",
        "Two fabrics",
        True,
        ("A note.",),
    )
    assert campaign.customer is None
    roce, infiniband = campaign.fabrics
    assert roce == Fabric(
        name="roce-100g", family="roce", label="roce-100g", logs=("roce/**",), link_rate_gbit_s=100, mtu_bytes=4096
    )  # fmt: skip
    assert (infiniband.label, infiniband.in_network, infiniband.link_rate_gbit_s) == ("InfiniBand NDR", False, None)
    assert (campaign.same[0].tests, campaign.same[0].size_bytes) == (("ib_write_lat", "ucx_perftest tag_lat"), None)
    assert (campaign.facts[0].size_bytes, campaign.facts[0].ranks) == (64, None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[same]]", "[[sames]]", ":24: unknown table 'sames'. Did you mean 'same'?"),
        ("[[same]]", "[[price]]", ":24: unknown table 'price'."),
        ("title =", "titel =", ":4: unknown key 'titel' in [campaign]. Did you mean 'title'?"),
        ("mtu_bytes", "mtu", ":12: unknown key 'mtu' in [fabric]. Did you mean 'mtu_bytes'?"),
        ("in_network = false", "color = 1", ":21: unknown key 'color' in [fabric]."),
        ('name = "spring"\n', "", ":2: [campaign] needs a name"),
        ('name = "spring"', 'name = ""', ":3: name is empty"),
        ('name = "ib"\n', "", ":17: [fabric] needs 'name'"),
        ('family = "infiniband"\n', "", ":17: [fabric] needs 'family'"),
        ('measures = "latency"\n', "", ":24: [same] needs 'measures'"),
        ('logs = ["ucx/*"]\n', "", ":28: [facts] needs 'logs'"),
        ('"infiniband"', '"infinband"', ":20: unknown family 'infinband'. Did you mean 'infiniband'?"),
        ('"roce"', '"carrier pigeon"', ":10: unknown family 'carrier pigeon'."),
        ('"latency"', '"latencies"', ":25: unknown measures 'latencies'. Did you mean 'latency'?"),
        ('"one_way"', '"oneway"', ":31: unknown convention 'oneway'. Did you mean 'one_way'?"),
        ("link_rate_gbit_s = 100", "link_rate_gbit_s = -100", ":11: link_rate_gbit_s must be greater than 0"),
        ("link_rate_gbit_s = 100", "link_rate_gbit_s = 0", ":11: link_rate_gbit_s must be greater than 0"),
        ("link_rate_gbit_s = 100", "link_rate_gbit_s = nan", ":11: link_rate_gbit_s must be greater than 0"),
        ("link_rate_gbit_s = 100", "link_rate_gbit_s = inf", ":11: link_rate_gbit_s is too large"),
        ("link_rate_gbit_s = 100", 'link_rate_gbit_s = "100G"', ":11: link_rate_gbit_s wants a number, not '100G'"),
        ("link_rate_gbit_s = 100", "link_rate_gbit_s = 1e11",
         ":11: link_rate_gbit_s is the rate of one port in Gb/s (10^9 bit/s), for example 400; 100000000000.0 is none"),
        ('name = "spring"', 'name = "spring"\ndates = ["2026-11-03"]',
         ":4: dates wants a list of days like 2026-11-30, without quotes"),
        ('name = "spring"', 'name = "spring"\ndates = [2026-11-07, 2026-11-03]',
         ":4: dates wants the first and the last day of the measurements"),
        ('name = "spring"', 'name = "spring"\npairs = "*/run-*.log"',
         ':4: pairs wants a glob with one {pair}, for example "*/run-{pair}.log"'),
        ("mtu_bytes = 4096", "mtu_bytes = 4096.5", ":12: mtu_bytes wants a whole number, not 4096.5"),
        ("mtu_bytes = 4096", "mtu_bytes = true", ":12: mtu_bytes wants a whole number, not True"),
        ("in_network = false", "in_network = 0", ":21: in_network wants true or false, not 0"),
        ('label = "InfiniBand NDR"', "label = 4", ":19: label wants a text, not 4"),
        ('["ib/*.log"]', '"ib/*.log"', ":22: logs wants a list of texts"),
        ('["ib/*.log"]', "[1]", ":22: logs wants a list of texts"),
        ('name = "ib"', 'name = "roce-100g"', ":18: two fabrics are named 'roce-100g'"),
        ("[[same]]", "[same]", ":24: write each same as a table of its own: [[same]]"),
        ("size_bytes = 64", "size_bytes = ", ":30: not valid TOML: Invalid value (at line 30, column 14)"),
        ('name = "spring"', 'name = "spring', ":3: not valid TOML: Illegal character '\\n' (at line 3, column 15)"),
    ],
    ids=lambda value: None,
)  # fmt: skip
def test_every_mistake_is_said_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Unknown words, wrong types, impossible numbers and broken TOML name file, line and the way out."""
    assert GOOD.count(old) == 1
    assert complaint(tmp_path, GOOD.replace(old, new)) == message


def test_mistakes_without_a_line_of_their_own(tmp_path: Path) -> None:
    """An empty file, a file that is no text and one that stops too early point at the best line there is."""
    assert complaint(tmp_path, "") == ":1: [campaign] needs a name"
    assert complaint(tmp_path, "campaign = 3\n") == ":1: [campaign] needs a name"
    assert complaint(tmp_path, '[campaign]\nname = "a"\ntitle = "\xe9"\n'.encode("latin-1")) == ":3: not UTF-8 text"
    assert complaint(tmp_path, 'a = [\n"b",\n').startswith(":3: not valid TOML: ")


def test_a_file_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    """A folder of that name is no campaign file."""
    (tmp_path / "rdmalab.toml").mkdir()
    with pytest.raises(CampaignError, match="is a directory"):
        load(tmp_path / "rdmalab.toml")
    assert nearest(tmp_path / "a.log") is None


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """Editors of another system put one in front."""
    assert load(write(tmp_path / "rdmalab.toml", b"\xef\xbb\xbf" + GOOD.encode())).name == "spring"


# Globs


def with_fabric(root: Path, *globs: str) -> Campaign:
    fabric = Fabric(name="f", family="roce", logs=globs)
    return Campaign(name="c", path=root / "rdmalab.toml", sha256="", fabrics=(fabric,))


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("roce/**", ["roce/a.log", "roce/b/c.log", "roce/a.zip!x/y.log"], ["roce", "roce2/a.log", "x/roce/a.log"]),
        ("**/*.log", ["a.log", "b/a.log", "b/c/a.log", "a.log!x"], ["a.txt", "b/alog", "a.log.gz"]),
        ("*/nccl/*.log", ["a/nccl/1.log"], ["nccl/1.log", "a/b/nccl/1.log", "a/nccl/b/1.log"]),
        ("run?.log", ["run1.log", "runx.log"], ["run10.log", "run.log", "run/.log"]),
        ("a.tar.gz", ["a.tar.gz", "a.tar.gz!ib/1.log"], ["aXtar.gz", "b/a.tar.gz"]),
        ("a.zip!ib/*", ["a.zip!ib/1.log"], ["a.zip", "a.zip!roce/1.log", "a.zip!ib/x/1.log"]),
        ("a[1].log", ["a[1].log"], ["a1.log"]),
        ("client/tcp-*", ["client/tcp-1.log"], ["client/udp-1.log", "client/tcp-1/x.log"]),
    ],
)
def test_globs(tmp_path: Path, glob: str, matching: list[str], others: list[str]) -> None:
    """``**`` crosses folders, ``*`` and ``?`` do not; an archive's name claims its members, one member by its own."""
    campaign = with_fabric(tmp_path, glob)
    assert [p for p in (*matching, *others) if campaign.fabrics_of(f"{tmp_path}/{p}")] == matching


def test_a_glob_that_matches_nothing_is_found(tmp_path: Path) -> None:
    """Each glob is judged for itself."""
    campaign = with_fabric(tmp_path, "a/*", "b/*")
    assert unmatched_globs(campaign, [f"{tmp_path}/a/1.log", f"{tmp_path}/c/1.log"]) == [("f", "b/*")]
    assert unmatched_globs(campaign, []) == [("f", "a/*"), ("f", "b/*")]


# Which file rules


def test_the_nearest_file_rules(bench: Bench) -> None:
    """A log belongs to the campaign file in its folder or the next one above, never to two."""
    bench.campaign('[campaign]\nname = "outer"\n')
    bench.campaign('[campaign]\nname = "inner"\n', "inner")
    bench.log("1.log", nccl_log(pid=1))
    bench.log("folder/2.log", nccl_log(pid=2))
    bench.log("inner/3.log", nccl_log(pid=3))
    bench.log("inner/folder/4.log", nccl_log(pid=4))
    bench.ingest()
    rows = bench.rows("SELECT campaign, parse_filename(path) FROM runs ORDER BY path")
    assert rows == [("outer", "1.log"), ("outer", "2.log"), ("inner", "3.log"), ("inner", "4.log")]


def test_a_name_with_an_exclamation_mark_is_no_archive(bench: Bench) -> None:
    """The campaign file of a folder whose name holds the sign of archive members is found."""
    bench.campaign('[campaign]\nname = "loud"\n[[fabric]]\nname = "f"\nfamily = "roce"\nlogs = ["now!/*"]\n')
    bench.log("now!/1!.log", nccl_log())
    bench.ingest()
    assert bench.rows("SELECT campaign, fabric FROM runs") == [("loud", "f")]


def test_two_campaigns_of_one_name_are_refused(bench: Bench) -> None:
    """One ingest cannot hold two files of one name; nothing is stored."""
    first = bench.campaign('[campaign]\nname = "same"\n', "a")
    second = bench.campaign('[campaign]\nname = "same"\n', "b")
    bench.log("a/1.log", nccl_log(pid=1))
    bench.log("b/1.log", nccl_log(pid=2))
    with pytest.raises(CampaignError) as caught:
        bench.ingest()
    assert str(caught.value) == f"{second}: the campaign 'same' is also the name of {first}"
    assert not bench.store.path.exists()


def test_a_wrong_file_stores_nothing(bench: Bench) -> None:
    """A mistake is said before the logs are read."""
    bench.log("1.log", nccl_log())
    path = bench.campaign('[campaign]\nnam = "x"\n')
    with pytest.raises(CampaignError) as caught:
        bench.ingest()
    assert str(caught.value) == f"{path}:1: [campaign] needs a name"
    assert not bench.store.path.exists()


def test_a_name_that_another_folder_had_is_said(bench: Bench) -> None:
    """A campaign that comes back from another folder replaces the old one, with a remark."""
    values: dict[str, Any] = {"a": 1, "b": 2}
    for folder, pid in values.items():
        bench.campaign('[campaign]\nname = "same"\n', folder)
        bench.log(f"{folder}/1.log", nccl_log(pid=pid))
    bench.ingest(bench.logs / "a")
    receipt = bench.ingest(bench.logs / "b")
    assert receipt.remarks[0] == (
        f"{bench.logs}/b/rdmalab.toml: the campaign 'same' was that of {bench.logs}/a until now"
    )
    assert bench.rows("SELECT campaign, path FROM runs") == [("same", f"{bench.logs}/b/1.log")]
