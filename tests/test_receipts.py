"""Receipts hold for what was exported and for nothing else."""

import hashlib
import json
from pathlib import Path

import pytest
from cli_tools import good, refused, run
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.cli.receipts import digest, read, sealed_csv, sealed_json, sealed_svg
from tokcast.predictor.errors import InputError

ABOUT = {"software": "tokcast 9", "title": "é <&> \" '"}
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><text>&lt;a&gt; é</text></svg>'
TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)
NUMBER = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
DATA = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def test_the_digest_is_of_canonical_json() -> None:
    # Keys in order, no white space, numbers as ECMAScript writes them.
    text = '{"a":[1,0.5,1e+21,1e-7],"b":"é"}'
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert digest({"b": "é", "a": [1.0, 0.5, 1e21, 1e-7]}) == expected


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(TEXT.filter(lambda key: key != "receipt"), DATA, max_size=4))
def test_a_json_receipt_survives_writing_and_reading(data: dict[str, object]) -> None:
    text = sealed_json(data)
    assert read(text).holds
    assert read(json.dumps(json.loads(text), indent=4, sort_keys=True)).holds


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(TEXT, min_size=1, max_size=3), max_size=4))
def test_a_csv_receipt_survives_writing_and_reading(rows: list[list[str]]) -> None:
    kept = [row for row in rows if row != [""]]
    assert read(sealed_csv(ABOUT, kept)).holds


def test_an_svg_receipt_is_inside_and_well_formed() -> None:
    import xml.etree.ElementTree as ET

    text = sealed_svg(ABOUT, SVG)
    assert read(text).holds
    root = ET.fromstring(text)
    inside = json.loads(root.find("{*}metadata").text or "")  # type: ignore[union-attr]
    assert inside["about"] == ABOUT


@pytest.mark.parametrize(
    "text",
    [
        sealed_json({"value": 1.5}).replace("1.5", "1.6"),
        sealed_csv(ABOUT, [["a", "1"]]).replace("a,1", "a,2"),
        sealed_csv(ABOUT, [["a", "1"]]).replace("tokcast 9", "tokcast 8"),
        sealed_svg(ABOUT, SVG).replace("&lt;a&gt;", "&lt;b&gt;"),
        sealed_svg(ABOUT, SVG).replace("</svg>", "<rect/></svg>"),
    ],
)
def test_a_changed_file_does_not_hold(text: str) -> None:
    assert not read(text).holds


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "not json", '{"receipt": 5}', '{"receipt": {"sha256": 5}}', "# tokcast x\n",
     "# tokcast []\n", "<svg></svg>", '<metadata id="tokcast-receipt">x</metadata>', "[" * 99999],
)  # fmt: skip
def test_a_file_without_a_receipt_is_no_export(text: str) -> None:
    with pytest.raises(InputError, match="holds no receipt"):
        read(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**60, "\ud800"])
def test_what_has_no_canonical_form(value: object) -> None:
    with pytest.raises(InputError, match="no canonical JSON"):
        digest({"value": value})


def test_verify_says_yes_and_no(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(sealed_json({"software": "tokcast 9", "value": 1.5}))
    shown = good("verify", path)
    assert shown.startswith("As it was exported\n")
    assert f"JSON, sha256 {read(path.read_text()).stated}" in shown
    data = json.loads(good("verify", path, "-o", "json"))
    assert data["holds"] is True
    path.write_text(path.read_text().replace("1.5", "1.6"))
    result = run("verify", path)
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("Changed since it was exported\n")


def test_verify_refuses_what_is_no_export(tmp_path: Path) -> None:
    assert "No such file" in refused("verify", tmp_path / "none.json")
    binary = tmp_path / "x.png"
    binary.write_bytes(b"\x89PNG\xff\xfe")
    assert "is no text" in refused("verify", binary)
    plain = tmp_path / "plain.json"
    plain.write_text("{}")
    assert refused("verify", plain).startswith(f"{plain}: holds no receipt of tokcast; expected")
