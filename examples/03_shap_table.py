# %% [markdown]
# # From `KernelExplainer` to `HarmonicaExplainer` on a table
# Change the class name, keep everything else. You get the same kind of values, and
# besides: interactions, an error, and a function that answers "what if?" for each row.

# %%
import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from shap_harmonica import HarmonicaExplainer, metrics

cancer = load_breast_cancer(as_frame=True)
X, y = cancer.data, cancer.target
model = RandomForestClassifier(50, random_state=0).fit(X[200:], y[200:])


def benign(rows):
    """Probability that the tumour is benign."""
    return model.predict_proba(rows)[:, 1]


# %% [markdown]
# The swap. `shap.KernelExplainer(benign, background).shap_values(patients)` becomes:

# %%
background, patients = X[200:210], X[:20]
explainer = HarmonicaExplainer(benign, background)
values = explainer.shap_values(patients, nsamples=1000)
total = explainer.expected_value + values.sum(axis=1)
print("adds up to", np.abs(total - benign(patients)).max())

# %% [markdown]
# Or SHAP's newer style, for every plot. `error_std` is the stated error of a value.

# %%
explanation = explainer(patients, max_evals=1000)
print("largest value", np.abs(explanation.values).max().round(4))
print("stated error of a value", explanation.error_std.mean().round(4))

# %% [markdown]
# Each row has a surrogate: what would the model say without these measurements? The
# answer costs no model call. Compare it with the model's own.

# %%
surrogate = explainer.surrogates[0]
removed = ["worst area", "worst perimeter"]
kept = ~patients.columns.isin(removed)
rows = background.copy()
rows.loc[:, kept] = patients.iloc[0][kept].to_numpy()
print("without", removed, "it says", surrogate(kept)[0].round(3), end=", ")
print("the model says", benign(rows).mean().round(3))

# %% [markdown]
# How far is an explanation from the model over all ways of removing features? The
# metric takes any SHAP explainer's output; a force plot's reading is additive.

# %%
few = patients[:5]
kernel = shap.KernelExplainer(benign, background, keep_index=True)
peer = kernel(few, silent=True)
for name, found in (
    ("KernelExplainer", peer),
    ("Harmonica, added up", explanation[:5]),
    ("Harmonica, surrogates", explainer.surrogates[:5]),
):
    error = metrics.interpretation_error(
        benign, background, found, few, max_evaluations=300
    )
    print(f"{name:22} I_2 = {error.mean():.4f}")
