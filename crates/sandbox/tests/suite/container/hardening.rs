//! What confines a command, tried from inside and asked of the daemon.

use journeyman_protocol::SandboxNeeds;
use journeyman_sandbox::{Network, NetworkRules, Sandbox, SandboxError};
use tokio_util::sync::CancellationToken;

use crate::common::block_on;
use crate::container::support::{OWNER, Place, place, run, text};

/// Runs a command, and asks the daemon about its container while that waits for the next.
fn inspect(place: &Place, format: &str) -> String {
    let sandbox = place.sandbox();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        text(run(&sandbox, place.request("true")).await);
        let found = place.containers();
        assert_eq!(found.len(), 1, "{found:?}");
        place.docker(&["inspect", "--format", format, &found[0]])
    })
}

#[test]
fn the_daemon_says_what_was_asked_for() {
    let Some(place) = place() else { return };
    let format = "{{.HostConfig.Privileged}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} \
        {{.HostConfig.CapAdd}} {{.HostConfig.NetworkMode}} {{.HostConfig.IpcMode}} [{{.HostConfig.PidMode}}] \
        [{{.HostConfig.UTSMode}}] {{.HostConfig.PidsLimit}} {{.HostConfig.Init}} {{.HostConfig.AutoRemove}} \
        {{.HostConfig.LogConfig.Type}} {{.Config.User}} {{.HostConfig.Devices}} {{.HostConfig.Binds}} \
        {{.HostConfig.MemorySwap}}={{.HostConfig.Memory}}";
    let said = inspect(&place, format);
    let (settings, memory) = said.rsplit_once(' ').unwrap();
    assert_eq!(settings, "false true [ALL] [] none private [] [] 1028 true true none 65532:65532 [] []");
    let (swap, memory) = memory.split_once('=').unwrap();
    assert!(swap == memory && memory.parse::<u64>().unwrap() > 0, "{memory}");
    let options = inspect(&place, "{{json .HostConfig.SecurityOpt}}");
    assert!(options.contains("no-new-privileges") && options.contains("SCMP_ACT_ERRNO"), "{options}");
}

#[test]
fn nothing_but_the_project_can_be_written() {
    let Some(place) = place() else { return };
    let said = place.text(
        "for f in /new /usr/new /etc/kept /etc/new /dev/new /sys/new /proc/sys/kernel/core_pattern /run/new; do \
         (echo x >>$f) 2>/dev/null && echo wrote $f; done; echo mine >new; cat new; touch /tmp/t /var/tmp/t /dev/shm/t",
    );
    assert_eq!(said, "mine\n");
    assert_eq!(std::fs::read_to_string(place.root().join("new")).unwrap(), "mine\n");
}

#[test]
fn no_privilege_is_left_and_none_can_be_gained() {
    let Some(place) = place() else { return };
    let said = place.text("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; id -u; id -g; id -G");
    let user = if rustix::process::geteuid().is_root() { OWNER } else { rustix::process::geteuid().as_raw() };
    let zeros: String = ["Inh", "Prm", "Eff", "Bnd", "Amb"]
        .iter()
        .map(|set| format!("Cap{set}:\t0000000000000000\n"))
        .collect();
    let group =
        if rustix::process::geteuid().is_root() { OWNER } else { rustix::process::getegid().as_raw() };
    assert_eq!(said, format!("{zeros}NoNewPrivs:\t1\nSeccomp:\t2\n{user}\n{group}\n{group}\n"));
    for command in [
        "unshare -U true",
        "unshare -m true",
        "unshare -n true",
        "mount -t tmpfs none /tmp",
        "chroot / true",
        "su -c true",
        "chmod u+s file",
        "chmod g+s file",
        "mknod /tmp/disk b 8 0",
        "chown 0 file",
        "hostname other",
        "kill -9 1",
        "nsenter -t 1 -m true",
    ] {
        let completed = place.run(&format!("{command} 2>/dev/null && echo got out; true"));
        assert_eq!(completed.stdout.text, "", "{command}");
    }
}

#[test]
fn other_processes_sockets_and_networks_arent_there() {
    let Some(place) = place() else { return };
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let said = place.text(&format!(
        "ls -A /run; for s in {} /var/run/docker.sock; do test -e $s && echo socket $s; done; \
         ls /sys/class/net; nc -w 2 127.0.0.1 {port} </dev/null && echo connected; \
         nc -w 2 172.17.0.1 {port} </dev/null 2>/dev/null && echo connected; kill -0 {} 2>/dev/null && echo seen; true",
        place.socket.display(),
        std::process::id(),
    ));
    let said: Vec<&str> = said.lines().filter(|line| !line.starts_with("nc:")).collect();
    assert_eq!(said, ["lo"]);
}

#[test]
fn a_network_is_there_only_where_it_is_asked_for() {
    let Some(place) = place() else { return };
    let mut request = place.request("ls /sys/class/net | sort");
    request.network = Network::Host;
    request.needs = SandboxNeeds { network_off: false, ..SandboxNeeds::ALL };
    assert_eq!(text(place.run_request(request)), "eth0\nlo\n");

    let mut request = place.request("true");
    request.network = Network::Filtered(NetworkRules::default().into());
    let refused = block_on(place.sandbox().spawn(request, CancellationToken::new()));
    assert!(matches!(refused, Err(SandboxError::Unmet { .. })), "{refused:?}");
}

#[test]
fn a_fork_bomb_is_bounded() {
    let Some(place) = place() else { return };
    let mut request = place.request("bomb() { bomb | bomb & }; bomb; sleep 60");
    request.limits.processes = 64;
    request.limits.wall = std::time::Duration::from_secs(3);
    let sandbox = place.sandbox();
    block_on(async {
        // Probed before the bomb, so that the time is the command's own.
        sandbox.enforcement(&SandboxNeeds::ALL).await.unwrap();
        let completed = run(&sandbox, request).await;
        assert!(completed.combined.text.contains("fork"), "{completed:?}");
    });
    assert_eq!(place.containers(), Vec::<String>::new());
}

#[test]
fn root_is_refused_unless_it_is_said_so() {
    let Some(place) = place() else { return };
    if !rustix::process::geteuid().is_root() {
        println!("this run isn't root's");
        return;
    }
    let settings = journeyman_sandbox::SandboxSettings { allow_root: false, ..place.settings() };
    let refused = block_on(Sandbox::new(settings).enforcement(&SandboxNeeds::ALL)).unwrap_err().to_string();
    assert!(refused.contains("--allow-root"), "{refused}");
}

#[test]
fn an_image_that_isnt_there_is_an_error_that_says_what_to_do() {
    let Some(place) = place() else { return };
    let mut settings = place.settings();
    let container = settings.container.as_mut().unwrap();
    container.image = journeyman_sandbox::ContainerImage::Named("no/such-image:9".to_owned());
    let refused = block_on(Sandbox::new(settings).enforcement(&SandboxNeeds::ALL)).unwrap_err().to_string();
    assert!(refused.contains("docker pull no/such-image:9"), "{refused}");

    let mut settings = place.settings();
    settings.container.as_mut().unwrap().socket = Some(place.root().join("no.sock"));
    let refused = block_on(Sandbox::new(settings).enforcement(&SandboxNeeds::ALL)).unwrap_err().to_string();
    assert!(refused.contains("doesn't answer"), "{refused}");
}
