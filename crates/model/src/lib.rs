//! Streaming clients for the four wire protocols, with retry, record, replay and scripts.
