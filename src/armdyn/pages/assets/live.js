// The arm's programs as a WebAssembly module, their arrays in its memory, and the simulation built on them.
"use strict";
const Live = (() => {
  const STEP = 1e-3; // step of the integrator, seconds
  const EVERY = 10; // steps from one recorded sample to the next
  const BANDWIDTH = 9; // of the PD controller, rad/s; critically damped for each joint's own inertia

  // The functions of the module and one array per port; functions share the arrays of ports with the same name.
  async function load(robot) {
    const { instance } = await WebAssembly.instantiate(await Page.unpacked(robot.module), {});
    const { memory, heap } = instance.exports, at = {}, sizes = {};
    let end = heap.value;
    for (const ports of Object.values(robot.functions)) {
      for (const [name, count] of [...ports.inputs, ...ports.outputs]) {
        if (name in at) continue;
        at[name] = end; sizes[name] = count; end += 8 * count;
      }
    }
    const missing = end - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / 65536));
    const arrays = {};
    for (const name of Object.keys(at)) arrays[name] = new Float64Array(memory.buffer, at[name], sizes[name]);
    const addresses = (ports) => ports.map(([name]) => at[name]);
    const call = (name) => {
      const { inputs, outputs } = robot.functions[name], where = addresses([...inputs, ...outputs]);
      return () => instance.exports[name](...where);
    };
    const arm = { arrays, n: robot.n, robot, state: call("state"), dynamics: call("dynamics") }, parameters = call("payload_parameters");
    // Attaches a point mass to the tool: computes the parameters of the loaded arm, which the other programs take.
    arm.hold = (mass, com) => { arrays.mass[0] = mass; arrays.com.set(com); parameters(); };
    arrays.q.set(robot.home);
    arrays.gravity.set(robot.gravity);
    arm.hold(0, [0, 0, 0]);
    arm.state();
    return arm;
  }

  // The simulation: state, controller and time. `mode` is "free", "hold" (gravity compensation) or "pd"; `pull` are the
  // pointer's forces along the coordinates.
  function physics(arm) {
    const { robot, arrays } = arm, { n, nv, first } = robot, base = nv - n; // a floating base adds six velocities
    const world = { t: 0, mode: "free", playing: false, speed: 1, friction: robot.frictional, target: Array.from(robot.home), left: 0,
      cost: 0, start: Array.from(robot.home), message: "", pull: new Float64Array(nv), inertia: [] };

    function motors(out, q, qd, g) {
      for (let k = 0; k < nv; k++) {
        const i = k - base;
        out[k] = i < 0 || world.mode === "free" ? 0 : g[k];
        if (i >= 0 && world.mode === "pd") out[k] += world.inertia[i] * (BANDWIDTH ** 2 * (world.target[first + i] - q[first + i]) - 2 * BANDWIDTH * qd[k]);
      }
    }
    const dynamics = Dynamics.create(arm, (out, q, qd, g) => { motors(out, q, qd, g); for (let k = 0; k < nv; k++) out[k] += world.pull[k]; });
    world.stops = (on) => { dynamics.settings.stops = on; };

    function torques() { const out = new Float64Array(nv); motors(out, arrays.q, arrays.qd, arrays.g); return out; }

    // Advances in whole steps to keep up with the clock, by at most 200 ms per frame, or 50 ms where steps are slow.
    // `each` is called after every `EVERY` steps, for what is recorded.
    function run(seconds, each) {
      world.left = Math.min(world.left + seconds * world.speed, world.cost > 30 ? 0.05 : 0.2);
      const count = Math.floor(world.left / STEP + 1e-9);
      world.left -= count * STEP;
      const before = performance.now();
      for (let left = count; left > 0 && world.playing; left -= EVERY) { steps(Math.min(left, EVERY)); each(); }
      world.cost = count ? performance.now() - before : world.cost;
    }

    function steps(count) {
      dynamics.settings.friction = world.friction;
      dynamics.advance(STEP, count);
      world.t += count * STEP;
      arm.state();
      if (!arrays.q.every(Number.isFinite)) { world.playing = false; reset(); world.message = "the motion diverged; reset"; }
    }

    // Sets the controller, with gains for the inertia matrix of the current posture.
    function control(mode) {
      world.mode = mode;
      world.inertia = Array.from({ length: n }, (_, i) => arrays.H[(base + i) * (nv + 1)]);
    }

    function place(q) {
      arrays.q.set(q); arrays.qd.fill(0); world.pull.fill(0);
      arm.state(); control(world.mode);
    }

    function reset() { world.t = 0; world.left = 0; world.message = ""; world.target = world.start.slice(); place(world.start); }

    control(world.mode);
    return Object.assign(world, { run, steps, place, reset, torques, control, energy: () => arrays.T[0] + arrays.V[0] });
  }

  // What a run on the page is in Python, and where it differs.
  function sameAs(robot) {
    const differs = [["motors without torque limits", true], ["no ground under the floating base", !robot.stands], ["no load-dependent friction", robot.loadFriction]];
    return `as armdyn.simulate(arm, q, limits="stop"), but ${differs.filter(([, here]) => here).map(([text]) => text).join(", ")}`;
  }

  return { load, physics, sameAs, STEP };
})();
