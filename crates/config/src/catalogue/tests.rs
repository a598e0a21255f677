//! The catalogue that is built in, as data.

use std::collections::HashSet;
use std::path::Path;

use policy::price::Pico;

use super::BUILT_IN;
use crate::document::catalogue;
use crate::tests::world::World;

/// A price of a million tokens, in thousandths.
fn rate(thousandths: i128) -> Pico {
    Pico(thousandths * 1_000)
}

#[test]
fn it_is_good_and_says_each_name_once() {
    let models = catalogue(None, &World::default()).expect("it is good");
    assert!(models.len() > 60, "{}", models.len());
    let mut names = HashSet::new();
    for model in &models {
        for name in std::iter::once(&model.name).chain(&model.also) {
            assert!(names.insert(name.clone()), "{name} is listed twice");
        }
        let rates = &model.price.rates;
        // What would be a slip in it.
        let is_embedding = model.name.contains("embedding");
        assert!(rates.input > Pico(0), "{model:?}");
        assert!(is_embedding || rates.output >= rates.input, "{model:?}");
        assert!(
            rates.cached > Pico(0) && rates.cached <= rates.input,
            "{model:?}"
        );
        for tier in &model.price.tiers {
            assert!(tier.rates.input > rates.input, "{model:?}");
            assert!(tier.rates.output > rates.output, "{model:?}");
        }
        assert!(
            model.output_max <= model.window || model.window.is_none(),
            "{model:?}"
        );
        if model.provider == "anthropic" && rates.cached < rates.input {
            // What its page says of each: reads a tenth or less, writes 1.25 and 2 times (Claude 3 Haiku 1.2).
            assert!(rates.cached.0 * 8 <= rates.input.0, "{model:?}");
            assert!(rates.cache_write_5m.0 * 5 >= rates.input.0 * 6, "{model:?}");
            assert_eq!(rates.cache_write_1h.0, rates.input.0 * 2, "{model:?}");
        }
    }
}

#[test]
fn some_of_it_by_hand() {
    let models = catalogue(None, &World::default()).expect("it is good");
    let of = |name: &str| {
        let named = |m: &&super::CatalogueModel| m.name == name || m.also.iter().any(|n| n == name);
        &models.iter().find(named).expect(name).price
    };
    let sonnet = of("claude-sonnet-4-5-20250929");
    assert_eq!(
        (sonnet.rates.input, sonnet.rates.output),
        (rate(3_000), rate(15_000))
    );
    assert_eq!(
        (sonnet.rates.cache_write_5m, sonnet.rates.cached),
        (rate(3_750), rate(300))
    );
    assert_eq!(sonnet.tiers[0].rates.output, rate(22_500));
    // On Bedrock the profile of a region costs a tenth more than the global one.
    let (global, us) = (
        of("global.anthropic.claude-sonnet-4-6"),
        of("us.anthropic.claude-sonnet-4-6"),
    );
    assert_eq!(
        (global.rates.input, us.rates.input, us.rates.output),
        (rate(3_000), rate(3_300), rate(16_500))
    );
    assert_eq!(us.rates.cache_write_5m, rate(4_125));
    assert_eq!(of("amazon.nova-pro-v1:0").rates.output, rate(3_200));
    let gpt = of("gpt-5");
    assert_eq!(
        (gpt.rates.input, gpt.rates.cached, gpt.rates.output),
        (rate(1_250), rate(125), rate(10_000))
    );
    let gemini = of("gemini-2.5-pro");
    assert_eq!(
        (gemini.tiers[0].above, gemini.tiers[0].rates.input),
        (200_000, rate(2_500))
    );
}

#[test]
fn what_is_printed_reads_as_a_file() {
    let mut world = World::default();
    world.put("mine.yaml", BUILT_IN);
    let path = Path::new("/etc/tollgate/mine.yaml");
    let mine = catalogue(Some(path), &world).expect("it is good");
    assert_eq!(mine, catalogue(None, &world).expect("it is good"));
}
