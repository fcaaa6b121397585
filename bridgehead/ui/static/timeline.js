// Bands over time: controllers, sessions, faults, rates, latencies, errors, queues.

import { color, html, milliseconds, plural } from "./dom.js";

const LEFT = 130, RIGHT = 12, BAND = 26, CHART = 84, GAP = 10, AXIS = 24;
const HOPS = [["request", "received", "responded"], ["forward", "forward_sent", "forward_replied"], ["commit", "commit_sent", "committed"]];
const HOP_COLORS = ["accent", "update", "commit"];
const ERRORS_MAX = 6;
const REACH_PX = 3;

export class Timeline {
  constructor(page) {
    this.page = page;
    this.canvas = html("canvas", { class: "chart", role: "img", tabindex: "-1" });
    this.legend = html("p", { class: "legend" });
    this.from = html("input", { type: "number", min: 0, step: "any", id: "from" });
    this.to = html("input", { type: "number", min: 0, step: "any", id: "to" });
    this.summary = html("p", { class: "summary", role: "status" });
    this.element = html("div", {},
      html("form", { class: "search", onsubmit: (event) => this.submit(event) },
        html("label", { for: "from" }, "From ms"), this.from, html("label", { for: "to" }, "to ms"), this.to,
        html("button", {}, "Select"), html("button", { type: "button", onclick: () => this.clear() }, "Whole run"),
        html("span", {}, "Or drag in the picture. The selection limits the sequence.")),
      html("div", { class: "panel" }, this.canvas, this.legend), this.summary);
    this.canvas.addEventListener("pointerdown", (event) => this.drag(event));
    this.measured = -1;
  }

  submit(event) {
    event.preventDefault();
    const [from, to] = [Number(this.from.value), Number(this.to.value)];
    if (to > from) this.choose([from, to]);
  }

  clear() {
    this.page.select(null);
    this.page.views.sequence.filter(this.page.views.sequence.query.value);
    this.summary.textContent = "";
    this.show();
  }

  choose(range) {
    this.page.select(range);
    [this.from.value, this.to.value] = range.map((value) => value.toFixed(1));
    const { evidence } = this.page;
    const count = Math.max(evidence.at(range[1]) - evidence.from(range[0]) + 1, 0);
    this.summary.textContent = `${plural(count, "event")} in ${milliseconds(range[1] - range[0])} are selected; the views Sequence and Topology begin there.`;
    this.show();
  }

  drag(event) {
    const start = this.timeAt(event);
    this.canvas.setPointerCapture(event.pointerId);
    const range = (now) => [start, this.timeAt(now)].sort((a, b) => a - b);
    const move = (now) => {
      this.dragged = range(now);
      this.show();
    };
    const up = (now) => {
      this.canvas.removeEventListener("pointermove", move);
      this.dragged = null;
      const [from, to] = range(now);
      if (this.x(to) - this.x(from) > REACH_PX) this.choose([from, to]);
      else this.page.go(this.page.evidence.at(start));
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", up, { once: true });
  }

  timeAt(event) {
    const share = (event.offsetX - LEFT) / (this.width - LEFT - RIGHT);
    return this.start + Math.min(Math.max(share, 0), 1) * (this.end - this.start);
  }

  x(t) {
    return LEFT + ((t - this.start) / Math.max(this.end - this.start, 1e-9)) * (this.width - LEFT - RIGHT);
  }

  // One pass over all rows: counts, latencies and spans for each column of pixels.
  measure() {
    const { evidence } = this.page;
    if (this.measured === evidence.count && this.bins === this.binsWanted) return;
    this.measured = evidence.count;
    const bins = (this.bins = this.binsWanted);
    const [start, end] = [this.start, this.end];
    const bin = (t) => Math.min(Math.floor(((t - start) / Math.max(end - start, 1e-9)) * bins), bins - 1);
    this.requests = new Float64Array(bins);
    this.errors = new Map();
    this.latencies = HOPS.map(() => Array.from({ length: bins }, () => []));
    const open = HOPS.map(() => new Map());
    const begins = new Map(HOPS.map(([, key], hop) => [evidence.kind[key], hop]));
    const ends = new Map(HOPS.map(([, , key], hop) => [evidence.kind[key], hop]));
    const { t, kind, request, number, node, error } = evidence.column;
    const { received } = evidence.kind;
    for (let index = 0; index < evidence.count - evidence.base; index++) {
      const at = bin(t[index]);
      if (kind[index] === received) this.requests[at]++;
      const code = error[index];
      if (code !== evidence.noError && code !== 0) {
        const name = evidence.errorName(code);
        if (!this.errors.has(name)) this.errors.set(name, new Float64Array(bins));
        this.errors.get(name)[at]++;
      }
      const begun = begins.get(kind[index]), ended = ends.get(kind[index]);
      const key = request[index] || `${node[index]} ${number[index]}`;
      if (begun !== undefined) open[begun].set(key, t[index]);
      if (ended !== undefined && open[ended].has(key)) {
        this.latencies[ended][at].push(t[index] - open[ended].get(key));
        open[ended].delete(key);
      }
    }
    this.latencies = this.latencies.map((values) => values.map((bin) => bin.sort((a, b) => a - b)));
    this.spans = this.findSpans();
  }

  // Sessions and faults as spans of time: [band, label, from, to].
  findSpans() {
    const { evidence } = this.page;
    const open = new Map(), spans = [];
    const close = (key, t) => {
      if (!open.has(key)) return;
      spans.push([...open.get(key), t]);
      open.delete(key);
    };
    for (let position = evidence.base; position < evidence.count; position++) {
      const key = evidence.kinds[evidence.get("kind", position)].key;
      const t = () => evidence.get("t", position);
      if (key === "session_opened") {
        const role = evidence.lanes[evidence.get("lane", position)];
        open.set(evidence.text(position), [`session ${evidence.node(position)}`, role, t()]);
      } else if (key === "session_lost") close(evidence.text(position), t());
      else if (key === "ended" || key === "stopped") {
        const node = key === "ended" ? evidence.peer(position) : evidence.node(position);
        for (const [session, [band]] of [...open]) if (band === `session ${node}`) close(session, t());
      } else if (key === "fault") open.set(`fault ${evidence.text(position)} ${evidence.peer(position)}`, ["fault", `${evidence.text(position)} ${evidence.peer(position)}`, t()]);
      else if (key === "healed") close(`fault ${evidence.text(position)} ${evidence.peer(position)}`, t());
    }
    // A fault that nothing heals, such as a kill, is a moment.
    for (const [key, [band, label, from]] of open) spans.push([band, label, from, key.startsWith("fault") ? from : this.end]);
    return spans;
  }

  show() {
    const { evidence } = this.page;
    this.width = this.canvas.parentElement.clientWidth - 26;
    if (this.width <= 0 || evidence.count === evidence.base) return;
    [this.start, this.end] = [evidence.get("t", evidence.first), evidence.get("t", evidence.last)];
    this.binsWanted = Math.max(Math.min(Math.floor((this.width - LEFT - RIGHT) / 3), 400), 20);
    this.measure();
    const brokers = this.page.cluster.brokers;
    const names = [...this.errors.entries()].sort((a, b) => sum(b[1]) - sum(a[1])).slice(0, ERRORS_MAX);
    const height = AXIS + BAND * (2 + brokers.length) + (CHART + GAP) * 4 + GAP;
    const ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: this.width * ratio, height: height * ratio });
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    let y = this.drawAxis(pen, height);
    y = this.drawTerms(pen, y);
    for (const broker of brokers) y = this.drawSpans(pen, y, `session ${broker}`, `Broker ${broker}`, "good");
    y = this.drawSpans(pen, y, "fault", "Faults", "bad");
    y = this.drawRates(pen, y + GAP);
    y = this.drawLatencies(pen, y + GAP);
    y = this.drawErrors(pen, y + GAP, names);
    this.drawQueues(pen, y + GAP);
    this.drawMoment(pen, height);
    this.describe(names);
  }

  drawAxis(pen, height) {
    pen.fillStyle = color("soft");
    pen.strokeStyle = color("lane");
    const ticks = Math.max(Math.floor((this.width - LEFT) / 130), 2);
    for (let tick = 0; tick <= ticks; tick++) {
      const t = this.start + ((this.end - this.start) * tick) / ticks;
      const x = this.x(t);
      line(pen, x, AXIS, x, height);
      pen.textAlign = tick === ticks ? "right" : "center";
      pen.fillText(milliseconds(t), x, AXIS / 2);
    }
    return AXIS;
  }

  label(pen, text, y) {
    pen.fillStyle = color("ink");
    pen.textAlign = "left";
    pen.fillText(text, 4, y);
  }

  drawTerms(pen, y) {
    this.label(pen, "Controller", y + BAND / 2);
    const terms = this.page.cluster.terms();
    terms.forEach(([t, controller, epoch], at) => {
      const [from, to] = [this.x(t), this.x(terms[at + 1]?.[0] ?? this.end)];
      pen.fillStyle = controller ? color(`term${(Number(controller) % 5) + 1}`) : color("bad");
      pen.fillRect(from, y + (controller ? 2 : 9), Math.max(to - from, 1), controller ? BAND - 4 : BAND - 18);
      const name = `broker ${controller}, epoch ${epoch}`;
      pen.fillStyle = color("ink");
      pen.textAlign = "left";
      const fits = [name, `${controller} (${epoch})`].find((text) => pen.measureText(text).width + 8 < to - from);
      if (controller && fits) pen.fillText(fits, from + 4, y + BAND / 2);
    });
    return y + BAND;
  }

  drawSpans(pen, y, band, name, paint) {
    this.label(pen, name, y + BAND / 2);
    for (const [of, label, from, to] of this.spans) {
      if (of !== band) continue;
      const [x1, x2] = [this.x(from), this.x(to)];
      const controller = label === "controller";
      pen.fillStyle = controller ? color("crown") : color(paint);
      pen.globalAlpha = band === "fault" ? 1 : 0.55;
      pen.fillRect(x1, y + (controller ? 14 : 4), Math.max(x2 - x1, 3), band === "fault" ? 10 : 8);
      pen.globalAlpha = 1;
      if (band === "fault") {
        pen.textAlign = "left";
        pen.fillText(label.replaceAll("_", " "), x1, y + 20);
      }
    }
    return y + BAND;
  }

  frame(pen, y, title, max, unit) {
    this.label(pen, title, y + 12);
    pen.fillStyle = color("soft");
    pen.fillText(`0 … ${max >= 100 ? max.toFixed(0) : max.toPrecision(2)} ${unit}`, 4, y + 30);
    pen.strokeStyle = color("line");
    pen.strokeRect(LEFT, y, this.width - LEFT - RIGHT, CHART);
  }

  curve(pen, y, values, max, paint, dashed = false) {
    const step = (this.width - LEFT - RIGHT) / this.bins;
    pen.strokeStyle = paint;
    pen.lineWidth = 1.6;
    pen.setLineDash(dashed ? [4, 3] : []);
    pen.beginPath();
    let before = null;
    values.forEach((value, bin) => {
      if (value !== null) {
        const [x, at] = [LEFT + bin * step, y + CHART - (value / (max || 1)) * (CHART - 4)];
        if (before === null) pen.moveTo(x, at);
        pen.lineTo(x, at);
        pen.lineTo(x + step, at);
      }
      before = value;
    });
    pen.stroke();
    pen.setLineDash([]);
    pen.lineWidth = 1;
  }

  drawRates(pen, y) {
    const seconds = (this.end - this.start) / 1000 / this.bins || 1;
    const rates = [...this.requests].map((count) => count / seconds);
    const max = Math.max(...rates, 1);
    this.frame(pen, y, "Requests", max, "a second");
    this.curve(pen, y, rates, max, color("accent"));
    return y + CHART;
  }

  drawLatencies(pen, y) {
    const at = (values, share) => (values.length ? values[Math.min(Math.floor(values.length * share), values.length - 1)] : null);
    const curves = this.latencies.map((bins) => [bins.map((v) => at(v, 0.5)), bins.map((v) => at(v, 0.99))]);
    const max = Math.max(...curves.flat(2).filter((value) => value !== null), 1);
    this.frame(pen, y, "Latency", max, "ms");
    // The square root keeps short hops visible beside long ones.
    const root = (values) => values.map((value) => (value === null ? null : Math.sqrt(value)));
    curves.forEach(([p50, p99], hop) => {
      this.curve(pen, y, root(p50), Math.sqrt(max), color(HOP_COLORS[hop]));
      this.curve(pen, y, root(p99), Math.sqrt(max), color(HOP_COLORS[hop]), true);
    });
    return y + CHART;
  }

  drawErrors(pen, y, names) {
    const max = Math.max(...names.flatMap(([, counts]) => [...counts]), 1);
    this.frame(pen, y, "Errors", max, "");
    const step = (this.width - LEFT - RIGHT) / this.bins;
    names.forEach(([, counts], at) => {
      pen.fillStyle = errorColor(at);
      counts.forEach((count, bin) => {
        if (count) pen.fillRect(LEFT + bin * step, y + CHART - (count / max) * (CHART - 4), Math.max(step, 2), (count / max) * (CHART - 4));
      });
    });
    return y + CHART;
  }

  drawQueues(pen, y) {
    const { samples } = this.page.evidence;
    const max = Math.max(...samples.map(([, , values]) => Math.max(values[1], values[2])), 1);
    this.frame(pen, y, "Queues", max, "");
    [1, 2].forEach((queue, at) => {
      pen.fillStyle = color(HOP_COLORS[at]);
      for (const [t, , values] of samples) pen.fillRect(this.x(t) - 1.5, y + CHART - 3 - (values[queue] / max) * (CHART - 8), 3, 3);
    });
    return y + CHART;
  }

  drawMoment(pen, height) {
    const range = this.dragged ?? this.page.selection;
    if (range) {
      pen.globalAlpha = 0.2;
      pen.fillStyle = color("accent");
      pen.fillRect(this.x(range[0]), 0, this.x(range[1]) - this.x(range[0]), height);
      pen.globalAlpha = 1;
    }
    pen.strokeStyle = color("bad");
    const x = this.x(this.page.evidence.get("t", this.page.position));
    line(pen, x, 0, x, height);
  }

  describe(names) {
    const terms = this.page.cluster.terms().filter(([, controller]) => controller);
    this.canvas.setAttribute("aria-label", `Timeline of ${milliseconds(this.end - this.start)}. Controllers: `
      + terms.map(([t, controller, epoch]) => `broker ${controller} with epoch ${epoch} from ${milliseconds(t)}`).join(", "));
    const item = (paint, text) => {
      const swatch = html("span", { class: "swatch" });
      swatch.style.background = paint;
      return html("span", {}, swatch, text);
    };
    this.legend.replaceChildren(item(color("good"), "broker's session"), item(color("crown"), "controller's session"),
      ...HOPS.map(([name], hop) => item(color(HOP_COLORS[hop]), `${name} p50 (p99 dashed)`)),
      ...names.map(([name], at) => item(errorColor(at), name)),
      item(color(HOP_COLORS[0]), "controller's queue"), item(color(HOP_COLORS[1]), "forwarding queue"));
  }
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const errorColor = (at) => `hsl(${at * 57} 70% 50%)`;

function line(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}
