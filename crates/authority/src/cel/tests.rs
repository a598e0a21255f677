//! What conditions come to, what is wrong with others, and what bounds them.

use std::sync::Arc;

use policy::authority::{Asked, Claim, Decision, Members, Rules};

use super::{EXPRESSION_BYTES_MAX, Effect, RULES_MAX, Rule, compile, condition};
use crate::Fault;
use crate::fixture::{CLAIMS, asked, claims};
use crate::stack::on_half;

fn rule(effect: Effect, when: &str) -> Rule {
    let name = format!("{effect:?}: {when}");
    let when = when.to_owned();
    Rule { name, effect, when }
}

fn rules(of: &[(Effect, &str)]) -> Result<Arc<dyn Rules>, Vec<Fault>> {
    let of: Vec<Rule> = of
        .iter()
        .map(|(effect, when)| rule(*effect, when))
        .collect();
    compile(&of)
}

fn decide(of: &[(Effect, &str)]) -> Decision {
    let claims = claims(CLAIMS);
    rules(of).expect("usable rules").decide(&asked(&claims))
}

use Effect::{Allow, Deny};

#[test]
fn a_condition_holds_or_does_not() {
    let holds = [
        r#"workload == "coding""#,
        r#"workload != "chat" && method == "POST" && route == "main" && operation == "chat""#,
        r#"path.startsWith("/v1/") && path.endsWith("completions") && path.contains("chat")"#,
        r#"key == "k-1" && key != null && user == null && null == user && model != null"#,
        r#"model == "gpt-4*" && model in ["gpt-4*", "b"] && !(model in [])"#,
        r#"tags.team == "search" && tags["team"] == "search" && "cost" in tags && has(tags.cost)"#,
        r#"!has(tags.other) && !("Team" in tags) && tags.cost == "" && size(tags) == 2"#,
        r#""intern" in claims.groups && "größe" in backends && "größe" in claims.groups"#,
        r#"claims.groups.exists(g, g in backends) && !claims.groups.all(g, g in backends)"#,
        r#"backends.exists_one(b, b.startsWith("front")) && backends.filter(b, b == "x").size() == 0"#,
        r#"backends.map(b, b + "!") == ["frontier!", "größe!"] && backends[1] == "größe""#,
        r#"backends.map(b, b.startsWith("f"), size(b)) == [8]"#,
        r#"claims.mixed.exists(m, m == 1.0) && claims.mixed == [1, "a", null, [2]] && claims.mixed[3][0] == 2"#,
        r#"claims.level > 2 && claims.level <= 3.0 && claims.share < 1 && claims.level != "3""#,
        r#"claims.big == 9007199254740993 && claims.big > 9007199254740992.0 && claims.big != 9007199254740992.0"#,
        "claims.admin && claims.nothing == null && claims.nothing != 0",
        r#"claims.org.units.size() == 2 && claims.org["name"] == "acme" && claims["a.b"] == 1"#,
        r#"claims.exists(c, c == "sub") && claims.all(c, size(c) > 0) && "org" in claims"#,
        r#"claims.sub.matches("^[a-z]+$") && matches(claims.sub, "d") && !claims.sub.matches("^d")"#,
        r#"source.inNetwork("10.0.0.0/8") && in_network(source, "10.1.2.3") && !source.inNetwork("11.0.0.0/8")"#,
        r#"!source.inNetwork("::/0") && in_network(claims.ip, "192.168.0.0/16") && string(source) == "10.1.2.3""#,
        r#"time.getHours() == 22 && time.getMinutes() == 30 && time.getSeconds() == 15 && time.getMilliseconds() == 250"#,
        r#"time.getHours("Europe/Zurich") == 23 && time.getHours("Asia/Kolkata") == 4 && time.getHours("-03:30") == 19"#,
        r#"time.getDayOfWeek() == 6 && time.getDayOfWeek("Asia/Kolkata") == 0 && time.getDate() == 28"#,
        r#"time.getMonth() == 2 && time.getDayOfMonth() == 27 && time.getDayOfYear() == 86 && time.getFullYear() == 2026"#,
        r#"time > timestamp("2026-03-28T22:30:15Z") && time <= timestamp("2026-03-28T23:30:15.250+01:00")"#,
        "int(time) == 1774737015 && int(time) - claims.level > 1774737000",
        r#"1 + 2 * 3 == 7 && 7 / 2 == 3 && -7 % 3 == -1 && 7.0 / 2.0 == 3.5 && "a" + "b" == "ab""#,
        r#"int("12") == 12 && double(3) == 3.0 && string(5) == "5" && int(3.9) == 3 && int(-3.9) == -3"#,
        r#"size("größe") == 5 && "a" < "b" && "Z" < "a" && (claims.level == 3 ? claims.admin : claims.none)"#,
        // What decides decides, whatever happens on the other side.
        "claims.none || true",
        "true || claims.none",
        "!(claims.none && false)",
        "claims.mixed.exists(m, m > 0)",
        "!claims.mixed.all(m, m > 1)",
        "// a comment with \"quotes\n true",
        "'''it's'''.size() == 4 && r'\\d' == \"\\\\d\" && \"\\u00e9\" == 'é'",
    ];
    for when in holds {
        let decision = decide(&[(Allow, when)]);
        assert_eq!((decision.allowed, decision.why), (true, None), "{when}");
        let inverse = format!("!({when}\n)");
        let decision = decide(&[(Allow, &inverse)]);
        assert_eq!((decision.allowed, decision.why), (false, None), "{inverse}");
    }
}

#[test]
fn what_fails_does_not_allow_and_refuses_where_it_denies() {
    let failing = [
        (
            r#"user == "mallory""#,
            "the call has no user: ask user != null first",
        ),
        (r#"user != "mallory""#, "the call has no user"),
        (r#"!(user in ["mallory"])"#, "the call has no user"),
        (r#"!user.startsWith("m")"#, "the call has no user"),
        ("user == claims.nothing", "the call has no user"),
        (
            "claims.none",
            "there is no claims.none: ask has(claims.none) first",
        ),
        (r#"tags["none"] == """#, r#"there is no tags["none"]"#),
        (
            "claims.sub.none == 1",
            "a map is wanted, and this is a text",
        ),
        (
            "has(claims.sub.none)",
            "a map is wanted, and this is a text",
        ),
        ("claims.sub", "true or false is wanted, and this is a text"),
        (
            "claims.level && true",
            "true or false is wanted, and this is a whole number",
        ),
        (
            "claims.sub > 1",
            "a text and a whole number cannot be ordered",
        ),
        (
            "claims.org == claims.org",
            "a map and a map cannot be compared",
        ),
        ("claims.groups[3] == 1", "nothing stands under that index"),
        ("claims.groups[-1] == 1", "nothing stands under that index"),
        (
            "claims.groups[claims.sub] == 1",
            "a list and a text cannot be an index",
        ),
        ("claims.level / 0 == 1", "a division by zero"),
        ("claims.big * claims.big > 0", "a number grows too large"),
        (
            r#"int(claims.sub) == 1"#,
            "that does not become a whole number",
        ),
        (
            r#"in_network(claims.sub, "10.0.0.0/8")"#,
            "that does not become an address",
        ),
        (
            "claims.level.startsWith(\"3\")",
            "a text is wanted, and this is a whole number",
        ),
        (
            "claims.mixed.all(m, m == \"a\" || m == null || size(m) > 0)",
            "a text, a list or a map",
        ),
        ("claims.mixed.exists_one(m, m > 0)", "cannot be ordered"),
        ("claims.none && true", "there is no claims.none"),
        ("claims.none || false", "there is no claims.none"),
        ("(claims.none ? true : true)", "there is no claims.none"),
        ("claims.sub in claims.level", "a list or a map is wanted"),
    ];
    for (when, why) in failing {
        let allowed = decide(&[(Allow, when)]);
        assert_eq!((allowed.allowed, allowed.by), (false, None), "{when}");
        let said = allowed.why.expect(when);
        assert!(
            said.contains(why) && said.starts_with(&format!("Allow: {when}")),
            "{when}: {said}"
        );
        let denied = decide(&[(Allow, "true"), (Deny, when)]);
        assert!(!denied.allowed, "{when}");
        assert_eq!(denied.by.as_deref(), Some(&*format!("Deny: {when}")));
        assert!(denied.why.expect(when).contains(why), "{when}");
    }
}

#[test]
fn deny_goes_before_allow_and_nothing_before_both() {
    type Case<'c> = (&'c [(Effect, &'c str)], bool, Option<&'c str>);
    let cases: [Case<'_>; 7] = [
        (&[], false, None),
        (&[(Allow, "false")], false, None),
        (&[(Deny, "false")], false, None),
        (
            &[(Allow, "true"), (Deny, "false")],
            true,
            Some("Allow: true"),
        ),
        (
            &[(Allow, "true"), (Deny, "true")],
            false,
            Some("Deny: true"),
        ),
        (
            &[(Deny, "true"), (Allow, "true")],
            false,
            Some("Deny: true"),
        ),
        (
            &[(Allow, "claims.none"), (Allow, "true")],
            true,
            Some("Allow: true"),
        ),
    ];
    for (of, allowed, by) in cases {
        let decision = decide(of);
        assert_eq!(
            (decision.allowed, decision.by.as_deref()),
            (allowed, by),
            "{of:?}"
        );
        assert_eq!(decision.why, None, "{of:?}");
    }
}

#[test]
fn what_cannot_be_right_is_a_fault() {
    let faults = [
        ("", "is empty; write true to mean always"),
        ("workload ==", "line 1, column"),
        (
            "workload = \"a\"",
            "line 1, column 10: = is no operator here; == compares",
        ),
        (
            "wrkload == \"a\"",
            "line 1, column 1: there is no variable wrkload; did you mean workload?",
        ),
        (
            "true &&\n  ip == \"a\"",
            "line 2, column 3: there is no variable ip; did you mean source?",
        ),
        (
            "groups.exists(g, g == \"a\")",
            "did you mean claims.groups?",
        ),
        (
            "xyzzy",
            "there is no variable xyzzy; there are workload, key, user",
        ),
        ("backends.exists(b, c == \"a\")", "there is no variable c"),
        (
            "backends.exists(b, true) && b == \"a\"",
            "there is no variable b",
        ),
        (
            "path.startwith(\"/\")",
            "there is no method startwith; did you mean startsWith?",
        ),
        (
            "path.lowerAscii() == \"a\"",
            "there is no method lowerAscii; there are",
        ),
        ("lenght(path) == 1", "there is no function lenght"),
        (
            "startsWith(path, \"/\")",
            "startsWith is asked of a value: x.startsWith(…)",
        ),
        (
            "path.in_network(\"::/0\")",
            "in_network is no method; write in_network(…)",
        ),
        ("size(path, path) == 1", "size does not take 2 arguments"),
        ("path.matches()", "matches does not take 0 arguments"),
        ("path.startsWith(\"a\", \"b\")", "startsWith takes one text"),
        (
            "path",
            "line 1, column 1: this is a text, and true or false is wanted",
        ),
        (
            "size(backends)",
            "this is a whole number, and true or false is wanted",
        ),
        ("claims", "this is a map"),
        ("workload == 1", "a text and a whole number are never equal"),
        ("workload == null", "workload is never null"),
        ("null != time", "time is never null"),
        (
            "has(user)",
            "has asks for a member, as in has(claims.x); write user != null",
        ),
        ("has(claims[\"a\"])", "has asks for a member"),
        (
            "source == \"10.0.0.1\"",
            "an address is no text; write source.inNetwork(",
        ),
        ("time > 5", "write timestamp("),
        ("time == \"2026-01-01T00:00:00Z\"", "write timestamp("),
        (
            "\"a\" in \"abc\"",
            "a text is no list; write text.contains(part)",
        ),
        ("1 in backends", "a whole number and a text are never equal"),
        ("workload in method.size()", "a whole number is no list"),
        ("path.size == 1", "a text has no members, and so no size"),
        (
            "backends[\"a\"] == \"a\"",
            "a list of texts has nothing under a text",
        ),
        (
            "tags == claims",
            "maps are not compared; compare their members",
        ),
        ("{\"a\": 1} == claims", "a rule writes no maps"),
        (
            "1 + 1.5 == 2.5",
            "whole numbers and others mix after double(…) or int(…)",
        ),
        ("path + 1 == \"a\"", "a text and a whole number have no sum"),
        ("-path == \"a\"", "a text has no negative"),
        ("true < false", "true or false has no order"),
        ("1u == 1", "write the number without its u"),
        ("b\"a\" == b\"a\"", "write the text without its b"),
        (
            "path.matches(workload)",
            "a regular expression is written as a text between quotes",
        ),
        (
            "path.matches(\"(a\")",
            "no regular expression: unclosed group",
        ),
        (
            "path.matches(\"(\\\\w{999}){99}\")",
            "takes more than 262144 bytes when compiled",
        ),
        (
            "path.matches(\"(a)\\\\1\")",
            "backreferences are not supported",
        ),
        (
            "source.inNetwork(\"10.0.0.1/8\")",
            "has bits set behind its length",
        ),
        ("source.inNetwork(\"10.0.0.0/33\")", "is no network"),
        ("source.inNetwork(\"10.0.0.0/08\")", "is no network"),
        (
            "source.inNetwork(\"example.org\")",
            "is no network; write 10.0.0.0/8",
        ),
        (
            "source.inNetwork(\"::ffff:10.0.0.0/104\")",
            "in IPv6's clothes",
        ),
        (
            "time.getHours(\"Europe/Zürich\") == 1",
            "is no time zone; did you mean Europe/Zurich?",
        ),
        ("time.getHours(\"+25:00\") == 1", "is no time zone"),
        (
            "time.getHours(\"CET\", \"CET\") == 1",
            "one time zone at most",
        ),
        (
            "workload.getHours() == 1",
            "this is a text: a time is wanted",
        ),
        (
            "timestamp(\"yesterday\") < time",
            "is no time; write it as 2026-01-31T08:00:00Z",
        ),
        (
            "timestamp(\"2026-01-01T00:00:00.0001Z\") < time",
            "finer than a millisecond",
        ),
        ("backends.exists(workload, true)", "workload is taken"),
        ("backends.exists(b, backends.exists(b, true))", "b is taken"),
        (
            "backends.exists(b.c, true)",
            "the first argument of a loop is a name",
        ),
        ("backends.exists(b)", "a loop takes a name and a condition"),
        ("path.exists(b, true)", "a text is no list"),
        (
            "backends.exists(b, b > 1)",
            "a text and a whole number are never equal",
        ),
        ("claims.?a == 1", "unsupported syntax"),
    ];
    for (when, says) in faults {
        let faults = rules(&[(Allow, when)]).expect_err(when);
        let [Fault { rule, says: said }] = faults.as_slice() else {
            panic!("{when}: {faults:?}");
        };
        assert_eq!(rule, &format!("Allow: {when}"));
        assert!(said.contains(says), "{when}: {said}");
        assert!(!said.contains('\n'), "{when}: {said}");
    }
}

#[test]
fn every_rule_that_is_not_usable_is_told() {
    let of = [(Allow, "wrkload"), (Allow, "true"), (Deny, "1")];
    assert_eq!(rules(&of).expect_err("two faults").len(), 2);
    let twice = [(Allow, "true"), (Allow, "true")];
    let faults = rules(&twice).expect_err("one name");
    assert_eq!(
        faults.first().map(|f| f.says.as_str()),
        Some("another rule has this name")
    );
    let named = |n: usize| Rule {
        name: n.to_string(),
        effect: Allow,
        when: "true".to_owned(),
    };
    let most: Vec<Rule> = (0..RULES_MAX).map(named).collect();
    assert!(compile(&most).is_ok());
    let more: Vec<Rule> = (0..=RULES_MAX).map(named).collect();
    let says = compile(&more).expect_err("one too many")[0].says.clone();
    assert_eq!(says, "is rule number 257; there can be 256");
}

#[test]
fn an_ipv4_address_in_ipv6s_clothes_is_one() {
    let none = Members::NONE;
    let mapped = Asked {
        source: "::ffff:10.1.2.3".parse().expect("an address"),
        ..asked(&none)
    };
    for (when, allowed) in [("10.0.0.0/8", true), ("::/0", false)] {
        let of = rules(&[(Allow, &format!("source.inNetwork(\"{when}\")"))]).expect("a rule");
        assert_eq!(of.decide(&mapped).allowed, allowed, "{when}");
    }
}

#[test]
fn a_time_outside_of_the_calendar_is_no_time() {
    let none = Members::NONE;
    let of = rules(&[(
        Allow,
        "time.getFullYear(\"Asia/Tokyo\") > 0 || time.getHours() >= 0",
    )])
    .expect("a rule");
    for (unix_ms, allowed) in [
        (0, true),
        (253_402_300_799_999, true),
        (253_402_300_800_000, false),
        (u64::MAX, false),
    ] {
        assert_eq!(
            of.decide(&Asked {
                unix_ms,
                ..asked(&none)
            })
            .allowed,
            allowed,
            "{unix_ms}"
        );
    }
}

#[test]
fn loops_over_claims_end_with_their_steps() {
    let many = format!(
        "{{\"a\": [{}0], \"t\": \"{}\"}}",
        "0,".repeat(8000),
        "x".repeat(16 << 10)
    );
    let claims = claims(&many);
    let slow = [
        "claims.a.all(x, claims.a.all(y, claims.a.all(z, x == y && y == z)))",
        "claims.a.map(x, claims.a.map(y, claims.a)).size() > 0",
        "claims.a.all(x, claims.a == claims.a)",
        "claims.a.all(x, claims.t.matches(\"y|(x+x+)+y\") == false)",
        "claims.a.all(x, (claims.t + claims.t).contains(\"xy\") == false)",
        "[claims.t + claims.t].all(t, claims.a.all(x, t == t))",
        "claims.a.all(x, !(1 in claims.a)) || true",
    ];
    for when in slow {
        let of = rules(&[(Allow, when)]).expect("a rule");
        let decision = of.decide(&asked(&claims));
        let why = decision.why.expect(when);
        assert!(
            !decision.allowed && why.ends_with("took more than 65536 steps"),
            "{when}: {why}"
        );
    }
    let quick = rules(&[(Allow, "claims.a.all(x, x == 0) && !(1 in claims.a)")]).expect("a rule");
    assert!(
        quick.decide(&asked(&claims)).allowed,
        "what looks at each claim twice has room"
    );
}

#[test]
fn whole_numbers_above_two_to_the_63rd_are_exact_or_the_rule_fails() {
    let of = claims(
        r#"{"a": 18446744073709551615, "b": 18446744073709551614, "c": 9223372036854775807,
            "d": 18446744073709551616, "e": 18446744073709551617, "f": -9223372036854775809, "s": 0.5}"#,
    );
    let decide = |when: &str| rules(&[(Allow, when)]).expect(when).decide(&asked(&of));
    for when in [
        "claims.a != claims.b && claims.a == claims.a && claims.b < claims.a",
        "claims.c < claims.b && claims.b > claims.c && claims.c != claims.b",
        "claims.a > 18446744073709549568.0 && claims.a < 18446744073709551616.0 && claims.s < claims.a",
        "claims.a in [claims.b, claims.a] && string(claims.a) == \"18446744073709551615\"",
    ] {
        let decision = decide(when);
        assert_eq!((decision.allowed, decision.why), (true, None), "{when}");
    }
    for when in [
        "claims.d == claims.e",
        "claims.d != claims.e",
        "claims.d == claims.d",
        "!(claims.d in [claims.e])",
        "[claims.d] == [claims.e]",
        "claims.f < 0",
        "claims.d > 0 || claims.d <= 0",
        "claims.d == 18446744073709551616.0",
        "claims.a + 1 > 0",
        "claims.a - claims.b == 1",
        "-claims.a < 0",
        "int(claims.a) > 0",
        "double(claims.d) > 0.0",
        "string(claims.d) != \"\"",
    ] {
        let decision = decide(when);
        assert!(!decision.allowed && decision.why.is_some(), "{when}");
        let denied = rules(&[(Allow, "true"), (Deny, when)]).expect(when);
        assert!(!denied.decide(&asked(&of)).allowed, "{when}");
    }
}

/// So many rules of one condition.
fn repeated(effect: Effect, when: &str, times: usize) -> Vec<Rule> {
    let named = |n: usize| Rule {
        name: format!("rule-{n}"),
        ..rule(effect, when)
    };
    (0..times).map(named).collect()
}

/// Steps that a condition takes, and whether it met its bound.
fn steps(when: &str, claims: &Members) -> (u32, bool) {
    let tree = super::syntax::parse(when).expect(when);
    let node = super::check::condition(&tree).expect(when);
    let asked = asked(claims);
    let mut evaluation = super::Evaluation::new(&asked, super::STEPS_MAX);
    let is_bounded = evaluation.holds(&node) == Err(super::Trouble::Steps);
    (super::STEPS_MAX - evaluation.steps_left(), is_bounded)
}

#[test]
fn a_regular_expression_takes_steps_by_its_text_times_its_compiled_size() {
    let when = "claims.x.matches(\"a[ab]{2600}[c-z]\")";
    let letters = |n: usize| claims(&format!("{{\"x\": \"{}\"}}", "a".repeat(n)));
    assert!(
        steps(when, &letters(9000)).1,
        "9,000 letters by 2,600 states"
    );
    let (few, is_bounded) = steps(when, &letters(10));
    assert!(few > 10 * 2600 / 4 && !is_bounded, "{few}");
    // What fits a table is a look for each byte, whatever it repeats.
    let (usual, _) = steps("claims.x.matches(\"^a+(b|c)[0-9]{1,3}$\")", &letters(9000));
    assert!((9000 / 16..9000 / 8).contains(&usual), "{usual}");

    let of = compile(&repeated(Allow, when, 100)).expect("rules");
    let decision = of.decide(&asked(&letters(9000)));
    let why = decision.why.expect("why");
    assert!(!decision.allowed && why.ends_with("65536 steps"), "{why}");
}

#[test]
fn the_rules_of_a_decision_take_so_many_steps_together() {
    let many = claims(&format!("{{\"a\": [{}0]}}", "0,".repeat(8000)));
    let slow = "!claims.a.all(x, x == 0)";
    let (one, is_bounded) = steps(slow, &many);
    assert!(!is_bounded && one * 100 > super::ALL_STEPS_MAX, "{one}");
    let decide = |times: usize| {
        let of = [repeated(Deny, slow, times), vec![rule(Allow, "true")]].concat();
        compile(&of).expect("rules").decide(&asked(&many))
    };
    let decision = decide(100);
    assert_eq!(
        (decision.allowed, decision.why.as_deref()),
        (
            false,
            Some("the rules together took more than 524288 steps")
        )
    );
    assert!(decide(8).allowed);
}

/// A function that is not in this table fails the test: its work is asked before it is offered.
#[test]
fn every_function_takes_steps_by_what_it_reads() {
    let of = claims(&format!(
        "{{\"t\": \"{}\", \"a\": [{}1], \"m\": {{{}}}, \"n\": 1}}",
        "9".repeat(16_000),
        "0,".repeat(1000),
        (0..1000)
            .map(|n| format!("\"m{n}\": 0"))
            .collect::<Vec<_>>()
            .join(", ")
    ));
    let text = 16_000 / 16;
    let zone = 8;
    let table = [
        ("has", "has(claims.m.m500)", 5),
        ("size", "size(claims.t) > 0", text),
        ("size", "claims.t.size() > 0", text),
        ("int", "int(claims.t) > 0", text),
        ("double", "double(claims.t) > 0.0", text),
        ("string", "string(claims.t) == \"\"", text),
        ("timestamp", "time > timestamp(\"2026-01-31T08:00:00Z\")", 1),
        ("matches", "matches(claims.t, \"^[0-9]*a\")", text),
        ("matches", "claims.t.matches(\"^[0-9]*a\")", text),
        ("matches", "claims.t.matches(\"9[0-9]{2000}a\")", 65_536),
        ("in_network", "in_network(claims.t, \"10.0.0.0/8\")", 1),
        ("inNetwork", "claims.t.inNetwork(\"10.0.0.0/8\")", 1),
        ("all", "claims.a.all(x, x < 2)", 4000),
        ("exists", "claims.a.exists(x, x == 2)", 4000),
        ("exists_one", "claims.a.exists_one(x, x == 2)", 4000),
        ("map", "claims.a.map(x, x) == []", 2000),
        ("filter", "claims.m.filter(x, claims.m[x] == 1) == []", 8000),
        ("startsWith", "claims.t.startsWith(claims.t)", text),
        ("endsWith", "claims.t.endsWith(claims.t)", text),
        ("contains", "claims.t.contains(\"99a\")", text),
        ("getHours", "time.getHours(\"Europe/Zurich\") > 0", zone),
        ("getMinutes", "time.getMinutes(\"Europe/Zurich\") > 0", zone),
        ("getSeconds", "time.getSeconds(\"Europe/Zurich\") > 0", zone),
        ("getMilliseconds", "time.getMilliseconds() > 0", zone),
        ("getDayOfWeek", "time.getDayOfWeek() > 0", zone),
        ("getDate", "time.getDate() > 0", zone),
        ("getDayOfMonth", "time.getDayOfMonth() > 0", zone),
        ("getDayOfYear", "time.getDayOfYear() > 0", zone),
        ("getMonth", "time.getMonth() > 0", zone),
        ("getFullYear", "time.getFullYear() > 0", zone),
        // Operators.
        ("", "claims.t == claims.t", text),
        ("", "claims.t < claims.t", text),
        ("", "claims.t + claims.t == \"\"", 2 * text),
        ("", "claims.a == claims.a", 1000),
        ("", "2 in claims.a", 1000),
        // A list of texts that the rule made is copied where it is looked at.
        ("", "\"a\" in [claims.t + \"a\"].map(x, x)", 4 * text),
        ("", "[claims.t + \"a\"].map(x, x)[0] == \"a\"", 4 * text),
    ];
    for (name, when, least) in table {
        let (taken, _) = steps(when, &of);
        assert!(taken >= least, "{name}: {when}: {taken}, at least {least}");
    }
    for name in super::functions() {
        assert!(
            table.iter().any(|(asked, ..)| *asked == name),
            "{name} is not asked"
        );
    }
}

#[test]
fn deep_claims_are_looked_at_as_deep_as_it_goes() {
    let nested = |depth: usize| {
        let list = |inner, _| Claim::List(vec![inner]);
        (0..depth).fold(Claim::Int(1), list)
    };
    let of = rules(&[(Allow, "claims.a == claims.b")]).expect("a rule");
    for (depth, allowed) in [(1, true), (48, true), (49, false), (2000, false)] {
        let pair = |name: &str| (Box::from(name), nested(depth));
        let claims = Members::new(vec![pair("a"), pair("b")]);
        assert_eq!(of.decide(&asked(&claims)).allowed, allowed, "{depth}");
    }
}

/// The deepest trees that the bounds let through.
#[test]
fn the_deepest_expressions_fit_the_stack_of_their_thread() {
    let chain = |link: &str, n: usize| link.repeat(n);
    let nest = |open: &str, inner: &str, close: &str, n: usize| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    type Shape = Box<dyn Fn(usize) -> String + Send>;
    let shapes: Vec<Shape> = vec![
        Box::new(move |n| format!("claims{}", chain(".a", n))),
        Box::new(move |n| format!("1{} == 1", chain(" + 1", n))),
        Box::new(move |n| nest("(", "true", ")", n)),
        Box::new(move |n| format!("{} == claims.a", nest("[", "1", "]", n))),
        Box::new(move |n| nest("!(", "true", ")", n)),
        Box::new(move |n| format!("{}true", "!".repeat(n))),
        Box::new(move |n| format!("{}1 == 1", "-".repeat(n))),
        Box::new(move |n| format!("claims.a{}", chain("[0]", n))),
        Box::new(move |n| format!("{}true", chain("true ? true : ", n))),
        Box::new(move |n| chain("true ? (", n) + "true" + &chain(") : true", n)),
        Box::new(move |n| format!("{}true{}", chain("claims.a.exists(x, ", n), ")".repeat(n))),
        Box::new(move |n| format!("{} > 0", nest("size(", "path", ")", n))),
        Box::new(move |n| format!("true{}", chain(" && true", n))),
        Box::new(move |n| format!("true{}", chain(" || claims.a", n))),
        Box::new(move |n| format!("path in [\"a\"{}]", chain(", \"b\"", n))),
        Box::new(move |n| format!("true{}", chain(" == true", n))),
    ];
    let work = move || {
        let claims = claims(CLAIMS);
        for shape in shapes {
            let mut refused = 0;
            for n in [1, 10, 20, 30, 40, 45, 47, 48, 50, 100, 500, 1000, 4000] {
                let when = shape(n);
                if when.len() > EXPRESSION_BYTES_MAX {
                    break;
                }
                match rules(&[(Allow, &when)]) {
                    Ok(rules) => drop(rules.decide(&asked(&claims))),
                    Err(_) => refused += 1,
                }
            }
            assert!(refused < 13, "{}", shape(3));
        }
    };
    on_half(work);
}

#[test]
fn a_condition_of_a_filter_looks_at_arguments_where_a_call_has_them() {
    let claims = claims(CLAIMS);
    let arguments = crate::fixture::claims(r#"{"path": "/srv/a", "deep": {"n": 3}}"#);
    let held = |when: &str, with| {
        let of = condition(when, true).expect("a condition");
        of.holds(&asked(&claims), with)
    };
    let with = Some(&arguments);
    for when in [
        r#"arguments.path.startsWith("/srv/") && arguments.deep.n < 4"#,
        r#""intern" in claims.groups && has(arguments.path) && !has(arguments.other)"#,
    ] {
        assert_eq!(held(when, with), Ok(true), "{when}");
    }
    assert_eq!(held(r#"arguments.path == "/etc""#, with), Ok(false));
    let says = "there is no arguments.other: ask has(arguments.other) first";
    assert_eq!(held("arguments.other == 1", with), Err(says.into()));
    // Without them what decides alone decides, and nothing else is known.
    assert_eq!(
        held("claims.level > 9 && arguments.a == 1", None),
        Ok(false)
    );
    assert!(held("claims.level > 1 && arguments.a == 1", None).is_err());
    let reads = |when: &str| {
        condition(when, true)
            .expect("a condition")
            .reads_arguments()
    };
    assert!(reads("arguments.a == 1 || claims.admin") && !reads("claims.admin"));
    for (when, has_arguments) in [("arguments.a == 1", false), ("argument.a == 1", true)] {
        assert!(condition(when, has_arguments).is_err(), "{when}");
    }
    for when in [r#"server == "a""#, r#"name == "a""#] {
        assert!(rules(&[(Allow, when)]).is_err(), "{when}");
    }
    let fault = condition("has(arguments.a)", false).expect_err("no arguments");
    assert!(
        fault.contains("arguments are looked at in mcp alone"),
        "{fault}"
    );
    assert!(rules(&[(Allow, "has(arguments.a)")]).is_err());
}

#[test]
fn a_condition_of_a_filter_knows_a_name_by_its_server_and_by_what_that_calls_it() {
    let none = claims("{}");
    for (path, server, name) in [
        ("github__search", "github", "search"),
        ("a-b___x__y", "a-b", "_x__y"),
        ("files+file:///a__b", "files", "file:///a__b"),
        ("web__a+b", "web", "a+b"),
    ] {
        let asked = Asked {
            path,
            ..asked(&none)
        };
        let when = format!("server == \"{server}\" && name == \"{name}\"");
        let condition = condition(&when, false).expect("a condition");
        assert_eq!(condition.holds(&asked, None), Ok(true), "{path}");
    }
}

#[test]
fn scopes_are_the_words_of_a_token_however_it_lists_them() {
    for (said, known) in [
        (r#"{"scope": "echo  sum"}"#, "echo sum"),
        (r#"{"scp": ["echo", 3, "sum"]}"#, "echo sum"),
        (r#"{"scope": "echo", "scp": "sum"}"#, "echo sum"),
        (r#"{"scope": 3}"#, ""),
        ("{}", ""),
    ] {
        let claims = claims(said);
        let asked = asked(&claims);
        for word in ["echo", "sum", "cho"] {
            let condition =
                condition(&format!("\"{word}\" in scopes"), false).expect("a condition");
            let is_in = known.split(' ').any(|of| of == word);
            assert_eq!(condition.holds(&asked, None), Ok(is_in), "{said} {word}");
        }
    }
}
