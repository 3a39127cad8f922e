//! Narrowing a regex search to candidate files, by the trigrams that a match must have.
//!
//! After Russ Cox, "Regular Expression Matching with a Trigram Index" (2012): the parts of a
//! pattern yield strings that a match must contain, these yield trigrams, and files without them
//! are skipped. The candidates are a superset of the files with a match; the caller searches them.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::analysis::ContentType;
use crate::segment::DocumentId;
use crate::snapshot::Snapshot;

/// Maximum alternative strings of a run of a pattern's parts.
const MAX_ALTERNATIVE_STRINGS: usize = 16;
/// Maximum bytes of each: by then it has trigrams enough.
const MAX_ALTERNATIVE_BYTES: usize = 64;
/// Maximum characters of a class that are expanded.
const MAX_CLASS_CHARS: usize = 8;
/// Maximum nesting of a pattern's parts.
const MAX_DEPTH: u32 = 100;

/// A condition on the trigrams of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TrigramCondition {
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
pub fn escape_literal(text: &str) -> String {
    regex_syntax::escape(text)
}

/// A pattern that can't be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

impl PatternError {
    pub(crate) fn new(error: &impl std::fmt::Display) -> Self {
        // The last line has the fault; those before show the pattern.
        let text = error.to_string();
        let last = text.lines().next_back().unwrap_or_default().trim_start_matches("error: ");
        Self(format!("the pattern is no regular expression: {last}"))
    }
}

/// Files that may have a match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CandidateFiles {
    /// Their numbers, by path.
    pub files: Vec<DocumentId>,
    /// True if the pattern has no condition: these are all files.
    pub unfiltered: bool,
}

/// Returns the living files that a pattern may match, in the syntax of the `regex` crate. Files
/// without known trigrams, because they are minified or too long, are always among them; binary
/// ones never are.
///
/// # Errors
/// [`PatternError`] for an invalid pattern.
pub fn candidate_files(
    snapshot: &Snapshot,
    pattern: &str,
    case_insensitive: bool,
) -> Result<CandidateFiles, PatternError> {
    let mut parser = ParserBuilder::new();
    parser.case_insensitive(case_insensitive).utf8(false).nest_limit(MAX_DEPTH);
    let hir = parser.build().parse(pattern).map_err(|error| PatternError::new(&error))?;
    let need = trigram_condition_of(&hir);
    let unfiltered = need == TrigramCondition::Nothing;
    let mut files: Vec<DocumentId> = Vec::new();
    for living in snapshot.live_segments() {
        let wanted = files_meeting_condition(&need, &|trigram, list| {
            living.segment.inverted_index().visit_files_with_trigram(trigram, |file| list.push(file))
        });
        for (file, record) in living.live_files() {
            let wanted_here = || wanted.as_ref().is_none_or(|wanted| wanted.binary_search(&file).is_ok());
            let read = match record.content {
                ContentType::Text => record.flags.veiled || wanted_here(),
                ContentType::Minified | ContentType::Huge => true,
                ContentType::Binary | ContentType::Unreadable => false,
            };
            if read {
                files.push(living.snapshot_number(file));
            }
        }
    }
    files.sort_by_cached_key(|file| snapshot.file(*file).map(|file| file.path_bytes().to_vec()));
    Ok(CandidateFiles { files, unfiltered })
}

/// Returns the files that meet a condition, ascending; `None` where there is none.
fn files_meeting_condition(
    need: &TrigramCondition,
    look: &impl Fn([u8; 3], &mut Vec<DocumentId>),
) -> Option<Vec<DocumentId>> {
    let both = |all: Option<Vec<DocumentId>>, mut more: Vec<DocumentId>| match all {
        None => more,
        Some(all) => {
            more.retain(|file| all.binary_search(file).is_ok());
            more
        }
    };
    match need {
        TrigramCondition::Nothing => None,
        TrigramCondition::All(trigrams) => {
            let mut all: Option<Vec<DocumentId>> = None;
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
        TrigramCondition::Every(needs) => {
            let found = needs.iter().filter_map(|need| files_meeting_condition(need, look));
            found.fold(None, |all, more| Some(both(all, more)))
        }
        TrigramCondition::Some(needs) => {
            let mut any = Vec::new();
            for need in needs {
                any.extend(files_meeting_condition(need, look)?);
            }
            any.sort_unstable();
            any.dedup();
            Some(any)
        }
    }
}

fn trigram_condition_of(hir: &Hir) -> TrigramCondition {
    match hir.kind() {
        HirKind::Concat(parts) => condition_of_sequence(parts),
        HirKind::Alternation(parts) => {
            condition_of_alternatives(parts.iter().map(trigram_condition_of).collect())
        }
        HirKind::Capture(capture) => trigram_condition_of(&capture.sub),
        HirKind::Repetition(repeated) if repeated.min > 0 => trigram_condition_of(&repeated.sub),
        HirKind::Literal(_) | HirKind::Class(_) => condition_of_sequence(std::slice::from_ref(hir)),
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => TrigramCondition::Nothing,
    }
}

fn condition_of_alternatives(needs: Vec<TrigramCondition>) -> TrigramCondition {
    if needs.contains(&TrigramCondition::Nothing) {
        TrigramCondition::Nothing
    } else {
        TrigramCondition::Some(needs)
    }
}

/// Combines the conditions of consecutive parts: strings grow over parts with few alternatives, and
/// end at others.
fn condition_of_sequence(parts: &[Hir]) -> TrigramCondition {
    let mut needs = Vec::new();
    let mut run: Vec<Vec<u8>> = vec![Vec::new()];
    for part in parts {
        if matches!(part.kind(), HirKind::Look(_) | HirKind::Empty) {
            continue;
        }
        match alternative_strings(part).and_then(|strings| append_strings(&run, &strings)) {
            Some(next) => run = next,
            None => {
                needs.push(condition_of_strings(&std::mem::replace(&mut run, vec![Vec::new()])));
                match alternative_strings(part) {
                    Some(strings) if strings.len() <= MAX_ALTERNATIVE_STRINGS => run = strings,
                    _ => needs.push(if matches!(part.kind(), HirKind::Class(_)) {
                        TrigramCondition::Nothing
                    } else {
                        trigram_condition_of(part)
                    }),
                }
            }
        }
    }
    needs.push(condition_of_strings(&run));
    needs.retain(|need| *need != TrigramCondition::Nothing);
    match needs.len() {
        0 => TrigramCondition::Nothing,
        1 => needs.pop().unwrap_or(TrigramCondition::Nothing),
        _ => TrigramCondition::Every(needs),
    }
}

/// Returns the alternative strings of a part, in ASCII lower case; `None` where they are many.
fn alternative_strings(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let mut strings: Vec<Vec<u8>> = match hir.kind() {
        HirKind::Literal(literal) => vec![literal.0.to_vec()],
        HirKind::Capture(capture) => return alternative_strings(&capture.sub),
        HirKind::Class(Class::Unicode(class)) => {
            let count: usize = class.iter().map(|range| range.len()).sum();
            if count > MAX_CLASS_CHARS {
                return None;
            }
            let characters = class.iter().flat_map(|range| range.start()..=range.end());
            characters.map(|character| character.to_string().into_bytes()).collect()
        }
        HirKind::Class(Class::Bytes(class)) => {
            let count: usize = class.iter().map(|range| range.len()).sum();
            if count > MAX_CLASS_CHARS {
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
fn append_strings(run: &[Vec<u8>], with: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let longest = |strings: &[Vec<u8>]| strings.iter().map(Vec::len).max().unwrap_or(0);
    if run.len() * with.len() > MAX_ALTERNATIVE_STRINGS
        || longest(run) + longest(with) > MAX_ALTERNATIVE_BYTES
    {
        return None;
    }
    Some(run.iter().flat_map(|one| with.iter().map(move |other| [one.as_slice(), other].concat())).collect())
}

fn condition_of_strings(strings: &[Vec<u8>]) -> TrigramCondition {
    let of = |string: &Vec<u8>| {
        let within = string.split(|byte| matches!(byte, b'\n' | b'\r'));
        let mut all: Vec<[u8; 3]> =
            within.flat_map(|line| line.windows(3)).filter_map(|three| three.try_into().ok()).collect();
        all.sort_unstable();
        all.dedup();
        if all.is_empty() { TrigramCondition::Nothing } else { TrigramCondition::All(all) }
    };
    match strings {
        [] => TrigramCondition::Nothing,
        [one] => of(one),
        more => condition_of_alternatives(more.iter().map(of).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the condition of a pattern: `abc&bcd` and `(x|y)`.
    fn shown(pattern: &str, case_insensitive: bool) -> String {
        fn show(need: &TrigramCondition) -> String {
            let joined = |needs: &[TrigramCondition], with: &str| {
                needs.iter().map(show).collect::<Vec<_>>().join(with)
            };
            match need {
                TrigramCondition::Nothing => "-".to_owned(),
                TrigramCondition::All(all) => {
                    all.iter().map(|one| String::from_utf8_lossy(one)).collect::<Vec<_>>().join("&")
                }
                TrigramCondition::Every(needs) => joined(needs, "&"),
                TrigramCondition::Some(needs) => format!("({})", joined(needs, "|")),
            }
        }
        let mut parser = ParserBuilder::new();
        let hir = parser.case_insensitive(case_insensitive).utf8(false).build().parse(pattern).unwrap();
        show(&trigram_condition_of(&hir))
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
