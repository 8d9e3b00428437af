"""A thousand arms fall in a page: as WebAssembly and, where the browser has an adapter, on a graphics processor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_bench import INSIDE
from test_page_physics import example_robot

import armdyn
from armdyn.chain import Link
from armdyn.gpu import rollout
from armdyn.pages import robot
from armdyn.references import citation
from armdyn.report.card import card
from armdyn.report.collect import collect, parameters
from armdyn.report.falls import falls
from armdyn.report.page import page
from browser import Browser, browser, needs_browser  # noqa: F401

pytestmark = needs_browser
EMULATED = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"]
STEPS = 300


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder, small = tmp_path_factory.mktemp("falls"), collect(armdyn.load("planar3"), gpu=True)

    def of(name, **others):
        arm = armdyn.load(example_robot(name) if name == "talos_reduced" else name)
        own = {"card": card(arm), "parameters": parameters(arm), "robot": robot(arm), "falls": falls(arm)}
        path = folder / f"{name}.html"
        path.write_text(page({**small, **own, **others}, citation()), encoding="utf-8")
        return arm, path.as_uri()

    return of


# Positions after the steps and the points of the tools, of the arms 0, 1 and 999, by one of the two ways.
FALL = """const done = arguments[arguments.length - 1], [way, q, mass, steps] = arguments, { falls, arm } = armdyn;
(async () => {
  arm.hold(mass, [0, 0, 0.1]);
  const run = await falls[way](), { u, size } = falls.inputs(0.1, true);
  await run.begin(q, new Array(arm.robot.nv).fill(0), u, size);
  for (let k = 0; k < steps;) k += (await run.advance(Math.min(steps - k, 50), 1e9)).steps;
  const { q: first, points } = await run.advance(1, 0), some = [0, 1, 999];
  done({ name: run.name, first: Array.from(first), points: some.map((k) => Array.from(points.slice(3 * k, 3 * k + 3))),
    factors: some.map((k) => falls.factors(0.1)[k]), within: falls.within(points) });
})().catch((error) => done({ name: String(error) }));"""


def scaled(arm, factors):
    """The arm with its links' masses and inertias times these factors."""
    links = zip(arm.chain.links, factors, strict=True)
    chain = replace(arm.chain, links=tuple(Link.from_natural(tuple(x * f for x in link.natural)) for link, f in links))
    return armdyn.Arm("scaled", chain)


def expected(arm, q, mass, factors):
    """The points of the tools after the steps, of arms with baked parameters, from `armdyn.gpu.rollout`."""
    torque, points, options = np.zeros((1, arm.chain.nv)), [], {"friction": True, "limits": "stop", "device": "cpu"}
    for own in factors:
        one = scaled(arm, own).with_payload(mass, (0, 0, 0.1))
        final, _ = rollout(one, q, np.zeros(arm.chain.nv), torque, steps=STEPS + 1, step=1e-3, **options)
        points.append(one.pose(final)[:3, 3])
    return np.array(points)


@pytest.mark.parametrize("name", ["puma560", "panda_hand"])
def test_the_arms_fall_as_in_python(browser, pages, name):  # noqa: F811
    arm, address = pages(name)
    browser.open(address)
    q = arm.rest + 0.2
    got = browser.wait(FALL, "inWasm", q.tolist(), 1.5, STEPS)
    assert got["name"] == "WebAssembly"
    np.testing.assert_array_equal(got["factors"][0], 1)
    assert 0.03 < np.std(got["factors"][1:]) < 0.2
    truth = expected(arm, q, 1.5, got["factors"])
    np.testing.assert_allclose(got["points"], truth, atol=1e-9)
    assert np.linalg.norm(truth[0] - arm.pose(q)[:3, 3]) > 0.05  # it fell
    assert np.ptp(truth, axis=0).max() > 1e-4  # each by itself
    assert browser.errors() == []


@pytest.mark.parametrize("name", ["puma560", "talos_reduced"])
def test_the_graphics_processor_agrees(tmp_path, pages, name):
    arm, address = pages(name)
    one = Browser(tmp_path / "profile", EMULATED)
    try:
        one.open(address)
        got = one.wait(
            """navigator.gpu ? navigator.gpu.requestAdapter().then((a) => arguments[0](Boolean(a)))
            : arguments[0](false)"""
        )
        if not got:
            pytest.skip("the browser shows no WebGPU adapter")
        assert one.run("return armdyn.falls.runner.name").startswith("WebGPU")
        steps, rest = (STEPS, arm.rest + 0.2) if name == "puma560" else (50, arm.rest)
        device, wasm = (one.wait(FALL, way, rest.tolist(), 1.5, steps) for way in ("onDevice", "inWasm"))
        assert "emulated on the CPU" in device["name"]
        np.testing.assert_allclose(device["points"], wasm["points"], atol=2e-4)
        np.testing.assert_allclose(device["first"], wasm["first"], atol=1e-3)
        assert one.errors() == []
    finally:
        one.close()


def test_the_cloud_and_its_end(browser, pages):  # noqa: F811
    arm, address = pages("panda_hand")
    browser.size(1280, 800)
    browser.open(address)
    seen, out = browser.run(INSIDE, "#falls, #spread, #joints tbody tr, #payload, #play, canvas.trace")
    assert (seen, out) == (arm.n + 6, [])
    told, cloud, moved, pressed = browser.wait(
        """const done = arguments[0], $ = (id) => document.getElementById(id), from = armdyn.arm.arrays.q[1];
        $("falls").click();
        const look = () => { if (armdyn.falls.t() < 0.05) { setTimeout(look, 20); return; }
          done([$("falls-told").textContent, armdyn.viewer.show.cloud.length, armdyn.arm.arrays.q[1] !== from,
            $("falls").getAttribute("aria-pressed")]); };
        look();"""
    )
    assert "95 % of the tools within 0." in told
    assert (cloud, moved, pressed) == (3000, True, "true")
    assert browser.violations() == []
    after = browser.run(
        """const slider = document.getElementById("q2"); slider.value = 0.3; slider.dispatchEvent(new Event("input"));
        return [armdyn.falls.running(), armdyn.viewer.show.cloud, armdyn.arm.arrays.q[1]];"""
    )
    assert after == [False, None, 0.3]
    assert browser.errors() == []


def test_a_page_has_it_only_on_request(browser, pages):  # noqa: F811
    _, address = pages("puma560", falls=None)
    browser.open(address)
    assert browser.run("return [document.getElementById('falling'), typeof Falls]") == [None, "undefined"]
