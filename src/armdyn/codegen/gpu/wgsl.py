"""Programs as compute shaders in WGSL, the language of WebGPU: one thread per configuration.

Arrays lie in storage buffers, in C order. `call` says where the entries of each configuration begin, so that arrays
broadcast without copies: {count, threads per row of the grid, zero, number of batch axes, their
lengths, then for every array its offset and its step along every axis}.
"""

from __future__ import annotations

import re
from dataclasses import replace

from armdyn.codegen.gpu import trig
from armdyn.codegen.gpu.order import few_live
from armdyn.codegen.gpu.statements import KernelLanguage, statements
from armdyn.graph.program import Port, Program

WORKGROUP = 64  # threads
HEAD = 4  # numbers in front of the lengths of the axes in `call`

LANGUAGE = KernelLanguage(
    declare="  let {name} = {value};",
    pair="  let {name} = armdyn_sincos({angle}, zero);",
    sine=".x",
    cosine=".y",
    load="in_{port}[at_in_{port} + {entry}u]",
    store="  out_{port}[at_out_{port} + {entry}u] = {value};",
    functions={"sqrt": "sqrt({})", "sign": "sign({})", "positive": "armdyn_positive({}, zero)"},
)

FRAME = """\
fn armdyn_positive(x: f32, zero: u32) -> f32 {{
  return select(bitcast<f32>(0x7fc00000u ^ zero), 1.0f, x > 0.0f);
}}

@group(0) @binding(0) var<storage, read> call: array<u32>;
{bindings}

fn place(port: u32, row: u32) -> u32 {{
  let axes = call[3];
  let steps = {head}u + axes + port * (axes + 1u);
  var at = call[steps];
  var rest = row;
  for (var axis = axes; axis > 0u; axis = axis - 1u) {{
    let size = call[{last}u + axis];
    at = at + (rest % size) * call[steps + axis];
    rest = rest / size;
  }}
  return at;
}}

@compute @workgroup_size({workgroup})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
  let thread = id.x + id.y * call[1];
  if (thread >= call[0]) {{ return; }}
  let zero = call[2];
{places}
{body}
}}
"""


ROLLOUT = ("in_q", "in_qd", "in_u", "in_clock", "out_q", "out_qd")  # the buffers of a rollout, in this order
IN_A_LOOP = replace(LANGUAGE, load="{port}_{entry}", store="    let next_{port}_{entry} = {value};")

LOOP = """\
{states}
  let h_0 = in_clock[2];
  let steps = u32(in_clock[0]);
  let every = u32(in_clock[1]);
  for (var k = 0u; k < steps; k = k + 1u) {{
{at_u}
{body}
{advance}
    if ((k + 1u) % every == 0u) {{
      let row = (k + 1u) / every - 1u;
{stores}
    }}
  }}"""


def ports(program: Program) -> list[tuple[str, Port, str]]:
    """The buffers in the order of their bindings, without empty ones: name in the text, port, access."""
    sides = (("in", program.inputs, "read"), ("out", program.outputs, "read_write"))
    return [(f"{side}_{port.name}", port, access) for side, of, access in sides for port in of if port.nodes]


def source(program: Program) -> str:
    """The text of a compute shader."""
    bound = ports(program)
    body = statements(program, LANGUAGE, few_live(program))
    return _framed([(name, access) for name, _, access in bound], "\n".join(body))


def rollout(step: Program) -> tuple[list[str], str]:
    """A shader that makes many steps per thread, and the names of its buffers.

    `step` computes q1 and qd1 from q, qd, u and h; `armdyn.codegen.gpu.webgpu.rollout` says what the buffers hold.
    """
    q, qd, u, _ = step.inputs
    names = [name for name in ROLLOUT if name != "in_u" or u.nodes]
    entries = [(port.name, k) for port in (q, qd) for k in range(len(port.nodes))]
    sizes = {port.name: len(port.nodes) for port in (q, qd)}
    inputs = re.compile(r"\bu_(\d+)\b")
    body = "\n".join(statements(step, IN_A_LOOP, few_live(step)))
    text = LOOP.format(
        states="\n".join(f"  var {port}_{k} = in_{port}[at_in_{port} + {k}u];" for port, k in entries),
        at_u="    let at_u = at_in_u + k * u32(in_clock[3]);" if u.nodes else "",
        body=inputs.sub(r"in_u[at_u + \1u]", body),
        advance="\n".join(f"    {port}_{k} = next_{port}1_{k};" for port, k in entries),
        stores="\n".join(
            f"      out_{port}[at_out_{port} + row * {sizes[port]}u + {k}u] = {port}_{k};" for port, k in entries
        ),
    )
    return names, _framed([(name, "read_write" if name.startswith("out_") else "read") for name in names], text)


def _framed(bound: list[tuple[str, str]], body: str) -> str:
    """A whole shader: its buffers with their access, and the body of a thread."""
    bindings = [
        f"@group(0) @binding({k}) var<storage, {access}> {name}: array<f32>;"
        for k, (name, access) in enumerate(bound, 1)
    ]
    places = [f"  let at_{name} = place({k}u, thread);" for k, (name, _) in enumerate(bound)]
    frame = FRAME.format(
        bindings="\n".join(bindings),
        places="\n".join(places),
        body=body,
        head=HEAD,
        last=HEAD - 1,
        workgroup=WORKGROUP,
    )
    return f"{trig.wgsl()}\n{frame}"
