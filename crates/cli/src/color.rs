//! Decides on colours: by `--color`, else on a terminal unless `NO_COLOR` is set.

use journeyman_terminal::OutputKind;
pub(crate) use journeyman_terminal::Paint;

/// Returns the paint for standard error.
pub(crate) fn stderr_paint() -> Paint {
    OutputKind::of_stream(&std::io::stderr()).paint()
}

/// Returns the paint for standard output.
pub(crate) fn stdout_paint() -> Paint {
    OutputKind::of_stream(&std::io::stdout()).paint()
}
