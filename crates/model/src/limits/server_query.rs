//! Asks servers for the limits of their models.
//!
//! | server | question | answer |
//! |---|---|---|
//! | llama.cpp | `GET /props` | `default_generation_settings.n_ctx`: what each request has |
//! | Ollama | `GET /api/ps` | `context_length` of the loaded model |
//! | | `POST /api/show` | `num_ctx` in `parameters`, else the model's own `context_length` |
//! | LM Studio | `GET /api/v0/models` | `loaded_context_length`, else `max_context_length` |
//! | vLLM, OpenRouter, others | the protocol's list of models | a window in the model's entry |
//!
//! A server that isn't known by its provider's name is asked for its list first. If that has no
//! window and the server is on this machine, the questions of the local servers follow.
//!
//! An answer is read up to a maximum size and used only if its numbers are within bounds; any other
//! answer counts as none.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use journeyman_protocol::{ModelLimits, Tokens};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::server_limits::ServerLimits;
use crate::client::{HttpModel, read_bounded};
use crate::transport::{HttpRequest, Method, is_loopback};

/// Timeout of all requests together.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of an answer: OpenRouter's list has between one and two MiB, a description by
/// Ollama with its licence and tensors about as much.
const MAX_ANSWER_BYTES: usize = 8 << 20;
/// The context window in tokens that Ollama gives a model by default on a machine with little video
/// memory, whatever the model supports. Ollama truncates longer requests silently.
const OLLAMA_DEFAULT_WINDOW: u64 = 4_096;

/// A kind of server that can be asked for its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerKind {
    LlamaCpp,
    Ollama,
    LmStudio,
    /// A server whose list of models has their windows.
    Listing,
    Unknown,
}

impl ServerKind {
    fn from_provider(provider: &str) -> Self {
        match provider {
            "llamacpp" => Self::LlamaCpp,
            "ollama" => Self::Ollama,
            "lmstudio" => Self::LmStudio,
            "vllm" | "openrouter" => Self::Listing,
            _ => Self::Unknown,
        }
    }
}

/// Asks the model's server for its limits. `None` if the server doesn't return them, isn't running,
/// or isn't asked, as while recording: a recording has only the conversation's requests.
pub(crate) async fn query_server_limits(model: &HttpModel) -> Option<ServerLimits> {
    if !model.transport.is_live() || model.transport.is_recording() {
        return None;
    }
    let server = ServerKind::from_provider(&model.endpoint.provider);
    let told = tokio::time::timeout(QUERY_TIMEOUT, query_server(model, server)).await.ok()??;
    (ModelLimits::MIN_WINDOW..=ModelLimits::MAX_WINDOW).contains(&told.window).then_some(told)
}

async fn query_server(model: &HttpModel, server: ServerKind) -> Option<ServerLimits> {
    match server {
        ServerKind::LlamaCpp => llama_cpp_limits(&get_json(model, &root_url(model, "/props")).await?),
        ServerKind::Ollama => ollama_limits(model).await,
        ServerKind::LmStudio => {
            lm_studio_limits(&get_json(model, &root_url(model, "/api/v0/models")).await?, &model.model)
        }
        ServerKind::Listing => {
            listed_limits(&get_json(model, &model.url(model.codec.models_path())).await?, &model.model)
        }
        ServerKind::Unknown => query_unknown_server(model).await,
    }
}

async fn query_unknown_server(model: &HttpModel) -> Option<ServerLimits> {
    let listed = Box::pin(query_server(model, ServerKind::Listing)).await;
    if listed.is_some() || !model.base_url.host_str().is_some_and(is_loopback) {
        return listed;
    }
    for server in [ServerKind::LlamaCpp, ServerKind::LmStudio] {
        if let Some(told) = Box::pin(query_server(model, server)).await {
            return Some(told);
        }
    }
    // Its other questions look like those of the protocols.
    let version = get_json::<OllamaVersion>(model, &root_url(model, "/api/version")).await?;
    if version.version.is_empty() { None } else { ollama_limits(model).await }
}

/// Returns the URL of a path beside the protocol's: `/v1` at the end of the base URL is dropped.
fn root_url(model: &HttpModel, path: &str) -> String {
    let mut url = model.base_url.clone();
    let base = url.path().trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base).to_owned();
    url.set_path(&format!("{base}{path}"));
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

async fn get_json<T: DeserializeOwned>(model: &HttpModel, url: &str) -> Option<T> {
    fetch_json(model, Method::Get, url, Bytes::new()).await
}

async fn fetch_json<T: DeserializeOwned>(
    model: &HttpModel,
    method: Method,
    url: &str,
    body: Bytes,
) -> Option<T> {
    let headers = model.headers.iter().filter(|header| header.name != "accept").cloned().collect();
    let request = HttpRequest { method, url: url.to_owned(), headers, body };
    let response = model.transport.send(request).await.ok()?;
    if response.status != 200 {
        return None;
    }
    let body = read_bounded(response.body, MAX_ANSWER_BYTES).await.ok()?;
    serde_json::from_slice(&body).ok()
}

#[derive(Deserialize)]
struct LlamaCppProps {
    default_generation_settings: LlamaCppSettings,
}

#[derive(Deserialize)]
struct LlamaCppSettings {
    n_ctx: u64,
}

fn llama_cpp_limits(props: &LlamaCppProps) -> Option<ServerLimits> {
    let window = props.default_generation_settings.n_ctx;
    (window > 0).then(|| ServerLimits::of_loaded_model(window))
}

#[derive(Deserialize)]
struct OllamaVersion {
    version: String,
}

#[derive(Deserialize)]
struct OllamaProcesses {
    models: Vec<OllamaProcess>,
}

#[derive(Deserialize)]
struct OllamaProcess {
    #[serde(default)]
    name: String,
    #[serde(default)]
    model: String,
    context_length: Option<u64>,
}

#[derive(Deserialize)]
struct OllamaModel {
    #[serde(default)]
    parameters: String,
    #[serde(default)]
    model_info: BTreeMap<String, Value>,
}

async fn ollama_limits(model: &HttpModel) -> Option<ServerLimits> {
    if let Some(processes) = get_json::<OllamaProcesses>(model, &root_url(model, "/api/ps")).await
        && let Some(window) = ollama_loaded_window(&processes, &model.model)
    {
        return Some(ServerLimits::of_loaded_model(window));
    }
    let body = serde_json::to_vec(&json!({ "model": model.model })).ok()?;
    let shown = fetch_json(model, Method::Post, &root_url(model, "/api/show"), body.into()).await?;
    ollama_unloaded_limits(&shown)
}

/// Returns the window of the model if it is loaded. A name without a tag means `latest`.
fn ollama_loaded_window(processes: &OllamaProcesses, model: &str) -> Option<u64> {
    let latest = format!("{model}:latest");
    let is_it = |name: &str| name == model || name == latest;
    let loaded = processes.models.iter().find(|process| is_it(&process.name) || is_it(&process.model))?;
    loaded.context_length.filter(|window| *window > 0)
}

/// Returns the window that a model will have when it is loaded: the one that its Modelfile sets,
/// else the server's default, which may be larger than assumed here but not than the model's own.
fn ollama_unloaded_limits(model: &OllamaModel) -> Option<ServerLimits> {
    let own = model.model_info.iter().find(|(key, _)| key.ends_with(".context_length"));
    let own = own.and_then(|(_, value)| value.as_u64());
    let set = model.parameters.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("num_ctx")).then(|| words.next()?.parse::<u64>().ok()).flatten()
    });
    match (set, own) {
        (Some(set), own) => Some(ServerLimits::of_unloaded_model(own.map_or(set, |own| own.min(set)))),
        (None, Some(own)) => Some(ServerLimits::of_unloaded_model(own.min(OLLAMA_DEFAULT_WINDOW))),
        (None, None) => None,
    }
}

#[derive(Deserialize)]
struct LmStudioModels {
    data: Vec<LmStudioModel>,
}

#[derive(Deserialize)]
struct LmStudioModel {
    id: String,
    loaded_context_length: Option<u64>,
    max_context_length: Option<u64>,
}

fn lm_studio_limits(models: &LmStudioModels, name: &str) -> Option<ServerLimits> {
    let model = models.data.iter().find(|model| model.id == name)?;
    match (model.loaded_context_length, model.max_context_length) {
        (Some(loaded), _) if loaded > 0 => Some(ServerLimits::of_loaded_model(loaded)),
        // LM Studio loads models with less than they support, unless the user chose otherwise.
        (_, Some(most)) => {
            Some(ServerLimits::of_unloaded_model(most.min(ModelLimits::DEFAULT_LOCAL_WINDOW.0)))
        }
        _ => None,
    }
}

/// A list of models, in one of the forms that servers use, or in both (llama.cpp).
#[derive(Deserialize)]
struct ModelList {
    #[serde(default)]
    data: Vec<Value>,
    #[serde(default)]
    models: Vec<Value>,
}

/// The names that servers give to a model's window in their lists: vLLM and SGLang, OpenRouter and
/// Together, Groq, Mistral, Gemini.
const WINDOW_FIELDS: [&str; 5] =
    ["max_model_len", "context_length", "context_window", "max_context_length", "inputTokenLimit"];
/// The names that servers give to the longest reply: OpenRouter and Groq, Gemini.
const OUTPUT_FIELDS: [&str; 2] = ["max_completion_tokens", "outputTokenLimit"];

/// Returns the limits in the model's entry. OpenRouter has those of the provider that answers
/// (`top_provider`) beside those of the model, and variants such as `:free` that may not be listed.
fn listed_limits(list: &ModelList, name: &str) -> Option<ServerLimits> {
    let is_called = |model: &Value, name: &str| {
        let id = model.get("id").or_else(|| model.get("name")).and_then(Value::as_str).unwrap_or_default();
        id.strip_prefix("models/").unwrap_or(id) == name
    };
    let find = |name: &str| list.data.iter().chain(&list.models).find(|model| is_called(model, name));
    let base = name.split_once(':').map_or(name, |(base, _)| base);
    let model = find(name).or_else(|| find(base))?;
    let top = model.get("top_provider").unwrap_or(&Value::Null);
    let number = |fields: &[&str]| {
        let places = [top, model].into_iter();
        let mut found =
            places.flat_map(|place| fields.iter().filter_map(|field| place.get(*field)?.as_u64()));
        found.find(|number| *number > 0)
    };
    let window = number(&WINDOW_FIELDS)?;
    let most = number(&OUTPUT_FIELDS).map(Tokens);
    Some(ServerLimits { max_output: most, ..ServerLimits::of_loaded_model(window) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_ollama_model_that_is_not_loaded_has_what_its_modelfile_says() {
        let own = |window: u64| json!({ "qwen3.context_length": window, "general.architecture": "qwen3" });
        let cases = [
            (
                json!({ "parameters": "stop \"<|im_end|>\"\nnum_ctx   16384", "model_info": own(40_960) }),
                16_384,
            ),
            (json!({ "parameters": "num_ctx 65536", "model_info": own(40_960) }), 40_960),
            (json!({ "parameters": "num_ctx 2048" }), 2_048),
            (json!({ "model_info": own(262_144) }), 4_096),
            (json!({ "model_info": own(2_048) }), 2_048),
        ];
        for (answer, window) in cases {
            let told = ollama_unloaded_limits(&parse(answer.clone()));
            assert_eq!(told, Some(ServerLimits::of_unloaded_model(window)), "{answer}");
        }
        for nothing in [
            json!({}),
            json!({ "parameters": "num_ctx many\nnum_ctx", "model_info": { "a.context_length": "x" } }),
        ] {
            assert_eq!(ollama_unloaded_limits(&parse(nothing)), None);
        }
    }

    #[test]
    fn a_loaded_ollama_model_is_found_with_and_without_its_tag() {
        let processes = parse(json!({ "models": [
            { "name": "other:latest", "model": "other:latest", "context_length": 1 },
            { "name": "qwen3:latest", "model": "qwen3:latest", "context_length": 32_768 },
            { "name": "old:1b" },
        ] }));
        for (model, window) in
            [("qwen3", Some(32_768)), ("qwen3:latest", Some(32_768)), ("qwen3:8b", None), ("old:1b", None)]
        {
            assert_eq!(ollama_loaded_window(&processes, model), window, "{model}");
        }
    }

    #[test]
    fn lists_of_models_tell_the_window_of_the_one_that_is_used() {
        let studio: LmStudioModels = parse(json!({ "object": "list", "data": [
            { "id": "loaded", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 16_000 },
            { "id": "idle", "state": "not-loaded", "max_context_length": 131_072 },
            { "id": "bare" },
        ] }));
        assert_eq!(lm_studio_limits(&studio, "loaded"), Some(ServerLimits::of_loaded_model(16_000)));
        assert_eq!(lm_studio_limits(&studio, "idle"), Some(ServerLimits::of_unloaded_model(8_192)));
        assert_eq!(lm_studio_limits(&studio, "bare"), None);
        assert_eq!(lm_studio_limits(&studio, "another"), None);
        let listed = |list: Value, name: &str| listed_limits(&parse(list), name);
        for field in WINDOW_FIELDS {
            let list = json!({ "data": [7, { "id": "n" }, { "id": "m", field: 40_960 }] });
            assert_eq!(listed(list, "m"), Some(ServerLimits::of_loaded_model(40_960)), "{field}");
        }
        let gemini = json!({ "models": [
            { "name": "models/g", "inputTokenLimit": 1_048_576, "outputTokenLimit": 32_000 }] });
        let told =
            ServerLimits { max_output: Some(Tokens(32_000)), ..ServerLimits::of_loaded_model(1_048_576) };
        assert_eq!(listed(gemini, "g"), Some(told));
        let both = json!({ "models": [{ "name": "m" }], "data": [{ "id": "m", "context_length": 8_192 }] });
        assert_eq!(listed(both, "m"), Some(ServerLimits::of_loaded_model(8_192)));
        for none in
            [json!({ "data": [{ "id": "m", "context_length": "many" }] }), json!({ "data": [] }), json!({})]
        {
            assert_eq!(listed(none, "m"), None);
        }
        let routed: ModelList = parse(json!({ "data": [
            { "id": "a/b", "context_length": 200_000,
              "top_provider": { "context_length": 128_000, "max_completion_tokens": 32_000 } },
            { "id": "a/c:free", "context_length": 64_000, "top_provider": { "context_length": null } },
        ] }));
        let expected =
            ServerLimits { max_output: Some(Tokens(32_000)), ..ServerLimits::of_loaded_model(128_000) };
        assert_eq!(listed_limits(&routed, "a/b"), Some(expected));
        assert_eq!(listed_limits(&routed, "a/b:nitro"), Some(expected));
        assert_eq!(listed_limits(&routed, "a/c:free"), Some(ServerLimits::of_loaded_model(64_000)));
        assert_eq!(listed_limits(&routed, "a/c"), None);
    }
}
