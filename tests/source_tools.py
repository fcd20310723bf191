"""Settings for tests of sources: a home folder of their own, and no waiting."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tokcast.predictor.header import Header
from tokcast.predictor.sources.address import parse
from tokcast.predictor.sources.open import read
from tokcast.predictor.sources.settings import Settings, from_environ


@dataclass
class Place:
    """A home folder and a cache below `root`; `waits` are the seconds asked to sleep."""

    root: Path
    endpoint: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    changes: dict[str, object] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def settings(self) -> Settings:
        environ = {
            "HOME": str(self.home),
            "TOKCAST_CACHE": str(self.root / "cache"),
            "HF_ENDPOINT": self.endpoint or "http://127.0.0.1:9",
            **self.environ,
        }
        return replace(from_environ(environ, None), sleep=self.waits.append, **self.changes)

    def open(self, address: str, offline: bool | None = None) -> Header:
        settings = self.settings
        if offline is not None:
            settings = replace(settings, offline=offline)
        return read(parse(address, settings), settings)

    def put(self, name: str, content: bytes) -> Path:
        """Write a file below the home folder."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def cached(self) -> list[Path]:
        return sorted((self.root / "cache" / "headers").glob("*"))
