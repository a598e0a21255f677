//! Sealed sessions: what opens them, and what does not.

use policy::secret::Secret;
use testing::{Draw, seed};

use super::{NoSession, OpenServer, OwnTokens, Place, Principal, Sealer, Session, mark_of_session};
use crate::client::Can;
use crate::handshake::Abilities;
use crate::version::Version;

const NOW: u64 = 1_700_000_000;

const ADA: Principal<'_> = Principal {
    workload: "ide",
    by: "key",
    issuer: None,
    key: Some("k1"),
    user: Some("ada"),
    tokens: None,
};

fn secret(byte: u8) -> Secret {
    Secret::new(vec![byte; 32])
}

fn place(route: &str, servers: &[(&str, &str)]) -> Place {
    let servers = servers.iter().map(|(name, at)| (*name, (*at).to_owned()));
    Place::new(route, servers)
}

fn session() -> Session {
    Session {
        until_unix_s: NOW + 60,
        version: Version::V20251125,
        can: Can::of(br#"{"roots":{},"elicitation":{"url":{}}}"#),
        servers: vec![
            OpenServer {
                name: "github".into(),
                version: Version::V20250618,
                abilities: Abilities::of_bits(5),
                id: Some("1868a90c-0d4c".into()),
            },
            OpenServer {
                name: "files".into(),
                version: Version::V20251125,
                abilities: Abilities::of_bits(1),
                id: None,
            },
        ],
    }
}

#[test]
fn a_session_opens_as_what_was_sealed_until_it_expires() {
    let sealer = Sealer::new(&secret(1), None).expect("keys");
    let at = place("a", &[("github", "x/mcp")]);
    let id = sealer
        .seal(&session(), &at, &ADA, [7; 12])
        .expect("it fits");
    assert!(
        id.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'),
        "{id}"
    );
    assert_eq!(sealer.open(id.as_bytes(), &at, &ADA, NOW), Ok(session()));
    assert_eq!(
        sealer.open(id.as_bytes(), &at, &ADA, NOW + 59),
        Ok(session())
    );
    let late = sealer.open(id.as_bytes(), &at, &ADA, NOW + 60);
    assert_eq!(late, Err(NoSession::Expired));
    let other = sealer
        .seal(&session(), &at, &ADA, [8; 12])
        .expect("it fits");
    assert_ne!(id, other, "its nonce is in it");
}

#[test]
fn a_session_opened_on_one_route_is_worth_nothing_on_another() {
    let sealer = Sealer::new(&secret(1), None).expect("keys");
    let servers = [("github", "x/mcp"), ("files", "y/mcp")];
    let here = place("a", &servers);
    let id = sealer
        .seal(&session(), &here, &ADA, [7; 12])
        .expect("it fits");
    for elsewhere in [
        place("b", &servers),
        place("a", &[("github", "x/mcp")]),
        place("a", &[("github", "evil/mcp"), ("files", "y/mcp")]),
        place("a", &[("files", "y/mcp"), ("github", "x/mcp")]),
        place("agithub", &[("x/mcp", "files"), ("y/mcp", "")]),
    ] {
        let opened = sealer.open(id.as_bytes(), &elsewhere, &ADA, NOW);
        assert_eq!(opened, Err(NoSession::Foreign));
    }
    assert!(sealer.open(id.as_bytes(), &here, &ADA, NOW).is_ok());
}

#[test]
fn a_session_of_one_caller_is_worth_nothing_to_another() {
    let sealer = Sealer::new(&secret(1), None).expect("keys");
    let at = place("a", &[]);
    let id = sealer
        .seal(&session(), &at, &ADA, [7; 12])
        .expect("it fits");
    for other in [
        Principal {
            workload: "ci",
            ..ADA
        },
        Principal { by: "token", ..ADA },
        Principal {
            issuer: Some("https://one"),
            ..ADA
        },
        Principal {
            key: Some("k2"),
            ..ADA
        },
        Principal { key: None, ..ADA },
        Principal {
            user: Some("eve"),
            ..ADA
        },
        Principal { user: None, ..ADA },
        Principal {
            key: Some("k1ada"),
            user: Some(""),
            ..ADA
        },
        with(&[("one", "hers")]),
    ] {
        let opened = sealer.open(id.as_bytes(), &at, &other, NOW);
        assert_eq!(opened, Err(NoSession::Foreign), "{other:?}");
    }
}

fn with(tokens: &[(&'static str, &str)]) -> Principal<'static> {
    let tokens: Vec<(&str, Secret)> = tokens
        .iter()
        .map(|(of, token)| (*of, Secret::new(token.as_bytes().to_vec())))
        .collect();
    let tokens = OwnTokens::new(tokens.iter().map(|(of, token)| (*of, token)));
    Principal { tokens, ..ADA }
}

#[test]
fn a_session_that_was_opened_with_tokens_is_worth_nothing_beside_others() {
    let sealer = Sealer::new(&secret(1), None).expect("keys");
    let at = place("a", &[]);
    let hers = with(&[("one", "hers"), ("two", "t")]);
    let id = sealer
        .seal(&session(), &at, &hers, [7; 12])
        .expect("it fits");
    assert_eq!(sealer.open(id.as_bytes(), &at, &hers, NOW), Ok(session()));
    for other in [
        ADA,
        with(&[]),
        with(&[("one", "his"), ("two", "t")]),
        with(&[("one", "hers")]),
        with(&[("two", "hers"), ("one", "t")]),
        with(&[("one", "herst"), ("wo", "t")]),
    ] {
        let opened = sealer.open(id.as_bytes(), &at, &other, NOW);
        assert_eq!(opened, Err(NoSession::Foreign), "{other:?}");
    }
}

#[test]
fn a_key_is_rotated_through_the_one_before_it() {
    let old = Sealer::new(&secret(1), None).expect("keys");
    let both = Sealer::new(&secret(2), Some(&secret(1))).expect("keys");
    let new = Sealer::new(&secret(2), None).expect("keys");
    let at = place("a", &[]);
    let of_old = old.seal(&session(), &at, &ADA, [1; 12]).expect("it fits");
    let of_both = both.seal(&session(), &at, &ADA, [2; 12]).expect("it fits");
    assert!(both.open(of_old.as_bytes(), &at, &ADA, NOW).is_ok());
    assert!(new.open(of_both.as_bytes(), &at, &ADA, NOW).is_ok());
    let foreign = Err(NoSession::Foreign);
    assert_eq!(new.open(of_old.as_bytes(), &at, &ADA, NOW), foreign);
    assert_eq!(old.open(of_both.as_bytes(), &at, &ADA, NOW), foreign);
}

#[test]
fn the_mark_of_a_session_is_of_its_id_alone_so_that_a_new_secret_revives_none() {
    // The first bytes of SHA-256 of "abc" (FIPS 180-2, B.1).
    let of_abc = [
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde,
    ];
    assert_eq!(mark_of_session(b"abc"), of_abc);
    assert_ne!(mark_of_session(b"abd"), of_abc);
}

#[test]
fn what_was_changed_or_made_up_opens_nothing() {
    let sealer = Sealer::new(&secret(1), None).expect("keys");
    let at = place("a", &[]);
    let id = sealer
        .seal(&session(), &at, &ADA, [7; 12])
        .expect("it fits");
    for at_byte in 0..id.len() {
        for letter in [b'A', b'b', b'-', b'!'] {
            let mut changed = id.clone().into_bytes();
            changed[at_byte] = letter;
            // The last letter has bits that say nothing: another spelling is no good either.
            if changed != id.as_bytes() {
                assert!(sealer.open(&changed, &at, &ADA, NOW).is_err());
            }
        }
    }
    let mut random = Draw::new(seed("what_was_changed_or_made_up_opens_nothing"));
    for _ in 0..20_000 {
        let made_up: Vec<u8> = (0..random.below(200))
            .map(|_| b"ABCDEFGHabcdefgh0123456789-_"[random.below(28)])
            .collect();
        assert!(sealer.open(&made_up, &at, &ADA, NOW).is_err());
    }
}

#[test]
fn sessions_of_any_kind_come_back_as_they_were() {
    let sealer = Sealer::new(&secret(3), None).expect("keys");
    let mut random = Draw::new(seed("sessions_of_any_kind_come_back_as_they_were"));
    let versions = [Version::V20250618, Version::V20251125];
    for nth in 0..2_000_u64 {
        let servers = (0..random.below(12)).map(|_| OpenServer {
            name: "n".repeat(1 + random.below(32)).into(),
            version: versions[random.below(2)],
            abilities: Abilities::of_bits(random.below(512) as u16),
            id: (random.below(4) > 0).then(|| "i".repeat(300).into()),
        });
        let servers = servers.collect();
        let session = Session {
            can: Can::of_bits(random.below(128) as u8),
            servers,
            ..session()
        };
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&nth.to_be_bytes());
        let at = place("a", &[]);
        let id = sealer.seal(&session, &at, &ADA, nonce).expect("it fits");
        assert_eq!(sealer.open(id.as_bytes(), &at, &ADA, NOW), Ok(session));
    }
}
