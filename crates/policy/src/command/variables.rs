//! Variables that a command may set without changing what programs do.

/// Returns true for variables that a command may set for its own use, because no program reads
/// them.
pub(super) fn is_private_variable(name: &str) -> bool {
    name.starts_with(|c: char| c == '_' || c.is_ascii_lowercase())
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && !name.ends_with("_proxy")
        && !matches!(name, "path" | "cdpath" | "fpath" | "_" | "manpath" | "prompt" | "histchars")
}

/// Returns true for variables that change how much a program prints, and not what it runs.
pub(super) fn is_harmless_variable(name: &str) -> bool {
    const HARMLESS_VARIABLES: &[&str] = &[
        "CARGO_TERM_COLOR",
        "CI",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "FORCE_COLOR",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_COLLATE",
        "LC_CTYPE",
        "LC_MESSAGES",
        "LC_NUMERIC",
        "LC_TIME",
        "LINES",
        "NODE_ENV",
        "NO_COLOR",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
        "PYTHONUNBUFFERED",
        "RUST_BACKTRACE",
        "RUST_LOG",
        "RUST_MIN_STACK",
        "RUST_TEST_THREADS",
        "TERM",
        "TZ",
    ];
    HARMLESS_VARIABLES.contains(&name)
}
