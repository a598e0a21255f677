//! Sizes by headers, whole and damaged, and tokens by the rules that are documented.

use serde_json::{Value, json};
use wire::dialect::Operation;

use super::MAX_PICTURES;
use super::header::{Size, size};
use crate::tests::{random::Random, vectors};
use crate::{BuiltIn, Certainty, Counter, Doubt, Feature, TemplateSettings, Uncountable};

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let word =
            three.iter().fold(0_u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= three.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    out
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice();
    [
        head,
        &width.to_be_bytes(),
        &height.to_be_bytes(),
        &[8, 2, 0, 0, 0],
    ]
    .concat()
}

fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let profile = [[0xff, 0xe2, 0xff, 0xff].as_slice(), &[0; 0xfffd]].concat();
    let frame = [0xff, 0xff, 0xc2, 0, 17, 8];
    [
        [0xff, 0xd8].as_slice(),
        &profile,
        &profile,
        &frame,
        &height.to_be_bytes(),
        &width.to_be_bytes(),
    ]
    .concat()
}

fn pictures() -> Vec<Vec<u8>> {
    let riff = |chunk: &[u8]| [b"RIFF\0\0\0\0WEBP".as_slice(), chunk].concat();
    vec![
        png(640, 480),
        jpeg(640, 480),
        [b"GIF89a".as_slice(), &[0x80, 2, 0xe0, 1, 0]].concat(),
        riff(
            &[
                b"VP8X\x0a\0\0\0\0\0\0\0".as_slice(),
                &[0x7f, 2, 0, 0xdf, 1, 0],
            ]
            .concat(),
        ),
        riff(
            &[
                b"VP8L\0\0\0\0\x2f".as_slice(),
                &(639_u32 | 479 << 14).to_le_bytes(),
            ]
            .concat(),
        ),
        riff(
            &[
                b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a".as_slice(),
                &[0x80, 2, 0xe0, 1],
            ]
            .concat(),
        ),
    ]
}

#[test]
fn a_picture_tells_its_size() {
    let wanted = Size {
        width: 640,
        height: 480,
    };
    for picture in pictures() {
        assert_eq!(
            size(&base64(&picture)),
            Some(wanted),
            "{:?}",
            &picture[..16]
        );
    }
}

#[test]
fn what_is_cut_or_damaged_has_no_size_or_a_sane_one() {
    let mut random = Random::of("what_is_cut_or_damaged_has_no_size_or_a_sane_one");
    for picture in pictures() {
        let whole = size(&base64(&picture));
        for length in (0..picture.len().min(64)).chain([picture.len() - 1]) {
            let cut = size(&base64(&picture[..length]));
            assert!(cut.is_none() || cut == whole, "{length} bytes: {cut:?}");
            assert!(cut.is_none() || length >= 10);
        }
        for _ in 0..(200_000 / picture.len()).clamp(20, 2000) {
            let mut damaged = picture.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(damaged.len().min(40));
                damaged[at] = u8::try_from(random.below(256)).unwrap();
            }
            if let Some(Size { width, height }) = size(&base64(&damaged)) {
                assert!((1..=32_768).contains(&width) && (1..=32_768).contains(&height));
            }
        }
    }
    for none in [
        "",
        "=",
        "é",
        "AAAA",
        "iVBORw0KGgo",
        &base64(&png(0, 5)),
        &base64(&png(1, 1 << 20)),
    ] {
        assert_eq!(size(none), None, "{none}");
    }
    // A JPEG of nothing but segments is not followed for ever, nor one that names a length of none.
    assert_eq!(size(&base64(&[0xff, 0xd8].repeat(200_000))), None);
    assert_eq!(size(&base64(&[0xff, 0xd8, 0xff, 0xe0, 0, 0])), None);
}

fn openai(model: &str, part: &Value) -> Result<u64, Uncountable> {
    let counter = Counter::without_template(BuiltIn::O200k);
    let count = |content: Value| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": content}]});
        counter.prompt(Operation::Chat, body.to_string().as_bytes(), 0)
    };
    let text = json!({"type": "text", "text": "What is it?"});
    let (with, without) = (count(json!([text, part]))?, count(json!([text]))?);
    assert!(with.shape.has(Feature::Media) && !without.shape.has(Feature::Media));
    let (with, without) = (with.count, without.count);
    assert_eq!(with.certainty, Certainty::Approximate(Doubt::Media));
    assert_eq!(
        without.certainty,
        Certainty::Approximate(Doubt::TemplateUnknown)
    );
    Ok(with.tokens - without.tokens)
}

fn image(width: u32, height: u32, detail: &str) -> Value {
    let url = format!("data:image/png;base64,{}", base64(&png(width, height)));
    json!({"type": "image_url", "image_url": {"url": url, "detail": detail}})
}

#[test]
fn openais_tiles_are_those_of_its_documentation() {
    // "1024 x 1024: 765", "2048 x 4096: 1105", "4096 x 8192 in low detail: 85".
    assert_eq!(openai("gpt-4o", &image(1024, 1024, "high")), Ok(765));
    assert_eq!(
        openai("openai/gpt-4o-2024-08-06", &image(2048, 4096, "high")),
        Ok(1105)
    );
    assert_eq!(openai("gpt-4o", &image(4096, 8192, "low")), Ok(85));
    assert_eq!(openai("gpt-4o-mini", &image(512, 512, "auto")), Ok(8500));
    assert_eq!(openai("o1", &image(1, 1, "high")), Ok(225));
    let far = |detail: &str| json!({"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": detail}});
    assert_eq!(openai("gpt-4o", &far("low")), Ok(85));
    let part = Err(Uncountable::Part("image_url".to_owned()));
    for model in [
        "gpt-4.1-mini",
        "gpt-5",
        "gemini-flash",
        "gpt-4o-audio-preview",
        "",
    ] {
        assert_eq!(openai(model, &image(512, 512, "low")), part, "{model}");
    }
    assert_eq!(openai("gpt-4o", &far("high")), part);
    let broken = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    assert_eq!(openai("gpt-4o", &broken), part);
    let sound = json!({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}});
    assert_eq!(
        openai("gpt-4o", &sound),
        Err(Uncountable::Part("input_audio".to_owned()))
    );
}

#[test]
fn a_picture_counts_the_same_in_every_dialect_and_only_where_its_numbers_are_known() {
    let sees = Counter::without_template(BuiltIn::O200k);
    let template = "{% for m in messages %}{{ m.content }}{% endfor %}";
    let tokenizer = vectors("tiny_tokenizer.json");
    let settings = TemplateSettings::default();
    let blind = Counter::from_template(tokenizer.as_bytes(), template, settings).unwrap();
    let data = base64(&png(1024, 1024));
    let url = format!("data:image/png;base64,{data}");
    let said = |content: Value| json!([{"role": "user", "content": content}]);
    let picture = json!({"type": "image_url", "image_url": {"url": url}});
    let text = |kind: &str| json!({"type": kind, "text": "hello world"});
    let source = json!({"type": "base64", "media_type": "image/png", "data": data});
    for (operation, member, text, picture) in [
        (Operation::Chat, "messages", text("text"), picture.clone()),
        (
            Operation::Messages,
            "messages",
            text("text"),
            json!({"type": "image", "source": source}),
        ),
        (
            Operation::Responses,
            "input",
            text("input_text"),
            json!({"type": "input_image", "image_url": url}),
        ),
    ] {
        let body = |content: Value| {
            let body = json!({"model": "gpt-4o", member: said(content)});
            body.to_string()
        };
        let count = |body: String| sees.prompt(operation, body.as_bytes(), 0).unwrap().count;
        let with = count(body(json!([text, picture])));
        let without = count(body(json!([text])));
        assert_eq!(with.tokens - without.tokens, 765, "{operation:?}");
        assert_eq!(with.certainty, Certainty::Approximate(Doubt::Media));
        let blind = blind.prompt(operation, body(json!([text, picture])).as_bytes(), 0);
        assert!(matches!(blind, Err(Uncountable::Part(_))), "{operation:?}");
    }
    // Tokens that another stage hands over are not those of a body with pictures.
    let body = json!({"model": "gpt-4o", "messages": said(json!([picture])),
        "kv_transfer_params": {"prompt_token_ids": [1, 2]}});
    assert!(
        sees.prompt(Operation::Chat, body.to_string().as_bytes(), 0)
            .is_err()
    );
    // More pictures than are counted are not left out.
    let many = vec![picture; MAX_PICTURES + 1];
    let body = json!({"model": "gpt-4o", "messages": said(json!(many))}).to_string();
    assert!(matches!(
        sees.prompt(Operation::Chat, body.as_bytes(), 0),
        Err(Uncountable::Part(_))
    ));
}
