//! Words and sentences: what a program can check of `docs/glossary.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use syn::visit::Visit;

/// Columns of a comment.
const MAX_COMMENT: usize = 100;
/// Columns of a commit's subject.
const MAX_SUBJECT: usize = 72;
/// Commits whose subjects are looked at, the newest.
const COMMITS: usize = 20;

/// First words of a documentation sentence that is a clause without a main verb.
const CLAUSES: &[&str] = &["What", "Whether", "Who", "Whom", "Whose", "How"];

/// Words of a name that stand for a concept of the field which has a word of its own
/// (`docs/glossary.md`).
const PRIVATE: &[&str] = &[
    "admission",
    "breakpoint",
    "desk",
    "door",
    "doubt",
    "freshness",
    "heal",
    "holdback",
    "house",
    "ladder",
    "likeness",
    "losses",
    "mind",
    "patience",
    "purse",
    "stretch",
    "tally",
    "vault",
    "wish",
];

/// What a rule finds, with how many each crate may still have: a number may only go down, and a
/// crate that isn't listed has none.
struct Rule {
    name: &'static str,
    allowed: &'static [(&'static str, usize)],
}

const COMMENT_WIDTH: Rule = Rule { name: "comments over 100 columns", allowed: &[] };
const CLAUSE: Rule = Rule { name: "documentation that begins with a clause", allowed: &[] };
// The mask of a secret has them, because no source writes it by chance.
const QUOTES: Rule = Rule { name: "angle quotes", allowed: &[("policy", 1)] };
const WORD: Rule = Rule { name: "names with words of the glossary's last column", allowed: &[] };
const TWINS: Rule = Rule { name: "types with the name of another type of the crate", allowed: &[] };

/// Each crate with more findings of a rule than it may have, and each commit whose subject has
/// another form.
pub(crate) fn broken_rules(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut broken = Vec::new();
    for (crate_name, found) in findings(root)? {
        for (rule, places) in found.by_rule() {
            let allowed =
                rule.allowed.iter().find(|(name, _)| *name == crate_name).map_or(0, |(_, count)| *count);
            if places.len() > allowed {
                let shown: Vec<&str> = places.iter().take(8).map(String::as_str).collect();
                let shown = shown.join("\n    ");
                broken.push(format!(
                    "{crate_name}: {} {}, {allowed} may be:\n    {shown}",
                    places.len(),
                    rule.name
                ));
            }
        }
    }
    broken.extend(subjects(root)?);
    Ok(broken)
}

/// Prints every finding, also those that are allowed.
pub(crate) fn print(root: &Path) -> anyhow::Result<()> {
    for (crate_name, found) in findings(root)? {
        for (rule, places) in found.by_rule() {
            println!("{crate_name}: {} {}", places.len(), rule.name);
            places.iter().for_each(|place| println!("    {place}"));
        }
    }
    Ok(())
}

/// Places of one crate, by rule.
#[derive(Default)]
struct Findings {
    wide: Vec<String>,
    clauses: Vec<String>,
    quotes: Vec<String>,
    words: Vec<String>,
    twins: Vec<String>,
}

impl Findings {
    fn by_rule(&self) -> [(&'static Rule, &[String]); 5] {
        [
            (&COMMENT_WIDTH, &self.wide),
            (&CLAUSE, &self.clauses),
            (&QUOTES, &self.quotes),
            (&WORD, &self.words),
            (&TWINS, &self.twins),
        ]
    }
}

fn findings(root: &Path) -> anyhow::Result<BTreeMap<String, Findings>> {
    let mut all: BTreeMap<String, Findings> = BTreeMap::new();
    let mut types: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for path in crate::sizes::sources(root)? {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let parts: Vec<&str> = shown.split('/').collect();
        let crate_name = match parts.as_slice() {
            ["crates", name, "src", ..] => (*name).to_owned(),
            ["xtask", "src", ..] => "xtask".to_owned(),
            _ => continue,
        };
        let text = std::fs::read_to_string(&path).with_context(|| shown.clone())?;
        let found = all.entry(crate_name.clone()).or_default();
        // This file has to name what it looks for.
        if !shown.ends_with("xtask/src/words.rs") {
            comments(&shown, &text, found);
        }
        let file = syn::parse_file(&text).with_context(|| shown.clone())?;
        let mut names = Names::default();
        names.visit_file(&file);
        for (line, name) in names.all {
            if let Some(word) = private_word(&name) {
                found.words.push(format!("{shown}:{line}: {name} ({word})"));
            }
        }
        for (line, name) in names.types {
            types.entry((crate_name.clone(), name)).or_default().push(format!("{shown}:{line}"));
        }
    }
    for ((crate_name, name), places) in types {
        if let [first, others @ ..] = places.as_slice() {
            let found = all.entry(crate_name).or_default();
            found.twins.extend(others.iter().map(|place| format!("{place}: {name}, as {first}")));
        }
    }
    Ok(all)
}

/// Looks at the comments and quotation marks of a file.
fn comments(shown: &str, text: &str, found: &mut Findings) {
    let mut begins = true;
    for (number, line) in (1..).zip(text.lines()) {
        let place = || format!("{shown}:{number}");
        if line.contains(['\u{ab}', '\u{bb}']) {
            found.quotes.push(place());
        }
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") && line.chars().count() > MAX_COMMENT {
            found.wide.push(place());
        }
        let documentation = trimmed.strip_prefix("///").or_else(|| trimmed.strip_prefix("//!"));
        let Some(sentence) = documentation.map(str::trim) else {
            begins = true;
            continue;
        };
        let first = sentence.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        if begins && CLAUSES.contains(&first) && !sentence.ends_with('?') {
            found.clauses.push(format!("{}: {sentence}", place()));
        }
        begins = sentence.is_empty();
    }
}

/// Returns the private word in a name, whichever way its words are joined.
fn private_word(name: &str) -> Option<&'static str> {
    let mut words = String::new();
    let mut follows_lowercase = false;
    for letter in name.chars() {
        if letter.is_uppercase() && follows_lowercase {
            words.push('_');
        }
        follows_lowercase = letter.is_lowercase();
        words.extend(letter.to_lowercase());
    }
    PRIVATE.iter().find(|private| words.split('_').any(|word| word == **private)).copied()
}

/// Names that a file defines, outside of its tests.
#[derive(Default)]
struct Names {
    all: Vec<(usize, String)>,
    types: Vec<(usize, String)>,
}

impl Names {
    fn add(&mut self, name: &syn::Ident) {
        self.all.push((name.span().start().line, name.to_string()));
    }

    fn add_type(&mut self, name: &syn::Ident) {
        self.add(name);
        self.types.push((name.span().start().line, name.to_string()));
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.add(&item.ident);
        if item.ident != "tests" && !item.attrs.iter().any(is_test) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add_type(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add_type(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add_type(&item.ident);
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.add(&item.ident);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.add(&signature.ident);
    }
}

/// Returns true for `#[cfg(test)]`.
fn is_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
}

/// Subjects of the newest commits that don't say `area: what changes`. Nothing where there is no
/// repository.
fn subjects(root: &Path) -> anyhow::Result<Vec<String>> {
    let count = format!("-{COMMITS}");
    let log =
        Command::new("git").args(["log", "--no-merges", &count, "--format=%h %s"]).current_dir(root).output();
    let Ok(log) = log else { return Ok(Vec::new()) };
    let text = String::from_utf8_lossy(&log.stdout);
    let wrong =
        text.lines().filter(|line| !line.split_once(' ').is_some_and(|(_, subject)| is_subject(subject)));
    Ok(wrong
        .map(|line| {
            format!("commit {line}: a subject is `area: what changes`, at most {MAX_SUBJECT} columns")
        })
        .collect())
}

fn is_subject(subject: &str) -> bool {
    let Some((area, change)) = subject.split_once(": ") else { return false };
    let is_area =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || ", ./-_".contains(letter);
    let begins = change.chars().next().is_some_and(|letter| letter.is_lowercase() || letter == '`');
    subject.chars().count() <= MAX_SUBJECT
        && !area.is_empty()
        && area.chars().all(is_area)
        && begins
        && !change.ends_with('.')
        && !change.to_lowercase().split_whitespace().any(|word| word == "wip")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_name_an_area_and_a_change() {
        assert!(is_subject("index: skip punctuation nodes when walking"));
        assert!(is_subject("agent, cli: keep what was asked"));
        for wrong in
            ["A sign is no node", "index: Skip nodes", "index: skip.", "index: wip", ": x", "index skip"]
        {
            assert!(!is_subject(wrong), "{wrong}");
        }
        assert!(!is_subject(&format!("index: {}", "x".repeat(MAX_SUBJECT))));
    }

    #[test]
    fn comments_are_sentences_of_bounded_width() {
        let mut found = Findings::default();
        let wide = format!("// {}", "x".repeat(MAX_COMMENT));
        let text = format!(
            "/// Whether it is.\n/// How it goes on.\nfn a() {{}}\n/// Returns it.\n///\n/// What then?\n{wide}\n"
        );
        comments("a.rs", &text, &mut found);
        assert_eq!(found.clauses, ["a.rs:1: Whether it is."]);
        assert_eq!(found.wide, ["a.rs:7"]);
    }

    #[test]
    fn private_words_are_found_in_any_case() {
        assert_eq!(private_word("StreamHoldback"), Some("holdback"));
        assert_eq!(private_word("MAX_PATIENCE_MS"), Some("patience"));
        assert_eq!(private_word("reminder"), None);
    }
}
