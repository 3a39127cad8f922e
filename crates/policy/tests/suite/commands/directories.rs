//! Relative operands are judged at the place where `cd` has led before.

use journeyman_policy::analyse_command;
use journeyman_protocol::Level;

/// Commands that reach outside of the project from where `cd` has led.
const OUTSIDE: &[&str] = &[
    "cd / && rm -r -f -- ./*",
    "cd / && rm -rf *",
    "cd /; rm -rf .",
    "cd /\nrm -rf ./*",
    "cd -- / && rm -rf ./*",
    "cd -P / && rm -rf ./*",
    "cd '/' && rm -rf ./*",
    "cd / && cd . && rm -rf ./*",
    "cd src && cd / && rm -rf ./*",
    "cd /usr/.. && rm -rf ./*",
    "cd /tmp/../etc && rm -rf x",
    "(cd / && rm -rf ./*)",
    "{ cd /; rm -rf ./*; }",
    "if cd /; then rm -rf ./*; fi",
    "pushd / && rm -rf ./*",
    "sh -c 'cd / && rm -rf ./*'",
    "true | (cd / && rm -rf ./*)",
    "cd ~ && rm -rf ./*",
    "cd && rm -rf *",
    "cd / && rm -rf etc",
    "cd /etc && rm passwd",
    "cd /etc && cp x passwd",
    "cd / && echo x > etc/passwd",
    "cd / && echo x >> ./etc/passwd",
    "cd $X && cd / && rm -rf ./*",
];

/// Commands whose operands lie in the project, in the sandbox's own `/tmp`, or nobody knows where.
const NOT_OUTSIDE: &[&str] = &[
    "cd src && rm -rf ./x",
    "cd src/.. && rm -rf x",
    "cd /tmp && rm -rf x",
    "(cd /) && rm -rf x",
    "(cd / && ls); rm -rf x",
    "cd / | true; rm -rf x",
    "sh -c 'cd /'; rm -rf x",
    "echo $(cd / && pwd); rm -rf x",
    "cd / && echo etc",
    "cd $X && rm -rf x",
];

#[test]
fn relative_operands_are_judged_where_cd_has_led() {
    for command in OUTSIDE {
        let found = analyse_command(command, &[]);
        assert_eq!(found.level, Level::System, "{command:?}: {}", found.reason);
    }
    for command in NOT_OUTSIDE {
        let found = analyse_command(command, &[]);
        assert!(found.level < Level::System, "{command:?}: {}", found.reason);
    }
}

#[test]
fn credentials_are_found_where_cd_has_led() {
    for command in ["cd ~/.ssh && cat id_rsa", "cd ~ && cat .ssh/id_rsa"] {
        let found = analyse_command(command, &[]);
        assert!(found.level >= Level::Shell, "{command:?}: {}", found.reason);
    }
}
