//! Tables of what is taken and what is refused.

use super::*;

fn says(text: &str) -> String {
    match parse(text) {
        Ok(node) => format!("{} on line {}", node.what(), node.line),
        Err(faults) => {
            let lines = faults
                .iter()
                .map(|f| format!("{}: {f}", f.line.unwrap_or(0)));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn what_is_not_one_plain_document_is_refused_with_its_line() {
    for (text, expected) in [
        ("", "the document is empty"),
        ("# only a comment\n", "the document is empty"),
        ("a: 1\n---\nb: 2\n", "2: a second document begins here"),
        (
            "a: 1\na: 2\n",
            "2: the key \"a\" is written twice (first on line 1)",
        ),
        ("a: {b: 1, \"b\": 2}\n", "1: the key \"b\" is written twice"),
        (
            "a: &x [*x]\n",
            "1: an alias stands inside the thing that it names",
        ),
        ("a: !!str 1\n", "1: YAML tags"),
        ("? [a]\n: 1\n", "1: a key must be plain text"),
        ("a: *nobody\n", "1: not valid YAML"),
        ("a: [1,\n", "not valid YAML"),
        ("a:\n\t- b\n", "2: not valid YAML"),
    ] {
        assert!(
            says(text).contains(expected),
            "{text:?} says {:?}",
            says(text)
        );
    }
}

#[test]
fn every_repeated_key_is_named() {
    assert_eq!(says("a: 1\na: 2\nb: 1\nb: 2\n").lines().count(), 2);
}

#[test]
fn depth_is_bounded() {
    // The scanner has a bound of its own where it must look ahead.
    assert!(says(&"[".repeat(100_000)).contains("recursion limit exceeded"));
    assert!(says(&"[".repeat(100)).contains("nested deeper than 32 levels"));
    assert!(says(&"- ".repeat(10_000)).contains("nested deeper than 32 levels"));
    let fits = format!("{}{}", "[".repeat(32), "]".repeat(32));
    assert!(says(&fits).starts_with("a list"));
}

#[test]
fn an_alias_bomb_is_refused_before_it_grows() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let uses = vec![format!("*a{}", level - 1); 10].join(", ");
        text += &format!("a{level}: &a{level} [{uses}]\n");
    }
    assert!(
        says(&text).contains("more than 200000 values"),
        "{}",
        says(&text)
    );
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        vec!["*a"; 40].join(", ")
    );
    assert!(says(&long).contains("more than 16 MiB of text"));
}

#[test]
fn an_alias_stands_for_what_it_names() {
    let root = parse("a: &x [1, two]\nb: *x\n").unwrap();
    let Value::Map(entries) = root.value else {
        panic!("a mapping")
    };
    assert_eq!(entries[1].node.what(), "a list");
    assert_eq!(entries[1].node.line, 2);
}

#[test]
fn scalars_have_the_shape_of_the_core_schema() {
    for (text, shape) in [
        ("1", Shape::Number),
        ("-1.5e3", Shape::Number),
        ("0x1F", Shape::Number),
        (".inf", Shape::Number),
        ("1m", Shape::Text),
        ("1.2.3", Shape::Text),
        ("127.0.0.1:80", Shape::Text),
        (".", Shape::Text),
        ("-", Shape::Text),
        ("true", Shape::Boolean),
        ("off", Shape::Text),
        ("~", Shape::Nothing),
        ("", Shape::Nothing),
    ] {
        let scalar = Scalar {
            raw: text.into(),
            text: text.into(),
            plain: true,
            filled: Filled::No,
        };
        assert_eq!(scalar.shape(), shape, "{text:?}");
    }
}
