"""Runs a Ryu program by os-ken, by Ryu's names. Arguments: the program's file, the port to listen on, options of os-ken."""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from pathlib import Path

# Threads of the system would not run one at a time, and its spanning tree needs timeouts that raise.
os.environ.setdefault("OSKEN_HUB_TYPE", "eventlet")

from os_ken.lib import hub  # noqa: E402

hub.patch(thread=False)

import os_ken  # noqa: E402
from os_ken import cfg, log  # noqa: E402
from os_ken.base import app_manager  # noqa: E402
from os_ken.topology import switches  # noqa: E402, F401


class Alias(importlib.abc.Loader):
    def __init__(self, module):
        self.module = module

    def create_module(self, spec):
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if not name.startswith("ryu."):
            return None
        module = importlib.import_module("os_ken." + name.removeprefix("ryu."))
        return importlib.machinery.ModuleSpec(name, Alias(module))


def main():
    app_manager.RyuApp = app_manager.OSKenApp
    sys.modules["ryu"] = os_ken
    sys.meta_path.insert(0, Finder())
    program, port, *options = sys.argv[1:]
    sys.path.insert(0, str(Path(program).parent))
    # Imports make options known.
    importlib.import_module(Path(program).stem)
    cfg.CONF(project="os_ken", args=["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", port, *options])
    log.init_log()
    app_manager.AppManager.run_apps([Path(program).stem, "os_ken.controller.ofp_handler"])


if __name__ == "__main__":
    main()
