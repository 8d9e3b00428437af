"""Robots as vendors ship them, against Pinocchio: ``python benchmarks/vendor_files.py FOLDER [FOLDER ...]``.

Each folder holds clones of vendors' repositories; what is absent is skipped. A file is loaded with its arguments, its
URDF text is given to Pinocchio, and inertia matrix and gravity load are compared at random postures. Notes are printed:
they say what of a file was not carried over.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import armdyn
from armdyn.errors import ArmdynError
from armdyn.files.urdf_tree import urdf_text

# Repository, file in it, and the arguments that select a robot.
FILES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *(
        ("Universal_Robots_ROS2_Description", "urdf/ur.urdf.xacro", {"ur_type": kind, "name": "ur"})
        for kind in ("ur3e", "ur5e", "ur10e", "ur16e")
    ),
    *(("franka_description", f"robots/{kind}/{kind}.urdf.xacro", {}) for kind in ("fr3", "fer", "fp3")),
    ("ros2_kortex", "kortex_description/robots/gen3.xacro", {"dof": 7}),
    *(("xarm_ros2", "xarm_description/urdf/xarm_device.urdf.xacro", {"dof": dof}) for dof in (5, 6, 7)),
    ("kuka_experimental", "kuka_kr10_support/urdf/kr10r1100sixx.xacro", {}),
    ("fanuc", "fanuc_lrmate200id_support/urdf/lrmate200id.xacro", {}),
    ("abb", "abb_irb2400_support/urdf/irb2400.xacro", {}),
    ("lbr_fri_ros2_stack", "lbr_description/urdf/iiwa14/iiwa14.xacro", {}),
    ("openarm_description", "urdf/robot/v10.urdf.xacro", {}),
    # written for the tests: the same constructs
    ("acme_ros2", "Acme_ROS2_Description/urdf/acme.urdf.xacro", {"acme_type": "acme5"}),
    ("cortex_ros2", "cortex_description/robots/cortex.urdf.xacro", {"arm": "gen3", "dof": 6, "gripper": "clamp"}),
    ("cuca_experimental", "cuca_kr5_support/urdf/kr5.xacro", {}),
    ("franca", "franca_description/robots/f3/f3.urdf.xacro", {"hand": False}),
    ("zarm_ros2", "zarm_description/urdf/zarm_device.urdf.xacro", {}),
)


def difference(path: Path, arguments: dict[str, Any], folder: Path) -> tuple[float, tuple[str, ...]]:
    """The largest relative difference of H and g to Pinocchio's at three postures, and the notes."""
    arm = armdyn.load(path, xacro=arguments, package_dirs=[folder], snap=0)
    model = pin.buildModelFromXML(urdf_text(path, arguments, [folder])[0].decode(), mimic=True)
    data, rng, largest = model.createData(), np.random.default_rng(0), 0.0
    for q in arm.postures(rng, 3):
        full = pin.neutral(model)
        for joint, x in zip(arm.joints, q, strict=True):
            at = model.joints[model.getJointId(joint.name)]
            full[at.idx_q : at.idx_q + at.nq] = [x] if at.nq == 1 else [np.cos(x), np.sin(x)]
        order = [model.joints[model.getJointId(joint.name)].idx_v for joint in arm.joints]
        H = pin.crba(model, data, full)
        H = (np.triu(H) + np.triu(H, 1).T)[np.ix_(order, order)] + np.diag(arm.rotor_inertias)
        g = pin.computeGeneralizedGravity(model, data, full)[order]
        for ours, theirs in ((arm.inertia_matrix(q), H), (arm.gravity_load(q), g)):
            largest = max(largest, float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-9)))
    return largest, arm.notes


def rows(folders: list[Path]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(file, result, notes) of every file of the table that is in one of the folders."""
    for repository, name, arguments in FILES:
        for folder in folders:
            path = folder / repository / name
            if not path.is_file():
                continue
            called = " ".join([f"{repository}/{name}", *(f"{key}={value}" for key, value in arguments.items())])
            try:
                off, notes = difference(path, arguments, folder / repository)
                yield called, f"{off:.1e}", notes
            except ArmdynError as error:
                yield called, f"{type(error).__name__}: {error}", ()


if __name__ == "__main__":
    for called, result, notes in rows([Path(word) for word in sys.argv[1:]]):
        print(f"{called}: {result}")
        for note in notes:
            print(f"    {note}")
