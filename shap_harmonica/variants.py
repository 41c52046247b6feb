"""The paper's other four algorithms, behind the same explainer."""

from __future__ import annotations

from shap_harmonica.explainer import HarmonicaExplainer


class HarmonicaLocal(HarmonicaExplainer):
    """Surrogates for the neighbourhood: 1 to ``radius`` features removed.

    ``radius`` (4): most features removed in the masks that are fitted. All other
    parameters as in `HarmonicaExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> f = lambda X: X[:, 0] * X[:, 1] + X[:, 2]
    >>> explainer = HarmonicaLocal(f, np.zeros((1, 3)), radius=2)
    >>> explainer.shap_values(np.array([[2.0, 3.0, 1.0]])).round(3).tolist()
    [[3.0, 3.0, 1.0]]
    >>> explainer.surrogates[0].radius
    2
    """

    _method = "local"
    _own = {"radius": 4}


class HarmonicaAnchor(HarmonicaExplainer):
    """One polynomial for each of k parts of the cube; less error, less consistency.

    Values are those of the input's own polynomial; ``surrogates`` holds
    `harmonica_core.AnchoredSurrogate` objects, which answer for all masks.

    ``anchors`` (3) is k: the input itself and k - 1 masks drawn at random. All other
    parameters as in `HarmonicaExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> f = lambda X: X[:, 0] * X[:, 1] + X[:, 2]
    >>> explainer = HarmonicaAnchor(f, np.zeros((1, 3)), anchors=2)
    >>> explainer.shap_values(np.array([[2.0, 3.0, 1.0]])).round(3).tolist()
    [[3.0, 3.0, 1.0]]
    >>> explainer.surrogates[0].n_anchors
    2
    """

    _method = "anchor"
    _own = {"anchors": 3}


class HarmonicaAnchorConstrained(HarmonicaAnchor):
    """Anchored polynomials fitted together and pulled towards their mean.

    ``consistency`` ("auto"): strength of the pull, in the units of the output. All
    other parameters as in `HarmonicaAnchor`.

    Examples
    --------
    >>> import numpy as np
    >>> f = lambda X: X[:, 0] * X[:, 1] + X[:, 2]
    >>> background, row = np.zeros((1, 3)), np.array([[2.0, 3.0, 1.0]])
    >>> explainer = HarmonicaAnchorConstrained(f, background, consistency=1.0)
    >>> explainer.shap_values(row).round(2).tolist()
    [[3.0, 3.0, 1.0]]
    """

    _method = "constrained"
    _own = {"anchors": 3, "consistency": "auto"}


class LowDegree(HarmonicaExplainer):
    """Coefficients as plain sample means; the baseline that Harmonica improves on.

    Parameters as in `HarmonicaExplainer`, without ``alpha`` and ``terms``: giving them
    is refused.

    Examples
    --------
    >>> import numpy as np
    >>> f = lambda X: X[:, 0] * X[:, 1] + X[:, 2]
    >>> explainer = LowDegree(f, np.zeros((1, 3)), degree=2)
    >>> explainer.shap_values(np.array([[2.0, 3.0, 1.0]])).round(3).tolist()
    [[3.0, 3.0, 1.0]]
    """

    _method = "low_degree"
