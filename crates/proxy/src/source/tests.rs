//! Sources by example.

use super::{Entered, Source, Sources};

fn source(address: &str) -> Source {
    Source::of(address.parse().expect("an address"))
}

#[test]
fn an_address_of_ipv6_counts_as_its_network() {
    assert_eq!(source("2001:db8:1:2::1"), source("2001:db8:1:2:ffff::9"));
    assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
    assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
    assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
    assert_eq!(source("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
    assert_eq!(source("10.0.0.1").to_string(), "10.0.0.1");
}

#[test]
fn one_source_is_held_to_the_bound_and_others_are_not() {
    let (one, other) = (source("10.0.0.1"), source("10.0.0.2"));
    let mut sources = Sources::default();
    for _ in 0..4 {
        assert_eq!(sources.enter(one, 4), Entered::Within);
    }
    assert_eq!(sources.enter(one, 4), Entered::Beyond { is_first: true });
    assert_eq!(sources.enter(one, 4), Entered::Beyond { is_first: false });
    assert_eq!(sources.enter(other, 4), Entered::Within);
    assert_eq!(sources.leave(one), None, "three are left: it is full still");
    assert_eq!(sources.enter(one, 4), Entered::Within);
    assert_eq!(sources.enter(one, 4), Entered::Beyond { is_first: false });
    assert_eq!(sources.leave(one), None);
    assert_eq!(sources.leave(one), Some(3), "half of it is free");
    assert_eq!(sources.leave(one), None);
    assert_eq!(sources.leave(one), None);
}

#[test]
fn a_source_without_a_connection_takes_no_room() {
    let mut sources = Sources::default();
    for n in 0..1000_u32 {
        let source = Source::of(std::net::IpAddr::V4(n.into()));
        assert_eq!(sources.enter(source, 1), Entered::Within);
        assert_eq!(sources.enter(source, 1), Entered::Beyond { is_first: true });
        assert_eq!(sources.leave(source), Some(1));
    }
    assert!(sources.0.is_empty());
}
