# SPDX-License-Identifier: Apache-2.0
"""Counts what passed and failed, stage by stage, and prints what failed as soon as it is known."""
import collections

from tap import excerpt

LINES_SHOWN = 60  # of one program's log


class Tally:
    def __init__(self):
        self.passed = collections.Counter()  # by stage
        self.failed = collections.Counter()

    def count(self, stage, name, outcome, log=None):
        self.passed[stage] += outcome.passed
        self.failed[stage] += outcome.failed
        if outcome.failed == 0:
            return
        note = " (%s)" % outcome.note if outcome.note else ""
        self.say("FAILED %s: %d of %d%s" % (name, outcome.failed, outcome.passed + outcome.failed, note))
        if log is not None:
            for line in excerpt(read_log(log), LINES_SHOWN):
                self.say("    " + line)
            self.say("    --- all of it is in " + log)

    def close(self, stage, seconds):
        self.say("%-9s %d passed, %d failed (at %d s)" % (stage, self.passed[stage], self.failed[stage], seconds))

    @staticmethod
    def say(line):
        print(line, flush=True)

    @property
    def sum_passed(self):
        return sum(self.passed.values())

    @property
    def sum_failed(self):
        return sum(self.failed.values())


def read_log(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
