//! Table tests of heads.

use super::*;

#[test]
fn a_known_name_resolves_to_itself_and_a_longer_one_does_not() {
    for (name, known) in known::NAMES {
        assert_eq!(Known::of(name.as_bytes()), *known, "{name}");
        assert_eq!(Known::of(name.to_uppercase().as_bytes()), *known, "{name}");
        assert_eq!(known.name(), *name);
        assert_eq!(
            Known::of(format!("{name}x").as_bytes()),
            Known::Other,
            "{name}x"
        );
        assert_eq!(
            Known::of(format!("y{}", &name[1..]).as_bytes()),
            Known::Other,
            "y{name}"
        );
    }
    assert_eq!(Known::of(b"x-amz-security-token"), Known::Amz);
    assert_eq!(Known::of(b""), Known::Other);
    assert_eq!(Known::of(&[b'a'; 100]), Known::Other);
}

#[test]
fn names_are_stored_lower_case_and_values_trimmed() {
    let mut head = Head::new();
    head.push(b"X-API-Key", b" \tab c\t ").expect("valid");
    head.push(b"x-other", b"").expect("valid");
    let seen: Vec<_> = head.iter().collect();
    assert_eq!(
        seen[0],
        FieldRef {
            known: Known::XApiKey,
            name: b"x-api-key",
            value: b"ab c"
        }
    );
    assert_eq!(
        seen[1],
        FieldRef {
            known: Known::Other,
            name: b"x-other",
            value: b""
        }
    );
    assert_eq!(head.by_name(b"x-other").count(), 1);
    head.clear();
    assert!(head.is_empty() && head.get(Known::XApiKey).is_none());
}

#[test]
fn bad_names_and_values_are_refused() {
    let mut head = Head::new();
    for name in [
        &b""[..],
        b"a b",
        b"a:",
        b"a\r",
        b"\xc3\xa9",
        b"a\0",
        b":path",
        b"a ",
    ] {
        assert_eq!(
            head.push(name, b"v"),
            Err(HeadFaultKind::FieldName.into()),
            "{name:?}"
        );
    }
    for value in [&b"a\rb"[..], b"a\nb", b"a\0b", b"\x7f", b"\x01", b"a\r\n"] {
        assert_eq!(
            head.push(b"n", value),
            Err(HeadFaultKind::FieldValue.into()),
            "{value:?}"
        );
    }
    assert!(head.is_empty());
}

#[test]
fn a_repeated_field_is_not_one_value_even_when_the_values_agree() {
    let mut head = Head::new();
    assert_eq!(head.only(Known::Authorization), Ok(None));
    head.push(b"authorization", b"a").expect("valid");
    assert_eq!(head.only(Known::Authorization), Ok(Some(&b"a"[..])));
    head.push(b"Authorization", b"a").expect("valid");
    assert_eq!(
        head.only(Known::Authorization),
        Err(Repeated(Known::Authorization))
    );
    assert_eq!(
        (
            head.count(Known::Authorization),
            head.get(Known::Authorization)
        ),
        (2, Some(&b"a"[..]))
    );
    assert_eq!(
        Repeated(Known::Authorization).to_string(),
        "field authorization is repeated"
    );
}

#[test]
fn connection_options_are_read_from_every_connection_field_in_any_case() {
    let mut head = Head::new();
    head.push(b"connection", b"keep-alive,  X-Workload-App ,")
        .expect("valid");
    head.push(b"connection", b"Authorization").expect("valid");
    for name in [&b"x-workload-app"[..], b"authorization", b"Keep-Alive"] {
        assert!(head.connection_names(name), "{name:?}");
    }
    assert!(!head.connection_names(b"workload-app"));
}

#[test]
fn paths_that_read_in_two_ways_are_refused() {
    for path in [
        "/",
        "/v1/chat/completions",
        "/v1/",
        "/V1/models",
        "/a.b/..c/c../...",
        "/m:generateContent",
        "/a%20b",
        "/%C3%A9",
        "/v1/models/org%2Fname",
        "/v1/models/org%2fname-3.1",
        "/v1/models/host%2Forg%2Fname",
    ] {
        assert_eq!(check_path(path.as_bytes()), Ok(()), "{path}");
    }
    for path in [
        "/v1/..",
        "//v1/..",
        "/../v1",
        "/v1/./x",
        "/.",
        "/v1/%2e%2e/x",
        "/%2E",
        "/a%2fb",
        "/a%5Cb",
        "/a\\b",
        "/a;x",
        "/a%3bx",
        "/%00",
        "/%0a",
        "/%7f",
        "/%252f",
        "/%72ender/a",
        "/files/%7euser",
        "/a%5Fb",
        "/v1/models/%67pt-4",
        "/%",
        "/%4",
        "/%zz",
        "/%+1",
        // A slash of an id is one of a known operation alone, and what it parts is no way elsewhere.
        "/v1%2Fmodels/x",
        "/v1/files/org%2Fname",
        "/v1/models%2Fname",
        "/v1/models/org%2Fname/x",
        "/v1/models/org/a%2Fb",
        "/v2/models/org%2Fname",
        "/v1/models/%2Fname",
        "/v1/models/name%2F",
        "/v1/models/org%2F%2Fname",
        "/v1/models/..%2Fadmin",
        "/v1/models/org%2F..%2Fname",
        "/v1/models/org%2F.",
        "/v1/models/org%2F%2e%2e",
        "/v1/models/org%252Fname",
        "/v1/models/org%5Cname",
        "/v1/models/org%2Fname%",
    ] {
        assert_eq!(
            check_path(path.as_bytes()),
            Err(HeadFaultKind::PathAmbiguous.into()),
            "{path}"
        );
    }
    for path in ["//", "//v1", "/v1//x", "/v1/chat//completions"] {
        assert_eq!(
            check_path(path.as_bytes()),
            Err(HeadFaultKind::PathDoubled.into()),
            "{path}"
        );
    }
    for path in ["/a b", "/a#b", "/\u{e9}", "/a\tb"] {
        assert_eq!(
            check_path(path.as_bytes()),
            Err(HeadFaultKind::TargetByte.into()),
            "{path}"
        );
    }
    assert_eq!(check_path(b""), Err(HeadFaultKind::TargetForm.into()));
}

#[test]
fn hosts_are_names_or_addresses_with_an_optional_port() {
    for host in [
        "a",
        "gate.example.com",
        "a_b:1",
        "127.0.0.1:1975",
        "[::1]",
        "[::1]:80",
    ] {
        assert_eq!(check_authority(host.as_bytes()), Ok(()), "{host}");
    }
    for host in [
        "",
        ":80",
        "a:",
        "a:b",
        "a:1:2",
        "a:123456",
        "good/evil",
        "good?x",
        "good#x",
        "u@good",
        "a b",
        "a,b",
        "[::1",
        "[]",
        "[g]",
        "[::1]x",
        "a%2f",
    ] {
        assert_eq!(
            check_authority(host.as_bytes()),
            Err(HeadFaultKind::HostInvalid.into()),
            "{host}"
        );
    }
}

#[test]
fn an_absolute_target_names_the_host_and_is_otherwise_its_path() {
    let read = |target: &str, host: &[u8]| {
        let mut head = RequestHead::new();
        head.set_method("POST")?;
        head.fields.push(b"host", host)?;
        head.set_target(target)?;
        head.check_host()?;
        let authority = head
            .authority()
            .map(|a| String::from_utf8_lossy(a).into_owned());
        Ok::<_, HeadFault>((authority.unwrap_or_default(), head.target().to_owned()))
    };
    for (target, authority, rest) in [
        ("http://a/v1/x?y=/../", "a", "/v1/x?y=/../"),
        ("HTTPS://b:8443/v1", "b:8443", "/v1"),
        ("http://[::1]:80", "[::1]:80", "/"),
        ("http://a?x", "a", "/?x"),
        ("/v1", "host", "/v1"),
        ("/http://a/", "host", ""),
    ] {
        let read = read(target, b"host");
        if rest.is_empty() {
            assert_eq!(read, Err(HeadFaultKind::PathDoubled.into()), "{target}");
        } else {
            assert_eq!(read, Ok((authority.into(), rest.into())), "{target}");
        }
    }
    for (target, fault) in [
        ("http:///v1", HeadFaultKind::TargetForm),
        ("http://", HeadFaultKind::TargetForm),
        ("ftp://a/v1", HeadFaultKind::TargetForm),
        ("http:/v1", HeadFaultKind::TargetForm),
        ("a/http://b/", HeadFaultKind::TargetForm),
        ("http://u@a/v1", HeadFaultKind::HostInvalid),
        ("http://a b/v1", HeadFaultKind::HostInvalid),
        ("http://a:x/v1", HeadFaultKind::HostInvalid),
        ("http://a//v1", HeadFaultKind::PathDoubled),
        ("http://a/../v1", HeadFaultKind::PathAmbiguous),
        ("http://a\\v1", HeadFaultKind::PathAmbiguous),
        ("http://a#/v1", HeadFaultKind::TargetByte),
    ] {
        assert_eq!(read(target, b"host"), Err(fault.into()), "{target}");
    }
    assert_eq!(
        read("http://a/", b"u@h"),
        Err(HeadFaultKind::HostInvalid.into()),
        "a bad host is none the better for not being used"
    );
    let mut head = RequestHead::new();
    head.version = Version::H2;
    assert_eq!(
        head.set_target("http://a/"),
        Err(HeadFaultKind::MethodRefused.into()),
        "HTTP/2 has no absolute form"
    );
}

#[test]
fn the_target_is_split_at_the_first_question_mark() {
    let mut head = RequestHead::new();
    head.set_method("POST").expect("a token");
    head.set_target("/v1/x?a=/../&b=?c").expect("a good target");
    assert_eq!(
        (head.path(), head.query(), head.target()),
        ("/v1/x", Some("a=/../&b=?c"), "/v1/x?a=/../&b=?c")
    );
    head.set_target("/").expect("a good target");
    assert_eq!((head.path(), head.query()), ("/", None));
    assert_eq!(head.set_target("*"), Err(HeadFaultKind::TargetForm.into()));
    head.set_method("CONNECT").expect("a token");
    assert_eq!(
        head.set_target("a:443"),
        Err(HeadFaultKind::MethodRefused.into())
    );
    head.set_method("OPTIONS").expect("a token");
    assert_eq!(head.set_target("*"), Ok(()));
    assert_eq!(head.set_method("A B"), Err(HeadFaultKind::StartLine.into()));
}

#[test]
fn a_comma_is_found_wherever_it_stands_and_nothing_passes_for_one() {
    for length in 0..40 {
        for other in [b'-', b'+', b'a', 0xac, 0xff, 0] {
            let mut value = vec![other; length];
            assert!(!has_comma(&value), "{value:?}");
            for at in 0..length {
                value[at] = b',';
                assert!(has_comma(&value), "{value:?}");
                value[at] = other;
            }
        }
    }
}
