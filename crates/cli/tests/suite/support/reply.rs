//! What the scripted model says, before it is put in a wire protocol.

use serde_json::Value;

/// One reply of the model.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub text: String,
    /// Name and arguments; the arguments as the text that goes over the wire.
    pub calls: Vec<(String, String)>,
    /// Input tokens afresh, input tokens from the cache, output tokens.
    pub usage: (u64, u64, u64),
    /// Cut off by the output limit.
    pub cut_off: bool,
}

/// The model says something and stops.
pub fn say(text: impl Into<String>) -> Reply {
    Reply { text: text.into(), usage: (100, 40, 10), ..Reply::default() }
}

/// The model calls a tool without a word.
pub fn call(name: &str, input: Value) -> Reply {
    say("").and(name, input)
}

impl Reply {
    /// One more call.
    pub fn and(self, name: &str, input: Value) -> Self {
        self.and_raw(name, &input.to_string())
    }

    /// One more call, its arguments as they stand, JSON or not.
    pub fn and_raw(mut self, name: &str, arguments: &str) -> Self {
        self.calls.push((name.to_owned(), arguments.to_owned()));
        self
    }

    /// What it costs.
    pub fn costing(mut self, fresh: u64, cached: u64, output: u64) -> Self {
        self.usage = (fresh, cached, output);
        self
    }

    /// The output limit cuts it off.
    pub fn cut_off(mut self) -> Self {
        self.cut_off = true;
        self
    }
}
