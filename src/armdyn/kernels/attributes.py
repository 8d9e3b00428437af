"""The kernels of an arm as attributes: one per quantity of the registry, and one per quantity of derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from armdyn.formulations import DERIVATIVES, QUANTITIES
from armdyn.formulations.registry import Ports

if TYPE_CHECKING:
    from armdyn.kernels.kernel import Kernel


class KernelOf:
    """A quantity of the arm: a `Kernel` made at first use and kept on the arm."""

    def __init__(self, name: str, doc: str, quantity: str, **options: Any) -> None:
        self.__doc__ = doc
        self.name = name
        self.quantity = quantity
        self.options = options

    def __get__(self, arm: Any, owner: type | None = None) -> Any:
        if arm is None:
            return self
        kernel = arm.__dict__[self.name] = arm.kernel(self.quantity, **self.options)
        return kernel


def attributes() -> Iterator[KernelOf]:
    """Every attribute that the registry defines."""
    for name, quantity in QUANTITIES.items():
        yield KernelOf(name, f"{quantity.doc}: {_shapes(quantity.outputs)}.", name)
    for name, (plain, wrt) in DERIVATIVES.items():
        inputs, shape = QUANTITIES[plain].inputs, _shapes((("", ("nv", "nv")),))
        listed = f"{', '.join(wrt[:-1])} and {wrt[-1]}"
        doc = f"Partial derivatives of {plain.replace('_', ' ')} in {listed}, one {shape} per input"
        yield KernelOf(name, f"{doc}; takes ({', '.join(port for port, _ in inputs)}).", plain, derivatives=wrt)


def _shapes(ports: Ports) -> str:
    """The shapes for a fixed-base arm, where q and its derivatives have n entries each."""
    sizes = [", ".join("n" if size in ("nq", "nv") else str(size) for size in shape) for _, shape in ports]
    return ", ".join(f"(..., {size})" if size else "(...,)" for size in sizes)


class KernelAttributes:
    """Base class that provides the attributes; the names are listed only for editors and type checkers."""

    if TYPE_CHECKING:  # a test compares this list with the registry
        inertia_matrix: Kernel
        inertia_inverse: Kernel
        articulated_inertias: Kernel
        inertia_factors: Kernel
        inertia_rate: Kernel
        bias: Kernel
        equations_of_motion: Kernel
        gravity_load: Kernel
        coriolis_matrix: Kernel
        inverse_dynamics: Kernel
        forward_dynamics: Kernel
        reference_dynamics: Kernel
        regressor: Kernel
        natural_regressor: Kernel
        payload_parameters: Kernel
        momentum: Kernel
        momentum_bias: Kernel
        kinetic_energy: Kernel
        potential_energy: Kernel
        friction: Kernel
        joint_forces: Kernel
        pose: Kernel
        link_poses: Kernel
        link_jacobians: Kernel
        pose_error: Kernel
        frame_velocity: Kernel
        frame_acceleration: Kernel
        joint_wrenches: Kernel
        integrate: Kernel
        difference: Kernel
        dh_poses: Kernel
        jacobian: Kernel
        jacobian_rate: Kernel
        centre_of_mass: Kernel
        centre_of_mass_jacobian: Kernel
        centroidal_momentum: Kernel
        centroidal_momentum_matrix: Kernel
        held_dynamics: Kernel
        operational_space_inertia: Kernel
        operational_space_inertia_inverse: Kernel
        inverse_dynamics_derivatives: Kernel
        forward_dynamics_derivatives: Kernel

    def __init_subclass__(cls) -> None:
        for attribute in attributes():
            setattr(cls, attribute.name, attribute)
