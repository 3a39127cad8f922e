//! Output of other coding CLIs: each line of the first text, read by every adapter; the second is
//! what stood on the error stream.

#![no_main]

use std::path::Path;

use journeyman_delegate::{
    AcpOptions, Adapter, CliDefinition, CliOutputFormat, CommandRequest, ConfiguredCli, DelegateEvent,
    JsonPaths, TokensAndCost, bounds, builtin_adapters,
};
use journeyman_fuzz::{Input, timed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 1);
    let request = CommandRequest {
        prompt: "Do it.",
        directory: Path::new("/work"),
        resume: input.flag(0, 0).then_some("s-1"),
        spent: TokensAndCost::default(),
        model: None,
        base_url: None,
        confined: input.flag(0, 1),
        trusted: false,
        arguments: &[],
    };
    let exit = (!input.flag(0, 2)).then_some(i32::from(input.flag(0, 3)));
    for adapter in adapters() {
        let outcome = timed(data.len(), || {
            let mut conversation = adapter.start_conversation(&request);
            for line in input.text(0).lines() {
                for event in conversation.receive_line(line.as_bytes()).events {
                    if let DelegateEvent::Unknown(line) = event {
                        assert!(line.len() <= bounds::MAX_UNKNOWN_LINE_BYTES);
                    }
                }
            }
            conversation.end(exit, input.text(1))
        });
        assert!(outcome.message.len() <= bounds::MAX_TEXT_BYTES);
        assert!(outcome.session.is_none_or(|session| !session.starts_with('-')));
        assert!(outcome.failure.is_none_or(|failure| !failure.message.is_empty()));
    }
});

fn adapters() -> Vec<Box<dyn Adapter>> {
    let mut adapters = builtin_adapters();
    let paths = JsonPaths {
        text: Some("text".to_owned()),
        session: Some("session.id".to_owned()),
        cost: Some("cost".to_owned()),
        error: Some("error".to_owned()),
        ..JsonPaths::default()
    };
    for output in [
        CliOutputFormat::Text,
        CliOutputFormat::JsonLines(paths),
        CliOutputFormat::Acp(AcpOptions::default()),
    ] {
        let (name, command) = ("mine".to_owned(), vec!["mine".to_owned()]);
        let definition = CliDefinition { name, command, output, ..CliDefinition::default() };
        adapters.push(Box::new(ConfiguredCli::new(definition).expect("a definition that can be used")));
    }
    adapters
}
