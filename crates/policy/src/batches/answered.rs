//! Which call of a batch an answer is of: results name no call that is kept, so that it is told by the model.
//!
//! Invariant: where several calls could have had an answer it is that which makes it the dearest: no other call of a batch, and no name
//! of a model, makes one cheaper.
//! Not here: reading results (`wire::batch`).

use std::sync::Arc;

use wire::batch::Served;
use wire::dialect::model_name;

use super::Used;
use crate::id::PriceId;
use crate::operation::Operation;
use crate::price::Pico;
use crate::snapshot::Snapshot;

/// Tokens by which prices are held against one another, where an answer costs the same by each.
const SOME_TOKENS: u64 = 1_000;

/// The call that a provider answered, by the name of the model that did, which may say its date besides; of `calls` each once.
#[must_use]
pub fn answered(
    calls: &[(Operation, Box<str>)],
    served: &Served,
    mut price: impl FnMut(&Arc<str>) -> Option<PriceId>,
    s: &Snapshot,
) -> Option<(Operation, Arc<str>)> {
    let told = served.model.as_deref();
    let told = told.and_then(|told| model_name(told.as_bytes()));
    let told = told.unwrap_or_default();
    let fitting = calls.iter().filter(|(_, asked)| fits(told, asked));
    let closest = fitting.map(|(_, asked)| asked.len()).max();
    let is_left =
        |asked: &str| closest.is_none_or(|bytes| asked.len() == bytes && fits(told, asked));
    let left = calls.iter().filter(|(_, asked)| is_left(asked));
    let left = left.map(|(operation, asked)| (*operation, Arc::<str>::from(&**asked)));
    left.max_by_key(|(operation, model)| {
        let price = price(model);
        let mut one = Used::default();
        one.add(&served.usage, pieces(*operation, served), price, s);
        let usual = price.and_then(|id| s.prices.get(id));
        let usual = usual.and_then(|price| price.at_most(SOME_TOKENS, SOME_TOKENS));
        (
            one.cost.map(|Pico(cost)| cost),
            usual.map(|Pico(cost)| cost),
        )
    })
}

/// The images of an answer, where these were asked for: a list `data` of another call holds something else.
#[must_use]
pub fn pieces(operation: Operation, served: &Served) -> Option<u32> {
    served.pieces.filter(|_| operation == Operation::Images)
}

/// Whether a model that answered is the one that was asked for: by its name, by that with a date or a part behind it, or by a name that
/// stands for the latest of its kind (`-latest`, Anthropic's `-0`).
fn fits(told: &str, asked: &str) -> bool {
    let is_named = |asked: &str| {
        let rest = told.strip_prefix(asked);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@', ':']))
    };
    let latest = asked.strip_suffix("-latest");
    is_named(asked)
        || latest
            .or_else(|| asked.strip_suffix("-0"))
            .is_some_and(is_named)
}

#[cfg(test)]
mod tests {
    use wire::usage::{Reading, Usage};

    use super::*;
    use crate::fixture::snapshot;
    use crate::price::{Price, Rates};

    #[test]
    fn an_answer_is_of_the_model_whose_date_or_alias_it_names() {
        for (told, asked) in [
            ("gpt-5", "gpt-5"),
            ("gpt-5-2025-08-07", "gpt-5"),
            ("claude-3-7-sonnet-20250219", "claude-3-7-sonnet-latest"),
            ("claude-opus-4-20250514", "claude-opus-4-0"),
        ] {
            assert!(fits(told, asked), "{told} {asked}");
        }
        for (told, asked) in [
            ("gpt-50", "gpt-5"),
            ("claude-3-5-haiku-20241022", "claude-opus-4-0"),
            ("", "gpt-5"),
        ] {
            assert!(!fits(told, asked), "{told} {asked}");
        }
    }

    /// Which of these calls an answer is of: `picture` costs 5 a request, `drawn` and `chat` 2 and 1 a token.
    fn of(calls: &[(Operation, &str)], served: &Served) -> (Operation, String) {
        let mut s = snapshot(&[]);
        let mut priced = |request, token| {
            let price = Price {
                id: "p".into(),
                whose: "".into(),
                currency: "USD".into(),
                request: Pico(request),
                rates: Rates::flat(Pico(token), Pico(token)),
                tiers: Vec::new(),
            };
            s.prices.add(price)
        };
        let (picture, drawn, chat) = (priced(5, 0), priced(0, 2), priced(0, 1));
        let price = |model: &Arc<str>| match &**model {
            "picture" => Some(picture),
            "drawn" => Some(drawn),
            "chat" => Some(chat),
            _ => None,
        };
        let calls = calls.iter().map(|(of, model)| (*of, Box::from(*model)));
        let calls: Vec<(Operation, Box<str>)> = calls.collect();
        let (of, model) = answered(&calls, served, price, &s).expect("a call");
        (of, model.to_string())
    }

    fn served(model: Option<&str>, tokens: Option<u64>, pieces: Option<u32>) -> Served {
        let usage = tokens.map_or(Reading::Absent, |tokens| {
            Reading::Valid(Usage {
                prompt: Some(tokens),
                ..Usage::default()
            })
        });
        Served {
            model: model.map(Box::from),
            usage,
            pieces,
        }
    }

    #[test]
    fn images_beside_other_calls_of_a_batch_cost_what_they_cost_alone() {
        use Operation::{Chat, Images};
        let (images, chat) = ((Images, "picture"), (Chat, "chat"));
        let ten = served(None, None, Some(10));
        for calls in [
            &[images][..],
            &[images, (Images, "drawn")],
            &[(Images, "drawn"), images],
            &[chat, images],
        ] {
            assert_eq!(of(calls, &ten), (Images, "picture".to_owned()), "{calls:?}");
        }
        // One that tells its tokens is of whatever makes it dearest.
        let told = served(None, Some(1000), Some(1));
        let both = [images, (Images, "drawn")];
        assert_eq!(of(&both, &told).1, "drawn");
        // Of one model: as many as came, and those of the other call none.
        let same = [(Chat, "picture"), images];
        assert_eq!(
            of(&same, &served(Some("picture"), None, Some(10))).0,
            Images
        );
        // A name that was asked for decides, and a list of a call for something else is no images.
        let named = served(Some("chat"), Some(3), Some(1000));
        assert_eq!(of(&[images, chat], &named), (Chat, "chat".to_owned()));
        assert_eq!(pieces(Chat, &named), None);
        assert_eq!(pieces(Images, &named), Some(1000));
    }
}
