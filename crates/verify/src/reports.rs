//! Structured reports that test runners write beside their output.
//!
//! A runner is asked for a report by an environment variable, or by arguments if the command only
//! calls the runner. The report goes to a directory that only this check can write; the runner's
//! output stays the same. Maven and Gradle write reports into the project by themselves.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use journeyman_sandbox::Request;
use journeyman_workspace::{ListOptions, Workspace, remove_tree, remove_trees_of_ended_processes};

use crate::Check;

/// The directory of the reports of all checks, in the project's state directory.
const REPORTS_DIRECTORY: &str = "check-reports";
/// Maximum number of report directories of this process at the same time.
const MAX_REPORT_DIRECTORIES: usize = 1_000;
/// Maximum bytes of one report, and of all of a check: some ten thousand tests.
const MAX_REPORT_BYTES: u64 = 8 << 20;
const MAX_TOTAL_REPORT_BYTES: u64 = 32 << 20;
/// Maximum number of report files in the project; Maven writes one for each class.
const MAX_PROJECT_REPORTS: usize = 2_000;
/// The files that runners are asked to write.
const REPORT_FILES: [&str; 6] =
    ["pytest.xml", "nextest.xml", "phpunit.xml", "jest.json", "vitest.json", "rspec.json"];
/// Characters after which a command is more than a program and its arguments.
const SHELL_CHARACTERS: &str = "|&;<>()$`\\\"'*?[]{}#~\n";

/// The reports of one check.
pub(crate) struct TestReports {
    directory: Option<ReportDirectory>,
}

/// A private directory, removed with this value.
struct ReportDirectory(PathBuf);

impl TestReports {
    /// Makes the command write its reports, if its runner can. If that fails, the check runs
    /// without reports: its output has most of their content.
    pub(crate) fn prepare(check: &Check, workspace: &Workspace, request: &mut Request) -> Self {
        let directory = ReportDirectory::create(workspace);
        if let Some(ReportDirectory(path)) = &directory
            && let Some(text) = path.to_str().filter(|text| is_plain_word(text))
        {
            request_pytest_report(text, request);
            if let Some(command) = with_report_arguments(&check.command, text)
                && (!command.contains(NEXTEST_CONFIG) || write_nextest_config(path).is_ok())
                && let Some(last) = request.argv.last_mut()
            {
                *last = OsString::from(command);
            }
            request.writable.push(path.clone());
        }
        Self { directory }
    }

    /// Reads the reports, each within bounds.
    pub(crate) fn read(&self, workspace: &Workspace, check: &Check) -> Vec<String> {
        let Some(ReportDirectory(directory)) = &self.directory else { return Vec::new() };
        let mut left = MAX_TOTAL_REPORT_BYTES;
        let mut all: Vec<String> = REPORT_FILES
            .iter()
            .filter_map(|name| read_report_file(&directory.join(name), &mut left))
            .collect();
        if all.is_empty() && writes_into_project(check) {
            all = read_project_reports(workspace, check, directory, left);
        }
        all
    }
}

impl ReportDirectory {
    fn create(workspace: &Workspace) -> Option<Self> {
        let all = workspace.state_dir().join(REPORTS_DIRECTORY);
        if all.starts_with(workspace.root()) {
            return None;
        }
        remove_trees_of_ended_processes(&all);
        DirBuilder::new().recursive(true).mode(0o700).create(&all).ok()?;
        (0..MAX_REPORT_DIRECTORIES).find_map(|number| {
            let path = all.join(format!("{}-{number:x}", std::process::id()));
            DirBuilder::new().mode(0o700).create(&path).ok().map(|()| Self(path))
        })
    }
}

impl Drop for ReportDirectory {
    fn drop(&mut self) {
        // The next check of another process removes a directory that can't be removed now.
        remove_tree(&self.0).ok();
    }
}

/// Returns true if the text needs no quotes on a command line.
fn is_plain_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte))
}

/// Requests a report by the environment variable from which pytest reads arguments, whatever starts
/// pytest.
fn request_pytest_report(directory: &str, request: &mut Request) {
    let name = OsStr::new("PYTEST_ADDOPTS");
    let mut options = request.env.get(name).cloned().unwrap_or_default();
    if !options.is_empty() {
        options.push(" ");
    }
    options.push(format!("--junitxml={directory}/pytest.xml"));
    request.env.insert(name.to_owned(), options);
}

/// The configuration file that makes nextest write a report; the project's own has precedence.
const NEXTEST_CONFIG: &str = "nextest.toml";

fn write_nextest_config(directory: &Path) -> std::io::Result<()> {
    let report = directory.join("nextest.xml");
    let text = format!("[profile.default.junit]\npath = \"{}\"\n", report.display());
    std::fs::write(directory.join(NEXTEST_CONFIG), text)
}

/// Returns the command with arguments that make its runner write a report; `None` if the command is
/// not a single runner, or names a report or a format itself.
fn with_report_arguments(command: &str, directory: &str) -> Option<String> {
    if command.contains(|c| SHELL_CHARACTERS.contains(c)) {
        return None;
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    let lacks = |options: &[&str]| {
        words
            .iter()
            .all(|word| options.iter().all(|option| word.split('=').next() != Some(*option)) && *word != "--")
    };
    let starters = ["npx", "pnpm", "yarn", "exec", "bundle", "php", "--no-install", "cargo"];
    let at = words.iter().position(|word| !starters.contains(word))?;
    let program = words.get(at)?.rsplit('/').next()?;
    let next = words.get(at + 1).copied();
    let arguments = match program {
        "jest" if lacks(&["--json", "--outputFile"]) => {
            format!("--json --outputFile={directory}/jest.json")
        }
        "vitest" if next == Some("run") && lacks(&["--reporter", "--outputFile"]) => {
            format!("--reporter=default --reporter=json --outputFile.json={directory}/vitest.json")
        }
        "phpunit" if lacks(&["--log-junit"]) => format!("--log-junit {directory}/phpunit.xml"),
        "rspec" if lacks(&["--format", "-f", "--out", "-o"]) => {
            format!("--format progress --format json --out {directory}/rspec.json")
        }
        "nextest" if next == Some("run") && lacks(&["--tool-config-file", "--profile", "-P"]) => {
            format!("--tool-config-file jm:{directory}/{NEXTEST_CONFIG}")
        }
        _ => return None,
    };
    Some(format!("{command} {arguments}"))
}

/// Reads a file that the check wrote, without following links or waiting for a pipe.
fn read_report_file(path: &Path, left: &mut u64) -> Option<String> {
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits() | rustix::fs::OFlags::NONBLOCK.bits());
    let file = OpenOptions::new().read(true).custom_flags(no_follow.ok()?).open(path).ok()?;
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    if length > MAX_REPORT_BYTES.min(*left) {
        return None;
    }
    let text = read_text(&file, length)?;
    *left = left.saturating_sub(length);
    Some(text)
}

fn read_text(file: &File, length: u64) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns true if the check's runner writes reports into the project.
fn writes_into_project(check: &Check) -> bool {
    ["mvn", "gradle", "maven"].iter().any(|name| check.command.contains(name) || check.ecosystem == *name)
}

/// Reads the reports of Maven and Gradle that are not older than the check.
fn read_project_reports(workspace: &Workspace, check: &Check, since: &Path, mut left: u64) -> Vec<String> {
    // The directory was made right before the check, by the same clock.
    let began = std::fs::metadata(since).and_then(|found| found.created().or_else(|_| found.modified()));
    let began = began.ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let Some(began) = began.and_then(|time| i128::try_from(time.as_nanos()).ok()) else { return Vec::new() };
    let options = ListOptions {
        under: check.directory.clone(),
        glob: Some("TEST-*.xml".to_owned()),
        include_ignored: true,
        limit: MAX_PROJECT_REPORTS,
    };
    let Ok(listing) = workspace.list(options) else { return Vec::new() };
    let reports = listing.paths.into_iter().filter_map(|path| {
        let stat = workspace.stat(&path).ok()??;
        if stat.modified_ns < began || stat.size > left {
            return None;
        }
        left = left.saturating_sub(stat.size);
        Some(workspace.read(&path, MAX_REPORT_BYTES).ok()?.text()?.to_owned())
    });
    reports.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_are_asked_for_reports_where_that_changes_nothing_else() {
        let cases = [
            ("npx jest", Some("npx jest --json --outputFile=/r/jest.json")),
            (
                "node_modules/.bin/jest --ci",
                Some("node_modules/.bin/jest --ci --json --outputFile=/r/jest.json"),
            ),
            ("npx jest --json", None),
            ("npx jest && true", None),
            ("npx jest -- a", None),
            ("npx vitest", None),
            (
                "npx vitest run",
                Some("npx vitest run --reporter=default --reporter=json --outputFile.json=/r/vitest.json"),
            ),
            ("vendor/bin/phpunit", Some("vendor/bin/phpunit --log-junit /r/phpunit.xml")),
            (
                "bundle exec rspec",
                Some("bundle exec rspec --format progress --format json --out /r/rspec.json"),
            ),
            ("bundle exec rspec --format=documentation", None),
            ("cargo nextest run", Some("cargo nextest run --tool-config-file jm:/r/nextest.toml")),
            ("cargo test", None),
            ("npm test", None),
            ("", None),
        ];
        for (command, expected) in cases {
            assert_eq!(with_report_arguments(command, "/r").as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn links_pipes_and_large_files_are_no_reports() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("good"), "<testsuite/>").unwrap();
        std::os::unix::fs::symlink(path("good"), path("link")).unwrap();
        std::fs::create_dir(path("dir")).unwrap();
        File::create(path("large")).unwrap().set_len(MAX_REPORT_BYTES + 1).unwrap();
        let read = |name: &str| read_report_file(&path(name), &mut MAX_TOTAL_REPORT_BYTES.clone());
        assert_eq!(read("good").as_deref(), Some("<testsuite/>"));
        for name in ["link", "dir", "large", "none"] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}
