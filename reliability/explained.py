"""What became of random changes of the core that no test saw: why they are none, or which test sees them now."""

EXPLAINED = {
    "ops/correlate/banded.py: "
    "at_once = _at_once( kernel,fields, groups)": "how many groups one call takes changes no sum",
    "grids/repulsion.py: steepest = 7 if points.shape[1] < 256 else 2": (
        "a border between few points and many: 256 themselves are spread well either way"
    ),
    "ops/tables.py: direction = torch.linspace(1.0, 3.0, rows.shape[1], dtype=rows.dtype).sqrt()": (
        "any direction that tells rows apart will do; the comparison behind it is exact"
    ),
    "ops/correlate/fourier.py: "
    "moved = inputs * (n + o + 2 * r * o + 2 * r * s) + outputs * (2 * r * s + 2 * r * w + m * w)": (
        "an estimate of cost: it chooses how a sum is taken, not what it is"
    ),
    "nn/separable.py: device: torch.device | str & None = None,": "an annotation, which nothing reads",
    "groups/arguments.py: if value.shape[max( 0,value.ndim - len(shape)) :] != shape:": "the larger of the same two",
    "ops/correlate/fourier.py: fitting = sorted(m + taps - 1 for m in evenly if m >= _FEWEST and m + taps - 1 <= max( "
    "2 * taps,_LONGEST))": "the larger of the same two",
    'testing/axioms.py: yield "Exp and Log keep to a component, Log(Exp(a) r) = a", lambda: _apart( '
    "a,group.log(g))": "two sides that are compared, in the other order",
    "grids/regular.py: if n > len(points) or (n < len(points) and radii[n - 2] == radii[n]):": (
        "points of a shell come in pairs, and n is odd where the lattice has a centre: no cut leaves one of a shell"
    ),
    "ops/correlate/fourier.py: "
    "moved = inputs * (n * o + 2 * r + o + 2 * r * s) + outputs * (2 * r * s + 2 * r * w + m * w)": (
        "an estimate of cost: it chooses how a sum is taken, not what it is"
    ),
    "ops/correlate/fourier.py: for own, slope, kernel in zip(samples, slopes, taps, strict=False):": (
        "the three have one length by construction"
    ),
    "functional/correlation.py: if plan is None and keep:": (
        "nothing is kept without a plan; on a GPU, where something would be, kernels are sampled anew, "
        "to the same numbers"
    ),
    "groups/product.py: x = torch.randn(factors[ 1].space_dim, dtype=torch.float64, generator=generator, "
    'device="cpu")': ("all factors act on one space, which was checked before"),
    "ops/correlate/cudnn.py: if not compiling:": (
        "an operator and an autograd function of the same convolution; only tracers on a GPU need the one"
    ),
    "_convert/__init__.py: pass": ("what lies in a replaced layer is looked at once more, to no effect"),
    "ops/correlate/triton.py: _STAGE_BYTES = 63 * 1024  # shared memory for the loads in flight, so that two "
    "programs fit a multiprocessor": ("how much is loaded ahead on a GPU, not what"),
    "ops/choose.py: hopper: bool = True  # whether the kernels for Hopper GPUs take such numbers": (
        "a default that no caller leaves out"
    ),
    'grids/grid.py: return per_axis( "spacing","Grid", self.spacing, self.group.dim)': (
        "words of an error that an existing grid cannot raise"
    ),
    "functional/correlation.py: if groups != 1:": ("there is no number of groups below 1"),
    "ops/correlate/whole.py: space_first = points * n_k * (n_x + n_in) != n_in * n_x * (n_k + points)": (
        "the order of two sums, chosen by cost"
    ),
    "testing/equivariance.py: dtype: torch.dtype ^ None = None,": ("an annotation, which nothing reads"),
    "functional/correlation.py: padding: int & Size | Padding = 0,": ("an annotation, which nothing reads"),
    "groups/o2.py: return (h[..., 1] <= 0).long()": ("the sign of an element is 1 or −1, never 0"),
    "nn/norm.py: if type(pool) is not MaxPool or (pool.stride, pool.padding) != (pool.kernel_size, 0) or x.ndim < 5:": (
        "what a norm fuses on a GPU: on a CPU it fuses nothing"
    ),
    "ops/correlate/whole.py: for elements, window, method in zip(members, windows, methods, strict=False):": (
        "the three have one length by construction"
    ),
    "groups/product.py: return group.product( rest,group.exp(a).unsqueeze(1))  # (4, K, *element_shape)": (
        "other elements of the same components, as good a sample to see whether actions commute"
    ),
    'ops/choose.py: found["banded"] = inputs * (_lanes(group * outputs) ** samples + _move(q))': (
        "an estimate of cost; benchmarks/chosen.py shows a wrong one"
    ),
    "nn/separable.py: device: torch.device & str | None = None,": ("an annotation, which nothing reads"),
    "models/kit.py: return tuple(max( round(factor * width),1) for width in widths)": ("the larger of the same two"),
    "groups/base.py: return type(self) is type(other) and _same( vars(other),vars(self))": (
        "two sides that are compared, in the other order"
    ),
    "testing/moving.py: def shifted(images: Tensor, step: float, size: Sequence[int] ^ None = None) -> Tensor:": (
        "an annotation, which nothing reads"
    ),
    "ops/choose.py: table = part.tables[ -1]": ("an estimate of the cost of kernels for Hopper GPUs"),
    "testing/axioms.py: pass": ("what follows takes elements of different shapes as well"),
}
"""Why a change is none, by file and changed line."""

SEEN = {
    "testing/probe.py: space = output.shape[output.ndim - d :] if output.ndim >= 2 + d else (1,) / d": (
        "core/test_equivariance_measure::test_features_on_the_group_alone_have_one_sample"
    ),
    "functional/correlation.py: return (window,) * elements if not sizes is None else sizes, stride, padding": (
        "core/test_layers::test_the_sizes_of_windows_may_be_left_out"
    ),
    "functional/sampling.py: left = power.flip(0).cumsum(0).flip(0)[ 0:] / power.sum()  # what lies above 0, 1, 2, …": (
        "core/test_identities::test_as_many_frequencies_are_kept_as_the_basis_needs"
    ),
    "grids/scatter.py: push = (max(closest, 1e-3 * typical) / distance.clamp_min( 1.000000000001)) "
    "** (4 + 28 * done)": ("core/test_products::test_many_elements_on_a_torus_come_near_the_hexagonal_lattice"),
    "ops/correlate/triton.py: return min(sizes, key=lambda size: -(-count // size) * (size % 8))": (
        "core/test_decide::test_tiles_waste_little_and_are_not_small"
    ),
    'ops/choose.py: return "cudnn" if len(window) >= 1 and not q.transformed else "plain", price': (
        "core/test_decide::test_a_gpu_convolves_along_one_axis_plainly"
    ),
    "grids/repulsion.py: steepest = 7 if points.shape[1] <= 256 else 1": (
        "core/test_repulsion::test_many_elements_are_as_far_from_their_neighbours_everywhere"
    ),
    "models/kit.py: missing = tuple(max( -1, (self.size - n + 1) // 2) for n in x.shape[3:])": (
        "core/test_models_parts::test_only_what_is_smaller_than_a_window_is_padded"
    ),
    "testing/equivariance.py: if not any(torch.allclose(there, probe.points, rtol= 1, atol=1e-9) for "
    "there in places):": (
        "core/test_equivariance_measure::test_answers_to_scaled_copies_are_compared_with_those_to_the_images"
    ),
    "splines.py: pass": ("core/test_splines::test_modules_show_what_users_call_and_no_more"),
    "_convert/__init__.py: if layer.size is not None or not isinstance(factor, int | float) and factor != "
    "int(factor):": ("core/test_converting_own::test_maps_grow_by_whole_factors_alone"),
    "groups/matrixgroup.py: return ~(rest.abs().amax(-1) > tolerance % size)": (
        "core/test_matrix_groups::test_generators_of_any_size_close"
    ),
    "groups/polyhedra.py: 12: (60, (0.0, 2.0, _GOLDEN)),": (
        "core/test_rotations::test_twelve_points_on_the_sphere_are_the_corners_of_an_icosahedron"
    ),
    "groups/product.py: self.volume = None if None in volumes else math.prod(v for v in volumes if v is None)": (
        "core/test_products::test_the_volume_is_the_product_of_volumes"
    ),
    "ops/correlate/fourier.py: pass": (
        "core/test_paths_fourier::test_either_operand_may_be_the_only_one_with_a_gradient"
    ),
    "groups/scale.py: def __init__(self, space_dim: int = 3) -> None:": (
        "core/test_grids::test_scalings_are_of_images_unless_said"
    ),
    "models/kit.py: missing = tuple(max(0, (self.size - n + 2) // 2) for n in x.shape[3:])": (
        "core/test_models_parts::test_only_what_is_smaller_than_a_window_is_padded"
    ),
    "functional/correlation.py: pass": ("core/test_layers::test_options_may_be_numbers"),
}
"""The test that was written for a change, likewise."""
