//! The supported languages, one row each.

use std::path::Path;

/// Maximum bytes at a file's beginning that are searched for its language.
const MAX_HEAD_BYTES: usize = 4096;

/// A function that returns a language's grammar.
pub(crate) type Grammar = fn() -> tree_sitter::Language;

/// A row of the language table.
struct Row {
    language: Language,
    name: &'static str,
    /// Extensions of file names, without the dot, in lower case.
    extensions: &'static [&'static str],
    /// Whole file names.
    files: &'static [&'static str],
    /// Programs of a first line `#!…`, without their version.
    programs: &'static [&'static str],
    grammar: Option<Grammar>,
    /// The cargo feature of its grammar; `None` for languages that are read without one.
    feature: Option<&'static str>,
    /// The definitions of the language: a tree-sitter query, in the form that [`crate::outline`]
    /// describes.
    outline: &'static str,
}

/// Defines the enum and the table. A language is a row here, a query file and a feature.
macro_rules! languages {
    (
        $($variant:ident, $name:literal, $feature:literal, $grammar:expr, $extensions:expr, $files:expr, $programs:expr;)*
        --- without a grammar:
        $($plain:ident, $plain_name:literal, $plain_extensions:expr, $plain_files:expr;)*
    ) => {
        /// A supported language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Language {
            $(
                #[doc = concat!("The language `", $name, "`.")]
                $variant,
            )*
            $(
                #[doc = concat!("`", $plain_name, "`, which is read without a grammar.")]
                $plain,
            )*
        }

        impl Language {
            /// All languages.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)* $(Self::$plain,)*];
        }

        const LANGUAGE_ROWS: &[Row] = &[$(Row {
            language: Language::$variant,
            name: $name,
            extensions: &$extensions,
            files: &$files,
            programs: &$programs,
            grammar: {
                #[cfg(feature = $feature)]
                {
                    Some(|| $grammar.into())
                }
                #[cfg(not(feature = $feature))]
                {
                    None
                }
            },
            feature: Some($feature),
            outline: include_str!(concat!("queries/", $feature, ".scm")),
        },)* $(Row {
            language: Language::$plain,
            name: $plain_name,
            extensions: &$plain_extensions,
            files: &$plain_files,
            programs: &[],
            grammar: None,
            feature: None,
            outline: "",
        },)*];
    };
}

languages! {
    Rust, "rust", "rust", tree_sitter_rust::LANGUAGE, ["rs"], [], ["rust-script"];
    Python, "python", "python", tree_sitter_python::LANGUAGE, ["py", "pyi", "pyw"], ["SConstruct", "SConscript"], ["python", "pypy"];
    JavaScript, "javascript", "javascript", tree_sitter_javascript::LANGUAGE, ["js", "mjs", "cjs", "jsx"], [], ["node", "nodejs"];
    TypeScript, "typescript", "typescript", tree_sitter_typescript::LANGUAGE_TYPESCRIPT, ["ts", "mts", "cts"], [], ["deno", "bun", "ts-node", "tsx"];
    Tsx, "tsx", "typescript", tree_sitter_typescript::LANGUAGE_TSX, ["tsx"], [], [];
    Go, "go", "go", tree_sitter_go::LANGUAGE, ["go"], [], [];
    Java, "java", "java", tree_sitter_java::LANGUAGE, ["java"], [], [];
    Kotlin, "kotlin", "kotlin", tree_sitter_kotlin_ng::LANGUAGE, ["kt", "kts"], [], ["kotlin"];
    C, "c", "c", tree_sitter_c::LANGUAGE, ["c"], [], [];
    Cpp, "cpp", "cpp", tree_sitter_cpp::LANGUAGE, ["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "tpp", "inl"], [], [];
    CSharp, "csharp", "csharp", tree_sitter_c_sharp::LANGUAGE, ["cs", "csx"], [], ["dotnet-script"];
    Ruby, "ruby", "ruby", tree_sitter_ruby::LANGUAGE, ["rb", "rake", "gemspec", "ru"], ["Rakefile", "Gemfile", "Vagrantfile", "Podfile", "Fastfile"], ["ruby", "jruby"];
    Php, "php", "php", tree_sitter_php::LANGUAGE_PHP, ["php", "phtml", "php5", "php7"], [], ["php"];
    Swift, "swift", "swift", tree_sitter_swift::LANGUAGE, ["swift"], [], ["swift"];
    Scala, "scala", "scala", tree_sitter_scala::LANGUAGE, ["scala", "sc", "sbt"], [], ["scala"];
    Lua, "lua", "lua", tree_sitter_lua::LANGUAGE, ["lua"], [], ["lua", "luajit"];
    Bash, "bash", "bash", tree_sitter_bash::LANGUAGE, ["sh", "bash"], [".bashrc", ".bash_profile", ".profile", "PKGBUILD"], ["sh", "bash", "dash", "ash"];
    Html, "html", "html", tree_sitter_html::LANGUAGE, ["html", "htm", "xhtml"], [], [];
    Css, "css", "css", tree_sitter_css::LANGUAGE, ["css"], [], [];
    Json, "json", "json", tree_sitter_json::LANGUAGE, ["json", "jsonc", "json5", "geojson", "webmanifest", "code-workspace"], [".babelrc", ".eslintrc", ".prettierrc"], [];
    Yaml, "yaml", "yaml", tree_sitter_yaml::LANGUAGE, ["yaml", "yml"], [".clang-format"], [];
    Toml, "toml", "toml", tree_sitter_toml_ng::LANGUAGE, ["toml"], ["Cargo.lock", "Pipfile", "poetry.lock", "uv.lock"], [];
    --- without a grammar:
    Sql, "sql", ["sql", "ddl", "pgsql", "psql"], [];
    Markdown, "markdown", ["md", "markdown", "mdx", "mkd"], ["README", "CHANGELOG", "CONTRIBUTING"];
    Rst, "restructuredtext", ["rst", "rest"], [];
    AsciiDoc, "asciidoc", ["adoc", "asciidoc"], [];
}

impl Language {
    fn row(self) -> Option<&'static Row> {
        LANGUAGE_ROWS.iter().find(|row| row.language == self)
    }

    /// Returns its name: lower case, letters only.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// Returns true if its grammar is built in: each is a cargo feature. False for languages that
    /// are read without one.
    #[must_use]
    pub fn is_built_in(self) -> bool {
        self.grammar().is_some()
    }

    /// Returns true if the language has a grammar that this build lacks.
    #[must_use]
    pub fn lacks_grammar(self) -> bool {
        self.row().is_some_and(|row| row.grammar.is_none() && row.feature.is_some())
    }

    pub(crate) fn grammar(self) -> Option<Grammar> {
        self.row()?.grammar
    }

    pub(crate) fn outline_query(self) -> &'static str {
        self.row().map_or("", |row| row.outline)
    }

    /// Returns the language of a name as written after a code fence.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = match name.as_str() {
            "golang" => "go",
            "c#" => "csharp",
            "c++" => "cpp",
            "shell" | "zsh" | "console" => "bash",
            "asc" => "asciidoc",
            other => other,
        };
        let named = |row: &&Row| row.name == name || row.extensions.contains(&name);
        LANGUAGE_ROWS.iter().find(named).map(|row| row.language)
    }

    /// Returns the language of a file name.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        let path = Path::new(path);
        let file = path.file_name()?.to_str()?;
        if let Some(row) = LANGUAGE_ROWS.iter().find(|row| row.files.contains(&file)) {
            return Some(row.language);
        }
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        LANGUAGE_ROWS.iter().find(|row| row.extensions.contains(&extension.as_str())).map(|row| row.language)
    }

    /// Returns the language of a file, by its name, or else by its first lines. A `.h` is C++ if
    /// its text has C++ constructs.
    #[must_use]
    pub fn detect(path: &str, text: &str) -> Option<Self> {
        let head = text.get(..text.floor_char_boundary(MAX_HEAD_BYTES)).unwrap_or(text);
        let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
        match (Self::from_path(path), extension) {
            (Some(language), _) => Some(language),
            (None, Some("h")) => Some(detect_header_language(head)),
            // Another extension means another format.
            (None, Some(extension)) if !extension.chars().all(|c| c.is_ascii_digit()) => None,
            (None, _) => detect_by_content(head),
        }
    }
}

/// Returns the language of a header: C or C++.
fn detect_header_language(head: &str) -> Language {
    let cpp = head.lines().map(str::trim_start).any(|line| {
        ["class ", "namespace ", "template", "using ", "public:", "private:", "protected:", "constexpr "]
            .iter()
            .any(|word| line.starts_with(word))
            || line.contains("std::")
    });
    if cpp { Language::Cpp } else { Language::C }
}

/// Returns the language by the program of a first line `#!…`, or by a document's declaration.
fn detect_by_content(head: &str) -> Option<Language> {
    let line = head.lines().next()?.trim_start_matches('\u{feff}');
    if let Some(command) = line.strip_prefix("#!") {
        let mut words = command.split_ascii_whitespace().filter(|word| !word.starts_with('-'));
        let mut program = words.next()?.rsplit('/').next()?;
        if program == "env" {
            program = words.find(|word| !word.contains('='))?;
        }
        let program = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        return LANGUAGE_ROWS.iter().find(|row| row.programs.contains(&program)).map(|row| row.language);
    }
    let lower = line.to_ascii_lowercase();
    if lower.starts_with("<?php") {
        return Some(Language::Php);
    }
    (lower.starts_with("<!doctype html") || lower.starts_with("<html")).then_some(Language::Html)
}
