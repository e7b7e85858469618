"""The audit of claims: cover with the verdict, every claim with its numbers, contradictions, what is open, evidence."""

from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Any

from rdmalab.claims import EVIDENCE, VERDICTS, closing
from rdmalab.display import Block
from rdmalab.pages._paper import Paper, bullets, explained, h3, p, shown_path
from rdmalab.tables import cell_html, decimals_for, fixed, number_text, table_html, th
from rdmalab.wording import Phrasing

if TYPE_CHECKING:
    from rdmalab.claims import Document, Judgement
    from rdmalab.lab import Lab

_IMPOSSIBLE, _WRONG, _CONTRADICTED, _CONFUSED, _IMPLAUSIBLE, _MISLEADING, _OPEN, _CONSISTENT = VERDICTS
_UNFIT = (_IMPOSSIBLE, _WRONG, _CONTRADICTED, _CONFUSED, _IMPLAUSIBLE, _MISLEADING)
_ON_COVER = 6
_MOST_LOGS = 200


class ClaimsAudit(Paper):
    """
    The report on one document of claims in one language; every method is a page.

    Args:
        lab: The store behind the evidence.
        document: The claims.
        judged: What :func:`rdmalab.claims.judge` found, in the order of the document.
    """

    def __init__(self, lab: "Lab", document: "Document", judged: "list[Judgement]", lang: str = "en") -> None:
        self.document, self.judged, words = document, judged, Phrasing(lang)
        self.source = document.source
        self.runs = _runs(lab, judged)
        super().__init__(
            words, report=words._("Audit of claims"), report_id=f"CL-{document.sha256[:8]}", snapshot=document.sha256,
            customer=None, synthetic=self.source.get("synthetic") is True,
        )  # fmt: skip

    # -- words ----------------------------------------------------------------------------------------------------

    def _word(self, verdict: str) -> str:
        return {
            _IMPOSSIBLE: self._("physically impossible"), _WRONG: self._("arithmetically wrong"),
            _CONTRADICTED: self._("contradicted by spec"), _CONFUSED: self._("unit-confused"),
            _IMPLAUSIBLE: self._("implausible"), _MISLEADING: self._("misleading"),
            _OPEN: self._("unverifiable without a log"), _CONSISTENT: self._("consistent"),
            "confirmed": self._("confirmed"), "refuted": self._("refuted"), "inconclusive": self._("inconclusive"),
            "no evidence": self._("no evidence"),
        }[verdict]  # fmt: skip

    def _mark(self, verdict: str) -> str:
        kind = {
            _CONSISTENT: "proof full", "confirmed": "proof full", _OPEN: "proof none", "no evidence": "proof none",
            "inconclusive": "checked", _IMPLAUSIBLE: "checked", _MISLEADING: "checked", _CONFUSED: "checked",
        }.get(verdict, "refuted")  # fmt: skip
        return f'<span class="{kind}"></span> {escape(self._word(verdict))}'

    def _count(self, *verdicts: str) -> int:
        return sum(j.verdict in verdicts for j in self.judged)

    def _shown(self, verdict: str) -> "list[Judgement]":
        return [j for j in self.judged if j.evidence["verdict"] == verdict]

    def verdict(self) -> list[str]:
        """The clauses of the first page."""
        m, n = len(self.judged), self._count(_CONSISTENT)
        one, many = self._("{n} of {m} claims is consistent"), self._("{n} of {m} claims are consistent")
        clauses = [(one if n == 1 else many).format(n=n, m=m)]
        if n := self._count(_IMPOSSIBLE, _WRONG, _CONTRADICTED):
            one = self._("{n} contradicts physics, arithmetic or the specification")
            many = self._("{n} contradict physics, arithmetic or the specification")
            clauses.append((one if n == 1 else many).format(n=n))
        if n := len(self._shown("refuted")):
            one, many = self._("{n} is refuted by runs"), self._("{n} are refuted by runs")
            clauses.append((one if n == 1 else many).format(n=n))
        if n := self._count(_OPEN):
            one, many = self._("{n} needs a log"), self._("{n} need a log")
            clauses.append((one if n == 1 else many).format(n=n))
        return clauses

    def _stated(self, j: "Judgement") -> str:
        return f"{j.claim.printed} {j.claim.unit}".strip().replace("us", "µs") or self._("no number")

    def _because(self, j: "Judgement") -> str:
        return self.phrasing.stated(str(j.row()["because"]))

    def _interval(self, j: "Judgement") -> str:
        """``47.43 [47.11, 47.64] GB/s, 7 runs``; empty without."""
        e = j.evidence
        if e.get("median") is None:
            return ""
        digits = decimals_for(e["median"], e["low"], e["high"])
        value, low, high = (fixed(e[k], digits) for k in ("median", "low", "high"))
        return self._("{value} [{low}, {high}] {unit}, {runs}").format(
            value=value, low=low, high=high, unit=e["unit"], runs=self.phrasing.count(e["n"])
        )

    def _closes(self, j: "Judgement") -> str:
        """Which record, made how, would settle an open claim."""
        kind, command = closing(j.claim)
        six = self._("six runs or more, with their whole output")
        record = {
            "collective": self._("nccl-tests on the stated system"), "latency": self._("perftest on the stated link"),
            "bandwidth": self._("perftest on the stated link"),
            "gpu": self._("nvidia-smi --query-gpu with time stamps while the job runs"),
            "counters": self._("port counters (ethtool -S, sysfs) right before and after a test that is logged"),
            "soak": self._("a test of hours with a time stamp on every row, and the log of the links beside it"),
            "scaling": self._("the same test at three scales or more, with the list of hosts"),
            "profile": self._("a profile of steps with the bytes of each collective, and nccl-tests at these sizes"),
            "quote": self._("a dated quote with GPUs, term, currency and what is included"),
            "serving": self._("the result file of a serving benchmark with request rate and percentiles"),
            "facts": self._("model, precision and parallelism as configured"),
            "statement": self._("a record of the source that says how it was found"),
        }[kind]  # fmt: skip
        return self.phrasing.clauses([record, *([command] if command else []), *([six] if command else [])])

    # -- pages ----------------------------------------------------------------------------------------------------

    def cover(self) -> Block:
        """The verdict, what it rests on, and the claims that do not stand."""
        vendor = self.source.get("vendor") or self.source.get("id") or self._("not stated")
        against = self._("arithmetic, each other, physics and the specifications")
        if self.runs:
            against = self._("arithmetic, each other, physics, the specifications and {runs}").format(
                runs=self.phrasing.count(len(self.runs))
            )
        lead = self._(
            "{vendor}: {m} sentences held against {against}. What a sentence leaves open is varied over all it allows; "
            "a verdict needs all of them to agree."
        ).format(vendor=vendor, m=len(self.judged), against=against)
        facts = [
            (self._("Source"), str(self.source.get("file") or self.source.get("url") or self.source.get("id") or "")),
            (self._("Read on"), str(self.source.get("read_on") or self._("not stated"))),
            (self._("Stated conditions"), str(self.source.get("conditions") or self._("not stated"))),
            (self._("Report"), self.report_id),
        ]
        return Block(self._cover(self.verdict(), lead, facts, after=self._at_a_glance()))

    def _at_a_glance(self) -> str:
        unfit = sorted((j for j in self.judged if j.bad or j.verdict in _UNFIT), key=_severity)
        bars = "".join(self._bar(j) for j in unfit[:_ON_COVER])
        more = len(unfit) - _ON_COVER
        return bars + (p(self._("{n} more on the next pages.").format(n=more)) if more > 0 else "")

    def _bar(self, j: "Judgement") -> str:
        refuted = j.evidence["verdict"] == "refuted" and j.verdict not in _UNFIT
        word = self._word("refuted" if refuted else j.verdict)
        why = self._interval(j) if refuted else self._because(j)
        kind = "refused" if j.bad or j.verdict == _CONTRADICTED else "check"
        said = self._("{id}: {text}; {why}").format(id=j.claim.id, text=j.claim.text, why=why)
        return f'<div class="{kind}"><b>{escape(self.phrasing.sentence(word))}</b> {escape(said)}</div>'

    def summary(self) -> Block:
        """How many claims have which verdict, and what runs say of them."""
        counts, shown = Counter(j.verdict for j in self.judged), Counter(j.evidence["verdict"] for j in self.judged)
        head = [th(self._("Verdict"), "text"), th(self._("Claims")), th(self._("Which"), "text")]

        def rows(words: tuple[str, ...], found: Counter[str], of: Any) -> list[str]:
            return [
                f'<tr><td class="text"><span class="keep">{self._mark(w)}</span></td>{cell_html(str(found[w]))}'
                f"{cell_html(self._ids(w, of), 'text')}</tr>"
                for w in words if found[w]
            ]  # fmt: skip

        body = table_html(head, rows(VERDICTS, counts, lambda j: j.verdict))
        body += h3(self._("What runs say"))
        body += table_html(head, rows(EVIDENCE, shown, lambda j: j.evidence["verdict"]))
        sub = self._("The first verdict needs no run; what runs say stands beside it and never replaces it.")
        return Block(self._section(self._("Summary"), self.phrasing.clauses(self.verdict()), sub, body))

    def _ids(self, word: str, of: Any) -> str:
        found = [j.claim.id for j in self.judged if of(j) == word]
        more = self._(" and {n} more").format(n=len(found) - 12) if len(found) > 12 else ""
        return ", ".join(found[:12]) + more

    def claims(self) -> Block:
        """Every claim: what it says, reading, formula and result, verdict, source, and the interval of runs."""
        head = [
            th(self._("Claim"), "text"), th(self._("Stated"), "text"), th(self._("Verdict and reading"), "text"),
            th(self._("Formula and result"), "text"),
        ]  # fmt: skip
        rows = [self._row(j) for j in self.judged]
        sub = self._("Sentences and facts are in English; numbers are as printed. Sources stand in brackets.")
        title = self._("Every claim with its reading")
        sources = sorted({f.source for j in self.judged for f in j.findings if f.source})
        body = table_html(head, rows) + h3(self._("Sources of facts")) + bullets(sources)
        return Block(self._section(self._("Claims"), title, sub, body, "page flow"))

    def _row(self, j: "Judgement") -> str:
        row, by = j.row(), j.decisive
        formula = str(row["formula"] or "")
        if formula and row["computed"] is not None:
            formula = f"{formula} = {number_text(row['computed'], 5)}"
        source = f" [{by.source}]" if by and by.source else ""
        how = f"<b>{escape(formula)}</b><br>" if formula else ""
        reading = f'<span class="keep">{self._mark(j.verdict)}</span><br>'
        reading += escape(self.phrasing.stated(str(row["reading"]))) + self._ruling(j)
        if said := self._interval(j):
            reading += f'<br><span class="keep">{self._mark(j.evidence["verdict"])}</span><br>{escape(said)}'
        return (
            f'<tr><td class="text"><b>{escape(j.claim.id)}</b><br>{escape(j.claim.text)}</td>'
            f'{cell_html(self._stated(j), "text")}<td class="text">{reading}</td>'
            f'<td class="text">{how}{escape(self._because(j) + source)}</td></tr>'
        )

    def _ruling(self, j: "Judgement") -> str:
        """A person's ruling, where it is another one."""
        said = j.claim.audit.get("verdict")
        if not said or said == j.verdict:
            return ""
        by = str(j.claim.audit.get("by") or self._("a person"))
        return "<br>" + escape(self._("{by}: {verdict}").format(by=by, verdict=self._word(str(said))))

    def contradictions(self) -> Block:
        """Sentences of the document that do not fit each other; empty without."""
        ids = {j.claim.id for j in self.judged}
        found = [
            (j, f, others) for j in self.judged for f in j.findings
            if f.verdict in _UNFIT and (others := sorted((set(f.inputs) & ids) - {j.claim.id}))
        ]  # fmt: skip
        if not found:
            return Block("")
        rows = [
            f"<tr>{cell_html(j.claim.id, 'text')}{cell_html(', '.join(others), 'text')}"
            f"{cell_html(self.phrasing.stated(f.result), 'text')}"
            f'<td class="text"><span class="keep">{self._mark(str(f.verdict))}</span></td></tr>'
            for j, f, others in found
        ]
        head = [th(self._("Claim"), "text"), th(self._("Against"), "text"), th(self._("What differs"), "text"),
                th(self._("Verdict"), "text")]  # fmt: skip
        title = self._("{n} contradictions between sentences of the document").format(n=len(found))
        sub = self._("Both sentences cannot hold as they are written; which one is meant the source must say.")
        return Block(self._section(self._("Contradictions"), title, sub, table_html(head, rows), "page flow"))

    def open(self) -> Block:
        """What every open claim needs."""
        waiting = [
            j for j in self.judged if j.verdict == _OPEN and j.evidence["verdict"] in ("no evidence", "inconclusive")
        ]
        body = "".join(
            self._hatched(f"{j.claim.id}: {j.claim.text}", self._why_open(j), self._closes(j) + self._end())
            for j in waiting
        )  # fmt: skip
        title = self._("{n} of {m} claims are open").format(n=len(waiting), m=len(self.judged))
        sub = self._("Each gap names the record that closes it, and the command that makes it.")
        body = body or p(self._("No claim is open."))
        return Block(self._section(self._("Open"), title, sub, body, "page flow"))

    def _why_open(self, j: "Judgement") -> str:
        missing = [f.missing for f in j.findings if f.missing]
        if missing:
            return self._("Not stated: {fields}.").format(fields=self.phrasing.listed(map(str, missing)))
        if said := self._interval(j):
            return self._("Runs leave it open: {interval}.").format(interval=said)
        if j.evidence.get("n"):
            return self.phrasing.sentence(self.phrasing.stated(str(j.evidence.get("because") or ""))) + self._end()
        return self._("What it says settles it neither way.")

    def _end(self) -> str:
        return "。" if self.lang == "zh" else "."

    def evidence(self) -> Block:
        """The runs behind the second verdicts, with log, line and hash."""
        rows = [
            f"<tr>{cell_html(shown_path(path, root), 'mono')}{cell_html(str(line or ''))}{cell_html(run, 'mono')}"
            f"{cell_html(sha256[:12], 'mono')}{cell_html(', '.join(ids), 'text')}</tr>"
            for run, (path, root, line, sha256, ids) in list(self.runs.items())[:_MOST_LOGS]
        ]
        head = [th(self._("Log"), "text"), th(self._("Line")), th(self._("Run"), "text"), th("sha256", "text"),
                th(self._("Claims"), "text")]  # fmt: skip
        body = table_html(head, rows) if rows else p(self._("No run matches a claim."))
        if len(self.runs) > _MOST_LOGS:
            body += p(self._("{n} more are in report.json.").format(n=len(self.runs) - _MOST_LOGS))
        title = self._("{runs} stand behind the verdicts of runs").format(runs=self.phrasing.count(len(self.runs)))
        sub = self._("Only runs that agree with all that a claim states; report.json holds a query for every number.")
        return Block(self._section(self._("Evidence"), title, sub, body))

    def method(self) -> Block:
        """What the words mean."""
        items = [
            (self._word(_IMPOSSIBLE), self._("Above a bound of physics by more than the tolerance and 0.2 %, in every "
                "reading, from facts that were read in their source.")),
            (self._word(_WRONG), self._("The numbers of the sentence do not give its result.")),
            (self._word(_CONTRADICTED), self._("A data sheet or a specification says otherwise.")),
            (self._word(_CONFUSED), self._("It holds in another unit or convention, which is named: bits, both "
                "directions, binary units, round trip.")),
            (self._word(_IMPLAUSIBLE), self._("Outside of what public runs and models show.")),
            (self._word(_MISLEADING), self._("Proposed by the program, to be confirmed by a person.")),
            (self._word(_OPEN), self._("Nothing in the sentence settles it.")),
            (self._word("confirmed"), self._("The 95 % interval of the median of six runs or more lies inside of what "
                "is claimed, with its tolerance; refuted: apart from it; inconclusive: across its end.")),
        ]  # fmt: skip
        body = explained(items)
        title, sub = (
            self._("How a verdict comes about"),
            self._("Fixed rules; no verdict is read from the claims file."),
        )
        return Block(self._section(self._("Method"), title, sub, body, "page flow"))

    def header(self) -> dict[str, Any]:
        """What the margins of the pages print."""
        return super().header() | {"title": self.phrasing.clauses(self.verdict())}

    def figures_for_machines(self) -> dict[str, Any]:
        """Verdicts and all numbers, for report.json."""
        return {
            "verdict": self.verdict(), "snapshot": self.snapshot, "campaign": None,
            "claims": [j.row() for j in self.judged],
        }  # fmt: skip


def _severity(j: "Judgement") -> tuple[int, str]:
    return (VERDICTS.index(j.verdict) if j.verdict in _UNFIT else len(VERDICTS), j.claim.id)


def _runs(lab: "Lab", judged: "list[Judgement]") -> dict[str, tuple[str, str | None, int | None, str, list[str]]]:
    """Run → path, root of its campaign, line, hash, and the claims that it stands behind."""
    behind: dict[str, list[str]] = {}
    for j in judged:
        for run in (*j.evidence.get("runs", ()), *j.evidence.get("baseline_runs", ())):
            behind.setdefault(run, []).append(j.claim.id)
    frame = lab.sql(
        """SELECT run_id, any_value(path) AS path, any_value(root) AS root, any_value(line) AS line,
                  any_value(sha256) AS sha256
           FROM runs LEFT JOIN raw.campaigns USING (campaign) WHERE list_contains($runs, run_id)
           GROUP BY run_id ORDER BY path, line""",
        runs=list(behind),
    )
    return {run: (path, root, line, sha256, sorted(set(behind[run]))) for run, path, root, line, sha256 in frame.rows()}
