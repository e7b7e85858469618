"""What a command line above a table tells: which collective runs, and on how many ranks."""

import re

from rdmalab.formats._collectives import operation_of
from rdmalab.model import COLLECTIVES

_NAMES = "|".join(COLLECTIVES)
_INVOKED = re.compile(rf"(?:^|[\s=])(\S*?\b(?:{_NAMES})_(?:perf|test)(?:_mpi)?)(?=\s|$)(.*)")
_SCRIPT = re.compile(rf"nccl.?tests?\S*\s.*-t +({_NAMES})\b")  # run_nccl_tests.sh -t all_gather
_PROMPT = re.compile(r"^\s*(?:\S*[$#+]|\[[^\]]*\][$#]) +(?=\S)")
_LAUNCH = re.compile(r"\b(?:mpirun|mpiexec|srun|orterun|prterun|prun)\b(.*)")
_PROCESSES = re.compile(r"\s(?:-np|-n|--np|--ntasks)[ =]*(\d{1,9})\b")
_PER_NODE = re.compile(r"\s(?:-N|--nodes)[ =]*(\d{1,9})\b.*\s--ntasks-per-node[ =](\d{1,9})\b")


def command_in(text: str) -> str | None:
    """The command of a line that starts a benchmark, without its prompt; None for prose that names one."""
    if text.lstrip().startswith("# ") and not text.lstrip().startswith("# ./"):
        return None
    found = _INVOKED.search(text)
    if not (_SCRIPT.search(text) or (found and _starts(text[: found.start(1)], found[1], found[2]))):
        return None
    return _PROMPT.sub("", text).strip()


def _starts(before: str, program: str, options: str) -> bool:
    if re.match(r"\s+--?\w", options) or (program.endswith("_test") and re.match(r"\s+\d", options)):
        return True
    bare = not options.strip() or options.strip()[0] in "|>&\\;"
    return bare and ("/" in program or not _PROMPT.sub("", before).strip())


def operation_in(command: str) -> str | None:
    """The collective that a command runs."""
    script = _SCRIPT.search(command)
    return operation_of(command) or (script[1] if script else None)


def ranks_of(command: str) -> int | None:
    """Processes x threads x GPUs; None where the number of processes is not in the command."""
    found = _INVOKED.search(command)
    processes = _processes(command[: found.start(1)]) if found else None
    if found is None or processes is None:
        return None
    for option in ("(?:-t|--nthreads)", "(?:-g|--ngpus)"):
        number = re.search(rf"\s{option}[ =]*(\d{{1,9}})\b", found[2])
        processes *= int(number[1]) if number else 1
    return processes


def is_one_process(command: str) -> bool:
    """Whether nothing but assignments and sudo stands before the program, so that all ranks share one machine."""
    found = _INVOKED.search(command)
    return bool(found) and _is_direct(command[: found.start(1)] if found else "")


def _processes(before: str) -> int | None:
    if _is_direct(before):
        return 1
    launch = _LAUNCH.search(before)
    if not launch:
        return None
    per_node, total = _PER_NODE.search(launch[1]), _PROCESSES.search(launch[1])
    if total:
        return int(total[1])
    return int(per_node[1]) * int(per_node[2]) if per_node else None


def _is_direct(before: str) -> bool:
    if before.endswith("="):  # PROGRAM=/path/all_reduce_perf: who starts it is not said
        return False
    return all("=" in word or word == "sudo" for word in before.split())
