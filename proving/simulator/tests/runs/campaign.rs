//! Campaigns from end to end: T2, T3, an unsaturated engine, replicas, what-ifs.

use std::time::Duration;

use experiment::arrivals::{Process, Scope};
use experiment::campaign::{Baseline, Ending, EventKind, Phase, Plan, Soak};
use experiment::telemetry::{Query, Sample, Span};
use simulator::campaign::{Balancer, Campaign, CampaignError, Exchange, Outcome, Traffic};
use simulator::crowd::{Comes, CrowdError, Length, Profile};
use simulator::kv::MOST_BLOCKS;
use simulator::preset::Preset;
use simulator::soak;

use crate::{preset, secs, talk};

fn profile(name: &str, weight: f64) -> Profile {
    Profile {
        name: name.into(),
        comes: Comes::Users { weight },
        think: Process::Exponential { mean_s: 1.0 },
        scope: Scope::User,
        talk: talk(),
    }
}

/// Steps of eight users and half a minute, up to 96.
fn plan() -> Plan {
    Plan {
        baseline: Baseline {
            users: 8,
            warm_up: secs(20),
            min: secs(40),
            requests: 50,
            max: secs(300),
        },
        window: secs(30),
        max_users: 96,
        soak: Soak {
            settle: secs(20),
            length: secs(120),
        },
        ..Plan::default()
    }
}

fn campaign() -> Campaign {
    Campaign {
        traffic: Traffic {
            profiles: vec![profile("most", 3.0), profile("few", 1.0)],
        },
        plan: plan(),
        seed: 1,
        replicas: 1,
        balancer: Balancer::default(),
        queries: Vec::new(),
    }
}

/// Room for so few sequences that they soon wait.
fn narrow(max_num_seqs: usize) -> Preset {
    preset().with_max_num_seqs(max_num_seqs).unwrap()
}

fn run(campaign: &Campaign, preset: &Preset) -> Outcome {
    campaign.run(preset, |_| true).unwrap()
}

#[test]
fn a_narrow_engine_is_saturated_and_soaks_with_a_share_of_its_users() {
    let mut seen = Vec::new();
    let campaign = campaign();
    let outcome = campaign
        .run(&narrow(12), |tick| {
            seen.push((tick.at, tick.controller.phase(), tick.users));
            true
        })
        .unwrap();
    let course = &outcome.course;
    assert_eq!(course.ending, Some(Ending::Completed));
    let t2 = course.t2_users.expect("twelve at a time are too few");
    assert!((16..96).contains(&t2), "{t2}");
    let soak = course.span(Phase::Soak).unwrap();
    assert_eq!(soak.to - soak.from, secs(120));
    let in_soak = seen
        .iter()
        .filter(|(at, ..)| *at > soak.from && *at < soak.to);
    for (at, _, users) in in_soak {
        assert_eq!(*users, (f64::from(t2) * 0.85) as u32, "at {at:?}");
    }
    assert!(
        seen.iter()
            .map(|(at, ..)| *at)
            .eq((0..seen.len() as u64).map(secs))
    );
    assert_eq!(outcome.length, soak.to);
    assert_eq!(run(&campaign, &narrow(12)).course, *course);
}

#[test]
fn what_is_scraped_agrees_with_the_answers() {
    let query = |text: &str| text.parse::<Query>().unwrap();
    let texts = [
        "mean(engine:vllm:time_to_first_token_seconds)",
        "mean(client:ttft_seconds)",
        "mean(engine:vllm:e2e_request_latency_seconds)",
        "mean(client:e2e_seconds)",
        "increase(client:requests_total)",
        "increase(engine:vllm:request_success_total{finished_reason=\"stop\"})",
        "increase(engine:vllm:generation_tokens_total)",
        "increase(engine:vllm:prompt_tokens_total)",
        "mean(engine:vllm:inter_token_latency_seconds)",
        "mean(engine:vllm:request_queue_time_seconds)",
        "mean(engine:vllm:request_prefill_time_seconds)",
        "avg(gpu:DCGM_FI_DEV_GPU_UTIL)",
        "sum(gpu:DCGM_FI_PROF_NVLINK_TX_BYTES)",
        "max(client:users)",
        "max(engine:vllm:kv_cache_usage_perc)",
    ];
    let campaign = Campaign {
        queries: texts.map(query).to_vec(),
        plan: Plan {
            max_users: 16,
            ..plan()
        },
        ..campaign()
    };
    let preset = preset();
    let outcome = run(&campaign, &preset);
    let all = Span {
        from: Duration::ZERO,
        to: outcome.length,
    };
    let asked = texts.map(|text| outcome.telemetry.ask(&query(text), all).expect(text));
    let rows = &outcome.exchanges;
    let mean = |of: fn(&Exchange) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.02, "{a} {b}");
    near(asked[0], mean(Exchange::ttft_s));
    // The engine counts first tokens, the client answers.
    near(asked[0], asked[1]);
    near(asked[2], mean(Exchange::e2e_s));
    assert!((asked[2] - asked[3]).abs() < 1e-9);
    assert_eq!((asked[4], asked[5]), (rows.len() as f64, rows.len() as f64));
    near(
        asked[6],
        rows.iter().map(|r| f64::from(r.output_tokens)).sum(),
    );
    near(
        asked[7],
        rows.iter().map(|r| f64::from(r.prompt_tokens)).sum(),
    );
    near(asked[8], mean(|row| row.tpot_s().unwrap()));
    assert!((asked[9] - mean(Exchange::queue_s)).abs() < 1e-9);
    near(asked[10], mean(Exchange::prefill_s));
    assert!((1.0..=100.0).contains(&asked[11]));
    let tokens = asked[6]
        + asked[7]
            * (1.0 - mean(|r| f64::from(r.cached_tokens)) / mean(|r| f64::from(r.prompt_tokens)));
    let nvlink = tokens / outcome.length.as_secs_f64() * preset.gpus.nvlink_bytes_per_token() * 4.0;
    near(asked[12], nvlink);
    assert_eq!(asked[13], 16.0);
    assert!(asked[14] > 0.0 && asked[14] < 1.0);
}

#[test]
fn samples_have_the_names_and_labels_of_the_engines_own_pages() {
    let mut samples = Vec::new();
    let campaign = Campaign {
        replicas: 2,
        ..campaign()
    };
    let preset = preset();
    let outcome = campaign.run(&preset, |tick| {
        if tick.at == secs(9) {
            samples = tick.samples.to_vec();
        }
        tick.at < secs(10)
    });
    assert_eq!(outcome.unwrap().course.ending, Some(Ending::Interrupted));
    let targets: Vec<&str> = samples.iter().map(|s| s.target.as_str()).collect();
    assert_eq!(targets, ["engine", "gpu", "client"]);
    let engine = &samples[0].values;
    let labels = |engine: &str, reason: Option<&str>| {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let reason = reason.map(|reason| pair("finished_reason", reason));
        let model = pair("model_name", &preset.model);
        let own = std::iter::once(pair("engine", engine));
        own.chain(reason).chain([model]).collect::<Vec<_>>()
    };
    for number in ["0", "1"] {
        let of = |metric: &str, reason| {
            let wanted = labels(number, reason);
            let is_it =
                |v: &&experiment::telemetry::Value| v.metric == metric && v.labels == wanted;
            engine.iter().find(is_it).map(|v| v.value)
        };
        assert!(of("vllm:time_to_first_token_seconds_count", None).unwrap() > 0.0);
        assert!(of("vllm:request_success_total", Some("stop")).unwrap() > 0.0);
        assert_eq!(of("vllm:request_success_total", Some("abort")), Some(0.0));
        assert_eq!(of("vllm:num_preemptions_total", None), Some(0.0));
        assert!(of("vllm:num_requests_running", None).is_some());
    }
    let gpus = samples[1]
        .values
        .iter()
        .filter(|v| v.metric == "DCGM_FI_DEV_POWER_USAGE");
    let labels: Vec<&Vec<(String, String)>> = gpus.map(|v| &v.labels).collect();
    assert_eq!(labels.len(), 8, "four of each engine");
    assert!(labels.iter().all(|labels| labels.is_sorted()));
    assert!(samples[0].values.iter().all(|v| v.labels.is_sorted()));
}

#[test]
fn a_small_cache_ends_it_within_two_scrapes_of_five_percent() {
    let mut campaign = campaign();
    for profile in &mut campaign.traffic.profiles {
        // Answers, which nobody has made room for, are longer than prompts.
        profile.talk.first_tokens = Length::fixed(200.0);
        profile.talk.output_tokens = Length::fixed(600.0);
        profile.talk.turns = Length::fixed(1.0);
    }
    let small = preset().with_kv_blocks(2000).unwrap();
    let series = |sample: &Sample, metric: &str| {
        let values = sample.values.iter().filter(|v| v.metric == metric);
        values.map(|v| v.value).sum::<f64>()
    };
    let mut counts = Vec::new();
    let mut passed = None;
    let outcome = campaign
        .run(&small, |tick| {
            let engine = &tick.samples[0];
            counts.push([
                series(engine, "vllm:num_preemptions_total"),
                series(engine, "vllm:request_success_total"),
            ]);
            let now = counts.len() - 1;
            let [lost, done] = counts[now];
            let [lost_before, done_before] = counts[now.saturating_sub(60)];
            if (lost - lost_before) / (done - done_before).max(1.0) > 0.05 {
                passed.get_or_insert(tick.at);
            }
            true
        })
        .unwrap();
    let Some(Ending::Aborted(limit)) = &outcome.course.ending else {
        panic!("{:?}", outcome.course.ending);
    };
    assert_eq!(limit.gate, "T3");
    assert!(limit.value > 0.05, "{limit:?}");
    let passed = passed.expect("it is what ended it");
    println!("passed at {passed:?}, ended at {:?}", outcome.length);
    assert!(outcome.length <= passed + secs(2));
    let last = outcome.course.events.last().unwrap();
    assert_eq!((last.kind, last.at), (EventKind::Ended, outcome.length));
}

#[test]
fn twice_the_engines_take_more_users_and_users_who_think_longer_are_more() {
    let t2 = |campaign: &Campaign| run(campaign, &narrow(12)).course.t2_users;
    let one = t2(&campaign()).unwrap();
    let two = t2(&Campaign {
        replicas: 2,
        ..campaign()
    });
    assert!(two.is_none_or(|two| two >= one + 16), "{one} {two:?}");
    let slow = t2(&Campaign {
        traffic: campaign().traffic.with_think_factor(3.0).unwrap(),
        ..campaign()
    });
    assert!(slow.is_none_or(|slow| slow >= one + 16), "{one} {slow:?}");
}

#[test]
fn a_factor_of_pauses_is_that_of_their_means_and_senseless_ones_are_refused() {
    let paper = Traffic::named("paper").unwrap();
    let slowed = paper.clone().with_think_factor(2.5).unwrap();
    for (before, after) in paper.profiles.iter().zip(&slowed.profiles) {
        let ratio = before.think.rate().unwrap() / after.think.rate().unwrap();
        assert!((ratio - 2.5).abs() < 1e-9, "{}", before.name);
        let (cv2, same) = (before.think.cv2().unwrap(), after.think.cv2().unwrap());
        assert!((cv2 - same).abs() < 1e-9);
    }
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(paper.clone().with_think_factor(factor).is_err());
    }
}

#[test]
fn limits_of_a_preset_can_be_others_as_long_as_they_make_sense() {
    let changed = preset().with_kv_blocks(1000).unwrap();
    assert_eq!(changed.scheduler.kv.blocks, 1000);
    assert!(changed.gpus.kv_mib < preset().gpus.kv_mib);
    for blocks in [0, 1, MOST_BLOCKS + 1] {
        assert!(preset().with_kv_blocks(blocks).is_err());
    }
    assert!(preset().with_max_num_seqs(0).is_err());
    let error = preset().with_max_num_seqs(1 << 30).unwrap_err();
    assert!(error.to_string().contains("max_num_seqs"), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anybody_asks() {
    let refused = |campaign: Campaign| {
        let error = campaign.run(&preset(), |_| panic!("it began")).unwrap_err();
        error.to_string()
    };
    for replicas in [0, 65] {
        let says = refused(Campaign {
            replicas,
            ..campaign()
        });
        assert!(says.contains("1 to 64"), "{says}");
    }
    let says = refused(Campaign {
        plan: Plan {
            step: 0,
            max_held: 0,
            ..plan()
        },
        ..campaign()
    });
    assert!(says.contains("ramp.step") && says.contains("ramp.max_held"));
    let mut long = campaign();
    long.traffic.profiles[0].talk.first_tokens = Length::fixed(9e6);
    assert!(refused(long).contains("longer than"));
}

/// The published method with the preset and the users that come with the program, seed 1; `docs/engine.md` has more.
#[test]
fn the_published_campaign_is_saturated_near_224_users() {
    let campaign = Campaign {
        traffic: Traffic::named("paper").unwrap(),
        plan: Plan::default(),
        ..campaign()
    };
    let preset = Preset::named("gpt-oss-120b.h100x4-paper").unwrap();
    let outcome = campaign.run(&preset, |tick| {
        !matches!(tick.controller.phase(), Phase::Retract | Phase::Soak)
    });
    let course = outcome.unwrap().course;
    let t2 = course.t2_users.expect("it is saturated");
    println!("T2 {t2}, baselines {:?}", course.baselines);
    assert!((208..=232).contains(&t2), "{t2}");
    let (_, baseline) = &course.baselines[0];
    assert!(baseline.is_some_and(|s| (0.05..0.06).contains(&s)));
}

/// A soak and a campaign that holds its users are the same.
#[test]
fn users_of_a_campaign_are_those_of_a_soak() {
    let traffic = campaign().traffic;
    let soak = soak::Soak {
        traffic: traffic.clone(),
        users: 16,
        length: secs(400),
        warm_up: secs(60),
        seed: 1,
    };
    let soak = soak.run(&preset()).unwrap();
    let flat = Campaign {
        plan: Plan {
            baseline: Baseline {
                users: 16,
                warm_up: secs(60),
                min: secs(340),
                requests: 1,
                max: secs(340),
            },
            max_users: 16,
            ..plan()
        },
        ..campaign()
    };
    let outcome = flat.run(&preset(), |tick| tick.at < secs(400)).unwrap();
    let rows: Vec<&Exchange> = outcome
        .exchanges
        .iter()
        .filter(|r| r.last >= secs(60))
        .collect();
    let ttft = rows.iter().map(|r| r.ttft_s()).sum::<f64>() / rows.len() as f64;
    println!(
        "{} and {} answers, TTFT {ttft} and {}",
        rows.len(),
        soak.requests,
        soak.ttft.mean
    );
    assert!((ttft / soak.ttft.mean - 1.0).abs() < 0.05);
    assert!((rows.len() as f64 / soak.requests as f64 - 1.0).abs() < 0.05);
}

#[test]
fn a_campaign_that_cannot_go_on_tells_what_it_had_until_then() {
    let mut campaign = campaign();
    let mut flood = profile("flood", 1.0);
    flood.comes = Comes::Sessions {
        arrivals: Process::Exponential { mean_s: 0.0005 },
    };
    campaign.traffic.profiles.push(flood);
    let outcome = campaign.run(&preset(), |_| true).expect("an outcome");
    let fault = outcome.fault.expect("more than the engine can serve");
    assert!(matches!(fault, CampaignError::Crowd(CrowdError::Overload)));
    assert_eq!(
        outcome.course.ending,
        Some(Ending::Broken(fault.to_string()))
    );
    assert!(outcome.length > secs(20) && !outcome.exchanges.is_empty());
}
