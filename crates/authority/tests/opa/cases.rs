//! Calls to decide about, from a seed: many stand where a rule begins or ends to hold.

use std::net::IpAddr;

use policy::authority::{Asked, Claim, Members};
use serde_json::{Value, json};

use crate::fixture::claim;

/// A sequence of numbers that a seed settles (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// One call, owned.
pub(crate) struct Case {
    workload: &'static str,
    key: Option<&'static str>,
    user: Option<&'static str>,
    tags: Vec<(&'static str, &'static str)>,
    claims_json: Value,
    claims: Members,
    method: &'static str,
    path: &'static str,
    operation: &'static str,
    model: Option<&'static str>,
    route: &'static str,
    backends: Vec<&'static str>,
    source: IpAddr,
    unix_ms: u64,
}

/// Whether all numbers in it are exact.
fn is_exact(claim: &Claim) -> bool {
    match claim {
        Claim::Inexact => false,
        Claim::List(values) => values.iter().all(is_exact),
        Claim::Map(members) => members.iter().all(|(_, of)| is_exact(of)),
        _ => true,
    }
}

impl Case {
    pub(crate) fn is_exact(&self) -> bool {
        self.claims.iter().all(|(_, of)| is_exact(of))
    }

    pub(crate) fn new(random: &mut Random) -> Self {
        let claims_json = claims(random);
        let Claim::Map(claims) = claim(&claims_json) else {
            unreachable!("claims are an object");
        };
        Self {
            workload: random.one(&["coding", "coding", "chat", "chat", "Coding", "", "größe"]),
            key: [
                None,
                Some("k-1"),
                Some("tmp-12"),
                Some("tmp-1"),
                Some("test-12345"),
                Some("test-1234"),
                Some("xtmp-12"),
                Some("tmp-12\n"),
                Some("tmp-1٢"),
            ][if random.once_in(2) {
                1
            } else {
                random.below(9)
            }],
            user: [
                None,
                Some("ada"),
                Some("mallory"),
                Some("Mallory"),
                Some(""),
            ][if random.once_in(2) {
                1
            } else {
                random.below(5)
            }],
            tags: tags(random),
            claims_json,
            claims,
            method: if random.once_in(12) {
                "DELETE"
            } else {
                random.one(&["POST", "GET", "delete"])
            },
            path: if random.once_in(12) {
                "/v1/../x"
            } else {
                random.one(&["/v1/chat/completions", "/", "/v1/a.b", "/v1/models"])
            },
            operation: if random.once_in(12) {
                ""
            } else {
                random.one(&["chat", "embeddings", "models"])
            },
            model: [
                None,
                Some("gpt-4*"),
                Some("gpt-4o"),
                Some("größe-*mini"),
                Some("größe-*"),
                Some("gro\u{308}ße-*"),
                Some("qwen/3 coder"),
                Some("GPT-4*"),
                Some(""),
            ][random.below(9)],
            route: random.one(&["main", "main", "legacy", "leg*"]),
            backends: backends(random),
            source: source(random),
            unix_ms: time(random),
        }
    }

    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked {
            workload: self.workload,
            key: self.key,
            user: self.user,
            tags: &self.tags,
            claims: &self.claims,
            method: self.method,
            path: self.path,
            operation: self.operation,
            model: self.model,
            route: self.route,
            backends: &self.backends,
            source: self.source,
            unix_ms: self.unix_ms,
        }
    }

    /// The `input` that `docs/authority.md` promises, written independently of what the crate makes.
    pub(crate) fn input(&self) -> Value {
        let tags: serde_json::Map<String, Value> = self
            .tags
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        let source = match self.source {
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(self.source, IpAddr::V4),
            v4 => v4,
        };
        let mut input = json!({
            "workload": self.workload, "tags": tags, "claims": self.claims_json, "method": self.method,
            "path": self.path, "operation": self.operation, "route": self.route, "backends": self.backends,
            "source": source.to_string(), "time_ns": u128::from(self.unix_ms) as u64 * 1_000_000,
        });
        let perhaps = [
            ("key", self.key),
            ("user", self.user),
            ("model", self.model),
        ];
        for (name, value) in perhaps {
            if let Some(value) = value {
                input[name] = json!(value);
            }
        }
        input
    }
}

fn tags(random: &mut Random) -> Vec<(&'static str, &'static str)> {
    let mut tags = Vec::new();
    if !random.once_in(4) {
        tags.push(("team", random.one(&["search", "search", "größe", "", "*"])));
    }
    if random.once_in(4) {
        tags.push(("cost", random.one(&["frozen", "Frozen", "", "low"])));
    }
    if random.once_in(6) {
        tags.push((random.one(&["größe", "größen", "a.b", "sixsix"]), "x"));
    }
    tags
}

fn backends(random: &mut Random) -> Vec<&'static str> {
    let n = random.below(4);
    (0..n)
        .map(|_| random.one(&["frontier", "edge", "edge", "front*", "größe"]))
        .collect()
}

fn source(random: &mut Random) -> IpAddr {
    let written = random.one(&[
        "10.0.0.0",
        "10.255.255.255",
        "9.255.255.255",
        "11.0.0.0",
        "192.168.7.9",
        "192.168.7.9",
        "192.168.7.255",
        "192.168.8.0",
        "192.168.6.255",
        "2001:db8::",
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:db9::",
        "2001:db7:ffff::1",
        "::ffff:10.1.2.3",
        "::ffff:11.1.2.3",
        "::ffff:192.168.7.9",
        "::10.1.2.3",
        "::1",
        "127.0.0.1",
        "10.1.2.3",
        "10.9.8.7",
        "192.168.7.9",
    ]);
    written.parse().expect("an address")
}

/// Around the hours and the days at which rules begin, in and out of summer time, and anywhere else.
fn time(random: &mut Random) -> u64 {
    const HOUR_MS: u64 = 3_600_000;
    /// 2026-03-29T01:00:00Z: summer begins in Zurich. 2026-11-01T06:00:00Z: it ends in New York.
    const EDGES: [u64; 3] = [1_774_746_000_000, 1_793_512_800_000, 1_767_225_600_000];
    let base = EDGES[random.below(3)] + (random.below(400) as u64) * HOUR_MS - 200 * HOUR_MS;
    let half = (random.below(2) as u64) * HOUR_MS / 2;
    match random.below(4) {
        0 => base + half,
        1 => base + half - 1,
        2 => base + random.next() % HOUR_MS,
        _ => random.next() % 4_102_444_800_000,
    }
}

fn claims(random: &mut Random) -> Value {
    let mut claims = json!({});
    if random.once_in(4) {
        return claims;
    }
    for name in [
        "groups",
        "email",
        "email_verified",
        "level",
        "org",
        "quota",
        "iat",
        "mixed",
    ] {
        if random.once_in(3) {
            continue;
        }
        claims[name] = if random.once_in(9) {
            odd(random)
        } else {
            usual(name, random)
        };
    }
    if !random.once_in(4) {
        claims.as_object_mut().expect("an object").remove("quota");
    }
    claims
}

fn usual(name: &str, random: &mut Random) -> Value {
    match name {
        "groups" => groups(random),
        "email" => json!(random.one(&[
            "ada@example.org",
            "ada@example.org",
            "ada@example.com",
            "@example.org",
            "x"
        ])),
        "email_verified" => json!(!random.once_in(4)),
        "level" => [
            json!(4),
            json!(5),
            json!(5.0),
            json!(4.999_999_999),
            json!(6),
            json!(6.0),
            json!(7),
            json!(i64::MAX),
            json!(1e19),
            json!(-5),
        ][random.below(10)]
        .clone(),
        "org" => [
            json!({"name": "acme"}),
            json!({"name": "blocked"}),
            json!({"name": "größe"}),
            json!({}),
            json!({"name": null}),
            json!({"name": ["blocked"]}),
        ][random.below(6)]
        .clone(),
        "quota" => [
            json!(0),
            json!(1),
            json!(-1),
            json!(0.0),
            json!(1e-300),
            json!(100),
        ][random.below(6)]
        .clone(),
        "iat" => {
            let ago = [0_i64, 3599, 3600, 3601, 1, 100_000][random.below(6)];
            json!(1_774_746_000 - ago + random.below(3) as i64)
        }
        _ => [
            json!(["any", [1, ["a", null]], 2.5]),
            json!(["any", [1.0, ["a", null]], 2.5]),
            json!(["any", [1, ["a"]], 2.5]),
            json!([2.5, "any"]),
            json!(["any", [1, ["a", null]], 2.5, {"a": [{}]}]),
            json!(["any", {"1": 2}, 2.5]),
        ][random.below(6)]
        .clone(),
    }
}

fn groups(random: &mut Random) -> Value {
    let n = random.below(5);
    let names = [
        "team-search",
        "team-größe",
        "team-",
        "intern",
        "Intern",
        "team-*",
        "größe",
        "team-search ",
    ];
    let mut groups: Vec<Value> = (0..n).map(|_| json!(random.one(&names))).collect();
    if random.once_in(6) {
        groups.push(odd(random));
    }
    json!(groups)
}

/// Not what a rule expects.
fn odd(random: &mut Random) -> Value {
    let odd = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("intern"),
        json!("true"),
        json!([]),
        json!({}),
        json!(["intern"]),
        json!({"intern": 1}),
        json!({"team-search": true}),
        json!([[["a"]]]),
        json!("5"),
        json!({"name": "acme"}),
        json!(9_007_199_254_740_993_u64),
        json!(u64::MAX),
    ];
    odd[random.below(odd.len())].clone()
}
