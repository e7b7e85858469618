"""Chinese reports are whole: every message is translated, nothing English is left, and every number stays."""

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po
from click.testing import CliRunner

from rdmalab import limits, store, transport
from rdmalab.cli import main
from rdmalab.compare import Comparison
from rdmalab.figures import _wrapped
from rdmalab.lab import Lab
from rdmalab.language import LANGUAGES, LOCALE, translator
from rdmalab.pages.fabric_comparison import FabricComparison
from rdmalab.pairs import Pairs
from rdmalab.pdf import find_browser
from rdmalab.phrases import translated
from rdmalab.telemetry import SHARES, CpuCost, Telemetry, Use
from rdmalab.wording import Words
from tests._comparisons import BANDWIDTH, COLLECTIVE, LATENCY, Reader, around, blocks, comparison, figure_texts

PACKAGE = Path(__file__).parents[1] / "rdmalab"
EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
PO = LOCALE / "zh" / "LC_MESSAGES" / "rdmalab.po"
PLACE = re.compile(r"\{\w*\}")
HAN = r"[\u4e00-\u9fff]"
RADICALS = re.compile("[\u2e80-\u2fdf]")
FULL_WIDTH = r"，。；：（）、“”"

# Latin letters that a Chinese report keeps: names of tools, tests, libraries, families, units, fields, statistics.
KEPT = re.compile(
    r"""RDMA|RoCE\w*|Soft-RoCE|InfiniBand|TCP|UDP|MTU|RC|UC|UD|QP|GID|GPU\w*|GDRDMA|CPU|SM|NCCL|NVLink|SHARP|NET/IB|NET/OFI
    |NET/Socket|Socket|IB|RTT(?:/2)?|nccl-tests|perftest|iperf3|ucx_perftest|tag_lat|tag_bw|qperf|(?:tcp|udp|rc)_\w+
    |ib_\w+|verbs|libibverbs|ibv_open_device|rdmalab(?:\.toml)?|kernel|busbw|AllReduce|AllGather|ReduceScatter|AlltoAllV?
    |Broadcast|Reduce|Gather|Scatter|SendRecv|Hypercube|hypercube|alltoallv|[nk]-1|all_reduce|all_gather|alltoall|float|sum|none|root|rank|runs
    |out-of-place|in-place|operation|program|latency_convention|facts|same|same|link_rate_gbit_s|ports_per_node|gpus_per_\w+
    |mtu_bytes|ranks|bidirectional|scale_up_gbyte_s|sha256|Hodges-Lehmann|Mann-Whitney|Moses|Wilcoxon|Holm|B|KiB|MiB|GiB|GB/s|Gb/s
    |PCIe|Gen\d|x\d+|MB/sec|MiB/sec|µs|ms|s|R|g|k|n|x|b|FC-\w+|[0-9a-f]{8,}""",
    re.VERBOSE,
)


def messages() -> set[str]:
    """The messages of all sources, as the extractor of ``make messages`` finds them."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        found |= {str(message) for _, message, *_ in extract_from_file("python", str(path), keywords={"_": None})}
    return found


def calls() -> Iterator[tuple[str, ast.expr]]:
    """(where, argument) of every call of ``_`` in the sources."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
                if name == "_":
                    yield f"{path.name}:{node.lineno}", node.args[0]


def catalogue() -> dict[str, str]:
    with PO.open("rb") as stream:
        return {str(m.id): str(m.string) for m in read_po(stream, locale="zh") if m.id}


# -- the catalogue ------------------------------------------------------------------------------------------------


def test_every_message_has_its_translation_and_no_other() -> None:
    """What the sources say and what the catalogue translates are the same set; nothing is empty."""
    found = catalogue()
    assert set(found) == messages()
    assert [m for m, text in found.items() if not text] == []


def test_no_translation_is_doubtful_or_left_over() -> None:
    """No fuzzy message and no obsolete one."""
    text = PO.read_text(encoding="utf-8")
    assert not re.search(r"^#~|^#,.*fuzzy", text, re.MULTILINE)


def test_placeholders_are_the_same() -> None:
    """A translation names every value that its message names, and no other."""
    for message, text in catalogue().items():
        assert sorted(set(PLACE.findall(message))) == sorted(set(PLACE.findall(text))), message


def test_the_extractor_sees_every_message() -> None:
    """Every call of the translator has one literal, in a place where the extractor finds it."""
    known = messages()
    for where, argument in calls():
        assert isinstance(argument, ast.Constant), where
        assert argument.value in known, f"{where}: hidden from the extractor, for example inside an f-string"


def test_chinese_is_typeset_as_chinese() -> None:
    """Full-width marks, no space around them, per cent without a space, and no word for 'the same'."""
    for text in catalogue().values():
        assert not re.search(rf"{HAN}[,;:(]|[,;:)]{HAN}", text), text
        assert not re.search(rf" [{FULL_WIDTH}]|[{FULL_WIDTH}] ", text), text
        assert not re.search(r"\d\s%|\}\s%", text), text
        assert not re.search(rf"{HAN} {HAN}|{HAN}\.$", text), text
        assert not re.search("相同|持平|延迟", text), text


# -- what lower rooms say -----------------------------------------------------------------------------------------


def formulas() -> Iterator[limits.Limit]:
    """Limits of every kind, known and unknown."""
    for family in ("infiniband", "roce", "tcp", "efa", None):
        for mtu in (None, 1500 if family == "tcp" else 4096, 7):
            for both in (True, False, None):
                yield limits.point_to_point_limit(family, 100.0, mtu, ports=2, bidirectional=both)
    yield limits.goodput_gbit_s("roce", None, 4096)
    yield limits.point_to_point_limit("roce", 400.0, 4096, ports=2, pcie="Gen4 x16")
    for operation in ("sendrecv", "all_reduce"):
        yield limits.collective_limit(
            operation, ranks=4, ranks_per_domain=4, domains=1, port_gbit_s=None, ports_per_domain=None, mtu_bytes=None,
            family=None, scale_up_gbyte_s=448.0, mesh_links=7, nvls_possible=False,
        )  # fmt: skip
    for operation in ("all_reduce", "alltoall", "broadcast", "sendrecv", "hypercube", "alltoallv", None):
        for domains, ports, up in ((1, 1, 450.0), (2, 3, 1.0), (2, 8, 450.0), (2, None, 1.0), (3, 8, 1.0)):
            for in_network in (True, False):
                for nvls in (True, False):
                    yield limits.collective_limit(
                        operation, ranks=16, ranks_per_domain=16 // min(domains, 2), domains=domains, port_gbit_s=400.0,
                        ports_per_domain=ports, mtu_bytes=None, family="infiniband", scale_up_gbyte_s=up,
                        nvls_possible=nvls, in_network=in_network,
                    )  # fmt: skip
    yield limits.collective_limit(
        "all_reduce", ranks=1, ranks_per_domain=1, domains=1, port_gbit_s=None, ports_per_domain=None, mtu_bytes=None,
        family=None, scale_up_gbyte_s=None,
    )  # fmt: skip


def english(text: str) -> list[str]:
    """The Latin words of a text that no Chinese report keeps."""
    words = re.findall(r"[^\W\d_\u4e00-\u9fff][\w./+-]*", re.sub(HAN, " ", text))
    return [w for word in words if not KEPT.fullmatch(w := word.rstrip("./-")) and not KEPT.fullmatch(word)]


def test_formulas_and_missing_facts_are_translated() -> None:
    """Nothing English stays in a limit but symbols, units and names of fields; every number stays."""
    zh = translator("zh")
    for limit in formulas():
        for text in (limit.formula, limit.missing):
            if text and limit.gbyte_s is None and text == limit.formula:
                continue  # not shown: the missing fact is
            shown = translated(text or "", zh)
            assert english(shown) == [], shown
            assert re.findall(r"\d+(?:\.\d+)?", shown) == re.findall(r"\d+(?:\.\d+)?", text or ""), text


REASONS = [
    "fell back to sockets: no RDMA device used",
    "fell back to sockets: " + "; ".join(transport.FALLBACK_REASONS.values()),
    "the log shows roce, the campaign file says infiniband",
    "the log shows that all ranks share a node, the campaign file says roce",
    "the log shows RDMA, the campaign file says tcp",
    "claimed by several fabrics: a, b",
    "which ranks form a communicator",
    "a latency has no bandwidth limit",
    "the runs have different limits",
]


@pytest.mark.parametrize("reason", REASONS)
def test_reasons_are_translated(reason: str) -> None:
    """A reason of the store is Chinese in a Chinese report, its names untouched."""
    text = translated(reason, translator("zh"))
    assert re.search(HAN, text)
    left = {"roce", "infiniband", "tcp", "a", "NCCL_IB_DISABLE", "NCCL_NET", "Socket"}
    assert set(english(text)) <= left, text
    assert ", " not in text.replace("a, b", "")
    assert "; " not in text


def test_every_reason_of_the_store_is_known() -> None:
    """A reason that the view gains needs its words."""
    page = FabricComparison(comparison((LATENCY, {("a", 8): around(1), ("b", 8): around(2)})), "zh")
    given = re.findall(r"THEN '([^']+)'", store._VIEWS["runs"])
    assert len(given) > 4
    for reason in [*given, "truncated", "failed", "no_data"]:
        words, _ = page._why_out(reason)
        assert re.search(HAN, words), reason


def test_unknown_texts_stay_whole() -> None:
    """What no phrase fits is not mangled."""
    assert translated("a reason {with} braces", translator("zh")) == "a reason {with} braces"
    assert Words(comparison((LATENCY, {("a", 8): around(1), ("b", 8): around(2)}))).stated("no rows") == "no rows"


# -- reports ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = str(tmp_path_factory.mktemp("store") / "lab.duckdb")
    done = CliRunner().invoke(main, ["ingest", str(EXAMPLES / "synthetic"), str(EXAMPLES / "softroce"), "--db", file])
    assert done.exit_code == 0, done.output
    return file


@pytest.fixture(scope="module")
def examples(db: str) -> dict[str, Comparison]:
    """The comparisons of both example campaigns."""
    with Lab(db) as lab:
        return {name: lab.compare(campaign=name) for name in ("synthetic", "softroce")}


PAIRS = {
    1: Pairs(
        fabric="甲", test="all_reduce", dtype="float", ranks=16, placement="in_place", size_bytes=1 << 30,
        hosts=("1", "2", "3"), values={("1", "2"): 9.0, ("1", "3"): 9.1}, runs=2, limit_gbyte_s=None,
    ),
    7: Pairs(
        fabric="甲", test="sendrecv", dtype="float", ranks=2, placement="out_of_place", size_bytes=1 << 20,
        hosts=tuple("12345"), runs=70, limit_gbyte_s=12.0,
        values={(a, b): 6.0 if b == "5" else 9.0 for a, b in combinations("12345", 2)},
    ),
}  # fmt: skip


def telemetry_of(n: int) -> Telemetry:
    """Readings of every kind, stamped."""
    kinds = list(dict.fromkeys(SHARES.values()))
    rows = [("甲", kind, "0", "l", float(t), 50.0) for kind in kinds for t in range(n)]
    schema = ["fabric", "kind", "device", "log_id", "second", "value_pct"]
    return Telemetry(
        uses=tuple(
            Use(fabric="甲", kind=k, readings=n, logs=1, median_pct=50.0, low_pct=1.0, high_pct=99.0) for k in kinds
        ),
        costs=(CpuCost(fabric="甲", runs=n, sender_s_per_gbyte=0.3, receiver_s_per_gbyte=None),),
        series=pl.DataFrame(rows, schema=schema, orient="row"),
    )


def all_blocks(page: FabricComparison) -> list[Any]:
    return [*blocks(page), page.node_pairs(), page.use_over_time()]


def texts(page: FabricComparison) -> Iterator[str]:
    """Every text that a reader sees or hears, but the user's own words and paths."""
    c = page.c
    labels = [*c.labels.values(), *(word for label in c.labels.values() for word in label.split())]
    own = [*labels, c.campaign["title"], c.campaign["customer"], *(c.campaign["notes"] or ()), c.snapshot[:12]]
    cut = re.compile("|".join(map(re.escape, sorted(filter(None, own), key=len, reverse=True))))
    for block in all_blocks(page):
        figures = [json.loads(f.to_json()) for f in block.figures]
        axes = [t for f in figures for k, a in f["layout"].items() if "axis" in k for t in a.get("ticktext") or ()]
        axes += [a.get("ticksuffix") or "" for f in figures for k, a in f["layout"].items() if "axis" in k]
        hover = [t["hovertemplate"] for f in figures for t in f["data"] if t.get("hovertemplate")]
        drawn = re.sub(r"<[^>]+>", " ", "\n".join([figure_texts(block), *axes]))
        hovered = re.sub(r"%\{[^}]*\}", " ", "\n".join(hover))
        html = re.sub(r'<td class="mono">[^<]*</td>', "", block.html)  # paths and hashes
        for text in (Reader(html).text, drawn, hovered, "\n".join(block.alts)):
            for line in text.replace("\u00a0", " ").splitlines():
                yield cut.sub(" ", re.sub("出处：.*", "出处", line))  # a citation stays as its source has it
    for key in ("report", "status", "title"):
        yield cut.sub(" ", (page.header()[key] or "").replace("\u00a0", " "))


@pytest.mark.parametrize("name", ["synthetic", "softroce"])
def test_nothing_english_is_left(examples: dict[str, Comparison], name: str) -> None:
    """Pages, charts and margins hold Latin letters only in names, units, fields and paths."""
    for line in texts(FabricComparison(examples[name], "zh")):
        assert english(line) == [], line
        assert not re.search(r"\d %", line), line
        assert not re.search(rf"{HAN}[,;:]|[,;:] ?{HAN}|{HAN} ?\.(?:\s|$)|[A-Za-z)][,;] ", line), line


@pytest.mark.parametrize("n", [1, 7])
def test_nothing_english_is_left_where_little_is_known(n: int) -> None:
    """Few runs, gaps, one size only, values above a limit, or no limit."""
    for share in (None, 47.13, 107.31):
        values = {
            (f, s): around(20 * k * (1 + s / 1e6), n)
            for f, k in (("甲", 1.0), ("乙", 3.0), ("丙", 1.002))
            for s in (8, 64)
        }
        del values["乙", 64]
        c = comparison(
            (COLLECTIVE, values), (LATENCY, values), (BANDWIDTH, values), order=("甲", "乙", "丙"), share=share,
            limit=12.2547 if share else None,
        )  # fmt: skip
        c = replace(c, pairs=PAIRS[n], telemetry=telemetry_of(n))
        for line in texts(FabricComparison(c, "zh")):
            assert english(line) == [], line


@pytest.mark.parametrize("name", ["synthetic", "softroce"])
def test_both_languages_say_the_same_numbers(examples: dict[str, Comparison], name: str) -> None:
    """report.json holds the same numbers, and every table prints the same digits."""
    pages = [FabricComparison(examples[name], lang) for lang in LANGUAGES]
    en, zh = (p.figures_for_machines() for p in pages)
    assert en.pop("verdict") != zh.pop("verdict")
    for table in (*en["tables"], *zh["tables"]):
        table.pop("subject")
    assert en == zh
    cell = re.compile(r'<(?:td|b|span) class="(?:num|num none|interval|median)">([^<]*)<')
    digits = [[re.sub(r"[^\d.,/\[\]]", "", t) for b in all_blocks(p) for t in cell.findall(b.html)] for p in pages]
    assert digits[0] == digits[1]
    assert len(digits[0]) > 50


def test_an_unknown_language_is_refused_with_those_that_exist(db: str, tmp_path: Path) -> None:
    """One sentence, exit 2, and no file."""
    out = tmp_path / "out"
    args = ["report", "fabric-comparison", "-p", "campaign=synthetic", "--lang", "fr", "--db", db, "--out", str(out)]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "'fr'" in done.stderr
    assert "en, zh" in done.stderr
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
@pytest.mark.skipif(shutil.which("pdffonts") is None, reason="poppler-utils not installed")
def test_the_chinese_pdf_can_be_searched_and_printed(db: str, tmp_path: Path) -> None:
    """The words are found as they are typed, the fonts are inside, none of Type 3, and no page is nearly empty."""
    from pypdf import PdfReader

    args = [
        "report",
        "fabric-comparison",
        "-p",
        "campaign=synthetic",
        "--lang",
        "zh",
        "--db",
        db,
        "--out",
        str(tmp_path),
    ]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    html = (tmp_path / "fabric_comparison.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in html
    assert ":lang(zh)" in html
    file = tmp_path / "fabric_comparison.pdf"
    pages = [p.extract_text() for p in PdfReader(file).pages]
    text = "".join(pages)
    for word in ("网络比较", "总线带宽", "未显示差异", "合成数据：非实测"):
        assert word in re.sub(r"\s", "", text), word
    assert not RADICALS.search(text)
    lines = subprocess.run(["pdffonts", file], capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    assert any("NotoSansSC" in line.replace(" ", "") or "Noto" in line for line in lines)
    for line in lines:
        assert "Type 3" not in line
        assert line.split()[-5] == "yes", line
    assert min(len(p) for p in pages[1:]) > 250  # a page with the rest of a sentence has less


# -- labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("TCP 100G", "TCP 100G"),
        ("InfiniBand NDR400", "InfiniBand<br>NDR400"),
        ("万兆以太网", "万兆以太网"),
        ("数据中心无损以太网络", "数据中心无<br>损以太网络"),
        ("Averyverylongname", "Averyverylongname"),
        ("<b>&", "&lt;b&gt;&amp;"),
    ],
)
def test_long_labels_stand_on_two_lines(label: str, shown: str) -> None:
    """A break at a space, or between Chinese characters; markup is text."""
    assert _wrapped(label) == shown
