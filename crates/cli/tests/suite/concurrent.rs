//! Several `jm` at once, in one project and with one state directory.

use journeyman_protocol::RelPath;
use serde_json::json;

use crate::support::{House, Server, call, say};

/// Runs at once.
const RUNS: usize = 4;

#[test]
fn runs_in_one_project_do_not_harm_each_other() {
    let house = House::with_greeter();
    let before = house.tree();
    let name = |number: usize| format!("file-{number}.txt");
    let servers: Vec<Server> = (0..RUNS)
        .map(|number| {
            let write = call("write_file", json!({"path": name(number), "content": format!("{number}\n")}));
            Server::chat([call("read_file", json!({"path": "greet.sh"})), write, say("Done.")])
        })
        .collect();
    let running: Vec<_> = servers
        .iter()
        .map(|server| server.run(&house, &["--json", "--no-check", "make a file"]).start())
        .collect();
    let reports: Vec<_> = running.into_iter().map(|running| running.wait().expect(4).report()).collect();

    for (number, report) in reports.iter().enumerate() {
        assert_eq!(house.read(&name(number)), format!("{number}\n"));
        let path = RelPath::parse(name(number)).unwrap();
        assert!(report.changes.iter().any(|change| change.path == path), "{:?}", report.changes);
    }
    assert_eq!(house.sessions().len(), RUNS);
    // Each is taken back by itself, in whatever order.
    for (number, report) in reports.iter().enumerate() {
        house.jm(&["undo", report.session.as_str()]).run().expect(0);
        assert!(!house.project().join(name(number)).exists());
    }
    assert_eq!(house.tree(), before);
}
