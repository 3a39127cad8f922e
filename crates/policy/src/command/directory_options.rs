//! The options by which a program is told in which directory to work.

use journeyman_syntax::shell::Word;

use super::options::program_name;

/// Programs that run others, or work on files, and the options that name their directory.
const DIRECTORY_OPTIONS: &[(&[&str], &[&str])] = &[
    (&["env"], &["-C", "--chdir"]),
    (&["sudo"], &["-D", "--chdir"]),
    (&["bwrap", "run0"], &["--chdir"]),
    (&["systemd-run"], &["--working-directory"]),
    (&["nsenter", "unshare"], &["-w", "--wd"]),
    (&["uv"], &["--directory"]),
    (&["bsdtar", "gtar", "poetry", "tar"], &["-C", "--directory"]),
    (&["gmake", "make"], &["-C", "--directory"]),
    (&["go", "meson", "ninja", "pnpm"], &["-C"]),
    (&["git"], &["-C", "--work-tree"]),
];

/// Returns the directories that a program's options name, each relative to the one before it. The
/// first of `words` is the program.
pub(super) fn named_directories(words: &[Word]) -> Vec<Word> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let name = program_name(&program.text);
    let found = DIRECTORY_OPTIONS.iter().find(|(names, _)| names.contains(&name));
    let Some((_, options)) = found else { return Vec::new() };
    let mut directories = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        // After the subcommand, these options of git mean something else.
        if text == "--" || name == "git" && !text.starts_with('-') {
            break;
        }
        if name == "git" && matches!(text, "-c" | "--git-dir" | "--namespace") {
            rest.next();
            continue;
        }
        let takes_next = options.contains(&text)
            || options.iter().any(|option| option.len() == 2 && ends_cluster(text, option));
        if takes_next {
            directories.extend(rest.next().cloned());
            continue;
        }
        let value = options.iter().find_map(|option| {
            let value = text.strip_prefix(option)?;
            if option.len() == 2 { Some(value) } else { value.strip_prefix('=') }
        });
        directories.extend(value.map(|value| Word { text: value.to_owned(), ..word.clone() }));
    }
    directories
}

/// Returns true for a cluster of short options that ends with this one: `-kC` for `-C`.
fn ends_cluster(text: &str, option: &str) -> bool {
    let cluster = text.strip_prefix('-').unwrap_or_default();
    cluster.bytes().all(|byte| byte.is_ascii_alphabetic())
        && cluster.len() > 1
        && cluster.ends_with(option.trim_start_matches('-'))
        && !text.starts_with(option)
}
