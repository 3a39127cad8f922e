//! Rewrites that leave something out in a way that was once written wrongly: each is merged as
//! meant, or refused.

use journeyman_edit::{AllowedDifferences, EditOp, OpContext, OpError, apply_ops};
use journeyman_protocol::RelPath;

/// The file afterwards, or the refusal's kind.
fn apply(path: &str, text: &str, op: EditOp) -> Result<String, &'static str> {
    let path = RelPath::parse(path).unwrap();
    let context = OpContext { path: &path, shown: None, allow: AllowedDifferences::default() };
    let outcome = apply_ops(Some(text), &[op], &context);
    match outcome.failed.as_slice() {
        [] => Ok(outcome.content.unwrap()),
        [OpError::Refused { refusal, .. }] => {
            assert_eq!(outcome.content.as_deref(), Some(text), "nothing is written");
            Err(refusal.kind())
        }
        other => panic!("{other:?}"),
    }
}

fn merge(path: &str, text: &str, content: &str) -> Result<String, &'static str> {
    apply(path, text, EditOp::Lazy { content: content.to_owned(), says_removal: false })
}

fn rewrite(path: &str, text: &str, content: &str) -> Result<String, &'static str> {
    apply(path, text, EditOp::Rewrite { content: content.to_owned(), exact: false })
}

const RUST: &str = "use a::b;\n\nimpl Store {\n    pub fn load(&mut self) -> usize {\n        let text = read(&self.path);\n        self.items = split(text);\n        self.items.len()\n    }\n\n    pub fn total(&self) -> usize {\n        let mut count = 0;\n        for item in &self.items {\n            count += item.len();\n        }\n        count\n    }\n}\n";
const PYTHON: &str = "import os\n\n\nclass Store:\n    def load(self):\n        text = read(self.path)\n        self.items = text.split()\n        return self.items\n\n    @cached\n    def total(self):\n        count = 0\n        for item in self.items:\n            count += len(item)\n        return count\n";
const YAML: &str = "name: store\njobs:\n  create:\n    steps:\n      - run: mkdir store\n  load:\n    runs: linux\n    steps:\n      - run: cat store\n  total:\n    steps:\n      - run: wc store\n      - run: sort store\n      - run: uniq store\n  save:\n    steps:\n      - run: sync\n";

#[test]
fn a_remark_in_a_line_of_code_keeps_the_body() {
    let expected = RUST.replace("item.len()", "item.size()");
    for body in
        ["{ /* ... existing code ... */ }", "{ // ... existing code ...\n    }", "{ /* unchanged */ }"]
    {
        let content = format!(
            "// ... existing code ...\n\nimpl Store {{\n    pub fn load(&mut self) -> usize {body}\n\n    pub fn total(&self) -> usize {{\n        let mut count = 0;\n        for item in &self.items {{\n            count += item.size();\n        }}\n        count\n    }}\n}}\n"
        );
        assert_eq!(merge("a.rs", RUST, &content).as_ref(), Ok(&expected), "{body}");
        assert_eq!(rewrite("a.rs", RUST, &content), Err("placeholder"), "{body}");
    }
}

#[test]
fn dots_for_a_python_body_keep_it() {
    let expected = PYTHON.replace("len(item)", "size(item)");
    for body in
        [":\n        ...", ": ...", ":\n        pass  # unchanged", ":  # ... existing code ...\n        ..."]
    {
        let content = format!(
            "# ... existing code ...\n\nclass Store:\n    def load(self){body}\n\n    @cached\n    def total(self):\n        count = 0\n        for item in self.items:\n            count += size(item)\n        return count\n"
        );
        assert_eq!(merge("a.py", PYTHON, &content).as_ref(), Ok(&expected), "{body}");
    }
}

#[test]
fn bare_dots_are_a_remark_where_the_file_has_none() {
    let content = "...\n\nimpl Store {\n    ...\n\n    pub fn total(&self) -> usize {\n        sum(&self.items)\n    }\n}\n";
    let (head, _) = RUST.split_once("        let mut count").unwrap();
    assert_eq!(merge("a.rs", RUST, content), Ok(format!("{head}        sum(&self.items)\n    }}\n}}\n")));
}

#[test]
fn remarks_of_many_kinds_are_recognised() {
    let expected = RUST.replace("item.len()", "item.size()");
    let remarks = [
        "...existing code...",
        "(unchanged)",
        "[existing code]",
        "=== UNCHANGED ===",
        "-- snip --",
        "... 42 lines unchanged ...",
        "Rest of the file...",
        "[Rest of implementation remains exactly the same]",
        "... (other methods)",
        "same as before",
        "其余代码不变",
        "... 既存のコード ...",
        "Rest bleibt unverändert",
        "остальной код без изменений",
    ];
    for remark in remarks {
        let content = format!(
            "// {remark}\n\nimpl Store {{\n    // {remark}\n\n    pub fn total(&self) -> usize {{\n        let mut count = 0;\n        for item in &self.items {{\n            count += item.size();\n        }}\n        count\n    }}\n}}\n"
        );
        assert_eq!(merge("a.rs", RUST, &content).as_ref(), Ok(&expected), "{remark}");
        assert_eq!(rewrite("a.rs", RUST, &content), Err("placeholder"), "{remark}");
    }
}

#[test]
fn a_comment_that_speaks_of_the_code_is_no_remark() {
    // Nothing is lost where it stands.
    for comment in
        ["// Keeps the existing items.", "// Returns the rest of the previous count.", "// Loading..."]
    {
        let content =
            RUST.replace("        let mut count", &format!("        {comment}\n        let mut count"));
        assert_eq!(rewrite("a.rs", RUST, &content).as_ref(), Ok(&content), "{comment}");
    }
    // It takes the place of four lines.
    let (head, tail) = (RUST.find("        let mut count").unwrap(), RUST.rfind("        count\n").unwrap());
    let content = format!("{}        // the previous loop stays here\n{}", &RUST[..head], &RUST[tail..]);
    assert_eq!(rewrite("a.rs", RUST, &content), Err("placeholder"));
}

#[test]
fn a_part_of_a_file_is_not_written_as_all_of_it() {
    let text: String =
        (0..12).map(|n| format!("fn f{n}() {{\n    first({n});\n    second({n});\n}}\n\n")).collect();
    let part = "fn f4() {\n    first(4);\n    second(5);\n}\n\nfn f5() {\n    first(5);\n    second(5);\n}\n";
    assert_eq!(rewrite("a.rs", &text, part), Err("malformed"));
    // With the file's beginning it is a file that got shorter.
    let short = format!("fn f0() {{\n    first(0);\n    second(0);\n}}\n\n{part}");
    assert_eq!(rewrite("a.rs", &text, &short), Ok(short));
}

#[test]
fn what_is_left_out_beside_a_remark_is_not_dropped() {
    let content = "# ... existing ...\njobs:\n  create:\n    steps:\n      - run: mkdir store\n  total:\n    steps:\n      - run: wc -l store\n      - run: sort store\n      - run: uniq store\n  # ... existing ...\n";
    assert_eq!(merge("a.yaml", YAML, content), Err("malformed"));
    // The remark may stand for the rest of the list above it.
    let content = "# ... existing ...\njobs:\n  # ... existing ...\n  total:\n    steps:\n      - run: wc -l store\n    # ... existing ...\n";
    assert_eq!(merge("a.yaml", YAML, content), Err("placeholder"));
    let text = "# A\n\nOne.\n\n## Load\n\nTwo.\n\nThree.\n\n- four\n\n## Save\n\nFive.\n\n## End\n\nSix.\n";
    let content = "# A\n\nOne.\n\n## Save\n\n5.\n\n<!-- ... rest unchanged ... -->\n";
    assert_eq!(merge("a.md", text, content), Err("malformed"));
    let text = "CREATE TABLE a (\n  id INTEGER\n);\n\nCREATE VIEW b AS\nSELECT c, d\nFROM e;\n\nCREATE VIEW f AS\nSELECT g\nFROM h;\n\nDELETE FROM i;\n";
    let content = "CREATE TABLE a (\n  id INTEGER\n);\n\nCREATE VIEW f AS\nSELECT g, j\nFROM h;\n\n-- ... existing code ...\n";
    assert_eq!(merge("a.sql", text, content), Err("malformed"));
}

#[test]
fn lines_beside_a_remark_are_not_taken_away() {
    let functions: String = (0..12).map(|n| format!("\n\ndef f{n}():\n    return {n}\n")).collect();
    let licence = format!(
        "#!/usr/bin/python3 -u\n#\n# shop - sells things\n# Copyright (C) 2008 Somebody\n# vim: expandtab\n#\n# One term.\n# Another term.\n# A third term.\n#\n# You should have a copy.\n#\n\n\"\"\"A shop.\"\"\"\n\nimport os\n{functions}"
    );
    let block = "#\n# shop - sells things\n# Copyright (C) 2008 Somebody\n# vim: expandtab\n#\n# ... (rest of the code unchanged)\n";
    assert_eq!(merge("a.py", &licence, block), Err("malformed"));

    let head = "import plots\n\nitems = plots.load(\"items\")\n\n# Define a palette to ensure that colors will be\n# shared across the plots\npalette = dict(zip(items.coherence.unique(),\n                   plots.palette(\"rocket\", 6)))\n\n";
    let drawn = "# Set up a grid\ngrid = plots.Grid(items, col=\"align\",\n                  sharex=False, size=5, aspect=.75)\n\n# Draw the plot on each part\ngrid.map(plots.line, \"time\", \"rate\",\n         hue=\"coherence\")\ngrid.add_legend()\n";
    let new_drawn = "# Plot the lines on two parts\nplots.all(x=\"time\", y=\"rate\",\n          hue=\"coherence\", col=\"align\",\n          height=5,\n          kind=\"line\", data=items)\n";
    let shown = head.find("# shared").unwrap();
    let block = format!("# ... rest of the file remains unchanged ...\n{}{new_drawn}", &head[shown..]);
    assert_eq!(merge("a.py", &format!("{head}{drawn}"), &block), Err("malformed"));
}

#[test]
fn attributes_above_a_line_that_is_shown_as_it_is_stay() {
    let content = "# ... existing code ...\n    def total(self):\n        count = 0\n        for item in self.items:\n            count += size(item)\n        return count\n";
    assert_eq!(merge("a.py", PYTHON, content), Ok(PYTHON.replace("len(item)", "size(item)")));
    // Another line there may have had them.
    let content = content.replace("def total(self)", "def total(self, unit)");
    assert_eq!(merge("a.py", PYTHON, &content), Err("malformed"));
}

#[test]
fn a_new_version_beside_a_remark_is_no_addition() {
    let text = "SELECT id,\n  COUNT(*) AS count,\n  SUM(size) AS size\nFROM item;\n";
    let content = "SELECT id,\n  COUNT(DISTINCT id) AS count,\n  -- ... existing code ...\nFROM item;\n";
    let expected = text.replace("COUNT(*)", "COUNT(DISTINCT id)");
    assert_eq!(merge("a.sql", text, content), Ok(expected));
    let text = "one = 1\ntwo = 2\nthree = 3\nfour = 4\n";
    let content = "one = 1\ntwo = twelve\n# ... existing code ...\nfour = 4\n";
    assert_eq!(merge("a.txt", text, content), Ok(text.replace("two = 2", "two = twelve")));
    // Of two that are about the same nobody knows which one is meant.
    let text = "one = 1\ntwo = 2\nthree = 3\ntwo = 4\nfour = 4\n";
    assert_eq!(merge("a.txt", text, content), Err("malformed"));
}

#[test]
fn lines_that_come_replace_none_that_may_stay() {
    let block = |name: &str, file: &str| {
        format!(
            "context(\"{name}\", () => {{\n  it(\"works\", () => {{\n    assert(open(\"{file}\"));\n  }});\n}});\n\n"
        )
    };
    let text = [block("a", "x"), block("b", "y"), block("c", "x"), block("d", "z")].concat();
    // `e` comes between `c` and `d`, or replaces `b` or the like: its first lines are there twice.
    let content = "// ... existing code ...\n    assert(open(\"x\"));\n  });\n});\n\ncontext(\"e\", () => {\n  it(\"opens\", () => {\n    assert(open(\"w\"));\n  });\n});\n\ncontext(\"d\", () => {\n// ... existing code ...\n";
    let expected = text.replace("context(\"d\"", "context(\"e\", () => {\n  it(\"opens\", () => {\n    assert(open(\"w\"));\n  });\n});\n\ncontext(\"d\"");
    match merge("a.js", &text, content) {
        Ok(new) => assert_eq!(new, expected),
        Err(kind) => assert_eq!(kind, "malformed"),
    }
}

#[test]
fn an_element_is_not_merged_into_another() {
    let text = "<html>\n<head>\n  <title>A</title>\n</head>\n<body>\n  <p>One</p>\n</body>\n</html>\n";
    let content = "<!-- ... existing ... -->\n<body>\n  <!-- ... existing ... -->\n  <p>Two</p>\n</body>\n<!-- ... existing ... -->\n";
    match merge("a.html", text, content) {
        Ok(new) => assert_eq!(new, text.replace("<p>One</p>\n", "<p>One</p>\n  <p>Two</p>\n")),
        Err(kind) => assert_eq!(kind, "malformed"),
    }
}

#[test]
fn another_indentation_is_the_files_again() {
    let text = "const a = 1;\n\nfunction f(x) {\n  let sum = 0;\n  for (const y of x) {\n    sum += y.size;\n  }\n  return sum;\n}\n\nfunction g() {\n  return 2;\n}\n";
    let content = "// ... existing code ...\n\nfunction f(x) {\n    let sum = 0;\n    for (const y of x) {\n        sum += y.length;\n    }\n    return sum;\n}\n\n// ... existing code ...\n";
    assert_eq!(merge("a.js", text, content), Ok(text.replace("y.size", "y.length")));
    // Lines in a new block are deeper than before.
    let content = "// ... existing code ...\n\nfunction f(x) {\n  if (x) {\n    let sum = 0;\n    for (const y of x) {\n      sum += y.size;\n    }\n    return sum;\n  }\n}\n\n// ... existing code ...\n";
    let body = "  let sum = 0;\n  for (const y of x) {\n    sum += y.size;\n  }\n  return sum;\n";
    let deeper: String = body.lines().map(|line| format!("  {line}\n")).collect();
    assert_eq!(merge("a.js", text, content), Ok(text.replace(body, &format!("  if (x) {{\n{deeper}  }}\n"))));
}

#[test]
fn another_name_for_an_elided_body_keeps_it() {
    let content = "// ... existing code ...\n\nimpl Store {\n    pub fn fetch(&mut self) -> usize {\n        // ... existing code ...\n    }\n\n    pub fn total(&self) -> usize {\n        // ... existing code ...\n    }\n}\n";
    assert_eq!(merge("a.rs", RUST, content), Ok(RUST.replace("fn load", "fn fetch")));
    // Either of the two may have the new name.
    let content = "// ... existing code ...\n\nimpl Store {\n    pub fn fetch(&self) -> usize {\n        // ... existing code ...\n    }\n\n    // ... existing code ...\n}\n";
    assert_eq!(merge("a.rs", RUST, content), Err("malformed"));
}

#[test]
fn a_comment_that_tells_of_deleting_removes_nothing() {
    let text = "// A pool.\nfn a() {}\n\nstruct Pool {\n    value: u32,\n    count: u32,\n}\n";
    let content = "// A pool.\n// When the constructed value is finally deleted\n// it is cleaned up.\nfn a() {}\n\n// ... existing code ...\n";
    let expected = text.replace(
        "// A pool.\n",
        "// A pool.\n// When the constructed value is finally deleted\n// it is cleaned up.\n",
    );
    assert_eq!(merge("a.rs", text, content), Ok(expected));
}

#[test]
fn lines_deeper_than_the_remark_above_them_are_in_something_else() {
    let text = "class T\n\n  context \"a\" do\n    should \"b\" do\n      c 1\n    end\n  end\n\n  context \"d\" do\n    should \"e\" do\n      c 2\n    end\n  end\n\nend\n";
    let content = "class T\n\n  # ... existing code ...\n    end\n\n    should \"f\" do\n      c 3\n    end\n  end\n\n  # ... existing code ...\n\nend\n";
    assert_eq!(merge("a.rb", text, content), Err("malformed"));
}
