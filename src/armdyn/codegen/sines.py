"""Sine and cosine in single precision as a list of assignments, for code in any language.

`steps` gives the assignments, `written` their text in a language (`LANGUAGES`: C99, CUDA, OpenCL C, WGSL). There are
two reductions to ±π/4, because most languages do not promise that a·b + c is rounded once:

- `FUSED`: three parts of π/2 of 24 bits each, where it is rounded once (C's fmaf, CUDA, OpenCL's fma on a device that
  has it). Largest error 1.54 ulp over every float up to 1e5 in magnitude.
- `ANYWHERE`: two parts whose products with the number of quarter turns are exact, fused or not, and a rest that is
  added to the sine after its polynomial, which saves a rounding. Largest error 1.73 ulp over every float up to 3200 in
  magnitude (509 turns), with and without fused multiply-adds.

Both were measured over all of these floats above 2⁻³¹; `tests/test_trig.py` repeats it on a part. Beyond its `limit` a
reduction is wrong, and so it is for what is not finite: the caller has to take another path, such as the language's own
functions. In single precision an angle of 3200 is itself only known to 1.2e-4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from armdyn.codegen.llvm.trig import SINGLE

TWO_OVER_PI_SINGLE = float.fromhex("0x1.45f306p-1")


@dataclass(frozen=True)
class AngleReduction:
    """The parts of π/2, and the largest magnitude of an angle for which their use keeps to 2 ulp."""

    parts: tuple[float, ...]
    limit: float
    fused: bool  # whether the language's fma must round once


FUSED = AngleReduction(SINGLE.half_pi, 1e5, fused=True)
ANYWHERE = AngleReduction(
    tuple(map(float.fromhex, ("0x1.922p+0", "-0x1.2afp-18", "0x1.0b48p-34", "-0x1.ee59dap-50"))), 3200.0, fused=False
)


@dataclass(frozen=True)
class SineStep:
    """`name` = `operation` of the arguments: earlier names, "x" for the angle, or constants.

    The operations are those of `graph.node` and: `nearest` integer as a number, `whole` (a number to an integer),
    `after` (an integer plus 1), `turned(k, a, b)`: a, b, -a, -b after k = 0, 1, 2, 3 quarter turns.
    """

    name: str
    operation: str
    arguments: tuple[str | float, ...]

    @property
    def integer(self) -> bool:
        """Whether the result is an integer."""
        return self.operation in ("whole", "after")


def steps(reduction: AngleReduction) -> tuple[SineStep, ...]:
    """The assignments from the angle "x" to "sine" and "cosine"."""
    made = [
        SineStep("turns", "mul", ("x", TWO_OVER_PI_SINGLE)),
        SineStep("quarters", "nearest", ("turns",)),
        SineStep("k", "whole", ("quarters",)),
        SineStep("k_next", "after", ("k",)),
    ]
    made += _fused(reduction) if reduction.fused else _anywhere(reduction)
    made.append(SineStep("z", "mul", ("r", "r")))
    made += _polynomial("s", SINGLE.sine)
    made.append(SineStep("z_r", "mul", ("z", "r")))
    if reduction.fused:
        made.append(SineStep("odd", "fma", ("z_r", "s0", "r")))
    else:
        made += [SineStep("curved", "fma", ("z_r", "s0", "rest")), SineStep("odd", "add", ("upper", "curved"))]
    made += _polynomial("c", SINGLE.cosine)
    made.append(SineStep("sine", "turned", ("k", "odd", "c0")))
    return (*made, SineStep("cosine", "turned", ("k_next", "odd", "c0")))


def _fused(reduction: AngleReduction) -> list[SineStep]:
    """The reduced angle r = x - quarters·π/2, one part of π/2 after another."""
    names = ["x", "first", "second", "r"]
    return [
        SineStep(after, "fma", ("quarters", -part, before))
        for before, after, part in zip(names, names[1:], reduction.parts, strict=False)
    ]


def _anywhere(reduction: AngleReduction) -> list[SineStep]:
    """The reduced angle r = upper + rest: products with the first two parts of π/2 are exact."""
    first, second, third, fourth = reduction.parts
    return [
        SineStep("first", "fma", ("quarters", -first, "x")),
        SineStep("upper", "fma", ("quarters", -second, "first")),
        SineStep("last", "mul", ("quarters", -fourth)),
        SineStep("rest", "fma", ("quarters", -third, "last")),
        SineStep("r", "add", ("upper", "rest")),
    ]


def _polynomial(name: str, coefficients: tuple[float, ...]) -> list[SineStep]:
    """Horner's scheme in z; the value is `name`0."""
    made: list[SineStep] = []
    value = coefficients[-1]
    for power in reversed(range(len(coefficients) - 1)):
        argument: str | float = f"{name}{power + 1}" if made else value
        made.append(SineStep(f"{name}{power}", "fma", (argument, "z", coefficients[power])))
    return made


@dataclass(frozen=True)
class SineLanguage:
    """How a language declares a number and an integer, and writes a literal and each operation."""

    number: str
    integer: str
    literal: Callable[[float], str]
    operations: Mapping[str, str]  # templates in which {0}, {1}, … are the arguments


def _hexadecimal(value: float) -> str:
    """A literal of single precision, exact."""
    digits, exponent = value.hex().split("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}f"


def _of_c(fma: str, nearest: str) -> SineLanguage:
    return SineLanguage(
        "const float {0} = {1};",
        "const int {0} = {1};",
        _hexadecimal,
        {
            "mul": "{0} * {1}",
            "add": "{0} + {1}",
            "fma": f"{fma}({{0}}, {{1}}, {{2}})",
            "nearest": f"{nearest}({{0}})",
            "whole": "(int){0}",
            "after": "{0} + 1",
            "turned": "({0} & 2) ? (({0} & 1) ? -{2} : -{1}) : (({0} & 1) ? {2} : {1})",
        },
    )


LANGUAGES: Mapping[str, SineLanguage] = {
    "c": _of_c("fmaf", "rintf"),
    "cuda": _of_c("fmaf", "rintf"),
    "opencl": _of_c("fma", "rint"),
    "wgsl": SineLanguage(
        "let {0} = {1};",
        "let {0} = {1};",
        _hexadecimal,
        {
            "mul": "{0} * {1}",
            "add": "{0} + {1}",
            "fma": "fma({0}, {1}, {2})",
            "nearest": "round({0})",
            "whole": "i32({0})",
            "after": "{0} + 1",
            "turned": "select(1.0, -1.0, ({0} & 2) != 0) * select({1}, {2}, ({0} & 1) != 0)",
        },
    ),
}


def written(language: SineLanguage, reduction: AngleReduction = ANYWHERE) -> list[str]:
    """The assignments as text: from a number `x` to `sine` and `cosine`, within its `limit`."""
    lines = []
    for step in steps(reduction):
        arguments = [language.literal(a) if isinstance(a, float) else a for a in step.arguments]
        text = language.operations[step.operation].format(*arguments)
        lines.append((language.integer if step.integer else language.number).format(step.name, text))
    return lines
