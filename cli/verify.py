"""`tokcast verify`: whether an exported file is as it was exported."""

import json
from pathlib import Path

from tokcast.cli.receipts import MOST_BYTES, Receipt, read
from tokcast.cli.render import Report, check_format, render
from tokcast.cli.worksheet import recalculated
from tokcast.predictor.errors import InputError

FALSE = "Its results do not follow from its inputs."


def run(file: str, output: str) -> int:
    """Print whether the receipt holds; exit code 1 when the file was changed."""
    check_format(output)
    text = _text(Path(file))
    try:
        receipt = read(text)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    notes = [f"Exported by {receipt.about.get('software', 'an unnamed version')}."]
    if receipt.kind == "JSON" and receipt.about.get("kind") == "tokcast worksheet":
        follows = recalculated(json.loads(text))
        notes.append("Its results follow from its inputs." if follows else FALSE)
    data = {
        "file": file,
        "kind": receipt.kind,
        "holds": receipt.holds,
        "stated_sha256": receipt.stated,
        "found_sha256": receipt.found,
        "notes": notes,
    }
    report = Report(_verdict(file, receipt), (), tuple(notes), data, [data])
    print(render(report, output))
    return 0 if receipt.holds else 1


def _verdict(file: str, receipt: Receipt) -> tuple[str, ...]:
    if receipt.holds:
        return ("As it was exported", f"  {file}", f"  {receipt.kind}, sha256 {receipt.stated}")
    return (
        "Changed since it was exported",
        f"  {file}",
        f"  stated sha256 {receipt.stated}",
        f"  found sha256  {receipt.found}",
    )


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path}: larger than any export of tokcast")
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected an exported file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is no text; expected a JSON, CSV or SVG export") from None
