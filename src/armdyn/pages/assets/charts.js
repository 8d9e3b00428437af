// Small charts: curves on a canvas, bars and heat maps in plain elements.
"use strict";
const Chart = (() => {
  const { el, short, minus, color, series, fit } = Page;
  const DASHES = [[], [6, 3], [2, 3]]; // curves beyond the eight colours are dashed

  function ticks(low, high, count) {
    const raw = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw || 1));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw) || raw || 1, out = [];
    for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step) out.push(Math.abs(x) < 1e-9 * step ? 0 : x);
    return out;
  }

  function range(curves, from, to) {
    let low = Infinity, high = -Infinity;
    for (const { y } of curves) for (let k = from; k < to; k++) { const v = y[k]; if (v < low) low = v; if (v > high) high = v; }
    if (!(low <= high)) return [0, 1];
    const size = Math.max(Math.abs(low), Math.abs(high)), flat = high - low < 1e-9 * size + 1e-12;
    const room = flat ? 0.5 * size || 1 : 0.06 * (high - low);
    return [low - room, high + room];
  }

  // Curves { name, y } over `x`; `window` = [from, to] in x; `cursor` marks one x; `hint` is shown while there is no data.
  function curves(canvas, { x, curves: list, window: shown, y: label, cursor = null, unit = "s", hint = "" }) {
    const { ratio, width, height } = fit(canvas), g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, width, height);
    g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle";
    const left = 54, right = 12, top = 22, bottom = 22, w = width - left - right, h = height - top - bottom;
    const [x0, x1] = shown || [x[0] ?? 0, x[x.length - 1] ?? 1];
    let from = 0, to = x.length;
    while (from < to - 1 && x[from + 1] < x0) from++;
    while (to > from + 1 && x[to - 2] > x1) to--;
    const [low, high] = range(list, from, to);
    const px = (v) => left + w * (v - x0) / (x1 - x0 || 1), py = (v) => top + h * (high - v) / (high - low || 1);
    g.fillStyle = color("muted"); g.strokeStyle = color("grid"); g.lineWidth = 1;
    g.textAlign = "left"; g.fillText(label, 4, 9);
    g.textAlign = "right";
    for (const v of ticks(low, high, Math.floor(h / 34))) {
      g.beginPath(); g.moveTo(left, py(v)); g.lineTo(left + w, py(v)); g.stroke(); g.fillText(minus(short(v)), left - 6, py(v));
    }
    g.textAlign = "center";
    for (const v of ticks(x0, x1, Math.floor(w / 90))) g.fillText(minus(`${+v.toFixed(3)}`) + (unit ? ` ${unit}` : ""), px(v), top + h + 12);
    g.save(); g.beginPath(); g.rect(left, top - 2, w, h + 4); g.clip();
    list.forEach((curve, k) => {
      g.strokeStyle = curve.color || series(k); g.lineWidth = curve.wide || 1.8; g.setLineDash(curve.dash || DASHES[Math.floor(k / 8) % 3]);
      g.beginPath();
      const skip = Math.max(1, Math.floor((to - from) / (2 * w)));
      for (let i = from; i < to; i += skip) { if (i === from) g.moveTo(px(x[i]), py(curve.y[i])); else g.lineTo(px(x[i]), py(curve.y[i])); }
      g.stroke();
    });
    g.setLineDash([]);
    if (hint && x.length < 2) { g.fillStyle = color("muted"); g.textAlign = "center"; g.fillText(hint, left + w / 2, top + h / 2); }
    if (cursor !== null) { g.strokeStyle = color("text"); g.lineWidth = 1; g.beginPath(); g.moveTo(px(cursor), top); g.lineTo(px(cursor), top + h); g.stroke(); }
    g.restore();
    return { at: (offset) => x0 + (x1 - x0) * (offset - left) / (w || 1) };
  }

  function legend(names, colors = null) {
    return el("div", { class: "legend" }, ...names.map((name, k) => {
      const mark = el("i", { class: `mark dash-${Math.floor(k / 8) % 3}` });
      mark.style.setProperty("--mark", colors ? colors[k] : `var(--series-${(k % 8) + 1})`);
      return el("span", {}, mark, name);
    }));
  }

  // A heat map of a matrix: blue is positive, orange negative, on a logarithmic scale.
  function heat(host, names, label) {
    const n = names.length, cells = [];
    const table = el("table", { class: "heat", "aria-label": label });
    table.append(el("tr", {}, el("th"), ...names.map((name) => el("th", { scope: "col", title: name }, name))));
    for (let i = 0; i < n; i++) {
      const row = el("tr", {}, el("th", { scope: "row", title: names[i] }, names[i]));
      for (let j = 0; j < n; j++) { const cell = el("td"); cells.push(cell); row.append(cell); }
      table.append(row);
    }
    host.replaceChildren(el("div", { class: "scroll" }, table));
    return (values) => {
      let largest = 0;
      for (const v of values) largest = Math.max(largest, Math.abs(v));
      cells.forEach((cell, k) => {
        const v = values[k], strength = largest ? Math.max(0, 1 + Math.log10(Math.abs(v) / largest + 1e-300) / 4) : 0;
        cell.textContent = minus(short(v));
        cell.style.setProperty("--strength", `${Math.round(70 * strength)}%`);
        cell.className = v < 0 ? "negative" : "positive";
      });
    };
  }

  // One signed bar per joint, full at the joint's limit if it has one.
  function bars(host, names, limits, units) {
    const rows = names.map((name, i) => {
      const bar = el("i"), value = el("output", {}, "0");
      const known = limits[i] !== null && limits[i] > 0;
      const row = el("div", { class: "bar", title: known ? `limit ${short(limits[i])} ${units[i]}` : "no limit given" },
        el("span", {}, name), el("div", { class: known ? "track" : "track open" }, bar), value);
      return { row, bar, value };
    });
    host.replaceChildren(...rows.map(({ row }) => row));
    let seen = 1e-9;
    return (values) => {
      seen = Math.max(seen, ...Array.from(values, Math.abs).filter(Number.isFinite));
      rows.forEach(({ row, bar, value }, i) => {
        const full = limits[i] || seen, part = Math.max(-1, Math.min(1, values[i] / full));
        bar.style.left = `${50 + Math.min(0, 50 * part)}%`; bar.style.width = `${Math.abs(50 * part)}%`;
        row.classList.toggle("beyond", limits[i] !== null && Math.abs(values[i]) > limits[i]);
        value.textContent = `${minus(short(values[i]))} ${units[i]}`;
      });
    };
  }

  return { curves, legend, heat, bars, ticks };
})();
