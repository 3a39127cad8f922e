//! Tests of the parsers of git's output, which accept any bytes without a panic.

use journeyman_protocol::{RelPath, UnixMillis};
use proptest::prelude::*;

use crate::status::{EntryStatus, GitHead, Status, StatusChange, StatusEntry};
use crate::tracked::TrackedFile;
use crate::{history, overrides, raw_diff, status, tracked};

fn path(name: &[u8]) -> RelPath {
    RelPath::parse(name).unwrap()
}

#[test]
fn a_status_is_read() {
    let zero = "0".repeat(40);
    let modes = format!("N... 100644 100644 100644 {zero} {zero}");
    let text = format!(
        "# branch.oid (initial)\0# branch.head main\0# branch.ab +1 -2\0\
         1 .M {modes} sub/a b\n\0\
         1 A. {modes} other\0\
         1 M. S.M. 160000 160000 160000 {zero} {zero} sub/module\0\
         2 R. {modes} R100 sub/new\0sub/old\0\
         u UU N... 100644 100644 100644 100644 {zero} {zero} {zero} sub/both\0\
         ? sub/nested/\0? sub/\0! sub/ignored\0"
    );
    let entry = |name: &[u8], entry| StatusEntry { path: path(name), entry };
    let tracked = |staged, unstaged, submodule| EntryStatus::Tracked { staged, unstaged, submodule };
    let expected = Status {
        head: GitHead { commit: None, branch: Some("main".to_owned()) },
        entries: vec![
            entry(b"a b\n", tracked(StatusChange::None, StatusChange::Modified, false)),
            entry(b"both", EntryStatus::Unmerged),
            entry(b"ignored", EntryStatus::Ignored),
            entry(b"module", tracked(StatusChange::Modified, StatusChange::None, true)),
            entry(b"nested", EntryStatus::Untracked { repository: true }),
            entry(b"new", tracked(StatusChange::Renamed, StatusChange::None, false)),
        ],
    };
    assert_eq!(status::parse(text.as_bytes(), b"sub/"), Some(expected));
    assert_eq!(status::parse(b"", b""), Some(Status::default()));
    for broken in ["1 .M N...", "1 .Q", "x", "? ", "2 R. a b c d e f g h", "?a"] {
        let read = status::parse(broken.as_bytes(), b"");
        assert!(read.is_none_or(|read| read.entries.is_empty()), "{broken}");
    }
}

#[test]
fn tracked_files_are_read() {
    let read = tracked::parse_tracked_files(b"H b\0M a\0M a\0S c\0h d\0").unwrap();
    let expected = [("a", false), ("b", false), ("c", true), ("d", true)]
        .map(|(name, unwatched)| TrackedFile { path: path(name.as_bytes()), unwatched });
    assert_eq!(read, expected);
    assert_eq!(tracked::parse_tracked_files(b""), Some(Vec::new()));
    for broken in [b"H".as_slice(), b"H \0", b"Hb\0", b"H /etc\0", b"H ../x\0"] {
        assert_eq!(tracked::parse_tracked_files(broken), None, "{broken:?}");
    }
}

#[test]
fn commits_are_read() {
    let (one, two) = ("a".repeat(40), "b".repeat(64));
    let text = format!(
        "{one}\0100\0A\x1b[31mda\0first\nline\0\n:000000 100644 0 1 A\0sub/x\0:1 2 3 4 M\0other\0\
         {two}\0-5\0\0\0"
    );
    let read = history::parse(text.as_bytes(), b"sub/").unwrap();
    let logged = |id: String, time, author: &str, subject: &str, paths| history::CommitSummary {
        id,
        time: UnixMillis(time),
        author: author.to_owned(),
        subject: subject.to_owned(),
        paths,
    };
    assert_eq!(
        read,
        [logged(one, 100_000, "Ada", "first line", vec![path(b"x")]), logged(two, 0, "", "", vec![])]
    );
    for broken in [":1 2 3 4 M\0x\0", "nothex\0", "aa", &"a".repeat(40)] {
        assert_eq!(history::parse(broken.as_bytes(), b""), None, "{broken}");
    }
}

#[test]
fn filters_are_found_by_name() {
    let names = b"core.bare\0filter.a.clean\0filter.a.smudge\0Filter.b=c.d.process\0filter.x\0filterx.y.z\0";
    assert_eq!(overrides::parse_filter_names(names), [b"a".to_vec(), b"b=c.d".to_vec()]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in prop::collection::vec(prop_oneof![
            2 => any::<u8>(),
            3 => prop::sample::select(b"12u?!# .MADRC:\0\n/SHh0a".to_vec()),
        ], 0..300),
        prefix in "[a-z]{0,3}/?",
    ) {
        status::parse(&bytes, prefix.as_bytes());
        tracked::parse_tracked_files(&bytes);
        tracked::parse_paths(&bytes);
        history::parse(&bytes, prefix.as_bytes());
        raw_diff::parse_raw_diff(&bytes);
        overrides::parse_filter_names(&bytes);
    }

    #[test]
    fn any_name_comes_through(names in prop::collection::btree_set(
        prop::collection::vec(1_u8..=255, 1..40), 1..20)
    ) {
        let names: std::collections::BTreeSet<RelPath> =
            names.into_iter().filter_map(|name| RelPath::parse(name).ok()).collect();
        let each = |before: &str| -> Vec<u8> {
            names.iter().flat_map(|name| [before.as_bytes(), name.as_bytes(), b"\0"].concat()).collect()
        };
        let expected: Vec<RelPath> = names.iter().cloned().collect();
        let read = tracked::parse_tracked_files(&each("H ")).unwrap();
        prop_assert_eq!(read.into_iter().map(|file| file.path).collect::<Vec<_>>(), expected.clone());
        for before in ["? ", "1 .M N... 1 2 3 4 5 ", "u UU N... 1 2 3 4 5 6 7 "] {
            let read = status::parse(&each(before), b"").unwrap();
            let paths = read.entries.into_iter().map(|entry| entry.path).collect::<Vec<_>>();
            prop_assert_eq!(paths, expected.clone());
        }
        let read = raw_diff::parse_raw_diff(&each(":1 100644 2 3 M\0")).unwrap();
        let paths = read.into_keys().map(|name| RelPath::parse(name).unwrap()).collect::<Vec<_>>();
        prop_assert_eq!(paths, expected);
    }
}
