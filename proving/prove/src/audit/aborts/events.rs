//! What of a stream reached a client: its events, and the text in them.
//!
//! Invariant: an event counts once it is whole; the end mark and comments do not count.
//! Not here: HTTP framing, where an event ends (`load`).

use serde_json::Value;

/// What came so far.
#[derive(Debug, Default)]
pub(super) struct Events {
    cut: load::observer::Events,
    /// Whole events with data, without the end mark.
    pub(super) count: u64,
    /// What was generated in them, in the order in which it came.
    pub(super) text: String,
}

impl Events {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let Self { cut, count, text } = self;
        cut.feed(bytes, &mut |event: &[u8]| {
            let event = String::from_utf8_lossy(event);
            let data = event.lines().find_map(|line| line.strip_prefix("data:"));
            let Some(data) = data.map(str::trim).filter(|data| *data != "[DONE]") else {
                return;
            };
            *count += 1;
            if let Ok(data) = serde_json::from_str::<Value>(data) {
                text.push_str(text_of(&data));
            }
        });
    }
}

/// What one event of any dialect generates.
fn text_of(data: &Value) -> &str {
    let choice = &data["choices"][0];
    let delta = &choice["delta"];
    let is_delta = data["type"]
        .as_str()
        .is_some_and(|kind| kind.ends_with(".delta"));
    let places = [&delta["content"], &delta["reasoning"], &choice["text"]];
    let found = places.into_iter().find_map(Value::as_str);
    let of_responses = data["delta"].as_str().filter(|_| is_delta);
    found.or(of_responses).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    //! Three dialects, cut anywhere.

    use super::Events;

    #[test]
    fn events_and_text_are_the_same_wherever_the_bytes_are_cut() {
        let stream = concat!(
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"reasoning\":\"a\",\"reasoning_content\":\"a\"}}]}\n\n",
            ": comment\n\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n",
            "event: x\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"c\"}\n\n",
            "data: [DONE]\n\ndata: {\"cho"
        );
        for cut in 0..=stream.len() {
            let mut events = Events::default();
            events.feed(&stream.as_bytes()[..cut]);
            events.feed(&stream.as_bytes()[cut..]);
            assert_eq!((events.count, events.text.as_str()), (4, "abc"), "{cut}");
        }
    }
}
