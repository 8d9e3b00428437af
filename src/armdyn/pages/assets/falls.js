// A thousand arms that fall, each with link masses of its own: by the reader's graphics processor where the browser has
// WebGPU, otherwise as WebAssembly. The first arm has the masses of the page; the others are seen as a cloud of tools.
"use strict";
const Falls = (() => {
  const { el } = Page;
  const COUNT = 1000, STEP = 1e-3, MOST = 50; // steps in one frame
  const BUDGET = 14; // milliseconds of a frame for WebAssembly

  // Normally distributed numbers, the same in every run.
  function normal(seed = 1) {
    let state = seed;
    const uniform = () => { // mulberry32
      state = (state + 0x6d2b79f5) | 0;
      let x = Math.imul(state ^ (state >>> 15), 1 | state);
      x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
      return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
    };
    return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  // Factors of the links' masses, (COUNT, links) of mean 1; the first arm's are 1, none is below a tenth.
  function factors(links, spread) {
    const draw = normal();
    return Array.from({ length: COUNT }, (_, arm) => Array.from({ length: links }, () => Math.max(0.1, 1 + (arm ? spread * draw() : 0))));
  }

  // What each arm's step takes: friction's factor, gravity, and parameters, which are linear in the masses.
  function inputs(arm, shares, spread, friction) {
    const { parameters, gravity } = arm.arrays, size = 4 + parameters.length, out = new Float64Array(COUNT * size);
    factors(shares.length, spread).forEach((scales, k) => {
      const own = out.subarray(k * size, (k + 1) * size);
      own.set([friction ? 1 : 0, ...gravity, ...parameters]);
      scales.forEach((scale, link) => shares[link].forEach((share, i) => { own[4 + i] += (scale - 1) * share; }));
    });
    return { u: out, size };
  }

  // Steps in WebAssembly: as many as asked for, or as fit into a frame.
  async function inWasm(data, nq, nv) {
    const { instance } = await WebAssembly.instantiate(await Page.unpacked(data.module), {});
    const { memory, heap, falls, tools } = instance.exports;
    let views = null, at = null, size = 0, now = 0;
    return {
      name: "WebAssembly",
      async begin(q, qd, u, width) {
        size = width; now = 0;
        const lengths = [nq, nv, nq, nv, size, 3].map((one) => one * COUNT).concat(1);
        let end = heap.value;
        at = lengths.map((length) => { const here = end; end += 8 * length; return here; });
        if (end > memory.buffer.byteLength) memory.grow(Math.ceil((end - memory.buffer.byteLength) / 65536));
        views = lengths.map((length, k) => new Float64Array(memory.buffer, at[k], length));
        for (let k = 0; k < COUNT; k++) { views[0].set(q, k * nq); views[1].set(qd, k * nv); }
        views[4].set(u); views[6][0] = STEP;
      },
      async advance(most, budget = BUDGET) {
        const until = performance.now() + budget;
        let steps = 0;
        do {
          const [from, to] = now ? [2, 0] : [0, 2];
          for (let k = 0; k < COUNT; k++) falls(at[from] + 8 * k * nq, at[from + 1] + 8 * k * nv, at[4] + 8 * k * size, at[6], at[to] + 8 * k * nq, at[to + 1] + 8 * k * nv);
          now = 1 - now; steps++;
        } while (steps < most && performance.now() < until);
        const q = views[2 * now];
        for (let k = 0; k < COUNT; k++) tools(at[2 * now] + 8 * k * nq, at[5] + 24 * k);
        return { steps, q: q.subarray(0, nq), points: views[5] };
      },
    };
  }

  // The same on a graphics processor, in single precision; null where the browser shows none.
  async function onDevice(data, nq, nv) {
    const adapter = data.shaders && navigator.gpu ? await navigator.gpu.requestAdapter() : null;
    if (!adapter) return null;
    const device = await adapter.requestDevice(), { buffers, ...texts } = JSON.parse(new TextDecoder().decode(await Page.unpacked(data.shaders)));
    const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
    let made = [];
    const empty = (bytes, usage = STORAGE | COPY_DST | COPY_SRC) => { const buffer = device.createBuffer({ size: bytes, usage }); made.push(buffer); return buffer; };
    const holding = (values) => { const buffer = empty(values.byteLength); device.queue.writeBuffer(buffer, 0, values); return buffer; };
    // A shader over all arms, whose buffers behind the first, `call`, are read or written; see codegen/gpu/wgsl.py.
    async function shader(text, writes) {
      const layout = device.createBindGroupLayout({ entries: [false, ...writes].map((written, binding) => (
        { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: written ? "storage" : "read-only-storage" } })) });
      const pipeline = await device.createComputePipelineAsync({ layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: { module: device.createShaderModule({ code: text }), entryPoint: "main" } });
      return { layout, pipeline };
    }
    // The shader with its buffers: [buffer, numbers per arm] each.
    function bound({ layout, pipeline }, ports) {
      const call = holding(new Uint32Array([COUNT, 64 * Math.ceil(COUNT / 64), 0, 1, COUNT, ...ports.flatMap(([, each]) => [0, each])]));
      const group = device.createBindGroup({ layout, entries: [call, ...ports.map(([buffer]) => buffer)].map((buffer, binding) => ({ binding, resource: { buffer } })) });
      return (pass) => { pass.setPipeline(pipeline); pass.setBindGroup(0, group); pass.dispatchWorkgroups(Math.ceil(COUNT / 64)); };
    }
    const step = await shader(texts.falls, buffers.map((name) => name.startsWith("out_"))), tool = await shader(texts.tools, [false, true]);
    const { info } = adapter, title = [info?.vendor, info?.architecture, info?.description].filter(Boolean).join(" ");
    const soft = info?.isFallbackAdapter || adapter.isFallbackAdapter || /swiftshader|llvmpipe/i.test(title);
    let clock = null, runs = null, tools = null, states = null, points = null, read = null, now = 0;
    return {
      name: `WebGPU${title ? ` (${title}${soft ? ", emulated on the CPU" : ""})` : ""}`, device,
      async begin(q, qd, u, size) {
        now = 0; made.forEach((buffer) => buffer.destroy()); made = [];
        const rows = (values) => holding(Float32Array.from({ length: COUNT * values.length }, (_, k) => values[k % values.length]));
        states = [[rows(q), rows(qd)], [empty(4 * COUNT * nq), empty(4 * COUNT * nv)]];
        clock = holding(new Float32Array([1, 1, STEP, 0])); points = empty(12 * COUNT); read = empty(12 * COUNT + 4 * nq, COPY_DST | MAP_READ);
        const given = holding(Float32Array.from(u));
        const ports = (from, to) => ({ in_q: [states[from][0], nq], in_qd: [states[from][1], nv], in_u: [given, size], in_clock: [clock, 0], out_q: [states[to][0], nq], out_qd: [states[to][1], nv] });
        runs = [[0, 1], [1, 0]].map((way) => { const at = ports(...way); return bound(step, buffers.map((name) => at[name])); });
        tools = [1, 0].map((to) => bound(tool, [[states[to][0], nq], [points, 3]]));
      },
      async advance(steps) {
        device.queue.writeBuffer(clock, 0, new Float32Array([steps, steps, STEP, 0]));
        const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
        runs[now](pass); tools[now](pass); pass.end(); now = 1 - now;
        encoder.copyBufferToBuffer(points, 0, read, 0, 12 * COUNT); encoder.copyBufferToBuffer(states[now][0], 0, read, 12 * COUNT, 4 * nq);
        device.queue.submit([encoder.finish()]);
        await read.mapAsync(GPUMapMode.READ);
        const values = new Float32Array(read.getMappedRange().slice(0));
        read.unmap();
        return { steps, q: values.subarray(3 * COUNT), points: values.subarray(0, 3 * COUNT) };
      },
    };
  }

  // The distance from the first arm's tool within which 95 % of the tools are.
  function within(points) {
    const far = [];
    for (let k = 3; k < points.length; k += 3) far.push(Math.hypot(points[k] - points[0], points[k + 1] - points[1], points[k + 2] - points[2]));
    return far.sort((a, b) => a - b)[Math.ceil(0.95 * far.length) - 1];
  }

  // The controls. `state()` is { q, friction } to start from; `show(q, points)` draws the first arm and the cloud.
  async function create(host, arm, data, { state, show, started }) {
    const { robot, arrays } = arm, shares = JSON.parse(new TextDecoder().decode(await Page.unpacked(data.shares))), nq = arrays.q.length;
    const runner = (await onDevice(data, nq, robot.nv).catch(() => null)) ?? (await inWasm(data, nq, robot.nv));
    const spread = el("select", { id: "spread", "aria-label": "standard deviation of the links' masses" }, ...[2, 5, 10, 20].map((x) => el("option", { value: x / 100, selected: x === 10 }, `± ${x} %`)));
    const button = el("button", { type: "button", id: "falls", "aria-pressed": "false", title: "From this posture, with friction that is smooth at standstill; compared with the arm of the page", onclick: () => (on ? stop() : start()) }, "A thousand arms fall"), told = el("span", { id: "falls-told" });
    host.append(button, el("label", { class: "field" }, "link masses", spread), told);
    told.textContent = `from this posture, computed by ${runner.name}`;
    let on = false, t = 0;
    const stop = () => { on = false; button.setAttribute("aria-pressed", "false"); button.textContent = "A thousand arms fall"; };
    async function start() {
      started(); on = true; t = 0; button.setAttribute("aria-pressed", "true"); button.textContent = "Stop them";
      const { q, friction } = state(), { u, size } = inputs(arm, shares, +spread.value, friction);
      await runner.begin(q, new Array(robot.nv).fill(0), u, size);
      let before = null, left = 0;
      const ticks = [];
      async function frame(now) {
        if (!on) return;
        if (before !== null) left = Math.min(left + Math.max(0, now - before) / 1000, MOST * STEP);
        before = now;
        const steps = Math.floor(left / STEP + 1e-9);
        if (steps) {
          const got = await runner.advance(steps);
          if (!on) return;
          left -= got.steps * STEP; t += got.steps * STEP;
          ticks.push([now, t]); while (ticks.length > 2 && now - ticks[0][0] > 1500) ticks.shift();
          const wall = (now - ticks[0][0]) / 1000, rate = wall > 0.3 ? `, ${((t - ticks[0][1]) / wall).toFixed(2)}× real time` : "";
          told.textContent = `${t.toFixed(2)} s${rate}: 95 % of the tools within ${within(got.points).toFixed(3)} m of the nominal arm's; ${runner.name}`;
          show(got.q, got.points);
        }
        requestAnimationFrame(frame);
      }
      requestAnimationFrame(frame);
    }
    return { runner, stop, inputs: (spread, friction) => inputs(arm, shares, spread, friction), factors: (spread) => factors(shares.length, spread), within, onDevice: () => onDevice(data, nq, robot.nv), inWasm: () => inWasm(data, nq, robot.nv), running: () => on, t: () => t };
  }

  return { create, COUNT };
})();
