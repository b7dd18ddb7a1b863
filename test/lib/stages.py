# SPDX-License-Identifier: Apache-2.0
"""What each stage of scripts/test runs. A stage is a coroutine: it waits for the builds it needs, hands its programs to
the crew and counts how they ended. All stages are under way at the same time; the crew's places are what limits them.

Tests are found, not listed: C tests through Meson, Node's by their names. What is listed here is only which of them make
up a smaller stage (postgres, tsan), and how long the long ones take, so that they start first.
"""
import asyncio
import glob
import json
import os
import random
import re
import shutil
import subprocess
import tempfile

from crew import Program
from tap import Outcome, judge, judge_by_status
from tally import read_log

SECONDS_MAX = 170            # for one test program or file
TSAN_SECONDS_MAX = 340       # ThreadSanitizer costs more
BUILD_SECONDS_MAX = 1800
BUILD_PLACES = 2             # a compiler for each core

SIM_SEEDS = [1, 2, 3, 4, 5, 6]  # one to three nodes, each with and without Redis
SIM_RANDOM_COUNT = 2
SIM_STEPS = os.environ.get("SIM_STEPS", "20000")  # of a new seed
SIM_STEPS_AGAIN = "10000"                         # of one that has passed before, which only a change can break

POSTGRES_LEFT_OUT = re.compile(r"store:(sqlite|sim|postgres)_")  # of one store alone
POSTGRES_FILES = ["admin", "checkout", "expiry", "idempotency", "race", "reserve", "stream", "walk"]
POSTGRES_SETTINGS = ["max_connections=400"]

# What runs on a real Kafka: C tests by name, API files by name.
KAFKA_TESTS = re.compile(r"order/kafka|publish/kafka")
KAFKA_FILES = ["checkout", "expiry", "idempotency", "race", "reserve", "walk"]
KAFKA_SECONDS_MAX = 400
KAFKA_SKIPPED = 3            # exit status of scripts/kafka

# What runs under ThreadSanitizer: C tests by name, API files by name. None that starts librdkafka: it makes its threads
# with C11's thrd_create(), which gcc 12's ThreadSanitizer does not know and crashes on.
TSAN_TESTS = re.compile(r"base/(queue|log|metrics)|hot/seatmap|publish/(?!kafka)|store/|http/|pay/|order/(?!kafka)|lane/|store:")
TSAN_FILES = ["test/api/*race*.test.mjs", "test/api/*stream*.test.mjs", "test/api/*walk*.test.mjs"]

# Seconds, about. Only the order follows from them: a wrong one costs time, never a failure.
LONG = {
    "fault/postgres": 70, "web/buyer": 65, "fault/slow": 60, "web/time": 55, "fault/webhook": 47, "web/quality": 45,
    "fault/nodes_killed": 42, "fault/redis_registry": 36, "postgres/expiry": 35, "web/office": 34, "api/expiry": 33,
    "fault/postgres_way": 31, "fault/nodes_frozen": 28, "ops/alerts": 27, "web/follow": 27, "fault/outage": 25,
    "fault/redis_errors": 23, "fault/nodes_takeover": 21, "fault/redis": 21, "fault/redis_address": 19,
    "fault/nodes_postgres": 19, "fault/kill": 18, "api/stream": 17, "fault/store": 15, "postgres/walk": 13, "api/cli": 13,
    "unit/order-kafka": 40, "unit/http-timeouts": 13, "ops/backup": 12, "postgres/admin": 12, "tsan/stream": 150, "tsan/walk": 30,
}
NODE_SECONDS = 10
SIM_SECONDS = 6
BUILD_SECONDS = 1000         # before everything: the rest waits for it

SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:die_after_fork=0",
    "CMOCKA_MESSAGE_OUTPUT": "TAP",
}


def new_seeds():
    """Others every time for whoever tries it; a gate says the same of the same commit, so there they follow from it."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    source = random.Random(commit) if os.environ.get("CI") and commit else random.SystemRandom()
    return [source.getrandbits(32) for _ in range(SIM_RANDOM_COUNT)]


class Stages:
    """One run of some stages. Made anew for each run; the working directory is the project's."""

    def __init__(self, crew, tally):
        self.crew = crew
        self.tally = tally
        self._builds = {}        # (kind, targets) -> task
        self._build_locks = {}   # kind -> lock: one ninja in a folder

    # ---- running and counting

    async def run(self, stage, program):
        ending = await self.crew.run(program)
        log = self.crew.log_of(program.name)
        self.tally.count(stage, program.name, judge(read_log(log), ending), log)

    async def run_all(self, stage, programs):
        if not programs:
            self.fail(stage, "no tests were found")
        await asyncio.gather(*(self.run(stage, program) for program in programs))

    def fail(self, stage, why, log=None):
        self.tally.count(stage, stage, Outcome(0, 1, why), log)

    # ---- building

    async def built(self, stage, kind, *targets):
        """Builds; a failure is shown once, and is one for each stage that needed it."""
        key = (kind, targets)
        if key not in self._builds:
            self._builds[key] = asyncio.ensure_future(self._build(kind, targets, len(self._builds)))
        if await self._builds[key]:
            return True
        self.fail(stage, "nothing was run: build/%s does not build" % kind)
        return False

    async def _build(self, kind, targets, number):
        async with self._build_locks.setdefault(kind, asyncio.Lock()):
            program = Program("build-%s-%d" % (kind, number), ("scripts/build", kind, *targets), BUILD_SECONDS_MAX,
                              seconds_expected=BUILD_SECONDS - number, places=BUILD_PLACES)
            ending = await self.crew.run(program)
        log = self.crew.log_of(program.name)
        if ending.status != 0:
            self.tally.say("build/%s does not build:\n%s" % (kind, read_log(log)))
        elif os.path.getsize(log) > 0:
            self.tally.say(read_log(log).rstrip("\n"))
        return ending.status == 0

    async def binary_built(self, stage):
        """The server comes first: what needs it alone starts while the tests are compiled."""
        return await self.built(stage, "asan", "holdfast", "test/sim/sim", "test/kafka-mock", "test/kafka-tool")

    async def programs_built(self, stage):
        return await self.binary_built(stage) and await self.built(stage, "asan", "all", "meson-test-prereq")

    # ---- finding

    @staticmethod
    async def c_tests(kind):
        """(name, program) of each C test; those of the store suite are named store:NAME."""
        process = await asyncio.create_subprocess_exec("meson", "introspect", "--tests", "build/" + kind,
                                                       stdout=subprocess.PIPE)
        found = []
        for test in json.loads((await process.communicate())[0] or "[]"):
            suite = test["suite"][0].split(":")[-1]
            found.append((("" if suite == "unit" else suite + ":") + test["name"], test["cmd"][0]))
        return found

    @staticmethod
    def c_program(stage, name, program, env=None, prefix=(), seconds_max=SECONDS_MAX):
        full = stage + "/" + name.removeprefix(stage + ":").replace("/", "-")
        return Program(full, (*prefix, program), seconds_max, LONG.get(full, 1), env=env or {})

    @staticmethod
    def node_program(stage, path, binary="build/asan/holdfast", env=None, prefix=(), seconds_max=SECONDS_MAX, suffix=""):
        name = stage + "/" + os.path.basename(path).removesuffix(".test.mjs") + suffix
        return Program(name, (*prefix, "node", *node_reporter(), path), seconds_max, LONG.get(name, NODE_SECONDS),
                       env={**(env or {}), "HOLDFAST_BIN": binary})

    async def node_stage(self, stage):
        if await self.binary_built(stage):
            files = sorted(glob.glob("test/%s/*.test.mjs" % stage))
            await self.run_all(stage, [self.node_program(stage, path) for path in files])

    # ---- the stages

    async def lint(self):
        await self.run_all("lint", [
            Program("lint/lint", ("scripts/lint",), SECONDS_MAX, seconds_expected=BUILD_SECONDS),
            Program("lint/runner", ("test/lib/check_runner.py",), SECONDS_MAX),
        ])

    async def unit(self):
        if await self.programs_built("unit"):
            await self.run_all("unit", [self.c_program("unit", name, program)
                                        for name, program in await self.c_tests("asan") if ":" not in name])

    async def store(self):
        if await self.programs_built("store"):
            await self.run_all("store", [self.c_program("store", name, program)
                                         for name, program in await self.c_tests("asan") if name.startswith("store:")])

    async def sim(self):
        seeds = SIM_SEEDS + new_seeds()
        self.tally.say("sim       seeds " + " ".join(map(str, seeds)))
        if await self.binary_built("sim"):
            await asyncio.gather(*(self._sim(seed, SIM_STEPS_AGAIN if seed in SIM_SEEDS else SIM_STEPS)
                                   for seed in seeds))

    async def _sim(self, seed, steps):
        program = Program("sim/%d" % seed, ("build/asan/test/sim/sim", "--seed", str(seed), "--steps", steps),
                          SECONDS_MAX, SIM_SECONDS)
        outcome = judge_by_status(await self.crew.run(program),
                                  "replay it with: make sim SEED=%d STEPS=%s BUILD=asan" % (seed, steps))
        self.tally.count("sim", program.name, outcome, self.crew.log_of(program.name))

    async def api(self):
        await self.node_stage("api")

    async def fault(self):
        await self.node_stage("fault")

    async def ops(self):
        await self.node_stage("ops")

    async def web(self):
        # A web app that does not build has failed the build already; only packages that cannot be had leave it out.
        if await self.binary_built("web") and not os.path.exists("web/dist/index.html"):
            self.tally.say("web       SKIPPED: THE WEB APP WAS LEFT OUT OF THIS BUILD, NOTHING OF IT WAS TESTED "
                           "(see build/web.log)")
        else:
            await self.node_stage("web")

    async def postgres(self):
        """Over a PostgreSQL of our own; every server of the API's tests gets a database of its own there."""
        if not await self.binary_built("postgres"):
            return
        directory = tempfile.mkdtemp(prefix="holdfast-postgres-", dir="/tmp")  # where the user postgres can reach it
        log = self.crew.log_of("postgres")
        try:
            url = await output_of("test/lib/postgres.sh", "start", directory, *POSTGRES_SETTINGS, log=log)
            if url is None:
                self.fail("postgres", "PostgreSQL does not start", log)
                return
            await asyncio.gather(self._postgres_suites(url), self._postgres_files(url))
        finally:
            await output_of("test/lib/postgres.sh", "stop", directory, "immediate", log=log)
            shutil.rmtree(directory, ignore_errors=True)

    async def _postgres_suites(self, url):
        if not await self.programs_built("postgres"):
            return
        tests = dict(await self.c_tests("asan"))
        programs = []
        for suite in [name.split(":")[1] for name in tests
                      if name.startswith("store:") and not POSTGRES_LEFT_OUT.match(name)]:
            if await output_of("psql", "-X", "-q", "-d", url + "/postgres", "-c", "CREATE DATABASE " + suite,
                               log=self.crew.log_of("postgres")) is None:
                self.fail("postgres", "no database could be made", self.crew.log_of("postgres"))
            programs.append(self.c_program("postgres", "store:" + suite, tests["store:" + suite],
                                           {"HOLDFAST_TEST_STORE": "%s/%s" % (url, suite)}))
        await self.run_all("postgres", programs)

    async def _postgres_files(self, url):
        await self.run_all("postgres", [self.node_program("postgres", "test/api/%s.test.mjs" % name,
                                                          env={"HOLDFAST_TEST_STORE_URL": url})
                                        for name in POSTGRES_FILES])

    async def kafka(self):
        """On a real Apache Kafka: the tests that use the mock elsewhere, and the main part of the API's with a broker."""
        if not await self.programs_built("kafka"):
            return
        os.makedirs("build/kafka", exist_ok=True)
        kafka = tempfile.mkdtemp(prefix="cluster-", dir="build/kafka")
        postgres = tempfile.mkdtemp(prefix="holdfast-postgres-", dir="/tmp")
        log = self.crew.log_of("kafka")
        try:
            status, url = await status_of("scripts/kafka", "start", kafka, "1", log=log)
            if status == KAFKA_SKIPPED:
                self.tally.say("kafka     SKIPPED: NO REAL KAFKA WAS TO BE HAD, NOTHING WAS TESTED ON ONE\n" + read_log(log))
                return
            store = await output_of("test/lib/postgres.sh", "start", postgres, *POSTGRES_SETTINGS, log=log)
            if status != 0 or store is None:
                self.fail("kafka", "Kafka or PostgreSQL does not start", log)
                return
            await self._kafka_programs(url, store)
        finally:
            await output_of("scripts/kafka", "stop", kafka, log=log)
            await output_of("test/lib/postgres.sh", "stop", postgres, "immediate", log=log)
            shutil.rmtree(kafka, ignore_errors=True)
            shutil.rmtree(postgres, ignore_errors=True)
        # Each with brokers of its own; three of them and three nodes are enough for two cores.
        for brokers in ("1", "3"):
            for path in sorted(glob.glob("test/fault/order*.test.mjs")):
                await self.run("kafka", self.node_program("kafka", path, env={"HOLDFAST_TEST_KAFKA": brokers},
                                                          seconds_max=KAFKA_SECONDS_MAX, suffix="-" + brokers))

    async def _kafka_programs(self, url, store):
        tests = [(name, program) for name, program in await self.c_tests("asan") if KAFKA_TESTS.match(name)]
        await self.run_all("kafka", [self.c_program("kafka", name, program, {"HOLDFAST_TEST_KAFKA": url})
                                     for name, program in tests])
        await self.run_all("kafka", [self.node_program("kafka", "test/api/%s.test.mjs" % name, seconds_max=KAFKA_SECONDS_MAX,
                                                       env={"HOLDFAST_TEST_STORE_URL": store, "HOLDFAST_TEST_ORDER_URL": url})
                                     for name in KAFKA_FILES])

    async def tsan(self):
        if not await self.built("tsan", "tsan", "build.ninja"):  # so that Meson can be asked
            return
        tests = [(name, program) for name, program in await self.c_tests("tsan") if TSAN_TESTS.match(name)]
        targets = [os.path.relpath(program, "build/tsan") for _, program in tests]
        if not await self.built("tsan", "tsan", "holdfast", *targets):
            return
        prefix = await tsan_prefix()
        files = sorted({path for pattern in TSAN_FILES for path in glob.glob(pattern)})
        await asyncio.gather(
            self.run_all("tsan", [self.c_program("tsan", name, program, prefix=prefix, seconds_max=TSAN_SECONDS_MAX)
                                  for name, program in tests]),
            self.run_all("tsan", [self.node_program("tsan", path, "build/tsan/holdfast", prefix=prefix,
                                                    seconds_max=TSAN_SECONDS_MAX) for path in files]))


async def output_of(*command, log):
    """What a command prints, stripped; None if it fails. Its complaints are added to `log`."""
    status, out = await status_of(*command, log=log)
    return out if status == 0 else None


async def status_of(*command, log):
    """Its exit status, and what it prints."""
    with open(log, "ab") as complaints:
        process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                                       stderr=complaints)
        out, _ = await process.communicate()
    return process.returncode, out.decode().strip()


async def tsan_prefix():
    """Kernels that randomize addresses more than gcc 12's ThreadSanitizer expects are asked not to."""
    process = await asyncio.create_subprocess_exec("build/tsan/holdfast", "--help", stdout=subprocess.PIPE,
                                                   stderr=subprocess.STDOUT)
    out, _ = await process.communicate()
    return ("setarch", "-R") if b"unexpected memory mapping" in out else ()


_reporter = None


def node_reporter():
    """Node speaks TAP by itself up to 18.14, and when asked to since."""
    global _reporter
    if _reporter is None:
        try:
            words = subprocess.run(["node", "--help"], capture_output=True, text=True, check=False).stdout
        except OSError:
            words = ""
        _reporter = ("--test-reporter=tap",) if "--test-reporter" in words else ()
    return _reporter
