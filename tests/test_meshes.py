"""Meshes of a URDF's links: readers, thinning, where they stand, and what is said when they cannot be drawn."""

from __future__ import annotations

import base64
import struct
import sys

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import armdyn
from armdyn.errors import FileError
from armdyn.files.packages import Packages
from armdyn.pages import meshes
from armdyn.pages.meshes import found_shapes, read_mesh, shapes, thinned

TETRAHEDRON = np.array([[[0, 0, 0], [0, 1, 0], [1, 0, 0]], [[0, 0, 0], [1, 0, 0], [0, 0, 2]],
                        [[0, 0, 0], [0, 0, 2], [0, 1, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 2]]], float)  # fmt: skip
URDF = """<robot name="shapes">
  <link name="base"><visual><geometry><box size="0.2 0.3 0.1"/></geometry></visual></link>
  <link name="first"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.5" rpy="0.1 -0.2 0.3"/><geometry><mesh filename="{mesh}" scale="2 2 2"/></geometry>
    </visual>
    <collision><geometry><cylinder radius="0.1" length="0.7"/></geometry></collision></link>
  <link name="second"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><sphere radius="0.25"/></geometry></visual></link>
  <joint name="a" type="revolute"><parent link="base"/><child link="first"/><origin xyz="0 0 0.2" rpy="0.4 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="b" type="prismatic"><parent link="first"/><child link="second"/><origin xyz="0.3 0 1" rpy="0 0.5 0"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>"""


def binary(triangles):
    head = b"solid made by a program that should not say so".ljust(80) + struct.pack("<I", len(triangles))
    return head + b"".join(struct.pack("<12fH", 0, 0, 0, *face.ravel(), 0) for face in triangles)


def ascii_stl(triangles):
    corner = "vertex {} {} {}".format
    facets = (
        "facet normal 0 0 0 outer loop " + " ".join(corner(*p) for p in f) + " endloop endfacet" for f in triangles
    )
    return ("solid name\n" + "\n".join(facets) + "\nendsolid").encode()


OBJ = b"# four corners\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 2\nf 1 3 2\nf 1/1 2/2/2 4\nf 1 4 3\nf -3 -2 -1\n"


@pytest.mark.parametrize(
    ("name", "content"), [("a.stl", binary(TETRAHEDRON)), ("b.STL", ascii_stl(TETRAHEDRON)), ("c.obj", OBJ)]
)
def test_readers(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    np.testing.assert_allclose(read_mesh(tmp_path / name), TETRAHEDRON)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.dae", b"<COLLADA/>", "Collada"),
        ("a.ply", b"ply", "available: .stl, .obj, .dae"),
        ("a.obj", b"v 0 0 0\nf 1 2 3\n", "expected triangles"),
        ("a.obj", b"v 0 0 0\nf one two three\n", "expected a face"),
        ("a.stl", b"solid x facet vertex 1 2 nan vertex 0 0 0 vertex 1 1 1", "finite"),
        ("a.stl", b"solid x facet vertex 1 2 3 vertex 0 0", "expected triangles"),
    ],
)
def test_bad_meshes_are_explained(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=said):
        read_mesh(tmp_path / name)


COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="centimetre" meter="0.01"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="{count}">{numbers}</float_array>
<technique_common><accessor source="#a" count="{corners}" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/></accessor>
</technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="{faces}"><input semantic="VERTEX" source="#v" offset="0"/><p>{order}</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><translate>10 0 0</translate><instance_geometry url="#g"/></node>
</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def test_collada_is_read_in_metres_with_its_scene(tmp_path):
    pytest.importorskip("trimesh", reason="the extra `meshes` is not installed")
    pytest.importorskip("collada", reason="the extra `meshes` is not installed")
    corners = TETRAHEDRON.reshape(-1, 3)
    numbers, order = " ".join(map(str, corners.ravel())), " ".join(map(str, range(len(corners))))
    text = COLLADA.format(
        count=corners.size, numbers=numbers, corners=len(corners), faces=len(corners) // 3, order=order
    )
    (tmp_path / "t.dae").write_text(text)
    np.testing.assert_allclose(read_mesh(tmp_path / "t.dae"), (TETRAHEDRON + np.array([10, 0, 0])) * 0.01, atol=1e-9)


def test_collada_without_the_extra_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "trimesh", None)
    (tmp_path / "t.dae").write_text("<COLLADA/>")
    with pytest.raises(FileError, match=r"armdyn\[meshes\]"):
        read_mesh(tmp_path / "t.dae")


def test_thinning_keeps_the_shape():
    u, v = np.meshgrid(np.linspace(0, np.pi, 120), np.linspace(0, 2 * np.pi, 120), indexing="ij")
    p = np.stack([np.sin(u) * np.cos(v), np.sin(u) * np.sin(v), np.cos(u)], axis=-1)
    faces = np.concatenate([np.stack([p[:-1, :-1], p[1:, :-1], p[1:, 1:]], axis=2).reshape(-1, 3, 3),
                            np.stack([p[:-1, :-1], p[1:, 1:], p[:-1, 1:]], axis=2).reshape(-1, 3, 3)])  # fmt: skip
    few = thinned(faces, 6000)
    assert 2000 < len(few) <= 6000 < len(faces)
    assert np.linalg.norm(few, axis=-1).min() > 0.97
    np.testing.assert_allclose(few.min(axis=(0, 1)), -1, atol=0.05)


def test_packages_are_found(tmp_path, monkeypatch):
    mesh = tmp_path / "my_robot" / "meshes" / "a.stl"
    mesh.parent.mkdir(parents=True)
    mesh.write_bytes(b"")
    here = Packages.of(tmp_path / "my_robot" / "urdf" / "arm.urdf")
    assert here.resolve("package://my_robot/meshes/a.stl") == mesh
    assert here.resolve("../meshes/a.stl") == here.resolve(f"file://{mesh}") == mesh
    elsewhere = tmp_path.parent / "elsewhere" / "arm.urdf"
    with pytest.raises(FileError, match=r"the package 'my_robot' is not found; searched: .*package_dirs=\['folder'\]"):
        Packages.of(elsewhere).resolve("package://my_robot/meshes/a.stl")
    with pytest.raises(FileError, match="outside its package"):
        Packages.of(elsewhere).resolve(f"file://{mesh}")
    (tmp_path / "my_robot" / "package.xml").write_text("<package><name>my_robot</name></package>")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    assert Packages.of(elsewhere).resolve("package://my_robot/meshes/a.stl") == mesh


def corners(shape):
    """The corners of a packed shape in its body's frame."""
    whole = np.frombuffer(base64.b64decode(shape["points"]), "<u2").reshape(-1, 3)
    order = np.frombuffer(base64.b64decode(shape["faces"]), "<u2")
    points = shape["low"] + shape["step"] * whole[order]
    return points @ shape["matrix"].reshape(4, 4)[:3, :3].T + shape["matrix"].reshape(4, 4)[:3, 3]


def test_shapes_stand_where_the_file_puts_them(tmp_path):
    """In the world: the pose of the file's link, then the shape's origin, as the URDF says."""
    (tmp_path / "t.obj").write_bytes(OBJ)
    (tmp_path / "arm.urdf").write_text(URDF.format(mesh="t.obj"))
    arm, q = armdyn.load(tmp_path / "arm.urdf"), np.array([0.6, 0.25])
    found, notes = shapes(tmp_path / "arm.urdf", arm)
    assert notes == []
    assert [shape["body"] for shape in found] == [-1, 0, 1]
    turned = Rotation.from_euler("xyz", [0.1, -0.2, 0.3]).apply(2 * TETRAHEDRON.reshape(-1, 3))
    local = turned + np.array([0, 0, 0.5])
    link, body = arm.pose(q, frame="first"), arm.dh_poses(q)[0]
    got = corners(found[1]) @ body[:3, :3].T + body[:3, 3]
    np.testing.assert_allclose(got, local @ link[:3, :3].T + link[:3, 3], atol=1e-4)
    ball = corners(found[2]) @ arm.dh_poses(q)[1][:3, :3].T + arm.dh_poses(q)[1][:3, 3]
    centre = arm.pose(q, frame="second")[:3, 3]
    np.testing.assert_allclose(np.linalg.norm(ball - centre, axis=1), 0.25, atol=1e-4)


def test_a_mesh_of_another_format_gives_way_to_the_collision_shape(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF.format(mesh="t.dae"))
    (tmp_path / "t.dae").write_text("<COLLADA/>")
    found, notes = shapes(tmp_path / "arm.urdf", armdyn.load(tmp_path / "arm.urdf"))
    assert len(found) == 3
    assert len(notes) == 1
    assert "collision shape is drawn instead" in notes[0]


def test_shapes_have_the_colours_of_the_file(tmp_path):
    (tmp_path / "t.obj").write_bytes(OBJ)
    text = URDF.format(mesh="t.obj").replace('<robot name="shapes">', """<robot name="shapes">
    <material name="orange"><color rgba="1 0.5 0 1"/></material>""")  # fmt: skip
    first, second = '<mesh filename="t.obj" scale="2 2 2"/></geometry>', '<sphere radius="0.25"/></geometry>'
    text = text.replace(first, first + '<material name="orange"/>')
    text = text.replace(second, second + '<material name="own"><color rgba="0 0 two 1"/></material>')
    (tmp_path / "arm.urdf").write_text(text)
    drawn, notes = shapes(tmp_path / "arm.urdf", armdyn.load(tmp_path / "arm.urdf"))
    assert notes == []
    assert [shape.get("color") for shape in drawn] == [None, "#ff8000", None]


def test_by_default_shapes_are_drawn_where_they_are_found(tmp_path, monkeypatch):
    assert found_shapes("puma560", armdyn.load("puma560")) == ([], [])
    (tmp_path / "lost.urdf").write_text(URDF.format(mesh="lost.obj"))
    drawn, notes = found_shapes(tmp_path / "lost.urdf", armdyn.load(tmp_path / "lost.urdf"))
    assert len(drawn) == 3  # the collision shape in place of the lost mesh
    assert len(notes) == 1
    alone = URDF.replace('<box size="0.2 0.3 0.1"/>', '<mesh filename="{mesh}"/>')  # a collision shape of one link only
    alone = alone.replace('<sphere radius="0.25"/>', '<mesh filename="{mesh}"/>')
    (tmp_path / "few.urdf").write_text(alone.format(mesh="lost.obj"))
    drawn, notes = found_shapes(tmp_path / "few.urdf", armdyn.load(tmp_path / "few.urdf"))
    assert (drawn, len(notes)) == ([], 1)
    assert notes[0].endswith("all links are drawn from the joint frames")
    (tmp_path / "t.obj").write_bytes(OBJ)
    (tmp_path / "arm.urdf").write_text(URDF.format(mesh="t.obj"))
    arm = armdyn.load(tmp_path / "arm.urdf")
    whole = found_shapes(tmp_path / "arm.urdf", arm)[0]
    monkeypatch.setattr("armdyn.pages.meshes.ALL_FACES", 1)  # every mesh is simplified to the least that is drawn
    few = found_shapes(tmp_path / "arm.urdf", arm)[0]
    count = [sum(len(base64.b64decode(shape["faces"])) for shape in found) for found in (whole, few)]
    assert count[1] < count[0]


def test_thinning_is_that_of_whole_rows(monkeypatch):
    """Numbers in place of rows are sorted alike: the same cells, means and faces in the same order."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(4000, 3)) * [1.0, 0.3, 2.0] - 5.0
    faces = points[rng.integers(0, 4000, (4000, 3))]
    quick = thinned(faces, 3000)

    numbered = meshes._numbered
    monkeypatch.setattr(meshes, "_numbered", lambda rows, base: numbered(rows, 2**22))
    assert 100 < len(quick) <= 3000
    assert np.array_equal(quick, thinned(faces, 3000))
