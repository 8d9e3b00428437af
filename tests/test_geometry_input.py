"""``parameters="geometry"``: the geometry constants as an input of every quantity."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import armdyn
from armdyn.arm import Arm
from armdyn.chain import Chain, Joint
from armdyn.chain.chain import generic_chain
from armdyn.chain.geometry import geometry_constants, geometry_values, with_geometry
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Options
from armdyn.graph.program import evaluate
from armdyn.programs.assemble import assemble
from armdyn.programs.search import traced
from dynamics_cases import close
from random_chains import special_chain
from random_trees import TreeKind, pinocchio_model, random_tree
from tree_judge import random_motion

GEOMETRY = Options(parameters="geometry")
CHAINS = {
    "generic RRP": generic_chain("RRP", 3),
    "special PRRP": special_chain(random.Random(5), "PRRP"),
    "tree": random_tree(TreeKind(4, fork=0.5), 2),
    "tree with mimics": random_tree(TreeKind(5, fork=0.4, mimic=0.3, rotors=True), 4),
    "floating tree": random_tree(TreeKind(3, fork=0.5, floating=True), 1),
}


TAKING = [name for name, quantity in QUANTITIES.items() if not quantity.own_geometry]


def other_geometry(chain: Chain, seed: int = 0, by: float = 0.1) -> np.ndarray:
    """The chain's own constants, each moved: nothing is parallel or at right angles any more."""
    values = np.array(geometry_values(chain))
    return values + np.random.default_rng(seed).normal(0, by, values.shape)


def frame(chain: Chain, quantity: str) -> Options:
    """The options with a frame on the last link where a quantity needs one and the tree has several tips."""
    needs = QUANTITIES[quantity].at_tool and len(chain.tips) > 1
    return replace(GEOMETRY, frame=(chain.bodies, chain.tool)) if needs else GEOMETRY


def inputs_of(chain: Chain, quantity: str, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    q, qd, qdd = random_motion(chain, rng)
    named = {"q": q, "qd": qd, "qdd": qdd}
    shapes = QUANTITIES[quantity].input_shapes(chain)
    return [named[name] if name in named else rng.uniform(-2, 2, shape) for name, shape in shapes]


def plain(chain: Chain, quantity: str, method: str, options: Options, inputs: list[np.ndarray]) -> list[np.ndarray]:
    result = assemble(chain.floats, quantity, method, options).function(*(x.tolist() for x in inputs))
    parts = result if len(QUANTITIES[quantity].outputs) > 1 else (result,)
    return [np.array(part, float).ravel() for part in parts]


@pytest.mark.parametrize("quantity", TAKING)
@pytest.mark.parametrize("case", list(CHAINS)[1:])
def test_every_formulation_on_another_geometry_is_that_of_an_arm_built_with_it(case: str, quantity: str) -> None:
    chain = CHAINS[case]
    options, values, inputs = frame(chain, quantity), other_geometry(chain), inputs_of(chain, quantity)
    if QUANTITIES[quantity].dof > chain.nv or quantity == "regressor":
        return  # its columns belong to the arm's own structure: a test of its own
    built = with_geometry(chain, [float(x) for x in values])
    for method in QUANTITIES[quantity].methods:
        if not method.serves(chain) or method.reference_only:
            continue
        try:
            expected = plain(built, quantity, method.key, replace(options, parameters="baked"), inputs)
            program = traced(chain, quantity, method.key, options)
        except (InputError, ZeroDivisionError):  # the centre of mass of a massless link
            assert method.key in ("walker_orin", "denoc", "newton_euler_mlc")
            continue
        for found, wanted in zip(evaluate(program, *map(np.ravel, inputs), values), expected, strict=True):
            close(found, wanted)


@pytest.mark.parametrize("name", ["stanford"])
@pytest.mark.parametrize("quantity", TAKING)
def test_at_the_arms_own_geometry_it_is_the_baked_kernel(name: str, quantity: str) -> None:
    arm = armdyn.load(name)
    inputs = inputs_of(arm.chain, quantity)
    method = "meeting_frame" if quantity == "inertia_matrix" else QUANTITIES[quantity].methods[0].key
    found = evaluate(traced(arm.chain, quantity, method, GEOMETRY), *map(np.ravel, inputs), arm.geometry)
    for one, other in zip(found, plain(arm.chain, quantity, method, Options(), inputs), strict=True):
        close(one, other)


@pytest.mark.parametrize("case", ["generic RRP", "tree", "floating tree"])
def test_pinocchio_says_the_same_of_another_geometry(case: str) -> None:
    chain, values = CHAINS[case], other_geometry(CHAINS[case], 7)
    model = pinocchio_model(with_geometry(chain, [float(x) for x in values]))
    data = model.createData()
    q, qd, qdd = random_motion(chain, np.random.default_rng(3))
    tau = evaluate(traced(chain, "inverse_dynamics", "newton_euler", GEOMETRY), q, qd, qdd, values)[0]
    close(tau, pin.rnea(model, data, q, qd, qdd))


def test_the_regressor_has_the_columns_of_the_arms_structure() -> None:
    """Lengths and oblique angles may change; parallel axes, and what is vertical, stay so."""
    for kinds, seed in (("RRRR", 0), ("RPRR", 1), ("RPPR", 2)):
        chain = generic_chain(kinds, seed)
        moves = [c.joint is not None and c.joint > 0 and c.kind != "gamma" for c in geometry_constants(chain)]
        values = np.where(moves, other_geometry(chain, 2), geometry_values(chain))
        built = with_geometry(chain, [float(x) for x in values])
        inputs = inputs_of(chain, "regressor")
        found = evaluate(traced(chain, "regressor", "unit_motions", GEOMETRY), *inputs, values)[0]
        close(found, plain(built, "regressor", "unit_motions", Options(), inputs)[0])


def test_multiples_that_hold_for_one_geometry_are_refused() -> None:
    arm = Arm("with mimic joints", random_tree(TreeKind(4, fork=0, mimic=0.6), 3))
    assert any(len(combination) > 1 for combination in arm.minimal_parameters.combinations)
    with pytest.raises(InputError, match="natural_regressor is available"):
        _ = arm.kernel("regressor", parameters="geometry").program


@pytest.mark.parametrize("quantity", ["pose", "jacobian", "inverse_dynamics", "forward_dynamics", "gravity_load"])
def test_derivatives_in_the_geometry_are_those_of_differences(quantity: str) -> None:
    arm = armdyn.generic_arm("RP", 1)
    inputs, values = inputs_of(arm.chain, quantity), other_geometry(arm.chain, 1)
    kernel = arm.kernel(quantity, parameters="geometry", backend="numpy")
    exact = kernel.variant(derivatives=("geometry",))(*inputs, values)
    step = 1e-6
    moved = values + step * np.vstack([np.eye(len(values)), -np.eye(len(values))])
    ends = kernel(*inputs, moved)
    slopes = (ends[: len(values)] - ends[len(values) :]) / (2 * step)
    close(exact, np.moveaxis(slopes, 0, -1), 1e-8)
    by_duals = arm.kernel(quantity, parameters="geometry", backend="python", derivatives="geometry")(*inputs, values)
    close(by_duals, exact)


def test_batches_of_geometries_broadcast_on_every_backend() -> None:
    arm = armdyn.load("scara")
    rng = np.random.default_rng(0)
    q = rng.uniform(-1, 1, (3, 1, arm.n))
    values = arm.geometry + rng.normal(0, 0.05, (4, len(arm.geometry)))
    kernel = arm.kernel("pose", parameters="geometry")
    found = kernel(q, values)
    assert found.shape == (3, 4, 4, 4)
    for k, one in enumerate(values):
        close(found[:, k], arm.with_geometry(one).pose(q[:, 0]), 1e-12)
    for backend in ("numpy", "python"):
        close(arm.kernel("pose", parameters="geometry", backend=backend)(q, values), found, 1e-13)
        H = arm.kernel("inertia_matrix", parameters="geometry", backend=backend)(q, values)
        close(H[1, 2], arm.with_geometry(values[2]).inertia_matrix(q[1, 0]), 1e-12)
    close(arm.pose(q, values, parameters="geometry"), found, 1e-15)


def test_the_layout_lists_what_a_joint_can_have() -> None:
    names = armdyn.load("ur5").geometry_names
    assert names[:6] == tuple(f"base_{x}" for x in ("x", "y", "z", "roll", "pitch", "yaw"))
    assert names[-6:] == tuple(f"tool_{x}" for x in ("x", "y", "z", "roll", "pitch", "yaw"))
    assert [name for name in names if name.startswith("gamma")] == ["gamma_1", "gamma_3", "gamma_4"]
    tree = CHAINS["tree"]
    forked = {constant.joint for constant in geometry_constants(tree) if constant.kind == "turn"}
    assert forked == {i for i, parent in enumerate(tree.parents) if tree.parents.count(parent) > 1}
    assert not any(c.name.startswith("base") for c in geometry_constants(CHAINS["floating tree"]))


def test_an_arm_with_its_own_geometry_is_the_same_arm() -> None:
    for name in ("puma560", "ur5", "stanford"):
        arm = armdyn.load(name)
        assert arm.with_geometry(arm.geometry).chain == arm.chain
    with pytest.raises(InputError, match="geometry constants, got 3 values"):
        arm.with_geometry([1.0, 2.0, 3.0])


def test_every_constant_moves_the_frame_it_belongs_to() -> None:
    """An independent composition of the seven steps of a joint."""
    from random_trees import matrix

    chain = with_geometry(CHAINS["tree"], [float(x) for x in other_geometry(CHAINS["tree"])])
    joint: Joint = chain.joints[3]
    R, p = joint.placement(0.0)
    close([[float(x) for x in row] for row in R.matrix().rows], matrix(joint)[:3, :3], 1e-14)
    close([float(x) for x in p], matrix(joint)[:3, 3], 1e-14)


def test_what_belongs_to_the_arms_own_geometry_says_so() -> None:
    with pytest.raises(InputError, match="payload_parameters depends on the arm's own geometry"):
        _ = armdyn.load("scara").kernel("payload_parameters", parameters="geometry").program


def test_constants_that_are_differentiated_in_do_not_mix_with_the_joints() -> None:
    """The plain reference differentiates in q an arm whose constants are dual numbers: two levels."""
    arm = armdyn.generic_arm("R", 2)
    q, values = np.array([0.4]), other_geometry(arm.chain, 3)
    options = Options(parameters="geometry", derivatives=("geometry",))
    found = assemble(arm.chain, "gravity_load", "definition", options).function([0.4], list(map(float, values)))
    kernel = arm.kernel("gravity_load", parameters="geometry", backend="numpy")
    step = 1e-6 * np.eye(len(values))
    close(np.array(found, float)[0], ((kernel(q, values + step) - kernel(q, values - step)) / 2e-6)[:, 0], 1e-8)
