// Where the evidence comes from: a server, or the page itself if it was exported.

import { unpack } from "./evidence.js";

export class ServerSource {
  constructor() {
    this.mode = "replay";
  }

  async open() {
    const about = await this.json("about.json");
    Object.assign(this, about);
    return [about, unpack(await (await this.get("rows.bin")).arrayBuffer())];
  }

  async get(path, options) {
    const answer = await fetch(path, { cache: "no-store", ...options });
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  }

  async json(path, options) {
    return (await this.get(path, options)).json();
  }

  details(start, count) {
    return this.json(`details.json?start=${start}&count=${count}`);
  }

  operations(since) {
    return this.json(`operations.json?since=${since}`);
  }

  verdicts() {
    return this.json("verdicts.json");
  }

  scenarios() {
    return this.json("scenarios.json");
  }

  act(action) {
    return this.json("actions", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Bridgehead-Action": this.actionToken },
      body: JSON.stringify(action),
    });
  }

  // Calls `take` with every batch of rows after a position, exactly once. The browser reconnects
  // by itself, and sends the id of the last batch.
  follow(position, take, tell) {
    const stream = new EventSource(`stream?after=${position}`);
    stream.addEventListener("rows", (event) => take(unpack(bytesOf(event.data).buffer)));
    stream.addEventListener("reset", () => {
      stream.close();
      location.reload();
    });
    stream.addEventListener("ended", () => {
      stream.close();
      tell("ended");
    });
    stream.onerror = () => tell("reconnecting");
    stream.onopen = () => tell("open");
  }
}

export class ExportedSource {
  constructor() {
    this.mode = "export";
    this.blocks = [...document.querySelectorAll("script.details")];
    this.parsed = new Map();
  }

  async open() {
    const about = JSON.parse(document.getElementById("about").textContent);
    Object.assign(this, about);
    return [about, unpack(await inflate(document.getElementById("rows").textContent))];
  }

  async details(start, count) {
    const details = [];
    for (let block = Math.floor(start / this.block); block * this.block < start + count; block++) {
      for (const detail of await this.parse(block)) {
        if (detail.position >= start && detail.position < start + count) details.push(detail);
      }
    }
    return details;
  }

  async parse(block) {
    if (!this.blocks[block]) return [];
    if (!this.parsed.has(block)) this.parsed.set(block, await parsed(this.blocks[block].textContent));
    return this.parsed.get(block);
  }

  operations() {
    return parsed(document.getElementById("operations").textContent);
  }

  verdicts() {
    return parsed(document.getElementById("verdicts").textContent);
  }
}

function bytesOf(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

async function inflate(base64) {
  const stream = new Blob([bytesOf(base64.trim())]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function parsed(base64) {
  return JSON.parse(new TextDecoder().decode(await inflate(base64)));
}
