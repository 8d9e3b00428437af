"""Computing on graphics processors: `devices`, arrays in their memory, and what runs there.

``arm.kernel("forward_dynamics", backend="gpu")`` is called like every kernel, in single precision. NumPy arrays are
copied to the device and results back; arrays made by `array` stay there, and so do results computed from them.
`rollout` makes many steps of many motions in one launch, or on the CPU.
"""

from armdyn.codegen.gpu.webgpu import Device, DeviceArray, NoDevice, array, devices
from armdyn.gpu.rollouts import rollout

__all__ = ["Device", "DeviceArray", "NoDevice", "array", "devices", "rollout"]
