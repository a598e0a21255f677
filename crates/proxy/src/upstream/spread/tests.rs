//! Turns, addresses that are avoided, and when an address is gone.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

use super::{AVOID_FOR, GONE_AFTER, Spread};

fn ip(of: &str) -> IpAddr {
    of.parse().expect("an address")
}

/// From which the others are reckoned: what is tested is told the time, and no clock decides.
fn any_moment() -> Instant {
    Instant::now()
}

fn found(spread: &Spread, of: &[&str], now: Instant) {
    let addresses: Vec<SocketAddr> = of.iter().map(|of| SocketAddr::new(ip(of), 80)).collect();
    spread.apply("name.test", &addresses, now);
}

fn turns(spread: &Spread, many: usize, now: Instant) -> Vec<Option<IpAddr>> {
    (0..many).map(|_| spread.turn(|| now)).collect()
}

#[test]
fn a_name_with_one_address_gives_no_turns_and_looks_at_nothing() {
    let (spread, now) = (Spread::default(), any_moment());
    assert_eq!(spread.turn(|| panic!("no clock is read")), None);
    found(&spread, &["192.0.2.1"], now);
    assert_eq!(spread.turn(|| panic!("no clock is read")), None);
    assert!(spread.may_use(ip("192.0.2.9")) && spread.may_keep(ip("192.0.2.9")));
    // Two families of one machine: the first is taken, and the other where it fails.
    found(&spread, &["::1", "127.0.0.1"], now);
    assert_eq!(spread.turn(|| now), None);
}

#[test]
fn addresses_of_one_name_take_turns() {
    let (spread, now) = (Spread::default(), any_moment());
    let three = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    found(&spread, &three, now);
    let given = turns(&spread, 300, now);
    for of in three {
        let times = given.iter().filter(|turn| **turn == Some(ip(of))).count();
        assert_eq!(times, 100, "{of}");
    }
}

#[test]
fn an_address_that_took_no_connection_has_no_turn_for_a_moment() {
    let (spread, now) = (Spread::default(), any_moment());
    found(&spread, &["192.0.2.1", "192.0.2.2"], now);
    spread.avoid(ip("192.0.2.1"), now);
    assert_eq!(turns(&spread, 3, now), [Some(ip("192.0.2.2")); 3]);
    spread.avoid(ip("192.0.2.2"), now);
    assert_eq!(spread.turn(|| now), None, "any is as good");
    let later = turns(&spread, 2, now + AVOID_FOR);
    assert!(later.contains(&Some(ip("192.0.2.1"))) && later.contains(&Some(ip("192.0.2.2"))));
}

#[test]
fn calls_leave_an_address_with_the_answer_that_lacks_it_and_its_connections_close_later() {
    let (spread, now) = (Spread::default(), any_moment());
    let (old, new) = (ip("192.0.2.1"), ip("192.0.2.2"));
    found(&spread, &["192.0.2.1"], now);
    found(&spread, &["192.0.2.2"], now + Duration::from_secs(5));
    assert!(spread.may_use(new) && !spread.may_use(old));
    assert!(spread.may_keep(old), "it may come back");
    found(
        &spread,
        &["192.0.2.1", "192.0.2.2"],
        now + Duration::from_secs(10),
    );
    assert!(spread.may_use(old), "it came back");
    let last = now + Duration::from_secs(10) + GONE_AFTER;
    found(&spread, &["192.0.2.2"], last);
    assert!(!spread.may_keep(old) && spread.may_keep(new));
    assert!(!spread.may_use(old));
}

#[test]
fn addresses_that_are_remembered_are_bounded() {
    let (spread, now) = (Spread::default(), any_moment());
    for of in 0..1000_u32 {
        let address = SocketAddr::new(std::net::Ipv4Addr::from_bits(of).into(), 80);
        spread.apply("name.test", &[address], now);
    }
    assert_eq!(spread.found.borrow().len(), super::MOST);
}
