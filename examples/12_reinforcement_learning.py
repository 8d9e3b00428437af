"""A Gymnasium environment: bring the arm to a posture with torques (`pip install armdyn[gym]`)."""

import gymnasium
import numpy as np

import armdyn


class Reach(gymnasium.Env):
    """Observe joint angles, velocities and the distance to the goal; act with torques, held for 20 ms."""

    def __init__(self, name="planar3", torque=20.0):
        self.sim = armdyn.Simulator(armdyn.load(name), limits="stop")
        n = self.sim.arm.n
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3 * n,))
        self.action_space = gymnasium.spaces.Box(-torque, torque, (n,))

    def _observation(self):
        return np.concatenate([self.sim.q, self.sim.qd, self.goal - self.sim.q]).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sim.reset()
        self.goal = self.np_random.uniform(-1.0, 1.0, self.sim.arm.n)
        return self._observation(), {}

    def step(self, action):
        self.sim.step(action, 20)
        reward = -float(np.sum((self.goal - self.sim.q) ** 2) + 0.01 * np.sum(self.sim.qd**2))
        return self._observation(), reward, self.sim.status != "running", self.sim.t > 2.0, {}


environment = Reach()
observation, _ = environment.reset(seed=1)
total, truncated = 0.0, False
while not truncated:
    q, qd, missing = np.split(observation, 3)
    arm, q = environment.sim.arm, q.astype(float)
    action = arm.inertia_matrix(q) @ (25.0 * missing - 10.0 * qd) + arm.gravity_load(q)
    action = np.clip(action, environment.action_space.low, environment.action_space.high)
    observation, reward, _, truncated, _ = environment.step(action.astype(np.float32))
    total += reward
print(f"computed torque collects {total:.1f} and ends {np.abs(observation[6:]).max():.3f} rad from the goal")
assert np.abs(observation[6:]).max() < 0.05
