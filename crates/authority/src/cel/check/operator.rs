//! Operators: which types they take, and what they give.

use cel::common::ast::{CallExpr, Expr, operators};
use cel::parser::Expression;

use super::super::node::{Fact, Member, Node, Order, Sum, Type};
use super::{Check, Checked, Problem, boolean, problem, text_of, written};

const ORDERS: [(&str, Order); 4] = [
    (operators::LESS, Order::Less),
    (operators::LESS_EQUALS, Order::LessOrEqual),
    (operators::GREATER, Order::Greater),
    (operators::GREATER_EQUALS, Order::GreaterOrEqual),
];
const SUMS: [(&str, Sum); 5] = [
    (operators::ADD, Sum::Add),
    (operators::SUBSTRACT, Sum::Subtract),
    (operators::MULTIPLY, Sum::Multiply),
    (operators::DIVIDE, Sum::Divide),
    (operators::MODULO, Sum::Remainder),
];

fn of_name<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, meant)| *meant)
}

impl<'t> Check<'t> {
    /// An operator's node; `None` for a function.
    pub(super) fn operator(&mut self, call: &'t CallExpr, id: u64) -> Option<Checked> {
        let name = call.func_name.as_str();
        Some(match call.args.as_slice() {
            [of] => match name {
                operators::LOGICAL_NOT => self.not(of),
                operators::NEGATE => self.negative(of),
                _ => return None,
            },
            [a, b] => match name {
                operators::LOGICAL_AND => self.both(a, b).map(|of| (Node::And(of), Type::Bool)),
                operators::LOGICAL_OR => self.both(a, b).map(|of| (Node::Or(of), Type::Bool)),
                operators::EQUALS => self.equal(a, b, true, id),
                operators::NOT_EQUALS => self.equal(a, b, false, id),
                operators::IN => self.within(a, b, id),
                operators::INDEX => self.index(a, b, id),
                _ => match (of_name(&ORDERS, name), of_name(&SUMS, name)) {
                    (Some(order), _) => self.order(order, a, b, id),
                    (_, Some(sum)) => self.sum(sum, a, b, id),
                    _ => return None,
                },
            },
            [when, yes, no] if name == operators::CONDITIONAL => self.choice(when, yes, no),
            _ => return None,
        })
    }

    fn condition(&mut self, of: &'t Expression) -> Result<Node, Problem> {
        let found = self.expression(of)?;
        boolean(found, of.id)
    }

    fn not(&mut self, of: &'t Expression) -> Checked {
        Ok((Node::Not(Box::new(self.condition(of)?)), Type::Bool))
    }

    fn both(&mut self, a: &'t Expression, b: &'t Expression) -> Result<Box<[Node; 2]>, Problem> {
        Ok(Box::new([self.condition(a)?, self.condition(b)?]))
    }

    fn choice(&mut self, when: &'t Expression, yes: &'t Expression, no: &'t Expression) -> Checked {
        let when = self.condition(when)?;
        let (yes, a) = self.expression(yes)?;
        let (no, b) = self.expression(no)?;
        let gives = if a == b { a } else { Type::Any };
        Ok((Node::If(Box::new([when, yes, no])), gives))
    }

    fn negative(&mut self, of: &'t Expression) -> Checked {
        let (node, gives) = self.expression(of)?;
        if gives == Type::Any || gives.is_number() {
            return Ok((Node::Negative(Box::new(node)), gives));
        }
        problem(of.id, format!("{} has no negative", gives.phrase()))
    }

    fn equal(&mut self, a: &'t Expression, b: &'t Expression, wanted: bool, id: u64) -> Checked {
        let (a, b) = (self.expression(a)?, self.expression(b)?);
        let node = match (a, b) {
            ((Node::Fact(fact), _), (_, Type::Null)) | ((_, Type::Null), (Node::Fact(fact), _)) => {
                absence(fact, wanted, id)?
            }
            (a, b) => {
                comparable(a.1, b.1, id)?;
                Node::Equal(Box::new([a.0, b.0]), wanted)
            }
        };
        Ok((node, Type::Bool))
    }

    fn within(&mut self, a: &'t Expression, b: &'t Expression, id: u64) -> Checked {
        let (a, holds) = self.expression(a)?;
        let (b, list) = self.expression(b)?;
        match list.element() {
            Some(element) => comparable(holds, element, id)?,
            None if list == Type::Text => {
                return problem(id, "a text is no list; write text.contains(part)");
            }
            None => return problem(id, format!("{} is no list", list.phrase())),
        }
        Ok((Node::In(Box::new([a, b])), Type::Bool))
    }

    fn index(&mut self, a: &'t Expression, b: &'t Expression, id: u64) -> Checked {
        let (of, holds) = self.expression(a)?;
        let (at, by) = self.expression(b)?;
        let takes = match holds {
            Type::Any => by == Type::Int || by == Type::Text || by == Type::Any,
            _ if holds.is_list() => by == Type::Int || by == Type::Any,
            _ if holds.is_map() => by == Type::Text || by == Type::Any,
            _ => false,
        };
        if !takes {
            let says = format!("{} has nothing under {}", holds.phrase(), by.phrase());
            return problem(id, says);
        }
        let gives = match holds {
            Type::Texts | Type::Tags => Type::Text,
            _ => Type::Any,
        };
        if !matches!(b.expr, Expr::Literal(_)) || by != Type::Text {
            return Ok((Node::Index(Box::new([of, at])), gives));
        }
        let name = text_of(b, "a name")?;
        let member = Member {
            of,
            written: Box::from(format!("{}[{name:?}]", written(a))),
            name: Box::from(name),
        };
        Ok((Node::Member(Box::new(member)), gives))
    }

    fn order(&mut self, order: Order, a: &'t Expression, b: &'t Expression, id: u64) -> Checked {
        let ((a, x), (b, y)) = (self.expression(a)?, self.expression(b)?);
        let has_order =
            |of: Type| of.is_number() || matches!(of, Type::Any | Type::Text | Type::Time);
        for of in [x, y] {
            if !has_order(of) {
                return problem(id, format!("{} has no order", of.phrase()));
            }
        }
        comparable(x, y, id)?;
        Ok((Node::Order(order, Box::new([a, b])), Type::Bool))
    }

    fn sum(&mut self, sum: Sum, a: &'t Expression, b: &'t Expression, id: u64) -> Checked {
        let ((a, x), (b, y)) = (self.expression(a)?, self.expression(b)?);
        let gives = match (x, y) {
            _ if sum == Sum::Add && (x, y) == (Type::Text, Type::Text) => Type::Text,
            _ if x == y && x.is_number() => x,
            (Type::Any, other) | (other, Type::Any)
                if other == Type::Any || other.is_number() || other == Type::Text =>
            {
                other
            }
            _ if x.is_number() && y.is_number() => {
                return problem(id, "whole numbers and others mix after double(…) or int(…)");
            }
            _ => return problem(id, format!("{} and {} have no sum", x.phrase(), y.phrase())),
        };
        Ok((Node::Sum(sum, Box::new([a, b])), gives))
    }
}

fn absence(fact: Fact, wanted: bool, id: u64) -> Result<Node, Problem> {
    if fact.may_be_absent() {
        return Ok(Node::Absent(fact, wanted));
    }
    problem(id, format!("{} is never null", fact.name()))
}

/// Whether two types can be equal at all.
fn comparable(a: Type, b: Type, id: u64) -> Result<(), Problem> {
    let says = match (a, b) {
        _ if a.is_map() || b.is_map() => "maps are not compared; compare their members".to_owned(),
        (Type::Any, _) | (_, Type::Any) => return Ok(()),
        _ if a == b || a.is_number() && b.is_number() || a.is_list() && b.is_list() => {
            return Ok(());
        }
        (Type::Address, Type::Text) | (Type::Text, Type::Address) => {
            "an address is no text; write source.inNetwork(\"10.0.0.0/8\")".to_owned()
        }
        (Type::Time, _) | (_, Type::Time) => format!(
            "{} and {} are never equal; write timestamp(\"2026-01-31T08:00:00Z\"), or int(time) for seconds",
            a.phrase(),
            b.phrase()
        ),
        _ => format!("{} and {} are never equal", a.phrase(), b.phrase()),
    };
    problem(id, says)
}
