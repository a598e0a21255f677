//! Rules in CEL, and what their decisions take.

use std::sync::Arc;

use authority::cel::{self, Effect, Rule};
use policy::authority::Rules;
use testing::Draw;

use crate::run;

/// Functions that give true or false, or a number: `T` is a text, `L` a list, `N` a number, `C` a condition, `V` the name of a
/// loop's element.
const FUNCTIONS: [(&str, &str); 29] = [
    ("has", "has(claims.t)"),
    ("size", "size(T) == size(L)"),
    ("int", "int(T) == N"),
    ("double", "double(T) == N"),
    ("string", "string(T) == T"),
    ("timestamp", "time < timestamp(\"2026-01-31T08:00:00Z\")"),
    ("matches", "T.matches(\"a[ab]{400}c\")"),
    ("matches", "T.matches(\"^(a|b)*c$\")"),
    ("matches", "matches(T, \"\\\\w+\\\\s\\\\b\")"),
    ("in_network", "in_network(T, \"10.0.0.0/8\")"),
    ("inNetwork", "source.inNetwork(\"10.0.0.0/8\")"),
    ("all", "L.all(V, C)"),
    ("exists", "L.exists(V, C)"),
    ("exists_one", "L.exists_one(V, C)"),
    ("map", "T in L.map(V, T + T)"),
    ("filter", "L == L.filter(V, C)"),
    ("startsWith", "T.startsWith(T)"),
    ("endsWith", "T.endsWith(T)"),
    ("contains", "T.contains(T)"),
    ("getHours", "time.getHours(\"Europe/Zurich\") == N"),
    ("getMinutes", "time.getMinutes(\"Asia/Kolkata\") == N"),
    ("getSeconds", "time.getSeconds() == N"),
    ("getMilliseconds", "time.getMilliseconds() == N"),
    ("getDayOfWeek", "time.getDayOfWeek() == N"),
    ("getDate", "time.getDate() == N"),
    ("getDayOfMonth", "time.getDayOfMonth() == N"),
    ("getDayOfYear", "time.getDayOfYear() == N"),
    ("getMonth", "time.getMonth() == N"),
    ("getFullYear", "time.getFullYear() == N"),
];

struct Writer<'d> {
    draw: &'d mut Draw,
    names: Vec<String>,
}

impl Writer<'_> {
    fn one(&mut self, of: &[&str]) -> String {
        of[self.draw.below(of.len())].to_owned()
    }

    fn condition(&mut self, depth: usize) -> String {
        let (_, shape) = FUNCTIONS[self.draw.below(FUNCTIONS.len())];
        let shape = match self.draw.below(8) {
            0 => "(C && C)",
            1 => "(C || C)",
            2 => "L == L",
            3 => "T < T",
            4 => "T in L",
            _ => shape,
        };
        let name = format!("v{}", self.names.len());
        let loops = shape.contains('V');
        let mut made = String::new();
        for letter in shape.chars() {
            match letter {
                'T' => made.push_str(&self.text(depth)),
                'L' => made.push_str(&self.list()),
                'N' => made.push_str(&self.one(&["0", "claims.n[0]", "2.5"])),
                'V' => {
                    made.push_str(&name);
                    self.names.push(name.clone());
                }
                'C' if depth == 0 => made.push_str("(1 == 2)"),
                'C' => made.push_str(&self.condition(depth - 1)),
                other => made.push(other),
            }
        }
        if loops {
            self.names.pop();
        }
        made
    }

    fn text(&mut self, depth: usize) -> String {
        if !self.names.is_empty() && self.draw.below(2) == 0 {
            let at = self.draw.below(self.names.len());
            return self.names[at].clone();
        }
        if depth > 0 && self.draw.below(3) == 0 {
            return format!("({} + {})", self.text(depth - 1), self.text(depth - 1));
        }
        self.one(&[
            "claims.t", "claims.s", "claims.x", "claims.d", "path", "\"a\"",
        ])
    }

    fn list(&mut self) -> String {
        self.one(&[
            "claims.l",
            "claims.n",
            "claims.o",
            "backends",
            "[claims.t, claims.s]",
        ])
    }
}

fn compiled(text: &str) -> Option<Arc<dyn Rules>> {
    let rule = Rule {
        name: "a".to_owned(),
        effect: Effect::Allow,
        when: text.to_owned(),
    };
    cel::compile(&[rule]).ok()
}

#[test]
fn rules_in_cel_stay_within_their_bounds() {
    for name in cel::functions() {
        let is_known = FUNCTIONS.iter().any(|(known, _)| *known == name);
        assert!(is_known, "{name} is in no rule");
    }
    let seen = run("rules_in_cel_stay_within_their_bounds", 1_000, |draw| {
        let depth = 1 + draw.below(4);
        let names = Vec::new();
        let text = Writer { draw, names }.condition(depth);
        let rules = compiled(&text);
        (text, rules)
    });
    let bound = "took more than 65536 steps";
    assert!(seen.bounds.contains_key(bound), "no rule met: {bound}");
}
