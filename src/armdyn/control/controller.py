"""Controller: a control law of one arm with its gains, compiled; pure, the memory is the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra import Operations
from armdyn.algebra.cached import cached_property
from armdyn.arm import Arm
from armdyn.codegen.compile import load_or_compile
from armdyn.control.law import ControlLaw, Entry, sized
from armdyn.control.program import check, start_program, step_program
from armdyn.errors import InputError, choose
from armdyn.formulations.registry import Shapes
from armdyn.graph import Program
from armdyn.kernels.arguments import real_array

Array = NDArray[np.float64]
Arrays = dict[str, Array]


@dataclass(frozen=True, eq=False)
class Controller:
    """A control law of one arm: `step` maps memory and measurements to outputs and the next memory.

    Nothing is kept between two calls. Arrays may have leading axes, which are a batch.
    """

    arm: Arm
    law: ControlLaw
    gains: Mapping[str, Array]
    friction: bool = False

    def __repr__(self) -> str:
        reads = ", ".join(entry.name for entry in (*self.law.measured, *self.law.reference))
        gives = ", ".join(entry.name for entry in self.law.outputs)
        return f"<Controller {self.law.name} of {self.arm.name}: {reads} -> {gives}; {self.operations}>"

    @property
    def program(self) -> Program:
        """The graph of a step, as it is compiled and written out in C."""
        return step_program(self.law, self.arm.chain, self.friction)

    @property
    def operations(self) -> Operations:
        """What a step costs."""
        return self.program.operations

    @cached_property
    def _step(self) -> Any:
        return self._compiled("step", step_program)

    @cached_property
    def _start(self) -> Any:
        return self._compiled("start", start_program)

    @cached_property
    def _reads(self) -> Shapes:
        return (*sized(self.law.memory, self.arm.chain), *sized(self.law.reads, self.arm.chain))

    def _compiled(self, what: str, make: Any) -> Any:
        chain = self.arm.chain
        made = load_or_compile(("control", what, self.law.name, chain, self.friction),
                               lambda: make(self.law, chain, self.friction))  # fmt: skip
        assert made is not None  # a law has no empty arrays
        return made

    def start(self, **given: Any) -> Arrays:
        """The first memory, from measurements by name; {} where the law remembers nothing."""
        if not self.law.memory:
            return {}
        values = self._arranged(sized(self.law.starts_from, self.arm.chain), {}, given)
        found = self._start(*values)
        return dict(zip((entry.name for entry in self.law.memory), _several(found), strict=True))

    def step(self, memory: Mapping[str, Any] | None = None, *, dt: Any, **given: Any) -> tuple[Arrays, Arrays]:
        """(outputs, next memory) of one control period of `dt` seconds, from measurements and references by name.

        A gain given here stands for the controller's own.
        """
        found = _several(self._step(*self._arranged(self._reads, memory or {}, {**given, "dt": dt})))
        names = [entry.name for entry in (*self.law.outputs, *self.law.memory)]
        outputs = len(self.law.outputs)
        pairs = list(zip(names, found, strict=True))
        return dict(pairs[:outputs]), dict(pairs[outputs:])

    def _arranged(self, wanted: Shapes, memory: Mapping[str, Any], given: Mapping[str, Any]) -> list[Array]:
        """The arrays in the program's order, checked."""
        have = {**self.gains, **memory, **given}
        names = [name for name, _ in wanted]
        for name in given:
            choose(f"input of {self.law.name}", name, names)
        missing = [name for name in names if name not in have]
        if missing:
            raise InputError(f"{self.law.name} of {self.arm.name} needs {', '.join(missing)}; it got {', '.join(have)}")
        values = []
        for name, shape in wanted:
            value = real_array(have[name], name)
            if value.shape[value.ndim - len(shape) :] != shape:
                raise InputError(f"{self.law.name} expects {name} of shape (..., {_words(shape)}), got {value.shape}")
            values.append(value)
        return values


def controller(arm: Arm, name: str, *, friction: bool = False, **gains: Any) -> Controller:
    """A control law for an arm.

    Parameters
    ----------
    arm : Arm
        The arm that the controller takes for the real one.
    name : str
        A law of `armdyn.control.CONTROLLERS`: gravity_compensation, computed_torque, impedance, adaptive,
        momentum_observer, payload_estimator, payload_inertia_estimator.
    friction : bool
        Friction, springs, ripples and offsets of the joints are known: compensated for by controllers, allowed for by
        observers.
    **gains : array_like
        Gains by name, one number for all entries or one each; the law's defaults otherwise.

    Returns
    -------
    Controller
        With ``start(...)`` and ``step(memory, dt=..., ...)``, both pure.
    """
    from armdyn.control import CONTROLLERS

    if not isinstance(arm, Arm):
        raise InputError(f"controller takes an Arm, got {arm!r}; armdyn.load(...) gives one")
    law = CONTROLLERS[choose("controller", name, CONTROLLERS)]
    check(law, arm.chain)
    for gain in gains:
        choose(f"gain of {name}", gain, [entry.name for entry in law.gains])
    shapes = dict(sized(law.gains, arm.chain))
    found = {e.name: _gain(arm, law, e, shapes[e.name], gains.get(e.name)) for e in law.gains}
    return Controller(arm, law, found, friction)


def _gain(arm: Arm, law: ControlLaw, entry: Entry, shape: tuple[int, ...], given: Any) -> Array:
    """A gain as an array of its shape."""
    if given is None:
        given = entry.default(arm.chain) if callable(entry.default) else entry.default
    value = real_array(given, entry.name)
    if value.shape not in ((), shape) or not np.all(np.isfinite(value)):
        expected = f"one finite number or {_words(shape)}" if shape else "one finite number"
        raise InputError(f"{law.name} expects {entry.name} ({entry.words}) as {expected}, got {given!r}")
    found = np.array(np.broadcast_to(value, shape))
    if entry.of_body and (found[0] < 0 or (found[0] == 0 and found.any())):
        reason = f"negative mass {found[0]:g} kg" if found[0] < 0 else "a first moment or an inertia without mass"
        raise InputError(f"{law.name}: this {entry.name} is not possible: {reason}; got {given!r}")
    return found


def _several(found: Any) -> tuple[Array, ...]:
    return tuple(np.asarray(one) for one in (found if isinstance(found, tuple) else (found,)))


def _words(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))
