//! The session: queue, loop, tools, approvals, verification. The whole agent as a library.
