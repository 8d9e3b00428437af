"""The read-me file of an FMU's folder."""

from __future__ import annotations

from collections.abc import Sequence

from armdyn.codegen.text.c import Package, identifier
from armdyn.deployment.fmu_model import Model
from armdyn.deployment.readme import line


def fmu_readme(model: Model, package: Package, binaries: Sequence[str]) -> str:
    """The file's text; `binaries` are the libraries in the archive."""
    name = identifier(package.name)
    built = (
        f"It holds a library for this platform: `{binaries[0]}`. For another one, run `make fmu` there."
        if binaries
        else "**It is a source FMU: no C compiler was found that builds it, so it holds no library.** Run "
        "`make fmu` where there is one, or let your importer build it from `sources/` (`sources/buildDescription.xml`)."
    )
    parts = [
        f"# {line(package.name)}: forward dynamics as an FMU (FMI 3.0)",
        f"`{name}.fmu` is one file for co-simulation and for model exchange: forces and torques of the motors in, "
        f"positions, velocities and accelerations out. {built}",
        "\n".join(line(text) for text in package.comment.splitlines()[:2]),
        _files(name),
        "## Build and test\n\n```console\n$ make test\n```\n\nbuilds the sources with a test program and checks them "
        "against vectors that armdyn computed with other programs.",
        _variables(model),
        _notes(model),
    ]
    return "\n\n".join(parts) + "\n"


def _files(name: str) -> str:
    rows = {
        f"{name}.fmu": "the FMU",
        "modelDescription.xml": "its description, as in the archive",
        "sources/": "its sources, as in the archive",
        "test_fmu.c`, `vectors.h": "a program that checks the sources",
        "Makefile": "`make test`; `make fmu` adds a library for the machine it runs on",
    }
    return "\n".join(
        [
            "## Files",
            "",
            "| file | what it is |",
            "|---|---|",
            *(f"| `{file}` | {what} |" for file, what in rows.items()),
        ]
    )


def _variables(model: Model) -> str:
    rows = [
        f"| `{v.name}` | {v.causality} | {v.unit} | {'' if v.start is None else f'{v.start:g}'} | {v.description} |"
        for v in model.variables
    ]
    return "\n".join(
        ["## Variables", "", "| name | causality | unit | start | what it is |", "|---|---|---|---|---|", *rows]
    )


def _notes(model: Model) -> str:
    viscous, dry = model.fastest
    notes = [
        "**Integration** (co-simulation): the classical Runge–Kutta method of fourth order. A communication step is "
        f"cut into the fewest equal parts of at most `solver.step` ({model.step:g} s) each; inputs are constant in it.",
        "**Model exchange**: the states are the positions, then the velocities. There are no events.",
        "**Limits**: there are no stops. Joints go on beyond their limits, motors beyond theirs; the importer has what "
        "stops them.",
        "**State**: it can be read, set and serialized, also between the steps of co-simulation.",
    ]
    if model.rubbing:
        notes.insert(
            1,
            "**Friction**: `viscous`·q̇ + (`coulomb` + (`static` − `coulomb`) / (1 + (q̇/`stribeck`)²)) · "
            "tanh(q̇/`friction.velocity`); without `static` or `stribeck` the dry part is `coulomb`. The sign changes "
            "smoothly: **no joint ever sticks**, it creeps where armdyn's simulator holds it. As given, "
            f"velocities decay by at most {viscous + dry / model.smoothing:.3g} per second (in random configurations), "
            f"and {model.step:g} s is short enough for that; with more friction, or a smaller "
            "`friction.velocity`, shorten `solver.step`.",
        )
    if model.pushed:
        notes.append("**Springs, offsets, ripples, friction with the load**: as the arm has them, not parameters.")
    if model.payload:
        where = f"the frame {line(model.frame)}" if model.frame else "the tool"
        notes.append(
            f"**Payload**: a body held at {where}; inertia about its centre of mass, in the same axes. An inertia "
            "without mass, or one that no body has, is refused with a message where initialization or event mode ends "
            "or the next step begins."
        )
    notes.append(
        "**Licence**: `fmi3PlatformTypes.h`, `fmi3FunctionTypes.h` and `fmi3Functions.h` are the Modelica "
        "Association's, under the two-clause BSD licence that stands in them."
    )
    return "\n".join(["## Notes", "", *(f"- {note}" for note in notes)])
