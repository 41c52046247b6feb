/* The surrogate in the browser: numbers only, no document.
 *
 * g(x) = sum of coef_S * chi_S(x), where chi_S is +1 or -1 and changes sign whenever a
 * feature of S is removed or restored. An anchored surrogate is one such polynomial per
 * anchor; the nearest anchor (Hamming distance, lowest index on ties) answers. */

/** One polynomial at the current mask. */
class Polynomial {
  constructor({ terms, coef }, nFeatures) {
    this.terms = terms;
    this.coef = coef;
    this.signed = Float64Array.from(coef); // coef_S * chi_S; everything starts kept
    this.rows = Array.from({ length: nFeatures }, () => []);
    terms.forEach((term, row) => term.forEach((i) => this.rows[i].push(row)));
    this.refresh();
  }

  /** Sum all terms again, so that rounding never accumulates from toggle to toggle. */
  refresh() {
    let sum = 0;
    for (const part of this.signed) sum += part;
    this.value = sum;
  }

  /** g if feature i were flipped: only the terms that hold i change, by their sign. */
  peek(i) {
    let share = 0;
    for (const row of this.rows[i]) share += this.signed[row];
    return this.value - 2 * share;
  }

  flip(i) {
    this.value = this.peek(i);
    for (const row of this.rows[i]) this.signed[row] = -this.signed[row];
  }
}

/** One polynomial per anchor; a plain surrogate has a single anchor. */
class Surrogate {
  constructor({ n, pieces, anchors }) {
    this.n = n;
    this.kept = new Uint8Array(n).fill(1);
    this.pieces = pieces.map((piece) => new Polynomial(piece, n));
    this.anchors = anchors;
    this.distance = anchors.map((anchor) => anchor.filter((kept) => !kept).length);
  }

  /** The nearest anchor, now or (given i) after feature i would be flipped. */
  nearest(i = -1) {
    let best = 0;
    let least = Infinity;
    for (let a = 0; a < this.anchors.length; a += 1) {
      const distance = this.distance[a] + (i < 0 ? 0 : this.step(a, i));
      if (distance < least) {
        best = a;
        least = distance;
      }
    }
    return best;
  }

  /** Change of the distance to anchor a when feature i flips. */
  step(a, i) {
    return this.kept[i] === this.anchors[a][i] ? 1 : -1;
  }

  get piece() {
    return this.pieces[this.nearest()];
  }

  get value() {
    return this.piece.value;
  }

  peek(i) {
    return this.pieces[this.nearest(i)].peek(i);
  }

  flip(i) {
    for (let a = 0; a < this.anchors.length; a += 1) {
      this.distance[a] += this.step(a, i);
    }
    this.kept[i] = 1 - this.kept[i];
    for (const piece of this.pieces) piece.flip(i);
  }

  /** Go to a mask (0 or 1 for each feature); returns the features that changed. */
  set(mask) {
    const changed = [];
    for (let i = 0; i < this.n; i += 1) {
      if (Number(mask[i]) !== this.kept[i]) changed.push(i);
    }
    for (const i of changed) this.flip(i);
    for (const piece of this.pieces) piece.refresh();
    return changed;
  }

  /** Run `visit` with feature i flipped, then restore every number exactly. */
  withFlipped(i, visit) {
    const values = this.pieces.map((piece) => piece.value);
    this.flip(i);
    const result = visit();
    this.flip(i);
    this.pieces.forEach((piece, a) => { piece.value = values[a]; });
    return result;
  }
}

/* Smallest change that carries g across a threshold: the twin of search.py. */

/** Number of ways to choose k of n. */
function binomial(n, k) {
  let ways = 1;
  for (let j = 1; j <= k; j += 1) ways = (ways * (n - k + j)) / j;
  return Math.round(ways);
}

/** Exhaustive by size while the changes up to it number at most maxTries; then greedy. */
function smallestChange(model, threshold, tolerance, maxTries) {
  const sign = model.value >= threshold ? -1 : 1;
  const past = (value) => sign * (value - threshold) - tolerance;
  let searched = 0;
  let tried = 0;
  while (searched < model.n) {
    tried += binomial(model.n, searched + 1);
    if (tried > maxTries) {
      return { features: greedyChange(model, past, tolerance), exact: false, searched };
    }
    searched += 1;
    const features = bestOfSize(model, past, tolerance, searched);
    if (features) return { features, exact: true, searched };
  }
  return { features: null, exact: true, searched };
}

/** The change of `size` features that goes farthest past the threshold, if any does. */
function bestOfSize(model, past, tolerance, size) {
  let best = null;
  let reached = 0;
  const chosen = [];
  const descend = (from) => {
    for (let i = from; i <= model.n - (size - chosen.length); i += 1) {
      if (chosen.length === size - 1) {
        const progress = past(model.peek(i));
        if (progress > reached + (best ? tolerance : 0)) {
          best = [...chosen, i];
          reached = progress;
        }
      } else {
        chosen.push(i);
        model.withFlipped(i, () => descend(i + 1));
        chosen.pop();
      }
    }
  };
  descend(0);
  return best;
}

/** Best single flip again and again until g crosses; then undo what is not needed. */
function greedyChange(model, past, tolerance) {
  const start = Array.from(model.kept);
  const rest = start.map((_, i) => i);
  let flipped = [];
  while (rest.length && !(past(model.value) > 0)) {
    const progress = rest.map((i) => past(model.peek(i)));
    const most = progress.reduce((a, b) => Math.max(a, b));
    const row = progress.findIndex((value) => value >= most - tolerance);
    const [i] = rest.splice(row, 1);
    model.flip(i);
    flipped.push(i);
  }
  const crossed = past(model.value) > 0;
  for (const i of crossed ? [...flipped] : []) {
    if (flipped.length > 1 && past(model.peek(i)) > 0) {
      model.flip(i);
      flipped = flipped.filter((j) => j !== i);
    }
  }
  model.set(start);
  return crossed ? flipped.sort((a, b) => a - b) : null;
}

/* True values of the model: {mask as packed bits: value}. */

/** Masks and values that Python packed, in the order given there. */
class Evaluated {
  constructor({ masks, values }, nFeatures) {
    this.width = Math.ceil(nFeatures / 8);
    this.packed = atob(masks);
    const bytes = Uint8Array.from(atob(values), (c) => c.charCodeAt(0));
    this.values = new Float64Array(bytes.buffer);
    this.index = new Map();
    this.values.forEach((_, row) => {
      const key = this.key(row);
      if (!this.index.has(key)) this.index.set(key, row);
    });
  }

  key(row) {
    return this.packed.slice(row * this.width, (row + 1) * this.width);
  }

  /** The model's value at a mask, or undefined where it was not evaluated. */
  at(kept) {
    const bytes = new Uint8Array(this.width);
    kept.forEach((bit, i) => { bytes[i >> 3] |= bit << (i & 7); });
    return this.values[this.index.get(String.fromCharCode(...bytes))];
  }

  mask(row, nFeatures) {
    const key = this.key(row);
    return Array.from(
      { length: nFeatures },
      (_, i) => (key.charCodeAt(i >> 3) >> (i & 7)) & 1,
    );
  }
}
