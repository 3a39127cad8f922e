//! The level a careful engineer would give, command by command, and what is said about each.

mod deceptive;
mod destroying;
mod directories;
mod drawn;
mod everyday;
mod harmless;
mod levels;
mod others;
mod parts;
mod promise;
mod properties;
mod work;

fn checks() -> Vec<String> {
    ["./ci test --workspace", "./ci lint --all-targets", "./ci lint && ./ci test", "sh -c 'a  b'"]
        .map(str::to_owned)
        .into()
}
