//! One file changed, with every wait for the disk, beside the bare system calls.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use journeyman_protocol::{CallId, RelPath};
use journeyman_workspace::{Change, ChangeSet, ExpectedState, Workspace};

use crate::figures::{Contender, Contest, Verdicts, time};
use crate::place::{Numbers, open, session, text};

const ROUNDS: usize = 201;
const BARE: &str = "bare write, fsync, rename";
const WHOLE: &str = "bare write, fsync, rename, fsync of the directory";
const KEPT: &str = "edit, what was there is kept already";
const NEW: &str = "edit, what was there is new";

fn bare(dir: &Path, text: &str, sync_dir: bool) -> f64 {
    time(|| {
        let new = dir.join("bare.new");
        let mut file = File::create(&new).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.sync_all().unwrap();
        fs::rename(&new, dir.join("bare")).unwrap();
        if sync_dir {
            File::open(dir).unwrap().sync_all().unwrap();
        }
    })
}

fn edit(workspace: &Workspace, number: u64, text: &str) -> f64 {
    let path = RelPath::parse("src/edited.rs").unwrap();
    let content = text.as_bytes().to_vec();
    let changes = vec![Change::Write { path, content, expected: ExpectedState::Anything }];
    let call = Some(CallId::new(format!("call{number}")));
    time(|| {
        drop(workspace.apply(ChangeSet { call, session: session(1), description: None, changes }).unwrap())
    })
}

pub(crate) fn run(base: &Path, verdicts: &mut Verdicts) {
    println!("a one-file edit through the whole transaction:");
    let dir = tempfile::Builder::new().prefix("jm-bench-").tempdir_in(base).unwrap();
    let (src, away) = (dir.path().join("tree/src"), dir.path().join("bare"));
    fs::create_dir_all(&src).unwrap();
    fs::create_dir_all(&away).unwrap();
    fs::write(src.join("edited.rs"), "first\n").unwrap();
    let workspace = open(dir.path());
    let numbers = std::cell::RefCell::new(Numbers::from(7));
    let fresh = || text(&mut numbers.borrow_mut());
    let mut number = 0;
    let contest = Contest::run(
        ROUNDS,
        vec![
            Contender::new(BARE, || bare(&away, &fresh(), false)),
            Contender::new(WHOLE, || bare(&away, &fresh(), true)),
            Contender::new(KEPT, || {
                number += 1;
                // As a turn does before it changes anything.
                workspace.checkpoint(&session(1), "before").unwrap();
                edit(&workspace, number, &fresh())
            }),
            Contender::new(NEW, || {
                fs::write(src.join("edited.rs"), fresh()).unwrap();
                edit(&workspace, 0, &fresh())
            }),
        ],
    );
    verdicts.ratio(&contest, KEPT, BARE, 3.0);
    verdicts.ratio(&contest, NEW, BARE, 3.0);
    verdicts.ratio(&contest, KEPT, WHOLE, 3.0);
    verdicts.ratio(&contest, NEW, WHOLE, 3.0);
}
