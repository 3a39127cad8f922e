//! A task of many turns against a real model server.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use journeyman_context::counting::{Calibration, Counter, RequestCounter, RequestParts};
use journeyman_host::ConnectedModel;
use journeyman_host::agent::model::{
    Delta, DeltaStream, Endpoint, HttpModel, Model, ModelError, ModelRequest, Reply, ServerLimits, Wire,
    connect,
};
use journeyman_host::agent::protocol::{Block, CallId, ModelLimits, StopReason, Tokens, ToolUse};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Compactions, FILES, TaskSession};

/// Maximum tokens of a reply: the server reads each request for real, and what it says is nonsense.
const REPLY_TOKENS: Tokens = Tokens(16);
/// The lowest share of the reported tokens that all predictions of a session may have.
const MIN_PREDICTED: f64 = 0.97;

/// A server whose replies get the calls of an agent that reads one file after the other: a model of
/// 135 million parameters makes none by itself.
struct Driven {
    server: HttpModel,
    turns: u32,
    seen: Mutex<Seen>,
}

struct Seen {
    turn: u32,
    refused: u32,
    window: Option<Tokens>,
    counter: RequestCounter,
    /// Predicted on the safe side, the likeliest, and reported tokens of all requests.
    predicted: u64,
    estimated: u64,
    reported: u64,
    largest: Tokens,
    compactions: Compactions,
}

impl Driven {
    async fn answer(&self, request: &ModelRequest, cancel: CancellationToken) -> Result<Delta, ModelError> {
        let short = ModelRequest { max_output: Some(REPLY_TOKENS), ..request.clone() };
        let mut deltas = self.server.stream(&short, cancel);
        while let Some(delta) = deltas.next().await {
            match delta {
                Ok(Delta::Done(reply)) => return Ok(Delta::Done(Box::new(self.drive(request, *reply)))),
                Ok(_) => {}
                Err(error) => {
                    let is_long = matches!(error.root_cause(), ModelError::ContextTooLong { .. });
                    self.seen.lock().unwrap().refused += u32::from(is_long);
                    return Err(error);
                }
            }
        }
        Err(ModelError::Protocol("the stream has no reply".to_owned()))
    }

    /// Notes what the server counted, and gives the reply its call.
    fn drive(&self, request: &ModelRequest, reply: Reply) -> Reply {
        let mut seen = self.seen.lock().unwrap();
        let system: Vec<&str> = request.system.iter().map(|part| part.text.as_str()).collect();
        let parts = RequestParts { system: &system, tools: &request.tools, messages: &request.messages };
        let counted = seen.counter.counter().count_request(parts).total();
        seen.predicted += seen.counter.predict(counted).0;
        seen.estimated += seen.counter.estimate(counted).0;
        seen.counter.observe(counted, &reply.usage);
        let reported = reply.usage.total_input();
        seen.reported += reported.0;
        seen.largest = seen.largest.max(reported);
        seen.compactions.observe(request);
        let number = seen.turn as usize % FILES;
        seen.turn += 1;
        let mut reply = reply;
        if seen.turn >= self.turns {
            return Reply { stop: StopReason::EndTurn, ..reply };
        }
        reply.message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
        reply.message.content.push(Block::ToolUse(ToolUse {
            id: CallId::new(format!("call{}", seen.turn)),
            name: "read_file".to_owned(),
            input: json!({ "path": format!("src/f{number}.rs"), "limit": 30 }),
            malformed: None,
            signature: None,
        }));
        Reply { stop: StopReason::ToolUse, ..reply }
    }
}

impl Model for Driven {
    fn name(&self) -> String {
        self.server.name()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        stream::once(self.answer(request, cancel)).boxed()
    }

    fn query_limits(&self) -> BoxFuture<'_, Option<ServerLimits>> {
        Box::pin(async {
            let told = self.server.query_limits().await;
            self.seen.lock().unwrap().window = told.map(|told| told.window);
            told
        })
    }
}

/// Runs one task of so many turns against the server at `url`, which is asked for its window.
pub(super) fn measure(url: &str, turns: u32) {
    let endpoint = Endpoint::new("custom", Wire::Chat, format!("{url}/v1"));
    let limits = ModelLimits::conservative_default(true);
    let counter = RequestCounter::new(Arc::new(Counter::new(&limits)), Calibration::new(false));
    let seen = Seen {
        turn: 0,
        refused: 0,
        window: None,
        counter,
        predicted: 0,
        estimated: 0,
        reported: 0,
        largest: Tokens(0),
        compactions: Compactions::default(),
    };
    let server = connect(endpoint, "smollm2").expect("an address");
    let model = Arc::new(Driven { server, turns, seen: Mutex::new(seen) });
    let name = model.name();
    let client: Arc<dyn Model> = Arc::clone(&model) as Arc<dyn Model>;
    let connected = ConnectedModel { limits, ..ConnectedModel::from_model(client, name) };
    TaskSession::new(connected, &[], true)
        .run(&["Read through the project. Never touch legacy/decode.rs.".to_owned()]);
    let seen = model.seen.lock().unwrap();
    let window = seen.window.expect("the server tells its window");
    println!(
        "{} turns in a window of {window}, {} compactions, {} requests refused as too long",
        seen.turn, seen.compactions.count, seen.refused
    );
    println!("the largest request has {} tokens", seen.largest);
    let share = |tokens: u64| tokens as f64 / seen.reported as f64;
    println!(
        "tokens of all requests: {} reported; predicted on the safe side {:.3} times that, most likely {:.3}",
        seen.reported,
        share(seen.predicted),
        share(seen.estimated)
    );
    assert!(seen.turn >= turns, "the task ended after {} of {turns} turns", seen.turn);
    assert!(seen.largest <= window && share(seen.predicted) >= MIN_PREDICTED, "a bound is missed");
}
