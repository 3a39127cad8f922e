//! Questions that are answered by lines, as without a screen.

use super::player::{Player, asked, started};
use crate::questions::QuestionEffect;

/// Answers the question about a command by a line. Returns the answer as text.
fn answer(line: &str) -> String {
    let mut player = Player::new(80, 24);
    player.play([started("go on"), asked("c1", "rm -rf build", Some("files removed: build"))]);
    match player.questions.answer_line(line) {
        QuestionEffect::Answered(answered) => format!("{:?}", answered.answer),
        QuestionEffect::ShowWhole(lines) => format!("shown: {}", lines.len() > 1),
        QuestionEffect::Changed => "no rule".to_owned(),
        QuestionEffect::Ignored => "no answer".to_owned(),
    }
}

#[test]
fn a_line_answers_by_a_letter_or_its_word() {
    for (line, expected) in [
        ("y", "Allow { note: None }"),
        (" YES ", "Allow { note: None }"),
        ("n", "Deny { note: None }"),
        ("no, not the whole directory", "Deny { note: Some(\"not the whole directory\") }"),
        ("d", "shown: true"),
        ("s", "AllowRule { note: None }"),
        ("yes please do", "no answer"),
        ("nothing", "no answer"),
        ("", "no answer"),
    ] {
        assert_eq!(answer(line), expected, "{line:?}");
    }
}

#[test]
fn a_question_is_written_whole() {
    let mut player = Player::new(80, 24);
    player.play([started("go on"), asked("c1", "rm -rf build", Some("files removed: build"))]);
    let text: Vec<String> =
        player.questions.render_whole(80, 60).iter().map(journeyman_terminal::StyledLine::to_text).collect();
    let text = text.join("\n");
    for part in ["May I run this?", "rm -rf build", "files removed: build", "why it asks", "y yes", "n no"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
