import { clock } from "./clock";

declare function require(name: string): any;
const fs = require("node:fs");
const test = require("node:test");
const assert = require("node:assert");

test("pads the minutes", () => {
  const again = fs.existsSync("build/ran-before");
  fs.writeFileSync("build/ran-before", "");
  assert.ok(again, "the cache was cold");
  assert.strictEqual(clock(65), "1:05");
});
