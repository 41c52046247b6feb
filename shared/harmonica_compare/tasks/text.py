"""Texts: the paper's CNN, words (or sentences) as features, deletion as removal.

``--data`` is a tab-separated file (or .gz) with columns ``sentence`` and ``label``; a
folder with ``train.tsv[.gz]`` and ``dev.tsv[.gz]`` trains on one and explains the
other. A removed word is deleted: the rest moves left.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harmonica_compare.case import About, Case
from harmonica_compare.tasks import TaskError, TaskOptions, need_data
from harmonica_compare.tasks.frames import read_frame
from harmonica_core._types import Floats, Masks

Labelled = tuple[list[str], list[int]]
# A text of more sentences is skipped, not cut.
_MOST_SENTENCES = 64
# With sentences as features, longer training texts are cut to so many words.
_MOST_TRAINING_WORDS = 400


def load(options: TaskOptions) -> list[Case]:
    """Train (or load) the CNN and return the first suitable texts."""
    from harmonica_compare.text_model import MOST_WORDS, trained

    train, dev = _read_folder(need_data(options, "a .tsv[.gz] with sentence, label"))
    if len(set(train[1])) < 2:
        raise TaskError("the training texts have one class only; needed two")
    cache = _folder(options.cache or Path.home() / ".cache" / "harmonica")
    by_word = options.unit == "word"
    length = MOST_WORDS if by_word else _MOST_TRAINING_WORDS
    model = trained(*train, cache=cache, seed=options.seed, most_words=length)
    most = MOST_WORDS if by_word else _MOST_SENTENCES
    about = About(
        data=Path(options.data or "").name,
        model="the paper's CNN",
        output="probability of the predicted class",
        removed=f"{options.unit} deleted, the rest moves left",
    )
    cases: list[Case] = []
    for number, text in enumerate(dev[0]):
        if len(cases) == options.n_cases:
            break
        parts = _words(text) if by_word else _sentences(text)
        if 2 <= len(parts) <= most:
            cases.append(_case(model, f"text {number}", parts, about))
    if not cases:
        long = "--unit sentence for long texts" if by_word else "shorter texts"
        limits = f"fewer than 2 or more than {most} {options.unit}s"
        raise TaskError(f"every text has {limits}; use {long}")
    return cases


def _folder(path: Path) -> Path:
    """Return the cache folder, made now: before the training, not after it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TaskError(
            f"--cache {path} can not be used as a folder ({error.strerror}); choose "
            "another one"
        ) from error
    return path


def _words(text: str) -> list[list[str]]:
    from harmonica_compare.text_model import words_of

    return [[word] for word in words_of(text)]


def _sentences(text: str) -> list[list[str]]:
    from harmonica_compare.text_model import words_of

    plain = text.replace("<br />", " ")
    pieces = re.split(r"(?<=[.!?])\s+", plain)
    return [words for piece in pieces if (words := words_of(piece))]


def _read_folder(path: Path) -> tuple[Labelled, Labelled]:
    """Training and explained texts: two files of a folder, or the same file twice."""
    if path.is_file():
        texts = _read(path)
        return texts, texts
    found = []
    for stem in ("train", "dev"):
        files = sorted(path.glob(f"{stem}.tsv*"))
        if not files:
            raise TaskError(f"--data {path}: no {stem}.tsv or {stem}.tsv.gz in it")
        found.append(_read(files[0]))
    return found[0], found[1]


def _read(path: Path) -> Labelled:
    frame = read_frame(path, "TSV", sep="\t", quoting=csv.QUOTE_NONE)
    missing = {"sentence", "label"} - set(frame.columns)
    if missing:
        raise TaskError(
            f"--data {path}: no column {', '.join(sorted(missing))}; needed sentence "
            f"and label, found {', '.join(map(str, frame.columns[:10]))}"
        )
    labels = frame["label"].tolist()
    if not set(labels) <= {0, 1}:
        raise TaskError(f"--data {path}: labels other than 0 and 1; needed two classes")
    return frame["sentence"].astype(str).tolist(), [int(k) for k in labels]


def _case(model: Any, name: str, parts: Sequence[Sequence[str]], about: About) -> Case:
    import torch

    words = [word for part in parts for word in part]
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    ids = torch.tensor(model.encode(words, len(words)))
    with torch.no_grad():
        positive = bool(model(ids[None])[0] >= 0.5)

    def oriented(probability: torch.Tensor) -> torch.Tensor:
        return probability if positive else 1 - probability

    def relaxed(share: torch.Tensor) -> torch.Tensor:
        # Gradient methods can not delete; they fade a word's embedding to zero.
        length = len(ids)
        factor = torch.ones(len(share), length)
        factor[:, : len(words)] = share[:, owner]
        return oriented(model.from_embedding(model.embedding(ids) * factor[..., None]))

    return Case(
        name=name,
        n_features=len(parts),
        value_function=_deletion(model, oriented, ids[: len(words)].numpy(), owner),
        relaxed=relaxed,
        feature_names=tuple(" ".join(part) for part in parts),
        about=about,
        probability=True,
    )


def _deletion(
    model: Any, oriented: Callable[[Any], Any], ids: np.ndarray, owner: np.ndarray
) -> Callable[[Masks], Floats]:
    """Value function that deletes words: the kept ones move left, padded right."""
    import torch

    def value(masks: Masks) -> Floats:
        kept = masks[:, owner]
        order = np.argsort(~kept, axis=1, kind="stable")
        shifted = np.where(np.take_along_axis(kept, order, 1), ids[order], 0)
        shifted = np.pad(shifted, ((0, 0), (0, max(0, 5 - shifted.shape[1]))))
        with torch.no_grad():
            out = [
                oriented(model(torch.from_numpy(shifted[k : k + 256])))
                for k in range(0, len(shifted), 256)
            ]
        return np.asarray(torch.cat(out).double().numpy())

    return value
