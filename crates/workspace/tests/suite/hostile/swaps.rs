//! A directory that is swapped for a link out of the tree, in a loop, while everything is done that
//! writes or reads.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use journeyman_protocol::ContentHash;
use journeyman_workspace::{Change, ListOptions, UndoTarget};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{Project, delete, model, rel, session, set, write};

/// Rounds in the suite; the soak has many more.
const ROUNDS: usize = 300;
const SECRET: &str = "what lies outside is nobody's business";

/// Stops the other thread, also when something is wrong.
pub(crate) struct Stopping<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn rounds() -> usize {
    std::env::var("JM_SWAPS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

#[test]
fn nothing_outside_is_read_or_changed_while_directories_and_links_change_places() {
    let project = Project::with(&[("dir/file", "inside"), ("dir/deep/file", "inside"), ("other/file", "o")]);
    let outside = project.dir.path().join("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    for path in ["file", "deep/file", "new"] {
        fs::write(outside.join(path), SECRET).unwrap();
    }
    symlink("../outside", project.root().join("swap")).unwrap();
    symlink(&outside, project.root().join("swap2")).unwrap();
    let before = model(&outside);
    let stop = AtomicBool::new(false);
    let (root, workspace) = (project.root(), project.open());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let names = [root.join("dir"), root.join("swap"), root.join("swap2")];
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                let (one, other) = (&names[round % 3], &names[(round + 1) % 3]);
                if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_err() {
                    // An undo has removed a directory that it found empty.
                    drop(fs::create_dir(one));
                    drop(fs::create_dir(other));
                }
                round += 1;
            }
        });
        let _stopping = Stopping(&stop);
        let mut done = [0; 5];
        for round in 0..rounds() {
            let text = round.to_string();
            let edits = [
                vec![write("dir/file", &text), write("dir/deep/new", "n"), write("other/file", &text)],
                vec![Change::Rename { from: rel("dir/file"), to: rel("dir/moved") }],
                vec![
                    Change::Rename { from: rel("dir/moved"), to: rel("dir/deep/file2") },
                    write("dir/file", "f"),
                ],
                vec![
                    delete("dir/deep/file2"),
                    Change::SetExecutable { path: rel("dir/file"), executable: true },
                ],
            ];
            let edit = edits[round % edits.len()].clone();
            done[0] += usize::from(workspace.apply(set(1, edit)).is_ok());
            // The edits alone: what a directory takes along when it is swapped away in the middle
            // of one counts as the command's, and taking that back in here would leave more each
            // time.
            done[1] += usize::from(workspace.undo(UndoTarget::Session(session(1))).is_ok());
            if let Ok(content) = workspace.read(&rel("dir/file"), 1000) {
                assert_ne!(content.text(), Some(SECRET));
                done[2] += 1;
            }
            if let Ok(begun) = workspace.command_observer().begin() {
                done[3] += usize::from(workspace.command_observer().end(begun, &session(2), None).is_ok());
            }
            if round % 16 == 0 {
                done[4] += usize::from(workspace.checkpoint(&session(1), "c").is_ok());
                workspace.list(ListOptions::default()).unwrap();
            }
        }
        println!("{} rounds: {done:?} done of edits, undos, reads, commands, checkpoints", rounds());
        assert!(done[3] > 0 && done[4] > 0, "{done:?}");
    });
    assert_eq!(model(&outside), before);
    assert_eq!(
        workspace.history().kept_content(&ContentHash::of(SECRET.as_bytes())).unwrap(),
        None,
        "it was read"
    );
}
