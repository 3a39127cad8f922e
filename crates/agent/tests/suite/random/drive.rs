//! One seed: what the driver lets happen, in which order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use journeyman_agent::{CutOffPolicy, PermissionAnswer};
use journeyman_model::{ModelError, Reply};
use journeyman_protocol::{Block, CallId, Message, MessageKind, Role, StopReason, Tokens, ToolUse, Usage};
use serde_json::{Value, json};

use crate::random::doubles::Does;
use crate::random::gates::{Verdict, Who};
use crate::random::world::{Setting, World};

/// Steps of a seed before everything is let go to its end.
const STEPS: usize = 160;
/// Steps that letting go may take.
const MOST_STEPS: usize = 4_000;

/// Runs one seed; gives what went wrong, and what led there. With it, what happened, to compare
/// runs by.
pub(crate) async fn run(seed: u64, dir: &std::path::Path) -> (Vec<String>, Result<(), String>) {
    let mut random = Rng::with_seed(seed);
    let setting = Setting {
        approval_timeout: random.bool(),
        loop_guard: random.bool(),
        deaf: random.u8(..4) == 0,
        concurrency: random.usize(1..4),
    };
    let mut driver = Driver { world: World::new(dir, setting), random, failing: false, calls: 0 };
    let done = driver.seed().await;
    if done.is_err() {
        driver.world.tell();
    }
    (std::mem::take(&mut driver.world.story), done)
}

struct Driver {
    world: World,
    random: Rng,
    /// The store refuses everything.
    failing: bool,
    calls: usize,
}

impl Driver {
    async fn seed(&mut self) -> Result<(), String> {
        self.world.waits.store(self.random.u8(..4) > 0, Ordering::SeqCst);
        self.world.send(MessageKind::User);
        self.note("send");
        for step in 0..STEPS {
            self.world.settle().await;
            self.world.check().await?;
            if step % 16 == 0 {
                self.world.check_load().await?;
            }
            if !self.step().await? {
                return Ok(());
            }
        }
        self.let_go().await?;
        self.world.check_end().await?;
        self.world.close().await
    }

    fn note(&mut self, what: impl Into<String>) {
        self.world.story.push(what.into());
    }

    /// Lets one thing happen. False when the session is over.
    async fn step(&mut self) -> Result<bool, String> {
        let waiting = self.world.gates.waiting();
        match self.random.u8(..100) {
            ..62 if !waiting.is_empty() => {
                let (number, who) = waiting[self.random.usize(..waiting.len())].clone();
                self.open(number, &who);
            }
            62..72 => {
                let kind = match self.random.u8(..5) {
                    0 => MessageKind::Reminder,
                    1 => MessageKind::System,
                    _ => MessageKind::User,
                };
                self.world.send(kind);
                self.note(format!("send {kind:?}"));
            }
            72..82 => self.decide()?,
            82..86 => {
                self.world.handle.interrupt();
                self.note("interrupt");
            }
            86..91 => {
                let times = [150, 1_100, 6_000, 31_000, 130_000];
                let time = times[self.random.usize(..times.len())];
                self.note(format!("{time} ms pass"));
                self.world.pass(Duration::from_millis(time)).await;
            }
            91..93 => {
                self.world.snapshot();
                self.note("snapshot");
            }
            93..96 => {
                self.failing = !self.failing;
                self.note(format!("the store fails: {}", self.failing));
            }
            96..98 => {
                self.world.watch();
                self.note("another subscriber");
            }
            98.. => {
                let cut_off =
                    if self.random.u8(..3) == 0 { CutOffPolicy::Close } else { CutOffPolicy::Continue };
                self.note(format!("restart, {cut_off:?}"));
                match self.world.restart(cut_off).await {
                    Err(nothing) if nothing == "nothing" => return Ok(false),
                    other => other?,
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn open(&mut self, number: u64, who: &Who) {
        let verdict = match who {
            Who::Append if self.failing => Verdict::Fail,
            Who::Append => match self.random.u8(..20) {
                0 => Verdict::Fail,
                1 => Verdict::Doubt,
                _ => Verdict::Go,
            },
            Who::Appended => match self.random.u8(..20) {
                0 => Verdict::Doubt,
                _ => Verdict::Go,
            },
            Who::Tool(_) => match self.random.u8(..10) {
                0 => Verdict::Panic,
                1 | 2 => Verdict::Fail,
                _ => Verdict::Go,
            },
            Who::Model(_) => self.answer(),
        };
        let who = match who {
            Who::Model(told) => format!("Model, told {} messages", told.len()),
            other => format!("{other:?}"),
        };
        self.note(format!("open {who}: {verdict:?}"));
        self.world.gates.open(number, verdict);
    }

    fn answer(&mut self) -> Verdict {
        match self.random.u8(..12) {
            0 => Verdict::ModelFails(ModelError::Script("it fails".to_owned())),
            1 | 2 => Verdict::Say("some words ".to_owned()),
            3 => Verdict::Go,
            4..8 => self.reply(0),
            _ => {
                let calls = self.random.usize(1..5);
                self.reply(calls)
            }
        }
    }

    fn reply(&mut self, calls: usize) -> Verdict {
        let mut content = Vec::new();
        if calls == 0 || self.random.bool() {
            content.push(Block::text("words"));
        }
        for _ in 0..calls {
            let call = self.call();
            content.push(Block::ToolUse(call));
        }
        let stop = match (calls, self.random.u8(..10)) {
            (0, 0) => StopReason::MaxTokens,
            (0, 1) => StopReason::Paused,
            (0, _) => StopReason::EndTurn,
            _ => StopReason::ToolUse,
        };
        let message = Message { role: Role::Assistant, content };
        let usage = Usage { input: Tokens(10), output: Tokens(1), ..Usage::default() };
        Verdict::Reply(Box::new(Reply { message, stop, usage, model: "told".to_owned() }))
    }

    fn call(&mut self) -> ToolUse {
        // Some servers give the same names again.
        self.calls = if self.random.u8(..8) == 0 { self.calls } else { self.calls + 1 };
        let path = ["a.txt", "b", "c"][self.random.usize(..3)];
        let (name, input): (&str, Value) = match self.random.u8(..12) {
            0 => ("nothing", json!({})),
            1 => ("touch", json!({ "wrong": 1 })),
            2 => {
                let status = ["pending", "in_progress", "completed"][self.random.usize(..3)];
                let list = json!([{ "id": "1", "title": "a thing", "status": status }]);
                ("todo_write", json!({ "todos": if self.random.bool() { list } else { json!([]) } }))
            }
            _ => (Does::ALL[self.random.usize(..Does::ALL.len())].name(), json!({ "path": path })),
        };
        let malformed = (self.random.u8(..20) == 0).then(|| "it ends early".to_owned());
        let id = CallId::new(format!("call-{}", self.calls));
        ToolUse { id, name: name.to_owned(), input, malformed, signature: None }
    }

    fn decide(&mut self) -> Result<(), String> {
        let asked = self.world.handle.status().asked;
        let call = match self.random.u8(..6) {
            0 => CallId::new("call-1"),
            _ if asked.is_empty() => return Ok(()),
            _ => asked[self.random.usize(..asked.len())].clone(),
        };
        let note = self.random.bool().then(|| "a note".to_owned());
        let answer = match self.random.u8(..4) {
            0 => PermissionAnswer::Deny { note },
            1 => PermissionAnswer::AllowRule { note },
            _ => PermissionAnswer::Allow { note },
        };
        self.note(format!("decide {call}: {answer:?}"));
        let taken = self.world.handle.decide(&call, answer);
        if taken != asked.contains(&call) {
            return Err(format!("an answer to {call} was taken: {taken}, asked were {asked:?}"));
        }
        Ok(())
    }

    /// Nothing fails any more, and everything goes on until nothing is left to do.
    async fn let_go(&mut self) -> Result<(), String> {
        self.failing = false;
        for step in 0..MOST_STEPS {
            self.world.settle().await;
            self.world.check().await?;
            if self.world.is_done() {
                return Ok(());
            }
            for call in self.world.handle.status().asked {
                self.note(format!("at last, decide {call}"));
                self.world.handle.decide(&call, PermissionAnswer::allow());
            }
            let waiting = self.world.gates.waiting();
            if waiting.is_empty() {
                // The store is tried again, or a call is put away.
                self.world.pass(Duration::from_secs(61)).await;
            }
            for (number, who) in waiting {
                let verdict = match who {
                    // Nobody may have to wait for the limit of turns.
                    Who::Model(_) => self.reply_in_the_end(step),
                    _ => Verdict::Go,
                };
                self.note(format!("at last, open {number}"));
                self.world.gates.open(number, verdict);
                self.world.settle().await;
            }
        }
        let status = self.world.handle.status();
        Err(format!("it never comes to an end: {status:?} {:?}", self.world.gates.waiting()))
    }

    fn reply_in_the_end(&mut self, step: usize) -> Verdict {
        let message = Message { role: Role::Assistant, content: vec![Block::text(format!("done {step}"))] };
        let usage = Usage::default();
        Verdict::Reply(Box::new(Reply {
            message,
            stop: StopReason::EndTurn,
            usage,
            model: "told".to_owned(),
        }))
    }
}
