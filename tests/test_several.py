"""Several quantities of one state in one kernel."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError
from random_trees import TreeKind, random_tree

ARM = armdyn.generic_arm("RRPR", seed=1)
SETS = (
    ("inertia_matrix", "bias"),
    ("pose", "jacobian", "jacobian_rate"),
    ("gravity_load", "inverse_dynamics", "kinetic_energy", "link_poses"),
    ("forward_dynamics_derivatives", "pose", "forward_dynamics"),
    ("regressor",),
)


def inputs(kernel, *batch, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1, 1, (*batch, *shape)) for name, shape in kernel.ports[0]}


def alone(arm, names, given, **options):
    """The results of the quantities one by one."""
    found = []
    for name in names:
        kernel = getattr(arm, name)
        mine = {option: x for option, x in options.items() if option in kernel.option_names}
        if name == "inverse_dynamics":  # there a frame says where a wrench acts
            mine.pop("frame", None)
        result = kernel(**{port: x for port, x in given.items() if port in dict(kernel.ports[0])}, **mine)
        found.extend(result if isinstance(result, tuple) else [result])
    return found


def check(got, expected, tolerance=1e-12):
    got = got if isinstance(got, tuple) else (got,)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("names", SETS, ids=len)
@pytest.mark.parametrize("backend", ["llvm", "numpy", "python"])
def test_results_are_those_of_the_quantities(names, backend):
    kernel = ARM.kernel(names, backend=backend)
    given = inputs(kernel, 3)
    check(kernel(**given), alone(ARM, names, given))


def test_any_robot_and_option():
    mimic = TreeKind(joints=4, fork=0.6, mimic=0.5)
    hand = armdyn.Arm("hand", next(c for c in (random_tree(mimic, k) for k in range(20)) if c.has_mimics))
    tree = armdyn.Arm("tree", random_tree(TreeKind(joints=4, fork=0.5, floating=True), 2))
    frame = hand.frame_names[-1]
    for arm, names, options in (
        (hand, ("inverse_dynamics", "jacobian"), {"friction": True, "frame": frame}),
        (hand, ("inertia_matrix", "pose_error"), {"frame": frame}),
        (tree, ("inertia_matrix", "bias", "centre_of_mass"), {}),
    ):
        kernel = arm.kernel(names, **options)
        given = inputs(kernel, 2)
        check(kernel(**given), alone(arm, names, given, **options))


def test_the_work_is_shared_and_single_calls_and_batches_agree_in_every_bit():
    def operations(*names):
        return (
            ARM.kernel(names).program.operations.total
            if len(names) > 1
            else getattr(ARM, names[0]).program.operations.total
        )

    assert operations("pose", "jacobian") < 0.8 * (operations("pose") + operations("jacobian"))
    derivatives = operations("forward_dynamics_derivatives")
    assert operations("forward_dynamics", "forward_dynamics_derivatives") <= derivatives + ARM.n
    kernel = ARM.kernel(("inertia_matrix", "bias"))
    q, qd = inputs(kernel, 37).values()
    whole = kernel(q, qd)
    for k in (0, 17, 36):
        for a, b in zip(kernel(q[k], qd[k]), whole, strict=True):
            np.testing.assert_array_equal(a, b[k])
    out = tuple(np.empty_like(x) for x in whole)
    assert kernel(q, qd, out=out)[1] is out[1]
    np.testing.assert_array_equal(out[0], whole[0])


def test_inputs_parameters_precision_and_pickles():
    kernel = ARM.kernel(("jacobian", "inverse_dynamics"), parameters="runtime", tool_wrench=True)
    assert [name for name, _ in kernel.ports[0]] == ["q", "qd", "qdd", "wrench", "parameters"]
    given = inputs(kernel, 2)
    masses = np.array(ARM.minimal_parameters.values, float)
    q, qd, qdd, wrench = (given[name] for name in ("q", "qd", "qdd", "wrench"))
    expected = [ARM.jacobian(q), ARM.inverse_dynamics(q, qd, qdd, tool_wrench=wrench, parameters=masses)]
    check(kernel(q, qd, qdd, wrench, masses), expected)
    plain = pickle.loads(pickle.dumps(ARM.kernel(("jacobian", "inverse_dynamics"))))
    check(plain(q, qd, qdd, tool_wrench=wrench, parameters=masses), expected)
    single = plain(*(x.astype(np.float32) for x in (q, qd, qdd)))
    assert {x.dtype for x in single} == {np.dtype(np.float32)}
    check(single, alone(ARM, ("jacobian", "inverse_dynamics"), {"q": q, "qd": qd, "qdd": qdd}), 1e-5)
    assert ARM.kernel(("pose", "jacobian"), dtype="float32")(q)[0].dtype == np.float32


def test_what_is_shown_and_other_forms():
    kernel = ARM.kernel(("pose", "kinetic_energy"))
    assert [name for name, _ in kernel.ports[1]] == ["pose_T", "kinetic_energy_T"]
    assert list(inspect.signature(kernel).parameters)[:2] == ["q", "qd"]
    assert "    kinetic_energy_T : (...), J" in kernel.__doc__
    assert "arm.kernel(('pose', 'kinetic_energy'))" in kernel.__doc__
    assert "pose_T" in kernel._repr_html_()
    q, qd = inputs(kernel).values()
    function = kernel.casadi()
    np.testing.assert_allclose(np.array(function(q, qd)[1]).item(), ARM.kinetic_energy(q, qd), rtol=1e-12)
    assert len(kernel.sympy()) == 2


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ((), {}, "got none"),
        (("bias", "pose", "bias"), {}, "bias is named twice"),
        (("bias", "nonsense"), {}, "unknown quantity 'nonsense'; available: inertia_matrix"),
        (("bias", "payload_parameters"), {}, "payload_parameters is no quantity of a state"),
        (("pose", "jacobian"), {"friction": True}, "unknown option of pose_and_jacobian 'friction'"),
        (("bias", "pose"), {"derivatives": "q"}, "name forward_dynamics_derivatives"),
        (("bias", "potential_energy"), {"parameters": "runtime"}, "potential_energy takes no run-time parameters"),
        (("bias", "pose"), {"method": "reference"}, "method='auto'"),
    ],
)
def test_errors(names, options, message):
    with pytest.raises(InputError, match=message):
        _ = ARM.kernel(names, **options).program
