"""The report: its data, its page, and what it computes in a browser against the kernels."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain import Joint
from armdyn.cli.report_ import summary
from armdyn.formulations import QUANTITIES
from armdyn.references import bibliography, citation
from armdyn.report import collect as collecting
from armdyn.report.card import card
from armdyn.report.collect import collect
from armdyn.report.page import page
from browser import browser, needs_browser  # noqa: F401

HOSTILE = "</script><script>window.broken = 1</script>\"'<b class=broken>"


@pytest.fixture(scope="module", params=["scara", "planar3"])
def found(request):
    return collect(armdyn.load(request.param))


def test_data_says_what_is_true(found):
    arm = armdyn.load(found["card"]["name"])
    assert len(found["parameters"]["names"]) == len(arm.minimal_parameters.names)
    assert all(row["error"] < 1e-12 for row in found["accuracy"])
    best = [row for row in found["costs"] if row["best"] and row["quantity"] == "inertia_matrix"]
    assert best
    assert best[0]["total"] == min(row["total"] for row in found["costs"] if row["quantity"] == "inertia_matrix")
    assert found["fall"]["energy_error"] < 1e-6
    assert all(row["batch_ns"] > 0 for row in found["speed"])
    for row, links in zip(arm.minimal_parameters.matrix, found["parameters"]["links"], strict=True):
        touched = {k // 10 for k, x in enumerate(row) if x != 0}
        assert touched == set(links)


@pytest.mark.parametrize(("name", "kinds"), [("ur5", "RRRRRR"), ("scara", "RRPR"), ("stanford", "RRPRRR")])
def test_the_card_tells_the_kinds_of_the_joints(name, kinds):
    assert card(armdyn.load(name))["kinds"] == kinds


def test_speeds_are_nanoseconds_per_configuration(monkeypatch):
    """A batch of so many configurations that takes a microsecond for each, and a call of three microseconds."""
    monkeypatch.setattr(collecting, "best", lambda call, seconds: 1e-6 * collecting.BATCH)
    monkeypatch.setattr(collecting, "single_call", lambda kernel, inputs, seconds: 3e-6)
    for row in collecting.speed(armdyn.load("planar3")):
        assert (row["batch_ns"], row["copy_ns"]) == pytest.approx((1e3, 1e3))
        assert row["single_ns"] == pytest.approx(3e3)


def test_graphs_are_the_kernels_programs(found):
    arm = armdyn.load(found["card"]["name"])
    for graph in found["graphs"]:
        program = arm.kernel(graph["quantity"]).program
        assert sum(op == "mul" for op, *_ in graph["nodes"]) == program.operations.mul
        assert all(argument < k for k, (_, arguments, *_) in enumerate(graph["nodes"]) for argument in arguments)
        assert len(graph["results"]) == sum(len(port.nodes) for port in program.outputs)


def test_the_first_call_is_measured_before_anything_is_compiled(monkeypatch):
    """A first call includes making the kernel, which takes far longer than any later call."""
    monkeypatch.setenv("ARMDYN_CACHE", "off")
    arm = armdyn.load("planar3").with_payload(0.123)  # an arm that no other test has compiled
    for row in collect(arm)["speed"]:
        assert row["first_call_ms"] * 1e6 > 100 * row["single_ns"], row["quantity"]


def test_progress_is_told():
    told = []
    collect(armdyn.load("planar3"), lambda done, total, text: told.append((done, total, text)))
    assert told[-1][:2] == (told[-1][1], told[-1][1])
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


def test_page_is_small_and_self_contained(found):
    text = page(found, citation())
    assert len(text) < 1_500_000
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert "default-src &#x27;none&#x27;" in text
    for part in ('id="arm-view"', 'id="joints"', 'id="cost-chart"', 'id="graph-chart"', 'id="heat"', "lin_fang_1999"):
        assert part in text


def test_summary_prints(found):
    from rich.console import Console

    console = Console(record=True, width=120, force_terminal=False)
    for part in summary(found):
        console.print(part)
    text = console.export_text()
    assert found["card"]["name"] in text
    assert "meeting_frame" in text
    assert "[ns" in text


def hostile(data):
    """The same data with names as an enemy would choose them."""
    names = json.loads(json.dumps({key: data[key] for key in ("card", "robot")}, default=lambda x: x.tolist()))
    names["card"]["name"] = names["card"]["source"] = names["robot"]["name"] = HOSTILE
    names["card"]["joints"][0]["name"] = names["robot"]["names"][0] = names["robot"]["coordinates"][0] = HOSTILE
    return {**data, **names}


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):  # noqa: F811
    """A page of the Puma 560 in the browser, with hostile names."""
    arm = armdyn.load("puma560")
    path = tmp_path_factory.mktemp("page") / "report.html"
    data = collect(arm)
    assert len(page(data, citation()).encode()) <= 130_000
    path.write_text(page(hostile(data), citation()), encoding="utf-8")
    browser.size(1200, 900)
    browser.requests()  # what the browser asked for by itself
    browser.open(path.as_uri())
    return browser, arm, path


@needs_browser
def test_no_request_no_error_and_names_stay_text(opened):
    browser, _, path = opened  # noqa: F811
    assert browser.requests() == [path.as_uri()]
    assert browser.errors() == []
    assert browser.run("return [window.broken ?? 0, document.querySelectorAll('.broken').length]") == [0, 0]
    assert browser.run("return document.querySelector('h1').textContent") == HOSTILE
    assert browser.run("return document.querySelector('#joints tbody th').textContent") == HOSTILE
    for width in (390, 1200):
        browser.size(width, 844)
        assert browser.run("return document.documentElement.scrollWidth") <= width
    drawn = browser.run(
        "const c = document.createElement('canvas'); c.width = c.height = 200;"
        "const g = c.getContext('2d'), view = document.getElementById('arm-view'); armdyn.viewer.draw();"
        "g.drawImage(view, 0, 0, 200, 200); const p = g.getImageData(0, 0, 200, 200).data;"
        "let n = 0; for (let k = 3; k < p.length; k += 4) n += p[k] > 200; return n;"
    )
    assert drawn > 100  # pixels of the arm


@needs_browser
def test_a_slider_changes_the_inertia_matrix_to_the_kernels_value(opened):
    browser, arm, _ = opened  # noqa: F811
    script = """
    armdyn.show("matrices");
    const slider = document.getElementById("q2"); slider.value = -1.1; slider.dispatchEvent(new Event("input"));
    const { arrays } = armdyn.arm, out = {};
    for (const name of ["q", "H", "g", "V", "poses", "tool", "J"]) out[name] = Array.from(arrays[name]);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      out.shown = document.querySelectorAll("#heat td")[0].textContent; armdyn.show("bench"); done(out);
    }));"""
    got = browser.wait("const done = arguments[0];" + script)
    q = np.array(got["q"])
    assert q[1] == pytest.approx(-1.1, abs=1e-9)
    for name, kernel in {
        "H": arm.inertia_matrix, "g": arm.gravity_load, "V": arm.potential_energy, "poses": arm.dh_poses,
        "tool": arm.pose, "J": arm.jacobian,
    }.items():  # fmt: skip
        truth = np.ravel(kernel(q))
        np.testing.assert_allclose(got[name], truth, rtol=0, atol=1e-13 * max(np.max(np.abs(truth)), 1))
    assert float(got["shown"]) == pytest.approx(arm.inertia_matrix(q)[0, 0], rel=5e-3)


SIMULATE = """
const { world, arm } = armdyn, [mass, gravity, friction, start] = arguments;
if (start) world.start = start;
world.reset(); arm.arrays.gravity.set(gravity); arm.hold(mass, [0, 0, 0.1]); world.friction = friction;
world.control("free");
for (let k = 0; k < 50; k++) world.steps(20);
const { q, qd } = arm.arrays;
return { t: world.t, start: world.start, q: Array.from(q), qd: Array.from(qd), energy: world.energy() };"""


@needs_browser
@pytest.mark.parametrize("friction", [False, True])
@pytest.mark.parametrize(("mass", "gravity"), [(0.0, (0, 0, -9.81)), (2.5, (3.0, -4.0, -8.0))])
def test_the_simulation_ends_where_simulate_does(opened, mass, gravity, friction):
    """Dry friction that sticks and joint stops included: within 1 s the elbow meets its stop."""
    browser, arm, _ = opened  # noqa: F811
    got = browser.run(SIMULATE, mass, list(gravity), friction, [0.3, -0.5, 0.8, 0.2, -0.4, 0.1])
    assert got["t"] == pytest.approx(1.0)
    same = arm.with_payload(mass, (0, 0, 0.1)).with_gravity(gravity) if mass else arm.with_gravity(gravity)
    options = {"duration": 1.0, "method": "RK4", "step": 1e-3, "friction": friction}
    truth = armdyn.simulate(same, got["start"], limits="stop", **options)
    np.testing.assert_allclose(got["q"], truth.q[-1], rtol=0, atol=1e-7)
    np.testing.assert_allclose(got["qd"], truth.qd[-1], rtol=0, atol=1e-6)
    assert got["energy"] == pytest.approx(truth.energy[-1], abs=1e-5)


@needs_browser
def test_a_floating_base_falls_drifts_and_is_pulled(opened, tmp_path, monkeypatch):
    browser, _, _ = opened  # noqa: F811
    chain = armdyn.generic_arm("RRRPRR", seed=3).given
    free = Joint("free", 0, ZERO_ANGLE, 0, ZERO_ANGLE, name="base")
    arm = armdyn.Arm("floats", replace(chain, joints=(free, *chain.joints[1:]), parents=(-1, 0, 1, 0, 3, 4)))
    monkeypatch.setattr("armdyn.report.graphs.MAX_NODES", 10)  # as for a robot whose programs are not drawn
    path = tmp_path / "floats.html"
    path.write_text(page(collect(arm), citation()), encoding="utf-8")
    browser.open(path.as_uri())
    got = browser.run(SIMULATE, 0.0, [0, 0, -9.81], False)
    truth = armdyn.simulate(arm, got["start"], duration=1.0, method="RK4", step=1e-3, friction=False, limits=False)
    np.testing.assert_allclose(got["q"], truth.q[-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(got["qd"], truth.qd[-1], rtol=0, atol=1e-8)
    reached, columns = browser.run("""
    const { world, arm } = armdyn, { robot, arrays } = arm;
    arrays.gravity.fill(0); world.reset(); world.control("pd");
    world.target = world.start.map((x, k) => (k < robot.first ? x : x + 0.1)); world.steps(3000);
    const off = Array.from(arrays.q).map((x, k) => (k < robot.first ? 0 : Math.abs(x - world.target[k])));
    world.reset();
    return [Math.max(...off), Robot.baseColumns(robot, arrays, [0.1, 0.2, 0.3])];""")
    assert reached < 1e-3
    np.testing.assert_allclose(columns, [*np.eye(3), *np.cross(np.eye(3), [0.1, 0.2, 0.3])], atol=1e-15)
    assert browser.errors() == []
    browser.open(opened[2].as_uri())


@needs_browser
def test_controllers(opened):
    browser, _, _ = opened  # noqa: F811
    held, reached, slowed = browser.run("""
    const { world, arm } = armdyn, far = (a, b) => Math.max(...a.map((x, k) => Math.abs(x - b[k])));
    arm.arrays.gravity.set(arm.robot.gravity); arm.hold(1.5, [0, 0, 0.1]); world.friction = false;
    world.reset(); world.control("hold"); world.steps(500); const held = far(Array.from(arm.arrays.q), world.start);
    world.control("pd"); world.target = world.start.map((x) => x + 0.2); world.steps(3000);
    const reached = far(Array.from(arm.arrays.q), world.target);
    world.reset(); world.control("hold"); arm.arrays.qd.fill(0.5); arm.state(); const before = arm.arrays.T[0];
    world.friction = true; world.steps(500); const slowed = arm.arrays.T[0] / before;
    world.friction = false; world.reset();
    return [held, reached, slowed];""")
    assert held < 1e-9
    assert reached < 1e-3
    assert slowed < 0.9


@needs_browser
def test_dragging_the_tool_moves_it_to_the_hand(opened):
    browser, _, _ = opened  # noqa: F811
    browser.size(1200, 900)
    browser.run("scrollTo(0, 0); armdyn.world.reset(); armdyn.refresh(true); armdyn.viewer.draw();")
    spot = """const p = armdyn.viewer.project(Geometry.origin(armdyn.arm.arrays.tool));
    const r = document.getElementById("arm-view").getBoundingClientRect();
    return [p[0] + r.left, p[1] + r.top];"""
    x, y = browser.run(spot)
    browser.drag(x, y, -40, 30)
    moved = browser.run("armdyn.viewer.draw();" + spot)
    assert np.hypot(moved[0] - x + 40, moved[1] - y - 30) < 6  # pixels: the mouse moves by whole ones


@needs_browser
def test_playing_takes_the_physics_little_time(opened):
    browser, _, _ = opened  # noqa: F811
    t, cost = browser.wait("""const done = arguments[0]; document.getElementById("fall").click();
    setTimeout(() => { document.getElementById("play").click(); done([armdyn.world.t, armdyn.world.cost]); }, 1500);""")
    assert t > 0
    assert cost < 16  # milliseconds per frame of 1/60 s, on a busy machine; 0.1 on an idle one
    assert browser.errors() == []


def test_every_formulation_has_its_paper():
    known = bibliography()
    for quantity in QUANTITIES.values():
        for formulation in quantity.methods:
            for source in filter(None, (s.strip() for s in formulation.source.split(","))):
                assert source in known, f"{quantity.name} {formulation.key}: no entry {source} in references.bib"


def test_citation():
    assert citation("inertia_matrix", "lin_fang_1").startswith("@article{lin_fang_1999,")
    assert "saha_1999" in citation("inertia_matrix")
    assert citation().count("@") >= 8
