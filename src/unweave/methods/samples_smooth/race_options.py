"""How kinds of smooth units race for samples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RaceOptions:
    """Sizes, rows, and when a kind is dropped."""

    first_units: int = 4
    """Units of the first size when the caller gives no width."""
    growth: float = 2.0
    """Ratio of one size to the next."""
    most_units: int = 64
    """Units of the largest size."""
    surplus: tuple[float, ...] = (1.25, 1.5, 2.0)
    """Units of a start over the width that the caller gives."""
    fewest_equations: float = 1.5
    """Equations per parameter of the largest start."""
    screen_ridges: tuple[float, ...] = (1e-3, 1e-4, 1e-5)
    """Ridges of the screening fit, over the squared share that an affine part beside the units leaves, ..."""
    least_screened: float = 1e-8
    """... and the least one: it falls on while the ridge and not the kind of unit limits the fit."""
    screen_equations: float = 5.0
    """Equations per parameter that kinds are screened on, ..."""
    equations: float = 15.0
    """... and that units are found on."""
    kin: float = 0.15
    """Misfit of one kind's units as an imitation of another's, up to which they begin with those."""
    blurred: float = 0.1
    """Residual, over what an affine part leaves, above which kinds that imitate each other look alike: one of
    them is screened, the others where a fit is finished."""
    evident: float = 0.1
    """Ratio of a screening residual to the best one of the size before, below which a kind that only the
    ridge limits is finished before the others are screened, ..."""
    precise: float = 1e-8
    """... and the floor up to which this is so: coarser answers may agree with several kinds."""
    finish_ratio: float = 3.0
    """Ratio of residuals to the best one up to which a kind is settled, and then finished, ..."""
    finished: int = 3
    """... and how many kinds at most."""
    stay_ratio: float = 4.0
    """Ratio of screening residuals above which a kind is far behind, ..."""
    patience: int = 2
    """... and sizes after which it leaves the race: a start may have ended in a local minimum."""
    mends: int = 3
    """Rounds that add units to a fit that is nearly exact, while the residual falls."""
    mended: float = 0.7
    """Ratio of residuals of one round to the one before that makes another one worthwhile."""
    rounds: int = 2
    """Times that all sizes are tried."""
    near: float = 1e-2
    """Residual below which a fit is near enough to be mended."""
    nearly: float = 1e-4
    """Residual of a finished fit below which surplus units may be all that keeps it from being exact."""
    awaited: float = 0.3
    """Ratio of screening residuals after and before the units double, up to which the next size is awaited
    before a fit is finished."""
    falling: float = 0.6
    """Ratio of residuals after and before the units double, above which that was of no use ..."""
    useless: int = 2
    """... and sizes in a row of no use that end the growth."""
    work: float = 8.0
    """Seconds that all fits take, roughly. They are counted in steps and flops, so that the race ends at the
    same fit on every machine."""
    step_seconds: float = 1e-3
    """Seconds that one step of a fit takes besides its arithmetic ..."""
    flops_per_second: float = 2e10
    """... and the speed of that, measured on one thread."""
    least_curved: float = 1e-3
    """Share of the answers that an affine part leaves, below which the ridge falls no lower."""
    same_minimum: float = 1e-3
    """Relative difference of the residuals of fits that ended in one minimum."""
    final_entries: int = 6_000_000
    """Entries of the Jacobian of the last fit to noisy samples: it takes that many of the rows."""
