//! Finds the programs that `find` runs, and its other actions.

use journeyman_syntax::shell::Word;

use super::unwrap_result::{InnerCommand, UnwrapResult};

/// Tests and options of `find` with a value.
pub(super) const VALUED_TESTS: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-samefile",
    "-lname",
    "-ilname",
    "-fstype",
    "-printf",
];

/// The words of `find`, split into actions.
pub(super) struct FindActions {
    /// The programs that its actions run.
    pub(super) inner: Vec<Vec<Word>>,
    /// All words except the actions that run a program.
    pub(super) outside: Vec<Word>,
    /// True if the beginning and end of each action is certain.
    pub(super) clear: bool,
}

/// Splits the words of `find`. A `+` ends an action only right after `{}`, as a word of its own.
pub(super) fn split_actions(words: &[Word]) -> FindActions {
    let mut found = FindActions { inner: Vec::new(), outside: Vec::with_capacity(words.len()), clear: true };
    let mut inside: Option<Vec<Word>> = None;
    let mut marked = false;
    for word in words {
        let text = word.text.as_str();
        let Some(inner) = &mut inside else {
            if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
                // For a test with a value, this word would be the value.
                found.clear &= !found.outside.last().is_some_and(|last| {
                    VALUED_TESTS.contains(&last.text.as_str()) || is_time_comparison(&last.text)
                });
                inside = Some(Vec::new());
            } else {
                found.outside.push(word.clone());
            }
            continue;
        };
        // An unknown word could be the end.
        found.clear &= word.known && !word.dialect;
        if text == ";" || (text == "+" && marked) {
            found.inner.extend(inside.take());
        } else {
            found.clear &= text != "+";
            inner.push(if text.contains("{}") { Word::unknown(text) } else { word.clone() });
        }
        marked = text == "{}";
    }
    if let Some(inner) = inside {
        found.clear = false;
        found.inner.push(inner);
    }
    found
}

/// Returns the programs that `find` with these arguments runs, if any.
pub(super) fn unwrap_find(arguments: &[Word]) -> Option<UnwrapResult> {
    let actions = split_actions(arguments);
    if actions.inner.is_empty() {
        return None;
    }
    // In the directory of each file a name may mean another program.
    let safe = !arguments.iter().any(|word| matches!(word.text.as_str(), "-execdir" | "-okdir" | "-ok"));
    Some(UnwrapResult {
        inner: actions.inner.into_iter().map(InnerCommand::Words).collect(),
        transparent: safe,
        unclear: (!actions.clear).then_some("where what it runs ends isn't clear"),
        input: false,
    })
}

/// Returns true for tests such as `-newermt`: `-newer`, followed by the file's time and the time to
/// compare with.
pub(super) fn is_time_comparison(word: &str) -> bool {
    let which = word.strip_prefix("-newer").map(str::as_bytes);
    matches!(which, Some([b'a' | b'B' | b'c' | b'm', b'a' | b'B' | b'c' | b'm' | b't']))
}
