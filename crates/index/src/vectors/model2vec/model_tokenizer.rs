//! A model's own tokenizer, kept within bounds.
//!
//! `tokenizer.json` is a program of sorts: chains of replacements, tables, patterns. The
//! `tokenizers` crate runs it, and was written for trusted models. So constructs that are known to
//! take unbounded memory or time are refused when the model is loaded, the growth of a text by a
//! chain of replacements is checked before it is run, and a panic in the crate becomes an error of
//! the model.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use base64::Engine as _;
use serde::Deserialize;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::{Encoding, NormalizedString, Normalizer as _, Tokenizer};

/// Maximum characters of a word; a longer one is unknown. Splitting a word takes time by the square
/// of this.
const MAX_WORD_CHARS: u64 = 1_000;
/// Maximum growth of a text by normalisation: twice that of a character in any of Unicode's forms.
const MAX_GROWTH: usize = 36;
/// Maximum length of a replacement for a character. SentencePiece's own have at most 18 characters.
const MAX_REPLACEMENT_BYTES: usize = 256;

/// A tokenizer.
pub(in crate::vectors) struct ModelTokenizer {
    tokenizer: Tokenizer,
    unknown: Option<u32>,
    /// One more than the greatest number of a token.
    bound: usize,
    /// Median length of a token in characters.
    median: usize,
    /// True if a text's growth has to be checked before it is normalised.
    grows: bool,
}

/// The settings in the file that are checked before it is given to the crate.
#[derive(Deserialize)]
struct TokenizerSettings<'a> {
    #[serde(borrow)]
    model: ModelSettings<'a>,
    normalizer: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct ModelSettings<'a> {
    #[serde(borrow)]
    unk_token: Option<Cow<'a, str>>,
    max_input_chars_per_word: Option<u64>,
}

impl ModelTokenizer {
    pub(in crate::vectors) fn read(bytes: &[u8]) -> Result<Self, String> {
        let settings: TokenizerSettings<'_> =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if settings.model.max_input_chars_per_word.is_some_and(|longest| longest > MAX_WORD_CHARS) {
            return Err(format!("its words may have more than {MAX_WORD_CHARS} characters"));
        }
        if let Some(normalizer) = &settings.normalizer {
            refuse_long_replacements(normalizer)?;
        }
        let mut tokenizer = catch_panics(|| Tokenizer::from_bytes(bytes))?;
        // Texts are cut here, and may have any length.
        tokenizer.with_padding(None);
        catch_panics(|| tokenizer.with_truncation(None).map(|_| ()))?;
        let vocabulary = tokenizer.get_vocab(true);
        let unknown = match &settings.model.unk_token {
            Some(token) => {
                let known = vocabulary.get(token.as_ref()).copied();
                Some(known.ok_or("the token for what is unknown isn't in its vocabulary")?)
            }
            None => None,
        };
        let mut lengths: Vec<usize> = vocabulary.keys().map(|token| token.chars().count()).collect();
        lengths.sort_unstable();
        let bound = vocabulary.values().max().map_or(0, |id| *id as usize + 1);
        let grows = tokenizer.get_normalizer().is_some_and(|normalizer| max_growth(normalizer) > MAX_GROWTH);
        Ok(Self { tokenizer, unknown, bound, median: median(&lengths), grows })
    }

    /// Returns one more than the greatest number of a token.
    pub(super) fn token_bound(&self) -> usize {
        self.bound
    }

    /// Returns the known tokens of a text, `most` at most.
    pub(super) fn tokens_of(&self, text: &str, most: usize) -> Result<Vec<u32>, String> {
        let end = text.char_indices().nth(most.saturating_mul(self.median)).map_or(text.len(), |(at, _)| at);
        let encoding = self.encode(text.get(..end).unwrap_or(text))?;
        let known = encoding.get_ids().iter().copied().filter(|id| Some(*id) != self.unknown);
        Ok(known.take(most).collect())
    }

    /// Returns the number of tokens of a text, unknown ones included.
    pub(in crate::vectors) fn count(&self, text: &str) -> Result<u64, String> {
        Ok(self.encode(text)?.get_ids().len() as u64)
    }

    fn encode(&self, text: &str) -> Result<Encoding, String> {
        if let Some(normalizer) = self.tokenizer.get_normalizer().filter(|_| self.grows) {
            let mut trial = NormalizedString::from(text);
            normalize_within_limit(normalizer, &mut trial, text.len() * MAX_GROWTH + MAX_REPLACEMENT_BYTES)?;
        }
        catch_panics(|| self.tokenizer.encode_fast(text, false))
    }
}

/// Returns the median; the mean of the middle two of an even number.
fn median(sorted: &[usize]) -> usize {
    let at = |place: usize| sorted.get(place).copied().unwrap_or(0);
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { (at(half.saturating_sub(1)) + at(half)) / 2 } else { at(half) }
}

/// Runs code of the crate; its errors and panics become the model's.
fn catch_panics<T, E: std::fmt::Display>(run: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("its tokenizer broke down".to_owned()),
    }
}

/// Returns the maximum growth of a text.
fn max_growth(normalizer: &NormalizerWrapper) -> usize {
    match normalizer {
        NormalizerWrapper::Sequence(steps) => {
            steps.as_ref().iter().map(max_growth).fold(1, usize::saturating_mul)
        }
        // A pattern may match between any two characters.
        NormalizerWrapper::Replace(replace) => replace.content.len().saturating_add(1),
        NormalizerWrapper::Prepend(prepend) => prepend.prepend.len().saturating_add(1),
        NormalizerWrapper::NFKC(_) | NormalizerWrapper::NFKD(_) => MAX_GROWTH / 2,
        NormalizerWrapper::Precompiled(_) => MAX_GROWTH / 2,
        NormalizerWrapper::BertNormalizer(_) | NormalizerWrapper::NFD(_) => 3,
        NormalizerWrapper::Nmt(_) | NormalizerWrapper::NFC(_) | NormalizerWrapper::ByteLevel(_) => 3,
        NormalizerWrapper::Lowercase(_) => 2,
        NormalizerWrapper::StripNormalizer(_) | NormalizerWrapper::StripAccents(_) => 1,
    }
}

/// Normalises step by step, as long as the text stays below `most` bytes.
fn normalize_within_limit(
    normalizer: &NormalizerWrapper,
    text: &mut NormalizedString,
    most: usize,
) -> Result<(), String> {
    if let NormalizerWrapper::Sequence(steps) = normalizer {
        return steps.as_ref().iter().try_for_each(|step| normalize_within_limit(step, text, most));
    }
    catch_panics(|| normalizer.normalize(text))?;
    if text.get().len() > most {
        return Err("its tokenizer makes texts longer without an end".to_owned());
    }
    Ok(())
}

/// Refuses replacements that no real tokenizer has: each step of a chain may grow a text by little.
fn refuse_long_replacements(normalizer: &serde_json::Value) -> Result<(), String> {
    use serde_json::Value;
    match normalizer {
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
            if text("content").len() > MAX_REPLACEMENT_BYTES || text("prepend").len() > MAX_REPLACEMENT_BYTES
            {
                return Err(format!("it replaces something by more than {MAX_REPLACEMENT_BYTES} bytes"));
            }
            if text("type") == "Precompiled" {
                refuse_long_entries(text("precompiled_charsmap"))?;
            }
            fields.values().try_for_each(refuse_long_replacements)
        }
        Value::Array(items) => items.iter().try_for_each(refuse_long_replacements),
        _ => Ok(()),
    }
}

/// Checks SentencePiece's table: the length of an index, the index, and texts with a zero after
/// each.
fn refuse_long_entries(table: &str) -> Result<(), String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(table);
    let bytes = bytes.map_err(|_| "its table of characters isn't base64")?;
    let (length, rest) = bytes.split_first_chunk().ok_or("its table of characters is cut off")?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let texts = rest.get(length..).ok_or("its table of characters is cut off")?;
    if texts.split(|byte| *byte == 0).any(|text| text.len() > MAX_REPLACEMENT_BYTES) {
        return Err(format!("it replaces a character by more than {MAX_REPLACEMENT_BYTES} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokenizer(normalizer: &str, model: &str) -> String {
        format!(
            r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": {normalizer},
            "pre_tokenizer": {{"type": "Whitespace"}}, "post_processor": null, "decoder": null, "model": {model}}}"#
        )
    }

    const WORD_LEVEL_MODEL: &str =
        r#"{"type": "WordLevel", "vocab": {"?": 0, "a": 1, "bb": 2}, "unk_token": "?"}"#;

    #[test]
    fn unknown_tokens_are_left_out_and_long_texts_cut() {
        let tokens = ModelTokenizer::read(tokenizer("null", WORD_LEVEL_MODEL).as_bytes()).unwrap();
        assert_eq!(tokens.token_bound(), 3);
        assert_eq!(tokens.tokens_of("a x bb a", 512).unwrap(), [1, 2, 1]);
        // The median length is 1: four characters of four tokens.
        assert_eq!(tokens.tokens_of("a bb a", 4).unwrap(), [1, 2]);
        assert_eq!(tokens.tokens_of("a a a", 2).unwrap(), [1]);
    }

    #[test]
    fn a_chain_of_replacements_that_explodes_is_refused() {
        let steps: Vec<String> = (0..30)
            .map(|_| {
                r#"{"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaaaaaaaa"}"#.to_owned()
            })
            .collect();
        let chain = format!(r#"{{"type": "Sequence", "normalizers": [{}]}}"#, steps.join(","));
        let tokens = ModelTokenizer::read(tokenizer(&chain, WORD_LEVEL_MODEL).as_bytes()).unwrap();
        assert!(tokens.tokens_of("bb bb", 512).is_ok());
        assert!(tokens.tokens_of("a", 512).unwrap_err().contains("longer"));
    }

    #[test]
    fn unbounded_tokenizers_are_refused() {
        let long = format!(r#"{{"type": "Prepend", "prepend": "{}"}}"#, "x".repeat(10_000));
        let words = r#"{"type": "WordPiece", "vocab": {"?": 0}, "unk_token": "?",
            "continuing_subword_prefix": "", "max_input_chars_per_word": 1000000}"#;
        for (normalizer, model) in
            [(long.as_str(), WORD_LEVEL_MODEL), ("null", words), ("null", "{}"), ("7", WORD_LEVEL_MODEL)]
        {
            assert!(
                ModelTokenizer::read(tokenizer(normalizer, model).as_bytes()).is_err(),
                "{normalizer} {model}"
            );
        }
        let padded = tokenizer("null", WORD_LEVEL_MODEL).replace(
            r#""padding": null"#,
            r#""padding": {"strategy": {"Fixed": 1000000000}, "direction": "Right", "pad_to_multiple_of": null,
                "pad_id": 1, "pad_type_id": 0, "pad_token": "a"}"#,
        );
        let tokens = ModelTokenizer::read(padded.as_bytes()).unwrap();
        assert_eq!(tokens.tokens_of("a", 512).unwrap(), [1]);
    }
}
