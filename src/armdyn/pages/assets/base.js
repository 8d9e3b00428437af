// Utilities for all scripts: elements, number formatting, theme colours, 3-vectors and 4 x 4 matrices.
// Matrices are flat arrays of 16 numbers in row-major order, as the WebAssembly module writes them.
"use strict";
const Page = (() => {
  const $ = (id) => document.getElementById(id);

  // Creates an element with attributes and children. Strings become text nodes, so a name from a file is never markup.
  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  // Three significant digits of constant width; rounding residue is shown as 0.
  function short(x, digits = 3) {
    if (!Number.isFinite(x)) return "–";
    const size = Math.abs(x);
    if (size < 1e-12) return "0";
    if (size >= 1e5 || size < 1e-4) return x.toExponential(1).replace("e+", "e");
    return x.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
  }
  const minus = (text) => (/^-0\.?0*$/.test(text) ? text.slice(1) : text.replaceAll("-", "−"));
  const angle = (x, kind) => (kind === "prismatic" ? `${minus(x.toFixed(3))} m` : `${minus((x * 180 / Math.PI).toFixed(1))}°`);

  // A number as people type it: with a comma or a true minus, with a unit; null if it is none. Angles become radians.
  function parsed(text, kind = "") {
    const word = /^([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(°|deg|rad|mm|m|kg)?$/i.exec(text.replace(/\s/g, "").replaceAll("−", "-").replace(",", "."));
    if (!word || !Number.isFinite(+word[1])) return null;
    const unit = (word[2] || "").toLowerCase();
    if (kind === "revolute") return unit === "rad" ? +word[1] : +word[1] * Math.PI / 180;
    return unit === "mm" ? +word[1] / 1000 : +word[1];
  }

  const colors = new Map(); // of the theme in force
  function color(name) {
    if (!colors.has(name)) colors.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    return colors.get(name);
  }
  const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255);
  // The colour-blind-safe palette of Okabe and Ito.
  const series = (k) => color(`series-${(k % 8) + 1}`);

  const themeListeners = [];
  const onTheme = (listener) => themeListeners.push(listener);

  // Follows the system's light or dark theme until the button is used.
  function startTheme(button) {
    const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
    const take = (theme) => { root.dataset.theme = theme; colors.clear(); themeListeners.forEach((listener) => listener()); };
    take(system.matches ? "dark" : "light");
    system.addEventListener("change", () => take(system.matches ? "dark" : "light"));
    if (button) button.addEventListener("click", () => take(root.dataset.theme === "dark" ? "light" : "dark"));
  }

  // Sizes a canvas to its box in device pixels; drawing uses CSS pixels.
  function fit(canvas) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    return { ratio, width, height };
  }

  // The bytes of a text in base64 that was compressed by `writer.packed`.
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
  }

  function download(name, blob) {
    const link = el("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  return { $, el, short, minus, angle, parsed, color, rgb, series, onTheme, startTheme, fit, unpacked, download };
})();

const Geometry = (() => {
  const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
  const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
  const scale = (a, k) => [a[0] * k, a[1] * k, a[2] * k];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const norm = (a) => Math.hypot(a[0], a[1], a[2]);
  const unit = (a) => scale(a, 1 / (norm(a) || 1));
  const apply = (T, p) => [0, 4, 8].map((i) => T[i] * p[0] + T[i + 1] * p[1] + T[i + 2] * p[2] + T[i + 3]);
  const axis = (T, k) => [T[k], T[4 + k], T[8 + k]];
  const origin = (T) => [T[3], T[7], T[11]];
  const frame = (x, y, z, p) => [x[0], y[0], z[0], p[0], x[1], y[1], z[1], p[1], x[2], y[2], z[2], p[2], 0, 0, 0, 1];
  // Any two directions that make a right-handed frame with z.
  function across(z) {
    const x = unit(cross(Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], z));
    return [x, cross(z, x)];
  }

  // Eigenvalues (ascending) and eigenvectors of a symmetric matrix, given as rows, by Jacobi rotations.
  function eigen(matrix) {
    const n = matrix.length, A = matrix.map((row) => Array.from(row));
    const V = A.map((_, i) => A.map((__, j) => (i === j ? 1 : 0)));
    for (let sweep = 0; sweep < 30; sweep++) {
      let off = 0, all = 0;
      for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) { all += A[i][j] ** 2; if (i !== j) off += A[i][j] ** 2; }
      if (off <= 1e-30 * all) break;
      for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) {
        if (A[p][q] === 0) continue;
        const theta = (A[q][q] - A[p][p]) / (2 * A[p][q]);
        const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.hypot(theta, 1)), c = 1 / Math.hypot(t, 1), s = t * c;
        for (let k = 0; k < n; k++) { const a = A[k][p], b = A[k][q]; A[k][p] = c * a - s * b; A[k][q] = s * a + c * b; }
        for (let k = 0; k < n; k++) { const a = A[p][k], b = A[q][k]; A[p][k] = c * a - s * b; A[q][k] = s * a + c * b; }
        for (let k = 0; k < n; k++) { const a = V[k][p], b = V[k][q]; V[k][p] = c * a - s * b; V[k][q] = s * a + c * b; }
      }
    }
    const order = A.map((_, i) => i).sort((i, j) => A[i][i] - A[j][j]);
    return { values: order.map((i) => A[i][i]), vectors: order.map((i) => V.map((row) => row[i])) };
  }

  // Solves A x = b by Gaussian elimination with partial pivoting, for a few unknowns.
  function solve(matrix, right) {
    const n = right.length, A = matrix.map((row, i) => [...row, right[i]]);
    for (let i = 0; i < n; i++) {
      let best = i;
      for (let k = i + 1; k < n; k++) if (Math.abs(A[k][i]) > Math.abs(A[best][i])) best = k;
      [A[i], A[best]] = [A[best], A[i]];
      for (let k = i + 1; k < n; k++) {
        const factor = A[k][i] / A[i][i];
        for (let j = i; j <= n; j++) A[k][j] -= factor * A[i][j];
      }
    }
    const x = new Array(n).fill(0);
    for (let i = n - 1; i >= 0; i--) {
      let sum = A[i][n];
      for (let j = i + 1; j < n; j++) sum -= A[i][j] * x[j];
      x[i] = sum / A[i][i];
    }
    return x;
  }

  return { add, sub, scale, dot, cross, norm, unit, apply, axis, origin, frame, across, eigen, solve };
})();
