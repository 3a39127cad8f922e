//! The exercises as data, and their tests as files of each language.

use std::fmt::Write as _;

use anyhow::{Context as _, ensure};

/// Each exercise: a line `## name`, then four parts between lines `---`: the right solution, the
/// wrong one, the given tests, further tests. A test is one expression that has to be true.
const SOURCES: [(&str, &str); 3] = [
    ("python", include_str!("python.txt")),
    ("javascript", include_str!("javascript.txt")),
    ("c", include_str!("c.txt")),
];

/// A problem with two solutions.
pub(crate) struct Exercise {
    pub(crate) language: &'static str,
    pub(crate) name: String,
    pub(crate) right: String,
    pub(crate) wrong: String,
    /// Tests that both solutions pass.
    pub(crate) given: Vec<String>,
    /// Tests that the right solution alone passes.
    pub(crate) further: Vec<String>,
}

pub(crate) fn all_exercises() -> anyhow::Result<Vec<Exercise>> {
    let mut all = Vec::new();
    for (language, source) in SOURCES {
        for section in source.split("## ").filter(|section| !section.trim().is_empty()) {
            let (name, body) = section.split_once('\n').context("an exercise has a name")?;
            let parts: Vec<&str> = body.split("\n---\n").collect();
            ensure!(parts.len() == 4, "{name} has {} parts", parts.len());
            let lines =
                |part: &str| part.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
            all.push(Exercise {
                language,
                name: name.trim().to_owned(),
                right: format!("{}\n", parts[0]),
                wrong: format!("{}\n", parts[1]),
                given: lines(parts[2]),
                further: lines(parts[3]),
            });
        }
    }
    Ok(all)
}

impl Exercise {
    pub(crate) fn solution_file(&self) -> &'static str {
        match self.language {
            "python" => "solution.py",
            "javascript" => "solution.mjs",
            _ => "solution.c",
        }
    }

    pub(crate) fn test_file(&self) -> &'static str {
        match self.language {
            "python" => "test_solution.py",
            "javascript" => "solution.test.mjs",
            _ => "test_solution.c",
        }
    }

    pub(crate) fn command(&self) -> &'static str {
        match self.language {
            "python" => "python3 -m unittest",
            "javascript" => "node --test",
            _ => "cc -o tests test_solution.c && ./tests",
        }
    }

    /// Returns the test file with one test for each case.
    pub(crate) fn tests(&self, cases: &[&str]) -> String {
        let mut text = match self.language {
            "python" => PYTHON_HEAD.to_owned(),
            "javascript" => JAVASCRIPT_HEAD.to_owned(),
            _ => C_HEAD.to_owned(),
        };
        for (number, case) in cases.iter().enumerate() {
            let written = match self.language {
                "python" => {
                    writeln!(text, "    def test_case_{number:02}(self):\n        self.assertTrue({case})\n")
                }
                "javascript" => writeln!(text, "test(\"case_{number:02}\", () => assert({case}));"),
                _ => writeln!(text, "    check({number}, {case});"),
            };
            written.ok();
        }
        if self.language == "c" {
            text.push_str("    return failures != 0;\n}\n");
        }
        text
    }
}

const PYTHON_HEAD: &str = "import unittest

from solution import *


def raises(kind, call):
    try:
        call()
    except kind:
        return True
    return False


class Cases(unittest.TestCase):
";
const JAVASCRIPT_HEAD: &str = "import assert from \"node:assert\";
import { test } from \"node:test\";
import * as solution from \"./solution.mjs\";

Object.assign(globalThis, solution);
const same = (one, other) => assert.deepStrictEqual(one, other) === undefined;
";
const C_HEAD: &str = "#include <limits.h>
#include <stdio.h>
#include <string.h>
#include \"solution.c\"

static int failures = 0;

static void check(int number, int holds) {
    if (!holds) {
        printf(\"case_%02d failed\\n\", number);
        failures++;
    }
}

int main(void) {
";
