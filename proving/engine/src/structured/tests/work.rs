//! What takes too much work is refused soon: what is counted are the times that steps are asked for, and those when none are left.
//!
//! How long a step takes is a machine's affair, and measured by the tests of [`timing_of_work`] alone.
//! Not here: what is refused for other reasons (the parent).

use super::super::work::{ASKED, MAX_STEPS, Times};
use super::*;

/// Does the work, and holds it to its bounds: each time that is paid for takes a step at least, and when there are none
/// left no more is asked than once for each byte that was read.
fn bounded<T>(what: &str, work: impl FnOnce() -> T) -> T {
    ASKED.set(Times::default());
    let made = work();
    let asked = ASKED.get();
    let shown = format!("{asked:?} {}", &what[..what.len().min(70)]);
    println!("{shown}");
    assert!(asked.paid <= MAX_STEPS, "{shown}");
    assert!(asked.in_vain <= 100 + what.len() as u64, "{shown}");
    made
}

/// Holds each refusal to what it says, and its work to its bounds.
fn all_are_refused(cases: Vec<(Value, Vec<&str>)>) {
    for (body, says) in cases {
        let short = body.to_string();
        let why = bounded(&short, || refused(&body));
        assert!(says.iter().any(|says| why.contains(says)), "{why}");
    }
}

/// Bodies of calls, each with what its refusal may say.
fn schemas() -> Vec<(Value, Vec<&'static str>)> {
    let doubling = |keyword: &str, levels: usize| {
        let one = |i: usize| {
            let below = json!({"$ref": format!("#/$defs/r{}", i + 1)});
            (format!("r{i}"), json!({keyword: [below, below]}))
        };
        let mut all: Map<String, Value> = (0..levels).map(one).collect();
        all.insert(format!("r{levels}"), json!({"type": "integer"}));
        json!({"$ref": "#/$defs/r0", "$defs": all})
    };
    let wide = |keyword: &str| {
        let many: Map<String, Value> = (0..8000).map(|i| (format!("m{i}"), json!(true))).collect();
        let names: Vec<&String> = many.keys().collect();
        json!({"type": "object", keyword: many, "required": names})
    };
    let all = [
        doubling("allOf", 30),
        doubling("oneOf", 30),
        json!({"$defs": {"a": {"type": "object", "required": ["l", "r"], "properties":
            {"l": {"$ref": "#/$defs/a"}, "r": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"}),
        wide("properties"),
        wide("patternProperties"),
        json!({"type": "object", "minProperties": 100_000}),
        json!({"type": "array", "minItems": 1_000_000}),
        json!({"type": "array", "minItems": 100, "items": {"type": "string", "minLength": 100_000}}),
        json!({"type": "array", "minItems": 5000, "items": {"pattern": "^(a|b)*a(a|b){200}$"}}),
        json!({"type": "integer", "minimum": 1, "multipleOf": 0.000_001, "allOf":
            (0..900).map(|i| json!({"multipleOf": 0.7 + f64::from(i)})).collect::<Vec<_>>()}),
        json!({"enum": [vec![vec!["x"; 300]; 300]]}),
        json!({"allOf": [{"enum": (0..5000).collect::<Vec<_>>()}, {"enum": (5000..10_000).collect::<Vec<_>>()}]}),
        json!({"properties": (0..3000).map(|i| (format!("p{i}"), json!({"pattern": format!("{i}[\\w]{{5}}")})))
            .collect::<Map<_, _>>()}),
    ];
    let says = ["steps", "no value", "larger"];
    all.map(|schema| (json_of(&schema), says.to_vec())).to_vec()
}

fn grammars() -> Vec<(Value, Vec<&'static str>)> {
    let chain: String = (0..4_000)
        .map(|i| format!("r{i} ::= r{}\n", i + 1))
        .collect();
    let wide: String = (0..4_000).map(|i| format!("r{i} ::= \"{i}\"\n")).collect();
    let ways = vec!["(root | \"a\")"; 4000].join(" | ");
    let groups = format!("{}\"a\"{}", "(".repeat(60), ")".repeat(60));
    let all = [
        (
            "root ::= (((\"\"{10000}){10000}){10000})".to_owned(),
            "steps",
        ),
        (
            "root ::= ((\"ab\"{10000}){10000})".to_owned(),
            "longer than",
        ),
        (format!("root ::= r0\n{chain}r4000 ::= \"x\""), "never ends"),
        (format!("{wide}root ::= ({ways}){{10000}}"), "steps"),
        (
            format!("root ::= {groups} root | {groups} root"),
            "never ends",
        ),
    ];
    let body = |(grammar, says)| (json!({"guided_grammar": grammar}), vec![says]);
    all.map(body).to_vec()
}

fn expressions() -> Vec<(Value, Vec<&'static str>)> {
    let ways = |n: usize| (0..n).map(|i| format!("{i}")).collect::<Vec<_>>().join("|");
    let all = [
        ("(a{1000}){1000}".to_owned(), "states"),
        ("((a{0,1000}){0,1000}){0,1000}".to_owned(), "states"),
        ("(".repeat(200) + &")".repeat(200), "nested parentheses"),
        (ways(100_000), "longer than"),
        ("[a-z]".repeat(2000), "longer than"),
        (r"\w{5000}".to_owned(), "states"),
        (r"(?i)\pL".repeat(500), "states"),
        (r"\b\B.*".to_owned(), "no text"),
        (format!("({}){{40}}\\b\\B", ways(200)), "steps"),
    ];
    let body = |(pattern, says)| (json!({"guided_regex": pattern}), vec![says]);
    all.map(body).to_vec()
}

/// Expressions whose texts cost much to match or to split.
const COSTLY: [&str; 4] = [
    "(a|b)*a(a|b){200}",
    "a{3000}",
    "(a|b){20,}a(a|b){14}",
    r"([a-z]{1,8} ){1,3}",
];

/// How many of 128 choices an expression gives before its steps are spent.
fn choices(pattern: &str) -> usize {
    let body = json!({"guided_regex": pattern});
    let made = parse(&body).into_typed::<Asked>().unwrap().constraint();
    let constraint = made.unwrap().expect("a constraint");
    (0..128)
        .map_while(|seed| constraint.text(seed).ok())
        .count()
}

#[test]
fn schemas_that_take_too_much_work_are_refused_soon() {
    all_are_refused(schemas());
}

#[test]
fn grammars_that_take_too_much_work_are_refused_soon() {
    all_are_refused(grammars());
    // Sixty groups at each of sixty levels are more than the stack is given.
    let tower: String = (0..60)
        .map(|i| format!("r{i} ::= {}r{}{}\n", "(".repeat(60), i + 1, ")".repeat(60)))
        .collect();
    let why = refused(&json!({"guided_grammar": format!("root ::= r0\n{tower}r60 ::= \"x\"")}));
    assert!(why.contains("nest deeper"), "{why}");
}

#[test]
fn expressions_that_take_too_much_work_are_refused_soon() {
    all_are_refused(expressions());
}

#[test]
fn texts_that_cost_much_to_match_or_to_split_are_bounded() {
    for pattern in COSTLY {
        let made = bounded(pattern, || choices(pattern));
        println!("{pattern}: {made}");
    }
}

#[test]
fn what_nothing_satisfies_is_refused_and_ends() {
    let mut deep = json!({});
    for _ in 0..70 {
        deep = json!({"items": deep});
    }
    for schema in [
        json!(false),
        json!({"type": "integer", "minimum": 3, "maximum": 2}),
        json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"type": "string", "minLength": 3, "maxLength": 2}),
        json!({"type": "object", "required": ["a"], "additionalProperties": false}),
        json!({"$ref": "#"}),
        json!({"oneOf": [{}, {}]}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
        json!({"type": "array", "items": {"$ref": "#"}, "minItems": 2}),
        json!({"type": "array", "minItems": 1_000_000_000}),
        json!({"enum": ["a"], "type": "integer"}),
        deep,
    ] {
        let made = bounded(&schema.to_string(), || text(&schema, 1));
        assert!(made.is_err(), "{schema}");
    }
}

mod timing_of_work {
    //! How long all that takes.

    use std::time::{Duration, Instant};

    use super::*;

    /// A debug build takes about twenty times as long as a release build.
    const LONGEST: Duration =
        Duration::from_millis(if cfg!(debug_assertions) { 3000 } else { 150 });

    fn soon(what: &str, work: impl FnOnce()) {
        let began = Instant::now();
        work();
        let took = began.elapsed();
        println!("{took:?} {}", &what[..what.len().min(70)]);
        assert!(took < LONGEST, "{took:?}");
    }

    #[test]
    #[ignore = "timing"]
    fn timing_what_takes_too_much_work_is_refused_soon() {
        for (body, _) in [schemas(), grammars(), expressions()].concat() {
            soon(&body.to_string(), || drop(refused(&body)));
        }
    }

    #[test]
    #[ignore = "timing"]
    fn timing_texts_that_cost_much_take_no_long_time() {
        for pattern in COSTLY {
            soon(pattern, || println!("{}", choices(pattern)));
        }
    }
}
