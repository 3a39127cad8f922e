//! Ecosystems in which one program builds and tests a project with a manifest of its own.

use journeyman_protocol::{CheckKind, RelPath};

use super::project::{Project, ProjectDirectory, file_name};
use crate::Check;

/// Maximum number of files that are read to find out whether there are tests.
const MAX_PROBED_FILES: usize = 50;

/// A program that builds and tests projects.
struct BuildTool {
    /// The name in evidence.
    name: &'static str,
    /// Manifests of which one makes a directory its project; `*.x` stands for any with this ending.
    manifests: &'static [&'static str],
    program: &'static str,
    /// The place from which to get the program.
    source: &'static str,
    /// A script of the project that runs the right version of the program.
    wrapper: Option<&'static str>,
    /// The signs of tests; empty if a project always has tests.
    tests: &'static [TestSign],
    /// The arguments that run the tests.
    test: &'static str,
    /// The arguments of the check that proves most if there are no tests.
    without_tests: Option<(CheckKind, &'static str)>,
    /// Further checks, each with the files that configure it.
    further: &'static [ExtraCheck],
}

/// A sign that a project has tests.
enum TestSign {
    /// A file of this name, beneath the directory, has one of these texts.
    Says(&'static str, &'static [&'static str]),
    /// A file lies in this directory.
    In(&'static str),
    /// A file ends with this.
    Ending(&'static str),
}

/// A check beside the tests.
struct ExtraCheck {
    kind: CheckKind,
    /// Files of which one configures the check; empty for a check that needs no configuration.
    configured_by: &'static [&'static str],
    arguments: &'static str,
    fix: Option<&'static str>,
}

use TestSign::{Ending, In, Says};

const BUILD_TOOLS: [BuildTool; 20] = [
    BuildTool {
        name: "dune",
        manifests: &["dune-project"],
        program: "dune",
        source: "`opam install dune`",
        wrapper: None,
        tests: &[
            Says("dune", &["(test", "(inline_tests", "(cram", "(expect_test"]),
            Ending(".t"),
            In("test"),
        ],
        test: "test",
        without_tests: Some((CheckKind::Build, "build")),
        further: &[ExtraCheck {
            kind: CheckKind::Lint,
            configured_by: &[".ocamlformat"],
            arguments: "build @fmt",
            fix: Some("fmt"),
        }],
    },
    BuildTool {
        name: "zig",
        manifests: &["build.zig"],
        program: "zig",
        source: "https://ziglang.org",
        wrapper: None,
        tests: &[Says("build.zig", &["step(\"test\""])],
        test: "build test",
        without_tests: Some((CheckKind::Build, "build")),
        further: &[],
    },
    BuildTool {
        name: "swift",
        manifests: &["Package.swift"],
        program: "swift",
        source: "https://swift.org/install",
        wrapper: None,
        tests: &[Says("Package.swift", &[".testTarget("])],
        test: "test",
        without_tests: Some((CheckKind::Build, "build")),
        further: &[],
    },
    BuildTool {
        name: "sbt",
        manifests: &["build.sbt"],
        program: "sbt",
        source: "https://www.scala-sbt.org",
        wrapper: None,
        tests: &[],
        test: "-batch -no-colors test",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "mill",
        manifests: &["build.mill", "build.sc"],
        program: "mill",
        source: "https://mill-build.org",
        wrapper: Some("mill"),
        tests: &[],
        test: "__.test",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "stack",
        manifests: &["stack.yaml"],
        program: "stack",
        source: "https://docs.haskellstack.org",
        wrapper: None,
        tests: &[],
        test: "test",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "cabal",
        manifests: &["cabal.project", "*.cabal"],
        program: "cabal",
        source: "https://www.haskell.org/ghcup",
        wrapper: None,
        tests: &[Says("*.cabal", &["test-suite"])],
        test: "test all",
        without_tests: Some((CheckKind::Build, "build all")),
        further: &[],
    },
    BuildTool {
        name: "rebar3",
        manifests: &["rebar.config"],
        program: "rebar3",
        source: "https://rebar3.org",
        wrapper: None,
        tests: &[In("test"), Ending("_tests.erl"), Ending("_SUITE.erl")],
        test: "do eunit, ct",
        without_tests: Some((CheckKind::Build, "compile")),
        further: &[],
    },
    BuildTool {
        name: "gleam",
        manifests: &["gleam.toml"],
        program: "gleam",
        source: "https://gleam.run",
        wrapper: None,
        tests: &[In("test")],
        test: "test",
        without_tests: Some((CheckKind::Types, "check")),
        further: &[],
    },
    BuildTool {
        name: "leiningen",
        manifests: &["project.clj"],
        program: "lein",
        source: "https://leiningen.org",
        wrapper: None,
        tests: &[],
        test: "-o test",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "dart",
        manifests: &["pubspec.yaml"],
        program: "dart",
        source: "https://dart.dev",
        wrapper: None,
        tests: &[In("test")],
        test: "test",
        without_tests: None,
        further: &[ExtraCheck {
            kind: CheckKind::Types,
            configured_by: &[],
            arguments: "analyze",
            fix: Some("fix --apply"),
        }],
    },
    BuildTool {
        name: "crystal",
        manifests: &["shard.yml"],
        program: "crystal",
        source: "https://crystal-lang.org",
        wrapper: None,
        tests: &[In("spec")],
        test: "spec --no-color",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "nimble",
        manifests: &["*.nimble"],
        program: "nimble",
        source: "https://nim-lang.org",
        wrapper: None,
        tests: &[In("tests"), Says("*.nimble", &["task test"])],
        test: "test -y",
        without_tests: Some((CheckKind::Build, "build -y")),
        further: &[],
    },
    BuildTool {
        name: "dub",
        manifests: &["dub.json", "dub.sdl"],
        program: "dub",
        source: "https://dub.pm",
        wrapper: None,
        tests: &[],
        test: "test",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "julia",
        manifests: &["Project.toml"],
        program: "julia",
        source: "https://julialang.org",
        wrapper: None,
        tests: &[Says("runtests.jl", &[""])],
        test: "--project=. -e 'using Pkg; Pkg.test()'",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "bazel",
        manifests: &["MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"],
        program: "bazel",
        source: "https://bazel.build",
        wrapper: None,
        tests: &[],
        test: "test //...",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "ant",
        manifests: &["build.xml"],
        program: "ant",
        source: "https://ant.apache.org",
        wrapper: None,
        tests: &[Says("build.xml", &["name=\"test\""])],
        test: "test",
        without_tests: Some((CheckKind::Build, "-q")),
        further: &[],
    },
    BuildTool {
        name: "perl",
        manifests: &["Makefile.PL", "Build.PL", "cpanfile", "dist.ini"],
        program: "prove",
        source: "Perl",
        wrapper: None,
        tests: &[In("t")],
        test: "-lr t",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "busted",
        manifests: &[".busted"],
        program: "busted",
        source: "`luarocks install busted`",
        wrapper: None,
        tests: &[],
        test: "-o TAP",
        without_tests: None,
        further: &[],
    },
    BuildTool {
        name: "scons",
        manifests: &["SConstruct"],
        program: "scons",
        source: "`pip install scons`",
        wrapper: None,
        tests: &[Says("SConstruct", &["Alias('test'", "Alias(\"test\""])],
        test: "test",
        without_tests: Some((CheckKind::Build, "-Q")),
        further: &[],
    },
];

/// Returns the checks of the tools whose manifest stands in the directory. If another ecosystem has
/// `tested` the project already, a tool's tests are listed and not run: such a manifest mostly
/// serves a part of the project, or calls the other tool.
pub(super) fn find_checks(place: &ProjectDirectory<'_>, tested: bool) -> Vec<Check> {
    let tools = BUILD_TOOLS.iter().filter_map(|tool| Some((tool, tool.manifest(place)?)));
    let mut tested = tested;
    let mut checks = Vec::new();
    for (tool, manifest) in tools {
        let found = tool.checks(place, &manifest);
        checks.extend(found.into_iter().map(|check| match tested {
            true => check.with_unasked("another ecosystem tests this directory"),
            false => check,
        }));
        tested |= checks.iter().any(|check: &Check| check.kind == CheckKind::Test);
    }
    checks
}

/// Returns true if `directory` has a manifest that is known by its ending.
pub(super) fn has_manifest_by_ending(project: &dyn Project, directory: &RelPath) -> bool {
    let place = ProjectDirectory { project, directory: Some(directory) };
    let endings = BUILD_TOOLS.iter().flat_map(|tool| tool.manifests).filter(|name| name.starts_with('*'));
    endings.into_iter().any(|name| find_manifest(&place, name).is_some())
}

/// Returns the file of the directory that a manifest's name or its ending stands for.
fn find_manifest(place: &ProjectDirectory<'_>, manifest: &str) -> Option<String> {
    let Some(ending) = manifest.strip_prefix('*') else {
        return place.has_file(manifest).then(|| manifest.to_owned());
    };
    let mut own = place.files().filter(|path| !path.contains(&b'/') && path.ends_with(ending.as_bytes()));
    own.next().map(|path| String::from_utf8_lossy(path).into_owned())
}

impl BuildTool {
    fn manifest(&self, place: &ProjectDirectory<'_>) -> Option<String> {
        self.manifests.iter().find_map(|name| find_manifest(place, name))
    }

    fn checks(&self, place: &ProjectDirectory<'_>, manifest: &str) -> Vec<Check> {
        let wrapper = self.wrapper.filter(|wrapper| place.has_file(wrapper));
        let flutter =
            self.name == "dart" && place.read(manifest).is_some_and(|it| it.contains("sdk: flutter"));
        let program = if flutter { "flutter" } else { self.program };
        let command = |arguments: &str| match wrapper {
            Some(wrapper) => format!("sh ./{wrapper} {arguments}"),
            None => format!("{program} {arguments}"),
        };
        let mut checks = Vec::new();
        for check in
            self.further.iter().filter(|it| it.configured_by.is_empty() || place.has_any(it.configured_by))
        {
            let why = check.configured_by.first().copied().unwrap_or(manifest);
            let found = place.new_check(check.kind, self.name, command(check.arguments), why);
            checks.push(match check.fix.filter(|_| !flutter) {
                Some(fix) => found.with_fix(command(fix)),
                None => found,
            });
        }
        if self.tests.is_empty() || self.tests.iter().any(|sign| sign.is_present(place)) {
            checks.push(place.new_check(CheckKind::Test, self.name, command(self.test), manifest));
        } else if let Some((kind, arguments)) = self.without_tests {
            checks.push(place.new_check(kind, self.name, command(arguments), manifest));
        }
        if wrapper.is_some() {
            return checks;
        }
        checks.into_iter().map(|check| place.block_without_program(program, self.source, check)).collect()
    }
}

impl TestSign {
    fn is_present(&self, place: &ProjectDirectory<'_>) -> bool {
        match self {
            In(directory) => {
                let prefix = format!("{directory}/");
                place.files().any(|path| path.starts_with(prefix.as_bytes()))
            }
            Ending(ending) => place.files().any(|path| path.ends_with(ending.as_bytes())),
            Says(name, texts) => {
                let is_named = |path: &&[u8]| match name.strip_prefix('*') {
                    Some(ending) => path.ends_with(ending.as_bytes()),
                    None => file_name(path) == name.as_bytes(),
                };
                let files: Vec<&[u8]> = place.files().filter(is_named).take(MAX_PROBED_FILES).collect();
                let read = files.into_iter().filter_map(|path| place.read(std::str::from_utf8(path).ok()?));
                read.into_iter().any(|text| texts.iter().any(|it| text.contains(it)))
            }
        }
    }
}
