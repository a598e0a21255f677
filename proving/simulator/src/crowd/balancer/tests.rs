//! Who is chosen, and what a choice leaves behind.

use experiment::random::Rng;

use super::*;

/// Names of a conversation's blocks.
fn of(conversation: u64) -> impl Fn(u32) -> u64 {
    move |block| (conversation << 32) + u64::from(block) + 1
}

fn affine() -> Balancer {
    Balancer::PrefixAware(Affinity::default())
}

#[test]
fn one_after_another_is_just_that() {
    let mut balancing = Balancing::new(Balancer::RoundRobin, 3);
    let chosen: Vec<usize> = (0..7).map(|i| balancing.choose(1, of(i))).collect();
    assert_eq!(chosen, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn the_least_loaded_is_the_one_with_the_fewest_questions_out() {
    let mut balancing = Balancing::new(Balancer::LeastLoaded, 3);
    for i in 0..6 {
        balancing.choose(1, of(i));
    }
    assert!(balancing.in_flight().eq([2, 2, 2]));
    balancing.answered(1);
    assert_eq!(balancing.choose(1, of(7)), 1);
    balancing.answered(2);
    balancing.answered(2);
    balancing.answered(2);
    assert_eq!(balancing.choose(1, of(8)), 2);
    assert!(
        balancing.in_flight().eq([2, 2, 1]),
        "an answer too many is none"
    );
}

#[test]
fn idle_engines_share_what_comes_one_at_a_time() {
    let mut balancing = Balancing::new(Balancer::LeastLoaded, 3);
    let mut sent = [0; 3];
    for i in 0..9 {
        let chosen = balancing.choose(1, of(i));
        sent[chosen] += 1;
        balancing.answered(chosen);
    }
    assert_eq!(sent, [3, 3, 3]);
}

#[test]
fn a_prompt_goes_where_its_longest_beginning_went_last() {
    let mut balancing = Balancing::new(affine(), 4);
    let first: Vec<usize> = (0..4).map(|i| balancing.choose(10, of(i))).collect();
    for conversation in [2, 0, 3, 1] {
        let again = balancing.choose(15, of(conversation));
        assert_eq!(again, first[conversation as usize]);
    }
    // Another conversation that begins as number 2 does, and goes on by itself.
    let like_2 = |block: u32| {
        if block < 5 {
            of(2)(block)
        } else {
            of(9)(block)
        }
    };
    assert_eq!(balancing.choose(20, like_2), first[2]);
    assert!(balancing.in_flight().eq([2, 2, 3, 2]));
    assert_eq!(balancing.choose(0, of(2)), 0, "nothing to know it by");
}

#[test]
fn an_engine_that_has_too_much_to_do_is_passed_over_though_it_knows_the_prompt() {
    let affinity = Affinity {
        most_more: 3,
        most_times: 1.0,
    };
    let mut balancing = Balancing::new(Balancer::PrefixAware(affinity), 2);
    let chosen: Vec<usize> = (0..6).map(|_| balancing.choose(8, of(1))).collect();
    assert_eq!(chosen, [0, 0, 0, 0, 1, 1], "four more are too many");
    // Its memory is of the last: the conversation has moved.
    balancing.answered(0);
    assert_eq!(balancing.choose(8, of(1)), 1);
}

#[test]
fn what_was_sent_long_ago_is_forgotten() {
    let mut balancing = Balancing::remembering(affine(), 2, 1000);
    balancing.choose(10, of(1));
    for i in 2..500 {
        let chosen = balancing.choose(10, of(i));
        balancing.answered(chosen);
        let memory = &balancing.memory;
        assert!(memory.young.len() + memory.old.len() <= 1000);
    }
    assert!(balancing.memory.find(of(1)(0)).is_none());
    assert!(balancing.memory.find(of(499)(9)).is_some());
}

#[test]
fn every_question_goes_to_exactly_one_engine_and_the_same_one_again() {
    let first = testing::seed("every_question_goes_to_exactly_one_engine_and_the_same_one_again");
    for (i, balancer) in (0..60).zip(
        [Balancer::RoundRobin, Balancer::LeastLoaded, affine()]
            .into_iter()
            .cycle(),
    ) {
        let seed = first.wrapping_add(i);
        println!("seed {seed}, {balancer:?}");
        let course = || {
            let mut rng = Rng::new(seed);
            let replicas = 1 + rng.below(8) as usize;
            let mut balancing = Balancing::remembering(balancer, replicas, 64);
            let (mut out, mut chosen) = (Vec::new(), Vec::new());
            for _ in 0..300 {
                if rng.below(2) == 0 && !out.is_empty() {
                    let which = rng.below(out.len() as u64) as usize;
                    balancing.answered(out.swap_remove(which));
                    continue;
                }
                let replica = balancing.choose(rng.below(20) as u32, of(rng.below(10)));
                assert!(replica < replicas);
                out.push(replica);
                chosen.push(replica);
                if replicas > 1 {
                    let count = |of| out.iter().filter(|&&r| r == of).count() as u32;
                    assert!(balancing.in_flight().eq((0..replicas).map(count)));
                }
            }
            chosen
        };
        assert_eq!(course(), course());
    }
}
