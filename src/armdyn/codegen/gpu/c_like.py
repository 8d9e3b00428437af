"""Programs as CUDA and OpenCL C: device functions of arrays with any strides, and kernels over a batch.

Both texts also compile for the CPU, where a loop takes the place of the device's threads: they are tested without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from string import Template

from armdyn.codegen.gpu import trig
from armdyn.codegen.gpu.order import few_live, most_live
from armdyn.codegen.gpu.statements import KernelLanguage, statements
from armdyn.codegen.sines import ANYWHERE, FUSED
from armdyn.graph.program import Program, StagedProgram

CUDA_HEAD = """\
#ifdef __CUDACC__
#define ARMDYN_FAR static __device__ __noinline__
#define ARMDYN_INLINE static __device__ __forceinline__
#define ARMDYN_ROLLED _Pragma("unroll 1")
#define ARMDYN_KERNEL extern "C" __global__ __launch_bounds__(128)
#define ARMDYN_BITS(x) __float_as_uint(x)
#define ARMDYN_NAN __int_as_float(0x7fc00000)
#define ARMDYN_HIGH(a, b) __umulhi(a, b)
#else /* on the CPU: a loop in place of the threads */
#include <math.h>
#include <string.h>
#define ARMDYN_FAR static
#define ARMDYN_INLINE static inline
#define ARMDYN_ROLLED
#define ARMDYN_KERNEL static
#define ARMDYN_NAN NAN
#define ARMDYN_HIGH(a, b) ((unsigned int)(((unsigned long long)(a) * (b)) >> 32))
#define __restrict__
typedef int cudaError_t;
typedef void *cudaStream_t;
static inline unsigned int ARMDYN_BITS(float x) { unsigned int bits; memcpy(&bits, &x, sizeof bits); return bits; }
static struct { unsigned int x; } gridDim, blockDim, blockIdx, threadIdx;
#endif
"""

OPENCL_HEAD = """\
#ifdef __OPENCL_VERSION__
#define ARMDYN_FAR static
#define ARMDYN_INLINE static inline
#define ARMDYN_ROLLED
#define ARMDYN_KERNEL __kernel
#define ARMDYN_BITS(x) as_uint(x)
#define ARMDYN_NAN NAN
#define ARMDYN_HIGH(a, b) mul_hi((uint)(a), (uint)(b))
#define fabsf fabs
#define sqrtf sqrt
#else /* on the CPU: a loop in place of the threads */
#include <math.h>
#include <string.h>
#define ARMDYN_FAR static
#define ARMDYN_INLINE static inline
#define ARMDYN_ROLLED
#define ARMDYN_KERNEL static
#define ARMDYN_NAN NAN
#define ARMDYN_HIGH(a, b) ((unsigned int)(((unsigned long long)(a) * (b)) >> 32))
#define __global
#define rint rintf
static inline unsigned int ARMDYN_BITS(float x) { unsigned int bits; memcpy(&bits, &x, sizeof bits); return bits; }
static long armdyn_thread, armdyn_threads = 1;
#define get_global_id(axis) armdyn_thread
#define get_global_size(axis) armdyn_threads
#endif
"""

FUNCTION = Template("""\
$doc
ARMDYN_INLINE void ${name}($arguments)
{
$body
}

ARMDYN_KERNEL void ${name}_batch($batch)
{
    $long row;
    for (row = $first; row < count; row += $threads)
        ${name}($passed);
}
""")

LAUNCHER = Template("""\
/* ${name} of `count` configurations, in arrays on the device; returns before they are computed. */
static inline cudaError_t ${name}_launch($batch, cudaStream_t stream)
{
    const unsigned int threads = 128;
    const long long groups = (count + threads - 1) / threads;
    const unsigned int blocks = (unsigned int)(groups < 1048576 ? groups : 1048576);
#ifdef __CUDACC__
    if (blocks) ${name}_batch<<<blocks, threads, 0, stream>>>($names);
    return cudaGetLastError();
#else
    (void)stream;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) ${name}_batch($names);
    return 0;
#endif
}
""")


@dataclass(frozen=True)
class Dialect:
    """What differs between CUDA and OpenCL C."""

    head: str
    trig: str
    space: str  # address space of arrays
    restrict: str
    long: str  # an integer of 64 bits
    first: str  # the number of this thread
    threads: str
    launcher: bool


CUDA = Dialect(
    CUDA_HEAD,
    trig.c_like("cuda", FUSED),
    "",
    "__restrict__ ",
    "long long",
    "blockIdx.x * (long long)blockDim.x + threadIdx.x",
    "gridDim.x * (long long)blockDim.x",
    launcher=True,
)
OPENCL = Dialect(
    OPENCL_HEAD,
    trig.c_like("opencl", ANYWHERE),
    "__global ",
    "restrict ",
    "long",
    "(long)get_global_id(0)",
    "(long)get_global_size(0)",
    launcher=False,
)

LANGUAGE = KernelLanguage(
    declare="    const float {name} = {value};",
    pair="    const armdyn_pair {name} = armdyn_sincos({angle});",
    sine=".s",
    cosine=".c",
    load="{port}[{entry} * {port}_entry]",
    store="    out_{port}[{entry} * out_{port}_entry] = {value};",
    functions={
        "sqrt": "sqrtf({})",
        "sign": "({} > 0.0f ? 1.0f : {} < 0.0f ? -1.0f : {})",
        "positive": "({} > 0.0f ? 1.0f : ARMDYN_NAN)",
    },
)


MOST_LIVE = 240  # values; nvcc has 255 registers, and spilled 0, 0 and 40 bytes of programs with 230, 242 and 249


def source(
    name: str,
    programs: Mapping[str, Program],
    docs: Mapping[str, str],
    dialect: Dialect,
    stages: Callable[[str], StagedProgram | None] = lambda key: None,
) -> str:
    """The text of all functions of an arm; `stages` gives a program in stages, if there is one, by its key.

    The stages take the place of a program in which more values are live than a device has registers.
    """
    parts = [dialect.head, dialect.trig]
    for key, program in programs.items():
        order = few_live(program)
        bodies: list[list[str]] = []
        if most_live(order) > MOST_LIVE:
            staged = stages(key)
            bodies = _in_stages(program, staged, dialect) if staged else _apart(program, most_live(order))
        function = f"{name}_{key}"
        parts += [_stage(f"{function}_{k}", program, body, dialect) for k, body in enumerate(bodies, 1)]
        body = _calls(function, program, len(bodies)) or [*_unused(program), *statements(program, LANGUAGE, order)]
        parts.append(_function(function, program, docs[key], dialect, body))
    return "\n".join(parts)


STAGE = Template("""\
ARMDYN_FAR void ${name}($arguments)
{
$body
}
""")
COLUMNS = Template("""\
    ARMDYN_ROLLED
    for (int column = 0; column < $width; ++column) {
        ${space}float *result = out_$port + column * out_${port}_entry;
        const int row = $width * out_${port}_entry;
$body
    }""")
COLUMN = replace(LANGUAGE, load="{port}_{entry}", store="        result[{entry} * row] = {value};")


def _in_stages(program: Program, staged: StagedProgram, dialect: Dialect) -> list[list[str]]:
    """The bodies of the stages, which pass numbers through the results' arrays.

    Each is a function of its own: in one function a compiler would keep the numbers of a stage for the next.
    """
    last = staged.rights.outputs[-1].name
    first = replace(staged.first, outputs=(replace(staged.first.outputs[0], name=last),))
    *inputs, passed = staged.rights.inputs
    rights = replace(staged.rights, inputs=(*inputs, replace(passed, name=f"out_{last}")))
    live = {node.serial for node in rights.order}
    read = [node for node in passed.nodes if node.serial in live]  # all before a result is stored over them
    order = (*read, *(node for node in few_live(rights) if node not in set(read)))
    shared = replace(LANGUAGE, store="    const float shared_{entry} = {value};")
    columns = []
    for port in program.outputs:
        height, width = len(port.nodes) // port.shape[-1], port.shape[-1]
        right = [f"        const float right_{k} = result[{k} * row];" for k in range(height)]
        body = "\n".join([*right, *statements(staged.column, COLUMN, few_live(staged.column))])
        columns.append(COLUMNS.substitute(width=width, space=dialect.space, port=port.name, body=body))
    return [
        list(statements(first, LANGUAGE, few_live(first))),
        list(statements(rights, LANGUAGE, order)),
        [*statements(staged.shared, shared, few_live(staged.shared)), *columns],
    ]


def _apart(program: Program, live: int) -> list[list[str]]:
    """The bodies of two functions, one for a single result, if fewer values are live in both; else none."""
    pairs = []
    for port in program.outputs if len(program.outputs) > 1 else ():
        others = tuple(other for other in program.outputs if other is not port)
        both = (replace(program, outputs=others), replace(program, outputs=(port,)))
        pairs.append(tuple((one, few_live(one)) for one in both))
    best = min(pairs, key=lambda pair: max(most_live(order) for _, order in pair), default=())
    if max((most_live(order) for _, order in best), default=live) >= live:
        return []
    return [list(statements(one, LANGUAGE, order)) for one, order in best]


def _stage(name: str, program: Program, body: Sequence[str], dialect: Dialect) -> str:
    unused = [f"    (void){array}; (void){array}_entry;" for _, array in arrays(program)]
    arguments = ", ".join(f"{_pointer(c, a, dialect)}, int {a}_entry" for c, a in arrays(program))
    return STAGE.substitute(name=name, arguments=arguments, body="\n".join([*unused, *body]))


def _calls(name: str, program: Program, count: int) -> list[str]:
    passed = ", ".join(f"{a}, {a}_entry" for _, a in arrays(program))
    return [f"    {name}_{number}({passed});" for number in range(1, count + 1)]


def arrays(program: Program) -> list[tuple[str, str]]:
    """The arrays of a function: const or not, and its name."""
    return [("const ", port.name) for port in program.inputs] + [("", f"out_{port.name}") for port in program.outputs]


def _pointer(const: str, array: str, dialect: Dialect) -> str:
    return f"{dialect.space}{const}float *{dialect.restrict}{array}"


def _function(name: str, program: Program, doc: str, dialect: Dialect, body: Sequence[str]) -> str:
    every = arrays(program)
    batch = [f"{_pointer(c, a, dialect)}, {dialect.long} {a}_row, int {a}_entry" for c, a in every]
    fields = {
        "name": name,
        "doc": doc,
        "arguments": ", ".join(f"{_pointer(c, a, dialect)}, int {a}_entry" for c, a in every),
        "body": "\n".join(body),
        "batch": ", ".join([f"{dialect.long} count", *batch]),
        "passed": ", ".join(f"{a} + row * {a}_row, {a}_entry" for _, a in every),
        "names": ", ".join(["count", *(f"{a}, {a}_row, {a}_entry" for _, a in every)]),
        "long": dialect.long,
        "first": dialect.first,
        "threads": dialect.threads,
    }
    text = FUNCTION.substitute(fields)
    return f"{text}\n{LAUNCHER.substitute(fields)}" if dialect.launcher else text


def _unused(program: Program) -> list[str]:
    """Marks of the arrays that the program does not read, for compilers that warn."""
    live = {node.serial for node in program.order}
    unread = [port.name for port in program.inputs if not any(node.serial in live for node in port.nodes)]
    return [f"    (void){name}; (void){name}_entry;" for name in unread]
