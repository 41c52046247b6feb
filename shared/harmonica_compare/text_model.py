"""The paper's text classifier: a CNN with filters of 3, 4 and 5 words.

100 filters of each width over 100-d embeddings, dropout 0.5, sigmoid output. Trained
once and cached as plain arrays (never pickle).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from harmonica_compare.case import one_line
from harmonica_compare.tasks import TaskError
from harmonica_compare.training import seeded
from harmonica_core import storage

PAD, UNKNOWN = 0, 1
MOST_WORDS = 50
_WIDTHS = (3, 4, 5)


def words_of(text: str) -> list[str]:
    """Split at white space, in lower case."""
    return text.lower().split()


class TextCNN(nn.Module):
    """Token ids ``(batch, length)`` to the probability of the positive class."""

    def __init__(self, vocabulary: Sequence[str], size: int = 100) -> None:
        super().__init__()
        self.vocabulary = tuple(vocabulary)
        self.ids = {word: k + 2 for k, word in enumerate(self.vocabulary)}
        self.embedding = nn.Embedding(len(self.vocabulary) + 2, size, padding_idx=PAD)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, 100, width) for width in _WIDTHS
        )
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(100 * len(_WIDTHS), 1)

    def encode(self, words: Iterable[str], length: int = 0) -> list[int]:
        """Ids of words, padded on the right to ``length`` and the widest filter."""
        ids = [self.ids.get(word, UNKNOWN) for word in words]
        return ids + [PAD] * (max(length, _WIDTHS[-1]) - len(ids))

    def from_embedding(self, embedded: Tensor) -> Tensor:
        """Embeddings ``(batch, length, size)`` to probabilities ``(batch,)``."""
        planes = embedded.transpose(1, 2)
        pooled = [conv(planes).relu().amax(-1) for conv in self.convolutions]
        return self.head(self.dropout(torch.cat(pooled, 1)))[:, 0].sigmoid()

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids ``(batch, length)`` to probabilities ``(batch,)``."""
        return self.from_embedding(self.embedding(ids))


def trained(
    texts: Sequence[str],
    labels: Sequence[int],
    cache: Path,
    seed: int,
    epochs: int = 3,
    most_words: int = MOST_WORDS,
) -> TextCNN:
    """Return the CNN trained on these texts, from ``cache`` if it is there."""
    recipe = json.dumps([list(texts), list(map(int, labels)), seed, epochs, most_words])
    path = cache / f"text-cnn-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}.npz"
    if path.exists():
        return _load(path)
    model = _train(texts, labels, seed, epochs, most_words)
    weights = {k: v.numpy() for k, v in model.state_dict().items()}
    storage.write(path, "text-cnn", {"vocabulary": model.vocabulary}, weights)
    return model


def _load(path: Path) -> TextCNN:
    try:
        header, arrays = storage.read(path, "text-cnn")
        model = TextCNN(header["vocabulary"])
        model.load_state_dict({k: torch.from_numpy(v) for k, v in arrays.items()})
    except (ValueError, KeyError, TypeError, RuntimeError, OSError) as error:
        raise TaskError(
            f"{path} is damaged or not one of our models ({one_line(error)}); delete "
            "it, or choose another --cache"
        ) from error
    return model.eval()


def _train(
    texts: Sequence[str],
    labels: Sequence[int],
    seed: int,
    epochs: int,
    most_words: int,
) -> TextCNN:
    split = [words_of(text)[:most_words] for text in texts]
    counts = Counter(word for words in split for word in words)
    vocabulary = sorted(word for word, count in counts.items() if count > 1)
    target = torch.tensor(labels, dtype=torch.float32)
    rng = np.random.default_rng(seed)
    with seeded(seed):
        model = TextCNN(vocabulary)
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        batches = [b for _ in range(epochs) for b in _batches(split, rng)]
        model.train()
        for rows in tqdm(batches, desc="Training the text CNN", leave=False):
            longest = max(len(split[r]) for r in rows)
            ids = torch.tensor([model.encode(split[r], longest) for r in rows])
            optimiser.zero_grad()
            out = model(_drop_words(ids, rng))
            nn.functional.binary_cross_entropy(out, target[rows]).backward()
            optimiser.step()
    return model.eval()


def _batches(
    split: Sequence[Sequence[str]], rng: np.random.Generator, size: int = 64
) -> list[np.ndarray]:
    """Row numbers by similar length (little padding), batches in random order."""
    lengths = np.array([len(words) for words in split])
    order = np.lexsort((rng.random(len(split)), lengths))
    cut = [order[k : k + size] for k in range(0, len(order), size)]
    return [cut[k] for k in rng.permutation(len(cut))]


def _drop_words(ids: Tensor, rng: np.random.Generator) -> Tensor:
    """A tenth of the words becomes unknown, so that rare words are not memorised."""
    hidden = torch.from_numpy(rng.random(tuple(ids.shape)) < 0.1) & (ids != PAD)
    return ids.masked_fill(hidden, UNKNOWN)
