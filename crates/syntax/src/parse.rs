//! Parsing any text in any of the languages, within bounds.
//!
//! The grammars are C that runs in our process on texts that anybody may have written. So each gets a text only in
//! whole characters, at most [`MAX_BYTES`] of it, and may look at it and work on it only so often: bounds in operations, not in time,
//! so that the same text always comes to the same.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tree_sitter::{InputEdit, Node, ParseOptions, ParseState, Parser, Point};

use crate::hostile;
use crate::language::Language;
use crate::memory::{self, Scope};

/// Longer texts are not parsed: source that people write is far shorter.
pub const MAX_BYTES: usize = 8 << 20;
/// A tree in which nodes lie deeper than this isn't looked at: whoever walks trees may recur to this depth.
pub const MAX_DEPTH: usize = 400;
/// Brackets in one another that a text may have to be parsed at all. Well above what [`MAX_DEPTH`] lets through, for
/// brackets in strings and comments count too; and well below what makes a parser's recovery slow.
const MAX_BRACKETS: usize = 1_000;
/// Looks that the parser takes at whether to go on (one in a hundred of its steps): some in all, and for each
/// [`BYTES_A_LOOK`] bytes one. Ordinary source takes one in thirty bytes or more; what takes this many makes the
/// parser try many readings at once.
const LOOKS: usize = 2_000;
const BYTES_A_LOOK: usize = 4;
/// Bytes that the parser is given at once, but for the rest of a character.
const CHUNK: usize = 1024;
/// How often it may ask for each chunk on the average. Looking ahead for the end of something that has none, again and again, is work that
/// grows with the square of the length.
const READS: usize = 40;

/// Why a text wasn't parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unparsed {
    /// The language's grammar isn't built in.
    NoGrammar,
    /// It is longer than [`MAX_BYTES`].
    TooLong,
    /// Its parts lie in one another deeper than [`MAX_DEPTH`].
    TooDeep,
    /// It would take too long, most likely because it isn't what its name says.
    TooMuchWork,
    /// It has something that the grammar's own code isn't trusted with.
    Untrusted,
}

/// A text's syntax tree.
#[derive(Debug, Clone)]
pub struct Tree {
    language: Language,
    tree: tree_sitter::Tree,
}

impl Tree {
    /// The language it was read in.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// The node of the whole text.
    #[must_use]
    pub fn root(&self) -> tree_sitter::Node<'_> {
        self.tree.root_node()
    }

    /// Whether a part of the text isn't what the language expects.
    #[must_use]
    pub fn has_error(&self) -> bool {
        self.root().has_error()
    }
}

thread_local! {
    /// A parser of each language that a thread has met: they keep their stacks from text to text, and nothing else.
    static PARSERS: RefCell<BTreeMap<Language, Parser>> = const { RefCell::new(BTreeMap::new()) };
}

/// The text's syntax tree. The same text always gives the same; time is linear in its length, within the bounds.
///
/// # Errors
/// [`Unparsed`] where there is no grammar, or a bound was passed.
pub fn parse(language: Language, text: &str) -> Result<Tree, Unparsed> {
    admit(language, text)?;
    let tree = run(language, &without_marks(language, text), None)?;
    shallow(&tree)?;
    Ok(Tree { language, tree })
}

/// Shows the tree of a text to `look`, which may go to any depth, and throws it away: faster than [`parse`] and dropping what it
/// gives.
///
/// # Errors
/// As [`parse`], but for the depth.
pub(crate) fn looked_at<R>(
    language: Language,
    text: &str,
    look: impl for<'tree> FnOnce(Node<'tree>) -> R,
) -> Result<R, Unparsed> {
    admit(language, text)?;
    let grammar = language.grammar().ok_or(Unparsed::NoGrammar)?();
    let text = without_marks(language, text);
    memory::prepare();
    let Some(scope) = Scope::enter() else {
        return run(language, &text, None).map(|tree| look(tree.root_node()));
    };
    let tree = scope.within(|| {
        // A parser of its own: what one keeps from text to text wouldn't outlive the scope.
        let mut parser = Parser::new();
        parser.set_language(&grammar).map_err(|_| Unparsed::NoGrammar)?;
        within_bounds(&mut parser, &text, None)
    })?;
    let looked = look(tree.root_node());
    if scope.is_whole() {
        std::mem::forget(tree);
    }
    Ok(looked)
}

/// The tree of a text that was made from another one by a change in one place; what lies outside is taken over from
/// the old tree.
///
/// # Errors
/// As [`parse`].
pub fn reparse(old: &Tree, before: &str, text: &str) -> Result<Tree, Unparsed> {
    admit(old.language, text)?;
    let (before, text) = (&*without_marks(old.language, before), &*without_marks(old.language, text));
    let head = common(before.as_bytes().iter(), text.as_bytes().iter());
    let room = before.len().min(text.len()) - head;
    let tail = common(before.as_bytes().iter().rev(), text.as_bytes().iter().rev()).min(room);
    let (old_end, new_end) = (before.len() - tail, text.len() - tail);
    let mut edited = old.tree.clone();
    edited.edit(&InputEdit {
        start_byte: head,
        old_end_byte: old_end,
        new_end_byte: new_end,
        start_position: point(before, head),
        old_end_position: point(before, old_end),
        new_end_position: point(text, new_end),
    });
    let tree = run(old.language, text, Some(&edited))?;
    shallow(&tree)?;
    Ok(Tree { language: old.language, tree })
}

/// A text of C or C++ with blanks for macros that stand alone in a line and open or close something: `FMT_BEGIN_NAMESPACE`,
/// `__END_DECLS`. To the grammar such a name is the beginning of what follows it, and a class behind it none.
fn without_marks(language: Language, text: &str) -> Cow<'_, str> {
    let marked =
        matches!(language, Language::C | Language::Cpp) && (text.contains("BEGIN") || text.contains("END"));
    if !marked {
        return Cow::Borrowed(text);
    }
    let mut out: Option<String> = None;
    let mut at = 0;
    // Only a line after which the grammar expects something new: not one of an expression or of a list.
    let mut fresh = true;
    for line in text.split_inclusive('\n') {
        let word = line.trim();
        if fresh && is_mark(word) {
            let start = at + (line.len() - line.trim_start().len());
            let own = out.get_or_insert_with(|| text.to_owned());
            own.replace_range(start..start + word.len(), &" ".repeat(word.len()));
        } else if !word.is_empty() {
            fresh = word.ends_with([';', '}', '{', '>'])
                || word.starts_with(['#', '/', '*'])
                || word.ends_with("*/");
        }
        at += line.len();
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// `A_BEGIN`, `BEGIN_A`, `A_END_B` in capitals.
fn is_mark(word: &str) -> bool {
    word.len() > 5
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && word.split('_').any(|part| matches!(part, "BEGIN" | "END"))
        && word.contains('_')
}

fn common<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

fn point(text: &str, at: usize) -> Point {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let row = before.iter().filter(|byte| **byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    Point { row, column }
}

/// Whether a text may be given to the grammar at all.
fn admit(language: Language, text: &str) -> Result<(), Unparsed> {
    if text.len() > MAX_BYTES {
        return Err(Unparsed::TooLong);
    }
    // Most texts have too few to lie too deep; how deep exactly, only few languages' scanners have to be asked about.
    let most = depth_at_most(text);
    let exact = most > MAX_BRACKETS || matches!(language, Language::Bash | Language::Ruby);
    let deepest = if exact { deepest(text) } else { most };
    if deepest > MAX_BRACKETS {
        return Err(Unparsed::TooDeep);
    }
    if hostile::is_trusted(language, text, deepest) { Ok(()) } else { Err(Unparsed::Untrusted) }
}

/// What brackets don't lie deeper in one another than: counted by stretches, in each as if all that open came first. Many times as
/// quick as [`deepest`].
fn depth_at_most(text: &str) -> usize {
    const STRETCH: usize = 4 << 10;
    let (mut depth, mut most) = (0_usize, 0);
    for stretch in text.as_bytes().chunks(STRETCH) {
        let opening = stretch.iter().filter(|byte| matches!(byte, b'(' | b'[' | b'{')).count();
        let closing = stretch.iter().filter(|byte| matches!(byte, b')' | b']' | b'}')).count();
        most = most.max(depth + opening);
        // Where all close before any opens, what opens is left.
        depth = (depth + opening).saturating_sub(closing).max(opening);
    }
    most
}

/// How deep brackets lie in one another, whatever they are.
fn deepest(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn run(
    language: Language,
    text: &str,
    old: Option<&tree_sitter::Tree>,
) -> Result<tree_sitter::Tree, Unparsed> {
    let grammar = language.grammar().ok_or(Unparsed::NoGrammar)?;
    memory::prepare();
    PARSERS.with(|parsers| {
        // Nothing here calls back into itself.
        let mut parsers = parsers.try_borrow_mut().map_err(|_| Unparsed::TooMuchWork)?;
        let parser = parsers.entry(language).or_default();
        if parser.language().is_none() {
            parser.set_language(&grammar()).map_err(|_| Unparsed::NoGrammar)?;
        }
        let tree = within_bounds(parser, text, old);
        if tree.is_err() {
            parser.reset();
        }
        tree
    })
}

/// Parses with no more work than a text of this length may make.
fn within_bounds(
    parser: &mut Parser,
    text: &str,
    old: Option<&tree_sitter::Tree>,
) -> Result<tree_sitter::Tree, Unparsed> {
    let most = LOOKS + text.len() / BYTES_A_LOOK;
    let mut looks = 0;
    let mut look = |_: &ParseState| {
        looks += 1;
        if looks > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut look);
    let mut reads = READS * (2 + text.len() / CHUNK);
    let mut ended = false;
    let mut read = |at: usize, _: Point| {
        reads = reads.saturating_sub(1);
        // The text seems to end where the patience does, with a line break, and what comes of that isn't looked at.
        match (reads, std::mem::replace(&mut ended, reads == 0)) {
            (0, false) => &b"\n"[..],
            (0, true) => &[],
            _ => chunk(text, at),
        }
    };
    let tree = parser.parse_with_options(&mut read, old, Some(options));
    tree.filter(|_| reads > 0).ok_or(Unparsed::TooMuchWork)
}

/// The bytes from `at` that the parser is given at once. Never a part of a character: the parser asks again for the
/// rest, and takes it without a look at whether it got any.
fn chunk(text: &str, at: usize) -> &[u8] {
    let end = text.ceil_char_boundary(at - at % CHUNK + CHUNK);
    text.as_bytes().get(at..end).unwrap_or_default()
}

/// Whether nobody who walks the tree has to go deeper than [`MAX_DEPTH`].
fn shallow(tree: &tree_sitter::Tree) -> Result<(), Unparsed> {
    let mut cursor = tree.walk();
    let mut depth = 0_usize;
    loop {
        if cursor.goto_first_child() {
            depth += 1;
            if depth > MAX_DEPTH {
                return Err(Unparsed::TooDeep);
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Ok(());
            }
            depth -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_never_taken_for_less() {
        let mut random = 1_u32;
        for round in 0..300_u32 {
            let length = round as usize * 97;
            let text: String = (0..length)
                .map(|_| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    // More that opens in some rounds, and more that closes in others.
                    let open = 20 + round % 7 * 4;
                    match random >> 25 {
                        sign if sign < open => '(',
                        sign if sign < 64 => ')',
                        _ => 'a',
                    }
                })
                .collect();
            assert!(depth_at_most(&text) >= deepest(&text), "round {round}");
        }
        // As deep as its stretches are wide, however long it is.
        let calls = "call(first[1], {second})\n".repeat(100_000);
        assert_eq!(deepest(&calls), 2);
        assert!(depth_at_most(&calls) <= MAX_BRACKETS, "{}", depth_at_most(&calls));
    }
}
