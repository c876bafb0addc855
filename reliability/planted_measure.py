"""Faults to plant in the measure of equivariance, in what the lab makes of it, and in what is less symmetric."""

from fault import Fault

_CORE, _TRUTH = "core/test_measure::", "truth/test_equivariance_measure::"
_LOOPS = _CORE + "test_the_change_of_answers_is_that_of_plain_loops"
_SCIPY = _TRUTH + "test_the_change_is_that_of_scipy_and_plain_loops"
_BIAS, _PLACE = _CORE + "test_a_bias_hides_nothing", _CORE + "test_what_depends_on_the_place_is_found"
_CONSTANT = _CORE + "test_what_is_the_same_for_all_images_is_undefined"
_PLAIN = _TRUTH + "test_a_plain_network_is_measured"

_MEASURE = [
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
        "combinations(range(len(z)), 2)",
        "zip(range(len(z)), range(1, len(z)))",
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

_SYMMETRY = [
    Fault("lab/symmetry/statistics.py::elements", "(log_p[..., number] - log_p[..., 0]).sign()",
          "log_p[..., number] - log_p[..., 0]", "data symmetry: x compared with its own rotated copy",
          "lab/test_symmetry::test_data_with_a_symmetry_are_not_told_whatever_the_network_says"),
    Fault("lab/symmetry/statistics.py::share", "n = p * (1 - p) / variance if variance > 0 else count", "n = 8 * count",
          "data symmetry: poses of one image counted as images",
          "lab/test_symmetry::test_intervals_are_wilsons_of_as_many_trials_as_images_are_worth"),
    Fault("lab/symmetry/statistics.py::holm", "(len(p_values) - rank)", "1", "data symmetry: no correction for many",
          "lab/test_symmetry::test_holm"),
    Fault("lab/symmetry/transformations.py::transformed", "argmax(1)", "argmax(0)",
          "data symmetry: transformations of other names",
          "lab/test_symmetry::test_transformations_are_those_of_their_matrices"),
    Fault("lab/symmetry/findings.py::look", "second, transformations)", "first, transformations)",
          "data symmetry: looks at the images it was trained on",
          "lab/test_symmetry::test_no_image_is_looked_at_twice"),
]  # fmt: skip

_LESS = [
    Fault("nn/restrict.py::cosets", "group.product(elements, grid.elements[left[0]])",
          "group.product(grid.elements[left[0]], elements)", "restriction: left cosets for right ones",
          "core/test_frames::test_restriction_is_a_sum_of_cosets"),
    Fault("nn/restrict.py::Restrict.forward", "unflatten(2, (self.factor, -1))", "unflatten(2, (-1, self.factor))",
          "restriction: cosets and elements of K exchanged", "core/test_frames::test_restriction_is_a_sum_of_cosets"),
    Fault("nn/frame.py::seen_from", "acting.inverse(frame)", "frame", "frames: rotated the wrong way",
          "core/test_frames::test_image_and_frame_are_rotated_together"),
    Fault("nn/frame.py::FrameBias.bias", "seen_from(self.grid, frame)", "self.grid.elements",
          "frames: forgotten", "core/test_frames::test_image_and_frame_are_rotated_together"),
    Fault("models/kit.py::Kit.restrict", "self._on(layer.out_grid, None)", "pass",
          "restricted networks: layers behind stay on the whole group",
          "core/test_frames::test_ready_networks_are_restricted"),
    Fault("models/unet.py::unet", "len(own) // len(kit.grid) * fine + coarse", "fine + coarse",
          "restricted U-Nets: skips have as many channels as on the whole group",
          "core/test_frames::test_a_restricted_unet_keeps_its_subgroup_and_no_more"),
    Fault("lab/tasks/grids.py::within", "torch.linalg.det(matrices) > 0", "torch.linalg.det(matrices) < 2",
          "restrict=: reflections counted as rotations",
          "lab/test_groups_cli::test_a_grid_is_restricted_to_what_is_in_a_group"),
    Fault("lab/tasks/grids.py::within", "matrices[:, -1], eye[-1]", "matrices[:, 0], eye[0]",
          "restrict=: about the first axis", "lab/test_groups_cli::test_a_grid_is_restricted_to_what_is_in_a_group"),
    Fault("models/kit.py::Kit._framed", "parameters + outputs * len(grid)", "parameters",
          "breaking: biases not counted", "core/test_frames::test_what_is_counted_is_what_is_built"),
    Fault("testing/breaking.py::_of", "(moved - own)", "(moved - moved)", "breaking: everything is kept",
          "core/test_frames::test_what_is_left_is_said"),
]  # fmt: skip

_BISPECTRUM = [
    Fault("functional/bispectrum.py::_of", "-im[:, :, 2:]", "im[:, :, 2:]", "bispectrum: not conjugate, not invariant",
          "core/test_bispectrum::test_it_is_invariant_and_complete"),
    Fault("functional/bispectrum.py::_of", "own[1] * first[0] - own[0] * first[1]",
          "own[1] * first[0] + own[0] * first[1]", "joint bispectrum: not conjugate, not invariant",
          "core/test_bispectrum::test_joint_is_complete_for_all_channels_together"),
    Fault("functional/bispectrum.py::_of", "if n % 2:", "if False and n % 2:", "bispectrum: odd n not closed",
          "core/test_bispectrum::test_it_is_its_formula"),
    Fault("functional/bispectrum.py::_of", "*(c * f + d * e).unbind(2)", "", "bispectrum: reflections look alike",
          "core/test_bispectrum::test_near_misses_are_told_apart"),
]  # fmt: skip

_AXIAL = [
    Fault("lab/training/learner.py::a_shift", "torch.as_tensor(amplitude, dtype=torch.float64) * drawn",
          "max(amplitude if isinstance(amplitude, tuple) else (amplitude,)) * drawn", "grid jitter: one α for all axes",
          "lab/test_recipe::test_jitter_per_axis_moves_along_these_axes_alone"),
    Fault("groups/axial.py::Axial.act", "coordinates.insert(self.axis,", "coordinates.insert(2,",
          "axial groups: axis forgotten", "core/test_axial::test_it_is_a_group_that_keeps_its_axis"),
    Fault("nn/resample.py::Downsample.space", "zip(x.shape[2:], factors,",
          "zip(x.shape[2:], factors[:1] * len(factors),",
          "down-sampling: one factor for all axes", "core/test_resample::test_a_factor_per_axis_is_that_axis_alone"),
]  # fmt: skip

FAULTS = [*_MEASURE, *_SYMMETRY, *_LESS, *_BISPECTRUM, *_AXIAL]
