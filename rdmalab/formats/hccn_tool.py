"""hccn-tool: ``hccn_tool -i 0 -link_stat -g``, how often the RoCE port of an Ascend NPU went up and down.

    [devid 0]link down count     : 1
    [devid 0]    Sun Oct  5 10:13:50 2025    LINK DOWN

The records are stamped in whole seconds of local time: no outage shorter than that can be read from them.
"""

import re

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "hccn-tool"
EXAMPLE = "[devid 0]link down count     : 1"
SIGNATURE = re.compile(rb"\[devid \d+\]link (?:up|down) count")

_COUNT = re.compile(r"\[devid (\d+)\]link (up|down) count\s*: (\d{1,15})\s*$")
_RECORD = re.compile(
    r"\[devid (\d+)\]\s+([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\s+LINK (UP|DOWN)\s*$"
)


def parse(text: Text) -> Parsed:
    """The counts, and ``link_up`` 1 or 0 for each record, in the order printed: the newest first."""
    found = Found()
    for line, content in clean(text):
        if count := _COUNT.search(content):
            found.readings.append(
                Reading(metric=f"link_{count[2]}_count", value=float(count[3]), device=count[1], line=line)
            )
        elif record := _RECORD.search(content):
            up = float(record[3] == "UP")
            found.readings.append(Reading(metric="link_up", value=up, device=record[1], line=line, stamp=record[2]))
        elif re.search(r"\[devid \d+\](?:link (?:up|down) count|.*LINK )", content):
            found.torn(line, content)
    return found.parsed(text)
