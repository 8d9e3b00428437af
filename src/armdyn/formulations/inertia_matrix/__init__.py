"""The inertia matrix: one file per published formulation; METHODS lists them all."""

from armdyn.formulations import reference
from armdyn.formulations.inertia_matrix import (
    angeles_ma,
    denoc,
    fijany_bejczy,
    gibbs_appell,
    kawasaki,
    lin_1991,
    lin_cubic,
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
    # Rows of the papers' comparisons, beaten by those above: executed for the tables.
    Formulation(
        "kawasaki",
        kawasaki.inertia_matrix,
        "kawasaki_1996",
        "composite bodies of minimal parameters",
        variants=kawasaki.variants,
        serial_only=True,
        reference_only=True,
    ),
    Formulation(
        "fijany_bejczy",
        fijany_bejczy.inertia_matrix,
        "fijany_bejczy_1990",
        "all wrenches in one frame",
        variants=fijany_bejczy.variants,
        serial_only=True,
        reference_only=True,
    ),
    Formulation(
        "lin_cubic",
        lin_cubic.inertia_matrix,
        "lin_1991",
        "partial velocities of every link",
        serial_only=True,
        reference_only=True,
    ),
    Formulation(
        "angeles_ma",
        angeles_ma.inertia_matrix,
        "angeles_ma_1988",
        "natural orthogonal complement, PᵀP",
        serial_only=True,
        reference_only=True,
    ),
    Formulation("reference", reference.inertia_matrix, "", "sum of JᵀMJ over the links", reference_only=True),
)
