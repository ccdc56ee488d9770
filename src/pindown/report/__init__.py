"""Findings as a page, as text, as Markdown and as JSON."""
