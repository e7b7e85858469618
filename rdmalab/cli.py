"""The command line: one thin verb per library call. Imports of weight stand inside the verbs."""

import json
import sys
from pathlib import Path

import click

from rdmalab.errors import RdmalabError


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
    from rdmalab import formats, sources
    from rdmalab.export_json import log_to_dict

    missing = [p for p in paths if p != "-" and not Path(p).exists()]
    for path in missing:
        click.echo(f"rdmalab: {path}: no such file or folder", err=True)
    if missing:
        sys.exit(2)
    for source in sources.find(list(paths)):
        if isinstance(source, sources.Skipped):
            click.echo(f"{source.path}: not read: {source.reason}", err=True)
            continue
        log = formats.read(source.open())
        if as_json:
            click.echo(json.dumps(log_to_dict(log), ensure_ascii=False, allow_nan=False))
        else:
            rows = sum(len(r.samples) for r in log.runs)
            words = ", ".join(log.formats) or "no known format"
            click.echo(f"{log.path}: {log.status}, {words}, {len(log.runs)} runs, {rows} samples, {len(log.notes)} notes")
