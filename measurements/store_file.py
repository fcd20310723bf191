"""Where the store lies, and what predictions read of it: light enough for every one of them."""

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "measurements.sqlite3"


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the store: `TOKCAST_DATA`, else the platform's."""
    given = environ.get("TOKCAST_DATA")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("tokcast", appauthor=False)


def newest_calibrations(folder: Path | None = None) -> tuple[dict[str, Any], ...]:
    """Return stored calibrations, newest first, without making a store; () where there is none.

    A store that can't be read has none: predictions go on with the released coefficients.
    """
    path = (folder or data_folder()) / FILE
    if not path.exists():
        return ()
    # Only where there is something to read: most machines have no store.
    import sqlite3

    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            rows = db.execute("SELECT body FROM calibrations ORDER BY created DESC").fetchall()
        return tuple(json.loads(body) for (body,) in rows)
    except (sqlite3.Error, ValueError):
        return ()
