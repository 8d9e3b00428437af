"""The inertia matrix: one file per published formulation; METHODS lists them all."""

from armdyn.formulations import reference
from armdyn.formulations.inertia_matrix import (
    denoc,
    gibbs_appell,
    lin_1991,
    lin_fang_1,
    lin_fang_2,
    lin_fang_3,
    lin_fang_4,
    lin_fang_5,
    meeting_frame,
    renaud,
    walker_orin,
)
from armdyn.formulations.registry import Formulation

METHODS = (
    Formulation(
        "lin_fang_1",
        lin_fang_1.inertia_matrix,
        "lin_fang_1999",
        "wrenches carried inwards, frame by frame",
        serial_only=True,
    ),
    Formulation(
        "lin_fang_2", lin_fang_2.inertia_matrix, "lin_fang_1999", "axes and levers carried outwards", serial_only=True
    ),
    Formulation(
        "lin_fang_3",
        lin_fang_3.inertia_matrix,
        "lin_fang_1999",
        "axes and velocities carried outwards",
        serial_only=True,
    ),
    Formulation(
        "lin_fang_4",
        lin_fang_4.inertia_matrix,
        "lin_fang_1999",
        "wrenches in the end effector's frame",
        serial_only=True,
    ),
    Formulation(
        "lin_fang_5",
        lin_fang_5.inertia_matrix,
        "lin_fang_1999",
        "wrenches from the previous frame on",
        serial_only=True,
    ),
    Formulation("lin_1991", lin_1991.inertia_matrix, "lin_1991", "momenta about the base origin", serial_only=True),
    Formulation(
        "renaud", renaud.inertia_matrix, "renaud_1984", "generalized links with invariant terms", serial_only=True
    ),
    Formulation(
        "walker_orin",
        walker_orin.inertia_matrix,
        "walker_orin_1982",
        "composite bodies about mass centres",
        serial_only=True,
    ),
    Formulation(
        "gibbs_appell", gibbs_appell.inertia_matrix, "provenzano", "Hessian of the Gibbs function", serial_only=True
    ),
    Formulation("denoc", denoc.inertia_matrix, "saha_1999", "decoupled natural orthogonal complement"),
    Formulation(
        "meeting_frame",
        meeting_frame.inertia_matrix,
        "",
        "motions and wrenches meet in a middle frame",
        variants=meeting_frame.variants,
    ),
    Formulation("reference", reference.inertia_matrix, "", "sum of JᵀMJ over the links", reference_only=True),
)
