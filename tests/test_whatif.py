import html
import json
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from harmonica_core import Evaluated, Surrogate, fit_surrogate
from harmonica_core.result.anchored import AnchoredSurrogate
from harmonica_core.text import number
from harmonica_core.whatif import inert_json
from harmonica_core.whatif_data import carried, token_pairs

NASTY = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "\u2028\u2029'\"&amp;",
    "{{script}}",
)


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text of the data block."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.data, self._inside = [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") == "data"

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, text):
        self.data += text if self._inside else ""


def data_of(page):
    return json.loads(Elements(page.html).data)


def game(masks):
    return 1.0 * masks[:, 0] + 2.0 * (masks[:, 1] & masks[:, 2])


@pytest.fixture(scope="module")
def surrogate():
    return fit_surrogate(game, 5)


def test_page_is_one_file_without_addresses(surrogate, tmp_path):
    page = surrogate.what_if(tmp_path / "page.html", title="A & B")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert text == page.html
    assert os.fspath(page) == str(tmp_path / "page.html")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    loads = {"src", "href", "action", "formaction", "data", "style"}
    for tag, attrs in Elements(text).tags:
        assert not loads & set(attrs) or attrs == {"class": "skip", "href": "#answer"}
        assert not any(name.startswith("on") for name in attrs), tag
    assert "<title>A &amp; B</title>" in text


def test_policy_allows_only_the_page_s_own_script(surrogate):
    policy = next(
        attrs["content"]
        for tag, attrs in Elements(surrogate.what_if().html).tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy and policy.count("'sha256-") == 2


@pytest.mark.parametrize("nasty", NASTY)
def test_names_can_not_add_elements(surrogate, nasty):
    names = [nasty] * 5
    plain = surrogate.what_if()
    page = surrogate.what_if(
        feature_names=names, feature_values=names, title=nasty, tokens=names
    )
    tags = [tag for tag, _ in Elements(page.html).tags]
    assert tags == [tag for tag, _ in Elements(plain.html).tags]
    assert data_of(page)["names"] == names
    assert f"<title>{html.escape(nasty)}</title>" in page.html


def test_output_names_and_lone_surrogates_are_carried(tmp_path):
    g = Surrogate(1, ((), (0,)), np.array([0.0, 1.0]))
    page = g.with_names(["\ud800"], ["<b>"]).what_if(
        tmp_path / "p.html", title="\ud800"
    )
    assert data_of(page)["names"] == ["\ud800"]
    assert data_of(page)["output"] == "<b>"
    assert "<title>?</title>" in (tmp_path / "p.html").read_text("utf-8")


def test_json_is_inert_and_reads_back():
    value = {"a": [*NASTY, 0.1, -0.0, None, 1e-300]}
    text = inert_json(value)
    assert text.isascii() and not set("<>&") & set(text)
    assert json.loads(text) == value
    with pytest.raises(ValueError):
        inert_json(float("nan"))


def test_data_is_the_surrogate_s(surrogate):
    given = [1.23456, 23350.0, "x", None, 3.37e-16]
    data = data_of(surrogate.what_if(feature_values=given))
    (piece,) = data["pieces"]
    assert [tuple(term) for term in piece["terms"]] == list(surrogate.terms)
    assert piece["coef"] == surrogate.coef.tolist()
    assert data["base"] == surrogate.base_value
    assert data["shapley"] == surrogate.shapley_values().tolist()
    assert data["given"] == ["1.235", "23,350", "x", "missing", "0"]
    assert data["order"] == [1, 2, 0, 3, 4]  # most influential first
    assert data["start"] == [1] * 5


def test_scale_holds_every_answer(surrogate):
    low, high = data_of(surrogate.what_if(threshold=9.0))["range"]
    assert low < 0.0 and high > 9.0
    flat = Surrogate(2, ((),), np.array([3.0])).what_if()
    low, high = data_of(flat)["range"]
    assert low < 3 < high


def test_error_is_stated_in_words(surrogate):
    assert (
        "equals the model on all combinations."
        in data_of(surrogate.what_if())["notes"][0]
    )
    local = fit_surrogate(
        lambda m: np.sin(m @ np.arange(14.0)), 14, budget=300, radius=3, terms=None
    )
    data = data_of(local.what_if())
    stated = f"{number(float(local.error), 3)} ± "
    assert f"typically off by {stated}" in data["notes"][0]
    assert "1 to 3 features removed" in data["notes"][0]
    assert data["error"] == float(local.error)
    assert data["radius"] == 3
    bare = data_of(Surrogate(1, ((),), np.array([1.0])).what_if())
    assert bare["error"] is None and "is not known" in bare["notes"][0]


def test_carried_evaluations_are_those_nearest_to_the_input(surrogate):
    data = data_of(surrogate.what_if(max_evaluated=6))
    assert "6 of the 32 combinations asked" in data["notes"][1]
    few = carried(surrogate.evaluated, 6)
    assert (~few.masks).sum(axis=1).tolist() == [0, 1, 1, 1, 1, 1]
    np.testing.assert_array_equal(few.values, game(few.masks))
    assert data_of(surrogate.what_if(max_evaluated=0))["evaluated"] is None
    assert "all 32" in data_of(surrogate.what_if())["notes"][1]
    assert carried(Evaluated(np.zeros((0, 3), bool), np.zeros(0)), 5) is None


def test_tokens_may_repeat_a_feature_or_belong_to_none():
    pairs = [("un", 0), ("-", None), ("happy", 1), ("happy", 1)]
    assert token_pairs(pairs, 2) == pairs
    with pytest.raises(ValueError, match="tokens name 2 features"):
        token_pairs(["a", "b"], 3)
    with pytest.raises(ValueError, match="each of 0 to 1"):
        token_pairs([("a", 0), ("b", 7)], 2)


def test_names_fall_back_to_what_is_shown():
    g = Surrogate(2, ((), (0,)), np.array([0.0, 1.0]))
    assert data_of(g.what_if())["names"] == ["x0", "x1"]
    tokens = [("a", 0), ("b", 1), ("b", 1)]
    assert data_of(g.what_if(tokens=tokens))["names"] == ["a", "b b"]
    picture = {"image": np.zeros((1, 2)), "segments": [[0, 1]]}
    assert data_of(g.what_if(**picture))["names"] == ["superpixel 0", "superpixel 1"]
    named = g.with_names(["left", "right"])
    assert data_of(named.what_if(**picture))["names"] == ["left", "right"]


def test_one_output_is_shown():
    coef = np.array([[1.0, 2.0], [3.0, 4.0]])
    g = Surrogate(1, ((), (0,)), coef, output_names=("no", "yes"))
    for output in (1, "yes"):
        data = data_of(g.what_if(output=output))
        assert data["pieces"][0]["coef"] == [2.0, 4.0] and data["output"] == "yes"
    assert g.smallest_change(0.0, output="yes").before == 6.0
    with pytest.raises(ValueError, match="needed one of its outputs .'no', 'yes'"):
        g.what_if(output="maybe")


def test_values_that_are_missing_say_so(surrogate):
    given = np.ma.array([1.0, 2.0, 3.0, np.nan, 5.0], mask=[0, 1, 0, 0, 0])
    data = data_of(surrogate.what_if(feature_values=given))
    assert data["given"] == ["1", "missing", "3", "missing", "5"]


def test_what_removing_means_is_told(surrogate):
    assert data_of(surrogate.what_if())["removed"] is None
    data = data_of(surrogate.what_if(removed="replaced by 100 rows"))
    assert data["removed"] == "replaced by 100 rows"


def test_direction_characters_are_shown_as_escapes(surrogate):
    names = ["safe", "\u202eelbisivni", "\u2066a", "\x1b[31m", "größe"]
    page = surrogate.with_names(names, ["\u202eyes"]).what_if(
        feature_values=names, tokens=names, title="\u202etitle", removed="\u202enow"
    )
    shown = ["safe", "\\u202eelbisivni", "\\u2066a", "\\u001b[31m", "größe"]
    data = data_of(page)
    assert data["names"] == data["given"] == [text for text, _ in data["tokens"]]
    assert data["names"] == shown
    assert (data["output"], data["removed"]) == ("\\u202eyes", "\\u202enow")
    assert "<title>\\u202etitle</title>" in page.html and "\u202e" not in page.html


def test_anchored_surrogates_carry_every_piece():
    parts = tuple(
        Surrogate(2, ((), (0,)), np.array([float(k), 1.0 - k])) for k in range(2)
    )
    g = AnchoredSurrogate(np.array([[True, True], [False, True]]), parts)
    data = data_of(g.what_if())
    assert data["anchors"] == [[1, 1], [0, 1]]
    assert [piece["coef"] for piece in data["pieces"]] == [[0.0, 1.0], [1.0, 0.0]]
    assert "4 terms in 2 local models" in data["notes"][3]
    assert g.smallest_change(0.5).found is False
    assert "srcdoc" in g._repr_html_()


def test_notebooks_get_a_sandboxed_frame(surrogate):
    named = surrogate.with_names(['"><script>alert(1)</script>'] * 5)
    shown = Elements(named._repr_html_())
    assert [tag for tag, _ in shown.tags] == ["iframe"]
    attrs = shown.tags[0][1]
    assert attrs["sandbox"] == "allow-scripts"
    assert attrs["srcdoc"] == named.what_if(max_evaluated=2000).html


def test_a_page_that_was_not_written_has_no_path(surrogate):
    page = surrogate.what_if()
    assert "not written" in repr(page)
    with pytest.raises(ValueError, match="save"):
        open(page)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a"]}, "got 1 feature_names; needed 5"),
        ({"feature_values": [1]}, "got 1 feature_values; needed 5"),
        ({"image": np.zeros((2, 2))}, "only one of image and segments"),
        ({"threshold": float("inf")}, "finite"),
        ({"output": 1}, "one output"),
        ({"start": [True]}, "masks have shape"),
    ],
)
def test_misfits_are_explained(surrogate, options, message):
    with pytest.raises(ValueError, match=message):
        surrogate.what_if(**options)


def test_a_page_is_replaced_whole_or_not_at_all(surrogate, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    surrogate.what_if(path, title="old")
    before = path.read_bytes()

    def full(handle):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        surrogate.what_if(path, title="new")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
