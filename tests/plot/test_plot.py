"""Pictures on axes: what is drawn is what was measured; what was not is refused."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

import unweave

matplotlib.use("Agg")


def planted(*layers: int, activation: str = "tanh") -> unweave.Network:
    return unweave.random_network(list(layers), activation=activation, seed=1000, outer="normal")


@pytest.fixture(scope="module")
def smooth():
    return unweave.recover(planted(4, 5, 1))


@pytest.fixture(scope="module")
def kinked():
    return unweave.recover(planted(4, 3, 1, activation="relu"))


@pytest.fixture(autouse=True)
def _closed():
    yield
    matplotlib.pyplot.close("all")


def test_the_spectrum_is_that_of_the_evidence(smooth):
    axes = unweave.plot.spectrum(smooth)
    measured = np.asarray(smooth.evidence.spectrum)
    drawn = np.concatenate([line.get_ydata() for line in axes.lines if line.get_linestyle() == "None"])
    np.testing.assert_allclose(np.sort(drawn), np.sort(measured), rtol=1e-12)
    assert axes.get_xlabel()


def test_convergence_is_the_history(smooth):
    axes = unweave.plot.convergence(smooth)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), smooth.evidence.fit_history)


def test_profile_and_kinks(smooth, kinked):
    assert unweave.plot.profile(smooth).lines
    assert unweave.plot.kinks(kinked).lines


def test_axes_in_axes_out(smooth):
    figure, axes = matplotlib.pyplot.subplots(1, 2)
    assert unweave.plot.convergence(smooth, axes[0]) is axes[0]
    assert unweave.plot.weights(smooth, axes=axes[1]) is axes[1]
    assert figure.get_axes()[:2] == list(axes)


def test_what_was_not_measured_is_refused(smooth, kinked):
    with pytest.raises(unweave.InvalidInput, match=r"kinks on lines.*unweave\.plot\.spectrum"):
        unweave.plot.kinks(smooth)
    with pytest.raises(unweave.InvalidInput, match="singular values"):
        unweave.plot.spectrum(kinked)
    with pytest.raises(unweave.InvalidInput, match=r"what unweave\.recover returned. Got Network"):
        unweave.plot.convergence(smooth.network)
    with pytest.raises(unweave.InvalidInput, match=r"what unweave\.audit returned"):
        unweave.plot.leakage(smooth)


def test_weights_show_the_layer_and_its_names(smooth):
    axes = unweave.plot.weights(smooth.network, layer=-1)
    np.testing.assert_array_equal(axes.images[0].get_array(), smooth.network.weights[-1])
    with pytest.raises(unweave.InvalidInput, match="layer must be from -2 to 1"):
        unweave.plot.weights(smooth.network, layer=2)
    import pandas

    names = ["age", "income", "height", "weight"]
    frame = pandas.DataFrame(np.random.default_rng(1000).standard_normal((40, 4)), columns=names)
    named = unweave.recover(planted(4, 2, 1), examples=frame)
    axes = unweave.plot.weights(named)
    assert [label.get_text() for label in axes.get_yticklabels()] == names


def test_leakage_has_a_curve_per_level():
    audit = unweave.audit(planted(3, 2, 1), decimals=[3], budgets=[500, 5000])
    axes = unweave.plot.leakage(audit)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [level.label for level in audit.levels if any(p.level == level for p in audit.points)]
    point = audit.best(audit.levels[0], 5000)
    assert min(max(point.median_weight_error, 1e-16), 1.0) in axes.lines[0].get_ydata()
    assert audit.verdict.split()[0] in audit._repr_html_()
