//! The files that a program writes, as far as its words name them.
//!
//! Rules about what is written match these words, so that reading a protected file stays allowed.
//! Where the meaning of a word depends on what is there (`git checkout NAME`, `cp FILE NAME`), it
//! counts as a file that may be written. Programs that are not in a table, and what scripts and
//! builds do, are not looked into.

use journeyman_syntax::shell::Word;

use super::current_directory::CurrentDirectory;
use super::inline_code::is_interpreter;
use super::options::{has_short_option, likely_operands, program_name};
use super::part::WrittenPath;
use super::sed;
use super::writer_table::{
    COMPILERS, COMPRESSORS, DRY_RUN_OPTIONS, FIND_OUTPUT_ACTIONS, FORMAT_SUBCOMMANDS, IN_PLACE_OPTIONS,
    OUTPUT_OPTIONS, SHORT_OUTPUT_OPTIONS, WRITERS, WrittenOperands,
};

/// Other programs that may write files which their words name.
const SPECIAL_WRITERS: &[&str] = &["bsdtar", "dd", "find", "git", "gsed", "gtar", "sed", "tar"];
/// Programs that write files which an archive or a patch names into the directory of an option.
const UNPACKERS: &[&str] = &["7z", "7za", "7zz", "cpio", "patch", "unzip"];
/// Maximum number of programs that run one another (`uv run python -m black`).
const MAX_RUNNERS: usize = 3;

/// Returns the paths that a program writes, creates, moves or removes, as its words name them.
pub(super) fn written_paths(words: &[Word]) -> Vec<WrittenPath> {
    let words = strip_runners(words);
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let name = program_name(&program.text);
    let has = |options: &[&str]| arguments.iter().any(|word| options.contains(&word.text.as_str()));
    let in_table = |table: &[(&str, &'static [&'static str])]| {
        table.iter().find(|(known, _)| *known == name).map(|(_, options)| *options)
    };
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let mut written = output_values(name, arguments);
    if UNPACKERS.contains(&name) {
        written.extend(long_directories(arguments));
        let beneath: Vec<WrittenPath> = written.iter().map(somewhere_beneath).collect();
        written.extend(beneath);
    }
    let only_tells = in_table(IN_PLACE_OPTIONS).is_some_and(|options| !has(options))
        || in_table(DRY_RUN_OPTIONS).is_some_and(has)
        || COMPRESSORS.contains(&name)
            && (has(&["--stdout", "--to-stdout"]) || has_short_option(&texts, 'c'));
    match name {
        _ if only_tells => {}
        "sed" | "gsed" => written.extend(sed_files(arguments)),
        "git" => written.extend(git_files(arguments)),
        "tar" | "gtar" | "bsdtar" => written.extend(tar_files(arguments)),
        "dd" => written.extend(arguments.iter().filter_map(|word| value_after(word, "of="))),
        "find" | "gfind" => {
            written.extend(values_of(arguments, FIND_OUTPUT_ACTIONS));
            if has(&["-delete"]) {
                written.extend(find_starts(arguments));
            }
            // What runs in each directory may name any file there.
            if has(&["-execdir", "-okdir"]) && names_writer(texts.iter().copied()) {
                written.extend(find_starts(arguments).iter().map(somewhere_beneath));
            }
        }
        "perl" | "ruby" if has_in_place_option(arguments) => {
            written.extend(paths_of(&likely_operands(arguments, "eE"), false));
        }
        "awk" | "gawk" if has(&["inplace"]) => {
            written.extend(paths_of(likely_operands(arguments, "Fvi").get(1..).unwrap_or_default(), false));
        }
        "ar" => {
            // Of an archive that is listed or extracted, nothing is written.
            let operands = likely_operands(arguments, "");
            let adds = operands.first().is_some_and(|keys| keys.text.contains(['r', 'q', 'd', 'm', 's']));
            written.extend(paths_of(operands.get(1..2).filter(|_| adds).unwrap_or_default(), false));
        }
        // `-t` names the directory, and the operands are sources.
        "cp" | "install" | "ln" | "mv" if let Some(target) = written.first().cloned() => {
            let sources = likely_operands(arguments, "mogtS");
            written.extend(copied_into(&target, &sources));
            if name == "mv" {
                written.extend(paths_of(&sources, true));
            }
        }
        _ => match FORMAT_SUBCOMMANDS.iter().find(|(known, _)| *known == name) {
            Some((_, subcommand)) => {
                let after = arguments.iter().skip_while(|word| word.text != *subcommand).skip(1).cloned();
                let after: Vec<Word> = after.collect();
                written.extend(paths_of(&likely_operands(&after, ""), false));
            }
            None => written.extend(written_operands(name, arguments)),
        },
    }
    written
}

/// Returns true if one of the words may be a program that writes files which its words name.
pub(crate) fn names_writer<'a>(mut words: impl Iterator<Item = &'a str>) -> bool {
    words.any(|word| {
        let name = program_name(word);
        WRITERS.binary_search_by_key(&name, |writer| writer.name).is_ok()
            || SPECIAL_WRITERS.contains(&name)
            || is_interpreter(name)
    })
}

/// Returns the words of the program that others run: `npx prettier x` as `prettier x`.
fn strip_runners(words: &[Word]) -> &[Word] {
    let mut words = words;
    for _ in 0..MAX_RUNNERS {
        let texts: Vec<&str> = words.iter().take(3).map(|word| word.text.as_str()).collect();
        let skipped = match texts.as_slice() {
            ["npx" | "bunx" | "pnpx" | "uvx", ..] => 1,
            ["poetry" | "pipenv" | "uv" | "pdm" | "rye" | "hatch", "run", ..]
            | ["yarn" | "pnpm", "exec" | "dlx" | "run", ..]
            | ["npm", "exec", ..]
            | ["bundle", "exec", ..] => 2,
            ["yarn" | "pnpm", tool, ..] if IN_PLACE_OPTIONS.iter().any(|(name, _)| name == tool) => 1,
            [python, "-m", ..] if python.starts_with("python") => 2,
            _ => break,
        };
        let rest = words.get(skipped..).unwrap_or_default();
        let options = rest.iter().take_while(|word| word.text.starts_with('-')).count();
        words = rest.get(options..).unwrap_or_default();
    }
    words
}

fn path_of(word: &Word, tree: bool) -> WrittenPath {
    WrittenPath { text: word.text.clone(), known: word.known, tree }
}

fn paths_of<'a>(words: &'a [&'a Word], tree: bool) -> impl Iterator<Item = WrittenPath> + 'a {
    words.iter().filter(|word| !word.text.is_empty()).map(move |word| path_of(word, tree))
}

/// Returns what follows `prefix` in a word.
fn value_after(word: &Word, prefix: &str) -> Option<WrittenPath> {
    let value = word.text.strip_prefix(prefix).filter(|value| !value.is_empty())?;
    Some(WrittenPath { text: value.to_owned(), known: word.known, tree: false })
}

/// Returns the values of the options by which a program is told where to write.
fn output_values(name: &str, arguments: &[Word]) -> Vec<WrittenPath> {
    let tool = without_target(name);
    let short = || SHORT_OUTPUT_OPTIONS.iter().filter(|(names, _)| names.contains(&tool)).map(|(_, it)| *it);
    let mut written = Vec::new();
    for (place, word) in arguments.iter().enumerate() {
        let text = word.text.as_str();
        let before_equals = text.split('=').next().unwrap_or(text);
        let is_long = OUTPUT_OPTIONS.contains(&before_equals)
            // `protoc --cpp_out=DIR`
            || text.starts_with("--") && before_equals.ends_with("_out");
        let cluster = text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'));
        let is_short = |option: &str| match option.strip_prefix('-') {
            Some(_) => text == option,
            None => cluster.is_some_and(|cluster| cluster.ends_with(option)),
        };
        let takes_next = is_long && !text.contains('=') || short().any(is_short);
        if takes_next {
            written.extend(arguments.get(place + 1).map(|value| path_of(value, false)));
        } else if is_long {
            written.extend(value_after(word, &format!("{before_equals}=")));
        } else {
            let attached = |option: &str| value_after(word, &format!("-{}", option.trim_start_matches('-')));
            written.extend(short().find_map(attached));
        }
    }
    written
}

/// Returns the name of a compiler without its target and version: `aarch64-linux-gnu-gcc-13` as
/// `gcc`.
fn without_target(name: &str) -> &str {
    let is_version = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let unversioned = name.rsplit_once('-').filter(|(_, end)| is_version(end)).map_or(name, |(name, _)| name);
    let last = unversioned.rsplit('-').next().unwrap_or(unversioned);
    if COMPILERS.contains(&last) { last } else { name }
}

fn written_operands(name: &str, arguments: &[Word]) -> Vec<WrittenPath> {
    let found = WRITERS.binary_search_by_key(&name, |writer| writer.name);
    let Some(writer) = found.ok().and_then(|found| WRITERS.get(found)) else { return Vec::new() };
    let has = |option: &str| arguments.iter().any(|word| word.text.starts_with(option));
    let all = likely_operands(arguments, writer.valued);
    // A mode may look like an option: `chmod -x FILE`.
    let is_mode = |word: &Word| {
        word.text.strip_prefix('-').is_some_and(|mode| mode.starts_with(['r', 'w', 'x', 'X', 's', 't']))
    };
    let which = match name {
        "chmod" if arguments.iter().any(is_mode) => WrittenOperands::EveryTree,
        "install" if has("-d") || has("--directory") => WrittenOperands::Every,
        "chmod" | "chown" | "chgrp" if has("--reference") => WrittenOperands::EveryTree,
        _ => writer.which,
    };
    let tree = matches!(which, WrittenOperands::EveryTree | WrittenOperands::TreesAfterFirst);
    let chosen = match which {
        WrittenOperands::Every | WrittenOperands::EveryTree => all.as_slice(),
        WrittenOperands::First => all.get(..1).unwrap_or_default(),
        WrittenOperands::TreesAfterFirst => all.get(1..).unwrap_or_default(),
        WrittenOperands::Second => all.get(1..2).unwrap_or_default(),
        WrittenOperands::Last => all.get(all.len().saturating_sub(1)..).unwrap_or_default(),
    };
    let mut written: Vec<WrittenPath> = paths_of(chosen, tree || has("--delete")).collect();
    if matches!(name, "cp" | "mv" | "ln" | "install" | "rsync")
        && which != WrittenOperands::Every
        && let Some((target, sources)) = all.split_last()
    {
        let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
        let target = path_of(target, false);
        let name_of = program_name(&target.text);
        let is_file = sources.len() == 1 && name_of.contains('.') && !matches!(name_of, "." | "..");
        if has_short_option(&texts, 'T') && name != "rsync" || has("--no-target-directory") {
            written.push(WrittenPath { tree: true, ..target });
        } else if name == "rsync" {
            let contents = sources.iter().any(|source| source.text.ends_with('/'));
            written.extend(contents.then(|| WrittenPath { tree: true, ..target.clone() }));
            let whole: Vec<&Word> =
                sources.iter().copied().filter(|source| !is_file && !source.text.ends_with('/')).collect();
            written.extend(copied_into(&target, &whole));
        } else if !is_file {
            written.extend(copied_into(&target, sources));
        }
    }
    if COMPRESSORS.contains(&name) {
        let restored = all.iter().filter_map(|word| {
            let (text, suffix) = word.text.rsplit_once('.')?;
            let is_known = matches!(suffix, "gz" | "bz2" | "xz" | "zst" | "lzma");
            is_known.then(|| WrittenPath { text: text.to_owned(), known: word.known, tree: false })
        });
        written.extend(restored);
    }
    written
}

/// Returns the files that copies of the sources get in a directory.
fn copied_into<'a>(
    directory: &'a WrittenPath,
    sources: &'a [&'a Word],
) -> impl Iterator<Item = WrittenPath> + 'a {
    // A directory is copied with what is in it; of a pattern, the names are not known.
    sources.iter().filter(|source| source.known).map(move |source| WrittenPath {
        text: format!(
            "{}/{}",
            directory.text.trim_end_matches('/'),
            program_name(source.text.trim_end_matches('/'))
        ),
        known: directory.known,
        tree: true,
    })
}

/// Returns true for `-i` of `perl` and `ruby`, alone, in a cluster or with a suffix.
fn has_in_place_option(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let cluster = word.text.strip_prefix('-').and_then(|cluster| cluster.split(['.', 'e', 'E']).next());
        cluster.is_some_and(|cluster| cluster.contains('i') && cluster.len() <= 4)
    })
}

/// Returns the files that `sed -i` changes, and those that a script of `sed` writes.
fn sed_files(arguments: &[Word]) -> Vec<WrittenPath> {
    let is_short = |text: &str| text.starts_with('-') && !text.starts_with("--");
    let has = |letters: &[char], long: &str| {
        arguments.iter().any(|word| {
            let option = word.text.split(['=', '.']).next().unwrap_or_default();
            is_short(option) && option.len() <= 5 && option.contains(letters) || option == long
        })
    };
    let all = likely_operands(arguments, "efl");
    let has_script = has(&['e', 'f'], "--expression") || has(&[], "--file");
    let mut operands = all.into_iter().filter(|word| !word.text.is_empty());
    let first = if has_script { None } else { operands.next() };
    let after_option = arguments.windows(2).filter_map(|pair| match pair {
        [option, script] => {
            let ends = is_short(&option.text) && option.text.ends_with('e') || option.text == "--expression";
            ends.then_some(script)
        }
        _ => None,
    });
    let scripts = after_option.chain(first).map(|word| (word, word.text.as_str()));
    let joined = arguments.iter().filter_map(|word| Some((word, word.text.strip_prefix("--expression=")?)));
    let in_scripts = scripts.chain(joined).flat_map(|(word, script)| {
        // A script that is not known stands in its quotes.
        let files = sed::written_files(script.trim_matches('"'));
        files.into_iter().map(|file| WrittenPath { text: file.to_owned(), known: word.known, tree: false })
    });
    let mut written: Vec<WrittenPath> = in_scripts.collect();
    // `-i ''` is how another `sed` is told that no copy is to be kept.
    if has(&['i'], "--in-place") {
        written.extend(operands.map(|word| path_of(word, false)));
    }
    written
}

/// Returns what `tar` extracts, and the archive that it makes.
fn tar_files(arguments: &[Word]) -> Vec<WrittenPath> {
    let (mut extracts, mut has_members, mut archive) = (false, false, None);
    let (mut directory, mut extracted) = (CurrentDirectory::default(), Vec::new());
    let enter = |value: &Word, directory: &mut CurrentDirectory| {
        directory.enter(value);
        directory.resolve_written(WrittenPath { known: true, ..WrittenPath::default() })
    };
    let mut rest = arguments.iter().enumerate();
    while let Some((place, word)) = rest.next() {
        let text = word.text.as_str();
        let option = text.split('=').next().unwrap_or(text);
        let cluster = match text.strip_prefix('-') {
            Some(long) if long.starts_with('-') => {
                let valued = matches!(option, "--directory" | "--file" | "--exclude");
                let value = match text.split_once('=') {
                    Some((_, value)) => Some(Word { text: value.to_owned(), ..word.clone() }),
                    None if valued => rest.next().map(|(_, value)| value.clone()),
                    None => None,
                };
                match (option, value) {
                    ("--extract" | "--get", _) => extracts = true,
                    ("--directory", Some(value)) => extracted.push(enter(&value, &mut directory)),
                    ("--file", Some(value)) => archive = Some(path_of(&value, false)),
                    _ => {}
                }
                continue;
            }
            Some(cluster) => cluster,
            None if place == 0 => text,
            None => {
                has_members = true;
                extracted.push(directory.resolve_written(path_of(word, true)));
                continue;
            }
        };
        extracts |= cluster.contains('x');
        for letter in cluster.chars() {
            match letter {
                'f' => archive = rest.next().map(|(_, value)| path_of(value, false)),
                'C' => extracted.extend(rest.next().map(|(_, value)| enter(value, &mut directory))),
                _ => {}
            }
        }
    }
    // Which files are in the archive is not known.
    if let (true, false, Some(place)) = (extracts, has_members, extracted.last()) {
        extracted.push(somewhere_beneath(place));
    }
    if extracts { extracted } else { archive.into_iter().collect() }
}

/// Returns the values of `--directory`.
fn long_directories(arguments: &[Word]) -> Vec<WrittenPath> {
    let attached = arguments.iter().filter_map(|word| value_after(word, "--directory="));
    values_of(arguments, &["--directory"]).into_iter().chain(attached).collect()
}

/// Returns the unknown paths beneath a directory into which a program unpacks files.
fn somewhere_beneath(directory: &WrittenPath) -> WrittenPath {
    let text = format!("{}/**", directory.text.trim_end_matches('/'));
    WrittenPath { text, known: false, tree: false }
}

/// Returns the words after these options.
fn values_of(arguments: &[Word], options: &[&str]) -> Vec<WrittenPath> {
    let pairs = arguments.windows(2).filter_map(|pair| match pair {
        [option, value] if options.contains(&option.text.as_str()) => Some(path_of(value, false)),
        _ => None,
    });
    pairs.collect()
}

/// Returns the places where `find -delete` begins; which of the files there it removes is unknown.
fn find_starts(arguments: &[Word]) -> Vec<WrittenPath> {
    let starts = arguments.iter().take_while(|word| !word.text.starts_with(['-', '(', '!']));
    let start = |word: &Word| match word.text.as_str() {
        "." | "./" => WrittenPath::default(),
        _ => path_of(word, true),
    };
    starts.map(start).collect()
}

/// Returns the files that `git` changes in the work tree and its words name.
fn git_files(arguments: &[Word]) -> Vec<WrittenPath> {
    let mut rest = arguments.iter().enumerate();
    let (place, command) = loop {
        match rest.next() {
            Some((_, word)) if matches!(word.text.as_str(), "-C" | "-c" | "--git-dir" | "--work-tree") => {
                rest.next();
            }
            Some((_, word)) if word.text.starts_with('-') => {}
            Some(found) => break found,
            None => return Vec::new(),
        }
    };
    let arguments = arguments.get(place + 1..).unwrap_or_default();
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let has = |names: &[&str]| texts.iter().any(|text| names.contains(text));
    let end_of_options = arguments.iter().position(|word| word.text == "--");
    let after_end = end_of_options.map_or(&[] as &[Word], |end| arguments.get(end + 1..).unwrap_or_default());
    let named: Vec<&Word> = match command.text.as_str() {
        _ if has(&["--dry-run"]) => Vec::new(),
        "clean" | "mv" | "rm" if has_short_option(&texts, 'n') => Vec::new(),
        "rm" if has(&["--cached"]) => Vec::new(),
        "restore" if has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]) => Vec::new(),
        "checkout" if has(&["-b", "-B", "--orphan", "--detach"]) => Vec::new(),
        "checkout" | "stash" if end_of_options.is_some() => after_end.iter().collect(),
        "stash" => match likely_operands(arguments, "m").as_slice() {
            [push, files @ ..] if push.text == "push" => files.to_vec(),
            _ => Vec::new(),
        },
        "rm" | "restore" | "mv" | "checkout" | "clean" | "checkout-index" => likely_operands(arguments, "s"),
        "merge-file" => likely_operands(arguments, "L").into_iter().take(1).collect(),
        "clone" | "worktree" => likely_operands(arguments, "bBo").into_iter().skip(1).collect(),
        "apply" => {
            let directories = long_directories(arguments);
            let beneath: Vec<WrittenPath> = directories.iter().map(somewhere_beneath).collect();
            return directories.into_iter().chain(beneath).collect();
        }
        _ => Vec::new(),
    };
    // A name without `--` may be a branch.
    let is_certain = end_of_options.is_some() || command.text != "checkout" || named.len() > 1;
    let beneath = |word: &&Word| {
        let path = word.text.trim_start_matches(":/");
        let path = path.strip_prefix(":(").and_then(|magic| magic.split_once(')')).map_or(path, |(_, it)| it);
        // Git expands patterns itself. What `git checkout .` brings back is the repository's.
        let known = word.known && !path.contains(['*', '?', '[']) && is_certain;
        let tree = path != "." || matches!(command.text.as_str(), "mv" | "rm");
        WrittenPath { text: path.to_owned(), known, tree }
    };
    named.iter().map(beneath).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::analyse_command;

    /// Returns the written paths of a command's parts, with `/**` after a tree and `?` after one
    /// that is not known.
    fn written(command: &str) -> Vec<String> {
        let parts = analyse_command(command, &[]).parts;
        let show = |path: &WrittenPath| {
            let tree = if path.tree { "/**" } else { "" };
            let unknown = if path.known { "" } else { "?" };
            format!("{}{tree}{unknown}", path.text)
        };
        parts.iter().flat_map(|part| part.written.iter().map(show)).collect()
    }

    #[test]
    fn tables_are_sorted() {
        assert!(WRITERS.is_sorted_by_key(|writer| writer.name));
    }

    fn check(cases: &[(&str, &[&str])]) {
        for (command, expected) in cases {
            assert_eq!(written(command), *expected, "{command}");
        }
    }

    #[test]
    fn copies_and_changes_of_files() {
        check(&[
            ("cat vendor/a", &[]),
            ("cp vendor/a b.c", &["b.c"]),
            ("cp new/schema.sql db", &["db", "db/schema.sql/**"]),
            ("cp -r vendor/a vendor/b lib", &["lib", "lib/a/**", "lib/b/**"]),
            ("cp vendor/a .", &["", "a/**"]),
            ("cp --suffix .old a vendor/b.c", &["vendor/b.c"]),
            ("cp -t vendor x/a b", &["vendor", "vendor/a/**", "vendor/b/**"]),
            ("mv --target-directory=vendor x/a", &["vendor", "vendor/a/**", "x/a/**"]),
            ("install -m 644 -t vendor x/a", &["vendor", "vendor/a/**"]),
            ("cp -r x/a/ vendor", &["vendor", "vendor/a/**"]),
            ("cp -rT x/a vendor", &["vendor", "vendor/**"]),
            ("rsync -a x/a/ vendor", &["vendor", "vendor/**"]),
            ("rsync -a x/a vendor", &["vendor", "vendor/a/**"]),
            ("install -m 644 a vendor/b.c", &["vendor/b.c"]),
            ("install a vendor/b.c -m 644", &["vendor/b.c"]),
            ("install -d vendor/x build/y", &["vendor/x", "build/y"]),
            ("rsync -a ./ /tmp/out --exclude vendor/", &["/tmp/out", "/tmp/out/**"]),
            ("mv a b.c", &["a/**", "b.c/**"]),
            ("rm -rf vendor", &["vendor/**"]),
            ("rm -- -x", &["-x/**"]),
            ("rm -rf .", &["/**"]),
            ("chmod 600 a b", &["a/**", "b/**"]),
            ("chmod --reference=x a", &["a/**"]),
            ("chmod -x vendor/a", &["vendor/a/**"]),
            ("chmod -R u+x vendor", &["vendor/**"]),
            ("touch -r vendor/a b", &["b"]),
            ("split -l 9 vendor/a b", &["b"]),
            ("uniq vendor/a > b", &["b"]),
            ("patch -p1 -i vendor/x.patch", &[]),
            ("patch a vendor/x.patch", &["a"]),
            ("mkfifo vendor/a", &["vendor/a"]),
            ("nano vendor/a", &["vendor/a"]),
            ("find vendor -name x", &[]),
            ("find vendor -name x -delete", &["vendor/**"]),
            ("find . -name x -delete", &["?"]),
            ("find . -name x -fprint a -fprintf b %p -fls c -fprint0 d", &["a", "b", "c", "d"]),
            ("rm vendor/*", &["vendor/*/**?"]),
        ]);
    }

    #[test]
    fn scripts_that_change_files() {
        check(&[
            ("sed -n 1p a", &[]),
            ("sed -i s/a/b/ a b", &["a", "b"]),
            ("sed -n 'w vendor/a' b", &["vendor/a"]),
            ("sed -n -e '/x/,$W a' -ne 's/a/b/gw c' b", &["a", "c"]),
            ("sed --expression='/x/{s/a/b/w a b\np}' c", &["a b"]),
            ("sed -i 's/a/b/w c' d", &["c", "d"]),
            ("sed \"s/a/b/w $F\" d", &["$F?"]),
            ("sed -n '/w a/p' b", &[]),
            ("sed -i.bak -e s/a/b/ a", &["a"]),
            ("sed -i '' s/a/b/ a", &["a"]),
            ("sed -ri '/vendor/d' a", &["a"]),
            ("sed -i '/vendor/s/[^/]*$/x/' a", &["a"]),
            ("perl -pi -e 's/a/b/' vendor/a", &["vendor/a"]),
            ("perl -pe 's/a/b/' vendor/a", &[]),
            ("awk -i inplace '{ print }' vendor/a", &["vendor/a"]),
            ("gawk -i inplace '{ print }' vendor/a", &["vendor/a"]),
        ]);
    }

    #[test]
    fn output_options() {
        check(&[
            ("echo x > vendor/a", &["vendor/a"]),
            ("tee -a vendor/log", &["vendor/log"]),
            ("sort -o vendor/a b", &["vendor/a"]),
            ("sort --output=vendor/a b", &["vendor/a"]),
            ("shuf -n3 -ovendor/a b", &["vendor/a"]),
            ("gpg -o vendor/a -d b", &["vendor/a"]),
            ("wget -q -O vendor/a https://example.com", &["vendor/a"]),
            ("wget -o vendor/log https://example.com/x", &["vendor/log"]),
            ("curl -s -D vendor/a -c vendor/b https://example.com", &["vendor/a", "vendor/b"]),
            ("openssl req -x509 -keyout vendor/a -out vendor/b", &["vendor/a", "vendor/b"]),
            ("gcc-13 a.c -ovendor/b", &["vendor/b"]),
            ("arm-none-eabi-ld a.o -o vendor/b", &["vendor/b"]),
            ("ld.lld a.o -o vendor/b", &["vendor/b"]),
            ("gfortran a.f90 -o vendor/b", &["vendor/b"]),
            ("javac -d vendor A.java", &["vendor"]),
            ("cmake -S . -B vendor", &["vendor"]),
            ("objcopy -O binary a vendor/b", &["vendor/b"]),
            ("ffmpeg -i a vendor/b", &["vendor/b"]),
            ("strace -o vendor/log ls", &["vendor/log"]),
            ("dd if=a of=vendor/b", &["vendor/b"]),
            ("curl -sSfo vendor/x https://example.com", &["vendor/x"]),
            ("gcc -O2 -flto vendor/a.c -o b", &["b"]),
            ("protoc --cpp_out=vendor x.proto", &["vendor"]),
            ("tsc a.ts --outDir vendor", &["vendor"]),
        ]);
    }

    #[test]
    fn archives() {
        check(&[
            ("gunzip vendor/a.gz", &["vendor/a.gz", "vendor/a"]),
            ("gzip -c vendor/a > b", &["b"]),
            ("xz -dc vendor/a.xz > b", &["b"]),
            ("ar t vendor/lib.a", &[]),
            ("ar rcs vendor/lib.a b.o", &["vendor/lib.a"]),
            ("tar -xzf a.tgz -C vendor", &["vendor", "vendor/**?"]),
            ("tar xf a.tar vendor/a", &["vendor/a/**"]),
            ("tar -xf a.tar -C dist a", &["dist", "dist/a/**"]),
            ("tar xfC a.tar dist -C lib a", &["dist", "dist/lib", "dist/lib/a/**"]),
            ("tar -x --directory=dist -f a.tar b", &["dist", "dist/b/**"]),
            ("cd x && tar -cf b.tar -C dist a", &["x/b.tar"]),
            ("tar -czf b.tgz -C vendor .", &["b.tgz"]),
            ("tar -cf vendor/b.tar a", &["vendor/b.tar"]),
        ]);
    }

    #[test]
    fn git_commands() {
        check(&[
            ("git checkout -- vendor/a", &["vendor/a/**"]),
            ("git checkout vendor/a", &["vendor/a/**?"]),
            ("git checkout -b vendor/a", &[]),
            ("git checkout .", &["?"]),
            ("cd vendor && git checkout -- .", &["vendor"]),
            ("git -C vendor rm a", &["vendor/a/**"]),
            ("git -C dist -C ../lib rm a", &["lib/a/**"]),
            ("git --work-tree=dist checkout -- a", &["dist/a/**"]),
            ("git -C \"$D\" rm a", &["a/**?"]),
            ("git restore --staged vendor/a", &[]),
            ("git rm --cached vendor/a", &[]),
            ("git clean -xdn vendor", &[]),
            ("git stash push -- vendor/a", &["vendor/a/**"]),
            ("git stash push -m x vendor/a", &["vendor/a/**"]),
            ("git rm ':(top)vendor/a'", &["vendor/a/**"]),
            ("git rm -rf .", &["/**"]),
            ("git diff vendor", &[]),
        ]);
    }

    #[test]
    fn formatters() {
        check(&[
            ("prettier --check vendor", &[]),
            ("npx prettier --write vendor", &["vendor"]),
            ("yarn prettier -w vendor/a", &["vendor/a"]),
            ("biome format vendor/a", &[]),
            ("biome check --write vendor/a", &["check", "vendor/a"]),
            ("rubocop vendor/a", &[]),
            ("rubocop -a vendor/a", &["vendor/a"]),
            ("stylua vendor/a", &["vendor/a"]),
            ("gofmt -l vendor", &[]),
            ("gofmt -w vendor", &["vendor"]),
            ("black --check vendor", &[]),
            ("black . --exclude vendor", &[""]),
            ("python3 -m black vendor", &["vendor"]),
            ("cargo fmt -- vendor/a.rs", &["vendor/a.rs"]),
            ("ruff check --fix vendor", &["check", "vendor"]),
        ]);
    }

    #[test]
    fn wrappers_and_directories() {
        check(&[
            ("cd vendor && echo x >> a", &["vendor/a"]),
            ("cd vendor && rm a ../b", &["vendor/a/**", "b/**"]),
            ("cd \"$D\" && rm a", &["a/**?"]),
            ("env A=1 rm vendor/a", &["vendor/a/**"]),
            ("env -C dist rm a", &["dist/a/**"]),
            ("env -iC dist rm a && rm b", &["dist/a/**", "b/**"]),
            ("env --chdir=dist sh -c 'cd x; rm a ../b'", &["dist/x/a/**", "dist/b/**"]),
            ("env -Cdist rm a", &["dist/a/**"]),
            ("env -C \"$D\" rm a", &["a/**?"]),
            ("sudo -D dist rm a", &["dist/a/**"]),
            ("eval 'cd dist' && rm a", &["dist/a/**"]),
            ("command cd dist && rm a", &["dist/a/**"]),
            ("sh -c 'rm vendor/a'", &["vendor/a/**"]),
        ]);
    }
}
