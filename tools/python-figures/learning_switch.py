"""Runs the learning switch of docs/python.md. Arguments: the port to listen on, and the address."""

import sys
from pathlib import Path

import urtica

sys.path.append(str(Path(__file__).resolve().parents[2] / "python/urtica/examples"))

from learning import Learning

if __name__ == "__main__":
    port, host = sys.argv[1:]
    urtica.run(Learning, listen=f"ptcp:{port}:{host}", shards=1)
