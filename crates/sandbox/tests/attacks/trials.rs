//! One trial for each row, back-end and user.

use journeyman_protocol::SandboxTier;
use journeyman_testkit::skip;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::agent::Stand;
use crate::place::{Place, User};
use crate::scene::{Said, Verdict};
use crate::table::{Alone, Expect, ROWS, Row};

/// Where attempts are made.
#[derive(Debug, Clone, Copy)]
struct Ground {
    name: &'static str,
    tier: SandboxTier,
    stand: Stand,
}

const GROUNDS: &[Ground] = &[
    Ground { name: "namespaces", tier: SandboxTier::Namespaces, stand: Stand::Project },
    Ground { name: "namespaces, in a mount", tier: SandboxTier::Namespaces, stand: Stand::Mount },
    Ground { name: "namespaces, in a directory", tier: SandboxTier::Namespaces, stand: Stand::Directory },
    Ground { name: "another CLI's layer", tier: SandboxTier::Namespaces, stand: Stand::Delegate },
    Ground { name: "another CLI", tier: SandboxTier::Namespaces, stand: Stand::Tool },
    Ground { name: "bubblewrap", tier: SandboxTier::Bubblewrap, stand: Stand::Project },
    Ground { name: "landlock", tier: SandboxTier::Landlock, stand: Stand::Project },
    Ground { name: "container", tier: SandboxTier::Container, stand: Stand::Project },
];

pub(crate) fn run() {
    let arguments = Arguments::from_args();
    let users: &[User] = if rustix::process::geteuid().is_root() {
        &[User::Root, User::Ordinary]
    } else {
        println!("not run as root: only the ordinary user's attempts are made");
        &[User::Ordinary]
    };
    let mut trials = Vec::new();
    for ground in GROUNDS {
        // Whoever may speak to the service could be root by it.
        for user in users.iter().filter(|user| ground.tier != SandboxTier::Container || **user == User::Root)
        {
            let rows = ROWS.iter().filter(|row| !row.of_namespaces || ground.tier == SandboxTier::Namespaces);
            let who = if *user == User::Root { "root" } else { "user" };
            trials.extend(rows.map(|row| {
                let name = format!("{} as {who}: {:02} {}", ground.name, row.number, row.what);
                Trial::test(name, move || confined(*ground, *user, row))
            }));
        }
    }
    let works = ROWS.iter().filter(|row| row.alone == Alone::Works);
    trials.extend(works.map(|row| {
        Trial::test(format!("without a sandbox: {:02} {}", row.number, row.what), move || alone(row))
    }));
    libtest_mimic::run(&arguments, trials).exit();
}

/// What the attacker says, or what its death does.
fn verdict(row: &Row, said: Said) -> Result<Option<Verdict>, Failed> {
    match said {
        Said::Unavailable(reason) => {
            skip(&reason);
            Ok(None)
        }
        Said::Refused(reason) => Err(format!("the command was refused: {reason}").into()),
        Said::Ran { verdict: Some(verdict), .. } => Ok(Some(verdict)),
        Said::Ran { outcome, signal, text, .. } => match (row.number, signal) {
            (_, Some(libc::SIGSYS)) | (77, Some(libc::SIGXFSZ)) | (64, Some(libc::SIGSEGV)) => {
                Ok(Some(Verdict::Held(outcome)))
            }
            _ => Err(format!("the attacker said nothing: {outcome} {text}").into()),
        },
    }
}

fn confined(ground: Ground, user: User, row: &Row) -> Result<(), Failed> {
    let place = Place::new(user, ground.tier, ground.stand);
    let said = place.attempt(ground.tier, ground.stand, row.number);
    if matches!(said, Said::Ran { planted_key: true, .. }) {
        return Err("a key was planted in the agent's ring".into());
    }
    let Some(verdict) = verdict(row, said)? else { return Ok(()) };
    let expected = row.expected(ground.tier);
    match (expected, verdict) {
        (Expect::Held, Verdict::Held(how)) => {
            let traces = place.traces(ground.stand);
            if traces.is_empty() {
                return Ok(());
            }
            Err(format!("the attacker says `{how}`, but {}", traces.join(", ")).into())
        }
        (_, Verdict::Absent(why)) => {
            println!("row {} isn't tried here: {why}", row.number);
            Ok(())
        }
        (Expect::Held, Verdict::Out(how)) => {
            Err(format!("it got out: {how}; on the host: {:?}", place.traces(ground.stand)).into())
        }
        (Expect::Harmless(_) | Expect::Filtered(_) | Expect::Open(_), Verdict::Out(_)) => Ok(()),
        (expected, Verdict::Held(how)) => Err(format!("the table says {expected:?}, but: {how}").into()),
    }
}

/// The attempt is a real one: without a sandbox it works.
fn alone(row: &Row) -> Result<(), Failed> {
    let place = Place::new(User::Ordinary, SandboxTier::Unconfined, Stand::Project);
    match verdict(row, place.attempt(SandboxTier::Unconfined, Stand::Project, row.number))? {
        Some(Verdict::Out(_)) | None => Ok(()),
        Some(Verdict::Absent(why)) => {
            println!("row {} can't be tried on this machine: {why}", row.number);
            Ok(())
        }
        Some(Verdict::Held(how)) => {
            Err(format!("the attempt shows nothing, it doesn't work anyway: {how}").into())
        }
    }
}
