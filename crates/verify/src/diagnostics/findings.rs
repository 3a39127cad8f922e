//! The findings of all readers so far.

use std::collections::HashSet;

use journeyman_protocol::{Diagnostic, RelPath, Severity, clip_to_bytes};

use super::place::Place;

/// More than this many findings say nothing new to a reader, and would crowd out the rest of a
/// request.
pub const MAX_DIAGNOSTICS: usize = 50;

/// Finds the file that a tool means by a path, or `None` when it is not the project's.
pub type Locate<'a> = dyn Fn(&str) -> Option<RelPath> + 'a;

/// Enough to hold every error of a bad day behind its warnings, and little enough to hold in
/// memory.
const MAX_GATHERED: usize = 2_000;
/// A message longer than this is a dump of values; the output has the rest.
const MAX_MESSAGE_BYTES: usize = 600;

/// The identity of a finding: place, code and message.
type Key = (Option<RelPath>, Option<u32>, Option<u32>, String);

/// Gathers diagnostics, each once.
pub(super) struct Findings<'a> {
    locate: &'a Locate<'a>,
    found: Vec<Diagnostic>,
    known: HashSet<Key>,
    codes: HashSet<String>,
    codes_in: HashSet<(Option<RelPath>, String)>,
    left_out: usize,
}

impl<'a> Findings<'a> {
    pub(super) fn new(locate: &'a Locate<'a>) -> Self {
        Self {
            locate,
            found: Vec::new(),
            known: HashSet::new(),
            codes: HashSet::new(),
            codes_in: HashSet::new(),
            left_out: 0,
        }
    }

    /// The project's file that a tool means by `path`.
    pub(super) fn locate(&self, path: &str) -> Option<RelPath> {
        (self.locate)(path)
    }

    /// Adds an error at `place`, whose file may lie outside the project.
    pub(super) fn error_at(&mut self, place: Place<'_>, code: Option<&str>, message: &str) {
        let path = self.locate(place.path);
        self.push(Diagnostic {
            line: path.is_some().then_some(place.line),
            column: if path.is_some() { place.column } else { None },
            path,
            code: code.map(str::to_owned),
            ..Diagnostic::new(Severity::Error, message)
        });
    }

    /// Adds an error that has no place.
    pub(super) fn error(&mut self, code: Option<&str>, message: &str) {
        self.push(Diagnostic { code: code.map(str::to_owned), ..Diagnostic::new(Severity::Error, message) });
    }

    /// Adds a finding unless it is known; bounds its texts.
    pub(super) fn push(&mut self, mut diagnostic: Diagnostic) {
        diagnostic.message = clip_to_bytes(diagnostic.message.trim(), MAX_MESSAGE_BYTES).to_owned();
        diagnostic.code =
            diagnostic.code.map(|code| clip_to_bytes(code.trim(), MAX_MESSAGE_BYTES).to_owned());
        if diagnostic.message.is_empty() && diagnostic.code.is_none() {
            return;
        }
        let named = match &diagnostic.code {
            Some(code) => format!("{code}\n{}", diagnostic.message),
            None => diagnostic.message.clone(),
        };
        let key = (diagnostic.path.clone(), diagnostic.line, diagnostic.column, named);
        if self.found.len() >= MAX_GATHERED {
            self.left_out = self.left_out.saturating_add(1);
        } else if self.known.insert(key) {
            if let Some(code) = &diagnostic.code {
                self.codes.insert(code.clone());
                self.codes_in.insert((diagnostic.path.clone(), code.clone()));
            }
            self.found.push(diagnostic);
        }
    }

    /// Adds to the newest finding's message, within bounds.
    pub(super) fn extend_last(&mut self, more: &str) {
        let Some(last) = self.found.last_mut() else { return };
        let room = MAX_MESSAGE_BYTES.saturating_sub(last.message.len() + 2);
        let more = clip_to_bytes(more.trim(), room);
        if !more.is_empty() && last.message.split("; ").all(|part| part != more) {
            last.message.push_str("; ");
            last.message.push_str(more);
        }
    }

    /// Returns true if a finding carries `code`.
    pub(super) fn has_code(&self, code: &str) -> bool {
        self.codes.contains(code)
    }

    /// Returns true if a finding lies in `path` and carries `code`.
    pub(super) fn has_code_in(&self, path: Option<&RelPath>, code: &str) -> bool {
        self.codes_in.contains(&(path.cloned(), code.to_owned()))
    }

    /// Everything, errors first and otherwise as printed, cut to [`MAX_DIAGNOSTICS`].
    pub(super) fn into_worst_first(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|one| std::cmp::Reverse(one.severity));
        let all = self.found.len() + self.left_out;
        if all > MAX_DIAGNOSTICS {
            self.found.truncate(MAX_DIAGNOSTICS - 1);
            let more = all - self.found.len();
            self.found.push(Diagnostic::new(Severity::Note, format!("{more} more findings are not listed")));
        }
        self.found
    }
}
