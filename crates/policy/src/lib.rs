//! Who may do what: levels, modes, protected paths, shell-command analysis, secret shapes.
//!
//! [`Policy::judge`] is the one evaluator: it takes a [`Call`] (the tool, who calls, the mode, what it would do, what
//! the sandbox enforces) and says allow, ask or deny, with the level, one line of reason and the rules that decided.
//! [`Rules`] are what people allow, want to be asked about and forbid beyond levels and modes. [`analyse`] finds
//! the level of a shell command; a command is read-only only if every word of it is understood and known
//! to read. [`secrets`] is the one detector of secrets, and [`is_secret_name`] knows the names of
//! environment variables that hold them. [`registry`] knows the hosts of package registries.
//!
//! ```
//! use journeyman_policy::{Call, Layer, Policy, Rules, analyse};
//! use journeyman_protocol::{Decision, Effects, Level, Mode, RelPath};
//!
//! let file = "[[rule]]\npaths = ['docs/**']\ndecision = 'deny'\nreason = 'another team writes them'";
//! let policy = Policy::default().with_rules(Rules::parse(file, Layer::User, "policy.toml").unwrap());
//! let decided = |path: &str, mode| {
//!     let effects = Effects { writes: vec![RelPath::parse(path).unwrap()], ..Effects::default() };
//!     let call = Call { tool: "write_file", agent: None, mode, effects: &effects, sandbox: None };
//!     policy.judge(&call).decision
//! };
//! assert_eq!(decided("src/lib.rs", Mode::Edit), Decision::Allow);
//! assert_eq!(decided("src/lib.rs", Mode::Ask), Decision::Ask);
//! assert_eq!(decided("docs/a.md", Mode::Edit), Decision::Deny);
//!
//! assert_eq!(analyse("find . -name '*.rs'", &[]).level, Level::ReadOnly);
//! assert_eq!(analyse("find . -name '*.rs' -delete", &[]).level, Level::Shell);
//! assert_eq!(analyse("git push --force", &[]).level, Level::System);
//! ```
//!
//! Everything here is a pure function of its arguments: no files, no clock, no environment, and no panic
//! on any input. It doesn't confine anything (that is `sandbox`'s), and what it can't understand it treats
//! as able to do anything inside the sandbox.

mod command;
mod executes;
mod judge;
mod protect;
pub mod registry;
mod rules;
pub mod secrets;
mod tools;

pub use command::{CommandAnalysis, Part, Word, analyse, in_directory};
pub use executes::runs_code;
pub use judge::{Call, Explained, Policy, RULE_LOSS, is_by_rule};
pub use protect::{GUARDS, is_guarded, is_obeyed_on_entering};
pub use rules::{Example, Layer, MAIN_AGENT, MAX_POLICY_BYTES, MAX_RULES, Rule, RuleError, RuleId, Rules};
pub use secrets::is_secret_name;
pub use tools::{TOOLS, UnknownTool, known_tool};
