"""The package can be imported in any engine's environment."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import modelprobe_hooks
import pytest

SOURCES = sorted(Path(modelprobe_hooks.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_imports_only_the_standard_library(path: Path) -> None:
    """Every import is the package's own or the standard library's, and nothing of the project's."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    assert found <= {*sys.stdlib_module_names, "modelprobe_hooks"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_is_python_3_9(path: Path) -> None:
    """The grammar is that of Python 3.9, and annotations are not evaluated."""
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    lazy = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
    )
    assert lazy or path.name == "__init__.py"
