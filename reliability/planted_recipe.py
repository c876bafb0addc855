"""Faults to plant in what trains well, in borders that turn, in several grids, and in converted networks."""

from planted import Fault

_RECIPE = "lab/test_recipe::"
_KEPT = _RECIPE + "test_the_average_is_what_is_kept_scored_and_resumed"
_SHIFTED = _RECIPE + "test_every_step_moves_all_grids_alike_and_scores_are_those_of_the_grid"
_OWN = "test_converting_own"
_DISC = "test_disc_pad"
_GRIDS = "test_over_grids"
_SPLINED = "lab/test_splined"
_ENSEMBLE = "lab/test_ensemble"

_EQUAL = "lab/test_learned::test_of_equal_epochs_the_one_of_the_lowest_loss_is_kept"

FAULTS = [
    Fault("lab/runs/checkpoint.py", "and loss < self.loss", "and False", "the first of equal epochs is kept", _EQUAL),
    Fault("lab/runs/checkpoint.py", "and loss < self.loss", "and True", "the last of equal epochs is kept", _EQUAL),
    Fault("lab/runs/checkpoint.py", 'state_dict.get("loss", -math.inf)', "-math.inf",
          "resumed: better ones of equal epochs are not seen", _EQUAL),
    Fault("lab/runs/checkpoint.py", 'state_dict.get("loss", -math.inf)', "math.inf",
          "resumed: worse ones of equal epochs are kept", _EQUAL),
    Fault("lab/training/learner.py", "(self.averaged or self.network)(x)", "self.network(x)",
          "the last weights are scored, not their average", _RECIPE + "test_the_average_is_the_closed_form"),
    Fault("lab/training/averaging.py", ", **dict(network.named_buffers())}", "}",
          "statistics of norms are not averaged", _RECIPE + "test_statistics_of_norms_are_averaged_too"),
    Fault("lab/training/learner.py", "stable_hash(self.seed, self.global_step, 2, self.global_rank)",
          "stable_hash(self.seed, id(self))", "dropout drawn anew when a run is resumed", _KEPT),
    Fault("lab/training/learner.py", "stable_hash(self.seed, self.global_step, 1)",
          "stable_hash(self.seed, self.global_step, self.global_rank)", "each process moves its grids elsewhere",
          _RECIPE + "test_processes_draw_the_same_shift"),
    Fault("lab/training/learner.py", "stable_hash(self.seed, self.global_step, 1)", "stable_hash(self.seed)",
          "grids moved once, not at every step", _SHIFTED),
    Fault("lab/training/shifting.py", "dtype=torch.float64) - 0.5)", "dtype=torch.float64))", "grids moved to one side",
          _RECIPE + "test_shifts_are_uniform_within_one_step_of_the_grid"),
    Fault("lab/training/optimisers.py", "super().load_state_dict(state_dict | length)",
          "super().load_state_dict(state_dict)", "a longer run keeps the shorter cycle",
          _RECIPE + "test_one_cycle_goes_on_in_a_longer_one"),
    Fault("lab/tasks/objectives.py", "smoothing = self.smoothing if self.training else 0.0",
          "smoothing = self.smoothing", "reported loss is smoothed", _RECIPE + "test_smoothed_labels_by_hand"),
    Fault("lab/tasks/masks.py", "share = self.smoothing if self.training else 0.0", "share = 0.0",
          "masks are not smoothed", _RECIPE + "test_masks_are_smoothed_where_they_are_known"),
    Fault("lab/data/augment.py", "else splined(x, matrices)", "else resampled(x, matrices)", "blurred volumes",
          _SPLINED),
    Fault("lab/moving.py", "cell + 1 + w3 / (1 - w0 - w1)", "cell + 1", "splines: the last of four is left out",
          _SPLINED),
    Fault("lab/moving.py", "(points.abs() > first + 0.5)", "(points.abs() > 1e9)", "splines: tails beyond the samples",
          _SPLINED),
    Fault("nn/shift.py", "k / count)", "k)", "grids: moved by whole steps", _GRIDS),
    Fault("nn/shift.py", "            layer._home = None", "            pass", "grids: all moved to one place", _GRIDS),
    Fault("nn/shift.py", " if id(buffer) not in own)", ")",
          "grids: the first one moves too", _GRIDS),
    Fault("nn/shift.py", "copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})", "copy.deepcopy(network)",
          "grids: weights of their own", _GRIDS),
    Fault("nn/ensemble.py", ".mean(0)", ".amax(0)", "grids: the maximum, not the mean", _GRIDS),
    Fault("nn/ensemble.py", ".mean(0)", ".sum(0)", "ensemble: the sum, not the mean", "test_ensemble"),
    Fault("lab/training/learner.py", "return loss * count", "return loss", "ensemble: each learns more slowly",
          _ENSEMBLE),
    Fault("lab/training/learner.py", "network.each(x).flatten(0, 1) if", "network(x) if",
          "ensemble: a loss of the mean", _ENSEMBLE),
    Fault("lab/tasks/base.py", "max(1, weights // count) if", "weights if", "ensemble: each has all weights",
          _ENSEMBLE),
    Fault("lab/tasks/base.py", "Ensemble(self.network(one, signature) for _ in range(count))",
          "Ensemble([self.network(one, signature)] * count)", "ensemble: one network several times", _ENSEMBLE),
    Fault("lab/runs/trained.py", "if isinstance(network, Ensemble):", "if False:",
          "ensemble: one last layer alone begins anew", _ENSEMBLE),
    Fault("lab/runs/trained.py", "config.network.grids > 1", "config.network.grids > 99",
          "grids: one, whatever was asked for", "lab/test_grids"),
    Fault("functional/border.py", "+ mean * (1 - F.pad(inside, sides))", "+ 0 * mean * (1 - F.pad(inside, sides))",
          "disc: zeros beyond its rim", _DISC),
    Fault("functional/border.py", "inside * (depth < RIM + 0.5)", "inside", "disc: the mean of all of it", _DISC),
    Fault("functional/border.py", "(min(space) / 2, nearest + 0.5)", "(max(space) / 2, nearest + 0.5)",
          "disc: as large as the longer side", _DISC),
    Fault("functional/border.py", "(sum(size % 2 == 0 for size in space))", "(0)",
          "disc: none in a side of one", _DISC),
    Fault("models/kit.py", '"disc" if self.disc else "zeros"', '"zeros" if self.disc else "zeros"',
          "disc: layers see a square frame", _DISC),
    Fault("exporting.py", "pads, before, mode = [DiscPad(layer.borders)]", "pads, before, mode = []",
          "disc: exported without its border", "test_export"),
    Fault("converting.py", "return torch.equal(mixed.flatten(1), out.flatten(1)[:, order])", "return True",
          "convert: layers that mix positions stay", _OWN),
    Fault("converting.py", "if type(layer).forward not in [kind.forward for kind in _CONV]:", "if False:",
          "convert: a convolution's own forward is forgotten", _OWN),
    Fault("converting.py", "return nn.Sequential(norm, *after) if after else norm", "return norm",
          "convert: the activation inside a norm is lost", _OWN),
    Fault("converting.py", 'raise _Cannot("has weights beside those of its layers: put them into a layer")', "pass",
          "convert: weights in the shape of images stay", _OWN),
]  # fmt: skip
