//! Questions that are answered by lines, as without a screen.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use journeyman_agent::PermissionAnswer;
use journeyman_protocol::Event;
use journeyman_terminal::StyledLine;
use serde_json::json;

use super::player::{Player, asked, decided, started};
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

/// A question of the model's own.
fn question(options: &[&str]) -> Event {
    let Event::PermissionRequired { call, verdict, .. } = asked("c1", "", None) else { unreachable!() };
    Event::PermissionRequired {
        call,
        tool: "ask_user".to_owned(),
        input: json!({"question": "Which port should\nit listen on?", "options": options}),
        summary: "ask: Which port should it listen on?".to_owned(),
        verdict,
        rule: None,
        diff: None,
    }
}

#[test]
fn a_question_of_the_models_is_answered_by_a_number_or_in_words() {
    for (keys, expected) in
        [("2", Some("8080")), ("none yet\n", Some("none yet")), ("9 000\n", Some("9 000")), ("\n", None)]
    {
        let mut player = Player::new(80, 24);
        player.play([started("go on"), question(&["80", "8080"])]);
        let text: Vec<String> =
            player.questions.render_whole(80, 60).iter().map(StyledLine::to_text).collect();
        let shown = [
            "? Which port should it listen on?",
            "  1 80",
            "  2 8080",
            "  a number chooses · type an answer",
        ];
        assert_eq!(text, shown);
        let later = player.now + Duration::from_secs(1);
        let mut answered = None;
        for letter in keys.chars() {
            let code = if letter == '\n' { KeyCode::Enter } else { KeyCode::Char(letter) };
            if let QuestionEffect::Answered(answer) = player.questions.handle_key(code.into(), later) {
                answered = Some(answer.answer);
            }
        }
        let expected = expected.map(|text| PermissionAnswer::Answer { text: text.to_owned() });
        assert_eq!(answered, expected, "{keys:?}");
    }
}

#[test]
fn an_answer_to_the_models_question_may_be_pasted() {
    let mut player = Player::new(80, 24);
    player.play([started("go on"), question(&[])]);
    let later = player.now + Duration::from_secs(1);
    assert!(!player.questions.paste_into_note("early", player.now), "it was meant for something else");
    assert!(player.questions.paste_into_note("\x1b[31m127.0.0.1:\r\n", later));
    assert!(player.questions.paste_into_note("8080\n", later));
    let answered = match player.questions.handle_key(KeyCode::Enter.into(), later) {
        QuestionEffect::Answered(answered) => answered.answer,
        other => panic!("{other:?}"),
    };
    assert_eq!(answered, PermissionAnswer::Answer { text: "[31m127.0.0.1:8080".to_owned() });
}

#[test]
fn the_end_of_a_long_reason_is_seen_while_it_is_written() {
    let mut player = Player::new(40, 24);
    player.play([started("go on"), asked("c1", "rm -rf build", None)]);
    player.wait();
    player.press(KeyCode::Char('n'), crossterm::event::KeyModifiers::NONE);
    for letter in "keep the 漢字 of the build, it takes hours to make them again".chars() {
        player.press(KeyCode::Char(letter), crossterm::event::KeyModifiers::NONE);
    }
    let (rows, cursor) = player.questions.render(40, 20, player.now);
    let (row, column) = cursor.unwrap();
    let text = rows[row].to_text();
    assert!(text.starts_with("  no: ") && text.ends_with("to make them again"), "{text}");
    assert_eq!(column, journeyman_terminal::wrap::text_width(&text));
}

#[test]
fn a_note_for_a_question_that_is_settled_meanwhile_is_kept() {
    let none = crossterm::event::KeyModifiers::NONE;
    for (keys, expected) in [("nkeep it", Some("keep it")), ("n", None), ("", None)] {
        let mut player = Player::new(80, 24);
        player.play([started("go on"), asked("c1", "rm -rf build", None)]);
        keys.chars().for_each(|letter| player.press(KeyCode::Char(letter), none));
        player.play([decided("c1", false)]);
        assert_eq!(player.questions.take_abandoned_note().as_deref(), expected, "{keys}");
    }
    let mut player = Player::new(80, 24);
    player.play([started("go on"), asked("c1", "rm -rf build", None)]);
    "nkeep it".chars().for_each(|letter| player.press(KeyCode::Char(letter), none));
    player.press(KeyCode::Enter, none);
    player.play([decided("c1", false)]);
    assert_eq!(player.questions.take_abandoned_note(), None, "it was sent");
}

#[test]
fn what_is_typed_after_a_message_is_no_answer() {
    let none = KeyModifiers::NONE;
    for end in [KeyCode::Enter, KeyCode::Backspace] {
        let mut player = Player::new(80, 24);
        player.press(KeyCode::Char('a'), none);
        player.play([started("go on"), asked("c1", "rm -rf build", None)]);
        player.wait();
        for code in [end, KeyCode::Char('y')] {
            let effect = player.press_at_once(code, none);
            assert!(matches!(effect, QuestionEffect::Ignored), "{code}: {effect:?}");
        }
        assert_eq!(player.composer.text(), "y");
        player.press(KeyCode::Backspace, none);
        player.wait();
        let effect = player.press_at_once(KeyCode::Char('y'), none);
        assert!(matches!(effect, QuestionEffect::Answered(_)), "{effect:?}");
    }
}

#[test]
fn what_is_searched_in_the_history_is_no_answer() {
    let mut player = Player::new(80, 24);
    player.press(KeyCode::Char('r'), KeyModifiers::CONTROL);
    player.play([started("go on"), asked("c1", "rm -rf build", None)]);
    player.wait();
    let effect = player.press_at_once(KeyCode::Char('y'), KeyModifiers::NONE);
    assert!(matches!(effect, QuestionEffect::Ignored), "{effect:?}");
    assert!(player.composer.is_searching() && player.questions.is_open());
}

#[test]
fn one_who_went_to_a_question_is_not_at_the_next_one() {
    let mut player = Player::new(80, 24);
    player.press(KeyCode::Char('a'), KeyModifiers::NONE);
    player.play([started("go on"), asked("c1", "make", None)]);
    player.questions.toggle_focus();
    assert!(player.questions.takes_keys(&player.composer));
    player.play([decided("c1", false), asked("c2", "rm -rf build", None)]);
    player.wait();
    let effect = player.press_at_once(KeyCode::Char('y'), KeyModifiers::NONE);
    assert!(matches!(effect, QuestionEffect::Ignored), "{effect:?}");
    assert_eq!(player.composer.text(), "ay");
}

#[test]
fn a_long_question_of_the_models_can_be_read_whole() {
    let mut player = Player::new(80, 24);
    let options: Vec<String> = (1..=30).map(|number| format!("choice {number}")).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Event::PermissionRequired { call, tool, input, summary, verdict, .. } = question(&options) else {
        unreachable!()
    };
    let mut input = input;
    input["question"] = json!(format!("{}Which one?", "There is much to say. ".repeat(200)));
    let asked = Event::PermissionRequired { call, tool, input, summary, verdict, rule: None, diff: None };
    player.play([started("go on"), asked]);
    player.wait();
    let shown = player.screen().join("\n");
    for part in ["There is much", "PageDown shows all", "choice 1", "type an answer"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let by_lines = player.questions.render_whole(80, 60);
    assert!(by_lines.len() > 80 && !by_lines.iter().any(|line| line.to_text().contains("PageDown")));
    let effect = player.press_at_once(KeyCode::PageDown, KeyModifiers::NONE);
    let QuestionEffect::ShowWhole(lines) = effect else { panic!("{effect:?}") };
    let whole: String = lines.iter().map(|line| line.to_text() + "\n").collect();
    assert!(whole.contains("Which one?") && whole.contains("  30 choice 30"), "{whole}");
}
