const assert = require("node:assert");
const test = require("node:test");
const { withTax } = require("./index.js");

test("adds the tax", () => {
  assert.strictEqual(withTax(100), 120);
});
