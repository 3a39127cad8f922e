//! Every configuration key, in one table.

use super::conversation::{LINK_MODE_NAMES, NOTIFY_MODE_NAMES, THEME_NAMES};
use super::key::ProjectPermission::{Narrow, Nothing, Set, SetIfTrusted};
use super::key::{Key, KeyKind, define_key};

const WIRE_NAMES: &[&str] = &["anthropic", "responses", "chat", "gemini"];
const SANDBOX_NAMES: &[&str] = &["namespaces", "bubblewrap", "container", "landlock", "none"];
const EFFORT_NAMES: &[&str] = &["low", "medium", "high"];

/// Every configuration key.
pub const KEYS: &[Key] = &[
    define_key("model", KeyKind::Text, SetIfTrusted, Some("JM_MODEL"), "the model, as provider/name"),
    define_key(
        "base_url",
        KeyKind::Text,
        SetIfTrusted,
        Some("JM_BASE_URL"),
        "an endpoint without any provider; goes with wire",
    ),
    define_key(
        "wire",
        KeyKind::OneOf(WIRE_NAMES),
        SetIfTrusted,
        Some("JM_WIRE"),
        "the protocol that base_url speaks",
    ),
    define_key(
        "mode",
        KeyKind::Mode,
        Narrow,
        Some("JM_MODE"),
        "the permission mode: what is allowed without asking",
    ),
    define_key(
        "plan_first",
        KeyKind::OneOf(&["auto", "always", "never"]),
        Nothing,
        Some("JM_PLAN_FIRST"),
        "whether a session's first task is planned before it is worked on: `auto` (built-in) where its words say that it touches several files",
    ),
    define_key(
        "max_turns",
        KeyKind::Count,
        Narrow,
        Some("JM_MAX_TURNS"),
        "model requests before a run stops",
    ),
    define_key(
        "max_iterations",
        KeyKind::Count,
        Narrow,
        Some("JM_MAX_ITERATIONS"),
        "rounds of failed checks that go back to the model",
    ),
    define_key(
        "test_budget",
        KeyKind::Duration,
        Narrow,
        None,
        "time that all tests may take; where they are known to take longer, those that the change affects verify it alone",
    ),
    define_key(
        "lint_fix",
        KeyKind::Switch,
        Narrow,
        None,
        "linters that fail newly repair the changed files before the model is told; built-in true",
    ),
    define_key("timeout", KeyKind::Duration, Narrow, Some("JM_TIMEOUT"), "wall time before a run stops"),
    define_key("budget_usd", KeyKind::Number, Narrow, Some("JM_BUDGET"), "US dollars before a run stops"),
    define_key(
        "checks",
        KeyKind::List,
        SetIfTrusted,
        None,
        "shell commands that verify a change, in place of those found",
    ),
    define_key(
        "accept_findings",
        KeyKind::List,
        Nothing,
        None,
        "findings about tests and checks that say less than before, which then don't keep a run from being verified: `test-skipped`, or `test-skipped:tests/slow.py` for one file",
    ),
    define_key(
        "verified_needs",
        KeyKind::OneOf(&["ran", "covers", "notices"]),
        Nothing,
        None,
        "the strength of tests that a verified change needs: `ran` (built-in), `covers` (they run each changed statement), `notices` (they also fail for small mutations of it)",
    ),
    define_key(
        "notice_budget",
        KeyKind::Number,
        Nothing,
        None,
        "seconds of wall time for measuring what the tests would notice of a change, after they passed; unset, 10; 0 measures nothing",
    ),
    define_key(
        "isolate",
        KeyKind::Switch,
        Narrow,
        Some("JM_ISOLATE"),
        "true to work in a copy of the project, which is landed when it is verified; a project may only turn it on",
    ),
    define_key(
        "isolation",
        KeyKind::List,
        Nothing,
        None,
        "the ways of copying the project to try, in this order: overlay, reflink, worktree, copy; unset, all of them",
    ),
    define_key(
        "hooks.*",
        KeyKind::Hooks,
        SetIfTrusted,
        None,
        "your own programs that run at events; see docs/hooks.md",
    ),
    define_key(
        "instructions",
        KeyKind::Text,
        Set,
        None,
        "instructions for the model besides the project's own files",
    ),
    define_key(
        "context_tokens",
        KeyKind::Count,
        Set,
        Some("JM_CONTEXT_TOKENS"),
        "maximum size of the first context, in tokens",
    ),
    define_key(
        "compaction.threshold",
        KeyKind::Count,
        Set,
        Some("JM_COMPACTION_THRESHOLD"),
        "percentage of the model's input room above which the conversation is shortened; 75",
    ),
    define_key(
        "compaction.summarize",
        KeyKind::Switch,
        Set,
        Some("JM_COMPACTION_SUMMARIZE"),
        "ask the model for a summary when the conversation is shortened; true",
    ),
    define_key(
        "max_output_tokens",
        KeyKind::Count,
        Set,
        Some("JM_MAX_OUTPUT_TOKENS"),
        "output limit of one reply",
    ),
    define_key(
        "session.approval_timeout",
        KeyKind::Duration,
        Narrow,
        Some("JM_APPROVAL_TIMEOUT"),
        "time after which an unanswered question counts as denied; unset, never",
    ),
    define_key(
        "tools.concurrency",
        KeyKind::Count,
        Narrow,
        Some("JM_TOOLS_CONCURRENCY"),
        "tool calls that run at once",
    ),
    define_key(
        "tools.timeout",
        KeyKind::Duration,
        Narrow,
        Some("JM_TOOLS_TIMEOUT"),
        "timeout of a tool call; commands have their own limit, which the model sets",
    ),
    define_key(
        "tools.commands.*",
        KeyKind::CommandTool,
        SetIfTrusted,
        None,
        "a command that the model may call as a tool of this name; see docs/tools.md",
    ),
    define_key(
        "tools.delegate",
        KeyKind::List,
        Nothing,
        None,
        "other coding CLIs that the model may give tasks to by the tool delegate_task; see docs/delegates.md",
    ),
    define_key(
        "tools.editing.*",
        KeyKind::List,
        Nothing,
        None,
        "the tools for changing files that models are offered whose provider/name matches the key, in which * stands for any characters: edit_file, write_file, apply_patch, edit_symbol, delete_file, move_file",
    ),
    define_key(
        "web.fetch",
        KeyKind::Switch,
        Nothing,
        None,
        "true to tell the model that it may fetch web pages, false not to; unset, where somebody can be asked. Each host is judged by your rules",
    ),
    define_key(
        "web.search",
        KeyKind::OneOf(&["brave", "searxng"]),
        Nothing,
        None,
        "the engine that the model searches the web with; unset, it can't",
    ),
    define_key(
        "web.search_url",
        KeyKind::Text,
        Nothing,
        None,
        "the address of the engine's interface; searxng needs one, such as https://searx.example/search",
    ),
    define_key(
        "web.search_key_env",
        KeyKind::Text,
        Nothing,
        None,
        "the environment variable that has the engine's key; BRAVE_API_KEY for brave",
    ),
    define_key(
        "todos.enabled",
        KeyKind::Switch,
        Set,
        Some("JM_TODOS"),
        "true for the model to keep a list of what it has to do",
    ),
    define_key(
        "todos.remind_every",
        KeyKind::Count,
        Set,
        None,
        "steps with open todos and no change of the list before the model is reminded",
    ),
    define_key(
        "loop_guard",
        KeyKind::Switch,
        Nothing,
        Some("JM_LOOP_GUARD"),
        "true to stop a reply that repeats itself, and to warn a run that makes no progress twice and then stop it",
    ),
    define_key(
        "conversation.plain",
        KeyKind::Switch,
        Nothing,
        Some("JM_PLAIN"),
        "true to write the conversation as lines and to draw nothing again: for screen readers; terminals without a cursor and pipes have it anyway",
    ),
    define_key(
        "conversation.theme",
        KeyKind::OneOf(THEME_NAMES),
        Nothing,
        Some("JM_THEME"),
        "the colours of the conversation: auto asks the terminal what it stands on",
    ),
    define_key(
        "conversation.notify",
        KeyKind::OneOf(NOTIFY_MODE_NAMES),
        Nothing,
        None,
        "the notice at a question or the end while another window is in front; bell by default",
    ),
    define_key(
        "conversation.links",
        KeyKind::OneOf(LINK_MODE_NAMES),
        Nothing,
        None,
        "the terminals in which paths are links to the project's files; auto: those that are known to take them",
    ),
    define_key(
        "conversation.status_command",
        KeyKind::Text,
        Nothing,
        None,
        "a shell command of yours that ends the status line with the first line of its output; it gets facts about the session as JSON",
    ),
    define_key("conversation.vi", KeyKind::Switch, Nothing, None, "true for the keys of vi in messages"),
    define_key(
        "conversation.keys.*",
        KeyKind::Text,
        Nothing,
        None,
        "the key of an action, such as `transcript = \"ctrl-o\"`; `?` in a conversation shows the actions' names and keys",
    ),
    define_key(
        "index.vectors",
        KeyKind::Text,
        Nothing,
        Some("JM_INDEX_VECTORS"),
        "the model that vectors of the code are made with: model2vec:DIRECTORY, or provider/name; unset, none are",
    ),
    define_key(
        "index.vectors_weight",
        KeyKind::Number,
        Nothing,
        None,
        "the weight of vectors in a search, where words have the weight 1; 0.2 by default",
    ),
    define_key(
        "index.vectors_timeout",
        KeyKind::Duration,
        Nothing,
        None,
        "time that a query waits for its own vector before it is answered without; 2 s by default",
    ),
    define_key(
        "index.vectors_query_prefix",
        KeyKind::Text,
        Nothing,
        None,
        "the text that the model wants before a query, such as \"search_query: \"",
    ),
    define_key(
        "index.vectors_document_prefix",
        KeyKind::Text,
        Nothing,
        None,
        "the text that the model wants before a text that is searched, such as \"search_document: \"",
    ),
    define_key("temperature", KeyKind::Number, Set, Some("JM_TEMPERATURE"), "sampling temperature"),
    define_key("top_p", KeyKind::Number, Set, Some("JM_TOP_P"), "nucleus sampling"),
    define_key(
        "thinking_tokens",
        KeyKind::Count,
        Set,
        Some("JM_THINKING_TOKENS"),
        "maximum length of the model's thinking, in tokens",
    ),
    define_key(
        "effort",
        KeyKind::OneOf(EFFORT_NAMES),
        Set,
        Some("JM_EFFORT"),
        "the effort of the model's thinking, for models that take a word",
    ),
    define_key(
        "secrets",
        KeyKind::List,
        Set,
        None,
        "environment variables whose values are never shown, kept or sent",
    ),
    define_key(
        "sandbox.allow",
        KeyKind::List,
        Nothing,
        None,
        "weaker sandboxes that may run commands (container, landlock, none); \"none\" runs them with your rights",
    ),
    define_key(
        "sandbox.prefer",
        KeyKind::OneOf(SANDBOX_NAMES),
        Nothing,
        None,
        "the sandbox that is tried first, where it is allowed",
    ),
    define_key(
        "sandbox.allow_root",
        KeyKind::Switch,
        Nothing,
        None,
        "true to let sandboxes other than \"namespaces\" run root's commands",
    ),
    define_key(
        "sandbox.container.image",
        KeyKind::Text,
        Nothing,
        None,
        "the image on this machine that commands in containers run in",
    ),
    define_key(
        "sandbox.container.project",
        KeyKind::OneOf(super::container::PROJECT_IMAGE_KINDS),
        Nothing,
        None,
        "run commands in an image that the project describes, once you trust it",
    ),
    define_key(
        "sandbox.container.dockerfile",
        KeyKind::Text,
        Nothing,
        None,
        "the project's Dockerfile that describes it, from the root",
    ),
    define_key(
        "sandbox.container.socket",
        KeyKind::Text,
        Nothing,
        None,
        "the socket of Docker or Podman; else DOCKER_HOST, else the usual ones",
    ),
    define_key(
        "sandbox.container.image_environment",
        KeyKind::Switch,
        Nothing,
        None,
        "true to add the image's own variables and directories of PATH",
    ),
    define_key(
        "sandbox.container.cpus",
        KeyKind::Number,
        Nothing,
        None,
        "processors that commands in one container use together; all by default",
    ),
    define_key(
        "delegate_order",
        KeyKind::List,
        Nothing,
        None,
        "the coding CLIs that jm delegate --to auto tries, the preferred first",
    ),
    define_key(
        "delegates.*.cli",
        KeyKind::Cli,
        SetIfTrusted,
        None,
        "a coding CLI of this name that isn't built in; see docs/delegates.md",
    ),
    define_key("delegates.*.model", KeyKind::Text, SetIfTrusted, None, "the model of the CLI's own"),
    define_key("delegates.*.arguments", KeyKind::List, Nothing, None, "further arguments of the CLI"),
    define_key(
        "delegates.*.timeout",
        KeyKind::Duration,
        SetIfTrusted,
        None,
        "time of one run of the CLI: 300 s, or 60 s for one that isn't confined",
    ),
    define_key(
        "delegates.*.base_url",
        KeyKind::Text,
        Nothing,
        None,
        "the address of the CLI's provider, in place of the provider's own; it may be on this machine",
    ),
    define_key(
        "delegates.*.network",
        KeyKind::List,
        Nothing,
        None,
        "further hosts, and addresses such as 127.0.0.1:11434, that the CLI may reach",
    ),
    define_key(
        "providers.*.wire",
        KeyKind::OneOf(WIRE_NAMES),
        SetIfTrusted,
        None,
        "the protocol the provider speaks",
    ),
    define_key("providers.*.base_url", KeyKind::Text, SetIfTrusted, None, "the address of the provider"),
    define_key(
        "providers.*.key_env",
        KeyKind::List,
        SetIfTrusted,
        None,
        "environment variables that may hold its key, first set wins",
    ),
    define_key(
        "providers.*.tool_calling",
        KeyKind::Switch,
        SetIfTrusted,
        None,
        "true if its models call tools; otherwise the text protocol is used",
    ),
    define_key(
        "providers.*.headers.*",
        KeyKind::Text,
        SetIfTrusted,
        None,
        "a further header of each request",
    ),
    define_key(
        "providers.*.proxy",
        KeyKind::Text,
        SetIfTrusted,
        None,
        "a proxy in place of HTTPS_PROXY and HTTP_PROXY",
    ),
    define_key(
        "providers.*.connect_timeout",
        KeyKind::Duration,
        SetIfTrusted,
        None,
        "timeout for connecting",
    ),
    define_key(
        "providers.*.first_byte_timeout",
        KeyKind::Duration,
        SetIfTrusted,
        None,
        "timeout for the first byte of a reply",
    ),
    define_key(
        "providers.*.idle_timeout",
        KeyKind::Duration,
        SetIfTrusted,
        None,
        "timeout for a pause within a reply",
    ),
    define_key(
        "providers.*.total_timeout",
        KeyKind::Duration,
        SetIfTrusted,
        None,
        "timeout for a whole reply",
    ),
    define_key(
        "providers.*.models.*.input",
        KeyKind::Number,
        Nothing,
        None,
        "US dollars for a million input tokens",
    ),
    define_key(
        "providers.*.models.*.output",
        KeyKind::Number,
        Nothing,
        None,
        "US dollars for a million output tokens",
    ),
    define_key(
        "providers.*.models.*.cache_read",
        KeyKind::Number,
        Nothing,
        None,
        "US dollars for a million tokens read from the cache",
    ),
    define_key(
        "providers.*.models.*.cache_write",
        KeyKind::Number,
        Nothing,
        None,
        "US dollars for a million tokens written into the cache",
    ),
    define_key(
        "providers.*.models.*.window",
        KeyKind::Count,
        Nothing,
        None,
        "the context window in tokens, in place of the known one",
    ),
    define_key(
        "providers.*.models.*.max_output",
        KeyKind::Count,
        Nothing,
        None,
        "the longest reply in tokens that the model gives",
    ),
    define_key(
        "providers.*.models.*.tokenizer",
        KeyKind::Text,
        Nothing,
        None,
        "how its tokens are counted: \"o200k\", \"cl100k\" or the path of a tokenizer.json",
    ),
];

/// Returns the key that a dotted path names.
#[must_use]
pub(super) fn find_key(path: &[String]) -> Option<&'static Key> {
    KEYS.iter().find(|key| matches_path(key.name, path))
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

fn matches_path(name: &str, path: &[String]) -> bool {
    let words: Vec<&str> = name.split('.').collect();
    words.len() == path.len() && words.iter().zip(path).all(|(word, part)| *word == "*" || word == part)
}
