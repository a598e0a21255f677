//! What a token costs: reading it, and verifying it with each kind of key.
//!
//! `cargo bench -p jose`. Verifying is all that is done for a token: read, key, signature, claims.
//! Not here: fetching keys.

use divan::{AllocProfiler, Bencher, black_box};
use jose::{KeySet, Rules, Token, verify};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const NOW: u64 = 1_700_000_000;
const OTHERS: &str = include_str!("../../../vectors/jose/others.txt");
const KINDS: [&str; 7] = [
    "RS256 rsa",
    "RS256 rsa-3072",
    "PS256 rsa",
    "ES256 p256",
    "ES384 p384",
    "ES512 p521",
    "EdDSA ed25519",
];

fn main() {
    divan::main();
}

fn section(end: &str) -> &'static str {
    let mut sections = OTHERS.split("=== ").skip(1);
    let section = sections.find_map(|section| {
        let (title, text) = section.split_once('\n')?;
        title.ends_with(end).then_some(text.trim_end())
    });
    section.expect("the vectors have it")
}

fn rules() -> Rules {
    Rules {
        issuer: "https://issuer.example/".into(),
        audiences: vec!["tollgate".into()],
        types: Vec::new(),
        algorithms: Vec::new(),
        leeway_s: 30,
        requires_expiry: true,
    }
}

#[divan::bench]
fn read(bencher: Bencher) {
    let token = section("RS256 rsa").as_bytes();
    bencher
        .counter(divan::counter::BytesCount::new(token.len()))
        .bench(|| Token::read(black_box(token)).expect("a token"));
}

#[divan::bench(args = KINDS)]
fn read_and_verify(bencher: Bencher, kind: &str) {
    let token = section(kind).as_bytes();
    let keys = KeySet::parse(section("keys").as_bytes()).expect("a set");
    let rules = rules();
    bencher.bench(|| {
        let token = Token::read(black_box(token)).expect("a token");
        verify(&token, &rules, &keys, NOW).expect("a good token")
    });
}

#[divan::bench(args = KINDS)]
fn verify_alone(bencher: Bencher, kind: &str) {
    let token = Token::read(section(kind).as_bytes()).expect("a token");
    let keys = KeySet::parse(section("keys").as_bytes()).expect("a set");
    let rules = rules();
    bencher.bench(|| verify(black_box(&token), &rules, &keys, NOW).expect("a good token"));
}

#[divan::bench]
fn parse_a_set_of_seven_keys(bencher: Bencher) {
    let text = section("keys").as_bytes();
    bencher.bench(|| KeySet::parse(black_box(text)).expect("a set"));
}

/// As many as fit into the bytes that are read: points that are checked.
#[divan::bench(sample_count = 5)]
fn parse_a_set_as_large_as_is_read(bencher: Bencher) {
    let keys = section("keys");
    let (_, from_p256) = keys.split_once(r#""kid": "p256""#).expect("it is there");
    let (members, _) = from_p256.split_once('}').expect("it ends");
    let members: String = members.split_whitespace().collect();
    let keys: Vec<String> = (0..6000)
        .map(|at| format!(r#"{{"kid":"{at}"{members}}}"#))
        .collect();
    let text = format!(r#"{{"keys":[{}]}}"#, keys.join(","));
    assert!(text.len() < jose::SET_BYTES_MAX);
    bencher.bench(|| {
        let set = KeySet::parse(black_box(text.as_bytes())).expect("a set");
        assert_eq!(set.len(), 6000);
        set
    });
}
