"""The regressor in the minimal and in the natural parameters."""

from armdyn.formulations.registry import Formulation
from armdyn.formulations.regressor.natural import natural_regressor, regressor

METHODS = (Formulation("unit_motions", regressor, "atkeson_1986", "every joint's unit motion carried outwards"),)
NATURAL_METHODS = (
    Formulation("unit_motions", natural_regressor, "atkeson_1986", "every joint's unit motion carried outwards"),
)

__all__ = ["METHODS", "NATURAL_METHODS", "natural_regressor", "regressor"]
