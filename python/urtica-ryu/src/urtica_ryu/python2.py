"""Programs that were written for Python 2: translated while they are imported, in memory. Needs the package fissix."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

#: What installs the translator.
INSTALL = f"{sys.executable} -m pip install fissix"


class TranslatorMissing(Exception):
    """The package fissix is not installed."""


def translated(text: str, name: str) -> str:
    """Returns a Python 2 program as one of Python 3; raises TranslatorMissing, and SyntaxError where it is neither."""
    pgen2, refactor = _fissix()
    # Whoever writes print(a, b) in a file that Python 3 reads means its function.
    options = {"print_function": _is_python3(text, name)}
    tool = refactor.RefactoringTool(refactor.get_fixers_from_package("fissix.fixes"), options)
    try:
        return str(tool.refactor_string(text if text.endswith("\n") else text + "\n", name))
    except pgen2.parse.ParseError as error:
        line = error.context[1][0]
        raise SyntaxError(f"neither Python 3 nor Python 2: {error.msg}", (name, line, None, None)) from None


def _fissix() -> tuple[Any, Any]:
    """Returns its modules, which tell of each step in logs."""
    logging.getLogger("RefactoringTool").setLevel(logging.WARNING)
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        from fissix import pgen2, refactor
    except ImportError:
        raise TranslatorMissing(f"--from-python2 needs the package fissix: install it with {INSTALL}") from None
    finally:
        logging.disable(before)
    return pgen2, refactor


def _is_python3(text: str, name: str) -> bool:
    try:
        compile(text, name, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class Loader(importlib.machinery.SourceFileLoader):
    """Imports a translated file, and writes nothing."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # type: ignore[override]
        text = translated(importlib.util.decode_source(data), str(path))
        return compile(text, path, "exec", dont_inherit=True, optimize=_optimize)

    def get_code(self, fullname: str) -> Any:
        # Not that of an earlier import without translation.
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class Finder:
    """Finds modules in the folders of programs, before others do, and has them translated."""

    def __init__(self) -> None:
        self._folders: set[str] = set()

    def add(self, folder: Path) -> None:
        """Adds a folder, and those below."""
        self._folders.add(str(folder))

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """Returns the module's description; None if it is elsewhere, or no Python file."""
        searched = sorted(self._folders) if path is None else [each for each in path if self._has(each)]
        spec = importlib.machinery.PathFinder.find_spec(fullname, searched, target) if searched else None
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        spec.loader = Loader(fullname, spec.origin)
        return spec

    def _has(self, folder: str) -> bool:
        return any(Path(folder).is_relative_to(each) for each in self._folders)


_finder: Finder | None = None


def enable() -> None:
    """Has programs' files translated from now on."""
    global _finder
    if _finder is None:
        _finder = Finder()
        sys.meta_path.insert(0, _finder)


def loader_of(name: str, path: Path) -> Loader | None:
    """Returns what imports a program's file, whose neighbours are translated, too; None unless files are translated."""
    if _finder is None:
        return None
    _finder.add(path.parent)
    return Loader(name, str(path))
