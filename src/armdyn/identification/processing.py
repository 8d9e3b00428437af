"""Filtering and differentiation of a log; the cut-off frequencies follow from the spectrum of the motion.

Signal processing: zero-phase filters with an exact cut-off, derivatives, decimation, spectra, smooth signs.

Effects of the sampling rate: torques aliased from above the Nyquist frequency, and motions sampled too coarsely.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError, count, required
from armdyn.identification.cleaning import clipped, resolution
from armdyn.identification.log import Log, Piece

Array = NDArray[np.float64]
PARALLEL = 5.0  # cut-off of the parallel filter (of torques and regressor), as a multiple of the motion bandwidth
POSITIONS = 2.0  # cut-off of the position filter over that of the parallel filter: ten bandwidths (Gautier's rule)
MOVING = 1e-3  # rad or m; if no joint moves further, the arm is at rest throughout the log
MIN_BANDWIDTHS = 1.5  # lower bound on the cut-off of the parallel filter, however large the noise
MAX_NOISE = 0.01  # ratio of noise to motion energy of the accelerations that the position filter may pass
SAMPLES_PER_PARAMETER = 2  # with n rows each: friction reverses faster than the arm moves
DECIMATE = 2.5  # samples kept per period of the cut-off frequency; more than 2, because of the filter's roll-off
AGREE = 0.01  # relative rms difference up to which logged derivatives agree with the differentiated positions
UNCUT = 4  # times the filter transients at one end: shorter pieces keep them
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

    def edge(self, period: float) -> int:
        """The rows of filter transients at either end of a piece, after decimation."""
        return int(np.ceil(self.settling / (self.late(1 / period) * period)))

    def brief(self, samples: int, rate: float) -> bool:
        """Whether so much of a piece are filter transients that they are not left out (`model.filtered`)."""
        early = self.early(rate)
        late = self.late(rate / early)
        return -(-samples // (early * late)) <= UNCUT * self.edge(early / rate)

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


@lru_cache(maxsize=4)
def _spectra_of(log: Log, signal: str) -> list[Spectrum]:
    """Spectra of a signal of every joint, in the longest piece; kept, because several questions are asked of them."""
    return [Spectrum.of(own, log.rate) for own in max(log.pieces, key=len).signals[signal].T]


def _spectra(log: Log) -> list[Spectrum]:
    """Spectra of the positions of all joints that move, in the longest piece."""
    every = _spectra_of(log, "q")
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
    velocity = agrees and _less_noise(log, how)
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


def _less_noise(log: Log, how: Processing) -> bool:
    """Whether the logged velocities have less noise below the cut-off than differentiated positions."""
    own = sum(spectrum.noise(0, how.positions) for spectrum in _spectra_of(log, "qd"))
    differences = sum(spectrum.noise(1, how.positions) for spectrum in _spectra_of(log, "q"))
    return own <= differences or differences == 0.0


def brief_pieces(log: Log, how: Processing) -> NDArray[np.bool_]:
    """The pieces that are left out, being mostly filter transients; none of a log that mostly consists of them."""
    number, size = (
        np.array([int(x) for x in every]) for every in zip(*((p.log, len(p)) for p in log.pieces), strict=True)
    )
    brief = np.array([how.brief(len(p), log.rate) for p in log.pieces])
    few = [size[brief & (number == k)].sum() <= size[number == k].sum() / 2 for k in number]
    return np.asarray(brief & few)


def brief_notes(log: Log, how: Processing) -> tuple[str, ...]:
    """What is said of the pieces that are left out."""
    left = [p for p, brief in zip(log.pieces, brief_pieces(log, how), strict=True) if brief]
    if not left:
        return ()
    one = len(left) == 1
    seconds = sum(len(p) for p in left) * log.period
    first = f"{'' if one else 'the first '}at {left[0].t[0]:.4g} s"
    return (
        f"{count(len(left), 'piece')} between gaps ({seconds:.2g} s{'' if one else ' in all'}, {first}):"
        f" left out, too short for the filters, whose transients last {how.settling:.2g} s at either end",
    )


def motions(log: Log, how: Processing, decimate: bool = True) -> list[Motion]:
    """Filtered and differentiated pieces; the cut-off is limited to below the Nyquist frequency of the log.

    Pieces that are mostly filter transients are left out, which a fit would take for torques (`brief_pieces`).
    """
    every = _motions(log, how, decimate)
    return [motion for motion, brief in zip(every, brief_pieces(log, how), strict=True) if not brief]


def _motions(log: Log, how: Processing, decimate: bool) -> list[Motion]:
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
    return Log(pieces, log.period, log.joints, drive, log.notes, (), log.source, log.clock)


ORDER = 4
BANDS = 60  # of a spectrum, on a scale of logarithms
FLOOR = 4.0  # power over the median above it, below which a band is noise; white noise has 1.4


def lowpass(x: Array, rate: float, cutoff: float, order: int = ORDER) -> Array:
    """Zero-phase Butterworth filter along the first axis, -3 dB exactly at `cutoff` (Hz) after both passes.

    Two passes of a filter with its -3 dB point at f attenuate f by 6 dB; the single pass is therefore designed
    for a higher frequency: |H|⁴ = 1/2 at the cut-off, in the bilinear transform's warped frequency.
    """
    required("scipy")
    from scipy.signal import sosfiltfilt

    if not 0 < cutoff < rate / 2:
        raise InputError(f"the cut-off must lie between 0 and half the sampling rate ({rate / 2:.4g} Hz), got {cutoff}")
    pad = min(len(x) - 1, int(np.ceil(3 * rate / cutoff)))
    return np.asarray(sosfiltfilt(_sections(cutoff / rate, order), x, axis=0, padlen=pad))


@lru_cache(maxsize=32)
def _sections(cutoff: float, order: int) -> Array:
    """Second-order sections of the single pass; the cut-off in cycles per sample."""
    required("scipy")
    from scipy.signal import butter

    warped = np.tan(np.pi * cutoff) / (np.sqrt(2) - 1) ** (1 / (2 * order))
    return np.asarray(butter(order, 2 * np.arctan(warped) / np.pi, output="sos"))


def derivative(x: Array, period: float) -> Array:
    """Central derivative along the first axis: five points, fourth order; second order at the two ends."""
    out = np.gradient(x, period, axis=0, edge_order=2)
    if len(x) > 4:
        out[2:-2] = (8 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12 * period)
    return np.asarray(out)


def decimated(x: Array, rate: float, cutoff: float, factor: int) -> Array:
    """Low-pass filter at `cutoff`, then every `factor`-th sample; applied to both sides of τ = Y π."""
    return lowpass(x, rate, cutoff)[::factor]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The periodogram of a joint's positions (Hann window): frequencies (Hz), power, the level of the noise floor.

    `signal` marks the bins where the spectrum is above the noise floor; only these contain motion.
    """

    frequency: Array
    power: Array
    floor: float
    signal: NDArray[np.bool_]

    @classmethod
    def of(cls, q: Array, rate: float) -> Spectrum:
        """The spectrum of one joint's positions."""
        window = np.hanning(len(q))
        power = np.abs(np.fft.rfft((q - q.mean()) * window)) ** 2
        frequency = np.arange(len(power)) * rate / len(q)
        signal = _stands_out(power)
        floor = 0.0 if signal.all() else float(np.median(power[~signal])) / np.log(2)  # mean of exponential power
        step = resolution(q)
        if step:
            level = _stairs(q, step, window)
            signal &= np.arange(len(power)) < _reaches(power, FLOOR * level)
            floor = max(floor, level)
        return cls(frequency, power, floor, signal)

    def energy(self, order: int) -> Array:
        """The energy of the derivative of this order up to each frequency, without the noise floor."""
        own = np.where(self.signal, np.maximum(self.power - self.floor, 0.0), 0.0)
        return np.cumsum(own * (2 * np.pi * self.frequency) ** (2 * order))

    def noise(self, order: int, cutoff: float) -> float:
        """The energy of the derivative of this order of the noise floor, below a frequency."""
        below = self.frequency <= cutoff
        return float((self.floor * (2 * np.pi * self.frequency[below]) ** (2 * order)).sum())

    def bandwidth(self, share: float = 0.99) -> float:
        """The frequency (Hz) below which `share` of the velocity's energy lies."""
        total = self.energy(1)
        bin_ = int(np.argmax(total >= share * total[-1])) if total[-1] > 0 else 0
        return float(max(bin_, 1) * self.frequency[1])


def _stairs(q: Array, step: float, window: Array) -> float:
    """The power of what rounding to a coarse step adds: step²/12, spread up to the rate at which steps are passed."""
    passed = float(np.abs(np.diff(q)).mean()) / step  # per sample
    return float((window**2).sum()) * step**2 / 12 / min(1.0, 2 * passed)


def _reaches(power: Array, level: float) -> int:
    """The first bin of the first band above the peak that is below a level.

    At a steady speed stairs have lines far above their mean, at the rate at which steps are passed: no bin counts after
    the motion's own have come to an end.
    """
    first = max(int(np.argmax(power[1:])) + 1, 2)
    for low, high in pairwise(np.unique(np.geomspace(first, len(power), BANDS).astype(int))):
        if power[low:high].mean() < level:
            return int(low)
    return len(power)


def _stands_out(power: Array) -> NDArray[np.bool_]:
    """The bins below the peak, and the bands above it that exceed the median of everything higher by FLOOR times."""
    first = max(int(np.argmax(power[1:])) + 1, 2)
    out = np.arange(len(power)) < first
    for low, high in pairwise(np.unique(np.geomspace(first, len(power), BANDS).astype(int))):
        out[low:high] = power[low:high].mean() > FLOOR * np.median(power[low:])
    return out


def bandwidth(q: Array, rate: float, share: float = 0.99) -> float:
    """The highest bandwidth over the joints that move: `share` of each one's velocity lies below it."""
    spectra = [Spectrum.of(own, rate) for own in q.T]
    energy = np.array([s.energy(1)[-1] for s in spectra])
    moving = energy > 1e-6 * energy.max()
    return max((s.bandwidth(share) for s, moves in zip(spectra, moving, strict=True) if moves), default=rate / len(q))


def smooth_sign(v: Array, width: float | Array) -> Array:
    """A smooth sign, tanh(v / width); the plain sign if the width is 0."""
    scale = np.broadcast_to(np.asarray(width, dtype=float), v.shape)
    return np.where(scale > 0, np.tanh(v / np.where(scale > 0, scale, 1.0)), np.sign(v))


NEAR_NYQUIST = 0.8  # of the Nyquist frequency; the spectrum above it gives the level of noise and aliasing
MAX_ALIASED = 0.05  # of the torques in the pass band: 0.014 for a TX40 at 5 kHz, 0.06 to 0.14 decimated unfiltered
COARSE = 8.0  # samples per period of the fastest motion, below which positions cannot be differentiated
RECOMMENDED = 20.0  # samples per period of the fastest motion


def folded(log: Log, how: Processing) -> float:
    """Fraction (rms) of the torques in the pass band of the model filter that is noise or aliased, over all joints.

    The spectrum of aliased noise is nearly flat, so its level near the Nyquist frequency holds at all frequencies.
    """
    piece = max(log.pieces, key=len)
    tau = (piece.efforts - piece.efforts.mean(axis=0)) * np.hanning(len(piece))[:, None]
    power = (np.abs(np.fft.rfft(tau, axis=0)) ** 2).sum(axis=1)
    frequency = np.arange(len(power)) * log.rate / len(piece)
    inside = frequency <= (log.rate if how.parallel is None else how.parallel)
    level = float(power[frequency > NEAR_NYQUIST * log.rate / 2].mean())
    return float(np.sqrt(level * np.count_nonzero(inside) / max(float(power[inside].sum()), 1e-300)))


def sampling_doubts(log: Log, how: Processing) -> list[str]:
    """Messages about a sampling rate that is too low."""
    said = []
    per_period = log.rate / how.bandwidth if how.bandwidth else np.inf
    if per_period < COARSE:
        said.append(
            f"the log has {per_period:.2g} samples per period of its fastest motion ({how.bandwidth:.3g} Hz), too few"
            f" to differentiate the positions: record at {RECOMMENDED * how.bandwidth:.0f} Hz or more"
        )
    share = folded(log, how)
    if share > MAX_ALIASED:
        said.append(
            f"about {100 * share:.0f} % of the torques below the cut-off frequency is noise, or vibration aliased by"
            f" sampling at {log.rate:.4g} Hz without an anti-aliasing filter (the torques still have energy near"
            f" {log.rate / 2:.4g} Hz): record at a higher rate, or filter the torques before decimating them"
        )
    return said
