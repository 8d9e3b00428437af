"""The physics of the pages: joint stops and dry friction in the browser, and how long they take."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn.pages import document, robot
from browser import browser, needs_browser  # noqa: F401

READY = (
    "<main></main>"
    "<script>document.addEventListener('started', () => { document.body.dataset.ready = 'yes'; });</script>"
)


def example_robot(name):
    """The path of a URDF of example-robot-data."""
    found = [file for file in metadata.files("example-robot-data") or () if file.name == f"{name}.urdf"]
    if not found:
        pytest.skip("example-robot-data is not installed")
    return Path(str(found[0].locate()))


TEN_SECONDS = """
const done = arguments[arguments.length - 1], robot = JSON.parse(document.getElementById("data").textContent);
Live.load(robot).then((arm) => {
  const world = Live.physics(arm), { arrays } = arm, beyond = [];
  let costs = [], moved = 0;
  const tool = Geometry.origin(arrays.tool);
  for (let frame = 0; frame < 600; frame++) {
    world.steps(frame % 3 ? 17 : 16); costs.push(world.cost);
    robot.stops.forEach(([low, high], i) => {
      const x = arrays.q[robot.first + i];
      if (!(x >= (low ?? -Infinity) && x <= (high ?? Infinity))) beyond.push([frame, robot.names[i], x]);
    });
    moved = Math.max(moved, Geometry.norm(Geometry.sub(Geometry.origin(arrays.tool), tool)));
  }
  costs.sort((a, b) => a - b);
  done({ beyond: beyond.slice(0, 3), message: world.message, t: world.t, median: costs[300], moved,
    energy: world.energy(), start: Array.from(robot.home) });
});"""


@needs_browser
@pytest.mark.parametrize("name", ["panda_hand", "baxter", "talos_reduced"])
def test_ten_seconds_of_free_fall_stay_within_the_limits(browser, tmp_path, name):  # noqa: F811
    arm = armdyn.load(example_robot(name) if name == "talos_reduced" else name)
    path = tmp_path / "fall.html"
    path.write_text(document(name, READY, robot(arm), ("base.js", "dynamics.js", "live.js")), encoding="utf-8")
    browser.open(path.as_uri())
    got = browser.wait(TEN_SECONDS)
    assert got["beyond"] == []
    assert got["message"] == ""
    assert got["t"] == pytest.approx(10, abs=0.05)
    assert got["moved"] > 0.05  # it did fall
    np.testing.assert_array_equal(got["start"], arm.rest)
    assert got["median"] < 4  # milliseconds of physics per frame of 1/60 s
    assert browser.errors() == []
