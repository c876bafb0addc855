"""What became of random changes of the core that no test saw: why they are none, or which test sees them now."""

EXPLAINED = {
    "paths/banded.py: at_once = _at_once( kernel,fields, groups)": "how many groups one call takes changes no sum",
    "grids/repulsion.py: steepest = 7 if points.shape[1] < 256 else 2": (
        "a border between few points and many: 256 themselves are spread well either way"
    ),
    "paths/plan.py: direction = torch.linspace(1.0, 3.0, rows.shape[1], dtype=rows.dtype).sqrt()": (
        "any direction that tells rows apart will do; the comparison behind it is exact"
    ),
    "paths/fourier.py: moved = inputs * (n + o + 2 * r * o + 2 * r * s) + outputs * (2 * r * s + 2 * r * w + m * w)": (
        "an estimate of cost: it chooses how a sum is taken, not what it is"
    ),
    "nn/separable.py: device: torch.device | str & None = None,": "an annotation, which nothing reads",
    "groups/arguments.py: if value.shape[max( 0,value.ndim - len(shape)) :] != shape:": "the larger of the same two",
    "paths/fourier.py: fitting = sorted(m + taps - 1 for m in evenly if m >= _FEWEST and m + taps - 1 <= max( "
    "2 * taps,_LONGEST))": "the larger of the same two",
    'testing/axioms.py: yield "Exp and Log keep to a component, Log(Exp(a) r) = a", lambda: _apart( '
    "a,group.log(g))": "two sides that are compared, in the other order",
    "grids/regular.py: if n > len(points) or (n < len(points) and radii[n - 2] == radii[n]):": (
        "points of a shell come in pairs, and n is odd where the lattice has a centre: no cut leaves one of a shell"
    ),
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
    "paths/triton.py: return min(sizes, key=lambda size: -(-count // size) * (size % 8))": (
        "core/test_decide::test_tiles_waste_little_and_are_not_small"
    ),
    'paths/decide.py: return "cudnn" if len(window) >= 1 and not q.transformed else "plain", price': (
        "core/test_decide::test_a_gpu_convolves_along_one_axis_plainly"
    ),
    "grids/repulsion.py: steepest = 7 if points.shape[1] <= 256 else 1": (
        "core/test_repulsion::test_many_elements_are_as_far_from_their_neighbours_everywhere"
    ),
}
"""The test that was written for a change, likewise."""
