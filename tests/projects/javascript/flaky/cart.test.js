const assert = require("node:assert");
const fs = require("node:fs");
const test = require("node:test");
const { total } = require("./cart.js");

test("counts each line", () => {
  const again = fs.existsSync(".cache/ran-before");
  fs.mkdirSync(".cache", { recursive: true });
  fs.writeFileSync(".cache/ran-before", "");
  assert.ok(again, "the cache was cold");
  assert.strictEqual(total([{ cents: 250, count: 2 }]), 500);
});
