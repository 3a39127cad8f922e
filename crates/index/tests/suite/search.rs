//! Results of queries in a small tree, and their reasons.

use journeyman_index::analyser::Analyser;
use journeyman_index::analysis::FileStamp;
use journeyman_index::query::{
    Corpus, MatchQuality, MemoryCorpus, Query, QueryContext, SearchResult, Searcher, Signal,
};
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::RelPath;

const FILES: &[(&str, &str)] = &[
    (
        "src/http/server.rs",
        "pub struct HttpServer;\n\nimpl HttpServer {\n    pub fn open_socket(&self) {}\n    pub fn close(&self) {}\n}\n",
    ),
    (
        "src/http/client.rs",
        "pub struct Client;\n\nimpl Client {\n    pub fn close(&self) { retry_with_backoff(); }\n}\n",
    ),
    ("src/retry.rs", "/// Waits longer each time.\npub fn retry_with_backoff() {}\n"),
    ("src/colors.rs", "pub fn paint_terminal(bold: bool) {}\npub const RESET: u8 = 0;\n"),
    ("src/net/app.py", "def main():\n    pass\n\n\ndef handle(request):\n    return request\n"),
    ("lib/app.py", "def other():\n    pass\n"),
    (
        "tests/server_test.rs",
        "#[test]\nfn open_socket_works() { HttpServer.open_socket(); socket(); socket(); }\n",
    ),
    ("docs/guide.md", "# Sockets\n\nHow a socket is opened by the server: open socket, close socket.\n"),
    ("src/日本.py", "# 検索エンジンを作る\ndef f():\n    pass\n"),
];

fn tree(order: impl IntoIterator<Item = usize>) -> MemoryCorpus {
    let (mut analyst, mut memory) = (Analyser::new(), MemoryCorpus::new());
    for place in order {
        let (path, text) = FILES[place];
        memory.add_file(analyst.analyse(
            &RelPath::parse(path).unwrap(),
            FileStamp::default(),
            text.as_bytes(),
        ));
    }
    memory
}

fn ask(corpus: &MemoryCorpus, text: &str) -> SearchResult {
    let query = Query::new(text, &mut Tokenizer::new());
    Searcher::new().search(corpus, None, &query, QueryContext::default(), 20)
}

fn paths(answer: &SearchResult) -> Vec<String> {
    answer.files.iter().map(|hit| String::from_utf8(hit.path.clone()).unwrap()).collect()
}

fn answer_of(files: &[(&str, &str)], text: &str) -> SearchResult {
    let (mut analyst, mut memory) = (Analyser::new(), MemoryCorpus::new());
    for (path, text) in files {
        memory.add_file(analyst.analyse(
            &RelPath::parse(path).unwrap(),
            FileStamp::default(),
            text.as_bytes(),
        ));
    }
    ask(&memory, text)
}

#[test]
fn neighbouring_words_of_the_first_line_find_the_identifier() {
    let files = [
        ("src/a.rs", "fn f(smart: u8, other: u8, case: u8) { g(smart, case); g(case, smart); }\n"),
        ("src/b.rs", "fn f(one: u8, smartCase: u8, two: u8) { g(smartCase, one); g(two, one); }\n"),
    ];
    assert_eq!(paths(&answer_of(&files, "--smart-case is ignored"))[0], "src/b.rs");
}

#[test]
fn one_name_made_of_the_query_counts_more_than_its_words_in_several() {
    let files = [
        ("src/a.rs", "fn read_line() {}\nfn header_of() {}\nfn parse_flag() {}\n"),
        ("src/b.rs", "fn read_line() {}\nfn parse_flag_header() {}\nfn of_x() {}\n"),
    ];
    let answer = answer_of(&files, "a flag of the header doesn't parse");
    assert_eq!(paths(&answer)[0], "src/b.rs", "{answer:#?}");
    let strength = |hit: &journeyman_index::query::FileHit| {
        hit.why.iter().find(|reason| reason.signal == Signal::Name).map(|reason| reason.strength)
    };
    assert_eq!(strength(&answer.files[0]), Some(1.0));
    assert!(strength(&answer.files[1]) < Some(0.9), "{answer:#?}");
}

#[test]
fn words_find_files_with_reasons() {
    let corpus = tree(0..FILES.len());
    let answer = ask(&corpus, "HttpServer: open_socket fails");
    assert_eq!(paths(&answer)[0], "src/http/server.rs", "{answer:#?}");
    let hit = &answer.files[0];
    assert_eq!(hit.why[0].signal, Signal::Text);
    let shares: f32 = hit.why.iter().map(|reason| reason.share).sum();
    assert!((shares - 1.0).abs() < 1e-5, "{shares}");
    assert!(hit.passages[0].symbol.is_some(), "{hit:?}");
    // Tests and documents come after source.
    assert!(paths(&answer).contains(&"tests/server_test.rs".to_owned()));
    assert_eq!(paths(&ask(&corpus, "検索エンジン"))[0], "src/日本.py");
    assert!(ask(&corpus, "zzz").files.is_empty());
    assert!(ask(&corpus, "").files.is_empty());
}

#[test]
fn a_path_alone_finds_its_file_first() {
    let corpus = tree(0..FILES.len());
    let files = [
        ("src/http/mod.rs", "mod client;\nmod server;\n"),
        ("src/lib.rs", "mod http;\nmod q;\n"),
        ("src/q.rs", "fn long() {\n    one();\n    two();\n}\n"),
        ("src/rs.rs", "fn src_rs() {}\n"),
    ];
    for path in ["src/http/mod.rs", "src/q.rs", "q.rs:3", "./src/lib.rs"] {
        let found = paths(&answer_of(&files, path));
        assert!(path.contains(found[0].rsplit('/').next().unwrap()), "{path}: {found:?}");
    }
    assert_eq!(paths(&ask(&corpus, "lib/app.py"))[0], "lib/app.py");
    // Two files have the name, and come before others.
    assert_eq!(paths(&ask(&corpus, "app.py"))[..2], ["lib/app.py", "src/net/app.py"]);
}

#[test]
fn prose_with_a_line_for_each_paragraph_is_searched() {
    let english = "The clerk counts the coins of the till before the shop closes for the day. ".repeat(14);
    let chinese = "店员在每天关门之前清点钱箱里的硬币。".repeat(20);
    let script = "function a(b){return b.map(c=>c.d)}".repeat(30);
    let paragraphs = |text: &str| format!("# One\n\n{}", format!("{text}\n\n").repeat(8));
    let files = [
        ("docs/a.md", &*paragraphs(&english)),
        ("docs/b.md", &*paragraphs(&chinese)),
        ("docs/c.md", &*paragraphs(&script)),
        ("src/d.js", &*paragraphs(&script)),
    ];
    assert_eq!(paths(&answer_of(&files, "count coins")), ["docs/a.md"]);
    assert_eq!(paths(&answer_of(&files, "清点钱箱")), ["docs/b.md"]);
    // Generated lines, in a document too.
    assert_eq!(paths(&answer_of(&files, "function return map")), [""; 0]);
}

#[test]
fn the_order_of_files_changes_nothing() {
    let (one, other) = (tree(0..FILES.len()), tree((0..FILES.len()).rev()));
    let plain = |answer: SearchResult| -> Vec<_> {
        answer.files.into_iter().map(|hit| (hit.path, hit.score.to_bits(), hit.why, hit.passages)).collect()
    };
    let mut searcher = Searcher::new();
    for text in [
        "open the socket\n\nof the server",
        "close",
        "retry_with_backoff waits",
        "src/net/app.py:5",
        "app.py",
    ] {
        let expected = plain(ask(&one, text));
        assert!(!expected.is_empty(), "{text}");
        assert_eq!(plain(ask(&other, text)), expected, "{text}");
        // A searcher that answered other queries before answers the same.
        let query = Query::new(text, &mut Tokenizer::new());
        let again = searcher.search(&one, None, &query, QueryContext::default(), 20);
        assert_eq!(plain(again), expected, "{text}");
    }
}

#[test]
fn a_name_finds_its_definitions() {
    let corpus = tree(0..FILES.len());
    let cases: &[(&str, MatchQuality, &str, &str)] = &[
        ("HttpServer", MatchQuality::Exact, "src/http/server.rs", "HttpServer"),
        ("httpserver", MatchQuality::Case, "src/http/server.rs", "HttpServer"),
        ("open_sock", MatchQuality::Prefix, "src/http/server.rs", "open_socket"),
        ("rwb", MatchQuality::Hump, "src/retry.rs", "retry_with_backoff"),
        ("paint_termnal", MatchQuality::Typo, "src/colors.rs", "paint_terminal"),
        ("ainterm", MatchQuality::Subsequence, "src/colors.rs", "paint_terminal"),
        ("Client::close", MatchQuality::Exact, "src/http/client.rs", "close"),
        ("HttpServer.close()", MatchQuality::Exact, "src/http/server.rs", "close"),
    ];
    for (asked, matched, path, name) in cases {
        let answer = ask(&corpus, asked);
        let first = answer.definitions.first().unwrap_or_else(|| panic!("{asked}: nothing"));
        let file = corpus.file(first.file).unwrap();
        assert_eq!(
            (first.matched, String::from_utf8_lossy(file.path).as_ref(), first.name.as_str()),
            (*matched, *path, *name),
            "{asked}"
        );
    }
    assert!(ask(&corpus, "two words").definitions.is_empty());
}

#[test]
fn exact_names_come_before_similar_ones() {
    let (mut analyst, mut memory) = (Analyser::new(), MemoryCorpus::new());
    let names =
        ["compactorStyle", "reparse", "purse", "PARSE", "parse", "parse_all", "explainersNode", "put_arse"];
    let text: String = names.iter().map(|name| format!("def {name}():\n    pass\n\n")).collect();
    memory.add_file(analyst.analyse(
        &RelPath::parse("src/a.py").unwrap(),
        FileStamp::default(),
        text.as_bytes(),
    ));
    let found = journeyman_index::query::find_definitions(&memory, "parse", 20);
    let found: Vec<(MatchQuality, &str)> = found.iter().map(|one| (one.matched, one.name.as_str())).collect();
    assert_eq!(
        found,
        [
            (MatchQuality::Exact, "parse"),
            (MatchQuality::Case, "PARSE"),
            (MatchQuality::Prefix, "parse_all"),
            (MatchQuality::Hump, "put_arse"),
            (MatchQuality::Typo, "purse"),
            (MatchQuality::Subsequence, "reparse"),
        ]
    );
}

#[test]
fn mentioned_places_are_found() {
    let corpus = tree(0..FILES.len());
    let trace =
        "It crashed\n\nTraceback:\n  File \"/home/me/x/net/app.py\", line 5\n at src/net/app.py:5:3\n";
    let answer = ask(&corpus, trace);
    assert_eq!(paths(&answer)[0], "src/net/app.py", "{answer:#?}");
    let hit = &answer.files[0];
    assert!(hit.why.iter().any(|reason| reason.signal == Signal::Mention));
    assert_eq!((hit.passages[0].first_line, hit.passages[0].symbol.as_deref()), (5, Some("handle")));
    let answer = ask(&corpus, "src.colors is wrong");
    assert_eq!(paths(&answer)[0], "src/colors.rs", "{answer:#?}");
}

#[test]
fn files_near_the_current_one_count() {
    let corpus = tree(0..FILES.len());
    let query = Query::new("close", &mut Tokenizer::new());
    let near = [(corpus.file_at(b"src/retry.rs").unwrap(), 1)];
    let answer = Searcher::new().search(
        &corpus,
        None,
        &query,
        QueryContext { near: &near, ..QueryContext::default() },
        20,
    );
    let hit = answer.files.iter().find(|hit| hit.path == b"src/retry.rs").unwrap();
    assert_eq!(hit.why[0].signal, Signal::Near);
    assert_eq!(answer.files.len(), 4, "{answer:#?}");
}
