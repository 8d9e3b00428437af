"""Quick rationals against Python's own."""

from __future__ import annotations

import copy
import operator
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armdyn.algebra.scalar import Rational

FRACTIONS = st.one_of(
    st.sampled_from([Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2)]),
    st.fractions(max_denominator=60),
    st.floats(-10, 10).map(Fraction),
)
OPERATIONS = (operator.add, operator.sub, operator.mul, operator.truediv)


def forms(a: Fraction, b: Fraction):
    """The two numbers in every combination of types in which one is quick."""
    yield Rational(a), Rational(b)
    yield Rational(a), b
    yield a, Rational(b)
    if b.denominator == 1:
        yield Rational(a), int(b)
    if a.denominator == 1:
        yield int(a), Rational(b)


@given(FRACTIONS, FRACTIONS)
def test_arithmetic_is_that_of_fractions(a, b):
    for operation in OPERATIONS:
        for x, y in forms(a, b):
            if operation is operator.truediv and b == 0:
                with pytest.raises(ZeroDivisionError):
                    operation(x, y)
                continue
            expected, found = operation(a, b), operation(x, y)
            assert type(found) is Rational
            assert found.as_integer_ratio() == expected.as_integer_ratio()
            assert (found == expected, expected == found, hash(found) == hash(expected)) == (True, True, True)


@given(FRACTIONS, FRACTIONS)
def test_signs_and_comparisons_are_those_of_fractions(a, b):
    x, y = Rational(a), Rational(b)
    assert (-x, abs(x)) == (-a, abs(a))
    assert (x == y, x == b, x == int(b), x < y, bool(x)) == (a == b, a == b, a == int(b), a < b, bool(a))
    for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert twin == x
        assert type(twin) is Rational


@given(FRACTIONS, st.floats(-10, 10))
def test_floats_are_met_as_fractions_meet_them(a, f):
    x = Rational(a)
    for operation in OPERATIONS[:3]:
        assert operation(x, f) == operation(a, f)
        assert operation(f, x) == operation(f, a)
        assert type(operation(x, f)) is float


@pytest.mark.parametrize("operation", OPERATIONS)
def test_other_types_get_their_turn(operation):
    class Other:
        def __radd__(self, other):
            return "other", other

        __rsub__ = __rmul__ = __rtruediv__ = __radd__

    assert operation(Rational(3), Other()) == ("other", 3)
    with pytest.raises(TypeError):
        operation(Rational(3), "3")
