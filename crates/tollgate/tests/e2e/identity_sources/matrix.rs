//! Attempts of every make at every list of sources, over both versions of HTTP: no bypass, and nobody refused who is good.
//!
//! Each attempt puts a credential into a place, perhaps twice, perhaps in another case, beside identity headers and a
//! client's certificate, on a path in some spelling. What must come of it is decided from the parts alone, without the
//! gate's code. The upstream says whose credential it got, so that who is let in is let in as who it is.
//! `TOLLGATE_MATRIX_CASES` makes a longer run.
//! Not here: what an attempt is made of (`attempt`), what must come of it (`expected`), lists of sources (`scene`).

mod attempt;
mod client;
mod credential;
mod expected;
mod scene;

use std::net::Ipv4Addr;

use self::attempt::{Attempt, Chance, Version};
use self::client::Client;
use self::expected::Expected;
use self::scene::{CLEARTEXT, OVER_TLS, Peer, Scene, Source, World};

/// Attempts of each test, unless `TOLLGATE_MATRIX_CASES` says.
const CASES: u64 = 1_600;
/// Attempts from one address: fewer than the bad credentials after which none of it is looked at.
const LOT: usize = 40;

/// What came of attempts over one version of HTTP.
#[derive(Default, Clone, Copy)]
struct Tally {
    let_in: usize,
    refused: usize,
}

/// As many attempts as are asked for, spread over these lists of sources.
fn run(test: &str, lists: &[&[Source]]) {
    let cases = testing::number_of("TOLLGATE_MATRIX_CASES", CASES);
    let cases = usize::try_from(cases).expect("a number of cases");
    println!("{cases} attempts or a few more");
    let mut chance = Chance::new(testing::seed(test));
    let world = World::new();
    let lots = cases.div_ceil(LOT * lists.len());
    let mut tallies = [Tally::default(); 2];
    for (nth, list) in lists.iter().enumerate() {
        let scene = Scene::start(&world, list);
        for lot in 0..lots {
            let byte = |n: usize| u8::try_from(n).expect("a byte");
            let from = Ipv4Addr::new(127, byte(nth + 1), byte(lot / 250), byte(lot % 250 + 1));
            let version = *chance.of(&[Version::H1, Version::H2]);
            let tally = &mut tallies[usize::from(version == Version::H2)];
            one_lot(&scene, version, from, &mut chance, tally).expect("as expected");
        }
    }
    let mut let_in = 0;
    for (version, tally) in ["HTTP/1.1", "HTTP/2"].iter().zip(tallies) {
        println!(
            "{version}: {} let in, {} refused",
            tally.let_in, tally.refused
        );
        let all = tally.let_in + tally.refused;
        assert!(
            tally.let_in * 5 > all && tally.refused * 5 > all,
            "{version}: too few of one kind say little"
        );
        let_in += tally.let_in;
    }
    assert_eq!(world.calls(), let_in, "calls that went upstream");
}

/// Attempts of one client, on connections from one address.
fn one_lot(
    scene: &Scene<'_>,
    version: Version,
    from: Ipv4Addr,
    chance: &mut Chance,
    tally: &mut Tally,
) -> Result<(), String> {
    let peer = *chance.of(if scene.is_tls {
        Peer::ALL
    } else {
        &[Peer::Nobody]
    });
    let all = &scene.world.credentials;
    let good = all.iter().filter(|of| expected::is_good(scene.list, of));
    let good: Vec<_> = good.collect();
    let mut client: Option<Client> = None;
    for n in 0..LOT {
        let attempt = Attempt::by_chance(chance, version, all, &good);
        let expected = expected::of(scene.list, peer, &attempt);
        let open = client.get_or_insert_with(|| Client::open(scene, version, peer, from));
        let answer = open.call(&attempt);
        let is_as_expected = match expected {
            Expected::In(workload) => {
                tally.let_in += 1;
                answer.status == 200 && answer.says.contains(&format!(r#""id":"{workload}""#))
            }
            Expected::Out(statuses) => {
                tally.refused += 1;
                statuses.contains(&answer.status)
            }
        };
        if !is_as_expected {
            return Err(format!(
                "{:?}, {peer:?}, {from}, attempt {n}: {attempt:?}\nexpected {expected:?}, and not {} {}",
                scene.list, answer.status, answer.says
            ));
        }
        if !answer.is_open {
            client = None;
        }
    }
    Ok(())
}

#[test]
fn no_attempt_gets_in_that_should_not_and_none_is_refused_that_is_good() {
    run("matrix", CLEARTEXT);
}

#[test]
fn no_attempt_beside_a_certificate_gets_in_that_should_not_and_none_is_refused_that_is_good() {
    run("matrix_over_tls", OVER_TLS);
}

/// What keeps the tests above honest: sources in another order than they are judged by are seen.
#[test]
fn sources_in_the_wrong_order_do_not_pass() {
    let world = World::new();
    let (written, judged) = (
        [Source::Introspection, Source::Jwt],
        [Source::Jwt, Source::Introspection],
    );
    let scene = Scene::start_with(&world, &written, &judged);
    for version in [Version::H1, Version::H2] {
        let (mut chance, mut tally) = (Chance::new(7), Tally::default());
        let mut lots = (1..=10).map(|lot| {
            let from = Ipv4Addr::new(127, 99, version as u8, lot);
            one_lot(&scene, version, from, &mut chance, &mut tally)
        });
        assert!(
            lots.any(|lot| lot.is_err()),
            "{version:?}: 400 attempts saw nothing"
        );
    }
}
