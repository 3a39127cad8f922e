//! Comparison of outlines with Universal Ctags: `cargo run -p journeyman-syntax --example ctags --
//! FOLDER…`. Of each of eight languages, twenty files are taken, spread over all there are.
//!
//! Ctags is right more often than not, but for most languages it doesn't parse. So each
//! disagreement is judged by a third reader, [`reasons`], which reads one line without a tree, and
//! explains the fault of one side by a rule that `docs/benchmarks.md` lists. Unexplained
//! disagreements count against the outline. Precision and recall are printed as they are (`raw`)
//! and without explained disagreements.

mod reasons;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use journeyman_syntax::analysis::analyse;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::SymbolKind;

use reasons::{Reason, Side};

/// Number of files of each language.
const FILES: usize = 20;
/// Minimum and maximum bytes of a file.
const BYTES: std::ops::Range<u64> = 1_500..80_000;
/// Maximum examples of a reason in the output.
const SHOWN: usize = 3;

/// A language, its name in ctags and ctags' kinds of functions and types. Version 5.9 takes objects
/// for classes in JavaScript, so classes aren't compared there.
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
type Definition = BTreeSet<(String, u32)>;

/// Counts of one language.
#[derive(Default)]
struct Tally {
    theirs: usize,
    ours: usize,
    both: usize,
    /// Everything that ctags has, of any kind: a constant that is a function is found all the same.
    known: usize,
    /// Explained disagreements, of symbols that only ctags has and that only the outline has.
    excused: [usize; 2],
}

type Reasons = BTreeMap<(Option<Reason>, &'static str, Side), Vec<String>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files = files(std::env::args().skip(1).map(PathBuf::from).collect())?;
    println!(
        "{:<11} {:>5} {:>6} {:>6} {:>6} {:>10} {:>10} {:>9} {:>7}",
        "language", "files", "ctags", "ours", "both", "raw prec.", "raw rec.", "precision", "recall"
    );
    let mut reasons = Reasons::new();
    for (language, name, kinds) in LANGUAGES {
        let mut paths = files.remove(&language).unwrap_or_default();
        paths.sort();
        let step = (paths.len() / FILES).max(1);
        let taken: Vec<PathBuf> = paths.into_iter().step_by(step).take(FILES).collect();
        let mut tally = Tally::default();
        for path in &taken {
            compare(path, language, (name, kinds), &mut tally, &mut reasons)?;
        }
        let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let [only_ctags, only_we] = tally.excused;
        println!(
            "{name:<11} {:>5} {:>6} {:>6} {:>6} {:>10.3} {:>10.3} {:>9.3} {:>7.3}",
            taken.len(),
            tally.theirs,
            tally.ours,
            tally.both,
            share(tally.known, tally.ours),
            share(tally.both, tally.theirs),
            share(tally.known, tally.ours - only_we),
            share(tally.both, tally.theirs - only_ctags),
        );
    }
    for ((reason, language, side), places) in &reasons {
        let who = if *side == Side::OnlyCtags { "only ctags" } else { "only ours " };
        let why = reason.map_or("UNEXPLAINED: counts against us", Reason::words);
        println!("{:>4} {who} {language:<11} {why}", places.len());
        let shown = if reason.is_some() { SHOWN } else { usize::MAX };
        places.iter().take(shown).for_each(|place| println!("          {place}"));
    }
    Ok(())
}

/// Returns all files by language.
fn files(mut open: Vec<PathBuf>) -> std::io::Result<BTreeMap<Language, Vec<PathBuf>>> {
    let mut files: BTreeMap<Language, Vec<PathBuf>> = BTreeMap::new();
    while let Some(path) = open.pop() {
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        } else if let Some(language) = Language::from_path(&path.to_string_lossy())
            && BYTES.contains(&path.metadata()?.len())
        {
            files.entry(language).or_default().push(path);
        }
    }
    Ok(files)
}

fn compare(
    path: &Path,
    language: Language,
    (name, kinds): (&'static str, &str),
    tally: &mut Tally,
    reasons: &mut Reasons,
) -> Result<(), Box<dyn std::error::Error>> {
    let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let (theirs, ours) = (by_ctags(path, name, kinds)?, by_us(&text, language));
    let any = by_ctags(path, name, "*")?;
    tally.theirs += theirs.len();
    tally.ours += ours.len();
    tally.both += theirs.intersection(&ours).count();
    tally.known += ours.intersection(&any).count();
    for (side, found, other) in [(Side::OnlyCtags, &theirs, &ours), (Side::OnlyOurs, &ours, &any)] {
        for (symbol, line) in found.difference(other) {
            let reason = reasons::of(language, side, &lines, symbol, *line, other);
            if reason.is_some() {
                let [only_ctags, only_ours] = &mut tally.excused;
                *(if side == Side::OnlyOurs { only_ours } else { only_ctags }) += 1;
            }
            let shown = lines.get(*line as usize - 1).map_or("", |line| line.trim());
            let shown: String = shown.chars().take(90).collect();
            let place = format!("{}:{line} {symbol}: {shown}", path.display());
            reasons.entry((reason, name, side)).or_default().push(place);
        }
    }
    Ok(())
}

fn by_ctags(path: &Path, language: &str, kinds: &str) -> Result<Definition, Box<dyn std::error::Error>> {
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

/// Blanks in an operator's name differ.
fn plain(name: &str) -> String {
    if name.starts_with("operator") { name.split_whitespace().collect() } else { name.trim().to_owned() }
}

fn by_us(text: &str, language: Language) -> Definition {
    let Ok(facts) = analyse(language, text) else { return Definition::new() };
    let wanted = |kind| {
        matches!(
            kind,
            SymbolKind::Function
                | SymbolKind::Method
                | SymbolKind::Constructor
                | SymbolKind::Class
                | SymbolKind::Struct
                | SymbolKind::Enum
                | SymbolKind::Interface
                | SymbolKind::Trait
                | SymbolKind::Type
        )
    };
    facts
        .symbols
        .into_iter()
        .filter(|symbol| wanted(symbol.kind))
        .map(|symbol| (plain(&symbol.name), symbol.name_line))
        .collect()
}
