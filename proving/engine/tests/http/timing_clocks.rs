//! Real time agrees with virtual time: the same users with the same prompts, over HTTP and in a soak.
//!
//! It measures, and is a test of the lane for that (`cargo xtask timing`).
//! `ENGINE_CLOCKS=gpt-oss-120b.h100x4,40,60` sets preset, users and seconds; `--nocapture` shows the figures.
//! Invariant: both sides use the same random numbers, so that only the clock differs. The noise is measured as the
//! spread of soaks in which other users send the same prompts.
//! Not here: what a soak reports (`simulator::soak`); that the same steps run in the same order (`engine::real_time`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use engine::{EngineConfig, Hardware};
use serde_json::json;
use simulator::preset::Preset;
use simulator::soak::{Plan, Question, soak};

use crate::client::{fast, start};

/// TTFT, TPOT and E2E in seconds.
type Figures = [f64; 3];

const NAMES: [&str; 3] = ["TTFT", "TPOT", "E2E"];
const SPREAD_OF: u64 = 8;
const ROUNDS: u32 = 8;
const EVENT: &str = "data: {";

fn given() -> (String, u32, f64) {
    let text =
        std::env::var("ENGINE_CLOCKS").unwrap_or_else(|_| "gpt-oss-120b.h100x4,12,6".to_owned());
    let mut parts = text.split(',');
    let mut next = || parts.next().expect("a preset, users, seconds");
    let preset = next().to_owned();
    (preset, next().parse().unwrap(), next().parse().unwrap())
}

#[test]
#[ignore = "timing"]
fn timing_real_time_agrees_with_virtual_time() {
    let (name, users, seconds) = given();
    let preset = Preset::named(&name).unwrap();
    let plan = Plan {
        users,
        think: Duration::from_millis(500),
        prompt_tokens: 2000,
        cached_tokens: 704,
        output_tokens: 60,
        variation: 0.3,
        length: Duration::from_secs_f64(seconds),
        warm_up: Duration::from_secs_f64(seconds / 5.0),
        seed: 1,
    };
    let in_virtual = |seed| {
        let report = soak(
            &preset,
            &Plan {
                seed,
                ..plan.clone()
            },
        )
        .unwrap();
        [report.ttft.mean, report.tpot.mean, report.e2e.mean]
    };
    let expected = in_virtual(1);
    let others: Vec<Figures> = (2..2 + SPREAD_OF).map(in_virtual).collect();
    let noise: Figures = std::array::from_fn(|i| {
        deviation(&others.iter().map(|other| other[i]).collect::<Vec<_>>())
    });
    // What else runs here delays a round, and never all of them; an engine that is wrong is wrong in each.
    let agrees = (0..ROUNDS).any(|_| {
        let real = in_real_time(&preset, &plan);
        (0..NAMES.len()).all(|i| agrees(NAMES[i], expected[i], real[i], noise[i]))
    });
    assert!(agrees, "no round of {ROUNDS} agrees with virtual time");
}

/// Whether they differ by no more than twice the noise, and what a machine adds: 8 %, or 5 ms (0.5 ms of TPOT).
fn agrees(name: &str, expected: f64, real: f64, noise: f64) -> bool {
    let off = real - expected;
    println!(
        "{name}: virtual {:.2} ms, real {:.2} ms, {:+.1} %; from seed to seed {:.1} %",
        expected * 1e3,
        real * 1e3,
        off / expected * 100.0,
        noise / expected * 100.0
    );
    let least = if name == "TPOT" { 5e-4 } else { 5e-3 };
    off.abs() <= 2.0 * noise + (expected * 0.08).max(least)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

fn in_real_time(preset: &Preset, plan: &Plan) -> Figures {
    let engine = start(EngineConfig {
        models: vec![preset.model.clone()],
        hardware: Some(Hardware::from(preset)),
        max_model_len: preset.scheduler.max_model_len as usize,
        ..fast()
    });
    // The first call reads the vocabulary.
    let first = Question {
        at: Duration::ZERO,
        prompt_tokens: plan.cached_tokens,
        output_tokens: 2,
    };
    ask(engine.addr(), &preset.model, plan, first, u32::MAX);
    let (began, address) = (Instant::now(), engine.addr());
    let users: Vec<_> = (0..plan.users)
        .map(|user| {
            let (plan, preset) = (plan.clone(), preset.clone());
            std::thread::spawn(move || run_user(address, &preset, &plan, user, began))
        })
        .collect();
    let all: Vec<Figures> = users
        .into_iter()
        .flat_map(|user| user.join().unwrap())
        .collect();
    assert!(all.len() > 20, "{} answers", all.len());
    println!("{} answers in real time", all.len());
    std::array::from_fn(|i| all.iter().map(|a| a[i]).sum::<f64>() / all.len() as f64)
}

/// Runs one user until the plan's end; returns what was measured after the warm-up.
fn run_user(
    address: SocketAddr,
    preset: &Preset,
    plan: &Plan,
    user: u32,
    began: Instant,
) -> Vec<Figures> {
    let mut questions = plan.questions(user, preset.scheduler.max_model_len);
    let mut answers = Vec::new();
    for number in 0..1_000 {
        let question = questions.ask(began.elapsed());
        if question.at >= plan.length {
            break;
        }
        std::thread::sleep(question.at.saturating_sub(began.elapsed()));
        let salt = user * 1_000 + number;
        let figures = ask(address, &preset.model, plan, question, salt);
        let now = began.elapsed();
        if now > plan.length {
            break;
        }
        if now >= plan.warm_up && question.output_tokens > 1 {
            answers.push(figures);
        }
    }
    answers
}

fn ask(address: SocketAddr, model: &str, plan: &Plan, question: Question, salt: u32) -> Figures {
    let token = |i| {
        if i < plan.cached_tokens {
            i
        } else {
            (i + salt * 31) % 50_000
        }
    };
    let prompt: Vec<u32> = (0..question.prompt_tokens).map(token).collect();
    let body = json!({"model": model, "prompt": prompt, "stream": true, "ignore_eos": true,
        "max_tokens": question.output_tokens})
    .to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nhost: e\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let asked = Instant::now();
    stream.write_all((head + &body).as_bytes()).unwrap();
    let (mut first, mut last, mut tokens) = (asked, asked, 0);
    let (mut buffer, mut tail) = ([0; 16 << 10], Vec::new());
    loop {
        let read = stream.read(&mut buffer).unwrap();
        tail.extend_from_slice(&buffer[..read]);
        let events = String::from_utf8_lossy(&tail).matches(EVENT).count();
        // An event may arrive in two pieces.
        tail.drain(..tail.len().saturating_sub(EVENT.len() - 1));
        if events > 0 {
            last = Instant::now();
            first = if tokens == 0 { last } else { first };
            tokens += events;
        }
        if read == 0 {
            break;
        }
    }
    // Two tokens share an event when the stream was not ready for the first.
    assert!(tokens > 0 && tokens <= question.output_tokens as usize);
    let decode = (last - first).as_secs_f64();
    [
        (first - asked).as_secs_f64(),
        decode / f64::from(question.output_tokens.max(2) - 1),
        (last - asked).as_secs_f64(),
    ]
}
