"""The studio: who may ask, what is dropped on it, and the page with Python behind it; and pages of motions."""

from __future__ import annotations

import html
import http.client
import io
import json
import re
import socket
import threading
import time
import urllib.error
import urllib.request
import zipfile
from contextlib import ExitStack, closing

import numpy as np
import pytest

import armdyn
from armdyn.pages.meshes import shapes
from armdyn.pages.motion import animation, curve
from armdyn.report import studio
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


def raw(server, text):
    """The status and headers of the answer to these bytes."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as line:
        line.sendall(text.replace("TOKEN", server.token).replace("\n", "\r\n").encode("latin-1"))
        with closing(http.client.HTTPResponse(line)) as answer:
            answer.begin()
            return answer.status, dict(answer.headers), answer.read().decode()


HEAD = "Host: 127.0.0.1:{port}\nX-Token: TOKEN\n"


@pytest.mark.parametrize(
    ("request_line", "headers", "status", "says"),
    [
        ("POST /load?name=a.toml", HEAD + "Content-Length: -1\n", 400, "expected one Content-Length"),
        ("POST /load?name=a.toml", HEAD + "Content-Length: abc\n", 400, "got 'abc'"),
        ("POST /load?name=a.toml", HEAD + "Content-Length: ²\n", 400, "expected one Content-Length"),
        ("POST /load?name=a.toml", HEAD + "Content-Length: 3\nContent-Length: 4\n", 400, "got '3, 4'"),
        ("POST /load?name=a.toml", HEAD + "Content-Length: 300000000\n", 400, "300000000 bytes, expected at most"),
        ("POST /load?name=a.toml", HEAD + f"Content-Length: {'9' * 5000}\n", 400, "expected one Content-Length"),
        ("POST /load?name=a.toml", HEAD + "Transfer-Encoding: chunked\n", 400, "got 'none'"),
        ("GET /job", "Host: 127.0.0.1:{port}\nX-Token: é\n", 403, "refused"),
        ("GET /job?token=%C3%A9%FF", "Host: 127.0.0.1:{port}\n", 403, "refused"),
        ("GET http://[", HEAD, 400, "Invalid IPv6"),
        ("GET /nowhere", HEAD, 404, "not found"),
        ("PUT /job", HEAD, 501, "Unsupported method"),
        ("GET /job", HEAD, 200, "state"),
    ],
)
def test_malformed_requests_get_an_answer_with_a_policy(server, request_line, headers, status, says):
    got, fields, text = raw(server, f"{request_line} HTTP/1.1\n{headers.format(port=server.server_port)}\n")
    assert (got, says in text) == (status, True), text
    assert fields["Content-Security-Policy"].startswith("default-src 'none'; frame-ancestors 'none'")
    assert fields["Cache-Control"] == "no-store"


def test_pages_have_their_policy_as_a_header_too(server):
    _, fields, text = raw(server, f"GET / HTTP/1.1\n{HEAD.format(port=server.server_port)}\n")
    policy = fields["Content-Security-Policy"]
    assert "connect-src 'self'" in policy
    assert policy.split("; frame-ancestors")[0] in html.unescape(text)


def test_silent_connections_end_and_too_many_are_refused(monkeypatch):
    monkeypatch.setattr(studio._Handler, "timeout", 2.0)
    monkeypatch.setattr(studio, "CONNECTIONS", 3)
    with Server() as server, ExitStack() as stack:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = ("127.0.0.1", server.server_port)
        lines = [stack.enter_context(socket.create_connection(address, timeout=20)) for _ in range(3)]
        for line in lines:
            line.sendall(b"GET /job HTTP/1.1\r\nHost:")
        while server.free.acquire(blocking=False):  # until all three are accepted
            server.free.release()
            time.sleep(0.01)
        assert raw(server, f"GET /job HTTP/1.1\n{HEAD.format(port=server.server_port)}\n")[0] == 503
        assert [line.recv(1) for line in lines] == [b""] * 3  # closed by the server
        assert server.free.acquire(timeout=20)
        server.free.release()
        assert ask(server, "/job")[0] == 200
        server.shutdown()


def test_a_file_that_ends_early_is_refused(server):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as line:
        head = HEAD.format(port=server.server_port).replace("TOKEN", server.token)
        line.sendall(f"POST /load?name=a.toml HTTP/1.1\n{head}Content-Length: 9\n\nabc".replace("\n", "\r\n").encode())
        line.shutdown(socket.SHUT_WR)
        with closing(http.client.HTTPResponse(line)) as answer:
            answer.begin()
            assert (answer.status, answer.read()) == (400, b"the file has 9 bytes, but only 3 were sent")


def test_answers_come_at_once(server):
    """An answer is written in two parts, between which Nagle's algorithm would wait 40 ms."""
    times = []
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)) as line:
        for _ in range(30):
            start = time.perf_counter()
            line.request("GET", "/job", headers={"X-Token": server.token})
            assert b"state" in line.getresponse().read()
            times.append(time.perf_counter() - start)
    assert min(times[20:]) < 0.02


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


SECRET = (
    '<robot><link name="a"/><link name="b"><inertial><mass value="1"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>'
)

INCLUDE = '<robot xmlns:xacro="x"><xacro:include filename="?"/></robot>'


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.urdf.xacro", INCLUDE.replace("?", "{file}"), "outside its package"),
        ("a.urdf.xacro", INCLUDE.replace("?", "file://{file}"), "No such file"),
        ("a.urdf.xacro", INCLUDE.replace("?", "$(find {top})/{below}"), "not found"),
        ("a.urdf", '<!DOCTYPE robot [<!ENTITY x SYSTEM "file://{file}">]><robot>&x;</robot>', "document type"),
        ("a.xml", '<mujoco><include file="{file}"/></mujoco>', "outside its own folder"),
        ("a.xml", '<mujoco><asset><mesh file="{file}"/></asset><worldbody/></mujoco>', "outside its own folder"),
        ("a.xml", '<!DOCTYPE m [<!ENTITY x SYSTEM "file://{file}">]><mujoco>&x;</mujoco>', "no moving joint"),
    ],
)  # fmt: skip
def test_a_dropped_file_makes_the_server_read_nothing_else(server, tmp_path, name, content, says):
    file = tmp_path / "secret.xacro"
    file.write_text(SECRET)
    top, below = file.parts[1], "/".join(file.parts[2:])
    ask(server, f"/load?name={name}", content.format(file=file, top=top, below=below).encode())
    job = wait(server)
    assert job["state"] == "failed", job
    assert re.search(says, job["text"]), job["text"]
    assert server.studio.arm.name == "planar3"


def test_meshes_of_a_dropped_file_are_not_read(server, tmp_path):
    box = tmp_path / "box.stl"
    box.write_text(
        "solid s\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid"
    )
    places = (f"file://{box}", str(box), f"package://{tmp_path.name}/box.stl")
    visuals = (f'<visual><geometry><mesh filename="{uri}"/></geometry></visual>' for uri in places)
    path = tmp_path / "robot.urdf"
    path.write_text(SECRET.replace('<link name="b">', f'<link name="b">{"".join(visuals)}'))
    assert len(shapes(path, armdyn.load(path))[0]) == 3  # the same file beside its mesh shows it
    ask(server, "/load?name=robot.urdf", path.read_bytes())
    assert wait(server)["state"] == "done"
    assert server.studio.data["robot"]["meshes"] == []
    ask(server, "/catalogue?name=planar3", b"")
    assert wait(server)["state"] == "done"


def test_identify_from_a_dropped_log(server):
    assert ask(server, "/identify?name=log.csv", log_of(server.studio.arm))[0] == 200
    job = wait(server)
    assert job["state"] == "done", job
    assert job["identified"]
    status, content = ask(server, "/identified")
    assert status == 200
    assert b"identified" in content
    assert b"torque error, held out" in content  # on the first screen


def entries(content):
    """Name -> bytes of the files in a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def heavier():
    """The arm of the file with a load that the file does not know."""
    return armdyn.load("planar3").with_payload(1.5, (0.1, 0, 0))


def test_an_identified_arm_is_the_arm_until_back_to_file(server):
    studio, log = server.studio, log_of(heavier())
    assert ask(server, "/back", b"")[0] == 200  # whatever was identified before
    wait(server)
    before = ask(server, "/emit")[1]
    assert ask(server, "/identify?name=my_run.csv", log)[0] == 200
    job = wait(server)
    assert job["state"] == "done", job
    assert "my_run.csv" in job["text"]
    if job["identified"]["doubts"]:
        ask(server, "/adopt", b"")
        job = wait(server)
    assert job["identified"]["adopted"]
    files = entries(ask(server, "/emit")[1])
    assert files != entries(before)
    assert files["planar3.c"] != entries(before)["planar3.c"]
    rows = np.loadtxt(io.BytesIO(log), delimiter=",", skiprows=1)
    t, q, tau = rows[:, 0], rows[:, 1:4], rows[:, 4:]
    qd = np.gradient(q, t, axis=0)
    residual = (tau - studio.arm.inverse_dynamics(q, qd, np.gradient(qd, t, axis=0), friction=True))[20:-20]
    wrong = (tau - armdyn.load("planar3").inverse_dynamics(q, qd, np.gradient(qd, t, axis=0)))[20:-20]
    reported = float(job["identified"]["words"].split()[2]) / 100
    assert np.linalg.norm(residual) / np.linalg.norm(tau) < max(2 * reported, 0.005)
    assert np.linalg.norm(wrong) / np.linalg.norm(tau) > 0.1
    assert studio.data["card"]["mass_kg"] != pytest.approx(sum(float(x.mass) for x in studio.file.links))
    assert ask(server, "/back", b"")[0] == 200
    assert wait(server)["identified"] is None
    assert ask(server, "/emit")[1] == before


def test_an_estimate_with_doubts_stays_a_proposal(server, monkeypatch):
    monkeypatch.setattr("armdyn.report.studio._doubts", lambda found: ("the log hardly moves joint 3",))
    before = ask(server, "/emit")[1]
    assert ask(server, "/identify?name=doubtful.csv", log_of(heavier()))[0] == 200
    job = wait(server)
    assert job["identified"] == {**job["identified"], "adopted": False, "doubts": ["the log hardly moves joint 3"]}
    assert "doubts" in job["text"]
    assert ask(server, "/emit")[1] == before
    assert ask(server, "/adopt", b"")[0] == 200
    assert wait(server)["identified"]["adopted"]
    assert ask(server, "/emit")[1] != before
    ask(server, "/back", b"")
    wait(server)
    assert ask(server, "/emit")[1] == before
    assert ask(server, "/adopt", b"")[0] == 400  # nothing is identified any more


def test_messages_speak_of_the_users_file(server):
    ask(server, "/identify?name=../my%20log.csv", b"nothing that is a log")
    job = wait(server)
    assert job["state"] == "failed"
    assert "my_log.csv" in job["text"] or "my log.csv" in job["text"]


def test_without_an_arm_it_offers_the_catalogue():
    made = Server()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    try:
        status, content = ask(made, f"/?token={made.token}")
        assert status == 200
        assert b'data-robot="puma560"' in content
        assert ask(made, "/emit")[0] == 400
        assert ask(made, "/identify?name=a.csv", b"t")[0] == 400
        assert ask(made, "/catalogue?name=pumma", b"")[0] == 400
        assert ask(made, "/catalogue?name=planar3", b"")[0] == 200
        assert wait(made)["state"] == "done"
        assert made.studio.arm.name == "planar3"
    finally:
        made.shutdown()
        made.server_close()


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


def test_a_curve_keeps_every_peak():
    """A pulse of 20 ms in a minute at 1 kHz, wherever it stands."""
    t = np.arange(60_000) / 1000
    for start in range(1234, 60_000, 5870):
        y = np.sin(t)
        y[start : start + 20] = 150.0
        kept = curve(t, y)
        assert len(kept["x"]) <= 1000
        assert max(kept["y"]) == 150.0
        assert t[start] <= kept["x"][int(np.argmax(kept["y"]))] <= t[start + 19]
        assert np.all(np.diff(kept["x"]) > 0)
    few = curve(t[:50], np.where(t[:50] > 0.02, np.nan, 1.0))
    assert few["y"] == [1.0] * 21


@needs_browser
def test_a_short_pulse_is_seen_and_its_peak_told(browser, tmp_path):  # noqa: F811
    arm, t = armdyn.load("planar3"), np.arange(60_000) / 1000
    tau = np.tile(np.sin(t)[:, None], (1, 3))
    for k, start in enumerate((7_321, 29_990, 51_007)):
        tau[start : start + 20, k] = 150.0 + k
    page = animation(arm, t, np.zeros((60_000, 3)), tau, [("torque [N m]", arm.joint_names, tau)], "pulses")
    assert len(repr(page)) < 200
    page.save(tmp_path / "pulses.html")
    browser.size(1280, 800)
    browser.open((tmp_path / "pulses.html").as_uri())
    peaks = browser.run("return [...document.querySelectorAll('#bars td.peak')].map((e) => e.textContent)")
    told = [peak.replace("\u00a0", " ") for peak in peaks]
    assert told == ["150.00 N m at 7.32 s", "151.00 N m at 29.99 s", "152.00 N m at 51.01 s"]
    for k, at in enumerate((7.322, 29.991, 51.008)):
        value, width = browser.run(
            """armdyn.show(arguments[1]); const row = document.querySelectorAll("#bars tbody tr")[arguments[0]];
            const { width } = row.querySelector(".track i").style;
            return [+row.querySelector(".gravity").textContent, parseFloat(width)]""",
            k,
            at,
        )
        assert value > 100
        assert width > 20  # percent of the track; half of it is one direction
    high = browser.run(
        """const c = document.querySelector("canvas.trace"), g = c.getContext("2d"), r = devicePixelRatio, found = [];
        const left = Math.round(60 * r), { data, width, height } = g.getImageData(left, 0, c.width - left, c.height);
        for (let x = 0; x < width; x++) for (let y = Math.round(26 * r); y < 0.7 * height; y++) {
          const k = 4 * (y * width + x), [red, green, blue] = data.slice(k, k + 3);
          const coloured = Math.max(red, green, blue) - Math.min(red, green, blue) > 60;
          if (data[k + 3] > 100 && coloured) { found.push(x); break; }
        }
        return found;"""
    )
    groups = len(high) and 1 + int(np.sum(np.diff(high) > 20))
    assert groups == 3  # high above the sine, three pulses are drawn
    assert browser.errors() == []
