//! The tools that a CLI offers to its model.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::Action;

/// A call of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) input: Input,
}

/// The input of a call: fields, or a text for tools without a schema.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Fields(Value),
    Text(String),
}

/// The tools of one request.
pub(crate) struct Offer {
    tools: Vec<Value>,
}

impl Offer {
    /// Finds the tools, wherever the wire protocol has them.
    pub(crate) fn of(body: &Value) -> Self {
        let mut tools = Vec::new();
        collect(&body["tools"], &mut tools);
        for item in body["input"].as_array().into_iter().flatten() {
            collect(&item["tools"], &mut tools);
        }
        Self { tools }
    }

    /// Returns true if the tools can do the work of a task.
    pub(crate) fn can_work(&self) -> bool {
        self.command_tool().is_some() || self.write_tool().is_some()
    }

    /// Words an action as a call of one of the tools.
    pub(crate) fn call(&self, action: &Action, directory: &Path) -> Call {
        match action {
            Action::Write(path, text) => self.write(directory, path, text),
            Action::Run(command) => self.run(command),
        }
    }

    fn find(&self, names: &[&str]) -> Option<&Value> {
        self.tools.iter().find(|tool| names.contains(&name_of(tool)))
    }

    fn command_tool(&self) -> Option<&Value> {
        self.find(&["Bash", "bash", "run_shell_command", "exec_command", "exec"])
    }

    fn write_tool(&self) -> Option<&Value> {
        self.find(&["Write", "write", "write_file"])
    }

    fn write(&self, directory: &Path, path: &str, text: &str) -> Call {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+{}\n*** End Patch\n", text.trim_end());
        if let Some(tool) = self.write_tool() {
            let mut fields = Map::new();
            for name in fields_of(tool) {
                if name.to_lowercase().contains("path") {
                    fields.insert(name, json!(directory.join(path)));
                } else if name == "content" {
                    fields.insert(name, json!(text));
                }
            }
            return Call { name: name_of(tool).to_owned(), input: Input::Fields(fields.into()) };
        }
        if let Some(tool) = self.find(&["apply_patch"]) {
            let field = fields_of(tool).into_iter().next();
            let input =
                field.map_or(Input::Text(patch.clone()), |field| Input::Fields(json!({ field: patch })));
            return Call { name: name_of(tool).to_owned(), input };
        }
        self.script(&format!("text(await tools.apply_patch({}))", json!(patch)))
    }

    fn run(&self, command: &str) -> Call {
        let tool = self.command_tool().unwrap();
        if name_of(tool) == "exec" {
            let arguments = json!({ "cmd": command });
            return self.script(&format!("text((await tools.exec_command({arguments})).output)"));
        }
        let mut fields = Map::new();
        for name in fields_of(tool) {
            match name.as_str() {
                "command" | "cmd" => fields.insert(name, json!(command)),
                "description" => fields.insert(name, json!("runs it")),
                _ => None,
            };
        }
        Call { name: name_of(tool).to_owned(), input: Input::Fields(fields.into()) }
    }

    /// A call of codex's tool that runs a script which calls the other tools.
    fn script(&self, script: &str) -> Call {
        let tool = self.find(&["exec"]).unwrap();
        Call { name: name_of(tool).to_owned(), input: Input::Text(script.to_owned()) }
    }
}

/// Collects tools out of lists, namespaces and declarations.
fn collect(list: &Value, into: &mut Vec<Value>) {
    for tool in list.as_array().into_iter().flatten() {
        if let Some(function) = tool.get("function") {
            into.push(function.clone());
        } else if tool["functionDeclarations"].is_array() {
            collect(&tool["functionDeclarations"], into);
        } else if tool["tools"].is_array() {
            collect(&tool["tools"], into);
        } else {
            into.push(tool.clone());
        }
    }
}

fn name_of(tool: &Value) -> &str {
    tool["name"].as_str().unwrap_or_default()
}

/// The names of the fields of a tool's input.
fn fields_of(tool: &Value) -> Vec<String> {
    let schemas = ["input_schema", "parameters", "parametersJsonSchema"];
    let schema = schemas.into_iter().find_map(|name| tool[name]["properties"].as_object());
    schema.into_iter().flat_map(|fields| fields.keys().cloned()).collect()
}
