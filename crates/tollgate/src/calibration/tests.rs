//! Who is asked, what several answers come to, and how it is said.

use policy::operation::Operation;
use tokens::Feature;
use tokens::calibration::Calibration;

use super::engines::Model;
use super::round::{Addresses, Asked, Came, Round, clock};
use super::said::{Known, Parting, as_json, table};
use super::*;

mod asking;

const CHAT: tokens::Shape = tokens::Shape::of(&[Feature::Chat]);
const TOOLS: tokens::Shape = tokens::Shape::of(&[Feature::Chat, Feature::Tools]);

fn other() -> Came {
    Came::Other {
        reported: 214,
        counted: 209,
        ids: vec![1],
    }
}

fn round(came: [Came; 2]) -> Round {
    let [chat, tools] = came;
    let asked = |name, shape, came| Asked {
        name,
        operation: Operation::Chat,
        shape,
        came,
    };
    Round {
        model: Model {
            label: "llama".into(),
            name: "llama".to_owned(),
            key: 1,
            is_harmony: false,
        },
        by: [callout::AskedBy::Tokenize].into(),
        asked: vec![
            asked("chat_user", CHAT, chat),
            asked("chat_tool", TOOLS, tools),
        ],
        model_length: None,
        took: Duration::from_millis(3),
        addresses: Addresses {
            asked: 1,
            unasked: 0,
        },
    }
}

fn known(came: [Came; 2]) -> Known {
    let round = round(came);
    let mut calibration = Calibration::default();
    drop(round.told_to(&mut calibration, 100));
    Known {
        backend: "engine".into(),
        model: "llama".into(),
        round: Some(round),
        summary: calibration.summary(),
        fault: None,
        is_away: false,
        is_part: false,
        parting: None,
    }
}

#[test]
fn of_several_engines_the_one_that_differs_counts_and_none_vouches_for_another() {
    let all = [Came::Same(7), Came::Refused, Came::Unasked, other()];
    for (place, less) in all.iter().enumerate() {
        for more in &all[place..] {
            for (a, b) in [(less, more), (more, less)] {
                let both = round([a.clone(), Came::Same(1)]).and(round([b.clone(), Came::Same(1)]));
                assert_eq!(both.asked[0].came, *more, "{a:?} {b:?}");
            }
        }
    }
}

#[test]
fn a_mark_says_what_differs_and_whether_that_is_all() {
    let marks = [
        ([Came::Same(1), Came::Same(2)], "exact"),
        ([Came::Same(1), other()], "exact but for: tools"),
        ([other(), other()], "approximate: differs ("),
        (
            [Came::Refused, Came::Unasked],
            "approximate: not compared yet",
        ),
    ];
    for (came, mark) in marks {
        let known = known(came);
        assert!(known.mark().starts_with(mark), "{} {mark}", known.mark());
    }
    let away = Known {
        fault: Some("no answer".to_owned()),
        ..known([Came::Unasked, Came::Unasked])
    };
    assert_eq!(away.mark(), "approximate: no answer");
}

#[test]
fn a_difference_is_shown_with_both_counts_and_where_the_texts_part() {
    let parting = Parting::of("chat_tool", "ab\"required\": [", "ab\"required\":[");
    let shown = Known {
        parting: parting.clone(),
        ..known([Came::Same(1), other()])
    };
    let text = table(&[shown], 100);
    let row = "engine   llama  tokenize       2      1  exact but for: tools\n";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("chat_tool: engine 214, ours 209;"), "{text}");
    let parting = parting.expect("a place");
    assert_eq!(parting.ours, "ab\"required\":[");
    assert_eq!(Parting::of("chat_tool", "same", "same"), None);
    let long = "x".repeat(100);
    let parting = Parting::of("p", &format!("{long}a"), &format!("{long}b")).expect("a place");
    assert_eq!(parting.engine, format!("…{}a", "x".repeat(20)));
    let json = as_json(&[known([Came::Same(1), other()])]);
    let model = &json["models"][0];
    assert_eq!(model["probes"]["differ"], 1, "{json}");
    assert_eq!(model["differs"], serde_json::json!(["tools"]), "{json}");
    assert_eq!(model["differences"][0]["reported"], 214, "{json}");
}

#[test]
fn an_engine_that_is_away_is_asked_sooner_and_then_later_again() {
    let every = Duration::from_secs(6 * 60 * 60);
    for (failures, least) in [
        (0, every),
        (1, RETRY_AFTER),
        (2, 2 * RETRY_AFTER),
        (40, every),
    ] {
        let next = next_after(every, failures);
        assert!(
            next >= least && next <= least + least / 10,
            "{failures} {next:?}"
        );
    }
}

#[test]
fn what_is_kept_of_a_model_is_small() {
    let probes = tokens::probes::COUNT;
    let bytes = size_of::<Round>() + probes * size_of::<Asked>();
    println!(
        "{probes} probes: {bytes} bytes of the last round, {} bytes and {probes} entries of a calibration",
        size_of::<Calibration>()
    );
    assert!(bytes + size_of::<Calibration>() < 16 << 10);
}

#[test]
fn some_addresses_vouch_for_no_others() {
    let part = |came| {
        let mut part = known(came);
        part.is_part = true;
        part.round.as_mut().expect("a round").addresses.unasked = 1;
        part
    };
    let one = part([Came::Same(1), Came::Same(2)]);
    assert_eq!(one.mark(), "approximate: 1 of 2 addresses not asked");
    assert_eq!(one.json()["addresses"]["unasked"], 1);
    let one = part([Came::Same(1), other()]);
    assert_eq!(one.mark(), "approximate: differs (tools)");
    let both = round([Came::Same(1), other()]).and(round([Came::Same(1), other()]));
    assert_eq!((both.addresses.asked, both.is_whole()), (2, true));
}

#[tokio::test]
async fn a_template_that_panics_ends_no_asking() {
    assert_eq!(round::aside(|| 7).await, Some(7));
    let panics = || -> u8 { panic!("a template") };
    assert_eq!(round::aside(panics).await, None);
}
