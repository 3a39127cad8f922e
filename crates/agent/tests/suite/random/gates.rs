//! Where everything that a session waits for waits for the driver: one gate each, opened one at a
//! time.

use std::sync::{Arc, Mutex};

use journeyman_model::{ModelError, Reply};
use journeyman_protocol::{CallId, Message};
use tokio::sync::oneshot;

/// Who waits.
#[derive(Debug, Clone)]
pub(crate) enum Who {
    /// The model, asked with these messages.
    Model(Vec<Message>),
    /// A tool in the midst of this call.
    Tool(CallId),
    /// The store, before it appends.
    Append,
    /// The store, after it appended.
    Appended,
}

/// What the one who waits is to do.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// What it was asked for.
    Go,
    /// Show some text, and wait again.
    Say(String),
    Reply(Box<Reply>),
    ModelFails(ModelError),
    /// Fail, and say so.
    Fail,
    /// Fail without having done it, and don't know; or, behind it, having done it.
    Doubt,
    Panic,
}

struct Gate {
    number: u64,
    who: Who,
    open: oneshot::Sender<Verdict>,
}

/// All gates at which somebody waits, in the order in which they came.
#[derive(Clone, Default)]
pub(crate) struct Gates(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    next: u64,
    waiting: Vec<Gate>,
}

impl Gates {
    /// Waits until the driver opens. `None` when it never will: the process is dead.
    pub(crate) async fn wait(&self, who: Who) -> Option<Verdict> {
        let (open, opened) = oneshot::channel();
        {
            let mut inner = self.0.lock().unwrap();
            inner.next += 1;
            let number = inner.next;
            inner.waiting.push(Gate { number, who, open });
        }
        opened.await.ok()
    }

    /// Who waits, by number.
    pub(crate) fn waiting(&self) -> Vec<(u64, Who)> {
        let mut inner = self.0.lock().unwrap();
        // Whoever was cancelled waits no longer.
        inner.waiting.retain(|gate| !gate.open.is_closed());
        inner.waiting.iter().map(|gate| (gate.number, gate.who.clone())).collect()
    }

    /// Opens one gate.
    pub(crate) fn open(&self, number: u64, verdict: Verdict) {
        let mut inner = self.0.lock().unwrap();
        let place = inner.waiting.iter().position(|gate| gate.number == number).expect("a gate");
        // Cancelled just now.
        inner.waiting.remove(place).open.send(verdict).ok();
    }

    /// The process is dead: nobody waits any more.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().waiting.clear();
    }
}
