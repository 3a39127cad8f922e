//! Counting answers, and the tables of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::again;
use crate::damage::WAYS;
use crate::formats::Answer;
use crate::hunk::{Case, Task};

/// The row for replies that the token limit ended.
pub(crate) const CUT_OFF: &str = "reply cut off";

/// What an answer comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The commit's own bytes.
    Right,
    /// Nothing written, and said so.
    Refused,
    /// Other bytes.
    Wrong,
    /// Nothing written, and called well.
    Nothing,
}

/// The verdict on an answer to a case.
pub(crate) fn verdict(task: &Task, case: &Case, answer: &Answer) -> Verdict {
    let (before, after) = match &case.files {
        Some((before, after)) => (before, after),
        None => (&task.before, &task.after),
    };
    match answer {
        Answer::Text(text) if text == after => Verdict::Right,
        Answer::Text(text) if text == before => Verdict::Nothing,
        Answer::Text(_) | Answer::Panicked => Verdict::Wrong,
        Answer::Refused(_) => Verdict::Refused,
        Answer::Unchanged(_) => Verdict::Nothing,
    }
}

/// How many of each.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) right: usize,
    pub(crate) refused: usize,
    pub(crate) wrong: usize,
    pub(crate) nothing: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Right => &mut self.right,
            Verdict::Refused => &mut self.refused,
            Verdict::Wrong => &mut self.wrong,
            Verdict::Nothing => &mut self.nothing,
        } += 1;
    }

    pub(crate) fn all(self) -> usize {
        self.right + self.refused + self.wrong + self.nothing
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            right: self.right + other.right,
            refused: self.refused + other.refused,
            wrong: self.wrong + other.wrong,
            nothing: self.nothing + other.nothing,
        }
    }
}

/// Counts by damage and by format.
#[derive(Debug, Default)]
pub(crate) struct Summary(BTreeMap<(String, String), Counts>);

impl Summary {
    pub(crate) fn add(&mut self, damage: &str, format: &str, verdict: Verdict) {
        self.0.entry((damage.to_owned(), format.to_owned())).or_default().add(verdict);
    }

    fn sum(&self, keep: impl Fn(&str, &str) -> bool) -> Counts {
        let kept = self.0.iter().filter(|((damage, format), _)| keep(damage, format));
        kept.map(|(_, counts)| *counts).fold(Counts::default(), Counts::plus)
    }

    pub(crate) fn total(&self) -> Counts {
        self.sum(|_, _| true)
    }

    /// A table of the damages, and one of the formats where there are several.
    pub(crate) fn print(&self, title: &str) {
        println!("\n| {title} | cases | right | refused | wrong | no-op |\n|---|---|---|---|---|---|");
        let damages = WAYS.iter().map(|(name, _)| *name).chain([CUT_OFF]).chain(again::ROWS);
        for damage in damages {
            row(damage, self.sum(|one, _| one == damage));
        }
        let formats: std::collections::BTreeSet<&str> =
            self.0.keys().map(|(_, format)| format.as_str()).collect();
        if formats.len() > 1 {
            for format in formats {
                row(&format!("*{format}*"), self.sum(|_, one| one == format));
            }
        }
        row("**all**", self.total());
    }

    /// The same as one JSON value.
    pub(crate) fn json(&self) -> Value {
        let rows = self.0.iter().map(|((damage, format), counts)| {
            let Counts { right, refused, wrong, nothing } = counts;
            json!({"damage": damage, "format": format, "right": right, "refused": refused, "wrong": wrong,
                "nothing": nothing})
        });
        rows.collect()
    }
}

fn row(name: &str, counts: Counts) {
    if counts.all() == 0 {
        return;
    }
    let share = |part: usize| format!("{:.1} %", 100.0 * part as f64 / counts.all() as f64);
    println!(
        "| {name} | {} | {} | {} | {} | {} |",
        counts.all(),
        share(counts.right),
        share(counts.refused),
        counts.wrong,
        counts.nothing
    );
}
