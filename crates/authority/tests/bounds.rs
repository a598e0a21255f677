//! Policies that nobody wrote, over claims of every size that fits a token: what a decision takes at most.
//!
//! Every function that is offered is in them, in one another, in loops over claims and in rules that make more of what other
//! rules made. What a decision holds is noted (`testing::Noting`); steps are counted by what decides, which says when a
//! bound was met. `TOLLGATE_AUTHORITY_CASES` says how many policies; how the seed is chosen says `testing`. What took
//! longest is printed, and compared with nothing.
//! Not here: what single functions take (`src/rego/tests.rs`, `src/cel/tests.rs`).

#[path = "bounds/cel_rules.rs"]
mod cel_rules;
#[path = "bounds/claims.rs"]
mod claims;
#[path = "fixture/mod.rs"]
#[expect(dead_code, reason = "the other tests' claims are not these")]
mod fixture;
#[path = "bounds/rego_policies.rs"]
mod rego_policies;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use policy::authority::{Decision, Members, Rules};
use testing::{Began, Draw, Memory, Noting, number_of};

use crate::fixture::asked;

/// The most that a decision holds beside its claims, bytes, as the page says.
const HELD_MAX: usize = 8 << 20;
/// How exactly the longest decision is told.
const TICK: Duration = Duration::from_micros(50);

#[global_allocator]
static NOTING: Noting = Noting;

/// What the decisions of a test came to.
#[derive(Default)]
struct Seen {
    made: usize,
    decided: usize,
    /// How many ended with which bound.
    bounds: BTreeMap<String, usize>,
    most: (usize, String),
    longest: (Duration, String),
}

impl Seen {
    fn decide(&mut self, text: &str, rules: &dyn Rules, of: &Members) {
        let asked = asked(of);
        // An interpreter is made once in a thread.
        let none = Members::NONE;
        drop(rules.decide(&fixture::asked(&none)));
        let began = Began::now();
        let (memory, decision) = Memory::of(|| rules.decide(&asked));
        while began.is_over(self.longest.0 + TICK) {
            self.longest = (self.longest.0 + TICK, text.to_owned());
        }
        self.note(text, &decision, memory.most);
    }

    fn note(&mut self, text: &str, decision: &Decision, held: usize) {
        self.decided += 1;
        if held > self.most.0 {
            self.most = (held, text.to_owned());
        }
        assert!(held <= HELD_MAX, "held {held} bytes: {text}");
        let why = decision.why.as_deref().unwrap_or_default();
        if let Some(at) = why.find("took more").or_else(|| why.find("made more")) {
            *self.bounds.entry(why[at..].to_owned()).or_default() += 1;
        }
    }

    fn say(&self, name: &str) {
        println!(
            "{name}: {} policies made, {} decided; ended by a bound: {:?}",
            self.made, self.decided, self.bounds
        );
        println!("most held: {} bytes\n{}", self.most.0, self.most.1);
        println!("longest: {:?}\n{}", self.longest.0, self.longest.1);
    }
}

/// Runs cases until so many were decided.
fn run(
    name: &str,
    usual: u64,
    mut case: impl FnMut(&mut Draw) -> (String, Option<Arc<dyn Rules>>),
) -> Seen {
    let wanted = usize::try_from(number_of("TOLLGATE_AUTHORITY_CASES", usual)).expect("fits");
    let mut draw = Draw::new(testing::seed(name));
    let mut seen = Seen::default();
    while seen.decided < wanted {
        seen.made += 1;
        let (text, rules) = case(&mut draw);
        let Some(rules) = rules else {
            assert!(
                seen.made < 1000 + 20 * wanted,
                "policies that load are written"
            );
            continue;
        };
        let of = claims::drawn(&mut draw);
        seen.decide(&text, &*rules, &of);
    }
    seen.say(name);
    seen
}
