//! The tools a model may call, their schemas, effects and bounded results.
