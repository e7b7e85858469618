"""Orders of reports in TOML files: ``reports.toml`` of a batch, and the reports of a scheduled job."""

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rdmalab.errors import RdmalabError, UsageError
from rdmalab.report import FORMATS, Order, prepare
from rdmalab.store import Store
from rdmalab.toml_records import Reader, read_toml


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One report as a file asks for it."""

    notebook: str
    parameters: dict[str, Any] = field(default_factory=dict)
    lang: str = "en"
    to: tuple[str, ...] = FORMATS

    def words(self) -> dict[str, str]:
        """What a pattern of folders may name: ``{notebook}``, ``{lang}`` and the parameters."""
        values = {key: str(value) for key, value in self.parameters.items() if not isinstance(value, list | dict)}
        return values | {"notebook": Path(self.notebook).stem.replace("-", "_"), "lang": self.lang}

    def order(self, store: Store, out: Path, root: Path) -> Order:
        """
        The report as an order.

        Args:
            root: The folder of the file, which paths of notebooks are relative to.

        Raises:
            UsageError: As :func:`rdmalab.report.prepare`.
        """
        name = str(root / self.notebook) if self.notebook.endswith(".ipynb") else self.notebook
        return prepare(name, store, out, parameters=self.parameters, formats=self.to, lang=self.lang)


@dataclass(frozen=True, kw_only=True)
class _Report(Wanted):
    """A table [[report]] of a batch."""

    out: str = "reports/{notebook}"


def fill(pattern: str, words: Mapping[str, str]) -> str:
    """
    *pattern* with its ``{words}`` filled in.

    Raises:
        UsageError: It has a word that is not known, or one whose value would lead out of the folder.
    """
    for _, name, form, conversion in string.Formatter().parse(pattern):
        if name is None:
            continue
        if name not in words or form or conversion:
            raise UsageError(f"'{pattern}' may name {', '.join('{' + w + '}' for w in words)}, not '{{{name}}}'")
        if not words[name] or words[name].startswith(".") or "/" in words[name]:
            raise UsageError(f"'{{{name}}}' is '{words[name]}', which is no name of a folder")
    return pattern.format_map(words)


def read_batch(path: Path, store: Store) -> list[tuple[int, Order]]:
    """
    The orders of a batch file, each with the line where it begins; nothing is run yet.

    Raises:
        UsageError: The file cannot be used, or a report in it cannot be ordered; the message names the line.
    """
    path = path.absolute()
    _, text, document = read_toml(path)
    reader = _Batch(path, text)
    for key in document:
        if key != "report":
            reader.fail(key, f"unknown table '{key}'; write [[report]] for each report")
    tables = reader.array(document, "report")
    if not tables:
        reader.fail("report", "no report; write [[report]] with a notebook for each")
    return reader.orders(tables, store)


class _Batch(Reader):
    """Turns the tables of a batch into orders."""

    def orders(self, tables: list[dict[str, Any]], store: Store) -> list[tuple[int, Order]]:
        """The orders; two that would write the same files are refused."""
        found: list[tuple[int, Order]] = []
        for index, table in enumerate(tables):
            line = self.line_of("report", "report", index)
            wanted = _Report(**self.record(_Report, "report", index, table, given={}))
            try:
                out = self.path.parent / fill(wanted.out, wanted.words())
                order = wanted.order(store, out, self.path.parent)
            except RdmalabError as error:
                raise type(error)(f"{self.path}:{line}: {error}") from None
            if same := [at for at, other in found if other.out == order.out]:
                self.fail("out", f"the report of line {same[0]} goes to the same folder {out}", "report", index)
            found.append((line, order))
        return found
