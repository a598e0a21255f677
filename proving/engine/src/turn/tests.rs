//! Pieces join to the whole, wherever an answer is cut.

use super::*;

fn turn(tokens: usize, tool: bool) -> Turn {
    let composer = Composer::new(&Tokenizer::o200k()).unwrap();
    let arguments = "{\"city\":\"Zürich 🏔️ 数据\"}".to_owned();
    let tool = tool.then(|| Forced {
        name: "weather".to_owned(),
        arguments,
        named: false,
    });
    let spec = AnswerSpec {
        harmony: true,
        reasoning_eighths: 4,
        tool,
        content: None,
    };
    Turn::compose(&composer, 7, tokens, &spec, None)
}

fn joined(turn: &Turn, channel: Channel) -> String {
    (0..turn.tokens())
        .map(|i| turn.token(i))
        .filter(|(c, _)| *c == channel)
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn token_texts_join_to_the_text_at_every_cut() {
    for tool in [false, true] {
        let whole = turn(60, tool);
        for at in 0..=whole.tokens() {
            let mut cut = whole.clone();
            assert_eq!(cut.cut(at), at < whole.tokens());
            assert_eq!(cut.tokens(), at);
            assert_eq!(joined(&cut, Channel::Reasoning), cut.reasoning());
            assert_eq!(joined(&cut, Channel::Content), cut.content());
            assert_eq!(joined(&cut, Channel::Arguments), cut.arguments());
            assert!(
                whole.content().starts_with(cut.content())
                    && whole.arguments().starts_with(cut.arguments())
            );
        }
    }
}

#[test]
fn a_tool_call_counts_only_once_its_arguments_begin() {
    let mut whole = turn(60, true);
    assert!(whole.calls() && whole.content().is_empty());
    whole.cut(2);
    assert!(!whole.calls());
}
