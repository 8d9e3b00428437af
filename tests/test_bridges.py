"""What all bridges share: nothing is imported before it is asked for, and what is missing is named."""

from __future__ import annotations

import subprocess
import sys

import pytest

PACKAGES = ("casadi", "jax", "torch", "sympy")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_nothing_is_imported_before_it_is_asked_for():
    code = f"import sys, armdyn; armdyn.load('scara').bias; print({{*{PACKAGES}}} & {{*sys.modules}} or 'nothing')"
    assert python(code) == "nothing"


@pytest.mark.parametrize("package", PACKAGES)
def test_the_message_names_the_install_command(package):
    code = f"""
import sys, armdyn
sys.modules["{package}"] = None
try:
    armdyn.load("scara").bias.{package}()
except ImportError as error:
    assert isinstance(error, armdyn.ArmdynError)
    print(error)
"""
    assert python(code) == f'{package} is not installed; install it with: pip install "armdyn[{package}]"'
