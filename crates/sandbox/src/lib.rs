//! One command, confined: namespaces, limits, streamed output, the whole tree killed.
