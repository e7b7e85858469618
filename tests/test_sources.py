"""From paths to texts: every file once and in order, every encoding as lines, nothing unreadable in silence."""

import bz2
import contextlib
import gzip
import hashlib
import importlib
import io
import lzma
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdmalab import sources
from rdmalab.sources import File, Skipped, Text, find, texts
from tests.conftest import write

CONTENT = b"first\nsecond\nthird\n"
LINES = [(1, "first"), (2, "second"), (3, "third")]


def names(root: Path) -> list[str]:
    return [os.path.relpath(f.path, root) for f in find([root]) if isinstance(f, File)]


def only(path: Path) -> Text:
    (text,) = texts(path)
    assert isinstance(text, Text)
    return text


def skipped(path: Path) -> Skipped:
    (text,) = texts(path)
    assert isinstance(text, Skipped)
    return text


# Finding


def test_folders_are_walked_in_order_of_name(tmp_path: Path) -> None:
    """Files come sorted within their folder, folders in their place, with size and age."""
    for name in ("b.log", "a/2.log", "a/10.log", "c/d/e.log"):
        write(tmp_path / name, CONTENT)
    assert names(tmp_path) == ["a/10.log", "a/2.log", "b.log", "c/d/e.log"]
    (found,) = find([tmp_path / "b.log"])
    assert found == File(str(tmp_path / "b.log"), 19, (tmp_path / "b.log").stat().st_mtime_ns)


def test_hidden_files_are_left_out_unless_named(tmp_path: Path) -> None:
    """A name with a dot in front is not found by walking, but read when it is named itself."""
    for name in ("a.log", ".b.log", ".git/c.log"):
        write(tmp_path / name, CONTENT)
    assert names(tmp_path) == ["a.log"]
    assert names(tmp_path / ".git") == ["c.log"]
    assert names(tmp_path / ".b.log") == ["."]


def test_a_link_to_a_folder_is_no_loop(tmp_path: Path) -> None:
    """A link to a folder is not followed, one to a file is."""
    log = write(tmp_path / "a" / "x.log", CONTENT)
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "y.log").symlink_to(log)
    assert names(tmp_path) == ["a/x.log", "y.log"]


def test_a_link_to_itself_and_a_broken_link_are_said(tmp_path: Path) -> None:
    """Links that lead nowhere are reported in words."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    assert list(find([tmp_path])) == [
        Skipped(str(tmp_path / "loop"), "too many levels of symbolic links"),
        Skipped(str(tmp_path / "nowhere"), "no such file or directory"),
    ]


def test_a_fifo_is_not_opened(tmp_path: Path) -> None:
    """A pipe without a writer would wait for ever; it is said instead."""
    os.mkfifo(tmp_path / "pipe")
    assert list(find([tmp_path])) == [Skipped(str(tmp_path / "pipe"), "not a plain file")]


def test_a_name_that_is_not_utf8_is_said(tmp_path: Path) -> None:
    """No table can hold such a name, so the file is reported under a readable form of it."""
    with open(os.path.join(os.fsencode(tmp_path), b"a\xff.log"), "wb") as stream:  # noqa: PTH118, PTH123 - bytes
        stream.write(CONTENT)
    assert list(find([tmp_path])) == [Skipped(f"{tmp_path}/a\ufffd.log", "its name is not UTF-8; rename it")]


def test_a_missing_path_raises(tmp_path: Path) -> None:
    """A path that was named has to be there."""
    with pytest.raises(FileNotFoundError, match="gone"):
        list(find([tmp_path / "gone"]))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_said(tmp_path: Path) -> None:
    """A file without read permission is skipped with the reason."""
    path = write(tmp_path / "a.log", CONTENT)
    path.chmod(0)
    assert skipped(path) == Skipped(str(path), "permission denied")


def test_a_file_that_vanished_is_said(tmp_path: Path) -> None:
    """A log that was rotated away between finding and reading is skipped with the reason."""
    assert skipped(tmp_path / "gone.log") == Skipped(str(tmp_path / "gone.log"), "no such file or directory")


# Compressed files and archives


def pack_zstd(content: bytes) -> bytes:
    for package in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ImportError):
            return bytes(importlib.import_module(package).compress(content))
    pytest.skip("no package writes zstd")


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2", ".GZ", ".zst"])
def test_compressed_files_are_read_as_their_content(tmp_path: Path, ending: str) -> None:
    """Lines, size and hash are those of the decompressed bytes."""
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": pack_zstd}[ending.lower()]
    text = only(write(tmp_path / f"a.log{ending}", pack(CONTENT)))
    assert (list(text.lines()), text.size_bytes) == (LINES, 19)
    assert text.sha256 == hashlib.sha256(CONTENT).hexdigest() == Text.of(CONTENT).sha256


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2", ".zip", ".tar", ".tar.gz", ".tgz", ".zst", ".tar.zst"])
def test_damaged_compressed_files_are_said(tmp_path: Path, ending: str) -> None:
    """What claims to be compressed and is not, is skipped with a reason."""
    found = skipped(write(tmp_path / f"a{ending}", b"this is no archive at all\n" * 40))
    assert found.path == str(tmp_path / f"a{ending}")
    assert found.reason


def test_a_compressed_file_that_was_cut_is_said(tmp_path: Path) -> None:
    """Half a .gz is no log."""
    found = skipped(write(tmp_path / "a.log.gz", gzip.compress(os.urandom(5000))[:2000]))
    assert found.reason == "compressed file ended before the end-of-stream marker was reached"


def test_zstd_without_a_package_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no package reads it, the way out is named."""
    monkeypatch.setattr(sources, "_ZSTD", ("no_such_package",))
    reason = skipped(write(tmp_path / "a.zst", b"(\xb5/\xfd")).reason
    assert reason == "zstd is not read here: pip install backports.zstd, or decompress it first"


def members() -> Iterator[tuple[str, bytes]]:
    yield "ib/1.log", CONTENT
    yield "ib/2.log.gz", gzip.compress(CONTENT)
    yield "ib/._1.log", b"left by a file manager"
    yield "ib/3.log", b""


def pack_tar(path: Path, mode: str) -> None:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("./ib")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, content in members():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "a.tar.bz2", "a.tar.zst"])
def test_members_are_addressed_by_archive_and_name(tmp_path: Path, name: str) -> None:
    """Every member is a text of its own; folders and hidden members are none; a compressed member is decompressed."""
    path = tmp_path / name
    if name == "a.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.mkdir("ib")
            for member, content in members():
                archive.writestr(member, content)
    elif name == "a.tar.zst":
        pack_tar(tmp_path / "a.tar", "w")
        path.write_bytes(pack_zstd((tmp_path / "a.tar").read_bytes()))
    else:
        pack_tar(path, {"tar": "w", "tgz": "w:gz"}.get(name.rsplit(".")[-1], f"w:{name.rsplit('.')[-1]}"))
    found = [t for t in texts(path) if isinstance(t, Text)]
    assert [t.path for t in found] == [f"{path}!ib/1.log", f"{path}!ib/2.log.gz", f"{path}!ib/3.log"]
    assert list(found[0].lines()) == list(found[1].lines()) == LINES
    assert found[0].sha256 == found[1].sha256
    assert list(found[2].lines()) == []


def test_one_damaged_member_leaves_the_others(tmp_path: Path) -> None:
    """A member that cannot be decompressed is said under its own address."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.log.gz", b"no gzip")
        archive.writestr("2.log", CONTENT)
    broken, whole = texts(path)
    assert isinstance(broken, Skipped)
    assert (broken.path, broken.reason) == (f"{path}!1.log.gz", "not a gzipped file (b'no')")
    assert isinstance(whole, Text)
    assert list(whole.lines()) == LINES


def test_content_made_to_fill_disks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks to a thousand times its size, or to more than any log, is said in a line and left alone."""
    monkeypatch.setattr(sources, "_KEEP", 1 << 20)
    monkeypatch.setattr(sources, "_CHUNK", 1 << 20)
    monkeypatch.setattr(sources, "_TRUSTED", 4 << 20)
    zeros = bytes(8 << 20)
    bomb = skipped(write(tmp_path / "a.log.bz2", bz2.compress(zeros)))
    assert bomb.reason == "it unpacks to more than 1000 times its size; not read"
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("bomb.log", zeros)
        archive.writestr("whole.log", CONTENT)
    refused, whole = texts(tmp_path / "b.zip")
    assert refused == Skipped(f"{tmp_path}/b.zip!bomb.log", bomb.reason)
    assert isinstance(whole, Text)
    monkeypatch.setattr(sources, "_UNPACKED", 6 << 20)
    noise = skipped(write(tmp_path / "c.log.gz", gzip.compress(os.urandom(7 << 20), 1)))
    assert noise.reason == "it unpacks to more than 0 GiB; not read"


def test_a_tar_that_holds_more_than_it_weighs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The members before that are read; the rest of the archive is said in one line."""
    monkeypatch.setattr(sources, "_TRUSTED", 1 << 20)
    with tarfile.open(tmp_path / "a.tar.bz2", "w:bz2") as tar:
        for number, content in enumerate((CONTENT, bytes(8 << 20), CONTENT)):
            info = tarfile.TarInfo(f"{number}.log")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    first, rest = texts(tmp_path / "a.tar.bz2")
    assert isinstance(first, Text)
    assert rest == Skipped(f"{tmp_path}/a.tar.bz2", "it unpacks to more than 1000 times its size; not read")


def test_members_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member of a .zip is streamed, also after its archive was closed; one of a .tar has to be unpacked."""
    monkeypatch.setattr(sources, "_KEEP", 100)
    monkeypatch.setattr(sources, "_CHUNK", 50)
    monkeypatch.setattr(sources, "_MEMBER", 100)
    long = CONTENT * 20
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.log", long)
    (text,) = texts(tmp_path / "a.zip")
    assert isinstance(text, Text)
    assert text.held is None
    assert len(list(text.lines())) == 60
    assert b"".join(chunk for _, chunk in text.chunks()) == long
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        info = tarfile.TarInfo("1.log")
        info.size = len(long)
        tar.addfile(info, io.BytesIO(long))
    reason = "a member of more than 0 MiB: unpack the archive to have it read"
    assert skipped(tmp_path / "a.tar") == Skipped(f"{tmp_path}/a.tar!1.log", reason)


def test_links_and_devices_in_an_archive_are_said(tmp_path: Path) -> None:
    """They are no files, and what they point at may be anywhere."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, kind in (("pipe", tarfile.FIFOTYPE), ("disk", tarfile.BLKTYPE), ("link", tarfile.SYMTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "link"
            tar.addfile(info)
    assert [s.reason for s in texts(tmp_path / "a.tar") if isinstance(s, Skipped)] == ["not a plain file"] * 3


def test_lines_can_be_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that a pattern matches are left out; the numbers of the others stay."""
    noise = re.compile(r"^(?:noise[^\n]*\n)+", re.MULTILINE)
    content = "noise 1\nnoise 2\na\nb\nnoise 3\n\nc\nnoise 4"
    expected = [(3, "a"), (4, "b"), (6, ""), (7, "c"), (8, "noise 4")]
    assert list(Text.of(content).lines(noise)) == expected
    monkeypatch.setattr(sources, "_KEEP", 4)
    monkeypatch.setattr(sources, "_CHUNK", 9)
    text = Text.of(content)
    monkeypatch.setattr(sources, "_KEEP", 1 << 20)
    assert list(text.lines(noise)) == expected
    assert list(Text.of("noise\n").lines(noise)) == []


# Encodings


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", [], id="empty"),
        pytest.param(b"\n", [(1, "")], id="one-empty-line"),
        pytest.param(b"a\n\nb", [(1, "a"), (2, ""), (3, "b")], id="no-newline-at-the-end"),
        pytest.param(b"a\r\nb\r\n", [(1, "a\r"), (2, "b\r")], id="carriage-returns-stay"),
        pytest.param(b"a\x00b\n\x00\n", [(1, "a\x00b"), (2, "\x00")], id="nul-bytes"),
        pytest.param("Größe 5 µs\n".encode(), [(1, "Größe 5 µs")], id="utf-8"),
        pytest.param("\ufeffa\nb\n".encode(), [(1, "a"), (2, "b")], id="utf-8-with-mark"),
        pytest.param("\ufeff".encode(), [], id="only-a-mark"),
        pytest.param("a µ\nb\n".encode("utf-16"), [(1, "a µ"), (2, "b")], id="utf-16-with-mark"),
        pytest.param(b"\xfe\xff" + "a\nb\n".encode("utf-16-be"), [(1, "a"), (2, "b")], id="utf-16-be-with-mark"),
        pytest.param("# abc µ\nb\n".encode("utf-16-le"), [(1, "# abc µ"), (2, "b")], id="utf-16-le-without-mark"),
        pytest.param("# abc µ\nb\n".encode("utf-16-be"), [(1, "# abc µ"), (2, "b")], id="utf-16-be-without-mark"),
        pytest.param("5 µs\n6 µs\n".encode("latin-1"), [(1, "5 µs"), (2, "6 µs")], id="latin-1"),
        pytest.param("5 µs\n".encode() + b"6 \xb5s\n", [(1, "5 µs"), (2, "6 µs")], id="utf-8-and-latin-1-by-line"),
        pytest.param(b"a\x85b\xe2\x80\xa8c\x0cd\n", [(1, "a\x85bâ\x80¨c\x0cd")], id="only-newlines-end-lines"),
    ],
)
def test_lines_of_every_encoding(
    content: bytes, expected: list[tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines and their numbers are the same whether a text is held in memory or read again in pieces."""
    text = Text.of(content)
    assert list(text.lines()) == expected
    monkeypatch.setattr(sources, "_KEEP", 2)
    monkeypatch.setattr(sources, "_CHUNK", 7)
    monkeypatch.setattr(sources, "_encoding_of", lambda start: encoding(content))
    encoding = sources_encoding
    pieces = Text.of(content)
    monkeypatch.setattr(sources, "_KEEP", 1 << 20)  # no line is cut
    assert list(pieces.lines()) == expected
    assert (pieces.sha256, pieces.size_bytes) == (text.sha256, text.size_bytes)


sources_encoding = sources._encoding_of


def test_a_huge_text_is_never_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit a text comes in pieces that end at line ends, with the number of their first line."""
    content = b"".join(b"line %d of the log\n" % i for i in range(1, 501)) + b"the last one is cut"
    small = Text.of(content)
    monkeypatch.setattr(sources, "_KEEP", 1000)
    monkeypatch.setattr(sources, "_CHUNK", 300)
    big = only(write(tmp_path / "big.log.gz", gzip.compress(content)))
    pieces = list(big.chunks())
    assert len(pieces) > 20
    assert b"".join(piece for _, piece in pieces) == content
    assert all(piece.endswith(b"\n") for _, piece in pieces[:-1])
    assert [number for number, _ in pieces] == [
        1 + content[: sum(len(p) for _, p in pieces[:i])].count(b"\n") for i in range(len(pieces))
    ]
    assert list(big.lines()) == list(small.lines())
    assert list(big.lines())[499:] == [(500, "line 500 of the log"), (501, "the last one is cut")]
    assert big.sha256 == small.sha256 == hashlib.sha256(content).hexdigest()


def test_a_line_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line longer than the limit comes in pieces of the same number, so that memory stays bounded."""
    monkeypatch.setattr(sources, "_KEEP", 100)
    monkeypatch.setattr(sources, "_CHUNK", 50)
    lines = list(Text.of(b"x" * 400 + b"\nend\n").lines())
    assert max(len(line) for _, line in lines) <= 150
    assert "".join(line for number, line in lines if number == 1) == "x" * 400
    assert lines[-1] == (2, "end")


def test_the_reason_of_a_broken_archive_is_one_line(tmp_path: Path) -> None:
    """tarfile says of each of its readers why it failed; the receipt has a line a file."""
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(gzip.compress(b"x" * 1000)[:500])
    (skipped,) = texts(broken)
    assert isinstance(skipped, Skipped)
    assert skipped.reason == "file could not be opened successfully"
