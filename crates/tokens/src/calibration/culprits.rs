//! Which features explain that some prompts differ and others do not.
//!
//! Not here: what follows from it (`calibration`).

use std::cmp::Ordering;

use crate::shape::{Feature, Shape};

/// How a report lies to our count.
pub(super) type Sign = Ordering;

/// A prompt that was compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) shape: Shape,
    pub(super) sign: Sign,
}

/// Calls of one kind that have to differ, or agree, before something is said of them.
const ENOUGH: usize = 3;

impl Seen {
    pub(super) fn differs(&self) -> bool {
        self.sign != Sign::Equal
    }
}

/// Those with a feature: how many there are, and how many differ.
fn share(all: &[Seen], feature: Feature) -> (usize, usize) {
    let with = || all.iter().filter(|one| one.shape.has(feature));
    (with().count(), with().filter(|one| one.differs()).count())
}

/// How the share that differs of the first stands to that of the second.
const fn compare_shares(
    (all, differ): (usize, usize),
    (others, differing): (usize, usize),
) -> Ordering {
    let (left, right) = (differ * others, differing * all);
    if left > right {
        Ordering::Greater
    } else if left < right {
        Ordering::Less
    } else {
        Ordering::Equal
    }
}

/// Features of which each prompt that differs has one: again and again the one of whose prompts the greatest share
/// differs, and of these the one that explains most.
pub(super) fn explaining(all: &[Seen]) -> Shape {
    let mut rest: Vec<Seen> = all.iter().filter(|one| one.differs()).copied().collect();
    let mut culprits = Shape::NONE;
    while !rest.is_empty() {
        let of_rest = rest
            .iter()
            .fold(Shape::NONE, |shape, one| shape.and(one.shape));
        let explains = |feature| rest.iter().filter(|one| one.shape.has(feature)).count();
        let best = of_rest.features().max_by(|one, other| {
            compare_shares(share(all, *one), share(all, *other))
                .then(explains(*one).cmp(&explains(*other)))
                // Of two that are the same, the first to be named.
                .then(other.cmp(one))
        });
        let Some(best) = best else {
            break;
        };
        culprits = culprits.with(best);
        rest.retain(|one| !one.shape.has(best));
    }
    culprits
}

/// The features of a call that differs of which the greatest share of calls differs.
pub(super) fn suspects(shape: Shape, recent: impl Iterator<Item = Seen>) -> Shape {
    let all: Vec<Seen> = recent.collect();
    let of = |feature: Feature| share(&all, feature);
    let most = shape
        .features()
        .max_by(|one, other| compare_shares(of(*one), of(*other)));
    let Some(most) = most else {
        return shape;
    };
    let all_of_them = shape.features();
    all_of_them
        .filter(|feature| compare_shares(of(*feature), of(most)).is_eq())
        .fold(Shape::NONE, Shape::with)
}

/// The feature of a call that differs which tells those that differ from those that agree: at least half of those with it
/// differ, several to one side, and since the first that did, all of several without it agreed. Of more than one, that of
/// the fewest calls.
pub(super) fn told_apart(shape: Shape, recent: impl Iterator<Item = Seen>) -> Option<Feature> {
    let since: Vec<Seen> = recent.skip_while(|one| !one.differs()).collect();
    let calls = |feature: Feature| since.iter().filter(|one| one.shape.has(feature)).count();
    let tells = |feature: &Feature| {
        let (with, without): (Vec<Seen>, Vec<Seen>) =
            since.iter().partition(|one| one.shape.has(*feature));
        let differing = with.iter().filter(|one| one.differs()).count();
        let is_share = 2 * differing >= with.len();
        is_share
            && is_enough(&with)
            && without.len() >= ENOUGH
            && !without.iter().any(Seen::differs)
    };
    shape
        .features()
        .filter(tells)
        .min_by_key(|feature| calls(*feature))
}

/// What those have in common that differ like this one, where there are several.
pub(super) fn repeated(shape: Shape, recent: impl Iterator<Item = Seen>) -> Option<Shape> {
    let differing: Vec<Seen> = recent.filter(Seen::differs).collect();
    let common = differing
        .iter()
        .fold(shape, |shape, one| shape.common(one.shape));
    (is_enough(&differing) && !common.is_empty()).then_some(common)
}

/// Whether enough differ to one side.
fn is_enough(seen: &[Seen]) -> bool {
    let to = |sign: Sign| seen.iter().filter(|one| one.sign == sign).count();
    to(Sign::Greater) >= ENOUGH || to(Sign::Less) >= ENOUGH
}
