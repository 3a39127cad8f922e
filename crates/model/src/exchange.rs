//! One request and its reply, over as many attempts as it takes.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde::de::IgnoredAny;
use tokio_util::sync::CancellationToken;

use crate::client::HttpModel;
use crate::codec::Decoder;
use crate::sse::{SseEvent, SseParser};
use crate::transport::{Body, HttpRequest, HttpResponse, asked_wait, jittered_wait, shown_url};
use crate::{Delta, ModelError, ModelRequest};

/// How long a connection may stay open after the reply is whole. Nearly always its end is in the packet
/// that ended the reply; waiting for it lets the connection be used again, and some servers send the
/// usage after what looks like the end.
const GRACE: Duration = Duration::from_millis(1_000);

/// The longest answer. The longest replies of any model, thinking and all, have about one MiB; the
/// protocols wrap each token of it in a hundred bytes or more.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// The state of one stream of deltas.
pub(crate) struct Exchange<'a> {
    model: &'a HttpModel,
    request: &'a ModelRequest,
    cancel: CancellationToken,
    random: fastrand::Rng,
    /// The attempt under way, from 1.
    attempt: u32,
    /// The request as it is sent, the same in each attempt.
    encoded: Option<HttpRequest>,
    /// Deltas that are ready to be taken.
    ready: VecDeque<Delta>,
    state: State,
}

enum State {
    Send,
    Read(Answer),
    Wait(Duration),
    Ended,
}

/// An answer as it comes in.
struct Answer {
    url: String,
    body: Body,
    received: usize,
    parser: SseParser,
    events: VecDeque<SseEvent>,
    decoder: Box<dyn Decoder>,
}

/// An error, and how long the provider asks to wait before the next attempt.
struct Failure {
    error: ModelError,
    asked: Option<Duration>,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self { error, asked: None }
    }
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        model: &'a HttpModel,
        request: &'a ModelRequest,
        cancel: CancellationToken,
        serial: u64,
    ) -> Self {
        Self {
            model,
            request,
            cancel,
            random: fastrand::Rng::with_seed(model.endpoint.retry.seed.wrapping_add(serial)),
            attempt: 1,
            encoded: None,
            ready: VecDeque::new(),
            state: State::Send,
        }
    }

    /// The next item of the stream.
    pub(crate) async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            let ended = matches!(self.state, State::Ended);
            if !ended && self.cancel.is_cancelled() {
                return Some(Err(self.end(ModelError::Cancelled)));
            }
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            if ended {
                return None;
            }
            let cancel = self.cancel.clone();
            let stepped = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Failure::from(ModelError::Cancelled)),
                stepped = self.step() => stepped,
            };
            if let Err(failure) = stepped
                && let Some(error) = self.failed(failure).await
            {
                return Some(Err(self.end(error)));
            }
        }
    }

    fn end(&mut self, error: ModelError) -> ModelError {
        self.ready.clear();
        // Drops the answer, and so its connection.
        self.state = State::Ended;
        error
    }

    async fn step(&mut self) -> Result<(), Failure> {
        match &mut self.state {
            State::Ended => Ok(()),
            State::Wait(wait) => {
                tokio::time::sleep(*wait).await;
                self.state = State::Send;
                Ok(())
            }
            State::Send => self.send().await,
            State::Read(answer) => {
                let whole = answer.advance(&mut self.ready).await?;
                if whole {
                    self.state = State::Ended;
                }
                Ok(())
            }
        }
    }

    async fn send(&mut self) -> Result<(), Failure> {
        let request = match &self.encoded {
            Some(request) => request.clone(),
            None => self.encoded.insert(self.model.encode(self.request)?).clone(),
        };
        let url = shown_url(&request.url);
        let response = self.model.transport.send(request).await?;
        if !(200..300).contains(&response.status) {
            let clock = self.model.endpoint.retry.clock.as_ref();
            let asked = asked_wait(|name| response.header(name), || clock.map(|clock| clock.now()));
            let error = self.model.status_error(response.status, response.body).await;
            return Err(Failure { error, asked });
        }
        if is_no_stream(&response) {
            let said = self.model.status_error(response.status, response.body).await;
            return Err(ModelError::Protocol(format!(
                "{url} answered with a document instead of an event stream (is the base URL right?): {said}"
            ))
            .into());
        }
        self.state = State::Read(Answer {
            url,
            body: response.body,
            received: 0,
            parser: SseParser::new(),
            events: VecDeque::new(),
            decoder: self.model.codec.decoder(),
        });
        Ok(())
    }

    /// Prepares the next attempt, or gives the error that ends the stream.
    async fn failed(&mut self, failure: Failure) -> Option<ModelError> {
        let Failure { error, asked } = failure;
        if error == ModelError::Cancelled {
            return Some(error);
        }
        let cancel = self.cancel.clone();
        let error = tokio::select! {
            biased;
            () = cancel.cancelled() => return Some(ModelError::Cancelled),
            error = self.model.explain(error, &self.request.model) => error,
        };
        let policy = &self.model.endpoint.retry;
        if !error.is_retryable() || policy.attempts <= 1 {
            return Some(error);
        }
        if self.attempt >= policy.attempts {
            return Some(ModelError::GaveUp { attempts: self.attempt, last: Box::new(error) });
        }
        if let Some(asked) = asked.filter(|asked| *asked > policy.longest_asked) {
            let longest = policy.longest_asked;
            return Some(ModelError::RetryAfterTooLong { asked, longest, message: error.to_string() });
        }
        let chosen = asked.unwrap_or_else(|| jittered_wait(policy, self.attempt, &mut self.random));
        let wait = if self.model.transport.is_live() { chosen } else { Duration::ZERO };
        self.attempt += 1;
        self.ready.clear();
        self.ready.push_back(Delta::Restart {
            attempt: self.attempt,
            of: policy.attempts,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason: error.to_string(),
        });
        self.state = State::Wait(wait);
        None
    }
}

impl Answer {
    /// Takes the next event, or the next bytes where no event is waiting. True once the reply is whole
    /// and among the `ready` deltas.
    async fn advance(&mut self, ready: &mut VecDeque<Delta>) -> Result<bool, ModelError> {
        if let Some(event) = self.events.pop_front() {
            ready.extend(self.decoder.event(&event)?);
            return Ok(false);
        }
        match self.more().await? {
            Some(chunk) => {
                self.received = self.received.saturating_add(chunk.len());
                if self.received > MAX_ANSWER {
                    return Err(ModelError::Protocol(format!("{} answers without an end", self.url)));
                }
                let parsed = self.parser.push(&chunk, &mut self.events);
                parsed.map_err(|error| ModelError::Protocol(error.to_string()))?;
                Ok(false)
            }
            None => {
                self.last_event(ready)?;
                if !self.decoder.is_complete() {
                    return Err(self.ended_early("the connection was closed before the reply was whole"));
                }
                let reply = self.decoder.finish()?;
                ready.push_back(Delta::Done(Box::new(reply)));
                Ok(true)
            }
        }
    }

    /// The next bytes. Once the reply is whole, silence and a broken connection are as good as its end.
    async fn more(&mut self) -> Result<Option<bytes::Bytes>, ModelError> {
        if !self.decoder.is_complete() {
            return self.body.next().await.transpose();
        }
        let rest = tokio::time::timeout(GRACE, self.body.next()).await;
        Ok(rest.ok().flatten().and_then(Result::ok))
    }

    /// An event without its closing blank line: whole if it can be read, else the sign of a broken stream.
    fn last_event(&mut self, ready: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let parsed = self.parser.finish(&mut self.events);
        parsed.map_err(|error| ModelError::Protocol(error.to_string()))?;
        while let Some(event) = self.events.pop_front() {
            let decoded = self.decoder.event(&event);
            if decoded.is_err() && serde_json::from_str::<IgnoredAny>(&event.data).is_err() {
                return Err(self.ended_early("its last event is cut off"));
            }
            ready.extend(decoded?);
        }
        Ok(())
    }

    fn ended_early(&self, reason: &str) -> ModelError {
        ModelError::EndedEarly { url: self.url.clone(), reason: reason.to_owned() }
    }
}

/// Whether the answer is a page or a plain JSON document in place of a stream.
fn is_no_stream(response: &HttpResponse) -> bool {
    let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
    kind.starts_with("text/html") || kind.starts_with("application/json")
}
