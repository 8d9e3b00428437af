"""PyInstaller's hook: the catalogue and other data, the modules that are imported by name, and MuJoCo's compiler.

Large libraries that only some functions import are left out, unless the program imports them itself.
"""

from PyInstaller.utils.hooks import can_import_module, collect_data_files, collect_dynamic_libs, collect_submodules

hiddenimports = collect_submodules("armdyn")
datas = collect_data_files("armdyn", include_py_files=True)  # the source is a part of the keys of compiled kernels
binaries = []
if can_import_module("mujoco"):  # reads MJCF files
    hiddenimports.append("mujoco")
    binaries += collect_dynamic_libs("mujoco")

excludedimports = [
    *(
        "casadi",
        "jax",
        "jaxlib",
        "torch",
        "sympy",
        "dask",
        "distributed",
        "bokeh",
        "xarray",
        "zarr",
        "fsspec",
        "pyarrow",
    ),
    *(
        "plotly",
        "trimesh",
        "collada",
        "rosbags",
        "gymnasium",
        "wgpu",
        "fmpy",
        "pinocchio",
        "roboticstoolbox",
        "IPython",
    ),
    *("matplotlib", "pandas", "PIL", "tkinter"),
]
