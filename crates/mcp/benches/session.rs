//! What a sealed session costs: to seal it once, and to open it at each message.
//!
//! `cargo bench -p mcp`. The key is derived once, when a configuration is taken: that is measured beside it.
//! Not here: what a message costs (`prove race scenarios/mcp-echo`).

use divan::{AllocProfiler, Bencher, black_box};
use mcp::client::Can;
use mcp::handshake::Abilities;
use mcp::session::{NONCE_BYTES, OpenServer, Place, Principal, Sealer, Session};
use mcp::version::Version;
use policy::secret::Secret;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const NOW: u64 = 1_700_000_000;
const SERVERS: [usize; 2] = [1, 10];

fn main() {
    divan::main();
}

fn secret() -> Secret {
    Secret::new(vec![7; 32])
}

fn sealer() -> Sealer {
    Sealer::new(&secret(), None).expect("a secret of 32 bytes")
}

const fn caller() -> Principal<'static> {
    Principal {
        workload: "ide",
        by: "key",
        issuer: None,
        key: Some("k1"),
        user: Some("ada"),
        tokens: None,
    }
}

fn name(number: usize) -> String {
    format!("server{number}")
}

fn place(servers: usize) -> Place {
    let names: Vec<String> = (0..servers).map(name).collect();
    let address = || "http://127.0.0.1:9000/mcp".to_owned();
    Place::new("ide", names.iter().map(|name| (&**name, address())))
}

/// Each server's own id is as long as a UUID.
fn session(servers: usize) -> Session {
    let open = |number: usize| OpenServer {
        name: name(number).into(),
        version: Version::V20251125,
        abilities: Abilities::TOOLS,
        id: Some("1868a90c-0d4c-4c25-9d6b-2f6a0c3b7e11".into()),
    };
    Session {
        until_unix_s: NOW + 86_400,
        version: Version::V20251125,
        can: Can::of(b"{}"),
        servers: (0..servers).map(open).collect(),
    }
}

#[divan::bench]
fn derive_the_key(bencher: Bencher<'_, '_>) {
    let secret = secret();
    bencher.bench(|| Sealer::new(black_box(&secret), None));
}

#[divan::bench(args = SERVERS)]
fn seal(bencher: Bencher<'_, '_>, servers: usize) {
    let (sealer, place, session) = (sealer(), place(servers), session(servers));
    bencher.bench(|| sealer.seal(black_box(&session), &place, &caller(), [1; NONCE_BYTES]));
}

#[divan::bench(args = SERVERS)]
fn open(bencher: Bencher<'_, '_>, servers: usize) {
    let (sealer, place, session) = (sealer(), place(servers), session(servers));
    let id = sealer.seal(&session, &place, &caller(), [1; NONCE_BYTES]);
    let id = id.expect("it seals");
    bencher.bench(|| sealer.open(black_box(id.as_bytes()), &place, &caller(), NOW));
}
