//! What a server says that it wants where it refuses a token: its challenge (RFC 6750, RFC 9728).
//!
//! Invariant: what is told of it is in the characters that its grammar has for it, and at most [`VALUE_BYTES_MAX`] long; nothing that is meant
//! for a person is read.
//! Not here: who refused whose token (`policy::refusal`).

/// Longest value that is told.
pub const VALUE_BYTES_MAX: usize = 1024;
/// Longest line that is looked at.
const LINE_BYTES_MAX: usize = 8 << 10;

/// The members that are told, by the names of a challenge.
const MEMBERS: [&str; 3] = ["error", "scope", "resource_metadata"];

/// What the `Bearer` challenge in these values of `www-authenticate` says: each member once, in this order of names.
#[must_use]
pub fn wants<'l>(lines: impl IntoIterator<Item = &'l [u8]>) -> Vec<(&'static str, Box<str>)> {
    let mut found: Vec<(&'static str, Box<str>)> = Vec::new();
    for line in lines {
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        if line.len() > LINE_BYTES_MAX {
            continue;
        }
        let (mut rest, mut is_bearer) = (line, false);
        while let Some((word, after)) = word(rest) {
            rest = after;
            let Some(after) = rest.trim_start().strip_prefix('=') else {
                // What stands alone is a scheme; what a scheme has in place of members is passed by as one, too.
                is_bearer = word.eq_ignore_ascii_case("bearer");
                continue;
            };
            let (value, after) = value(after.trim_start());
            rest = after;
            let member = MEMBERS.iter().find(|of| word.eq_ignore_ascii_case(of));
            let Some(member) = member.filter(|_| is_bearer) else {
                continue;
            };
            let is_new = !found.iter().any(|(of, _)| of == member);
            if is_new && is_told(member, &value) {
                found.push((member, value.into()));
            }
        }
    }
    found.sort_by_key(|(of, _)| MEMBERS.iter().position(|member| member == of));
    found
}

/// The next word, and what follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let end = text.find([' ', '\t', ',', '=']).unwrap_or(text.len());
    // What begins with a `=` is no word, and is passed by.
    let end = end.max(text.chars().next()?.len_utf8());
    Some(text.split_at(end))
}

/// A value, quoted or not, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let (mut value, mut chars) = (String::new(), quoted.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => value.extend(chars.next()),
            c => value.push(c),
        }
    }
    (value, chars.as_str())
}

/// Whether a value is one that its member can have.
fn is_told(member: &str, value: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\');
    let is_url = || value.starts_with("https://") || value.starts_with("http://");
    (1..=VALUE_BYTES_MAX).contains(&value.len())
        && match member {
            "scope" => value.bytes().all(|b| is_plain(b) || b == b' '),
            "resource_metadata" => value.bytes().all(is_plain) && is_url(),
            _ => value.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
        }
}

#[cfg(test)]
mod tests {
    //! What is read of challenges, and what is not.

    use super::{VALUE_BYTES_MAX, wants};

    fn read(lines: &[&str]) -> String {
        let lines = lines.iter().map(|line| line.as_bytes());
        let wants = wants(lines).into_iter();
        let said: Vec<String> = wants.map(|(of, value)| format!("{of}={value}")).collect();
        said.join(" & ")
    }

    #[test]
    fn what_a_bearer_challenge_wants_is_read_and_nothing_else() {
        for (lines, said) in [
            (&["Bearer"][..], ""),
            (&[r#"Bearer error="invalid_token""#], "error=invalid_token"),
            (
                &[
                    r#"bearer realm="x, y", scope="repo read:org" ,error=insufficient_scope, resource_metadata="https://a.example/.well-known/x", error_description="Bearer scope=\"all\"""#,
                ],
                "error=insufficient_scope & scope=repo read:org & resource_metadata=https://a.example/.well-known/x",
            ),
            (
                &[r#"Basic realm="a", Bearer scope="a", DPoP scope="b", error="x""#],
                "scope=a",
            ),
            (&["Negotiate abc==, Bearer scope=a"], "scope=a"),
            (
                &[
                    r#"Basic scope="no""#,
                    r#"Bearer scope="one""#,
                    r#"Bearer scope="two""#,
                ],
                "scope=one",
            ),
            (&[r#"Bearer scope="a "#], "scope=a "),
            (&["Bearer scope = \"a\\b\""], "scope=ab"),
            (&["", "=", ",,,", "\u{e9}=\u{e9}, Bearer = ="], ""),
        ] {
            assert_eq!(read(lines), said, "{lines:?}");
        }
    }

    #[test]
    fn a_value_that_its_member_cannot_have_is_not_told() {
        for line in [
            "Bearer error=\"a b\"".to_owned(),
            "Bearer error=<script>".to_owned(),
            "Bearer scope=\"a\tb\"".to_owned(),
            "Bearer scope=\"\u{e9}\"".to_owned(),
            "Bearer resource_metadata=\"javascript:alert(1)\"".to_owned(),
            "Bearer resource_metadata=\"https://a.example/ b\"".to_owned(),
            format!("Bearer scope={}", "a".repeat(VALUE_BYTES_MAX + 1)),
            format!("Bearer scope=a, x={}", "a".repeat(8 << 10)),
        ] {
            assert_eq!(read(&[&line]), "", "{line:.80}");
        }
        let most = "a".repeat(VALUE_BYTES_MAX);
        assert_eq!(
            read(&[&format!("Bearer scope={most}")]),
            format!("scope={most}")
        );
    }
}
