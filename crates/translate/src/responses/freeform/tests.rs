//! Arguments of all kinds, each cut at every place.

use super::Freeform;

/// What is told of arguments that come in two pieces, cut here, and whether they are whole.
fn read(arguments: &str, cut: usize) -> (String, bool) {
    let (mut freeform, mut told) = (Freeform::default(), String::new());
    let (first, rest) = arguments.split_at(cut);
    freeform.push(first, &mut told);
    freeform.push(rest, &mut told);
    let is_whole = freeform.is_whole();
    freeform.end(&mut told);
    assert_eq!(freeform.held(), 0);
    (told, is_whole)
}

#[test]
fn an_argument_is_the_text_wherever_it_is_cut() {
    let cases = [
        (
            r#"{"input":"a\n\"b\" \\ \u00e9 \ud83d\ude00 é"}"#,
            "a\n\"b\" \\ é 😀 é",
            true,
        ),
        ("{ \"input\" :\n\"a\nb\" }", "a\nb", true),
        (r#"{"input":""}"#, "", true),
        (r#"{"input":"a","more":1}"#, "a", true),
        // Another order, or another kind of argument.
        (r#"{"why":"so","input":"a"}"#, "a", true),
        (r#"{"patch":"a"}"#, r#"{"patch":"a"}"#, true),
        (r#"{"input":["a"]}"#, r#"{"input":["a"]}"#, true),
        // No JSON at all.
        ("*** Begin Patch\n", "*** Begin Patch\n", false),
        ("", "", false),
        // Escapes that are none, halves of pairs.
        (r#"{"input":"\d \u12"}"#, r"\d \u12", true),
        (r#"{"input":"\ud83d"}"#, "\u{fffd}", true),
        (
            r#"{"input":"\ud83dx\ud83d\n"}"#,
            "\u{fffd}x\u{fffd}\n",
            true,
        ),
        // Cut off.
        (r#"{"input":"a\n"#, "a\n", false),
        (r#"{"input":"a\"#, "a", false),
        (r#"{"inp"#, r#"{"inp"#, false),
    ];
    for (arguments, text, is_whole) in cases {
        for cut in (0..=arguments.len()).filter(|cut| arguments.is_char_boundary(*cut)) {
            let read = read(arguments, cut);
            assert_eq!(
                read,
                (text.to_owned(), is_whole),
                "{arguments} cut at {cut}"
            );
        }
    }
}
