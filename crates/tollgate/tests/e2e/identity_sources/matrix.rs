//! Attempts of every make at every source: no bypass, and nobody refused who is good.
//!
//! Each attempt puts a credential into a place, perhaps twice, perhaps in another case, beside identity headers, on a
//! path in some spelling. What must come of it is decided here from the parts alone, without the gate's code.

use super::issuer::{claims, jwks, signed};
use super::{config, echo, told};
use crate::harness::{Connection, Gate, chat, eventually, post};
use serde_json::Value;
use std::time::Duration;

/// Attempts, unless `TOLLGATE_MATRIX_CASES` says.
const CASES: usize = 4_000;

/// A small generator, so that a seed repeats a run.
struct Chance(u64);

impl Chance {
    fn of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let at = usize::try_from(self.0 >> 33).expect("31 bits") % of.len();
        &of[at]
    }
}

/// A credential, and whose it is.
struct Credential {
    text: String,
    workload: Option<&'static str>,
}

/// What is put where.
struct Attempt {
    lines: Vec<String>,
    path: String,
    expected: Expected,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Expected {
    /// Let in as this workload.
    In(&'static str),
    /// Refused with one of these statuses.
    Out(&'static [u16]),
}

fn attempt(chance: &mut Chance, credentials: &[Credential]) -> Attempt {
    let names = [
        "authorization",
        "Authorization",
        "AUTHORIZATION",
        "x-api-key",
        "X-Api-Key",
        "api-key",
        "x-goog-api-key",
    ];
    let forms = [
        "Bearer {}",
        "Bearer {}",
        "Bearer {}",
        "bearer {}",
        "BEARER {}",
        "{}",
        "Basic {}",
        "Bearer {},{}",
        "Bearer  {}",
    ];
    let mut lines = Vec::new();
    let count = *chance.of(&[0, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
    let mut given = Vec::new();
    for _ in 0..count {
        let credential = chance.of(credentials);
        let name = *chance.of(&names);
        let is_authorization = name.eq_ignore_ascii_case("authorization");
        let form = if is_authorization {
            *chance.of(&forms)
        } else {
            *chance.of(&["{}", "{}", "{}", "Bearer {}"])
        };
        lines.push(format!("{name}: {}", form.replace("{}", &credential.text)));
        let is_bearer = form.eq_ignore_ascii_case("bearer {}");
        let is_read = if is_authorization {
            is_bearer
        } else {
            form == "{}"
        };
        let is_listed = form.contains(',');
        given.push((credential.workload.filter(|_| is_read), is_listed));
    }
    let header = *chance.of(&[
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "x-workload-app: chat",
        "x-workload-app: ci",
        "x-workload-app: nobody",
        "X-Workload-App: chat",
        "x-workload_app: ci",
        "x-workload-app: chat, ci",
    ]);
    let twice = *chance.of(&[false, false, false, true]);
    if !header.is_empty() {
        lines.push(header.to_owned());
        if twice {
            lines.push(header.to_owned());
        }
    }
    if *chance.of(&[true, false]) {
        lines.push("connection: authorization, x-workload-app, x-api-key".to_owned());
    }
    let query = *chance.of(&[
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "?key=abc",
        "?api-key=abc",
        "?api%2Dkey=abc",
        "?beta=true",
    ]);
    let base = *chance.of(&[
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/V1/chat/completions",
        "/v1/chat/%63ompletions",
        "/v1/chat/completions;x",
        "/v1/./chat/completions",
        "/v1/x/../chat/completions",
    ]);
    let is_plain = base == "/v1/chat/completions";
    let keys_in_query = usize::from(query.contains("key"));
    let named = header
        .split_once(": ")
        .filter(|(name, _)| name.eq_ignore_ascii_case("x-workload-app"));
    let named = named.map(|(_, value)| value);
    let is_repeated = named.is_some() && (twice || header.contains(','));
    let workload = match &given[..] {
        [(workload, false)] => *workload,
        _ => None,
    };
    let is_ambiguous =
        given.len() + keys_in_query > 1 || given.iter().any(|(_, listed)| *listed) || is_repeated;
    let expected = if !is_plain {
        // Another spelling is another path, or none at all; nobody is let in by it.
        Expected::Out(&[400, 401, 403, 404])
    } else if is_ambiguous {
        Expected::Out(&[400])
    } else {
        match (workload, named) {
            (None, _) => Expected::Out(&[401]),
            (Some(workload), None) => Expected::In(workload),
            (Some(workload), Some(named)) if named == workload => Expected::In(workload),
            (Some(_), Some(_)) => Expected::Out(&[403]),
        }
    };
    Attempt {
        lines,
        path: format!("{base}{query}"),
        expected,
    }
}

/// Keys of both workloads, tokens of both, and what is neither.
fn credentials(keys: &[(String, &'static str)]) -> Vec<Credential> {
    let of = |text: String, workload| Credential { text, workload };
    let token = |azp: &str, kid: &str| {
        let mut claims = claims();
        claims["azp"] = Value::from(azp);
        signed(&claims, kid)
    };
    let mut all: Vec<_> = keys
        .iter()
        .map(|(key, w)| of(key.clone(), Some(w)))
        .collect();
    let key = keys[0].0.clone();
    let good = token("chat", "p256");
    all.extend([
        of(token("ci", "rsa"), Some("ci")),
        of(good.clone(), Some("chat")),
        of(key[..key.len() - 1].to_owned(), None),
        of(format!("{key}0"), None),
        of(key.to_uppercase(), None),
        of(key.replace("tgk_", "tgx_"), None),
        of(good[..good.len() - 2].to_owned(), None),
        of(good.replacen('.', "..", 1), None),
        of(token("chat", "ed25519"), None),
        of("sk-0123456789".to_owned(), None),
        of("null".to_owned(), None),
        of("chat".to_owned(), None),
    ]);
    all
}

#[test]
fn no_attempt_gets_in_that_should_not_and_none_is_refused_that_is_good() {
    let upstream = echo();
    let sources = "[ { keys: { file: keys.jsonl } }, { jwt: { issuer: \"https://issuer.test/\", audience: gate, \
                   jwks: { file: jwks.json }, workload_claim: azp } }, { header: x-workload-app, from: 192.0.2.0/24 } ]";
    let config = config(&upstream, sources);
    let mut lines = Vec::new();
    let mut keys = Vec::new();
    for workload in ["chat", "ci"] {
        let key = identity::keys::NewKey::make().expect("chance");
        let (id, hash) = (&key.id, &key.hash);
        lines.push(format!(
            r#"{{"id":"{id}","sha256":"{hash}","workload":"{workload}","created_unix_s":1}}"#
        ));
        let text = String::from_utf8(key.key.expose().to_vec()).expect("text");
        keys.push((text, workload));
    }
    let file = lines.join("\n") + "\n";
    let set = jwks(&["rsa", "p256"]);
    let files: [(&str, &[u8]); 2] = [
        ("keys.jsonl", file.as_bytes()),
        ("jwks.json", set.as_bytes()),
    ];
    let gate = Gate::start_with_private(&config, &files);
    let credentials = credentials(&keys);
    let cases = std::env::var("TOLLGATE_MATRIX_CASES").ok();
    let cases = cases.map_or(CASES, |text| text.parse().expect("a number"));
    let seed = std::env::var("TOLLGATE_MATRIX_SEED").ok();
    let seed = seed.map_or(0x5eed_0001, |text| text.parse().expect("a number"));
    println!("{cases} attempts, TOLLGATE_MATRIX_SEED={seed}");
    let mut chance = Chance(seed);
    let (mut let_in, mut refused) = (0, 0);
    for n in 0..cases {
        let Attempt {
            lines,
            path,
            expected,
        } = attempt(&mut chance, &credentials);
        // Another address for each lot: bad credentials of one are not looked at for long.
        let from = std::net::Ipv4Addr::new(
            127,
            1,
            u8::try_from(n / 40 / 250 % 250).expect("a byte"),
            u8::try_from(n / 40 % 250 + 1).expect("a byte"),
        );
        let shown: Vec<&str> = lines.iter().map(String::as_str).collect();
        let request = post(&path, &shown, &chat("m", false));
        let mut connection = Connection::open_from(from, gate.data);
        let response = connection.call(&request);
        match expected {
            Expected::In(_) => {
                let_in += 1;
                assert_eq!(
                    response.status,
                    200,
                    "{n} {path} {lines:?}: {}",
                    response.text()
                );
            }
            Expected::Out(statuses) => {
                refused += 1;
                assert!(
                    statuses.contains(&response.status),
                    "{n} {path} {lines:?}: {:?}",
                    told(&response)
                );
            }
        }
    }
    println!("{let_in} let in, {refused} refused");
    assert!(let_in * 20 > cases && refused * 20 > cases);
    eventually(
        "every call that went upstream was good",
        Duration::from_secs(5),
        || upstream.seen().len() == let_in,
    );
}
