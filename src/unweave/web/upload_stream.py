"""A form with a file, read as it arrives: the file goes to disk piece by piece and never beyond a limit.

Names and types that the browser gives are only kept as text. What comes after the limit is read and dropped
for a while, because a browser shows the answer only once it has sent everything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from unweave.errors import InvalidInput
from unweave.web.run_request import FieldError

MOST_FIELD_BYTES = 64 * 1024
"""Of all fields but the file, with their names."""
MOST_FIELDS = 40
_DROPPED_UPLOADS = 4  # times the limit that is read and dropped before the connection is given up
_LEAST_DROPPED_BYTES = 16 * 2**20  # read and dropped even where the limit is small


class TooLarge(FieldError):
    """The upload is larger than allowed."""


@dataclass
class Form:
    """What arrived: texts by name, and the names of files as given, None if there was none."""

    fields: dict[str, str] = field(default_factory=dict)
    file_name: str | None = None
    file_bytes: int = 0
    other_names: dict[str, str] = field(default_factory=dict)
    """Names of further files, by field"""


async def read_form(
    stream: AsyncIterator[bytes],
    content_type: str,
    place: Path,
    most_bytes: int,
    file_field: str = "file",
    others: Mapping[str, Path] | None = None,
) -> Form:
    """Read a multipart form; its file is written to ``place``, further files by field to ``others``.

    Raises `TooLarge` when all files together have more than ``most_bytes``, `InvalidInput` when it is not
    such a form.
    """
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise InvalidInput("A run must be sent as multipart/form-data. Got another type instead.")
    with ExitStack() as opened:
        places = {file_field: place, **(others or {})}
        files = {name: opened.enter_context(path.open("wb")) for name, path in places.items()}
        parts = _Parts(files, most_bytes, file_field)
        parser = MultipartParser(boundary, parts.callbacks())
        received, most = 0, most_bytes + max(_DROPPED_UPLOADS * most_bytes, _LEAST_DROPPED_BYTES)
        async for piece in stream:
            received += len(piece)
            if received > most:
                break
            if parts.problem is None:
                try:
                    parser.write(piece)
                except (FormParserError, ValueError) as error:
                    parts.problem = InvalidInput(f"The form cannot be read ({error}). Send it again.")
    if parts.problem is not None:
        raise parts.problem
    if not parts.ended:
        raise InvalidInput("The form must arrive as a whole. Only its beginning arrived. Send it again.")
    return parts.form


class _Parts:
    """Takes the pieces that the parser names; remembers the first problem and ignores what follows."""

    def __init__(self, files: Mapping[str, BinaryIO], most_bytes: int, file_field: str) -> None:
        self.form = Form()
        self.problem: InvalidInput | None = None
        self.ended = False
        self._files, self._most, self._file_field = files, most_bytes, file_field
        self._file = files[file_field]
        self._seen: set[str] = set()
        self._header = self._value = self._disposition = b""
        self._name: str | None = None
        self._text: bytearray | None = None
        self._small = 0

    def callbacks(self) -> Any:
        """Return the callbacks of the parser."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_part_end": self._part_end,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._header = self._value = self._disposition = b""
        self._name = self._text = None

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]
        self._count(end - start)

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._count(end - start)

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._name = options.get(b"name", b"").decode("utf-8", errors="replace")
        if self._name in self._files and b"filename" in options:
            given = options[b"filename"].decode("utf-8", errors="replace")
            if self._name in self._seen:
                self._refuse(FieldError(self._name, "One file must be sent. Got two instead."))
            self._file = self._files[self._name]
            if given:  # browsers send an empty name when none was chosen
                self._seen.add(self._name)
                if self._name == self._file_field:
                    self.form.file_name = given
                else:
                    self.form.other_names[self._name] = given
            return
        self._text = bytearray()
        if len(self.form.fields) >= MOST_FIELDS:
            self._refuse(InvalidInput(f"A form must have at most {MOST_FIELDS} fields. This one has more."))

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self.problem is not None:
            return
        if self._text is not None:
            self._count(end - start)
            self._text += data[start:end]
            return
        self.form.file_bytes += end - start
        if self.form.file_bytes > self._most:
            for file in self._files.values():
                file.truncate(0)
            told = (
                f"The file must have at most {self._most / 2**20:g} MB. It is larger. Serve the page "
                "with a larger --max-upload-mb, or use the command line."
            )
            self._refuse(TooLarge(self._name or self._file_field, told))
            return
        self._file.write(data[start:end])

    def _part_end(self) -> None:
        if self._text is not None and self._name:
            self.form.fields[self._name] = self._text.decode("utf-8", errors="replace")

    def _end(self) -> None:
        self.ended = True

    def _count(self, size: int) -> None:
        self._small += size
        if self._small > MOST_FIELD_BYTES:
            self._header = self._value = b""
            self._text = bytearray()
            told = f"The fields must have at most {MOST_FIELD_BYTES} bytes in all. They have more."
            self._refuse(InvalidInput(told))

    def _refuse(self, problem: InvalidInput) -> None:
        self.problem = self.problem or problem
