# SPDX-License-Identifier: Apache-2.0
"""Runs programs side by side within a number of places, the longest first.

 1. A program starts when it fits into the free places and nothing longer is waiting for them.
 2. Each has a session of its own, so that what it leaves behind ends with it: the whole process group is stopped when the
    program has ended, when its time is up, and when the run is broken off.
 3. Everything it writes goes to its log.
 4. A time limit is there to end a hang. It is meant for a machine that is ours; where others work too, it is longer.
"""
import asyncio
import contextlib
import dataclasses
import itertools
import os
import signal
import time

from tap import Ending

KILL_AFTER_SECONDS = 10  # between asking a program to end and making it
PATIENCE_MAX = 4         # times the limit
LOAD_OURS = 2            # waiting or running for each core: what the tests alone come to


@dataclasses.dataclass(frozen=True)
class Program:
    name: str                    # also its log: stage/name
    command: tuple
    seconds_max: float
    seconds_expected: float = 1  # only for the order
    places: int = 1
    env: dict = dataclasses.field(default_factory=dict)


class Crew:
    def __init__(self, places, logs):
        self.places = places
        self.logs = logs
        self.times = {}          # name -> seconds
        self._free = places
        self._waiting = []       # (-seconds_expected, number, places, future)
        self._numbers = itertools.count()

    def log_of(self, name):
        return os.path.join(self.logs, name + ".log")

    async def run(self, program):
        """Waits for places, runs the program to its end, gives an Ending."""
        places = min(program.places, self.places)
        await self._acquire(places, program.seconds_expected)
        try:
            return await self._run_now(program)
        finally:
            self._free += places
            self._admit()

    async def _acquire(self, places, seconds_expected):
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((-seconds_expected, next(self._numbers), places, turn))
        self._waiting.sort(key=lambda entry: entry[:2])
        # Whoever else asks in this turn of the loop is heard before places are given.
        asyncio.get_running_loop().call_soon(self._admit)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free += places
            self._waiting = [entry for entry in self._waiting if entry[3] is not turn]
            raise

    def _admit(self):
        while self._waiting and self._waiting[0][2] <= self._free:
            _, _, places, turn = self._waiting.pop(0)
            if not turn.done():
                self._free -= places
                turn.set_result(None)

    async def _run_now(self, program):
        path = self.log_of(program.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        begun = time.monotonic()
        with open(path, "wb") as log:
            try:
                process = await asyncio.create_subprocess_exec(
                    *program.command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=asyncio.subprocess.STDOUT,
                    env={**os.environ, **program.env}, start_new_session=True)
            except OSError as error:
                log.write(("%s: %s\n" % (program.command[0], error.strerror)).encode())
                return Ending(127)
            try:
                late = not await _ends_within(process, program.seconds_max, begun)
                if late:
                    await self._end(process)
            except asyncio.CancelledError:
                await self._end(process)
                raise
            finally:
                _signal_group(process.pid, signal.SIGKILL)
        seconds = time.monotonic() - begun
        self.times[program.name] = seconds
        return Ending(process.returncode, late, seconds)

    @staticmethod
    async def _end(process):
        _signal_group(process.pid, signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), KILL_AFTER_SECONDS)
        except asyncio.TimeoutError:
            _signal_group(process.pid, signal.SIGKILL)
            await process.wait()


def _patience():
    load_per_core = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return min(max(load_per_core / LOAD_OURS, 1), PATIENCE_MAX)


async def _ends_within(process, seconds_max, begun):
    """Waits for the end; False if the limit, as long as it is by then, has passed."""
    while True:
        left = begun + seconds_max * _patience() - time.monotonic()
        if left <= 0:
            return False
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), left)
            return True


def _signal_group(pid, number):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
