//! What holds for any command.

use journeyman_policy::analyse_command;
use journeyman_protocol::Level;
use proptest::prelude::*;

use crate::commands::deceptive::DECEPTIVE;
use crate::commands::harmless::HARMLESS;
use crate::commands::others::{OUTSIDE, WRITERS};

/// Simple commands that write, however they are dressed, and the level that they have at least.
const WRITING: &[(Level, &[&str])] = &[
    (Level::Shell, &["rm", "-rf", "src"]),
    (Level::Edit, &["touch", "x"]),
    (Level::Edit, &["cp", "a", "b"]),
    (Level::Edit, &["tee", "x"]),
    (Level::Edit, &["sed", "-i", "s/a/b/", "x"]),
    (Level::Shell, &["find", ".", "-delete"]),
    (Level::Edit, &["sort", "-o", "x", "y"]),
    (Level::Shell, &["git", "commit", "-m", "x"]),
    (Level::Shell, &["python3", "-c", "print(1)"]),
    (Level::Edit, &["make"]),
    (Level::Shell, &["make", "install"]),
    (Level::Edit, &["cargo", "test"]),
    (Level::Shell, &["cargo", "run"]),
    (Level::Shell, &["awk", "BEGIN{system(\"x\")}"]),
    (Level::Edit, &["uniq", "a", "b"]),
    (Level::Shell, &["git", "log", "--output=x"]),
    (Level::Shell, &["rg", "--pre", "x", "y"]),
    (Level::Shell, &["dd", "if=a", "of=b"]),
    (Level::Shell, &["tar", "xf", "x"]),
    (Level::Shell, &["./ls"]),
    (Level::Shell, &["git", "branch", "new"]),
    (Level::Shell, &["xxd", "-r", "a", "b"]),
    (Level::Shell, &["date", "-s", "x"]),
    (Level::Shell, &["sed", "-i", "1e x", "y"]),
    (Level::Shell, &["cp", "a", "../b"]),
    (Level::Shell, &["mv", "a", "/srv/b"]),
    (Level::System, &["touch", ".envrc"]),
    (Level::System, &["tee", ".git/hooks/pre-commit"]),
    (Level::System, &["curl", "x.example"]),
];
/// Simple commands that change files of the project alone.
const EDITING: &[&[&str]] = &[
    &["touch", "x"],
    &["mkdir", "-p", "a/b"],
    &["cp", "a", "b"],
    &["mv", "a b", "c"],
    &["sed", "-i", "s/a/b/", "x"],
    &["sort", "-o", "x", "y"],
    &["git", "add", "-A"],
    &["git", "stash"],
    &["cargo", "tree"],
    &["make", "-n"],
    &["make", "test"],
    &["cargo", "clippy", "--all-targets"],
    &["rm", "x"],
    &["chmod", "+x", "x"],
];
/// Simple commands that only read.
const READING: &[&[&str]] = &[
    &["ls", "-la"],
    &["cat", "x"],
    &["grep", "-rn", "foo", "src"],
    &["wc", "-l", "x"],
    &["echo", "a b"],
    &["git", "log", "-1"],
    &["sed", "-n", "1p", "x"],
    &["find", ".", "-name", "*.rs"],
    &["sort", "x"],
    &["head", "-5", "x"],
    &["pwd"],
    &["true"],
    &["stat", "x"],
    &["jq", ".a", "x"],
];

/// One word, quoted in one of the ways that mean the same to every shell.
fn quoted(word: &str, way: u8) -> String {
    let single = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-./=,:_".contains(&b));
    match way % 6 {
        0 if plain => word.to_owned(),
        1 if plain => word.chars().flat_map(|c| ['\\', c]).collect(),
        2 if plain => format!("\"{word}\""),
        3 => word
            .split_at_checked(1)
            .map_or_else(|| single(word), |(head, tail)| format!("{}{}", single(head), single(tail))),
        4 if plain && word.len() > 1 => format!("{}''{}", &word[..1], &word[1..]),
        _ => single(word),
    }
}

fn simple(words: &[&str], ways: &[u8]) -> String {
    let ways = ways.iter().copied().chain(std::iter::repeat(0));
    words.iter().zip(ways).map(|(word, way)| quoted(word, way)).collect::<Vec<_>>().join(" ")
}

/// A command in which another runs.
fn around(inner: &str, way: u8, reader: &str) -> String {
    let single = inner.replace('\'', "'\\''");
    // `$((make))` is arithmetic, which runs nothing.
    let substituted = if inner.starts_with('(') { format!("$( {inner})") } else { format!("$({inner})") };
    // A keyword is a program's name behind `env`: the `)` of its `case` would end a substitution.
    let is_case = inner.starts_with("case ");
    let program = if is_case { format!("sh -c '{single}'") } else { inner.to_owned() };
    match way % 26 {
        0 => format!("{inner}; {reader}"),
        1 => format!("{reader} && {inner}"),
        2 => format!("{reader} | {inner}"),
        3 => format!("({inner})"),
        4 => format!("{{ {inner}; }}"),
        5 => format!("echo \"{substituted}\""),
        6 => format!("if {inner}; then {reader}; fi"),
        7 => format!("for i in 1 2; do {inner}; done"),
        8 => format!("sh -c '{single}'"),
        9 => format!("env {program}"),
        10 => format!("timeout 5 {program}"),
        11 => format!("{reader} | xargs {program}"),
        12 => format!("! {inner}"),
        13 => format!("{reader} &\n{inner}"),
        14 => format!("x={substituted}"),
        15 => format!("cat <<E\n{substituted}\nE"),
        16 => format!("sh <<'E'\n{inner}\nE"),
        17 => format!("while {reader}; do {inner}; break; done"),
        18 => format!("case a in a) {inner};; esac"),
        19 => format!("cat <({inner})"),
        20 => format!("eval '{single}'"),
        21 => format!("{reader} # {reader}\n{inner}"),
        22 => format!("f() {{ {inner}; }}; f"),
        23 => format!("nice {program} 2>/dev/null"),
        24 => format!("{reader} || {inner} > /dev/null 2>&1"),
        _ => format!("command {program}"),
    }
}

/// Ways of `around` that run nothing but readers where both commands are readers.
const HARMLESS_WAYS: [u8; 19] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15, 18, 19, 21, 23, 24];

fn a_piece() -> impl Strategy<Value = String> {
    let tame: Vec<&'static str> = HARMLESS.iter().flat_map(|command| command.split(' ')).collect();
    let wild: Vec<&'static str> = WRITERS
        .iter()
        .chain(OUTSIDE)
        .chain(DECEPTIVE.iter().map(|(_, command)| command))
        .flat_map(|command| command.split(' '))
        .collect();
    prop_oneof![
        4 => prop::sample::select(tame).prop_map(str::to_owned),
        4 => prop::sample::select(wild).prop_map(str::to_owned),
        1 => "[ -~\u{a0}\u{200b}\n\t]{0,6}",
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_holds_a_writer_is_never_read_only(
        (level, writer) in prop::sample::select(WRITING.to_vec()),
        reader in prop::sample::select(READING.to_vec()),
        ways in prop::collection::vec(any::<u8>(), 0..6),
        layers in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut command = simple(writer, &ways);
        for layer in layers {
            command = around(&command, layer, &simple(reader, &ways));
        }
        prop_assert!(analyse_command(&command, &[]).level >= level, "{}", command);
    }

    #[test]
    fn readers_around_readers_only_read(
        first in prop::sample::select(READING.to_vec()),
        second in prop::sample::select(READING.to_vec()),
        ways in prop::collection::vec(any::<u8>(), 0..6),
        layer in prop::sample::select(HARMLESS_WAYS.to_vec()),
    ) {
        // The grammar reads a backslash at the start of a line as part of the line before; that
        // asks.
        let ways: Vec<u8> = ways.into_iter().map(|way| if way % 6 == 1 { 0 } else { way }).collect();
        let command = around(&simple(first, &ways), layer, &simple(second, &ways));
        let analysis = analyse_command(&command, &[]);
        prop_assert!(analysis.level == Level::ReadOnly && analysis.complete, "{}: {}", command, analysis.reason);
    }

    #[test]
    fn edits_and_readers_around_each_other_are_edits(
        edit in prop::sample::select(EDITING.to_vec()),
        reader in prop::sample::select(READING.to_vec()),
        ways in prop::collection::vec(any::<u8>(), 0..6),
        layer in prop::sample::select(HARMLESS_WAYS.to_vec()),
        variable in prop::sample::select(vec!["", "LC_ALL=C ", "CI=1 RUST_BACKTRACE=1 "]),
    ) {
        let ways: Vec<u8> = ways.into_iter().map(|way| if way % 6 == 1 { 0 } else { way }).collect();
        let edit = format!("{variable}{}", simple(edit, &ways));
        // Behind `!` and the like there is no place for a variable.
        prop_assume!(variable.is_empty() || !matches!(layer % 26, 9 | 10 | 21 | 23 | 25));
        let command = around(&edit, layer, &simple(reader, &ways));
        let analysis = analyse_command(&command, &[]);
        prop_assert!(analysis.level == Level::Edit && analysis.complete, "{}: {}", command, analysis.reason);
    }

    #[test]
    fn no_edit_is_one_where_it_leaves_the_project(
        // What these read may lie elsewhere; a word with a blank is taken apart below.
        edit in prop::sample::select(EDITING.to_vec()).prop_filter("one that writes to each of its words", |edit| {
            !matches!(edit[0], "sort" | "sed" | "cargo" | "make") && !edit.iter().any(|word| word.contains(' '))
        }),
        place in prop::sample::select(vec!["../x", "/srv/x", "~/x", ".envrc", ".git/config", "a/.VSCODE/x", "$x", "`x`", "*", "-x", "--x=y", "x/../../y"]),
        at in any::<prop::sample::Index>(),
        ways in prop::collection::vec(any::<u8>(), 0..6),
    ) {
        let known = simple(edit, &ways);
        let mut words: Vec<&str> = known.split(' ').collect();
        words.insert(1 + at.index(words.len()), place);
        let command = words.join(" ");
        let analysis = analyse_command(&command, &[]);
        prop_assert!(analysis.level >= Level::Shell, "{}: {}", command, analysis.reason);
    }

    #[test]
    fn any_text_gets_a_level(
        pieces in prop::collection::vec((a_piece(), prop::sample::select(vec![" ", "", "|", ";", "&&", "\n", "$(", ")", "'", "\"", "<<E\n"])), 0..9)
    ) {
        let command: String = pieces.into_iter().flat_map(|(piece, glue)| [piece, glue.to_owned()]).collect();
        let analysis = analyse_command(&command, &[]);
        prop_assert!(!analysis.reason.is_empty());
        if analysis.level == Level::Edit {
            let written = analysis.parts.iter().flat_map(|part| &part.writes);
            prop_assert!(analysis.complete && !analysis.beyond_undo, "{command:?}");
            prop_assert!(written.into_iter().all(|word| word.known && !word.text.contains("..")), "{command:?}");
        }
        if analysis.level == Level::ReadOnly {
            // An independent look: nothing of it is left that a shell could do more with.
            prop_assert!(analysis.parts.iter().all(|part| part.level == Level::ReadOnly && part.writes.is_empty()), "{command:?}");
            prop_assert!(!command.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{command:?}");
        }
    }

    #[test]
    fn adding_a_part_never_lowers_the_level(
        first in prop::sample::select(WRITERS.iter().chain(OUTSIDE).chain(DECEPTIVE.iter().map(|(_, command)| command)).copied().collect::<Vec<_>>()),
        second in prop::sample::select(HARMLESS.iter().chain(WRITERS).copied().collect::<Vec<_>>()),
        glue in prop::sample::select(vec![" && ", " | ", "; ", " || ", "\n"]),
    ) {
        // What makes no command of its own, or one of two.
        let whole = |text: &str| ["'", "\"", "`"].iter().all(|quote| text.matches(quote).count().is_multiple_of(2)) && !text.contains("<<") && !text.contains('#') && !text.ends_with('\\') && !text.trim().is_empty();
        prop_assume!(whole(first) && whole(second));
        let alone = analyse_command(first, &[]).level;
        let longer = analyse_command(&format!("{first}{glue}{second}"), &[]);
        prop_assert!(longer.level >= alone, "{first:?}{glue:?}{second:?}: {} before {alone}", longer.level);
        let longer = analyse_command(&format!("{second}{glue}{first}"), &[]);
        prop_assert!(longer.level >= alone, "{second:?}{glue:?}{first:?}: {} before {alone}", longer.level);
    }

    #[test]
    fn opening_a_command_with_more_rights_is_always_seen(command in a_piece(), quoted in any::<bool>()) {
        let text = if quoted { format!("sh -c \"sudo {command}\"") } else { format!("sudo {command}") };
        prop_assert_eq!(analyse_command(&text, &[]).level, Level::System, "{}", text);
    }
}
