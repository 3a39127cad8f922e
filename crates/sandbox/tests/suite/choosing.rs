//! Which back-end takes a command: the first that works and gives what is needed, and never one
//! that wasn't allowed.

use crate::common;
use journeyman_testkit::{has_program_or_skip, skip, test_arguments, test_path, write_program};

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{block_on, project, settings};
use journeyman_protocol::{SandboxNeeds, SandboxTier};
use journeyman_sandbox::{Outcome, Request, Sandbox, SandboxError, SandboxSettings};
use tokio_util::sync::CancellationToken;

fn with(allow: &[SandboxTier]) -> SandboxSettings {
    SandboxSettings { allow: allow.to_vec(), allow_root: true, ..settings() }
}

/// Runs a command that leaves a trace; the tier that it ran in.
fn ran(settings: SandboxSettings, needs: SandboxNeeds) -> Result<SandboxTier, SandboxError> {
    let project = project();
    let request = Request { needs, ..Request::for_shell_command(project.path(), "touch trace") };
    let sandbox = Sandbox::new(settings);
    let completed = block_on(async {
        let running = sandbox.spawn(request, CancellationToken::new()).await?;
        running.wait().await
    });
    let traced = project.path().join("trace").exists();
    match completed {
        Ok(completed) => {
            assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
            assert!(traced);
            Ok(completed.enforcement.tier)
        }
        Err(error) => {
            assert!(!traced, "it was refused, and ran: {error}");
            Err(error)
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn the_first_that_works_takes_it_in_the_order_given() {
    if !has_program_or_skip("bwrap") {
        return;
    }
    let [ns, bwrap] = [SandboxTier::Namespaces, SandboxTier::Bubblewrap];
    assert_eq!(ran(with(&[ns, bwrap]), SandboxNeeds::ALL).unwrap(), ns);
    assert_eq!(ran(with(&[bwrap, ns]), SandboxNeeds::ALL).unwrap(), bwrap);
    // One that gives too little is passed over, wherever it stands.
    assert_eq!(ran(with(&[SandboxTier::Unconfined, ns]), SandboxNeeds::ALL).unwrap(), ns);
    assert_eq!(ran(with(&[SandboxTier::Landlock, ns]), SandboxNeeds::ALL).unwrap(), ns);
    assert_eq!(
        ran(with(&[SandboxTier::Unconfined, ns]), SandboxNeeds::NONE).unwrap(),
        SandboxTier::Unconfined
    );
}

#[test]
fn nothing_is_weakened_silently() {
    for (allow, needs, words) in [
        (&[][..], SandboxNeeds::NONE, "no back-end"),
        (&[SandboxTier::Unconfined], SandboxNeeds::ALL, "confined writes"),
        (&[SandboxTier::Landlock], SandboxNeeds::ALL, "protected paths"),
    ] {
        let error = ran(with(allow), needs).unwrap_err();
        let unavailable = matches!(error, SandboxError::Unavailable { .. });
        assert!(
            error.to_string().contains(words) || (unavailable && allow == [SandboxTier::Landlock]),
            "{error}"
        );
    }
}

#[test]
fn root_uses_others_than_the_strongest_only_with_leave() {
    let without = |tier| SandboxSettings { allow_root: false, ..with(&[tier]) };
    assert_eq!(ran(without(SandboxTier::Namespaces), SandboxNeeds::ALL).unwrap(), SandboxTier::Namespaces);
    for tier in [SandboxTier::Bubblewrap, SandboxTier::Landlock, SandboxTier::Unconfined] {
        let outcome = ran(without(tier), SandboxNeeds::ALL.intersection(tier.max_needs()));
        if !is_root() {
            assert!(
                outcome.is_ok() || matches!(outcome, Err(SandboxError::Unavailable { .. })),
                "{outcome:?}"
            );
            continue;
        }
        let error = outcome.unwrap_err();
        assert!(matches!(error, SandboxError::Unavailable { .. }));
        for words in [&format!("`{tier}` is not used by root"), "--allow-root", "sandbox.allow_root"] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

#[test]
fn every_allowed_one_is_surveyed() {
    let all =
        [SandboxTier::Namespaces, SandboxTier::Bubblewrap, SandboxTier::Landlock, SandboxTier::Unconfined];
    let found = block_on(Sandbox::new(with(&all)).probe_all());
    let tiers: Vec<SandboxTier> = found.iter().map(|(tier, _)| *tier).collect();
    assert_eq!(tiers, all);
    for (tier, seen) in found {
        match seen {
            Ok(enforcement) => assert_eq!(enforcement.tier, tier),
            Err(SandboxError::Unavailable { reason, fix }) => {
                assert!(!reason.is_empty() && !fix.is_empty(), "{tier}");
            }
            Err(error) => panic!("{tier}: {error}"),
        }
    }
}

/// A helper that can't make namespaces of its own, and does everything else as it should.
fn crippled(place: &Path) -> PathBuf {
    let path = place.join("helper");
    let real = common::helper();
    let real = real.display();
    let script = format!(
        "#!/bin/sh\nif [ \"${{2-wait}}\" = wait ]; then\n  exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec {real} \
         \"$@\"' sh \"$@\"\nfi\nexec {real} \"$@\"\n"
    );
    write_program(&path, &script);
    path
}

#[test]
fn where_namespaces_fail_the_next_allowed_takes_it_if_it_gives_enough() {
    if !has_program_or_skip("unshare") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let helper = Some(crippled(place.path()));
    let with = |allow: &[SandboxTier]| SandboxSettings { helper: helper.clone(), ..with(allow) };
    let error = ran(with(&[SandboxTier::Namespaces]), SandboxNeeds::ALL).unwrap_err();
    assert!(error.to_string().contains("`namespaces`: the sandbox couldn't be set up"), "{error}");
    let both = [SandboxTier::Namespaces, SandboxTier::Landlock];
    if let Err(error @ SandboxError::Unavailable { .. }) =
        ran(with(&[SandboxTier::Landlock]), SandboxTier::Landlock.max_needs())
    {
        skip(error.to_string());
        return;
    }
    // It doesn't give all that is needed: refused, not weakened.
    assert!(matches!(
        ran(with(&both), SandboxNeeds::ALL),
        Err(SandboxError::Unmet { need: "protected paths", .. })
    ));
    assert_eq!(ran(with(&both), SandboxTier::Landlock.max_needs()).unwrap(), SandboxTier::Landlock);
}

/// Not a test by itself: what [`a_system_without_user_namespaces_is_not_claimed_to_confine`] runs
/// there.
#[test]
#[ignore = "run by another test"]
fn without_user_namespaces() {
    let [ns, bwrap] = [SandboxTier::Namespaces, SandboxTier::Bubblewrap];
    let error = ran(with(&[ns, bwrap]), SandboxNeeds::ALL).unwrap_err();
    assert!(matches!(error, SandboxError::Unavailable { .. }), "{error}");
    for words in ["`namespaces`", "max_user_namespaces"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    // What was remembered of a system that had them isn't believed where they are gone, for nothing
    // is claimed that isn't tried: the first command says so.
    for (tier, seen) in block_on(Sandbox::new(with(&[ns, bwrap])).probe_all()) {
        assert!(matches!(seen, Err(SandboxError::Unavailable { .. })), "{tier}: {seen:?}");
    }
    let landlock = ran(with(&[ns, bwrap, SandboxTier::Landlock]), SandboxTier::Landlock.max_needs());
    assert!(
        matches!(landlock, Ok(SandboxTier::Landlock) | Err(SandboxError::Unavailable { .. })),
        "{landlock:?}"
    );
    println!("nothing was claimed");
}

#[test]
fn a_system_without_user_namespaces_is_not_claimed_to_confine() {
    if !has_program_or_skip("unshare") {
        return;
    }
    let output = Command::new("unshare")
        .args(["-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(test_arguments(test_path!("without_user_namespaces")))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("nothing was claimed"), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_unprivileged_choose_alike() {
    common::again_unprivileged(module_path!());
}
