"""Minimal parameters where axes are related across oblique joints: count against numerical rank on random chains.

Axes that are parallel to, square on or coincident with an earlier one are separated by oblique axes and by link frames
turned at random, so that the relation holds only up to rounding. The number of minimal parameters must then be
the numerical rank of the regressor, and links made from the minimal parameters must need the same torques to 1e-10.

Run: python benchmarks/oblique_axes.py [--chains 5000] [--seed 0]
"""

from __future__ import annotations

import argparse
import random
from fractions import Fraction

import numpy as np

from armdyn.algebra import Angle, Sym3, Vec3
from armdyn.chain import Chain, Link, Placement
from armdyn.chain.exactly import from_rpy
from armdyn.chain.frames import GivenBody, build
from armdyn.formulations.inverse_dynamics.newton_euler import inverse_dynamics
from armdyn.formulations.regressor import natural_regressor
from armdyn.parameters import minimal_parameters, realise

STATES = 12  # per chain; each gives n rows


def random_chain(rng: random.Random) -> Chain:
    """A chain of two to five joints whose axes repeat, or stand square on, directions of earlier ones."""
    n = rng.randint(2, 5)
    directions, turned = [np.array([0.0, 0.0, 1.0])], np.eye(3)
    bodies = []
    for _ in range(n):
        rpy = [rng.choice((0.0, rng.uniform(-3, 3))) for _ in range(3)]
        R = from_rpy(*(Angle.of(x) for x in rpy))
        turned = turned @ np.array([[float(x) for x in row] for row in R.rows])
        bodies.append(
            (Placement(R, Vec3(*(Fraction(rng.randint(-5, 5), 10) for _ in range(3)))), turned, _axis(rng, directions))
        )
    return build([_body(rng, *one) for one in bodies])[0]


def _axis(rng: random.Random, directions: list[np.ndarray]) -> np.ndarray:
    """A direction in base axes at q = 0: an earlier one, one square on an earlier one, or an oblique one."""
    old = rng.choice(directions)
    oblique = np.array([rng.gauss(0, 1) for _ in range(3)])
    found = {"same": old, "opposite": -old, "square": np.cross(old, oblique), "oblique": oblique}[
        rng.choices(("same", "opposite", "square", "oblique"), (4, 1, 1, 3))[0]
    ]
    directions.append(found / np.linalg.norm(found))
    return directions[-1]


def _body(rng: random.Random, placement: Placement, turned: np.ndarray, axis: np.ndarray) -> GivenBody:
    kind = rng.choice(("revolute", "prismatic"))
    own = turned.T @ axis
    own = own / np.linalg.norm(own)
    com = Vec3(*(Fraction(rng.randint(-30, 30), 100) for _ in range(3)))
    inertia = Sym3(*(Fraction(x, 100) for x in (rng.randint(8, 12), 1, rng.randint(8, 12), -2, 1, rng.randint(8, 12))))
    link = Link.from_com(Fraction(rng.randint(10, 40), 10), com, inertia)
    return GivenBody(kind, placement, Vec3(*(Fraction(x) if abs(x) > 1e-15 else 0 for x in own.tolist())), link=link)


def judged(chain: Chain, rng: random.Random) -> tuple[int, int, float]:
    """(number of minimal parameters, numerical rank, relative torque error of the realised links)."""
    parameters = minimal_parameters(chain)
    plain, made = chain.floats, realise(chain, parameters.exact_values).floats
    rows, worst, size = [], 0.0, 1e-12
    for _ in range(STATES):
        state = [[rng.uniform(-2, 2) for _ in range(chain.n)] for _ in range(3)]
        rows += natural_regressor(plain, *state)
        ours, given = np.array(inverse_dynamics(made, *state)), np.array(inverse_dynamics(plain, *state))
        worst, size = max(worst, np.abs(ours - given).max()), max(size, np.abs(given).max())
    singular = np.linalg.svd(np.array(rows, dtype=float), compute_uv=False)
    return len(parameters), int((singular > 1e-9 * singular[0]).sum()), worst / size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    failed = 0
    for k in range(given.chains):
        rng = random.Random(f"{given.seed} {k}")
        chain = random_chain(rng)
        count, rank, error = judged(chain, rng)
        if count != rank or error > 1e-10:
            failed += 1
            print(f"chain {k} (seed {given.seed}): {count} parameters, rank {rank}, error {error:.1e}: {chain}")
    print(f"{given.chains} chains, {failed} failed")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
