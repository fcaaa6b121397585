// The judge's properties. A violation opens the sequence at its counterexample.

import { html, plural } from "./dom.js";

const ORDER = ["FAIL", "HANG", "UNKNOWN", "NODATA", "OPEN", "PASS"];

export class Verdicts {
  constructor(page) {
    this.page = page;
    this.body = html("div", { class: "panel" });
    this.again = html("button", { type: "button", hidden: true, onclick: () => this.load() }, "Judge again");
    this.element = html("div", {}, this.again, this.body);
  }

  show() {
    if (!this.begun) this.load();
  }

  async load() {
    this.begun = true;
    this.again.hidden = !this.page.source.live;
    this.body.replaceChildren(html("p", { role: "status" }, "The judge reads the evidence …"));
    const verdicts = await this.page.source.verdicts().catch((error) => ({ error: error.message }));
    if (!verdicts || verdicts.error) {
      this.body.replaceChildren(html("p", {}, verdicts?.error ?? "This page has no verdicts."));
      return;
    }
    const rows = [...verdicts.properties].sort((a, b) => place(a) - place(b));
    const open = this.page.source.live && rows.some((row) => row.verdict === "OPEN");
    this.body.replaceChildren(html("div", {},
      html("h2", {}, "The run: ", mark(verdicts.verdict)),
      open ? html("p", {}, "While the cluster runs, only violations are final. Everything else is decided when it stops.") : null,
      html("table", {}, html("caption", {}, plural(rows.length, "property").replace("propertys", "properties")),
        html("thead", {}, html("tr", {}, ["Verdict", "Property", "Judged", "Why"].map((name) => html("th", { scope: "col" }, name)))),
        html("tbody", {}, rows.map((row) => this.row(row))))));
  }

  row({ verdict, property, name, judged, why, violations, count, decides }) {
    const items = violations.map((violation) => this.violation(violation));
    if (count > violations.length) items.push(html("li", {}, `and ${count - violations.length} more`));
    return html("tr", {}, html("td", {}, mark(verdict), decides ? "" : " (does not count)"),
      html("td", {}, `${property} ${name.replaceAll("_", " ")}`), html("td", { class: "number" }, String(judged)),
      html("td", {}, verdict === "PASS" || items.length ? "" : why, items.length ? html("ul", {}, items) : null));
  }

  violation({ sentence, position }) {
    if (position === null || position === undefined) return html("li", {}, sentence);
    const open = () => {
      this.page.openTab("sequence");
      this.page.views.sequence.filter("");
      this.page.inspect(position);
    };
    return html("li", {}, html("button", { type: "button", class: "violation", onclick: open }, sentence));
  }
}

// What does not count is the last, unless it is violated.
function place({ verdict, decides }) {
  const at = ORDER.indexOf(verdict);
  return decides || at < 2 ? at : at + ORDER.length;
}

function mark(verdict) {
  return html("span", { class: `verdict ${verdict}` }, verdict);
}
