"""The documents tell the truth: every command and every verb they name exists, in both languages alike."""

import re
from pathlib import Path

import pytest

from rdmalab.cli import main
from rdmalab.formats import known
from rdmalab.store import TABLES

ROOT = Path(__file__).parents[1]
READMES = ("README.md", "README.zh-CN.md")


@pytest.mark.parametrize("name", READMES)
def test_every_verb_is_explained(name: str) -> None:
    """Each verb of the command line stands in the README, and no other."""
    named = set(re.findall(r"(?:`|^)rdmalab ([a-z]+)\b", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
    assert named - {"formats"} <= set(main.commands)
    assert set(main.commands) <= named


@pytest.mark.parametrize("name", READMES)
def test_make_targets_exist(name: str) -> None:
    """``make`` commands of the README are targets of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake (demo|test|lint|bench)\b", (ROOT / name).read_text(encoding="utf-8"))) <= targets


def test_both_readmes_have_the_same_code() -> None:
    """The Chinese README shows the same commands and the same code as the English one."""
    shell = [
        re.findall(r"^(?:rdmalab|make) .*?(?= {2,}|$)", (ROOT / n).read_text(encoding="utf-8"), re.MULTILINE)
        for n in READMES
    ]
    assert shell[0] == shell[1]
    heads = [len(re.findall(r"^#+ ", (ROOT / n).read_text(encoding="utf-8"), re.MULTILINE)) for n in READMES]
    assert heads[0] == heads[1]


def test_the_views_are_named() -> None:
    """Every view that an analyst may ask stands in the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for view in ("logs", "runs", "samples", "readings", "notes", "fabrics", "results"):
        assert f"| `{view}` |" in text
    assert "samples" in TABLES


def test_no_file_names_a_machine_or_a_registry() -> None:
    """The project speaks of itself alone: no address of a registry, no path of a workplace."""
    words = (
        "pypi.org",
        "files.pythonhosted",
        "registry.npmjs",
        "deb.debian.org",
        "/work/" + "main",
        "../" + "shared/" + "own",
    )
    for path in [
        *ROOT.glob("*.md"),
        *ROOT.glob("*.toml"),
        *ROOT.glob("*.txt"),
        *(ROOT / "rdmalab").rglob("*.py"),
        *(ROOT / "data").rglob("*.toml"),
    ]:
        text = path.read_text(encoding="utf-8")
        assert not [w for w in words if w in text], path


def test_formats_have_distinct_names() -> None:
    """A name means one format."""
    names = [f.NAME for f in known()]
    assert len(names) == len(set(names))
