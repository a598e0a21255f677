//! Not here: a real connection that ends (`worker`).

use std::time::Duration;

use experiment::random::Rng;

use super::super::stats::{Of, Seen};
use super::*;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn tally(requests: u64) -> LocustStats {
    let mut tally = LocustStats::new(NOW);
    for _ in 0..requests {
        let of = Of {
            method: "GET",
            name: "/",
        };
        let seen = Seen {
            at: NOW,
            time: Some(Duration::from_millis(1)),
            bytes: 1,
            error: None,
        };
        tally.request(of, &seen);
    }
    tally
}

/// A connection on which reports of these sizes went out, each with a heartbeat behind it.
fn sent(sizes: &[u64]) -> Delivery {
    let mut delivery = Delivery::new(NOW);
    for size in sizes {
        delivery.add(tally(*size));
        assert_eq!(delivery.report(NOW).total().requests, *size);
        delivery.sent_heartbeat();
    }
    delivery
}

fn next_report(delivery: &mut Delivery) -> u64 {
    delivery.report(NOW).total().requests
}

#[test]
fn an_answer_confirms_all_before_it_and_nothing_after() {
    let mut delivery = sent(&[1, 20, 300]);
    delivery.echoed();
    delivery.echoed();
    assert_eq!(delivery.delivered().confirmed, 21);
    delivery.ended(Ending::Broken, 100);
    assert_eq!(next_report(&mut delivery), 300);
    assert_eq!(delivery.delivered().doubtful, 300);
}

#[test]
fn an_answer_to_client_ready_confirms_past_heartbeats_that_had_none() {
    let mut delivery = sent(&[1, 20]);
    delivery.sent_ready();
    delivery.acked();
    assert_eq!(delivery.delivered().confirmed, 21);
    delivery.echoed();
    assert_eq!(
        delivery.delivered().confirmed,
        21,
        "one too many is nothing"
    );
}

#[test]
fn a_peer_that_closed_in_order_has_read_what_was_written_whole() {
    let mut delivery = sent(&[1, 20]);
    // The first report, its heartbeat, and half of the second report.
    delivery.ended(Ending::Closed, 2);
    let delivered = delivery.delivered();
    assert_eq!((delivered.taken_for_read, delivered.doubtful), (1, 1));
    assert_eq!(next_report(&mut delivery), 20);
}

#[test]
fn what_was_not_written_whole_is_sent_again_without_doubt() {
    let mut delivery = sent(&[1, 20]);
    delivery.ended(Ending::Broken, 0);
    assert_eq!(delivery.delivered(), Delivered::default());
    delivery.add(tally(300));
    assert_eq!(next_report(&mut delivery), 321);
}

#[test]
fn frames_are_counted_from_each_connections_beginning() {
    let mut delivery = sent(&[1]);
    delivery.sent_other();
    delivery.ended(Ending::Broken, 3);
    delivery.sent_ready();
    assert_eq!(next_report(&mut delivery), 1);
    delivery.ended(Ending::Closed, 1);
    assert_eq!(
        next_report(&mut delivery),
        1,
        "the report was the second frame"
    );
    delivery.ended(Ending::Finished, 1);
    assert_eq!(delivery.delivered().confirmed, 1);
}

#[test]
fn a_new_run_takes_nothing_along() {
    let mut delivery = sent(&[1, 20]);
    delivery.echoed();
    delivery.add(tally(300));
    delivery.forget(NOW);
    assert_eq!(next_report(&mut delivery), 0);
    delivery.ended(Ending::Broken, 100);
    assert_eq!(next_report(&mut delivery), 0);
    let delivered = delivery.delivered();
    assert_eq!((delivered.confirmed, delivered.dropped), (1, 320));
}

#[test]
fn every_request_is_in_exactly_one_place() {
    for seed in 1..300_u64 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut draw = move |below: u64| rng.below(below);
        let mut delivery = Delivery::new(NOW);
        let (mut added, mut frames) = (0, 0);
        for _ in 0..60 {
            match draw(7) {
                0 | 1 => {
                    let requests = draw(5);
                    added += requests;
                    delivery.add(tally(requests));
                }
                2 => {
                    delivery.report(NOW);
                    frames += 1;
                }
                3 => {
                    delivery.sent_heartbeat();
                    frames += 1;
                }
                4 => delivery.echoed(),
                5 => {
                    let how = [Ending::Closed, Ending::Broken, Ending::Finished];
                    delivery.ended(how[draw(3) as usize], draw(frames + 1));
                    frames = 0;
                }
                _ => delivery.forget(NOW),
            }
        }
        delivery.ended(Ending::Broken, 0);
        delivery.forget(NOW);
        let Delivered {
            confirmed,
            taken_for_read,
            dropped,
            ..
        } = delivery.delivered();
        assert_eq!(confirmed + taken_for_read + dropped, added);
    }
}
