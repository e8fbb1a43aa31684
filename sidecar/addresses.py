"""Addresses that settings may hold, checked before anything is opened."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def listen_address(value: str) -> str:
    """An address and port to listen on; ValueError otherwise."""
    host, port = split_address(value)
    ipaddress.ip_address(host)
    if not 0 < port < 65536:
        raise ValueError(f"port {port} is not between 1 and 65535")
    return value


def split_address(value: str) -> tuple[str, int]:
    """``127.0.0.1:9838`` or ``[::1]:9838`` as host and port; ValueError otherwise."""
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"{value!r} is not ADDRESS:PORT, such as 127.0.0.1:9838 or [::1]:9838")
    return host.removeprefix("[").removesuffix("]"), int(port)


def http_url(value: str) -> str:
    """An address without credentials, whose host and port can be what they say."""
    if "@" in value:
        raise ValueError("credentials in an address end in logs; leave them out")
    parts = urlsplit(value)  # ValueError for an open bracket, and at .port for one out of range
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not all(host.rstrip(".").split(".")):
        raise ValueError("not an http:// or https:// address")
    if parts.port == 0 or any(c.isspace() or not c.isprintable() for c in value):
        raise ValueError("not an http:// or https:// address")
    return value.rstrip("/")
