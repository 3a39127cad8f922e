//! The level a careful engineer would give, command by command, and what is said about each.

mod deceptive;
mod destroying;
mod everyday;
mod harmless;
mod levels;
mod others;
mod parts;
mod promise;
mod properties;
mod work;

fn checks() -> Vec<String> {
    ["cargo test --workspace", "cargo clippy --all-targets", "npm run lint && npm test", "sh -c 'a  b'"]
        .map(str::to_owned)
        .into()
}
