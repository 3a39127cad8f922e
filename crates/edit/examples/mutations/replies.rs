//! Whole replies as models write them: real changes of a file, in the surface forms and with the
//! slips that public reports of other products describe.
//!
//! Of every pair of versions each kind of format gets one case, of the class that has had the
//! fewest so far among those that the change offers. What is right is known beforehand: the bytes
//! of the change, or a refusal where a reply has no one meaning.

mod quoted;
mod rewrites;
mod slips;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufWriter, Write};

use journeyman_edit::{ApplyOptions, Format, plan};
use journeyman_protocol::RelPath;
use serde_json::json;
use similar::TextDiff;

use crate::Error;
use crate::hunk::{Dice, Hunk, Pair, choose_several, closed, new_lines};
use crate::summary::{Counts, Verdict};

/// The kinds that have bounds, with the least share that is right and the largest that is wrong, in
/// per cent.
const KINDS: [(&str, f64, f64); 4] = [
    ("search/replace", 95.0, 0.5),
    ("V4A patch", 95.0, 1.5),
    ("unified diff", 86.0, 2.5),
    ("whole and lazy", 90.0, 0.0),
];

/// The files of a project, by path.
type Tree = BTreeMap<String, String>;
/// Makes a reply of a change; `None` where the change doesn't offer it.
type Maker = Box<dyn Fn(&Change, &mut Dice) -> Option<Reply>>;
/// A class of replies by its name.
type Class = (&'static str, Maker);

fn class(name: &'static str, make: impl Fn(&Change, &mut Dice) -> Option<Reply> + 'static) -> Class {
    (name, Box::new(make))
}

/// One file's change: some hunks of a commit.
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) hunks: Vec<Hunk>,
    /// The last change before it, of another file.
    pub(crate) other: Option<(String, String)>,
}

impl Change {
    pub(crate) fn file(&self) -> &[String] {
        self.hunks.first().map_or(&[], |hunk| hunk.file.as_slice())
    }

    pub(crate) fn before(&self) -> String {
        closed(self.file().iter().map(String::as_str))
    }

    pub(crate) fn after(&self) -> String {
        closed(self.after_lines().iter().map(|(text, _)| text.as_str()))
    }

    /// The lines afterwards; with each, whether a hunk shows it.
    pub(crate) fn after_lines(&self) -> Vec<(String, bool)> {
        let mut lines = Vec::new();
        let mut at = 0;
        for hunk in &self.hunks {
            let kept = self.file().iter().skip(at).take(hunk.first - at);
            lines.extend(kept.map(|text| (text.clone(), false)));
            lines.extend(new_lines(&hunk.lines).map(|text| (text.to_owned(), true)));
            at = hunk.first + crate::hunk::old_lines(&hunk.lines).count();
        }
        lines.extend(self.file().iter().skip(at).map(|text| (text.clone(), false)));
        lines
    }

    /// One of its hunks alone.
    pub(crate) fn only(&self, nth: usize) -> Self {
        let hunks = self.hunks.get(nth).cloned().into_iter().collect();
        Self { path: self.path.clone(), hunks, other: self.other.clone() }
    }

    /// The name's ending.
    pub(crate) fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }
}

/// A reply, and what it should come to.
pub(crate) struct Reply {
    pub(crate) format: Option<Format>,
    pub(crate) text: String,
    /// The path beside the reply.
    pub(crate) target: Option<String>,
    pub(crate) cut_off: bool,
    pub(crate) before: Tree,
    /// `None` where it has to be refused.
    pub(crate) after: Option<Tree>,
}

impl Reply {
    /// A reply that names its file.
    pub(crate) fn new(change: &Change, format: Format, text: String) -> Self {
        let tree = |text| Tree::from([(change.path.clone(), text)]);
        let mut reply = Self {
            format: Some(format),
            text,
            target: None,
            cut_off: false,
            before: tree(change.before()),
            after: Some(tree(change.after())),
        };
        reply.beside(change);
        reply
    }

    /// Another file lies in the project.
    fn beside(&mut self, change: &Change) {
        if let Some((path, text)) = change.other.clone().filter(|(path, _)| *path != change.path) {
            self.before.insert(path.clone(), text.clone());
            if let Some(after) = &mut self.after {
                after.insert(path, text);
            }
        }
    }

    pub(crate) fn refused(mut self) -> Self {
        self.after = None;
        self
    }

    pub(crate) fn aimed_at(mut self, path: &str) -> Self {
        self.target = Some(path.to_owned());
        self
    }

    /// What the engine makes of it.
    fn judge(&self) -> (Verdict, String, Option<Tree>) {
        let path = |path: &str| RelPath::parse(path).unwrap();
        let files: BTreeMap<RelPath, String> =
            self.before.iter().map(|(name, text)| (path(name), text.clone())).collect();
        let options = ApplyOptions {
            format: self.format,
            path: self.target.as_deref().map(path),
            cut_off: self.cut_off,
            ..ApplyOptions::default()
        };
        let plan = plan(&self.text, &options, &files);
        let said = plan.failed.first().map(|failure| failure.message.clone());
        if let Some(said) = said {
            return (if self.after.is_none() { Verdict::Right } else { Verdict::Refused }, said, None);
        }
        let mut tree = self.before.clone();
        for change in plan.changes_to_write() {
            tree.remove(&change.path.to_string());
            if let Some(text) = &change.after {
                tree.insert(change.to.as_ref().unwrap_or(&change.path).to_string(), text.clone());
            }
        }
        let verdict = match &self.after {
            Some(after) if *after == tree => Verdict::Right,
            // Said to be nothing to do, where nothing may be done.
            None if tree == self.before => Verdict::Right,
            _ if tree == self.before => Verdict::Nothing,
            _ => Verdict::Wrong,
        };
        (verdict, format!("{:?}", plan.unchanged), Some(tree))
    }
}

/// The classes of a kind.
fn classes(kind: usize) -> Vec<Class> {
    match kind {
        0 => quoted::searches(),
        1 => quoted::patches(),
        2 => quoted::diffs(),
        _ => rewrites::all(),
    }
}

/// Makes the replies, asks the engine and prints the table; what isn't right goes to `keep`.
pub(crate) fn run(keep: &str) -> Result<bool, Error> {
    let mut out = BufWriter::new(std::fs::File::create(keep)?);
    let classes: Vec<_> = (0..KINDS.len()).map(classes).collect();
    let mut counts: BTreeMap<(usize, &'static str), Counts> = BTreeMap::new();
    let mut other = None;
    for line in std::io::stdin().lock().lines() {
        let pair: Pair = serde_json::from_str(&line?)?;
        let hunks = choose_several(&pair);
        if hunks.is_empty() {
            continue;
        }
        let change = Change { path: pair.path.clone(), hunks, other: other.take() };
        for (kind, classes) in classes.iter().enumerate() {
            let had =
                |name: &'static str| counts.get(&(kind, name)).map_or(0, |counts: &Counts| counts.all());
            let mut order: Vec<_> = classes.iter().collect();
            order.sort_by_key(|(name, _)| had(name));
            let made = order.into_iter().find_map(|(name, make)| {
                let mut dice = Dice::new(&format!("{}@{}:{} {name}", pair.repo, pair.commit, pair.path));
                make(&change, &mut dice).map(|reply| (*name, reply))
            });
            let Some((name, reply)) = made else { continue };
            let (verdict, said, tree) = reply.judge();
            counts.entry((kind, name)).or_default().add(verdict);
            if verdict != Verdict::Right {
                let id = format!("{}@{}:{}", pair.repo, pair.commit, pair.path);
                record(
                    &mut out,
                    (&id, KINDS.get(kind).map_or("", |(name, ..)| *name), name),
                    &reply,
                    verdict,
                    &said,
                    tree.as_ref(),
                )?;
            }
        }
        other = Some((pair.path, pair.before));
    }
    out.flush()?;
    Ok(print(&counts))
}

/// All that is needed to see why an answer isn't right.
fn record(
    out: &mut impl Write,
    (id, kind, class): (&str, &str, &str),
    reply: &Reply,
    verdict: Verdict,
    said: &str,
    tree: Option<&Tree>,
) -> Result<(), Error> {
    let wanted = reply.after.as_ref().unwrap_or(&reply.before);
    let got = tree.unwrap_or(&reply.before);
    let names = wanted.keys().chain(got.keys()).collect::<std::collections::BTreeSet<_>>();
    let text = |tree: &Tree, name: &String| tree.get(name).cloned().unwrap_or_default();
    let difference: String = names
        .into_iter()
        .map(|name| {
            TextDiff::from_lines(text(wanted, name), text(got, name))
                .unified_diff()
                .context_radius(3)
                .to_string()
        })
        .collect();
    let line = json!({"id": id, "kind": kind, "class": class, "verdict": format!("{verdict:?}").to_lowercase(),
        "said": said, "reply": reply.text, "before": reply.before, "target": reply.target, "must_refuse": reply.after.is_none(),
        "written_beside_expected": difference});
    writeln!(out, "{line}")?;
    Ok(())
}

/// Prints the counts by class and by kind; false where a bound is missed.
fn print(counts: &BTreeMap<(usize, &'static str), Counts>) -> bool {
    let mut holds = true;
    println!("| kind, class | cases | right | refused | wrong | no-op |\n|---|---|---|---|---|---|");
    let row = |name: &str, counts: Counts| {
        let Counts { right, refused, wrong, nothing } = counts;
        let share = |part: usize| format!("{:.1} %", 100.0 * part as f64 / counts.all().max(1) as f64);
        println!(
            "| {name} | {} | {} | {refused} | {wrong} ({}) | {nothing} |",
            counts.all(),
            share(right),
            share(wrong)
        );
    };
    for (at, (kind, least, most)) in KINDS.iter().enumerate() {
        let of_kind = || counts.iter().filter(|((kind, _), _)| *kind == at);
        for ((_, class), counts) in of_kind() {
            row(&format!("{kind}: {class}"), *counts);
        }
        let sum = of_kind().map(|(_, counts)| *counts).fold(Counts::default(), Counts::plus);
        row(&format!("**{kind}** (asked: ≥ {least} % right, ≤ {most} % wrong)"), sum);
        let share = |part: usize| 100.0 * part as f64 / sum.all().max(1) as f64;
        holds &= share(sum.right) >= *least && share(sum.wrong) <= *most;
    }
    holds
}
