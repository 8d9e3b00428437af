"""Odd use: what a caller may hand over by mistake or by design, and must get a right answer or a clear error for."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn.errors import FileError, InputError


@pytest.fixture(scope="module")
def puma() -> armdyn.Arm:
    return armdyn.load("puma560")


def urdf(path, base_name="foot", joint="lift"):
    """An arm whose first joint stands away from the base, with a second name for the base."""
    path.write_text(
        f"""<robot name="mast"><link name="{base_name}"/><link name="camera"/><link name="boom"><inertial>
        <mass value="2"/><origin xyz="0.1 0 0"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
        </inertial></link>
        <joint name="eye" type="fixed"><parent link="{base_name}"/><child link="camera"/><origin xyz="1 2 3"/></joint>
        <joint name="{joint}" type="continuous"><parent link="{base_name}"/><child link="boom"/>
        <origin xyz="0 0 0.5" rpy="0 0.3 0"/><axis xyz="0 0 1"/></joint></robot>"""
    )
    return armdyn.load(path, snap=0)


@pytest.mark.parametrize("backend", ["llvm", "numpy", "python"])
def test_a_frame_on_the_base_stands_where_the_file_puts_it(tmp_path, backend):
    """Not moved by the placement of the first joint, and moved once by `with_base`."""
    arm = urdf(tmp_path / "mast.urdf")
    q = np.array([0.7])
    for name, xyz in (("foot", (0, 0, 0)), ("camera", (1, 2, 3))):
        expected = np.eye(4)
        expected[:3, 3] = xyz
        np.testing.assert_array_equal(arm.kernel("pose", backend=backend)(q, frame=name), expected)
        lifted = arm.with_base((0, 0, 10)).kernel("pose", backend=backend)(q, frame=name)
        np.testing.assert_array_equal(lifted[:3, 3], np.add(xyz, (0, 0, 10)))


def test_a_turned_inertia_is_symmetric_enough_for_a_payload(puma):
    """R J Rᵀ is symmetric to rounding error only; what is not symmetric is refused."""
    rng = np.random.default_rng(0)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    J = R @ np.diag([0.1, 0.2, 0.15]) @ R.T
    assert not np.array_equal(J, J.T)
    q = rng.uniform(-1, 1, 6)
    exactly = puma.with_payload(1.0, inertia=(J + J.T) / 2)
    np.testing.assert_array_equal(puma.with_payload(1.0, inertia=J).inertia_matrix(q), exactly.inertia_matrix(q))
    with pytest.raises(InputError, match="symmetric"):
        puma.with_payload(1.0, inertia=J + np.triu(np.full((3, 3), 1e-9), 1))


NAMES = ["with space", "é ß 日本", "qu\"ote's", "<tag> & amp;", "new\nline\ttab", "", "../up", '"""']


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_survive_files(name, tmp_path):
    arm = armdyn.generic_arm("RP", 1)
    joints = tuple(replace(joint, name=f"{name}{i}") for i, joint in enumerate(arm.given.joints))
    arm = armdyn.Arm(name, replace(arm.given, joints=joints), 0.0, source=name)
    arm.save(tmp_path / "arm.toml")
    back = armdyn.load(tmp_path / "arm.toml", snap=0)
    assert (back, back.source) == (arm, name)
    arm.to_urdf(tmp_path / "arm.urdf")
    back = armdyn.load(tmp_path / "arm.urdf", snap=0)
    assert [joint.name for joint in back.joints] == [joint.name for joint in joints]
    assert back.name == (name or "arm")


@pytest.mark.parametrize("name", ["\x00", "a\x1b[1m", "\ud800"])
def test_what_xml_cannot_hold_is_refused_and_nothing_is_written(name, tmp_path):
    arm = armdyn.Arm(name, armdyn.generic_arm("R").given, 0.0)
    with pytest.raises(FileError, match="XML"):
        arm.to_urdf(tmp_path / "arm.urdf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda arm: arm.save("arm.urdf"), r"\.toml.*'arm.urdf'"),
        (lambda arm: arm.pose(np.zeros(6), frame=3), "unknown frame 3; available: link1, link2"),
        (lambda arm: arm.pose(np.zeros(6), frame="hand"), "unknown frame 'hand'; available: link1, link2"),
        (
            lambda arm: arm.kernel("bias", threads=2),
            r"threads= is an option of a call, not of a kernel: bias\(\.\.\., threads=",
        ),
        (lambda arm: arm.bias(np.zeros(6), np.zeros(6), thread=2), "'thread'; available: q, qd, out, threads"),
        (
            lambda arm: arm.kernel("bias", derivatives=5)(np.zeros(6), np.zeros(6)),
            "in 5; available: q, qd",
        ),
        (
            lambda arm: arm.inertia_matrix(np.zeros(6, np.longdouble)),
            "q as real numbers, got .*; float64 is the widest",
        ),
        (lambda arm: arm.inertia_matrix(np.zeros(6, complex)), "q as real numbers, got complex128"),
        (lambda arm: arm.with_minimal_parameters([np.nan] * 36), "minimal parameters must be finite"),
        (lambda arm: armdyn.load("puma560", snap="1e-5"), "snap must be an angle .* got '1e-5'"),
    ],
)
def test_errors_say_what_was_got_and_what_is_available(puma, wrong, message):
    with pytest.raises(InputError, match=message):
        wrong(puma)


@pytest.mark.parametrize(("lock", "message"), [(["lift"], r"lock must .*\['lift'\]"), ({"lift": "up"}, "'lift'.*'up'")])
def test_a_wrong_lock_is_named(tmp_path, lock, message):
    urdf(tmp_path / "mast.urdf")
    with pytest.raises(InputError, match=message):
        armdyn.load(tmp_path / "mast.urdf", lock=lock)


def test_one_quantity_of_c_may_be_a_name(puma, tmp_path):
    puma.emit_c(tmp_path / "one", quantities="bias")
    puma.emit_c(tmp_path / "list", quantities=["bias", "bias"])
    assert (tmp_path / "one/puma560.c").read_text() == (tmp_path / "list/puma560.c").read_text()


def test_a_closed_pipe_is_no_traceback():
    """`armdyn list | head -1`."""
    script = f"{sys.executable} -m armdyn list --json | head -c 1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[", "")


def test_no_folder_of_machine_code_removes_nothing():
    script = [sys.executable, "-m", "armdyn", "cache", "clear"]
    done = subprocess.run(script, capture_output=True, text=True, check=True, env={"ARMDYN_CACHE": "off"})
    assert done.stdout.startswith("no cache")


@pytest.mark.parametrize("offset", [1, 3])
def test_unaligned_and_foreign_bytes(puma, offset):
    q = np.random.default_rng(offset).uniform(-2, 2, (7, 6))
    moved = np.zeros(q.nbytes + offset, np.uint8)[offset:].view(float).reshape(q.shape)
    moved[:] = q
    assert not moved.flags.aligned
    expected = puma.inertia_matrix(q)
    for same in (moved, q.astype(">f8"), q.astype("<f8")):
        np.testing.assert_array_equal(puma.inertia_matrix(same), expected)
        np.testing.assert_array_equal(puma.inertia_matrix(same[2]), expected[2])


def test_calls_keep_no_references(puma):
    """By the quick path, by the gufunc, with `out`, with an option, and after an error."""
    q, out = np.zeros(6), np.empty((6, 6))
    id_ = puma.inverse_dynamics

    def calls() -> None:
        puma.inertia_matrix(q)
        puma.inertia_matrix(q, out=out)
        puma.inertia_factors(q)
        id_(q, q, q, friction=True, tool_wrench=q)
        with pytest.raises(InputError):
            id_(q, q)

    calls()
    before = sys.getrefcount(q), sys.getrefcount(out), sys.getrefcount(id_)
    for _ in range(100):
        calls()
    assert (sys.getrefcount(q), sys.getrefcount(out), sys.getrefcount(id_)) == before


def test_the_interpreter_ends_in_the_middle_of_a_batch():
    script = """
import threading, time, numpy as np, armdyn
kernel = armdyn.load("planar3").inertia_matrix
kernel(np.zeros((9000, 3)), threads=2)
def forever():
    while True:
        kernel(np.zeros((5000, 3)))
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_written_tool_is_read_back_by_name(tmp_path):
    arm = armdyn.generic_arm("RPR", 2).with_base((1, 2, 3), (0.1, 0.2, 0.3)).with_tool((0.1, 0.2, 0.3), (1, 0.5, 0.2))
    arm.to_urdf(tmp_path / "arm.urdf")
    back = armdyn.load(tmp_path / "arm.urdf", tip="tool", snap=0)
    q = np.array([0.3, -0.2, 1.1])
    np.testing.assert_allclose(back.pose(q), arm.pose(q), atol=1e-14)


def test_a_fixed_step_takes_no_tolerance():
    arm = armdyn.load("planar3")
    with pytest.raises(InputError, match="RK4 has a fixed step and takes no rtol or atol; adaptive: DOP853"):
        armdyn.simulate(arm, np.zeros(3), duration=0.1, rtol=1e-6, method="RK4")
    with pytest.raises(InputError, match="auto chooses a method with a fixed step"):
        armdyn.simulate(arm, np.zeros(3), duration=0.1, rtol=1e-6)


@pytest.mark.parametrize(
    "use", [lambda: armdyn.simulate("scara", [0.0], duration=1), lambda: armdyn.cost("scara", "bias")]
)
def test_a_name_is_no_arm(use):
    with pytest.raises(InputError, match=r"takes an Arm, got 'scara'; armdyn.load\(...\) returns one"):
        use()


def test_references_rest_outside_their_time():
    from armdyn.simulation import fourier, trapezoidal

    q, qd, qdd = trapezoidal([0.0], [1.0], 2.0)(np.array([-1.0, 3.0]))
    assert q.tolist() == [[0.0], [1.0]]
    assert not qd.any()
    assert not qdd.any()
    wave = fourier([0.0], [[1.0]], [[0.0]], 0.5)
    for now, later in zip(wave(np.array([0.3])), wave(np.array([4.3])), strict=True):
        assert np.allclose(now, later, atol=1e-12)


def test_public_names_are_what_they_say_whatever_was_imported_before():
    """A submodule of the same name would take a function's place when it is first imported."""
    code = (
        "import importlib, pkgutil, armdyn\n"
        "for module in pkgutil.iter_modules(armdyn.__path__):\n"
        "    if module.name not in ('__main__', 'cli'): importlib.import_module('armdyn.' + module.name)\n"
        "bad = [name for name in armdyn.__all__ if not callable(getattr(armdyn, name))]\n"
        "assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
