"""The table of methods. A new method is one folder and one line here."""

from __future__ import annotations

from unweave.methods.affine.method import METHOD as AFFINE
from unweave.methods.one_versus_rest.method import METHOD as ONE_VERSUS_REST
from unweave.methods.published.method import METHOD as PUBLISHED
from unweave.methods.quadratic_form.method import METHOD as QUADRATIC_FORM
from unweave.methods.rectified_deep.method import rectified_method
from unweave.methods.relu.method import METHOD as RELU
from unweave.methods.relu_coarse.method import METHOD as RELU_COARSE
from unweave.methods.relu_deep.method import METHOD as RELU_DEEP
from unweave.methods.relu_layers.method import METHOD as RELU_LAYERS
from unweave.methods.relu_pairs.method import METHOD as RELU_PAIRS
from unweave.methods.samples_deep.method import METHOD as SAMPLES_DEEP
from unweave.methods.samples_quadratic.method import METHODS as SAMPLES_QUADRATIC
from unweave.methods.samples_relu.method import METHODS as SAMPLES_RELU
from unweave.methods.samples_smooth.method import METHOD as SAMPLES_SMOOTH
from unweave.methods.samples_weighed.method import METHOD as SAMPLES_WEIGHED
from unweave.methods.smooth.method import METHOD as SMOOTH
from unweave.methods.smooth_coarse.method import METHOD as SMOOTH_COARSE
from unweave.methods.smooth_deep.method import METHOD as SMOOTH_DEEP
from unweave.methods.smooth_deep_values.method import METHOD as SMOOTH_DEEP_VALUES
from unweave.methods.smooth_patterns.method import METHOD as SMOOTH_PATTERNS
from unweave.methods.smooth_values.method import METHOD as SMOOTH_VALUES
from unweave.methods.smooth_wide.method import METHOD as SMOOTH_WIDE
from unweave.methods.trees.method import METHOD as TREES
from unweave.search import Method

METHODS: tuple[Method, ...] = (
    AFFINE,
    ONE_VERSUS_REST,
    QUADRATIC_FORM,
    RELU,
    RELU_DEEP,
    RELU_LAYERS,
    RELU_PAIRS,
    RELU_COARSE,
    SMOOTH,
    SMOOTH_COARSE,
    SMOOTH_WIDE,
    SMOOTH_VALUES,
    SMOOTH_PATTERNS,
    SMOOTH_DEEP,
    SMOOTH_DEEP_VALUES,
    rectified_method((RELU_DEEP, RELU_LAYERS)),
    TREES,
    PUBLISHED,
    *SAMPLES_QUADRATIC,
    *SAMPLES_RELU,
    SAMPLES_SMOOTH,
    SAMPLES_DEEP,
    SAMPLES_WEIGHED,
)
