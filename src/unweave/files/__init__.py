"""Networks in files: .npz, .json, .onnx and .safetensors, without pickle, exact to the last bit."""

from unweave.files.atomic import write_atomically, write_file
from unweave.files.contents import (
    DTYPES,
    Dtype,
    model_from_arrays,
    network_arrays,
    network_from_arrays,
    read_archive,
    rounded,
)
from unweave.files.formats import FORMATS, PICKLES, FileFormat, check_can_save, load, names_activations, save

__all__ = [
    "DTYPES",
    "FORMATS",
    "PICKLES",
    "Dtype",
    "FileFormat",
    "check_can_save",
    "load",
    "model_from_arrays",
    "names_activations",
    "network_arrays",
    "network_from_arrays",
    "read_archive",
    "rounded",
    "save",
    "write_atomically",
    "write_file",
]
