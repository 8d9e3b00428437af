// Plays a recorded motion: play, scrub, speed; torques with their limits; curves with a cursor.
"use strict";
(async () => {
  const { $, el, short, minus } = Page, DATA = JSON.parse($("data").textContent), { robot, motion } = DATA;
  Page.startTheme($("theme"));
  const arm = await Live.load(robot), { arrays } = arm, viewer = Viewer.create($("arm-view"), robot, arrays);
  const last = motion.t.length - 1, end = motion.t[last], now = { t: motion.t[0], playing: false, speed: 1 };
  if (motion.postures) document.body.dataset.still = last < 1 ? "one" : "many"; // nothing has a time, one posture cannot be played
  const names = Joints.told(robot.names), digits = Joints.decimals(robot), base = motion.tau.length - robot.n;

  // One row per joint: position, torque with a bar, the limit, and the largest torque of the whole motion with its time.
  const rows = robot.names.map((name, i) => {
    const most = robot.effort[robot.effort.length - robot.n + i], limit = most > 0 ? most : null, peak = motion.peaks[base + i], unit = robot.kinds[i] === "prismatic" ? "N" : "N m";
    const bar = el("i"), mark = el("u"), cells = { q: el("td"), torque: el("td", { class: "gravity" }) }, full = limit || Math.abs(peak?.[0]) || 1;
    if (peak) mark.style.left = `${50 + 50 * Math.max(-1, Math.min(1, peak[0] / full))}%`; else mark.hidden = true;
    const line = el("tr", {}, el("th", { scope: "row", title: name, class: names[i].length < 17 && "short" }, names[i]), cells.q, el("td", { class: "way" }, el("div", { class: limit ? "track" : "track open" }, bar, mark)), cells.torque,
      el("td", { class: "most" }, limit ? short(limit) : "–"), el("td", { class: "peak" }, peak ? `${minus(peak[0].toFixed(digits))}\u00a0${unit.replace(" ", "\u00a0")} at\u00a0${peak[1].toFixed(2)}\u00a0s` : "–"),
      el("td", { class: "part" }, limit && peak ? `${(100 * Math.abs(peak[0]) / limit).toFixed(0)}` : ""));
    line.classList.toggle("beyond", Boolean(limit && peak && Math.abs(peak[0]) > limit));
    return { line, show(q, tau) {
      const part = Math.max(-1, Math.min(1, tau / full));
      bar.style.left = `${50 + Math.min(0, 50 * part)}%`; bar.style.width = `${Math.abs(50 * part)}%`;
      cells.q.textContent = Page.angle(q, robot.kinds[i]); cells.torque.textContent = Number.isFinite(tau) ? minus(tau.toFixed(digits)) : "–";
    } };
  });
  const head = (text, attributes = {}) => el("th", { scope: "col", ...attributes }, text);
  $("bars").append(el("caption", { class: "unseen" }, "joint torques now and their largest values"), el("thead", {}, el("tr", {}, head("joint"), head("q"), el("td"), head(robot.kinds.includes("prismatic") ? "torque N m, N" : "torque N m"), head("limit", { class: "most" }), head("peak"), head("%", { title: "peak as a part of the limit" }))),
    el("tbody", {}, ...rows.map(({ line }) => line)));
  const along = ({ x, y }, t) => {
    if (!x.length) return NaN;
    const k = Chart.before(x, t), next = Math.min(k + 1, x.length - 1), part = next > k ? Math.max(0, Math.min(1, (t - x[k]) / (x[next] - x[k]))) : 0;
    return y[k] + part * (y[next] - y[k]);
  };

  // Linear interpolation between samples; constant before the first and after the last.
  function sample(columns, t) {
    let low = 0, high = last;
    while (high - low > 1) { const middle = (low + high) >> 1; if (motion.t[middle] <= t) low = middle; else high = middle; }
    const part = last ? Math.max(0, Math.min(1, (t - motion.t[low]) / (motion.t[high] - motion.t[low] || 1))) : 0;
    return columns.map((values) => values[low] + part * (values[high] - values[low]));
  }

  const charts = motion.charts.map((chart) => {
    const source = chart.curves === "tau" ? motion.tau : chart.curves, list = source.map(({ x, y }, index) => ({ x, y, index }));
    const canvas = el("canvas", { class: "trace", role: "img", "aria-label": chart.y });
    let at = null;
    const draw = () => { at = Chart.curves(canvas, { x: motion.t, y: chart.y, cursor: now.t, curves: list }).at; };
    const seek = (event) => { if (event.buttons) { play(false); show(at(event.offsetX)); } };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); seek(event); });
    canvas.addEventListener("pointermove", seek);
    $("charts").append(el("div", { class: "chart" }, canvas, Chart.legend(chart.names.length === robot.n ? names : chart.names)));
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
    rows.forEach((row, i) => row.show(arrays.q[robot.first + i], along(motion.tau[base + i], now.t))); charts.forEach((draw) => draw()); viewer.redraw();
    $("scrub").value = now.t; $("clock").textContent = motion.labels?.[Math.round(now.t)] ?? `${now.t.toFixed(2)} s`;
  }
  let before = null, since = null;
  function tick(time) {
    if (!now.playing) { before = since = null; return; }
    if (before !== null) show(now.t + now.speed * Math.min(0.25, (time - before) / 1000));
    since ??= [time, now.t];
    if (time - since[0] > 500) { $("factor").textContent = `${((now.t - since[1]) / (time - since[0]) * 1000).toFixed(2)}× real time`; since = [time, now.t]; }
    before = time;
    if (now.t >= end) play(false); else requestAnimationFrame(tick);
  }
  function play(on) {
    now.playing = on; $("play").textContent = on ? "Pause" : "Play"; $("play").setAttribute("aria-pressed", String(on));
    if (on) { if (now.t >= end) show(motion.t[0]); requestAnimationFrame(tick); }
  }
  Object.assign($("scrub"), { min: motion.t[0], max: end, step: motion.labels ? 1 : "any" });
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
