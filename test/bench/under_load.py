# SPDX-License-Identifier: Apache-2.0
"""What a loaded server still does: many connections, questions, streams, and a second node."""
import time

from report import SECONDS, percentile, show, show_load, size, thousands
from servers import Load, Node, Postgres, Redis, fill, sqlite
from wire import Wire, histogram, sign

EVENTS_MAX = 16


def measure_connections():
    """Reserve p99 with 5,000 connections open, at half the top rate."""
    count = size("CONNECTIONS", 5000)
    top = Load("--seconds", str(SECONDS)).end()
    show_load("256 connections, all busy", top)
    rate = max(1, int(top["holds_per_second"] / 2))
    few = Load("--seconds", str(SECONDS), "--rate", str(rate)).end()
    show_load("256 connections, %s due a second" % thousands(rate), few)
    many = Load("--seconds", str(SECONDS), "--rate", str(rate), "--connections", str(count)).end()
    show_load("%s connections, the same" % thousands(count), many)
    show("p99", "%.1f" % many["p99_ms"], "ms", "must be 50; aim 10")
    show("refused and failed", many["refused"] + many["failed"], "", "must be 0")


def _ask_while(wire, path, goes_on):
    """(when, milliseconds of that question, milliseconds of /healthz on the same connection) as long as it goes on.

    /healthz costs the server next to nothing: what it takes, any answer takes on this machine at this moment.
    """
    seen = []
    while goes_on():
        took = []
        for question in (path, "/healthz"):
            time.sleep(0.003)  # before each, so that both find the machine alike
            took.append(wire.timed_get(question))
        seen.append((time.monotonic(), *took))
    return seen


def _show_questions(name, seen):
    occupancy, health = [row[1] for row in seen], [row[2] for row in seen]
    show(name, "%.2f" % percentile(occupancy, 0.5), "ms p50, %.2f ms p99" % percentile(occupancy, 0.99),
         "/healthz beside it: %.2f, %.2f; %d questions" % (percentile(health, 0.5), percentile(health, 0.99), len(seen)))
    return percentile(occupancy, 0.5) - percentile(health, 0.5)


def _show_server_time(before, after):
    """The server's own clock; only where nothing but the questions was asked."""
    name = "holdfast_http_request_seconds"
    before, after = histogram(before, name), histogram(after, name)
    counts = {bound: after[bound] - before[bound] for bound in after}
    total = counts["+Inf"]
    for bound, count in counts.items():
        if count >= 0.99 * total:
            show("by the server's clock, 99 of 100 within", "%s" % (float(bound) * 1000), "ms", "%d answers" % total)
            return


def measure_occupancy():
    """Occupancy of an event of 100,000 seats: idle, at half the top rate and under full load."""
    seats = size("SEATS", 100000)
    store = sqlite()
    org, events = fill(store, events=min(EVENTS_MAX, 1 + SECONDS * 60000 // seats), seats=seats)
    node = Node(store)
    path = "/api/events/%s/occupancy" % events[0]
    wire, metrics = Wire(node, sign(node, org)), Wire(node)

    before, end = metrics.get("/metrics"), time.monotonic() + SECONDS / 2
    idle = _ask_while(wire, path, lambda: time.monotonic() < end)
    _show_server_time(before, metrics.get("/metrics"))
    _show_questions("idle server", idle)

    def under(name, **options):
        load = node.begin_load(org, SECONDS, **options)
        seen = _ask_while(wire, path, load.is_running)
        result = load.end()
        # The load's own preparations come first; its last seconds are those that count.
        seen = [row for row in seen if row[0] >= seen[-1][0] - result["seconds"]]
        more = _show_questions("%s holds/s" % thousands(result["holds_per_second"]), seen)
        show("more than /healthz", "%.2f" % more, "ms p50", "must be below 1: %s" % name)
        return result

    top = under("full load")
    under("half of it", rate=max(1, int(top["holds_per_second"] / 2)))


def measure_streams():
    """5,000 readers of one event's stream at 1,000 changes a second."""
    readers, rate = size("READERS", 5000), size("RATE", 1000)
    words = ["--seconds", str(SECONDS), "--rate", str(rate), "--connections", "64"]
    alone = Load(*words).end()
    show("reserve without readers, p99", "%.1f" % alone["p99_ms"], "ms")
    seen = Load(*words, "--readers", str(readers)).end()
    show("reserve with %s readers, p99" % thousands(readers), "%.1f" % seen["p99_ms"], "ms")
    show("changes", thousands(seen["changes"]), "", "%s a second were due" % thousands(rate))
    show("lag from when the reserve was due", "%.0f" % seen["lag_p50_ms"],
         "ms p50, %.0f ms p99, %.0f ms at most" % (seen["lag_p99_ms"], seen["lag_max_ms"]), "p99 must be below 1000; aim 150")
    show("changes that a reader missed", seen["missing"], "", "must be 0")
    show("streams that ended", seen["broken"], "", "must be 0")


def measure_nodes():
    """Two nodes on one PostgreSQL with Redis against one, by two generators each time."""
    postgres, redis = Postgres(), Redis()
    totals = []
    for count in (1, 2):
        name, seats = "nodes_%d" % count, size("SEATS", 100000)
        store = postgres.database(name)
        events = min(EVENTS_MAX, 1 + SECONDS * 30000 // seats)
        # Each generator has an organization of its own, so that they never want the same seat.
        orgs = [fill(store, events=events, seats=seats)[0] for _ in range(2)]
        postgres.psql(name, "CHECKPOINT")
        prefix = "bench%d" % count
        nodes = [Node(store, "--warm", redis.url, "--warm-prefix", prefix)]
        if count == 2:
            nodes.append(Node(store, "--warm", redis.url, "--warm-prefix", prefix, secret=nodes[0].secret))
        loads = [nodes[number % count].begin_load(org, SECONDS, 128) for number, org in enumerate(orgs)]
        results = [load.end() for load in loads]
        totals.append(sum(result["holds_per_second"] for result in results))
        show("%d node%s" % (count, "s" if count > 1 else ""), thousands(totals[-1]), "holds/s",
             "p99 %s ms; %d refused, %d failed" % (", ".join("%.1f" % result["p99_ms"] for result in results),
                                                   sum(result["refused"] for result in results),
                                                   sum(result["failed"] for result in results)))
        for node in nodes:
            node.stop()
        active = int(postgres.psql(name, "SELECT count(*) FROM seat_holds WHERE status = 'active'"))
        if active < sum(result["held"] for result in results):
            raise RuntimeError("fewer holds are in the store than were acknowledged: %d" % active)
    show("ratio", "%.2f" % (totals[1] / totals[0]), "two nodes to one")
