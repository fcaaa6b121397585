import { html } from "./dom.js";
export class Verdicts { constructor(page) { this.element = html("div", {}); } show() {} }
