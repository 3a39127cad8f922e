//! Faults that were found in another agent, each of which is absent here. [`FAULTS`] names the
//! tests that show it; a test holds the names against the sources. Numbers left out are no faults
//! of a program's own: complaints about other entries (10), or an installer's (30).

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use journeyman_agent::agents::{AgentLimits, AgentTools, Agents};
use journeyman_agent::hooks::{HookCommand, HookEvent, HooksBuilder};
use journeyman_model::{Delta, Wire, request_body};
use journeyman_protocol::{CallState, Event, Message, Mode, Role, Termination};
use serde_json::json;

use super::agents::{
    agents_of, delegating, finishes, has_result, is_worker, settings, states, task, worker, worker_requests,
};
use crate::session::support::bench::{Bench, assert_settled, confined};
use crate::session::support::model::{Told, call, calls, calls_of, piece, result, says, stalls};

cases![
    every_fault_has_tests_that_exist,
    fault_15_a_call_of_a_failed_attempt_does_not_run_again_in_an_agent,
    fault_16_a_loop_with_a_counter_or_of_six_steps_ends_an_agent,
    fault_16_a_hook_that_stops_the_run_stops_an_agent,
    fault_18_an_agent_in_mode_auto_asks_nothing,
    fault_22_a_word_in_capitals_without_end_is_cut_off_in_an_agent,
    fault_32_every_request_of_an_agent_with_faults_is_one_that_providers_take,
];

/// A fault: its number, what it is, and the tests that show it absent.
type Fault = (u32, &'static str, &'static [&'static str]);

const FAULTS: &[Fault] = &[
    (1, "an edit ends within a word", &["fault_01_blanks_that_differ_do_not_let_a_match_end_within_a_word"]),
    (2, "a final line break can't be edited", &["fault_02_a_final_line_break_is_added_and_removed_as_asked"]),
    (
        3,
        "a similar text with another meaning is replaced",
        &[
            "fault_03_a_difference_with_a_meaning_is_not_passed_over",
            "a_changed_line_that_differs_in_a_token_is_never_written",
        ],
    ),
    (
        4,
        "blanks match any blank line",
        &["fault_04_blanks_alone_place_nothing_and_a_last_line_break_adds_none"],
    ),
    (5, "indentation is mixed", &["fault_05_a_block_takes_the_files_indentation_and_mixes_none"]),
    (
        6,
        "line ends and encodings change",
        &[
            "fault_06_lines_that_an_edit_does_not_touch_keep_their_ends",
            "edits_keep_encoding_and_line_endings",
        ],
    ),
    (
        7,
        "remarks in place of code are written",
        &["fault_07_a_remark_in_place_of_code_is_refused_in_every_spelling", "placeholder_table"],
    ),
    (
        8,
        "stale, torn, or racing writes",
        &[
            "case_27_a_file_changed_outside_is_stale_and_a_write_refused",
            "at_every_step",
            "only_calls_that_touch_the_same_files_wait_for_each_other",
        ],
    ),
    (
        9,
        "patterns are expanded in replacements",
        &[
            "fault_09_signs_of_patterns_are_written_as_they_are",
            "case_40_replacements_are_literal_and_own_writes_no_surprise",
        ],
    ),
    (11, "a recovery hides the limit", &["a_goal_in_the_last_turn_is_marked_as_recovered"]),
    (
        12,
        "the last turn's results are dropped",
        &["the_last_request_after_the_limit_of_turns_has_every_result"],
    ),
    (
        13,
        "a deadline in a tool is an abort",
        &["time_that_runs_out_inside_a_tool_stops_it_and_leaves_a_last_turn"],
    ),
    (
        14,
        "one answer of two resumes the clock",
        &["twenty_minutes_of_waiting_for_a_person_leave_ten_of_work"],
    ),
    (
        15,
        "calls of a failed attempt run again",
        &[
            "fault_15_a_call_of_a_failed_attempt_does_not_run_again_in_an_agent",
            "a_restart_voids_what_was_streamed",
        ],
    ),
    (
        16,
        "no loop detection in agents, and hooks don't stop them",
        &[
            "fault_16_a_loop_with_a_counter_or_of_six_steps_ends_an_agent",
            "fault_16_a_hook_that_stops_the_run_stops_an_agent",
            "a_stalled_agent_ends",
        ],
    ),
    (
        17,
        "unknown tools of a definition are ignored",
        &[
            "a_tool_that_the_session_does_not_offer_is_left_out_and_an_unknown_one_is_an_error",
            "a_wrong_field_is_named",
        ],
    ),
    (
        18,
        "limits, inputs and modes of agents",
        &[
            "fault_18_an_agent_in_mode_auto_asks_nothing",
            "an_agent_may_do_no_more_than_the_session",
            "an_agent_wraps_into_a_tool_with_its_inputs",
        ],
    ),
    (
        19,
        "a project can't replace a built-in agent",
        &["the_projects_own_come_first_and_a_wrong_file_is_left_out_by_name"],
    ),
    (
        20,
        "loops are seen where there are none",
        &[
            "a_hundred_similar_calls_that_advance_pass",
            "a_long_list_of_similar_calls_is_no_loop",
            "it_can_be_turned_off",
        ],
    ),
    (21, "a loop ends as a success", &["the_same_call_over_and_over_ends", "limits_end_in_5"]),
    (
        22,
        "some loops are never seen",
        &[
            "fault_22_a_word_in_capitals_without_end_is_cut_off_in_an_agent",
            "a_counter_does_not_hide_a_circle",
            "any_run_of_a_closed_world_is_stopped",
        ],
    ),
    (
        23,
        "destructive commands pass",
        &["what_destroys_is_named", "case_28_outside_is_refused_and_ruin_is_not_run"],
    ),
    (
        24,
        "credentials are read unasked",
        &["a_reason_names_the_one_part_that_asks", "what_reaches_beyond_the_project_is_never_automatic"],
    ),
    (
        25,
        "wrong rules are dropped in silence",
        &[
            "what_is_wrong_is_told_with_its_line_and_what_to_do",
            "the_rules_of_the_documentation_are_read",
            "every_layer_counts_and_deny_beats_ask_beats_allow",
        ],
    ),
    (
        26,
        "hooks that hang block, and failures allow",
        &[
            "a_hook_that_hangs_denies_the_call_and_its_processes_end",
            "a_hook_that_dies_or_cannot_start_denies_and_one_that_merely_fails_warns",
        ],
    ),
    (
        27,
        "checkpoints miss commands, and restoring deletes a user's files",
        &[
            "steps_that_change_something_have_a_checkpoint",
            "what_the_user_changed_since_is_kept",
            "everything_that_a_run_changed_is_as_it_was",
        ],
    ),
    (
        28,
        "the sandbox leaves files in the project",
        &["it_writes_to_the_project_and_nowhere_else", "commands_are_confined"],
    ),
    (
        29,
        "memory grows without bound",
        &["memory_is_bounded", "a_hundred_agents_with_faults_answer_every_call_and_leave_no_task"],
    ),
    (
        31,
        "compaction inflates or loops",
        &[
            "gemini_27_a_summary_that_is_too_large_leaves_an_agents_conversation_as_it_was",
            "an_unknown_model_gets_careful_limits_and_its_familys_tokenizer",
        ],
    ),
    (
        32,
        "unpaired calls end a session",
        &[
            "fault_32_every_request_of_an_agent_with_faults_is_one_that_providers_take",
            "case_35_a_call_cut_off_is_asked_again_or_closed",
            "what_can_not_be_resumed_is_said",
        ],
    ),
    (
        33,
        "commands hang",
        &[
            "a_hung_command_is_killed_with_its_children",
            "a_timeout_kills_the_whole_tree",
            "reading_for_ever_ends_with_the_time",
        ],
    ),
    (
        34,
        "headless results are wrong or missing",
        &[
            "a_usage_error_is_an_object_where_json_is_asked_for",
            "json_is_one_object_on_one_line",
            "every_line_of_stream_json_is_an_event",
            "a_refused_key_names_its_variable",
        ],
    ),
    (
        35,
        "retries without end",
        &["a_wait_too_long_is_not_waited", "a_request_that_is_refused_again_and_again_ends_the_task"],
    ),
];

/// A case of another agent's behaviour that an agent here has to pass: its number, and the tests
/// that show it.
const CASES_OF_GEMINI: &[(u32, &[&str])] = &[
    (14, &["valid_output_reaches_the_goal_without_a_further_request"]),
    (15, &["output_that_is_missing_or_wrong_goes_back_until_it_is_valid"]),
    (16, &["the_first_output_of_a_turn_wins"]),
    (17, &["a_model_that_stops_calling_tools_has_one_last_turn"]),
    (18, &["the_last_request_after_the_limit_of_turns_has_every_result"]),
    (19, &["a_goal_in_the_last_turn_is_marked_as_recovered"]),
    (20, &["time_that_runs_out_inside_a_tool_stops_it_and_leaves_a_last_turn"]),
    (21, &["a_last_turn_ends_with_its_grace_period", "an_interrupt_at_any_point_leaves_no_last_turn"]),
    (22, &["an_unknown_tool_in_a_batch_is_refused_and_the_others_run"]),
    (23, &["twenty_minutes_of_waiting_for_a_person_leave_ten_of_work"]),
    (
        24,
        &[
            "missing_names_are_listed_beside_those_that_are_there",
            "an_unknown_type_is_named_with_those_that_there_are",
            "inputs_become_the_schema_of_a_tool_without_an_empty_list_of_required_names",
        ],
    ),
    (25, &["a_stalled_agent_ends", "fault_16_a_loop_with_a_counter_or_of_six_steps_ends_an_agent"]),
    (
        27,
        &[
            "gemini_27_an_agent_shortens_its_own_conversation",
            "gemini_27_a_summary_that_is_too_large_leaves_an_agents_conversation_as_it_was",
        ],
    ),
    (
        29,
        &[
            "what_is_not_understood_is_denied_where_the_program_stands_and_asked_otherwise",
            "unanswerable_calls_are_refused_and_end_the_task_at_the_third",
            "what_reaches_beyond_the_project_is_never_automatic",
            "a_hook_that_hangs_denies_the_call_and_its_processes_end",
        ],
    ),
    (
        30,
        &[
            "every_line_of_stream_json_is_an_event",
            "everything_that_a_run_changed_is_as_it_was",
            "what_the_user_changed_since_is_kept",
            "an_agent_is_resumed_wherever_it_was_cut_off",
        ],
    ),
];

/// Adds the names of all functions in the Rust files below a directory.
fn add_functions(directory: &Path, names: &mut HashSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            add_functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = |rest: &str| -> String {
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
            };
            names.extend(text.split("fn ").skip(1).map(name));
        }
    }
}

async fn every_fault_has_tests_that_exist() {
    let mut names = HashSet::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for one in std::fs::read_dir(crates).unwrap().flatten() {
        for part in ["src", "tests"].map(|part| one.path().join(part)).iter().filter(|part| part.is_dir()) {
            add_functions(part, &mut names);
        }
    }
    let faults = FAULTS.iter().map(|(number, _, tests)| ("fault", *number, *tests));
    let cases = CASES_OF_GEMINI.iter().map(|(number, tests)| ("case", *number, *tests));
    let missing: Vec<_> = faults
        .chain(cases)
        .flat_map(|(kind, number, tests)| {
            let gone = tests.iter().filter(|test| !names.contains(**test));
            gone.map(move |test| (kind, number, test)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(missing, []);
    assert!(FAULTS.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

async fn fault_15_a_call_of_a_failed_attempt_does_not_run_again_in_an_agent() {
    let restart =
        || Delta::Restart { attempt: 2, of: 4, wait_ms: 1, reason: "the connection broke".to_owned() };
    let write = json!({ "path": "a.txt", "search": "x", "replace": "xx" });
    let edits =
        calls([("e", "edit_file", write)]).after(vec![piece("I will "), restart(), piece("I will edit.")]);
    let read = calls([("r", "read_file", json!({ "path": "a.txt" }))]);
    let mut bench = Bench::new(&[("a.txt", "x\n")])
        .with_agents(Agents::new(vec![worker().tools(AgentTools::All, Mode::Edit)]));
    let told = delegating([read, edits, finishes("done once")]);
    bench.run(&told, settings()).await;
    assert_eq!(bench.file("a.txt").as_deref(), Some("xx\n"), "{}", told.heard());
    let agent = agents_of(&bench).pop().unwrap();
    let executed =
        states(&bench, &agent, "e").into_iter().filter(|state| *state == CallState::Executing).count();
    assert_eq!(executed, 1);
    let last = worker_requests(&told).pop().unwrap();
    let texts = last.messages.iter().filter(|message| message.role == Role::Assistant).map(Message::text);
    assert!(!texts.collect::<String>().contains("I will I will"));
}

async fn fault_16_a_loop_with_a_counter_or_of_six_steps_ends_an_agent() {
    for is_counted in [true, false] {
        let files = ["a", "b", "c", "d", "e", "f"].map(|name| (format!("{name}.txt"), format!("{name}\n")));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let mut free = worker();
        free.limits = AgentLimits { turns: 500, ..AgentLimits::default() };
        let mut bench = Bench::new(&files).with_agents(Agents::new(vec![free]));
        let told = Told::by(move |request| {
            if !is_worker(request) {
                return if has_result(request) { says("done") } else { task("t") };
            }
            let turn = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
            let input = match is_counted {
                // The same place, read by another number each time.
                true => json!({ "path": "a.txt", "limit": 100 + turn }),
                false => json!({ "path": format!("{}.txt", ["a", "b", "c", "d", "e", "f"][turn % 6]) }),
            };
            calls_of(vec![call(&format!("c{turn}"), "read_file", input)])
        });
        bench.run(&told, settings()).await;
        let said = result(told.requests().last().unwrap(), "t");
        assert!(said.contains("did not complete its task"), "{is_counted}: {said}");
        let asked = worker_requests(&told).len();
        assert!(asked < 120, "{is_counted}: {asked} requests");
    }
}

async fn fault_16_a_hook_that_stops_the_run_stops_an_agent() {
    if !confined().await {
        return;
    }
    let stops = "grep -q stop.txt && echo '{\"continue\": false, \"stopReason\": \"enough of it\"}' || true";
    let hooks = HooksBuilder::new().commands([HookCommand::new(HookEvent::PreTool, stops)]).build();
    let mut bench =
        Bench::new(&[("stop.txt", "x\n")]).with_hooks(hooks).with_agents(Agents::new(vec![worker()]));
    let look = |path: &str| calls([("r", "read_file", json!({ "path": path }))]);
    let told = delegating([look("stop.txt"), look("stop.txt"), finishes("went on")]);
    bench.run(&told, settings()).await;
    assert_eq!(worker_requests(&told).len(), 1, "it is not asked again");
    let ended = bench.log.events().into_iter().find_map(|event| match event {
        Event::AgentFinished { report, .. } => Some(report.termination),
        _ => None,
    });
    assert_eq!(ended, Some(Termination::Aborted));
    assert_settled(&bench);
}

async fn fault_18_an_agent_in_mode_auto_asks_nothing() {
    if !confined().await {
        return;
    }
    let mut bench =
        Bench::new(&[]).with_agents(Agents::new(vec![worker().tools(AgentTools::All, Mode::Auto)]));
    let both = calls([
        ("w", "write_file", json!({ "path": "a.txt", "content": "x\n" })),
        ("r", "run_command", json!({ "command": "echo y > b.txt" })),
    ]);
    let told = delegating([both, finishes("done")]);
    bench.run(&told, settings()).await;
    assert_eq!((bench.file("a.txt").as_deref(), bench.file("b.txt").as_deref()), (Some("x\n"), Some("y\n")));
    let asked = |event: &Event| matches!(event, Event::PermissionRequired { .. });
    assert!(!bench.log.events().iter().any(asked));
}

async fn fault_22_a_word_in_capitals_without_end_is_cut_off_in_an_agent() {
    for text in ["STOP", "- \n", "1;2;3;", "```\nSTOP\n```\n"] {
        let mut bench = Bench::new(&[]).with_agents(Agents::new(vec![worker()]));
        let endless = stalls().after((0..100).map(|_| piece(&text.repeat(1_024 / text.len()))).collect());
        let told = delegating([endless, finishes("calm again")]);
        let ended = tokio::time::timeout(Duration::from_secs(60), bench.run(&told, settings())).await;
        assert_eq!(ended.expect("the reply never ends").text, "done", "{text:?}");
        assert!(result(told.requests().last().unwrap(), "t").contains("calm again"), "{text:?}");
    }
}

async fn fault_32_every_request_of_an_agent_with_faults_is_one_that_providers_take() {
    let limits = AgentLimits { turns: 3, ..AgentLimits::default() };
    let mut limited = worker();
    limited.limits = limits;
    let mut bench = Bench::new(&[("a.txt", "x\n")]).with_agents(Agents::new(vec![limited]));
    let told: Arc<Told> = delegating([
        calls([("a", "no_such_tool", json!({})), ("b", "read_file", json!({ "path": "a.txt" }))]),
        says("no call"),
        calls([("c", "complete_task", json!({ "result": 7 })), ("d", "list_files", json!({}))]),
        calls([("e", "read_file", json!({})), ("f", "complete_task", json!({ "result": "late" }))]),
    ]);
    bench.run(&told, settings()).await;
    for request in told.requests() {
        for wire in Wire::ALL {
            let body = request_body(wire, &request);
            assert!(body.is_ok(), "{wire:?}: {body:?}");
        }
        assert!(crate::session::support::transcript::is_settled(&request.messages), "{:?}", request.messages);
    }
    assert!(worker_requests(&told).len() >= 3);
}
