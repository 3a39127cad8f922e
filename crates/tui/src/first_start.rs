//! The first start without a model: what was found on this machine, and ways to go on.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use journeyman_host::config::{Config, Environment};
use journeyman_host::{HostError, all_providers};
use journeyman_terminal::{Style, StyledLine};

/// The longest wait for a server on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
/// Servers of models that people run on their own machine: name, port, and the way to use it.
const LOCAL_SERVERS: [(&str, u16, &str); 2] = [
    ("Ollama", 11_434, "/model ollama/NAME"),
    ("llama.cpp", 8_080, "jm chat --base-url http://127.0.0.1:8080/v1 --wire chat --model NAME"),
];

/// Returns the lines for a person whose configuration names no model. Nothing is asked of a model,
/// and no key is shown.
pub(crate) async fn explain_first_start(environment: &Environment) -> Vec<StyledLine> {
    let mut lines = vec![StyledLine::new(Style::Strong, "No model is set yet. Found on this machine:")];
    let before = lines.len();
    for provider in all_providers(&Config::default()) {
        let key = provider.key_env.iter().find(|key| environment.var(key).is_some());
        lines.extend(key.map(|key| found_tool_line(key, &format!("/model {}/NAME", provider.name))));
    }
    for (name, port, way) in LOCAL_SERVERS {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, tokio::net::TcpStream::connect(address)).await;
        if matches!(connected, Ok(Ok(_))) {
            lines.push(found_tool_line(&format!("{name} at {address}"), way));
        }
    }
    if lines.len() == before {
        lines.push(StyledLine::new(
            Style::Dim,
            "  no key in the environment, and no server of models at its usual port",
        ));
    }
    lines.push(StyledLine::default());
    lines.push(StyledLine::new(Style::Strong, "Three ways to go on:"));
    for (way, what) in [
        ("a provider's key", "export ANTHROPIC_API_KEY=… (or OPENAI_, GEMINI_, OPENROUTER_), then jm"),
        ("a model here", "/model ollama/NAME, with Ollama running"),
        ("without any", "/quit, then jm demo: a whole run with a scripted model"),
    ] {
        lines.push(StyledLine::new(Style::Plain, format!("  {way:<17} ")).with(Style::Code, what));
    }
    lines
}

fn found_tool_line(what: &str, way: &str) -> StyledLine {
    StyledLine::new(Style::Good, "  ✓").with_text(format!(" {what}  ")).with(Style::Code, way)
}

/// Returns true for the error that nothing says which model is to be asked; the suite of the
/// command line holds its words against this.
pub(crate) fn is_first_start(error: &HostError) -> bool {
    error.to_string().starts_with("no model is set")
}
