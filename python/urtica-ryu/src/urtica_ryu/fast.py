"""Fast paths: exact instances of hot classes are encoded and decoded by the extension of the package `urtica`.

What is unusual about a class, a value or a frame is left to the Python code, which is the reference: it decides on results and
errors.
"""

from __future__ import annotations

from urtica._native import Codec

#: What all modules share.
CODEC = Codec()
