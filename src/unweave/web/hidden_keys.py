"""What a process writes into its log, without the key of the endpoint. All of the log passes here."""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO
from urllib.parse import quote

from unweave.web.run_request import RunRequest


class Hide:
    """Replaces the key that a request names, in every spelling in which an endpoint may echo it."""

    def __init__(self, request: RunRequest) -> None:
        key = os.environ.get(request.token_env or "", "").strip()
        spellings = {key, repr(key)[1:-1], json.dumps(key)[1:-1], quote(key), quote(key, safe="")}
        self._texts = sorted(filter(None, spellings), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return ``text`` without the key."""
        for spelling in self._texts:
            text = text.replace(spelling, "***")
        return text


class HidingStream:
    """A text stream that passes whole lines on to ``stream``, with every secret replaced by stars."""

    def __init__(self, stream: TextIO, hide: Hide) -> None:
        self._stream, self._hide, self._begun = stream, hide, ""

    def write(self, text: str) -> int:
        """Take ``text``; what does not end in a newline waits for the rest of its line."""
        *lines, self._begun = (self._begun + text).split("\n")
        if lines:
            self._stream.write(self._hide("\n".join(lines)) + "\n")
        return len(text)

    def flush(self) -> None:
        """Hand whole lines over to the system."""
        self._stream.flush()

    def finish(self) -> None:
        """Hand everything over."""
        self._stream.write(self._hide(self._begun))
        self._begun = ""
        self._stream.flush()


def hide_in_log(hide: Hide) -> tuple[HidingStream, HidingStream]:
    """Let everything that Python writes to the log pass through ``hide`` from now on."""
    streams = HidingStream(sys.stdout, hide), HidingStream(sys.stderr, hide)
    sys.stdout, sys.stderr = streams
    return streams
