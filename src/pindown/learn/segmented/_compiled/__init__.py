"""Compiled loops of segmented regression: moments, envelopes, relaxation, joints, search."""

from pathlib import Path

from pindown.compiling import compiler

compiled = compiler(Path(__file__).parent)
