//! Random damage to each kind of file that is stored, under real sessions, and what every command
//! says and does then.
//!
//! The suite runs a few seeds; `JM_DAMAGE_CASES` says how many, and `cargo xtask soak damage` runs
//! hundreds. A house with five sessions is made, and brought back to what it was before each case.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::support::{House, Jm, Ran, Server, call, needs_sandbox, polite_edit, say, snapshot};

/// Cases in the suite: each kind of file comes up once.
const CASES: u64 = 9;
/// Cases that are played at once where there are more, each thread with a house of its own.
const THREADS: usize = 2;
/// What is damaged, in turn.
const KINDS: [Kind; 9] = [
    Kind::Log,
    Kind::Journal,
    Kind::Blob,
    Kind::Ledger,
    Kind::Packs,
    Kind::CopyRecord,
    Kind::CopyJournal,
    Kind::CopyChanges,
    Kind::StatCache,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Log,
    Journal,
    Blob,
    Ledger,
    Packs,
    CopyRecord,
    CopyJournal,
    CopyChanges,
    StatCache,
}

/// What is done to it, by chance: most damage is small.
const HARMS: [Harm; 8] =
    [Harm::Flip, Harm::Flip, Harm::Flip, Harm::Truncate, Harm::Zero, Harm::Remove, Harm::Empty, Harm::Swap];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Flip,
    Truncate,
    Zero,
    Remove,
    Empty,
    Swap,
}

/// What a session is known by before anything is damaged.
struct Known {
    id: String,
    export: String,
    /// The project after its undo; `None` where it changed nothing in it.
    undone: Option<BTreeMap<PathBuf, Vec<u8>>>,
}

struct World {
    house: House,
    aside: PathBuf,
    saved: Vec<PathBuf>,
    tree: BTreeMap<PathBuf, Vec<u8>>,
    sessions: Vec<Known>,
    /// The exit code of `jm doctor` where nothing is damaged.
    well: i32,
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-aT").arg(from).arg(to).status().unwrap().success());
}

fn remove(path: &Path) {
    if path.exists() {
        assert!(Command::new("rm").arg("-rf").arg(path).status().unwrap().success());
    }
}

impl World {
    fn new() -> Self {
        let house = House::with_greeter();
        // Enough small files for packs.
        for number in 0..140 {
            house.write(
                &format!("src/file{number:03}.txt"),
                format!("content {number}\n").repeat(number % 7 + 1),
            );
        }
        house.write("notes.txt", "first\n");
        let run = |replies: Vec<_>, flags: &[&str], code: i32| {
            let server = Server::chat(replies);
            let mut arguments = vec!["--json", "--no-check"];
            arguments.extend(flags);
            server.run(&house, &arguments).run().expect(code).report().session.to_string()
        };
        let write = |path: &str, content: &str| call("write_file", json!({"path": path, "content": content}));
        let read = |path: &str| call("read_file", json!({ "path": path }));
        let mut ids = Vec::new();
        ids.push(run(
            vec![call("edit_file", polite_edit()), write("new/a.txt", "a\n"), say("Done.")],
            &["one"],
            4,
        ));
        if needs_sandbox() {
            let shell = call("run_command", json!({"command": "echo more >> notes.txt; rm src/file001.txt"}));
            ids.push(run(vec![shell, say("Done.")], &["--mode", "auto", "two"], 4));
        }
        ids.push(run(
            vec![read("src/file002.txt"), write("src/file002.txt", "rewritten\n"), say("Done.")],
            &["three"],
            4,
        ));
        let landed = run(vec![write("src/landed.txt", "landed\n"), say("Done.")], &["--isolate", "four"], 4);
        house.jm(&["land", &landed, "--unverified"]).run().expect(0);
        ids.push(landed);
        let kept = vec![read("src/file003.txt"), write("src/file003.txt", "in the copy\n"), say("Done.")];
        ids.push(run(kept, &["--isolate", "five"], 4));
        // Writes down what the copy changed.
        house.jm(&["land", "--dry-run"]).run().expect(0).prints(&["1 file would be landed"]);
        let aside = house.at("aside");
        let beside = std::fs::read_dir(house.at(".")).unwrap().map(|entry| entry.unwrap().path());
        let mut saved: Vec<PathBuf> = beside
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".journeyman-work-"))
            .collect();
        saved.extend([house.state(), house.project()]);
        std::fs::create_dir(&aside).unwrap();
        saved.iter().enumerate().for_each(|(number, path)| copy(path, &aside.join(number.to_string())));
        let (tree, well) = (house.tree(), house.jm(&["doctor"]).run().code());
        let mut world = Self { house, aside, saved, tree, sessions: Vec::new(), well };
        world.sessions = ids.into_iter().map(|id| world.known(id)).collect();
        world.restore();
        world
    }

    fn known(&self, id: String) -> Known {
        let export = self.jm(&["export", &id]).run().expect(0).stdout;
        let undo = self.jm(&["undo", &id]).run();
        let undone = (undo.code() == 0).then(|| self.house.tree());
        self.restore();
        Known { id, export, undone }
    }

    /// Brings everything back to what it was.
    fn restore(&self) {
        for (number, path) in self.saved.iter().enumerate() {
            remove(path);
            copy(&self.aside.join(number.to_string()), path);
        }
    }

    fn jm(&self, arguments: &[&str]) -> Jm {
        self.house.jm(arguments)
    }

    /// The project's directory of state.
    fn project(&self) -> PathBuf {
        let mut all = std::fs::read_dir(self.house.state().join("projects")).unwrap();
        all.next().unwrap().unwrap().path()
    }

    fn files(&self, kind: Kind) -> Vec<PathBuf> {
        let project = self.project();
        let work = project.join("work").join(&self.sessions.last().unwrap().id);
        match kind {
            Kind::Log => vec![self.house.state().join("sessions.db")],
            Kind::Journal => vec![project.join("journal/log")],
            Kind::Blob => {
                let all = snapshot(&self.house.state().join("blobs")).into_keys();
                all.filter(|path| path.components().count() == 2)
                    .map(|path| self.house.state().join("blobs").join(path))
                    .collect()
            }
            Kind::Ledger => vec![project.join("ledger")],
            Kind::Packs => vec![project.join("packs")],
            Kind::CopyRecord => vec![work.join("record")],
            Kind::CopyJournal => vec![work.join("state/journal/log")],
            Kind::CopyChanges => vec![work.join("changes")],
            Kind::StatCache => vec![project.join("stat-cache")],
        }
    }
}

/// Does it to a file of that kind; says what was done.
fn harm(world: &World, kind: Kind, harm: Harm, random: &mut fastrand::Rng) -> String {
    let mut files = world.files(kind);
    files.sort();
    let path = files.swap_remove(random.usize(..files.len()));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = random.usize(..bytes.len());
    match harm {
        Harm::Flip => bytes[at] ^= 1 << random.u8(..8),
        Harm::Truncate => bytes.truncate(at),
        Harm::Zero => {
            let start = at / 512 * 512;
            let end = bytes.len().min(start + 512);
            bytes[start..end].fill(0);
        }
        Harm::Empty => bytes.clear(),
        Harm::Swap => {
            let others = [Kind::Blob, Kind::Journal, Kind::Ledger].map(|kind| world.files(kind)).concat();
            let others: Vec<PathBuf> = others.into_iter().filter(|other| *other != path).collect();
            bytes = std::fs::read(&others[random.usize(..others.len())]).unwrap();
        }
        Harm::Remove => {
            std::fs::remove_file(&path).unwrap();
            return format!("{} is removed", path.display());
        }
    }
    std::fs::write(&path, bytes).unwrap();
    format!("{harm:?} at {at} in {}", path.display())
}

/// One case, with what was said in it for whoever has to understand a failure.
struct Case<'a> {
    world: &'a World,
    what: String,
    log: String,
}

impl Case<'_> {
    /// Runs a command: it ends by itself, with one of these codes, and never panics.
    #[track_caller]
    fn run(&mut self, arguments: &[&str], codes: &[i32]) -> Ran {
        let ran = self.world.jm(arguments).run();
        self.note(arguments, &ran);
        assert!(!ran.stderr.contains("panicked at"), "a panic: {}", self.told());
        assert!(codes.contains(&ran.code()), "{arguments:?}: not one of {codes:?}: {}", self.told());
        // Nobody is sent to the repair that just failed.
        let is_repair = arguments.contains(&"--repair");
        assert!(!is_repair || !ran.stderr.contains("jm doctor --repair"), "{}", self.told());
        ran
    }

    fn note(&mut self, arguments: &[&str], ran: &Ran) {
        let most = if matches!(arguments, ["export" | "show", ..]) { 100 } else { 1500 };
        let cut = |text: &str| text.chars().take(most).collect::<String>();
        let (out, err) = (cut(&ran.stdout), cut(&ran.stderr));
        self.log.push_str(&format!("\n$ jm {arguments:?} -> {}\n{out}{err}", ran.code()));
    }

    fn told(&self) -> String {
        format!("{}\n{}", self.what, self.log)
    }

    /// Damage that doctor tells, and its exit code.
    fn doctor(&mut self) -> Vec<Value> {
        let ran = self.run(&["doctor", "--json"], &[self.world.well, 8]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["stored"].get("problem"), None, "{}", self.told());
        let damage = report["stored"]["damage"].as_array().unwrap().clone();
        assert_eq!(damage.is_empty(), ran.code() == self.world.well, "{}", self.told());
        damage
    }

    /// The sessions that are listed.
    fn sessions(&mut self, codes: &[i32]) -> Vec<Value> {
        let ran = self.run(&["sessions", "--json"], codes);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Undoes a session, and compares what is said with the tree.
    fn undo(&mut self, known: &Known, mended: bool) {
        let before = self.world.house.tree();
        let codes: &[i32] = if known.undone.is_some() { &[0, 1] } else { &[1, 2] };
        let ran = self.run(&["undo", &known.id], codes);
        let after = self.world.house.tree();
        let said = |verbs: &[&str]| -> BTreeSet<PathBuf> {
            let lines = ran.stdout.lines().filter_map(|line| line.split_once(' '));
            let named = lines.filter(|(verb, _)| verbs.contains(verb));
            named.map(|(_, rest)| PathBuf::from(rest.split(": ").next().unwrap())).collect()
        };
        let (done, kept) = (said(&["restored", "removed", "brought"]), said(&["kept"]));
        let done: BTreeSet<PathBuf> = done
            .into_iter()
            .map(|path| path.strip_prefix("back ").map(Path::to_owned).unwrap_or(path))
            .collect();
        let incomplete = ran.stdout.contains("the undo is incomplete") || ran.code() == 1;
        let Some(wanted) = &known.undone else {
            assert_eq!(after, before, "nothing was to be taken back: {}", self.told());
            return;
        };
        let paths: BTreeSet<&PathBuf> = before.keys().chain(wanted.keys()).chain(after.keys()).collect();
        for path in paths {
            let (was, is, should) = (before.get(path), after.get(path), wanted.get(path));
            let changed_by_it = self.world.tree.get(path) != should;
            if !changed_by_it {
                assert_eq!(is, was, "{} is none of its: {}", path.display(), self.told());
            } else if is != should {
                assert_eq!(is, was, "{} is neither: {}", path.display(), self.told());
                assert!(
                    incomplete || kept.contains(path),
                    "{} stays unsaid: {}",
                    path.display(),
                    self.told()
                );
                assert_ne!(ran.code(), 0, "{}", self.told());
            }
            // What was said to be done is done.
            if was != is {
                let name = path.to_string_lossy().into_owned();
                let named = done.contains(path) || ran.stdout.contains(&name);
                assert!(named, "{name} changed unsaid (mended: {mended}): {}", self.told());
            } else {
                assert!(!done.contains(path), "{} is as it was: {}", path.display(), self.told());
            }
        }
    }

    /// What is said of copies is true.
    fn copies(&mut self, listed: &[Value]) {
        for session in listed {
            let id = session["id"].as_str().unwrap().to_owned();
            if session["copy"].is_null() {
                let ran = self.run(&["land", &id, "--dry-run"], &[1, 2]);
                assert!(!ran.stdout.contains("would be landed"), "{}", self.told());
            } else {
                let ran = self.run(&["land", &id, "--dry-run"], &[0, 1]);
                let is_told = ran.stdout.contains("1 file would be landed")
                    || ["is damaged", "gone or damaged"].iter().any(|said| ran.stderr.contains(said));
                assert!(is_told, "{}", self.told());
            }
        }
    }
}

/// Which sessions can be exported.
type Readable<'a> = BTreeMap<&'a str, bool>;

impl<'a> Case<'a> {
    /// Whatever can't be read isn't whole, and what can be read is what it was.
    fn read_all(&mut self, damage: &[Value]) -> Readable<'a> {
        let mut readable = BTreeMap::new();
        for known in &self.world.sessions {
            for command in ["show", "export"] {
                let ran = self.run(&[command, &known.id], &[0, 1, 2]);
                let text = format!("{}{}", ran.stdout, ran.stderr);
                assert!(!text.contains("could not be written"), "{}", self.told());
                if ran.code() != 0 {
                    let said = text.contains("no session begins with") || text.contains("damaged");
                    assert!(said && !damage.is_empty(), "{}", self.told());
                } else if command == "export" {
                    // Its title, times and status have no checksum; its entries have.
                    let entries = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
                    assert_eq!(entries(&ran.stdout), entries(&known.export), "{}", self.told());
                }
                readable.insert(known.id.as_str(), ran.code() == 0);
            }
        }
        readable
    }

    /// Mends it: what is set aside is where it is said to be, and nothing is damaged any more.
    fn mend(&mut self, damage: &[Value]) {
        let ran = self.run(&["doctor", "--repair"], &[0]);
        assert_eq!(ran.stdout.contains("is whole"), damage.is_empty(), "{}", self.told());
        for aside in ran.stdout.lines().flat_map(|line| line.split("is now ").skip(1)) {
            let path = aside.split([';', ':', ' ']).next().unwrap();
            assert!(Path::new(path).exists(), "{path} isn't there: {}", self.told());
        }
        assert_eq!(self.doctor(), Vec::<Value>::new(), "still damaged: {}", self.told());
    }

    /// After a repair every session that is left can be read.
    fn read_mended(&mut self, listed: &[Value], kind: Kind) {
        for session in listed {
            let id = session["id"].as_str().unwrap();
            self.run(&["show", id], &[0]);
            let export = self.run(&["export", id], &[0]).stdout;
            let known = self.world.sessions.iter().find(|known| known.id == id);
            if let Some(known) = known.filter(|_| kind != Kind::Log) {
                assert_eq!(export, known.export, "{}", self.told());
            }
        }
    }

    /// Nothing of the project's past is lost but what is damaged.
    fn look_back(&mut self, kind: Kind, how: Harm) {
        let checkpoints = self.run(&["checkpoints"], &[0]);
        let is_cut = matches!(how, Harm::Remove | Harm::Empty | Harm::Swap | Harm::Truncate);
        let is_listed = checkpoints.stdout.contains("before the run");
        assert!(is_listed || (kind == Kind::Journal && is_cut), "{}", self.told());
        let diff = self.run(&["diff"], &[0, 1]);
        assert!(diff.code() == 0 || matches!(kind, Kind::Blob | Kind::Journal), "{}", self.told());
    }

    /// A run after the damage works, goes on, and can be taken back.
    fn run_on(&mut self) {
        let before = self.world.house.tree();
        let later = |content: &str| call("write_file", json!({"path": "later.txt", "content": content}));
        let server = Server::chat([later("later\n"), say("Done."), say("Nothing more.")]);
        let ran = server.run(&self.world.house, &["--json", "--no-check", "later"]).run();
        self.note(&["run"], &ran);
        assert_eq!(ran.code(), 4, "{}", self.told());
        let id = ran.report().session.to_string();
        assert_eq!(self.world.house.read("later.txt"), "later\n");
        self.run(&["resume", &id], &[2]);
        let more = self.world.jm(&["resume", &id, "more"]).env("JM_API_KEY", crate::support::KEY).run();
        self.note(&["resume"], &more);
        assert_eq!(more.code(), 4, "{}", self.told());
        let undo = self.run(&["undo", &id], &[0]);
        assert!(undo.stdout.contains("removed later.txt"), "{}", self.told());
        assert_eq!(self.world.house.tree(), before, "{}", self.told());
    }
}

/// Plays a case; gives what it was, for the table.
fn case(world: &World, seed: u64) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let kind = KINDS[usize::try_from(seed).unwrap() % KINDS.len()];
    let how = HARMS[random.usize(..HARMS.len())];
    world.restore();
    let done = harm(world, kind, how, &mut random);
    let mut case = Case { world, what: format!("seed {seed}: {kind:?}: {done}"), log: String::new() };
    let mut counted = vec![format!("damaged: {kind:?}"), format!("done to it: {how:?}")];
    let mut count = |what: &str| counted.push(what.to_owned());
    let damage = case.doctor();
    count(if damage.is_empty() { "of no consequence" } else { "told by `jm doctor`" });
    let readable = case.read_all(&damage);
    // Half of them go on without a repair.
    let mended = random.bool();
    if mended {
        count("then `jm doctor --repair`");
        case.mend(&damage);
    }
    let listed = case.sessions(if mended { &[0] } else { &[0, 1] });
    if mended {
        case.read_mended(&listed, kind);
    }
    if kind != Kind::Log {
        assert_eq!(listed.len(), world.sessions.len(), "{}", case.told());
        if mended {
            case.copies(&listed);
        }
        case.look_back(kind, how);
    }
    let has_log = mended || kind != Kind::Log || damage.is_empty();
    if has_log && random.bool() {
        count("then a run, gone on with and taken back");
        case.run_on();
    }
    for known in world.sessions.iter().rev() {
        let is_listed = listed.iter().any(|session| session["id"] == known.id.as_str());
        if has_log && is_listed && (mended || readable[known.id.as_str()]) {
            count("sessions taken back");
            case.undo(known, mended);
        }
    }
    counted
}

#[test]
fn damage_to_stored_files_costs_what_is_damaged_and_every_sentence_is_true() {
    let cases = std::env::var("JM_DAMAGE_CASES").ok().map_or(CASES, |cases| cases.parse().unwrap());
    let threads = if cases > CASES { THREADS } else { 1 };
    let (next, played) = (AtomicU64::new(0), Mutex::new((BTreeMap::<String, u64>::new(), Vec::new())));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let world = World::new();
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= cases {
                        break;
                    }
                    // One that fails says so; what the others do is worth as much.
                    let counted = catch_unwind(AssertUnwindSafe(|| case(&world, seed)));
                    let (rows, failed) = &mut *played.lock().unwrap();
                    match counted {
                        Ok(counted) => {
                            counted.into_iter().for_each(|what| *rows.entry(what).or_default() += 1);
                        }
                        Err(_) => failed.push(seed),
                    }
                }
            });
        }
    });
    let (rows, failed) = played.into_inner().unwrap();
    println!("| cases | {cases} |\n|---|---|");
    rows.iter().for_each(|(what, count)| println!("| {what} | {count} |"));
    println!("| violations | {} |", failed.len());
    assert_eq!(failed, Vec::<u64>::new(), "seeds that failed");
}

/// Changes a byte of the session log within the first entry that says this.
fn spoil(house: &House, text: &str) {
    let path = house.state().join("sessions.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let places = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text.as_bytes());
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    // The title has no checksum of its own: what is spoiled is in an entry.
    let at = places.into_iter().find(|at| bytes[at - 8..*at].ends_with(b"\"text\":\"")).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
}

fn edited(house: &House, task: &str) -> String {
    let server = Server::chat([call("edit_file", polite_edit()), say("Done.")]);
    server.run(house, &["--json", "--no-check", task]).run().expect(4).report().session.to_string()
}

#[test]
fn doctor_tells_a_damaged_entry_and_mends_the_log() {
    let house = House::with_greeter();
    let well = house.jm(&["doctor"]).run().code();
    let id = edited(&house, "be polite to the world");
    assert_eq!(house.jm(&["doctor"]).run().expect(well).prints(&["are whole"]).code(), well);
    spoil(&house, "be polite to the world");
    house.jm(&["doctor"]).run().expect(8).prints(&[
        "damaged: ",
        "sessions.db: session ",
        &id,
        "entry 2 not as written",
    ]);
    for command in ["show", "export", "resume"] {
        let ran = house.jm(&[command, &id]).run().expect(1);
        ran.says(&["is damaged", "jm doctor --repair"]);
        assert!(!ran.stderr.contains("could not be written"), "{}", ran.stderr);
    }
    let repaired = house.jm(&["doctor", "--repair"]).run().expect(0);
    repaired.prints(&[&id, "1 lost", "set apart", "sessions.db-damaged-"]);
    house.jm(&["doctor"]).run().expect(well).prints(&["are whole"]);
    house.jm(&["show", &id]).run().expect(0);
    house.jm(&["undo", &id]).run().expect(0).prints(&["restored greet.sh"]);
}

#[test]
fn a_log_of_which_nothing_can_be_read_is_set_aside_and_an_empty_one_begun() {
    let house = House::with_greeter();
    let well = house.jm(&["doctor"]).run().code();
    let before = house.tree();
    edited(&house, "be polite");
    let path = house.state().join("sessions.db");
    let length = std::fs::metadata(&path).unwrap().len();
    std::fs::write(&path, vec![0; usize::try_from(length).unwrap()]).unwrap();
    house.jm(&["doctor"]).run().expect(8).prints(&["no session can be read"]);
    let repaired = house.jm(&["doctor", "--repair"]).run().expect(0);
    repaired.prints(&["nothing of the session log", "an empty one is begun", "sessions.db-damaged-"]);
    house.jm(&["doctor"]).run().expect(well);
    house.jm(&["sessions"]).run().expect(0).says(&["no sessions yet"]);
    // What the journal knows can still be taken back.
    house.jm(&["undo"]).run().expect(0).prints(&["restored greet.sh"]);
    assert_eq!(house.tree(), before);
}

#[test]
fn a_log_that_is_gone_is_told_after_commands_that_looked_for_a_session_in_it() {
    let house = House::with_greeter();
    let id = edited(&house, "be polite");
    let path = house.state().join("sessions.db");
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", path.display())).ok();
    }
    for word in [id.as_str(), "last"] {
        for command in ["show", "export", "resume"] {
            house.jm(&[command, word]).run().expect(2).says(&["no session "]);
        }
    }
    house.jm(&["doctor"]).run().expect(8).prints(&["the session log is gone"]);
    house.jm(&["doctor", "--repair"]).run().expect(0).prints(&["was gone; an empty one is begun"]);
}

#[test]
fn nothing_is_mended_while_another_jm_has_the_log() {
    let house = House::with_greeter();
    edited(&house, "be polite to the world");
    let server = Server::chat([crate::support::Step::Stall]);
    let running = server.run(&house, &["wait"]).start();
    server.wait_for(1);
    spoil(&house, "be polite to the world");
    let before = snapshot(&house.state().join("blobs"));
    house.jm(&["doctor", "--repair"]).run().expect(2).says(&["another jm works with", "Nothing was changed"]);
    assert_eq!(snapshot(&house.state().join("blobs")), before);
    running.signal(rustix::process::Signal::KILL);
    running.gone();
    house.jm(&["doctor", "--repair"]).run().expect(0).prints(&["sessions.db-damaged-"]);
}
