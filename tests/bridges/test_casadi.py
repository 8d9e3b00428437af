"""The bridge to CasADi: the contract of all bridges, Jacobians, MX graphs, serialisation, C."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import armdyn
from bridge_contract import CASES, arrays, close, interpreted, kernel

PANDA = armdyn.load("panda")


def called(function: ca.Function, shapes: list[tuple[int, ...]], values: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    found = function.call(values)
    return tuple(np.reshape(x.full(), shape) for x, shape in zip(found, shapes, strict=True))


@pytest.mark.parametrize(("arm", "quantity", "options"), CASES)
def test_values_and_jacobians(arm, quantity, options):
    k = kernel(arm, quantity, options)
    function = k.casadi()
    assert function.name_in() == [name for name, _ in k.assembly.inputs]
    assert function.name_out() == [name for name, _ in k.assembly.outputs]
    batch = arrays(k, 3)
    shapes = [shape for _, shape in k.assembly.outputs]
    for row in range(3):
        values = [x[row] for x in batch]
        close(called(function, shapes, values), interpreted(k, values))
    # armdyn's own derivative program against CasADi's algorithmic differentiation of the expression
    symbols = [ca.SX.sym(name, *shape) for name, shape in k.assembly.inputs]
    values = [x[0] for x in batch]
    found = function.jacobian().call([*values, *function.call(values)])
    outputs = function.call(symbols)
    slopes = [ca.jacobian(y, x) for y in outputs for x in symbols]
    theirs = ca.Function("theirs", symbols, slopes).call(values)
    close([x.full() for x in found], [x.full() for x in theirs], 1e-10)


@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_the_jacobian_is_the_derivative_kernel(quantity):
    k = PANDA.kernel(quantity)
    function, names = k.casadi(), tuple(name for name, _ in k.assembly.inputs)
    values = arrays(k)
    expected = k.variant(derivatives=names)(*values)
    symbols = [ca.MX.sym(name, PANDA.n) for name in names]
    slopes = ca.Function("slopes", symbols, [ca.jacobian(function(*symbols), x) for x in symbols])
    close([x.full() for x in slopes.call(values)], expected)
    assert (
        function.jacobian().n_instructions() < ca.Function("f", *expanded(function)).jacobian().n_instructions() / 1.5
    )


def expanded(function: ca.Function) -> tuple[list[ca.SX], list[ca.SX]]:
    symbols = [ca.SX.sym(name, function.size_in(k)) for k, name in enumerate(function.name_in())]
    return symbols, function.call(symbols)


def test_second_derivatives_in_an_mx_graph():
    function = PANDA.forward_dynamics.casadi()
    q, qd, tau = arrays(PANDA.forward_dynamics)
    x, v, u = (ca.MX.sym(name, PANDA.n) for name in ("q", "qd", "tau"))
    H, g = ca.hessian(ca.sumsqr(function(x, v, u)), x)
    twice = ca.Function("twice", [x, v, u], [H, g])
    step, found = 1e-6, twice(q, qd, tau)
    assert np.allclose(found[0].full(), found[0].full().T, rtol=1e-9)
    for k in range(PANDA.n):
        ends = [twice(q + s * step * np.eye(PANDA.n)[k], qd, tau)[1].full().ravel() for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(found[0].full()[:, k], slope, rtol=1e-5, atol=1e-6 * np.abs(found[0].full()).max())


def test_a_batch_is_a_map():
    function = PANDA.bias.casadi().map(9)
    batch = arrays(PANDA.bias, 9)
    close(function(*(x.T for x in batch)).full().T, PANDA.bias(*batch))


def test_it_keeps_its_jacobian_when_serialised_and_pickled():
    function = PANDA.inverse_dynamics.casadi()
    values = arrays(PANDA.inverse_dynamics)
    for copy in (ca.Function.deserialize(function.serialize()), pickle.loads(pickle.dumps(function))):
        close(copy(*values).full(), function(*values).full())
        assert copy.jacobian().n_instructions() == function.jacobian().n_instructions()


def test_it_generates_c_with_its_jacobian(tmp_path, monkeypatch):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    monkeypatch.chdir(tmp_path)
    function = armdyn.load("scara").forward_dynamics.casadi()
    code = ca.CodeGenerator("scara.c")
    code.add(function)
    code.add(function.jacobian())
    code.generate()
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "scara.c", "-o", "scara.so"], check=True)
    external = ca.external("forward_dynamics", "./scara.so")
    values = arrays(armdyn.load("scara").forward_dynamics)
    close(external(*values).full(), function(*values).full())
    close(
        [x.full() for x in external.jacobian().call([*values, 0])],
        [x.full() for x in function.jacobian().call([*values, 0])],
    )


def test_a_singular_inertia_matrix_is_not_a_number():
    k = armdyn.load("scara").kernel("forward_dynamics", parameters="runtime")
    values = arrays(k)
    values[-1][:] = 0
    assert np.isnan(k.casadi()(*values).full()).any()


def test_an_unknown_option_is_named():
    with pytest.raises(armdyn.ArmdynError, match="unknown option of bias 'wind'; available: q, qd, out, threads"):
        PANDA.bias.casadi(wind=True)


def test_the_benchmark_runs():
    path = Path(__file__).parents[2] / "benchmarks" / "bench_bridges.py"
    command = [sys.executable, str(path), "--arm", "scara", "--seconds", "0.001", "--only", "casadi", "--alone"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "| forward dynamics | derivatives, instructions |" in done.stdout
