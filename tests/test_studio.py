"""The studio: who may ask, what is dropped on it, and the page with Python behind it; and pages of motions."""

from __future__ import annotations

import io
import json
import threading
import time
import urllib.error
import urllib.request
import zipfile

import numpy as np
import pytest

import armdyn
from armdyn.report.studio import Server
from browser import browser, needs_browser  # noqa: F401


@pytest.fixture(scope="module")
def server():
    made = Server(armdyn.load("planar3"))
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    wait(made)
    yield made
    made.shutdown()
    made.server_close()


def ask(server, path, body=None, token=None, **headers):
    """(status, content) of a request."""
    sent = {"X-Token": server.token if token is None else token, **headers}
    request = urllib.request.Request(f"http://127.0.0.1:{server.server_port}{path}", body, sent)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def wait(server):
    """The job's last words."""
    for _ in range(1200):
        job = json.loads(ask(server, "/job")[1])
        if job["state"] != "running":
            return job
        time.sleep(0.05)
    raise AssertionError("the job does not end")


def log_of(arm):
    """A short log in the layout that `Log.read` knows, from a known motion."""
    t = np.linspace(0, 6, 1200)
    q = np.stack([0.8 * np.sin((1.1 + 0.7 * k) * t + k) + 0.2 * np.sin(3.1 * t) for k in range(arm.n)], axis=1)
    qd, qdd = (np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0))
    tau = arm.inverse_dynamics(q, qd, qdd)
    names = ["t", *(f"q{k + 1}" for k in range(arm.n)), *(f"tau{k + 1}" for k in range(arm.n))]
    rows = "\n".join(",".join(f"{x:.9g}" for x in row) for row in np.column_stack([t, q, tau]))
    return (",".join(names) + "\n" + rows + "\n").encode()


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("wrong", {}),
        ("", {}),
        (None, {"Origin": "http://evil.example"}),
        (None, {"Origin": "null"}),
        (None, {"Host": "evil.example"}),
    ],
)
def test_strangers_are_refused(server, token, headers):
    for path, body in (("/", None), ("/job", None), ("/emit", None), ("/load?name=a.urdf", b"<robot/>")):
        status, content = ask(server, path, body, token, **headers)
        assert status == 403
        assert b"refused" in content


def test_it_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, "/nothing")[0] == 404


def test_c_and_report_can_be_downloaded(server):
    status, content = ask(server, "/emit")
    assert status == 200
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert {"planar3.c", "planar3.h", "Makefile"} <= set(names)
    status, content = ask(server, "/report")
    assert status == 200
    assert b'id="studio"' not in content
    assert server.token.encode() not in content


def test_a_bad_file_is_explained(server):
    status, content = ask(server, "/load?name=arm.step", b"ISO-10303")
    assert status == 400
    assert b".urdf" in content
    assert ask(server, "/load?name=arm.urdf", b"<robot")[0] == 200
    job = wait(server)
    assert job["state"] == "failed"
    assert job["text"]
    assert server.studio.arm.name == "planar3"  # what was there stays


def test_identify_from_a_dropped_log(server):
    assert ask(server, "/identify?name=log.csv", log_of(server.studio.arm))[0] == 200
    job = wait(server)
    assert job["state"] == "done", job
    assert job["identified"]
    status, content = ask(server, "/identified")
    assert status == 200
    assert b"identified" in content


@needs_browser
def test_a_robot_dropped_on_the_page_replaces_the_arm(server, browser, tmp_path):  # noqa: F811
    armdyn.load("scara").to_urdf(tmp_path / "scara.urdf")
    text = (tmp_path / "scara.urdf").read_text()
    browser.size(1200, 900)
    browser.open(server.url)
    browser.run(
        """const data = new DataTransfer(); data.items.add(new File([arguments[0]], "scara.urdf"));
        const event = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data });
        document.body.dispatchEvent(event);""",
        text,
    )
    for _ in range(600):
        if browser.run("return (document.querySelectorAll('#joints tbody tr').length)") == 4:
            break
        time.sleep(0.1)
    assert browser.run("return document.querySelector('h1').textContent") == server.studio.arm.name
    assert server.studio.arm.n == 4
    assert browser.errors() == []


@needs_browser
def test_a_motion_plays(browser, tmp_path):  # noqa: F811
    arm = armdyn.load("scara")
    motion = armdyn.simulate(
        arm, np.array([0.3, -0.4, 0.1, 0.2]), np.ones(4), duration=1.0, friction=False, limits=False
    )
    motion.save(tmp_path / "motion.html")
    assert motion.animate().html == (tmp_path / "motion.html").read_text(encoding="utf-8")
    assert motion.animate()._repr_html_().startswith("<iframe")
    browser.requests()
    browser.open((tmp_path / "motion.html").as_uri())
    assert len(browser.requests()) == 1
    got = browser.run("armdyn.show(0.5); return Array.from(armdyn.arm.arrays.tool)")
    k = int(np.argmin(np.abs(motion.t - 0.5)))
    np.testing.assert_allclose(got, arm.pose(motion.q[k]).ravel(), atol=1e-5)
    end = browser.wait(
        "const done = arguments[0]; armdyn.show(0.9); armdyn.play(true);setTimeout(() => done(armdyn.now.t), 2500);"
    )
    assert end == pytest.approx(1.0)
    assert browser.errors() == []
