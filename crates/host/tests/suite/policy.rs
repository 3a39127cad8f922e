//! Files of rules, from the disk to a verdict and back.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use journeyman_host::config::ConfigError;
use journeyman_host::config::{Environment, LoadedPolicy, load_policy, save_user_rules};
use journeyman_policy::{Call, RuleLayer, Rules};
use journeyman_protocol::{Decision, Effects, Mode, RelPath};

/// A machine with places for the layers.
struct Machine {
    place: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { place: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(machine.at("project")).unwrap();
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    fn file(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), text).unwrap();
    }

    fn load(&self) -> Result<LoadedPolicy, ConfigError> {
        let vars = BTreeMap::from([("XDG_CONFIG_HOME".into(), self.at("config").into_os_string())]);
        let environment = Environment { vars, home: None, cwd: self.at("project") };
        load_policy(&environment, &self.at("project"), Some(&self.at("admin/policy.toml")), &[])
    }

    fn decides(&self, path: &str) -> Decision {
        let effects = Effects { writes: vec![RelPath::parse(path).unwrap()], ..Effects::default() };
        let call =
            Call { tool: "write_file", agent: None, mode: Mode::Ask, effects: &effects, sandbox: None };
        self.load().unwrap().policy.judge(&call).decision
    }
}

const USER: &str = "config/journeyman/policy.toml";
const PROJECT: &str = "project/.journeyman/policy.toml";
const ADMIN: &str = "admin/policy.toml";

fn rule(path: &str, decision: &str) -> String {
    format!("[[rule]]\npaths = ['{path}']\ndecision = '{decision}'\n")
}

#[test]
fn every_file_counts_and_none_loosens_another() {
    let machine = Machine::new();
    let none = machine.load().unwrap();
    assert_eq!(
        none.files.iter().map(|file| (file.layer, file.rules)).collect::<Vec<_>>(),
        [(RuleLayer::Admin, None), (RuleLayer::User, None), (RuleLayer::Project, None)]
    );
    machine.file(
        USER,
        &[rule("a", "allow"), rule("b", "allow"), rule("c", "allow"), rule("d", "deny")].concat(),
    );
    machine.file(PROJECT, &rule("b", "ask"));
    machine.file(ADMIN, &[rule("c", "deny"), rule("d", "allow"), rule("e", "allow")].concat());
    let counts: Vec<_> = machine.load().unwrap().files.into_iter().map(|file| file.rules).collect();
    assert_eq!(counts, [Some(3), Some(4), Some(1)]);
    for (path, decision) in [
        ("a", Decision::Allow),
        ("b", Decision::Ask),
        ("c", Decision::Deny),
        ("d", Decision::Deny),
        ("e", Decision::Allow),
        ("f", Decision::Ask),
    ] {
        assert_eq!(machine.decides(path), decision, "{path}");
    }
}

#[test]
fn a_part_of_a_repository_is_bound_by_the_whole() {
    let machine = Machine::new();
    machine.file(USER, &rule("*", "allow").replace("'*'", "'a', 'b', 'c'"));
    machine.file(".journeyman/policy.toml", &rule("a", "deny"));
    // Nothing above belongs to it while there is no repository.
    assert_eq!(machine.decides("a"), Decision::Allow);
    machine.file(".git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(machine.decides("a"), Decision::Deny);
    assert_eq!(machine.decides("b"), Decision::Allow);
    // One that is a repository of its own is a whole.
    machine.file("project/.git", "gitdir: elsewhere\n");
    assert_eq!(machine.decides("a"), Decision::Allow);
}

#[test]
fn what_cannot_be_read_is_told_with_its_file() {
    /// Puts something wrong at a path.
    type Make = dyn Fn(&Machine, &Path);
    let cases: [(&str, &Make); 5] = [
        (PROJECT, &|_, path| std::fs::write(path, rule("a", "allow")).unwrap()),
        (USER, &|_, path| std::fs::write(path, "[[rule]]\n").unwrap()),
        (ADMIN, &|_, path| std::fs::write(path, b"\xff").unwrap()),
        (USER, &|_, path| std::fs::create_dir(path).unwrap()),
        (PROJECT, &|machine, path| {
            machine.file("elsewhere", &rule("a", "deny"));
            symlink(machine.at("elsewhere"), path).unwrap();
        }),
    ];
    for (name, make) in cases {
        let machine = Machine::new();
        let path = machine.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        make(&machine, &path);
        let error = machine.load().unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{name}: {error}");
    }
    // The user's own may be kept elsewhere.
    let machine = Machine::new();
    machine.file("dotfiles/policy.toml", &rule("a", "deny"));
    std::fs::create_dir_all(machine.at("config/journeyman")).unwrap();
    symlink(machine.at("dotfiles/policy.toml"), machine.at(USER)).unwrap();
    assert_eq!(machine.decides("a"), Decision::Deny);
}

#[test]
fn what_is_kept_is_added_once_and_leaves_the_rest_as_it_was() {
    let machine = Machine::new();
    let dir = machine.at("config/journeyman");
    let rules = |path: &str| Rules::parse(&rule(path, "allow"), RuleLayer::Session, "").unwrap();
    assert_eq!(save_user_rules(&dir, &rules("a"), "2026-01-31").unwrap(), machine.at(USER));
    let first = std::fs::read_to_string(machine.at(USER)).unwrap();
    assert_eq!(
        first,
        "# Allowed \"forever\" on 2026-01-31.\n[[rule]]\npaths = [\"a\"]\ndecision = \"allow\"\n"
    );
    assert_eq!(std::fs::metadata(machine.at(USER)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(machine.decides("a"), Decision::Allow);
    save_user_rules(&dir, &rules("a"), "2026-02-01").unwrap();
    assert_eq!(std::fs::read_to_string(machine.at(USER)).unwrap(), first, "it is there already");

    // A file that is kept elsewhere, without a newline at its end, with a mode of its own.
    let machine = Machine::new();
    let dir = machine.at("config/journeyman");
    machine.file("dotfiles/mine.toml", "# mine\n[[rule]]\npaths = ['x']\ndecision = 'deny' # yes");
    let kept = machine.at("dotfiles/mine.toml");
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir_all(&dir).unwrap();
    symlink(&kept, machine.at(USER)).unwrap();
    save_user_rules(&dir, &rules("b"), "a\nday").unwrap();
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(
        text.starts_with("# mine\n[[rule]]\npaths = ['x']\ndecision = 'deny' # yes\n\n# Allowed"),
        "{text}"
    );
    assert!(machine.at(USER).is_symlink());
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!((machine.decides("x"), machine.decides("b")), (Decision::Deny, Decision::Allow));
    let left: Vec<_> = std::fs::read_dir(machine.at("dotfiles")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside it");

    // One that can't be read is not touched.
    std::fs::write(&kept, "[[rule]]").unwrap();
    assert!(save_user_rules(&dir, &rules("c"), "today").is_err());
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "[[rule]]");
}
