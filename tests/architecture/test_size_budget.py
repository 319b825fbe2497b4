"""Small rooms: functions about ten lines, none over fifty, files under four hundred."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    [*ROOT.glob("memoryos_pipeline/**/*.py"), *ROOT.glob("workers/*.py"), *ROOT.glob("migrations/**/*.py")]
)


def _functions() -> Iterator[tuple[str, int]]:
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.relative_to(ROOT)}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_functions_are_about_ten_lines() -> None:
    """The median function has at most ten lines."""
    assert median(lines for _, lines in _functions()) <= 10


def test_no_function_is_over_fifty_lines() -> None:
    """A function that does not fit a screen is two functions."""
    assert [name for name, lines in _functions() if lines > 50] == []


def test_no_file_is_over_four_hundred_lines() -> None:
    """A file that does not fit a head is two files."""
    sizes = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in SOURCES}

    assert {name: lines for name, lines in sizes.items() if lines > 400} == {}
