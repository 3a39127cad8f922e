//! The tools that read and change files, on real trees.

use crate::bench;

use bench::Bench;
use journeyman_protocol::{FileChangeKind, ResultPart};
use serde_json::{Value, json};

#[test]
fn a_file_is_read_in_windows() {
    let text: String = (1..=5000).map(|line| format!("line {line}\n")).collect();
    let bench = Bench::new(&[("a.txt", text.as_bytes()), ("empty", b""), ("crlf", b"a\r\nb\r\n")]);
    let cases = [
        (json!({"path": "crlf"}), "1\ta\n2\tb\n"),
        (json!({"path": "empty"}), "(the file is empty)"),
        (json!({"path": "a.txt", "offset": 4999}), "4999\tline 4999\n5000\tline 5000\n"),
        (
            json!({"path": "a.txt", "offset": 2, "limit": 1}),
            "2\tline 2\n[the file has 5000 lines; go on with offset 3]",
        ),
        (json!({"path": "a.txt", "offset": 9000}), "(line 9000 is beyond the end: the file has 5000 lines)"),
        (
            json!({"path": "a.txt", "offset": u64::MAX, "limit": u64::MAX}),
            "(line 18446744073709551615 is beyond the end: the file has 5000 lines)",
        ),
        (json!({"path": "a.txt", "offset": 5000, "limit": 0}), "5000\tline 5000\n"),
    ];
    for (input, expected) in cases {
        assert_eq!(bench.say("read_file", input.clone()), expected, "{input}");
    }
    let whole = bench.say("read_file", json!({"path": "a.txt", "limit": 1_000_000}));
    assert!(
        whole.ends_with("2000\tline 2000\n[the file has 5000 lines; go on with offset 2001]"),
        "{}",
        &whole[whole.len() - 90..]
    );
}

#[test]
fn long_lines_and_large_windows_are_bounded() {
    let wide: String = (0..100).map(|_| "x".repeat(10_000) + "\n").collect();
    let bench = Bench::new(&[("wide", wide.as_bytes())]);
    let shown = bench.say("read_file", json!({"path": "wide"}));
    assert!(shown.len() <= 66 * 1024, "{}", shown.len());
    assert!(
        shown.contains("… [8000 more bytes]\n") && shown.contains("go on with offset 33]"),
        "{}",
        &shown[shown.len() - 80..]
    );
}

#[test]
fn what_can_not_be_read_says_why() {
    let bench = Bench::new(&[
        ("bin", b"\x7fELF\0\0"),
        ("src/main.rs", b"x"),
        ("latin", b"gr\xfcn\n"),
        ("not.png", b"text"),
    ]);
    std::fs::File::create(bench.root.join("sparse")).unwrap().set_len(2 << 30).unwrap();
    std::fs::File::create(bench.root.join("huge.png")).unwrap().set_len(2 << 30).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.root.join("pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    std::fs::write(bench.outside.join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(bench.outside.join("secret"), bench.root.join("link")).unwrap();
    std::os::unix::fs::symlink(bench.outside.join("secret"), bench.root.join("link.png")).unwrap();
    std::os::unix::fs::symlink("..", bench.root.join("up")).unwrap();
    let cases: &[(&str, &str)] = &[
        ("src", "is a directory"),
        ("bin", "`bin` is binary (6 bytes)"),
        ("sparse", "2147483648 bytes"),
        ("huge.png", "2147483648 bytes"),
        ("not.png", "not PNG, JPEG, GIF or WebP"),
        ("pipe", "named pipe"),
        ("link", "leads out of the project"),
        ("up/secret", "leads out of the project"),
        ("../secret", "`..` component"),
        ("/etc/passwd", "is absolute"),
        ("src/mian.rs", "`src/mian.rs` doesn't exist; did you mean `src/main.rs`?"),
        ("main.rs", "did you mean `src/main.rs`?"),
        ("zzz", "`zzz` doesn't exist"),
    ];
    for (path, expected) in cases {
        let said = bench.say("read_file", json!({"path": path}));
        assert!(said.starts_with("error: ") && said.contains(expected), "{path}: {said}");
        assert!(!said.contains("secret\n"), "{path}: {said}");
    }
    let said = bench.say("read_file", json!({"path": "link.png"}));
    assert!(said.starts_with("error: "), "{said}");
    assert_eq!(bench.say("read_file", json!({"path": "latin"})), "1\tgr\u{fc}n\n");
    let absolute = bench.root.join("src/main.rs");
    assert_eq!(bench.say("read_file", json!({"path": absolute})), "1\tx\n");
}

#[test]
fn images_are_sent_as_images() {
    let png = b"\x89PNG\r\n\x1a\nrest";
    let bench = Bench::new(&[("a.PNG", png)]);
    let output = bench.call("read_file", json!({"path": "a.PNG"})).unwrap();
    let [ResultPart::Image(image)] = output.parts.as_slice() else { panic!("{output:?}") };
    assert_eq!((image.media_type.as_str(), image.data.as_str()), ("image/png", "iVBORw0KGgpyZXN0"));
}

#[test]
fn files_are_listed() {
    let bench = Bench::new(&[
        ("a.rs", b""),
        ("src/b.rs", b""),
        ("src/c.txt", b""),
        (".gitignore", b"target\n"),
        ("target/x", b""),
    ]);
    let cases = [
        (json!({}), ".gitignore\na.rs\nsrc/b.rs\nsrc/c.txt\n"),
        (json!({"path": "src"}), "src/b.rs\nsrc/c.txt\n"),
        (json!({"path": "./", "glob": "*.rs"}), "a.rs\nsrc/b.rs\n"),
        (json!({"glob": "src/*.txt"}), "src/c.txt\n"),
        (json!({"limit": 1}), ".gitignore\n[the first 1; there are more: narrow down with path or glob]"),
        (json!({"glob": "*.zig"}), "(no files)"),
        (json!({"path": "a.rs"}), "a.rs\n(this is a file, not a directory)"),
        (json!({"path": "none"}), "error: `none` doesn't exist"),
    ];
    for (input, expected) in cases {
        assert_eq!(bench.say("list_files", input.clone()), expected, "{input}");
    }
    assert!(bench.say("list_files", json!({"glob": "[a"})).starts_with("error: "));
}

#[test]
fn listings_are_bounded() {
    let names: Vec<String> = (0..600).map(|nth| format!("{nth:03}-{}", "n".repeat(200))).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    let bench = Bench::new(&files);
    let said = bench.say("list_files", json!({"limit": u64::MAX}));
    assert!(said.len() < 31_000 && said.contains("there are more"), "{}", said.len());
}

#[test]
fn text_is_searched() {
    let bench = Bench::new(&[
        ("a.rs", b"fn one() {}\nfn two() {}\n// end\n\n\nfn three(\n"),
        ("b.txt", b"Fn ONE\r\n"),
        ("bin", b"fn\0one"),
        (".gitignore", b"ignored\n"),
        ("ignored/x.rs", b"fn one\n"),
    ]);
    let cases = [
        (json!({"pattern": "fn \\w+\\(\\)"}), "a.rs\n1:fn one() {}\n2:fn two() {}\n"),
        (json!({"pattern": "fn one", "ignore_case": true}), "a.rs\n1:fn one() {}\nb.txt\n1:Fn ONE\n"),
        (json!({"pattern": "two", "context": 1}), "a.rs\n1-fn one() {}\n2:fn two() {}\n3-// end\n"),
        (
            json!({"pattern": "one|three", "context": 1, "path": "a.rs"}),
            "a.rs\n1:fn one() {}\n2-fn two() {}\n--\n5-\n6:fn three(\n",
        ),
        (json!({"pattern": "one", "path": "ignored/x.rs"}), "ignored/x.rs\n1:fn one\n"),
        (json!({"pattern": "one", "glob": "*.txt"}), "No matches in 1 files."),
        (json!({"pattern": "nowhere"}), "No matches in 3 files."),
        (json!({"pattern": "\\{\\}\\nfn"}), "a.rs\n1:fn one() {}\n2:fn two() {}\n"),
        (
            json!({"pattern": "fn", "limit": 1}),
            "a.rs\n1:fn one() {}\n[stopped after 1 matches; narrow down with path, glob or a longer pattern]",
        ),
        (json!({"pattern": "x", "path": "none"}), "error: `none` doesn't exist"),
        (
            json!({"pattern": "x", "path": "../.."}),
            "error: path: `../..` has a `..` component; only paths beneath the project's root are allowed",
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(bench.say("search_text", input.clone()), expected, "{input}");
    }
    let said = bench.say("search_text", json!({"pattern": "three("}));
    assert!(
        said.starts_with("[not a regular expression (") && said.ends_with("a.rs\n6:fn three(\n"),
        "{said}"
    );
}

#[test]
fn hostile_patterns_and_contents_are_bounded() {
    let long = "a".repeat(1_000_000) + "needle" + &"b".repeat(1_000_000);
    let many = "needle\n".repeat(50_000);
    let bench = Bench::new(&[("long", long.as_bytes()), ("many", many.as_bytes())]);
    std::fs::File::create(bench.root.join("sparse")).unwrap().set_len(2 << 30).unwrap();
    let said = bench.say("search_text", json!({"pattern": "needle", "path": "long"}));
    assert!(
        said.starts_with("long\n1:…aaa") && said.contains("needle") && said.len() < 400,
        "{}",
        said.len()
    );
    let said = bench.say("search_text", json!({"pattern": "needle", "limit": u64::MAX, "context": u64::MAX}));
    assert!(said.len() < 31_000 && said.contains("[stopped after"), "{}", said.len());
    let said = bench.say("search_text", json!({"pattern": "zzz"}));
    assert_eq!(said, "No matches in 2 files.\n[1 files over 4194304 bytes were skipped]");
    for bomb in ["(((a{1000}){1000}){1000}){1000}", "(?:x{9999}){9999}"] {
        let said = bench.say("search_text", json!({"pattern": bomb}));
        assert!(said.starts_with("error: the pattern can't be used"), "{said}");
    }
    let said = bench.say("search_text", json!({"pattern": "(a+)+$".to_owned() + &"x".repeat(20_000)}));
    assert!(said.starts_with("error: the pattern can't be used: it has 20006 bytes"), "{said}");
    assert!(bench.say("search_text", json!({"pattern": "(a*)*(a*)*b$"})).contains("long"));
}

#[test]
fn an_edit_shows_where_it_landed() {
    let bench = Bench::new(&[("a.rs", b"one\ntwo\nthree\nfour\nfive\nsix\n")]);
    let output =
        bench.call("edit_file", json!({"path": "a.rs", "search": "four\n", "replace": "4\n4b\n"})).unwrap();
    assert_eq!(bench::text(&output), "Edited a.rs\n2\ttwo\n3\tthree\n4\t4\n5\t4b\n6\tfive\n7\tsix\n");
    assert_eq!(output.changes.len(), 1);
    assert_eq!(output.changes[0].kind, FileChangeKind::Modified);
    assert_eq!(bench.file("a.rs"), b"one\ntwo\nthree\n4\n4b\nfive\nsix\n");
}

#[test]
fn an_edit_that_does_not_match_exactly_says_so() {
    let bench = Bench::new(&[("a.py", b"def f():\n    if x:\n        return 1\n")]);
    let said = bench.say(
        "edit_file",
        json!({"path": "a.py", "search": "if x:\n    return 1\n", "replace": "if x:\n    return 2\n"}),
    );
    assert!(said.contains("didn't match exactly; placed by"), "{said}");
    assert_eq!(bench.file("a.py"), b"def f():\n    if x:\n        return 2\n");
}

#[test]
fn edits_keep_encoding_and_line_endings() {
    let bench = Bench::new(&[
        ("crlf", b"a\r\nb\r\n"),
        ("bom", b"\xef\xbb\xbfa\n"),
        ("latin", b"gr\xfcn\n"),
        ("wide", b"\xff\xfea\0\n\0"),
    ]);
    let edit = |path: &str, search: &str, replace: &str| {
        bench.say("edit_file", json!({"path": path, "search": search, "replace": replace}))
    };
    edit("crlf", "a\nb", "x\ny");
    edit("bom", "a", "b");
    edit("latin", "gr\u{fc}n", "rot\u{e4}");
    edit("wide", "a", "\u{20ac}");
    assert_eq!(bench.file("crlf"), b"x\r\ny\r\n");
    assert_eq!(bench.file("bom"), b"\xef\xbb\xbfb\n");
    assert_eq!(bench.file("latin"), b"rot\xe4\n");
    assert_eq!(bench.file("wide"), b"\xff\xfe\xac\x20\n\0");
    let said = edit("latin", "rot", "\u{20ac}");
    assert!(said.starts_with("error: `latin` was not changed"), "{said}");
}

#[test]
fn several_edits_are_all_or_none() {
    let bench = Bench::new(&[("a", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")]);
    let edits = json!([{"search": "2\n", "replace": "two\nmore\n"}, {"search": "8", "replace": "eight"}]);
    let said = bench.say("edit_file", json!({"path": "a", "edits": edits}));
    assert_eq!(said, "Edited a\n1\t1\n2\ttwo\n3\tmore\n4\t3\n5\t4\n…\n7\t6\n8\t7\n9\teight\n10\t9\n");
    let edits = json!([{"search": "two", "replace": "2"}, {"search": "nowhere at all", "replace": "x"}]);
    let said = bench.say("edit_file", json!({"path": "a", "edits": edits}));
    assert!(said.starts_with("error: `a`, edit 2 (none was applied): "), "{said}");
    assert_eq!(bench.file("a"), b"1\ntwo\nmore\n3\n4\n5\n6\n7\neight\n9\n");
    let edits: Vec<Value> = (0..101).map(|_| json!({"search": "1", "replace": "2"})).collect();
    assert!(bench.say("edit_file", json!({"path": "a", "edits": edits})).contains("too many"));
}

#[test]
fn all_places_are_replaced_only_when_asked() {
    let bench = Bench::new(&[("a", b"x\ny\nx\n")]);
    let said = bench.say("edit_file", json!({"path": "a", "search": "x", "replace": "z"}));
    assert!(said.contains("lines 1 and 3"), "{said}");
    let said =
        bench.say("edit_file", json!({"path": "a", "search": "x", "replace": "z", "replace_all": true}));
    assert_eq!(said, "Edited a\n2 places\n1\tz\n2\ty\n3\tz\n");
}

#[test]
fn edits_that_can_not_be_made_change_nothing() {
    let bench = Bench::new(&[("a.rs", b"x\n"), ("bin", b"\0")]);
    std::fs::write(bench.outside.join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(bench.outside.join("secret"), bench.root.join("link")).unwrap();
    let cases = [
        ("b.rs", "doesn't exist"),
        ("bin", "is binary"),
        ("link", "leads out of the project"),
        (".git/config", ""),
    ];
    for (path, expected) in cases {
        let said = bench.say("edit_file", json!({"path": path, "search": "secret", "replace": "y"}));
        assert!(said.starts_with("error: ") && said.contains(expected), "{path}: {said}");
    }
    assert_eq!(std::fs::read(bench.outside.join("secret")).unwrap(), b"secret");
}

#[test]
fn whole_files_are_written_only_by_those_who_know_them() {
    let bench = Bench::new(&[("old", b"old\n"), ("empty", b""), ("bin", b"\0\x01")]);
    let write =
        |path: &str, content: &str| bench.say("write_file", json!({"path": path, "content": content}));
    assert_eq!(write("new/deep/a", "1\n2\n"), "Created new/deep/a (2 lines)");
    assert_eq!(write("new/deep/a", "3\n"), "Replaced new/deep/a (1 lines)");
    assert_eq!(write("new/deep/a", "3\n"), "new/deep/a already had this content; nothing changed");
    assert!(write("old", "x").contains("you have not read it"));
    assert!(write("bin", "x").contains("you have not read it"));
    assert_eq!(write("empty", "x\n"), "Replaced empty (1 lines)");
    bench.say("read_file", json!({"path": "old"}));
    std::fs::write(bench.root.join("old"), "somebody else's\n").unwrap();
    assert_eq!(
        write("old", "x"),
        "error: somebody else has changed `old` since you read it, so your change was not made. This is what \
         changed; send the call again if it is still right:\n@@ -1 +1 @@\n-old\n+somebody else's\n"
    );
    assert_eq!(bench.file("old"), b"somebody else's\n");
    assert_eq!(write("old", "mine\n"), "Replaced old (1 lines)");
    assert_eq!(bench.file("old"), b"mine\n");
}

#[test]
fn a_file_that_is_replaced_is_told_with_the_lines_that_differ() {
    let bench = Bench::new(&[("list", b"one\ntwo\nthree\n")]);
    let write = |path: &str, content: &str| {
        bench.call("write_file", json!({"path": path, "content": content})).unwrap().diff
    };
    bench.say("read_file", json!({"path": "list"}));
    let diff = write("list", "one\nTWO\nthree\nfour\n").unwrap();
    assert_eq!((diff.added, diff.removed), (2, 1));
    assert!(diff.text.ends_with("@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n three\n+four\n"), "{}", diff.text);
    assert_eq!(write("list", "one\nTWO\nthree\nfour\n"), None, "nothing differs");
    assert_eq!(write("new", "one\n"), None, "its arguments say it");
    // The sizes are those of the whole.
    let many: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    let long = write("list", &many).unwrap();
    assert_eq!((long.added, long.removed), (20_000, 4));
    assert!(long.text.len() <= 64 * 1024 && long.text.ends_with('\n'), "{}", long.text.len());
}

#[test]
fn a_fence_around_a_whole_file_is_not_written() {
    let bench = Bench::new(&[]);
    let write =
        |path: &str, content: &str| bench.say("write_file", json!({"path": path, "content": content}));
    assert_eq!(write("a.py", "```python\nx = 1\n```"), "Created a.py (1 lines, without the fence around it)");
    assert_eq!(bench.file("a.py"), b"x = 1\n");
    assert_eq!(
        write("a.py", "\n~~~\nx = 2\n\ny = 3\n~~~\n"),
        "Replaced a.py (3 lines, without the fence around it)"
    );
    assert_eq!(bench.file("a.py"), b"x = 2\n\ny = 3\n");
    // In a text it is content, and one fence alone surrounds nothing.
    for (path, content) in
        [("a.md", "```sh\nrun\n```\n"), ("b.rs", "```\nx\n"), ("c.rs", "```\nx\n```rust\n")]
    {
        write(path, content);
        assert_eq!(bench.file(path), content.as_bytes(), "{path}");
    }
}

#[test]
fn an_edit_keeps_a_file_known() {
    let bench = Bench::new(&[("a", b"1\n")]);
    bench.say("edit_file", json!({"path": "a", "search": "1", "replace": "2"}));
    assert!(bench.say("write_file", json!({"path": "a", "content": "x"})).contains("not read it"));
    bench.say("read_file", json!({"path": "a"}));
    bench.say("edit_file", json!({"path": "a", "search": "2", "replace": "3"}));
    assert_eq!(bench.say("write_file", json!({"path": "a", "content": "4\n"})), "Replaced a (1 lines)");
}

#[test]
fn a_replaced_file_keeps_its_line_endings_and_encoding() {
    let bench = Bench::new(&[("a", b"\xef\xbb\xbf1\r\n2\r\n")]);
    bench.say("read_file", json!({"path": "a"}));
    let said = bench.say("write_file", json!({"path": "a", "content": "3\n4\n"}));
    assert_eq!(said, "Replaced a (2 lines, CRLF line endings kept)");
    assert_eq!(bench.file("a"), b"\xef\xbb\xbf3\r\n4\r\n");
}

#[test]
fn writes_stay_inside() {
    let bench = Bench::new(&[("a/b", b"")]);
    std::os::unix::fs::symlink(&bench.outside, bench.root.join("out")).unwrap();
    for path in ["out/x", "../x", "/tmp/jm-x", "a", ".git/hooks/pre-commit"] {
        let said = bench.say("write_file", json!({"path": path, "content": "x"}));
        assert!(said.starts_with("error: "), "{path}: {said}");
    }
    assert!(!bench.outside.join("x").exists());
}

#[test]
fn a_name_that_other_systems_cant_have_is_told_of() {
    let bench = Bench::new(&[("Docs/a", b"")]);
    let said = bench.say("write_file", json!({"path": "docs/nul.md", "content": "x\n"}));
    let told = "Created docs/nul.md (1 lines)\n[note: docs: on Windows and macOS, where letter case doesn't count, it is \
                the same as Docs]\n[note: docs/nul.md: Windows takes this name for a device]\n";
    assert_eq!(said, told);
    assert_eq!(bench.file("docs/nul.md"), b"x\n");
}

#[test]
fn the_mask_of_a_secret_is_never_written_over_the_secret() {
    let bench =
        Bench::new(&[("a", b"key = hunter2hunter2\nx = 1\n"), ("doc", "shown as «[secret]»\n".as_bytes())]);
    bench.say("read_file", json!({"path": "a"}));
    bench.say("read_file", json!({"path": "doc"}));
    let cases = [
        ("write_file", json!({"path": "a", "content": "key = «[secret]»\nx = 2\n"})),
        ("write_file", json!({"path": "copy", "content": "key = «[secret]»\n"})),
        ("edit_file", json!({"path": "a", "search": "x = 1", "replace": "y = «[secret]»"})),
    ];
    for (tool, input) in cases {
        let said = bench.say(tool, input);
        assert!(said.contains("a secret that you can't see; use edit_file around it"), "{said}");
    }
    assert_eq!(bench.file("a"), b"key = hunter2hunter2\nx = 1\n");
    assert!(!bench.root.join("copy").exists());
    let said = bench.say("edit_file", json!({"path": "a", "search": "x = 1", "replace": "x = 2"}));
    assert!(said.starts_with("Edited a"), "{said}");
    let said = bench.say("write_file", json!({"path": "doc", "content": "it is shown as «[secret]»\n"}));
    assert!(said.starts_with("Replaced doc"), "{said}");
}

#[test]
fn a_glob_that_is_costly_to_compile_is_refused() {
    let bench = Bench::new(&[("a.rs", b"x\n")]);
    for glob in ["{a,b}".repeat(33), "a".repeat(1_001)] {
        let said = bench.say("search_text", json!({"pattern": "x", "glob": glob}));
        assert!(said.contains("at most 1000 and 32"), "{said}");
        let said = bench.say("list_files", json!({"glob": glob}));
        assert!(said.contains("at most 1000 and 32"), "{said}");
    }
    assert!(bench.say("search_text", json!({"pattern": "x", "glob": "*.{rs,toml}"})).contains("a.rs"));
}
