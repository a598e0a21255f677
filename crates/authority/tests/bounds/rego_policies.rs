//! Policies in Rego, and what their decisions take.

use std::fmt::Write as _;
use std::sync::Arc;

use authority::rego;
use policy::authority::Rules;
use testing::Draw;

use crate::run;

/// Functions, and what they take: a text, a pattern, a format, a list, a number, a set, an object, a moment, anything.
const FUNCTIONS: [(&str, &str); 80] = [
    ("abs", "n"),
    ("array.concat", "ll"),
    ("array.reverse", "l"),
    ("array.slice", "lnn"),
    ("bits.and", "nn"),
    ("bits.negate", "n"),
    ("bits.or", "nn"),
    ("bits.rsh", "nn"),
    ("bits.xor", "nn"),
    ("ceil", "n"),
    ("concat", "tl"),
    ("contains", "tt"),
    ("count", "a"),
    ("endswith", "tt"),
    ("floor", "n"),
    ("format_int", "nn"),
    ("indexof", "tt"),
    ("indexof_n", "tt"),
    ("intersection", "S"),
    ("is_array", "a"),
    ("is_boolean", "a"),
    ("is_null", "a"),
    ("is_number", "a"),
    ("is_object", "a"),
    ("is_set", "a"),
    ("is_string", "a"),
    ("json.is_valid", "t"),
    ("json.marshal", "a"),
    ("json.unmarshal", "t"),
    ("lower", "t"),
    ("max", "l"),
    ("min", "l"),
    ("net.cidr_contains", "tt"),
    ("net.cidr_is_valid", "t"),
    ("object.filter", "ol"),
    ("object.get", "ota"),
    ("object.keys", "o"),
    ("object.remove", "ol"),
    ("object.subset", "aa"),
    ("object.union", "oo"),
    ("product", "L"),
    ("regex.find_n", "ptn"),
    ("regex.is_valid", "p"),
    ("regex.match", "pt"),
    ("regex.split", "pt"),
    ("replace", "ttt"),
    ("round", "n"),
    ("sort", "l"),
    ("split", "tt"),
    ("sprintf", "fl"),
    ("startswith", "tt"),
    ("strings.any_prefix_match", "ll"),
    ("strings.any_suffix_match", "ll"),
    ("strings.count", "tt"),
    ("strings.reverse", "t"),
    ("substring", "tnn"),
    ("sum", "L"),
    ("time.add_date", "mnnn"),
    ("time.clock", "m"),
    ("time.date", "m"),
    ("time.diff", "mm"),
    ("time.format", "m"),
    ("time.parse_duration_ns", "t"),
    ("time.parse_ns", "tt"),
    ("time.parse_rfc3339_ns", "t"),
    ("time.weekday", "m"),
    ("to_number", "t"),
    ("trim", "tt"),
    ("trim_left", "tt"),
    ("trim_prefix", "tt"),
    ("trim_right", "tt"),
    ("trim_space", "t"),
    ("trim_suffix", "tt"),
    ("type_name", "a"),
    ("union", "S"),
    ("units.parse", "t"),
    ("units.parse_bytes", "t"),
    ("upper", "t"),
    ("__builtin_sets.intersection", "ss"),
    ("__builtin_sets.union", "ss"),
];

struct Writer<'d> {
    draw: &'d mut Draw,
    /// Variables of loops, and rules above.
    names: Vec<String>,
}

impl Writer<'_> {
    fn one(&mut self, of: &[&str]) -> String {
        of[self.draw.below(of.len())].to_owned()
    }

    /// Something of a kind: most often what gives that kind, now and then anything.
    fn value(&mut self, kind: char, depth: usize) -> String {
        if !self.names.is_empty() && self.draw.below(3) == 0 {
            let at = self.draw.below(self.names.len());
            return self.names[at].clone();
        }
        if depth > 0 && self.draw.below(3) > 0 {
            return self.inner(kind, depth - 1);
        }
        match kind {
            't' => self.one(&["c.t", "c.s", "c.x", "c.d", "\"a\"", "\"\"", "input.path"]),
            'p' => self.one(&[
                "c.x",
                "c.s",
                "\"a+b\"",
                "\"a[ab]{99}c\"",
                "\"\"",
                "`\\w+\\s?$`",
            ]),
            'f' => self.one(&[
                "c.x", "\"%s\"", "\"%v%v\"", "\"%99d\"", "\"%q\"", "\"%.9f\"",
            ]),
            'l' => self.one(&["c.l", "c.n", "[c.t, c.s]", "[]", "input.backends"]),
            'L' => self.one(&["c.n", "[1, 2]"]),
            'n' => self.one(&[
                "1",
                "-1",
                "2",
                "16",
                "c.n[0]",
                "1000000",
                "0.5",
                "count(c.l)",
            ]),
            's' => self.one(&["{x | some x in c.l}", "{1}", "{x | some x in c.n}"]),
            'S' => self.one(&["{{x | some x in c.l}, {1}}", "{{x} | some x in c.l}"]),
            'o' => self.one(&[
                "c",
                "c.o",
                "{\"a\": c.t}",
                "input",
                "{x: 1 | some x in c.l}",
            ]),
            'm' => self.one(&[
                "input.time_ns",
                "[input.time_ns, \"Europe/Zurich\"]",
                "[input.time_ns, c.x, c.t]",
            ]),
            _ => self.one(&["c.t", "c.l", "c.o", "c", "null", "c.n", "[]"]),
        }
    }

    fn inner(&mut self, kind: char, depth: usize) -> String {
        let gives: &[&str] = match kind {
            't' => &[
                "concat",
                "lower",
                "upper",
                "replace",
                "sprintf",
                "json.marshal",
                "strings.reverse",
                "substring",
                "trim",
                "trim_left",
            ],
            'l' => &[
                "split",
                "array.concat",
                "sort",
                "regex.split",
                "regex.find_n",
                "indexof_n",
                "array.reverse",
            ],
            'n' | 'L' => &[
                "product",
                "sum",
                "count",
                "to_number",
                "abs",
                "indexof",
                "units.parse",
            ],
            'o' => &[
                "object.union",
                "object.filter",
                "json.unmarshal",
                "object.remove",
            ],
            's' => &[
                "__builtin_sets.union",
                "union",
                "intersection",
                "object.keys",
            ],
            _ => &[],
        };
        if kind == 'L' {
            let one = self.value('n', depth);
            return format!("[{one}, {one}]");
        }
        if !gives.is_empty() && self.draw.below(4) > 0 {
            let name = self.one(gives);
            return self.call(&name, depth);
        }
        let (a, b) = (self.value(kind, depth), self.value(kind, depth));
        match kind {
            'n' => {
                let operator = self.one(&["*", "+", "-", "/", "%"]);
                format!("({a} {operator} {b})")
            }
            's' => {
                let operator = self.one(&["|", "&", "-"]);
                format!("({a} {operator} {b})")
            }
            'l' => format!("[{a}, {b}]"),
            'o' => format!("{{\"a\": {a}, \"b\": {b}}}"),
            'm' => "input.time_ns".to_owned(),
            _ => a,
        }
    }

    fn call(&mut self, name: &str, depth: usize) -> String {
        let kinds = FUNCTIONS.iter().find(|(known, _)| *known == name);
        let (_, kinds) = kinds.expect("a function of the table");
        let args: Vec<String> = kinds.chars().map(|kind| self.value(kind, depth)).collect();
        format!("{name}({})", args.join(", "))
    }

    fn any_call(&mut self, depth: usize) -> String {
        let (name, _) = FUNCTIONS[self.draw.below(FUNCTIONS.len())];
        self.call(name, depth)
    }

    fn test(&mut self, depth: usize) -> String {
        let call = self.any_call(depth);
        match self.draw.below(4) {
            0 => format!("y := {call}; y in c.l"),
            1 => format!("y := {call}; y == c.l"),
            2 => format!("y := {call}; z := {}; y == z", self.any_call(depth)),
            _ => format!("y := {call}; y == \"none\""),
        }
    }

    fn policy(&mut self) -> String {
        let mut text = "package tollgate\nc := input.claims\n".to_owned();
        let depth = self.draw.below(3);
        match self.draw.below(5) {
            0 => writeln!(text, "allow if {{ {} }}", self.test(depth + 1)),
            1 => {
                let (a, b) = (self.value('l', 0), self.value('l', 0));
                self.names = vec!["a".to_owned(), "b".to_owned()];
                writeln!(
                    text,
                    "allow if {{ some a in {a}; some b in {b}; {} }}",
                    self.test(depth)
                )
            }
            2 => {
                let of = self.value('l', 0);
                self.names = vec!["a".to_owned()];
                let (call, (open, close)) = (
                    self.any_call(depth),
                    [("[", "]"), ("{", "}")][self.draw.below(2)],
                );
                writeln!(
                    text,
                    "allow if count({open}y | some a in {of}; y := {call}{close}) < 0"
                )
            }
            3 => {
                let kind = ['t', 'l', 'n', 'o', 's'][self.draw.below(5)];
                writeln!(text, "r0 := {}", self.value(kind, 0)).expect("a text");
                let rules = 1 + self.draw.below(20);
                for n in 0..rules {
                    self.names = vec![format!("r{n}")];
                    writeln!(text, "r{} := {}", n + 1, self.inner(kind, 1)).expect("a text");
                }
                writeln!(text, "allow if r{rules} == r{}", rules.saturating_sub(1))
            }
            _ => {
                let of = self.value('l', 0);
                self.names = vec!["x".to_owned()];
                for _ in 0..1 + self.draw.below(4) {
                    let test = self.test(depth);
                    writeln!(text, "f(x) if {{ {test} }}").expect("a text");
                }
                writeln!(text, "allow if {{ some a in {of}; f(a) }}")
            }
        }
        .expect("a text");
        text
    }
}

fn compiled(text: &str) -> Option<Arc<dyn Rules>> {
    rego::compile(&[("a.rego", text)], "data.tollgate.allow").ok()
}

#[test]
fn policies_in_rego_stay_within_their_bounds() {
    for name in rego::functions() {
        let is_known = FUNCTIONS.iter().any(|(known, _)| *known == name);
        assert!(is_known, "{name} is in no policy");
    }
    let seen = run("policies_in_rego_stay_within_their_bounds", 600, |draw| {
        let names = Vec::new();
        let text = Writer { draw, names }.policy();
        let rules = compiled(&text);
        (text, rules)
    });
    let bound = "took more than 100000 steps";
    assert!(seen.bounds.contains_key(bound), "no policy met: {bound}");
}
