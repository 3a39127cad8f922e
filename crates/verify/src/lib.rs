//! The project's own checks: found, run in the sandbox, read as diagnostics and evidence.
//!
//! [`find_project_checks`] finds the [`Check`]s of a project: Cargo, npm and its kin, Python, Go,
//! CMake, Maven, Gradle, Make. [`custom_checks`] takes the checks that the user named instead.
//! [`run_checks()`] runs them in order, independent ones at the same time, inside the sandbox and
//! between two snapshots of the tree, and returns one `Evidence` for each: passed, failed, or not
//! run and why. [`overall_outcome`] combines the evidence. [`diagnostics::parse_diagnostics`] reads
//! the output of compilers, linters and test runners. [`honesty`] finds where a change makes tests
//! or checks verify less; it is pure. [`mutation`] measures which faults in the change the tests
//! would notice. [`test_files`] distinguishes tests and their configuration from the product by
//! their paths; [`test_setup`] finds the other files that decide about the results of tests.
//!
//! A missing program, a refused sandbox or uninstalled dependencies count neither as a failure nor
//! as a success; nor does a test command that ran no test. If a check of an earlier kind fails, the
//! checks of later kinds are not run.
//!
//! ```
//! use journeyman_protocol::{CheckKind, Severity};
//! use journeyman_verify::{OverallOutcome, custom_checks, diagnostics, overall_outcome};
//!
//! let checks = custom_checks(&["make smoke".to_owned()]);
//! assert_eq!(checks[0].kind, CheckKind::Custom);
//!
//! let locate = |path: &str| journeyman_protocol::RelPath::parse(path).ok();
//! let found = diagnostics::parse_diagnostics("src/a.c:3:9: error: 'x' undeclared", &locate);
//! assert_eq!((found[0].line, found[0].severity), (Some(3), Severity::Error));
//!
//! assert_eq!(overall_outcome(&[]), OverallOutcome::NothingRan);
//! ```
//!
//! The crate does not decide what is fed back to the model (the crate `context` does), install
//! dependencies, or judge permissions.

mod affected_tests;
mod baseline;
mod caches;
mod check;
mod check_discovery;
mod check_output;
mod counting_runners;
pub mod diagnostics;
mod execution;
mod fix;
mod forbidden_changes;
pub mod honesty;
mod independence;
mod makefile;
pub mod mutation;
mod network;
mod outcome;
mod package_prefixes;
mod progress;
mod reports;
mod run;
mod run_context;
mod setup;
mod submodules;
mod test_counts;
pub mod test_files;
pub mod test_setup;
pub mod test_sources;
mod unfailing_checks;

pub use affected_tests::{ReadProjectFile, accepts_test_names, narrow_to_failed_tests, narrow_to_files};
pub use baseline::{compare_failures, failure_identity};
pub use caches::CheckCaches;
pub use check::{Check, OverallOutcome, VerifyError, custom_checks, overall_outcome};
pub use check_discovery::{ProgramLookup, find_all_checks, find_checks_for_changes, find_project_checks};
pub use fix::fix_for_files;
pub use outcome::has_run_no_test;
pub use progress::Progress;
pub use run::{is_skipped_after_failure, refused_evidence, run_checks};
pub use run_context::{RunContext, RunLimits};
pub use setup::{MissingRequirement, SetupPlan, SetupStep, find_setup};
