//! Files by which a project runs code on the machine of everybody who builds, tests or installs it.
//!
//! Such files are ordinary work, which a model may change. But their code runs outside any sandbox
//! at the user's next build, so a report on a landed change lists them.

use journeyman_protocol::RelPath;

const RUN_BY_BUILD: &str = "a build runs it";
const RUN_BY_INSTALL: &str = "installing or building runs its scripts";
const RUN_BY_TESTS: &str = "a test run loads it";
const RUN_BY_TOOL: &str = "a tool that reads it runs what it names";
const RUN_BY_HOOKS: &str = "a manager of git hooks runs what it names";
const RUN_BY_CI: &str = "a build server runs it, with the secrets that it has";
const RUN_AS_TASKS: &str = "it is a list of commands that people run by name";

/// Names in lower case, with the program that runs the file.
const EXECUTED_NAMES: &[(&str, &str)] = &[
    ("build.rs", RUN_BY_BUILD),
    ("cargo.toml", RUN_BY_BUILD),
    ("workspace", RUN_BY_BUILD),
    ("workspace.bazel", RUN_BY_BUILD),
    ("module.bazel", RUN_BY_BUILD),
    ("build.bazel", RUN_BY_BUILD),
    (".bazelrc", RUN_BY_BUILD),
    ("gradle.properties", RUN_BY_BUILD),
    ("podfile", RUN_BY_INSTALL),
    ("fastfile", RUN_AS_TASKS),
    ("manage.py", RUN_AS_TASKS),
    ("phpunit.xml", RUN_BY_TESTS),
    ("phpunit.xml.dist", RUN_BY_TESTS),
    (".pnp.cjs", RUN_BY_TOOL),
    (".pnp.loader.mjs", RUN_BY_TOOL),
    (".gitlab-ci.yml", RUN_BY_CI),
    ("jenkinsfile", RUN_BY_CI),
    ("makefile", RUN_AS_TASKS),
    ("gnumakefile", RUN_AS_TASKS),
    ("justfile", RUN_AS_TASKS),
    (".justfile", RUN_AS_TASKS),
    ("taskfile.yml", RUN_AS_TASKS),
    ("taskfile.yaml", RUN_AS_TASKS),
    ("rakefile", RUN_AS_TASKS),
    ("configure", RUN_BY_BUILD),
    ("configure.ac", RUN_BY_BUILD),
    ("cmakelists.txt", RUN_BY_BUILD),
    ("meson.build", RUN_BY_BUILD),
    ("sconstruct", RUN_BY_BUILD),
    ("wscript", RUN_BY_BUILD),
    ("build.zig", RUN_BY_BUILD),
    ("build.sbt", RUN_BY_BUILD),
    ("build.xml", RUN_BY_BUILD),
    ("pom.xml", RUN_BY_BUILD),
    ("gradlew", RUN_BY_BUILD),
    ("mvnw", RUN_BY_BUILD),
    ("gradle-wrapper.properties", RUN_BY_BUILD),
    ("package.swift", RUN_BY_BUILD),
    ("mix.exs", RUN_BY_BUILD),
    ("rebar.config", RUN_BY_BUILD),
    ("flake.nix", RUN_BY_BUILD),
    ("default.nix", RUN_BY_BUILD),
    ("shell.nix", RUN_BY_BUILD),
    ("dockerfile", RUN_BY_BUILD),
    ("vagrantfile", RUN_BY_BUILD),
    ("directory.build.props", RUN_BY_BUILD),
    ("directory.build.targets", RUN_BY_BUILD),
    ("package.json", RUN_BY_INSTALL),
    (".npmrc", RUN_BY_TOOL),
    (".yarnrc.yml", RUN_BY_TOOL),
    (".pnpmfile.cjs", RUN_BY_INSTALL),
    ("bunfig.toml", RUN_BY_TOOL),
    ("composer.json", RUN_BY_INSTALL),
    ("gemfile", RUN_BY_INSTALL),
    ("setup.py", RUN_BY_INSTALL),
    ("setup.cfg", RUN_BY_INSTALL),
    ("pyproject.toml", RUN_BY_INSTALL),
    ("sitecustomize.py", RUN_BY_TOOL),
    ("usercustomize.py", RUN_BY_TOOL),
    ("conftest.py", RUN_BY_TESTS),
    ("noxfile.py", RUN_AS_TASKS),
    ("tox.ini", RUN_AS_TASKS),
    ("tasks.py", RUN_AS_TASKS),
    ("pytest.ini", RUN_BY_TESTS),
    (".rspec", RUN_BY_TESTS),
    ("rust-toolchain", RUN_BY_TOOL),
    ("rust-toolchain.toml", RUN_BY_TOOL),
    (".pre-commit-config.yaml", RUN_BY_HOOKS),
    ("lefthook.yml", RUN_BY_HOOKS),
    (".lefthook.yml", RUN_BY_HOOKS),
    (".gitmodules", RUN_BY_TOOL),
    (".gitattributes", RUN_BY_TOOL),
    (".mise.toml", RUN_BY_TOOL),
    ("mise.toml", RUN_BY_TOOL),
    (".tool-versions", RUN_BY_TOOL),
];
/// Endings of names, in lower case.
const EXECUTED_ENDINGS: &[(&str, &str)] = &[
    (".gradle", RUN_BY_BUILD),
    (".gradle.kts", RUN_BY_BUILD),
    (".csproj", RUN_BY_BUILD),
    (".fsproj", RUN_BY_BUILD),
    (".vcxproj", RUN_BY_BUILD),
    (".gemspec", RUN_BY_INSTALL),
    (".podspec", RUN_BY_INSTALL),
    (".bzl", RUN_BY_BUILD),
    (".pth", RUN_BY_TOOL),
    (".mk", RUN_AS_TASKS),
    (".cmake", RUN_BY_BUILD),
    (".dockerfile", RUN_BY_BUILD),
];
/// Beginnings of names with several endings, in lower case.
const EXECUTED_BEGINNINGS: &[(&str, &str)] = &[(".mocharc.", RUN_BY_TESTS), (".lintstagedrc", RUN_BY_HOOKS)];
/// The last components of directories, in lower case, whose files all run.
const EXECUTED_DIRECTORIES: &[(&[&str], &str)] = &[
    (&[".github", "workflows"], RUN_BY_CI),
    (&[".github", "actions"], RUN_BY_CI),
    (&[".mvn"], RUN_BY_BUILD),
    (&[".yarn", "releases"], RUN_BY_TOOL),
    (&[".yarn", "plugins"], RUN_BY_TOOL),
];
/// Endings of JavaScript configuration files, each of which is a program.
const JS_CONFIG_ENDINGS: [&str; 6] =
    [".config.js", ".config.cjs", ".config.mjs", ".config.ts", ".config.cts", ".config.mts"];

/// Returns the way in which a file runs code on the machine of everybody who builds, tests or
/// installs the project, if it runs code. Accepts any letter case and depth.
#[must_use]
pub fn execution_reason(path: &RelPath) -> Option<&'static str> {
    let name = std::str::from_utf8(path.file_name()).ok()?.to_lowercase();
    let parent = path.components().rev().nth(1).map(<[u8]>::to_ascii_lowercase);
    if parent.as_deref() == Some(b".cargo") && matches!(name.as_str(), "config" | "config.toml") {
        return Some(RUN_BY_BUILD);
    }
    let above: Vec<String> =
        path.components().rev().skip(1).map(|name| String::from_utf8_lossy(name).to_lowercase()).collect();
    let is_in = |dirs: &[&str]| {
        above.windows(dirs.len()).any(|names| names.iter().rev().zip(dirs).all(|(name, dir)| name == dir))
    };
    if let Some((_, how)) = EXECUTED_DIRECTORIES.iter().find(|(dirs, _)| is_in(dirs)) {
        return Some(how);
    }
    if let Some((_, how)) = EXECUTED_NAMES.iter().find(|(known, _)| *known == name) {
        return Some(how);
    }
    let rc = name.strip_prefix('.').is_some_and(|name| name.ends_with("rc.js") || name.ends_with("rc.cjs"));
    if rc || JS_CONFIG_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return Some(RUN_BY_TOOL);
    }
    let begins = EXECUTED_BEGINNINGS.iter().find(|(front, _)| name.starts_with(front));
    begins.or_else(|| EXECUTED_ENDINGS.iter().find(|(ending, _)| name.ends_with(ending))).map(|(_, how)| *how)
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
            assert!(execution_reason(&RelPath::parse(path).unwrap()).is_some(), "{path}");
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
            assert_eq!(execution_reason(&RelPath::parse(path).unwrap()), None, "{path}");
        }
        assert_eq!(execution_reason(&RelPath::parse(b"\xff/build.rs").unwrap()), Some(RUN_BY_BUILD));
        assert_eq!(execution_reason(&RelPath::parse(b"\xff.mk").unwrap()), None);
    }
}
