# %% [markdown]
# # A table: many patients at once, every class from the same forwards

# %% 1. A small network on the wine data (13 measurements, 3 cultivars)
import numpy as np
import torch
from sklearn.datasets import load_wine
from torch import nn

from captum_harmonica import Harmonica, metrics

torch.manual_seed(0)
wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor(wine.target)
model = nn.Sequential(nn.Linear(13, 24), nn.Tanh(), nn.Linear(24, 3), nn.Softmax(1))
optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(150):
    loss = nn.functional.nll_loss(model(x).log(), y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
model.eval()
torch.set_grad_enabled(False)

# %% 2. One explanation per row and class; a removed measurement takes its mean, 0
batch = x[::20]
method = Harmonica(model, seed=0)
every_class = method.explain(batch, n_samples=1000, perturbations_per_eval=2000)
values = torch.tensor(np.stack([g.shapley_values() for g in every_class]))
difference = model(batch) - model(torch.zeros(1, 13))  # rows, classes
print("largest gap of the sums:", float((values.sum(1) - difference).abs().max()))

# %% 3. What speaks for cultivar 0 in the first row, and how sure that is
values = method.attribute(batch, target=0, n_samples=1000, perturbations_per_eval=2000)
std = method.attribute_std(
    batch, target=0, n_samples=1000, perturbations_per_eval=2000
)  # no further model call
for i in values[0].abs().argsort(descending=True)[:4].tolist():
    print(f"{wine.feature_names[i]:>30} {values[0, i]:+.3f} ± {std[0, i]:.3f}")

# %% 4. The polynomials of the first two rows, and their errors over all removals
found = method.explain(batch[:2], target=0, feature_names=wine.feature_names)
print(found[0])
error = metrics.interpretation_error(model, batch[:2], found, target=0)
print("error over all removals:", [f"{one:.4f}" for one in error])
