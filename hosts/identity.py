"""Which words of a chip's name one must say to mean that chip."""

import re
from dataclasses import dataclass
from functools import cache

from tokcast.hosts import registry, spelling

# Brand words that may be left out: the model number after them is unique within the brand.
_BRANDS = {
    "NVIDIA": "geforce rtx gtx quadro tesla ada blackwell pro pcie sxm nvl workstation server "
    "jetson grace superchip",
    "AMD": "radeon rx ryzen threadripper pro instinct ai max epyc embedded custom hx",
    "Intel": "i ultra xeon arc pro pentium gold silver platinum data center max",
    "Broadcom": "raspberry",
    "Qualcomm": "snapdragon x elite adreno",
}
_ALSO_SAID = {"Broadcom": "model b"}
# The digit that follows a brand, as in Ryzen 9, i7 and Ultra 7.
_BRAND_DIGITS = frozenset("3579")
_BRANDS_WITH_DIGITS = frozenset({"ryzen", "i", "ultra"})

# Other names of a chip; where several chips share one, the name alone does not decide.
_ALIASES = {
    "NVIDIA GB10": ("dgx spark",),
    "NVIDIA Jetson AGX Thor T5000": ("thor",),
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": ("6000",),
    "NVIDIA TITAN RTX": ("titan rtx",),
    "AMD Radeon Pro VII": ("pro vii",),
    "AMD Ryzen AI 9 365 (Radeon 880M)": ("strix point",),
    "AMD Ryzen AI 9 HX 370 (Radeon 890M)": ("strix point",),
    "AMD Ryzen AI 9 HX 375": ("strix point",),
    "AMD Ryzen AI Max 385 (Radeon 8050S)": ("strix halo", "framework desktop"),
    "AMD Ryzen AI Max 390 (Radeon 8050S)": ("strix halo",),
    "AMD Ryzen AI Max+ 395 (Radeon 8060S)": ("strix halo", "framework desktop"),
    "Ampere Altra Max M128-30": ("altra max",),
    "Ampere Altra Q80-30": ("altra",),
    "AmpereOne A192-32X": ("ampereone",),
    "Apple A18 Pro 5-core GPU": ("neo",),
    "Intel Arc 130V (Lunar Lake iGPU)": ("lunar lake",),
    "Intel Arc 140V (Lunar Lake iGPU)": ("lunar lake",),
    "Intel Arc B390 (Panther Lake 12 Xe3 iGPU)": ("panther lake",),
    "Intel Iris Xe 96EU (iGPU)": ("iris xe",),
    "Rockchip RK3588": ("orange pi 5", "orange pi 5 plus", "rock 5b"),
    "Qualcomm Snapdragon X Elite X1E-80-100 (Adreno X1-85)": ("snapdragon x elite",),
    "Qualcomm Snapdragon X Elite X1E-84-100 (Adreno X1-85)": ("snapdragon x elite",),
    "Qualcomm Snapdragon X Plus X1P-64-100 (Adreno X1-85)": ("snapdragon x plus",),
    "Qualcomm Snapdragon X2 Elite Extreme X2E-96-100 (Adreno X2-90)": (
        "snapdragon x2 elite extreme",
    ),
    "Qualcomm Snapdragon X2 Elite X2E-88-100 (Adreno X2-90)": ("snapdragon x2 elite",),
    "AMD Custom APU 0405 (Steam Deck LCD)": ("steam deck",),
    "AMD Custom APU 0932 (Steam Deck OLED)": ("steam deck",),
}
# Names whose brand words are all that tells them from another chip.
_ALIAS_ONLY = frozenset({"NVIDIA TITAN RTX", "AMD Radeon Pro VII"})


@dataclass(frozen=True, slots=True)
class Identity:
    """The words of one chip: one of the sets in `required` must be said, no word but `known`."""

    name: str
    required: tuple[frozenset[str], ...]
    known: frozenset[str]
    memory_gb: tuple[float, ...]
    memory_type: str
    is_marked_by_memory: bool
    is_marked_by_memory_type: bool
    is_cpu: bool


def identities(said: frozenset[str] = frozenset()) -> tuple[Identity, ...]:
    """Return the identities of the chips that know all the words said; of every chip for none."""
    names = [name for name in registry.names() if all(word in _letters(name) for word in said)]
    return tuple(identity for name in names if said <= (identity := _identity(name)).known)


@cache
def _letters(name: str) -> str:
    """Return text that has every known word of a chip in it: cheaper to search than to parse."""
    row = registry.facts(name)
    extra = _ALSO_SAID.get(row["vendor"], "")
    return " ".join([name, row["vendor"], row["kind"], extra, *_ALIASES.get(name, ())]).casefold()


@cache
def _identity(name: str) -> Identity:
    row = registry.facts(name)
    parts = spelling.read(name)
    main, _, comment = name.partition(" (")
    optional = _optional_words(row["vendor"], name)
    readings = [*main.split(" / "), *_other_names(comment)]
    required = [spelling.read(reading).words - optional for reading in readings]
    aliases = [spelling.words(alias) for alias in _ALIASES.get(name, ())]
    if "unknown" in comment:
        required = [required[0] | {"unknown"}]
    if name in _ALIAS_ONLY:
        required = []
    is_cpu = row["kind"] == "cpu"
    return Identity(
        name=name,
        required=(*required, *aliases),
        known=parts.words.union(optional, *aliases, ["cpu"] if is_cpu else []),
        memory_gb=tuple(float(size) for size in row["memory_gb"].split("|") if size),
        memory_type=spelling.read(row["memory_type"]).memory_type,
        is_marked_by_memory="modified" in comment,
        is_marked_by_memory_type=bool(parts.memory_type),
        is_cpu=is_cpu,
    )


def _optional_words(vendor: str, name: str) -> frozenset[str]:
    said = spelling.words(name)
    brand = said & frozenset(_BRANDS.get(vendor, "").split())
    optional = brand | {vendor.casefold()} | {word for word in said if word.startswith("sxm")}
    optional |= set(_ALSO_SAID.get(vendor, "").split())
    if "ryzen" in said:
        # The same silicon is sold with and without PRO in its name.
        optional |= {"pro"}
    if said & _BRANDS_WITH_DIGITS:
        optional |= said & _BRAND_DIGITS
    optional |= set(re.findall(r"(\d+)-core GPU", name))
    return optional | {"sxm"} if "sxm" in name.casefold() else optional


def _other_names(comment: str) -> list[str]:
    """Return the names in the brackets behind a name, `Radeon 8060S` or `CD8180/CP8180`."""
    inside = comment.rstrip(")")
    is_remark = not inside or any(word in inside for word in ("iGPU", "unknown", "modified"))
    return [] if is_remark else inside.split("/")
