"""Faults to plant in the core, one at a time: a file, what stands in it once, what to put there, and that in words.

Those of the lab and of the models are in planted_lab.py.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """One change to one file below src/liespline."""

    file: str
    old: str
    new: str
    what: str
    test: str = ""
    """The test that should see it, such as `lab/test_learned::test_name`; tried before all others."""


_GROUPS = [
    Fault("groups/so2.py", "_wrap(g + h)", "_wrap(g - h)", "SO(2): product with the wrong sign"),
    Fault("groups/so2.py", "_wrap(-h)", "_wrap(h)", "SO(2): inverse forgotten"),
    Fault("groups/so2.py", "sin * x[..., 0] + cos", "-sin * x[..., 0] + cos", "SO(2): action is no rotation"),
    Fault("groups/so2.py", "torch.floor((angle + math.pi)", "torch.floor((angle)", "SO(2): angles wrap to [0, 2π)"),
    Fault("groups/scale.py", "return 1 / h", "return h", "Scale: inverse forgotten"),
    Fault("groups/scale.py", "return h * x", "return x / h", "Scale: acts by the inverse"),
    Fault("groups/scale.py", "(h > 0)", "(h >= 0)", "Scale: 0 taken for an element"),
    Fault("groups/so3.py", "return g @ h", "return h @ g", "SO(3): factors swapped"),
    Fault("groups/so3.py", "(gamma) @ _about_y(beta) @ _about_z(alpha)", "(alpha) @ _about_y(beta) @ _about_z(gamma)",
          "SO(3): Euler angles in the other order"),
    Fault("groups/so3.py", " & (torch.linalg.det(h) > 0)", "", "SO(3): reflections taken for rotations"),
    Fault("groups/so3.py", "for i in range(1, 3)", "for i in range(1, 2)", "SO(3): action drops an axis"),
    Fault("groups/so3.py", "torch.atan2(h[..., 2, 1], -h[..., 2, 0])", "torch.atan2(h[..., 2, 1], h[..., 2, 0])",
          "SO(3): sign of an Euler angle"),
    Fault("groups/sphere.py", "-sinc * a[..., 0]", "sinc * a[..., 0]", "S²: sign in Exp"),
    Fault("groups/sphere.py", "return self.pull(g, h)", "return self.act(g, h)", "S²: relative element not inverted"),
    Fault("groups/sphere.py", "rows = (cos * z, -sin,", "rows = (cos * z, sin,", "S²: sign in the rotation of a point"),
    Fault("groups/sphere.py", "(radius < 64 *", "(radius < 0 *", "S²: rounding chooses Log of the antipode"),
    Fault("groups/translation.py", "return -h", "return h", "R^d: inverse forgotten"),
    Fault("groups/trivial.py", "return x.expand(", "return -x.expand(", "Trivial: moves points"),
    Fault("groups/base.py", "self.product(self.inverse(g), h)", "self.product(h, self.inverse(g))",
          "relative element h g⁻¹ instead of g⁻¹h"),
    Fault("groups/base.py", "return self.act(self.inverse(h), x)", "return self.act(h, x)", "pull without the inverse"),
    Fault("groups/base.py", "torch.zeros_like(axes))).transpose(-1, -2)", "torch.zeros_like(axes)))",
          "matrix of an element transposed"),
    Fault("groups/base.py", "self.offset(self.exp(a), self.exp(moved))",
          "self.log(self.product(self.exp(moved), self.inverse(self.exp(a))))", "right instead of left Haar measure"),
    Fault("groups/semidirect.py", "one.x + self.h.act(one.h, other.x)", "one.x + other.x", "R^d ⋊ H as a direct product"),
    Fault("groups/semidirect.py", "self.join(-self.h.act(back, g.x), back)", "self.join(-g.x, back)",
          "R^d ⋊ H: inverse without h⁻¹"),
]  # fmt: skip

_GRIDS = [
    Fault("groups/so2.py", "2 * math.pi / even.whole(self, n)", "2 * math.pi / (even.whole(self, n) + 1)",
          "SO(2) grid off by one"),
    Fault("groups/scale.py", "even.steps(n, spacing).exp()", "(even.steps(n, spacing) + spacing).exp()",
          "scale grid off by one"),
    Fault("grids/regular.py", "scale.prod() * group.haar_density(a)", "scale.prod() * torch.ones(len(a))",
          "local grid: Haar density dropped"),
    Fault("grids/regular.py", '_box(counts("lattice", n, space_dim))\n    return Grid(group, points, '
          "_constant(len(points), spacing**space_dim)", '_box(counts("lattice", n, space_dim))\n    return Grid(group, '
          "points, _constant(len(points), spacing)", "lattice: weight of one axis for all"),
    Fault("grids/regular.py", "[_count(n) - (n - 1) / 2 for n", "[_count(n) - n / 2 for n", "lattice off centre"),
    Fault("groups/even.py", "group.volume / len(elements)", "group.volume", "polyhedral grid: weights too large"),
    Fault("grids/regular.py", "- 1) / 2) ** 2 + 1)", "- 1) / 2) ** 2 + 2)", "disc too large"),
    Fault("groups/so3.py", "volume = 8 * math.pi**2", "volume = 4 * math.pi**2", "volume of SO(3) halved"),
    Fault("grids/repulsion.py", "np.abs(cosine) if antipodal else cosine", "cosine",
          "q and −q taken for two rotations"),
    Fault("grids/repulsion.py", "volume = 8 * math.pi**2 if", "volume = 2 * math.pi**2 if", "volume of quaternions"),
    Fault("grids/repulsion.py", "(i == j) / 3", "(i == j) / 2", "quadrature meets other moments"),
    Fault("grids/grid.py", "content.update(self.weights.numpy().tobytes())", "content.update(b'')",
          "grids with other weights taken for equal"),
]  # fmt: skip

_SPLINES = [
    Fault("splines.py", "x.abs().clamp(max=(degree + 1) / 2)", "x.abs()", "far from a spline its polynomials overflow"),
    Fault("splines.py", "(x < 0.5)", "(x <= 0.5)", "boxes overlap at their ends"),
    Fault("splines.py", "math.comb(n + 1, k)", "math.comb(n, k)", "wrong binomial in the pieces"),
    Fault("splines.py", "self.degree).prod(-1)", "self.degree).mean(-1)", "splines averaged over axes"),
    Fault("splines.py", "for k in range(-turns, turns + 1)", "for k in range(-turns, turns)",
          "periodic images off by one"),
    Fault("splines.py", "math.ceil(end - 0.5)", "0", "splines not periodic"),
    Fault("splines.py", "return (self.degree + 1) / 2 * self.width", "return self.degree / 2 * self.width",
          "reach of a spline off by half"),
    Fault("splines.py", "residual = residual - step * image", "residual = residual + step * image", "sign in the fit"),
]  # fmt: skip

_FUNCTIONAL = [
    Fault("functional/sampling.py", "torch.ceil(reach - 1).clamp_min(0)", "torch.ceil(reach).clamp_min(0)",
          "windows one sample too wide"),
    Fault("functional/sampling.py", "grown = [(w - k) // 2", "grown = [(w - k)", "padding of grown windows doubled"),
    Fault("functional/sampling.py", "return group.pull(h, y), inside", "return group.act(h, y), inside",
          "kernels moved by the inverse"),
    Fault("functional/sampling.py", "inside / scale.unsqueeze(-1)", "inside.double()", "1/|det h| dropped"),
    Fault("functional/sampling.py", "math.prod(window.kernel_size) > 1", "math.prod(window.largest) > 1",
          "1/|det h| dropped for shrunk windows"),
    Fault("functional/sampling.py", "grid.weights.unsqueeze(0)", "torch.ones_like(grid.weights).unsqueeze(0)",
          "quadrature weights dropped"),
    Fault("functional/sampling.py", "k * (alpha - phi) + shift", "k * (alpha + phi) + shift",
          "S²: turned the other way"),
    Fault("functional/sampling.py", "points, factor = space_points(grid, window)\n    return in_window(sample(basis, "
          "points, factor, axial=axial(grid))", "points, factor = space_points(grid, window)\n    return "
          "in_window(sample(basis, points, factor)", "S²: kernels not symmetric about the axis"),
    Fault("functional/correlation.py", "weights / weights.sum()", "weights / len(weights)", "mean without the volume"),
    Fault("functional/correlation.py", "zip(reversed(before), reversed(after)", "zip(before, after",
          "padding of axes swapped"),
    Fault("functional/correlation.py", "spread, mode=mode)", "spread)", "padding mode ignored"),
    Fault("functional/correlation.py", "return x.amax(2)", "return x.amax(1, keepdim=True).amax(2)",
          "maximum over channels too"),
    Fault("functional/regular.py", "group.pull(h, points - x)", "group.pull(h, points) - x", "L_g: order of x and h"),
    Fault("functional/regular.py", "(source / half).flip(-1)", "(source / half)", "L_g: axes not reversed"),
    Fault("functional/regular.py", "group.relative(h.to(", "group.product(h.to(", "L_g: moves H the other way"),
]  # fmt: skip

_LAYERS = [
    Fault("nn/arguments.py", "tuple((k - 1) // 2 for k in window), tuple(k // 2 for k in window)",
          "tuple(k // 2 for k in window), tuple((k - 1) // 2 for k in window)", '"same" pads the other side'),
    Fault("nn/arguments.py", "k - 2 if k > 3 else k", "k", "default centres on the window's edge"),
    Fault("nn/arguments.py", "size + p + q < k:", "size + p + q < k - 1:", "inputs one sample too small accepted"),
    Fault("nn/initial.py", "math.sqrt(2 / (in_channels", "math.sqrt(1 / (in_channels",
          "initial weights without ReLU's 2"),
    Fault("nn/initial.py", "total.clamp_min(1e-300)", "total", "initial weights NaN where an element reads nothing"),
    Fault("nn/layers.py", "self.weights = self.grid.weights.to(self.weights)", "pass",
          "projection keeps rounded weights"),
    Fault("nn/base.py", "torch.float64 if self.weight.dtype == torch.float64 else torch.float32", "torch.float32",
          "float64 layers sample in float32"),
    Fault("nn/base.py", '_samples", fixed, persistent=False', '_samples", fixed, persistent=True',
          "state_dict holds what is not learned"),
    Fault("nn/base.py", "copy_(basis.grid.group.log(basis.grid.elements))",
          "copy_(-basis.grid.group.log(basis.grid.elements))", "learned centres start mirrored"),
    Fault("nn/pool.py", "return taps / taps.sum()", "return taps", "down-sampling changes the mean"),
    Fault("nn/pool.py", "- len(self.taps) // 2\n", "- len(self.taps) // 2 + 1\n", "down-sampling shifts by a sample"),
    Fault("nn/pool.py", "places.clamp(0, size - 1)", "places", "up-sampling darkens the border"),
]  # fmt: skip

_PATHS = [
    Fault("paths/plan.py", "_rounding(samples)).any(-1)", "_rounding(samples)).all(-1)",
          "plan drops fields that count"),
    Fault("paths/plan.py", "places.T.gather(1, readers)", "places.T.gather(1, readers).flip(1)",
          "gradient reads other blocks"),
    Fault("paths/plan.py", "descending=True", "descending=False", "plan keeps the fields that do not count"),
    Fault("paths/plan.py", "line[0] if together else None", "line[0]",
          "fields apart from each other read as neighbours"),
    Fault("paths/plan.py", "torch.inference_mode(False), torch.no_grad()", "torch.no_grad()",
          "what evaluation keeps cannot train"),
    Fault("paths/banded.py", "fields.narrow(2, table.start,", "fields.narrow(2, 0,",
          "every scale reads the first fields"),
    Fault("paths/dense.py", "sampled.narrow(1, elements[0], len(elements))", "sampled.narrow(1, 0, len(elements))",
          "windows take other elements' kernels"),
    Fault("paths/dense.py", "order.index(a)", "order[a]", "elements put back in the wrong order"),
    Fault("paths/dense.py", "torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32",
          "torch.float32", "float64 kernels built in float32"),
    Fault("paths/factored.py", "return out if plan.in_order else out.index_select(2, plan.order)", "return out",
          "parts not put back in order"),
    Fault("paths/banded.py", "first * outputs : (first + len(lines)) * outputs", "0 : len(lines) * outputs",
          "every block takes the first kernels"),
    Fault("paths/fourier.py", "(-sin, cos + sin, -cos)", "(-sin, cos - sin, -cos)", "Fourier: sign of a product"),
    Fault("paths/fourier.py", "weight.transpose(0, 1).flip(2, 3)", "weight.transpose(0, 1)",
          "Fourier: gradient of the input not mirrored"),
    Fault("paths/fourier.py", "kernel.addmm_(", "kernel.zero_().addmm_(", "Fourier: gradient of the last images only"),
    Fault("paths/fourier.py", "y[:, :, : space[0], : space[1]]", "y[:, :, -space[0] :, -space[1] :]",
          "Fourier: outputs cut off at the wrong end"),
    Fault("paths/neighbours.py", "count * taps + 1 - width", "count * taps + 2 - width",
          "neighbours: kernels moved by two"),
    Fault("paths/cuda.py", "out[..., count:] = 0", "out[..., count:] = torch.nan", "padding that is not zero"),
]  # fmt: skip

_ABOVE = [
    Fault("export.py", "bias.repeat_interleave(n_out)", "bias.repeat(n_out)", "export: biases of other channels"),
    Fault("export.py", "zip(reversed(before), reversed(after)", "zip(before, after", "export: padding of axes swapped"),
    Fault("export.py", "known and module.running_mean is not None and", "known and",
          "export: fuses norms without statistics"),
    Fault("export.py", "once = uses[id(conv)] == uses[id(norm)] == 1", "once = True",
          "export: fuses a layer used twice"),
    Fault("export.py", 'layer.padding_mode if any(before) else "zeros"', '"zeros"', "export: padding mode lost"),
    Fault("export.py", "nn.Unflatten(1, (layer.out_channels, n_out))", "nn.Unflatten(1, (n_out, layer.out_channels))",
          "export: channels and elements swapped"),
    Fault("models/pcam.py", 'Project("max", grid)', 'Project("mean", grid)', "PCam: mean for maximum"),
    Fault("models/celeba.py", "_STEP = 0.5 * math.log(2)", "_STEP = math.log(2)", "CelebA: scales 2 apart, not √2"),
    Fault("models/celeba.py", "grid.elements / grid.elements[0]", "grid.elements", "CelebA: centres not about e"),
    Fault("models/kernels.py", 'if kernel == "atrous" else None', 'if kernel == "dense" else None',
          "atrous and dense swapped"),
    Fault("models/classifier.py", "if size % 2 == 0:", "if size % 2 == 1:",
          "classifier: odd axes centred, even ones not"),
    Fault("testing.py", "if not error <= tolerance:", "if error > tolerance:", "check_group: NaN passes"),
    Fault("testing.py", "moved = group.relative(h, grid.elements)", "moved = group.product(h, grid.elements)",
          "equivariance_error: compares other elements"),
    Fault("testing.py", "mixture(group.pull(h, points))", "mixture(group.act(h, points))",
          "equivariance_error: moves inputs the other way"),
    Fault("testing.py", "return (error / total) ** 0.5", "return error / total", "equivariance_error: squared"),
]  # fmt: skip

FAULTS = [*_GROUPS, *_GRIDS, *_SPLINES, *_FUNCTIONAL, *_LAYERS, *_PATHS, *_ABOVE]

EXPLAINED: dict[str, str] = {}
"""Faults that no test can see, by what they are, and why."""
