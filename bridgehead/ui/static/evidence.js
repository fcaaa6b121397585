// The rows of a run, in columns. A position is the place of a row in the run; it never changes,
// even if a live page drops its oldest rows.

const ARRAYS = { d: Float64Array, I: Uint32Array, H: Uint16Array, h: Int16Array, B: Uint8Array };
const NEVER = -1;

// Reads a batch of rows: the length of a JSON text, the text, then the columns. Each part begins at
// a multiple of 8 bytes.
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  return { head, buffer, offset: 8 + length + ((8 - (length % 8)) % 8) };
}

export class Evidence {
  // `about` has what does not change; `first` is a batch, whose first row is the first of this page.
  constructor(about, first, rowsMax) {
    for (const name of ["columns", "kinds", "lanes", "flags", "noError", "apis", "errors", "run", "startedMs"]) this[name] = about[name];
    this.kind = Object.fromEntries(this.kinds.map((kind, number) => [kind.key, number]));
    this.rowsMax = rowsMax;
    this.dropped = this.base = this.count = first.head.start;
    this.column = Object.fromEntries(this.columns.map(([name, code]) => [name, new ARRAYS[code](0)]));
    this.capacity = 0;
    this.requests = new Map();
    this.sampled = new Map();
    this.links = [];
    this.append(first);
  }

  // Adds rows. Rows that are here already are left out, so nothing is doubled.
  append({ head, buffer, offset }) {
    for (const name of ["nodes", "clients", "texts"]) this[name] = head.isFirst ? head[name] : this[name].concat(head[name]);
    for (const name of ["hasTransactions", "shareRead", "skipped", "late", "unnamed"]) this[name] = head[name];
    for (const [number, ...request] of head.requests) this.requests.set(number, request);
    for (const link of head.links) if (link[0] >= this.count) this.links.push(link);
    for (const sample of head.samples) this.sampled.set(`${sample[0]} ${sample[1]}`, sample);
    const present = Math.max(this.count - head.start, 0);
    const added = Math.max(head.count - present, 0);
    if (this.count - this.base + added > this.rowsMax) this.drop(added);
    this.reserve(this.count - this.base + added);
    for (const [name, code] of this.columns) {
      const kind = ARRAYS[code];
      const values = new kind(buffer, offset, head.count);
      if (added) this.column[name].set(values.subarray(present), this.count - this.base);
      offset += Math.ceil((head.count * kind.BYTES_PER_ELEMENT) / 8) * 8;
    }
    this.count += added;
  }

  get samples() {
    return [...this.sampled.values()];
  }

  reserve(rows) {
    if (rows <= this.capacity) return;
    this.capacity = Math.min(Math.max(rows, this.capacity * 2, 4096), Math.max(this.rowsMax, rows));
    for (const [name, code] of this.columns) {
      const grown = new ARRAYS[code](this.capacity);
      grown.set(this.column[name].subarray(0, this.count - this.base));
      this.column[name] = grown;
    }
  }

  drop(needed) {
    const count = Math.min(Math.max(needed, this.rowsMax >> 2), this.count - this.base);
    for (const [name] of this.columns) this.column[name].copyWithin(0, count, this.count - this.base);
    this.base += count;
    this.dropped = this.base;
    this.links = this.links.filter(([position]) => position >= this.base);
    const used = new Set(this.links.map(([, number]) => number));
    const column = this.column.request;
    for (let index = 0; index < this.count - this.base; index++) used.add(column[index]);
    for (const number of this.requests.keys()) if (!used.has(number)) this.requests.delete(number);
    const first = this.column.t[0];
    for (const [key, [t]] of this.sampled) if (t < first) this.sampled.delete(key);
  }

  get(name, position) {
    return this.column[name][position - this.base];
  }

  is(position, ...keys) {
    const kind = this.get("kind", position);
    return keys.some((key) => this.kind[key] === kind);
  }

  has(position, flag) {
    return (this.get("flags", position) & this.flags[flag]) !== 0;
  }

  // Whether a row is a step that captions tell. Vain resends of a request are told once.
  isNotable(position) {
    return this.kinds[this.get("kind", position)].notable && !this.has(position, "REPEATED");
  }

  node(position) {
    return this.nodes[this.get("node", position)];
  }

  peer(position) {
    return this.nodes[this.get("peer", position)];
  }

  text(position) {
    return this.texts[this.get("text", position)];
  }

  get first() {
    return this.base;
  }

  get last() {
    return this.count - 1;
  }

  // The last position at or before a time.
  at(t) {
    let low = this.base, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.get("t", middle) <= t) low = middle + 1;
      else high = middle;
    }
    return Math.max(low - 1, this.base);
  }

  // The first position at or after a time.
  from(t) {
    const position = this.at(t);
    return this.get("t", position) < t ? Math.min(position + 1, this.last) : position;
  }

  request(number) {
    const request = this.requests.get(number);
    if (!request) return null;
    const [id, apiKey, version, client, broker, elements, elementCount, error] = request;
    const [software, softwareVersion, principal, clientId] = this.clients[client];
    return {
      id, version, client, elements, elementCount, principal, clientId, software, softwareVersion,
      broker: this.nodes[broker], api: this.apis[apiKey] ?? "", error: this.errorName(error),
    };
  }

  errorName(code) {
    if (code === this.noError || code === 0) return "";
    return this.errors[code] ?? `error ${code}`;
  }

  // Every row of a request, with the multi that committed it.
  story(number) {
    const zxids = new Set(), commits = new Set();
    for (const [position, request] of this.links) {
      if (request !== number || position < this.base) continue;
      zxids.add(this.get("zxid", position));
      if (this.get("number", position)) commits.add(this.get("number", position));
    }
    const positions = [];
    const { request, kind, zxid, number: commit } = this.column;
    const { transaction, committed, commit_sent: sent, commit_unknown: unknown } = this.kind;
    for (let index = 0; index < this.count - this.base; index++) {
      const of = kind[index];
      if (request[index] === number
        || ((of === transaction || of === committed) && zxids.has(zxid[index]))
        || ((of === sent || of === unknown) && commits.has(commit[index]))) positions.push(this.base + index);
    }
    return positions;
  }

  // The row that an arrow connects with a row: what was sent, or what was received; -1: none.
  partner(position, window = 3000) {
    const kind = this.kinds[this.get("kind", position)].key;
    const by = PARTNERS[kind];
    if (!by) return NEVER;
    const [key, step, columns] = by;
    const wanted = this.kind[key];
    const values = columns.map((name) => this.get(name, position));
    if (values.some((value) => !value)) return NEVER;
    for (let n = 1, at = position + step; n < window && at >= this.base && at < this.count; n++, at += step) {
      if (this.get("kind", at) === wanted && columns.every((name, c) => this.get(name, at) === values[c])) return at;
    }
    return NEVER;
  }

  // Positions of the rows that match every word of a text, in [from, to]; null: all rows do.
  search(text, from, to) {
    const words = text.toLowerCase().match(/\S+/g) ?? [];
    if (!words.length && from <= this.base && to >= this.last) return null;
    const tests = words.map((word) => this.wordTest(word));
    const positions = [];
    for (let position = Math.max(from, this.base); position <= Math.min(to, this.last); position++) {
      if (tests.every((test) => test(position))) positions.push(position);
    }
    return positions;
  }

  wordTest(word) {
    const [, field, value] = /^(?:(id|principal|api|topic|error|client):)?(.*)$/.exec(word);
    const requests = new Set();
    const hits = (name, text) => (!field || field === name) && text.toLowerCase().includes(value);
    for (const number of this.requests.keys()) {
      const r = this.request(number);
      const client = `${r.software} ${r.softwareVersion} ${r.clientId}`;
      if (hits("id", r.id) || hits("principal", r.principal) || hits("api", r.api) || hits("error", r.error)
        || hits("client", client) || r.elements.some((name) => hits("topic", name))
        || (!field && value === `#${number}`)) requests.add(number);
    }
    const matching = (texts) => new Set(texts.flatMap((name, at) =>
      (!field && name && name.toLowerCase().includes(value) ? [at] : [])));
    const kinds = matching(this.kinds.map((kind) => kind.title));
    const texts = matching(this.texts), nodes = matching(this.nodes.map(nodeName));
    return (position) => requests.has(this.get("request", position))
      || kinds.has(this.get("kind", position)) || texts.has(this.get("text", position))
      || nodes.has(this.get("node", position))
      || ((!field || field === "error") && this.errorName(this.get("error", position)).toLowerCase().includes(value));
  }
}

const PARTNERS = {
  forward_sent: ["envelope_received", 1, ["request", "attempt"]],
  envelope_received: ["forward_sent", -1, ["request", "attempt"]],
  decided: ["forward_replied", 1, ["request"]],
  envelope_rejected: ["forward_replied", 1, ["request"]],
  commit_sent: ["transaction", 1, ["number"]],
  transaction: ["committed", 1, ["zxid"]],
  committed: ["transaction", -1, ["zxid"]],
};

export function nodeName(node) {
  if (/^\d+$/.test(node)) return `Broker ${node}`;
  if (node === "") return "ZooKeeper";
  const [source, ...rest] = node.split("-");
  return `${source === "client" ? "Client" : "Harness"} ${rest.join("-")}`;
}

// The cluster at a moment, from the rows up to it.
export class Cluster {
  constructor(evidence) {
    this.evidence = evidence;
    this.changes = [];
    this.read = evidence.base;
    this.brokers = [];
  }

  // Looks at new rows; keeps the positions of those that change the cluster.
  refresh() {
    const { evidence } = this;
    const keys = ["transaction", "active", "resigned", "started", "stopped", "ended", "fault", "healed", "registered"];
    const changing = new Set(keys.map((key) => evidence.kind[key]));
    const epochColumn = evidence.column.epoch;
    for (let position = Math.max(this.read, evidence.base); position < evidence.count; position++) {
      const kind = evidence.get("kind", position);
      if (!changing.has(kind)) continue;
      if (kind === evidence.kind.transaction && !epochColumn[position - evidence.base]
        && !evidence.has(position, "CONTROLLER_DELETED")) continue;
      this.changes.push(this.change(position));
    }
    this.read = evidence.count;
    // What dropped rows said stays true: it is kept as the state before the first row.
    while (this.changes.length && this.changes[0].position < evidence.base) {
      this.before = this.apply(this.before ?? this.empty(), this.changes.shift());
    }
    const ids = new Set(evidence.nodes.filter((node) => /^\d+$/.test(node)).map(Number));
    for (let id = 1; id <= (evidence.run.brokers ?? 0); id++) ids.add(id);
    this.brokers = [...ids].sort((a, b) => a - b);
  }

  // What a row says, which must be known when the row has been dropped.
  change(position) {
    const { evidence } = this;
    return {
      position, t: evidence.get("t", position), key: evidence.kinds[evidence.get("kind", position)].key,
      node: evidence.node(position), peer: evidence.peer(position), text: evidence.text(position),
      epoch: evidence.get("epoch", position),
      created: evidence.has(position, "CONTROLLER_CREATED"), deleted: evidence.has(position, "CONTROLLER_DELETED"),
    };
  }

  empty() {
    return { controller: null, epoch: 0, brokers: new Map(), faults: new Map() };
  }

  at(position) {
    let state = this.before ?? this.empty();
    state = { ...state, brokers: new Map(state.brokers), faults: new Map(state.faults) };
    for (const change of this.changes) {
      if (change.position > position) break;
      this.apply(state, change);
    }
    return state;
  }

  apply(state, { position, key, node, peer, text, epoch, created, deleted }) {
    const { hasTransactions } = this.evidence;
    switch (key) {
      case "transaction":
        if (deleted) state.controller = null;
        if (created) state.controller = peer;
        state.epoch = epoch || state.epoch;
        break;
      case "active":
        if (hasTransactions) break;
        state.controller = node;
        state.epoch = epoch;
        break;
      case "resigned":
        if (!hasTransactions && state.controller === node) state.controller = null;
        break;
      case "started":
      case "registered":
        state.brokers.set(node, "running");
        break;
      case "stopped":
        state.brokers.set(node, "stopped");
        break;
      case "ended":
        if (state.brokers.get(peer) !== "killed") state.brokers.set(peer, "stopped");
        break;
      case "fault":
        if (text === "kill") state.brokers.set(peer, "killed");
        state.faults.set(`${text} ${peer}`, position);
        break;
      case "healed":
        state.faults.delete(`${text} ${peer}`);
        break;
    }
    return state;
  }

  // Every time at which a controller was elected or lost: [t, controller or null, epoch].
  terms() {
    const state = this.before ? { ...this.before, brokers: new Map(), faults: new Map() } : this.empty();
    const terms = [[this.evidence.column.t[0] ?? 0, state.controller, state.epoch]];
    for (const change of this.changes) {
      const [controller, epoch] = [state.controller, state.epoch];
      this.apply(state, change);
      if (controller !== state.controller || epoch !== state.epoch) {
        terms.push([change.t, state.controller, state.epoch]);
      }
    }
    return terms;
  }
}
