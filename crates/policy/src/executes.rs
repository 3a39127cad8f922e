//! Files by which a project runs code on the machine of everybody who builds, tests or installs it.
//!
//! Such files are ordinary work, which a model may change. But their code runs outside any sandbox
//! at the user's next build, so a report on a landed change lists them.

use journeyman_protocol::RelPath;

const BUILD: &str = "a build runs it";
const INSTALL: &str = "installing or building runs its scripts";
const TESTS: &str = "a test run loads it";
const TOOL: &str = "a tool that reads it runs what it names";
const HOOKS: &str = "a manager of git hooks runs what it names";
const PIPELINE: &str = "a build server runs it, with the secrets that it has";
const TASKS: &str = "it is a list of commands that people run by name";

/// Names in lower case, with the program that runs the file.
const NAMES: &[(&str, &str)] = &[
    ("build.rs", BUILD),
    ("cargo.toml", BUILD),
    ("workspace", BUILD),
    ("workspace.bazel", BUILD),
    ("module.bazel", BUILD),
    ("build.bazel", BUILD),
    (".bazelrc", BUILD),
    ("gradle.properties", BUILD),
    ("podfile", INSTALL),
    ("fastfile", TASKS),
    ("manage.py", TASKS),
    ("phpunit.xml", TESTS),
    ("phpunit.xml.dist", TESTS),
    (".pnp.cjs", TOOL),
    (".pnp.loader.mjs", TOOL),
    (".gitlab-ci.yml", PIPELINE),
    ("jenkinsfile", PIPELINE),
    ("makefile", TASKS),
    ("gnumakefile", TASKS),
    ("justfile", TASKS),
    (".justfile", TASKS),
    ("taskfile.yml", TASKS),
    ("taskfile.yaml", TASKS),
    ("rakefile", TASKS),
    ("configure", BUILD),
    ("configure.ac", BUILD),
    ("cmakelists.txt", BUILD),
    ("meson.build", BUILD),
    ("sconstruct", BUILD),
    ("wscript", BUILD),
    ("build.zig", BUILD),
    ("build.sbt", BUILD),
    ("build.xml", BUILD),
    ("pom.xml", BUILD),
    ("gradlew", BUILD),
    ("mvnw", BUILD),
    ("gradle-wrapper.properties", BUILD),
    ("package.swift", BUILD),
    ("mix.exs", BUILD),
    ("rebar.config", BUILD),
    ("flake.nix", BUILD),
    ("default.nix", BUILD),
    ("shell.nix", BUILD),
    ("dockerfile", BUILD),
    ("vagrantfile", BUILD),
    ("directory.build.props", BUILD),
    ("directory.build.targets", BUILD),
    ("package.json", INSTALL),
    (".npmrc", TOOL),
    (".yarnrc.yml", TOOL),
    (".pnpmfile.cjs", INSTALL),
    ("bunfig.toml", TOOL),
    ("composer.json", INSTALL),
    ("gemfile", INSTALL),
    ("setup.py", INSTALL),
    ("setup.cfg", INSTALL),
    ("pyproject.toml", INSTALL),
    ("sitecustomize.py", TOOL),
    ("usercustomize.py", TOOL),
    ("conftest.py", TESTS),
    ("noxfile.py", TASKS),
    ("tox.ini", TASKS),
    ("tasks.py", TASKS),
    ("pytest.ini", TESTS),
    (".rspec", TESTS),
    ("rust-toolchain", TOOL),
    ("rust-toolchain.toml", TOOL),
    (".pre-commit-config.yaml", HOOKS),
    ("lefthook.yml", HOOKS),
    (".lefthook.yml", HOOKS),
    (".gitmodules", TOOL),
    (".gitattributes", TOOL),
    (".mise.toml", TOOL),
    ("mise.toml", TOOL),
    (".tool-versions", TOOL),
];
/// Endings of names, in lower case.
const ENDINGS: &[(&str, &str)] = &[
    (".gradle", BUILD),
    (".gradle.kts", BUILD),
    (".csproj", BUILD),
    (".fsproj", BUILD),
    (".vcxproj", BUILD),
    (".gemspec", INSTALL),
    (".podspec", INSTALL),
    (".bzl", BUILD),
    (".pth", TOOL),
    (".mk", TASKS),
    (".cmake", BUILD),
    (".dockerfile", BUILD),
];
/// Beginnings of names with several endings, in lower case.
const BEGINNINGS: &[(&str, &str)] = &[(".mocharc.", TESTS), (".lintstagedrc", HOOKS)];
/// The last components of directories, in lower case, whose files all run.
const DIRECTORIES: &[(&[&str], &str)] = &[
    (&[".github", "workflows"], PIPELINE),
    (&[".github", "actions"], PIPELINE),
    (&[".mvn"], BUILD),
    (&[".yarn", "releases"], TOOL),
    (&[".yarn", "plugins"], TOOL),
];
/// Endings of JavaScript configuration files, each of which is a program.
const SCRIPTS: [&str; 6] =
    [".config.js", ".config.cjs", ".config.mjs", ".config.ts", ".config.cts", ".config.mts"];

/// Returns how a file runs code on the machine of everybody who builds, tests or installs the
/// project, if it does. Accepts any letter case and depth.
#[must_use]
pub fn runs_code(path: &RelPath) -> Option<&'static str> {
    let name = std::str::from_utf8(path.file_name()).ok()?.to_lowercase();
    let parent = path.components().rev().nth(1).map(<[u8]>::to_ascii_lowercase);
    if parent.as_deref() == Some(b".cargo") && matches!(name.as_str(), "config" | "config.toml") {
        return Some(BUILD);
    }
    let above: Vec<String> =
        path.components().rev().skip(1).map(|name| String::from_utf8_lossy(name).to_lowercase()).collect();
    let is_in = |dirs: &[&str]| {
        above.windows(dirs.len()).any(|names| names.iter().rev().zip(dirs).all(|(name, dir)| name == dir))
    };
    if let Some((_, how)) = DIRECTORIES.iter().find(|(dirs, _)| is_in(dirs)) {
        return Some(how);
    }
    if let Some((_, how)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(how);
    }
    let rc = name.strip_prefix('.').is_some_and(|name| name.ends_with("rc.js") || name.ends_with("rc.cjs"));
    if rc || SCRIPTS.iter().any(|ending| name.ends_with(ending)) {
        return Some(TOOL);
    }
    let begins = BEGINNINGS.iter().find(|(front, _)| name.starts_with(front));
    begins.or_else(|| ENDINGS.iter().find(|(ending, _)| name.ends_with(ending))).map(|(_, how)| *how)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let runs = [
            ".cargo/config.toml",
            "sub/.Cargo/config",
            "build.rs",
            "crates/a/build.rs",
            "Makefile",
            "GNUmakefile",
            "package.json",
            "web/package.json",
            "conftest.py",
            "tests/conftest.py",
            "setup.py",
            "CMakeLists.txt",
            "app/build.gradle.kts",
            "vite.config.ts",
            ".eslintrc.js",
            "x.csproj",
            "rules.mk",
            ".pre-commit-config.yaml",
            "Cargo.toml",
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            "Jenkinsfile",
            "WORKSPACE",
            "rules/a.bzl",
            ".bazelrc",
            ".mvn/wrapper/maven-wrapper.properties",
            ".mvn/jvm.config",
            "gradle.properties",
            ".yarn/releases/yarn-4.cjs",
            ".pnp.cjs",
            "manage.py",
            "phpunit.xml",
            ".mocharc.json",
            ".lintstagedrc",
            ".lintstagedrc.json",
            "ios/Podfile",
            "fastlane/Fastfile",
        ];
        for path in runs {
            assert!(runs_code(&RelPath::parse(path).unwrap()).is_some(), "{path}");
        }
        let not = [
            "src/main.rs",
            "config.toml",
            "cargo/config.toml",
            "README.md",
            "src/build.rs.txt",
            "tests/test_a.py",
            "package-lock.json",
            "a.json",
            "makefile.md",
            "src/config.js.map",
            ".github/CODEOWNERS",
            "docs/workflows/a.md",
            ".yarn/cache/a.zip",
            "Cargo.lock",
        ];
        for path in not {
            assert_eq!(runs_code(&RelPath::parse(path).unwrap()), None, "{path}");
        }
        assert_eq!(runs_code(&RelPath::parse(b"\xff/build.rs").unwrap()), Some(BUILD));
        assert_eq!(runs_code(&RelPath::parse(b"\xff.mk").unwrap()), None);
    }
}
