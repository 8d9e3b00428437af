"""Names that other libraries and textbooks use, and what armdyn calls the same thing."""

from __future__ import annotations

from collections.abc import Iterable

# What armdyn calls it | the names people type, as in Pinocchio, Robotics Toolbox, MuJoCo, Drake, KDL and textbooks. The
# page "Coming from another library" prints this table.
NAMES: dict[str, tuple[str, ...]] = {
    "inertia_matrix": ("mass_matrix", "M", "H", "D", "inertia", "crba", "mass", "mj_fullM", "qM", "calc_mass_matrix"),
    "inertia_inverse": ("Minv", "M_inv", "inverse_mass_matrix", "inverse_inertia_matrix", "computeMinverse"),
    "bias": ("nle", "nonLinearEffects", "non_linear_effects", "nonlinear_effects", "h", "qfrc_bias", "bias_force"),
    "gravity_load": (
        "gravity", "g", "G", "gravload", "gravity_torque", "gravity_torques", "gravity_vector", "gravity_compensation",
        "computeGeneralizedGravity", "generalized_gravity",
    ),
    "coriolis_matrix": ("coriolis", "C", "computeCoriolisMatrix", "centrifugal"),
    "inverse_dynamics": ("rnea", "rne", "id", "ID", "tau", "newton_euler", "mj_inverse", "invdyn"),
    "forward_dynamics": ("aba", "fd", "FD", "accel", "qacc", "acceleration", "mj_forward", "fwddyn"),
    "inverse_dynamics_derivatives": ("computeRNEADerivatives", "rnea_derivatives"),
    "forward_dynamics_derivatives": ("computeABADerivatives", "aba_derivatives"),
    "regressor": ("Y", "base_regressor", "minimal_regressor"),
    "natural_regressor": ("computeJointTorqueRegressor", "joint_torque_regressor", "standard_regressor"),
    "pose": ("fk", "fkine", "forward_kinematics", "FK", "T", "oMf", "framesForwardKinematics", "end_effector_pose"),
    "jacobian": ("jacob0", "jacobe", "J", "jac", "getJacobian", "geometric_jacobian", "computeFrameJacobian", "mj_jac"),
    "jacobian_rate": ("jacob0_dot", "Jdot", "dJ", "jacobian_dot", "jacobian_derivative"),
    "inverse_kinematics": ("ik", "ikine", "IK", "ikine_LM"),
    "kinetic_energy": ("kinetic", "ke", "computeKineticEnergy"),
    "potential_energy": ("potential", "pe", "computePotentialEnergy"),
    "operational_space_inertia": ("Lambda", "task_space_inertia", "inertia_x"),
    "minimal_parameters": ("base_parameters", "baseparms", "dynamic_parameters"),
    "n": ("nq", "nv", "dof", "ndof", "num_joints", "dofs"),
    "simulate": ("fdyn", "rollout", "step", "integrate_motion"),
    "load": ("load_urdf", "from_urdf", "URDF", "buildModelFromUrdf", "loadURDF", "read", "open"),
    "from_dh": ("DHRobot", "SerialLink", "dh"),
    "identify": ("estimate", "fit", "calibrate_dynamics"),
    "excite": ("excitation", "excitation_trajectory"),
    "deploy": ("generate_c", "generate_code", "export"),
}  # fmt: skip

# The keywords of functions and options of commands: what people type | what armdyn calls it, the first that there is.
KEYWORDS: dict[str, tuple[str, ...]] = {
    "dt": ("step",),
    "timestep": ("step",),
    "time_step": ("step",),
    "T": ("duration", "time_limit"),
    "t_end": ("duration",),
    "tf": ("duration",),
    "tmax": ("duration",),
    "time": ("duration", "seconds"),
    "seconds": ("duration",),
    "controller": ("controllers", "torque"),
    "controllers": ("controller",),
    "control": ("torque", "controller"),
    "u": ("torque", "tau"),
    "tau": ("torque",),
    "torques": ("torque", "tau"),
    "x0": ("q0", "q"),
    "q0": ("q",),
    "q_init": ("q0", "q"),
    "q": ("q0",),
    "qd": ("qd0",),
    "v0": ("qd0", "qd"),
    "dq0": ("qd0", "qd"),
    "dq": ("qd",),
    "v": ("qd",),
    "ddq": ("qdd",),
    "qddot": ("qdd",),
    "integrator": ("method",),
    "solver": ("method",),
    "tool": ("tip", "frame"),
    "tool_frame": ("tool", "tip", "frame"),
    "ee_link": ("tip", "frame"),
    "ee": ("tip", "frame"),
    "tip_link": ("tip",),
    "end_effector": ("tip", "frame"),
    "end_link": ("tip",),
    "link": ("frame", "tip"),
    "base_link": ("base",),
    "root": ("base",),
    "free_flyer": ("floating",),
    "floating_base": ("floating",),
    "root_joint": ("floating",),
    "g": ("gravity",),
    "urdf": ("arm",),
    "path": ("arm", "output", "out"),
    "filename": ("arm", "output", "out"),
    "robot": ("arm",),
    "model": ("arm",),
    "out": ("output", "directory"),
    "output": ("out", "directory"),
    "outdir": ("output", "out", "directory"),
    "language": ("target",),
    "lang": ("target",),
    "degree": ("degrees",),
    "deg": ("degrees",),
    "formulation": ("method",),
    "algorithm": ("method",),
    "payload_mass": ("payload", "mass"),
    "precision": ("dtype",),
    "validation": ("validate",),
}
_MEANT = {other: name for name, others in NAMES.items() for other in others}
_MEANT_ANY_CASE = {other.lower(): name for other, name in reversed(_MEANT.items())}


def meant(typed: object, available: Iterable[str] | None = None) -> str:
    """What armdyn calls the thing with this name elsewhere; "" if nothing, or nothing `available`."""
    if not isinstance(typed, str):
        return ""
    word = typed.replace("-", "_")
    name = _MEANT.get(word) or _MEANT_ANY_CASE.get(word.lower().replace(" ", "_"), "")
    return name if available is None or name in available else ""


def meant_keyword(typed: str, available: Iterable[str]) -> str:
    """The keyword, of those there are, that is meant by one that there is not; "" if none is known."""
    known = set(available)
    return next((name for name in KEYWORDS.get(typed.replace("-", "_"), ()) if name in known), "")


def table() -> str:
    """The names as a Markdown table."""
    rows = [f"| `{name}` | {', '.join(f'`{other}`' for other in others)} |" for name, others in NAMES.items()]
    return "\n".join(["| armdyn | also known as |", "|---|---|", *rows])
