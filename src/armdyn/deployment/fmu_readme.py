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
    notes = [
        "**Integration** (co-simulation): the classical Runge–Kutta method of fourth order. A communication step is "
        f"cut into the fewest equal parts of at most `solver.step` ({model.step:g} s) each; inputs are constant in it. "
        "Where a joint comes to rest or meets its stop a part is cut once more, at that moment; a joint that breaks "
        "away does so at the beginning of a part."
        + (f" Viscous friction and springs change velocities by at most {model.fastest:.3g} per second (in random "
           "configurations); with much more of them, shorten `solver.step`." if model.fastest else ""),
        "**Model exchange**: the states are the positions, then the velocities. Each joint has an event indicator and "
        "a discrete mode; at an event velocities may change (importers see that in `valuesOfContinuousStatesChanged`).",
        "**Motors** have no limits; the importer has what bounds their forces.",
        "**State**: it can be read, set and serialized, also between the steps of co-simulation.",
    ]  # fmt: skip
    if model.stops:
        notes.insert(
            2,
            "**Stops**: joints stop at their limits, and the impact goes through the whole arm; `stops.active` = 0 "
            "lets them go on beyond. A start beyond a limit is refused unless it is 0. A rebound that would end within "
            "`solver.step` is none. Motions are those of `armdyn.simulate(..., limits=RESTITUTION)`.",
        )
    if model.rubbing:
        notes.insert(
            1,
            "**Friction**: `viscous`·q̇, and dry friction that sticks. Sliding, it is `coulomb` + (`static` − "
            f"`coulomb`) / (1 + (q̇/`stribeck`){_exponent(model)}), or `coulomb` without `stribeck`; a joint at "
            "rest is held by any force up to `static`, or `coulomb` where that is more and there is no `stribeck`. "
            "`mode` says which joints are held. It is the law of armdyn's simulator, and co-simulation takes the "
            "same steps.",
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


def _exponent(model: Model) -> str:
    """That of the speed in the Stribeck curves, as one writes it."""
    found = [joint.forces.stribeck_exponent for joint, _, _ in model.rubbing]
    if len(set(found)) > 1:
        return f"ⁿ, n = {', '.join(map(str, found))} joint by joint"
    return {2: "²", 4: "⁴"}.get(found[0], f"^{found[0]}")
