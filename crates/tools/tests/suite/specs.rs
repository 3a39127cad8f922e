//! The tools' descriptions for the model, and their cost in tokens.

use journeyman_tools::{Registry, ToolError};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Ten tools and the system prompt may cost 2,500 tokens; ten such tools get 1,125 of them.
const MAX_TOKENS: f64 = 112.5;
/// JSON of schemas has fewer bytes a token than prose; 3.5 is on the safe side of what tokenizers
/// show.
const BYTES_A_TOKEN: f64 = 3.5;

#[test]
fn the_built_in_tools_cost_few_tokens() {
    let specs = Registry::with_builtin().specs();
    let bytes = serde_json::to_string(&specs).unwrap().len();
    let tokens = bytes as f64 / BYTES_A_TOKEN;
    println!("{} tools, {bytes} bytes, about {tokens:.0} tokens", specs.len());
    assert!(tokens <= MAX_TOKENS * specs.len() as f64, "{bytes} bytes are about {tokens:.0} tokens");
}

#[test]
fn specs_are_the_same_every_time_and_plain() {
    let specs = Registry::with_builtin().specs();
    assert_eq!(specs, Registry::with_builtin_at("/elsewhere".as_ref()).specs());
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "read_file",
            "list_files",
            "search_text",
            "search_code",
            "get_symbols",
            "find_references",
            "get_dependencies",
            "git_history",
            "git_blame",
            "edit_file",
            "write_file",
            "apply_patch",
            "edit_symbol",
            "delete_file",
            "move_file",
            "run_command",
            "command_output",
            "stop_command"
        ]
    );
    for spec in &specs {
        assert_eq!(spec.input_schema["type"], "object", "{}", spec.name);
        let text = spec.input_schema.to_string();
        for noise in ["$schema", "title", "null", "format", "anyOf", "$ref", "$defs"] {
            assert!(!text.contains(&format!("\"{noise}\"")), "{}: {text}", spec.name);
        }
    }
    assert_eq!(
        specs[0].input_schema,
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File, or output:ID"},
                "paths": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Several files at once",
                },
                "offset": {"type": "integer", "description": "First line, from 1"},
                "limit": {"type": "integer", "description": "Lines (2000)"},
            },
        })
    );
}

#[test]
fn an_unknown_tool_gets_the_nearest_name() {
    let tools = Registry::with_builtin();
    let cases = [
        ("readfile", Some("read_file")),
        ("Read_File", Some("read_file")),
        ("bash", Some("run_command")),
        ("grep", Some("search_text")),
        ("search", Some("search_code")),
        ("edit", Some("edit_file")),
        ("patch", Some("apply_patch")),
        ("rename_file", Some("move_file")),
        ("teleport", None),
        ("", None),
    ];
    for (name, expected) in cases {
        let Err(ToolError::Unknown { nearest, .. }) = tools.get(name) else { panic!("{name}") };
        assert_eq!(nearest.as_deref(), expected, "{name}");
    }
    let long = "x".repeat(100_000);
    assert!(tools.get(&long).err().unwrap().to_string().len() < 200);
    assert!(tools.get("read_file").is_ok());
}

/// A patch that changes, moves, deletes and adds a file.
const PATCH: &str = "*** Begin Patch\n*** Update File: /home/me/p/a.rs\n*** Move to: b.rs\n@@ fn a\n-one\n+two\n\
                     *** Delete File: c.rs\n*** Add File: d.rs\n+new\n*** End Patch\n";

/// A call's effects, as `reads | writes | command`, or the error.
fn effects(tool: &str, input: &Value) -> String {
    let tools = Registry::with_builtin_at("/home/me/p".as_ref());
    let join = |paths: Vec<journeyman_protocol::RelPath>| {
        paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    match tools.get(tool).unwrap().effects(input) {
        Ok(effects) => {
            assert!(effects.hosts.is_empty());
            format!(
                "{}|{}|{}",
                join(effects.reads),
                join(effects.writes),
                effects.command.unwrap_or_default()
            )
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn effects_are_exact() {
    let cases = [
        ("read_file", json!({"path": "a"}), "a||"),
        ("read_file", json!({"path": "./src//a.rs"}), "src/a.rs||"),
        ("read_file", json!({"path": "/home/me/p/src/a.rs"}), "src/a.rs||"),
        ("read_file", json!({"path": "output:toolu_1"}), "||"),
        ("read_file", json!({"paths": ["a", "/home/me/p/b", "a"]}), "a,b||"),
        ("list_files", json!({}), "||"),
        ("list_files", json!({"path": "."}), "||"),
        ("list_files", json!({"path": "/home/me/p"}), "||"),
        ("list_files", json!({"path": "src"}), "src||"),
        ("search_text", json!({"pattern": "x", "path": "src"}), "src||"),
        ("edit_file", json!({"path": "a", "search": "x", "replace": ""}), "a|a|"),
        ("edit_file", json!({"path": "a", "edits": [{"search": "x", "replace": "y"}]}), "a|a|"),
        ("write_file", json!({"path": "a", "content": ""}), "|a|"),
        ("delete_file", json!({"path": "a"}), "|a|"),
        ("move_file", json!({"path": "a", "to": "b/a"}), "|a,b/a|"),
        ("edit_symbol", json!({"path": "a.rs", "symbol": "f", "action": "delete"}), "a.rs|a.rs|"),
        ("apply_patch", json!({"patch": PATCH}), "a.rs,b.rs,c.rs,d.rs|a.rs,b.rs,c.rs,d.rs|"),
        ("run_command", json!({"command": "ls -l"}), "||ls -l"),
        ("run_command", json!({"command": "ls -l", "directory": "."}), "||ls -l"),
        ("run_command", json!({"command": "git status", "directory": "a/b"}), "||cd -- 'a/b' && git status"),
        ("run_command", json!({"command": "ls -l", "background": true}), "||ls -l"),
        ("command_output", json!({"id": "b1"}), "||"),
        ("stop_command", json!({"id": "b1"}), "||"),
        ("run_command", json!({"command": "ls", "directory": "it's"}), "||cd -- 'it'\\''s' && ls"),
    ];
    for (tool, input, expected) in cases {
        assert_eq!(effects(tool, &input), expected, "{tool} {input}");
    }
}

#[test]
fn hostile_arguments_are_refused_with_the_reason() {
    let cases = [
        ("read_file", json!({"path": "../x"}), "path: `../x` has a `..` component"),
        ("read_file", json!({"path": "/home/me/p/../x"}), "path: `../x` has a `..` component"),
        ("read_file", json!({"path": "/etc/passwd"}), "path: `/etc/passwd` is absolute"),
        ("read_file", json!({"path": "/home/me/pp/x"}), "path: `/home/me/pp/x` is absolute"),
        ("read_file", json!({"path": "a\0b"}), "path: the path has a NUL byte"),
        ("read_file", json!({"path": ""}), "path: this is the project's root"),
        ("read_file", json!({"path": "x".repeat(5000)}), "path: the path has 5000 bytes"),
        (
            "read_file",
            json!({"path": "a", "limit": -1}),
            "`limit` must be a whole number of at least 0, not -1. read_file takes {path?: string, paths?: [string], offset?: integer, limit?: integer}",
        ),
        (
            "read_file",
            json!({"path": "a", "ofset": 1}),
            "there is no argument `ofset`; did you mean `offset`?",
        ),
        ("edit_file", json!({"path": "a"}), "`search` and `replace`, or `edits`, are missing"),
        ("edit_file", json!({"path": "a", "search": "x"}), "`replace` is missing"),
        ("edit_file", json!({"path": "a", "replace": "x"}), "`search` is missing"),
        ("edit_file", json!({"path": "a", "edits": [{"search": "x"}]}), "`edits[0].replace` is missing"),
        ("write_file", json!({"path": "a"}), "`content` is missing"),
        ("read_file", json!({}), "`path` is missing"),
        ("read_file", json!({"paths": ["a", "../b"]}), "path: `../b` has a `..` component"),
        (
            "read_file",
            json!({"paths": (0..30).map(|n| n.to_string()).collect::<Vec<_>>()}),
            "30 files are too many",
        ),
        ("delete_file", json!({"path": "../x"}), "path: `../x` has a `..` component"),
        ("move_file", json!({"path": "a", "to": "./a"}), "`path` and `to` are the same"),
        ("move_file", json!({"path": "a", "to": "/etc/a"}), "path: `/etc/a` is absolute"),
        ("edit_symbol", json!({"path": "a", "symbol": "f", "action": "replace"}), "`content` is missing"),
        ("edit_symbol", json!({"path": "a", "symbol": " ", "action": "delete"}), "`symbol` is empty"),
        ("apply_patch", json!({"patch": "no patch"}), "`patch` has no section"),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Delete File: ../x\n*** End Patch\n"}),
            "nothing was changed. ",
        ),
        ("run_command", json!({"command": " "}), "`command` is empty"),
        ("run_command", json!({"command": "a\0"}), "`command` has a NUL character"),
        ("run_command", json!({"command": "a", "directory": "/"}), "directory: `/` is absolute"),
        ("run_command", json!({"command": "x".repeat(100_000)}), "`command` has 100000 bytes"),
    ];
    for (tool, input, expected) in cases {
        let found = effects(tool, &input);
        assert!(found.starts_with(expected), "{tool}: {found}");
        assert!(found.len() < 6_000);
    }
}

#[test]
fn summaries_are_one_safe_line_whatever_the_arguments() {
    let tools = Registry::with_builtin();
    let cases = [
        ("read_file", json!({"path": "a", "offset": 9}), "read a from line 9"),
        ("read_file", json!(7), "read a file"),
        ("list_files", json!({"glob": "*.rs"}), "list *.rs in ."),
        ("search_text", json!({"pattern": "a\x1b[31m"}), "search `a\\u{1b}[31m`"),
        ("edit_file", json!({"path": "a\nb", "search": "", "replace": ""}), "edit a\\nb"),
        (
            "edit_file",
            json!({"path": "a", "search": "", "replace": "", "why": "no\nneed"}),
            "edit a: no\\nneed",
        ),
        ("write_file", json!({}), "write a file"),
        ("read_file", json!({"paths": ["a", "b", "c", "d", "e"]}), "read a, b, c, 2 more"),
        ("delete_file", json!({"path": "a", "why": "unused"}), "delete a: unused"),
        ("move_file", json!({"path": "a", "to": "b"}), "move a to b"),
        ("edit_symbol", json!({"path": "a", "symbol": "S.f", "action": "delete"}), "delete S.f in a"),
        ("apply_patch", json!({"patch": PATCH.replace("/home/me/p/", "")}), "patch a.rs, c.rs, d.rs"),
        ("apply_patch", json!({"patch": ""}), "apply a patch"),
        ("run_command", json!({"command": "echo 1\necho 2"}), "run echo 1\\necho 2"),
        ("run_command", json!({"command": "x", "background": "true"}), "run x (in the background)"),
        (
            "run_command",
            json!({"command": "x", "directory": "a", "background": true}),
            "run x (in a, in the background)",
        ),
        ("command_output", json!({"id": "b1\n"}), "read the output of b1\\n"),
        ("stop_command", json!({"id": "b1"}), "stop b1"),
        ("stop_command", json!({}), "stop a command"),
    ];
    for (tool, input, expected) in cases {
        assert_eq!(tools.get(tool).unwrap().summary(&input), expected);
    }
}

#[test]
fn only_what_changes_nothing_is_read_only() {
    let tools = Registry::with_builtin();
    let read_only: Vec<String> = tools
        .specs()
        .into_iter()
        .map(|spec| spec.name)
        .filter(|name| tools.get(name).unwrap().is_read_only())
        .collect();
    assert_eq!(
        read_only,
        [
            "read_file",
            "list_files",
            "search_text",
            "search_code",
            "get_symbols",
            "find_references",
            "get_dependencies",
            "git_history",
            "git_blame",
            "command_output"
        ]
    );
}

/// Any JSON, with the tools' own argument names among the keys.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        proptest::sample::select(vec![
            "path",
            "offset",
            "limit",
            "pattern",
            "glob",
            "search",
            "replace",
            "edits",
            "content",
            "command",
            "timeout_s",
            "directory",
            "replace_all",
            "context",
            "background",
            "wait_s",
            "id",
            "file_path",
            "query",
            "patch",
            "paths",
            "to",
            "action",
            "symbol",
            "name",
            "first",
            "last",
        ])
        .prop_map(str::to_owned),
        "[a-z_\0é]{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        proptest::sample::select(vec!["..", "/", "a/../b", "\0", "output:", "{}", "[[]]", "-1", "1e9"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_arguments_are_judged_without_panic(input in any_json()) {
        let tools = Registry::with_builtin_at("/home/me/p".as_ref());
        for spec in tools.specs() {
            let tool = tools.get(&spec.name).unwrap();
            let summary = tool.summary(&input);
            prop_assert!(!summary.contains('\n') && summary.len() < 2_000);
            if let Err(error) = tool.effects(&input) {
                prop_assert!(error.to_string().len() < 6_000);
            }
        }
    }
}
