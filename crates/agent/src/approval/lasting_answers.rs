//! The lasting answers of a person to a session and to all agents below it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_policy::{RuleLayer, Rules};
use journeyman_protocol::SessionId;
use tokio::sync::watch;

/// Rules that a person allowed "always", shared by a session and its agents. An answer given in one
/// session applies in every session that its rule matches. `Default` is for a session that a person
/// starts; its agents share its value.
#[derive(Debug, Clone, Default)]
pub struct LastingAnswers(Arc<SharedAnswers>);

#[derive(Debug, Default)]
struct SharedAnswers {
    answers: Mutex<Vec<LastingAnswer>>,
    count: watch::Sender<usize>,
}

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct LastingAnswer {
    pub(crate) rules: Rules,
    /// The session whose question it answered.
    pub(crate) session: SessionId,
    /// The author.
    pub(crate) by: String,
}

impl LastingAnswers {
    /// Adds an answer, unless there is one with the same rules.
    pub(crate) fn add(&self, answer: LastingAnswer) {
        let mut answers = self.lock();
        let rules = answer.rules.to_toml();
        if answers.iter().any(|known| known.rules.to_toml() == rules) {
            return;
        }
        answers.push(answer);
        let count = answers.len();
        drop(answers);
        self.0.count.send_replace(count);
    }

    /// Adds the answers of a session's log. Rules that this version can't parse are dropped, so
    /// those calls are asked about again.
    pub(crate) fn restore(&self, session: &SessionId, logged: &[String]) {
        for text in logged {
            if let Ok(rules) = Rules::parse_with_tools(text, RuleLayer::Session, "", &|_| true) {
                let (rules, by) = (rules.without_file(), String::new());
                self.add(LastingAnswer { rules, session: session.clone(), by });
            }
        }
    }

    /// Returns the answers after the first `known` ones.
    pub(crate) fn answers_after(&self, known: usize) -> Vec<LastingAnswer> {
        self.lock().get(known..).unwrap_or_default().to_vec()
    }

    /// Returns a receiver that is notified of each new answer.
    pub(crate) fn watch(&self) -> watch::Receiver<usize> {
        self.0.count.subscribe()
    }

    /// Locks the answers despite poisoning: each answer is added completely or not at all.
    fn lock(&self) -> MutexGuard<'_, Vec<LastingAnswer>> {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
