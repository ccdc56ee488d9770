r"""Formulas for terminals: ``$\lVert w\rVert^2\le\epsilon$`` becomes ``‖w‖²≤ε``."""

from __future__ import annotations

import re
from unicodedata import normalize

_SYMBOLS = {
    "lVert": "‖", "rVert": "‖", "|": "‖", "lvert": "|", "rvert": "|", "mid": "|",
    "langle": "⟨", "rangle": "⟩", "lceil": "⌈", "rceil": "⌉", "{": "{", "}": "}",
    "sum": "Σ", "prod": "Π", "int": "∫", "nabla": "∇", "partial": "∂", "infty": "∞",
    "le": "≤", "ge": "≥", "ne": "≠", "ll": "≪", "gg": "≫", "approx": "≈", "propto": "∝", "in": "∈",
    "subseteq": "⊆", "cdot": "·", "times": "×", "circ": "∘", "pm": "±", "to": "→", "mapsto": "↦",
    "leftarrow": "←", "top": "ᵀ", "perp": "⊥", "angle": "∠", "forall": "∀", "exists": "∃",
    "bigoplus": "⊕", "dots": "...", "cdots": "...", "ell": "ℓ",
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "Delta": "Δ", "epsilon": "ε",
    "varepsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ", "Theta": "Θ", "kappa": "κ",
    "lambda": "λ", "Lambda": "Λ", "mu": "μ", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "phi": "φ", "varphi": "φ", "Phi": "Φ", "chi": "χ", "psi": "ψ", "omega": "ω",
    "Omega": "Ω", ",": " ", " ": " ", "big": "", "Big": "", "mathbb": "",
}  # fmt: skip
_WORDS = {"log", "ln", "exp", "sin", "cos", "arcsin", "max", "min", "sup", "inf", "arg", "dim"}
_ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304", "dot": "\u0307"}
_RAISED = str.maketrans("0123456789n+-T", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ⁺⁻ᵀ")
_ARGUMENT = r"(?:\{((?:[^{}]|\{[^{}]*\})*)\}|(\\[a-zA-Z]+|[^\s\\{}]))"


def plain(text: str) -> str:
    r"""Return a text with its formulas in plain letters.

    >>> plain(r"At most $(R/\gamma)^2$; $\hat w$, $\frac12\lVert w\rVert^2$, $\frac{a+b}{n-1}$.")
    'At most (R/γ)²; ŵ, 1/2 ‖w‖², (a+b)/(n-1).'
    """
    return normalize("NFC", re.sub(r"\$([^$]*)\$", lambda found: _formula(found[1]), text))


def _formula(tex: str) -> str:
    tex = re.sub(r"\\begin\{pmatrix\}(.*?)\\end\{pmatrix\}", _matrix, tex)
    tex = re.sub(r"\\(?:text|mathrm|mathbb)\{([^{}]*)\}", r" \1", tex)
    for name, shape in (("frac", _fraction), ("binom", _binomial), ("sqrt", _root)):
        arguments = _ARGUMENT * (1 if name == "sqrt" else 2)
        pattern = re.compile(rf"\\{name}\s*{arguments}")
        while pattern.search(tex):
            tex = pattern.sub(shape, tex, count=1)
    accents = "|".join(_ACCENTS)
    tex = re.sub(rf"\\({accents})(?![a-z])\s*{_ARGUMENT}", _accent, tex)
    tex = re.sub(r"\\([a-zA-Z]+) ?|\\([|{}, ])", _symbol, tex)
    tex = re.sub(
        r"\^(?:\{([0-9n+\-T]{1,3})\}|([0-9nT]))", lambda f: (f[1] or f[2]).translate(_RAISED), tex
    )
    tex = re.sub(r"([_^])\{(.)\}", r"\1\2", tex)
    while (simpler := re.sub(r"([_^])\{([^{}]*)\}", r"\1(\2)", tex)) != tex:  # the innermost first
        tex = simpler
    return re.sub(r" +(?=[ _^),])|(?<=\() +", "", tex).replace("^ᵀ", "ᵀ").strip()


def _accent(found: re.Match[str]) -> str:
    return f" {found[2] or found[3]}{_ACCENTS[found[1]]}"


def _symbol(found: re.Match[str]) -> str:
    name = found[1] or found[2]
    return f"{name} " if name in _WORDS else _SYMBOLS.get(name, name)


def _fraction(found: re.Match[str]) -> str:
    upper, lower = found[1] or found[2], found[3] or found[4]
    return f"{_grouped(upper)}/{_grouped(lower)} "


def _binomial(found: re.Match[str]) -> str:
    return f"C({found[1] or found[2]}, {found[3] or found[4]})"


def _root(found: re.Match[str]) -> str:
    inside = found[1] or found[2]
    return f"√{_grouped(inside)} "


def _grouped(part: str) -> str:
    simple = re.fullmatch(r"\\?[a-zA-Z]+|[\w.]+|.", part)
    return part if simple else f"({part})"


def _matrix(found: re.Match[str]) -> str:
    rows = [row.replace("&", ", ") for row in found[1].split(r"\\")]
    return "[" + "; ".join(rows) + "]"
