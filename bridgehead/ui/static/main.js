// The page: which moment is shown, which view, and what was chosen.

import { html, milliseconds, plural } from "./dom.js";
import { Cluster, Evidence } from "./evidence.js";
import { ExportedSource, ServerSource } from "./source.js";
import { BreakIt } from "./break_it.js";
import { Inspector } from "./inspector.js";
import { Metadata } from "./metadata.js";
import { Sequence } from "./sequence.js";
import { Timeline } from "./timeline.js";
import { Topology } from "./topology.js";
import { Verdicts } from "./verdicts.js";

const SPEEDS = [["0.001", "1/1000"], ["0.01", "1/100"], ["0.1", "1/10"], ["1", "1"], ["10", "10"], ["100", "100"],
  ["-1", "1 backwards"], ["-0.01", "1/100 backwards"], ["step", "event by event"]];
const STEP_MS = 1300;
const CACHED_MAX = 4000;
const REFRESH_MS = 400;
const $ = (id) => document.getElementById(id);

class Page {
  constructor(source) {
    this.source = source;
    this.details = new Map();
    this.playing = false;
    this.following = false;
    this.position = 0;
  }

  async open() {
    const [about, first] = await this.source.open();
    const { live } = this.source;
    this.evidence = new Evidence(about, first, about.rowsMax ?? Infinity);
    this.cluster = new Cluster(this.evidence);
    this.cluster.refresh();
    this.position = this.evidence.first;
    const views = [["topology", "Topology", Topology], ["sequence", "Sequence", Sequence], ["timeline", "Timeline", Timeline],
      ["metadata", "Metadata", Metadata], ["verdicts", "Verdicts", Verdicts], ["break", "Break it", BreakIt]];
    this.views = {};
    for (const [id, title, View] of views) {
      if (id === "break" && !this.source.actionToken) continue;
      this.views[id] = new View(this);
      this.addTab(id, title, this.views[id].element);
    }
    this.inspector = new Inspector(this);
    $("views").append(this.inspector.element);
    this.describe();
    this.controls();
    this.openTab(location.hash.slice(1) in this.views ? location.hash.slice(1) : "topology");
    this.views.sequence.filter("");
    if (live) this.setFollowing(true);
    else this.go(this.firstMoment());
    $("live").hidden = !live;
    if (this.source.follow) this.follow();
    document.body.dataset.ready = "true";
  }

  // A replay begins when the first controller is elected: before that, there is nothing to see.
  firstMoment() {
    const { evidence } = this;
    for (let at = evidence.first; at <= evidence.last; at++) if (evidence.get("epoch", at)) return at;
    return evidence.first;
  }

  describe() {
    const { run } = this.evidence;
    const scenario = run.scenario ? `scenario ${run.scenario}, seed ${run.seed}, ` : "";
    const mode = { true: "live", false: this.source.mode }[Boolean(this.source.live)];
    $("run").replaceChildren(html("b", { class: `mode ${mode}` }, mode), ` ${scenario}run ${run.run_id}`);
    document.title = `Bridgehead: ${run.scenario ?? "cluster"}, run ${run.run_id}`;
  }

  addTab(id, title, element) {
    const tab = html("button", { role: "tab", id: `tab-${id}`, "aria-controls": `view-${id}`, type: "button",
      onclick: () => this.openTab(id) }, title);
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.stopPropagation();
      event.preventDefault();
      const ids = Object.keys(this.views);
      const next = ids[(ids.indexOf(id) + step + ids.length) % ids.length];
      this.openTab(next);
      $(`tab-${next}`).focus();
    });
    $("tabs").append(tab);
    $("views").append(html("div", { role: "tabpanel", id: `view-${id}`, "aria-labelledby": `tab-${id}`, hidden: true }, element));
  }

  openTab(id) {
    this.tab = id;
    for (const name of Object.keys(this.views)) {
      $(`tab-${name}`).setAttribute("aria-selected", String(name === id));
      $(`tab-${name}`).tabIndex = name === id ? 0 : -1;
      $(`view-${name}`).hidden = name !== id;
    }
    history.replaceState(null, "", `#${id}`);
    this.show(0);
  }

  controls() {
    for (const [value, title] of SPEEDS) $("speed").append(html("option", { value }, title));
    $("speed").value = "0.1";
    $("back").onclick = () => this.step(-1);
    $("forward").onclick = () => this.step(1);
    $("play").onclick = () => this.play(!this.playing);
    $("live").onclick = () => this.setFollowing(!this.following);
    $("slider").oninput = () => this.slide(Number($("slider").value));
    $("theme").onclick = () => {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
      document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
      this.show(0);
    };
    document.addEventListener("keydown", (event) => {
      if (event.target.closest("input, select, textarea, button, [role=tab]") || event.ctrlKey || event.metaKey) return;
      const action = { ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), " ": () => this.play(!this.playing) }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
    addEventListener("resize", () => this.show(0));
  }

  slide(share) {
    const { evidence } = this;
    const [start, end] = [evidence.get("t", evidence.first), evidence.get("t", evidence.last)];
    this.setFollowing(false);
    this.play(false);
    this.go(evidence.at(start + ((end - start) * share) / 1000));
  }

  step(by) {
    this.setFollowing(false);
    this.play(false);
    const { evidence } = this;
    this.go(Math.min(Math.max(this.position + by, evidence.first), evidence.last), 0);
  }

  go(position, seconds = 0) {
    this.position = Math.min(Math.max(position, this.evidence.first), this.evidence.last);
    this.time = this.evidence.get("t", this.position);
    this.show(seconds);
  }

  play(playing) {
    if (playing === this.playing) return;
    this.playing = playing;
    $("play").textContent = playing ? "Pause" : "Play";
    if (!playing) return;
    if (this.position >= this.evidence.last) this.go(this.firstMoment());
    let before = performance.now();
    const frame = (now) => {
      if (!this.playing) return;
      const speed = $("speed").value;
      if (speed === "step") {
        if (now - before >= STEP_MS) {
          before = now;
          this.nextNotable();
        }
      } else {
        this.time += Math.min(now - before, 250) * Number(speed);
        before = now;
        const position = this.evidence.at(this.time);
        if (position !== this.position) {
          const passed = this.time;
          this.go(position, 1);
          this.time = passed;
        }
      }
      const ended = this.position >= this.evidence.last || (Number(speed) < 0 && this.position <= this.evidence.first);
      if (ended) this.play(false);
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  nextNotable() {
    const { evidence } = this;
    for (let at = this.position + 1; at <= evidence.last; at++) {
      if (evidence.isNotable(at)) return this.go(at, 0);
    }
    this.go(evidence.last);
  }

  show(seconds) {
    this.tellMoment();
    const { position } = this;
    if (this.tab === "topology") {
      this.views.topology.advance(position, seconds);
      this.soon("tell", () => this.views.topology.tell(this.position));
    } else this.views.topology.shown = -1;
    if (this.tab === "sequence") this.views.sequence.show(position);
    if (this.tab === "timeline") this.views.timeline.show();
    if (this.tab === "metadata") this.soon("metadata", () => this.views.metadata.show(this.position));
    if (this.tab === "verdicts") this.views.verdicts.show();
    if (this.tab === "break") this.views.break.show();
  }

  // What all views have above and below them.
  tellMoment() {
    const { evidence, position } = this;
    this.tellNotices();
    if (!evidence.count) return;
    const [start, end] = [evidence.get("t", evidence.first), evidence.get("t", evidence.last)];
    const t = evidence.get("t", position);
    $("slider").value = end > start ? ((t - start) / (end - start)) * 1000 : 0;
    $("slider").setAttribute("aria-valuetext", `${milliseconds(t)}, event ${position + 1}`);
    $("clock").textContent = `${milliseconds(t)} · event ${(position + 1).toLocaleString("en")} of ${evidence.count.toLocaleString("en")}`;
    const { controller, epoch } = this.cluster.at(position);
    const now = controller ? `Controller: broker ${controller}, epoch ${epoch}` : "No controller";
    if ($("now").textContent !== now) $("now").textContent = now;
    $("now").dataset.controller = controller ?? "";
    $("now").dataset.epoch = epoch;
  }

  // Runs an action now, and at most every REFRESH_MS.
  soon(name, action) {
    this.timers ??= {};
    const timer = (this.timers[name] ??= { at: 0, due: null });
    const wait = Math.max(timer.at + (this.playing || this.following ? REFRESH_MS : 30) - performance.now(), 0);
    if (timer.due) return;
    timer.due = setTimeout(() => {
      timer.due = null;
      timer.at = performance.now();
      Promise.resolve(action()).catch((error) => this.fail(error));
    }, wait);
  }

  tellNotices() {
    const { evidence } = this;
    const notices = [];
    if (evidence.shareRead < 1) notices.push(`${Math.floor(evidence.shareRead * 100)} % of the run has been read.`);
    if (evidence.dropped) notices.push(`${plural(evidence.dropped, "older event")} are no longer on this page; the evidence files have them.`);
    if (evidence.skipped) notices.push(`${plural(evidence.skipped, "line")} could not be read.`);
    if (evidence.late) notices.push(`${plural(evidence.late, "event")} came late and are shown after newer ones.`);
    if (evidence.unnamed) notices.push(`${plural(evidence.unnamed, "event")} have a text, client or node that only the raw event shows.`);
    if (!evidence.hasTransactions) notices.push("ZooKeeper's transaction log is not known: the controller is the one that nodes report.");
    if (this.source.cut) notices.push(this.source.cut);
    if (this.connection) notices.push(this.connection);
    if (this.unreachable) notices.push(this.unreachable);
    const text = notices.join(" ");
    if ($("notices").textContent !== text) $("notices").textContent = text;
  }

  // Captions and raw events, from a cache.
  cached(position) {
    return this.details.get(position);
  }

  async load(positions) {
    const runs = [];
    for (const position of positions) {
      const run = runs.at(-1);
      if (run && position - run[0] < 100) run[1] = position;
      else runs.push([position, position]);
    }
    try {
      const loaded = await Promise.all(runs.map(([from, to]) => this.source.details(from, to - from + 1)));
      for (const detail of loaded.flat()) this.details.set(detail.position, detail);
      this.unreachable = "";
    } catch (error) {
      this.fail(error);
      return false;
    }
    while (this.details.size > CACHED_MAX) this.details.delete(this.details.keys().next().value);
    return true;
  }

  // Without the server the rows stay, but captions and raw events are missing.
  fail(error) {
    this.unreachable = `The server does not respond: ${error.message}.`;
    this.tellNotices();
  }

  async detail(position) {
    if (!this.details.has(position)) await this.load([position]);
    return this.details.get(position);
  }

  rowTitle(position) {
    const { evidence } = this;
    const kind = evidence.kinds[evidence.get("kind", position)].title;
    const request = evidence.request(evidence.get("request", position));
    return request ? `${kind}: request ${evidence.get("request", position)} ${request.api}` : kind;
  }

  // The broker that opened a ZooKeeper session.
  owner(session) {
    const { evidence } = this;
    for (const position of this.sessionRows()) if (evidence.text(position) === session) return evidence.node(position);
    return "";
  }

  sessionRows() {
    const { evidence } = this;
    this.sessions ??= { read: evidence.base, rows: [] };
    for (let at = Math.max(this.sessions.read, evidence.base); at < evidence.count; at++) {
      if (evidence.is(at, "session_opened")) this.sessions.rows.push(at);
    }
    this.sessions.read = evidence.count;
    this.sessions.rows = this.sessions.rows.filter((at) => at >= evidence.base);
    return this.sessions.rows;
  }

  inspect(position) {
    this.setFollowing(false);
    this.play(false);
    this.go(position);
    this.inspector.show(position);
  }

  select(range) {
    this.selection = range;
    const positions = range && [this.evidence.from(range[0]), this.evidence.at(range[1])];
    this.views.sequence.range = positions ?? undefined;
    if (positions) {
      this.views.sequence.filter(this.views.sequence.query.value, positions);
      this.go(positions[0]);
    }
  }

  setFollowing(following) {
    if (!this.source.live) return;
    this.following = following;
    $("live").textContent = following ? "Following" : "Follow";
    $("live").setAttribute("aria-pressed", String(following));
    if (following) this.go(this.evidence.last);
  }

  follow() {
    const { live } = this.source;
    this.source.follow(this.evidence.count, (batch) => this.take(batch), (status) => {
      const ended = live ? "The cluster has stopped; this is its whole run." : "";
      this.connection = { ended, reconnecting: "Reconnecting to the server …" }[status];
      document.body.dataset.complete = status === "ended";
      this.tellNotices();
    });
  }

  take(batch) {
    const { evidence } = this;
    const before = evidence.count;
    this.unreachable = "";
    evidence.append(batch);
    this.cluster.refresh();
    this.position = Math.max(this.position, evidence.first);
    this.views.sequence.refresh();
    if (this.following && evidence.count > before) this.go(evidence.last, 0.2);
    else this.tellMoment();
    if (this.tab === "timeline") this.soon("timeline", () => this.views.timeline.show(true));
  }
}

const source = document.getElementById("rows") ? new ExportedSource() : new ServerSource();
globalThis.page = new Page(source);
globalThis.page.open().catch((error) => {
  $("notices").textContent = `The page could not be opened: ${error.message}`;
  document.body.dataset.ready = "failed";
});

