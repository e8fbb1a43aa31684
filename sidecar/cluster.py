"""The only door to the Kubernetes API: the pod's service account and what a Node says.

Imported when a node is named and not before, as the client library costs 16 MB of memory.
"""

from __future__ import annotations

from pathlib import Path

import httpx
from lightkube import Client, KubeConfig
from lightkube.config.models import Cluster, User
from lightkube.core.exceptions import ApiError, ConfigError
from lightkube.models.core_v1 import NodeStatus
from lightkube.resources.core_v1 import Node

from sidecar.config import KubernetesSettings
from sidecar.signals import Absence, NoData

_TIMEOUT_SECONDS = 4.0


class NodeReader:
    """Reads one Node with the pod's service account, whose token is read again when renewed.

    Made without a request; NoData names the file of the account that is missing.
    """

    def __init__(self, settings: KubernetesSettings) -> None:
        account = settings.service_account
        for name in ("token", "ca.crt"):
            _readable(account / name)
        self._api, self._node = settings.api, settings.node
        cluster = Cluster(server=self._api, certificate_auth=str(account / "ca.crt"))
        config = KubeConfig.from_one(
            cluster=cluster, user=User(token_file=str(account / "token")), namespace="default"
        )
        timeout = httpx.Timeout(_TIMEOUT_SECONDS)
        try:
            self._client = Client(config=config, timeout=timeout, trust_env=False)
        except (ConfigError, OSError) as error:
            raise NoData(
                Absence.NOT_FOUND, f"{account} is not a service account that can be used: {error}"
            ) from error

    def status(self) -> NodeStatus:
        """What the Node says of itself now; NoData names what came instead."""
        try:
            status = self._client.get(Node, self._node).status
        except ApiError as error:
            raise _refusal(self._node, error) from error
        except httpx.TimeoutException as error:
            text = f"{self._api} gave no answer in {_TIMEOUT_SECONDS:g} s"
            raise NoData(Absence.TIMEOUT, text) from error
        except httpx.HTTPError as error:
            raise NoData(Absence.REFUSED, f"{self._api} cannot be reached: {error}") from error
        except ConfigError as error:
            raise NoData(Absence.NOT_FOUND, f"the service account is gone: {error}") from error
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            text = f"{self._api} answers with something else than a Node"
            raise NoData(Absence.PROTOCOL, text) from error
        if status is None:
            raise NoData(Absence.NO_SIGNAL, f"node {self._node} has no status yet")
        return status


def _readable(path: Path) -> None:
    try:
        with path.open("rb"):
            return
    except FileNotFoundError as error:
        raise NoData(
            Absence.NOT_FOUND,
            f"{path} is absent; the pod needs automountServiceAccountToken: true",
        ) from error
    except OSError as error:
        raise NoData(Absence.NO_PERMISSION, f"{path}: {error.strerror}") from error


def _refusal(node: str, error: ApiError) -> NoData:
    code = error.status.code
    if code in (401, 403):
        return NoData(
            Absence.NO_PERMISSION,
            f"node {node} may not be read ({code}): the service account needs the verb get on "
            "nodes (a ClusterRole)",
        )
    if code == 404:
        return NoData(
            Absence.NOT_FOUND, f"there is no node {node}; take its name from spec.nodeName"
        )
    return NoData(Absence.HTTP_STATUS, f"the Kubernetes API answers {code} for node {node}")
