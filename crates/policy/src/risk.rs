//! The risk of a task: low if it makes something new that stands alone, high otherwise.
//!
//! A program that works on a high-risk task belongs in a sandbox with a copy of the project. The
//! classifier is biased towards high: paths beat words, words of high risk beat words of low risk,
//! and a word that isn't known is one of high risk. It reads Chinese and English, by the word lists
//! in `risk/`.

use std::fmt;

use serde::Serialize;

mod conditions;
mod normalize;
mod paths;
mod words;

use conditions::UnmetCondition;
pub use paths::ProjectPaths;
use words::{MatchedWord, TaskWords, Vocabulary, WordClass};

/// Maximum size of a task's text, in bytes. A longer text is of high risk, unread: tasks that stand
/// alone are short, and every word of them is looked up.
pub const MAX_RISK_TEXT_BYTES: usize = 16 * 1024;
/// Maximum size of a path, in bytes, as Linux has it.
const MAX_PATH_BYTES: usize = 4096;

/// The risk of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// The task makes something new that stands alone: a fresh directory is enough.
    Low,
    /// The task may touch something that exists, or its effect is unknown.
    High,
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::High => "high",
        })
    }
}

/// The rule that decided about a task, in the order in which rules are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskRule {
    /// The text or the path is too long to be read.
    TooLong,
    /// The target, or a path in the text, is one that matters.
    Path,
    /// The text has a word of high risk.
    HighWord,
    /// The text has a word that no list has.
    UnknownWord,
    /// The text refers to something that it doesn't begin.
    Reference,
    /// The text has a word that is harmless only in a game or an exercise, or not with its others.
    Condition,
    /// The text has a word of low risk, and all of its words are known.
    LowWord,
    /// The text is known, and does not ask for anything that stands alone.
    Unknown,
}

/// The risk of a task, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RiskAssessment {
    /// The risk.
    pub risk: Risk,
    /// The rule that decided.
    pub rule: RiskRule,
    /// The word of the lists, or the path, that decided; `None` if nothing did.
    pub evidence: Option<String>,
    /// The reason, as one sentence without a full stop.
    pub reason: String,
    /// The versions of the word lists, such as `en 2, zh 2`.
    pub word_lists: String,
}

/// Finds the risk of tasks by word lists, which it reads once.
///
/// ```
/// use journeyman_policy::{ProjectPaths, Risk, RiskClassifier, RiskRule};
///
/// let classifier = RiskClassifier::new();
/// let project = ProjectPaths { root: "/home/me/shop", is_tracked: &|path| path == "src/main.rs" };
/// let assess = |task, target| classifier.assess(task, target, &project);
/// assert_eq!(assess("Write a snake game", None).risk, Risk::Low);
/// assert_eq!(assess("写一个贪食蛇", Some("/tmp/snake")).risk, Risk::Low);
/// assert_eq!(assess("Write a snake game", Some("/home/me/shop/game")).rule, RiskRule::Path);
/// assert_eq!(assess("Write a snake game and d e l e t e it", None).rule, RiskRule::HighWord);
/// assert_eq!(assess("Carry on", None).risk, Risk::High);
/// ```
#[derive(Debug)]
pub struct RiskClassifier {
    vocabulary: Vocabulary,
}

impl Default for RiskClassifier {
    fn default() -> Self {
        Self::new()
    }
}

impl RiskClassifier {
    /// Creates a classifier with the built-in word lists.
    #[must_use]
    pub fn new() -> Self {
        Self { vocabulary: Vocabulary::built_in() }
    }

    /// Returns the versions of the word lists, such as `en 2, zh 2`.
    #[must_use]
    pub fn word_list_versions(&self) -> &str {
        &self.vocabulary.versions
    }

    /// Finds the risk of the task `text`, whose result goes to `target`. The target is absolute and
    /// free of links and `..`; a relative one counts as in the project.
    #[must_use]
    pub fn assess(&self, text: &str, target: Option<&str>, project: &ProjectPaths<'_>) -> RiskAssessment {
        if text.len() > MAX_RISK_TEXT_BYTES || target.is_some_and(|path| path.len() > MAX_PATH_BYTES) {
            return self.create_assessment(
                Risk::High,
                RiskRule::TooLong,
                None,
                "the task is too long to be read",
            );
        }
        let path = target.and_then(|path| project.judge_target(path).map(|reason| (path.to_owned(), reason)));
        if let Some((path, reason)) = path.or_else(|| project.find_in_text(text)) {
            return self.create_assessment(Risk::High, RiskRule::Path, Some(path), reason);
        }
        self.assess_words(text)
    }

    fn assess_words(&self, text: &str) -> RiskAssessment {
        let task = TaskWords::new(text);
        let find = |class| self.vocabulary.find_first(&task, class);
        let by_word = |risk, rule, found: MatchedWord<'_>| {
            self.create_assessment(
                risk,
                rule,
                Some(found.word.to_owned()),
                &format!("the task {}", found.about),
            )
        };
        if let Some(found) = find(WordClass::High) {
            return by_word(Risk::High, RiskRule::HighWord, found);
        }
        let low = [WordClass::Low, WordClass::Kind, WordClass::Making].into_iter().find_map(find);
        match (low, self.vocabulary.find_unknown(&task)) {
            (None, _) => self.create_assessment(
                Risk::High,
                RiskRule::Unknown,
                None,
                "nothing says that the task stands alone",
            ),
            (Some(_), Some(word)) => self.create_assessment(
                Risk::High,
                RiskRule::UnknownWord,
                Some(word),
                "the task has a word that is not known",
            ),
            (Some(found), None) => match self.vocabulary.find_unmet(text, &task) {
                Some(UnmetCondition::Reference(word)) => self.create_assessment(
                    Risk::High,
                    RiskRule::Reference,
                    Some(word.word.to_owned()),
                    "the task refers to something that it doesn't begin",
                ),
                Some(UnmetCondition::Word(word)) => by_word(Risk::High, RiskRule::Condition, word),
                None => by_word(Risk::Low, RiskRule::LowWord, found),
            },
        }
    }

    fn create_assessment(
        &self,
        risk: Risk,
        rule: RiskRule,
        evidence: Option<String>,
        reason: &str,
    ) -> RiskAssessment {
        let word_lists = self.vocabulary.versions.clone();
        RiskAssessment { risk, rule, evidence, reason: reason.to_owned(), word_lists }
    }
}
