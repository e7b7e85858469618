"""The command line: one thin verb per library call. Imports of weight stand inside the verbs."""

import contextlib
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rdmalab.errors import RdmalabError, UsageError

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.ingest import Receipt
    from rdmalab.lab import Lab
    from rdmalab.model import Log
    from rdmalab.store import Store


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


_db = click.option(
    "--db", metavar="PATH", help="The store. Default: $RDMALAB_DB, else the nearest data/rdmalab.duckdb upwards."
)


@main.command()
@click.argument("paths", nargs=-1)
@click.option("--campaign", metavar="NAME", help="Campaign of logs that stand beside no rdmalab.toml.")
@click.option("--json", "as_json", is_flag=True, help="The receipt as one JSON object.")
@click.option(
    "--executor", "where", metavar="WHERE", default="process", show_default=True,
    help="What reads: serial, process, process:N or dask:ADDRESS (of a scheduler).",
)  # fmt: skip
@click.option("--shard", metavar="I/N", help="Only read the I-th share of N into --parts; the store is not changed.")
@click.option("--parts", type=click.Path(file_okay=False), help="The folder of a --shard.")
@click.option("--commit", "folder", type=click.Path(file_okay=False), help="Store what all shards left in this folder.")
@_db
def ingest(
    paths: tuple[str, ...], campaign: str | None, as_json: bool, where: str, shard: str | None, parts: str | None,
    folder: str | None, db: str | None,
) -> None:  # fmt: skip
    """Read logs, folders and archives into the store. Known content is not read again."""
    from rdmalab import ingest as library
    from rdmalab import shards
    from rdmalab.executors import executor_of
    from rdmalab.store import Store

    store = Store(db)
    if folder and (paths or shard or parts):
        raise UsageError("--commit DIR stands alone: the logs were named when the shards were read")
    if not (folder or paths):
        raise UsageError("ingest wants files, folders or archives, or --commit DIR")
    if bool(shard) != bool(parts):
        raise UsageError("--shard I/N and --parts DIR go together")
    if folder:
        return _print_receipt(shards.commit_shards(folder, store, campaign=campaign), store, as_json)
    share = shards.Shard.of(shard) if shard else None
    with executor_of(where) as executor, _bar("reading", hidden=as_json) as progress:
        if share and parts:
            count = shards.read_shard(paths, share, parts, store, executor=executor, progress=progress)
            click.echo(
                f"shard {shard}: {count} files read into {parts}; when all are there: rdmalab ingest --commit {parts}"
            )
            return None
        staging = store.path.absolute().parent if where.startswith("dask") else None  # seen by all machines
        receipt = library.ingest(paths, store, campaign=campaign, executor=executor, staging=staging, progress=progress)
    return _print_receipt(receipt, store, as_json)


@contextlib.contextmanager
def _bar(label: str, *, hidden: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal, as a function of (done, of all)."""
    with click.progressbar(length=1, label=label, file=sys.stderr, hidden=hidden or not sys.stderr.isatty()) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield progress


def _print_receipt(receipt: "Receipt", store: "Store", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(receipt.to_dict(), ensure_ascii=False))
    else:
        click.echo("\n".join(receipt.lines(store.path)))


@main.command()
@click.argument("sql")
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json", "parquet"]), default="table", show_default=True
)
@click.option("--out", type=click.Path(dir_okay=False), help="Write to this file instead of the terminal.")
@_db
def query(sql: str, form: str, out: str | None, db: str | None) -> None:
    """
    Ask the store in SQL.

    Views: logs, runs, samples, readings, notes, fabrics, results.
    """
    _print_frame(_open(db).sql(sql), form, out)


@main.command()
@click.option("--campaign", metavar="NAME", help="Only this campaign.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@_db
def runs(campaign: str | None, form: str, db: str | None) -> None:
    """List the runs, with the reason where one is left out of comparisons."""
    frame = _open(db).runs(campaign).select(
        "campaign", "fabric", "run_id", "tool", "program", "operation", "ranks", "nodes", "status", "rows",
        "limit_gbyte_s", "excluded_because", "path", "line",
    )  # fmt: skip
    _print_frame(frame, form, None)


@main.command()
@click.argument("run")
@click.option("--lines", default=3, show_default=True, help="Lines of the log around the beginning of the run.")
@_db
def show(run: str, lines: int, db: str | None) -> None:
    """Show one run: what is known of it, its rows, its notes, and the lines of its log."""
    from rdmalab.show import show_run

    click.echo("\n".join(show_run(_open(db), run, lines)))


@main.command()
@click.option("--log", metavar="ID", help="Beginning of a log's id or sha256.")
@click.option("--campaign", metavar="NAME", help="A campaign, with the logs that stand in no other one.")
@_db
def forget(log: str | None, campaign: str | None, db: str | None) -> None:
    """Remove a log or a campaign from the store; files on disk are left alone."""
    from rdmalab.ingest import forget as run
    from rdmalab.store import Store

    if (log is None) == (campaign is None):
        raise UsageError("forget wants either --log ID or --campaign NAME")
    click.echo(f"{run(Store(db), log=log, campaign=campaign)} logs removed")


@main.command()
@click.option("--by", type=click.Choice(["fabric"]), default="fabric", show_default=True, help="What is compared.")
@click.option("--baseline", metavar="NAME", help="The fabric that the others are set against. Default: the first.")
@click.option("--campaign", metavar="NAME", help="Default: the only one in the store.")
@click.option("--operation", metavar="NAME", help="A collective, for example all_reduce. Default: all.")
@click.option("--ranks", type=int, help="Default: all.")
@click.option("--size-min", metavar="SIZE", help="Smallest message size, for example 64KiB.")
@click.option("--size-max", metavar="SIZE", help="Largest message size.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@_db
def compare(by: str, form: str, db: str | None, **parameters: Any) -> None:
    """Compare fabrics: medians with intervals, and ratios to the baseline with intervals."""
    from rdmalab.findings import findings
    from rdmalab.tables import comparison_lines
    from rdmalab.wording import Words

    lab = _open(db)
    comparison = lab.compare(**parameters)
    if form == "table":
        click.echo("\n".join(comparison_lines(comparison)))
        for head, sentences in Words(comparison).findings(findings(lab, comparison)):
            click.echo("\n".join(["", f"{head}:", *(f"  {s}" for s in sentences)]).replace("\xa0", " "))
    else:
        _print_frame(comparison.frame(), form, None)


@main.command()
@click.option("--campaign", metavar="NAME", help="Default: the only one in the store.")
@click.option("--fabrics", metavar="A,B", help="Default: all.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@_db
def curves(campaign: str | None, fabrics: str | None, form: str, db: str | None) -> None:
    """Fit time = floor + size / bandwidth to every sweep: medians over the runs as table, each run as csv or json."""
    from rdmalab import curves as library
    from rdmalab.series import Selection

    found = library.curves(_open(db), Selection(campaign=campaign, fabrics=fabrics))  # type: ignore[arg-type]
    if form == "table":
        found = library.summary(found).select(
            "fabric", "operation", "test", "ranks", "placement", "runs", "described", "smallest_us",
            "latency_floor_us", "largest_gbyte_s", "asymptotic_gbyte_s", "half_of_largest_bytes",
            "half_bandwidth_bytes",
        )  # fmt: skip
    _print_frame(found, form, None)


@main.command()
@click.option("--campaign", metavar="NAME", help="Default: the only one in the store.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@_db
def pairs(campaign: str | None, form: str, db: str | None) -> None:
    """Rank hosts that were tested two by two; csv and json hold every pair, slowest first."""
    from rdmalab import pairs as library

    lab = _open(db)
    found = library.of_campaign(lab, lab.the_campaign(campaign))
    _print_frame(library.standings_frame(found) if form == "table" else library.frame(found), form, None)


@main.group()
def campaign() -> None:
    """Campaign files: what the logs do not say."""


@campaign.command("new")
@click.argument("folder")
def campaign_new(folder: str) -> None:
    """Write a first rdmalab.toml into FOLDER from what its logs show."""
    from rdmalab.starter import write_starter

    click.echo(f"{write_starter(folder)}: fill in what is commented out, then: rdmalab ingest {folder}")


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@_db
def lab(arguments: tuple[str, ...], db: str | None) -> None:
    """Start JupyterLab on the notebooks, with the store found; ARGUMENTS go to JupyterLab."""
    from rdmalab.jupyter import start
    from rdmalab.store import Store

    start(Store(db), arguments)


@main.command()
@click.argument("name", required=False)
@click.option(
    "-p", "parameters", multiple=True, metavar="KEY=VALUE", help="A parameter of the notebook; may be repeated."
)
@click.option(
    "--to", "formats", default="html,pdf", show_default=True, help="html, pdf, png (the first screen), with commas."
)
@click.option("--lang", default="en", show_default=True, help="Language of the report: en, zh.")
@click.option(
    "--out", type=click.Path(file_okay=False), default="reports", show_default=True, help="Folder of the files."
)
@click.option("--batch", type=click.Path(dir_okay=False), help="Make all reports of this TOML file instead.")
@click.option("--verify", type=click.Path(dir_okay=False), help="Run the report of this report.json again instead.")
@_db
def report(
    name: str | None, parameters: tuple[str, ...], formats: str, lang: str, out: str, batch: str | None,
    verify: str | None, db: str | None,
) -> None:  # fmt: skip
    """
    Make a report, for example fabric-comparison: NAME.html, NAME.pdf and report.json.

    --batch makes many; --verify makes none, it says whether a number or a log has changed (exit 1).
    """
    from rdmalab.report import make_report
    from rdmalab.store import Store

    if (batch and verify) or (name and batch) or not (name or batch or verify):
        raise UsageError("report wants the NAME of a report, --batch FILE.toml, or --verify report.json")
    if batch:
        return _batch(Path(batch), Store(db))
    if verify:
        return _verify(Path(verify), Store(db), name)
    words = [w.strip() for w in formats.split(",") if w.strip()]
    done = make_report(str(name), Store(db), Path(out), parameters=parameters, formats=words, lang=lang)
    click.echo(done.verdict)
    for file in done.files:
        click.echo(str(file))
    if done.missing:
        raise done.missing
    return None


def _batch(file: Path, store: "Store") -> None:
    """All reports of a file, a line for each; the exit code is that of the worst."""
    from rdmalab.batch import make_reports
    from rdmalab.orders import read_batch

    orders = read_batch(file, store)
    with _bar("reports") as progress:
        outcomes = make_reports([order for _, order in orders], progress=progress)
    problems = []
    for (line, order), outcome in zip(orders, outcomes, strict=True):
        problem = outcome if isinstance(outcome, RdmalabError) else outcome.missing
        said = problem if isinstance(outcome, RdmalabError) else f"{problem or outcome.verdict} ({order.out})"
        click.echo(f"{file}:{line}: {order.notebook.stem}: {said}")
        problems += [problem] if problem else []
    click.echo(f"{len(orders)} reports: {len(orders) - len(problems)} made, {len(problems)} failed")
    codes = {p.exit_code for p in problems}
    sys.exit(0 if not codes else 3 if codes == {3} else 1)


def _verify(file: Path, store: "Store", notebook: str | None) -> None:
    from rdmalab.verify import verify

    found = verify(file, store, notebook)
    click.echo("\n".join(found.lines()))
    sys.exit(not found.same)


_schedule = click.option(
    "--schedule", "file", type=click.Path(dir_okay=False), default="schedule.toml", show_default=True, help="The file."
)


@main.group()
def schedule() -> None:
    """Reports at fixed times, as schedule.toml says."""


@schedule.command("run")
@click.argument("job", required=False)
@click.option("--due", is_flag=True, help="All jobs whose time has come since their last run.")
@click.option("--quiet", is_flag=True, help="Say only what went wrong: for cron and systemd.")
@_schedule
@_db
def schedule_run(job: str | None, due: bool, quiet: bool, file: str, db: str | None) -> None:
    """Run JOB now, or with --due what is due; exit 1 when a job failed or JOB is being run already."""
    from rdmalab import schedule as library
    from rdmalab.schedule_file import load

    if bool(job) == due:
        raise UsageError("schedule run wants the name of a JOB, or --due")
    plan = load(file, db)
    entries = [library.run_job(plan, job)] if job else library.run_due(plan)
    said = bad = False
    for entry in entries:
        said, wrong = True, isinstance(entry, RdmalabError) or not library.good(entry)
        bad = bad or (wrong and not isinstance(entry, RdmalabError))
        if wrong or not quiet:
            click.echo(str(entry) if isinstance(entry, RdmalabError) else _run_words(entry), err=wrong)
    if not (said or quiet):
        click.echo("nothing is due")
    sys.exit(int(bad))


def _run_words(run: dict[str, Any]) -> str:
    """A run in a line."""
    details = {
        "delivered": ", ".join(dict.fromkeys(str(Path(file).parent) for file in run.get("files", ()))),
        "unchanged": "delivered already, with these data",
        "failed": f"{run.get('error')} (log: {run['log']})",
    }[run["status"]]  # fmt: skip
    hook = f"; {run['hook']} ended with exit {run['hook_exit']}" if run.get("hook_exit") else ""
    return f"{run['job']}: {run['status']}: {details}{hook}"


@schedule.command("list")
@_schedule
def schedule_list(file: str) -> None:
    """List the jobs: when they run, and how the last run ended."""
    from rdmalab.schedule import History
    from rdmalab.schedule_file import load

    plan = load(file)
    for job in plan.jobs:
        runs = History(plan.state).runs(job.name)
        last = f"{runs[-1]['at']} {runs[-1]['status']}" if runs else "never run"
        names = ", ".join(report.words()["notebook"] for report in job.reports)
        click.echo(f"{job.name:<16} {job.cron:<16} {job.timezone:<16} {names}; last: {last}")


@schedule.command("next")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many.")
@_schedule
def schedule_next(count: int, file: str) -> None:
    """Show the next times of all jobs, each in its time zone."""
    from datetime import UTC, datetime
    from itertools import islice

    from rdmalab.schedule_file import load

    times = [(t, job) for job in load(file).jobs for t in islice(job.times(datetime.now(UTC)), count)]
    for time, job in sorted(times, key=lambda pair: pair[0])[:count]:
        click.echo(f"{time.astimezone(job.zone):%Y-%m-%d %H:%M %z} {job.timezone:<16} {job.name}")


@schedule.command("history")
@click.argument("job", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line per run.")
@_schedule
def schedule_history(job: str | None, as_json: bool, file: str) -> None:
    """Show what was run, oldest first."""
    from rdmalab.schedule import History
    from rdmalab.schedule_file import load

    plan = load(file)
    for run in History(plan.state).runs(plan.job(job).name if job else None):
        click.echo(json.dumps(run, ensure_ascii=False) if as_json else f"{run['at']} {_run_words(run)}")


@schedule.command("emit")
@click.option("--cron", "form", flag_value="crontab", help="A line for a crontab.")
@click.option("--systemd", "form", flag_value="systemd", help="A service and its timer.")
@_schedule
def schedule_emit(form: str | None, file: str) -> None:
    """Print the text that makes cron or systemd run what is due; you install it."""
    from rdmalab import schedule as library
    from rdmalab.schedule_file import load

    if not form:
        raise UsageError("schedule emit wants --cron or --systemd")
    click.echo(getattr(library, form)(load(file)), nl=False)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line per log.")
@click.argument("paths", nargs=-1, required=True)
def parse(paths: tuple[str, ...], as_json: bool) -> None:
    """Read logs and print what they say; no store is touched."""
    from rdmalab.export_json import log_to_dict

    for log in _read_all(paths):
        if as_json:
            text = json.dumps(log_to_dict(log), ensure_ascii=False, allow_nan=False)
            click.echo(text.encode("utf-8", errors="replace"))  # JSON logs may hold half of a surrogate pair
        else:
            rows = sum(len(r.samples) for r in log.runs)
            words = ", ".join(log.formats) or "no known format"
            click.echo(
                f"{log.path}: {log.status}, {words}, {len(log.runs)} runs, {rows} samples, {len(log.notes)} notes"
            )


@main.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line per claim.")
@_db
def claims(files: tuple[str, ...], as_json: bool, db: str | None) -> None:
    """
    Hold the claims of a vendor against arithmetic, each other, physics, facts, and the runs of the store.

    No store is needed: without one every claim has "no evidence". Exit 1 when a claim is impossible, wrong, or refuted
    by runs.
    """
    from rdmalab.claims import EVIDENCE, VERDICTS, load
    from rdmalab.claims import judge as judge_claims
    from rdmalab.store import Store
    from rdmalab.tables import claim_lines

    lab = _open(db) if db or Store().path.exists() else None
    judged = [judgement for document in [load(file) for file in files] for judgement in judge_claims(document, lab)]
    for judgement in judged:
        lines = [json.dumps(judgement.row(), ensure_ascii=False, default=str)] if as_json else claim_lines(judgement)
        for line in lines:
            click.echo(line)
    if not as_json:
        for words, found in (
            (VERDICTS, Counter(j.verdict for j in judged)),
            (EVIDENCE, Counter(j.evidence["verdict"] for j in judged)),
        ):
            click.echo(f"{len(judged)} claims: " + ", ".join(f"{found[v]} {v}" for v in words if found[v]))
    sys.exit(any(judgement.bad for judgement in judged))


@main.command()
@click.option("--campaign", metavar="NAME", help="Default: the only one in the store.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@_db
def audit(campaign: str | None, form: str, db: str | None) -> None:
    """
    Look for what is set up wrong: sockets in place of RDMA, a small MTU, lost packets, a slow PCIe link.

    Exit 1 when something is wrong, 0 when there is nothing, or only things to check.
    """
    found = _open(db).audit(campaign)
    if form == "table":
        click.echo("\n".join(found.words()))
    elif form == "json":
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, default=str))
    else:
        _print_frame(found.frame(), form, None)
    sys.exit(found.wrong)


@main.command()
@click.argument("spec")
@click.option("--campaign", metavar="NAME", help="Default: that of the spec, else the only one in the store.")
@click.option("--format", "form", type=click.Choice(["text", "json", "junit"]), default="text", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False), help="Write to this file instead of the terminal.")
@_db
def check(spec: str, campaign: str | None, form: str, out: str | None, db: str | None) -> None:
    """Hold the limits of SPEC.toml against the runs of a campaign; exit 0 only where every limit passes."""
    from rdmalab import acceptance

    found = _open(db).check(spec, campaign)
    if form == "json":
        text = json.dumps(acceptance.to_dict(found), ensure_ascii=False)
    else:
        text = acceptance.to_junit(found) if form == "junit" else "\n".join(acceptance.text_lines(found))
    _print_text(text.rstrip("\n") + "\n", out)
    sys.exit(not found.accepted)


@main.command()
def formats() -> None:
    """List the log formats that can be read, each with a line of it."""
    from rdmalab.formats import known

    for form in known():
        click.echo(f"{form.NAME:<16} {form.EXAMPLE.strip()[:100]}")


def _open(db: str | None) -> "Lab":
    import rdmalab

    return rdmalab.open(db)


def _print_frame(frame: "pl.DataFrame", form: str, out: str | None) -> None:
    """A frame as text, or as bytes into a file or pipe."""
    import polars as pl

    if form == "table":
        with pl.Config(
            tbl_rows=200, tbl_cols=40, tbl_width_chars=240, fmt_str_lengths=60, tbl_hide_dataframe_shape=True
        ):
            content = f"{frame}\n({frame.height} rows)\n".encode()
    elif form == "parquet":
        if out is None and sys.stdout.isatty():
            raise UsageError("parquet is no text for a terminal; name a file with --out")
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        content = buffer.getvalue()
    else:
        flat = frame.with_columns(pl.col(pl.List(pl.String)).list.join(", ")) if form == "csv" else frame
        content = (flat.write_csv() if form == "csv" else flat.write_json() + "\n").encode()
    _print_text(content, out)


def _print_text(content: str | bytes, out: str | None) -> None:
    """Text or bytes into a file, or to the terminal."""
    if not out:
        click.echo(content, nl=False)
        return
    try:
        Path(out).write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UsageError(f"{out}: {(error.strerror or str(error)).lower()}") from None


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
    missing = [p for p in paths if p != "-" and not os.path.lexists(p)]
    if missing:
        raise UsageError("; ".join(f"{p}: no such file or folder" for p in missing))
