const assert = require("node:assert");
const test = require("node:test");
const { total } = require("./cart.js");

test("counts each line", () => {
  assert.strictEqual(total([{ cents: 250, count: 2 }]), 500);
});
