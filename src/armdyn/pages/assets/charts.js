// Small charts: curves on a canvas, bars and heat maps in plain elements.
"use strict";
const Chart = (() => {
  const { el, short, minus, color, series, fit } = Page;
  const DASHES = [[], [6, 3], [2, 3]]; // curves beyond the eight colours are dashed

  function ticks(low, high, count) {
    const raw = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw || 1));
    const steps = [0.2, 0.5, 1, 2, 5, 10].map((k) => k * power), inside = (s) => Math.floor(high / s + 1e-9) - Math.ceil(low / s - 1e-9);
    let at = steps.findIndex((s) => s >= raw); // one line alone is no scale
    while (at > 0 && inside(steps[at]) < 1) at--;
    const step = steps[at] || raw || 1, out = [];
    for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step) out.push(Math.abs(x) < 1e-9 * step ? 0 : x);
    return out;
  }

  // A tick's number with the decimals that the distance of the ticks needs.
  function scaled(v, lines) {
    const size = Math.max(...lines.map(Math.abs)), step = lines.length > 1 ? lines[1] - lines[0] : size;
    if (!step || size >= 1e6 || step < 1e-4) return minus(short(v));
    return minus(v.toFixed(Math.max(0, -Math.floor(Math.log10(step * 1.0001)))));
  }

  function range(spans, limits) {
    let low = Infinity, high = -Infinity;
    for (const { y, from, to } of spans) for (let k = from; k < to; k++) { const v = y[k]; if (v < low) low = v; if (v > high) high = v; }
    if (!(low <= high)) return [0, 1];
    const size = Math.max(Math.abs(low), Math.abs(high));
    for (const v of limits) if (Math.abs(v) < 2.5 * size) { low = Math.min(low, v); high = Math.max(high, v); } // a far limit would flatten the curve
    const flat = high - low < 1e-9 * size + 1e-12, room = flat ? 0.5 * size || 1 : 0.06 * (high - low);
    return [low - room, high + room];
  }

  // The polyline of y over x within [from, to): all samples, or per pixel the first, least, largest and last of many.
  function line(g, x, y, from, to, px, py) {
    let open = false;
    const reach = (k) => { if (!Number.isFinite(y[k])) { open = false; return; } if (open) g.lineTo(px(x[k]), py(y[k])); else g.moveTo(px(x[k]), py(y[k])); open = true; };
    for (let i = from; i < to;) {
      const pixel = Math.round(px(x[i]));
      let last = i, least = i, most = i;
      while (last + 1 < to && Math.round(px(x[last + 1])) === pixel) { last++; if (y[last] < y[least]) least = last; if (y[last] > y[most]) most = last; }
      for (const k of [...new Set([i, Math.min(least, most), Math.max(least, most), last])]) reach(k);
      i = last + 1;
    }
  }

  // Curves { name, y, x, by } over `x` or their own, y times `by`; `window` = [from, to] in x; `cursor` marks one x; `limits` are dashed lines;
  // `hint` is shown while there is no data.
  function curves(canvas, { x, curves: list, window: shown, y: label, cursor = null, unit = "s", hint = "", limits = [] }) {
    const { ratio, width, height } = fit(canvas), g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, width, height);
    g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle";
    const left = 54, right = 12, top = 26, bottom = 20, w = width - left - right, h = height - top - bottom;
    const [x0, x1] = shown || [x[0] ?? 0, x[x.length - 1] ?? 1];
    const spans = list.map((curve) => {
      const own = curve.x || x;
      let from = 0, to = own.length;
      while (from < to - 1 && own[from + 1] < x0) from++;
      while (to > from + 1 && own[to - 2] > x1) to--;
      const { by = 1 } = curve; // a factor, such as that of degrees
      return { ...curve, x: own, y: by === 1 ? curve.y : curve.y.map((v) => by * v), from, to };
    });
    const [low, high] = range(spans, limits);
    const px = (v) => left + w * (v - x0) / (x1 - x0 || 1), py = (v) => top + h * (high - v) / (high - low || 1);
    g.fillStyle = color("muted"); g.strokeStyle = color("grid"); g.lineWidth = 1;
    g.textAlign = "left"; g.fillText(label, 4, 9);
    g.textAlign = "right";
    const lines = ticks(low, high, Math.max(3, Math.floor(h / 30))), waits = hint && x.length < 2;
    for (const v of lines) {
      g.beginPath(); g.moveTo(left, py(v)); g.lineTo(left + w, py(v)); g.stroke();
      if (!waits) g.fillText(scaled(v, lines), left - 6, py(v));
    }
    g.textAlign = "center";
    for (const v of ticks(x0, x1, Math.floor(w / 90))) g.fillText(minus(`${+v.toFixed(3)}`) + (unit ? ` ${unit}` : ""), Math.min(px(v), width - 16), top + h + 11);
    g.save(); g.beginPath(); g.rect(left, top - 2, w, h + 4); g.clip();
    g.strokeStyle = color("warn"); g.setLineDash([2, 4]);
    for (const v of limits) { g.beginPath(); g.moveTo(left, py(v)); g.lineTo(left + w, py(v)); g.stroke(); }
    spans.forEach((curve, k) => {
      g.strokeStyle = curve.color || series(curve.index ?? k); g.lineWidth = curve.wide || 1.8; g.setLineDash(curve.dash || DASHES[Math.floor((curve.index ?? k) / 8) % 3]);
      g.beginPath(); line(g, curve.x, curve.y, curve.from, curve.to, px, py); g.stroke();
    });
    g.setLineDash([]);
    if (waits) {
      const wide = g.measureText(hint).width;
      g.clearRect(left + (w - wide) / 2 - 8, top + h / 2 - 9, wide + 16, 18); // no line behind it
      g.fillStyle = color("muted"); g.textAlign = "center"; g.fillText(hint, left + w / 2, top + h / 2);
    }
    if (cursor !== null) { g.strokeStyle = color("text"); g.lineWidth = 1; g.beginPath(); g.moveTo(px(cursor), top); g.lineTo(px(cursor), top + h); g.stroke(); }
    g.restore();
    return { at: (offset) => x0 + (x1 - x0) * (offset - left) / (w || 1) };
  }

  // The index of the sample at or before t.
  function before(x, t) {
    let low = 0, high = x.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (x[middle] <= t) low = middle; else high = middle; }
    return high > 0 && x[high] <= t ? high : low;
  }

  function legend(names, colors = null) {
    return el("div", { class: "legend" }, ...names.map((name, k) => {
      const mark = el("i", { class: `mark dash-${Math.floor(k / 8) % 3}` });
      mark.style.setProperty("--mark", colors ? colors[k] : `var(--series-${(k % 8) + 1})`);
      return el("span", {}, mark, name);
    }));
  }

  // The text of an entry of a matrix.
  const entry = (v) => minus(v !== 0 && Math.abs(v) < 1e-3 && Math.abs(v) > 1e-12 ? v.toExponential(1) : short(v));

  // A heat map of a matrix: blue is positive, orange negative, on a logarithmic scale.
  const breaking = (name) => name.split(/(?<=[_\-. ])/).flatMap((word, k) => (k ? [el("wbr"), word] : [word]));
  function heat(host, names, label) {
    const n = names.length, cells = [];
    const table = el("table", { class: "heat", "aria-label": label });
    table.append(el("tr", {}, el("th"), ...names.map((name) => el("th", { scope: "col", title: name }, ...breaking(name)))));
    for (let i = 0; i < n; i++) {
      const row = el("tr", {}, el("th", { scope: "row", title: names[i] }, ...breaking(names[i])));
      for (let j = 0; j < n; j++) { const cell = el("td"); cells.push(cell); row.append(cell); }
      table.append(row);
    }
    host.replaceChildren(el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, table));
    return (values) => {
      let largest = 0;
      for (const v of values) largest = Math.max(largest, Math.abs(v));
      cells.forEach((cell, k) => {
        const v = values[k], strength = largest ? Math.max(0, 1 + Math.log10(Math.abs(v) / largest + 1e-300) / 4) : 0;
        cell.textContent = entry(v); cell.title = minus(short(v, 6));
        cell.style.setProperty("--strength", `${Math.round(70 * strength)}%`);
        cell.className = v < 0 ? "negative" : "positive";
      });
    };
  }

  // One signed bar per joint, full at the joint's limit if it has one.
  function bars(host, names, limits, units) {
    const rows = names.map((name, i) => {
      const bar = el("i"), value = el("b", {}, "0");
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

  // The inertia matrix as coloured cells, with numbers where they fit and the value under the pointer; `pick(row)` is told the row, or null.
  function matrix(canvas, told, names, symbol, unitOf, pick) {
    const n = names.length;
    let values = null, at = null;
    const size = () => Math.min(canvas.clientWidth, canvas.clientHeight) / n;
    function draw() {
      const { ratio } = fit(canvas), g = canvas.getContext("2d"), cell = size();
      g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
      if (!values) return;
      let largest = 0;
      for (const v of values) largest = Math.max(largest, Math.abs(v));
      g.font = "11px system-ui, sans-serif"; g.textAlign = "center"; g.textBaseline = "middle";
      for (let k = 0; k < n * n; k++) {
        const v = values[k], strength = largest ? Math.max(0, 1 + Math.log10(Math.abs(v) / largest + 1e-300) / 4) : 0;
        const x = (k % n) * cell, y = Math.floor(k / n) * cell, gap = cell > 8 ? 1 : 0;
        g.globalAlpha = 1; g.fillStyle = color("back"); g.fillRect(x, y, cell - gap, cell - gap);
        g.globalAlpha = 0.85 * strength; g.fillStyle = color(v < 0 ? "negative" : "positive"); g.fillRect(x, y, cell - gap, cell - gap);
        g.globalAlpha = 1;
        if (cell > 36) { g.fillStyle = color("text"); g.fillText(entry(v), x + cell / 2, y + cell / 2, cell - 4); }
      }
      if (at) { g.strokeStyle = color("text"); g.lineWidth = 1.5; g.strokeRect(at[1] * cell, at[0] * cell, cell - 1, cell - 1); }
    }
    function say() {
      const [i, j] = at || [0, 0];
      told.textContent = values ? `${symbol}(${i + 1}, ${j + 1}) = ${minus(short(values[i * n + j]))} ${unitOf(i, j)}, ${names[i]}${i === j ? "" : ` and ${names[j]}`}` : "";
    }
    const point = (event) => {
      const cell = size(), i = Math.floor(event.offsetY / cell), j = Math.floor(event.offsetX / cell);
      at = event.type === "pointerleave" || i >= n || j >= n || i < 0 || j < 0 ? null : [i, j];
      pick(at ? at[0] : null); say(); draw();
    };
    canvas.addEventListener("pointermove", point); canvas.addEventListener("pointerleave", point);
    Page.onTheme(draw); new ResizeObserver(draw).observe(canvas);
    return { show(now) { values = Array.from(now); say(); draw(); }, mark(row) { at = row === null ? null : [row, row]; say(); draw(); } };
  }

  return { curves, legend, heat, bars, ticks, scaled, before, matrix };
})();
