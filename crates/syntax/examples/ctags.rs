//! Definitions of functions and types, held against what Universal Ctags finds: `cargo run -p journeyman-syntax --example
//! ctags -- FOLDER…`. Of each of eight languages, twenty files are taken, spread over all that there are. What one finds and
//! the other doesn't is listed.
//!
//! Ctags is right more often than not, but no judge: for most languages it doesn't parse. Version 5.9 takes objects for
//! classes in JavaScript (so classes aren't asked for there) and loses its way in classes with computed names; in TypeScript it
//! knows nothing of functions in functions and in objects; uses of macros (`TEST(…)`) are definitions to it in C++.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use journeyman_syntax::facts::read;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::Kind;

/// Files of each language.
const FILES: usize = 20;
/// Bytes of a file: neither a few lines nor a whole library in one.
const BYTES: std::ops::Range<u64> = 1_500..80_000;

/// A language, ctags' name of it and the kinds that are functions and types there.
const LANGUAGES: [(Language, &str, &str); 8] = [
    (Language::Rust, "Rust", "fPsgit"),
    (Language::Python, "Python", "cfm"),
    (Language::JavaScript, "JavaScript", "fmgGS"),
    (Language::TypeScript, "TypeScript", "fcigamG"),
    (Language::Go, "Go", "fsitan"),
    (Language::Java, "Java", "cigma"),
    (Language::C, "C", "fpsugt"),
    (Language::Cpp, "C++", "fpcsugt"),
];

/// A name and its line.
type Found = BTreeSet<(String, u32)>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut open: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let mut files: BTreeMap<Language, Vec<PathBuf>> = BTreeMap::new();
    while let Some(path) = open.pop() {
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        } else if let Some(language) = Language::of_path(&path.to_string_lossy())
            && BYTES.contains(&path.metadata()?.len())
        {
            files.entry(language).or_default().push(path);
        }
    }
    println!(
        "{:<11} {:>6} {:>6} {:>6} {:>9} {:>6}",
        "language", "ctags", "ours", "both", "precision", "recall"
    );
    let mut differences = Vec::new();
    for (language, name, kinds) in LANGUAGES {
        let mut paths = files.remove(&language).unwrap_or_default();
        paths.sort();
        let step = (paths.len() / FILES).max(1);
        let (mut theirs, mut ours, mut both, mut known) = (0, 0, 0, 0);
        for path in paths.iter().step_by(step).take(FILES) {
            let (their, our) = (by_ctags(path, name, kinds)?, by_us(path, language)?);
            // What ctags knows as something else, a constant that is a function, is there all the same.
            let any = by_ctags(path, name, "*")?;
            theirs += their.len();
            ours += our.len();
            both += their.intersection(&our).count();
            known += our.intersection(&any).count();
            let mut list = |sign: &str, found: &Found, other: &Found| {
                for (name, line) in found.difference(other) {
                    differences.push(format!("{sign} {}:{line} {name}", path.display()));
                }
            };
            list("only ctags", &their, &our);
            list("only we   ", &our, &any);
        }
        let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        println!(
            "{name:<11} {theirs:>6} {ours:>6} {both:>6} {:>9.3} {:>6.3}",
            share(known, ours),
            share(both, theirs)
        );
    }
    differences.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn by_ctags(path: &Path, language: &str, kinds: &str) -> Result<Found, Box<dyn std::error::Error>> {
    let output = Command::new("ctags")
        .args(["--options=NONE", "-x", "--_xformat=%n\t%N", "--sort=no"])
        .arg(format!("--language-force={language}"))
        .arg(format!("--kinds-{language}={kinds}"))
        .arg(path)
        .output()
        .map_err(|error| format!("ctags doesn't run ({error}): install universal-ctags"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        // Names that ctags makes up.
        .filter(|(_, name)| !["__anon", "anonymous", "Anonymous"].iter().any(|made| name.starts_with(made)))
        .filter_map(|(line, name)| Some((plain(name), line.trim().parse().ok()?)))
        .collect())
}

/// An operator's name is written with blanks by one and without by the other.
fn plain(name: &str) -> String {
    if name.starts_with("operator") { name.split_whitespace().collect() } else { name.trim().to_owned() }
}

fn by_us(path: &Path, language: Language) -> Result<Found, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let Ok(facts) = read(language, &text) else { return Ok(Found::new()) };
    let wanted = |kind| {
        matches!(
            kind,
            Kind::Function
                | Kind::Method
                | Kind::Constructor
                | Kind::Class
                | Kind::Struct
                | Kind::Enum
                | Kind::Interface
                | Kind::Trait
                | Kind::Type
        )
    };
    Ok(facts
        .symbols
        .into_iter()
        .filter(|symbol| wanted(symbol.kind))
        .map(|symbol| (plain(&symbol.name), symbol.name_line))
        .collect())
}
