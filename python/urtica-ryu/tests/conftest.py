"""Ryu's names, and the table of calls."""

import sys
from pathlib import Path

import urtica_ryu

sys.path.insert(0, str(Path(urtica_ryu.__file__).parent / "names"))
sys.path.insert(0, str(Path(__file__).parent))
