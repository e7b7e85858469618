"""A first ``rdmalab.toml`` for a folder of logs: what the logs show is filled in, what they do not is asked for."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from rdmalab import formats, sources
from rdmalab.campaign import FILE_NAME
from rdmalab.errors import UsageError
from rdmalab.model import FAMILIES, Log

_VERDICTS = {"ib": "infiniband", "roce": "roce", "socket": "tcp"}
_PROVIDERS = {"efa": "efa", "cxi": "slingshot"}


@dataclass
class _Group:
    """Logs that will be one fabric, and what they say together."""

    globs: list[str] = field(default_factory=list)
    logs: int = 0
    families: Counter[str] = field(default_factory=Counter)
    mtu_bytes: Counter[int] = field(default_factory=Counter)
    gpus_per_node: int = 0
    gpus: Counter[str] = field(default_factory=Counter)
    tests: Counter[str] = field(default_factory=Counter)

    def add(self, log: Log) -> None:
        self.logs += 1
        verdict = log.transport.verdict if log.transport else ""
        provider = (log.transport.provider if log.transport else None) or ""
        for run in log.runs:
            family = run.fabric or _VERDICTS.get(verdict) or _PROVIDERS.get(provider)
            if family:
                self.families[family] += 1
            if run.mtu_bytes:
                self.mtu_bytes[run.mtu_bytes] += 1
            if run.ranks and run.nodes:
                self.gpus_per_node = max(self.gpus_per_node, run.ranks // run.nodes)
            if run.gpu_model:
                self.gpus[run.gpu_model] += 1
            self.tests[run.operation or run.program or run.tool] += 1


def write_starter(folder: str | Path) -> Path:
    """
    Writes ``rdmalab.toml`` into a folder of logs and returns its path.

    Raises:
        UsageError: The folder does not exist, has a campaign file already, or holds no log that can be read.
    """
    folder = Path(folder)
    target = folder / FILE_NAME
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    if target.exists():
        raise UsageError(f"{target}: there is one already; it is left as it is")
    groups = _groups(folder)
    if not groups:
        raise UsageError(f"{folder}: no log that rdmalab can read; 'rdmalab formats' lists what it reads")
    target.write_text(_toml(folder, groups), encoding="utf-8")
    return target


def _groups(folder: Path) -> dict[str, _Group]:
    """One group a first-level folder; logs that lie beside them are grouped by the family that they show."""
    groups: dict[str, _Group] = defaultdict(_Group)
    for file in sources.find([folder]):
        for text in sources.texts(file.path) if isinstance(file, sources.File) else []:
            if isinstance(text, sources.Text) and (log := formats.read(text)).runs:
                inside = Path(file.path).relative_to(folder).parts
                name, glob = (inside[0], f"{inside[0]}/**") if len(inside) > 1 else (_family_of(log), inside[0])
                if glob not in groups[name].globs:
                    groups[name].globs.append(glob)
                groups[name].add(log)
    return dict(sorted(groups.items()))


def _family_of(log: Log) -> str:
    group = _Group()
    group.add(log)
    return group.families.most_common(1)[0][0] if group.families else "unknown"


def _toml(folder: Path, groups: dict[str, _Group]) -> str:
    head = f"""\
# What the logs do not say. Read at every ingest: correct a line, ingest again, and the correction takes effect.
# Leave out what you do not know: it is named in the report instead of being guessed.

[campaign]
name = {_text(folder.absolute().name)}
title = ""
# customer = ""
# dates = [2026-11-03, 2026-11-07]  # first and last day of the measurements
# synthetic = true              # marks every page of a report
# pairs = "*/run-{{pair}}.log"    # only if runs were taken turn by turn: the same {{pair}} in two fabrics is one pair
# notes = ["..."]

# One [[fabric]] for each network that is compared; the first is the baseline.
"""
    tail = """
# Tests of unlike tools that measure the same thing; reports name both beside every ratio.
# [[same]]
# measures = "bandwidth"        # or "latency"
# tests = ["ib_write_bw", "iperf3"]
# size_bytes = 65536            # where a test has no message size: the size that it stands beside

# What single logs leave out; never replaces what a log prints.
# [[facts]]
# logs = ["tcp/ucx-client-*.log"]
# size_bytes = 64
"""
    return head + "".join(_fabric(name, group) for name, group in groups.items()) + tail


def _fabric(name: str, group: _Group) -> str:
    seen = ", ".join(f"{test} ({n})" for test, n in group.tests.most_common(6))
    gpu = ", ".join(group.gpus)
    family = group.families.most_common(1)[0][0] if group.families else "unknown"
    shown = f"as {sum(group.families.values())} runs show" if group.families else f"one of {', '.join(FAMILIES)}"
    if len(group.families) > 1:
        shown = "check: the logs show " + ", ".join(f"{f} ({n})" for f, n in group.families.most_common())
    lines = [
        "",
        f"# {group.logs} logs: {seen}" + (f"; {gpu}" if gpu else ""),
        "[[fabric]]",
        f"name = {_text(name)}",
        f"label = {_text(name)}",
        f'family = "{family}"  # {shown}',
        '# nic = "ConnectX-7"            # model of the adapter; not in the logs',
        "# link_rate_gbit_s = 400        # of one port in one direction, Gb/s; not in the logs",
        "# ports_per_node = 8            # that may carry this traffic; not in the logs",
        f"mtu_bytes = {group.mtu_bytes.most_common(1)[0][0]}"
        if group.mtu_bytes
        else "# mtu_bytes = 4096              # not in the logs",
        f"gpus_per_node = {group.gpus_per_node}"
        if group.gpus_per_node
        else "# gpus_per_node = 8             # not in the logs",
        f"# gpus_per_domain = {group.gpus_per_node or 8}           # GPUs that NVLink (or the like) joins",
        f"logs = [{', '.join(map(_text, group.globs))}]",
    ]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
