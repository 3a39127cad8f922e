//! Isolated copies, beside `git worktree add`.

use crate::figures::Verdicts;
use crate::place::Place;

pub(crate) fn run(_place: &Place, _verdicts: &mut Verdicts) {
    println!("  isolated copies: not measured");
}
