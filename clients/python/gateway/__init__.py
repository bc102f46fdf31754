"""A tool gateway for Writ in Python: a replacement of the built-in one (TG-7)."""

import sys
from pathlib import Path

# Generated code imports itself from the root of its folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gen"))
