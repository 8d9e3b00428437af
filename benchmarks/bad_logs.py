"""What is said of logs that are bad in the ways of real ones: never nothing, and never a traceback.

Good logs, simulated and measured (in the folder DATA, where it is given), are spoiled in one way each, written as a
file, read and identified from; the arm that comes out predicts a good log. A spoiled log passes where that prediction
is about as good as from the log as it was, or where a warning or an error says what the good log's does not.
Run (some minutes): python benchmarks/bad_logs.py [DATA] [--only WORDS] [--say]
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import armdyn
from armdyn import Arm, Log
from armdyn.errors import ArmdynError
from bench_selection import Case
from bench_selection import simulated as simulated_case

ABOUT = 1.5  # times the error from the good log, and a hundredth of the torque more, that is about as good


@dataclass(frozen=True, eq=False)
class Raw:
    """Columns of a log as a file has them, and the arm."""

    arm: Arm
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None
    tau: np.ndarray

    def rows(self, chosen: np.ndarray | slice) -> Raw:
        qd = None if self.qd is None else self.qd[chosen]
        return replace(self, t=self.t[chosen], q=self.q[chosen], qd=qd, tau=self.tau[chosen])

    @property
    def rate(self) -> float:
        return float(1 / np.median(np.diff(self.t)))

    def write(self, path: Path) -> None:
        n = self.q.shape[1]
        signals = {"q": self.q, "qd": self.qd, "tau": self.tau}
        names = ["t", *(f"{s}{k + 1}" for s, x in signals.items() if x is not None for k in range(n))]
        rows = np.column_stack([self.t, *(x for x in signals.values() if x is not None)])
        lines = [",".join(names), *(",".join(f"{x:.17g}" for x in row) for row in rows)]
        path.write_text("\n".join(lines) + "\n")


Fault = Callable[[Raw, int, np.random.Generator], Raw]
FAULTS: dict[str, Fault] = {}


def fault(make: Fault) -> Fault:
    FAULTS[make.__name__.replace("_", " ")] = make
    return make


def column(x: np.ndarray, j: int, values: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[:, j % x.shape[1]] = values  # the joint after the last one is the first
    return out


def exchanged(x: np.ndarray, a: int, b: int) -> np.ndarray:
    out, b = x.copy(), b % x.shape[1]
    out[:, [a, b]] = x[:, [b, a]]
    return out


def later(x: np.ndarray, rows: int) -> np.ndarray:
    return np.concatenate([np.repeat(x[:1], rows, axis=0), x[:-rows]])


@fault
def torques_of_two_joints_exchanged(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, tau=exchanged(raw.tau, j, j + 1))


@fault
def positions_of_two_joints_exchanged(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, q=exchanged(raw.q, j, j + 1), qd=None)


@fault
def velocities_of_two_joints_exchanged(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return raw if raw.qd is None else replace(raw, qd=exchanged(raw.qd, j, j + 1))


@fault
def one_velocity_of_the_other_sign(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return raw if raw.qd is None else replace(raw, qd=column(raw.qd, j, -raw.qd[:, j]))


@fault
def velocities_all_zero(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return raw if raw.qd is None else replace(raw, qd=0 * raw.qd)


@fault
def one_joint_in_degrees(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    qd = None if raw.qd is None else column(raw.qd, j, np.rad2deg(raw.qd[:, j]))
    return replace(raw, q=column(raw.q, j, np.rad2deg(raw.q[:, j])), qd=qd)


@fault
def positions_in_turns(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, q=raw.q / (2 * np.pi), qd=None)


@fault
def one_zero_off_by_a_right_angle(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, q=column(raw.q, j, raw.q[:, j] + np.pi / 2))


@fault
def one_torque_late(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, tau=column(raw.tau, j, later(raw.tau[:, j], round(0.1 * raw.rate))))


@fault
def one_joint_late(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    rows = round(0.1 * raw.rate)
    qd = None if raw.qd is None else column(raw.qd, j, later(raw.qd[:, j], rows))
    return replace(raw, q=column(raw.q, j, later(raw.q[:, j], rows)), qd=qd)


@fault
def torques_through_a_slow_filter(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    from scipy.signal import butter, lfilter

    return replace(raw, tau=lfilter(*butter(1, 1.0, fs=raw.rate), raw.tau - raw.tau[0], axis=0) + raw.tau[0])


@fault
def a_tenth_of_the_rows_lost(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return raw.rows(np.flatnonzero(rng.random(len(raw.t)) > 0.1))


@fault
def rows_lost_and_the_stamps_counted_on(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    kept = np.ones(len(raw.t), dtype=bool)
    for start in rng.integers(0, len(raw.t) - 200, 8):
        kept[start : start + rng.integers(20, 120)] = False
    return replace(raw.rows(kept), t=raw.t[: np.count_nonzero(kept)])


@fault
def rows_twice_with_stamps_of_their_own(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    again = np.sort(np.concatenate([np.arange(len(raw.t)), rng.integers(0, len(raw.t), len(raw.t) // 10)]))
    return replace(raw.rows(again), t=np.arange(len(again)) * float(np.median(np.diff(raw.t))))


@fault
def every_row_twice(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    twice = np.repeat(np.arange(len(raw.t)), 2)
    return replace(raw.rows(twice), t=np.arange(len(twice)) * float(np.median(np.diff(raw.t))) / 2)


@fault
def rows_out_of_order(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return raw.rows(np.argsort(np.arange(len(raw.t)) + 12 * (rng.random(len(raw.t)) < 0.02)))


@fault
def torques_of_the_motors(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, tau=raw.tau / rng.choice([50.0, 80.0, 100.0, 160.0], raw.tau.shape[1]))


@fault
def torques_in_per_cent_of_a_rated_one(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, tau=100 * raw.tau / (3 * np.abs(raw.tau).max(axis=0)))


@fault
def one_torque_in_newton_millimetres(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, tau=column(raw.tau, j, 1000 * raw.tau[:, j]))


@fault
def torques_of_few_levels(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    step = np.abs(raw.tau).max(axis=0) / 12
    return replace(raw, tau=np.round(raw.tau / step) * step)


@fault
def torques_that_overflow(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    most = 0.7 * np.abs(raw.tau[:, j]).max()
    return replace(raw, tau=column(raw.tau, j, (raw.tau[:, j] + most) % (2 * most) - most))


@fault
def positions_that_wrap(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    middle = (raw.q.max(axis=0) + raw.q.min(axis=0)) / 2
    return replace(raw, q=(raw.q - middle) % (2 * np.pi) + middle - 2 * np.pi * (rng.random(raw.q.shape[1]) < 0.5))


@fault
def an_encoder_stuck_for_a_while(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    q, rows = raw.q.copy(), slice(int(0.4 * len(raw.t)), int(0.6 * len(raw.t)))
    q[rows, j] = q[rows.start, j]
    return replace(raw, q=q)


@fault
def an_encoder_stuck(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    qd = None if raw.qd is None else column(raw.qd, j, 0 * raw.qd[:, j])
    return replace(raw, q=column(raw.q, j, 0 * raw.q[:, j] + raw.q[0, j]), qd=qd)


@fault
def one_position_twice(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, q=column(raw.q, j + 1, raw.q[:, j]), qd=None)


@fault
def one_torque_twice(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, tau=column(raw.tau, j + 1, raw.tau[:, j]))


@fault
def torques_without_gravity(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, tau=raw.tau - np.asarray(raw.arm.gravity_load(raw.q)))


@fault
def arm_upside_down(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, arm=raw.arm.with_gravity([-float(g) for g in raw.arm.gravity]))


@fault
def arm_at_a_wall(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, arm=raw.arm.with_gravity((9.81, 0.0, 0.0)))


@fault
def half_the_log_at_half_the_rate(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    half = len(raw.t) // 2
    return raw.rows(np.concatenate([np.arange(half), np.arange(half, len(raw.t), 2)]))


@fault
def decimated_without_a_filter(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return raw.rows(slice(None, None, max(1, round(raw.rate / 12))))


@fault
def standing_still_for_the_most_part(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    first, extra = raw.rows(slice(0, len(raw.t) // 4)), 3 * len(raw.t) // 4
    q, tau = (np.concatenate([x, np.repeat(x[-1:], extra, axis=0)]) for x in (first.q, first.tau))
    qd = None if first.qd is None else np.concatenate([first.qd, np.zeros((extra, q.shape[1]))])
    noise = np.r_[np.zeros(len(first.t)), np.ones(extra)][:, None] * 1e-2 * tau.std(axis=0)
    return Raw(raw.arm, raw.t[: len(q)], q, qd, tau + noise * rng.normal(size=tau.shape))


@fault
def standing_still_all_the_time(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    q = raw.q[:1] + 1e-5 * rng.normal(size=raw.q.shape)
    return replace(raw, q=q, qd=None, tau=raw.tau[:1] + 1e-2 * raw.tau.std(axis=0) * rng.normal(size=q.shape))


@fault
def one_joint_moving(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    q = np.where(np.arange(raw.q.shape[1]) == j, raw.q, raw.q[:1])
    qd = np.gradient(q, 1 / raw.rate, axis=0)
    tau = np.asarray(raw.arm.inverse_dynamics(q, qd, 0 * q)) + np.sign(qd)
    return replace(raw, q=q, qd=qd, tau=tau + 0.01 * tau.std() * rng.normal(size=tau.shape))


@fault
def rows_of_nan(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, tau=np.where(rng.random((len(raw.t), 1)) < 0.05, np.nan, raw.tau))


@fault
def one_torque_all_nan(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, tau=column(raw.tau, j, np.nan * raw.tau[:, j]))


@fault
def stamps_in_milliseconds(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, t=np.round(1e3 * raw.t))


@fault
def stamps_in_nanoseconds_since_1970(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, t=1.7e18 + np.round(1e9 * raw.t))


@fault
def stamps_of_double_the_rate(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, t=raw.t / 2)


@fault
def stamps_of_double_the_rate_without_velocities(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, t=raw.t / 2, qd=None)


@fault
def a_collision(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    rows = slice(int(0.5 * len(raw.t)), int(0.56 * len(raw.t)))
    tau = raw.tau.copy()
    push = rng.normal(size=raw.tau.shape[1]) * tau.std(axis=0) * 1.5
    tau[rows] += push * np.hanning(rows.stop - rows.start)[:, None]
    return replace(raw, tau=tau)


@fault
def many_outliers_in_the_torques(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    bad = rng.random(raw.tau.shape) < 0.05
    return replace(raw, tau=np.where(bad, 4 * raw.tau.std(axis=0) * rng.normal(size=bad.shape), raw.tau))


@fault
def a_torque_clipped(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    most = 0.5 * np.abs(raw.tau[:, j]).max()
    return replace(raw, tau=column(raw.tau, j, np.clip(raw.tau[:, j], -most, most)))


@fault
def a_wrist_torque_clipped(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    most = 0.5 * np.abs(raw.tau[:, -1]).max()
    return replace(raw, tau=column(raw.tau, -1, np.clip(raw.tau[:, -1], -most, most)))


@fault
def a_link_of_the_arm_forgotten(raw: Raw, j: int, rng: np.random.Generator) -> Raw:
    return replace(raw, arm=raw.arm.with_payload(5.0, (0.0, 0.0, 0.1)))


def good_logs(folder: Path | None) -> Iterator[tuple[str, Raw, Log]]:
    """Name, log as a file has it, and a log to predict."""
    for name, case in (
        ("ur5", Case("ur5", seconds=12.0, off=0.15)),
        ("panda", Case("panda", seconds=12.0, noise=0.01, off=0.15, harmonics=8)),
        ("stanford", Case("stanford", seconds=12.0, off=0.15)),
    ):
        arm, fit, test = simulated_case(case, 5)
        yield name, Raw(arm, fit.array("t"), fit.array("q"), fit.array("qd"), fit.array("tau")), test
    if folder is not None:
        runs = [Log.read(folder / f"kuka_lwr4/run{k}.csv") for k in (1, 2)]
        yield "measured KUKA", _raw(armdyn.load(folder / "kuka_lwr4/kuka_lwr4.urdf"), runs[0]), runs[1]
        log = Log.read(folder / "ur10/exciting.csv")
        yield "measured UR10", _raw(armdyn.load("ur10"), log.part(0, 0.7)), log.part(0.7, 1)


def _raw(arm: Arm, log: Log) -> Raw:
    return Raw(arm, np.arange(len(log)) * log.period, log.array("q"), log.array("qd"), log.array("tau"))


def outcome(raw: Raw, test: Log) -> tuple[float, list[str]]:
    """The error of the prediction (infinite with an error), and all that is said."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        raw.write(path)
        try:
            log = Log.read(path)
            found = armdyn.identify(raw.arm, log)
        except ArmdynError as error:
            return np.inf, [f"ERROR {error}"]
        except Exception:  # a traceback is what is looked for
            return np.nan, [traceback.format_exc()]
    good = found.validate(test).error
    return good, [*(f"W {text}" for text in found.warnings), *(f"N {text}" for text in found.notes)]


def main(folder: Path | None, only: str = "", say: bool = False) -> int:
    """How many spoiled logs went wrong without a word."""
    silent = 0
    for name, raw, test in good_logs(folder):
        best, usual = outcome(raw, test)
        print(f"\n{name}: {100 * best:.2f} %", *usual, sep="\n    ", flush=True)
        kinds = {_kind(text) for text in usual}
        for what, make in FAULTS.items():
            if only not in what:
                continue
            error, said = outcome(make(raw, 1, np.random.default_rng(1)), test)
            new = [text for text in said if _kind(text) not in kinds]
            told = [text for text in new if not text.startswith("N ")]
            wrong = bool(np.isnan(error) or (error > ABOUT * best + 0.01 and not told))
            silent += wrong
            print(f"{'SILENT' if wrong else '      '} {what:46}{100 * error:9.2f} %  {len(told)} said", flush=True)
            if say:
                print(*(f"           {text[:230]}" for text in new), sep="\n", flush=True)
    print(f"\n{silent} went wrong without a word")
    return silent


def _kind(text: str) -> str:
    """What a sentence says, without its numbers."""
    return "".join(letter for letter in text if letter.isalpha() or letter == " ")[:40]


if __name__ == "__main__":
    options = [a for a in sys.argv[1:] if not a.startswith("--")]
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    data = next((Path(a) for a in options if a != only), None)
    sys.exit(min(main(data, only, "--say" in sys.argv), 1))
