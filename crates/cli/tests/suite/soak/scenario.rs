//! What is done, what is ended, what is done afterwards, and what has to hold after each.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::Signal;

use super::Violation;
use super::words;
use super::world::{CHECK, Effect, Ended, Moment, PutBack, USERS, WRONG_CHECK, World, effects, effects_of};

/// Where the work of a scenario's runs may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The user's files, at once.
    InPlace,
    /// The user's files, when it is verified.
    Lands,
    /// A copy, until somebody lands it.
    Keeps,
    /// Nowhere.
    Nothing,
}

/// One command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Run,
    /// As [`Act::Run`], ended at a random instant.
    CutRun,
    /// Two runs, of which the first is ended and the second isn't.
    Pair,
    Resume,
    Undo,
    Redo,
    Land,
    LandDry,
    Discard,
    Sessions,
    Show,
}

#[derive(Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub flags: &'static [&'static str],
    pub reach: Reach,
    before: &'static [Act],
    cut: Act,
}

const fn scenario(
    name: &'static str,
    flags: &'static [&'static str],
    reach: Reach,
    before: &'static [Act],
    cut: Act,
) -> Scenario {
    Scenario { name, flags, reach, before, cut }
}

/// Redone in a row at the end of a case, at most: more than anything is undone in one.
const MAX_REDONE: usize = 12;

/// Requests after which a command is ended: after the second one the long command runs.
const REQUESTS: [usize; 10] = [1, 2, 2, 2, 2, 3, 4, 5, 6, 7];

const UNCHECKED: &[&str] = &["--in-place", "--no-check"];
const CHECKED: &[&str] = &["--in-place", "--check", CHECK];
// A run works in a copy by default; one scenario says so itself.
const COPY: &[&str] = &["--check", CHECK];
const COPY_UNCHECKED: &[&str] = &["--no-check"];
const COPY_KEPT: &[&str] = &["--isolate", "--no-land", "--check", CHECK];
const CANDIDATES: &[&str] = &["--candidates", "2", "--check", CHECK];
const CANDIDATES_LANDED: &[&str] = &["--candidates", "2", "--land", "--check", CHECK];

pub const SCENARIOS: [Scenario; 16] = [
    scenario("run --in-place", UNCHECKED, Reach::InPlace, &[], Act::Run),
    scenario("run --in-place --check", CHECKED, Reach::InPlace, &[], Act::Run),
    scenario("run --check", COPY, Reach::Lands, &[], Act::Run),
    scenario("run --no-check", COPY_UNCHECKED, Reach::Keeps, &[], Act::Run),
    scenario("run --isolate --no-land", COPY_KEPT, Reach::Keeps, &[], Act::Run),
    scenario("ask", &["ask"], Reach::Nothing, &[], Act::Run),
    scenario("run --candidates", CANDIDATES, Reach::Keeps, &[], Act::Run),
    scenario("run --candidates --land", CANDIDATES_LANDED, Reach::Lands, &[], Act::Run),
    scenario("resume", UNCHECKED, Reach::InPlace, &[Act::CutRun], Act::Resume),
    scenario("resume, checked", CHECKED, Reach::InPlace, &[Act::CutRun], Act::Resume),
    scenario("resume of a copy", COPY_KEPT, Reach::Keeps, &[Act::CutRun], Act::Resume),
    scenario("undo", UNCHECKED, Reach::InPlace, &[Act::Run], Act::Undo),
    scenario("redo", UNCHECKED, Reach::InPlace, &[Act::Run, Act::Undo], Act::Redo),
    scenario("land", COPY_UNCHECKED, Reach::Keeps, &[Act::Run], Act::Land),
    scenario("discard", COPY_UNCHECKED, Reach::Keeps, &[Act::Run], Act::Discard),
    scenario("two runs", UNCHECKED, Reach::InPlace, &[], Act::Pair),
];

/// One case, played.
pub struct Played {
    pub scenario: &'static str,
    pub violations: Vec<Violation>,
    pub counted: Vec<String>,
}

pub struct Case {
    pub world: World,
    pub scenario: &'static Scenario,
    rng: Rng,
    counted: Vec<String>,
    /// Somebody landed the work by a command.
    pub landed_by_hand: bool,
    undone: bool,
    /// The user's files that an undo said it took back, or crash recovery that it put back.
    told_back: BTreeSet<&'static str>,
    /// Ignored files that a run said it changed, as they are to be after its undo.
    pub told_ignored: BTreeSet<String>,
    /// A run was ended before its end.
    pub run_cut: bool,
    /// The user's lines that were seen to be gone from their files, and named.
    gone: BTreeSet<usize>,
    /// Lasting violations that are on the list.
    known: BTreeSet<String>,
}

/// Plays the case of a seed.
pub fn play(seed: u64) -> Played {
    let scenario = &SCENARIOS[usize::try_from(seed).unwrap() % SCENARIOS.len()];
    let is_script = (seed + seed / SCENARIOS.len() as u64) % 2 == 1;
    let mut case = Case {
        world: World::new(scenario.reach == Reach::InPlace, is_script),
        scenario,
        rng: Rng::with_seed(seed),
        counted: Vec::new(),
        landed_by_hand: false,
        undone: false,
        told_back: BTreeSet::new(),
        told_ignored: BTreeSet::new(),
        run_cut: false,
        gone: BTreeSet::new(),
        known: BTreeSet::new(),
    };
    for act in scenario.before {
        match act {
            Act::CutRun => case.cut(Act::Run),
            act => case.act(*act),
        }
    }
    match scenario.cut {
        Act::Pair => case.pair(),
        act => case.cut(act),
    }
    case.afterwards();
    case.give_back();
    case.check_copies();
    let told = case.world.shared.told_cut_off.load(Ordering::SeqCst);
    case.counted.extend(std::iter::repeat_n("calls cut off, told to the model".to_owned(), told));
    let violations = std::mem::take(&mut *case.world.shared.violations.lock().unwrap());
    Played { scenario: scenario.name, violations, counted: case.counted }
}

impl Case {
    pub fn tasks(&self) -> std::ops::Range<usize> {
        0..if self.scenario.cut == Act::Pair { 2 } else { 1 }
    }

    fn has_candidates(&self) -> bool {
        self.scenario.flags.contains(&"--candidates")
    }

    /// Changes of a task that are in the user's files, those in ignored files left out.
    pub fn in_place(&self, task: usize) -> Vec<Effect> {
        let all = effects(task).into_iter();
        all.filter(|effect| !effect.ignored && self.world.shared.is_there(effect)).collect()
    }

    /// A session of the first task, any of them.
    fn any_session(&mut self) -> Option<String> {
        let sessions = self.world.sessions();
        let picked = self.rng.usize(..sessions.len().max(1));
        Some(sessions.get(picked)?["id"].as_str()?.to_owned())
    }

    fn words(&mut self, act: Act) -> Option<Vec<String>> {
        let named = self.has_candidates() || self.rng.bool();
        let id = if named { self.any_session() } else { None };
        let fixed: &[&str] = match act {
            Act::Run | Act::CutRun | Act::Pair => return Some(self.world.run_words(self.scenario.flags, 0)),
            Act::Resume => &["resume"],
            Act::Undo => &["undo"],
            Act::Redo => &["redo"],
            Act::Land => &["land", "--unverified"],
            Act::LandDry => &["land", "--dry-run"],
            Act::Discard => &["discard", "--yes"],
            Act::Sessions => &["sessions"],
            Act::Show => &["show"],
        };
        let takes_id = !matches!(act, Act::Redo | Act::Sessions);
        let id = id.filter(|_| takes_id);
        Some(fixed.iter().map(|word| (*word).to_owned()).chain(id).collect())
    }

    fn act(&mut self, act: Act) {
        let Some(words) = self.words(act) else { return };
        let ended = self.world.run(&words);
        self.after(act, &ended);
    }

    fn moment(&mut self, act: Act) -> (Moment, Duration) {
        let asks = matches!(act, Act::Run | Act::Pair | Act::Resume);
        let later = if self.rng.bool() { 60_000 } else { 400_000 };
        let moment = match self.rng.u8(..20) {
            0..9 if asks => Moment::Request(REQUESTS[self.rng.usize(..REQUESTS.len())]),
            9..15 if asks => Moment::Line(self.rng.usize(1..15)),
            _ => Moment::Begin,
        };
        let later = if matches!(moment, Moment::Begin) && !asks { 120_000 } else { later };
        (moment, Duration::from_micros(self.rng.u64(..later)))
    }

    /// Runs a command and ends it; then the user saves a line, or doesn't.
    fn cut(&mut self, act: Act) {
        let Some(words) = self.words(act) else { return };
        let running = self.world.start(&words);
        self.cut_off(act, running);
    }

    fn cut_off(&mut self, act: Act, running: super::world::Running) {
        let (moment, later) = self.moment(act);
        let signal = *[Signal::KILL, Signal::KILL, Signal::KILL, Signal::KILL, Signal::INT, Signal::TERM]
            .get(self.rng.usize(..6))
            .unwrap();
        let ended = self.world.cut(running, moment, later, signal);
        self.counted.push(match ended.signal {
            Some(signal) => format!("ended by {signal:?}"),
            None => "ended before".to_owned(),
        });
        if act == Act::Land {
            self.landed_by_hand = true;
        }
        self.undone |= act == Act::Undo;
        self.run_cut |= matches!(act, Act::Run | Act::Pair | Act::Resume) && ended.signal.is_some();
        if std::env::var_os("JM_SOAK_SEED").is_some() {
            println!("cut {moment:?} {later:?} {:?}: {}", ended.signal, ended.command);
        }
        if ended.signal.is_none() {
            self.after(act, &ended);
        } else {
            // What was said until then holds too.
            self.note_put_back(&ended);
        }
        if self.rng.bool() {
            // A killed command's processes may live for a moment, and another run may be at work.
            self.world.shared.save(ended.code.is_none() || act == Act::Pair);
        }
    }

    fn pair(&mut self) {
        self.world.shared.is_pair.store(true, Ordering::SeqCst);
        let words = [0, 1].map(|task| self.world.run_words(self.scenario.flags, task));
        let (first, second) = (self.world.start(&words[0]), self.world.start(&words[1]));
        self.cut_off(Act::Pair, first);
        let ended = self.world.cut(second, Moment::Request(100), Duration::ZERO, Signal::KILL);
        self.after(Act::Pair, &ended);
        let there = |effect: &Effect| self.world.shared.is_there(effect);
        let kept: Vec<Effect> = effects(1).into_iter().filter(there).collect();
        let Some(id) = self.world.session_of(0) else { return };
        let ended = self.world.run(&["undo".to_owned(), id]);
        self.after(Act::Undo, &ended);
        let lost: Vec<String> = kept
            .into_iter()
            .filter(|effect| !self.world.shared.is_there(effect))
            .map(|effect| effect.path)
            .collect();
        if !lost.is_empty() {
            self.world.shared.violation("another's work", format!("{lost:?} is gone\n{}", ended.out));
        }
        self.undone = true;
    }

    fn afterwards(&mut self) {
        let is_apart = matches!(self.scenario.reach, Reach::Lands | Reach::Keeps);
        let mut acts = vec![Act::Sessions, Act::Show, Act::Resume];
        if self.rng.bool() {
            acts.push(Act::Resume);
        }
        if is_apart {
            acts.push(Act::LandDry);
        }
        self.rng.shuffle(&mut acts);
        acts.push(match (self.scenario.reach, self.rng.u8(..4)) {
            (Reach::Keeps, 0 | 1) => Act::Land,
            (Reach::Keeps, 2) => Act::Discard,
            (_, 3) => Act::Sessions,
            _ => Act::Undo,
        });
        acts.push(if self.rng.bool() { Act::Undo } else { Act::LandDry });
        acts.into_iter().for_each(|act| self.act(act));
    }

    /// Every copy that is left belongs to a session on record.
    fn check_copies(&self) {
        let sessions = self.world.sessions();
        for name in self.world.copies() {
            if !sessions.iter().any(|session| session["id"] == *name) {
                self.world.shared.violation("copy without a session", name);
            }
        }
    }

    /// Looks for what a command says was put back: a checkpoint has it as it was found.
    fn note_put_back(&mut self, ended: &Ended) {
        let all: Vec<PutBack> = ended.err.lines().chain(ended.out.lines()).filter_map(PutBack::of).collect();
        for put_back in all {
            self.counted.push("put back after a crash".to_owned());
            let named = |file: &&str| put_back.paths.iter().any(|path| path == file);
            self.told_back.extend(USERS.iter().copied().filter(named));
            let mut diffs = String::new();
            for number in &put_back.checkpoints {
                let ran = self.world.run(&["diff".to_owned(), number.to_string()]);
                if ran.code != Some(0) {
                    self.world.shared.violation("checkpoint lost", format!("{number}: {}", ran.err));
                }
                diffs.push_str(&ran.out);
            }
            let saved = self.world.shared.saved.lock().unwrap().clone();
            for one in saved.iter().filter(|one| named(&one.file) && one.beside_command) {
                let is_there = self.world.shared.text(one.file).contains(&one.line);
                if !is_there && !diffs.contains(&format!("-{}", one.line)) {
                    let text = format!("`{}` is in none of {:?}", one.line.trim(), put_back.checkpoints);
                    self.world.shared.violation("user's line lost", text);
                }
            }
        }
    }

    /// Takes back all that was taken back, by each session where something was changed since: the
    /// user's lines that went with it are there again, but in a file that the user changed since,
    /// which is named.
    fn give_back(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        let (mut found, mut kept) = (BTreeSet::new(), BTreeSet::new());
        let ids: Vec<String> = self.tasks().filter_map(|task| self.world.session_of(task)).collect();
        for id in std::iter::once(None).chain(ids.into_iter().map(Some)) {
            for _ in 0..MAX_REDONE {
                if self.gone.iter().all(|at| found.contains(at)) {
                    break;
                }
                let words: Vec<String> = std::iter::once("redo".to_owned()).chain(id.clone()).collect();
                let ended = self.world.run(&words);
                self.after(Act::Redo, &ended);
                let saved = self.world.shared.saved.lock().unwrap().clone();
                let is_there =
                    |at: &&usize| self.world.shared.text(saved[**at].file).contains(&saved[**at].line);
                found.extend(self.gone.iter().filter(is_there).copied());
                let says =
                    |file: &&str| ended.out.lines().any(|line| line.starts_with(&format!("kept {file}: ")));
                kept.extend(USERS.iter().copied().filter(says));
                if !matches!(ended.code, Some(0 | 1)) || ended.out.contains(": 0 files done again") {
                    break;
                }
            }
        }
        let saved = self.world.shared.saved.lock().unwrap().clone();
        for at in &self.gone - &found {
            let one = &saved[at];
            let is_newer = saved[at + 1..].iter().any(|other| other.file == one.file);
            if is_newer && kept.contains(one.file) {
                self.counted.push("user's lines kept in a checkpoint alone".to_owned());
            } else {
                let text = format!("`{}` of {}: `jm redo` doesn't give it back", one.line.trim(), one.file);
                self.world.shared.violation("user's line lost", text);
            }
        }
        self.counted.extend(found.iter().map(|_| "user's lines given back by redo".to_owned()));
    }

    /// Holds what is there, and what was said, against what has to be.
    fn after(&mut self, act: Act, ended: &Ended) {
        let shared = std::sync::Arc::clone(&self.world.shared);
        self.counted.push(format!("{act:?}").to_lowercase());
        let all = format!("{}\n{}", ended.out, ended.err);
        if std::env::var_os("JM_SOAK_SEED").is_some() {
            println!("--- {} ({:?})\n{all}", ended.command, ended.code);
        }
        let told = |kind, text: String| shared.violation(kind, format!("{}: {text}", ended.command));
        if all.contains("panicked at")
            || ended.code.is_some_and(|code| !(0..=9).contains(&code) && code != 130)
        {
            told("crash", format!("{:?}\n{all}", ended.code));
        }
        match act {
            Act::Land => self.landed_by_hand = true,
            Act::Undo => {
                self.undone = true;
                let named = |file: &&str| ended.out.lines().any(|line| line.contains(*file));
                self.told_back.extend(USERS.iter().copied().filter(|file| named(file)));
            }
            _ => {}
        }
        self.note_put_back(ended);
        for text in [WRONG_CHECK, "no model is set"] {
            if all.contains(text) {
                told("other settings", format!("`{text}`"));
            }
        }
        if self.scenario.flags.contains(&"--no-check")
            && act == Act::Resume
            && all.contains("verifying round")
        {
            told("other settings", "checks run that were not asked for".to_owned());
        }
        self.check_files(act, ended);
        words::check(self, act, ended);
        if matches!(act, Act::Run | Act::Resume | Act::Pair) {
            self.told_ignored.extend(words::ignored_of_the_run(&all));
        }
    }

    fn check_files(&mut self, act: Act, ended: &Ended) {
        let shared = &self.world.shared;
        let mut found: Vec<(&'static str, String)> = Vec::new();
        let mut told = |kind, text: String| found.push((kind, text));
        for task in self.tasks() {
            for effect in effects(task).iter().filter(|effect| effect.path.contains("ledger")) {
                let times = shared.text(&effect.path).matches(&effect.text).count();
                if times > 1 {
                    told("twice", format!("`{}` is {times} times in {}", effect.text.trim(), effect.path));
                }
            }
            let there = self.in_place(task);
            // The model doesn't run a command again of which it was told that nothing tracked is in
            // place.
            let void = shared.void.lock().unwrap();
            let done = (0..5).filter(|nth| !void.contains(&(task, *nth)));
            let whole = done.flat_map(|nth| effects_of(task, nth)).filter(|effect| !effect.ignored).count();
            let names: Vec<&str> = there.iter().map(|effect| effect.path.as_str()).collect();
            match self.scenario.reach {
                Reach::Nothing | Reach::Keeps if !self.landed_by_hand && !there.is_empty() => {
                    told("landed unasked", format!("{names:?}"));
                }
                Reach::Lands
                    if !self.undone && !self.landed_by_hand && !there.is_empty() && there.len() < whole =>
                {
                    told("landed in part", format!("{names:?}"));
                }
                _ => {}
            }
        }
        // What was taken back without a word of what was kept is as it was.
        let is_whole = ended.code == Some(0) && ended.signal.is_none() && self.tasks().len() == 1;
        if act == Act::Undo && is_whole && self.scenario.reach == Reach::InPlace {
            let left: Vec<String> = self.in_place(0).into_iter().map(|effect| effect.path).collect();
            if !left.is_empty() {
                told("not taken back", format!("{left:?}\n{}", ended.out));
            }
        }
        if act == Act::Undo && is_whole && !self.run_cut {
            for path in &self.told_ignored {
                let before = self.world.before.get(std::path::Path::new(path));
                if std::fs::read(shared.project.join(path)).ok().as_ref() != before {
                    told("not taken back", format!("{path}\n{}", ended.out));
                }
            }
        }
        for (at, saved) in shared.saved.lock().unwrap().iter().enumerate() {
            let is_there = shared.text(saved.file).contains(&saved.line);
            if !is_there && saved.beside_command && self.told_back.contains(saved.file) {
                self.gone.insert(at);
            } else if !is_there {
                told("user's line lost", format!("`{}` of {}, {saved:?}", saved.line.trim(), saved.file));
            }
        }
        for (kind, text) in found {
            // What is once so stays so: it is told of the command that did it.
            if self.known.insert(text.clone()) {
                self.world.shared.violation(kind, format!("{}: {text}", ended.command));
            }
        }
    }
}
