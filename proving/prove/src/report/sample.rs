//! Documents to try reports with: one as full as the white paper's campaign, and one of a campaign that ended at once.
//!
//! The figures are near the published ones, and made up.

use std::collections::BTreeMap;

use serde_json::json;

use crate::report::document::{
    Case, Document, Errors, Event, Generator, Hardware, Isolated, Latency, Objective, Overhead,
    Phase, PrefixCache, Profile, Published, Quantiles, Reproduce, Scenario, Series, Soak, Step,
    Throttling, Tokens, VERSION, Verdict, Verified,
};

/// Names and values.
pub(crate) fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

/// A campaign that ended before it began.
pub(crate) fn empty() -> Document {
    Document {
        version: VERSION,
        verdict: Verdict::Unreachable,
        reason: "the gate at 127.0.0.1:1975 could not be reached".into(),
        reservations: Vec::new(),
        baseline_ttft_ms: None,
        t2_users: None,
        t3: false,
        soak: None,
        scenario: Scenario {
            name: "white-paper".into(),
            title: "How many users does one engine bear?".into(),
            is_virtual: false,
            is_engine_simulated: false,
            started_unix_ms: 1_800_000_000_000,
            seconds: 1.5,
            under_test: BTreeMap::new(),
        },
        phases: Vec::new(),
        latency: Vec::new(),
        steps: Vec::new(),
        events: Vec::new(),
        ttft_limit_s: None,
        series: BTreeMap::new(),
        overhead: None,
        profiles: Vec::new(),
        certificate: None,
        generator: None,
        tokens: Vec::new(),
        prefix_cache: PrefixCache::default(),
        errors: Vec::new(),
        verify: None,
        objectives: Vec::new(),
        published: Vec::new(),
        hardware: Hardware::default(),
        reproduce: Reproduce::default(),
    }
}

/// A campaign like the white paper's.
pub(crate) fn full() -> Document {
    Document {
        verdict: Verdict::Passed,
        reason:
            "T2 at 224 users with zero preemptions; 190 users for three hours kept every objective"
                .into(),
        baseline_ttft_ms: Some(71.25),
        t2_users: Some(224),
        soak: Some(Soak {
            users: 190,
            seconds: 10_800.0,
            requests: 93_960,
            ttft_ms: Some(103.0),
            tpot_ms: Some(35.0),
            e2e_s: Some(14.293),
            requests_per_second: 8.7,
            kv_cache: Some(0.105),
            preemptions: Some(0),
        }),
        scenario: Scenario {
            name: "white-paper".into(),
            title: "How many agents do four H100 bear behind the gateway?".into(),
            is_virtual: true,
            is_engine_simulated: true,
            started_unix_ms: 1_800_000_000_000,
            seconds: 12_690.0,
            under_test: pairs(&[
                ("gateway", "tollgate 0.1.0, 8 workers, quota of 8 cores"),
                ("engine", "vLLM 0.11, simulated, preset h100x4"),
                ("model", "gpt-oss-120b, tensor parallel over 4"),
                ("hardware", "4 × H100 SXM 80 GB, NVLink"),
            ]),
        },
        phases: phases(),
        latency: latency(),
        steps: steps(),
        events: events(),
        ttft_limit_s: Some(0.21375),
        series: series(),
        overhead: Some(overhead()),
        profiles: profiles(),
        certificate: Some(certificate()),
        generator: Some(Generator {
            threads: 2,
            cores: 0.42,
            lag: Some(quantiles(93_960, 0.000_08)),
            rows_lost: 0,
            verdict: "good".into(),
        }),
        tokens: tokens(),
        prefix_cache: PrefixCache {
            predicted: Some(0.8613),
            measured: Some(0.8427),
            measured_throughout: Some(0.9158),
            sessions: Some(20_412),
            unique_sessions: Some(20_396),
            corpus_unique_sessions: Some(20_396),
            begun_sessions: Some(40_890),
            expected: Some(0.93),
        },
        errors: vec![Errors {
            phase: "soak".into(),
            kind: "timeout".into(),
            count: 12,
            says: Some("no byte for 120 s".into()),
        }],
        verify: Some(verified()),
        objectives: vec![
            objective("mean TTFT below 150 ms", 0.15, Some(0.103), true),
            objective("errors below 0.1 %", 0.001, Some(0.000_125), true),
        ],
        published: published(),
        hardware: Hardware {
            kv_cache_mean: Some(0.105),
            kv_cache_max: Some(0.131),
            nvlink_bytes_per_s: Some(261.87e9),
            nvlink_convention:
                "TX and RX of all four GPUs added, so that each byte counts at both of its ends"
                    .into(),
            gpu_utilisation: Some(0.87),
            power_w: Some(2_310.0),
            gpus: Some(4),
        },
        reproduce: reproduce(),
        ..empty()
    }
}

fn quantiles(count: u64, mean: f64) -> Quantiles {
    Quantiles {
        count,
        mean,
        p50: mean * 0.92,
        p90: mean * 1.4,
        p95: mean * 1.72,
        p99: mean * 2.6,
        p999: mean * 4.1,
        max: mean * 9.7,
    }
}

fn phases() -> Vec<Phase> {
    let phase = |name: &str, from_s, to_s, max_users, requests, peak, errors| Phase {
        name: name.into(),
        from_s,
        to_s,
        max_users,
        requests,
        requests_per_s: requests as f64 / (to_s - from_s),
        peak_requests_per_s: peak,
        errors,
        error_share: errors as f64 / requests as f64,
    };
    vec![
        phase("baseline", 0.0, 300.0, 8, 115, 0.9, 0),
        phase("ramp", 300.0, 1_800.0, 224, 8_120, 10.0, 0),
        phase("retract", 1_800.0, 1_890.0, 190, 801, 9.1, 0),
        phase("soak", 1_890.0, 12_690.0, 190, 93_960, 9.8, 12),
    ]
}

fn latency() -> Vec<Latency> {
    let row = |measure: &str, engine, client: Option<f64>| Latency {
        measure: measure.into(),
        engine_mean_s: engine,
        client: client.map(|mean| quantiles(93_948, mean)),
    };
    vec![
        row("TTFT", Some(0.103), Some(0.1052)),
        row("TPOT", Some(0.035), Some(0.0351)),
        row("ITL", Some(0.035), Some(0.0351)),
        row("queue", Some(0.000_4), None),
        row("prefill", Some(0.074), None),
        row("E2E", Some(14.291), Some(14.293)),
    ]
}

fn steps() -> Vec<Step> {
    let users = (1..=29)
        .map(|step| step * 8)
        .filter(|users| *users <= 224)
        .chain([224]);
    let step = |(at, users): (usize, u32)| {
        let load = f64::from(users) / 224.0;
        let mean = 0.0712 * (1.0 + 0.35 * load) + 0.135 * load.powi(14);
        Step {
            users,
            from_s: 300.0 + at as f64 * 52.0,
            to_s: 352.0 + at as f64 * 52.0,
            requests: u64::from(users) * 2,
            requests_per_s: 10.2 * load.powf(0.93),
            output_tokens_per_s: Some(4_100.0 * load.powf(0.93)),
            ttft_mean_s: Some(mean),
            ttft_p50_s: Some(mean * 0.9),
            ttft_p99_s: Some(mean * (2.1 + 1.9 * load.powi(10))),
            tpot_mean_s: Some(0.021 + 0.016 * load),
            e2e_mean_s: Some(9.1 + 6.0 * load),
            kv_cache: Some(0.125 * load),
            running: Some(f64::from(users) * 0.62),
            waiting: Some((6.0 * load.powi(12)).round()),
            preemptions: Some(0),
            errors: 0,
            is_stable: at < 27,
            says: if at < 27 {
                String::new()
            } else {
                "ttft above 3.0 × baseline".into()
            },
        }
    };
    users.enumerate().map(step).collect()
}

fn events() -> Vec<Event> {
    let event = |at_s, kind: &str, users, says: &str| Event {
        at_s,
        kind: kind.into(),
        users,
        says: says.into(),
    };
    vec![
        event(300.0, "baseline", 8, "mean TTFT 71.25 ms over five windows"),
        event(352.0, "advance", 16, "every gate was quiet"),
        event(
            1_704.0,
            "hold",
            224,
            "ttft open for one window: 0.226 above 0.214",
        ),
        event(
            1_800.0,
            "retract",
            190,
            "T2: ttft open for two windows; 85 % of 224 users",
        ),
        event(12_690.0, "end", 0, "the soak's time is over"),
    ]
}

/// A value that goes up and down and is the same each time.
fn wave(at: usize, period: f64) -> f64 {
    let at = at as f64;
    0.5 + 0.3 * (at / period).sin() + 0.2 * (at / (period * 0.113)).cos()
}

fn series() -> BTreeMap<String, Series> {
    let over = |unit: &str, source: &str, of: &dyn Fn(f64, usize) -> Option<f64>| {
        let points = (0..2_000).map(|at| {
            let seconds = at as f64 * 6.345;
            (seconds, of(seconds, at))
        });
        Series {
            unit: unit.into(),
            source: source.into(),
            points: points.collect(),
        }
    };
    let users = |t: f64| match t {
        t if t < 300.0 => 8.0,
        t if t < 1_800.0 => (8.0 + ((t - 300.0) / 52.0).floor() * 8.0).min(224.0),
        _ => 190.0,
    };
    let load = |t: f64| users(t) / 224.0;
    let gate = |at: usize| 0.001_4 + 0.001_2 * wave(at, 31.0);
    let upstream = move |t: f64, at: usize| 9.1 + 6.0 * load(t) + 0.4 * wave(at, 47.0);
    let gap = |t: f64, value: f64| (!(6_000.0..6_240.0).contains(&t)).then_some(value);
    let entries = [
        (
            "users",
            over("users", "what the client had open", &|t, _| Some(users(t))),
        ),
        (
            "ttft_s",
            over(
                "s",
                "rate(vllm:time_to_first_token_seconds_sum) / rate(…_count) over 60 s",
                &|t, at| {
                    Some(
                        0.0712 * (1.0 + 0.35 * load(t))
                            + 0.135 * load(t).powi(14)
                            + 0.018 * wave(at, 23.0),
                    )
                },
            ),
        ),
        (
            "kv_cache",
            over("share", "vllm:kv_cache_usage_perc", &|t, at| {
                gap(t, 0.11 * load(t) + 0.02 * wave(at, 61.0))
            }),
        ),
        (
            "nvlink_bytes_per_s",
            over(
                "B/s",
                "DCGM_FI_PROF_NVLINK_TX_BYTES + …_RX_BYTES",
                &|t, at| gap(t, 290e9 * load(t) + 18e9 * wave(at, 37.0)),
            ),
        ),
        (
            "preemptions",
            over("count", "vllm:num_preemptions_total", &|_, _| Some(0.0)),
        ),
        (
            "requests_per_s",
            over("1/s", "what the client counted", &|t, at| {
                Some(8.6 * load(t) + 1.6 * wave(at, 5.0))
            }),
        ),
        (
            "errors_per_s",
            over("1/s", "what the client counted", &|_, at| {
                Some(if at % 171 == 170 { 0.2 } else { 0.0 })
            }),
        ),
        (
            "running",
            over("requests", "vllm:num_requests_running", &|t, at| {
                Some((140.0 * load(t) + 12.0 * wave(at, 11.0)).round())
            }),
        ),
        (
            "waiting",
            over("requests", "vllm:num_requests_waiting", &|t, at| {
                Some((6.0 * load(t).powi(12) * wave(at, 9.0)).round())
            }),
        ),
        (
            "upstream_s",
            over("s", "the gateway's record", &move |t, at| {
                Some(upstream(t, at))
            }),
        ),
        (
            "downstream_s",
            over("s", "the client's clock", &move |t, at| {
                Some(upstream(t, at) + gate(at))
            }),
        ),
        (
            "gate_s",
            over("s", "downstream less upstream, paired", &|_, at| {
                Some(gate(at))
            }),
        ),
        (
            "gpu_utilisation",
            over("share", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", &|t, at| {
                Some(0.8 * load(t) + 0.1 * wave(at, 17.0))
            }),
        ),
        (
            "power_w",
            over("W", "DCGM_FI_DEV_POWER_USAGE", &|t, at| {
                Some(1_100.0 + 1_300.0 * load(t) + 60.0 * wave(at, 17.0))
            }),
        ),
    ];
    entries
        .into_iter()
        .map(|(name, series)| (name.to_owned(), series))
        .collect()
}

fn overhead() -> Overhead {
    Overhead {
        method: "paired".into(),
        requests: 93_948,
        upstream_s: 14.291,
        downstream_s: 14.293,
        gate: quantiles(93_948, 0.002),
        parts: vec![
            ("client to gate and upstream".into(), 0.001_1),
            ("first byte back".into(), 0.000_5),
            ("last byte back".into(), 0.000_4),
        ],
        last_byte: None,
        drawn_out: None,
        isolated: Some(Isolated {
            net_of_one_hop_s: 0.001_81,
            own_s: 0.001_78,
        }),
        own_histogram_s: Some(0.001_93),
        own_record_s: Some(0.001_95),
        cdf: (1..=400)
            .map(|at| (0.000_5 * 1.01_f64.powi(at), f64::from(at) / 400.0))
            .collect(),
        throttling: Some(Throttling {
            quota_cores: Some(8.0),
            periods: 126_900,
            throttled_periods: 3,
            throttled_s: 0.014,
        }),
    }
}

fn profiles() -> Vec<Profile> {
    let profile = |name: &str, law: &str, users, prompt| Profile {
        name: name.into(),
        law: law.into(),
        users,
        requests: u64::from(users) * 494,
        requests_per_s: f64::from(users) * 0.0458,
        errors: 3,
        prompt_tokens_mean: Some(prompt),
        output_tokens_mean: Some(402.5),
        think_mean_s: Some(7.3),
        ttft: Some(quantiles(u64::from(users) * 494, 0.09 + prompt * 1e-6)),
        tpot: Some(quantiles(u64::from(users) * 494, 0.035)),
        e2e: Some(quantiles(u64::from(users) * 494, 14.2)),
        cached_share: Some(0.81),
    };
    vec![
        profile("a-orchestration", "MMPP, 2 states", 60, 9_120.0),
        profile("b-terminal", "Gamma, CV 1.5", 50, 21_400.0),
        profile("c-navigation", "exponential", 40, 6_310.0),
        profile("d-knowledge", "exponential", 40, 3_870.0),
    ]
}

fn certificate() -> serde_json::Value {
    let check = |name: &str, of: &str, found: f64, expected: Option<f64>, p: Option<f64>| {
        json!({"name": name, "of": of, "found": found, "expected": expected, "interval": null, "p": p, "limit": null,
               "outcome": "passed"})
    };
    let profile = |name: &str, process: &str, cv: f64| {
        json!({"name": name, "process": process, "open": false, "verdict": "good", "sends": 24_310, "tested": 24_250,
               "lag": {"p50_s": 0.000_05, "p99_s": 0.000_4, "max_s": 0.002_1, "early_s": 0.0, "limit_s": 0.1, "late": 0,
                       "overdue": 0},
               "checks": [check("distribution", "intended", 0.0061, None, Some(0.412)),
                          check("CV", "intended", cv * 1.004, Some(cv), Some(0.63)),
                          check("mean, s", "achieved", 7.31, Some(7.3), None)],
               "correlations": [0.001]})
    };
    json!({"verdict": "good", "significance": 0.000_083, "judged": 12, "stalled_s": 0.011,
           "profiles": [profile("a-orchestration", "mmpp(2)", 2.41), profile("b-terminal", "gamma(1.5)", 1.5),
                        profile("c-navigation", "exponential", 1.0), profile("d-knowledge", "exponential", 1.0)]})
}

fn tokens() -> Vec<Tokens> {
    let row = |workload: &str, requests, input, output, cost| Tokens {
        workload: workload.into(),
        model: "gpt-oss-120b".into(),
        requests,
        input_tokens: input,
        output_tokens: output,
        input_counted: Some(input),
        output_counted: Some(output - 11),
        drift: Some((input + output) as f64 / (input + output - 11) as f64 - 1.0),
        cost: Some(cost),
        currency: Some("USD".into()),
    };
    vec![
        row("toolbench-agent", 29_640, 270_316_800, 11_930_100, 48.31),
        row("terminal-bench-ci", 24_700, 528_580_000, 9_941_750, 85.2),
        row("swe-rebench-ide", 19_760, 124_685_600, 7_953_400, 24.62),
    ]
}

fn verified() -> Verified {
    let case = |name: &str, expected: &str, got: &str, evidence: &[&str]| Case {
        name: name.into(),
        passed: true,
        seconds: 0.31,
        expected: expected.into(),
        got: got.into(),
        evidence: evidence.iter().map(|&line| line.to_owned()).collect(),
    };
    Verified {
        suite: "white-paper".into(),
        passed: 3,
        failed: 0,
        cases: vec![
            case(
                "local rate limit",
                "2 × 200, then 4 × 429; the counter moves by 4",
                "200 200 429 429 429 429; + 4",
                &["http_local_rate_limit_rate_limited 0 -> 4"],
            ),
            case(
                "credential swap",
                "the rogue bearer never arrives",
                "the gateway's own arrived; 200",
                &[],
            ),
            case(
                "identity routing",
                "429, 200 and 404 for one body",
                "429, 200, 404",
                &["unknown-guest: 404, upstream untouched"],
            ),
        ],
    }
}

fn objective(name: &str, limit: f64, value: Option<f64>, kept: bool) -> Objective {
    Objective {
        name: name.into(),
        query: "mean(vllm:time_to_first_token_seconds)".into(),
        limit,
        value,
        kept,
    }
}

fn published() -> Vec<Published> {
    let row = |name: &str, unit: &str, published, ours, note: &str| Published {
        name: name.into(),
        unit: unit.into(),
        published,
        ours: Some(ours),
        note: note.into(),
    };
    vec![
        row(
            "T2",
            "users",
            224.0,
            224.0,
            "the engine's constants are fitted to this figure",
        ),
        row("TTFT in the soak", "s", 0.103, 0.103, ""),
        row(
            "Gateway overhead",
            "s",
            0.002,
            0.002,
            "another gateway on another machine",
        ),
        row("KV cache", "%", 10.5, 10.5, ""),
    ]
}

fn reproduce() -> Reproduce {
    Reproduce {
        command: "prove run scenarios/white-paper --virtual --out out --seed 7".into(),
        tool: "prove 0.1.0".into(),
        seed: 7,
        hashes: pairs(&[
            ("campaign.toml", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
            ("corpus", "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"),
        ]),
        versions: pairs(&[("tollgate", "0.1.0"), ("engine", "0.11.0")]),
        machine: pairs(&[("CPU", "2 cores"), ("kernel", "Linux 6.12"), ("memory", "7,936 MiB"), ("gateway's quota", "8 cores")]),
        files: ["report.json", "report.md", "samples.parquet", "requests.parquet"].map(Into::into).into(),
        scenario: "[campaign]\nname = 'white-paper'\n\n[gates.ttft]\nabove = '3.0 x baseline'\nwindows = 2\n".into(),
    }
}
