"""Reproduction."""
