"""The analyst's door: an open store, questions in, polars frames out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdmalab.errors import UsageError, did_you_mean
from rdmalab.store import Store, query

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.acceptance import Acceptance
    from rdmalab.audit import Audit
    from rdmalab.compare import Comparison
    from rdmalab.series import Selection


class Lab:
    """
    A snapshot of a store. Ingests that happen meanwhile are seen by :meth:`refresh`.

    Args:
        db: Path of the store; default as in :func:`rdmalab.open`.

    Raises:
        StoreError: There is no store, or it cannot be used.
    """

    def __init__(self, db: str | Path | None = None) -> None:
        self.store = Store(db)
        self._con = self.store.connect()

    def refresh(self) -> "Lab":
        """Opens the store as it is now."""
        self._con.close()
        self._con = self.store.connect()
        return self

    def close(self) -> None:
        """Closes the connection."""
        self._con.close()

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sql(self, text: str, **params: Any) -> "pl.DataFrame":
        """
        The result of a query; ``$name`` in the text takes a keyword.

            lab.sql("SELECT fabric, median(busbw_gbyte_s) FROM results WHERE ranks = $ranks GROUP BY ALL", ranks=16)

        Raises:
            UsageError: DuckDB refuses the query.
        """
        return query(self._con, text, params or None)

    def logs(self) -> "pl.DataFrame":
        """All logs: one row a content."""
        return self.sql("SELECT * FROM logs ORDER BY path")

    def runs(self, campaign: str | None = None) -> "pl.DataFrame":
        """All runs, with what excludes them from comparisons in ``excluded_because``."""
        return self.sql(
            "SELECT * FROM runs WHERE coalesce(campaign = $c, true) ORDER BY campaign, path, ordinal", c=campaign
        )

    def results(self, campaign: str | None = None) -> "pl.DataFrame":
        """The samples that are fit to be quoted, joined with run, fabric and limit."""
        return self.sql(
            "SELECT * FROM results WHERE coalesce(campaign = $c, true) ORDER BY campaign, run_id, ordinal", c=campaign
        )

    def fabrics(self, campaign: str | None = None) -> "pl.DataFrame":
        """The fabrics of the campaign files, with their facts and counts of runs."""
        return self.sql("SELECT * FROM fabrics WHERE coalesce(campaign = $c, true)", c=campaign)

    def campaigns(self, *, runless: bool = False) -> list[str]:
        """Names of all campaigns that hold a run; *runless*: also of those whose logs hold none, NCCL lines say."""
        more = "UNION SELECT campaign FROM raw.places" if runless else ""
        return self.sql(f"SELECT campaign FROM raw.members {more} GROUP BY ALL ORDER BY ALL")["campaign"].to_list()

    def the_campaign(self, name: str | None = None, *, runless: bool = False) -> str:
        """
        *name*, checked; without a name the only campaign there is. *runless*: see :meth:`campaigns`.

        Raises:
            UsageError: There is no such campaign, or several and none was named.
        """
        known = self.campaigns(runless=runless)
        if name in known:
            return str(name)
        if name:
            raise UsageError(
                f"no campaign '{name}' in this store; it has: {', '.join(known) or 'none'}.{did_you_mean(name, known)}"
            )
        if len(known) == 1:
            return known[0]
        if not known:
            raise UsageError(f"{self.store.path}: the store holds no run yet; read logs with 'rdmalab ingest PATH...'")
        raise UsageError(f"the store has several campaigns; choose one with -p campaign=NAME: {', '.join(known)}")

    def compare(self, selection: "Selection | None" = None, **parameters: Any) -> "Comparison":
        """
        Compares the fabrics of a campaign; see :class:`rdmalab.series.Selection` for the parameters.

        Raises:
            UsageError: A parameter names something that the store does not have.
            NothingToCompare: Fewer than two fabrics have runs of the same measurand.
        """
        from rdmalab.compare import compare
        from rdmalab.series import Selection

        return compare(self, selection or Selection(**parameters))

    def audit(self, campaign: str | None = None) -> "Audit":
        """
        What the logs of a campaign show to be set up wrong; see :mod:`rdmalab.audit`.

        Raises:
            UsageError: There is no such campaign, or several and none was named.
        """
        from rdmalab.audit import audit

        return audit(self, campaign)

    def check(self, spec: str | Path, campaign: str | None = None) -> "Acceptance":
        """
        Holds the limits of a spec against the runs of a campaign; see :mod:`rdmalab.acceptance`.

        Raises:
            UsageError: The spec cannot be used, or there is no such campaign or fabric.
        """
        from rdmalab.acceptance import check, load

        return check(self, load(spec), campaign)
