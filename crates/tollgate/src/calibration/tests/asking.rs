//! Engines on loopback are asked: who, in which order, and what is told of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};

use policy::caller::Later;
use policy::credential::{Credential, Minter, Signer, UpstreamAuth};
use policy::secret::Secret;
use tokens::Counter;

use super::*;
use crate::calibration::engines::tests::of;

/// In place of a number of tokens: every question is answered with 500.
const REFUSES: usize = usize::MAX;

/// An engine that renders text; each prompt is so many tokens, or as many as we count.
struct Fake {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Fake {
    fn start(tokens: Option<usize>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            let counter = Counter::harmony();
            for connection in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                // Whoever hangs up gets no answer.
                let _ = answer(&connection, &counter, tokens);
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn answer(connection: &TcpStream, counter: &Counter, tokens: Option<usize>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (status, text) = if tokens == Some(REFUSES) {
        (500, "{}".to_owned())
    } else if first.contains("/v1/completions/render") {
        let ours = counter.prompt(Operation::Completions, &body, clock());
        let ours = ours.map_or(0, |prompt| prompt.count.tokens);
        let tokens = tokens.unwrap_or(usize::try_from(ours).unwrap_or(0));
        (200, format!("{{\"token_ids\":{:?}}}", vec![1; tokens]))
    } else {
        (404, "{}".to_owned())
    };
    write!(
        &mut &*connection,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    )
}

fn backend(name: &str, model: &str, addresses: &[SocketAddr]) -> String {
    let url = |address: &SocketAddr| format!("{{ url: http://{address}/v1 }}");
    let urls: Vec<String> = addresses.iter().map(url).collect();
    let urls = urls.join(", ");
    format!("  {name}: {{ endpoints: [ {urls} ], models: {model} }}\n")
}

fn closed() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

async fn told(engines: &Engines, ids: Ids) -> Vec<About> {
    let counter = Arc::new(Counter::harmony());
    let counter = move |_| Some(Arc::clone(&counter));
    let mut all = Vec::new();
    asked_of(engines, &counter, Wanted::All, ids, |about| {
        all.push(about);
        true
    })
    .await;
    all
}

fn is_now(fault: Option<&NoWay>) -> bool {
    matches!(fault, Some(NoWay::Now(_)))
}

#[tokio::test]
async fn a_round_is_whole_where_all_addresses_were_asked() {
    let (one, other) = (Fake::start(None), Fake::start(None));
    let engines = of(&backend("a", "gpt-oss", &[one.address, other.address]), "");
    let all = told(&engines, Ids::Dropped).await;
    let round = all[0].round.as_ref().expect("a round");
    assert_eq!((round.addresses.unasked, round.is_whole()), (0, true));
    assert!(round.says_anything() && round.outcomes().other == 0);
    let engines = of(&backend("a", "gpt-oss", &[one.address, closed()]), "");
    let all = told(&engines, Ids::Dropped).await;
    let round = all[0].round.as_ref().expect("a round");
    assert_eq!((round.addresses.unasked, round.is_whole()), (1, false));
    assert!(is_now(all[0].fault.as_ref()));
}

#[tokio::test]
async fn an_engine_that_refuses_every_question_cannot_be_asked_now() {
    let refusing = Fake::start(Some(REFUSES));
    let engines = of(&backend("a", "gpt-oss", &[refusing.address]), "");
    let told = told(&engines, Ids::Dropped).await;
    assert_eq!(told.len(), 1);
    assert!(is_now(told[0].fault.as_ref()), "it is asked again soon");
    assert!(refusing.asked() > 0);
}

#[tokio::test]
async fn a_model_is_told_of_before_the_next_is_asked_about() {
    let (one, other) = (Fake::start(None), Fake::start(None));
    let backends = backend("a", "gpt-oss", &[one.address]);
    let backends = backends + &backend("b", "gpt-oss", &[other.address]);
    let engines = of(&backends, "");
    let counter = Arc::new(Counter::harmony());
    let counter = move |_| Some(Arc::clone(&counter));
    let mut names = Vec::new();
    asked_of(&engines, &counter, Wanted::All, Ids::Dropped, |about| {
        names.push(about.of.backend.to_string());
        assert!(one.asked() > 0 && other.asked() == 0);
        false
    })
    .await;
    assert_eq!(names, ["a"]);
    assert_eq!(other.asked(), 0);
}

#[tokio::test]
async fn numbers_of_tokens_are_kept_for_a_person_and_not_beyond_a_bound() {
    for (tokens, ids, is_kept) in [
        (9, Ids::Kept, true),
        (9, Ids::Dropped, false),
        (100_000, Ids::Kept, false),
    ] {
        let fake = Fake::start(Some(tokens));
        let engines = of(&backend("a", "gpt-oss", &[fake.address]), "");
        let all = told(&engines, ids).await;
        let asked = &all[0].round.as_ref().expect("a round").asked;
        let kept = asked.iter().any(|asked| match &asked.came {
            Came::Other { ids, .. } => !ids.is_empty(),
            _ => false,
        });
        assert_eq!(kept, is_kept, "{tokens} {ids:?}");
        assert!(
            asked
                .iter()
                .any(|asked| matches!(asked.came, Came::Other { .. }))
        );
    }
}

/// Makes credentials, and counts them.
#[derive(Debug, Default)]
struct Makes {
    is_for_caller: bool,
    made: AtomicUsize,
}

#[derive(Debug)]
struct Signs;

impl Signer for Signs {
    fn covers(&self, _: &[u8]) -> bool {
        false
    }

    fn sign(&self, _: &policy::credential::Signable<'_>, _: u64) -> Vec<(&'static str, Secret)> {
        Vec::new()
    }
}

impl Minter for Makes {
    fn account(&self) -> &str {
        "test"
    }

    fn is_for_caller(&self) -> bool {
        self.is_for_caller
    }

    fn ready(&self, _: Option<&Secret>) -> Option<Arc<Credential>> {
        self.made.fetch_add(1, Ordering::SeqCst);
        Some(Arc::new(Credential::Signer(Box::new(Signs))))
    }

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        unreachable!("it is ready")
    }

    fn refused(&self, _: u16, _: Option<&Secret>) {}
}

#[tokio::test]
async fn who_signs_or_needs_a_caller_is_passed_over_and_none_is_made_for_nobody() {
    let fake = Fake::start(None);
    for (model, is_for_caller, why, made) in [
        (
            "gpt-oss",
            true,
            Some("its credential is made of a caller's own"),
            0,
        ),
        ("gpt-oss", false, Some("its requests are signed"), 1),
        ("gpt-4o", false, None, 0),
    ] {
        let mut engines = of(&backend("a", model, &[fake.address]), "");
        let makes = Arc::new(Makes {
            is_for_caller,
            ..Makes::default()
        });
        for engine in &mut engines.all {
            engine.auth = UpstreamAuth::Minted(Arc::<Makes>::clone(&makes));
        }
        let all = told(&engines, Ids::Dropped).await;
        let faults: Vec<_> = all.iter().filter_map(|about| about.fault.clone()).collect();
        let expected: Vec<_> = why.into_iter().map(NoWay::Never).collect();
        assert_eq!(faults, expected);
        assert_eq!(makes.made.load(Ordering::SeqCst), made);
    }
    assert_eq!(fake.asked(), 0);
}

#[tokio::test]
async fn an_engine_that_does_not_say_what_it_has_stands_for_its_models_unless_one_is_asked_for() {
    let backends = format!("  a: {{ url: http://{}/v1 }}\n", closed());
    let engines = of(&backends, "");
    let all = told(&engines, Ids::Dropped).await;
    assert_eq!((all.len(), &*all[0].of.model), (1, "*"));
    assert!(is_now(all[0].fault.as_ref()));
    let wanted = [("a".into(), "gpt-oss".into())].into();
    let none = |_| None;
    let mut tells = 0;
    asked_of(
        &engines,
        &none,
        Wanted::Models(&wanted),
        Ids::Dropped,
        |_| {
            tells += 1;
            true
        },
    )
    .await;
    assert_eq!(tells, 0);
}
