//! `jm doctor`: what is installed, what the sandbox enforces here, which keys are set.

mod copies;
mod damage;
mod tiers;

use crate::open_state;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;

use journeyman_host::config::{Config, Environment};
use journeyman_host::providers;
use serde_json::{Value, json};

use crate::args::DoctorArgs;
use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;
use journeyman_host::load_trusted;
use journeyman_host::state::StateDirs;

/// The exit code where something that is stored is damaged.
pub(crate) const DAMAGED: u8 = 8;

/// Programs that make a difference, and what each is for.
const PROGRAMS: [(&str, &str); 15] = [
    ("git", "version control"),
    ("cargo", "checks of Rust projects"),
    ("node", "checks of JavaScript projects"),
    ("npm", "checks of JavaScript projects"),
    ("python3", "checks of Python projects"),
    ("pytest", "tests of Python projects"),
    ("go", "checks of Go projects"),
    ("make", "checks of Make projects"),
    ("docker", "commands in containers, where you allow them"),
    ("podman", "the same, in place of docker"),
    ("bwrap", "commands where this program may make no namespaces itself"),
    ("claude", "not used yet"),
    ("codex", "not used yet"),
    ("gemini", "not used yet"),
    ("opencode", "not used yet"),
];

pub(crate) async fn doctor(environment: &Environment, args: &DoctorArgs) -> Result<u8, HostError> {
    if args.repair {
        return damage::repair(environment).await;
    }
    let dirs = open_state(environment)?;
    let mut config = settings(environment, &dirs);
    config.sandbox_allow_root |= args.allow_root;
    let sandbox = tiers::report(&dirs, &config).await?;
    let enforces = sandbox.get("error").is_none();
    let programs: Vec<Value> = PROGRAMS
        .iter()
        .map(|(name, purpose)| json!({ "name": name, "installed": environment.has_program(name), "for": purpose }))
        .collect();
    let keys: Vec<Value> = providers(&Config::default())
        .iter()
        .map(|provider| {
            // Names only: a key's value is nobody's business here.
            let set: Vec<&String> =
                provider.key_env.iter().filter(|name| environment.var(name).is_some()).collect();
            json!({ "provider": provider.name, "variables": provider.key_env, "set": set, "local": provider.local })
        })
        .collect();
    let state = state(environment);
    // Before anything else opens the log.
    let damage = damage::report(environment).await?;
    let damaged = damage.get("damage").and_then(Value::as_array).is_some_and(|damage| !damage.is_empty());
    let copies = match copies::tiers(environment, &dirs, &config) {
        Ok(tiers) => json!({ "tiers": tiers, "kept": copies::kept(&dirs.dir) }),
        Err(error) => json!({ "tiers": [], "kept": [], "problem": error.to_string() }),
    };
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"), "state": state, "stored": damage, "sandbox": sandbox, "copies": copies,
        "programs": programs, "keys": keys,
    });
    if args.json {
        say!("{report}");
    } else {
        print(&report);
    }
    Ok(match damaged {
        true => DAMAGED,
        false => u8::from(
            !enforces
                || ["state", "stored"]
                    .iter()
                    .any(|part| report.pointer(&format!("/{part}/problem")).is_some()),
        ),
    })
}

/// Where sessions are kept, and whether they can be.
fn state(environment: &Environment) -> Value {
    let Some(dir) = environment.state_dir() else {
        return json!({ "problem": "there is no place for sessions: set HOME or XDG_STATE_HOME" });
    };
    // Private from the first, as the log itself makes it.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    let probe = made.and_then(|()| {
        let file = dir.join(format!(".probe-{}", std::process::id()));
        std::fs::write(&file, b"")?;
        std::fs::remove_file(&file)
    });
    match probe {
        Ok(()) => json!({ "directory": dir.display().to_string() }),
        Err(error) => json!({ "directory": dir.display().to_string(), "problem": error.to_string() }),
    }
}

/// The user's own settings; no project's.
fn settings(environment: &Environment, dirs: &StateDirs) -> Config {
    // There is no project in the directory of state.
    match load_trusted(environment, &dirs.dir) {
        Ok(config) => config,
        Err(error) => {
            tell!("{} {}", color::stderr().yellow("warning: your configuration isn't used:"), error);
            Config::default()
        }
    }
}

fn print(report: &Value) {
    let paint = color::stdout();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let yes = |value: &Value, key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
    let list = |key: &str| report.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mark = |good: bool| if good { paint.green("✓") } else { paint.yellow("–") };

    say!("{} {}", paint.bold("jm"), text(report, "version"));
    let state = report.get("state").cloned().unwrap_or_default();
    match state.get("problem").and_then(Value::as_str) {
        Some(problem) => say!("{} sessions: {} {problem}", paint.red("✗"), text(&state, "directory")),
        None => say!("{} sessions are kept in {}", mark(true), text(&state, "directory")),
    }
    damage::print(report.get("stored").unwrap_or(&Value::Null));

    say!("\n{}", paint.bold("sandbox"));
    tiers::print(report.get("sandbox").unwrap_or(&Value::Null));

    say!("\n{}", paint.bold("copies (jm run --isolate)"));
    copies::print(report.get("copies").unwrap_or(&Value::Null));

    say!("\n{}", paint.bold("programs"));
    for program in list("programs") {
        let installed = yes(&program, "installed");
        let name = text(&program, "name");
        say!("  {} {name:<9} {}", mark(installed), paint.dim(&text(&program, "for")));
    }

    say!("\n{}", paint.bold("keys (names only)"));
    for key in list("keys") {
        let names = |field: &str| {
            let names = key.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        };
        let (set, provider) = (names("set"), text(&key, "provider"));
        if yes(&key, "local") {
            say!("  {} {provider:<11} needs none", mark(true));
        } else if set.is_empty() {
            say!("  {} {provider:<11} {}", mark(false), paint.dim(&format!("set {}", names("variables"))));
        } else {
            say!("  {} {provider:<11} {set} is set", mark(true));
        }
    }
}
