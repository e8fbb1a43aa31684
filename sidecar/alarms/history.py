"""What has happened: the transitions in the file, read over a connection of its own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sidecar.alarms import places, schema, tables
from sidecar.alarms.standing import Transition
from sidecar.alarms.states import from_sqlite


def latest(path: Path, limit: int = 100) -> tuple[Transition, ...]:
    """The latest transitions, the newest first; none where there is no file. It may wait for the
    disk, so it is not for the thread that judges. Raises Unusable.
    """
    if not path.exists():
        return ()
    places.examine(path)
    try:
        with closing(schema.connect(path)) as connection:
            if schema.recognise(connection, path) == 0:
                return ()
            return tables.history(connection, limit)
    except sqlite3.Error as error:
        raise from_sqlite(error, path) from error
