// Which inertial parameters determine the motion: a grid of links by their ten parameters. A cell gives its combinations.
"use strict";
const Parameters = (() => {
  const { el, short, minus } = Page;
  const WORDS = ["no effect on the motion", "alone", "only in combination"];

  // `found` has names, values, expressions and links of the minimal parameters, kinds (per link, ten of 0, 1, 2), rows (per cell).
  const NATURAL = ["m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"]; // in the library's order
  function create(host, told, rows, found, light) {
    const bodies = found.kinds.map((_, k) => `link ${k + 1}`);
    const cells = [], table = el("table", { class: "grid", "aria-label": "inertial parameters: links by their ten parameters" });
    table.append(el("tr", {}, el("th", { scope: "col" }, "link"), ...NATURAL.map((name) => el("th", { scope: "col" }, name))));
    found.kinds.forEach((kinds, link) => {
      const row = el("tr", {}, el("th", { scope: "row", title: bodies[link] }, bodies[link]));
      kinds.forEach((kind, k) => {
        const cell = el("td", {}, el("button", { type: "button", class: `kind-${kind}`, tabindex: link || k ? "-1" : "0", "aria-label": `${NATURAL[k]} of ${bodies[link]}: ${WORDS[kind]}` }, ["·", "●", "◐"][kind]));
        const button = cell.firstChild, on = () => tell(link, k), off = () => light(null);
        button.addEventListener("pointerenter", on); button.addEventListener("focus", on); button.addEventListener("pointerleave", off); button.addEventListener("blur", off);
        button.addEventListener("keydown", (event) => {
          const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10 }[event.key], next = step && cells[link * 10 + k + step];
          if (next) { event.preventDefault(); button.tabIndex = -1; next.tabIndex = 0; next.focus(); }
        });
        cells.push(button); row.append(cell);
      });
      table.append(row);
    });
    function tell(link, k) {
      const parts = found.rows[10 * link + k], name = `${NATURAL[k]} of ${bodies[link]}`;
      light(parts.length ? [...new Set(parts.flatMap((r) => found.links[r]))] : [link]);
      told.replaceChildren(el("b", {}, name), ` ${parts.length ? WORDS[found.kinds[link][k]] : `has ${WORDS[0]}: no measurement of it can determine this number`}`,
        ...parts.slice(0, 4).map((r) => el("span", { class: "formula" }, found.names[r], " = ", ...formula(found.expressions[r]), ` = ${minus(short(found.values[r], 5))}`)),
        ...(parts.length > 4 ? [el("span", {}, `and ${parts.length - 4} more`)] : []));
    }
    host.append(el("div", { class: "scroll" }, table));
    const head = ["parameter", "value [SI]", "links"].map((text) => el("th", { scope: "col" }, text));
    rows.append(el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "minimal parameters" }, el("table", {}, el("thead", {}, el("tr", {}, ...head, el("th", { scope: "col", class: "text" }, "in terms of the natural parameters"))),
      el("tbody", {}, ...found.names.map((name, r) => {
        const links = found.links[r], words = `link${links.length > 1 ? "s" : ""} ${links.map((k) => k + 1).join(", ")}`;
        return el("tr", { onpointerenter: () => light(links), onpointerleave: () => light(null) }, el("td", {}, name), el("td", {}, minus(`${+found.values[r].toPrecision(6)}`)),
          el("td", {}, el("span", { class: "squares", role: "img", "aria-label": words, title: words }, ...bodies.map((_, k) => el("i", { class: links.includes(k) && "on" })))), el("td", { class: "formula" }, ...formula(found.expressions[r])));
      })))));
  }

  // The indices of a formula as subscripts.
  function formula(text) {
    return text.split(/([A-Za-zα-ωκ][₀-₉]+[xyz]*)/).map((word) => {
      const index = /^(.)([₀-₉]+)([xyz]*)$/.exec(word);
      return index ? el("span", {}, el("i", {}, index[1]), el("sub", {}, index[2].replace(/[₀-₉]/g, (c) => String(c.charCodeAt(0) - 0x2080)) + index[3])) : word;
    });
  }
  return { create };
})();
