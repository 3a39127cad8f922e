//! Configures the tools that read the web.

use journeyman_agent::Approver;
use journeyman_tools::web::SearchEngine;

use crate::HostError;
use crate::config::{Environment, WebConfig};

/// The variable that has the key of Brave's search engine unless another one is named.
const BRAVE_KEY_VARIABLE: &str = "BRAVE_API_KEY";
/// The tool that fetches pages.
const FETCH_TOOL: &str = "web_fetch";

/// Returns the fetch tool's name if it is not offered: each host without an allowing rule needs a
/// person's approval, so the tool is of little use without one.
pub(crate) fn withheld_fetch_tool(config: &WebConfig, approver: Approver) -> Option<String> {
    let offered = config.fetch.unwrap_or(approver == Approver::Handle);
    (!offered).then(|| FETCH_TOOL.to_owned())
}

/// Returns the configured search engine and its API key, which has to be redacted.
///
/// # Errors
/// [`HostError::Usage`] naming the setting that is missing or wrong.
pub(crate) fn search_engine(
    config: &WebConfig,
    environment: &Environment,
) -> Result<Option<(SearchEngine, Option<String>)>, HostError> {
    let Some(name) = &config.search else { return Ok(None) };
    let variable = config.search_key_env.as_deref().unwrap_or(BRAVE_KEY_VARIABLE);
    let key = environment.var(variable).filter(|key| !key.is_empty()).map(str::to_owned);
    let engine = SearchEngine::new(name, config.search_url.as_deref(), key.clone());
    let engine = engine.map_err(|problem| {
        HostError::usage(format_args!(
            "web.search: {problem} (web.search_url has the address, web.search_key_env the variable with the key)"
        ))
    })?;
    Ok(Some((engine, key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_needs_its_key_or_its_address() {
        let environment = |key: Option<&str>| {
            let vars = key.map(|key| ("BRAVE_API_KEY".into(), key.into()));
            Environment { vars: vars.into_iter().collect(), home: None, cwd: "/".into() }
        };
        let config = |search: &str, url: Option<&str>| WebConfig {
            search: Some(search.to_owned()),
            search_url: url.map(str::to_owned),
            ..WebConfig::default()
        };
        assert!(search_engine(&WebConfig::default(), &environment(None)).unwrap().is_none());
        let (_, key) = search_engine(&config("brave", None), &environment(Some("k"))).unwrap().unwrap();
        assert_eq!(key.as_deref(), Some("k"));
        let url = Some("https://searx.example/search");
        assert!(search_engine(&config("searxng", url), &environment(None)).unwrap().is_some());
        for (config, expected) in [
            (config("brave", None), "brave needs a key"),
            (config("searxng", None), "searxng needs the address"),
            (config("searxng", Some("http://127.0.0.1/")), "reached by their names"),
        ] {
            let error = search_engine(&config, &environment(None)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn pages_are_offered_where_somebody_can_be_asked() {
        let cases = [
            (None, Approver::Nobody, true),
            (None, Approver::Handle, false),
            (Some(true), Approver::Nobody, false),
            (Some(false), Approver::Handle, true),
        ];
        for (fetch, approver, withheld) in cases {
            let config = WebConfig { fetch, ..WebConfig::default() };
            assert_eq!(withheld_fetch_tool(&config, approver).is_some(), withheld, "{fetch:?} {approver:?}");
        }
    }
}
