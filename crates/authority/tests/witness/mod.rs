//! Expressions that nobody wrote: what they come to by the crate `cel`'s own interpreter, and that none panics.
//!
//! `TOLLGATE_AUTHORITY_CASES` says how many; how the seed is chosen says `testing`.

use std::sync::Arc;

use authority::cel::{Effect, Rule, compile};
use authority::rego;
use cel::{Context, Env, Value};
use policy::authority::{Claim, Rules};
use testing::{number_of, seed};

use crate::fixture::{CLAIMS, asked, claim, claims};
use crate::opa::Chance;

fn cases() -> u64 {
    number_of("TOLLGATE_AUTHORITY_CASES", 2_000)
}

fn allow(when: &str) -> Option<Arc<dyn Rules>> {
    let rule = Rule {
        name: "a".to_owned(),
        effect: Effect::Allow,
        when: when.to_owned(),
    };
    compile(&[rule]).ok()
}

/// The facts of [`asked`] that the interpreter is told.
fn context(env: &Arc<Env>) -> Context<'static, 'static> {
    let mut context = Context::with_env(Arc::clone(env));
    let texts =
        |of: &[&str]| Value::from(of.iter().map(|text| Value::from(*text)).collect::<Vec<_>>());
    context.add_variable_from_value("workload", "coding");
    context.add_variable_from_value("path", "/v1/chat/completions");
    context.add_variable_from_value("model", "gpt-4*");
    context.add_variable_from_value("backends", texts(&["frontier", "größe"]));
    context.add_variable_from_value(
        "tags",
        value(&claim(&serde_json::json!({"team": "search", "cost": ""}))),
    );
    let of = claim(&serde_json::from_str(CLAIMS).expect("JSON"));
    context.add_variable_from_value("claims", value(&of));
    context
}

fn value(of: &Claim) -> Value {
    match of {
        Claim::Null => Value::Null,
        Claim::Bool(of) => Value::from(*of),
        Claim::Int(of) => Value::from(*of),
        Claim::Float(of) => Value::from(*of),
        Claim::Large(of) => Value::from(*of),
        Claim::Inexact => panic!("no claim of the fixture is inexact"),
        Claim::Text(of) => Value::from(&**of),
        Claim::List(of) => Value::from(of.iter().map(value).collect::<Vec<_>>()),
        Claim::Map(of) => {
            let pairs = of.iter().map(|(name, of)| (name.to_owned(), value(of)));
            Value::from(pairs.collect::<std::collections::HashMap<String, Value>>())
        }
    }
}

/// Writes expressions, of a depth.
struct Writer<'r>(&'r mut Chance);

impl Writer<'_> {
    fn one(&mut self, of: &[&str]) -> String {
        of[self.0.below(of.len())].to_owned()
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.one(&[
                "true",
                "false",
                "claims.admin",
                "claims.none",
                "has(claims.none)",
                "has(claims.org.name)",
                "\"team\" in tags",
            ]);
        }
        let d = depth - 1;
        match self.0.below(13) {
            0 => format!("({} && {})", self.condition(d), self.condition(d)),
            1 => format!("({} || {})", self.condition(d), self.condition(d)),
            2 => format!("!({})", self.condition(d)),
            3 => format!(
                "({} ? {} : {})",
                self.condition(d),
                self.condition(d),
                self.condition(d)
            ),
            4 => format!(
                "{} {} {}",
                self.any(d),
                self.one(&["==", "!="]),
                self.any(d)
            ),
            5 => format!(
                "{} {} {}",
                self.number(d),
                self.one(&["<", "<=", ">", ">=", "==", "!="]),
                self.number(d)
            ),
            6 => format!(
                "{} {} {}",
                self.text(d),
                self.one(&["<", "<=", ">", ">=", "==", "!="]),
                self.text(d)
            ),
            7 => format!("{} in {}", self.any(d), self.list(d)),
            8 => format!(
                "{}.{}({})",
                self.text(d),
                self.one(&["startsWith", "endsWith", "contains"]),
                self.text(d)
            ),
            9 | 10 => {
                let name = format!("x{depth}");
                let body = self.condition(d).replace("claims.none", &name);
                format!(
                    "{}.{}({name}, {body})",
                    self.list(d),
                    self.one(&["all", "exists", "exists_one"])
                )
            }
            11 => format!(
                "{} in {}",
                self.text(d),
                self.one(&["tags", "claims", "claims.org"])
            ),
            _ => format!("{} == {}", self.list(d), self.list(d)),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.one(&[
                "0",
                "1",
                "-7",
                "3",
                "2.5",
                "9007199254740993",
                "9223372036854775807",
                "claims.level",
                "claims.share",
                "claims.big",
                "claims.none",
            ]);
        }
        let d = depth - 1;
        match self.0.below(4) {
            0 => format!(
                "size({})",
                if self.0.below(2) == 0 {
                    self.text(d)
                } else {
                    self.list(d)
                }
            ),
            1 => format!(
                "({} {} {})",
                self.number(d),
                self.one(&["+", "-", "*", "/", "%"]),
                self.number(d)
            ),
            2 => format!("-({})", self.number(d)),
            _ => self.number(0),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        if depth > 0 && self.0.below(3) == 0 {
            return format!("({} + {})", self.text(depth - 1), self.text(depth - 1));
        }
        self.one(&[
            "workload",
            "path",
            "model",
            "claims.sub",
            "claims.org.name",
            "tags.team",
            "tags.none",
            "\"a\"",
            "\"größe\"",
            "\"\"",
            "backends[1]",
        ])
    }

    fn list(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.one(&[
                "backends",
                "claims.groups",
                "claims.mixed",
                "claims.empty",
                "[1, 2.0, \"a\"]",
                "claims.org.units",
                "[\"a\", claims.sub]",
            ]);
        }
        let d = depth - 1;
        let name = format!("y{depth}");
        match self.0.below(4) {
            0 => format!(
                "{}.filter({name}, {})",
                self.list(d),
                self.condition(d).replace("claims.none", &name)
            ),
            1 => format!(
                "{}.map({name}, {})",
                self.list(d),
                self.any(d).replace("claims.none", &name)
            ),
            2 => format!("[{}, {}]", self.any(d), self.any(d)),
            _ => self.list(0),
        }
    }

    fn any(&mut self, depth: usize) -> String {
        match self.0.below(6) {
            0 => self.number(depth),
            1 => self.text(depth),
            2 => self.condition(depth.min(1)),
            3 => self.one(&[
                "claims.nothing",
                "null",
                "claims.mixed[3]",
                "claims[\"a.b\"]",
                "claims.mixed[9]",
                "claims.none",
            ]),
            4 => self.list(depth.min(1)),
            _ => self.one(&["claims.level", "claims.sub", "claims.admin", "claims.share"]),
        }
    }
}

#[test]
fn expressions_come_to_what_the_interpreter_says() {
    let mut chance = Chance(seed("expressions_come_to_what_the_interpreter_says"));
    let env = Arc::new(Env::stdlib());
    let context = context(&env);
    let claims = claims(CLAIMS);
    let asked = asked(&claims);
    let (mut compared, mut failing) = (0, 0);
    for _ in 0..cases() {
        let depth = 1 + chance.below(3);
        let when = Writer(&mut chance).condition(depth);
        let Some(rules) = allow(&when) else {
            continue;
        };
        let decision = rules.decide(&asked);
        let ours = decision.why.is_none().then_some(decision.allowed);
        let program = env.compile(&when).expect("what we take the library takes");
        let theirs = match program.execute(&context) {
            Ok(Value::Bool(holds)) => Some(holds),
            _ => None,
        };
        assert_eq!(
            ours,
            theirs,
            "{when}: {decision:?}, {:?}",
            program.execute(&context)
        );
        compared += 1;
        failing += usize::from(ours.is_none());
    }
    println!("{compared} compared, {failing} of them errors");
    assert!(
        compared > failing * 2 && failing > 0,
        "{compared}, {failing}"
    );
}

const TOKENS: [&str; 64] = [
    "workload",
    "claims",
    "tags",
    "backends",
    "time",
    "source",
    "user",
    ".",
    ".",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    "?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "&&",
    "||",
    "==",
    "!=",
    "<",
    ">=",
    " in ",
    "true",
    "null",
    "0",
    "1u",
    "1.5",
    "1e999",
    "-9223372036854775808",
    "99999999999999999999",
    "0x",
    "\"a\"",
    "'",
    "\"",
    "\"\"\"",
    "r\"\\\"",
    "b'a'",
    "\\",
    "\"\\u12\"",
    "\"\\xff\"",
    "\"\\777\"",
    "`a.b`",
    "//",
    "\n",
    "é",
    "\u{0}",
    "has(",
    ".all(x, ",
    ".map(",
    "matches(",
    ".getHours(\"",
    "inNetwork(\"",
    "timestamp(\"",
    "$",
    "a",
];

/// Tokens in any order, and bytes of a good expression changed.
fn soup(chance: &mut Chance) -> String {
    if chance.below(2) == 0 {
        let n = 1 + chance.below(24);
        return (0..n).map(|_| TOKENS[chance.below(TOKENS.len())]).collect();
    }
    let depth = 1 + chance.below(3);
    let mut text: Vec<char> = Writer(chance).condition(depth).chars().collect();
    for _ in 0..=chance.below(3) {
        let at = chance.below(text.len());
        text[at] = char::from(b' ' + chance.below(95) as u8);
    }
    text.into_iter().collect()
}

#[test]
fn no_text_panics_and_what_loads_decides() {
    let mut chance = Chance(seed("no_text_panics_and_what_loads_decides"));
    let claims = claims(CLAIMS);
    let mut loaded = 0;
    for _ in 0..cases() {
        let when = soup(&mut chance);
        if let Some(rules) = allow(&when) {
            drop(rules.decide(&asked(&claims)));
            loaded += 1;
        }
    }
    println!("{loaded} of them load");
    assert!(loaded > 0);
}

#[test]
fn no_policy_panics_and_what_loads_decides() {
    const POLICY: &str = include_str!("../opa/policy.rego");
    let words: Vec<&str> = POLICY.split_inclusive([' ', '\n', '.', '(', '[']).collect();
    let mut chance = Chance(seed("no_policy_panics_and_what_loads_decides"));
    let claims = claims(CLAIMS);
    let mut loaded = 0;
    for _ in 0..cases() / 10 {
        let mut words = words.clone();
        for _ in 0..=chance.below(3) {
            let (at, from) = (chance.below(words.len()), chance.below(words.len()));
            words[at] = words[from];
        }
        let text = words.concat();
        if let Ok(rules) = rego::compile(&[("a.rego", &text)], "data.tollgate.allow") {
            drop(rules.decide(&asked(&claims)));
            loaded += 1;
        }
    }
    println!("{loaded} of them load");
    assert!(loaded > 0);
}
