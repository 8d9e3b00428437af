// Puts the page's data on the screen: sliders, charts, the heat map.
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);

function sliders(host, arm, onChange) {
  arm.joints.forEach((joint, i) => {
    const row = document.createElement("label"), input = document.createElement("input"), value = document.createElement("output");
    row.className = "slider";
    const name = document.createElement("span");
    name.textContent = joint.name;
    Object.assign(input, { type: "range", min: joint.lower, max: joint.upper, step: "any", value: arm.home[i], id: `q${i + 1}` });
    const show = () => {
      value.textContent = joint.kind === "revolute" ? `${(input.value * 180 / Math.PI).toFixed(1)}°` : `${(+input.value).toFixed(3)} m`;
    };
    input.addEventListener("input", () => { show(); onChange(i, +input.value); });
    show();
    row.append(name, input, value);
    host.append(row);
  });
}

function theme() {
  const style = getComputedStyle(document.documentElement), get = (name) => style.getPropertyValue(name).trim();
  return { text: get("--text"), grid: get("--grid"), muted: get("--muted") };
}

function chart(id, figure) {
  const host = document.getElementById(id), colors = theme();
  const axis = { gridcolor: colors.grid, zerolinecolor: colors.grid, linecolor: colors.grid, automargin: true };
  const layout = Object.assign({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colors.text, family: "inherit", size: 13 },
    margin: { l: 60, r: 16, t: 36, b: 48 }, legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, hovermode: "x unified", height: 400,
    colorway: ["#3b76d1", "#e07b39", "#3d9a6b", "#c4475a", "#7f63c4", "#b08a2e", "#4aa3b5", "#8a5a44"],
  }, figure.layout);
  for (const key of Object.keys(layout)) if (/^[xy]axis\d*$/.test(key)) layout[key] = Object.assign({}, axis, layout[key]);
  layout.hoverlabel = { bgcolor: getComputedStyle(document.body).backgroundColor, font: { color: colors.text } };
  Plotly.newPlot(host, figure.data, layout, { responsive: true, displaylogo: false, displayModeBar: false });
}

function heatmap(id, map) {
  const slider = document.getElementById("inertia-map-time"), label = document.getElementById("inertia-map-label");
  const names = map.names, limit = Math.max(...map.frames.flat(2).map(Math.abs));
  const squash = (x) => Math.sign(x) * Math.log10(1 + Math.abs(x) / map.floor);
  const top = squash(limit);
  const draw = () => {
    const k = +slider.value, H = map.frames[k];
    label.textContent = `t = ${map.t[k].toFixed(2)} s`;
    chart(id, {
      data: [{
        type: "heatmap", z: H.map((row) => row.map(squash)), x: names, y: names, zmin: -top, zmax: top, showscale: false, xgap: 2, ygap: 2,
        colorscale: [[0, "#b5453a"], [0.5, "#f3f1ec"], [1, "#2f63b3"]],
        text: H.map((row) => row.map((x) => x.toPrecision(3))), texttemplate: "%{text}", textfont: { color: "#222" }, hoverinfo: "x+y+text",
      }],
      layout: { yaxis: { autorange: "reversed", scaleanchor: "x", constrain: "domain" }, xaxis: { side: "top", constrain: "domain" },
        margin: { l: 70, r: 10, t: 40, b: 10 }, hovermode: "closest", height: 90 + 52 * names.length },
    });
  };
  slider.max = map.frames.length - 1;
  slider.addEventListener("input", draw);
  draw();
  return draw;
}

function start() {
  const view = ArmView.create(document.getElementById("arm-view"), DATA.arm);
  sliders(document.getElementById("sliders"), DATA.arm, (i, value) => { view.view.q[i] = value; view.draw(); });
  const charts = () => {
    for (const [id, figure] of Object.entries(DATA.figures)) chart(id, figure);
  };
  charts();
  const redraw = heatmap("chart-inertia-map", DATA.map);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { charts(); redraw(); });
  document.body.dataset.ready = "yes";
}
start();
