//! Tools of a user's own: closures over a type, and commands of a configuration.

use std::collections::BTreeMap;

use crate::bench;

use bench::Bench;
use journeyman_protocol::Effects;
use journeyman_tools::{
    ArgumentType, CommandArgument, CommandDefinition, CommandTool, ToolOutput, TypedTool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Ticket {
    /// Such as 4711
    number: i64,
    project: Option<String>,
}

#[test]
fn a_closure_over_a_type_is_a_tool() {
    let mut bench = Bench::new(&[]);
    bench.tools.add(Box::new(
        TypedTool::new("read_ticket", "Reads a ticket.", |ticket: Ticket, context| async move {
            let project = ticket.project.unwrap_or_else(|| "none".to_owned());
            Ok(ToolOutput::text(format!("{} of {project} in {}", ticket.number, context.call)))
        })
        .with_effects(|ticket| Effects {
            hosts: vec![format!("t{}.example.com", ticket.number)],
            ..Effects::default()
        }),
    ));
    let tool = bench.tools.get("read_ticket").unwrap();
    let schema = tool.spec().input_schema;
    assert_eq!(schema["properties"]["number"], json!({"type": "integer", "description": "Such as 4711"}));
    assert_eq!(schema["required"], json!(["number"]));
    assert_eq!(tool.effects(&json!({"number": 7})).unwrap().hosts, ["t7.example.com"]);
    assert!(!tool.is_read_only(), "what has effects is judged");
    assert_eq!(bench.say("read_ticket", json!({"number": -7, "project": "p"})), "-7 of p in call_1");
    assert_eq!(
        bench.say("read_ticket", json!({"number": "8", "project": null})),
        "8 of none in call_1",
        "a slip"
    );
    let said = bench.say("read_ticket", json!({"nummer": 8}));
    assert!(said.contains("there is no argument `nummer`") && said.contains("read_ticket takes {"), "{said}");
    let plain = TypedTool::new("look", "Looks.", |(): (), _| async { Ok(ToolOutput::text("seen")) });
    bench.tools.add(Box::new(plain));
    assert!(bench.tools.get("look").unwrap().is_read_only());
    assert_eq!(bench.say("look", json!(null)), "seen");
}

#[test]
fn a_command_of_the_user_runs_with_arguments_as_they_are() {
    let mut bench = Bench::new(&[("a file", b"one\ntwo\n")]);
    let argument = |kind| CommandArgument { kind, description: String::new(), optional: false };
    let arguments: BTreeMap<String, CommandArgument> = [
        ("text".to_owned(), argument(ArgumentType::Text)),
        ("files".to_owned(), argument(ArgumentType::TextList)),
    ]
    .into();
    let definition = CommandDefinition {
        name: "count_words".to_owned(),
        description: "Counts.".to_owned(),
        run: ["printf", "<%s>\\n", "{text}", "--", "{files}"].map(str::to_owned).to_vec(),
        arguments,
        timeout: None,
        network: Vec::new(),
    };
    bench.tools.add(Box::new(CommandTool::new(definition, &bench.root).unwrap()));
    let hostile = "$(touch made); `touch made` 'q' \"d\" | > made\nnext";
    let said = bench.say("count_words", json!({ "text": hostile, "files": ["a file", "-n"] }));
    for part in [format!("<{hostile}>"), "<a file>".to_owned(), "<-n>".to_owned(), "exit code 0".to_owned()] {
        assert!(said.contains(&part), "{part}: {said}");
    }
    assert!(!bench.root.join("made").exists(), "no shell read it");
}
