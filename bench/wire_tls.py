"""What the user probes of wire_tls add to a call of OpenSSL.

A child writes events over TLS through memory buffers of its own, and reads where nothing is; each
in rounds with the probes in and without, by turns. The figure of a kind is the median of the
differences of its pairs. It needs root.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from sidecar.probed import wire_tls
from sidecar.probed.namespaces import network_of
from sidecar.probed.probe import Watched
from sidecar.probed.targets import By, Selector, scan

PORT, CALLS = 9, 5000
KINDS = ("write", "read")
_CHILD = """
import ssl, sys, time
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain(sys.argv[1], sys.argv[2])
client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
print("ready", flush=True); sys.stdin.readline()
a, b, c, d = (ssl.MemoryBIO() for _ in range(4))
here, there = server.wrap_bio(a, b, server_side=True), client.wrap_bio(c, d)
def pump():
    a.write(d.read()); c.write(b.read())
for _ in range(6):
    for side in (there, here):
        try: side.do_handshake()
        except ssl.SSLWantReadError: pass
        pump()
event = b'data: {"id":"cmpl-1234567890123456789",'
event += b'"choices":[{"delta":{"content":"hello wor"}}]}\\n\\n'
event = b"%x\\r\\n" % len(event) + event + b"\\r\\n"
def nothing(link, size):
    try:
        while link.read(size): pass
    except ssl.SSLWantReadError: pass
for line in sys.stdin:
    calls = int(line.split()[1])
    if line.startswith("write"):
        there.write(b"POST /v1/chat HTTP/1.1\\r\\ncontent-length: 0\\r\\n\\r\\n"); pump()
        here.read(65536)
        here.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n"
                   b"transfer-encoding: chunked\\r\\n\\r\\n")
        began = time.perf_counter_ns()
        for _ in range(calls): here.write(event)
        took = time.perf_counter_ns() - began
        here.write(b"0\\r\\n\\r\\n"); pump(); nothing(there, 65536)
    else:
        began = time.perf_counter_ns()
        for _ in range(calls): nothing(here, 1)
        took = time.perf_counter_ns() - began
    print(took / calls / 1e9, flush=True)
"""


class Child:
    """The process that calls OpenSSL, and the probe that follows it."""

    def __init__(self, folder: Path) -> None:
        cert, key = folder / "cert.pem", folder / "key.pem"
        subprocess.run(
            [shutil.which("openssl") or "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-keyout", key,
             "-out", cert],
            check=True, capture_output=True,
        )  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, cert, key],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self._line()
        self.probe = wire_tls.load("prebuilt", network_of())
        pid = Selector(By.PID, str(self.process.pid))
        self._targets = scan([pid], network_of()).targets
        self.follow(True)
        self._say("go")

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def _say(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{text}\n")

    def seconds(self, kind: str) -> float:
        """Of one call, on average of a round."""
        self._say(f"{kind} {CALLS}")
        return float(self._line())

    def follow(self, follows: bool) -> None:
        """Puts the probes in or out."""
        followed = self.probe._followed  # noqa: SLF001  # what the daemon does over seconds
        followed.watch(Watched(frozenset({PORT}), self._targets if follows else ()))
        self.probe._feed.watch(Watched(frozenset({PORT})))  # noqa: SLF001  # as above
        if not follows:
            followed.close()
            return
        while not all(one.parts for one in followed.coverage()):
            followed.step()
        # It listens on nothing, so that a request's port is told here.
        number = struct.pack("=I", followed._number)  # noqa: SLF001  # as above
        followed._processes.update(number, struct.pack("=QQH6x", 0, 0, PORT))  # noqa: SLF001

    def close(self) -> None:
        """Ends both."""
        self.process.kill()
        self.process.wait()
        self.probe.close()


def main() -> None:
    """Prints one JSON object as its last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    pairs: int = parser.parse_args().pairs
    print(__doc__)
    found: dict[str, object] = {"n": pairs, "calls": CALLS}
    with tempfile.TemporaryDirectory() as folder:
        child = Child(Path(folder))
        for kind in KINDS:
            rounds = []
            for pair in range(pairs):
                took = {}
                for probed in (True, False) if pair % 2 else (False, True):
                    child.follow(probed)
                    child.seconds(kind)  # caches and the clock of the CPU settle
                    took[probed] = child.seconds(kind)
                rounds.append((took[True], took[False]))
            found[f"{kind}_probed_seconds"] = statistics.median(r[0] for r in rounds)
            found[f"{kind}_seconds"] = statistics.median(r[1] for r in rounds)
            added = [r[0] - r[1] for r in rounds]
            found[f"{kind}_added_seconds"] = statistics.median(added)
            found[f"{kind}_added_quartiles"] = statistics.quantiles(added)[::2]
        events = child.probe.counters()["events"]
        child.close()
    found["events"], found["events_written"] = events, 2 * pairs * CALLS
    print(json.dumps(found))


if __name__ == "__main__":
    main()
