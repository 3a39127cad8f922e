//! Error bodies of every provider and what they mean.

use super::*;

#[derive(Debug, PartialEq)]
enum Meaning {
    Key,
    Model,
    Rate,
    Quota,
    Busy,
    TooLong,
    NoTools,
    Other,
}

fn meaning(error: &ModelError) -> Meaning {
    match error {
        ModelError::Unauthorized { .. } => Meaning::Key,
        ModelError::UnknownModel { .. } => Meaning::Model,
        ModelError::RateLimited { .. } => Meaning::Rate,
        ModelError::QuotaExceeded { .. } => Meaning::Quota,
        ModelError::Overloaded { .. } => Meaning::Busy,
        ModelError::ContextTooLong { .. } => Meaning::TooLong,
        ModelError::ToolsUnsupported { .. } => Meaning::NoTools,
        ModelError::Http { .. } => Meaning::Other,
        other => panic!("{other:?}"),
    }
}

use Meaning::{Busy, Key, Model, NoTools, Other, Quota, Rate, TooLong};

/// Status, body and meaning, provider by provider.
const CASES: &[(u16, &str, Meaning)] = &[
    // Anthropic
    (401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#, Key),
    (403, r#"{"type":"error","error":{"type":"permission_error","message":"no"}}"#, Key),
    (404, r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#, Model),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute"}}"#,
        Rate,
    ),
    (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Busy),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        TooLong,
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
        TooLong,
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
        Quota,
    ),
    (
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        TooLong,
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: must be at least 1"}}"#,
        Other,
    ),
    (500, r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#, Other),
    // OpenAI
    (
        401,
        r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
        Key,
    ),
    (
        404,
        r#"{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        Model,
    ),
    (
        400,
        r#"{"error":{"message":"The requested model 'x' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#,
        Model,
    ),
    (
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        Quota,
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-5","type":"tokens","code":"rate_limit_exceeded"}}"#,
        Rate,
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        TooLong,
    ),
    (
        400,
        r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","code":"context_length_exceeded"}}"#,
        TooLong,
    ),
    (503, r#"{"error":{"message":"The engine is currently overloaded","type":"server_error"}}"#, Busy),
    // Gemini
    (
        400,
        r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
        Key,
    ),
    (403, r#"{"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED"}}"#, Key),
    (
        404,
        r#"{"error":{"code":404,"message":"models/gemini-9 is not found for API version v1beta","status":"NOT_FOUND"}}"#,
        Model,
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1048576.","status":"INVALID_ARGUMENT"}}"#,
        TooLong,
    ),
    (
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}]}}"#,
        Rate,
    ),
    (
        429,
        r#"[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}]"#,
        Quota,
    ),
    (
        503,
        r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
        Busy,
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-1b-it","status":"INVALID_ARGUMENT"}}"#,
        NoTools,
    ),
    // Ollama
    (
        400,
        r#"{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}"#,
        NoTools,
    ),
    (400, r#"{"error":"tinyllama does not support tools"}"#, NoTools),
    (
        404,
        r#"{"error":{"message":"model \"nope\" not found, try pulling it first","type":"api_error"}}"#,
        Model,
    ),
    (400, r#"{"error":"the input length exceeds the context length"}"#, TooLong),
    (
        400,
        r#"{"error":"Trying to keep the first 9273 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}"#,
        TooLong,
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"Unable to submit request because the input token count is 1200000 but the model only supports up to 1048576.","status":"INVALID_ARGUMENT"}}"#,
        TooLong,
    ),
    (
        400,
        r#"{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."}"#,
        TooLong,
    ),
    (
        400,
        r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000."}"#,
        TooLong,
    ),
    (
        400,
        r#"{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]","type":"invalid_request_error"}}"#,
        TooLong,
    ),
    (
        422,
        r#"{"error":"Input validation error: `inputs` must have less than 4096 tokens. Given: 5000","error_type":"validation"}"#,
        TooLong,
    ),
    // llama.cpp
    (
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
        TooLong,
    ),
    (
        500,
        r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
        NoTools,
    ),
    (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#, Busy),
    (401, r#"{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}"#, Key),
    // vLLM
    (
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}"#,
        TooLong,
    ),
    (
        400,
        r#"{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192.","type":"BadRequestError","code":400}}"#,
        TooLong,
    ),
    (
        400,
        r#"{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}}"#,
        NoTools,
    ),
    (
        404,
        r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#,
        Model,
    ),
    // LM Studio
    (
        400,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}"#,
        TooLong,
    ),
    // OpenRouter
    (
        404,
        r#"{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit","code":404}}"#,
        NoTools,
    ),
    (400, r#"{"error":{"message":"foo/bar is not a valid model ID","code":400}}"#, Model),
    (402, r#"{"error":{"message":"Insufficient credits","code":402}}"#, Quota),
    (
        403,
        r#"{"error":{"message":"Input was flagged","code":403,"metadata":{"reasons":["x"],"flagged_input":"y"}}}"#,
        Other,
    ),
    (
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"prompt is too long: 9 > 8","provider_name":"X"}}}"#,
        TooLong,
    ),
    // vLLM since 0.11, with the numbers of tokens or the length in characters
    (
        400,
        r#"{"error":{"message":"You passed 33537 input tokens and requested 32000 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 768 tokens. Please reduce the length of the input prompt.","type":"BadRequestError","param":"input_tokens","code":400}}"#,
        TooLong,
    ),
    // DeepSeek, Mistral, Groq, xAI, Moonshot, Copilot
    (
        402,
        r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}"#,
        Quota,
    ),
    (400, r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}"#, Model),
    (400, r#"{"object":"error","message":"Invalid model: x","type":"invalid_model","code":"1500"}"#, Model),
    (
        400,
        r#"{"object":"error","message":"Prompt contains 70000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","code":"3051"}"#,
        TooLong,
    ),
    (
        422,
        r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":"model not found"}]}"#,
        Other,
    ),
    (
        400,
        r#"{"error":{"message":"`tool calling` is not supported with this model","type":"invalid_request_error"}}"#,
        NoTools,
    ),
    (
        413,
        r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}"#,
        TooLong,
    ),
    (
        429,
        r#"{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 36154. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        TooLong,
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 3000. Please try again in 4s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        Rate,
    ),
    (
        400,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
        TooLong,
    ),
    (
        400,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192","type":"invalid_request_error"}}"#,
        TooLong,
    ),
    (
        400,
        r#"{"error":{"message":"prompt token count of 150000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#,
        TooLong,
    ),
    // Not JSON
    (502, "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>", Other),
    (404, "404 page not found", Other),
    (429, "", Rate),
    (418, "\u{1b}[31mteapot", Other),
];

#[test]
fn error_bodies() {
    for (status, body, expected) in CASES {
        for wire in Wire::ALL {
            let error = codec(wire, "http://localhost").parse_error(*status, body.as_bytes());
            assert_eq!(&meaning(&error), expected, "{status} {body}");
        }
    }
}

#[test]
fn messages_are_the_provider_s_in_one_bounded_line() {
    let message = |status: u16, body: &str| match codec(Wire::Chat, "").parse_error(status, body.as_bytes()) {
        ModelError::Http { status: same, message } => {
            assert_eq!(same, status);
            message
        }
        other => panic!("{other:?}"),
    };
    // A character that nobody sees goes without a trace: one inside of a key must not keep it from
    // being found.
    assert_eq!(message(400, r#"{"error":{"message":"a\n b\u0000c"}}"#), "a bc");
    assert_eq!(message(502, "<html><title>502 Bad Gateway</title></html>"), "502 Bad Gateway");
    assert_eq!(message(404, "<html><body><h1>404</h1><p>Not Found</p></body></html>"), "404 Not Found");
    assert_eq!(message(500, " "), "no message");
    assert_eq!(message(500, "<html></html>"), "no message");
    assert_eq!(
        message(422, r#"{"detail":[{"loc":["body","x",0],"msg":"Extra inputs","input":"secret prompt"}]}"#),
        "body.x.0: Extra inputs"
    );
    assert_eq!(
        message(400, r#"{"error":{"message":"Provider returned error","metadata":{"raw":"the reason"}}}"#),
        "Provider returned error: the reason"
    );
    assert!(message(400, &format!(r#"{{"error":"{}"}}"#, "é".repeat(9_000))).len() <= 2_010);
}

#[test]
fn what_is_tried_again_and_what_is_not() {
    let retried =
        |status: u16, body: &str| codec(Wire::Chat, "").parse_error(status, body.as_bytes()).is_retryable();
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        assert!(retried(status, "{}"), "{status}");
    }
    for status in [400, 401, 402, 403, 404, 413, 422, 501] {
        assert!(!retried(status, "{}"), "{status}");
    }
    assert!(!retried(429, r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#));
}

/// A server that repeats a long request in its error repeats any phrase that is in the conversation.
#[test]
fn an_error_that_is_cut_off_is_not_taken_for_what_it_repeats() {
    let input = format!("{}maximum context length, does not support tools", "x".repeat(8_000));
    let body = format!(
        r#"{{"detail":[{{"type":"missing","loc":["body","x"],"msg":"Field required","input":"{input}"#
    );
    let error = codec(Wire::Chat, "http://localhost").parse_error(422, body.as_bytes());
    assert_eq!(meaning(&error), Other, "{error}");
}
