"""Controller: a control law compiled for one arm, with its gains. It is stateless: the caller keeps the memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.algebra import Operations
from armdyn.arm import Arm, as_arm
from armdyn.codegen.compile import load_or_compile
from armdyn.control.law import ControlLaw, Entry, sized
from armdyn.control.program import check, start_program, step_program
from armdyn.errors import InputError, choose
from armdyn.files import arrays
from armdyn.formulations.registry import Shapes
from armdyn.graph import Program
from armdyn.html import table
from armdyn.values import cached_property, real_array

Array = NDArray[np.float64]
Arrays = dict[str, Array]


@dataclass(frozen=True, eq=False)
class Controller:
    """A control law for one arm: `step` maps memory and measurements to outputs and the next memory.

    The object is stateless: nothing is kept between calls. Arrays may have leading batch axes.
    """

    arm: Arm
    law: ControlLaw
    gains: Mapping[str, Array]
    friction: bool = False
    frame: str | None = None  # the frame in place of the arm's tool

    @cached_property
    def model(self) -> Arm:
        """The arm with the frame that the law refers to as its tool."""
        return self.arm if self.frame is None else self.arm.with_tool(frame=self.frame)

    def __reduce__(self) -> Any:
        """The laws of armdyn by name: their default gains are functions, which do not pickle."""
        from armdyn.control import CONTROLLERS  # which imports this module

        known = CONTROLLERS.get(self.law.name)
        law = self.law.name if known is not None and known.on(self.model.chain) == self.law else self.law
        return _again, (self.arm, law, dict(self.gains), self.friction, self.frame)

    def __repr__(self) -> str:
        reads = ", ".join(entry.name for entry in (*self.law.measured, *self.law.reference))
        gives = ", ".join(entry.name for entry in self.law.outputs)
        return f"<Controller {self.law.name} of {self.arm.name}: {reads} -> {gives}; {self.operations}>"

    def _repr_html_(self) -> str:
        """The arrays of one step, and the gains."""
        law = self.law
        groups = (
            ("measured", law.measured),
            ("reference", law.reference),
            ("output", law.outputs),
            ("memory", law.memory),
        )
        rows = [(entry.name, kind, entry.words, "") for kind, entries in groups for entry in entries]
        gains = [
            (name, "gain", "", np.array2string(np.asarray(value), precision=4)) for name, value in self.gains.items()
        ]
        caption = f"{law.name} of {self.arm.name}, all in SI units; one step: {self.operations}"
        return table(caption, ["array", "", "meaning", "value [SI]"], [*rows, *gains])

    @property
    def program(self) -> Program:
        """The program of one step, as it is compiled and written as C."""
        return step_program(self.law, self.model.chain, self.friction)

    @property
    def operations(self) -> Operations:
        """The number of operations of one step."""
        return self.program.operations

    @cached_property
    def _step(self) -> Any:
        return self._compiled("step", step_program)

    @cached_property
    def _start(self) -> Any:
        return self._compiled("start", start_program)

    @cached_property
    def _reads(self) -> Shapes:
        return (*sized(self.law.memory, self.model.chain), *sized(self.law.reads, self.model.chain))

    def _compiled(self, what: str, make: Any) -> Any:
        chain = self.model.chain
        asked = ("control", what, self.law.name, chain, self.friction)
        made = load_or_compile(asked, lambda: make(self.law, chain, self.friction))
        assert made is not None  # a law has no empty arrays
        return made

    def start(self, **given: Any) -> Arrays:
        """The initial memory, from measurements by name; empty if the law has no memory."""
        if not self.law.memory:
            return {}
        values = self._arranged(sized(self.law.starts_from, self.model.chain), {}, given)
        found = self._start(*values)
        return dict(zip((entry.name for entry in self.law.memory), _as_tuple(found), strict=True))

    def step(self, memory: Mapping[str, Any] | None = None, *, dt: Any, **given: Any) -> tuple[Arrays, Arrays]:
        """One control period of `dt` seconds, from measurements and references by name: (outputs, next memory).

        A gain given here overrides the controller's own for this step.
        """
        found = _as_tuple(self._step(*self._arranged(self._reads, memory or {}, {**given, "dt": dt})))
        names = [entry.name for entry in (*self.law.outputs, *self.law.memory)]
        outputs = len(self.law.outputs)
        pairs = list(zip(names, found, strict=True))
        return dict(pairs[:outputs]), dict(pairs[outputs:])

    def _arranged(self, wanted: Shapes, memory: Mapping[str, Any], given: Mapping[str, Any]) -> list[Array]:
        """The input arrays in the program's order, with their names and shapes checked."""
        have = {**self.gains, **memory, **given}
        names = [name for name, _ in wanted]
        for name in given:
            choose(f"input of {self.law.name}", name, names)
        missing = [name for name in names if name not in have]
        if missing:
            raise InputError(f"{self.law.name} of {self.arm.name} needs {', '.join(missing)}; got {', '.join(have)}")
        values = []
        for name, shape in wanted:
            value = real_array(have[name], name)
            if value.shape[value.ndim - len(shape) :] != shape:
                raise InputError(f"{self.law.name} expects {name} of shape (..., {_sizes(shape)}), got {value.shape}")
            values.append(value)
        return values


def _again(
    arm: Arm, law: ControlLaw | str, gains: Mapping[str, Array], friction: bool, frame: str | None
) -> Controller:
    """A pickled controller; gains are taken as they are."""
    from armdyn.control import CONTROLLERS

    if isinstance(law, str):
        law = CONTROLLERS[law].on((arm if frame is None else arm.with_tool(frame=frame)).chain)
    return Controller(arm, law, gains, friction, frame)


def controller(
    arm: Arm | str | os.PathLike[str], name: str, *, friction: bool = False, frame: str | None = None, **gains: Any
) -> Controller:
    """Compile a control law or an observer for an arm.

    Parameters
    ----------
    arm : Arm, str or path
        The model of the arm that the controller uses: an Arm, a catalogue name or a path.
    name : str
        A law of `armdyn.control.CONTROLLERS`: gravity_compensation, computed_torque, impedance, adaptive,
        momentum_observer, friction_estimator, payload_estimator, payload_inertia_estimator,
        servo_feedforward.
    friction : bool
        Include the friction, springs, torque ripple and offsets of the joints in the model: controllers compensate for
        them, observers subtract them from the motor torques.
    frame : str, optional
        The frame that carries a payload, or that an impedance law moves; by default the arm's tool (`Arm.tool`). Laws
        that need no tool run on robots without one too, then without a payload.
    **gains : array_like
        Gains by name, one number for all entries or one per entry. The law's defaults are used for the others.

    Returns
    -------
    Controller
        With ``start(...)`` and ``step(memory, dt=..., ...)``, both pure functions.
    """
    from armdyn.control import CONTROLLERS

    arm = as_arm(arm, "controller")
    general = CONTROLLERS[choose("controller", name, CONTROLLERS)]
    model = arm if frame is None else arm.with_tool(frame=frame)
    law = general.on(model.chain)
    if not model.floating and (law.at_tool or any(entry.name in gains for entry in law.absent)):
        what = f"the controller {name}" + (" with a payload" if law.absent else "")
        model.require_tool(what, "give frame=")
    check(law, model.chain)
    for gain in gains:
        choose(f"gain of {name}", gain, [entry.name for entry in law.gains])
    shapes = dict(sized(law.gains, model.chain))
    found = {e.name: _gain(model, law, e, shapes[e.name], gains.get(e.name)) for e in law.gains}
    _check_payload(law, found)
    return Controller(arm, law, found, friction, frame)


def _gain(arm: Arm, law: ControlLaw, entry: Entry, shape: tuple[int, ...], given: Any) -> Array:
    """A gain as an array of its shape."""
    if given is None:
        given = entry.default(arm.chain) if callable(entry.default) else entry.default
    elif entry.name == "payload_inertia" and np.shape(given) == (3, 3):
        J = arrays.inertia(given)
        given = [float(x) for x in (J.xx, J.yy, J.zz, J.xy, J.xz, J.yz)]
    value = real_array(given, entry.name)
    alike = value.shape == () and (not entry.of_payload or not value)  # one number for all; a body's would be odd
    if not (alike or value.shape == shape) or not np.all(np.isfinite(value)):
        expected = "one finite number" if not shape else f"{_sizes(shape)} finite numbers"
        expected += " or one for all" if shape and not entry.of_payload else ""
        raise InputError(f"{law.name} expects {entry.name} ({entry.words}) as {expected}, got {given!r}")
    return np.array(np.broadcast_to(value, shape))


def _check_payload(law: ControlLaw, gains: Mapping[str, Array]) -> None:
    """Raise an error for a payload that cannot be; an estimate's inertia is taken as it is."""
    mass = gains.get("payload_mass", 0.0)
    if mass < 0 or (not mass and np.any(gains.get("payload_inertia", 0.0))):
        reason = f"negative mass {mass:g} kg" if mass < 0 else "an inertia without mass"
        raise InputError(f"{law.name}: this payload is not possible: {reason}")


def _as_tuple(found: Any) -> tuple[Array, ...]:
    return tuple(np.asarray(one) for one in (found if isinstance(found, tuple) else (found,)))


def _sizes(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))
