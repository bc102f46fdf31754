"""A client of Writ in Python: starts, watches, approves and cancels runs (SYS-2)."""

import sys
from pathlib import Path

# Generated code imports itself from the root of its folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gen"))
