//! The project's own checks: found, run in the sandbox, read as diagnostics and evidence.
