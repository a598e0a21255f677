//! Whether a template wants the content of a message in parts or as one text: what vLLM 0.32.0 finds in its loops.
//!
//! vLLM walks Jinja's syntax tree; here the tokens of the tags are read, of which as much is understood as it looks at:
//! loops, assignments, macros and calls, and in them a name, one member of it, slices, filters and tests.
//! Invariant: what does not parse, and what vLLM's own look fails at, is text.
//! Not here: rendering (`template`).

use std::collections::BTreeSet;

use minijinja::machinery::{Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

type Tokens<'t> = &'t [Token<'t>];

/// A loop, and the macros around it as places in the list of macros.
struct Loop<'t> {
    target: Tokens<'t>,
    over: Tokens<'t>,
    within: Vec<usize>,
}

struct Macro<'t> {
    name: &'t str,
    parameters: Vec<&'t str>,
}

#[derive(Default)]
struct Tags<'t> {
    sets: Vec<(Tokens<'t>, Tokens<'t>)>,
    loops: Vec<Loop<'t>>,
    macros: Vec<Macro<'t>>,
    /// A callee's name with its arguments.
    calls: Vec<(&'t str, Vec<Tokens<'t>>)>,
}

/// Whether the template has a loop over the parts of a message.
pub(super) fn takes_parts(source: &str) -> bool {
    let tags = in_tags(source).unwrap_or_default();
    let tags = tags
        .iter()
        .map(|(is_block, tag)| (*is_block, tag.as_slice()));
    Tags::of(tags).takes_parts().unwrap_or(false)
}

/// What stands in each tag, and whether it is one of statements. None where it does not parse.
fn in_tags(source: &str) -> Option<Vec<(bool, Vec<Token<'_>>)>> {
    parse(source, "", SyntaxConfig::default()).ok()?;
    let mut tags = Vec::new();
    for token in tokenize(source, false, SyntaxConfig::default()) {
        match token.ok()?.0 {
            Token::TemplateData(_) | Token::BlockEnd | Token::VariableEnd => {}
            Token::BlockStart => tags.push((true, Vec::new())),
            Token::VariableStart => tags.push((false, Vec::new())),
            other => tags.last_mut()?.1.push(other),
        }
    }
    Some(tags)
}

impl<'t> Tags<'t> {
    fn of(tags: impl Iterator<Item = (bool, Tokens<'t>)>) -> Self {
        let (mut seen, mut open) = (Self::default(), Vec::new());
        for (is_block, tag) in tags {
            seen.calls_in(tag);
            if is_block {
                seen.tag(tag, &mut open);
            }
        }
        seen
    }

    fn tag(&mut self, tag: Tokens<'t>, open: &mut Vec<usize>) {
        let Some((Token::Ident(kind), rest)) = tag.split_first() else {
            return;
        };
        match *kind {
            "for" => {
                let Some(at) = outside(rest, |t| matches!(t, Token::Ident("in"))) else {
                    return;
                };
                let over = &rest[at + 1..];
                let end = outside(over, |t| matches!(t, Token::Ident("if" | "recursive")));
                self.loops.push(Loop {
                    target: &rest[..at],
                    over: &over[..end.unwrap_or(over.len())],
                    within: open.clone(),
                });
            }
            "set" => {
                if let Some(at) = outside(rest, |t| matches!(t, Token::Assign)) {
                    self.sets.push((&rest[..at], &rest[at + 1..]));
                }
            }
            "macro" => {
                let Some((Token::Ident(name), rest)) = rest.split_first() else {
                    return;
                };
                let parameters = arguments(rest)
                    .into_iter()
                    .filter_map(|one| match one.first() {
                        Some(Token::Ident(name)) => Some(*name),
                        _ => None,
                    });
                open.push(self.macros.len());
                self.macros.push(Macro {
                    name,
                    parameters: parameters.collect(),
                });
            }
            "endmacro" => drop(open.pop()),
            _ => {}
        }
    }

    /// Notes what is called in a tag: a name with parentheses behind it that is no member and no filter.
    fn calls_in(&mut self, tag: Tokens<'t>) {
        for (at, pair) in tag.windows(2).enumerate() {
            let before = at.checked_sub(1).and_then(|at| tag.get(at));
            let is_name = !matches!(
                before,
                Some(Token::Dot | Token::Pipe | Token::Ident("macro" | "is"))
            );
            if let ([Token::Ident(name), Token::ParenOpen], true) = (pair, is_name) {
                self.calls.push((name, arguments(&tag[at + 1..])));
            }
        }
    }

    /// None where vLLM's own look fails.
    fn takes_parts(&self) -> Option<bool> {
        let (mut all, mut at) = (vec!["messages"], 0);
        while let Some(from) = all.get(at).copied() {
            at += 1;
            for (target, value) in &self.sets {
                if reads(value, from, None) {
                    let name = name(target)?;
                    if !all.contains(&name) {
                        all.push(name);
                    }
                }
            }
        }
        let mut items = Vec::new();
        for one in &self.loops {
            if all.iter().any(|from| reads(one.over, from, None)) {
                items.push(name(one.target)?);
            }
        }
        let is_content =
            |value: Tokens<'_>| items.iter().any(|item| reads(value, item, Some("content")));
        let given: Vec<BTreeSet<&str>> = self
            .macros
            .iter()
            .map(|one| self.given(one, &is_content))
            .collect();
        for one in &self.loops {
            let over = name(one.over);
            let innermost = one
                .within
                .iter()
                .rev()
                .map(|&at| &given[at])
                .find(|names| !names.is_empty());
            let is = is_content(one.over)
                || over.is_some_and(|over| innermost.is_some_and(|names| names.contains(over)))
                || (one.within.is_empty() && over == Some("content"));
            if is {
                name(one.target)?;
                return Some(true);
            }
        }
        Some(false)
    }

    /// The parameters of a macro that get the content of a message at some call.
    fn given(&self, of: &Macro<'t>, is_content: &dyn Fn(Tokens<'_>) -> bool) -> BTreeSet<&'t str> {
        let mut names = BTreeSet::new();
        for (_, arguments) in self.calls.iter().filter(|(name, _)| *name == of.name) {
            for (at, argument) in arguments.iter().enumerate() {
                let parameter = match argument {
                    [Token::Ident(name), Token::Assign, value @ ..] if is_content(value) => {
                        of.parameters.iter().find(|known| *known == name)
                    }
                    value if is_content(value) => of.parameters.get(at),
                    _ => None,
                };
                names.extend(parameter);
            }
        }
        names
    }
}

/// Whether it is the variable, or its member `key`, under any slices, filters and tests.
fn reads(value: Tokens<'_>, variable: &str, key: Option<&str>) -> bool {
    let value = bare(value);
    let Some((Token::Ident(name), mut rest)) = value.split_first() else {
        return false;
    };
    if let Some(key) = key {
        rest = match rest {
            [Token::Dot, Token::Ident(member), rest @ ..] if *member == key => rest,
            [
                Token::BracketOpen,
                Token::Str(member),
                Token::BracketClose,
                rest @ ..,
            ] if *member == key => rest,
            [
                Token::BracketOpen,
                Token::String(member),
                Token::BracketClose,
                rest @ ..,
            ] if member.as_ref() == key => rest,
            _ => return false,
        };
    }
    *name == variable && leaves(rest)
}

/// Whether only slices, filters and tests follow.
fn leaves(rest: Tokens<'_>) -> bool {
    let behind = match rest {
        [] => return true,
        [Token::BracketOpen, ..] => {
            let Some(end) = closing(rest) else {
                return false;
            };
            if outside(&rest[1..end], |t| matches!(t, Token::Colon)).is_none() {
                return false;
            }
            &rest[end + 1..]
        }
        [Token::Pipe, Token::Ident(_), behind @ ..] => behind,
        [Token::Ident("is"), Token::Ident(test), behind @ ..] if *test != "not" => behind,
        _ => return false,
    };
    match (behind, closing(behind)) {
        ([Token::ParenOpen, ..], Some(end)) => leaves(&behind[end + 1..]),
        ([Token::ParenOpen, ..], None) => false,
        _ => leaves(behind),
    }
}

/// Without parentheses around all of it.
fn bare<'t>(value: Tokens<'t>) -> Tokens<'t> {
    match value {
        [Token::ParenOpen, within @ .., Token::ParenClose]
            if closing(value) == Some(value.len() - 1) =>
        {
            bare(within)
        }
        _ => value,
    }
}

fn name<'t>(value: Tokens<'t>) -> Option<&'t str> {
    match bare(value) {
        [Token::Ident(name)] => Some(name),
        _ => None,
    }
}

/// The arguments between the parentheses that come first.
fn arguments<'t>(tokens: Tokens<'t>) -> Vec<Tokens<'t>> {
    let Some(end) = closing(tokens) else {
        return Vec::new();
    };
    let (mut all, mut rest) = (Vec::new(), &tokens[1..end]);
    while let Some(at) = outside(rest, |t| matches!(t, Token::Comma)) {
        all.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    if !rest.is_empty() {
        all.push(rest);
    }
    all
}

/// Where what is opened first is closed.
fn closing(tokens: Tokens<'_>) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The first such token outside of all parentheses.
fn outside(tokens: Tokens<'_>, is: impl Fn(&Token<'_>) -> bool) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth -= 1,
            one if depth == 0 && is(one) => return Some(at),
            _ => {}
        }
    }
    None
}
