//! Plans of changes: found in the log, edited as TOML, given to a run.

use std::io::Read as _;
use std::path::Path;

use journeyman_agent::{Clock, State, store_plan};
use journeyman_protocol::{Plan, RunOutcome, SessionId};

use crate::config::Environment;
use crate::root::find_root;
use crate::sessions::{SessionClaim, find_session_of, list_newest};
use crate::state::{StateDirs, now};
use crate::{Context as _, HostError};

/// The sessions of a directory that are searched for the newest plan.
const MAX_SEARCHED_SESSIONS: usize = 200;
/// Maximum bytes of a plan that is read.
const MAX_PLAN_BYTES: u64 = 4 * 1024 * 1024;
/// The head of the text in which a person edits a plan.
const TOML_HEADER: &str = "# The plan, as `jm run --plan` carries it out. A changed file that no step names is pointed out at \
                         the end of the\n# run; a directory stands for all of its files. An empty file leaves the plan \
                         as it was.\n\n";

/// A plan and the session that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPlan {
    /// The session.
    pub session: SessionId,
    /// The plan.
    pub plan: Plan,
}

/// Finds the plan of a session, or without one the newest plan of a directory.
///
/// # Errors
/// [`HostError::Usage`] where there is no such session, and for one without a plan.
pub async fn find_plan(
    environment: &Environment,
    state: &StateDirs,
    directory: Option<&Path>,
    word: Option<&str>,
) -> Result<FoundPlan, HostError> {
    if let Some(word) = word {
        let session = find_session_of(state, environment, directory, word).await?.id;
        let plan = load_plan(state, &session).await?;
        let plan = plan.ok_or_else(|| {
            HostError::usage(format_args!("session {session} has no plan; `jm plan \"TASK\"` makes one"))
        })?;
        return Ok(FoundPlan { session, plan });
    }
    let planned = serde_json::to_value(RunOutcome::Planned).unwrap_or_default();
    let newest = list_newest(state, &find_root(environment, directory)?, MAX_SEARCHED_SESSIONS).await?;
    for summary in newest.into_iter().filter(|summary| planned == *summary.status) {
        if let Some(plan) = load_plan(state, &summary.id).await? {
            return Ok(FoundPlan { session: summary.id, plan });
        }
    }
    Err(HostError::usage("no plan was made in this directory; `jm plan \"TASK\"` makes one"))
}

/// Returns the plan of a session's newest task; `None` if it has none.
///
/// # Errors
/// [`HostError`] where the log can't be read.
pub async fn load_plan(state: &StateDirs, session: &SessionId) -> Result<Option<Plan>, HostError> {
    let state = State::load(&*state.store, session).await?;
    Ok(state.plan.map(|plan| *plan))
}

/// Returns a plan as TOML, in which a person can edit the plan.
///
/// # Errors
/// [`HostError`] for a plan that TOML can't hold, which there is none of.
pub fn plan_to_toml(plan: &Plan) -> Result<String, HostError> {
    Ok(format!("{TOML_HEADER}{}", toml::to_string_pretty(plan).context("the plan as TOML")?))
}

/// Reads an edited plan; `None` where the text is empty.
///
/// # Errors
/// [`HostError::Usage`] naming the line that is wrong.
pub fn plan_from_toml(text: &str) -> Result<Option<Plan>, HostError> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(None);
    }
    let plan: Plan =
        toml::from_str(text).map_err(|error| HostError::usage(format_args!("the plan: {error}")))?;
    if plan.steps.is_empty() {
        return Err(HostError::usage("the plan has no step; each is a [[steps]] with `what` and `files`"));
    }
    Ok(Some(plan))
}

/// Reads an edited plan from standard input.
///
/// # Errors
/// [`HostError::Usage`] where the text can't be read.
pub fn read_piped_plan() -> Result<String, HostError> {
    let mut text = String::new();
    std::io::stdin().take(MAX_PLAN_BYTES).read_to_string(&mut text).map_err(HostError::usage)?;
    Ok(text)
}

/// Puts the edited text of a plan in the place of a session's plan. Returns false if the plan stays
/// as it was.
///
/// # Errors
/// As [`plan_from_toml`]; [`HostError::Usage`] while another process works on the session, and if
/// the session has got another plan since this one was found.
pub async fn replace_edited_plan(
    state: &StateDirs,
    found: &FoundPlan,
    text: &str,
) -> Result<bool, HostError> {
    let session = &found.session;
    let Some(changed) = plan_from_toml(text)?.filter(|changed| *changed != found.plan) else {
        return Ok(false);
    };
    SessionClaim::hold(state, session, "plan", async {
        if load_plan(state, session).await?.as_ref() != Some(&found.plan) {
            return Err(HostError::usage(format_args!(
                "session {session} has got another plan meanwhile, which stays; jm plan show {session} shows it"
            )));
        }
        Ok(store_plan(&*state.store, session, &changed, &Clock::new(now)).await?)
    })
    .await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::PlanStep;
    use journeyman_store::Store as _;

    use super::*;
    use crate::sessions::new_session_id;

    fn plan() -> Plan {
        Plan {
            task: "rename \"x\"\nand y".to_owned(),
            strategy: "One file at a time.\n\"\"\" is harmless.".to_owned(),
            steps: vec![PlanStep {
                what: "Rename.".to_owned(),
                files: vec!["src/a.rs".to_owned()],
                symbols: vec!["x".to_owned()],
            }],
            affected: Vec::new(),
            checks: vec!["cargo test".to_owned()],
            risks: vec!["none".to_owned()],
            questions: Vec::new(),
        }
    }

    #[test]
    fn a_plan_goes_through_its_text_unchanged() {
        let text = plan_to_toml(&plan()).unwrap();
        assert_eq!(plan_from_toml(&text).unwrap(), Some(plan()));
        assert_eq!(plan_from_toml("\n# nothing\n").unwrap(), None);
    }

    #[test]
    fn a_wrong_text_names_its_line() {
        for (text, named) in [
            ("strategy = 1\nsteps = []", "line 1"),
            ("strategy = \"a\"\nsteps = []", "no step"),
            ("strategy = \"a\"\n[[steps]]\nfile = [\"x\"]", "what"),
        ] {
            let error = plan_from_toml(text).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[tokio::test]
    async fn a_plan_that_was_made_meanwhile_stays() {
        let place = tempfile::tempdir().unwrap();
        let (home, cwd) = (Some(place.path().join("home")), place.path().to_owned());
        let environment = Environment { home, cwd, vars: Default::default() };
        let state = StateDirs::open_at(place.path().join("state"), &environment).unwrap();
        let session = new_session_id();
        state.store.create(&session, "/project", "a task", now()).await.unwrap();
        store_plan(&*state.store, &session, &plan(), &Clock::new(now)).await.unwrap();
        let found = FoundPlan { session: session.clone(), plan: plan() };
        let edited = Plan { strategy: "Edited.".to_owned(), ..plan() };
        let text = plan_to_toml(&edited).unwrap();
        assert!(replace_edited_plan(&state, &found, &text).await.unwrap());
        assert_eq!(load_plan(&state, &session).await.unwrap(), Some(edited.clone()));
        // Another process has edited it in the meantime.
        let late = plan_to_toml(&Plan { strategy: "Too late.".to_owned(), ..plan() }).unwrap();
        let refused = replace_edited_plan(&state, &found, &late).await.unwrap_err().to_string();
        assert!(refused.contains("another plan meanwhile"), "{refused}");
        assert_eq!(load_plan(&state, &session).await.unwrap(), Some(edited));
    }
}
