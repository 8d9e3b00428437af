// The bench: the picture of an arm, the table of its joints, conditions, the simulation, and the tabs.
"use strict";
(async () => {
  const { $, el, minus } = Page, DATA = JSON.parse($("data").textContent), robot = DATA.robot;
  Page.startTheme($("theme"));
  const arm = await Live.load(robot), { arrays } = arm, canvas = $("arm-view"), base = robot.nv - robot.n;
  const world = Live.physics(arm), history = Panels.record(arm, world), given = Share.read(robot);
  const positions = () => arrays.q.subarray(robot.first, robot.first + robot.n);
  const goes = () => world.playing && world.mode === "pd"; // the table then sets the target, not the posture
  const page = { tab: "bench", reference: null, column: "motor" };
  let grip = null, numbersAt = 0;

  const viewer = Viewer.create(canvas, robot, arrays, {
    grab(body, point) {
      const T = Robot.poseOf(robot, arrays.poses, body), d = Geometry.sub(point, Geometry.origin(T));
      grip = { body, local: [0, 1, 2].map((k) => Geometry.dot(Geometry.axis(T, k), d)), target: point };
    },
    drag(target) {
      grip.target = target;
      if (world.playing && world.mode !== "pd") return; // the pointer pulls through a spring instead, see `pull`
      if (goes()) { // the target of PD control follows the pointer
        const now = [Array.from(arrays.q), Array.from(arrays.qd)];
        arrays.q.set(world.target); arm.state();
        world.target = Viewer.reach(robot, arm, grip.body, grip.local, target);
        arrays.q.set(now[0]); arrays.qd.set(now[1]); arm.state();
      } else posture(Viewer.reach(robot, arm, grip.body, grip.local, target));
    },
    release() { grip = null; world.pull.fill(0); },
  });

  // A damped spring between the pointer and the grabbed point, as generalised forces.
  function pull() {
    if (!grip || world.mode === "pd") return;
    const point = Geometry.apply(Robot.poseOf(robot, arrays.poses, grip.body), grip.local);
    const J = [...Robot.baseColumns(robot, arrays, point), ...Robot.pointJacobian(robot, arrays, grip.body, point)], mass = robot.masses.reduce((a, b) => a + b, 0) / robot.masses.length;
    const speed = [0, 1, 2].map((k) => J.reduce((s, column, i) => s + column[k] * arrays.qd[i], 0));
    const force = [0, 1, 2].map((k) => 60 * mass * (grip.target[k] - point[k]) - 8 * mass * speed[k]);
    J.forEach((column, i) => { world.pull[i] = Geometry.dot(column, force); });
  }

  // A thousand arms end to fall, and their cloud goes, when anything else moves the arm.
  let falls = null;
  function settle() { if (falls) falls.stop(); viewer.show.cloud = null; }

  function posture(q) {
    settle(); world.target = Array.from(q); world.start = world.target.slice(); world.place(q);
    refresh(true);
  }

  // The joint table.
  const light = (i) => {
    viewer.show.links = i === null ? null : new Set(robot.bodies.flatMap(({ joint }, k) => (joint === i ? [k] : [])));
    H.mark(i === null ? null : base + i); viewer.redraw();
  };
  const table = Joints.create($("joints"), robot, {
    changed(i, value) {
      if (goes()) { world.target[robot.first + i] = value; refresh(true); return; }
      const q = Array.from(arrays.q); q[robot.first + i] = value; posture(q);
    },
    light,
    column(key) { page.column = key; refresh(true); },
  });
  const H = Chart.matrix($("H"), $("H-told"), Panels.told(robot), "H", Panels.unitOf(robot), (row) => table.mark(row === null ? null : row - base));
  function more(i) {
    if (page.column === "motor") return table.fixed(world.torques()[base + i]);
    if (page.column === "inertia") return Page.short(arrays.H[(base + i) * (robot.nv + 1)]);
    if (page.column === "speed") return table.fixed(arrays.qd[base + i] * (robot.kinds[i] === "prismatic" ? 1 : 180 / Math.PI));
    return table.fixed(bias[base + i]);
  }
  let bias = arrays.b;
  function numbers() {
    if (page.column === "bias") { arrays.slide.set(arrays.qd); arm.dynamics(); bias = arrays.b; }
    const gravity = arrays.g.subarray(base);
    table.show(goes() ? world.target.slice(robot.first) : positions(), gravity, page.reference ? page.reference.gravity : null, more);
  }

  const conditions = Panels.conditions($("conditions"), arm, world, () => { if (falls) falls.stop(); refresh(true); });
  const charts = Panels.charts($("charts"), $("readout"), arm, world, history, table.names, table.groups);
  const showMatrices = Panels.matrices(arm);

  function pin() {
    const on = !page.reference;
    page.reference = on ? { gravity: Array.from(arrays.g.subarray(base)) } : null;
    viewer.show.ghost = on ? { poses: arrays.poses.slice(), tool: arrays.tool.slice() } : null;
    $("pin").setAttribute("aria-pressed", String(on)); $("pin").textContent = on ? "Unpin" : "Pin";
    table.pinned(on); refresh(true);
  }

  // The table follows every change at once; matrices and the copy in the address when there is time.
  let later = 0;
  function refresh(all) {
    const { mass, at } = conditions.values();
    viewer.show.payload = mass; viewer.show.payloadAt = at; viewer.show.torques = world.torques(); viewer.redraw();
    const now = performance.now();
    if (!all && now - numbersAt < 90) return;
    numbersAt = now; numbers();
    if (!later) later = requestAnimationFrame(() => { later = 0; H.show(arrays.H); if (page.tab === "matrices") showMatrices(); });
    if (!world.playing) { share.keep(); say(); }
  }

  // One polite summary, a second after the last change and not while playing; it is the picture's text too.
  let timer = 0;
  function say() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (world.playing) return;
      const q = table.names.map((name, i) => `${name} ${Page.angle(positions()[i], robot.kinds[i])}`), tool = Geometry.origin(arrays.tool).map((x) => minus(x.toFixed(3)));
      const parts = robot.effort.slice(base).map((most, i) => (most > 0 ? Math.abs(arrays.g[base + i]) / most : 0)), k = parts.indexOf(Math.max(...parts));
      $("said").textContent = `${q.join(", ")}. Tool at ${tool.join(", ")} m.${parts[k] > 0 ? ` Largest gravity torque: ${table.names[k]}, ${(100 * parts[k]).toFixed(0)} % of its limit.` : ""}`;
    }, 1000);
  }

  // The clock, the real-time factor over the last second, and the largest torque seen.
  const ticks = [];
  function clock() {
    $("clock").textContent = `${world.t.toFixed(2)} s`;
    $("play").textContent = world.playing ? "Pause" : "Play"; $("play").setAttribute("aria-pressed", String(world.playing));
    for (const [id, mode] of [["fall", "free"], ["hold", "hold"], ["goto", "pd"]]) $(id).setAttribute("aria-pressed", String(world.mode === mode));
    const peak = history.peak();
    $("peak").textContent = !peak ? "\u00a0" : `peak ${(100 * peak).toFixed(0)} %`;
    $("told").textContent = world.message || { free: "no motor torque", hold: "holds still; drag it", pd: "goes to the posture in the table" }[world.mode];
    $("scrub").min = data.t.length ? String(Math.min(0, data.t[0] - world.end)) : "-10"; $("scrub").value = String(Math.min(0, world.t - world.end));
  }
  const { data } = history;
  function factor(now) {
    ticks.push([now, world.t]);
    while (ticks.length > 2 && now - ticks[0][0] > 1500) ticks.shift();
    const [first, last] = [ticks[0], ticks[ticks.length - 1]], wall = (last[0] - first[0]) / 1000;
    if (wall > 0.3) $("factor").textContent = `${((last[1] - first[1]) / wall).toFixed(2)}× real time`;
  }
  let before = null;
  function tick(now) {
    if (!world.playing) { before = null; ticks.length = 0; clock(); return; }
    if (before !== null) { pull(); world.run(Math.max(0, now - before) / 1000, history.sample); world.end = world.t; charts.draw(); refresh(false); }
    before = now; factor(now); clock(); requestAnimationFrame(tick);
  }
  function play(on) {
    if (on === world.playing) { clock(); return; }
    if (on) settle();
    if (on && world.t < world.end) { history.cut(Chart.before(data.t, world.t)); world.end = world.t; }
    world.playing = on;
    if (on) { if (!data.t.length) history.sample(); requestAnimationFrame(tick); }
    clock(); refresh(true);
  }
  function run(mode) {
    if (world.playing && world.mode === mode) { play(false); return; }
    if (mode !== "pd" || !world.playing) world.target = Array.from(mode === "pd" ? world.start : arrays.q);
    world.control(mode); play(true);
  }
  // Back to a moment of the last seconds; playing continues from there.
  function scrub(seconds) {
    play(false);
    if (!data.t.length) return;
    const moment = history.at(Chart.before(data.t, world.end + seconds));
    arrays.q.set(moment.q); arrays.qd.set(moment.qd); arm.state(); world.t = moment.t; world.target = Array.from(moment.q);
    clock(); charts.draw(); refresh(true);
  }
  function reset() { settle(); world.reset(); world.end = 0; history.clear(); ticks.length = 0; $("factor").textContent = "\u00a0"; clock(); charts.draw(); refresh(true); }

  function controls() {
    world.end = 0;
    for (const [id, mode] of [["fall", "free"], ["hold", "hold"], ["goto", "pd"]]) $(id).addEventListener("click", () => run(mode));
    $("play").addEventListener("click", () => play(!world.playing)); $("reset").addEventListener("click", reset); $("pin").addEventListener("click", pin);
    $("speeds").append(Panels.choice("speed", [[1, "1×"], [0.25, "¼×"], [0.05, "1/20×"]], 1, (speed) => { world.speed = speed; ticks.length = 0; }).group);
    $("scrub").addEventListener("input", () => scrub(+$("scrub").value));
    $("differs").textContent = Live.sameAs(robot);
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA|BUTTON|A|SUMMARY)$/.test(event.target.tagName)) return;
      if (event.key === " ") { event.preventDefault(); play(!world.playing); } else if (event.key === "r") reset();
    });
    const look = viewer.show, box = (key, text) => el("label", { class: "check" }, el("input", { type: "checkbox", onchange: (event) => { look[key] = event.target.checked; viewer.redraw(); } }), text);
    $("looks").append(
      el("select", { "aria-label": "ellipsoid at the tool", onchange: (event) => { look.ellipsoid = event.target.value; viewer.redraw(); } },
        ...[["none", "no ellipsoid"], ["velocity", "manipulability"], ["mobility", "mobility"]].map(([value, text]) => el("option", { value }, text))),
      box("masses", "masses"), box("frames", "frames"),
      el("button", { type: "button", onclick: () => viewer.reset() }, "Reset view"));
  }

  // Tabs, by arrow keys too; the picture stays beside those that refer to it.
  function show(tab) {
    page.tab = tab; document.body.dataset.tab = tab;
    for (const button of document.querySelectorAll("[role=tab]")) {
      const on = button.dataset.tab === tab;
      button.setAttribute("aria-selected", String(on)); button.tabIndex = on ? 0 : -1; $(button.dataset.tab).classList.toggle("shown", on);
    }
    if (tab === "matrices") showMatrices();
    charts.draw(); viewer.redraw(); share.keep();
  }
  function tabs() {
    const buttons = [...document.querySelectorAll("[role=tab]")];
    buttons.forEach((button, k) => {
      button.addEventListener("click", () => show(button.dataset.tab));
      button.addEventListener("keydown", (event) => {
        const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!way) return;
        const next = buttons[(k + way + buttons.length) % buttons.length];
        event.preventDefault(); show(next.dataset.tab); next.focus();
      });
    });
  }

  controls(); tabs();
  const share = Share.create({ arm, canvas, viewer, history, version: DATA.version, torques: () => Array.from(arrays.g),
    now: () => ({ q: Array.from(goes() ? world.target : arrays.q), conditions: conditions.values(), gravity: conditions.gravity(), mode: world.mode, tab: page.tab }) });
  if (DATA.parameters) Parameters.create($("grid"), $("grid-told"), $("parameter-table"), DATA.parameters, (links) => { viewer.show.links = links && new Set(links); viewer.redraw(); });
  if ($("cost-chart")) Costs.create($("cost-chart"), DATA.costs, DATA.labels);
  if ($("graph-chart")) Graph.create($("graph-chart"), JSON.parse(new TextDecoder().decode(await Page.unpacked(DATA.graphs))), DATA.labels);
  if (DATA.falls) falls = await Falls.create($("falling"), arm, DATA.falls, {
    state: () => ({ q: Array.from(arrays.q), friction: world.friction }),
    started() { play(false); settle(); arrays.qd.fill(0); },
    show(q, points) { arrays.q.set(q); arm.state(); viewer.show.cloud = points; refresh(false); },
  });
  function take(state) {
    if (state.payload) [state.mass, state.at] = [state.payload[0], state.payload.slice(1)];
    if (state.gravity) [state.size, state.tilt, state.heading] = state.gravity;
    const { mass, at, size, tilt, heading, friction } = state, set = { mass, at, size, tilt, heading, friction };
    conditions.set(Object.fromEntries(Object.entries(set).filter(([, value]) => value !== undefined)));
    if (state.mode) world.control(state.mode);
    if (state.q) posture(state.q);
    show(state.tab || "bench");
  }
  take(given); addEventListener("hashchange", () => take(Share.read(robot)));
  addEventListener("beforeprint", () => { table.open(true); H.show(arrays.H); showMatrices(); });
  clock(); refresh(true);
  window.armdyn = { arm, world, viewer, history, conditions, table, share, refresh, posture, run, play, scrub, show, pin, falls }; // for the browser console and for tests
  document.body.dataset.ready = "yes";
})().catch((error) => { // show on the page why it is empty
  document.body.dataset.ready = "failed";
  document.querySelector("main").prepend(Page.el("p", { class: "odd" }, `This page could not start; it needs WebAssembly: ${error.message}`));
  console.error(error);
});
