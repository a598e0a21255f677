//! The table against a plain map that forgets the same way.

use std::collections::BTreeMap;

use bytes::Bytes;
use testing::{Draw, seed};

use super::super::prompt::Prompt;
use super::{Prefixes, UNIT_BYTES};

fn prompt(text: &str) -> Prompt {
    let body = format!(r#"{{"prompt":"{text}"}}"#);
    Prompt::of(&[Bytes::from(body)]).expect("a prompt")
}

/// Text that two calls of equal numbers share, so many parts of it.
fn text(of: &[usize]) -> String {
    let part = |nth: &usize| format!("{nth:_<300}");
    of.iter().map(part).collect()
}

/// Which block was used when, in units of what was new.
#[derive(Default)]
struct Model {
    used: BTreeMap<u64, u64>,
    clock: u64,
    since: u64,
}

impl Model {
    fn seen(&self, prompt: &Prompt, reach: u64) -> usize {
        let is_known = |hash: &u64| {
            let used = self.used.get(hash);
            used.is_some_and(|used| self.clock - used <= reach && *used >= self.since)
        };
        let blocks = prompt.blocks().iter();
        blocks.take_while(|block| is_known(&block.hash)).count()
    }

    fn add(&mut self, prompt: &Prompt, reach: u64) {
        let all = prompt.bytes_of(prompt.blocks().len());
        let new = all - prompt.bytes_of(self.seen(prompt, reach));
        self.clock += new.div_ceil(UNIT_BYTES);
        let blocks = prompt.blocks().iter();
        self.used
            .extend(blocks.map(|block| (block.hash, self.clock)));
    }
}

#[test]
fn it_knows_what_a_map_knows_and_forgets_what_that_forgets() {
    let draw = &mut Draw::new(seed(
        "it_knows_what_a_map_knows_and_forgets_what_that_forgets",
    ));
    for _ in 0..20 {
        let (table, mut model) = (Prefixes::default(), Model::default());
        let reach = 20 + draw.below(200) as u64;
        table.reaches(reach * UNIT_BYTES);
        for _ in 0..400 {
            let length = 1 + draw.below(8);
            let parts: Vec<usize> = (0..length).map(|_| draw.below(2)).collect();
            let prompt = prompt(&text(&parts));
            assert_eq!(table.seen(&prompt), model.seen(&prompt, reach), "{parts:?}");
            match draw.below(50) {
                0 => {
                    table.forget();
                    model.clock += 1;
                    model.since = model.clock;
                }
                1..20 => {
                    table.add(&prompt);
                    model.add(&prompt, reach);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn memory_is_bounded_and_the_newest_is_kept() {
    let table = Prefixes::default();
    table.reaches(1 << 40);
    let long = |nth: usize| text(&(0..200).map(|part| nth * 1000 + part).collect::<Vec<_>>());
    // Ten times as many blocks as there is room for.
    for nth in 0..3000 {
        table.add(&prompt(&long(nth)));
    }
    let newest = prompt(&long(2999));
    assert!(table.seen(&newest) * 10 >= newest.blocks().len() * 9);
    assert_eq!(table.seen(&prompt(&long(0))), 0, "the oldest made room");
}

#[test]
fn nothing_is_known_of_what_was_never_added() {
    let table = Prefixes::default();
    let never = prompt(&text(&[1; 9]));
    assert_eq!(table.seen(&never), 0, "an empty table has no memory");
    table.add(&prompt(&text(&[2; 9])));
    assert_eq!(table.seen(&never), 0);
}
