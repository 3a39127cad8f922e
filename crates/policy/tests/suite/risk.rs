//! The risk of tasks: tables in two languages, and what holds for every task.

use std::sync::LazyLock;

use journeyman_policy::{MAX_RISK_TEXT_BYTES, ProjectPaths, Risk, RiskAssessment, RiskClassifier, RiskRule};
use proptest::prelude::*;

/// Tasks as people write them.
const TASKS: &str = include_str!("../data/risk-tasks.tsv");
/// The same in other words.
const PARAPHRASES: &str = include_str!("../data/risk-paraphrases.tsv");
/// Tasks of high risk with words of low risk.
const DISGUISED: &str = include_str!("../data/risk-disguised.tsv");
/// Tasks of low risk whose words nobody put on the lists.
const UNSEEN: &str = include_str!("../data/risk-unseen.tsv");

/// Tasks in plain words alone.
const PLAIN: &str = include_str!("../data/risk-plain.tsv");
/// Tasks of high risk that people found to pass for low ones.
const REPORTED: &str = include_str!("../data/risk-reported.tsv");

/// The words of the first specification of the classifier, which the lists began with.
const FIRST_HIGH: &[&str] =
    &["修改", "编辑", "删除", "移动", "Jarvis", "backend", "frontend", "git", "config", ".env"];
const FIRST_LOW: &[&str] =
    &["demo", "示例", "贪食蛇", "俄罗斯方块", "小游戏", "独立项目", "新项目", "创建一个", "写一个"];

static CLASSIFIER: LazyLock<RiskClassifier> = LazyLock::new(RiskClassifier::new);

struct Task {
    risk: Risk,
    text: &'static str,
}

impl Task {
    /// Returns true for the half of the tasks that the word lists were not tuned with, by FNV-1a of
    /// the text.
    fn is_set_aside(&self) -> bool {
        let hash = self.text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash >> 32) & 1 == 1
    }
}

fn tasks(table: &'static str) -> Vec<Task> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let mut columns = line.split('\t');
        let risk = match columns.next()? {
            "low" => Risk::Low,
            "high" => Risk::High,
            _ => return None,
        };
        let (Some("en" | "zh"), Some(text), None) = (columns.next(), columns.next(), columns.next()) else {
            return None;
        };
        Some(Task { risk, text })
    };
    lines.map(|line| read(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

/// Judges tasks of a project that has some files.
fn assess_whole(text: &str, target: Option<&str>) -> RiskAssessment {
    let tracked =
        |path: &str| ["backend/app/main.py", "main.py", "index.html", "/srv2/site/a"].contains(&path);
    CLASSIFIER.assess(text, target, &ProjectPaths { root: "/home/me/shop", is_tracked: &tracked })
}

fn assess(text: &str, target: Option<&str>) -> (Risk, RiskRule, Option<String>) {
    let RiskAssessment { risk, rule, evidence, .. } = assess_whole(text, target);
    (risk, rule, evidence)
}

/// Counts the tasks of high risk that are found to be low, the tasks of high risk, the tasks of low
/// risk that are found to be high, and the tasks of low risk.
fn count(table: &'static str, is_counted: impl Fn(&Task) -> bool) -> [usize; 4] {
    let mut counts = [0; 4];
    for task in tasks(table).iter().filter(|task| is_counted(task)) {
        let found = assess_whole(task.text, None).risk;
        match task.risk {
            Risk::High => {
                counts[0] += usize::from(found == Risk::Low);
                counts[1] += 1;
            }
            Risk::Low => {
                counts[2] += usize::from(found == Risk::High);
                counts[3] += 1;
            }
        }
    }
    counts
}

/// The figures of `docs/risk.md`.
#[test]
fn no_task_of_high_risk_is_found_to_be_low() {
    let figures = [
        (TASKS, false, [0, 56, 1, 37]),
        (TASKS, true, [0, 64, 2, 43]),
        (PARAPHRASES, false, [0, 51, 0, 12]),
        (PARAPHRASES, true, [0, 39, 2, 18]),
        (DISGUISED, false, [0, 34, 0, 0]),
        (DISGUISED, true, [0, 26, 0, 0]),
        (UNSEEN, false, [0, 0, 11, 15]),
        (UNSEEN, true, [0, 0, 10, 15]),
        (PLAIN, false, [0, 20, 0, 18]),
        (PLAIN, true, [0, 20, 1, 22]),
        (REPORTED, false, [0, 6, 0, 0]),
        (REPORTED, true, [0, 14, 0, 0]),
    ];
    for (table, is_set_aside, expected) in figures {
        let counted = count(table, |task| task.is_set_aside() == is_set_aside);
        assert_eq!(counted, expected, "{:?}, set aside: {is_set_aside}", table.lines().next());
    }
}

#[test]
fn the_first_lists_hold() {
    for word in FIRST_HIGH {
        let (risk, ..) = assess(&format!("写一个 demo {word}"), None);
        assert_eq!(risk, Risk::High, "{word}");
    }
    for word in FIRST_LOW {
        let (risk, rule, evidence) = assess(word, None);
        assert_eq!((risk, rule, evidence.as_deref()), (Risk::Low, RiskRule::LowWord, Some(*word)));
    }
}

#[test]
fn the_rules_are_tried_in_their_order() {
    let table = [
        // Paths beat words.
        (
            "写一个贪食蛇",
            Some("/home/me/shop/snake"),
            Risk::High,
            RiskRule::Path,
            Some("/home/me/shop/snake"),
        ),
        ("Delete it", Some("/home/me/shop"), Risk::High, RiskRule::Path, Some("/home/me/shop")),
        ("Delete main.py", None, Risk::High, RiskRule::Path, Some("main.py")),
        // Words of high risk beat words of low risk.
        ("Write a demo that deletes the rest", None, Risk::High, RiskRule::HighWord, Some("delete")),
        ("写一个示例,删除旧的", None, Risk::High, RiskRule::HighWord, Some("删除")),
        // Words that aren't known beat words of low risk.
        ("Write a demo for the zorp", None, Risk::High, RiskRule::UnknownWord, Some("zorp")),
        ("写一个给狱长的示例", None, Risk::High, RiskRule::UnknownWord, Some("给")),
        ("Напиши demo", None, Risk::High, RiskRule::UnknownWord, None),
        // So do references, and words that have a condition.
        ("Write a new version of the program", None, Risk::High, RiskRule::Reference, Some("program")),
        ("写一个函数放在项目", None, Risk::High, RiskRule::Reference, Some("项目")),
        ("Write a program with a loop where the program ends", None, Risk::Low, RiskRule::LowWord, None),
        ("Write a page with the keyboard", None, Risk::High, RiskRule::Condition, Some("keyboard")),
        ("Write a game with the keyboard", None, Risk::Low, RiskRule::LowWord, Some("game")),
        ("Write a game with all pictures", None, Risk::High, RiskRule::Condition, Some("all")),
        ("Write a game with all numbers", None, Risk::Low, RiskRule::LowWord, Some("game")),
        ("Write a demo", Some("/tmp/demo"), Risk::Low, RiskRule::LowWord, Some("demo")),
        ("Write a demo", None, Risk::Low, RiskRule::LowWord, Some("demo")),
        // What isn't known is of high risk.
        ("The number is blue", None, Risk::High, RiskRule::Unknown, None),
        ("", None, Risk::High, RiskRule::Unknown, None),
    ];
    for (text, target, risk, rule, evidence) in table {
        let found = assess(text, target);
        assert_eq!((found.0, found.1), (risk, rule), "{text} {target:?}: {:?}", found.2);
        if evidence.is_some() {
            assert_eq!(found.2.as_deref(), evidence, "{text}");
        }
    }
}

#[test]
fn an_assessment_explains_itself() {
    let found = assess_whole("Write a demo and push it", None);
    let expected = RiskAssessment {
        risk: Risk::High,
        rule: RiskRule::HighWord,
        evidence: Some("push".to_owned()),
        reason: "the task names a part of a project".to_owned(),
        word_lists: "en 2, zh 2".to_owned(),
    };
    assert_eq!(found, expected);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!((json["risk"].as_str(), json["rule"].as_str()), (Some("high"), Some("high_word")));
}

#[test]
fn targets_that_matter_are_of_high_risk() {
    let high = [
        "game",
        "./game",
        "/home/me/shop",
        "/home/me/shop/",
        "/home/me//shop/./x",
        "/HOME/me/Shop/x",
        "/home/me",
        "/home",
        "/",
        "~",
        "~/x",
        "/home/me/new/../shop",
        "/home/you",
        "/home/me/.config/x",
        "/tmp/x/.git/hooks",
        "/tmp/x/.g\u{200c}it/hooks",
        "/etc/passwd",
        "/usr/local/bin/x",
        "/var/lib/x",
        "/srv2/site/a",
        "C:\\Windows\\x",
        "\\\\server\\share",
        "c:/Users/me",
    ];
    for path in high {
        assert_eq!(assess("Write a snake game", Some(path)).1, RiskRule::Path, "{path}");
    }
    for path in ["/tmp/x", "/var/tmp/x", "/home/me/snake", "/home/me/shop2", "D:\\games\\snake", "/work/new"]
    {
        assert_eq!(assess("Write a snake game", Some(path)).0, Risk::Low, "{path}");
    }
}

#[test]
fn without_a_project_nothing_is_in_it() {
    let project = ProjectPaths { root: "", is_tracked: &|_| false };
    let risk = |path| CLASSIFIER.assess("Write a snake game", Some(path), &project).risk;
    assert_eq!((risk("/tmp/x"), risk("/home/me/snake")), (Risk::Low, Risk::Low));
    for path in ["x", "/", "/home/me", "/home/me/.ssh", "/etc/x"] {
        assert_eq!(risk(path), Risk::High, "{path}");
    }
}

#[test]
fn paths_in_a_text_are_judged() {
    let high = [
        "to /etc/hosts",
        "into ~/.ssh",
        "放到/etc/下面",
        "in `.env`",
        "(.bashrc)",
        "to C:\\Windows",
        "to ../shop",
        "with $HOME/x",
        "with %APPDATA%",
        "like in index.html.",
        "as .\\index.html",
        "项目/.git/hooks",
    ];
    for path in high {
        let (_, rule, evidence) = assess(&format!("Write a snake game {path}"), None);
        assert_eq!(rule, RiskRule::Path, "{path}: {evidence:?}");
    }
    for text in [
        "Write a game in HTML/CSS",
        "Write a game and/or a demo",
        "Write a game... please.",
        "Write 1.5 games as demo",
    ] {
        assert_eq!(assess(text, None).0, Risk::Low, "{text}");
    }
}

#[test]
fn one_word_is_found_however_it_is_written() {
    let spellings = [
        "delete",
        "DELETE",
        "deletes",
        "deleting",
        "deleteAll",
        "delete_files",
        "deletefiles",
        "d e l e t e",
        "d.e.l.e.t.e",
        "de-lete",
        "de lete",
        "de\u{200b}le\u{ad}te",
        "d\u{336}e\u{336}lete",
        "ｄｅｌｅｔｅ",
        "𝗱𝗲𝗹𝗲𝘁𝗲",
        "ⓓⓔⓛⓔⓣⓔ",
        "dеlеtе",
        "deIete",
        "de1ete",
        "d3l3te",
        "délète",
        "删除",
        "删 除",
        "删\u{200b}除",
        "删、除",
        "刪除",
    ];
    for spelling in spellings {
        let (_, rule, evidence) = assess(&format!("Write a snake game and {spelling} the rest"), None);
        assert_eq!(rule, RiskRule::HighWord, "{spelling}: {evidence:?}");
    }
    let tagged: String = " delete".chars().map(|c| char::from_u32(0xE0000 + u32::from(c)).unwrap()).collect();
    assert_eq!(assess(&format!("Write a snake game{tagged}"), None).1, RiskRule::HighWord);
}

#[test]
fn long_input_is_of_high_risk_unread() {
    let text = "demo ".repeat(MAX_RISK_TEXT_BYTES / 5);
    assert_eq!(assess(&text, None).0, Risk::Low);
    assert_eq!(assess(&format!("{text} demo"), None).1, RiskRule::TooLong);
    assert_eq!(assess("demo", Some(&format!("/tmp/{}", "a/".repeat(3000)))).1, RiskRule::TooLong);
}

/// Ways to write a letter that look like it, or that nobody sees.
fn disguise(letter: char, way: u8) -> String {
    let upper = letter.to_ascii_uppercase();
    let full_width = char::from_u32(u32::from(letter) - u32::from('a') + 0xff41);
    let bold = char::from_u32(u32::from(letter) - u32::from('a') + 0x1d41a);
    let cyrillic = match letter {
        'a' => 'а',
        'c' => 'с',
        'e' => 'е',
        'i' => 'і',
        'j' => 'ј',
        'o' => 'о',
        'p' => 'р',
        's' => 'ѕ',
        'x' => 'х',
        'y' => 'у',
        other => other,
    };
    match way {
        0 => upper.to_string(),
        1 => full_width.unwrap().to_string(),
        2 => bold.unwrap().to_string(),
        3 => cyrillic.to_string(),
        4 => format!("{letter}\u{200b}"),
        5 => format!("{letter}\u{301}"),
        6 => format!("{letter} "),
        7 if letter == 'o' => "0".to_owned(),
        7 if letter == 'l' => "1".to_owned(),
        7 if letter == 'i' => "l".to_owned(),
        7 if letter == 'm' => "rn".to_owned(),
        _ => letter.to_string(),
    }
}

proptest! {
    #[test]
    fn nothing_panics(text in any::<String>(), target in proptest::option::of(any::<String>()), root in any::<String>()) {
        let project = ProjectPaths { root: &root, is_tracked: &|path| path.len() % 2 == 0 };
        let found = CLASSIFIER.assess(&text, target.as_deref(), &project);
        prop_assert!(!found.reason.is_empty());
        prop_assert_eq!(found.clone(), CLASSIFIER.assess(&text, target.as_deref(), &project));
    }

    #[test]
    fn a_word_of_high_risk_never_lowers_the_risk(
        words in proptest::collection::vec("demo|write a|snake|game|写一个|游戏|the|in|a|[a-z]{1,6}|\\PC", 0..12),
        high in "delete|modify|git|config|backend|修改|删除|移动|password|overwrite|get rid of",
        place in any::<proptest::sample::Index>(),
    ) {
        let before = assess_whole(&words.join(" "), None).risk;
        let mut with = words.clone();
        with.insert(place.index(words.len() + 1), high);
        let after = assess_whole(&with.join(" "), None).risk;
        prop_assert!(after >= before);
        prop_assert_eq!(after, Risk::High);
    }

    #[test]
    fn look_alikes_of_a_word_of_high_risk_stay_high(
        word in "delete|modify|install|overwrite|password|firewall|upload|commit|encrypt",
        ways in proptest::collection::vec(0_u8..9, 9),
    ) {
        let written: String = word.chars().zip(ways).map(|(letter, way)| disguise(letter, way)).collect();
        let text = format!("Write a snake game and {written} it");
        let found = assess_whole(&text, None);
        prop_assert_eq!(found.rule, RiskRule::HighWord, "{}: {:?}", text, found.evidence);
    }
}
