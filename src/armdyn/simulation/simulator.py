"""`Simulator`: one step at a time, by the compiled loop's own step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import ComputationError, InputError, choose
from armdyn.programs.stepping import listing_methods, without_past
from armdyn.simulation.digital import Actuators, Motors
from armdyn.simulation.drives import AsGiven, Drive, Saturated
from armdyn.simulation.judge import chosen_method, met_limit
from armdyn.simulation.loop import InPlace
from armdyn.simulation.request import Setup, acting, efforts, force_rows, force_sizes, positive, request
from armdyn.simulation.stepper import LawTorques, Stepper, loop_of
from armdyn.values import real_array

# A multistep method's past cannot take torques that jump.
METHODS = without_past()
RUNNING = "running"


@dataclass(frozen=True, eq=False)
class Saved:
    """The whole state of a simulator at one time, for `Simulator.restore`."""

    state: np.ndarray
    steps: int
    began: float
    statuses: np.ndarray
    messages: tuple[str, ...]
    ends: np.ndarray
    method: str
    motors: Any
    waiting: tuple[tuple[int, np.ndarray], ...]
    acting: np.ndarray


@listing_methods
class Simulator:
    """An arm that is simulated one step at a time; the state is kept inside.

    The steps are those of `simulate` with torques that are constant during each step: the same compiled loop, the same
    numbers, bit for bit. It begins at rest in the rest posture.

    Parameters
    ----------
    arm : Arm
        The arm, with a fixed or a floating base.
    step : float
        The integration step, s.
    method : str
        "auto" (RK4, or ARK4 if viscous friction is too stiff for it), or one of {WITHOUT_PAST}.
    friction, tool_wrench, base_acceleration, limits
        As for `simulate`, the base's acceleration constant; a lane that meets a limit which is not a stop ends there.
    saturate : bool
        Clamp the torques to the effort limits.
    actuators : Actuators, optional
        Motors and sensors. Then `step` takes one command per control period, and `measured` is what the sensors read.
    batch : int or tuple of int, optional
        The shape of a batch of simulations; its axes come first in all arrays.

    Examples
    --------
    >>> import armdyn
    >>> arm = armdyn.load("planar3")
    >>> sim = armdyn.Simulator(arm, step=1e-3)
    >>> sim.reset([0.1, 0.2, 0.3])
    >>> for _ in range(100):
    ...     sim.step(-2.0 * sim.qd)
    >>> round(sim.t, 6), sim.status
    (0.1, 'running')
    """

    def __init__(
        self,
        arm: Arm,
        *,
        step: float = 1e-3,
        method: str = "auto",
        friction: bool = True,
        tool_wrench: Any = None,
        base_acceleration: Any = None,
        limits: bool | float | Literal["end", "stop"] = True,
        saturate: bool = False,
        actuators: Actuators | None = None,
        batch: int | tuple[int, ...] | None = None,
    ) -> None:
        if not isinstance(arm, Arm):
            raise InputError(f"Simulator takes an Arm, got {arm!r}; armdyn.load(...) returns one")
        choose("integration method of one step", method, ("auto", *METHODS))
        self.arm, self.h, self.batch = arm, positive(step, "step", " of seconds"), _shape(batch)
        self.method, self._chosen = method, method
        self._saturate, self._actuators = saturate, actuators
        if callable(base_acceleration):
            raise InputError("Simulator takes a constant base_acceleration, not a function of time; simulate takes one")
        self._arguments = {
            "arm": arm, "step": step, "friction": friction, "tool_wrench": tool_wrench, "limits": limits,
            "base_acceleration": base_acceleration, "saturate": saturate, "actuators": actuators, "batch": batch,
        }  # fmt: skip
        self._given = {"wrench": tool_wrench, "base": base_acceleration, "limits": limits, "times": None,
                       "progress": None}  # fmt: skip
        self._options = acting(friction, tool_wrench, base_acceleration)
        self._periods = actuators.checked(arm.n, self.h)[:2] if actuators else (1, 0)
        self.reset()

    def __reduce__(self) -> Any:
        return _again, (self._arguments, self._chosen, self.save())

    def __repr__(self) -> str:
        batch = f", batch {self.batch}" if self.batch else ""
        return f"<Simulator of {self.arm.name} by {self.method}: t = {self.t:g} s{batch}, {self.status}>"

    # --- the state -------------------------------------------------------------------------------

    @property
    def q(self) -> np.ndarray:
        """The positions (..., nq), a copy."""
        return self._split(0)

    @property
    def qd(self) -> np.ndarray:
        """The velocities (..., nv), a copy."""
        return self._split(1)

    @property
    def t(self) -> float:
        """The time, s."""
        return self._began + self._steps * self.h

    @property
    def status(self) -> str:
        """What ended a lane, "limit" or "diverged"; "running" if none has ended."""
        return next((str(kind) for kind in ("diverged", "limit") if kind in self._statuses), RUNNING)

    @property
    def statuses(self) -> np.ndarray:
        """The status of every lane, in the batch's shape."""
        return self._statuses.reshape(self.batch).copy()

    @property
    def message(self) -> str:
        """What ended the first lane that ended; empty if all are running."""
        return next((message for message in self._messages if message), "")

    @property
    def ends(self) -> np.ndarray:
        """The time of every lane's last state before it ended, NaN while it is running."""
        return self._ends.reshape(self.batch).copy()

    @property
    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """What the sensors of the actuators read of (q, qd) in this control period; without actuators, the state."""
        if self._motors is None:
            return self.q, self.qd
        q, qd = self._motors.read(self._place.state)
        return q.reshape(*self.batch, -1), qd.reshape(*self.batch, -1)

    def _split(self, part: int) -> np.ndarray:
        y = self._place.state
        if self._single:
            y = y[0]
        x = self._request.layout.split(y)[part]
        return x.copy() if self._single else x.reshape(*self.batch, x.shape[-1]).copy()

    # --- begin, save, restore --------------------------------------------------------------------

    def reset(self, q: Any = None, qd: Any = None, *, t: float = 0.0, lanes: Any = None) -> None:
        """Begin anew from (q, qd), by default at rest in the rest posture.

        `lanes`, a mask or indices of the batch's first axis, resets only these; the time then goes on.
        """
        setup = request(
            self.arm, self.arm.rest if q is None else q, qd, batch=self.batch, duration=self.h, step=self.h,
            **self._given,
        )  # fmt: skip
        if setup.batch != self.batch:
            raise InputError(f"this simulator has the batch {self.batch}, but the arguments have {setup.batch}")
        if lanes is not None:
            self._reset_some(setup, lanes)
            return
        self._request, self._began, self._steps = setup, float(t), 0
        count = len(setup.state)
        self._statuses = np.full(count, RUNNING, dtype=object)
        self._messages, self._ends = [""] * count, np.full(count, np.nan)
        self._over = False
        self._single = count == 1 and not self.batch
        self._prepare(setup)

    def _reset_some(self, setup: Setup, lanes: Any) -> None:
        """Give some lanes new states, and let them run."""
        if not self.batch or self._motors is not None:
            raise InputError("lanes= resets a part of a batch without actuators; this simulator has none")
        chosen = np.arange(len(setup.state)).reshape(self.batch)[lanes].ravel()
        self._place.put(chosen, setup.state[chosen])
        self._statuses[chosen], self._ends[chosen] = RUNNING, np.nan
        for lane in chosen.tolist():
            self._messages[lane] = ""
        self._over = bool((self._statuses != RUNNING).any())

    def _prepare(self, setup: Setup) -> None:
        """The compiled loop with its arrays."""
        chain, inside = self.arm.chain, setup.inside if setup.limited else None
        law: Any = AsGiven()
        if self._saturate and any(most is not None for most in efforts(self.arm)):
            law = Saturated(law, efforts(self.arm))
        drive = Drive(chain.nv, lambda t: np.zeros((*t.shape, chain.nv)), law)
        stepper = Stepper(chain, LawTorques(drive), self._options, setup.outside, "RK4", inside, setup.stops)
        with np.errstate(all="ignore"):
            self.method = chosen_method(stepper, setup) if self._chosen == "auto" else self._chosen
        loop = loop_of(chain, law, chain.nv, self._options, self.method, setup.stops)
        self._place = InPlace(loop, setup.state, self.h, common_inputs=self._single)
        self._torques = self._place.inputs[:, : chain.nv]
        if setup.outside is not None:
            acts = setup.outside.rows(0.0, len(setup.state))
            self._place.inputs[:, chain.nv :] = acts[:1] if self._single else acts[self._place.rows]
        self._first = self._torques[0] if self._single else self._torques
        self._shape = (chain.nv,) if self._single else (len(self._place.rows), chain.nv)
        self._still = True
        self._bounds = [(float(a), float(b)) for a, b in setup.bounds] if inside else []
        most = np.full(setup.state.shape[1], np.finfo(float).max)
        self._box, self._flags = (-most, most.copy()), np.zeros(setup.state.shape, dtype=bool)
        if inside:
            for side, numbers in zip(self._box, setup.bounds.T, strict=True):
                side[chain.nq - self.arm.n : chain.nq] = np.clip(numbers, -most[0], most[0])
        self._from = chain.nq - self.arm.n
        self._motors, self._waiting = None, deque[tuple[int, np.ndarray]]()
        self._acting = np.zeros((len(setup.state), chain.nv))
        if self._actuators is not None:
            most = np.array(
                [np.inf if x is None else x for x in (efforts(self.arm) if self._saturate else [None] * chain.nv)]
            )
            self._motors = Motors.of(self._actuators, chain, self.h, most)

    def save(self) -> Saved:
        """Everything that determines the further motion, as a value."""
        motors = None if self._motors is None else self._motors.copy()
        return Saved(
            self._place.state.copy(), self._steps, self._began, self._statuses.copy(), tuple(self._messages),
            self._ends.copy(), self.method, motors, tuple(self._waiting), self._acting.copy(),
        )  # fmt: skip

    def restore(self, saved: Saved) -> None:
        """Go back to a saved state of this simulator, or of one like it."""
        if not isinstance(saved, Saved) or saved.state.shape != self._place.state.shape:
            raise InputError(
                f"restore takes what save() of a simulator with {self._place.state.shape[0]} lanes of "
                f"{self._place.state.shape[1]} numbers returned, got {saved!r:.60}"
            )
        if saved.method != self.method:
            raise InputError(f"this was saved by a simulator that steps by {saved.method}, this one by {self.method}")
        self._place.put(slice(None), saved.state)
        self._steps, self._began = saved.steps, saved.began
        self._statuses, self._ends, self._messages = saved.statuses.copy(), saved.ends.copy(), list(saved.messages)
        self._over = bool((self._statuses != RUNNING).any())
        self._waiting, self._acting = deque(saved.waiting), saved.acting.copy()
        self._motors = None if saved.motors is None else saved.motors.copy()

    # --- step ------------------------------------------------------------------------------------

    def step(self, tau: Any = None, count: int = 1) -> None:
        """Move on by `count` steps under constant torques (..., n), by default none.

        With actuators, `tau` is one command and `count` a number of control periods. Lanes that have ended stay as they
        are; when all have, an error says why.
        """
        if self._motors is not None:
            self._step_periods(tau, count)
            return
        if tau is None:
            if not self._still:
                self._torques[...] = 0.0
                self._still = True
        elif type(tau) is np.ndarray and tau.shape == self._shape:
            self._first[...] = tau
            self._still = False
        else:
            self._load(tau)
        if count == 1 and self._single and not self._over:
            values = self._place.advance()[0].tolist()
            self._steps += 1
            total = sum(values)
            if total - total != 0.0:
                self._ended(1, None)
                return
            if self._bounds:
                for x, (low, high) in zip(values[self._from :], self._bounds, strict=False):
                    if not low <= x <= high:
                        self._ended(1, None)
                        return
            return
        self._step_many(count)

    def _load(self, tau: Any) -> None:
        """Check the torques and put them where the loop reads them."""
        chain = self.arm.chain
        torques = real_array(tau, "tau")
        if torques.shape[-1:] not in ((chain.n,), (chain.nv,)):
            raise InputError(f"tau must be (..., {force_sizes(chain)}), got shape {torques.shape}")
        try:
            rows = np.broadcast_to(force_rows(chain, torques), (*self.batch, chain.nv)).reshape(-1, chain.nv)
        except ValueError:
            raise InputError(f"tau of shape {torques.shape} does not go with the batch {self.batch}") from None
        self._torques[...] = rows[:1] if self._single else rows[self._place.rows]
        self._still = False

    def _step_many(self, count: int) -> None:
        """Several steps, or several lanes."""
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InputError(f"count must be a whole number of steps from 1 on, got {count!r}")
        running = self._statuses == RUNNING if self._over else np.ones(0, dtype=bool)
        if self._over and not running.any():
            raise ComputationError(f"the simulation has ended: {self.message}; reset() begins anew")
        before = self._place.state.copy() if self._over else None
        if count == 1:
            self._place.advance()
            if before is None and self._all_good():
                self._steps += 1
                return
            passed = self._place.state[:, None]
        else:
            passed = self._place.advance_by(int(count))
        self._steps += int(count)
        if before is not None:
            self._place.put(~running, before[~running])
        good = self._good(passed)
        if not (good if before is None else good | ~running[:, None]).all():
            self._ended(int(count), passed)

    def _all_good(self) -> bool:
        """Whether all lanes are finite and within their limits; what is not a number fails both comparisons."""
        low, high = self._box
        state, flags = self._place.state, self._flags
        if not np.greater_equal(state, low, out=flags).all():
            return False
        return bool(np.less_equal(state, high, out=flags).all())

    def _good(self, states: np.ndarray) -> np.ndarray:
        """Whether states (lanes, steps, size) are finite and within limits that end a lane."""
        if self._bounds:
            return self._request.inside(states)
        finite: np.ndarray = np.isfinite(states).all(axis=-1)
        return finite

    def _ended(self, count: int, passed: np.ndarray | None) -> None:
        """Some lanes have met a limit or are no longer finite: they go back to their last state before that."""
        states = self._place.state[:, None].copy() if passed is None else np.array(passed)
        good = self._good(states)
        before = self._place.before
        for lane in np.flatnonzero((self._statuses == RUNNING) & ~good.all(axis=1)).tolist():
            k = int(np.argmin(good[lane]))
            t, y = self._began + (self._steps - count + k) * self.h, states[lane, k]
            last = before[lane].copy() if k == 0 else states[lane, k - 1]
            self._ends[lane] = t
            if np.isfinite(y).all():
                self._statuses[lane], self._messages[lane] = "limit", met_limit(self._request.joint_beyond(y), t)
            else:
                torque = self._torques[0 if self._single else lane]
                cause = "" if np.isfinite(torque).all() else f", because the torques were {torque}"
                self._statuses[lane] = "diverged"
                self._messages[lane] = f"the state was no longer finite after t = {t:.6g} s{cause}"
            self._place.put(lane, last)
        self._over = True

    # --- with actuators --------------------------------------------------------------------------

    def _step_periods(self, tau: Any, count: int) -> None:
        """Control periods under one command: clamped, limited in rate, delayed and held."""
        assert self._motors is not None
        ticks, late = self._periods
        command = np.zeros(self.arm.chain.nv) if tau is None else tau
        for _ in range(count):
            if self._statuses[0] != RUNNING and not (self._statuses == RUNNING).any():
                raise ComputationError(f"the simulation has ended: {self.message}; reset() begins anew")
            self._motors.read(self._place.state)
            self._load(command)
            rows = self._torques[:1] if self._single else self._torques[: self._place.count]
            first = self._motors.last is None
            self._waiting.append((self._steps + (0 if first else late), self._motors.limited(rows)))
            due = self._steps + ticks
            while self._steps < due:
                while self._waiting and self._waiting[0][0] <= self._steps:
                    self._acting = self._waiting.popleft()[1]
                until = min(due, self._waiting[0][0] if self._waiting else due)
                self._torques[...] = self._acting if self._single else self._acting[self._place.rows]
                self._still = False
                self._step_many(until - self._steps)
                if self._over and not (self._statuses == RUNNING).any():
                    return
            self._motors.reading = None


def _again(arguments: dict[str, Any], chosen: str, saved: Saved) -> Simulator:
    """A pickled simulator, in the state it had."""
    sim = Simulator(**arguments, method=saved.method)
    sim._chosen = chosen
    sim.restore(saved)
    return sim


def _shape(batch: Any) -> tuple[int, ...]:
    """The batch's shape."""
    if batch is None:
        return ()
    sizes = (batch,) if isinstance(batch, int | np.integer) else batch
    if not isinstance(sizes, tuple | list) or not all(isinstance(k, int | np.integer) and k >= 0 for k in sizes):
        raise InputError(f"batch must be a whole number or a tuple of them, got {batch!r}")
    return tuple(int(k) for k in sizes)


__all__ = ["Saved", "Simulator"]
