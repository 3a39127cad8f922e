//! What a conversation must look like before any provider takes it.

use super::*;

fn refusal(messages: Vec<Message>) -> String {
    let request = ModelRequest { model: "m".to_owned(), messages, ..ModelRequest::default() };
    let errors: Vec<String> = Wire::ALL
        .into_iter()
        .map(|wire| match codec(wire, "").encode(&request) {
            Err(ModelError::Protocol(why)) => why,
            other => panic!("{wire}: {other:?}"),
        })
        .collect();
    assert!(errors.iter().all(|error| error == &errors[0]));
    errors[0].clone()
}

#[test]
fn what_no_provider_takes_is_refused_before_it_is_sent() {
    let hi = || Message::user_text("hi");
    let calls = |ids: &[&str]| assistant(ids.iter().map(|id| call(id, "list", json!({}))).collect());
    let results =
        |ids: &[&str]| user(ids.iter().map(|id| Block::result(CallId::new(*id), "x", false)).collect());
    let cases = [
        (vec![], "the conversation is empty"),
        (vec![user(vec![Block::text(" ")])], "the conversation is empty"),
        (vec![Message::assistant_text("hi")], "begins with the assistant"),
        (vec![hi(), calls(&["a"])], "`a` has no result"),
        (vec![hi(), calls(&["a"]), hi()], "`a` has no result"),
        (vec![hi(), calls(&["a", "b"]), results(&["a"])], "`b` has no result"),
        (vec![hi(), calls(&["a"]), results(&["a", "a"])], "`a` has two results"),
        (vec![hi(), calls(&["a", "a"]), results(&["a"])], "two calls of one message have the id `a`"),
        (vec![hi(), results(&["a"])], "`a` answers no call"),
        (
            vec![hi(), calls(&["a"]), results(&["a"]), Message::assistant_text("x"), results(&["a"])],
            "`a` answers no call",
        ),
        (vec![hi(), calls(&["a"]), Message::assistant_text("x"), results(&["b"])], "`b` answers no call"),
        (vec![user(vec![call("a", "list", json!({}))])], "a user message holds a tool call"),
        (vec![user(vec![thinking("x", None)])], "a user message holds thinking"),
        (
            vec![hi(), assistant(vec![Block::result(CallId::new("a"), "x", false)])],
            "an assistant message holds a tool result",
        ),
        (vec![hi(), assistant(vec![Block::Image(image())])], "an assistant message holds an image"),
    ];
    for (messages, why) in cases {
        let refusal = refusal(messages);
        assert!(refusal.contains(why), "{refusal}");
    }
}

#[test]
fn calls_spread_over_messages_of_one_turn_are_answered_together() {
    let request = ModelRequest {
        model: "m".to_owned(),
        messages: vec![
            Message::user_text("hi"),
            assistant(vec![call("a", "list", json!({}))]),
            assistant(vec![call("b", "list", json!({}))]),
            user(vec![Block::result(CallId::new("b"), "2", false)]),
            user(vec![Block::text("go on"), Block::result(CallId::new("a"), "1", false)]),
        ],
        ..ModelRequest::default()
    };
    anthropic::validate(&encode(Wire::Anthropic, "", &request));
    chat::validate(&encode(Wire::Chat, "", &request));
    responses::validate(&encode(Wire::Responses, "", &request));
    gemini::validate(&encode(Wire::Gemini, "", &request));
}

#[test]
fn a_reply_of_one_provider_goes_to_every_other() {
    let streams = [
        (Wire::Anthropic, include_str!("streams/anthropic.txt")),
        (Wire::Responses, include_str!("streams/responses.txt")),
        (Wire::Chat, include_str!("streams/chat.txt")),
        (Wire::Gemini, include_str!("streams/gemini.txt")),
    ];
    for (from, stream) in streams {
        let request = go_on(rich_request("claude-opus-4-6"), &reply(from, stream));
        let without = |wire: Wire, base: &str| {
            let body = encode(wire, base, &request);
            if from != wire {
                // What another provider signed never leaves.
                assert!(!body.to_string().contains("PROOF"), "{from} to {wire}: {body}");
            }
            body
        };
        anthropic::validate(&without(Wire::Anthropic, ""));
        chat::validate(&without(Wire::Chat, ""));
        responses::validate(&without(Wire::Responses, ""));
        gemini::validate(&without(Wire::Gemini, ""));
    }
}
