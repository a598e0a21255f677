//! Grammars in the EBNF of xgrammar and llama.cpp, `root ::= "yes" | [0-9]+ rest*`, or in Lark's notation.
//!
//! Invariant: a grammar that was read ends: every rule that its root needs has a way that leads to characters. Texts
//! are bounded, and so are the steps and the calls within calls that make them; when one grows deep, the shortest ways
//! are taken.
//! Not here: look-ahead, and what of Lark is more than rules (both are refused by name).

mod lark;
mod parser;

use experiment::random::Rng;

use super::work::Work;

/// Levels of rules after which the shortest ways are taken.
const SHALLOW: usize = 24;
/// Levels of rules that a text may need at least. What needs more counts as never ending.
const MAX_HEIGHT: u32 = 64;
/// Rules, groups and repetitions within each other, at most: what the stack holds.
const MAX_NESTED: usize = 800;
/// Longest text that is made, in bytes.
const MAX_BYTES: usize = 1 << 16;
/// Further repetitions than the fewest, where more are allowed.
const MORE: u64 = 4;

/// Steps of reading a byte of a grammar.
const COST_OF_BYTE: usize = 10;

#[derive(Debug)]
pub(crate) struct Grammar {
    rules: Vec<Expression>,
    root: usize,
    /// Fewest levels that each rule takes; `u32::MAX` for one that takes more than [`MAX_HEIGHT`].
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
    pub(super) fn parse(text: &str, work: &Work) -> Result<Self, String> {
        work.spend(text.len() * COST_OF_BYTE)
            .ok_or_else(Work::refusal)?;
        let converted;
        let text = if lark::is_lark(text) {
            converted = lark::to_ebnf(text)?;
            &converted
        } else {
            text
        };
        let (names, rules) = parser::rules(text)?;
        let root = names.iter().position(|name| name == "root");
        let root = root.ok_or("there is no rule named root")?;
        let heights = heights(&rules, work).ok_or_else(Work::refusal)?;
        if heights[root] == u32::MAX {
            return Err(format!(
                "the rule root never ends, or takes more than {MAX_HEIGHT} levels of rules to end"
            ));
        }
        Ok(Self {
            rules,
            root,
            heights,
        })
    }

    /// A text of the grammar.
    pub(super) fn make(&self, rng: &mut Rng, work: &Work) -> Result<String, String> {
        let mut writer = Writer {
            grammar: self,
            rng,
            work,
            text: String::new(),
            nested: 0,
        };
        match writer.write(&Expression::Rule(self.root), 0) {
            Some(()) => Ok(writer.text),
            None if work.is_spent() => Err(Work::refusal()),
            None => Err(format!(
                "The grammar's texts are longer than {MAX_BYTES} bytes, or nest deeper than {MAX_NESTED} rules, groups \
                 and repetitions."
            )),
        }
    }
}

/// A text that is being made.
struct Writer<'a, 'r> {
    grammar: &'a Grammar,
    rng: &'r mut Rng,
    work: &'r Work,
    text: String,
    /// Expressions that are being written, each within the one before.
    nested: usize,
}

impl<'a> Writer<'a, '_> {
    /// Writes an expression, `depth` rules deep.
    fn write(&mut self, expression: &'a Expression, depth: usize) -> Option<()> {
        self.work.spend(2)?;
        if self.text.len() > MAX_BYTES || self.nested == MAX_NESTED {
            return None;
        }
        self.nested += 1;
        let written = self.parts(expression, depth);
        self.nested -= 1;
        written
    }

    fn parts(&mut self, expression: &'a Expression, depth: usize) -> Option<()> {
        let (heights, rng) = (&self.grammar.heights, &mut *self.rng);
        match expression {
            Expression::Text(literal) => self.text.push_str(literal),
            Expression::Class(ranges) => {
                let (low, high) = *ranges.get(rng.below(ranges.len() as u64) as usize)?;
                let (low, high) = (u32::from(low), u32::from(high));
                let chosen = low + u32::try_from(rng.below(u64::from(high - low) + 1)).ok()?;
                self.text
                    .push(char::from_u32(chosen).or(char::from_u32(low))?);
            }
            Expression::Rule(rule) => self.write(&self.grammar.rules[*rule], depth + 1)?,
            Expression::Sequence(all) => {
                for one in all {
                    self.write(one, depth)?;
                }
            }
            Expression::Either(all) => {
                let chosen = self.choose(all, depth)?;
                self.write(chosen, depth)?;
            }
            Expression::Repeat(one, least, most) => {
                let most = most.unwrap_or(u64::MAX);
                let more = if depth > SHALLOW {
                    0
                } else {
                    most.saturating_sub(*least).min(MORE)
                };
                // What never ends is left out where it may be.
                let more = if height(one, heights, self.work)? == u32::MAX {
                    0
                } else {
                    more
                };
                for _ in 0..*least + rng.below(more + 1) {
                    self.write(one, depth)?;
                }
            }
        }
        Some(())
    }

    /// One of several ways: the shortest when deep, else any that ends.
    fn choose(&mut self, all: &'a [Expression], depth: usize) -> Option<&'a Expression> {
        let height = |one: &Expression| height(one, &self.grammar.heights, self.work);
        let heights = all.iter().map(height).collect::<Option<Vec<u32>>>()?;
        let ways = all.iter().zip(heights);
        if depth > SHALLOW {
            return ways.min_by_key(|(_, height)| *height).map(|(way, _)| way);
        }
        let ending: Vec<&Expression> = ways
            .filter(|(_, height)| *height < u32::MAX)
            .map(|(way, _)| way)
            .collect();
        let chosen = self.rng.below(ending.len() as u64);
        ending.get(chosen as usize).copied()
    }
}

/// Fewest levels of each rule; `u32::MAX` for one that never ends, or only deeper than [`MAX_HEIGHT`]. `None` where the
/// steps do not suffice.
fn heights(rules: &[Expression], work: &Work) -> Option<Vec<u32>> {
    let mut heights = vec![u32::MAX; rules.len()];
    for _ in 0..MAX_HEIGHT {
        let level = |rule| height(rule, &heights, work).map(|below| below.saturating_add(1));
        let next = rules.iter().map(level).collect::<Option<Vec<u32>>>()?;
        if next == heights {
            break;
        }
        heights = next;
    }
    Some(heights)
}

/// Fewest levels of rules below an expression. `None` where the steps do not suffice.
fn height(expression: &Expression, heights: &[u32], work: &Work) -> Option<u32> {
    work.spend(1)?;
    let each = |all: &[Expression], of: fn(u32, u32) -> u32, none| {
        let mut all = all.iter();
        all.try_fold(none, |so_far, one| {
            Some(of(so_far, height(one, heights, work)?))
        })
    };
    match expression {
        Expression::Text(_) | Expression::Class(_) | Expression::Repeat(_, 0, _) => Some(0),
        Expression::Rule(rule) => Some(heights[*rule]),
        Expression::Sequence(all) => each(all, u32::max, 0),
        Expression::Either(all) => each(all, u32::min, u32::MAX),
        Expression::Repeat(one, ..) => height(one, heights, work),
    }
}
