// The page: state from the controls, five pictures from the state.
(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const WINDOW = 7, HALF = 4.5, STEP = 0.5 * Math.log(2), SIDE = 41;
  const at = (id) => document.getElementById(id);
  const number = (id) => Number(at(id).value);
  const RAD = Math.PI / 180;
  let coefficients, shifts, chosen = 0;

  function draws(seed) { // a small generator of our own: the same page for everyone
    let state = seed;
    const next = () => ((state = (1103515245 * state + 12345) % 2147483648) / 1073741824 - 1);
    coefficients = Array.from({ length: 9 }, next);
    shifts = Array.from({ length: 9 }, () => [0.9 * next(), 0.9 * next()]);
  }

  function state() {
    const group = document.querySelector("input[name=group]:checked").value;
    const kind = at("kind").value;
    const spacing = number("spacing");
    const apart = { localised: 1, scaled: 2, atrous: 2, deformable: 1.5 }[kind] * spacing;
    const moved = kind === "deformable" ? shifts : shifts.map(() => [0, 0]);
    const centres = moved.map(([a, b], i) => [apart * (Math.floor(i / 3) - 1) + a, apart * ((i % 3) - 1) + b]);
    const kernel = { centres, coefficients, scale: kind === "scaled" ? 2 * spacing : spacing, degree: number("degree") };
    const h = { so2: number("angle") * RAD, scale: Math.exp(STEP * number("zoom")),
      sphere: Spline.fromAngles(number("beta") * RAD, number("gamma") * RAD) }[group];
    const image = group === "scale" ? Math.exp(STEP * number("scaled")) : number("rotated") * RAD;
    return { group, kind, kernel, h, image };
  }

  // A face of soft lines, known at every point; transformed by reading it at h⁻¹.
  function face([y, x]) {
    const ring = Math.exp(-((Math.hypot(x / 0.85, y) - 9) ** 2) / 1.6);
    const eyes = Math.exp(-((Math.abs(x) - 3.2) ** 2) / 2.4 - (y + 3) ** 2 / 1.2);
    const nose = Math.exp(-(x * x) / 0.9 - (y - 0.6) ** 2 / 4);
    const mouth = Math.exp(-((Math.hypot(x, y + 1) - 6) ** 2) / 1.2) / (1 + Math.exp(-3 * (y - 3)));
    return Math.min(1, ring + eyes + nose + mouth);
  }
  const picture = ({ group, image }) => (p) => face(Spline.back[group](image, p));

  // Functions on the sphere: a few blobs off the axis, rotated about it.
  const BLOBS = [[0.9, 0.3, 0.35, 1], [1.4, 1.5, 0.3, -0.8], [0.6, -1.7, 0.4, 0.7], [1.9, -0.6, 0.35, 0.9], [1.2, 2.9, 0.3, 0.8]];
  function texture(n, turn) {
    return BLOBS.reduce((sum, [beta, gamma, width, height]) => {
      const c = Spline.fromAngles(beta, gamma + turn);
      return sum + height * Math.exp((c[0] * n[0] + c[1] * n[1] + c[2] * n[2] - 1) / (width * width));
    }, 0);
  }
  const BALL = 0.28; // one unit of the plane's spacing on the sphere
  const onSphere = (kernel, h, n) => {
    const [a, b] = Spline.sphereLog(Spline.pull(h, n));
    return Spline.onPlane(kernel, [a / BALL, b / BALL]);
  };

  function centresOnScreen({ group, h, kernel }, size) {
    if (group === "sphere") {
      return kernel.centres.map(([a, b]) => {
        const [u, v] = [a * BALL, b * BALL];
        const angle = Math.hypot(u, v);
        const sinc = angle < 1e-9 ? 1 : Math.sin(angle) / angle;
        const local = [sinc * v, -sinc * u, Math.cos(angle)]; // Exp
        const [right, up, near] = Draw.toScreen(push(h, local));
        return [((right + 1.04) / 2.08) * size, ((1.04 - up) / 2.08) * size, near > 0];
      });
    }
    return kernel.centres.map((c) => {
      const [r, q] = group === "so2" ? Spline.back.so2(-h, c) : [c[0] * h, c[1] * h];
      return [((q + HALF) / (2 * HALF)) * size, ((r + HALF) / (2 * HALF)) * size, true];
    });
  }
  function push(n, x) { // R_{0,β,γ} x
    const radius = Math.hypot(n[0], n[1]);
    const [cos, sin] = radius < 1e-12 ? [1, 0] : [n[0] / radius, n[1] / radius];
    const along = n[2] * x[0] + radius * x[2];
    return [cos * along - sin * x[1], sin * along + cos * x[1], n[2] * x[2] - radius * x[0]];
  }

  function drawKernel(s) {
    const pen = Draw.fit(at("kernel")), p = Draw.palette(), size = pen.canvas.width;
    if (s.group === "sphere") Draw.ball(pen, 170, (n) => onSphere(s.kernel, s.h, n) / 0.6, p.solid);
    else Draw.raster(pen, 120, (r, c) => {
      const y = [((r + 0.5) / 120) * 2 * HALF - HALF, ((c + 0.5) / 120) * 2 * HALF - HALF];
      return Spline.onPlane(s.kernel, Spline.back[s.group](s.h, y)) / 0.6;
    }, p.signed);
    centresOnScreen(s, size).forEach(([x, y, near], i) => {
      if (near) Draw.dot(pen, x, y, size / (i === chosen ? 55 : 90), i === chosen ? p.ink : p.centre);
      if (near && i === chosen) Draw.dot(pen, x, y, size / 90, p.centre);
    });
  }

  function drawSampled(s) {
    const pen = Draw.fit(at("sampled")), p = Draw.palette(), size = pen.canvas.width;
    if (s.group === "sphere") {
      at("sampled-caption").innerHTML = "<b>Splines on S².</b> Their sum, near one where centres lie evenly.";
      const { points, spacing } = DATA.grids[at("many").value];
      Draw.ball(pen, 90, (n) => (points.reduce((sum, c) =>
        c[0] * n[0] + c[1] * n[1] + c[2] * n[2] < Math.cos(Math.min(Math.PI, 1.45 * spacing * (s.kernel.degree + 1) / 2))
          ? sum : sum + Spline.onGroup.sphere(n, c, spacing, s.kernel.degree), 0) - 1) / 0.3, p.solid);
      for (const c of points) {
        const [right, up, near] = Draw.toScreen(c);
        if (near > 0) Draw.dot(pen, ((right + 1.04) / 2.08) * size, ((1.04 - up) / 2.08) * size, size / 130, p.centre);
      }
      return;
    }
    const rows = Spline.sampled(s.group, s.kernel, s.h, WINDOW), n = rows.length;
    at("sampled-caption").innerHTML = `<b>Sampled window, ${n}×${n}.</b> What the layer correlates with the image.`;
    const top = 0.6 / Spline.det[s.group](s.h);
    Draw.raster(pen, n, (r, c) => rows[r][c] / top, p.signed);
    if (n > 15) return;
    pen.font = `${size / n / 3.6}px system-ui, sans-serif`;
    [pen.textAlign, pen.textBaseline, pen.fillStyle] = ["center", "middle", p.ink];
    rows.forEach((row, r) => row.forEach((v, c) => pen.fillText((v.toFixed(2) === "-0.00" ? 0 : v).toFixed(2), ((c + 0.5) / n) * size, ((r + 0.5) / n) * size)));
  }

  function drawImage(s) {
    const pen = Draw.fit(at("image")), p = Draw.palette();
    if (s.group === "sphere") {
      at("image-caption").innerHTML = "<b>A function on S²,</b> rotated about the vertical axis.";
      Draw.ball(pen, 120, (n) => texture(n, s.image), p.solid);
      return;
    }
    at("image-caption").innerHTML = "<b>Image and its features at h:</b> the face in blue, its response in red.";
    const f = picture(s), rows = Spline.sampled(s.group, s.kernel, s.h, WINDOW), half = (rows.length - 1) / 2;
    const pad = SIDE + 2 * half, image = [];
    for (let r = 0; r < pad; r++) {
      image.push(Array.from({ length: pad }, (_, c) => f([r - (pad - 1) / 2, c - (pad - 1) / 2])));
    }
    const out = Array.from({ length: SIDE }, (_, r) => Array.from({ length: SIDE }, (_, c) => {
      let total = 0;
      for (let i = 0; i < rows.length; i++) for (let j = 0; j < rows.length; j++) total += rows[i][j] * image[r + i][c + j];
      return Math.max(0, total);
    }));
    const top = Math.max(1e-9, ...out.flat());
    const [paper, blue, red] = [p.signed(0), p.signed(-1), p.signed(1)];
    Draw.raster(pen, SIDE, (r, c) => [image[r + half][c + half], out[r][c] / top], ([line, found]) =>
      paper.map((v, i) => v + 0.75 * line * (blue[i] - v)).map((v, i) => v + found ** 1.5 * (red[i] - v)));
  }

  function drawPartition(s) {
    const pen = Draw.fit(at("partition")), p = Draw.palette(), degree = s.kernel.degree;
    const lines = [], total = [];
    if (s.group === "sphere") {
      const { points, spacing } = DATA.grids[at("many").value], beta = number("beta") * RAD;
      for (let g = -180; g <= 180; g += 3) {
        const n = Spline.fromAngles(beta, g * RAD);
        total.push([g, points.reduce((sum, c) => sum + Spline.onGroup.sphere(n, c, spacing, degree), 0)]);
      }
      Draw.chart(pen, [{ points: total, style: p.ink, weight: 2 }], { x: [-180, 180], y: [0, 1.5], mark: number("gamma"),
        ticks: [[-180, "−180°"], [-90, "−90°"], [0, "γ = 0°"], [90, "90°"], [180, "180°"]] });
      return;
    }
    const count = number("count"), so2 = s.group === "so2";
    const range = so2 ? [-180, 180] : [-2, 6];
    const place = so2 ? (t) => t * RAD : (t) => Math.exp(STEP * t);
    const width = so2 ? (2 * Math.PI) / count : STEP;
    const values = [];
    for (let i = 0; i <= 240; i++) values.push(range[0] + ((range[1] - range[0]) * i) / 240);
    for (let k = 0; k < count; k++) {
      const centre = so2 ? Spline.wrap((2 * Math.PI * k) / count) : Math.exp(STEP * k);
      lines.push({ style: p.low, points: values.map((t) => [t, Spline.onGroup[s.group](place(t), centre, width, degree)]) });
    }
    lines.push({ style: p.ink, weight: 2.2, points: values.map((t, i) => [t, lines.reduce((sum, l) => sum + l.points[i][1], 0)]) });
    const ticks = so2 ? [[-180, "−180°"], [-90, "−90°"], [0, "0°"], [90, "90°"], [180, "180°"]]
      : [[-2, "½"], [0, "1"], [2, "2"], [4, "4"], [6, "8"]];
    Draw.chart(pen, lines, { x: range, y: [0, 1.1], mark: so2 ? number("angle") : number("zoom"), ticks });
  }

  // out(0, h) for all h: Σ_y k(h⁻¹y) f(y) / |det h|
  function response(s) {
    const points = [];
    if (s.group === "sphere") {
      const { points: nodes, weights } = DATA.quadrature, beta = number("beta") * RAD;
      const f = nodes.map((n, i) => weights[i] * texture(n, s.image));
      for (let g = -180; g <= 180; g += 6) {
        const h = Spline.fromAngles(beta, g * RAD);
        points.push([g, nodes.reduce((sum, n, i) => sum + f[i] * onSphere(s.kernel, h, n), 0)]);
      }
      return points;
    }
    const f = picture(s), range = s.group === "so2" ? [-180, 180, 5] : [-1, 4, 0.125];
    for (let t = range[0]; t <= range[1] + 1e-9; t += range[2]) {
      const h = s.group === "so2" ? t * RAD : Math.exp(STEP * t);
      const rows = Spline.sampled(s.group, s.kernel, h, 2 * WINDOW - 1), half = (rows.length - 1) / 2;
      let total = 0;
      rows.forEach((row, r) => row.forEach((k, c) => { total += k * f([r - half, c - half]); }));
      points.push([t, total]);
    }
    return points;
  }

  function drawResponse(s) {
    const pen = Draw.fit(at("response")), p = Draw.palette(), points = response(s);
    const top = Math.max(1e-9, ...points.map(([, v]) => Math.abs(v))) * 1.05;
    const plane = s.group === "scale";
    Draw.chart(pen, [{ points, style: p.high, weight: 2 }], {
      x: plane ? [-1, 4] : [-180, 180], y: [-top, top],
      mark: plane ? number("zoom") : number(s.group === "so2" ? "angle" : "gamma"),
      ticks: plane ? [[-1, "0.71"], [0, "1"], [2, "2"], [4, "4"]] : [[-180, "−180°"], [-90, "−90°"], [0, "0°"], [90, "90°"], [180, "180°"]],
    });
  }

  function label() {
    const group = state().group;
    for (const row of document.querySelectorAll("[data-for]")) row.hidden = !row.dataset.for.split(" ").includes(group);
    const degrees = ["angle", "beta", "gamma", "rotated"], zooms = ["zoom", "scaled"];
    for (const slider of document.querySelectorAll("input[type=range]")) {
      const v = Number(slider.value);
      const text = degrees.includes(slider.id) ? `${v}°` : zooms.includes(slider.id) ? `×${Math.exp(STEP * v).toFixed(2)}` : `${v}`;
      slider.nextElementSibling.textContent = text;
      slider.setAttribute("aria-valuetext", text);
    }
  }

  function draw() {
    label();
    const s = state();
    [drawKernel, drawSampled, drawImage, drawPartition, drawResponse].forEach((one) => one(s));
  }
  let waiting = false;
  function redraw() { // once a frame, however many events there are
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  // A centre moves by what the pointer moved, brought back by h⁻¹.
  function shift(i, down, right) {
    const s = state();
    if (s.kind !== "deformable") { // from now on centres are free, beginning where they are
      at("kind").value = "deformable";
      const apart = 1.5 * number("spacing");
      shifts = s.kernel.centres.map(([a, b], k) => [a - apart * (Math.floor(k / 3) - 1), b - apart * ((k % 3) - 1)]);
    }
    // At the point h of the sphere, down is the direction of β and left that of the first tangent axis.
    const [a, b] = s.group === "sphere" ? [-right / BALL, down / BALL] : Spline.back[s.group](s.h, [down, right]);
    shifts[i] = [shifts[i][0] + a, shifts[i][1] + b];
    redraw();
  }
  let held = null;
  const canvas = at("kernel");
  canvas.addEventListener("pointerdown", (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const distances = centresOnScreen(state(), box.width).map(([a, b, near]) => (near ? Math.hypot(a - x, b - y) : Infinity));
    const best = distances.indexOf(Math.min(...distances));
    if (distances[best] > 30) return;
    [chosen, held] = [best, [x, y]];
    canvas.setPointerCapture(event.pointerId);
    redraw();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const unit = state().group === "sphere" ? 2.08 / box.width : (2 * HALF) / box.width;
    shift(chosen, (y - held[1]) * unit, (x - held[0]) * unit);
    held = [x, y];
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { held = null; });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-0.15, 0], ArrowDown: [0.15, 0], ArrowLeft: [0, -0.15], ArrowRight: [0, 0.15] }[event.key];
    if (event.key === "n") chosen = (chosen + 1) % 9;
    else if (step) shift(chosen, ...step.map((v) => (state().group === "sphere" ? BALL * v : v)));
    else return;
    event.preventDefault();
    redraw();
  });

  let seed = 7;
  at("reset").addEventListener("click", () => { draws(++seed * 7919); redraw(); });
  at("controls").addEventListener("input", redraw);
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  draws(seed * 7919);
  // Links to a state: explore.html#group=sphere&beta=70
  for (const [id, value] of new URLSearchParams(location.hash.slice(1))) {
    const radio = document.querySelector(`input[name=group][value="${CSS.escape(value)}"]`);
    if (id === "group" && radio) radio.checked = true;
    else if (at(id)) at(id).value = value;
  }
  window.explore = { state, response, draw, places: () => centresOnScreen(state(), 1) };
  redraw();
})();
