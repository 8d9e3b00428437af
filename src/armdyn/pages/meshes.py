"""The shapes of a URDF's links for the page: meshes, boxes, cylinders and spheres.

Meshes may be STL or OBJ, or Collada with the extra `meshes`. Visual shapes are used; a link whose visual mesh cannot be
read is drawn with its collision shapes. Meshes are decimated by vertex clustering (merging the vertices in each cell of
a grid), further where all together are many, and stored with 16-bit coordinates. Colours are those of the file's
materials; the colours and textures inside mesh files are not read.
"""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import FileError
from armdyn.files.packages import Packages
from armdyn.files.text import read_bytes
from armdyn.files.urdf_tree import urdf_text

FACES = 6000  # maximum triangles per mesh; more make the page heavy without a visible difference
ALL_FACES = 60_000  # of a robot; each mesh gets its share of them, which makes a page of a humanoid about 1 MB
GRIDS = (400, 280, 200, 140, 100, 80, 60, 50, 40, 35, 30, 25, 20, 15, 10)  # cells along the longest side, tried in turn
READERS = (".stl", ".obj", ".dae")
SHAPED = (".urdf", ".xacro")  # files that say where shapes are


def read_mesh(path: Path) -> np.ndarray:
    """(faces, 3, 3) vertices of the triangles of an STL, OBJ or Collada file."""
    suffix, data = path.suffix.lower(), read_bytes(path)
    if suffix == ".stl":
        return _stl(path, data)
    if suffix == ".obj":
        return _obj(path, data)
    if suffix == ".dae":
        return _collada(path, data)
    raise FileError(f"{path.name}: unknown mesh format {suffix!r}; available: {', '.join(READERS)}")


def _stl(path: Path, data: bytes) -> np.ndarray:
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if len(data) == 84 + 50 * count:  # binary, by its length: many binary files also start with `solid`
        facets = np.frombuffer(data, np.dtype([("n", "<f4", 3), ("p", "<f4", (3, 3)), ("a", "<u2")]), count, 84)
        return facets["p"].astype(float)
    words = data.decode("ascii", errors="replace").split()
    corners = [words[k + 1 : k + 4] for k, word in enumerate(words) if word == "vertex"]
    return _triangles(path, corners, np.arange(len(corners)))


def _obj(path: Path, data: bytes) -> np.ndarray:
    corners, faces = [], []
    for line in data.decode("utf-8", errors="replace").splitlines():
        kind, *words = line.split() or [""]
        if kind == "v":
            corners.append(words[:3])
        elif kind == "f":
            try:
                at = [int(word.split("/")[0]) for word in words]
            except ValueError:
                raise FileError(f"{path.name}: expected a face of vertex numbers, got {line[:60]!r}") from None
            at = [k - 1 if k > 0 else len(corners) + k for k in at]  # counted from 1, or backwards from the end
            faces += [(at[0], at[k], at[k + 1]) for k in range(1, len(at) - 1)]
    return _triangles(path, corners, np.array(faces, dtype=int).ravel())


def _collada(path: Path, data: bytes) -> np.ndarray:
    """The triangles of a whole Collada scene, in metres; read by trimesh, a large package and therefore an extra."""
    try:
        import collada
        import trimesh
    except ImportError:
        install = 'pip install "armdyn[meshes]"'
        raise FileError(f"{path.name}: Collada meshes need the extra `meshes`: {install}") from None
    try:
        scene: Any = trimesh.load(io.BytesIO(data), file_type="dae", force="scene")
        metres = float(collada.Collada(io.BytesIO(data)).assetInfo.unitmeter or 1.0)
        found: np.ndarray = np.array(scene.to_mesh().triangles, dtype=float) * metres
    except Exception as error:  # the reader may raise anything on a damaged file
        raise FileError(f"{path.name}: not a readable Collada mesh: {error}") from None
    if not len(found) or not np.isfinite(found).all():
        raise FileError(f"{path.name}: a Collada file without triangles, or with vertices that are not finite")
    return found


def _triangles(path: Path, corners: list[list[str]], order: np.ndarray) -> np.ndarray:
    try:
        points = np.array(corners, dtype=float).reshape(-1, 3)
        found: np.ndarray = points[order].reshape(-1, 3, 3)
    except (ValueError, IndexError):
        raise FileError(f"{path.name}: expected triangles of three vertices with three numbers each") from None
    if not np.isfinite(found).all():
        raise FileError(f"{path.name}: every vertex must be finite")
    return found


def thinned(triangles: np.ndarray, most: int = FACES) -> np.ndarray:
    """Decimate a mesh: the vertices in each grid cell become their mean, and degenerate triangles are removed."""
    if len(triangles) <= most:
        return triangles
    low, size = triangles.min(axis=(0, 1)), np.ptp(triangles, axis=(0, 1)).max() or 1.0
    for cells in GRIDS:
        grid = np.floor((triangles.reshape(-1, 3) - low) / size * cells).astype(np.int64)
        _, cell = np.unique(_numbered(grid, cells + 1), return_inverse=True)
        count = np.bincount(cell)
        means = np.stack([np.bincount(cell, x) / count for x in triangles.reshape(-1, 3).T], axis=1)
        faces = cell.reshape(-1, 3)
        kept = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 0] != faces[:, 2])]
        kept = kept[np.unique(_numbered(kept, len(count)), return_index=True)[1]]
        if len(kept) <= most:
            break
    return np.asarray(means[kept])


def _numbered(rows: np.ndarray, base: int) -> np.ndarray:
    """Rows of three digits in this base as numbers in the same order: sorted several times as fast as the rows."""
    if base > 2**21:  # three digits do not fit 64 bits
        return np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    return np.asarray((rows[:, 0] * base + rows[:, 1]) * base + rows[:, 2])


def shapes(
    urdf: str | os.PathLike[str],
    arm: Arm,
    xacro: Mapping[str, Any] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> tuple[list[dict[str, Any]], list[str]]:
    """The page's mesh data, and messages about shapes that could not be drawn.

    The arm must have been loaded from this file, because its frames locate the file's links. `xacro` and `package_dirs`
    are those of `armdyn.load`; meshes outside of the file's package and these folders are not read.
    """
    packages, frames = Packages.of(urdf, package_dirs), {frame.name: frame for frame in arm.frames}
    drawn: list[tuple[int, np.ndarray, np.ndarray, str]] = []
    notes: list[str] = []
    root = ElementTree.fromstring(urdf_text(urdf, xacro, package_dirs)[0])
    colors = {material.get("name", ""): _color(material) for material in root.findall("material")}
    for link in root.iter("link"):
        frame = frames.get(link.get("name", ""))
        if frame is None:
            continue
        placed, wrong = _homogeneous(frame.placement), ""
        for kind in ("visual", "collision"):
            try:
                parts = [(*_shape(part, packages), _shade(part, colors)) for part in link.findall(kind)]
            except FileError as error:
                wrong = wrong or f"{frame.name}: {error}"
                continue
            drawn += [(frame.link - 1, placed @ matrix, triangles, shade) for matrix, triangles, shade in parts]
            if parts:
                wrong = wrong and f"{wrong}; its {kind} shape is drawn instead"
                break
        notes += [wrong] if wrong else []
    share = min(1.0, ALL_FACES / max(1, sum(len(triangles) for _, _, triangles, _ in drawn)))
    return [
        {
            "body": body,
            "matrix": matrix.ravel(),
            **({"color": shade} if shade else {}),
            **_packed(triangles if share == 1 else thinned(triangles, max(200, int(share * len(triangles))))),
        }
        for body, matrix, triangles, shade in drawn
    ], notes


def found_shapes(
    spec: str | os.PathLike[str],
    arm: Arm,
    xacro: Mapping[str, Any] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> tuple[list[dict[str, Any]], list[str]]:
    """The shapes of the links if the arm was loaded from a URDF; empty if those of half the links cannot be read.

    Then the arm is drawn by its frames, and one message says why.
    """
    if Path(spec).suffix.lower() not in SHAPED or not Path(spec).is_file():
        return [], []
    drawn, notes = shapes(spec, arm, xacro, package_dirs)
    missing = [note for note in notes if "shape is drawn instead" not in note]
    if missing and len(missing) >= len({shape["body"] for shape in drawn}):
        return [], [f"{missing[0]}; all links are drawn from the joint frames"]
    return drawn, notes


def _color(material: ElementTree.Element | None) -> str:
    """#rrggbb of a material's colour; empty without one, or if it is malformed, which is no reason to refuse a file."""
    color = material.find("color") if material is not None else None
    try:
        rgb = [float(word) for word in (color.get("rgba", "") if color is not None else "").split()[:3]]
    except ValueError:
        return ""
    if len(rgb) != 3 or not all(0 <= x <= 1 for x in rgb):
        return ""
    return "#" + "".join(f"{round(255 * x):02x}" for x in rgb)


def _shade(part: ElementTree.Element, named: dict[str, str]) -> str:
    material = part.find("material")
    return _color(material) or (named.get(material.get("name", ""), "") if material is not None else "")


def _shape(part: ElementTree.Element, packages: Packages) -> tuple[np.ndarray, np.ndarray]:
    """The pose of a shape in its link's frame, and its triangles."""
    origin = part.find("origin")
    matrix = _pose(_floats(origin, "xyz", "0 0 0"), _floats(origin, "rpy", "0 0 0"))
    geometry = part.find("geometry")
    shape = next(iter(geometry), None) if geometry is not None else None
    if shape is None:
        raise FileError("a shape has no geometry")
    if shape.tag == "mesh":
        triangles = read_mesh(packages.resolve(shape.get("filename", "")))
        return matrix, thinned(triangles * _floats(shape, "scale", "1 1 1"))
    if shape.tag == "box":
        return matrix, _box() * _floats(shape, "size", "1 1 1")
    if shape.tag == "cylinder":
        radius, length = _floats(shape, "radius", "1")[0], _floats(shape, "length", "1")[0]
        return matrix, _revolved([(0, -0.5), (1, -0.5), (1, 0.5), (0, 0.5)]) * [radius, radius, length]
    if shape.tag == "sphere":
        arc = [(math.sin(a), -math.cos(a)) for a in np.linspace(0, math.pi, 13)]
        return matrix, _revolved(arc) * _floats(shape, "radius", "1")[0]
    raise FileError(f"unknown shape {shape.tag!r}; available: mesh, box, cylinder, sphere")


def _floats(element: ElementTree.Element | None, key: str, default: str) -> np.ndarray:
    text = default if element is None else element.get(key, default)
    try:
        numbers = np.array([float(word) for word in text.split()])
    except ValueError:
        raise FileError(f"{key} of a shape must be numbers, got {text!r}") from None
    if len(numbers) != len(default.split()):
        raise FileError(f"{key} of a shape must have {len(default.split())} numbers, got {text!r}")
    return numbers


def _revolved(profile: list[tuple[float, float]], sides: int = 24) -> np.ndarray:
    """The triangles of a body of revolution about z; `profile` lists radius and height, bottom to top."""
    angles = np.linspace(0, 2 * np.pi, sides + 1)
    ring = [np.stack([r * np.cos(angles), r * np.sin(angles), np.full(sides + 1, z)], axis=1) for r, z in profile]
    return np.concatenate(list(_bands(ring)))


def _bands(rings: list[np.ndarray]) -> Iterator[np.ndarray]:
    for below, above in pairwise(rings):
        yield np.stack([below[:-1], below[1:], above[1:]], axis=1)
        yield np.stack([below[:-1], above[1:], above[:-1]], axis=1)


def _box() -> np.ndarray:
    """A unit cube centred at the origin: two triangles for each of its six faces."""
    side = np.array([[[-1, -1, 1], [1, -1, 1], [1, 1, 1]], [[-1, -1, 1], [1, 1, 1], [-1, 1, 1]]]) / 2
    turned = [np.roll(side, k, axis=2) for k in range(3)]
    return np.concatenate([*turned, *(-one[:, ::-1] for one in turned)])


def _pose(xyz: np.ndarray, rpy: np.ndarray) -> np.ndarray:
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    T = np.eye(4)
    T[:3, :3] = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    T[:3, 3] = xyz
    return T


def _homogeneous(placement: Any) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = [[float(x) for x in row] for row in placement.R.rows], [float(x) for x in placement.p]
    return T


def _packed(triangles: np.ndarray) -> dict[str, Any]:
    """An indexed mesh: unique vertices quantised to 16 bits, and the vertex indices of the faces."""
    low, span = triangles.min(axis=(0, 1)), np.ptp(triangles, axis=(0, 1)).max() or 1.0
    whole = np.round((triangles.reshape(-1, 3) - low) / span * 65535).astype("<u2")
    points, order = np.unique(whole, axis=0, return_inverse=True)
    return {
        "low": low,
        "step": span / 65535,
        "points": base64.b64encode(points.astype("<u2").tobytes()).decode(),
        "faces": base64.b64encode(order.ravel().astype("<u2").tobytes()).decode(),
    }
