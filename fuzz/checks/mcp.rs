//! What must hold for any message to and from servers of tools, and for ids that anybody may make up.
//!
//! The first byte of an input chooses what is read; the rest are its parts, with a byte 0 between them.
//! Invariant: what is spliced reads as one message, with the id and the name that were put there; a name that is shown is found again; what
//! was not sealed here opens nothing.
//! Not here: what becomes of which message (the tests of `mcp`).

use std::collections::{HashMap, HashSet};

use mcp::bridge::{TaskId, told_legacy, told_modern, with_id};
use mcp::catalog::{Catalog, Found, Kind, Naming, Source, found, fresh, merged};
use mcp::client::Can;
use mcp::discover::Fresh;
use mcp::envelope::{Message, Says, is_same_id};
use mcp::events::{Said, Speaker, Unusable, answer_to, progress_to, said, told};
use mcp::handshake::{Abilities, answered};
use mcp::header::{Header, decoded, encoded};
use mcp::listen::{Filter, tagged};
use mcp::modern::{Headers, Meta, check, is_named};
use mcp::place::{Of, Place as InStream};
use mcp::reply::{result, spliced, string};
use mcp::session::{NONCE_BYTES, OpenServer, Place, Principal, Sealer, Session, StateOf};
use mcp::target::of as target_of;
use mcp::version::Version;
use policy::mcp::Prefix;
use policy::secret::Secret;
use serde_json::value::RawValue;

/// The request that is answered.
const ASKED: &[u8] = b"7";

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    let parts: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    match choice % 6 {
        0 => events(rest),
        1 => targets(rest),
        2 => lists(choice / 6, &parts),
        3 => answers(rest),
        4 => ids(rest, &parts),
        _ => headers(&parts),
    }
}

/// The id of a message that has one; of an answer, whether it is one.
fn id_of(text: &[u8]) -> Option<(&[u8], bool)> {
    let message = Message::read(text).expect("one message");
    match message.says {
        Says::Request { id, .. } => Some((id, false)),
        Says::Response { id, .. } => Some((id, true)),
        Says::Notification { .. } => None,
    }
}

/// What a server says, of itself and in answer.
fn events(text: &[u8]) {
    for is_prefixed in [false, true] {
        let speaker = Speaker {
            name: "a",
            is_prefixed,
        };
        let heard = told(text, speaker);
        match said(text, speaker, ASKED) {
            Ok(Said::Answer(answer)) => {
                let (id, is_answer) = id_of(&answer).expect("an id");
                assert!(is_answer && is_same_id(id, ASKED), "another's answer");
                assert_eq!(heard, Err(Unusable::OtherId), "an answer outside a call");
            }
            Ok(before) => {
                assert_eq!(heard.as_ref(), Ok(&before));
                let Said::Before { text, asks, .. } = &before else {
                    return;
                };
                let shown = id_of(text);
                assert_eq!(shown.is_some(), asks.is_some());
                let (Some((id, is_answer)), Some(asks)) = (shown, asks) else {
                    continue;
                };
                assert!(!is_answer, "a request that reads as an answer");
                let (server, back) = answer_to(&result(id, b"{}")).expect("it finds back");
                assert_eq!((&*server, id_of(&back)), ("a", Some((&*asks.id, true))));
            }
            Err(_) => assert!(heard.is_err(), "{heard:?}"),
        }
    }
    if let Some((_, back)) = answer_to(text) {
        assert!(id_of(&back).is_some_and(|(_, is_answer)| is_answer));
    }
    if let Some((_, back)) = progress_to(text) {
        Message::read(&back).expect("one message");
    }
}

/// What a request names, and the name of the server in its place.
fn targets(text: &[u8]) {
    let Ok(message) = Message::read(text) else {
        return;
    };
    let Says::Request { id, method, .. } = &message.says else {
        return;
    };
    // Neither may panic, whatever it reads.
    let _meta = Meta::read(text, message.params.as_ref());
    let _filter = Filter::read(text, message.params.as_ref());
    let Ok(Some(target)) = target_of(method, text, message.params.as_ref()) else {
        return;
    };
    let own = format!("x{}\"\\", target.name);
    let sent = spliced(text, target.at.clone(), &string(&own));
    let again = Message::read(&sent).expect("one message");
    assert!(matches!(&again.says, Says::Request { id: same, .. } if same == id));
    if let Ok(Some(seen)) = target_of(method, &sent, again.params.as_ref()) {
        assert_eq!((seen.kind, &*seen.name), (target.kind, &*own));
    }
}

/// Lists of two servers, each of the pages that one half of the parts are.
fn lists(choice: u8, pages: &[&[u8]]) {
    let kind = Kind::ALL[usize::from(choice) % Kind::ALL.len()];
    let mut catalogs = [Catalog::default(), Catalog::default()];
    for (nth, page) in pages.iter().enumerate() {
        // What is no list adds nothing.
        let _next = catalogs[nth % 2].add_page(kind, page);
    }
    if choice & 4 != 0 {
        catalogs[0].leave_out_ill_annotated();
    }
    let sources = [("a", &catalogs[0]), ("b_c", &catalogs[1])].map(|(server, catalog)| Source {
        server,
        catalog: Some(catalog),
        last: None,
    });
    let unless_said = Fresh {
        ttl_ms: 1000,
        is_public: true,
    };
    assert!(fresh(&sources, unless_said, true).ttl_ms <= 1000);
    for prefix in [Prefix::Always, Prefix::Never, Prefix::OnConflict] {
        let naming = Naming::of(prefix, sources.iter().map(|source| source.server));
        let listed = merged(kind, &sources, &naming, |_, _| true);
        let hidden = merged(kind, &sources, &naming, |_, _| false);
        let mut seen = HashSet::new();
        for name in names(kind, &listed) {
            let found = found(kind, &sources, &naming, &name, |_, _| true);
            assert!(matches!(found, Found::One(..)), "{name}: {found:?}");
            assert!(seen.insert(name), "a name twice");
        }
        assert!(names(kind, &hidden).is_empty());
    }
}

fn names(kind: Kind, listed: &[u8]) -> Vec<String> {
    let (list, named) = match kind {
        Kind::Tools => ("tools", "name"),
        Kind::Prompts => ("prompts", "name"),
        Kind::Resources => ("resources", "uri"),
        Kind::Templates => ("resourceTemplates", "uriTemplate"),
    };
    let all: HashMap<String, &RawValue> = serde_json::from_slice(listed).expect("JSON");
    let items: Vec<&RawValue> = serde_json::from_str(all[list].get()).expect("a list");
    let name = |item: &&RawValue| {
        // Other members may have names that are no text.
        let item: HashMap<String, &RawValue> = serde_json::from_str(item.get()).ok()?;
        Some(serde_json::from_str(item[named].get()).expect("a name"))
    };
    items.iter().filter_map(name).collect()
}

/// An answer on its way to a client of the other kind.
fn answers(text: &[u8]) {
    let _found = mcp::discover::found(text);
    let _answered = answered(text);
    let _legacy = told_legacy(text);
    if let Some(tagged) = tagged(text, ASKED) {
        Message::read(&tagged).expect("one message");
    }
    if let Ok(answer) = with_id(text, ASKED) {
        assert_eq!(id_of(&answer), Some((ASKED, true)));
        for (is_read, is_for_all) in [(false, false), (true, true)] {
            let seal = |state: &str| Some(state.to_owned());
            let tasks = [TaskId::None, TaskId::Sealed(&seal), TaskId::Shown("t")];
            for task in tasks {
                if let Ok(told) = told_modern(&answer, is_read, is_for_all, seal, task) {
                    assert_eq!(id_of(&told), Some((ASKED, true)));
                }
            }
        }
    }
}

/// Ids that a client makes up open nothing; those that are made of anything open as that.
fn ids(text: &[u8], parts: &[&[u8]]) {
    let sealer = Sealer::new(&Secret::new(vec![7; 32]), None).expect("a key");
    let place = Place::new("r", [("a", "http://a/mcp".to_owned())].into_iter());
    let part = |nth: usize| String::from_utf8_lossy(parts.get(nth).unwrap_or(&&b""[..]));
    let (user, name) = (part(0), part(1));
    let who = Principal {
        workload: "w",
        by: "key",
        issuer: None,
        key: None,
        user: Some(&user),
        tokens: None,
    };
    assert!(sealer.open(text, &place, &who, 0).is_err());
    assert_eq!(InStream::read(text, &sealer, b"session"), None);
    let of = StateOf::new("tools/call", "a__t", &place, &who);
    assert_eq!(sealer.open_state(&part(0), &of, 0), None);
    if let Some((open, rest)) = OpenServer::read(text) {
        let mut again = Vec::new();
        open.write(&mut again).expect("what was read fits");
        again.extend(rest);
        assert_eq!(OpenServer::read(&again), Some((open, rest)));
    }
    let session = Session {
        until_unix_s: 60,
        version: Version::V20251125,
        can: Can::default(),
        servers: vec![OpenServer {
            name: (&*name).into(),
            version: Version::V20250618,
            abilities: Abilities::TOOLS,
            // An empty one is none.
            id: (!user.is_empty()).then(|| (&*user).into()),
        }],
    };
    let nonce = [1; NONCE_BYTES];
    if let Some(id) = sealer.seal(&session, &place, &who, nonce) {
        assert_eq!(sealer.open(id.as_bytes(), &place, &who, 0), Ok(session));
        let nobody = Principal { user: None, ..who };
        assert!(sealer.open(id.as_bytes(), &place, &nobody, 0).is_err());
    }
    if let Some(state) = sealer.seal_state(&name, &of, 0, nonce) {
        assert_eq!(sealer.open_state(&state, &of, 0).as_deref(), Some(&*name));
    }
    let mut stream = InStream::new(Of::Call(parts[0].into()));
    stream.move_to("a", name.as_bytes());
    if let Some(id) = stream.write(&sealer, b"session") {
        let read = InStream::read(id.as_bytes(), &sealer, b"session");
        assert_eq!(read, Some(stream));
        assert_eq!(InStream::read(id.as_bytes(), &sealer, b"other"), None);
    }
}

/// A request without a session: its body, and what its headers say.
fn headers(parts: &[&[u8]]) {
    let value = String::from_utf8_lossy(parts[0]);
    let written = encoded(&value);
    assert_eq!(decoded(written.as_bytes()).as_deref(), Some(&*value));
    let Ok(message) = Message::read(parts[0]) else {
        return;
    };
    let Says::Request { method, .. } = &message.says else {
        return;
    };
    let Ok(meta) = Meta::read(parts[0], message.params.as_ref()) else {
        return;
    };
    let target = target_of(method, parts[0], message.params.as_ref());
    let target = target.ok().flatten().filter(|_| is_named(method));
    let named = target.as_ref().map(|target| &*target.name);
    let header = |nth: usize| Header::of(parts.get(nth).into_iter().copied());
    let said = Headers {
        version: header(1),
        method: header(2),
        name: header(3),
        agent: parts.get(4).copied(),
    };
    let Ok(client) = check(method, named, &meta, &said) else {
        return;
    };
    if let (Some(named), Header::One(name)) = (named, said.name) {
        assert_eq!(decoded(name).as_deref(), Some(named), "another thing");
    }
    if !client.mixes {
        assert!(matches!(said.method, Header::One(said) if said == method.as_bytes()));
        assert!(named.is_none() || said.name != Header::None);
    }
}
