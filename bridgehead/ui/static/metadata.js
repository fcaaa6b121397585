// What ZooKeeper, and so the controller, had at a moment; and what changed between two moments.

import { html, milliseconds, plural, table } from "./dom.js";

const ROWS_MAX = 500;
const SECRET = "not shown: it can be secret";

export class Metadata {
  constructor(page) {
    this.page = page;
    this.written = [];
    this.next = 0;
    this.marked = null;
    this.mark = html("button", { type: "button", onclick: () => this.remember() }, "Compare with this moment");
    this.forget = html("button", { type: "button", hidden: true, onclick: () => this.remember(null) }, "Stop comparing");
    this.title = html("p", { role: "status" });
    this.body = html("div", {});
    this.element = html("div", { class: "panel metadata" }, html("div", { class: "search" }, this.mark, this.forget), this.title, this.body);
  }

  remember(position = this.page.position) {
    this.marked = position;
    this.forget.hidden = position === null;
    this.show(this.page.position);
  }

  async load() {
    const { evidence, source } = this.page;
    if (this.loaded === evidence.count) return;
    this.loaded = evidence.count;
    const { first, operations } = await source.operations(this.next);
    if (first) {
      this.first = new Map(first);
      this.next = 0;
      this.written = [];
    }
    for (const written of operations) {
      if (written[0] < this.next) continue; // Two requests overlapped.
      this.written.push(written);
      this.next = written[0] + 1;
    }
    // What dropped rows wrote becomes the state before the first row.
    let dropped = 0;
    while (dropped < this.written.length && this.written[dropped][0] < evidence.base) apply(this.first, this.written[dropped++]);
    this.written.splice(0, dropped);
  }

  // The znodes after every transaction up to a position, and the last zxid.
  znodes(position) {
    const znodes = new Map(this.first);
    let zxid = 0;
    for (const written of this.written) {
      if (written[0] > position) break;
      zxid = apply(znodes, written);
    }
    return [znodes, zxid];
  }

  async show(position) {
    if (!this.page.evidence.hasTransactions) {
      this.title.textContent = "ZooKeeper's transaction log is not part of this run.";
      return;
    }
    await this.load();
    const [znodes, zxid] = this.znodes(position);
    const time = (at) => milliseconds(this.page.evidence.get("t", at));
    const now = facts(znodes);
    const before = this.marked === null ? null : facts(this.znodes(this.marked)[0]);
    this.title.textContent = before
      ? `From ${time(this.marked)} to ${time(position)}. Added, changed and removed rows are marked.`
      : `At ${time(position)}, zxid 0x${zxid.toString(16)}. ${plural(now.Topics.size, "topic")}.`;
    const tables = Object.entries(now).map(([name, rows]) => this.table(name, rows, before?.[name]));
    this.body.replaceChildren(...tables.filter(Boolean));
    if (before && !this.body.childElementCount) this.body.append(html("p", {}, "Nothing changed."));
  }

  table(name, rows, before) {
    const shown = [];
    for (const [key, cells] of rows) {
      const old = before?.get(key);
      const change = !before ? "" : !old ? "added" : String(old) === String(cells) ? null : "changed";
      if (change === null) continue;
      const marked = change === "changed" ? cells.map((cell, at) => (String(cell) === String(old[at]) ? cell : `${old[at]} → ${cell}`)) : cells;
      shown.push({ class: change, cells: before ? [change, ...marked] : marked });
    }
    for (const [key, cells] of before ?? []) if (!rows.has(key)) shown.push({ class: "removed", cells: ["removed", ...cells] });
    if (!shown.length) return null;
    const heads = before ? ["Change", ...HEADS[name]] : HEADS[name];
    const rest = shown.length > ROWS_MAX ? `, the first ${ROWS_MAX} of ${shown.length}` : "";
    return table(`${name}${rest}`, heads, shown.slice(0, ROWS_MAX));
  }
}

function apply(znodes, [, zxid, operations]) {
  for (const [kind, path, data] of operations) {
    if (kind === "delete") znodes.delete(path);
    else znodes.set(path, data);
  }
  return zxid;
}

const HEADS = {
  Topics: ["Topic", "Partitions", "Topic id"],
  Partitions: ["Partition", "Leader", "ISR", "Replicas", "Leader epoch"],
  Brokers: ["Broker", "Endpoints"],
  Configs: ["Of", "Configs"],
  Quotas: ["Of", "Quotas"],
  ACLs: ["Resource", "Principal", "Rule"],
};

function json(data) {
  try {
    return JSON.parse(data) ?? {};
  } catch {
    return {};
  }
}

// The znodes as rows, by table; each row has a key.
export function facts(znodes) {
  const tables = Object.fromEntries(Object.keys(HEADS).map((name) => [name, new Map()]));
  const assignments = new Map();
  for (const [path, data] of znodes) {
    const parts = path.split("/").slice(1).map(decodeName);
    if (parts[0] === "brokers" && parts[1] === "topics" && parts.length === 3) {
      const topic = json(data);
      assignments.set(parts[2], topic.partitions ?? {});
      tables.Topics.set(parts[2], [parts[2], String(Object.keys(topic.partitions ?? {}).length), topic.topic_id ?? ""]);
    } else if (parts[0] === "brokers" && parts[1] === "ids" && parts.length === 3) {
      tables.Brokers.set(parts[2], [parts[2], (json(data).endpoints ?? []).join(", ")]);
    } else if (parts[0] === "config" && parts.length >= 3) config(tables, parts, data);
    else if (parts[0].startsWith("kafka-acl") && !parts[0].endsWith("changes")) acl(tables, parts, data);
  }
  for (const [path, data] of znodes) {
    const state = /^\/brokers\/topics\/([^/]+)\/partitions\/(\d+)\/state$/.exec(path);
    if (!state) continue;
    const [, topic, partition] = state;
    const { leader, isr, leader_epoch: epoch } = json(data);
    const replicas = assignments.get(topic)?.[partition] ?? [];
    tables.Partitions.set(`${topic}-${partition}`, [`${topic}-${partition}`, leader === -1 ? "none" : String(leader), (isr ?? []).join(", "), replicas.join(", "), String(epoch)]);
  }
  const byName = ([a], [b]) => a.localeCompare(b, "en", { numeric: true });
  return Object.fromEntries(Object.entries(tables).map(([name, rows]) => [name, new Map([...rows].sort(byName))]));
}

function config(tables, parts, data) {
  const [, kind, ...names] = parts;
  if (kind === "changes") return;
  const quotas = kind === "clients" || kind === "ips" || kind === "users";
  const of = `${kind} ${names.join(" ")}`;
  const values = data === null ? SECRET : Object.entries(json(data).config ?? {}).map(([name, value]) => `${name}=${value}`).join(", ");
  if (values) tables[quotas ? "Quotas" : "Configs"].set(of, [of, values]);
}

function acl(tables, parts, data) {
  const [root, ...rest] = parts;
  const [type, ...name] = root === "kafka-acl" ? rest : rest.slice(1);
  if (!name.length) return;
  const resource = `${type} ${name.join("/")}${root === "kafka-acl" ? "" : ` (${rest[0]})`}`;
  for (const { principal, permissionType, operation, host } of json(data).acls ?? []) {
    const rule = `${permissionType} ${operation} from ${host}`;
    tables.ACLs.set(`${resource} ${principal} ${rule}`, [resource, principal, rule]);
  }
}

function decodeName(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
