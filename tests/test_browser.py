"""The page in a real browser: Debian's Chromium, driven by Playwright.

Skipped by name where either is absent; with TOKCAST_REQUIRE_BROWSER=1, as in CI, that is a
failure. Screenshots go to build/screenshots.
"""

import json
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cli_tools import good, small

from tokcast.cli.receipts import read

ROOT = Path(__file__).parents[1]
REQUIRED = os.environ.get("TOKCAST_REQUIRE_BROWSER") == "1"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
AXE = ROOT / "build" / "browser" / "package" / "axe.min.js"
SHOTS = ROOT / "build" / "screenshots"
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
PAIR = "m=gpt-oss-20b%40MXFP4_MOE&h=RTX+4090"
OTHER = "m=qwen3-30b-a3b%40Q4_K_M&h=M4+Max+40-core"

if not REQUIRED:
    pytest.importorskip("fastapi", reason="the web page needs fastapi and uvicorn")
    pytest.importorskip("playwright", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed", allow_module_level=True)

from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402
from web_tools import Site, site  # noqa: E402


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as p:
        found = p.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield found
        found.close()


class Window:
    """A page that fails its test when it logs an error, throws, or asks another host."""

    def __init__(self, browser: Browser, server: Site, **options: Any) -> None:
        self.context = browser.new_context(
            **{"viewport": {"width": 1360, "height": 900}, "accept_downloads": True, **options}
        )
        self.page: Page = self.context.new_page()
        self.server = server
        self.complaints: list[str] = []
        self.expected: tuple[str, ...] = ()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.server.url, "data:", "blob:")):
            self.complaints.append(f"asked for {request.url}")

    def open(self, query: str = PAIR, ready: str = ".verdict") -> Page:
        self.page.goto(f"{self.server.url}/?{query}")
        self.page.wait_for_selector(ready)
        return self.page

    def shot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png", full_page=True)

    def close(self) -> None:
        self.context.close()
        found = [c for c in self.complaints if not any(words in c for words in self.expected)]
        assert found == []


@pytest.fixture
def window(browser: Browser, server: Site) -> Iterator[Window]:
    found = Window(browser, server)
    yield found
    found.close()


def speed(page: Page, i: int = 0) -> float:
    text = page.locator(".speed.main .number").nth(i).inner_text()
    return float(text.replace("tok/s", "").replace(",", "").strip())


def state(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def settled(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(100)


def test_it_loads_and_says_what_the_command_says(window: Window) -> None:
    page = window.open()
    words = ("predict", "gpt-oss-20b@MXFP4_MOE", "--host", "RTX 4090", "-d", "0", "-o", "json")
    told = json.loads(good(*words))["predictions"]
    decode = next(p["tok_per_s"] for p in told if p["phase"] == "decode")
    assert speed(page) == pytest.approx(decode, rel=0.01)
    expect(page.locator("#plot-decode svg")).to_be_visible()
    expect(page.locator("#plot-roofline svg circle").first).to_be_attached()
    expect(page.locator("#memory .device")).to_have_count(2)
    expect(page.locator("#ledger table")).to_have_count(2)
    expect(page.locator("#why p").first).to_contain_text("Reading 512 tokens")
    settled(page)
    window.shot("light")


def test_energy_follows_the_price_and_the_grid(window: Window) -> None:
    page = window.open()
    place = page.locator("#energy")
    expect(place.locator("tbody tr")).to_have_count(2)
    expect(place).to_contain_text("1,000 answers of 512 + 128 tokens")
    expect(place).not_to_contain_text("CO2")
    page.get_by_text("Price and grid").click()
    page.get_by_label("A kWh costs").fill("0.3")
    page.get_by_label("Grid").select_option("DE")
    expect(place).to_contain_text("at 0.3 a kWh")
    expect(place).to_contain_text("g CO2")
    settled(page)
    assert state(page)["price"] == ["0.3"]
    assert state(page)["grid"] == ["DE"]
    page.reload()
    expect(place).to_contain_text("at 0.3 a kWh")
    page.get_by_label("A kWh costs").fill("-1")
    expect(place).not_to_contain_text("a kWh")


def test_the_page_is_light(window: Window) -> None:
    sizes: list[int] = []
    window.page.on("response", lambda r: sizes.append(len(r.body())))
    page = window.open(f"{PAIR}&{OTHER}")
    settled(page)
    names = {"worksheet.js", "gguf.js", "docs.html", "docs.js"}
    later = sum((ROOT / "cli" / "web" / "static" / name).stat().st_size for name in names)
    assert 0 < sum(sizes) + later <= 300_000


def test_choosing_with_the_keyboard(window: Window) -> None:
    page = window.open()
    host = page.get_by_role("combobox", name="Host")
    host.focus()
    host.fill("rtx 3090")
    expect(page.locator(".list li").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(host).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Enter")
    expect(page.locator(".verdict .on")).to_contain_text("RTX 3090")
    model = page.get_by_role("combobox", name="Model")
    model.fill("llama 8b")
    page.get_by_role("option", name="llama-3.1-8b").first.click()
    expect(page.locator(".verdict h2")).to_contain_text("Llama 3.1 8B")
    page.get_by_label("File type").select_option("Q8_0")
    expect(page.locator(".verdict h2")).to_contain_text("Q8_0")
    assert state(page)["m"] == ["llama-3.1-8b@Q8_0"]
    model.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(model).to_have_attribute("aria-expanded", "false")


def test_dragging_the_depth_slows_it_down_and_stays_in_the_address(window: Window) -> None:
    page = window.open()
    before = speed(page)
    box = page.locator("#depth").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8, middle)
    page.mouse.down()
    for share in (0.2, 0.4, 0.6, 0.7):
        page.mouse.move(box["x"] + share * box["width"], middle)
    page.mouse.up()
    settled(page)
    assert speed(page) < 0.95 * before
    depth = int(state(page)["d"][0])
    assert depth > 4096
    after = speed(page)
    page.reload()
    page.wait_for_selector(".verdict")
    assert speed(page) == after
    page.locator("#depth").focus()
    page.keyboard.press("Home")
    settled(page)
    assert "d" not in state(page)
    assert speed(page) == before


def test_pointing_at_a_curve_tells_its_value(window: Window) -> None:
    page = window.open()
    page.locator("#plot-decode").scroll_into_view_if_needed()
    page.locator("#plot-decode svg").hover(position={"x": 200, "y": 120})
    expect(page.locator("#tip")).to_contain_text("tok/s")


def with_vocabulary(path: Path, model: Path, n_tokens: int) -> Path:
    """Write a GGUF like another, but with a vocabulary in front, as real files have it."""
    data = model.read_bytes()
    n_tensors, n_entries = struct.unpack_from("<QQ", data, 8)
    key = b"tokenizer.ggml.tokens"
    tokens = b"".join(struct.pack("<Q", 8) + b"%08d" % i for i in range(n_tokens))
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<IIQ", 9, 8, n_tokens) + tokens
    path.write_bytes(
        data[:8] + struct.pack("<QQ", n_tensors, n_entries + 1) + entry + data[24:] + bytes(4 << 20)
    )
    return path


def drop(page: Page, path: Path, name: str) -> None:
    handle = page.evaluate_handle(
        """async ([bytes, name]) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([new Uint8Array(bytes)], name));
          return transfer;
        }""",
        [list(path.read_bytes()), name],
    )
    page.dispatch_event("#drop", "dragenter", {"dataTransfer": handle})
    page.dispatch_event("#drop", "drop", {"dataTransfer": handle})


def test_a_dropped_file_is_read_here_and_only_its_header_is_sent(
    window: Window, tmp_path: Path
) -> None:
    page = window.open()
    model = small(tmp_path / "plain.gguf", name="Dropped One")
    path = with_vocabulary(tmp_path / "dropped.gguf", model, 40_000)
    sent: list[int] = []
    page.on(
        "request",
        lambda r: sent.append(len(r.post_data_buffer or b"")) if "upload" in r.url else None,
    )
    page.set_input_files("#file", path)
    expect(page.locator(".verdict h2")).to_contain_text("Dropped One")
    expect(page.locator("#drop-note")).to_contain_text("sent to this server")
    assert len(sent) == 1
    assert sent[0] < 80_000
    assert path.stat().st_size > 4_500_000
    assert state(page)["m"][0].startswith("upload:")


def test_dropping_by_hand_and_what_is_no_model(window: Window, tmp_path: Path) -> None:
    window.expected = ("400 (Bad Request)",)
    page = window.open()
    drop(page, small(tmp_path / "d.gguf", name="By Hand"), "d.gguf")
    expect(page.locator(".verdict h2")).to_contain_text("By Hand")
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"PK\x03\x04" + bytes(100))
    drop(page, bad, "bad.gguf")
    expect(page.locator("#problem")).to_contain_text("expected a GGUF file")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(small(tmp_path / "e.gguf").read_bytes()[:200])
    drop(page, cut, "cut.gguf")
    expect(page.locator("#drop-note")).to_contain_text("beyond the file")


def test_a_hostile_name_is_text_everywhere(window: Window, tmp_path: Path) -> None:
    page = window.open()
    hostile = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
    drop(page, small(tmp_path / "x.gguf", name=hostile), "<b>x</b>.gguf")
    expect(page.locator(".verdict h2")).to_contain_text("<img src=x")
    settled(page)
    page.get_by_role("button", name="Worksheet").click()
    page.wait_for_selector("#sheet-results article")
    assert page.evaluate("window.hit") is None
    assert page.locator("img, script:not([type=module])").count() == 0


def test_comparing_up_to_four(window: Window) -> None:
    page = window.open(f"{PAIR}&{OTHER}&d=8192")
    expect(page.locator(".verdict")).to_have_count(2)
    page.get_by_role("button", name="Compare with another").click()
    expect(page.locator(".verdict")).to_have_count(3)
    page.get_by_role("button", name="Compare with another").click()
    expect(page.locator(".verdict")).to_have_count(4)
    expect(page.locator("#add")).to_be_hidden()
    assert len(state(page)["m"]) == 4
    settled(page)
    window.shot("compare")
    page.get_by_role("button", name="Remove pair 2").click()
    expect(page.locator(".verdict")).to_have_count(3)


def saved(page: Page, press: str, folder: Path) -> Path:
    with page.expect_download() as info:
        page.locator(press).click()
    path = folder / info.value.suggested_filename
    info.value.save_as(path)
    return path


def test_exports_carry_receipts_that_hold(window: Window, tmp_path: Path) -> None:
    page = window.open(f"{PAIR}&{OTHER}")
    path = saved(page, '[data-figure="roofline"]', tmp_path)
    assert "As it was exported" in good("verify", path)
    text = path.read_text(encoding="utf-8")
    assert "M4 Max" in text
    page.get_by_role("button", name="Worksheet").click()
    page.wait_for_selector("#sheet-results article")
    for form in ("json", "csv", "svg"):
        path = saved(page, f'[data-form="{form.upper()}"]', tmp_path)
        assert "As it was exported" in good("verify", path)
        assert read(path.read_text(encoding="utf-8")).holds
    data = json.loads((tmp_path / "tokcast-worksheet.json").read_text(encoding="utf-8"))
    page_digest = page.evaluate(
        """async (data) => {
          const sorted = (v) => Array.isArray(v) ? v.map(sorted) : v && typeof v === "object"
            ? Object.fromEntries(Object.keys(v).sort().map((k) => [k, sorted(v[k])])) : v;
          const bytes = new TextEncoder().encode(JSON.stringify(sorted(data)));
          const digest = await crypto.subtle.digest("SHA-256", bytes);
          return [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, "0")).join("");
        }""",
        {key: value for key, value in data.items() if key != "receipt"},
    )
    assert page_digest == data["receipt"]["sha256"]


def test_the_worksheet_follows_its_inputs(window: Window) -> None:
    page = window.open(f"{PAIR}&view=worksheet", "#sheet-results article")
    settled(page)
    window.shot("worksheet")
    big = page.locator("#sheet-results .big").first
    before = float(big.inner_text().split()[0].replace(",", ""))
    field = page.locator('[data-key="bytes_per_s"]')
    field.fill(str(2 * float(field.input_value())))
    settled(page)
    after = float(big.inner_text().split()[0].replace(",", ""))
    assert after > before
    expect(page.locator("tr.edited")).to_have_count(1)
    expect(page.locator("tr.edited select")).to_have_value("assumed")
    field.fill("-1")
    expect(page.locator("#problem")).to_contain_text("expected a finite number above 0")
    expect(field).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Undo edits").click()
    settled(page)
    assert float(big.inner_text().split()[0].replace(",", "")) == before
    link = page.locator("#view-worksheet td.source a").first
    expect(link).to_have_attribute("rel", "noopener noreferrer")


def test_without_a_network_it_still_works(browser: Browser, server: Site) -> None:
    window = Window(browser, server)
    blocked: list[str] = []

    def only_this_machine(route: Any) -> None:
        if route.request.url.startswith(server.url):
            route.continue_()
        else:
            blocked.append(route.request.url)
            route.abort()

    window.page.route("**/*", only_this_machine)
    page = window.open()
    settled(page)
    assert blocked == []
    window.close()


def test_a_server_that_went_away_is_told(browser: Browser) -> None:
    with site() as gone:
        window = Window(browser, gone)
        window.expected = ("Failed to load resource",)
        page = window.open()
        settled(page)
    page.locator("#depth").focus()
    page.keyboard.press("End")
    expect(page.locator("#problem")).to_contain_text("does not answer")
    window.close()


def test_bad_addresses_are_told_and_hold_nothing(window: Window) -> None:
    window.expected = ("400 (Bad Request)",)
    query = "m=%3Cscript%3Ealert(1)%3C%2Fscript%3E&h=RTX+4090&d=-5&p=x&ctk=evil&view=other"
    page = window.page
    page.goto(f"{window.server.url}/?{query}")
    expect(page.locator("#problem")).to_be_visible()
    assert page.locator("script:not([type=module])").count() == 0
    assert "d" not in state(page)


@pytest.mark.parametrize("view", ["predict", "worksheet", "docs"])
@pytest.mark.parametrize("width", [400, 1360])
def test_phone_and_desktop_fit_their_width(
    browser: Browser, server: Site, view: str, width: int
) -> None:
    window = Window(browser, server, viewport={"width": width, "height": 800})
    page = visited(window, view)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    window.shot(f"{view}-{width}")
    window.close()


def visited(window: Window, view: str) -> Page:
    if view == "docs":
        window.page.goto(f"{window.server.url}/docs")
        window.page.wait_for_selector("details")
    else:
        ready = ".verdict" if view == "predict" else "#sheet-results article"
        window.open(f"{PAIR}&{OTHER}&d=8192&view={view}", ready)
    settled(window.page)
    return window.page


def test_dark_and_light(browser: Browser, server: Site) -> None:
    window = Window(browser, server, color_scheme="dark")
    page = window.open(f"{PAIR}&{OTHER}")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(15, 18, 23)"
    settled(page)
    window.shot("dark")
    page.locator("#theme").click()
    assert page.evaluate(ground) == "rgb(245, 244, 241)"
    page.reload()
    page.wait_for_selector(".verdict")
    assert page.evaluate(ground) == "rgb(245, 244, 241)"
    window.close()


@pytest.mark.parametrize("view", ["predict", "worksheet", "docs"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1360])
def test_axe_finds_nothing_serious(
    browser: Browser, server: Site, view: str, scheme: str, width: int
) -> None:
    if not AXE.exists() and not REQUIRED:
        pytest.skip("axe-core is not in build/browser (npm pack axe-core)")
    window = Window(browser, server, color_scheme=scheme, viewport={"width": width, "height": 900})
    page = visited(window, view)
    if view == "docs":
        page.locator("summary").nth(2).click()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    serious = [
        (v["id"], v["impact"], [n["html"][:160] for n in v["nodes"][:3]])
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == []
    window.close()
