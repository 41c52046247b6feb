"""The paper's other four algorithms, with the interface of `Harmonica`."""

from __future__ import annotations

from captum_harmonica.attribution import Harmonica


class HarmonicaLocal(Harmonica):
    """Harmonica from masks that remove 1 to ``radius`` features.

    Closer to the model near the input, further from it elsewhere.

    Parameters
    ----------
    forward_func, degree, alpha, seed, engine, terms, ends, index
        As in `Harmonica`.
    radius : int
        Features that may be removed, at most (4); larger than the number of features
        means all of them.

    Examples
    --------
    >>> import torch
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> HarmonicaLocal(f, radius=2, seed=0).attribute(torch.ones(1, 3)).shape
    torch.Size([1, 3])
    """

    _method = "local"
    _own = {"radius": 4}


class HarmonicaAnchor(Harmonica):
    """One polynomial for each of k parts of the cube; less error, less consistency.

    `attribute` returns the values of the input's own polynomial, or those of the model
    itself where all masks were evaluated; `explain` returns
    `harmonica_core.AnchoredSurrogate` objects.

    Parameters
    ----------
    forward_func, degree, alpha, seed, engine, terms, ends, index
        As in `Harmonica`.
    anchors : int
        k (3): the input itself and k - 1 masks drawn at random.

    Examples
    --------
    >>> import torch
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> (g,) = HarmonicaAnchor(f, anchors=2, seed=0).explain(torch.ones(1, 3))
    >>> g.n_anchors
    2
    """

    _method = "anchor"
    _own = {"anchors": 3}


class HarmonicaAnchorConstrained(HarmonicaAnchor):
    """Anchored polynomials fitted together and pulled towards their mean.

    Parameters
    ----------
    forward_func, degree, alpha, seed, engine, terms, ends, index, anchors
        As in `HarmonicaAnchor`.
    consistency : float or "auto"
        Strength of the pull, in the units of the output: 0 leaves the anchors alone,
        more makes the polynomials more alike; "auto" follows the output's spread.

    Examples
    --------
    >>> import torch
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> method = HarmonicaAnchorConstrained(f, anchors=2, consistency=1.0, seed=0)
    >>> method.attribute(torch.ones(1, 3))
    tensor([[0.5000, 0.5000, 1.0000]])
    """

    _method = "constrained"
    _own = {"anchors": 3, "consistency": "auto"}


class LowDegree(Harmonica):
    """Each coefficient is a sample mean; no regression, several times the samples.

    Parameters as in `Harmonica`, of which ``alpha``, ``terms`` and ``engine`` have no
    meaning here and are refused.

    Examples
    --------
    >>> import torch
    >>> f = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> LowDegree(f).attribute(torch.tensor([[2.0, 3.0, 1.0]]))
    tensor([[3., 3., 1.]])
    """

    _method = "low_degree"
