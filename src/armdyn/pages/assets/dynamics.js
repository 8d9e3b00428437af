// Forward dynamics of one state with joints that stick by dry friction or stand at their stops, by the same rules as
// armdyn.simulate (simulation/step.py): within a step with constant modes the Runge-Kutta
// method of its coefficients (programs/stepping.py); a step is cut where a sliding joint comes to rest or one meets its stop, which is inelastic.
"use strict";
const Dynamics = (() => {
  const PIVOTS = 60, BLOCK = 3, PARTS = 8, PASSES = 4, SEARCH = 20, TINY = 1e-12;

  // `motors(left to fill, q, qd, g)` writes the motors' forces and whatever else acts along the coordinates.
  function create(arm, motors) {
    const { robot, arrays } = arm, { n, nv, first } = robot, nq = first + n, base = nv - n, size = nq + nv;
    const vector = (count = nv) => new Float64Array(count);
    const y = vector(size), y1 = vector(size), stage = vector(size), slopes = robot.method.b.map(() => vector(size));
    const free = vector(), side = vector(), pinned = vector(), left = vector(), x = vector(), right = vector(), force = vector();
    const A = vector(nv * nv), inverse = vector(), unlocked = vector().fill(1), idle = vector();
    const dry = [...Array(base).fill(0), ...robot.breakaway], lower = vector().fill(-Infinity), upper = vector().fill(Infinity);
    robot.stops.forEach(([low, high], i) => { lower[base + i] = low ?? -Infinity; upper[base + i] = high ?? Infinity; });
    const settings = { friction: true, stops: true };
    // How close to an event a part ends (rad or m, and per second); coarser where one step has many, for the page's sake.
    const FINE = 1e-11, COARSE = 1e-6, FINE_PARTS = 3;
    const position = (i) => first + i - base, velocity = (i) => nq + i;
    const breakaway = (i) => (settings.friction ? dry[i] : 0);
    const atLower = (i, state = y) => i >= base && settings.stops && state[position(i)] <= lower[i];
    const atUpper = (i, state = y) => i >= base && settings.stops && state[position(i)] >= upper[i];
    const held = (i) => y[velocity(i)] === 0 && (breakaway(i) > 0 || atLower(i) || atUpper(i));

    // H, b, g and f of a state, in `arrays`. A joint that is about to slide has its breakaway friction already.
    function evaluate(state) {
      arrays.q.set(state.subarray(0, nq)); arrays.qd.set(state.subarray(nq));
      for (let i = 0; i < nv; i++) {
        const v = state[nq + i];
        arrays.slide[i] = breakaway(i) > 0 && side[i] !== 0 && !(v * side[i] > 0) ? side[i] * TINY : v;
      }
      arm.dynamics();
    }

    // Reverse Gaussian elimination of H; the reciprocal of a locked joint's pivot is 0, as if its inertia were infinite.
    function eliminate(may) {
      A.set(arrays.H);
      for (let k = nv - 1; k >= 0; k--) {
        inverse[k] = may[k] ? 1 / A[k * nv + k] : 0;
        if (inverse[k] === 0) continue;
        for (let i = 0; i < k; i++) {
          const c = A[i * nv + k] * inverse[k];
          if (c === 0) continue;
          for (let j = i; j < k; j++) A[i * nv + j] -= c * A[j * nv + k];
        }
      }
    }

    // x with H x = r where joints are free; `left` is the force that holds a locked joint or drives a free one.
    function substitute(r) {
      for (let k = nv - 1; k >= 0; k--) {
        const scaled = r[k] * inverse[k];
        if (scaled !== 0) for (let i = 0; i < k; i++) r[i] -= A[i * nv + k] * scaled;
      }
      for (let k = 0; k < nv; k++) {
        let rest = r[k];
        for (let i = 0; i < k; i++) rest -= A[i * nv + k] * x[i];
        left[k] = rest; x[k] = rest * inverse[k];
      }
    }

    function slope(state, out) {
      evaluate(state); motors(force, arrays.q, arrays.qd, arrays.g);
      for (let i = 0; i < nv; i++) right[i] = force[i] - arrays.b[i] - (settings.friction ? arrays.f[i] : 0);
      eliminate(free); substitute(right);
      if (base) poseRate(state, out);
      for (let i = base; i < nv; i++) out[position(i)] = state[velocity(i)];
      out.set(x, nq);
    }

    // The rates of a floating base's position and quaternion from its velocity in its own axes.
    function poseRate(state, out) {
      const [a, b, c, w] = state.subarray(3, 7), u = state.subarray(nq, nq + 3), [p, q, r] = state.subarray(nq + 3, nq + 6).map((s) => s / 2);
      const cross = [b * u[2] - c * u[1], c * u[0] - a * u[2], a * u[1] - b * u[0]];
      out[0] = u[0] + 2 * (w * cross[0] + b * cross[2] - c * cross[1]);
      out[1] = u[1] + 2 * (w * cross[1] + c * cross[0] - a * cross[2]);
      out[2] = u[2] + 2 * (w * cross[2] + a * cross[1] - b * cross[0]);
      out[3] = w * p - c * q + b * r; out[4] = c * p + w * q - a * r; out[5] = a * q - b * p + w * r; out[6] = -(a * p + b * q + c * r);
    }

    // y1 after the time h with the modes in force; the first slope is known.
    function trial(h) {
      for (let i = 1; i < slopes.length; i++) { combine(stage, h, robot.method.a[i]); slope(stage, slopes[i]); }
      combine(y1, h, robot.method.b);
    }

    // y + h Σ weight · slope, in the order of `combined` in programs/stepping.py.
    function combine(to, h, weights) {
      for (let j = 0; j < size; j++) {
        let total = 0;
        for (let i = 0; i < weights.length; i++) if (weights[i] !== 0) total += weights[i] * slopes[i][j];
        to[j] = y[j] + h * total;
      }
    }

    // Which joints stick and which begin to slide, all together: principal pivoting, block pivots first.
    function settle() {
      for (let pivot = 0; pivot < PIVOTS; pivot++) {
        slope(y, slopes[0]);
        let changed = false;
        for (let i = base; i < nv; i++) {
          if (pinned[i] || !held(i)) continue;
          const most = breakaway(i), breaks = !free[i] && ((left[i] > most && !atUpper(i)) || (left[i] < -most && !atLower(i)));
          const returns = free[i] && left[i] * side[i] < 0;
          if (!breaks && !returns) continue;
          changed = true;
          side[i] = breaks ? Math.sign(left[i]) : 0; free[i] = breaks ? 1 : 0;
          if (pivot >= BLOCK) break;
        }
        if (!changed) return;
      }
    }

    // A joint that moves into its stop loses its velocity; the impulse changes the velocities of the whole arm.
    const into = (i) => (atLower(i) && y[velocity(i)] < 0) || (atUpper(i) && y[velocity(i)] > 0);
    function strike(i) {
      idle.fill(0); idle[i] = 1; substitute(idle);
      const impulse = -y[velocity(i)] / x[i];
      for (let j = 0; j < nv; j++) y[velocity(j)] += x[j] * impulse;
      y[velocity(i)] = 0;
    }
    function impacts(rest = []) {
      let any = rest.length > 0;
      for (let i = base; i < nv && !any; i++) any = into(i);
      if (!any) return;
      evaluate(y); eliminate(unlocked);
      rest.forEach(strike);
      for (let pass = 0; pass < PASSES; pass++) for (let i = base; i < nv; i++) if (into(i)) strike(i);
      for (let i = base; i < nv; i++) if (into(i) || rest.includes(i)) y[velocity(i)] = 0; // what remains is small
    }

    // The smallest of what must stay positive: sliding velocities in their direction, distances to the stops.
    function gap(state) {
      let least = Infinity;
      for (let i = base; i < nv; i++) {
        if (breakaway(i) > 0 && y[velocity(i)] !== 0) least = Math.min(least, state[velocity(i)] * side[i]);
        if (!settings.stops) continue;
        if (!atLower(i)) least = Math.min(least, state[position(i)] - lower[i]);
        if (!atUpper(i)) least = Math.min(least, upper[i] - state[position(i)]);
      }
      return least;
    }

    // Joints at rest that would slide against their own friction, or leave through their stop: they stay for this step.
    function returning() {
      const found = [];
      for (let i = base; i < nv; i++) {
        if (!free[i]) continue;
        const back = y[velocity(i)] === 0 && breakaway(i) > 0 && y1[velocity(i)] * side[i] < 0;
        const through = settings.stops && ((atLower(i) && y1[position(i)] < lower[i]) || (atUpper(i) && y1[position(i)] > upper[i]));
        if (back || through) found.push(i);
      }
      return found;
    }

    // The length of the part up to the first event, by regula falsi (Illinois); y1 is the state there.
    function firstEvent(h, exact) {
      trial(h);
      let near = 0, above = gap(y), far = h, below = gap(y1), beyond = below, last = 0;
      if (beyond >= 0) return { length: h, hit: false };
      for (let k = 0; k < SEARCH && beyond < -exact && far - near > 1e-7 * h; k++) {
        const guess = k % 3 === 2 ? (near + far) / 2 : (above * far - below * near) / (above - below);
        const length = Math.min(Math.max(guess, near + 1e-4 * (far - near)), far - 1e-4 * (far - near));
        trial(length);
        const now = gap(y1);
        if (now < exact) { far = length; below = beyond = now; if (last < 0) above /= 2; last = -1; } else { near = length; above = now; if (last > 0) below /= 2; last = 1; }
      }
      trial(far);
      return { length: far, hit: true };
    }

    function accept({ hit }, last, exact) {
      const level = hit ? exact : last ? 0 : -Infinity;
      for (let i = base; i < nv; i++) {
        const p = position(i), v = velocity(i), stops = !free[i] || (hit && breakaway(i) > 0 && y[v] !== 0 && y1[v] * side[i] <= level);
        if (stops) y1[v] = 0;
        if (!settings.stops) continue;
        if (y1[p] - lower[i] <= (atLower(i) ? 0 : level)) y1[p] = lower[i];
        if (upper[i] - y1[p] <= (atUpper(i) ? 0 : level)) y1[p] = upper[i];
      }
      y.set(y1);
      if (base) { const length = Math.hypot(...y.subarray(3, 7)); for (let k = 3; k < 7; k++) y[k] /= length; }
    }

    function step(h) {
      pinned.fill(0);
      for (let rest = h, part = 1; rest > 0 && part <= PARTS; part++) {
        const exact = part > FINE_PARTS ? COARSE : FINE;
        impacts();
        for (let i = 0; i < nv; i++) { side[i] = Math.sign(y[velocity(i)]); free[i] = held(i) ? 0 : 1; }
        settle();
        const event = part < PARTS ? firstEvent(rest, exact) : (trial(rest), { length: rest, hit: false });
        const stay = event.length === rest || event.hit ? returning().filter((i) => !pinned[i]) : [];
        if (stay.length) { stay.forEach((i) => { pinned[i] = 1; }); impacts(stay); continue; }
        accept(event, part === PARTS, exact); rest -= event.length;
      }
    }

    // Advances the state in `arrays` by `count` steps.
    function advance(h, count) {
      y.set(arrays.q); y.set(arrays.qd, nq);
      for (let i = base; i < nv && settings.stops; i++) y[position(i)] = Math.max(lower[i], Math.min(upper[i], y[position(i)]));
      for (let k = 0; k < count; k++) step(h);
      arrays.q.set(y.subarray(0, nq)); arrays.qd.set(y.subarray(nq));
    }
    return { advance, settings };
  }

  return { create };
})();
