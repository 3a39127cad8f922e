//! What can happen to a project, and a random sequence of it.

/// Few names, so that they meet; among them files where others have directories.
pub(crate) const NAMES: [&str; 9] =
    ["a", "b", "dir/a", "dir/b", "dir/sub/c", "dir/sub/deep/d", "other/d", "b/e", "..odd\nname"];
/// What a link may point to: a file, a directory, nothing.
const TARGETS: [&str; 4] = ["a", "dir", "nothing", "dir/sub/c"];
const MODES: [u32; 4] = [0o644, 0o755, 0o600, 0o640];
/// Directories that commands make, empty.
pub(crate) const DIRECTORIES: [&str; 4] = ["dir", "empty", "other/deep", "b"];

/// SplitMix64: small, and the same everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// One wish of a change set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    Write(&'static str, String),
    Delete(&'static str),
    Rename(&'static str, &'static str),
    Executable(&'static str, bool),
}

/// One thing that a command, or the user, does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    Write(&'static str, String),
    Remove(&'static str),
    Move(&'static str, &'static str),
    Mode(&'static str, u32),
    Link(&'static str, &'static str),
    Directory(&'static str),
    /// Removes a directory with all that is in it.
    RemoveAll(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    LastRun,
    Session(u64),
    /// The n-th checkpoint, counted round.
    To(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Edit(u64, Vec<Wish>),
    Command(u64, Vec<Deed>),
    /// A command during which, after its first deeds, an edit is made.
    EditDuring(u64, Vec<Deed>, Vec<Wish>, Vec<Deed>),
    /// A command that is cut off, and taken back: its deeds, then a person's saves.
    Killed(u64, Vec<Deed>, Vec<Deed>),
    /// Commands of two sessions: deeds while both run, and after the first one's end.
    Beside(u64, u64, Vec<Deed>, Vec<Deed>),
    Check(u64, Vec<Deed>),
    Outside(Vec<Deed>),
    Undo(Target),
    Redo,
    Checkpoint(u64),
    /// What differs from the n-th checkpoint.
    Compare(usize),
    Reopen,
    /// Cut off at this step.
    CutEdit(u64, Vec<Wish>, usize),
    CutUndo(Target, usize),
    CutRedo(usize),
}

fn content(random: &mut Random) -> String {
    format!("{}\n", random.below(4))
}

fn wishes(random: &mut Random) -> Vec<Wish> {
    let count = 1 + random.below(4);
    let wish = |random: &mut Random| match random.below(10) {
        0..=4 => Wish::Write(random.of(&NAMES), content(random)),
        5 | 6 => Wish::Delete(random.of(&NAMES)),
        7 | 8 => Wish::Rename(random.of(&NAMES), random.of(&NAMES)),
        _ => Wish::Executable(random.of(&NAMES), random.below(2) == 0),
    };
    (0..count).map(|_| wish(random)).collect()
}

fn deeds(random: &mut Random) -> Vec<Deed> {
    let count = 1 + random.below(4);
    let deed = |random: &mut Random| match random.below(16) {
        0..=5 => Deed::Write(random.of(&NAMES), content(random)),
        6..=8 => Deed::Remove(random.of(&NAMES)),
        9 | 10 => Deed::Move(random.of(&NAMES), random.of(&NAMES)),
        11 | 12 => Deed::Mode(random.of(&NAMES), random.of(&MODES)),
        13 => Deed::Link(random.of(&NAMES), random.of(&TARGETS)),
        14 => Deed::Directory(random.of(&DIRECTORIES)),
        _ => Deed::RemoveAll(random.of(&DIRECTORIES)),
    };
    (0..count).map(|_| deed(random)).collect()
}

fn target(random: &mut Random) -> Target {
    match random.below(6) {
        0..=2 => Target::LastRun,
        3 | 4 => Target::Session(random.next() % 3),
        _ => Target::To(random.below(8)),
    }
}

fn act(random: &mut Random) -> Act {
    let session = random.next() % 3;
    match random.below(34) {
        0..=5 => Act::Edit(session, wishes(random)),
        6..=11 => Act::Command(session, deeds(random)),
        12 | 13 => Act::EditDuring(session, deeds(random), wishes(random), deeds(random)),
        14 => Act::Killed(session, deeds(random), deeds(random)),
        15 => Act::Check(session, deeds(random)),
        16..=18 => Act::Outside(deeds(random)),
        19..=21 => Act::Undo(target(random)),
        22 | 23 => Act::Redo,
        24 | 25 => Act::Checkpoint(session),
        26 => Act::Compare(random.below(8)),
        27 => Act::Reopen,
        28 | 29 => Act::CutEdit(session, wishes(random), random.below(24)),
        32 | 33 => Act::Beside(session, (session + 1) % 3, deeds(random), deeds(random)),
        30 => Act::CutUndo(target(random), random.below(24)),
        _ => Act::CutRedo(random.below(24)),
    }
}

/// The sequence that belongs to a seed.
pub(crate) fn sequence(seed: u64) -> Vec<Act> {
    let mut random = Random(seed);
    let count = 2 + random.below(16);
    (0..count).map(|_| act(&mut random)).collect()
}
