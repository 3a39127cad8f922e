//! The ignore rules of a tree that is listed for the index.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use journeyman_ignore_rules::{RULE_FILES, RuleLayer, parse_rules, read_rule_file, rules_from_outside};

/// A project's own ignore file for the index, in the form of `.gitignore`; it counts more than the
/// others of its directory.
pub const IGNORE_FILE: &str = ".journeymanignore";
/// The rule files of a directory; a later one counts more.
const INDEX_RULE_FILES: [&[u8]; 3] = [RULE_FILES[0], RULE_FILES[1], IGNORE_FILE.as_bytes()];

/// Reads the rules that apply to a project from outside of its own rule files.
pub(super) fn rules_above(root: &Path) -> Option<Arc<RuleLayer>> {
    rules_from_outside(root, &INDEX_RULE_FILES, |_| {})
}

/// Adds the rules of the directory `opened` at `path`; `may_have` returns true for names that the
/// directory may have.
pub(super) fn add_rules(
    outer: Option<Arc<RuleLayer>>,
    opened: BorrowedFd<'_>,
    path: &[u8],
    may_have: impl Fn(&[u8]) -> bool,
) -> Option<Arc<RuleLayer>> {
    let names = INDEX_RULE_FILES.iter().filter(|name| may_have(name));
    let texts: Vec<Vec<u8>> = names.map(|name| read_rule_file(opened.as_fd(), name)).collect();
    if texts.iter().all(Vec::is_empty) {
        return outer;
    }
    RuleLayer::from_parsed(parse_rules(texts.iter().map(Vec::as_slice)), path, outer)
}
