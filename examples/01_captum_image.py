# %% [markdown]
# # An image classifier: which superpixels, and which of them together?
# `KernelShap(model)` becomes `Harmonica(model)`; the rest of the pipeline stays.

# %% 1. A small CNN that tells handwritten digits apart (8 x 8 pixels, scikit-learn's)
import matplotlib
import numpy as np
import torch
from captum.attr import visualization
from sklearn.datasets import load_digits
from torch import nn

from captum_harmonica import Harmonica, interactions_with, metrics, top_pairs

matplotlib.use("Agg")
torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
labels = torch.tensor(digits.target)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 16, 10),
    nn.Softmax(dim=1),
)
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(40):
    loss = nn.functional.nll_loss(model(images[100:]).log(), labels[100:])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
model.eval()
torch.set_grad_enabled(False)
right = (model(images[:100]).argmax(1) == labels[:100]).float().mean()
print(f"accuracy on 100 images that it has not seen: {right:.0%}")

# %% 2. Sixteen superpixels: blocks of 2 x 2 pixels with one id each
image, digit = images[:1], int(labels[0])
blocks = torch.arange(8)[:, None] // 2 * 4 + torch.arange(8)[None] // 2

# %% 3. One polynomial: its error is stated, and pairs are in it
method = Harmonica(model, seed=0)
arguments = {"target": digit, "feature_mask": blocks, "n_samples": 1000}
(surrogate,) = method.explain(image, **arguments, perturbations_per_eval=500)
print(surrogate)
for pair in top_pairs(surrogate, image, blocks, n=3):
    print(f"{pair.names[0]} with {pair.names[1]}: {pair.value:+.3f}")
partner = interactions_with([surrogate], 5, image, blocks)
print("with superpixel 5:", partner[0, 0, ::2, ::2])

# %% 4. Attributions, shaped like the image (no further model call)
attributions = method.attribute(image, **arguments)
whole, nothing = model(image)[0, digit], model(torch.zeros_like(image))[0, digit]
print(f"sum of the 16 values: {attributions[..., ::2, ::2].sum():.4f}")
print(f"F(image) - F(black):  {whole - nothing:.4f}")

# %% 5. Captum's own picture
figure, _ = visualization.visualize_image_attr(
    attributions[0].permute(1, 2, 0).numpy(),
    image[0].permute(1, 2, 0).numpy(),
    method="blended_heat_map",
    sign="all",
    use_pyplot=False,
)
figure.savefig("image.png")

# %% 6. And if these four had not been there? No model call is needed to say
kept = np.ones((1, 16), dtype=bool)
kept[0, [5, 6, 9, 10]] = False
masked = image * torch.tensor(kept[0])[blocks]
print(f"predicted {surrogate(kept)[0]:.3f}, model {model(masked)[0, digit]:.3f}")

# %% 7. How good is it? The same question for any Captum method's attributions
for name, explanation in (("values", attributions), ("polynomial", [surrogate])):
    error = metrics.interpretation_error(
        model, image, explanation, feature_mask=blocks, target=digit
    )
    print(f"error of the {name} over all removals: {float(error):.4f}")
