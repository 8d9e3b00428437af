"""Names that people know from elsewhere get an answer with armdyn's name, in Python and on the command line."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from importlib import import_module

import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import COMMANDS, app, command
from armdyn.errors import InputError, KeywordError, checked_keywords
from armdyn.names import KEYWORDS, NAMES, meant, meant_keyword, table
from pages import ROOT

ARM = armdyn.load("planar3")
RUN = CliRunner()


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists_and_the_others_do_not(name):
    assert hasattr(armdyn.Arm, name) or hasattr(armdyn, name)
    for other in NAMES[name]:
        assert not hasattr(armdyn, other)
        assert meant(other) == name


def test_no_name_means_two_things():
    assert max(Counter(other for others in NAMES.values() for other in others).values()) == 1


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("mass_matrix", "inertia_matrix"),
        ("M", "inertia_matrix"),
        ("inertia", "inertia_matrix"),
        ("crba", "inertia_matrix"),
        ("gravity", "gravity_load"),
        ("coriolis", "coriolis_matrix"),
        ("rnea", "inverse_dynamics"),
        ("aba", "forward_dynamics"),
        ("fk", "pose"),
        ("fkine", "pose"),
        ("jacob0", "jacobian"),
    ],
)
def test_a_quantity_by_another_name(typed, name):
    with pytest.raises(InputError, match=f"armdyn calls this '{name}'"):
        ARM.kernel(typed)
    error = RUN.invoke(app, ["eval", "planar3", typed]).exception
    assert f"unknown quantity '{typed}': armdyn calls this '{name}'" in str(error)
    if typed != "gravity":  # of an arm, this is the vector
        with pytest.raises(AttributeError, match=f"armdyn calls this '{name}'"):
            getattr(ARM, typed)
        with pytest.raises(AttributeError, match=rf"armdyn.load\(...\).{name}"):
            getattr(armdyn, typed)


def test_a_function_by_another_name():
    with pytest.raises(AttributeError, match="armdyn calls this 'simulate'"):
        armdyn.fdyn  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        armdyn.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'gravity_load'"):
        ARM.gravity_laod  # noqa: B018


def test_an_arm_is_still_a_plain_value():
    assert not hasattr(ARM, "__array__")
    assert not hasattr(ARM, "mass_matrix")
    assert getattr(ARM, "mass_matrix", None) is None
    assert pickle.loads(pickle.dumps(ARM)) == copy.deepcopy(ARM) == ARM


@pytest.mark.parametrize(
    ("call", "meaning"),
    [
        (lambda: armdyn.load("ur5", tool_frame="tool0"), "(tip|tool)="),
        (lambda: armdyn.load("ur5", base_link="x"), "base="),
        (lambda: armdyn.simulate(ARM, dt=0.001), "step="),
        (lambda: armdyn.simulate(ARM, T=1.0), "duration="),
        (lambda: armdyn.simulate(ARM, controller=None), "torque="),
        (lambda: armdyn.bound(ARM, "gravity_load", payload_mass=(0, 1)), "payload="),
        (lambda: armdyn.deploy(ARM, "x", language="c"), "target="),
        (lambda: armdyn.cost(ARM, "bias", formulation="x"), "method="),
    ],
)
def test_a_keyword_by_another_name(call, meaning):
    with pytest.raises(KeywordError, match=f"unexpected keyword argument .* armdyn calls this {meaning}; it takes"):
        call()
    with pytest.raises(TypeError):  # as Python itself says it
        call()


def test_a_misspelt_keyword():
    with pytest.raises(TypeError, match="did you mean 'duration'"):
        armdyn.simulate(ARM, duratoin=1.0)


def test_every_keyword_leads_somewhere():
    options = {parameter.name for name in COMMANDS if name != "cache" for parameter in command(name).params}
    functions = (armdyn.load, armdyn.simulate, armdyn.identify, armdyn.deploy, armdyn.bound, armdyn.excite, armdyn.cost)
    import inspect

    known = options.union(*(inspect.signature(function).parameters for function in functions))
    for other, names in KEYWORDS.items():
        assert known & set(names), other
    assert meant_keyword("dt", {"dt_max", "step"}) == "step"
    assert meant_keyword("dt", {"duration"}) == ""


def test_a_checked_function_keeps_its_face():
    @checked_keywords
    def f(a: int, *, b: int = 2) -> int:
        """Doc."""
        return a + b

    assert f(1, b=3) == f(a=1, b=3) == 4
    assert (f.__name__, f.__doc__) == ("f", "Doc.")

    def free(**options: int) -> None: ...

    assert checked_keywords(free) is free
    assert pickle.loads(pickle.dumps(armdyn.simulate)) is armdyn.simulate


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("simulate", "ur5", "--dt", "0.1"), "--step"),
        (("simulate", "ur5", "--T", "2"), "--duration"),
        (("simulate", "ur5", "--tool-frame", "x"), "--tool"),
        (("eval", "ur5", "pose", "--ee-link", "x"), "--tip"),
        (("deploy", "ur5", "-o", "x", "--lang", "c"), "--target"),
    ],
)
def test_an_option_by_another_name(words, option):
    result = RUN.invoke(app, list(words))
    assert result.exit_code == 2
    typed = next(word for word in words if word.startswith("--"))
    assert f"No such option: {typed}; it is {option} here." in result.output


def test_the_page_on_other_libraries_has_the_table():
    assert table() in (ROOT / "docs" / "coming_from.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [("armdyn.identification", "Comparison", "Prediction"), ("armdyn.simulation", "Controller", "TorqueLaw")],
)
def test_former_names_of_classes_still_work_with_a_warning(module, old, new):
    room = import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        assert getattr(room, old) is getattr(room, new)
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'Nothing'"):
        room.Nothing  # noqa: B018
