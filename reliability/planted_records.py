"""Faults to plant in the recipes, the table and the pictures of the records."""

from fault import Fault

AFFINE = "studies/test_data_mnist::test_"
TABLES = "studies/test_tables::test_"
REPORT = "studies/test_report::test_"
STUDIES = "../../studies"

_RECORDS = [
    Fault(
        "lab/evaluation/elements.py::transforms_of",
        'count = 16 if group in ("sim2", "gl2") else 24',
        'count = {"o2": 12, "sim2": 8, "gl2": 8}.get(group, 24)',
        "every network turned to angles of its own",
    ),
    Fault(
        "lab/data/volumes.py::load",
        "boxed(images, size)",
        "boxed(images, None)",
        "no box around volumes",
    ),
    Fault(
        "lab/evaluation/inputs.py::_volumes",
        "centred(volume, trained.signature.space) if boxed else volume",
        "volume",
        "volumes predicted without their box",
    ),
    Fault("models/kit.py::DiscMean.forward", "clamp(max=0.5)) ** 2", "clamp(max=0.0)) ** 2", "a disc that is a square"),
    Fault(
        "lab/data/augment.py::Augmentation._signs",
        "signs[:, d - count :] -=",
        "signs[:, :count] -=",
        "photographs stood on their heads",
    ),
    Fault(
        "lab/tasks/columns.py::areas_of_classes",
        "output.double().log_softmax(-1)",
        "output",
        "logits taken for probabilities",
    ),
    Fault(
        "lab/folds.py::train_folds",
        "check_same_settings(folder, chosen, LATER)",
        "pass",
        "folds of other settings reported as new",
    ),
    Fault(
        "lab/sweep/plan.py::plan",
        "if entry.run.config_file.is_file():",
        "if False:",
        "a sweep of other settings goes on",
    ),
    Fault(
        "lab/evaluation/scores.py::scores",
        "trained.signature).eval()",
        "trained.signature)",
        "a test loss of smoothed labels",
    ),
    Fault(
        "lab/data/split.py::Joined.__init__",
        "self.side, self.voxels, self.whole = first.side, first.voxels, first.whole",
        "self.voxels, self.whole = first.voxels, first.whole",
        "joined scans forget their spacing",
    ),
    Fault(
        "lab/report/page.py::against_moves",
        'axis == "angle" and not any(',
        'axis == "angle" or any(',
        "a circle closed that is none",
    ),
    Fault(
        "../../studies/networks.py::Network.alike",
        ' if run["environment"]["machine"] == self.machine]',
        "]",
        "minutes of two machines averaged",
    ),
    Fault(
        "lab/data/augment.py::Augmentation.matrices",
        "about[:, :2, :2] =",
        "about[:, 1:, 1:] =",
        "volumes spun off their feet",
    ),
    Fault(
        "lab/tasks/base.py::fills_corners",
        "varied > inside / 2",
        "varied > 2 * inside",
        "corners that are full unseen",
    ),
    Fault(
        "lab/evaluation/scores.py::in_precision",
        "if name in AUTOCAST else",
        "if False else",
        "tested in another precision",
    ),
    Fault(
        "lab/evaluation/elements.py::_how",
        "AS_DATA.get(trained.config.transformation, str(trained.config.network.group))",
        "str(trained.config.network.group)",
        "generated images moved by the network's group",
    ),
    Fault(
        "../../studies/data/pcam.py::AnyTurn.forward.turned",
        "(images, targets, draws), draws)",
        "(images, targets, draws))",
        "tissue turned by numbers that no seed gives",
    ),
    Fault("../../studies/networks.py::measures", 'moves["accuracy"][0]', 'moves["upright"]', "cut images scored whole"),
    Fault(
        "lab/training/learner.py::windows_stay", "return len(seen) == 1", "return True", "compiled anew at every step"
    ),
    Fault(
        "../../studies/data/matrices.py::Matrices.draw.turned",
        "np.stack([cos, -sin, sin, cos], -1)",
        "np.stack([cos, sin, -sin, cos], -1)",
        "generated digits turn clockwise",
    ),
    Fault(
        "../../studies/data/matrices.py::Matrices.draw.ranges",
        "ranges = (self.turn, self.zoom, self.stretch, self.stretch, self.slant)",
        "ranges = (self.turn, self.zoom, self.stretch, self.slant, self.slant)",
        "one stretch is a slant",
    ),
    Fault(
        "../../studies/data/matrices.py::places",
        "limit - lit.max(0)",
        "limit + lit.max(0)",
        "affine digits leave the view",
    ),
    Fault(
        "../../studies/data/matrices.py::transformed",
        "np.ceil(reach - _ROUNDING)",
        "np.ceil(0 * reach)",
        "shrunk digits aliased",
    ),
    Fault(
        "lab/data/digits.py::load",
        "digits.images[rows] / 16), rotations(torch.from_numpy(angles))",
        "digits.images[rows] / 16).float(), rotations(torch.from_numpy(angles)).float()",
        "other digits on other processors",
    ),
    Fault(
        "../../studies/data/mnist.py::_loaded",
        'variant if split == "test" else',
        'variant if split != "test" else',
        "affine digits in training",
    ),
    Fault(
        "../../studies/data/mnist.py::rows.begin",
        "in _PARTS[: _PARTS.index(split)])",
        "in _PARTS[: min(2, _PARTS.index(split))])",
        "settled on test digits",
    ),
    Fault(
        "../../studies/data/mnist.py::outside",
        '"outside", variant, 0',
        '"outside", "rotated about mass", 0',
        "digits outside moved in another way",
    ),
    Fault(
        "../../studies/data/mnist.py::rows",
        "permutation(dealt[:needed])",
        "permutation(dealt)[:needed]",
        "a new deal takes the spare digits",
    ),
    Fault(
        "lab/data/split.py::Split.share",
        ": max(1, round(share * len(members)))",
        ": round(share * len(targets))",
        "a share of the labels not of each class",
    ),
    Fault(
        "lab/training/train.py::keep_best.kept",
        "run.last_checkpoint if training.train_on_val else run.best_checkpoint",
        "run.best_checkpoint",
        "an epoch picked by images that were learned",
    ),
    Fault(
        "lab/session.py::Session.train",
        '"valid": splits["valid"]}) if training.train_on_val',
        "}) if training.train_on_val",
        "--train-on-val learns from nothing more",
    ),
    Fault(
        "lab/evaluation/scores.py::accuracies",
        "for own in outputs[1:]",
        "for own in outputs",
        "upright images among the moved ones",
    ),
    Fault(
        "../../studies/recipes.py::PCAM",
        '"plain": {**PLAIN, "parameters": 117_000}',
        '"plain": {**PLAIN, "parameters": 60_000}',
        "a plain network half as large",
    ),
    Fault("lab/runs/line.py::training_of", "last[-n:]", "last[:n]", "the first epochs for the last"),
    Fault(
        "../../studies/networks.py::ahead.interval",
        "combined([(1, both[0]), (-1, both[1])])",
        "combined([(1, both[0])])",
        "a difference with the interval of one",
    ),
    Fault(
        "../../studies/networks.py::Network._over_images.images",
        'first["transformed"]["images"] if measure.endswith(OF_MOVES) else first["images"]',
        'first["images"]',
        "an interval over images that were not moved",
    ),
    Fault(
        "../../studies/networks.py::Network._over_images",
        'images, sum(table[1]) / first["images"] if len(table) == 2 else 0.5)',
        "images)",
        "an interval of classes that are even",
    ),
    Fault(
        "../../studies/networks.py::Network.estimate",
        "over_both(seeds, images) if images else seeds",
        "seeds",
        "an interval that leaves out the test images",
    ),
    Fault(
        "../../studies/paired.py::_places",
        'mnist.rows("test", int(line["seed"]) + 1) for line in lines',
        "np.arange(160 * i, 160 * i + 160) for i in range(len(lines))",
        "deals of the same digits taken for other digits",
    ),
    Fault(
        "../../studies/paired.py::_mean_of",
        "math.sqrt(count / (count - 1)) if count > 1 else 1.0",
        "0.0",
        "seeds that are not drawn",
    ),
    Fault(
        "../../studies/front.py::Shown.tested",
        '"validation images, " if',
        '"" if',
        "validation images under a caption of test images",
    ),
    Fault(
        "../../studies/networks.py::Network.mark",
        'if any(run["environment"]["uncommitted"] for run in self.runs)',
        "if False",
        "uncommitted changes unsaid",
    ),
    Fault(
        "lab/runs/line.py::append", "if data and there and data != there:", "if False:", "runs on other data averaged"
    ),
    Fault(
        "lab/runs/line.py::check_committed",
        'if commit and "+" in commit and not told:',
        "if False:",
        "uncommitted changes kept",
    ),
    Fault("lab/runs/line.py::append", "if line in lines:", "if False:", "a run kept twice"),
]

TESTS = {
    "a new deal takes the spare digits": "studies/test_data_mnist::test_deals_share_out_the_same_digits",
    "every network turned to angles of its own": "lab/test_elements",
    "no box around volumes": "lab/test_data_volumes",
    "volumes predicted without their box": "truth/test_predict::test_a_volume_file_is_read_row_by_row",
    "a disc that is a square": "core/test_disc",
    "photographs stood on their heads": "lab/test_augment",
    "logits taken for probabilities": "truth/test_tables::test_areas_are_scikit_learns_with_ties_and_certainty",
    "folds of other settings reported as new": "lab/test_labelled",
    "a sweep of other settings goes on": "lab/test_sweep",
    "a test loss of smoothed labels": "lab/test_scores",
    "joined scans forget their spacing": "lab/test_volume_folders",
    "a circle closed that is none": "lab/test_report::test_only_whole_circles_are_closed",
    "minutes of two machines averaged": TABLES + "minutes_are_those_of_the_machine_that_most_runs_were_on",
    "volumes spun off their feet": "lab/test_augment",
    "corners that are full unseen": "lab/test_small_folders",
    "tested in another precision": "lab/test_scores",
    "generated images moved by the network's group": "lab/test_elements",
    "tissue turned by numbers that no seed gives": "studies/test_data_pcam_augment",
    "cut images scored whole": TABLES + "networks_have_the_interval_of_seeds_and_images",
    "compiled anew at every step": "lab/test_elements",
    "generated digits turn clockwise": AFFINE + "matrices_are_a_turn_after_a_slant_after_a_stretch",
    "one stretch is a slant": AFFINE + "matrices_are_a_turn_after_a_slant_after_a_stretch",
    "affine digits leave the view": AFFINE + "affine_digits_stay_in_view",
    "other digits on other processors": "lab/test_demo::test_generated_digits_are_the_same_on_other_processors",
    "settled on test digits": "studies/test_data_mnist::test_generated_splits_do_not_overlap",
    "digits outside moved in another way": "studies/test_data_mnist::test_generated_variants_move_the_digit_as_said",
    "shrunk digits aliased": AFFINE + "images_are_moved_by_their_matrices_and_not_aliased",
    "affine digits in training": AFFINE + "affine_digits_stay_in_view",
    "a share of the labels not of each class": "lab/test_record::"
    "test_a_share_of_the_labels_is_of_each_class_alike_and_grows",
    "an epoch picked by images that were learned": "lab/test_learned::"
    "test_a_run_with_validation_images_too_keeps_its_last_epoch",
    "--train-on-val learns from nothing more": "lab/test_learned::"
    "test_a_run_with_validation_images_too_keeps_its_last_epoch",
    "upright images among the moved ones": "truth/test_equivariance_measure::"
    "test_scores_of_transformed_images_leave_out_the_unrotated_ones",
    "a plain network half as large": REPORT + "ours_and_plain_have_equal_parameters_and_one_recipe[pcam]",
    "the first epochs for the last": "lab/test_line::test_epochs_become_means_and_the_best_one",
    "a difference with the interval of one": TABLES
    + "differences_without_the_images_have_both_variances_and_only_pairs_with_runs",
    "an interval of classes that are even": TABLES + "networks_have_the_interval_of_seeds_and_images",
    "an interval over images that were not moved": TABLES + "networks_have_the_interval_of_seeds_and_images",
    "an interval that leaves out the test images": TABLES + "networks_have_the_interval_of_seeds_and_images",
    "deals of the same digits taken for other digits": "studies/test_paired::"
    "test_of_deals_of_the_same_digits_the_digits_are_drawn",
    "seeds that are not drawn": "studies/test_paired::test_one_network_has_the_interval_of_its_seeds_and_images",
    "validation images under a caption of test images": "studies/test_front::"
    "test_jitter_pooling_and_validation_images_are_said_of_the_configuration",
    "uncommitted changes unsaid": TABLES + "what_was_run_with_uncommitted_changes_says_so_in_every_table",
    "runs on other data averaged": "lab/test_line::test_a_run_is_appended_once_and_never_another_in_its_place",
    "uncommitted changes kept": "lab/test_line::test_a_run_is_appended_once_and_never_another_in_its_place",
    "a run kept twice": "lab/test_line::test_a_run_is_appended_once_and_never_another_in_its_place",
}

FAULTS = [f._replace(test=TESTS[f.what]) for f in _RECORDS]
