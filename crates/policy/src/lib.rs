//! Who may do what: levels, modes, protected paths, shell-command analysis, secret shapes.
//!
//! [`Policy::judge`] is the one evaluator: it takes what a call would do ([`Effects`]), the mode and what the
//! sandbox enforces, and says allow, ask or deny, with the level and one line of reason. [`analyse`] finds
//! the level of a shell command; a command is read-only only if every word of it is understood and known
//! to read. [`secrets`] is the one detector of secrets, and [`is_secret_name`] knows the names of
//! environment variables that hold them. [`registry`] knows package registries and their hosts.
//!
//! ```
//! use journeyman_policy::{Policy, analyse};
//! use journeyman_protocol::{Decision, Effects, Enforcement, Level, Mode, RelPath};
//!
//! let policy = Policy::with_checks(vec!["cargo test".into()]);
//! let edit = Effects { writes: vec![RelPath::parse("src/lib.rs").unwrap()], ..Effects::default() };
//! assert_eq!(policy.judge(Mode::Edit, &edit, None).decision, Decision::Allow);
//! assert_eq!(policy.judge(Mode::Plan, &edit, None).decision, Decision::Deny);
//! assert_eq!(analyse("find . -name '*.rs'", &[]).level, Level::ReadOnly);
//! assert_eq!(analyse("find . -name '*.rs' -delete", &[]).level, Level::Shell);
//! assert_eq!(analyse("git push --force", &[]).level, Level::System);
//! ```
//!
//! Everything here is a pure function of its arguments: no files, no clock, no environment, and no panic
//! on any input. It doesn't confine anything (that is `sandbox`'s), and what it can't understand it treats
//! as able to do anything inside the sandbox.
//!
//! [`Effects`]: journeyman_protocol::Effects

mod command;
mod executes;
mod judge;
mod protect;
pub mod registry;
pub mod secrets;

pub use command::{CommandAnalysis, Part, Word, analyse, in_directory};
pub use executes::runs_code;
pub use judge::{Policy, RULE_LOSS};
pub use protect::is_guarded;
pub use secrets::is_secret_name;
