//! The agreement of the symbols of source with Universal Ctags: definitions of functions and types
//! in twenty files of each of eight languages, with the reasons where they don't.
//!
//! Data that a clone lacks is named by an option or its variable: bare clones of the repositories
//! of [`REPOSITORIES`] (`--mirror`, `RB_MIRROR`: `OWNER+NAME/repo`), or folders of source
//! (`--trees`, as often as there are some). It needs `ctags` and `git`. Without source it is
//! skipped and says so; with `JM_REQUIRE_ALL=1` that fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

/// The least precision and recall of each language.
const MIN_AGREEMENT: f64 = 0.97;
/// Languages that have to be there.
const LANGUAGES: [&str; 8] = ["Rust", "Python", "JavaScript", "TypeScript", "Go", "Java", "C", "C++"];
/// Three repositories or so of each language.
const REPOSITORIES: [&str; 24] = [
    "BurntSushi+ripgrep",
    "sharkdp+bat",
    "tokio-rs+axum",
    "helix-editor+helix",
    "psf+requests",
    "pallets+flask",
    "yt-dlp+yt-dlp",
    "dask+dask",
    "axios+axios",
    "expressjs+express",
    "NodeBB+NodeBB",
    "preactjs+preact",
    "vitejs+vite",
    "vuejs+core",
    "gin-gonic+gin",
    "caddyserver+caddy",
    "gohugoio+hugo",
    "google+gson",
    "apache+commons-lang",
    "projectlombok+lombok",
    "jqlang+jq",
    "redis+redis",
    "fmtlib+fmt",
    "qutebrowser+qutebrowser",
];

/// Fails where a bound is missed.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let mut mirror = std::env::var_os("RB_MIRROR").map(PathBuf::from);
    let mut trees: Vec<PathBuf> = Vec::new();
    for pair in options.chunks(2) {
        let [option, value] = pair else { bail!("{} needs a value", pair.join(" ")) };
        match *option {
            "--mirror" => mirror = Some(std::path::absolute(value)?),
            "--trees" => trees.push(std::path::absolute(value)?),
            other => bail!("there is no option {other}; there are --mirror, --trees"),
        }
    }
    if let (Some(mirror), true) = (mirror, trees.is_empty()) {
        trees = REPOSITORIES.iter().map(|name| checkout(&mirror, name)).collect::<Result<_, _>>()?;
    }
    if trees.is_empty() {
        ensure!(
            std::env::var_os("JM_REQUIRE_ALL").is_none_or(|all| all != "1"),
            "it needs --mirror DIR or --trees DIR"
        );
        println!("skipped: it needs --mirror DIR or --trees DIR (see `xtask/src/bench/symbols.rs`)");
        return Ok(());
    }
    crate::cargo(&["build", "--locked", "--package", "journeyman-syntax", "--example", "ctags"], &[])?;
    let output = Command::new(super::target().join("debug/examples/ctags"))
        .args(&trees)
        .stderr(Stdio::inherit())
        .output()
        .context("the example ctags")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    ensure!(output.status.success(), "the symbols could not be compared");
    judge(&text)
}

/// The newest files of a repository, beside what is built. A clone may lack its largest files,
/// which are no source.
fn checkout(mirror: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let place = super::target().join("bench-symbols").join(name);
    if place.is_dir() {
        return Ok(place);
    }
    let half = place.with_extension("half");
    if half.is_dir() {
        std::fs::remove_dir_all(&half)?;
    }
    std::fs::create_dir_all(&half)?;
    let git = mirror.join(name).join("repo");
    let mut archive = Command::new("git")
        .arg("--git-dir")
        .arg(&git)
        .args(["archive", "HEAD", "--", "."])
        .args(exclude_absent(&git)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("git")?;
    let stream = archive.stdout.take().context("git's output")?;
    let unpacked = Command::new("tar").arg("x").current_dir(&half).stdin(stream).status().context("tar")?;
    let archived = archive.wait_with_output()?;
    let told = String::from_utf8_lossy(&archived.stderr);
    ensure!(
        archived.status.success() && unpacked.success(),
        "{} could not be unpacked: {}",
        git.display(),
        told.trim()
    );
    std::fs::rename(&half, &place)?;
    Ok(place)
}

/// Returns the options that leave files which the clone lacks out of an archive. Git lists such
/// files without a size.
fn exclude_absent(git: &Path) -> anyhow::Result<Vec<String>> {
    let words = ["ls-tree", "-r", "-z", "-l", "HEAD"];
    let listed = Command::new("git").arg("--git-dir").arg(git).args(words).output().context("git")?;
    let told = String::from_utf8_lossy(&listed.stderr);
    ensure!(listed.status.success(), "{}: {}", git.display(), told.trim());
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(listed.split('\0').filter_map(left_out).collect())
}

/// Of a line `MODE TYPE ID SIZE<tab>PATH`.
fn left_out(line: &str) -> Option<String> {
    let (facts, path) = line.split_once('\t')?;
    facts.ends_with(" BAD").then_some(())?;
    println!("left out, as the clone lacks it: {path}");
    Some(format!(":(exclude,literal,top){path}"))
}

/// Holds the table against the bounds: precision and recall are the last two figures of a
/// language's row.
fn judge(text: &str) -> anyhow::Result<()> {
    let mut missed = Vec::new();
    for language in LANGUAGES {
        let row = text.lines().find(|line| line.split_whitespace().next() == Some(language));
        let row = row.with_context(|| format!("there is no row for {language}"))?;
        let figures: Vec<&str> = row.split_whitespace().collect();
        let figure = |nth: usize| figures.get(nth).and_then(|figure| figure.parse::<f64>().ok());
        let files = figure(1).unwrap_or_default();
        if files < 20.0 {
            missed.push(format!("{language} has only {files} files"));
        }
        for (name, nth) in [("precision", 7), ("recall", 8)] {
            let reached = figure(nth).with_context(|| format!("{language} has no {name}"))?;
            if reached < MIN_AGREEMENT {
                missed.push(format!("{language}'s {name} is {reached}, not {MIN_AGREEMENT}"));
            }
        }
    }
    ensure!(missed.is_empty(), "bounds are missed: {}", missed.join("; "));
    println!("the bounds are held: {MIN_AGREEMENT} in precision and recall in {} languages", LANGUAGES.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_clone_lacks_is_left_out() {
        assert_eq!(left_out("100644 blob 81e2     512\ta.rs"), None);
        assert_eq!(left_out("160000 commit 81e2       -\tsub BAD"), None);
        let lacks = left_out("100755 blob 81e2     BAD\tbig file.wasm");
        assert_eq!(lacks.as_deref(), Some(":(exclude,literal,top)big file.wasm"));
    }

    #[test]
    fn rows_are_held_against_bounds() {
        let row =
            |name: &str, files: u32, figures: &str| format!("{name}  {files} 9 9 9 0.500 0.500 {figures}\n");
        let table = |figures: &str| LANGUAGES.map(|name| row(name, 20, figures)).concat();
        assert!(judge(&table("0.970 1.000")).is_ok());
        assert!(judge(&table("0.969 1.000")).unwrap_err().to_string().contains("Rust's precision is 0.969"));
        assert!(judge(&table("1.000 0.900")).unwrap_err().to_string().contains("C++'s recall"));
        assert!(judge(&table("1.000 1.000").replace("Go  20", "Go  3")).is_err());
        assert!(judge("").is_err());
    }
}
