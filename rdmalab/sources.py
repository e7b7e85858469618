"""From paths to texts: folders, globs of the shell, compressed files and archives, encodings, content hashes.

Knows nothing of formats. A member of an archive is addressed ``archive!member`` and never unpacked to disk.
"""

import bz2
import codecs
import contextlib
import gzip
import hashlib
import importlib
import io
import lzma
import os
import re
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, cast

from rdmalab.wrapping import unwrapped

_CHUNK = 4 << 20  # bytes; a literal-first scan of 4 MiB pieces is as fast as one over a mapped file
_KEEP = 32 << 20  # a text up to this size is held in memory and read once
_MEMBER = 256 << 20  # a compressed tar cannot be entered in the middle, so its members are held: none beyond this
_UNPACKED = 64 << 30  # what unpacks to more than this, or to 1000 times its size, is no log but a bomb
_TRUSTED = 1 << 30  # up to here no ratio is looked at
_ZSTD = ("compression.zstd", "backports.zstd")  # of Python 3.14, and for those before
_TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tar.zst", ".tzst")
_UNTIDY = re.compile(r"//|/\.?$|(?:^|/)\./|^$")  # what a Path makes shorter
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_MARK = "\ufeff".encode()
_UNREADABLE = (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError, zipfile.BadZipFile, RuntimeError)


class _RefusedError(OSError):
    """Content that this module does not read; its text says why."""


def _open_zstd(raw: Any, mode: str) -> BinaryIO:
    """Opens a .zst file with the first package that is there."""
    for package in _ZSTD:
        with contextlib.suppress(ImportError):
            zstd = importlib.import_module(package)
            return io.BufferedReader(_Zstd(zstd.open(raw, mode), zstd.ZstdError))
    raise _RefusedError("zstd is not read here: pip install backports.zstd, or decompress it first")


class _Zstd(io.RawIOBase):
    """A zstd stream whose errors are ours: each package has a class of its own for them."""

    def __init__(self, stream: BinaryIO, error: type[Exception]) -> None:
        self._stream, self._error = stream, error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except self._error as error:
            raise _RefusedError(str(error).lower()) from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


_OPENERS: dict[str, Callable[[Any, str], Any]] = {
    ".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open, ".zst": _open_zstd,
}  # fmt: skip


class Text:
    """The content of one log as UTF-8, readable any number of times.

    ``path`` is what a user is shown, ``sha256`` the hash of the decompressed bytes.
    """

    def __init__(
        self,
        path: str,
        opener: Callable[[], BinaryIO],
        modified_ns: int | None = None,
        *,
        size: int | None = None,
        packed: int | None = None,
    ) -> None:
        """
        Reads and hashes the content.

        Args:
            size: Of the content, where it is known: no more memory is taken then.
            packed: Size of what is decompressed, None where nothing is.

        Raises:
            OSError: It cannot be read, or it unpacks to so much that it was made to fill disks.
        """
        self.path, self._opener, self.modified_ns = path, opener, modified_ns
        wanted = _KEEP if size is None else min(_KEEP, size + 1)
        with opener() as stream:
            start = stream.read(wanted)
            digest = hashlib.sha256(start)
            self.size_bytes = len(start)
            self._data: bytes | None = None
            while len(start) == wanted and (block := stream.read(_CHUNK)):
                digest.update(block)
                self.size_bytes += len(block)
                _check_unpacked(self.size_bytes, packed)
        self.sha256 = digest.hexdigest()
        self._encoding = _encoding_of(start)
        if self.size_bytes == len(start):
            data = start.decode(self._encoding, errors="replace").encode() if self._encoding else start
            self._data = unwrapped(data.removeprefix(_MARK))

    @classmethod
    def of(cls, content: str | bytes, path: str = "-") -> "Text":
        """A text from memory, for tests and for standard input."""
        data = content.encode() if isinstance(content, str) else content
        return cls(path, partial(io.BytesIO, data))

    @property
    def held(self) -> bytes | None:
        """The whole content as :meth:`chunks` yields it, None where it is too much to be held."""
        return self._data

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """Yields (number of the first line, bytes) in pieces that end at a line end; encoded as UTF-8 or latin-1."""
        if self._data is not None:
            yield 1, self._data
            return
        for number, chunk in self._pieces():
            yield number, unwrapped(chunk)

    def _pieces(self) -> Iterator[tuple[int, bytes]]:
        """The same as it stands in the file."""
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

    def lines(self, without: re.Pattern[str] | None = None) -> Iterator[tuple[int, str]]:
        """
        Yields (line number from 1, text without its line end). Bytes that are no UTF-8 are read as latin-1.

        Args:
            without: Matches blocks of whole lines, with their line ends, that are passed over.
        """
        for number, chunk in self.chunks():
            try:
                text = chunk.decode("utf-8")
            except UnicodeDecodeError:
                text = "\n".join(_decode_line(raw) for raw in chunk.split(b"\n"))
            at = 0
            for block in without.finditer(text) if without else ():
                if at < block.start():
                    yield from enumerate(text[at : block.start() - 1].split("\n"), number)
                number += text.count("\n", at, block.end())
                at = block.end()
            if at < len(text):
                yield from enumerate(text[at:].removesuffix("\n").split("\n"), number)


def _check_unpacked(unpacked: int, packed: int | None) -> None:
    if packed is None or unpacked <= _TRUSTED:
        return
    if unpacked > _UNPACKED:
        raise _RefusedError(f"it unpacks to more than {_UNPACKED >> 30} GiB; not read")
    if unpacked > 1000 * packed:
        raise _RefusedError("it unpacks to more than 1000 times its size; not read")


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
    if 0 not in head:
        return None
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


class File(NamedTuple):
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
        name = path if isinstance(path, str) and not _UNTIDY.search(path) else str(Path(path))
        for found in _walk(name):
            if isinstance(found, Skipped) and not os.path.lexists(name):
                raise FileNotFoundError(str(path))
            yield found


def texts(path: str | Path) -> Iterator[Text | Skipped]:
    """Opens one file: its text, or the texts of an archive's members. ``-`` is standard input."""
    path = str(path)
    name = path.lower()
    try:
        if path == "-":
            yield Text.of(sys.stdin.buffer.read(), "-")
        elif name.endswith(".zip"):
            yield from _zip_members(path)
        elif name.endswith(_TAR_ENDINGS):
            yield from _tar_members(path)
        else:
            opener = _OPENERS.get(os.path.splitext(name)[1])
            status = os.stat(path)
            size, packed = (None, status.st_size) if opener else (status.st_size, None)
            opened = partial(opener or open, path, "rb")
            yield Text(path, opened, status.st_mtime_ns, size=size, packed=packed)
    except _UNREADABLE as error:
        yield Skipped(path, _reason(error))


def _walk(path: str) -> Iterator[File | Skipped]:
    try:
        if not path.isascii() and (shown := _printable(path)) != path:
            yield Skipped(shown, "its name is not UTF-8; rename it")
            return
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(path) as entries:
                children = sorted((e.name, e.is_symlink()) for e in entries if not e.name.startswith("."))
            for name, is_link in children:
                child = name if path == "." else os.path.join(path, name)
                if not (is_link and os.path.isdir(child)):
                    yield from _walk(child)
        elif not stat.S_ISREG(status.st_mode):
            yield Skipped(path, "not a plain file")
        else:
            yield File(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        yield Skipped(path, _reason(error))


# Members are read while the archive is open, one at a time.


def _zip_members(path: str) -> Iterator[Text | Skipped]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield from _member(path, info.filename, partial(_zip_stream, archive, path, info), info.compress_size)


def _zip_stream(archive: zipfile.ZipFile, path: str, info: zipfile.ZipInfo) -> BinaryIO:
    """The stream of a member, also when the archive has been closed meanwhile: only small texts are held."""
    return cast("BinaryIO", (archive if archive.fp else zipfile.ZipFile(path)).open(info))


def _tar_members(path: str) -> Iterator[Text | Skipped]:
    packed = os.stat(path).st_size
    unpacked = 0
    with _open_tar(path) as archive:
        for info in archive:
            unpacked += info.size
            _check_unpacked(unpacked, packed)
            if not info.isdir():
                held = cache(partial(_tar_content, archive, info))
                yield from _member(path, info.name, lambda held=held: io.BytesIO(held()), info.size)  # type: ignore[misc]


def _open_tar(path: str) -> tarfile.TarFile:
    if path.lower().endswith("zst"):
        return tarfile.open(fileobj=_open_zstd(path, "rb"), mode="r|")
    return tarfile.open(path)


def _tar_content(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(info) if info.isfile() else None
    if stream is None:
        raise _RefusedError("not a plain file")
    if info.size > _MEMBER:
        raise _RefusedError(f"a member of more than {_MEMBER >> 20} MiB: unpack the archive to have it read")
    return stream.read()


def _member(path: str, name: str, stream: Callable[[], BinaryIO], packed: int) -> Iterator[Text | Skipped]:
    """One member, decompressed if its name says so; hidden ones are left out as in folders."""
    inside = PurePosixPath(_printable(name))
    if any(part.startswith(".") and part != ".." for part in inside.parts):
        return
    opener = _OPENERS.get(inside.suffix.lower())
    try:
        opened = (lambda: opener(stream(), "rb")) if opener else stream
        yield Text(f"{path}!{inside}", opened, os.stat(path).st_mtime_ns, packed=packed)
    except _UNREADABLE as error:
        yield Skipped(f"{path}!{inside}", _reason(error))


def _printable(name: str) -> str:
    """A name as UTF-8; bytes that are none become the replacement sign."""
    return os.fsencode(name).decode("utf-8", errors="replace")


def _reason(error: Exception) -> str:
    if isinstance(error, _RefusedError):
        return str(error)
    said = (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
    return said.splitlines()[0].rstrip(" :")  # tarfile tells what every one of its readers says
