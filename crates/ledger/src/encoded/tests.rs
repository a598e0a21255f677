//! What was encoded comes back, and nothing else has its encoding.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rusqlite::types::{Value, ValueRef};

use super::{Encoded, Encoder};

const N: usize = 6;

fn values() -> impl Strategy<Value = Vec<Value>> {
    let value = prop_oneof![
        3 => Just(Value::Null),
        3 => any::<i64>().prop_map(Value::Integer),
        1 => (-1e9..1e9).prop_map(Value::Real),
        3 => ".{0,12}".prop_map(Value::Text),
        3 => prop::collection::vec(any::<u8>(), 0..12).prop_map(Value::Blob),
    ];
    prop::collection::vec(value, 0..=N)
}

fn encoded(values: &[Value]) -> Encoded {
    Encoded::of(values.iter().map(ValueRef::from))
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(testing::seed("values_come_back")),
        ..ProptestConfig::default()
    })]

    #[test]
    fn values_come_back_and_nulls_at_their_end_may_be_left_out(given in values(), width in 0..=N) {
        let back = |encoded: &Encoded| -> Vec<Value> {
            encoded.values().map(|value| value.try_into().expect("is text")).collect()
        };
        prop_assert_eq!(&back(&encoded(&given)), &given);
        let mut encoder = Encoder::new();
        given.iter().for_each(|value| encoder.push(&value.into()));
        let used = encoder.used();
        prop_assert!(given[used..].iter().all(|value| *value == Value::Null));
        let mut expected = given;
        expected.resize(width.max(used), Value::Null);
        let finished = encoder.finish(width);
        prop_assert_eq!(&finished, &encoded(&expected));
        prop_assert_eq!(back(&finished), expected);
    }

    #[test]
    fn other_values_have_another_encoding_and_sum(one in values(), two in values()) {
        let is_same = one == two;
        let (one, two) = (encoded(&one), encoded(&two));
        prop_assert_eq!(one == two, is_same);
        prop_assert_eq!(one.sum() == two.sum(), is_same);
    }
}
