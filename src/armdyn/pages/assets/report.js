// The report page: the interactive arm, its simulation, and the live numbers.
"use strict";
(async () => {
  const { $, el } = Page, DATA = JSON.parse($("data").textContent), robot = DATA.robot;
  Page.startTheme($("theme"));
  const arm = await Live.load(robot), { arrays } = arm, canvas = $("arm-view");
  const world = Live.physics(arm);
  const positions = () => arrays.q.subarray(robot.first, robot.first + robot.n);
  let grip = null, numbersAt = 0;

  const viewer = Viewer.create(canvas, robot, arrays, {
    grab(body, point) {
      const T = Robot.poseOf(robot, arrays.poses, body), d = Geometry.sub(point, Geometry.origin(T));
      grip = { body, local: [0, 1, 2].map((k) => Geometry.dot(Geometry.axis(T, k), d)), target: point };
    },
    drag(target) {
      grip.target = target;
      if (world.playing && world.mode !== "pd") return; // the pointer pulls through a spring instead, see `pull`
      if (world.playing) { // the PD controller's target follows the pointer
        const now = [Array.from(arrays.q), Array.from(arrays.qd)];
        arrays.q.set(world.target); arm.state();
        world.target = Viewer.reach(robot, arm, grip.body, grip.local, target);
        arrays.q.set(now[0]); arrays.qd.set(now[1]); arm.state();
      } else { posture(Viewer.reach(robot, arm, grip.body, grip.local, target)); }
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

  function posture(q) {
    world.target = Array.from(q);
    world.start = world.target.slice(); world.place(q);
    refresh(true);
  }

  const showSliders = Panels.sliders($("sliders"), robot, (i, value) => {
    if (world.playing && world.mode === "pd") { world.target[robot.first + i] = value; return; }
    const q = Array.from(arrays.q); q[robot.first + i] = value; posture(q);
  });
  const showNumbers = Panels.numbers(arm, world);
  const traces = Panels.traces($("traces"), arm, world);

  function refresh(all) {
    viewer.redraw();
    const now = performance.now();
    if (!all && now - numbersAt < 90) return;
    numbersAt = now; showNumbers();
    showSliders(world.playing && world.mode === "pd" ? world.target.slice(robot.first) : positions());
  }

  function clock() {
    $("clock").textContent = `${world.t.toFixed(2)} s`;
    $("play").textContent = world.playing ? "Pause" : "Play"; $("play").setAttribute("aria-pressed", String(world.playing));
  }
  const meter = { frames: 0, since: 0, cost: 0 };
  let before = null;
  function tick(now) {
    if (!world.playing) { before = null; clock(); return; }
    if (before !== null) {
      pull(); world.run(Math.min(0.1, (now - before) / 1000)); traces.sample(); traces.draw(); refresh(false);
      meter.frames++; meter.cost = Math.max(meter.cost, world.cost);
    } else { meter.since = now; meter.frames = 0; meter.cost = 0; }
    before = now;
    if (now - meter.since > 1000) {
      $("meter").textContent = `${Math.round(1000 * meter.frames / (now - meter.since))} frames per second, physics at 1 kHz takes at most ${meter.cost.toFixed(2)} ms per frame, ${viewer.kind}`;
      Object.assign(meter, { frames: 0, since: now, cost: 0 });
    }
    if (world.message) $("meter").textContent = world.message;
    clock(); requestAnimationFrame(tick);
  }
  const play = (on) => { world.playing = on; if (on) requestAnimationFrame(tick); clock(); refresh(true); };

  function physicsPanel() {
    const modes = Panels.choice("controller", [["hold", "Hold", "gravity compensation only"],
      ["free", "Free fall", "no motor torque"], ["pd", "PD", "PD control to the sliders' posture, with gravity compensation"]], world.mode, (mode) => { world.target = Array.from(arrays.q); world.control(mode); refresh(true); });
    const speeds = Panels.choice("speed", [[1, "1×"], [0.25, "¼×"], [0.05, "1/20×"]], 1, (speed) => { world.speed = speed; });
    $("differs").textContent = Live.sameAs(robot);
    $("modes").append(modes.group); $("speeds").append(speeds.group);
    $("play").addEventListener("click", () => play(!world.playing));
    $("reset").addEventListener("click", () => { world.reset(); traces.clear(); clock(); refresh(true); });
    $("fall").addEventListener("click", () => { world.reset(); world.control("free"); modes.mark("free"); traces.clear(); play(true); });
    $("conditions").parentElement.open = innerWidth > 860; // collapsed on phones to save space
    Panels.conditions($("conditions"), arm, world, viewer, () => { arm.state(); refresh(true); });
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA|BUTTON|A|SUMMARY)$/.test(event.target.tagName)) return;
      if (event.key === " ") { event.preventDefault(); play(!world.playing); } else if (event.key === "r") $("reset").click();
    });
  }

  function looks() {
    const look = viewer.show;
    $("looks").append(
      Panels.choice("ellipsoid at the tool", [["none", "no ellipsoid"], ["velocity", "manipulability"], ["mobility", "mobility"]], "none", (kind) => { look.ellipsoid = kind; viewer.redraw(); }).group,
      ...[["masses", "centres of mass"], ["frames", "frames"]].map(([key, text]) => el("label", { class: "check" }, el("input", { type: "checkbox", onchange: (event) => { look[key] = event.target.checked; viewer.redraw(); } }), text)),
      el("button", { type: "button", onclick: () => viewer.reset() }, "Reset view"),
      el("button", { type: "button", id: "picture", onclick: () => { viewer.draw(); canvas.toBlob((blob) => Page.download(`${robot.file}.png`, blob)); } }, "Save PNG"),
    );
  }

  // Pointing at a minimal parameter highlights the links that contribute to it.
  function parameters() {
    const label = $("parameter-links");
    for (const row of document.querySelectorAll("#parameter-table tbody tr")) {
      const links = JSON.parse(row.dataset.links);
      const on = () => { viewer.show.links = new Set(links); label.textContent = `link${links.length > 1 ? "s" : ""} ${links.map((k) => k + 1).join(", ")}`; viewer.redraw(); };
      const off = () => { viewer.show.links = null; label.textContent = ""; viewer.redraw(); };
      row.tabIndex = 0;
      row.addEventListener("pointerenter", on); row.addEventListener("focus", on);
      row.addEventListener("pointerleave", off); row.addEventListener("blur", off);
    }
  }

  physicsPanel(); clock();
  looks(); parameters();
  if ($("cost-chart")) Costs.create($("cost-chart"), DATA.costs, DATA.labels);
  if ($("graph-chart")) Graph.create($("graph-chart"), DATA.graphs, DATA.labels);
  refresh(true);
  window.armdyn = { arm, world, viewer, traces, refresh, posture }; // for the browser console and for tests
  document.body.dataset.ready = "yes";
})().catch((error) => { // show on the page why it is empty
  document.body.dataset.ready = "failed";
  document.querySelector("main").prepend(Page.el("p", { class: "odd" }, `This page could not start; it needs WebAssembly: ${error.message}`));
  console.error(error);
});
