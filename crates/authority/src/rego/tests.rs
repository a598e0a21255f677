//! What policies answer, what is wrong with others, and what bounds them.

use std::net::IpAddr;
use std::sync::Arc;

use policy::authority::{Asked, Claim, Decision, Members, Rules};

use super::facts::Needs;
use super::{MODULE_BYTES_MAX, STEPS_MAX, compile};
use crate::Fault;
use crate::fixture::{CLAIMS, asked, claims};
use crate::stack::on_half;

const QUERY: &str = "data.tollgate.allow";

fn policy(text: &str) -> Result<Arc<dyn Rules>, Vec<Fault>> {
    let text = format!("package tollgate\n{text}");
    compile(&[("policy.rego", &text)], QUERY)
}

fn decide(text: &str) -> Decision {
    let claims = claims(CLAIMS);
    policy(text)
        .unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
        .decide(&asked(&claims))
}

#[test]
fn a_condition_holds_or_does_not() {
    let holds = [
        r#"input.workload == "coding"; input.method == "POST"; input.route == "main"; input.operation == "chat""#,
        r#"input.key == "k-1"; not input.user; input.model == "gpt-4*""#,
        r#"startswith(input.path, "/v1/"); regex.match("^/v[0-9]+/", input.path)"#,
        r#"input.tags.team == "search"; input.tags.cost == ""; count(input.tags) == 2"#,
        r#""intern" in input.claims.groups; "größe" in input.backends; count(input.backends) == 2"#,
        r#"some g in input.claims.groups; g in input.backends"#,
        r#"every b in input.backends { count(b) > 4 }"#,
        r#"input.claims.big == 9007199254740993; input.claims.big > 9007199254740992"#,
        r#"input.claims.share < 1; input.claims.level == 3.0; input.claims.nothing == null"#,
        r#"net.cidr_contains("10.0.0.0/8", input.source); not net.cidr_contains("11.0.0.0/8", input.source)"#,
        r#"time.clock([input.time_ns, "Europe/Zurich"]) == [23, 30, 15]; time.clock(input.time_ns) == [22, 30, 15]"#,
        r#"time.weekday([input.time_ns, "Asia/Kolkata"]) == "Sunday"; time.weekday(input.time_ns) == "Saturday""#,
        r#"input["claims"]["a.b"] == 1; input.claims.org.units[1] == "b""#,
        r#"x := input; x.workload == "coding"; count(x) == 12"#,
        r#"object.get(input, "user", "nobody") == "nobody""#,
    ];
    for when in holds {
        let decision = decide(&format!("allow if {{ {when} }}"));
        assert_eq!((decision.allowed, decision.why), (true, None), "{when}");
        assert_eq!(decision.by.as_deref(), Some(QUERY));
    }
}

#[test]
fn what_is_not_true_refuses() {
    let cases = [
        (
            "allow if input.user != \"mallory\"",
            Some("data.tollgate.allow is undefined"),
        ),
        (
            "allow if input.claims.none != 1",
            Some("data.tollgate.allow is undefined"),
        ),
        ("allow := false", None),
        (
            "default allow := false\nallow if input.workload == \"x\"",
            None,
        ),
        (
            "allow := 1",
            Some("data.tollgate.allow is neither true nor false"),
        ),
        (
            "allow := \"true\"",
            Some("data.tollgate.allow is neither true nor false"),
        ),
        (
            "allow := {\"a\": true}",
            Some("data.tollgate.allow is neither true nor false"),
        ),
        (
            "allow contains input.workload",
            Some("data.tollgate.allow is neither true nor false"),
        ),
        (
            "allow := input.claims.sub if true\nallow := input.workload if true",
            Some("the policy failed at policy.rego:3:1"),
        ),
        (
            "allow if not startswith(input.claims.level, \"a\")",
            Some("the policy failed at policy.rego:2:"),
        ),
        (
            "allow if data.tollgate.other.x",
            Some("data.tollgate.allow is undefined"),
        ),
        (
            "allow if to_number(input.claims.sub) == 1",
            Some("the policy failed at policy.rego:2:"),
        ),
    ];
    for (text, why) in cases {
        let decision = decide(text);
        assert_eq!((decision.allowed, &decision.by), (false, &None), "{text}");
        let said = decision.why.as_deref();
        assert_eq!(said.is_some(), why.is_some(), "{text}: {said:?}");
        assert!(
            said.unwrap_or_default()
                .starts_with(why.unwrap_or_default()),
            "{text}: {said:?}"
        );
        for value in ["ada", "coding"] {
            assert!(
                !said.unwrap_or_default().contains(value),
                "{text}: {said:?}"
            );
        }
    }
}

#[test]
fn what_contradicts_itself_refuses_even_behind_a_not() {
    let cases = [
        "allow := true if input.workload\nallow := false if input.path",
        "allow := false if input.workload\nallow := true if input.path",
        "allow := input.claims.sub if input.workload\nallow := input.workload if input.path",
        "f(x) := true if x\nf(x) := false if x\nallow if f(input.path)",
        "bad := true if input.workload\nbad := false if input.path\nallow if not bad",
        "f(x) := 1 if x\nf(x) := 2 if x\nallow if not f(1)",
        "allow if not {k: v | some k in [1]; some v in [1, 2]}",
        "allow if {k: v | some k in [1]; some v in [1, 2]}[1] == 2",
        "of[k] := v if {some k in [1]; some v in [1, 2]}\nallow if of[1] == 2",
    ];
    for text in cases {
        let decision = decide(text);
        let why = decision.why.unwrap_or_default();
        assert!(
            !decision.allowed && why.starts_with("the policy failed at policy.rego:"),
            "{text}: {why}"
        );
    }
}

#[test]
fn what_reaches_the_world_does_not_load() {
    let cases = [
        (
            "allow if http.send({\"method\": \"GET\", \"url\": \"http://[::1]/\"})",
            "http.send",
        ),
        ("allow if time.now_ns() > 0", "write input.time_ns"),
        ("allow if opa.runtime().env.HOME", "opa.runtime"),
        ("allow if rand.intn(\"a\", 2) == 1", "rand.intn"),
        ("allow if uuid.rfc4122(\"a\")", "uuid.rfc4122"),
        (
            "allow if count(numbers.range(1, input.claims.big)) > 1",
            "numbers.range is not offered",
        ),
        (
            "allow if net.cidr_expand(\"::/0\")",
            "net.cidr_expand is not offered",
        ),
        (
            "allow if bits.lsh(1, input.claims.big) > 0",
            "bits.lsh is not offered",
        ),
        (
            "allow if { print(input.claims); true }",
            "builtin function: print",
        ),
        ("allow if startwith(input.path, \"a\")", "startwith"),
        // It would copy the members around what it puts in their place, at no step.
        ("allow if input.claims.x with input.claims as {}", "with"),
        ("allow if __builtin_host_await(1, \"a\")", "host_await"),
        ("allow if input.path = ", "policy.rego"),
        ("allow if { input.path == \"a\"", "policy.rego"),
        ("allow { true }", "if"),
        ("other := true", "data.tollgate.allow"),
        ("allow if allow", "calls itself"),
        ("allow if y == 1", "y"),
        ("allow if r1\nr1 if r2\nr2 if r1", "calls itself"),
        ("allow if f(1)\nf(x) := y if y := f(x)", "calls itself"),
        ("allow if data.tollgate[input.path]", "recursion"),
    ];
    for (text, says) in cases {
        let faults = policy(text).expect_err(text);
        let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(
            said.iter().any(|said| said.contains(says)),
            "{text}: {said:?}"
        );
        assert!(
            said.iter().all(|said| !said.contains('\n')),
            "{text}: {said:?}"
        );
    }
}

#[test]
fn a_policy_is_bounded_before_it_is_read() {
    let long = format!(
        "package tollgate\nallow := true # {}",
        "x".repeat(MODULE_BYTES_MAX)
    );
    let faults =
        compile(&[("long.rego", &long), ("ok.rego", "package a")], QUERY).expect_err("too long");
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].to_string().starts_with("long.rego: is 655"),
        "{faults:?}"
    );
    assert!(compile(&[], QUERY).is_err());
    for query in [
        "",
        "allow",
        "data",
        "data.allow",
        "data.a.b.",
        "data.a[\"b\"]",
        "data.a.b == 1",
        "input.a.b",
    ] {
        let faults = compile(&[("a.rego", "package a\nb := true")], query).expect_err(query);
        assert!(
            faults[0].says.contains("such as data.tollgate.allow"),
            "{query}: {faults:?}"
        );
    }
    let many: String = (0..300)
        .map(|n| format!("r{n} if input.claims.a == {n}\nallow if r{n}\n"))
        .collect();
    let faults = policy(&many).expect_err("too many rules");
    assert!(faults[0].says.contains("at most 256"), "{faults:?}");
}

#[test]
fn decisions_end_with_their_steps() {
    let many = format!("{{\"a\": [{}0], \"n\": 1}}", "1,".repeat(1000));
    let of = claims(&many);
    let slow = [
        "allow if { some x in input.claims.a; some y in input.claims.a; x + y == 5 }",
        "allow if { every x in input.claims.a { every y in input.claims.a { x + y < 5 } } }",
        "allow if count([1 | some x in input.claims.a; some y in input.claims.a; x + y < 5]) > 1",
        "allow if not slow\nslow if { some x in input.claims.a; some y in input.claims.a; x + y == 5 }",
    ];
    for text in slow {
        let rules = policy(text).expect("usable");
        let decision = rules.decide(&asked(&of));
        let why = decision.why.expect(text);
        let most = format!("the policy took more than {STEPS_MAX} steps");
        assert_eq!((decision.allowed, &*why), (false, &*most), "{text}");
        let small = claims("{\"a\": [], \"n\": 1}");
        assert!(
            !rules
                .decide(&asked(&small))
                .why
                .is_some_and(|why| why.contains("took")),
            "{text}"
        );
    }
    let quick = policy("allow if { 0 in input.claims.a; every x in input.claims.a { x < 2 } }")
        .expect("usable");
    assert!(
        quick.decide(&asked(&of)).allowed,
        "what looks at each claim twice has room"
    );
}

/// So many texts of so many letters that differ.
fn groups(count: usize, length: usize) -> String {
    let group = |n: usize| format!("\"{}\"", letters(n, length));
    let all: Vec<String> = (0..count).map(group).collect();
    format!("[{}]", all.join(", "))
}

fn letters(mut n: usize, length: usize) -> String {
    let letter = |_| {
        let letter = char::from(b'a' + u8::try_from(n % 26).expect("below 26"));
        n /= 26;
        letter
    };
    (0..length).map(letter).collect()
}

#[test]
fn functions_take_steps_by_what_they_read_and_make() {
    let doubled: String = (0..16)
        .map(|n| format!("d{} := concat(\"\", [d{n}, d{n}])\n", n + 1))
        .collect();
    let policies = [
        (
            "bad if { some a in input.claims.l; some b in input.claims.l; a != b; regex.match(sprintf(\"^%s$\", [a]), b) }\nallow if not bad".to_owned(),
            format!("{{\"l\": {}}}", groups(900, 8)),
            "took more than 100000 steps",
        ),
        (
            "allow if { x := input.claims.x; count(replace(replace(x, \"a\", x), \"a\", x)) > 0 }".to_owned(),
            format!("{{\"x\": \"{}\"}}", "a".repeat(1200)),
            "made more than 1048576 bytes",
        ),
        (
            format!("d0 := input.claims.x\n{doubled}allow if count(d16) > 0"),
            format!("{{\"x\": \"{}\"}}", "a".repeat(1200)),
            "took more than 100000 steps",
        ),
    ];
    for (text, of, says) in policies {
        let decision = policy(&text).expect("usable").decide(&asked(&claims(&of)));
        let why = decision.why.expect("why");
        assert!(
            !decision.allowed
                && why.starts_with("the functions of the policy")
                && why.ends_with(says),
            "{text}: {why}"
        );
    }
}

/// A function that is not in this table fails the test: its work is asked before it is offered.
#[test]
fn every_function_takes_steps_by_what_its_arguments_ask_for() {
    let of = claims(&format!(
        "{{\"t\": \"{}\", \"d\": \"{}\", \"l\": {}, \"n\": {:?}, \"o\": {{{}}}, \"p\": \"a[ab]{{300}}c\"}}",
        "a".repeat(6_000),
        "9".repeat(300),
        groups(400, 8),
        (1..400).collect::<Vec<_>>(),
        (0..200)
            .map(|n| format!("\"m{n}\": 0"))
            .collect::<Vec<_>>()
            .join(", "),
    ));
    let text = 6_000 / 16;
    let list = 400 * 24 / 16;
    let time = 40;
    let table = [
        ("abs", "abs(-5)", 1),
        ("array.concat", "array.concat(c.l, c.l)", 2 * 400),
        ("array.reverse", "array.reverse(c.l)", 400),
        ("array.slice", "array.slice(c.l, 1, 399)", 400),
        ("bits.and", "bits.and(5, 3)", 1),
        ("bits.negate", "bits.negate(5)", 1),
        ("bits.or", "bits.or(5, 3)", 1),
        ("bits.rsh", "bits.rsh(5, 3)", 1),
        ("bits.xor", "bits.xor(5, 3)", 1),
        ("ceil", "ceil(0.5)", 1),
        ("concat", "concat(c.t, [\"a\", \"b\"])", 3 * text),
        ("contains", "contains(c.t, \"aab\")", text),
        ("count", "count(c.t)", text),
        ("count", "count(c.l)", 1),
        ("endswith", "endswith(c.t, c.t)", 2 * text),
        ("floor", "floor(0.5)", 1),
        ("format_int", "format_int(1000000000, 2)", 10),
        (
            "indexof",
            "indexof(c.t, concat(\"\", [c.t, \"b\"]))",
            6000 * 6000 / 128,
        ),
        ("indexof_n", "indexof_n(c.t, \"aab\")", 6000 / 4),
        (
            "intersection",
            "intersection({{x | some x in c.l}, {x | some x in c.l}})",
            2 * list,
        ),
        ("is_array", "is_array(c.l)", 1),
        ("is_boolean", "is_boolean(c.l)", 1),
        ("is_null", "is_null(c.l)", 1),
        ("is_number", "is_number(c.l)", 1),
        ("is_object", "is_object(c.l)", 1),
        ("is_set", "is_set(c.l)", 1),
        ("is_string", "is_string(c.l)", 1),
        ("json.is_valid", "json.is_valid(c.t)", 4 * text),
        ("json.marshal", "json.marshal(c.l)", 4 * list),
        ("json.unmarshal", "json.unmarshal(json.marshal(c.n))", 400),
        ("lower", "lower(c.t)", 2 * text),
        ("max", "max(c.l)", list),
        ("min", "min(c.l)", list),
        (
            "net.cidr_contains",
            "net.cidr_contains(\"10.0.0.0/8\", \"10.1.2.3\")",
            3,
        ),
        ("net.cidr_is_valid", "net.cidr_is_valid(c.t)", text),
        ("object.filter", "object.filter(c.o, c.l)", 8 * list),
        ("object.get", "object.get(c, c.t, 1)", text),
        ("object.keys", "object.keys(c.o)", 8 * 200),
        ("object.remove", "object.remove(c.o, c.l)", 8 * list),
        (
            "object.subset",
            "object.subset(c.l, [\"none\", \"nothing\"])",
            400 * list,
        ),
        ("object.union", "object.union(c.o, c.o)", 8 * 200),
        ("product", "product(c.n)", 400 * 400 / 16),
        (
            "regex.find_n",
            "regex.find_n(\"a\", c.t, 10)",
            10 * 6000 / 32,
        ),
        ("regex.find_n", "regex.find_n(c.p, c.t, 1)", 100_000),
        ("regex.is_valid", "regex.is_valid(c.p)", 600),
        ("regex.match", "regex.match(\"aab\", c.t)", 6000 / 32),
        ("regex.match", "regex.match(\"a[ab]{300}c\", c.t)", 100_000),
        ("regex.match", "regex.match(c.p, \"b\")", 600),
        (
            "regex.split",
            "regex.split(\"a\", substring(c.t, 0, 100))",
            100 * 50 / 32,
        ),
        (
            "replace",
            "replace(substring(c.t, 0, 100), \"a\", c.t)",
            100 * text,
        ),
        ("round", "round(0.5)", 1),
        ("sort", "sort(c.l)", 8 * list),
        ("split", "split(c.t, \"\")", 6000),
        (
            "sprintf",
            "sprintf(\"%999d%s\", [5, c.t])",
            10 * text + 999 / 16,
        ),
        ("startswith", "startswith(c.t, c.t)", 2 * text),
        (
            "strings.any_prefix_match",
            "strings.any_prefix_match(c.l, [\"none\", \"no\"])",
            2 * list,
        ),
        (
            "strings.any_suffix_match",
            "strings.any_suffix_match(c.l, [\"none\", \"no\"])",
            2 * list,
        ),
        (
            "strings.count",
            "strings.count(c.t, substring(c.t, 0, 3000))",
            6000 * 3000 / 128,
        ),
        ("strings.reverse", "strings.reverse(c.t)", 2 * text),
        ("substring", "substring(c.t, 1, 5999)", 2 * text),
        ("sum", "sum(c.n)", 399),
        (
            "time.add_date",
            "time.add_date(input.time_ns, 1, 1, 1)",
            time,
        ),
        (
            "time.clock",
            "time.clock([input.time_ns, \"Europe/Zurich\"])",
            time,
        ),
        ("time.date", "time.date(input.time_ns)", time),
        ("time.diff", "time.diff(input.time_ns, 1)", time),
        (
            "time.format",
            "time.format([input.time_ns, \"UTC\", c.t])",
            8 * text,
        ),
        (
            "time.parse_duration_ns",
            "time.parse_duration_ns(\"1h\")",
            time,
        ),
        (
            "time.parse_ns",
            "time.parse_ns(\"RFC3339\", \"2026-01-31T08:00:00Z\")",
            time,
        ),
        (
            "time.parse_rfc3339_ns",
            "time.parse_rfc3339_ns(\"2026-01-31T08:00:00Z\")",
            time,
        ),
        ("time.weekday", "time.weekday(input.time_ns)", time),
        ("to_number", "to_number(c.d)", 300 * 300 / 256),
        (
            "trim",
            "trim(c.t, concat(\"\", [\"b\", c.t]))",
            6000 * 6000 / 16,
        ),
        ("trim_left", "trim_left(c.t, \"abcdefgh\")", 8 * text),
        ("trim_prefix", "trim_prefix(c.t, c.t)", 2 * text),
        ("trim_right", "trim_right(c.t, \"abcdefgh\")", 8 * text),
        ("trim_space", "trim_space(c.t)", 2 * text),
        ("trim_suffix", "trim_suffix(c.t, c.t)", 2 * text),
        ("type_name", "type_name(c.l)", 1),
        (
            "union",
            "union({{x | some x in c.l}, {x | some x in c.n}})",
            2 * list,
        ),
        ("units.parse", "units.parse(\"1G\")", 1),
        (
            "units.parse_bytes",
            "units.parse_bytes(c.d)",
            300 * 300 / 256,
        ),
        ("upper", "upper(c.t)", 2 * text),
        (
            "__builtin_sets.intersection",
            "__builtin_sets.intersection({x | some x in c.l}, {x | some x in c.n})",
            8 * list,
        ),
        (
            "__builtin_sets.union",
            "__builtin_sets.union({x | some x in c.l}, {x | some x in c.n})",
            8 * list,
        ),
    ];
    for (name, call, least) in table {
        let rules = policy(&format!(
            "c := input.claims\nallow if {{ y := {call}; y != 0.1 }}"
        ));
        let rules = rules.unwrap_or_else(|faults| panic!("{call}: {faults:?}"));
        let decision = rules.decide(&asked(&of));
        let (steps, bytes) = super::meter::taken();
        let is_bounded = super::meter::spent().is_some();
        assert!(
            steps >= least || is_bounded,
            "{name}: {call}: {steps} steps, {bytes} bytes, at least {least}"
        );
        assert_eq!(
            decision.allowed,
            decision.why.is_none(),
            "{name}: {call}: {decision:?}"
        );
        assert!(
            least < 100_000 || is_bounded,
            "{name}: {call}: {steps} steps, {bytes} bytes"
        );
    }
    for name in super::functions::names() {
        assert!(
            table.iter().any(|(asked, ..)| *asked == name),
            "{name} is not asked"
        );
    }
}

#[test]
fn every_operator_takes_steps_by_what_it_looks_at() {
    let of = claims(&format!(
        "{{\"l\": {}, \"m\": {}, \"t\": \"{}\", \"n\": 4611686018427387904}}",
        groups(500, 8),
        groups(500, 8),
        "a".repeat(6_000),
    ));
    let list = 500 / 8;
    let table = [
        ("in", "\"none\" in c.l", list),
        ("in", "[c.t] in [c.l, [c.t]]", list),
        ("==", "c.l == c.m", list),
        ("!=", "c.l != c.m", list),
        ("<", "c.l <= c.m", list),
        ("==", "c.t == c.t", 6000 / 512),
        ("=", "x := c.l; x = c.m", list),
        ("=", "x = c.l; x = c.m", 2 * list),
        ("-", "{x | some x in c.l} - {x | some x in c.m}", 1000),
        ("|", "{x | some x in c.l} | {x | some x in c.m}", 1000),
        ("&", "{x | some x in c.l} & {x | some x in c.m}", 1000),
        ("{}", "{[c.t, x] | some x in c.l}", 500 * (6000 / 512)),
        ("{:}", "{[c.t, x]: 1 | some x in c.l}", 500 * (6000 / 512)),
        ("*", "c.n * c.n", 2),
        ("/", "c.n / c.n", 2),
        ("%", "c.n % c.n", 2),
    ];
    for (name, expression, least) in table {
        let rules = policy(&format!("c := input.claims\nallow if {{ {expression} }}"));
        let rules = rules.unwrap_or_else(|faults| panic!("{expression}: {faults:?}"));
        let decision = rules.decide(&asked(&of));
        let (steps, _) = super::meter::taken();
        assert!(
            steps >= least,
            "{name}: {expression}: {steps}, at least {least}"
        );
        assert!(
            super::meter::spent().is_none(),
            "{name}: {expression}: {decision:?}"
        );
    }
    let squares = |times: usize| {
        let square = |n: usize| format!("x{} := x{n} * x{n}\n", n + 1);
        let all: String = (0..times).map(square).collect();
        let text = format!("x0 := input.claims.n\n{all}allow if x{times} > 0");
        policy(&text).expect("usable").decide(&asked(&of))
    };
    assert!(
        squares(5).allowed,
        "2,000 bits of two that are half as long"
    );
    let why = squares(30).why.expect("why");
    assert!(
        why.starts_with("the policy failed at policy.rego:"),
        "{why}"
    );
    // A list of lists of lists, each of which is twice the one before, takes no room and no end to compare.
    let twice = |name: &str| -> String {
        let twice = |n: usize| format!("{name}{} := [{name}{n}, {name}{n}]\n", n + 1);
        (0..25).map(twice).collect()
    };
    let text = format!(
        "a0 := 1\n{}b0 := 1\n{}allow if a25 == b25",
        twice("a"),
        twice("b")
    );
    let decision = policy(&text).expect("usable").decide(&asked(&of));
    assert_eq!(
        decision.why.as_deref(),
        Some("the functions of the policy took more than 100000 steps")
    );
}

#[test]
fn a_policy_means_the_same_where_it_is_watched() {
    let faults = policy("__gate_read(x) := x\nallow if __gate_read(1)").expect_err("a name");
    assert!(faults[0].says.contains("__gate_"), "{faults:?}");
    let place = |text: &str| decide(text).why.expect(text);
    assert_eq!(
        place(
            "allow if { input.claims.level == input.claims.share; true }\nallow if { input.path == input.model; true }\nallow if { input.path != input.model; abs(input.path) }"
        ),
        "the policy failed at policy.rego:4:42"
    );
    let holds = [
        "input.claims.level * 2 == 3 + input.claims.level; not input.claims.level * 2 == 7",
        "(input.claims.level * 2) * (1 + 1) in [12]; input.claims.level in {3} | {4}",
        "every g in input.claims.groups { g in input.claims.groups; g == g }",
        "some i; input.claims.groups[i] == input.claims.groups[1]; i == 1",
        "[x, y] = [input.claims.level, 3]; x == y; z = input.claims.level; z == x",
        "count({g: h | some g in input.claims.groups; h := g}) == 3",
        "input.claims.groups[_] == input.claims.groups[2]",
        "1, \"b\" in input.claims.org.units; not 0, \"b\" in input.claims.org.units",
        "`a` in input.claims.org.units # in input.claims.none",
        "x := [y | some y in input.claims.groups; y != input.workload]; count(x) == 3",
        "not input.user in input.claims.groups; not input.user == input.path",
        "{1, 2} - {2} == {1}; {1} | {2} == {1, 2}; {1, 2} & {2} == {2}",
    ];
    for when in holds {
        let decision = decide(&format!("allow if {{\n{when}\n}}"));
        assert_eq!((decision.allowed, decision.why), (true, None), "{when}");
    }
}

#[test]
fn definitions_behind_one_that_met_the_bound_find_nothing_left() {
    let of = claims(&format!("{{\"l\": {}}}", groups(900, 8)));
    let loops = [
        "some a in x.l; some b in x.l; 1 > 2",
        "every a in x.l { every b in x.l { a } }; 1 > 2",
        "x.l[_]; x.l[_]; 1 > 2",
        "some i, j; x.l[i]; x.l[j]; 1 > 2",
        "a := x.l[_]; b := x.l[_]; a == b; 1 > 2",
    ];
    for each in loops {
        let definition = |n: usize| format!("f(x) if {{ {each}; x.n == {n} }}\n");
        let all: String = (0..30).map(definition).collect();
        let rules = policy(&format!("{all}allow if f(input.claims)")).expect(each);
        let decision = rules.decide(&asked(&of));
        let why = decision.why.expect(each);
        assert!(!decision.allowed, "{each}");
        assert_eq!(
            why, "the functions of the policy took more than 100000 steps",
            "{each}: no definition is left with steps of its own"
        );
    }
}

#[test]
fn definitions_that_go_on_behind_a_bound_are_few() {
    let of = |functions: usize, definitions: usize| {
        let define = |f: usize, of: usize| format!("f{f}(x) if f{}(x + {of})\n", f + 1);
        let define = |f: usize| {
            (0..definitions)
                .map(move |of| define(f, of))
                .collect::<String>()
        };
        let all: String = (0..functions).map(define).collect();
        policy(&format!("allow if f0(1)\n{all}f{functions}(x) if x == 0"))
    };
    for (functions, definitions) in [(1, 32), (5, 2), (32, 1), (0, 1)] {
        assert!(
            of(functions.min(30), definitions).is_ok(),
            "{functions} {definitions}"
        );
    }
    for (functions, definitions) in [(1, 33), (6, 2), (30, 8)] {
        let faults = of(functions, definitions).expect_err("too many");
        assert!(faults[0].says.contains("32"), "{faults:?}");
    }
}

#[test]
fn what_would_make_the_library_panic_or_make_much_of_little_fails() {
    let of = claims(
        r#"{"empty": [], "none": "", "digits": "%²d", "width": "%99999999d", "precision": "%.99999999f",
            "unit": "1é", "exponent": "1e999999999", "l": ["a"], "o": {"a": []}, "deep": {"a": ["b"]}}"#,
    );
    for call in [
        "strings.count(input.path, input.claims.none)",
        "object.subset(input.claims.l, input.claims.empty)",
        "object.subset(input.claims.deep, input.claims.o)",
        "sprintf(input.claims.digits, [1])",
        "sprintf(input.claims.width, [1])",
        "sprintf(input.claims.precision, [0.5])",
        "time.parse_duration_ns(input.claims.unit)",
        "time.parse_ns(input.claims.unit, \"2026\")",
        "time.format([input.time_ns, \"UTC\", input.claims.unit])",
        "units.parse(input.claims.exponent)",
        "units.parse_bytes(input.claims.exponent)",
        "to_number(input.claims.exponent)",
        "to_number(\"18446744073709551616\")",
        "json.unmarshal(\"[18446744073709551617]\")",
    ] {
        let rules = policy(&format!("allow if {{ y := {call}; y != 0.1 }}")).expect(call);
        let decision = rules.decide(&asked(&of));
        let why = decision.why.expect(call);
        assert!(
            !decision.allowed && why.starts_with("the policy failed at policy.rego:2:"),
            "{call}: {why}"
        );
    }
}

#[test]
fn hostile_claims_refuse() {
    let rules = policy("allow if input.claims").expect("usable");
    let ints = |n: usize| Claim::List(vec![Claim::Int(1); n]);
    let deep = (0..3000).fold(Claim::Null, |inner, _| Claim::List(vec![inner]));
    for (claim, allowed) in [
        (Claim::Null, true),
        (Claim::Float(1e300), true),
        (Claim::Int(i64::MIN), true),
        (Claim::Text(Box::from("\u{0}\u{10ffff}")), true),
        (Claim::Float(f64::NAN), false),
        (Claim::Float(f64::INFINITY), false),
        (deep, false),
        (ints(1023), true),
        (ints(1024), false),
    ] {
        let of = Members::new(vec![(Box::from("a"), claim)]);
        let decision = rules.decide(&asked(&of));
        assert_eq!(
            (decision.allowed, decision.why.is_some()),
            (allowed, !allowed)
        );
    }
}

#[test]
fn whole_numbers_above_two_to_the_63rd_are_exact_or_refuse() {
    let large = claims(r#"{"a": 18446744073709551615, "b": 18446744073709551614}"#);
    let inexact = claims(r#"{"a": 18446744073709551616, "b": 18446744073709551617}"#);
    for (when, allowed) in [
        ("input.claims.a == input.claims.b", false),
        ("input.claims.a != input.claims.b", true),
        ("input.claims.a == 18446744073709551615", true),
        ("input.claims.a == 18446744073709551614", false),
        ("input.claims.a - input.claims.b == 1", true),
    ] {
        let rules = policy(&format!("allow if {when}")).expect(when);
        assert_eq!(rules.decide(&asked(&large)).allowed, allowed, "{when}");
        let decision = rules.decide(&asked(&inexact));
        assert_eq!(
            (decision.allowed, decision.why.as_deref()),
            (
                false,
                Some("a claim is a number of more digits than are told apart")
            ),
            "{when}"
        );
    }
}

#[test]
fn an_ipv4_address_in_ipv6s_clothes_is_one_and_time_has_an_end() {
    let none = Members::NONE;
    let source: IpAddr = "::ffff:10.1.2.3".parse().expect("an address");
    let mapped = Asked {
        source,
        ..asked(&none)
    };
    let rules = policy("allow if input.source == \"10.1.2.3\"").expect("usable");
    assert!(rules.decide(&mapped).allowed);
    let late = Asked {
        unix_ms: u64::MAX,
        ..asked(&none)
    };
    let rules = policy("allow if time.clock(input.time_ns)[0] >= 0").expect("usable");
    assert!(!rules.decide(&late).allowed);
    assert!(rules.decide(&asked(&none)).allowed);
}

#[test]
fn only_what_a_policy_can_look_at_is_made() {
    let all = Needs::of(["allow if input == 1"]);
    for (text, is_all) in [
        ("allow if input.path == input.model", false),
        ("allow if input[\"claims\"].a", false),
        ("allow if data.input_x.y", false),
        ("allow if my_input.path", false),
        ("allow if input[x]", true),
        ("allow if input [\"claims\"]", true),
        ("allow if input[\"cl\\u0061ims\"]", true),
        ("import input as i", true),
        ("allow if input.other", true),
        ("allow if object.get(input, \"user\", 1)", true),
    ] {
        assert_eq!(Needs::of([text]) == all, is_all, "{text}");
    }
    assert_ne!(
        Needs::of(["allow if input.path"]),
        Needs::of(["allow if input.model"])
    );
}

#[test]
fn threads_decide_alike_and_old_policies_stay_right() {
    let rules: Vec<Arc<dyn Rules>> = (0..6)
        .map(|n| policy(&format!("allow if input.claims.n == {n}")).expect("usable"))
        .collect();
    let work = |rules: &[Arc<dyn Rules>]| {
        for round in 0..30 {
            for (n, rules) in rules.iter().enumerate() {
                let of = claims(&format!("{{\"n\": {}}}", round % 6));
                assert_eq!(rules.decide(&asked(&of)).allowed, n == round % 6);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| work(&rules));
        }
    });
}

/// The deepest shapes that load.
#[test]
fn the_deepest_policies_fit_the_stack_of_their_thread() {
    let nest = |open: &str, inner: &str, close: &str, n: usize| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    type Shape = Box<dyn Fn(usize) -> String + Send>;
    let shapes: Vec<Shape> = vec![
        Box::new(move |n| format!("allow if {} == 1", nest("[", "1", "]", n))),
        Box::new(move |n| format!("allow if {} == 1", nest("(", "1", ")", n))),
        Box::new(move |n| format!("allow if {} == 1", nest("{\"a\":", "1", "}", n))),
        Box::new(move |n| format!("allow if input.claims{} == 1", ".a".repeat(n))),
        Box::new(move |n| format!("allow if input.claims{} == 1", "[0]".repeat(n))),
        Box::new(move |n| format!("allow if 1{} == 1", "\n+ 1".repeat(n))),
        Box::new(move |n| format!("allow if {}1 == 1", "-".repeat(n))),
        Box::new(move |n| format!("allow if {}true", "not ".repeat(n))),
        Box::new(move |n| format!("allow if {} > 1", nest("count([", "1", "])", n))),
        Box::new(move |n| format!("allow if {}", nest("every x in [1] {", "true", "}", n))),
        Box::new(move |n| {
            format!(
                "allow if {{ input.a }}{}",
                "\nelse := false if { input.b }".repeat(n)
            )
        }),
        Box::new(move |n| {
            let rule = |i: usize| format!("r{i} if r{}\n", i + 1);
            format!(
                "allow if r0\n{}r{n} := true",
                (0..n).map(rule).collect::<String>()
            )
        }),
        Box::new(move |n| {
            let rule = |i: usize| format!("f{i}(x) := f{}(x)\n", i + 1);
            format!(
                "allow if f0(1)\n{}f{n}(x) := true",
                (0..n).map(rule).collect::<String>()
            )
        }),
    ];
    let more: Vec<Shape> = vec![
        Box::new(move |n| format!("allow if 1{} == 1", " +\n1".repeat(n))),
        Box::new(move |n| format!("allow if 1{}", "\nin [1]".repeat(n))),
        Box::new(move |n| {
            format!(
                "x := input.claims.level\nallow if x{} == 1",
                " *\nx".repeat(n)
            )
        }),
        Box::new(move |n| format!("x := {{1}}\nallow if x{} == x", " |\nx - x".repeat(n))),
        Box::new(move |n| {
            let inner = nest("x in [", "x == x", "]", n);
            format!("x := input.claims.level\nallow if {inner}")
        }),
        Box::new(move |n| {
            let inner = nest("{y | some y in x | ", "x", "}", n);
            format!("x := {{1}}\nallow if {inner} == x")
        }),
        Box::new(move |n| format!("allow if x{} := 1", "\n:= x".repeat(n))),
        Box::new(move |n| format!("allow if [1 |{} true]", " some\nx in [1];".repeat(n))),
        Box::new(move |n| format!("allow if true{}", "\nwith input.a as 1".repeat(n))),
        Box::new(move |n| format!("allow if 1{} == 1", "# (\n+ `(` # \"\n + 1".repeat(n))),
    ];
    let work = move || {
        let of = claims(CLAIMS);
        for shape in shapes.into_iter().chain(more) {
            for n in [1, 5, 10, 20, 31, 32, 33, 64, 128, 200, 250, 1000, 2000] {
                if let Ok(rules) = policy(&shape(n)) {
                    drop(rules.decide(&asked(&of)));
                }
            }
        }
    };
    on_half(work);
}
