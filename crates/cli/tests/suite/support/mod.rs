//! What every case stands on: a user's house with a project in it, `jm` run in it as a user would,
//! and a model server on the loopback that speaks the four wire protocols from a script.

mod house;
mod jm;
mod pseudo_terminal;
mod reply;
mod server;
mod skip;
mod wires;

pub use house::{GREETER, House, POLITE, polite_edit, snapshot};
pub use jm::{Jm, Ran, Running, is_running, wait_until};
pub use pseudo_terminal::{Output, Person, on_a_terminal};
pub use reply::{Reply, call, say};
pub use server::{KEY, Seen, Server, Step, refuse};
pub use skip::{has_program, needs, needs_mounts, needs_sandbox};
pub use wires::Wire;
