//! What `find` runs, and what it does besides.

use journeyman_syntax::shell::Word;

use super::readers::{VALUED, compares_times};
use super::unwrap::{Inner, Wrapped};

/// The words of `find`, taken apart.
pub(super) struct Actions {
    /// What its actions run.
    pub(super) inner: Vec<Vec<Word>>,
    /// All words but the actions that run something.
    pub(super) outside: Vec<Word>,
    /// Whether it is clear where each of them begins and ends.
    pub(super) clear: bool,
}

/// Takes the words of `find` apart. A `+` ends what runs only right after `{}`, as a word of its own.
pub(super) fn actions(words: &[Word]) -> Actions {
    let mut found = Actions { inner: Vec::new(), outside: Vec::with_capacity(words.len()), clear: true };
    let mut inside: Option<Vec<Word>> = None;
    let mut marked = false;
    for word in words {
        let text = word.text.as_str();
        let Some(inner) = &mut inside else {
            if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
                // To a test that takes a value it would be the value.
                found.clear &= !found
                    .outside
                    .last()
                    .is_some_and(|last| VALUED.contains(&last.text.as_str()) || compares_times(&last.text));
                inside = Some(Vec::new());
            } else {
                found.outside.push(word.clone());
            }
            continue;
        };
        // What isn't known could be the end.
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

/// What `find` with these arguments runs, if it runs anything.
pub(super) fn find(arguments: &[Word]) -> Option<Wrapped> {
    let actions = actions(arguments);
    if actions.inner.is_empty() {
        return None;
    }
    // In the directory of each file a name may lead to another program.
    let safe = !arguments.iter().any(|word| matches!(word.text.as_str(), "-execdir" | "-okdir" | "-ok"));
    Some(Wrapped {
        inner: actions.inner.into_iter().map(Inner::Words).collect(),
        transparent: safe,
        unclear: (!actions.clear).then_some("where what it runs ends isn't clear"),
        input: false,
    })
}
