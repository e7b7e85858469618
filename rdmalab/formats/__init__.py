"""One module per log format; adding a format is adding one file to this folder, or to one named ``rdmalab_formats``.

A format module has

    NAME       the word printed by ``rdmalab formats`` and in ``formats`` of a log
    EXAMPLE    one line it reads, shown to people
    SIGNATURE  a compiled bytes pattern; a log that holds a match anywhere is given to ``parse``.
               It is searched chunk by chunk (chunks end at line ends), so it must not span lines.
    HINTS      optional: literal bytes of which every match of SIGNATURE holds at least one. They are looked for first
               and once in lines that differ in nothing but numbers, so that a text of other tools is passed over
    parse      ``(text: rdmalab.sources.Text) -> rdmalab.model.Parsed``; never raises on any text, never invents a
               row, never drops one without a Note

Modules whose name begins with an underscore are helpers. Nothing here knows another format or the store. Modules of
the namespace package ``rdmalab_formats`` count too: any folder of that name on Python's path, of whoever's project.
"""

import contextlib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import chain, compress
from typing import Protocol, cast

from rdmalab.errors import UsageError
from rdmalab.model import Log, Note, Parsed, Reading, Run, Transport
from rdmalab.sources import Text

_OWN = "rdmalab_formats"
_FILLING = b"0123456789. \t"
_MANY_LINES = 256  # of an outline: too many to remember each
_LONG = 1 << 20  # bytes of a text that is not searched as a whole


class Format(Protocol):
    """What a module in this folder offers."""

    NAME: str
    EXAMPLE: str
    SIGNATURE: re.Pattern[bytes]
    parse: Callable[[Text], Parsed]


@cache
def known() -> tuple[Format, ...]:
    """
    All formats, by name. Modules are found by listing the package paths: nothing else needs editing.

    Raises:
        UsageError: A module of somebody's own lacks a name that a format has, or has the NAME of another.
    """
    found: dict[str, Format] = {}
    for module in map(importlib.import_module, _modules()):
        if missing := [name for name in ("NAME", "EXAMPLE", "SIGNATURE", "parse") if not hasattr(module, name)]:
            raise UsageError(f"{module.__file__}: a log format needs {', '.join(missing)}; see rdmalab/formats")
        form = cast("Format", module)
        if form.NAME in found:
            raise UsageError(f"{module.__file__}: there is a format '{form.NAME}' already; give NAME another word")
        found[form.NAME] = form
    return tuple(found[name] for name in sorted(found))


def _modules() -> list[str]:
    """The names of all modules that are formats."""
    paths: dict[str, Iterable[str]] = {__name__: __path__}
    with contextlib.suppress(ModuleNotFoundError):
        paths[_OWN] = importlib.import_module(_OWN).__path__
    return [
        f"{package}.{module.name}"
        for package, path in paths.items()
        for module in pkgutil.iter_modules(path)
        if not module.name.startswith("_")
    ]


def detect(text: Text) -> list[Format]:
    """All formats whose signature stands anywhere in *text*, by name; reads the text once, in chunks."""
    found: list[Format] = []
    for _, chunk in text.chunks():
        shapes = chunk.translate(None, _FILLING).split(b"\n")
        outline = set(shapes)
        if len(outline) < _MANY_LINES:
            likely = set(chain.from_iterable(map(_likely, outline)))
        else:
            likely = set(_likely.__wrapped__(b"\n".join(outline)))
        for form in likely.difference(found):
            searched = chunk if len(chunk) < _LONG else _hot_lines(form, chunk, shapes, outline)
            if form.SIGNATURE.search(searched):
                found.append(form)
    return sorted(found, key=lambda f: f.NAME)


@lru_cache(maxsize=4096)
def _likely(outline: bytes) -> tuple[Format, ...]:
    """
    The formats whose hints stand in some lines, and those that have none.

    Args:
        outline: Lines without numbers and blanks. A log has a dozen of them, mostly those of the log before.
    """
    outline += b"\n"
    return tuple(f for f, hints in _hints() if any(hint in outline for hint in hints))


def _hot_lines(form: Format, chunk: bytes, shapes: list[bytes], outline: set[bytes]) -> bytes:
    """The lines of a long text in which a signature may stand, because a hint does."""
    hints = next(hints for f, hints in _hints() if f is form)
    hot = {shape for shape in outline if any(hint in shape + b"\n" for hint in hints)}
    return b"\n".join((*compress(chunk.split(b"\n"), map(hot.__contains__, shapes)), b""))


@cache
def _hints() -> list[tuple[Format, list[bytes]]]:
    """All formats with their hints as they stand in an outline."""
    return [(f, [h.translate(None, _FILLING) for h in getattr(f, "HINTS", (b"",))]) for f in known()]


def read(text: Text) -> Log:
    """Reads one text with every format that claims it. A format that finds nothing in it does not count as one."""
    formats: list[str] = []
    runs: list[Run] = []
    readings: list[Reading] = []
    notes: list[Note] = []
    transport: Transport | None = None
    for form in detect(text):
        try:
            parsed = form.parse(text)
        except Exception as error:  # a defect of ours must not end the ingest of ten thousand other logs
            parsed = Parsed(notes=(Note(None, "parser_error", f"{form.NAME}: {type(error).__name__}: {error}"),))
        if parsed.runs or parsed.readings or parsed.notes or parsed.transport:
            formats.append(form.NAME)
        runs += parsed.runs
        readings += parsed.readings
        notes += parsed.notes
        transport = transport or parsed.transport
    if len(formats) > 1:
        runs.sort(key=lambda r: r.line or 0)
    notes.sort(key=lambda n: n.line or 0)
    return Log(
        path=text.path, sha256=text.sha256, size_bytes=text.size_bytes, modified_ns=text.modified_ns,
        formats=tuple(formats), runs=tuple(runs), readings=tuple(readings), notes=tuple(notes), transport=transport,
    )  # fmt: skip
