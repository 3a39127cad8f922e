//! Replies that end before the model is done.

use journeyman_protocol::{Event, StopReason, Tokens};
use rustix::process::Signal;

use crate::support::{House, KEY, Server, Step, Wire, say};

#[test]
fn a_reply_in_circles_is_ended_and_the_model_is_told() {
    for wire in Wire::ALL {
        let house = House::new();
        let circles = format!("I begin. {}", "The task is defined to create a task. ".repeat(500));
        let server = Server::start(wire, [say(circles), say("Done now.")]);
        let report = server.run(&house, &["--json", "look around"]).run().expect(4).report();
        assert_eq!(report.text, "Done now.", "{wire:?}");
        let seen = server.seen();
        assert_eq!(seen.len(), 2, "{wire:?}");
        // What was streamed is counted, also what isn't kept.
        assert!(report.usage.estimated > Tokens(100), "{wire:?}: {:?}", report.usage);
        assert!(seen[1].newest().contains("without repeating yourself"), "{wire:?}: {}", seen[1].newest());
        let body = seen[1].body.to_string();
        assert_eq!(body.matches("defined to create").count(), 2, "{wire:?}: {body}");
        let shown = house.jm(&["show", "last"]).run().expect(0);
        shown.prints(&["I begin. The task", "stopped here: it repeated the same text", "Done now."]);
        assert_eq!(shown.stdout.matches("defined to create").count(), 2, "{}", shown.stdout);
    }
}

#[test]
fn a_reply_in_circles_again_ends_in_5() {
    let house = House::new();
    let circles = || say("The task is defined to create a task. ".repeat(500));
    let server = Server::chat([circles(), circles(), say("Never said.")]);
    let ran = server.run(&house, &["look around"]).run().expect(5);
    ran.says(&["stopped here: it repeated the same text"]);
    ran.prints(&["repeated the same text again and again, also after a reminder"]);
    assert_eq!(server.seen().len(), 2);
    // The guard can be turned off.
    let server = Server::chat([circles()]);
    server.run(&house, &["look around"]).env("JM_LOOP_GUARD", "false").run().expect(4);
}

#[test]
fn what_arrived_before_ctrl_c_is_kept_shown_and_counted() {
    for wire in Wire::ALL {
        let house = House::new();
        let text = "I looked at every file of the project, and I found a lot of things that I want to tell. "
            .repeat(4);
        let server =
            Server::start(wire, [Step::Begin(say(text.as_str())), say("And here is the rest.").into()]);
        let running = server.run(&house, &["--stream-json", "look around"]).start();
        running.line_with("project, and I");
        running.signal(Signal::INT);
        let ran = running.wait().expect(130);
        let events: Vec<Event> = ran.events().into_iter().map(|envelope| envelope.event).collect();
        let stop = events.iter().find_map(|event| match event {
            Event::TurnFinished { stop, .. } => Some(stop),
            _ => None,
        });
        assert_eq!(stop, Some(&StopReason::Cancelled), "{wire:?}");
        let Some(Event::Done { report }) = events.last() else { panic!("no report") };
        assert!(report.text.len() > 20 && text.starts_with(&report.text), "{wire:?}: {}", report.text);
        assert!(report.usage.output > Tokens(5) && report.usage.estimated > Tokens(0), "{:?}", report.usage);

        let kept = report.text.trim();
        house.jm(&["show", "last"]).run().expect(0).prints(&[
            kept,
            "cut off here: the run was stopped",
            "estimated",
        ]);
        for format in ["markdown", "openai", "anthropic", "jsonl"] {
            house.jm(&["export", "last", "--format", format]).run().expect(0).prints(&[kept]);
        }
        let resumed = house.jm(&["resume", "--last", "go on"]).env("JM_API_KEY", KEY).run().expect(4);
        resumed.says(&["And here is the rest."]);
        let body = server.seen()[1].body.to_string();
        assert!(body.contains(kept) && body.contains("go on"), "{wire:?}: {body}");
    }
}

#[test]
fn a_reply_that_reaches_the_output_limit_is_no_end() {
    // Each reply has 10 tokens. The second server reports a plain end.
    for says in [say("And then").cut_off(), say("And then")] {
        let house = House::new();
        house.configure("max_output_tokens = 10\n");
        let server = Server::chat(vec![says; 4]);
        let ran = server.run(&house, &["look around"]).run().expect(5);
        ran.prints(&["the reply was cut off at the output limit (10 tokens), 3 times in a row"]);
        house.jm(&["show", "last"]).run().expect(0).prints(&["cut off at the output limit (10 tokens)"]);
        assert_eq!(house.sessions()[0]["status"], "limit");
    }
}
