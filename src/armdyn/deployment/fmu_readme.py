"""The README of an FMU's folder."""

from __future__ import annotations

from collections.abc import Sequence

from armdyn.codegen.text.c import Package
from armdyn.codegen.text.names import identifier
from armdyn.deployment.fmu_model import FmuModel
from armdyn.deployment.readme import MANIFEST, line


def fmu_readme(model: FmuModel, package: Package, binaries: Sequence[str]) -> str:
    """The file's text; `binaries` are the libraries in the archive."""
    name = identifier(package.name)
    built = (
        f"It contains a binary for the platform on which it was generated, `{binaries[0]}`. To add one for another "
        "platform, run `make fmu` there."
        if binaries
        else "**It is a source-code FMU without a binary, because no C compiler was found, or none was used.** Run "
        "`make fmu` on a machine with one, or let your importer build it from `sources/` "
        "(`sources/buildDescription.xml`)."
    )
    parts = [
        f"# {line(package.name)}: forward dynamics as an FMU (FMI 3.0)",
        f"`{name}.fmu` supports co-simulation and model exchange. Its inputs are motor torques or forces, its outputs "
        f"joint positions, velocities and accelerations. {built}",
        "\n".join(line(text) for text in package.comment.splitlines()[:2]),
        _files(name),
        "## Build and test\n\n```console\n$ make test\n```\n\nThis builds the sources with a test program, which "
        "compares them with test vectors that armdyn computed independently, with its own kernels and simulator.",
        _variables(model),
        _notes(model),
    ]
    return "\n\n".join(parts) + "\n"


def _files(name: str) -> str:
    rows = {
        f"{name}.fmu": "the FMU",
        "modelDescription.xml": "the model description, a copy of the one in the FMU",
        "sources/": "the C sources, a copy of those in the FMU",
        "armdyn_test.c`, `armdyn_vectors.h": "test program and test vectors",
        "Makefile": "`make test` runs the test program; `make fmu` adds a binary for this machine to the FMU",
        "manifest.json": MANIFEST,
    }
    return "\n".join(
        [
            "## Files",
            "",
            "| file | contents |",
            "|---|---|",
            *(f"| `{file}` | {what} |" for file, what in rows.items()),
        ]
    )


def _variables(model: FmuModel) -> str:
    rows = [
        f"| `{v.name}` | {v.causality} | {v.unit} | {'' if v.start is None else f'{v.start:g}'} | {v.description} |"
        for v in model.variables
    ]
    return "\n".join(
        ["## Variables", "", "| name | causality | unit | start | description |", "|---|---|---|---|---|", *rows]
    )


def _notes(model: FmuModel) -> str:
    notes = [
        "**Integration** (co-simulation): the classical fourth-order Runge–Kutta method. A communication step is "
        "divided into the smallest number of equal integrator steps that are not longer than `solver.step` "
        f"({model.step:g} s); inputs are constant during a communication step. An integrator step is split at the "
        "instant at which a joint comes to rest or reaches a stop; breakaway takes place only at the beginning of "
        "an integrator step."
        + (f" The fastest rate due to viscous friction and springs, over random configurations, is {model.fastest:.3g} "
           "1/s; if you increase the friction considerably, reduce `solver.step`." if model.fastest else ""),
        "**Model exchange**: the states are the positions, then the velocities. Each joint has an event indicator and "
        "a discrete mode. Velocities may jump at an event, which `valuesOfContinuousStatesChanged` reports to the "
        "importer.",
        "**Motor limits**: the torques and forces are not limited; limit them in the importer if necessary.",
        "**FMU state**: it can be saved, restored and serialized, also between communication steps.",
    ]  # fmt: skip
    if model.stops:
        notes.insert(
            2,
            "**Stops**: joints stop at their limits, and the impact acts on the whole arm; with `stops.active` = 0 the "
            "limits are ignored. An initial position beyond a limit is an error unless `stops.active` = 0. A rebound "
            "that would last less than `solver.step` is suppressed. The motion is the same as that of "
            "`armdyn.simulate(..., limits=RESTITUTION)`.",
        )
    if model.rubbing:
        notes.insert(
            1,
            "**Friction**: viscous friction `viscous`·q̇, and dry friction with sticking. While a joint slides, its dry "
            f"friction is `coulomb` + (`static` − `coulomb`) / (1 + (q̇/`stribeck`){_exponent(model)}), or `coulomb` if "
            "`stribeck` is 0. A joint at rest sticks until the force on it exceeds `static`, or `coulomb` if that is "
            "larger and `stribeck` is 0. `mode` shows which joints stick. armdyn's simulator has the same friction "
            "model, and co-simulation takes the same integrator steps.",
        )
    if model.pushed:
        notes.append(
            "**Springs, torque offsets, torque ripple, load-dependent friction**: included with the values of the "
            "arm; they are not parameters of the FMU."
        )
    if model.payload:
        where = f"the frame {line(model.frame)}" if model.frame else "the tool"
        notes.append(
            f"**Payload**: a rigid body attached to {where}; its inertia is about its centre of mass, in the axes "
            "of that frame. A physically impossible payload, such as an inertia without mass, is reported as an "
            "error at the end of initialization or event mode, or at the beginning of the next step."
        )
    notes.append(
        "**Licence**: `fmi3PlatformTypes.h`, `fmi3FunctionTypes.h` and `fmi3Functions.h` are copyright of the Modelica "
        "Association and are under the two-clause BSD licence printed in them."
    )
    return "\n".join(["## Notes", "", *(f"- {note}" for note in notes)])


def _exponent(model: FmuModel) -> str:
    """The exponent of the velocity in the Stribeck curves, as a superscript where possible."""
    found = [joint.forces.stribeck_exponent for joint, _, _ in model.rubbing]
    if len(set(found)) > 1:
        return f"ⁿ, n = {', '.join(map(str, found))} joint by joint"
    return {2: "²", 4: "⁴"}.get(found[0], f"^{found[0]}")
