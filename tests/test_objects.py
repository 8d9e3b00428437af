"""Objects for controllers' processors: their sine and cosine, what they need from outside, and what is refused.

They are executed under QEMU in tests/bridges/test_qemu.py; here the same functions run on the host.
"""

from __future__ import annotations

import ctypes
import math
import os
from pathlib import Path

import mpmath
import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.codegen import embedded, jit
from armdyn.codegen.elf import ALLOCATED, WRITABLE, Elf
from armdyn.codegen.embedded import CPUS, compile_object, frame_sizes
from armdyn.codegen.llvm.scalar import PRECISIONS, intrinsics, scalar_function, scalar_trig, two_over_pi
from armdyn.codegen.llvm.trig import LIMIT
from armdyn.codegen.target import host
from armdyn.deployment.build import BUILDS
from armdyn.errors import ComputationError, InputError
from armdyn.graph.program import evaluate, trace

GOLDEN = Path(__file__).parent / "golden"
TRIG = trace("sine_cosine", lambda x: [x[0].sin(), x[0].cos()], {"x": (1,)}, [("y", (2,))])
DTYPE = {"double": np.float64, "float": np.float32}


def on_host(program, dtype):
    """A program's scalar function, compiled for this machine, over rows."""
    precision = PRECISIONS[dtype]
    text = "\n".join(
        [
            f'target triple = "{host().triple}"',
            scalar_trig("trig", precision),
            scalar_function("f", program, precision, "trig"),
            intrinsics(precision),
            "attributes #0 = { nounwind }",
        ]
    )
    code = jit.load(jit.object_code(text, host()), ("f",), host())
    ports = (*program.inputs, *program.outputs)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(ports))(code.address("f"))

    def function(*inputs):
        arrays = [np.ascontiguousarray(x, dtype=DTYPE[dtype]) for x in inputs]
        rows = len(arrays[0])
        arrays += [np.zeros((rows, len(port.nodes)), DTYPE[dtype]) for port in program.outputs]
        for k in range(rows):
            call(*(a.ctypes.data + k * a.strides[0] for a in arrays))
        return arrays[len(inputs) :]

    function.code = code
    return function


needs_fma = pytest.mark.skipif(not host().fma, reason="this machine has no fused multiply-add")


def exact(x):
    """Sine and cosine of doubles, to as many bits as the largest of them needs."""
    with mpmath.workprec(1300 if np.abs(x).max() > 1e9 else 200):
        return [(mpmath.sin(mpmath.mpf(float(v))), mpmath.cos(mpmath.mpf(float(v)))) for v in x]


def worst(x, got, spacing):
    ulps = 0.0
    for pair, values in zip(exact(x), got, strict=True):
        for truth, value in zip(pair, values, strict=True):
            ulps = max(ulps, float(abs(mpmath.mpf(float(value)) - truth)) / float(spacing(float(truth))))
    return ulps


RNG = np.random.default_rng(5)
SIGN = RNG.choice([-1.0, 1.0], 300)
NEAR = np.concatenate(
    [RNG.uniform(-4, 4, 300), SIGN * 10.0 ** RNG.uniform(-25, 5, 300), np.arange(-300, 300) * np.pi / 2]
)
HARDEST = [
    6381956970095103 * 2.0**797,
    5.2e5 * np.pi,
    1e22,
    1.7976931348623157e308,
    -1e300,
]  # the first: 2⁻⁶¹ from a zero


@needs_fma
@pytest.mark.parametrize("dtype", ["double", "float"])
def test_sine_and_cosine_at_every_angle(dtype):
    function = on_host(TRIG, dtype)
    kind, largest = DTYPE[dtype], 308 if dtype == "double" else 38

    def spacing(value):
        return abs(np.spacing(kind(value)))

    near = NEAR.astype(kind)
    assert worst(near, function(near[:, None])[0], spacing) <= 2
    far = np.concatenate([SIGN * 10.0 ** RNG.uniform(math.log10(LIMIT), largest, 300), HARDEST])
    far = far[np.abs(far) < np.finfo(kind).max].astype(kind)
    assert worst(far, function(far[:, None])[0], spacing) <= 3
    nothing = np.array([np.nan, np.inf, -np.inf], kind)
    assert np.isnan(function(nothing[:, None])[0]).all()


@needs_fma
def test_sine_and_cosine_of_floats_of_every_exponent():
    """Many more of single precision: the host's double is exact enough to judge them."""
    x = RNG.integers(0, 2**32, 40_000, dtype=np.uint32).view(np.float32)
    x = x[np.isfinite(x)]
    got = on_host(TRIG, "float")(x[:, None])[0]
    truth = np.stack([np.sin(x.astype(float)), np.cos(x.astype(float))], axis=1)
    assert (np.abs(got - truth) / np.spacing(np.abs(truth).astype(np.float32))).max() <= 3


def test_the_bits_of_two_over_pi():
    with mpmath.workprec(1400):
        assert two_over_pi(1184) == int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** 1184))


@needs_fma
def test_every_operation_and_angles_of_sines():
    def function(x):
        a, b, c = x
        inner = (a.sin() * b).cos()  # an angle made of a sine
        return [a + b * c, a / b - 2, -a, (a * a + 1).sqrt(), b.sign(), inner, 3, a, inner]

    program = trace("all", function, {"x": (3,)}, [("y", (9,))])
    x = RNG.normal(size=(50, 3))
    truth = np.array([evaluate(program, row)[0] for row in x])
    assert np.abs(on_host(program, "double")(x)[0] - truth).max() < 1e-14
    assert np.abs(on_host(program, "float")(x)[0] - truth).max() < 1e-4


@needs_fma
@pytest.mark.parametrize("name", ["panda", "stanford"])
def test_the_same_bits_as_the_kernels(name):
    """The same program with the same fused multiply-adds and the same sine; single precision is near."""
    arm = armdyn.load(name)
    package = armdyn.deployment.Request(arm, ("forward_dynamics",), parameters="baked", friction=False).package()
    q, qd, tau = RNG.uniform(-3, 3, (3, 200, arm.n)).astype(np.float32).astype(float)
    truth = arm.forward_dynamics(q, qd, tau)
    program = package.functions["forward_dynamics"].program
    assert (on_host(program, "double")(q, qd, tau)[0] == truth).all()
    error = np.abs(on_host(program, "float")(q, qd, tau)[0] - truth).max(axis=1) / np.abs(truth).max(axis=1)
    assert error.max() < 1e-4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("objects") / "planar3"
    armdyn.deploy(armdyn.load("planar3"), where, "object")
    return where


def test_objects_need_nothing_and_hold_no_variables(folder):
    paths = list(folder.glob("*/*.o"))
    assert {path.stem.split("_")[1] for path in paths} == set(CPUS)
    for path in paths:
        elf = Elf(path.read_bytes())
        assert elf.undefined == ()
        assert not [s.name for s in elf.sections if s.flags & ALLOCATED and s.flags & WRITABLE and s.size]
        assert "planar3_inverse_dynamics" in elf.functions


def test_float_abi(folder):
    """Arm's attribute 28 (Tag_ABI_VFP_args) is 1, RISC-V's flags say float or double; linkers insist on it."""
    for cpu in ("cortex-m4f", "cortex-m7"):
        code = next(folder.glob(f"*/*_{cpu}.o")).read_bytes()
        section = next(s for s in Elf(code).sections if s.name == ".ARM.attributes")
        assert b"\x1c\x01" in code[section.offset : section.offset + section.size]
    flags = {"rv32f": 2, "rv32": 4, "rv64": 4}
    for cpu, expected in flags.items():
        code = next(folder.glob(f"*/*_{cpu}.o")).read_bytes()
        assert code[48 if code[4] == 2 else 36] & 6 == expected


def test_flash_is_the_sum_of_the_sections(folder):
    package = armdyn.deployment.Request(armdyn.load("planar3"), ("bias", "pose")).package()
    programs = {key: one.program for key, one in package.functions.items()}
    for cpu in CPUS.values():
        made = compile_object("planar3", programs, [1.0], cpu, cpu.dtypes[0])
        total = made.shared + sum(one.flash for one in made.functions.values())
        assert total == Elf(made.code).allocated()
        assert all(one.flash > 2 * len(programs[key].order) for key, one in made.functions.items())
        for key, one in made.functions.items():
            assert (one.large > one.instructions) == (programs[key].operations.trig > 0)


def test_frames_from_unwind_directives():
    text = "a_b:\n\t.save\t{r4, r5, lr}\n\t.vsave\t{d8, d9}\n\t.pad\t#40\n.Lend:\n"
    text += "other:\n\t.cfi_def_cfa_offset 2032\n\t.cfi_def_cfa_offset 2512\n"
    assert frame_sizes(text) == {"a_b": 12 + 16 + 40, "other": 2512}


def test_every_processor_has_a_build():
    assert set(BUILDS) == set(CPUS)


def test_what_is_refused(tmp_path):
    arm = armdyn.load("planar3")
    with pytest.raises(InputError, match="unknown cpu 'z80'; available: cortex-m4f, cortex-m7, aarch64, rv32f"):
        armdyn.deploy(arm, tmp_path / "x", "object", cpus=["z80"])
    with pytest.raises(InputError, match=r"cortex-m4f has no double precision in hardware, only float; .* cortex-m7"):
        armdyn.deploy(arm, tmp_path / "x", "object", dtype="float64")
    with pytest.raises(InputError, match="processors are for the target object; got rv64 for the target c"):
        armdyn.deploy(arm, tmp_path / "x", "c", cpus=["rv64"])
    assert not (tmp_path / "x").exists()


def test_a_code_generator_that_is_missing(monkeypatch):
    class Without:
        class Target:
            @staticmethod
            def from_triple(triple):
                raise RuntimeError(f"No available targets are compatible with triple {triple!r}")

    monkeypatch.setattr(embedded, "_all_targets", lambda: Without)
    with pytest.raises(ComputationError, match=r"no code generator for rv64 .*wheels of llvmlite have one"):
        embedded.machine(CPUS["rv64"], 2)


def test_the_command_and_the_read_me_file(tmp_path):
    args = ["deploy", "planar3", "--target", "object", "--cpu", "cortex-m7", "--dtype", "float32", "--quiet"]
    done = CliRunner().invoke(app, [*args, "--quantity", "gravity_load", "-o", str(tmp_path / "o")])
    assert done.exit_code == 0, done.output
    names = {str(path.relative_to(tmp_path / "o")) for path in (tmp_path / "o").rglob("*.*")}
    assert {"float/planar3.h", "float/planar3_cortex-m7.o", "ABI.md", "README.md"} <= names
    text = (tmp_path / "o" / "README.md").read_text()
    assert "| function | flash | stack | instructions |" in text
    assert "`gravity_load`" in text


def test_golden_header(folder):
    path, text = GOLDEN / "object" / "planar3.h", (folder / "double" / "planar3.h").read_text()
    if os.environ.get("ARMDYN_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
