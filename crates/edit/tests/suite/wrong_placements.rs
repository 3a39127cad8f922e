//! What a model's damaged text must never come to: the right text or a refusal.

use journeyman_edit::{Hunk, Refusal, Strategy, apply_hunk, replace};

fn written(file: &str, search: &str, replacement: &str) -> String {
    let applied = replace(file, search, replacement, false);
    applied.unwrap_or_else(|refusal| panic!("{search:?} → {replacement:?}: {refusal}")).text
}

fn refused(file: &str, search: &str, replacement: &str) -> Refusal {
    match replace(file, search, replacement, false) {
        Err(refusal) => refusal,
        Ok(applied) => panic!("{search:?} → {replacement:?} was written: {:?}", applied.text),
    }
}

fn lines(file: &str, search: &str, replacement: &str) -> Result<String, Refusal> {
    let hunk = Hunk { whole_lines: true, ..Hunk::new(search, replacement) };
    apply_hunk(file, &hunk).map(|applied| applied.text)
}

#[test]
fn curled_quotes_of_new_lines_are_those_of_the_file() {
    let file = "log(\"start\");\nrun();\n";
    assert_eq!(
        written(file, "log(“start”);\nrun();\n", "log(“start”);\n// it doesn’t stop\nlog(“more”);\nrun();\n"),
        "log(\"start\");\n// it doesn't stop\nlog(\"more\");\nrun();\n"
    );
    // Where the indentation differs as well.
    assert_eq!(
        written("    log(\"a\");\n    run();\n", "log(“a”);\nrun();", "log(“b”, 'c');\nrun();"),
        "    log(\"b\", 'c');\n    run();\n"
    );
    // A file that curls them keeps them, and a search text without any says nothing of new ones.
    assert_eq!(written("say “a”  \nb\n", "say “a”\nb\n", "say “a”\nsay “c”\nb\n"), "say “a”  \nsay “c”\nb\n");
    assert_eq!(written("a  \nb\n", "a\nb\n", "a\nsay “c”\nb\n"), "a  \nsay “c”\nb\n");
    // One stands for a plain quote, another for itself.
    let mixed = "p(\"a\");\nq(\"‘b’\");\n";
    let refusal = refused(mixed, "p(“a”);\nq(\"‘b’\");\n", "p(“a”);\nr(‘c’);\nq(\"‘b’\");\n");
    assert!(matches!(refusal, Refusal::GuardedMismatch { line: 1, .. }), "{refusal}");
}

#[test]
fn a_search_text_that_was_cut_short_doubles_nothing() {
    let cases = [
        // A lone bracket, a short line, a blank line, after lines that come or change.
        ("fn a() {\n  one();\n}\n\nb\n", "fn a() {\n  one();", "fn a() {\n  two();\n}"),
        ("if x {\n  say();\n  end;\n}\n", "if x {\n  say();", "if x {\n  tell(1);\n  end;"),
        ("one();\n\ntwo();\n", "one();", "changed();\n"),
        ("one();\n\n/**\n * two\n", "one();\n", "other();\n\n/**"),
        ("a = 1\nb = 2\nc = 3\n", "a = 1\n", "a = 4\nnew = 5\nb = 2\nc = 3\n"),
        // Within a line, of which the replacement has all.
        ("\nlet out = create(path);\nend\n", "\nlet out = cre", "\nmkdir();\nlet out = create(path);"),
        ("package some.name;\n", "package some.na", "// licence\npackage some.name;"),
    ];
    for (file, search, replacement) in cases {
        let refusal = refused(file, search, replacement);
        assert!(matches!(refusal, Refusal::GuardedMismatch { .. }), "{search:?}: {refusal}");
    }
    // One more of the last line than is searched for, which stands there.
    refused("#if A\nint a(int);\n#endif\n#endif\n", "int a(int);\n#endif", "int a(long);\n#endif\n#endif");
    // Lines that both texts end with repeat nothing.
    assert_eq!(written("{\n  a\n}\n}\n", "  a\n}", "  b\n}"), "{\n  b\n}\n}\n");
}

#[test]
fn a_crlf_pair_is_never_cut() {
    let file = "a\r\n\r\n/// b\r\nc\r\n";
    let hunk = Hunk::new("\n/// b", "\n/// new\n\n/// b");
    let applied = apply_hunk(file, &hunk).unwrap();
    assert_eq!(applied.text, "a\r\n\r\n/// new\r\n\r\n/// b\r\nc\r\n");
    assert_eq!(applied.strategy, Strategy::LineEndings);
}

#[test]
fn further_lines_are_as_deep_as_the_line_that_was_found_within_its_indentation() {
    let file = "impl A {\n        call(one);\n}\n";
    // The search text shows some of the indentation: all is measured from there.
    assert_eq!(
        written(file, "    call(one);", "    call(\n        two,\n    );"),
        "impl A {\n        call(\n            two,\n        );\n}\n"
    );
    assert_eq!(
        written(file, "call(one);", "// why\n\nlet x = 1;\ncall(x);"),
        "impl A {\n        // why\n\n        let x = 1;\n        call(x);\n}\n"
    );
    // Copied from the line's first character on, the rest with its indentation.
    assert_eq!(
        written(file, "call(one);", "call(two);\n        call(three);"),
        "impl A {\n        call(two);\n        call(three);\n}\n"
    );
    let refusal = refused(file, "call(one);", "call(two);\n    call(three);");
    assert!(matches!(refusal, Refusal::GuardedMismatch { line: 2, .. }), "{refusal}");
}

#[test]
fn blank_lines_at_an_edge_are_neither_lost_nor_added() {
    // The last line of the search text is a blank one that the file has, and that goes.
    assert_eq!(lines("  a\n\nb\n", "a\n", "c"), Ok("  c\nb\n".to_owned()));
    assert_eq!(lines("  a\nb\n", "a", "c\n"), Ok("  c\n\nb\n".to_owned()));
    // A blank line within is missing, and one at the edge is not in both texts.
    let found = replace("x\n\none();\n\ntwo();\n", "\none();\ntwo();", "first();\n\none();\ntwo(2);", false);
    assert!(matches!(found, Err(Refusal::GuardedMismatch { .. })), "{found:?}");
}

#[test]
fn a_replacement_that_keeps_a_shifted_line_is_shifted_as_a_whole() {
    let file = "class A:\n    def a():\n        return 1\n";
    assert_eq!(
        written(
            file,
            "        def a():\n            return 1",
            "    X = 1\n        def a():\n            return 2"
        ),
        "class A:\nX = 1\n    def a():\n        return 2\n"
    );
}

#[test]
fn one_numbered_line_loses_its_number_beside_a_listing() {
    assert_eq!(written("a:\n  b\n", "1: a:\n2:   b", "1: a: b"), "a: b\n");
}

#[test]
fn a_deletion_is_not_said_to_be_made() {
    let refusal =
        refused("first line here\nsecond line here\n", "first line here\ngone = 1\n", "first line here\n");
    assert!(!refusal.is_already_applied(), "{refusal}");
}

#[test]
fn similarity_leaves_escapes_alone() {
    let file = "alpha(\"one\", 1);\nbeta(2, 3, 4);\ngamma(5, 6, 7);\ndelta(8, 9);\n";
    let search = "beta(2, 3, 4);\nalpha(\\\"one\\\", 1);\ngamma(5, 6, 7);\ndelta(8, 9);\n";
    let file = file.replace("alpha(\"one\", 1);\nbeta(2, 3, 4);\n", "beta(2, 3, 4);\nalpha(\"one\", 1);\n");
    // The removed line has two kinds of quotes, so that the layer can't be undone as a whole.
    let search = search.replace("gamma(5, 6, 7);", "gamma(5, 6, 7, \"g\");");
    let file = file.replace("gamma(5, 6, 7);", "gamma(5, 6, 7, \"g\");");
    let replacement = search.replace("delta(8, 9);", "say(\\\"new\\\");\ndelta(8, 9);");
    refused(&file, &search, &replacement);
}

#[test]
fn blank_lines_among_lines_that_others_replace_are_not_lost() {
    let file = "one();\n\ntwo();\nend();\n";
    refused(file, "one();\ntwo();\nend();", "if x {\n  one();\n  two();\n}\nend();");
    // Line for line they stay; with all lines around them they go.
    assert_eq!(
        written(file, "one();\ntwo();\nend();", "One();\nTwo();\nend();"),
        "One();\n\nTwo();\nend();\n"
    );
    assert_eq!(written(file, "one();\ntwo();\nend();", "end();"), "end();\n");
}

#[test]
fn a_blank_line_that_ends_one_of_the_texts_comes_or_goes_by_any_step() {
    // Byte for byte the search text's last line break is the blank line's; so it is when something
    // is overlooked.
    assert_eq!(written("a\n  b\n\nc\n", "b\n", "x"), "a\n  x\nc\n");
    assert_eq!(written("  a\n  b\n\nc\n", "a\nb\n", "a\nx"), "  a\n  x\nc\n");
    assert_eq!(written("a\r\nb\r\n\r\nc\r\n", "a\nb\n", "a\nx"), "a\r\nx\r\nc\r\n");
    assert_eq!(written("say \"a\"\n\nb\n", "say “a”\n", "say “b”"), "say \"b\"\nb\n");
    assert_eq!(written("  a\n  b\nc\n", "a\nb", "a\nx\n"), "  a\n  x\n\nc\n");
    // Where the file has no blank line, nobody means to join lines.
    assert_eq!(written("  a\n  b\nc\n", "a\nb\n", "a\nx"), "  a\n  x\nc\n");
}

#[test]
fn a_blank_line_behind_a_gap_comes_or_goes_too() {
    let file = "one();\ntwo();\nthree();\nfour();\n\nfive();\n";
    assert_eq!(
        written(file, "one();\n...\nfour();\n", "one();\n...\n4();"),
        "one();\ntwo();\nthree();\n4();\nfive();\n"
    );
    assert_eq!(
        written(file, "one();\n...\nthree();", "one();\n...\n3();\n"),
        "one();\ntwo();\n3();\n\nfour();\n\nfive();\n"
    );
    assert_eq!(
        lines(file, "one();\n...\nfour();\n", "one();\n...\n4();").as_deref(),
        Ok("one();\ntwo();\nthree();\n4();\nfive();\n")
    );
    let both = written(file, "one();\n...\nfour();\n", "one();\n...\n4();\n");
    assert_eq!(both, file.replace("four", "4"));
}

#[test]
fn a_fence_around_the_search_text_alone_adds_no_blank_line() {
    let file = "one();\ntwo();\n\n\nthree();\n";
    assert_eq!(
        lines(file, "```rs\none();\ntwo();\n\n\n```", "one();\n2();\n\n").as_deref(),
        Ok("one();\n2();\n\n\nthree();\n")
    );
    assert_eq!(written(file, "```\none();\ntwo();\n```\n", "one();\n2();\n"), file.replace("two", "2"));
}

#[test]
fn lines_that_come_beside_a_blank_line_that_isnt_shown_are_refused() {
    let file = "}\n\n@Test\n@Old\nfn a() {\n";
    let refusal = refused(file, "}\n@Test\n@Old\nfn a() {", "}\n@Old\n@Test\nfn a() {");
    assert!(matches!(refusal, Refusal::GuardedMismatch { line: 2, .. }), "{refusal}");
    // Beside lines that are shown side by side there is no doubt.
    assert_eq!(
        written(file, "}\n@Test\n@Old\nfn a() {", "}\n@Test\n@New\n@Old\nfn a() {"),
        "}\n\n@Test\n@New\n@Old\nfn a() {\n"
    );
}

#[test]
fn as_many_lines_as_before_around_a_blank_one_are_not_always_the_same_ones() {
    let file = "f:\n  first words\n\n  second: one\n  third: two\ng\n";
    refused(
        file,
        "f:\n  first words\n  second: one\n  third: two",
        "f:\n  other text\n  second: one thing\n  and more",
    );
}

#[test]
fn a_block_at_the_margin_after_a_line_without_its_indentation_is_refused() {
    let file = "def a():\n    check(one)\n";
    // The block may be meant at the margin, if the first line alone lost its indentation, or beside
    // that line.
    let refusal = refused(file, "check(one)", "check(one)\n\n\ndef b():\n    check(two)");
    assert!(matches!(refusal, Refusal::GuardedMismatch { line: 2, .. }), "{refusal}");
    // What follows at once isn't one of its own.
    assert_eq!(
        written(file, "check(one)", "if x:\n    check(one)\ncheck(two)"),
        "def a():\n    if x:\n        check(one)\n    check(two)\n"
    );
}

#[test]
fn a_line_that_closes_the_block_shows_that_the_first_alone_lost_its_indentation() {
    let file = "fn a() {\n    check(one)\n}\n";
    assert_eq!(
        written(file, "check(one)", "check(two)\n}\n\nfn b() {\n    check(one)"),
        "fn a() {\n    check(two)\n}\n\nfn b() {\n    check(one)\n}\n"
    );
    // Within two blocks the line that closes one isn't at the margin.
    let nested = "fn a() {\n    if x {\n        check(one)\n    }\n}\n";
    let refusal = refused(nested, "check(one)", "check(two)\n}\ncheck(three)");
    assert!(matches!(refusal, Refusal::GuardedMismatch { line: 3, .. }), "{refusal}");
    // A block of its own is closed where it began.
    assert_eq!(
        written(file, "check(one)", "if x {\n    check(one)\n}\ncheck(two)"),
        "fn a() {\n    if x {\n        check(one)\n    }\n    check(two)\n}\n"
    );
}

#[test]
fn a_line_below_an_open_bracket_stays_below_it() {
    let file = "def a(self):\n        return call(one, two)\n";
    assert_eq!(
        written(file, "return call(one, two)", "return call(one(1),\n            two)"),
        "def a(self):\n        return call(one(1),\n                    two)\n"
    );
    // It is there already.
    assert_eq!(
        written(file, "return call(one, two)", "return call(one(1),\n                    two)"),
        "def a(self):\n        return call(one(1),\n                    two)\n"
    );
}

#[test]
fn a_version_of_any_line_that_moved_shows_that_the_new_lines_are_to_move() {
    let file = "Then x do |text|\n  regexp = Regexp.new(text)\n  expect(output).to match regexp\nend\n";
    let replacement = "    expect(output).to match Regexp.new(text)\n  end\n\n  Then y do\n    step z";
    assert_eq!(
        written(file, "    regexp = Regexp.new(text)\n    expect(output).to match regexp", replacement),
        "Then x do |text|\n  expect(output).to match Regexp.new(text)\nend\n\nThen y do\n  step z\nend\n"
    );
}

#[test]
fn a_blank_first_line_takes_no_indentation_of_the_line_that_was_found() {
    let file = "fn a() {\n        check(one);\n}\n";
    assert_eq!(
        written(file, "    check(one);", "\n    check(\n        two,\n    );"),
        "fn a() {\n\n        check(\n            two,\n        );\n}\n"
    );
}

#[test]
fn a_level_of_the_file_is_that_of_its_blocks_whatever_is_aligned_in_it() {
    let aligned = (0..6).map(|nth| format!("    call(one,\n      {nth})\n")).collect::<String>();
    let blocks = (0..3).map(|nth| format!("def f{nth}():\n    with x:\n        check({nth})\n"));
    let file = format!("{}def g():\n{aligned}", blocks.collect::<String>());
    let replacement = "            check(0)\n\n    class A:\n        def b(self):\n            pass";
    assert_eq!(
        written(&file, "            check(0)", replacement),
        file.replace("        check(0)\n", "        check(0)\n\nclass A:\n    def b(self):\n        pass\n")
    );
}

#[test]
fn continued_lines_of_the_new_text_say_nothing_of_its_levels() {
    let file = "def a():\n    if x:\n        y()\n\n\ndef b():\n    z()\n";
    let added = "    def c(one,\n          two):\n        for x in two:\n            y()\n\n\n    def b():";
    let expected = "def c(one,\n      two):\n    for x in two:\n        y()\n\n\ndef b():\n";
    assert_eq!(written(file, "    def b():", added), file.replace("def b():\n", expected));
    assert_eq!(
        written(file, "def a():\n\tif x:\n\t\ty()", "def a():\n\tif x:\n\t\ty(1,\n\t\t  2)"),
        file.replace("y()", "y(1,\n          2)")
    );
}

#[test]
fn a_place_as_deep_as_the_search_text_with_a_blank_line_more_is_as_good_as_one_of_another_depth() {
    let file = "{\n        let q = ask(f);\n        q.run();\n        select(q);\n}\n\n    let q = ask(f);\n    q.run();\n\n    select(q);\n";
    let refusal = refused(
        file,
        "\n    let q = ask(f);\n    q.run();\n    select(q);",
        "\n    ask(f).run();\n    select(q);",
    );
    assert!(matches!(refusal, Refusal::Ambiguous { .. }), "{refusal}");
}

#[test]
fn all_lines_shifted_alike_are_shifted_back_whatever_else_is_among_their_blanks() {
    // The last line has a tab of its own behind spaces.
    let file = "a;\n    b,\n    \tc\n";
    assert_eq!(
        written(file, "  a;\n      b,\n      \tc", "  a;\n        b,\n      \tc"),
        "a;\n      b,\n    \tc\n"
    );
}

#[test]
fn a_remark_without_words_keeps_its_indentation_and_loses_its_blanks() {
    let file = " * one\n * \n * two\n";
    assert_eq!(written(file, "* one\n* \n* two", "* one\n*\n* two"), " * one\n *\n * two\n");
}

#[test]
fn an_edit_that_was_cut_off_is_not_said_to_be_made() {
    let cases = [
        // Only a blank line of what comes is there.
        ("one = nothing\n\nother\n", "one = nothing", "one = nothing\nanother = something\n"),
        // The new line is there, but blanks at the end of another would go as well.
        ("first line \nsecond line\nlast line\n", "first line \n", "first line\nsecond line\n"),
    ];
    for (file, search, replacement) in cases {
        let refusal = refused(file, search, replacement);
        assert!(!refusal.is_already_applied(), "{search:?}: {refusal}");
    }
    let made = refused("first line\nsecond line\nlast line\n", "first line\n", "first line\nsecond line\n");
    assert!(made.is_already_applied(), "{made}");
}

#[test]
fn spaces_that_may_be_levels_or_alignment_behind_tabs_are_refused() {
    let file = "a() {\n\tone(two,\n\t    three);\n\tfour();\n\n\tfive();\n}\n";
    let refusal = refused(file, "    four();\n\n    five();", "    four(4,\n        4);\n\n    five();");
    assert!(matches!(refusal, Refusal::GuardedMismatch { .. }), "{refusal}");
    // A file that aligns nothing so has levels only.
    let file = file.replace("\t    three", "\t\tthree");
    assert_eq!(
        written(&file, "    four();\n\n    five();", "    four(4,\n        4);\n\n    five();"),
        file.replace("four();", "four(4,\n\t\t4);")
    );
}

#[test]
fn blanks_of_new_blank_lines_are_carried_over_too() {
    let file = "f {\n    one();\n    two();\n}\n";
    assert_eq!(
        written(file, "\tone();\n\ttwo();", "\tone();\n\t\n\ttwo();"),
        "f {\n    one();\n    \n    two();\n}\n"
    );
    // Blanks that no line has say nothing.
    assert_eq!(written(file, "one();\ntwo();", "one();\n  \ntwo(2);"), "f {\n    one();\n\n    two(2);\n}\n");
}

#[test]
fn continued_lines_are_no_levels() {
    // A file with levels of two blanks, whose lines go on four deeper.
    let file = "class A {\n  void f() {\n    one();\n    two();\n    three();\n  }\n}\n";
    assert_eq!(
        written(file, "\ntwo();\nthree();", "\nint b =\n    one().stream()\n        .all();\nthree();"),
        file.replace("    two();\n", "    int b =\n        one().stream()\n            .all();\n")
    );
    // Blocks within blocks are levels, though nothing opens them at a line's end.
    assert_eq!(
        written(file, "\ntwo();\nthree();", "\n<ul>\n    <li>\n        x\n    </li>\n</ul>\nthree();"),
        file.replace("    two();\n", "    <ul>\n      <li>\n        x\n      </li>\n    </ul>\n")
    );
}

#[test]
fn a_tab_stands_for_the_columns_that_it_replaced() {
    let file = "class A {\n  int f() {\n    int a = 1;\n    return a;\n  }\n}\n";
    assert_eq!(
        written(file, "  int f() {\n\tint a = 1;", "  int f() {\n\tint a =\n\t\tone();"),
        file.replace("a = 1;", "a =\n        one();")
    );
    // Spaces behind it are the file's, whatever a tab is.
    assert_eq!(
        written(
            file,
            "class A {\n  int f() {\n\tint a = 1;",
            "class A {\n  int f() {\n\tif (b) {\n\t  one();\n\t}"
        ),
        file.replace("    int a = 1;", "    if (b) {\n      one();\n    }")
    );
    // With nothing else it may be a level as well, but behind a line that opens a block.
    refused(file, "\tint a = 1;", "\tint a =\n\t\tone();");
    assert_eq!(
        written(file, "\tint a = 1;", "\tif (b) {\n\t\tone();\n\t}"),
        file.replace("    int a = 1;", "    if (b) {\n      one();\n    }")
    );
}

#[test]
fn a_line_with_a_blank_one_after_it_is_not_set_apart_twice() {
    let file = "a();\nb();\n\nc();\n";
    refused(file, "b();", "b();\nnew();\n");
}

#[test]
fn lines_are_not_joined_by_a_forgotten_line_break() {
    let file = "fn f() {\n    one();\n    two();\n}\n";
    // Exactly found, at the end and at the beginning.
    assert_eq!(written(file, "    two();\n", "    three();"), "fn f() {\n    one();\n    three();\n}\n");
    assert_eq!(written(file, "\n    two();", "    three();"), "fn f() {\n    one();\n    three();\n}\n");
    assert_eq!(
        written(&file.replace('\n', "\r\n"), "    two();\r\n", "    three();"),
        "fn f() {\r\n    one();\r\n    three();\r\n}\r\n"
    );
    // Meant: the line beside the break stays as it is, or there is nothing to keep.
    assert_eq!(written("call(\n    one)\n", "call(\n", "call("), "call(    one)\n");
    assert_eq!(written("if x\n{\n", "\n{", " {"), "if x {\n");
    assert_eq!(written(file, "    two();\n", ""), "fn f() {\n    one();\n}\n");
}

#[test]
fn a_deleted_line_leaves_no_indentation_behind() {
    let file = "if a:\n    one()\n    two()\nend\n";
    for search in ["one()\n", "    one()\n"] {
        assert_eq!(written(file, search, ""), "if a:\n    two()\nend\n", "{search:?}");
    }
    assert_eq!(lines(file, "one()", "").unwrap(), "if a:\n    two()\nend\n");
    // A part of a line is no line.
    assert_eq!(written(file, "one", ""), "if a:\n    ()\n    two()\nend\n");
    assert_eq!(written("a b\nc\n", "b\n", ""), "a c\n");
}

#[test]
fn a_text_that_ends_its_line_is_not_found_within_one() {
    assert!(matches!(refused("x foo y", "x foo\n", "z\n"), Refusal::NotFound { .. }));
    assert_eq!(written("x foo", "x foo\n", "z\n"), "z");
    assert_eq!(written("x foo y", " foo y \n", "bar\n"), "x bar");
}

#[test]
fn new_lines_of_a_file_with_both_line_breaks_end_as_those_beside_them() {
    let file = "a\r\nb\r\nc\nd\ne\r\n";
    for (search, replacement, expected) in [
        ("b", "b\nnew", "a\r\nb\r\nnew\r\nc\nd\ne\r\n"),
        ("c", "c\nnew", "a\r\nb\r\nc\nnew\nd\ne\r\n"),
        ("b\nc", "B\nbetween\nC", "a\r\nB\r\nbetween\nC\nd\ne\r\n"),
        ("b\nc\nd", "b\nd", "a\r\nb\r\nd\ne\r\n"),
        ("c\nd\n", "c\nx\ny\nd\n", "a\r\nb\r\nc\nx\ny\nd\ne\r\n"),
        ("d\ne\n", "d\nx\ne\n", "a\r\nb\r\nc\nd\nx\ne\r\n"),
        // Whoever sends carriage returns means them.
        ("a\r\n", "a\n", "a\nb\r\nc\nd\ne\r\n"),
    ] {
        assert_eq!(written(file, search, replacement), expected, "{search:?} {replacement:?}");
    }
}

#[test]
fn deeper_lines_below_a_single_line_go_by_the_files_levels() {
    let four = "class A:\n    def f(self):\n        x = 1\n        return x\n";
    let note = replace(four, "return x", "if x:\n    return x\nreturn 0", false).unwrap().note;
    assert_eq!(note, None, "nothing is left to be checked");
    for given in ["", "  ", "    "] {
        let new = format!("{given}if x:\n{given}  return x\n{given}return 0");
        assert_eq!(
            written(four, &format!("{given}return x"), &new),
            "class A:\n    def f(self):\n        x = 1\n        if x:\n            return x\n        return 0\n",
            "{given:?}"
        );
    }
    let two = "class A {\n  f() {\n    if (a) {\n      return x;\n    }\n  }\n}\n";
    for given in ["", "    "] {
        let new = format!("{given}if (x) {{\n{given}    return x;\n{given}}}\n{given}return 0;");
        assert_eq!(
            written(two, &format!("{given}return x;"), &new),
            "class A {\n  f() {\n    if (a) {\n      if (x) {\n        return x;\n      }\n      return 0;\n    }\n  }\n}\n",
            "{given:?}"
        );
    }
}

#[test]
fn a_tab_among_new_lines_that_spaces_indent_is_refused() {
    let file = "def f(a):\n    return a\n";
    let search = "def f(a):\n    return a";
    let refusal = refused(file, search, "def f(a):\n\ta = int(a)\n    return a");
    assert!(refusal.to_string().contains("indented by a tab"), "{refusal}");
    // All alike, and a tab that the file has elsewhere, are as they were sent.
    let all = "def f(a):\n\ta = int(a)\n\treturn a";
    assert_eq!(written(file, search, all), format!("{all}\n"));
    let tabbed = format!("{file}if a:\n\tpass\n");
    let mixed = "def f(a):\n\ta = int(a)\n    return a";
    assert_eq!(written(&tabbed, search, mixed), tabbed.replace(search, mixed));
    assert_eq!(written(file, "    return a", "\treturn a"), "def f(a):\n\treturn a\n");
}
