"""The table of experiments. A new one is a function ``run_<name>`` in one of the modules, and a row here.

Nothing is measured, and no module with an experiment loaded, before its ``run`` is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module

from unweave.experiments.experiment import Experiment, Figure, Progress, Run

_IDENTIFICATION = "Dissertation on network identification"
_RELU = "Appendix on depth-2 ReLU networks with biases"
_GUARANTEES = "Recovery guarantees for one-hidden-layer networks"
_MATHEMATICS = "Study of the mathematics of deep learning"
_QUADRATIC_SOURCE = "Stationary points of quadratic networks"


def _rows(module: str, source: str, table: str) -> Iterator[Experiment]:
    """The experiments of a table, three lines each: name | place in the source | seconds; claim; setting."""
    lines = [line.strip() for line in table.strip().splitlines()]
    for head, claim, setting in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, place, seconds = head.split(" | ")
        yield Experiment(name, f"{source}, {place}", claim, setting, float(seconds), _run(module, name))


def _run(module: str, name: str) -> Run:
    def run(seed: int, progress: Progress) -> Iterable[Figure]:
        loaded = import_module(f"unweave.experiments.{module}")
        figures: Iterable[Figure] = getattr(loaded, f"run_{name.replace('-', '_')}")(seed, progress)
        return figures

    return run


_EXPERIMENT_ROWS = (
    *_rows(
        "shallow",
        _IDENTIFICATION,
        """
        wide-layers | Table 3.2 | 12
            Tanh layers of up to 2/5 D^2 units are recovered within seconds.
            6 of the 63 cells, D = 20 to 30; one network each, width told
        published-pipeline | Figures 3.3 and 3.4 | 6
            The printed algorithms find weights and signs, nearly the shifts.
            D = 20, m = 100 and 160, printed constants, without the final descent
        rank-one-components | section 2.7 | 3
            The power method finds all 2/5 D^2 rank-one matrices of a span.
            D = 20 and 35, exact spans
        learnability | Theorem 3.5 | 1
            Hessians show every unit: their learnability is bounded below.
            D = 20, m = 100 and 160
        """,
    ),
    *_rows(
        "deep",
        _IDENTIFICATION,
        """
        entangled-weights | Tables 4.3 and 4.5 | 8
            Hessians near one point show the entangled weights of all layers.
            50-25-10 units on 50 inputs, exact derivatives, one network per output activation
        deep-networks | Figures 1.5 and 4.5 to 4.7 | 10
            Deep networks are recovered from queries.
            50-25-10 and 50-35-25-10 units on 50 inputs, tanh outputs, widths told
        """,
    ),
    *_rows(
        "hermite",
        _RELU,
        """
        hermite-coefficients | Lemmas 3.5, 4.3 and D.13, Proposition B.1 | 1
            The Hermite coefficients of a ReLU unit have a closed form.
            orders 0 to 8 at 12 biases, against quadrature
        relu-from-coefficients | Algorithms 1 to 3 and 6 | 0.2
            Exact coefficients give all parameters back, signs included.
            5 to 20 units on 8 to 20 inputs, biases 0 and 1 among them
        sampled-coefficients | Algorithms 4 and 6 | 9
            From samples, coefficients and directions err like N^-1/2.
            5 units on 10 inputs, five networks, N = 100,000 and 1,600,000
        sign-ambiguity | Claim 4.8 | 0.1
            Dependent units can have two sets of signs for one function.
            5 units on 3 inputs, with and without biases
        """,
    ),
    *_rows(
        "tensors",
        _GUARANTEES,
        """
        activation-table | table of rho | 0.1
            rho(sigma) > 0 for ReLU and its kin, erf, tanh; not for z and z^2.
            sigma = 0.1, 1 and 10, by quadrature
        tensor-initialisation | algorithm | 0.2
            Tensors give v exactly and W nearly, a local method the rest.
            5 units on 10 and 20 inputs, 10,000 and 30,000 samples
        descent-rate | theorem on gradient descent | 0.4
            A step of 1/M0 leaves at most 1 - m0/M0 of the squared error.
            5 units on 10 inputs, squared ReLU and ReLU
        flat-directions | two examples without convexity | 0.1
            For z and z^2 the Hessian is singular at the truth.
            6 units on 6 inputs, W = I
        """,
    ),
    *_rows(
        "risk_minima",
        _MATHEMATICS,
        """
        dichotomies | Theorem 2.4.1 | 0.2
            A unit has as many patterns on N points as Cover's number says.
            1 to 5 inputs, 10 to 100 points
        exact-erm | Theorem 2.4.1 and Algorithm 1 | 0.2
            Two ReLU units of globally least loss are found, with a proof.
            1 and 2 inputs, 20 to 60 samples, with and without noise
        hinge-erm | Algorithm 1 | 3
            With the hinge loss the least loss is that of all patterns.
            5 cases of 6 samples, all 64 patterns and both signs by linear programs
        """,
    ),
    *_rows(
        "constructions",
        _MATHEMATICS,
        """
        piece-counts | Theorems 2.3.1, 2.3.2 and 2.3.10 | 0.3
            Deep networks have w^k pieces that cost shallow ones many gates.
            sawteeth of up to 243 pieces, zonotopes in up to 3 dimensions, exact fractions
        network-sizes | Theorems 2.2.1 and 2.2.2, section 2.5 | 0.2
            Piecewise linear functions, maxima and parities take few gates.
            10 and 50 pieces, maxima of up to 100, 3 and 8 bits, exact fractions
        """,
    ),
    *_rows(
        "circuits",
        _MATHEMATICS,
        """
        flat-networks | Theorem 2.2.1 | 2
            Any network has one of ceil(log2(n + 1)) hidden layers.
            three networks of 1 to 3 inputs and up to 3 hidden layers, exact fractions
        boolean-sizes | Lemma 2.5.1 and Proposition 2.5.3 | 0.2
            Boolean functions take a gate per variable of a Fourier term.
            4 and 8 bits, whole tables
        random-restrictions | Lemma 2.6.1 | 1
            Fixing most inputs at random removes most gates.
            64 to 1024 inputs, four left free, 4000 restrictions
        ordered-circuits | Lemma 2.E.1 | 0.3
            Circuits with an ordered first layer have a low rank.
            2 x 5 signs, one to three hidden layers
        """,
    ),
    *_rows(
        "gates",
        _MATHEMATICS,
        """
        relu-gate | Theorem 3.3.1 | 1
            A ReLU gate is learned from a stream at a linear rate.
            20 Gaussian inputs, 200 streams
        poisoned-gate | chapter 3 | 1
            Poisoned labels leave an error no larger than theta kappa/lambda.
            10 Gaussian inputs, three attacks, theta = 0.05 and 0.2
        glm-tron | Lemma 3.5.1 and Theorem 3.5.2 | 0.2
            GLM-Tron learns a gate whose labels an adversary moves.
            10 inputs, 500 samples, theta = 0 and 0.002
        benign-noise | Theorem 3.5.3 | 1
            Errors that nobody chooses leave a small loss.
            3 inputs, 500 and 8000 samples, 40 and 10 draws
        """,
    ),
    *_rows(
        "certificates",
        _MATHEMATICS,
        """
        support-recovery | Theorem 4.3.1 | 3
            One ReLU layer recovers the support of every sparse code.
            256 and 1024 inputs, 2 and 3 of twice as many atoms, 2000 codes
        certified-steps | Theorems 5.4.1 and 5.4.3 | 0.1
            RMSProp and ADAM reach a small gradient in a known time.
            sum of x^2/(1 + x^2) in 10 variables
        noise-resilience | Theorem 6.2.1 | 0.2
            Noise of a known size on the weights moves no answer far.
            two layers of 30 units, 100 draws
        """,
    ),
    *_rows(
        "quadratic",
        _QUADRATIC_SOURCE,
        """
        quadratic-threshold | theorems on generalisation | 0.1
            d (d + 1)/2 samples determine a network, one fewer does not.
            d = 10 and 20, twice as many units
        energy-barrier | theorem on the energy barrier | 0.1
            Weights of deficient rank have a risk of at least C s_min^4.
            d = 3, 5 and 10, by minimisation
        sample-barrier | theorem on the energy barrier, samples | 2
            On samples of any law, weights of deficient rank are kept out.
            d = 4, 400 samples of three laws
        quadratic-descent | theorems on initialisation and descent | 0.6
            A known start is below the barrier, and descent from it arrives.
            d = 10, m = 1600 and 20
        """,
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _EXPERIMENT_ROWS}
"""All experiments by name, in the order of the sources."""
