// Buttons that break the running cluster. Each shows the command that it runs.

import { html } from "./dom.js";

export class BreakIt {
  constructor(page) {
    this.page = page;
    this.brokers = "";
    this.result = html("p", { class: "result", role: "status" });
    this.list = html("div", { class: "actions" });
    this.element = html("div", {}, this.result, this.list);
  }

  show() {
    const brokers = this.page.cluster.brokers.join();
    if (brokers === this.brokers) return;
    this.brokers = brokers;
    this.list.replaceChildren(...this.page.source.actions.map((action) => this.action(action)));
  }

  action(action) {
    const inputs = new Map(action.fields.map((field) => [field.name, this.input(field, action)]));
    const values = () => Object.fromEntries([...inputs].map(([name, input]) => [name, input.value.trim()]));
    const command = html("code", {});
    const tell = () => (command.textContent = commandLine(action, values(), this.page.source.dataDir));
    const button = html("button", { type: "button", onclick: () => this.run(action, values(), button) }, action.title);
    const copy = html("button", { type: "button", "aria-label": `Copy the command: ${action.title}`,
      onclick: () => navigator.clipboard.writeText(command.textContent) }, "Copy");
    for (const input of inputs.values()) input.addEventListener("input", tell);
    tell();
    return html("section", { class: "action", "aria-label": action.title, "data-action": action.name },
      button, html("span", {}, action.effect),
      inputs.size ? html("div", { class: "parts" }, [...inputs.entries()].map(([, input]) => input.parentElement)) : null,
      command, copy);
  }

  input({ name, title, kind, default: value, choices }, action) {
    const id = `${action.name}-${name}`;
    const options = kind === "broker" ? this.page.cluster.brokers.map(String) : choices;
    const input = options.length
      ? html("select", { id }, options.map((option) => html("option", { value: option, selected: option === value }, option)))
      : html("input", { id, value, size: 10 });
    html("label", { for: id }, `${title} `, input);
    return input;
  }

  async run(action, values, button) {
    button.disabled = true;
    this.result.className = "result";
    this.result.textContent = `${action.title} …`;
    const answer = await this.page.source.act({ action: action.name, ...values }).catch((error) => ({ error: error.message }));
    button.disabled = false;
    this.result.classList.toggle("bad", Boolean(answer.error));
    this.result.textContent = answer.error ?? answer.result;
  }
}

export function commandLine({ parts }, values, dataDir) {
  const chosen = parts.filter(({ field, among }) => !field || (values[field] && (!among.length || among.includes(values[field]))));
  const filled = chosen.map((part) => part.arguments.replace(/\{(\w+)\}/g, (_, name) => values[name]));
  return ["bridgehead", ...filled, "--data-dir", quoted(dataDir)].join(" ");
}

function quoted(text) {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
