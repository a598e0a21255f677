//! Amazon's streams of events, as a fake service writes them.
//!
//! Not here: reading them (`wire::eventstream`).

/// A message with these headers, whose values are texts, and this payload.
///
/// # Panics
/// A name or a value is longer than a message can say.
#[must_use]
pub fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(u8::try_from(name.len()).expect("a short name"));
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(7);
        let length = u16::try_from(value.len()).expect("a short value");
        encoded.extend_from_slice(&length.to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    framed(&encoded, payload)
}

/// A message with headers that are encoded already, whatever they say.
///
/// # Panics
/// It is longer than a message can say.
#[must_use]
pub fn framed(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).expect("short").to_be_bytes();
    let mut message = Vec::new();
    message.extend_from_slice(&length(16 + headers.len() + payload.len()));
    message.extend_from_slice(&length(headers.len()));
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message.extend_from_slice(headers);
    message.extend_from_slice(payload);
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message
}

/// An event of this name.
#[must_use]
pub fn event(name: &str, payload: &str) -> Vec<u8> {
    let headers = [
        (":event-type", name),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    message(&headers, payload.as_bytes())
}

/// A failure that a service's model names.
#[must_use]
pub fn exception(name: &str, payload: &str) -> Vec<u8> {
    let headers = [
        (":exception-type", name),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    message(&headers, payload.as_bytes())
}
