/* The page: the answer and its scale, what the buttons do, and the start. */

const history = []; // masks to go back to

/* Answer */

function show(id, value, text) {
  const node = byId(id);
  node.dataset.value = value === undefined ? "" : String(value);
  write(node, text);
}

function place(id, value, width = null) {
  const mark = byId(id);
  mark.hidden = value === undefined || value === null;
  if (mark.hidden) return;
  const percent = (x) => (100 * (x - range.low)) / (range.high - range.low);
  mark.style.left = `${percent(value)}%`;
  if (width !== null) mark.style.width = `${percent(range.low + width)}%`;
}

function drawTicks() {
  const spread = range.high - range.low;
  const rough = spread / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
  const ticks = [];
  const first = Math.ceil(range.low / step - 1e-9);
  for (let k = first; k * step <= range.high + 1e-9 * spread; k += 1) {
    const tick = element("span", { class: "tick" }, short(k * step));
    tick.style.left = `${(100 * (k * step - range.low)) / spread}%`;
    ticks.push(tick);
  }
  byId("ticks").replaceChildren(...ticks);
}

/** Grow the scale when an answer falls outside it. */
function fitRange(values) {
  const low = Math.min(range.low, ...values);
  const high = Math.max(range.high, ...values);
  if (low === range.low && high === range.high && byId("ticks").firstChild) return;
  Object.assign(range, { low, high });
  drawTicks();
}

function drawAnswer() {
  const g = model.value;
  const sum = additive();
  const truth = evaluated ? evaluated.at(model.kept) : undefined;
  const threshold = byId("threshold").value === "" ? undefined : Number(byId("threshold").value);
  fitRange([g, sum, truth ?? g, threshold ?? g]);
  show("g", g, number(g));
  show("additive", sum, number(sum));
  show("truth", truth, truth === undefined ? "\u2013" : number(truth));
  write(byId("band"), data.error === null ? "error not stated" : `\u00b1 ${short(data.error)} typical error`);
  const gap = sum - g;
  const apart = Math.abs(gap) > Math.max(data.error ?? 0, data.tolerance);
  write(byId("gap"), number(gap) === number(0) ? "agrees with g" : `${signed(gap)} from g`);
  byId("gap").classList.toggle("apart", apart && number(gap) !== number(0));
  write(byId("miss"), truth === undefined ? "not evaluated here" : `g is off by ${signed(g - truth)}`);
  place("mark-g", g);
  place("mark-additive", sum);
  place("mark-truth", truth);
  place("threshold-line", threshold);
  const half = data.error ?? 0;
  const from = Math.max(range.low, g - half);
  place("band-bar", half ? from : undefined, Math.min(range.high, g + half) - from);
  drawWarning();
}

/** Say so where the stated error does not reach. */
function drawWarning() {
  const removed = model.n - model.kept.reduce((a, b) => a + b, 0);
  write(byId("count"), `${removed} of ${model.n} removed`);
  const outside = data.radius !== null && removed > data.radius;
  byId("warning").hidden = !outside;
  if (outside) {
    write(byId("warning"), `Fitted on cases with up to ${data.radius} removed: with ${removed} removed the stated error does not hold.`);
  }
  const chosen = model.nearest();
  byId("anchor").hidden = model.pieces.length === 1;
  write(byId("anchor"), `Local model ${chosen + 1} of ${model.pieces.length}: the nearest anchor differs in ${model.distance[chosen]} features.`);
}

function draw(changed) {
  lastChanged = changed;
  drawAnswer();
  drawFeatures();
  drawTerms();
  byId("undo").disabled = history.length === 0;
  byId("apply").hidden = true;
  write(byId("found"), "");
}

/** Tell a screen reader what changed, in one sentence. */
function announce(what) {
  const error = data.error === null ? "" : `, plus or minus ${short(data.error)}`;
  write(byId("live"), `${what}. Explanation ${byId("g").textContent}${error}; additive sum ${byId("additive").textContent}, ${byId("gap").textContent}; model ${byId("truth").dataset.value === "" ? "not evaluated here" : byId("truth").textContent}.`);
}

/* Actions */

function go(mask, what) {
  const before = Array.from(model.kept);
  const changed = model.set(mask);
  if (changed.length) history.push(before);
  draw(changed);
  announce(what);
}

function toggle(i) {
  const mask = Array.from(model.kept);
  mask[i] = 1 - mask[i];
  go(mask, `${data.names[i]} ${mask[i] ? "restored" : "removed"}`);
}

function undo() {
  const changed = model.set(history.pop());
  draw(changed);
  announce("Undone");
  if (byId("undo").disabled) byId("reset").focus();
}

function reset() {
  history.length = 0;
  byId("threshold").value = data.threshold ?? "";
  draw(model.set(data.start));
  announce("Reset");
}

let visited = -1;
function nextEvaluated() {
  visited = (visited + 1) % evaluated.values.length;
  go(evaluated.mask(visited, data.n), `Evaluated case ${visited + 1} of ${evaluated.values.length}`);
}

function find() {
  if (byId("threshold").value === "") {
    write(byId("found"), "Enter a threshold first: a number on the scale of g.");
    byId("threshold").focus();
    return;
  }
  const threshold = Number(byId("threshold").value);
  const { features, exact, searched } = smallestChange(model, threshold, data.tolerance, data.maxTries);
  drawAnswer();
  byId("apply").hidden = !features;
  if (!features) {
    write(byId("found"), exact ? "No combination crosses it (all were tried)." : "None found: the greedy search did not cross it.");
    return;
  }
  const mask = Array.from(model.kept);
  features.forEach((i) => { mask[i] = 1 - mask[i]; });
  const list = (kept) => features.filter((i) => mask[i] === kept).map((i) => data.names[i]).join(", ");
  const parts = [["remove", 0], ["restore", 1]].filter(([, kept]) => list(kept)).map(([verb, kept]) => `${verb} ${list(kept)}`);
  const told = parts.join("; ");
  const after = probe(mask);
  const sure = exact
    ? "Exact: no smaller change crosses."
    : `Greedy: a smaller change may exist, but none of up to ${searched} feature${searched === 1 ? "" : "s"}.`;
  write(byId("found"), `${told[0].toUpperCase()}${told.slice(1)} \u2192 g = ${number(after)}. ${sure}`);
  byId("apply").onclick = () => {
    go(mask, "Change applied");
    byId("find").focus();
  };
}

/** g at another mask, leaving the page where it is. */
function probe(mask) {
  const here = Array.from(model.kept);
  model.set(mask);
  const value = model.value;
  model.set(here);
  return value;
}

/* Start */

function start() {
  const longest = Math.max(number(range.low).length, number(range.high).length);
  document.documentElement.style.setProperty("--number", `${longest + 1}ch`);
  write(byId("summary"), data.summary);
  write(byId("g-label"), data.output ? `Explanation g of ${data.output}` : "Explanation g");
  byId("scope").append(...data.notes.map((note) => element("li", {}, note)));
  if (data.picture) buildPicture();
  if (data.tokens) buildSentence();
  else buildRows();
  write(byId("hint"), data.tokens
    ? "Choose a word to remove or restore it. Its colour says what that would do to g now: blue raises it, orange lowers it."
    : "The number beside a feature says what removing (or restoring) it would do to g now.");
  byId("next-evaluated").hidden = !evaluated;
  byId("threshold").value = data.threshold ?? "";
  byId("threshold").addEventListener("input", drawAnswer);
  byId("keep-all").addEventListener("click", () => go(new Uint8Array(data.n).fill(1), "All kept"));
  byId("remove-all").addEventListener("click", () => go(new Uint8Array(data.n), "All removed"));
  byId("undo").addEventListener("click", undo);
  byId("reset").addEventListener("click", reset);
  byId("next-evaluated").addEventListener("click", nextEvaluated);
  byId("find").addEventListener("click", find);
  // Not a form: a sandboxed frame, as in a notebook, would not let it be submitted.
  byId("threshold").addEventListener("keydown", (event) => {
    if (event.key === "Enter") find();
  });
  model.set(data.start);
  draw([]);
}

start();

/* For scripts and tests: whatIf.set([1, 0, ...]) goes to a mask and returns g there. */
window.whatIf = { model, smallestChange, set(mask) { go(mask, "Set"); return model.value; } };
