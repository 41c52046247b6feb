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
  write(byId("band"), typicalError());
  const gap = sum - g;
  const apart = Math.abs(gap) > Math.max(data.error ?? 0, data.tolerance);
  write(byId("gap"), number(gap) === number(0) ? "agrees with the estimate" : `${signed(gap)} from the estimate`);
  byId("gap").classList.toggle("apart", apart && number(gap) !== number(0));
  write(byId("miss"), comparedWith(truth));
  place("mark-g", g);
  place("mark-additive", sum);
  place("mark-truth", truth);
  place("threshold-line", threshold);
  const half = data.error ?? 0;
  const from = Math.max(range.low, g - half);
  place("band-bar", half ? from : undefined, Math.min(range.high, g + half) - from);
  drawWarning();
}

function typicalError() {
  if (data.error === null) return "error not known";
  if (data.error <= data.tolerance) return data.exact ? "exact" : "no error found";
  return `\u00b1 ${short(data.error, 2)} typically`;
}

function comparedWith(truth) {
  if (truth === undefined) return "not asked for this one";
  const off = model.value - truth;
  return number(off) === number(0) ? "says the same" : `the estimate is off by ${signed(off)}`;
}

/** Say so where the stated error does not reach. */
function drawWarning() {
  const removed = model.n - model.kept.reduce((a, b) => a + b, 0);
  write(byId("count"), `${removed} of ${model.n} removed`);
  const outside = data.radius !== null && removed > data.radius;
  byId("warning").hidden = !outside;
  if (outside) {
    write(byId("warning"), `Made for up to ${data.radius} features removed: with ${removed} removed the stated error does not hold.`);
  }
  const chosen = model.nearest();
  byId("anchor").hidden = model.pieces.length === 1;
  write(byId("anchor"), `Local model ${chosen + 1} of ${model.pieces.length}: made for a combination that differs in ${model.distance[chosen]} features.`);
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
  const said = byId("truth").dataset.value === "" ? "" : ` ${byId("truth").textContent},`;
  write(byId("live"), `${what}. Estimate ${byId("g").textContent}, ${typicalError()}; single effects add up to ${byId("additive").textContent}, ${byId("gap").textContent}; the model itself:${said} ${byId("miss").textContent}.`);
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
  go(evaluated.mask(visited, data.n), `Combination ${visited + 1} of ${evaluated.values.length} that the model saw`);
}

function find() {
  if (byId("threshold").value === "") {
    write(byId("found"), "Enter a limit first: a number on the scale above.");
    byId("threshold").focus();
    return;
  }
  const threshold = Number(byId("threshold").value);
  const { features, exact, searched } = smallestChange(model, threshold, data.tolerance, data.maxTries);
  drawAnswer();
  byId("apply").hidden = !features;
  if (!features) {
    write(byId("found"), exact ? "No combination crosses it: all were tried." : "None found; not all could be tried.");
    return;
  }
  const mask = Array.from(model.kept);
  features.forEach((i) => { mask[i] = 1 - mask[i]; });
  const list = (kept) => features.filter((i) => mask[i] === kept).map((i) => data.names[i]).join(", ");
  const parts = [["remove", 0], ["restore", 1]].filter(([, kept]) => list(kept)).map(([verb, kept]) => `${verb} ${list(kept)}`);
  const advice = parts.join("; ");
  const after = probe(mask);
  const sure = exact
    ? "No smaller change is enough."
    : `A smaller change may be enough, but none of up to ${searched} feature${searched === 1 ? "" : "s"}.`;
  write(byId("found"), `${advice[0].toUpperCase()}${advice.slice(1)}: the estimate becomes ${number(after)}. ${sure}`);
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
  write(byId("g-label"), data.output ? `Estimated ${data.output}` : "Estimated output");
  byId("scope").append(...data.notes.map((note) => element("li", {}, note)));
  if (data.picture) buildPicture();
  if (data.tokens) buildSentence();
  else buildRows();
  write(byId("hint"), data.tokens
    ? "Choose a word to remove or restore it. Its colour says what the word does to the output now, among the words that are kept."
    : "The number beside a feature says what it adds to the output now, among the features that are kept.");
  byId("removed").hidden = data.removed === null;
  write(byId("removed"), `Removed means: ${data.removed}.`);
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
