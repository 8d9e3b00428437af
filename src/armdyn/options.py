"""Options that belong together, as small frozen records: what they mean, their units, their ranges.

Functions take them flat, one keyword per field: `identify(arm, log, friction="stribeck", cutoff=20)`. A record is for
what is used again: `terms = Terms(friction="stribeck")`, then `identify(arm, log, terms=terms)`. The command line makes
its options from the same fields.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any, Literal, TypedDict, TypeVar, cast, get_type_hints

from armdyn.errors import InputError, checked_keywords

F = TypeVar("F", bound=Callable[..., Any])
PathName = str | os.PathLike[str]
Numbers = float | Sequence[float]
Lock = Mapping[str, float | str] | str | None


@dataclass(frozen=True)
class About:
    """An option: one line of help, its unit, its range (`above` < value, `least` <= value <= `most`).

    On the command line its name is `flag`, by default that of the field; `flag` "-" keeps it away from there. Text
    that is typed for it is `numbers`, separated by commas, if the field's type does not say so.
    """

    help: str
    unit: str = ""
    flag: str = ""
    numbers: bool = False
    above: float = -math.inf
    least: float = -math.inf
    most: float = math.inf

    @property
    def range(self) -> str:
        """The range in words; "" if there is none."""
        bounds = (("above", self.above), ("at least", self.least), ("at most", self.most))
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds if math.isfinite(bound))

    def holds(self, value: object) -> bool:
        """Whether a value is within the range; NaN is not, and what is not a number has none."""
        if not isinstance(value, Real) or isinstance(value, bool) or not self.range:
            return True
        try:
            number = float(value)
        except OverflowError:  # an integer beyond the floating-point numbers
            number = -math.inf if value < 0 else math.inf
        return number > self.above and self.least <= number <= self.most


def option(default: Any, help: str, unit: str = "", *, flag: str = "", numbers: bool = False, **range_: float) -> Any:
    """A field of a record with its default value and what is known `About` it."""
    return field(default=default, metadata={"about": About(help, unit, flag, numbers, **range_)})


@dataclass(frozen=True)
class Record:
    """Base class: the ranges of all fields are checked."""

    def __post_init__(self) -> None:
        for name, about in self.about().items():
            value = getattr(self, name)
            if not about.holds(value):
                unit = f" {about.unit}" if about.unit else ""
                raise InputError(f"{name} must be {about.range}{unit}, got {value!r}")

    @classmethod
    def about(cls) -> dict[str, About]:
        """What is known of each option, by name."""
        return {one.name: one.metadata["about"] for one in fields(cls)}


@dataclass(frozen=True)
class Cut(Record):
    """The part of a file that is the robot."""

    base: str | None = option(None, "the fixed link or frame; by default the root")
    tip: str | None = option(None, "the link or frame at which the chain from the base ends; by default the whole tree")
    lock: Lock = option(None, "joints to lock with their values, or rest: all beside the chain", "rad or m")
    floating: bool | None = option(None, "a floating or a fixed base; by default as the file says")


@dataclass(frozen=True)
class FileOptions(Record):
    """How a robot's file is read."""

    allow_outside: bool = option(False, "an MJCF model may read files outside its own folder")
    xacro: Mapping[str, Any] | None = option(None, "the arguments of a .xacro file")
    package_dirs: Sequence[PathName] = option((), "folders with ROS packages, or packages themselves")
    strict: bool | None = option(
        None,
        "impossible or missing inertias are errors (True) or notes (False); by default only masses below zero are",
    )


@dataclass(frozen=True)
class Terms(Record):
    """What the model of an identification has besides the links' inertias."""

    friction: str = option(
        "auto",
        "model of friction: none, viscous, coulomb, asymmetric, stribeck, asymmetric_stribeck, or auto (by the log)",
    )
    width: Numbers | None = option(
        None,
        "velocity range over which Coulomb friction changes sign, one or n; 0: at once; fitted unless given",
        "rad/s or m/s",
    )
    friction_per_log: bool = option(False, "separate friction and offsets for each log, shared inertias")
    rotor: bool = option(True, "every joint has a rotor inertia")
    offset: bool = option(True, "every joint has a constant offset")
    spring: bool = option(False, "every joint has a stiffness")
    tilt: bool = option(False, "the base may be tilted")


@dataclass(frozen=True)
class Filtering(Record):
    """How a log is filtered before the fit, and which of its rows count."""

    cutoff: float | None = option(None, "cut-off frequency of the position filter; from the motion unless given", "Hz")
    parallel: float | bool | None = option(
        None, "cut-off frequency of the filter of torques and regressor; from the motion unless given", "Hz"
    )
    dead_zone: float = option(
        0.0, "velocity below which a joint's torque is left out of the fit", "rad/s or m/s", least=0
    )


@dataclass(frozen=True)
class Drivetrain(Record):
    """What stands between the joints and what was logged."""

    transmission: Any = option(
        None, "motor positions = matrix @ joint positions, or n gear ratios", flag="--ratios", numbers=True
    )
    zero: Any = option(
        None, "offsets to add to the joint positions after the transmission, n", "rad or m", numbers=True
    )
    gains: Any = option(None, "torque per unit of logged effort, n", "N m or N per unit", numbers=True)


@dataclass(frozen=True)
class Fitting(Record):
    """How the parameters are fitted."""

    estimator: str = option("consistent", "method of the fit: consistent, ordinary, weighted, huber or instrumental")
    prior: Any = option(None, "an arm, its name or path to regularize towards; by default the arm itself")
    regularization: float | None = option(
        None, "weight of the prior, in noise variances; by cross-validation unless given", least=0
    )
    folds: int = option(5, "segments for cross-validation", least=2)
    fix: bool = option(False, "apply the corrections that the pre-flight check proposes")


# The integration methods, and what each is good for; the coefficients are those of `armdyn.programs.stepping`.
FIXED = {
    "RK4": "what `auto` takes unless something is stiff",
    "RK5": "smooth motions to high accuracy",
    "AB4": "one evaluation per step, for short steps",
    "ARK4": "controller gains and viscous friction implicitly, however stiff",
    "semi_implicit_euler": "one evaluation per step, and the energy does not drift",
}
# SciPy's solvers.
ADAPTIVE = {
    "DOP853": "order 8: smooth motions to the last digits",
    "RK45": "order 5: moderate accuracy",
    "LSODA": "orders up to 12, changes between a stiff and a nonstiff method",
    "Radau": "order 5, implicit: stiff motions, also under Python functions",
}


@dataclass(frozen=True)
class Integration(Record):
    """How a simulation steps."""

    method: str = option(
        "auto",
        f"integration method: auto (RK4, or ARK4 for stiff gains), {', '.join([*FIXED, *ADAPTIVE])}",
    )
    step: float | Literal["auto"] = option(1e-3, "longest step of the fixed-step methods, or auto", "s", above=0)
    rtol: float | None = option(None, "relative tolerance of the adaptive methods; 1e-9 unless given", above=0)
    atol: float | None = option(None, "absolute tolerance of the adaptive methods; 1e-11 unless given", above=0)


@dataclass(frozen=True)
class Conditions(Record):
    """What acts on the joints of a simulated arm besides its drives."""

    friction: bool = option(True, "joint friction acts")
    tool_wrench: Any = option(
        None, "constant wrench (force, torque) on the tool in base axes, (..., 6)", "N, N m", numbers=True
    )
    base_acceleration: Any = option(
        None,
        "acceleration of a base that does not turn, in base axes: (..., 3), in Python also a function of time",
        "m/s²",
        numbers=True,
    )
    limits: bool | float | Literal["end", "stop"] = option(
        True,
        "a joint limit ends the run (True, end), stops the joint (stop), rebounds (0 to 1), or is ignored (False)",
        flag="-",
    )
    saturate: bool | None = option(None, "clamp the torques to the effort limits; by default for controllers only")


@dataclass(frozen=True)
class Stepping(Record):
    """How a rollout steps."""

    method: str = option("semi_implicit_euler", "integration method: semi_implicit_euler or RK4")
    step: float = option(1e-3, "length of a step", "s", above=0)


@dataclass(frozen=True)
class Acting(Record):
    """What acts on the joints in a rollout."""

    friction: bool = option(True, "joint friction acts; dry friction by a smooth law, linear below 0.02 rad/s or m/s")
    saturate: bool = option(True, "clamp the torques to the effort limits")
    limits: Literal[False, "stop"] = option(False, "False ignores the joint limits, stop: joints stop there")


@dataclass(frozen=True)
class Workspace(Record):
    """Where an excitation may go, and how much of the limits it may use."""

    acceleration: Numbers | None = option(None, "largest joint accelerations, one or n", "rad/s² or m/s²")
    plane: tuple[Sequence[float], float] | None = option(
        None,
        "(normal, distance) in the base frame: tool and outer joints stay where normal · position >= distance",
        "m",
        flag="-",
    )
    clearance: float | None = option(None, "least distance between the axes of links that are not neighbours", "m")
    margin: float = option(0.95, "fraction of every limit that may be used", above=0, most=1)


@dataclass(frozen=True)
class Optimisation(Record):
    """How an excitation is searched for."""

    harmonics: int | None = option(None, "harmonics of 1 / duration; by default up to 1 Hz, between 5 and 20", least=2)
    criterion: str = option("information", "what is optimised: information or determinant")
    starts: int = option(3, "searches, from the best random trajectories", least=1)
    seed: int = option(0, "seed of the random trajectories")


# The targets of `deploy`: where each is, below `armdyn.deployment`, imported when it is chosen; and what it writes.
DEPLOY_TARGETS = {
    "c": ("c.TARGET", "C99: a header, a source, a test program, a Makefile"),
    "cpp": ("cpp.TARGET", "C++17: one header, a unit test, a Makefile"),
    "cuda": ("gpu.CUDA", "CUDA: one header with kernels over a batch, test on the CPU or a device"),
    "fmu": ("fmu.TARGET", "FMI 3.0 co-simulation and model exchange of the forward dynamics"),
    "object": (
        "objects.TARGET",
        "relocatable objects for Cortex-M, AArch64 and RISC-V, with headers and a description of their ABI",
    ),
    "opencl": ("gpu.OPENCL", "OpenCL C: kernels over a batch, test on the CPU or a device"),
    "wasm": ("wasm.TARGET", "WebAssembly: module, ES module, TypeScript types, a test program"),
    "wgsl": ("gpu.WGSL", "WGSL: one compute shader per quantity, test program for the package wgpu"),
}


@dataclass(frozen=True)
class CodeOptions(Record):
    """What generated code is like, and how it is checked before it is written."""

    dtype: str | None = option(
        None, "precision: double or float (float64, float32); by default double, or what the processor has"
    )
    parameters: str = option("runtime", "minimal parameters are: runtime (an argument), or baked (constants)")
    friction: bool = option(True, "inverse and forward dynamics include joint friction")
    frame: str | None = option(None, "the frame used as the tool; by default the arm's own")
    cpus: Sequence[str] = option((), "the processors that objects are made for; by default all", flag="--cpu")
    measure_stack: bool = option(True, "state the stack usage of each function, if gcc is installed", flag="--stack")
    build: bool = option(True, "build and test the code before it is written, if a compiler is installed")
    binary: bool = option(True, "for an FMU: compile a library for this machine")
    error_bound: bool | Mapping[str, Any] = option(
        False, "state bounds of the rounding errors, within the limits or within given ranges"
    )


@dataclass(frozen=True)
class Origin(Record):
    """The URDF that an arm was loaded from, and the part of it that was used."""

    urdf: PathName | None = option(None, "the URDF of which a copy with the identified inertias is written", flag="-")
    cut: Mapping[str, Any] | None = option(
        None, "the base, tip, lock and floating that the arm was loaded with", flag="-"
    )


TARGETS = f"kind of code: {', '.join(DEPLOY_TARGETS)}"


@dataclass(frozen=True)
class Delivery(Record):
    """Which code the pipeline writes, and when."""

    targets: Sequence[str] = option(("c", "cpp"), TARGETS, flag="--target")
    quantities: Sequence[str] | None = option(
        None, "the quantities to write; by default those that controllers need", flag="--quantity"
    )
    force: bool = option(False, "write code even if the validation fails; the manifest records this")
    overwrite: bool = option(False, "write among files of others")


@dataclass(frozen=True)
class BoundSearch(Record):
    """When the search for a proven bound ends."""

    gap: float = option(0.01, "bound and witness of every entry are to be this close, relative to the bound", least=0)
    seconds: float = option(60.0, "longest time for all entries together; the bounds are valid even then", "s", least=0)


@dataclass(frozen=True)
class Arithmetic(Record):
    """The floating-point arithmetic whose rounding errors are bounded."""

    dtype: str = option("float", "precision: float or double")
    trig_ulps: float = option(2.0, "largest error of sine and cosine, in units in the last place", least=0.5)


@dataclass(frozen=True)
class PoseSearch(Record):
    """Which configurations calibration poses are chosen from."""

    candidates: Any = option(1000, "number of random configurations within the limits, or configurations (k, n)")
    accept: Callable[[Any], Any] | None = option(
        None, "a function from configurations (k, n) to (k,) booleans: free of collisions, target visible", flag="-"
    )
    seed: int = option(0, "seed of the random configurations")


@dataclass(frozen=True)
class Execution(Record):
    """How a sweep is divided and run."""

    chunk: int = option(1024, "samples per chunk: one task, one piece of the store, the most that is lost", least=1)
    threads: int | None = option(None, "threads if there is no client; by default one per processor", least=1)


class LoadKeywords(TypedDict, total=False):
    """The fields of `Cut` and `FileOptions` as keywords of `load`."""

    base: str | None
    tip: str | None
    lock: Lock
    floating: bool | None
    allow_outside: bool
    xacro: Mapping[str, Any] | None
    package_dirs: Sequence[PathName]
    strict: bool | None


class IdentifyKeywords(TypedDict, total=False):
    """The fields of `Terms`, `Filtering`, `Drivetrain` and `Fitting` as keywords of `identify`."""

    friction: str
    width: Numbers | None
    friction_per_log: bool
    rotor: bool
    offset: bool
    spring: bool
    tilt: bool
    cutoff: float | None
    parallel: float | bool | None
    dead_zone: float
    transmission: Any
    zero: Any
    gains: Any
    estimator: str
    prior: Any
    regularization: float | None
    folds: int
    fix: bool


class SimulateKeywords(TypedDict, total=False):
    """The fields of `Integration` and `Conditions` as keywords of `simulate`."""

    method: str
    step: float | Literal["auto"]
    rtol: float | None
    atol: float | None
    friction: bool
    tool_wrench: Any
    base_acceleration: Any
    limits: bool | float | Literal["end", "stop"]
    saturate: bool | None


class RolloutKeywords(TypedDict, total=False):
    """The fields of `Stepping` and `Acting` as keywords of `gpu.rollout`."""

    method: str
    step: float
    friction: bool
    saturate: bool
    limits: Literal[False, "stop"]


class ExciteKeywords(TypedDict, total=False):
    """The fields of `Workspace` and `Optimisation` as keywords of `excite`."""

    acceleration: Numbers | None
    plane: tuple[Sequence[float], float] | None
    clearance: float | None
    margin: float
    harmonics: int | None
    criterion: str
    starts: int
    seed: int


class BoundKeywords(TypedDict, total=False):
    """The fields of `BoundSearch` as keywords of `bound`."""

    gap: float
    seconds: float


class RoundingKeywords(TypedDict, total=False):
    """The fields of `Arithmetic` as keywords of `rounding_error`."""

    dtype: str
    trig_ulps: float


class PoseKeywords(TypedDict, total=False):
    """The fields of `PoseSearch` as keywords of `calibration_poses`."""

    candidates: Any
    accept: Callable[[Any], Any] | None
    seed: int


class SweepKeywords(TypedDict, total=False):
    """The fields of `Execution` as keywords of `sweep`."""

    chunk: int
    threads: int | None


class _CodeKeywords(TypedDict, total=False):
    dtype: str | None
    parameters: str
    frame: str | None
    cpus: Sequence[str]
    measure_stack: bool
    build: bool
    binary: bool
    error_bound: bool | Mapping[str, Any]


class DeployKeywords(_CodeKeywords, total=False):
    """The fields of `CodeOptions` as keywords of `deploy`."""

    friction: bool


class PipelineKeywords(IdentifyKeywords, _CodeKeywords, total=False):
    """Keywords of `pipeline`: those of `identify` and `deploy`, and the fields of `Origin` and `Delivery`."""

    urdf: PathName | None
    cut: Mapping[str, Any] | None
    targets: Sequence[str]
    quantities: Sequence[str] | None
    force: bool
    overwrite: bool


def flat_keywords(**records: type[Record]) -> Callable[[F], F]:
    """Decorate a function with records as parameters: it takes their fields as keywords, too.

    `records` are the record classes by the name of their parameter, whose default is the record's own. The function
    itself gets records only. A keyword that is a field of two records belongs to the first of them. A record and one
    of its fields together are refused. `inspect.signature` shows the keywords after the function's own parameters,
    then the records; for type checkers the function takes `**keywords: Unpack[...]` of a TypedDict.
    """
    home: dict[str, str] = {}
    for parameter, record in records.items():
        for one in fields(record):
            home.setdefault(one.name, parameter)

    def decorated(function: F) -> F:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            for parameter, record in records.items():
                given = {name: kwargs.pop(name) for name in list(kwargs) if home.get(name) == parameter}
                if given and kwargs.get(parameter) is not None:
                    both, them = ", ".join(f"{name}=" for name in given), "it" if len(given) == 1 else "them"
                    raise InputError(
                        f"{function.__name__} got {both} and {parameter}=, which has {them}, too; "
                        f"give one, or dataclasses.replace({parameter}, ...)"
                    )
                if given:
                    kwargs[parameter] = record(**given)
                elif not isinstance(kwargs.get(parameter, record()), record):
                    raise InputError(
                        f"{parameter} must be an armdyn.options.{record.__name__}, got {kwargs[parameter]!r}"
                    )
            return function(*args, **kwargs)

        called.__dict__["__signature__"] = _signature(function, records, home)
        return cast(F, checked_keywords(called))

    return decorated


def _signature(
    function: Callable[..., Any], records: dict[str, type[Record]], home: dict[str, str]
) -> inspect.Signature:
    """The function's own parameters, the fields of the records, the records."""
    own = inspect.signature(function).parameters.values()
    plain = [one for one in own if one.name not in records and one.kind is not one.VAR_KEYWORD]
    flat = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=types[one.name])
        for parameter, record in records.items()
        for types in [get_type_hints(record)]
        for one in fields(record)
        if home[one.name] == parameter
    ]
    return inspect.signature(function).replace(parameters=[*plain, *flat, *(one for one in own if one.name in records)])
