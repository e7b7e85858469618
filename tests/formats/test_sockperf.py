"""What the sockperf format promises, on logs written for it and on any text at all."""

import json
import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import sockperf
from rdmalab.model import Parsed, Run, Sample
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "sockperf"
ALL = sorted(path.name for path in LOGS.iterdir())


def content(name: str) -> str:
    return next(LOGS.glob(f"{name}.*")).read_text()


def parsed_text(text: str) -> Parsed:
    return sockperf.parse(Text.of(text))


@cache
def parsed(name: str) -> Parsed:
    return parsed_text(content(name))


def run(name: str) -> Run:
    (only,) = parsed(name).runs
    return only


def samples(found: Parsed) -> list[Sample]:
    return [sample for run in found.runs for sample in run.samples]


def codes(found: Parsed) -> list[str]:
    return [note.code for note in found.notes]


