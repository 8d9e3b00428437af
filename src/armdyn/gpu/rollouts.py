"""Rollouts: many states, many steps, in one launch on a graphics processor or in the CPU's threads.

One program computes a step (`programs.stepping`), with the torques or the control law, their limits, friction and joint
stops inside; every backend compiles this program. The torques, or the references of a control law, are held for a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Unpack

import numpy as np

from armdyn.algebra import cos, sign, sin, sqrt
from armdyn.algebra.scalar import positive
from armdyn.arm import Arm
from armdyn.codegen.compile import load_or_compile
from armdyn.codegen.gpu import webgpu
from armdyn.codegen.gpu.webgpu import Device, DeviceArray
from armdyn.errors import InputError, choose
from armdyn.formulations.registry import Options
from armdyn.graph.node import OPERATIONS
from armdyn.graph.program import Program, inline, interpret, trace
from armdyn.kernels.kernel import auto, checked
from armdyn.options import Acting, RolloutKeywords, Stepping, flat_keywords
from armdyn.programs.program import program
from armdyn.programs.stepping import SCHEMES, step
from armdyn.simulation.drives import AsGiven, Law, Saturated, drive, source_of
from armdyn.simulation.request import force_rows, force_sizes
from armdyn.values import real_array

Slopes = Callable[[Any, Any, Any], Any]
METHODS = ("semi_implicit_euler", "RK4")
SMOOTH = 0.02  # rad/s or m/s, below which dry friction falls linearly to zero
ROWS = 1024  # of a batch that the CPU carries through all steps at once: their states stay in the cache
STEPS = 1024  # in one launch: drivers end a launch that takes seconds


@flat_keywords(stepping=Stepping, acting=Acting)
def rollout(
    arm: Arm,
    q0: Any,
    qd0: Any,
    torque: Any,
    *,
    steps: int | None = None,
    every: int | None = None,
    device: Device | int | str | None = None,
    stepping: Stepping = Stepping(),
    acting: Acting = Acting(),
    **keywords: Unpack[RolloutKeywords],
) -> tuple[Any, Any]:
    """Many motions of an arm at once: positions and velocities after `steps` steps, or after every k-th of them.

    Parameters
    ----------
    arm : Arm
        The arm, or a robot with a floating base.
    q0, qd0 : array_like or DeviceArray
        Positions (..., n) and velocities (..., n) at the start; they broadcast with one another and with `torque`.
    torque : array_like, DeviceArray, PD, PDGravity, ComputedTorque or Feedforward
        Torques (..., steps, n), each held for one step; (..., 1, n) is the same for all. Or a control law of
        `armdyn.simulation`, evaluated at every step at its reference at that time.
    steps : int, optional
        Number of steps; by default that of the torques.
    every : int, optional
        Results after every so many steps, (..., steps // every, n); by default only after the last, (..., n).
    device : optional
        As that of `Arm.kernel`, or "cpu": the same steps in machine code, on `armdyn.set_threads` threads, in single
        precision if all arrays are float32.
    method
        semi_implicit_euler or RK4.
    step
        Length of a step, s.
    friction, saturate, limits
        What acts on the joints, see `armdyn.options.Acting`.
    stepping, acting
        These keywords as records of `armdyn.options`: `method` and `step`; the rest.

    Returns
    -------
    tuple
        Positions and velocities: on the device if `q0`, `qd0` or the torques are there, otherwise NumPy arrays.
    """
    method, step = stepping.method, stepping.step
    choose("method of a rollout", method, METHODS)
    if acting.limits not in (False, "stop"):
        raise InputError(f'limits of a rollout are False (ignored) or "stop", got {acting.limits!r}')
    if not (np.isfinite(step) and step > 0):
        raise InputError(f"step must be a positive number of seconds, got {step!r}")
    on_cpu = device == "cpu"
    law, inputs, count = _driven(arm, torque, step, steps, acting, on_cpu)
    apart = count if every is None else every
    if not 1 <= apart <= count:
        raise InputError(f"every must be from 1 to the number of steps, {count}; got {every}")
    of_step = step_of(arm, law, inputs.shape[-1], method, acting)
    state = [_state(x, size, name) for x, size, name in ((q0, arm.chain.nq, "q0"), (qd0, arm.chain.nv, "qd0"))]
    arrays = (*state, inputs)
    try:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in state), inputs.shape[:-2])
    except ValueError:
        shapes = ", ".join(str(tuple(x.shape)) for x in arrays)
        raise InputError(f"the batches of q0, qd0 and torque do not broadcast together: {shapes}") from None
    if on_cpu:
        found = _on_cpu(of_step, (arm, law, method, acting), arrays, batch, step, count, apart)
    else:
        found = _on_device(of_step, device, arrays, batch, step, count, apart)
    return (found[0], found[1]) if every is not None else (_last(found[0]), _last(found[1]))


def step_of(arm: Arm, law: Law, size: int, method: str, acting: Acting) -> Program:
    """The program of a step: (q, qd, u, h) -> (q1, qd1)."""
    chain, options = arm.chain, Options(friction=acting.friction)
    dynamics = program(chain, "forward_dynamics", auto(chain, "forward_dynamics", options), options)
    if acting.friction:
        dynamics = smoothed(dynamics)

    def held(q: list[Any], qd: list[Any], u: list[Any]) -> Slopes:
        tau = _forces(arm, law(chain, q, qd, u))
        return lambda stage, x, v: inline(dynamics, x, v, tau)[0]

    return step_program(arm, method, size, held, stops=acting.limits == "stop")


def step_program(arm: Arm, method: str, size: int, held: Callable[..., Slopes], *, stops: bool) -> Program:
    """The program of a step, (q, qd, u, h) -> (q1, qd1), with `size` numbers u.

    `held(q, qd, u)` gives the accelerations as a function of stage, q and qd, with what is held during the step.
    """
    lower, upper = arm.limits.T

    def function(q: list[Any], qd: list[Any], u: list[Any], h: Any) -> Any:
        after, speed = step(SCHEMES[method], q, qd, h, held(q, qd, u))
        if stops:
            for k, (low, high) in enumerate(zip(lower, upper, strict=True), -arm.n):
                after[k], speed[k] = _stopped(after[k], speed[k], float(low), float(high))
        return after, speed

    nq, nv = arm.chain.nq, arm.chain.nv
    inputs = {"q": (nq,), "qd": (nv,), "u": (size,), "h": ()}
    return trace(f"{method}_rollout", function, inputs, [("q1", (nq,)), ("qd1", (nv,))])


def smoothed(dynamics: Program) -> Program:
    """The program with a smooth sign, x / √(x² + w²): dry friction without a jump at standstill."""
    width = SMOOTH**2
    functions = {name: operation.evaluate for name, operation in OPERATIONS.items()} | {
        "sin": sin,
        "cos": cos,
        "sqrt": sqrt,
        "positive": positive,
        "sign": lambda x: x / sqrt(x * x + width),
    }

    def function(*arguments: Any) -> Any:
        return interpret(dynamics, functions, lambda value: value, *arguments)[0]

    inputs = {port.name: port.shape for port in dynamics.inputs}
    return trace(dynamics.name, function, inputs, [(port.name, port.shape) for port in dynamics.outputs])


def _forces(arm: Arm, torques: Sequence[Any]) -> list[Any]:
    """Forces along all velocities: nothing acts on a floating base beside the joint torques."""
    return [0] * (arm.chain.nv - len(torques)) + list(torques)


def _stopped(x: Any, v: Any, low: float, high: float) -> tuple[Any, Any]:
    """Position and velocity of a joint that stays within its limits: it stops there without a rebound."""
    for end, side in ((low, -1), (high, 1)):
        if math.isfinite(end):
            beyond = (1 + sign(side * (x - end))) / 2
            outwards = (1 + sign(side * v)) / 2
            x, v = (1 - beyond) * x + beyond * end, (1 - beyond * outwards) * v
    return x, v


def _driven(
    arm: Arm, torque: Any, step: float, steps: int | None, acting: Acting, on_cpu: bool
) -> tuple[Law, Any, int]:
    """The law, its inputs (..., steps, size), and the number of steps."""
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1):
        raise InputError(f"steps must be a positive whole number, got {steps!r}")
    law: Law = AsGiven()
    if isinstance(torque, DeviceArray):
        if on_cpu:
            raise InputError(f"the torques are on {torque.device.name}, the computation on the CPU: use torque.numpy()")
        inputs: Any = torque
    elif hasattr(torque, "drive"):
        if steps is None:
            raise InputError("a control law does not say for how long: give steps=")
        driven = drive(arm.chain, torque)
        assert driven is not None
        times = step * np.arange(steps)
        law, inputs = driven.law, np.asarray(driven.inputs(times[:, None]))
        inputs = np.broadcast_to(inputs, (*inputs.shape[:-3], steps, 1, driven.size))[..., 0, :]
    else:
        inputs = _numbers(torque, "torque")
    own = isinstance(law, AsGiven) and not hasattr(torque, "drive")
    if own and (inputs.ndim < 2 or inputs.shape[-1] not in (arm.n, arm.chain.nv)):
        raise InputError(
            f"torque must have the shape (..., steps, {force_sizes(arm.chain)}), or be a control law such as "
            f"armdyn.simulation.PDGravity; got {tuple(inputs.shape)}"
        )
    if own and not isinstance(inputs, DeviceArray):
        inputs = force_rows(arm.chain, inputs).astype(inputs.dtype, copy=False)
    given = int(inputs.shape[-2])
    if steps is not None and given not in (1, steps):
        raise InputError(f"the torques are for {given} steps, steps={steps}")
    efforts = tuple(None if joint.limit is None else joint.limit.effort for joint in arm.joints)
    efforts = (None,) * (arm.chain.nv - len(efforts)) + efforts
    if acting.saturate and any(efforts):
        law = Saturated(law, efforts)
    return law, inputs, int(steps or given)


def _state(values: Any, size: int, name: str) -> Any:
    found = values if isinstance(values, DeviceArray) else _numbers(values, name)
    if found.shape[-1:] != (size,):
        raise InputError(f"{name} must have the shape (..., {size}), got {tuple(found.shape)}")
    return found


def _numbers(values: Any, name: str) -> np.ndarray:
    """Real numbers, in single precision if they are."""
    found = real_array(values, name)
    return found.astype(np.float32) if getattr(values, "dtype", None) == np.float32 else found


def _last(states: Any) -> Any:
    """The only state of each row."""
    shape = (*states.shape[:-2], states.shape[-1])
    if isinstance(states, DeviceArray):
        return DeviceArray(states.device, shape, states.buffer)
    return states.reshape(shape)


def _on_device(
    of_step: Program, asked: Any, arrays: Sequence[Any], batch: tuple[int, ...], h: float, count: int, every: int
) -> tuple[Any, ...]:
    """On a graphics device: in one launch if an array is there already, otherwise in parts that it can hold."""
    there = [x.device for x in arrays if isinstance(x, DeviceArray)]
    at = webgpu.device(asked) if asked is not None or not there else there[0]
    for one in there:
        if one is not at:
            raise InputError(f"an array is on {one.name} ({one.backend}), the rollout on {at.name} ({at.backend})")
    names = ("q0", "qd0", "torque")
    if there:
        placed = [x if isinstance(x, DeviceArray) else _uploaded(at, x, n) for x, n in zip(arrays, names, strict=True)]
        return webgpu.rollout(at, of_step, placed[:2], placed[2], _clock(count, every, h, arrays[2]))
    flat = [_rows(x, batch, kept) for x, kept in zip(arrays, (1, 1, 2), strict=True)]
    total, stored = math.prod(batch), count // every
    most = max(4 * x[0].size for x in (*flat[:2], flat[2])) if total else 4
    rows = max(1, at.largest_array // max(most, 4 * stored * max(x.shape[-1] for x in flat[:2]), 4))
    span = max(every, STEPS // every * every)
    results = [np.empty((total, stored, x.shape[-1]), dtype=np.float32) for x in flat[:2]]
    for first in range(0, total, rows):
        part = [x if len(x) == 1 else x[first : first + rows] for x in flat]
        state = [_uploaded(at, np.broadcast_to(x, (min(rows, total - first), x.shape[-1])), "state") for x in part[:2]]
        for begin in range(0, count, span):
            here = min(span, count - begin)
            u = part[2] if part[2].shape[-2] == 1 else part[2][:, begin : begin + here]
            placed_u = _uploaded(at, u if len(u) > 1 else u[0], "torque")
            kept = here // every
            if not kept:
                break
            found = webgpu.rollout(at, of_step, state, placed_u, _clock(here, every, h, u))
            host = [x.numpy() for x in found]
            for result, x in zip(results, host, strict=True):
                result[first : first + rows, begin // every : begin // every + kept] = x
            state = [webgpu.uploaded(at, np.ascontiguousarray(x[:, -1])) for x in host]
    return tuple(x.reshape(*batch, *x.shape[1:]) for x in results)


def _uploaded(at: Device, values: np.ndarray, name: str) -> DeviceArray:
    if not np.isfinite(values).all():
        raise InputError(f"{name} contains NaN or infinity, of which graphics devices promise nothing")
    return webgpu.uploaded(at, webgpu.single(values, name))


def _clock(count: int, every: int, h: float, inputs: Any) -> np.ndarray:
    """What `webgpu.rollout` reads: steps, how many one result is apart, their length, u's distance between steps."""
    return np.array([count, every, h, inputs.shape[-1] if inputs.shape[-2] > 1 else 0], dtype=np.float32)


def _rows(values: np.ndarray, batch: tuple[int, ...], kept: int) -> np.ndarray:
    """An array as rows of the whole batch; one row if it is the same for all."""
    own, core = values.shape[:-kept], values.shape[-kept:]
    if math.prod(own) == 1:
        return values.reshape(1, *core)
    return np.broadcast_to(values, (*batch, *core)).reshape(-1, *core)


def _on_cpu(
    of_step: Program,
    asked: tuple[Any, ...],
    arrays: Sequence[Any],
    batch: tuple[int, ...],
    h: float,
    count: int,
    every: int,
) -> tuple[Any, ...]:
    """In machine code: blocks of rows that stay in the cache go through all steps, on several threads."""
    there = [x.device.name for x in arrays if isinstance(x, DeviceArray)]
    if there:
        raise InputError(f"an array is on {there[0]}, the rollout on the CPU: use its numpy()")
    single = all(x.dtype == np.float32 for x in arrays)
    dtype = np.float32 if single else np.float64
    arm, *rest = asked
    key = ("rollout", arm.chain, *rest, source_of(rest[0]))
    advance: Any = load_or_compile(key, lambda: of_step, number="float" if single else "double")
    if advance is None:  # no joint, or no torque
        raise InputError(f"{arm.name} has nothing that moves: a rollout needs joints")
    flat = [np.asarray(_rows(x, batch, kept), dtype) for x, kept in zip(arrays, (1, 1, 2), strict=True)]
    total, stored = math.prod(batch), count // every
    results = [np.empty((total, stored, x.shape[-1]), dtype=dtype) for x in flat[:2]]
    length = np.asarray(h, dtype)

    def block(first: int) -> None:
        rows = min(ROWS, total - first)
        part = [x if len(x) == 1 else x[first : first + rows] for x in flat]
        state = [np.array(np.broadcast_to(x, (rows, x.shape[-1]))) for x in part[:2]]
        after = [np.empty_like(x) for x in state]
        with np.errstate(all="ignore"):  # what is not finite stays in its row
            for k in range(stored * every):
                advance(*state, part[2][:, k if part[2].shape[1] > 1 else 0], length, out=tuple(after))
                state, after = after, state
                if (k + 1) % every == 0:
                    for result, x in zip(results, state, strict=True):
                        result[first : first + rows, k // every] = x

    with ThreadPoolExecutor(max_workers=checked(None)) as pool:
        list(pool.map(block, range(0, total, ROWS)))
    return tuple(x.reshape(*batch, *x.shape[1:]) for x in results)
