//! Explanation of a disagreement about one line, from that line alone.

use std::collections::BTreeSet;

use journeyman_syntax::language::Language;

/// Maximum distance of lines at which two sides may place a symbol.
const NEAR: u32 = 6;
/// Maximum lines before a line that are searched for its context.
const BEFORE: usize = 12;

/// The side that has a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    OnlyCtags,
    OnlyOurs,
}

/// A reason why one side is wrong, or both are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// `import { type A }`.
    Import,
    /// `TEST(a, b) {`.
    Macro,
    /// The name isn't in the reported line, but in one nearby.
    Line,
    /// `operator a::b` and `operator b`.
    Spelling,
    /// `class A`, `type A =`.
    Type,
    /// `function a`, `func a`.
    Function,
    /// `a() {` after modifiers or a type only.
    Method,
    /// `a: function`, `x.a = () =>`.
    Member,
    /// `x.(interface{ A() })`.
    InPlace,
}

impl Reason {
    /// Returns the reason in words.
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

/// Returns the reason why only one side has a name in a line; `None` without a rule. `other` is the
/// other side's symbol.
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
        // The side that reports a line without the name is wrong; that must be ctags.
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

/// Returns the texts before and after each occurrence of a name as a whole word.
fn words<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    text.match_indices(name).filter_map(move |(at, _)| {
        let (before, after) = (text.get(..at)?, text.get(at + name.len()..)?);
        (!before.ends_with(part) && !after.starts_with(part)).then(|| (before.trim(), after.trim()))
    })
}

/// Returns true for texts that ctags takes for a definition wrongly.
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

/// Returns true for a name without lower-case letters.
fn is_upper_case(name: &str) -> bool {
    name.len() > 2 && !name.contains(|c: char| c.is_lowercase())
}

/// Returns the kind of definition of a name in a line, if it is one.
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
            // A constructor has no type before it, and a call no bracket behind it.
            let constructor =
                before.is_empty() && name.starts_with(char::is_uppercase) && after.ends_with('{');
            (called && (typed && word && plain || constructor) && !is_upper_case(name))
                .then_some(Reason::Method)
        }
        _ => None,
    }
}

/// Returns true if a value is a function: `function`, `async (a) =>`, `a =>`, also with parameters
/// that continue on the next line.
fn is_function(value: &str) -> bool {
    let value = value.strip_prefix("async").map_or(value, str::trim_start);
    let goes_on = value.starts_with(['(', '<']) && !value.contains([')', '>']);
    value.starts_with("function") || value.contains("=>") || goes_on
}

/// Returns true if only modifiers or closing brackets precede a method's name.
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
