//! Headers of both versions, whole, cut and broken.

use super::{Fault, Found, HEADER_BYTES, V2, find};

fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [V2, &[command, family], &length, body].concat()
}

fn v4_body() -> Vec<u8> {
    vec![203, 0, 113, 9, 10, 0, 0, 1, 0x12, 0x34, 1, 0xBB]
}

fn source(header: &[u8]) -> Result<Option<String>, Fault> {
    let input = [header, b"GET / HTTP/1.1\r\n"].concat();
    match find(&input)? {
        Found::Header(length, source) => {
            assert_eq!(length, header.len());
            Ok(source.map(|source| source.to_string()))
        }
        Found::Partial => panic!("partial"),
    }
}

#[test]
fn both_versions_name_the_client() {
    let some = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(
        source(b"PROXY TCP4 203.0.113.9 10.0.0.1 4660 443\r\n"),
        some("203.0.113.9")
    );
    assert_eq!(
        source(b"PROXY TCP6 2001:db8::5 fd00::1 4660 443\r\n"),
        some("2001:db8::5")
    );
    assert_eq!(source(&v2(0x21, 0x11, &v4_body())), some("203.0.113.9"));
    let extended = [v4_body(), vec![0x03, 0, 4, 1, 2, 3, 4]].concat();
    assert_eq!(source(&v2(0x21, 0x11, &extended)), some("203.0.113.9"));
    let mut v6 = [0; 36];
    v6[..16].copy_from_slice(
        &"2001:db8::5"
            .parse::<std::net::Ipv6Addr>()
            .unwrap()
            .octets(),
    );
    assert_eq!(source(&v2(0x21, 0x21, &v6)), some("2001:db8::5"));
}

#[test]
fn a_proxys_own_connection_and_one_of_no_address_name_nobody() {
    assert_eq!(source(b"PROXY UNKNOWN\r\n"), Ok(None));
    assert_eq!(source(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), Ok(None));
    assert_eq!(source(&v2(0x20, 0, &[])), Ok(None));
    assert_eq!(source(&v2(0x20, 0x11, &v4_body())), Ok(None));
    assert_eq!(source(&v2(0x21, 0, &[])), Ok(None));
    assert_eq!(source(&v2(0x21, 0x31, &[0; 216])), Ok(None));
}

#[test]
fn a_header_that_is_cut_anywhere_is_waited_for() {
    for header in [
        b"PROXY TCP4 203.0.113.9 10.0.0.1 4660 443\r\n".to_vec(),
        v2(0x21, 0x11, &v4_body()),
    ] {
        for cut in 0..header.len() {
            assert_eq!(find(&header[..cut]), Ok(Found::Partial), "{cut}");
        }
    }
}

#[test]
fn what_is_no_header_is_a_fault() {
    for input in [
        "GET / HTTP/1.1\r\n",
        "POST",
        "\x16\x03\x01",
        "proxy TCP4",
        "PROXZ",
        "\r\n\r\nGET",
    ] {
        assert_eq!(find(input.as_bytes()), Err(Fault::Missing), "{input:?}");
    }
    for line in [
        "PROXY \r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 4660\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 4660 443 1\r\n",
        "PROXY TCP4  203.0.113.9 10.0.0.1 4660 443\r\n",
        "PROXY TCP4 2001:db8::5 fd00::1 4660 443\r\n",
        "PROXY TCP6 203.0.113.9 10.0.0.1 4660 443\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 +660 443\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 4660 70000\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 4660 443\n",
        "PROXY UDP4 203.0.113.9 10.0.0.1 4660 443\r\n",
    ] {
        assert_eq!(find(line.as_bytes()), Err(Fault::Malformed), "{line:?}");
    }
    let endless = format!("PROXY UNKNOWN {}", "x".repeat(200));
    assert_eq!(find(endless.as_bytes()), Err(Fault::Malformed));
    assert_eq!(find(&v2(0x22, 0x11, &v4_body())), Err(Fault::Malformed));
    assert_eq!(find(&v2(0x11, 0x11, &v4_body())), Err(Fault::Malformed));
    assert_eq!(find(&v2(0x21, 0x12, &v4_body())), Err(Fault::Malformed));
    assert_eq!(
        find(&v2(0x21, 0x11, &v4_body()[..11])),
        Err(Fault::Malformed)
    );
    let most = HEADER_BYTES - 16;
    assert!(find(&v2(0x20, 0, &vec![0; most])).is_ok());
    assert_eq!(find(&v2(0x20, 0, &vec![0; most + 1])), Err(Fault::TooLong));
}
