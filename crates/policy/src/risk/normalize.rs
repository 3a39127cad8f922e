//! One form of text for all ways to write it: letter case, width, look-alike letters, accents,
//! invisible characters.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;

/// Maximum number of rounds until a text no longer changes. Two are enough for all characters of
/// Unicode 17; what a further one would change can't match a word.
const MAX_ROUNDS: usize = 4;

/// Returns `text` in lower case, without accents and invisible characters, with look-alikes of
/// other scripts as the letters that they look like. A change from small to capital letters becomes
/// a space, because it separates words of names (`deleteAll`). Idempotent.
pub(super) fn normalize(text: &str) -> String {
    let mut form = text.to_owned();
    for _ in 0..MAX_ROUNDS {
        let next = fold(&form);
        if next == form {
            break;
        }
        form = next;
    }
    form
}

fn fold(text: &str) -> String {
    let visible = text.chars().map(tag_to_ascii).filter(|c| !is_invisible(*c));
    let mut folded = String::with_capacity(text.len());
    let mut previous = ' ';
    for character in visible.nfkd().filter(|c| !is_combining_mark(*c)) {
        if previous.is_ascii_lowercase() && character.is_ascii_uppercase() {
            folded.push(' ');
        }
        previous = character;
        if character.is_ascii() {
            folded.push(character.to_ascii_lowercase());
        } else {
            let mut buffer = [0; 4];
            folded.extend(skeleton(character.encode_utf8(&mut buffer)).flat_map(char::to_lowercase));
        }
    }
    folded
}

/// Returns the ASCII character that an invisible tag character stands for: models read tag
/// characters.
fn tag_to_ascii(character: char) -> char {
    match u32::from(character) {
        tag @ 0xE0020..=0xE007E => char::from_u32(tag - 0xE0000).unwrap_or(character),
        _ => character,
    }
}

/// Returns true for control characters and for those that Unicode calls default ignorable
/// (`DerivedCoreProperties.txt`). White space is visible.
fn is_invisible(character: char) -> bool {
    if character.is_whitespace() {
        return false;
    }
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Returns true for Chinese characters.
pub(super) fn is_han(character: char) -> bool {
    matches!(character,
        '\u{3007}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{323af}')
}

/// Returns `word`, in lower case, with look-alikes replaced: digits by the letters for which they
/// are used, and letters that look alike by one of them.
pub(super) fn fold_lookalikes(word: &str) -> String {
    let plain: String = word
        .chars()
        .map(|character| match character {
            '0' => 'o',
            '1' | 'i' => 'l',
            '3' => 'e',
            '4' => 'a',
            '5' => 's',
            '7' => 't',
            other => other,
        })
        .collect();
    plain.replace("rn", "m").replace("vv", "w")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_character_is_normal_after_one_time() {
        for character in (0..=0x10_FFFF).filter_map(char::from_u32) {
            let text = character.to_string();
            let once = normalize(&text);
            // One that doesn't change at all is normal.
            assert!(once == text || normalize(&once) == once, "{character:?}");
        }
    }

    proptest! {
        #[test]
        fn normalizing_is_idempotent(text in any::<String>()) {
            let once = normalize(&text);
            prop_assert_eq!(normalize(&once), once);
        }
    }
}
