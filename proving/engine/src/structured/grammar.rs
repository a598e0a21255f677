//! Grammars in the EBNF of xgrammar and llama.cpp: `root ::= "yes" | [0-9]+ rest*`.
//!
//! Invariant: a grammar that was read ends: every rule that its root needs has a way that leads to characters. Texts
//! are bounded; when one grows deep, the shortest ways are taken.
//! Not here: Lark's notation, look-ahead (both are refused by name).

mod parser;

use experiment::random::Rng;

/// Levels of rules after which the shortest ways are taken.
const SHALLOW: usize = 24;
/// Longest text that is made, in bytes.
const MAX_BYTES: usize = 1 << 16;
/// Further repetitions than the fewest, where more are allowed.
const MORE: u64 = 4;

#[derive(Debug)]
pub(crate) struct Grammar {
    rules: Vec<Expression>,
    root: usize,
    /// Fewest levels that each rule takes.
    heights: Vec<u32>,
}

/// What a rule stands for.
#[derive(Debug)]
enum Expression {
    Text(String),
    /// Characters from one to another, in several ranges.
    Class(Vec<(char, char)>),
    Rule(usize),
    Sequence(Vec<Expression>),
    Either(Vec<Expression>),
    Repeat(Box<Expression>, u64, Option<u64>),
}

impl Grammar {
    /// Reads a grammar. Says what is wrong with it, and in which line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (names, rules) = parser::rules(text)?;
        let root = names.iter().position(|name| name == "root");
        let root = root.ok_or("there is no rule named root")?;
        let heights = heights(&rules);
        if heights[root] == u32::MAX {
            return Err("the rule root never ends".to_owned());
        }
        Ok(Self {
            rules,
            root,
            heights,
        })
    }

    /// A text of the grammar.
    pub(super) fn make(&self, rng: &mut Rng) -> Result<String, String> {
        let mut text = String::new();
        match self.write(&Expression::Rule(self.root), 0, rng, &mut text) {
            Some(()) => Ok(text),
            None => Err(format!(
                "The grammar's texts are longer than {MAX_BYTES} bytes."
            )),
        }
    }

    fn write(
        &self,
        expression: &Expression,
        depth: usize,
        rng: &mut Rng,
        text: &mut String,
    ) -> Option<()> {
        if text.len() > MAX_BYTES {
            return None;
        }
        match expression {
            Expression::Text(literal) => text.push_str(literal),
            Expression::Class(ranges) => {
                let (low, high) = *ranges.get(rng.below(ranges.len() as u64) as usize)?;
                let (low, high) = (u32::from(low), u32::from(high));
                let chosen = low + u32::try_from(rng.below(u64::from(high - low) + 1)).ok()?;
                text.push(char::from_u32(chosen).or(char::from_u32(low))?);
            }
            Expression::Rule(rule) => self.write(&self.rules[*rule], depth + 1, rng, text)?,
            Expression::Sequence(all) => {
                for one in all {
                    self.write(one, depth, rng, text)?;
                }
            }
            Expression::Either(all) => {
                let chosen = self.choose(all, depth, rng)?;
                self.write(chosen, depth, rng, text)?;
            }
            Expression::Repeat(one, least, most) => {
                let most = most.unwrap_or(u64::MAX);
                let more = if depth > SHALLOW {
                    0
                } else {
                    most.saturating_sub(*least).min(MORE)
                };
                // What never ends is left out where it may be.
                let more = if height(one, &self.heights) == u32::MAX {
                    0
                } else {
                    more
                };
                for _ in 0..least + rng.below(more + 1) {
                    self.write(one, depth, rng, text)?;
                }
            }
        }
        Some(())
    }

    fn choose<'a>(
        &self,
        all: &'a [Expression],
        depth: usize,
        rng: &mut Rng,
    ) -> Option<&'a Expression> {
        let height = |one: &Expression| height(one, &self.heights);
        if depth > SHALLOW {
            return all.iter().min_by_key(|one| height(one));
        }
        let ending: Vec<&Expression> = all.iter().filter(|one| height(one) < u32::MAX).collect();
        ending.get(rng.below(ending.len() as u64) as usize).copied()
    }
}

/// Fewest levels of each rule; `u32::MAX` for one that never ends.
fn heights(rules: &[Expression]) -> Vec<u32> {
    let mut heights = vec![u32::MAX; rules.len()];
    loop {
        let next: Vec<u32> = rules
            .iter()
            .map(|rule| height(rule, &heights).saturating_add(1))
            .collect();
        if next == heights {
            return heights;
        }
        heights = next;
    }
}

fn height(expression: &Expression, heights: &[u32]) -> u32 {
    let of = |one: &Expression| height(one, heights);
    match expression {
        Expression::Text(_) | Expression::Class(_) => 0,
        Expression::Rule(rule) => heights[*rule],
        Expression::Sequence(all) => all.iter().map(of).max().unwrap_or(0),
        Expression::Either(all) => all.iter().map(of).min().unwrap_or(u32::MAX),
        Expression::Repeat(_, 0, _) => 0,
        Expression::Repeat(one, ..) => of(one),
    }
}
