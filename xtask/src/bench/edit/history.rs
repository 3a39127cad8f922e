//! Files before and after real commits, out of git directories.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use serde_json::json;

/// The histories that the hunks come from: the repository, the commit that they are read up to, and
/// the endings of the files that count. Eight languages; all can be had by `git clone --bare`.
pub(crate) const REPOSITORIES: [(&str, &str, &[&str]); 8] = [
    ("BurntSushi/ripgrep", "3fce3b5bb0236da2df6d99672afb8a719642eca7", &["rs"]),
    ("pallets/flask", "2ac89889f4cc330eabd50f295dcef02828522c69", &["py"]),
    ("vitejs/vite", "a98c8d95d552c6fa98ab66fb810f5b39ad5abf49", &["ts", "tsx"]),
    ("expressjs/express", "a3714473feb3d2908add734d340e7755fd85e0a3", &["js"]),
    ("gin-gonic/gin", "dcaa4296d111981ffb31ac3eba90bb63e1eb5ab9", &["go"]),
    ("google/gson", "9835b6f90192f79cdf5300c528fc6212455fb6c1", &["java"]),
    ("redis/redis", "4f8cdc2a1ea53e42955af758aabffee67cb455dd", &["c", "h"]),
    ("fmtlib/fmt", "60ccad511fd680cb91d8b60a315759f71c67bef9", &["cc", "h"]),
];

/// Of each repository, so many file versions are looked at for every hunk that is wanted: some have
/// none that can be used.
const VERSIONS_A_HUNK: usize = 3;
/// Larger files are generated, or hold data.
const LARGEST_FILE: usize = 256 << 10;

/// One file that a commit changed.
#[derive(Debug)]
struct Change {
    commit: String,
    path: String,
    before: String,
    after: String,
}

/// Writes pairs of all repositories for `mutations cases`: spread evenly over each history, newest
/// first.
pub(crate) fn pairs(directory: &Path, hunks: usize, out: &mut impl Write) -> anyhow::Result<()> {
    for (name, commit, endings) in REPOSITORIES {
        let repository = find(directory, name)?;
        let changes = changes(&repository, commit, endings).with_context(|| name.to_owned())?;
        let wanted = hunks * VERSIONS_A_HUNK;
        let every = (changes.len() / wanted).max(1);
        let chosen: Vec<&Change> = changes.iter().step_by(every).take(wanted).collect();
        write_pairs(name, &repository, &chosen, out)?;
    }
    Ok(())
}

/// Endings of the files that replies are made of: code, markup and data.
const ENDINGS: [&str; 36] = [
    "rs", "py", "ts", "tsx", "js", "mjs", "jsx", "go", "java", "kt", "c", "h", "cc", "cpp", "hpp", "rb",
    "php", "cs", "swift", "lua", "sh", "scala", "html", "css", "scss", "vue", "svelte", "json", "yml",
    "yaml", "toml", "xml", "sql", "md", "ex", "erb",
];

/// Writes pairs of every clone in a folder, at most so many of each, for `mutations replies`.
pub(crate) fn pairs_of_all(directory: &Path, most: usize, out: &mut impl Write) -> anyhow::Result<()> {
    let mut clones: Vec<PathBuf> =
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    clones.sort();
    for clone in clones {
        let mut inner = ["", "repo", ".git"].map(|inner| clone.join(inner)).into_iter();
        let Some(repository) = inner.find(|place| is_git(place)) else { continue };
        let name = clone.file_name().unwrap_or_default().to_string_lossy().replace('+', "/");
        let changes = changes(&repository, "HEAD", &ENDINGS).with_context(|| name.clone())?;
        let every = (changes.len() / most).max(1);
        let chosen: Vec<&Change> = changes.iter().step_by(every).take(most).collect();
        write_pairs(&name, &repository, &chosen, out)?;
    }
    Ok(())
}

fn write_pairs(
    name: &str,
    repository: &Path,
    chosen: &[&Change],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut blobs = Blobs::open(repository, chosen)?;
    for change in chosen {
        let (Some(before), Some(after)) = (blobs.next()?, blobs.next()?) else { continue };
        let pair = json!({"repo": name, "commit": change.commit, "path": change.path, "before": before,
            "after": after});
        writeln!(out, "{pair}")?;
    }
    Ok(())
}

fn is_git(place: &Path) -> bool {
    place.join("objects").is_dir() && place.join("HEAD").is_file()
}

/// A repository's git directory: `OWNER+NAME`, `OWNER/NAME`, `NAME` or `NAME.git`, or `repo` or
/// `.git` in one of them.
fn find(directory: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let short = name.rsplit_once('/').map_or(name, |(_, short)| short);
    let names = [name.replace('/', "+"), name.to_owned(), short.to_owned(), format!("{short}.git")];
    let places =
        names.iter().flat_map(|name| ["", "repo", ".git"].map(|inner| directory.join(name).join(inner)));
    let mut git = places.filter(|place| is_git(place));
    git.next().with_context(|| {
        format!(
            "{} has no clone of {name}: git clone --bare https://github.com/{name} {}/{short}.git",
            directory.display(),
            directory.display()
        )
    })
}

fn git(repository: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .arg("--git-dir")
        .arg(repository)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

/// Every modification of a file with one of the endings, but merges', newest first; no file version
/// twice.
fn changes(repository: &Path, commit: &str, endings: &[&str]) -> anyhow::Result<Vec<Change>> {
    let patterns = endings.iter().map(|ending| format!("*.{ending}"));
    let mut log = git(repository)
        .args(["log", "--no-merges", "--diff-filter=M", "--raw", "--no-abbrev", "--no-renames"])
        .args(["--format=commit %H", commit, "--"])
        .args(patterns)
        .stdout(Stdio::piped())
        .spawn()
        .context("git")?;
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut current = String::new();
    for line in BufReader::new(log.stdout.take().context("its output")?).lines() {
        let line = line?;
        if let Some(commit) = line.strip_prefix("commit ") {
            commit.clone_into(&mut current);
        }
        // `:100644 100644 <blob> <blob> M<TAB>path`
        let Some((head, path)) = line.strip_prefix(':').and_then(|line| line.split_once('\t')) else {
            continue;
        };
        let words: Vec<&str> = head.split(' ').collect();
        if let ["100644" | "100755", _, before, after, "M"] = words.as_slice()
            && seen.insert((*before).to_owned())
        {
            let (before, after) = ((*before).to_owned(), (*after).to_owned());
            found.push(Change { commit: current.clone(), path: path.to_owned(), before, after });
        }
    }
    ensure!(log.wait()?.success(), "git log failed; is {commit} there?");
    Ok(found)
}

/// The contents of blobs, in the order in which they were asked for.
struct Blobs {
    child: std::process::Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Blobs {
    fn open(repository: &Path, chosen: &[&Change]) -> anyhow::Result<Self> {
        let mut names = tempfile::tempfile()?;
        for change in chosen {
            writeln!(names, "{}\n{}", change.before, change.after)?;
        }
        names.rewind()?;
        let mut child =
            git(repository).args(["cat-file", "--batch"]).stdin(names).stdout(Stdio::piped()).spawn()?;
        let out = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Self { child, out })
    }

    /// The next one, if it is text of a bearable size.
    fn next(&mut self) -> anyhow::Result<Option<String>> {
        let mut head = String::new();
        self.out.read_line(&mut head)?;
        let Some(size) = head.trim_end().rsplit_once(" blob ").map(|(_, size)| size) else {
            bail!("git says `{}` of a file", head.trim_end());
        };
        let mut content = vec![0; size.parse::<usize>()? + 1];
        self.out.read_exact(&mut content)?;
        content.pop();
        Ok(String::from_utf8(content).ok().filter(|text| text.len() <= LARGEST_FILE))
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        // It ends by itself once all was read; else nobody wants the rest.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
