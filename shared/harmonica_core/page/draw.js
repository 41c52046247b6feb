/* What is drawn: features as rows, words or superpixels, and the terms of g. Names and
 * values come from anywhere, so they only ever become text (textContent, setAttribute),
 * never markup. Clicks go to `toggle` in page.js. */

const data = JSON.parse(document.getElementById("data").textContent);
const model = new Surrogate(data);
const evaluated = data.evaluated && new Evaluated(data.evaluated, data.n);
const byId = (id) => document.getElementById(id);
const SHOWN_TERMS = 12;

/** Make an element; attributes by setAttribute, children as elements or plain text. */
function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "image", "text", "pattern", "rect", "defs", "g"];
  const made = svg.includes(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...children);
  return made;
}

/** Write text only where it changed: the browser then lays out only that. */
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/* Numbers */

const range = { low: data.range[0], high: data.range[1] };
const largest = Math.max(Math.abs(range.low), Math.abs(range.high));
const extreme = range.high - range.low < 1e-6 || largest >= 1e15;
const power = extreme ? Math.floor(Math.log10(largest)) : 0; // of ten, in every number
const unit = extreme ? ` \u00d7 10${raised(power)}` : "";
const digits = Math.min(
  9, Math.max(0, 2 + power - Math.floor(Math.log10(range.high - range.low))),
);
const format = (least, most) => (
  new Intl.NumberFormat("en", { minimumFractionDigits: least, maximumFractionDigits: most })
);
const [fixed, free] = [format(digits, digits), format(0, 9)];

function raised(whole) {
  return String(whole).replace(/./g, (c) => (c === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[c]));
}

/** As people write it: 23,350 and \u22120.25, never 2.3e+4 or \u22120. */
function told(value, by) {
  const text = by.format(Math.abs(value) / 10 ** power);
  return (value < 0 && /[1-9]/.test(text) ? "\u2212" : "") + text + unit;
}

const number = (value) => told(value, fixed);
const signed = (value) => (number(value).startsWith("\u2212") ? "" : "+") + number(value);
/** Few digits that matter; what rounding leaves of zero is zero. */
const short = (value, few = 3) => told(
  Math.abs(value) <= data.tolerance ? 0 : Number(value.toPrecision(few)), free,
);
const direction = (value) => (value > 0 ? "rise" : "fall");

/** base + the Shapley values of the kept features: what a SHAP plot would add up to. */
function additive() {
  let sum = data.base;
  model.kept.forEach((kept, i) => { if (kept) sum += data.shapley[i]; });
  return sum;
}

/* Features: every one is a real button, as a row, a word or (twice) a superpixel. */

const buttons = []; // by feature; a feature may own several words
const segments = [];

function toggleButton(i, attributes, ...children) {
  const button = element("button", { type: "button", "data-feature": i, ...attributes }, ...children);
  button.addEventListener("click", () => toggle(i));
  ["pointerenter", "focus"].forEach((on) => button.addEventListener(on, () => light(i)));
  ["pointerleave", "blur"].forEach((on) => button.addEventListener(on, () => light(-1)));
  (buttons[i] ??= []).push(button);
  return button;
}

function buildRows() {
  const order = data.order.map((i) => {
    const own = element("span", { class: "own" }, data.names[i]);
    const name = element("span", { class: "name" }, own);
    if (data.given) name.append(element("span", { class: "given" }, data.given[i]));
    const row = toggleButton(
      i, { class: "feature" },
      element("span", { class: "switch", "aria-hidden": "true" }),
      name,
      element("span", { class: "effect" }),
    );
    return element("li", {}, row);
  });
  byId("features").append(...order);
  byId("features").hidden = false;
  byId("filter-label").hidden = data.n <= 24;
  byId("filter").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    order.forEach((item, k) => {
      item.hidden = !data.names[data.order[k]].toLowerCase().includes(wanted);
    });
  });
}

function buildSentence() {
  data.tokens.forEach(([text, i]) => {
    byId("sentence").append(
      i === null
        ? element("span", { class: "plain" }, text)
        : toggleButton(i, { class: "token" }, text),
      " ",
    );
  });
  byId("sentence").hidden = false;
  document.querySelector("main").classList.add("text");
}

function buildPicture() {
  const { width, height, source, fills, outline, centres } = data.picture;
  const unit = Math.max(width, height) / 100;
  const hatch = element(
    "pattern",
    { id: "hatch", width: 2 * unit, height: 2 * unit, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    element("rect", { width: 2 * unit, height: 2 * unit, fill: "#6f757c" }),
    element("rect", { width: unit, height: 2 * unit, fill: "#878e96" }),
  );
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  svg.append(element("defs", {}, hatch), element("image", { href: source, width, height }));
  fills.forEach((path, i) => {
    const segment = element("path", { class: "segment", d: path });
    segment.addEventListener("click", () => toggle(i));
    segment.addEventListener("pointerenter", () => light(i));
    segment.addEventListener("pointerleave", () => light(-1));
    segments.push(segment);
    svg.append(segment);
  });
  svg.append(element("path", { class: "outline", d: outline, "stroke-width": unit / 4 }));
  centres.forEach(([x, y], i) => {
    if (!fills[i]) return; // a feature without pixels
    const place = { class: "number", x, y, "font-size": 4 * unit, "stroke-width": unit };
    svg.append(element("text", place, data.marks[i]));
  });
  byId("picture").append(svg);
  byId("picture").hidden = false;
}

/** Pressed state, and what each feature does to the output among the others now. */
function drawFeatures() {
  const now = model.value;
  const effects = buttons.map((_, i) => (model.kept[i] ? now - model.peek(i) : model.peek(i) - now));
  const most = effects.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  buttons.forEach((owned, i) => owned.forEach((button) => {
    const kept = model.kept[i] === 1;
    const effect = effects[i];
    const text = number(effect) === number(0) ? number(0) : signed(effect);
    button.setAttribute("aria-pressed", String(kept));
    const place = button.querySelector(".effect");
    const target = place ?? button;
    target.classList.toggle("rise", effect > 0);
    target.classList.toggle("fall", effect < 0);
    const after = number(kept ? now - effect : now + effect);
    const does = `${kept ? "adds" : "would add"} ${text}; ${kept ? "remove" : "restore"} it: ${after}`;
    if (place) {
      write(place, text);
      button.setAttribute("aria-label", `${label(i)}, ${does}`);
    } else {
      button.style.setProperty("--heat", (Math.abs(effect) / most).toFixed(2));
      button.setAttribute("aria-label", `${button.textContent}, ${does}`);
    }
    button.title = does;
  }));
  segments.forEach((segment, i) => segment.classList.toggle("removed", !model.kept[i]));
}

const label = (i) => (data.given ? `${data.names[i]} ${data.given[i]}` : data.names[i]);

/* Terms */

let shownPiece = null;
let rows = []; // { node, fill, adds, row, term } of the terms on show
let lastChanged = [];

function buildTerms(piece) {
  const largest = piece.terms
    .map((term, row) => row)
    .filter((row) => piece.terms[row].length)
    .sort((a, b) => Math.abs(piece.coef[b]) - Math.abs(piece.coef[a]) || a - b)
    .slice(0, SHOWN_TERMS);
  rows = largest.map((row) => termRow(piece.terms[row], row));
  const intercept = piece.terms.findIndex((term) => !term.length);
  const others = piece.terms.length - largest.length - (intercept < 0 ? 0 : 1);
  if (others > 0) {
    rows.push(termRow([], null, `${others.toLocaleString("en")} smaller ones`));
  }
  if (intercept >= 0) rows.push(termRow([], intercept, "Average of all combinations"));
  byId("terms").replaceChildren(...rows.map(({ node }) => node));
  rows.widest = Math.max(...largest.map((row) => Math.abs(piece.coef[row])), 1e-300);
  shownPiece = piece;
}

function termRow(term, row, name = "") {
  const fill = element("i");
  const bar = element("div", { class: "bar", "aria-hidden": "true" }, fill);
  const adds = element("td");
  const cell = element("td", {}, name);
  term.forEach((i, k) => {
    cell.append(k ? " with " : "", element("span", { class: "own", "data-of": i }, data.names[i]));
  });
  const node = element("tr", {}, cell, element("td", {}, term.length ? bar : ""), adds);
  node.classList.toggle("rest", !term.length);
  node.addEventListener("pointerenter", () => lightFeatures(term));
  node.addEventListener("pointerleave", () => lightFeatures([]));
  return { node, fill, adds, row, term };
}

function drawTerms() {
  const { piece } = model;
  if (piece !== shownPiece) buildTerms(piece);
  const listed = rows.reduce((sum, { row }) => sum + (row === null ? 0 : piece.signed[row]), 0);
  rows.forEach(({ node, fill, adds, row, term }) => {
    const part = row === null ? piece.value - listed : piece.signed[row];
    write(adds, signed(part));
    node.classList.toggle("lit", lastChanged.some((i) => term.includes(i)));
    node.querySelectorAll("[data-of]").forEach((name) => {
      name.classList.toggle("gone", !model.kept[name.dataset.of]);
    });
    if (!term.length) return; // the rest and the base would dwarf the bars
    fill.className = direction(part);
    fill.style.width = `${(50 * Math.abs(part)) / rows.widest}%`;
  });
}

/** Light the terms that hold feature i; with -1, those that changed last. */
function light(i) {
  const wanted = i < 0 ? lastChanged : [i];
  rows.forEach(({ node, term }) => {
    node.classList.toggle("lit", wanted.some((feature) => term.includes(feature)));
  });
  segments.forEach((segment, k) => segment.classList.toggle("lit", k === i));
}

function lightFeatures(term) {
  buttons.forEach((owned, i) => {
    owned.forEach((button) => button.classList.toggle("lit", term.includes(i)));
  });
  segments.forEach((segment, i) => segment.classList.toggle("lit", term.includes(i)));
}
