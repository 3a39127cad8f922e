//! Whose changes are told, and how often.

use proptest::prelude::*;

use super::*;

/// Files on disk, and what the session has seen of them.
#[derive(Default)]
struct Bench {
    disk: HashMap<RelPath, ContentHash>,
    seen: HashMap<RelPath, ContentHash>,
    fresh: Freshness,
}

fn path(name: &str) -> RelPath {
    RelPath::parse(name).unwrap()
}

impl Bench {
    /// Files with a content each, all of them read.
    fn new(files: &[&str]) -> Self {
        let mut bench = Self::default();
        for file in files {
            bench.write(file, "one");
            bench.read(file);
        }
        bench
    }

    /// Somebody, or a command of the session's, writes.
    fn write(&mut self, file: &str, text: &str) {
        self.disk.insert(path(file), ContentHash::of(text.as_bytes()));
    }

    fn remove(&mut self, file: &str) {
        self.disk.remove(&path(file));
    }

    fn read(&mut self, file: &str) {
        self.seen.insert(path(file), self.disk[&path(file)]);
    }

    /// A tool of the session's writes what it knows.
    fn edit(&mut self, file: &str, text: &str) {
        self.write(file, text);
        self.read(file);
    }

    fn look(&mut self, own: &[&str]) -> Vec<(String, FileChangeKind)> {
        let seen: Vec<_> = self.seen.iter().map(|(path, hash)| (path.clone(), *hash)).collect();
        let own: Vec<_> = own.iter().map(|file| path(file)).collect();
        let now: Vec<_> = seen.iter().map(|(path, _)| self.disk.get(path).copied()).collect();
        let changes = self.fresh.look(&seen, &now, &own);
        changes.into_iter().map(|change| (change.path.to_string(), change.kind)).collect()
    }
}

fn modified(file: &str) -> Vec<(String, FileChangeKind)> {
    vec![(file.to_owned(), FileChangeKind::Modified)]
}

/// Case 41: another's write is told exactly once, the session's own never.
#[test]
fn case_41_one_notice_an_outside_change_and_none_of_ones_own() {
    let mut bench = Bench::new(&["a", "b"]);
    assert_eq!(bench.look(&[]), []);
    bench.edit("a", "two");
    assert_eq!(bench.look(&["a"]), [], "a tool's write");
    bench.write("b", "two");
    assert_eq!(
        bench.look(&["b"]),
        [],
        "a command's write: the model doesn't know the content, and it is its own"
    );
    assert_eq!(bench.look(&[]), []);
    bench.write("a", "outside");
    assert_eq!(bench.look(&[]), modified("a"));
    assert_eq!(bench.look(&[]), [], "told once");
    bench.write("a", "outside again");
    assert_eq!(bench.look(&[]), modified("a"), "another change");
    bench.read("a");
    assert_eq!(bench.look(&[]), []);
}

/// Case 27: what was read is fresh until somebody changes it; what was never read is not known.
#[test]
fn case_27_fresh_stale_unknown() {
    use journeyman_tools::{Seen, Sight};
    let (seen, file) = (Seen::default(), path("a"));
    let (read, other) = (ContentHash::of(b"one"), ContentHash::of(b"two"));
    assert_eq!(seen.sight(&file, &read), Sight::Never);
    seen.record(file.clone(), read);
    assert_eq!(seen.sight(&file, &read), Sight::Current);
    assert_eq!(seen.sight(&file, &other), Sight::Changed);
}

#[test]
fn a_file_that_goes_and_comes_back() {
    let mut bench = Bench::new(&["a"]);
    bench.remove("a");
    assert_eq!(bench.look(&[]), [("a".to_owned(), FileChangeKind::Deleted)]);
    assert_eq!(bench.look(&[]), []);
    bench.write("a", "other");
    assert_eq!(bench.look(&[]), [("a".to_owned(), FileChangeKind::Added)]);
    bench.remove("a");
    assert_eq!(bench.look(&["a"]), [], "removed by the session itself");
}

#[test]
fn a_change_that_is_taken_back_is_none_and_a_second_one_is_told_again() {
    let mut bench = Bench::new(&["a"]);
    bench.write("a", "outside");
    assert_eq!(bench.look(&[]), modified("a"));
    bench.write("a", "one");
    assert_eq!(bench.look(&[]), [], "it is what was seen");
    bench.write("a", "outside");
    assert_eq!(bench.look(&[]), modified("a"));
    bench.write("a", "touched, and written back before anybody looked");
    bench.write("a", "outside");
    assert_eq!(bench.look(&[]), []);
}

#[test]
fn an_own_edit_of_a_file_that_was_told_is_silent_and_what_follows_is_not() {
    let mut bench = Bench::new(&["a"]);
    bench.write("a", "outside");
    assert_eq!(bench.look(&[]), modified("a"));
    bench.write("a", "outside, with a place replaced that the model knew");
    assert_eq!(bench.look(&["a"]), []);
    bench.write("a", "outside, later");
    assert_eq!(bench.look(&[]), modified("a"));
}

#[test]
fn nothing_is_told_twice_over_a_restart() {
    let mut bench = Bench::new(&["a", "b"]);
    bench.write("a", "outside");
    assert_eq!(bench.look(&[]), modified("a"));
    let told: Vec<_> = bench.fresh.told().map(|(path, hash)| (path.clone(), hash)).collect();
    bench.fresh = Freshness::default();
    bench.fresh.restore(told);
    bench.write("b", "while nobody looked");
    assert_eq!(bench.look(&[]), modified("b"));
}

#[test]
fn words() {
    let change = |name: &str, kind| FileChange { path: path(name), kind };
    let changes = [change("a.rs", FileChangeKind::Modified), change("b.rs", FileChangeKind::Deleted)];
    assert_eq!(notice(&[], false), None);
    assert_eq!(
        notice(&changes, false).unwrap(),
        "Since you last saw them, somebody else changed: a.rs, b.rs (deleted). Read again what you still need before \
         you rely on it."
    );
    assert!(
        notice(&changes, true).unwrap().contains("somebody else, or a background command, changed: a.rs")
    );
    let many: Vec<_> = (0..25).map(|nth| change(&format!("f{nth}"), FileChangeKind::Modified)).collect();
    assert!(notice(&many, false).unwrap().contains("f9, 15 more."));
}

/// What may happen to one of two files.
#[derive(Debug, Clone)]
enum Happens {
    Outside(bool, u8),
    Gone(bool),
    Edit(bool, u8),
    Command(bool, u8),
    Read(bool),
    Look,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        (any::<bool>(), 0_u8..3).prop_map(|(file, text)| Happens::Outside(file, text)),
        any::<bool>().prop_map(Happens::Gone),
        (any::<bool>(), 0_u8..3).prop_map(|(file, text)| Happens::Edit(file, text)),
        (any::<bool>(), 0_u8..3).prop_map(|(file, text)| Happens::Command(file, text)),
        any::<bool>().prop_map(Happens::Read),
        Just(Happens::Look),
    ]
}

proptest! {
    /// With a look before and after everything the session does, a notice comes exactly where somebody else has just
    /// given a file a content that the session neither saw nor was told of.
    #[test]
    fn notices_are_exactly_the_outside_changes(all in prop::collection::vec(happens(), 0..40)) {
        let mut bench = Bench::new(&["a", "b"]);
        let name = |file: bool| if file { "a" } else { "b" };
        let text = |text: u8| ["one", "two", "three"][usize::from(text)];
        // The content that is accounted for.
        let mut known: HashMap<&str, Option<ContentHash>> =
            ["a", "b"].into_iter().map(|file| (file, bench.disk.get(&path(file)).copied())).collect();
        for one in all {
            let at = |bench: &Bench, file: &str| bench.disk.get(&path(file)).copied();
            let (own, outside): (Vec<&str>, bool) = match one {
                Happens::Outside(file, new) => { bench.write(name(file), text(new)); (vec![], true) }
                Happens::Gone(file) => { bench.remove(name(file)); (vec![], true) }
                Happens::Edit(file, new) => { bench.edit(name(file), text(new)); (vec![name(file)], false) }
                Happens::Command(file, new) => { bench.write(name(file), text(new)); (vec![name(file)], false) }
                Happens::Read(file) => {
                    if at(&bench, name(file)).is_some() { bench.read(name(file)); }
                    (vec![], false)
                }
                Happens::Look => (vec![], false),
            };
            let told: Vec<String> = bench.look(&own).into_iter().map(|(file, _)| file).collect();
            let expected: Vec<String> = ["a", "b"]
                .into_iter()
                .filter(|file| {
                    let (seen, now) = (bench.seen.get(&path(file)).copied(), at(&bench, file));
                    outside && now != known[file] && now != seen
                })
                .map(str::to_owned)
                .collect();
            prop_assert_eq!(told, expected);
            for file in ["a", "b"] {
                known.insert(file, at(&bench, file));
            }
        }
    }
}
