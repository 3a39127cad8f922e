//! Isolated copies, beside `git worktree add`.

use std::sync::Arc;

use journeyman_git::Git;
use journeyman_sandbox::{Sandbox, SandboxSettings};
use journeyman_workspace::{CopyTools, IsolationTier, Workspace};

use crate::figures::{Contender, Contest, Verdicts, time};
use crate::place::{Place, checkpoint, session};

const ROUNDS: usize = 9;
const WORKTREE: &str = "git worktree add --detach";
const NAMES: [(IsolationTier, &str); 4] = [
    (IsolationTier::Overlay, "isolated copy, overlay"),
    (IsolationTier::Reflink, "isolated copy, reflink"),
    (IsolationTier::Worktree, "isolated copy, worktree"),
    (IsolationTier::Copy, "isolated copy, plain"),
];
/// The overlay's bound, in milliseconds.
const OVERLAY_MS: f64 = 15.0;

pub(crate) fn run(place: &Place, verdicts: &mut Verdicts) {
    println!("  isolated copies, the checkpoint that each is made from included:");
    let workspace = place.open();
    checkpoint(&workspace);
    let sandbox = Arc::new(Sandbox::new(SandboxSettings::default()));
    let git = Git::new(&place.root(), sandbox.clone());
    let make = &|tier: IsolationTier| {
        let means =
            CopyTools { sandbox: &sandbox, git: Some(&git), tiers: &[tier], max_copied_files: usize::MAX };
        one_copy(&workspace, &means)
    };
    let mut number = 0;
    let worktree = || {
        number += 1;
        let to = place.beside(&format!("worktree{number}"));
        let to = to.to_str().unwrap();
        let took = place.time_git(&["worktree", "add", "-q", "--detach", to]);
        place.git(&["worktree", "remove", "--force", to]);
        took
    };
    let mut contenders = vec![Contender::new(WORKTREE, worktree)];
    let mut there = Vec::new();
    for (tier, name) in NAMES {
        match make(tier) {
            Ok(_) => {
                there.push((tier, name));
                contenders.push(Contender::new(name, move || make(tier).unwrap()));
            }
            Err(why) => println!("    skipped: {name}: {why}"),
        }
    }
    let contest = Contest::run(ROUNDS, contenders);
    for (tier, name) in there {
        if tier == IsolationTier::Overlay {
            verdicts.limit(&contest, name, OVERLAY_MS);
        } else {
            verdicts.ratio(&contest, name, WORKTREE, 1.3);
        }
    }
}

/// Makes a copy and takes it away again; how long the making took.
fn one_copy(workspace: &Workspace, means: &CopyTools<'_>) -> Result<f64, String> {
    let mut made = Err(String::new());
    let took =
        time(|| made = workspace.copies().create(&session(9), means).map_err(|error| error.to_string()));
    drop(made?);
    workspace.copies().discard(&session(9)).unwrap();
    Ok(took)
}
