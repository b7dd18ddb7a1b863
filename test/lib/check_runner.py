#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the test runner: what scripts/test must not overlook. Speaks TAP itself; part of the stage lint."""
import asyncio
import os
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
from crew import Crew, Program  # noqa: E402
from tap import Ending, Outcome, excerpt, failures, judge, judge_by_status  # noqa: E402

FINE = Ending(0)
NODE_FAILURE = """TAP version 13
    # Subtest: a suite
        not ok 1 - a claim
          ---
          duration_ms: 1.5
          failureType: 'testCodeFailure'
          error: 'three is not four'
          stack: |-
            at here
          ...
    not ok 1 - a suite
      ---
      failureType: 'subtestsFailed'
      ...
# pass 3
# fail 1
# cancelled 1
"""


def test_tests_of_a_plan_are_counted():
    assert judge("1..2\nok 1 - a\nok 2 - b\n", FINE) == Outcome(2, 0)
    assert judge("1..2\nok 1 - a\nnot ok 2 - b\n", Ending(1)) == Outcome(1, 1)
    assert judge("1..2\nok 1 - a\nnot ok 2 # SKIP b\n", Ending(0)) == Outcome(1, 0)


def test_a_program_that_ends_before_its_plan_has_failed():
    outcome = judge("1..5\nok 1 - a\n", FINE)
    assert (outcome.passed, outcome.failed) == (1, 4) and "5 tests" in outcome.note


def test_a_bad_end_after_good_tests_is_a_failure():
    assert judge("1..1\nok 1 - a\n", Ending(1)) == Outcome(1, 1, "exit status 1")
    assert judge("1..1\nok 1 - a\n", Ending(-11)) == Outcome(1, 1, "ended by signal 11")


def test_a_program_without_tests_has_failed():
    assert judge("", FINE).failed == 1
    assert judge("# pass 0\n# fail 0\n", FINE).failed == 1
    assert judge("1..0\n", FINE).failed == 1


def test_a_late_program_has_failed_whatever_it_said():
    outcome = judge("1..1\nok 1 - a\n", Ending(-15, late=True, seconds=170))
    assert outcome == Outcome(1, 1, "stopped after 170 s")


def test_the_summary_of_node_is_believed():
    assert judge(NODE_FAILURE, Ending(1)) == Outcome(3, 2)
    assert judge("ok 1 - a suite of three\n1..1\n# pass 3\n# fail 0\n# cancelled 0\n", FINE) == Outcome(3, 0)


def test_only_the_claims_that_failed_are_shown():
    shown = failures(NODE_FAILURE)
    assert shown[0] == "not ok 1 - a claim" and "error: 'three is not four'" in shown
    assert not any("a suite" in line or "at here" in line for line in shown)


def test_a_sanitizer_is_heard():
    assert "ERROR: AddressSanitizer: bad" in excerpt("not ok 1 - a\n...\nERROR: AddressSanitizer: bad\n", 10)


def test_a_program_that_is_one_test_is_judged_by_its_status():
    assert judge_by_status(FINE, "again") == Outcome(1, 0)
    assert judge_by_status(Ending(1), "again").failed == 1
    assert judge_by_status(Ending(0, late=True), "again").failed == 1


def crew_run(places, *programs):
    """Runs programs in a crew; gives their endings and what each wrote."""
    with tempfile.TemporaryDirectory() as logs:
        crew = Crew(places, logs)

        async def run():
            return await asyncio.gather(*(crew.run(program) for program in programs))

        endings = asyncio.run(run())
        texts = []
        for program in programs:
            with open(crew.log_of(program.name), encoding="utf-8") as file:
                texts.append(file.read())
        return endings, texts


def shell(name, script, **more):
    return Program(name, ("sh", "-c", script), **{"seconds_max": 60, **more})


def test_output_status_and_environment_are_kept():
    endings, texts = crew_run(1, shell("a/b", "echo $WORD; echo bad >&2; exit 3", env={"WORD": "good"}))
    assert endings[0].status == 3 and not endings[0].late
    assert texts == ["good\nbad\n"]


def test_a_program_that_is_not_there_fails_alone():
    endings, _ = crew_run(2, Program("none", ("/nonexistent/program",), 60), shell("fine", "true"))
    assert [ending.status for ending in endings] == [127, 0]


def test_the_longest_goes_first():
    with tempfile.TemporaryDirectory() as directory:
        order = os.path.join(directory, "order")
        crew_run(1, *(shell("p%d" % n, "echo %d >>'%s'" % (n, order), seconds_expected=n) for n in (1, 3, 2)))
        with open(order, encoding="utf-8") as file:
            assert file.read().split() == ["3", "2", "1"]


def test_places_are_never_exceeded():
    with tempfile.TemporaryDirectory() as directory:
        # Each counts who is there while it is there itself.
        script = "touch '%s'/$$; ls '%s' | wc -l; sleep 0.05; rm '%s'/$$" % ((directory,) * 3)
        _, texts = crew_run(3, *(shell("p%d" % n, script, places=1 + n % 2) for n in range(12)))
        assert max(int(text) for text in texts) <= 3
        _, alone = crew_run(3, *(shell("w%d" % n, script, places=2) for n in range(4)))
        assert {int(text) for text in alone} == {1}


def test_time_is_limited_for_the_whole_family():
    with tempfile.TemporaryDirectory() as directory:
        child = os.path.join(directory, "child")
        endings, _ = crew_run(1, shell("slow", "sleep 600 & echo $! >'%s'; wait" % child, seconds_max=0.5))
        assert endings[0].late
        with open(child, encoding="utf-8") as file:
            pid = int(file.read())
        until = time.monotonic() + 20
        while is_running(pid):
            assert time.monotonic() < until, "its child is still there"
            time.sleep(0.02)


def is_running(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    print("1..%d" % len(tests))
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print("ok %d - %s" % (number, name))
        except Exception:  # whatever it is, it is this test's failure
            failed += 1
            print("not ok %d - %s" % (number, name))
            print("".join("#   " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
