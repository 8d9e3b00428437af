"""Sine and cosine in single precision, the same polynomials in every device's text, for every finite angle.

No built-in sine is used: WGSL allows its own an error of 2⁻¹¹, and CUDA's and OpenCL's differ from device to device.
Up to the limit of a reduction the assignments are those of `codegen.sines`. WGSL lets a compiler reassociate, which
would add the parts of π/2 up again: behind each subtraction the bits are combined with a zero that no compiler sees.
Beyond the limit every finite number is reduced exactly in integers (Payne & Hanek): 32 bits of x times those 96 bits of
1/2π that matter. The result is within 3 ulp there (tests/bridges/test_gpu.py, tests/test_gpu_text.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from armdyn.codegen.sines import ANYWHERE, LANGUAGES, AngleReduction, SineLanguage, SineStep, steps

ONE_OVER_TWO_PI = (0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770, 0x36D8A566, 0x4F10E410, 0x7F9458EA)  # 32 bits each
QUARTER = float(np.float32(math.pi / 2))

_WGSL = """\
fn armdyn_high(a: u32, b: u32) -> u32 {{
  let a0 = a & 0xffffu; let a1 = a >> 16u;
  let b0 = b & 0xffffu; let b1 = b >> 16u;
  let middle = a1 * b0 + ((a0 * b0) >> 16u);
  return a1 * b1 + (middle >> 16u) + ((a0 * b1 + (middle & 0xffffu)) >> 16u);
}}

fn armdyn_far(x: f32) -> vec2<f32> {{
  let bits = bitcast<u32>(x);
  let exponent = ((bits >> 23u) & 0xffu) - 126u;
  let whole = ((bits & 0x7fffffu) | 0x800000u) << 8u;
  var table = array<u32, 8>(0u, {table});
  let word = exponent >> 5u;
  let shift = exponent & 31u;
  var high = table[word];
  var middle = table[word + 1u];
  var low = table[word + 2u];
  if (shift != 0u) {{
    high = (high << shift) | (middle >> (32u - shift));
    middle = (middle << shift) | (low >> (32u - shift));
    low = (low << shift) | (table[word + 3u] >> (32u - shift));
  }}
  let carried = armdyn_high(whole, low);
  var lower = whole * middle + carried;
  var upper = armdyn_high(whole, middle) + whole * high + select(0u, 1u, lower < carried);
  var quadrant = upper >> 30u;
  upper = upper & 0x3fffffffu;
  var sign = 1.0f;
  if ((upper & 0x20000000u) != 0u) {{
    quadrant = quadrant + 1u;
    upper = 0x40000000u - upper - select(1u, 0u, lower == 0u);
    lower = 0u - lower;
    sign = -1.0f;
  }}
  let r = (f32(upper) * 2.0f + f32(lower) * {lower_scale}) * {upper_scale} * sign;
  return select(vec2<f32>(r, f32(quadrant & 3u)), vec2<f32>(-r, f32((0u - quadrant) & 3u)), (bits >> 31u) != 0u);
}}

fn armdyn_hidden(x: f32, zero: u32) -> f32 {{
  return bitcast<f32>(bitcast<u32>(x) ^ zero);
}}

/* Sine and cosine. */
fn armdyn_sincos(angle: f32, zero: u32) -> vec2<f32> {{
  var x = angle;
  var quadrant = 0u;
  if (!(abs(angle) <= {limit})) {{
    let far = armdyn_far(angle);
    x = far.x;
    quadrant = u32(far.y);
    if ((bitcast<u32>(angle) & 0x7f800000u) == 0x7f800000u) {{ x = angle - angle; }}
  }}
{assignments}
  let s = select(sine, cosine, (quadrant & 1u) != 0u);
  let c = select(cosine, sine, (quadrant & 1u) != 0u);
  return vec2<f32>(select(s, -s, (quadrant & 2u) != 0u), select(c, -c, ((quadrant + 1u) & 2u) != 0u));
}}
"""

_C = """\
typedef struct {{ float s, c; }} armdyn_pair;

/* The rest of a large angle after whole quarter turns, in integers: Payne and Hanek. */
ARMDYN_FAR float armdyn_far(float x, unsigned int *quadrant)
{{
    const unsigned int table[8] = {{0u, {table}}};
    const unsigned int bits = ARMDYN_BITS(x);
    const unsigned int exponent = ((bits >> 23) & 0xffu) - 126u;
    const unsigned int whole = ((bits & 0x7fffffu) | 0x800000u) << 8;
    const unsigned int word = exponent >> 5, shift = exponent & 31u;
    unsigned int high = table[word], middle = table[word + 1], low = table[word + 2];
    unsigned int carried, lower, upper;
    float r, sign = 1.0f;
    if ((bits & 0x7f800000u) == 0x7f800000u) {{ *quadrant = 0u; return x - x; }}
    if (shift) {{
        high = (high << shift) | (middle >> (32u - shift));
        middle = (middle << shift) | (low >> (32u - shift));
        low = (low << shift) | (table[word + 3] >> (32u - shift));
    }}
    carried = ARMDYN_HIGH(whole, low);
    lower = whole * middle + carried;
    upper = ARMDYN_HIGH(whole, middle) + whole * high + (lower < carried);
    *quadrant = upper >> 30;
    upper &= 0x3fffffffu;
    if (upper & 0x20000000u) {{
        *quadrant += 1u;
        upper = 0x40000000u - upper - (lower != 0u);
        lower = 0u - lower;
        sign = -1.0f;
    }}
    r = ((float)upper * 2.0f + (float)lower * {lower_scale}) * {upper_scale} * sign;
    if (bits >> 31) {{ *quadrant = 0u - *quadrant; return -r; }}
    return r;
}}

/* Sine and cosine. */
ARMDYN_INLINE armdyn_pair armdyn_sincos(float angle)
{{
    unsigned int quadrant = 0u;
    const float x = fabsf(angle) <= {limit} ? angle : armdyn_far(angle, &quadrant);
{assignments}
    armdyn_pair result;
    result.s = (quadrant & 1u) ? cosine : sine;
    result.c = (quadrant & 1u) ? sine : cosine;
    if (quadrant & 2u) result.s = -result.s;
    if ((quadrant + 1u) & 2u) result.c = -result.c;
    return result;
}}
"""


def literal(x: float) -> str:
    """A single-precision literal in WGSL, CUDA and OpenCL: the shortest decimal that rounds to the same number."""
    return f"{float(str(np.float32(x)))!r}f"


def _filled(
    template: str, language: SineLanguage, reduction: AngleReduction, hide: Callable[[SineStep, str], str], by: str
) -> str:
    lines = []
    for step in steps(reduction):
        arguments = [language.literal(a) if isinstance(a, float) else a for a in step.arguments]
        text = hide(step, language.operations[step.operation].format(*arguments))
        lines.append(by + (language.integer if step.integer else language.number).format(step.name, text))
    return template.format(
        limit=literal(reduction.limit),
        upper_scale=literal(QUARTER * 2.0**-31),
        lower_scale=literal(2.0**-31),
        table=", ".join(f"{word:#010x}u" for word in ONE_OVER_TWO_PI),
        assignments="\n".join(lines),
    )


def wgsl() -> str:
    """`armdyn_sincos(x, zero)` in WGSL; `zero` is 0, read from a buffer."""

    def hidden(step: SineStep, text: str) -> str:
        return f"armdyn_hidden({text}, zero)" if step.name in ("first", "upper", "rest") else text

    return _filled(_WGSL, LANGUAGES["wgsl"], ANYWHERE, hidden, "  ")


def c_like(name: str, reduction: AngleReduction) -> str:
    """`armdyn_sincos(x)` in one of the C-like `LANGUAGES`.

    The macros ARMDYN_FAR, ARMDYN_INLINE, ARMDYN_BITS and ARMDYN_HIGH come from the language's own text. With a
    reduction that needs no fused multiply–add, the compiler may choose: a device without it would emulate it slowly.
    """
    language = LANGUAGES[name]
    if not reduction.fused:
        language = replace(language, operations={**language.operations, "fma": "{0} * {1} + {2}"})
    return _filled(_C, language, reduction, lambda step, text: text, "    ")
