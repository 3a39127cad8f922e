//! Rules about what is written.

use journeyman_policy::Policy;
use journeyman_protocol::{Decision, Effects, Mode};

use crate::rules::{decided, user};

fn judge(policy: &Policy, command: &str) -> Decision {
    let effects = Effects { command: Some(command.to_owned()), ..Effects::default() };
    decided(policy, "run_command", None, Mode::Auto, &effects).0
}

#[test]
fn a_rule_about_writing_leaves_reading_alone() {
    let rules = "[[rule]]\nwrites = ['vendor/**', 'src/gen/**', '**/schema.sql']\ndecision = 'deny'";
    let (plain, ruled) = (Policy::default(), Policy::default().with_rules(user(rules).unwrap()));
    let denied = [
        "cp -r build/gen src",
        "cp new/schema.sql db",
        "cp a.c ./vendor/../vendor/a.c",
        "sed -i 's/a/b/' vendor/a.c",
        "perl -pi -e 's/a/b/' src/gen/b.c",
        "cat > VENDOR/a.c < b",
        "(cd src && rm gen/b.c)",
        "bash -c 'touch vendor/x'",
        "npx prettier@3 --write src/gen/b.ts",
        "uv run python -m black src/gen",
        "git stash -- vendor/a.c",
        "git checkout HEAD -- db/schema.sql",
        "tar -xf a.tar -C vendor",
        "protoc --cpp_out=src/gen x.proto",
        "mv src old",
        "find vendor -name '*.o' -delete",
        "find . -name '*.o' -fprint vendor/objects",
        "sed -n 's/a/b/w vendor/a.c' b.c",
        "gcc-13 -c a.c -ovendor/a.o",
        "cp -t vendor new/a.c",
        "cp -r new/gen/ src",
        "rsync -a new/ vendor/",
        "chmod -x vendor/a.sh",
        "git rm -rf .",
        "gunzip -k db/schema.sql.gz",
    ];
    let asked = [
        "d=vendor; sed -i s/a/b/ \"$d/a.c\"",
        "for f in vendor/*.c; do sed -i s/a/b/ \"$f\"; done",
        "grep -rl x vendor | xargs sed -i s/x/y/",
        "python3 -c \"open('vendor/a.c', 'w')\"",
        "python3 - <<'E'\n(Path('src') / 'gen' / 'b.c').write_text('')\nE",
        "git checkout vendor/a.c",
        "$REMOVE vendor/a.c; rm b",
    ];
    let untouched = [
        "cat vendor/a.c",
        "cp vendor/a.c build/a.c",
        "grep -rn x vendor > out.txt",
        "uniq vendor/a.c > build/u.txt",
        "touch -r vendor/a.c build/a.o",
        "patch -p1 -i vendor/patches/1.patch",
        "black . --exclude vendor",
        "eslint --fix src/app --ignore-pattern vendor/",
        "rsync -a ./ /tmp/out --exclude vendor/",
        "tar -czf build/vendor.tgz -C vendor .",
        "gcc -O2 -flto vendor/a.c -o build/a",
        "git checkout -b vendor/bump-zlib",
        "sed -i '/vendor/s/[^/]*$/x/' .gitignore",
        "for f in src/app/*.c; do sed -i 's/a/b/' \"$f\"; done",
        "grep -rl foo src/app | xargs sed -i 's/foo/bar/g'",
        "tmp=$(mktemp); jq . package.json > \"$tmp\" && mv \"$tmp\" package.json",
        "cp build/* docs/",
        "awk '{print $1}' vendor/a.c > build/out.txt",
        "perl -ne 'print if /int/' vendor/a.c",
        "python3 -c \"print(len(open('vendor/a.c').read()))\"",
        "PYTHONPATH=vendor pytest -q",
        "GOFLAGS=-mod=vendor go build ./...",
        "f() { grep -n \"$1\" vendor/a.c; }; f int",
        "make -C vendor",
        "sed -n '/w/p' vendor/a.c > b.c",
        "xz -dc vendor/a.xz > a",
        "ar t vendor/a.lib",
    ];
    for command in denied {
        assert_eq!(judge(&ruled, command), Decision::Deny, "{command}");
    }
    for command in asked {
        assert_eq!(judge(&ruled, command), Decision::Ask, "{command}");
    }
    for command in untouched {
        assert_eq!(judge(&ruled, command), judge(&plain, command), "{command}");
    }
    let wrong = user("[[rule]]\nwrites = ['a']\ndecision = 'allow'").unwrap_err();
    assert!(wrong.contains("`writes` is for what may not be written"), "{wrong}");
}

#[test]
fn rules_about_paths_follow_the_directory_that_an_option_names() {
    let rules =
        "[[rule]]\nwrites = ['dist/a']\ndecision = 'deny'\n\n[[rule]]\npaths = ['keys/b']\ndecision = 'deny'";
    let (plain, ruled) = (Policy::default(), Policy::default().with_rules(user(rules).unwrap()));
    for command in [
        "env -C dist rm a",
        "env --chdir=dist rm a",
        "env -C dist sh -c 'rm a'",
        "git -C dist rm a",
        "tar -xf x.tar -C dist a",
        "env -C keys cat b",
        "git -C keys diff b",
        "make -C keys b",
        "make -kC keys b",
        "tar -C keys -cf /tmp/x.tar b",
        "xargs cat <<< keys/b",
        "cd keys && xargs cat <<E\nb\nE",
    ] {
        assert_eq!(judge(&ruled, command), Decision::Deny, "{command}");
    }
    for command in ["env -C lib rm a", "env -C dist cat a", "make -C dist a", "tar -cf x.tar -C dist a"] {
        assert_eq!(judge(&ruled, command), judge(&plain, command), "{command}");
    }
}

#[test]
fn a_program_that_unpacks_into_a_directory_writes_what_is_in_it() {
    let rules = "[[rule]]\nwrites = ['dist/a', 'lib/c/**']\ndecision = 'deny'\n";
    let (plain, ruled) = (Policy::default(), Policy::default().with_rules(user(rules).unwrap()));
    for command in [
        "find dist -execdir rm a \\;",
        "find dist -execdir rm {} \\;",
        "find dist -exec rm {} +",
        "unzip x.zip -d dist",
        "unzip -qo x.zip -d lib",
        "git apply --directory=dist p.diff",
        "git apply --directory dist p.diff",
        "patch -d dist < p.diff",
        "patch --directory=dist -i p.diff",
        "tar -x -f a.tar -C dist",
        "tar xf a.tar --directory=dist",
        "tar -xf a.tar -C dist a",
        "rsync -a new/ dist/",
        "rsync a dist/",
        "install -D new/a dist/a",
        "install -D -t dist new/a",
        "install -Dm644 new/a -t dist",
        "7z x a.7z -odist",
        "bsdtar -xf a.zip -C dist",
        "cpio -idD dist < a.cpio",
    ] {
        assert_ne!(judge(&ruled, command), Decision::Allow, "{command}");
    }
    for command in [
        "tar -xf a.tar -C build",
        "tar -xf a.tar -C dist b",
        "unzip x.zip -d build",
        "unzip -l x.zip",
        "patch -d src < p.diff",
        "git apply --directory=src p.diff",
        "git apply p.diff",
        "find src -execdir rm a \\;",
        "find dist -execdir cat a \\;",
    ] {
        assert_eq!(judge(&ruled, command), judge(&plain, command), "{command}");
    }
}
