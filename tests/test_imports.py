"""What an import loads, as numbers of modules: a user waits for each of them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import armdyn


def loaded(code: str) -> list[str]:
    """The modules of armdyn, numpy, scipy and llvmlite that a fresh interpreter holds after `code`."""
    ask = "import sys; print(*(m for m in sys.modules if m.split('.')[0] in ('armdyn', 'numpy', 'scipy', 'llvmlite')))"
    run = [sys.executable, "-c", f"{code}\n{ask}"]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()


def test_importing_the_package_loads_nothing_else():
    assert loaded("import armdyn") == ["armdyn"]


def test_loading_an_arm_imports_no_compiler_and_no_formulation():
    modules = loaded("import armdyn; armdyn.load('puma560')")
    ours = [m for m in modules if m.startswith("armdyn")]
    assert len(ours) < 60
    unwanted = ("llvmlite", "scipy", "armdyn.codegen", "armdyn.graph", "armdyn.programs", "armdyn.formulations.i")
    assert [m for m in modules if m.startswith(unwanted)] == []


def test_listing_quantities_imports_no_algorithm():
    code = "from armdyn.formulations import QUANTITIES; [q.doc for q in QUANTITIES.values()]"
    assert {m for m in loaded(code) if m.startswith("armdyn.formulations")} == {
        "armdyn.formulations",
        "armdyn.formulations.registry",
    }


COMMANDS = {  # arguments of the command line: the most modules of armdyn it may load, and what it does without
    "--version": (12, ("numpy", "armdyn.files.toml", "armdyn.chain")),
    "list": (14, ("numpy", "armdyn.files.toml", "armdyn.chain", "armdyn.arm")),
    "--help": (55, ("numpy", "armdyn.arm", "armdyn.kernels")),
    "simulate --help": (24, ("numpy", "armdyn.chain", "armdyn.arm", "armdyn.simulation")),
    "show panda": (52, ("scipy", "llvmlite", "armdyn.codegen", "armdyn.kernels.kernel", "armdyn.pages")),
}


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_command_imports_what_it_needs(arguments):
    most, unwanted = COMMANDS[arguments]
    code = f"import sys; sys.argv[1:] = {arguments.split()!r}; from armdyn.cli import main"
    modules = loaded(f"{code}\ntry: main()\nexcept SystemExit as end: assert not end.code")
    assert len([m for m in modules if m.startswith("armdyn")]) <= most
    assert [m for m in modules if m.startswith(unwanted)] == []


def test_every_place_in_the_registry_exists():
    from armdyn.formulations import QUANTITIES

    for quantity in QUANTITIES.values():
        assert quantity.methods[0].key, quantity.name
        assert callable(quantity.physics), quantity.name


def test_subpackages_are_attributes_and_other_names_are_not():
    code = "import armdyn; print(armdyn.control.__name__, hasattr(armdyn, 'nothing'), hasattr(armdyn, '_private'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["armdyn.control", "False", "False"]


def test_type_checkers_see_what_the_table_of_lazy_names_holds():
    import armdyn

    tree = ast.parse(Path(armdyn.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: line.module for line in block.body for alias in line.names}
    assert seen == armdyn._LAZY
    assert sorted(armdyn.__all__) == sorted(seen)
    for name in seen:
        assert getattr(armdyn, name).__name__ == name


def test_every_import_of_scipy_is_asked_for():
    """`required` says how to install SciPy, which may be uninstalled; modules are imported without it."""
    for path in (Path(armdyn.__file__).parent).rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for before, line in pairwise(lines):
            if re.match(r" *(from|import) scipy\b", line):
                assert re.match(r" +(required\(\"scipy\"\)|from scipy)", before), f"{path.name}: {line}"


def test_what_needs_scipy_says_so():
    code = """
import sys
sys.modules["scipy"] = None
import armdyn
try:
    armdyn.simulate(armdyn.load("scara"), duration=0.01, method="DOP853", friction=False)
except ImportError as error:
    assert isinstance(error, armdyn.ArmdynError)
    print("said:", error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "said: scipy is not installed; install it with: pip install scipy\n"


def test_kernels_and_simulation_need_no_scipy(tmp_path):
    """SciPy serves the applications that fit, filter and integrate adaptively; nothing else may import it."""
    code = f"""
import sys
sys.modules["scipy"] = None  # every import of it fails
import numpy as np
import armdyn
arm = armdyn.load("scara")
arm.inertia_matrix(np.zeros((3, arm.n)))
armdyn.simulate(arm, duration=0.01, method="RK4")
from armdyn.simulation import Actuators, PDGravity
held = Actuators(period=0.002)
armdyn.simulate(arm, duration=0.01, torque=PDGravity(arm.rest, 10.0, 1.0), actuators=held)
arm.emit_c({str(tmp_path)!r})
arm.save({str(tmp_path / "arm.toml")!r})
"""
    assert not any(m.startswith("scipy.") for m in loaded(code))


FORKS = """
import importlib.abc, importlib.machinery, os, signal, sys, threading, warnings

warnings.simplefilter("ignore")
parent, asked, forked = os.getpid(), threading.Event(), threading.Event()
places = ["numpy.linalg", "armdyn.files.dh_table", "armdyn.kernels.kernel", "end"]

class Stop(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != places[0] or os.getpid() != parent:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def stop(module):
            if os.getpid() == parent:
                asked.set()
                forked.wait(60)
                forked.clear()
            execute(module)

        spec.loader.exec_module = stop
        return spec

def work():
    arm = armdyn.from_dh([{"a": 0.5, "alpha": 0, "d": 0, "mass": 1, "com": [-0.2, 0, 0]}])
    arm.gravity_load([0.1])
    armdyn.simulate(arm, [0.1], duration=0.01)

sys.meta_path.insert(0, Stop())
import armdyn
thread = threading.Thread(target=lambda: (work(), asked.set()))
thread.start()
while asked.wait(30) and not asked.clear() and len(places) > 1:
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        work()
        os._exit(0)
    print(places.pop(0), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    forked.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_process_may_fork_while_a_thread_imports():
    """The child can do all that the thread does; its imports would wait for locks that no thread holds any more."""
    run = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=200)
    places = ("numpy.linalg", "armdyn.files.dh_table", "armdyn.kernels.kernel")
    assert run.stdout.splitlines() == [f"{place} 0" for place in places], run.stderr
