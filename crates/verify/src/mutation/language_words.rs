//! The words in which mutations are written in each language.

use journeyman_protocol::RelPath;
use journeyman_syntax::language::Language;

/// The words of a language.
pub(super) struct LanguageWords {
    /// The literal for a true condition.
    pub(super) yes: &'static str,
    /// The literal for a false condition.
    pub(super) no: &'static str,
    pub(super) and: &'static str,
    pub(super) or: &'static str,
    /// A statement that does nothing.
    pub(super) nothing: &'static str,
    /// A statement that ends the process, which no handler in the program can catch.
    pub(super) stop: &'static str,
    /// An expression with the value of `@c` that ends the process if `@e` holds; empty where the
    /// language has none that nothing can catch.
    pub(super) stop_if: &'static str,
    /// The handler body that passes a failure on; `@` stands for its variable.
    pub(super) rethrow: Option<&'static str>,
    /// Statements stand in braces, so a single one can be put into some.
    pub(super) braces: bool,
    /// A compiler refuses what doesn't fit, before any test runs.
    pub(super) compiled: bool,
}

const C_LIKE: LanguageWords = LanguageWords {
    yes: "true",
    no: "false",
    and: "&&",
    or: "||",
    nothing: ";",
    stop: "",
    stop_if: "",
    rethrow: None,
    braces: true,
    compiled: true,
};
const RUST: LanguageWords = LanguageWords {
    nothing: "{}",
    stop: "if true { std::process::abort(); }",
    stop_if: "(if @e { std::process::abort() } else { @c })",
    ..C_LIKE
};
const PYTHON: LanguageWords = LanguageWords {
    yes: "True",
    no: "False",
    and: "and",
    or: "or",
    nothing: "pass",
    stop: "__import__('os')._exit(97)",
    stop_if: "(__import__('os')._exit(97) if @e else @c)",
    rethrow: Some("raise"),
    braces: false,
    compiled: false,
};
const JAVASCRIPT: LanguageWords = LanguageWords {
    stop: "process.exit(97);",
    stop_if: "(@e ? process.exit(97) : @c)",
    rethrow: Some("{ throw @; }"),
    compiled: false,
    ..C_LIKE
};
const TYPESCRIPT: LanguageWords = LanguageWords {
    stop: "(globalThis as any).process.exit(97);",
    stop_if: "(@e ? (globalThis as any).process.exit(97) : @c)",
    compiled: true,
    ..JAVASCRIPT
};
const GO: LanguageWords = LanguageWords {
    nothing: "{}",
    stop: "panic(\"stopped\");",
    stop_if: "func() bool { if @e { panic(\"stopped\") }; return @c }()",
    ..C_LIKE
};
const JAVA: LanguageWords = LanguageWords {
    stop: "if (true) { Runtime.getRuntime().halt(97); }",
    rethrow: Some("{ throw new RuntimeException(@); }"),
    ..C_LIKE
};
const C: LanguageWords = LanguageWords {
    yes: "1",
    no: "0",
    stop: "__builtin_trap();",
    stop_if: "(@e ? (__builtin_trap(), 0) : @c)",
    ..C_LIKE
};
const CPP: LanguageWords =
    LanguageWords { stop: "__builtin_trap();", stop_if: C.stop_if, rethrow: Some("{ throw; }"), ..C_LIKE };
const CSHARP: LanguageWords = LanguageWords {
    stop: "if (true) { System.Environment.FailFast(\"stopped\"); }",
    rethrow: Some("{ throw; }"),
    ..C_LIKE
};
const RUBY: LanguageWords = LanguageWords {
    nothing: "nil",
    stop: "Process.exit!(97);",
    stop_if: "(@e ? Process.exit!(97) : @c)",
    rethrow: Some("raise"),
    braces: false,
    compiled: false,
    ..C_LIKE
};
const PHP: LanguageWords = LanguageWords {
    stop: "exit(97);",
    stop_if: "(@e ? exit(97) : @c)",
    rethrow: Some("{ throw @; }"),
    compiled: false,
    ..C_LIKE
};

/// Returns the words of a language; `None` for a language that isn't mutated.
pub(super) fn words_of_language(language: Language) -> Option<&'static LanguageWords> {
    Some(match language {
        Language::Rust => &RUST,
        Language::Python => &PYTHON,
        Language::JavaScript => &JAVASCRIPT,
        Language::TypeScript | Language::Tsx => &TYPESCRIPT,
        Language::Go => &GO,
        Language::Java => &JAVA,
        Language::C => &C,
        Language::Cpp => &CPP,
        Language::CSharp => &CSHARP,
        Language::Ruby => &RUBY,
        Language::Php => &PHP,
        _ => return None,
    })
}

/// Returns true if a compiler reads the file before tests run.
pub(super) fn is_compiled(path: &RelPath) -> bool {
    path.as_str()
        .and_then(Language::from_path)
        .and_then(words_of_language)
        .is_some_and(|words| words.compiled)
}

/// Returns an expression with the default value of a return type; `None` where none is known to
/// fit.
pub(super) fn default_value(language: Language, return_type: Option<&str>) -> Option<&'static str> {
    let declared = return_type.unwrap_or_default().trim();
    Some(match language {
        Language::Python => "None",
        Language::JavaScript => "undefined",
        Language::TypeScript | Language::Tsx => "(undefined as any)",
        Language::Ruby => "nil",
        Language::Php => "null",
        Language::Rust if !declared.is_empty() => "Default::default()",
        Language::C => "0",
        Language::Cpp => "{}",
        Language::CSharp => "default",
        Language::Java => match declared {
            "boolean" => "false",
            "int" | "long" | "short" | "byte" | "char" | "float" | "double" => "0",
            _ => "null",
        },
        Language::Go => match declared {
            "string" => "\"\"",
            "bool" => "false",
            "error" | "any" => "nil",
            "byte" | "rune" | "float32" | "float64" => "0",
            _ if declared.starts_with("int") || declared.starts_with("uint") => "0",
            _ if ["*", "[]", "map[", "func("].iter().any(|start| declared.starts_with(start)) => "nil",
            _ => return None,
        },
        _ => return None,
    })
}
