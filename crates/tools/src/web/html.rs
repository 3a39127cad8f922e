//! Conversion of HTML to Markdown. The converter builds a tree and walks it recursively, so pages
//! whose tree would be too large are only stripped of their tags.

/// Maximum depth of nested elements; no person writes deeper ones.
const MAX_DEPTH: usize = 250;
/// Maximum number of nodes of a page. A parser opens unclosed formatting elements again in every
/// following block.
const MAX_NODES: usize = 200_000;
/// Elements without an end tag.
const VOID_ELEMENTS: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
    "param",
];
/// Elements that the next element of their kind closes, everywhere.
const IMPLIED_END_ELEMENTS: [&str; 4] = ["p", "li", "dt", "dd"];
/// Elements that the next element of their kind closes, except in foreign content, where each is
/// nested in the last.
const IMPLIED_END_HTML_ELEMENTS: [&str; 7] = ["option", "tr", "td", "th", "thead", "tbody", "tfoot"];
/// Elements whose content is of another language or follows other rules.
const FOREIGN_ELEMENTS: [&str; 3] = ["svg", "math", "template"];
/// Elements that a parser opens again after a block.
const FORMATTING_ELEMENTS: [&str; 14] =
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
/// Elements whose text isn't for readers.
const SKIPPED_ELEMENTS: [&str; 8] =
    ["script", "style", "noscript", "svg", "head", "iframe", "template", "nav"];

/// Converts a page to Markdown.
pub(super) fn to_markdown(html: &str) -> String {
    let converted = is_tree_bounded(html)
        .then(|| {
            htmd::HtmlToMarkdown::builder().skip_tags(SKIPPED_ELEMENTS.to_vec()).build().convert(html).ok()
        })
        .flatten();
    squeeze_blank_lines(&converted.unwrap_or_else(|| strip_tags(html)))
}

/// Returns the title of a page.
pub(super) fn title(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase();
    let begin = lower.find("<title")?;
    let begin = begin + lower.get(begin..)?.find('>')? + 1;
    let end = begin + lower.get(begin..)?.find("</title")?;
    let words: Vec<&str> = html.get(begin..end)?.split_whitespace().collect();
    let title = words.join(" ");
    (!title.is_empty()).then_some(title)
}

/// Returns true if the tree of a page stays within bounds, whatever a parser makes of its errors:
/// an end tag counts only for the innermost open element.
fn is_tree_bounded(html: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    let is_html = !tag_names(html).any(|tag| contains_name(&FOREIGN_ELEMENTS, tag));
    let ends_itself = |tag: &str| {
        contains_name(&IMPLIED_END_ELEMENTS, tag) || is_html && contains_name(&IMPLIED_END_HTML_ELEMENTS, tag)
    };
    let (mut formatting, mut nodes) = (0_usize, 0_usize);
    for tag in tag_names(html) {
        if let Some(name) = tag.strip_prefix('/') {
            let place = open.iter().rposition(|other| !ends_itself(other));
            let is_innermost =
                |place: usize| open.get(place).is_some_and(|other| other.eq_ignore_ascii_case(name));
            let closes = match place {
                Some(place) if is_innermost(place) => place,
                _ if open.last().is_some_and(|last| last.eq_ignore_ascii_case(name)) => open.len() - 1,
                _ => continue,
            };
            if contains_name(&FORMATTING_ELEMENTS, name) {
                formatting = formatting.saturating_sub(1);
            }
            open.truncate(closes);
            continue;
        }
        nodes = nodes.saturating_add(1).saturating_add(formatting);
        if contains_name(&VOID_ELEMENTS, tag) {
            continue;
        }
        if ends_itself(tag) && open.last().is_some_and(|last| last.eq_ignore_ascii_case(tag)) {
            continue;
        }
        if contains_name(&FORMATTING_ELEMENTS, tag) {
            formatting += 1;
        }
        open.push(tag);
        if open.len() > MAX_DEPTH || nodes > MAX_NODES {
            return false;
        }
    }
    nodes <= MAX_NODES
}

fn contains_name(list: &[&str], name: &str) -> bool {
    list.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// Returns the names of a page's tags; those of end tags begin with `/`.
fn tag_names(html: &str) -> impl Iterator<Item = &str> {
    html.split('<').skip(1).filter_map(|after| {
        let name = after.strip_prefix('/').unwrap_or(after);
        let length = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(name.len());
        let is_tag = name.starts_with(|c: char| c.is_ascii_alphabetic());
        is_tag.then(|| after.get(..length + (after.len() - name.len()))).flatten()
    })
}

/// Returns the text of a page without its tags.
fn strip_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len() / 2);
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        text.push_str(rest.get(..begin).unwrap_or_default());
        text.push(' ');
        let tag = rest.get(begin..).unwrap_or_default();
        let skipped = ["script", "style"]
            .iter()
            .find(|name| tag.get(1..=name.len()).is_some_and(|given| given.eq_ignore_ascii_case(name)));
        let end = match skipped {
            Some(name) => tag.find(&format!("</{name}")).unwrap_or(tag.len()),
            None => 0,
        };
        let after = tag.get(end..).unwrap_or_default();
        rest = after.find('>').and_then(|close| after.get(close + 1..)).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

/// Reduces each run of blank lines to one.
fn squeeze_blank_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = true;
    for line in text.lines().map(str::trim_end) {
        if line.is_empty() && blank {
            continue;
        }
        blank = line.is_empty();
        out.push_str(line);
        out.push('\n');
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_markdown() {
        let html = "<html><head><title> The\n page </title><style>x</style></head><body><nav>menu</nav><h1>Head</h1>\
                    <p>Some <b>bold</b> <a href=\"/x\">link</a>.</p><script>alert(1)</script>\
                    <ul><li>one<li>two</ul><pre><code>let a = 1;\n</code></pre></body></html>";
        let text = to_markdown(html);
        for part in ["# Head", "Some **bold** [link](/x).", "one", "two", "let a = 1;"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        for part in ["alert", "menu", "<", "\n\n\n"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        assert_eq!(title(html).as_deref(), Some("The page"));
        assert_eq!(title("<title>x"), None);
    }

    #[test]
    fn hostile_pages_lose_their_marks_instead_of_the_stack() {
        let pages = [
            "<div>".repeat(100_000),
            "<div></x>".repeat(50_000),
            "<div><table><td></div>".repeat(20_000),
            format!("{}{}", "<b a=1>".repeat(200), "<p>x".repeat(100_000)),
            "<".repeat(100_000),
            "<a<b<c".repeat(20_000),
            "<script>".repeat(10_000),
            "<title".repeat(1_000),
            "<optgroup>".repeat(150_000),
            format!("<svg>{}", "<td>".repeat(150_000)),
            format!("<math>{}", "<option>".repeat(150_000)),
            "<rt>".repeat(150_000),
        ];
        for page in pages {
            let html = format!("{page} the end");
            let text = to_markdown(&html);
            assert!(text.len() <= html.len() * 2, "{}", text.len());
            title(&html);
        }
        assert!(!is_tree_bounded(&"<div>".repeat(300)) && is_tree_bounded(&"<p>x".repeat(10_000)));
        assert!(is_tree_bounded(&"<div><p>a</p><b>c</b><br></div>".repeat(2_000)));
    }
}
