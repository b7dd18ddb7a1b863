# SPDX-License-Identifier: Apache-2.0
"""Holds written straight into a store, because a million of them over HTTP would take longer than what is measured."""
import hashlib
import os
import sqlite3
import subprocess
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
HOLDS_PER_USER = 10  # what a policy allows by default


def _sqlite(path, given):
    store = sqlite3.connect(path, isolation_level=None)
    milliseconds = given["now_ms"].to_bytes(6, "big")
    store.create_function("hold_id", 0, lambda: milliseconds + os.urandom(10))
    store.create_function("user_of", 1, lambda number: hashlib.md5(("%s%d" % (given["seed"], number)).encode()).digest())
    store.execute("PRAGMA temp_store = MEMORY")
    store.execute("BEGIN IMMEDIATE")
    with open(os.path.join(HERE, "hold_sqlite.sql"), encoding="utf-8") as file:
        for statement in file.read().split(";\n"):
            store.execute(statement, given)
    store.execute("COMMIT")
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()


def _postgres(url, given):
    words = ["-v%s=%s" % (name, value) for name, value in given.items()]
    subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *words, "-d", url, "-f",
                    os.path.join(HERE, "hold_postgres.sql")], check=True, stdout=subprocess.DEVNULL)


def hold(store, org, count, until, event=None):
    """Active holds on so many free seats, in the event or anywhere, until that moment (seconds since 1970)."""
    given = {"count": count, "per_user": HOLDS_PER_USER, "now_ms": int(time.time() * 1000), "until_ms": int(until * 1000),
             "seed": os.urandom(8).hex()}  # users are the seed's and a number's MD5: spread as those of real tokens are
    if store.startswith("sqlite:"):
        event_id = uuid.UUID(event).bytes if event else None
        _sqlite(store[len("sqlite:"):], {**given, "org": uuid.UUID(org).bytes, "event": event_id})
    else:
        _postgres(store, {**given, "org": org, "event": event or ""})
