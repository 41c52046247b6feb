"""The what-if page in a real Chromium: what a person sees, clicks and types."""

import browser
import numpy as np
import pytest
from core_games import misleading
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from harmonica_core import Estimate, Surrogate, basis, fit_surrogate
from harmonica_core.result.anchored import AnchoredSurrogate

pytestmark = pytest.mark.skipif(
    browser.missing() is not None, reason=str(browser.missing())
)


def polynomial(n_features, rng, n_terms=200, **options):
    """A random polynomial of degree 3."""
    table = basis.terms_up_to(n_features, 3)
    rows = np.append(0, 1 + rng.permutation(len(table) - 1)[: n_terms - 1])
    table = table[np.sort(rows)]
    return Surrogate(n_features, table, rng.normal(size=len(table)), **options)


def plain(n_features=14):
    return polynomial(n_features, np.random.default_rng(0))


def anchored(n_features=14, n_anchors=5):
    rng = np.random.default_rng(1)
    anchors = rng.random((n_anchors, n_features)) < 0.5
    anchors[0] = True
    parts = tuple(polynomial(n_features, rng, 60) for _ in anchors)
    return AnchoredSurrogate(anchors, parts)


def game(masks):
    both = masks[:, 0] & masks[:, 1]
    return 0.2 + 0.3 * masks[:, 2] + 0.4 * both


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser.chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def visit(driver, tmp_path):
    """Open the page of a surrogate; afterwards the console must be empty."""

    def open_page(surrogate, width=1280, height=900, dark=False, **options):
        browser.resize(driver, width, height, dark)
        page = surrogate.what_if(tmp_path / "page.html", **options)
        driver.get(page.path.as_uri())
        return driver

    driver.get_log("browser")
    yield open_page
    assert driver.get_log("browser") == []


def by_id(driver, name):
    return driver.find_element(By.ID, name)


def number(driver, name="g"):
    return float(by_id(driver, name).get_attribute("data-value"))


def features(driver):
    """Buttons of the features, in the order of the features."""
    return driver.execute_script(
        "return [...document.querySelectorAll('button[data-feature]')]"
        ".sort((a, b) => a.dataset.feature - b.dataset.feature)"
    )


def kept(driver):
    pressed = driver.execute_script(
        "return arguments[0].map((b) => b.getAttribute('aria-pressed'))",
        features(driver),
    )
    return np.array([value == "true" for value in pressed])


@pytest.mark.parametrize("make", [plain, anchored])
def test_predictions_equal_python_s(visit, make):
    g = make()
    driver = visit(g)
    masks = np.random.default_rng(2).random((1000, g.n_features)) < 0.5
    found = driver.execute_script(
        """return arguments[0].map((mask) => {
             whatIf.set(mask);
             return Number(document.getElementById("g").dataset.value);
           });""",
        masks.astype(int).tolist(),
    )
    np.testing.assert_allclose(found, g(masks), rtol=0, atol=1e-9)


@pytest.mark.parametrize("make", [plain, anchored])
def test_toggling_changes_the_number_to_the_surrogate_s(visit, make):
    g = make()
    driver = visit(g)
    mask = np.ones(g.n_features, dtype=bool)
    assert number(driver) == pytest.approx(g(mask)[0], abs=1e-12)
    for i in [3, 0, 3, 7, 1]:
        features(driver)[i].click()
        mask[i] ^= True
        assert (kept(driver) == mask).all()
        assert number(driver) == pytest.approx(g(mask)[0], abs=1e-12)


@pytest.mark.parametrize("make", [plain, anchored])
def test_effects_beside_the_features_come_true(visit, make):
    g = make()
    driver = visit(g)
    features(driver)[2].click()
    label = features(driver)[5].find_element(By.CLASS_NAME, "effect").text
    mask = kept(driver)
    flipped = g(mask ^ np.eye(g.n_features, dtype=bool))
    peeked = (
        "return Array.from({ length: whatIf.model.n }, (_, i) => whatIf.model.peek(i))"
    )
    np.testing.assert_allclose(driver.execute_script(peeked), flipped, atol=1e-9)
    promised = float(label.replace("\u2212", "-"))
    assert promised == pytest.approx(g(mask)[0] - flipped[5], abs=0.06)


def test_additive_sum_and_its_gap_are_shown(visit):
    g = fit_surrogate(game, 3)
    driver = visit(g)
    assert by_id(driver, "gap").text == "agrees with the estimate"
    features(driver)[0].click()
    mask = np.array([False, True, True])
    expected = g.base_value + g.shapley_values()[mask].sum()
    assert number(driver, "additive") == pytest.approx(expected)
    assert number(driver, "additive") - number(driver) == pytest.approx(0.2)
    assert by_id(driver, "gap").text == "+0.200 from the estimate"


def test_true_value_is_shown_only_where_it_was_evaluated(visit):
    g = fit_surrogate(game, 3)
    driver = visit(g, max_evaluated=4)  # all kept, and one removed
    assert number(driver, "truth") == game(np.ones((1, 3), bool))[0]
    features(driver)[2].click()
    assert number(driver, "truth") == game(kept(driver)[None])[0]
    features(driver)[0].click()
    assert by_id(driver, "truth").get_attribute("data-value") == ""
    assert by_id(driver, "miss").text == "not asked for this one"
    by_id(driver, "next-evaluated").click()
    assert kept(driver).all()
    by_id(driver, "next-evaluated").click()
    assert kept(driver).sum() == 2
    assert number(driver, "truth") == game(kept(driver)[None])[0]


def test_evaluated_values_are_found_for_many_features(visit):
    rng = np.random.default_rng(3)
    weights = rng.normal(size=37)
    g = fit_surrogate(
        lambda masks: masks @ weights, 37, degree=1, budget=300, terms=None
    )
    driver = visit(g)
    rows = rng.permutation(300)[:50]
    found = driver.execute_script(
        """return arguments[0].map((mask) => {
             whatIf.set(mask);
             return Number(document.getElementById("truth").dataset.value);
           });""",
        g.evaluated.masks[rows].astype(int).tolist(),
    )
    assert found == g.evaluated.values[rows].tolist()


def test_presets_and_undo(visit):
    g = plain(5)
    start = [True, False, True, True, True]
    driver = visit(g, start=start)
    undo = by_id(driver, "undo")
    assert kept(driver).tolist() == start and not undo.is_enabled()
    by_id(driver, "remove-all").click()
    assert not kept(driver).any()
    assert number(driver) == pytest.approx(g.base_value)
    by_id(driver, "keep-all").click()
    assert kept(driver).all()
    undo.click()
    assert not kept(driver).any()
    undo.click()
    assert kept(driver).tolist() == start and not undo.is_enabled()
    features(driver)[0].click()
    by_id(driver, "reset").click()
    assert kept(driver).tolist() == start and not undo.is_enabled()


@pytest.mark.parametrize("make", [plain, anchored])
@pytest.mark.parametrize("max_tries", [200_000, 14], ids=["exact", "greedy"])
def test_smallest_change_is_python_s(visit, make, max_tries):
    g = make()
    driver = visit(g)
    rng = np.random.default_rng(4)
    values = g(rng.random((400, 14)) < 0.5)
    for quantile in (0.01, 0.2, 0.5, 0.8, 0.999):
        start = rng.random(14) < 0.5
        threshold = float(np.quantile(values, quantile)) + 1e-3
        expected = g.smallest_change(threshold, start=start, max_tries=max_tries)
        found = driver.execute_script(
            """whatIf.set(arguments[0]);
               const before = whatIf.model.value;
               const found = whatIf.smallestChange(
                 whatIf.model, arguments[1], arguments[2], arguments[3]);
               return { ...found, moved: whatIf.model.value - before };""",
            start.astype(int).tolist(),
            threshold,
            1e-10,
            max_tries,
        )
        assert found["moved"] == 0
        assert found["exact"] == expected.exact
        assert found["searched"] == expected.searched
        assert (found["features"] is not None) == expected.found
        assert tuple(found["features"] or ()) == expected.features


def test_the_stated_error_is_told_also_when_it_is_zero(visit):
    exact = Surrogate(2, ((0,),), np.ones(1), error=Estimate(0.0, 0.0, 4, exact=True))
    assert by_id(visit(exact), "band").text == "exact"
    rounding = exact.changed(error=Estimate(3.37e-16, 1e-17, 4))
    assert by_id(visit(rounding), "band").text == "no error found"
    rough = exact.changed(error=Estimate(0.01234, 0.001, 4))
    assert by_id(visit(rough), "band").text == "± 0.012 typically"
    assert by_id(visit(plain()), "band").text == "error not known"


def test_greedy_search_undoes_what_is_not_needed(visit):
    driver = visit(fit_surrogate(misleading, 3))
    search = "return whatIf.smallestChange(whatIf.model, 5.5, 1e-10, 3)"
    found = driver.execute_script(search)
    assert found == {"features": [1, 2], "exact": False, "searched": 1}


def test_smallest_change_is_told_and_applied(visit):
    g = fit_surrogate(game, 3, feature_names=("age", "dose", "sex"))
    driver = visit(g, threshold=0.4)
    by_id(driver, "find").click()
    text = by_id(driver, "found").text
    assert "Remove age, sex: the estimate becomes 0.200." in text
    assert "No smaller change is enough" in text
    by_id(driver, "apply").click()
    assert kept(driver).tolist() == [False, True, False]
    assert number(driver) == pytest.approx(0.2)
    threshold = by_id(driver, "threshold")
    threshold.clear()
    by_id(driver, "find").click()
    assert "Enter a limit" in by_id(driver, "found").text
    threshold.send_keys("7", Keys.ENTER)
    assert "No combination crosses it" in by_id(driver, "found").text
    assert not by_id(driver, "apply").is_displayed()


def test_keyboard_alone_is_enough(visit):
    g = fit_surrogate(game, 3, feature_names=("age", "dose", "sex"))
    driver = visit(g, threshold=0.4)

    def press(*keys):
        driver.switch_to.active_element.send_keys(*keys)

    def tab_to(wanted):
        for _ in range(30):
            press(Keys.TAB)
            active = driver.switch_to.active_element
            name = active.get_attribute("id") or active.get_attribute("aria-label")
            if name.startswith(wanted):
                return active
        raise AssertionError(f"{wanted} can not be reached with Tab")

    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "Skip to the answer"
    button = tab_to("dose")
    outline = "return getComputedStyle(arguments[0]).outlineStyle"
    assert driver.execute_script(outline, button) == "solid"
    press(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "false"
    assert driver.switch_to.active_element == button
    press(Keys.ENTER)
    assert button.get_attribute("aria-pressed") == "true"
    tab_to("threshold")
    press(Keys.ENTER)
    tab_to("apply")
    press(Keys.ENTER)
    assert number(driver) == pytest.approx(0.2)
    assert driver.switch_to.active_element.get_attribute("id") == "find"


def test_screen_readers_are_told(visit):
    g = fit_surrogate(game, 3, feature_names=("age", "dose", "sex"))
    driver = visit(g)
    button = features(driver)[1]
    assert button.tag_name == "button" and button.aria_role == "button"
    assert button.accessible_name == "dose, adds +0.400; remove it: 0.500"
    button.click()
    assert button.accessible_name == "dose, would add +0.400; restore it: 0.900"
    live = by_id(driver, "live")
    assert live.get_attribute("aria-live") == "polite"
    told = live.get_attribute("textContent")
    assert told.startswith("dose removed. Estimate 0.500, exact")
    assert "single effects add up to 0.700" in told
    assert "the model itself: 0.500, says the same" in told
    for control in driver.find_elements(By.CSS_SELECTOR, "button, input"):
        assert not control.is_displayed() or control.accessible_name


XSS = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<!--<script>",
    "\u2028javascript:window.hacked=1",
    "{{script}}'\"&lt;",
)


@pytest.mark.parametrize("view", ["rows", "words", "picture"])
def test_hostile_names_stay_text(visit, view):
    g = plain(5).with_names(XSS, [XSS[1]])
    options = {
        "rows": {},
        "words": {"tokens": XSS},
        "picture": {"image": np.zeros((2, 5)), "segments": [range(5)] * 2},
    }[view]
    driver = visit(g, title=XSS[0], feature_values=XSS, threshold=0.1, **options)
    features(driver)[1].click()
    by_id(driver, "find").click()
    assert driver.execute_script("return window.hacked") is None
    assert len(driver.find_elements(By.TAG_NAME, "script")) == 2
    assert driver.find_elements(By.TAG_NAME, "img") == []
    assert by_id(driver, "title").get_attribute("textContent") == XSS[0]
    assert driver.title == XSS[0]
    assert XSS[1] in features(driver)[1].get_attribute("textContent")


def test_words_are_toggled_in_their_sentence(visit):
    g = plain(3)
    tokens = [("[CLS]", None), ("not", 0), ("so", 1), ("bad", 2), ("!", None)]
    driver = visit(g, tokens=tokens)
    assert by_id(driver, "sentence").text == "[CLS] not so bad !"
    assert by_id(driver, "features").is_displayed() is False
    features(driver)[2].click()
    assert number(driver) == pytest.approx(g([True, True, False])[0])


def test_superpixels_are_toggled_on_their_image(visit):
    g = plain(4)
    segments = np.repeat(np.repeat([[0, 1], [2, 3]], 20, axis=0), 20, axis=1)
    driver = visit(g, image=segments / 3.0, segments=segments)
    paths = driver.find_elements(By.CSS_SELECTOR, "path.segment")
    paths[2].click()
    assert kept(driver).tolist() == [True, True, False, True]
    assert "removed" in paths[2].get_attribute("class")
    assert number(driver) == pytest.approx(g(kept(driver))[0])
    loaded = "return document.querySelector('image').getBBox().width"
    assert driver.execute_script(loaded) == 40


def test_terms_add_up_and_light_up(visit):
    g = plain(14)
    driver = visit(g)
    features(driver)[4].click()
    rows = driver.find_elements(By.CSS_SELECTOR, "#terms tr")
    adds = [row.find_elements(By.TAG_NAME, "td")[2].text for row in rows]
    total = sum(float(text.replace("\u2212", "-")) for text in adds)
    assert total == pytest.approx(number(driver), abs=0.1)
    lit = ["lit" in row.get_attribute("class").split() for row in rows]
    names = [row.find_element(By.TAG_NAME, "td").text for row in rows]
    assert lit == ["x4" in name.split(" with ") for name in names]
    assert any(lit)
    gone = driver.find_elements(By.CSS_SELECTOR, "#terms .gone")
    assert {name.text for name in gone} == {"x4"}


def test_red_raises_and_blue_lowers_everywhere(visit):
    g = fit_surrogate(lambda m: 1.0 * m[:, 0] - m[:, 1], 2, feature_names=("up", "low"))
    red, blue = "rgb(214, 0, 75)", "rgb(0, 111, 208)"
    style = "return getComputedStyle(arguments[0])[arguments[1]]"
    driver = visit(g)

    def effects():
        texts = [one.find_element(By.CLASS_NAME, "effect") for one in features(driver)]
        return [(t.text, driver.execute_script(style, t, "color")) for t in texts]

    # What a feature does, not what a click does: the same whether it is kept or not.
    assert effects() == [("+1.00", red), ("\u22121.00", blue)]
    bars = {}
    for row in driver.find_elements(By.CSS_SELECTOR, "#terms tr"):
        fill = row.find_elements(By.CSS_SELECTOR, ".bar i")
        if fill:
            name = row.find_element(By.TAG_NAME, "td").text
            bars[name] = driver.execute_script(style, fill[0], "backgroundColor")
    assert bars == {"up": red, "low": blue}
    features(driver)[0].click()
    assert effects() == [("+1.00", red), ("\u22121.00", blue)]
    keys = driver.find_elements(By.CSS_SELECTOR, ".legend .key")
    shades = [driver.execute_script(style, key, "backgroundColor") for key in keys]
    assert shades == [red, blue]
    words = visit(g, tokens=("up", "low"))
    shades = [
        words.execute_script(style, one, "borderBottomColor") for one in features(words)
    ]
    assert shades == [red, blue]


@pytest.mark.parametrize(
    ("scale", "kept", "restored"),
    [
        (23350.0, "23,350", "+23,350"),
        (
            1e-10,
            "1.00 \u00d7 10\u207b\u00b9\u2070",
            "+1.00 \u00d7 10\u207b\u00b9\u2070",
        ),
        (2e16, "2.00 \u00d7 10\u00b9\u2076", "+2.00 \u00d7 10\u00b9\u2076"),
    ],
)
def test_numbers_are_written_as_people_do(visit, scale, kept, restored):
    g = fit_surrogate(lambda m: scale * m[:, 0], 2, output_names=["loss in euro"])
    driver = visit(g, removed="replaced by the mean")
    assert by_id(driver, "g-label").text == "Estimated loss in euro"
    assert by_id(driver, "g").text == kept
    labels = [b.find_element(By.CLASS_NAME, "effect").text for b in features(driver)]
    assert labels[0] == restored and labels[1].startswith("0")
    text = driver.find_element(By.TAG_NAME, "body").text
    assert "e+" not in text and "e-1" not in text
    assert by_id(driver, "removed").text == "Removed means: replaced by the mean."
    for word in ("Explanation g", "Model f", "Intercept", "Term", "Additive"):
        assert word not in text


def test_local_model_in_charge_is_named(visit):
    g = anchored()
    driver = visit(g)
    assert "Local model 1 of 5" in by_id(driver, "anchor").text
    by_id(driver, "remove-all").click()
    chosen = int(g.nearest(np.zeros(14, bool))[0])
    assert f"Local model {chosen + 1} of 5" in by_id(driver, "anchor").text


def test_leaving_the_neighbourhood_is_said(visit):
    g = fit_surrogate(game, 3, radius=1)
    driver = visit(g)
    features(driver)[0].click()
    assert not by_id(driver, "warning").is_displayed()
    features(driver)[1].click()
    assert "stated error does not hold" in by_id(driver, "warning").text


def test_long_lists_can_be_filtered(visit):
    driver = visit(plain(30))
    by_id(driver, "filter").send_keys("X2")
    shown = [b for b in features(driver) if b.is_displayed()]
    assert len(shown) == 11  # x2 and x20 to x29


VIEWS = {
    "rows": lambda: (plain(30).with_names(["n" * 60] * 30), {}),
    "words": lambda: (plain(30), {"tokens": ["word"] * 29 + ["w" * 60]}),
    "picture": lambda: (
        plain(4),
        {
            "image": np.zeros((30, 60)),
            "segments": np.arange(1800).reshape(30, 60) // 450,
        },
    ),
}


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("view", VIEWS)
def test_nothing_sticks_out_at_any_width(visit, view, width, tmp_path):
    g, options = VIEWS[view]()
    driver = visit(g, width=width, title="t" * 90, threshold=0.0, **options)
    by_id(driver, "find").click()
    size = driver.execute_script("return document.documentElement.scrollWidth")
    assert size <= width
    browser.screenshot(driver, tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 5000


def test_dark_mode_is_followed(visit):
    shade = "return getComputedStyle(document.body).backgroundColor"
    light = visit(plain(3)).execute_script(shade)
    dark = visit(plain(3), dark=True).execute_script(shade)
    assert (light, dark) == ("rgb(244, 245, 247)", "rgb(16, 19, 22)")


def test_nothing_is_loaded_from_anywhere(visit):
    driver = visit(plain(3))
    entries = "return performance.getEntriesByType('resource').map((e) => e.name)"
    assert driver.execute_script(entries) == []


def test_notebook_frame_works_in_its_sandbox(driver, tmp_path):
    g = fit_surrogate(game, 3, feature_names=("age", "dose", "sex"))
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><title>n</title>{g._repr_html_()}")
    driver.get_log("browser")
    driver.get(notebook.as_uri())
    driver.switch_to.frame(0)
    features(driver)[0].click()
    assert number(driver) == pytest.approx(0.5)
    by_id(driver, "threshold").send_keys("0.3", Keys.ENTER)
    assert "Remove sex" in by_id(driver, "found").text
    driver.switch_to.default_content()
    assert driver.get_log("browser") == []
