//! Which names are read of a certificate, and that what is odd names nobody.
//!
//! Not here: whether it is good, and sessions (`tls`).

use rcgen::string::Ia5String;
use rcgen::{CertificateParams, CustomExtension, KeyPair, SanType, date_time_ymd};

use super::der::{GENERALIZED_TIME, UTC_TIME};
use super::{read, unix_s};

fn ia5(text: &str) -> Ia5String {
    Ia5String::try_from(text).expect("ASCII")
}

fn uri(text: &str) -> SanType {
    SanType::URI(ia5(text))
}

fn dns(text: &str) -> SanType {
    SanType::DnsName(ia5(text))
}

fn certificate(names: Vec<SanType>, change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.subject_alt_names = names;
    change(&mut params);
    let made = params.self_signed(&key).expect("a certificate");
    made.der().to_vec()
}

/// The names of a certificate with these, or why it has none.
fn named(names: Vec<SanType>) -> Result<Vec<String>, &'static str> {
    let (said, unusable) = read(&certificate(names, |_| {})).expect("a certificate");
    match unusable {
        Some(why) => {
            assert!(said.names.is_empty(), "{why}: {:?}", said.names);
            Err(why)
        }
        None => Ok(said.names.iter().map(|name| name.to_string()).collect()),
    }
}

#[test]
fn names_are_uris_and_dns_names_in_their_order() {
    let all = vec![
        dns("Web.Chat.Internal"),
        SanType::Rfc822Name(ia5("web@chat.internal")),
        uri("spiffe://cluster.local/ns/chat/sa/web"),
        SanType::IpAddress([10, 1, 2, 3].into()),
        SanType::OtherName((
            vec![1, 2, 3],
            rcgen::OtherNameValue::Utf8String("web".into()),
        )),
        dns("*.batch.internal"),
    ];
    let read = [
        "web.chat.internal",
        "spiffe://cluster.local/ns/chat/sa/web",
        "*.batch.internal",
    ];
    assert_eq!(named(all), Ok(read.map(str::to_owned).to_vec()));
    // Its subject's common name, which rcgen writes, is none of them.
    assert_eq!(named(Vec::new()), Ok(Vec::new()));
    let two = vec![uri("https://a.test/x"), uri("urn:uuid:1")];
    assert_eq!(named(two).map(|names| names.len()), Ok(2));
}

#[test]
fn a_spiffe_id_beside_another_uri_is_ambiguous() {
    let id = "spiffe://cluster.local/ns/chat/sa/web";
    for other in [
        id,
        "spiffe://cluster.local/ns/admin/sa/root",
        "SPIFFE://cluster.local/ns/admin/sa/root",
        "https://a.test/",
    ] {
        for names in [vec![uri(id), uri(other)], vec![uri(other), uri(id)]] {
            let refused = named(names).expect_err(other);
            assert!(refused.contains("a choice"), "{other}: {refused}");
        }
    }
    assert_eq!(named(vec![uri(id), dns("web")]).map(|n| n.len()), Ok(2));
}

#[test]
fn no_kind_of_name_can_pose_as_the_other() {
    let rows = [
        dns("spiffe://cluster.local/ns/chat/sa/web"),
        dns("a:b"),
        dns("web chat"),
        dns("web\0.internal"),
        dns(""),
        uri("web.chat.internal"),
        uri("//web.chat.internal"),
        uri(":x"),
        uri("1a:x"),
        uri("spiffe://cluster.local/a b"),
        uri("spiffe://cluster.local/a\0"),
        uri("spi ffe://cluster.local/a"),
        uri(""),
    ];
    for name in rows {
        let what = format!("{name:?}");
        // The good name beside it does not count either.
        let refused = named(vec![dns("good.internal"), name]);
        assert!(refused.is_err(), "{what}: {refused:?}");
    }
}

#[test]
fn more_names_than_64_and_names_longer_than_1024_bytes_are_none() {
    let many = |count: usize| (0..count).map(|n| dns(&format!("n{n}"))).collect();
    assert_eq!(named(many(64)).map(|names| names.len()), Ok(64));
    assert!(named(many(65)).is_err());
    let long = |bytes: usize| vec![uri(&format!("urn:{}", "x".repeat(bytes - 4)))];
    assert_eq!(named(long(1024)).map(|names| names.len()), Ok(1));
    assert!(named(long(1025)).is_err());
    assert!(named(vec![dns(&"x".repeat(1025))]).is_err());
}

#[test]
fn names_written_twice_are_none() {
    let again = |params: &mut CertificateParams| {
        let value = b"\x30\x03\x82\x01x".to_vec();
        let extension = CustomExtension::from_oid_content(&[2, 5, 29, 17], value);
        params.custom_extensions.push(extension);
    };
    let (alone, _) = read(&certificate(Vec::new(), again)).expect("a certificate");
    assert_eq!(alone.names, [Box::from("x")]);
    let (twice, why) = read(&certificate(vec![dns("web")], again)).expect("a certificate");
    assert!(twice.names.is_empty() && why.is_some(), "{twice:?}");
}

#[test]
fn the_end_is_read_in_both_of_its_forms() {
    for (year, until_unix_s) in [(2049, 2_493_072_000), (2050, 2_524_608_000)] {
        let der = certificate(Vec::new(), |params| {
            params.not_after = date_time_ymd(year, 1, 1);
        });
        let (said, _) = read(&der).expect("a certificate");
        assert_eq!(said.until_unix_s, until_unix_s, "{year}");
    }
    let rows: &[(u8, &str, Option<u64>)] = &[
        (UTC_TIME, "700101000000Z", Some(0)),
        (UTC_TIME, "500101000000Z", Some(0)),
        (UTC_TIME, "260302010203Z", Some(1_772_413_323)),
        (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
        (GENERALIZED_TIME, "20260302010203Z", Some(1_772_413_323)),
        (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
        (UTC_TIME, "20260302010203Z", None),
        (GENERALIZED_TIME, "260302010203Z", None),
        (UTC_TIME, "260302010203", None),
        (UTC_TIME, "260302010203+0000", None),
        (UTC_TIME, "261302010203Z", None),
        (UTC_TIME, "260002010203Z", None),
        (UTC_TIME, "260332010203Z", None),
        (UTC_TIME, "260302240203Z", None),
        (UTC_TIME, "260302016003Z", None),
        (UTC_TIME, "260302010260Z", None),
        (UTC_TIME, "2603020102x3Z", None),
        (UTC_TIME, "-60302010203Z", None),
        (0x0c, "260302010203Z", None),
        (UTC_TIME, "", None),
    ];
    for (kind, text, expected) in rows {
        assert_eq!(unix_s(*kind, text.as_bytes()), *expected, "{text}");
    }
}

#[test]
fn no_bytes_make_it_fail_otherwise_than_by_saying_so() {
    let good = certificate(vec![uri("spiffe://a/b"), dns("web")], |_| {});
    for end in 0..good.len() {
        assert!(read(&good[..end]).is_none(), "cut at {end}");
    }
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut changed = good.clone();
            changed[at] ^= 1 << bit;
            if let Some((said, _)) = read(&changed) {
                assert!(said.names.len() <= 2, "{at}.{bit}: {said:?}");
            }
        }
    }
    for odd in [&b""[..], b"\x30", b"\x30\x80", b"\x30\x84\xff\xff\xff\xff"] {
        assert!(read(odd).is_none(), "{odd:?}");
    }
}
