//! Finds the parts of a command: every program that it is seen to run.

use std::borrow::Cow;

use journeyman_protocol::Level;
use journeyman_syntax::shell::{
    self, CompoundCommand, CompoundKind, Redirect, RedirectKind, SimpleCommand, Statement, UnclearReason,
    Word as Shown,
};

use super::current_directory::CurrentDirectory;
use super::danger::{self, Danger};
use super::directory_options::named_directories;
use super::inline_code::{self, InlineCode};
use super::numeric_variables::{self, NumericVariables};
use super::part::{CommandPart, CommandWord, WrittenPath, shorten_command};
use super::piped_output::{argument_words, is_download, known_output};
use super::statement_tree::{self, MAX_DEPTH};
use super::unwrap::unwrap_program;
use super::unwrap_result::{InnerCommand, UnwrapResult};
use super::variables::{is_harmless_variable, is_private_variable};
use super::{builds, credentials, edits, hosts, readers, written_files};

/// Maximum number of parts of a command.
const MAX_PARTS: usize = 400;
/// Maximum nesting of wrappers (`env timeout 5 nice …`), each of which is checked with all words
/// that follow.
const MAX_WRAPPERS: usize = 16;
/// Maximum total length of nested command texts. Each lies in the text around it, so that ordinary
/// commands need a few times the length of the whole.
const MAX_INNER_BYTES: usize = 4 * shell::MAX_BYTES;

/// Weights of a change of directory in [`Survey::moves`]. After one change to a directory that is
/// plainly beneath the previous one, git is still trusted: another repository there can't have been
/// created by a command or a tool, because the sandbox prevents that. After two, or one to another
/// directory, git is not trusted.
const MOVED_BENEATH: usize = 1;
const MOVED_AWAY: usize = 2;

/// The parts of a command, collected while it is parsed.
pub(super) struct Survey<'c> {
    checks: Vec<&'c str>,
    /// True if the caller wrote the first change of directory.
    entered: bool,
    pub(super) parts: Vec<CommandPart>,
    /// The reason why `parts` may be incomplete.
    pub(super) unclear: Option<String>,
    /// True if a part has words that shells read differently.
    pub(super) partial: bool,
    /// The dangerous effects of the command.
    pub(super) danger: Danger,
    /// The description of code from the network that is run, which is worse than each part by
    /// itself.
    pub(super) fetched: Option<String>,
    /// True if an unknown program may run or destroy something that its arguments say.
    pub(super) may_hide: bool,
    moves: usize,
    depth: usize,
    wrappers: usize,
    inner_bytes: usize,
    /// Functions that the text defines: their names no longer mean programs.
    functions: Vec<String>,
    values: NumericVariables,
    directory: CurrentDirectory,
}

/// The input that a command gets.
#[derive(Clone, Copy, Default)]
struct CommandInput<'a> {
    /// The known input: the text of a here-document, or the output of an `echo` before it.
    input: Option<&'a str>,
    /// True if a program's output is piped into it.
    piped: bool,
    /// True if the piped data comes from the network.
    network: bool,
}

/// A part that is being built.
#[derive(Default)]
struct PartDraft {
    /// The first reason why it may do anything.
    why: Option<String>,
    /// The first reason why it changes files of the project and does nothing else.
    edits: Option<String>,
    writes: Vec<CommandWord>,
    written: Vec<WrittenPath>,
    code: InlineCode,
    reads: Vec<CommandWord>,
    danger: Danger,
}

impl PartDraft {
    fn add_reason(&mut self, why: impl FnOnce() -> String) {
        self.why.get_or_insert_with(why);
    }
}

impl<'c> Survey<'c> {
    pub(super) fn new(checks: &'c [String], entered: bool) -> Self {
        Self {
            checks: checks.iter().map(String::as_str).collect(),
            entered,
            parts: Vec::new(),
            unclear: None,
            partial: false,
            danger: Danger::default(),
            fetched: None,
            may_hide: false,
            moves: 0,
            depth: 0,
            wrappers: 0,
            inner_bytes: 0,
            functions: Vec::new(),
            values: NumericVariables::default(),
            directory: CurrentDirectory::default(),
        }
    }

    /// Parses a text that a shell runs.
    pub(super) fn survey_script(&mut self, text: &str) {
        self.inner_bytes += text.len();
        if self.depth >= MAX_DEPTH || self.inner_bytes > MAX_INNER_BYTES {
            return self.give_up("its parts lie in one another too deep");
        }
        let script = shell::parse(text);
        if let Some(why) = script.unclear
            && why != UnclearReason::Empty
        {
            self.give_up(&why.to_string());
        } else if script.unclear.is_some() && self.depth == 0 {
            self.give_up("a command in it is empty");
        }
        self.depth += 1;
        statement_tree::collect_functions(&script.statements, &mut self.functions, 0);
        self.values.record_arithmetic(script.computed);
        self.survey_statements(&script.statements, CommandInput::default());
        self.depth -= 1;
        // A part that does more than read may set any variable.
        let tame = || self.parts.iter().all(|part| part.level == Level::ReadOnly);
        if self.depth == 0 && self.values.has_arithmetic() && !(self.values.are_numbers() && tame()) {
            self.give_up("it computes with a variable that may hold anything");
        }
    }

    fn give_up(&mut self, why: &str) {
        if self.unclear.is_none() {
            self.unclear = Some(why.to_owned());
        }
    }

    fn survey_statements(&mut self, statements: &[Statement], place: CommandInput<'_>) {
        if self.depth >= MAX_DEPTH {
            return self.give_up("its parts lie in one another too deep");
        }
        self.depth += 1;
        for statement in statements {
            self.survey_statement(statement, place);
        }
        self.depth -= 1;
    }

    /// Surveys commands in a subshell, which doesn't change the directory of the commands after it.
    fn survey_in_subshell(&mut self, survey: impl FnOnce(&mut Self)) {
        let directory = self.directory.clone();
        survey(self);
        self.directory = directory;
    }

    /// Surveys the statements of a substitution.
    fn survey_substitution(&mut self, statements: &[Statement]) {
        self.survey_in_subshell(|inner| inner.survey_statements(statements, CommandInput::default()));
    }

    fn survey_statement(&mut self, statement: &Statement, place: CommandInput<'_>) {
        match statement {
            Statement::Simple(simple) => self.survey_simple(simple, place),
            Statement::Pipeline(parts) => self.survey_pipeline(parts, place),
            Statement::Compound(compound) => self.survey_compound(compound, place),
            Statement::Function { name, body } => {
                self.give_up("a function changes what its name means");
                self.push(CommandPart {
                    words: vec![CommandWord { text: name.clone(), known: true }],
                    level: Level::Shell,
                    reason: format!("it defines the function `{}`", shorten_command(name)),
                    ..CommandPart::default()
                });
                self.survey_statements(body, CommandInput::default());
            }
        }
    }

    fn survey_pipeline(&mut self, parts: &[Statement], place: CommandInput<'_>) {
        let mut here = place;
        let mut network = place.network;
        for statement in parts {
            let before = self.parts.len();
            match parts {
                [_] => self.survey_statement(statement, here),
                _ => self.survey_in_subshell(|part| part.survey_statement(statement, here)),
            }
            network |= self.parts.iter().skip(before).any(is_download);
            here = CommandInput { input: known_output(statement), piped: true, network };
        }
    }

    fn survey_compound(&mut self, compound: &CompoundCommand, place: CommandInput<'_>) {
        let mut draft = PartDraft::default();
        if let Some(variable) = &compound.variable
            && !is_private_variable(variable)
        {
            draft.add_reason(|| format!("it sets `{}`", shorten_command(variable)));
        }
        if let Some(variable) = &compound.variable {
            self.values.record_loop(variable, &compound.words);
            // The body does not contain these words, and rules about paths have to see them.
            draft.reads.extend(
                compound.words.iter().filter(|word| !numeric_variables::is_number(word)).map(to_command_word),
            );
        }
        let mut input = place;
        for redirect in &compound.redirects {
            if redirect.kind == RedirectKind::Document || redirect.kind == RedirectKind::Text {
                input.input = redirect.target.known.then_some(redirect.target.text.as_str());
                input.piped = true;
            }
        }
        // The second pass of a loop begins where the first one ended.
        if matches!(compound.kind, CompoundKind::For | CompoundKind::While)
            && statement_tree::changes_directory(&compound.body, 0)
        {
            self.moves += MOVED_AWAY;
        }
        self.survey_redirects(&compound.redirects, &mut draft);
        for word in &compound.words {
            self.survey_substitution(&word.inner);
        }
        let mut reads = std::mem::take(&mut draft.reads);
        reads.extend(self.directory.resolve_moved(reads.iter()));
        if draft.why.is_some() || !draft.writes.is_empty() || draft.danger.outside.is_some() {
            let level = match (&draft.danger.outside, &draft.why) {
                (Some(_), _) => Level::System,
                (None, None) if self.moves <= MOVED_BENEATH => Level::Edit,
                (None, _) => Level::Shell,
            };
            let reason = draft.danger.outside.clone().or(draft.why).or(draft.edits);
            let reason = reason.unwrap_or_else(|| "it writes a file".to_owned());
            self.danger.merge(&draft.danger);
            self.push(CommandPart {
                level,
                reason,
                destroys: draft.danger.destroys,
                writes: draft.writes,
                written: draft.written,
                ..CommandPart::default()
            });
        }
        let before = self.parts.len();
        match compound.kind {
            CompoundKind::Subshell => {
                self.survey_in_subshell(|body| body.survey_statements(&compound.body, input))
            }
            _ => self.survey_statements(&compound.body, input),
        }
        // The programs in its body read the redirected files.
        match self.parts.get_mut(before) {
            Some(first) => first.reads.extend(reads),
            None if !reads.is_empty() => {
                let reason = "it only reads".to_owned();
                self.push(CommandPart { level: Level::ReadOnly, reason, reads, ..CommandPart::default() });
            }
            None => {}
        }
    }

    /// Handles a program with its arguments, assignments and redirections.
    fn survey_simple(&mut self, simple: &SimpleCommand, place: CommandInput<'_>) {
        let mut draft = PartDraft::default();
        for word in simple.words.iter().chain(simple.assignments.iter().map(|assignment| &assignment.value)) {
            if !word.inner.is_empty() {
                self.survey_substitution(&word.inner);
            }
        }
        for assignment in &simple.assignments {
            // Before a program, an assignment applies to that program; alone, it applies to all
            // that follows.
            let harmless = if simple.words.is_empty() {
                is_private_variable(&assignment.name) || is_harmless_variable(&assignment.name)
            } else {
                is_harmless_variable(&assignment.name)
            };
            if !harmless {
                draft.add_reason(|| {
                    format!("it sets `{}`, which may change what runs", shorten_command(&assignment.name))
                });
                if !simple.words.is_empty() || !is_private_variable(&assignment.name.to_ascii_lowercase()) {
                    self.give_up("it sets a variable that may change what runs");
                }
                self.survey_variable_value(&assignment.name, &assignment.value);
            }
            self.values.record_assignment(&assignment.name, &assignment.value);
        }
        let mut here = place;
        for redirect in &simple.redirects {
            if matches!(redirect.kind, RedirectKind::Document | RedirectKind::Text) {
                here.input = redirect.target.known.then_some(redirect.target.text.as_str());
                here.piped = true;
            }
        }
        self.survey_redirects(&simple.redirects, &mut draft);
        self.survey_program(&simple.words, draft, here);
    }

    /// Handles `PAGER=…`, `GIT_SSH_COMMAND=…`, whose values are run.
    fn survey_variable_value(&mut self, name: &str, value: &Shown) {
        let runs = [
            "PAGER",
            "EDITOR",
            "VISUAL",
            "COMMAND",
            "ASKPASS",
            "SHELL",
            "BROWSER",
            "EXTERNAL_DIFF",
            "LESSOPEN",
            "LESSCLOSE",
        ];
        if value.known && !value.text.is_empty() && runs.iter().any(|end| name.ends_with(end)) {
            self.survey_script(value.text.trim_start_matches('|'));
        }
    }

    fn survey_redirects(&mut self, redirects: &[Redirect], draft: &mut PartDraft) {
        for redirect in redirects {
            let target = &redirect.target;
            if !target.inner.is_empty() {
                self.survey_substitution(&target.inner);
            }
            match redirect.kind {
                RedirectKind::Document | RedirectKind::Text => {}
                RedirectKind::Input => {
                    draft.reads.push(to_command_word(target));
                    // bash connects to these paths.
                    let network = target.text.contains("dev/tcp") || target.text.contains("dev/udp");
                    if network {
                        draft.danger.add_outside_effect(|| {
                            format!("`< {}` reaches the network", shorten_command(&target.text))
                        });
                    } else if !target.known
                        && !matches!(target.start.chars().next(), Some(first) if first != '/')
                    {
                        draft.add_reason(|| {
                            format!("what `< {}` reads isn't known", shorten_command(&target.text))
                        });
                    }
                }
                RedirectKind::Duplicate
                    if target.known
                        && (target.text == "-" || target.text.bytes().all(|byte| byte.is_ascii_digit())) => {}
                RedirectKind::Output | RedirectKind::Duplicate => {
                    let harmless = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/full"];
                    if target.known && !target.dialect && harmless.contains(&target.text.as_str()) {
                        continue;
                    }
                    let writes = || format!("it writes {}", shorten_command(&target.text));
                    match target.known && !target.dialect && edits::is_ordinary_path(&target.text) {
                        true => _ = draft.edits.get_or_insert_with(writes),
                        false => draft.add_reason(writes),
                    }
                    danger::check_written_file(&target.text, &mut draft.danger);
                    if let Some(place) = self.directory.resolve_outside_operand(&target.text) {
                        danger::check_written_file(&place, &mut draft.danger);
                    }
                    draft.writes.push(CommandWord { text: target.text.clone(), known: target.known });
                    let path = WrittenPath { text: target.text.clone(), known: target.known, tree: false };
                    draft.written.push(self.directory.resolve_written(path));
                }
            }
        }
    }

    fn survey_program(&mut self, words: &[Shown], mut draft: PartDraft, place: CommandInput<'_>) {
        if self.depth >= MAX_DEPTH {
            return self.give_up("its parts lie in one another too deep");
        }
        let Some(first) = words.first() else {
            // The command has assignments or redirections only.
            if draft.why.is_some() || !draft.writes.is_empty() || !draft.reads.is_empty() {
                self.finish_part(&[], draft, Ok(None));
            }
            return;
        };
        if !names_program(first) {
            self.give_up("which program it runs isn't known before it runs");
            draft.add_reason(|| "which program that is isn't known before it runs".to_owned());
            self.may_hide = true;
        } else if let Some(character) = first.text.chars().find(|character| !character.is_ascii()) {
            draft.add_reason(|| {
                format!(
                    "`{}` is spelled with `{}`, {}",
                    shorten_command(&first.text),
                    character,
                    character.escape_unicode()
                )
            });
        }
        let path = first.text.as_str();
        let name = readers::base_name(path);
        if self.functions.iter().any(|function| function == name) {
            draft.add_reason(|| format!("`{}` is a function here", shorten_command(name)));
        }
        let edit = builds::describe_edit_or_build(words);
        // A syntax check and a version query run nothing.
        let wrapped = match edit.is_some() || readers::is_syntax_check(words) {
            true => None,
            false => unwrap_program(danger::base_name(path), words),
        };
        let reading = match &wrapped {
            _ if self.is_check(words) && draft.why.is_none() => {
                self.push(CommandPart {
                    words: words.iter().map(to_command_word).collect(),
                    level: Level::Edit,
                    reason: "it is one of the project's own checks".to_owned(),
                    writes: draft.writes,
                    written: draft.written,
                    reads: draft.reads,
                    ..CommandPart::default()
                });
                return;
            }
            Some(wrapped) if wrapped.transparent && name == danger::base_name(path) => {
                readers::check_wrapper_reads(name, words).map(|()| None)
            }
            Some(_) => Err(format!("`{}` runs other programs", shorten_command(name))),
            None => match (readers::only_reads(words, self.moves > MOVED_BENEATH), edit) {
                (Ok(()), _) => Ok(None),
                // In another directory the same names are other files.
                (Err(_), Some(edit)) if self.moves <= MOVED_BENEATH => Ok(Some(edit)),
                (Err(why), _) => Err(why),
            },
        };
        if name == "cd" {
            self.moves += if numeric_variables::is_cd_beneath(words) { MOVED_BENEATH } else { MOVED_AWAY };
        }
        self.record_variables(name, words);
        draft.reads.extend(argument_words(name, place.input));
        draft.code = inline_code::input_code(words, place.input.unwrap_or_default());
        self.finish_part(words, draft, reading);
        if matches!(name, "cd" | "pushd" | "popd") {
            self.directory.apply_cd(words);
        }
        if !first.known && !first.single {
            // The word may expand to nothing, and then the next word is the program.
            self.depth += 1;
            self.survey_program(words.get(1..).unwrap_or_default(), PartDraft::default(), place);
            self.depth -= 1;
        }
        if let Some(wrapped) = wrapped {
            self.survey_wrapped(words, wrapped, place);
        }
    }

    /// Follows the variables that a program sets, such as by `export PATH=…`, which applies to all
    /// that follows.
    fn record_variables(&mut self, name: &str, words: &[Shown]) {
        self.values.record_program(name, words);
        if !matches!(name, "export" | "declare" | "typeset" | "readonly" | "local") {
            return;
        }
        let harmless = |word: &Shown| {
            let variable = word.text.split('=').next().unwrap_or_default();
            word.known && (is_private_variable(variable) || is_harmless_variable(variable))
        };
        if !words.iter().skip(1).all(harmless) {
            self.give_up("it sets a variable that may change what runs");
        }
    }

    fn survey_wrapped(&mut self, words: &[Shown], wrapped: UnwrapResult, place: CommandInput<'_>) {
        let name = words.first().map_or("", |path| readers::base_name(&path.text));
        if let Some(why) = wrapped.unclear {
            self.give_up(why);
        }
        if wrapped.input {
            if let Some(text) = place.input.filter(|_| {
                super::unwrap_table::SHELL_PROGRAMS.contains(&name)
                    || matches!(name, "parallel" | "." | "source")
            }) {
                self.survey_script(text);
            }
            if place.network {
                self.fetched.get_or_insert_with(|| {
                    format!("`{}` runs code that comes from the network", shorten_command(name))
                });
            }
            if place.input.is_none() && place.piped {
                self.give_up("it runs what it reads");
            }
            self.may_hide = true;
        }
        if self.wrappers >= MAX_WRAPPERS {
            return self.give_up("its parts lie in one another too deep");
        }
        self.depth += 1;
        self.wrappers += 1;
        for inner in wrapped.inner {
            let after = if let InnerCommand::Words(inner) = &inner { inner.len() } else { 0 };
            let options = words.get(..words.len().saturating_sub(after)).unwrap_or_default();
            let directories = named_directories(options);
            let before = (self.directory.clone(), self.moves);
            self.moves += MOVED_AWAY * directories.len();
            directories.iter().for_each(|directory| self.directory.enter(directory));
            match &inner {
                InnerCommand::Words(words) => self.survey_program(words, PartDraft::default(), place),
                InnerCommand::Script(text) => self.survey_script(text),
            }
            if !directories.is_empty() {
                (self.directory, self.moves) = before;
            } else if matches!(inner, InnerCommand::Script(_)) && name != "eval" {
                self.directory = before.0;
            }
        }
        self.wrappers -= 1;
        self.depth -= 1;
    }

    /// Returns true if these words are one of the project's checks, in its directory.
    fn is_check(&self, words: &[Shown]) -> bool {
        if self.moves > if self.entered { MOVED_BENEATH } else { 0 } {
            return false;
        }
        let Some(first) = words.first() else { return false };
        self.checks.iter().any(|check| {
            if !check.contains(&first.text) || check.len() > shell::MAX_BYTES {
                return false;
            }
            let script = shell::parse(check);
            match (script.unclear, script.statements.as_slice()) {
                (None, [Statement::Simple(only)]) => {
                    only.assignments.is_empty()
                        && only.redirects.is_empty()
                        && only.words.len() == words.len()
                        && only
                            .words
                            .iter()
                            .zip(words)
                            .all(|(a, b)| a.known && b.known && !a.dialect && !b.dialect && a.text == b.text)
                }
                _ => false,
            }
        })
    }

    /// Returns the directory to which a program's options send it, or the program that it runs.
    fn directory_of(&self, words: &[Shown]) -> CurrentDirectory {
        let mut directory = self.directory.clone();
        named_directories(words).iter().for_each(|option| directory.enter(option));
        directory
    }

    /// Returns the paths that a program writes, from the directory in which the command starts.
    fn written_paths(&self, name: &str, words: &[Shown]) -> Vec<WrittenPath> {
        // `tar -f` names a file of the directory in which it starts.
        let directory = if name.ends_with("tar") { self.directory.clone() } else { self.directory_of(words) };
        let written = written_files::written_paths(words).into_iter();
        written.map(|path| directory.resolve_written(path)).collect()
    }

    /// Returns the paths of the operands if an earlier `cd` led out of the project.
    fn outside_operands(&self, texts: &[&str]) -> Vec<String> {
        texts.iter().skip(1).filter_map(|text| self.directory.resolve_outside_operand(text)).collect()
    }

    /// Adds a part. `reading` is the project change of the part, if it does more than read.
    fn finish_part(
        &mut self,
        words: &[Shown],
        mut draft: PartDraft,
        reading: Result<Option<String>, String>,
    ) {
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let bare = words_without_quotes(words);
        let rough: Vec<&str> = bare.iter().map(Cow::as_ref).collect();
        let name = texts.first().map_or("", |path| danger::base_name(path));
        let placed = self.outside_operands(&texts);
        let placed = || placed.iter().map(String::as_str);
        let mut level = Level::ReadOnly;
        let mut reason = "it only reads".to_owned();
        let edits = draft.edits.take();
        let words_of_part: Vec<CommandWord> = words.iter().map(to_command_word).collect();
        let named = words_of_part.iter().skip(1).chain(&draft.reads).chain(&draft.writes);
        draft.reads.extend(self.directory_of(words).resolve_moved(named));
        let why = match (draft.why.take(), reading) {
            (Some(why), _) | (None, Err(why)) => Some((Level::Shell, why)),
            (None, Ok(edit)) => match edit.or(edits) {
                Some(why) if self.moves <= MOVED_BENEATH => Some((Level::Edit, why)),
                Some(why) => Some((Level::Shell, why)),
                None if credentials::reads_credentials(
                    name,
                    texts.iter().skip(1).copied().chain(files_read(&draft)),
                ) =>
                {
                    Some((Level::Shell, "it reads credentials, which are none of the project's".to_owned()))
                }
                None => None,
            },
        };
        if let Some((reach, why)) = why {
            level = reach;
            let what = texts.join(" ");
            reason =
                if what.is_empty() { why } else { format!("it runs `{}` ({why})", shorten_command(&what)) };
            let data = level == Level::Edit || danger::takes_only_data(name);
            self.may_hide |= !data;
            if !(edits::is_version_query(words) || hosts::is_loopback_request(name, words)) {
                danger::scan_program(&rough, data, &mut draft.danger);
                danger::scan_outside_operands(&rough, placed(), data, &mut draft.danger);
            }
        }
        // Undo has to restore what the part removes.
        if level == Level::Edit && draft.danger.beyond_undo {
            level = Level::Shell;
        }
        if let Some(outside) = &draft.danger.outside {
            level = Level::System;
            reason.clone_from(outside);
        }
        // Each of these words may stand for more than it shows.
        if words.iter().any(is_unknown_word) && draft.danger.destroys.is_some() {
            draft.danger.beyond_undo = true;
        }
        self.danger.merge(&draft.danger);
        if level > Level::ReadOnly {
            draft.written.extend(self.written_paths(name, words));
            draft.code.extend(inline_code::argument_code(words));
        }
        self.push(CommandPart {
            words: words_of_part,
            level,
            builds: level == Level::Edit && builds::is_build(words),
            reason,
            destroys: draft.danger.destroys,
            writes: draft.writes,
            written: draft.written,
            code_words: draft.code.words,
            code_writes: draft.code.writes,
            reads: draft.reads,
            hosts: hosts::find_hosts(name, words),
        });
        if words.iter().any(|word| word.dialect) {
            // `readers` has checked every reading of it.
            self.partial = true;
            if level > Level::ReadOnly {
                self.give_up("shells differ about a word in it");
            }
        }
    }

    fn push(&mut self, part: CommandPart) {
        if self.parts.len() >= MAX_PARTS {
            return self.give_up("it runs more programs than anybody reads");
        }
        self.parts.push(part);
    }
}

/// Returns true if a word is the name of a program. `!` is a word of the shell's, and after a
/// wrapper (`env ! sh`) no name.
fn names_program(word: &Shown) -> bool {
    word.known && !word.dialect && !matches!(word.text.as_str(), "" | "!")
}

/// Returns the words as `danger` expects them: without quotes around unknown content.
fn words_without_quotes(words: &[Shown]) -> Vec<Cow<'_, str>> {
    let bare = |word: &'_ Shown| word.text.replace(['"', '\'', '$', '{', '}'], "");
    let words = words.iter();
    words.map(|word| if word.known { Cow::Borrowed(word.text.as_str()) } else { bare(word).into() }).collect()
}

/// Returns the files that a part's redirections read.
fn files_read(draft: &PartDraft) -> impl Iterator<Item = &str> {
    draft.reads.iter().map(|word| word.text.as_str())
}

/// Returns true if a word may be anything, not only a name that matches its pattern.
fn is_unknown_word(word: &Shown) -> bool {
    let pattern = word.text.contains(['*', '?', '[']) && !word.text.contains(['$', '`', '~', '(']);
    word.dialect || (!word.known && !pattern)
}

fn to_command_word(word: &Shown) -> CommandWord {
    CommandWord { text: word.text.clone(), known: word.known }
}
