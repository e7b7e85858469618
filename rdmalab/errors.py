"""What can go wrong for a user, as one small tree.

    RdmalabError
    ├── UsageError        a wrong argument, parameter or query                exit 2
    ├── CampaignError     rdmalab.toml cannot be used                         exit 2
    ├── StoreError        the store is missing, foreign, newer or damaged     exit 2
    ├── NothingToCompare  the question is fine, the data cannot answer it     exit 1
    ├── ReportError       a notebook cell or an export failed                 exit 1
    └── MissingProgram    an outside program (Chromium) is not installed      exit 3

Every message is one sentence that says what was wrong, where, and what to do.
"""

from difflib import get_close_matches


class RdmalabError(Exception):
    """Base of all errors that are printed as one sentence, without a traceback."""

    exit_code = 2


class UsageError(RdmalabError):
    """A wrong argument, parameter or query."""


class CampaignError(RdmalabError):
    """A campaign file cannot be used; the message names the file and the line."""


class StoreError(RdmalabError):
    """The store is missing, foreign, newer or damaged."""


class NothingToCompare(RdmalabError):
    """The data in the store cannot answer the question."""

    exit_code = 1


class ReportError(RdmalabError):
    """A report could not be made."""

    exit_code = 1


class MissingProgram(RdmalabError):
    """A program outside Python is needed and not there."""

    exit_code = 3


def did_you_mean(word: str, known: list[str] | tuple[str, ...]) -> str:
    """Returns ``" Did you mean 'x'?"`` when *known* holds a word close to *word*, else an empty text."""
    folded = {k.lower(): k for k in known}
    close = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    close += [k for k in folded if word and k.startswith(f"{word.lower()}_")]  # a unit was left out: mtu for mtu_bytes
    return f" Did you mean '{folded[close[0]]}'?" if close else ""
