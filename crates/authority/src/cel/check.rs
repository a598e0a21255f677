//! A tree to nodes: every name, type, network, zone and regular expression is settled, or is a fault.
//!
//! Invariant: what passes gives a boolean, or is made of claims, whose types only a call knows.
//! Not here: functions (`check/call`), operators (`check/operator`).

mod call;
mod operator;

use std::borrow::Cow;

use cel::common::ast::{CallExpr, Expr, ListExpr, LiteralValue, SelectExpr};
use cel::parser::Expression;

pub(super) use self::call::names;
use super::name;
use super::node::{Fact, Member, Node, Type};
use super::syntax::Tree;
use super::value::Value;

/// The node of a rule's condition.
pub(super) fn condition(tree: &Tree) -> Result<Node, String> {
    checked(tree, &mut Check::default())
}

/// The node of a filter's condition, which may look at arguments where `has_arguments`, and whether it does.
pub(super) fn of_filter(tree: &Tree, has_arguments: bool) -> Result<(Node, bool), String> {
    let mut check = Check {
        is_filter: true,
        has_arguments,
        ..Check::default()
    };
    let node = checked(tree, &mut check)?;
    Ok((node, check.reads_arguments))
}

fn checked<'t>(tree: &'t Tree, check: &mut Check<'t>) -> Result<Node, String> {
    let checked = check
        .expression(&tree.root)
        .and_then(|found| boolean(found, tree.root.id));
    checked.map_err(|problem| format!("{}: {}", tree.place(problem.id), problem.says))
}

/// What is wrong, and with which part.
struct Problem {
    id: u64,
    says: String,
}

/// A node, and what it gives.
type Found = (Node, Type);
type Checked = Result<Found, Problem>;

fn problem<T>(id: u64, says: impl Into<String>) -> Result<T, Problem> {
    let says = says.into();
    Err(Problem { id, says })
}

#[derive(Default)]
struct Check<'t> {
    /// The variables of the loops around, outermost first.
    variables: Vec<(&'t str, Type)>,
    /// It is of a filter.
    is_filter: bool,
    /// The arguments of a call may be looked at.
    has_arguments: bool,
    /// They are.
    reads_arguments: bool,
}

impl<'t> Check<'t> {
    fn expression(&mut self, of: &'t Expression) -> Checked {
        match &of.expr {
            Expr::Literal(value) => literal(value, of.id),
            Expr::Ident(name) => self.name(name, of.id),
            Expr::Select(select) => {
                let (member, gives) = self.member(select, of.id)?;
                Ok((Node::Member(Box::new(member)), gives))
            }
            Expr::Call(call) => self.call(call, of.id),
            Expr::List(list) => self.list(list),
            Expr::Map(_) | Expr::Struct(_) => problem(of.id, "a rule writes no maps"),
            Expr::Comprehension(_) | Expr::Unspecified => problem(of.id, "this is not offered"),
        }
    }

    fn call(&mut self, call: &'t CallExpr, id: u64) -> Checked {
        match &call.target {
            Some(target) => self.method(target, call, id),
            None => match self.operator(call, id) {
                Some(checked) => checked,
                None => self.function(call, id),
            },
        }
    }

    fn name(&mut self, name: &str, id: u64) -> Checked {
        let variable = self.variables.iter().rposition(|(known, _)| *known == name);
        if let Some((place, (_, gives))) =
            variable.and_then(|at| Some((at, self.variables.get(at)?)))
        {
            return Ok((Node::Variable(place), *gives));
        }
        let arguments = Fact::Arguments;
        if name == arguments.name() {
            if !self.has_arguments {
                let says = "arguments are looked at in mcp alone, where a tool or a prompt is allowed or denied";
                return problem(id, says);
            }
            self.reads_arguments = true;
            return Ok((Node::Fact(arguments), arguments.gives()));
        }
        let of_filters = Fact::OF_FILTERS.into_iter().filter(|_| self.is_filter);
        let mut known = Fact::ALL.into_iter().chain(of_filters);
        match known.find(|fact| fact.name() == name) {
            Some(fact) => Ok((Node::Fact(fact), fact.gives())),
            None => problem(
                id,
                name::unknown("variable", name, Fact::ALL.map(Fact::name)),
            ),
        }
    }

    fn member(&mut self, select: &'t SelectExpr, id: u64) -> Result<(Member, Type), Problem> {
        let (of, holds) = self.expression(&select.operand)?;
        let gives = match holds {
            Type::Tags => Type::Text,
            Type::Map | Type::Any => Type::Any,
            other => {
                let says = format!(
                    "{} has no members, and so no {}",
                    other.phrase(),
                    select.field
                );
                return problem(id, says);
            }
        };
        let written = format!("{}.{}", written(&select.operand), select.field);
        let member = Member {
            of,
            name: Box::from(select.field.as_str()),
            written: Box::from(written),
        };
        Ok((member, gives))
    }

    fn list(&mut self, list: &'t ListExpr) -> Checked {
        let mut nodes = Vec::with_capacity(list.elements.len());
        let mut texts = true;
        for element in &list.elements {
            let (node, gives) = self.expression(element)?;
            texts &= gives == Type::Text;
            nodes.push(node);
        }
        let gives = if texts { Type::Texts } else { Type::List };
        Ok((Node::List(nodes.into()), gives))
    }
}

fn literal(value: &LiteralValue, id: u64) -> Checked {
    let found = match value {
        LiteralValue::Null => (Value::Null, Type::Null),
        LiteralValue::Boolean(value) => (Value::Bool(*value.inner()), Type::Bool),
        LiteralValue::Int(value) => (Value::Int(*value.inner()), Type::Int),
        LiteralValue::Double(value) => (Value::Float(*value.inner()), Type::Float),
        LiteralValue::String(value) => {
            let text = Cow::Owned(value.inner().to_owned());
            (Value::Text(text), Type::Text)
        }
        LiteralValue::UInt(_) => return problem(id, "write the number without its u"),
        LiteralValue::Bytes(_) => return problem(id, "write the text without its b"),
    };
    Ok((Node::Literal(found.0), found.1))
}

/// A node that is true or false, as far as can be told.
fn boolean((node, gives): Found, id: u64) -> Result<Node, Problem> {
    match gives {
        Type::Bool | Type::Any => Ok(node),
        other => {
            let says = format!("this is {}, and true or false is wanted", other.phrase());
            problem(id, says)
        }
    }
}

/// How the rule writes a path, for the log.
fn written(of: &Expression) -> String {
    match &of.expr {
        Expr::Ident(name) => name.clone(),
        Expr::Select(select) => format!("{}.{}", written(&select.operand), select.field),
        _ => "(…)".to_owned(),
    }
}

/// The text of a literal, for what is read when the rules are.
fn text_of(of: &Expression, what: &str) -> Result<String, Problem> {
    match &of.expr {
        Expr::Literal(LiteralValue::String(text)) => Ok(text.inner().to_owned()),
        _ => problem(of.id, format!("{what} is written as a text between quotes")),
    }
}
