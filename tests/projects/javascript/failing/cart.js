// Returns the sum of a cart in cents.
exports.total = (lines) => lines.reduce((sum, line) => sum + line.cents, 0);
