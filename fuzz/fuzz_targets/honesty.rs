//! A change of a file and of a test, as the honesty rules read it.

#![no_main]

use journeyman_fuzz::{Input, path, timed};
use journeyman_verify::honesty::{ChangedFile, find_dishonest_changes};
use libfuzzer_sys::fuzz_target;

/// A product file, its test and a file with settings, in the languages that are read.
const NAMES: [[&str; 3]; 8] = [
    ["src/a.rs", "tests/a.rs", "Cargo.toml"],
    ["a.py", "test_a.py", "pyproject.toml"],
    ["src/a.ts", "src/a.test.ts", "package.json"],
    ["a.go", "a_test.go", "Makefile"],
    ["src/main/java/A.java", "src/test/java/ATest.java", "pom.xml"],
    ["lib/a.rb", "spec/a_spec.rb", ".rspec"],
    ["src/a.c", "tests/test_a.c", "CMakeLists.txt"],
    ["src/A.php", "tests/ATest.php", ".github/workflows/ci.yml"],
];

fuzz_target!(|data: &[u8]| {
    let input = Input::new(data, 2);
    let names = NAMES[usize::from(input.switch(0)) % NAMES.len()];
    let text = |nth: usize, absent: u8| (!input.flag(1, absent)).then(|| input.text(nth).to_owned());
    let files: Vec<ChangedFile> = (0..)
        .zip(names)
        .map(|(nth, name)| {
            let absent = u8::try_from(2 * nth).unwrap_or_default();
            ChangedFile { path: path(name), old: text(2 * nth, absent), new: text(2 * nth + 1, absent + 1) }
        })
        .collect();
    let findings = timed(data.len(), || find_dishonest_changes(&files, &[]));
    for finding in &findings {
        let file = files.iter().find(|file| file.path == finding.path).expect("a file of the change");
        let lines = [&file.old, &file.new].into_iter().flatten().map(|text| text.lines().count()).max();
        let last = lines.unwrap_or_default() + 1;
        assert!(finding.line.is_none_or(|line| (line as usize) <= last), "{finding:?} of {last} lines");
        assert!(!finding.message.is_empty() && finding.message.len() < 2_000, "{finding:?}");
    }
});
