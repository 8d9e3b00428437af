"""The test programs and Makefiles of the targets `cuda`, `opencl` and `wgsl`."""

from __future__ import annotations

from collections.abc import Callable
from string import Template

from armdyn.codegen.gpu import c_like
from armdyn.codegen.text.c import Package, banner, literal

COUNT = 300  # configurations of a test: more than the threads that run, fewer than two of CUDA's blocks

COMMON = Template("""\
enum { COUNT = $count };

/* The test vectors, in turn, as `COUNT` configurations: rows one behind the other, or a structure of arrays. */
static void fill(float *to, const float *from, int vectors, int size, int arrays)
{
    int i, k;
    for (i = 0; i < COUNT; ++i)
        for (k = 0; k < size; ++k) to[arrays ? i + k * COUNT : i * size + k] = from[(i % vectors) * size + k];
}

static int differ(const float *got, const float *expected, int vectors, int size, int arrays)
{
    int i, k, wrong = 0;
    for (i = 0; i < COUNT; ++i) {
        const float *row = expected + (i % vectors) * size;
        float scale = 1.0f;
        for (k = 0; k < size; ++k) if (fabsf(row[k]) > scale) scale = fabsf(row[k]);
        for (k = 0; k < size; ++k) {
            const float error = fabsf(got[arrays ? i + k * COUNT : i * size + k] - row[k]);
            if (!(error <= $tolerance * scale)) { ++wrong; break; }
        }
    }
    return wrong;
}
""")

CUDA_HELPERS = """\
#ifdef __CUDACC__
static void must(cudaError_t error)
{
    if (error == cudaSuccess) return;
    printf("error: %s\\n", cudaGetErrorString(error));
    exit(2);
}
static float *on_device(size_t numbers) { void *p; must(cudaMalloc(&p, numbers * sizeof(float))); return (float *)p; }
static void released(float *p) { must(cudaFree(p)); }
static void copy_in(float *to, const float *from, size_t numbers)
{
    must(cudaMemcpy(to, from, numbers * sizeof(float), cudaMemcpyHostToDevice));
}
static void copy_out(float *to, const float *from, size_t numbers)
{
    must(cudaMemcpy(to, from, numbers * sizeof(float), cudaMemcpyDeviceToHost));
}
#else
static void must(cudaError_t error) { (void)error; }
static float *on_device(size_t numbers) { return (float *)malloc(numbers * sizeof(float)); }
static void released(float *p) { free(p); }
static void copy_in(float *to, const float *from, size_t numbers) { memcpy(to, from, numbers * sizeof(float)); }
static void copy_out(float *to, const float *from, size_t numbers) { memcpy(to, from, numbers * sizeof(float)); }
#endif
"""

OPENCL_HELPERS = Template("""\
#ifdef ON_DEVICE
static cl_context context;
static cl_command_queue queue;
static cl_program program;

static void must(cl_int error)
{
    if (error == CL_SUCCESS) return;
    printf("error: OpenCL returned %d\\n", (int)error);
    exit(2);
}

static void started(void)
{
    static char text[1 << 24];
    const char *lines = text;
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    char label[256] = "";
    FILE *file = fopen("$name.cl", "rb");
    if (!file || fread(text, 1, sizeof text - 1, file) == 0) { printf("error: cannot read $name.cl\\n"); exit(2); }
    fclose(file);
    must(clGetPlatformIDs(1, &platform, NULL));
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    must(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof label - 1, label, NULL));
    printf("on %s\\n", label);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    must(error);
    queue = clCreateCommandQueue(context, device, 0, &error);
    must(error);
    program = clCreateProgramWithSource(context, 1, &lines, NULL, &error);
    must(error);
    if (clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) {
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof text - 1, text, NULL);
        printf("error: %s\\n", text);
        exit(2);
    }
}

typedef cl_mem memory;
static memory on_device(size_t numbers)
{
    cl_int error;
    memory made = clCreateBuffer(context, CL_MEM_READ_WRITE, numbers * sizeof(float), NULL, &error);
    must(error);
    return made;
}
static void released(memory p) { must(clReleaseMemObject(p)); }
static void copy_in(memory to, const float *from, size_t numbers)
{
    must(clEnqueueWriteBuffer(queue, to, CL_TRUE, 0, numbers * sizeof(float), from, 0, NULL, NULL));
}
static void copy_out(float *to, memory from, size_t numbers)
{
    must(clEnqueueReadBuffer(queue, from, CL_TRUE, 0, numbers * sizeof(float), to, 0, NULL, NULL));
}
static void argument(cl_kernel kernel, cl_uint *k, memory p, cl_long row, cl_int entry)
{
    must(clSetKernelArg(kernel, (*k)++, sizeof p, &p));
    must(clSetKernelArg(kernel, (*k)++, sizeof row, &row));
    must(clSetKernelArg(kernel, (*k)++, sizeof entry, &entry));
}
#else
typedef float *memory;
static void started(void) { armdyn_threads = 64; }
static memory on_device(size_t numbers) { return (memory)malloc(numbers * sizeof(float)); }
static void released(memory p) { free(p); }
static void copy_in(memory to, const float *from, size_t numbers) { memcpy(to, from, numbers * sizeof(float)); }
static void copy_out(float *to, memory from, size_t numbers) { memcpy(to, from, numbers * sizeof(float)); }
#endif
""")

CASE = Template("""\
static int test_$key(int arrays)
{
    static float host[COUNT * $largest];
    int wrong = 0;
$made
$run
$checked
    if (wrong) printf("$key: %d of %d configurations differ\\n", wrong, COUNT);
    return wrong;
}
""")

MAIN = Template("""\
int main(void)
{
    int arrays, failed = 0, passed = 0;
    $start
    for (arrays = 0; arrays < 2; ++arrays) {
$calls
    }
    printf("%d passed, %d failed\\n", passed, failed);
    return failed != 0;
}
""")

AWK = (  # the properties of the functions that a kernel calls come after its own
    'function row() {if (name) printf "%-60s %4d registers %6d bytes spilled\\n", name, used, spilled} '
    '/error/ {print; failed = 1} /entry function/ {row(); split($$0, part, "\\047"); name = part[2]; spilled = 0} '
    "/spill stores/ {spilled += $$(NF - 6) + $$(NF - 2)} "
    '/Used .* registers/ {for (k = 1; k < NF; ++k) if ($$k == "Used") used = $$(k + 1)} END {row(); exit failed}'
)
CUDA_MAKEFILE = """\
CXXFLAGS ?= -std=c++17 -O2 -Wall -Wextra
NVCC ?= nvcc
ARCH ?= sm_90

test: test_$name
	./test_$name

test_$name: test_$name.cu $name.cuh
	$$(CXX) $$(CXXFLAGS) -x c++ -o $$@ test_$name.cu -lm

test-device: test_device_$name
	./test_device_$name

test_device_$name: test_$name.cu $name.cuh
	$$(NVCC) -O3 -arch=native -o $$@ test_$name.cu

resources: $name.cuh
	@$$(NVCC) -O3 -arch=$$(ARCH) -Xptxas -v -cubin -x cu -o /dev/null $name.cuh 2>&1 | awk '$awk'

clean:
	rm -f test_$name test_device_$name

.PHONY: test test-device resources clean
"""

OPENCL_MAKEFILE = """\
CFLAGS ?= -std=c99 -O2 -Wall -Wextra

test: test_$name
	./test_$name

test_$name: test_$name.c $name.cl
	$$(CC) $$(CFLAGS) -o $$@ test_$name.c -lm

test-device: test_device_$name
	./test_device_$name

test_device_$name: test_$name.c $name.cl
	$$(CC) $$(CFLAGS) -DON_DEVICE -o $$@ test_$name.c -lOpenCL -lm

clean:
	rm -f test_$name test_device_$name

.PHONY: test test-device clean
"""

CHECKS = "Checks {} against test vectors of armdyn.\nOn the CPU: make test; on a device: make test-device."


def cuda(name: str, package: Package, data: list[str], tolerance: float) -> str:
    """The test program of the CUDA header."""
    heads = [f'#include "{name}.cuh"', "", *(f"#include <{h}.h>" for h in ("math", "stdio", "stdlib", "string"))]

    def run(key: str, arrays: list[str]) -> list[str]:
        passed = ", ".join(f"{a}, arrays ? 1 : {s}, arrays ? COUNT : 1" for a, s in _sized(package, key, arrays))
        return [f"    must({name}_{key}_launch(COUNT, {passed}, 0));"]

    return _program(f"{name}.cuh", heads, CUDA_HELPERS, package, data, tolerance, run, "float *", "")


def opencl(name: str, package: Package, data: list[str], tolerance: float) -> str:
    """The test program of the OpenCL file."""
    heads = ["#ifdef ON_DEVICE", "#define CL_TARGET_OPENCL_VERSION 120", "#include <CL/cl.h>", "#else"]
    heads += [f'#include "{name}.cl"', "#endif", *(f"#include <{h}.h>" for h in ("math", "stdio", "stdlib", "string"))]

    def run(key: str, arrays: list[str]) -> list[str]:
        sized = _sized(package, key, arrays)
        each = [f"        argument(kernel, &k, {a}, arrays ? 1 : {s}, arrays ? COUNT : 1);" for a, s in sized]
        passed = ", ".join(f"{a}, arrays ? 1 : {s}, arrays ? COUNT : 1" for a, s in sized)
        return [
            "#ifdef ON_DEVICE",
            "    {",
            "        const cl_long count = COUNT;",
            "        const size_t items = 64;",
            "        cl_uint k = 0;",
            "        cl_int error;",
            f'        cl_kernel kernel = clCreateKernel(program, "{name}_{key}_batch", &error);',
            "        must(error);",
            "        must(clSetKernelArg(kernel, k++, sizeof count, &count));",
            *each,
            "        must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));",
            "        must(clFinish(queue));",
            "        must(clReleaseKernel(kernel));",
            "    }",
            "#else",
            "    for (armdyn_thread = 0; armdyn_thread < armdyn_threads; ++armdyn_thread)",
            f"        {name}_{key}_batch(COUNT, {passed});",
            "#endif",
        ]

    helpers = OPENCL_HELPERS.substitute(name=name)
    return _program(f"{name}.cl", heads, helpers, package, data, tolerance, run, "memory ", "started();")


def _sized(package: Package, key: str, arrays: list[str]) -> list[tuple[str, int]]:
    program = package.functions[key].program
    sizes = [len(port.nodes) for port in (*program.inputs, *program.outputs)]
    return list(zip(arrays, sizes, strict=True))


def _program(
    file: str,
    heads: list[str],
    helpers: str,
    package: Package,
    data: list[str],
    tolerance: float,
    run: Callable[[str, list[str]], list[str]],
    memory: str,
    start: str,
) -> str:
    parts = [banner(CHECKS.format(file)), *heads, "", *data, ""]
    parts += [COMMON.substitute(count=COUNT, tolerance=literal(tolerance, "float")), helpers]
    calls = []
    for key, function in package.functions.items():
        program = function.program
        arrays = [array for _, array in c_like.arrays(program)]
        sized = _sized(package, key, arrays)
        vectors = len(function.outputs[0])
        inputs, outputs = sized[: len(program.inputs)], sized[len(program.inputs) :]
        made = [f"    {memory}{a} = on_device(COUNT * {s});" for a, s in sized]
        for a, s in inputs:
            made += [
                f"    fill(host, armdyn_{key}_{a}, {vectors}, {s}, arrays);",
                f"    copy_in({a}, host, COUNT * {s});",
            ]
        checked = []
        for a, s in outputs:
            expected = f"armdyn_{key}_expected_{a.removeprefix('out_')}"
            checked += [f"    copy_out(host, {a}, COUNT * {s});"]
            checked += [f"    wrong += differ(host, {expected}, {vectors}, {s}, arrays);"]
        checked += [f"    released({a});" for a in arrays]
        text = {"key": key, "largest": max(s for _, s in sized), "made": "\n".join(made)}
        text |= {"run": "\n".join(run(key, arrays)), "checked": "\n".join(checked)}
        parts.append(CASE.substitute(text))
        calls.append(f"        if (test_{key}(arrays)) ++failed; else ++passed;")
    parts.append(MAIN.substitute(start=start, calls="\n".join(calls)))
    return "\n".join(parts)


WGSL_TEST = '''\
"""Compares the shaders with test vectors that armdyn computed when it generated them. Run: make test"""

import json
import sys

import numpy as np
import wgpu

COUNT = $count
adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
device = adapter.request_device_sync()
print("on", adapter.info["device"])
usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
passed = failed = 0
for name, shader in json.load(open("$name.json")).items():
    arrays = shader["arrays"]
    sizes = [len(array["vectors"][0]) for array in arrays]
    turns = [[array["vectors"][i % len(array["vectors"])] for i in range(COUNT)] for array in arrays]
    rows = [np.array(turn, np.float32) for turn in turns]
    groups = -(-COUNT // $workgroup)
    head = [COUNT, groups * $workgroup, 0, 1, COUNT]
    call = np.array([*head, *(number for size in sizes for number in (0, size))], np.uint32)
    given = [x if array["access"] == "read" else np.zeros_like(x) for array, x in zip(arrays, rows)]
    buffers = [device.create_buffer_with_data(data=x, usage=usage) for x in (call, *given)]
    accesses = ["read", *(array["access"] for array in arrays)]
    kinds = ["read-only-storage" if access == "read" else "storage" for access in accesses]
    layout = device.create_bind_group_layout(entries=[
        {"binding": k, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}} for k, kind in enumerate(kinds)
    ])
    module = device.create_shader_module(code=open(shader["file"]).read())
    pipeline = device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
        compute={"module": module, "entry_point": shader["entry"]},
    )
    group = device.create_bind_group(layout=layout, entries=[
        {"binding": k, "resource": {"buffer": b, "offset": 0, "size": b.size}} for k, b in enumerate(buffers)
    ])
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(groups)
    work.end()
    device.queue.submit([encoder.finish()])
    good = True
    for array, expected, buffer in zip(arrays, rows, buffers[1:]):
        if array["access"] == "read":
            continue
        got = np.frombuffer(device.queue.read_buffer(buffer), np.float32).reshape(expected.shape)
        scale = np.maximum(1, np.abs(expected).max(axis=1))
        good = good and bool((np.abs(got - expected).max(axis=1) <= $tolerance * scale).all())
    passed, failed = passed + good, failed + (not good)
    if not good:
        print(f"{name}: configurations differ")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
'''


def wgsl(name: str, tolerance: float, workgroup: int) -> str:
    """The test program of the shaders, for the package wgpu."""
    return Template(WGSL_TEST).substitute(name=name, count=COUNT, tolerance=tolerance, workgroup=workgroup)
