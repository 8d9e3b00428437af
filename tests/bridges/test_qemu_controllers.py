"""Controllers as objects for other processors, executed under QEMU: each function against its vectors, loops of many
periods through the header of structs against Python."""

from __future__ import annotations

import numpy as np
import pytest
from test_qemu import run, tools

import armdyn
from armdyn.arm import Arm
from armdyn.control import CONTROLLERS
from armdyn.deployment.build import BUILDS
from random_trees import TreeKind, random_tree

CASES = [("cortex-m4f", "float"), ("cortex-m7", "double"), ("rv32", "double"), ("rv64", "double"), ("aarch64", "float")]
PERIODS = 50
TOLERANCE = {"double": 1e-9, "float": 2e-3}


def tree() -> Arm:
    chain = random_tree(TreeKind(joints=4, fork=0.6, mimic=0.5), seed=3)
    assert chain.has_mimics
    assert not chain.serial
    return Arm("tree", chain)


ARMS = {"planar3": (lambda: armdyn.load("planar3"), tuple(CONTROLLERS)),
        "tree": (tree, ("adaptive", "momentum_observer"))}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def folder(name: str, dtype: str):
        if (name, dtype) not in made:
            make, laws = ARMS[name]
            made[name, dtype] = where = tmp_path_factory.mktemp(f"{name}_{dtype}")
            cpus = [cpu for cpu, kind in CASES if kind == dtype]
            armdyn.deploy(make(), where, "object", ["gravity_load"], dtype=dtype, cpus=cpus, controllers=laws)
        return made[name, dtype]

    return folder


@pytest.mark.parametrize(("cpu", "dtype"), CASES)
@pytest.mark.parametrize("arm", list(ARMS))
def test_every_controller_meets_its_vectors(arm, cpu, dtype, folders):
    tools(cpu)
    where, laws = folders(arm, dtype), ARMS[arm][1]
    text = (where / dtype / f"test_{arm}.c").read_text()
    assert all(f"{arm}_{law}(" in text for law in laws)
    out = run("make", "--no-print-directory", f"test-{cpu}", where=where)
    passed, failed = (int(words.split()[0]) for words in out.split(":")[1].split(","))
    assert failed == 0
    assert passed >= 5 * len(laws)


# The record and what Python made of it as tables; the harness's printf knows no numbers with a point.
LOOP = """
#include "{arm}_controllers.h"
#include "stdio.h"
/* Compilers copy structs with it, and there is no C library here. */
void *memcpy(void *to, const void *from, __SIZE_TYPE__ count)
{{
    while (count-- > 0) ((volatile char *)to)[count] = ((const char *)from)[count];
    return to;
}}
static const {dtype} given[] = {{{given}}};
static const {dtype} expected[] = {{{expected}}};
int main(void)
{{
    {arm}_{law}_gains gains;
    {arm}_{law}_memory memory;
    {arm}_{law}_in in;
    {arm}_{law}_out out;
    const int inputs = sizeof(in) / sizeof({dtype}), outputs = sizeof(out) / sizeof({dtype});
    int k, i, far = 0;
    {arm}_{law}_defaults(&gains);
    for (k = 0; k < {periods}; ++k) {{
        for (i = 0; i < inputs; ++i) (({dtype} *)&in)[i] = given[k * inputs + i];
        if (k == 0) {arm}_{law}_begin(&memory, &gains, &in);
        {arm}_{law}_update(&memory, &gains, &in, ({dtype})0.001, &out);
        for (i = 0; i < outputs; ++i) {{
            const {dtype} wanted = expected[k * outputs + i], off = (({dtype} *)&out)[i] - wanted;
            const {dtype} most = ({dtype}){tolerance} * (1 + (wanted < 0 ? -wanted : wanted));
            far += !(off <= most && -off <= most);
        }}
    }}
    printf("%d of %d differ\\n", far, outputs * {periods});
    return 0;
}}
"""


def record(arm: Arm, law: str) -> tuple[np.ndarray, np.ndarray]:
    """What the law reads over many periods, smooth, and what Python gives, each (periods, numbers)."""
    control, rng = armdyn.controller(arm, law), np.random.default_rng(0)
    t = np.arange(PERIODS) / 100
    entries = (*control.law.measured, *control.law.reference)
    signals = {e.name: np.sin(np.outer(t, rng.uniform(1, 3, arm.n)) + rng.uniform(0, 6, arm.n)) for e in entries}
    memory = control.start(**{e.name: signals[e.name][0] for e in control.law.measured})
    rows = []
    for k in range(PERIODS):
        outputs, memory = control.step(memory, dt=1e-3, **{name: values[k] for name, values in signals.items()})
        rows.append(np.concatenate([np.ravel(outputs[e.name]) for e in control.law.outputs]))
    return np.hstack(list(signals.values())), np.array(rows)


@pytest.mark.parametrize(("cpu", "dtype"), CASES)
@pytest.mark.parametrize(
    ("arm", "law"),
    [
        ("planar3", "computed_torque"),
        ("planar3", "momentum_observer"),
        ("planar3", "payload_estimator"),
        ("tree", "adaptive"),
    ],
)
def test_many_periods_agree_with_python(arm, law, cpu, dtype, folders):
    tools(cpu)
    where, build = folders(arm, dtype), BUILDS[cpu]
    given, expected = record(ARMS[arm][0](), law)
    assert np.ptp(expected, axis=0).max() > 0.01, "what does not change proves nothing"
    table = {"given": given, "expected": expected}
    numbers = {name: ", ".join(f"({dtype}){x!r}" for x in rows.ravel().tolist()) for name, rows in table.items()}
    text = LOOP.format(arm=arm, law=law, dtype=dtype, periods=PERIODS, tolerance=TOLERANCE[dtype], **numbers)
    (where / "loop.c").write_text(text)
    sources = ["loop.c", f"{dtype}/{arm}_{cpu}.o", "harness/printf.c", build.sources]
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-ffreestanding", "-nostdlib", "-static", *build.flags.split()]
    run(build.compiler, *flags, f"-I{dtype}", "-Iharness", "-o", "loop.elf", *sources, where=where)
    out = run(build.emulator, *build.run.split(), "./loop.elf", where=where)
    assert out == f"0 of {expected.size} differ\n"
