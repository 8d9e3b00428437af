"""Options: records of what belongs together, their fields as keywords, what is shown and what is refused."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import get_type_hints

import pytest

from armdyn import options
from armdyn.errors import InputError, KeywordError
from armdyn.options import Conditions, Fitting, Integration, Record, Terms, flat_keywords

RECORDS = [value for value in vars(options).values() if isinstance(value, type) and issubclass(value, Record)][1:]


@flat_keywords(terms=Terms, fitting=Fitting)
def fit(log, *, validate=None, terms=Terms(), fitting=Fitting()):
    """A function with two records."""
    return log, validate, terms, fitting


@flat_keywords(integration=Integration, conditions=Conditions)
def run(*, integration=Integration(), conditions=Conditions()):
    """A function with records only."""
    return integration, conditions


def test_keywords_and_records_say_the_same():
    flat = fit("log", friction="stribeck", folds=3)
    assert flat == fit("log", terms=Terms(friction="stribeck"), fitting=Fitting(folds=3))
    assert flat == ("log", None, replace(Terms(), friction="stribeck"), replace(Fitting(), folds=3))
    assert fit("log", validate=1, spring=True) == fit("log", validate=1, terms=Terms(spring=True))


def test_the_signature_shows_own_parameters_then_keywords_then_records():
    parameters = inspect.signature(fit).parameters
    flat = [one for record in (Terms, Fitting) for one in fields(record)]
    assert list(parameters) == ["log", "validate", *(one.name for one in flat), "terms", "fitting"]
    for record in (Terms, Fitting):
        types = get_type_hints(record)
        for one in fields(record):
            shown = parameters[one.name]
            assert (shown.default, shown.annotation, shown.kind) == (one.default, types[one.name], shown.KEYWORD_ONLY)


def test_a_record_and_one_of_its_fields_are_refused():
    with pytest.raises(InputError, match=r"fit got spring=, tilt= and terms=, which has them, too"):
        fit("log", spring=True, tilt=True, terms=Terms())
    fit("log", folds=3, terms=Terms())


def test_what_is_no_record_is_refused():
    with pytest.raises(InputError, match=r"terms must be an armdyn.options.Terms, got 'stribeck'"):
        fit("log", terms="stribeck")
    with pytest.raises(InputError, match=r"terms must be an armdyn.options.Terms, got Fitting"):
        fit("log", terms=Fitting())


def test_a_keyword_that_nothing_takes_is_refused_with_what_there_is():
    with pytest.raises(KeywordError, match=r"armdyn calls this step=; it takes method, step, rtol"):
        run(dt=0.1)
    with pytest.raises(KeywordError, match=r"did you mean 'friction'"):
        run(fricton=False)


def test_a_keyword_of_two_records_belongs_to_the_first():
    @flat_keywords(terms=Terms, conditions=Conditions)
    def both(*, terms=Terms(), conditions=Conditions()):
        return terms, conditions

    assert both(friction="viscous") == (Terms(friction="viscous"), Conditions())
    assert both(friction="viscous", conditions=Conditions(friction=False))[1].friction is False
    assert list(inspect.signature(both).parameters).count("friction") == 1


@pytest.mark.parametrize("record", RECORDS)
def test_every_option_of_a_record_has_help_and_a_default_within_its_range(record):
    for name, about in record.about().items():
        assert len(about.help) > 8, name
        assert not about.help.endswith("."), name
    record()


RANGES = [(record, name) for record in RECORDS for name, about in record.about().items() if about.range]


@pytest.mark.parametrize(("record", "name"), RANGES)
def test_a_value_outside_its_range_is_refused(record, name):
    about = record.about()[name]
    bounds = {about.above: about.above, about.least: about.least - 1, about.most: about.most + 1}
    outside = [float("nan"), *(bad for bound, bad in bounds.items() if abs(bound) != float("inf"))]
    for value in outside:
        with pytest.raises(InputError, match=f"{name} must be {about.range}"):
            record(**{name: value})
