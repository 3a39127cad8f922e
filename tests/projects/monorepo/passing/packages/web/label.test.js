const assert = require("node:assert");
const test = require("node:test");
const { label } = require("./label.js");

test("labels have two digits", () => {
  assert.strictEqual(label(100), "1.20 €");
});
