//! Call ids and tool names.

use std::collections::HashSet;

use super::super::legal_names::{IdRule, legal_call_id, legal_tool_name};
use super::*;

#[test]
fn legal_names_are_untouched() {
    for name in ["read_file", "a", "A-b_9", "9lives", &"x".repeat(64)] {
        assert_eq!(legal_tool_name(name), name);
        assert_eq!(legal_call_id(name, IdRule::Common), name);
    }
    assert_eq!(legal_call_id("abcDEF123", IdRule::Mistral), "abcDEF123");
}

#[test]
fn illegal_names_become_legal_ones_of_their_own() {
    let long = "x".repeat(65);
    let illegal =
        ["", "a b", "a.b", "mcp__server.tool", "functions.list:0", "näme", "工具", long.as_str(), "a/b"];
    let legal: HashSet<String> = illegal.iter().map(|name| legal_tool_name(name).into_owned()).collect();
    assert_eq!(legal.len(), illegal.len(), "{legal:?}");
    for name in &legal {
        assert!(!name.is_empty() && name.len() <= 64, "{name}");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'),
            "{name}"
        );
        assert_eq!(legal_tool_name(name), name.as_str(), "and stays as it is");
    }
    let short: HashSet<String> =
        (0..1_000).map(|n| legal_call_id(&format!("call_{n}"), IdRule::Mistral).into_owned()).collect();
    assert_eq!(short.len(), 1_000);
    assert!(short.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())));
}

#[test]
fn a_call_and_its_result_still_meet() {
    let id = "functions.list:0";
    let request = ModelRequest {
        model: "m".to_owned(),
        messages: vec![
            Message::user_text("hi"),
            assistant(vec![call(id, "no such tool!", json!({}))]),
            user(vec![Block::result(CallId::new(id), "unknown tool", true)]),
        ],
        ..ModelRequest::default()
    };
    anthropic::validate(&encode(Wire::Anthropic, "", &request));
    chat::validate(&encode(Wire::Chat, "", &request));
    chat::validate(&encode(Wire::Chat, "https://api.mistral.ai", &request));
    responses::validate(&encode(Wire::Responses, "", &request));
    gemini::validate(&encode(Wire::Gemini, "", &request));
}
