//! What is a secret and what only looks like one.

use std::borrow::Cow;

use journeyman_policy::secrets::{Redactor, SECRET_MASK};
use proptest::prelude::*;
use serde_json::json;

/// Tokens as their issuers make them, from parts, so that no scanner takes this file for a leak.
fn tokens() -> Vec<(&'static str, String)> {
    let alphanumeric = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6";
    let hex = "0123456789abcdef0123456789abcdef";
    let of = |prefix: &str, length: usize| format!("{prefix}{}", &alphanumeric.repeat(4)[..length]);
    vec![
        ("AWS key id", format!("AK{}", "IAIOSFODNN7EXAMPLE")),
        ("AWS key id without digits", format!("AK{}", "IAABCDEFGHIJKLMNOP")),
        ("AWS temporary key id", format!("AS{}", "IAIOSFODNN7EXAMPLE")),
        ("GitHub", of("ghp_", 36)),
        ("GitHub OAuth", of("gho_", 36)),
        ("GitHub server", of("ghs_", 36)),
        ("GitHub fine-grained", format!("{}_{}", of("github_pat_", 22), &alphanumeric.repeat(2)[..59])),
        ("GitLab", of("glpat-", 20)),
        ("GitLab with dashes", format!("glpat-{}", "aB-dEfGh_jKlMnOpQrSt")),
        ("OpenAI", of("sk-", 48)),
        ("OpenAI project", format!("{}-{}_{}", of("sk-proj-", 40), &alphanumeric[..30], &alphanumeric[..20])),
        ("Anthropic", format!("{}-{}AA", of("sk-ant-api03-", 60), &alphanumeric[..30])),
        ("DeepSeek", format!("sk-{hex}")),
        ("OpenRouter", format!("sk-or-v1-{hex}{hex}")),
        ("Google", of("AIza", 35)),
        ("Slack", format!("xoxb-{}-{}-{}", "123456789012", "1234567890123", &alphanumeric[..24])),
        ("Slack user", format!("xoxp-{}-{}-{hex}", "123456789012", "1234567890123")),
        ("Stripe", of("sk_live_", 24)),
        ("Stripe restricted", of("rk_live_", 24)),
        ("npm", of("npm_", 36)),
        ("PyPI", of("pypi-AgEIcHlwaS5vcmc", 100)),
        ("Hugging Face", of("hf_", 34)),
        ("Groq", of("gsk_", 52)),
        ("xAI", of("xai-", 80)),
        ("DigitalOcean", format!("dop_v1_{hex}{hex}")),
        ("SendGrid", format!("SG.{}.{}", &alphanumeric[..22], &alphanumeric[..43])),
        (
            "JWT",
            format!(
                "{}.{}.{}",
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
                "eyJzdWIiOiIxMjM0NTY3ODkwIn0",
                &alphanumeric[..43]
            ),
        ),
    ]
}

fn key(kind: &str, newline: &str) -> String {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let lines = [line, line, line, "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3S"].join(newline);
    format!("-----BEGIN {kind}-----{newline}{lines}{newline}-----END {kind}-----")
}

#[test]
fn every_shape_is_found_in_every_surrounding() {
    let redactor = Redactor::default();
    for (name, token) in tokens() {
        let surroundings = [
            "{}",
            "token={}",
            "\"{}\"",
            "'{}'",
            "key: {}\n",
            "{}.",
            "({})",
            "x {} y {} z",
            "a\\n{}\\n",
            "%3D{}&x=1",
            "https://user:{}@host/path",
            "TOKEN={};",
            "<b>{}</b>",
            "ä{}ä",
            "{},",
            "`{}`",
            "[{}]",
            "\u{1b}[0m {}",
        ];
        for surrounding in surroundings {
            let text = surrounding.replace("{}", &token);
            // A full stop can be part of some tokens; losing it is fine.
            let redacted = redactor.redact(&text).replace(&format!("{SECRET_MASK}."), SECRET_MASK);
            let expected = surrounding.replace("{}.", "{}").replace("{}", SECRET_MASK);
            assert_eq!(redacted, expected, "{name} in {surrounding:?}");
        }
    }
}

#[test]
fn credentials_of_a_header_are_found_and_the_header_kept() {
    let redactor = Redactor::default();
    for (text, expected) in [
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer «[secret]»"),
        ("authorization: bearer abc.def-ghi_jkl~0123456789==\r\n", "authorization: bearer «[secret]»\r\n"),
        ("-H 'Authorization: Bearer abcdef0123456789' x", "-H 'Authorization: Bearer «[secret]»' x"),
        ("Authorization: Basic dXNlcjpwYXNzMTIz", "Authorization: Basic «[secret]»"),
        ("Authorization: token 0123456789abcdef0123", "Authorization: token «[secret]»"),
    ] {
        assert_eq!(redactor.redact(text), expected);
    }
}

#[test]
fn private_keys_are_found_whole_however_they_are_written() {
    let redactor = Redactor::default();
    for kind in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        for newline in ["\n", "\r\n", "\\n", "\n    ", "\\n\" +\n  \""] {
            let text = format!("before;\n{}\nafter!", key(kind, newline).replace("\" +", "\""));
            assert_eq!(
                redactor.redact(&text),
                format!("before;\n{SECRET_MASK}\nafter!"),
                "{kind} {newline:?}"
            );
        }
    }
    let whole = key("PRIVATE KEY", "\n");
    let cut = &whole[..whole.find("-----END").unwrap()];
    assert_eq!(redactor.redact(cut), format!("{SECRET_MASK}\n"));
    let followed = format!("{cut}\nAnd here the text goes on, with words.");
    assert_eq!(
        redactor.redact(&followed),
        format!("{SECRET_MASK}\n\nAnd here the text goes on, with words.")
    );
    let old = key("RSA PRIVATE KEY", "\n").replacen(
        '\n',
        "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n",
        1,
    );
    assert_eq!(redactor.redact(&old), SECRET_MASK);
    assert_eq!(redactor.redact(&format!("{whole}\n{whole}")), format!("{SECRET_MASK}\n{SECRET_MASK}"));
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    let texts = [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "550e8400-e29b-41d4-a716-446655440000",
        "task-force risk-management-0123456789abcdef0123 desk-lamp whisk-broom-1234567890abcdef",
        "class=\"sk-folding-cube sk-cube-1 sk-circle-fade-dot-animation-12\"",
        "sk-your-api-key-here sk-xxxxxxxxxxxxxxxxxxxxxxxx sk-... sk-test sk-1234",
        "const PREFIX: &str = \"ghp_\"; ghp_short github_pat_ gho_ AKIA AKIAshort XAKIAIOSFODNN7EXAMPLE",
        "glpat-your-token-goes-here-now npm_config_registry npm_package_version npm_lifecycle_event",
        "hf_hub_download hf_transformers_cache_directory xoxo xox-box AIzacademy",
        "pypi-server pypi-publish-action cioran gsk_build_target",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IG9mIGNvZGUgdGhhdCBpcyBsb25n",
        "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==",
        "eyJhbGciOiJIUzI1NiJ9 eyJ.eyJ.x eyJson.eyJ2.sig",
        "if text.starts_with(\"-----BEGIN PRIVATE KEY-----\") && text.ends_with(\"-----END PRIVATE KEY-----\") { ok() }",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYD\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo\n-----END PUBLIC KEY-----",
        "Authorization: Bearer <token>",
        "Bearer ${TOKEN}",
        "Bearer authentication is required",
        "the bearer of news",
        "Authorization: Bearer {{token_from_vault}}",
        "Bearer tokens_are_used_here_for_all",
        "",
        "https://example.com/a/b?c=d#e",
        "/usr/lib/x86_64-linux-gnu/libssl.so.3",
        "v1.2.3-rc.4+build.5678",
        "R8_unorm r8_snorm SG.default xai-org/grok lin_api_client shpat_ csk-1",
        "fn whsec_verify() {} sk_test_mode sk_live_update rk_live_x",
        "grüße, 世界: «nichts»",
    ];
    let redactor = Redactor::default();
    for text in texts {
        assert!(
            matches!(redactor.redact(text), Cow::Borrowed(same) if same == text),
            "{text}: {}",
            redactor.redact(text)
        );
    }
}

#[test]
fn configured_values_are_found_anywhere() {
    let redactor = Redactor::new(
        [
            "hunter2-and-more",
            "  trimmed-value\n",
            "short",
            "pässwörter",
            "hunter2-and",
            "first-line-of-it-all\nsecond-line-of-it-all\nx",
        ]
        .map(str::to_owned),
    );
    for (text, expected) in [
        ("xhunter2-and-morey", "x«[secret]»y"),
        ("hunter2-and more", "«[secret]» more"),
        ("trimmed-value", "«[secret]»"),
        ("short", "short"),
        ("die pässwörter!", "die «[secret]»!"),
        ("hunter2-and-moretrimmed-value", "«[secret]»«[secret]»"),
        ("a\nsecond-line-of-it-all\nb", "a\n«[secret]»\nb"),
        ("first-line-of-it-all\nsecond-line-of-it-all\nx.", "«[secret]»."),
        ("HUNTER2-AND-MORE", "HUNTER2-AND-MORE"),
    ] {
        assert_eq!(redactor.redact(text), expected, "{text}");
    }
    assert!(!format!("{redactor:?}").contains("hunter"));
}

#[test]
fn a_value_of_seven_characters_is_not_looked_for_and_one_of_eight_is() {
    let redactor = Redactor::new(["1234567", "äöüäöüä", "abcdefgh", "        ", ""].map(str::to_owned));
    assert_eq!(
        redactor.redact("1234567 äöüäöüä abcdefgh         "),
        format!("1234567 äöüäöüä {SECRET_MASK}         ")
    );
}

#[test]
fn the_mask_is_never_masked() {
    let redactor = Redactor::new(["[secret]", "«[secret]»", "abcdefgh"].map(str::to_owned));
    let once = redactor.redact("abcdefgh").into_owned();
    assert_eq!(once, SECRET_MASK);
    assert_eq!(redactor.redact(&once), SECRET_MASK);
}

#[test]
fn json_is_searched_in_keys_strings_and_numbers_at_any_depth() {
    let redactor = Redactor::new(["hunter2-and-more", "1234567890"].map(str::to_owned));
    let mut value = json!({
        "a": ["hunter2-and-more", 1, null, true, 1.5, {"b": "x hunter2-and-more"}],
        "hunter2-and-more": {"c": 1234567890, "d": 1234567891, "e": "1234567890"},
        "last": "kept"
    });
    redactor.redact_json(&mut value);
    let expected = json!({
        "a": [SECRET_MASK, 1, null, true, 1.5, {"b": format!("x {SECRET_MASK}")}],
        SECRET_MASK: {"c": SECRET_MASK, "d": 1234567891, "e": SECRET_MASK},
        "last": "kept"
    });
    assert_eq!(value.to_string(), expected.to_string(), "the order of fields is kept, too");
    let mut deep = json!("hunter2-and-more");
    for _ in 0..10_000 {
        deep = serde_json::Value::Array(vec![deep]);
    }
    redactor.redact_json(&mut deep);
    for _ in 0..10_000 {
        let serde_json::Value::Array(mut inner) = deep else { panic!() };
        deep = inner.pop().unwrap();
    }
    assert_eq!(deep, json!(SECRET_MASK));
}

#[test]
fn texts_made_to_be_slow_are_not() {
    // Quadratic work on any of these would take many minutes.
    let redactor = Redactor::new(["aaaaaaaaaaaaaaaaaaaaaaaaaaaaab".to_owned()]);
    let pieces = [
        "sk-",
        "a",
        "ghp_",
        "eyJ.",
        "eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n-----END ",
        "Bearer ",
        "glpat-",
        "xoxb-1-",
        "SG.",
        "github_pat_",
        "-----BEGIN ",
        "AKIA",
        "\\nsk-",
        "%3Dsk-",
        "bearer bearer",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA;",
    ];
    for piece in pieces {
        let text = piece.repeat(500_000 / piece.len());
        assert!(redactor.redact(&text).len() <= text.len(), "{piece}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_configured_value_survives_and_the_rest_does(
        values in prop::collection::vec("[a-z]{8,12}|[ -~äß]{9,14}", 1..4),
        between in prop::collection::vec("[A-Z0-9 \n]{0,7}", 5),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 4),
    ) {
        let mut text = String::new();
        for (gap, pick) in between.iter().zip(&picks) {
            text.push_str(gap);
            text.push_str(pick.get::<String>(&values));
        }
        text.push_str(&between[4]);
        let redacted = Redactor::new(values.clone()).redact(&text).into_owned();
        for value in values.iter().map(|value| value.trim()).filter(|value| value.chars().count() >= 8) {
            prop_assert!(!redacted.contains(value), "{} in {}", value, redacted);
        }
    }

    #[test]
    fn any_text_is_searched_without_harm_and_twice_is_once(text in any::<String>(), token in prop::sample::select(tokens())) {
        let redactor = Redactor::default();
        let with = format!("{text} {} {text}", token.1);
        let once = redactor.redact(&with).into_owned();
        prop_assert!(!once.contains(&token.1));
        prop_assert_eq!(redactor.redact(&once).into_owned(), once);
    }

    #[test]
    fn ordinary_words_are_left_alone(text in "([a-z]{1,12}[ .,;:_-]){0,60}") {
        prop_assert!(matches!(Redactor::default().redact(&text), Cow::Borrowed(_)));
    }
}

/// A text with what stands at places replaced.
fn masked(redactor: &Redactor, text: &str) -> String {
    let (mut out, mut done) = (String::new(), 0);
    for place in redactor.find_secrets(text) {
        out.push_str(&text[done..place.start]);
        out.push_str(SECRET_MASK);
        done = place.end;
    }
    out + &text[done..]
}

#[test]
fn places_are_where_the_redactor_masks() {
    let redactor = Redactor::new(["hunter2hunter2".to_owned()]);
    for (name, token) in tokens() {
        for text in [format!("x {token} y"), format!("{token}\n{token}"), format!("hunter2hunter2{token}")] {
            assert_eq!(masked(&redactor, &text), redactor.redact(&text), "{name}");
        }
    }
    assert!(redactor.find_secrets("nothing of the kind").is_empty());
}

#[test]
fn passwords_in_addresses_are_found_and_the_rest_is_kept() {
    let redactor = Redactor::default();
    for (text, expected) in [
        ("https://bob:hunter2@host.example/x", "https://bob:«[secret]»@host.example/x"),
        ("https://bob:pw3@host", "https://bob:«[secret]»@host"),
        (
            "origin\thttps://bob:s3cr%40t%2F!@git.example/a.git (fetch)",
            "origin\thttps://bob:«[secret]»@git.example/a.git (fetch)",
        ),
        (
            "\turl = https://bob:letmein@git.example/a.git\n",
            "\turl = https://bob:«[secret]»@git.example/a.git\n",
        ),
        ("redis://:correct-horse@localhost:6379/0", "redis://:«[secret]»@localhost:6379/0"),
        ("postgres://app:p@ss:w0rd@db:5432/x?a=b@c", "postgres://app:«[secret]»@db:5432/x?a=b@c"),
        ("amqp://a:b1c2@[::1]/", "amqp://a:«[secret]»@[::1]/"),
        ("{\"u\":\"https:\\/\\/bob:hunter2@host\\/x\"}", "{\"u\":\"https:\\/\\/bob:«[secret]»@host\\/x\"}"),
        ("?to=https%3A%2F%2Fbob%3Ahunter2%40host%2Fx", "?to=https%3A%2F%2Fbob%3A«[secret]»%40host%2Fx"),
        ("https://0123456789abcdef0123456789abcdef@sentry.example/1", "https://«[secret]»@sentry.example/1"),
        (
            "https://bob:pässw0rd1@host/ and mail a@b.example",
            "https://bob:«[secret]»@host/ and mail a@b.example",
        ),
        ("mongodb+srv://u1:Zx9@$HOST/x", "mongodb+srv://u1:«[secret]»@$HOST/x"),
    ] {
        assert_eq!(redactor.redact(text), expected);
        assert_eq!(redactor.redact(expected), expected);
        assert_eq!(redactor.find_secrets(text).len(), 1, "{text}");
    }
}

#[test]
fn addresses_without_a_secret_stay() {
    let redactor = Redactor::default();
    for text in [
        "https://example.com/a:b@c https://example.com:8443/x?u=a@b",
        "ssh://git@github.com/a/b.git git@github.com:a/b.git https://bob@host/x",
        "https://user:password@host postgres://user:pass@localhost/db http://username:secret@proxy:3128",
        "postgres://postgres:postgres@localhost redis://:***@h amqp://guest:guest@h",
        "https://$USER:$PASSWORD@host https://${U}:${P}@host https://{user}:{pass}@{host} https://<u>:<p>@h",
        "https://user:xxxxxxxx@host https://me:your-token@host https://me:YOUR_TOKEN_HERE@host",
        "// see http://a.example, mail to: b@c.example",
        "file:///a:b@c  a://b: c@d  ://:@ :// ://:",
    ] {
        assert_eq!(redactor.redact(text), text);
    }
    // Linear: many beginnings and no end.
    let long = "://a:b".repeat(100_000);
    assert_eq!(redactor.redact(&long), long);
}

#[test]
fn values_behind_names_that_say_so_are_found_where_they_look_made() {
    let redactor = Redactor::default();
    for (text, expected) in [
        ("DB_PASSWORD=hunter2hunter2\n", "DB_PASSWORD=«[secret]»\n"),
        ("export STRIPE_SECRET_KEY=\"Abc-def-0123\" # x", "export STRIPE_SECRET_KEY=\"«[secret]»\" # x"),
        (".env:3:API_TOKEN=a1b2c3d4e5", ".env:3:API_TOKEN=«[secret]»"),
        ("+DJANGO_SECRET_KEY='x9_k!mm2=='", "+DJANGO_SECRET_KEY='«[secret]»'"),
        ("  12\tAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "  12\tAWS_SECRET_ACCESS_KEY=«[secret]»"),
        ("a\\nPGPASSWORD=Tr0ub4dor&3\\nb", "a\\nPGPASSWORD=«[secret]»\\nb"),
    ] {
        assert_eq!(redactor.redact(text), expected);
    }
    for text in [
        "DB_PASSWORD=changeme SECRET=$(cat x) TOKEN=${TOKEN} API_KEY=$KEY1234 TOKEN=your-token-here",
        "CACHE_KEY=deps-v1-linux64 PRIMARY_KEY=12345678 PASSWORD_FILE=/run/secrets/Pass1 API_TOKEN=/etc/Token1",
        "const API_TOKEN: &str = \"a1b2c3d4\"; let token = get_Token1(); TOKEN==Abcdefg1 max_tokens=Abcdefg12",
        "TOKEN_URL=https://Example1.com/x PASSWORD= SECRET=short1 KEY=Abcdefg1 token=Abcdefg1",
    ] {
        assert_eq!(redactor.redact(text), text);
    }
}

#[test]
fn every_secret_of_a_file_of_settings_is_masked() {
    use journeyman_policy::secrets::{is_settings_file, mask_settings};
    for path in [".env", "a/.env.local", ".env.production", "prod.env", ".ENV", "a\\.env"] {
        assert!(is_settings_file(path), "{path}");
    }
    for path in [
        ".env.example",
        ".env.sample",
        "env",
        ".environment",
        ".envrc",
        "a.environment",
        ".env.template",
        ".env/x",
    ] {
        assert!(!is_settings_file(path), "{path}");
    }
    let text = "# DB_NAME=x\nDB_HOST=localhost\nDB_PASSWORD=letmein\nexport API_KEY = 'two words'\nsmtp.password: abcd\n\
                TOKEN=\nSECRET=changeme\nPORT=80\r\nAUTH_TOKEN=tok\r\n     7\tX_SECRET=y1 z2\n.env:3:MY_PWD=q:r=s\n";
    let expected = "# DB_NAME=x\nDB_HOST=localhost\nDB_PASSWORD=«[secret]»\nexport API_KEY = '«[secret]»'\n\
                    smtp.password: «[secret]»\nTOKEN=\nSECRET=changeme\nPORT=80\r\nAUTH_TOKEN=«[secret]»\r\n     \
                    7\tX_SECRET=«[secret]»\n.env:3:MY_PWD=«[secret]»\n";
    assert_eq!(mask_settings(text), expected);
    assert_eq!(mask_settings(expected), expected);
    assert!(matches!(mask_settings("A=b\n"), Cow::Borrowed(_)));
}

#[test]
fn the_beginning_of_a_configured_value_is_found_at_the_end() {
    let redactor = Redactor::new(["hunter2-hunter2".to_owned(), "correct horse".to_owned()]);
    let cases =
        [("KEY=hunter2-h", 9), ("a hunt", 4), ("a hun", 0), ("hunter2 and", 0), ("correct ", 8), ("", 0)];
    for (text, bytes) in cases {
        assert_eq!(redactor.unfinished_bytes(text), bytes, "{text}");
    }
}

#[test]
fn a_key_of_several_lines_in_settings_is_masked_whole() {
    use journeyman_policy::secrets::{mask_settings, secret_settings};
    let body = ["MIIEowIBAAKCAQEAx1x", "b25seV9hX3Rlc3RfYm9keQ=="];
    let frame = |label: &str| format!("-----{label} RSA PRIVATE KEY-----");
    for quote in ["\"", "'", ""] {
        let key = format!("{}\n{}\n{}\n{}", frame("BEGIN"), body[0], body[1], frame("END"));
        let text = format!("A=1\nPRIVATE_KEY={quote}{key}{quote}\nDB_PASSWORD=letmein\nB=2\n");
        let expected =
            format!("A=1\nPRIVATE_KEY={quote}{SECRET_MASK}{quote}\nDB_PASSWORD={SECRET_MASK}\nB=2\n");
        assert_eq!(mask_settings(&text), expected);
        let values = secret_settings(&text);
        assert!(body.iter().chain(&["letmein"]).all(|line| values.iter().any(|value| value == line)));
    }
    let cut = format!("PRIVATE_KEY=\"{}\n{}\n", frame("BEGIN"), body[0]);
    assert_eq!(mask_settings(&cut), format!("PRIVATE_KEY=\"{SECRET_MASK}"));
}
