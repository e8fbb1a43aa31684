"""Where alarms are sent besides the page, as settings: Alertmanagers, webhooks, an OTLP receiver.

A secret is always a file and never a setting, as settings end in process lists, manifests and error
messages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from sidecar.addresses import http_url
from sidecar.config.section import Seconds, Section

_MAX_OUTPUTS = 8


def _address(value: str) -> str:
    from httpx import URL, InvalidURL  # the web stack is heavy: only where there is an address

    found = http_url(value)
    try:
        (URL(found).host or "").encode("idna")
    except (InvalidURL, UnicodeError):
        raise ValueError("its host cannot be the name of one") from None
    return found


def _base_url(value: str) -> str:
    if any(mark in value for mark in "?#"):
        raise ValueError("an address to which a path is added has no ? and no #")
    return _address(value)


def _optional_base_url(value: str) -> str:
    return _base_url(value) if value else value


def _whole_url(value: str) -> str:
    if "#" in value:
        raise ValueError("what follows a # is never sent; leave it out")
    return _address(value)


def _link(value: str) -> str:
    return http_url(value) if "://" in value or "@" in value else value


class AlertmanagerSettings(Section):
    """An Alertmanager; of a cluster, each of its members, which deduplicate among themselves."""

    url: Annotated[str, AfterValidator(_base_url)] = Field(
        description="`http://host:9093` and its path prefix if it has one; no credentials."
    )
    token_file: Path = Field(
        default=Path(), description="File with a bearer token, read anew for each request."
    )
    ca_file: Path = Field(
        default=Path(),
        description="Certificate authority (PEM) of an https address; empty: the system's.",
    )


class WebhookSettings(Section):
    """An HTTP endpoint that is told of each alarm that fires or resolves, signed."""

    url: Annotated[str, AfterValidator(_whole_url)] = Field(
        description="The endpoint; no credentials. Only its host and port are ever shown."
    )
    secret_file: Path = Field(
        description="File with the signing secret, 16 bytes or more, not readable by others; read "
        "anew for each request."
    )
    ca_file: Path = Field(
        default=Path(),
        description="Certificate authority (PEM) of an https address; empty: the system's.",
    )


class OtlpSettings(Section):
    """An OpenTelemetry receiver that gets one log record of each change of an alarm."""

    endpoint: Annotated[str, AfterValidator(_optional_base_url)] = Field(
        default="",
        description="`http://host:4318`, of gRPC `http://host:4317`; https: with TLS; empty: none.",
    )
    protocol: Literal["http", "grpc"] = Field(
        default="http", description="`http` (protobuf to `/v1/logs`) or `grpc`."
    )
    ca_file: Path = Field(
        default=Path(),
        description="Certificate authority (PEM) of an https address; empty: the system's, of gRPC "
        "the library's own.",
    )

    @model_validator(mode="after")
    def _no_path_in_grpc(self) -> Self:
        if self.protocol == "grpc" and urlsplit(self.endpoint).path:
            raise ValueError("a gRPC endpoint is a host and a port, without a path")
        return self


class NotifySettings(Section):
    """Where alarms are sent besides the page."""

    alertmanagers: Annotated[tuple[AlertmanagerSettings, ...], Field(max_length=_MAX_OUTPUTS)] = ()
    webhooks: Annotated[tuple[WebhookSettings, ...], Field(max_length=_MAX_OUTPUTS)] = ()
    otlp: OtlpSettings = OtlpSettings()
    external_url: Annotated[str, AfterValidator(_optional_base_url)] = Field(
        default="", description="Address under which people reach the page; alarms link to it."
    )
    instance: Annotated[str, Field(max_length=200)] = Field(
        default="", description="Who sends: the `instance` label; empty: the name of the host."
    )
    resend_seconds: Seconds = Field(
        default=60.0,
        description="Time after which a firing alarm is sent to Alertmanagers again; they forget "
        "it after four times as long without.",
    )
    runbook_base: Annotated[str, Field(max_length=500), AfterValidator(_link)] = Field(
        default="docs/alarms.md",
        description="Page of the alarms' meanings; an alarm links to its `#rule` there.",
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for name, urls in (
            ("alertmanagers", [one.url for one in self.alertmanagers]),
            ("webhooks", [one.url for one in self.webhooks]),
        ):
            if len(set(urls)) < len(urls):
                raise ValueError(f"two of {name} have the same url")
        return self
