"""Runs Ryu programs on Urtica.

`baton` runs one thread of a program at a time, `hub` has what its tasks wait for, `patched` the standard library's. `structs`
and `oxm` encode and decode; `link` connects to the native controller, `loading` and `manager` are ryu-manager. `names` has the
modules that programs import: only `use_names` puts it on the path, so that a real Ryu is not shadowed elsewhere. `simulated`
runs programs in simulated networks.
"""

import sys
from pathlib import Path

_NAMES = str(Path(__file__).parent / "names")


def use_names() -> None:
    """Makes `ryu` and `os_ken` importable: those of this package, before any that are installed.

    Raises ImportError if another one has been imported before.
    """
    for name in ("ryu", "os_ken"):
        paths = list(getattr(sys.modules.get(name), "__path__", ()))
        if paths and not paths[0].startswith(_NAMES):
            raise ImportError(f"{name} of {paths[0]} has been imported: call urtica_ryu.use_names() before", name=name)
    if _NAMES not in sys.path:
        sys.path.insert(0, _NAMES)
