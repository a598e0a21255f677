//! Whose address is the client's, and what of it is recorded.

use std::net::IpAddr;

use super::{Clients, Network, Recorded};
use crate::fixture::request;

fn network(text: &str) -> Network {
    let (address, bits) = text.split_once('/').unwrap();
    Network::new(address.parse().unwrap(), bits.parse().unwrap()).unwrap()
}

fn clients(recorded: Recorded) -> Clients {
    Clients {
        recorded,
        proxies: ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8"]
            .map(network)
            .to_vec(),
        proxy_protocol: false,
    }
}

fn address(peer: &str, lists: &[&str]) -> String {
    let fields: Vec<_> = lists
        .iter()
        .map(|list| ("x-forwarded-for", *list))
        .collect();
    let head = request("POST", "/v1/chat/completions", &fields);
    let address = clients(Recorded::Full).address(peer.parse().unwrap(), &head);
    address.to_string()
}

#[test]
fn the_client_is_the_first_address_from_the_right_that_no_trusted_proxy_has() {
    let rows: &[(&str, &[&str], &str)] = &[
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", &["203.0.113.9, 10.1.1.1"], "203.0.113.9"),
        (
            "10.0.0.1",
            &["6.6.6.6, 203.0.113.9,10.1.1.1,192.0.2.7"],
            "203.0.113.9",
        ),
        (
            "10.0.0.1",
            &["6.6.6.6", "203.0.113.9", "10.1.1.1"],
            "203.0.113.9",
        ),
        ("10.0.0.1", &["10.9.9.9, 10.1.1.1"], "10.9.9.9"),
        ("fd00::1", &["2001:db8::5"], "2001:db8::5"),
        ("10.0.0.1", &["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", &["[2001:db8::5]:4711"], "2001:db8::5"),
        ("10.0.0.1", &["::ffff:203.0.113.9"], "203.0.113.9"),
    ];
    for (peer, lists, expected) in rows {
        assert_eq!(address(peer, lists), *expected, "{peer} {lists:?}");
    }
}

#[test]
fn a_word_of_somebody_who_is_not_trusted_counts_for_nothing() {
    for peer in ["203.0.113.1", "192.0.2.8", "2001:db8::1", "11.0.0.1"] {
        assert_eq!(address(peer, &["10.0.0.9", "6.6.6.6"]), peer);
    }
}

#[test]
fn what_is_no_address_ends_the_search_at_the_proxy_that_wrote_it() {
    for garbage in [
        "unknown",
        "_hidden",
        "",
        "203.0.113.9:x",
        "203.0.113.9:",
        "999.1.1.1",
        "é",
    ] {
        let list = format!("6.6.6.6, {garbage}, 10.1.1.1");
        assert_eq!(address("10.0.0.1", &[&list]), "10.1.1.1", "{garbage}");
    }
    let endless = "10.1.1.1,".repeat(1000) + "10.1.1.1";
    assert_eq!(address("10.0.0.1", &[&endless]), "10.1.1.1");
}

#[test]
fn networks_hold_what_begins_with_their_bits() {
    let holds = |text: &str, address: &str| network(text).contains(address.parse().unwrap());
    assert!(holds("0.0.0.0/0", "255.1.2.3") && holds("::/0", "2001:db8::1"));
    assert!(holds("10.1.2.3/8", "10.255.0.1") && !holds("10.1.2.3/8", "11.0.0.1"));
    assert!(holds("192.0.2.128/25", "192.0.2.255") && !holds("192.0.2.128/25", "192.0.2.127"));
    assert!(
        holds("2001:db8::/33", "2001:db8:7fff::") && !holds("2001:db8::/33", "2001:db8:8000::")
    );
    assert!(!holds("0.0.0.0/0", "::1") && !holds("::/0", "127.0.0.1"));
    assert_eq!(Network::new("1.2.3.4".parse::<IpAddr>().unwrap(), 33), None);
    assert_eq!(Network::new("::1".parse::<IpAddr>().unwrap(), 129), None);
}

#[test]
fn an_address_is_recorded_whole_shortened_or_not_at_all() {
    let head = request("GET", "/v1/models", &[]);
    let of = |recorded, peer: &str| {
        let address = clients(recorded).recorded(peer.parse().unwrap(), &head);
        address.map(|address| address.to_string())
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(of(Recorded::Full, "203.0.113.9"), some("203.0.113.9"));
    assert_eq!(of(Recorded::Shortened, "203.0.113.9"), some("203.0.113.0"));
    assert_eq!(
        of(Recorded::Shortened, "2001:db8:1:2::5"),
        some("2001:db8:1::")
    );
    assert_eq!(of(Recorded::Off, "203.0.113.9"), None);
}
