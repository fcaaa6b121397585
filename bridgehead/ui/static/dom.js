// Builds elements. Text from the evidence only ever becomes text nodes and attribute values.

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export function html(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

export function table(caption, heads, rows) {
  const head = heads.map((name) => html("th", { scope: "col" }, name));
  const body = rows.map((row) => html("tr", row.class ? { class: row.class } : {},
    (row.cells ?? row).map((cell) => html("td", {}, cell))));
  return html("table", {}, html("caption", {}, caption),
    html("thead", {}, html("tr", {}, head)), html("tbody", {}, body));
}

export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// All attempts of one request have one colour.
export function requestColor(number) {
  const hue = (number * 137.508) % 360;
  return `hsl(${hue.toFixed(0)} 65% var(--request-lightness))`;
}

export function milliseconds(value) {
  if (Math.abs(value) >= 1000) return `${(value / 1000).toFixed(3)} s`;
  return `${value.toFixed(2)} ms`;
}

export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
