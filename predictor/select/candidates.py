"""Where candidates come from: addresses, folders, repositories, searches, the catalogue."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tokcast.predictor import catalogue
from tokcast.predictor.select.candidate import Candidate, Found
from tokcast.predictor.variants import Variants

MLX = "mlx-"
# (headers done, of how many)
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be looked at; nothing means the whole catalogue.

    `search` and `author` ask the Hub, for at most `limit` repositories; `is_local` looks into the
    folders of other programs. `formats` are those of the runtimes that come into question.
    """

    addresses: tuple[str, ...] = ()
    search: str = ""
    author: str = ""
    limit: int = 20
    is_local: bool = False
    formats: tuple[str, ...] = ("gguf", "mlx")

    @property
    def is_catalogue(self) -> bool:
        """Return whether the catalogue is meant, because nothing else was asked for."""
        return not (self.addresses or self.search or self.author or self.is_local)


def whole_catalogue(formats: tuple[str, ...]) -> Found:
    """Return every model of the catalogue in every file type of the formats."""
    names = catalogue.names()
    found = tuple(c for name in names for c in of_catalogue(name, None, formats))
    n_types = len(_file_types(formats))
    return Found(found, (), (f"the catalogue: {len(names)} models in {n_types} file types",))


def of_catalogue(name: str, file_type: str | None, formats: tuple[str, ...]) -> Iterator[Candidate]:
    """Yield a catalogue model in one file type, or in all that the formats have."""
    variants = Variants(name)
    entry = variants.entry
    for each in [file_type] if file_type else _file_types(formats):
        spec = variants.spec(each)
        quant = spec.source.partition("@")[2]
        yield Candidate(spec.source, spec, quant, entry.name, "catalogue", model_id=entry.name)


def _file_types(formats: tuple[str, ...]) -> list[str]:
    return [
        name
        for name in catalogue.file_types()
        if ("mlx" if name.startswith(MLX) else "gguf") in formats
    ]
