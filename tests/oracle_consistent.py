"""The physically consistent fit as a conic program, solved by Clarabel: an oracle for armdyn's own Newton method.

log det X is written with one 8 x 8 semidefinite and four exponential cones per link.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

from armdyn.identification.model import PAIRS, natural_of


def solve(reference, A, z, weight):
    """Natural parameters (10 n) with the least ½‖A x - z‖² + weight Σ (tr X - log det X), P = L X Lᵀ."""
    links = len(reference)
    T = np.zeros((10 * links, 10 * links))
    for i, P in enumerate(reference):
        L = np.linalg.cholesky(P)
        for k, (r, c) in enumerate(PAIRS):
            X = np.zeros((4, 4))
            X[r, c] = X[c, r] = 1.0
            T[10 * i : 10 * i + 10, 10 * i + k] = natural_of(L @ X @ L.T)
    B, size = A @ T, 10 * links
    total = size + 14 * links
    P, g = np.zeros((total, total)), np.zeros(total)
    P[:size, :size], g[:size] = B.T @ B, -B.T @ z
    for i in range(links):
        for k, (r, c) in enumerate(PAIRS):
            g[10 * i + k] += weight * (r == c)
        g[size + 14 * i + 10 : size + 14 * i + 14] = -weight
    rows, b, cones = conic(links, size)
    entries = [(r, c, v) for r, row in enumerate(rows) for c, v in row.items()]
    r, c, v = zip(*entries, strict=True)
    G = sparse.csc_matrix((v, (r, c)), shape=(len(rows), total))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    upper = sparse.triu(sparse.csc_matrix(P)).tocsc()
    solution = clarabel.DefaultSolver(upper, g, G, b, cones, settings).solve()
    assert "Solved" in str(solution.status)
    return T @ np.array(solution.x[:size])


def conic(links, size):
    """Rows G, right-hand side b and cones of b - G x in K, one row a dict of column: entry."""
    rows, b, cones = [], [], []
    entry = {pair: k for k, pair in enumerate(PAIRS)}
    for i in range(links):
        at = size + 14 * i
        for c in range(8):
            for r in range(c + 1):
                root = 1.0 if r == c else np.sqrt(2.0)
                if c < 4:  # X
                    rows.append({10 * i + entry[r, c]: -root})
                elif r < 4:  # Z, a lower triangle
                    rows.append({at + entry[c - 4, r]: -root} if r >= c - 4 else {})
                else:  # diag Z
                    rows.append({at + entry[c - 4, c - 4]: -1.0} if r == c else {})
                b.append(0.0)
        cones.append(clarabel.PSDTriangleConeT(8))
        for k in range(4):
            rows += [{at + 10 + k: -1.0}, {}, {at + entry[k, k]: -1.0}]
            b += [0.0, 1.0, 0.0]
            cones.append(clarabel.ExponentialConeT())
    return rows, np.array(b), cones
