//! Agreement of parsers: generated requests are sent to an engine that records them and parses them as
//! engines in Go, Python and JavaScript do; the gate must have understood the same.
//!
//! Invariant: for a request that reached the engine, each parser finds the operation, the model and the caps of
//! the gate's record and reservation; all other requests were refused. The seed is printed first, the counts last.
//! `TOLLGATE_SEED=<number>` repeats a run, `TOLLGATE_READING_CASES=100000` makes it a long one.
//! Not here: single rules (`bodies`, `framing`, `http2`).

mod cases;
mod decoders;
mod engine;
mod http_versions;
mod languages;
mod senders;

use std::collections::BTreeMap;

use serde_json::Value;
use testing::{eventually, number_of, seed};

use self::cases::{Case, Rng};
use self::decoders::{Call, DECODERS};
use self::engine::{Engine, Seen};
use self::senders::{Answer, Sender};
use crate::harness::Gate;

/// Requests of a run of the default length.
const CASES: u64 = 1500;
/// Concurrent clients, each with workloads and limits of its own.
const CLIENTS: u64 = 4;
/// The paths of backends' addresses; an engine at the root serves its API under `/v1` too.
const ADDRESSES: [&str; 4] = ["/v1", "/v1/", "/engine/v1", ""];
/// Tokens of each limit, refilled at less than one a second.
const LIMIT_TOKENS: u64 = 1_000_000;
/// What the engine reports of each call.
const REPORTED_TOKENS: u64 = 2;
/// More than the prompt of any case is estimated to have, and less than any cap.
const PROMPT_TOKENS: u64 = 900;
/// More than the limits are refilled during a run.
const RENEWED_TOKENS: u64 = 50;

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

/// The results of one client's requests.
#[derive(Default)]
struct ClientResult {
    sent: u64,
    refused: u64,
    /// Refusals by their codes.
    codes: BTreeMap<String, u64>,
    /// Requests that the engine saw: case, request id and reserved tokens.
    reached: Vec<(Case, String, Option<u64>)>,
}

#[test]
fn every_engine_parser_agrees_with_what_was_judged_and_metered() {
    let seed = seed("every_engine_parser_agrees");
    let cases = number_of("TOLLGATE_READING_CASES", CASES);
    let engine = Engine::start();
    let gate = Gate::start(&config(&engine), &[]);
    let address = gate.data;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            std::thread::spawn(move || {
                let rng = Rng::new(seed.wrapping_add(client.wrapping_mul(0x1234_5678_9abc_def1)));
                run(address, client, cases.div_ceil(CLIENTS), rng)
            })
        })
        .collect();
    let results: Vec<ClientResult> = clients
        .into_iter()
        .map(|client| client.join().expect("a client ends"))
        .collect();

    let sum = |of: fn(&ClientResult) -> u64| results.iter().map(of).sum::<u64>();
    let (sent, refused) = (sum(|t| t.sent), sum(|t| t.refused));
    let reached: usize = results.iter().map(|result| result.reached.len()).sum();
    // The log is written after the answers. One worker writes it, so that the last of each client is behind its others.
    let last: Vec<&str> = results
        .iter()
        .filter_map(|result| Some(result.reached.last()?.1.as_str()))
        .collect();
    eventually("every call is in the log", || {
        let log = std::fs::read_to_string(gate.path("access.jsonl")).expect("a log");
        last.iter().all(|id| log.contains(id))
    });
    let records = gate.records(reached);
    let records: BTreeMap<&str, &Value> = records
        .iter()
        .map(|record| (record["request_id"].as_str().unwrap_or_default(), record))
        .collect();
    let seen = engine.seen();
    let mut checks = 0;
    let mut compared = 0;
    for result in &results {
        for (case, id, reserved) in &result.reached {
            let seen = seen
                .get(id)
                .unwrap_or_else(|| panic!("answered without the engine: {case:?}"));
            let record = records.get(id.as_str()).copied();
            let record = record.unwrap_or_else(|| panic!("no record of {id}: {case:?}"));
            checks += check(case, seen, record, *reserved);
            compared += u64::from(reserved.is_some());
        }
    }
    let mut codes = BTreeMap::<&str, u64>::new();
    for (code, count) in results.iter().flat_map(|result| &result.codes) {
        *codes.entry(code).or_default() += count;
    }
    println!(
        "{sent} requests, {refused} refused, {reached} reached the engine, {checks} readings \
         compared, of {compared} the reservation; refusals: {codes:?}"
    );
    assert_eq!(
        engine.unmatched(),
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
fn run(address: std::net::SocketAddr, client: u64, cases: u64, mut rng: Rng) -> ClientResult {
    let mut result = ClientResult::default();
    let mut sender = Sender::new(address);
    let mut levels = [LIMIT_TOKENS; ADDRESSES.len()];
    for _ in 0..cases {
        let case = Case::generate(&mut rng);
        let backend = case.backend;
        let answer = sender.send(&case, &format!("w{client}-{backend}"));
        result.sent += 1;
        match answer {
            Answer::Refused(code) => {
                result.refused += 1;
                *result.codes.entry(code).or_default() += 1;
            }
            Answer::Own => result.refused += 1,
            Answer::Forwarded { id, remaining } => {
                let reserved = remaining.map(|left| levels[backend].saturating_sub(left));
                if case.is_metered() {
                    levels[backend] -= REPORTED_TOKENS;
                }
                result.reached.push((case, id, reserved));
            }
        }
    }
    result
}

/// Compares the gate's record with what each parser finds. Returns how many comparisons were made.
fn check(case: &Case, seen: &Seen, record: &Value, reserved: Option<u64>) -> u64 {
    let judged = record["operation"].as_str().unwrap_or_default();
    let mut checks = 0;
    for decoder in DECODERS {
        let about = || {
            format!(
                "{}: {case:?}\nseen {seen:?}\nrecord {record}\nheld {reserved:?}",
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
        if let (Some(completion), Some(reserved)) = (completion(operation, &call), reserved) {
            let range = completion.saturating_sub(RENEWED_TOKENS)..completion + PROMPT_TOKENS;
            assert!(
                range.contains(&reserved),
                "{completion} may come: {}",
                about()
            );
        }
        checks += 1;
    }
    checks
}

/// The most tokens that engines may generate for this operation, where the call caps its output.
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
