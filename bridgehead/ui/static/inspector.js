// One event as it is in the evidence, and its request stop by stop.

import { html, milliseconds, requestColor } from "./dom.js";

const STOPS_MAX = 200;

export class Inspector {
  constructor(page) {
    this.page = page;
    this.body = html("div", { class: "inspected" });
    this.element = html("aside", { class: "inspector", hidden: true, "aria-label": "Chosen event", tabindex: "-1" },
      html("button", { type: "button", class: "close", onclick: () => this.close() }, "Close"), this.body);
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  close() {
    this.element.hidden = true;
    this.opener?.focus();
  }

  async show(position) {
    this.opener = document.activeElement;
    const { evidence } = this.page;
    const number = evidence.get("request", position) || (evidence.links.find(([at]) => at === position) ?? [0, 0])[1];
    const detail = await this.page.detail(position);
    const parts = [html("p", { class: "sentence" }, detail?.caption ?? "")];
    if (number) parts.push(...await this.request(number, position));
    parts.push(html("h3", {}, "Raw event"),
      html("pre", { tabindex: "0" }, detail?.event ? JSON.stringify(detail.event, null, 2) : "This page does not contain the raw event."));
    this.body.replaceChildren(...parts);
    this.element.hidden = false;
    this.element.focus({ preventScroll: true });
  }

  async request(number, current) {
    const { evidence } = this.page;
    const request = evidence.request(number);
    const rows = evidence.story(number).slice(0, STOPS_MAX);
    await this.page.load(rows.filter((row) => !this.page.cached(row)));
    const start = evidence.get("t", rows[0]);
    const stops = rows.map((row) => html("li", row === current ? { "aria-current": "step" } : {},
      html("button", { type: "button", onclick: () => this.page.inspect(row) },
        html("time", {}, `+${milliseconds(evidence.get("t", row) - start)}`),
        html("span", { class: "sentence" }, this.page.cached(row)?.caption ?? this.page.rowTitle(row)))));
    const swatch = html("span", { class: "swatch" });
    swatch.style.background = requestColor(number);
    const client = [request.software, request.softwareVersion].filter((text) => text && text !== "unknown").join(" ");
    const names = request.elements.join(", ") + (request.elementCount > request.elements.length ? ", …" : "");
    const facts = [["API", `${request.api} version ${request.version}`], ["Principal", request.principal], ["Client", `${client} ${request.clientId}`],
      ["Names", names], ["Error", request.error || "none"], ["Request id", request.id]];
    const command = `bridgehead diagram ${this.page.source.folder} --request ${request.id} > request.svg`;
    return [
      html("h2", {}, swatch, `Request ${number}`),
      html("dl", {}, facts.filter(([, value]) => value.trim()).map(([name, value]) => [html("dt", {}, name), html("dd", {}, value)])),
      html("button", { type: "button", onclick: () => this.only(number) }, "Only this request"),
      html("h3", {}, "Stop by stop"), html("ol", { class: "stops" }, stops),
      html("p", { class: "command" }, "As a picture: ", html("code", {}, command)),
    ];
  }

  only(number) {
    this.page.openTab("sequence");
    this.page.views.sequence.only(number);
  }
}
