cases! {}

pub(crate) fn run_if_asked() -> Option<std::process::ExitCode> { None }
