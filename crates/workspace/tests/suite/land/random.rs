//! Random work on both sides, against plain maps.
//!
//! A file is three blocks far apart, so that merging is a matter of blocks, and the model needs no
//! lines.

use journeyman_testkit::skip;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use journeyman_workspace::{OnConflict, UndoTarget};

use crate::land::copied::{Copied, RUN, names};
use crate::support::{Model, Node, Project, session, set_mode};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum File {
    Text { mode: u32, blocks: [String; 3] },
    Link(String),
}

type Files = BTreeMap<&'static str, File>;

const NAMES: [&str; 9] = ["a", "b", "c", "d/a", "d/b", "d/e/f", "g h", "z", "n\nl"];
const MODES: [u32; 3] = [0o644, 0o755, 0o600];

fn text(blocks: &[String; 3]) -> String {
    let [one, two, three] = blocks;
    format!("{one}\n1\n2\n3\n{two}\n4\n5\n6\n{three}\n")
}

fn write(root: &Path, files: &Files) {
    for name in NAMES {
        let path = root.join(name);
        match files.get(name) {
            None => {
                if path.symlink_metadata().is_ok() {
                    fs::remove_file(path).unwrap();
                }
            }
            Some(file) => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                if path.symlink_metadata().is_ok() {
                    fs::remove_file(&path).unwrap();
                }
                match file {
                    File::Link(target) => symlink(target, path).unwrap(),
                    File::Text { mode, blocks } => {
                        fs::write(&path, text(blocks)).unwrap();
                        set_mode(&path, *mode);
                    }
                }
            }
        }
    }
}

/// A word that nothing else in the test has.
fn word(dice: &mut Dice, next: &mut usize) -> String {
    *next += 1;
    format!("word {next} {}", dice.roll(10))
}

fn fresh(dice: &mut Dice, next: &mut usize) -> File {
    if dice.roll(6) == 0 {
        return File::Link(word(dice, next));
    }
    let blocks = [(); 3].map(|()| word(dice, next));
    File::Text { mode: MODES[dice.roll(3)], blocks }
}

fn worked_on(dice: &mut Dice, next: &mut usize, files: &mut Files) {
    for _ in 0..dice.roll(6) {
        let name = NAMES[dice.roll(NAMES.len())];
        match (dice.roll(5), files.get_mut(name)) {
            (0, Some(_)) => drop(files.remove(name)),
            (1, Some(File::Text { mode, .. })) => *mode = MODES[dice.roll(3)],
            (2 | 3, Some(File::Text { blocks, .. })) => blocks[dice.roll(3)] = word(dice, next),
            _ => drop(files.insert(name, fresh(dice, next))),
        }
    }
}

/// Three-way for anything: what one side changed.
fn either<T: PartialEq + Clone>(base: &T, ours: &T, theirs: &T) -> Option<T> {
    if ours == theirs || theirs == base {
        Some(ours.clone())
    } else if ours == base {
        Some(theirs.clone())
    } else {
        None
    }
}

fn merged_mode(base: u32, ours: u32, theirs: u32) -> u32 {
    let bit = |bit: u32| either(&(base & bit), &(ours & bit), &(theirs & bit)).unwrap();
    (0..12).map(|place| bit(1 << place)).sum()
}

/// What the file is to be; `None` for a conflict.
fn expected(base: Option<&File>, ours: Option<&File>, theirs: Option<&File>) -> Option<Option<File>> {
    if let Some(found) = either(&base, &ours, &theirs) {
        return Some(found.cloned());
    }
    match (base, ours, theirs) {
        (
            Some(File::Text { mode, blocks }),
            Some(File::Text { mode: our_mode, blocks: our_blocks }),
            Some(File::Text { mode: their_mode, blocks: their_blocks }),
        ) => {
            let block = |n: usize| either(&blocks[n], &our_blocks[n], &their_blocks[n]);
            let blocks = [block(0)?, block(1)?, block(2)?];
            Some(Some(File::Text { mode: merged_mode(*mode, *our_mode, *their_mode), blocks }))
        }
        _ => None,
    }
}

fn as_model(files: &Files) -> Model {
    let nodes = files.iter().map(|(name, file)| {
        let node = match file {
            File::Link(target) => Node::Link(target.as_bytes().to_vec()),
            File::Text { mode, blocks } => Node::File(*mode, text(blocks).into_bytes()),
        };
        (name.as_bytes().to_vec(), node)
    });
    nodes.collect()
}

fn without_dirs(mut model: Model) -> Model {
    model.retain(|path, node| *node != Node::Dir && !path.starts_with(b".git"));
    model
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let ran = std::process::Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@example.com", "-C"])
        .arg(root)
        .args(arguments)
        .output()
        .ok()?;
    let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(ran.status.success(), "git {arguments:?}: {said}");
    Some(said)
}

/// What landing is to make of it with conflicts going the user's way and the copy's way, and where
/// those are.
fn wanted(base: &Files, ours: &Files, theirs: &Files) -> ([Files; 2], BTreeSet<String>) {
    let mut wanted = [ours.clone(), ours.clone()];
    let mut conflicts = BTreeSet::new();
    for name in NAMES {
        let sides = [base.get(name), ours.get(name), theirs.get(name)];
        let result = expected(sides[0], sides[1], sides[2]);
        if result.is_none() {
            conflicts.insert(name.to_owned().replace('\n', "\\n"));
        }
        let mine = result.clone().unwrap_or_else(|| sides[1].cloned());
        let copys = result.unwrap_or_else(|| sides[2].cloned());
        for (files, file) in wanted.iter_mut().zip([mine, copys]) {
            match file {
                Some(file) => drop(files.insert(name, file)),
                None => drop(files.remove(name)),
            }
        }
    }
    (wanted, conflicts)
}

fn round(seed: u64, repository: bool) -> [usize; 2] {
    let mut dice = Dice(seed);
    let mut next = 0;
    let mut base = Files::new();
    for name in NAMES {
        if dice.roll(3) > 0 {
            base.insert(name, fresh(&mut dice, &mut next));
        }
    }
    let project = Project::with(&[]);
    write(&project.root(), &base);
    if repository {
        git(&project.root(), &["init", "-q"]);
        git(&project.root(), &["add", "-A"]);
        git(&project.root(), &["commit", "-q", "--allow-empty", "-m", "base"]);
    }
    let copied = Copied::of(project);
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    worked_on(&mut dice, &mut next, &mut ours);
    worked_on(&mut dice, &mut next, &mut theirs);
    if dice.roll(3) == 0 {
        // Both did the same to one of them.
        let name = NAMES[dice.roll(NAMES.len())];
        match theirs.get(name).cloned() {
            Some(file) => drop(ours.insert(name, file)),
            None => drop(ours.remove(name)),
        }
    }
    write(&copied.project.root(), &ours);
    write(&copied.copy_root(), &theirs);
    let before = copied.tree();
    let (wanted, conflicts) = wanted(&base, &ours, &theirs);
    let landing = copied.land(OnConflict::Refuse);
    assert_eq!(names(&landing).into_iter().collect::<BTreeSet<_>>(), conflicts, "seed {seed}");
    if !conflicts.is_empty() {
        assert_eq!(copied.tree(), before, "seed {seed}");
    }
    let undo = |landed: bool| {
        if landed {
            let report = copied.user.undo(UndoTarget::Session(session(RUN))).unwrap();
            assert!(report.conflicts.is_empty(), "seed {seed}: {report:?}");
        }
        assert_eq!(copied.tree(), before, "seed {seed}, taken back");
    };
    if conflicts.is_empty() {
        assert_eq!(without_dirs(copied.tree()), as_model(&wanted[0]), "seed {seed}");
        undo(copied.tree() != before);
    }
    for (on_conflict, wanted) in [OnConflict::Mine, OnConflict::Theirs].into_iter().zip(&wanted) {
        let landing = copied.land(on_conflict);
        assert_eq!(
            without_dirs(copied.tree()),
            as_model(wanted),
            "seed {seed}, {on_conflict:?}: {landing:?}"
        );
        undo(copied.tree() != before);
    }
    if repository {
        let status = git(&copied.project.root(), &["status", "--porcelain", "-z"]).unwrap();
        assert_eq!(
            status.is_empty(),
            as_model(&ours) == as_model(&base) || only_modes(&ours, &base),
            "{status}"
        );
        git(&copied.project.root(), &["fsck", "--strict"]);
    }
    [usize::from(conflicts.is_empty()), usize::from(!landing.merged.is_empty())]
}

/// Git knows of one bit of a mode only.
fn only_modes(one: &Files, other: &Files) -> bool {
    let plain = |files: &Files| -> Files {
        let files = files.iter().map(|(name, file)| match file {
            File::Text { mode, blocks } => (*name, File::Text { mode: mode & 0o100, blocks: blocks.clone() }),
            link @ File::Link(_) => (*name, link.clone()),
        });
        files.collect()
    };
    plain(one) == plain(other)
}

#[test]
fn the_tree_is_what_the_maps_say() {
    let mut seen = [0, 0];
    for seed in 0..300 {
        let found = round(seed, false);
        seen = [seen[0] + found[0], seen[1] + found[1]];
    }
    assert!(seen[0] > 30 && seen[0] < 290 && seen[1] > 5, "{seen:?}");
}

#[test]
fn and_git_is_content() {
    if std::process::Command::new("git").arg("--version").output().is_err() {
        skip("no git");
        return;
    }
    for seed in 1_000..1_020 {
        round(seed, true);
    }
}
