"""Requests of the server to other machines: only where it may go, checked where it really goes."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tokcast.predictor.errors import InputError

if TYPE_CHECKING:
    import httpx

    IP = ipaddress.IPv4Address | ipaddress.IPv6Address

# The Hub, and where it redirects for the bytes of files.
HUB_NAMES = ("huggingface.co", "hf.co")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_outside(ip: IP) -> bool:
    """Return whether an address is of the public network: no private, loopback or local one.

    An IPv6 address that stands for an IPv4 one is judged by that.
    """
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if ip.teredo is not None:
            return False
        if inner is not None:
            return is_outside(inner)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a name; raises InputError where it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InputError(f"{host}: no such host, or no network") from None
    return [str(info[4][0]) for info in found]


def origin_of(url: str) -> str:
    """Return scheme, name and port of a web address; raises InputError for another thing."""
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        raise InputError(f"{url!r}: expected a web address such as https://host") from None
    if split.scheme not in ("http", "https") or not split.hostname or split.username:
        raise InputError(f"{url!r}: expected a web address such as https://host")
    usual = {"http": 80, "https": 443}[split.scheme]
    return f"{split.scheme}://{split.hostname}:{port or usual}"


class Route:
    """Decides about every request, redirected ones as well, and to which address it goes.

    The name is resolved once, the answer checked, and the connection made to that very address:
    a name that changes its mind in between changes nothing.
    """

    def __init__(
        self, mirrors: Sequence[str], is_allowed: Callable[[IP], bool] = is_outside
    ) -> None:
        self._mirrors = frozenset(map(origin_of, mirrors))
        self._is_allowed = is_allowed

    def address(self, url: str) -> str:
        """Return the IP address to connect to; raises InputError for a place not to go."""
        origin = origin_of(url)
        split = urlsplit(origin)
        host, port = split.hostname or "", split.port or 443
        is_hub = split.scheme == "https" and port == 443 and _is_of(host, HUB_NAMES)
        if origin not in self._mirrors and not is_hub:
            raise InputError(f"{host}: not a place that this server fetches from (see --mirror)")
        found = resolve(host, port)
        for text in found:
            if not self._is_allowed(ipaddress.ip_address(text.partition("%")[0])):
                raise InputError(f"{host}: leads to {text}, which is no address of the public net")
        return found[0]

    def transport(self) -> httpx.BaseTransport:
        """Return a transport for one session that goes by these rules."""
        import httpx

        route = self

        class Pinned(httpx.HTTPTransport):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                host = request.url.host
                pinned = route.address(str(request.url))
                # The Host header is set already; the certificate is checked against the name.
                request.url = request.url.copy_with(host=pinned)
                request.extensions = {**request.extensions, "sni_hostname": host}
                return super().handle_request(request)

        return Pinned(retries=0)


def _is_of(host: str, names: Sequence[str]) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in names)
