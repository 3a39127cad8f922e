//! The permission policy: levels, modes, rules, protected paths, shell-command analysis, and
//! detection of secrets.
//!
//! - [`Policy::judge`] decides about a [`Call`] (tool, agent, mode, effects, sandbox): allow, ask
//!   or deny, with the level, a reason and the rules that decided.
//! - [`Rules`] are what people allow, ask about and deny, beyond levels and modes.
//! - [`analyse_command`] finds the level of a shell command. A command is read-only only if every
//!   word of it is understood and known to read.
//! - [`secrets`] detects secrets in texts, and [`is_secret_name`] recognizes environment variables
//!   that hold them.
//! - [`registry`] lists the hosts of package registries.
//! - [`RiskClassifier`] separates tasks that stand alone from tasks that belong in a sandbox.
//!
//! ```
//! use journeyman_policy::{Call, RuleLayer, Policy, Rules, analyse_command};
//! use journeyman_protocol::{Decision, Effects, Level, Mode, RelPath};
//!
//! let file = "[[rule]]\npaths = ['docs/**']\ndecision = 'deny'\nreason = 'not ours'";
//! let rules = Rules::parse(file, RuleLayer::User, "policy.toml").unwrap();
//! let policy = Policy::default().with_rules(rules);
//! let decided = |path: &str, mode| {
//!     let effects = Effects { writes: vec![RelPath::parse(path).unwrap()], ..Effects::default() };
//!     let call = Call { tool: "write_file", agent: None, mode, effects: &effects, sandbox: None };
//!     policy.judge(&call).decision
//! };
//! assert_eq!(decided("src/lib.rs", Mode::Edit), Decision::Allow);
//! assert_eq!(decided("src/lib.rs", Mode::Ask), Decision::Ask);
//! assert_eq!(decided("docs/a.md", Mode::Edit), Decision::Deny);
//!
//! assert_eq!(analyse_command("find . -name '*.rs'", &[]).level, Level::ReadOnly);
//! assert_eq!(analyse_command("find . -name '*.rs' -delete", &[]).level, Level::Shell);
//! assert_eq!(analyse_command("git push --force", &[]).level, Level::System);
//! ```
//!
//! All functions are pure: they use no files, no clock and no environment, and don't panic on any
//! input. The crate confines nothing (`sandbox` does), and treats a command that it does not
//! understand as able to do anything inside the sandbox.

mod call;
mod command;
mod executed_files;
mod judge;
mod protected_paths;
pub mod registry;
mod risk;
mod rules;
pub mod secrets;
mod tools;

pub use call::{Call, CallingAgent};
pub use command::{
    CommandAnalysis, CommandPart, CommandWord, WrittenPath, analyse_command, format_in_directory,
};
pub use executed_files::execution_reason;
pub use judge::{PartExplanation, Policy, RULE_LOSS, is_decided_by_rule};
pub use protected_paths::{GUARD_RULES, is_guarded, is_obeyed_on_entering};
pub use risk::{MAX_RISK_TEXT_BYTES, ProjectPaths, Risk, RiskAssessment, RiskClassifier, RiskRule};
pub use rules::{
    Example, MAIN_AGENT, MAX_POLICY_BYTES, MAX_RULES, Rule, RuleError, RuleId, RuleLayer, Rules,
    matches_wildcards,
};
pub use secrets::is_secret_name;
pub use tools::{BUILTIN_TOOLS, BuiltinTool, UnknownTool, builtin_tool, check_tool_name, suggest_tool};
