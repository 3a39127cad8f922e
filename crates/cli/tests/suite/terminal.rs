//! A person at the terminal: what is asked, and what becomes of the answer.

use serde_json::json;

use crate::support::{
    House, Output, Person, Reply, Server, Step, Wire, call, needs, needs_sandbox, polite_edit, refuse, say,
};

fn touch(name: &str) -> Reply {
    call("run_command", json!({"command": format!("touch -f {name}")}))
}

/// `jm run` at a terminal, in the mode that is built in there.
fn at_the_terminal(server: &Server, house: &House, flags: &[&str]) -> Person {
    Person::start(server.run(house, flags).env("NO_COLOR", "1").command())
}

#[test]
fn commands_are_asked_for_and_edits_are_not() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("edit_file", polite_edit()), touch("made"), say("Done.")]);
    let mut person = at_the_terminal(&server, &house, &["--no-check", "make a file"]);
    person.sees("mode edit");
    person.sees("May I run this?");
    assert!(house.read("greet.sh").contains("Hello"), "the edit needed nobody");
    assert!(!house.project().join("made").exists(), "not before the answer");
    person.sees("say what to do instead:");
    person.types("y\n");
    assert_eq!(person.ends().0, 4);
    assert!(house.project().join("made").exists());
}

#[test]
fn an_answer_reaches_the_model() {
    if !needs(&["setsid"]) {
        return;
    }
    // What is typed, whether the command runs, and what the model is told.
    for (answer, runs, told) in [
        ("y\n", true, "exit code 0"),
        ("yes, and keep it small\n", true, "The user allowed this and says: and keep it small"),
        ("always, it is quick\n", true, "The user allowed this and says: it is quick"),
        ("n\n", false, "denied by the user"),
        ("no: not now\n", false, "denied by the user: not now"),
        ("\nno\n", false, "denied by the user"),
        ("write it with write_file\n", false, "write it with write_file"),
        ("a file is no use\n", false, "a file is no use"),
    ] {
        let house = House::with_greeter();
        let server = Server::chat([touch("made"), say("I see.")]);
        let mut person = at_the_terminal(&server, &house, &["make a file"]);
        person.sees("say what to do instead:");
        person.types(answer);
        person.ends();
        assert_eq!(house.project().join("made").exists(), runs, "{answer:?}");
        let newest = server.seen()[1].newest();
        assert!(newest.contains(told), "{answer:?}: {newest}");
    }
}

#[test]
fn several_questions_come_one_after_the_other() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let [one, two, three] =
        ["one", "two", "three"].map(|name| json!({"command": format!("touch -f {name}")}));
    let calls = call("run_command", one.clone())
        .and("run_command", two)
        .and("run_command", three)
        .and("run_command", one);
    let server = Server::chat([calls, say("Done.")]);
    let mut person = at_the_terminal(&server, &house, &["--no-check", "make files"]);
    person.sees("touch -f one");
    person.sees("would allow, in this session: run_command `touch -f one`");
    person.sees("say what to do instead:");
    person.types("a\n");
    person.sees("touch -f two");
    person.sees("say what to do instead:");
    person.types("n\n");
    person.sees("touch -f three");
    person.sees("say what to do instead:");
    person.types("y\n");
    let (code, screen) = person.ends();
    assert_eq!(code, 4);
    assert_eq!(screen.matches("May I run this?").count(), 3, "the rule answers the fourth\n{screen}");
    let made = ["one", "two", "three"].map(|name| house.project().join(name).exists());
    assert_eq!(made, [true, false, true]);
}

#[test]
fn what_reaches_beyond_the_project_is_never_allowed_for_good() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("run_command", json!({"command": "git push"})), say("Then not.")]);
    let mut person = at_the_terminal(&server, &house, &["publish it"]);
    person.sees("[y]es  [n]o  or say what to do instead:");
    person.types("a\n");
    person.sees("asked about every time");
    person.sees("say what to do instead:");
    person.types("n\n");
    let (_, screen) = person.ends();
    assert!(!screen.contains("[a]lways"), "{screen}");
}

#[test]
fn a_question_that_nobody_answers_counts_as_denied_where_that_is_configured() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    house.configure("[session]\napproval_timeout = \"1ms\"\n");
    let server = Server::chat([touch("made"), say("I see.")]);
    let (_, screen) = at_the_terminal(&server, &house, &["make a file"]).ends();
    assert!(screen.contains("denied by timeout"), "{screen}");
    assert!(
        server.seen()[1].newest().contains("nobody answered within 1 ms"),
        "{}",
        server.seen()[1].newest()
    );
    assert!(!house.project().join("made").exists());
}

#[test]
fn always_means_this_command_in_this_session() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([touch("one"), touch("one"), touch("two"), say("Done.")]);
    let mut person = at_the_terminal(&server, &house, &["--no-check", "make files"]);
    person.sees("say what to do instead:");
    person.types("a\n");
    person.sees("touch -f two");
    person.sees("say what to do instead:");
    person.types("n\n");
    let (_, screen) = person.ends();
    assert_eq!(screen.matches("May I run this?").count(), 2, "{screen}");
    assert!(!house.project().join("two").exists());
}

#[test]
fn control_c_is_heard_while_a_question_is_open() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([touch("made"), say("Done.")]);
    let mut person = at_the_terminal(&server, &house, &["make a file"]);
    person.sees("say what to do instead:");
    person.types("\x03");
    assert_eq!(person.ends().0, 130);
    assert!(!house.project().join("made").exists());
    assert_eq!(house.sessions()[0]["status"], "interrupted");
}

#[test]
fn a_terminal_that_machines_read_asks_nothing() {
    if !needs(&["setsid"]) {
        return;
    }
    for flag in ["--json", "--stream-json", "--quiet"] {
        let house = House::with_greeter();
        let server = Server::chat([touch("made"), say("I see.")]);
        let (code, screen) =
            at_the_terminal(&server, &house, &[flag, "--mode", "edit", "make a file"]).ends();
        assert_eq!(code, 6, "{flag}: {screen}");
        assert!(!screen.contains("May I run this?"), "{flag}: {screen}");
    }
}

#[test]
fn trust_is_asked_for_once_and_again_when_the_file_changes() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    house.write(".journeyman/config.toml", "checks = [\"true\"]\n");
    let server = Server::chat((0..3).map(|_| say("Done.")));
    let run = || at_the_terminal(&server, &house, &["look around"]);

    let mut person = run();
    person.sees("checks");
    person.sees("trust it?");
    person.types("\n");
    assert_eq!(person.ends().0, 2, "no answer is a no");
    assert_eq!(server.seen().len(), 0);

    let mut person = run();
    person.sees("trust it?");
    person.types("y\n");
    assert_eq!(person.ends().0, 4);

    let (code, screen) = run().ends();
    assert_eq!(code, 4);
    assert!(!screen.contains("trust it?"), "{screen}");
    // What was trusted at the terminal holds without one.
    server.run(&house, &["look around"]).run().expect(4);

    house.write(".journeyman/config.toml", "checks = [\"touch pwned\"]\n");
    server.run(&house, &["look around"]).run().expect(2).says(&["--trust-project"]);
    let mut person = run();
    person.sees("trust it?");
    person.types("n\n");
    assert_eq!(person.ends().0, 2);
}

/// `jm run` with everything on a terminal of so many columns, in colours or without.
fn on_a_screen(server: &Server, house: &House, columns: u16, colours: bool, flags: &[&str]) -> Person {
    let jm = server.run(house, flags).env("TERM", "xterm");
    let jm = if colours { jm } else { jm.env("NO_COLOR", "1") };
    Person::start_at(jm.command(), columns, Output::Shown)
}

/// The lines that stay on a screen without colours: what a carriage return went back over is gone.
fn lines_that_stay(screen: &str) -> Vec<&str> {
    screen.split('\n').map(|line| line.trim_end_matches('\r').rsplit('\r').next().unwrap()).collect()
}

const WORDS: &str = "# Findings\n\nThe greeter says **hello** without a comma, and `test.sh` wants one; the \
                     internationalisation of the greeting stays as it was.\n\n- the first point is short\n- the second \
                     point goes on for longer than sixty columns, so that it wraps\n\n| file | what it does |\n\
                     |---|---|\n| greet.sh | greets people by their name, politely or not |\n";

#[test]
fn words_wrap_at_the_terminals_width() {
    if !needs(&["setsid"]) {
        return;
    }
    for columns in [60, 100] {
        let house = House::with_greeter();
        let server = Server::chat([call("read_file", json!({"path": "greet.sh"})), say(WORDS)]);
        let (code, screen) =
            on_a_screen(&server, &house, columns, false, &["a task whose words go on and on"]).ends();
        assert_eq!(code, 4, "{screen}");
        assert!(!screen.contains('\u{1b}'), "NO_COLOR means no escape sequence: {screen:?}");
        let lines = lines_that_stay(&screen);
        for line in &lines {
            assert!(line.chars().count() <= usize::from(columns), "{columns}: {line}\n{screen}");
        }
        for word in WORDS.split(|it: char| !it.is_alphanumeric()) {
            assert!(lines.iter().any(|line| line.contains(word)), "{columns}: `{word}` is whole\n{screen}");
        }
        assert!(screen.contains("• the first point is short"), "{screen}");
        assert_eq!(screen.matches("internationalisation").count(), 1, "the words come once\n{screen}");
    }
}

#[test]
fn markdown_is_rendered_in_colours() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([say(WORDS)]);
    let (_, screen) = on_a_screen(&server, &house, 100, true, &["look around"]).ends();
    assert!(screen.contains("\u{1b}[1mFindings\u{1b}[0m"), "{screen}");
    assert!(screen.contains("says \u{1b}[1mhello\u{1b}[0m without"), "{screen}");
    // What is piped is what the model wrote.
    let house = House::with_greeter();
    let server = Server::chat([say(WORDS)]);
    server.run(&house, &["look around"]).run().prints(&[WORDS.trim()]);
}

#[test]
fn waiting_for_the_model_is_shown_and_gone_at_the_end() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([Step::Stall]);
    let mut person = on_a_screen(&server, &house, 60, false, &["look around"]);
    person.sees("waiting for custom/tiny · 0 s");
    person.sees("waiting for custom/tiny · 1 s");
    person.types("\x03");
    let (code, screen) = person.ends();
    assert_eq!(code, 130);
    let lines = lines_that_stay(&screen);
    assert!(!lines.iter().any(|line| line.contains("waiting for")), "{lines:#?}");
    // Nobody watches a pipe or with --quiet.
    let house = House::with_greeter();
    let server = Server::chat([Step::Stall]);
    let mut person = on_a_screen(&server, &house, 60, false, &["--quiet", "look around"]);
    server.wait_for(1);
    std::thread::sleep(std::time::Duration::from_millis(700));
    person.types("\x03");
    let (_, screen) = person.ends();
    assert!(!screen.contains("waiting"), "{screen}");
}

#[test]
fn a_running_command_and_a_check_show_their_newest_line() {
    if !needs(&["setsid", "make"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.write("test.sh", "echo compiling\nsleep 1\n");
    let command = json!({"command": "seq 1 1200; sleep 1; echo over"});
    let server = Server::chat([call("run_command", command), call("edit_file", polite_edit()), say("Done.")]);
    let mut person = on_a_screen(&server, &house, 80, false, &["--mode", "auto", "go"]);
    person.sees("$ seq 1 1200; sleep 1; echo over · 0 s · 1200");
    person.sees("1,201 lines; last: over");
    person.sees("check 1 of 1: make test · 0 s · compiling");
    let (code, screen) = person.ends();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn a_failed_command_shows_the_end_of_its_output() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let command = json!({"command": "seq 1 3000; echo 'the error comes last'; touch f1 f2 f3 f4 f5 f6 f7 f8 f9; exit 3"});
    let server = Server::chat([call("run_command", command), say("It fails.")]);
    let ran = server.run(&house, &["--no-check", "go"]).run();
    ran.says(&["  ✎ f8\n  … and 1 more file\n"]);
    ran.says(&["  failed: exit code 3\n    … 2,991 lines before\n    2992\n", "    the error comes last\n"]);
    assert!(!ran.stderr.contains("\n    1\n"), "{}", ran.stderr);
    let shown = house.jm(&["show", "last"]).run().expect(0);
    shown.prints(&["    1\n    2\n", "    the error comes last\n", "jm export SESSION --format markdown"]);
}

#[test]
fn an_error_and_an_answer_come_once() {
    if !needs(&["setsid", "sh"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([refuse(Wire::Chat, 401, "authentication_error", "no such key")]);
    let (code, screen) = on_a_screen(&server, &house, 100, false, &["look around"]).ends();
    assert_eq!(code, 1);
    assert_eq!(screen.matches("no such key").count(), 1, "{screen}");
    // One pipe for both outputs.
    let house = House::with_greeter();
    let server = Server::chat([say("The answer is four.")]);
    let ran = server.run(&house, &["two and two"]).merged().run();
    assert_eq!(ran.stdout.matches("The answer is four.").count(), 1, "{}", ran.stdout);
    // A pipe for the result alone has the closing words, also after a change.
    let house = House::with_greeter();
    let server = Server::chat([call("edit_file", polite_edit()), say("Polite now.")]);
    server.run(&house, &["--no-check", "make it polite"]).run().prints(&["Polite now.\n\n", "+    echo"]);
}

#[test]
fn a_question_about_an_edit_shows_its_diff_once() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let lines: String = (1..=60).map(|number| format!("line {number}\n")).collect();
    let server = Server::chat([
        call("edit_file", polite_edit()),
        call("write_file", json!({"path": "long.txt", "content": lines})),
        say("Done."),
    ]);
    let mut person = at_the_terminal(&server, &house, &["--mode", "ask", "--no-check", "make it polite"]);
    person.sees("May I make this change? greet.sh");
    person.sees("3 -    echo \"hello $1\"");
    person.sees("3 +    echo \"Hello, $1!\"");
    person.sees("say what to do instead:");
    person.types("y\n");
    person.sees("May I make this change? long.txt");
    person.sees("40 +line 40");
    person.sees("… 20 more lines: [d] shows the whole");
    person.sees("[d]iff  or say what to do instead:");
    person.types("d\n");
    person.sees("41 +line 41");
    person.sees("60 +line 60");
    person.sees("say what to do instead:");
    person.types("y\n");
    let (_, screen) = person.ends();
    assert_eq!(house.read("long.txt"), lines);
    assert_eq!(screen.matches("+line 20").count(), 1, "{screen}");
    assert!(!screen.contains("search:"), "{screen}");
}

#[test]
fn a_run_says_each_thing_once() {
    if !needs(&["setsid", "make"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([say("Four.")]);
    let (code, screen) = on_a_screen(&server, &house, 80, false, &["--isolate", "two and two?"]).ends();
    assert_eq!(code, 4, "{screen}");
    assert!(!screen.contains("copy"), "an answer needs no word about the copy\n{screen}");

    let server = Server::chat([call("edit_file", polite_edit()), say("Polite."), touch("made"), say("No.")]);
    let (code, screen) = on_a_screen(&server, &house, 80, false, &["--isolate", "be polite"]).ends();
    assert_eq!(code, 0, "{screen}");
    let lines = lines_that_stay(&screen);
    let place = |text: &str| lines.iter().position(|line| line.starts_with(text)).unwrap();
    assert!(place("isolated  works in a copy") < place("● edit greet.sh"), "{screen}");
    for text in ["✓ make test", "landed: 1 file", "verified by `make test`"] {
        assert_eq!(screen.matches(text).count(), 1, "{text}\n{screen}");
    }
    for text in ["tests: make test", "landed  1 file"] {
        assert!(!screen.contains(text), "{text}\n{screen}");
    }

    let mut person = on_a_screen(&server, &house, 80, false, &["make a file"]);
    person.sees("say what to do instead:");
    person.types("n\n");
    let (_, screen) = person.ends();
    assert_eq!(screen.matches("denied").count(), 1, "{screen}");
    assert!(!screen.contains("another way"), "that is for the model\n{screen}");
}

#[test]
fn usage_errors_and_sessions_wrap_at_words() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    server.run(&house, &["count the sheep of all the flocks in the valley, slowly"]).run();
    for (words, whole) in [
        (&["sessions"][..], "valley"),
        (&["run", "--no-such-flag-of-any-kind", "look"], "argument"),
        (&["run", "count", "the", "sheep", "of", "all", "the", "flocks"], "argument;"),
    ] {
        let command = house.jm(words).env("NO_COLOR", "1").env("TERM", "xterm").command();
        let (_, screen) = Person::start_at(command, 40, Output::Shown).ends();
        let lines = lines_that_stay(&screen);
        assert!(lines.iter().any(|line| line.contains(whole)), "{screen}");
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{screen}");
    }
}

#[test]
fn an_undo_of_an_earlier_run_is_asked_about() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let write = call("write_file", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::chat([write, say("There."), say("It greets.")]);
    server.run(&house, &["--no-check", "make a file"]).run().expect(4);
    server.run(&house, &["what does it do?"]).run().expect(4);
    for (answer, code, said, stays) in [
        ("n\n", 1, "nothing was taken back", true),
        ("y\n", 0, "(\"make a file\", just now): 1 file taken back", false),
    ] {
        let command = house.jm(&["undo"]).env("NO_COLOR", "1").command();
        let mut person = Person::start_at(command, 200, Output::Shown);
        person.sees("Nothing was changed by the newest run");
        person.sees("Take that back? [y/N]");
        person.types(answer);
        let (ended, screen) = person.ends();
        assert_eq!(ended, code, "{screen}");
        assert!(screen.contains(said) && !screen.contains("error"), "{screen}");
        assert_eq!(house.project().join("new.txt").exists(), stays);
    }
}

#[test]
fn a_large_diff_names_its_files_with_their_sizes() {
    let house = House::with_greeter();
    // The script has no reply for it.
    house.configure("compaction.summarize = false\n");
    let lines = |count: usize| "a line of some length\n".repeat(count);
    let server = Server::chat([
        call("write_file", json!({"path": "large.txt", "content": lines(30_000)})),
        call("write_file", json!({"path": "small.txt", "content": lines(2)})),
        say("Done."),
    ]);
    let ran = server.run(&house, &["--no-check", "write"]).run();
    ran.prints(&["large.txt  +30000 −0\nsmall.txt  +2 −0\n", "… the diff is cut here"]);
}

#[test]
fn a_long_diff_is_shown_in_the_pager() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let lines: String = (1..=60).map(|line| format!("line {line}\n")).collect();
    let write = call("write_file", json!({"path": "long.txt", "content": lines}));
    let server = Server::chat([write, say("Done.")]);
    server.run(&house, &["--no-check", "--in-place", "write it"]).run().expect(4);
    let diff = |pager: &str| {
        let diff = house.jm(&["diff"]).env("JM_PAGER", pager).env("NO_COLOR", "1");
        Person::start_at(diff.command(), 100, Output::Shown).ends()
    };
    let (code, shown) = diff("sed 's/^/paged: /'");
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("paged: +line 60"), "{shown}");
    for pager in ["cat", "", "no-such-pager-anywhere"] {
        let (code, shown) = diff(pager);
        assert_eq!(code, 0, "{shown}");
        assert!(shown.contains("+line 60"), "{pager}: {shown}");
    }
}

#[test]
fn a_task_behind_flags_that_only_a_run_has_is_run() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    let arguments = server.run(&house, &["--open", "greet.sh", "--no-check", "look around"]).command();
    let words: Vec<&str> = arguments.get_args().skip(1).map(|word| word.to_str().unwrap()).collect();
    let jm = house.jm(&words).env("JM_API_KEY", "x").env("TERM", "xterm");
    let (code, text) = Person::start_at(jm.command(), 80, Output::Shown).ends();
    assert_eq!((code, server.seen().len()), (4, 1), "{text}");
}
