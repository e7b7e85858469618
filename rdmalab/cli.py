"""The command line: one thin verb per library call. Imports of weight stand inside the verbs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rdmalab.errors import RdmalabError, UsageError

if TYPE_CHECKING:
    from rdmalab.model import Log


class _Cli(click.Group):
    """Prints the user's mistakes as one sentence, with the exit code of the error."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except RdmalabError as error:
            click.echo(f"rdmalab: {error}", err=True)
            ctx.exit(error.exit_code)


@click.group(cls=_Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rdmalab")
def main() -> None:
    """RDMA benchmark logs in, comparisons of fabrics out."""


@main.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line per log.")
@click.argument("paths", nargs=-1, required=True)
def parse(paths: tuple[str, ...], as_json: bool) -> None:
    """Read logs and print what they say; no store is touched."""
    from rdmalab.export_json import log_to_dict

    for log in _read_all(paths):
        if as_json:
            click.echo(json.dumps(log_to_dict(log), ensure_ascii=False, allow_nan=False))
        else:
            rows = sum(len(r.samples) for r in log.runs)
            words = ", ".join(log.formats) or "no known format"
            click.echo(f"{log.path}: {log.status}, {words}, {len(log.runs)} runs, {rows} samples, {len(log.notes)} notes")


def _read_all(paths: tuple[str, ...]) -> "Iterator[Log]":
    """The logs of files, folders and standard input; what cannot be read is said on standard error."""
    from rdmalab import formats, sources

    _require(paths)
    for path in paths:
        found = [sources.File("-", 0, 0)] if path == "-" else sources.find([path])
        for item in found:
            for text in sources.texts(item.path) if isinstance(item, sources.File) else [item]:
                if isinstance(text, sources.Skipped):
                    click.echo(f"{text.path}: not read: {text.reason}", err=True)
                else:
                    yield formats.read(text)


def _require(paths: tuple[str, ...]) -> None:
    missing = [p for p in paths if p != "-" and not Path(p).exists()]
    if missing:
        raise UsageError("; ".join(f"{p}: no such file or folder" for p in missing))
