//! Reading a grammar's text.
//!
//! Invariant: every rule that is named is there; what is wrong is told with its line.
//! Not here: whether rules end (the parent).

use std::collections::HashMap;

use super::Expression;

/// Rules of a grammar, at most, and characters of its text.
const MAX_RULES: usize = 10_000;
const MAX_TEXT: usize = 1 << 17;
/// Groups within groups, at most.
const MAX_DEPTH: usize = 64;
/// Repetitions that may be asked for by number.
const MAX_TIMES: u64 = 10_000;

/// The names of all rules, and what they stand for.
pub(super) fn rules(text: &str) -> Result<(Vec<String>, Vec<Expression>), String> {
    if text.len() > MAX_TEXT {
        return Err(format!("it is longer than {MAX_TEXT} bytes"));
    }
    let mut parser = Parser {
        rest: text,
        names: Vec::new(),
        places: HashMap::new(),
        bodies: Vec::new(),
    };
    parser.skip();
    while !parser.rest.is_empty() {
        parser.rule().map_err(|why| {
            let read = text.len() - parser.rest.len();
            let line = text.get(..read).unwrap_or_default().lines().count().max(1);
            format!("line {line}: {why}")
        })?;
    }
    parser.finish()
}

struct Parser<'a> {
    rest: &'a str,
    names: Vec<String>,
    /// Where each name stands among them.
    places: HashMap<String, usize>,
    /// Of each name; none yet for one that was only used.
    bodies: Vec<Option<Expression>>,
}

impl Parser<'_> {
    fn finish(self) -> Result<(Vec<String>, Vec<Expression>), String> {
        let mut rules = Vec::with_capacity(self.bodies.len());
        for (name, body) in self.names.iter().zip(self.bodies) {
            rules.push(body.ok_or_else(|| format!("there is no rule named {name}"))?);
        }
        Ok((self.names, rules))
    }

    /// Passes over blanks and comments.
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    fn eat(&mut self, mark: &str) -> bool {
        let found = self.rest.strip_prefix(mark);
        self.rest = found.unwrap_or(self.rest);
        if found.is_some() {
            self.skip();
        }
        found.is_some()
    }

    fn rule(&mut self) -> Result<(), String> {
        let name = self.name().ok_or("a rule must begin with its name")?;
        if !self.eat("::=") {
            return Err(format!("::= must follow the name {name}"));
        }
        let index = self.index(name)?;
        let body = self.either(0)?;
        if self.bodies[index].replace(body).is_some() {
            return Err(format!("there are two rules named {}", self.names[index]));
        }
        Ok(())
    }

    fn name(&mut self) -> Option<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.skip();
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn index(&mut self, name: String) -> Result<usize, String> {
        if let Some(known) = self.places.get(&name) {
            return Ok(*known);
        }
        if self.names.len() == MAX_RULES {
            return Err(format!("it has more than {MAX_RULES} rules"));
        }
        self.places.insert(name.clone(), self.names.len());
        self.names.push(name);
        self.bodies.push(None);
        Ok(self.names.len() - 1)
    }

    fn either(&mut self, depth: usize) -> Result<Expression, String> {
        if depth > MAX_DEPTH {
            return Err(format!("groups nest deeper than {MAX_DEPTH} levels"));
        }
        let mut ways = vec![self.sequence(depth)?];
        while self.eat("|") {
            ways.push(self.sequence(depth)?);
        }
        Ok(Expression::Either(ways))
    }

    fn sequence(&mut self, depth: usize) -> Result<Expression, String> {
        let mut parts = Vec::new();
        while let Some(part) = self.part(depth)? {
            parts.push(self.repeated(part)?);
        }
        Ok(Expression::Sequence(parts))
    }

    /// One part of a sequence, or `None` at its end.
    fn part(&mut self, depth: usize) -> Result<Option<Expression>, String> {
        match self.rest.chars().next() {
            Some('"') => self.literal().map(Some),
            Some('[') => self.class().map(Some),
            Some('(') => {
                if self.rest.starts_with("(=") {
                    return Err("look-ahead is not simulated".to_owned());
                }
                self.eat("(");
                let inner = self.either(depth + 1)?;
                if !self.eat(")") {
                    return Err("a group must end with )".to_owned());
                }
                Ok(Some(inner))
            }
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                let before = self.rest;
                let name = self.name().unwrap_or_default();
                if self.rest.starts_with("::=") {
                    // The next rule begins.
                    self.rest = before;
                    return Ok(None);
                }
                self.index(name).map(|rule| Some(Expression::Rule(rule)))
            }
            Some('|' | ')') | None => Ok(None),
            Some(other) => Err(format!("{other:?} begins nothing")),
        }
    }

    fn repeated(&mut self, part: Expression) -> Result<Expression, String> {
        let times = match self.rest.chars().next() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counted(part),
            _ => return Ok(part),
        };
        self.rest = &self.rest[1..];
        self.skip();
        Ok(Expression::Repeat(Box::new(part), times.0, times.1))
    }

    /// `{2}`, `{2,}` or `{2,5}`.
    fn counted(&mut self, part: Expression) -> Result<Expression, String> {
        let wrong = "a number of repetitions must be {n}, {n,} or {n,m}";
        let (inside, rest) = self.rest[1..].split_once('}').ok_or(wrong)?;
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong.to_owned());
        let (least, most) = match inside.split_once(',') {
            None => (number(inside)?, Some(number(inside)?)),
            Some((least, "")) => (number(least)?, None),
            Some((least, most)) => (number(least)?, Some(number(most)?)),
        };
        if least.max(most.unwrap_or(0)) > MAX_TIMES || most.is_some_and(|most| most < least) {
            return Err(format!("{wrong}, with n <= m <= {MAX_TIMES}"));
        }
        self.rest = rest;
        self.skip();
        Ok(Expression::Repeat(Box::new(part), least, most))
    }

    fn literal(&mut self) -> Result<Expression, String> {
        self.rest = &self.rest[1..];
        let mut literal = String::new();
        loop {
            match self.character()? {
                (false, '"') => break,
                (_, c) => literal.push(c),
            }
        }
        self.skip();
        Ok(Expression::Text(literal))
    }

    fn class(&mut self) -> Result<Expression, String> {
        self.rest = &self.rest[1..];
        let negated = self.rest.starts_with('^');
        self.rest = &self.rest[usize::from(negated)..];
        let mut ranges = Vec::new();
        loop {
            let (escaped, low) = self.character()?;
            if !escaped && low == ']' {
                break;
            }
            let mut high = low;
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.rest = &self.rest[1..];
                high = self.character()?.1;
            }
            if high < low {
                return Err(format!("the range {low}-{high} is empty"));
            }
            ranges.push((low, high));
        }
        self.skip();
        let ranges = if negated { others(&ranges) } else { ranges };
        if ranges.is_empty() {
            return Err("a class of characters is empty".to_owned());
        }
        Ok(Expression::Class(ranges))
    }

    /// The next character, and whether it was escaped.
    fn character(&mut self) -> Result<(bool, char), String> {
        let mut characters = self.rest.chars();
        let mut next = || characters.next().ok_or("a text or a class does not end");
        let first = next()?;
        if first == '\n' {
            return Err("a text or a class does not end in its line".to_owned());
        }
        if first != '\\' {
            self.rest = characters.as_str();
            return Ok((false, first));
        }
        let escaped = match next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            digits @ ('x' | 'u' | 'U') => {
                let count = match digits {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let rest = characters.as_str();
                let code = rest
                    .get(..count)
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok());
                let decoded = code.and_then(char::from_u32);
                let decoded = decoded.ok_or(format!("\\{digits} needs {count} digits"))?;
                self.rest = rest.get(count..).unwrap_or_default();
                return Ok((true, decoded));
            }
            other => other,
        };
        self.rest = characters.as_str();
        Ok((true, escaped))
    }
}

/// Printable ASCII that is in none of the ranges.
fn others(ranges: &[(char, char)]) -> Vec<(char, char)> {
    let is_in = |c: char| ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
    (' '..='~').filter(|c| !is_in(*c)).map(|c| (c, c)).collect()
}
