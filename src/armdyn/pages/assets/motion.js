// Plays a recorded motion: play, scrub, speed; torques with their limits; curves with a cursor.
"use strict";
(async () => {
  const { $, el } = Page, DATA = JSON.parse($("data").textContent), { robot, motion } = DATA;
  Page.startTheme($("theme"));
  const arm = await Live.load(robot), { arrays } = arm, viewer = Viewer.create($("arm-view"), robot, arrays);
  const last = motion.t.length - 1, end = motion.t[last], now = { t: motion.t[0], playing: false, speed: 1 };
  const bars = Chart.bars($("bars"), robot.names, robot.effort.slice(-robot.n), robot.kinds.map((kind) => (kind === "prismatic" ? "N" : "N m")));

  // Linear interpolation between samples; constant before the first and after the last.
  function sample(columns, t) {
    let low = 0, high = last;
    while (high - low > 1) { const middle = (low + high) >> 1; if (motion.t[middle] <= t) low = middle; else high = middle; }
    const part = last ? Math.max(0, Math.min(1, (t - motion.t[low]) / (motion.t[high] - motion.t[low] || 1))) : 0;
    return columns.map((values) => values[low] + part * (values[high] - values[low]));
  }

  const charts = motion.charts.map((chart) => {
    const canvas = el("canvas", { class: "trace", "aria-label": chart.y }), curves = chart.curves.map(({ name, y }) => ({ name, y }));
    let at = null;
    const draw = () => { at = Chart.curves(canvas, { x: motion.t, y: chart.y, cursor: now.t, curves }).at; };
    const seek = (event) => { if (event.buttons) show(at(event.offsetX)); };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); seek(event); });
    canvas.addEventListener("pointermove", seek);
    $("charts").append(el("div", {}, canvas, Chart.legend(chart.curves.map(({ name }) => name))));
    new ResizeObserver(draw).observe(canvas); Page.onTheme(draw);
    return draw;
  });

  // Interpolation shortens the quaternion of a floating base; it is normalised again.
  function posture(t) {
    const q = sample(motion.q, t);
    if (!robot.first) return q;
    const length = Math.hypot(...q.slice(3, 7));
    return q.map((x, k) => (k >= 3 && k < 7 ? x / length : x));
  }

  function show(t) {
    now.t = Math.max(motion.t[0], Math.min(end, t));
    arrays.q.set(posture(now.t)); arm.state();
    bars(sample(motion.tau, now.t).slice(-robot.n)); charts.forEach((draw) => draw()); viewer.redraw();
    $("scrub").value = now.t; $("clock").textContent = `${now.t.toFixed(2)} s`;
  }
  let before = null;
  function tick(time) {
    if (!now.playing) { before = null; return; }
    if (before !== null) show(now.t + now.speed * Math.min(0.1, (time - before) / 1000));
    before = time;
    if (now.t >= end) play(false); else requestAnimationFrame(tick);
  }
  function play(on) {
    now.playing = on; $("play").textContent = on ? "Pause" : "Play"; $("play").setAttribute("aria-pressed", String(on));
    if (on) { if (now.t >= end) show(motion.t[0]); requestAnimationFrame(tick); }
  }
  Object.assign($("scrub"), { min: motion.t[0], max: end, step: "any" });
  $("scrub").addEventListener("input", () => { play(false); show(+$("scrub").value); });
  $("play").addEventListener("click", () => play(!now.playing));
  $("speeds").append(Panels.choice("speed", [[1, "1×"], [0.25, "¼×"], [0.05, "1/20×"], [4, "4×"]], 1, (speed) => { now.speed = speed; }).group);
  addEventListener("keydown", (event) => {
    if (event.key === " " && !/^(INPUT|BUTTON|A)$/.test(event.target.tagName)) { event.preventDefault(); play(!now.playing); }
  });
  if (DATA.charts) Curves.start(DATA.charts);
  show(now.t);
  window.armdyn = { arm, viewer, show, play, now };
  document.body.dataset.ready = "yes";
})().catch((error) => { document.body.dataset.ready = "failed"; console.error(error); });
