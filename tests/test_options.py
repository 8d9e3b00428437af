"""Options: records of what belongs together, their fields as keywords, what is shown and what is refused."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, replace
from typing import get_type_hints

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import armdyn
from armdyn import cli, options
from armdyn.cli.options import with_records
from armdyn.deployment.deploy import TARGETS
from armdyn.errors import InputError, KeywordError
from armdyn.identification.identify import ALL
from armdyn.identification.information import CRITERIA
from armdyn.identification.model import FRICTION
from armdyn.options import (
    CodeOptions,
    Conditions,
    Drivetrain,
    Filtering,
    Fitting,
    Integration,
    Record,
    Terms,
    flat_keywords,
)
from armdyn.simulation.simulate import METHODS

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


KEYWORDS = {
    "load": options.LoadKeywords,
    "identify": options.IdentifyKeywords,
    "simulate": options.SimulateKeywords,
    "excite": options.ExciteKeywords,
    "deploy": options.DeployKeywords,
    "pipeline": options.PipelineKeywords,
    "bound": options.BoundKeywords,
    "rounding_error": options.RoundingKeywords,
    "sweep": options.SweepKeywords,
    "calibration_poses": options.PoseKeywords,
}
RECORD_OF = {record.__name__: record for record in RECORDS}


def parts(name):
    """The parameters of a public function by kind: its own, its records by name, the flat keywords."""
    parameters = inspect.signature(getattr(armdyn, name)).parameters
    records = {one: type(p.default) for one, p in parameters.items() if isinstance(p.default, Record)}
    flat = {field.name for record in records.values() for field in fields(record)}
    return [one for one in parameters if one not in flat and one not in records], records, flat


def test_public_functions_take_at_most_eight_arguments_beside_options():
    records = {"actuators", "plants"}  # are records, too
    functions = [name for name in armdyn.__all__ if inspect.isfunction(getattr(armdyn, name))]
    many = {name: own for name in functions if len(own := [one for one in parts(name)[0] if one not in records]) > 8}
    assert not many
    assert {name for name in functions if parts(name)[1]} == set(KEYWORDS), "every function with records is tested"


@pytest.mark.parametrize("name", KEYWORDS)
def test_the_keywords_of_a_function_are_the_fields_of_its_records(name):
    _, records, flat = parts(name)
    typed = get_type_hints(KEYWORDS[name])
    assert set(typed) == flat
    home = {}
    for record in records.values():
        for one, kind in get_type_hints(record).items():
            home.setdefault(one, kind)
    assert typed == home
    text = inspect.getdoc(getattr(armdyn, name))
    if name == "pipeline":
        assert "All keywords of `identify` are taken" in text
        text += "\n" + inspect.getdoc(armdyn.identify)
    listed = {word for line in text.splitlines() if line[:1].isalpha() for word in line.split(" : ")[0].split(", ")}
    assert flat - listed == set(), "the docstring says what each is"
    assert set(records) <= listed


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_function_refuses_a_field_beside_its_record(name, tmp_path):
    _, records, _ = parts(name)
    function = getattr(armdyn, name)
    positional = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind is not p.KEYWORD_ONLY
    ]
    seen = set()
    for parameter, record in records.items():
        one = next(field for field in fields(record) if field.name not in seen)
        seen |= {field.name for field in fields(record)}
        with pytest.raises(InputError, match=f"got {one.name}= and {parameter}="):
            function(*(None for _ in positional), **{one.name: one.default, parameter: record()})


def test_records_reach_what_the_keywords_reach(tmp_path):
    arm = armdyn.load("planar3")
    q = np.array([0.1, 0.2, 0.3])
    flat = armdyn.simulate(arm, q, duration=0.01, method="RK5", step=2e-3, friction=False)
    same = armdyn.simulate(
        arm, q, duration=0.01, integration=Integration("RK5", 2e-3), conditions=Conditions(friction=False)
    )
    assert flat.method == same.method == "RK5"
    np.testing.assert_array_equal(flat.q, same.q)
    code = options.CodeOptions(parameters="baked", build=False, measure_stack=False)
    armdyn.deploy(arm, tmp_path / "a", "c", ["gravity_load"], code=code)
    armdyn.deploy(arm, tmp_path / "b", "c", ["gravity_load"], parameters="baked", build=False, measure_stack=False)
    assert (tmp_path / "a" / "planar3.c").read_bytes() == (tmp_path / "b" / "planar3.c").read_bytes()
    search = options.PoseSearch(candidates=60, seed=3)
    plan = armdyn.calibration_poses(armdyn.load("ur5"), 12, search=search)
    np.testing.assert_array_equal(plan.q, armdyn.calibration_poses(armdyn.load("ur5"), 12, candidates=60, seed=3).q)


def test_a_command_gets_what_was_typed_as_records():
    got = {}

    @with_records
    def command(
        name: str,
        terms: Terms = Terms(),
        filtering: Filtering = Filtering(),
        drivetrain: Drivetrain = Drivetrain(),
        integration: Integration = Integration(),
        conditions: Conditions = Conditions(),
        code: CodeOptions = CodeOptions(),
    ) -> None:
        got.update(terms=terms, filtering=filtering, drivetrain=drivetrain)
        got.update(integration=integration, conditions=conditions, code=code)

    app = typer.Typer()
    app.command()(command)

    def typed(*words):
        result = CliRunner().invoke(app, ["x", *words], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return dict(got)

    usual = {"terms": Terms(), "filtering": Filtering(), "conditions": Conditions(), "drivetrain": Drivetrain(),
             "code": CodeOptions(), "integration": Integration()}  # fmt: skip
    assert typed() == usual
    words = "--friction stribeck --no-rotor --spring --width 0.1,0.2 --parallel 0 --ratios 100,50 --cpu cortex-m7"
    words += " --cpu rv32 --step auto --no-saturate"
    assert typed(*words.split()) == usual | {
        "terms": Terms(friction="stribeck", rotor=False, spring=True, width=[0.1, 0.2]),
        "filtering": Filtering(parallel=False),
        "drivetrain": Drivetrain(transmission=[100.0, 50.0]),
        "code": CodeOptions(cpus=["cortex-m7", "rv32"]),
        "integration": Integration(step="auto"),
        "conditions": Conditions(saturate=False),
    }
    assert typed("--width", "0", "--step", "2e-3", "--gains", "2")["terms"].width == 0
    for words, said in (
        ("--step fast", "--step takes a number or auto, got 'fast'"),
        ("--ratios a,b", "--ratios: 'a' is not a number"),
        ("--step -1", "step must be above 0 s, got -1"),
        ("--dead-zone -1", "dead_zone must be at least 0"),
    ):
        with pytest.raises(InputError, match=said):
            typed(*words.split())


@pytest.mark.parametrize(
    ("command", "option", "available"),
    [
        ("simulate", "method", METHODS),
        ("identify", "friction", FRICTION),
        ("identify", "estimator", ALL),
        ("deploy", "target", TARGETS),
        ("pipeline", "targets", TARGETS),
        ("excite", "criterion", CRITERIA),
    ],
)
def test_the_help_of_an_option_names_what_is_available(command, option, available):
    text = next(p.help for p in cli.command(command).params if p.name == option)
    assert set(available) <= set(re.findall(r"\w+", text))
