# SPDX-License-Identifier: Apache-2.0
"""What a large house costs: bytes in memory, and seconds to start."""
import sqlite3
import subprocess
import time

from prefill import HOLDS_PER_USER, hold
from report import show, size, thousands
from servers import Node, Postgres, Redis, fill, run, sqlite

EVENT_SEATS_MAX = 100000
HOLD_SECONDS = 3600
SETTLE_SECONDS = 2
LOADED_TABLES = ("users", "seats", "seat_holds")


def _fill(store, seats):
    per_event = min(seats, EVENT_SEATS_MAX)
    return fill(store, events=-(-seats // per_event), seats=per_event)[0]


def _memory(store):
    """Of a server that was started on that store and left alone for a moment."""
    node = Node(store)
    time.sleep(SETTLE_SECONDS)
    memory = node.memory()
    node.stop()
    return memory


def _show_memory(name, store, seats, must):
    empty = _memory(store)
    org = _fill(store, seats)
    with_seats = _memory(store)
    hold(store, org, seats, time.time() + HOLD_SECONDS)
    with_holds = _memory(store)
    show("%s: empty server" % name, "%.1f" % (empty / 2**20), "MiB")
    show("a seat, of %s" % thousands(seats), "%.0f" % ((with_seats - empty) / seats), "bytes", must and "must be 64, aim 32")
    show("an active hold, of %s" % thousands(seats), "%.0f" % ((with_holds - with_seats) / seats), "bytes",
         must and "must be 256, aim 128; its share of a user with %d holds included" % HOLDS_PER_USER)


def measure_memory():
    """Bytes a seat and an active hold above an empty server."""
    seats = size("SEATS", 1000000)
    _show_memory("PostgreSQL", Postgres().database("memory"), seats, must=True)
    # SQLite's page cache is in the process too. It is bounded, so it is not a seat's; but it cannot be told apart here.
    _show_memory("SQLite, with its page cache", sqlite(), seats, must=False)


def _read_all(store):
    """Seconds in which the database hands out the same rows to somebody who throws them away."""
    begun = time.monotonic()
    for table in LOADED_TABLES:
        if store.startswith("sqlite:"):
            with sqlite3.connect(store[len("sqlite:"):]) as database:
                for _ in database.execute("SELECT * FROM " + table):
                    pass
        else:
            subprocess.run(["psql", "-X", "-q", "-d", store, "-c", "COPY %s TO STDOUT" % table], check=True,
                           stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def _show_start(name, store, *options):
    node = Node(store, *options)
    show(name, "%.2f" % node.start_seconds, "s to the ready line", "must be below 5, aim 2")
    node.stop()


def measure_start():
    """Start with 1,000,000 seats and as many active holds, on SQLite and on PostgreSQL."""
    seats = size("SEATS", 1000000)
    postgres, redis = Postgres(), Redis()
    for name, store in (("SQLite", sqlite()), ("PostgreSQL", postgres.database("start"))):
        empty = Node(store)
        empty.stop()
        show("%s, empty" % name, "%.2f" % empty.start_seconds, "s")
        org = _fill(store, seats)
        hold(store, org, seats, time.time() + HOLD_SECONDS)
        show("only reading the rows of %s seats" % thousands(seats), "%.2f" % _read_all(store), "s")
        _show_start("%s, %s seats, all held" % (name, thousands(seats)), store)
        if name == "PostgreSQL":
            _show_start("the same with Redis", store, "--warm", redis.url)
        run("verify", "--store", store)
