// The library's formulas, once more: liespline.bspline, SplineBasis, SO2, Scale, Sphere and Lift.kernel.
// tests/house/test_explore.py runs this file in a browser and compares every function with the library.
const Spline = (() => {
  const TURN = 2 * Math.PI;

  // Bⁿ by the recursion of de Boor: n Bⁿ(x) = (x + (n+1)/2) Bⁿ⁻¹(x + ½) + ((n+1)/2 − x) Bⁿ⁻¹(x − ½)
  function bspline(x, n) {
    const half = (n + 1) / 2;
    if (x < -half || x >= half) return 0;
    const values = [];
    for (let k = 0; k <= n; k++) {
      const y = x + n / 2 - k;
      values.push(y >= -0.5 && y < 0.5 ? 1 : 0);
    }
    for (let m = 1; m <= n; m++) {
      const reach = (m + 1) / 2;
      for (let k = 0; k + m <= n; k++) {
        const y = x + (n - m) / 2 - k;
        values[k] = ((y + reach) * values[k] + (reach - y) * values[k + 1]) / m;
      }
    }
    return values[0];
  }

  const wrap = (a) => a - TURN * Math.floor((a + Math.PI) / TURN);

  // One spline on H at h, seen from its centre; on SO(2) it is periodic.
  const onGroup = {
    so2(h, centre, scale, degree) {
      const offset = wrap(h - centre);
      const turns = Math.ceil(Math.max(((degree + 1) / 2 * scale) / TURN - 0.5, 0));
      let total = 0;
      for (let t = -turns; t <= turns; t++) total += bspline((offset + TURN * t) / scale, degree);
      return total;
    },
    scale: (h, centre, scale, degree) => bspline(Math.log(h / centre) / scale, degree),
    sphere(h, centre, scale, degree) {
      const [a, b] = sphereLog(pull(centre, h));
      return bspline(a / scale, degree) * bspline(b / scale, degree);
    },
  };

  // R_{0,β,γ}⁻¹ x for the point n(β, γ): its rows are the columns of the rotation that carries z to n.
  function pull(n, x) {
    const radius = Math.hypot(n[0], n[1]);
    const [cos, sin] = radius < 1e-12 ? [1, 0] : [n[0] / radius, n[1] / radius];
    const along = cos * x[0] + sin * x[1];
    return [n[2] * along - radius * x[2], cos * x[1] - sin * x[0], radius * along + n[2] * x[2]];
  }

  function sphereLog(n) {
    const radius = Math.hypot(n[0], n[1]);
    const beta = Math.atan2(radius, n[2]);
    if (radius < 1e-12) return n[2] > 0 ? [0, 0] : [0, beta];
    return [-beta / radius * n[1], beta / radius * n[0]];
  }

  const fromAngles = (beta, gamma) =>
    [Math.sin(beta) * Math.cos(gamma), Math.sin(beta) * Math.sin(gamma), Math.cos(beta)];

  // h⁻¹ ⊙ y on the plane: coordinate 0 down the rows, a positive angle counter-clockwise on screen.
  const back = {
    so2: (h, [r, c]) => [Math.cos(h) * r + Math.sin(h) * c, Math.cos(h) * c - Math.sin(h) * r],
    scale: (h, [r, c]) => [r / h, c / h],
  };
  const det = { so2: () => 1, scale: (h) => h * h };

  // Side of the window of h: the one of e, moved by h, and whole samples.
  const windowOf = (group, h, k) => {
    if (group === "so2" || k === 1) return k;
    return 2 * Math.max(Math.ceil((h * (k + 1)) / 2 - 1e-6 - 1), 0) + 1;
  };

  const onPlane = (kernel, [r, c]) => kernel.centres.reduce((total, [row, column], i) => total + kernel.coefficients[i]
    * bspline((r - row) / kernel.scale, kernel.degree) * bspline((c - column) / kernel.scale, kernel.degree), 0);

  // k(h⁻¹y)/|det h| on the window of h: what Lift.kernel() returns.
  function sampled(group, kernel, h, k) {
    const size = windowOf(group, h, k);
    const rows = [];
    for (let r = 0; r < size; r++) {
      const row = [];
      for (let c = 0; c < size; c++) {
        const y = [r - (size - 1) / 2, c - (size - 1) / 2];
        row.push(onPlane(kernel, back[group](h, y)) / det[group](h));
      }
      rows.push(row);
    }
    return rows;
  }

  return { bspline, wrap, onGroup, pull, sphereLog, fromAngles, back, det, windowOf, onPlane, sampled };
})();
