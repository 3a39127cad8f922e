//! Every event against the published schema, and which kinds there were.

use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex};

use journeyman_protocol::{Envelope, Event};
use jsonschema::Validator;

const SCHEMA: &str = include_str!("../../../../../../docs/events.schema.json");

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is one")
});

/// The kinds that were seen in this run of the tests.
static SEEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// What is wrong with an event as people get it.
pub(crate) fn problems(envelope: &Envelope) -> Vec<String> {
    SEEN.lock().unwrap().insert(envelope.event.kind());
    let json = serde_json::to_value(envelope).expect("an event is JSON");
    let kind = envelope.event.kind();
    VALIDATOR.iter_errors(&json).map(|error| format!("{kind} is not as the schema says: {error}")).collect()
}

/// The kinds that nothing emitted so far.
pub(crate) fn unseen() -> Vec<&'static str> {
    let seen = SEEN.lock().unwrap();
    let kinds = Event::KINDS.iter().map(|kind| kind.name);
    kinds.filter(|kind| !seen.contains(kind)).collect()
}
