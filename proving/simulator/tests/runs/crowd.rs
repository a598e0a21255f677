//! Several engines behind a balancer, which is worth what it knows.

use experiment::arrivals::{Process, Scope};
use experiment::campaign::{Baseline, Plan};
use simulator::campaign::{Affinity, Balancer, Campaign, Exchange, Traffic};
use simulator::crowd::{Comes, Length, Profile, Talk};
use simulator::preset::Preset;
use simulator::score::Distribution;

use crate::{preset, secs, talk};

fn traffic(pause_s: f64, talk: Talk) -> Traffic {
    Traffic {
        profiles: vec![Profile {
            name: "all".into(),
            comes: Comes::Users { weight: 1.0 },
            think: Process::Exponential { mean_s: pause_s },
            scope: Scope::User,
            talk,
        }],
    }
}

/// Everything that these users are answered by four engines in so many seconds.
fn answers(
    traffic: &Traffic,
    users: u32,
    seconds: u64,
    preset: &Preset,
    balancer: Balancer,
) -> Vec<Exchange> {
    let length = secs(seconds);
    let campaign = Campaign {
        traffic: traffic.clone(),
        plan: Plan {
            baseline: Baseline {
                users,
                warm_up: secs(1),
                min: length,
                requests: 1,
                max: length,
            },
            max_users: users,
            ..Plan::default()
        },
        seed: 1,
        replicas: 4,
        balancer,
        queries: Vec::new(),
    };
    let outcome = campaign.run(preset, |tick| tick.at < length).unwrap();
    outcome.exchanges
}

#[test]
fn a_balancer_that_knows_prefixes_finds_more_of_them_than_one_that_does_not() {
    let traffic = traffic(
        1.0,
        Talk {
            turns: Length::fixed(8.0),
            ..talk()
        },
    );
    let hits = |balancer| {
        let answers = answers(&traffic, 40, 150, &preset(), balancer);
        let sum = |of: fn(&Exchange) -> u32| answers.iter().map(|a| u64::from(of(a))).sum::<u64>();
        sum(|a| a.cached_tokens) as f64 / sum(|a| a.prompt_tokens) as f64
    };
    let (knows, least) = (
        hits(Balancer::PrefixAware(Affinity::default())),
        hits(Balancer::LeastLoaded),
    );
    println!("{knows:.3} of prompt tokens cached, {least:.3}");
    assert!(knows > least + 0.15, "{knows} {least}");
}

#[test]
fn the_least_loaded_has_shorter_tails_than_one_after_another_where_lengths_differ() {
    let length = |mean, cv| Length { mean, cv };
    let traffic = traffic(
        4.0,
        Talk {
            turns: Length::fixed(1.0),
            first_tokens: length(6000.0, 3.0),
            output_tokens: length(200.0, 2.0),
            ..talk()
        },
    );
    let preset = preset().with_max_num_seqs(8).unwrap();
    let p99 = |balancer| {
        let answers = answers(&traffic, 36, 300, &preset, balancer);
        let ttft = answers.iter().map(Exchange::ttft_s).collect();
        Distribution::of(ttft).unwrap().p99
    };
    let (least, turns) = (p99(Balancer::LeastLoaded), p99(Balancer::RoundRobin));
    println!("p99 of TTFT: {least:.3} s, {turns:.3} s");
    assert!(least < turns * 0.9, "{least} {turns}");
}
