// The sequence (Lamport) diagram: one row for each event, lanes for who wrote it. Only the rows on
// the screen are drawn, so a run may have millions of them.

import { html, milliseconds, plural, requestColor, svg } from "./dom.js";

const ROW = 24;
const SCROLL_MAX = 8_000_000; // pixels: browsers end at about 16 million
const NARROW = 700;

export class Sequence {
  constructor(page) {
    this.page = page;
    this.query = html("input", { type: "search", id: "query", placeholder: "CreateTopics orders, error:NOT_CONTROLLER, #7",
      oninput: () => this.filterSoon() });
    this.count = html("output", { for: "query" });
    this.head = svg("svg", { class: "lanes", height: 46, "aria-hidden": "true" });
    this.rows = svg("svg", { class: "rows", role: "img", "aria-label": "Sequence diagram" });
    this.spacer = html("div", { class: "spacer" });
    this.scroller = html("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": "Events; up and down arrows choose one" },
      this.spacer, html("div", { class: "sticky" }, this.rows));
    this.scroller.addEventListener("scroll", () => this.later());
    this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.rows.addEventListener("click", (event) => this.click(event));
    this.element = html("div", { class: "sequence" },
      html("div", { class: "search" }, html("label", { for: "query" }, "Find"), this.query, this.count,
        html("button", { type: "button", onclick: () => this.filter("") }, "All events")),
      this.head, this.scroller);
    this.list = null;
    this.top = 0;
    new ResizeObserver(() => this.later()).observe(this.scroller);
  }

  get length() {
    return this.list ? this.list.length : this.page.evidence.count - this.page.evidence.base;
  }

  position(index) {
    return this.list ? this.list[index] : this.page.evidence.base + index;
  }

  // The index of the last shown row at or before a position.
  index(position) {
    if (!this.list) return position - this.page.evidence.base;
    let low = 0, high = this.list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.list[middle] <= position) low = middle + 1;
      else high = middle;
    }
    return Math.max(low - 1, 0);
  }

  filterSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.filter(this.query.value), 150);
  }

  filter(text, range) {
    const { evidence } = this.page;
    this.query.value = text;
    if (range !== undefined) this.range = range;
    if (text === "" && range === undefined) this.page.select(null);
    const [from, to] = this.range ?? [evidence.base, evidence.last];
    this.list = evidence.search(text, from, to);
    this.searchedTo = evidence.count;
    this.tellCount();
    this.resize();
    this.show(this.page.position);
  }

  tellCount() {
    const within = this.range ? " in the selected time" : "";
    this.count.textContent = `${plural(this.length, "event")}${this.list ? within : ""}`;
  }

  // Adds the matches among new rows.
  searchMore() {
    const { evidence } = this.page;
    if (!this.list || this.searchedTo >= evidence.count) return;
    const to = Math.min(this.range?.[1] ?? evidence.last, evidence.last);
    for (const position of evidence.search(this.query.value, this.searchedTo, to) ?? []) this.list.push(position);
    this.searchedTo = evidence.count;
    this.tellCount();
    this.resize();
    this.later();
  }

  // Shows one request with the commits that belong to it.
  only(number) {
    this.query.value = `#${number}`;
    this.list = this.page.evidence.story(number);
    this.searchedTo = this.page.evidence.count;
    this.range = undefined;
    this.tellCount();
    this.show(this.page.position);
  }

  refresh() {
    if (this.list && this.page.evidence.base > (this.list[0] ?? 0)) this.list = this.list.filter((p) => p >= this.page.evidence.base);
    if (this.list) this.page.soon("search", () => this.searchMore());
    this.tellCount();
    this.resize();
    this.later();
  }

  resize() {
    this.spacer.style.height = `${Math.min(this.length * ROW, SCROLL_MAX)}px`;
    this.scale = Math.max((this.length * ROW) / SCROLL_MAX, 1);
  }

  // Beyond the browser's limit a scroll bar's pixel is several rows; the wheel still moves by rows.
  wheel(event) {
    if (this.scale === 1 || event.ctrlKey) return;
    event.preventDefault();
    this.scroller.scrollTop += event.deltaY / this.scale;
  }

  show(position) {
    this.resize();
    const middle = this.index(position) * ROW - this.scroller.clientHeight / 2;
    this.scroller.scrollTop = Math.max(middle, 0) / this.scale;
    this.later();
  }

  later() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.draw();
    });
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (event.key === "Enter") this.page.inspect(this.page.position);
    if (!step || !this.length) return;
    event.preventDefault();
    event.stopPropagation();
    const index = Math.min(Math.max(this.index(this.page.position) + step, 0), this.length - 1);
    this.page.go(this.position(index));
  }

  click(event) {
    const row = event.target.closest("[data-position]");
    if (row) this.page.inspect(Number(row.dataset.position));
  }

  lanes(width) {
    const { cluster } = this.page;
    const narrow = width < NARROW;
    const names = ["Clients", ...cluster.brokers.map((id) => (narrow ? `${id}` : `Broker ${id}`)), narrow ? "♛" : "Controller", narrow ? "ZK" : "ZooKeeper"];
    const left = narrow ? 34 : 120;
    const right = narrow ? width - 14 : Math.min(width * 0.52, 700);
    const x = names.map((_, at) => left + ((right - left) * (at + 0.5)) / names.length);
    return { names, x, narrow, right, left };
  }

  laneX(lanes, position) {
    const { evidence, cluster } = this.page;
    const lane = evidence.lanes[evidence.get("lane", position)];
    if (lane === "client" || lane === "harness") return lanes.x[0];
    if (lane === "controller") return lanes.x[lanes.x.length - 2];
    if (lane === "zookeeper") return lanes.x[lanes.x.length - 1];
    const at = cluster.brokers.indexOf(Number(evidence.node(position)));
    return lanes.x[at < 0 ? 0 : at + 1];
  }

  draw() {
    const height = this.scroller.clientHeight, width = this.scroller.clientWidth;
    if (!height || !this.page.evidence) return;
    this.head.setAttribute("width", width);
    this.rows.setAttribute("width", width);
    this.rows.setAttribute("height", height);
    const lanes = this.lanes(width);
    const exact = this.scroller.scrollTop * this.scale;
    const first = Math.max(Math.floor(exact / ROW), 0);
    const last = Math.min(first + Math.ceil(height / ROW) + 1, this.length) - 1;
    const y = (index) => index * ROW - exact + ROW / 2;
    const bands = svg("g", {}), hits = svg("g", {}), arrows = svg("g", {}), marks = svg("g", {});
    for (const x of lanes.x) bands.append(svg("line", { x1: x, x2: x, y1: 0, y2: height, class: "lane" }));
    for (let index = first; index <= last; index++) {
      const position = this.position(index);
      arrows.append(...this.arrows(lanes, position, y, index));
      hits.append(this.hit(position, y(index), width));
      marks.append(this.row(lanes, position, y(index), width));
    }
    this.rows.replaceChildren(hits, bands, arrows, marks);
    this.drawHead(lanes, this.position(Math.max(Math.min(first, this.length - 1), 0)));
    this.caption(first, last);
  }

  drawHead(lanes, position) {
    if (position === undefined) return;
    const { controller, epoch } = this.page.cluster.at(position);
    const heads = lanes.names.map((name, at) => {
      const head = svg("text", { x: lanes.x[at], y: 20, "text-anchor": "middle", class: "head" }, name);
      const is = at === lanes.names.length - 2;
      const note = is ? (controller ? `broker ${controller}, epoch ${epoch}` : "none") : "";
      const short = lanes.narrow && is ? (controller ? `${controller}·${epoch}` : "–") : note;
      return [head, svg("text", { x: lanes.x[at], y: 38, "text-anchor": "middle", class: "note" }, short)];
    });
    this.head.replaceChildren(...heads.flat());
  }

  arrows(lanes, position, y, index) {
    const { evidence } = this.page;
    const kind = evidence.kinds[evidence.get("kind", position)].key;
    const number = evidence.get("request", position);
    const paint = number ? requestColor(number) : "var(--commit)";
    const here = [this.laneX(lanes, position), y(index)];
    const line = (from, to, extra = "") => {
      const arrow = svg("path", { d: arrowPath(from, to), class: `arrow ${extra}` });
      arrow.style.stroke = paint;
      return arrow;
    };
    const client = [lanes.x[0], y(index)];
    if (kind === "received") return [line(client, here)];
    if (kind === "responded") return [line(here, client, evidence.has(position, "CLOSED") ? "lost" : "")];
    const partner = evidence.partner(position);
    if (partner < 0) {
      if (kind !== "forward_sent") return [];
      const lost = [lanes.x[lanes.x.length - 2] - 18, y(index)];
      return [line(here, lost, "lost")]; // Nobody received it.
    }
    const other = this.index(partner);
    if (this.position(other) !== partner) return [];
    const there = [this.laneX(lanes, partner), y(other)];
    const rejected = kind === "envelope_rejected" ? "lost" : "";
    return partner > position ? [line(here, there, rejected)] : [line(there, here, rejected)];
  }

  hit(position, y, width) {
    const chosen = position === this.page.position ? " chosen" : "";
    return svg("rect", { x: 0, y: y - ROW / 2, width, height: ROW, class: `hit${chosen}`, "data-position": position });
  }

  row(lanes, position, y, width) {
    const x = this.laneX(lanes, position);
    const source = this.page.evidence;
    const kind = source.kinds[source.get("kind", position)];
    const number = source.get("request", position);
    const failed = source.has(position, "FAILED") || ["envelope_rejected", "commit_unknown", "fault", "session_lost"].includes(kind.key);
    const mark = svg("circle", { cx: x, cy: y, r: 5, class: failed ? "mark bad" : "mark" });
    if (number && !failed) mark.style.fill = requestColor(number);
    const title = this.page.rowTitle(position);
    const row = svg("g", { class: "row", "data-position": position },
      svg("text", { x: 4, y: y + 4, class: "time" }, lanes.narrow ? shortTime(source.get("t", position)) : milliseconds(source.get("t", position))),
      mark);
    if (!lanes.narrow) {
      const caption = this.page.cached(position)?.caption ?? title;
      const room = Math.floor((width - lanes.right - 30) / 6.6);
      row.append(svg("text", { x: lanes.right + 14, y: y + 4, class: failed ? "caption bad" : "caption" },
        caption.length > room ? `${caption.slice(0, room - 1)}…` : caption));
    }
    row.append(svg("title", {}, title));
    return row;
  }

  // Gets the captions of the rows on the screen, once scrolling has paused.
  caption(first, last) {
    clearTimeout(this.captionTimer);
    this.captionTimer = setTimeout(async () => {
      const missing = [];
      for (let index = first; index <= last; index++) {
        const position = this.position(index);
        if (position !== undefined && !this.page.cached(position)) missing.push(position);
      }
      if (!missing.length) return;
      if (await this.page.load(missing)) this.later();
    }, 80);
  }
}

function shortTime(t) {
  return t >= 10_000 ? `${(t / 1000).toFixed(1)}s` : t.toFixed(0);
}

function arrowPath([x1, y1], [x2, y2]) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const [ex, ey] = [x2 - ux * 6, y2 - uy * 6];
  const head = 5;
  return `M${x1} ${y1} L${ex} ${ey} M${ex - ux * head - uy * head} ${ey - uy * head + ux * head} L${ex} ${ey} `
    + `L${ex - ux * head + uy * head} ${ey - uy * head - ux * head}`;
}
