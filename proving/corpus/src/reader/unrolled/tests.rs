//! Histories can be had back from the session that was made of them.

use proptest::prelude::*;

use super::*;
use crate::seeded::seeded;

fn said(role: Role, text: &str) -> Message {
    Message {
        role,
        content: Some(Content::Text(text.to_owned())),
        ..Message::default()
    }
}

#[test]
fn new_messages_of_the_assistant_at_the_end_are_one_decision_and_known_ones_are_the_prompt() {
    let (u, a, b, c) = (
        said(Role::User, "u"),
        said(Role::Assistant, "a"),
        said(Role::Assistant, "b"),
        said(Role::Assistant, "c"),
    );
    let mut tally = Tally::default();
    let mut session = Unrolled::default();
    session.add(vec![u.clone(), a.clone()], &mut tally).unwrap();
    session
        .add(vec![u.clone(), a.clone(), b.clone()], &mut tally)
        .unwrap();
    session
        .add(vec![u.clone(), c.clone(), a.clone(), b.clone()], &mut tally)
        .unwrap();
    session
        .add(
            vec![u, said(Role::Assistant, "d"), said(Role::Assistant, "e")],
            &mut tally,
        )
        .unwrap();
    let decisions = session
        .finish("s".to_owned(), Vec::new())
        .unwrap()
        .decisions;
    let told: Vec<_> = decisions
        .into_iter()
        .map(|d| (d.prompt, d.answer))
        .collect();
    let expected = [
        (vec![0], Some(1)),
        (vec![0, 1], Some(2)),
        (vec![0, 3, 1], Some(2)),
        (vec![0], Some(5)),
    ];
    assert_eq!(told, expected);
    assert_eq!(tally.notes["answer_of_several_messages"], 1);
}

proptest! {
    #![proptest_config(seeded("histories_come_back", 128))]

    #[test]
    fn histories_come_back(histories in proptest::collection::vec(proptest::collection::vec((0..4_u8, 0..3_u8), 1..8), 1..8)) {
        let message = |(role, text): &(u8, u8)| {
            let role = [Role::System, Role::User, Role::Assistant, Role::Function][usize::from(*role)];
            said(role, &text.to_string())
        };
        let histories: Vec<Vec<Message>> = histories.iter().map(|h| h.iter().map(message).collect()).collect();
        let mut session = Unrolled::default();
        for history in &histories {
            session.add(history.clone(), &mut Tally::default()).unwrap();
        }
        let session = session.finish("s".to_owned(), Vec::new()).unwrap();
        for (history, decision) in histories.iter().zip(&session.decisions) {
            let places = &decision.prompt;
            let prompt: Vec<&Message> = places.iter().map(|p| &session.messages[*p]).collect();
            prop_assert!(prompt.iter().zip(history).all(|(a, b)| *a == b));
            let rest = &history[prompt.len()..];
            match decision.answer {
                Some(answer) => {
                    prop_assert_eq!(Some(&session.messages[answer]), rest.last());
                    prop_assert!(rest.iter().all(|m| m.role == Role::Assistant));
                }
                None => prop_assert!(rest.is_empty()),
            }
            let distinct: std::collections::BTreeSet<_> = places.iter().collect();
            prop_assert_eq!(distinct.len(), places.len());
        }
    }
}
