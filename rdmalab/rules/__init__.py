"""The rules of the configuration audit, a module a group. A new rule is one function with the decorator ``rule``.

No rule fires without a line of a log that shows it. A rule that no log of the campaign could have fired is not passed
but untested, and says which log it needs. False alarms are worse than misses: what has a harmless reading is a check.
"""

from rdmalab.rules import affinity, counters, rdma, transport
from rdmalab.rules._base import Rule

RULES: tuple[Rule, ...] = (*transport.RULES, *rdma.RULES, *affinity.RULES, *counters.RULES)
