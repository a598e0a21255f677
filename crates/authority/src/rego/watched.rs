//! A policy's text in which operators read what they look at through a function, so that it takes steps.
//!
//! The interpreter takes a step for `x in list` and for `a == b`, however much there is to look at, and none for how long a
//! product grows. It has no place to ask at, so the text that it runs asks: `x in list` becomes
//! `x in __gate_find(list)`, a function (`functions`) that takes its steps and gives back what it was given.
//! Invariant: the text that runs is the policy, but for these calls: it is read again, and compared. Lines stay lines.
//! Not here: what the calls take (`cost`).

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use regorus::Value;
use regorus::unstable::{
    ArithOp, AssignOp, BinOp, BoolOp, Expr, Literal, Module, Parser, Query, Rule, RuleAssign,
    RuleHead, Source, Span,
};

/// How the names of such functions begin, which no policy may use.
const PREFIX: &str = "__gate_";
/// It looks for something in a list.
pub(super) const FIND: &str = "__gate_find";
/// It compares it with something.
pub(super) const READ: &str = "__gate_read";
/// It goes through its elements.
pub(super) const EACH: &str = "__gate_each";
/// It calculates with it, or makes a set of it and another.
pub(super) const COUNT: &str = "__gate_count";

/// The longest line of the text that runs. That of a text that is written is the library's.
pub(super) const COLUMNS_MAX: NonZeroU32 = NonZeroU32::MIN.saturating_add(1 << 20);
/// A literal of so many bytes is as quickly compared as looked at.
const SHORT_BYTES: usize = 256;

/// A module's text, and where it is other than what was written.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) text: Box<str>,
    /// Bytes that were put into a line, by where they begin in it: line, column, length.
    added: Box<[(usize, usize, usize)]>,
    /// The regular expressions that stand in it where one is looked for.
    pub(super) patterns: Vec<String>,
}

impl Watched {
    /// Of a module that parses; `None` where the text would not be the same policy.
    pub(super) fn new(name: &str, text: &str) -> Option<Self> {
        if text.contains(PREFIX) {
            return None;
        }
        let before = Outline::of(name, text)?;
        let (text, added) = put(text, &before.wraps);
        let after = Outline::of(name, &text)?;
        (before.said == after.said).then(|| Self {
            text: text.into(),
            added: added.into(),
            patterns: before.patterns,
        })
    }

    /// The column where something was written that now stands at another.
    pub(super) fn column(&self, line: usize, column: usize) -> usize {
        let before = |(on, at, _): &&(usize, usize, usize)| *on == line && *at < column;
        let added: usize = self.added.iter().filter(before).map(|(.., of)| of).sum();
        column.saturating_sub(added).max(1)
    }
}

/// A call to put around a part of the text.
struct Wrap {
    from: usize,
    to: usize,
    name: &'static str,
}

/// The text with the calls, and where each piece was put.
fn put(text: &str, wraps: &[Wrap]) -> (String, Vec<(usize, usize, usize)>) {
    // At one place what ends comes before what begins, and what ends last begins first.
    let begins = wraps
        .iter()
        .map(|of| (of.from, 1, usize::MAX - of.to, of.name));
    let ends = wraps.iter().map(|of| (of.to, 0, of.from, ""));
    let mut pieces: Vec<_> = begins.chain(ends).collect();
    pieces.sort_unstable();
    let (mut made, mut added, mut at) = (String::with_capacity(text.len() * 2), Vec::new(), 0);
    for (place, _, _, name) in pieces {
        made.push_str(text.get(at..place).unwrap_or_default());
        at = place;
        let line_start = made.rfind('\n').map_or(0, |end| end + 1);
        let line = made.matches('\n').count() + 1;
        let before = made.len();
        if name.is_empty() {
            made.push(')');
        } else {
            made.push_str(name);
            made.push('(');
        }
        added.push((line, before - line_start + 1, made.len() - before));
    }
    made.push_str(text.get(at..).unwrap_or_default());
    (made, added)
}

/// What a module says, without the calls, and where they belong.
#[derive(Default)]
struct Outline {
    said: String,
    wraps: Vec<Wrap>,
    patterns: Vec<String>,
    /// Variables that stand for every place there is.
    sought: BTreeSet<String>,
}

impl Outline {
    fn of(name: &str, text: &str) -> Option<Self> {
        let source = Source::from_contents(name.to_owned(), text.to_owned()).ok()?;
        let mut parser = Parser::new(&source).ok()?;
        parser.enable_rego_v1().ok()?;
        parser.set_max_col(COLUMNS_MAX);
        let module = parser.parse().ok()?;
        let mut outline = Self::default();
        outline.module(&module);
        Some(outline)
    }

    fn module(&mut self, module: &Module) {
        self.expression(&module.package.refr);
        for import in &module.imports {
            self.say("import");
            self.expression(&import.refr);
            if let Some(name) = &import.r#as {
                self.say(name.text());
            }
        }
        for rule in &module.policy {
            self.rule(rule);
        }
    }

    fn rule(&mut self, rule: &Rule) {
        match rule {
            Rule::Default {
                refr, args, value, ..
            } => {
                self.say("default");
                self.expression(refr);
                self.all(args);
                self.expression(value);
            }
            Rule::Spec { head, bodies, .. } => {
                self.head(head);
                for body in bodies {
                    self.say(if body.is_else { "else" } else { "if" });
                    self.assign(body.assign.as_ref());
                    self.query(&body.query);
                }
            }
        }
    }

    fn head(&mut self, head: &RuleHead) {
        match head {
            RuleHead::Compr { refr, assign, .. } => {
                self.say("rule");
                self.expression(refr);
                self.assign(assign.as_ref());
            }
            RuleHead::Set { refr, key, .. } => {
                self.say("set");
                self.expression(refr);
                key.iter().for_each(|key| self.expression(key));
            }
            RuleHead::Func {
                refr, args, assign, ..
            } => {
                self.say("function");
                self.expression(refr);
                self.all(args);
                self.assign(assign.as_ref());
            }
        }
    }

    fn assign(&mut self, assign: Option<&RuleAssign>) {
        if let Some(assign) = assign {
            self.say(assigns(&assign.op));
            self.expression(&assign.value);
        }
    }

    fn query(&mut self, query: &Query) {
        self.say("{");
        for statement in &query.stmts {
            self.literal(&statement.literal);
            for with in &statement.with_mods {
                self.say("with");
                self.expression(&with.refr);
                self.expression(&with.r#as);
            }
            self.say(";");
        }
        self.say("}");
    }

    fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::SomeVars { vars, .. } => {
                self.say("some");
                for name in vars {
                    self.say(name.text());
                    self.sought.insert(name.text().to_owned());
                }
            }
            Literal::SomeIn {
                key,
                value,
                collection,
                ..
            } => {
                self.say("some-in");
                key.iter().for_each(|key| self.expression(key));
                self.expression(value);
                self.wrapped(collection, EACH);
            }
            Literal::Expr { expr, .. } => self.expression(expr),
            Literal::NotExpr { expr, .. } => {
                self.say("not");
                self.expression(expr);
            }
            Literal::Every {
                key,
                value,
                domain,
                query,
                ..
            } => {
                self.say("every");
                key.iter().for_each(|key| self.say(key.text()));
                self.say(value.text());
                self.wrapped(domain, EACH);
                self.query(query);
            }
        }
    }

    fn expression(&mut self, expr: &Expr) {
        match expr {
            Expr::String { span, .. }
            | Expr::RawString { span, .. }
            | Expr::Number { span, .. }
            | Expr::Bool { span, .. }
            | Expr::Null { span, .. }
            | Expr::Var { span, .. } => self.say(span.text()),
            Expr::Array { items, .. } => self.many("array", items),
            Expr::Set { items, .. } => self.many("set", items),
            Expr::Object { fields, .. } => {
                self.say("object(");
                for (_, key, value) in fields {
                    self.expression(key);
                    self.expression(value);
                }
                self.say(")");
            }
            Expr::Call { fcn, params, .. } => self.call(fcn, params),
            Expr::UnaryExpr { expr, .. } => self.many("minus", std::slice::from_ref(expr)),
            Expr::RefDot { refr, field, .. } => {
                self.say("dot(");
                self.expression(refr);
                self.say(field.0.text());
                self.say(")");
            }
            Expr::RefBrack { refr, index, .. } => {
                self.say("at(");
                if self.is_loop(index) && is_path(refr) {
                    self.wrapped(refr, EACH);
                } else {
                    self.expression(refr);
                }
                self.expression(index);
                self.say(")");
            }
            Expr::ArrayCompr { term, query, .. } => {
                self.say("array-of");
                self.expression(term);
                self.query(query);
            }
            Expr::SetCompr { term, query, .. } => {
                self.say("set-of");
                self.wrapped(term, READ);
                self.query(query);
            }
            Expr::ObjectCompr {
                key, value, query, ..
            } => {
                self.say("object-of");
                self.wrapped(key, READ);
                self.expression(value);
                self.query(query);
            }
            _ => self.operator(expr),
        }
    }

    fn operator(&mut self, expr: &Expr) {
        match expr {
            Expr::BinExpr { op, lhs, rhs, .. } => {
                self.say(match op {
                    BinOp::Intersection => "and(",
                    BinOp::Union => "or(",
                });
                self.wrapped(lhs, COUNT);
                self.wrapped(rhs, COUNT);
            }
            Expr::BoolExpr { op, lhs, rhs, .. } => {
                self.say(compares(op));
                if is_short(lhs) || is_short(rhs) {
                    self.expression(lhs);
                } else {
                    self.wrapped(lhs, READ);
                }
                self.expression(rhs);
            }
            Expr::ArithExpr { op, lhs, rhs, .. } => {
                let (name, grows) = calculates(op);
                self.say(name);
                for side in [lhs, rhs] {
                    if grows {
                        self.wrapped(side, COUNT);
                    } else {
                        self.expression(side);
                    }
                }
            }
            Expr::AssignExpr { op, lhs, rhs, .. } => {
                self.say(assigns(op));
                self.expression(lhs);
                if matches!(op, AssignOp::Eq) && is_path(rhs) {
                    self.wrapped(rhs, READ);
                } else {
                    self.expression(rhs);
                }
            }
            Expr::Membership {
                key,
                value,
                collection,
                ..
            } => {
                self.say("in(");
                key.iter().for_each(|key| self.expression(key));
                self.expression(value);
                self.wrapped(collection, FIND);
            }
            // No other expression is an operator.
            _ => self.say("?"),
        }
        self.say(")");
    }

    /// Whether an index stands for every place there is.
    fn is_loop(&self, index: &Expr) -> bool {
        let Expr::Var { span, .. } = index else {
            return false;
        };
        span.text() == "_" || self.sought.contains(span.text())
    }

    fn call(&mut self, fcn: &Expr, params: &[regorus::unstable::Ref<Expr>]) {
        if let (Expr::Var { span, .. }, [inner]) = (fcn, params)
            && span.text().starts_with(PREFIX)
        {
            self.expression(inner);
            return;
        }
        if let (true, Some(Expr::String { value, .. } | Expr::RawString { value, .. })) = (
            fcn.span().text().starts_with("regex."),
            params.first().map(|param| &**param),
        ) && let Value::String(pattern) = value
        {
            self.patterns.push(pattern.to_string());
        }
        self.say("call");
        self.expression(fcn);
        self.many("with", params);
    }

    /// An expression that is read through a function, but for a short literal.
    fn wrapped(&mut self, expr: &Expr, name: &'static str) {
        let Span { start, end, .. } = expr.span();
        if let (false, Ok(from), Ok(to)) = (
            is_short(expr),
            usize::try_from(*start),
            usize::try_from(*end),
        ) {
            self.wraps.push(Wrap { from, to, name });
        }
        self.expression(expr);
    }

    fn many(&mut self, name: &str, of: &[regorus::unstable::Ref<Expr>]) {
        self.say(name);
        self.say("(");
        self.all(of);
        self.say(")");
    }

    fn all(&mut self, of: &[regorus::unstable::Ref<Expr>]) {
        of.iter().for_each(|expr| self.expression(expr));
    }

    fn say(&mut self, word: &str) {
        self.said.push_str(word);
        self.said.push(' ');
    }
}

/// Whether a literal is looked at in no time.
fn is_short(expr: &Expr) -> bool {
    match expr {
        Expr::Bool { .. } | Expr::Null { .. } => true,
        Expr::String { span, .. } | Expr::RawString { span, .. } => {
            span.text().len() <= SHORT_BYTES
        }
        Expr::Number { span, .. } => span.text().len() <= 16,
        Expr::Array { items, .. } | Expr::Set { items, .. } => {
            items.len() <= 16 && items.iter().all(|item| is_short(item))
        }
        _ => false,
    }
}

/// Whether it names one value, without a variable to be found: `input.a.b`.
fn is_path(expr: &Expr) -> bool {
    match expr {
        Expr::RefDot { refr, .. } => is_path(refr) || matches!(&**refr, Expr::Var { .. }),
        _ => false,
    }
}

fn assigns(op: &AssignOp) -> &'static str {
    match op {
        AssignOp::Eq => "=(",
        AssignOp::ColEq => ":=(",
    }
}

fn compares(op: &BoolOp) -> &'static str {
    match op {
        BoolOp::Lt => "<(",
        BoolOp::Le => "<=(",
        BoolOp::Eq => "==(",
        BoolOp::Ge => ">=(",
        BoolOp::Gt => ">(",
        BoolOp::Ne => "!=(",
    }
}

/// A sum is a digit longer at most; a product is as long as both.
fn calculates(op: &ArithOp) -> (&'static str, bool) {
    match op {
        ArithOp::Add => ("+(", false),
        ArithOp::Sub => ("-(", true),
        ArithOp::Mul => ("*(", true),
        ArithOp::Div => ("/(", true),
        ArithOp::Mod => ("%(", true),
    }
}
