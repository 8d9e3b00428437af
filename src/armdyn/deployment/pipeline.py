"""`armdyn.pipeline`: from a log to code for a controller in one call, with a manifest."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Unpack

from armdyn.arm import Arm, as_arm
from armdyn.deployment import manifest
from armdyn.deployment.deploy import TARGETS, folder
from armdyn.deployment.readme import line, listed_files
from armdyn.deployment.request import Request
from armdyn.deployment.servo_pipeline import ServoPipelineResult, servo_pipeline
from armdyn.deployment.verdict import Verdict, verdict
from armdyn.errors import InputError, choose
from armdyn.identification import report
from armdyn.identification.identify import identify
from armdyn.identification.log import Log
from armdyn.identification.result import Estimate
from armdyn.kernels.emission import Progress
from armdyn.options import (
    CodeOptions,
    Delivery,
    Drivetrain,
    Filtering,
    Fitting,
    Origin,
    PipelineKeywords,
    Record,
    Terms,
    flat_keywords,
)
from armdyn.pages.writer import escape, table

MODEL = "The model"  # what the verdict is on
STEPS = ("reading the log", "identifying", "validating", "writing the arm", "writing code")


@dataclass(frozen=True)
class PipelineResult:
    """The result of a pipeline: the estimate, the verdict, and the files written."""

    estimate: Estimate
    verdict: Verdict
    files: tuple[Path, ...]
    manifest: Mapping[str, Any]

    @property
    def deployed(self) -> bool:
        """Whether code for a controller was written."""
        return bool(self.manifest["verdict"]["deployed"])


@flat_keywords(
    terms=Terms,
    filtering=Filtering,
    drivetrain=Drivetrain,
    fitting=Fitting,
    code=CodeOptions,
    origin=Origin,
    delivery=Delivery,
)
def pipeline(
    log: str | os.PathLike[str],
    arm: Arm | str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    validate: str | os.PathLike[str] | None = None,
    held_out: float = 0.3,
    reading: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    terms: Terms = Terms(),
    filtering: Filtering = Filtering(),
    drivetrain: Drivetrain = Drivetrain(),
    fitting: Fitting = Fitting(),
    code: CodeOptions = CodeOptions(),
    origin: Origin = Origin(),
    delivery: Delivery = Delivery(),
    **keywords: Unpack[PipelineKeywords],
) -> PipelineResult | ServoPipelineResult:
    """Identify an arm from a log, validate it on held-out data, and write the arm, a URDF, a report and code.

    Code is written only if the model passes the validation (the checks and their limits are in the result's `verdict`),
    or with `force`. The arm, URDF, report and manifest are always written. Of a log of commands and positions without
    torques, servos are identified (`identify_servo`), and the code is the control law `servo_feedforward`: position
    commands that compensate gravity, inertia and friction.

    Parameters
    ----------
    log
        The file of the log.
    arm
        The arm (an Arm, a catalogue name or a path): its geometry, and its inertias as the prior.
    directory
        The folder to write. A new one appears complete or not at all. Files of an earlier pipeline that this one does
        not write are removed, the code of a model that failed the validation included; a folder that contains any
        other files is refused, unless `overwrite` is set.
    urdf, cut
        The URDF from which the arm was loaded, and the `base`, `tip`, `lock` and `floating` that were used: a copy with
        the identified inertias, and every other byte unchanged, is written as ``robot.urdf``. By default the path
        given as `arm`, if it is that of a URDF.
    validate
        Another log for validation. Without one, the last part of the log is held out of the fit.
    held_out
        The fraction of the log that is held out.
    targets, quantities, dtype, parameters, frame, cpus, measure_stack, binary, error_bound
        The code to write; see `deploy`. Those that only some targets have (`cpus`, `binary`, `error_bound`) are for
        those of `targets`. The code includes joint friction unless ``code=CodeOptions(friction=False)``.
    force
        Write code even if the validation fails; the manifest records this.
    build, overwrite
        Whether the code is built and tested before it is written, and whether to write among files of others; see
        `deploy`.
    reading
        Options for `Log.read`; `effort`, `start` and `until` are about the log of the fit only.
    progress
        Called with (done, total, name of the step).
    terms, filtering, drivetrain, fitting, code, origin, delivery
        The keywords as records of `armdyn.options`, to be used more than once. All keywords of `identify` are taken,
        `friction` being that of the identification.
    """
    urdf, targets = origin.urdf, delivery.targets
    if urdf is None and not isinstance(arm, Arm) and Path(arm).suffix.lower() == ".urdf":
        urdf = arm
    arm = as_arm(arm, "pipeline")
    manifest.check_folder(directory, delivery.overwrite)
    for target in targets:
        choose("target", target, TARGETS)
    say = _steps(progress)
    say(0)
    read = {"joints": [joint.name for joint in arm.joints], **(reading or {})}
    fitted, other = _logs(log, validate, held_out, read)
    inputs = _inputs({"log": log, "effort": read.get("effort"), "validate": validate, "urdf": urdf}, arm)
    say(1)
    if not fitted.drive:
        if (terms, filtering, drivetrain, fitting) != (Terms(), Filtering(), Drivetrain(), Fitting()):
            raise InputError(
                "this log has commands and no torques: its servos are identified, to which the options of terms,"
                " filters, drive trains and fits do not apply"
            )
        settings = {"held_out": held_out if validate is None else None, "reading": dict(reading or {}),
                    "targets": list(targets), "code": recorded(code)}  # fmt: skip
        about = {"inputs": inputs, "settings": settings}
        return servo_pipeline(arm, (fitted, other), directory, code, delivery, about, progress)
    estimate = identify(
        arm, fitted, validate=other, terms=terms, filtering=filtering, drivetrain=drivetrain, fitting=fitting
    )
    say(2)
    found = verdict(estimate, other, fitted)
    say(3)
    deployed = found.carries_over or delivery.force
    contents = _arm_files(estimate, urdf, origin.cut or {}) | {
        "report.html": _report(estimate, found, deployed).encode()
    }
    if deployed:
        for target in targets:
            say(4)
            request = Request.of(estimate.arm, delivery.quantities, applicable(code, target, targets))
            made = folder(TARGETS[target], request, code.build)
            contents |= {f"{target}/{name}": content for name, content in made.items()}
    contents["README.md"] = _readme(estimate, found, deployed, contents).encode()
    settings = {
        "held_out": held_out if validate is None else None,
        "targets": list(targets),
        "quantities": None if delivery.quantities is None else list(delivery.quantities),
        "reading": dict(reading or {}),
        "code": recorded(code),
        "identify": recorded(terms) | recorded(filtering) | recorded(drivetrain) | recorded(fitting),
    }
    about = _about(estimate, found, deployed) | {
        "inputs": inputs,
        "settings": settings,
    }
    contents = manifest.with_manifest(contents, _finite(about))
    return PipelineResult(estimate, found, tuple(manifest.write(directory, contents, delivery.overwrite)), about)


def applicable(code: CodeOptions, target: str, targets: Sequence[str]) -> CodeOptions:
    """The options of one of several targets: without those that another of them has and this one has not."""
    only_some = ("cpus", "binary", "error_bound")
    others = [name for name in only_some if any(getattr(TARGETS[one], name) for one in targets)]
    usual = CodeOptions()
    return replace(code, **{name: getattr(usual, name) for name in others if not getattr(TARGETS[target], name)})


def recorded(options: Record) -> dict[str, Any]:
    """The options as JSON can represent them, an arm by its name and fingerprint."""

    def plain(value: Any) -> Any:
        if isinstance(value, Arm):
            return {"name": value.name, "fingerprint": value.fingerprint}
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    return {one.name: plain(getattr(options, one.name)) for one in fields(options)}


def _about(estimate: Estimate, found: Verdict, deployed: bool) -> dict[str, Any]:
    """The part of the manifest about the result."""
    return {
        "armdyn pipeline": 1,
        "versions": manifest.versions(),
        "figures": found.figures,
        "verdict": found.summary(deployed),
        "warnings": [*estimate.warnings],
        "notes": [*estimate.notes],
        "left_behind": estimate.left_behind,
    }


def _steps(progress: Progress | None) -> Any:
    def say(k: int) -> None:
        if progress:
            progress(k, len(STEPS), STEPS[k])

    return say


def _logs(
    log: str | os.PathLike[str], validate: str | os.PathLike[str] | None, held_out: float, reading: Mapping[str, Any]
) -> tuple[Log, Log]:
    """The log to fit and the log for validation."""
    data = Log.read(log, **reading)
    if validate is not None:
        plain = {key: value for key, value in reading.items() if key not in ("effort", "start", "until")}
        return data, Log.read(validate, **plain)
    if not 0 < held_out < 1:
        raise InputError(f"held_out must be a fraction of the log between 0 and 1, got {held_out}")
    return data.part(0, 1 - held_out), data.part(1 - held_out, 1)


def _arm_files(estimate: Estimate, urdf: str | os.PathLike[str] | None, cut: Mapping[str, Any]) -> dict[str, bytes]:
    """The identified arm and the report, by file name."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        estimate.save(here / "arm.toml")
        estimate.to_urdf(here / "arm.urdf", force=True)  # the verdict decides whether code is written
        if urdf is not None:
            estimate.arm.update_urdf(urdf, here / "robot.urdf", **cut)
        return {path.name: path.read_bytes() for path in sorted(here.iterdir())}


def _report(estimate: Estimate, found: Verdict, deployed: bool) -> str:
    """The report of the identification with the verdict above it."""
    text = f"<p><b>{escape(found.sentence(MODEL, deployed))}</b></p>"
    text += table("", ["check", "result", "figure", "limit"], [check.row for check in found.checks])
    text += "".join(f'<div class="warn">{escape(failure)}</div>' for failure in found.failures)
    text += "".join(f'<div class="warn">{escape(note)}</div>' for note in found.notes)
    return report.page(estimate, [("verdict", "Verdict", text)])


WHAT = {
    "arm.toml": "the complete identified model; read it with `armdyn.load`",
    "arm.urdf": "the identified arm as a URDF",
    "arm.srdf": "its rotor inertias, for `pinocchio.loadRotorParameters`",
    "robot.urdf": "the original URDF with the identified masses and inertias, otherwise unchanged",
    "report.html": "the validation report: measured and predicted torques, parameters, and warnings",
    "manifest.json": "hashes of the inputs and outputs, versions, settings, error figures and the verdict",
}


def _readme(estimate: Estimate, found: Verdict, deployed: bool, contents: Mapping[str, bytes]) -> str:
    """The README of the folder: the verdict with its checks, the files, and the warnings."""
    files = listed_files(WHAT, contents, "see the README in that folder")
    name, log = line(estimate.given.name), line(estimate.training.source)
    parts = [f"# {name}: identified from {log}", "", *found.readme(MODEL, deployed), *files]
    doubts = [*found.notes, *estimate.warnings, *left_behind(estimate)]
    if doubts:
        parts += ["## Warnings", "", *(f"- {line(text)}" for text in doubts), ""]
    return "\n".join(parts)


def left_behind(estimate: Estimate) -> list[str]:
    """A note on the identified effects that an `Arm`, and therefore the code, cannot represent."""
    names = ", ".join(estimate.left_behind)
    return (
        [f"identified, but not included in the code, because the arm model cannot represent it: {names}"]
        if names
        else []
    )


def _inputs(files: Mapping[str, Any], arm: Arm) -> dict[str, Any]:
    """Hashes of the files that were read, and the arm's fingerprint."""
    hashes: dict[str, Any] = {key: manifest.of_path(path) for key, path in files.items() if path is not None}
    return hashes | {"arm": {"name": arm.name, "fingerprint": arm.fingerprint}}


def _finite(x: Any) -> Any:
    """The same data with lists in place of arrays, and None in place of NaN and infinities, for JSON."""
    if hasattr(x, "tolist"):
        return _finite(x.tolist())
    if isinstance(x, Mapping):
        return {str(key): _finite(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
