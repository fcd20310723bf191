"""Which core design a processor has, by its CPUID family and model."""

# (family, first model, last model, design as the registry names it); numbers as in Linux's
# intel-family.h and AMD's processor programming references.
_DESIGNS = (
    (16, 0x00, 0xFF, "K10"),
    (21, 0x00, 0xFF, "Piledriver"),
    (23, 0x00, 0x2F, "Zen"),
    (23, 0x30, 0xFF, "Zen 2"),
    (25, 0x00, 0x0F, "Zen 3"),
    (25, 0x10, 0x1F, "Zen 4"),
    (25, 0x20, 0x5F, "Zen 3"),
    (25, 0x60, 0xFF, "Zen 4"),
    (26, 0x00, 0xFF, "Zen 5"),
    (6, 42, 42, "sandybridge"),
    (6, 44, 44, "westmere"),
    (6, 45, 45, "sandybridge"),
    (6, 58, 58, "ivybridge"),
    (6, 60, 60, "haswell"),
    (6, 61, 61, "broadwell"),
    (6, 62, 62, "ivybridge"),
    (6, 63, 63, "haswell"),
    (6, 69, 70, "haswell"),
    (6, 71, 71, "broadwell"),
    (6, 78, 78, "skylake"),
    (6, 79, 79, "broadwell"),
    (6, 85, 85, "skylake-avx512"),
    (6, 86, 86, "broadwell"),
    (6, 94, 94, "skylake"),
    (6, 106, 108, "icelake"),
    (6, 125, 126, "icelake"),
    (6, 140, 141, "tigerlake"),
    (6, 142, 142, "skylake"),
    (6, 143, 143, "sapphirerapids"),
    (6, 151, 154, "alderlake"),
    (6, 158, 158, "skylake"),
    (6, 165, 166, "skylake"),
    (6, 167, 167, "rocketlake"),
    (6, 170, 172, "Meteor Lake"),
    (6, 173, 174, "Granite Rapids"),
    (6, 183, 183, "Raptor Lake"),
    (6, 186, 186, "Raptor Lake"),
    (6, 189, 189, "Lunar Lake"),
    (6, 190, 190, "Gracemont (Alder Lake-N)"),
    (6, 191, 191, "Raptor Lake"),
    (6, 197, 198, "Arrow Lake"),
    (6, 207, 207, "sapphirerapids"),
)


def core_design(name: str, family: int | None, model: int | None) -> str:
    """Return a core design as the registry writes it: by CPUID, an Arm core by name, else empty."""
    if name.startswith(("Cortex", "Neoverse")):
        return name
    if family is None or model is None:
        return ""
    for known_family, first, last, design in _DESIGNS:
        if family == known_family and first <= model <= last:
            return design
    return ""
