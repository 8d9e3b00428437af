// The arm as solids: links as capsules between joint frames, housings along joint axes, a pedestal and a gripper.
"use strict";
const Robot = (() => {
  const { add, sub, scale, norm, unit, apply, axis, origin, frame, across, eigen } = Geometry;
  const { sphere, tube, housing, box } = Paint.MESHES;

  const ball = (p, r, look) => ({ mesh: sphere, matrix: frame([r, 0, 0], [0, r, 0], [0, 0, r], p), ...look });
  function rod(a, b, r, look, shape = tube) {
    const along = sub(b, a), [x, y] = across(unit(along));
    return { mesh: shape, matrix: frame(scale(x, r), scale(y, r), along, a), ...look };
  }
  const block = (T, p, size, look) => ({
    mesh: box, matrix: frame(scale(axis(T, 0), size[0]), scale(axis(T, 1), size[1]), scale(axis(T, 2), size[2]), apply(T, p)), ...look,
  });

  // The pose of body k of the arm's state, or of the base for -1.
  const poseOf = (robot, poses, k) => (k < 0 ? robot.base : poses.subarray(16 * k, 16 * k + 16));

  // Corner points from the parent's frame to a body's: along the parent's z, then x, then the joint's axis.
  function path(robot, poses, i) {
    const body = robot.bodies[i], T = poseOf(robot, poses, body.parent);
    const up = [0, 0, body.shift], out = [body.b * Math.cos(body.turn), body.b * Math.sin(body.turn), body.shift];
    return [origin(T), apply(T, up), apply(T, out), origin(poseOf(robot, poses, i))];
  }

  function levels(robot) {
    const level = [];
    robot.bodies.forEach((body, i) => { level[i] = body.parent < 0 ? 1 : level[body.parent] + 1; });
    return level;
  }

  // Lower and upper corner of everything that is drawn as meshes, or of the frames where there are none.
  function extent(robot, poses, points) {
    const low = [Infinity, Infinity, Infinity], high = low.map((x) => -x);
    const take = (p) => { for (let k = 0; k < 3; k++) { low[k] = Math.min(low[k], p[k]); high[k] = Math.max(high[k], p[k]); } };
    for (const { body, matrix, mesh } of unpacked(robot)) {
      const T = product(Array.from(body < 0 ? IDENTITY : poseOf(robot, poses, body)), matrix);
      for (let k = 0; k < mesh.points.length; k += 9) take(apply(T, mesh.points.subarray(k, k + 3)));
    }
    if (!robot.meshes.length) points.forEach(take);
    return { low, high };
  }

  // The dimensions of the drawing: overall size, height of the floor, radius of each link; how far from the middle it can
  // reach. A robot drawn by its meshes stands on the lowest of them.
  function measure(robot, poses, tool) {
    const points = [origin(robot.base), ...robot.bodies.map((_, i) => origin(poseOf(robot, poses, i))), origin(tool)];
    const foot = points[0], far = Math.max(...points.map((p) => norm(sub(p, foot)))), { low, high } = extent(robot, poses, points);
    const size = Math.max(0.05, Math.min(robot.reach, 2.2 * far));
    const lifted = points.some((p) => p[2] > foot[2] + 0.25 * size && p[0] ** 2 + p[1] ** 2 < (0.3 * size) ** 2);
    const floor = robot.meshes.length ? low[2] : foot[2] > 0.02 * size && low[2] >= 0 ? 0 : foot[2] - (lifted && low[2] >= foot[2] - 1e-6 ? 0 : 0.42 * size);
    const level = levels(robot), deepest = Math.max(...level, 1);
    const radius = (i) => size * (0.05 - 0.026 * (i < 0 ? 0 : level[i] / deepest));
    const height = high[2] - floor + 0.1 * size, whole = robot.meshes.length ? 0.5 * norm(sub(high, low)) : 0;
    const branches = robot.bodies.filter(({ parent }) => parent < 0).length > 1;
    return { size, floor, radius, foot, height, far: branches ? 1.05 * Math.max(whole, far) : Math.max(1.1 * far, whole, robot.reach) };
  }

  function capsule(points, r, look, out, picks, body) {
    for (let k = 0; k + 1 < points.length; k++) {
      const [a, b] = [points[k], points[k + 1]];
      if (norm(sub(b, a)) < 1e-6) continue;
      out.push(rod(a, b, r, look), ball(a, r, look), ball(b, r, look));
      picks.push({ a, b, body });
    }
  }

  function gripper(T, s, look, accent) {
    return [
      block(T, [0, 0, 0.012 * s], [0.085 * s, 0.04 * s, 0.024 * s], look),
      block(T, [0.032 * s, 0, 0.05 * s], [0.014 * s, 0.03 * s, 0.056 * s], accent),
      block(T, [-0.032 * s, 0, 0.05 * s], [0.014 * s, 0.03 * s, 0.056 * s], accent),
    ];
  }

  const product = (A, B) => Array.from({ length: 16 }, (_, k) => [0, 1, 2, 3].reduce((s, m) => s + A[(k & 12) + m] * B[4 * m + (k & 3)], 0));
  const shapes = new Map(); // the meshes of a robot, unpacked once
  function unpacked(robot) {
    if (!shapes.has(robot)) shapes.set(robot, robot.meshes.map((data) => ({ body: data.body, matrix: data.matrix, shade: data.color, mesh: Paint.unpacked(data) })));
    return shapes.get(robot);
  }
  function meshed(robot, state, look, lit) {
    return unpacked(robot).map(({ body, matrix, mesh, shade }) => ({ mesh, matrix: product(Array.from(body < 0 ? IDENTITY : poseOf(robot, state.poses, body)), matrix),
      ...(shade && !lit.has(body) ? { color: Page.rgb(shade) } : look(body)) }));
  }
  const IDENTITY = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];

  // Everything to draw for a state, and the segments that can be grabbed.
  function solids(robot, state, scene, show) {
    const { size, radius, floor, foot } = scene, out = [], picks = [];
    const color = (name) => Page.rgb(Page.color(name)), lit = show.links || new Set();
    const look = (body) => (lit.has(body) ? { color: color("lit"), glow: 0.15 } : { color: color(body % 2 ? "link-2" : "link") });
    const jointed = (body, kind) => (lit.has(body) ? { color: color("lit"), glow: 0.15 } : { color: color(kind) }); // a joint's housing belongs to the link it moves
    const dark = { color: color("housing") }, up = (p, dz) => [p[0], p[1], p[2] + dz];
    const ground = [foot[0], foot[1], floor], own = robot.meshes.length > 0, skeleton = own ? [] : out, stand = robot.stands ? skeleton : [];
    if (own) out.push(...meshed(robot, state, look, lit));
    stand.push(rod(ground, up(ground, 0.025 * size), 0.15 * size, dark, housing));
    if (foot[2] - floor > 0.03 * size) stand.push(rod(up(ground, 0.02 * size), foot, 0.075 * size, { color: color("link") }, housing));
    robot.bodies.forEach((body, i) => {
      const points = path(robot, state.poses, i), T = poseOf(robot, state.poses, i), r = radius(i);
      if (body.kind === "free") return; // nothing joins a floating base to the ground
      capsule(points, body.kind === "prismatic" ? 0.8 * r : r, look(body.parent), skeleton, picks, body.parent);
      const z = axis(T, 2), half = scale(z, 1.25 * r), here = points[3];
      if (body.kind === "prismatic") skeleton.push(block(T, [0, 0, 0], [2.6 * r, 2.6 * r, 2.2 * r], jointed(i, "prismatic")));
      else skeleton.push(rod(sub(here, half), add(here, half), 1.32 * r, jointed(i, "revolute"), housing),
        rod(sub(here, scale(half, 1.05)), add(here, scale(half, 1.05)), 0.9 * r, dark, housing));
      picks.push({ a: here, b: here, body: i });
    });
    const last = robot.toolBody, tip = origin(state.tool);
    capsule([origin(poseOf(robot, state.poses, last)), tip], 0.8 * radius(last), look(last), skeleton, picks, last);
    skeleton.push(...gripper(state.tool, size, dark, { color: color("revolute") }));
    picks.push({ a: tip, b: tip, body: last, tool: true });
    if (show.payload > 0) out.push(ball(apply(state.tool, show.payloadAt), size * Math.min(0.12, 0.025 * Math.cbrt(1 + 4 * show.payload)), { color: color("payload") }));
    if (show.torques) out.push(...arcs(robot, state, show.torques, radius, size, color));
    if (show.masses) out.push(...centres(robot, state, size, color("mass")));
    if (show.frames) robot.bodies.forEach((_, i) => out.push(...triad(poseOf(robot, state.poses, i), 0.09 * size, color)));
    if (show.ellipsoid !== "none") out.push(ellipsoid(show.ellipsoid, robot, state, size, color("ellipsoid")));
    return { solids: out.filter(Boolean), picks };
  }

  // A pinned posture, translucent.
  function ghost(robot, state, scene) {
    const plain = { links: null, payload: 0, ellipsoid: "none" };
    return solids(robot, state, scene, plain).solids.map((solid) => ({ ...solid, color: Page.rgb(Page.color("accent")), alpha: 0.22 }));
  }

  // Motor torques as arcs about the joints' axes, a full turn at the limit; forces of prismatic joints as rods.
  const PIECES = 24;
  function arcs(robot, state, torques, radius, size, color) {
    const out = [], base = robot.nv - robot.n;
    robot.bodies.forEach(({ joint, kind }, k) => {
      if (joint < 0) return;
      const most = robot.effort[base + joint], part = most > 0 ? Math.max(-1, Math.min(1, torques[base + joint] / most)) : 0;
      if (Math.abs(part) < 0.005) return;
      const T = poseOf(robot, state.poses, k), r = 1.9 * Math.max(radius(k), 0.02 * size), look = { color: color(Math.abs(torques[base + joint]) > most ? "negative" : "lit"), glow: 0.15 };
      if (kind === "prismatic") { out.push(rod(origin(T), add(origin(T), scale(axis(T, 2), 4 * r * part)), 0.25 * r, look)); return; }
      const at = (angle) => add(origin(T), add(scale(axis(T, 0), r * Math.cos(angle)), scale(axis(T, 1), r * Math.sin(angle))));
      const count = Math.max(1, Math.ceil(PIECES * Math.abs(part)));
      for (let m = 0; m < count; m++) out.push(rod(at(2 * Math.PI * part * m / count), at(2 * Math.PI * part * (m + 1) / count), 0.13 * r, look));
    });
    return out;
  }

  function centres(robot, state, size, color) {
    const total = robot.masses.reduce((a, b) => a + b, 0) || 1;
    return robot.masses.map((m, i) => (m > 0
      ? ball(apply(poseOf(robot, state.poses, i), robot.centres[i]), 0.075 * size * Math.cbrt(m / total), { color, over: true }) : null));
  }

  const triad = (T, length, color) => ["axis-x", "axis-y", "axis-z"].map((name, k) =>
    rod(origin(T), add(origin(T), scale(axis(T, k), length)), 0.05 * length, { color: color(name), glow: 0.1, over: true }));

  // J J^T (manipulability) or J H^-1 J^T (mobility, the inverse effective mass) of the tool's origin, 3 x 3.
  function toolMatrix(kind, n, state) {
    const rows = [0, 1, 2].map((k) => Array.from(state.J.slice(k * n, (k + 1) * n)));
    let right = rows;
    if (kind === "mobility") {
      const H = Array.from({ length: n }, (_, i) => Array.from(state.H.slice(i * n, (i + 1) * n)));
      right = rows.map((row) => Geometry.solve(H, row));
    }
    return rows.map((a) => right.map((b) => a.reduce((s, x, k) => s + x * b[k], 0)));
  }

  function ellipsoid(kind, robot, state, size, color) {
    const { values, vectors } = eigen(toolMatrix(kind, robot.nv, state));
    const axes = values.map((v) => Math.sqrt(Math.max(v, 0))), largest = Math.max(...axes) || 1;
    const radii = axes.map((a) => Math.max(0.004, 0.22 * a / largest) * size);
    return { mesh: sphere, matrix: frame(...vectors.map((v, k) => scale(v, radii[k])), origin(state.tool)), color, alpha: 0.45 };
  }

  // The position Jacobian of a point on any body, computed from the poses; column i belongs to joint i.
  function pointJacobian(robot, state, body, point) {
    const columns = Array.from({ length: robot.n }, () => [0, 0, 0]);
    for (let k = body; k >= 0; k = robot.bodies[k].parent) {
      const { kind, joint, multiplier } = robot.bodies[k];
      if (joint < 0) continue;
      const T = poseOf(robot, state.poses, k), z = axis(T, 2);
      const moved = kind === "prismatic" ? z : Geometry.cross(z, sub(point, origin(T)));
      columns[joint] = add(columns[joint], scale(moved, multiplier));
    }
    return columns;
  }

  // The Jacobian columns of a floating base's six velocities, in its own axes; none for a fixed base.
  function baseColumns(robot, state, point) {
    if (robot.stands) return [];
    const T = poseOf(robot, state.poses, 0), axes = [0, 1, 2].map((k) => axis(T, k)), arm = sub(point, origin(T));
    return [...axes, ...axes.map((turned) => Geometry.cross(turned, arm))];
  }

  return { solids, ghost, measure, pointJacobian, baseColumns, toolMatrix, poseOf };
})();
