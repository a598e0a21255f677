//! Choices against a choice by plain arithmetic, turns, and what is counted in and out.

use std::time::Duration;

use bytes::Bytes;
use testing::{Draw, seed};

use super::{Balancer, By, Candidate, Choice, InFlight, Prompt, Report, Why};
use crate::clock::Mono;

const NOW: Mono = Mono(1_000_000_000_000);
const GOOD_FOR: Duration = Duration::from_secs(1);

fn prompt(parts: &[usize]) -> Prompt {
    let text: String = parts.iter().map(|nth| format!("{nth:0>300}")).collect();
    let body = format!(r#"{{"prompt":"{text}"}}"#);
    Prompt::of(&[Bytes::from(body)]).expect("a prompt")
}

fn all(weights: &[u32]) -> Vec<Candidate> {
    let weights = weights.iter().enumerate();
    let candidate = |(place, weight): (usize, &u32)| Candidate {
        place,
        weight: *weight,
    };
    weights.map(candidate).collect()
}

fn choose(of: &Balancer, candidates: &[Candidate], prompt: Option<&Prompt>, chance: u64) -> Choice {
    let mut candidates = candidates.iter().copied();
    let choice = of.choose(&mut candidates, prompt, chance, NOW);
    choice.expect("an endpoint")
}

fn report(running: u32, waiting: u32, kv_share: f64) -> Report {
    Report {
        running: running.into(),
        waiting: waiting.into(),
        kv_share,
        ..Report::default()
    }
}

/// What an endpoint has to do, kept the plain way.
#[derive(Default, Clone)]
struct Plain {
    /// Each prompt that went there, by its parts.
    seen: Vec<Vec<usize>>,
    own: u64,
    unread: u64,
    said: Option<(u64, u64, u64)>,
}

impl Plain {
    fn seen(&self, parts: &[usize]) -> u64 {
        // Blocks are shared where their bytes are: counted on the very text.
        let text = |parts: &[usize]| -> Vec<u8> {
            let texts: String = parts.iter().map(|nth| format!("{nth:0>300}")).collect();
            format!("\"{texts}\"").into_bytes()
        };
        let own = text(parts);
        let shared = |other: &Vec<usize>| {
            let other = text(other);
            let same = own.iter().zip(&other).take_while(|(a, b)| a == b).count();
            // Whole blocks, and none of the last one that is not whole.
            (same / 256 * 256) as u64
        };
        self.seen.iter().map(shared).max().unwrap_or(0)
    }

    fn cost(&self) -> u64 {
        let own = self.own * 4096 + self.unread;
        let Some((others, waiting, kv)) = self.said else {
            return own;
        };
        let full = kv.saturating_sub(900_000) * (256 << 10) / 100_000;
        own + others * 4096 + waiting * 16_384 + kv * 16_384 / 1_000_000 + full
    }
}

#[test]
fn each_choice_costs_the_least_by_plain_arithmetic() {
    let draw = &mut Draw::new(seed("each_choice_costs_the_least_by_plain_arithmetic"));
    for by in [By::LeastLoad, By::PrefixCache] {
        for _ in 0..30 {
            let many = 2 + draw.below(4);
            let balancer = Balancer::new(by, many);
            let mut plain = vec![Plain::default(); many];
            let mut open: Vec<(usize, u64, InFlight)> = Vec::new();
            for _ in 0..200 {
                match draw.below(6) {
                    0 => {
                        let place = draw.below(many);
                        let (running, waiting) = (draw.below(40), draw.below(9));
                        let kv = draw.below(1001);
                        let shared = balancer.endpoint(place).expect("an endpoint");
                        let said = report(running as u32, waiting as u32, kv as f64 / 1000.0);
                        shared.load.report(&said, GOOD_FOR, NOW);
                        let of = &mut plain[place];
                        let others = ((running + waiting) as u64).saturating_sub(of.own);
                        of.said = Some((others, waiting as u64, kv as u64 * 1000));
                    }
                    1 if !open.is_empty() => {
                        let (place, unread, call) = open.swap_remove(draw.below(open.len()));
                        drop(call);
                        plain[place].own -= 1;
                        plain[place].unread -= unread;
                    }
                    2 if !open.is_empty() => {
                        let at = draw.below(open.len());
                        let (place, unread, call) = &mut open[at];
                        call.answers();
                        plain[*place].unread -= std::mem::take(unread);
                    }
                    _ => {
                        let length = 1 + draw.below(20);
                        let parts: Vec<usize> = (0..length).map(|_| draw.below(2)).collect();
                        let prompt = prompt(&parts);
                        let choice =
                            choose(&balancer, &all(&vec![1; many]), Some(&prompt), draw.next());
                        let looks = by == By::PrefixCache;
                        let cost = |of: &Plain| {
                            let seen = if looks { of.seen(&parts) } else { 0 };
                            of.cost() + prompt.bytes() - seen
                        };
                        let least = plain.iter().map(cost).min().expect("some");
                        assert_eq!(cost(&plain[choice.place]), least, "{by:?} {choice:?}");
                        let seen = if looks {
                            plain[choice.place].seen(&parts)
                        } else {
                            0
                        };
                        assert_eq!(choice.seen, seen, "{by:?}");
                        let call = balancer.count_in(&choice, Some(&prompt)).expect("counted");
                        let of = &mut plain[choice.place];
                        let unread = prompt.bytes() - seen;
                        of.own += 1;
                        of.unread += unread;
                        of.seen.push(parts);
                        open.push((choice.place, unread, call));
                    }
                }
            }
            drop(open);
            for place in 0..many {
                let standing = balancer.endpoint(place).expect("one").load.standing(NOW);
                assert_eq!((standing.in_flight, standing.unread_bytes), (0, 0));
            }
        }
    }
}

#[test]
fn turns_are_as_the_weights_say_and_between_one_another() {
    let balancer = Balancer::new(By::RoundRobin, 3);
    let candidates = all(&[3, 1, 2]);
    let places: Vec<usize> = (0..12)
        .map(|_| choose(&balancer, &candidates, None, 0).place)
        .collect();
    assert_eq!(places, [0, 1, 2, 0, 2, 0, 0, 1, 2, 0, 2, 0]);
}

#[test]
fn the_heaviest_weights_have_their_turns_at_once() {
    let balancer = Balancer::new(By::RoundRobin, 2);
    let candidates = all(&[1_000_000, 1]);
    let turns = (0..1000).map(|_| choose(&balancer, &candidates, None, 0).place);
    assert_eq!(
        turns.sum::<usize>(),
        1,
        "the light one has one of a million and one"
    );
}

#[test]
fn the_fewest_requests_win_for_their_weight_and_chance_decides_between_equals() {
    let balancer = Balancer::new(By::LeastRequest, 3);
    let candidates = all(&[1, 1, 4]);
    let places: Vec<usize> = (0..3)
        .map(|n| choose(&balancer, &candidates, None, n).place)
        .collect();
    assert_eq!(places, [0, 1, 2], "all are idle");
    let mut calls = Vec::new();
    for _ in 0..60 {
        let choice = choose(&balancer, &candidates, None, 0);
        assert_eq!(choice.why, Why::Requests);
        calls.push(balancer.count_in(&choice, None).expect("counted"));
    }
    let in_flight = |place: usize| balancer.endpoint(place).expect("one").load.in_flight();
    assert_eq!([0, 1, 2].map(in_flight), [10, 10, 40]);
    calls.clear();
    assert_eq!([0, 1, 2].map(in_flight), [0, 0, 0]);
}

#[test]
fn a_prompt_goes_where_it_was_seen_until_that_is_worth_no_wait() {
    let balancer = Balancer::new(By::PrefixCache, 2);
    let candidates = all(&[1, 1]);
    let prompt = prompt(&[7; 40]);
    let first = choose(&balancer, &candidates, Some(&prompt), 1);
    assert_eq!((first.place, first.why, first.seen), (1, Why::Load, 0));
    drop(balancer.count_in(&first, Some(&prompt)));
    let again = choose(&balancer, &candidates, Some(&prompt), 0);
    assert_eq!((again.place, again.why), (1, Why::Prefix));
    assert!(again.seen > 11_000, "{again:?}");
    // One call that waits there costs more than the prompt.
    let busy = &balancer.endpoint(1).expect("one").load;
    busy.report(&report(8, 1, 0.5), GOOD_FOR, NOW);
    let elsewhere = choose(&balancer, &candidates, Some(&prompt), 0);
    assert_eq!((elsewhere.place, elsewhere.why), (0, Why::Load));
    // What the engine said is worth nothing once it is old.
    let later = NOW.after(GOOD_FOR);
    let choice = balancer.choose(&mut candidates.iter().copied(), Some(&prompt), 0, later);
    assert_eq!(choice.map(|choice| choice.place), Some(1));
}

#[test]
fn one_that_alone_may_be_tried_takes_the_call_and_none_takes_none() {
    let balancer = Balancer::new(By::PrefixCache, 2);
    let choice = choose(&balancer, &all(&[1, 1])[1..], None, 0);
    assert_eq!((choice.place, choice.why), (1, Why::Only));
    assert_eq!(balancer.choose(&mut std::iter::empty(), None, 0, NOW), None);
}

#[test]
fn an_engine_that_began_anew_is_told_from_one_that_goes_on() {
    let balancer = Balancer::new(By::PrefixCache, 1);
    let load = &balancer.endpoint(0).expect("one").load;
    let at = |began_s| Report {
        began_s,
        ..report(0, 0, 0.0)
    };
    let began = [Some(5), Some(5), None, Some(9), Some(9)];
    let anew = began.map(|began| load.report(&at(began), GOOD_FOR, NOW));
    assert_eq!(anew, [false, false, false, true, false]);
}
