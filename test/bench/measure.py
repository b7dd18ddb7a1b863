# SPDX-License-Identifier: Apache-2.0
"""What scripts/bench measures. Each function prints what it saw, always beside something run in the same minute."""
import glob
import os
import re
import statistics
import subprocess
import threading

from at_once import measure_expiry, measure_race
from order import measure_order
from report import ROUNDS, SECONDS, show, show_load, thousands
from scale import measure_scale
from servers import ROOT, Node, Postgres, Redis, fill, run
from sizes import measure_memory, measure_start
from under_load import measure_connections, measure_nodes, measure_occupancy, measure_streams


def embedded(connections):
    """Holds a second of a server of its own, printed."""
    out = run("bench", "--seconds", str(SECONDS), "--connections", str(connections))
    print(out.rstrip(), flush=True)
    return float(re.search(r"durable holds\s+([\d.]+)", out).group(1))


def measure_holds():
    """Embedded: durable holds a second over HTTP, the better of 256 and 512 connections, and redis-benchmark SET."""
    redis, ratios = Redis(), []
    for _ in range(ROUNDS):
        sets = redis.benchmark_set()
        ratios.append(max(embedded(connections) for connections in (256, 512)) / sets)
        show("redis-benchmark SET", thousands(sets), "SETs/s", "%.2f holds for one" % ratios[-1])
    show("ratio, the middle of %d" % ROUNDS, "%.2f" % statistics.median(ratios), "durable holds for one SET",
         "must be 0.35")


def pgbench_tool():
    tools = sorted(glob.glob("/usr/lib/postgresql/*/bin/pgbench"))
    return tools[-1] if tools else "pgbench"


def one_by_one(postgres):
    """Holds a second of the transaction that takes one seat at a time: the best of 8, 16 and 32 clients."""
    best = 0
    for clients in (8, 16, 32):
        name = "one_by_one_%d" % clients
        store = postgres.database(name)
        org, (event,) = fill(store, seats=1000)
        postgres.psql(name, """
            INSERT INTO seats (organization_id, id, event_id, block_id, place, row, seat, version, status, row_letter, seat_number)
            SELECT '%s', lpad(to_hex(n), 32, '0')::uuid, '%s', gen_random_uuid(), 1000 + n, 1, n, 1, 'available', '1', n::text
            FROM generate_series(1, 300000) n""" % (org, event))
        postgres.psql(name, "VACUUM ANALYZE seats")
        postgres.psql(name, "CHECKPOINT")
        seats_per_client = 300000 // clients
        out = subprocess.run(
            [pgbench_tool(), "-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(max(3, SECONDS // 2)),
             "-D", "i=0", "-D", "seats_per_client=%d" % seats_per_client, "-D", "org=%s" % org, "-D", "event=%s" % event,
             "-f", os.path.join(ROOT, "test/bench/one_by_one.sql"), store], capture_output=True, text=True, check=True).stdout
        rate = float(re.search(r"tps = ([\d.]+)", out).group(1))
        show("one seat a transaction, %d clients" % clients, thousands(rate), "holds/s")
        best = max(best, rate)
    return best


def over_postgres(postgres, name, connections, *options):
    """A server on a database of its own, under full load."""
    store = postgres.database(name)
    org, _ = fill(store, events=max(2, SECONDS * 45000 // 100000 + 1))
    postgres.psql(name, "CHECKPOINT")
    node = Node(store, *options)
    result = node.holds_per_second(org, SECONDS, connections)
    node.stop()
    active = int(postgres.psql(name, "SELECT count(*) FROM seat_holds WHERE status = 'active'"))
    if active < result["held"]:
        raise RuntimeError("%d holds were acknowledged, %d are in the store" % (result["held"], active))
    return result


def best_over_postgres(postgres, name, title, base, *options, must=None):
    """As many who ask as do it best, as the transaction that it is compared with has, too."""
    best = 0
    for connections in (256, 512):
        result = over_postgres(postgres, "%s_%d" % (name, connections), connections, *options)
        show_load("%s, %d connections" % (title, connections), result)
        best = max(best, result["holds_per_second"])
    show("ratio", "%.1f" % (best / base), "times one seat a transaction", must)


def measure_postgres():
    """PostgreSQL with and without Redis, and pgbench with one seat a transaction."""
    postgres, redis = Postgres(), Redis()
    base = one_by_one(postgres)
    best_over_postgres(postgres, "with_redis", "PostgreSQL and Redis", base, "--warm", redis.url, must="must be 4")
    best_over_postgres(postgres, "without_redis", "PostgreSQL alone", base)


def measure_away():
    """Redis killed under load: nothing fails, and the answers stay quick."""
    postgres, redis = Postgres(), Redis()
    store = postgres.database("away")
    org, _ = fill(store, events=4)
    node = Node(store, "--warm", redis.url)
    threading.Timer(SECONDS / 3, redis.kill).start()
    result = node.holds_per_second(org, SECONDS, 64)
    show_load("Redis killed after a third of the time", result)
    show("p95", "%.1f" % result["p95_ms"], "ms", "must be below 200")
    show("failed requests", result["failed"], "", "must be 0")


MEASUREMENTS = {
    "holds": measure_holds,
    "postgres": measure_postgres,
    "away": measure_away,
    "connections": measure_connections,
    "race": measure_race,
    "expiry": measure_expiry,
    "occupancy": measure_occupancy,
    "streams": measure_streams,
    "memory": measure_memory,
    "start": measure_start,
    "nodes": measure_nodes,
    "order": measure_order,
    "scale": measure_scale,
}
