import { html } from "./dom.js";
export class Timeline { constructor(page) { this.element = html("div", {}); } show() {} }
