"""TOML files of the user as records, with complaints that name the line."""

import datetime
import re
import tomllib
import typing
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, NoReturn

from rdmalab.errors import RdmalabError, UsageError, did_you_mean

# What a key may hold, and its name in a complaint.
_KINDS: dict[object, tuple[type | tuple[type, ...], str]] = {
    str: (str, "a text"), bool: (bool, "true or false"),
    int: (int, "a whole number"), float: ((int, float), "a number"),
    datetime.date: (datetime.date, "a day like 2026-11-30, without quotes"),
}  # fmt: skip


def read_toml(path: Path, error: type[RdmalabError] = UsageError) -> tuple[bytes, str, dict[str, Any]]:
    """
    A file as (bytes, text, document).

    Raises:
        RdmalabError: Of the kind *error*: it cannot be read, or is no TOML; the message names the line.
    """
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
        return raw, text, tomllib.loads(text)
    except OSError as problem:
        raise error(f"{path}: {str(problem.strerror).lower()}") from None
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise error(f"{path}:{line}: not UTF-8 text") from None
    except tomllib.TOMLDecodeError as problem:
        found = re.search(r"at line (\d+)", str(problem))  # else "at end of document"
        line = int(found[1]) if found else text.count("\n") + 1
        raise error(f"{path}:{line}: not valid TOML: {problem}") from None


class Reader:
    """Turns a TOML document into records; every complaint carries the line of the word it is about."""

    error: ClassVar[type[RdmalabError]] = UsageError

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.split("\n")

    def array(self, document: dict[str, Any], key: str) -> list[dict[str, Any]]:
        """The tables named *key*, none if there are none."""
        tables = document.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            self.fail(key, f"write each {key} as a table of its own: [[{key}]]")
        return list(tables)

    def record(
        self, kind: type, table: str, index: int, values: dict[str, Any], given: dict[str, Any],
        nested: Sequence[str] = (),
    ) -> dict[str, Any]:  # fmt: skip
        """
        The values of one table with the types that the record *kind* wants; unknown and missing keys are refused.

        Args:
            given: Fields that do not come from the table.
            nested: Fields that the caller fills from tables of their own.
        """
        keys = {f.name: f for f in fields(kind) if f.name not in (*given, *nested)}
        out = dict(given)
        for key, value in values.items():
            if key not in keys:
                self.fail(key, f"unknown key '{key}' in [{table}].{did_you_mean(key, list(keys))}", table, index)
            out[key] = self.value(key, value, keys[key].type, table, index)
        for key, f in keys.items():
            if key not in out and f.default is MISSING and f.default_factory is MISSING:
                self.fail(table, f"[{table}] needs '{key}'", table, index)
        return out

    def value(self, key: str, value: Any, wanted: Any, table: str, index: int) -> Any:
        """*value*, if it is what the annotation *wanted* of the record says: ``float | None``, ``tuple[str, ...]``."""
        if typing.get_origin(wanted) is tuple:
            kind = typing.get_args(wanted)[0]
            if not isinstance(value, list) or not all(type(v) is kind for v in value):
                what = "texts" if kind is str else "days like 2026-11-30, without quotes"
                self.fail(key, f"{key} wants a list of {what}", table, index)
            return tuple(value)
        if typing.get_origin(wanted) is dict:
            if not isinstance(value, dict):
                self.fail(key, f'{key} wants a table: {key} = {{ name = "value" }}', table, index)
            return value
        wanted = next((a for a in typing.get_args(wanted) if a is not NoneType), wanted)
        kind, words = _KINDS[wanted]
        if not isinstance(value, kind) or (isinstance(value, bool) and wanted is not bool):
            self.fail(key, f"{key} wants {words}, not {value!r}", table, index)
        if key == "name" and not value:
            self.fail(key, f"{key} is empty", table, index)
        return value

    def fail(self, key: str, message: str, table: str | None = None, index: int = 0) -> NoReturn:
        """Raises with the line of *key*."""
        raise self.error(f"{self.path}:{self.line_of(key, table, index)}: {message}")

    def line_of(self, key: str, table: str | None, index: int) -> int:
        """The line of *key* inside the *index*-th table of that name, else of the table's head, else 1."""
        seen, head, inside = -1, 1, table is None
        for number, line in enumerate(self.lines, 1):
            bare = line.strip()
            if bare.startswith("["):
                is_table = bare.strip("[] \t").split("#")[0].strip("[] ") == table
                seen += is_table
                inside = table is None or (is_table and seen == index)
                head = number if inside else head
                if table is None and bare.strip("[] ").split("]")[0] == key:
                    return number
            elif inside and re.match(rf'"?{re.escape(key)}"?\s*=', bare):
                return number
        return head
