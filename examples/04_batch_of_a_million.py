"""A million inertia matrices in one call, with the same bits as one at a time, on any number of threads."""

import time

import numpy as np

import armdyn

COUNT = 1_000_000
arm = armdyn.load("puma560")
q = np.random.default_rng(0).uniform(-np.pi, np.pi, (COUNT, arm.n))
H = np.empty((COUNT, arm.n, arm.n))

arm.inertia_matrix(q[:8])  # compiled here, and cached on disk for the next run
for threads in (1, 2):
    arm.inertia_matrix(q, out=H, threads=threads)  # touches the memory first, so that page faults are not measured
    start = time.perf_counter()
    arm.inertia_matrix(q, out=H, threads=threads)
    seconds = time.perf_counter() - start
    print(f"{threads} thread(s): {seconds * 1e3:6.1f} ms, {seconds / COUNT * 1e9:5.1f} ns a configuration")

for k in (0, 123_456, COUNT - 1):
    assert np.array_equal(arm.inertia_matrix(q[k]), H[k])
print("one at a time gives the same bits")

smallest = np.linalg.eigvalsh(H[::100])[:, 0]
print(f"smallest eigenvalue among 10 000 of them: {smallest.min():.4f} kg m² (positive, as it must be)")
assert smallest.min() > 0
