"""Faults to plant in the measure of equivariance and in what the lab makes of it, one at a time."""

from fault import Fault

_CORE, _TRUTH = "core/test_measure::", "truth/test_equivariance_measure::"
_LOOPS = _CORE + "test_the_change_of_answers_is_that_of_plain_loops"
_SCIPY = _TRUTH + "test_the_change_is_that_of_scipy_and_plain_loops"
_BIAS, _PLACE = _CORE + "test_a_bias_hides_nothing", _CORE + "test_what_depends_on_the_place_is_found"
_CONSTANT = _CORE + "test_what_is_the_same_for_all_images_is_undefined"
_PLAIN = _TRUTH + "test_a_plain_network_is_measured"

FAULTS = [
    Fault(
        "testing/measure.py::output_change",
        "z - z.mean(2, keepdim=True) if classes",
        "z if classes",
        "change: logits not centred over classes",
        _LOOPS,
    ),
    Fault(
        "testing/measure.py::output_change",
        "classes and z.shape[2] > 1",
        "classes",
        "change: a single output centred away",
        _CORE + "test_a_single_output_is_not_centred_away",
    ),
    Fault(
        "testing/measure.py::output_change",
        "spread = _square(z - z.mean(1, keepdim=True))",
        "spread = _square(z)",
        "change: over the norm, not the spread",
        _LOOPS,
    ),
    Fault(
        "testing/measure.py::output_change",
        "z - z.mean(1, keepdim=True)",
        "z - z.mean((0, 1), keepdim=True)",
        "change: the spread holds the change",
        _LOOPS,
    ),
    Fault(
        "testing/measure.py::output_change",
        "for j in range(i + 1, len(z))",
        "for j in range(i + 1, min(i + 2, len(z)))",
        "change: neighbouring copies alone",
        _LOOPS,
    ),
    Fault(
        "testing/measure.py::output_change",
        "return OutputChange(math.nan, math.nan, None)",
        "return OutputChange(0.0, 0.0, None)",
        "change: a constant network is invariant",
        _CONSTANT,
    ),
    Fault(
        "testing/measure.py::constant", "(ROUNDINGS * torch", "(0 * torch", "change: rounding is no constant", _CONSTANT
    ),
    Fault(
        "testing/measure.py::compared",
        "expected - levels(expected))",
        "expected)",
        "maps: over the norm, not the spread",
        _CORE + "test_the_error_of_maps_is_that_of_numpy",
    ),
    Fault(
        "testing/measure.py::levels",
        "maps.mean([axis for axis in range(maps.ndim) if axis != 1], keepdim=True)",
        "torch.zeros_like(maps)",
        "maps: a bias hides the error",
        _BIAS,
    ),
    Fault(
        "testing/moving.py::interior",
        "radius = (min(space) - 1) / 4 + 1e-9",
        "radius = 0.8",
        "maps: the centre alone",
        _PLACE,
    ),
    Fault(
        "testing/moving.py::interior",
        "radius = (min(space) - 1) / 4 + 1e-9",
        "radius = 0.45 * (min(space) - 1)",
        "maps: border and all",
        _CORE + "test_the_error_of_maps_is_that_of_numpy",
    ),
    Fault(
        "testing/probe.py::under_translations",
        "range(1, math.ceil(size / min(space)) + 1)",
        "range(1, 2)",
        "translations: of maps as fine as the image alone",
        _CORE + "test_translations_are_those_of_the_map",
    ),
    Fault(
        "testing/probe.py::Probe.__init__",
        "copy.deepcopy(module).to(dtype)",
        "module.to(dtype)",
        "dtype: of the user's network too",
        _CORE + "test_the_dtype_is_what_is_computed_in",
    ),
    Fault(
        "testing/equivariance.py::_of_answers",
        "[group.identity(dtype=torch.float64), *moves], [still, *outputs], [True, *exact]",
        "moves, outputs, exact",
        "answers: not beside the image itself",
        _CORE + "test_answers_are_compared_over_all_pairs_of_copies",
    ),
    Fault(
        "lab/evaluation/scores.py::relative_change",
        "every = output_change(outputs, classes=classes)",
        "every = output_change(outputs, classes=classes, pairs=on)",
        "change: pairs on the grid alone",
        _SCIPY,
    ),
    Fault(
        "lab/evaluation/scores.py::relative_change",
        "classes=classes, pairs=~on)",
        "classes=classes, pairs=on)",
        "change: on the grid, called between",
        _SCIPY,
    ),
    Fault(
        "lab/transforms.py::Scene.copy",
        "if not there_and_back:",
        "if True:",
        "floor: copies that were interpolated once",
        _SCIPY,
    ),
    Fault(
        "lab/evaluation/scores.py::relative_change",
        'kind in ("classes", "masks")',
        "True",
        "change: numbers predicted as classes",
        _TRUTH + "test_numbers_and_tags_are_measured_and_not_centred",
    ),
    Fault(
        "lab/evaluation/elements.py::BASE",
        "BASE = 11.0",
        "BASE = 0.0",
        "change: a copy is upright",
        "lab/test_elements",
    ),
    Fault(
        "lab/transforms.py::Scene.maps",
        "return moved(continued(maps), self.group, element, self.space, back=True)",
        "return moved(continued(maps), self.group, element, self.space)",
        "masks: copies not brought back",
        _TRUTH + "test_masks_are_measured_point_by_point",
    ),
    Fault(
        "lab/evaluation/equivariance.py::_steps",
        "if grid is None or len(grid) == 1:\n",
        "if grid is None:\n",
        "a plain network has no moves",
        _PLAIN,
    ),
    Fault(
        "lab/evaluation/equivariance.py::layer_errors",
        "scene.copy(base)",
        "scene.inside + scene.background",
        "layers: beside the image that was not interpolated",
        "lab/test_invariance::test_the_errors_of_a_layer_are_those_of_numpy",
    ),
    Fault(
        "lab/evaluation/equivariance.py::_summary",
        '"worst error": max(',
        '"worst error": min(',
        "layers: the best move is the worst",
        "lab/test_invariance::test_the_errors_of_a_layer_are_those_of_numpy",
    ),
    Fault(
        "lab/evaluation/equivariance.py::_summary",
        "sum(count - len(to) for",
        "sum(0 * len(to) for",
        "layers: nothing is left out",
        "lab/test_groups_cli::test_every_command_takes_the_group[sim2-4x2]",
    ),
]
