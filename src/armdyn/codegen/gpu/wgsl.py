"""Programs as compute shaders in WGSL, the language of WebGPU: one thread per configuration.

Arrays lie in storage buffers, in C order. `call` says where the entries of each configuration begin, so that arrays
broadcast without copies: {count, threads per row of the grid, zero, number of batch axes, their
lengths, then for every array its offset and its step along every axis}.
"""

from __future__ import annotations

from armdyn.codegen.gpu import trig
from armdyn.codegen.gpu.order import few_live
from armdyn.codegen.gpu.statements import Language, statements
from armdyn.graph.program import Port, Program

WORKGROUP = 64  # threads
HEAD = 4  # numbers in front of the lengths of the axes in `call`

LANGUAGE = Language(
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


def ports(program: Program) -> list[tuple[str, Port, str]]:
    """The buffers in the order of their bindings, without empty ones: name in the text, port, access."""
    sides = (("in", program.inputs, "read"), ("out", program.outputs, "read_write"))
    return [(f"{side}_{port.name}", port, access) for side, of, access in sides for port in of if port.nodes]


def source(program: Program) -> str:
    """The text of a compute shader."""
    bound = ports(program)
    bindings = [
        f"@group(0) @binding({k}) var<storage, {access}> {name}: array<f32>;"
        for k, (name, _, access) in enumerate(bound, 1)
    ]
    places = [f"  let at_{name} = place({k}u, thread);" for k, (name, _, _) in enumerate(bound)]
    frame = FRAME.format(
        bindings="\n".join(bindings),
        places="\n".join(places),
        body="\n".join(statements(program, LANGUAGE, few_live(program))),
        head=HEAD,
        last=HEAD - 1,
        workgroup=WORKGROUP,
    )
    return f"{trig.wgsl()}\n{frame}"
