// The joint table: one row per joint with slider, number, gravity torque, its difference from the pinned reference, a
// column to choose, the limit and the part of it; grouped by limb where there are many joints.
"use strict";
const Joints = (() => {
  const { el, short, minus, parsed } = Page;
  const SHORT = 16; // characters of a name that is not broken
  const MANY = 10; // joints beyond which they are grouped and can be filtered
  const STEPS = { revolute: [1, 0.1, 10].map((x) => x * Math.PI / 180), prismatic: [1e-3, 1e-4, 1e-2] };
  const typed = (x, kind) => minus(kind === "prismatic" ? x.toFixed(3) : (x * 180 / Math.PI).toFixed(1));
  const spoken = (x, kind) => (kind === "prismatic" ? `${x.toFixed(3)} metres` : `${(x * 180 / Math.PI).toFixed(1)} degrees`);
  const EXTRA = { motor: "motor", bias: "bias", inertia: "H diagonal", speed: "speed" };
  // Decimals of torques, the same in a column: three or four digits of the largest limit, or of the arm's own weight.
  function decimals({ effort, masses, reach, gravity }) {
    const weight = masses.reduce((a, b) => a + b, 0) * reach * Geometry.norm(gravity), most = Math.max(...effort, 0) || weight;
    return most >= 1000 ? 1 : most >= 10 ? 2 : most >= 1 ? 3 : 4;
  }

  // Names without what all of them share at both ends, cut at separators; a word is left, not a number alone.
  function told(names) {
    if (names.length < 2) return names.slice();
    const words = names.map((name) => name.split(/(?<=[_\-. ])/)), rest = () => Math.min(...words.map((w) => w.length));
    let head = "";
    while (rest() > 1 && words.every((w) => w[0] === words[0][0])) { head = words[0][0]; words.forEach((w) => w.shift()); }
    const ends = words.map((w) => w.join("").split(/(?=[_\-. ])/)), left = () => Math.min(...ends.map((w) => w.length));
    while (left() > 1 && ends.every((w) => w[w.length - 1] === ends[0][ends[0].length - 1])) ends.forEach((w) => w.pop());
    const cut = ends.map((w) => w.join("")), out = cut.every((name) => /\p{L}/u.test(name)) ? cut : cut.map((name) => head + name);
    return new Set(out).size === new Set(names).size ? out : names.slice();
  }

  // A name that may break after its separators.
  const broken = (name) => (name.length <= SHORT ? [name] : name.split(/(?<=[_\-.])/)).flatMap((word, k) => (k ? [el("wbr"), word] : [word]));

  // Joints of one branch form a group: it begins at the base and at every fork. Returns lists of joint indices.
  function limbs(robot) {
    if (robot.n <= MANY) return [robot.names.map((_, i) => i)];
    const children = robot.bodies.map(() => 0), groups = [], of = [];
    let roots = 0;
    robot.bodies.forEach(({ parent, joint }) => { if (joint >= 0) { if (parent >= 0) children[parent]++; else roots++; } });
    robot.bodies.forEach(({ parent, joint, multiplier }, k) => {
      const fresh = parent < 0 || of[parent] === undefined || robot.bodies[parent].kind === "free" || children[parent] > 1;
      of[k] = fresh ? groups.push([]) - 1 : of[parent];
      if (joint >= 0 && !groups.some((group) => group.includes(joint))) groups[of[k]].push(joint);
    });
    // A single joint, such as a gripper's, belongs to the branch it stands on or to the one before it.
    const merged = [];
    groups.forEach((group, g) => {
      if (!group.length) return;
      const body = of.indexOf(g), below = body < 0 || robot.bodies[body].parent < 0 ? null : merged.find((one) => one.source.includes(of[robot.bodies[body].parent]));
      if (group.length < 2 && below) { below.joints.push(...group); below.source.push(g); } else merged.push({ joints: group, source: [g] });
    });
    return merged.map(({ joints }) => joints.sort((a, b) => a - b));
  }

  // What the names of a group share; otherwise the one or two names without their numbers, or the first and the last.
  function title(names) {
    if (names.length === 1) return names[0];
    let k = 0;
    while (names.every((name) => k < name.length && name[k] === names[0][k])) k++;
    const start = names[0].slice(0, k).replace(/[_\-. \d]+$/, ""), heads = [...new Set(names.map((name) => name.replace(/[_\-. ]?\d+$/, "")))];
    return start.length > 1 ? start : heads.length < 3 ? heads.join(", ") : `${names[0]} … ${names[names.length - 1]}`;
  }

  // `changed(i, value)` takes a position, `light(i)` a joint under the pointer or null, `column(key)` the chosen column.
  function create(host, robot, { changed, light, column }) {
    const names = told(robot.names), rows = [], mixed = robot.kinds.includes("prismatic"), revolute = robot.kinds.includes("revolute");
    const unit = mixed ? (revolute ? "N m, N" : "N") : "N m", position = mixed ? (revolute ? "°, m" : "m") : "°";
    const digits = decimals(robot), fixed = (x) => (Number.isFinite(x) ? minus(x.toFixed(digits)) : "–");
    const limited = robot.effort.some((x) => x > 0);
    const extra = el("select", { "aria-label": "column to show", onchange: () => column(extra.value) },
      ...Object.entries(EXTRA).map(([key, text]) => el("option", { value: key }, text)));
    const head = (text, small, attributes = {}) => el("th", { scope: "col", ...attributes }, text, small ? el("small", {}, ` ${small}`) : null);
    const table = el("table", { class: "joints" }, el("caption", { class: "unseen" }, "joints: position, gravity torque and limit"),
      el("thead", {}, el("tr", {}, head("joint"), el("td", { class: "way" }), head("q", position), head("gravity", unit),
        head("Δ", "pinned", { class: "delta" }), el("th", { scope: "col", class: "extra" }, extra), head("limit", "", { class: "most" }), head("%", "", { title: "gravity torque as a part of the limit" }))));

    function row(i) {
      const kind = robot.kinds[i], step = STEPS[kind], low = robot.lower[i], high = robot.upper[i];
      const slider = el("input", { type: "range", min: low, max: high, step: "any", id: `q${i + 1}`, "aria-label": `${robot.names[i]}, ${kind} joint` });
      const field = el("input", { type: "text", class: "number", id: `n${i + 1}`, "aria-label": `${robot.names[i]} in ${kind === "prismatic" ? "metres" : "degrees"}`, autocomplete: "off", spellcheck: "false" });
      const take = (value) => changed(i, Math.max(low, Math.min(high, value)));
      slider.addEventListener("input", () => take(+slider.value));
      const cells = Object.fromEntries(["gravity", "delta", "extra", "most", "part"].map((key) => [key, el("td", { class: key })]));
      const keys = (event) => {
        const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -1, PageUp: 1 }[event.key];
        const inField = event.target === field;
        if (event.key === "Enter" && inField) { enter(); field.select(); return; }
        if (event.key === "Escape" && inField) { field.value = typed(shown.q, kind); field.setAttribute("aria-invalid", "false"); return; }
        if (!slider.matches(":focus") && !inField) return;
        if (!inField && (event.key === "Home" || event.key === "End")) { event.preventDefault(); take(event.key === "Home" ? low : high); return; }
        if (!way || (inField && /Left|Right/.test(event.key))) return;
        event.preventDefault();
        take(shown.q + way * (event.key.startsWith("Page") ? step[2] : event.shiftKey ? step[1] : step[0]));
        if (inField) { field.value = typed(shown.q, kind); field.select(); }
      };
      const shown = { q: NaN, text: {} };
      function enter() {
        const value = parsed(field.value, kind);
        field.setAttribute("aria-invalid", String(value === null));
        if (value !== null) { take(value); field.value = typed(shown.q, kind); }
      }
      const nudge = (way) => el("button", { type: "button", class: "nudge", tabindex: "-1", "aria-hidden": "true", onclick: () => take(shown.q + way * step[0]) }, way < 0 ? "−" : "+");
      field.addEventListener("change", enter); field.addEventListener("focus", () => field.select());
      const known = robot.effort[robot.effort.length - robot.n + i];
      cells.most.textContent = known > 0 ? short(known) : "–";
      const line = el("tr", { "data-joint": i, onpointerenter: () => light(i), onpointerleave: () => light(null), onkeydown: keys, onfocusin: () => light(i), onfocusout: () => light(null) },
        el("th", { scope: "row", title: robot.names[i], class: names[i].length <= SHORT && "short" }, ...broken(names[i])), el("td", { class: "way" }, el("div", {}, nudge(-1), slider, nudge(1))),
        el("td", {}, field), cells.gravity, cells.delta, cells.extra, cells.most, cells.part);
      const say = (key, text) => { if (shown.text[key] !== text) { shown.text[key] = text; cells[key].textContent = text; } };
      rows[i] = {
        line,
        show(q, gravity, reference, more) {
          if (shown.q !== q) {
            shown.q = q;
            if (!slider.matches(":active")) slider.value = q;
            slider.setAttribute("aria-valuetext", spoken(q, kind));
            if (document.activeElement !== field) field.value = typed(q, kind);
          }
          say("gravity", fixed(gravity)); say("delta", reference === null ? "" : (+(gravity - reference).toFixed(digits) > 0 ? "+" : "") + fixed(gravity - reference)); say("extra", more);
          const part = known > 0 ? 100 * Math.abs(gravity) / known : null;
          say("part", part === null ? "" : `${part.toFixed(0)}`); line.classList.toggle("beyond", part > 100);
          return part;
        },
      };
      return line;
    }

    const groups = limbs(robot).map((joints, g, all) => {
      const body = el("tbody");
      if (all.length < 2) { body.append(...joints.map(row)); table.append(body); return { joints, open: true }; }
      const summary = el("span", { class: "sum" }), group = { joints, open: false, body, summary };
      const button = el("button", { type: "button", "aria-expanded": "false", onclick: () => toggle(group, !group.open) }, title(joints.map((i) => names[i])));
      body.append(el("tr", { class: "group" }, el("th", { scope: "rowgroup", colspan: "8" }, button, " ", summary)), ...joints.map(row));
      Object.assign(group, { button }); table.append(body);
      return group;
    });
    function toggle(group, open) {
      if (!group.body) return;
      group.open = open; group.button.setAttribute("aria-expanded", String(open));
      for (const i of group.joints) rows[i].line.hidden = !open;
    }
    groups.forEach((group) => toggle(group, false));

    // The filter shows the joints whose names contain the text, whatever their group.
    const filter = el("input", { type: "search", placeholder: "filter joints", "aria-label": "filter joints by name", oninput: () => {
      const text = filter.value.trim().toLowerCase();
      for (const group of groups) {
        let any = false;
        for (const i of group.joints) { const hit = text && robot.names[i].toLowerCase().includes(text); rows[i].line.hidden = text ? !hit : !group.open; any = any || hit; }
        if (group.body) group.body.firstChild.hidden = Boolean(text) && !any;
      }
    } });
    host.append(...(groups.length > 1 ? [el("div", { class: "filter" }, filter)] : []), el("div", { class: "scroll" }, table));
    table.classList.toggle("unlimited", !limited);

    // q, gravity and the pinned gravity of all joints; `more(i)` is the text of the chosen column.
    function show(q, gravity, reference, more) {
      const parts = rows.map((one, i) => one.show(q[i], gravity[i], reference ? reference[i] : null, more(i)));
      for (const { summary, joints } of groups) {
        if (!summary) continue;
        const most = Math.max(...joints.map((i) => parts[i] ?? 0)), text = `${joints.length} joint${joints.length > 1 ? "s" : ""}${most > 0 ? `, at most ${most.toFixed(0)} %` : ""}`;
        if (summary.textContent !== text) summary.textContent = text;
      }
    }
    return { show, rows, names, groups, fixed, extra, mark(i) { rows.forEach(({ line }, k) => line.classList.toggle("lit", k === i)); },
      pinned(on) { table.classList.toggle("pinned", on); }, open: (all) => groups.forEach((group) => toggle(group, all)) };
  }

  return { create, told, limbs, decimals };
})();
