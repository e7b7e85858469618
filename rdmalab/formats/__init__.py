"""One module per log format; adding a format is adding one file to this folder.

A format module has

    NAME       the word printed by ``rdmalab formats`` and in ``formats`` of a log
    EXAMPLE    one line it reads, shown to people
    SIGNATURE  a compiled bytes pattern; a log that holds a match anywhere is given to ``parse``.
               It is searched chunk by chunk (chunks end at line ends), so it must not span lines.
    HINTS      optional: literal bytes of which every match of SIGNATURE holds at least one; they are looked for first,
               because a text that holds none is passed over at gigabytes a second
    parse      ``(text: rdmalab.sources.Text) -> rdmalab.model.Parsed``; never raises on any text, never invents a
               row, never drops one without a Note

Modules whose name begins with an underscore are helpers. Nothing here knows another format or the store.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Protocol, cast

from rdmalab.model import Log, Note, Parsed
from rdmalab.sources import Text


class Format(Protocol):
    """What a module in this folder offers."""

    NAME: str
    EXAMPLE: str
    SIGNATURE: re.Pattern[bytes]
    parse: Callable[[Text], Parsed]


@cache
def known() -> tuple[Format, ...]:
    """All formats, by name. Modules are found by listing the package path: nothing else needs editing."""
    modules: list[ModuleType] = [
        importlib.import_module(f"{__name__}.{m.name}")
        for m in pkgutil.iter_modules(__path__)
        if not m.name.startswith("_")
    ]
    return tuple(sorted((cast(Format, m) for m in modules), key=lambda f: f.NAME))


def detect(text: Text) -> list[Format]:
    """All formats whose signature stands anywhere in *text*, by name; reads the text once, in chunks."""
    waiting = list(known())
    found = []
    for _, chunk in text.chunks():
        hits = [f for f in waiting if _hinted(f, chunk) and f.SIGNATURE.search(chunk)]
        found += hits
        waiting = [f for f in waiting if f not in hits]
        if not waiting:
            break
    return sorted(found, key=lambda f: f.NAME)


def _hinted(form: Format, chunk: bytes) -> bool:
    hints = getattr(form, "HINTS", None)
    return hints is None or any(hint in chunk for hint in hints)


def read(text: Text) -> Log:
    """Reads one text with every format that claims it. A format that finds nothing in it does not count as one."""
    formats, runs, readings, notes, transport = [], [], [], [], None
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
        runs.sort(key=lambda r: (r.line or 0))
    notes.sort(key=lambda n: (n.line or 0))
    return Log(
        path=text.path, sha256=text.sha256, size_bytes=text.size_bytes, modified_ns=text.modified_ns,
        formats=tuple(formats), runs=tuple(runs), readings=tuple(readings), notes=tuple(notes), transport=transport,
    )  # fmt: skip
