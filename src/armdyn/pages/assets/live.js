// The arm's programs as a WebAssembly module, their arrays in its memory, and the simulation built on them.
"use strict";
const Live = (() => {
  const STEP = 1e-3; // step of the Runge-Kutta integrator, seconds
  const BANDWIDTH = 9; // of the PD controller, rad/s; critically damped for each joint's own inertia

  function decoded(text) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
    return bytes;
  }

  // The functions of the module and one array per port; functions share the arrays of ports with the same name.
  async function load(robot) {
    const { instance } = await WebAssembly.instantiate(decoded(robot.module), {});
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
    const arm = { arrays, n: robot.n, robot, state: call("state") }, parameters = call("payload_parameters");
    // Attaches a point mass to the tool: computes the parameters of the loaded arm, which the other programs take.
    arm.hold = (mass, com) => { arrays.mass[0] = mass; arrays.com.set(com); parameters(); };
    const inputs = addresses(robot.functions.acceleration.inputs);
    arm.advance = (step, count) => instance.exports.advance(...inputs, step, count);
    arrays.q.set(robot.home);
    arrays.gravity.set(robot.gravity);
    arm.hold(0, [0, 0, 0]);
    arm.state();
    return arm;
  }

  // The simulation: state, controller and time. `mode` is "free", "hold" (gravity compensation) or "pd".
  function physics(arm) {
    const { robot, arrays } = arm, { n, nv, first } = robot, base = nv - n; // a floating base adds six velocities
    const world = { t: 0, mode: "hold", playing: false, speed: 1, friction: false, target: robot.home.slice(), left: 0,
      cost: 0, start: robot.home.slice(), message: "" };

    function controller() {
      const pd = world.mode === "pd";
      arrays.hold[0] = world.mode === "free" ? 0 : 1;
      for (let i = 0; i < n; i++) {
        arrays.kp[i] = pd ? BANDWIDTH ** 2 * world.inertia[i] : 0;
        arrays.kd[i] = pd ? 2 * BANDWIDTH * world.inertia[i] : 0;
        arrays.target[i] = world.target[first + i];
        arrays.viscous[i] = world.friction ? robot.viscous[i] : 0;
      }
    }

    function torques() {
      return Array.from(arrays.g, (g, k) => {
        const i = k - base;
        if (i < 0) return arrays.tau[k];
        return arrays.hold[0] * g + arrays.tau[k] + arrays.kp[i] * (arrays.target[i] - arrays.q[first + i]) - arrays.kd[i] * arrays.qd[k];
      });
    }

    // Advances in whole steps to keep up with the clock, by at most 50 ms per frame.
    function run(seconds) {
      world.left = Math.min(world.left + seconds * world.speed, 0.05);
      const count = Math.floor(world.left / STEP);
      world.left -= count * STEP;
      steps(count);
    }

    function steps(count) {
      const before = performance.now();
      controller();
      arm.advance(STEP, count);
      world.cost = performance.now() - before;
      world.t += count * STEP;
      arm.state();
      if (!arrays.q.every(Number.isFinite)) { world.playing = false; reset(); world.message = "the motion diverged; reset"; }
    }

    // Sets the controller, with gains for the inertia matrix of the current posture.
    function control(mode) {
      world.mode = mode;
      world.inertia = Array.from({ length: n }, (_, i) => arrays.H[(base + i) * (nv + 1)]);
      controller();
    }

    function place(q) {
      arrays.q.set(q); arrays.qd.fill(0); arrays.tau.fill(0);
      arm.state(); control(world.mode);
    }

    function reset() { world.t = 0; world.left = 0; world.message = ""; world.target = world.start.slice(); place(world.start); }

    control(world.mode);
    return Object.assign(world, { run, steps, place, reset, torques, control, controller, energy: () => arrays.T[0] + arrays.V[0] });
  }

  return { load, physics, STEP };
})();
