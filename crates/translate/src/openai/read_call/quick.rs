//! The quick way through the messages of a call, of which most are a role and one text: with the members around them, in one pass.
//!
//! Invariant: what it gives is what is read member by member; where it gives nothing, be it for a fault, that reads.

use super::message;
use crate::call::{Left, Message, Part, Role, Said};
use crate::raw::{Members, Object, Raw};

/// Messages that a call has room for at once.
const MESSAGES: usize = 16;

/// The members of a body but its messages, and those.
pub(super) fn read<'a>(body: Raw<'a>, left: &Left) -> Option<(Object<'a>, Vec<Message<'a>>)> {
    let read = Members::of(body.json()).whole(|members| {
        members.object_and(Some("messages"), |members| {
            let mut nth = 0..;
            members.list(MESSAGES, |members| one(members, nth.next()?, left))
        })
    });
    let (members, messages) = read?;
    Some((members, messages?))
}

fn one<'a>(members: &mut Members<'a>, nth: usize, left: &Left) -> Option<Message<'a>> {
    let start = members.reader.spot();
    if let Some((role, text)) = role_and_text(members) {
        let parts = vec![Part::of(Said::Text(text.into()))];
        return Some(Message { role, nth, parts });
    }
    members.reader.go_back(start);
    message(nth, members.object()?, left).ok()
}

/// How SDKs write a message's role, to its text.
const ROLES: [(Role, &str); 4] = [
    (Role::User, r#""role":"user","content":"#),
    (Role::Assistant, r#""role":"assistant","content":"#),
    (Role::System, r#""role":"system","content":"#),
    (Role::System, r#""role":"developer","content":"#),
];

/// Of a message that is both of these, and nothing else.
fn role_and_text<'a>(members: &mut Members<'a>) -> Option<(Role, &'a str)> {
    members.reader.open()?;
    let mut roles = ROLES.into_iter();
    let (role, _) = roles.find(|(_, written)| members.reader.past(written).is_some())?;
    let text = members.plain_text()?;
    let has_more = members.reader.more()?;
    (!has_more).then_some((role, text))
}

#[cfg(test)]
mod tests {
    use crate::call::Left;
    use crate::openai::read_call::message;
    use crate::raw::{Raw, alike};

    /// All of a body as it is read the quick way.
    fn quick(json: &str) -> Option<String> {
        let left = Left::default();
        let (members, messages) = super::read(Raw::unread(json.as_bytes())?, &left)?;
        let members: Vec<_> = members.all().collect();
        Some(format!("{members:?} {messages:?} {left:?}"))
    }

    /// The same member by member.
    fn by_member(json: &str) -> Option<String> {
        let left = Left::default();
        let mut members = Raw::read(json.as_bytes())?.object().ok()?;
        let messages = members.need("messages", |messages| {
            messages.each_object(|nth, item| message(nth, item, &left))
        });
        let (messages, members): (_, Vec<_>) = (messages.ok()?, members.all().collect());
        Some(format!("{members:?} {messages:?} {left:?}"))
    }

    #[test]
    fn messages_are_read_the_quick_way_as_member_by_member() {
        alike::check(
            quick,
            by_member,
            &[
                r#"{"model":"m","messages":[{"role":"system","content":"a"},{"role":"user","content":"b"}],"max_tokens":5}"#,
                r#"{"messages":[{"content":"a","role":"user"},{"role":"assistant","content":"x","name":"x"},{"role":"user","content":"\n"}]}"#,
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"a":1}}],"more":1},{"role":"developer","content":""}]}"#,
                r#"{"messages":[],"tools":[{"messages":[1]}]}"#,
                r#"{ "model": "m", "messages": [ { "role": "user" , "content": "a" } , {"role": "system", "content": "b"} ] }"#,
                r#"{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"c"}]}"#,
            ],
            &[
                r#"{"model":"m"}"#,
                r#"{"messages":null}"#,
                r#"{"messages":"a"}"#,
                r#"{"messages":["a"]}"#,
                r#"{"messages":[{"role":"robot","content":"a"}]}"#,
                r#"{"messages":[{"role":"user"}]}"#,
                r#"{"messages":[{"role":"user","role":"user","content":"a"}]}"#,
                r#"{"messages":[],"messages":[]}"#,
            ],
        );
    }
}
