# %% [markdown]
# # Words: a sentiment model and a language model
# Words are removed by putting the padding token in their place.

# %% 1. A bag of phrases and a tiny CNN on them
import re
from types import SimpleNamespace

import torch
from captum.attr import LLMAttribution, TextTemplateInput, visualization
from torch import nn

from captum_harmonica import Harmonica, top_pairs

torch.manual_seed(0)
opinion = {"good": 1, "great": 1, "funny": 1, "bad": 0, "dull": 0, "weak": 0}
texts, labels = [], []
for start in ("the", "a", "<pad>"):
    for thing in ("film", "plot", "cast", "<pad>"):
        for no in ("not", "<pad>"):
            for word in (*opinion, "<pad>"):
                texts.append([start, thing, "is", no, word, "indeed"])
                says = opinion.get(word, 0.5)
                labels.append(1 - says if no == "not" else says)
words = ["<pad>", *sorted({word for text in texts for word in text} - {"<pad>"})]
number = {word: i for i, word in enumerate(words)}


def tokens(text: list[str]) -> list[int]:
    return [number[word] for word in text]


class Sentiment(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(words), 16, padding_idx=0)
        self.conv = nn.Conv1d(16, 32, 2, padding=1)
        self.out = nn.Linear(32, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.conv(self.embed(ids).transpose(1, 2)).relu().amax(2)
        return torch.sigmoid(self.out(hidden))[:, 0]


model = Sentiment()
ids, truth = torch.tensor([tokens(text) for text in texts]), torch.tensor(labels)
optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(150):
    loss = nn.functional.binary_cross_entropy(model(ids), truth)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
model.eval()
print(f"training loss {loss.item():.4f}")

# %% 2. Which words? Token ids stay whole numbers; the padding word stays out
sentence = "the film is not bad indeed".split()
x = torch.tensor([tokens(sentence)])
method = Harmonica(model, seed=0)
scores = method.attribute(x, baselines=0)
record = visualization.VisualizationDataRecord(
    scores[0], model(x).item(), "good", "good", "good", scores.sum(), sentence, 0.0
)
html = visualization.format_word_importances(
    record.raw_input_ids, record.word_attributions
)
print(re.sub("<[^>]*>", "", html))
print([f"{word} {score:+.2f}" for word, score in zip(sentence, scores[0], strict=True)])

# %% 3. "not" and "bad" act together: that is one pair, not two words
(surrogate,) = method.explain(x, baselines=0, feature_names=sentence)
pair = top_pairs(surrogate, x, n=1)[0]
print(f"strongest pair: {pair.names} {pair.value:+.2f}")


# %% 4. A tiny causal language model, with what Captum asks of one
class Tokenizer:
    def encode(self, text, return_tensors=None, add_special_tokens=True):
        found = [number[word] for word in text.split()]
        return torch.tensor([found]) if return_tensors else found

    def decode(self, ids):
        return " ".join(words[i] for i in torch.as_tensor(ids).reshape(-1).tolist())

    def __call__(self, text, **options):
        spans = [match.span() for match in re.finditer(r"\S+", text)]
        return {"input_ids": self.encode(text), "offset_mapping": spans}


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(words), 32)
        self.past = nn.GRU(32, 32, batch_first=True)
        self.out = nn.Linear(32, len(words))
        self.device = torch.device("cpu")

    def forward(self, input_ids, **ignored):
        return SimpleNamespace(logits=self.out(self.past(self.embed(input_ids))[0]))


language = LanguageModel()
optimiser = torch.optim.Adam(language.parameters(), lr=1e-2)
for _ in range(100):
    logits = language(ids[:, :-1]).logits
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
language.eval()

# %% 5. The words of the prompt, for each token of the answer and for all of it
prompt = TextTemplateInput("{} {} {}", ["a", "plot", "is"], baselines=["the"] * 3)
result = LLMAttribution(Harmonica(language), Tokenizer()).attribute(
    prompt, torch.tensor([number["not"], number["bad"]]), use_cached_outputs=False
)
print("prompt:", result.input_tokens, "answer:", result.output_tokens)
print("whole answer:", [f"{value:+.2f}" for value in result.seq_attr])
for token, row in zip(result.output_tokens, result.token_attr, strict=True):
    print(f"{token:>6}:", [f"{value:+.2f}" for value in row])
