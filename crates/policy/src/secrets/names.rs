//! Recognizes environment variables that hold secrets by their names.

/// Words that mark a secret anywhere in a name.
const SECRET_WORDS: &[&str] = &[
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PASSCODE",
    "PASSWORT",
    "KEY",
    "KEYS",
    "APIKEY",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "COOKIE",
    "JWT",
    "BEARER",
    "PAT",
    "DSN",
    "AUTH",
    "PRIVATE",
    "SIGNATURE",
    "WEBHOOK",
    "PWD",
];
/// Endings of words without a separator, as in `GHTOKEN` or `accessToken`.
const SECRET_ENDINGS: &[&str] =
    &["TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY"];
/// Last words that mean a place, a number or a name instead.
const HARMLESS_ENDS: &[&str] = &[
    "FILE", "PATH", "DIR", "SOCK", "SOCKET", "URL", "URI", "HOST", "PORT", "NAME", "TYPE", "METHOD", "TTL",
    "LENGTH", "LIMIT", "COUNT", "SIZE", "ENABLED", "PID", "TIMEOUT", "LAYOUT", "HOME", "AGENT", "PROVIDER",
    "USER", "EMAIL",
];
/// Complete names that look secret and are not.
const HARMLESS_NAMES: &[&str] = &["PWD", "OLDPWD", "LS_COLORS", "XAUTHORITY", "GPG_KEY"];
/// Complete names that don't look secret although their values contain credentials.
const SECRET_NAMES: &[&str] =
    &["DATABASE_URL", "REDIS_URL", "MONGODB_URI", "MONGO_URL", "AMQP_URL", "SENTRY_URL"];

/// Returns true if an environment variable of this name most likely holds a secret: a token, a key,
/// a password. Ignores letter case, and considers only the name.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if HARMLESS_NAMES.contains(&upper.as_str()) {
        return false;
    }
    if SECRET_NAMES.contains(&upper.as_str()) || upper.ends_with("CONNECTION_STRING") {
        return true;
    }
    let words =
        || upper.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    if words().next_back().is_some_and(|last| HARMLESS_ENDS.contains(&last)) {
        return false;
    }
    words().any(|word| {
        let word = word.trim_end_matches(|character: char| character.is_ascii_digit());
        SECRET_WORDS.contains(&word) || SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let secret = [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "github_token",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_ACCESS_KEY_ID",
            "NPM_TOKEN",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PWD",
            "STRIPE_SECRET",
            "DATABASE_URL",
            "SENTRY_DSN",
            "SLACK_WEBHOOK",
            "NPM_AUTH",
            "npm_config__authToken",
            "accessToken",
            "APIKEY",
            "API_KEY_2",
            "KEY",
            "TOKEN1",
            "SSH_PASSPHRASE",
            "AZURE_CLIENT_SECRET",
            "GOOGLE_CREDENTIALS",
            "AZURE_STORAGE_CONNECTION_STRING",
            "DJANGO_SECRET_KEY",
            "RAILS_MASTER_KEY",
        ];
        let harmless = [
            "PATH",
            "HOME",
            "PWD",
            "OLDPWD",
            "USER",
            "LANG",
            "TERM",
            "EDITOR",
            "SHELL",
            "SSH_AUTH_SOCK",
            "KEYBOARD_LAYOUT",
            "MONKEY",
            "TOKENIZERS_PARALLELISM",
            "MAX_TOKENS",
            "KEYMAP",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "XDG_SESSION_ID",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "GPG_KEY",
            "SECRET_PATH",
            "TOKEN_URL",
            "PASSENGER_COUNT",
            "COMPASS",
            "",
            "_",
            "CARGO_HOME",
            "RUSTFLAGS",
            "HTTP_PROXY",
            "PATH_SEPARATOR",
            "GPG_AGENT",
            "NODE_ENV",
            "\u{e9}",
        ];
        for name in secret {
            assert!(is_secret_name(name), "{name}");
        }
        for name in harmless {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
