//! Colour, where it is wanted: as `--color` says, or on a terminal, unless `NO_COLOR` says no.

use journeyman_terminal::OutputKind;
pub(crate) use journeyman_terminal::Paint;

/// For standard error.
pub(crate) fn stderr() -> Paint {
    OutputKind::of_stream(&std::io::stderr()).paint()
}

/// For standard output.
pub(crate) fn stdout() -> Paint {
    OutputKind::of_stream(&std::io::stdout()).paint()
}
