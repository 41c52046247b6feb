# %% [markdown]
# # And if this had not been there?
# Three real models, asked what they would say without some of their input: a table
# (breast cancer), a sentence and an image (superpixels). Each answer is one HTML page
# that works without a server. All data comes with scikit-learn and scikit-image; the
# terms are kept to small sizes (`terms=None`), so that each of them can be read.
# `make gallery` runs this file and takes pictures of the pages.

# %%
import re
import sys
from pathlib import Path

import numpy as np
from skimage import color, data, segmentation, transform
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harmonica_core import Calls, fit_surrogate

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/gallery")
folder.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## A table
# A removed measurement is replaced by its mean.

# %%
cancer = datasets.load_breast_cancer()
forest = RandomForestClassifier(200, random_state=0, n_jobs=1)
forest.fit(cancer.data[1:], cancer.target[1:])
patient, mean = cancer.data[0], cancer.data[1:].mean(axis=0)


def malignant(masks):
    """Probability that the tumour is malignant."""
    return forest.predict_proba(np.where(masks, patient, mean))[:, 0]


# %%
surrogate = fit_surrogate(
    malignant,
    30,
    degree=2,
    feature_names=cancer.feature_names,
    output_names=["probability that it is malignant"],
)
page = surrogate.what_if(
    folder / "table.html",
    feature_values=patient,
    title="What if these measurements had not been taken?",
    threshold=0.5,
    removed="replaced by the mean of the other patients",
)
print(page)

# %% [markdown]
# The same question without a page: which fewest measurements decide?

# %%
change = surrogate.smallest_change(threshold=0.5)
print("without", [surrogate.feature_name(i) for i in change.features])
print(f"it says {change.after:.2f} instead of {change.before:.2f}")

# %% [markdown]
# ## A sentence
# Which data set does it describe? A removed word is deleted.

# %%
loaders = (
    datasets.load_breast_cancer,
    datasets.load_diabetes,
    datasets.load_digits,
    datasets.load_iris,
    datasets.load_wine,
)
texts, labels = [], []
for label, load in enumerate(loaders):
    parts = re.split(r"[.:]\s|\n\s*\n|\n\s*- ", load().DESCR)
    parts = [part for part in parts if len(part.split()) > 3]
    texts += parts
    labels += [label == 0] * len(parts)
reader = make_pipeline(
    TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
    LogisticRegression(C=30, class_weight="balanced"),
).fit(texts, labels)
words = "This digitized image describes cell nuclei not handwritten digits".split()


def about_cancer(masks):
    """Probability that the sentence is about the breast-cancer data."""
    kept = [" ".join(np.array(words)[mask]) for mask in masks]
    return reader.predict_proba(kept)[:, 1]


# %%
surrogate = fit_surrogate(about_cancer, len(words), terms=None, ends=True)
page = surrogate.what_if(
    folder / "sentence.html",
    tokens=[*zip(words, range(len(words)), strict=True), (".", None)],
    title="Is this sentence about the breast-cancer data?",
    threshold=0.5,
    removed="deleted from the sentence",
)
print(page)

# %% [markdown]
# ## An image
# Is there a face? A removed superpixel is painted in the mean colour.

# %%
faces = data.lfw_subset()  # 100 faces, then 100 other patches, 25 x 25
viewer = make_pipeline(
    StandardScaler(), MLPClassifier((64,), alpha=1.0, max_iter=500, random_state=0)
).fit(faces.reshape(200, -1), np.arange(200) < 100)
photo = transform.resize(data.astronaut()[30:200, 140:310], (240, 240))
segments = segmentation.slic(photo, n_segments=24, compactness=20, start_label=0)
mean_colour = photo.mean(axis=(0, 1))


def face(masks):
    """Probability that there is a face."""
    kept = masks[:, segments][..., None]
    grey = color.rgb2gray(np.where(kept, photo, mean_colour))
    small = np.stack([transform.resize(one, (25, 25)) for one in grey])
    return viewer.predict_proba(small.reshape(len(masks), -1))[:, 1]


# %%
surrogate = fit_surrogate(face, len(np.unique(segments)), calls=Calls(batch_size=64))
page = surrogate.what_if(
    folder / "image.html",
    image=photo,
    segments=segments,
    title="What makes this a face?",
    threshold=0.5,
    removed="painted in the mean colour of the picture",
)
print(page)
