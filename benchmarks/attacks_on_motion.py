"""The attacks of the campaign on motion and delivery: simulations, backends, deployed code, sweeps, pages, logs."""

from __future__ import annotations

import atexit
import functools
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import armdyn
from armdyn.arm import Arm
from armdyn.chain.joint import Limit
from armdyn.errors import ArmdynError, InputError
from armdyn.files import toml
from armdyn.formulations import QUANTITIES
from attacks_on_files import Failure
from bridge_contract import arrays
from random_trees import TreeKind, random_tree
from single_precision import reference

STEP = 5e-4  # s, of the simulations
DRIFT = 1e-4  # of the largest kinetic energy: what a finished run may gain
TOLERANCE = 1e-9  # between backends, of a result's largest entry, times the inertia matrix's condition


def _arm(seed: int, most: int, **kind: Any) -> Arm:
    """A random tree with friction, stops and effort limits at some of its joints."""
    rng = random.Random(seed)
    chain = random_tree(TreeKind(joints=rng.randint(1, most), fork=0.3, mimic=0.2, rotors=True, **kind), seed)

    def joint(j: Any) -> Any:
        if j.free:
            return j
        viscous, coulomb = (rng.choice([0.0, round(rng.uniform(0, 2), 2)]) for _ in range(2))
        ends = (None, None) if j.mimic or rng.random() < 0.5 else (-rng.uniform(0.1, 1.5), rng.uniform(0.1, 1.5))
        effort = rng.choice([None, 5.0])
        return replace(j, viscous=viscous, coulomb=coulomb, limit=Limit(*ends, None, effort))

    return Arm("drawn", replace(chain, joints=tuple(map(joint, chain.joints))), snap=0.0)


def _case(arm: Arm, **about: Any) -> str:
    return f"# {json.dumps(about, default=str)}\n" + toml.text(arm.description)


# Simulations.


def _energy(run: Any, free: bool) -> str:
    """What is wrong with the energy of a run without torques: it must not grow, and stay where nothing takes it."""
    kinetic = np.abs(run.arm.kinetic_energy(run.q, run.qd))
    gained = (run.energy - run.energy[..., :1]) / (1e-3 + np.nanmax(kinetic, axis=-1, keepdims=True))
    if np.nanmax(gained) > DRIFT:
        return f"gained {np.nanmax(gained):.2g} of its kinetic energy"
    if free and np.nanmin(gained) < -DRIFT:
        return f"lost {-np.nanmin(gained):.2g} of its kinetic energy"
    return ""


def simulations(seed: int, folder: Path) -> Failure | None:
    """Energy, lanes and stops of a random robot: a run that says "finished" is right."""
    rng = np.random.default_rng(seed)
    arm = _arm(seed, 3, floating=bool(rng.random() < 0.3))
    method = ("RK4", "RK5", "AB4", "ARK4")[seed % 4]
    friction, limits = bool(rng.random() < 0.6), (False, 0.0, 0.7)[int(rng.integers(3))]
    q0 = np.tile(arm.rest, (5, 1))
    q0[:, arm.chain.nq - arm.n :] += rng.uniform(-0.05, 0.05, (5, arm.n))
    qd0 = rng.normal(size=(5, arm.chain.nv))
    qd0[4] *= 1e3  # ends early, or wanders far; nobody else may notice
    given = {"duration": 0.25, "step": STEP, "method": method, "friction": friction, "limits": limits}
    about = {"seed": seed, **given}
    whole = armdyn.simulate(arm, q0, qd0, **given)
    for lane in (0, 3):
        one = armdyn.simulate(arm, q0[lane], qd0[lane], **given)
        if not np.array_equal(one.q, whole.q[lane, : len(one.t)], equal_nan=True):
            return Failure(f"lane {lane} depends on the others", _case(arm, **about), ".toml")
        if one.status == "finished" and (wrong := _energy(one, not friction and limits is False)):
            return Failure(f"finished, but {wrong}", _case(arm, **about), ".toml")
        ends = np.array(arm.limits, float)
        q = one.q[:, arm.chain.nq - arm.n :]
        if limits is not False and not np.all((q >= ends[:, 0] - 1e-9) & (q <= ends[:, 1] + 1e-9)):
            return Failure("a joint is beyond its stop", _case(arm, **about), ".toml")
    if not friction and limits is False:
        return _against_adaptive(arm, q0[0], qd0[0], about)
    return None


def _against_adaptive(arm: Arm, q0: Any, qd0: Any, about: dict[str, Any]) -> Failure | None:
    """The same smooth motion by a fixed step and by an adaptive method; the momentum of a base that floats freely."""
    common = {"duration": 0.1, "friction": False, "limits": False}
    fixed = armdyn.simulate(arm, q0, qd0, method="RK4", step=1e-4, **common)
    other = armdyn.simulate(arm, q0, qd0, method="DOP853", rtol=1e-10, atol=1e-12, **common)
    if fixed.status == other.status == "finished":
        apart = np.abs(fixed.q[-1] - other.q[-1]).max() / (1 + np.abs(other.q[-1]).max())
        if not apart < 1e-6:
            return Failure(f"RK4 and DOP853 are {apart:.2g} apart", _case(arm, **about), ".toml")
    if arm.floating:
        still = arm.with_gravity((0.0, 0.0, 0.0))
        run = armdyn.simulate(still, q0, qd0, method="RK4", step=1e-4, **common)
        momenta = np.asarray(still.centroidal_momentum(run.q, run.qd))
        lost = np.abs(momenta - momenta[0]).max() / (1e-6 + np.abs(momenta[0]).max())
        if run.status == "finished" and not lost < 1e-6:
            return Failure(f"{lost:.2g} of the momentum is lost", _case(still, **about), ".toml")
    return None


# The same program in every backend.


@functools.lru_cache
def _bridges() -> dict[str, Any]:
    """The bridges that are installed: each makes a function of arrays from a kernel."""

    def casadi(kernel: Any) -> Any:
        function, shapes = kernel.casadi(), [shape for _, shape in kernel.assembly.outputs]

        def called(*x: Any) -> list[Any]:
            found = function(*[np.reshape(a, function.size_in(k)) for k, a in enumerate(x)])
            parts = found if isinstance(found, tuple | list) else [found]
            return [np.reshape(np.asarray(part, float), shape) for part, shape in zip(parts, shapes, strict=True)]

        return called

    def jax(kernel: Any) -> Any:
        import jax as library

        library.config.update("jax_enable_x64", True)
        return kernel.jax()

    found: dict[str, Any] = {}
    for name, make in (("casadi", casadi), ("jax", jax)):
        try:
            __import__(name)
        except ImportError:
            continue
        found[name] = make
    return found


def _options(arm: Arm, quantity: str, rng: random.Random) -> dict[str, Any]:
    takes, options = QUANTITIES[quantity].takes, {}
    for name in ("friction", "tool_wrench"):
        if name in takes and rng.random() < 0.5:
            options[name] = True
    if "parameters" in takes and rng.random() < 0.5:
        options["parameters"] = "runtime"
    if "frame" in takes and (options.get("tool_wrench") or "tool_wrench" not in takes):
        options["frame"] = rng.choice(arm.frame_names)
    return options


def backends(seed: int, folder: Path) -> Failure | None:
    """A quantity of a random robot by machine code, NumPy, C, WebAssembly, CasADi and JAX."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    arm = _arm(seed, 4, floating=rng.random() < 0.3)
    names = [name for name in QUANTITIES if name not in ("payload_parameters", "pose_error")]
    quantity = names[seed % len(names)]
    options = _options(arm, quantity, rng)
    about = {"seed": seed, "quantity": quantity, "options": options}
    try:
        kernel = arm.kernel(quantity, **options)
        kernel.assembly.function  # noqa: B018
    except InputError:
        return None
    state = []
    for name, shape in kernel.assembly.inputs:
        x = numbers.uniform(-1.5, 1.5, shape)
        if name in ("q", "q0", "q1") and arm.floating:
            x[3:7] /= np.linalg.norm(x[3:7])
        state.append(np.asarray(arm.minimal_parameters.values, float) if name == "parameters" else x)
    expected = _flat(kernel(*state))
    condition = np.linalg.cond(arm.inertia_matrix(state[0])) if np.shape(state[0]) == (arm.chain.nq,) else 1.0
    limit = TOLERANCE * condition * (1e-30 + np.abs(expected).max(initial=0))
    got = {"numpy": _flat(arm.kernel(quantity, backend="numpy", **options)(*state))}
    for name, make in _bridges().items():
        got[name] = _flat(make(kernel)(*state))
    if shutil.which("node"):
        got["wasm"] = _by_node(kernel, quantity, state, folder)
    for name, values in got.items():
        if values.shape != expected.shape or not np.all(np.abs(values - expected) <= limit):
            return Failure(f"{quantity} by {name} differs from machine code", _case(arm, **about), ".toml")
    if seed % 4 == 0 and shutil.which("cc"):  # builds, runs and compares by itself
        common = {key: options[key] for key in ("parameters", "frame") if key in options}
        try:
            armdyn.deploy(arm, folder / "c", "c", [quantity], friction="friction" in options, measure_stack=False,
                          **{"parameters": "baked", **common})  # fmt: skip
        except InputError:
            pass
        except ArmdynError as error:
            return Failure(f"{quantity} in C: {error}", _case(arm, **about), ".toml")
    return None


def devices(seed: int, folder: Path) -> Failure | None:
    """A quantity of a catalogue's arm or a random tree on the first graphics device, in single precision.

    The bound is that of the tests, 100 units in the last place of the largest number of the program, times a thousandth
    of the inertia matrix's condition if that is more.
    """
    if not find_spec("wgpu") or not armdyn.gpu.devices():
        return None
    rng, names = random.Random(seed), armdyn.catalogue()
    arm = armdyn.load(rng.choice(names)) if seed % 2 else _arm(seed, 6, floating=rng.random() < 0.3)
    quantities = [name for name, entry in QUANTITIES.items() if name != "held_dynamics" and not entry.dof]
    quantity = quantities[seed // 2 % len(quantities)]
    options = _options(arm, quantity, rng)
    try:
        kernel = arm.kernel(quantity, backend="gpu", **options)
        kernel.assembly.function  # noqa: B018
    except InputError:
        return None
    given = [x.astype(np.float32) for x in arrays(kernel, 65, seed=seed)]
    expected, bound = reference(kernel.program, given)
    by_name = dict(zip((port.name for port in kernel.program.inputs), given, strict=True))
    if "q" in by_name:
        bound = bound * np.maximum(1.0, 1e-3 * np.linalg.cond(arm.inertia_matrix(by_name["q"].astype(float))))
    got = kernel(*given)
    for own, other in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
        error = np.abs(own - other).reshape(len(other), -1).max(axis=1, initial=0.0)
        if own.shape != other.shape or not np.all(error <= bound):
            about = {"seed": seed, "quantity": quantity, "options": options, "error": float(np.max(error / bound))}
            return Failure(f"{quantity} of {arm.name} on a device differs from double precision", _case(arm, **about))
    return None


def _flat(result: Any) -> np.ndarray:
    parts = result if isinstance(result, tuple | list) else (result,)
    return np.concatenate([np.ravel(np.asarray(part, float)) for part in parts])


def _by_node(kernel: Any, quantity: str, state: list[Any], folder: Path) -> np.ndarray:
    from node import run_modules

    shapes = [shape for _, shape in kernel.assembly.outputs]
    results = run_modules(kernel.wasm(), {quantity: ([np.asarray(x)[None] for x in state], shapes)}, folder)
    return _flat([np.asarray(x)[0] for x in results[quantity]])


# Deployed folders.

WORDS = (
    "model", "fmu", "dynamics", "math", "stdint", "main", "NULL", "INFINITY", "Eigen", "class", "double", "con", "aux",
    "std", "sin", "M_PI", "fmi3Functions", "armdyn", "test", "Makefile", "README", "a b", "ü-bär", "7dof", "-", "",
    "x" * 300, "../up", "a/b", "*/", "\\", '"', "%s", "${HOME}", "\n", "int main", "N", "_", "__init__", "é", "日本",
)  # fmt: skip


def deployments(seed: int, folder: Path) -> Failure | None:
    """A random robot with a random name: its folder builds and passes its own test, or it is refused with reasons."""
    rng = random.Random(seed)
    name = rng.choice(WORDS) if rng.random() < 0.7 else "".join(chr(rng.randrange(32, 0x250)) for _ in range(9))
    arm = replace(_arm(seed, 3), name=name)
    target = ("c", "fmu", "cpp", "wasm")[seed % 4]
    options: dict[str, Any] = {"parameters": rng.choice(["runtime", "baked"]), "friction": rng.random() < 0.7}
    if target in ("c", "cpp"):
        options |= {"dtype": rng.choice(["double", "float"]), "measure_stack": False}
        if rng.random() < 0.3:
            options["controllers"] = [rng.choice(["computed_torque", "gravity_compensation", "momentum_observer"])]
    about = {"seed": seed, "name": name, "target": target, **options}
    try:
        written = armdyn.deploy(arm, folder / "out", target, **options)
    except InputError:
        return None
    except Exception as error:  # code that does not compile or fails its test, and anything that is no error of ours
        return Failure(f"{target} of {name!r}: {type(error).__name__}: {error}", _case(arm, **about), ".toml")
    outside = [path for path in written if (folder / "out") not in Path(path).resolve().parents]
    passed = json.loads((folder / "out" / "manifest.json").read_text())["test"]
    if outside or "passed" not in passed:
        return Failure(f"{target} of {name!r}: {passed}, outside: {outside}", _case(arm, **about), ".toml")
    return None


# Sweeps that are killed.


def killed_sweeps(seed: int, folder: Path) -> Failure | None:
    """A sweep whose processes are killed at random moments ends with the bits of one that was left alone."""
    rng = random.Random(seed)
    script = folder / "study.py"
    script.write_text(STUDY, encoding="utf-8")
    whole, broken = folder / "whole.zarr", folder / "broken.zarr"

    def start(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, str(script), str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder
        )

    begun = time.monotonic()
    first = start(whole)
    said = first.communicate()[1].decode()
    if first.returncode:
        return Failure(f"a sweep that was left alone failed: {said[-300:]}", f"seed {seed}")
    most = time.monotonic() - begun
    for _ in range(3):
        clients = [start(broken) for _ in range(rng.randint(1, 2))]
        time.sleep(rng.uniform(0.3, 1.0) * most)
        for client in clients:
            client.send_signal(signal.SIGKILL)
            client.communicate()
    last = start(broken)
    said = last.communicate()[1].decode()
    if last.returncode:
        return Failure(f"a sweep could not go on after kill -9: {said[-300:]}", f"seed {seed}")
    import xarray

    with xarray.open_zarr(whole) as a, xarray.open_zarr(broken) as b:
        if not np.array_equal(a.tau.values, b.tau.values):
            return Failure("a sweep that was killed has other results", f"seed {seed}")
    return None


STUDY = """
import sys
from dataclasses import dataclass

import numpy as np

import armdyn


@dataclass(frozen=True)
class Torques:
    def __call__(self, arm, samples):
        q = np.array([[0.1, 0.2, 0.05, -0.3], [1.0, -0.5, 0.1, 0.2]])
        return {"tau": (("sample", "posture", "joint"), samples.evaluate("gravity_load", q).values)}


if __name__ == "__main__":
    arm = armdyn.load("scara")
    samples = armdyn.Uncertain(arm, link_masses=armdyn.Normal(1, 0.1), seed=1).sample(400)
    armdyn.sweep(arm, Torques(), samples, out=sys.argv[1], chunk=20, threads=2)
"""


# Pages.

FALL = """
const done = arguments[arguments.length - 1], robot = JSON.parse(document.getElementById("data").textContent);
Live.load(robot).then((arm) => {
  const world = Live.physics(arm), { arrays } = arm, beyond = [];
  for (let frame = 0; frame < 120; frame++) {
    world.steps(frame % 3 ? 17 : 16);
    robot.stops.forEach(([low, high], i) => {
      const x = arrays.q[robot.first + i];
      if (!(x >= (low ?? -Infinity) && x <= (high ?? Infinity))) beyond.push([frame, robot.names[i], x]);
    });
  }
  done({ beyond: beyond.slice(0, 3), message: world.message, finite: Array.from(arrays.q).every(Number.isFinite) });
});"""


@functools.lru_cache
def _browser() -> Any:
    from browser import Browser

    profile = Path(tempfile.mkdtemp(prefix="campaign-"))
    made = Browser(profile)
    atexit.register(shutil.rmtree, profile, ignore_errors=True)
    atexit.register(made.close)
    return made


def pages(seed: int, folder: Path) -> Failure | None:
    """The page of a random robot opens without an error, and its free fall stays finite and within the stops."""
    from armdyn.pages import document, robot

    if not shutil.which("chromium"):
        return None
    arm = _arm(seed, 4, floating=seed % 4 == 3)
    start = "<main></main>"
    start += "<script>document.addEventListener('started', () => { document.body.dataset.ready = 'yes'; });</script>"
    page = folder / "fall.html"
    page.write_text(document("drawn", start, robot(arm), ("base.js", "dynamics.js", "live.js")), encoding="utf-8")
    _browser().open(page.as_uri())
    got = _browser().wait(FALL)
    errors = _browser().errors()
    if errors or got["beyond"] or got["message"] or not got["finite"]:
        return Failure(f"the page: {errors or got}", _case(arm, seed=seed), ".toml")
    return None


# Logs with faults.


@functools.lru_cache
def _good_log(name: str) -> tuple[Any, Any, float, frozenset[str]]:
    """A simulated log as columns, one to predict, the error from the good log, and what is said of it."""
    import bad_logs
    from bench_selection import Case, simulated

    arm, fit, test = simulated(Case(name, seconds=10.0, off=0.15), 5)
    raw = bad_logs.Raw(arm, *(fit.array(signal) for signal in ("t", "q", "qd", "tau")))
    error, said = bad_logs.outcome(raw, test)
    return raw, test, error, frozenset(_kind(text) for text in said)


def _kind(text: str) -> str:
    return re.sub(r"[^a-z ]", "", text.lower())[:40]


def logs(seed: int, folder: Path) -> Failure | None:
    """A log with a fault is corrected, or doubted in words, or refused: never a confident wrong model."""
    import bad_logs

    raw, test, usual, known = _good_log(("planar3", "scara", "stanford")[seed % 3])
    what = list(bad_logs.FAULTS)[seed % len(bad_logs.FAULTS)]
    rng = np.random.default_rng(seed)
    spoilt = bad_logs.FAULTS[what](raw, int(rng.integers(raw.q.shape[1])), rng)
    error, said = bad_logs.outcome(spoilt, test)
    told = [text for text in said if _kind(text) not in known and not text.startswith("N ")]
    if np.isnan(error) or (error > bad_logs.ABOUT * usual + 0.01 and not told):
        message = f"{raw.arm.name}, {what}: {100 * error:.2g} % instead of {100 * usual:.2g} %, without a word"
        return Failure(message, "\n".join([message, *said]))
    return None


ATTACKS = {
    "simulations": simulations,
    "backends": backends,
    "devices": devices,
    "deployments": deployments,
    "sweeps": killed_sweeps,
    "pages": pages,
    "logs": logs,
}
