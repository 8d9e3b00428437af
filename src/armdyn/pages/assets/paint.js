// Draws solids on a canvas with WebGL, or without it by the painter's algorithm on the same meshes.
// A solid is { mesh, matrix, color, alpha, glow, over }; its matrix is a rotation times a scale along its own axes.
"use strict";
const Paint = (() => {
  const LIGHT = [0.35, -0.45, 0.82];

  function mesh(points, normals, triangles) {
    return { points: new Float32Array(points.flat()), normals: new Float32Array(normals.flat()), triangles: new Uint16Array(triangles.flat()) };
  }

  function grid(rows, columns) {
    const out = [], wide = columns + 1;
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) {
      const a = i * wide + j, b = a + 1, c = a + wide, d = c + 1;
      out.push([a, c, b], [b, c, d]);
    }
    return out;
  }

  function sphere(rows = 11, columns = 20) {
    const points = [];
    for (let i = 0; i <= rows; i++) for (let j = 0; j <= columns; j++) {
      const u = Math.PI * i / rows, v = 2 * Math.PI * j / columns;
      points.push([Math.sin(u) * Math.cos(v), Math.sin(u) * Math.sin(v), Math.cos(u)]);
    }
    return mesh(points, points, grid(rows, columns));
  }

  // A body of revolution about z from a profile of [radius, height, radial normal, axial normal].
  function turned(profile, columns) {
    const points = [], normals = [];
    for (const [r, z, nr, nz] of profile) for (let j = 0; j <= columns; j++) {
      const v = 2 * Math.PI * j / columns, c = Math.cos(v), s = Math.sin(v);
      points.push([r * c, r * s, z]); normals.push([nr * c, nr * s, nz]);
    }
    return mesh(points, normals, grid(profile.length - 1, columns).map(([a, b, c]) => [a, c, b]));
  }
  // With a small bevel, which makes the edges visible.
  function cylinder(bevel = 0.06) {
    return turned([[0, 0, 0, -1], [1 - bevel, 0, 0, -1], [1 - bevel, 0, 0.7, -0.7], [1, bevel, 0.7, -0.7], [1, bevel, 1, 0],
      [1, 1 - bevel, 1, 0], [1, 1 - bevel, 0.7, 0.7], [1 - bevel, 1, 0.7, 0.7], [1 - bevel, 1, 0, 1], [0, 1, 0, 1]], 24);
  }

  function box() {
    const points = [], normals = [], triangles = [];
    for (let k = 0; k < 3; k++) for (const side of [-1, 1]) {
      const n = [0, 0, 0]; n[k] = side;
      const start = points.length;
      for (const a of [-1, 1]) for (const b of [-1, 1]) {
        const p = [0, 0, 0]; p[k] = side; p[(k + 1) % 3] = a; p[(k + 2) % 3] = b;
        points.push(p.map((x) => x / 2)); normals.push(n);
      }
      triangles.push(...(side > 0 ? [[0, 2, 3], [0, 3, 1]] : [[0, 3, 2], [0, 1, 3]]).map((t) => t.map((x) => x + start)));
    }
    return mesh(points, normals, triangles);
  }

  // A mesh from packed vertices; faces that meet at less than 40 degrees are shaded smoothly, others flat.
  function unpacked(data) {
    const read = (text) => new Uint16Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
    const whole = read(data.points), faces = read(data.faces), at = (k) => [0, 1, 2].map((i) => data.low[i] + data.step * whole[3 * k + i]);
    const around = Array.from({ length: whole.length / 3 }, () => []), flat = [];
    for (let f = 0; f < faces.length; f += 3) {
      const [a, b, c] = [at(faces[f]), at(faces[f + 1]), at(faces[f + 2])];
      const n = Geometry.cross(Geometry.sub(b, a), Geometry.sub(c, a));
      flat.push({ n, u: Geometry.unit(n) });
      for (let k = 0; k < 3; k++) around[faces[f + k]].push(f / 3);
    }
    const points = [], normals = [], triangles = [];
    for (let f = 0; f < faces.length; f++) {
      const own = flat[Math.floor(f / 3)];
      let sum = [0, 0, 0];
      for (const other of around[faces[f]]) if (Geometry.dot(flat[other].u, own.u) > 0.77) sum = Geometry.add(sum, flat[other].n);
      points.push(at(faces[f])); normals.push(Geometry.unit(sum)); triangles.push([f]);
    }
    return mesh(points, normals, triangles);
  }

  const MESHES = { sphere: sphere(), tube: turned([[1, 0, 1, 0], [1, 1, 1, 0]], 24), housing: cylinder(), box: box() };

  // The normal matrix of a solid: the columns of its matrix divided by their squared lengths.
  function normalMatrix(m) {
    const out = new Float32Array(9);
    for (let k = 0; k < 3; k++) {
      const square = m[k] ** 2 + m[4 + k] ** 2 + m[8 + k] ** 2 || 1;
      for (let i = 0; i < 3; i++) out[3 * k + i] = m[4 * i + k] / square;
    }
    return out;
  }

  const VERTEX = `#version 300 es
    in vec3 point; in vec3 normal; uniform mat4 place; uniform mat4 view; uniform mat3 turn; out vec3 at; out vec3 n;
    void main() { vec4 p = vec4(point, 1.0) * place; at = p.xyz; n = turn * normal; gl_Position = p * view; gl_PointSize = 4.0; }`;
  const FRAGMENT = `#version 300 es
    precision highp float; in vec3 at; in vec3 n; uniform vec3 eye; uniform vec4 color; uniform float glow; uniform vec3 light; out vec4 result;
    void main() {
      vec3 d = normalize(n), v = normalize(eye - at); if (dot(d, v) < -0.35) d = -d; // seen from inside, not only at grazing angles
      float key = max(dot(d, light), 0.0), sky = 0.5 + 0.5 * d.z, rim = pow(1.0 - max(dot(d, v), 0.0), 3.0);
      float shine = pow(max(dot(d, normalize(light + v)), 0.0), 40.0);
      vec3 c = color.rgb * (0.44 + 0.24 * sky + 0.40 * key) + 0.14 * shine + 0.10 * rim + glow * color.rgb;
      result = vec4(c, 1.0) * color.a;
    }`;
  const FLOOR_FRAGMENT = `#version 300 es
    precision highp float; in vec3 at; in vec3 n; uniform vec4 color; uniform float glow; uniform vec3 eye; uniform vec3 light; out vec4 result;
    void main() {
      vec2 p = at.xy / glow; vec2 w = fwidth(p); vec2 d = abs(fract(p - 0.5) - 0.5) / max(w, 1e-6);
      float line = 1.0 - min(min(d.x, d.y), 1.0), fade = smoothstep(6.0, 2.0, length(p)) * min(1.0, 0.25 / max(w.x, w.y));
      result = vec4(color.rgb, 1.0) * color.a * line * fade + 0.0 * (eye.x + light.x + n.x);
    }`;
  const FLAT_FRAGMENT = `#version 300 es
    precision highp float; in vec3 at; in vec3 n; uniform vec4 color; uniform float glow; uniform vec3 eye; uniform vec3 light; out vec4 result;
    void main() { result = vec4(color.rgb, 1.0) * color.a + 0.0 * (at.x + n.x + glow + eye.x + light.x); }`;

  function program(gl, fragment) {
    const made = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text); gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(made, shader);
    }
    gl.bindAttribLocation(made, 0, "point"); gl.bindAttribLocation(made, 1, "normal");
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
    const at = {};
    for (const name of ["place", "view", "turn", "eye", "color", "glow", "light"]) at[name] = gl.getUniformLocation(made, name);
    return { made, at };
  }

  function webgl(canvas, restored) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: true, stencil: true, premultipliedAlpha: true, preserveDrawingBuffer: true });
    if (!gl) return null;
    const made = () => ({ solid: program(gl, FRAGMENT), floor: program(gl, FLOOR_FRAGMENT), flat: program(gl, FLAT_FRAGMENT) });
    let programs = made(), stored = new Map(), lost = false;
    // The browser may take the context away; programs and buffers are made again when it comes back.
    canvas.addEventListener("webglcontextlost", (event) => { event.preventDefault(); lost = true; });
    canvas.addEventListener("webglcontextrestored", () => { programs = made(); stored = new Map(); lost = false; restored(); });
    function buffers(m) {
      if (stored.has(m)) return stored.get(m);
      const array = gl.createVertexArray();
      gl.bindVertexArray(array);
      [m.points, m.normals].forEach((data, k) => {
        gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
        gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
        gl.enableVertexAttribArray(k); gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 0, 0);
      });
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, m.triangles, gl.STATIC_DRAW);
      stored.set(m, array);
      return array;
    }
    function one(solid, at) {
      gl.bindVertexArray(buffers(solid.mesh));
      gl.uniformMatrix4fv(at.place, false, solid.matrix);
      gl.uniformMatrix3fv(at.turn, false, normalMatrix(solid.matrix));
      gl.uniform4f(at.color, ...solid.color, solid.alpha ?? 1);
      gl.uniform1f(at.glow, solid.glow || 0);
      gl.drawElements(gl.TRIANGLES, solid.mesh.triangles.length, gl.UNSIGNED_SHORT, 0);
    }
    function use({ made, at }, camera) {
      gl.useProgram(made);
      gl.uniformMatrix4fv(at.view, false, camera.matrix);
      gl.uniform3f(at.eye, ...camera.eye); gl.uniform3f(at.light, ...Geometry.unit(LIGHT));
      return at;
    }
    // A cloud of points that change with every picture, { points, color, alpha }.
    let cloudy = null;
    function cloudOf({ points, color, alpha }, at) {
      if (!cloudy || cloudy.owner !== programs) {
        cloudy = { owner: programs, array: gl.createVertexArray(), buffer: gl.createBuffer() };
        gl.bindVertexArray(cloudy.array); gl.bindBuffer(gl.ARRAY_BUFFER, cloudy.buffer); gl.enableVertexAttribArray(0); gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
      }
      gl.bindVertexArray(cloudy.array); gl.bindBuffer(gl.ARRAY_BUFFER, cloudy.buffer);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(points), gl.DYNAMIC_DRAW);
      gl.uniformMatrix4fv(at.place, false, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
      gl.uniform4f(at.color, ...color, alpha); gl.drawArrays(gl.POINTS, 0, points.length / 3);
    }
    function draw(solids, camera, floor, cloud) {
      if (lost) return;
      Page.fit(canvas);
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
      gl.enable(gl.DEPTH_TEST); gl.enable(gl.BLEND); gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA); gl.depthFunc(gl.LESS);
      const over = solids.filter((s) => s.over), rest = solids.filter((s) => !s.over);
      const whole = rest.filter((s) => (s.alpha ?? 1) === 1), clear = rest.filter((s) => (s.alpha ?? 1) < 1);
      const size = 12 * floor.cell, ground = [size, 0, 0, 0, 0, size, 0, 0, 0, 0, 1e-6, floor.z - 0.5e-6, 0, 0, 0, 1];
      gl.depthMask(false);
      one({ mesh: MESHES.box, matrix: ground, color: floor.color, alpha: 0.9, glow: floor.cell }, use(programs.floor, camera));
      // Planar shadows: every solid projected along the light; the stencil darkens each pixel only once.
      gl.enable(gl.STENCIL_TEST); gl.stencilFunc(gl.EQUAL, 0, 255); gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
      const at = use(programs.flat, camera), [lx, ly, lz] = LIGHT, z = floor.z + 1e-4 * floor.cell;
      for (const s of whole) {
        const m = Array.from(s.matrix);
        for (let k = 0; k < 4; k++) {
          const height = m[8 + k] - (k === 3 ? floor.z : 0);
          m[k] -= lx / lz * height; m[4 + k] -= ly / lz * height; m[8 + k] = k === 3 ? z : 0;
        }
        one({ mesh: s.mesh, matrix: m, color: floor.shadow, alpha: floor.depth }, at);
      }
      gl.disable(gl.STENCIL_TEST); gl.depthMask(true);
      const shaded = use(programs.solid, camera);
      whole.forEach((s) => one(s, shaded));
      gl.depthMask(false); gl.enable(gl.CULL_FACE); clear.forEach((s) => one(s, shaded)); gl.disable(gl.CULL_FACE); gl.depthMask(true);
      gl.clear(gl.DEPTH_BUFFER_BIT); over.forEach((s) => one(s, shaded)); // centres of mass, frames and clouds are drawn over the links
      if (cloud) cloudOf(cloud, use(programs.flat, camera));
    }
    return { draw, kind: "WebGL" };
  }

  function plain(canvas) {
    const g = canvas.getContext("2d"), light = Geometry.unit(LIGHT);
    function draw(solids, camera, floor, cloud) {
      const { ratio, width, height } = Page.fit(canvas);
      g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, width, height);
      g.strokeStyle = Page.color("grid"); g.lineWidth = 1;
      for (let k = -4; k <= 4; k++) for (const flip of [0, 1]) {
        const ends = [-4, 4].map((m) => camera.project(flip ? [m * floor.cell, k * floor.cell, floor.z] : [k * floor.cell, m * floor.cell, floor.z]));
        g.beginPath(); g.moveTo(ends[0][0], ends[0][1]); g.lineTo(ends[1][0], ends[1][1]); g.stroke();
      }
      const faces = [];
      for (const s of solids) {
        const { points, normals, triangles } = s.mesh, turn = normalMatrix(s.matrix), seen = [], shade = [];
        for (let k = 0; k < points.length; k += 3) {
          seen.push(camera.project(Geometry.apply(s.matrix, [points[k], points[k + 1], points[k + 2]])));
          const n = Geometry.unit([0, 1, 2].map((i) => turn[i] * normals[k] + turn[3 + i] * normals[k + 1] + turn[6 + i] * normals[k + 2]));
          shade.push(0.45 + 0.15 * n[2] + 0.4 * Math.max(0, Geometry.dot(n, light)));
        }
        for (let k = 0; k < triangles.length; k += 3) {
          const [a, b, c] = [triangles[k], triangles[k + 1], triangles[k + 2]];
          const [p, q, r] = [seen[a], seen[b], seen[c]];
          faces.push({ p, q, r, depth: p[2] + q[2] + r[2], bright: (shade[a] + shade[b] + shade[c]) / 3 + (s.glow || 0), s });
        }
      }
      faces.sort((a, b) => (a.s.over ? 1 : 0) - (b.s.over ? 1 : 0) || b.depth - a.depth);
      for (const { p, q, r, bright, s } of faces) {
        g.globalAlpha = s.alpha ?? 1;
        g.fillStyle = g.strokeStyle = `rgb(${s.color.map((x) => Math.min(255, Math.round(255 * x * (0.25 + bright)))).join(",")})`;
        g.beginPath(); g.moveTo(p[0], p[1]); g.lineTo(q[0], q[1]); g.lineTo(r[0], r[1]); g.closePath(); g.fill(); g.stroke();
      }
      if (cloud) {
        g.globalAlpha = cloud.alpha; g.fillStyle = `rgb(${cloud.color.map((x) => Math.round(255 * x)).join(",")})`;
        for (let k = 0; k < cloud.points.length; k += 3) { const [x, y] = camera.project(cloud.points.subarray(k, k + 3)); g.fillRect(x - 1.5, y - 1.5, 3, 3); }
      }
      g.globalAlpha = 1;
    }
    return { draw, kind: "canvas" };
  }

  const painter = (canvas, restored) => webgl(canvas, restored) || plain(canvas);
  return { painter, MESHES, unpacked };
})();
