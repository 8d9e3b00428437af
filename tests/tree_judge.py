"""What Pinocchio says about a tree, mimic joints by projection of the robot without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from armdyn.chain import Chain, Placement
from armdyn.formulations import QUANTITIES, physics
from armdyn.formulations.inverse_dynamics.derivatives import derivatives
from armdyn.formulations.registry import Options
from armdyn.parameters import minimal_parameters
from armdyn.programs.assemble import assemble
from random_trees import pinocchio_model


def projection(chain: Chain) -> tuple[Any, Any]:
    """(G, β): the rates of all joints are G q̇, their positions G q + β, a floating base's pose apart."""
    first = 6 if chain.floating else 0
    joints = [joint for joint in chain.joints if not joint.free]
    place = {i: first + c for c, i in enumerate(chain.independent)}
    G, offset = np.zeros((first + len(joints), chain.nv)), np.zeros(first + len(joints))
    G[:first, :first] = np.eye(first)
    row = first
    for i, joint in enumerate(chain.joints):
        if joint.free:
            continue
        factor, shift, k = 1.0, 0.0, i
        while (mimic := chain.joints[k].mimic) is not None:
            shift += factor * float(mimic.offset)
            factor *= float(mimic.multiplier)
            k = mimic.joint
        G[row, place[k]], offset[row] = factor, shift
        row += 1
    return G, offset


def random_motion(chain: Chain, rng: Any) -> tuple[Any, Any, Any]:
    """q, q̇ and q̈; the quaternion of a floating base has length 1."""
    q, qd, qdd = rng.uniform(-2, 2, chain.nq), rng.uniform(-2, 2, chain.nv), rng.uniform(-2, 2, chain.nv)
    if chain.floating:
        q[3:7] /= np.linalg.norm(q[3:7])
    return q, qd, qdd


def pinocchio_says(chain: Chain, q: Any, qd: Any, qdd: Any) -> dict[str, Any]:
    """Every quantity that Pinocchio has, by armdyn's names; `frame` is that of the last link."""
    import pinocchio as pin

    model = pinocchio_model(chain)
    G, offset = projection(chain)
    first = 7 if chain.floating else 0
    six = 6 if chain.floating else 0
    x = np.concatenate([q[:first], G[six:, six:] @ q[first:] + offset[six:]])
    v, a = G @ qd, G @ qdd
    last = model.njoints - 1
    frame = model.addFrame(pin.Frame("last", last, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    data = model.createData()
    H = pin.crba(model, data, x)
    H = np.triu(H) + np.triu(H, 1).T
    tau = pin.rnea(model, data, x, v, a)
    said: dict[str, Any] = {
        "inertia_matrix": G.T @ H @ G,
        "inverse_dynamics": G.T @ tau,
        "bias": G.T @ pin.nonLinearEffects(model, data, x, v),
        "gravity_load": G.T @ pin.computeGeneralizedGravity(model, data, x),
        "momentum": G.T @ H @ v,
        "kinetic_energy": 0.5 * v @ H @ v,
        "potential_energy": pin.computePotentialEnergy(model, data, x),
        "centre_of_mass": pin.centerOfMass(model, data, x).copy(),
        "centre_of_mass_jacobian": pin.jacobianCenterOfMass(model, data, x) @ G,
    }
    said["inertia_inverse"] = np.linalg.inv(said["inertia_matrix"])
    pin.computeCentroidalMomentum(model, data, x, v)
    said["centroidal_momentum"] = data.hg.vector.copy()
    said["centroidal_momentum_matrix"] = pin.computeCentroidalMap(model, data, x) @ G
    pin.computeJointJacobiansTimeVariation(model, data, x, v)
    pin.forwardKinematics(model, data, x, v, 0 * v)
    pin.updateFramePlacements(model, data)
    world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    said["link_poses"] = np.array([data.oMi[i].homogeneous for i in range(1, model.njoints)])
    said["pose"] = data.oMf[frame].homogeneous
    J = pin.computeFrameJacobian(model, data, x, frame, world) @ G
    said["jacobian"] = J
    said["operational_space_inertia_inverse"] = J @ said["inertia_inverse"] @ J.T
    # What the Jacobian's rate does to q̇: the classical acceleration of the frame at q̈ = 0.
    said["jacobian_rate · qd"] = pin.getFrameClassicalAcceleration(model, data, frame, world).vector
    pin.computeRNEADerivatives(model, data, x, v, a)
    said["dtau_dq"] = G.T @ data.dtau_dq @ G
    said["dtau_dqd"] = G.T @ data.dtau_dv @ G
    return said


def frame_of_last_link(chain: Chain) -> Any:
    """The options that make the last link's frame stand for the tool."""
    return Options(frame=(chain.bodies, Placement()))


Choice = Callable[[str, list[Any]], list[Any]]


def differences(
    chain: Chain,
    motion: Any,
    judge: dict[str, Any] | None = None,
    choice: Choice = lambda quantity, formulations: formulations,
) -> dict[str, float]:
    """How far formulations of every quantity are from Pinocchio, relative, uncompiled; all, or those of a choice."""
    q, qd, qdd = motion
    said = pinocchio_says(chain, q, qd, qdd) if judge is None else judge
    given = {name: [float(x) for x in value] for name, value in zip(("q", "qd", "qdd"), motion, strict=True)}
    given["tau"] = [float(x) for x in said["inverse_dynamics"]]
    said = {**said, "forward_dynamics": qdd}
    plain, found = chain.floats, {}
    for name, entry in QUANTITIES.items():
        options = (
            frame_of_last_link(chain) if "frame" in entry.takes and "tool_wrench" not in entry.takes else Options()
        )
        wanted = _wanted(name, chain, said, qd)
        if wanted is None:
            continue
        for method in choice(name, [method for method in entry.methods if method.serves(chain)]):
            result = assemble(plain, name, method.key, options).function(*(given[port] for port, _ in entry.inputs))
            found[f"{name} {method.key}"] = _relative(_comparable(name, result, chain, qd), wanted)
    matrices = physics.derivatives(derivatives, plain, [given["q"], given["qd"], given["qdd"]])
    for matrix, key in zip(matrices[:2], ("dtau_dq", "dtau_dqd"), strict=True):
        found[key] = _relative(np.array(matrix, float), said[key])
    return found


def _relative(got: Any, wanted: Any) -> float:
    return float(np.abs(np.array(got, float) - wanted).max() / (1 + np.abs(wanted).max()))


def _wanted(name: str, chain: Chain, said: dict[str, Any], qd: Any) -> Any:
    """What Pinocchio has for a quantity, or for what is made of it; None where it has nothing."""
    if name == "coriolis_matrix":
        return said["bias"] - said["gravity_load"]
    if name == "jacobian_rate":
        return said["jacobian_rate · qd"]
    if name in ("natural_regressor", "regressor"):
        return said["inverse_dynamics"] if not any(joint.rotor_inertia for joint in chain.joints) else None
    if name == "inertia_factors":
        return said["inertia_matrix"]
    return said.get(name)


def _comparable(name: str, result: Any, chain: Chain, qd: Any) -> Any:
    """The same of armdyn's result."""
    if name == "inertia_factors":
        U, D = (np.array(x, float) for x in result)
        return U @ np.diag(D) @ U.T
    result = np.array(result, float)
    if name in ("coriolis_matrix", "jacobian_rate"):
        return result @ qd
    if name == "regressor":
        return result @ np.array([float(x) for x in minimal_parameters(chain).values])
    if name == "natural_regressor":
        return result @ np.array([float(x) for link in chain.links for x in link.natural])
    return result
