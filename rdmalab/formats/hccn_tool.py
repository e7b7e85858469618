"""hccn-tool: ``hccn_tool -i 0 -link_stat -g``, how often the RoCE port of an Ascend NPU went up and down.

    [devid 0]link down count     : 1
    [devid 0]    Sun Oct  5 10:13:50 2025    LINK DOWN

    packet statistics:
    roce_new_pkt_rty_num:3

``-stat -g`` prints counters since the driver was loaded; ``roce_new_pkt_rty_num`` counts retransmissions. The records
are stamped in whole seconds of local time: no outage shorter than that can be read from them.
"""

import re

from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "hccn-tool"
EXAMPLE = "[devid 0]link down count     : 1"
HINTS = (b"link up count", b"link down count", b"packet statistics:", b"roce_new_pkt_rty_num")
SIGNATURE = re.compile(rb"\[devid \d+\]link (?:up|down) count|packet statistics:|roce_new_pkt_rty_num:")

_COUNT = re.compile(r"link (up|down) count\s*: (\d{1,15})\s*$")
_RECORD = re.compile(r"\s+(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\s+LINK (UP|DOWN)\s*$")
_ECHO = re.compile(r"(?:^|.*[\s/])hccn_tool (?:.*\s)?-i[ =]*(\d{1,4})\b.*\s-stat\b")
_COUNTER = re.compile(r"\s*((?:mac|roce|nic|ub)_\w+): *(\d{1,15})\s*$")
_DEVICE = re.compile(r".*?\[devid (\d+)\]")


def parse(text: Text) -> Parsed:
    """The counts, and ``link_up`` 1 or 0 for each record, in the order printed: the newest first."""
    found = Found()
    echoed: str | None = None
    for line, content in clean(text):
        if "hccn_tool" in content:
            echo = _ECHO.match(content)
            echoed = echo[1] if echo else None
        elif counter := _COUNTER.match(content):
            found.readings.append(Reading(metric=counter[1], value=float(counter[2]), device=echoed, line=line))
        if not (device := _DEVICE.match(content)):
            continue
        said = content[device.end() :]
        if count := _COUNT.match(said):
            metric, value, stamp = f"link_{count[1]}_count", float(count[2]), None
        elif record := _RECORD.match(said):
            metric, value, stamp = "link_up", float(record[2] == "UP"), record[1]
        else:
            if said.startswith(("link up count", "link down count")) or " LINK " in said:
                found.torn(line, content)
            continue
        found.readings.append(Reading(metric=metric, value=value, device=device[1], line=line, stamp=stamp))
    return found.parsed(text)
