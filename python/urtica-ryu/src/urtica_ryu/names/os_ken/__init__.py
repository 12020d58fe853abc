"""os-ken's names: `os_ken.X` is `ryu.X`, and OSKenApp is RyuApp."""

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType


class _Alias(importlib.abc.Loader):
    def __init__(self, module: ModuleType):
        self.module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        # It has been executed by its own name, which it keeps.
        module.__spec__ = self.spec


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith("os_ken."):
            return None
        module = importlib.import_module("ryu." + name.removeprefix("os_ken."))
        return importlib.machinery.ModuleSpec(name, _Alias(module))


sys.meta_path.insert(0, _Finder())
