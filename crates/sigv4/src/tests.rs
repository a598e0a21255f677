//! Signatures that another implementation makes of the same requests, and what a signature depends on.

use super::*;

const VECTORS: &str = include_str!("../../../vectors/sigv4/others.txt");

fn keys(token: Option<&str>) -> Keys {
    Keys {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_vec().into(),
        session_token: token.map(|token| token.as_bytes().to_vec().into()),
    }
}

fn value(lines: &[Line], name: &str) -> String {
    let found: Vec<_> = lines.iter().filter(|(of, _)| *of == name).collect();
    let [(_, value)] = found[..] else {
        panic!("{name} stands there {} times", found.len());
    };
    String::from_utf8(value.to_vec()).expect("text")
}

/// A request as a vector writes it.
#[derive(Default)]
struct Vector<'v> {
    fields: std::collections::BTreeMap<&'v str, &'v str>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
}

impl<'v> Vector<'v> {
    fn read(text: &'v str) -> Self {
        let mut vector = Self::default();
        for line in text.lines().skip(1) {
            let (name, value) = line
                .split_once(": ")
                .unwrap_or((line.trim_end_matches(':'), ""));
            if name == "header" {
                let (name, value) = value.split_once(": ").expect("a header");
                let header = (name.as_bytes().to_vec(), value.as_bytes().to_vec());
                vector.headers.push(header);
            } else {
                vector.fields.insert(name, value);
            }
        }
        vector
    }

    fn of(&self, name: &str) -> &'v str {
        self.fields.get(name).copied().unwrap_or_default()
    }

    fn signed(&self, pieces: &[&[u8]]) -> Vec<Line> {
        let scope = Scope {
            region: self.of("region").to_owned(),
            service: self.of("service").to_owned(),
        };
        let request = Request {
            method: self.of("method"),
            authority: self.of("authority"),
            path: self.of("path"),
            query: self.of("query"),
            headers: &self.headers,
            body: pieces,
        };
        let at = self.of("at").parse().expect("seconds");
        sign(
            &keys(self.fields.get("token").copied()),
            &scope,
            &request,
            at,
        )
    }
}

#[test]
fn another_implementation_signs_the_same() {
    let mut seen = 0;
    for text in VECTORS.split("=== ").skip(1) {
        seen += 1;
        let vector = Vector::read(text);
        let name = text.lines().next().expect("a name");
        let body = vector.of("body").as_bytes();
        let (one, two) = body.split_at(body.len() / 2);
        // However the body is cut.
        for pieces in [&[body][..], &[one, b"", two]] {
            let lines = vector.signed(pieces);
            assert_eq!(
                value(&lines, "authorization"),
                vector.of("authorization"),
                "{name}"
            );
            let token = lines
                .iter()
                .any(|(name, _)| *name == "x-amz-security-token");
            assert_eq!(token, !vector.of("token").is_empty(), "{name}");
        }
    }
    assert_eq!(seen, 15);
}

/// AWS's own first example, which signs the host and the date alone.
#[test]
fn the_published_example_is_signed_as_published() {
    let scope = Scope {
        region: "us-east-1".to_owned(),
        service: "service".to_owned(),
    };
    let stamp = Stamp::of(1_440_938_160);
    let headers: Vec<(&[u8], &[u8])> = vec![
        (b"host", b"example.amazonaws.com"),
        (b"x-amz-date", b"20150830T123600Z"),
    ];
    let hash = body_hash::<&[u8]>(&[]);
    let canonical = Canonical::of("GET", "/", "", headers, &hash);
    let authorization = authorization(&keys(None), &scope, &stamp, &canonical);
    assert_eq!(
        std::str::from_utf8(&authorization),
        Ok(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
            SignedHeaders=host;x-amz-date, \
            Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        )
    );
}

#[test]
fn a_signature_is_of_every_part_of_a_request() {
    let vector = "\nat: 1\nregion: r\nservice: s\nmethod: POST\nauthority: a.test\npath: /p\nquery: a=b\n\
                  header: content-type: x/y\nbody: {}";
    let of = |text: &str| {
        let vector = Vector::read(text);
        value(
            &vector.signed(&[vector.of("body").as_bytes()]),
            "authorization",
        )
    };
    let whole = of(vector);
    for (from, to) in [
        ("at: 1", "at: 2"),
        ("region: r", "region: q"),
        ("service: s", "service: t"),
        ("POST", "PUT"),
        ("a.test", "b.test"),
        ("/p", "/q"),
        ("a=b", "a=c"),
        ("x/y", "x/z"),
        ("{}", "[]"),
        ("body", "token: t\nbody"),
    ] {
        let changed = vector.replace(from, to);
        assert_ne!(changed, vector, "{from}");
        assert_ne!(of(&changed), whole, "{from}");
    }
    // Two spellings of one request.
    assert_eq!(of(&vector.replace("a=b", "%61=%62")), whole);
    assert_eq!(of(&vector.replace("/p", "/./x/..//p")), whole);
}

#[test]
fn what_a_header_is_called_says_whether_it_is_covered() {
    let table: [(&[u8], bool); 6] = [
        (b"x-amzn-bedrock-trace", true),
        (b"x-amz-target", true),
        (b"content-type", true),
        (b"accept", false),
        (b"traceparent", false),
        (b"amz", false),
    ];
    for (name, expected) in table {
        assert_eq!(covers(name), expected, "{name:?}");
    }
}

#[test]
fn keys_show_nothing_but_their_id() {
    let shown = format!("{:?}", keys(Some("token-canary")));
    assert!(shown.contains("AKIDEXAMPLE"), "{shown}");
    assert!(
        !shown.contains("wJalr") && !shown.contains("canary"),
        "{shown}"
    );
}

#[test]
fn no_request_breaks_it() {
    let request = Request {
        method: "",
        authority: "",
        path: "%zz%/..%2",
        query: "%&=&&=%4&%%%",
        headers: &[(Vec::new(), vec![0xff, b' ', 0x00])],
        body: &[&b"\xff"[..]],
    };
    let scope = Scope {
        region: String::new(),
        service: String::new(),
    };
    assert_eq!(sign(&keys(None), &scope, &request, u64::MAX).len(), 3);
}
