"""Sampling-based predictive control (MPPI): a Panda reaches a pose within its torque limits.

Every 10 ms, 4096 torque sequences of 32 steps of 5 ms are tried at once and averaged by their costs (Williams et al.
2017). Leave out ``device="cpu"``, and the same steps run on a graphics processor.
"""

import numpy as np

import armdyn

SAMPLES, STEPS, STEP, PERIODS = 4096, 32, 0.005, 40
arm = armdyn.load("panda")
rng = np.random.default_rng(0)
start = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
spread = 12.0 * np.diag(arm.inertia_matrix(start))  # N m, of the random torques: accelerations of some 12 rad/s²
goal = arm.pose(start + np.array([0.5, 0.3, 0.2, 0.3, -0.2, 0.2, 0.3]))


def costs(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """The distance of the tool to its goal and the speed, over the states of every motion."""
    error = arm.pose_error(q, goal)
    return (1000 * (error**2) @ [1, 1, 1, 0.1, 0.1, 0.1] + 0.1 * (qd**2).sum(axis=-1)).mean(axis=-1)


def plan(q: np.ndarray, qd: np.ndarray, torques: np.ndarray) -> np.ndarray:
    """Better torques: the mean of random ones around these, weighted by exp(-cost)."""
    noise = rng.standard_normal((SAMPLES, STEPS // 8, arm.n), dtype=np.float32).repeat(8, axis=1) * spread
    tried = (torques + noise).astype(np.float32)
    states = armdyn.gpu.rollout(
        arm, q.astype("f4"), qd.astype("f4"), tried, step=STEP, every=8, friction=False, device="cpu"
    )
    cost = costs(*states)
    weights = np.exp(cost.min() - cost)
    return np.tensordot(weights / weights.sum(), tried, 1)


q, qd = start, np.zeros(arm.n)
torques = np.tile(arm.gravity_load(q), (STEPS, 1))
for _ in range(PERIODS):
    torques = plan(q, qd, torques)
    q, qd = armdyn.gpu.rollout(arm, q, qd, torques[:2], step=STEP, friction=False, device="cpu")
    torques = np.concatenate([torques[2:], torques[-2:]])

missed = np.linalg.norm(arm.pose_error(q, goal)[:3])
before = np.linalg.norm(arm.pose_error(start, goal)[:3])
print(f"{before * 100:.1f} cm from the goal at the start, {missed * 100:.1f} cm after {2 * PERIODS * STEP:.1f} s")
assert missed < 0.1 * before
