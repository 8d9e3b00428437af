// The 3D view of an arm: a camera to orbit and zoom by mouse, touch and keys, and dragging of links.
"use strict";
const Viewer = (() => {
  const { add, sub, scale, dot, cross, unit, norm } = Geometry;
  const NEAR = 30; // pixels within which a link can be grabbed
  const FIELD = 1.9; // focal length divided by half the smaller side of the view

  function camera(view, width, height) {
    const cp = Math.cos(view.pitch), away = [cp * Math.sin(view.yaw), -cp * Math.cos(view.yaw), Math.sin(view.pitch)];
    const eye = add(view.center, scale(away, view.distance)), forward = scale(away, -1);
    const right = [Math.cos(view.yaw), Math.sin(view.yaw), 0], up = cross(right, forward);
    const near = view.distance / 50, far = view.distance * 20, small = Math.min(width, height);
    const fx = FIELD * small / width, fy = FIELD * small / height, a = (far + near) / (far - near), b = -2 * far * near / (far - near);
    const row = (v, k) => [k * v[0], k * v[1], k * v[2], -k * dot(v, eye)];
    const depth = row(forward, 1);
    const matrix = [...row(right, fx), ...row(up, fy), a * depth[0], a * depth[1], a * depth[2], a * depth[3] + b, ...depth];
    const project = (p) => {
      const d = sub(p, eye), w = Math.max(dot(d, forward), 1e-6);
      return [width / 2 * (1 + fx * dot(d, right) / w), height / 2 * (1 - fy * dot(d, up) / w), w];
    };
    // The displacement in space, at a given depth, of a displacement in pixels.
    const lift = (dx, dy, w) => add(scale(right, 2 * dx * w / (fx * width)), scale(up, -2 * dy * w / (fy * height)));
    return { matrix, eye, project, lift };
  }

  function nearest(picks, project, x, y) {
    let best = null;
    for (const pick of picks) {
      const a = project(pick.a), b = project(pick.b), d = [b[0] - a[0], b[1] - a[1]];
      const t = Math.max(0, Math.min(1, ((x - a[0]) * d[0] + (y - a[1]) * d[1]) / (d[0] ** 2 + d[1] ** 2 || 1)));
      const away = Math.hypot(x - a[0] - t * d[0], y - a[1] - t * d[1]) - (pick.tool ? 12 : 0);
      if (away < NEAR && (!best || away < best.away) && pick.body >= 0) best = { away, pick, point: add(pick.a, scale(sub(pick.b, pick.a), t)) };
    }
    return best;
  }

  // `options.grab(body, point)` starts a drag, `.drag(target)` continues it, `.release()` ends it.
  function create(canvas, robot, state, options = {}) {
    const scene = Robot.measure(robot, state.poses, state.tool), painter = Paint.painter(canvas, () => redraw());
    const show = { links: null, masses: false, frames: false, ellipsoid: "none", ghost: null, torques: null, payload: 0, payloadAt: [0, 0, 0], cloud: null };
    const middle = [scene.foot[0], scene.foot[1], scene.floor + 0.5 * scene.height];
    const began = Array.from(Geometry.origin(state.poses.subarray(0, 16)));
    // Far enough that the reach fits to both sides, whatever the shape of the view.
    const home = { yaw: 0.75, pitch: 0.28, distance: Math.hypot(1, FIELD) * Math.max(scene.far, 0.55 * scene.height), center: middle };
    const view = { ...home };
    let picks = [], current = null, held = null, wanted = false;

    function draw() {
      wanted = false;
      const width = canvas.clientWidth || 1, height = canvas.clientHeight || 1;
      const flown = robot.stands ? [0, 0, 0] : sub(Geometry.origin(state.poses.subarray(0, 16)), began); // with a floating base
      current = camera({ ...view, center: add(view.center, flown) }, width, height);
      const made = Robot.solids(robot, state, scene, show);
      picks = made.picks;
      const ghost = show.ghost ? Robot.ghost(robot, show.ghost, scene) : [];
      painter.draw([...made.solids, ...ghost], current, { z: scene.floor, cell: 0.25 * scene.size, color: Page.rgb(Page.color("grid")),
        shadow: [0, 0, 0], depth: Number(Page.color("shadow")) }, show.cloud && { points: show.cloud, color: Page.rgb(Page.color("mass")), alpha: 0.55 });
      canvas.dataset.tool = Geometry.origin(state.tool).map((x) => x.toFixed(4)).join(",");
    }
    const redraw = () => { if (!wanted) { wanted = true; requestAnimationFrame(draw); } };

    const pointers = new Map();
    const spot = (event) => { const r = canvas.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
    const spread = () => { const [a, b] = [...pointers.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]) || 1; };

    // One finger scrolls the page; two rotate by their common motion and zoom by their distance.
    canvas.addEventListener("touchmove", (event) => { if (event.touches.length > 1) event.preventDefault(); }, { passive: false });
    const middleOf = () => { const all = [...pointers.values()]; return [0, 1].map((k) => all.reduce((sum, p) => sum + p[k], 0) / all.length); };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") { pointers.set(event.pointerId, spot(event)); return; }
      canvas.focus({ preventScroll: true }); canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, spot(event));
      const found = pointers.size === 1 && options.grab ? nearest(picks, current.project, ...spot(event)) : null;
      if (found) { held = { body: found.pick.body, target: found.point, tool: found.pick.tool }; options.grab(held.body, held.target); }
      canvas.classList.add(held ? "grabbing" : "turning");
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = spot(event), before = pointers.get(event.pointerId);
      if (!before) { canvas.classList.toggle("over", Boolean(options.grab && current && nearest(picks, current.project, ...now))); return; }
      if (pointers.size === 2) {
        const old = spread(), from = middleOf(); pointers.set(event.pointerId, now);
        const to = middleOf(); turn(-0.008 * (to[0] - from[0]), 0.008 * (to[1] - from[1])); zoom(old / spread()); return;
      }
      pointers.set(event.pointerId, now);
      if (event.pointerType === "touch") return;
      const dx = now[0] - before[0], dy = now[1] - before[1];
      if (held) {
        held.target = add(held.target, current.lift(dx, dy, current.project(held.target)[2]));
        options.drag(held.target);
      } else turn(-0.008 * dx, 0.008 * dy);
    });
    const lift = (event) => {
      pointers.delete(event.pointerId); canvas.classList.remove("grabbing", "turning");
      if (held && !pointers.size) { held = null; options.release(); }
    };
    canvas.addEventListener("pointerup", lift); canvas.addEventListener("pointercancel", lift);

    function turn(yaw, pitch) { view.yaw += yaw; view.pitch = Math.max(-0.3, Math.min(1.5, view.pitch + pitch)); redraw(); }
    function zoom(factor) { view.distance = Math.max(0.5 * scene.size, Math.min(12 * scene.size, view.distance * factor)); redraw(); }
    // The wheel zooms only while the view has the focus, so that the page can be scrolled past it.
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault(); zoom(Math.exp(0.0012 * event.deltaY));
    }, { passive: false });
    const KEYS = { ArrowLeft: () => turn(0.1, 0), ArrowRight: () => turn(-0.1, 0), ArrowUp: () => turn(0, 0.08), ArrowDown: () => turn(0, -0.08),
      "+": () => zoom(0.9), "=": () => zoom(0.9), "-": () => zoom(1.1), 0: () => { Object.assign(view, home); redraw(); } };
    canvas.addEventListener("keydown", (event) => {
      if (KEYS[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); KEYS[event.key](); }
    });
    new ResizeObserver(redraw).observe(canvas);
    Page.onTheme(redraw);
    addEventListener("beforeprint", draw);
    draw();
    return { view, show, draw, redraw, scene, kind: painter.kind, reset: KEYS[0], project: (p) => current.project(p), held: () => held };
  }

  // Inverse kinematics for a point of a body: damped least squares within the joint limits.
  function reach(robot, arm, body, local, target, limits = true) {
    const { q } = arm.arrays;
    for (let round = 0; round < 8; round++) {
      const point = Geometry.apply(Robot.poseOf(robot, arm.arrays.poses, body), local);
      const error = sub(target, point), far = norm(error);
      if (far < 1e-6) break;
      const step = scale(error, Math.min(1, 0.15 * robot.reach / far)), J = Robot.pointJacobian(robot, arm.arrays, body, point);
      const damp = (0.03 * robot.reach) ** 2;
      const A = [0, 1, 2].map((i) => [0, 1, 2].map((k) => J.reduce((s, c) => s + c[i] * c[k], 0) + (i === k ? damp : 0)));
      const force = Geometry.solve(A, step);
      J.forEach((column, i) => {
        const moved = q[robot.first + i] + dot(column, force);
        q[robot.first + i] = limits ? Math.max(robot.lower[i], Math.min(robot.upper[i], moved)) : moved;
      });
      arm.state();
    }
    return Array.from(q);
  }

  return { create, reach, unit };
})();
