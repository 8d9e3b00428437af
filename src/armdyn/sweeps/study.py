"""Study: samples, a computation and reductions, in chunks; pickled for workers with arms as the text of their files.

Two studies with the same fingerprint compute the same numbers.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.files import toml
from armdyn.files.description import with_tool
from armdyn.sweeps.reductions import LabelledArray, Part, Reduction, Variables, coordinates, labelled
from armdyn.values import cached_property


def digest(x: Any) -> str:
    """A SHA-256 digest, in hexadecimal, of everything that determines what `x` computes."""
    return hashlib.sha256(described(x).encode()).hexdigest()


def described(x: Any) -> str:
    """A text that is equal for equal data in every process; functions are represented by their source."""
    if x is None or isinstance(x, bool | int | float | complex | str | range):
        return repr(x)
    if isinstance(x, bytes):
        return hashlib.sha256(x).hexdigest()
    if isinstance(x, np.generic):
        return repr(x.item())
    if isinstance(x, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()
        return f"array({x.dtype.str}, {x.shape}, {content})"
    if isinstance(x, tuple | list):
        return f"[{', '.join(map(described, x))}]"
    if isinstance(x, Mapping):
        return f"{{{', '.join(f'{described(k)}: {described(v)}' for k, v in x.items())}}}"
    if isinstance(x, Arm):
        return f"Arm({x.fingerprint})"
    if hasattr(x, "__describe__"):
        return f"{_name(type(x))}{described(x.__describe__())}"
    if is_dataclass(x) and not isinstance(x, type):
        return f"{_name(type(x))}{described({f.name: getattr(x, f.name) for f in fields(x)})}"
    return _function(x)


def _function(x: Any) -> str:
    if isinstance(x, partial):
        return f"partial({described(x.func)}, {described(x.args)}, {described(x.keywords)})"
    if isinstance(x, MethodType):
        return f"method({described(x.__func__)}, {described(x.__self__)})"
    if isinstance(x, FunctionType):
        bound = [cell.cell_contents for cell in x.__closure__ or ()]
        kept = (x.__defaults__, x.__kwdefaults__, bound)
        return f"{_name(x)}({_source(x)}, {described(kept)})"
    if isinstance(x, type | BuiltinFunctionType | np.ufunc):
        return _name(x)
    raise InputError(
        f"a study cannot be fingerprinted with {x!r} ({type(x).__name__}); use numbers, arrays, functions or frozen "
        "dataclasses of them"
    )


def _name(x: Any) -> str:
    """Module and name; of armdyn's own the name alone, so that a study stays the same where a module moves."""
    module = str(getattr(x, "__module__", ""))
    name = getattr(x, "__qualname__", getattr(x, "__name__", ""))
    return f"{'armdyn' if module.split('.')[0] == 'armdyn' else module}.{name}"


def _source(function: FunctionType) -> str:
    """A digest of the source, or of the bytecode if there is no source (interactive sessions)."""
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
    except (OSError, TypeError):
        return hashlib.sha256(_code(function.__code__).encode()).hexdigest()


def _code(code: CodeType) -> str:
    constants = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code!r} {constants} {code.co_names}"


MAX_LISTED = 10**6  # samples up to which results have the sample numbers as a coordinate
Compute = Callable[[Arm, Any], Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Study:
    """A study: ``compute(arm, samples[a:b])`` for each chunk, and the reductions of its variables."""

    arm: Arm
    compute: Compute
    samples: Any
    chunk: int
    reduce: Any = None  # reductions for every variable, or by variable

    def __post_init__(self) -> None:
        if not isinstance(self.arm, Arm):
            raise InputError(f"sweep takes an Arm, got {self.arm!r}; armdyn.load(...) returns one")
        if not callable(self.compute):
            raise InputError(f"compute must be a function of (arm, samples), got {self.compute!r}")
        if not hasattr(self.samples, "__len__") or not hasattr(self.samples, "__getitem__"):
            raise InputError(
                f"samples must be a number, an array, or from Uncertain.sample; got {type(self.samples).__name__}"
            )
        if isinstance(self.chunk, bool) or not isinstance(self.chunk, int) or self.chunk < 1:
            raise InputError(f"chunk must be a number of samples, at least 1; got {self.chunk!r}")
        if len(self.samples) == 0:
            raise InputError("a study needs at least one sample")

    @property
    def total(self) -> int:
        """The number of samples."""
        return len(self.samples)

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return -(-self.total // self.chunk)

    def bounds(self, index: int) -> tuple[int, int]:
        """The first sample of a chunk, and the one after its last."""
        return index * self.chunk, min((index + 1) * self.chunk, self.total)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The metadata of the results; studies with equal fingerprints compute the same numbers."""
        from armdyn import __version__

        plain = {
            "arm": self.arm.name,
            "arm_fingerprint": self.arm.fingerprint,
            "armdyn": __version__,
            "compute": getattr(self.compute, "__qualname__", type(self.compute).__qualname__),
            "samples": self.total,
            "chunk": self.chunk,
            "seed": self.seed,
        }
        own = [self.arm, self.compute, self.samples, self.chunk, self.reduce, __version__]
        return plain | {"reduce": "" if self.reduce is None else described(self.reduce), "fingerprint": digest(own)}

    @property
    def seed(self) -> int:
        """The seed of the samples or of the computation; -1 if there is none."""
        uncertain = getattr(self.samples, "uncertain", None)
        return int(getattr(uncertain or self.compute, "seed", -1))

    def reductions(self, name: str) -> Sequence[Reduction]:
        """The reductions of a variable."""
        chosen = self.reduce.get(name, ()) if isinstance(self.reduce, Mapping) else self.reduce
        return tuple(chosen or ())

    def run(self, first: int, stop: int) -> Variables:
        """The variables of samples `first` to `stop`."""
        return labelled(self.compute(self.arm, self.samples[first:stop]), stop - first, self.arm)

    def parts(self, variables: Variables, first: int) -> dict[str, np.ndarray]:
        """The partial reductions of a chunk in a flat dict, keyed by reduction index, variable and part."""
        flat: dict[str, np.ndarray] = {}
        for name, v in variables.items():
            for k, reduction in enumerate(self.reductions(name) if v.sampled else ()):
                made = reduction.partial(np.asarray(v.values, dtype=float), first, self.total)
                flat |= {f"{k}|{name}|{part}": x for part, x in made.items()}
        return flat

    def merged(self, a: Part | None, b: Part) -> Part:
        """Merge two flat partial results."""
        if a is None:
            return b
        out: Part = {}
        for name in dict.fromkeys(key.split("|")[1] for key in b):
            for k, reduction in enumerate(self.reductions(name)):
                mine, theirs = (_nested(part, k, name) for part in (a, b))
                out |= {f"{k}|{name}|{part}": x for part, x in reduction.merged(mine, theirs).items()}
        return out

    def finished(self, part: Part, layout: Variables) -> Variables:
        """The reduced variables; `layout` gives the axes of the variables."""
        out: Variables = {}
        for name, v in layout.items():
            for k, reduction in enumerate(self.reductions(name) if v.sampled else ()):
                out |= reduction.finished(_nested(part, k, name), name, v.dims[1:])
        return out

    def layout(self) -> Variables:
        """The variables of one sample, for their names, axes and types; this also compiles the kernels."""
        found = self.run(0, 1)
        if self.reduce is not None and not any(self.reductions(name) for name, v in found.items() if v.sampled):
            asked = list(self.reduce) if isinstance(self.reduce, Mapping) else []
            raise InputError(
                f"reduce= selects no variable; available: {', '.join(found)}; got {', '.join(asked) or 'none'}"
            )
        return found

    def whole(self, layout: Variables) -> Variables:
        """The variables broadcast to the size of the study without allocating memory; coordinates unchanged."""
        return {
            name: LabelledArray(v.dims, np.broadcast_to(v.values[:1], (self.total, *v.values.shape[1:])))
            if v.sampled
            else v
            for name, v in layout.items()
        }

    def coordinates(self, layout: Variables) -> Variables:
        """The joint names, the sample numbers, and the variables without a sample axis."""
        axes = {dim for v in layout.values() for dim in v.dims}
        own = {name: v for name, v in coordinates(self.arm).items() if name in axes}
        if self.total <= MAX_LISTED:
            own["sample"] = LabelledArray(("sample",), np.arange(self.total), constant=True)
        return own | {name: v for name, v in layout.items() if not v.sampled}


def _nested(part: Part, k: int, name: str) -> Part:
    start = f"{k}|{name}|"
    return {key[len(start) :]: x for key, x in part.items() if key.startswith(start)}


def packed(study: Study) -> bytes:
    """The pickled study, with every arm as the text of its file."""
    try:
        import cloudpickle  # installed with Dask; pickles functions of a script by value

        base: Any = cloudpickle.Pickler
    except ImportError:
        base = pickle.Pickler

    class Pickler(base):  # type: ignore[misc]
        def reducer_override(self, x: Any) -> Any:
            if isinstance(x, Arm):
                return arm_from_text, (toml.text(x.description), x.name, x.snap)
            return super().reducer_override(x) if hasattr(super(), "reducer_override") else NotImplemented

    stream = io.BytesIO()
    Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(study)
    return stream.getvalue()


@lru_cache(maxsize=8)
def unpacked(content: bytes) -> Study:
    """The unpickled study, cached per process so that kernels are compiled once."""
    study: Study = pickle.loads(content)
    return study


@lru_cache(maxsize=64)
def arm_from_text(text: str, name: str, snap: float) -> Arm:
    """The arm from the text of its file, cached per process."""
    found = with_tool(toml.parse(text.encode(), f"the arm {name} of a study", name))
    read_as = found.snapped, found.notes, found.tool_name, found.link_frames
    return Arm(found.name, found.chain, snap, found.source, found.frames, *read_as)
