//! Functions, as `f(x)` and as `x.f()`: which there are, what they take and what they give.

use cel::common::ast::{CallExpr, Expr};
use cel::parser::Expression;

use super::super::node::{Conversion, Fact, Fold, Loop, Node, TextTest, Type};
use super::super::value::Value;
use super::super::zone::{PARTS, Part, Zone, timestamp};
use super::super::{name, network};
use super::{Check, Checked, Found, Problem, boolean, problem, text_of};
use crate::pattern::{Pattern, Unusable};

/// The most that one compiled regular expression takes, bytes.
const REGEX_BYTES_MAX: usize = 256 << 10;

const FUNCTIONS: [&str; 8] = [
    "has",
    "size",
    "int",
    "double",
    "string",
    "timestamp",
    "matches",
    "in_network",
];
const LOOPS: [(&str, Fold); 5] = [
    ("all", Fold::All),
    ("exists", Fold::Exists),
    ("exists_one", Fold::ExistsOne),
    ("map", Fold::Map),
    ("filter", Fold::Filter),
];
const TEXT_TESTS: [(&str, TextTest); 3] = [
    ("startsWith", TextTest::StartsWith),
    ("endsWith", TextTest::EndsWith),
    ("contains", TextTest::Contains),
];
const OTHER_METHODS: [&str; 3] = ["matches", "inNetwork", "size"];

impl<'t> Check<'t> {
    /// `f(x)`.
    pub(super) fn function(&mut self, call: &'t CallExpr, id: u64) -> Checked {
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("has", [of]) => self.has(of),
            ("size", [of]) => self.size(of),
            ("int", [of]) => self.convert(Conversion::Int, of),
            ("double", [of]) => self.convert(Conversion::Float, of),
            ("string", [of]) => self.convert(Conversion::Text, of),
            ("timestamp", [of]) => {
                let time = timestamp(&text_of(of, "a time")?).map_err(|says| at(of, says))?;
                Ok((Node::Literal(Value::Time(time)), Type::Time))
            }
            ("matches", [of, pattern]) => self.matches(of, pattern),
            ("in_network", [of, network]) => self.in_network(of, network),
            (name, args) if FUNCTIONS.contains(&name) => {
                problem(id, format!("{name} does not take {} arguments", args.len()))
            }
            (name, _) if is_method(name) => {
                problem(id, format!("{name} is asked of a value: x.{name}(…)"))
            }
            (name, _) => problem(id, name::unknown("function", name, FUNCTIONS)),
        }
    }

    /// `x.f()`.
    pub(super) fn method(&mut self, of: &'t Expression, call: &'t CallExpr, id: u64) -> Checked {
        let name = call.func_name.as_str();
        let args = call.args.as_slice();
        if let Some((_, fold)) = LOOPS.iter().find(|(known, _)| *known == name) {
            return self.fold(*fold, of, args, id);
        }
        if let Some((_, part)) = PARTS.iter().find(|(known, _)| *known == name) {
            return self.part(*part, of, args, id);
        }
        if let Some((_, test)) = TEXT_TESTS.iter().find(|(known, _)| *known == name) {
            let [part] = args else {
                return problem(id, format!("{name} takes one text"));
            };
            let (of, part) = (self.text(of)?, self.text(part)?);
            return Ok((Node::Text(*test, Box::new([of, part])), Type::Bool));
        }
        match (name, args) {
            ("matches", [pattern]) => self.matches(of, pattern),
            ("inNetwork", [network]) => self.in_network(of, network),
            ("size", []) => self.size(of),
            (name, args) if OTHER_METHODS.contains(&name) => {
                problem(id, format!("{name} does not take {} arguments", args.len()))
            }
            (name, _) if FUNCTIONS.contains(&name) => {
                problem(id, format!("{name} is no method; write {name}(…)"))
            }
            (name, _) => {
                self.expression(of)?;
                problem(id, name::unknown("method", name, methods()))
            }
        }
    }

    fn text(&mut self, of: &'t Expression) -> Result<Node, Problem> {
        let found = self.expression(of)?;
        wanted(found, of, &[Type::Text], "a text is wanted")
    }

    fn has(&mut self, of: &'t Expression) -> Checked {
        match &of.expr {
            Expr::Select(select) => {
                let (member, _) = self.member(select, of.id)?;
                Ok((Node::Has(Box::new(member)), Type::Bool))
            }
            Expr::Ident(name) if Fact::ALL.iter().any(|fact| fact.name() == name) => problem(
                of.id,
                format!("has asks for a member, as in has(claims.x); write {name} != null"),
            ),
            _ => problem(
                of.id,
                "has asks for a member, as in has(claims.x); for other names write \"x\" in claims",
            ),
        }
    }

    fn size(&mut self, of: &'t Expression) -> Checked {
        let found = self.expression(of)?;
        let sized = [Type::Text, Type::Texts, Type::List, Type::Tags, Type::Map];
        let node = wanted(found, of, &sized, "a text, a list or a map is wanted")?;
        Ok((Node::Size(Box::new(node)), Type::Int))
    }

    fn convert(&mut self, to: Conversion, of: &'t Expression) -> Checked {
        let found = self.expression(of)?;
        let (from, gives): (&[Type], _) = match to {
            Conversion::Int => (&[Type::Int, Type::Float, Type::Text, Type::Time], Type::Int),
            Conversion::Float => (&[Type::Int, Type::Float, Type::Text], Type::Float),
            Conversion::Text => (
                &[Type::Int, Type::Bool, Type::Text, Type::Address],
                Type::Text,
            ),
        };
        let node = wanted(found, of, from, "that does not become one")?;
        Ok((Node::Convert(to, Box::new(node)), gives))
    }

    fn matches(&mut self, of: &'t Expression, pattern: &'t Expression) -> Checked {
        let of = self.text(of)?;
        let written = text_of(pattern, "a regular expression")?;
        let pattern = Pattern::new(&written, REGEX_BYTES_MAX)
            .map_err(|unusable| at(pattern, regex_says(unusable)))?;
        Ok((Node::Matches(Box::new(of), Box::new(pattern)), Type::Bool))
    }

    fn in_network(&mut self, of: &'t Expression, written: &'t Expression) -> Checked {
        let found = self.expression(of)?;
        let kinds = [Type::Address, Type::Text];
        let node = wanted(found, of, &kinds, "an address is wanted")?;
        let network =
            network::read(&text_of(written, "a network")?).map_err(|says| at(written, says))?;
        Ok((Node::InNetwork(Box::new(node), network), Type::Bool))
    }

    fn part(&mut self, part: Part, of: &'t Expression, args: &'t [Expression], id: u64) -> Checked {
        let found = self.expression(of)?;
        let node = wanted(found, of, &[Type::Time], "a time is wanted")?;
        let zone = match args {
            [] => Zone::UTC,
            [zone] => Zone::read(&text_of(zone, "a time zone")?).map_err(|says| at(zone, says))?,
            _ => return problem(id, "one time zone at most"),
        };
        Ok((Node::Part(Box::new(node), part, zone), Type::Int))
    }

    /// `list.exists(x, condition)` and its kin.
    fn fold(&mut self, fold: Fold, of: &'t Expression, args: &'t [Expression], id: u64) -> Checked {
        let (variable, when, each) = match args {
            [variable, each] => (variable, None, each),
            [variable, when, each] if fold == Fold::Map => (variable, Some(when), each),
            _ => {
                return problem(
                    id,
                    "a loop takes a name and a condition: list.exists(x, x == \"a\")",
                );
            }
        };
        let (over, holds) = self.expression(of)?;
        let Some(element) = holds.element() else {
            return problem(of.id, format!("{} is no list", holds.phrase()));
        };
        let name = self.new_name(variable)?;
        self.variables.push((name, element));
        let checked = self.body(fold, when, each);
        self.variables.pop();
        let (when, each, gives) = checked?;
        Ok((
            Node::Loop(Box::new(Loop {
                fold,
                over,
                when,
                each,
            })),
            gives,
        ))
    }

    fn body(
        &mut self,
        fold: Fold,
        when: Option<&'t Expression>,
        each: &'t Expression,
    ) -> Result<(Option<Node>, Node, Type), Problem> {
        let when = match when {
            Some(when) => Some(boolean(self.expression(when)?, when.id)?),
            None => None,
        };
        let found = self.expression(each)?;
        let gives = match fold {
            Fold::All | Fold::Exists | Fold::ExistsOne => Type::Bool,
            Fold::Map if found.1 == Type::Text => Type::Texts,
            Fold::Map | Fold::Filter => Type::List,
        };
        let node = if fold == Fold::Map {
            found.0
        } else {
            boolean(found, each.id)?
        };
        Ok((when, node, gives))
    }

    /// The name of a loop's variable, which no fact and no loop around has.
    fn new_name(&self, variable: &'t Expression) -> Result<&'t str, Problem> {
        let Expr::Ident(name) = &variable.expr else {
            return problem(
                variable.id,
                "the first argument of a loop is a name for the element",
            );
        };
        let is_fact = Fact::ALL.iter().any(|fact| fact.name() == name);
        if is_fact || self.variables.iter().any(|(known, _)| known == name) {
            return problem(variable.id, format!("{name} is taken; choose another name"));
        }
        Ok(name)
    }
}

fn methods() -> impl Iterator<Item = &'static str> + Clone {
    let loops = LOOPS.iter().map(|(name, _)| *name);
    let tests = TEXT_TESTS.iter().map(|(name, _)| *name);
    let parts = PARTS.iter().map(|(name, _)| *name);
    OTHER_METHODS
        .into_iter()
        .chain(loops)
        .chain(tests)
        .chain(parts)
}

/// Every name that a rule can call.
pub(in super::super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().chain(methods())
}

fn is_method(name: &str) -> bool {
    methods().any(|known| known == name)
}

fn at(of: &Expression, says: String) -> Problem {
    Problem { id: of.id, says }
}

/// A node of one of some types, or of a claim's.
fn wanted(
    (node, gives): Found,
    of: &Expression,
    types: &[Type],
    says: &str,
) -> Result<Node, Problem> {
    if gives == Type::Any || types.contains(&gives) {
        return Ok(node);
    }
    problem(of.id, format!("this is {}: {says}", gives.phrase()))
}

fn regex_says(unusable: Unusable) -> String {
    match unusable {
        Unusable::TooLarge => {
            format!("the regular expression takes more than {REGEX_BYTES_MAX} bytes when compiled")
        }
        Unusable::Syntax(says) => format!("no regular expression: {says}"),
    }
}
