import { html } from "./dom.js";
export class BreakIt { constructor(page) { this.element = html("div", {}); } show() {} }
