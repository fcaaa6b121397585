import { html } from "./dom.js";
export class Metadata { constructor(page) { this.element = html("div", {}); } show() {} }
