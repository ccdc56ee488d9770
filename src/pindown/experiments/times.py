"""How long experiments take: CPU seconds of one core, measured; for the list and for estimates."""

from __future__ import annotations

QUICK: dict[str, float] = {
    "depth-separation": 0.1,
    "digits-margin": 29,
    "distillation-bias": 5.4,
    "distillation-geometry": 0.48,
    "distillation-monotonicity": 8.4,
    "double-descent": 4.4,
    "feature-scaling": 1.8,
    "flat-minima": 9.8,
    "fourier-bias": 15,
    "fourier-masks": 72,
    "frequency-loop": 0.22,
    "gate-horizons": 1.5,
    "harmonic-distortion": 0.1,
    "identifiability": 6.6,
    "illumination-signature": 0.57,
    "implicit-gradient-regularisation": 46,
    "intrinsic-dimension": 19,
    "invariant-kernels": 2.2,
    "inverse-stability": 2.7,
    "linear-bias": 12,
    "local-maxima-ablations": 42,
    "local-maxima-grid": 49,
    "local-maxima-noise": 54,
    "local-maxima-one-class": 44,
    "local-maxima-signs": 22,
    "local-maxima-survival": 13,
    "max-pooling": 20,
    "mirror-symmetry": 6.7,
    "multi-exit-anytime": 150,
    "multi-exit-budget": 140,
    "multi-exit-few-labels": 68,
    "multi-exit-teachers": 170,
    "multi-exit-temperature": 130,
    "multi-exit-times": 3.1,
    "mutual-autoencoder-categorical": 36,
    "mutual-autoencoder-encoders": 26,
    "mutual-autoencoder-normal": 17,
    "mutual-autoencoder-text": 51,
    "ntk-spectral-bias": 8.7,
    "ntk-versus-network": 13,
    "optimiser-gap": 86,
    "optimisers-full-batch": 79,
    "optimisers-hessian": 28,
    "optimisers-image-size": 42,
    "optimisers-mini-batch": 96,
    "optimisers-shift": 41,
    "optimisers-vgg": 43,
    "orbit-simulations": 2.3,
    "pac-bayes-certificate": 25,
    "pac-bayes-clusters": 7.5,
    "pac-bayes-images": 25,
    "parameterisation-probe": 3.8,
    "random-noise": 2,
    "residual-margin": 14,
    "rotated-digits": 19,
    "sparse-coding-digits": 7.1,
    "sparse-coding-gradient": 3,
    "sparse-coding-landscape": 2,
    "sparse-coding-recovery": 1.6,
    "steepest-descent": 4.7,
    "symmetry-learning": 18,
    "texture-shape": 26,
    "training-path": 36,
    "two-layer-margin": 18,
    "typical-networks": 20,
}
# Of paper scale only what was run, or extrapolated from single cells of it.
PAPER: dict[str, float] = {}


def expected_seconds(name: str, scale: str = "quick") -> float | None:
    """Return the CPU seconds that an experiment took at a scale; None where it was not measured.

    >>> expected_seconds("identifiability", "huge") is None
    True
    """
    return {"quick": QUICK, "paper": PAPER}.get(scale, {}).get(name)
