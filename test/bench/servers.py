# SPDX-License-Identifier: Apache-2.0
"""Servers for measurements: each with a directory and a port of its own on 127.0.0.1, and all of them stopped at the end."""
import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BINARY = os.environ.get("HOLDFAST_BIN", os.path.join(ROOT, "build/holdfast"))
_running = []
_directories = []


def directory():
    """Not on a tmpfs unless TMPDIR says so: there a sync costs nothing, and nothing would be durable."""
    path = tempfile.mkdtemp(prefix="holdfast-bench-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    os.chmod(path, 0o755)
    _directories.append(path)
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@atexit.register
def stop_all():
    for stop in reversed(_running):
        stop()
    _running.clear()
    for path in _directories:
        shutil.rmtree(path, ignore_errors=True)


def _end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Redis:
    def __init__(self):
        self.port = free_port()
        self.url = "redis://127.0.0.1:%d" % self.port
        self.launch()
        _running.append(lambda: _end(self.process))

    def launch(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
             "--dir", directory()], stdout=subprocess.DEVNULL)
        for _ in range(200):
            if subprocess.run(["redis-cli", "-p", str(self.port), "ping"], capture_output=True, check=False).stdout:
                return
            time.sleep(0.05)
        raise RuntimeError("redis-server does not answer")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def clear(self):
        subprocess.run(["redis-cli", "-p", str(self.port), "flushall"], capture_output=True, check=True)

    def benchmark_set(self):
        """SETs a second: 50 clients, no pipelining, no persistence."""
        out = subprocess.run(["redis-benchmark", "-p", str(self.port), "-t", "set", "-n", "200000", "-c", "50", "-q"],
                             capture_output=True, text=True, check=True).stdout
        return float(re.findall(r"([\d.]+) requests per second", out)[-1])


class Postgres:
    """Default durability."""
    script = os.path.join(ROOT, "test/lib/postgres.sh")

    def __init__(self):
        self.path = directory()
        self.url = subprocess.run([self.script, "start", self.path, "max_connections=200"], capture_output=True,
                                  text=True, check=True).stdout.strip()
        _running.append(lambda: subprocess.run([self.script, "stop", self.path, "immediate"], check=False,
                                               capture_output=True))

    def database(self, name):
        self.psql("postgres", "CREATE DATABASE %s" % name)
        return "%s/%s" % (self.url, name)

    def psql(self, database, sql):
        return subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d",
                               "%s/%s" % (self.url, database), "-c", sql],
                              capture_output=True, text=True, check=True).stdout.strip()


def run(*words, **options):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, check=True, **options).stdout


class Load:
    """A `holdfast bench` on its way. Without a URL it has a server of its own."""

    def __init__(self, *words):
        self.process = subprocess.Popen([BINARY, "bench", *words, "--json"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        _running.append(lambda: _end(self.process))

    def is_running(self):
        return self.process.poll() is None

    def end(self):
        out, trouble = self.process.communicate()
        if self.process.returncode != 0:
            raise RuntimeError("holdfast bench: " + trouble.strip())
        return json.loads(out)


class Node:
    """A started server, and what is needed to talk to it."""

    def __init__(self, store, *options, secret=None):
        self.path = directory()
        self.store = store
        self.secret = secret or os.path.join(self.path, "secret")
        if secret is None:
            with open(self.secret, "w", encoding="ascii") as file:
                file.write(os.urandom(32).hex())
            os.chmod(self.secret, 0o600)
        log = open(os.path.join(self.path, "log"), "w", encoding="utf-8")
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [BINARY, "serve", "--listen", "127.0.0.1:0", "--store", store, "--jwt-secret-file", self.secret, *options],
            stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.path)
        line = self.process.stdout.readline()
        if "listening" not in line:
            raise RuntimeError("the server did not start: see %s" % log.name)
        self.start_seconds = time.monotonic() - self.started
        self.url = re.search(r"http://[\d.]+:\d+", line).group(0)
        self.port = int(self.url.rsplit(":", 1)[1])
        _running.append(lambda: _end(self.process))

    def stop(self):
        _end(self.process)

    def memory(self):
        """Resident bytes of its own, so without the program's and the libraries' files."""
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as status:
            return int(re.search(r"RssAnon:\s+(\d+)", status.read()).group(1)) * 1024

    def metric(self, name):
        with urllib.request.urlopen(self.url + "/metrics", timeout=10) as answer:
            found = re.search(r"^%s (\S+)$" % name, answer.read().decode(), re.MULTILINE)
        return float(found.group(1)) if found else 0

    def token(self, org, role="buyer", user=None):
        words = ["token", "--jwt-secret-file", self.secret, "--store", self.store, "--org", org, "--role", role]
        return run(*words, *(["--user", user] if user else [])).strip()

    def begin_load(self, org, seconds=10, connections=256, **options):
        """Starts `holdfast bench` on this server; what it says is the result's end()."""
        words = ["--%s=%d" % (name, value) for name, value in options.items()]
        return Load("--url", self.url, "--jwt-secret-file", self.secret, "--org", org, "--seconds", str(seconds),
                    "--connections", str(connections), *words)

    def holds_per_second(self, org, seconds=10, connections=256, **options):
        """What `holdfast bench` says of this server."""
        return self.begin_load(org, seconds, connections, **options).end()


def sqlite():
    """The URL of an embedded store that is not there yet."""
    return "sqlite:%s/holdfast.db" % directory()


def layout(seats, per_row=100, rows_per_block=100, name="Field"):
    blocks, left = [], seats
    while left > 0:
        rows = []
        while left > 0 and len(rows) < rows_per_block:
            rows.append({"label": str(len(rows) + 1), "seats": min(per_row, left)})
            left -= per_row
        blocks.append({"section": "A", "subsection": len(blocks) + 1, "name": "%s %d" % (name, len(blocks) + 1),
                       "price_cents": 1000, "rows": rows})
    return {"name": name, "blocks": blocks}


def fill(store, events=1, seats=100000, policy=None):
    """Events of that many seats, without limits; the organization's and the events' ids."""
    limits = {"hold_ttl_seconds": 3600, "hold_max_seconds": 3600, "max_seats_per_user": 0, "rate_limit_holds": 0}
    org, ids = None, []
    for number in range(events):
        document = {"organization": {"name": "Bench", **({"id": org} if org else {})},
                    "event": {"name": "Bench %d" % number, "status": "published", "policy": {**limits, **(policy or {})}},
                    "layout": layout(seats)}
        path = os.path.join(directory(), "event.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        made = json.loads(run("import", path, "--store", store))
        org = made["organization_id"]
        ids.append(made["event_id"])
    return org, ids
