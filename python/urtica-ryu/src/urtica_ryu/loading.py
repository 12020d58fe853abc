"""Imports applications: modules, and files."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from urtica_ryu import python2


class LoadError(ValueError):
    """Applications cannot be run; the text says why, and what to do."""


def import_application(name: str) -> ModuleType:
    """Imports a file (`my_app.py`, `apps/my_app.py`) or a module (`my_apps.first`)."""
    try:
        path = Path(name)
        if path.is_file():
            return _import_file(path.resolve())
        if name.endswith(".py") or "/" in name:
            raise LoadError(f"there is no file {name}: expected a Python file, or the name of a module")
        return importlib.import_module(name)
    except SyntaxError as error:
        raise LoadError(
            f"{error.filename}:{error.lineno}: {error.msg}: the file is not Python 3. If it was written for Python 2, add "
            f"--from-python2, for which {python2.INSTALL} installs the translator"
        ) from None
    except python2.TranslatorMissing as error:
        raise LoadError(str(error)) from None
    except ModuleNotFoundError as error:
        raise LoadError(_missing(name, error.name or name)) from error
    except ImportError as error:
        member = re.match("cannot import name '(\\w+)'", error.msg or "")
        if member is None or not _is_ours(error.name or ""):
            raise
        raise LoadError(_missing(name, f"{error.name}.{member[1]}")) from error


def _is_ours(module: str) -> bool:
    return module.split(".")[0] in ("ryu", "os_ken")


def _missing(name: str, module: str) -> str:
    if module == name and "." not in name:
        return f"there is no file and no module {name}: expected a Python file, or the name of a module"
    needed = "" if module == name else f", which {name} imports"
    if _is_ours(module):
        return f"{module}{needed} is not supported yet: see 'What is not there yet' in the guide docs/ryu.md"
    return f"there is no module {module}{needed}: install it for {sys.executable}"


def _import_file(path: Path) -> ModuleType:
    """Imports a file by its name, so that others may import it, and its neighbours."""
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    loaded = sys.modules.get(path.stem)
    if loaded is not None and Path(getattr(loaded, "__file__", None) or "").resolve() == path:
        return loaded
    # Not by import_module: a module of the standard library may have the name.
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=python2.loader_of(path.stem, path))
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} is no Python file: expected a name that ends with .py")
    module = importlib.util.module_from_spec(spec)
    shadowed = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if shadowed is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = shadowed
        raise
    return module
