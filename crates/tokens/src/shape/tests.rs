//! A shape keeps what it is given.

use super::*;

#[test]
fn every_feature_has_a_bit_and_a_word_of_its_own() {
    let mut words: Vec<_> = Feature::ALL.iter().map(|one| one.as_str()).collect();
    let all = Shape::of(&Feature::ALL);
    assert_eq!(all.len() as usize, Feature::COUNT);
    assert!(all.features().eq(Feature::ALL));
    assert_eq!(Shape::from_bits(all.bits()), all);
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Feature::COUNT);
}

#[test]
fn shapes_are_sets() {
    let tools = Shape::of(&[Feature::Chat, Feature::Tools]);
    let system = Shape::of(&[Feature::System, Feature::Chat]);
    assert_eq!(tools.and(system).to_string(), "chat+tools+system");
    assert_eq!(tools.common(system).to_string(), "chat");
    assert_eq!(tools.without(system).to_string(), "tools");
    assert_eq!(format!("{:?}", Shape::NONE), "Shape()");
    assert!(Shape::NONE.is_empty() && !tools.is_empty());
    assert!(tools.has(Feature::Tools) && !system.has(Feature::Tools));
}
