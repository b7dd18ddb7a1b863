# SPDX-License-Identifier: Apache-2.0
"""The distributed mode: nodes that share the work through a real Apache Kafka, beside one node without."""
import itertools
import os
import statistics
import subprocess
import time

from report import ROUNDS, SECONDS, show, show_load
from servers import ROOT, Node, Postgres, Redis, _running, directory, fill

CONNECTIONS = (1024, 1536)  # with more a node that has two cores gives Redis up
NODE_COUNT = 2
WARM_UP_SECONDS = 3
JAVA_SECONDS = 40  # until then it compiles what it has seen often, and a command costs the broker twice as much


class Kafka:
    """One broker, with a Java that may compile as well as it can."""
    script = os.path.join(ROOT, "scripts/kafka")

    def __init__(self):
        self.path = directory()
        environment = {**os.environ, "HOLDFAST_KAFKA_JVM": "-Xms256m -Xmx512m -XX:+UseSerialGC"}
        self.url = subprocess.run([self.script, "start", self.path, "1"], capture_output=True, text=True, check=True,
                                  env=environment).stdout.strip()
        _running.append(lambda: subprocess.run([self.script, "stop", self.path], check=False, capture_output=True))


def shared_nodes(store, redis, kafka, name, options):
    """Two nodes that have half of the partitions each."""
    nodes = []
    for number in range(NODE_COUNT):
        secret = nodes[0].secret if nodes else None
        nodes.append(Node(store, "--warm", redis.url, "--order", kafka.url, "--order-prefix", name, "--node-name",
                          "node-%d" % number, "--order-events", "off", *options, secret=secret))
    for _ in range(300):
        counts = [node.metric("holdfast_order_partitions") for node in nodes]
        if min(counts) > 0 and max(counts) - min(counts) <= 1:
            time.sleep(1)  # claimed, and memory brought up to date
            return nodes
        time.sleep(0.1)
    raise RuntimeError("the nodes do not share the partitions: %s" % counts)


def warm_is_up(nodes):
    """A node that is short of processors gives Redis up for half a minute, and is faster without it."""
    return all(node.metric("holdfast_warm_up") == 1 for node in nodes)


def load(postgres, redis, name, connections, start, warm_up=WARM_UP_SECONDS):
    """Full load on the first of the nodes that `start` makes on a database of their own and an empty Redis."""
    store = postgres.database(name)
    org, _ = fill(store, events=max(2, (SECONDS + warm_up) * 25000 // 100000 + 1))
    postgres.psql(name, "CHECKPOINT")
    redis.clear()
    nodes = start(store)
    nodes[0].holds_per_second(org, warm_up, connections)
    result = nodes[0].holds_per_second(org, SECONDS, connections)
    result["is_whole"] = warm_is_up(nodes)
    for node in nodes:
        node.stop()
    active = int(postgres.psql(name, "SELECT count(*) FROM seat_holds WHERE status = 'active'"))
    if active < result["held"]:
        raise RuntimeError("%d holds were acknowledged, %d are in the store" % (result["held"], active))
    postgres.psql("postgres", "DROP DATABASE %s" % name)
    return result


def counted(title, connections, result):
    """Its rate, shown; nothing, if not all parts took part."""
    show_load("%s, %d connections%s" % (title, connections, "" if result["is_whole"] else ", Redis given up"), result)
    return result["holds_per_second"] if result["is_whole"] else 0


def measure_order():
    """Two nodes that share the work through Kafka, and one node without; domain events go nowhere in either case."""
    postgres, redis, kafka = Postgres(), Redis(), Kafka()
    options = os.environ.get("BENCH_ORDER_OPTIONS", "").split()
    names = ("order_%d" % number for number in itertools.count())

    def alone(connections):
        return load(postgres, redis, next(names), connections, lambda store: [Node(store, "--warm", redis.url)])

    def shared(connections, **others):
        name = next(names)
        return load(postgres, redis, name, connections,
                    lambda store: shared_nodes(store, redis, kafka, name, options), **others)

    shared(CONNECTIONS[-1], warm_up=JAVA_SECONDS)
    ratios = []
    for _ in range(ROUNDS):
        one, two = 0, 0
        for connections in CONNECTIONS:
            one = max(one, counted("one node", connections, alone(connections)))
            two = max(two, counted("two nodes and Kafka", connections, shared(connections)))
        if one > 0 and two > 0:
            ratios.append(two / one)
            show("ratio", "%.2f" % ratios[-1], "of one node's rate")
    if not ratios:
        raise RuntimeError("Redis was given up in every run: the machine is too busy to compare")
    show("ratio, the middle of %d" % len(ratios), "%.2f" % statistics.median(ratios), "of one node's rate", "must be 0.7")
