"""Arm: a value with payload, base, gravity and tool; equality, hash, pickle, what it shows of itself."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import field, make_dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import armdyn
from armdyn.errors import InputError
from armdyn.files import urdf_out
from armdyn.values import fingerprint
from comparing import close, pinocchio_of


@pytest.fixture(scope="module")
def puma():
    return armdyn.load("puma560")


def plain(arm, quantity, *values):
    return arm.kernel(quantity, backend="python")(*values)


def test_equal_arms_are_equal_and_others_are_not(puma):
    assert puma == armdyn.load("puma560")
    assert hash(puma) == hash(armdyn.load("puma560"))
    others = [
        armdyn.load("puma560", snap=0),
        puma.with_gravity([0, 0, -1.62]),
        puma.with_payload(1e-9),
        puma.with_tool([0, 0, 0.1]),
        replace(puma, name="puma"),
        armdyn.load("ur5"),
    ]
    assert puma not in others
    assert len({arm.fingerprint for arm in [puma, *others]}) == len(others) + 1
    assert puma != "puma560"


def test_equal_numbers_of_other_types_hash_alike(puma):
    """0 and Fraction(0) are equal, so arms that differ in them alone are, and must hash alike."""
    links = tuple(replace(link, mass=int(link.mass) if link.mass == 0 else link.mass) for link in puma.given.links)
    other = puma.with_links(links)
    assert other == puma
    assert hash(other) == hash(puma)


def test_the_hash_is_the_same_in_every_process(puma):
    code = "import armdyn; a = armdyn.load('puma560'); print(a.fingerprint, hash(a))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == [puma.fingerprint, str(hash(puma))]


def test_a_field_with_its_default_value_does_not_change_the_fingerprint(puma):
    def fields_of(name, *fields):
        return make_dataclass(name, fields, frozen=True)

    before, after = fields_of("Part", "x"), fields_of("Part", "x", ("y", int, 0), ("z", tuple, field(default=())))
    assert fingerprint(before(1)) == fingerprint(after(1)) == fingerprint(after(1, Fraction(0), ()))
    assert len({fingerprint(after(1)), fingerprint(after(1, 1)), fingerprint(after(1, z=(0,))), fingerprint(1)}) == 4
    one, other = fields_of("Part", ("y", int, 0), ("z", int, 0)), fields_of("Part", ("z", int, 0), ("y", int, 0))
    assert fingerprint(one(y=1)) != fingerprint(one(z=1)) == fingerprint(other(z=1))


def test_pickle_leaves_the_kernels_behind(puma):
    q = np.arange(6.0)
    H = puma.inertia_matrix(q)
    again = pickle.loads(pickle.dumps(puma))
    assert again == puma
    assert "inertia_matrix" not in vars(again)
    assert np.array_equal(again.inertia_matrix(q), H)


def test_arms_are_values(puma):
    with pytest.raises(AttributeError):
        puma.name = "other"
    before = puma.fingerprint
    puma.with_payload(3.0)
    assert puma.fingerprint == before


masses = st.floats(0.01, 20)
lengths = st.floats(-0.5, 0.5, allow_subnormal=False)


@given(masses, st.tuples(lengths, lengths, lengths), st.tuples(*[st.floats(0.1, 0.2)] * 3))
@settings(max_examples=10)
def test_payload_is_what_pinocchio_makes_of_it(mass, com, moments):
    pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")

    arm = armdyn.load("stanford").with_tool([0.1, 0, 0.2], [0.3, -0.2, 0.5])
    # without payload, and Pinocchio adds it to the last joint
    oracle = pinocchio_of(arm, urdf_out.text(arm.description))
    held = pin.Inertia(mass, np.array(com), np.diag(moments))
    place = oracle.model.frames[oracle.model.getFrameId("tool")].placement
    oracle.model.appendBodyToJoint(oracle.model.njoints - 1, held, place)
    loaded = arm.with_payload(mass, com, np.diag(moments))
    assert loaded == arm.with_payload(mass, com, [*moments, 0, 0, 0])
    q, qd = np.linspace(-1, 1, 6), np.linspace(2, -1, 6)
    close(plain(loaded, "inertia_matrix", q), oracle.inertia_matrix(q), 1e-10)
    close(plain(loaded, "bias", q, qd), oracle.bias(q, qd), 1e-10)


def test_taking_the_payload_off_again_is_exact(puma):
    load = (1.7, [0.01, -0.02, 0.05], [0.1, 0.2, 0.15, 0.01, 0.02, 0.03])
    assert puma.with_payload(*load).without_payload(*load) == puma


def test_an_arm_on_the_ceiling(puma):
    q = np.array([0.1, -0.5, 0.7, 0.2, 0.4, 0.3])
    hanging = puma.with_base([0, 0, 2.0], [np.pi, 0, 0])
    close(plain(hanging, "gravity_load", q), -plain(puma, "gravity_load", q), 1e-14)
    assert np.allclose(plain(hanging, "pose", q)[:3, 3], [0, 0, 2] + [1, -1, -1] * plain(puma, "pose", q)[:3, 3])
    free = puma.with_gravity([0, 0, 0])
    assert np.array_equal(plain(free, "gravity_load", q), np.zeros(6))


def test_base_and_tool_move_what_is_there():
    arm = armdyn.load("panda")
    q = np.linspace(-1, 1, 7)
    turned = arm.with_base([1, 2, 3], [0.1, 0.2, 0.3])
    here = plain(turned, "pose", q) @ np.linalg.inv(plain(arm, "pose", q))
    close(here[:3, 3], [1, 2, 3], 1e-14)
    close(here[2, :3], [-np.sin(0.2), np.cos(0.2) * np.sin(0.1), np.cos(0.2) * np.cos(0.1)], 1e-14)
    longer = arm.with_tool([0, 0, 0.1])
    close(plain(longer, "pose", q)[:3, 3] - plain(arm, "pose", q)[:3, 3], 0.1 * plain(arm, "pose", q)[:3, 2], 1e-14)
    assert longer.with_tool([0, 0, -0.1]) == arm
    assert longer.with_tool(frame="panda_link8") == arm
    with pytest.raises(InputError, match="unknown frame that moves 'hand'; available: panda_link8"):
        arm.with_tool(frame="hand")


def test_frames_by_name():
    arm = armdyn.load("ur5")
    q = np.linspace(-1, 1, 6)
    close(plain(arm, "pose", q), arm.kernel("pose", backend="python")(q, frame="tool0"), 1e-15)
    with pytest.raises(InputError, match="unknown frame 'tool7'; available: ee_link, tool0"):
        arm.pose(q, frame="tool7")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda arm: arm.with_gravity([0, 0]), r"gravity must have the shape \(3,\), got \(2,\)"),
        (lambda arm: arm.with_gravity([0, 0, np.nan]), "gravity must be finite"),
        (lambda arm: arm.with_gravity("down"), "gravity must be numbers, got 'down'"),
        (lambda arm: arm.with_payload([1.0]), r"mass must have the shape \(\), got \(1,\)"),
        (lambda arm: arm.with_payload(1.0, inertia=[1, 2, 3]), r"inertia must have the shape \(6,\) or \(3, 3\)"),
        (lambda arm: arm.with_payload(1.0, inertia=[[1, 2, 0], [0, 1, 0], [0, 0, 1]]), "inertia must be symmetric"),
        (lambda arm: arm.with_base([0, 0, 0], [0, 0]), r"rpy must have the shape \(3,\)"),
        (lambda arm: arm.with_links(arm.links[:2]), "with_links expects 6 links, got 2"),
    ],
)
def test_bad_input_is_named(puma, call, message):
    with pytest.raises(InputError, match=message):
        call(puma)


def test_arrays_and_words(puma):
    assert puma.limits.shape == (6, 2)
    assert (puma.limits[:, 0] < puma.limits[:, 1]).all()
    assert np.isinf(armdyn.load("planar3").limits).all()
    assert puma.effort_limits.tolist() == [97.6, 186.4, 89.4, 24.2, 20.1, 21.3]
    assert np.isinf(puma.velocity_limits).all()
    assert puma.mass == pytest.approx(23.45)
    assert repr(puma) == "<Arm puma560: 6 joints RRRRRR, 23.45 kg>"
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(puma)
    console.file.close()
    shown = console.export_text()
    assert all(joint.name in shown for joint in puma.joints)
    assert "0.4318" in shown
    assert puma._repr_html_().count("<tr>") == 7
    assert "Khatib &amp; Burdick" in puma._repr_html_()


def test_plot_shows_the_frames():
    arm = armdyn.load("puma560")
    q = np.array([0.1, -0.4, 0.3, 0.2, 0.5, 0.0])
    figure = arm.plot(q, engine="plotly")
    markers = next(trace for trace in figure.data if trace.mode == "markers")
    origins = arm.dh_poses(q)[:, :3, 3]
    assert np.allclose(np.array([markers.x, markers.y, markers.z]).T, origins)
    assert len(arm.plot(np.stack([q, 0 * q]), engine="plotly").data) > len(figure.data)


@pytest.mark.parametrize(
    ("got", "answer"),
    [
        ("gravity", ": armdyn calls this 'gravity_load'; available: inertia_matrix, "),
        ("coriolis", ": armdyn calls this 'coriolis_matrix'; available: inertia_matrix, "),
        ("Forward-Dynamic", "; did you mean 'forward_dynamics'?"),
    ],
)
def test_an_unknown_name_is_answered_with_the_likeliest(got, answer):
    with pytest.raises(InputError) as error:
        armdyn.load("scara").kernel(got)
    assert answer in str(error.value)
    with pytest.raises(InputError) as error:
        armdyn.load("scara").kernel("")
    assert str(error.value).endswith("operational_space_inertia_inverse")


def test_an_unknown_arm_is_answered_with_the_likeliest():
    with pytest.raises(armdyn.ArmdynError, match=r"; did you mean 'panda'\?"):
        armdyn.load("Pandaa")
