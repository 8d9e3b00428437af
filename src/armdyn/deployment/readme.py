"""The README of a deployed folder: its files, the functions with shapes, units and costs, and how to call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from armdyn.codegen.text.c import Function, Package, out_name
from armdyn.graph import Port
from armdyn.html import visible
from armdyn.options import DEPLOY_TARGETS

HELD = (
    "A payload is everywhere the struct `{struct}`: mass in kg, centre of mass in the tool frame in m, and inertia "
    "about it in the tool's axes in kg m², in the order xx, yy, zz, xy, xz, yz (zeros: a point mass). To attach one to "
    "the tool, here 1 kg with its centre of mass at z = 0.1 m, compute new parameters as follows and pass `{mine}` to "
    "every call from then on. To remove the payload again, call the same function with `{mine}` as the parameters and "
    "with the negative mass and inertia."
)
MANIFEST = "hashes of the generated files, with which the next run replaces them, and the result of the test"


@dataclass(frozen=True)
class Readme:
    """The contents of the README of a target."""

    package: Package
    language: str
    files: Mapping[str, str]  # name -> what it is
    signatures: Mapping[str, str]  # function -> how it is declared
    call: str  # an example, as Markdown
    more: str = ""  # further sections, as Markdown
    fence: str = "c"  # the language of the declarations, for Markdown


def readme(about: Readme) -> str:
    """The text of the README."""
    package = about.package
    title = f"# {line(package.name)}: dynamics in {about.language}"
    intro = [line(text) for text in package.comment.splitlines()[1:]]
    parts = [
        title,
        "\n".join([line(package.comment.splitlines()[0]), *intro]),
        _files(about.files),
        "## Build and test\n\n```console\n$ make test\n```",
        _functions(about),
        f"## Call\n\n{about.call}",
        *([_parameters(package)] if package.parameters else []),
        *([about.more] if about.more else []),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def line(text: str) -> str:
    """Untrusted text as one line of Markdown, with Markdown syntax and control characters escaped."""
    shown = visible(" ".join(text.split()))
    for mark in "\\`*_[]<>|":
        shown = shown.replace(mark, f"\\{mark}")
    return shown


def listed_files(what: Mapping[str, str], contents: Iterable[str], in_folders: str) -> list[str]:
    """The section on the files of a pipeline: those of `what` that it wrote, and the folders of code.

    `in_folders` says of these folders what else there is to say.
    """
    names = set(contents) | {"manifest.json"}
    files = {name: text for name, text in what.items() if name in names}
    folders = sorted({name.split("/")[0] for name in names if "/" in name})
    code = {f"{name}/": f"{DEPLOY_TARGETS[name][1]}; {in_folders}" for name in folders}
    return [_table({**files, **code}), ""]


def _files(files: Mapping[str, str]) -> str:
    return _table({**files, "manifest.json": MANIFEST})


def _table(files: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {what} |" for name, what in files.items()]
    return "\n".join(["## Files", "", "| file | contents |", "|---|---|", *rows])


def _functions(about: Readme) -> str:
    heads = [
        "## Functions",
        "",
        "Every function is straight-line code without loops, recursion or memory allocation. Matrices are stored in "
        "row-major order. Operation counts: M multiplications, A additions, D divisions and square roots, T sines "
        "and cosines.",
        "",
        "| function | inputs | outputs | operations |",
        "|---|---|---|---|",
    ]
    rows = [_row(key, function) for key, function in about.package.functions.items()]
    declared = [f"```{about.fence}", *(f"{text};" for text in about.signatures.values()), "```"]
    notes = [
        f"- `{key}`: {line(function.comment.splitlines()[0])}" for key, function in about.package.functions.items()
    ]
    return "\n".join([*heads, *rows, "", *declared, "", *notes])


def _row(key: str, function: Function) -> str:
    program, ops = function.program, function.program.operations
    ins = ", ".join(_port(port, port.name, function) for port in program.inputs)
    outs = ", ".join(_port(port, out_name(port, program), function) for port in program.outputs)
    return f"| `{key}` | {ins} | {outs} | {ops.mul}M {ops.add}A {ops.div}D {ops.trig}T |"


def _port(port: Port, label: str, function: Function) -> str:
    shape = "×".join(map(str, port.shape)) or "1"
    unit = function.units.get(port.name, "")
    return f"`{label}` {shape}{f' [{unit}]' if unit else ''}"


def _parameters(package: Package) -> str:
    rows = [f"| {k} | `{name}` | {value:.9g} |" for k, (name, value) in enumerate(package.parameters)]
    text = (
        "The minimal parameters of the arm, computed from its model file, in SI units and in the order of the array "
        "`parameters`. If you have better values, such as identified ones, pass those instead."
    )
    return "\n".join(["## Parameters", "", text, "", "| index | name | value |", "|---|---|---|", *rows])
