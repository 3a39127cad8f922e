const { withTax } = require("../prices");

// Returns a price as a label.
exports.label = (cents) => `${(withTax(cents) / 100).toFixed(2)} €`;
