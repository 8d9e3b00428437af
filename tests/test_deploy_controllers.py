"""Controllers in deployed folders: C and C++ agree with the Python step, period by period."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.control import CONTROLLERS
from armdyn.errors import InputError
from pages import ROOT, blocks

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="no C compiler or no make on this machine"
)
FLAGS = ["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
PERIODS = 200

LOOP = """
#include "{arm}_controllers.h"
#include <stdio.h>

int main(void)
{{
    {arm}_{law}_gains gains;
    {arm}_{law}_memory memory;
    {arm}_{law}_in in;
    {arm}_{law}_out out;
    int k, i, first = 1;
    {arm}_{law}_defaults(&gains);
    for (k = 0; k < {periods}; ++k) {{
        double *entry = (double *)&in;
        for (i = 0; i < (int)(sizeof(in) / sizeof(double)); ++i) if (scanf("%lf", entry + i) != 1) return 1;
        if (first) {{ {arm}_{law}_begin(&memory, &gains, &in); first = 0; }}
        {arm}_{law}_update(&memory, &gains, &in, 0.001, &out);
        for (i = 0; i < (int)(sizeof(out) / sizeof(double)); ++i) printf("%.17g ", ((const double *)&out)[i]);
        printf("\\n");
    }}
    return 0;
}}
"""

CLASS = """
#include "{arm}_controllers.hpp"
#include <cstdio>

int main()
{{
    {arm}::controllers::{law} control;
    {arm}::controllers::{law}::in in;
    bool first = true;
    for (int k = 0; k < {periods}; ++k) {{
        double *entry = reinterpret_cast<double *>(&in);
        for (std::size_t i = 0; i < sizeof(in) / sizeof(double); ++i) if (std::scanf("%lf", entry + i) != 1) return 1;
        if (first) control.begin(in);
        first = false;
        const auto out = control.update(in, 0.001);
        const double *given = reinterpret_cast<const double *>(&out);
        for (std::size_t i = 0; i < sizeof(out) / sizeof(double); ++i) std::printf("%.17g ", given[i]);
        std::printf("\\n");
    }}
    return 0;
}}
"""


def run(*command, where, given=None):
    done = subprocess.run(list(map(str, command)), cwd=where, capture_output=True, text=True, input=given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def signals(control):
    """A smooth record of everything that the law reads, (periods, numbers), in the order of its struct."""
    t = np.arange(PERIODS) / 100
    entries = (*control.law.measured, *control.law.reference)
    rng = np.random.default_rng(0)
    columns = {e.name: np.sin(np.outer(t, rng.uniform(1, 3, 3)) + rng.uniform(0, 6, 3)) for e in entries}
    return columns, np.hstack(list(columns.values()))


@needs_gcc
@pytest.mark.parametrize("dtype", ["double", "float"])
def test_every_controller_meets_its_vectors(tmp_path, dtype):
    armdyn.deploy(
        armdyn.load("planar3"),
        tmp_path / "c",
        "c",
        ["gravity_load"],
        dtype=dtype,
        controllers=CONTROLLERS,
        measure_stack=False,
        build=False,
    )
    flags = "-std=c99 -O0 -Wall -Wextra -Wpedantic -Werror"
    assert "0 failed" in run("make", "test", f"CFLAGS={flags}", where=tmp_path / "c")


@needs_gcc
@pytest.mark.parametrize("law", ["computed_torque", "adaptive", "friction_estimator", "payload_estimator"])
@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_many_periods_in_a_loop_agree_with_python(tmp_path, law, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on this machine")
    arm = armdyn.load("planar3")
    control = armdyn.controller(arm, law)
    armdyn.deploy(arm, tmp_path, "c", ["gravity_load"], controllers=[control], measure_stack=False, build=False)
    suffix, standard = ("c", "-std=c99") if compiler == "gcc" else ("cc", "-std=c++17")
    (tmp_path / f"loop.{suffix}").write_text(LOOP.format(arm="planar3", law=law, periods=PERIODS))
    run("gcc", "-std=c99", *FLAGS, "-c", "planar3.c", where=tmp_path)
    run(compiler, standard, *FLAGS, f"loop.{suffix}", "planar3.o", "-o", "loop", "-lm", where=tmp_path)
    agrees(control, tmp_path)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine")
@pytest.mark.parametrize("law", ["adaptive", "payload_estimator"])
def test_the_class_in_cpp_agrees_with_python(tmp_path, law):
    arm = armdyn.load("planar3")
    control = armdyn.controller(arm, law, friction=True)
    armdyn.deploy(arm, tmp_path, "cpp", ["gravity_load"], controllers=[control], measure_stack=False, build=False)
    (tmp_path / "loop.cc").write_text(CLASS.format(arm="planar3", law=law, periods=PERIODS))
    run("g++", "-std=c++17", *FLAGS, "loop.cc", "-o", "loop", where=tmp_path)
    agrees(control, tmp_path)


HELD = {
    "c": """
#include "planar3_controllers.h"
#include <stdio.h>

int main(void)
{
    const planar3_payload held = {2.0, {0.03, 0.01, 0.06}, {0.0}};
    const double q[3] = {0.3, -0.4, 0.5};
    double mine[PLANAR3_P], tau[3];
    planar3_gravity_compensation_gains gains;
    const planar3_gravity_compensation_in in = {{0.3, -0.4, 0.5}, {0.0}};
    planar3_gravity_compensation_out out;
    planar3_gravity_compensation_defaults(&gains);
    gains.payload = held;
    planar3_gravity_compensation_update(&gains, &in, 0.001, &out);
    planar3_payload_parameters(&held.mass, held.com, held.inertia, planar3_parameters, mine);
    planar3_gravity_load(q, mine, tau);
    for (int i = 0; i < 3; ++i) printf("%.17g %.17g\\n", out.tau[i], tau[i]);
    return 0;
}
""",
    "cpp": """
#include "planar3_controllers.hpp"
#include <cstdio>

int main()
{
    const planar3::payload held{2.0, {0.03, 0.01, 0.06}, {}};
    const std::array<double, 3> q{0.3, -0.4, 0.5};
    std::array<double, planar3::P> mine;
    std::array<double, 3> tau;
    planar3::controllers::gravity_compensation control;
    control.gains.payload = held;
    const auto out = control.update({q, {}}, 0.001);
    planar3::payload_parameters(held.mass, held.com, held.inertia, planar3::present_parameters, mine);
    planar3::gravity_load(q, mine, tau);
    for (int i = 0; i < 3; ++i) std::printf("%.17g %.17g\\n", out.tau[i], tau[i]);
    return 0;
}
""",
}


@pytest.mark.parametrize(("target", "compiler"), [("c", "gcc"), ("cpp", "g++")])
def test_one_struct_is_the_payload_of_functions_and_controllers(tmp_path, target, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on this machine")
    arm = armdyn.load("planar3")
    laws = ["gravity_compensation", "payload_estimator"]
    armdyn.deploy(arm, tmp_path, target, ["gravity_load"], controllers=laws, measure_stack=False, build=False)
    (tmp_path / f"main.{target}").write_text(HELD[target])
    files = [f"main.{target}"] + (["planar3.c"] if target == "c" else [])
    run(
        compiler,
        *FLAGS,
        *(["-std=c99"] if target == "c" else ["-std=c++17"]),
        *files,
        "-o",
        "main",
        "-lm",
        where=tmp_path,
    )
    found = np.array([line.split() for line in run("./main", where=tmp_path).splitlines()], float)
    truth = arm.with_payload(2.0, (0.03, 0.01, 0.06)).gravity_load([0.3, -0.4, 0.5])
    np.testing.assert_allclose(found, np.stack([truth, truth], axis=1), rtol=1e-12)
    text = (tmp_path / f"planar3_controllers.{'h' if target == 'c' else 'hpp'}").read_text()
    assert text.count("payload payload") == 2  # a gain of one controller, a result of the other
    about = (tmp_path / "README.md").read_text()
    assert "xx, yy, zz, xy, xz, yz" in about
    assert f"struct `planar3{'_' if target == 'c' else '::'}payload`" in about


def agrees(control, tmp_path):
    """The program `loop` gives what Python gives, period by period."""
    columns, table = signals(control)
    text = run("./loop", where=tmp_path, given="\n".join(" ".join(map(repr, row)) for row in table.tolist()))
    found = np.array([[float(x) for x in line.split()] for line in text.splitlines()])
    memory, expected = None, []
    for k in range(PERIODS):
        given = {name: values[k] for name, values in columns.items()}
        if memory is None:
            memory = control.start(**{e.name: given[e.name] for e in control.law.measured})
        outputs, memory = control.step(memory, dt=1e-3, **given)
        expected.append(np.concatenate([np.ravel(outputs[e.name]) for e in control.law.outputs]))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_the_command(tmp_path):
    args = ["deploy", "planar3", "-o", str(tmp_path / "c"), "--quantity", "bias", "--controller", "adaptive", "-q"]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "c" / "planar3_controllers.h").read_text()
    assert "planar3_adaptive_update(" in text
    assert "`planar3_controllers.h`" in (tmp_path / "c" / "README.md").read_text()


def test_what_cannot_be_deployed(tmp_path):
    arm = armdyn.load("planar3")
    with pytest.raises(InputError, match=r"unknown controller 'pid'; available: gravity_compensation"):
        armdyn.deploy(arm, tmp_path / "x", controllers=["pid"])
    with pytest.raises(InputError, match="is for another arm than planar3"):
        armdyn.deploy(arm, tmp_path / "x", controllers=[armdyn.controller(armdyn.load("scara"), "adaptive")])
    with pytest.raises(InputError, match=r"must be a name or the result of armdyn.controller\(\.\.\.\), got 3"):
        armdyn.deploy(arm, tmp_path / "x", controllers=[3])
    assert not (tmp_path / "x").exists()


def test_targets_without_controllers_say_so(tmp_path):
    with pytest.raises(InputError, match="controllers are for the targets c, cpp and object; got adaptive"):
        armdyn.deploy(armdyn.load("planar3"), tmp_path / "x", "fmu", controllers=["adaptive"])
    assert not (tmp_path / "x").exists()


@needs_gcc
def test_the_loop_of_the_tutorial_compiles(tmp_path):
    armdyn.deploy(
        armdyn.load("ur5"), tmp_path, "c", ["gravity_load"], controllers=["adaptive"], measure_stack=False, build=False
    )
    (loop,) = blocks(ROOT / "docs" / "tutorials" / "controllers.md", "c")
    (tmp_path / "loop.c").write_text(loop)
    run("gcc", "-std=c99", *FLAGS, "-fsyntax-only", "loop.c", where=tmp_path)


def test_the_table_of_costs_is_that_of_the_programs():
    head, *lines = (ROOT / "docs" / "tables" / "controllers-cost.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == list(CONTROLLERS)
    assert head.split()[0] == "scara"
    for line in lines:
        o = armdyn.controller(armdyn.load("scara"), line.split()[0]).operations
        assert line.split()[1:5] == [f"{o.mul}M", f"{o.add}A", f"{o.div}D", f"{o.trig}T"]
