"""How far each kind of effect may stray from what it falls back on.

Prior standard deviations in log units, by the first mark an effect's name contains. A chip whose
memory nobody states (every CPU) may be further from its nameplate than a graphics card.
"""

PRIORS: tuple[tuple[str, float], ...] = (
    ("~", 0.2),
    ("|stack=", 0.15),
    ("|runtime=", 0.3),
    ("|memory=", 0.15),
    ("|family=", 0.25),
    ("|CPU", 0.4),
    ("|chip=", 0.15),
    ("type=", 0.25),
    ("|backend=", 0.5),
    ("", 3.0),
)
