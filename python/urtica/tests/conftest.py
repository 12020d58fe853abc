"""The examples, as modules; and pytest's own fixture for tests of plugins."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

pytest_plugins = ["pytester"]
