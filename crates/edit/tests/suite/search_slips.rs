//! Slips in search texts and in hunks without headers: placed where one place is meant, else refused.

use journeyman_edit::Format;
use journeyman_protocol::RelPath;

use crate::slips::{after, text};

/// Arguments of an edit of `f.txt`.
fn arguments(old: &str, new: &str) -> String {
    serde_json::json!({ "path": "f.txt", "old_string": old, "new_string": new }).to_string()
}

#[test]
fn escapes_of_line_breaks_alone_are_read() {
    let before = "const s = \"a\";\nconst t = \"b\";\n";
    let reply = arguments(r#"const s = "a";\nconst t = "b";"#, r#"const s = "ab";\nconst u = "c";"#);
    assert_eq!(
        text(Format::Tool, before, &reply).as_deref(),
        Ok("const s = \"ab\";\nconst u = \"c\";\n"),
        "the new text has them too"
    );
    let code = "say(\"a\\nb\");\n";
    let reply = arguments(r#"say("a\nb")"#, r#"say("a\nc")"#);
    assert_eq!(text(Format::Tool, code, &reply).as_deref(), Ok("say(\"a\\nc\");\n"), "the file has them");
}

#[test]
fn a_block_without_a_search_text_fills_an_empty_file_with_lines() {
    let block = "f.txt\n<<<<<<< SEARCH\n=======\na\nb\n>>>>>>> REPLACE\n";
    assert_eq!(text(Format::Blocks, "", block).as_deref(), Ok("a\nb\n"));
    assert_eq!(text(Format::Tool, "", &arguments("", "a\nb")).as_deref(), Ok("a\nb"), "as it was given");
}

#[test]
fn two_places_with_one_result_are_one() {
    for (before, old, new, expected) in [
        ("aaa\n", "aa", "a", "aa\n"),
        ("x = 1\nx = 1\ny = 2\n", "x = 1\n", "", "x = 1\ny = 2\n"),
        ("x\nx\nx\n", "x\n", "", "x\nx\n"),
    ] {
        assert_eq!(text(Format::Tool, before, &arguments(old, new)).as_deref(), Ok(expected), "{before}");
    }
    for (before, old, new) in
        [("aaa\n", "aa", "b"), ("x = 1\ny = 2\nx = 1\n", "x = 1\n", ""), ("x\nx\n", "x\n", "z\n")]
    {
        let refusal = text(Format::Tool, before, &arguments(old, new)).unwrap_err();
        assert!(refusal.contains("occurs 2 times"), "{refusal}");
    }
}

#[test]
fn an_underscore_too_few_in_a_line_that_goes_is_a_typo() {
    let before = "top()\n    a_4 = one(beta_4)\n    b = two(c)\n    d = three(e)\nend()\n";
    let old = "    a_4 = one(beta4)\n    b = two(c)\n    d = three(e)";
    let reply = arguments(old, "    pass");
    assert_eq!(text(Format::Tool, before, &reply).as_deref(), Ok("top()\n    pass\nend()\n"));
    // Another digit is another value, and a name that the file has elsewhere is another name.
    let other = arguments(&old.replace("beta4", "beta_5"), "    pass");
    assert!(text(Format::Tool, before, &other).is_err());
    assert!(text(Format::Tool, &format!("{before}beta4\n"), &reply).is_err());
}

#[test]
fn a_single_line_for_an_unindented_search_text_comes_where_it_began() {
    let before = "a {\n  if (x) {\n    go();\n  }\n}\n";
    let reply = arguments("if (x) {\ngo();\n}", "run();");
    assert_eq!(text(Format::Tool, before, &reply).as_deref(), Ok("a {\n  run();\n}\n"));
    let reply = arguments("if (x) {\ngo();\n}", "run();\nstop();");
    assert!(text(Format::Tool, before, &reply).is_err(), "nobody knows how deep the second line is");
}

#[test]
fn full_width_punctuation_stands_for_plain_one() {
    let reply = arguments("it's fine (really)", "all good");
    assert_eq!(text(Format::Tool, "it＇s fine （really）\n", &reply).as_deref(), Ok("all good\n"));
    assert!(text(Format::Tool, "ＡＢＣ fine\n", &arguments("ABC fine", "ASCII fine")).is_err(), "letters");
}

#[test]
fn the_lines_of_a_hunk_without_a_header_are_one() {
    let before = "keep\nold\ntail\n";
    let expected = Ok("keep\nnew\ntail\n");
    assert_eq!(text(Format::Udiff, before, " keep\n-old\n+new\n tail\n").as_deref(), expected);
    assert!(text(Format::Udiff, before, " keep\n-other\n+new\n tail\n").is_err());
    assert!(text(Format::Udiff, before, "- keep\n- this in mind\n").is_err(), "a list");
    assert!(text(Format::Udiff, before, "I did:\n keep\n-old\n+new\n").is_err(), "prose");
}

#[test]
fn lines_that_stay_lose_blanks_at_their_ends_as_the_new_text_says() {
    let before = "def f():  \n    return 1 \n\nother = 2  \n";
    let edit = |name: &str| {
        let reply = serde_json::json!({
            "path": name,
            "old_string": "def f():\n    return 1",
            "new_string": "def f():\n    return 2"
        });
        let path = RelPath::parse(name).unwrap();
        after(Some(Format::Tool), &[(name, before)], &reply.to_string()).map(|files| files[&path].clone())
    };
    assert_eq!(edit("f.py").as_deref(), Ok("def f():\n    return 2\n\nother = 2  \n"));
    assert_eq!(edit("f.MD").as_deref(), Ok("def f():  \n    return 2\n\nother = 2  \n"), "two break a line");
}
