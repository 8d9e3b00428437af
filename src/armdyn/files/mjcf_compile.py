"""A script that compiles an MJCF model with the `mujoco` package and prints the data that armdyn needs as JSON.

A malicious model can crash the compiler or exhaust the memory, so `armdyn.files.mjcf` runs this script in a separate
process, with limits on time and memory, in a temporary folder (MuJoCo writes its log to the working directory).
"""

from __future__ import annotations

import json
import sys
from typing import Any

_ARRAYS = (
    *("jnt_type", "jnt_pos", "jnt_axis", "jnt_range", "jnt_limited", "jnt_actfrcrange", "jnt_actfrclimited"),
    *("jnt_dofadr", "jnt_qposadr", "jnt_stiffness", "qpos0", "dof_damping", "dof_frictionloss", "dof_armature"),
    *("body_parentid", "body_jntadr", "body_jntnum", "body_pos", "body_quat", "body_ipos", "body_iquat"),
    *("body_mass", "body_inertia", "site_bodyid", "site_pos", "site_quat"),
    *("eq_type", "eq_obj1id", "eq_obj2id", "eq_objtype", "eq_active0", "eq_data"),
    *("qpos_spring", "body_gravcomp", "tendon_adr", "tendon_num", "tendon_stiffness", "tendon_damping"),
    *("tendon_frictionloss", "tendon_lengthspring", "tendon_limited", "wrap_type", "wrap_objid", "wrap_prm"),
    *("actuator_trntype", "actuator_trnid", "actuator_gear", "actuator_biastype", "actuator_biasprm"),
    *("actuator_gaintype", "actuator_gainprm", "actuator_dyntype", "actuator_forcelimited", "actuator_forcerange"),
    *("actuator_ctrllimited", "actuator_ctrlrange"),
)
# Arrays that only some versions of MuJoCo have; an array of zeros where they are missing.
_NEWER = (
    *("tendon_armature", "actuator_armature", "actuator_damping", "jnt_stiffnesspoly", "dof_dampingpoly"),
    *("tendon_stiffnesspoly", "tendon_dampingpoly"),
)
_COUNTS = ("njnt", "nbody", "nsite", "neq", "nu", "ntendon")
_KINDS = {"joint": "njnt", "body": "nbody", "site": "nsite", "equality": "neq", "tendon": "ntendon", "actuator": "nu"}


def limit(seconds: int, memory: int) -> None:
    """Limit the resources of this process; on Windows only the parent's timeout applies."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))


def compiled(path: str) -> dict[str, Any]:
    """The numbers and names of a compiled model; {"error": ...} or {"missing": True} if it cannot be compiled."""
    try:
        import mujoco
    except ImportError:
        return {"missing": True}
    try:
        model = mujoco.MjModel.from_xml_path(path)
    except ValueError as error:
        return {"error": str(error)}
    return gathered(model)


def gathered(model: Any) -> dict[str, Any]:
    """The numbers and names of a compiled model."""
    import mujoco

    data: dict[str, Any] = {name: getattr(model, name).tolist() for name in _ARRAYS}
    data |= {name: int(getattr(model, name)) for name in _COUNTS}
    for kind, count in _KINDS.items():
        code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        data[f"{kind}_names"] = [mujoco.mj_id2name(model, code, i) for i in range(data[count])]
    data |= {name: getattr(model, name).tolist() if hasattr(model, name) else [] for name in _NEWER}
    data["gravity"] = model.opt.gravity.tolist()
    data["fluid"] = [float(model.opt.density), float(model.opt.viscosity), *model.opt.wind.tolist()]
    flags = {"GRAVITY": "gravity", "PASSIVE": "passive", "SPRING": "spring", "DAMPER": "damper"}
    data["disabled"] = [
        word
        for name, word in flags.items()
        if model.opt.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}", 0))
    ]
    data["name"] = str(model.names[: model.names.index(b"\0")], "utf-8", "replace")
    data["eq"] = {name: int(getattr(mujoco.mjtEq, f"mjEQ_{name}")) for name in ("CONNECT", "WELD", "JOINT", "TENDON")}
    data["wrap"] = {name: int(getattr(mujoco.mjtWrap, f"mjWRAP_{name}")) for name in ("JOINT",)}
    data["transmissions"] = {name: int(getattr(mujoco.mjtTrn, f"mjTRN_{name}")) for name in ("JOINT", "JOINTINPARENT")}
    data["objects"] = {name: int(getattr(mujoco.mjtObj, f"mjOBJ_{name}")) for name in ("BODY", "SITE")}
    return data


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[4])
    limit(int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps(compiled(sys.argv[1])))
