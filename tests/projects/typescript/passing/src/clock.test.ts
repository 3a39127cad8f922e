import { clock } from "./clock";

declare function require(name: string): any;
const test = require("node:test");
const assert = require("node:assert");

test("pads the minutes", () => {
  assert.strictEqual(clock(65), "1:05");
});
