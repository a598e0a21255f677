//! What many keys and many users cost: memory, loading, and a call.
//!
//! `cargo bench -p identity --bench scale`. Each row is measured by a process of its own; memory is what it takes more
//! (resident set, Linux), what a load has given back included. Calls go through policy from their head to their
//! admission, each by another caller than the one before, in an order that no cache foresees; what a call costs without
//! many callers stands in the first row.
//! Not here: sockets and bodies (the proving ground).

#![expect(clippy::disallowed_methods, reason = "time is measured")]

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use identity::keys::{KeyTable, NewKey};
use policy::caller::{Caller, Proven};
use policy::clock::Mono;
use policy::exchange::{Env, Exchange, Verdict};
use policy::identity::{Proof, Source, Unproven, Verifier};
use policy::levels::Levels;
use policy::limit::Kind;
use policy::shard::Shard;
use policy::snapshot::Snapshot;
use policy::subject::Whose;
use policy::wire::call::CallHead;
use policy::wire::meter::Meter;

#[path = "../../policy/tests/fixture/mod.rs"]
mod fixture;

use fixture::{ONE, RoutePlan, rate, request, snapshot};

const UNIX_S: u64 = 1_700_000_000;
const BODY: &str = r#"{"model":"m","max_tokens":10}"#;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
    match (words.first().map(String::as_str), number(1), number(2)) {
        (Some("keys"), Some(count), _) => keys(count),
        (Some("calls"), Some(users), Some(subjects)) => calls(users, subjects),
        // Cargo says `--bench`.
        _ => each_alone(),
    }
}

/// Every row, one process after the other.
fn each_alone() {
    let own = std::env::current_exe().expect("its own path");
    let row = |words: &[&str]| {
        let ended = Command::new(&own).args(words).status();
        assert!(ended.expect("it starts").success(), "{words:?}");
    };
    println!("keys: a file is read, and its keys are looked up");
    for count in [1_000, 100_000, 1_000_000] {
        row(&["keys", &count.to_string()]);
    }
    println!("\nusers: calls under a limit for each user");
    for (users, subjects) in [
        (100, 1_usize << 16),
        (10_000, 1 << 16),
        (1_000_000, 1 << 16),
        (1_000_000, 1 << 20),
        (1_000_000, 1 << 21),
        (1_000_000, 1 << 24),
    ] {
        row(&["calls", &users.to_string(), &subjects.to_string()]);
    }
}

fn keys(count: usize) {
    let (text, made) = key_file(count);
    let before = resident_bytes();
    let began = Instant::now();
    let table = KeyTable::parse(text.as_bytes()).expect("a good file");
    let loaded = began.elapsed();
    let bytes = resident_bytes().saturating_sub(before);
    let order = shuffled(count);
    let began = Instant::now();
    for at in &order {
        table.verify(&made[*at], UNIX_S).expect("a good key");
    }
    let found = began.elapsed();
    println!(
        "{count:>9} keys: file {:>6.1} MB, read in {:>6.1} ms, at most {:>5} bytes of memory a key, \
         a look-up {:>5} ns",
        mega(text.len()),
        loaded.as_secs_f64() * 1e3,
        bytes / count,
        nanos_each(found, count),
    );
}

/// A file of keys with users and a tag, and the keys.
fn key_file(count: usize) -> (String, Vec<Vec<u8>>) {
    let (mut text, mut made) = (String::new(), Vec::with_capacity(count));
    for n in 0..count {
        let key = NewKey::make().expect("chance");
        let (id, hash) = (&key.id, &key.hash);
        text += &format!(
            r#"{{"id":"{id}","sha256":"{hash}","workload":"w","created_unix_s":1,"user":"user-{n}","tags":{{"team":"search"}}}}"#
        );
        text.push('\n');
        made.push(key.key.expose().to_vec());
    }
    (text, made)
}

/// Callers that are found at once, by the number that they bring: what is measured is policy.
#[derive(Debug)]
struct Users(Vec<Arc<Caller>>);

impl Verifier for Users {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn keeps_proofs(&self) -> bool {
        false
    }

    fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
        identity::fingerprint(credential)
    }

    fn verify(&self, credential: &[u8], _: u64) -> Result<Proof, Unproven> {
        let digits = credential.iter();
        let at = digits.fold(0, |at, digit| at * 10 + usize::from(digit - b'0'));
        Ok(Proof {
            caller: Arc::clone(&self.0[at]),
            until_unix_s: u64::MAX,
        })
    }
}

fn calls(users: usize, subjects: usize) {
    let caller = |n| Caller {
        workload: "w".into(),
        by: Proven::Token,
        user: Some(format!("user-{n}@example.com").into()),
        ..Caller::default()
    };
    let mut s = snapshot(&[RoutePlan {
        workloads: &["w"],
        backends: &[ONE],
        limits: &[(Kind::Requests, rate(60, 3600))],
        ..RoutePlan::default()
    }]);
    s.limits[0].whose = Whose::User;
    s.bounds.subjects = subjects;
    s.identity.sources = vec![Source::Credential(Arc::new(Users(
        (0..users).map(|n| Arc::new(caller(n))).collect(),
    )))];
    let levels = Levels::seeded(&s, [7, 11]);
    let mut shard = Shard::new(&s, None, 1);
    let rounds = (1_000_000 / users).clamp(2, 30);
    let order = shuffled(users);
    let before = resident_bytes();
    let mut times = Vec::new();
    // The first round makes the places of the table; 60 calls an hour are let in.
    for _ in 0..rounds {
        let began = Instant::now();
        for at in &order {
            call(*at, &s, &levels, &mut shard);
        }
        times.push(nanos_each(began.elapsed(), order.len()));
    }
    let bytes = resident_bytes().saturating_sub(before);
    let usage = levels.usage(Mono(5_000_000_000), UNIX_S * 1000);
    times.remove(0);
    times.sort_unstable();
    println!(
        "{users:>9} users, bounds.subjects {subjects:>8}: a call {:>5} ns, {:>6.1} MB more, \
         {:>7} buckets in use, {:>7} given up",
        times[times.len() / 2],
        mega(bytes),
        usage.buckets,
        usage.evicted,
    );
}

/// One call of a user from its head to its admission, and its end.
fn call(user: usize, s: &Snapshot, levels: &Levels, shard: &mut Shard) {
    let env = &mut Env {
        snapshot: s,
        levels,
        shard,
        now: Mono(5_000_000_000),
    };
    let credential = user.to_string();
    let fields = [
        ("x-api-key", credential.as_str()),
        ("content-type", "application/json"),
    ];
    let head = request("POST", "/v1/completions", &fields);
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut exchange = Exchange::begin(&head, peer, UNIX_S * 1000, env);
    let read = exchange.read_head(&head, &peer.into(), Some(BODY.len() as u64), false, env);
    assert!(matches!(read, Verdict::Read { .. }), "{read:?}");
    let read = exchange.read_body(BODY.len(), env);
    assert!(matches!(read, Verdict::Read { .. }), "{read:?}");
    let mut call = CallHead::read(BODY.as_bytes()).expect("a call");
    let verdict = exchange.end_body(&head, Some(&mut call), &[], env);
    assert!(!matches!(verdict, Verdict::Refuse { .. }), "{verdict:?}");
    exchange.give_up(false);
    exchange.finish(&mut Meter::default(), false, env);
}

/// The numbers below `count` in an order of chance that is the same in each run.
fn shuffled(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = 0x5eed_u64;
    for at in (1..count).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let other = state % (at as u64 + 1);
        order.swap(at, usize::try_from(other).expect("below the count"));
    }
    order
}

fn nanos_each(all: Duration, count: usize) -> u128 {
    all.as_nanos() / count as u128
}

#[expect(clippy::cast_precision_loss, reason = "to be read by people")]
fn mega(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// Memory that the process has in RAM.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| {
        rest.trim()
            .strip_suffix(" kB")?
            .trim()
            .parse::<usize>()
            .ok()
    });
    kib.unwrap_or(0) * 1024
}
