"""`armdyn.pipeline` for logs of commands and positions: servos instead of torques, code in position units."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.control import controller
from armdyn.deployment import manifest
from armdyn.deployment.deploy import TARGETS, folder
from armdyn.deployment.readme import line, listed_files
from armdyn.deployment.request import Request
from armdyn.deployment.verdict import WORSE, Check, Verdict, repeats
from armdyn.errors import InputError
from armdyn.identification.log import Log
from armdyn.identification.servo import Progress as ServoProgress
from armdyn.identification.servo import identify_servo
from armdyn.identification.servo_result import ServoEstimate
from armdyn.options import CodeOptions, Delivery

LAW = "servo_feedforward"
WHAT = {
    "arm.toml": "the arm with its servos, rotor inertias and friction; read it with `armdyn.load`",
    "arm.urdf": "the same as a URDF",
    "arm.xml": "the same as MJCF, with position actuators",
    "parameters.json": "all parameters, with standard deviations and what the log does not determine",
    "manifest.json": "hashes of the inputs and outputs, versions, settings, error figures and the verdict",
}


@dataclass(frozen=True)
class ServoPipelineResult:
    """The result of a pipeline of servos: the estimate, the verdict, and the files written."""

    estimate: ServoEstimate
    verdict: Verdict
    files: tuple[Path, ...]
    manifest: Mapping[str, Any]

    @property
    def deployed(self) -> bool:
        """Whether code for a controller was written."""
        return bool(self.manifest["verdict"]["deployed"])


def servo_pipeline(
    arm: Arm, logs: tuple[Log, Log], directory: str | os.PathLike[str], code: CodeOptions, delivery: Delivery,
    about: Mapping[str, Any], progress: ServoProgress | None,
) -> ServoPipelineResult:  # fmt: skip
    """Identify servos from the first log, predict the second, and write arm, URDF, MJCF and code.

    The servos take no torques, so the code is the control law `servo_feedforward`: position commands that compensate
    gravity, inertia and friction. `about` is what the manifest says of inputs and settings.
    """
    refused = [target for target in delivery.targets if not TARGETS[target].controllers]
    if refused:
        able = ", ".join(name for name, target in TARGETS.items() if target.controllers)
        raise InputError(
            f"target {', '.join(refused)} writes no control laws, which is all that servos take; give {able}"
        )
    estimate = identify_servo(arm, logs[0], progress=progress)
    found = verdict(estimate, *reversed(logs))
    deployed = found.carries_over or delivery.force
    with tempfile.TemporaryDirectory() as apart:
        contents = {path.name: path.read_bytes() for path in estimate.save(Path(apart) / "out")}
    if deployed:
        law = controller(estimate.arm, LAW, friction=True)
        for target in delivery.targets:
            wanted = delivery.quantities or ("gravity_load",)
            request = replace(Request.of(estimate.arm, wanted, code), controllers=(law,))
            contents |= {
                f"{target}/{name}": text for name, text in folder(TARGETS[target], request, code.build).items()
            }
    contents["README.md"] = _readme(estimate, found, deployed, contents).encode()
    told = {
        "armdyn pipeline": 1, "versions": manifest.versions(), "figures": found.figures,
        "verdict": found.summary(deployed),
        "warnings": [*estimate.doubts], "notes": [*estimate.notes], **about,
    }  # fmt: skip
    contents = manifest.with_manifest(contents, told)
    files = tuple(manifest.write(directory, contents, delivery.overwrite))
    return ServoPipelineResult(estimate, found, files, told)


def verdict(estimate: ServoEstimate, held_out: Log, fitted: Log) -> Verdict:
    """Whether the positions of the log that was not fitted are predicted about as well as those of the fit."""
    errors = estimate.errors(held_out)
    floor = np.maximum(estimate.noise, estimate.resolution / np.sqrt(12))
    ratio, worst = float(np.max(errors / floor)), int(np.argmax(errors / floor))
    name = estimate.given.joint_names[worst]
    words = (
        f"predicted positions of {name} are off by {1e3 * errors[worst]:.3g} mrad or mm (root mean square), {ratio:.2g}"
        f" times as much as in the fit (at most {WORSE:g} times)"
    )
    doubts = "; ".join(estimate.doubts) or "the fit converged and explains the positions down to their noise"
    checks = (
        Check("held-out positions", ratio, WORSE, words),
        Check("trusted", float(not estimate.trusted), 0.0, doubts),
    )
    figures = {"fit_noise": estimate.noise.tolist(), "held_out_errors": errors.tolist(), "held_out_ratio": ratio}
    return Verdict(checks, figures, repeats(fitted, held_out))


def _readme(estimate: ServoEstimate, found: Verdict, deployed: bool, contents: Mapping[str, bytes]) -> str:
    parts = [
        f"# {line(estimate.given.name)}: servos identified from commands and positions",
        "",
        *found.readme("The servos", deployed),
    ]
    parts += [
        "The servos take no torques. The code gives position commands: the reference plus the torques that gravity,",
        "inertia and friction need, divided by the servos' gain. With velocities and accelerations of 0 it compensates",
        "gravity.",
        "",
    ]
    parts += [
        *listed_files(WHAT, contents, f"the control law `{LAW}`"),
        "## What the log determines",
        "",
        *(f"- {line(str(c))}" for c in estimate.identifiable),
        "",
    ]
    if estimate.undetermined:
        parts += [f"Not determined: {', '.join(estimate.undetermined)}; {estimate.advice}.", ""]
    return "\n".join(parts)
