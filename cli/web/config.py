"""What a server may do, and its bounds."""

from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Config:
    """Rules of one server.

    `public` serves only what needs no device, reads no local path and fetches nothing. `folders`
    are where local models may lie; `mirrors` are origins beside the Hub that addresses may reach.
    `uses_token` lets the operator's Hub token be sent for whoever asks.
    `names` are Host header names accepted beside IP addresses and localhost.
    """

    public: bool = False
    folders: tuple[Path, ...] = ()
    mirrors: tuple[str, ...] = ()
    uses_token: bool = True
    names: frozenset[str] = frozenset()
    max_json_bytes: int = MIB
    max_upload_bytes: int = 32 * MIB
    seconds: float = 60.0
    n_at_once: int = 64
    n_fetches: int = 4
    n_streams: int = 8
