"""Digital: a sampled control law with internal state in the simulated loop, and observers.

The law is called once per control period, as on a robot: it gets the sensor readings (`Actuators`), and its torques are
held until the next period. All outputs and states of the law and the observers are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.control import Controller
from armdyn.errors import InputError
from armdyn.simulation.actuators import law_function
from armdyn.simulation.references import Reference
from armdyn.simulation.torque import drive

Signals = dict[str, dict[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Digital:
    """A controller that is called once per control period, with observers.

    Parameters
    ----------
    control : armdyn.control.Controller, or anything else that `simulate` takes as torque
        The controller that drives the joints.
    reference : Reference, posture or function, optional
        The reference of the control law: a joint motion, n numbers, or a function of t that returns the law's
        references by name. By default the initial posture. A law in task space gets the tool's pose along the motion.
    observers : sequence of armdyn.control.Controller
        Laws that only observe.
    memory : mapping, optional
        Initial values of entries of the control law's memory, by name, in place of the defaults.
    """

    control: Any
    reference: Any = None
    observers: Sequence[Controller] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)

    def running(self, arm: Arm) -> Running:
        """The controller at the start of a run on an arm."""
        laws = [*((self.control,) if isinstance(self.control, Controller) else ()), *self.observers]
        for law in laws:
            if not isinstance(law, Controller):
                raise InputError(f"an observer is made with armdyn.controller(...), got {law!r}")
            if law.arm.n != arm.n:
                raise InputError(f"{law!r} is for {law.arm.n} joints, {arm.name} has {arm.n}")
        names = [law.law.name for law in laws]
        if len(set(names)) < len(names):
            raise InputError(f"controllers and observers must differ, got {', '.join(names)}")
        return Running(self, arm, None if isinstance(self.control, Controller) else _function(arm, self.control))


def _function(arm: Arm, control: Any) -> Callable[..., Any]:
    driven = drive(arm.chain, control)
    function: Callable[..., Any] = control if driven is None else law_function(arm.chain, driven)
    return function


@dataclass(eq=False)
class Running:
    """A digital controller during a run, with its memory and the recorded signals."""

    digital: Digital
    arm: Arm
    function: Callable[..., Any] | None
    first: np.ndarray | None = None
    memories: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    recorded: dict[str, list[tuple[float, dict[str, np.ndarray]]]] = field(default_factory=dict)

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray | None, dt: float) -> Any:
        """The torques at a time; `tau` are those applied in the last period, None at the start."""
        if self.first is None:
            self.first = q
        for observer in self.digital.observers:
            self._asked(observer, t, {"q": q, "qd": qd, "tau": tau}, dt)
        control = self.digital.control
        if self.function is not None:
            return self.function(t, q, qd)
        given = {"q": q, "qd": qd, "tau": np.zeros_like(q) if tau is None else tau, **self._references(control, t)}
        return self._asked(control, t, given, dt)["tau"]

    @property
    def pure(self) -> bool:
        """Whether the law may be evaluated at any state: its memory is kept here, not inside a function."""
        return self.function is None

    def answer(self, t: float, q: np.ndarray, qd: np.ndarray, dt: float) -> Any:
        """The torques at other states with the memory that the law had at time t; nothing is recorded."""
        if self.function is not None:
            return self.function(t, q, qd)
        law: Controller = self.digital.control
        rows = [row for row in self.recorded.get(law.law.name, []) if row[0] < t - 1e-9 * max(1.0, abs(t))]
        kept = {entry.name for entry in law.law.memory}
        measured = {"q": q, "qd": qd, "tau": np.zeros_like(q)}
        start = law.start(**{entry.name: measured[entry.name] for entry in law.law.starts_from
                             if entry.name in measured}) if law.law.memory else {}  # fmt: skip
        memory = {name: x for name, x in rows[-1][1].items() if name in kept} if rows else start
        given = {**measured, **self._references(law, t)}
        reads = {entry.name: given[entry.name] for entry in (*law.law.measured, *law.law.reference)}
        return law.step(memory, dt=dt, **reads)[0]["tau"]

    def _asked(self, law: Controller, t: float, given: dict[str, Any], dt: float) -> dict[str, np.ndarray]:
        """One recorded step of a law; observers have no output before the first period has passed."""
        measured = {entry.name: given[entry.name] for entry in law.law.measured}
        if law.law.name not in self.memories:
            still = {name: np.zeros_like(given["q"]) if value is None else value for name, value in measured.items()}
            changed = self.digital.memory if law is self.digital.control else {}
            self.memories[law.law.name] = {**law.start(**still), **changed}
        if any(value is None for value in measured.values()):
            return {}
        reads = {entry.name: given[entry.name] for entry in (*law.law.measured, *law.law.reference)}
        outputs, memory = law.step(self.memories[law.law.name], dt=dt, **reads)
        self.memories[law.law.name] = memory
        self.recorded.setdefault(law.law.name, []).append((t, {**memory, **outputs}))
        return outputs

    def _references(self, law: Controller, t: float) -> Mapping[str, Any]:
        wanted, reference = [entry.name for entry in law.law.reference], self.digital.reference
        if not wanted:
            return {}
        if callable(reference) and not isinstance(reference, Reference):
            given: Mapping[str, Any] = reference(t)
            missing = [name for name in wanted if name not in given]
            if missing:
                raise InputError(
                    f"{law.law.name} follows {', '.join(wanted)}; the reference lacks {', '.join(missing)}"
                )
            return given
        if isinstance(reference, Reference):
            q, qd, qdd = reference(t)
        else:
            q = np.asarray(self.first if reference is None else reference, float)
            qd = qdd = np.zeros_like(q)
        joints = {"q_ref": q, "qd_ref": qd, "qdd_ref": qdd}
        return joints if set(wanted) <= set(joints) else {**joints, **tool_reference(law.model, q, qd, qdd)}

    def signals(self) -> Signals:
        """The recorded signals by law and name: t (times,), the others (..., times, *shape)."""
        found: Signals = {}
        for name, rows in self.recorded.items():
            found[name] = {"t": np.array([t for t, _ in rows])}
            for key, value in rows[0][1].items():
                batch = value.ndim - self._ranks(name)[key]
                found[name][key] = np.stack([row[key] for _, row in rows], axis=batch)
        return found

    def _ranks(self, name: str) -> dict[str, int]:
        laws = [self.digital.control, *self.digital.observers]
        law = next(one.law for one in laws if isinstance(one, Controller) and one.law.name == name)
        return {entry.name: len(entry.shape) for entry in (*law.memory, *law.outputs)}


def tool_reference(arm: Arm, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> dict[str, np.ndarray]:
    """The tool's pose, twist and acceleration along a motion of the joints."""
    J, rate = np.asarray(arm.jacobian(q)), np.asarray(arm.jacobian_rate(q, qd))
    twist = (J @ qd[..., None])[..., 0]
    acceleration = (J @ qdd[..., None] + rate @ qd[..., None])[..., 0]
    return {"pose_ref": np.asarray(arm.pose(q)), "twist_ref": twist, "acceleration_ref": acceleration}
