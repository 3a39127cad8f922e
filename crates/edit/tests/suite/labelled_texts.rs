//! Texts below labels: `Search:` and `Replace with:`, `[SEARCH]`, `*** REPLACE`.

use crate::unread_edits::{A, B, BLOCK, assert_told, assert_written};

const BOTH: (&str, &str) = ("src/a.py", "x = 5\ny = 9\nz = 3\n");

#[test]
fn texts_in_fences_below_words_that_ask_are_a_pair() {
    for (above, old, new) in [
        ("src/a.py\n", "SEARCH:", "REPLACE:"),
        ("**File:** `src/a.py`\n\n", "**Search:**", "**Replace with:**"),
        ("### `src/a.py`\n\nIt is wrong.\n\n", "#### Search", "#### Replace"),
        ("Update `src/a.py`:\n\n", "Find:", "Replace it with:"),
        ("", "In `src/a.py`, replace this:", "with this:"),
        ("", "1. Open `src/a.py` and change the following line:", "to:"),
        ("`src/a.py`\n", "- **Replace**:", "- **With**:"),
        ("src/a.py\n", "[SEARCH]", "[REPLACE]"),
    ] {
        let pair = format!("{above}{old}\n```python\ny = 2\n```\n\n{new}\n\n~~~\ny = 9\n~~~\nDone.\n");
        assert_written(&pair, &[A]);
        let second = format!("{old}\n```\nx = 1\n```\n{new}\n```\nx = 5\n```\n");
        if above.contains("a.py") {
            assert_written(&format!("{pair}{second}"), &[BOTH]);
        }
        assert_told(&format!("{BLOCK}{pair}"), "were not read");
        let same = pair.replace("src/a.py", "b.py").replace("y = 2", "x = 1").replace("y = 9", "x = 5");
        assert_written(&format!("{BLOCK}{same}"), &[B]);
        // It stands in a list, and a longer fence has fences of its own.
        let indented = pair.replace("```python\ny = 2\n```", "  ````\n  y = 2\n  ````");
        assert_written(&indented, &[A]);
    }
}

#[test]
fn texts_below_marks_need_no_fence() {
    for (old, between, new, end) in [
        ("[SEARCH]", "[/SEARCH]\n", "[REPLACE]", "[/REPLACE]"),
        ("[SEARCH]", "", "[REPLACE]", "[/REPLACE]"),
        ("=== SEARCH", "", "=== REPLACE", "=== END"),
        ("=== SEARCH ===", "", "=== REPLACE ===", "=== END ==="),
        ("*** SEARCH", "", "*** REPLACE", "*** END"),
        ("[OLD]", "[/OLD]\n\n", "[NEW]", "[/NEW]"),
    ] {
        let pair = |from: &str, to: &str| format!("{old}\n{from}\n{between}{new}\n{to}\n{end}\n");
        let bare = format!("src/a.py\n{}", pair("y = 2", "y = 9"));
        assert_written(&bare, &[A]);
        assert_written(&format!("{bare}\nand then\n{}", pair("x = 1", "x = 5")), &[BOTH]);
        assert_told(&format!("{BLOCK}{bare}"), "were not read");
        let patch = "*** Begin Patch\n*** Update File: b.py\n@@\n-x = 1\n+x = 5\n*** End Patch\n\n";
        assert_told(&format!("{patch}{bare}"), "were not read");
        // A fence ends the last text, and nothing else does.
        let open = format!("src/a.py\n{old}\ny = 2\n{between}{new}\ny = 9\n");
        assert_told(&open, "where the new text ends");
        assert_told(&format!("{open}\n{}", pair("x = 1", "x = 5")), "where the new text ends");
        assert_told(&format!("{BLOCK}{open}"), "were not read");
        let fenced = format!("{}```\n", open.replacen('\n', "\n```\n", 1));
        assert_written(&fenced, &[A]);
        let two = format!("src/a.py\n```\n{}{}```\n", pair("y = 2", "y = 9"), pair("x = 1", "x = 5"));
        assert_written(&two, &[BOTH]);
    }
    assert_written("src/a.py\n```\nSEARCH:\ny = 2\nREPLACE:\ny = 9\n```\n", &[A]);
}

#[test]
fn words_that_only_tell_of_a_change_are_told_beside_other_edits() {
    for (old, new) in
        [("**Before:**", "**After:**"), ("Old code:", "New code:"), ("### Current", "### Updated")]
    {
        let pair = |from, to| format!("{old}\n```\n{from}\n```\n{new}\n```\n{to}\n```\n");
        assert_told(&format!("src/a.py\n{}", pair("y = 2", "y = 9")), "no edit in any format");
        assert_told(&format!("{BLOCK}In `src/a.py`:\n\n{}", pair("y = 2", "y = 9")), "were not read");
        assert_written(&format!("{BLOCK}In `b.py`:\n\n{}", pair("x = 1", "x = 5")), &[B]);
        let whole = format!("b.py\n```python\n{}```\n\nIn `b.py`:\n\n", B.1);
        assert_written(&format!("{whole}{}", pair("x = 1", "x = 5")), &[B]);
    }
}

#[test]
fn what_a_pair_leaves_open_is_refused() {
    let pair = "Search:\n```\ny = 2\n```\nReplace:\n```\ny = 9\n```\n";
    assert_told(pair, "nothing names the file");
    assert_told(&format!("See `src/a.py` and `b.py`.\n\n{pair}"), "nothing names the file");
    assert_told(&format!("src/c.py\n{pair}"), "does not exist");
    let inner = "src/a.py\nSearch:\n```\ny = 2\n```\nReplace:\n```md\ny = 9\n```sh\nls\n```\n```\n";
    assert_told(inner, "more than one fence");
    let bare = "src/a.py\nSearch:\n```\ny = 2\n```\nReplace:\n```md\ny = 9\n```\nls\n```\n";
    assert_told(bare, "more than one fence");
    // Words alone are prose.
    for prose in [
        "Search:\n- one\n\nReplace:\n- two\n",
        "Search: `x`, replace: `y`.\n",
        "To replace this:\n\nuse that.\n",
    ] {
        assert_written(&format!("{BLOCK}{prose}"), &[B]);
    }
}
