const assert = require("node:assert");
const fs = require("node:fs");
const test = require("node:test");
const { label } = require("./label.js");

test("labels have two digits", () => {
  const again = fs.existsSync(".cache/ran-before");
  fs.mkdirSync(".cache", { recursive: true });
  fs.writeFileSync(".cache/ran-before", "");
  assert.ok(again, "the cache was cold");
  assert.strictEqual(label(100), "1.20 €");
});
