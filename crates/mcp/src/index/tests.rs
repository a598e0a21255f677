//! Against tools that are looked through one after the other, within a bound and past it.

use serde_json::{Value, json};
use testing::{Draw, seed};

use super::{BYTES_MAX, Index, Room, Weight, Words};

/// Words of few letters, so that many begin alike.
fn word(draw: &mut Draw) -> String {
    let length = 1 + draw.below(5);
    (0..length)
        .map(|_| ['a', 'b', 'ß', 'É'][draw.below(4)])
        .collect()
}

fn text(draw: &mut Draw) -> String {
    let words: Vec<String> = (0..draw.below(6)).map(|_| word(draw)).collect();
    words.join(["_", " ", ""][draw.below(3)])
}

fn tool(draw: &mut Draw) -> (String, Vec<u8>) {
    let mut tool = json!({"name": "not looked at", "description": text(draw)});
    if draw.below(2) == 0 {
        tool["title"] = Value::String(text(draw));
        tool["annotations"] = json!({"title": text(draw)});
        tool["inputSchema"] = json!({"properties": {(text(draw)): {}, (text(draw)): {}}});
    }
    (text(draw), tool.to_string().into_bytes())
}

#[test]
fn a_word_means_the_tools_that_it_means_when_each_is_looked_through() {
    let mut draw = Draw::new(seed("index"));
    for _ in 0..200 {
        let tools: Vec<(String, Vec<u8>)> = (0..draw.below(20)).map(|_| tool(&mut draw)).collect();
        let of = || tools.iter().map(|(name, raw)| (&**name, &**raw));
        let bound = [BYTES_MAX, 0, 100, 400][draw.below(4)];
        let index = Index::with_bound(of(), bound);
        assert!(bound < BYTES_MAX || index.tools() == tools.len());
        let taken = index.text.len() + 8 * index.words.len() + 4 * index.having.len();
        assert!(taken <= bound, "{taken}");
        let mut room = Room::default();
        for _ in 0..10 {
            let word = word(&mut draw).to_lowercase();
            let mut found = vec![Weight::default(); tools.len()];
            index.weigh(&word, &mut room, |tool, weight| {
                assert_eq!(found[tool], Weight::default(), "once");
                found[tool] = weight;
            });
            let tools = of().take(index.tools());
            let expected: Vec<Weight> = tools
                .map(|(name, raw)| Words::of(name, raw).weight(&word))
                .collect();
            assert_eq!(found[..index.tools()], expected, "{word}");
        }
    }
}

#[test]
fn a_word_without_end_costs_no_more_than_one_of_64_bytes() {
    let long = "a".repeat(1 << 20);
    let index = Index::of([(&*long, &b"{}"[..])].into_iter());
    assert_eq!(index.text.len(), super::WORD_BYTES_MAX);
}
