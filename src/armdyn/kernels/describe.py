"""What `help` and completion show of a kernel: its name, its signature and its documentation, from the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Shapes, units

if TYPE_CHECKING:
    from armdyn.kernels.kernel import Kernel

# Every option of a call: its default, and what it does.
OPTIONS: dict[str, tuple[Any, str]] = {
    "friction": (False, "add the joints' friction, springs and other joint forces"),
    "tool_wrench": (None, "(..., 6) force and torque of the environment on the tool; a dict of them by frame names"),
    "base_acceleration": (None, "(..., 3) acceleration of a base that does not turn, in base axes, m/s²"),
    "frame": (None, "the name of a frame in place of the tool"),
    "frames": (None, 'the names of frames in place of all links; "all" for all `frame_names`'),
    "axes": ("base", 'the axes of the result: "base" or "local", those of the frame'),
    "rows": ((), "the rows of the frame's Jacobian that are held, 0 to 5, linear first; or a tuple of rows per frame"),
    "damping": (0.0, "added to the diagonal of J H⁻¹ Jᵀ, in place of NaN where rows are redundant"),
    "packed": (False, "the upper triangle of the symmetric matrix, row by row, n (n + 1) / 2 numbers"),
    "columns": ("bodies", 'the frames of the columns: "bodies" (`dh_poses`) or "urdf", the links as in the file'),
    "parameters": ("baked", '(p,) values of the minimal parameters; "runtime" makes them the last input'),
    "derivatives": ((), "names of inputs: the exact partial derivatives in them, in place of the value"),
    "out": (None, "an array, or a tuple of them, for the result"),
    "threads": (None, "the number of threads for a batch"),
}


class OfObject:
    """An attribute that an object computes and its class has, too, with another value (none: an AttributeError)."""

    def __init__(self, compute: Callable[[Any], Any], of_class: Any = None) -> None:
        self.compute, self.of_class = compute, of_class

    def __get__(self, thing: Any, owner: type | None = None) -> Any:
        if thing is not None:
            return self.compute(thing)
        if self.of_class is None:
            raise AttributeError
        return self.of_class


def name(kernel: Kernel) -> str:
    """The name of the arm's attribute."""
    return kernel.quantity + ("_derivatives" if kernel.options.derivatives else "")


def signature(kernel: Kernel) -> inspect.Signature:
    """The inputs by name, then the options of a call."""
    inputs, outputs = kernel.ports
    ports = [inspect.Parameter(port, inspect.Parameter.POSITIONAL_OR_KEYWORD) for port, _ in inputs]
    options = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=OPTIONS[option][0])
        for option in options_of(kernel)
    ]
    gives = "ndarray" if len(outputs) == 1 else f"tuple[{', '.join(['ndarray'] * len(outputs))}]"
    return inspect.Signature([*ports, *options], return_annotation=gives)


def options_of(kernel: Kernel) -> tuple[str, ...]:
    """The options that a call takes: of its quantity, and of every kernel."""
    ports = [port for port, _ in kernel.ports[0]]
    return tuple(option for option in (*kernel.option_names, "out", "threads") if option not in ports)


def documentation(kernel: Kernel) -> str:
    """What the quantity is, its arrays with shapes and units, its options, an example."""
    inputs, outputs = kernel.ports
    chain, parts = kernel.chain, _parts(kernel)
    lines = [*(f"{_what(part)}." for part in parts), "", "Inputs, with any batch axes before those of their shapes:"]

    def arrays(ports: Shapes) -> list[str]:
        return [
            f"    {port} : (..., {', '.join(map(str, shape))}), {unit(kernel, port)}"
            if shape
            else f"    {port} : (...), {unit(kernel, port)}"
            for port, shape in ports
        ]

    lines += [*arrays(inputs), "Results:", *arrays(outputs), "Options of a call, by name:"]
    lines += [f"    {option} : {OPTIONS[option][1]}" for option in options_of(kernel)]
    at_rest = {"q": "arm.rest", "q0": "arm.rest", "q1": "arm.rest"}
    given = ", ".join(at_rest.get(port, f"np.zeros({_tuple(shape)})") for port, shape in inputs)
    call = f"arm.{name(kernel)}" if len(parts) == 1 else f"arm.kernel({tuple(map(name, parts))})"
    lines += ["", "Example:", f"    >>> {call}({given})"]
    lines += ["", f"Other forms: .casadi(), .jax(), .torch(), .sympy(). The arm has {chain.n} joints."]
    return "\n".join(lines)


def _parts(kernel: Kernel) -> tuple[Kernel, ...]:
    """The kernels of several quantities; one of a single quantity itself."""
    return getattr(kernel, "parts", (kernel,))


def _what(kernel: Kernel) -> str:
    doc = QUANTITIES[kernel.quantity].doc
    return f"Partial derivatives of: {doc}" if kernel.options.derivatives else doc


def unit(kernel: Kernel, port: str) -> str:
    """The unit of an input or a result."""
    for part in _parts(kernel):
        own = port.removeprefix(f"{name(part)}_")  # of results of several quantities that have one name
        if own in {one for side in part.ports for one, _ in side}:
            slope = part.options.derivatives and own.startswith("d") and "_d" in own
            return "SI" if slope else units(part.chain, part.quantity, own)
    raise KeyError(port)


def _tuple(shape: tuple[int, ...]) -> str:
    return str(shape[0]) if len(shape) == 1 else str(shape)
