//! What is made is accepted by a validator of somebody else's; what is not supported is refused by its name.

mod work;

use serde_json::{Map, Value, json};
use testing::{number_of, seed};

use super::*;

fn parse(value: &Value) -> Json {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn text(schema: &Value, seed: u64) -> Result<String, String> {
    let constraint = Constraint::json(&parse(schema), "response_format");
    let text = constraint.and_then(|constraint| constraint.text(seed));
    text.map_err(|refusal| refusal.message().to_owned())
}

fn judge(schema: &Value) -> jsonschema::Validator {
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .unwrap_or_else(|why| panic!("{schema}: {why}"))
}

/// Schemas of every keyword that is honoured.
fn schemas() -> Vec<Value> {
    let tree = json!({"$defs": {"node": {"type": "object", "properties": {
        "value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        "required": ["value", "children", "next"], "additionalProperties": false}}, "$ref": "#/$defs/node"});
    vec![
        json!({}),
        json!(true),
        json!({"type": "object"}),
        json!({"type": ["string", "null", "integer"]}),
        json!({"enum": ["a", 1, null, {"b": [2.5]}]}),
        json!({"const": {"z": 1, "a": "x"}}),
        json!({"type": "string", "minLength": 40, "maxLength": 45}),
        json!({"type": "string", "maxLength": 3}),
        json!({"type": "string", "maxLength": 0}),
        json!({"pattern": "^(\\+\\d{1,3})? ?\\(\\d{3}\\)-\\d{4}$"}),
        json!({"pattern": "b[^a-z]{2}"}),
        json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 30, "maxLength": 60}),
        json!({"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "^[a-c]{3}$"}]}),
        json!({"type": "integer"}),
        json!({"type": "integer", "minimum": -3, "exclusiveMaximum": -1}),
        json!({"type": "integer", "multipleOf": 7, "minimum": 100, "maximum": 110}),
        json!({"type": "number", "exclusiveMinimum": 0.1, "maximum": 0.11}),
        json!({"type": "number", "multipleOf": 0.5, "minimum": 3}),
        json!({"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 3}),
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "minItems": 2}),
        json!({"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "null"}, "minItems": 1}, "minItems": 1}, "minItems": 2}),
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b"], "additionalProperties": false}),
        json!({"type": "object", "required": ["x", "y"], "additionalProperties": {"type": "number"}}),
        json!({"type": "object", "patternProperties": {"^s_[a-z]{2}$": {"type": "string"}}, "additionalProperties": false, "minProperties": 3}),
        json!({"type": "object", "propertyNames": {"pattern": "^[A-Z]{4}$"}, "minProperties": 2, "maxProperties": 2}),
        json!({"type": "object", "properties": {"a": {}, "b": {}, "c": {}, "d": {}}, "maxProperties": 1}),
        json!({"type": "object", "properties": {"a": {}, "b": {}, "c": {}, "d": {}}, "minProperties": 3, "additionalProperties": false}),
        json!({"anyOf": [{"type": "integer", "minimum": 5}, {"type": "string", "enum": ["x"]}]}),
        json!({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}),
        json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "additionalProperties": false}),
        json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"a": {"minLength": 4}, "b": {"const": 1}}, "required": ["b"]}]}),
        json!({"$ref": "#/$defs/a~1b%20c", "maxLength": 9, "$defs": {"a/b c": {"type": "string", "minLength": 8}}}),
        json!({"properties": {"x": {"$ref": "#"}}, "type": "object", "additionalProperties": false}),
        tree,
        json!({"$defs": {"expr": {"anyOf": [{"type": "number"}, {"type": "object", "properties": {
            "op": {"enum": ["+", "*"]}, "left": {"$ref": "#/$defs/expr"}, "right": {"$ref": "#/$defs/expr"}},
            "required": ["op", "left", "right"], "additionalProperties": false}]}}, "type": "object",
            "properties": {"e": {"$ref": "#/$defs/expr"}}, "required": ["e"]}),
        json!({"type": "object", "title": "T", "description": "d", "default": {"a": 1}, "examples": [1], "x-own": {"not": 1},
            "properties": {"not": {"type": "string"}, "if": {"type": "integer"}}, "required": ["not", "if"]}),
    ]
}

#[test]
fn a_value_of_every_keyword_is_accepted_by_another_validator() {
    for schema in schemas() {
        let judge = judge(&schema);
        for seed in 0..60 {
            let text = text(&schema, seed).unwrap_or_else(|why| panic!("{schema}: {why}"));
            let value: Value = serde_json::from_str(&text).unwrap();
            if let Err(why) = judge.validate(&value) {
                panic!("seed {seed}, {schema}: {text}: {why}");
            }
        }
    }
}

#[test]
fn a_value_of_every_format_is_accepted_by_another_validator() {
    for format in super::schema::FORMATS {
        let schema = json!({"type": "string", "format": format});
        let judge = judge(&schema);
        assert!(
            !judge.is_valid(&json!("\u{7f} {")) || format.starts_with("uri"),
            "{format} is checked"
        );
        for seed in 0..60 {
            let text = text(&schema, seed).unwrap();
            let value: Value = serde_json::from_str(&text).unwrap();
            assert!(judge.is_valid(&value), "{format}: {text}");
        }
    }
}

#[test]
fn what_is_not_supported_is_refused_by_its_name_and_place() {
    for (schema, says) in [
        (json!({"not": {}}), "not supported by xgrammar: not at #"),
        (
            json!({"properties": {"a": {"uniqueItems": true}}}),
            "uniqueItems at #/properties/a",
        ),
        (json!({"items": {"contains": {}}}), "contains at #/items"),
        (json!({"anyOf": [{}, {"if": {}}]}), "if at #/anyOf/1"),
        (
            json!({"$defs": {"a": {"dependentRequired": {}}}}),
            "dependentRequired at #/$defs/a",
        ),
        (json!({"format": "idn-email"}), "format \"idn-email\" at #"),
        (
            json!({"$ref": "https://example.com/s"}),
            "$ref \"https://example.com/s\"",
        ),
        (json!({"$ref": "#/$defs/none"}), "$ref \"#/$defs/none\""),
        (
            json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            "which comes back to itself or leads on more than 64 times, at #/$defs/a",
        ),
        (json!({"pattern": "^(?=a)"}), "pattern \"^(?=a)\" at #"),
        (json!({"pattern": "(a)\\1"}), "pattern"),
        (json!({"patternProperties": {"(": {}}}), "pattern \"(\""),
        (json!({"type": "strin"}), "#/type must be a type"),
        (json!({"properties": []}), "#/properties must be an object"),
        (
            json!({"anyOf": []}),
            "#/anyOf must be a list that is not empty",
        ),
        (
            json!({"items": 5}),
            "#/items must be an object or a boolean",
        ),
        (
            json!({"minLength": -1}),
            "#/minLength must be a whole number",
        ),
        (json!({"minimum": "1"}), "#/minimum must be a number"),
        (
            json!({"multipleOf": 0}),
            "#/multipleOf must be greater than 0",
        ),
        (
            json!({"required": [1]}),
            "#/required must be a list of names",
        ),
        (json!(5), "# must be an object or a boolean"),
    ] {
        let why = text(&schema, 1).expect_err(&schema.to_string());
        assert!(why.contains(says), "{schema}: {why}");
    }
}

/// A schema of up to `depth` levels, of keywords that may exclude each other.
fn made_up(rng: &mut Rng, depth: usize) -> Value {
    let mut pick = |n: u64| rng.below(n);
    let kinds = if depth == 0 { 6 } else { 12 };
    match pick(kinds) {
        0 => json!({"type": "string", "minLength": pick(5), "maxLength": 4 + pick(20)}),
        1 => {
            let low = pick(2000) as f64 / 10.0 - 100.0;
            let kind = if pick(2) == 0 { "integer" } else { "number" };
            json!({"type": kind, "minimum": low, "maximum": low + 1.0 + pick(50) as f64})
        }
        2 => json!({"enum": [pick(9), "word", null, [pick(3)], {"a": pick(2)}]}),
        3 => {
            let patterns = [
                "^[a-f]{2,5}$",
                "\\d+",
                "^(x|yz)*$",
                "^\\S+ \\w$",
                "^[^0-9]?$",
            ];
            json!({"type": "string", "pattern": patterns[pick(5) as usize]})
        }
        4 => {
            let formats = ["date", "email", "uuid", "ipv4", "time", "uri"];
            json!({"type": "string", "format": formats[pick(6) as usize]})
        }
        5 => json!({"type": ["boolean", "null"]}),
        6 => {
            let least = pick(3);
            json!({"type": "array", "items": made_up(rng, depth - 1), "minItems": least, "maxItems": least + 2})
        }
        7 => {
            let prefix = [made_up(rng, depth - 1), made_up(rng, depth - 1)];
            json!({"type": "array", "prefixItems": prefix, "items": {"type": "null"}, "minItems": 3})
        }
        8 => {
            let branches = [made_up(rng, depth - 1), made_up(rng, depth - 1)];
            let name = if rng.below(2) == 0 { "anyOf" } else { "oneOf" };
            json!({name: branches})
        }
        9 => {
            let both = [object(rng, depth), object(rng, depth)];
            json!({"allOf": both, "type": "object"})
        }
        10 => json!({"$ref": "#/$defs/shared", "title": "x"}),
        _ => object(rng, depth),
    }
}

fn object(rng: &mut Rng, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in ["a", "b", "c", "d"] {
        if rng.below(2) == 0 {
            properties.insert(name.to_owned(), made_up(rng, depth - 1));
        }
    }
    let names: Vec<&String> = properties.keys().collect();
    let required: Vec<&&String> = names.iter().filter(|name| name.as_str() < "c").collect();
    let mut object = json!({"type": "object", "required": required});
    if rng.below(2) == 0 {
        object["minProperties"] = json!(rng.below(3));
    }
    object["properties"] = Value::Object(properties);
    object
}

#[test]
fn values_of_made_up_schemas_are_accepted_by_another_validator() {
    let mut rng = Rng::new(seed(
        "values_of_made_up_schemas_are_accepted_by_another_validator",
    ));
    let count = number_of("ENGINE_SCHEMAS", 150);
    let mut refused = 0;
    for case in 0..count {
        let mut schema = made_up(&mut rng, 3);
        schema["$defs"] = json!({"shared": made_up(&mut rng, 1)});
        let judge = judge(&schema);
        for seed in 0..5 {
            match text(&schema, seed) {
                Ok(text) => {
                    let value: Value = serde_json::from_str(&text).unwrap();
                    if let Err(why) = judge.validate(&value) {
                        panic!("case {case}, {schema}: {text}: {why}");
                    }
                }
                Err(why) => {
                    let is_known = ["no value was found", "comes back to itself", "steps"]
                        .iter()
                        .any(|says| why.contains(says));
                    assert!(is_known, "case {case}, {schema}: {why}");
                    refused += 1;
                }
            }
        }
    }
    println!("{refused} of {} refused", count * 5);
    assert!(refused < count, "{refused} of {} were refused", count * 5);
}

#[test]
fn texts_of_an_expression_are_matched_whole() {
    for pattern in [
        r"\d{3}-[A-Z]{2}",
        "yes|no",
        "a*b+c?",
        r"(?i)hello \w+",
        "^anchored$",
        "[^a]",
    ] {
        let asked = parse(&json!({"structured_outputs": {"regex": pattern}}));
        let asked: Asked = asked.into_typed().unwrap();
        let constraint = asked.constraint().unwrap().unwrap();
        let whole = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
        for seed in 0..50 {
            let text = constraint.text(seed).unwrap();
            assert!(whole.is_match(&text), "{pattern}: {text}");
        }
    }
}

fn asked(body: &Value) -> Result<Option<Constraint>, String> {
    let asked: Asked = parse(body).into_typed().unwrap();
    let constraint = asked.constraint();
    constraint.map_err(|refusal| refusal.message().to_owned())
}

#[test]
fn a_choice_is_one_of_its_texts_and_every_one_comes() {
    let body = json!({"guided_choice": ["red", "green", "a \"blue\""]});
    let constraint = asked(&body).unwrap().unwrap();
    let made: std::collections::BTreeSet<String> = (0..100)
        .map(|seed| constraint.text(seed).unwrap())
        .collect();
    assert_eq!(
        made,
        ["red", "green", "a \"blue\""].map(str::to_owned).into()
    );
}

#[test]
fn a_grammar_gives_texts_of_it_and_recursion_ends() {
    let sum = r#"
        # A sum.
        root ::= term (" + " term)* | "(" root ")"
        term ::= [0-9]{1,3} | "x" [^\]()a-zA-Z0-9 ]? | root "!"
    "#;
    let constraint = asked(&json!({"structured_outputs": {"grammar": sum}}))
        .unwrap()
        .unwrap();
    let mut longest = 0;
    for seed in 0..300 {
        let text = constraint.text(seed).unwrap();
        let digits = text
            .split(|c: char| !c.is_ascii_digit())
            .all(|run| run.len() <= 3);
        assert!(digits && !text.is_empty(), "{text}");
        assert_eq!(
            text.matches('(').count(),
            text.matches(')').count(),
            "{text}"
        );
        longest = longest.max(text.len());
    }
    assert!(longest > 20, "{longest}");
    let sql = "root ::= \"select \" (\"a\" | \"b\") \" from t\"\n";
    let made = asked(&json!({"guided_grammar": sql}))
        .unwrap()
        .unwrap()
        .text(1)
        .unwrap();
    assert!(
        ["select a from t", "select b from t"].contains(&made.as_str()),
        "{made}"
    );
}

#[test]
fn a_grammar_in_the_notation_of_lark_gives_the_texts_of_its_start() {
    let sql = r#"
        // Names and comments: // are none of the texts.
        ?name: "id" | 'it\'s "q"'   # the columns
        start: "select " name ("," name)~rest -> query
             | 'no // comment'
        rest.2: "x"?
    "#;
    let faulty = asked(&json!({"guided_grammar": sql})).unwrap_err();
    assert!(faulty.contains("line 4: '~' begins nothing"), "{faulty}");
    let sql = sql.replace("~rest", "{0,2}");
    let constraint = asked(&json!({"guided_grammar": sql})).unwrap().unwrap();
    let name = r#"(id|it's "q")"#;
    let whole = format!("^(select {name}(,{name}){{0,2}}|no // comment)$");
    let whole = regex::Regex::new(&whole).unwrap();
    let made: std::collections::BTreeSet<String> = (0..200)
        .map(|seed| constraint.text(seed).unwrap())
        .collect();
    assert!(made.iter().all(|text| whole.is_match(text)), "{made:?}");
    assert!(made.len() > 8, "{made:?}");
}

#[test]
fn a_faulty_grammar_is_refused_with_its_line() {
    for (grammar, says) in [
        (
            "start: WORD\n%import common.WORD",
            "line 2: \"%import common.WORD\" is not simulated",
        ),
        ("start: /[a-z]+/", "line 1: '/' begins nothing"),
        ("\n| \"a\"", "line 2: a rule must begin"),
        ("", "no rule"),
        ("top ::= \"a\"", "no rule named root"),
        ("root ::= \"a\"\n\nroot ::= rest", "two rules named root"),
        ("root ::= rest", "no rule named rest"),
        ("root ::= root \"a\"", "never ends"),
        ("root ::= \"a\"\nb ::= ( \"c\"", "line 2: a group must end"),
        ("root ::= [z-a]", "empty"),
        ("root ::= \"a", "does not end"),
        ("root ::= \"a\"{3,2}", "repetitions"),
        ("root ::= \"a\" (= \"b\")", "look-ahead"),
        ("root ::= %", "begins nothing"),
    ] {
        let why = asked(&json!({"structured_outputs": {"grammar": grammar}})).expect_err(grammar);
        assert!(why.contains(says), "{grammar}: {why}");
    }
}

#[test]
fn a_call_has_one_constraint_at_most() {
    for (body, says) in [
        (
            json!({"structured_outputs": {"regex": "a", "choice": ["b"]}}),
            "only use one kind",
        ),
        (
            json!({"response_format": {"type": "json_object"}, "guided_regex": "a"}),
            "only use one kind",
        ),
        (
            json!({"response_format": {"type": "json_schema"}}),
            "'json_schema' field must be provided",
        ),
        (json!({"response_format": {"type": "xml"}}), "needs a type"),
        (
            json!({"structured_outputs": {"structural_tag": "{}"}}),
            "structural_tag is not simulated",
        ),
        (
            json!({"structured_outputs": {"shape": 1}}),
            "no member \"shape\"",
        ),
        (
            json!({"structured_outputs": {"json": "{"}}),
            "Invalid JSON grammar",
        ),
        (json!({"structured_outputs": {"choice": []}}), "1 to 4096"),
        (
            json!({"structured_outputs": {"regex": "("}}),
            "Failed to transform regex",
        ),
    ] {
        let why = asked(&body).expect_err(&body.to_string());
        assert!(why.contains(says), "{body}: {why}");
    }
    for body in [
        json!({}),
        json!({"response_format": null, "structured_outputs": null}),
        json!({"response_format": {"type": "text"}}),
        json!({"structured_outputs": {"json": null, "disable_any_whitespace": true}}),
    ] {
        assert!(asked(&body).unwrap().is_none(), "{body}");
    }
    let both = json!({"structured_outputs": {"json": "{\"const\": 5}"}});
    assert_eq!(asked(&both).unwrap().unwrap().text(1).unwrap(), "5");
}

/// Why a call is refused.
fn refused(body: &Value) -> String {
    let made = parse(body).into_typed::<Asked>().unwrap().constraint();
    let made = made.and_then(|constraint| constraint.expect("a constraint").text(1));
    let why = made.expect_err(&body.to_string()[..body.to_string().len().min(200)]);
    why.message().to_owned()
}

fn json_of(schema: &Value) -> Value {
    json!({"structured_outputs": {"json": schema}})
}

#[test]
fn schemas_that_come_back_to_themselves_without_a_value_between_are_refused() {
    let a =
        |of: Value| json!({"$ref": "#/$defs/a", "$defs": {"a": of, "b": {"$ref": "#/$defs/a"}}});
    let chain = |length: usize| {
        let one = |i: usize| {
            (
                format!("r{i}"),
                json!({"anyOf": [{"$ref": format!("#/$defs/r{}", i + 1)}]}),
            )
        };
        let mut all: Map<String, Value> = (0..length).map(one).collect();
        all.insert(format!("r{length}"), json!({"type": "null"}));
        json!({"$ref": "#/$defs/r0", "$defs": all})
    };
    for schema in [
        a(json!({"anyOf": [{"$ref": "#/$defs/a"}]})),
        a(json!({"oneOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]})),
        a(json!({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]})),
        a(json!({"anyOf": [{"allOf": [{"$ref": "#/$defs/b"}]}]})),
        a(json!({"$ref": "#/$defs/b"})),
        json!({"anyOf": [{"type": "null"}, {"$ref": "#"}]}),
        // Within what no keyword says is a schema, but a reference does.
        json!({"$ref": "#/x-own", "x-own": {"type": "object", "required": ["a"],
            "properties": {"a": {"anyOf": [{"$ref": "#/x-own/properties/a"}]}}}}),
        chain(3_000),
    ] {
        let why = refused(&json_of(&schema));
        assert!(why.contains("comes back to itself"), "{why}");
    }
    assert_eq!(text(&chain(20), 1).unwrap(), "null");
}

#[test]
fn what_a_reference_leads_to_is_looked_through_wherever_it_stands() {
    let schema = json!({"$ref": "#/x-own", "x-own": {"not": {"type": "null"}}});
    assert!(refused(&json_of(&schema)).contains("not at #/x-own"));
}

#[test]
fn a_refusal_names_the_member_that_asked() {
    let nothing = json!({"type": "integer", "minimum": 5, "maximum": 4});
    let format = json!({"type": "json_schema", "json_schema": {"schema": nothing}});
    for (body, member) in [
        (json!({"response_format": format}), "response_format"),
        (json_of(&nothing), "structured_outputs"),
        (json!({"guided_json": nothing}), "guided_json"),
        (json!({"guided_regex": "("}), "guided_regex"),
        (json!({"guided_regex": "\\b\\B"}), "guided_regex"),
        (json!({"guided_choice": []}), "guided_choice"),
        (json!({"guided_grammar": "x"}), "guided_grammar"),
    ] {
        let made = parse(&body).into_typed::<Asked>().unwrap().constraint();
        let made = made.and_then(|constraint| constraint.unwrap().text(1));
        assert_eq!(made.unwrap_err().param(), Some(member), "{body}");
    }
    let text = parse(&json!({"type": "json_schema", "schema": nothing}));
    let made = Asked::of_text(&text).unwrap().unwrap().text(1);
    assert_eq!(made.unwrap_err().param(), Some("text"));
}
