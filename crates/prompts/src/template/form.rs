//! How a template reads the content of messages: what vLLM 0.32.0 sees in its syntax tree (`renderers/hf.py`).
//!
//! A template takes content as a list of parts where it has a loop over a message's `content`: a message is what a loop
//! over `messages`, or over something assigned from it, goes through; in a macro, a parameter that is given such a
//! content counts as well.
//! Invariant: comments, raw text and strings are not looked at; a template that cannot be read takes text.
//! Not here: how content is handed over (`arguments`).

use minijinja::machinery::ast::{BinOpKind, Call, CallArg, Expr, Macro, Stmt};
use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;

/// Variables that Jinja has and this engine has not.
const FOREIGN_NAMES: [&str; 6] = ["cycler", "joiner", "kwargs", "lipsum", "self", "varargs"];

/// Filters that print, or look, in another way.
const FOREIGN_FILTERS: [&str; 3] = ["attr", "groupby", "pprint"];

/// Of a dict, `x.items` is the method to Jinja, whatever members it has; here it is the member.
const METHODS: [&str; 15] = [
    "append",
    "clear",
    "copy",
    "fromkeys",
    "get",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "split",
    "startswith",
    "strip",
    "update",
    "values",
];

/// What a template's syntax says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// It has a loop over the parts of a message.
    pub(super) takes_parts: bool,
    /// It makes text of other things with an operator, which writes some numbers in another way than Python does.
    pub(super) joins: bool,
    /// It uses something that is computed in another way than Jinja does: a slice that goes backwards to a place, a
    /// method that is not called, and some names and filters.
    pub(super) is_foreign: bool,
}

/// Reads a template's source, without the marks that training uses.
pub(super) fn of(source: &str) -> Form {
    let Ok(root) = parse(source, "", SyntaxConfig::default()) else {
        return Form::default();
    };
    let mut seen = Seen::default();
    seen.statement(&root);
    Form {
        takes_parts: seen.takes_parts().unwrap_or(false),
        joins: seen.joins,
        is_foreign: seen.is_foreign,
    }
}

#[derive(Default)]
struct Seen<'t> {
    /// Targets with what is assigned to them.
    sets: Vec<(&'t Expr<'t>, &'t Expr<'t>)>,
    loops: Vec<Loop<'t>>,
    calls: Vec<&'t Call<'t>>,
    macros: Vec<&'t Macro<'t>>,
    /// The macros around the place that is looked at, as places in `macros`, outermost first.
    within: Vec<usize>,
    joins: bool,
    is_foreign: bool,
}

struct Loop<'t> {
    target: &'t Expr<'t>,
    over: &'t Expr<'t>,
    /// The macros around it.
    within: Vec<usize>,
}

impl<'t> Seen<'t> {
    /// None: the engine's own look fails, and it takes the content as text.
    fn takes_parts(&self) -> Option<bool> {
        let messages = self.names_of_messages()?;
        let mut items = Vec::new();
        for one in &self.loops {
            if messages.iter().any(|name| reads(one.over, name, None)) {
                items.push(name_of(one.target)?);
            }
        }
        let is_content = |expr: &Expr<'_>| {
            let mut items = items.iter();
            items.any(|item| reads(expr, item, Some("content")))
        };
        for one in &self.loops {
            let takes = is_content(one.over)
                || name_of(one.over)
                    .is_some_and(|name| self.is_named_content(name, one, &is_content));
            if takes {
                name_of(one.target)?;
                return Some(true);
            }
        }
        Some(false)
    }

    /// `messages`, and every variable that is assigned from it or from another of them.
    fn names_of_messages(&self) -> Option<Vec<&'t str>> {
        let mut names = vec!["messages"];
        let mut at = 0;
        while let Some(&from) = names.get(at) {
            at += 1;
            for (target, expr) in &self.sets {
                if reads(expr, from, None) {
                    let name = name_of(target)?;
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
        }
        Some(names)
    }

    /// Whether a loop over this variable goes through a content: a macro's parameter, or outside of macros `content`.
    fn is_named_content(
        &self,
        name: &str,
        one: &Loop<'_>,
        is_content: &impl Fn(&Expr<'_>) -> bool,
    ) -> bool {
        if one.within.is_empty() {
            return name == "content";
        }
        let macros = one.within.iter().rev();
        let mut parameters = macros
            .filter_map(|at| self.macros.get(*at))
            .map(|it| self.content_parameters(it, is_content));
        parameters
            .find(|names| !names.is_empty())
            .is_some_and(|names| names.contains(&name))
    }

    /// The parameters of a macro that some call gives a content.
    fn content_parameters(
        &self,
        of: &Macro<'t>,
        is_content: &impl Fn(&Expr<'_>) -> bool,
    ) -> Vec<&'t str> {
        let parameters: Vec<_> = of.args.iter().map(name_of).collect();
        let mut names = Vec::new();
        for call in self.calls.iter().filter(|call| is_var(&call.expr, of.name)) {
            let mut place = 0;
            for arg in &call.args {
                match arg {
                    CallArg::Pos(expr) => {
                        let parameter = parameters.get(place).copied().flatten();
                        names.extend(parameter.filter(|_| is_content(expr)));
                        place += 1;
                    }
                    CallArg::Kwarg(name, expr) => {
                        let parameter = parameters.iter().flatten().find(|it| *it == name);
                        names.extend(parameter.filter(|_| is_content(expr)));
                    }
                    CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {}
                }
            }
        }
        names
    }

    fn statements(&mut self, all: &'t [Stmt<'t>]) {
        for one in all {
            self.statement(one);
        }
    }

    fn statement(&mut self, one: &'t Stmt<'t>) {
        match one {
            Stmt::Template(it) => self.statements(&it.children),
            Stmt::EmitExpr(it) => self.expr(&it.expr),
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
            Stmt::ForLoop(it) => {
                self.loops.push(Loop {
                    target: &it.target,
                    over: &it.iter,
                    within: self.within.clone(),
                });
                self.expr(&it.iter);
                self.exprs(&it.filter_expr);
                self.statements(&it.body);
                self.statements(&it.else_body);
            }
            Stmt::IfCond(it) => {
                self.expr(&it.expr);
                self.statements(&it.true_body);
                self.statements(&it.false_body);
            }
            Stmt::WithBlock(it) => {
                self.exprs(it.assignments.iter().map(|(_, expr)| expr));
                self.statements(&it.body);
            }
            Stmt::Set(it) => {
                self.sets.push((&it.target, &it.expr));
                self.expr(&it.expr);
            }
            Stmt::SetBlock(it) => {
                self.exprs(&it.filter);
                self.statements(&it.body);
            }
            Stmt::AutoEscape(it) => self.statements(&it.body),
            Stmt::FilterBlock(it) => {
                self.expr(&it.filter);
                self.statements(&it.body);
            }
            Stmt::Block(it) => self.statements(&it.body),
            Stmt::Import(it) => self.expr(&it.expr),
            Stmt::FromImport(it) => self.expr(&it.expr),
            Stmt::Extends(it) => self.expr(&it.name),
            Stmt::Include(it) => self.expr(&it.name),
            Stmt::Macro(it) => {
                self.within.push(self.macros.len());
                self.macros.push(it);
                self.exprs(&it.defaults);
                self.statements(&it.body);
                self.within.pop();
            }
            Stmt::CallBlock(it) => {
                self.call(&it.call);
                self.statements(&it.macro_decl.body);
            }
            Stmt::Do(it) => self.call(&it.call),
        }
    }

    fn exprs(&mut self, all: impl IntoIterator<Item = &'t Expr<'t>>) {
        for one in all {
            self.expr(one);
        }
    }

    fn expr(&mut self, one: &'t Expr<'t>) {
        match one {
            Expr::Var(it) => self.is_foreign |= FOREIGN_NAMES.contains(&it.id),
            Expr::Const(_) => {}
            Expr::Slice(it) => {
                let is_back = it.step.as_ref().is_some_and(|step| !is_forward(step));
                self.is_foreign |= is_back && (it.start.is_some() || it.stop.is_some());
                self.expr(&it.expr);
                self.exprs(it.start.iter().chain(&it.stop).chain(&it.step));
            }
            Expr::UnaryOp(it) => self.expr(&it.expr),
            Expr::BinOp(it) => {
                self.joins |= matches!(it.op, BinOpKind::Concat | BinOpKind::Rem);
                self.exprs([&it.left, &it.right]);
            }
            Expr::Compare(it) => {
                self.expr(&it.expr);
                self.exprs(it.ops.iter().map(|op| &op.expr));
            }
            Expr::IfExpr(it) => {
                self.exprs([&it.test_expr, &it.true_expr]);
                self.exprs(&it.false_expr);
            }
            Expr::Filter(it) => {
                self.joins |= matches!(it.name, "join" | "format");
                self.is_foreign |= FOREIGN_FILTERS.contains(&it.name);
                self.exprs(&it.expr);
                self.arguments(&it.args);
            }
            Expr::Test(it) => {
                self.expr(&it.expr);
                self.arguments(&it.args);
            }
            Expr::GetAttr(it) => {
                self.is_foreign |= METHODS.contains(&it.name);
                self.expr(&it.expr);
            }
            Expr::GetItem(it) => self.exprs([&it.expr, &it.subscript_expr]),
            Expr::Call(it) => self.call(it),
            Expr::List(it) => self.exprs(&it.items),
            Expr::Tuple(it) => self.exprs(&it.items),
            Expr::Map(it) => self.exprs(it.keys.iter().chain(&it.values)),
        }
    }

    fn call(&mut self, call: &'t Call<'t>) {
        self.calls.push(call);
        self.joins |=
            matches!(&call.expr, Expr::GetAttr(it) if matches!(it.name, "join" | "format"));
        match &call.expr {
            Expr::GetAttr(method) => self.expr(&method.expr),
            other => self.expr(other),
        }
        self.arguments(&call.args);
    }

    fn arguments(&mut self, all: &'t [CallArg<'t>]) {
        for one in all {
            match one {
                CallArg::Pos(expr)
                | CallArg::Kwarg(_, expr)
                | CallArg::PosSplat(expr)
                | CallArg::KwargSplat(expr) => self.expr(expr),
            }
        }
    }
}

/// Whether an expression is the variable, or its member where one is asked for, under filters, tests and slices.
fn reads(expr: &Expr<'_>, var: &str, member: Option<&str>) -> bool {
    match (expr, member) {
        (Expr::Filter(it), _) => it.expr.as_ref().is_some_and(|it| reads(it, var, member)),
        (Expr::Test(it), _) => reads(&it.expr, var, member),
        (Expr::Slice(it), _) => reads(&it.expr, var, member),
        (_, None) => is_var(expr, var),
        (Expr::GetAttr(it), Some(name)) => it.name == name && is_var(&it.expr, var),
        (Expr::GetItem(it), Some(name)) => {
            matches!(&it.subscript_expr, Expr::Const(it) if it.value.as_str() == Some(name))
                && is_var(&it.expr, var)
        }
        _ => false,
    }
}

/// Whether a slice's step is known to go forward.
fn is_forward(step: &Expr<'_>) -> bool {
    let step = step.as_const();
    step.is_some_and(|step| step.is_none() || step.as_i64().is_some_and(|step| step > 0))
}

fn is_var(expr: &Expr<'_>, name: &str) -> bool {
    name_of(expr) == Some(name)
}

fn name_of<'t>(expr: &Expr<'t>) -> Option<&'t str> {
    match expr {
        Expr::Var(it) => Some(it.id),
        _ => None,
    }
}
