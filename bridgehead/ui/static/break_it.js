// Buttons that break the running cluster. Each shows the command that it runs.

import { html } from "./dom.js";

export class BreakIt {
  constructor(page) {
    this.page = page;
    this.brokers = "";
    this.scenarios = [];
    this.result = html("p", { class: "result", role: "status" });
    this.list = html("div", { class: "actions" });
    this.element = html("div", {}, this.result, this.list);
  }

  show() {
    this.loading ??= this.load().catch((error) => this.page.fail(error));
    const brokers = this.page.cluster.brokers.join();
    if (brokers === this.brokers) return;
    this.brokers = brokers;
    this.draw();
  }

  // Fills in the scenarios; what a user has chosen elsewhere stays.
  async load() {
    this.scenarios = await this.page.source.scenarios();
    for (const select of this.list.querySelectorAll("select[data-kind=scenario]")) {
      select.replaceChildren(...this.scenarios.map((name) => html("option", {}, name)));
      select.dispatchEvent(new Event("input"));
    }
  }

  draw() {
    this.list.replaceChildren(...this.page.source.actions.map((action) => this.action(action)));
  }

  action(action) {
    const inputs = new Map(action.fields.map((field) => [field.name, this.input(field, action)]));
    const values = () => Object.fromEntries([...inputs].map(([name, input]) => [name, input.value.trim()]));
    const command = html("code", {});
    const tell = () => (command.textContent = commandLines(action, values(), this.page.source));
    const button = html("button", { type: "button", onclick: () => this.run(action, values(), button) }, action.title);
    const copy = html("button", { type: "button", "aria-label": `Copy the command: ${action.title}`,
      onclick: () => navigator.clipboard.writeText(command.textContent) }, "Copy");
    for (const input of inputs.values()) input.addEventListener("input", tell);
    tell();
    const parts = (more) => action.fields.filter((field) => field.is_more === more).map(({ name }) => inputs.get(name).parentElement);
    return html("section", { class: "action", "aria-label": action.title, "data-action": action.name },
      button, html("span", {}, action.effect),
      parts(false).length ? html("div", { class: "parts" }, parts(false)) : null,
      parts(true).length ? html("details", {}, html("summary", {}, "More conditions"), html("div", { class: "parts" }, parts(true))) : null,
      command, copy);
  }

  input({ name, title, kind, default: value, choices, is_optional: isOptional }, action) {
    const id = `${action.name}-${name}`;
    const options = { broker: this.page.cluster.brokers.map(String), scenario: this.scenarios }[kind] ?? choices;
    if (kind === "text" || kind === "number") {
      const input = html("input", { id, value, size: kind === "number" ? 6 : 16 });
      html("label", { for: id }, `${title} `, input);
      return input;
    }
    const select = html("select", { id, "data-kind": kind }, (isOptional ? [""] : []).concat(options).map((option) =>
      html("option", { value: option, selected: option === value }, option || "default")));
    html("label", { for: id }, `${title} `, select);
    return select;
  }

  async run(action, values, button) {
    button.disabled = true;
    this.result.className = "result";
    this.result.textContent = `${action.title} …`;
    const answer = await this.page.source.act({ action: action.name, ...values }).catch((error) => ({ error: error.message }));
    button.disabled = false;
    this.result.classList.toggle("bad", Boolean(answer.error));
    this.result.replaceChildren(answer.error ?? answer.result);
    if (answer.open) this.result.append(" ", html("a", { href: answer.open, target: "_blank", rel: "noopener" }, "Watch it"));
  }
}

export function commandLines({ parts, then }, values, { dataDir, scenariosDir }) {
  const texts = { ...values, data_dir: quoted(dataDir), scenarios: quoted(scenariosDir) };
  const chosen = parts.filter((part) => (!part.unless_empty || values[part.unless_empty])
    && (!part.rules.length || part.rules.includes(values.rule)));
  const filled = (template) => template.replace(/\{(\w+)\}/g, (_, name) => texts[name]);
  const lines = [chosen.map((part) => filled(part.arguments)).join(" "), ...(then ? [filled(then)] : [])];
  return lines.map((line) => `bridgehead ${line}`).join("\n");
}

function quoted(text) {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
