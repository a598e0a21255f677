//! Conditions in CEL over `request`, as conditions over [our facts](docs/authority.md).
//!
//! Invariant: a fact that is not known here is a fault, never a condition that means something else.
//! Not here: whether the rest of an expression is one (whoever compiles it).

/// A text as CEL has it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What each fact of a request is here.
const FACTS: [(&[&str], &str); 8] = [
    (&["mcp", "tool"], "name"),
    (&["mcp", "backend"], "server"),
    (&["mcp", "method"], "\"tools/call\""),
    (&["mcp", "params", "arguments"], "arguments"),
    (&["auth", "jwt", "claims"], "claims"),
    (&["auth", "jwt", "scopes"], "scopes"),
    (&["method"], "\"POST\""),
    (&["path"], "\"/mcp\""),
];

/// The same condition over our facts, or the fact that there is none for.
pub(super) fn translated(cel: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = cel;
    let mut is_member = false;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = literal(rest) {
            let (text, after) = rest.split_at(length);
            out.push_str(text);
            rest = after;
            is_member = false;
        } else if c.is_ascii_alphabetic() || c == '_' {
            let (word, after) = word(rest);
            rest = after;
            if word == "request" && !is_member {
                let (path, ends) = chain(rest);
                let known = FACTS.iter().find(|(fact, _)| path.starts_with(fact));
                let Some((fact, ours)) = known else {
                    return Err(format!("request.{}", path.join(".")));
                };
                out.push_str(ours);
                let end = fact.len().checked_sub(1).and_then(|at| ends.get(at));
                rest = end.and_then(|end| rest.get(*end..)).unwrap_or_default();
            } else {
                out.push_str(word);
            }
            is_member = false;
        } else {
            out.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            is_member = c == '.' || is_member && c.is_whitespace();
        }
    }
    Ok(out)
}

fn word(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

/// The length of a text between quotes that stands at the beginning, with the letters before it.
fn literal(text: &str) -> Option<usize> {
    let start = text.find(['"', '\''])?;
    let before = text.get(..start)?;
    let is_raw = before.contains(['r', 'R']);
    if before.len() > 2 || !before.chars().all(|c| matches!(c, 'r' | 'R' | 'b' | 'B')) {
        return None;
    }
    let inside = text.get(start..)?;
    let quote = inside.get(..1)?;
    let end = match inside.starts_with(&quote.repeat(3)) {
        true => quote.repeat(3),
        false => quote.to_owned(),
    };
    let mut at = end.len();
    loop {
        let left = inside.get(at..)?;
        if left.starts_with(&end) {
            return Some(start + at + end.len());
        }
        let c = left.chars().next()?;
        at += c.len_utf8();
        if c == '\\' && !is_raw {
            at += inside.get(at..)?.chars().next()?.len_utf8();
        }
    }
}

/// The members that are asked for behind a name, and where each ends.
fn chain(text: &str) -> (Vec<&str>, Vec<usize>) {
    let (mut path, mut ends) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some((name, end)) = text.get(at..).and_then(member) {
        at += end;
        path.push(name);
        ends.push(at);
    }
    (path, ends)
}

/// `.name` or `["name"]`, and where it ends.
fn member(text: &str) -> Option<(&str, usize)> {
    let trimmed = text.trim_start();
    let before = text.len() - trimmed.len();
    if let Some(rest) = trimmed.strip_prefix('.') {
        let inside = rest.trim_start();
        let (name, _) = word(inside);
        let end = before + 1 + (rest.len() - inside.len()) + name.len();
        return (!name.is_empty()).then_some((name, end));
    }
    let inside = trimmed.strip_prefix('[')?;
    let quote = inside.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (name, rest) = inside.get(1..)?.split_once(quote)?;
    rest.starts_with(']')
        .then_some((name, before + name.len() + 4))
}

/// Whether each bracket that opens in a condition closes in it, and none closes that did not open: put between brackets, another one
/// could end those.
pub(super) fn is_closed(cel: &str) -> bool {
    let mut open = Vec::new();
    let mut rest = cel;
    while let Some(c) = rest.chars().next() {
        let length = literal(rest).unwrap_or_else(|| match rest.starts_with("//") {
            true => rest.find('\n').unwrap_or(rest.len()),
            false => c.len_utf8(),
        });
        match (length, c) {
            (1, '(') => open.push(')'),
            (1, '[') => open.push(']'),
            (1, '{') => open.push('}'),
            (1, ')' | ']' | '}') if open.pop() != Some(c) => return false,
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    open.is_empty()
}

#[cfg(test)]
mod tests {
    use super::{is_closed, translated};

    #[test]
    fn a_bracket_that_closes_what_did_not_open_is_seen_and_one_in_a_text_is_not() {
        for cel in [
            "(a || b) && c[0]",
            "a == ')' || b == r\"(\"",
            "a // )\n || b",
            "{'x': [1]}",
        ] {
            assert!(is_closed(cel), "{cel}");
        }
        for cel in [
            "false) || (true",
            "(a",
            "a]",
            "(a]",
            "// (\nfalse) || (true // )",
            "a == '(') || (b",
        ] {
            assert!(!is_closed(cel), "{cel}");
        }
    }

    #[test]
    fn facts_of_a_request_become_ours_and_texts_stay_as_they_are() {
        for (theirs, ours) in [
            (r#"request.mcp.tool in ["a", "b"]"#, r#"name in ["a", "b"]"#),
            (
                r#"request.mcp.params.arguments.text.matches("^Hello, .*!$")"#,
                r#"arguments.text.matches("^Hello, .*!$")"#,
            ),
            (
                r#"request["mcp"]['backend'].startsWith("request.mcp.tool")"#,
                r#"server.startsWith("request.mcp.tool")"#,
            ),
            (
                r#"request.auth.jwt.claims["org"].size() > 0 && "a" in request.auth.jwt.scopes"#,
                r#"claims["org"].size() > 0 && "a" in scopes"#,
            ),
            (r#"request.method == "POST""#, r#""POST" == "POST""#),
            (
                r#"claims.request.mcp == r"\" + 'it\'s'"#,
                r#"claims.request.mcp == r"\" + 'it\'s'"#,
            ),
            ("requests == 1", "requests == 1"),
        ] {
            assert_eq!(translated(theirs).as_deref(), Ok(ours), "{theirs}");
        }
        for (theirs, fact) in [
            (r#"request.headers["x-a"] == "b""#, "request.headers.x-a"),
            ("request.host == \"a\"", "request.host"),
            (
                "request.mcp.params._meta.a == 1",
                "request.mcp.params._meta.a",
            ),
            ("size(request) == 1", "request."),
        ] {
            assert_eq!(
                translated(theirs).as_ref().err().map(String::as_str),
                Some(fact)
            );
        }
    }
}
