# SPDX-License-Identifier: Apache-2.0
"""Reads what a test program wrote: TAP, or TAP with the summary that Node's runner adds. Pure: text in, counts out.

A program is never believed further than its output goes: one that ends early, late, badly or without a test has failed.
"""
import dataclasses
import re

TROUBLE = re.compile(r"Sanitizer|runtime error|CHECK\(")
_DETAIL_NOISE = re.compile(r" *(duration_ms|type|stack|code|name|location):| +(.*node:internal|at |async |\[?new Promise)")
_SKIPPED = re.compile(r"^not ok \d+ # SKIP", re.MULTILINE)  # as cmocka says it
_SHADOW_BYTES = re.compile(r"^Shadow bytes around.*?^==.*?ABORTING\n?", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Ending:
    """How a program ended. `status` is negative for a signal, as subprocess has it; `late`: it was stopped at its limit."""
    status: int
    late: bool = False
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Outcome:
    passed: int
    failed: int
    note: str = ""


def _last_number(pattern, text):
    found = re.findall(pattern, text, re.MULTILINE)
    return int(found[-1]) if found else None


def _how(status):
    return "ended by signal %d" % -status if status < 0 else "exit status %d" % status


def judge(text, ending):
    """The outcome of a program that speaks TAP. Node's own summary is believed where there is one, because its suites
    are nested; a plan is held against the rest."""
    planned = None
    passed = _last_number(r"^# pass (\d+)$", text)
    if passed is not None:
        failed = (_last_number(r"^# fail (\d+)$", text) or 0) + (_last_number(r"^# cancelled (\d+)$", text) or 0)
    else:
        passed = len(re.findall(r"^ok ", text, re.MULTILINE))
        skipped = len(_SKIPPED.findall(text))
        failed = len(re.findall(r"^not ok ", text, re.MULTILINE)) - skipped
        planned = _last_number(r"^1\.\.(\d+)$", text)
        planned = planned - skipped if planned is not None else None

    if ending.late:
        return Outcome(passed, failed + 1, "stopped after %d s" % ending.seconds)
    if ending.status != 0 and failed == 0:
        return Outcome(passed, 1, _how(ending.status))
    if passed + failed == 0:
        return Outcome(0, 1, "it ran no tests")
    if planned is not None and passed + failed < planned:
        return Outcome(passed, planned - passed, "it ended before all of its %d tests" % planned)
    return Outcome(passed, failed)


def judge_by_status(ending, note):
    """The outcome of a program that is one test by itself; `note` says what to do about a failure."""
    if ending.late:
        return Outcome(0, 1, "stopped after %d s; %s" % (ending.seconds, note))
    return Outcome(1, 0) if ending.status == 0 else Outcome(0, 1, "%s; %s" % (_how(ending.status), note))


def failures(text):
    """The tests that failed, with what their runner says about each, as lines. Suites that failed because of their
    tests are left out."""
    shown, block = [], []
    for line in text.splitlines():
        if re.match(r" *not ok ", line) and not _SKIPPED.match(line):
            shown += block
            block = [line]
        elif not block:
            continue
        elif re.search(r"failureType: .subtestsFailed", line):
            block = []
        elif re.match(r" *(\.\.\.|ok )", line):
            shown += block
            block = []
        elif not _DETAIL_NOISE.match(line):
            block.append(line)
    return [line.strip() for line in shown + block]


def excerpt(text, lines_max):
    """What to show of a failed program's output: its failures, and the end of it where those say nothing or a
    sanitizer had something to say."""
    lines = failures(text)
    shown = lines[:lines_max]
    if not lines or TROUBLE.search(text):
        shown += ["--- the end of its output"] + _SHADOW_BYTES.sub("", text).splitlines()[-lines_max:]
    return shown
