"""Receipts: a SHA-256 over canonical JSON (RFC 8785), carried by JSON, CSV and SVG files.

What is hashed is, for JSON, the document without its `receipt`; for CSV the object
`{"about": …, "rows": [[cell, …], …]}`; for SVG `{"about": …, "svg": text}`, the text being the
drawing without the element that carries the receipt. `about` says what was asked and by which
version, and stands in the file.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from typing import Any

from tokcast.predictor.errors import InputError

METHOD = "sha256 over RFC 8785 canonical JSON"
MOST_BYTES = 64 << 20
_ELEMENT = re.compile(r'<metadata id="tokcast-receipt">(.*?)</metadata>', re.DOTALL)
_CSV_MARK = "# tokcast "
_MISSING = "holds no receipt of tokcast; expected a JSON, CSV or SVG file that it exported"


@dataclass(frozen=True, slots=True)
class Receipt:
    """A file's receipt: the kind of file, what it says of itself, and both digests."""

    kind: str
    about: Mapping[str, Any]
    stated: str
    found: str

    @property
    def holds(self) -> bool:
        """Return whether the file is as it was exported."""
        return self.stated == self.found


def digest(data: Any) -> str:
    """Return the SHA-256 of data's canonical JSON; raises InputError for what has none."""
    import rfc8785

    try:
        return hashlib.sha256(rfc8785.dumps(data)).hexdigest()
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as error:
        raise InputError(f"no canonical JSON: {error}") from None


def sealed_json(data: Mapping[str, Any]) -> str:
    """Return a JSON document with its receipt."""
    receipt = {"method": METHOD, "sha256": digest(data)}
    return json.dumps({**data, "receipt": receipt}, indent=1, allow_nan=False)


def sealed_csv(about: Mapping[str, Any], rows: Sequence[Sequence[str]]) -> str:
    """Return a CSV whose first line is a comment with its receipt."""
    listed = [[*row] for row in rows]
    receipt = {"about": dict(about), "sha256": digest({"about": dict(about), "rows": listed})}
    # Unquoted, a lone carriage return would be read back as the end of a row.
    has_return = any("\r" in cell for row in listed for cell in row)
    out = io.StringIO()
    if has_return:
        csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(listed)
    else:
        csv.writer(out, lineterminator="\n").writerows(listed)
    return f"{_CSV_MARK}{json.dumps(receipt)}\n{out.getvalue()}"


def sealed_svg(about: Mapping[str, Any], svg: str) -> str:
    """Return a drawing that carries its receipt in a metadata element."""
    receipt = {"about": dict(about), "sha256": digest({"about": dict(about), "svg": svg})}
    element = f'<metadata id="tokcast-receipt">{escape(json.dumps(receipt))}</metadata>'
    body, end = svg[: -len("</svg>")], svg[-len("</svg>") :]
    return body + element + end


def read(text: str) -> Receipt:
    """Return a file's receipt; raises InputError for a file without one."""
    if text.startswith(_CSV_MARK):
        return _of_csv(text)
    found = _ELEMENT.search(text)
    if found is not None:
        return _of_svg(text, found)
    return _of_json(text)


def _of_csv(text: str) -> Receipt:
    first, _, rest = text.partition("\n")
    receipt = _parsed(first.removeprefix(_CSV_MARK))
    rows = list(csv.reader(io.StringIO(rest, newline="")))
    return _checked("CSV", receipt, {"rows": rows})


def _of_svg(text: str, found: re.Match[str]) -> Receipt:
    receipt = _parsed(unescape(found[1]))
    return _checked("SVG", receipt, {"svg": text[: found.start()] + text[found.end() :]})


def _of_json(text: str) -> Receipt:
    data = _parsed(text)
    receipt = data.pop("receipt", None)
    stated = receipt.get("sha256") if isinstance(receipt, dict) else None
    if not isinstance(stated, str):
        raise InputError(_MISSING)
    about: dict[str, Any] = {k: data[k] for k in ("kind", "software") if k in data}
    return Receipt("JSON", about, stated, digest(data))


def _checked(kind: str, receipt: dict[str, Any], content: dict[str, Any]) -> Receipt:
    about, stated = receipt.get("about"), receipt.get("sha256")
    if not isinstance(about, dict) or not isinstance(stated, str):
        raise InputError(_MISSING)
    return Receipt(kind, about, stated, digest({"about": about, **content}))


def _parsed(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(_MISSING) from None
    if not isinstance(data, dict):
        raise InputError(_MISSING)
    return data
