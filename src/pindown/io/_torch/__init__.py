"""Torch modules in and out."""
