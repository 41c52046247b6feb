"""Slow oracles, straight from the definitions. Small functions; append at the end.

A game is an array of ``2**n`` values in the order of `design.masks.all_masks`:
bit i of the position says whether feature i is kept. A coalition is a Python set or
tuple of kept features.
"""

import math
from itertools import chain, combinations, permutations

import numpy as np
from scipy.special import bernoulli


def n_features_of(game):
    return int(len(game)).bit_length() - 1


def subsets(features, smallest=0, largest=None):
    features = sorted(features)
    largest = len(features) if largest is None else largest
    sizes = range(smallest, largest + 1)
    return chain.from_iterable(combinations(features, size) for size in sizes)


def value(game, coalition):
    return game[sum(1 << i for i in coalition)]


def parity(position, term):
    """chi_S at the mask with this number: kept = +1, removed = -1."""
    return math.prod(1 if position >> i & 1 else -1 for i in term)


# ---------------------------------------------------------------- spectra
def spectrum(game):
    """a_S = E[f chi_S], one S at a time."""
    n = n_features_of(game)
    return {
        term: sum(game[x] * parity(x, term) for x in range(len(game))) / len(game)
        for term in subsets(range(n))
    }


def game_of_spectrum(coefs, n):
    return np.array(
        [sum(a * parity(x, term) for term, a in coefs.items()) for x in range(1 << n)]
    )


def moebius(game):
    """m_S = sum_{T in S} (-1)^(|S|-|T|) f(T)."""
    n = n_features_of(game)
    return {
        term: sum((-1) ** (len(term) - len(t)) * value(game, t) for t in subsets(term))
        for term in subsets(range(n))
    }


# ---------------------------------------------------------------- values, indices
def shapley_by_permutations(game):
    """Average marginal contribution over all n! orders."""
    n = n_features_of(game)
    phi = np.zeros(n)
    for order in permutations(range(n)):
        for position, i in enumerate(order):
            before = order[:position]
            phi[i] += value(game, (*before, i)) - value(game, before)
    return phi / math.factorial(n)


def derivative(game, term, coalition):
    """Discrete derivative of f in the direction ``term`` at ``coalition``."""
    return sum(
        (-1) ** (len(term) - len(t)) * value(game, (*coalition, *t))
        for t in subsets(term)
    )


def _weighted_derivatives(game, term, weight):
    """Sum of weight(|T|, |S|) times the derivative at T, over all T outside S."""
    s = len(term)
    others = set(range(n_features_of(game))) - set(term)
    return sum(weight(len(t), s) * derivative(game, term, t) for t in subsets(others))


def bii(game, order):
    n = n_features_of(game)
    return {
        term: _weighted_derivatives(game, term, lambda t, s: 0.5 ** (n - s))
        for term in subsets(range(n), 1, order)
    }


def sii(game, order):
    n = n_features_of(game)

    def weight(t, s):
        return math.factorial(t) * math.factorial(n - t - s) / math.factorial(n - s + 1)

    return {
        term: _weighted_derivatives(game, term, weight)
        for term in subsets(range(n), 1, order)
    }


def k_sii(game, order):
    """The recursion over the order: k-SII(S) gains B_{k-|S|} * sum of larger SII."""
    n = n_features_of(game)
    base = sii(game, order)
    numbers = bernoulli(order)  # B_1 = -1/2
    out = {}
    for k in range(1, order + 1):
        for term in subsets(range(n), 1, k):
            larger = combinations(set(range(n)) - set(term), k - len(term))
            total = sum(base[tuple(sorted((*term, *extra)))] for extra in larger)
            out[term] = out.get(term, 0.0) + numbers[k - len(term)] * total
    return out


def stii(game, order):
    n = n_features_of(game)
    out = {term: derivative(game, term, ()) for term in subsets(range(n), 1, order - 1)}
    for term in subsets(range(n), order, order):
        out[term] = _weighted_derivatives(
            game, term, lambda t, s: order / n / math.comb(n - 1, t)
        )
    return out


def indicator_design(n, order):
    """Columns [S in kept] of all S up to ``order``, rows = all masks."""
    terms = list(subsets(range(n), 0, order))
    rows = [
        [float(all(x >> i & 1 for i in term)) for term in terms] for x in range(1 << n)
    ]
    return terms, np.array(rows)


def fbii(game, order):
    """Least squares over all masks, equally weighted; holds () too."""
    terms, design = indicator_design(n_features_of(game), order)
    solution = np.linalg.lstsq(design, game, rcond=None)[0]
    return dict(zip(terms, solution, strict=True))


def fsii(game, order):
    """Least squares under the Shapley kernel, exact at both ends; holds () too."""
    n = n_features_of(game)
    terms, design = indicator_design(n, order)
    ends = [0, len(game) - 1]
    inner = np.arange(1, len(game) - 1)
    kept = np.array([bin(x).count("1") for x in inner])
    weight = np.array([(n - 1) / (math.comb(n, t) * t * (n - t)) for t in kept])
    gram = design[inner].T @ (weight[:, None] * design[inner])
    right = design[inner].T @ (weight * game[inner])
    constraint = design[ends]
    system = np.block([[gram, constraint.T], [constraint, np.zeros((2, 2))]])
    solution = np.linalg.lstsq(system, np.append(right, game[ends]), rcond=None)[0]
    return dict(zip(terms, solution[: len(terms)], strict=True))


# ---------------------------------------------------------------- metrics
def ball_positions(n, radius=None):
    """Numbers of the masks in N_radius: 1 to radius removed; None = all masks."""
    removed = [n - bin(x).count("1") for x in range(1 << n)]
    return [x for x, k in enumerate(removed) if radius is None or 1 <= k <= radius]


def interpretation_error(game, explained, p=2, radius=None):
    rows = ball_positions(n_features_of(game), radius)
    gaps = [abs(game[x] - explained[x]) for x in rows]
    return (sum(gap**p for gap in gaps) / len(gaps)) ** (1 / p)


def truthful_gap(game, explained, terms):
    residual = spectrum(np.asarray(game) - np.asarray(explained))
    return sum(residual[term] ** 2 for term in terms)


def game_from_interactions(interactions, base, n):
    """g(mask) = base + sum of the interactions inside the kept features."""
    out = np.full(1 << n, float(base))
    for term, v in interactions.items():
        inside = [x for x in range(1 << n) if all(x >> i & 1 for i in term)]
        out[inside] += v
    return out


def error_norm(game, explained, p, radius=None, threshold=0.1):
    """I_p with p = inf (largest error) or "L0" (share of errors >= threshold) too."""
    rows = ball_positions(n_features_of(game), radius)
    gaps = [abs(game[x] - explained[x]) for x in rows]
    if p == "L0":
        return sum(gap >= threshold for gap in gaps) / len(gaps)
    if p == math.inf:
        return max(gaps)
    return interpretation_error(game, explained, p, radius)


def r_squared(game, explained, radius=None):
    rows = ball_positions(n_features_of(game), radius)
    mean = sum(game[x] for x in rows) / len(rows)
    lost = sum((game[x] - explained[x]) ** 2 for x in rows)
    return 1 - lost / sum((game[x] - mean) ** 2 for x in rows)


def infidelity(game, explained, radius=None, scale=1.0):
    """Mean squared gap between the drop that g predicts (times scale) and f's drop."""
    rows = ball_positions(n_features_of(game), radius)
    said = [scale * (explained[-1] - explained[x]) for x in rows]
    true = [game[-1] - game[x] for x in rows]
    return sum((a - b) ** 2 for a, b in zip(said, true, strict=True)) / len(rows)


def inconsistency(game, models, owners):
    """I_total, D_total and the bound on their sum, for k games and owners[mask]."""
    k, size = len(models), len(game)
    mean = sum(models) / k
    inside = [[x for x in range(size) if owners[x] == i] for i in range(k)]

    def norm(function, rows):
        return math.sqrt(sum(function[x] ** 2 for x in rows) / size)

    return (
        sum(norm(game - models[i], inside[i]) for i in range(k)),
        sum(math.sqrt(sum(v**2 for v in spectrum(g - mean).values())) for g in models),
        sum(norm(game - mean, inside[i]) for i in range(k)),
    )


def best_of_size(game, size, largest=True):
    """The largest (smallest) value among the masks that keep ``size`` features."""
    members = [x for x in range(len(game)) if bin(x).count("1") == size]
    return (max if largest else min)(game[x] for x in members)


# ---------------------------------------------------------------- Bayesian regression
def prior_variance(prior, term):
    """v_S by definition: what all orders and products give to one term."""
    n, size, total = len(prior.relevance), len(term), 0.0
    if not term:
        return prior_constant(prior)
    if size <= len(prior.orders):
        all_of_size = combinations(range(n), size)
        norm = sum(math.prod(prior.relevance[i] for i in t) for t in all_of_size)
        own = math.prod(prior.relevance[i] for i in term)
        total += prior.orders[size - 1] * own / norm
    for rates, weights in zip(prior.rates, prior.products.T, strict=True):
        share = math.prod((1 + math.exp(-w)) / 2 for w in rates)
        share *= math.prod(math.tanh(rates[i] / 2) for i in term)
        total += weights[size % 2] * share
    return total


def prior_constant(prior):
    """Variance that products give to the empty term, beside its flat prior."""
    return sum(
        weight * math.prod((1 + math.exp(-w)) / 2 for w in rates)
        for rates, weight in zip(prior.rates, prior.products[0], strict=True)
    )


class GaussianProcess:
    """Regression on all ``2**n`` values at once, from the definition of the prior.

    ``f = a_0 + sum_S a_S chi_S + white``, a flat prior on ``a_0``, white in an even and
    an odd part. Posterior means and covariances are of f on every mask, white included.
    """

    def __init__(self, prior, n):
        terms = list(subsets(range(n), 1))
        chi = np.array([[parity(x, term) for term in terms] for x in range(1 << n)])
        variance = np.array([prior_variance(prior, term) for term in terms])
        even, odd = prior.white
        self.n = n
        self.smooth = (chi * variance) @ chi.T
        self.whole = self.smooth + (even + odd) * np.eye(1 << n)
        self.whole += (even - odd) * np.eye(1 << n)[::-1]  # the complements

    def condition(self, functional, y):
        """Mean, covariance and scale of f given ``functional @ f = y (rows,)``."""
        k = functional @ self.whole @ functional.T
        inverse = np.linalg.inv(k)
        ones = functional.sum(axis=1)
        total = ones @ inverse @ ones
        centre = ones @ inverse @ y / total
        gain = self.whole @ functional.T @ inverse
        mean = centre + gain @ (y - centre * ones)
        doubt = 1 - gain @ ones
        covariance = self.whole - gain @ functional @ self.whole
        covariance += np.outer(doubt, doubt) / total
        rest = y - centre * ones
        scale = rest @ inverse @ rest / max(len(y) - 1, 1)
        return mean, covariance, scale


def left_out(process, functional, y):
    """Each observation minus what all others make of it."""
    out = np.empty(len(y))
    for row in range(len(y)):
        others = np.arange(len(y)) != row
        mean, _, _ = process.condition(functional[others], y[others])
        out[row] = y[row] - functional[row] @ mean
    return out


def shapley_rows(n):
    """Weights of every value in each Shapley value: (n, 2**n)."""
    out = np.zeros((n, 1 << n))
    for x in range(1 << n):
        kept = bin(x).count("1")
        for i in range(n):
            before = kept - 1 if x >> i & 1 else kept
            weight = 1 / (n * math.comb(n - 1, before))
            out[i, x] = weight if x >> i & 1 else -weight
    return out
