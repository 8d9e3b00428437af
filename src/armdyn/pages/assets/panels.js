// The panels beside the 3D view: sliders, simulation, time plots and live numbers. Each function fills one element and
// returns a function, or several, that update it.
"use strict";
const Panels = (() => {
  const { $, el, short, minus, angle } = Page;
  const unitsOf = (robot, revolute, prismatic) => robot.coordinateKinds.map((kind) => (kind === "prismatic" ? prismatic : revolute));

  // One slider per joint within its limits; calls `changed(i, value)`, and returns a function that shows q.
  function sliders(host, robot, changed) {
    const rows = robot.names.map((name, i) => {
      const value = el("output"), input = el("input", { type: "range", min: robot.lower[i], max: robot.upper[i], step: "any", id: `q${i + 1}`,
        "aria-label": `${name}, ${robot.kinds[i]} joint` });
      input.addEventListener("input", () => { value.textContent = angle(+input.value, robot.kinds[i]); changed(i, +input.value); });
      // The arrow keys move by a hundredth of the range; with step "any" the browser would move by one.
      input.addEventListener("keydown", (event) => {
        const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
        if (!way) return;
        event.preventDefault(); input.value = +input.value + way * 0.01 * (robot.upper[i] - robot.lower[i]); input.dispatchEvent(new Event("input"));
      });
      host.append(el("label", { class: "slider" }, el("span", { title: name }, name), input, value));
      return { input, value };
    });
    return (q) => rows.forEach(({ input, value }, i) => {
      if (document.activeElement !== input || !input.matches(":active")) input.value = q[i];
      value.textContent = angle(q[i], robot.kinds[i]);
    });
  }

  const choice = (label, options, chosen, pick) => {
    const group = el("div", { class: "choice", role: "group", "aria-label": label });
    for (const [value, text, title] of options) {
      group.append(el("button", { type: "button", "data-value": value, title: title || false, "aria-pressed": String(value === chosen), onclick: () => { pick(value); mark(value); } }, text));
    }
    const mark = (now) => { for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.value === String(now))); };
    return { group, mark };
  };

  function labelled(text, ...children) { return el("div", { class: "field" }, el("span", {}, text), ...children); }

  function range(label, low, high, value, text, changed, id) {
    const output = el("output", {}, text(value)), input = el("input", { type: "range", min: low, max: high, step: (high - low) / 200, value, "aria-label": label, id });
    input.addEventListener("input", () => { output.textContent = text(+input.value); changed(+input.value); });
    return el("label", { class: "slider" }, el("span", {}, label), input, output);
  }

  // Gravity, payload and friction: inputs of the programs that can change during the simulation.
  function conditions(host, arm, world, viewer, changed) {
    const { robot, arrays } = arm, g = Geometry.norm(robot.gravity) || 9.81;
    const tilt = { angle: 0, heading: 0, size: 1 }, down = Geometry.unit(Geometry.norm(robot.gravity) ? robot.gravity : [0, 0, -1]);
    const [sideways, across] = Geometry.across(Geometry.scale(down, -1));
    const gravity = () => {
      const s = Math.sin(tilt.angle), c = Math.cos(tilt.angle), way = [Math.cos(tilt.heading), Math.sin(tilt.heading)];
      arrays.gravity.set([0, 1, 2].map((k) => g * tilt.size * (c * down[k] + s * (way[0] * sideways[k] + way[1] * across[k]))));
      changed();
    };
    const place = [0, 0, 0.08 * robot.reach], degrees = (x) => `${(x * 180 / Math.PI).toFixed(0)}°`;
    const payload = (mass) => {
      arm.hold(mass, place); viewer.show.payload = mass; viewer.show.payloadAt = place; changed();
    };
    const heaviest = Math.max(1, Math.round(0.4 * robot.masses.reduce((a, b) => a + b, 0)));
    const friction = el("input", { type: "checkbox", id: "friction", disabled: !robot.frictional, checked: world.friction, onchange: (event) => { world.friction = event.target.checked; changed(); } });
    host.append(
      range("payload", 0, heaviest, 0, (x) => `${x.toFixed(2)} kg`, payload, "payload"),
      range("payload at z", -0.3 * robot.reach, 0.3 * robot.reach, place[2], (x) => minus(`${x.toFixed(2)} m`), (x) => { place[2] = x; payload(arrays.mass[0]); }, "payload-z"),
      ...(robot.tilts ? [range("gravity tilt", 0, Math.PI, 0, degrees, (x) => { tilt.angle = x; gravity(); }, "tilt"),
        range("tilt direction", 0, 2 * Math.PI, 0, degrees, (x) => { tilt.heading = x; gravity(); }, "heading")] : []),
      range("gravity", 0, 2, 1, (x) => `${(g * x).toFixed(1)} m/s²`, (x) => { tilt.size = x; gravity(); }, "gravity"),
      el("label", { class: "check" }, friction, robot.frictional ? "friction, as armdyn.simulate" : "friction (none given for this arm)"),
    );
  }

  // Plots of energy and joint positions over the last ten seconds.
  function traces(host, arm, world) {
    const { robot, arrays } = arm, SPAN = 10, KEPT = 1200;
    const data = { t: [], energy: [[], [], []], q: robot.names.map(() => []), tau: robot.names.map(() => []) };
    const energy = el("canvas", { class: "trace", id: "trace-energy", "aria-label": "energy over time" });
    const joints = el("canvas", { class: "trace", id: "trace-q", "aria-label": "joint positions over time" });
    host.append(el("div", {}, energy, Chart.legend(["kinetic", "potential", "total"], ["var(--series-1)", "var(--series-2)", "var(--text)"])),
      el("div", {}, joints, Chart.legend(robot.names)));
    function sample() {
      data.t.push(world.t);
      [arrays.T[0], arrays.V[0], arrays.T[0] + arrays.V[0]].forEach((v, k) => data.energy[k].push(v));
      for (let i = 0; i < robot.n; i++) data.q[i].push(arrays.q[robot.first + i]);
      if (data.t.length > KEPT) { data.t.shift(); [...data.energy, ...data.q].forEach((list) => list.shift()); }
    }
    function clear() { data.t.length = 0; [...data.energy, ...data.q].forEach((list) => { list.length = 0; }); sample(); draw(); }
    function draw() {
      const shown = [Math.max(0, world.t - SPAN), Math.max(2, world.t)];
      const look = [Page.series(0), Page.series(1), Page.color("text")];
      Chart.curves(energy, { x: data.t, window: shown, y: "energy [J]", hint: "press Play", curves: data.energy.map((y, k) => ({ y, color: look[k], wide: k === 2 ? 2.4 : 1.6 })) });
      Chart.curves(joints, { x: data.t, window: shown, y: robot.kinds.includes("prismatic") ? "position [rad], [m]" : "position [rad]", hint: "press Play", curves: data.q.map((y) => ({ y })) });
    }
    Page.onTheme(draw); new ResizeObserver(draw).observe(energy);
    clear();
    return { sample, draw, clear, data };
  }

  // The inertia matrix as a heat map, torques with their limits, and measures of the posture.
  function numbers(arm, world) {
    const { robot, arrays } = arm, torque = unitsOf(robot, "N m", "N"), names = robot.coordinates;
    const heat = Chart.heat($("heat"), names, "inertia matrix");
    const bars = Chart.bars($("bars"), names, robot.effort, torque), momentum = Chart.bars($("momentum"), names, names.map(() => null), unitsOf(robot, "N m s", "N s"));
    const facts = {};
    for (const [key, label] of [["condition", "condition number of H"], ["manipulability", "manipulability √det(J Jᵀ)"], ["mass", "smallest effective mass at the tool"], ["energy", "energy"], ["tool", "tool"]]) {
      facts[key] = el("b", { id: `fact-${key}` }); $("live-facts").append(el("div", {}, el("span", {}, label), facts[key]));
    }
    const rows = (flat) => Array.from({ length: robot.nv }, (_, i) => Array.from(flat.slice(i * robot.nv, (i + 1) * robot.nv)));
    return () => {
      heat(arrays.H); bars(world.torques ? world.torques() : arrays.g); momentum(arrays.p);
      const own = Geometry.eigen(rows(arrays.H)).values, tool = Geometry.eigen(Robot.toolMatrix("velocity", robot.nv, arrays)).values;
      const mobility = Geometry.eigen(Robot.toolMatrix("mobility", robot.nv, arrays)).values[2];
      facts.condition.textContent = short(own[own.length - 1] / own[0]);
      facts.manipulability.textContent = `${short(Math.sqrt(Math.max(0, tool.reduce((a, b) => a * b, 1))))} m³`;
      facts.mass.textContent = mobility > 0 ? `${short(1 / mobility)} kg` : "–";
      facts.energy.textContent = `${minus((arrays.T[0] + arrays.V[0]).toFixed(3))} J`;
      facts.tool.textContent = Geometry.origin(arrays.tool).map((x) => minus(x.toFixed(3))).join(", ") + " m";
    };
  }

  return { sliders, choice, conditions, traces, numbers, labelled, range };
})();
