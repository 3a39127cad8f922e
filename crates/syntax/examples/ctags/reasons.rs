//! Why two readers disagree about one line, told by a third one that reads that line alone.

use std::collections::BTreeSet;

use journeyman_syntax::language::Language;

/// Lines by which two may differ about where something is.
const NEAR: u32 = 6;
/// Lines before one that are looked at for what it is in.
const BEFORE: usize = 12;

/// Who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    OnlyCtags,
    OnlyOurs,
}

/// Why one of the two is wrong, or both are right in their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// `import { type A }`.
    Import,
    /// `TEST(a, b) {`.
    Macro,
    /// The name isn't in the line that it is said to be in, and is in one nearby.
    Line,
    /// `operator a::b` and `operator b`.
    Spelling,
    /// `class A`, `type A =`.
    Type,
    /// `function a`, `func a`.
    Function,
    /// `a() {` where nothing but modifiers or a type stands before.
    Method,
    /// `a: function`, `x.a = () =>`.
    Member,
    /// `x.(interface{ A() })`.
    InPlace,
}

impl Reason {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Import => "`type X` in an import or export is a use; ctags takes it for a definition",
            Self::Macro => "a macro's use (`TEST(a, b)`) is a definition to ctags",
            Self::Line => "ctags gives a line that doesn't have the name",
            Self::Spelling => "an operator's name is spelled otherwise",
            Self::Type => "ctags misses a type that is declared in this line",
            Self::Function => "ctags misses a function that is declared in this line",
            Self::Method => "ctags misses a method that is defined in this line",
            Self::Member => "ctags misses a function that is put on an object in this line",
            Self::InPlace => "a method of an interface that is written in place",
        }
    }
}

/// Why only one of two has a name in a line; nothing where no rule says so. `other` is what the other one has.
pub(crate) fn of(
    language: Language,
    side: Side,
    lines: &[&str],
    name: &str,
    line: u32,
    other: &BTreeSet<(String, u32)>,
) -> Option<Reason> {
    let text = lines.get(line as usize - 1).copied().unwrap_or_default();
    let near = |wanted: &str| other.iter().find(|(known, at)| known == wanted && at.abs_diff(line) <= NEAR);
    let has = |line: u32| lines.get(line as usize - 1).is_some_and(|text| words(text, name).next().is_some());
    if name.starts_with("operator") || text.contains("operator ") {
        let end = |name: &str| {
            name.rsplit("::").next().unwrap_or_default().trim_start_matches("operator").to_owned()
        };
        if other.iter().any(|(known, at)| *at == line && end(known) == end(name)) {
            return Some(Reason::Spelling);
        }
    }
    if let Some((_, at)) = near(name) {
        // Whoever gives a line without the name is wrong; that must be ctags.
        let theirs = if side == Side::OnlyCtags { line } else { *at };
        if !has(theirs) {
            return Some(Reason::Line);
        }
    }
    words(text, name).find_map(|(before, after)| match side {
        Side::OnlyCtags => mistaken(language, lines, line, name, before, after),
        Side::OnlyOurs => declared(language, name, before, after),
    })
}

/// What stands before and after a name, wherever it stands as a whole word.
fn words<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    text.match_indices(name).filter_map(move |(at, _)| {
        let (before, after) = (text.get(..at)?, text.get(at + name.len()..)?);
        (!before.ends_with(part) && !after.starts_with(part)).then(|| (before.trim(), after.trim()))
    })
}

/// What ctags takes for a definition and is none.
fn mistaken(
    language: Language,
    lines: &[&str],
    line: u32,
    name: &str,
    before: &str,
    after: &str,
) -> Option<Reason> {
    match language {
        Language::TypeScript => {
            let listed = before.strip_suffix("type").map(str::trim_end)?;
            let alone = after.is_empty() || after.starts_with([',', '}']) || after.starts_with("as ");
            let end = line as usize - 1;
            let mut above = lines.get(end.saturating_sub(BEFORE * 4)..=end)?.iter().rev();
            let opened = above.find(|line| line.contains('{') && !line.contains("${"))?;
            let import = opened.trim_start();
            let import = import.starts_with("import") || import.starts_with("export {");
            (alone && import && (listed.is_empty() || listed.ends_with(['{', ',']))).then_some(Reason::Import)
        }
        Language::C | Language::Cpp => {
            (is_upper_case(name) && after.starts_with('(')).then_some(Reason::Macro)
        }
        _ => None,
    }
}

/// A name without small letters.
fn is_upper_case(name: &str) -> bool {
    name.len() > 2 && !name.contains(|c: char| c.is_lowercase())
}

/// Whether a line defines a name, and as what.
fn declared(language: Language, name: &str, before: &str, after: &str) -> Option<Reason> {
    let last = before.rsplit(|c: char| c.is_whitespace() || c == '(' || c == '{').next().unwrap_or_default();
    let script = matches!(language, Language::JavaScript | Language::TypeScript);
    if matches!(
        last,
        "class" | "interface" | "enum" | "type" | "struct" | "trait" | "record" | "union" | "@interface"
    ) || (last == "using" && after.starts_with('='))
    {
        return Some(Reason::Type);
    }
    if matches!(last, "function" | "function*" | "func" | "fn" | "def") {
        return Some(Reason::Function);
    }
    let called = after.starts_with(['(', '<']) || after.starts_with("?(");
    if script {
        let value = after.trim_start_matches(['\'', '"', '?']).trim_start();
        let value = value.strip_prefix([':', '=']).map(str::trim_start);
        if value.is_some_and(is_function) {
            return Some(Reason::Member);
        }
        return (called && only_modifiers(before)).then_some(Reason::Method);
    }
    match language {
        Language::Go if called && (before.is_empty() || before.ends_with("interface{")) => {
            Some(Reason::InPlace)
        }
        Language::Java | Language::C | Language::Cpp => {
            let typed = last.starts_with(|c: char| c.is_alphabetic() || c == '>' || c == '*' || c == '&');
            let word =
                !matches!(last, "new" | "return" | "else" | "throw" | "case" | "") && !last.ends_with('.');
            let plain = !before.contains(['=', '(']) || before.starts_with('@');
            // A constructor has no type before it, and what is called no bracket behind it.
            let constructor =
                before.is_empty() && name.starts_with(char::is_uppercase) && after.ends_with('{');
            (called && (typed && word && plain || constructor) && !is_upper_case(name))
                .then_some(Reason::Method)
        }
        _ => None,
    }
}

/// Whether a value is a function: `function`, `async (a) =>`, `a =>`. One whose parameters go on in the next line is, too.
fn is_function(value: &str) -> bool {
    let value = value.strip_prefix("async").map_or(value, str::trim_start);
    let goes_on = value.starts_with(['(', '<']) && !value.contains([')', '>']);
    value.starts_with("function") || value.contains("=>") || goes_on
}

/// Whether nothing but what may stand before a method's name stands there. What closed what was before may.
fn only_modifiers(before: &str) -> bool {
    let own = before.rsplit(['{', '}', ',', ';']).next().unwrap_or_default();
    own.split_whitespace().all(|word| {
        let word = word.trim_matches(['*', '#', '\'', '"', '[']);
        let known = [
            "",
            "async",
            "static",
            "get",
            "set",
            "public",
            "private",
            "protected",
            "readonly",
            "abstract",
            "override",
            "declare",
            "export",
            "default",
        ];
        known.contains(&word)
    })
}
