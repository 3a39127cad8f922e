//! Every format: what a reply asks for, what is refused, and that a part of a reply never asks for
//! more than the whole.

mod arguments;
mod blocks;
mod cut_off;
mod whole;

use std::collections::BTreeMap;

use journeyman_edit::{Edit, EditOp, Format, ParsedReply, Replace, ReplySource, read_reply};
use journeyman_protocol::RelPath;

pub(crate) fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

pub(crate) fn files() -> BTreeMap<RelPath, String> {
    let texts = [
        ("a.rs", "fn a() {\n    one();\n}\n"),
        ("src/b.rs", "fn b() {\n    two();\n}\n"),
        ("title.rst", "Title\n=======\n\nOld text\n"),
        ("conflict.txt", "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\nend\n"),
        ("Makefile", "all:\n\techo\n"),
        ("README.md", "# Title\n"),
        ("long.rs", &"let a = 1;\n".repeat(60)),
    ];
    texts.into_iter().map(|(path, text)| (rel(path), text.to_owned())).collect()
}

pub(crate) fn reading(
    reply: &str,
    format: Option<Format>,
    path: Option<&str>,
    finished: bool,
) -> ParsedReply {
    let path = path.map(rel);
    read_reply(&ReplySource { reply, path: path.as_ref(), finished, files: &files() }, format)
}

pub(crate) fn change(path: &str, search: &str, replace: &str) -> Edit {
    near(path, search, replace, None)
}

pub(crate) fn near(path: &str, search: &str, replace: &str, near: Option<u32>) -> Edit {
    let op = Replace {
        search: search.to_owned(),
        replace: replace.to_owned(),
        near,
        whole_lines: true,
        all: false,
    };
    Edit { path: rel(path), ops: vec![EditOp::Replace(op)], description: None }
}

pub(crate) fn block(search: &str, replace: &str) -> String {
    format!("<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n")
}
