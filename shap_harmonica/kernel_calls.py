"""KernelExplainer's methods, for code that calls those instead of the explainer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from shap_harmonica.arguments import warn_about_l1


class KernelCalls:
    """What `shap.KernelExplainer` offers beside the call; each method is one call.

    The explainer brings the call itself, ``surrogates`` and ``output_names``.
    """

    __call__: Callable[..., Any]
    surrogates: list[Any]
    output_names: Any

    def shap_values(
        self,
        X: Any,
        nsamples: int | Literal["auto"] | None = None,
        l1_reg: Any = None,
        silent: bool = False,
        gc_collect: bool = False,
        **kwargs: Any,
    ) -> np.ndarray:
        """Return ``(n_rows, n[, n_outputs])``, as KernelExplainer; of one row ``(n,)``.

        ``nsamples`` is the call's ``max_evals``. ``l1_reg`` (with a warning) and
        ``gc_collect`` are not needed and ignored.
        """
        warn_about_l1({"l1_reg": l1_reg})
        return np.asarray(self(X, max_evals=nsamples, silent=silent, **kwargs).values)

    def shap_interaction_values(
        self,
        X: Any,
        nsamples: int | Literal["auto"] | None = None,
        silent: bool = False,
        **kwargs: Any,
    ) -> np.ndarray:
        """Return the cube ``(n_rows, n, n[, n_outputs])`` in SHAP's half-split.

        Entry (i, j) and entry (j, i) hold half of the pair's Shapley interaction index
        each (TreeExplainer's convention; see ``interaction_index``), the diagonal what
        is left: rows sum to the SHAP values, everything to f(x) - base. It costs no
        model call more than `shap_values`.

        Examples
        --------
        >>> import numpy as np
        >>> from shap_harmonica import HarmonicaExplainer
        >>> f = lambda X: X[:, 0] * X[:, 1] + X[:, 2]
        >>> explainer = HarmonicaExplainer(f, np.zeros((1, 3)))
        >>> explainer.shap_interaction_values(np.array([[2.0, 3.0, 1.0]])).tolist()
        [[[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 1.0]]]
        """
        warn_about_l1(kwargs)
        kwargs["interactions"] = True
        return np.asarray(self(X, max_evals=nsamples, silent=silent, **kwargs).values)

    def explain(self, *args: Any, **options: Any) -> list[Any]:
        """Return the surrogates of the rows, one each, as Captum's `explain` does.

        Takes what the call takes. They answer what-if questions, and their
        ``shapley_values(return_std=True)`` and ``interactions()`` cost no model call.

        Examples
        --------
        >>> import numpy as np
        >>> from shap_harmonica import HarmonicaExplainer
        >>> f = lambda X: X[:, 0] * X[:, 1]
        >>> explainer = HarmonicaExplainer(f, np.zeros((1, 2)))
        >>> (surrogate,) = explainer.explain(np.array([[2.0, 3.0]]))
        >>> surrogate([[True, True], [True, False]]).tolist()
        [6.0, 0.0]
        """
        warn_about_l1(options)
        self(*args, **{"silent": True, **options})
        return self.surrogates

    def surrogate(self, row: int = 0) -> Any:
        """Return the surrogate of one row of the latest call.

        Examples
        --------
        >>> import numpy as np
        >>> from shap_harmonica import HarmonicaExplainer
        >>> f, names = lambda x: x[:, 0] * x[:, 1], ["age", "home"]
        >>> explainer = HarmonicaExplainer(f, np.zeros((1, 2)), feature_names=names)
        >>> explanation = explainer(np.array([[2.0, 3.0]]))
        >>> explainer.surrogate(0).without("home")
        0.0
        """
        if not -len(self.surrogates) <= row < len(self.surrogates):
            raise IndexError(
                f"row {row} of {len(self.surrogates)} rows that were explained last; "
                "call the explainer first, and count its rows from 0"
            )
        return self.surrogates[row]

    def explain_row(self, *row_args: Any, **kwargs: Any) -> dict[str, Any]:
        """SHAP's protocol for one row, flattened over the mask's shape."""
        known = {"max_evals", "batch_size", "outputs", "interactions"}
        options = {k: v for k, v in kwargs.items() if k in known}
        found = self(*([row] for row in row_args), silent=True, **options)
        parts = found if isinstance(found, list) else [found]
        surrogate = self.surrogates[0]
        tail = np.shape(surrogate.base_value)
        return {
            "values": np.concatenate(
                [np.reshape(part.values[0], (-1, *tail)) for part in parts]
            ),
            "expected_values": parts[0].base_values[0],
            "mask_shapes": [
                part.values[0].shape[: np.ndim(part.values[0]) - len(tail)]
                for part in parts
            ],
            "output_names": self.output_names,
        }
