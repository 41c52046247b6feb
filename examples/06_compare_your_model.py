# %% [markdown]
# # Which explanation can I trust for *my* model?
# Every method explains the same input with the same number of model evaluations and
# is measured on the same masks. `harmonica compare --task custom` does this from the
# command line; here it is in a few lines of Python.

# %%
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import GradientBoostingClassifier

from harmonica_core import fit_surrogate, from_attributions, metrics

wine = load_wine()
model = GradientBoostingClassifier(random_state=0).fit(wine.data, wine.target)
bottle, mean = wine.data[0], wine.data.mean(axis=0)


def value_function(masks):
    """Probability of the first class with the other features at their mean."""
    return model.predict_proba(np.where(masks, bottle, mean))[:, 0]


# %% [markdown]
# Three explanations: ours, its own Shapley values used as an additive explanation
# (what a force plot suggests), and SHAP's KernelExplainer.

# %%
import shap

n, budget = wine.data.shape[1], 600
ours = fit_surrogate(value_function, n, budget=budget, ends=True)
explainer = shap.KernelExplainer(
    lambda rows: value_function(rows > 0.5), np.zeros((1, n))
)
scores = explainer.shap_values(np.ones((1, n)), nsamples=budget - 2, silent=True)[0]
methods = {
    "Harmonica": ours,
    "its Shapley values, summed": from_attributions(
        ours.shapley_values(), ours.base_value
    ),
    "SHAP KernelExplainer": from_attributions(scores, explainer.expected_value),
}

# %%
profile = metrics.profile(value_function, methods, n, radii=(1, 2, 4, None), ps=(2,))
for name, radius, _, error in profile.rows():
    print(f"{name:28} at most {radius or n:2} removed: I_2 = {error}")
print("what Harmonica says of its own error:", ours.error)
