"use strict";
/* Sorting, tooltips and planes that can be moved and enlarged. The page says all it has to say without this. */
(() => {
const all = (query, root = document) => [...root.querySelectorAll(query)];
const make = (tag, attributes = {}, text = "") => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text) node.textContent = text;
  return node;
};
document.documentElement.classList.add("js");

/* One tooltip for the page. */
const tip = make("div", {class: "tip", role: "status", hidden: ""});
document.body.append(tip);
let tipOwner = null;
function showTip(text, x, y, owner) {
  tip.textContent = text;
  tip.hidden = false;
  tipOwner = owner;
  const {width, height} = tip.getBoundingClientRect(), room = document.documentElement.clientWidth;
  const above = y - height - 14;
  tip.style.left = Math.max(6, Math.min(x - width / 2, room - width - 6)) + "px";
  tip.style.top = (above < 6 ? y + 18 : above) + "px";
}
function hideTip(owner) {
  if (owner && owner !== tipOwner) return;
  tip.hidden = true;
  tipOwner = null;
}
function explain(event) {
  const node = event.target.closest ? event.target.closest("[data-tip]") : null;
  if (event.target.closest && event.target.closest(".plane")) return;
  if (node) showTip(node.dataset.tip, event.clientX, event.clientY, "mark");
  else hideTip("mark");
}
document.addEventListener("pointermove", explain);
document.addEventListener("pointerdown", explain);
document.addEventListener("keydown", event => { if (event.key === "Escape") hideTip(); });
document.addEventListener("scroll", () => hideTip("mark"), {passive: true});

/* Tables: a button in every head; numbers by size, words by letters, dashes last. */
function sortValue(text) {
  const found = /^[<>≤≥±]?\s*[-−+]?[\d,]*\.?\d+(?:e[-+]?\d+)?/i.exec(text);
  if (text === "–" || text === "") return null;
  if (text === "unbounded") return Infinity;
  return found ? parseFloat(found[0].replace(/[<>≤≥±,\s]/g, "").replace("−", "-")) : text.toLowerCase();
}
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === typeof b) return a.localeCompare(b);
  return typeof a === "number" ? -1 : 1;
}
function sortBy(table, column, direction) {
  const body = table.tBodies[0], rows = [...body.rows];
  const keyed = rows.map(row => [sortValue(row.cells[column].textContent.trim()), +row.dataset.place, row]);
  keyed.sort(([a, i], [b, j]) => {
    if (direction === "none" || a === b) return i - j;
    if (a === null || b === null) return a === null ? 1 : -1;
    return (direction === "ascending" ? 1 : -1) * compare(a, b) || i - j;
  });
  body.append(...keyed.map(entry => entry[2]));
}
for (const table of all("table.sortable")) {
  const body = table.tBodies[0], heads = all("thead th", table);
  if (!body || body.rows.length < 2) continue;
  [...body.rows].forEach((row, i) => { row.dataset.place = i; });
  const words = heads.map((_, column) =>
    [...body.rows].some(row => typeof sortValue(row.cells[column].textContent.trim()) === "string"));
  heads.forEach((head, column) => {
    const button = make("button", {type: "button", title: "Sort"});
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      /* Of numbers the largest are asked for first; the third click restores the order of the page. */
      const steps = words[column] ? ["none", "ascending", "descending"] : ["none", "descending", "ascending"];
      const next = steps[(steps.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", next);
      sortBy(table, column, next);
    });
  });
}

/* Planes. The part shown is (u, v) to (u + size, v + size) in shares of the whole, v upwards. */
const SMALLEST = 1 / 100;
const minus = text => text.replace("-", "−");
const short = value => minus(String(+value.toPrecision(4)));
function ticks(low, high) {
  const rough = (high - low) / 6.5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10, 20].map(m => m * power).find(s => s >= rough), found = [];
  for (let i = Math.ceil(low / step); i <= Math.floor(high / step); i++) found.push(i * step);
  return found;
}
class Plane {
  constructor(node) {
    this.node = node;
    this.svg = node.querySelector("svg");
    this.view = node.querySelector(".view");
    this.tickGroup = node.querySelector(".ticks");
    this.stillTicks = this.tickGroup.innerHTML;
    this.extent = node.dataset.extent.split(" ").map(Number);
    this.grid = this.view.getAttribute("viewBox").split(" ").map(Number).slice(2);
    this.frame = ["x", "y", "width", "height"].map(name => +this.view.getAttribute(name));
    this.placed = all(".at", node);
    [this.noun, ...this.points] = node.dataset.points ? JSON.parse(node.dataset.points) : [""];
    this.points.sort((a, b) => a[1] - b[1]);
    this.chosen = -1;
    this.pointers = new Map();
    this.part = {u: 0, v: 0, size: 1};
    this.prepare();
    this.listen();
  }
  prepare() {
    const kind = this.points.length ? "scatter plot" : "map", node = this.node;
    const keys = this.points.length ? "left and right arrow keys go from point to point, plus and minus zoom, 0 resets"
      : "plus and minus zoom, arrow keys move, 0 resets";
    node.tabIndex = 0;
    node.setAttribute("role", "application");
    node.setAttribute("aria-roledescription", `zoomable ${kind}`);
    node.setAttribute("aria-label", `${this.svg.getAttribute("aria-label")}: ${keys}`);
    const group = make("span", {role: "group", "aria-label": `Zoom of the ${kind}`});
    for (const [name, sign, act] of [
      ["Zoom in", "+", () => this.zoom(1.6)], ["Zoom out", "−", () => this.zoom(1 / 1.6)],
      ["Reset view", "⟲", () => this.show({u: 0, v: 0, size: 1})]]) {
      const button = make("button", {type: "button", "aria-label": name, title: name}, sign);
      button.addEventListener("click", act);
      group.append(button);
    }
    const fingers = matchMedia("(hover: none)").matches;
    const help = make("span", {class: "help"}, fingers
      ? "Tap a place to see what it is; zoom with two fingers, move with one." : this.points.length
      ? "Point at a dot, or go through them with ← →. Drag to move; click, then scroll to zoom."
      : "Point at a place to see what it is. Drag to move; click, then scroll to zoom; keys + − ← → ↑ ↓ 0.");
    const tools = make("div", {class: "tools"});
    tools.append(group, help);
    node.after(tools);
    this.reset = group.lastChild;
    this.reset.disabled = true;
  }
  listen() {
    const {node, svg} = this;
    node.addEventListener("keydown", event => this.key(event));
    node.addEventListener("blur", () => hideTip(this));
    svg.addEventListener("wheel", event => {
      /* A page that scrolls must not be caught by a map on the way. */
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== node) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), this.share(event));
      this.probe(event);
    }, {passive: false});
    svg.addEventListener("pointerdown", event => {
      node.focus({preventScroll: true});
      this.pointers.set(event.pointerId, event);
      if (event.pointerType === "mouse" || this.part.size < 1 || this.pointers.size > 1) {
        svg.setPointerCapture(event.pointerId);
      }
      this.probe(event);
    });
    svg.addEventListener("pointermove", event => {
      const before = this.pointers.get(event.pointerId);
      if (!before) this.probe(event);
      else if (this.pointers.size === 1) this.drag(before, event);
      else this.pinch(before, event);
      if (before) this.pointers.set(event.pointerId, event);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      svg.addEventListener(name, event => this.pointers.delete(event.pointerId));
    }
    svg.addEventListener("pointerleave", event => {
      if (event.pointerType === "mouse") hideTip(this);
    });
  }
  /* Where in the frame, in shares; the frame's place on the screen; the middle of the frame. */
  box() {
    const whole = this.svg.getBoundingClientRect(), scale = whole.width / this.svg.viewBox.baseVal.width;
    const [x, y, width, height] = this.frame;
    return {left: whole.left + x * scale, top: whole.top + y * scale, width: width * scale, height: height * scale};
  }
  share(event) {
    const box = this.box();
    return [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
  }
  middle() {
    const box = this.box();
    return {clientX: box.left + box.width / 2, clientY: box.top + box.height / 2};
  }
  drag(before, event) {
    if (this.part.size === 1) return;
    const [a, b] = this.share(before), [c, d] = this.share(event), {u, v, size} = this.part;
    this.show({u: u - (c - a) * size, v: v - (d - b) * size, size});
    hideTip(this);
  }
  pinch(before, event) {
    const other = [...this.pointers.values()].find(one => one.pointerId !== event.pointerId);
    const apart = one => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
    const [a, b] = this.share(event), [c, d] = this.share(other);
    this.zoom(apart(event) / apart(before), [(a + c) / 2, (b + d) / 2]);
    hideTip(this);
  }
  zoom(factor, [a, b] = [0.5, 0.5]) {
    const {u, v, size} = this.part, next = Math.min(1, Math.max(SMALLEST, size / factor));
    this.show({u: u + a * (size - next), v: v + b * (size - next), size: next});
  }
  show({u, v, size}) {
    const inside = value => Math.min(1 - size, Math.max(0, value));
    const part = this.part = {u: inside(u), v: inside(v), size};
    const [across, up] = this.grid, [x, y, width, height] = this.frame;
    const box = [part.u * across, (1 - part.v - size) * up, size * across, size * up];
    this.view.setAttribute("viewBox", box.map(value => +value.toPrecision(8)).join(" "));
    for (const node of this.placed) {
      const a = (node.dataset.u - part.u) / size, b = (node.dataset.v - part.v) / size;
      node.setAttribute("transform", `translate(${x + a * width} ${y + (1 - b) * height})`);
      node.classList.toggle("flip", a > 0.72);
      node.classList.toggle("low", b > 0.9);
    }
    this.drawTicks();
    this.reset.disabled = size === 1;
    this.node.classList.toggle("zoomed", size < 1);
    hideTip(this);
  }
  shown() {
    const [left, right, low, high] = this.extent, {u, v, size} = this.part;
    const across = right - left, up = high - low;
    return [left + u * across, left + (u + size) * across, low + v * up, low + (v + size) * up];
  }
  drawTicks() {
    if (this.part.size === 1) { this.tickGroup.innerHTML = this.stillTicks; return; }
    const [left, right, low, high] = this.shown(), [x, y, width, height] = this.frame;
    const text = (kind, a, b, value) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", "text");
      node.setAttribute("class", kind);
      node.setAttribute("x", a.toFixed(1));
      node.setAttribute("y", b.toFixed(1));
      node.textContent = minus(String(+value.toPrecision(10)));
      return node;
    };
    this.tickGroup.replaceChildren(
      ...ticks(left, right).map(t => text("x", x + (t - left) / (right - left) * width, y + height + 13, t)),
      ...ticks(low, high).map(t => text("y", x - 4, y + height - (t - low) / (high - low) * height + 3.5, t)));
  }
  /* Say what is at a place of the screen. */
  probe(event) {
    const [a, b] = this.share(event);
    if (a < 0 || a > 1 || b < 0 || b > 1) { hideTip(this); return; }
    if (this.points.length) { this.nearest(a, b, event); return; }
    const [left, right, low, high] = this.shown();
    const under = document.elementsFromPoint(event.clientX, event.clientY);
    const what = under.map(node => node.closest && node.closest("[data-tip]")).find(node => node && this.node.contains(node));
    const where = this.coordinates(short(left + a * (right - left)), short(low + b * (high - low)));
    showTip(what ? `${what.dataset.tip}\n${where}` : where, event.clientX, event.clientY, this);
  }
  coordinates(x, y) {
    const {xLabel, yLabel} = this.node.dataset;
    return xLabel === yLabel ? `at (${x}, ${y})` : `${xLabel} = ${x}\n${yLabel} = ${y}`;
  }
  place([, px, py]) {
    const [left, right, low, high] = this.extent, {u, v, size} = this.part, box = this.box();
    const clip = (value, from, to) => Math.min(1, Math.max(0, (value - from) / (to - from)));
    return {clientX: box.left + (clip(px, left, right) - u) / size * box.width,
      clientY: box.top + (1 - (clip(py, low, high) - v) / size) * box.height};
  }
  nearest(a, b, event) {
    let best = -1, least = 16;
    this.points.forEach((point, i) => {
      const at = this.place(point), far = Math.hypot(at.clientX - event.clientX, at.clientY - event.clientY);
      if (far < least) { best = i; least = far; }
    });
    if (best < 0) { this.ring(null); hideTip(this); } else this.choose(best);
  }
  choose(i) {
    this.chosen = i;
    const point = this.points[i], at = this.place(point);
    const say = value => value === null ? "not finite" : short(value);
    this.ring(at);
    showTip(`${this.noun} ${point[0]}\n${this.coordinates(say(point[1]), say(point[2]))}`, at.clientX, at.clientY, this);
  }
  ring(at) {
    if (!this.circle) {
      this.circle = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      this.circle.setAttribute("class", "ring");
      this.circle.setAttribute("r", "5");
      this.svg.append(this.circle);
    }
    this.circle.style.display = at ? "" : "none";
    if (!at) return;
    const whole = this.svg.getBoundingClientRect(), scale = whole.width / this.svg.viewBox.baseVal.width;
    this.circle.setAttribute("cx", (at.clientX - whole.left) / scale);
    this.circle.setAttribute("cy", (at.clientY - whole.top) / scale);
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const {u, v, size} = this.part, step = size / 8;
    const moves = {ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step]};
    const turn = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (event.key === "+" || event.key === "=") this.zoom(1.6);
    else if (event.key === "-" || event.key === "_") this.zoom(1 / 1.6);
    else if (event.key === "0" || event.key === "Home") this.show({u: 0, v: 0, size: 1});
    else if (turn && this.points.length) { event.preventDefault(); this.step(turn); return; }
    else if (moves[event.key] && size < 1) this.show({u: u + moves[event.key][0], v: v + moves[event.key][1], size});
    else return;
    event.preventDefault();
    if (!this.points.length) this.probe(this.middle());
  }
  step(turn) {
    const n = this.points.length, next = ((this.chosen < 0 && turn < 0 ? 0 : this.chosen) + turn + n) % n;
    const [left, right, low, high] = this.extent, [, px, py] = this.points[next], {size} = this.part;
    if (size < 1) this.show({u: (px - left) / (right - left) - size / 2, v: (py - low) / (high - low) - size / 2, size});
    this.choose(next);
  }
}
for (const node of all(".plane")) new Plane(node);

/* Contents: mark where the reader is. */
const links = new Map(all(".toc a").map(link => [link.hash.slice(1), link]));
const targets = [...links.keys()].map(id => document.getElementById(id)).filter(Boolean);
function mark() {
  let current = targets[0];
  for (const target of targets) if (target.getBoundingClientRect().top < 140) current = target;
  for (const link of links.values()) link.removeAttribute("aria-current");
  if (!current) return;
  const link = links.get(current.id), parent = link.closest("ol ol");
  link.setAttribute("aria-current", "true");
  if (parent) parent.previousElementSibling.setAttribute("aria-current", "true");
}
let waiting = false;
document.addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; mark(); });
}, {passive: true});
mark();

/* A link to a finding that is folded unfolds it; one button unfolds all. */
function unfold() {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  if (!target) return;
  const inside = target.querySelector(":scope > details.more"), around = target.closest("details.more");
  for (const node of [inside, around]) if (node) node.open = true;
  if (around) target.scrollIntoView();
}
window.addEventListener("hashchange", unfold);
unfold();
const hero = document.querySelector(".hero"), folds = all("details.more, details.in-words");
if (hero && folds.length) {
  const button = make("button", {class: "unfold", type: "button", "aria-pressed": "false"}, "Unfold all findings");
  const first = new Map(folds.map(node => [node, node.open]));
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Fold findings" : "Unfold all findings";
    for (const node of folds) node.open = on || first.get(node);
  });
  hero.append(button);
}

/* On paper nothing can be unfolded: what stands in an unfolded part is shown whole. */
let opened = [];
window.addEventListener("beforeprint", () => {
  const seen = node => { const fold = node.closest(".more"); return !fold || fold.open; };
  opened = all("details:not([open]):not(.more):not(.in-words)").filter(seen);
  for (const node of opened) node.open = true;
});
window.addEventListener("afterprint", () => { for (const node of opened) node.open = false; });
})();
