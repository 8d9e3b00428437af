"""Filtering and differentiation of a log; the cut-off frequencies follow from the spectrum of the motion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError
from armdyn.identification.log.faults import clipped
from armdyn.identification.log.filters import Spectrum, derivative, lowpass
from armdyn.identification.log.log import Log, Piece

Array = NDArray[np.float64]
PARALLEL = 5.0  # cut-off of the parallel filter (of torques and regressor), as a multiple of the motion bandwidth
POSITIONS = 2.0  # cut-off of the position filter over that of the parallel filter: ten bandwidths (Gautier's rule)
MOVING = 1e-3  # rad or m; if no joint moves further, the arm is at rest throughout the log
MIN_BANDWIDTHS = 1.5  # lower bound on the cut-off of the parallel filter, however large the noise
MAX_NOISE = 0.01  # ratio of noise to motion energy of the accelerations that the position filter may pass
SAMPLES_PER_PARAMETER = 2  # with n rows each: friction reverses faster than the arm moves
DECIMATE = 2.5  # samples kept per period of the cut-off frequency; more than 2, because of the filter's roll-off
AGREE = 0.01  # relative rms difference up to which logged derivatives agree with the differentiated positions
SIMILAR = 0.1  # the same for velocities with a small lag
LAG = 0.75  # the largest such lag, in periods; a backward difference has 0.5


@dataclass(frozen=True)
class Processing:
    """Cut-off frequencies (Hz) and sources of the derivatives, chosen on the training log and used for all others."""

    positions: float
    parallel: float | None  # None: no parallel filter, no decimation
    logged_velocity: bool = False
    logged_acceleration: bool = False  # positions and velocities are then used unfiltered, too
    dead_zone: float = 0.0  # rad/s or m/s; rows of a joint at a lower speed are left out of the fit
    bandwidth: float = 0.0  # of the motion, in Hz
    noise: float = 0.0  # ratio of noise to motion energy of the filtered accelerations, of the worst joint

    def early(self, rate: float) -> int:
        """Decimation factor before the model is evaluated, to sixteen samples per period of the position cut-off."""
        return 1 if self.logged_acceleration else max(1, int(rate / (16 * self.positions)))

    def late(self, rate: float) -> int:
        """Decimation factor after the parallel filter."""
        return 1 if self.parallel is None else max(1, int(rate / (DECIMATE * self.parallel)))

    @property
    def settling(self) -> float:
        """Length (s) of the filter transients at either end of a piece."""
        cuts = [] if self.logged_acceleration else [self.positions]
        cuts += [] if self.parallel is None else [self.parallel]
        return 0.5 / min(cuts) if cuts else 0.0

    def __str__(self) -> str:
        model = "no filter of the model" if self.parallel is None else f"model low-pass {self.parallel:.3g} Hz"
        if self.logged_acceleration:
            return f"motion up to {self.bandwidth:.3g} Hz, states as logged, {model}"
        velocity = "logged velocities" if self.logged_velocity else "differentiated positions"
        return f"motion up to {self.bandwidth:.3g} Hz, positions low-pass {self.positions:.3g} Hz, {velocity}, {model}"


@dataclass(frozen=True, eq=False)
class Motion:
    """Joint-side states and efforts of a piece, at the rate at which the model is evaluated."""

    period: float
    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    log: int = 0  # index of the log it belongs to, of several
    clipped: NDArray[np.bool_] | None = None  # (N, n): saturated torques, if there are any
    counted: NDArray[np.bool_] | None = None  # rows used in the fit, if already determined


def choose_processing(
    log: Log, parameters: int, cutoff: float | None, parallel: float | bool | None, dead_zone: float = 0.0
) -> Processing:
    """Cut-offs from the bandwidth of the motion unless given: five times it for the model, ten for the positions.

    The bandwidth is that of the velocity, up to the frequency at which the spectrum of the positions meets its noise
    floor. The cut-offs are lowered where noise would dominate the accelerations, and raised where a short, slow log
    would leave too few rows.
    """
    if not any(np.ptp(p.q, axis=0).any() for p in log.pieces):
        raise InputError("nothing moves in this log: no joint's position ever changes")
    reach = float(np.max([np.ptp(p.q, axis=0) for p in log.pieces]))
    if reach < MOVING:
        raise InputError(f"nothing moves in this log: no position changes by more than {reach:.2g} (noise?)")
    if cutoff is not None and not 0 < cutoff < log.rate / 2:
        raise InputError(f"cutoff must lie between 0 and {log.rate / 2:.4g} Hz for this log, got {cutoff}")
    if not dead_zone >= 0:
        raise InputError(f"the dead zone is a velocity, at least 0; got {dead_zone}")
    top = 0.45 * log.rate  # below the Nyquist frequency
    spectra = _spectra(log)
    motion = max(s.bandwidth() for s in spectra)
    enough = SAMPLES_PER_PARAMETER * parameters / (DECIMATE * log.duration)
    wanted = max(PARALLEL * motion, enough)
    while wanted > max(MIN_BANDWIDTHS * motion, enough / 4) and _noise(spectra, POSITIONS * wanted) > MAX_NOISE:
        wanted *= 0.9
    wanted = min(wanted, top)
    if parallel is False:
        model = None
    elif parallel is None or parallel is True:
        model = wanted if cutoff is None else min(wanted, cutoff)
    else:
        model = float(parallel)
    positions = min(cutoff or POSITIONS * wanted, top)
    how = Processing(positions, model, dead_zone=dead_zone, bandwidth=motion, noise=_noise(spectra, model or positions))
    return replace(how, **_derivatives(log, how, given=cutoff is not None))


def with_model_cutoff(log: Log, how: Processing, cutoff: float, bandwidth: float) -> Processing:
    """The processing with another cut-off of the model, positions at twice that, for a motion of this bandwidth."""
    top = 0.45 * log.rate
    model = min(cutoff, top)
    cuts = {"parallel": model, "positions": min(POSITIONS * model, top), "bandwidth": bandwidth}
    changed = replace(how, noise=_noise(_spectra(log), model), logged_velocity=False, logged_acceleration=False, **cuts)
    return replace(changed, **_derivatives(log, changed, given=False))


def _spectra(log: Log) -> list[Spectrum]:
    """Spectra of the positions of all joints that move, in the longest piece."""
    piece = max(log.pieces, key=len)
    every = [Spectrum.of(own, log.rate) for own in piece.q.T]
    energy = np.array([s.energy(1)[-1] for s in every])
    return [s for s, e in zip(every, energy, strict=True) if e >= 1e-6 * energy.max()]


def _noise(spectra: list[Spectrum], cutoff: float) -> float:
    """Ratio of noise to motion energy of the accelerations below a cut-off, of the worst joint."""
    return max(s.noise(2, cutoff) / max(float(s.energy(2)[-1]), 1e-300) for s in spectra)


def _derivatives(log: Log, how: Processing, given: bool) -> dict[str, bool]:
    """Which logged derivatives to use: those that agree with the differentiated positions and are less noisy."""
    piece = max(log.pieces, key=len)
    if piece.qd is None or any(p.qd is None for p in log.pieces):
        return {}
    own = _motion(piece, log.period, how, decimate=False)
    edge = min(int(np.ceil(how.settling * log.rate)), len(piece) // 4)
    inner = slice(edge, len(piece) - edge)
    apart, lag = _difference(lowpass(piece.qd, log.rate, how.positions)[inner], own.qd[inner], own.qdd[inner])
    agrees = apart < AGREE or (apart < SIMILAR and lag < LAG * log.period)
    velocity = agrees and _less_noise(piece, log, how)
    if given or piece.qdd is None or any(p.qdd is None for p in log.pieces):
        return {"logged_velocity": velocity}
    apart, _ = _difference(piece.qdd[inner], own.qdd[inner], own.qd[inner])
    return {"logged_velocity": velocity, "logged_acceleration": apart < AGREE}


def _difference(logged: Array, own: Array, rate: Array) -> tuple[float, float]:
    """Relative rms difference of two signals, and the lag (s) of the logged one; of the worst joint."""
    size = np.sqrt((own**2).mean(axis=0))
    moving = size > 1e-3 * size.max()
    apart = np.sqrt(((logged - own) ** 2).mean(axis=0))[moving] / size[moving]
    lag = ((own - logged) * rate).sum(axis=0)[moving] / np.maximum((rate**2).sum(axis=0)[moving], 1e-300)
    return float(apart.max()), float(np.abs(lag).max())


def _less_noise(piece: Piece, log: Log, how: Processing) -> bool:
    """Whether the logged velocities have less noise below the cut-off than differentiated positions."""
    assert piece.qd is not None
    own = differences = 0.0
    for q, qd in zip(piece.q.T, piece.qd.T, strict=True):
        own += Spectrum.of(qd, log.rate).noise(0, how.positions)
        differences += Spectrum.of(q, log.rate).noise(1, how.positions)
    return own <= differences or differences == 0.0


def motions(log: Log, how: Processing, decimate: bool = True) -> list[Motion]:
    """Filtered and differentiated pieces; the cut-off is limited to below the Nyquist frequency of the log."""
    cut = min(how.positions, 0.45 * log.rate)
    found = [_motion(piece, log.period, replace(how, positions=cut), decimate) for piece in log.pieces]
    ends = clipped(log.array("tau"))
    if not ends.any():
        return found
    out = []
    for part, piece, own in zip(
        found, log.pieces, np.split(ends, np.cumsum([len(p) for p in log.pieces])[:-1]), strict=True
    ):
        early = round(part.period / log.period)
        out.append(replace(part, clipped=_near(own, early)[: len(piece) : early]))
    return out


def _near(clipped: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """Samples less than `reach` away from a saturated one, so that decimation does not skip any."""
    out = clipped.copy()
    for k in range(1, reach):
        out[k:] |= clipped[:-k]
        out[:-k] |= clipped[k:]
    return out


def _still(q: Array) -> NDArray[np.bool_]:
    """Joints that never move: filtering leaves only rounding errors, whose sign would be mistaken for friction."""
    return np.asarray(np.ptp(q, axis=0) <= 1e-12 * np.maximum(np.abs(q).max(axis=0), 1.0))


def _motion(piece: Piece, period: float, how: Processing, decimate: bool = True) -> Motion:
    if how.logged_acceleration and piece.qd is not None and piece.qdd is not None:
        return Motion(period, piece.t, piece.q, piece.qd, piece.qdd, piece.efforts, piece.log)
    rate, cut = 1 / period, how.positions
    q = lowpass(piece.q, rate, cut)
    qd = lowpass(piece.qd, rate, cut) if how.logged_velocity and piece.qd is not None else derivative(q, period)
    qdd = derivative(qd, period)
    still = _still(piece.q)
    if still.any():
        q, qd, qdd = np.where(still, piece.q[0], q), np.where(still, 0.0, qd), np.where(still, 0.0, qdd)
    early = how.early(rate) if decimate else 1
    tau = lowpass(piece.efforts, rate, cut) if early > 1 else piece.efforts
    every = slice(None, None, early)
    return Motion(early * period, piece.t[every], q[every], qd[every], qdd[every], tau[every], piece.log)


def matrix_of(transmission: Any, n: int) -> Array:
    """A transmission as a matrix: motor positions = matrix @ joint positions; n ratios give a diagonal one."""
    given = np.asarray(transmission, dtype=float)
    K = np.diag(given) if given.ndim == 1 else given
    if K.shape != (n, n):
        raise InputError(f"the transmission must be {n} ratios or a {n} x {n} matrix, got shape {given.shape}")
    if not np.isfinite(K).all() or abs(np.linalg.det(K / np.abs(K).max(axis=1, keepdims=True))) < 1e-9:
        raise InputError("the transmission must be invertible: every joint needs a motor")
    return K


def joint_side(log: Log, transmission: Any, zero: Any, gains: Any = None) -> Log:
    """The log on the joint side: q = K⁻¹ q_motor + zero, τ = Kᵀ (gains · efforts)."""
    if transmission is None and zero is None and gains is None:
        return log
    gain = np.broadcast_to(np.asarray(1.0 if gains is None else gains, dtype=float), (log.n,))
    K = np.eye(log.n) if transmission is None else matrix_of(transmission, log.n)
    back = np.linalg.inv(K).T
    shift = np.zeros(log.n) if zero is None else np.asarray(zero, dtype=float)

    def turned(p: Piece) -> Piece:
        qd = None if p.qd is None else p.qd @ back
        qdd = None if p.qdd is None else p.qdd @ back
        command = None if p.command is None else p.command @ back + shift
        return Piece(p.t, p.q @ back + shift, (p.efforts * gain) @ K, qd, qdd, p.log, command)

    pieces = tuple(turned(p) for p in log.pieces)
    drive = log.drive if gains is None else "torque"
    return Log(pieces, log.period, log.joints, drive, log.notes, (), log.source)
