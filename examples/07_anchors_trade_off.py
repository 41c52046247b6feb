# %% [markdown]
# # Consistency against error: anchors
# One polynomial for all masks is consistent. Several polynomials, each for the masks
# nearest to its anchor, are closer to the model but answer the same question
# differently in different places: inconsistency log k.

# %%
import matplotlib

matplotlib.use("Agg")
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harmonica_core import (
    harmonica,
    harmonica_anchor,
    harmonica_anchor_constrained,
    metrics,
    plots,
)

cancer = load_breast_cancer()
X, y = cancer.data[:, :12], cancer.target
model = make_pipeline(
    StandardScaler(), MLPClassifier((32,), max_iter=2000, random_state=0)
).fit(X, y)
patient, mean = X[0], X.mean(axis=0)


def value_function(masks):
    """Probability of the second class with removed measurements at their mean."""
    return model.predict_proba(np.where(masks, patient, mean))[:, 1]


# %%
n, asked = X.shape[1], {"budget": 1500, "degree": 1, "ends": False}
known = metrics.EvaluationSet.draw(value_function, n)
curves, labels = {"anchors": [], "5 anchors, pulled together": []}, {"anchors": []}
for k in (1, 3, 5, 9):
    if k == 1:
        g, D_total = harmonica(value_function, n, **asked), 0.0
    else:
        g = harmonica_anchor(value_function, n, anchors=k, engine="lasso", **asked)
        D_total = metrics.inconsistency(known, g, n)[2].value
    error = metrics.interpretation_error(known, g, n)
    curves["anchors"].append((D_total, error))
    labels["anchors"].append(f"k = {k}")
    print(f"k = {k}: inconsistency {np.log(k):.2f}, I_2 = {error}")

# %% [markdown]
# The constrained version pulls the polynomials together: D_total falls, error rises.

# %%
for strength in (0.0, 0.03, 0.1, 10.0):
    g = harmonica_anchor_constrained(
        value_function, n, anchors=5, consistency=strength, **asked
    )
    error = metrics.interpretation_error(known, g, n)
    D_total = metrics.inconsistency(known, g, n)[2].value
    curves["5 anchors, pulled together"].append((D_total, error))
    print(f"consistency = {strength}: D_total = {D_total:.3f}, I_2 = {error}")

# %%
axes = plots.trade_off(
    curves, labels=labels, xlabel="inconsistency: how far the polynomials are apart"
)
axes.set_ylim(0.97 * min(float(e.value) for _, e in curves["anchors"]), None)
axes.figure.savefig("trade_off.png", dpi=120, bbox_inches="tight")
