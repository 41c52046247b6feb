"""Harmonica wherever Captum takes an attribution method."""

import time

import matplotlib
import numpy as np
import torch
from captum.attr import (
    KernelShap,
    LLMAttribution,
    NoiseTunnel,
    ShapleyValues,
    TextTemplateInput,
    TextTokenInput,
    visualization,
)
from captum.metrics import infidelity, sensitivity_max
from captum.testing.helpers.basic_models import BasicModel_ConvNet
from captum_llm import tiny_lm
from captum_models import BATCH, Counting, close, mlp
from pytest import fixture, mark, raises, skip

from captum_harmonica import (
    Harmonica,
    HarmonicaAnchor,
    HarmonicaAnchorConstrained,
    HarmonicaLocal,
    LowDegree,
)

matplotlib.use("Agg")

METHODS = [
    Harmonica,
    HarmonicaLocal,
    HarmonicaAnchor,
    HarmonicaAnchorConstrained,
    LowDegree,
]
WORDS = ["the", "cat", "sat", "on", "mat", "dog"]
X = BATCH[:2]


# ------------------------------------------------------------------ language models
@fixture
def prompt():
    return TextTemplateInput("{} {} sat on {}", ["the", "cat", "mat"])


@mark.parametrize("in_tokens", [True, False])
@mark.parametrize("attr_target", ["log_prob", "prob"])
def test_llm_sequence_and_tokens(prompt, in_tokens, attr_target):
    model, tokenizer = tiny_lm(WORDS)
    arguments = {"use_cached_outputs": False, "forward_in_tokens": in_tokens}
    ours, exact = (
        LLMAttribution(method(model), tokenizer, attr_target).attribute(
            prompt, torch.tensor([2, 5]), **arguments
        )
        for method in (Harmonica, ShapleyValues)
    )
    assert ours.seq_attr.shape == (3,)
    assert ours.token_attr.shape == (2, 3)
    close(ours.seq_attr, exact.seq_attr)
    close(ours.token_attr, exact.token_attr)


def test_llm_evaluates_each_mask_once(prompt):
    model, tokenizer = tiny_lm(WORDS)
    LLMAttribution(Harmonica(model), tokenizer).attribute(
        prompt, torch.tensor([2]), forward_in_tokens=False
    )
    assert model.forwards == 2**3


def test_llm_generates_its_target_and_takes_our_arguments():
    model, tokenizer = tiny_lm(WORDS)
    tokens = TextTokenInput("the cat sat", tokenizer, skip_tokens=[0])
    result = LLMAttribution(Harmonica(model, seed=0), tokenizer).attribute(
        tokens,
        gen_args={"max_new_tokens": 2},
        use_cached_outputs=False,
        num_trials=2,
        n_samples=8,
    )
    assert result.token_attr.shape == (2, 3)
    assert result.plot_token_attr(show=False) is not None


def test_llm_refuses_several_perturbations_at_once(prompt):
    model, tokenizer = tiny_lm(WORDS)
    with raises(ValueError, match="perturbations_per_eval=1"):
        LLMAttribution(Harmonica(model), tokenizer).attribute(
            prompt,
            torch.tensor([2, 5]),
            use_cached_outputs=False,
            perturbations_per_eval=2,
        )


@mark.parametrize("method", METHODS)
def test_llm_takes_every_variant(prompt, method):
    model, tokenizer = tiny_lm(WORDS)
    result = LLMAttribution(method(model, seed=0), tokenizer).attribute(
        prompt, torch.tensor([2, 5]), use_cached_outputs=False
    )
    assert result.token_attr.shape == (2, 3)


def test_llm_agrees_with_the_exact_answer_at_any_budget_that_covers_it():
    """Captum's own dummy model has features of several tokens, and a long target."""
    model, tokenizer = tiny_lm(WORDS)
    prompt = TextTemplateInput(
        "{a} sat {b} on {c} {d}",
        {"a": "the cat", "b": "the", "c": "mat", "d": "dog sat"},
        baselines={"a": "dog", "b": "mat", "c": "the", "d": "cat"},
    )
    arguments = {"use_cached_outputs": False, "forward_in_tokens": False}
    target = torch.tensor([2, 5, 1])
    exact = LLMAttribution(ShapleyValues(model), tokenizer).attribute(
        prompt, target, **arguments
    )
    for n_samples in ("auto", 16, 1000):
        for method in METHODS:
            ours = LLMAttribution(method(model, seed=0), tokenizer).attribute(
                prompt, target, n_samples=n_samples, **arguments
            )
            close(ours.seq_attr, exact.seq_attr)
            close(ours.token_attr, exact.token_attr)


# ------------------------------------------------------------------ wrappers, metrics
@mark.parametrize("kind", ["smoothgrad", "smoothgrad_sq", "vargrad"])
def test_noise_tunnel(kind):
    model = mlp(4, n_outputs=2)
    arguments = {
        "nt_type": kind,
        "nt_samples": 3,
        "stdevs": 0.1,
        "target": torch.tensor([0, 1]),
        "baselines": torch.zeros(2, 4),
        "feature_mask": torch.tensor([[0, 0, 1, 2], [0, 1, 1, 2]]),
    }
    results = []
    for method in (Harmonica(model), ShapleyValues(model)):
        with torch.random.fork_rng():
            torch.manual_seed(0)  # Harmonica uses up none of torch's numbers
            results.append(NoiseTunnel(method).attribute(X, **arguments))
    close(*results)


def test_noise_tunnel_averages_our_values():
    model = torch.nn.Linear(4, 1)
    got = NoiseTunnel(Harmonica(model)).attribute(X, nt_samples=4, stdevs=0.0)
    close(got, Harmonica(model).attribute(X))


def test_infidelity_and_sensitivity():
    model = torch.nn.Linear(4, 1, bias=False)
    method = Harmonica(model)

    def perturb(inputs):
        noise = torch.full_like(inputs, 0.1)
        return noise, inputs - noise

    weights = method.attribute(X) / X  # a linear model's gradient
    assert infidelity(model, perturb, X, weights).max() < 1e-8
    moved = sensitivity_max(
        method.attribute, X, perturb_radius=0.01, n_perturb_samples=2
    )
    assert (moved >= 0).all() and (moved < 0.1).all()


@mark.filterwarnings("ignore:You are providing multiple inputs")  # KernelShap's
def test_metrics_of_a_small_convnet_cost_what_kernel_shap_costs():
    model, image = BasicModel_ConvNet(), torch.rand(1, 1, 10, 10)
    seconds = {}
    for method in (Harmonica(model, seed=0), KernelShap(model)):
        start = time.process_time()
        sensitivity_max(
            method.attribute, image, target=0, n_perturb_samples=2, n_samples=500
        )
        seconds[type(method)] = time.process_time() - start
    assert seconds[Harmonica] < 5 * seconds[KernelShap]
    rows = Counting(model)
    Harmonica(rows).attribute(image, target=0)
    assert sum(rows.rows) == 1024 + 2 * 100  # by default


@mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_scripted_and_parallel_models():
    model = mlp(4, n_outputs=2)
    expected = Harmonica(model).attribute(X, target=1)
    for other in (
        torch.jit.script(model),
        torch.jit.trace(model, X),
        torch.compile(model, backend="eager"),
        torch.nn.DataParallel(model),
    ):
        for ppe in (1, 7):
            got = Harmonica(other).attribute(X, target=1, perturbations_per_eval=ppe)
            close(got, expected)


# ------------------------------------------------------------------ pictures
def test_image_visualiser():
    image = torch.rand(1, 3, 8, 8)
    blocks = torch.arange(8)[:, None] // 4 * 2 + torch.arange(8)[None] // 4
    got = Harmonica(lambda x: x.mean(dim=(1, 2, 3))).attribute(
        image, feature_mask=blocks
    )
    figure, _ = visualization.visualize_image_attr(
        np.transpose(got[0].numpy(), (1, 2, 0)),
        np.transpose(image[0].numpy(), (1, 2, 0)),
        method="blended_heat_map",
        sign="all",
        use_pyplot=False,
    )
    assert figure is not None


def test_text_visualiser():
    tokens = torch.tensor([[1, 2, 3]])
    embedding = torch.nn.Embedding(5, 1)
    scores = Harmonica(lambda ids: embedding(ids).sum(dim=(1, 2))).attribute(tokens)
    record = visualization.VisualizationDataRecord(
        scores[0], 0.9, "good", "good", "good", scores.sum(), ["a", "b", "c"], 0.0
    )
    assert record.attr_score == scores.sum()
    shown = visualization.format_word_importances(
        record.raw_input_ids, record.word_attributions
    )
    assert "> a " in shown


def test_time_series_visualiser():
    series = torch.rand(1, 6, 2)
    got = Harmonica(lambda x: x.sum(dim=(1, 2))).attribute(series)
    try:
        figure, _ = visualization.visualize_timeseries_attr(
            got[0].numpy(), series[0].numpy(), use_pyplot=False
        )
    except AttributeError as error:
        skip(f"this Captum's time series plot needs an older matplotlib: {error}")
    assert figure is not None
