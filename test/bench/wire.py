# SPDX-License-Identifier: Apache-2.0
"""One HTTP connection with nothing between it and the clock, tokens, and what /metrics says."""
import base64
import hashlib
import hmac
import json
import re
import socket
import time
import uuid


class Wire:
    def __init__(self, node, token=None):
        self.socket = socket.create_connection(("127.0.0.1", node.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = "Host: bench\r\n" + ("Authorization: Bearer %s\r\n" % token if token else "")

    def send(self, method, path):
        length = "Content-Length: 0\r\n" if method == "POST" else ""
        self.socket.sendall(("%s %s HTTP/1.1\r\n%s%s\r\n" % (method, path, self.head, length)).encode())

    def receive(self):
        """Status and body."""
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._more()
        head, body = answer.split(b"\r\n\r\n", 1)
        length = int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))
        while len(body) < length:
            body += self._more()
        return int(head.split()[1]), body.decode()

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data

    def get(self, path):
        self.send("GET", path)
        status, body = self.receive()
        if status != 200:
            raise RuntimeError("GET %s: %d %s" % (path, status, body))
        return body

    def timed_get(self, path):
        """Milliseconds until the last byte."""
        begun = time.perf_counter()
        self.get(path)
        return (time.perf_counter() - begun) * 1000

    def close(self):
        self.socket.close()


def sign(node, org, role="buyer"):
    """A new user's token. `holdfast token` would do; not for thousands."""
    def encode(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")
    with open(node.secret, "rb") as file:
        secret = file.read().rstrip(b"\n")
    claims = {"sub": str(uuid.uuid4()), "org": org, "role": role, "exp": int(time.time()) + 86400}
    text = encode(b'{"alg":"HS256","typ":"JWT"}') + b"." + encode(json.dumps(claims).encode())
    return (text + b"." + encode(hmac.new(secret, text, hashlib.sha256).digest())).decode()


def histogram(metrics, name):
    """Counts by upper bound, each with those below it."""
    return {bound: int(count) for bound, count in re.findall(r'^%s_bucket\{le="([^"]+)"\} (\d+)' % name, metrics, re.M)}
