"""The table of experiments. A new one is a function ``run_<name>`` in one of the modules, and a row here.

Nothing is measured, and no module with an experiment loaded, before its ``run`` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from unweave.experiments.experiment import Experiment, Figure, Progress, Run

if TYPE_CHECKING:
    from unweave.experiments.study import Study

_IDENTIFICATION = "Dissertation on network identification"
_RELU = "Appendix on depth-2 ReLU networks with biases"
_GUARANTEES = "Recovery guarantees for one-hidden-layer networks"
_MATHEMATICS = "Study of the mathematics of deep learning"
_QUADRATIC_SOURCE = "Stationary points of quadratic networks"


def _rows(module: str, source: str, table: str) -> Iterator[Experiment]:
    """The claims of a table, three lines each: name | place | lines | seconds; claim; setting."""
    for name, place, origin, seconds, claim, setting in _entries(table):
        yield Experiment(name, f"{source}, {place}", claim, setting, seconds, _run(module, name), origin)


def _entries(table: str) -> Iterator[tuple[str, str, str, float, str, str]]:
    lines = [line.strip() for line in table.strip().splitlines()]
    for head, claim, setting in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, place, origin, seconds = head.split(" | ")
        yield name, place, origin, float(seconds), claim, setting


def _studies(module: str, source: str, table: str) -> Iterator[Experiment]:
    """The studies of a table, in the same form; the seconds are those of the quick size."""
    for name, place, origin, seconds, claim, setting in _entries(table):
        study = _study(module, name)
        yield Experiment(name, f"{source}, {place}", claim, setting, seconds, _quick(study), origin, study)


def _study(module: str, name: str) -> Callable[[], Study]:
    def load() -> Study:
        loaded: Study = getattr(
            import_module(f"unweave.experiments.studies.{module}"), name.replace("-", "_").upper()
        )
        return loaded

    return load


def _quick(study: Callable[[], Study]) -> Run:
    def run(seed: int, progress: Progress) -> Iterable[Figure]:
        return study().run(seed, progress)

    return run


def _run(module: str, name: str) -> Run:
    def run(seed: int, progress: Progress) -> Iterable[Figure]:
        loaded = import_module(f"unweave.experiments.{module}")
        figures: Iterable[Figure] = getattr(loaded, f"run_{name.replace('-', '_')}")(seed, progress)
        return figures

    return run


_EXPERIMENT_ROWS = (
    *_studies(
        "teacher_student",
        _IDENTIFICATION,
        """
        sgd-samples | Figure 1.2 | L858-895 | 2
            Stochastic gradients find small teachers from many samples.
            8 x 8 numbers of samples and units, D = 25, 30,000 steps for ten minutes of a GPU
        sgd-dimension | Figure 1.3 | L897-917 | 2
            A training of given length fails as the dimension grows.
            D = 15 to 50, four orders of units, 20,000 steps for ten minutes of a GPU
        sgd-rates | Figure 1.4 | L901-924 | 2
            No learning rate finds the networks of the quadratic regime.
            D = 50, five widths and four rates, 5,000 steps for fifty minutes of a GPU
        sgd-depth | Figure 1.5 | L938-1000 | 7
            Four layers are learned worse than three; high rates are better.
            50-25-10 and 50-35-25-10 units, six rates, 20,000 steps for two hours of a GPU
        """,
    ),
    *_studies(
        "wide",
        _IDENTIFICATION,
        """
        wide-grid | Table 3.2, Figures 3.3 and 3.4 | L6915-6997 | 1
            Algorithm 3.1 finds weights, signs and nearly the shifts.
            all 63 cells, D = 20 to 50, by Algorithm 3.1 without its descent and by the default route
        shift-bounds | Figure 3.5 | L7003-7064 | 3
            Descent improves the shifts; residuals do not add up.
            D = 50, m = 50, 80, ..., 620
        """,
    ),
    *_rows(
        "shallow",
        _IDENTIFICATION,
        """
        wide-layers | Table 3.2 | L6987-6999 | 12
            Tanh layers of up to 2/5 D^2 units are recovered within seconds.
            6 of the 63 cells, D = 20 to 30; one network each, width told
        published-pipeline | Figures 3.3 and 3.4 | L6931-6984 | 6
            The printed algorithms find weights and signs, nearly the shifts.
            D = 20, m = 100 and 160, printed constants, without the final descent
        rank-one-components | section 2.7 | L8634 | 3
            The power method finds all 2/5 D^2 rank-one matrices of a span.
            D = 20 and 35, exact spans
        learnability | Theorem 3.5 | L5568 | 1
            Hessians show every unit: their learnability is bounded below.
            D = 20, m = 100 and 160
        """,
    ),
    *_rows(
        "frames",
        _IDENTIFICATION,
        """
        local-maximizers | Theorems 2.3 and 2.6, Remark 3.5 | L1981, L2724, L5547 | 0.3
            Maximizers are told by two tests, and lie near the weights.
            6 to 8 weights in 6 dimensions, 20 in 200; R = 2 to 6
        whitened-weights | section 1.5 | L1265-1273 | 0.1
            Whitening makes weights orthonormal; dual lines show profiles.
            6 unlike units in 6 and 9 dimensions
        passive-derivatives | (1.17) | L1149 | 1
            Labels alone give mean derivatives if the law is known.
            4 inputs from a mixture of two Gaussians, 20,000 and 320,000 samples
        """,
    ),
    *_studies(
        "transition",
        _IDENTIFICATION,
        """
        concentration | Figures 4.2 and 4.3 | L8508-8556 | 4
            Hessians must be taken near a point, and units be few enough.
            D = 100, 10 outputs, L = 2, 3, 4, five radii, four shapes, 200 to 1500 units; and half of it
        transition | Figure 4.4 | L8563-8583 | 2
            The span of Hessians is lost at m = D m_L units.
            D = 50, 4, 6 and 8 outputs, 0.6 to 1.4 times D m_L units
        """,
    ),
    *_studies(
        "entangled",
        _IDENTIFICATION,
        """
        entangled-tables | Tables 4.2 to 4.7 | L9385-9519 | 4
            Hessians near a point show the entangled weights of all layers.
            all 12 rows: three networks, two outputs, exact derivatives and differences
        completion-curves | Figures 4.5 to 4.7 | L9554-9669 | 20
            Scales and shifts are learned up to the error of the rest.
            three networks, two outputs, 10,000 steps for 20 minutes of a GPU
        """,
    ),
    *_rows(
        "deep",
        _IDENTIFICATION,
        """
        entangled-weights | Tables 4.3 and 4.5 | L9398-9405, L9447-9451 | 8
            Hessians near one point show the entangled weights of all layers.
            50-25-10 units on 50 inputs, exact derivatives, one network per output activation
        layer-rules | section 4.3.1 and the note on Tables 4.4 and 4.5 | L8758-8790, L9481-9486 | 1
            Rays tell an orthogonal first layer; the radius can adapt.
            12-6-8 units on 12 inputs, five networks each, exact derivatives
        deep-networks | Figures 1.5 and 4.5 to 4.7 | L981-1000, L9620-9669 | 10
            Deep networks are recovered from queries.
            50-25-10 and 50-35-25-10 units on 50 inputs, tanh outputs, widths told
        """,
    ),
    *_rows(
        "hermite",
        _RELU,
        """
        hermite-coefficients | Lemmas 3.5, 4.3 and D.13, Proposition B.1 | L96, L202, L255, L1179 | 1
            The Hermite coefficients of a ReLU unit have a closed form.
            orders 0 to 8 at 12 biases, against quadrature
        relu-from-coefficients | Algorithms 1 to 3 and 6 | L1415-1420 | 0.2
            Exact coefficients give all parameters back, signs included.
            5 to 20 units on 8 to 20 inputs, biases 0 and 1 among them
        sampled-coefficients | Algorithms 4 and 6 | L410-417, L1420 | 9
            From samples, coefficients and directions err like N^-1/2.
            5 units on 10 inputs, five networks, N = 100,000 and 1,600,000
        sign-ambiguity | Claim 4.8 | L385 | 0.1
            Dependent units can have two sets of signs for one function.
            5 units on 3 inputs, with and without biases
        """,
    ),
    *_rows(
        "robust",
        _RELU,
        """
        robust-coefficients | Lemma D.10, Claims A.4 to D.8, Fact 4.7 | L68, L360, L659, L955-1024 | 0.2
            Coefficients with small errors give parameters with small errors.
            40 sequences in fractions, 30 random matrices each
        smoothed-analysis | Corollary 3.3 | L1516-1530 | 0.5
            Weights moved at random are separated, whatever they were.
            12 units on 6 inputs in parallel pairs, tau = 0.3 to 0.03
        """,
    ),
    *_rows(
        "tensors",
        _GUARANTEES,
        """
        activation-table | table of rho | L211-222 | 0.1
            rho(sigma) > 0 for ReLU and its kin, erf, tanh; not for z and z^2.
            sigma = 0.1, 1 and 10, by quadrature
        tensor-initialisation | algorithm | L117-124 | 0.2
            Tensors give v exactly and W nearly, a local method the rest.
            5 units on 10 and 20 inputs, 10,000 and 30,000 samples
        linear-time-start | complexity | L99, L331 | 3
            The start takes time linear in the number of inputs.
            3 units on 50 and 200 inputs, 200 samples per input
        descent-rate | theorem on gradient descent | L261-271 | 0.4
            A step of 1/M0 leaves at most 1 - m0/M0 of the squared error.
            5 units on 10 inputs, squared ReLU and ReLU
        flat-directions | two examples without convexity | L249 | 0.1
            For z and z^2 the Hessian is singular at the truth.
            6 units on 6 inputs, W = I
        """,
    ),
    *_rows(
        "risk_minima",
        _MATHEMATICS,
        """
        dichotomies | Theorem 2.4.1 | L655 | 0.2
            A unit has as many patterns on N points as Cover's number says.
            1 to 5 inputs, 10 to 100 points
        exact-erm | Theorem 2.4.1 and Algorithm 1 | L655-663 | 0.2
            Two ReLU units of globally least loss are found, with a proof.
            1 and 2 inputs, 20 to 60 samples, with and without noise
        hinge-erm | Algorithm 1 | L653-663 | 3
            With the hinge loss the least loss is that of all patterns.
            5 cases of 6 samples, all 64 patterns and both signs by linear programs
        """,
    ),
    *_rows(
        "constructions",
        _MATHEMATICS,
        """
        piece-counts | Theorems 2.3.1, 2.3.2 and 2.3.10 | L500, L506, L629 | 0.3
            Deep networks have w^k pieces that cost shallow ones many gates.
            sawteeth of up to 243 pieces, zonotopes in up to 3 dimensions, exact fractions
        network-sizes | Theorems 2.2.1 and 2.2.2, section 2.5 | L472, L484 | 0.2
            Piecewise linear functions, maxima and parities take few gates.
            10 and 50 pieces, maxima of up to 100, 3 and 8 bits, exact fractions
        approximations | Theorems 2.2.3, 2.3.6 and 2.3.10 (ii) | L488, L549, L583, L632 | 0.5
            Few pieces approximate a jump in the mean, and no sawtooth.
            7 and 31 cells, sawteeth of up to 16 sides, 4 to 16 inputs
        """,
    ),
    *_rows(
        "circuits",
        _MATHEMATICS,
        """
        flat-networks | Theorem 2.2.1 | L472 | 2
            Any network has one of ceil(log2(n + 1)) hidden layers.
            three networks of 1 to 3 inputs and up to 3 hidden layers, exact fractions
        boolean-sizes | Lemma 2.5.1 and Proposition 2.5.3 | L802, L816 | 0.2
            Boolean functions take a gate per variable of a Fourier term.
            4 and 8 bits, whole tables
        random-restrictions | Lemma 2.6.1 | L930 | 1
            Fixing most inputs at random removes most gates.
            64 to 1024 inputs, four left free, 4000 restrictions
        ordered-circuits | Lemma 2.E.1 | L1106 | 0.3
            Circuits with an ordered first layer have a low rank.
            2 x 5 signs, one to three hidden layers
        """,
    ),
    *_rows(
        "gates",
        _MATHEMATICS,
        """
        relu-gate | Theorem 3.3.1 | L1220 | 1
            A ReLU gate is learned from a stream at a linear rate.
            20 Gaussian inputs, 200 streams
        poisoned-gate | chapter 3 | L1301 | 1
            Poisoned labels leave an error no larger than theta kappa/lambda.
            10 Gaussian inputs, three attacks, theta = 0.05 and 0.2
        glm-tron | Lemma 3.5.1 and Theorem 3.5.2 | L1518, L1526 | 0.2
            GLM-Tron learns a gate whose labels an adversary moves.
            10 inputs, 500 samples, theta = 0 and 0.002
        benign-noise | Theorem 3.5.3 | L1536 | 1
            Errors that nobody chooses leave a small loss.
            3 inputs, 500 and 8000 samples, 40 and 10 draws
        """,
    ),
    *_rows(
        "estimates",
        _MATHEMATICS,
        """
        gate-recursion | Lemma 3.E.1 and Theorem 3.D.1 | L1655, L1697 | 0.1
            A recursion with noise meets its target in a known time.
            six recursions, all paths of 12 steps
        critical-dictionary | Lemma 4.5.2, (4.4) to (4.7) | L1899, L2119-2215 | 1
            Near a dictionary the parts of the gradient are small.
            64 and 256 inputs, 2 of twice as many atoms
        """,
    ),
    *_studies(
        "dictionaries",
        _MATHEMATICS,
        """
        gradient-table | Table 4.6.1 | L2036-2056 | 1
            Near a dictionary the gradient is small, and falls with h.
            all 35 cells with the implied bias, 20 points (published: 200)
        dictionary-slices | Figures 4.6.1 and 4.6.2 | L2058-2060 | 1
            The dictionary is at the bottom of a well of the loss.
            h = 256 and 4096, p = 0.01, 0.1, 0.3, bias 2 and the one that Table 4.6.1 implies
        dictionary-descent | Table 4.6.2 | L2062-2073 | 1
            Descent from far away covers most of the way (corrected).
            h = 256 to 4096, with the implied bias, at most 300 steps, 1000 signals
        """,
    ),
    *_studies(
        "autoencoders",
        _MATHEMATICS,
        """
        adaptive-shift | Figures 5.6.1 and 5.E.1 | L2686-2693, L3243-3252 | 3
            A larger shift helps ADAM to smaller gradients.
            digits for MNIST, 1 hidden layer of 50 units (published: 1000), 600 steps (published: 10^5)
        hessian-along | Figure 5.6.2 | L2695-2706 | 3
            NAG lifts the lowest eigenvalue of the Hessian along training.
            digits for MNIST, 1 hidden layer of 30 units (published: 300), 400 steps
        autoencoder-training | Figures 5.6.3, 5.6.4, 5.F.1 to 5.F.6 | L2708-2741, L3256-3299 | 3
            ADAM learns better with beta_1 = 0.99 than with 0.9.
            digits for MNIST, 8 x 8 and 5 x 5 pixels, 1 to 5 hidden layers of 50 units, 10^5 steps
        """,
    ),
    *_studies(
        "pac_bayes",
        _MATHEMATICS,
        """
        pac-bayes | Figures 6.4.2, 6.5.3, 6.E.2 and 6.F.1 | L3504-3552, L3989-3996 | 2
            A bound from a cluster of networks is below the spectral one.
            n = 20, a = 2, 6 and 10, depths 2 to 8, width 800; clusters of 25, and of 3
        pac-bayes-digits | Figures 6.4.1, 6.5.1, 6.5.2 and 6.E.1 | L3491-3502, L3527-3539, L3982 | 2
            The same on images.
            digits for CIFAR-10; depths 2 to 8, widths 100 and 400; clusters of 3 (published: 25)
        """,
    ),
    *_rows(
        "certificates",
        _MATHEMATICS,
        """
        support-recovery | Theorem 4.3.1 | L1795 | 3
            One ReLU layer recovers the support of every sparse code.
            256 and 1024 inputs, 2 and 3 of twice as many atoms, 2000 codes
        certified-steps | Theorems 5.4.1 and 5.4.3 | L2640, L2652 | 0.1
            RMSProp and ADAM reach a small gradient in a known time.
            sum of x^2/(1 + x^2) in 10 variables
        noise-resilience | Theorem 6.2.1 | L3407 | 0.2
            Noise of a known size on the weights moves no answer far.
            two layers of 30 units, 100 draws
        noisy-mixtures | Theorems 6.1.1, 6.1.2 and 6.2.1 | L3353, L3369, L3407 | 0.5
            Noise around one of several networks moves no answer far.
            16 coins, clusters of 4 networks 6-12-3, 100 draws
        """,
    ),
    *_rows(
        "quadratic",
        _QUADRATIC_SOURCE,
        """
        quadratic-threshold | theorems on generalisation | L175-185 | 0.1
            d (d + 1)/2 samples determine a network, one fewer does not.
            d = 10 and 20, twice as many units
        energy-barrier | theorem on the energy barrier | L135-160 | 0.1
            Weights of deficient rank have a risk of at least C s_min^4.
            d = 3, 5 and 10, by minimisation
        sample-barrier | theorem on the energy barrier, samples | L135-160 | 2
            On samples of any law, weights of deficient rank are kept out.
            d = 4, 400 samples of three laws
        quadratic-descent | theorems on initialisation and descent | L221-260, L396 | 0.6
            A known start is below the barrier, and descent from it arrives.
            d = 10, m = 1600 and 20
        """,
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _EXPERIMENT_ROWS}
"""All experiments by name, in the order of the sources."""
