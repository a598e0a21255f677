//! Reads the vector files; `vectors/http1/README.md` tells the format.

use std::path::Path;

pub(super) struct Vector {
    pub(super) name: String,
    pub(super) to: Option<String>,
    pub(super) bytes: Vec<u8>,
    pub(super) expect: String,
}

pub(super) fn read(file: &str) -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors/http1")
        .join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut vectors: Vec<Vector> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
    {
        if let Some(name) = line.strip_prefix("=== ") {
            vectors.push(Vector {
                name: name.into(),
                to: None,
                bytes: Vec::new(),
                expect: String::new(),
            });
            continue;
        }
        let vector = vectors.last_mut().expect("a name comes first");
        let (key, value) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("{file}: {line}"));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match key.split_once(' ') {
            None if key == "bytes" => vector.bytes.extend(unescape(value)),
            None if key == "to" => vector.to = Some(value.into()),
            None if key == "expect" => vector.expect = value.into(),
            Some(("times", count)) => vector
                .bytes
                .extend(unescape(value).repeat(count.parse().expect("a count"))),
            _ => panic!("{file}: {line}"),
        }
    }
    assert!(
        vectors.iter().all(|vector| !vector.expect.is_empty()),
        "{file}: a vector expects nothing"
    );
    vectors
}

fn unescape(text: &str) -> Vec<u8> {
    let (mut out, mut chars) = (Vec::new(), text.chars());
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        out.push(match chars.next() {
            Some('r') => b'\r',
            Some('n') => b'\n',
            Some('t') => b'\t',
            Some('0') => 0,
            Some('s') => b' ',
            Some('\\') => b'\\',
            Some('x') => {
                let digits: String = chars.by_ref().take(2).collect();
                u8::from_str_radix(&digits, 16).unwrap_or_else(|_| panic!("\\x{digits}"))
            }
            other => panic!("escape {other:?}"),
        });
    }
    out
}

pub(super) fn escape(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".into();
    }
    bytes.iter().fold(String::new(), |text, &byte| match byte {
        b' ' => text + "\\s",
        _ => text + &byte.escape_ascii().to_string(),
    })
}
