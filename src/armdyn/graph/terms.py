"""Terms of sums: their factors and their cost.

A factor is an atom, or -k for the k-th absolute value of a coefficient.
"""

from __future__ import annotations

from collections.abc import Iterator

from armdyn.graph.polynomials import Product, Sum


def repeated_factors(terms: Sum, fresh: Sum) -> Iterator[int]:
    """The factors of the new terms of a sum that several of its terms have."""
    found = [factor for product, c in fresh.items() for factor in factors(product, c)]
    for factor in dict.fromkeys(found):
        if found.count(factor) > 1 or (len(fresh) < len(terms) and count_factor(terms, factor) > 1):
            yield factor


def factors(product: Product, c: int) -> list[int]:
    """The distinct factors of a term: its atoms, and the absolute value of its coefficient."""
    atoms = list(product if len(product) < 2 else dict.fromkeys(product))
    if product and c != 1 and c != -1:
        atoms.append(-abs(c))
    return atoms


def pairs(product: Product, c: int) -> list[tuple[int, int]]:
    """The distinct pairs of factors of a term."""
    found: list[tuple[int, int]] = []
    if len(product) == 2:
        found.append((product[0], product[1]))
    elif len(product) > 2:
        found.extend(dict.fromkeys([(a, b) for k, a in enumerate(product) for b in product[k + 1 :]]))
    if product and c != 1 and c != -1:
        size = -abs(c)
        found.extend([(size, a) for a in (product if len(product) < 2 else dict.fromkeys(product))])
    return found


def cost(product: Product, c: int) -> int:
    """Multiplications of a term."""
    return max(len(product) - 1, 0) + (product != () and abs(c) != 1)


def has_factor(product: Product, c: int, factor: int) -> bool:
    """Whether a term has the factor."""
    return factor in product if factor >= 0 else product != () and abs(c) == -factor


def has_pair(product: Product, c: int, a: int, b: int) -> bool:
    """Whether a term has both factors."""
    if a < 0:
        return abs(c) == -a and b in product
    return a in product and b in product and (a != b or product.count(a) > 1)


def count_factor(terms: Sum, factor: int) -> int:
    """How many terms have the factor."""
    if factor >= 0:
        return sum([factor in product for product in terms])
    return sum([c == factor or c == -factor for product, c in terms.items() if product])


def count_pair(terms: Sum, a: int, b: int) -> int:
    """How many terms have both factors."""
    if 0 <= a != b:
        return sum([a in product and b in product for product in terms])
    return sum([has_pair(product, c, a, b) for product, c in terms.items() if b in product])


def without(product: Product, atom: int) -> Product:
    """The product with this factor taken out once."""
    k = product.index(atom)
    return product[:k] + product[k + 1 :]
