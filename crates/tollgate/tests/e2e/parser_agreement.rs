//! What an engine understands is what the gate judged: requests in every spelling, before an engine that
//! records what came and reads it as engines in Go, Python and JavaScript do.
//!
//! Invariant: a request that reached the engine is, to each reader, the operation, the model and the caps that
//! the gate's record and reservation say; everything else was refused. The seed is printed first, the counts last.
//! `SEED=<number>` repeats a run, `TOLLGATE_READING_CASES=100000` makes it a long one.
//! Not here: single rules (`bodies`, `framing`, `http2`).

mod cases;
mod decoders;
mod engine;
mod languages;
mod senders;
mod http_versions;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use serde_json::Value;

use self::cases::{Case, Rng};
use self::decoders::{Call, DECODERS};
use self::engine::{Engine, Seen};
use self::senders::{Answer, Sender};
use crate::harness::Gate;

/// Requests of a run that is not asked to be longer.
const CASES: u64 = 4000;
/// Clients at once, each a workload of its own with a limit of its own.
const CLIENTS: u64 = 4;
/// The paths of backends' addresses; an engine at the root serves its API under `/v1` too.
const ADDRESSES: [&str; 4] = ["/v1", "/v1/", "/engine/v1", ""];
/// Tokens of each limit, renewed at less than one a second.
const LIMIT_TOKENS: u64 = 1_000_000;
/// What the engine reports of each call.
const REPORTED_TOKENS: u64 = 2;
/// More than the prompt of any case is estimated to have, and less than any cap.
const PROMPT_TOKENS: u64 = 900;
/// More than the limits renew in a run.
const RENEWED_TOKENS: u64 = 50;

/// The seed of a run: given, or a new one. Printed.
fn seed() -> u64 {
    let given = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("SEED={seed}");
    seed
}

fn config(engine: &Engine) -> String {
    let mut text = String::from("workers: 1\nbackends:\n");
    for (n, path) in ADDRESSES.iter().enumerate() {
        let address = engine.address;
        let at_root = path.is_empty();
        text.push_str(&format!(
            "  b{n}: {{ url: \"http://{address}{path}\", at_root: {at_root} }}\n"
        ));
    }
    text.push_str("routes:\n");
    for client in 0..CLIENTS {
        for (n, _) in ADDRESSES.iter().enumerate() {
            text.push_str(&format!(
                "  - {{ workload: w{client}-{n}, match: {{ model: [cheap] }}, backend: b{n}, \
                 limits: [ {{ tokens: {LIMIT_TOKENS}, per: 366d }} ] }}\n"
            ));
        }
    }
    text
}

/// What one client's requests came to.
#[derive(Default)]
struct Tally {
    sent: u64,
    refused: u64,
    /// Refusals by their codes.
    codes: BTreeMap<String, u64>,
    /// Those that the engine saw: the case and the tokens that were held for it.
    reached: Vec<(Case, String, Option<u64>)>,
}

#[test]
fn every_engine_parser_agrees_with_what_was_judged_and_metered() {
    let seed = seed();
    let asked = std::env::var("TOLLGATE_READING_CASES").ok();
    let cases = asked.map_or(CASES, |n| n.parse().expect("a number"));
    let engine = Engine::start();
    let gate = Gate::start(&config(&engine), &[]);
    let address = gate.data;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            std::thread::spawn(move || {
                let rng = Rng(seed.wrapping_add(client.wrapping_mul(0x1234_5678_9abc_def1)));
                run(address, client, cases.div_ceil(CLIENTS), rng)
            })
        })
        .collect();
    let tallies: Vec<Tally> = clients
        .into_iter()
        .map(|client| client.join().expect("a client ends"))
        .collect();

    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let (sent, refused) = (sum(|t| t.sent), sum(|t| t.refused));
    let reached: usize = tallies.iter().map(|tally| tally.reached.len()).sum();
    // The log is written behind the answers.
    gate.records(reached);
    std::thread::sleep(Duration::from_secs(2));
    let records = gate.records(reached);
    let records: BTreeMap<&str, &Value> = records
        .iter()
        .map(|record| (record["request_id"].as_str().unwrap_or_default(), record))
        .collect();
    let seen = engine.seen();
    let mut checks = 0;
    let mut compared = 0;
    for tally in &tallies {
        for (case, id, held) in &tally.reached {
            let seen = seen
                .get(id)
                .unwrap_or_else(|| panic!("answered without the engine: {case:?}"));
            let record = records.get(id.as_str()).copied();
            let record = record.unwrap_or_else(|| panic!("no record of {id}: {case:?}"));
            checks += check(case, seen, record, *held);
            compared += u64::from(held.is_some());
        }
    }
    let mut codes = BTreeMap::<&str, u64>::new();
    for (code, count) in tallies.iter().flat_map(|tally| &tally.codes) {
        *codes.entry(code).or_default() += count;
    }
    println!(
        "SEED={seed}: {sent} requests, {refused} refused, {reached} reached the engine, {checks} readings \
         compared, of {compared} the reservation; refusals: {codes:?}"
    );
    assert_eq!(
        engine.strays(),
        Vec::<String>::new(),
        "requests that nobody sent"
    );
    assert_eq!(
        seen.len(),
        reached,
        "the engine saw what was answered and nothing else"
    );
    assert!(reached as u64 * 10 > sent, "too few requests are good");
    assert!(refused * 10 > sent, "too few requests are bad");
}

/// Sends a client's requests one after the other.
fn run(address: std::net::SocketAddr, client: u64, cases: u64, mut rng: Rng) -> Tally {
    let mut tally = Tally::default();
    let mut sender = Sender::new(address);
    let mut levels = [LIMIT_TOKENS; ADDRESSES.len()];
    for _ in 0..cases {
        let case = Case::generate(&mut rng);
        let backend = case.backend;
        let answer = sender.send(&case, &format!("w{client}-{backend}"));
        tally.sent += 1;
        match answer {
            Answer::Refused(code) => {
                tally.refused += 1;
                *tally.codes.entry(code).or_default() += 1;
            }
            Answer::Own => tally.refused += 1,
            Answer::Forwarded { id, remaining } => {
                let held = remaining.map(|left| levels[backend].saturating_sub(left));
                if case.is_metered() {
                    levels[backend] -= REPORTED_TOKENS;
                }
                tally.reached.push((case, id, held));
            }
        }
    }
    tally
}

/// Compares what was judged with what each reader understands. Gives how many comparisons were made.
fn check(case: &Case, seen: &Seen, record: &Value, held: Option<u64>) -> u64 {
    let judged = record["operation"].as_str().unwrap_or_default();
    let mut checks = 0;
    for decoder in DECODERS {
        let about = || {
            format!(
                "{}: {case:?}\nseen {seen:?}\nrecord {record}\nheld {held:?}",
                decoder.name()
            )
        };
        let understood = decoder.operation(&seen.method, &seen.target, ADDRESSES[case.backend]);
        assert_eq!(understood.unwrap_or("unread"), judged, "{}", about());
        checks += 1;
        let Some(operation) = understood else {
            continue;
        };
        let Some(call) = decoder.read(&seen.body) else {
            continue; // The engine refuses it.
        };
        let model = record["model"].as_str();
        assert_eq!(call.model.as_deref(), model, "{}", about());
        if matches!(operation, "chat" | "text_completion") {
            assert!(!call.stream || call.include_usage, "{}", about());
        }
        if let (Some(completion), Some(held)) = (completion(operation, &call), held) {
            let range = completion.saturating_sub(RENEWED_TOKENS)..completion + PROMPT_TOKENS;
            assert!(range.contains(&held), "{completion} may come: {}", about());
        }
        checks += 1;
    }
    checks
}

/// The most that engines of this operation may generate, where the call caps it.
fn completion(operation: &str, call: &Call) -> Option<u64> {
    let answers = call.n.unwrap_or(1).max(call.best_of.unwrap_or(1)).max(1);
    match operation {
        "chat" => call
            .max_completion_tokens
            .max(call.max_tokens)
            .map(|cap| cap * answers),
        "text_completion" => call.max_tokens.map(|cap| cap * answers * call.prompts),
        "messages" => call.max_tokens,
        "responses" => call.max_output_tokens,
        "embeddings" => Some(0),
        _ => None,
    }
}
