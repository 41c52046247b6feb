"""A tiny causal language model with the parts of the interface that Captum calls."""

import re
from types import SimpleNamespace

import torch
from captum_models import seeded
from torch import nn


class WordTokenizer:
    """One token a word; token 0 starts every text."""

    def __init__(self, words):
        self.words = ["<s>", *words]

    def encode(self, text, return_tensors=None, add_special_tokens=True):
        ids = [self.words.index(word) for word in text.split()]
        ids = [0, *ids] if add_special_tokens else ids
        return torch.tensor([ids]) if return_tensors else ids

    def convert_ids_to_tokens(self, ids):
        return self.words[ids] if isinstance(ids, int) else [self.words[i] for i in ids]

    def decode(self, ids):
        numbers = torch.as_tensor(ids).reshape(-1).tolist()
        return " ".join(self.words[i] for i in numbers)

    def __call__(self, text, add_special_tokens=True, **options):
        ends = [match.span() for match in re.finditer(r"\S+", text)]
        return {
            "input_ids": self.encode(text, add_special_tokens=add_special_tokens),
            "offset_mapping": [(0, 0), *ends] if add_special_tokens else ends,
        }


class TinyLM(nn.Module):
    """Embedding, causal mean over the prefix, logits."""

    def __init__(self, vocabulary, width=12):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary)
        self.forwards = 0

    @property
    def device(self):
        return self.head.weight.device

    def forward(self, input_ids, **ignored):
        self.forwards += 1
        steps = torch.arange(1, input_ids.shape[1] + 1)[None, :, None]
        prefix = self.embedding(input_ids).cumsum(1) / steps
        return SimpleNamespace(logits=self.head(torch.tanh(self.mix(prefix))))

    def generate(self, input_ids, max_new_tokens=3, **ignored):
        for _ in range(max_new_tokens):
            following = self(input_ids).logits[:, -1].argmax(-1, keepdim=True)
            input_ids = torch.cat([input_ids, following], dim=1)
        return input_ids


def tiny_lm(words, seed=0):
    tokenizer = WordTokenizer(words)
    model = seeded(seed, lambda: TinyLM(len(tokenizer.words)).eval())
    return model, tokenizer
