//! The check that an edit doesn't break a file's syntax.

use journeyman_protocol::RelPath;
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;
use journeyman_syntax::parse::{Tree, parse, reparse};

use crate::lines::line_at;
use crate::outcome::truncate;

/// Faults of a text that are looked at: more of them, and it isn't what its name says.
const MAX_SYNTAX_ERRORS: usize = 200;
/// Bytes of a line that are quoted.
const MAX_QUOTED_BYTES: usize = 80;

/// A syntax error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxFault {
    /// The 1-based line.
    pub line: u32,
    /// The error, in a few words.
    pub message: String,
}

/// Returns the first syntax error of the new text that the edit caused.
///
/// Only the changed part is parsed anew. Languages whose files are often templates of others say
/// nothing.
pub(crate) fn first_new_fault(path: &RelPath, old: &str, new: &str) -> Option<SyntaxFault> {
    let language = Language::detect(&path.to_string(), old)?;
    if language == Language::Html {
        return None;
    }
    let before = parse(language, old).ok()?;
    let quick = reparse(&before, old, new).ok()?;
    if !quick.has_error() {
        return None;
    }
    // Nodes reused from the old tree may have misled the parser: a fault is one only if a fresh
    // look sees it too.
    let after = parse(language, new).ok().filter(Tree::has_error)?;
    let change = ChangedBytes::between(old, new);
    let faults = syntax_error_nodes(&after);
    if before.has_error() {
        let (was, is) = (self::syntax_error_nodes(&before).len(), faults.len());
        if is <= was || is >= MAX_SYNTAX_ERRORS {
            return None;
        }
        // Only what lies where the edit was is its own.
        let fault =
            faults.iter().find(|fault| (change.start..=change.new_end).contains(&fault.start_byte()))?;
        return Some(to_syntax_fault(*fault, new));
    }
    Some(
        unbalanced_bracket(&before, &after, old, new, &change)
            .or_else(|| faults.first().map(|fault| to_syntax_fault(*fault, new)))
            .unwrap_or(SyntaxFault {
                line: line_at(new, change.start),
                message: "the text doesn't parse".to_owned(),
            }),
    )
}

/// The bytes in which two texts differ.
struct ChangedBytes {
    start: usize,
    old_end: usize,
    new_end: usize,
}

impl ChangedBytes {
    fn between(old: &str, new: &str) -> Self {
        let start = old.bytes().zip(new.bytes()).take_while(|(one, other)| one == other).count();
        let room = old.len().min(new.len()) - start;
        let tail = old
            .bytes()
            .rev()
            .zip(new.bytes().rev())
            .take(room)
            .take_while(|(one, other)| one == other)
            .count();
        Self { start, old_end: old.len() - tail, new_end: new.len() - tail }
    }
}

/// The nodes that aren't what the language expects, or that it misses.
fn syntax_error_nodes(tree: &Tree) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    let mut cursor = tree.root().walk();
    loop {
        let node = cursor.node();
        if (node.is_error() || node.is_missing()) && node.parent().is_some() {
            found.push(node);
        }
        if found.len() >= MAX_SYNTAX_ERRORS {
            return found;
        }
        if node.has_error() && !node.is_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

fn to_syntax_fault(fault: Node<'_>, text: &str) -> SyntaxFault {
    let line = line_at(text, fault.start_byte());
    if fault.is_missing() {
        return SyntaxFault { line, message: format!("missing `{}`", fault.kind()) };
    }
    let own = text.get(fault.byte_range()).unwrap_or_default().trim().lines().next().unwrap_or_default();
    let message = match own.chars().next() {
        None => "the text ends in the middle of something".to_owned(),
        Some('"' | '\'' | '`') => format!("a string isn't closed: `{}`", truncate(own, MAX_QUOTED_BYTES)),
        Some(_) => format!("`{}` is unexpected", truncate(own, MAX_QUOTED_BYTES)),
    };
    SyntaxFault { line, message }
}

/// A bracket of a text: where it is and which.
type Bracket = (usize, u8);

/// The brackets that are open at a place, as the tree sees them: those in strings and comments are
/// none.
fn open_brackets_at(tree: &Tree, text: &str, end: usize) -> Vec<Bracket> {
    let mut open: Vec<Bracket> = Vec::new();
    let mut cursor = tree.root().walk();
    loop {
        let node = cursor.node();
        if node.start_byte() >= end {
            return open;
        }
        if cursor.goto_first_child() {
            continue;
        }
        if let ([sign], false) = (text.as_bytes().get(node.byte_range()).unwrap_or_default(), node.is_named())
        {
            match sign {
                b'(' | b'[' | b'{' => open.push((node.start_byte(), *sign)),
                b')' | b']' | b'}' => {
                    let opener = match sign {
                        b')' => b'(',
                        b']' => b'[',
                        _ => b'{',
                    };
                    if let Some(at) = open.iter().rposition(|(_, kind)| *kind == opener) {
                        open.truncate(at);
                    }
                }
                _ => {}
            }
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return open;
            }
        }
    }
}

fn closing_bracket(opener: u8) -> char {
    match opener {
        b'(' => ')',
        b'[' => ']',
        _ => '}',
    }
}

/// A bracket that the edit dropped, or has too many: where the brackets open after the changed part
/// aren't those that were.
fn unbalanced_bracket(
    before: &Tree,
    after: &Tree,
    old: &str,
    new: &str,
    change: &ChangedBytes,
) -> Option<SyntaxFault> {
    // To the end of the line: the same bytes at the end of both may hide which of two brackets it
    // was.
    let tail = new.get(change.new_end..)?.find('\n').map_or(new.len() - change.new_end, |at| at);
    let was = open_brackets_at(before, old, change.old_end + tail);
    let is = open_brackets_at(after, new, change.new_end + tail);
    let line = line_at(new, (change.new_end + tail).min(new.len()));
    // The first one that differs: what is open inside of it follows from that.
    let at = was.iter().zip(&is).take_while(|((_, one), (_, other))| one == other).count();
    if at == was.len() && at == is.len() {
        return None;
    }
    if is.len() > was.len() {
        let (at, kind) = is.get(at).copied()?;
        let (opened, sign) = (line_at(new, at), closing_bracket(kind));
        let message = if at < change.start {
            format!("the edit dropped the `{sign}` that closed line {opened}")
        } else {
            format!("missing `{sign}` for line {opened}")
        };
        return Some(SyntaxFault { line, message });
    }
    let (at, kind) = was.get(at).copied()?;
    let sign = closing_bracket(kind);
    let opener = char::from(kind);
    let message = if at >= change.start && at < change.old_end {
        format!("the edit dropped the `{opener}` that a `{sign}` further down closes")
    } else {
        format!("one `{sign}` too many: line {} is closed twice", line_at(new, at.min(new.len())))
    };
    Some(SyntaxFault { line, message })
}
