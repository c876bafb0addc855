// Pictures on canvases: signed values, a ball, lines.
const Draw = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const rgb = (text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));

  function fit(canvas) {
    const ratio = window.devicePixelRatio || 1;
    const size = Math.max(80, Math.round(canvas.clientWidth * ratio));
    const tall = Math.round(size * (Number(canvas.dataset.aspect) || 1));
    if (canvas.width !== size || canvas.height !== tall) [canvas.width, canvas.height] = [size, tall];
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, size, tall);
    return pen;
  }

  // Blue below zero, the paper at zero, red above.
  function signed(low, zero, high) {
    return (v) => {
      const t = Math.max(-1, Math.min(1, v));
      const end = t < 0 ? low : high;
      return zero.map((z, i) => z + (end[i] - z) * Math.abs(t));
    };
  }

  const palette = () => ({
    signed: signed(rgb(colour("--low")), rgb(colour("--paper")), rgb(colour("--high"))),
    solid: signed(rgb(colour("--low")), rgb(colour("--solid")), rgb(colour("--high"))),
    ink: colour("--ink"), muted: colour("--muted"), faint: colour("--faint"),
    low: colour("--low"), high: colour("--high"), centre: colour("--centre"), paper: colour("--paper"),
  });

  function raster(pen, n, value, shade) {
    const picture = new ImageData(n, n);
    for (let r = 0; r < n; r++) for (let c = 0; c < n; c++) {
      const [red, green, blue, alpha = 255] = shade(value(r, c), r, c);
      picture.data.set([red, green, blue, alpha], 4 * (r * n + c));
    }
    const small = document.createElement("canvas");
    small.width = small.height = n;
    small.getContext("2d").putImageData(picture, 0, 0);
    pen.imageSmoothingEnabled = n > 60;
    pen.drawImage(small, 0, 0, pen.canvas.width, pen.canvas.height);
  }

  function dot(pen, x, y, radius, style, full = true) {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    [pen.fillStyle, pen.strokeStyle, pen.lineWidth] = [style, style, pen.canvas.width / 220];
    if (full) pen.fill(); else pen.stroke();
  }

  // Lines of points ([x, y], …) over common axes; `mark` is an upright line at one x.
  function chart(pen, lines, { x, y, mark, ticks, thick = 1 }) {
    const { width, height } = pen.canvas;
    const p = palette();
    const unit = width / 480;
    const [left, bottom] = [44 * unit, height - 22 * unit];
    const across = (v) => left + ((v - x[0]) / (x[1] - x[0])) * (width - left - 22 * unit);
    const up = (v) => bottom - ((v - y[0]) / (y[1] - y[0])) * (bottom - 8 * unit);
    pen.font = `${11 * unit}px system-ui, sans-serif`;
    pen.fillStyle = p.muted;
    pen.lineWidth = unit;
    pen.textAlign = "center";
    for (const [at, text] of ticks) pen.fillText(text, across(at), height - 6 * unit);
    pen.textAlign = "right";
    for (const v of [y[0], 0, y[1]]) {
      pen.strokeStyle = p.faint;
      pen.beginPath();
      pen.moveTo(left, up(v));
      pen.lineTo(width - 22 * unit, up(v));
      pen.stroke();
      pen.fillText(Number(v.toPrecision(2)), left - 5 * unit, up(v) + 4 * unit);
    }
    for (const { points, style, weight = 1 } of lines) {
      pen.strokeStyle = style;
      pen.lineWidth = weight * thick * unit;
      pen.beginPath();
      points.forEach(([a, b], i) => (i ? pen.lineTo(across(a), up(b)) : pen.moveTo(across(a), up(b))));
      pen.stroke();
    }
    if (mark !== undefined) {
      pen.strokeStyle = p.ink;
      pen.lineWidth = unit;
      pen.setLineDash([4 * unit, 3 * unit]);
      pen.beginPath();
      pen.moveTo(across(mark), up(y[0]));
      pen.lineTo(across(mark), up(y[1]));
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  // The sphere from one side: z up and tilted to the reader.
  const TILT = (32 * Math.PI) / 180;
  const toScreen = ([x, y, z]) => {
    const away = -x; // the reader stands at positive x
    return [y, z * Math.cos(TILT) + away * Math.sin(TILT), z * Math.sin(TILT) - away * Math.cos(TILT)];
  };
  const fromScreen = ([right, up, near]) =>
    [near * Math.cos(TILT) - up * Math.sin(TILT), right, up * Math.cos(TILT) + near * Math.sin(TILT)];

  function ball(pen, n, value, shade) {
    raster(pen, n, (r, c) => {
      const [right, up] = [((c + 0.5) / n) * 2.08 - 1.04, 1.04 - ((r + 0.5) / n) * 2.08];
      const square = right * right + up * up;
      if (square >= 1) return null;
      const seen = [right, up, Math.sqrt(1 - square)];
      return [value(fromScreen(seen)), seen];
    }, (found) => {
      if (!found) return [0, 0, 0, 0];
      const [v, [right, up, near]] = found;
      const light = Math.max(0, (-0.45 * right + 0.55 * up + 0.7 * near) / 1);
      const edge = Math.min(1, (1 - Math.hypot(right, up)) * n / 2);
      return [...shade(v).map((channel) => channel * (0.72 + 0.28 * light)), 255 * edge];
    });
  }

  return { fit, palette, raster, dot, chart, ball, toScreen, fromScreen };
})();
