"""What a report rests on: the contents of all logs of its campaign, and the campaign file."""

import contextlib
import hashlib
from typing import Any

from rdmalab.store import Store

_LOGS = """
    SELECT DISTINCT CASE WHEN starts_with(p.path, c.root || '/') THEN substr(p.path, length(c.root) + 2)
                         ELSE p.path END AS path, l.sha256
    FROM (SELECT campaign, log_id, path FROM raw.members UNION SELECT campaign, log_id, path FROM raw.places) p
    JOIN raw.logs l USING (log_id) LEFT JOIN raw.campaigns c USING (campaign)
    WHERE coalesce(p.campaign = $campaign, true) ORDER BY path, sha256"""
_DECLARED = """
    SELECT campaign, file_sha256 AS part FROM raw.campaigns WHERE coalesce(campaign = $campaign, true)
    UNION ALL SELECT DISTINCT campaign, run_id || ' ' || coalesce(fabric, '') FROM raw.members
    WHERE coalesce(campaign = $campaign, true) ORDER BY ALL"""


def evidence(store: Store, campaign: str | None) -> dict[str, Any]:
    """
    The logs behind a report, those that it leaves out included: that they are left out is a statement, too.

    Args:
        store: The store that the report was made from.
        campaign: Name of its campaign; None: all of the store.

    Returns:
        ``campaign``; ``logs``: path (inside the campaign's folder) and sha256 of each; ``sha256``: one hash of all
        that, of the campaign files and of which run belongs to which fabric.
    """
    with contextlib.closing(store.connect()) as con:
        rows = con.execute(_LOGS, {"campaign": campaign}).fetchall()
        declared = con.execute(_DECLARED, {"campaign": campaign}).fetchall()
    logs = [{"path": path, "sha256": sha256} for path, sha256 in rows]
    digest = hashlib.sha256(repr((rows, declared)).encode())
    return {"campaign": campaign, "sha256": digest.hexdigest(), "logs": logs}
