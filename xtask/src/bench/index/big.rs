//! A tree of the Linux kernel's size, made of real files whose names are changed from copy to copy.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// Files and bytes of the tree.
const FILES: usize = 80_000;
const BYTES: usize = 1_300_000_000;
/// Files that are taken: what is longer or shorter is data, or nothing.
const SIZES: std::ops::RangeInclusive<u64> = 200..=300_000;
/// One of so many compound names is another one in each copy.
const CHANGED: u64 = 3;
/// Copies beyond which a folder's files don't make such a tree.
const MAX_COPIES: usize = 20_000;

/// Fills `to`, which must not be there yet.
pub(super) fn make(from: &[PathBuf], to: &Path) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for tree in from {
        gather(tree, tree, &mut files)?;
    }
    ensure!(!files.is_empty(), "there are no files to make a large tree of");
    let (mut count, mut bytes) = (0_usize, 0_usize);
    'copies: for copy in 0..MAX_COPIES {
        for (path, relative) in &files {
            if count >= FILES {
                break 'copies;
            }
            let Ok(text) = std::fs::read_to_string(path) else { continue };
            // The mean is to come out: what would lead away from it is left to another copy.
            let (mean, short) = (BYTES / FILES, bytes < count * (BYTES / FILES));
            if (text.len() < mean) == short {
                continue;
            }
            let changed = rename(&text, copy as u64);
            let place = to.join(format!("part{copy}")).join(relative);
            std::fs::create_dir_all(place.parent().unwrap_or(to))?;
            std::fs::write(&place, &changed).with_context(|| place.display().to_string())?;
            count += 1;
            bytes += changed.len();
        }
    }
    println!("made a tree of {count} files, {:.2} GB", bytes as f64 / 1e9);
    ensure!(count == FILES, "the files given don't make a tree of {FILES}");
    Ok(())
}

/// All files beneath a folder, but for what git keeps, with where they are in it.
fn gather(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, PathBuf)>) -> anyhow::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (kind, path, name) = (entry.file_type()?, entry.path(), entry.file_name());
        if kind.is_dir() && name != ".git" && name != "target" {
            gather(root, &path, files)?;
        } else if kind.is_file() && SIZES.contains(&entry.metadata()?.len()) && name != ".gitignore" {
            let within = root.file_name().unwrap_or_default();
            files.push((path.clone(), Path::new(within).join(path.strip_prefix(root)?)));
        }
    }
    Ok(())
}

/// Gives some compound names (`like_this`, `likeThis`) a part that tells the copy: keywords aren't
/// compound.
fn rename(text: &str, copy: u64) -> String {
    let mut changed = String::with_capacity(text.len() + text.len() / 16);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        changed.push_str(before);
        changed.push_str(word);
        if copy > 0 && is_compound(word) && hash(word, copy).is_multiple_of(CHANGED) {
            let mut number = hash(word, copy) >> 8;
            changed.push('_');
            for _ in 0..3 {
                changed.push(char::from(b'a' + (number % 26) as u8));
                number /= 26;
            }
        }
        rest = after;
    }
    changed.push_str(rest);
    changed
}

fn is_compound(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && (word.contains('_')
            || word.chars().skip(1).any(|c| c.is_ascii_uppercase())
                && word.chars().any(|c| c.is_ascii_lowercase()))
}

/// FNV-1a.
fn hash(word: &str, copy: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ copy.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)) >> 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_differ_and_are_alike() {
        let text = "fn read_file(fileName: &str) -> bool { let line_number = 1; read_file(fileName) }";
        assert_eq!(rename(text, 0), text);
        let copies: std::collections::BTreeSet<String> = (0..20).map(|copy| rename(text, copy)).collect();
        assert!(copies.len() > 10, "{copies:?}");
        for copy in copies {
            // A name is the same one wherever it stands, and keywords stay.
            assert!(copy.starts_with("fn read_file") && copy.contains(") -> bool { let line_number"));
            let name = copy.trim_start_matches("fn ").split('(').next().unwrap();
            assert_eq!(copy.matches(&format!("{name}(")).count(), 2, "{copy}");
        }
    }
}
