"""Open a target as its run will, to tell at once whether it can be used. Runs in a process of its own.

    python -m unweave.web.upload_check MOST_BYTES

takes no more memory than that. It reads a line of JSON per question, ``{"folder", "request",
"most_unpacked"}``, and answers with a line, either ``{"found": {"inputs", "outputs", ...}}`` or ``{"error",
"field"}``. A file that brings the reader down, takes too long or too much memory costs this process, not
the server.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from unweave.errors import InvalidInput, UnweaveError
from unweave.files import load
from unweave.files.tables import read_table
from unweave.targets.adapters.file_target import open_file_target
from unweave.targets.samples import Samples
from unweave.web.inspect_file import inspect_file
from unweave.web.limits import limit_memory
from unweave.web.run_folder import RunFolder
from unweave.web.run_request import COMPARE, TABLE, FieldError, RunRequest

_WORDS = (
    (r"^path must\b", "The file must"),
    (r"^--table must\b", "The table must"),
    (r"--outputs\b", "Answers per row"),
    (r"^(x|y|x and y) must\b", "The table must"),
    (r"Give them: load\(path.*", "Add them: unweave convert A B --activations tanh,identity."),
    (r"^input_dim\b", "Number of inputs"),
)
"""What the library calls things -> what the page calls them."""
_MOST_MESSAGE_CHARACTERS = 1000  # an ONNX runtime may quote a whole graph


def open_table(path: Path, outputs: int | None) -> Samples:
    """Return the samples in an uploaded table."""
    samples = Samples(*read_table(str(path), outputs))
    if len(samples) < 2:
        raise InvalidInput(f"The table must have two rows or more. Got {len(samples)} instead.")
    return samples


def check_target(folder: RunFolder, request: RunRequest, most_unpacked: int) -> dict[str, Any]:
    """Return what the uploaded file of ``request`` holds; `InvalidInput` if it cannot be used."""
    path = folder.target(request)
    inspect_file(path, most_unpacked)
    if request.task == COMPARE:
        return _check_pair(folder, request, most_unpacked)
    if request.kind == TABLE:
        samples = open_table(path, request.outputs)
        return {"inputs": samples.n_inputs, "outputs": int(samples.y.shape[1]), "rows": len(samples)}
    source = open_file_target(path)
    declared = source.n_inputs
    if declared is None and request.inputs is None:
        raise FieldError("inputs", "Number of inputs must be given, because the file does not say it.")
    if declared is not None and request.inputs not in (None, declared):
        raise FieldError(
            "inputs",
            f"Number of inputs must be {declared}, as the file says. Got {request.inputs} instead. Leave it "
            "empty.",
        )
    return {"inputs": declared or request.inputs, "outputs": getattr(source, "n_outputs", None)}


def _check_pair(folder: RunFolder, request: RunRequest, most_unpacked: int) -> dict[str, Any]:
    """Return what both files of a comparison hold; `FieldError` names the one that cannot be used."""
    first = load(folder.target(request))
    other = folder.other(request)
    try:
        inspect_file(other, most_unpacked)
        load(other)
    except (UnweaveError, OSError) as error:
        raise FieldError("other", worded(error, other, request.other_name)) from error
    return {"inputs": first.n_inputs, "outputs": first.n_outputs}


def worded(message: object, path: Path, name: str) -> str:
    """Reword a message of the library for the page: the user's name of the file instead of its path."""
    text = " ".join(str(message).split())
    for written in {str(path), str(path.resolve())}:
        text = text.replace(written, name)
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text if len(text) <= _MOST_MESSAGE_CHARACTERS else f"{text[:_MOST_MESSAGE_CHARACTERS]} ..."


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question with plain values for JSON."""
    folder, request = RunFolder(Path(question["folder"])), RunRequest.from_dict(question["request"])
    path = folder.target(request)
    try:
        return {"found": check_target(folder, request, question["most_unpacked"])}
    except (UnweaveError, OSError) as error:
        return {"error": worded(error, path, request.name), "field": getattr(error, "field", "file")}
    except MemoryError:
        return {"error": "The file must fit into memory. It does not.", "field": "file"}
    except Exception as error:  # a reader that was not prepared for this file
        reason = worded(f"{type(error).__name__}: {error}", path, request.name)
        return {
            "error": f"The file must be readable. It is not ({reason}).",
            "field": "file",
        }


def main(most_bytes: int) -> None:
    """Answer until there are no more questions, in ``most_bytes`` of memory."""
    limit_memory(most_bytes)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
