// Clients, brokers, the controller and ZooKeeper, with the messages between them.

import { html, milliseconds, plural, requestColor, still, svg } from "./dom.js";

// Sizes of the drawing: beside each other on a wide page, below each other on a narrow one.
const WIDE = { width: 900, height: 620 }, NARROW = { width: 460, height: 640 };
const NARROW_PX = 600;
const CLIENTS_MAX = 5;
const DOTS_MAX = 60;
const DOT_MS = 700;
const AGGREGATED_ABOVE = 50; // requests a second
const CAPTIONS = 9;
const CROWN = "M-13 7 L-15 -7 L-7 -1 L0 -10 L7 -1 L15 -7 L13 7 Z";
// A fault of one of these actions ends when it is healed, and is drawn at its broker meanwhile.
const MARKS = { pause: "paused", freeze: "paused", block: "blocked", kill: "", stop: "", expire: "", move: "" };
const IMPORTANT = ["active", "resigned", "fault", "healed", "ended", "started", "envelope_rejected",
  "commit_unknown", "session_lost", "claimed", "rule_acted"];

export class Topology {
  constructor(page) {
    this.page = page;
    this.links = svg("g", {});
    this.places = svg("g", {});
    this.dots = svg("g", {});
    this.drawing = svg("svg", { role: "img", "aria-label": "The cluster at this moment" }, this.links, this.places, this.dots);
    this.rate = html("p", { class: "rate" });
    this.captions = html("ol", { class: "captions", "aria-label": "What happens" });
    this.hide = html("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggle() }, "Cover captions");
    this.element = html("div", { class: "topology" },
      html("div", { class: "stage" }, this.drawing, this.rate),
      html("section", { class: "story" }, html("h2", {}, "What happens"), this.hide, this.captions));
    this.shown = -1;
    this.places_of = new Map();
  }

  toggle() {
    const covered = this.captions.classList.toggle("covered");
    this.hide.setAttribute("aria-pressed", String(covered));
  }

  // The groups of clients, by software and principal, with the most requests first.
  clientGroups() {
    const { evidence } = this.page;
    if (this.grouped === evidence.clients.length) return this.groups;
    this.grouped = evidence.clients.length;
    const groups = new Map();
    evidence.clients.forEach(([software, version, principal, clientId], client) => {
      if (!client) return;
      const title = software && software !== "unknown" ? `${software} ${version}` : clientId.replace(/\d+/g, "*") || "unknown software";
      const key = `${title}\n${principal}`;
      if (!groups.has(key)) groups.set(key, { software: title, principal, clients: new Set() });
      groups.get(key).clients.add(client);
    });
    const counts = new Map();
    for (const [, , , client] of evidence.requests.values()) counts.set(client, (counts.get(client) ?? 0) + 1);
    for (const group of groups.values()) group.count = [...group.clients].reduce((sum, c) => sum + (counts.get(c) ?? 0), 0);
    this.groups = [...groups.values()].sort((a, b) => b.count - a.count);
    if (this.groups.length > CLIENTS_MAX) {
      const rest = this.groups.splice(CLIENTS_MAX - 1);
      this.groups.push({ software: `${rest.length} more kinds of clients`, principal: "",
        clients: new Set(rest.flatMap((group) => [...group.clients])) });
    }
    return this.groups;
  }

  draw(position) {
    const { cluster } = this.page;
    const state = cluster.at(position);
    const groups = this.clientGroups();
    this.places.replaceChildren();
    this.places_of.clear();
    const places = this.arrange(groups.length, cluster.brokers.length);
    groups.forEach((group, at) => {
      const [x, y] = places.clients[at];
      for (const client of group.clients) this.places_of.set(`client ${client}`, [x, y]);
      this.places.append(clientBox(group, x, y));
    });
    cluster.brokers.forEach((broker, at) => {
      const [x, y] = places.brokers[at];
      this.places_of.set(String(broker), [x, y]);
      this.places.append(brokerBox(String(broker), x, y, state));
    });
    this.places_of.set("zookeeper", places.zookeeper);
    this.places.append(zookeeperBox(this.page.source.zookeeperMembers ?? 1, ...places.zookeeper, places.narrow));
    this.drawLinks(state);
  }

  // Where clients, brokers and ZooKeeper stand.
  arrange(clients, brokers) {
    const narrow = this.drawing.clientWidth < NARROW_PX;
    const { width, height } = narrow ? NARROW : WIDE;
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const spots = (count, place) => Array.from({ length: count }, (_, at) => place(at));
    if (narrow) {
      const row = (at, count, columns) => Math.min(columns, count - Math.floor(at / columns) * columns);
      const place = (count, columns, top, low) => (at) => [spread(at % columns, row(at, count, columns), width),
        top + 80 * Math.floor(at / columns) + (at % 2) * low];
      // Every second broker is lower, so that what brokers send each other is seen.
      return { narrow, clients: spots(clients, place(clients, 2, 40, 0)), brokers: spots(brokers, place(brokers, 3, 270, 110)), zookeeper: [width / 2, height - 60] };
    }
    const inset = (at) => brokers > 2 && at > 0 && at < brokers - 1;
    return {
      narrow,
      clients: spots(clients, (at) => [130, spread(at, clients, height)]),
      brokers: spots(brokers, (at) => [inset(at) ? 510 : 430, spread(at, brokers, height)]),
      zookeeper: [790, height / 2],
    };
  }

  drawLinks(state) {
    const lines = [];
    const line = (from, to, kind) => {
      const [a, b] = [this.places_of.get(from), this.places_of.get(to)];
      if (a && b) lines.push(svg("path", { d: route(a, b), class: `link ${kind}` }));
    };
    for (const broker of this.page.cluster.brokers.map(String)) {
      for (const group of this.groups) line(`client ${[...group.clients][0]}`, broker, "client");
      if (state.controller && broker !== state.controller) line(broker, state.controller, "forward");
    }
    if (state.controller) line(state.controller, "zookeeper", "commit");
    this.links.replaceChildren(...lines);
  }

  // The message of a row: where it goes from and to, its colour, and whether it bounces.
  message(position) {
    const { evidence, cluster } = this.page;
    const number = evidence.get("request", position);
    const paint = number ? requestColor(number) : "var(--update)";
    const node = evidence.node(position);
    const client = number ? `client ${(evidence.requests.get(number) ?? [])[3]}` : "";
    switch (evidence.kinds[evidence.get("kind", position)].key) {
      case "received": return { from: client, to: node, paint };
      case "responded": return { from: node, to: client, paint };
      case "forward_sent": {
        const to = evidence.peer(position);
        const bounces = ["killed", "stopped"].includes(cluster.at(position).brokers.get(to));
        return { from: node, to, paint, envelope: true, bounces };
      }
      case "decided": return { from: node, to: this.sender(position), paint, envelope: true };
      case "envelope_rejected": return { from: this.sender(position), to: node, paint: "var(--bad)", bounces: true };
      case "commit_sent": return { from: node, to: "zookeeper", paint: "var(--commit)" };
      case "committed": return { from: "zookeeper", to: node, paint: "var(--commit)" };
      case "commit_unknown": return { from: node, to: "zookeeper", paint: "var(--bad)", bounces: true };
      case "transaction": {
        if (!evidence.has(position, "FAILED")) return null;
        const owner = this.page.owner(evidence.text(position));
        return { from: owner, to: "zookeeper", paint: "var(--bad)", bounces: true };
      }
      case "image": {
        const { controller } = cluster.at(position);
        const lane = evidence.lanes[evidence.get("lane", position)];
        if (lane !== "broker" || controller === node) return null;
        return { from: controller, to: node, paint: "var(--update)", small: true };
      }
      default: return null;
    }
  }

  sender(position) {
    const request = this.page.evidence.request(this.page.evidence.get("request", position));
    return request?.broker ?? "";
  }

  // Shows the rows after the last shown one, up to `position`.
  advance(position, seconds) {
    const { evidence } = this.page;
    const from = Math.max(this.shown + 1, evidence.base);
    const jumped = position < this.shown || this.shown < 0;
    this.shown = position;
    this.draw(position);
    if (jumped || seconds === 0) {
      this.dots.replaceChildren();
      this.highlight(position);
      this.rate.textContent = "";
      return;
    }
    const counts = { received: 0, forward_sent: 0, commit_sent: 0 };
    for (let at = from; at <= position; at++) {
      const key = evidence.kinds[evidence.get("kind", at)].key;
      if (key in counts) counts[key]++;
    }
    this.measure(counts, seconds);
    for (let at = from; at <= position && this.dots.childElementCount < DOTS_MAX; at++) {
      const ordinary = this.aggregated && !evidence.is(at, ...IMPORTANT);
      const message = ordinary ? null : this.message(at);
      if (message) this.fly(message);
    }
    if (from <= position && this.dots.childElementCount === 0) this.highlight(position);
  }

  measure(counts, seconds) {
    this.window ??= [];
    const now = performance.now();
    this.window.push([now, counts, seconds]);
    this.window = this.window.filter(([at]) => now - at < 1000);
    const sum = (key) => this.window.reduce((total, [, past]) => total + past[key], 0);
    const requests = sum("received");
    this.aggregated = requests > AGGREGATED_ABOVE;
    this.rate.textContent = this.aggregated
      ? `More than ${AGGREGATED_ABOVE} requests a second: only faults and rejections are drawn one by one. `
        + `In the last second: ${plural(requests, "request")}, ${plural(sum("forward_sent"), "Envelope")}, ${plural(sum("commit_sent"), "multi")}.`
      : "";
    this.drawing.classList.toggle("busy", this.aggregated);
  }

  // Draws the message of one row, without movement.
  highlight(position) {
    const message = this.message(position);
    const [a, b] = [this.places_of.get(message?.from), this.places_of.get(message?.to)];
    if (!a || !b) {
      this.dots.replaceChildren();
      return;
    }
    const path = svg("path", { d: route(a, b), class: "message" });
    path.style.stroke = message.paint;
    const at = message.bounces ? 0.78 : 0.5;
    this.links.append(path); // Behind the boxes; drawing the links again removes it.
    this.dots.replaceChildren(dot(along(a, b, at), message));
  }

  fly(message) {
    const [a, b] = [this.places_of.get(message.from), this.places_of.get(message.to)];
    if (!a || !b) return;
    const moving = dot([0, 0], message);
    this.dots.append(moving);
    if (still()) {
      moving.setAttribute("transform", `translate(${along(a, b, 0.5).join(" ")})`);
      setTimeout(() => moving.remove(), DOT_MS);
      return;
    }
    const begun = performance.now();
    const step = (now) => {
      const share = Math.min((now - begun) / DOT_MS, 1);
      const reach = message.bounces ? bounce(share) : share;
      moving.setAttribute("transform", `translate(${along(a, b, reach).join(" ")})`);
      if (share < 1) requestAnimationFrame(step);
      else moving.remove();
    };
    requestAnimationFrame(step);
  }

  // Lists the last notable rows up to a position, with their captions.
  async tell(position) {
    const { evidence } = this.page;
    const told = [];
    for (let at = position; at >= evidence.base && told.length < CAPTIONS && position - at < 4000; at--) {
      const notable = this.aggregated ? evidence.is(at, ...IMPORTANT) : evidence.isNotable(at);
      const ordinary = evidence.is(at, "transaction")
        && !["FAILED", "CONTROLLER_CREATED", "CONTROLLER_DELETED"].some((flag) => evidence.has(at, flag));
      if (at === position || (notable && !ordinary)) told.push(at);
    }
    const details = await Promise.all(told.map((at) => this.page.detail(at)));
    if (this.shown !== position && !this.page.playing && !this.page.following) return;
    this.captions.replaceChildren(...details.filter(Boolean).map((detail) => this.caption(detail, position)));
  }

  caption({ position, caption }, current) {
    const { evidence } = this.page;
    const number = evidence.get("request", position);
    const mark = html("span", { class: "swatch" });
    if (number) mark.style.background = requestColor(number);
    const time = milliseconds(evidence.get("t", position));
    const button = html("button", { type: "button", onclick: () => this.page.inspect(position) }, mark,
      html("span", { class: "sentence" }, caption), html("time", {}, time));
    return html("li", position === current ? { "aria-current": "step" } : {}, button);
  }
}

function spread(at, count, height) {
  return (height * (at + 0.5)) / Math.max(count, 1);
}

function bounce(share) {
  return share < 0.55 ? share * 1.42 : 0.78 - (share - 0.55) * 1.3;
}

function curve(a, b) {
  if (a === b) return [a[0] + 200, a[1]]; // to itself: beside its box
  const vertical = Math.abs(a[0] - b[0]) < 120;
  const middle = vertical
    ? [Math.max(a[0], b[0]) + 95, (a[1] + b[1]) / 2]
    : [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  return middle;
}

function route(a, b) {
  const middle = curve(a, b);
  return `M${a[0]} ${a[1]} Q${middle[0]} ${middle[1]} ${b[0]} ${b[1]}`;
}

function along(a, b, share) {
  const m = curve(a, b), rest = 1 - share;
  return [0, 1].map((axis) => rest * rest * a[axis] + 2 * rest * share * m[axis] + share * share * b[axis]);
}

function dot([x, y], { paint, envelope, small, bounces }) {
  const shape = envelope
    ? svg("path", { d: "M-10 -7 H10 V7 H-10 Z M-10 -7 L0 1 L10 -7", class: "envelope" })
    : svg("circle", { r: small ? 4 : 7 });
  shape.style.fill = paint;
  const cross = bounces ? [svg("path", { d: "M-5 -5 L5 5 M5 -5 L-5 5", class: "cross" })] : [];
  return svg("g", { class: "dot", transform: `translate(${x} ${y})` }, shape, ...cross);
}

function label(text, y, kind) {
  const shown = text.length > 24 ? `${text.slice(0, 23)}…` : text;
  return svg("text", { y, class: kind, "text-anchor": "middle" }, shown, svg("title", {}, text));
}

function clientBox(group, x, y) {
  return svg("g", { class: "client", transform: `translate(${x} ${y})` },
    svg("rect", { x: -105, y: -27, width: 210, height: 54, rx: 27 }),
    label(group.software, -4, "name"), label(group.principal, 15, "detail"));
}

function brokerBox(broker, x, y, state) {
  const is = state.controller === broker;
  const marks = [...state.faults.keys()].filter((key) => key.endsWith(` ${broker}`))
    .map((key) => key.slice(0, -broker.length - 1)).map((action) => MARKS[action] ?? action.replaceAll("_", " "))
    .filter(Boolean);
  const running = state.brokers.get(broker);
  const isDown = running !== undefined && running !== "running";
  const status = isDown ? running : marks[0] ?? running ?? "not seen yet";
  const down = running !== "running" ? " down" : "";
  return svg("g", { class: `broker${is ? " controller" : ""}${down}${marks.length ? " faulty" : ""}`, transform: `translate(${x} ${y})`, "data-broker": broker },
    svg("rect", { x: -75, y: -34, width: 150, height: 68, rx: 10 }),
    is ? svg("path", { d: CROWN, class: "crown", transform: "translate(0 -47)" }) : null,
    label(`Broker ${broker}`, -8, "name"),
    label(is ? `controller, epoch ${state.epoch}` : "broker", 9, "detail"),
    label(status, 25, `status ${marks.length ? "bad" : ""}`));
}

function zookeeperBox(members, x, y, flat) {
  const servers = Array.from({ length: members }, (_, at) => {
    const shift = (at - (members - 1) / 2) * (flat ? 100 : 62);
    return svg("g", { transform: flat ? `translate(${shift} 0)` : `translate(0 ${shift})` },
      svg("path", { d: "M-42 -18 V18 A42 9 0 0 0 42 18 V-18" }), svg("ellipse", { cy: -18, rx: 42, ry: 9 }),
      label(members > 1 ? `member ${at + 1}` : "log", 9, "detail"));
  });
  return svg("g", { class: "zookeeper", transform: `translate(${x} ${y})` }, ...servers,
    label("ZooKeeper", flat ? -40 : -(members - 1) * 31 - 40, "name"));
}


