"""Phuong 2021, a thesis on underspecification in deep learning: its figures and tables."""
