"""Objects for controllers' processors, linked and executed under QEMU against the vectors, and what they take there."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest

import armdyn
from armdyn.arm import Arm
from armdyn.codegen.elf import Elf
from armdyn.codegen.embedded import CPUS, compile_object
from armdyn.codegen.target import host
from armdyn.codegen.text.c import files
from armdyn.deployment.build import BUILDS
from armdyn.deployment.request import Request
from random_trees import TreeKind, random_tree

CASES = [(cpu.name, dtype) for cpu in CPUS.values() for dtype in cpu.dtypes]


def tree() -> Arm:
    chain = random_tree(TreeKind(joints=6, fork=0.6, mimic=0.5), seed=3)
    assert chain.has_mimics
    assert not chain.serial
    return Arm("tree", chain)


ARMS = {"panda": lambda: armdyn.load("panda"), "prismatic": lambda: armdyn.load("stanford"), "tree": tree}


def tools(cpu: str) -> None:
    build = BUILDS[cpu]
    missing = [tool for tool in ("make", build.compiler, build.emulator) if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not on this machine (Debian: {build.packages})")


def run(*command, where) -> str:
    done = subprocess.run(list(map(str, command)), cwd=where, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    @cache
    def folder(arm: str, dtype: str):
        where = tmp_path_factory.mktemp(f"{arm}_{dtype}")
        armdyn.deploy(ARMS[arm](), where, "object", dtype=dtype, cpus=[c for c, d in CASES if d == dtype])
        return where

    return folder


@pytest.mark.parametrize(("cpu", "dtype"), CASES)
@pytest.mark.parametrize("arm", list(ARMS))
def test_the_objects_give_what_the_vectors_say(arm, cpu, dtype, folders):
    tools(cpu)
    out = run("make", "--no-print-directory", f"test-{cpu}", where=folders(arm, dtype))
    passed, failed = (int(words.split()[0]) for words in out.split(":")[1].split(","))
    assert failed == 0
    assert passed >= 20


def test_the_object_for_a_cortex_m4_runs_on_a_cortex_m7(folders):
    tools("cortex-m4f")
    where = folders("panda", "float")
    run("make", "test-cortex-m4f", where=where)
    build = BUILDS["cortex-m7"]
    assert "mps2-an500" in build.run
    assert "0 failed" in run(build.emulator, *build.run.split(), "test-cortex-m4f.elf", where=where)


def test_the_makefile_says_what_is_missing(folders):
    out = run("make", "--no-print-directory", "test-rv64", "CC_RV64=no_such_compiler", where=folders("tree", "double"))
    assert out == "rv64: not tested, missing: no_such_compiler (Debian: gcc-riscv64-unknown-elf qemu-user)\n"


def test_a_wrong_result_fails(folders, tmp_path):
    """The test program can fail: one expected number is changed."""
    tools("rv64")
    where = tmp_path / "copy"
    shutil.copytree(folders("panda", "double"), where)
    text = (where / "double" / "test_panda.c").read_text()
    before, label, after = text.partition("static const double armdyn_gravity_load_expected_g[] = {\n    ")
    assert label
    (where / "double" / "test_panda.c").write_text(before + label + "7" + after)
    done = subprocess.run(["make", "test-rv64"], cwd=where, capture_output=True, text=True)
    assert done.returncode != 0
    assert "gravity_load: vector 0 differs" in done.stdout
    assert "1 failed" in done.stdout


# One call of one function, with the stack below it filled with a pattern: how deep it was overwritten.
MEASURE = """
#include "{name}.h"
#include "stdio.h"
#include "harness.h"
#define DEPTH 16384
int main(void)
{{
    {dtype} in[64], out[256];
    register unsigned char *top __asm__("sp");
    volatile unsigned char *below = top;
    int k;
    for (k = 0; k < 64; ++k) in[k] = {angle};
    for (k = 1; k <= DEPTH; ++k) below[-k] = 0xA5;
    {name}_{function}({arguments});
    for (k = DEPTH; k > 0 && below[-k] == 0xA5; --k) {{ }}
    printf("%d\\n", k);
    return 0;
}}
"""


# Calls with inputs and expected outputs as bits; the harness's printf knows no numbers with a point.
SAME = """
#include "panda.h"
#include "stdio.h"
typedef union {{ unsigned long long bits; double number; }} Number;
{tables}
int main(void)
{{
    int k, i, different = 0;
    for (k = 0; k < {rows}; ++k) {{
        double in[{ports}][7];
        Number out[7];
        for (i = 0; i < 7; ++i) {{ {copies} }}
        panda_{function}({arguments}, panda_parameters, &out[0].number);
        for (i = 0; i < 7; ++i) different += out[i].bits != expected[7 * k + i].bits;
    }}
    printf("%d\\n", different);
    return 0;
}}
"""


def linked(tmp_path, cpu: str, dtype: str, text: str):
    """The object of the Panda with a main program of ours, as `program`."""
    build, package = BUILDS[cpu], dataclasses.replace(_package(), dtype=dtype)
    programs = {key: one.program for key, one in package.functions.items()}
    made = compile_object("panda", programs, [value for _, value in package.parameters], CPUS[cpu], dtype)
    (tmp_path / "main.c").write_text(text)
    (tmp_path / "panda.h").write_text(files(package)["panda.h"])
    (tmp_path / "panda.o").write_bytes(made.code)
    harness = armdyn.deployment.__path__[0] + "/harness"
    flags = build.flags.replace("harness/", f"{harness}/").split()
    sources = [f"{harness}/printf.c", harness + "/" + build.sources.split("/")[1]]
    command = [build.compiler, "-O1", "-ffreestanding", "-nostdlib", "-static", *flags, f"-I{harness}", "-I."]
    run(*command, "-o", "program", "main.c", "panda.o", *sources, where=tmp_path)
    return made


@pytest.mark.skipif(not host().fma, reason="this machine's kernels have no fused multiply-add")
@pytest.mark.parametrize("cpu", [cpu for cpu, dtype in CASES if dtype == "double"])
@pytest.mark.parametrize("function", ["gravity_load", "forward_dynamics"])
def test_the_same_bits_as_the_kernels(cpu, function, tmp_path):
    """The same program with the same fused multiply-adds and the same sine: nothing is left to a compiler."""
    tools(cpu)
    rows, ports = 40, len(_package().functions[function].program.inputs) - 1
    inputs = np.random.default_rng(8).uniform(-3, 3, (ports, rows, 7))
    options = {"friction": True} if function == "forward_dynamics" else {}
    kernel = armdyn.load("panda").kernel(function, parameters="runtime", **options)
    expected = kernel(*inputs, [value for _, value in _package().parameters])
    tables = [*((f"in{k}", x) for k, x in enumerate(inputs)), ("expected", expected)]
    text = SAME.format(
        tables="\n".join(
            f"static const Number {name}[] = {{{', '.join(f'{{{bits}ULL}}' for bits in x.view(np.uint64).ravel())}}};"
            for name, x in tables
        ),
        rows=rows,
        ports=ports,
        copies=" ".join(f"in[{k}][i] = in{k}[7 * k + i].number;" for k in range(ports)),
        function=function,
        arguments=", ".join(f"in[{k}]" for k in range(ports)),
    )
    linked(tmp_path, cpu, "double", text)
    build = BUILDS[cpu]
    assert run(build.emulator, *build.run.split(), "./program", where=tmp_path) == "0\n"


def measured(tmp_path, cpu: str, dtype: str, function: str, angle: str):
    """The footprint as stated, the depth of the stack as found, and the instructions executed, all for the Panda."""
    build, program = BUILDS[cpu], _package().functions[function].program
    inputs = ["panda_parameters" if port.name == "parameters" else "in" for port in program.inputs]
    arguments = ", ".join([*inputs, "out"])
    text = MEASURE.format(name="panda", dtype=dtype, function=function, angle=angle, arguments=arguments)
    made = linked(tmp_path, cpu, dtype, text)
    elf = Elf((tmp_path / "program").read_bytes())
    names = [f"panda_{function}", "panda_sine_cosine", "panda_sine_cosine_reduction"]
    ranges = ",".join(f"{elf.functions[n].value & ~1:#x}+{elf.functions[n].size:#x}" for n in names)
    log = ["-singlestep", "-d", "exec,nochain", "-D", "trace", "-dfilter", ranges]
    out = run(build.emulator, *log, *build.run.split(), "./program", where=tmp_path)
    executed = sum(line.startswith("Trace") for line in (tmp_path / "trace").read_text().splitlines())
    return made.functions[function], int(out), executed


@cache
def _package():
    return Request(armdyn.load("panda"), ("gravity_load", "forward_dynamics")).package()


@pytest.mark.parametrize(("cpu", "dtype"), CASES)
@pytest.mark.parametrize("function", ["gravity_load", "forward_dynamics"])
def test_stack_and_instructions_are_as_stated(cpu, dtype, function, tmp_path):
    """Executed: at most what is stated, and nearly as much, so that the statement is worth something."""
    tools(cpu)
    f = "f" if dtype == "float" else ""
    stated, _, executed = measured(tmp_path, cpu, dtype, function, f"0.3{f}")
    assert 0.85 * stated.instructions <= executed <= stated.instructions
    stated, depth, executed = measured(tmp_path, cpu, dtype, function, f"1.0e7{f}")
    assert stated.instructions < executed <= stated.large
    assert stated.stack - 16 <= depth <= stated.stack
