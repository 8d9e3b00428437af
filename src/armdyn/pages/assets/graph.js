// The program's expression graph: inputs on the left, results on the right, one column per depth; zoom, pan, point.
"use strict";
const Graph = (() => {
  const { el, color, series, fit } = Page;
  const SIGNS = { add: "+", sub: "−", mul: "×", div: "÷", neg: "−", sqrt: "√" };

  function layout(graph) {
    const depth = graph.nodes.map(() => 0), columns = [];
    graph.nodes.forEach(([, args], k) => { depth[k] = args.length ? 1 + Math.max(...args.map((a) => depth[a])) : 0; });
    // Inputs and constants are placed just before their first use.
    const before = graph.nodes.map(() => Infinity);
    graph.nodes.forEach(([, args], k) => args.forEach((a) => { before[a] = Math.min(before[a], depth[k]); }));
    const y = graph.nodes.map(() => 0);
    depth.forEach((d, k) => {
      if (!graph.nodes[k][1].length && graph.nodes[k][0] !== "input" && Number.isFinite(before[k])) depth[k] = before[k] - 1;
      (columns[depth[k]] ||= []).push(k);
    });
    columns.forEach((column, d) => {
      if (!column) return;
      if (d) column.sort((a, b) => mean(graph.nodes[a][1], y) - mean(graph.nodes[b][1], y));
      column.forEach((k, i) => { y[k] = i - (column.length - 1) / 2; });
    });
    return { x: depth, y, width: Math.max(...depth), height: Math.max(...columns.map((c) => (c ? c.length : 0))) };
  }
  const mean = (list, y) => (list.length ? list.reduce((s, a) => s + y[a], 0) / list.length : 0);

  function create(host, graphs, labels) {
    const now = { graph: graphs[0], color: "operation", k: 1, dx: 0, dy: 0, over: -1 };
    const canvas = el("canvas", { class: "graph", tabindex: 0, "aria-label": "the expression graph; arrow keys move, plus and minus zoom" });
    const told = el("p", { class: "muted told" }), counts = el("div");
    const group = (key, values, names) => el("div", { class: "choice", role: "group", "aria-label": key }, ...values.map((value, k) =>
      el("button", { type: "button", "aria-pressed": String(k === 0), onclick: (event) => {
        for (const other of event.target.parentNode.children) other.setAttribute("aria-pressed", String(other === event.target));
        now[key] = value; if (key === "graph") whole(); legend(); draw();
      } }, names[k])));
    host.replaceChildren(el("div", { class: "row" }, group("graph", graphs, graphs.map((g) => `${labels[g.quantity] || g.quantity}: ${g.nodes.length} nodes`)),
      group("color", ["operation", "stage"], ["by operation", "by stage"])), counts, canvas, told);

    const kinds = ["mul", "add", "div", "trig", "input", "const"], kindNames = ["multiplication", "addition", "division, root", "sine, cosine", "input", "constant"];
    const kind = (op) => ({ sub: "add", neg: "add", sqrt: "div", sin: "trig", cos: "trig", sign: "div", positive: "div" }[op] || op);
    const fill = (k) => {
      const [op, , stage] = now.graph.nodes[k];
      if (now.color === "operation") return { mul: series(0), add: series(4), div: series(5), trig: series(3), input: series(2), const: color("muted") }[kind(op)] || color("muted");
      return stage < 0 ? color("muted") : series(stage);
    };

    function legend() {
      const tally = (test) => now.graph.nodes.filter(test).length;
      if (now.color === "operation") {
        const shades = [series(0), series(4), series(5), series(3), series(2), color("muted")];
        counts.replaceChildren(Chart.legend(kindNames.map((name, k) => `${name} ${tally(([op]) => kind(op) === kinds[k])}`), shades));
      } else {
        const names = now.graph.stages.map((name, s) => `${name}: ${tally(([op, , t]) => t === s && op === "mul")}M ${tally(([op, , t]) => t === s && kind(op) === "add" && op !== "neg")}A`);
        counts.replaceChildren(el("p", { class: "muted" }, "The stage of a number is the joint nearest the base whose position or motion it depends on."), Chart.legend(names));
      }
    }

    let place = null;
    const sx = (k) => now.dx + now.k * place.stepX * now.placed.x[k], sy = (k) => now.dy + now.k * place.stepY * now.placed.y[k];
    function whole() {
      const { width, height } = fit(canvas);
      now.placed = layout(now.graph);
      place = { stepX: (width - 60) / Math.max(1, now.placed.width), stepY: (height - 30) / Math.max(1, now.placed.height) };
      Object.assign(now, { k: 1, dx: 30, dy: height / 2, over: -1 });
    }
    function draw() {
      const { ratio, width, height } = fit(canvas), g = canvas.getContext("2d");
      g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, width, height);
      const nodes = now.graph.nodes, out = new Set(now.graph.results.map(([k]) => k)), near = new Set();
      const r = Math.max(2, Math.min(15, 0.47 * now.k * Math.min(place.stepX, place.stepY)));
      if (now.over >= 0) { nodes[now.over][1].forEach((a) => near.add(a)); nodes.forEach(([, args], k) => { if (args.includes(now.over)) near.add(k); }); }
      g.lineWidth = Math.max(0.5, 0.06 * r);
      nodes.forEach(([, args], k) => args.forEach((a) => {
        const hot = k === now.over || a === now.over;
        g.globalAlpha = hot ? 1 : 0.22; g.strokeStyle = hot ? color("accent") : color("muted");
        const [x0, y0, x1, y1] = [sx(a), sy(a), sx(k), sy(k)], m = (x0 + x1) / 2;
        g.beginPath(); g.moveTo(x0, y0); g.bezierCurveTo(m, y0, m, y1, x1, y1); g.stroke();
      }));
      g.font = `${Math.round(1.25 * r)}px system-ui, sans-serif`; g.textAlign = "center"; g.textBaseline = "middle";
      nodes.forEach(([op, , , label], k) => {
        const x = sx(k), y = sy(k);
        if (x < -20 || y < -20 || x > width + 20 || y > height + 20) return;
        g.globalAlpha = now.over < 0 || k === now.over || near.has(k) ? 1 : 0.45;
        g.fillStyle = fill(k); g.beginPath(); g.arc(x, y, r, 0, 2 * Math.PI); g.fill();
        if (out.has(k)) { g.strokeStyle = color("text"); g.lineWidth = Math.max(1, 0.16 * r); g.stroke(); }
        const long = op === "const" || !SIGNS[op];
        if (r > (long ? 9 : 5)) { g.fillStyle = "#fff"; g.fillText(SIGNS[op] || label || op, x, y, 1.8 * r); }
      });
      g.globalAlpha = 1;
    }
    function tell() {
      if (now.over < 0) { told.textContent = "Point at a node to see what it is and what it feeds; drag to move, scroll (after a click) or + and − to zoom."; return; }
      const [op, args, stage, label] = now.graph.nodes[now.over], users = now.graph.nodes.filter(([, a]) => a.includes(now.over)).length;
      const result = now.graph.results.filter(([k]) => k === now.over).map(([, name]) => name);
      const what = op === "input" || op === "const" ? `${op} ${label}` : `${op} of ${args.length} number${args.length > 1 ? "s" : ""}`;
      told.textContent = `${what}; used ${users} time${users === 1 ? "" : "s"}${stage >= 0 ? `; stage ${now.graph.stages[stage]}` : ""}${result.length ? `; this is ${result.join(", ")}` : ""}`;
    }
    function zoom(factor, x, y) {
      const k = Math.max(0.8, Math.min(40, now.k * factor)), real = k / now.k;
      now.dx = x - real * (x - now.dx); now.dy = y - real * (y - now.dy); now.k = k; draw();
    }
    let last = null;
    const spot = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener("pointerdown", (event) => { last = spot(event); canvas.focus({ preventScroll: true }); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { last = null; });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = spot(event);
      if (last) { now.dx += x - last[0]; now.dy += y - last[1]; last = [x, y]; draw(); return; }
      let best = 144, found = -1;
      now.graph.nodes.forEach((_, k) => { const d = (sx(k) - x) ** 2 + (sy(k) - y) ** 2; if (d < best) { best = d; found = k; } });
      if (found !== now.over) { now.over = found; tell(); draw(); }
    });
    canvas.addEventListener("pointerleave", () => { now.over = -1; tell(); draw(); });
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault(); zoom(Math.exp(-0.0015 * event.deltaY), ...spot(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
      const middle = [canvas.clientWidth / 2, canvas.clientHeight / 2];
      if (move) { now.dx += move[0]; now.dy += move[1]; draw(); } else if (event.key === "+" || event.key === "=") zoom(1.25, ...middle);
      else if (event.key === "-") zoom(0.8, ...middle); else if (event.key === "0") { whole(); draw(); } else return;
      event.preventDefault();
    });
    new ResizeObserver(() => { whole(); draw(); }).observe(canvas);
    Page.onTheme(() => { legend(); draw(); });
    whole(); legend(); tell(); draw();
  }
  return { create };
})();
