"""Runs Ryu programs on Urtica.

`baton` runs one thread of a program at a time, `hub` has what its tasks wait for, `patched` the standard library's. `structs`
and `oxm` encode and decode; `link` connects to the native controller, `loading` and `manager` are ryu-manager. `names` has the
modules that programs import: `python -m urtica_ryu` alone puts it on the path, so that a real Ryu is never shadowed.
"""
