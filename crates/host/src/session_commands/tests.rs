use journeyman_sandbox::{Sandbox, SandboxSettings};
use journeyman_workspace::{CopyTools, IsolationTier};

use super::*;

/// A project with a state directory, and one session in it.
struct Bench {
    _place: tempfile::TempDir,
    environment: Environment,
    state: StateDirs,
    session: SessionId,
}

impl Bench {
    async fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&root).unwrap();
        let environment = Environment {
            home: Some(place.path().join("home")),
            cwd: root.clone(),
            vars: std::collections::BTreeMap::default(),
        };
        let state = StateDirs::open_at(place.path().join("state"), &environment).unwrap();
        let session = new_session_id();
        state.store.create(&session, &root.display().to_string(), "a task", now()).await.unwrap();
        Self { _place: place, environment, state, session }
    }

    /// Keeps work of the session in a copy.
    fn keep_work(&self) {
        let workspace = self.state.open_workspace(&self.environment.cwd).unwrap();
        let sandbox = Sandbox::new(SandboxSettings::default());
        let means = CopyTools {
            sandbox: &sandbox,
            git: None,
            tiers: &[IsolationTier::Copy],
            max_copied_files: usize::MAX,
        };
        workspace.copies().create(&self.session, &means).unwrap().keep().unwrap();
    }

    async fn find_deletable(&self) -> Result<Vec<SessionSummary>, HostError> {
        find_deletable(&self.environment, &self.state, &[self.session.to_string()]).await
    }
}

#[tokio::test]
async fn a_session_that_kept_work_while_a_person_was_asked_is_not_deleted() {
    let bench = Bench::new().await;
    let found = bench.find_deletable().await.unwrap();
    bench.keep_work();
    let refused = delete_session(&bench.state, &found[0]).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("jm land {}", bench.session)), "{refused}");
    let holder = bench.state.store.lease_holder(&bench.session, now()).await.unwrap();
    assert_eq!(holder, None, "the session is there, and free");
}

#[tokio::test]
async fn a_session_whose_project_cannot_be_opened_keeps_its_work() {
    let bench = Bench::new().await;
    bench.keep_work();
    let moved = bench.environment.cwd.with_extension("moved");
    std::fs::rename(&bench.environment.cwd, &moved).unwrap();
    let refused = bench.find_deletable().await.unwrap_err().to_string();
    assert!(refused.contains("project can't be opened"), "{refused}");
    // Without work that is kept it doesn't matter.
    std::fs::rename(&moved, &bench.environment.cwd).unwrap();
    let workspace = bench.state.open_workspace(&bench.environment.cwd).unwrap();
    workspace.copies().discard(&bench.session).unwrap();
    std::fs::rename(&bench.environment.cwd, &moved).unwrap();
    let found = bench.find_deletable().await.unwrap();
    assert_eq!(delete_session(&bench.state, &found[0]).await.unwrap(), 0);
}
