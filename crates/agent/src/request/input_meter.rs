//! The model's limits, and the input that a request will have.
//!
//! The limits begin as the settings have them. A server that tells its own is asked while the first
//! request is prepared and answered, and once more after the first reply if it had yet to load the
//! model. Counts are corrected by what the provider reports.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use journeyman_context::counting::{Calibration, Counter, RequestCounter, RequestParts, RequestTokens};
use journeyman_model::{Model, ModelRequest, ServerLimits, SystemPart};
use journeyman_protocol::{
    Block, LimitSource, Message, ModelLimits, ResultPart, TokenCounter, Tokenizer, Tokens, ToolSpec, Usage,
    group_digits,
};
use tokio::task::JoinHandle;

use super::argument_size::max_argument_bytes;
use super::token_ratios::{ModelRatio, TokenRatioStore};

/// Maximum number of questions to the server: at the beginning, and when the model is loaded.
const MAX_LIMITS_QUERIES: u32 = 2;
/// Maximum time that a request which continues a conversation waits for the server's limits: a
/// server on this machine answers in some milliseconds.
const MAX_LIMITS_WAIT: Duration = Duration::from_millis(500);
/// Requests below the window divided by this number aren't counted: they fit, however wrong a count
/// is.
const COUNTED_WINDOW_DIVISOR: u64 = 8;

/// Predicts the input tokens of requests, and keeps the model's limits.
pub(crate) struct InputMeter {
    limits: ModelLimits,
    requests: RequestCounter,
    query: Option<JoinHandle<Option<ServerLimits>>>,
    queries: u32,
    is_final: bool,
    /// True if a request has waited for an answer.
    has_waited: bool,
    is_warned: bool,
    is_warm: bool,
    counted: Vec<CountedMessage>,
    kept: Option<ModelRatio>,
}

/// A message of the last counted request.
#[derive(Clone, Copy)]
struct CountedMessage {
    mark: u64,
    tokens: Tokens,
}

impl InputMeter {
    pub(crate) fn new(limits: ModelLimits) -> Self {
        let counter = match &limits.tokenizer {
            Tokenizer::File(path) => Counter::with_vocabulary(load_vocabulary(path), limits.images),
            _ => Counter::new(&limits),
        };
        let calibration = Calibration::new(limits.tokenizer.is_exact());
        Self {
            requests: RequestCounter::new(Arc::new(counter), calibration),
            query: None,
            has_waited: false,
            queries: 0,
            is_final: !limits.source.is_provisional(),
            is_warned: false,
            is_warm: false,
            counted: Vec::new(),
            kept: None,
            limits,
        }
    }

    /// Starts with the ratio that earlier sessions with the model learnt, and stores the ratio of
    /// this session.
    pub(crate) fn with_kept_ratio(mut self, ratios: Option<Arc<dyn TokenRatioStore>>, model: &str) -> Self {
        let kept = ratios.map(|ratios| ModelRatio::new(ratios, model, &self.limits.tokenizer));
        if let Some(learnt) = kept.as_ref().and_then(ModelRatio::newest) {
            self.requests.apply_learnt_ratio(learnt);
        }
        Self { kept, ..self }
    }

    /// Returns the model's limits, as far as they are known.
    pub(crate) fn limits(&self) -> &ModelLimits {
        &self.limits
    }

    /// Returns true if the window is known, and the server has no other once the model is loaded.
    pub(crate) fn has_certain_window(&self) -> bool {
        self.is_final && self.limits.source != LimitSource::Default
    }

    /// Returns the counter of texts, whose counts aren't corrected.
    pub(crate) fn counter(&self) -> &Arc<Counter> {
        self.requests.counter()
    }

    /// Sets the window that a provider named when it refused a request.
    pub(crate) fn set_refused_window(&mut self, window: Tokens) {
        self.limits.set_window(window, LimitSource::Refusal);
        self.is_final = true;
    }

    /// Asks the server for the limits in the background, if it may know more.
    pub(crate) fn start_limits_query(&mut self, model: &Arc<dyn Model>) {
        if !self.is_final && self.query.is_none() && self.queries < MAX_LIMITS_QUERIES {
            self.queries += 1;
            let model = Arc::clone(model);
            self.query = Some(tokio::spawn(async move { model.query_limits().await }));
        }
    }

    /// Applies the server's answer if it has arrived. Doesn't wait.
    pub(crate) fn apply_arrived_limits(&mut self) {
        if let Some(answer) = self.query.as_mut().and_then(|query| query.now_or_never()) {
            self.apply_limits(answer.ok().flatten());
        }
    }

    /// Waits a little for the server's answer, and applies it. For a request that continues a
    /// conversation: what is assumed in place of the answer may be too much for it.
    pub(crate) async fn wait_for_limits(&mut self) {
        let Some(query) = self.query.as_mut() else { return };
        // Only once: a server that is slow now is slow for every request.
        let most =
            if std::mem::replace(&mut self.has_waited, true) { Duration::ZERO } else { MAX_LIMITS_WAIT };
        if let Ok(answer) = tokio::time::timeout(most, query).await {
            self.apply_limits(answer.ok().flatten());
        }
    }

    fn apply_limits(&mut self, answer: Option<ServerLimits>) {
        self.query = None;
        match answer {
            Some(told) => {
                told.apply_to(&mut self.limits);
                self.is_final = told.is_final;
            }
            None => self.is_final = true,
        }
    }

    /// Counts a request, without correction.
    pub(crate) fn count(&mut self, request: &ModelRequest) -> RequestTokens {
        self.count_parts(&request.system, &request.tools, &request.messages)
    }

    /// Counts the parts of a request, without correction. Messages that the last counted request
    /// had at the same position aren't counted again.
    pub(crate) fn count_parts(
        &mut self,
        system: &[SystemPart],
        tools: &[ToolSpec],
        messages: &[Message],
    ) -> RequestTokens {
        let counter = self.requests.counter();
        let system: Vec<&str> = system.iter().map(|part| part.text.as_str()).collect();
        let parts = RequestParts { system: &system, tools, messages: &[] };
        let mut tokens = counter.count_request(parts);
        self.counted.truncate(messages.len());
        for (place, message) in messages.iter().enumerate() {
            let mark = message_fingerprint(message);
            let known = self.counted.get(place).filter(|counted| counted.mark == mark).copied();
            let counted =
                known.unwrap_or_else(|| CountedMessage { mark, tokens: counter.count_message(message) });
            match self.counted.get_mut(place) {
                Some(slot) => *slot = counted,
                None => self.counted.push(counted),
            }
            tokens.messages += counted.tokens;
        }
        tokens
    }

    /// Returns true if requests with that input are worth counting. When they soon will be, the
    /// vocabulary is unpacked on a thread of its own.
    pub(crate) fn is_worth_counting(&mut self, input: Tokens) -> bool {
        let part = input.0.saturating_mul(COUNTED_WINDOW_DIVISOR);
        if part.saturating_mul(2) >= self.limits.window.0 && !self.is_warm {
            self.is_warm = true;
            let counter = Arc::clone(self.requests.counter());
            drop(tokio::task::spawn_blocking(move || counter.count("")));
        }
        part >= self.limits.window.0
    }

    /// Returns the input that the provider will report for a request of that count, on the safe
    /// side.
    pub(crate) fn predict(&self, counted: Tokens) -> Tokens {
        self.requests.predict(counted)
    }

    /// Returns the most likely input of a request of that count.
    pub(crate) fn estimate(&self, counted: Tokens) -> Tokens {
        self.requests.estimate(counted)
    }

    /// Learns from the usage that the provider reported for a request of that count.
    pub(crate) fn observe(&mut self, counted: Tokens, usage: &Usage) {
        self.requests.observe(counted, usage);
        if let (Some(kept), Some(learnt)) = (&mut self.kept, self.requests.learnt_ratio()) {
            kept.keep(learnt);
        }
    }

    /// Returns a warning that the window is only assumed, once, when it is known that the server
    /// doesn't tell it.
    pub(crate) fn assumed_window_warning(&mut self, model: &str) -> Option<String> {
        let is_needed = self.limits.source == LimitSource::Default && self.query.is_none();
        if self.is_warned || !is_needed {
            return None;
        }
        self.is_warned = true;
        let (provider, name) = model.split_once('/').unwrap_or(("custom", model));
        Some(format!(
            "the context window of {model} isn't known; {} tokens are assumed. Set \
             providers.{provider}.models.\"{name}\".window in your configuration",
            group_digits(self.limits.window.0)
        ))
    }
}

/// Returns a hash of the lengths of a message's texts and arguments, and of the ids of its calls.
/// Doesn't read the texts.
fn message_fingerprint(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.role.hash(&mut hasher);
    for block in &message.content {
        std::mem::discriminant(block).hash(&mut hasher);
        match block {
            Block::Text { text } | Block::Thinking { text, .. } => text.len().hash(&mut hasher),
            Block::Image(image) => image.data.len().hash(&mut hasher),
            Block::ToolUse(call) => (&call.id, max_argument_bytes(&call.input)).hash(&mut hasher),
            Block::ToolResult { id, content, .. } => {
                id.hash(&mut hasher);
                for part in content {
                    match part {
                        ResultPart::Text { text } => text.len().hash(&mut hasher),
                        ResultPart::Image(image) => image.data.len().hash(&mut hasher),
                    }
                }
            }
        }
    }
    hasher.finish()
}

/// Returns the vocabulary of a `tokenizer.json`. One that can't be used is replaced by an estimate:
/// the host has said so where it was configured.
fn load_vocabulary(path: &std::path::Path) -> Arc<dyn TokenCounter> {
    Arc::new(journeyman_index::vectors::TokenizerFile::new(path.to_owned(), |text| {
        Counter::new(&ModelLimits::conservative_default(false)).count(text)
    }))
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use journeyman_context::counting::LearntRatio;
    use journeyman_model::DeltaStream;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// A model whose server tells one window after the other.
    struct Telling(std::sync::Mutex<Vec<ServerLimits>>);

    impl Model for Telling {
        fn name(&self) -> String {
            "house/model".to_owned()
        }

        fn stream<'a>(&'a self, _: &'a ModelRequest, _: CancellationToken) -> DeltaStream<'a> {
            Box::pin(futures_util::stream::empty())
        }

        fn query_limits(&self) -> BoxFuture<'_, Option<ServerLimits>> {
            let told = self.0.lock().unwrap().pop();
            Box::pin(std::future::ready(told))
        }
    }

    fn told(window: u64, is_final: bool) -> ServerLimits {
        ServerLimits { window: Tokens(window), max_output: None, is_final }
    }

    async fn ask(meter: &mut InputMeter, model: &Arc<dyn Model>) -> Tokens {
        meter.start_limits_query(model);
        tokio::task::yield_now().await;
        meter.apply_arrived_limits();
        meter.limits().window
    }

    #[tokio::test]
    async fn a_server_that_has_yet_to_load_the_model_is_asked_once_more() {
        let answers = vec![told(50_000, true), told(16_000, true), told(4_096, false)];
        let model: Arc<dyn Model> = Arc::new(Telling(std::sync::Mutex::new(answers)));
        let mut meter = InputMeter::new(ModelLimits::conservative_default(true));
        let windows =
            [ask(&mut meter, &model).await, ask(&mut meter, &model).await, ask(&mut meter, &model).await];
        assert_eq!(windows, [Tokens(4_096), Tokens(16_000), Tokens(16_000)]);
        meter.set_refused_window(Tokens(12_000));
        assert_eq!(meter.limits().source, LimitSource::Refusal);
    }

    #[tokio::test]
    async fn a_conversation_that_goes_on_waits_for_the_answer() {
        let model: Arc<dyn Model> = Arc::new(Telling(std::sync::Mutex::new(vec![told(4_096, true)])));
        let mut meter = InputMeter::new(ModelLimits::conservative_default(true));
        meter.start_limits_query(&model);
        meter.apply_arrived_limits();
        assert_eq!(meter.limits().window, ModelLimits::DEFAULT_LOCAL_WINDOW, "the answer isn't there yet");
        meter.wait_for_limits().await;
        assert_eq!(meter.limits().window, Tokens(4_096));
        meter.wait_for_limits().await;
    }

    #[tokio::test]
    async fn limits_that_the_user_set_are_nobodys_to_correct() {
        let model: Arc<dyn Model> = Arc::new(Telling(std::sync::Mutex::new(vec![told(9_000, true)])));
        let set = ModelLimits { source: LimitSource::Configured, ..ModelLimits::conservative_default(true) };
        let mut meter = InputMeter::new(set.clone());
        assert_eq!(ask(&mut meter, &model).await, set.window);
        assert_eq!(meter.queries, 0);
    }

    #[test]
    fn an_assumed_window_is_said_once_when_it_matters() {
        let mut meter = InputMeter::new(ModelLimits::conservative_default(true));
        let said = meter.assumed_window_warning("ollama/qwen3:8b").unwrap();
        assert!(
            said.contains("8,192") && said.contains(r#"providers.ollama.models."qwen3:8b".window"#),
            "{said}"
        );
        assert_eq!(meter.assumed_window_warning("ollama/qwen3:8b"), None);
        let known = ModelLimits { source: LimitSource::Table, ..ModelLimits::conservative_default(true) };
        assert_eq!(InputMeter::new(known).assumed_window_warning("a/b"), None);
    }

    #[test]
    fn a_changed_message_is_counted_anew_and_the_others_are_not() {
        let mut meter = InputMeter::new(ModelLimits::conservative_default(false));
        let mut request = ModelRequest::default();
        for turn in 1..=20 {
            request.messages.push(Message::user_text("word ".repeat(turn * 10)));
            let mut fresh = InputMeter::new(ModelLimits::conservative_default(false));
            assert_eq!(meter.count(&request), fresh.count(&request), "{turn}");
        }
        let whole = meter.count(&request).total();
        request.messages[4] = Message::user_text("cleared");
        let less = meter.count(&request).total();
        assert!(less < whole);
        request.messages.drain(1..15);
        let mut fresh = InputMeter::new(ModelLimits::conservative_default(false));
        assert_eq!(meter.count(&request), fresh.count(&request));
        assert_eq!(meter.counted.len(), request.messages.len());
    }

    #[test]
    fn a_call_whose_arguments_were_shortened_is_counted_anew() {
        let with = |text: String| {
            let input = serde_json::json!({ "path": "a.rs", "edits": [{ "new": text }] });
            let id = journeyman_protocol::CallId::new("c1");
            let name = "edit_file".to_owned();
            let call = journeyman_protocol::ToolUse { id, name, input, malformed: None, signature: None };
            let role = journeyman_protocol::Role::Assistant;
            let reply = Message { role, content: vec![Block::ToolUse(call)] };
            ModelRequest { messages: vec![Message::user_text("do it"), reply], ..ModelRequest::default() }
        };
        let mut meter = InputMeter::new(ModelLimits::conservative_default(false));
        let whole = meter.count(&with("word ".repeat(3_000))).total();
        let shortened = with("word […]".to_owned());
        let mut fresh = InputMeter::new(ModelLimits::conservative_default(false));
        assert_eq!(meter.count(&shortened), fresh.count(&shortened));
        assert!(meter.count(&shortened).total() < whole);
    }

    /// Keeps ratios in memory.
    #[derive(Debug, Default)]
    struct InMemory(std::sync::Mutex<std::collections::BTreeMap<String, LearntRatio>>);

    impl TokenRatioStore for InMemory {
        fn find(&self, model: &str) -> Option<LearntRatio> {
            self.0.lock().unwrap().get(model).copied()
        }

        fn keep(&self, model: &str, learnt: LearntRatio) {
            self.0.lock().unwrap().insert(model.to_owned(), learnt);
        }
    }

    #[tokio::test]
    async fn a_second_session_with_the_model_counts_right_from_its_first_request() {
        let ratios = Arc::new(InMemory::default());
        let begin = |model: &str, limits: ModelLimits| {
            let ratios: Arc<dyn TokenRatioStore> = ratios.clone();
            InputMeter::new(limits).with_kept_ratio(Some(ratios), model)
        };
        let known = ModelLimits::conservative_default(false);
        let mut first = begin("a/b", known.clone());
        let (before, estimated) =
            (first.estimate(Tokens(10_000)), Usage { estimated: Tokens(1), ..usage(9) });
        first.observe(Tokens(5_000), &estimated);
        assert_eq!(first.kept.as_ref().unwrap().newest(), None, "an estimated usage teaches nothing");
        first.observe(Tokens(5_000), &usage(7_000));
        while ratios.0.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let second = begin("a/b", known.clone());
        assert_eq!((before, second.estimate(Tokens(10_000))), (Tokens(10_000), Tokens(14_000)));
        // Another model and another way of counting are other ratios.
        assert_eq!(begin("a/c", known.clone()).estimate(Tokens(10_000)), before);
        let exact = ModelLimits { tokenizer: Tokenizer::O200k, ..known };
        assert_eq!(begin("a/b", exact).estimate(Tokens(10_000)), before);
    }

    fn usage(input: u64) -> Usage {
        Usage { input: Tokens(input), ..Usage::default() }
    }

    #[test]
    fn predictions_follow_the_provider() {
        let mut meter = InputMeter::new(ModelLimits::conservative_default(false));
        let request = ModelRequest {
            messages: vec![Message::user_text("word ".repeat(5_000))],
            ..ModelRequest::default()
        };
        let counted = meter.count(&request).total();
        assert!(meter.predict(counted) > counted);
        let usage = Usage { input: Tokens(1_000), cache_read: Tokens(6_000), ..Usage::default() };
        meter.observe(counted, &Usage { estimated: Tokens(1), ..usage });
        assert!(meter.predict(counted) > counted, "an estimated usage teaches nothing");
        meter.observe(counted, &usage);
        assert_eq!(meter.predict(counted), Tokens(7_000));
    }
}
