"""The bench: what a person sees and does on the report page, in a browser."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from test_page_physics import example_robot

import armdyn
from armdyn.pages import robot
from armdyn.references import citation
from armdyn.report.card import card
from armdyn.report.collect import collect, parameters
from armdyn.report.page import page
from browser import browser, needs_browser  # noqa: F401

pytestmark = needs_browser
ROBOTS = ["puma560", "panda_hand", "talos_reduced"]
SIZES = [(1280, 800), (900, 800), (390, 844)]  # labels and fields are whole in all of them


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """(arm, address) of a robot's page; operation counts and speeds, which take long, are those of a small arm."""
    folder, small, made = tmp_path_factory.mktemp("bench"), collect(armdyn.load("planar3")), {}

    def of(name):
        if name not in made:
            arm = armdyn.load(example_robot(name) if name == "talos_reduced" else name)
            path = folder / f"{name}.html"
            data = {**small, "card": card(arm), "parameters": parameters(arm), "robot": robot(arm)}
            path.write_text(page(data, citation()), encoding="utf-8")
            made[name] = arm, path.as_uri()
        return made[name]

    return of


@pytest.fixture
def opened(browser, pages):  # noqa: F811
    """Opens the page of a robot, fresh, at a size."""

    def of(name, size=(1280, 800), fragment=""):
        arm, address = pages(name)
        browser.leave()
        browser.size(*size)
        browser.open(address + fragment)
        return arm

    yield of
    assert browser.errors() == []


INSIDE = """
const inside = (e) => { const r = e.getBoundingClientRect();
  return r.width > 0 && r.height > 0 && r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight + 0.5
    && r.right <= innerWidth + 0.5; };
const out = [...document.querySelectorAll(arguments[0])].filter((e) => !e.hidden && !inside(e));
return [document.querySelectorAll(arguments[0]).length, out.map((e) => e.id || e.outerHTML.slice(0, 80))];"""


@pytest.mark.parametrize("name", ROBOTS)
def test_posture_and_dynamics_stand_above_the_fold(browser, opened, name):  # noqa: F811
    arm = opened(name)
    rows = "#joints tbody tr:not([hidden])"
    seen, out = browser.run(INSIDE, f"#arm-view, {rows}, #payload, #fall, #hold, #play, #clock, #H, canvas.trace")
    assert out == []
    assert seen == 9 + (arm.n if arm.n <= 10 else 6)  # a humanoid's limbs: legs, torso, arms, head
    assert browser.run("return [document.documentElement.scrollHeight <= 800, scrollX, scrollY]") == [True, 0, 0]


@pytest.mark.parametrize("name", ["puma560", "talos_reduced"])
def test_a_refresh_is_quick(browser, opened, name):  # noqa: F811
    """Posture to table, compared with 100 000 square roots and divisions timed in the same page: 0.01 to 0.03 of it."""
    opened(name)
    ratio = browser.run(
        """armdyn.table.open(true);
        const time = (act, count) => { let best = Infinity; for (let round = 0; round < 7; round++) {
          const from = performance.now(); for (let k = 0; k < count; k++) act(k);
          best = Math.min(best, (performance.now() - from) / count); } return best; };
        let sum = 0; const { q } = armdyn.arm.arrays, { first } = armdyn.arm.robot;
        const fixed = time(() => { for (let k = 1; k < 1e5; k++) sum += Math.sqrt(k) / k; }, 5);
        const refresh = time((k) => { const next = Array.from(q); next[first] = 1e-3 * k; armdyn.posture(next); }, 40);
        return refresh / fixed + 0 * sum;"""
    )
    assert ratio < 0.5


def second(name):
    """The index of a joint that gravity loads, within whose limits -30° is."""
    return 5 if name == "talos_reduced" else 1


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
@pytest.mark.parametrize("name", ROBOTS)
def test_a_slider_changes_its_gravity_torque_at_once(browser, opened, name, size):  # noqa: F811
    arm = opened(name, size)
    k = second(name)
    q, text, seen = browser.run(
        """armdyn.table.open(true);
        const slider = document.getElementById(arguments[0]), cell = slider.closest("tr").querySelector(".gravity");
        slider.value = arguments[1]; slider.dispatchEvent(new Event("input"));
        const text = cell.textContent; slider.scrollIntoView({ block: "center" });
        const seen = [slider, cell].every((e) => { const r = e.getBoundingClientRect();
          return r.left >= 0 && r.right <= innerWidth && r.top >= 0 && r.bottom <= innerHeight; });
        return [Array.from(armdyn.arm.arrays.q), text, seen];""",
        f"q{k + 1}",
        0.7 if name == "talos_reduced" else -0.7,
    )
    assert seen
    assert abs(q[k]) == pytest.approx(0.7)
    assert abs(arm.gravity_load(np.array(q))[k]) > 1
    assert float(text.replace("−", "-")) == pytest.approx(arm.gravity_load(np.array(q))[k], abs=0.051)


def enter(browser, key, text):  # noqa: F811
    """Type into a number field, as a person would, and press Enter."""
    browser.run(
        """const field = document.getElementById(arguments[0]); field.focus(); field.value = arguments[1];
        field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));""",
        key,
        text,
    )


GRAVITY = (
    """return [...document.querySelectorAll("#joints td.gravity")].map((e) => +e.textContent.replace("−", "-"));"""
)


def test_numbers_can_be_typed(browser, opened):  # noqa: F811
    arm = opened("puma560")
    for text in ("−30", "-30", "-30,0", "-30°", "-0.5235987755982988 rad"):
        enter(browser, "n2", "5")
        enter(browser, "n2", text)
        q = np.array(browser.run("return Array.from(armdyn.arm.arrays.q)"))
        assert np.degrees(q[1]) == pytest.approx(-30, abs=1e-9)
    np.testing.assert_allclose(browser.run(GRAVITY), arm.gravity_load(q), atol=0.051)
    enter(browser, "n2", "abc")
    assert browser.run("return document.getElementById('n2').getAttribute('aria-invalid')") == "true"
    assert browser.run("return armdyn.arm.arrays.q[1]") == q[1]
    enter(browser, "payload", "3")
    assert browser.run("return armdyn.arm.arrays.mass[0]") == 3
    loaded = arm.with_payload(3, browser.run("return armdyn.conditions.values().at"))
    np.testing.assert_allclose(browser.run(GRAVITY), loaded.gravity_load(q), atol=0.051)
    assert "3 kg" in browser.run("return document.querySelector('.chips').textContent")
    browser.run("document.querySelector('.chip').click()")  # takes it back
    np.testing.assert_allclose(browser.run(GRAVITY), arm.gravity_load(q), atol=0.051)
    enter(browser, "n2", "400")  # beyond the limit: what is allowed
    assert browser.run("return armdyn.arm.arrays.q[1]") == pytest.approx(arm.limits[1, 1])


@pytest.mark.parametrize("name", ["panda_hand", "talos_reduced"])
def test_numbers_can_be_typed_for_every_robot(browser, opened, name):  # noqa: F811
    arm = opened(name, (390, 844))
    browser.run("armdyn.table.open(true)")
    k = int(np.flatnonzero((arm.limits[:, 0] < -0.6) & (arm.limits[:, 1] > 0))[1])
    enter(browser, f"n{k + 1}", "−30")
    q = np.array(browser.run("return Array.from(armdyn.arm.arrays.q)"))
    assert np.degrees(q[k]) == pytest.approx(-30, abs=1e-9)
    np.testing.assert_allclose(browser.run(GRAVITY), arm.gravity_load(q), atol=0.051)
    enter(browser, "payload", "3")
    assert browser.run("return armdyn.arm.arrays.mass[0]") == 3
    if arm.tool is not None:
        loaded = arm.with_payload(3, browser.run("return armdyn.conditions.values().at"))
        np.testing.assert_allclose(browser.run(GRAVITY), loaded.gravity_load(q), atol=0.051)


@pytest.mark.parametrize("name", ["puma560", "panda_hand"])
def test_a_pinned_reference_gives_differences(browser, opened, name):  # noqa: F811
    arm = opened(name)
    enter(browser, "n2", "-30")
    first = np.array(browser.run("document.getElementById('pin').click(); return Array.from(armdyn.arm.arrays.q)"))
    enter(browser, "n3", "40")
    enter(browser, "payload", "2")
    q, at, shown = browser.run(
        """return [Array.from(armdyn.arm.arrays.q), armdyn.conditions.values().at,
        [...document.querySelectorAll("#joints td.delta")].map((e) => +e.textContent.replace("−", "-"))]"""
    )
    truth = arm.with_payload(2, at).gravity_load(np.array(q)) - arm.gravity_load(first)
    np.testing.assert_allclose(shown, truth, atol=0.051)
    before = browser.run(GRAVITY)
    for mode in ("hold", "pd", "free"):
        browser.run(f"armdyn.world.control('{mode}'); armdyn.refresh(true)")
        assert browser.run(GRAVITY) == before


@pytest.mark.parametrize("name", ROBOTS)
def test_play_on_a_fresh_page_lets_the_arm_fall(browser, opened, name):  # noqa: F811
    opened(name)
    moved = browser.wait(
        """const done = arguments[0], at = () => Array.from(armdyn.arm.arrays.poses), first = at();
        document.getElementById("play").click();
        setTimeout(() => { const now = at(); document.getElementById("play").click();
          done(Math.max(...now.map((x, k) => (k % 16 % 4 === 3 ? Math.abs(x - first[k]) : 0)))); }, 1000);"""
    )
    assert moved > 0.01


@pytest.mark.parametrize("name", ["puma560", "panda_hand"])
def test_a_second_of_fall_is_that_of_simulate(browser, opened, name):  # noqa: F811
    arm = opened(name)
    q = browser.run("for (let k = 0; k < 50; k++) armdyn.world.steps(20); return Array.from(armdyn.arm.arrays.q)")
    truth = armdyn.simulate(arm, arm.rest, duration=1.0, limits="stop").q[-1]
    assert np.degrees(np.abs(q - truth)).max() < 0.5


BOXES = """const shown = "button, input, select, td, th, canvas, summary, #clock, #factor, #peak";
return [...document.querySelectorAll(shown)].map((e) => {
  const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height].join(); });"""


@pytest.mark.parametrize(
    ("name", "size", "seconds"),
    [
        ("puma560", (1280, 800), 3),
        ("puma560", (390, 844), 1),
        ("panda_hand", (900, 800), 1),
        ("panda_hand", (390, 844), 1),
        ("talos_reduced", (1280, 800), 1),
    ],
)
def test_nothing_moves_but_values(browser, opened, name, size, seconds):  # noqa: F811
    opened(name, size)
    before = browser.run(BOXES)
    browser.wait("document.getElementById('fall').click(); setTimeout(arguments[1], 1000 * arguments[0])", seconds)
    assert browser.run("return armdyn.world.t") > 0.1
    assert browser.run(BOXES) == before


def test_the_real_time_factor_is_true(browser, opened):  # noqa: F811
    opened("puma560")
    shown, true = browser.wait(
        """const done = arguments[0], { world } = armdyn, seen = [];
        const busy = (now) => {
          seen.push([now, world.t, document.getElementById("factor").textContent]);
          const until = performance.now() + 120; while (performance.now() < until);
          if (now - seen[0][0] < 3500) { requestAnimationFrame(busy); return; }
          const last = seen[seen.length - 1], first = seen.find(([at]) => last[0] - at <= 1500);
          done([last[2], (last[1] - first[1]) / (last[0] - first[0]) * 1000]);
        };
        document.getElementById("fall").click(); requestAnimationFrame(busy);"""
    )
    assert float(shown.split("×")[0]) == pytest.approx(true, rel=0.05)


def test_the_last_seconds_can_be_scrubbed(browser, opened):  # noqa: F811
    opened("puma560")
    got = browser.wait(
        """const done = arguments[0], { world, history, arm } = armdyn, { data } = history;
        document.getElementById("fall").click();
        setTimeout(() => {
          const scrub = document.getElementById("scrub"); scrub.value = -0.5; scrub.dispatchEvent(new Event("input"));
          const at = world.t, k = data.t.indexOf(at), q = Array.from(arm.arrays.q), end = world.end;
          armdyn.play(true);
          done({ playing: true, at, end, same: q.every((x, i) => x === data.q[i][k]),
            last: data.t[data.t.length - 1] });
        }, 1500);"""
    )
    assert got["same"]
    assert got["end"] - got["at"] == pytest.approx(0.5, abs=0.2)
    assert got["last"] == got["at"]  # what came after is no longer the history


def test_parameters_say_what_cannot_be_determined(browser, opened):  # noqa: F811
    opened("puma560")
    counts = """return [".kind-1", ".kind-2", ".kind-0"].map((k) => document.querySelectorAll("#grid " + k).length)"""
    assert browser.run(counts) == [19, 32, 9]
    changed, words = browser.wait(
        """const done = arguments[0], view = document.getElementById("arm-view");
        armdyn.show("parameters");
        const grab = () => { armdyn.viewer.draw(); const c = document.createElement("canvas"); c.width = c.height = 120;
          const g = c.getContext("2d"); g.drawImage(view, 0, 0, 120, 120); return g.getImageData(0, 0, 120,
            120).data; };
        requestAnimationFrame(() => {
          const r = view.getBoundingClientRect(), before = grab();
          document.querySelectorAll("#grid button")[35].dispatchEvent(new PointerEvent("pointerenter"));
          const after = grab(); let n = 0;
          for (let k = 0; k < after.length; k++) n += after[k] !== before[k];
          done([r.width > 100 && r.bottom <= innerHeight ? n : -1, document.getElementById("grid-told").textContent]);
        });"""
    )
    assert changed > 40
    assert "link 4" in words


def test_a_link_and_the_python_give_the_same_state(browser, opened, tmp_path):  # noqa: F811
    arm = opened("puma560")
    enter(browser, "n2", "-30")
    enter(browser, "n5", "12.34")
    enter(browser, "payload", "3")
    enter(browser, "gravity", "3.7")
    link, python, text = browser.run(
        """armdyn.world.control("hold"); armdyn.show("parameters"); const { share } = armdyn;
        return [share.link(), share.forms.python(), share.forms.json()]"""
    )
    state = """const { arrays } = armdyn.arm; return [Array.from(arrays.q), arrays.mass[0], Array.from(arrays.gravity),
        armdyn.world.mode, document.body.dataset.tab, Array.from(arrays.g)]"""
    first = browser.run(state)
    opened("puma560", fragment="#" + link.split("#")[1])
    assert browser.run(state) == first
    assert first[3:5] == ["hold", "parameters"]
    ran = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, check=True, timeout=120)
    printed = np.array([float(word) for word in ran.stdout.strip("[] \n").split()])
    np.testing.assert_allclose(printed, first[5], rtol=1e-6, atol=1e-6)
    assert json.loads(text)["gravity_load"] == pytest.approx(first[5])
    hostile = "#q=1e999,0,0,0,0,0&mode=<b>&tab=constructor&payload=NaN,0,0,0&friction=2"
    opened("puma560", fragment=hostile)
    np.testing.assert_array_equal(browser.run("return Array.from(armdyn.arm.arrays.q)"), arm.rest)
    assert browser.run("return [armdyn.world.mode, document.body.dataset.tab]") == ["free", "bench"]


CUT = """armdyn.table.open(true);
const parts = "#joints th, #joints td, #joints input, #conditions input, .top button, .time button, .legend button, "
  + ".field, .heat td, .heat th, #live-facts b";
return [...document.querySelectorAll(parts)].filter((e) => e.offsetParent && (e.scrollWidth > e.clientWidth + 1
  || e.getBoundingClientRect().right > innerWidth + 0.5)).map((e) => e.textContent || e.value);"""


@pytest.mark.parametrize("size", [*SIZES, (1280, 900)])
@pytest.mark.parametrize("name", [*ROBOTS, "ur5"])
def test_labels_are_whole(browser, opened, name, size):  # noqa: F811
    """With the widest numbers, and with a pinned reference, where there is another column."""
    opened(name, size)
    browser.run(
        """const { arm } = armdyn, q = Array.from(arm.robot.home); armdyn.pin();
        arm.robot.lower.forEach((low, i) => { q[arm.robot.first + i] = low; });
        armdyn.conditions.set({ mass: 12.345 }); armdyn.posture(q);"""
    )
    assert browser.run(CUT) == []
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    if size == (1280, 800):
        browser.run("armdyn.show('matrices')")
        assert browser.run(CUT) == []


@pytest.mark.parametrize("name", ROBOTS)
def test_no_entry_of_a_legend_wraps_alone(browser, opened, name):  # noqa: F811
    opened(name)
    for width in (1280, 900):
        browser.size(width, 800)
        lines = browser.run(
            """return [...document.querySelectorAll(".legend")].filter((e) => e.offsetParent).map((legend) => {
              const lines = {}; for (const e of legend.children) lines[e.offsetTop] = (lines[e.offsetTop] ?? 0) + 1;
              return Object.values(lines); })"""
        )
        assert len(lines) >= 2
        assert not [counts for counts in lines if len(counts) > 1 and min(counts) == 1]


def test_a_minimal_parameter_has_the_name_it_has_in_python(browser, opened):  # noqa: F811
    arm = opened("panda_hand")
    browser.run("armdyn.show('parameters')")
    rows = "[...document.querySelectorAll('#parameter-table tbody tr')].map((row) => row.firstChild.textContent)"
    assert browser.run(f"return {rows}") == list(arm.minimal_parameters.names)
    minimal = arm.minimal_parameters
    body, k = next((body, row.index(2)) for body, row in enumerate(minimal.influence) if 2 in row)
    told = browser.run(
        """document.querySelectorAll("#grid button")[arguments[0]].dispatchEvent(new Event("focus"));
        return [...document.querySelectorAll("#grid-told .formula")].map((e) => e.textContent.split(" = ")[0])""",
        10 * body + k,
    )
    parts = [name for name, row in zip(minimal.names, minimal.matrix, strict=True) if row[10 * body + k]]
    assert told == parts[:4]


@pytest.mark.parametrize("name", ["ur5", "panda", "talos_reduced"])
def test_tool_and_base_are_in_the_picture_of_a_phone(browser, opened, name):  # noqa: F811
    opened(name, (390, 844))
    points, width, height = browser.run(
        """armdyn.viewer.draw(); const { arm, viewer } = armdyn, view = document.getElementById("arm-view");
        const p = [arm.robot.base, arm.arrays.tool].map((T) => viewer.project(Geometry.origin(T)).slice(0, 2));
        return [p, view.clientWidth, view.clientHeight]"""
    )
    for x, y in points:
        assert 0 < x < width
        assert 0 < y < height


@pytest.mark.parametrize("name", ["panda_hand", "talos_reduced"])
def test_few_tab_stops_stand_before_the_joints(browser, opened, name):  # noqa: F811
    """The first is the link that skips to the joints; of a humanoid, filter and groups stand before them, too."""
    opened(name)
    assert browser.run("return document.querySelector('.skip').getAttribute('href')") == "#joints"
    assert 0 <= browser.run("armdyn.table.open(true);" + STOPS) <= 12
    assert (
        0
        <= browser.run(STOPS.replace("document.querySelectorAll", "document.getElementById('joints').querySelectorAll"))
        <= 3
    )


STOPS = """const stops = "a[href], button, input, select, summary, canvas[tabindex], [tabindex='0']";
const all = [...document.querySelectorAll(stops)]
  .filter((e) => e.tabIndex >= 0 && e.offsetParent !== null && !e.disabled);
return all.indexOf(document.getElementById("q1"))"""


def test_keys_and_what_is_said(browser, opened):  # noqa: F811
    opened("puma560")
    q, text = browser.run(
        """const slider = document.getElementById("q1"); slider.focus();
        const keys = [["ArrowRight", false], ["ArrowRight", true], ["PageUp", false], ["ArrowLeft", false]];
        for (const [key, shiftKey] of keys)
          slider.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true, cancelable: true }));
        return [armdyn.arm.arrays.q[0], slider.getAttribute("aria-valuetext")]"""
    )
    assert np.degrees(q) == pytest.approx(10.1)
    assert text == "10.1 degrees"
    tree = browser.devtools("Accessibility.getFullAXTree")
    assert tree
    assert 0 <= browser.run(STOPS) <= 12
    said, during, after = browser.wait(
        """const done = arguments[0], live = [...document.querySelectorAll("output, [aria-live], [role=status]")];
        let changes = 0; new MutationObserver((all) => { changes += all.length;
          }).observe(document.getElementById("said"), { childList: true, characterData: true, subtree: true });
        document.getElementById("fall").click();
        setTimeout(() => { const during = changes; armdyn.play(false);
          setTimeout(() => done([live.map((e) => e.id), during, document.getElementById("said").textContent]),
            1600); }, 1500);"""
    )
    assert said == ["said"]
    assert during == 0
    assert "shoulder" in after


ALL_TABS = ("bench", "matrices", "parameters", "model", "cost", "cite")


@pytest.mark.parametrize("name", ROBOTS)
def test_the_page_is_accessible(browser, opened, name):  # noqa: F811
    """All tabs at the first size, the bench at all of them, in both themes."""
    for theme in ("light", "dark"):
        browser.theme(theme)
        opened(name)
        for size, tabs in zip(SIZES, (ALL_TABS, ("bench",), ("bench", "matrices")), strict=True):
            browser.size(*size)
            for tab in tabs:
                browser.run("armdyn.show(arguments[0])", tab)
                assert browser.violations() == [], (theme, size, tab)
    browser.theme("light")


def test_a_lost_context_comes_back(browser, opened):  # noqa: F811
    opened("puma560")
    drawn = """const c = document.createElement("canvas"); c.width = c.height = 100; const g = c.getContext("2d");
      armdyn.viewer.draw(); g.drawImage(document.getElementById("arm-view"), 0, 0, 100, 100);
      const p = g.getImageData(0, 0, 100, 100).data; let n = 0;
      for (let k = 3; k < p.length; k += 4) n += p[k] > 200;"""
    if browser.run("return armdyn.viewer.kind") != "WebGL":
        pytest.skip("no WebGL in this browser")
    during, after = browser.wait(
        """const done = arguments[0], view = document.getElementById("arm-view");
        const lose = view.getContext("webgl2").getExtension("WEBGL_lose_context"), count = () => {"""
        + drawn
        + """ return n; };
        view.addEventListener("webglcontextlost", () => setTimeout(() => {
          const during = count();
          view.addEventListener("webglcontextrestored", () => setTimeout(() => done([during, count()]), 100));
          lose.restoreContext(); }, 50));
        lose.loseContext();"""
    )
    assert during == 0
    assert after > 50


@pytest.mark.parametrize(("name", "sheets"), [("puma560", 4), ("panda_hand", 4)])
def test_the_page_prints_on_few_sheets(browser, opened, name, sheets):  # noqa: F811
    arm = opened(name)
    enter(browser, "n2", "-30")
    enter(browser, "payload", "1.5")
    data = base64.b64decode(browser.devtools("Page.printToPDF", printBackground=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", data)) <= sheets
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    try:
        text, fields, cells = browser.run(
            """const seen = (e) => e.getClientRects().length > 0, { q } = armdyn.arm.arrays;
            return [document.body.innerText, [...q].map((_, k) => document.getElementById(`n${k + 1}`))
              .map((e) => seen(e) && e.value), [...document.querySelectorAll(".grid button")].filter(seen).length]"""
        )
    finally:
        browser.devtools("Emulation.setEmulatedMedia", media="")
    assert all(fields)  # every position, the torques and the conditions
    assert cells == 10 * len(arm.links)  # which inertial parameters matter
    assert fields[1].replace("−", "-") == "-30.0"
    gravity = f"{arm.with_payload(1.5, (0, 0, 0.08)).gravity_load(arm.rest * 0)[0]:.1f}"
    assert gravity.replace("-0.0", "0.0") in text


def test_the_cells_of_a_small_matrix_have_their_numbers(browser, opened):  # noqa: F811
    arm = opened("puma560")
    texts = browser.wait(
        """const done = arguments[0], texts = [], own = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
          if (this.canvas.id === "H") texts.push(text); return own.call(this, text, ...at); };
        document.getElementById("theme").click();
        requestAnimationFrame(() => { CanvasRenderingContext2D.prototype.fillText = own; done(texts); });"""
    )
    shown = np.array([float(text.replace("−", "-")) for text in texts[:36]])
    np.testing.assert_allclose(shown, arm.inertia_matrix(arm.rest).ravel(), rtol=0.05, atol=1e-11)


def test_five_tasks(browser, opened):  # noqa: F811
    """Gravity torque at -30°, what 3 kg change, a fall with friction, what cannot be identified, export."""
    arm = opened("puma560")
    click = "document.getElementById(arguments[0]).click()"
    row = """return [...document.querySelectorAll("#joints tbody tr")[1].querySelectorAll("td")].map((e) =>
        (e.querySelector("input.number")?.value ?? e.textContent).replace("−", "-"))"""
    enter(browser, "n2", "-30")
    q = np.radians([0, -30, 0, 0, 0, 0])
    _, shown, gravity, *_, part = browser.run(row)
    assert shown == "-30.0"
    assert float(gravity) == pytest.approx(arm.gravity_load(q)[1], abs=0.006)
    assert int(part) == round(100 * abs(float(gravity)) / arm.joints[1].limit.effort)

    browser.run(click, "pin")
    enter(browser, "payload", "3")
    loaded = arm.with_payload(3, (0, 0, 0.08))
    difference = browser.run(row)[3]
    assert float(difference) == pytest.approx(loaded.gravity_load(q)[1] - arm.gravity_load(q)[1], abs=0.006)

    browser.wait("document.getElementById('fall').click(); setTimeout(arguments[0], 700)")
    browser.run(click, "play")
    t, ended, friction = browser.run(
        "return [armdyn.world.t, Array.from(armdyn.arm.arrays.q), document.getElementById('friction').checked]"
    )
    truth = armdyn.simulate(loaded, q, duration=t, limits="stop").q[-1]
    assert friction
    assert np.degrees(np.abs(ended - truth)).max() < 0.5

    browser.run("document.querySelector('[data-tab=parameters]').click()")
    assert "9 not at all" in browser.run("return document.getElementById('parameters').innerText")

    forms, csv = browser.run(
        """document.getElementById("export").click();
        const forms = [...document.querySelectorAll("#export-forms button")].map((button) => {
          button.click(); return document.getElementById("export-text").value; });
        return [forms, armdyn.share.csv()];"""
    )
    assert [json.loads(forms[2])[key] for key in ("q", "payload")] == [ended, {"mass": 3, "com": [0, 0, 0.08]}]
    assert ".with_payload(3, (0, 0, 0.08))" in forms[0]
    assert "tab=parameters" in forms[3]
    last = [float(x) for x in csv.splitlines()[-1].split(",")]
    assert last[0] == pytest.approx(t, abs=1e-4)
    np.testing.assert_allclose(last[1:7], ended)
