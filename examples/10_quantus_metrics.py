# %% [markdown]
# # Our metrics in Quantus' calling convention, `metric(model, x, y, a)`
# Any attributions `a` of a batch are extended to all masks and compared with the model
# there. Runs without Quantus; where it is installed (0.6), `quantus.evaluate` calls.

# %%
import numpy as np
import torch
from captum.attr import IntegratedGradients, KernelShap
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn

from captum_harmonica import Harmonica
from harmonica_core import from_attributions, metrics, registry

try:
    import quantus
except ImportError:
    quantus = None

# %% A small network on the wine data (13 standardised features)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x).astype(np.float32)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(13, 32), nn.Tanh(), nn.Linear(32, 3), nn.Softmax(dim=1))
optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(200):
    optimiser.zero_grad()
    chances = model(torch.from_numpy(x))
    nn.functional.nll_loss(chances.log(), torch.from_numpy(y)).backward()
    optimiser.step()
model.eval()
x, y = x[::60], y[::60]

# %% Attributions of three methods for the same inputs
inputs, target = torch.from_numpy(x), torch.from_numpy(y)
kernel_shap = KernelShap(model)
scores = {
    "Integrated Gradients": IntegratedGradients(model).attribute(inputs, target=target),
    "KernelShap": torch.cat(
        [
            kernel_shap.attribute(one[None], target=label, n_samples=500)
            for one, label in zip(inputs, target, strict=True)
        ]
    ),
    "Harmonica": Harmonica(model, seed=0).attribute(
        inputs, target=target, n_samples=500
    ),
}
a_batches = {name: found.detach().numpy() for name, found in scores.items()}


# %% One number per input: `metric(f, g, n_features)` of its attributions
def in_quantus_style(metric, baseline=0.0):
    """Return a function that Quantus can call."""

    def one(model, x, y, a):
        def value_function(masks):
            shown = np.where(masks, x, baseline).astype(np.float32)
            with torch.no_grad():
                return model(torch.from_numpy(shown))[:, y].numpy()

        base = float(value_function(np.zeros((1, len(x)), dtype=bool))[0])
        return float(metric(value_function, from_attributions(a, base), len(x)))

    def of_batch(model, x_batch, y_batch, a_batch, **_):
        rows = zip(x_batch, y_batch, a_batch, strict=True)
        return [one(model, x, int(y), a) for x, y, a in rows]

    return of_batch


measures = {
    "I_2": in_quantus_style(metrics.interpretation_error),
    "truthful gap": in_quantus_style(registry.metrics["truthful_gap"]),
}

# %%
if quantus is None:
    results = {
        method: {name: measure(model, x, y, a) for name, measure in measures.items()}
        for method, a in a_batches.items()
    }
else:
    results = quantus.evaluate(measures, a_batches, model, x, y)
print("called by", "quantus.evaluate" if quantus else "this script")
for method, row in results.items():
    means = ", ".join(f"{name} {np.mean(v):.4f}" for name, v in row.items())
    print(f"{method:22s}{means}")
