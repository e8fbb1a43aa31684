"""The Node as the Kubernetes API gives it, over real TLS: no API server is to be had here, so a
small HTTPS server answers in its documented form (Node v1, Status v1).
"""

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme

from sidecar.collectors.node import ALLOCATABLE, CAPACITY, WITHHELD_SINCE, NodeCollector
from sidecar.config import KubernetesSettings
from sidecar.signals import Absence, Event, NoData, Sample

GPU = "nvidia.com/gpu"


class Api(HTTPServer):
    """Answers one node; what it answers is changed by the tests."""

    status = 200
    capacity: dict[str, str]
    allocatable: dict[str, str]
    body: bytes | None = None
    tokens: list[str]


class Handler(BaseHTTPRequestHandler):
    """The API server's side."""

    server: Api

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers["authorization"])
        name = self.path.rpartition("/")[2]
        assert self.path == f"/api/v1/nodes/{name}"
        answer = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        answer["status"] = {"capacity": self.server.capacity}
        answer["status"]["allocatable"] = self.server.allocatable
        if self.server.status != 200:
            answer = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "no"}
            answer |= {"code": self.server.status, "reason": "Forbidden"}
        body = self.server.body or json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Stays silent."""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def api(authority: trustme.CA) -> Iterator[Api]:
    server = Api(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.capacity = {"cpu": "64", "memory": "527959112Ki", GPU: "8"}
    server.allocatable = {"cpu": "63", "memory": "517959112Ki", GPU: "8"}
    server.tokens = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def account(authority: trustme.CA, tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("token-1")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    return tmp_path


def reader(api: Api, account: Path) -> NodeCollector:
    address = f"https://127.0.0.1:{api.server_address[1]}"
    return NodeCollector(KubernetesSettings(node="n-1", api=address, service_account=account))


def values(signals: object) -> dict[str, float]:
    assert isinstance(signals, list)
    found = {s.metric: s.value for s in signals if isinstance(s, Sample)}
    for signal in signals:
        if isinstance(signal, Sample):
            assert signal.labels == (("node", "n-1"), ("resource", GPU))
    return found


def events(signals: object) -> list[tuple[str, str]]:
    assert isinstance(signals, list)
    return [(s.kind, s.text) for s in signals if isinstance(s, Event)]


def test_a_node_that_gives_out_all(api: Api, account: Path) -> None:
    """Capacity and allocatable of the GPU resource alone, and nothing withheld."""
    collector = reader(api, account)
    collector.open()
    signals = collector.collect(1000.0)
    assert values(signals) == {CAPACITY.name: 8.0, ALLOCATABLE.name: 8.0}
    assert events(signals) == []
    assert api.tokens == ["Bearer token-1"]


def test_fc31_capacity_that_does_not_come_back(api: Api, account: Path) -> None:
    """FC-31 D: 7 of 8 is said with its age, once as an event, until all 8 are given out again."""
    api.allocatable[GPU] = "7"
    collector = reader(api, account)
    collector.open()
    first = collector.collect(1000.0)
    later = collector.collect(1000.0 + 6 * 3600)
    assert values(later) == {
        CAPACITY.name: 8.0,
        ALLOCATABLE.name: 7.0,
        WITHHELD_SINCE.name: 1000.0,
    }
    assert events(first) == [("capacity_withheld", f"7 of 8 {GPU} are given out")]
    assert events(later) == []
    api.allocatable[GPU] = "8"
    restored = collector.collect(30000.0)
    assert WITHHELD_SINCE.name not in values(restored)
    assert events(restored) == [("capacity_restored", f"all 8 {GPU} are given out again")]


def test_allocatable_without_the_resource_is_none_given_out(api: Api, account: Path) -> None:
    """A device plugin that is gone leaves capacity 8 and no allocatable entry: none of 8."""
    del api.allocatable[GPU]
    collector = reader(api, account)
    collector.open()
    assert values(collector.collect(1.0))[ALLOCATABLE.name] == 0.0


@pytest.mark.parametrize(
    ("status", "absence", "remedy"),
    [
        (403, Absence.NO_PERMISSION, "ClusterRole"),
        (404, Absence.NOT_FOUND, "spec.nodeName"),
        (500, Absence.HTTP_STATUS, "500"),
    ],
)
def test_refusals(api: Api, account: Path, status: int, absence: Absence, remedy: str) -> None:
    """Each refusal of the API is a state of its own that names the remedy."""
    api.status = status
    collector = reader(api, account)
    collector.open()
    with pytest.raises(NoData) as caught:
        collector.collect(1.0)
    assert caught.value.absence is absence
    assert remedy in caught.value.reason


def test_a_renewed_token_is_read_again(api: Api, account: Path) -> None:
    """The kubelet renews the token's file: after a 401 the new one is sent."""
    collector = reader(api, account)
    collector.open()
    collector.collect(1.0)
    (account / "token").write_text("token-2")
    api.status = 401
    with pytest.raises(NoData, match="401"):
        collector.collect(2.0)
    assert api.tokens[-1] == "Bearer token-2"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"status": 7}'])
def test_something_else_than_a_node(api: Api, account: Path, body: bytes) -> None:
    """HTML, a list or half a Node is named, never an exception of the library."""
    api.body = body
    collector = reader(api, account)
    collector.open()
    with pytest.raises(NoData):
        collector.collect(1.0)


def test_a_node_without_gpus(api: Api, account: Path) -> None:
    """No such resource at all: no signal, with the question about the device plugin."""
    del api.capacity[GPU], api.allocatable[GPU]
    collector = reader(api, account)
    collector.open()
    with pytest.raises(NoData, match="device plugin") as caught:
        collector.collect(1.0)
    assert caught.value.absence is Absence.NO_SIGNAL


def test_an_unknown_authority_is_refused(api: Api, account: Path) -> None:
    """A server that the account's ca.crt does not vouch for gets no token."""
    trustme.CA().cert_pem.write_to_path(str(account / "ca.crt"))
    collector = reader(api, account)
    collector.open()
    with pytest.raises(NoData, match="cannot be reached"):
        collector.collect(1.0)
    assert api.tokens == []


def test_no_service_account(tmp_path: Path) -> None:
    """A pod without the account's files is told which setting gives them."""
    collector = NodeCollector(KubernetesSettings(node="n-1", service_account=tmp_path))
    with pytest.raises(NoData, match="automountServiceAccountToken") as caught:
        collector.open()
    assert caught.value.absence is Absence.NOT_FOUND
