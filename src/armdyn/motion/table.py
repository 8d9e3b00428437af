"""A motion as a C header: a table over time and a function that reads it, for a controller without this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.codegen.text.names import identifier

if TYPE_CHECKING:
    from armdyn.motion.time_optimal import TimeOptimal

FUNCTION = """
/* Positions, velocities and motor torques at time t (s), held before 0 and after {name}_duration.
   Positions are cubic in time between the table's times, velocities their derivative, torques linear. */
static inline void {name}_at(double t, double q[{n}], double qd[{n}], double tau[{n}])
{{
  int low = 0, high = {count} - 1, i;
  double h, w;
  if (!(t > 0.0)) t = 0.0; /* also NaN */
  if (t > {name}_duration) t = {name}_duration;
  while (high - low > 1) {{
    const int middle = (low + high) / 2;
    if ({name}_t[middle] <= t) low = middle; else high = middle;
  }}
  h = {name}_t[high] - {name}_t[low];
  w = (t - {name}_t[low]) / h;
  for (i = 0; i < {n}; i++) {{
    const double a = {name}_q[low][i], b = {name}_q[high][i];
    const double u = h * {name}_qd[low][i], v = h * {name}_qd[high][i];
    const double second = 3.0 * (b - a) - 2.0 * u - v, third = u + v - 2.0 * (b - a);
    q[i] = a + w * (u + w * (second + w * third));
    qd[i] = (u + w * (2.0 * second + w * 3.0 * third)) / h;
    tau[i] = {name}_tau[low][i] + w * ({name}_tau[high][i] - {name}_tau[low][i]);
  }}
}}
"""


def header(motion: TimeOptimal, stem: str) -> str:
    """The header; names in it begin with the file's."""
    name, n, count = identifier(stem), motion.arm.n, len(motion.t)
    joints = ", ".join(motion.arm.joint_names).replace("*/", "* /")
    parts = [
        f"/* The fastest motion of {motion.arm.name} along a path: {motion.duration:.6g} s.\n"
        f"   Joints: {joints}; rad or m, per second, N m or N. C99, no library. */",
        f"#ifndef {name.upper()}_H\n#define {name.upper()}_H\n",
        f"static const double {name}_duration = {motion.duration!r};",
        f"static const double {name}_t[{count}] = {{{_row(motion.t)}}};",
    ]
    for key in ("q", "qd", "tau"):
        rows = ",\n  ".join(f"{{{_row(row)}}}" for row in getattr(motion, key))
        parts.append(f"static const double {name}_{key}[{count}][{n}] = {{\n  {rows}}};")
    parts.append(FUNCTION.format(name=name, n=n, count=count))
    return "\n".join([*parts, "#endif", ""])


def _row(values: Any) -> str:
    return ", ".join(repr(x) for x in np.asarray(values, float).tolist())
