"""Arm: the object users work with, a chain with its kernels, and how it is loaded.

`load` takes a file, the text of a URDF, a name of the catalogue or a model in memory, `from_dh` a table. An arm has one
kernel per quantity of the registry and per quantity of derivatives as an attribute (`KernelAttributes`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from armdyn import files
from armdyn.chain import Chain, Link, Placement
from armdyn.chain.canonical import SNAP, SnapReport, compare, load_changes, snapped, snapped_placement
from armdyn.chain.chain import no_tool, tip_names
from armdyn.chain.checks import Implausibility, check
from armdyn.errors import InputError, called_elsewhere, checked_keywords, choose
from armdyn.files import arrays, toml
from armdyn.files.description import HOLLOW, Description, Frame, tool_of, with_tool
from armdyn.files.text import write_files
from armdyn.formulations import DERIVATIVES, QUANTITIES
from armdyn.formulations.registry import Ports
from armdyn.joint_arrays import JointArrays
from armdyn.options import Cut, FileOptions, LoadKeywords, Lock, flat_keywords
from armdyn.values import cached_property, fingerprint

if TYPE_CHECKING:  # imported in the methods that need them, so that loading a robot does not import the compiler
    from armdyn.files.dh import StandardTable
    from armdyn.kernels.kernel import Kernel
    from armdyn.kinematics import InverseKinematics
    from armdyn.pages.motion import Animation
    from armdyn.parameters import MinimalParameters


class KernelOf:
    """A quantity of the arm: a `Kernel` made at first use and kept on the arm."""

    def __init__(self, name: str, doc: str, quantity: str, **options: Any) -> None:
        self.__doc__ = doc
        self.name = name
        self.quantity = quantity
        self.options = options

    def __get__(self, arm: Any, owner: type | None = None) -> Any:
        if arm is None:
            return self
        kernel = arm.__dict__[self.name] = arm.kernel(self.quantity, **self.options)
        return kernel


def attributes() -> Iterator[KernelOf]:
    """Every attribute that the registry defines."""
    for name, quantity in QUANTITIES.items():
        yield KernelOf(name, f"{quantity.doc}: {_shapes(quantity.outputs)}.", name)
    for name, (plain, wrt) in DERIVATIVES.items():
        inputs, shape = QUANTITIES[plain].inputs, _shapes((("", ("nv", "nv")),))
        listed = f"{', '.join(wrt[:-1])} and {wrt[-1]}"
        doc = f"Partial derivatives of {plain.replace('_', ' ')} in {listed}, one {shape} per input"
        yield KernelOf(name, f"{doc}; takes ({', '.join(port for port, _ in inputs)}).", plain, derivatives=wrt)


def _shapes(ports: Ports) -> str:
    """The shapes for a fixed-base arm, where q and its derivatives have n entries each."""
    sizes = [", ".join("n" if size in ("nq", "nv") else str(size) for size in shape) for _, shape in ports]
    return ", ".join(f"(..., {size})" if size else "(...,)" for size in sizes)


class KernelAttributes:
    """Base class that provides the attributes; the names are listed only for editors and type checkers."""

    if TYPE_CHECKING:  # a test compares this list with the registry
        inertia_matrix: Kernel
        inertia_inverse: Kernel
        articulated_inertias: Kernel
        inertia_factors: Kernel
        inertia_rate: Kernel
        bias: Kernel
        equations_of_motion: Kernel
        gravity_load: Kernel
        coriolis_matrix: Kernel
        inverse_dynamics: Kernel
        forward_dynamics: Kernel
        reference_dynamics: Kernel
        regressor: Kernel
        natural_regressor: Kernel
        payload_parameters: Kernel
        momentum: Kernel
        momentum_bias: Kernel
        kinetic_energy: Kernel
        potential_energy: Kernel
        friction: Kernel
        joint_forces: Kernel
        pose: Kernel
        link_poses: Kernel
        link_jacobians: Kernel
        pose_error: Kernel
        frame_velocity: Kernel
        frame_acceleration: Kernel
        joint_wrenches: Kernel
        integrate: Kernel
        difference: Kernel
        dh_poses: Kernel
        jacobian: Kernel
        jacobian_rate: Kernel
        centre_of_mass: Kernel
        centre_of_mass_jacobian: Kernel
        centroidal_momentum: Kernel
        centroidal_momentum_matrix: Kernel
        held_dynamics: Kernel
        operational_space_inertia: Kernel
        operational_space_inertia_inverse: Kernel
        inverse_dynamics_derivatives: Kernel
        forward_dynamics_derivatives: Kernel

    def __init_subclass__(cls) -> None:
        for attribute in attributes():
            setattr(cls, attribute.name, attribute)


@dataclass(frozen=True, eq=False, repr=False)
class Arm(KernelAttributes, JointArrays):
    """A robot arm: `given` is the chain as in its file, `chain` the snapped one used for computation.

    Arms are values: nothing changes one, ``with_...`` gives another. They compare by their numbers, hash
    alike in every process, and pickle without their kernels.
    """

    name: str
    given: Chain
    snap: float = SNAP
    source: str = ""
    frames: tuple[Frame, ...] = ()
    snapped_before: SnapReport = SnapReport()  # what the file's reader snapped to place frames
    notes: tuple[str, ...] = ()  # what the file's reader tolerated or decided, in plain words
    tool_name: str = ""  # what the tool is called if it is not the name of a frame at its place; see `tool`
    named_links: tuple[Frame, ...] = ()  # the links' frames as in the file, if they are not the bodies' own; no numbers

    @cached_property
    def chain(self) -> Chain:
        """The chain used for computation: exact constants, angles within `snap` of a right angle snapped to it."""
        return snapped(self.given, self.snap)

    @property
    def snapped(self) -> SnapReport:
        """Every number that was snapped, and the largest change."""
        return self.snapped_before + compare(self.given, self.chain)

    @property
    def snap_effect(self) -> np.ndarray:
        """A bound per joint, N m or N, on how much the snapped numbers change the gravity load at any posture (n,)."""
        places = [frame.placement.p for frame in (*self.frames, *self.link_frames)]
        offset = max((float(p.dot(p)) ** 0.5 for p in places), default=0.0)
        return np.array(load_changes(self.chain, self.snapped, offset))

    @property
    def snap_summary(self) -> str:
        """What was snapped and how much it can matter, in one sentence; empty if nothing was."""
        if not len(self.snapped):
            return ""
        effect = self.snap_effect
        worst = int(np.argmax(effect)) if self.n else 0
        unit = f"{'N m' if self.joints[worst].revolute else 'N'} ({self.joint_names[worst]})" if self.n else ""
        most = f": a gravity load changes by at most {effect[worst]:.2g} {unit}" if self.n else ""
        return f"{self.snapped}{most}; snap=0 takes every number as written"

    @property
    def n(self) -> int:
        """The number of independent joints; mimic joints and a floating base do not count."""
        return self.chain.n

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The links of all N ≥ n bodies, base to tips, including those of mimic joints and of a floating base.

        Their numbers are in the frames of `dh_poses`; `name` is what the file calls them.
        """
        pairs = zip(self.chain.links, self.link_frames, strict=True)
        return tuple(replace(link, name=frame.name) for link, frame in pairs)

    @cached_property
    def link_frames(self) -> tuple[Frame, ...]:
        """The frames of the N links as in the file: their names, and where they are in the frames of `dh_poses`."""
        if len(self.named_links) == self.chain.bodies:
            return tuple(replace(f, placement=snapped_placement(f.placement, self.snap)) for f in self.named_links)
        return tuple(Frame(f"link{k}", k, Placement()) for k in range(1, self.chain.bodies + 1))

    @cached_property
    def all_frames(self) -> dict[str, Frame]:
        """Every frame by name: those of the file, and the links' own."""
        names = {frame.name for frame in self.frames}
        own = [frame for frame in self.link_frames if frame.name not in names]
        return {frame.name: frame for frame in (*self.frames, *own)}

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names that ``frame=`` takes: of the file's frames, then of links without one."""
        return tuple(self.all_frames)

    @property
    def parents(self) -> tuple[int, ...]:
        """The parent of each of the N bodies; -1 is the base."""
        return self.chain.parents

    @property
    def floating(self) -> bool:
        """Whether the base floats: q is then (7 + n,), qd (6 + n,), laid out as Pinocchio's free-flyer."""
        return self.chain.floating

    @property
    def tips(self) -> tuple[str, ...]:
        """The names of the frames on the outermost links, or of their joints if they have no frames."""
        return tip_names(self.chain, {frame.name: frame.link for frame in self.frames})

    @cached_property
    def tool(self) -> Frame | None:
        """The tool: its name, the link that carries it (counted from 1) and its placement there; None if there is none.

        It is what pose, jacobian, payloads, wrenches, controllers and generated code refer to unless a frame is named:
        the frame asked for (``tool=`` or ``tip=`` of `armdyn.load`), else what the file states, else the only frame
        named like a tool (tool0, tcp, ee, flange, attachment_site, in this order), else the end of the chain if there
        is one tip.
        """
        return tool_of(self.chain, self._snapped_frames, self.tool_name)

    @cached_property
    def _snapped_frames(self) -> tuple[Frame, ...]:
        """The frames with their placements snapped as the tool's is, so that a frame at the tool's place equals it."""
        return tuple(replace(f, placement=snapped_placement(f.placement, self.snap)) for f in self.frames)

    def require_tool(self, what: str, remedy: str = "") -> Frame:
        """The tool; an error that lists the candidates if there is none. `what` needs it ("a payload")."""
        if self.tool is None:
            raise InputError(no_tool(what, self.chain, [(f.name, f.link) for f in self.frames], remedy))
        return self.tool

    @property
    def gravity(self) -> tuple[float, float, float]:
        """Gravity in the base frame, m/s²."""
        x, y, z = self.chain.gravity
        return float(x), float(y), float(z)

    @property
    def mass(self) -> float:
        """The total mass of the links, kg."""
        return float(sum(link.mass for link in self.links))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of 64 hexadecimal digits: equal for equal arms, in every process."""
        return fingerprint(self.name, self.given, self.snap, self.frames)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Arm):
            return NotImplemented
        mine, theirs = ((arm.name, arm.snap, arm.frames, arm.given) for arm in (self, other))
        return mine == theirs

    def __hash__(self) -> int:
        return int(self.fingerprint[:15], 16)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    if not TYPE_CHECKING:  # for a type checker an Arm has only the attributes it has

        def __getattr__(self, name: str) -> Any:
            hint = "" if name.startswith("_") else called_elsewhere(name, dir(type(self)))
            raise AttributeError(f"an Arm has no attribute {name!r}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<Arm {self.name}: {self.n} joints {self.kinds}, {self.mass:.4g} kg>"

    def __rich__(self) -> Any:
        from armdyn import listing

        return listing.rich_table(repr(self)[1:-1], self.source, self.chain)

    def _repr_html_(self) -> str:
        from armdyn import listing

        return listing.html_table(repr(self)[1:-1], self.source, self.chain)

    def kernel(
        self,
        quantity: str | Sequence[str],
        method: str = "auto",
        backend: str = "llvm",
        dtype: Any = None,
        device: Any = None,
        **options: Any,
    ) -> Kernel:
        """A quantity by a chosen formulation on a chosen backend: llvm, numpy, python, or gpu (`armdyn.gpu`).

        Several quantities of one state, ``arm.kernel(("inertia_matrix", "bias"))``, are computed by one program that
        shares their work; the result is the tuple of theirs. Names of derivatives are quantities here, too:
        ``("forward_dynamics", "forward_dynamics_derivatives")``.

        `device` is for the backend gpu: one of `armdyn.gpu.devices()`, its number or a part of its name.
        Options: `friction`, `tool_wrench`, `base_acceleration`, `frame`, `parameters` ("baked"; "runtime": the minimal
        parameters are a last input; "geometry": the geometry constants are, see `geometry`), `derivatives`
        (names of inputs: the exact partial derivatives in them).

        By default it computes in the precision of its inputs: float32 if all of them are, otherwise float64. With
        ``dtype="float32"`` or "float64" inputs are cast and results have this type.
        """
        from armdyn.kernels.kernel import Kernel

        if not isinstance(quantity, str):
            return self._several(tuple(quantity), method, backend, dtype, device, options)
        frames = {frame.name: (frame.link, frame.placement) for frame in self.all_frames.values()}
        plain = Kernel(
            self.chain, quantity, method, backend, frames=frames, links=self.own_links, dtype=dtype, device=device
        )
        return plain.variant(**options) if options else plain

    def _several(
        self, names: tuple[str, ...], method: str, backend: str, dtype: Any, device: Any, options: dict[str, Any]
    ) -> Kernel:
        """Several quantities as one kernel."""
        from armdyn.kernels.several import SeveralQuantities

        if method != "auto":
            raise InputError(f"several quantities take their own formulations, method='auto'; got method={method!r}")
        parts = []
        for name in names:
            choose("quantity", name, (*QUANTITIES, *DERIVATIVES))
            plain, wrt = DERIVATIVES.get(name, (name, ()))
            derived = {"derivatives": wrt} if wrt else {}
            parts.append(self.kernel(plain, "auto", backend, device=device, **derived))
        made = SeveralQuantities(tuple(parts)).variant(dtype=dtype)
        return made.variant(**options) if options else made

    def compile(
        self,
        *quantities: str,
        workers: int | None = None,
        background: bool = False,
        progress: Callable[[float, float, str], None] | None = None,
    ) -> Arm:
        """Compile kernels before their first call, on all cores; returns the arm.

        Without names, those that `emit_c` writes: inertia matrix, bias, dynamics, pose and Jacobian. Code is kept in
        the cache on disk, so the next process only loads it. `workers` is the number of processes, `progress` a
        function (done, total, text) in place of the progress bar that a terminal shows. With `background` it returns
        at once; a kernel that is called before it is ready is compiled by that call.
        """
        from armdyn.kernels import ahead, emission

        if workers is not None and workers < 1:
            raise InputError(f"workers must be a positive number of processes, got {workers}")
        chosen = quantities or emission.default(self.chain)
        kernels = [getattr(self, choose("quantity", name, (*QUANTITIES, *DERIVATIVES))) for name in chosen]
        ahead.compile_ahead(kernels, workers, progress, background)
        return self

    @property
    def own_links(self) -> tuple[tuple[int, Placement], ...]:
        """The placements of the links' frames, each with its body; none if they are all the bodies' own."""
        links = tuple((frame.link, frame.placement) for frame in self.link_frames)
        return links if any(at != Placement() for _, at in links) else ()

    def poses(self, q: Any, frames: str | Sequence[str] = "all") -> Any:
        """The poses (..., F, 4, 4) of F frames in the base frame in one call: all `frame_names`, or those named."""
        return self.link_poses.variant(frames=self._named(frames))(q)

    def jacobians(self, q: Any, frames: str | Sequence[str] = "all", axes: str = "base") -> Any:
        """The Jacobians (..., F, 6, nv) of F frames in one call; ``axes="local"``: each in the frame's own axes."""
        return self.link_jacobians.variant(frames=self._named(frames), axes=axes)(q)

    def _named(self, frames: str | Sequence[str]) -> tuple[str, ...]:
        names = self.frame_names if frames == "all" else (frames,) if isinstance(frames, str) else tuple(frames)
        if not names:
            raise InputError("frames must name at least one frame, or be 'all'; got none")
        return names

    def plot(self, q: Any = None, engine: Literal["page", "plotly"] = "page") -> Any:
        """The arm at `q` (n,), or at several configurations (k, n), with its gravity load; at rest by default.

        A notebook shows it, `save` writes it as a page; ``engine="plotly"`` gives a Plotly figure, in which earlier
        configurations are fainter (needs the extra ``armdyn[plot]``).
        """
        postures = np.atleast_2d(self.rest if q is None else np.asarray(q, float))
        if choose("engine", engine, ("page", "plotly")) == "page":
            return import_module("armdyn.pages.motion").postures(self, postures)  # pages are above arms in the layers
        from armdyn import drawing

        tool = self.pose(postures) if self.tool is not None else None
        return drawing.figure(self.chain, self.dh_poses(postures), tool, self.name)

    def report(self, path: str | os.PathLike[str] | None = None) -> Animation:
        """The interactive page of `armdyn report`, written to `path` if there is one; a notebook shows it inline."""
        from armdyn.pages.motion import Animation
        from armdyn.references import citation
        from armdyn.report.collect import collect
        from armdyn.report.page import page

        made = Animation(page(collect(self), citation()))
        if path is not None:
            made.save(path)
        return made

    def show(self) -> Animation:
        """Show the interactive page: inline in a notebook, otherwise in a browser."""
        import sys
        import tempfile
        import webbrowser

        made = self.report()
        if "ipykernel" not in sys.modules:
            folder = Path(tempfile.mkdtemp(prefix="armdyn-"))
            made.save(folder / "report.html")
            webbrowser.open((folder / "report.html").as_uri())
        return made

    def animate(self, q: Any, t: Any = None) -> Animation:
        """A page on which the arm moves through configurations q (k, n), at times t (k,), by default 25 in a second.

        The torques shown are those of gravity. `Trajectory.animate` shows a simulated motion with its own torques.
        """
        from armdyn.pages.motion import animation, positions

        postures = np.atleast_2d(np.asarray(q, float))
        if postures.ndim != 2 or postures.shape[1] != self.chain.nq:
            raise InputError(f"animate expects q of shape (k, {self.chain.nq}), got {np.shape(q)}")
        times = np.arange(len(postures)) / 25 if t is None else np.asarray(t, float)
        if times.shape != (len(postures),) or not (np.diff(times) > 0).all():
            raise InputError(f"animate expects {len(postures)} increasing times, got {np.shape(t)}")
        label, names, shown = positions(self, list(self.joint_names), postures)
        charts = [(label, names, shown[:, -self.n :])]
        return animation(self, times, postures, self.gravity_load(postures), charts, self.name)

    def emit_c(
        self,
        directory: str | os.PathLike[str],
        quantities: Sequence[str] | None = None,
        dtype: str = "double",
        parameters: str = "baked",
        friction: bool = False,
        error_bound: bool | Mapping[str, Any] = False,
    ) -> list[Path]:
        """Write C99 for a controller (header, source, test program, Makefile); returns the paths written.

        Any quantity can be written, `inverse_dynamics_derivatives` and `forward_dynamics_derivatives` too. `dtype` is
        "double" or "float"; with ``parameters="runtime"`` the minimal parameters are an argument. With `error_bound`
        the header says how far results are off at most, within ranges as those of `armdyn.rounding_error`.
        """
        from armdyn import __version__, ranges
        from armdyn.kernels import emission

        wanted = emission.default(self.chain) if quantities is None else quantities
        given = error_bound if isinstance(error_bound, Mapping) else {}
        boxes = None if error_bound is False else ranges.for_rounding(self, given)
        about = self.source, __version__
        texts = emission.c_files(
            self.name, self.chain, wanted, dtype, parameters, friction, *about, boxes, self.own_links
        )
        return write_files(directory, {name: text.encode() for name, text in texts.items()})

    def emit_wasm(
        self,
        directory: str | os.PathLike[str],
        quantities: Sequence[str] | None = None,
        parameters: str = "baked",
        friction: bool = False,
    ) -> list[Path]:
        """Write a WebAssembly module, an ES module and TypeScript types; returns the paths written.

        Quantities and `parameters` are as those of `emit_c`. With forward dynamics among them the module steps
        the arm too: ``advance(q, qd, tau, step, count)``.
        """
        from armdyn import __version__
        from armdyn.kernels import emission, wasm_emission

        wanted = emission.default(self.chain) if quantities is None else quantities
        about = self.source, __version__, self.own_links
        made = wasm_emission.wasm_files(self.name, self.chain, wanted, parameters, friction, *about)
        return write_files(directory, made)

    def with_gravity(self, gravity: Any) -> Arm:
        """The same arm under another gravity vector (base frame, m/s²); g - a₀ for an accelerating base."""
        return self._with(gravity=arrays.vector(gravity, "gravity"))

    def with_base(self, xyz: Any = (0, 0, 0), rpy: Any = (0, 0, 0)) -> Arm:
        """The same arm with its base frame at `xyz`, rotated by roll, pitch, yaw; gravity stays the same.

        `xyz` may also be a whole pose: a (4, 4) matrix, or an SE3 object of Pinocchio, spatialmath or SciPy.
        """
        here = arrays.placement(xyz, rpy)
        frames = tuple(replace(f, placement=here @ f.placement) if f.link == 0 else f for f in self.frames)
        return replace(self._with(base=here @ self.given.base), frames=frames)

    def with_tool(self, xyz: Any = (0, 0, 0), rpy: Any = (0, 0, 0), *, frame: str | None = None) -> Arm:
        """The same arm with another tool: `xyz` and `rpy` relative to the current tool, or to a named frame.

        `xyz` may also be a whole pose, as that of `with_base`.
        """
        link, at = self._place("with_tool", frame)
        moved = arrays.placement(xyz, rpy)
        name = frame or "" if moved == Placement() else ""
        return replace(self._with(tool=at @ moved, tool_link=link), tool_name=name)

    def with_payload(self, mass: float, com: Any = (0, 0, 0), inertia: Any = None, *, frame: str | None = None) -> Arm:
        """The same arm with a payload at the tool, or at a named frame, merged into the link that carries it.

        `com` is in the tool's frame, the inertia about it in the tool's axes: a (3, 3) matrix or the six
        numbers xx, yy, zz, xy, xz, yz; None is a point mass. A body that cannot be is refused.
        """
        return self._with_body(arrays.payload(mass, com, inertia), frame)

    def without_payload(
        self, mass: float, com: Any = (0, 0, 0), inertia: Any = None, *, frame: str | None = None
    ) -> Arm:
        """The same arm without this payload: exactly the arm that `with_payload` was called on."""
        held = arrays.payload(mass, com, inertia)
        return self._with_body(Link.from_natural(tuple(-x for x in held.natural)), frame)

    def _with_body(self, body: Link, frame: str | None) -> Arm:
        k, at = self._place("a payload", frame)
        links = list(self.given.links)
        links[k - 1] = links[k - 1] + body.moved(at.R, at.p)
        return self._with(links=tuple(links))

    def _place(self, what: str, frame: str | None) -> tuple[int, Placement]:
        """The link, counted from 1, and the placement on it, of a frame that moves; of the tool if none is named."""
        if frame is None:
            return self.require_tool(what).link, self.given.tool
        named = {name: f for name, f in self.all_frames.items() if f.link}
        return (found := named[choose("frame that moves", frame, named)]).link, found.placement

    def with_links(self, links: tuple[Link, ...]) -> Arm:
        """The same arm with other links, one per body."""
        if len(links) != self.chain.bodies:
            raise InputError(f"with_links expects {self.chain.bodies} links, got {len(links)}")
        return self._with(links=tuple(links))

    @property
    def uncoupled(self) -> Arm:
        """The same arm without tendons of several joints and without gravity compensation, where it has any."""
        return self._with(tendons=(), compensated=())

    def _with(self, **changes: Any) -> Arm:
        return replace(self, given=replace(self.given, **changes))

    @cached_property
    def minimal_parameters(self) -> MinimalParameters:
        """The identifiable inertial parameters: names, expressions, values, matrix (p × 10 n), kind."""
        from armdyn.parameters import minimal_parameters

        return minimal_parameters(self.chain)

    def natural_parameters(self, columns: str = "bodies") -> Any:
        """(10 N,) mass, first moment and inertia of each link, as the columns of `natural_regressor`.

        They are in the frames of `dh_poses`, or with ``columns="urdf"`` in the links' frames as in the file.
        """
        at_links = choose("columns", columns, ("bodies", "urdf")) == "urdf"
        places = (
            [frame.placement.inverse for frame in self.link_frames] if at_links else [Placement()] * len(self.links)
        )
        moved = (link.moved(at.R, at.p) for link, at in zip(self.links, places, strict=True))
        return np.array([float(x) for link in moved for x in link.natural])

    def with_minimal_parameters(self, values: Any, nearest: bool = False) -> Arm:
        """The same arm with links that have these minimal parameters, in the order of their names.

        The links have many zeros and need not be possible bodies; with `nearest` their natural
        parameters are those nearest to the present ones.
        """
        from armdyn.parameters import realise

        numbers = arrays.numbers(values, "minimal parameters")
        return self._with(links=realise(self.chain, numbers, nearest).links)

    @property
    def description(self) -> Description:
        """The parts of this arm that are stored in a file, as given."""
        tool, links = self.tool_name, self.named_links
        return Description(self.name, self.given, self.source, self.frames, tool_name=tool, link_frames=links)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an arm file (.toml) with the numbers as given; loading it gives an equal arm."""
        if Path(path).suffix.lower() != ".toml":
            raise InputError(
                f"save writes an arm file, its name ends in .toml; got {str(path)!r} (to_urdf writes URDF)"
            )
        toml.write(path, self.description)

    def to_urdf(self, path: str | os.PathLike[str]) -> None:
        """Write a URDF with the same dynamics, except gravity, which a URDF cannot express.

        Rotor inertias and further joint forces are in an element ``<armdyn>``, which other programs ignore.

        The tool is a link `tool` on a fixed joint; another element ``<armdyn>`` says so to armdyn. A robot without a
        tool has none there either.
        """
        from armdyn.files import urdf_out  # imported only if needed

        urdf_out.write(path, replace(self.description, chain=self.chain))

    def to_mjcf(self, path: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write an MJCF model (.xml) with the same dynamics; returns what MJCF cannot hold, also a comment in the file.

        Bodies with full inertias, joints with limits, armature, damping, frictionloss and springs, motors with the
        torque limits, frames as sites, mimic joints as equality constraints, a floating base as a free joint.
        """
        from armdyn.files import mjcf_out  # imported only if needed

        return mjcf_out.write(path, replace(self.description, chain=self.chain))

    def check(self) -> list[Implausibility]:
        """What is physically implausible about this arm, link by link; an empty list if nothing is."""
        hollow = [Implausibility("arm", "weightless tip", note) for note in self.notes if note.startswith(HOLLOW)]
        return [*check(self.chain, self.snapped), *hollow]

    def update_urdf(
        self,
        original: str | os.PathLike[str],
        out: str | os.PathLike[str],
        *,
        base: str | None = None,
        tip: str | None = None,
        lock: Lock = None,
        floating: bool | None = None,
    ) -> list[str]:
        """Write the URDF this arm was read from with the arm's inertias, every other byte as it was.

        `base`, `tip`, `lock` and `floating` are those it was read with. Gives the names of the links that were changed.
        """
        from armdyn.files import urdf_update

        return urdf_update.update(original, out, self.description, Cut(base, tip, lock, floating), self.snap)

    def to_standard_dh(self) -> StandardTable:
        """The arm as a standard Denavit-Hartenberg table; raises an error if two axes are nearly parallel."""
        from armdyn.files import dh

        return dh.to_standard(self.chain)

    def inverse_kinematics(
        self,
        pose: Any,
        q0: Any = None,
        *,
        frame: str | None = None,
        limits: bool = True,
        orientation: bool = True,
        tolerance: float = 1e-9,
        seed: int = 0,
    ) -> InverseKinematics:
        """Configurations near `q0` (..., n) in which the tool, or a named frame, has the pose `pose` (..., 4, 4).

        The result says whether each pose was reached (to `tolerance` metres and radians) and by how much it was
        missed. ``limits=False`` ignores the joint limits, ``orientation=False`` asks for the position alone.
        """
        from armdyn import kinematics

        self.must_suit("inverse kinematics")
        ends = self.limits if limits else np.tile([-np.inf, np.inf], (self.n, 1))
        if (ends[:, 0] > ends[:, 1]).any():
            raise InputError(f"the limits of {self.name} are swapped: {ends.tolist()}; try limits=False")
        at = {"frame": frame} if frame is not None else {}
        lower, upper = ends.T
        functions = self.pose.variant(**at), self.jacobian.variant(**at)
        task = kinematics.Task(*functions, lower, upper, kinematics.reach(self.chain), orientation)
        return kinematics.inverse(task, pose, q0, tolerance, seed)


@flat_keywords(part=Cut, reading=FileOptions)
def load(
    arm: Any,
    *,
    snap: float = SNAP,
    gravity: Any = None,
    tool: str | None = None,
    part: Cut = Cut(),
    reading: FileOptions = FileOptions(),
    **keywords: Unpack[LoadKeywords],
) -> Arm:
    """Load a robot from the catalogue (`armdyn.catalogue`), a file, a text, or another library's model in memory.

    Parameters
    ----------
    arm
        A catalogue name, the text of a URDF or of an MJCF model, or the path of an arm file (.toml), URDF (.urdf,
        .xml), xacro (.xacro), SDFormat (.sdf) or MJCF model (.xml, .mjcf). Or a model in memory: a ``pinocchio.Model``,
        a ``mujoco.MjModel``, a ``DHRobot`` or ``ERobot`` of the Robotics Toolbox.
    base, tip
        The links or frames at the ends of one chain of the tree; in an arm file the links are ``base``, ``link1``, ...
        and ``tool``. Without `tip` the whole robot is loaded, with branches and mimic joints. For a `base` below the
        root, the joints between are locked, and gravity is rotated from the root's axes into the base's.
    lock
        Joints to lock, with values in rad or m, or "rest": ``{"finger_joint": 0.02}``. ``lock="rest"`` locks all joints
        beside the chain at their rest values: zero, or mid-range if zero is outside the limits. See `Arm.notes`.
    snap
        Angles within `snap` (rad) of a multiple of π/2 are snapped to it; 0 takes every angle as written.
    floating
        True for a floating base, False for a fixed one; by default as the file says.
    gravity
        The gravity vector in the base's axes, m/s², in place of the file's.
    allow_outside
        Whether an MJCF model may read files outside its own folder.
    xacro
        The arguments of a .xacro file: ``{"ur_type": "ur5e"}``.
    package_dirs
        Folders with ROS packages that a .xacro file refers to (``$(find name)``), or packages themselves. Without it
        are found the file's own package (the nearest folder above it with a ``package.xml``), the packages beside that,
        and those in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH; no file outside of these is read.
    tool
        The frame that is the tool, by name: any frame that moves. By default it is `tip`, or what an arm file states,
        or the only frame named by convention (tool0, tcp, ee, flange, attachment_site, in this order), or the end of
        the chain; a robot with several tips may have none. See `Arm.tool`.
    strict
        By default a mass below zero is an error, while an inertia that no body can have and a moving link without any
        are notes. True makes all of these errors, False makes them notes.
    part, reading
        These keywords as records of `armdyn.options`: `base`, `tip`, `lock` and `floating` in a `Cut`; `allow_outside`,
        `xacro`, `package_dirs` and `strict` in `FileOptions`.
    """
    _check_snap(snap)
    for name, flag in (("floating", part.floating), ("strict", reading.strict)):
        if flag not in (None, True, False):
            raise InputError(f"{name} must be True, False or None, got {flag!r}")
    if tool is not None and not isinstance(tool, str):
        raise InputError(f"tool must be the name of a frame, got {tool!r}; Arm.with_tool moves the tool")
    robot = with_tool(files.read(arm, part, snap=snap, reading=reading), tool)
    read_as = robot.snapped, robot.notes, robot.tool_name, robot.link_frames
    made = Arm(robot.name, robot.chain, snap, robot.source, robot.frames, *read_as)
    if made.snapped.uncertain:
        first = made.snapped.uncertain[0]
        note = (
            f"{first} although it is no rounding of it ({len(made.snapped.uncertain)} such angles): {made.snap_summary}"
        )
        made = replace(made, notes=(*made.notes, note))
    return made if gravity is None else made.with_gravity(gravity)


def as_arm(arm: Arm | str | os.PathLike[str], caller: str) -> Arm:
    """The arm itself, or the one that a catalogue name or a path stands for; `caller` is named in the error."""
    if isinstance(arm, Arm):
        return arm
    if isinstance(arm, str | os.PathLike):
        return load(arm)
    raise InputError(f"{caller} takes an Arm, a catalogue name or the path of a robot's file, got {arm!r}")


def _check_snap(snap: float) -> None:
    if not isinstance(snap, Real) or not 0 <= snap < 0.1:
        raise InputError(f"snap must be an angle from 0 to 0.1 rad, got {snap!r}")


@checked_keywords
def from_dh(
    rows: Sequence[Mapping[str, Any] | Sequence[float]],
    convention: str = "standard",
    *,
    name: str = "arm",
    gravity: Any = (0.0, 0.0, -9.81),
    base: Any = None,
    tool: Any = None,
    snap: float = SNAP,
) -> Arm:
    """Make an arm from a Denavit-Hartenberg table.

    Parameters
    ----------
    rows
        One row per joint, base to tip: ``(theta, d, a, alpha)`` of a revolute joint, or a mapping with these keys (zero
        by default) and optionally ``kind`` ("revolute", "prismatic"), ``name``, ``lower``, ``upper``, ``velocity``,
        ``effort``, ``mass``, ``com``, ``inertia`` (about the centre of mass: (3, 3), or xx, yy, zz, xy, xz, yz),
        ``rotor_inertia``, ``viscous``, ``coulomb``, ``static``, ``stribeck``, and the forces of `JointForces` that are
        one number (``offset``, ``stiffness``, ``asymmetry``, ``load_friction``). q is added to theta (revolute) or d
        (prismatic); with ``flip`` it is subtracted. ``com`` and ``inertia`` are given in the frame of the row. As in
        the Robotics Toolbox ``coulomb`` may be a pair (Tc+, Tc-): friction of (Tc+ - Tc-) / 2 and an offset of
        (Tc+ + Tc-) / 2, which also acts at rest.
    convention
        "standard": T = Rz(theta) Tz(d) Tx(a) Rx(alpha). "modified": T = Tx(a) Rx(alpha) Tz(d) Rz(theta), where a and
        alpha of row i are often printed as those of i - 1.
    base, tool
        Poses of the first frame in the base and of the tool in the last frame: (4, 4) matrices, or SE3 objects.
    """
    from armdyn.files import dh_table  # imported only if needed

    _check_snap(snap)
    chain, frames = dh_table.chain(rows, convention, gravity, base, tool)
    return Arm(name, chain, snap, f"{convention} Denavit-Hartenberg table", named_links=frames)


def generic_arm(kinds: str, seed: int = 0) -> Arm:
    """An arm with random geometry; `kinds` is a string of R (revolute) and P (prismatic)."""
    from armdyn.chain.chain import generic_chain

    return Arm(f"generic_{kinds}_{seed}", generic_chain(kinds, seed), snap=0.0, source="random geometry")
