"""Run every command that the documentation shows, and write what it prints below it.

    python docs/refresh.py            (rewrites README.md and docs/*.md in place)
    python docs/refresh.py --check    (says which pages would change, exit code 1 if one would)

An example is a line `$ tokcast …` in a fenced block marked `console`; what follows, up to the next
such line or the fence, is its output on a screen of 80 columns, without a network. Examples that
name a real file need `make oracles`. Between marks such as `<!-- rules -->` and `<!-- /rules -->`
stands a table made from the project's own data: `accuracy` from `fits/data/scores.json`, which
`tokcast fit` makes, `placed` from `fits/data/offload_scores.json`, which `tokcast evaluate --part
offload` makes, `energy` and `limits` from `fits/data/energy.json`, which `tokcast energy evaluate
--save` makes, `exponents` and `laws` from `fits/data/scaling.json`, which `tokcast scaling --save`
makes, `rules` and `energy_rules` from the cleaning rules of `measurements`, and `roofline`, the
formulas with their published figures, from `predictor/roofs/data/formulas_*.toml`.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ORACLES = Path(os.environ.get("TOKCAST_ORACLES") or ROOT / "build" / "oracles")
SCORES = ROOT / "fits" / "data" / "scores.json"
ENERGY = ROOT / "fits" / "data" / "energy.json"
PLACED = ROOT / "fits" / "data" / "offload_scores.json"
Table = tuple[tuple[str, ...], ...]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MADE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
_RUN = "from tokcast.cli.app import main; main()"
_OWN = re.compile(r"^(HF_|LLAMA_|TOKCAST_|OLLAMA_|XDG_)")


@dataclass(frozen=True)
class Example:
    """A command as it stands in a page, and the output that the page shows for it."""

    command: str
    output: str

    @property
    def files(self) -> list[str]:
        """Return the real files that the command reads."""
        return [w for w in shlex.split(self.command) if w.endswith(".gguf")]

    @property
    def can_run(self) -> bool:
        """Return whether the real files are there."""
        return all((ORACLES / name).exists() for name in self.files)


def pages() -> list[Path]:
    """Return the README and every page of docs, sorted."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def examples(text: str) -> Iterator[Example]:
    """Yield the examples of a page."""
    for block in _BLOCK.finditer(text):
        yield from _examples(block[1])


def _examples(block: str) -> Iterator[Example]:
    first, *parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    if first.strip():
        raise ValueError(f"a console block begins with {first.splitlines()[0]!r}, expected '$ '")
    for part in parts:
        command, _, output = part.partition("\n")
        yield Example(command, output.strip("\n"))


def run(command: str) -> str:
    """Return what a command prints, errors included, in an empty home and without a network."""
    name, *words = shlex.split(command)
    if name != "tokcast":
        raise ValueError(f"{command!r}: expected a tokcast command")
    with tempfile.TemporaryDirectory() as home:
        kept = {k: v for k, v in os.environ.items() if not _OWN.match(k)}
        own = {"COLUMNS": "80", "HOME": home, "USERPROFILE": home, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", _RUN, *words],
            env=kept | own,
            cwd=ORACLES if ORACLES.exists() else home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
    return done.stdout.strip("\n")


def refreshed(text: str) -> str:
    """Return a page with the outputs of its examples, and the accuracy table, made again."""

    def block(match: re.Match[str]) -> str:
        shown = (
            f"$ {e.command}\n{run(e.command) if e.can_run else e.output}".rstrip("\n")
            for e in _examples(match[1])
        )
        return "```console\n" + "\n\n".join(shown) + "\n```"

    return _MADE.sub(_made, _BLOCK.sub(block, text))


def _made(match: re.Match[str]) -> str:
    made = TABLES[match[2]]()
    text = made if isinstance(made, str) else markdown(made) if made else ""
    return match[1] + text + match[3] if text else match[0]


def roofline() -> str:
    """Return the formulas of rooflines, each with its published figures and ours."""
    from tokcast.cli.roofline_figures import page

    return page()


def accuracy() -> Table:
    """Return the held-out errors; empty where no fit has written its scores."""
    if not SCORES.exists():
        return ()
    scores = json.loads(SCORES.read_bytes())["scores"]
    columns = ("evidence", "phase", "rows", "chips", "median", "mean", "mean over chips")
    return (
        columns,
        *(
            (
                kind,
                phase,
                f"{s['n']:,}",
                f"{s['n_hosts']}",
                f"{s['median_ape']:.1f} %",
                f"{s['mape']:.1f} %",
                f"{s['host_mean_mape']:.1f} %",
            )
            for phase, by_kind in scores.items()
            for kind, s in by_kind.items()
        ),
    )


def placed() -> Table:
    """Return the held-out errors of placements, with simpler predictors beside them."""
    said = json.loads(PLACED.read_bytes())
    order = {(o["phase"], o["rows"]): o for o in said["orders"]}
    columns = ("rows", "phase", "left out", "n", "machines", "mean error", "median")
    beside = ("peaks", "scaled", "unfitted", "80 % range held", "order of plans right")
    table = [(*columns, *beside)]
    for s in said["scores"]:
        ours, told = s["ours"], order.get((s["phase"], s["rows"]))
        table.append(
            (
                s["rows"],
                s["phase"],
                s["out"],
                f"{ours['n']}",
                f"{ours['n_hosts']}",
                f"{ours['mape']:.1f} %",
                f"{ours['median_ape']:.1f} %",
                *(f"{s['baselines'][name]['mape']:,.0f} %" for name in beside[:3]),
                f"{s['held']['0.8']:.0f} %",
                f"{told['n_right']} of {told['n_pairs']}" if told else "",
            )
        )
    return tuple(table)


def rules() -> Table:
    """Return the reasons for which a measurement is kept out of the fit."""
    from tokcast.measurements.cleaning import RULES

    return (("rule", "why the row is not used"), *((f"`{r.name}`", r.reason) for r in RULES))


def energy_rules() -> Table:
    """Return the reasons for which an energy row is kept out of the fit."""
    from tokcast.measurements.energy_cleaning import ENERGY_RULES

    columns = ("rule", "why the row is not used")
    return (columns, *((f"`{r.name}`", r.reason) for r in ENERGY_RULES))


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


def energy() -> Table:
    """Return the held-out errors of energy."""
    columns = ("left out", "meter", "phase", "rows", "chips", "power", "TDP", "in 80 %")
    columns += ("J/token", "TDP x time", "inside 80 %")
    made = []
    for s in json.loads(ENERGY.read_bytes())["scores"]:
        errors = [(s[k] or {}).get("mape") for k in ("watts", "tdp_watts", "joules", "tdp_joules")]
        cells = [_shown(e) for e in errors]
        cells.insert(2, _shown(s["inside_watts"]))
        sizes = (f"{s['watts']['n']:,}", str(s["watts"]["n_hosts"]))
        named = (s["left_out"], s["meter"], s["phase"])
        made.append((*named, *sizes, *cells, _shown(s["inside_joules"])))
    return (columns, *made)


def calibrated() -> Table:
    """Return joules a token of models left out, by whose time they are."""
    columns = ("meter", "phase", "time measured", "time calibrated", "TDP x calibrated time")
    columns += ("time predicted",)
    keys = ("watts", "calibrated", "tdp_calibrated", "joules")
    return (
        columns,
        *(
            (s["meter"], s["phase"], *(_shown((s[k] or {}).get("mape")) for k in keys))
            for s in json.loads(ENERGY.read_bytes())["scores"]
            if s.get("calibrated") is not None
        ),
    )


def limits() -> Table:
    """Return how the best power limit of sweeps left out is predicted."""
    columns = ("chip", "sweep", "best", "predicted", "steps", "speed", "energy", "saves")
    return (
        columns,
        *(
            (
                s["sweep"]["chip"],
                s["sweep"]["name"],
                f"{s['measured_w']:.0f} W",
                f"{s['predicted_w']:.0f} W",
                f"{s['steps']:.0f}",
                _shown(s["speed_mape"]),
                _shown(s["energy_mape"]),
                f"{100 * s['saved']:.0f} %",
            )
            for s in json.loads(ENERGY.read_bytes())["limits"]
        ),
    )


def _law_table(which: str) -> Table:
    from tokcast.cli.scaling import exponent_table, law_table
    from tokcast.fits.scaling_released import released_laws

    table = {"exponents": exponent_table, "laws": law_table}[which](released_laws())
    return (table.columns, *table.rows)


def exponents() -> Table:
    """Return the exponents of the scaling laws with their intervals."""
    return _law_table("exponents")


def laws() -> Table:
    """Return the scaling laws' rows, errors and bends."""
    return _law_table("laws")


TABLES = {
    "accuracy": accuracy,
    "placed": placed,
    "rules": rules,
    "energy_rules": energy_rules,
    "energy": energy,
    "calibrated": calibrated,
    "limits": limits,
    "exponents": exponents,
    "laws": laws,
    "roofline": roofline,
}


def markdown(table: Table) -> str:
    """Return rows, the first one a header, as Markdown; nothing for no rows."""
    if not table:
        return ""
    columns, *rows = table
    lines = (columns, ("---",) * len(columns), *rows)
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def main() -> int:
    """Rewrite or check the pages."""
    parser = argparse.ArgumentParser(description="Refresh the outputs in the documentation.")
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    said, changed = [], False
    for page in pages():
        old = page.read_text(encoding="utf-8")
        new = refreshed(old)
        missing = [e.command for e in examples(new) if not e.can_run]
        said += [f"{page.name}: its file is missing (make oracles): {c}" for c in missing]
        if new != old:
            changed = True
            said.append(f"{page.name}: {'differs' if check else 'refreshed'}")
            if not check:
                page.write_text(new, encoding="utf-8")
    sys.stdout.write("".join(f"{line}\n" for line in said))
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
