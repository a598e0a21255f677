//! What is read, what is refused, and what is written again.

use proptest::prelude::*;

use super::*;
use crate::seeded::seeded;

fn read(text: &str) -> Result<(Json, Oddities), JsonError> {
    let mut oddities = Oddities::default();
    parse(text.as_bytes(), &mut oddities).map(|value| (value, oddities))
}

fn written(text: &str) -> String {
    read(text).expect("reads").0.to_string()
}

#[test]
fn members_keep_their_order_and_numbers_their_digits() {
    let text = r#"{"z":1.50,"a":[true,null,-0,12345678901234567890],"m":{"y":1e5,"b":""}}"#;
    assert_eq!(written(text), text);
    assert_eq!(serde_json::to_string(&read(text).unwrap().0).unwrap(), text);
}

#[test]
fn what_python_writes_beside_json_is_read_and_counted() {
    let (value, oddities) =
        read("{\"a\":NaN,\"b\":-Infinity,\"c\":1e999,\"d\":\"\\ud83d \\udc80 \\ud83d\\ude00\\ud83dx\",\"a\":\"t\tb\"}")
            .unwrap();
    assert_eq!(
        value.to_string(),
        "{\"a\":\"t\\tb\",\"b\":null,\"c\":null,\"d\":\"\u{fffd} \u{fffd} 😀\u{fffd}x\"}"
    );
    let expected = Oddities {
        invalid_utf8: 0,
        lone_surrogates: 3,
        duplicate_members: 1,
        numbers_not_finite: 3,
        raw_control_characters: 1,
    };
    assert_eq!(oddities, expected);
}

#[test]
fn bytes_that_are_no_utf8_are_replaced_and_counted() {
    let mut oddities = Oddities::default();
    let value = parse(b"\xef\xbb\xbf\"a\xff\xfeb\"", &mut oddities).unwrap();
    assert_eq!(value, Json::from("a\u{fffd}\u{fffd}b"));
    assert_eq!(oddities.invalid_utf8, 1);
}

#[test]
fn deep_and_wide_texts_are_refused() {
    assert!(read(&("[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH))).is_ok());
    let deep = read(&"[".repeat(100_000)).unwrap_err();
    assert_eq!(deep.says, "more than 128 levels");
    let wide = format!("[{}0]", "0,".repeat(MAX_VALUES));
    assert_eq!(read(&wide).unwrap_err().says, "more than 2,000,000 values");
}

#[test]
fn many_members_of_one_name_are_one() {
    let members: Vec<String> = (0..100).map(|i| format!("\"n{}\":{i}", i % 40)).collect();
    let (value, oddities) = read(&format!("{{{}}}", members.join(","))).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 40);
    assert_eq!(value.get("n19").unwrap().as_u64(), Some(99));
    assert_eq!(oddities.duplicate_members, 60);
}

#[test]
fn broken_texts_are_refused_with_their_place() {
    for (text, at) in [
        ("", 0),
        ("{\"a\":1", 6),
        ("[1 2]", 3),
        ("\"abc", 1),
        ("01", 0),
        ("\"\\q\"", 2),
        ("tru", 0),
        ("1 x", 2),
        ("{'a':1}", 1),
        ("\"\\u12\"", 3),
    ] {
        assert_eq!(read(text).unwrap_err().at, at, "{text}");
    }
}

#[test]
fn what_python_prints_is_read() {
    let text = "[{'name': \"it's\", 'n': 1.5, 'ok': True, 'no': None, 'q': 'a\\'b\\x41\\u00e9\\\\n', 'l': [1, 2], 'f': 1.}]";
    let value = parse_python(text, &mut Oddities::default()).unwrap();
    assert_eq!(
        value.to_string(),
        r#"[{"name":"it's","n":1.5,"ok":true,"no":null,"q":"a'bAé\\n","l":[1,2],"f":1.0}]"#
    );
    assert!(parse_python("[<object at 0x7f>]", &mut Oddities::default()).is_err());
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        any::<String>().prop_map(Json::String),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Json::Array),
            proptest::collection::btree_map(".{0,4}", inner, 0..8)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(seeded("json", 256))]

    #[test]
    fn what_is_written_is_read_again_here_and_by_serde(value in any_json()) {
        let text = value.to_string();
        prop_assert_eq!(&read(&text).unwrap().0, &value);
        prop_assert_eq!(&serde_json::to_string(&value).unwrap(), &text);
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in any::<usize>()) {
        let _ = parse(&bytes, &mut Oddities::default());
        let genuine = br#"{"a":[1,-2.5e3,"x\u00e9\ud83d\ude00",{"b":null,"c":true}]}"#;
        let _ = parse(&genuine[..cut % genuine.len()], &mut Oddities::default());
        let _ = parse_python(&String::from_utf8_lossy(&bytes), &mut Oddities::default());
    }
}
