//! The CLIs as the scenarios run them: their adapters, keys and addresses.

use journeyman_delegate::{Adapter, Claude, Codex, ConfiguredCli, Gemini, Opencode};

/// A CLI as the scenarios run it.
pub(crate) struct Cli {
    pub(crate) adapter: Box<dyn Adapter>,
    /// Variables with its key and, where only a variable has it, its provider's address.
    pub(crate) environment: fn(&str) -> Vec<(&'static str, String)>,
    /// The address to use in place of its provider's own, where a request can say it.
    pub(crate) base_url: fn(&str) -> Option<String>,
    pub(crate) model: Option<&'static str>,
}

/// The CLI of a test's name.
pub(crate) fn cli(name: &str) -> Cli {
    match name {
        "claude" => Cli {
            adapter: Box::new(Claude),
            environment: |_| {
                vec![("ANTHROPIC_API_KEY", "key".to_owned()), ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned())]
            },
            base_url: |url| Some(url.to_owned()),
            model: None,
        },
        "codex" => Cli {
            adapter: Box::new(Codex),
            environment: |_| vec![("CODEX_API_KEY", "key".to_owned())],
            base_url: |url| Some(format!("{url}/v1")),
            model: None,
        },
        "gemini" => Cli {
            adapter: Box::new(Gemini),
            environment: |_| vec![("GEMINI_API_KEY", "key".to_owned())],
            base_url: |url| Some(url.to_owned()),
            model: None,
        },
        "opencode" => Cli {
            adapter: Box::new(Opencode),
            environment: |url| vec![("OPENCODE_CONFIG_CONTENT", opencode_config(url))],
            base_url: |_| None,
            model: Some("loopback/tiny"),
        },
        // The same program by OpenAI's provider, whose address the request says.
        "opencode_responses" => Cli {
            adapter: Box::new(Opencode),
            environment: |_| vec![("OPENAI_API_KEY", "key".to_owned())],
            base_url: |url| Some(format!("{url}/v1")),
            model: Some("openai/gpt-5.1"),
        },
        _ => by_table(name),
    }
}

/// A CLI that a configuration describes.
fn by_table(name: &str) -> Cli {
    match name {
        "gemini_acp" => Cli {
            adapter: configured(
                r#"
                name = "gemini-acp"
                command = ["gemini", "--acp", "--skip-trust", "--model=gemini-2.5-flash"]
                output = { acp = { authentication = "gemini-api-key" } }
                base_urls = ["GOOGLE_GEMINI_BASE_URL"]
                "#,
            ),
            environment: |_| vec![("GEMINI_API_KEY", "key".to_owned())],
            base_url: |url| Some(url.to_owned()),
            model: None,
        },
        "opencode_acp" => Cli {
            adapter: configured(
                r#"
                name = "opencode-acp"
                command = ["opencode", "acp"]
                environment = ["OPENCODE_CONFIG_CONTENT"]
                output = { acp = {} }
                set = ["OPENCODE_DISABLE_AUTOUPDATE=true", "OPENCODE_DISABLE_MODELS_FETCH=true"]
                "#,
            ),
            environment: |url| vec![("OPENCODE_CONFIG_CONTENT", opencode_config(url))],
            base_url: |_| None,
            model: Some("loopback/tiny"),
        },
        // CLIs that have an adapter, described by tables as any other could be.
        "claude_by_table" => Cli {
            adapter: configured(
                r#"
                name = "claude-by-table"
                command = ["claude", "-p", "{options}", "--output-format=stream-json", "--verbose"]
                confined = ["--dangerously-skip-permissions"]
                resume = ["--resume={session}"]
                base_urls = ["ANTHROPIC_BASE_URL"]
                set = ["IS_SANDBOX=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"]
                [output.json_lines]
                message = "result"
                session = "session_id"
                input_tokens = "usage.input_tokens"
                output_tokens = "/usage/output_tokens"
                cost = "total_cost_usd"
                "#,
            ),
            environment: |_| vec![("ANTHROPIC_API_KEY", "key".to_owned())],
            base_url: |url| Some(url.to_owned()),
            model: None,
        },
        "codex_as_text" => Cli {
            adapter: configured(
                r#"
                name = "codex-as-text"
                command = ["codex", "exec", "--skip-git-repo-check", "{options}", "--", "{prompt}"]
                confined = ["--dangerously-bypass-approvals-and-sandbox"]
                "#,
            ),
            environment: |_| vec![("CODEX_API_KEY", "key".to_owned())],
            base_url: |_| None,
            model: None,
        },
        _ => unreachable!("{name}"),
    }
}

/// A CLI that a table describes.
fn configured(table: &str) -> Box<dyn Adapter> {
    Box::new(ConfiguredCli::new(toml::from_str(table).unwrap()).unwrap())
}

/// A provider that speaks Chat Completions, as opencode's documentation has one configured.
fn opencode_config(url: &str) -> String {
    let options = serde_json::json!({ "baseURL": format!("{url}/v1"), "apiKey": "key" });
    let provider = serde_json::json!({
        "npm": "@ai-sdk/openai-compatible", "options": options, "models": { "tiny": {} },
    });
    serde_json::json!({ "model": "loopback/tiny", "provider": { "loopback": provider } }).to_string()
}
