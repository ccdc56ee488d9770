"""Which of many points are corners of their hull: pairwise Frank-Wolfe steps on a Gram matrix.

For a point q the steps shrink the residual r = q - (a convex combination of the others and 0). As soon
as q is the farthest of all points in the direction r it is a corner, and r shows it.
"""

from __future__ import annotations

from pindown.geometry._compiled import allocating, entry


@allocating
def atom_index(atom, n):
    """Return the place of an atom's vector: points come first, then two atoms per coordinate."""
    return atom if atom < n else n + (atom - n) // 2


@allocating
def atom_scale(atom, n, low, high):
    """Return the factor of an atom: ``-low[k]`` and ``high[k]`` for the two sides of coordinate k."""
    if atom < n:
        return 1.0
    k = (atom - n) // 2
    return high[k] if (atom - n) % 2 else -low[k]


@allocating
def farthest(g, n, low, high, skip):
    """Return the atom with the largest product with r, leaving out ``skip``, and that product."""
    best, which = 0.0, -1  # -1 is the origin, whose product is 0
    for j in range(n):
        if g[j] > best and j != skip:
            best, which = g[j], j
    for k in range(len(low)):
        value = g[n + k]
        atom = n + 2 * k + 1 if value > 0.0 else n + 2 * k
        value = value * high[k] if value > 0.0 else -value * low[k]
        if value > best and atom != skip:
            best, which = value, atom
    return which, best


@allocating
def nearest(g, n, low, high, weight, support, count, origin):
    """Return the used atom with the smallest product with r, and that product."""
    least, which = (0.0, -1) if origin > 0.0 else (1e300, -2)
    for t in range(count):
        atom = support[t]
        value = atom_scale(atom, n, low, high) * g[atom_index(atom, n)]
        if value < least:
            least, which = value, atom
    return which, least


@allocating
def separate_one(gram, low, high, row, max_steps, margin, g, weight, support, r):
    """Return the steps it took to show that ``row`` is a corner, or -1; ``r`` holds the residual."""
    size = gram.shape[0]
    n = size - len(low)
    own, own_scale = atom_index(row, n), atom_scale(row, n, low, high)
    for j in range(size):
        g[j], r[j] = own_scale * gram[own, j], 0.0
    r[own] = own_scale
    for j in range(len(weight)):
        weight[j] = 0.0
    origin, count = 1.0, 0
    for step in range(max_steps):
        to, ahead = farthest(g, n, low, high, row)
        if own_scale * g[own] > ahead * (1.0 + margin):
            return step
        away, behind = nearest(g, n, low, high, weight, support, count, origin)
        if away in (to, -2):
            return -1
        i, p = (atom_index(to, n), atom_scale(to, n, low, high)) if to >= 0 else (0, 0.0)
        j, q = (atom_index(away, n), atom_scale(away, n, low, high)) if away >= 0 else (0, 0.0)
        curvature = p * p * gram[i, i] + q * q * gram[j, j] - 2.0 * p * q * gram[i, j]
        if curvature <= 0.0:
            return -1
        available = weight[away] if away >= 0 else origin
        move = min(available, (ahead - behind) / curvature)
        if to < 0:
            origin += move
        else:
            if weight[to] == 0.0:
                support[count] = to
                count += 1
            weight[to] += move
        if away < 0:
            origin -= move
        else:
            weight[away] -= move
            if weight[away] <= 0.0:
                weight[away] = 0.0
                count = drop(support, count, away)
        p, q = move * p, move * q
        r[i] -= p
        r[j] += q
        for k in range(size):
            g[k] -= p * gram[i, k] - q * gram[j, k]
    return -1


@allocating
def drop(support, count, atom):
    """Take an atom off the list and return the list's new length."""
    for t in range(count):
        if support[t] == atom:
            support[t] = support[count - 1]
            return count - 1
    return count


@entry
def separate(gram, low, high, rows, max_steps, margin, g, weight, support, residuals, steps):
    """Try every row of ``rows``; write residual coefficients and steps taken (-1: not shown).

    Args:
        gram: Products of the n points and of the d coordinate vectors, (n + d, n + d); d may be 0.
        low: Atom ``n + 2k`` is ``-low[k]`` times coordinate vector k, (d,).
        high: Atom ``n + 2k + 1`` is ``high[k]`` times it, (d,).
        rows: Atoms to try.
        max_steps: Steps for each.
        margin: By how much, relatively, a corner must be ahead of all others.
        g: Room for n + d numbers.
        weight: Room for n + 2d numbers.
        support: Room for n + 2d integers.
        residuals: Output, (len(rows), n + d).
        steps: Output, (len(rows),).
    """
    for t in range(len(rows)):
        steps[t] = separate_one(
            gram, low, high, rows[t], max_steps, margin, g, weight, support, residuals[t]
        )
