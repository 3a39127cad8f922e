//! The repository map: a tree of paths that fits a budget.

use std::collections::{BinaryHeap, HashMap};
use std::fmt::Write as _;

use journeyman_protocol::{RelPath, TokenCounter as _, Tokens};
use journeyman_workspace::Listing;

use crate::TokenEstimator;
use crate::words::TaskVocabulary;

/// Default maximum tokens of the map: about 150 directories or 500 names.
pub(crate) const DEFAULT_BUDGET: Tokens = Tokens(1_500);
/// A directory shows at most this many of its files; the rest is a number.
const MAX_NAMES_PER_DIRECTORY: usize = 60;
/// Score of the file that an index ranked first; a word of the task in a file's name scores one.
const FOUND_SCORE: f64 = 3.0;
/// A longer name is shortened, in bytes: names of content hashes tell nothing.
const MAX_NAME_BYTES: usize = 80;

/// Criteria of files that are shown before the rest.
#[derive(Default)]
pub(crate) struct NearnessCriteria<'a> {
    /// Files with these words in their names.
    pub(crate) words: TaskVocabulary,
    /// Files by their paths, with how much is for them: 0 to 1.
    pub(crate) files: HashMap<&'a [u8], f64>,
}

impl NearnessCriteria<'_> {
    /// Returns a file's score. The best one that was found counts as much as three words.
    fn score_file(&self, path: &[u8], name: &[u8]) -> u32 {
        let found =
            self.files.get(path).map_or(0, |share| (share.clamp(0.0, 1.0) * FOUND_SCORE).ceil() as u32);
        self.words.score(name) + found
    }
}

/// A tree of the listing's paths, a line a directory, for a model that knows nothing of the
/// repository yet.
///
/// It shows as much as fits `budget`, the top level first; other directories stay a line with
/// the number of files beneath. What is near to the task comes
/// before the rest. The same arguments give the same text. Takes time about
/// linear in the listing.
pub(crate) fn repository_map(listing: &Listing, budget: Tokens, near: &NearnessCriteria<'_>) -> String {
    if listing.paths.is_empty() {
        return String::new();
    }
    let mut order: Vec<&RelPath> = listing.paths.iter().collect();
    if !order.is_sorted() {
        order.sort();
    }
    let mut tree = DirectoryTree::from_paths(&order, near);
    tree.expand(budget.0);
    tree.render(listing.truncated)
}

/// A directory. Its files are indexes into [`Tree::files`], its sub-directories are linked by
/// index.
#[derive(Default)]
struct Directory<'a> {
    /// From the root, with a `/` at its end; empty for the root.
    path: &'a [u8],
    parent: usize,
    children: Vec<usize>,
    files: Vec<MapFile<'a>>,
    /// Files at any depth beneath.
    total: usize,
    /// The highest score of the directory and everything beneath.
    score: u32,
    open: Option<OpenDirectory>,
}

/// The shown entries of an open directory.
struct OpenDirectory {
    /// The number of its files.
    names: usize,
    /// Indices of its directories, in their order.
    children: Vec<usize>,
}

struct MapFile<'a> {
    name: &'a [u8],
    score: u32,
}

struct DirectoryTree<'a> {
    directories: Vec<Directory<'a>>,
}

impl<'a> DirectoryTree<'a> {
    /// Reads paths in the order of their bytes, in which all that is beneath a directory stands
    /// together.
    fn from_paths(paths: &[&'a RelPath], near: &NearnessCriteria<'_>) -> Self {
        let mut tree = Self { directories: vec![Directory::default()] };
        let mut current = 0;
        for path in paths {
            let bytes = path.as_bytes();
            while !bytes.starts_with(tree.directory(current).map_or(b"", |directory| directory.path)) {
                current = tree.directory(current).map_or(0, |directory| directory.parent);
            }
            let mut from = tree.directory(current).map_or(0, |directory| directory.path.len());
            while let Some(slash) = bytes.get(from..).and_then(|rest| rest.iter().position(|b| *b == b'/')) {
                let name = bytes.get(from..from + slash).unwrap_or_default();
                from += slash + 1;
                current = tree.add_directory(
                    current,
                    bytes.get(..from).unwrap_or_default(),
                    near.words.score(name),
                );
            }
            let name = bytes.get(from..).unwrap_or_default();
            let score = near.score_file(bytes, name);
            if let Some(directory) = tree.directories.get_mut(current) {
                directory.files.push(MapFile { name, score });
                directory.total += 1;
                directory.score = directory.score.max(score);
            }
        }
        // Children come after their parents, so that one walk backwards adds everything up.
        for index in (1..tree.directories.len()).rev() {
            let Some((parent, total, score)) = tree.directory(index).map(|d| (d.parent, d.total, d.score))
            else {
                continue;
            };
            if let Some(parent) = tree.directories.get_mut(parent) {
                parent.total += total;
                parent.score = parent.score.max(score);
            }
        }
        tree
    }

    fn directory(&self, index: usize) -> Option<&Directory<'a>> {
        self.directories.get(index)
    }

    fn add_directory(&mut self, parent: usize, path: &'a [u8], score: u32) -> usize {
        let index = self.directories.len();
        self.directories.push(Directory { path, parent, score, ..Directory::default() });
        if let Some(parent) = self.directories.get_mut(parent) {
            parent.children.push(index);
        }
        index
    }

    /// Opens directories, nearest to the task and to the top first, as long as the budget lasts.
    fn expand(&mut self, budget: u64) {
        let mut left = budget;
        let mut next = BinaryHeap::new();
        next.push((u32::MAX, std::cmp::Reverse((0_usize, 0_usize))));
        while let Some((_, std::cmp::Reverse((depth, index)))) = next.pop() {
            let Some(directory) = self.directory(index) else { continue };
            // Its closed line is paid for already; the open one repeats the path and adds names.
            let (children, children_cost) = self.children_within(directory, left);
            let mut names = directory.files.len().min(MAX_NAMES_PER_DIRECTORY);
            while names > 0 && children_cost + self.names_cost(index, names) > left {
                names /= 2;
            }
            if names == 0 && children.is_empty() {
                continue;
            }
            left = left.saturating_sub(children_cost + self.names_cost(index, names));
            if index > 0 && directory.files.is_empty() && children.len() == directory.children.len() {
                left += self.closed_cost(index);
            }
            for child in &children {
                let score = self.directory(*child).map_or(0, |directory| directory.score);
                next.push((score, std::cmp::Reverse((depth + 1, *child))));
            }
            if let Some(directory) = self.directories.get_mut(index) {
                directory.open = Some(OpenDirectory { names, children });
            }
        }
    }

    /// The sub-directories that fit in two thirds of the room, nearest to the task first, in their
    /// order, and what their lines cost. The rest is for names, and for opening one of them.
    fn children_within(&self, directory: &Directory<'a>, left: u64) -> (Vec<usize>, u64) {
        let room = left * 2 / 3;
        let mut by_score = directory.children.clone();
        by_score
            .sort_by_key(|child| std::cmp::Reverse(self.directory(*child).map_or(0, |child| child.score)));
        let mut cost = 0;
        let mut fitting: Vec<usize> = by_score
            .into_iter()
            .take_while(|child| {
                cost += self.closed_cost(*child);
                cost <= room
            })
            .collect();
        fitting.sort_unstable();
        let cost = fitting.iter().map(|child| self.closed_cost(*child)).sum();
        (fitting, cost)
    }

    fn closed_cost(&self, index: usize) -> u64 {
        // ` (12 files)` and the line break are four tokens.
        self.directory(index)
            .map_or(0, |directory| TokenEstimator.count(&printable_name(directory.path)).0 + 4)
    }

    fn names_cost(&self, index: usize, names: usize) -> u64 {
        let Some(directory) = self.directory(index) else { return 0 };
        let more = if names < directory.files.len() { 4 } else { 0 };
        shown_files(directory, names)
            .map(|file| TokenEstimator.count(&printable_name(file.name)).0 + 1)
            .sum::<u64>()
            + more
    }

    fn render(&self, truncated: bool) -> String {
        let mut out = String::new();
        self.push_lines(0, &mut out);
        if truncated {
            out.push_str("… the list was cut off: there are more files\n");
        }
        out
    }

    fn push_lines(&self, index: usize, out: &mut String) {
        // Depth is bounded by the length of a path; a stack of our own keeps hostile trees off the
        // thread's.
        let mut stack = vec![index];
        while let Some(index) = stack.pop() {
            let Some(directory) = self.directory(index) else { continue };
            let path = if directory.path.is_empty() { "./".into() } else { printable_name(directory.path) };
            let Some(open) = &directory.open else {
                let plural = if directory.total == 1 { "" } else { "s" };
                let _infallible = writeln!(out, "{path} ({} file{plural})", directory.total);
                continue;
            };
            stack.extend(open.children.iter().rev());
            let hidden = directory.children.len() - open.children.len();
            if directory.files.is_empty() && hidden == 0 {
                // A directory with only directories in it shows in their paths.
                continue;
            }
            out.push_str(&path);
            for file in shown_files(directory, open.names) {
                out.push(' ');
                out.push_str(&printable_name(file.name));
            }
            let unnamed = directory.files.len() - open.names;
            for (count, what) in [(unnamed, "files"), (hidden, "directories")] {
                if count > 0 {
                    let _infallible = write!(out, " … +{count} {what}");
                }
            }
            out.push('\n');
        }
    }
}

/// The files of a directory that are shown: the nearest to the task, in their order.
fn shown_files<'d, 'a>(directory: &'d Directory<'a>, names: usize) -> impl Iterator<Item = &'d MapFile<'a>> {
    let mut least = 0;
    let mut ties = names;
    if names < directory.files.len() {
        let mut scores: Vec<u32> = directory.files.iter().map(|file| file.score).collect();
        scores.sort_unstable_by(|one, other| other.cmp(one));
        least = names.checked_sub(1).and_then(|last| scores.get(last)).copied().unwrap_or(u32::MAX);
        ties = scores.iter().take(names).filter(|score| **score == least).count();
    }
    let mut left = names;
    directory.files.iter().filter(move |file| {
        let tie = file.score == least;
        let take = left > 0 && (file.score > least || (tie && ties > 0));
        if take {
            left -= 1;
            ties -= usize::from(tie);
        }
        take
    })
}

/// A name for people and models: blanks and what isn't text are escaped.
fn printable_name(name: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(name)
            if name.len() <= MAX_NAME_BYTES
                && !name.contains(|c: char| c.is_control() || c.is_whitespace()) =>
        {
            name.into()
        }
        _ => {
            let name = String::from_utf8_lossy(name);
            let whole = name.len() <= MAX_NAME_BYTES || name.ends_with('/');
            let kept = if whole {
                &*name
            } else {
                name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or("")
            };
            let mut out: String = kept
                .chars()
                .flat_map(|c| {
                    let escape = c.is_control();
                    escape.then(|| c.escape_default()).into_iter().flatten().chain((!escape).then_some(c))
                })
                .collect();
            if out.contains(char::is_whitespace) {
                out = format!("\"{out}\"");
            }
            if !whole {
                out.push('…');
            }
            out.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listing(paths: &[&str]) -> Listing {
        let mut paths: Vec<RelPath> = paths.iter().map(|path| RelPath::parse(path).unwrap()).collect();
        paths.sort();
        Listing { paths, truncated: false }
    }

    #[test]
    fn a_small_repository_is_shown_whole() {
        let listing = listing(&[
            "Cargo.toml",
            "README.md",
            "src/lib.rs",
            "src/a/b/c.rs",
            "src/a-b.rs",
            "my docs/x y.md",
        ]);
        assert_eq!(
            repository_map(&listing, DEFAULT_BUDGET, &NearnessCriteria::default()),
            "./ Cargo.toml README.md\n\"my docs/\" \"x y.md\"\nsrc/ a-b.rs lib.rs\nsrc/a/b/ c.rs\n"
        );
        assert_eq!(repository_map(&Listing::default(), DEFAULT_BUDGET, &NearnessCriteria::default()), "");
    }

    #[test]
    fn what_does_not_fit_is_a_number() {
        let many: Vec<String> = (0..3_000).map(|n| format!("gen/part{}/item{n}.rs", n % 40)).collect();
        let mut paths: Vec<&str> = many.iter().map(String::as_str).collect();
        paths.extend(["Cargo.toml", "src/lib.rs"]);
        let map = repository_map(&listing(&paths), Tokens(600), &NearnessCriteria::default());
        assert!(map.contains("./ Cargo.toml\n") && map.contains("src/ lib.rs\n"), "{map}");
        assert!(map.contains("gen/part7/ (75 files)\n"), "{map}");
        assert!(TokenEstimator.count(&map) <= Tokens(660), "{}", TokenEstimator.count(&map));
    }

    #[test]
    fn what_the_task_names_comes_first() {
        let many: Vec<String> = (0..500).map(|n| format!("pkg{}/mod{n}/x.rs", n % 50)).collect();
        let mut paths: Vec<&str> = many.iter().map(String::as_str).collect();
        paths.extend(["deep/er/still/invoice_total.rs", "deep/er/still/other.rs"]);
        let listing = listing(&paths);
        let words = TaskVocabulary::from_text("InvoiceTotal rounds wrongly");
        let map =
            repository_map(&listing, Tokens(200), &NearnessCriteria { words, ..NearnessCriteria::default() });
        assert!(map.contains("deep/er/still/ invoice_total.rs other.rs\n"), "{map}");
        assert!(
            !repository_map(&listing, Tokens(200), &NearnessCriteria::default()).contains("invoice_total")
        );
    }

    #[test]
    fn what_an_index_found_comes_first() {
        let many: Vec<String> = (0..500).map(|n| format!("pkg{}/mod{n}/x.rs", n % 50)).collect();
        let mut paths: Vec<&str> = many.iter().map(String::as_str).collect();
        paths.extend(["deep/er/still/cents.rs", "deep/er/still/other.rs"]);
        let files = HashMap::from([(&b"deep/er/still/cents.rs"[..], 0.1), (b"not/there.rs", 1.0)]);
        let map = repository_map(
            &listing(&paths),
            Tokens(200),
            &NearnessCriteria { files, ..NearnessCriteria::default() },
        );
        assert!(map.contains("deep/er/still/ cents.rs other.rs\n"), "{map}");
    }

    #[test]
    fn wide_directories_are_cut() {
        let many: Vec<String> =
            (0..5_000).map(|n| format!("d{n}/f")).chain((0..5_000).map(|n| format!("f{n}"))).collect();
        let paths: Vec<&str> = many.iter().map(String::as_str).collect();
        let map = repository_map(&listing(&paths), Tokens(300), &NearnessCriteria::default());
        assert!(map.contains("directories\n") && map.contains(" files") && map.contains("./ f0 "), "{map}");
        assert!(TokenEstimator.count(&map) <= Tokens(330), "{}", TokenEstimator.count(&map));
    }

    #[test]
    fn hostile_names_are_harmless() {
        let paths: Vec<RelPath> = [&b"a\nb"[..], b"\xff.rs", b"x\x1b[31m"]
            .iter()
            .map(|path| RelPath::parse(path).unwrap())
            .collect();
        let map =
            repository_map(&Listing { paths, truncated: true }, DEFAULT_BUDGET, &NearnessCriteria::default());
        assert_eq!(map, "./ a\\nb x\\u{1b}[31m \u{fffd}.rs\n… the list was cut off: there are more files\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_map_fits_its_budget_and_never_panics(paths in prop::collection::vec("[a-c/. \u{e9}]{1,24}", 0..80), budget in 0u64..400) {
            let mut paths: Vec<RelPath> = paths.iter().filter_map(|path| RelPath::parse(path).ok()).collect();
            paths.sort();
            paths.dedup();
            let map = repository_map(&Listing { paths, truncated: false }, Tokens(budget), &NearnessCriteria::default());
            prop_assert!(TokenEstimator.count(&map).0 <= budget + budget / 5 + 30, "{}", map);
        }
    }
}
