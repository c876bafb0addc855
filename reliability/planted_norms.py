"""Faults to plant in norms, in half precision, at the ends of H in irreps and vectors, one at a time."""

from fault import Fault

_TWO_GRIDS = "core/test_norms::test_the_same_function_on_two_grids_is_normalised_alike"
_LOOPS = "core/test_norms::test_statistics_are_those_of_plain_loops"

_ENDS = "core/test_ends::"
_IRREPS = "core/test_irreps::"
_VECTORS = "core/test_vectors::"
_HALF = "core/test_mixed_precision::"

FAULTS = [
    Fault("nn/statistics.py::HaarWeighted._weigh", "values * self.haar.to(values)", "values + 0 * self.haar.to(values)",
          "norms: all elements count alike", _TWO_GRIDS),
    Fault("nn/statistics.py::_unequal_weights", "grid.weights / grid.weights.mean()", "grid.weights",
          "norms: weights that do not have mean 1", _TWO_GRIDS),
    Fault("nn/norm.py::BatchNorm.weighted", "total(self._weigh(centred.square())", "total(centred.square()",
          "batch norm: the variance without Haar's weights", _LOOPS),
    Fault("nn/group_norm.py::GroupNorm.forward", "self._means(centred.square())", "self._means(x.square())",
          "group norm: squares about zero", _LOOPS),
    Fault("nn/group_norm.py::LayerNorm.__init__", "super().__init__(1, ", "super().__init__(num_channels, ",
          "layer norm of single channels", _LOOPS),
    Fault("nn/norm.py::BatchNorm.forward", "and input.numel() > 0", "", "an empty batch spoils what norms remember",
          "core/test_norms::test_recomputed_and_empty_batches_of_a_crowded_grid"),
    Fault("_convert/__init__.py::_Converter._group_norm", "layer.num_groups, layer.num_channels",
          "layer.num_channels, layer.num_channels", "convert: group norms become instance norms",
          "core/test_converting::test_norms_of_one_image_keep_their_options"),
    Fault("functional/correlation.py::against", "against(widened(x), weights)", "against(x, weights)",
          "means over H are rounded to half precision", _HALF + "test_the_projection_is_not_rounded"),
    Fault("models/precise.py::_Precise.forward", "if not is_autocast(input.device):", "if True:",
          "logits are rounded to half precision", _HALF + "test_quarter_turns_of_networks_in_bfloat16"),
    Fault("functional/ends.py::renormalised", "samples / torch.where(seen, share, 1)", "samples",
          "splines at the ends are cut off", _ENDS + "test_what_is_constant_along_h_stays_so"),
    Fault("functional/ends.py::renormalised", "distance.amin(1, keepdim=True) + 1e-6", "-1.0",
          "splines beyond the end see nothing", _ENDS + "test_power_stays_even_over_six_layers"),
    Fault("functional/correlation.py::plan", "group_samples(h_basis, grid, out_grid, boundary=boundary)",
          "group_samples(h_basis, grid, out_grid)", "zeros of samples that are not those of the layer",
          _ENDS + "test_every_path_computes_it"),
    Fault("nn/base.py::Correlation._sampled", "samples if cut_off else", "samples if True else",
          "learned centres are cut off at the ends", _ENDS + "test_learned_centres_start_as_fixed_ones"),
    Fault("testing/probe.py::by_element", "total.index_add_(0, elements, squares.cpu())",
          "total[: len(elements)] += squares.cpu()", "the ends' error is another element's",
          _ENDS + "test_the_measure_tells_the_ends"),
    Fault("functional/irreps.py::_generators", "for axis in (y, z, x)", "for axis in (x, y, z)",
          "irreps: another polar axis than e3nn's", _IRREPS + "test_harmonics_rotate_with_them"),
    Fault("functional/irreps.py::irreps", "permute(2, 1, 0)", "permute(1, 2, 0)", "irreps: rows taken for columns",
          _IRREPS + "test_every_copy_rotates_with_its_irrep"),
    Fault("nn/irreps.py::FromIrreps._exact_matrix", "one.shape[1] * one.flatten(0, 1)", "one.flatten(0, 1)",
          "irreps: the dimension forgotten", _IRREPS + "test_coefficients_lead_to_the_function_and_back"),
    Fault("functional/directions.py::frames", "torch.linalg.inv(grid.group.matrix(grid.elements))",
          "grid.group.matrix(grid.elements)", "vectors are lifted by h, not h⁻¹",
          _VECTORS + "test_fields_rotate_with_their_vectors"),
    Fault("functional/directions.py::frames", "aij,akl->aikjl", "aij,akl->ailjk", "tensors are lifted on one side",
          _VECTORS + "test_lifting_is_that_of_plain_loops"),
    Fault("nn/base.py::Correlation._derived", "functional.frames(self.out_grid, self.in_type)",
          "functional.frames(self._relative[1], self.in_type)", "vectors do not follow a shifted grid",
          _VECTORS + "test_vectors_follow_the_grid_when_it_is_shifted"),
    Fault("models/kit.py::Kit.norm", "norm=self.layers.norm, ", "", "networks have batch norm whatever is asked for",
          "core/test_norms::test_networks_for_small_batches"),
    Fault("functional/ends.py::replicated", "((1, place.max()), (-1, place.min()))", "((1, place.max()),)",
          "replicated at one end alone", _ENDS + "test_replicated_is_a_longer_grid_with_features_repeated"),
    Fault("ops/correlate/whole.py::_around", "any(n <= w", "any(n < 0 * w", "gradients that torch leaves unset",
          "core/test_volumes::test_strided_windows_as_large_as_a_volume_have_gradients"),
]  # fmt: skip
