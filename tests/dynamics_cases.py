"""Arms for the tests of dynamics, and the same arms as Pinocchio and MuJoCo models, link by link."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import mujoco
import numpy as np
import pytest

from armdyn.algebra import ZERO, Angle, Mat3, Vec3
from armdyn.chain import Chain, Placement
from armdyn.chain.chain import generic_chain
from armdyn.programs.assemble import Options, assemble
from random_chains import special_chain

pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")

TILTED = Vec3(Fraction(3), Fraction(-4), Fraction(8))
BASE = Placement(Mat3(Vec3(0, 0, 1), Vec3(1, 0, 0), Vec3(0, 1, 0)), Vec3(Fraction(1), Fraction(2), 3))
TOOL = Placement(
    Mat3(Vec3(1, 0, 0), Vec3(0, 0, -1), Vec3(0, 1, 0)), Vec3(Fraction(1, 10), Fraction(1, 5), Fraction(-1, 7))
)


def with_gamma(chain: Chain) -> Chain:
    """Every other joint tilted by a γ of its own."""
    joints = [replace(j, gamma=Angle.of(0.1 * i)) if i % 2 else j for i, j in enumerate(chain.joints)]
    return replace(chain, joints=tuple(joints))


def with_drives(chain: Chain) -> Chain:
    """Rotors and friction of different sizes on every joint."""
    joints = [
        replace(j, rotor_inertia=Fraction(i + 1, 5), viscous=Fraction(i + 2, 3), coulomb=Fraction(i + 1, 4))
        for i, j in enumerate(chain.joints)
    ]
    return replace(chain, joints=tuple(joints))


def cases() -> dict[str, Chain]:
    """Joint kinds in every order up to three, longer mixtures up to twelve, special geometry, γ, gravity, drives."""
    few = [a + b + c for a in ("", "R", "P") for b in ("", "R", "P") for c in ("R", "P")]
    kinds = sorted(set(few), key=lambda k: (len(k), k))
    kinds += ["RRPR", "RRRRR", "RRRRRR", "PRRPRP", "RRRRRRR", "RPRRRPRR", "R" * 9, "RRPRRRRPRR", "R" * 11, "RP" * 6]
    found = {k: generic_chain(k, seed) for seed, k in enumerate(kinds)}
    found["gamma"] = with_gamma(generic_chain("RRPRRR", 5))
    found["no gravity"] = replace(generic_chain("RRRR", 7), gravity=ZERO)
    found["tilted, on a base, with a tool"] = replace(generic_chain("RRPR", 8), gravity=TILTED, base=BASE, tool=TOOL)
    found["driven"] = with_drives(replace(generic_chain("RPRR", 9), gravity=TILTED))
    found["driven, γ"] = with_drives(with_gamma(generic_chain("PRRRRR", 10)))
    rng = random.Random(4)
    for k in ("RRRRRR", "RRPRRR", "PRRPR", "RRRP", "PPRR", "RRRRRRR"):
        found[f"special {k}"] = with_drives(special_chain(rng, k))
    return found


CASES = cases()


def motion(n: int, seed: int = 0) -> np.ndarray:
    """(q, qd, qdd) at random."""
    return np.random.default_rng(seed).uniform(-1.5, 1.5, size=(3, n))


def at(chain: Chain, quantity: str, method: str, *inputs: np.ndarray, options: Options = Options()) -> np.ndarray:
    """A quantity of one configuration in plain floats, extra physics included."""
    function = assemble(chain.floats, quantity, method, options).function
    result = function(*(np.asarray(x, dtype=float).tolist() for x in inputs))
    if isinstance(result, tuple):
        return tuple(np.array(part, dtype=float) for part in result)  # type: ignore[return-value]
    return np.array(result, dtype=float)


def array(x: Mat3 | Vec3) -> np.ndarray:
    return np.array([[float(v) for v in row] for row in x.rows] if isinstance(x, Mat3) else [float(v) for v in x])


def placements(chain: Chain) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every joint's frame at q = 0 in the one before it."""
    found = []
    for i, joint in enumerate(chain.joints):
        R, p = joint.placement(0.0)
        own = Placement(R.matrix(), p)
        placed = chain.base @ own if i == 0 else own
        found.append((array(placed.R), array(placed.p)))
    return found


def pinocchio(chain: Chain) -> pin.Model:
    """The chain as a Pinocchio model, with its rotors."""
    chain = chain.floats
    model = pin.Model()
    model.gravity.linear = array(chain.gravity)
    parent = 0
    for i, ((R, p), joint, link) in enumerate(zip(placements(chain), chain.joints, chain.links, strict=True)):
        kind = pin.JointModelRZ() if joint.revolute else pin.JointModelPZ()
        parent = model.addJoint(parent, kind, pin.SE3(R, p), f"joint{i}")
        about = array(link.inertia_about_com.full)
        model.appendBodyToJoint(parent, pin.Inertia(float(link.mass), array(link.com), about), pin.SE3.Identity())
    model.armature = np.array([float(j.rotor_inertia) for j in chain.joints])
    return model


def mujoco_model(chain: Chain) -> mujoco.MjModel:
    """The chain as a MuJoCo model, with its rotors and viscous friction."""
    chain = chain.floats
    close, text = "", ""
    for (R, p), joint, link in zip(placements(chain), chain.joints, chain.links, strict=True):
        q = pin.Quaternion(R).normalized().coeffs()
        kind = "hinge" if joint.revolute else "slide"
        J = link.inertia_about_com
        text += f'<body pos="{_text(p)}" quat="{_text([q[3], *q[:3]])}">'
        text += f'<joint type="{kind}" axis="0 0 1" armature="{float(joint.rotor_inertia)!r}"'
        text += f' damping="{float(joint.viscous)!r}"/>'
        text += f'<inertial pos="{_text(array(link.com))}" mass="{float(link.mass)!r}"'
        text += f' fullinertia="{_text([float(x) for x in (J.xx, J.yy, J.zz, J.xy, J.xz, J.yz)])}"/>'
        close += "</body>"
    options = f'<compiler balanceinertia="false"/><option gravity="{_text(array(chain.gravity))}"/>'
    return mujoco.MjModel.from_xml_string(f"<mujoco>{options}<worldbody>{text}{close}</worldbody></mujoco>")


def _text(values: object) -> str:
    return " ".join(repr(float(v)) for v in values)  # type: ignore[attr-defined]


def close(found: object, expected: object, tolerance: float = 1e-10) -> None:
    """Equal to a relative tolerance of the largest entry."""
    found, expected = np.asarray(found), np.asarray(expected)
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected), initial=0.0) <= tolerance * scale
