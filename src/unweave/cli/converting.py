"""``unweave convert``: a network file in another format."""

from __future__ import annotations

from pathlib import Path

from unweave.cli.comparing import load_network
from unweave.cli.console import print_line, stdout_console
from unweave.cli.exits import DONE
from unweave.cli.jsonable import print_json
from unweave.cli.show import describe
from unweave.errors import InvalidInput, UnweaveError
from unweave.files import check_can_save, load, rounded, save


def run_convert(source: Path, target: Path, dtype: str, activations: str | None, as_json: bool) -> int:
    """Write the network in ``source`` to ``target`` and return the exit code, 0."""
    check_can_save(target, dtype)
    network = load_network(source, activations)
    if target.exists() and target.samefile(source):
        raise InvalidInput(f"B must be another file than A. Got {str(target)!r} for both instead.")
    written = rounded(network, dtype)
    save(network, target, dtype)  # type: ignore[arg-type]  # checked above
    if load(target) != written:
        raise UnweaveError(
            f"{str(target)!r} must hold the parameters of {str(source)!r} bit for bit. Got others instead "
            f"when it was read back. Write it again, on another disk."
        )
    exact = written == network
    if as_json:
        print_json(
            {
                "a": source,
                "b": target,
                "network": describe(network),
                "n_parameters": network.n_parameters,
                "dtype": dtype,
                "exact": exact,
            }
        )
    else:
        how = "bit for bit" if exact else f"rounded to {dtype}"
        what = f"{describe(network)}, {network.n_parameters} parameters, {how}"
        print_line(stdout_console(), f"WROTE {target} {what}")
    return DONE
