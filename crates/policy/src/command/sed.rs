//! Recognizes `sed` scripts that only print.

/// Returns true if `sed` with these arguments prints, deletes and substitutes, but writes no files
/// (`-i`, `w`) and runs no program (`e`).
pub(super) fn only_prints(arguments: &[&str]) -> bool {
    input_files(arguments).is_some()
}

/// Returns the files that `sed` with these arguments reads; `None` unless [`only_prints`] accepts
/// them.
pub(super) fn input_files<'a>(arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut rest = arguments.iter().copied();
    while let Some(word) = rest.next() {
        match word {
            "-n" | "-E" | "-r" | "-u" | "-z" | "--quiet" | "--silent" | "--regexp-extended" | "-nE"
            | "-En" | "-nr" | "-rn" => {}
            "-e" | "-ne" | "-Ee" | "-re" | "-nEe" | "-nre" | "--expression" => match rest.next() {
                Some(script) => scripts.push(script),
                None => return None,
            },
            "--" => {
                operands.extend(rest);
                break;
            }
            _ => match word.strip_prefix("--expression=") {
                Some(script) => scripts.push(script),
                None if word.starts_with('-') && word != "-" => return None,
                None => operands.push(word),
            },
        }
    }
    if scripts.is_empty() {
        if operands.is_empty() {
            return None;
        }
        scripts.push(operands.remove(0));
    }
    // Several scripts form one, line by line; each must be complete by itself.
    scripts.iter().all(|script| SedScript::new(script).only_prints()).then_some(operands)
}

/// Returns the files that the commands of a script write (`w`, and the flag `w` of `s`), as far as
/// it is understood.
pub(super) fn written_files(script: &str) -> Vec<&str> {
    let mut script = SedScript::new(script);
    script.read_all();
    script.written
}

struct SedScript<'a> {
    rest: &'a str,
    depth: usize,
    written: Vec<&'a str>,
}

impl<'a> SedScript<'a> {
    fn new(script: &'a str) -> Self {
        Self { rest: script, depth: 0, written: Vec::new() }
    }

    fn only_prints(mut self) -> bool {
        self.read_all() && self.written.is_empty()
    }

    /// Reads all commands. Returns false if one is unknown.
    fn read_all(&mut self) -> bool {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', ';', '\n']);
            if self.rest.is_empty() {
                return self.depth == 0;
            }
            if self.read_command().is_none() {
                return false;
            }
        }
    }

    /// Reads the name of a file that is written, which ends with its line.
    fn read_written_file(&mut self) {
        self.skip_blanks();
        let (name, rest) = self.rest.split_at(self.rest.find('\n').unwrap_or(self.rest.len()));
        self.written.push(name);
        self.rest = rest;
    }

    fn next_char(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = self.rest.get(next.len_utf8()..)?;
        Some(next)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn read_command(&mut self) -> Option<()> {
        if self.read_address()? {
            self.skip_blanks();
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest.trim_start_matches([' ', '\t']);
                self.rest = self.rest.strip_prefix(['+', '~']).unwrap_or(self.rest);
                if !self.read_address()? {
                    return None;
                }
            }
        }
        self.skip_blanks();
        while let Some(rest) = self.rest.strip_prefix('!') {
            self.rest = rest.trim_start_matches([' ', '\t']);
        }
        match self.next_char()? {
            '{' => {
                self.depth += 1;
                return Some(());
            }
            '}' => self.depth = self.depth.checked_sub(1)?,
            'p' | 'P' | 'd' | 'D' | 'h' | 'H' | 'g' | 'G' | 'x' | 'n' | 'N' | '=' => {}
            // A text up to the end of its line.
            'a' | 'i' | 'c' => {
                let text = self.rest.strip_prefix("\\\n").unwrap_or(self.rest);
                self.rest = text.get(text.find('\n').unwrap_or(text.len())..)?;
                // Versions of `sed` differ about the end of a text of several lines.
                if text.strip_suffix(self.rest).is_none_or(|line| line.ends_with('\\')) {
                    return None;
                }
            }
            'q' | 'Q' | 'l' => {
                self.rest = self.rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
            }
            's' => {
                let delimiter = self.read_delimiter()?;
                self.skip_until(delimiter, true)?;
                self.skip_until(delimiter, false)?;
                let flags = self
                    .rest
                    .trim_start_matches(|c: char| matches!(c, 'g' | 'p' | 'i' | 'I') || c.is_ascii_digit());
                self.rest = flags;
                if let Some(rest) = flags.strip_prefix('w') {
                    self.rest = rest;
                    self.read_written_file();
                }
            }
            'w' | 'W' => self.read_written_file(),
            'y' => {
                let delimiter = self.read_delimiter()?;
                self.skip_until(delimiter, false)?;
                self.skip_until(delimiter, false)?;
            }
            _ => return None,
        }
        self.skip_blanks();
        // The command ends here, or the rest is unknown.
        match self.rest.chars().next() {
            None | Some(';' | '\n' | '}') => Some(()),
            Some(_) => None,
        }
    }

    /// Parses an address and returns true if there is one; `None` for an unknown one.
    fn read_address(&mut self) -> Option<bool> {
        match self.rest.chars().next() {
            Some('$') => {
                self.next_char();
                Some(true)
            }
            Some('0'..='9') => {
                self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
                if let Some(step) = self.rest.strip_prefix('~') {
                    self.rest = step.trim_start_matches(|c: char| c.is_ascii_digit());
                }
                Some(true)
            }
            Some('/') => {
                self.next_char();
                self.skip_until('/', true)?;
                self.rest = self.rest.strip_prefix('I').unwrap_or(self.rest);
                Some(true)
            }
            _ => Some(false),
        }
    }

    fn read_delimiter(&mut self) -> Option<char> {
        self.next_char()
            .filter(|c| c.is_ascii_punctuation() && !matches!(c, '\\' | ';' | '[' | ']' | '{' | '}'))
    }

    /// Skips to the delimiter. Versions differ about a delimiter in brackets.
    fn skip_until(&mut self, delimiter: char, expression: bool) -> Option<()> {
        let mut inside = false;
        loop {
            match self.next_char()? {
                '\n' => return None,
                '\\' => {
                    let escaped = self.next_char()?;
                    if escaped == '\n' {
                        return None;
                    }
                }
                end if end == delimiter => return (!inside).then_some(()),
                '[' if expression && !inside => {
                    inside = true;
                    self.rest = self.rest.strip_prefix('^').unwrap_or(self.rest);
                    self.rest = self.rest.strip_prefix(']').unwrap_or(self.rest);
                }
                ']' => inside = false,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn table() {
        let prints = |words: &[&str]| super::only_prints(words);
        for script in [
            "1p",
            "1,5p",
            "$p",
            "/a/p",
            "/a/,/b/p",
            "1,+3p",
            "1~2p",
            "/a/!d",
            "s/a/b/",
            "s/a/b/g;s|c|d|2p",
            "/a/{s/b/c/;p}",
            "1q",
            "y/ab/cd/",
            "s/[^/]*$//",
            "1d;$d",
            "/^$/d",
            "s/\\/a/b/",
            "1i some text; e ls",
            "/x/a\\\ntext\n$d",
            "3c",
            "1!G;h;$!d",
            "",
        ] {
            let expected = !script.contains("[^/]");
            assert_eq!(prints(&["-n", script, "x"]), expected, "{script}");
        }
        for script in [
            "w x",
            "1w x",
            "s/a/b/w x",
            "s/a/b/e",
            "e ls",
            "1e",
            "s/a/b/gw x",
            "r x",
            "R x",
            "W x",
            "F",
            "s/a/b/m",
            "s/a/b",
            "s;a;b;w x",
            "1p\nw x",
            "1pw x",
            "/a/w x",
            "a x\\\ne ls",
            "a\\\nx\\\ne ls",
            "a x\ne ls",
            "/a/{a x}",
            "}",
            "{p",
            "s/[/]/w x/",
            "\\xaxw y",
            "v",
            "b",
            "T",
        ] {
            assert!(!prints(&["-n", script, "x"]), "{script}");
        }
        for words in [
            &["-i", "p"][..],
            &["-n", "p", "-i"],
            &["-f", "x"],
            &["-s", "p"],
            &["--in-place", "p"],
            &[],
            &["-n"],
            &["-ni", "p"],
            &["-e"],
        ] {
            assert!(!prints(words), "{words:?}");
        }
    }
}
