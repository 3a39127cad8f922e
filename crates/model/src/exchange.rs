//! One request and its reply, over several attempts if needed.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use journeyman_protocol::{StopReason, Tokens, Usage};
use serde::de::IgnoredAny;
use tokio_util::sync::CancellationToken;

use crate::client::HttpModel;
use crate::codec::Decoder;
use crate::limits;
use crate::sse::{SseEvent, SseParser};
use crate::transport::{
    AttemptError, Body, HttpRequest, HttpResponse, choose_wait, display_url, requested_wait,
};
use crate::{Delta, DeltaStream, Model, ModelError, ModelRequest, Reply, ServerLimits};

/// The wait for the end of the connection after the reply is complete. The end is nearly
/// always in the packet that ends the reply. Waiting for it lets the connection be reused, and some
/// servers send the usage after the apparent end.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(1_000);

/// Maximum size of a response. The longest replies of any model, including thinking, have about one
/// MiB; the protocols wrap each token in a hundred bytes or more.
const MAX_RESPONSE_BYTES: usize = 256 * 1024 * 1024;

/// The state of one stream of deltas.
struct Exchange<'a> {
    model: &'a HttpModel,
    request: &'a ModelRequest,
    cancel: CancellationToken,
    random: fastrand::Rng,
    /// The number of the current attempt, from 1.
    attempt: u32,
    /// The encoded request, the same in each attempt.
    encoded: Option<HttpRequest>,
    /// Deltas that are ready to be returned.
    ready: VecDeque<Delta>,
    state: ExchangeState,
    /// The error that ends the stream, once the usage before it has been returned.
    failure: Option<ModelError>,
}

enum ExchangeState {
    Send,
    Read(StreamingResponse),
    Wait(Duration),
    Ended,
}

/// A response whose body is being read.
struct StreamingResponse {
    url: String,
    body: Body,
    received: usize,
    parser: SseParser,
    events: VecDeque<SseEvent>,
    decoder: Box<dyn Decoder>,
}

impl<'a> Exchange<'a> {
    fn new(model: &'a HttpModel, request: &'a ModelRequest, cancel: CancellationToken, serial: u64) -> Self {
        Self {
            model,
            request,
            cancel,
            random: fastrand::Rng::with_seed(model.endpoint.retry.seed.wrapping_add(serial)),
            attempt: 1,
            encoded: None,
            ready: VecDeque::new(),
            state: ExchangeState::Send,
            failure: None,
        }
    }

    /// Returns the next item of the stream.
    async fn next_item(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            let ended = matches!(self.state, ExchangeState::Ended);
            if !ended && self.cancel.is_cancelled() {
                return Some(self.end_with_error(ModelError::Cancelled));
            }
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            if ended {
                return self.failure.take().map(Err);
            }
            let cancel = self.cancel.clone();
            let result = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(AttemptError::from(ModelError::Cancelled)),
                result = self.step() => result,
            };
            if let Err(failure) = result
                && let Some(error) = self.retry_or_fail(failure).await
            {
                return Some(self.end_with_error(error));
            }
        }
    }

    /// Ends the stream. Returns the reported usage, if there is any, as the last item before the
    /// error; otherwise the error.
    fn end_with_error(&mut self, error: ModelError) -> Result<Delta, ModelError> {
        self.ready.clear();
        let Some(usage) = self.end_attempt(ExchangeState::Ended) else { return Err(error) };
        self.failure = Some(error);
        Ok(Delta::Usage(usage))
    }

    /// Ends the attempt, which closes its connection, and returns the usage that the provider has
    /// reported of it.
    fn end_attempt(&mut self, next: ExchangeState) -> Option<Usage> {
        let usage = match std::mem::replace(&mut self.state, next) {
            ExchangeState::Read(response) => response.decoder.usage(),
            _ => Usage::default(),
        };
        (usage != Usage::default()).then_some(usage)
    }

    async fn step(&mut self) -> Result<(), AttemptError> {
        match &mut self.state {
            ExchangeState::Ended => Ok(()),
            ExchangeState::Wait(wait) => {
                tokio::time::sleep(*wait).await;
                self.state = ExchangeState::Send;
                Ok(())
            }
            ExchangeState::Send => self.send().await,
            ExchangeState::Read(answer) => {
                let whole = answer.advance(&mut self.ready).await?;
                if whole {
                    if let Some(Delta::Done(reply)) = self.ready.back_mut() {
                        correct_stop_reason(reply, self.request.max_output);
                    }
                    self.state = ExchangeState::Ended;
                }
                Ok(())
            }
        }
    }

    async fn send(&mut self) -> Result<(), AttemptError> {
        let request = match &self.encoded {
            Some(request) => request.clone(),
            None => self.encoded.insert(self.model.encode(self.request)?).clone(),
        };
        let url = display_url(&request.url);
        let response = self.model.transport.send(request).await?;
        if !(200..300).contains(&response.status) {
            let clock = self.model.endpoint.retry.clock.as_ref();
            let retry_after = requested_wait(|name| response.header(name), || clock.map(|clock| clock.now()));
            let mut error = self.model.status_error(response.status, response.body).await;
            if let ModelError::Http { status: 404 | 405, message } = &mut error {
                message.push_str(&format!("; is the base URL right? The request went to {url}"));
            }
            return Err(AttemptError { error, retry_after });
        }
        if is_html_or_json(&response) {
            let error = self.model.status_error(response.status, response.body).await;
            if !matches!(error, ModelError::Http { status: ..400, .. }) {
                return Err(error.into());
            }
            return Err(ModelError::Protocol(format!(
                "{url} answered with a document instead of an event stream (is the base URL right?): {error}"
            ))
            .into());
        }
        self.state = ExchangeState::Read(StreamingResponse {
            url,
            body: response.body,
            received: 0,
            parser: SseParser::new(),
            events: VecDeque::new(),
            decoder: self.model.codec.decoder(),
        });
        Ok(())
    }

    /// Prepares the next attempt, or returns the error that ends the stream.
    async fn retry_or_fail(&mut self, failure: AttemptError) -> Option<ModelError> {
        let AttemptError { error, retry_after } = failure;
        if error == ModelError::Cancelled {
            return Some(error);
        }
        let cancel = self.cancel.clone();
        let error = tokio::select! {
            biased;
            () = cancel.cancelled() => return Some(ModelError::Cancelled),
            error = self.model.explain_error(error, &self.request.model) => error,
        };
        let policy = &self.model.endpoint.retry;
        let failure = AttemptError { error, retry_after };
        let chosen = match choose_wait(policy, self.attempt, &failure, &mut self.random) {
            Ok(chosen) => chosen,
            Err(error) => return Some(error),
        };
        let wait = if self.model.transport.is_live() { chosen } else { Duration::ZERO };
        self.attempt += 1;
        self.ready.clear();
        let usage = self.end_attempt(ExchangeState::Wait(wait));
        self.ready.extend(usage.map(Delta::Usage));
        self.ready.push_back(Delta::Restart {
            attempt: self.attempt,
            of: policy.max_attempts,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason: failure.error.to_string(),
        });
        None
    }
}

impl StreamingResponse {
    /// Handles the next event, or reads the next bytes if no event is waiting. Returns true once
    /// the reply is complete and among the `ready` deltas.
    async fn advance(&mut self, ready: &mut VecDeque<Delta>) -> Result<bool, ModelError> {
        if let Some(event) = self.events.pop_front() {
            ready.extend(self.decoder.handle_event(&event)?);
            return Ok(false);
        }
        match self.next_chunk().await? {
            Some(chunk) => {
                self.received = self.received.saturating_add(chunk.len());
                if self.received > MAX_RESPONSE_BYTES {
                    return Err(ModelError::Protocol(format!("{} answers without an end", self.url)));
                }
                let parsed = self.parser.push(&chunk, &mut self.events);
                parsed.map_err(|error| ModelError::Protocol(error.to_string()))?;
                Ok(false)
            }
            None => {
                self.finish_last_event(ready)?;
                if !self.decoder.is_complete() {
                    return Err(
                        self.ended_early_error("the connection was closed before the reply was whole")
                    );
                }
                ready.extend(self.decoder.end_blocks()?);
                let reply = self.decoder.finish()?;
                ready.push_back(Delta::Done(Box::new(reply)));
                Ok(true)
            }
        }
    }

    /// Returns the next bytes. Once the reply is complete, silence and a broken connection count as
    /// the end of the body.
    async fn next_chunk(&mut self) -> Result<Option<bytes::Bytes>, ModelError> {
        if !self.decoder.is_complete() || self.decoder.may_go_on() {
            return self.body.next().await.transpose();
        }
        let rest = tokio::time::timeout(DRAIN_TIMEOUT, self.body.next()).await;
        Ok(rest.ok().flatten().and_then(Result::ok))
    }

    /// Handles an event without its closing blank line. If it does not parse, the stream was cut
    /// off, which does no harm to a reply that was complete before.
    fn finish_last_event(&mut self, ready: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let parsed = self.parser.finish(&mut self.events);
        parsed.map_err(|error| ModelError::Protocol(error.to_string()))?;
        while let Some(event) = self.events.pop_front() {
            let whole = self.decoder.is_complete();
            let decoded = self.decoder.handle_event(&event);
            if decoded.is_err() && serde_json::from_str::<IgnoredAny>(&event.data).is_err() {
                if whole {
                    return Ok(());
                }
                return Err(self.ended_early_error("its last event is cut off"));
            }
            ready.extend(decoded?);
        }
        Ok(())
    }

    fn ended_early_error(&self, reason: &str) -> ModelError {
        ModelError::EndedEarly { url: self.url.clone(), reason: reason.to_owned() }
    }
}

impl Model for HttpModel {
    fn name(&self) -> String {
        format!("{}/{}", self.endpoint.provider, self.model)
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        let serial = self.exchanges.fetch_add(1, Ordering::Relaxed);
        let exchange = Box::new(Exchange::new(self, request, cancel, serial));
        stream::unfold(exchange, |mut exchange| async move {
            exchange.next_item().await.map(|item| (item, exchange))
        })
        .boxed()
    }

    fn query_limits(&self) -> BoxFuture<'_, Option<ServerLimits>> {
        Box::pin(limits::query_server_limits(self))
    }
}

/// Corrects the stop reason of a reply that fills the output limit: some servers report a plain
/// end.
fn correct_stop_reason(reply: &mut Reply, max_output: Option<Tokens>) {
    if reply.stop == StopReason::EndTurn && max_output.is_some_and(|limit| reply.usage.output >= limit) {
        reply.stop = StopReason::MaxTokens;
    }
}

/// Returns true if the response is an HTML page or a plain JSON document instead of an event
/// stream.
fn is_html_or_json(response: &HttpResponse) -> bool {
    let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
    kind.starts_with("text/html") || kind.starts_with("application/json")
}
