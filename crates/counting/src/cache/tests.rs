//! What is built of which files, and what is said of files that are no use.

use policy::operation::Operation;

use super::*;
use crate::moment;

const TOKENIZER: &[u8] = include_bytes!("../../../../vectors/tokens/tiny_tokenizer.json");

type Build<'s> = Box<dyn FnOnce() -> Result<Counter, String> + 's>;

fn files<'s>(
    key: u64,
    tokenizer: &'s [u8],
    template: Option<&'s str>,
    settings: Option<&'s str>,
) -> (u64, &'s str, Build<'s>) {
    let bytes = |text: Option<&'s str>| text.map(str::as_bytes);
    let build = move || {
        let engine = TemplateSettings::default();
        from_files(tokenizer, bytes(template), bytes(settings), engine)
    };
    (key, "tokenizers.m", Box::new(build))
}

fn prompt(counters: &Counters, key: u64) -> u64 {
    let body = br#"{"messages":[{"role":"user","content":"hello"}]}"#;
    let count = counters[&key].prompt(Operation::Chat, body, 0);
    count.expect("countable").count.tokens
}

#[test]
fn the_template_and_its_tokens_come_from_the_settings() {
    let template = "{{ bos_token }}{{ messages[0]['content'] }}{{ eos_token }}";
    let settings = format!(
        r#"{{"bos_token":"<s>","eos_token":{{"content":"</s>"}},"chat_template":"{template}"}}"#
    );
    let several = format!(
        r#"{{"bos_token":"<s>","eos_token":"</s>","chat_template":[
            {{"name":"tools","template":"no"}},{{"name":"default","template":"{template}"}}]}}"#
    );
    let cache = TokenizerCache::default();
    let sources = [
        files(1, TOKENIZER, None, Some(&settings)),
        files(2, TOKENIZER, None, Some(&several)),
        files(
            3,
            TOKENIZER,
            Some("<s>{{ messages[0]['content'] }}</s>"),
            None,
        ),
        files(
            4,
            TOKENIZER,
            Some("{{ messages[0]['content'] }}"),
            Some(&settings),
        ),
    ];
    let counters = cache.build(sources).expect("good files");
    assert_eq!(prompt(&counters, 1), prompt(&counters, 3));
    assert_eq!(prompt(&counters, 2), prompt(&counters, 3));
    assert!(prompt(&counters, 4) < prompt(&counters, 3));
}

#[test]
fn files_of_no_use_are_told_by_their_place() {
    for (tokenizer, template, settings, says) in [
        (&b"{}"[..], Some(""), None, "the tokenizer cannot be read"),
        (
            TOKENIZER,
            Some("{% if %}"),
            None,
            "the chat template cannot be read",
        ),
        (TOKENIZER, None, Some("{"), "`settings` is not JSON"),
        (
            TOKENIZER,
            None,
            Some("{}"),
            "`settings` holds no chat_template",
        ),
    ] {
        let built = TokenizerCache::default().build([files(1, tokenizer, template, settings)]);
        let told = built.err().expect("a fault");
        assert!(
            told.starts_with("tokenizers.m: ") && told.contains(says),
            "{told}"
        );
    }
}

#[test]
fn what_did_not_change_is_not_built_again_and_what_was_before_stays_for_a_while() {
    let cache = TokenizerCache::default();
    let source = || [files(1, TOKENIZER, Some(""), None)];
    cache.put(cache.build(source()).expect("good files"));
    let first = cache.get(1).expect("it is there");
    cache.put(cache.build(source()).expect("good files"));
    assert!(Arc::ptr_eq(&first, &cache.get(1).expect("it is there")));
    cache.put(Counters::new());
    assert!(cache.get(1).is_some());
}

#[test]
fn a_reload_that_changes_no_tokenizer_puts_none_away() {
    let cache = TokenizerCache::default();
    for key in [1, 2] {
        cache.put(
            cache
                .build([files(key, TOKENIZER, Some(""), None)])
                .expect("good files"),
        );
    }
    // A new file is read twice: once because it is there, once because nobody had looked at it before.
    for _ in 0..10 {
        cache.put(
            cache
                .build([files(2, TOKENIZER, Some(""), None)])
                .expect("good files"),
        );
    }
    assert!(cache.get(1).is_some());
}

#[test]
fn those_that_were_replaced_stay_while_calls_may_need_them_and_are_bounded() {
    let cache = TokenizerCache::default();
    let sources = [files(0, TOKENIZER, Some(""), None)];
    let built = cache.build(sources).expect("good files");
    let of = |key| Counters::from([(key, Arc::clone(&built[&0]))]);
    let start = moment();
    let mut kept = Generations::default();
    // The files of one model are written one after another.
    for (key, at) in (1..).zip([0, 0, 1, 2]) {
        kept.put(of(key), start + Duration::from_secs(at));
    }
    assert!((1..=4).all(|key| kept.get(key).is_some()));
    // Much later the next ones: of the others the last stays.
    kept.put(of(5), start + KEPT_FOR * 2);
    assert_eq!(kept.before.len(), 1);
    assert!(kept.get(4).is_some() && kept.get(3).is_none());
    for key in 6..100 {
        kept.put(of(key), start + KEPT_FOR * 2);
    }
    assert_eq!(kept.before.len(), REPLACED_MAX);
    // No reload is needed for that.
    kept.drop_old(start + KEPT_FOR * 4);
    assert_eq!(kept.before.len(), 1);
}
