# SPDX-License-Identifier: Apache-2.0
"""How far the distributed mode goes: what one hold costs each part, measured, and from that what GOAL holds a second need.

The calculation is plain: cores = holds/s × CPU seconds a hold, at LOAD of what a machine has; what one thread, one log or one disk
does is a bound of its own. docs/scaling.md explains it, and what is assumed."""
import math
import os
import re
import subprocess
import time

from order import JAVA_SECONDS, Kafka, shared_nodes, warm_is_up
from report import SECONDS, show, thousands
from servers import Postgres, Redis, fill

GOAL = int(os.environ.get("BENCH_GOAL", "1000000"))  # holds a second
CONNECTIONS = 1024
LOAD = 0.5            # of a machine's cores, at the peak of a sale
REPLICAS = 3          # of every message
NODE_CORES = 4
BROKER_CORES = 8
STORE_CORES = 16
WAL_BYTES_MAX = 250e6  # a second, of one PostgreSQL with a good disk; assumed
LANE_SHARE_MAX = 0.6   # of a core, so that what comes in bursts does not wait long


def cpu_of(pids):
    """CPU seconds that processes have used."""
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/stat" % pid, encoding="ascii") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass  # it has ended
    return total / os.sysconf("SC_CLK_TCK")


def thread_cpu(pid, name):
    """The same of the threads of a process that have a name."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, thread), encoding="ascii") as file:
            head, rest = file.read().rsplit(")", 1)
        if head.split("(", 1)[1] == name:
            fields = rest.split()
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def pids_of(pattern):
    out = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid in out.split()]


class Meter:
    """What everything has used and done so far."""

    def __init__(self, postgres, redis, kafka, nodes):
        self.parts = {
            "node that is asked": lambda: cpu_of([nodes[0].process.pid]),
            "node that decides": lambda: cpu_of([nodes[1].process.pid]),
            "Kafka": lambda: cpu_of(pids_of(re.escape(kafka.path) + "/broker-1/server.properties")),
            "PostgreSQL": lambda: cpu_of(pids_of("postgres: .*scale") + pids_of("postgres: walwriter")),
            "Redis": lambda: cpu_of([redis.process.pid]),
            "lane": lambda: thread_cpu(nodes[0].process.pid, "lane"),
        }
        self.postgres, self.nodes = postgres, nodes

    def read(self):
        seen = {name: measure() for name, measure in self.parts.items()}
        seen["wal"] = int(self.postgres.psql("scale", "SELECT pg_current_wal_lsn() - '0/0'").split(".")[0])
        for name in ("order_taken_total", "batch_size_sum", "batch_size_count", "commit_seconds_sum", "commit_seconds_count",
                     "order_produce_seconds_sum", "order_produce_seconds_count", "order_round_seconds_sum", "order_round_seconds_count"):
            seen[name] = [node.metric("holdfast_" + name) for node in self.nodes]
        return seen


def measure_costs():
    """CPU seconds a hold of each part, and the other figures, under full load."""
    postgres, redis, kafka = Postgres(), Redis(), Kafka()
    store = postgres.database("scale")
    org, _ = fill(store, events=max(2, (SECONDS + JAVA_SECONDS + 4) * 20000 // 100000 + 1))
    postgres.psql("scale", "CHECKPOINT")
    nodes = shared_nodes(store, redis, kafka, "scale", [])
    nodes[0].holds_per_second(org, JAVA_SECONDS, CONNECTIONS)
    meter = Meter(postgres, redis, kafka, nodes)
    load = nodes[0].begin_load(org, SECONDS + 4, CONNECTIONS)
    time.sleep(4)  # it has read the seats, and is at full speed
    before = meter.read()
    time.sleep(SECONDS - 1)
    after = meter.read()
    result = load.end()
    result["is_whole"] = warm_is_up(nodes)
    return before, after, result


def measure_scale():
    """What a hold costs each part of the distributed mode, and what 1,000,000 a second would need."""
    before, after, result = measure_costs()

    def grown(name):
        return after[name] - before[name]

    def grown_sum(name, index=None):
        each = [b - a for a, b in zip(before[name], after[name])]
        return sum(each) if index is None else each[index]

    def mean(name, index=None):
        return grown_sum(name + "_sum", index) / max(1, grown_sum(name + "_count", index))

    taken = [grown_sum("order_taken_total", 0), grown_sum("order_taken_total", 1)]
    holds = sum(taken)
    decide = grown("node that decides") / max(1, taken[1])
    ask = (grown("node that is asked") - decide * taken[0]) / holds
    costs = {"asking": ask, "deciding": decide, "Kafka": grown("Kafka") / holds, "PostgreSQL": grown("PostgreSQL") / holds,
             "Redis": grown("Redis") / holds}
    lane = grown("lane") / (holds + taken[0])  # each that is asked for passes it, and each that is decided
    wal = grown("wal") / holds
    show("rate, two nodes on this machine", thousands(result["holds_per_second"]), "holds/s")
    for name, cost in costs.items():
        show("CPU of a hold: " + name, "%.0f" % (cost * 1e6), "µs")
    if not result["is_whole"]:
        show("Redis was given up by a node", "", "its figure is too low: measure again")
    show("CPU of the lane, one thread, each time", "%.1f" % (lane * 1e6), "µs")
    show("WAL of a hold", "%.0f" % wal, "bytes")
    show("batch", "%.0f" % mean("batch_size"), "commands")
    show("commit", "%.1f" % (mean("commit_seconds") * 1e3), "ms")
    show("Kafka: stored after", "%.1f" % (mean("order_produce_seconds", 0) * 1e3), "ms")
    show("asked, decided and answered after", "%.1f" % (mean("order_round_seconds", 0) * 1e3), "ms")
    show_needs(costs, lane, wal)


def show_needs(costs, lane, wal):
    """Machines for GOAL; the part that needs most of one kind is what saturates first."""
    node_rate = min(NODE_CORES * LOAD / (costs["asking"] + costs["deciding"]), LANE_SHARE_MAX / (2 * lane))
    broker_rate = BROKER_CORES * LOAD / (costs["Kafka"] * REPLICAS)
    store_rate = min(STORE_CORES * LOAD / costs["PostgreSQL"], WAL_BYTES_MAX / wal)
    redis_rate = LOAD / costs["Redis"]
    print("for %s holds/s, at %d %% of every machine:" % (thousands(GOAL), LOAD * 100))
    for name, rate, machine in (("nodes", node_rate, "%d cores" % NODE_CORES), ("brokers", broker_rate, "%d cores" % BROKER_CORES),
                                ("PostgreSQL clusters", store_rate, "%d cores, WAL %d MB/s" % (STORE_CORES, WAL_BYTES_MAX / 1e6)),
                                ("Redis servers", redis_rate, "one core")):
        show(name, thousands(math.ceil(GOAL / rate)), "of %s: %s holds/s each" % (machine, thousands(rate)))
    show("partitions", thousands(4 * math.ceil(GOAL / node_rate)), "four a node")
