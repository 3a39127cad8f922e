//! Sentences, compared with the files. Each has a known shape; one that names a file and has none
//! is a violation too, so that no sentence comes in unchecked.

use super::scenario::{Act, Case, Reach};
use super::world::{Ended, PutBack, USERS, effects, ignored_ledger};

/// Say that the user's files have nothing of the work.
const NOTHING_IN_PLACE: [&str; 5] = [
    "your files are as they were",
    "your files have nothing of it",
    "(kept in its copy)",
    "would be landed",
    "kept in its copy:",
];

/// Goes before the ignored files that a report names.
const IGNORED: &str = "; ignored files of the run: ";
/// Goes before those that a command of another run may have changed as well.
const SHARED: &str =
    "; ignored files that this run or another one changed at the same time, so that undo leaves them: ";

/// Beginnings of lines that quote what is done, or is in a file, and say nothing of what there is
/// now.
const QUOTED: [&str; 16] = [
    "denied: ",
    "●",
    "✎",
    "$ ",
    "task:",
    "soak task",
    "+",
    "-",
    "@@",
    "diff ",
    "index ",
    "context:",
    "verifying",
    "test:",
    "command:",
    "All is done.",
];

/// Compares all that a command said with the files.
pub fn check(case: &Case, act: Act, ended: &Ended) {
    let shared = &case.world.shared;
    let lines = ended.out.lines().chain(ended.err.lines());
    for line in lines {
        match judge(case, act, line) {
            Verdict::Fine => {}
            Verdict::Untrue(why) => {
                shared.violation("untrue", format!("{}: `{}`: {why}", ended.command, line.trim()));
            }
            Verdict::Unknown => {
                shared.violation("unknown sentence", format!("{}: `{}`", ended.command, line.trim()));
            }
        }
    }
    if act == Act::Show {
        sealed_though_it_ended(case, ended);
    }
    if ended.out.contains("nothing to finish") || ended.err.contains("nothing to finish") {
        nothing_to_finish(case, ended);
    }
}

enum Verdict {
    Fine,
    Untrue(String),
    Unknown,
}

fn untrue(is_untrue: bool, why: impl Into<String>) -> Verdict {
    if is_untrue { Verdict::Untrue(why.into()) } else { Verdict::Fine }
}

fn judge(case: &Case, act: Act, line: &str) -> Verdict {
    let line = strip_number(line);
    let text = line.trim();
    // Quoted from a call's result, indented.
    if line.starts_with("    ") && !text.contains("taken back: ") {
        return Verdict::Fine;
    }
    let there: Vec<String> =
        case.tasks().flat_map(|task| case.in_place(task)).map(|effect| effect.path).collect();
    // Of several candidates one may be landed and the others kept.
    let is_one =
        case.scenario.name != "run --candidates --land" && !case.scenario.flags.contains(&"--candidates");
    let is_now = act != Act::Show;
    let is_apart = case.scenario.reach != Reach::InPlace;
    if NOTHING_IN_PLACE.iter().any(|words| text.contains(words)) {
        return untrue(is_now && is_one && is_apart && !there.is_empty(), format!("{there:?} is there"));
    }
    if text.starts_with("landed  ") || text.starts_with("landed: ") {
        return untrue(is_now && act != Act::Undo && there.is_empty(), "nothing of it is there");
    }
    if let Some((said, rest)) = text.split_once(SHARED) {
        let verdict = shared_changes(case, act, rest);
        return if matches!(verdict, Verdict::Fine) { judge(case, act, said) } else { verdict };
    }
    if let Some((said, _)) = text.split_once(IGNORED) {
        let verdict = ignored_changes(case, act, text);
        return if matches!(verdict, Verdict::Fine) { judge(case, act, said) } else { verdict };
    }
    if let Some(put_back) = PutBack::of(text) {
        let is_named = put_back.paths.iter().all(|path| !names(path).is_empty());
        let is_kept = !put_back.checkpoints.is_empty();
        return untrue(is_apart || !is_named || !is_kept, "nothing of that could be put back in place");
    }
    if text.starts_with("verified") && is_now && case.scenario.reach == Reach::InPlace {
        let has = |path: &str| case.world.shared.project.join(path).exists();
        return untrue(has("own0/f1.txt") && !has("own0/f2.txt"), "the check fails");
    }
    if let Some((path, _)) = text.split_once("  +").filter(|(_, sizes)| sizes.contains(" −")) {
        let is_result = matches!(act, Act::Resume | Act::Run | Act::Pair) && !is_apart;
        return untrue(is_result && !case.world.shared.project.join(path).exists(), "it isn't there");
    }
    match (act, text.split_once(' ')) {
        (Act::Undo | Act::Redo, Some((verb, path))) => {
            taken_back(case, act, verb, path).unwrap_or_else(|| known(text))
        }
        (Act::Resume | Act::Run | Act::Pair, Some(("added" | "modified", path)))
            if case.scenario.reach == Reach::InPlace =>
        {
            untrue(!case.world.shared.project.join(path).exists(), "it isn't there")
        }
        _ => known(text),
    }
}

/// Files of the run, as a report names them.
pub fn ignored_of_the_run(text: &str) -> Vec<String> {
    let named = text.lines().filter_map(|line| line.split_once(IGNORED)).map(|(_, rest)| rest);
    let entries = named.flat_map(|rest| rest.split("; ").next().unwrap_or_default().split(", "));
    entries.filter_map(|entry| entry.split_once(" (")).map(|(path, _)| path.to_owned()).collect()
}

/// Compares the ignored files that a report names with the tree: they are one task's, and were
/// changed; all of them are small, so undo brings back each.
fn ignored_changes(case: &Case, act: Act, text: &str) -> Verdict {
    let named = ignored_of_the_run(text);
    let is_of = |task: &usize| named.iter().all(|path| *path == ignored_ledger(*task));
    let Some(task) = case.tasks().find(is_of).filter(|_| named.len() == 1) else {
        return Verdict::Untrue(format!("{named:?} aren't one run's"));
    };
    if case.scenario.reach != Reach::InPlace
        || !text.contains(" (changed)")
        || text.contains("can't bring back")
    {
        return Verdict::Untrue("it was changed in place, and undo brings it back".to_owned());
    }
    let mut of_it = effects(task).into_iter().filter(|effect| effect.ignored);
    let is_now = matches!(act, Act::Run | Act::Pair | Act::Resume);
    untrue(is_now && !of_it.any(|effect| case.world.shared.is_there(&effect)), "it is as it was")
}

/// Compares the ignored files that may be either run's with the tree: there are two runs, and one
/// of them changed each.
fn shared_changes(case: &Case, act: Act, named: &str) -> Verdict {
    let paths: Vec<&str> = names(named);
    let is_changed = |path: &&str| {
        let mut all = case.tasks().flat_map(effects);
        all.any(|effect| effect.path == **path && effect.ignored && case.world.shared.is_there(&effect))
    };
    let is_now = matches!(act, Act::Run | Act::Pair | Act::Resume);
    let is_true = case.tasks().len() == 2
        && !paths.is_empty()
        && (0..2).map(ignored_ledger).filter(|ledger| paths.contains(&ledger.as_str())).count()
            == paths.len()
        && (!is_now || paths.iter().all(is_changed));
    untrue(!is_true, format!("{paths:?} aren't what two runs changed"))
}

/// Takes off the number of a candidate.
fn strip_number(line: &str) -> &str {
    line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(line, |(_, rest)| rest)
}

/// Judges a line of `jm undo` or `jm redo` about one file; `None` where it isn't one.
fn taken_back(case: &Case, act: Act, verb: &str, rest: &str) -> Option<Verdict> {
    let path = rest.split(':').next().unwrap_or(rest);
    if names(path).is_empty() {
        return None;
    }
    let now = std::fs::read(case.world.shared.project.join(path)).ok();
    let before = case.world.before.get(std::path::Path::new(path));
    let is_users = USERS.contains(&path);
    Some(match (act, verb) {
        (_, "removed") => untrue(now.is_some(), "it is there"),
        (Act::Undo, "restored") => {
            // What a command did to an ignored file that was cut off isn't tracked.
            let is_known = !path.starts_with("ignored/") || !case.run_cut;
            let is_other = !is_users && is_known && case.tasks().len() == 1 && now.as_ref() != before;
            untrue(is_other, "it isn't as it was")
        }
        (Act::Undo, "brought") => untrue(now.is_none(), "it isn't there"),
        (Act::Undo, "kept") => untrue(now.as_ref() == before, "it is as it was"),
        (Act::Redo, "added" | "changed") => untrue(now.is_none(), "it isn't there"),
        (Act::Redo, "kept") => Verdict::Fine,
        _ => return None,
    })
}

/// Judges a line by its shape alone.
fn known(text: &str) -> Verdict {
    if let Some((_, paths)) = text.split_once("taken back: ") {
        let paths = paths.split(". ").next().unwrap_or_default();
        let users: Vec<&str> = names(paths).into_iter().filter(|path| USERS.contains(path)).collect();
        return untrue(!users.is_empty(), "the user's own");
    }
    // No task changes a file of the user's.
    let conflicts =
        ["too, in ways that don't go together", "the same lines were changed here and in the copy"];
    if conflicts.iter().any(|words| text.contains(words)) {
        return untrue(USERS.iter().any(|path| text.contains(path)), "no session changed it");
    }
    let somebody =
        ["by somebody else; the model is told", "; the model is told", "differs and was left as it is"];
    let is_known = QUOTED.iter().any(|start| text.starts_with(start))
        || somebody.iter().any(|words| text.contains(words))
        || names(text).is_empty();
    if is_known { Verdict::Fine } else { Verdict::Unknown }
}

/// Files of the project that a text names.
fn names(text: &str) -> Vec<&str> {
    let is_ours = |word: &&str| {
        USERS.contains(word)
            || ["own0/", "own1/", "ledger0", "ledger1", "lines0", "lines1", "ignored/"]
                .iter()
                .any(|start| word.starts_with(start))
    };
    text.split(|c: char| c.is_whitespace() || "«»,;:()'\"`".contains(c)).filter(is_ours).collect()
}

/// A call that ended well isn't cut off.
fn sealed_though_it_ended(case: &Case, ended: &Ended) {
    let words: Vec<String> =
        ended.command.split(' ').map(str::to_owned).chain(["--json".to_owned()]).collect();
    for line in case.world.run(&words).out.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        let event = event.get("event").unwrap_or(&event);
        let preview = event["preview"].as_str().unwrap_or_default();
        if event["state"] == "interrupted"
            && (preview.contains("exit code 0") || preview.starts_with("Created"))
        {
            case.world.shared.violation("ended well, called cut off", preview);
        }
    }
}

/// A session without anything to finish isn't listed as cut off, and work that waits to be landed
/// is named.
fn nothing_to_finish(case: &Case, ended: &Ended) {
    let sessions = case.world.sessions();
    let said = format!("{}{}", ended.out, ended.err);
    let named = sessions.iter().find(|one| one["id"].as_str().is_some_and(|id| said.contains(id)));
    let Some(session) = named else { return };
    if session["status"] == "cut_off" {
        case.world.shared.violation("untrue", format!("listed as cut off: {said}"));
    }
    if session["status"] == "verified"
        && case.scenario.reach == Reach::Lands
        && !session["copy"].is_null()
        && case.in_place(0).is_empty()
        && !said.contains("jm land")
    {
        case.world.shared.violation("untrue", format!("not a word on landing: {said}"));
    }
}
