// The state of the bench in the address, and its export: link, Python, command, JSON, CSV, picture with a caption.
"use strict";
const Share = (() => {
  const { $, el, minus, download } = Page;
  const MODES = ["free", "hold", "pd"], TABS = ["bench", "matrices", "parameters", "model", "cost", "cite"];
  const numbers = (text, count) => {
    const values = text.split(",").map((word) => (/^[-+]?[\d.]+(e[-+]?\d+)?$/i.test(word) ? Number(word) : NaN));
    return values.length === count && values.every(Number.isFinite) ? values : null;
  };

  // What the address says, as numbers and known names; anything else is ignored.
  function read(robot, text = location.hash) {
    const found = {}, bare = text.replace(/^#/, "");
    if (TABS.includes(bare)) return { tab: bare };
    for (const pair of bare.split("&")) {
      const [key, value = ""] = pair.split("=");
      const list = { q: robot.home.length, payload: 4, gravity: 3 }[key];
      if (list) { const values = numbers(decodeURIComponent(value), list); if (values) found[key] = values; }
      if (key === "mode" && MODES.includes(value)) found.mode = value;
      if (key === "tab" && TABS.includes(value)) found.tab = value;
      if (key === "friction" && /^[01]$/.test(value)) found.friction = value === "1";
    }
    return found;
  }

  function written({ q, conditions, mode, tab }) {
    const { mass, at, size, tilt, heading, friction } = conditions, pairs = [`q=${q.join(",")}`];
    if (mass > 0) pairs.push(`payload=${[mass, ...at].join(",")}`);
    pairs.push(`gravity=${[size, tilt, heading].join(",")}`, `friction=${friction ? 1 : 0}`, `mode=${mode}`, `tab=${tab}`);
    return `#${pairs.join("&")}`;
  }

  const list = (values) => `[${values.map(String).join(", ")}]`;
  // The arm under its conditions as a Python expression.
  function expression(robot, { conditions, gravity }) {
    const changed = gravity.some((g, k) => g !== robot.gravity[k]);
    const frame = robot.payloadFrame ? `, frame=${JSON.stringify(robot.payloadFrame)}` : "";
    return `armdyn.load(${JSON.stringify(robot.load)}${robot.stands ? "" : ", floating=True"})`
      + (conditions.mass > 0 ? `.with_payload(${conditions.mass}, (${conditions.at.join(", ")})${frame})` : "") + (changed ? `.with_gravity((${gravity.join(", ")}))` : "");
  }
  function python(robot, state) {
    return `import numpy as np\nimport armdyn\n\narm = ${expression(robot, state)}\nq = np.array(${list(state.q)})  # rad, m\nprint(arm.gravity_load(q))  # N m, N\n`;
  }
  const quoted = (word) => (/^[\w./,:=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  function command(robot, state) {
    const plain = state.conditions.mass > 0 || state.gravity.some((g, k) => g !== robot.gravity[k]);
    return `${plain ? "# the command knows the arm as its file gives it: payload and changed gravity are left out; see Python\n" : ""}armdyn eval ${quoted(robot.load)} gravity_load --q=${state.q.join(",")}\n`;
  }
  function json(robot, state, torques) {
    const { mass, at, friction } = state.conditions;
    return JSON.stringify({ arm: robot.load, q: state.q, payload: mass > 0 ? { mass, com: at } : null, gravity: state.gravity, friction, mode: state.mode, gravity_load: torques }, null, 2) + "\n";
  }
  function csv(robot, data) {
    const rows = [["t", ...data.q.map((_, k) => `q${k + 1}`), ...data.qd.map((_, k) => `qd${k + 1}`), ...data.tau.map((_, k) => `tau${k + 1}`), "energy"].join(",")];
    data.t.forEach((t, k) => rows.push([t.toFixed(4), ...[...data.q, ...data.qd, ...data.tau, data.total].map((c) => c[k])].join(",")));
    return rows.join("\n") + "\n";
  }

  // The picture with a caption under it, as a PNG.
  function picture(canvas, robot, state, version) {
    const bar = 54, ratio = canvas.width / canvas.clientWidth, out = el("canvas", { width: canvas.width, height: Math.round(canvas.height + bar * ratio) }), g = out.getContext("2d");
    g.fillStyle = Page.color("card"); g.fillRect(0, 0, out.width, out.height); g.drawImage(canvas, 0, 0); g.scale(ratio, ratio);
    const height = canvas.height / ratio, width = out.width / ratio, angle = (x, i) => Page.angle(x, robot.kinds[i]);
    g.fillStyle = Page.color("text"); g.font = "13px system-ui, sans-serif";
    g.fillText(`${robot.name}: q = ${Array.from(state.q).slice(robot.first).map(angle).join(", ")}`, 12, height + 20, width - 24);
    g.fillStyle = Page.color("muted");
    g.fillText(`payload ${state.conditions.mass} kg, gravity ${minus(String(+state.conditions.size.toPrecision(4)))} m/s², armdyn ${version}`, 12, height + 41, width - 24);
    return new Promise((done) => { out.toBlob(done, "image/png"); });
  }

  async function copied(text, button) {
    const before = button.textContent;
    try { await navigator.clipboard.writeText(text); } catch { // without permission: by a selection
      const area = el("textarea", { class: "unseen" }); area.value = text; (document.querySelector("dialog[open]") || document.body).append(area); area.select(); document.execCommand("copy"); area.remove();
    }
    button.textContent = "Copied"; setTimeout(() => { button.textContent = before; }, 1500);
  }

  // `now()` gives { q, conditions, gravity, mode, tab }; `torques()` the gravity load.
  function create({ arm, canvas, viewer, history, now, torques, version }) {
    const { robot } = arm, dialog = $("exported"), text = $("export-text"), link = () => location.href.split("#")[0] + written(now());
    const forms = { python: () => python(robot, now()), command: () => command(robot, now()), json: () => json(robot, now(), torques()), link };
    let form = "python";
    const show = () => { text.value = forms[form](); };
    $("export-forms").append(Panels.choice("form of the export", [["python", "Python"], ["command", "Command"], ["json", "JSON"], ["link", "Link"]], form, (key) => { form = key; show(); }).group);
    $("export").addEventListener("click", () => { show(); dialog.showModal(); });
    $("export-close").addEventListener("click", () => dialog.close());
    $("export-copy").addEventListener("click", () => copied(text.value, $("export-copy")));
    $("copy").addEventListener("click", () => copied(link(), $("copy")));
    $("export-png").addEventListener("click", async () => { viewer.draw(); download(`${robot.file}.png`, await picture(canvas, robot, now(), version)); });
    $("export-csv").addEventListener("click", () => download(`${robot.file}.csv`, new Blob([csv(robot, history.data)], { type: "text/csv" })));
    let timer = 0;
    // The address follows the state, so that a reload shows the same.
    const keep = () => { clearTimeout(timer); timer = setTimeout(() => { try { history_(written(now())); } catch { /* a sandboxed frame has no history */ } }, 250); };
    const history_ = (hash) => { if (hash !== location.hash) window.history.replaceState(null, "", hash); };
    return { keep, link, forms, csv: () => csv(robot, history.data) };
  }

  return { read, written, create, TABS };
})();
