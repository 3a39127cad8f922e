//! The sandbox helper as a program of its own, for programs that don't re-execute themselves: name
//! it in `SandboxSettings.helper`.

fn main() -> std::process::ExitCode {
    journeyman_sandbox::run_helper_if_asked();
    eprintln!("jm-sandbox-helper is started by a program that runs commands in a sandbox, not by hand");
    std::process::ExitCode::from(2)
}
