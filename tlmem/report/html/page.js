// Tables that can be sorted and flame graphs that can be zoomed, searched and turned round.
// Works on the page alone: nothing is loaded, nothing is stored.
"use strict";

const ROW = 19;
const LEAST_WIDTH = 1;
const MOST_BOXES = 4000;

function bytesText(value) {
  let size = value, step = 0;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  while (size >= 999.5 && step < units.length - 1) { size /= 1000; step += 1; }
  const digits = step === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return size.toFixed(digits) + " " + units[step];
}

function countText(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u00a0");
}

// ---- tables ----

function sortTable(table, column, header) {
  const down = header.getAttribute("aria-sort") !== "descending";
  for (const other of table.tHead.rows[0].cells) {
    if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
  }
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const compare = (a, b) => {
    const left = key(a), right = key(b), x = Number(left), y = Number(right);
    return isNaN(x) || isNaN(y) ? left.localeCompare(right) : x - y;
  };
  const rows = [...table.tBodies[0].rows].sort(compare);
  if (down) rows.reverse();
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    header.querySelector("button")?.addEventListener("click", () => sortTable(table, column, header));
  });
}

// ---- flame graphs ----

function secondsText(ns) {
  const seconds = ns / 1e9;
  if (seconds >= 3600) return Math.floor(seconds / 3600) + " h " + Math.floor(seconds % 3600 / 60) + " min";
  if (seconds >= 60) return Math.floor(seconds / 60) + " min " + Math.floor(seconds % 60) + " s";
  return seconds >= 1 ? seconds.toFixed(seconds >= 10 ? 1 : 2) + " s" : (seconds * 1e3).toFixed(0) + " ms";
}

// A tree of {name, place, own, self: [4 numbers, or 6 with a slider], sum: likewise, children}.
function treeOf(data) {
  const more = data.moments ? [0, 0] : [];
  const root = { name: "all", place: "", own: false, self: [0, 0, 0, 0, ...more], children: [], parent: null };
  const nodes = data.nodes.map(([, frame, own, ...self]) => {
    const [name, place] = data.frames[frame];
    return { name, place, own: own === 1, self: [...self, ...more], children: [], parent: null };
  });
  data.nodes.forEach(([parent], index) => {
    const above = parent < 0 ? root : nodes[parent];
    nodes[index].parent = above;
    above.children.push(nodes[index]);
  });
  root.nodes = nodes;
  return root;
}

// The same memory with the frame that allocated it at the bottom and its callers above.
function turnedRound(root) {
  const turned = { ...root, children: [], parent: null };
  const known = new Map([[turned, new Map()]]);
  const visit = (node) => {
    if (node.parent && node.self.some((value) => value > 0)) {
      let at = turned;
      for (let frame = node; frame.parent; frame = frame.parent) {
        const key = frame.name + "\n" + frame.place;
        let next = known.get(at).get(key);
        if (!next) {
          next = { ...frame, self: frame.self.map(() => 0), children: [], parent: at };
          known.get(at).set(key, next);
          known.set(next, new Map());
          at.children.push(next);
        }
        at = next;
      }
      node.self.forEach((value, measure) => { at.self[measure] += value; });
    }
    node.children.forEach(visit);
  };
  visit(root);
  return turned;
}

function addUp(node) {
  node.sum = [...node.self];
  for (const child of node.children) {
    addUp(child);
    child.sum.forEach((value, measure) => { node.sum[measure] += value; });
  }
}

class Flame {
  constructor(element) {
    this.element = element;
    const data = JSON.parse(element.querySelector("script").textContent);
    this.fromCallers = treeOf(data);
    this.moments = data.moments;
    this.addUpAll();
    this.boxes = element.querySelector(".boxes");
    this.about = element.querySelector(".about");
    this.measure = element.querySelector("select");
    this.turned = element.querySelector("input[type=checkbox]");
    this.search = element.querySelector("input[type=search]");
    this.shown = element.querySelector(".shown");
    this.measure.addEventListener("change", () => this.draw());
    if (this.moments) this.offerMoments();
    this.turned.addEventListener("change", () => this.zoom(this.root()));
    this.search.addEventListener("input", () => this.draw());
    element.querySelector(".reset").addEventListener("click", () => {
      this.search.value = "";
      this.zoom(this.root());
    });
    element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.zoom(this.at.parent ?? this.at);
    });
    this.boxes.addEventListener("click", (event) => this.picked(event, (node) => this.zoom(node)));
    for (const kind of ["mouseover", "focusin"]) {
      this.boxes.addEventListener(kind, (event) => this.picked(event, (node) => this.tell(node)));
    }
    new ResizeObserver(() => {
      if (this.boxes.clientWidth !== this.width) this.draw();
    }).observe(this.boxes);
    this.zoom(this.root());
  }

  addUpAll() {
    this.fromCallees = turnedRound(this.fromCallers);
    addUp(this.fromCallers);
    addUp(this.fromCallees);
  }

  offerMoments() {
    this.alive = this.element.querySelector(".at");
    this.since = this.element.querySelector(".since");
    for (const input of [this.alive, this.since]) {
      input.addEventListener("input", () => {
        const chosen = Number(this.measure.value);
        if (chosen < 4) this.measure.value = String(4 + chosen % 2);
        this.choose();
        this.zoom(this.turned.checked ? this.fromCallees : this.at);
      });
    }
    this.choose();
  }

  // What was allocated after one moment and alive at another becomes the last two measures.
  choose() {
    const at = Number(this.alive.value), since = Math.min(Number(this.since.value), at);
    const nodes = this.fromCallers.nodes;
    for (const node of nodes) node.self[4] = node.self[5] = 0;
    for (const [node, first, last, bytes, count] of this.moments.rows) {
      if ((since === 0 || since < first) && first <= at && at <= last) {
        nodes[node].self[4] += bytes;
        nodes[node].self[5] += count;
      }
    }
    this.addUpAll();
    const words = [this.whenText(at)];
    if (since > 0) words.push("allocated after " + this.whenText(since));
    const [bytes, count] = this.fromCallers.sum.slice(4);
    words.push(bytesText(bytes) + " in " + countText(count) + (count === 1 ? " object" : " objects"));
    this.element.querySelector(".when").textContent = words.join(" \u00b7 ");
    for (const input of [this.alive, this.since]) {
      input.setAttribute("aria-valuetext", this.whenText(Number(input.value)));
    }
  }

  // A moment, with the last mark that the program had set by then.
  whenText(moment) {
    const time = this.moments.times_ns[moment];
    const mark = this.moments.marks.findLast(([set]) => set <= time);
    return secondsText(time) + (mark ? " (" + mark[1] + ")" : "");
  }

  root() { return this.turned.checked ? this.fromCallees : this.fromCallers; }
  value(node) { return node.sum[Number(this.measure.value)]; }
  text(value) { return Number(this.measure.value) % 2 === 0 ? bytesText(value) : countText(value); }

  picked(event, act) {
    const box = event.target.closest("button");
    if (box) act(this.nodeOf.get(box));
  }

  zoom(node) {
    this.at = node;
    this.draw();
    this.tell(node);
  }

  matcher() {
    const words = this.search.value;
    if (!words) return () => false;
    try {
      const pattern = new RegExp(words, "i");
      return (node) => pattern.test(node.name + " " + node.place);
    } catch {
      return (node) => (node.name + " " + node.place).toLowerCase().includes(words.toLowerCase());
    }
  }

  tell(node) {
    const whole = this.value(this.root()), value = this.value(node);
    const share = whole > 0 ? (100 * value / whole).toFixed(1) + "%" : "";
    const self = node.self[Number(this.measure.value)];
    const words = [node.name, node.place, this.text(value), share];
    if (self && self !== value) words.push("itself " + this.text(self));
    this.about.textContent = words.filter((word) => word).join(" \u00b7 ");
  }

  // Boxes of the frames above the chosen one, as wide as the page, then of those below it.
  draw() {
    this.width = this.boxes.clientWidth;
    const matches = this.matcher(), boxes = [];
    const above = [];
    for (let node = this.at.parent; node; node = node.parent) above.unshift(node);
    above.forEach((node, depth) => boxes.push([node, 0, this.width, depth, true]));
    const waiting = [[this.at, 0, this.width, above.length]];
    while (waiting.length && boxes.length < MOST_BOXES) {
      const [node, left, width, depth] = waiting.shift();
      boxes.push([node, left, width, depth, false]);
      const each = this.value(node) > 0 ? width / this.value(node) : 0;
      let start = left;
      const children = [...node.children].sort((a, b) => this.value(b) - this.value(a));
      for (const child of children) {
        const wide = this.value(child) * each;
        if (wide >= LEAST_WIDTH) waiting.push([child, start, wide, depth + 1]);
        start += wide;
      }
    }
    this.show(boxes, matches);
    this.sayFound(matches);
  }

  show(boxes, matches) {
    this.nodeOf = new Map();
    const made = boxes.map(([node, left, width, depth, isAbove]) => {
      const box = document.createElement("button");
      box.type = "button";
      box.textContent = width > 24 ? (node.name + " " + node.place.replace(/^.*\//, "")).trim() : "";
      box.title = [node.name, node.place, this.text(this.value(node))].filter((w) => w).join("\n");
      box.setAttribute("aria-label", box.title.replaceAll("\n", ", "));
      box.classList.toggle("own", node.own);
      box.classList.toggle("found", matches(node));
      box.classList.toggle("above", isAbove);
      box.style.left = left + "px";
      box.style.width = Math.max(width, LEAST_WIDTH) + "px";
      box.style.top = depth * ROW + "px";
      this.nodeOf.set(box, node);
      return box;
    });
    const depth = 1 + Math.max(...boxes.map((box) => box[3]));
    this.boxes.style.height = depth * ROW + "px";
    this.boxes.replaceChildren(...made);
  }

  // What was found is added up once along each stack, in the whole graph, not only in what shows.
  sayFound(matches) {
    let found = 0;
    const visit = (node) => {
      if (matches(node)) found += this.value(node);
      else node.children.forEach(visit);
    };
    visit(this.root());
    const whole = this.value(this.root());
    this.shown.textContent = this.search.value
      ? this.text(found) + " found" + (whole > 0 ? ", " + (100 * found / whole).toFixed(1) + "%" : "")
      : "";
  }
}

for (const element of document.querySelectorAll(".flame")) {
  element.hidden = false;
  new Flame(element);
}

// A line that is named elsewhere is found in the flame graph of its process.
for (const button of document.querySelectorAll("button.seek")) {
  const flame = (button.closest("details.process") ?? document).querySelector(".flame");
  button.hidden = !flame;
  button.addEventListener("click", () => {
    const search = flame.querySelector("input[type=search]");
    search.value = button.dataset.place.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";
    search.dispatchEvent(new Event("input"));
    flame.scrollIntoView({ block: "center" });
    search.focus({ preventScroll: true });
  });
}

// ---- from one part of the page to another ----

// What a link leads to may be folded.
function unfoldTo(name) {
  const target = document.getElementById(name);
  for (let part = target; part; part = part.parentElement) {
    if (part.localName === "details") part.open = true;
  }
  return target;
}

function unfoldChosen() {
  if (location.hash) unfoldTo(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (link) unfoldTo(decodeURIComponent(link.getAttribute("href").slice(1)));
});
addEventListener("hashchange", unfoldChosen);
unfoldChosen();

// ---- heat maps of processes ----

for (const figure of document.querySelectorAll("figure.heat")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const cells = document.getElementById(data.cells);
  const reading = figure.querySelector(".reading"), caption = reading.textContent;
  const rowAt = (event) => {
    const box = cells.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / box.height * data.rows.length);
    const seconds = (event.clientX - box.left) / box.width * data.end_s;
    return [Math.min(Math.max(row, 0), data.rows.length - 1), seconds];
  };
  cells.addEventListener("mousemove", (event) => {
    const [row, seconds] = rowAt(event), curve = data.curves[row];
    const [name, , begin, lasted] = data.rows[row];
    const point = Math.floor((seconds - begin) / lasted * curve.length);
    const memory = point >= 0 && point < curve.length ? bytesText(curve[point] * 1e3) : "not running";
    reading.textContent = [name, secondsText(seconds * 1e9), memory, "click to open"].join(" \u00b7 ");
  });
  cells.addEventListener("mouseleave", () => { reading.textContent = caption; });
  cells.addEventListener("click", (event) => {
    location.hash = data.rows[rowAt(event)[0]][1];
    unfoldChosen();
  });
}

addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
