//! Narrowing a regex search to candidate files, by the trigrams that a match must have.
//!
//! After Russ Cox, "Regular Expression Matching with a Trigram Index" (2012): the parts of a
//! pattern yield strings that a match must contain, these yield trigrams, and files without them
//! are skipped. The candidates are a superset of the files with a match; the caller searches them.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::analysis::Content;
use crate::segment::Id;
use crate::snapshot::Snapshot;

/// Maximum alternative strings of a run of a pattern's parts.
const MAX_STRINGS: usize = 16;
/// Maximum bytes of each: by then it has trigrams enough.
const MAX_STRING: usize = 64;
/// Maximum characters of a class that are expanded.
const MAX_CLASS: usize = 8;
/// Maximum nesting of a pattern's parts.
const MAX_DEPTH: u32 = 100;

/// A condition on the trigrams of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Need {
    /// No condition.
    Nothing,
    /// All of these trigrams.
    All(Vec<[u8; 3]>),
    /// All of these conditions.
    Every(Vec<Self>),
    /// At least one of these conditions.
    Some(Vec<Self>),
}

/// Returns a pattern that matches a text literally.
#[must_use]
pub fn literal(text: &str) -> String {
    regex_syntax::escape(text)
}

/// A pattern that can't be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadPattern(String);

impl BadPattern {
    pub(crate) fn new(error: &impl std::fmt::Display) -> Self {
        // The last line has the fault; those before show the pattern.
        let text = error.to_string();
        let last = text.lines().next_back().unwrap_or_default().trim_start_matches("error: ");
        Self(format!("the pattern is no regular expression: {last}"))
    }
}

/// Files that may have a match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    /// Their numbers, by path.
    pub files: Vec<Id>,
    /// True if the pattern has no condition: these are all files.
    pub unfiltered: bool,
}

/// Returns the living files that a pattern may match, in the syntax of the `regex` crate. Files
/// without known trigrams, because they are minified or too long, are always among them; binary
/// ones never are.
///
/// # Errors
/// [`BadPattern`] for an invalid pattern.
pub fn candidates(
    snapshot: &Snapshot,
    pattern: &str,
    case_insensitive: bool,
) -> Result<Candidates, BadPattern> {
    let mut parser = ParserBuilder::new();
    parser.case_insensitive(case_insensitive).utf8(false).nest_limit(MAX_DEPTH);
    let hir = parser.build().parse(pattern).map_err(|error| BadPattern::new(&error))?;
    let need = need(&hir);
    let unfiltered = need == Need::Nothing;
    let mut files: Vec<Id> = Vec::new();
    for living in snapshot.living() {
        let wanted =
            fulfilled(&need, &|trigram, list| living.segment.with_trigram(trigram, |file| list.push(file)));
        for (file, record) in living.living_files() {
            let wanted_here = || wanted.as_ref().is_none_or(|wanted| wanted.binary_search(&file).is_ok());
            let read = match record.content {
                Content::Text => record.flags.veiled || wanted_here(),
                Content::Minified | Content::Huge => true,
                Content::Binary | Content::Unreadable => false,
            };
            if read {
                files.push(living.number_of(file));
            }
        }
    }
    files.sort_by_cached_key(|file| snapshot.file(*file).map(|file| file.path_bytes().to_vec()));
    Ok(Candidates { files, unfiltered })
}

/// Returns the files that meet a condition, ascending; `None` where there is none.
fn fulfilled(need: &Need, look: &impl Fn([u8; 3], &mut Vec<Id>)) -> Option<Vec<Id>> {
    let both = |all: Option<Vec<Id>>, mut more: Vec<Id>| match all {
        None => more,
        Some(all) => {
            more.retain(|file| all.binary_search(file).is_ok());
            more
        }
    };
    match need {
        Need::Nothing => None,
        Need::All(trigrams) => {
            let mut all: Option<Vec<Id>> = None;
            for trigram in trigrams {
                if all.as_ref().is_some_and(Vec::is_empty) {
                    break;
                }
                let mut more = Vec::new();
                look(*trigram, &mut more);
                all = Some(both(all, more));
            }
            all
        }
        Need::Every(needs) => {
            let found = needs.iter().filter_map(|need| fulfilled(need, look));
            found.fold(None, |all, more| Some(both(all, more)))
        }
        Need::Some(needs) => {
            let mut any = Vec::new();
            for need in needs {
                any.extend(fulfilled(need, look)?);
            }
            any.sort_unstable();
            any.dedup();
            Some(any)
        }
    }
}

fn need(hir: &Hir) -> Need {
    match hir.kind() {
        HirKind::Concat(parts) => concat(parts),
        HirKind::Alternation(parts) => one_of(parts.iter().map(need).collect()),
        HirKind::Capture(capture) => need(&capture.sub),
        HirKind::Repetition(repeated) if repeated.min > 0 => need(&repeated.sub),
        HirKind::Literal(_) | HirKind::Class(_) => concat(std::slice::from_ref(hir)),
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => Need::Nothing,
    }
}

fn one_of(needs: Vec<Need>) -> Need {
    if needs.contains(&Need::Nothing) { Need::Nothing } else { Need::Some(needs) }
}

/// Combines the conditions of consecutive parts: strings grow over parts with few alternatives, and
/// end at others.
fn concat(parts: &[Hir]) -> Need {
    let mut needs = Vec::new();
    let mut run: Vec<Vec<u8>> = vec![Vec::new()];
    for part in parts {
        if matches!(part.kind(), HirKind::Look(_) | HirKind::Empty) {
            continue;
        }
        match strings(part).and_then(|strings| longer(&run, &strings)) {
            Some(next) => run = next,
            None => {
                needs.push(trigrams(&std::mem::replace(&mut run, vec![Vec::new()])));
                match strings(part) {
                    Some(strings) if strings.len() <= MAX_STRINGS => run = strings,
                    _ => needs.push(if matches!(part.kind(), HirKind::Class(_)) {
                        Need::Nothing
                    } else {
                        need(part)
                    }),
                }
            }
        }
    }
    needs.push(trigrams(&run));
    needs.retain(|need| *need != Need::Nothing);
    match needs.len() {
        0 => Need::Nothing,
        1 => needs.pop().unwrap_or(Need::Nothing),
        _ => Need::Every(needs),
    }
}

/// Returns the alternative strings of a part, in ASCII lower case; `None` where they are many.
fn strings(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let mut strings: Vec<Vec<u8>> = match hir.kind() {
        HirKind::Literal(literal) => vec![literal.0.to_vec()],
        HirKind::Capture(capture) => return strings(&capture.sub),
        HirKind::Class(Class::Unicode(class)) => {
            let count: usize = class.iter().map(|range| range.len()).sum();
            if count > MAX_CLASS {
                return None;
            }
            let characters = class.iter().flat_map(|range| range.start()..=range.end());
            characters.map(|character| character.to_string().into_bytes()).collect()
        }
        HirKind::Class(Class::Bytes(class)) => {
            let count: usize = class.iter().map(|range| range.len()).sum();
            if count > MAX_CLASS {
                return None;
            }
            class.iter().flat_map(|range| range.start()..=range.end()).map(|byte| vec![byte]).collect()
        }
        _ => return None,
    };
    strings.iter_mut().for_each(|string| string.make_ascii_lowercase());
    strings.sort_unstable();
    strings.dedup();
    Some(strings)
}

/// Returns each string continued with each of others; `None` where that is too much.
fn longer(run: &[Vec<u8>], with: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let longest = |strings: &[Vec<u8>]| strings.iter().map(Vec::len).max().unwrap_or(0);
    if run.len() * with.len() > MAX_STRINGS || longest(run) + longest(with) > MAX_STRING {
        return None;
    }
    Some(run.iter().flat_map(|one| with.iter().map(move |other| [one.as_slice(), other].concat())).collect())
}

fn trigrams(strings: &[Vec<u8>]) -> Need {
    let of = |string: &Vec<u8>| {
        let within = string.split(|byte| matches!(byte, b'\n' | b'\r'));
        let mut all: Vec<[u8; 3]> =
            within.flat_map(|line| line.windows(3)).filter_map(|three| three.try_into().ok()).collect();
        all.sort_unstable();
        all.dedup();
        if all.is_empty() { Need::Nothing } else { Need::All(all) }
    };
    match strings {
        [] => Need::Nothing,
        [one] => of(one),
        more => one_of(more.iter().map(of).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the condition of a pattern: `abc&bcd` and `(x|y)`.
    fn shown(pattern: &str, case_insensitive: bool) -> String {
        fn show(need: &Need) -> String {
            let joined = |needs: &[Need], with: &str| needs.iter().map(show).collect::<Vec<_>>().join(with);
            match need {
                Need::Nothing => "-".to_owned(),
                Need::All(all) => {
                    all.iter().map(|one| String::from_utf8_lossy(one)).collect::<Vec<_>>().join("&")
                }
                Need::Every(needs) => joined(needs, "&"),
                Need::Some(needs) => format!("({})", joined(needs, "|")),
            }
        }
        let mut parser = ParserBuilder::new();
        let hir = parser.case_insensitive(case_insensitive).utf8(false).build().parse(pattern).unwrap();
        show(&need(&hir))
    }

    #[test]
    fn patterns_need_trigrams() {
        assert_eq!(shown("hello", false), "ell&hel&llo");
        assert_eq!(shown("HELLO", true), "ell&hel&llo");
        assert_eq!(shown("fn .*foo_bar", false), "fn &_ba&bar&foo&o_b&oo_");
        assert_eq!(shown("abc|xyz", false), "(abc|xyz)");
        assert_eq!(shown("abc|x", false), "-");
        assert_eq!(shown("(abc)+d?", false), "abc");
        assert_eq!(shown("a[bc]d", false), "(abd|acd)");
        assert_eq!(shown(".*", false), "-");
        assert_eq!(shown(r"\w+\s", false), "-");
        assert_eq!(shown("abc\ndef", false), "abc&def");
        assert_eq!(shown(r"\bfoo\b", false), "foo");
        // `k` has another form beyond ASCII: the Kelvin sign.
        assert_eq!(shown("book", true), "(boo&ook|boo&oo\u{fffd}&o\u{fffd}&\u{212a})");
    }
}
