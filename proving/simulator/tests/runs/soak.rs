//! Closed loops, open ones and ramps: the same from a seed, Little's law, and what users find of their own past.

use std::time::Duration;

use experiment::arrivals::{Mmpp, Process, Scope};
use simulator::bounds::Bounds;
use simulator::preset::Preset;
use simulator::soak::{
    Answers, Comes, Length, Plan, Profile, Ramp, Report, Soak, SoakError, Talk, Traffic, Window,
    soak,
};

use crate::{preset, talk};

fn plan() -> Plan {
    Plan {
        users: 20,
        think: Duration::from_millis(7550),
        prompt_tokens: 7300,
        cached_tokens: 704,
        output_tokens: 405,
        variation: 0.3,
        length: Duration::from_secs(300),
        warm_up: Duration::from_secs(60),
        seed: 1,
    }
}

/// Its prompts and answers are short, so that an hour takes no time.
fn profile(name: &str, weight: f64, think: Process) -> Profile {
    Profile {
        name: name.into(),
        comes: Comes::Users { weight },
        think,
        scope: Scope::Profile,
        talk: Talk {
            first_tokens: Length::fixed(100.0),
            turn_tokens: Length::fixed(50.0),
            output_tokens: Length::fixed(5.0),
            ..talk()
        },
    }
}

fn exponential(mean_s: f64) -> Process {
    Process::Exponential { mean_s }
}

fn of(profiles: Vec<Profile>, users: u32, seconds: u64) -> Soak {
    Soak {
        traffic: Traffic { profiles },
        users,
        length: Duration::from_secs(seconds),
        warm_up: Duration::ZERO,
        seed: 1,
    }
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_seed_another() {
    let report = |seed| {
        let report = soak(&preset(), &Plan { seed, ..plan() }).unwrap();
        serde_json::to_string(&report).unwrap()
    };
    assert_eq!(report(1), report(1));
    assert_ne!(report(1), report(2));
    let paper = |seed| {
        let traffic = Traffic::named("paper").unwrap();
        let soak = Soak {
            traffic,
            seed,
            users: 10,
            ..plan().soak()
        };
        serde_json::to_string(&soak.run(&preset()).unwrap()).unwrap()
    };
    assert_eq!(paper(1), paper(1));
    assert_ne!(paper(1), paper(2));
}

#[test]
fn answers_obey_littles_law_and_the_loop_is_closed() {
    let report = soak(&preset(), &plan()).unwrap();
    let users = report.requests_per_s * (report.e2e.mean + 7.55);
    assert!((users - 20.0).abs() < 1.5, "{users} users by Little's law");
    let before = preset().frontend.before_queue.as_secs_f64();
    let in_engine = report.requests_per_s * (report.e2e.mean - before);
    assert!((report.running + report.waiting - in_engine).abs() < 1.0);
    assert_eq!(report.preemptions, 0);
    assert!((report.prefix_hit_rate - 704.0 / 8004.0).abs() < 0.01);
}

#[test]
fn steps_beyond_what_the_preset_was_fitted_to_are_counted() {
    let beyond = |sequences: Option<u32>| {
        let mut preset = preset();
        preset.bounds = sequences.map(|sequences| Bounds {
            sequences,
            context: 100_000,
        });
        soak(&preset, &plan()).unwrap().beyond_bounds
    };
    assert_eq!((beyond(None), beyond(Some(20))), (0.0, 0.0));
    let some = beyond(Some(4));
    assert!(some > 0.1 && some < 1.0, "{some}");
}

#[test]
fn more_users_wait_longer() {
    let ttft = |users| {
        soak(&preset(), &Plan { users, ..plan() })
            .unwrap()
            .ttft
            .mean
    };
    assert!(ttft(10) < ttft(100));
}

/// One user alone, on a cache that holds everything: tokens asked for and tokens found, of whole conversations.
fn expected(answers: Answers) -> (u64, u64) {
    let (mut asked, mut found) = (0, 0);
    let (mut prompt, mut past) = (1160, 160);
    for turn in 0..4 {
        asked += prompt;
        // The shared beginning is ten whole blocks; the first turn of the first conversation finds none of it.
        found += if turn == 0 { 160 } else { past / 16 * 16 };
        past = match answers {
            Answers::Own => prompt + 50 - 1, // the last token is never fed back
            Answers::Recorded => prompt,
        };
        prompt += 50 + 300;
    }
    (asked, found)
}

#[test]
fn a_prompt_contains_the_prompt_and_the_answer_before() {
    for answers in [Answers::Own, Answers::Recorded] {
        let mut one = profile("one", 1.0, exponential(1.0));
        one.talk = Talk { answers, ..talk() };
        let report = of(vec![one], 1, 1000).run(&preset()).unwrap();
        assert!(report.requests > 400);
        let (asked, found) = expected(answers);
        let rounds = report.requests as f64 / 4.0;
        let share = (found as f64 * rounds - 160.0) / (asked as f64 * rounds);
        // A conversation that the end cuts is the only thing that is not counted exactly.
        let off = (report.prefix_hit_rate - share).abs();
        assert!(
            off < 2e-3,
            "{answers:?}: {} for {share}",
            report.prefix_hit_rate
        );
    }
    let (asked, own) = expected(Answers::Own);
    let (_, recorded) = expected(Answers::Recorded);
    assert!(own - recorded >= 3 * 48 && own < asked);
}

#[test]
fn users_past_is_lost_when_others_fill_the_cache() {
    let hits = |blocks| {
        let mut preset = preset();
        preset.scheduler.kv.blocks = blocks;
        let mut all = profile("all", 1.0, exponential(20.0));
        all.talk = Talk {
            turns: Length::fixed(20.0),
            ..talk()
        };
        of(vec![all], 30, 900).run(&preset).unwrap()
    };
    let (ample, tight) = (hits(380_000), hits(4_000));
    assert!(ample.prefix_hit_rate > 0.85, "{}", ample.prefix_hit_rate);
    assert!(
        tight.prefix_hit_rate < ample.prefix_hit_rate - 0.2,
        "{}",
        tight.prefix_hit_rate
    );
    assert!(tight.ttft.mean > ample.ttft.mean);
}

#[test]
fn profiles_have_their_shares_of_the_users_and_their_own_pauses() {
    let profiles = vec![
        profile("few", 1.0, exponential(2.0)),
        profile(
            "many",
            3.0,
            Process::Gamma {
                mean_s: 8.0,
                cv: 1.5,
            },
        ),
    ];
    let report = of(profiles, 40, 3000).run(&preset()).unwrap();
    let [few, many] = &report.profiles[..] else {
        panic!("{:?}", report.profiles);
    };
    assert_eq!((few.users, many.users), (10, 30));
    assert!((few.think_s - 2.0).abs() < 0.1, "{}", few.think_s);
    assert!((many.think_s - 8.0).abs() < 0.4, "{}", many.think_s);
    for profile in [few, many] {
        let users = profile.requests_per_s * (profile.think_s + profile.e2e.mean);
        let off = (users / f64::from(profile.users) - 1.0).abs();
        assert!(off < 0.03, "{}: {users} users", profile.name);
    }
}

#[test]
fn bursts_are_seen_where_users_share_them_and_not_where_each_has_its_own() {
    let burstiness = |scope, think: &Process| {
        let mut all = profile("all", 1.0, think.clone());
        all.scope = scope;
        of(vec![all], 60, 3000)
            .run(&preset())
            .unwrap()
            .dispersion_10s
    };
    let bursts = Process::Mmpp(Mmpp::on_off(4.0, 6.0, 24.0).unwrap());
    let poisson = burstiness(Scope::Profile, &exponential(8.0));
    let apart = burstiness(Scope::User, &bursts);
    let together = burstiness(Scope::Profile, &bursts);
    println!("Poisson {poisson}, apart {apart}, together {together}");
    assert!(poisson < 1.2);
    assert!(apart > 2.0 * poisson && together > 10.0 * apart);
}

#[test]
fn an_open_loop_has_the_law_of_its_arrivals_whatever_the_engine_does() {
    let of_arrivals = |arrivals: Process| {
        let mut all = profile("all", 1.0, exponential(1.0));
        all.comes = Comes::Sessions { arrivals };
        all.talk.turns = Length::fixed(1.0);
        of(vec![all], 0, 4000).run(&preset()).unwrap()
    };
    let poisson = of_arrivals(exponential(0.5));
    assert_eq!(poisson.users, 0);
    assert!((poisson.requests_per_s - 2.0).abs() < 0.1);
    assert!(
        (poisson.dispersion_10s - 1.0).abs() < 0.25,
        "{}",
        poisson.dispersion_10s
    );
    let law = Process::Gamma {
        mean_s: 0.5,
        cv: 2.0,
    };
    let expected = law.dispersion(10.0).unwrap();
    let gamma = of_arrivals(law);
    assert!(
        (gamma.dispersion_10s / expected - 1.0).abs() < 0.25,
        "{}",
        gamma.dispersion_10s
    );
    let law = Mmpp::with_factor(0.5, 3.0, 6.0, 24.0).unwrap();
    let modulated = of_arrivals(Process::Mmpp(law));
    assert!(
        (modulated.dispersion_10s / law.dispersion(10.0) - 1.0).abs() < 0.3,
        "{} for {}",
        modulated.dispersion_10s,
        law.dispersion(10.0)
    );
}

#[test]
fn turns_of_an_open_conversation_follow_their_answers_beside_closed_users() {
    let mut open = profile("open", 1.0, exponential(3.0));
    open.comes = Comes::Sessions {
        arrivals: exponential(4.0),
    };
    let profiles = vec![open, profile("closed", 1.0, exponential(8.0))];
    let report = of(profiles, 10, 4000).run(&preset()).unwrap();
    let [open, closed] = &report.profiles[..] else {
        panic!("{:?}", report.profiles);
    };
    assert_eq!((open.users, closed.users), (0, 10));
    assert!((open.requests_per_s - 1.0).abs() < 0.1, "four turns in 4 s");
    assert!(open.cached_share > 0.6 && closed.cached_share > 0.6);
}

#[test]
fn more_arrivals_than_an_engine_can_serve_are_told() {
    let mut all = profile("all", 1.0, exponential(1.0));
    all.comes = Comes::Sessions {
        arrivals: exponential(0.0005),
    };
    let error = of(vec![all], 0, 600).run(&preset()).unwrap_err();
    assert!(error.to_string().contains("more arrive"), "{error}");
}

#[test]
fn a_ramp_lets_users_come_and_stops_when_they_are_too_many() {
    let mut preset = preset();
    preset.scheduler.max_num_seqs = 12;
    let all = Profile {
        talk: talk(),
        ..profile("all", 1.0, exponential(1.0))
    };
    let soak = Soak {
        warm_up: Duration::from_secs(20),
        ..of(vec![all], 80, 1)
    };
    let ramp = Ramp {
        users: 8,
        every: Duration::from_secs(30),
        alone: Duration::from_secs(120),
        ..Ramp::default()
    };
    let report = soak.ramp(&preset, &ramp).unwrap();
    let t2 = report.t2.expect("twelve at a time are too few");
    assert!((16..64).contains(&t2), "{t2}");
    let mut users: Vec<u32> = report.windows.iter().map(|w| w.users).collect();
    users.dedup();
    let until: Vec<u32> = (1..=t2 / 8).map(|step| step * 8).collect();
    assert_eq!(users, until);
    for pair in report.windows.windows(2) {
        let held = pair[0].users == pair[1].users;
        assert_eq!(
            held, pair[0].too_slow,
            "users come after every quiet window"
        );
    }
    assert_eq!(report.stopped, None);
    let (slow, fine): (Vec<&Window>, Vec<&Window>) =
        report.windows.iter().partition(|w| w.too_slow);
    assert!(slow.len() >= 2 && !fine.is_empty());
    assert!((report.line_s / report.baseline_s - 3.0).abs() < 1e-9);
    assert_eq!(soak.ramp(&preset, &ramp).unwrap(), report);
    let unlimited = soak.ramp(&crate::preset(), &ramp).unwrap();
    assert!(unlimited.t2.is_none_or(|later| later > t2));
}

#[test]
fn a_ramp_on_an_engine_that_is_too_slow_ends_soon_and_one_without_a_baseline_is_an_error() {
    let exponential = |mean_s| Process::Exponential { mean_s };
    let soak = |users| {
        let all = profile("all", 1.0, exponential(1.0));
        Soak {
            warm_up: Duration::from_secs(20),
            ..of(vec![all], users, 1)
        }
    };
    let mut stuck = preset();
    // A step of ten minutes: who comes first has no token while the others come.
    stuck.step.overhead_ms = 600_000.0;
    let error = soak(80).ramp(&stuck, &Ramp::default()).unwrap_err();
    assert!(matches!(error, SoakError::Nothing), "{error}");
    // One at a time: soon everybody waits for everybody.
    let mut slow = preset();
    slow.scheduler.max_num_seqs = 1;
    slow.step.overhead_ms = 100.0;
    let report = soak(80).ramp(&slow, &Ramp::default()).unwrap();
    assert!(report.t2.is_some_and(|t2| t2 <= 32), "{:?}", report.t2);
    let too_long = Ramp {
        every: Duration::from_secs(1 << 40),
        ..Ramp::default()
    };
    let error = soak(80).ramp(&preset(), &too_long).unwrap_err();
    assert!(error.to_string().contains("ramp.window"), "{error}");
}

#[test]
fn a_plan_without_sense_is_refused() {
    let refused = |plan: Plan| soak(&preset(), &plan).unwrap_err().to_string();
    assert!(refused(Plan { users: 0, ..plan() }).contains("users"));
    assert!(
        refused(Plan {
            variation: f64::NAN,
            ..plan()
        })
        .contains("variation")
    );
    assert!(
        refused(Plan {
            warm_up: Duration::from_secs(300),
            ..plan()
        })
        .contains("warm-up")
    );
    assert!(
        refused(Plan {
            think: Duration::ZERO,
            ..plan()
        })
        .contains("pause")
    );
    assert!(
        refused(Plan {
            cached_tokens: 140_000,
            ..plan()
        })
        .contains("131072")
    );
    assert!(
        refused(Plan {
            prompt_tokens: 0,
            ..plan()
        })
        .contains("first_tokens")
    );
    let soon = Plan {
        length: Duration::from_millis(20),
        warm_up: Duration::ZERO,
        ..plan()
    };
    assert!(refused(soon).contains("too short"));
    let ramp = |ramp: Ramp| {
        plan()
            .soak()
            .ramp(&preset(), &ramp)
            .unwrap_err()
            .to_string()
    };
    let few = Ramp {
        users: 0,
        ..Ramp::default()
    };
    assert!(ramp(few).contains("step"));
    let soon = Ramp {
        alone: Duration::from_secs(60),
        ..Ramp::default()
    };
    assert!(ramp(soon).contains("alone"));
}

/// The published test with the preset and the users that come with the program, over a short while; `docs/engine.md` has
/// three hours and the ramp.
fn published(users: u32) -> Report {
    let soak = Soak {
        traffic: Traffic::named("paper").unwrap(),
        users,
        length: Duration::from_secs(420),
        warm_up: Duration::from_secs(120),
        seed: 1,
    };
    soak.run(&Preset::named("gpt-oss-120b.h100x4-paper").unwrap())
        .unwrap()
}

#[test]
fn the_published_table_comes_out() {
    let report = published(190);
    let table = [
        ("TTFT", report.ttft.mean, 0.103, 0.06),
        ("TPOT", report.tpot.mean, 0.035, 0.04),
        ("prefill", report.prefill.mean, 0.074, 0.06),
        ("E2E", report.e2e.mean, 14.29, 0.04),
        ("requests a second", report.requests_per_s, 8.7, 0.04),
        ("KV", report.kv_usage_mean, 0.105, 0.08),
    ];
    for (name, came_out, published, within) in table {
        let off = came_out / published - 1.0;
        println!("{name}: {came_out:.4}, published {published}, {off:+.3}");
        assert!(off.abs() < within, "{name} is off by {off:+.3}");
    }
    assert_eq!(report.preemptions, 0);
    assert!(report.queue.mean < 0.003, "{} s", report.queue.mean);
}

#[test]
fn the_published_edge_lies_between_208_and_240_users() {
    let line = 3.0 * 0.057; // of the ramp's first users
    let (below, above) = (published(208), published(240));
    println!("{} s, {} s", below.ttft.mean, above.ttft.mean);
    assert!(below.ttft.mean < line && above.ttft.mean > 4.0 * line);
    assert_eq!(below.preemptions + above.preemptions, 0);
}
