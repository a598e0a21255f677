//! Streams that break before anything of them was forwarded: what they told of their usage by then is charged.
//!
//! Not here: streams that break later, and calls that nobody answered (`sim`, unit tests of `policy::exchange`).

use policy::operation::Operation::{Chat, Messages};
use policy::tokens::Count::{self, Estimated, Reported};
use policy::wire::meter::Meter;

use crate::world::{World, call, plan};

/// What a call is charged whose stream breaks behind these bytes.
fn charged(operation: policy::operation::Operation, told: &str) -> [Count; 2] {
    let mut world = World::routes(&[plan()]);
    let body = r#"{"model":"m","stream":true,"max_tokens":100}"#;
    let mut asked = world.ask(&call(operation, body));
    let _plan = world.attempt(&mut asked);
    asked.exchange.sent(true);
    world.response(&mut asked, 200, "text/event-stream");
    let mut meter = Meter::new(asked.relay().form);
    meter.observe(told.as_bytes());
    world.tell(&mut asked, |exchange, _| {
        exchange.response_broke(true, true)
    });
    assert_eq!(asked.code(), "upstream_malformed");
    world.end(&mut asked, &mut meter, false);
    let tokens = asked.record().tokens;
    [tokens.prompt, tokens.completion]
}

#[test]
fn what_a_stream_told_before_it_broke_is_charged_though_nothing_of_it_was_forwarded() {
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9000,\"completion_tokens\":10}}\n\n";
    assert_eq!(charged(Chat, usage), [Reported(9000), Reported(10)]);
    // A message tells of its prompt where it begins.
    let begun = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5100,\"output_tokens\":1}}}\n\n";
    assert_eq!(charged(Messages, begun), [Reported(5100), Estimated(1)]);
    // Nothing was told: what was held for it.
    let untold = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    assert_eq!(charged(Chat, untold), [Estimated(11), Estimated(100)]);
}
