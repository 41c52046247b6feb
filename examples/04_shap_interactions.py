# %% [markdown]
# # Interactions of any model, behind every SHAP plot
# `shap_interaction_values` used to need a tree model. Here a neural network predicts
# the progression of diabetes; the cube costs no model call more than the values.

# %%
import re
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import shap
from skimage import data, segmentation, transform
from sklearn.datasets import load_diabetes
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shap_harmonica import HarmonicaExplainer, pairs

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/shap_gallery")
folder.mkdir(parents=True, exist_ok=True)

diabetes = load_diabetes(scaled=False)
names = ["age", "sex", "bmi", "pressure", "tc", "ldl", "hdl", "tch", "ltg", "glucose"]
X = diabetes.data
network = make_pipeline(
    StandardScaler(),
    MLPRegressor(
        hidden_layer_sizes=(10,),
        alpha=10.0,
        random_state=0,
        max_iter=2000,
        solver="lbfgs",
    ),
).fit(X, diabetes.target)

explainer = HarmonicaExplainer(network.predict, X[:20], feature_names=names)
patients = X[20:120]
explanation = explainer(patients)
cube = explainer(patients, interactions=True)
print("cube", cube.shape)
total = cube.base_values + cube.values.sum(axis=(1, 2))
print("adds up to", np.abs(total - network.predict(patients)).max())

# %% [markdown]
# Entry (i, j) and entry (j, i) hold half of the pair's Shapley interaction index each,
# as TreeExplainer has it; the diagonal holds the rest of the SHAP value.

# %%
mean = np.abs(cube.values).mean(axis=0)
i, j = divmod(int(np.argmax(np.triu(mean, 1))), len(names))
print("strongest pair:", names[i], "x", names[j])


def save(name):
    """Write the current figure to the gallery."""
    plt.savefig(folder / f"{name}.png", bbox_inches="tight", dpi=80)
    plt.close("all")


# %% [markdown]
# `pairs` turns the cube into columns "a x b", so that plots of columns show pairs.

# %%
columns = pairs(cube, top=15)
shap.plots.waterfall(columns[0], show=False, max_display=12)
save("waterfall_pairs")
shap.plots.beeswarm(columns, show=False, max_display=12)
save("beeswarm_pairs")
shap.plots.bar(columns, show=False, max_display=12)
save("bar_pairs")
shap.plots.heatmap(columns, show=False, max_display=12)
save("heatmap_pairs")
shap.plots.force(columns[0], matplotlib=True, show=False)
save("force_pairs")

# %% [markdown]
# And every other plot, from the values or from the cube.

# %%
shap.plots.waterfall(explanation[0], show=False)
save("waterfall")
shap.plots.bar(explanation, show=False)
save("bar")
shap.plots.beeswarm(explanation, show=False)
save("beeswarm")
shap.plots.violin(explanation, show=False)
save("violin")
shap.plots.heatmap(explanation, show=False)
save("heatmap")
shap.plots.scatter(explanation[:, "bmi"], color=explanation[:, "pressure"], show=False)
save("scatter")
shap.plots.decision(
    explainer.expected_value, explanation.values[:20], patients[:20], names, show=False
)
save("decision")
shap.plots.force(explanation[0], matplotlib=True, show=False)
save("force")
shap.summary_plot(cube.values, patients, feature_names=names, show=False, max_display=5)
save("summary_of_the_cube")
shap.dependence_plot(
    (names[i], names[j]), cube.values, patients, feature_names=names, show=False
)
save("dependence_of_the_strongest_pair")

# %% [markdown]
# Images: superpixels are removed together, and share their value.

# %%
cat = transform.resize(data.chelsea(), (60, 90), anti_aliasing=True)
labels = segmentation.slic(cat, n_segments=12, start_label=0)


def warm(images):
    """How orange an image is, in the middle and overall."""
    orange = images[..., 0] - images[..., 2]
    return np.stack(
        [orange[:, 20:40, 30:60].mean(axis=(1, 2)), orange.mean(axis=(1, 2))], axis=1
    )


masker = shap.maskers.Image(np.full(cat.shape, cat.mean()))
picture = HarmonicaExplainer(
    warm, masker, groups=labels, output_names=["middle", "overall"]
)(cat[None], max_evals=500)
shap.plots.image(picture, show=False)
save("image")

# %% [markdown]
# Text: tokens are removed.

# %%
texts = ["not a good film", "a good story and good acting"]


def praise(batch):
    """Count "good" and turn it round after "not"."""
    return np.array([t.count("good") * (-1.0 if "not" in t else 1.0) for t in batch])


words = HarmonicaExplainer(praise, shap.maskers.Text(r"\W+"))
html = shap.plots.text(words(texts), display=False)
# SHAP writes its colours as numpy 2 prints its numbers, which browsers do not know.
html = re.sub(r"np\.float64\(([^)]*)\)", r"\1", html)
(folder / "text.html").write_text(html)
negation = words(texts[:1], interactions=True)
print("not x good:", (2 * negation.values[0][0, 2]).round(3))

# %%
cards = "".join(
    f"<figure><img src='{p.name}' alt='{p.stem}'><figcaption>{p.stem}</figcaption>"
    "</figure>"
    for p in sorted(folder.glob("*.png"))
)
page = f"<!doctype html><title>SHAP plots from Harmonica</title>{cards}"
(folder / "index.html").write_text(page)
print("gallery:", folder / "index.html")
