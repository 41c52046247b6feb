"""Every method of the comparison, by name.

To add a method that ships with us, write a function (case, counted value function,
seed) -> surrogate or function of masks, and list it in one of the modules imported
here. Your own method needs no change of ours: see ``harmonica compare --plugin``.
"""

from __future__ import annotations

from typing import Any

from harmonica_compare.case import Case, Counted
from harmonica_compare.method import Method
from harmonica_compare.methods_ours import OURS
from harmonica_compare.peers import PEERS
from harmonica_compare.peers_shapiq import SHAPIQ, not_installed
from harmonica_core import registry

METHODS: dict[str, Method] = {m.name: m for m in (*OURS, *PEERS, *SHAPIQ)}

# Left out unless asked for: the rest of the published family, peers that another one
# of the same library equals or beats at every budget measured, those that take minutes,
# and what the installed shapiq is too old for.
ON_REQUEST = {
    *not_installed(),
    *("local", "anchor-3", "anchor-5", "anchor-9", "constrained", "low-degree"),
    *("inconsistent-kernelshapiq", "kaddshap", "shapiq", "permutation-sii", "fbii-3"),
    *("stratified-sv", "owen-sv", "permutation-sv", "unbiased-kernelshap"),
    *("spex", "proxyspex"),
}


def find_method(name: str) -> Method:
    """Return a built-in method, or one registered in `harmonica_core.registry`."""
    return METHODS.get(name) or adapted(name, registry.methods[name])


def adapted(name: str, entry: Any) -> Method:
    """Return a registered method in the form of the built-in ones."""

    def run(case: Case, f: Counted, seed: int) -> Any:
        return entry(f, case.n_features, budget=f.budget, seed=seed)

    return Method(name, name, run, "plugin", "as registered")


def label_of(name: str) -> str:
    """Return a method's name as shown to people."""
    try:
        return find_method(name).label
    except KeyError:  # registered when the results were made, but not now
        return name


def kind_of(name: str) -> str:
    """Return a method's kind; what is not known any more was someone's plug-in."""
    return METHODS[name].kind if name in METHODS else "plugin"
