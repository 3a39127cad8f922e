//! Tests of several parts together: events in, a terminal's screen and scrollback out.

mod agents;
mod answers;
mod any_sequence;
mod folding;
mod hyperlinks;
mod player;
mod resizing;
mod reviewing;
mod screens;
mod transcript;
