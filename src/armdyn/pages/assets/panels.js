// Parts of the bench beside the picture: conditions, the history of a motion with its charts, and the matrices.
// Each function fills one element and returns what updates it.
"use strict";
const Panels = (() => {
  const { $, el, short, minus, parsed } = Page;

  // Buttons of which one is pressed.
  const choice = (label, options, chosen, pick) => {
    const group = el("div", { class: "choice", role: "group", "aria-label": label });
    for (const [value, text, title] of options) {
      group.append(el("button", { type: "button", "data-value": value, title: title || false, "aria-pressed": String(value === chosen), onclick: () => { pick(value); mark(value); } }, text));
    }
    const mark = (now) => { for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.value === String(now))); };
    return { group, mark };
  };

  // A number to type, or to change by `step` with the arrow keys (a tenth with shift); `digits` are shown at least.
  function number({ id, label, unit = "", value, low = -Infinity, high = Infinity, step = 1, changed }) {
    const shown = (x) => minus(String(+x.toPrecision(9)));
    const input = el("input", { type: "text", class: "number", id, "aria-label": `${label}${unit ? ` in ${unit}` : ""}`, value: shown(value), autocomplete: "off", spellcheck: "false" });
    let now = value;
    const take = (x) => { now = Math.max(low, Math.min(high, x)); input.value = shown(now); changed(now); };
    const enter = () => { const x = parsed(input.value); input.setAttribute("aria-invalid", String(x === null)); if (x !== null && x !== now) take(x); else if (x !== null) input.value = shown(now); };
    input.addEventListener("change", enter); input.addEventListener("focus", () => input.select());
    input.addEventListener("keydown", (event) => {
      const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (event.key === "Enter") { enter(); input.select(); } else if (event.key === "Escape") { input.value = shown(now); input.setAttribute("aria-invalid", "false"); }
      if (way) { event.preventDefault(); take(+(now + way * step * (event.shiftKey ? 0.1 : 1)).toPrecision(12)); input.select(); }
    });
    return { input, set(x) { now = x; if (document.activeElement !== input) input.value = shown(x); else if (parsed(input.value) !== x) input.value = shown(x); }, get: () => now };
  }
  const field = (text, ...children) => el("span", { class: "field" }, el("span", { "aria-hidden": "true" }, text), ...children);

  // Payload, gravity and friction. `values` are { mass, at, gravity, friction }; `changed()` is called after each change.
  function conditions(host, arm, world, changed) {
    const { robot, arrays } = arm, file = { gravity: Array.from(robot.gravity), at: [0, 0, +(0.08 * robot.reach).toPrecision(1)] };
    const g = Geometry.norm(file.gravity), down = Geometry.unit(g ? file.gravity : [0, 0, -1]), [sideways, across] = Geometry.across(Geometry.scale(down, -1));
    const now = { mass: 0, at: file.at.slice(), size: g, tilt: 0, heading: 0 };
    const chips = el("span", { class: "chips" });
    function apply() {
      const s = Math.sin(now.tilt), c = Math.cos(now.tilt), way = [Math.cos(now.heading), Math.sin(now.heading)];
      const exact = now.tilt === 0 && now.size === g ? file.gravity : [0, 1, 2].map((k) => now.size * (c * down[k] + s * (way[0] * sideways[k] + way[1] * across[k])));
      arrays.gravity.set(exact); arm.hold(now.mass, now.at); arm.state();
      chips.replaceChildren(...differences().map(([text, undo]) => el("button", { type: "button", class: "chip", title: "as in the file", onclick: () => { undo(); fill(); apply(); changed(); } }, text, el("b", { "aria-hidden": "true" }, " ×"), el("span", { class: "unseen" }, ", take back"))));
    }
    const degrees = (x) => x * 180 / Math.PI, say = (x) => minus(String(+x.toPrecision(4)));
    function differences() {
      const out = [];
      if (now.mass > 0) out.push([`${say(now.mass)} kg payload`, () => { now.mass = 0; }]);
      if (now.size !== g) out.push([`gravity ${say(now.size)}`, () => { now.size = g; }]);
      if (now.tilt !== 0) out.push([`tilt ${say(degrees(now.tilt))}°`, () => { now.tilt = now.heading = 0; }]);
      if (robot.frictional && !world.friction) out.push(["no friction", () => { world.friction = true; }]);
      return out;
    }
    const set = (act) => (x) => { act(x); fill(); apply(); changed(); };
    const fields = {
      mass: number({ id: "payload", label: "payload", unit: "kg", value: 0, low: 0, high: 1e6, step: 1, changed: set((x) => { now.mass = x; }) }),
      ...Object.fromEntries(["x", "y", "z"].map((axis, k) => [axis, number({ id: `payload-${axis}`, label: `payload's ${axis} in the tool's frame`, unit: "m", value: now.at[k], step: 0.01, changed: set((x) => { now.at[k] = x; }) })])),
      size: number({ id: "gravity", label: "gravity", unit: "m/s²", value: g, low: 0, high: 1e4, step: 0.1, changed: set((x) => { now.size = x; }) }),
      tilt: number({ id: "tilt", label: "tilt of gravity", unit: "degrees", value: 0, low: 0, high: 180, step: 1, changed: set((x) => { now.tilt = x * Math.PI / 180; }) }),
      heading: number({ id: "heading", label: "direction of the tilt", unit: "degrees", value: 0, low: -360, high: 360, step: 5, changed: set((x) => { now.heading = x * Math.PI / 180; }) }),
    };
    const heading = field("towards", fields.heading.input, el("span", { "aria-hidden": "true" }, "°"));
    const friction = el("input", { type: "checkbox", id: "friction", disabled: !robot.frictional, onchange: () => { world.friction = friction.checked; apply(); changed(); } });
    function fill() {
      fields.mass.set(now.mass); ["x", "y", "z"].forEach((axis, k) => fields[axis].set(now.at[k]));
      fields.size.set(now.size); fields.tilt.set(+degrees(now.tilt).toPrecision(9)); fields.heading.set(+degrees(now.heading).toPrecision(9)); friction.checked = world.friction;
      heading.hidden = now.tilt === 0; // without a tilt it has no direction
    }
    host.append(
      el("span", { class: "set" }, field("payload", fields.mass.input, el("span", { "aria-hidden": "true" }, "kg")), field("at [", fields.x.input, fields.y.input, fields.z.input, el("span", { "aria-hidden": "true" }, "] m"))),
      el("span", { class: "set" }, field("gravity", fields.size.input, el("span", { "aria-hidden": "true" }, "m/s²")),
        ...(robot.tilts ? [field("tilt", fields.tilt.input, el("span", { "aria-hidden": "true" }, "°")), heading] : []), el("label", { class: "check" }, friction, robot.frictional ? "friction" : "friction (none given)")), chips,
    );
    fill(); apply();
    const values = () => ({ mass: now.mass, at: now.at.slice(), size: now.size, tilt: now.tilt, heading: now.heading, friction: world.friction });
    return { values, set(given) { const { friction: rubs, ...rest } = given; Object.assign(now, rest); if (rubs !== undefined) world.friction = rubs && robot.frictional; fill(); apply(); }, differences: () => differences().map(([text]) => text), gravity: () => Array.from(arrays.gravity) };
  }

  // The last ten seconds of the motion: columns over time, to draw, to scrub and to save.
  function record(arm, world) {
    const { robot, arrays } = arm, SPAN = 10, column = (count) => Array.from({ length: count }, () => []);
    const data = { t: [], kinetic: [], potential: [], total: [], q: column(arrays.q.length), qd: column(robot.nv), tau: column(robot.nv) };
    const all = () => [data.t, data.kinetic, data.potential, data.total, ...data.q, ...data.qd, ...data.tau];
    function sample() {
      const tau = world.torques();
      [world.t, arrays.T[0], arrays.V[0], arrays.T[0] + arrays.V[0], ...arrays.q, ...arrays.qd, ...tau].forEach((v, k, row) => { if (k === 0) all().forEach((list, j) => list.push(row[j])); });
      let old = 0;
      while (old < data.t.length - 1 && data.t[old] < world.t - SPAN) old++;
      if (old) all().forEach((list) => list.splice(0, old));
    }
    return { data, sample, span: SPAN,
      clear() { all().forEach((list) => { list.length = 0; }); },
      cut(k) { all().forEach((list) => { list.length = k + 1; }); },
      at(k) { return { t: data.t[k], q: data.q.map((c) => c[k]), qd: data.qd.map((c) => c[k]) }; },
      peak() {
        let most = null;
        data.tau.forEach((values, k) => { const limit = robot.effort[k]; if (limit > 0) for (const v of values) most = Math.max(most ?? 0, Math.abs(v) / limit); });
        return most;
      } };
  }

  // Energy, and one of torque, position or speed over the last seconds; one cursor for both.
  function charts(host, readout, arm, world, history, names, groups) {
    const { robot } = arm, { data } = history, base = robot.nv - robot.n;
    const NAMES = { torque: ["motor torque", "N m", "N"], position: ["position", "°", "m"], speed: ["speed", "°/s", "m/s"] };
    const energy = el("canvas", { class: "trace", id: "trace-energy", role: "img", "aria-label": "energy over time" });
    const joints = el("canvas", { class: "trace", id: "trace-joints", role: "img", "aria-label": "motor torques over time" });
    const state = { chosen: null, group: 0, off: new Set(), cursor: null };
    const shown = () => state.chosen ?? (world.mode === "free" ? "position" : "torque"); // without motor torque, positions tell more
    function label() {
      const [name, turn, slide] = NAMES[shown()];
      return `${name} ${[["revolute", turn], ["prismatic", slide]].filter(([one]) => robot.kinds.includes(one)).map(([, unit]) => `[${unit}]`).join(", ")}`;
    }
    const series = () => ({ torque: data.tau.slice(base), position: data.q.slice(robot.first), speed: data.qd.slice(base) })[shown()];
    const factor = (i) => (shown() === "torque" || robot.kinds[i] === "prismatic" ? 1 : 180 / Math.PI);
    const members = () => groups[state.group].joints, legend = el("div", { class: "legend" });
    const ENERGY = [["kinetic", "var(--series-1)"], ["potential", "var(--series-2)"], ["total", "var(--text)"]];
    function fill() {
      legend.replaceChildren(...members().map((i, k) => {
        const mark = el("i", { class: `mark dash-${Math.floor(k / 8) % 3}` });
        mark.style.setProperty("--mark", `var(--series-${(k % 8) + 1})`);
        return el("button", { type: "button", "aria-pressed": String(!state.off.has(i)), onclick: (event) => { if (!state.off.delete(i)) state.off.add(i); event.currentTarget.setAttribute("aria-pressed", String(!state.off.has(i))); draw(); } }, mark, names[i]);
      }));
    }
    const kind = choice("curves of the joints", [["torque", "torque"], ["position", "position"], ["speed", "speed"]], null, (key) => { state.chosen = key; draw(); });
    const limb = groups.length > 1 ? el("select", { "aria-label": "limb to draw", onchange: () => { state.group = +limb.value; state.off.clear(); fill(); draw(); } }, ...groups.map((group, g) => el("option", { value: g }, group.button.textContent))) : null;
    host.append(el("div", { class: "chart" }, energy, Chart.legend(ENERGY.map(([name]) => name), ENERGY.map(([, shade]) => shade))),
      el("div", { class: "chart" }, joints, el("div", { class: "kind" }, limb, kind.group), legend));
    function span() { return [Math.max(0, world.t - history.span), Math.max(2, world.t)]; }
    let at = null;
    function draw() {
      const window = span(), shade = [Page.series(0), Page.series(1), Page.color("text")], hint = "press Let go";
      at = Chart.curves(energy, { x: data.t, window, y: "energy [J]", hint, cursor: state.cursor, curves: ["kinetic", "potential", "total"].map((key, k) => ({ y: data[key], color: shade[k], wide: k === 2 ? 2.4 : 1.6 })) }).at;
      const on = members().map((i, k) => ({ i, k })).filter(({ i }) => !state.off.has(i)), columns = series();
      kind.mark(shown()); joints.setAttribute("aria-label", `${label()} over time`);
      const limits = shown() === "torque" ? [...new Set(on.flatMap(({ i }) => { const most = robot.effort[base + i]; return most > 0 ? [most, -most] : []; }))] : [];
      Chart.curves(joints, { x: data.t, window, y: label(), hint, limits, cursor: state.cursor, curves: on.map(({ i, k }) => ({ y: columns[i], index: k, by: factor(i) })) });
      if (state.cursor === null || !data.t.length) { readout.textContent = ""; return; }
      const k = Chart.before(data.t, state.cursor), values = members().filter((i) => !state.off.has(i)).slice(0, 8).map((i) => `${names[i]} ${minus(short(columns[i][k] * factor(i)))}`);
      readout.textContent = `${data.t[k].toFixed(2)} s: total ${minus(short(data.total[k]))} J; ${values.join(", ")}`;
    }
    for (const canvas of [energy, joints]) {
      canvas.addEventListener("pointermove", (event) => { if (at && data.t.length) { state.cursor = Math.max(data.t[0], Math.min(world.t, at(event.offsetX))); draw(); } });
      canvas.addEventListener("pointerleave", () => { state.cursor = null; draw(); });
      new ResizeObserver(draw).observe(canvas);
    }
    fill(); Page.onTheme(draw);
    return { draw };
  }

  // The matrices of a posture with their measures; a large inertia matrix is drawn as cells, without numbers.
  const MOST_NUMBERS = 10;
  const told = (robot) => [...robot.coordinates.slice(0, robot.nv - robot.n), ...Joints.told(robot.names)];
  const unitOf = (robot) => (i, j) => { const [a, b] = [i, j].map((k) => robot.coordinateKinds[k] === "prismatic"); return a && b ? "kg" : a || b ? "kg m" : "kg m²"; };
  function matrices(arm) {
    const { robot, arrays } = arm, names = told(robot), units = (revolute, prismatic) => robot.coordinateKinds.map((kind) => (kind === "prismatic" ? prismatic : revolute));
    const show = robot.nv <= MOST_NUMBERS ? Chart.heat($("heat"), names, "inertia matrix") : cells();
    const momentum = Chart.bars($("momentum"), names, names.map(() => null), units("N m s", "N s"));
    function cells() {
      const canvas = el("canvas", { class: "cells", role: "img", "aria-label": "inertia matrix as colours" }), value = el("p", { class: "muted" });
      $("heat").append(canvas, value);
      return Chart.matrix(canvas, value, names, "H", unitOf(robot), () => {}).show;
    }
    const facts = {};
    for (const [key, label] of [["condition", "condition number of H"], ["manipulability", "manipulability √det(J Jᵀ)"], ["mass", "smallest effective mass at the tool"], ["energy", "energy"], ["tool", "tool"]]) {
      facts[key] = el("b", { id: `fact-${key}` }); $("live-facts").append(el("div", {}, el("span", {}, label), facts[key]));
    }
    const rows = (flat) => Array.from({ length: robot.nv }, (_, i) => Array.from(flat.slice(i * robot.nv, (i + 1) * robot.nv)));
    return () => {
      show(arrays.H);
      momentum(arrays.p);
      const own = Geometry.eigen(rows(arrays.H)).values, tool = Geometry.eigen(Robot.toolMatrix("velocity", robot.nv, arrays)).values;
      const mobility = Geometry.eigen(Robot.toolMatrix("mobility", robot.nv, arrays)).values[2];
      facts.condition.textContent = short(own[own.length - 1] / own[0]);
      facts.manipulability.textContent = `${short(Math.sqrt(Math.max(0, tool.reduce((a, b) => a * b, 1))))} m³`;
      facts.mass.textContent = mobility > 0 ? `${short(1 / mobility)} kg` : "–";
      facts.energy.textContent = `${minus((arrays.T[0] + arrays.V[0]).toFixed(3))} J`;
      facts.tool.textContent = Geometry.origin(arrays.tool).map((x) => minus(x.toFixed(3))).join(", ") + " m";
    };
  }

  return { choice, number, field, conditions, record, charts, matrices, told, unitOf };
})();
