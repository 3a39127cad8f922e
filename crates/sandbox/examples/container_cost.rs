//! What a command in a container costs: the first, which makes one, and those in one that is warm.
//!
//! `cargo run --release -p journeyman-sandbox --example container_cost -- SOCKET IMAGE PROJECT`,
//! where the project isn't root's.

#[cfg(feature = "containers")]
#[tokio::main(flavor = "current_thread")]
async fn main() {
    use std::time::{Duration, Instant};

    use journeyman_protocol::{SandboxNeeds, SandboxTier};
    use journeyman_sandbox::{ContainerImage, ContainerSettings, Request, Sandbox, SandboxSettings};
    use tokio_util::sync::CancellationToken;

    const RUNS: usize = 40;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, image, project] = arguments.as_slice() else {
        eprintln!("name the daemon's socket, an image and a project");
        return;
    };
    let container = ContainerSettings {
        socket: Some(socket.into()),
        image: ContainerImage::Named(image.clone()),
        ..ContainerSettings::default()
    };
    let sandbox = Sandbox::new(SandboxSettings {
        allow: vec![SandboxTier::Container],
        allow_root: true,
        container: Some(container),
        ..SandboxSettings::default()
    });
    let begun = Instant::now();
    let enforcement = sandbox.enforcement(&SandboxNeeds::ALL).await;
    println!("probe: {:?}, {enforcement:?}", begun.elapsed());
    let mut times: Vec<Duration> = Vec::with_capacity(RUNS);
    for run in 0..=RUNS {
        let request = Request::for_program(project.as_ref(), vec!["true".into()]);
        let begun = Instant::now();
        let completed = match sandbox.spawn(request, CancellationToken::new()).await {
            Ok(running) => running.wait().await,
            Err(error) => Err(error),
        };
        if let Err(error) = completed {
            eprintln!("{error}");
            return;
        }
        if run == 0 {
            println!("first: {:?}", begun.elapsed())
        } else {
            times.push(begun.elapsed())
        }
        // What is looked over after a command isn't the next one's time here.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    times.sort_unstable();
    println!("warm: {:?} at best, {:?} in the middle", times.first(), times.get(RUNS / 2));
}

#[cfg(not(feature = "containers"))]
fn main() {
    eprintln!("containers are for Linux, with the feature `container`");
}
