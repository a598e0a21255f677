//! Which steps are one session.

use std::fs;

use super::*;
use crate::conversation::Conversation;
use crate::reader::Part;

fn sessions(queries: &[String]) -> (Vec<Conversation>, Tally) {
    let step = |(n, query): (usize, &String)| {
        format!(
            "{{\"id\":\"Step {n}: {query}\",\"conversations\":[{{\"from\":\"user\",\"value\":\"{query}\"}},\
             {{\"from\":\"assistant\",\"value\":\"answer {n}\"}}]}}"
        )
    };
    let steps: Vec<String> = queries.iter().enumerate().map(step).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.json");
    fs::write(&file, format!("[{}]", steps.join(","))).unwrap();
    let unit = Unit {
        file: file.into(),
        part: Part::Whole,
        bytes: 0,
    };
    let mut all = Vec::new();
    let mut each = |_, session: Result<Conversation, Fault>| {
        all.push(session.unwrap());
        ControlFlow::Continue(())
    };
    let mut sink = Sink::new(&mut each);
    ToolLlama.read(&unit, &mut sink).unwrap();
    let tally = sink.into_tally();
    (all, tally)
}

#[test]
fn steps_of_a_query_are_one_session_though_others_stand_between() {
    let queries: Vec<String> = ["a: b", "c", "a: b", "c"].map(str::to_owned).into();
    let (all, tally) = sessions(&queries);
    let steps: Vec<usize> = all.iter().map(|session| session.decisions.len()).collect();
    assert_eq!(steps, [2, 2]);
    assert_eq!(tally.notes.get("session_in_several_pieces"), None);
}

#[test]
fn steps_that_lie_too_far_apart_are_two_sessions_of_two_names() {
    let mut queries = vec!["first".to_owned()];
    queries.extend((0..OPEN_SESSIONS).map(|n| format!("other {n}")));
    queries.push("first".to_owned());
    let (all, tally) = sessions(&queries);
    assert_eq!(all.len(), OPEN_SESSIONS + 2);
    let ids: HashSet<&str> = all.iter().map(|session| session.id.as_str()).collect();
    assert_eq!(ids.len(), all.len());
    assert!(all[all.len() - 1].id.starts_with(&all[0].id));
    assert_eq!(tally.notes["session_in_several_pieces"], 1);
}
