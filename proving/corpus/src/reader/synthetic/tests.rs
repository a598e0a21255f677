//! Sessions follow from seed and number, and have the geometry that was asked for.

use super::*;
use crate::reader::Reader;

fn tokens(message: &Message) -> usize {
    match &message.content {
        Some(Content::Text(text)) => text.split(' ').count(),
        _ => 0,
    }
}

#[test]
fn means_are_those_of_the_geometry() {
    const SEED: u64 = 3;
    println!("seed {SEED}");
    let generator = Synthetic {
        geometry: Geometry {
            shared: 0.25,
            think_s: Some(Spread { mean: 3.0, cv: 1.0 }),
            ..Geometry::default()
        },
        seed: SEED,
        sessions: 400,
    };
    let all: Vec<Conversation> = (0..400).map(|n| generator.session(n).unwrap()).collect();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let turns = mean(all.iter().map(|s| s.decisions.len() as f64).collect());
    assert!((turns - 8.0).abs() < 0.6, "{turns}");
    let first = mean(
        all.iter()
            .map(|s| (tokens(&s.messages[0]) + tokens(&s.messages[1])) as f64)
            .collect(),
    );
    assert!((first - 2_000.0).abs() < 100.0, "{first}");
    let answers = all
        .iter()
        .flat_map(|s| s.decisions.iter().filter_map(|d| d.answer_tokens));
    let output = mean(answers.map(f64::from).collect());
    assert!((output - 200.0).abs() < 12.0, "{output}");
    let thinks = all
        .iter()
        .flat_map(|s| s.decisions.iter().filter_map(|d| d.think));
    let think = mean(thinks.map(|t| t.as_secs_f64()).collect());
    assert!((think - 3.0).abs() < 0.4, "{think}");
    assert_eq!(tokens(&all[0].messages[0]), 500);
    assert!(all.iter().all(|s| s.messages[0] == all[0].messages[0]));
    assert_ne!(all[0].messages[1], all[1].messages[1]);
    for session in &all {
        for decision in &session.decisions {
            let answer = &session.messages[decision.answer.unwrap()];
            assert_eq!(decision.answer_tokens, Some(tokens(answer) as u32));
        }
    }
}

#[test]
fn a_session_is_the_same_alone_and_in_its_unit_and_another_with_another_seed() {
    let of = |seed| Synthetic {
        geometry: Geometry::default(),
        seed,
        sessions: 600,
    };
    let units = of(1).units(&[]).unwrap();
    assert_eq!(units.len(), 3);
    let mut last = None;
    let mut each = |_, session: Result<Conversation, Fault>| {
        last = session.ok();
        ControlFlow::Continue(())
    };
    of(1).read(&units[2], &mut Sink::new(&mut each)).unwrap();
    assert_eq!(last.unwrap(), of(1).session(599).unwrap());
    assert_ne!(
        of(1).session(5).unwrap().messages,
        of(2).session(5).unwrap().messages
    );
}

#[test]
fn geometry_that_is_no_number_and_geometry_without_end_are_bounded() {
    let wild = |mean, cv| {
        let spread = Spread { mean, cv };
        Synthetic {
            geometry: Geometry {
                turns: spread,
                first_prompt: spread,
                appended: spread,
                output: spread,
                shared: mean,
                think_s: Some(spread),
            },
            seed: 0,
            sessions: 1,
        }
    };
    assert!(wild(f64::NAN, f64::NAN).session(0).is_ok());
    assert!(wild(-5.0, 1.0).session(0).is_ok());
    assert_eq!(wild(1e300, 0.0).session(0).unwrap_err().reason, "too_long");
}
