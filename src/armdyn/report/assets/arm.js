// The arm in 3-D on a plain canvas: frames from the joint table, links as tubes, joints as cylinders and boxes.
"use strict";
const ArmView = (() => {
  const mul = (A, B) => A.map((row) => B[0].map((_, j) => row.reduce((s, a, k) => s + a * B[k][j], 0)));
  const apply = (T, p) => [0, 1, 2].map((i) => T[i][0] * p[0] + T[i][1] * p[1] + T[i][2] * p[2] + T[i][3]);
  const turn = (axis, a) => {
    const c = Math.cos(a), s = Math.sin(a);
    if (axis === "x") return [[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]];
    if (axis === "y") return [[c, 0, s, 0], [0, 1, 0, 0], [-s, 0, c, 0], [0, 0, 0, 1]];
    return [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]];
  };
  const shift = (x, y, z) => [[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, z], [0, 0, 0, 1]];
  const sub = (a, b) => a.map((x, i) => x - b[i]);
  const norm = (a) => Math.hypot(...a);
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const unit = (a) => { const l = norm(a) || 1; return a.map((x) => x / l); };

  // Every frame in the base, with the elbow point between two frames (along x first, then along z).
  function frames(arm, q) {
    let T = arm.base;
    const out = [{ T, elbow: null }];
    arm.joints.forEach((j, i) => {
      const d = j.d + (j.kind === "prismatic" ? q[i] : 0), th = j.theta + (j.kind === "revolute" ? q[i] : 0);
      const tilt = mul(mul(mul(T, shift(j.b, 0, 0)), turn("x", j.beta)), turn("y", j.gamma));
      const elbow = apply(tilt, [0, 0, 0]);
      T = mul(mul(tilt, shift(0, 0, d)), turn("z", th));
      out.push({ T, elbow });
    });
    out.push({ T: mul(T, arm.tool), elbow: null });
    return out;
  }

  function prism(a, b, r, sides, color, faces) {
    const w = unit(sub(b, a));
    if (norm(sub(b, a)) < 1e-9) return;
    const u = unit(cross(w, Math.abs(w[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0])), v = cross(w, u);
    const ring = (c) => Array.from({ length: sides }, (_, k) => {
      const t = (2 * Math.PI * (k + 0.5)) / sides, cs = r * Math.cos(t), sn = r * Math.sin(t);
      return c.map((x, i) => x + cs * u[i] + sn * v[i]);
    });
    const A = ring(a), B = ring(b);
    for (let k = 0; k < sides; k++) { const m = (k + 1) % sides; faces.push({ pts: [A[k], A[m], B[m], B[k]], color }); }
    faces.push({ pts: A.slice().reverse(), color }, { pts: B, color });
  }

  function solids(arm, q, size) {
    const faces = [], F = frames(arm, q), r = 0.022 * size, origin = (f) => apply(f.T, [0, 0, 0]);
    for (let i = 1; i < F.length; i++) {
      const from = origin(F[i - 1]), to = origin(F[i]), mid = F[i].elbow || to;
      prism(from, mid, r, 10, "link", faces);
      prism(mid, to, r, 10, "link", faces);
      if (i < F.length - 1) {
        const joint = arm.joints[i - 1], z = [0, 1, 2].map((k) => F[i].T[k][2]), h = 0.045 * size;
        const a = to.map((x, k) => x - h * z[k]), b = to.map((x, k) => x + h * z[k]);
        prism(a, b, joint.kind === "revolute" ? 0.045 * size : 0.05 * size, joint.kind === "revolute" ? 18 : 4,
          joint.kind === "revolute" ? "revolute" : "prismatic", faces);
      }
    }
    const tip = F[F.length - 1].T, o = apply(tip, [0, 0, 0]);
    ["x", "y", "z"].forEach((name, k) => {
      const e = [0, 0, 0]; e[k] = 0.16 * size;
      prism(o, apply(tip, e), 0.008 * size, 6, "axis-" + name, faces);
    });
    return { faces, points: F.map(origin) };
  }

  function create(canvas, arm) {
    const view = { yaw: -0.9, pitch: 0.42, zoom: 1, q: arm.home.slice() };
    const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const still = solids(arm, arm.home, 1).points;
    const reach = Math.max(0.2, 1.15 * Math.max(...still.map(norm)));
    const middle = still.reduce((s, p) => s.map((x, i) => x + p[i] / still.length), [0, 0, 0]);
    const center = [middle[0] / 2, middle[1] / 2, middle[2] * 0.8];

    function draw() {
      const ratio = window.devicePixelRatio || 1, W = canvas.clientWidth, H = canvas.clientHeight;
      canvas.width = W * ratio; canvas.height = H * ratio;
      const g = canvas.getContext("2d");
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      g.clearRect(0, 0, W, H);
      const scale = (0.62 * Math.min(W, H) * view.zoom) / reach, cy = Math.cos(view.yaw), sy = Math.sin(view.yaw);
      const cp = Math.cos(view.pitch), sp = Math.sin(view.pitch);
      const see = (p) => { // right, up, towards the viewer
        const [x, y, z] = sub(p, center), a = cy * x - sy * y, b = sy * x + cy * y;
        return [a, cp * z + sp * b, sp * z - cp * b];
      };
      const at = (s) => { const f = 4 * reach / (4 * reach - s[2]); return [W / 2 + scale * f * s[0], H / 2 - scale * f * s[1]]; };
      g.lineWidth = 1; g.strokeStyle = style("--grid");
      const m = Math.ceil(reach * 4) / 4;
      for (let k = -4; k <= 4; k++) {
        for (const [a, b] of [[[k * m / 4, -m, 0], [k * m / 4, m, 0]], [[-m, k * m / 4, 0], [m, k * m / 4, 0]]]) {
          const p = at(see(a)), r = at(see(b));
          g.beginPath(); g.moveTo(...p); g.lineTo(...r); g.stroke();
        }
      }
      const light = unit([0.3, 0.8, 0.6]);
      solids(arm, view.q, reach).faces
        .map((f) => { const s = f.pts.map(see); return { s, color: f.color, depth: s.reduce((t, p) => t + p[2], 0) / s.length }; })
        .sort((a, b) => a.depth - b.depth)
        .forEach((f) => {
          const n = unit(cross(sub(f.s[1], f.s[0]), sub(f.s[2], f.s[0])));
          const shade = 0.62 + 0.38 * Math.abs(n[0] * light[0] + n[1] * light[1] + n[2] * light[2]);
          g.fillStyle = tint(style("--" + f.color), shade); g.strokeStyle = g.fillStyle;
          g.beginPath(); f.s.forEach((p, k) => (k ? g.lineTo(...at(p)) : g.moveTo(...at(p)))); g.closePath(); g.fill(); g.stroke();
        });
      const F = frames(arm, view.q), tip = apply(F[F.length - 1].T, [0, 0, 0]);
      canvas.dataset.tip = tip.map((x) => x.toFixed(4)).join(",");
      const label = document.getElementById("tip");
      if (label) label.textContent = `tool at x ${tip[0].toFixed(3)} m, y ${tip[1].toFixed(3)} m, z ${tip[2].toFixed(3)} m`;
    }
    const tint = (hex, k) => {
      const v = [1, 3, 5].map((i) => Math.round(parseInt(hex.slice(i, i + 2), 16) * k));
      return `rgb(${v.join(",")})`;
    };
    let last = null;
    canvas.addEventListener("pointerdown", (e) => { last = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", (e) => {
      if (!last) return;
      view.yaw += (e.clientX - last[0]) * 0.008;
      view.pitch = Math.max(-1.5, Math.min(1.5, view.pitch + (e.clientY - last[1]) * 0.008));
      last = [e.clientX, e.clientY]; draw();
    });
    canvas.addEventListener("pointerup", () => { last = null; });
    canvas.addEventListener("wheel", (e) => { e.preventDefault(); view.zoom *= Math.exp(-e.deltaY * 0.001); draw(); }, { passive: false });
    window.addEventListener("resize", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
    return { view, draw };
  }
  return { create };
})();
