// Operation counts of every formulation as sortable bars, one quantity at a time.
"use strict";
const Costs = (() => {
  const { el } = Page;
  const total = (counts) => counts.reduce((a, b) => a + b, 0);
  const text = ([mul, add, div]) => `${mul}M ${add}A${div ? ` ${div}D` : ""}`;
  const ORDERS = { compiled: (a, b) => total(a.compiled) - total(b.compiled), executed: (a, b) => total(a.published) - total(b.published),
    name: (a, b) => a.method.localeCompare(b.method), error: (a, b) => (a.error ?? 1) - (b.error ?? 1) };

  function create(host, rows, labels) {
    const quantities = [...new Set(rows.map((row) => row.quantity))], now = { quantity: quantities[0], order: "compiled" };
    const list = el("div", { class: "costs" });
    const choice = (key, values, names) => el("div", { class: "choice", role: "group", "aria-label": key }, ...values.map((value) =>
      el("button", { type: "button", "data-value": value, "aria-pressed": String(now[key] === value), onclick: () => { now[key] = value; draw(); } }, names[value] || value)));
    const quantity = choice("quantity", quantities, labels);
    const order = choice("order", Object.keys(ORDERS), { compiled: "by compiled", executed: "by executed", name: "by name", error: "by error" });

    function bar(kind, counts, most) {
      const parts = counts.map((count, k) => { const part = el("i", { class: `op-${k}` }); part.style.width = `${100 * count / most}%`; return part; });
      return el("div", { class: `ops ${kind}` }, ...parts, el("span", {}, `${total(counts)} (${text(counts)})`));
    }
    function draw() {
      for (const [group, key] of [[quantity, "quantity"], [order, "order"]])
        for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.value === now[key]));
      const chosen = rows.filter((row) => row.quantity === now.quantity).sort(ORDERS[now.order]);
      const most = 1.35 * Math.max(...chosen.map((row) => Math.max(total(row.published), total(row.compiled))));
      list.replaceChildren(...chosen.map((row) => el("div", { class: row.best ? "cost best" : "cost" },
        el("b", {}, row.method, row.best ? el("em", {}, "shortest program") : null),
        el("div", {}, bar("executed", row.published, most), bar("compiled", row.compiled, most)),
        el("small", {}, row.error === null ? "" : `error ${row.error.toExponential(0)}`))));
    }
    host.replaceChildren(el("div", { class: "row" }, quantity, order), Chart.legend(["multiplications", "additions", "divisions"],
      ["var(--series-1)", "var(--series-5)", "var(--series-6)"]), list);
    draw();
  }
  return { create };
})();
