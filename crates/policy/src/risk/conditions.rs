//! Conditions of words that are harmless in some tasks alone.
//!
//! Plain words combine freely: "a program that lists each word of the keyboard input" has none that
//! says harm. So a task of low risk has to ask for a game or an exercise where it is about input
//! devices, about all of something, or goes on; and it refers to nothing that it doesn't begin.

use super::words::{MatchedWord, Occurrence, TaskWords, Vocabulary, WordClass, WordPlace};

/// English words that end the name of the thing that is made.
const NAME_ENDING_WORDS: &[&str] = &[
    "that", "which", "who", "where", "when", "while", "whose", "to", "for", "with", "without", "in", "on",
    "of", "and", "or", "but", "so", "using", "from", "into", "until", "it", "as", "by", "at", "then",
    "about",
];
/// English words that refer to a certain thing.
const DEFINITE_WORDS: &[&str] = &["the", "this", "these", "those"];
/// English words after which a part without an article is one that exists: "for app".
const PREPOSITIONS: &[&str] = &["for", "into", "inside", "onto", "to"];
/// Words for things that may exist already: "for the game". Other things have names of their own.
const EXISTING_KINDS: &[&str] = &[
    "game",
    "animation",
    "puzzle",
    "quiz",
    "calculator",
    "clock",
    "timer",
    "游戏",
    "遊戲",
    "动画",
    "计算器",
];
/// Parts of which one program has several.
const REPEATABLE_PARTS: &[&str] =
    &["list", "button", "method", "function", "class", "按钮", "方法", "函数", "函數", "类"];
/// Ends of Chinese words before one thing, as opposed to several: "一个程序".
const CHINESE_SINGULAR_ENDINGS: &[&str] = &["一个", "写个", "做个", "来个", "给个", "这个", "那个", "小个"];
/// Maximum number of words between an article and what it belongs to: "the new web page".
const MAX_ADJECTIVES: usize = 3;
/// Maximum number of words between a quantity and what it counts: "all the prime numbers".
const MAX_QUANTITY_DISTANCE: usize = 2;
/// Chinese words before a part, or before what a user may have, that exists.
const CHINESE_REFERENCE_PREFIXES: &[&str] = &[
    "放在", "放到", "放", "为", "给", "到", "在", "对", "把", "将", "让", "使", "这", "这个", "那", "那个",
    "该",
];
/// Ends of Chinese words before the thing that is made.
const CHINESE_MEASURE_ENDINGS: &[&str] = &["一个", "一首", "一幅", "一款", "个", "首", "款"];
/// Characters that end a clause.
const CLAUSE_ENDINGS: &[char] =
    &[',', ';', ':', '.', '!', '?', '\n', '，', '；', '：', '。', '！', '？', '、'];

/// A condition that a task doesn't meet.
#[derive(Debug)]
pub(super) enum UnmetCondition<'a> {
    /// A word that is harmless only in a game or an exercise, or not together with others.
    Word(MatchedWord<'a>),
    /// A reference to something that the task doesn't begin.
    Reference(MatchedWord<'a>),
}

impl Vocabulary {
    /// Returns the first condition that the words of a task don't meet.
    pub(super) fn find_unmet(&self, text: &str, task: &TaskWords) -> Option<UnmetCondition<'_>> {
        if let Some(word) = self.find_reference(task) {
            return Some(UnmetCondition::Reference(word));
        }
        let first = |class| self.find_each(task, class).into_iter().next().map(|found| found.word);
        let quantity = self.find_quantity(task);
        let device = first(WordClass::Device);
        let kept = || [WordClass::Kept, WordClass::Part, WordClass::Data].into_iter().find_map(first);
        match (quantity, device) {
            (None, None) => None,
            (Some(quantity), None) if kept().is_some() => Some(quantity),
            (Some(quantity), Some(_)) => Some(quantity),
            (one, other) => one.or(other).filter(|_| !self.asks_for_known_kind(text)),
        }
        .or_else(|| self.find_plural(task).filter(|_| !self.asks_for_known_kind(text)))
        .map(UnmetCondition::Word)
    }

    /// Returns a quantity of what isn't a program's own.
    fn find_quantity(&self, task: &TaskWords) -> Option<MatchedWord<'_>> {
        let counted = self.find_each(task, WordClass::Counted);
        let is_counted = |found: &Occurrence<'_>| {
            counted.iter().any(|counted| match (&found.place, &counted.place) {
                (WordPlace::Latin(quantity), WordPlace::Latin(counted)) => {
                    (quantity.end..=quantity.end + MAX_QUANTITY_DISTANCE).contains(&counted.start)
                }
                (WordPlace::Han(quantity), WordPlace::Han(counted)) => quantity.end == counted.start,
                _ => false,
            })
        };
        let all = self.find_each(task, WordClass::Quantity);
        all.into_iter().find(|found| !is_counted(found)).map(|found| found.word)
    }

    /// Returns several things that a user may have, or several programs.
    fn find_plural(&self, task: &TaskWords) -> Option<MatchedWord<'_>> {
        let words: Vec<&str> = task.latin_words().collect();
        let is_many = |place: &WordPlace| match place {
            WordPlace::Latin(place) => {
                let last = place.end.checked_sub(1).and_then(|last| words.get(last));
                last.is_some_and(|word| word.ends_with('s') && !word.ends_with("ss"))
            }
            WordPlace::Han(place) => {
                let before = task.letters_and_digits().get(..place.start).unwrap_or_default();
                before.ends_with('个') && !CHINESE_SINGULAR_ENDINGS.iter().any(|one| before.ends_with(one))
            }
        };
        let is_kept_or_program = |found: &Occurrence<'_>| !REPEATABLE_PARTS.contains(&found.word.word);
        let things =
            [WordClass::Kept, WordClass::Part].into_iter().flat_map(|class| self.find_each(task, class));
        things
            .into_iter()
            .filter(is_kept_or_program)
            .find(|found| is_many(&found.place))
            .map(|found| found.word)
    }

    /// Returns a part of a program, or what a user may have, that the text refers to and hasn't
    /// named before.
    fn find_reference(&self, task: &TaskWords) -> Option<MatchedWord<'_>> {
        let words: Vec<&str> = task.latin_words().collect();
        let is_reference = |place: &WordPlace| match place {
            WordPlace::Latin(place) => {
                let stem = task.stem_at(place.start);
                let is_new = !(0..place.start).any(|earlier| task.stem_at(earlier) == stem);
                let before = |distance: usize| place.start.checked_sub(distance).and_then(|at| words.get(at));
                let is_definite = (1..=MAX_ADJECTIVES + 1)
                    .map_while(before)
                    .take_while(|word| !NAME_ENDING_WORDS.contains(word))
                    .any(|word| DEFINITE_WORDS.contains(word));
                is_new && (is_definite || before(1).is_some_and(|word| PREPOSITIONS.contains(word)))
            }
            WordPlace::Han(place) => {
                let before = task.letters_and_digits().get(..place.start).unwrap_or_default();
                CHINESE_REFERENCE_PREFIXES.iter().any(|word| before.ends_with(word))
            }
        };
        let kinds = self.find_each(task, WordClass::Kind).into_iter();
        let kinds = kinds.filter(|found| EXISTING_KINDS.contains(&found.word.word));
        let parts =
            [WordClass::Part, WordClass::Kept].into_iter().flat_map(|class| self.find_each(task, class));
        parts.chain(kinds).find(|found| is_reference(&found.place)).map(|found| found.word)
    }

    /// Returns true if a text asks for something of a known kind: in its first clause, where the
    /// thing that is made has its name.
    fn asks_for_known_kind(&self, text: &str) -> bool {
        let clause = text.split(CLAUSE_ENDINGS).find(|clause| !clause.trim().is_empty()).unwrap_or_default();
        let task = TaskWords::new(clause);
        let name = task.latin_words().take_while(|word| !NAME_ENDING_WORDS.contains(word)).count();
        let squeezed = task.letters_and_digits();
        self.find_each(&task, WordClass::Kind).iter().any(|found| match &found.place {
            WordPlace::Latin(place) => place.start < name,
            WordPlace::Han(place) => {
                let before = squeezed.get(..place.start).unwrap_or_default();
                place.end == squeezed.len()
                    || CHINESE_MEASURE_ENDINGS.iter().any(|word| before.ends_with(word))
            }
        })
    }
}
