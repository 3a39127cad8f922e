//! The durable session log and the content-addressed blobs.
