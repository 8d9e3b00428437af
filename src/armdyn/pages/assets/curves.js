// Charts of a page without an arm: fills every canvas with `data-chart` with curves or dots; pointing shows the values.
"use strict";
const Curves = (() => {
  const { el, short, minus, color, series, fit } = Page;

  // One chart of curves over time, with a line under the pointer and the values there.
  function lines(canvas, chart) {
    const told = el("p", { class: "muted small told" }), list = chart.curves.map((curve, k) => ({ ...curve, color: null, k }));
    const all = chart.x ?? list[0].x;
    let cursor = null, at = null;
    const shade = (k) => (chart.curves[k].strong ? color("text") : series(k));
    const draw = () => { at = Chart.curves(canvas, { x: chart.x ?? list[0].x, y: chart.y, unit: chart.unit ?? "s", cursor, curves: list.map((c) => ({ ...c, color: shade(c.k), wide: 1.4 })) }).at; };
    const place = (x) => {
      cursor = x;
      told.textContent = `${x.toFixed(3)} ${chart.unit ?? "s"}: ${chart.curves.map((c) => `${c.name} ${minus(short(c.y[Chart.before(c.x ?? chart.x, x)]))}`).join(", ")}`;
      draw();
    };
    canvas.addEventListener("pointermove", (event) => place(Math.max(all[0], Math.min(all.at(-1), at(event.offsetX)))));
    canvas.addEventListener("pointerleave", () => { cursor = null; told.textContent = ""; draw(); });
    const legend = Chart.legend(chart.curves.map((c) => c.name), chart.curves.map((c, k) => (c.strong ? "var(--text)" : `var(--series-${k + 1})`)));
    canvas.after(legend, told);
    return draw;
  }

  // One interval per name, with a dot at its value, and crosses, boxes and limits where the chart has them.
  function intervals(canvas, chart) {
    const low = chart.low ?? chart.values.map((v, k) => v - chart.deviations[k]), high = chart.high ?? chart.values.map((v, k) => v + chart.deviations[k]);
    return () => {
      const { ratio, width, height } = fit(canvas), g = canvas.getContext("2d");
      g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, width, height); g.font = "12px system-ui, sans-serif";
      const left = 54, top = 26, n = chart.names.length, w = width - left - 8, upright = w / n < 120, h = height - top - (upright ? 88 : 24), far = (chart.limits ?? []).flatMap((v) => (v === null ? [] : [v, -v]));
      const ends = [...low, ...high, ...(chart.prior ?? [])].filter(Number.isFinite), most = Math.max(...ends.map(Math.abs));
      ends.push(...far.filter((v) => Math.abs(v) < 2.5 * most)); // a far limit would flatten the rest
      const least = Math.min(0, ...ends), largest = Math.max(0, ...ends), y = (v) => top + h * (largest - v) / (largest - least || 1), x = (k) => left + w * (k + 0.5) / n;
      const line = (x0, y0, x1, y1) => { g.beginPath(); g.moveTo(x0, y0); g.lineTo(x1, y1); g.stroke(); };
      g.fillStyle = color("muted"); g.strokeStyle = color("grid"); g.textAlign = "right"; g.textBaseline = "middle";
      const lines = Chart.ticks(least, largest, 5);
      for (const v of lines) { line(left, y(v), left + w, y(v)); g.fillText(Chart.scaled(v, lines), left - 6, y(v)); }
      g.textAlign = "left"; g.fillText(chart.y, 4, 8);
      chart.names.forEach((name, k) => {
        if (!upright) { g.fillStyle = color("muted"); g.textAlign = "center"; g.fillText(name, x(k), top + h + 12, w / n - 4); } else if (x(1) - x(0) > 11 || k % Math.ceil(11 / (x(1) - x(0))) === 0) {
          g.save(); g.translate(x(k), top + h + 10); g.rotate(-Math.PI / 2); g.fillStyle = color("muted"); g.textAlign = "right"; g.fillText(name, 0, 0, 78); g.restore();
        }
        g.strokeStyle = g.fillStyle = series(0); g.lineWidth = 1.6;
        line(x(k), y(low[k]), x(k), y(high[k]));
        if (chart.box) g.strokeRect(x(k) - 5, y(chart.box[1][k]), 10, y(chart.box[0][k]) - y(chart.box[1][k]));
        g.beginPath(); g.arc(x(k), y(chart.values[k]), 3, 0, 2 * Math.PI); g.fill();
        g.strokeStyle = series(1);
        if (chart.prior) for (const s of [-1, 1]) line(x(k) - 4, y(chart.prior[k]) - 4 * s, x(k) + 4, y(chart.prior[k]) + 4 * s);
        g.strokeStyle = color("warn");
        const limit = chart.limits?.[k] ?? NaN;
        for (const v of [limit, -limit]) if (v >= least && v <= largest) line(x(k) - 9, y(v), x(k) + 9, y(v));
      });
    };
  }

  function start(charts) {
    for (const canvas of document.querySelectorAll("canvas[data-chart]")) {
      const chart = charts[canvas.dataset.chart], draw = chart.curves ? lines(canvas, chart) : intervals(canvas, chart);
      if (!chart.curves) canvas.after(Chart.legend(chart.legend ?? ["identified, ± 2 σ", "prior"], ["var(--series-1)", "var(--series-2)", "var(--warn)"]));
      Page.onTheme(draw); new ResizeObserver(draw).observe(canvas); draw();
    }
  }
  return { start };
})();
