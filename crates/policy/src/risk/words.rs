//! Word lists, and finding their words in a task.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use aho_corasick::AhoCorasick;
use rust_stemmers::{Algorithm, Stemmer};
use serde::Deserialize;

use super::normalize::{fold_lookalikes, is_han, normalize};

/// The built-in word lists.
const WORD_LISTS: [&str; 2] = [include_str!("words-en.toml"), include_str!("words-zh.toml")];
/// Maximum number of neighbouring words that are joined: more than the letters of most words of
/// the lists, for words that are written with spaces between letters.
const MAX_JOINED_WORDS: usize = 16;
/// Maximum length of joined words, in bytes: more than the longest phrase of the lists.
const MAX_JOINED_BYTES: usize = 40;
/// Minimum length of a word that is found at the beginning of a longer one (`deletefiles`), in
/// bytes. Shorter ones begin words of all kinds.
const MIN_LEADING_WORD_BYTES: usize = 6;
/// Minimum length of a word that is found in pieces (`de lete`), in bytes.
const MIN_PIECED_BYTES: usize = 3;

/// The meaning of a word for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WordClass {
    /// The task is of high risk.
    High,
    /// The task makes something that stands alone.
    Low,
    /// The task makes something of a known kind, such as a game.
    Kind,
    /// Something new is made.
    Making,
    /// A keyboard, a window: a game may use them.
    Device,
    /// All of something, or again and again.
    Quantity,
    /// Things that only a program has, of which all may be meant.
    Counted,
    /// Things that a user may have.
    Kept,
    /// Parts of a program, which may be those of one that exists.
    Part,
    /// Parts of a text.
    Data,
    /// Nothing: other words decide.
    Plain,
}

const ALL_WORD_CLASSES: [WordClass; 11] = [
    WordClass::High,
    WordClass::Low,
    WordClass::Kind,
    WordClass::Making,
    WordClass::Device,
    WordClass::Quantity,
    WordClass::Counted,
    WordClass::Kept,
    WordClass::Part,
    WordClass::Data,
    WordClass::Plain,
];

/// A file of words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WordList {
    version: u32,
    language: String,
    high: Vec<WordGroup>,
    low: Vec<WordGroup>,
    kind: Vec<WordGroup>,
    making: Vec<WordGroup>,
    device: Vec<WordGroup>,
    quantity: Vec<WordGroup>,
    counted: Vec<WordGroup>,
    kept: Vec<WordGroup>,
    part: Vec<WordGroup>,
    data: Vec<WordGroup>,
    plain: Vec<WordGroup>,
}

/// Words that say the same about a task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WordGroup {
    about: String,
    words: Vec<String>,
}

/// A word that was found in a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatchedWord<'a> {
    /// The word as the list has it.
    pub(super) word: &'a str,
    /// A clause about the task, without its subject.
    pub(super) about: &'a str,
}

/// The words of all lists.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    /// The languages and versions.
    pub(super) versions: String,
    classes: HashMap<WordClass, ClassWords>,
}

/// The words of one class.
#[derive(Debug, Default)]
struct ClassWords {
    entries: Vec<VocabularyEntry>,
    /// Forms of English words and phrases, without spaces, with the entries.
    forms: HashMap<String, Vec<usize>>,
    /// Chinese words, by entry.
    han: Option<AhoCorasick>,
    han_entries: Vec<usize>,
}

#[derive(Debug)]
struct VocabularyEntry {
    word: String,
    about: String,
    /// The number of English words.
    length: usize,
}

impl VocabularyEntry {
    fn to_matched_word(&self) -> MatchedWord<'_> {
        MatchedWord { word: &self.word, about: &self.about }
    }
}

/// A word in a task.
#[derive(Debug)]
pub(super) struct Occurrence<'a> {
    pub(super) place: WordPlace,
    pub(super) word: MatchedWord<'a>,
}

/// The place of a word in a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordPlace {
    /// Numbers of English words.
    Latin(Range<usize>),
    /// Bytes of the text without anything but letters and digits.
    Han(Range<usize>),
}

impl WordPlace {
    /// Returns true if another place is a part of this one, and not all of it.
    fn strictly_contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Latin(this), Self::Latin(other)) | (Self::Han(this), Self::Han(other)) => {
                this.start <= other.start && other.end <= this.end && this != other
            }
            _ => false,
        }
    }
}

impl Vocabulary {
    /// Reads the built-in lists. Without them, which a test rules out, every task is of high risk.
    pub(super) fn built_in() -> Self {
        let lists: Result<Vec<WordList>, _> = WORD_LISTS.iter().map(|text| toml::from_str(text)).collect();
        lists.map(Self::new).unwrap_or_default()
    }

    fn new(lists: Vec<WordList>) -> Self {
        let versions: Vec<String> =
            lists.iter().map(|list| format!("{} {}", list.language, list.version)).collect();
        let mut classes: HashMap<WordClass, Vec<WordGroup>> = HashMap::new();
        for list in lists {
            let groups = [
                list.high,
                list.low,
                list.kind,
                list.making,
                list.device,
                list.quantity,
                list.counted,
                list.kept,
                list.part,
                list.data,
                list.plain,
            ];
            for (class, groups) in ALL_WORD_CLASSES.into_iter().zip(groups) {
                classes.entry(class).or_default().extend(groups);
            }
        }
        let classes = classes.into_iter().map(|(class, groups)| (class, ClassWords::new(groups))).collect();
        Self { versions: versions.join(", "), classes }
    }

    /// Returns the first word of `class` in `task`.
    pub(super) fn find_first(&self, task: &TaskWords, class: WordClass) -> Option<MatchedWord<'_>> {
        let words = self.classes.get(&class)?;
        let place = words.find_han(task).or_else(|| words.find_latin(task, class == WordClass::High))?;
        Some(words.entries.get(place)?.to_matched_word())
    }

    /// Returns the words of `task` that are of `class`, and not part of a longer word of a class
    /// that has no conditions.
    pub(super) fn find_each(&self, task: &TaskWords, class: WordClass) -> Vec<Occurrence<'_>> {
        let covers = [WordClass::Kind, WordClass::Low, WordClass::Plain];
        let covering: Vec<_> = covers.iter().flat_map(|cover| self.find_places(task, *cover)).collect();
        let is_covered = |place: &WordPlace| covering.iter().any(|(cover, _)| cover.strictly_contains(place));
        let found = self.find_places(task, class).into_iter().filter(|(place, _)| !is_covered(place));
        found.map(|(place, entry)| Occurrence { place, word: entry.to_matched_word() }).collect()
    }

    fn find_places(&self, task: &TaskWords, class: WordClass) -> Vec<(WordPlace, &VocabularyEntry)> {
        let Some(words) = self.classes.get(&class) else { return Vec::new() };
        let latin = (0..task.latin.len()).flat_map(|start| {
            let phrases = task.phrase_lengths(start).filter_map(move |length| {
                Some((WordPlace::Latin(start..start + length), words.find_phrase(task, start, length)?))
            });
            phrases.collect::<Vec<_>>()
        });
        let han = words.han.iter().flat_map(|han| han.find_overlapping_iter(&task.squeezed));
        let han = han.filter_map(|found| {
            Some((WordPlace::Han(found.range()), *words.han_entries.get(found.pattern().as_usize())?))
        });
        latin.chain(han).filter_map(|(place, entry)| Some((place, words.entries.get(entry)?))).collect()
    }

    /// Returns the first word of `task`, or the first Chinese character, that no list has.
    pub(super) fn find_unknown(&self, task: &TaskWords) -> Option<String> {
        let mut is_known = vec![false; task.latin.len()];
        for start in 0..task.latin.len() {
            let known = |length: &usize| {
                self.classes.values().any(|words| words.find_phrase(task, start, *length).is_some())
            };
            let longest = task.phrase_lengths(start).rev().find(known).unwrap_or(0);
            is_known.iter_mut().skip(start).take(longest).for_each(|word| *word = true);
        }
        let is_number = |word: &LatinWord| word.text.bytes().all(|byte| byte.is_ascii_digit());
        let unknown = task.latin.iter().zip(is_known).find(|(word, is_known)| !is_known && !is_number(word));
        unknown.map(|(word, _)| word.text.clone()).or_else(|| self.find_unknown_letter(task))
    }

    /// Returns the first letter of another script than the Latin one that is part of no word.
    fn find_unknown_letter(&self, task: &TaskWords) -> Option<String> {
        let mut known_until = vec![0; task.squeezed.len()];
        let searchers = self.classes.values().filter_map(|words| words.han.as_ref());
        for found in searchers.flat_map(|searcher| searcher.find_overlapping_iter(&task.squeezed)) {
            if let Some(end) = known_until.get_mut(found.start()) {
                *end = found.end().max(*end);
            }
        }
        let mut known = 0;
        task.squeezed.char_indices().find_map(|(place, letter)| {
            known = known_until.get(place).copied().unwrap_or(0).max(known);
            (place >= known && !letter.is_ascii()).then(|| letter.to_string())
        })
    }
}

impl ClassWords {
    fn new(groups: Vec<WordGroup>) -> Self {
        let mut words = Self::default();
        let mut han = Vec::new();
        for WordGroup { about, words: group } in groups {
            for word in group {
                let task = TaskWords::new(&word);
                let place = words.entries.len();
                if word.chars().any(is_han) {
                    words.han_entries.push(place);
                    han.push(task.squeezed.clone());
                } else {
                    for form in task.word_forms(0, task.latin.len()) {
                        words.forms.entry(form.clone()).or_default().push(place);
                    }
                }
                words.entries.push(VocabularyEntry { word, about: about.clone(), length: task.latin.len() });
            }
        }
        words.han = AhoCorasick::new(han).ok();
        words
    }

    fn find_han(&self, task: &TaskWords) -> Option<usize> {
        let found = self.han.as_ref()?.find(&task.squeezed)?;
        self.han_entries.get(found.pattern().as_usize()).copied()
    }

    /// Returns the entry that equals `length` words from `start`.
    fn find_phrase(&self, task: &TaskWords, start: usize, length: usize) -> Option<usize> {
        let places = task.word_forms(start, length).iter().filter_map(|form| self.forms.get(form)).flatten();
        places.copied().find(|place| self.entries.get(*place).is_some_and(|entry| entry.length == length))
    }

    /// Returns the entry of which `length` words from `start` are the pieces.
    fn find_pieces(&self, task: &TaskWords, start: usize, length: usize) -> Option<usize> {
        let forms = task.word_forms(start, length).iter().filter(|form| form.len() >= MIN_PIECED_BYTES);
        forms.filter_map(|form| self.forms.get(form)?.first().copied()).next()
    }

    /// Finds an English word or phrase, of several at one place the longest. A `lenient` search
    /// also takes words in pieces, and words at the beginning of others.
    fn find_latin(&self, task: &TaskWords, lenient: bool) -> Option<usize> {
        (0..task.latin.len()).find_map(|start| {
            let phrase = |length| self.find_phrase(task, start, length);
            let pieces = |length| if lenient { self.find_pieces(task, start, length) } else { None };
            let longest =
                task.phrase_lengths(start).rev().find_map(|length| phrase(length).or_else(|| pieces(length)));
            longest.or_else(|| if lenient { self.find_prefix(&task.latin.get(start)?.glance) } else { None })
        })
    }

    fn find_prefix(&self, word: &str) -> Option<usize> {
        let lengths = MIN_LEADING_WORD_BYTES..word.len().min(MAX_JOINED_BYTES);
        lengths.filter_map(|length| self.forms.get(word.get(..length)?)).flatten().copied().find(|place| {
            self.entries
                .get(*place)
                .is_some_and(|entry| entry.length == 1 && entry.word.len() >= MIN_LEADING_WORD_BYTES)
        })
    }
}

/// The words of a task, in the form in which they are compared.
pub(super) struct TaskWords {
    latin: Vec<LatinWord>,
    /// The text without anything but letters and digits.
    squeezed: String,
}

struct LatinWord {
    text: String,
    glance: String,
    /// The stem, at a glance.
    stem: String,
    /// The forms of the words from this one on, by their number less one. Each class looks for
    /// them.
    forms: Vec<OnceCell<Vec<String>>>,
}

impl TaskWords {
    pub(super) fn new(text: &str) -> Self {
        let form = normalize(text);
        let is_latin = |c: char| c.is_ascii_alphanumeric();
        let words = form.split(|c| !is_latin(c)).filter(|word| !word.is_empty());
        let latin = words.map(|word| LatinWord {
            text: word.to_owned(),
            glance: fold_lookalikes(word),
            stem: stem(word),
            forms: Vec::new(),
        });
        let squeezed = form.chars().filter(|c| c.is_alphanumeric()).collect();
        let mut task = Self { latin: latin.collect(), squeezed };
        for start in 0..task.latin.len() {
            let lengths = task.phrase_lengths(start);
            if let Some(word) = task.latin.get_mut(start) {
                word.forms.resize(*lengths.end(), OnceCell::new());
            }
        }
        task
    }

    /// Returns the English words as they are written.
    pub(super) fn latin_words(&self) -> impl Iterator<Item = &str> {
        self.latin.iter().map(|word| word.text.as_str())
    }

    /// Returns the stem of an English word.
    pub(super) fn stem_at(&self, place: usize) -> Option<&str> {
        self.latin.get(place).map(|word| word.stem.as_str())
    }

    /// Returns the text without anything but letters and digits.
    pub(super) fn letters_and_digits(&self) -> &str {
        &self.squeezed
    }

    /// Returns the numbers of words from `start` that may be one word or phrase.
    fn phrase_lengths(&self, start: usize) -> std::ops::RangeInclusive<usize> {
        let following = self.latin.iter().skip(start).take(MAX_JOINED_WORDS);
        let joined = following.scan(0, |bytes, word| {
            *bytes += word.text.len();
            (*bytes <= MAX_JOINED_BYTES).then_some(())
        });
        1..=joined.count().max(1)
    }

    /// Returns the forms of `length` words from `start`, without spaces: as one word, by its stem,
    /// and by the stem of each. None for more words than may be one phrase.
    fn word_forms(&self, start: usize, length: usize) -> &[String] {
        let cell = self.latin.get(start).and_then(|word| word.forms.get(length.checked_sub(1)?));
        cell.map_or(&[], |cell| cell.get_or_init(|| self.create_forms(start, length)))
    }

    fn create_forms(&self, start: usize, length: usize) -> Vec<String> {
        let words = self.latin.get(start..start + length).unwrap_or_default();
        let text: String = words.iter().map(|word| word.text.as_str()).collect();
        let stems: String = words.iter().map(|word| word.stem.as_str()).collect();
        let mut forms = vec![fold_lookalikes(&text), stem(&text), stems];
        forms.dedup();
        forms
    }
}

/// Returns the stem of an English word, at a glance.
fn stem(word: &str) -> String {
    fold_lookalikes(&Stemmer::create(Algorithm::English).stem(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_lists_are_read() {
        let vocabulary = Vocabulary::built_in();
        assert_eq!(vocabulary.versions, "en 2, zh 2");
        for class in ALL_WORD_CLASSES {
            assert!(vocabulary.classes[&class].entries.len() > 10, "{class:?}");
        }
    }

    #[test]
    fn every_word_is_found_and_no_word_hides_another_one() {
        let vocabulary = Vocabulary::built_in();
        let mut wrong = Vec::new();
        for class in ALL_WORD_CLASSES {
            for entry in &vocabulary.classes[&class].entries {
                let task = TaskWords::new(&entry.word);
                let found = vocabulary.find_first(&task, class);
                let hidden =
                    vocabulary.find_first(&task, WordClass::High).filter(|_| class != WordClass::High);
                let unknown = vocabulary.find_unknown(&task).filter(|_| class != WordClass::High);
                if found.is_none() || hidden.is_some() || unknown.is_some() {
                    wrong.push((class, entry.word.as_str(), hidden.map(|found| found.word)));
                }
            }
        }
        assert_eq!(wrong, []);
    }
}
