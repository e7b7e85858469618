"""From paths to texts: folders, globs of the shell, compressed files and archives, encodings, content hashes.

Knows nothing of formats. A member of an archive is addressed ``archive!member`` and never unpacked to disk.
"""

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
import os
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

_CHUNK = 4 << 20  # bytes; a literal-first scan of 4 MiB pieces is as fast as one over a mapped file
_KEEP = 32 << 20  # a text up to this size is held in memory and read once
_OPENERS: dict[str, Callable[[Any, str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_MARK = "\ufeff".encode()
_UNREADABLE = (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError, zipfile.BadZipFile, RuntimeError)


class Text:
    """The content of one log as UTF-8, readable any number of times.

    ``path`` is what a user is shown, ``sha256`` the hash of the decompressed bytes.
    """

    def __init__(self, path: str, opener: Callable[[], BinaryIO], modified_ns: int | None = None) -> None:
        self.path, self._opener, self.modified_ns = path, opener, modified_ns
        with opener() as stream:
            start = stream.read(_KEEP)
            digest = hashlib.sha256(start)
            self.size_bytes = len(start)
            self._data: bytes | None = None
            while block := stream.read(_CHUNK):
                digest.update(block)
                self.size_bytes += len(block)
        self.sha256 = digest.hexdigest()
        self._encoding = _encoding_of(start)
        if self.size_bytes == len(start):
            data = start.decode(self._encoding, errors="replace").encode() if self._encoding else start
            self._data = data.removeprefix(_MARK)

    @classmethod
    def of(cls, content: str | bytes, path: str = "-") -> "Text":
        """A text from memory, for tests and for standard input."""
        data = content.encode() if isinstance(content, str) else content
        return cls(path, lambda: io.BytesIO(data))

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """Yields (number of the first line, bytes) in pieces that end at a line end; encoded as UTF-8 or latin-1."""
        if self._data is not None:
            yield 1, self._data
            return
        number, rest = 1, b""
        for block in self._blocks():
            block = rest + block
            cut = block.rfind(b"\n") + 1
            block, rest = block[:cut], block[cut:]
            if block:
                yield number, block
                number += block.count(b"\n")
            if len(rest) > _KEEP:  # one line of 32 MiB is no line of a log: cut it rather than hold gigabytes
                yield number, rest
                rest = b""
        if rest:
            yield number, rest

    def _blocks(self) -> Iterator[bytes]:
        """The content in pieces of any length, encoded as UTF-8 where it is UTF-16; without a byte order mark."""
        decoder = codecs.getincrementaldecoder(self._encoding)(errors="replace") if self._encoding else None
        with self._opener() as stream:
            first = True
            while block := stream.read(_CHUNK):
                block = decoder.decode(block).encode() if decoder else block
                yield block.removeprefix(_MARK) if first else block
                first = False
        if decoder:
            yield decoder.decode(b"", final=True).encode()

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yields (line number from 1, text without its line end). Bytes that are no UTF-8 are read as latin-1."""
        for number, chunk in self.chunks():
            try:
                text = chunk.decode("utf-8")
            except UnicodeDecodeError:
                text = "\n".join(_decode_line(raw) for raw in chunk.split(b"\n"))
            if text:
                yield from enumerate(text.removesuffix("\n").split("\n"), number)


def _decode_line(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _encoding_of(start: bytes) -> str | None:
    """``utf-16-le`` or ``utf-16-be`` where a mark or the pattern of NUL bytes shows it, else None."""
    if start[:2] in _UTF16:
        return _UTF16[start[:2]]
    head = start[:2048]
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = max(1, len(head) // 2)
    if odd > 0.8 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.8 * half and odd < 0.1 * half:
        return "utf-16-be"
    return None


@dataclass(frozen=True, slots=True)
class Skipped:
    """One thing that cannot be read, and why, in a few words."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class File:
    """One file that may hold a log, or many (an archive); not opened yet."""

    path: str
    size_bytes: int
    modified_ns: int


def find(paths: Iterable[str | Path]) -> Iterator[File | Skipped]:
    """
    Walks files and folders (recursively, in order of name) without opening a file.

    Links to folders are not followed, so that a loop cannot happen. Hidden files and folders are left out unless named.

    Raises:
        FileNotFoundError: A path that was named does not exist.
    """
    for path in paths:
        if not os.path.lexists(path):
            raise FileNotFoundError(str(path))
        yield from _walk(Path(path))


def texts(path: str | Path) -> Iterator[Text | Skipped]:
    """Opens one file: its text, or the texts of an archive's members. ``-`` is standard input."""
    path = Path(path)
    name = path.name.lower()
    try:
        if str(path) == "-":
            yield Text.of(sys.stdin.buffer.read(), "-")
        elif name.endswith(".zip"):
            yield from _zip_members(path)
        elif name.endswith(_TAR_ENDINGS):
            yield from _tar_members(path)
        elif name.endswith(".zst"):
            yield Skipped(str(path), "zstd is not read; decompress it first")
        else:
            opener = _OPENERS.get(path.suffix.lower(), open)
            yield Text(str(path), lambda: opener(path, "rb"), path.stat().st_mtime_ns)
    except _UNREADABLE as error:
        yield Skipped(str(path), _reason(error))


def _walk(path: Path) -> Iterator[File | Skipped]:
    try:
        if (shown := _printable(str(path))) != str(path):
            yield Skipped(shown, "its name is not UTF-8; rename it")
            return
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            for child in sorted(path.iterdir()):
                if not child.name.startswith(".") and not (child.is_symlink() and child.is_dir()):
                    yield from _walk(child)
        elif not stat.S_ISREG(status.st_mode):
            yield Skipped(str(path), "not a plain file")
        else:
            yield File(str(path), status.st_size, status.st_mtime_ns)
    except OSError as error:
        yield Skipped(str(path), _reason(error))


# Members are read while the archive is open, one at a time: a compressed tar cannot be entered in the middle.


def _zip_members(path: Path) -> Iterator[Text | Skipped]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield from _member(path, info.filename, partial(archive.read, info))


def _tar_members(path: Path) -> Iterator[Text | Skipped]:
    with tarfile.open(path) as archive:
        for info in archive:
            if info.isfile() and (stream := archive.extractfile(info)):
                yield from _member(path, info.name, stream.read)


def _member(path: Path, name: str, read: Callable[[], bytes]) -> Iterator[Text | Skipped]:
    """One member, decompressed if its name says so; hidden ones are left out as in folders."""
    inside = PurePosixPath(_printable(name))
    if any(part.startswith(".") and part != ".." for part in inside.parts):
        return
    opener = _OPENERS.get(inside.suffix.lower(), _as_it_is)
    try:
        content = read()
        yield Text(f"{path}!{inside}", lambda: opener(io.BytesIO(content), "rb"), path.stat().st_mtime_ns)
    except _UNREADABLE as error:
        yield Skipped(f"{path}!{inside}", _reason(error))


def _as_it_is(raw: BinaryIO, _mode: str) -> BinaryIO:
    return raw


def _printable(name: str) -> str:
    """A name as UTF-8; bytes that are none become the replacement sign."""
    return os.fsencode(name).decode("utf-8", errors="replace")


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
