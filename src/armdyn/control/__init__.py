"""Control laws and observers, one file each; `controller` compiles one for an arm."""

from armdyn.control import (
    adaptive,
    computed_torque,
    friction_estimator,
    gravity_compensation,
    impedance,
    momentum_observer,
    payload_estimator,
    servo_feedforward,
)
from armdyn.control.controller import Controller, controller
from armdyn.control.law import ControlLaw, Entry

CONTROLLERS: dict[str, ControlLaw] = {
    law.name: law
    for law in (
        gravity_compensation.LAW,
        computed_torque.LAW,
        impedance.LAW,
        adaptive.LAW,
        momentum_observer.LAW,
        friction_estimator.LAW,
        payload_estimator.LAW,
        payload_estimator.WHOLE,
        servo_feedforward.LAW,
    )
}

__all__ = ["CONTROLLERS", "ControlLaw", "Controller", "Entry", "controller"]
