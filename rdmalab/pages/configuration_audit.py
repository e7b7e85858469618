"""The configuration audit: cover, findings with their lines, what was not tested, benign warnings, evidence, method."""

from html import escape
from typing import TYPE_CHECKING, Any

from rdmalab.display import Block
from rdmalab.pages._paper import Paper, bullets, explained, h3, p, shown_path
from rdmalab.rules._base import CHECK, NOTE, SEVERITIES, WRONG
from rdmalab.tables import cell_html, table_html, th
from rdmalab.wording import Phrasing

if TYPE_CHECKING:
    from rdmalab.audit import Audit, Finding
    from rdmalab.rules._base import Line, Rule

_MOST_LOGS = 60  # rows of evidence of one finding
_ON_COVER = 7
_BARS = {WRONG: "refused", CHECK: "check", NOTE: "note"}


class ConfigurationAudit(Paper):
    """The report of one audit in one language; every method is a page."""

    def __init__(self, audit: "Audit", lang: str = "en") -> None:
        self.audit = audit
        words = Phrasing(lang)
        self._known = words._  # of texts that the rules keep, see rdmalab.language.marked
        super().__init__(
            words, report=words._("Configuration audit"), report_id=f"CA-{audit.snapshot[:8]}",
            snapshot=audit.snapshot, customer=audit.campaign["customer"], synthetic=bool(audit.campaign["synthetic"]),
        )  # fmt: skip

    # -- words ----------------------------------------------------------------------------------------------------

    def _counted(self, severity: str) -> str:
        """``1 wrong``; empty where there is none."""
        words = {WRONG: self._("{n} wrong"), CHECK: self._("{n} to check"), NOTE: self._("{n} to know")}
        n = self.audit.count(severity)
        return words[severity].format(n=n) if n else ""

    def verdict(self) -> list[str]:
        """The clauses of the first page."""
        findings, rules = len(self.audit.findings), len(self.audit.tested)
        if not rules:
            return [self._("Nothing could be tested: these logs do not show how the machines are set up")]
        tested = (
            self._("1 rule tested, {not_tested} not") if rules == 1 else self._("{n} rules tested, {not_tested} not")
        )
        last = tested.format(n=rules, not_tested=len(self.audit.untested))
        if not findings:
            return [self._("No finding,"), last]
        counts = self.phrasing.listed(filter(None, map(self._counted, SEVERITIES)))
        first = self._("1 finding: {counts};") if findings == 1 else self._("{n} findings: {counts};")
        return [first.format(n=findings, counts=counts), last]

    def _sentence(self, finding: "Finding") -> str:
        numbers = dict(finding.numbers)
        if "reason" in numbers:
            numbers["reason"] = self.phrasing.stated(numbers["reason"])
        return self._known(finding.what).format_map(numbers)

    def _severity(self, severity: str) -> str:
        return {WRONG: self._("Wrong"), CHECK: self._("Check"), NOTE: self._("Note")}[severity]

    def _label(self, fabric: str | None) -> str:
        return self.audit.campaign["labels"].get(fabric, fabric) if fabric else ""

    def _path(self, path: str) -> str:
        return shown_path(path, self.audit.campaign["root"])

    def _place(self, line: "Line") -> str:
        return self._("{path}, line {line}").format(path=self._path(line.path), line=line.line)

    def _logs(self, number: int) -> str:
        return self._("1 log") if number == 1 else self._("{n} logs").format(n=number)

    # -- pages ----------------------------------------------------------------------------------------------------

    def cover(self) -> Block:
        """The verdict, what it rests on, and who, when, on what evidence."""
        a = self.audit
        lead = self._(
            "{tested} of {all} rules could be tested on {logs}; {untested} need logs that are not there, which is no "
            "proof that all is well. Every finding stands with the line of the log that shows it."
        ).format(
            tested=len(a.tested), all=len(a.tested) + len(a.untested), untested=len(a.untested), logs=self._logs(a.logs)
        )
        facts = self._facts(a.campaign, self._logs(a.logs))
        return Block(self._cover(self.verdict(), lead, facts, after=self._at_a_glance()))

    def _at_a_glance(self) -> str:
        """The first findings as bars under the verdict, and how many more there are."""
        shown, more = self.audit.findings[:_ON_COVER], len(self.audit.findings) - _ON_COVER
        bars = "".join(map(self._bar, shown))
        return bars + (p(self._("{n} more on the next page.").format(n=more)) if more > 0 else "")

    def _bar(self, finding: "Finding") -> str:
        word = escape(self._severity(finding.severity))
        label = self._label(finding.fabric)
        said = self._sentence(finding)
        if label:
            said = self._("{fabric}: {finding}").format(fabric=label, finding=said)
        return f'<div class="{_BARS[finding.severity]}"><b>{word}</b> {escape(said)}</div>'

    def findings(self) -> Block:
        """One row a finding at a glance, then each with its lines, remedy and source."""
        named = any(f.fabric for f in self.audit.findings)
        rows = [
            f'<tr><td class="text">{self._mark(f.severity)}</td>{cell_html(self._sentence(f), "text")}'
            f"{cell_html(self._label(f.fabric), 'text') if named else ''}"
            f"{cell_html(self._place(f.lines[0]), 'mono')}{cell_html(str(len(f.logs)))}</tr>"
            for f in self.audit.findings
        ]
        fabric = [th(self._("Fabric"), "text")] if named else []
        head = [
            th("", "text"), th(self._("What"), "text"), *fabric, th(self._("First line"), "text"), th(self._("Logs")),
        ]  # fmt: skip
        body = (
            table_html(head, rows) if rows else p(self._("No rule fired. What was not tested stands on the next page."))
        )
        body += "".join(map(self._finding, self.audit.findings))
        sub = self._(
            "Wrong: the setting defeats its purpose. Check: it has a harmless reading too. Note: worth knowing."
        )
        return Block(self._section(self._("Findings"), self.phrasing.clauses(self._title()), sub, body))

    def _title(self) -> list[str]:
        """The finding of the page of findings, in its own words where there is only one."""
        if len(self.audit.findings) == 1:
            return [self._known(self.audit.findings[0].rule.title)]
        counts = [self._counted(severity) for severity in SEVERITIES]
        return [c for c in counts if c] or [self._("No rule fired")]

    def _mark(self, severity: str) -> str:
        kind = {WRONG: "refuted", CHECK: "checked"}.get(severity, "keep")
        return f'<span class="keep"><span class="{kind}">{escape(self._severity(severity))}</span></span>'

    def _finding(self, finding: "Finding") -> str:
        """A bar with the sentence, the literal lines, remedy and source."""
        where = [finding.rule.id, self._known(finding.rule.title), self._logs(len(finding.logs))]
        lines = "\n".join(f"{self._place(line)}\n    {line.text}" for line in finding.lines)
        words = ((self._("Remedy"), self._known(finding.rule.remedy)), (self._("Source"), finding.rule.source))
        return (
            f'<div class="finding">{self._bar(finding)}'
            f'<p class="small">{escape(self.phrasing.listed(filter(None, where)))}</p>'
            f'<pre class="log">{escape(lines)}</pre>{explained(words)}</div>'
        )

    def untested(self) -> Block:
        """The rules that nothing here could have fired, gathered by the log that closes the gap."""
        body = "".join(
            self._hatched(
                self.phrasing.series(self._known(rule.title) for rule in rules),
                self._("No log of this campaign could have shown it."),
                self._known(needs),
            )
            for needs, rules in self.audit.missing().items()
        )
        title = self._("{n} of {all} rules were not tested").format(
            n=len(self.audit.untested), all=len(self.audit.tested) + len(self.audit.untested)
        )
        sub = self._("Not tested is not passed. Each gap names the log that closes it.")
        return Block(
            self._section(self._("Not tested"), title, sub, body or p(self._("Every rule was tested.")), "page half")
        )

    def benign(self) -> Block:
        """Warnings that look like failures and are none; empty where there are none."""
        rows = [
            f"<tr>{cell_html(self._place(b.line), 'mono')}{cell_html(b.line.text, 'mono')}"
            f"{cell_html(self._because(b.text, b.but), 'text')}</tr>"
            for b in self.audit.benign
        ]
        if not rows:
            return Block("")
        head = [th(self._("Log"), "text"), th(self._("First line"), "text"), th(self._("Why it is none"), "text")]
        title = self._("Warnings that are no findings")
        sub = self._("NCCL prints them at the end of successful jobs too. They count only beside another failure.")
        return Block(self._section(self._("Benign"), title, sub, table_html(head, rows), "page half"))

    def _because(self, text: str, failures: int) -> str:
        but = self._("The same log has {n} notes of failures: see them first.").format(n=failures) if failures else ""
        return self.phrasing.text(filter(None, [self.phrasing.stated(text), but]))

    def evidence(self) -> Block:
        """Every log behind a finding, with its hash, and the rules that were tested."""
        rows = [
            f"<tr>{cell_html(f.rule.id, 'text')}{cell_html(self._label(f.fabric), 'text')}"
            f"{cell_html(self._path(path), 'mono')}{cell_html(self.audit.hashes[path][:12], 'mono')}</tr>"
            for f in self.audit.findings
            for path in f.logs[:_MOST_LOGS]
        ]
        head = [
            th(self._("Rule"), "text"), th(self._("Fabric"), "text"), th(self._("Log"), "text"), th("sha256", "text"),
        ]  # fmt: skip
        body = table_html(head, rows) if rows else p(self._("No log stands behind a finding."))
        if more := sum(max(0, len(f.logs) - _MOST_LOGS) for f in self.audit.findings):
            body += p(
                self._("{logs} more; 'rdmalab audit --format json' lists them all.").format(logs=self._logs(more))
            )
        body += h3(self._("Rules that were tested"))
        body += bullets(map(self._tested, self.audit.tested)) if self.audit.tested else p(self._("None."))
        title = self._("{logs} were searched").format(logs=self._logs(self.audit.logs))
        sub = self._("Data snapshot {id}. The lines themselves stand with their finding.").format(id=self.snapshot[:12])
        return Block(self._section(self._("Evidence"), title, sub, body))

    def _tested(self, rule: "Rule") -> str:
        fired = sum(f.rule is rule for f in self.audit.findings)
        word = self._("1 finding") if fired == 1 else self._("{n} findings").format(n=fired)
        return self._("{rule}: {title} ({word})").format(rule=rule.id, title=self._known(rule.title), word=word)

    def method(self) -> Block:
        """How findings come about, in the order a doubter asks."""
        items = [
            (self._("Rule"), self._("A rule fires only on lines of logs, never on their absence. Lines that say the "
                "same of one fabric are one finding; the first log is quoted, all are listed.")),
            (self._("Severity"), self._("Wrong: what the campaign file states or the job asked for is defeated. Check: "
                "the same lines have a harmless reading. Note: nothing is lost, but a reader must know.")),
            (self._("Sockets"), self._("The proof is a connection via NET/Socket between nodes, never \"Using "
                "network\". Fabrics that are declared tcp use sockets on purpose and are left alone.")),
            (self._("Counters"), self._("Only the difference of two snapshots of one port counts. A share of the time "
                "is given only where both snapshots carry their time.")),
            (self._("Distances"), self._("nvidia-smi topo -m names no host: it is held against NCCL lines only where a "
                "campaign file puts both together and all matrices agree.")),
            (self._("PCIe"), self._("An idle GPU lowers its link speed, so that only rows under load count. Its width "
                "never rests.")),
            (self._("Lines"), self._("Every line was read again from its log when this report was made. Of a log that "
                "is gone or has changed, what the store keeps of the line is shown.")),
        ]  # fmt: skip
        sources = dict.fromkeys(rule.source for rule in (*self.audit.tested, *self.audit.untested))
        body = explained(items) + h3(self._("Sources")) + bullets(sources)
        title, sub = self._("How findings come about"), self._("Fixed rules; no finding is written by hand.")
        return Block(self._section(self._("Method"), title, sub, body))

    def header(self) -> dict[str, Any]:
        """What the margins of the pages print."""
        return super().header() | {"title": self.phrasing.text(self.verdict())}

    def figures_for_machines(self) -> dict[str, Any]:
        """Verdict and findings, for report.json."""
        return {"verdict": self.verdict(), "snapshot": self.audit.snapshot, **self.audit.to_dict()}
