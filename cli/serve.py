"""`tokcast serve`: the page and the API on this machine."""

import gc
import ipaddress
import os
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from tokcast.cli.web.config import Config
from tokcast.predictor.errors import InputError


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed."""

    host: str
    port: str
    public: bool
    folders: tuple[str, ...]
    mirrors: tuple[str, ...]
    names: tuple[str, ...]


def run(request: Request) -> int:
    """Serve until interrupted; raises InputError for what can't be served."""
    try:
        import uvicorn

        from tokcast.cli.web.app import create_app
    except ImportError as error:
        raise InputError(
            f"{error.name} is missing; the page needs pip install 'tokcast[web]'"
        ) from None
    port = _port(request.port)
    config = Config(
        public=request.public,
        folders=() if request.public else tuple(map(_folder, request.folders)),
        mirrors=() if request.public else (*request.mirrors, *_endpoint()),
        uses_token=is_loopback(request.host),
        names=frozenset(name.lower() for name in request.names) | _own_names(request.host),
    )
    app = create_app(config)
    listener = _listener(request.host, port)
    threading.Thread(target=_warm, daemon=True).start()

    class Announcing(uvicorn.Server):
        """A server that tells its address once it is there, and heeds Ctrl-C from then on."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            _say(config, listener)

    server = Announcing(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=2 * config.n_at_once,
            timeout_keep_alive=10,
            h11_max_incomplete_event_size=32 << 10,
            timeout_graceful_shutdown=2,
        )
    )
    server.run(sockets=[listener])
    return 0


def _warm() -> None:
    """Read what the first page needs before someone asks for it."""
    from tokcast.cli.measured import measured_of
    from tokcast.fits.released import released
    from tokcast.hosts.registry import chips

    released()
    chips()
    measured_of("", "", "", "")
    # What stays for good need not be walked over by every collection, which requests wait for.
    gc.collect()
    gc.freeze()


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise InputError(f"--port {text!r}: expected a number from 0 to 65535")
    return int(text)


def _folder(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_dir():
        raise InputError(f"--folder {text!r}: no such folder; expected one that holds models")
    return path


def _endpoint() -> tuple[str, ...]:
    """Return the Hub mirror that the operator's environment names."""
    found = os.environ.get("HF_ENDPOINT", "")
    return (found,) if found else ()


def _own_names(host: str) -> frozenset[str]:
    """Return the names a server goes by when others are to reach it."""
    if is_loopback(host):
        return frozenset()
    return frozenset({host.lower(), socket.gethostname().lower()})


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Named as TCP, its connections send at once; asyncio leaves others to wait for each other.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise _unheard(host, port, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise _unheard(host, port, error) from None
    return listener


def _unheard(host: str, port: int, error: Exception) -> InputError:
    return InputError(
        f"cannot listen on {host} port {port}: {error}; expected a free port (--port)"
    )


def _say(config: Config, listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"tokcast is at http://{shown}:{port}/ (API at /docs); Ctrl-C ends it", flush=True)
    if is_loopback(host):
        return
    reads = "no local file, and fetches nothing" if config.public else "what the Hub has"
    if config.folders:
        reads += f", and GGUF files in {', '.join(map(str, config.folders))}"
    print(
        f"tokcast: everyone who reaches {host} can use it, without a password; it reads {reads}"
        + ("" if config.public else "; it tells what this machine is. --public keeps that back"),
        file=sys.stderr,
    )
