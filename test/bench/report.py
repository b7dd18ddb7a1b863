# SPDX-License-Identifier: Apache-2.0
"""How measurements are sized and printed."""
import os


def size(name, default):
    """A size that the environment may make smaller: BENCH_SEATS=1000 to try a measurement out."""
    return int(os.environ.get("BENCH_" + name, default))


SECONDS = size("SECONDS", 10)
ROUNDS = 3  # of measurements in turns, for a machine that is shared is not the same from one minute to the next


def show(name, value, unit="", note=""):
    print("%-44s %12s %s%s" % (name, value, unit, "  (%s)" % note if note else ""), flush=True)


def thousands(number):
    return "{:,.0f}".format(number)


def show_load(name, result):
    show(name, thousands(result["holds_per_second"]), "holds/s",
         "p50 %.1f ms, p95 %.1f ms, p99 %.1f ms" % (result["p50_ms"], result["p95_ms"], result["p99_ms"]))


def percentile(values, share):
    """The value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
