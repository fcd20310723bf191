"""Finding the chip that someone means, and saying so when that is not clear."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tokcast.hosts import registry
from tokcast.hosts.identity import Identity, identities
from tokcast.hosts.spelling import Spelling, read, words
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host

_MOST_LISTED = 6
_LONGEST_SHOWN = 80


def find(text: str) -> Host:
    """Return the one chip that a typed name means: `4090`, `M4 Max 40-core`, `2x RTX 3090`.

    A canonical name written out always means its chip. Otherwise every word must belong to
    the chip and no word that tells it from a sibling may be missing, so that `4060` is never a
    4060 Ti. A memory size picks among variants and sets `memory_bytes` where the chip was sold
    with several. Raises InputError, with the candidates or the nearest names, where no chip or
    more than one fits.
    """
    asked = read(text)
    exact = _canonical(text)
    fitting = _fitting(asked, _fits)
    shown = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
    if exact is not None:
        return _with_siblings(registry.chip(exact), asked)
    if not fitting:
        near = nearest(text)
        listed = f"nearest: {', '.join(near)}; or" if near else "name one as in 'RTX 4090', or"
        raise InputError(
            f"host {shown!r} is not a known chip; {listed} "
            "describe it with --bandwidth, --tflops and --memory, or a TOML file"
        )
    if len(fitting) > 1:
        raise InputError(
            f"host {shown!r} can mean {len(fitting)} chips: {_listed(fitting)}; "
            "add what tells them apart, or write the name in full"
        )
    return _with_siblings(_as_asked(registry.chip(fitting[0].name), asked), asked)


def candidates(text: str, *, with_variants: bool = False) -> tuple[Host, ...]:
    """Return every chip that a typed or reported name can mean, each as `find` would return it.

    `with_variants` adds those that share the name and differ in the type of memory, as a driver
    reports the RTX 3060 Ti with GDDR6X. A number of devices that no machine has fits nothing.
    """
    try:
        asked = read(text)
    except InputError:
        return ()
    fits = _shares_name if with_variants else _fits
    return tuple(
        _as_asked(registry.chip(identity.name), asked) for identity in _fitting(asked, fits)
    )


def nearest(text: str, n: int = 3) -> list[str]:
    """Return the at most `n` canonical names that look most like the text, most alike first.

    They share a word of two characters or more with it: a digit in common is no likeness.
    """
    # Only an error needs it, and it is slow to import.
    from difflib import SequenceMatcher

    asked = read(text)
    typed = "".join(sorted(asked.words))
    if not typed:
        return []

    def likeness(identity: Identity) -> float:
        shared = len(asked.words & identity.known) / len(asked.words)
        forms = [*identity.required, words(identity.name)]
        matcher = SequenceMatcher(b=typed, autojunk=False)
        ratios = []
        for form in forms:
            matcher.set_seq1("".join(sorted(form)))
            ratios.append(matcher.ratio())
        return shared + max(ratios)

    alike = [
        identity
        for identity in identities()
        if any(len(word) > 1 for word in asked.words & identity.known)
    ]
    ranked = sorted(alike, key=likeness, reverse=True)
    return [identity.name for identity in ranked[:n]]


def _canonical(text: str) -> str | None:
    wanted = " ".join(text.split()).casefold()
    return next((name for name in registry.names() if name.casefold() == wanted), None)


def _fitting(asked: Spelling, fits: Callable[[Spelling, Identity], bool]) -> list[Identity]:
    fitting = [identity for identity in identities(asked.words) if fits(asked, identity)]
    # The rows for an unknown number of GPU cores exist for measurements that do not say it.
    stated = [identity for identity in fitting if "unknown" not in identity.known]
    return stated or fitting


def _fits(asked: Spelling, chip: Identity) -> bool:
    if asked.memory_type:
        return _shares_name(asked, chip) and asked.memory_type == chip.memory_type
    return _shares_name(asked, chip) and not chip.is_marked_by_memory_type


def _shares_name(asked: Spelling, chip: Identity) -> bool:
    if not any(each <= asked.words for each in chip.required):
        return False
    if asked.memory_gb is None:
        return not chip.is_marked_by_memory
    return not chip.memory_gb or asked.memory_gb in chip.memory_gb


def _as_asked(host: Host, asked: Spelling) -> Host:
    if asked.memory_gb is not None:
        host = replace(host, memory_bytes=asked.memory_gb * registry.GIB)
    return replace(host, n_devices=asked.n_devices)


def _with_siblings(host: Host, asked: Spelling) -> Host:
    """Note the chips that are sold under the very same name with other memory."""
    others = [
        identity
        for identity in identities(asked.words)
        if identity.name != host.name
        and not asked.memory_type
        and _shares_name(asked, identity)
        and "unknown" not in identity.known
    ]
    if not others:
        return host
    return replace(host, notes=(*host.notes, f"the name is also used for: {_listed(others)}"))


def _listed(fitting: Sequence[Identity]) -> str:
    shown = [_described(identity) for identity in fitting[:_MOST_LISTED]]
    more = len(fitting) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _described(identity: Identity) -> str:
    sizes = [f"{size:g}" for size in identity.memory_gb if math.isfinite(size)]
    return f"{identity.name} ({'/'.join(sizes)} GB)" if sizes else identity.name
