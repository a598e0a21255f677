//! Conversations follow from their number; users come, leave and come back; replicas share what is asked.

use experiment::arrivals::{Process, Scope};

use super::*;

fn preset() -> Preset {
    Preset::named("gpt-oss-120b.h100x4").expect("it comes with the program")
}

fn talk() -> Talk {
    Talk {
        shared_tokens: 160,
        first_tokens: Length::fixed(1000.0),
        turn_tokens: Length::fixed(300.0),
        output_tokens: Length::fixed(50.0),
        turns: Length::fixed(4.0),
        context_tokens: None,
        conversations: None,
        answers: Answers::Own,
    }
}

#[test]
fn a_conversation_ends_at_its_last_turn_or_at_its_limit() {
    let lengths = |talk: Talk, longest| {
        let all = Conversations::new(1, 0, talk, longest, 16);
        let turns: Vec<_> = all.begin(7).collect();
        assert_eq!(
            turns.len() as u32,
            experiment::workload::Sessions::turns(&all, 7)
        );
        turns
            .iter()
            .map(|t| (t.prompt_tokens, t.output_tokens))
            .collect::<Vec<_>>()
    };
    let all = [(1160, 50), (1510, 50), (1860, 50), (2210, 50)];
    assert_eq!(lengths(talk(), 100_000), all);
    assert_eq!(lengths(talk(), 1910), all[..3]);
    assert_eq!(lengths(talk(), 1909), all[..2]);
    assert_eq!(lengths(talk(), 1000), [(999, 1)], "the first turn is cut");
}

/// Users who ask for short things, so that minutes take no time.
fn traffic(pause_s: f64) -> Traffic {
    Traffic {
        profiles: vec![Profile {
            name: "all".into(),
            comes: Comes::Users { weight: 1.0 },
            think: Process::Exponential { mean_s: pause_s },
            scope: Scope::User,
            talk: talk(),
        }],
    }
}

fn crowd(traffic: &Traffic, users: u32, replicas: u32, balancer: Balancer) -> Crowd {
    let workload = traffic.workload(users, 1);
    Crowd::new(traffic, workload, &preset(), replicas, balancer)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Everything answered by then.
fn answers(crowd: &mut Crowd, until: u64) -> Vec<Exchange> {
    let mut answers = Vec::new();
    while let Some(ran) = crowd.go_on(secs(until)).unwrap() {
        answers.extend(ran.delivered.answers);
    }
    answers
}

#[test]
fn who_is_not_wanted_has_its_answer_and_leaves_and_who_comes_back_asks_at_once() {
    let mut crowd = crowd(&traffic(2.0), 10, 1, Balancer::default());
    crowd.wish(&[10], secs(0));
    answers(&mut crowd, 60);
    assert_eq!(crowd.at_work(), 10);

    crowd.wish(&[4], secs(60));
    let leaving = answers(&mut crowd, 120);
    assert_eq!(crowd.at_work(), 4);
    let beyond = leaving.iter().filter(|a| a.user.is_some_and(|u| u >= 4));
    let asked: Vec<Duration> = beyond.map(|a| a.asked).collect();
    assert!(
        asked.iter().all(|&at| at <= secs(60)),
        "they ask no more: {asked:?}"
    );
    let gone = answers(&mut crowd, 180);
    assert!(!gone.is_empty());
    assert!(gone.iter().all(|a| a.user.is_some_and(|user| user < 4)));

    crowd.wish(&[12], secs(180));
    assert_eq!(crowd.at_work(), 12);
    let back = answers(&mut crowd, 240);
    for user in 4..10 {
        let first = back.iter().find(|a| a.user == Some(user)).unwrap();
        assert_eq!((first.asked, first.thought), (secs(180), None));
    }
    let new = back.iter().find(|a| a.user == Some(11)).unwrap();
    assert!(new.asked > secs(180) && new.thought == Some(new.asked - secs(180)));
}

#[test]
fn each_turn_of_a_conversation_finds_exactly_what_came_before() {
    let mut traffic = traffic(1.0);
    traffic.profiles[0].talk.turns = Length::fixed(3.0);
    let mut crowd = crowd(&traffic, 1, 1, Balancer::default());
    crowd.wish(&[1], secs(0));
    let seen: Vec<_> = answers(&mut crowd, 60)
        .iter()
        .map(|a| (a.prompt_tokens, a.cached_tokens))
        .collect();
    assert_eq!(seen[..3], [(1160, 0), (1510, 1200), (1860, 1552)]);
    assert_eq!(seen[3..6], [(1160, 160), (1510, 1200), (1860, 1552)]);
}

#[test]
fn a_user_has_one_question_out_and_its_moments_are_in_order() {
    let mut crowd = crowd(&traffic(0.5), 30, 3, Balancer::default());
    crowd.wish(&[30], secs(0));
    let mut last = vec![Duration::ZERO; 30];
    let all = answers(&mut crowd, 40);
    assert!(all.len() > 300);
    for answer in &all {
        let before = &mut last[answer.user.unwrap() as usize];
        assert!(answer.asked >= *before);
        assert_eq!(answer.asked - *before, answer.thought.unwrap());
        *before = answer.last;
        let moments = [
            answer.asked,
            answer.queued,
            answer.scheduled,
            answer.made,
            answer.first,
            answer.last,
        ];
        assert!(moments.is_sorted(), "{answer:?}");
    }
    let totals = crowd.stats().totals;
    assert_eq!(totals.finished, all.len() as u64);
    let of_each: Vec<u64> = crowd.engines().map(|e| e.totals.finished).collect();
    for (engine, finished) in (0..).zip(&of_each) {
        let rows = all.iter().filter(|a| a.engine == engine).count() as u64;
        assert_eq!(rows, *finished);
        assert_eq!(crowd.told()[engine as usize].e2e.count, *finished);
    }
    assert!(of_each.iter().all(|&n| n > 80), "{of_each:?}");
}

#[test]
fn the_same_replicas_give_the_same_answers_to_the_last_digit() {
    for balancer in [
        Balancer::RoundRobin,
        Balancer::LeastLoaded,
        Balancer::PrefixAware(Affinity::default()),
    ] {
        let course = || {
            let mut crowd = crowd(&traffic(1.0), 20, 4, balancer);
            crowd.wish(&[20], secs(0));
            answers(&mut crowd, 20)
        };
        assert_eq!(course(), course());
    }
}
