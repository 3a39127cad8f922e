//! The merge against its laws, against git, and against every smallest difference there is.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use super::*;

/// A generator of its own, so that every run tests the same cases.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

const CONFLICT_LABELS: ConflictLabels<'_> =
    ConflictLabels { ours: "ours", base: Some("base"), theirs: "theirs" };

fn merge_result(base: &str, ours: &str, theirs: &str) -> Result<String, usize> {
    match merge_texts(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
        Merge::Clean(text) => Ok(String::from_utf8(text).unwrap()),
        Merge::Conflicts(conflicts) => Err(conflicts.count()),
        Merge::Refused(why) => panic!("{why}"),
    }
}

/// Letters stand for lines.
fn letters_to_lines(letters: &str) -> String {
    letters.chars().map(|letter| format!("{letter}\n")).collect()
}

#[test]
fn table() {
    // Base, ours, theirs, and what comes of it or how many conflicts.
    let table: [(&str, &str, &str, Result<&str, usize>); 24] = [
        ("abc", "abc", "abc", Ok("abc")),
        ("abc", "aXc", "abc", Ok("aXc")),
        ("abc", "abc", "aXc", Ok("aXc")),
        // The same on both sides, once.
        ("abc", "aXc", "aXc", Ok("aXc")),
        ("abc", "abcX", "abcX", Ok("abcX")),
        ("abcde", "Xbcde", "abcdY", Ok("XbcdY")),
        ("abcde", "abXcde", "abcdYe", Ok("abXcdYe")),
        ("abc", "aXc", "aYc", Err(1)),
        ("abc", "abcX", "abcY", Err(1)),
        ("", "X", "Y", Err(1)),
        ("", "X", "", Ok("X")),
        // Next to each other isn't apart.
        ("abcd", "aXcd", "abYd", Err(1)),
        ("abcd", "Xabcd", "Ybcd", Err(1)),
        ("abcd", "aXcd", "abcY", Ok("aXcY")),
        // Deleted here, changed there.
        ("abc", "ac", "aYc", Err(1)),
        ("abcde", "abde", "Ybcde", Ok("Ybde")),
        ("abc", "", "abc", Ok("")),
        ("abc", "", "aYc", Err(1)),
        // Moved here, changed there.
        ("abcdef", "adbcef", "abcXef", Err(1)),
        ("abcdef", "bcdefa", "abcXef", Ok("bcXefa")),
        // Both made the same of it on different ways.
        ("abcd", "XYd", "XYd", Ok("XYd")),
        ("abcdefgh", "aXcdefYh", "aZcdefWh", Err(2)),
        ("abcdefgh", "aXcdefYh", "aZcdefYh", Err(1)),
        ("aaaa", "aaa", "aaaa", Ok("aaa")),
    ];
    for (base, ours, theirs, expected) in table {
        let expected = expected.map(letters_to_lines);
        assert_eq!(
            merge_result(&letters_to_lines(base), &letters_to_lines(ours), &letters_to_lines(theirs)),
            expected,
            "{base} {ours} {theirs}"
        );
        assert_eq!(
            merge_result(&letters_to_lines(base), &letters_to_lines(theirs), &letters_to_lines(ours)),
            expected,
            "{base} {theirs} {ours}"
        );
    }
}

#[test]
fn line_ends_are_part_of_lines() {
    let table = [
        ("a\r\nb\r\nc\r\nd\r\n", "A\r\nb\r\nc\r\nd\r\n", "a\r\nb\r\nc\r\nD\r\n", Ok("A\r\nb\r\nc\r\nD\r\n")),
        ("a\nb\nc", "A\nb\nc", "a\nb\nc\n", Ok("A\nb\nc\n")),
        ("a\nb\nc", "A\nb\nc", "a\nb\nC", Ok("A\nb\nC")),
        ("a\nb\nc\n", "a\nb\nc", "A\nb\nc\n", Ok("A\nb\nc")),
        ("a", "a\nb", "a\n", Err(1)),
        ("a\nb\n", "a\r\nb\r\n", "a\nB\n", Err(1)),
        ("a\rb", "a\rb\n", "a\rb", Ok("a\rb\n")),
    ];
    for (base, ours, theirs, expected) in table {
        assert_eq!(
            merge_result(base, ours, theirs),
            expected.map(str::to_owned),
            "{base:?} {ours:?} {theirs:?}"
        );
    }
}

#[test]
fn markers() {
    let table = [
        (("a\nb\n", "a\nX\n", "a\nY\n"), "a\n<<<<<<< ours\nX\n=======\nY\n>>>>>>> theirs\n"),
        (("b", "X", "Y"), "<<<<<<< ours\nX\n=======\nY\n>>>>>>> theirs\n"),
        (("b\r\n", "X\r\n", "Y"), "<<<<<<< ours\r\nX\r\n=======\r\nY\r\n>>>>>>> theirs\r\n"),
        (("a\n", "", "Y\n"), "<<<<<<< ours\n=======\nY\n>>>>>>> theirs\n"),
        (("a\n", "1\nX\n2\n", "1\nY\n2\n"), "1\n<<<<<<< ours\nX\n=======\nY\n>>>>>>> theirs\n2\n"),
    ];
    for ((base, ours, theirs), expected) in table {
        let Merge::Conflicts(found) = merge_texts(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) else {
            panic!("{base:?} {ours:?} {theirs:?} is no conflict");
        };
        let marked = found.to_marked_text(&ConflictLabels { base: None, ..CONFLICT_LABELS });
        assert_eq!(String::from_utf8(marked).unwrap(), expected);
    }
    let Merge::Conflicts(found) = merge_texts(b"a\nb\nc\n", b"a\nX\nc\n", b"a\nc\n") else {
        panic!("no conflict")
    };
    let with_base = "a\n<<<<<<< a b\nX\n||||||| base\nb\n=======\n>>>>>>> theirs\nc\n";
    assert_eq!(
        String::from_utf8(found.to_marked_text(&ConflictLabels { ours: "a\nb", ..CONFLICT_LABELS })).unwrap(),
        with_base
    );
}

#[test]
fn what_is_no_text_or_too_much_is_refused_and_never_slow() {
    assert!(matches!(merge_texts(b"a\0", b"b\0", b"c\0"), Merge::Refused(_)));
    assert_eq!(merge_texts(b"a\0", b"b\0", b"a\0"), Merge::Clean(b"b\0".to_vec()));
    let long = vec![b'x'; MAX_MERGE_BYTES + 1];
    assert!(matches!(merge_texts(b"a", &long, b"c"), Merge::Refused(_)));
    // Every line differs: next to nothing to do.
    let numbered = |word: &str| (0..60_000).map(|n| format!("{word} {n}\n")).collect::<String>();
    let (base, ours, theirs) = (numbered("a"), numbered("b"), numbered("c"));
    assert_eq!(merge_result(&base, &ours, &theirs), Err(1));
    // Every line is there, at another place: the worst case of the algorithm, which has to stay
    // within its bounds.
    let mut dice = Dice(7);
    let mut shuffled = || {
        let mut lines: Vec<usize> = (0..60_000).collect();
        for at in (1..lines.len()).rev() {
            lines.swap(at, dice.roll(at + 1));
        }
        lines.iter().map(|n| format!("{n}\n")).collect::<String>()
    };
    let (base, ours, theirs) = (shuffled(), shuffled(), shuffled());
    assert!(merge_result(&base, &ours, &theirs).is_err());
    // Lines that are all alike, which slide all over each other.
    let (base, ours, theirs) = ("x\n".repeat(60_000), "x\n".repeat(59_000), "x\n".repeat(61_000));
    assert_eq!(merge_result(&base, &ours, &theirs), Err(1));
}

/// A text of few different lines, and what somebody made of it.
fn random_text(dice: &mut Dice, letters: usize, longest: usize) -> String {
    let count = dice.roll(longest + 1);
    let mut text: String = (0..count).map(|_| line(dice, letters)).collect();
    if dice.roll(5) == 0 {
        text.pop();
    }
    text
}

fn line(dice: &mut Dice, letters: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(dice.roll(letters)).unwrap());
    format!("{letter}\n")
}

fn random_edit(dice: &mut Dice, text: &str, letters: usize) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(lines.len() + 1);
        match dice.roll(4) {
            0 if at < lines.len() => drop(lines.remove(at)),
            1 if at < lines.len() => lines[at] = line(dice, letters),
            2 if at < lines.len() => {
                let moved = lines.remove(at);
                lines.insert(dice.roll(lines.len() + 1), moved);
            }
            _ => lines.insert(at, line(dice, letters)),
        }
    }
    // Only the last line may lack its end.
    let open = lines.last().is_some_and(|last| !last.ends_with('\n'));
    let mut text: String = lines.iter().map(|line| format!("{}\n", line.trim_end())).collect();
    if open || dice.roll(12) == 0 {
        text.pop();
    }
    text
}

fn random_cases(seed: u64, count: usize) -> impl Iterator<Item = [String; 3]> {
    let mut dice = Dice(seed);
    (0..count).map(move |_| {
        let letters = [2, 3, 5, 26][dice.roll(4)];
        let base = random_text(&mut dice, letters, 12);
        let ours = random_edit(&mut dice, &base, letters);
        let theirs = random_edit(&mut dice, &base, letters);
        [base, ours, theirs]
    })
}

#[test]
fn laws() {
    for [base, ours, theirs] in random_cases(1, 20_000) {
        let (base, ours, theirs) = (base.as_str(), ours.as_str(), theirs.as_str());
        let shown = || format!("{base:?} {ours:?} {theirs:?}");
        assert_eq!(merge_result(base, ours, base).as_deref(), Ok(ours), "{}", shown());
        assert_eq!(merge_result(base, base, ours).as_deref(), Ok(ours), "{}", shown());
        assert_eq!(merge_result(base, ours, ours).as_deref(), Ok(ours), "{}", shown());
        let (one, other) = (merge_result(base, ours, theirs), merge_result(base, theirs, ours));
        assert_eq!(one, other, "{}", shown());
        if let Ok(merged) = one {
            let lines: BTreeSet<&str> = merged.split_inclusive('\n').collect();
            let known = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<BTreeSet<_>>();
            let (of_base, of_ours, of_theirs) = (known(base), known(ours), known(theirs));
            for line in of_ours.symmetric_difference(&of_base).chain(of_theirs.symmetric_difference(&of_base))
            {
                let added = of_ours.contains(line) || of_theirs.contains(line);
                assert!(!added || of_base.contains(line) || lines.contains(line.as_str()), "{}", shown());
            }
            let all: BTreeSet<String> = &(&of_base | &of_ours) | &of_theirs;
            assert!(lines.iter().all(|line| all.contains(*line)), "lines ran together: {}", shown());
        }
    }
}

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Each smallest difference's edits, by trying all of them.
fn all_smallest_edits(old: &[&str], new: &[&str]) -> Vec<Vec<Edit>> {
    fn length(old: &[&str], new: &[&str]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for one in old {
            let mut corner = 0;
            for (at, other) in new.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if one == other { corner + 1 } else { above.max(row[at]) };
                corner = above;
            }
        }
        row[new.len()]
    }
    fn go(
        (old, new): (&[&str], &[&str]),
        (x, y): (usize, usize),
        pairs: &mut Vec<(usize, usize)>,
        found: &mut Vec<Vec<(usize, usize)>>,
    ) {
        let left = length(&old[x..], &new[y..]);
        if left == 0 {
            found.push(pairs.clone());
            return;
        }
        for i in x..old.len() {
            for j in y..new.len() {
                if old[i] == new[j] && length(&old[i + 1..], &new[j + 1..]) + 1 == left {
                    pairs.push((i, j));
                    go((old, new), (i + 1, j + 1), pairs, found);
                    pairs.pop();
                }
            }
        }
    }
    let mut found = Vec::new();
    go((old, new), (0, 0), &mut Vec::new(), &mut found);
    let as_edits = |pairs: Vec<(usize, usize)>| {
        let mut edits = Vec::new();
        let (mut x, mut y) = (0, 0);
        for (i, j) in pairs.into_iter().chain([(old.len(), new.len())]) {
            if i > x || j > y {
                edits.push(Edit { old: x..i, new: y..j });
            }
            (x, y) = (i + 1, j + 1);
        }
        edits
    };
    found.into_iter().map(as_edits).collect()
}

/// Every result that some pair of smallest differences leads to; `None` is a conflict.
fn possible_merges(base: &str, ours: &str, theirs: &str) -> BTreeSet<Option<String>> {
    let sides = [base, ours, theirs].map(|side| Lines::new(side.as_bytes()));
    let [b, o, t] = &sides;
    let mut found = BTreeSet::new();
    for one in all_smallest_edits(&split(base), &split(ours)) {
        for other in all_smallest_edits(&split(base), &split(theirs)) {
            let is_same = |ours: Range<usize>, theirs: Range<usize>| o.text(ours) == t.text(theirs);
            let pieces = build_pieces(&sides, &find_regions(b.count(), &one, &other, is_same));
            let clean = pieces.iter().all(|piece| matches!(piece, MergedPiece::Resolved(_)));
            found.insert(clean.then(|| String::from_utf8(join_resolved(&pieces)).unwrap()));
        }
    }
    found
}

#[test]
fn differences_are_the_smallest() {
    for [old, new, _] in random_cases(2, 5_000) {
        let [one, other] = [&old, &new].map(|side| Lines::new(side.as_bytes()));
        let found = compute_edits(one.as_slice(), other.as_slice());
        if one.count() + other.count() < 14 {
            assert!(all_smallest_edits(&split(&old), &split(&new)).contains(&found), "{old:?} {new:?}");
        }
        let mut rebuilt = String::new();
        let mut at = 0;
        for edit in &found {
            rebuilt += std::str::from_utf8(one.text(at..edit.old.start)).unwrap();
            rebuilt += std::str::from_utf8(other.text(edit.new.clone())).unwrap();
            at = edit.old.end;
        }
        rebuilt += std::str::from_utf8(one.text(at..one.count())).unwrap();
        assert_eq!(rebuilt, new);
    }
}

fn merge_with_git(dir: &Path, [base, ours, theirs]: &[String; 3]) -> Result<String, String> {
    let [b, o, t] = ["base", "ours", "theirs"].map(|name| dir.join(name));
    fs::write(&b, base).unwrap();
    fs::write(&o, ours).unwrap();
    fs::write(&t, theirs).unwrap();
    let names = ["-L", "ours", "-L", "base", "-L", "theirs"];
    let ran = Command::new("git")
        .args(["merge-file", "-p", "-q", "--diff3"])
        .args(names)
        .args([&o, &b, &t])
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    if ran.status.code() == Some(0) { Ok(text) } else { Err(text) }
}

#[test]
fn git_says_the_same() {
    if !journeyman_testkit::has_program_or_skip("git") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut same, mut same_markers, mut conflicts, mut otherwise) = (0, 0, 0, 0);
    for case in random_cases(3, 2_000) {
        let [base, ours, theirs] = &case;
        let git = merge_with_git(dir.path(), &case);
        let (us, marked) = match merge_texts(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
            Merge::Clean(text) => (Ok(()), text),
            Merge::Conflicts(found) => (Err(()), found.to_marked_text(&CONFLICT_LABELS)),
            Merge::Refused(why) => panic!("{why}"),
        };
        let marked = String::from_utf8(marked).unwrap();
        conflicts += usize::from(us.is_err());
        match (&us, &git) {
            (Ok(()), Ok(git)) if marked == *git => same += 1,
            (Err(()), Err(git)) => {
                same += 1;
                same_markers += usize::from(marked == *git);
            }
            // A conflict to git in its eager way, although both sides have the same in that place;
            // its default way finds it clean too. Or a text that has several smallest differences
            // from the base, and git took another one: then its answer is that of our own merge for
            // one of those.
            (_, git) => {
                otherwise += 1;
                let git = git.as_ref().ok().cloned();
                let possible = possible_merges(base, ours, theirs);
                assert!(possible.contains(&git), "{case:?}: ours {us:?} {marked:?}, git {git:?}");
            }
        }
    }
    println!("same {same}, otherwise {otherwise}, conflicts {conflicts}, same markers {same_markers}");
    assert!(same * 100 >= 2_000 * 97, "same in {same} of 2000");
    assert!(
        conflicts > 500 && same_markers > conflicts * 9 / 10,
        "{conflicts} conflicts, {same_markers} marked alike"
    );
}
