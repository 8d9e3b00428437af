"""Computing on graphics processors: `devices`, arrays in their memory, and what runs there.

``arm.kernel("forward_dynamics", backend="gpu")`` is called like every kernel, in single precision. NumPy arrays are
copied to the device and results back; arrays made by `array` stay there, and so do results computed from them.
"""

from armdyn.codegen.gpu.webgpu import Device, DeviceArray, NoDevice, array, devices

__all__ = ["Device", "DeviceArray", "NoDevice", "array", "devices"]
