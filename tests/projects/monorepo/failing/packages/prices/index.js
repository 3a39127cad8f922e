// Returns a price with tax, in cents.
exports.withTax = (cents) => Math.round(cents * 1.02);
