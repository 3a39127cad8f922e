//! Every configuration key, in one table.

use super::conversation::{LINK_NAMES, NOTICE_NAMES, THEME_NAMES};
use super::key::{Key, KeyKind, ProjectMay, key};

const WIRE_NAMES: &[&str] = &["anthropic", "responses", "chat", "gemini"];
const SANDBOX_NAMES: &[&str] = &["namespaces", "bubblewrap", "container", "landlock", "none"];
const EFFORT_NAMES: &[&str] = &["low", "medium", "high"];

/// Every configuration key.
pub const KEYS: &[Key] = &[
    key("model", KeyKind::Text, ProjectMay::SetIfTrusted, Some("JM_MODEL"), "the model, as provider/name"),
    key(
        "base_url",
        KeyKind::Text,
        ProjectMay::SetIfTrusted,
        Some("JM_BASE_URL"),
        "an endpoint without any provider; goes with wire",
    ),
    key(
        "wire",
        KeyKind::OneOf(WIRE_NAMES),
        ProjectMay::SetIfTrusted,
        Some("JM_WIRE"),
        "the protocol that base_url speaks",
    ),
    key(
        "mode",
        KeyKind::Mode,
        ProjectMay::Narrow,
        Some("JM_MODE"),
        "the permission mode: what is allowed without asking",
    ),
    key(
        "plan_first",
        KeyKind::OneOf(&["auto", "always", "never"]),
        ProjectMay::Nothing,
        Some("JM_PLAN_FIRST"),
        "whether a session's first task is planned before it is worked on: `auto` (built-in) where its words say that it touches several files",
    ),
    key(
        "max_turns",
        KeyKind::Count,
        ProjectMay::Narrow,
        Some("JM_MAX_TURNS"),
        "model requests before a run stops",
    ),
    key(
        "max_iterations",
        KeyKind::Count,
        ProjectMay::Narrow,
        Some("JM_MAX_ITERATIONS"),
        "rounds of failed checks that go back to the model",
    ),
    key(
        "test_budget",
        KeyKind::Duration,
        ProjectMay::Narrow,
        None,
        "time that all tests may take; where they are known to take longer, those that the change affects verify it alone",
    ),
    key(
        "lint_fix",
        KeyKind::Switch,
        ProjectMay::Narrow,
        None,
        "linters that fail newly repair the changed files before the model is told; built-in true",
    ),
    key("timeout", KeyKind::Duration, ProjectMay::Narrow, Some("JM_TIMEOUT"), "wall time before a run stops"),
    key(
        "budget_usd",
        KeyKind::Number,
        ProjectMay::Narrow,
        Some("JM_BUDGET"),
        "US dollars before a run stops",
    ),
    key(
        "checks",
        KeyKind::List,
        ProjectMay::SetIfTrusted,
        None,
        "shell commands that verify a change, in place of those found",
    ),
    key(
        "accept_findings",
        KeyKind::List,
        ProjectMay::Nothing,
        None,
        "findings about tests and checks that say less than before, which then don't keep a run from being verified: `test-skipped`, or `test-skipped:tests/slow.py` for one file",
    ),
    key(
        "verified_needs",
        KeyKind::OneOf(&["ran", "covers", "notices"]),
        ProjectMay::Nothing,
        None,
        "the strength of tests that a verified change needs: `ran` (built-in), `covers` (they run each changed statement), `notices` (they also fail for small mutations of it)",
    ),
    key(
        "notice_budget",
        KeyKind::Number,
        ProjectMay::Nothing,
        None,
        "seconds of wall time for measuring what the tests would notice of a change, after they passed; unset, 10; 0 measures nothing",
    ),
    key(
        "isolate",
        KeyKind::Switch,
        ProjectMay::Narrow,
        Some("JM_ISOLATE"),
        "true to work in a copy of the project, which is landed when it is verified; a project may only turn it on",
    ),
    key(
        "isolation",
        KeyKind::List,
        ProjectMay::Nothing,
        None,
        "the ways of copying the project to try, in this order: overlay, reflink, worktree, copy; unset, all of them",
    ),
    key(
        "hooks.*",
        KeyKind::Hooks,
        ProjectMay::SetIfTrusted,
        None,
        "your own programs that run at events; see docs/hooks.md",
    ),
    key(
        "instructions",
        KeyKind::Text,
        ProjectMay::Set,
        None,
        "instructions for the model besides the project's own files",
    ),
    key(
        "context_tokens",
        KeyKind::Count,
        ProjectMay::Set,
        Some("JM_CONTEXT_TOKENS"),
        "maximum size of the first context, in tokens",
    ),
    key(
        "compaction.threshold",
        KeyKind::Count,
        ProjectMay::Set,
        Some("JM_COMPACTION_THRESHOLD"),
        "percentage of the model's input room above which the conversation is shortened; 75",
    ),
    key(
        "compaction.summarize",
        KeyKind::Switch,
        ProjectMay::Set,
        Some("JM_COMPACTION_SUMMARIZE"),
        "ask the model for a summary when the conversation is shortened; true",
    ),
    key(
        "max_output_tokens",
        KeyKind::Count,
        ProjectMay::Set,
        Some("JM_MAX_OUTPUT_TOKENS"),
        "output limit of one reply",
    ),
    key(
        "session.approval_timeout",
        KeyKind::Duration,
        ProjectMay::Narrow,
        Some("JM_APPROVAL_TIMEOUT"),
        "time after which an unanswered question counts as denied; unset, never",
    ),
    key(
        "tools.concurrency",
        KeyKind::Count,
        ProjectMay::Narrow,
        Some("JM_TOOLS_CONCURRENCY"),
        "tool calls that run at once",
    ),
    key(
        "tools.timeout",
        KeyKind::Duration,
        ProjectMay::Narrow,
        Some("JM_TOOLS_TIMEOUT"),
        "timeout of a tool call; commands have their own limit, which the model sets",
    ),
    key(
        "tools.commands.*",
        KeyKind::CommandTool,
        ProjectMay::SetIfTrusted,
        None,
        "a command that the model may call as a tool of this name; see docs/tools.md",
    ),
    key(
        "tools.delegate",
        KeyKind::List,
        ProjectMay::Nothing,
        None,
        "other coding CLIs that the model may give tasks to by the tool delegate_task; see docs/delegates.md",
    ),
    key(
        "tools.editing.*",
        KeyKind::List,
        ProjectMay::Nothing,
        None,
        "the tools for changing files that models are offered whose provider/name matches the key, in which * stands for any characters: edit_file, write_file, apply_patch, edit_symbol, delete_file, move_file",
    ),
    key(
        "web.fetch",
        KeyKind::Switch,
        ProjectMay::Nothing,
        None,
        "true to tell the model that it may fetch web pages, false not to; unset, where somebody can be asked. Each host is judged by your rules",
    ),
    key(
        "web.search",
        KeyKind::OneOf(&["brave", "searxng"]),
        ProjectMay::Nothing,
        None,
        "the engine that the model searches the web with; unset, it can't",
    ),
    key(
        "web.search_url",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "the address of the engine's interface; searxng needs one, such as https://searx.example/search",
    ),
    key(
        "web.search_key_env",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "the environment variable that has the engine's key; BRAVE_API_KEY for brave",
    ),
    key(
        "todos.enabled",
        KeyKind::Switch,
        ProjectMay::Set,
        Some("JM_TODOS"),
        "true for the model to keep a list of what it has to do",
    ),
    key(
        "todos.remind_every",
        KeyKind::Count,
        ProjectMay::Set,
        None,
        "steps with open todos and no change of the list before the model is reminded",
    ),
    key(
        "loop_guard",
        KeyKind::Switch,
        ProjectMay::Nothing,
        Some("JM_LOOP_GUARD"),
        "true to stop a reply that repeats itself, and to warn a run that makes no progress twice and then stop it",
    ),
    key(
        "conversation.plain",
        KeyKind::Switch,
        ProjectMay::Nothing,
        Some("JM_PLAIN"),
        "true to write the conversation as lines and to draw nothing again: for screen readers; terminals without a cursor and pipes have it anyway",
    ),
    key(
        "conversation.theme",
        KeyKind::OneOf(THEME_NAMES),
        ProjectMay::Nothing,
        Some("JM_THEME"),
        "the colours of the conversation: auto asks the terminal what it stands on",
    ),
    key(
        "conversation.notify",
        KeyKind::OneOf(NOTICE_NAMES),
        ProjectMay::Nothing,
        None,
        "the notice at a question or the end while another window is in front; bell by default",
    ),
    key(
        "conversation.links",
        KeyKind::OneOf(LINK_NAMES),
        ProjectMay::Nothing,
        None,
        "the terminals in which paths are links to the project's files; auto: those that are known to take them",
    ),
    key(
        "conversation.status_command",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "a shell command of yours that ends the status line with the first line of its output; it gets facts about the session as JSON",
    ),
    key("conversation.vi", KeyKind::Switch, ProjectMay::Nothing, None, "true for the keys of vi in messages"),
    key(
        "conversation.keys.*",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "the key of an action, such as `transcript = \"ctrl-o\"`; `?` in a conversation shows the actions' names and keys",
    ),
    key(
        "index.vectors",
        KeyKind::Text,
        ProjectMay::Nothing,
        Some("JM_INDEX_VECTORS"),
        "the model that vectors of the code are made with: model2vec:DIRECTORY, or provider/name; unset, none are",
    ),
    key(
        "index.vectors_weight",
        KeyKind::Number,
        ProjectMay::Nothing,
        None,
        "the weight of vectors in a search, where words have the weight 1; 0.2 by default",
    ),
    key(
        "index.vectors_timeout",
        KeyKind::Duration,
        ProjectMay::Nothing,
        None,
        "time that a query waits for its own vector before it is answered without; 2 s by default",
    ),
    key(
        "index.vectors_query_prefix",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "the text that the model wants before a query, such as \"search_query: \"",
    ),
    key(
        "index.vectors_document_prefix",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "the text that the model wants before a text that is searched, such as \"search_document: \"",
    ),
    key("temperature", KeyKind::Number, ProjectMay::Set, Some("JM_TEMPERATURE"), "sampling temperature"),
    key("top_p", KeyKind::Number, ProjectMay::Set, Some("JM_TOP_P"), "nucleus sampling"),
    key(
        "thinking_tokens",
        KeyKind::Count,
        ProjectMay::Set,
        Some("JM_THINKING_TOKENS"),
        "maximum length of the model's thinking, in tokens",
    ),
    key(
        "effort",
        KeyKind::OneOf(EFFORT_NAMES),
        ProjectMay::Set,
        Some("JM_EFFORT"),
        "the effort of the model's thinking, for models that take a word",
    ),
    key(
        "secrets",
        KeyKind::List,
        ProjectMay::Set,
        None,
        "environment variables whose values are never shown, kept or sent",
    ),
    key(
        "sandbox.allow",
        KeyKind::List,
        ProjectMay::Nothing,
        None,
        "weaker sandboxes that may run commands (container, landlock, none); \"none\" runs them with your rights",
    ),
    key(
        "sandbox.prefer",
        KeyKind::OneOf(SANDBOX_NAMES),
        ProjectMay::Nothing,
        None,
        "the sandbox that is tried first, where it is allowed",
    ),
    key(
        "sandbox.allow_root",
        KeyKind::Switch,
        ProjectMay::Nothing,
        None,
        "true to let sandboxes other than \"namespaces\" run root's commands",
    ),
    key(
        "sandbox.container.image",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "the image on this machine that commands in containers run in",
    ),
    key(
        "sandbox.container.project",
        KeyKind::OneOf(super::container::PROJECT_IMAGE_KINDS),
        ProjectMay::Nothing,
        None,
        "run commands in an image that the project describes, once you trust it",
    ),
    key(
        "sandbox.container.dockerfile",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "the project's Dockerfile that describes it, from the root",
    ),
    key(
        "sandbox.container.socket",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "the socket of Docker or Podman; else DOCKER_HOST, else the usual ones",
    ),
    key(
        "sandbox.container.image_environment",
        KeyKind::Switch,
        ProjectMay::Nothing,
        None,
        "true to add the image's own variables and directories of PATH",
    ),
    key(
        "sandbox.container.cpus",
        KeyKind::Number,
        ProjectMay::Nothing,
        None,
        "processors that commands in one container use together; all by default",
    ),
    key(
        "delegate_order",
        KeyKind::List,
        ProjectMay::Nothing,
        None,
        "the coding CLIs that jm delegate --to auto tries, the preferred first",
    ),
    key(
        "delegates.*.cli",
        KeyKind::Cli,
        ProjectMay::SetIfTrusted,
        None,
        "a coding CLI of this name that isn't built in; see docs/delegates.md",
    ),
    key("delegates.*.model", KeyKind::Text, ProjectMay::SetIfTrusted, None, "the model of the CLI's own"),
    key("delegates.*.arguments", KeyKind::List, ProjectMay::Nothing, None, "further arguments of the CLI"),
    key(
        "delegates.*.timeout",
        KeyKind::Duration,
        ProjectMay::SetIfTrusted,
        None,
        "time of one run of the CLI: 300 s, or 60 s for one that isn't confined",
    ),
    key(
        "delegates.*.base_url",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "the address of the CLI's provider, in place of the provider's own; it may be on this machine",
    ),
    key(
        "delegates.*.network",
        KeyKind::List,
        ProjectMay::Nothing,
        None,
        "further hosts, and addresses such as 127.0.0.1:11434, that the CLI may reach",
    ),
    key(
        "providers.*.wire",
        KeyKind::OneOf(WIRE_NAMES),
        ProjectMay::SetIfTrusted,
        None,
        "the protocol the provider speaks",
    ),
    key("providers.*.base_url", KeyKind::Text, ProjectMay::SetIfTrusted, None, "the address of the provider"),
    key(
        "providers.*.key_env",
        KeyKind::List,
        ProjectMay::SetIfTrusted,
        None,
        "environment variables that may hold its key, first set wins",
    ),
    key(
        "providers.*.tool_calling",
        KeyKind::Switch,
        ProjectMay::SetIfTrusted,
        None,
        "true if its models call tools; otherwise the text protocol is used",
    ),
    key(
        "providers.*.headers.*",
        KeyKind::Text,
        ProjectMay::SetIfTrusted,
        None,
        "a further header of each request",
    ),
    key(
        "providers.*.proxy",
        KeyKind::Text,
        ProjectMay::SetIfTrusted,
        None,
        "a proxy in place of HTTPS_PROXY and HTTP_PROXY",
    ),
    key(
        "providers.*.connect_timeout",
        KeyKind::Duration,
        ProjectMay::SetIfTrusted,
        None,
        "timeout for connecting",
    ),
    key(
        "providers.*.first_byte_timeout",
        KeyKind::Duration,
        ProjectMay::SetIfTrusted,
        None,
        "timeout for the first byte of a reply",
    ),
    key(
        "providers.*.idle_timeout",
        KeyKind::Duration,
        ProjectMay::SetIfTrusted,
        None,
        "timeout for a pause within a reply",
    ),
    key(
        "providers.*.total_timeout",
        KeyKind::Duration,
        ProjectMay::SetIfTrusted,
        None,
        "timeout for a whole reply",
    ),
    key(
        "providers.*.models.*.input",
        KeyKind::Number,
        ProjectMay::Nothing,
        None,
        "US dollars for a million input tokens",
    ),
    key(
        "providers.*.models.*.output",
        KeyKind::Number,
        ProjectMay::Nothing,
        None,
        "US dollars for a million output tokens",
    ),
    key(
        "providers.*.models.*.cache_read",
        KeyKind::Number,
        ProjectMay::Nothing,
        None,
        "US dollars for a million tokens read from the cache",
    ),
    key(
        "providers.*.models.*.cache_write",
        KeyKind::Number,
        ProjectMay::Nothing,
        None,
        "US dollars for a million tokens written into the cache",
    ),
    key(
        "providers.*.models.*.window",
        KeyKind::Count,
        ProjectMay::Nothing,
        None,
        "the context window in tokens, in place of the known one",
    ),
    key(
        "providers.*.models.*.max_output",
        KeyKind::Count,
        ProjectMay::Nothing,
        None,
        "the longest reply in tokens that the model gives",
    ),
    key(
        "providers.*.models.*.tokenizer",
        KeyKind::Text,
        ProjectMay::Nothing,
        None,
        "how its tokens are counted: \"o200k\", \"cl100k\" or the path of a tokenizer.json",
    ),
];

/// Returns the key that a dotted path names.
#[must_use]
pub(super) fn find_key(path: &[String]) -> Option<&'static Key> {
    KEYS.iter().find(|key| is_match(key.name, path))
}

/// Returns true if a key lies beneath this path, so that a table may stand there.
#[must_use]
pub(super) fn is_table(path: &[String]) -> bool {
    KEYS.iter().any(|key| {
        let words: Vec<&str> = key.name.split('.').collect();
        words.len() > path.len() && words.iter().zip(path).all(|(word, part)| *word == "*" || word == part)
    })
}

/// Returns the known key or table nearest to a dotted path, for "did you mean". Only keys of the
/// same table are considered.
#[must_use]
pub(super) fn nearest_key(path: &[String]) -> Option<String> {
    let (last, table) = path.split_last()?;
    let names = KEYS.iter().filter_map(|key| {
        let mut words = key.name.split('.');
        let is_sibling =
            table.iter().all(|part| words.next().is_some_and(|word| word == "*" || word == part));
        words.next().filter(|word| is_sibling && *word != "*")
    });
    let name = nearest_name(names, last)?;
    Some([table, &[name.to_owned()]].concat().join("."))
}

/// Returns the name nearest to `given` if one is near. Of names at the same distance, the one of
/// the same length wins: letters are swapped more often than left out.
fn nearest_name<'a>(names: impl Iterator<Item = &'a str>, given: &str) -> Option<&'a str> {
    names
        .map(|name| (strsim::damerau_levenshtein(name, given), name.len().abs_diff(given.len()), name))
        .filter(|(distance, _, name)| *distance <= 2.max(name.len() / 3))
        .min()
        .map(|(.., name)| name)
}

fn is_match(name: &str, path: &[String]) -> bool {
    let words: Vec<&str> = name.split('.').collect();
    words.len() == path.len() && words.iter().zip(path).all(|(word, part)| *word == "*" || word == part)
}
