"""The conditions that the identifiability theorem rests on: generality and transparency."""
