//! Parses the context window from a provider's error about a too long request.

use journeyman_protocol::{ModelLimits, Tokens};

/// Phrases before the limit, of OpenAI and compatible servers, Gemini, llama.cpp, vLLM, xAI,
/// Cerebras, Vertex AI, LM Studio, TGI, Cohere, DashScope, SGLang and others.
const PHRASES_BEFORE_LIMIT: &[&str] = &[
    "maximum context length",
    "available context size",
    "context window of",
    "maximum number of tokens allowed",
    "maximum prompt length is",
    "maximum model length of",
    "model token limit:",
    "exceeds the limit of",
    "while limit is",
    "only supports up to",
    "context length of only",
    "context length is only",
    "must have less than",
    "prompt cannot exceed",
    "input length should be [1,",
    "'s context length (",
];
/// Phrase after the limit, of Anthropic: `210000 tokens > 200000 maximum`.
const PHRASE_AFTER_LIMIT: &str = " maximum";
/// Phrase of Anthropic before a sum and the limit: `exceed context limit: 188240 + 21333 > 200000`.
const PHRASE_BEFORE_SUM: &str = "exceed context limit:";
/// Maximum distance of the limit from the phrase before it, in bytes.
const MAX_PHRASE_DISTANCE: usize = 4;

/// Returns the context window that a provider's error about a too long request names, if any.
#[must_use]
pub fn parse_context_window(message: &str) -> Option<Tokens> {
    let message = message.to_ascii_lowercase();
    let after_words = PHRASES_BEFORE_LIMIT.iter().find_map(|words| {
        let (_, rest) = message.split_once(words)?;
        let at = rest.find(|character: char| character.is_ascii_digit())?;
        (at <= MAX_PHRASE_DISTANCE).then(|| leading_number(rest.get(at..)?)).flatten()
    });
    let before_words = || {
        let (text, _) = message.split_once(PHRASE_AFTER_LIMIT)?;
        leading_number(text.rsplit(' ').next()?)
    };
    let after_sum = || {
        let (_, sum) = message.split_once(PHRASE_BEFORE_SUM)?;
        let (_, limit) = sum.split_once('>')?;
        leading_number(limit.trim_start())
    };
    let window = after_words.or_else(before_words).or_else(after_sum)?;
    (ModelLimits::MIN_WINDOW..=ModelLimits::MAX_WINDOW).contains(&window).then_some(window)
}

/// Reads a number whose digits may be grouped by commas.
fn leading_number(text: &str) -> Option<Tokens> {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != ',');
    let number = text.get(..end.unwrap_or(text.len()))?.replace(',', "");
    number.parse().ok().map(Tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_name_their_window() {
        let cases = [
            (
                "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens \
                 (121808 in the messages, 8192 in the completion).",
                Some(128_000),
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
            ("the request exceeds the available context size (4096 tokens), try increasing it", Some(4_096)),
            ("the request exceeds the available context size, try increasing it", None),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            ("The decoder prompt is longer than the maximum model length of 32,768.", Some(32_768)),
            ("This model's maximum prompt length is 131072 but the request contains 150000.", Some(131_072)),
            ("Invalid request: Your request exceeded model token limit: 262144", Some(262_144)),
            ("Input length (33000) exceeds model's maximum context length (32768).", Some(32_768)),
            ("The prompt is too long: 140000, model maximum context length: 131071", Some(131_071)),
            (
                "Prompt contains 40960 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                Some(32_768),
            ),
            (
                "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
                Some(8_192),
            ),
            (
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
                Some(200_000),
            ),
            (
                "the input token count is 1200000 but the model only supports up to 1048576. Reduce the input",
                Some(1_048_576),
            ),
            (
                "Trying to keep the first 9273 tokens when context the overflows. However, the model is loaded with \
                 context length of only 8192 tokens, which is not enough.",
                Some(8_192),
            ),
            (
                "You passed 33537 input tokens and requested 32000 output tokens. However, the model's context length is \
                 only 32768 tokens, resulting in a maximum input length of 768 tokens.",
                Some(32_768),
            ),
            ("`inputs` must have less than 4096 tokens. Given: 5000", Some(4_096)),
            (
                "too many tokens: total number of tokens in the prompt cannot exceed 4096 - received 5021.",
                Some(4_096),
            ),
            ("Range of input length should be [1, 129024]", Some(129_024)),
            (
                "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
                Some(32_768),
            ),
            ("maximum context length is 12 tokens", None),
            ("maximum context length is 99999999999999999999999 tokens", None),
            ("maximum context length is small; see the 4096 pages of the manual", None),
            ("Your input exceeds the context window of this model.", None),
            (" maximum", None),
            ("", None),
        ];
        for (message, window) in cases {
            assert_eq!(parse_context_window(message), window.map(Tokens), "{message}");
        }
    }
}
