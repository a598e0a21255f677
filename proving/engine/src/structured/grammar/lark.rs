//! Grammars in the part of Lark's notation that vLLM turns into EBNF: rules, literals, groups and repetitions.
//!
//! Invariant: lines keep their numbers, so that faults are told where they stand.
//! Not here: terminals of expressions (`/…/`) and directives (`%import`), which vLLM does not turn into EBNF either.

/// Whether a text is in Lark's notation: no line of it has a rule of EBNF.
pub(super) fn is_lark(text: &str) -> bool {
    !text
        .lines()
        .any(|line| without_comment(line).contains("::="))
}

/// The same grammar in EBNF. Its root is the rule `start`, or else the first.
pub(super) fn to_ebnf(text: &str) -> Result<String, String> {
    let mut ebnf = String::with_capacity(text.len() * 2);
    let mut first: Option<&str> = None;
    let mut has_start = false;
    for (number, line) in text.lines().enumerate() {
        let line = without_comment(line).trim();
        let at = number + 1;
        if line.starts_with('%') {
            return Err(format!("line {at}: {line:?} is not simulated"));
        }
        match rule(line) {
            Some((name, body)) => {
                first = first.or(Some(name));
                has_start |= name == "start";
                ebnf.push_str(name);
                ebnf.push_str(" ::= ");
                literals(without_alias(body), &mut ebnf);
            }
            None if first.is_none() && !line.is_empty() => {
                return Err(format!(
                    "line {at}: a rule must begin with its name and a colon"
                ));
            }
            None => literals(without_alias(line), &mut ebnf),
        }
        ebnf.push('\n');
    }
    let root = if has_start { Some("start") } else { first };
    match root {
        Some("root") => {}
        Some(root) => {
            ebnf.push_str("root ::= ");
            ebnf.push_str(root);
        }
        None => return Err("it has no rule".to_owned()),
    }
    Ok(ebnf)
}

/// The name and the body of a line that begins a rule.
fn rule(line: &str) -> Option<(&str, &str)> {
    let (name, body) = line.split_once(':')?;
    let name = name.trim().trim_start_matches(['?', '!']);
    // A priority, as in `name.2`.
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_part)).then_some((name, body.trim()))
}

/// The line up to a comment that is in no literal.
fn without_comment(line: &str) -> &str {
    let end = outside_literals(line).find(|at| {
        let rest = &line[*at..];
        rest.starts_with('#') || rest.starts_with("//")
    });
    &line[..end.unwrap_or(line.len())]
}

/// The line without the names that Lark gives to its ways: `a b -> name`.
fn without_alias(line: &str) -> &str {
    let end = outside_literals(line).find(|at| line[*at..].starts_with("->"));
    line[..end.unwrap_or(line.len())].trim_end()
}

/// Where the characters are that are in no literal.
fn outside_literals(line: &str) -> impl Iterator<Item = usize> {
    let mut quote = None;
    let mut escaped = false;
    line.char_indices().filter_map(move |(at, c)| {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None => return Some(at),
        }
        None
    })
}

/// Writes a line with its literals in double quotes.
fn literals(line: &str, ebnf: &mut String) {
    let mut quote = None;
    let mut escaped = false;
    for c in line.chars() {
        match quote {
            Some('\'') if escaped && c == '\'' => {
                ebnf.pop();
                ebnf.push('\'');
                escaped = false;
            }
            Some('\'') if !escaped && c == '"' => ebnf.push_str("\\\""),
            Some(end) if !escaped && c == end => {
                quote = None;
                ebnf.push('"');
            }
            Some(_) => {
                escaped = !escaped && c == '\\';
                ebnf.push(c);
            }
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                ebnf.push('"');
            }
            None => ebnf.push(c),
        }
    }
}
