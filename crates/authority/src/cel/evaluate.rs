//! Nodes to a verdict.
//!
//! Invariant: one step is taken for each node and for each element that is looked at, more for what takes longer; with
//! the last one everything ends in [`Trouble::Steps`]. As in CEL, `&&` and `||` are decided by the side that decides
//! them, whatever happens on the other; so are `all` and `exists`.

mod arithmetic;
mod looping;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::net::IpAddr;

use policy::authority::{Asked, Claim, Members};

use super::node::{Conversion, Fact, Member, Node, Order, TextTest};
use super::value::{List, Map, Trouble, Value};
use super::{DEPTH_MAX, STEPS_MAX};

type Given<'e, T = Value<'e>> = Result<T, Trouble<'e>>;

/// Bytes that are compared, copied or matched in one step.
const BYTES_A_STEP: usize = 16;

/// What finding the hour of a time zone takes, steps.
const ZONE_STEPS: usize = 8;

/// One condition, for one call.
pub(super) struct Evaluation<'e> {
    asked: &'e Asked<'e>,
    arguments: Option<&'e Members>,
    /// What the variables of the loops around stand for.
    variables: Vec<Value<'e>>,
    steps_left: u32,
}

impl<'e> Evaluation<'e> {
    /// With so many steps, at most [`STEPS_MAX`].
    pub(super) fn new(asked: &'e Asked<'e>, steps: u32) -> Self {
        Self {
            asked,
            arguments: None,
            variables: Vec::new(),
            steps_left: steps.min(STEPS_MAX),
        }
    }

    /// With the arguments of a call.
    pub(super) fn knowing(self, arguments: Option<&'e Members>) -> Self {
        Self { arguments, ..self }
    }

    pub(super) fn steps_left(&self) -> u32 {
        self.steps_left
    }

    /// Whether a condition holds.
    pub(super) fn holds(&mut self, node: &'e Node) -> Given<'e, bool> {
        match self.value(node)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(Trouble::Kind("true or false", other.kind())),
        }
    }

    fn step(&mut self, steps: usize) -> Given<'e, ()> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => {
                self.steps_left = 0;
                Err(Trouble::Steps)
            }
        }
    }

    fn bytes(&mut self, bytes: usize) -> Given<'e, ()> {
        self.step(bytes / BYTES_A_STEP)
    }

    fn value(&mut self, node: &'e Node) -> Given<'e> {
        self.step(1)?;
        match node {
            Node::Literal(value) => Ok(value.lend()),
            Node::Fact(fact) => self.fact(*fact),
            Node::Absent(fact, wanted) => Ok(Value::Bool(fact.is_absent(self.asked) == *wanted)),
            Node::Variable(place) => self.variable(*place),
            Node::Member(member) => self
                .member(member)?
                .ok_or(Trouble::NoMember(&member.written)),
            Node::Has(member) => Ok(Value::Bool(self.member(member)?.is_some())),
            Node::Index(of) => self.index(of),
            Node::List(nodes) => self.list(nodes),
            Node::Not(of) => Ok(Value::Bool(!self.holds(of)?)),
            Node::And(of) => self.decided(of, false),
            Node::Or(of) => self.decided(of, true),
            Node::If(of) => self.choice(of),
            Node::Equal(of, wanted) => self.equality(of, *wanted),
            Node::Order(order, of) => self.order(*order, of),
            Node::In(of) => self.within(of).map(Value::Bool),
            Node::Sum(sum, of) => self.sum(*sum, of),
            Node::Negative(of) => self.negative(of),
            Node::Loop(of) => self.run(of),
            Node::Text(test, of) => self.test(*test, of),
            Node::Matches(of, pattern) => {
                let text = self.text(of)?;
                self.bytes(pattern.looks(text.len()))?;
                Ok(Value::Bool(pattern.is_in(&text)))
            }
            Node::InNetwork(of, network) => Ok(Value::Bool(network.contains(self.address(of)?))),
            Node::Part(of, part, zone) => {
                let at = self.time(of)?;
                self.step(ZONE_STEPS)?;
                zone.part(*part, at)
                    .map(Value::Int)
                    .ok_or(Trouble::Calendar)
            }
            Node::Size(of) => self.size(of),
            Node::Convert(to, of) => self.convert(*to, of),
        }
    }

    fn fact(&mut self, fact: Fact) -> Given<'e> {
        let asked = self.asked;
        let text = |text: &'e str| Ok(Value::Text(Cow::Borrowed(text)));
        let perhaps = |of: Option<&'e str>| match of {
            Some(of) => text(of),
            None => Err(Trouble::Absent(fact.name())),
        };
        match fact {
            Fact::Workload => text(asked.workload),
            Fact::Key => perhaps(asked.key),
            Fact::User => perhaps(asked.user),
            Fact::Tags => Ok(Value::Map(Map::Tags(asked.tags))),
            Fact::Claims => Ok(Value::Map(Map::Members(asked.claims))),
            Fact::Arguments => {
                let arguments = self.arguments.ok_or(Trouble::Arguments)?;
                Ok(Value::Map(Map::Members(arguments)))
            }
            Fact::Scopes => self.scopes(),
            Fact::Server => match parts(asked.path) {
                Some((server, _)) => text(server),
                None => Err(Trouble::Absent(fact.name())),
            },
            Fact::Name => text(parts(asked.path).map_or(asked.path, |(_, name)| name)),
            Fact::Method => text(asked.method),
            Fact::Path => text(asked.path),
            Fact::Operation => text(asked.operation),
            Fact::Model => perhaps(asked.model),
            Fact::Route => text(asked.route),
            Fact::Backends => Ok(Value::List(List::Names(asked.backends))),
            Fact::Source => Ok(Value::Address(asked.source.to_canonical())),
            Fact::Time => match i64::try_from(asked.unix_ms) {
                Ok(unix_ms) => Ok(Value::Time(unix_ms)),
                Err(_) => Err(Trouble::Calendar),
            },
        }
    }

    /// What its token says that it may be used for: `scope` (RFC 8693), or `scp`.
    fn scopes(&mut self) -> Given<'e> {
        let mut made: Vec<Value<'e>> = Vec::new();
        let claims = self.asked.claims;
        let said = ["scope", "scp"].into_iter();
        for claim in said.filter_map(|name| claims.get(name)) {
            match claim {
                Claim::Text(text) => {
                    self.bytes(text.len())?;
                    for word in text.split_ascii_whitespace() {
                        self.step(1)?;
                        made.push(Value::Text(Cow::Borrowed(word)));
                    }
                }
                Claim::List(many) => {
                    for of in many {
                        self.step(1)?;
                        made.extend(matches!(of, Claim::Text(_)).then(|| Value::of(of)));
                    }
                }
                _ => {}
            }
        }
        Ok(Value::List(List::Made(made.into())))
    }

    fn variable(&mut self, place: usize) -> Given<'e> {
        let value = self.variables.get(place).cloned();
        let value = value.ok_or(Trouble::NoIndex)?;
        self.bytes(value.copied_bytes())?;
        Ok(value)
    }

    /// A member of what should be a map; `None` when the map has it not.
    fn member(&mut self, member: &'e Member) -> Given<'e, Option<Value<'e>>> {
        match self.value(&member.of)? {
            Value::Map(map) => {
                self.step(map.search_steps())?;
                Ok(map.get(&member.name))
            }
            other => Err(Trouble::Kind("a map", other.kind())),
        }
    }

    fn index(&mut self, [of, at]: &'e [Node; 2]) -> Given<'e> {
        let (of, at) = (self.value(of)?, self.value(at)?);
        let found = match (&of, &at) {
            (Value::List(list), Value::Int(at)) => match usize::try_from(*at) {
                Ok(at) => self.element(list, at)?,
                Err(_) => None,
            },
            (Value::Map(map), Value::Text(name)) => {
                self.step(map.search_steps())?;
                map.get(name)
            }
            _ => return Err(Trouble::Pair("an index", of.kind(), at.kind())),
        };
        found.ok_or(Trouble::NoIndex)
    }

    /// A list's element, which is a copy where the list was made.
    fn element(&mut self, list: &List<'e>, at: usize) -> Given<'e, Option<Value<'e>>> {
        self.bytes(list.copied_bytes(at))?;
        Ok(list.get(at))
    }

    fn list(&mut self, nodes: &'e [Node]) -> Given<'e> {
        let values: Given<'e, Vec<Value<'e>>> = nodes.iter().map(|node| self.value(node)).collect();
        Ok(Value::List(List::Made(values?.into())))
    }

    /// `&&` and `||`: a side that is `decides` decides, whatever the other comes to.
    fn decided(&mut self, [a, b]: &'e [Node; 2], decides: bool) -> Given<'e> {
        let first = self.holds(a);
        if first == Ok(decides) {
            return Ok(Value::Bool(decides));
        }
        match (first, self.holds(b)) {
            (_, Ok(second)) if second == decides => Ok(Value::Bool(decides)),
            (Err(trouble), _) | (_, Err(trouble)) => Err(trouble),
            (Ok(_), Ok(_)) => Ok(Value::Bool(!decides)),
        }
    }

    fn choice(&mut self, [when, yes, no]: &'e [Node; 3]) -> Given<'e> {
        let taken = if self.holds(when)? { yes } else { no };
        self.value(taken)
    }

    fn equality(&mut self, [a, b]: &'e [Node; 2], wanted: bool) -> Given<'e> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        Ok(Value::Bool(self.equal(&a, &b, 0)? == wanted))
    }

    fn equal(&mut self, a: &Value<'e>, b: &Value<'e>, depth: usize) -> Given<'e, bool> {
        self.step(1)?;
        if let (Value::Text(a), Value::Text(b)) = (a, b) {
            self.bytes(a.len().min(b.len()))?;
        }
        if let Some(equal) = a.scalar_equal(b) {
            return Ok(equal);
        }
        let (Value::List(a), Value::List(b)) = (a, b) else {
            return Err(Trouble::Pair("compared", a.kind(), b.kind()));
        };
        if depth >= DEPTH_MAX {
            return Err(Trouble::Depth);
        }
        if a.len() != b.len() {
            return Ok(false);
        }
        for at in 0..a.len() {
            if let (Some(a), Some(b)) = (self.element(a, at)?, self.element(b, at)?)
                && !self.equal(&a, &b, depth + 1)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn order(&mut self, order: Order, [a, b]: &'e [Node; 2]) -> Given<'e> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        if let (Value::Text(a), Value::Text(b)) = (&a, &b) {
            self.bytes(a.len().min(b.len()))?;
        }
        let found = match a.number_order(&b) {
            Some(found) => found,
            None => {
                let ordered = a.order(&b);
                Some(ordered.ok_or(Trouble::Pair("ordered", a.kind(), b.kind()))?)
            }
        };
        Ok(Value::Bool(found.is_some_and(|found| match order {
            Order::Less => found == Ordering::Less,
            Order::LessOrEqual => found != Ordering::Greater,
            Order::Greater => found == Ordering::Greater,
            Order::GreaterOrEqual => found != Ordering::Less,
        })))
    }

    fn within(&mut self, [a, b]: &'e [Node; 2]) -> Given<'e, bool> {
        let value = self.value(a)?;
        if let Node::List(nodes) = b {
            return self.among(&value, nodes);
        }
        match self.value(b)? {
            Value::List(list) => {
                for at in 0..list.len() {
                    if let Some(element) = self.element(&list, at)?
                        && self.equal(&value, &element, 0)?
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Map(map) => match value {
                Value::Text(name) => {
                    self.step(map.search_steps())?;
                    Ok(map.get(&name).is_some())
                }
                _ => Ok(false),
            },
            other => Err(Trouble::Kind("a list or a map", other.kind())),
        }
    }

    /// A list that is written in the rule is looked at where it stands.
    fn among(&mut self, value: &Value<'e>, nodes: &'e [Node]) -> Given<'e, bool> {
        let mut found = false;
        for node in nodes {
            let element = self.value(node)?;
            found = found || self.equal(value, &element, 0)?;
        }
        Ok(found)
    }

    fn text(&mut self, node: &'e Node) -> Given<'e, Cow<'e, str>> {
        match self.value(node)? {
            Value::Text(text) => Ok(text),
            other => Err(Trouble::Kind("a text", other.kind())),
        }
    }

    fn test(&mut self, test: TextTest, [of, part]: &'e [Node; 2]) -> Given<'e> {
        let (of, part) = (self.text(of)?, self.text(part)?);
        self.bytes(of.len())?;
        Ok(Value::Bool(match test {
            TextTest::StartsWith => of.starts_with(&*part),
            TextTest::EndsWith => of.ends_with(&*part),
            TextTest::Contains => of.contains(&*part),
        }))
    }

    fn address(&mut self, node: &'e Node) -> Given<'e, IpAddr> {
        match self.value(node)? {
            Value::Address(address) => Ok(address),
            Value::Text(text) => {
                let address = text.parse::<IpAddr>();
                address
                    .map(|address| address.to_canonical())
                    .map_err(|_| Trouble::Conversion("an address"))
            }
            other => Err(Trouble::Kind("an address", other.kind())),
        }
    }

    fn time(&mut self, node: &'e Node) -> Given<'e, i64> {
        match self.value(node)? {
            Value::Time(time) => Ok(time),
            other => Err(Trouble::Kind("a time", other.kind())),
        }
    }

    fn size(&mut self, node: &'e Node) -> Given<'e> {
        let size = match self.value(node)? {
            Value::Text(text) => {
                self.bytes(text.len())?;
                text.chars().count()
            }
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            other => return Err(Trouble::Kind("a text, a list or a map", other.kind())),
        };
        i64::try_from(size)
            .map(Value::Int)
            .map_err(|_| Trouble::Overflow)
    }

    fn convert(&mut self, to: Conversion, node: &'e Node) -> Given<'e> {
        let value = self.value(node)?;
        if let Value::Text(text) = &value {
            self.bytes(text.len())?;
        }
        arithmetic::convert(to, value)
    }
}

/// The server that the name of a tool, of a prompt or of a resource begins with, and the rest: no name of a server has a `__` or a `+`
/// in it.
fn parts(path: &str) -> Option<(&str, &str)> {
    let end = [
        path.find("__").map(|at| (at, 2)),
        path.find('+').map(|at| (at, 1)),
    ];
    let (at, width) = end.into_iter().flatten().min()?;
    Some((path.get(..at)?, path.get(at + width..)?))
}
