# SPDX-License-Identifier: Apache-2.0
"""Many things at the same moment: users after one seat, and holds that end together."""
import collections
import json
import math
import sqlite3
import time

from prefill import hold
from report import show, size, thousands
from servers import Node, Postgres, Redis, fill, run, sqlite
from wire import Wire, sign

GRACE_SECONDS = 2
WATCH_SECONDS_MAX = 60


def _active_rows(store, postgres):
    if postgres:
        return int(postgres.psql(store.rsplit("/", 1)[1], "SELECT count(*) FROM seat_holds WHERE status = 'active'"))
    with sqlite3.connect(store[len("sqlite:"):]) as database:
        return database.execute("SELECT count(*) FROM seat_holds WHERE status = 'active'").fetchone()[0]


def _race(name, store, nodes, org, event, postgres=None):
    users = size("USERS", 1000)
    wires = [Wire(nodes[number % len(nodes)], sign(nodes[0], org)) for number in range(users)]
    seats = json.loads(wires[0].get("/api/events/%s/seats" % event))["data"]
    path = "/api/events/%s/seats/%s/reserve" % (event, seats[len(seats) // 2]["seat_id"])
    begun = time.monotonic()
    for wire in wires:
        wire.send("POST", path)
    statuses = collections.Counter(wire.receive()[0] for wire in wires)
    taken = time.monotonic() - begun
    for wire in wires:
        wire.close()
    for node in nodes:
        node.stop()
    show(name, "%.0f" % (taken * 1000), "ms for %s answers" % thousands(users),
         ", ".join("%d × %d" % (count, status) for status, count in sorted(statuses.items())))
    show("active rows", _active_rows(store, postgres), "", "must be 1, with 1 × 201 and %d × 409" % (users - 1))
    run("verify", "--store", store)


def measure_race():
    """1,000 users after one seat: embedded, and over two nodes on PostgreSQL with Redis."""
    store = sqlite()
    org, (event,) = fill(store, seats=100)
    _race("SQLite", store, [Node(store)], org, event)
    postgres, redis = Postgres(), Redis()
    store = postgres.database("race")
    org, (event,) = fill(store, seats=100)
    first = Node(store, "--warm", redis.url)
    second = Node(store, "--warm", redis.url, secret=first.secret)
    _race("PostgreSQL and Redis, two nodes", store, [first, second], org, event, postgres)


def _watch(wire, event, due):
    """Seconds after that moment at which the first seat was seen free, and all of them."""
    first = None
    while time.time() < due + WATCH_SECONDS_MAX:
        seen = json.loads(wire.get("/api/events/%s/occupancy" % event))["data"]
        if first is None and seen["available"] > 0:
            first = time.time() - due
        if seen["held"] == 0:
            return first, time.time() - due
        time.sleep(0.01)
    raise RuntimeError("%d seats are still held %d s after the grace" % (seen["held"], WATCH_SECONDS_MAX))


def _expire(name, store, *options):
    seats, rate = size("SEATS", 100000), size("RATE", 5000)
    org, events = fill(store, events=2, seats=seats, policy={"release_grace_seconds": GRACE_SECONDS})
    # Time to write the holds, to start, to see how quick reserves are without all this, and to begin with them again.
    ends = math.ceil(time.time() + 15 + seats / 5000)
    hold(store, org, seats, ends, event=events[0])
    node = Node(store, *options)
    quiet = node.holds_per_second(org, 3, 64, rate=rate)
    due = ends + GRACE_SECONDS
    if time.time() > due - 3:
        raise RuntimeError("the machine is too busy: the holds end before their measurement can begin")
    wire = Wire(node, sign(node, org))
    time.sleep(due - 3 - time.time())
    load = node.begin_load(org, 8, 64, rate=rate)
    first, last = _watch(wire, events[0], due)
    busy = load.end()
    node.stop()
    show("%s: %s holds, all free" % (name, thousands(seats)), "%.2f" % last, "s after the grace",
         "must be 3, aim 1; the first after %.2f s" % first)
    show("reserves meanwhile, %s due a second, p99" % thousands(rate), "%.1f" % busy["p99_ms"], "ms",
         "%.1f ms before; %d refused, %d failed" % (quiet["p99_ms"], busy["refused"], busy["failed"]))
    run("verify", "--store", store)


def measure_expiry():
    """100,000 holds due in the same second, with reserves going on."""
    _expire("SQLite", sqlite())
    postgres, redis = Postgres(), Redis()
    _expire("PostgreSQL and Redis", postgres.database("expiry"), "--warm", redis.url)
